#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The dry run: JSON as it is promised, the largest batch at the edge of a budget, and what it predicts is what happens.
. "$(dirname "$0")/common.sh"
works "$cleave" plan cnn --batch 64 --train --device "$device" --json
same "what normalises bytes" "$(at layers.0.op)" lookup
same "conv1" "$(at layers.1.name layers.1.op layers.1.parameters | tr '\n' ' ')" "conv1 conv2d 320 "
at layers.0.device layers.0.output_shape layers.0.bytes layers.0.flops devices.0.device \
    devices.0.categories.activations transfers largest_batch >/dev/null
same "output of conv1" "$(at layers.1.output_shape.0 layers.1.output_shape.1 layers.1.output_shape.2 | tr '\n' ' ')" "64 32 26 "
same "parameters" "$(at devices.0.categories.parameters)" $((1199882 * 4))

# the tree: the model, and modules with the sums of what is in them
same "the model" "$(at modules.0.name modules.0.depth modules.0.parameters modules.0.frozen | tr '\n' ' ')" " 0 1199882 0 "
same "its bytes" "$(at modules.0.bytes.parameters)" "$(at devices.0.categories.parameters)"
same "its state" "$(at modules.0.bytes.optimizer)" "$(at devices.0.categories.optimizer)"
same "a layer" "$(at modules.2.name modules.2.depth modules.2.layers modules.2.parameters modules.2.bytes.parameters | tr '\n' ' ')" \
    "conv1 1 1 320 1280 "

# numbers take four times as much to be fed, and more in all
io=$(at devices.0.categories.io) peak=$(at devices.0.predicted_peak_bytes)
works "$cleave" plan cnn --batch 64 --train --device "$device" --samples numbers --json
same "conv1 of numbers" "$(at layers.0.name)" conv1
same "what two slots of bytes save" $(($(at devices.0.categories.io) - io)) $((2 * 64 * 784 * 3))
[ "$(at devices.0.predicted_peak_bytes)" -gt "$peak" ] || fail "bytes save nothing"

# a file of weights: the command that plans its model; what is too large is told without quotes that are no name's
"$helper" images 4 x.npy && "$helper" labels 4 y.npy || fail "no data"
works "$cleave" train --images x.npy --labels y.npy --model mlp --classes 12 --steps 1 --device host --save w.safetensors --quiet
expect 2 "'w.safetensors' is a file, and a model's name is wanted: \`cleave plan mlp --classes 12 --input-size 1x28x28\` plans what it holds weights of" "$cleave" plan w.safetensors
works "$cleave" plan mlp --classes 12 --input-size 1x28x28 --device "$device"
works "$cleave" plan cnn --train --batch 8 --device host --budget host=20MiB
grep -q '^this one does not fit: the plan wants ' out || fail "a plan that does not fit: $(tail -n 1 out)"

works "$cleave" plan cnn --batch 64 --train --device "$device" --json
# what is done together is told, and can be done apart (the host device does all apart)
train=$(at devices.0.predicted_peak_bytes)
together=$(at launches)
[ "$device" = host ] || at fused.0.op fused.0.also fused.0.nodes fused.0.phase >/dev/null
works "$cleave" plan cnn --batch 64 --train --device "$device" --fuse off --json
[ "$device" = host ] || [ "$(at launches)" -gt "$together" ] || fail "$together launches, and $(at launches) with --fuse off"
# the largest parameter's gradient makes room for no other where updates come last
[ "$(at devices.0.predicted_peak_bytes)" -ge "$train" ] || fail "--fuse off needs less than $train"
grep -q '"fused": *\[\]' out || fail "--fuse off fuses"
works "$cleave" plan cnn --batch 64 --device "$device" --json
infer=$(at devices.0.predicted_peak_bytes)
[ "$infer" -lt "$train" ] || fail "inference ($infer) does not need less than training ($train)"
same "gradients of inference" "$(at devices.0.categories.gradients)" 0

works "$cleave" plan mlp --batch 64 --train --device "$device" --budget "$device=8MiB" --json
largest=$(at largest_batch)
[ "$largest" -gt 64 ] || fail "largest batch $largest"
works "$cleave" plan mlp --batch "$largest" --train --device "$device" --json
[ "$(at devices.0.predicted_peak_bytes)" -le 8388608 ] || fail "batch $largest does not fit"
works "$cleave" plan mlp --batch $((largest + 1)) --train --device "$device" --json
[ "$(at devices.0.predicted_peak_bytes)" -gt 8388608 ] || fail "batch $largest is not the largest"

