#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A training that is interrupted and resumed gives the same bits as one that is not: between epochs, within one, and after
# a signal. Dropout, momentum, schedule and the order of images all have to come back.
. "$(dirname "$0")/common.sh"
"$helper" images 120 x.npy && "$helper" labels 120 y.npy || fail "no data"
options="train --images x.npy --labels y.npy --device $device --batch 16 --optimizer adam --schedule step --step-size 1
    --gamma 0.5 --quiet"
# shellcheck disable=SC2086  # words on purpose
train() { "$helper" last "$cleave" $options --model "$model" "$@"; }
for model in ${CLEAVE_TEST_MODELS:-linear mlp}; do
    rm -f c c.prev
    works train --epochs 4 --save whole --json --log whole.log
    loss=$(at train_loss)
    works train --epochs 2 --checkpoint c --log parts.log
    works train --epochs 4 --resume c --checkpoint c --save parts --json --log parts.log
    cmp -s whole parts || fail "$model: resumed after an epoch, other bits"
    same "$model: loss" "$(at train_loss)" "$loss"
    same "$model: losses of all steps" "$("$helper" lines loss <parts.log | cksum)" "$("$helper" lines loss <whole.log | cksum)"
    [ -e c.prev ] || fail "$model: the previous checkpoint is not kept"

    works train --steps 11 --checkpoint c
    works train --epochs 4 --resume c --save parts
    cmp -s whole parts || fail "$model: resumed within an epoch, other bits"
    works train --epochs 4 --resume c --checkpoint c --checkpoint-every 3 --save parts
    cmp -s whole parts || fail "$model: checkpoints changed the bits"
    works train --epochs 4 --resume c --save parts --json # nothing is left to do
    cmp -s whole parts || fail "$model: resumed at the end, other bits"
    same "$model: loss at the end" "$(at train_loss)" "$loss"
done

# a checkpoint from beyond the end is a mistake; from the very end it is not (above)
expect 1 "'c' stands after step 32, but only 16 steps are asked for: ask for more" train --epochs 2 --resume c --save never
[ ! -e never ] || fail "weights were saved all the same"
expect 1 "'c' stands after step 32, but only 5 steps are asked for: ask for more" train --steps 5 --resume c

# a log that went on after the checkpoint is cut back to where the training goes on
rm -f c c.prev
works train --steps 11 --checkpoint c --log cut.log
works train --epochs 4 --checkpoint later --log cut.log --resume c
works train --epochs 4 --log cut.log --resume c
same "losses of a log that was cut back" "$("$helper" lines loss <cut.log | cksum)" "$("$helper" lines loss <whole.log | cksum)"
same "steps of a log that was cut back" "$(grep -c '"step":' cut.log)" 32
# half a line, which a killed process leaves, goes; another text without an end stays
works train --steps 11 --checkpoint c --log torn.log
printf '{"step":12,"steps":32,"ep' >>torn.log
works train --epochs 4 --log torn.log --resume c
same "losses of a log that was torn" "$("$helper" lines loss <torn.log | cksum)" "$("$helper" lines loss <whole.log | cksum)"
works train --steps 11 --checkpoint c --log noted.log
printf 'a note' >>noted.log
works train --epochs 4 --log noted.log --resume c
same "a note in the log" "$(grep -c '^a note$' noted.log)" 1
# what is no log is left alone
printf 'a note' >note.log && cp note.log note
expect 1 "'note.log' holds something that is no log of a training" train --epochs 4 --log note.log --resume c
expect 1 "'note.log' holds something that is no log of a training" train --epochs 4 --log note.log
cmp -s note note.log || fail "a file that is no log was changed"
printf '{"event":"be' >half.log && : >empty.log
for log in half empty whole; do works train --epochs 1 --log $log.log; done

