#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A training as a person does it: JSON as it is promised, the log, weights that evaluate and run to the same logits,
# memory as predicted, the same bits twice.
. "$(dirname "$0")/common.sh"
mkdir idx && "$helper" idx idx 200 && "$helper" images 200 x.npy && "$helper" labels 200 y.npy || fail "no data"

works "$cleave" train fashion-mnist --data idx --model mlp --device "$device" --epochs 2 --batch 32 --save w.safetensors \
    --log log.jsonl --json
same "steps" "$(at steps)" 14
at train_loss images_per_second step_ms startup.seconds startup.start_seconds startup.program_seconds startup.rest_seconds startup.programs startup.cache_hits \
    startup.cache_misses memory.0.device memory.0.budget_bytes memory.0.categories.staging >/dev/null
same "prediction" "$(at memory.0.predicted_peak_bytes)" "$(at memory.0.peak_bytes)"
same "parameters" "$(at memory.0.categories.parameters)" 407080
[ "$(at memory.0.categories.gradients)" -ge 407080 ] || fail "gradients: $(at memory.0.categories.gradients)"
same "optimizer" "$(at memory.0.categories.optimizer)" 814160
accuracy=$(at test_accuracy)
awk "BEGIN { exit !($accuracy > 0.5) }" || fail "accuracy $accuracy: nothing was learned"
same "log lines" "$(grep -c '"step":' log.jsonl)" 14
same "log steps" "$("$helper" lines step <log.jsonl | tr '\n' ' ')" "1 2 3 4 5 6 7 8 9 10 11 12 13 14 "
same "log epochs" "$("$helper" lines epoch <log.jsonl | tr '\n' ' ')" "1 1 1 1 1 1 1 2 2 2 2 2 2 2 "
for key in loss lr images_per_second; do "$helper" lines "$key" <log.jsonl >/dev/null || fail "the log has no $key"; done
name=$(at device)
"$helper" lines "devices.$name.peak_bytes" <log.jsonl >/dev/null || fail "the log has no memory of $name"
same "weights" "$("$helper" shapes w.safetensors | sort | tr '\n' ' ')" \
    "fc1.bias [128] fc1.weight [128,784] fc2.bias [10] fc2.weight [10,128] "

works "$cleave" eval fashion-mnist --data idx --model mlp --weights w.safetensors --device "$device" --json
same "accuracy of eval" "$(at test_accuracy)" "$accuracy"
same "prediction of eval" "$(at memory.0.predicted_peak_bytes)" "$(at memory.0.peak_bytes)"
works "$cleave" eval fashion-mnist --data idx --model mlp --weights w.safetensors --device "$device" --batch 7 --limit 50
works "$cleave" run --model mlp --weights w.safetensors --input x.npy --output a.npy --device "$device" --json
same "shape of run" "$(at shape.0 shape.1 | tr '\n' ' ')" "200 10 "
works "$cleave" run --model mlp --weights w.safetensors --input x.npy --output b.npy --device "$device" --batch 13
"$helper" near a.npy b.npy 1e-4 >/dev/null || fail "logits depend on the batch size"

# mixed precision: half the activations, nearly the same training, and the same bits again; of numbers, as of bytes the
# pictures themselves, in f32, are an activation more
works "$cleave" train --images x.npy --labels y.npy --model mlp --device "$device" --epochs 2 --batch 32 --json
same "loss scale of f32" "$(at loss_scale)" null
whole=$(at memory.0.categories.activations)
loss=$(at train_loss)
for precision in mixed mixed-bf16; do
    for file in half.safetensors again.safetensors; do
        works "$cleave" train --images x.npy --labels y.npy --model mlp --device "$device" --epochs 2 --batch 32 \
            --precision $precision --save $file --json
    done
    cmp -s half.safetensors again.safetensors || fail "$precision: the same training twice gave other bits"
    same "prediction of $precision" "$(at memory.0.predicted_peak_bytes)" "$(at memory.0.peak_bytes)"
    awk "BEGIN { exit !($(at memory.0.categories.activations) < 0.8 * $whole) }" || fail "$precision saved nothing"
    awk "BEGIN { d = $(at train_loss) - $loss; exit !(d < 0.05 && d > -0.05) }" || fail "$precision: loss $(at train_loss), $loss in f32"
    [ $precision != mixed ] || same "loss scale" "$(at loss_scale skipped_steps | tr '\n' ' ')" "65536 0 "
done
works "$cleave" eval fashion-mnist --data idx --model mlp --weights half.safetensors --precision mixed --device "$device" --json

# evaluation goes in batches, not sample by sample, in about the memory that training has (the host has no workspaces)
if [ "$device" != host ]; then
    works "$cleave" train fashion-mnist --data idx --model cnn --device "$device" --batch 64 --steps 1 --trace t.json --json
    same "prediction with evaluation" "$(at memory.0.predicted_peak_bytes)" "$(at memory.0.peak_bytes)"
    "$helper" trace t.json >events || fail "the trace: $(cat events)"
    steps=$(grep -c '^host program|host||hand over a step' events)
    [ "$steps" -le 6 ] || fail "a step and an evaluation of 200 samples take $steps steps"
