#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A pipeline beside the same stages one after the other: the median step of `cleave train --place` with and without
# --micro-batches, in turn (A B C A B C ...), because a machine's speed drifts. Prints each round, and how many times the images
# per second of the stages in turn each number of micro-batches does; with what part of the time each device had work.
#
# usage: pipeline.sh CLEAVE MODEL BATCH PLACE MICRO_BATCHES [ROUNDS, default 3] [STEPS, default 6] [SIZE, default 64]
#   PLACE          as --place wants it: '*=cpu:0,layer4.*=cpu:1,fc=cpu:1'
#   MICRO_BATCHES  one or several: 2,4,8
#   SIZE           height and width of the random images
# For two equal devices on one machine: CLEAVE_PARTITION=cpu:0=2. On a busy machine put `chrt -r 5` before it.
set -eu
if [ $# -lt 5 ]; then sed -n 's/^# //p' "$0" >&2; exit 2; fi
cleave=$1 model=$2 batch=$3 place=$4 parts=$(echo "$5" | tr , ' ') rounds=${6:-3} steps=${7:-6} size=${8:-64}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# npy TYPE SHAPE : the header of an array file, 128 bytes; the values follow it.
npy() {
    printf '\223NUMPY\001\000\166\000'
    printf "%-117s\n" "{'descr': '$1', 'fortran_order': False, 'shape': $2, }"
}
n=$((steps * batch))
{ npy '|u1' "($n, 3, $size, $size)" && head -c $((n * 3 * size * size)) /dev/urandom; } >"$work/x.npy"
{ npy '|u1' "($n,)" && head -c "$n" /dev/zero; } >"$work/y.npy"

number() { tr -d '\n' | sed -n "s/.*\"$1\": *\([0-9.eE+-]*\).*/\1/p"; echo; } # one a line: sed ends no line that did not end
median() { sort -g "$1" | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
# measure N : milliseconds of a step in N parts, the median of a run's steps; also kept in the work folder.
measure() {
    "$cleave" train --images "$work/x.npy" --labels "$work/y.npy" --model "$model" --batch "$batch" --epochs 1 \
        --optimizer sgd --lr 0.001 --seed 1 --classes 10 --place "$place" --micro-batches "$1" --json \
        2>"$work/err" >"$work/out" || { cat "$work/err" >&2; exit 1; }
    number step_ms <"$work/out" | tee -a "$work/$1"
    grep '"busy"' "$work/out" | tr -dc '0-9.\n' | awk '{ printf "%s%.2f", (NR > 1 ? " " : ""), $1 }' >"$work/busy.$1"
}

round=0
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    line="round $round: in turn $(measure 1) ms"
    for i in $parts; do line="$line, $i parts $(measure "$i") ms"; done
    echo "$line"
done
turn=$(median "$work/1")
for i in 1 $parts; do
    awk -v t="$turn" -v p="$(median "$work/$i")" -v n="$i" -v b="$(cat "$work/busy.$i")" \
        'BEGIN { printf "%d micro-batches: %.2f ms, %.2f times as fast as in turn, busy %s\n", n, p, t / p, b }'
done
