#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Data parallel beside each of its devices: the median step of `cleave train --replicas`, and of `--device` for each, in turn
# (A B C A B C ...), because a machine's speed drifts. A device is measured twice, each time with the whole batch: alone, and while
# each other one trains a model of its own in a process of its own. What processes lose that share nothing but the machine, its
# memory above all, is not lost by being replicas. Prints each round, how many times one device's images per second all of them
# do, and what part that is of the sum, by both measures.
#
# usage: replicas.sh CLEAVE MODEL BATCH REPLICAS SHARES [ROUNDS, default 3] [STEPS, default 30] [SIZE, default 64]
#   REPLICAS  as --replicas wants them: cpu:0,cpu:1
#   SHARES    as --shares wants them: equal, auto, 0.5,0.5
#   SIZE      height and width of the random images that larger models get; cnn and mlp get Fashion-MNIST
# For two equal devices on one machine: CLEAVE_PARTITION=cpu:0=2. On a busy machine put `chrt -r 5` before it.
set -eu
if [ $# -lt 5 ]; then sed -n 's/^# //p' "$0" >&2; exit 2; fi
cleave=$1 model=$2 batch=$3 replicas=$4 shares=$5 rounds=${6:-3} steps=${7:-30} size=${8:-64}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# npy TYPE SHAPE : the header of an array file, 128 bytes; the values follow it.
npy() {
    printf '\223NUMPY\001\000\166\000'
    printf "%-117s\n" "{'descr': '$1', 'fortran_order': False, 'shape': $2, }"
}
case $model in
cnn | mlp | linear) data="fashion-mnist --limit $((steps * batch))" ;;
*)
    n=$((steps * batch))
    { npy '|u1' "($n, 3, $size, $size)" && head -c $((n * 3 * size * size)) /dev/urandom; } >"$work/x.npy"
    { npy '|u1' "($n,)" && head -c "$n" /dev/zero; } >"$work/y.npy"
    data="--images $work/x.npy --labels $work/y.npy" ;;
esac

number() { tr -d '\n' | sed -n "s/.*\"$1\": *\([0-9.eE+-]*\).*/\1/p"; echo; } # one a line: sed ends no line that did not end
median() { sort -g "$1" | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
# measure NAME OPTIONS... : milliseconds of a step, the median of a run's steps; also kept in the work folder.
measure() {
    name=$1
    shift
    # shellcheck disable=SC2086 # data is several words
    "$cleave" train $data --model "$model" --batch "$batch" --epochs 1 --optimizer momentum --lr 0.001 --seed 1 \
        --json "$@" 2>"$work/err" >"$work/out" || { cat "$work/err" >&2; exit 1; }
    ms=$(number step_ms <"$work/out" | awk '{ printf "%.2f\n", $1 }')
    echo "$ms" | tee -a "$work/$name"
}

# beside DEVICE : the same for a device while the others train, which they do until this subshell ends, however it ends.
beside() {
    others='' n=0
    # shellcheck disable=SC2086 # others and data are several words
    trap 'kill $others 2>/dev/null || true; wait' EXIT
    trap 'exit 1' HUP INT TERM
    for other in $devices; do
        [ "$other" = "$1" ] && continue
        n=$((n + 1))
        rm -f "$work/other$n.jsonl"
        # shellcheck disable=SC2086
        "$cleave" train $data --model "$model" --batch "$batch" --epochs 1000000 --optimizer momentum --lr 0.001 --seed 1 \
            --json --device "$other" --log "$work/other$n.jsonl" >"$work/other$n.out" 2>&1 &
        others="$others $!"
        until grep -q '"loss"' "$work/other$n.jsonl" 2>/dev/null; do # it trains
            kill -0 $! 2>/dev/null || { cat "$work/other$n.out" >&2; exit 1; }
            sleep 0.1
        done
    done
    measure "beside $1" --device "$1"
}

round=0
devices=$(echo "$replicas" | tr , ' ')
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    line="round $round:"
    for device in $devices; do # one command substitution at a time: only the last one's fault would end this
        alone=$(measure "alone $device" --device "$device")
        besides=$(beside "$device")
        line="$line $device $alone ms, beside others $besides ms,"
    done
    all=$(measure together --replicas "$replicas" --shares "$shares")
    echo "$line together $all ms"
done
together=$(median "$work/together")
for how in alone beside; do
    sum=0
    for device in $devices; do
        one=$(median "$work/$how $device")
        awk -v d="$device" -v h="$how" -v a="$one" -v t="$together" \
            'BEGIN { printf "%.2f times %s %s\n", a / t, d, h == "alone" ? h : "while others train" }'
        sum=$(awk -v s="$sum" -v a="$one" 'BEGIN { print s + 1 / a }')
    done
    awk -v s="$sum" -v t="$together" -v b="$batch" -v m="$model" -v h="$how" \
        'BEGIN { printf "%s, batch %d: %.2f ms, %.2f of the sum of what each does %s\n", m, b, t, 1 / t / s,
                        h == "alone" ? h : "while others train" }'
done