fi

# twice the same bits; another seed, other bits
works "$cleave" train fashion-mnist --data idx --model mlp --device "$device" --epochs 2 --batch 32 --save again.safetensors --quiet
cmp -s w.safetensors again.safetensors || fail "the same training twice gave other bits"
works "$cleave" train fashion-mnist --data idx --model mlp --device "$device" --epochs 2 --batch 32 --seed 2 --save other.safetensors --quiet
cmp -s w.safetensors other.safetensors && fail "another seed gave the same bits"

# arrays: one step, its gradients, weights to begin with, every optimizer and schedule
works "$cleave" train --images x.npy --labels y.npy --model cnn --device "$device" --batch 4 --steps 1 --no-shuffle \
    --dump-gradients g.safetensors --save one.safetensors --json
same "test accuracy without a test set" "$(at test_accuracy)" null
same "speed where nothing was timed" "$(at images_per_second) $(at step_ms)" "null null"
# The first step of each size of batch compiles kernels: 4 samples and 3 leave nothing to be timed, whatever is compiled when.
"$helper" images 7 seven.npy && "$helper" labels 7 seven-labels.npy || fail "no seven samples"
works "$cleave" train --images seven.npy --labels seven-labels.npy --model mlp --device "$device" --batch 4 --epochs 1 --log seven.jsonl --json
same "speed of a first whole and a first short batch" "$(at images_per_second) $(at step_ms)" "null null"
same "speed in the log before a step is timed" "$(grep '"step":1,' seven.jsonl | "$helper" json images_per_second)" null
works "$cleave" train --images seven.npy --labels seven-labels.npy --model mlp --device "$device" --batch 4 --epochs 2 --json
[ "$(at step_ms)" != null ] || fail "the second steps of both sizes are timed"
works "$cleave" train --images x.npy --labels y.npy --model cnn --device "$device" --batch 4 --steps 1 --no-shuffle --dump-gradients g.safetensors --json
same "prediction with gradients" "$(at memory.0.predicted_peak_bytes)" "$(at memory.0.peak_bytes)"
same "gradients" "$("$helper" shapes g.safetensors | sort)" "$("$helper" shapes one.safetensors | sort)"
same "names" "$("$helper" shapes one.safetensors | sort | tr '\n' ' ')" "conv1.bias [32] conv1.weight [32,1,3,3] conv2.bias [64] \
conv2.weight [64,32,3,3] fc1.bias [128] fc1.weight [128,9216] fc2.bias [10] fc2.weight [10,128] "
for optimizer in sgd momentum adam adamw; do
    works "$cleave" train --images x.npy --labels y.npy --model linear --device "$device" --batch 50 --steps 3 --json \
        --optimizer $optimizer --schedule cosine --weight-decay 0.01 --clip-norm 1
    same "prediction with $optimizer" "$(at memory.0.predicted_peak_bytes)" "$(at memory.0.peak_bytes)"
done
works "$cleave" train --images x.npy --labels y.npy --model mlp --device "$device" --weights w.safetensors --steps 1 --quiet

# a budget: what fits fits, what does not is refused before anything is taken
works "$cleave" train fashion-mnist --data idx --model mlp --device "$device" --batch 32 --epochs 1 --budget "$device=64MiB" --json
same "budget" "$(at memory.0.budget_bytes)" 67108864
expect 1 "budget" "$cleave" train fashion-mnist --data idx --model mlp --device "$device" --batch 32 --budget "$device=1MiB"

# a pipe gets lines, not a progress bar; --quiet gets nothing, nor from the driver's compiler
env CLEAVE_CACHE_DIR="$PWD/cold" POCL_CACHE_DIR="$PWD/cold" "$cleave" train fashion-mnist --data idx --model linear --device "$device" --epochs 2 --quiet >out 2>err
grep -v 'slow' err | grep -q . && fail "--quiet is not quiet: $(cat err)"
"$cleave" train fashion-mnist --data idx --model linear --device "$device" --epochs 2 >out 2>err
same "lines" "$(grep -c '^epoch' err)" 2
grep -q "$(printf '\033')" err && fail "escape sequences in a pipe"
# CLEAVE_DEBUG tells, quiet or not: 1 devices, 2 launches, 3 the plan
for level in 0 1 2 3; do
    env CLEAVE_DEBUG=$level "$cleave" train fashion-mnist --data idx --model linear --device "$device" --quiet >out 2>err ||
        fail "CLEAVE_DEBUG=$level: $(cat err)"
    told=$(grep -q "device $device opened" err && printf devices)$(grep -q "launch: .* of 'fc" err && printf ' launches')
    told=$told$(grep -q "plan: after select" err && printf ' plan')
    same "CLEAVE_DEBUG=$level" "$told" "$(echo "|devices|devices launches|devices launches plan" | cut -d'|' -f$((level + 1)))"
done
finish
