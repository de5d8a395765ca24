#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzz drivers with libFuzzer and lets each look for faults for some seconds, two at a time, beginning with its corpus.
# With a number in CLEAVE_TURN every third driver: .ci/run draws it by the commit.
# usage: run.sh [SECONDS [NAME...]]     default: 15 seconds, every driver. FUZZ_RUNS=N: so many inputs each at most
set -eu
cd "$(dirname "$0")/../.."
if [ "${1:-}" = --one ]; then # SECONDS WORK DRIVER
    work=$3
    name=${4##*/fuzz_}
    cp -r "tests/fuzz/corpus/$name" "$work/$name"
    mkdir "$work/$name.found"
    # Memory that an input has freed is soon used by the next one: 16 MiB of it that are not are enough.
    export ASAN_OPTIONS="quarantine_size_mb=16:malloc_context_size=10${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
    "$4" -max_total_time="$2" -runs="${FUZZ_RUNS:--1}" -timeout=10 -rss_limit_mb=2048 -max_len=4096 -artifact_prefix="$work/$name.found/" \
        -print_final_stats=1 "$work/$name" >"$work/$name.log" 2>&1 || {
        tail -n 40 "$work/$name.log"
        for found in "$work/$name.found"/*; do [ -f "$found" ] && base64 "$found"; done
        echo "$name: found a fault (its input above, in base64)"
        exit 1
    }
    echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$name.log") inputs, no fault"
    exit 0
fi
tools/build.sh fuzz
[ -n "${TMPDIR:-}" ] || [ ! -w /dev/shm ] || export TMPDIR=/dev/shm # a corpus is many small files
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
seconds=${1:-15}
[ $# -eq 0 ] || shift
drivers=0
for driver in build/fuzz/tests/fuzz/fuzz_*; do
    [ -x "$driver" ] && [ -f "$driver" ] || continue
    [ $# -eq 0 ] || case " $* " in *" ${driver##*/fuzz_} "*) ;; *) continue ;; esac
    drivers=$((drivers + 1))
    [ -z "${CLEAVE_TURN:-}" ] || [ $(((drivers + CLEAVE_TURN) % 3)) = 0 ] || continue
    echo "$driver"
done | xargs -P 2 -n 1 sh "$0" --one "$seconds" "$work"
