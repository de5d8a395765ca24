#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fine-tuning as a person does it: weights of ten classes, a new head for five, the rest frozen. What is frozen keeps its bits,
# the head learns, memory is as predicted and less than without; on replicas, placed, in micro-batches, recomputed, resumed.
. "$(dirname "$0")/common.sh"
"$helper" images 120 x.npy && "$helper" labels 120 y.npy && "$helper" labels 120 y5.npy %5+0 || fail "no data"
[ "$device" = host ] || export CLEAVE_PARTITION=cpu:0=2
arrays="--images x.npy --labels y5.npy --model mlp --classes 5 --batch 20 --epochs 4 --lr 0.05 --optimizer momentum"
works "$cleave" train --images x.npy --labels y.npy --model mlp --device "$device" --batch 20 --epochs 2 --save w.safetensors --quiet

memory() { # as predicted on each device
    for i in $(seq 0 $(($1 - 1))); do
        same "prediction of device $i" "$(at memory.$i.predicted_peak_bytes)" "$(at memory.$i.peak_bytes)"
    done
}

# tune NAME DEVICES OPTIONS...: a new head on frozen fc1
tune() {
    name=$1 devices=$2
    shift 2
    # shellcheck disable=SC2086
    works "$helper" last "$cleave" train $arrays --weights w.safetensors --except 'fc2.*' --freeze fc1 --save "$name.safetensors" --json "$@"
    memory "$devices"
    "$helper" tensors "$name.safetensors" w.safetensors >which || fail "no comparison"
    same "$name: frozen bits" "$(cat which)" "fc1.bias same
fc1.weight same
fc2.bias other
fc2.weight other"
    awk "BEGIN { exit !($(at train_loss) < 1.2) }" || fail "$name: the head learned nothing: $(at train_loss), ln 5 is 1.61"
}

tune plain 1 --device "$device"
frozen=$(at memory.0.peak_bytes)
same "optimizer state of the head alone" "$(at memory.0.categories.optimizer)" $((4 * (5 * 128 + 5)))
# shellcheck disable=SC2086
works "$helper" last "$cleave" train $arrays --weights w.safetensors --except fc2 --device "$device" --json
[ "$frozen" -lt "$(at memory.0.peak_bytes)" ] || fail "freezing saves nothing: $frozen, $(at memory.0.peak_bytes)"
[ "$(at memory.0.categories.optimizer)" -ge 400000 ] || fail "all parameters have state without --freeze"

# weights that do not fit: a sentence alone, before what the training is
refused() { # shellcheck disable=SC2086
    expect 1 "$1" "$cleave" train $arrays --weights w.safetensors --device "$device" ${2:+--except "$2"}
    same "what is said before '$1'" "$(grep -c . err)" 1
}
refused "'w.safetensors' is of a model with 10 classes, this one has 5" ''
refused "neither the model nor 'w.safetensors' has such a tensor" 'head.*'
# shellcheck disable=SC2086
works "$cleave" train $arrays --weights w.safetensors --except 'fc2.*' --steps 1 --device "$device"
same "what is said of the training" "$(grep -c "^  model .*; begins with w.safetensors" err)" 1

# the dry run says so
works "$cleave" plan mlp --samples numbers --classes 5 --batch 20 --train --optimizer momentum --freeze fc1 --device "$device" --json
same "planned" "$(at devices.0.predicted_peak_bytes)" "$frozen"
works "$cleave" plan mlp --classes 5 --batch 20 --train --freeze fc1 --device "$device"
grep -qF '101,125, of which 645 trainable and 100,480 frozen' out || fail "plan does not tell what is frozen"

tune micro 1 --device "$device" --micro-batches 2
tune mixed 1 --device "$device" --precision mixed
tune again 1 --device "$device" --recompute '*'
cmp -s plain.safetensors again.safetensors || fail "recomputed: other bits"
if [ "$device" != host ]; then
    tune replicas 2 --replicas cpu:0,cpu:1 --shares equal
    tune unlike 2 --replicas cpu:0,host --shares 0.8,0.2
    tune placed 2 --place 'fc1=cpu:0,fc2=cpu:1'
    cmp -s plain.safetensors placed.safetensors || fail "placed: other bits"
    tune pipeline 2 --place 'fc1=cpu:1,fc2=cpu:0' --micro-batches 2
    tune lossy 2 --replicas cpu:0,cpu:1 --shares equal --on-device-failure continue
fi

# stopped and resumed: the same bits; other parameters frozen: refused
part() { # shellcheck disable=SC2086
    "$helper" last "$cleave" train $arrays --freeze fc1 --device "$device" --quiet "$@"; }
