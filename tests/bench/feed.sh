#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Processor time of the host to make and feed a batch of 64 pictures of 224 x 224 that are bytes: as numbers, as a build
# before bytes were fed does it, and as bytes, in turn. Prints the medians, and what bytes take of it.
#
# usage: feed.sh BUILD [OLD BUILD, default BUILD] [ROUNDS, default 5]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
old=$(cd "${2:-$1}" && pwd)
rounds=${3:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# make BUILD PROGRAM OPTIONS... : the headers are those of the build's own tree.
make() {
    from=$1 to=$2
    shift 2
    cc -O2 "$@" -I "$from/../../include" "$here/feed.c" -o "$to" "$from/backends/libcleave.so" \
        "-Wl,-rpath,$from/backends"
}
make "$build" "$work/new"
if [ "$old" = "$build" ]; then make "$old" "$work/old"; else make "$old" "$work/old" -DNUMBERS_ALONE; fi
for round in $(seq "$rounds"); do
    "$work/old" >>"$work/numbers"
    "$work/new" bytes >>"$work/bytes"
    echo "round $round: $(tail -n 1 "$work/numbers") | $(tail -n 1 "$work/bytes")"
done
# median FILE COLUMN
median() { cut -d' ' -f"$2" "$1" | sort -g | sed -n "$(((rounds + 1) / 2))p"; }
for of in "1 made and fed" "2 in clv_run_feed" "3 bytes"; do
    a=$(median "$work/numbers" "${of%% *}") b=$(median "$work/bytes" "${of%% *}")
    echo "${of#* }: $a, $b: $(awk "BEGIN { printf \"%.3f\", $b / $a }")"
done
