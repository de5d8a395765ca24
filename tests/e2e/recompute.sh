#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Activations that are dropped and computed again: the same gradients, within the budget, to the byte; the largest batch that
# plan promises runs, and one more is refused.
. "$(dirname "$0")/common.sh"
"$helper" images 24 x.npy 3 24 24 && "$helper" labels 24 y.npy || fail "no data"
size="--classes 10 --device $device --json"
train() { "$helper" last "$cleave" train --images x.npy --labels y.npy --model resnet18 --batch 12 --steps 2 $size "$@"; }
plan() { "$cleave" plan resnet18 --samples numbers --train --input-size 3x24x24 $size "$@"; }

# half of the activations, and workspace, io and staging beside the other half
works train --dump-gradients plain.safetensors --save plain-weights.safetensors
same "recomputed without being asked" "$(at recomputed.nodes)" 0
whole=$(at memory.0.peak_bytes)
activations=$(at memory.0.categories.activations)
budget=$((whole - activations / 3))
works train --dump-gradients tight.safetensors --save tight-weights.safetensors --recompute auto --budget "$device=$budget"
[ "$(at memory.0.peak_bytes)" -le "$budget" ] || fail "$(at memory.0.peak_bytes) bytes are above the budget of $budget"
same "prediction" "$(at memory.0.predicted_peak_bytes)" "$(at memory.0.peak_bytes)"
[ "$(at recomputed.nodes)" -gt 0 ] || fail "nothing was recomputed"
saved=$(at recomputed.saved_bytes)
[ "$saved" -ge $((activations / 4)) ] || fail "auto is told to save $saved bytes of $activations"
at recomputed.saved_bytes recomputed.extra_time recomputed.layers.0.layer recomputed.layers.0.op recomputed.layers.0.times >/dev/null
cmp plain.safetensors tight.safetensors || fail "recomputing gave other gradients"
cmp plain-weights.safetensors tight-weights.safetensors || fail "recomputing gave other weights"
works train --dump-gradients block.safetensors --recompute 'layer?.?.*' --save block-weights.safetensors
cmp plain.safetensors block.safetensors || fail "recomputing blocks gave other gradients"
cmp plain-weights.safetensors block-weights.safetensors || fail "recomputing blocks gave other weights"
[ "$(at memory.0.peak_bytes)" -lt "$whole" ] || fail "recomputing blocks saved nothing"

# the largest batch is what plan says it is
works plan --batch 12
budget=$(at devices.0.predicted_peak_bytes)
works plan --batch 12 --recompute auto --budget "$device=$budget"
largest=$(at largest_batch)
[ "$largest" -gt 12 ] || fail "recomputing does not make room for a larger batch than $largest"
batch() {
    "$helper" images "$1" large.npy 3 24 24 && "$helper" labels "$1" large-y.npy || fail "no data"
    "$cleave" train --images large.npy --labels large-y.npy --model resnet18 --batch "$1" --steps 1 $size \
        --recompute auto --budget "$device=$budget"
}
works batch "$largest"
same "prediction of the largest batch" "$(at memory.0.predicted_peak_bytes)" "$(at memory.0.peak_bytes)"
[ "$(at memory.0.peak_bytes)" -le "$budget" ] || fail "batch $largest takes $(at memory.0.peak_bytes) bytes of $budget"
expect 1 "of a budget of" batch $((largest + 1))

# what is advised where nothing fits: each of it does
export CLEAVE_PARTITION=cpu:0=2
works plan --batch 11 # not much less: with these small images other variants, with more workspace, do batches below it
tight="--budget $device=$(at devices.0.predicted_peak_bytes)"
works plan --batch 12 $tight
fewer=$(at advice.largest_batch)
place=$(at advice.place)
{ [ "$fewer" -gt 0 ] && [ "$fewer" -lt 12 ]; } || fail "a largest batch of $fewer"
same "largest batch" "$(at largest_batch)" "$fewer"
same "with recomputation" "$(at advice.largest_recomputed)" 12
text=$(at advice.text)
same "advice" "$text" "planned and found to fit: --batch $fewer, or --recompute auto, or --device cpu:1, or --place '$place'"
expect 1 "$text" train $tight
works train $tight --steps 1 --batch "$fewer"
works train $tight --steps 1 --recompute auto
works "$cleave" train --images x.npy --labels y.npy --model resnet18 --batch 12 --steps 1 --classes 10 $tight --place "$place"
expect 1 "budget of" train $tight --batch $((fewer + 1))
expect 1 "its parameters alone take 42.7 MiB (44764968 bytes), so no batch fits a budget of 30000000 bytes; planned and found to fit: --device cpu:1, or --place '" \
    train --budget "$device=30000000"
expect 1 "its parameters, gradients and optimizer state alone take " train --budget "$device=100000000"
# three devices where no two have room for all of it
export POCL_DEVICES="pthread basic" CLEAVE_PARTITION=cpu:1=2 # this driver lists the other one first
thirds='conv1=cpu:0,bn1=cpu:0,layer1.*=cpu:0,layer2.*=cpu:1,layer3.*=cpu:1,layer4.*=cpu:2,fc=cpu:2'
if "$cleave" devices --json 2>/dev/null | grep -q '"cpu:2"'; then
    works "$cleave" plan resnet18 --samples numbers --train --input-size 3x24x24 --classes 10 --batch 12 --place "$thirds" --json
    tight=
    for i in 0 1 2; do
        tight="$tight --budget $(at devices.$i.device)=$(($(at devices.$i.predicted_peak_bytes) + 100000))"
    done
    works plan --batch 12 $tight
    place=$(at advice.place)
    works "$cleave" plan resnet18 --samples numbers --train --input-size 3x24x24 --classes 10 --batch 12 --place "$place" $tight --json
    same "a placement over three devices fits, '$place'" "$(at fits)" true
    at devices.2.device >/dev/null
fi
unset CLEAVE_PARTITION POCL_DEVICES

expect 1 "recompute: no layer matches 'layer9.*'" plan --recompute 'layer9.*'
expect 1 "recompute: no layer matches 'nothing'" train --recompute 'layer1.*,nothing'
expect 1 "recompute: ',' names no layer" plan --recompute ','
expect 1 "recompute: auto cannot be combined with names of layers, as in 'fc, auto'" plan --recompute 'fc, auto'
expect 2 "--recompute is about the backward pass: it needs --train" "$cleave" plan resnet18 --samples numbers --device "$device" --recompute auto
works "$cleave" plan resnet18 --samples numbers --train --input-size 3x24x24 --device "$device" --recompute 'conv1,bn1'
grep -qF 'recomputed: nothing, all that these modules make is read outside of them' out || fail "no word that nothing is recomputed"
works "$cleave" plan resnet18 --samples numbers --train --input-size 3x24x24 --device "$device" --recompute 'layer1.*'
grep -q '^recomputed: .* results, which saves .* and takes about .* % more time:' out || fail "plan does not tell what is recomputed"
finish
