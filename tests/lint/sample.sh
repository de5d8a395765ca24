#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program that the root's README.md shows compiles as it stands there without a warning, and runs. usage: sample.sh ROOT LIBRARY [C compiler]
. "$(dirname "$0")/common.sh"
library=$2
cc=${3:-cc}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
awk '/^```c$/ { n++; if (n == 1) inside = 1; next } /^```/ { inside = 0 } inside' README.md >"$scratch/readme.c"
[ -s "$scratch/readme.c" ] || { echo "README.md shows no program in C"; exit 1; }
$cc -std=c11 -Wall -Wextra -pedantic -Werror -Iinclude "$scratch/readme.c" -o "$scratch/readme" "$library" -Wl,-rpath,"$(dirname "$library")"
cd "$scratch" && ./readme
