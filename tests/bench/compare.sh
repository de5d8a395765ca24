#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A training step of Cleave beside one of PyTorch, in turn, because a machine's speed drifts: A B A B ... Prints each run's
# median step and the ratio of the medians. Needs python3 with torch.
#
# usage: compare.sh CLEAVE [mlp|cnn] [rounds, default 3] [more options of cleave train]
set -eu
cleave=$1
model=${2:-cnn}
rounds=${3:-3}
if [ $# -lt 3 ]; then shift $#; else shift 3; fi
here=$(dirname "$0")
python=${PYTHON:-python3}
case $model in mlp) limit=60000 steps=900 ;; *) limit=9600 steps=150 ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# number NAME : a number of the JSON object on standard input.
number() { tr -d '\n' | sed -n "s/.*\"$1\": *\([0-9.eE+-]*\).*/\1/p"; }
median() { sort -g "$1" | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

round=0
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    "$cleave" train fashion-mnist --model "$model" --batch 64 --epochs 1 --limit $limit --optimizer momentum --lr 0.01 \
        --seed 1 --json "$@" 2>"$work/err" >"$work/out" || { cat "$work/err" >&2; exit 1; }
    ours=$(number step_ms <"$work/out")
    theirs=$("$python" "$here/pytorch_step.py" "$model" --steps $steps | number step_ms)
    echo "$ours" >>"$work/ours"
    echo "$theirs" >>"$work/theirs"
    echo "round $round: cleave $ours ms, pytorch $theirs ms"
done
ours=$(median "$work/ours") theirs=$(median "$work/theirs")
awk -v a="$ours" -v b="$theirs" -v m="$model" 'BEGIN { printf "%s: cleave %.3f ms, pytorch %.3f ms, ratio %.2f\n", m, a, b, a / b }'
