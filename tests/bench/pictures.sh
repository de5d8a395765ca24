#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A folder of JPEGs of 256 x 256, each decoded, cut (RandomResizedCrop 224), flipped, normalised and put into batches: by Cleave's loader
# and by PyTorch's DataLoader over torchvision, in turn, with the same number of threads and of worker processes. Prints each round,
# and how many times the pictures a second of torchvision Cleave does.
#
# usage: pictures.sh BUILD [PICTURES, default 10000] [ROUNDS, default 5] [WORKERS, default 2] [BATCH, default 64]
#   BUILD   a build folder: build/release
#   PYTHON  in the environment: one with torchvision, PIL and numpy; default python3
set -eu
if [ $# -lt 1 ]; then sed -n 's/^# //p' "$0" >&2; exit 2; fi
build=$1 pictures=${2:-10000} rounds=${3:-5} workers=${4:-2} batch=${5:-64} python=${PYTHON:-python3}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cc -O2 -o "$work/pictures" "$here/pictures.c" -I"$here/../../include" "$build/backends/libcleave.so" "-Wl,-rpath,$(realpath "$build/backends")"
"$python" "$here/make_pictures.py" "$work/set" "$pictures"
median() { sort -g "$1" | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

round=0
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    ours=$("$work/pictures" "$work/set" "$workers" "$batch" | tee -a "$work/ours")
    theirs=$("$python" "$here/pictures_torchvision.py" "$work/set" "$workers" "$batch" | tee -a "$work/theirs")
    echo "round $round: cleave $ours, torchvision $theirs pictures/s"
done
awk -v a="$(median "$work/ours")" -v b="$(median "$work/theirs")" -v n="$pictures" -v w="$workers" \
    'BEGIN { printf "%d pictures, %d workers, medians: cleave %.1f, torchvision %.1f pictures/s, %.2f times as fast\n", n, w, a, b, a / b }'