# the prediction for another batch size comes true
"$helper" images 40 x.npy && "$helper" labels 40 y.npy || fail "no data"
works "$cleave" plan mlp --samples numbers --batch 20 --train --device "$device" --optimizer momentum --json
predicted=$(at devices.0.predicted_peak_bytes)
works "$cleave" train --images x.npy --labels y.npy --model mlp --batch 20 --steps 2 --device "$device" --optimizer momentum --json
same "peak" "$(at memory.0.peak_bytes)" "$predicted"
# other images, other classes: the array says how large, --classes how many
"$helper" images 40 small.npy 3 12 14 || fail "no data"
works "$cleave" plan cnn --samples numbers --batch 20 --train --device "$device" --input-size 3x12x14 --classes 13 --json
predicted=$(at devices.0.predicted_peak_bytes)
same "output of conv1" "$(at layers.0.output_shape.1 layers.0.output_shape.2 layers.0.output_shape.3 | tr '\n' ' ')" "32 10 12 "
works "$cleave" train --images small.npy --labels y.npy --model cnn --classes 13 --batch 20 --steps 2 --device "$device" \
    --save small.safetensors --json
same "peak of other images" "$(at memory.0.peak_bytes)" "$predicted"
works "$cleave" run --model cnn --classes 13 --weights small.safetensors --input small.npy --output o.npy --device "$device" --json
same "shape of run" "$(at shape.0 shape.1 | tr '\n' ' ')" "40 13 "
works "$cleave" eval --images small.npy --labels y.npy --model cnn --classes 13 --weights small.safetensors --device "$device"
works "$cleave" run --weights small.safetensors --input small.npy --output o.npy --device "$device" --json # the weights tell it
same "shape of run" "$(at shape.0 shape.1 | tr '\n' ' ')" "40 13 "
expect 2 "--classes is 10, and 'small.safetensors' has 13 classes: leave --classes out" "$cleave" run --classes 10 \
    --weights small.safetensors --input small.npy --output o.npy --device "$device"
for size in 3x12 0x12x14 3x12x14x2 3,12,14 3x-1x4; do
    expect 2 "--input-size wants" "$cleave" plan cnn --input-size $size --device "$device"
done
works "$cleave" plan resnet18 --batch 8 --train --device "$device" --input-size 3x64x64 --classes 10 --json
same "parameters of resnet18" "$(at devices.0.categories.parameters)" $(((11181642 + 2 * 4800) * 4))
mkdir idx && "$helper" idx idx 60 || fail "no data"
for model in linear mlp cnn; do # evaluation and a smaller last batch need no more
    works "$cleave" plan $model --batch 25 --train --device "$device" --json
    predicted=$(at devices.0.predicted_peak_bytes)
    works "$cleave" train fashion-mnist --data idx --model $model --batch 25 --epochs 1 --device "$device" --json
    same "peak of $model" "$(at memory.0.peak_bytes)" "$predicted"
done
works "$cleave" plan linear --device "$device"
works "$cleave" plan resnet18 --batch 2 --device host --depth 1
grep -q '^layer1  *10 layers  *147,968  *1.3 %' out || fail "no sum of a module: $(cat out)"
grep -q '^total  *54 layers  *11,689,512  *100.0 %.* 100.0 %.* 7.28 GFLOP  *100.0 %$' out || fail "no total: $(cat out)"
grep -q '^  [^ ]' out && fail "--depth 1 shows what is in modules: $(cat out)"
grep -q '^parameters: 11,689,512, of which 11,689,512 trainable and 0 frozen; 9,600 in buffers$' out || fail "parameters: $(cat out)"
grep -q '^work: 7.28 GFLOP a forward pass$' out || fail "no work: $(cat out)"
grep -q '^peak  *host .* 100.0 %  *[0-9]*$' out || fail "no memory by category with shares: $(cat out)"
works "$cleave" plan resnet18 --batch 2 --device host --depth 2
grep -q '^  0  *5 layers  *73,984 ' out && ! grep -q '^    [^ ]' out || fail "--depth 2: $(cat out)"
works "$cleave" plan resnet18 --batch 2 --device host
grep -q '^      0  *conv2d' out || fail "no leaf of three levels: $(cat out)"
works "$cleave" plan resnet18 --batch 2 --device host --depth 1 --json
same "modules" "$(at modules)" "array of 13"
same "a module" "$(at modules.6.name modules.6.layers modules.6.parameters modules.6.buffers | tr '\n' ' ')" "layer1 10 147968 512 "
expect 2 "--depth wants a whole number" "$cleave" plan linear --depth 0
works "$cleave" devices --json
at devices.0.name devices.0.index devices.0.platform devices.0.device devices.0.type devices.0.vendor devices.0.driver \
    devices.0.usable devices.0.reason devices.0.memory_bytes devices.0.max_alloc_bytes devices.0.local_bytes \
    devices.0.max_work_group devices.0.fp16 devices.0.fp64 >/dev/null

