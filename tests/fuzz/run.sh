#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzz drivers with libFuzzer and lets each look for faults for some seconds, beginning with its corpus.
# usage: run.sh [seconds each, default 15]
set -eu
cd "$(dirname "$0")/../.."
tools/build.sh fuzz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for driver in build/fuzz/tests/fuzz/fuzz_*; do
    [ -x "$driver" ] && [ -f "$driver" ] || continue
    name=${driver##*/fuzz_}
    cp -r "tests/fuzz/corpus/$name" "$work/$name"
    "$driver" -max_total_time="${1:-15}" -timeout=10 -rss_limit_mb=2048 -max_len=4096 -artifact_prefix="$work/" \
        -print_final_stats=1 "$work/$name" >"$work/log" 2>&1 || {
        tail -n 40 "$work/log"
        for found in "$work"/crash-* "$work"/timeout-* "$work"/oom-*; do [ -f "$found" ] && base64 "$found"; done
        echo "$name: found a fault (its input above, in base64)"
        exit 1
    }
    echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log") inputs, no fault"
done
