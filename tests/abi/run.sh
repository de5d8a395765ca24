#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Is the library's interface the kept one, cleave.abi, and no more than that plus new functions and new last fields? And would a change
# be seen: a field that is gone or moved, another type, a function that is gone. Needs libabigail's abidw and abidiff.
#
# usage: run.sh LIBRARY            LIBRARY: build/dev/backends/libcleave.so, with debug information
#        run.sh LIBRARY --update   keep its interface, after a change that is meant
set -u
here=$(cd "$(dirname "$0")" && pwd)
library=$1
command -v abidiff >/dev/null && command -v abidw >/dev/null || {
    echo "no abidiff here (Debian: abigail-tools)"
    exit 77
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# What is defined elsewhere than in public headers is nobody's business: those types are opaque. (By their folder: files of the library's
# inside have the same names.)
cat >"$scratch/private.suppr" <<'END'
[suppress_type]
  source_location_not_regexp = include/
  drop = yes
END
# dump LIBRARY : its public types and functions, without what it is linked with and the folder it was built in.
dump() {
    abidw --suppressions "$scratch/private.suppr" --exported-interfaces-only --no-corpus-path --no-comp-dir-path --no-show-locs "$1" |
        sed -E "/<dependency name=/d; s# path='[^']*/((runtime|backends)/[^']*)'# path='\\1'#; s# path='/[^']*/([^'/]*)'# path='\\1'#"
}
# same KEPT NEW : only what may be added is different: functions, fields behind the last one of a structure (programs that were built before
# do not know them, and give zeros), constants of an enumeration. What else is different, on stdout.
same() {
    abidiff --no-added-syms --harmless "$1" "$2" >"$scratch/differences"
    told=$?
    if [ $((told & 3)) != 0 ] || [ $told -ge 128 ]; then # it could not compare
        echo "abidiff ends with $told"
        return 1
    fi
    grep -E '[1-9][0-9]* Removed|data member change|deletion|enumerator change| changed:|return type changed| removed' \
        "$scratch/differences" >"$scratch/bad" || return 0
    cat "$scratch/differences"
    return 1
}

dump "$library" >"$scratch/now.abi" || exit 1
if [ "${2:-}" = --update ]; then
    cp "$scratch/now.abi" "$here/cleave.abi"
    exit 0
fi
failures=0
same "$here/cleave.abi" "$scratch/now.abi" || {
    echo "the interface is not the kept one (above); after a change that is meant: $0 LIBRARY --update"
    failures=1
}

# The same on a small library and versions of it.
build() { # NAME SOURCE
    mkdir -p "$scratch/$1/include"
    printf '%s\n' "$2" >"$scratch/$1/include/small.h"
    printf '#include "small.h"\nint small(const struct config *c) { return c->a; }\n%s\n' "${3:-}" >"$scratch/$1/small.c"
    ${CC:-cc} -g -shared -fPIC -I"$scratch/$1/include" -o "$scratch/$1/libsmall.so" "$scratch/$1/small.c" || exit 1
    dump "$scratch/$1/libsmall.so" >"$scratch/$1.abi"
}
expect() { # same|differs NAME
    if same "$scratch/base.abi" "$scratch/$2.abi" >"$scratch/said"; then got=same; else got=differs; fi
    [ $got = "$1" ] && return
    echo "FAILED: an interface with $2 is told as $got"
    cat "$scratch/said"
    failures=1
}
small='int small(const struct config *c);'
build base "struct config { int size, a; float b; }; enum kind { ONE, TWO }; $small"
build unchanged "struct config { int size, a; float b; }; enum kind { ONE, TWO }; $small"
build a_field_added_last "struct config { int size, a; float b; int c; }; enum kind { ONE, TWO }; $small"
build a_function_added "struct config { int size, a; float b; }; enum kind { ONE, TWO }; $small int more(void);" 'int more(void) { return 1; }'
build a_field_before_others "struct config { int size, c, a; float b; }; enum kind { ONE, TWO }; $small"
build another_type "struct config { int size, a; double b; }; enum kind { ONE, TWO }; $small"
build a_field_gone "struct config { int size, a; }; enum kind { ONE, TWO }; $small"
build another_parameter "struct config { int size, a; float b; }; enum kind { ONE, TWO }; int small(const struct config *c); int other(int x);" 'int other(int x) { return x; }'
expect same unchanged
expect same a_field_added_last
expect same a_function_added
expect differs a_field_before_others
expect differs another_type
expect differs a_field_gone
cp "$scratch/another_parameter.abi" "$scratch/base.abi"
build a_function_gone "struct config { int size, a; float b; }; enum kind { ONE, TWO }; $small"
build a_parameter_of_another_type "struct config { int size, a; float b; }; enum kind { ONE, TWO }; $small int other(long x);" 'int other(long x) { return (int)x; }'
expect differs a_function_gone
expect differs a_parameter_of_another_type
exit $failures
