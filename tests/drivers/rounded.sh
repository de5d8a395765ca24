#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trainings of 200 steps whose products round operands as matrix units do, emulated, beside the same ones in f32. On the mean of all seeds the
# loss of the test set is to be within 1 %, accuracy within 0.3 points; the loss of the last tenth of the steps is shown too. By PoCL with the
# kernels of GPUs, where every variant of a unit can be pinned. Unasked no device takes an emulation: so this holds the arithmetic, not a
# choice. The test set is gone through with the kernels of CPUs, in the training's precision.
#
# usage: rounded.sh CLEAVE [MODEL...]      cnn (pictures) and gpt (this repository's pages); default: both
#
# The way f32-cpu is f32 by the kernels of CPUs, which add in another order: how far apart rounding alone takes two trainings. A way whose mean is
# too far is wrong if it is also further than two standard errors of its differences.
# STEPS (ten or more), SEEDS and WAYS (of those below) make it shorter. By hand: an emulation takes 3 to 30 times as long as the kernels for f32. The CNN has
# batches of 64: in smaller ones rounding counts more than which operands are rounded.
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

# What a way, and a model, are to the command line. Both eval and train take the first; * is no pattern of files.
set -f
precision_of() { case $1 in mixed-bf16) echo "--precision mixed-bf16" ;; mixed*) echo "--precision mixed" ;; esac; }
unit_of() {
    case $1 in
    f32 | f32-cpu | mixed-without) ;; # products of floats
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
trainings() {
    for model; do
        data=$(data_of "$model")
        for seed in ${SEEDS:-1 2 3}; do
            for way in f32 ${WAYS:-f32-cpu high mixed mixed-bf16 mixed-without}; do
                to=$scratch/$model.$way
                execution=cpu=lanes
                [ "$way" != f32-cpu ] || execution=
                # shellcheck disable=SC2046,SC2086
                CLEAVE_EXECUTION=$execution "$cleave" train $data $(model_of "$model") $(precision_of "$way") $(unit_of "$way") --device cpu \
                    --epochs 1 --seed "$seed" --quiet --log "$to.jsonl" --save "$to.safetensors" >/dev/null
                # shellcheck disable=SC2046,SC2086
                "$cleave" eval $data --weights "$to.safetensors" $(precision_of "$way") --device cpu --quiet --json >"$to.json"
                loss=$(awk -v steps="$steps" '/"step":/ && match($0, /"loss": *[-0-9.e+]+/) { all[++n] = substr($0, RSTART + 7, RLENGTH - 7) + 0 }
                    END { for (i = n - int(steps / 10) + 1; i <= n; i++) sum += all[i]; printf "%.5f", sum / int(steps / 10) }' "$to.jsonl")
                now="$loss $(field test_loss "$to.json") $(field test_accuracy "$to.json")"
                [ "$way" != f32 ] || base=$now
                echo "$model $way $seed $base $now"
                echo "$model $way, seed $seed: $now" >&2
            done
        done
    done
    echo end
}
trainings "$@" | awk '
    function off(a, b) { return 100 * (b / a - 1) }
    function size(x) { return x < 0 ? -x : x }
    # mean and deviation of what was added up under a name
    function add(name, x) { sum[name] += x; squares[name] += x * x }
    function mean(name, n) { return sum[name] / n }
    function deviation(name, n,  v) { v = n > 1 ? (squares[name] - sum[name] * sum[name] / n) / (n - 1) : 0; return v > 0 ? sqrt(v) : 0 }
    function told(name, n, digits) { return sprintf("%.*f ± %.*f", digits, mean(name, n), digits, deviation(name, n)) }
    function beyond(name, n, most) { return size(mean(name, n)) > most && size(mean(name, n)) > 2 * deviation(name, n) / sqrt(n) }
    $1 == "end" { ended = 1; next }
    {
        way = $1 " " $2
        if (!count[way]++) order[++ways] = way
        if (NF != 9 || tolower($0) ~ /nan|inf/) broken = 1
        train = off($4, $7); test = off($5, $8); points = 100 * ($9 - $6)
        printf "%-18s seed %s  loss %.4f (%+.2f %%)  test loss %.4f (%+.2f %%)  accuracy %.2f (%+.2f)\n", way, $3, $7, train, $8, test, 100 * $9, points
        add(way " of test", $8); add(way " of points", 100 * $9)
        add(way " train", train); add(way " test", test); add(way " points", points)
    }
    END {
        for (i = 1; i <= ways; i++) {
            way = order[i]; n = count[way]
            wrong = way !~ /f32-cpu/ && (beyond(way " test", n, 1) || beyond(way " points", n, 0.3))
            printf "%-18s %d seeds: test loss %s, accuracy %s; beside f32 loss %s %%, test loss %s %%, accuracy %s%s\n", way, n,
                   told(way " of test", n, 4), told(way " of points", n, 2), told(way " train", n, 2), told(way " test", n, 2),
                   told(way " points", n, 2), wrong ? "  too far" : ""
            broken = broken || wrong
        }
        exit broken || !ended
    }'
