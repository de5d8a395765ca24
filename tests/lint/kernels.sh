#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every kernel file parses alone: OpenCL C 1.2, with the defaults of its own macros, without a warning; and twice in one
# program under two names, as plans paste them. With clang; skipped where there is none (the drivers' compilers see the
# same files in the kernels test).
. "$(dirname "$0")/common.sh"
command -v clang >/dev/null || { echo "no clang"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# What is common stands at the start of every program.
for file in kernels_cl/common/*.cl; do
    [ -e "$file" ] && { echo "#line 1 \"$file\""; cat "$file"; }
done >"$scratch/common.cl"
for file in kernels_cl/*.cl; do
    [ -e "$file" ] || continue
    { cat "$scratch/common.cl"; echo '#define KERNEL(name) name'; echo "#line 1 \"$file\""; cat "$file"; } >"$scratch/once.cl"
    { cat "$scratch/common.cl"; echo '#define KERNEL(name) first_##name'; cat "$file"; echo '#undef KERNEL'
      echo '#define KERNEL(name) second_##name'; cat "$file"; } >"$scratch/twice.cl"
    for how in once twice; do
        clang -x cl -cl-std=CL1.2 -Xclang -finclude-default-header -fsyntax-only -Wall -Wextra -Werror \
            -Wno-unused-parameter -Wno-unused-function -Wno-sign-compare "$scratch/$how.cl" >"$scratch/log" 2>&1 || {
            head -n 5 "$scratch/log" | sed "s|$scratch/||"
            finding "$file: does not parse alone ($how)"
        }
    done
done
finish
