#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What does not fit: why, which layers, and remedies that work when they are pasted behind the command as it stands; what is to
# save memory and takes more says so; shares that nobody gave keep to budgets.
. "$(dirname "$0")/common.sh"
need cpu:0
export CLEAVE_PARTITION=cpu:0=2
"$helper" images 70 x.npy && "$helper" labels 70 y.npy || fail "no data"

# remedies TEXT : each on a line.
remedies() {
    printf '%s\n' "$1" | sed -n 's/.*planned and found to fit: //p' | sed 's/, or --/\n--/g'
    printf '%s\n' "$1" | sed -n 's/.*(\(--budget [^)]*\)).*/\1/p'
}

# heals TEXT LEAST : of $command; there are LEAST remedies at least, and with each behind it a plan fits, a training trains.
heals() {
    remedies "$1" >remedies
    [ "$(wc -l <remedies)" -ge "$2" ] || fail "fewer than $2 remedies in: $1"
    while read -r remedy; do
        eval "$command $remedy" >out 2>err || fail "'$remedy' does not heal $command: $(cat err)"
        ! grep -q '"fits": *false' out || fail "'$remedy' does not heal $command: $(at advice.reason)"
    done <remedies
}

# plan OPTION... : of the CNN; it does not fit, says why, and what would.
plan() {
    command="'$cleave' plan cnn --json"
    for word in "$@"; do command="$command '$word'"; done
    eval "$command" >out 2>err || fail "plan $*: $(cat err)"
    grep -q '"fits": *false' out || fail "it fits: $*"
    reason=$(at advice.reason)
    case $reason in
    *"the layers that hold most of it: '"*) ;;
    *) fail "no layers are named: $reason" ;;
    esac
    heals "$reason; $(at advice.text)" 2
}

plan --batch 64 --train --device cpu:0 --budget cpu:0=40MiB
grep -q -- '--recompute auto' remedies || fail "recomputation is no remedy: $(cat remedies)"
grep -q -- "--place" remedies || fail "placing layers is no remedy: $(cat remedies)"
grep -q -- "--device cpu:1" remedies || fail "the other device is no remedy: $(cat remedies)"
plan --batch 64 --device cpu:0 --budget cpu:0=15MiB # a forward pass has reasons and remedies too
grep -q -- "--batch" remedies || fail "a smaller batch is no remedy: $(cat remedies)"
plan --batch 64 --train --micro-batches 4 --device cpu:0 --budget cpu:0=20MiB
plan --batch 64 --train --place 'conv*=cpu:0,fc*=cpu:1' --budget cpu:1=20MiB

# the same of a training and of an evaluation
arrays="--images x.npy --labels y.npy --model cnn --json --device cpu:0"
command="'$cleave' train $arrays --steps 1 --budget cpu:0=40MiB"
eval "expect 1 'the layers that hold most of it: ' $command"
heals "$(cat err)" 4
eval "works '$cleave' train $arrays --steps 1 --batch 8 --save w.safetensors"
command="'$cleave' eval $arrays --weights w.safetensors --batch 64 --budget cpu:0=15MiB"
eval "expect 1 'the layers that hold most of it: ' $command"
heals "$(cat err)" 3

# what is to save memory and takes more: plan and train say so, and by how much
for more in "--micro-batches 2" "--precision mixed"; do
    # shellcheck disable=SC2086
    works "$cleave" plan alexnet --batch 2 --train --device cpu:0 $more
    grep -q -- "^$more: .*which is more than the 850.6 MiB without" out || fail "$more: $(grep -e "$more" out)"
    # shellcheck disable=SC2086
    works "$cleave" plan alexnet --batch 2 --train --device cpu:0 $more --json
    [ "$(at without.peak_bytes)" -gt "$(at without.peak_bytes_without)" ] || fail "$more takes less"
done
works "$cleave" train --images x.npy --labels y.npy --model mlp --batch 2 --micro-batches 2 --steps 1 --device cpu:0
grep -q -- '^cleave: --micro-batches 2: .* which is more than' err || fail "train says nothing: $(cat err)"
works "$cleave" train --images x.npy --labels y.npy --model cnn --batch 64 --micro-batches 4 --steps 1 --device cpu:0
! grep -q 'more than' err || fail "train says more of what is less: $(cat err)"

# shares that nobody gave keep to budgets, in the plan and in the training
works "$cleave" plan cnn --batch 64 --train --replicas cpu:0,cpu:1 --budget cpu:1=20MiB --json
grep -q '"fits": *true' out || fail "equal shares do not keep to the budget: $(at devices.1.predicted_peak_bytes)"
[ "$(at devices.1.predicted_peak_bytes)" -le 20971520 ] || fail "the plan holds $(at devices.1.predicted_peak_bytes) of 20 MiB"
works "$cleave" train --images x.npy --labels y.npy --model cnn --batch 64 --steps 1 --replicas cpu:0,cpu:1 --budget cpu:1=20MiB --json
[ "$(at memory.1.peak_bytes)" -le 20971520 ] || fail "the training held $(at memory.1.peak_bytes) of 20 MiB"

# and so in a forward pass: its plan, eval and run; the results are those of one device
works "$cleave" run --input x.npy --model cnn --weights w.safetensors --device cpu:0 -o one.npy
forward="--model cnn --weights w.safetensors --batch 64 --replicas cpu:0,cpu:1 --budget cpu:1=8MiB --json"
works "$cleave" plan cnn --batch 64 --replicas cpu:0,cpu:1 --shares 0.5,0.5 --budget cpu:1=8MiB --json
grep -q '"fits": *false' out || fail "equal shares fit: look for a smaller budget"
works "$cleave" plan cnn --batch 64 --replicas cpu:0,cpu:1 --budget cpu:1=8MiB --json
grep -q '"fits": *true' out || fail "the plan of a forward pass does not keep to the budget: $(at devices.1.predicted_peak_bytes)"
for words in "eval --images x.npy --labels y.npy" "run --input x.npy -o several.npy"; do
    # shellcheck disable=SC2086
    works "$cleave" $words $forward
    [ "$(at memory.1.peak_bytes)" -le 8388608 ] || fail "$words held $(at memory.1.peak_bytes) of 8 MiB"
done
"$helper" near one.npy several.npy 1e-5 >/dev/null || fail "other logits within budgets"

# where parameters alone are too much, a smaller batch is not hoped for, and what is left is a sentence
expect 1 "it would fit on a device with more memory" env POCL_MEMORY_LIMIT=1 "$cleave" train --images x.npy --labels y.npy \
    --model mlp --classes 1000000 --batch 2 --steps 1 --device cpu:0
finish
