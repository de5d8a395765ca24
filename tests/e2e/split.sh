#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A model with a weight that is larger than the device's largest allocation: PoCL is told to have 1 GiB of memory, of which it allocates
# a quarter at a time, and vgg16's first linear layer has 392 MiB. It is planned, trained, its weights are saved, and what is computed
# from them has the bits that it has without the limit.
. "$(dirname "$0")/common.sh"
limited() { env POCL_MEMORY_LIMIT=1 "$@"; }
works limited "$cleave" devices --json
[ "$(at devices.0.max_alloc_bytes)" -lt 400000000 ] || { echo "this PoCL knows no POCL_MEMORY_LIMIT"; exit 77; }
works limited "$cleave" plan vgg16 --samples numbers --batch 1 --train --optimizer sgd --device "$device"
grep -q '^larger than the largest allocation: 4 nodes of the graph are done in 8 parts; classifier.0.weight (392.0 MiB) in 2 pieces' out ||
    fail "no word on the parts: $(cat out)"
works limited "$cleave" plan vgg16 --samples numbers --batch 1 --train --optimizer sgd --device "$device" --json
same "a tensor in pieces" "$(at parts.tensors.0.name parts.tensors.0.bytes parts.tensors.0.pieces | tr '\n' ' ')" \
    "classifier.0.weight 411041792 2 "
same "that it fits" "$(at fits)" true
predicted=$(at devices.0.predicted_peak_bytes)
"$helper" images 1 x.npy 3 224 224 && "$helper" labels 1 y.npy || fail "no data"
works limited "$cleave" train --model vgg16 --classes 1000 --images x.npy --labels y.npy --batch 1 --steps 1 --optimizer sgd \
    --lr 0.001 --device "$device" --save weights --json
same "the peak" "$(at memory.0.peak_bytes)" "$predicted"
run() { "$cleave" run --model vgg16 --classes 1000 --weights weights --input x.npy --device "$device" --output "$1"; }
POCL_MEMORY_LIMIT=1 works run small.npy
works run whole.npy
cmp -s small.npy whole.npy || fail "other bits in parts"
finish
