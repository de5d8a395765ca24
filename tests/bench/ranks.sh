#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two ranks of one core each beside one of them: the median step of `cleave train --ranks` by Open MPI's mpirun, and of one such
# process alone, in turn (A B A B ...), because a machine's speed drifts. Prints each round, how many times one's samples per second
# the two do, and the processor time of a step: of all processes, by runs of two lengths, so that what begins and ends them is not in
# it. On a busy machine times from step to step mean nothing; processor times do, nearly.
#
# usage: ranks.sh CLEAVE [MODEL, default cnn] [BATCH, default 128] [ROUNDS, default 3] [STEPS, default 300]
set -eu
if [ $# -lt 1 ]; then sed -n 's/^# //p' "$0" >&2; exit 2; fi
cleave=$1 model=${2:-cnn} batch=${3:-128} rounds=${4:-3} steps=${5:-300}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 POCL_MAX_PTHREAD_COUNT=1

number() { tr -d '\n' | sed -n "s/.*\"$1\": *\([0-9.eE+-]*\).*/\1/p"; echo; }
median() { sort -g "$1" | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
# train N STEPS : so many ranks; seconds of processor time
train() {
    n=$1 && shift
    [ "$n" = 1 ] || set -- "$@" --ranks
    /usr/bin/time -f '%U %S' -o "$work/time" mpirun --bind-to core -n "$n" "$cleave" train fashion-mnist --model "$model" --batch "$batch" \
        --seed 1 --json --steps "$@" >"$work/out" 2>"$work/err" || { cat "$work/err" >&2; exit 1; }
    awk '{ print $1 + $2 }' "$work/time"
}
# measure N : a round of so many ranks
measure() {
    short=$(train "$1" $((steps / 5)))
    long=$(train "$1" "$steps")
    number step_ms <"$work/out" >>"$work/step$1"
    awk -v a="$short" -v b="$long" -v s="$steps" 'BEGIN { printf "%.2f\n", 1000 * (b - a) / (s - int(s / 5)) }' >>"$work/cpu$1"
    echo "$1: $(tail -n 1 "$work/step$1") ms a step, $(tail -n 1 "$work/cpu$1") ms of processors"
}
round=0
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    measure 1
    measure 2
done
awk -v a="$(median "$work/step1")" -v b="$(median "$work/step2")" -v c="$(median "$work/cpu1")" -v d="$(median "$work/cpu2")" \
    -v m="$model" -v n="$batch" 'BEGIN { printf "%s, batch %d: %.2f ms alone, %.2f as two, %.2f times; of processors %.2f and %.2f ms\n",
                                                m, n, a, b, a / b, c, d }'
