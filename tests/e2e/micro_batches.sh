#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A batch in parts, on one device and as a pipeline over two: the gradients of the whole batch, the last and smaller batch of an
# epoch too; memory as predicted on each device, and less of it; a resume; mistakes are refused.
. "$(dirname "$0")/common.sh"
need cpu:0
"$helper" images 50 x.npy && "$helper" labels 50 y.npy || fail "no data"
export CLEAVE_PARTITION=cpu:0=2
train_by() { "$cleave" train --images x.npy --labels y.npy --model cnn --seed 3 --json --optimizer "$@"; }
train() { train_by adam "$@"; }

check_memory() {
    for i in $1; do
        same "prediction on $(at memory.$i.device)" "$(at memory.$i.predicted_peak_bytes)" "$(at memory.$i.peak_bytes)"
    done
}

# one step: gradients, dropout's masks among what makes them
works train --device cpu:0 --batch 10 --steps 1 --dump-gradients whole.safetensors
same "activity that nothing was timed of" "$(at activity.0.busy)" null
same "activity alone" "$(at activity.0.predicted_busy)" 1
works train --device cpu:0 --batch 10 --steps 1 --dump-gradients parts.safetensors --micro-batches 4
check_memory 0
"$helper" close whole.safetensors parts.safetensors 1e-6 >/dev/null || fail "gradients of four parts are others"
works train --place 'conv*=cpu:0,fc*=cpu:1' --batch 10 --steps 1 --dump-gradients pipeline.safetensors --micro-batches 4
check_memory "0 1"
cmp -s parts.safetensors pipeline.safetensors || fail "a pipeline gave other bits"

# replicas that cut their shares: the same gradients, each holds the activations of one part, and hands on one gradient
works train --replicas cpu:0,cpu:1 --shares 0.6,0.4 --batch 10 --steps 1 --dump-gradients both.safetensors --micro-batches 2
check_memory "0 1"
"$helper" close whole.safetensors both.safetensors 1e-6 >/dev/null || fail "replicas with micro-batches have other gradients"
works train --replicas cpu:0,cpu:1,host --batch 20 --epochs 1 --micro-batches 3 --shares equal # the last batch is smaller
check_memory "0 1 2"
replicas() { "$cleave" plan cnn --train --replicas cpu:0,cpu:1 --batch 64 --json "$@"; }
works replicas
before="$(at devices.0.predicted_peak_bytes) $(at devices.1.predicted_peak_bytes)"
works replicas --micro-batches 4
after="$(at devices.0.predicted_peak_bytes) $(at devices.1.predicted_peak_bytes)"
echo "$before $after" | awk '{ exit !($3 < 0.9 * $1 && $4 < 0.8 * $2) }' || fail "shares in parts need as much as whole: $before, $after"

# two epochs of two batches of 20 and one of 10, which is cut in two
works train --device cpu:0 --batch 20 --epochs 2
whole=$(at memory.0.categories.activations)
works train --device cpu:0 --batch 20 --epochs 2 --save parts.safetensors --micro-batches 4
check_memory 0
predicted=$(at memory.0.predicted_peak_bytes)
for parts in 1 4; do # by SGD: Adam makes whole steps of what is left of roundings where a gradient is nothing else
    works train_by sgd --device cpu:0 --batch 20 --epochs 2 --save $parts.safetensors --micro-batches $parts
done
"$helper" close 1.safetensors 4.safetensors 1e-6 >/dev/null || fail "four parts trained other weights"
[ "$(at memory.0.categories.activations)" -lt "$whole" ] || fail "parts need as much for activations as the whole"
works train --place 'conv*=cpu:0,fc*=cpu:1' --batch 20 --epochs 2 --save pipeline.safetensors --micro-batches 4
check_memory "0 1"
cmp -s parts.safetensors pipeline.safetensors || fail "a pipeline trained other bits"
for key in activity.0.busy activity.1.busy activity.0.predicted_busy activity.1.predicted_busy; do
    awk "BEGIN { exit !($(at $key) > 0 && $(at $key) <= 1) }" || fail "$key is $(at $key)"
done
works train --place 'conv1=cpu:0,conv2=cpu:1,fc*=host' --batch 20 --steps 1 --save three.safetensors --micro-batches 4
check_memory "0 1 2"

# evaluation needs a few bytes more for logits on the second device: not a reason to go sample by sample
mkdir idx && "$helper" idx idx 100 || fail "no data"
works "$cleave" train fashion-mnist --data idx --model cnn --place 'conv*=cpu:0,fc*=cpu:1' --batch 50 --micro-batches 4 --steps 1 \
    --trace t.json --json
check_memory "0 1"
"$helper" trace t.json >events || fail "the trace: $(cat events)"
steps=$(grep -c '^host program|host||hand over a step' events)
[ "$steps" -le 8 ] || fail "a step and an evaluation of 100 samples take $steps steps"

# interrupted and resumed, with as many parts
works train --place 'conv*=cpu:0,fc*=cpu:1' --batch 20 --epochs 1 --checkpoint c --micro-batches 4
works train --place 'conv*=cpu:0,fc*=cpu:1' --batch 20 --epochs 2 --resume c --save resumed.safetensors --micro-batches 4
cmp -s pipeline.safetensors resumed.safetensors || fail "a resume trained other bits"
expect 1 "was written with --micro-batches 4, now it is 1; go on with the settings it was written with" \
    train --device cpu:0 --batch 20 --epochs 2 --resume c

# the dry run says so before, in as many rows as without parts and three more (slices of images and labels; losses weighted and added, as one)
works "$cleave" plan cnn --samples numbers --train --device cpu:0 --batch 20 --optimizer adam --micro-batches 4 --json
same "plan in parts" "$(at devices.0.predicted_peak_bytes)" "$predicted"
same "row of conv1 in parts of 5" "$(at layers.3.name layers.3.output_shape.0 | tr '\n' ' ')" "conv1 5 "
"$cleave" plan cnn --samples numbers --train --device cpu:0 --batch 20 --micro-batches 4 >parts.txt && "$cleave" plan cnn --samples numbers --train --device cpu:0 \
    --batch 20 >whole.txt || fail "no plan"
same "rows" "$(grep -c '^work: .*FLOP a step' parts.txt) $(sed -n '/^layer/,/^total/p' parts.txt | wc -l)" \
    "1 $(($(sed -n '/^layer/,/^total/p' whole.txt | wc -l) + 3))"
works "$cleave" plan cnn --train --device cpu:0 --batch 64 --optimizer adam --micro-batches 4 --budget cpu:0=24MiB --json
same "largest batch in parts, and as advised" "$(at largest_batch)" "$(at advice.largest_batch)"
expect 2 "--micro-batches is for --train" "$cleave" plan cnn --micro-batches 4
expect 2 "--micro-batches 21 is more than the 20 images of a batch" "$cleave" plan cnn --train --batch 20 --micro-batches 21

expect 1 "f32 [512]; here the batch is cut, and a part has 1 row)" \
    "$cleave" plan resnet18 --train --input-size 3x24x24 --batch 2 --micro-batches 2 --device cpu:0
expect 2 "--micro-batches wants a whole number of at least 1, not '0'" train --micro-batches 0
expect 2 "--micro-batches 21 is more than the 20 images of a batch" train --batch 20 --micro-batches 21
expect 2 "--micro-batches 65 is more than the 64 images of a batch" train --micro-batches 65
finish
