#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lines of code, comments and prose have 110 columns at most, in the folders that have been read for it. Tables and code
# blocks of a page are as wide as they need to be.
. "$(dirname "$0")/common.sh"
folders='runtime/(base|device|exec|train|placement|plan/shared)/|backends/|tools/cleave/|docs/glossary|runtime/plan/schedule'
files=$(our_files '*.c' '*.h' '*.md' | grep -E "^($folders)" || true)
found=$(mktemp)
trap 'rm -f "$found"' EXIT
# shellcheck disable=SC2086  # our file names hold no blanks
[ -z "$files" ] || awk '
    FNR == 1 { fence = 0 }
    /^```/ && FILENAME ~ /\.md$/ { fence = !fence }
    length($0) <= 110 || (FILENAME ~ /\.md$/ && (fence || /^\|/)) { next }
    { print FILENAME ":" FNR ": " length($0) " columns" }' $files >"$found"
tell_all "110 columns at most" <"$found"
finish