# cards that are not here: by name, with the time that a step takes at least; choices of gradients and updates have work and bytes
works "$cleave" plan resnet18 --batch 8 --train --device null:rx-580 --json
same "device of a card" "$(at devices.0.device)" null:rx-580
fast=$(at devices.0.least_ms)
works "$cleave" plan resnet18 --batch 8 --train --device null:uhd-620 --json
awk "BEGIN { exit !($fast > 0 && $(at devices.0.least_ms) > 5 * $fast) }" || fail "a slow card takes no longer: $fast, $(at devices.0.least_ms)"
at choices.0.flops choices.0.bytes choices.0.launches choices.100.flops choices.100.phase >/dev/null
works "$cleave" plan vgg16 --batch 4 --train --device null:gc7000l --json
same "vgg16 in 256 MiB" "$(at fits)" false
same "what the milliseconds are of" "$(at devices.0.least_of)" bytes
works "$cleave" plan resnet18 --batch 1024 --train --device null:rx-580
grep -q 'on a device with more memory; planned and found to fit: --batch 368, or --batch 822 --recompute auto$' out || fail "other advice: $(tail -n 1 out)"
works "$cleave" devices --cards
grep -q '^null:rtx-3060  *NVIDIA GeForce RTX 3060  *12.0 GiB ' out || fail "cards are not listed: $(cat out)"
works "$cleave" devices --cards --json
same "cards, of which null:0 is none" "$(at devices.0.name)" null:h200
works "$cleave" plan mlp --device null:rx-580 --profile
grep -q "^at the makers' peaks, with no gaps, .* would take 0.0[0-9]* ms" out && grep -q '^null:rx-580: at most 6170.0 GFLOP/s, 256.0 GB/s$' out ||
    fail "no times by the maker's peaks: $(cat out)"
works "$cleave" plan mlp --device null:0 --profile
[ "$(tail -n 1 out)" = "null:0: its peaks are not known, so it counts as taking no time" ] || fail "times of a device without figures: $(cat out)"
expect 2 "devices that are not here are for \`cleave plan\` alone" "$cleave" check --op relu --device null:rx-580
expect 2 "cards that are not in this machine, such as null:rx-580; did you mean 'null:rtx-3060'?" "$cleave" plan mlp --device null:rtx-306O
expect 2 "there is no device 'null:rx-5800'" "$cleave" plan mlp --device null:rx-5800
# where no batch fits, a smaller one is no advice
works "$cleave" plan cnn --train --batch 8 --device host --budget host=20MiB
grep -qx "largest batch that fits: 0" out || fail "a batch fits 20 MiB: $(grep largest out)"
grep -q "this one does not fit: .* it would fit with a larger budget" out || fail "no remedy: $(tail -n 1 out)"
! grep -q "smaller batch" out || fail "a smaller batch is advised where none fits: $(tail -n 1 out)"
works "$cleave" plan cnn --train --batch 8 --device host --budget host=55MiB
grep -q "it would fit with a smaller batch, or" out || fail "a smaller batch that fits is not advised: $(tail -n 1 out)"
# over ranks: a slow link makes a step slower than one rank's, and what would help is told
works "$cleave" plan cnn --train --batch 64 --ranks 4 --link 1Gbit --device null:rx-580
grep -q "^more ranks make it slower; what makes them as fast as one: a link of [0-9]* Gbit, or a batch [0-9]* times as large" out || fail "no remedy: $(cat out)"
works "$cleave" plan cnn --train --batch 8192 --ranks 64 --link 100Gbit --device null:rx-580
! grep -q "slower" out || fail "64 ranks by a fast link: $(cat out)"
works "$cleave" models --json --batch 2
same "models" "$(at models.0.name) $(at models.0.parameters)" "linear 7850"
works "$cleave" models
grep -q '^vit_b_16 *3x224x224 *86.57 M' out || fail "models: $(cat out)"
finish
