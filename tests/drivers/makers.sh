#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two makers' drivers in one training: Intel's runtime for CPUs and PoCL, side by side in one process. Layers placed on both, a batch
# shared out to both, a checkpoint of each that the other goes on from: the losses are those of one device. And tools/gpu-day.sh on Intel's.
#
# usage: makers.sh CLEAVE HELPER        left out, with a note and exit 77, where one of the two cannot be had
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../e2e/common.sh"
intel=$("$here/fetch.sh" intel) || exit 77
mkdir vendors
cp /etc/OpenCL/vendors/pocl.icd vendors/ 2>/dev/null || { echo "makers: left out: PoCL is not installed" >&2; exit 77; }
cp "$intel/vendors/intel.icd" vendors/
export OCL_ICD_VENDORS="$PWD/vendors" LD_LIBRARY_PATH="$intel/lib" CLEAVE_CACHE_DIR="$PWD/cache" CLEAVE_PARTITION= CLEAVE_VISIBLE_DEVICES= CLEAVE_TUNING=none

works "$cleave" devices --json
vendors=$(grep -c '"type": "cpu"' out)
[ "$vendors" = 2 ] || fail "there are $vendors devices, not 2: $("$cleave" devices 2>&1)"
# train NAME OPTION... : its losses in NAME.losses.
train() {
    train_name=$1
    shift
    works "$cleave" train fashion-mnist --model cnn --batch 12 --limit 240 --epochs 2 --seed 1 --log "$train_name.jsonl" --json "$@"
    "$helper" lines loss <"$train_name.jsonl" >"$train_name.losses"
}
# near NAME LIMIT : as those of one device.
near() {
    paste one.losses "$1.losses" | awk -v limit="$2" -v name="$1" '
        { d = $1 - $2; d = d < 0 ? -d : d; r = d / $1; if (r > worst) worst = r; if (NF != 2 || $2 != $2 + 0) bad = 1 }
        END { printf "%s: losses of %d steps within %.1e of those of one device\n", name, NR, worst; exit !(NR == 40 && worst <= limit && !bad) }' ||
        fail "$1: other losses"
}
train one --device cpu:0
train other --device cpu:1
near other 5e-3
for place in 'conv*=cpu:0,fc*=cpu:1' 'conv1=cpu:1,conv2=cpu:0,fc*=cpu:1'; do
    train placed --place "$place"
    near placed 5e-3
done
train shared --replicas cpu:0,cpu:1 --shares equal
near shared 5e-3
for turn in '0 1' '1 0'; do
    from=cpu:${turn% *} to=cpu:${turn#* }
    works "$cleave" train fashion-mnist --model cnn --batch 12 --limit 240 --epochs 2 --steps 20 --seed 1 --log half.jsonl --device "$from" --checkpoint half.checkpoint --json
    works "$cleave" train fashion-mnist --model cnn --batch 12 --limit 240 --epochs 2 --seed 1 --log half.jsonl --device "$to" --resume half.checkpoint --json
    "$helper" lines loss <half.jsonl >half.losses
    near half 5e-3
done
# A user's day with a card, on the driver that is no package: every part that it has.
day=$(cd "$here/../../tools" && pwd)/gpu-day.sh
OCL_ICD_VENDORS="$intel/vendors" "$day" --small --device cpu --cleave "$cleave" day >out 2>err || fail "gpu-day on Intel's runtime: $(cat out err)"
for part in machine check gemm conv ops models curve train; do
    grep -q "^| $part | passed" day/summary.md || fail "gpu-day on Intel's runtime: $(grep "^| $part " day/summary.md)"
done
finish
