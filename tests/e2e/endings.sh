#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trainings that end otherwise: losses that are not numbers, devices that do not answer (tests/device/fault_layer.c), interruptions
# that are answered at once, and what is said of checkpoints then.
. "$(dirname "$0")/common.sh"
"$helper" images 60 x.npy && "$helper" labels 60 y.npy || fail "no data"
train() { "$cleave" train --images x.npy --labels y.npy --model mlp --batch 8 --seed 3 "$@"; }

# a loss that is not finite: a few steps, whose values were first, and no weights
works train --device host --steps 4 --save good --quiet
cp good kept
expect 1 "the first values that are not finite are those of " train --device host --steps 30 --lr 1e30 --save good --checkpoint c --log l
cmp -s good kept || fail "weights that are not numbers were saved over good ones"
[ ! -e c ] || fail "a checkpoint was written of them"
[ "$(grep -c '"step":' l)" -le 6 ] || fail "it took $(grep -c '"step":' l) steps"
grep -q '"state":"failed"' l || fail "the log does not say how it ended"
works train --device host --steps 12 --lr 1e30 --on-nan continue --save bad
[ -e bad ] || fail "--on-nan continue saved nothing"
expect 2 "--on-nan" train --on-nan maybe
expect 2 "--device-timeout wants seconds, or off, not 'soon'" train --device host --device-timeout soon
expect 2 "--device-timeout wants seconds, or off, not '0'" train --device host --device-timeout 0

# the first signal is answered at once, with a word of the checkpoint only where one will be written
for checkpoint in "" "--checkpoint sc"; do
    rm -f log
    # shellcheck disable=SC2086  # words on purpose
    "$cleave" train --images x.npy --labels y.npy --model mlp --batch 2 --device host --epochs 400 $checkpoint --log log >out 2>err &
    process=$!
    tries=0
    until [ "$(cat log 2>/dev/null | wc -l)" -gt 5 ] || [ $tries -gt 600 ]; do sleep 0.05; tries=$((tries + 1)); done
    kill -INT $process
    wait $process
    same "exit code" $? 130
    grep -q '^interrupted: the step is finished' err || fail "no answer: $(cat err)"
    if [ -n "$checkpoint" ]; then
        grep -q 'go on with --resume sc' err || fail "no word on how to go on: $(cat err)"
    else
        ! grep 'interrupted: .*checkpoint written' err || fail "a word of a checkpoint that nobody asked for"
    fi
done

# interrupted within an epoch: the accuracy is of the end of the epoch before, and says so; resumed, it says where it goes on
mkdir idx && "$helper" idx idx 400 || fail "no IDX files"
mnist="train fashion-mnist --data idx --model linear --batch 2 --device host"
# shellcheck disable=SC2086  # words on purpose; no function, so that $! is the tool itself
"$cleave" $mnist --epochs 400 --log log3 --checkpoint mc >out 2>err &
process=$!
tries=0
until grep -q '"epoch":2,' log3 2>/dev/null || [ $tries -gt 600 ]; do sleep 0.05; tries=$((tries + 1)); done
kill -INT $process
wait $process
step=$("$helper" lines step <log3 | tail -n 1) tested=$(grep -c '"event":"epoch"' log3)
tested=$((tested * 200))
if [ "$step" = "$tested" ]; then
    echo "interrupted at the end of an epoch"
else
    grep -qF ", as tested after step $tested; the weights are those of step $step" out || fail "whose accuracy is it? $(cat out)"
fi
# shellcheck disable=SC2086  # words on purpose
works "$cleave" $mnist --epochs 400 --steps $((step + 3)) --resume mc
grep -qxF "goes on after step $step of $((step + 3))" err || fail "resumed without a word on where: $(cat err)"
! grep 'after step 0' err || fail "it did not begin at step 0"
! grep 'as tested after' out || fail "tested at its end, and says otherwise"
# shellcheck disable=SC2086  # words on purpose
works "$cleave" $mnist --epochs 400 --steps $((step + 3)) --resume mc --json --quiet
same "tested after" "$(at tested_step)" $((step + 3))

