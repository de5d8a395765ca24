#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The page of measurements is the one that its script makes of the data: neither is changed without the other.
. "$(dirname "$0")/common.sh"
made=$(mktemp)
trap 'rm -f "$made"' EXIT
tests/bench/page.sh >"$made" || finding "tests/bench/page.sh: failed"
diff "$made" tests/bench/RESULTS.md >"$made.differences" 2>&1 ||
    finding "tests/bench/RESULTS.md: not what page.sh prints: $(sed -n 2p "$made.differences" | cut -c1-100)"
rm -f "$made.differences"
finish