works part --weights w.safetensors --except 'fc2.*' --epochs 2 --checkpoint run.ckpt
works part --resume run.ckpt --save resumed.safetensors
cmp -s plain.safetensors resumed.safetensors || fail "resumed: other bits"
# shellcheck disable=SC2086
expect 1 "was written with --freeze 'fc1', now it is ''" "$helper" last "$cleave" train $arrays --device "$device" --resume run.ckpt

# what comes out evaluates, and runs
works "$cleave" eval --images x.npy --labels y5.npy --model mlp --classes 5 --weights plain.safetensors --device "$device" --json
awk "BEGIN { exit !($(at test_accuracy) > 0.6) }" || fail "accuracy $(at test_accuracy)"

# mistakes
# shellcheck disable=SC2086
tuned() { "$helper" last "$cleave" train $arrays --device "$device" "$@"; }
expect 1 "--except 'fc2.*'" tuned --weights w.safetensors
expect 1 "did you mean 'fc2'?" tuned --weights w.safetensors --except 'fcc2.*'
expect 1 "'fc2.bias' is [10] and must be [5]" tuned --weights w.safetensors --except 'fc2.weight'
expect 1 "nothing is left to read" tuned --weights w.safetensors --except '*'
expect 2 "--except needs --weights" tuned --except 'fc2.*'
expect 2 "freeze: no parameter matches 'cf1'; did you mean 'fc1'?" tuned --freeze 'fc2,cf1'
expect 2 "nothing is left to train" tuned --freeze '*'
expect 2 "--freeze is about what is trained" "$cleave" plan mlp --freeze fc1 --device "$device"
expect 2 "did you mean 'fc1'?" "$cleave" plan mlp --train --freeze fc --device "$device"

if [ "$device" != host ]; then # targets of layers on two devices
    mixed="--images x.npy --labels y5.npy --model mlp --classes 5 --batch 20 --epochs 2 --lr 0.05 --optimizer momentum --mixup 0.4 --label-smoothing 0.1 --quiet"
    # shellcheck disable=SC2086
    works "$cleave" train $mixed --device "$device" --save whole.safetensors
    # shellcheck disable=SC2086
    works "$cleave" train $mixed --place 'fc1=cpu:0,fc2=cpu:1' --save placed.safetensors --json
    memory 2
    cmp -s whole.safetensors placed.safetensors || fail "mixed and placed: other bits"
fi
expect 2 "--mixup is about what is trained" "$cleave" plan mlp --mixup 0.2 --device "$device"
expect 2 "--label-smoothing is about what is trained" "$cleave" plan mlp --label-smoothing 0.1 --device "$device"
# shellcheck disable=SC2086
works "$helper" last "$cleave" train $arrays --device "$device" --quiet --mixup 0.4 --label-smoothing 0.1 --epochs 1 --json
peak=$(at memory.0.peak_bytes)
works "$cleave" plan mlp --classes 5 --batch 20 --train --optimizer momentum --mixup 0.4 --label-smoothing 0.1 --device "$device" --json
same "planned with mixup" "$(at devices.0.predicted_peak_bytes)" "$peak"

# parameter groups: predicted, resumed, refused
works "$cleave" plan mlp --classes 5 --batch 20 --train --param-group 'fc1:frozen' --device "$device" --json
expect 2 "no parameter matches 'cf1'; did you mean 'fc1'?" tuned --param-group 'cf1:lr=0.1'
expect 2 "'rate=1' is none of lr=X, weight_decay=X and frozen" tuned --param-group 'fc1:rate=1'
expect 2 "lr wants a number above 0" tuned --param-group 'fc1:lr=0'
expect 2 "--param-group wants names and settings" tuned --param-group 'fc1'
expect 2 "--weight-decay-skip is a group as well" tuned --weight-decay-skip vectors --param-group 'fc2:lr=2'
expect 2 "--weight-decay-skip is about what is trained" "$cleave" plan mlp --weight-decay-skip vectors --device "$device"
# shellcheck disable=SC2086
works "$helper" last "$cleave" train $arrays --device "$device" --quiet --optimizer adamw --weight-decay-skip vectors --epochs 1 --checkpoint groups.ckpt
# shellcheck disable=SC2086
expect 1 "was written with groups (--param-group, --weight-decay-skip) '*: max_rank 1 weight_decay none', now it is ''" "$helper" last "$cleave" train $arrays \
    --device "$device" --optimizer adamw --resume groups.ckpt --epochs 2
finish
