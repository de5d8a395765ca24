#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the lint scripts share: where the tree is, which files are ours, how a finding is told. Sourced, not run.
# Every script takes the root of a tree as its first argument, prints one `file:line: what` per finding and exits 1 if there
# was one; 77 means skipped, with the reason printed.
set -eu
export LC_ALL=C
root=$(cd "${1:-.}" && pwd)
cd "$root"

# our_files PATTERN... : files of the tree (never of a build folder) whose names match one of the find patterns.
our_files() {
    find . \( -name .git -o -path './build' -o -path './build-*' -o -name __pycache__ \) -prune -o -type f -print |
        sed 's|^\./||' | sort | while IFS= read -r our_file; do
        for our_pattern; do
            # shellcheck disable=SC2254  # a pattern on purpose
            case ${our_file##*/} in $our_pattern) echo "$our_file" && break ;; esac
        done
    done
}

# without_comments FILE... : C source with comments blanked (and, with $strings = blank, string literals too), each line
# led by `file:line:`, so that a grep over it finds code only.
without_comments() {
    awk -v strings="${strings:-keep}" '
        FNR == 1 { inside = 0 }
        {
            out = ""; n = length($0); quote = ""
            for (i = 1; i <= n; i++) {
                c = substr($0, i, 1); two = substr($0, i, 2)
                if (inside) { if (two == "*/") { inside = 0; i++ } continue }
                if (quote != "") {
                    if (strings != "blank") out = out c
                    if (c == "\\") { i++; if (strings != "blank") out = out substr($0, i, 1) }
                    else if (c == quote) { quote = ""; if (strings == "blank") out = out c }
                    continue
                }
                if (two == "//") break
                if (two == "/*") { inside = 1; i++; out = out " "; continue }
                if (c == "\"" || c == "\047") quote = c
                out = out c
            }
            print FILENAME ":" FNR ": " out
        }' "$@"
}

findings=0
# finding TEXT... : tell one.
finding() {
    printf '%s\n' "$*"
    findings=$((findings + 1))
}
# tell_all EXPLANATION : every line of standard input is a finding.
tell_all() {
    while IFS= read -r finding_line; do finding "$finding_line   <- $1"; done
}
finish() {
    [ "$findings" = 0 ] || { echo "$findings findings"; exit 1; }
    exit 0
}
