#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trainings of 200 steps whose products round operands as matrix units do, emulated, beside the same ones in f32: the loss of
# the test set within 1 %, accuracy within 0.3 points; that of the last tenth of the steps is shown. By PoCL with the kernels of GPUs, where every variant of a unit can be
# pinned. Unasked no device takes an emulation: so this holds the arithmetic, not a choice. The test set is gone through with the kernels
# of CPUs, in the training's precision.
#
# usage: rounded.sh CLEAVE [MODEL...]      cnn (pictures) and gpt (this repository's pages); default: both
#
# STEPS and WAYS (of those below) make it shorter. By hand: an emulation takes 5 to 30 times as long as the kernels for f32, half an hour for
# the CNN. That has batches of 64, as in smaller ones rounding counts more than which operands are rounded: with 8, f32 by other kernels
# differs by 2.6 % and 0.8 points.
set -eu
[ $# -gt 0 ] && [ -x "$1" ] || { echo "usage: rounded.sh CLEAVE [cnn] [gpt]" >&2 && exit 2; }
cleave=$1
shift
[ $# -gt 0 ] || set -- cnn gpt
here=$(cd "$(dirname "$0")" && pwd)
steps=${STEPS:-200}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export CLEAVE_TUNING=none
failed=0

# What a way, and a model, are to the command line. Both eval and train take the first; * is no pattern of files.
set -f
precision_of() { case $1 in mixed-bf16) echo "--precision mixed-bf16" ;; mixed*) echo "--precision mixed" ;; esac; }
unit_of() {
    case $1 in
    f32 | mixed-without) ;; # products of floats
    high) echo "--float32-products high --variants *=tf32:64x64" ;;
    high-bf16x2) echo "--float32-products high --variants *=bf16x2:64x64" ;; # of a unit that has no tf32
    mixed) echo "--variants *=f16:64x64" ;;
    mixed-bf16) echo "--variants *=bf16:64x64" ;;
    *) echo "rounded.sh: '$1' is no way" >&2 && return 2 ;;
    esac
}
data_of() {
    case $1 in
    cnn) echo "fashion-mnist" ;;
    gpt) echo "text $scratch/text.txt" ;;
    *) echo "rounded.sh: '$1' is neither cnn nor gpt" >&2 && return 2 ;;
    esac
}
model_of() {
    case $1 in
    cnn) echo "--model cnn --batch 64 --limit $((64 * steps))" ;;
    gpt) echo "--model gpt --layers 2 --width 96 --heads 3 --context 64 --batch 8 --steps $steps" ;;
    esac
}
# field NAME FILE : the last number of that name.
field() { sed -n "s/.*\"$1\": *\([-0-9.e+]*\).*/\1/p" "$2" | tail -n 1; }

find "$here/../../docs" -name '*.md' | sort | xargs cat >"$scratch/text.txt"
for model; do
    data=$(data_of "$model")
    for way in f32 ${WAYS:-high mixed mixed-bf16 mixed-without}; do
        to=$scratch/$model.$way
        # shellcheck disable=SC2046,SC2086
        CLEAVE_EXECUTION=cpu=lanes "$cleave" train $data $(model_of "$model") $(precision_of "$way") $(unit_of "$way") --device cpu --epochs 1 \
            --seed 1 --quiet --log "$to.jsonl" --save "$to.safetensors" >/dev/null
        # shellcheck disable=SC2046,SC2086
        "$cleave" eval $data --weights "$to.safetensors" $(precision_of "$way") --device cpu --quiet --json >"$to.json"
        loss=$(awk -v steps="$steps" '/"step":/ && match($0, /"loss": *[-0-9.e+]+/) { all[++n] = substr($0, RSTART + 7, RLENGTH - 7) + 0 }
            END { for (i = n - int(steps / 10) + 1; i <= n; i++) sum += all[i]; printf "%.5f", sum / int(steps / 10) }' "$to.jsonl")
        now="$loss $(field test_loss "$to.json") $(field test_accuracy "$to.json")"
        [ "$way" != f32 ] || base=$now
        echo "$base $now" | awk -v name="$model $way" '
            function off(a, b) { return 100 * (b / a - 1) }
            function size(x) { return x < 0 ? -x : x }
            { points = 100 * ($6 - $3)
              wrong = NF != 6 || size(off($2, $5)) > 1 || size(points) > 0.3
              printf "%-18s loss %.4f (%+.2f %%)  test loss %.4f (%+.2f %%)  accuracy %.2f (%+.2f)%s\n", name, $4, off($1, $4), $5, off($2, $5),
                     100 * $6, points, wrong ? "  too far" : ""
              exit wrong }' || failed=1
    done
done
exit $failed