# settings that are not those of the last model's checkpoint, by the options that say them
other() { # WHAT OPTIONS... : refused, and said so
    other_what=$1
    shift
    expect 1 "'c' was written with $other_what; go on with the settings it was written with" train --epochs 5 --resume c "$@"
}
model=linear
works train --steps 3 --checkpoint c
other '--precision f32, now it is mixed-bf16' --precision mixed-bf16
other '--seed 1, now it is 2' --seed 2
other 'shuffling (--no-shuffle) on, now it is off' --no-shuffle
other '--micro-batches 1, now it is 2' --micro-batches 2
other '--lr 0.001, now it is 0.5' --lr 0.5
other '--clip-norm 0, now it is 1' --clip-norm 1
other '--warmup 0, now it is 2' --warmup 2
other '--label-smoothing 0, now it is 0.5' --label-smoothing 0.5
other '--mixup 0, now it is 0.5' --mixup 0.5
other '--ema 0, now it is 0.5' --ema 0.5
other "--freeze '', now it is 'fc.bias'" --freeze fc.bias
other "groups (--param-group, --weight-decay-skip) '', now it is '*: max_rank 1 weight_decay none'" --weight-decay-skip vectors
other "--class-weights and --ignore-index '', now it is 'labels: 1 2 1 1 1 1 1 1 1 1'" --class-weights 1,2,1,1,1,1,1,1,1,1
usual=$options options="train --images x.npy --labels y.npy --device $device --quiet"
other '--schedule step, now it is constant' --batch 16 --optimizer adam --schedule constant
other '--optimizer adam, now it is sgd' --batch 16 --optimizer sgd --lr 0.001
other '--batch 16, now it is 8' --batch 8
other 'a period (--schedule, --step-size or --plateau-patience) of 1, now it is 3' --batch 16 --optimizer adam --schedule step --step-size 3
other '--gamma 0.5, now it is 0.25' --batch 16 --schedule step --step-size 1 --gamma 0.25
other 'samples (other data, --limit, --validation or --context) 120, now it is 60' --batch 16 --limit 60
expect 1 "checkpoint 'c' is of model 'linear', not of 'mlp' (--model)" "$helper" last "$cleave" $usual --model mlp --resume c --epochs 5

# the rate falls over the whole training: a longer one goes on along the longer way, and says so
options="train --images x.npy --labels y.npy --device $device --batch 16 --schedule cosine"
works train --epochs 2 --checkpoint c --quiet
works train --epochs 4 --resume c --log longer.log
grep -qF "'c' was written with the schedule cosine over 16 steps; from here on it is over 32, as long as this training" err ||
    fail "no word on the longer schedule: $(cat err)"
same 'steps of the longer training' "$(grep -c '"step":' longer.log)" 16
expect 1 "checkpoint 'c' stands after step 16, but only 8 steps are asked for" train --epochs 1 --resume c
same "what is said of a training that has ended" "$(grep -c . err)" 1
expect 1 "'nosuch.ckpt'" train --epochs 4 --resume nosuch.ckpt
same "what is said where nothing can be gone on from" "$(grep -c . err)" 1
works train --epochs 2 --resume c # its end: nothing to do, and nothing to say of schedules
grep -q 'was written with' err && fail "a schedule that is the same was told: $(cat err)"
options=$usual

# a signal: the step is finished, the checkpoint written, exit 130
model=mlp
works train --epochs 150 --save whole
for signal in INT TERM; do
    rm -f c log
    # shellcheck disable=SC2086  # words on purpose; no function, so that $! is the tool itself
    "$cleave" $options --model $model --epochs 150 --checkpoint c --log log >out 2>err &
    process=$!
    tries=0
    until [ "$(cat log 2>/dev/null | wc -l)" -gt 20 ] || [ $tries -gt 600 ]; do sleep 0.05; tries=$((tries + 1)); done
    kill -$signal $process
    wait $process
    code=$?
    if [ $code = 0 ]; then # it was faster than the signal
        echo "done before SIG$signal came"
        continue
    fi
    same "exit code after SIG$signal" $code 130
    grep -q -- '--resume c' err || fail "no word on how to go on: $(cat err)"
    works train --epochs 150 --resume c --save parts
    cmp -s whole parts || fail "resumed after SIG$signal, other bits"
done
# a signal while kernels are built, before there is anything to lose: the end, at once
if [ "$device" != host ]; then
    "$helper" images 4 large.npy 3 64 64 && "$helper" labels 4 y4.npy || fail "no data"
    env CLEAVE_CACHE_DIR="$scratch/cold" POCL_CACHE_DIR="$scratch/cold-pocl" "$cleave" train --images large.npy --labels y4.npy \
        --model resnet50 --device "$device" --steps 1 >out 2>err &
    process=$!
    tries=0
    until grep -q '^training' err || [ $tries -gt 600 ]; do sleep 0.05; tries=$((tries + 1)); done
    kill -INT $process
    begun=$(date +%s)
    wait $process
    same "exit code of a signal before the first step" $? 130
    [ $(($(date +%s) - begun)) -le 5 ] || fail "a signal before the first step was answered after $(($(date +%s) - begun)) s"
    grep -q 'cleave: interrupted before the first step was done' err || fail "not told: $(cat err)"
fi
finish
