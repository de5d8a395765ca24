#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The public interface in every language it is for: uses.c, which includes each header and uses each macro, compiles without a
# warning as C99 to C23 and C++11 to C++23 with each compiler here, and does what it should with the oldest and the newest of both.
# usage: languages.sh ROOT LIBRARY [C compiler] [C++ compiler]
. "$(dirname "$0")/common.sh"
library=$2
uses=tests/lint/uses.c
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

for header in include/cleave/*.h; do
    grep -q "^#include <${header#include/}>" $uses || finding "$uses does not include ${header#include/}"
done
for macro in $(sed -n 's/^# *define \(CLV_[A-Z][A-Z_]*\).*/\1/p' include/cleave/*.h | sort -u); do
    grep -v '^ *\*' $uses | grep -q "\<$macro\>" || finding "$uses does not use $macro"
done
sed -n '/^#include <cleave/p' $uses | cat - $uses >"$scratch/uses.c" # each header again, in another order

# try COMPILER LANGUAGE STANDARD... : those that the compiler knows; the first and the last make programs, which are run.
try() {
    compiler=$1 language=$2 first='' last=''
    command -v "$compiler" >/dev/null || return 0
    shift 2
    for standard; do
        echo 'int x;' | $compiler -x "$language" -std="$standard" -fsyntax-only - 2>/dev/null || continue
        [ -n "$first" ] || first=$standard
        last=$standard
        $compiler -x "$language" -std="$standard" -Wall -Wextra -pedantic -Werror -Iinclude -fsyntax-only "$scratch/uses.c" ||
            finding "uses.c does not compile as $standard with $compiler"
        compiled=$((compiled + 1))
    done
    [ -n "$first" ] || { finding "$compiler knows no standard of $language"; return 0; }
    for standard in $first $last; do
        $compiler -x "$language" -std="$standard" -Iinclude "$scratch/uses.c" -x none "$library" -o "$scratch/uses" \
            -Wl,-rpath,"$(dirname "$library")" && "$scratch/uses" || finding "uses.c does not run as $standard with $compiler"
    done
    echo "$compiler: $language, $first to $last"
}
compiled=0
tried=' '
for compiler in "${3:-cc}" gcc clang clang-16; do
    case $tried in *" $compiler "*) continue ;; esac
    tried="$tried$compiler "
    try "$compiler" c c99 c11 c17 c23 c2x
done
for compiler in "${4:-c++}" g++ clang++ clang++-16; do
    case $tried in *" $compiler "*) continue ;; esac
    tried="$tried$compiler "
    try "$compiler" c++ c++11 c++14 c++17 c++20 c++23 c++2b
done
[ $compiled -gt 9 ] || finding "only $compiled languages were tried"
finish
