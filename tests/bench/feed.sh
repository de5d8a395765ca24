#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a batch of 128 pictures of 224 x 224 costs the host, made and fed (feed.c), by two builds in turn. Prints the medians, and what the
# first takes of the second's.
#
# usage: feed.sh BUILD OLD-BUILD [ROUNDS, default 5]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
old=$(cd "$2" && pwd)
rounds=${3:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# make BUILD PROGRAM : the headers are those of the build's own tree.
make() {
    own=
    grep -q CLV_ARRAY_U8 "$1/../../include/cleave/io.h" && own=-DARRAYS_HAD_TYPES
    # shellcheck disable=SC2086
    cc -O2 $own -I "$1/../../include" "$here/feed.c" -o "$2" "$1/backends/libcleave.so" "-Wl,-rpath,$1/backends"
}
make "$build" "$work/new"
make "$old" "$work/old"
for round in $(seq "$rounds"); do
    "$work/old" >>"$work/old.ms"
    "$work/new" >>"$work/new.ms"
    echo "round $round: $(tail -n 1 "$work/old.ms") | $(tail -n 1 "$work/new.ms")"
done
# median FILE COLUMN
median() { cut -d' ' -f"$2" "$1" | sort -g | sed -n "$(((rounds + 1) / 2))p"; }
for of in "1 ms of processor time" "2 ms on the clock"; do
    a=$(median "$work/old.ms" "${of%% *}") b=$(median "$work/new.ms" "${of%% *}")
    echo "${of#* }: $a, $b: $(awk "BEGIN { printf \"%.3f\", $b / $a }")"
done
