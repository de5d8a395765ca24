#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program that the root's README.md shows compiles as it stands there without a warning, with each compiler here, and runs.
# usage: sample.sh ROOT LIBRARY [C compiler]
. "$(dirname "$0")/common.sh"
library=$2
cc=${3:-cc}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
awk '/^```c$/ { n++; if (n == 1) inside = 1; next } /^```/ { inside = 0 } inside' README.md >"$scratch/readme.c"
[ -s "$scratch/readme.c" ] || { echo "README.md shows no program in C"; exit 1; }
tried=' '
for compiler in "$cc" gcc clang; do
    case $tried in *" $(command -v "$compiler") "*) continue ;; esac
    command -v "$compiler" >/dev/null || continue
    tried="$tried$(command -v "$compiler") "
    for standard in c99 c11 c17; do
        $compiler -std=$standard -Wall -Wextra -pedantic -Werror -Iinclude "$scratch/readme.c" -o "$scratch/readme" "$library" \
            -Wl,-rpath,"$(dirname "$library")" || finding "README.md's program does not compile as $standard with $compiler"
    done
done
[ "$findings" = 0 ] || finish
cd "$scratch" && ./readme
