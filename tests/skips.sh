#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the last run of the tests has skipped, and why: a test that is skipped everywhere tests nothing. Read from ctest's log, which
# has the reasons, and from junit.xml beside it (ctest --output-junit), which knows which programs exited with 77.
# tests/skips.sh [BUILD], by default build/dev
set -eu
log=${1:-$(dirname "$0")/../build/dev}/Testing/Temporary/LastTest.log
[ -r "$log" ] || { echo "skips: no log of a run at $log"; exit 1; }
junit=${log%/*}/junit.xml
[ -r "$junit" ] || junit=/dev/null
awk '
    FILENAME ~ /junit.xml$/ || FILENAME == "/dev/null" {
        if (/<testcase /) { name = $0; sub(/.*name="/, "", name); sub(/".*/, "", name) }
        if (/<skipped/) whole[name] = 1
        next
    }
    /^[0-9]+\/[0-9]+ Test: / { test = $3; words = last = ""; split("", seen) }
    # One that cmocka skips stands there twice: where it was skipped, and in a list at the end.
    /^\[  SKIPPED \] [a-zA-Z_0-9]+$/ {
        if ($4 in seen) next
        seen[$4] = 1
        skips[++n] = test " " $4 ": " (words ? words : "no reason given")
        words = ""
        next
    }
    /^\[ RUN / { words = "" }
    /^skipped/ { words = $0; sub(/^skipped:? */, "", words); if (/ on /) parts[++n_parts] = test ": " words }
    /^<end of output>/ { if (test in whole) skips[++n] = test ": " (last ? last : "no reason given") }
    NF && !/^-----/ { last = $0 }
    END {
        for (i = 1; i <= n_parts; i++) print "  in part: " parts[i]
        for (i = 1; i <= n; i++) print "  " skips[i]
        printf "%d skipped, %d in part\n", n, n_parts
    }' "$junit" "$log"
