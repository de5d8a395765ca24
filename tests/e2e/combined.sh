#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is tested alone elsewhere, by twos and threes: recomputation, micro-batches, replicas, layers on devices, mixed precision. What
# must not change gradients does not, memory is as predicted on every device, and a mixed training that is interrupted goes on
# with its scaler's state.
. "$(dirname "$0")/common.sh"
need cpu:0
export CLEAVE_PARTITION=cpu:0=2

# gradients FILE OPTION... : one step, its gradients to the file; memory as predicted wherever there is some.
gradients() {
    gradients_file=$1
    shift
    works "$cleave" train --images x.npy --labels y.npy --model $model --batch 8 --steps 1 --seed 3 --json \
        --dump-gradients "$gradients_file" "$@"
    gradients_n=$(at memory | tr -dc 0-9)
    for i in $(seq 0 $((${gradients_n:-0} - 1))); do
        same "prediction on $(at memory.$i.device) with $*" "$(at memory.$i.predicted_peak_bytes)" "$(at memory.$i.peak_bytes)"
    done
}
# close_to FILE FILE X WHAT : the largest difference is at most X.
close_to() { "$helper" close "$1" "$2" "$3" >far || fail "$4: gradients differ by $(cat far)"; }

# ---- recomputation with everything else: the same bits, by modules, and by itself within the budgets that these keep
model=resnet18
"$helper" images 8 x.npy 3 24 24 && "$helper" labels 8 y.npy || fail "no data"
held() { for i in $(seq 0 $((gradients_n - 1))); do echo "--budget $(at memory.$i.device)=$(at memory.$i.peak_bytes)"; done; }
recompute() {
    gradients plain.safetensors "$@"
    peak=$(at memory.0.peak_bytes)
    gradients again.safetensors --recompute 'layer?.?.*' "$@"
    cmp -s plain.safetensors again.safetensors || fail "modules recomputed with $*: other gradients"
    [ "$(at memory.0.peak_bytes)" -lt "$peak" ] || fail "modules recomputed with $*: $(at memory.0.peak_bytes) bytes instead of $peak"
    [ "$(at recomputed.saved_bytes)" -ge $((peak - $(at memory.0.peak_bytes))) ] || fail "$(at recomputed.saved_bytes) bytes saved with $*"
    budgets=$(held)
    # shellcheck disable=SC2086  # words on purpose
    gradients again.safetensors --recompute auto $budgets "$@"
    cmp -s plain.safetensors again.safetensors || fail "recomputed for $budgets with $*: other gradients"
    [ "$(at recomputed.nodes)" -gt 0 ] || fail "nothing was recomputed for $budgets with $*"
}
recompute --replicas cpu:0,cpu:1 --shares equal --precision mixed
recompute --micro-batches 2 --place 'conv1=cpu:0,bn1=cpu:0,layer1.*=cpu:0,layer2.*=cpu:0,layer3.*=cpu:1,layer4.*=cpu:1,fc=cpu:1'

# ---- mixed precision with everything else: rounding is each sample's own, so only sums of gradients may differ, and what a product of
# other rows sums in another order: that may round an activation to its neighbour (2^-11 of it, here up to 2e-6 of a gradient)
model=cnn
"$helper" images 8 x.npy || fail "no data"
gradients mixed.safetensors --device cpu:0 --precision mixed
gradients parts.safetensors --device cpu:0 --precision mixed --micro-batches 3
close_to mixed.safetensors parts.safetensors 1e-5 "mixed, in three parts"
gradients placed.safetensors --place 'conv*=cpu:0,fc*=cpu:1' --precision mixed
cmp -s mixed.safetensors placed.safetensors || fail "mixed, placed: other gradients"
gradients pipeline.safetensors --place 'conv*=cpu:0,fc*=cpu:1' --precision mixed --micro-batches 3
cmp -s parts.safetensors pipeline.safetensors || fail "mixed, a pipeline: other gradients"
gradients replicas.safetensors --replicas cpu:0,cpu:1 --shares 0.75,0.25 --precision mixed
close_to mixed.safetensors replicas.safetensors 1e-5 "mixed, on replicas"

# ---- drivers of two makers in one pipeline, if there are two
if RUSTICL_ENABLE=llvmpipe "$cleave" devices 2>/dev/null | grep -q llvmpipe; then
    export RUSTICL_ENABLE=llvmpipe
    unset CLEAVE_PARTITION
    gradients plain.safetensors --device cpu:0
    gradients unlike.safetensors --place 'conv*=pthread|basic,fc*=llvmpipe' --micro-batches 3
    same "devices" "$gradients_n" 2
    close_to plain.safetensors unlike.safetensors 1e-6 "a pipeline over two drivers"
    gradients mixed-unlike.safetensors --place 'conv*=pthread|basic,fc*=llvmpipe' --micro-batches 3 --precision mixed
    close_to mixed.safetensors mixed-unlike.safetensors 1e-3 "a mixed pipeline over two drivers"
    unset RUSTICL_ENABLE
    export CLEAVE_PARTITION=cpu:0=2
fi

# ---- a mixed training that is interrupted: batches of one sample and long steps overflow, so there is a state to keep
"$helper" images 40 x.npy && "$helper" labels 40 y.npy || fail "no data"
train() {
    works "$cleave" train --images x.npy --labels y.npy --model mlp --device cpu:0 --batch 1 --optimizer adam --lr 0.05 --precision mixed \
        --seed 3 --json "$@"
}
train --epochs 2 --save whole.safetensors
scale=$(at loss_scale)
skipped=$(at skipped_steps)
[ "$skipped" -gt 0 ] || fail "no step overflowed: there is nothing to keep"
for steps in 25 40; do
    train --steps $steps --checkpoint c
    [ "$(at skipped_steps)" -gt 0 ] || fail "no step of the first $steps overflowed"
    train --epochs 2 --resume c --save parts.safetensors
    cmp -s whole.safetensors parts.safetensors || fail "mixed, resumed after $steps steps: other bits"
    same "scale and skipped steps after a resume" "$(at loss_scale) $(at skipped_steps)" "$scale $skipped"
done
finish