# a lost terminal is an interruption; shell and system both tell of it, and the second time is none. Under nohup it is nothing
rm -f log # of a model with steps that are long enough for the second to come within one
"$cleave" train --images x.npy --labels y.npy --model cnn --batch 2 --device host --epochs 400 --log log --save hw --checkpoint hc >out 2>err &
process=$!
tries=0
until [ "$(cat log 2>/dev/null | wc -l)" -gt 1 ] || [ $tries -gt 600 ]; do sleep 0.05; tries=$((tries + 1)); done
kill -HUP $process
tries=0
until grep -q '^interrupted: ' err || [ $tries -gt 600 ]; do sleep 0.01; tries=$((tries + 1)); done
kill -HUP $process
wait $process
same "exit code of a lost terminal" $? 130
[ -s hw ] && [ -s hc ] || fail "a lost terminal: nothing was saved"
(trap '' HUP; exec "$cleave" train --images x.npy --labels y.npy --model mlp --batch 2 --device host --epochs 400 --log log2 --quiet) >out 2>&1 &
process=$!
tries=0
until [ "$(cat log2 2>/dev/null | wc -l)" -gt 5 ] || [ $tries -gt 600 ]; do sleep 0.05; tries=$((tries + 1)); done
kill -HUP $process
before=$(wc -l <log2)
tries=0
until [ "$(wc -l <log2)" -gt $((before + 20)) ] || [ $tries -gt 600 ]; do sleep 0.05; tries=$((tries + 1)); done
[ $tries -le 600 ] || fail "nohup: the training ended"
kill -TERM $process
wait $process

# a file that becomes too large, and readers that go: what can be saved is
for kept in "--save fw" "--checkpoint fc"; do
    # shellcheck disable=SC2086  # words on purpose
    (ulimit -f 400; exec "$cleave" train --images x.npy --labels y.npy --model linear --batch 4 --device host --epochs 400 --quiet --log full $kept) >out 2>err
    same "a log that is too large" $? 1
    same "sentences" "$(cat err)" "cleave: the log 'full' could not be written: File too large"
    [ -s "${kept#* }" ] || fail "a log that is too large: nothing was saved"
done
gone() { # gone CODE COMMAND...: nobody reads stderr (from the first byte on), and stdout goes to a file
    wanted=$1
    shift
    { "$@" 2>&1 >out; echo $? >code; } | true
    same "without a reader of stderr: $*" "$(cat code)" "$wanted"
}
gone 0 train --device host --epochs 2 --save gw --watch
[ -s gw ] || fail "without a reader of stderr no weights are saved"
gone 0 "$cleave" run --input x.npy --output go.npy --model mlp --weights gw --device host
[ -s go.npy ] || fail "without a reader of stderr no output is written"
{ train --device host --epochs 2 --save gw2 2>err; echo $? >code; } | true
same "without a reader of stdout" "$(cat code)" 141
cmp -s gw gw2 || fail "without a reader of stdout no weights are saved"
grep '^cleave: ' err && fail "a sentence on a reader that has seen enough"
{ "$cleave" check --device host --tap --op relu 2>err; echo $? >code; } | true
same "check without a reader" "$(cat code)$(cat err)" 141

# a device that does not answer
[ -n "${CLV_TEST_FAULT_LAYER:-}" ] || { in_part "without OpenCL no device fails to answer"; finish; }
export OPENCL_LAYERS="$CLV_TEST_FAULT_LAYER" CLEAVE_PARTITION=cpu:0=2
train --device cpu:0 --steps 1 --json --quiet >out 2>err || { in_part "no device fails to answer: $(cat err)"; finish; }
CLV_TEST_FAULT=clEnqueueNDRangeKernel:60:0:silent
export CLV_TEST_FAULT
for device in "--device cpu:0" "--place fc1=cpu:0,fc2=cpu:1"; do
    # shellcheck disable=SC2086  # words on purpose
    expect 1 "has not answered for 3 s (--device-timeout); there is no checkpoint (--checkpoint FILE)" \
        train $device --epochs 2 --device-timeout 3
done
expect 1 "no checkpoint was written to 'nc' yet: all" train --device cpu:0 --epochs 2 --device-timeout 3 --checkpoint nc
[ ! -e nc ] || fail "there is one"
CLV_TEST_FAULT=clEnqueueNDRangeKernel:60:0:stuck # inside the call
expect 1 "has not answered for 3 s (--device-timeout)" train --device cpu:0 --epochs 2 --device-timeout 3
for how in silent stuck; do
    lost=0
    for n in 91 92 93 94 95 96; do # on one of the two
        CLV_TEST_FAULT=clEnqueueNDRangeKernel:$n:0:$how
        train --replicas cpu:0,cpu:1 --shares equal --epochs 2 --device-timeout 3 --on-device-failure continue --json >out 2>err
        [ $? = 0 ] || continue
        same "lost" "$(at lost_devices.0.device)" cpu:1
        same "steps" "$(at steps)" 16
        lost=$((lost + 1))
        break
    done
    [ $lost -gt 0 ] || fail "no training went on without a replica that is $how: $(cat err)"
done
finish
