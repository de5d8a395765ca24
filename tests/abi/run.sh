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
# without_reserved : abidiff's report without what it says of fields `reserved`, which are there to become smaller.
without_reserved() {
    awk '{ match($0, /^ */); depth = RLENGTH }
        skip && (depth > from || /^ *and offset changed/) { next }
        { skip = 0 }
        /reserved\[/ { skip = 1; from = depth; next }
        /data member change/ { head = $0; of = depth; next }
        head != "" { if (depth > of) print head; head = "" }
        { print }'
}
# same KEPT NEW : only what may be added is different: functions, fields that take their room from `reserved` (programs that were built
# before give zeros), constants of an enumeration. What else is different, on stdout.
same() {
    abidiff --no-added-syms --harmless "$1" "$2" >"$scratch/differences"
    told=$?
    if [ $((told & 3)) != 0 ] || [ $told -ge 128 ]; then # it could not compare
        echo "abidiff ends with $told"
        return 1
    fi
    without_reserved <"$scratch/differences" |
        grep -vE "underlying type 'struct [^']*' changed:" | # of a typedef; what did stands below
        grep -E '[1-9][0-9]* Removed|type size changed|data member change|deletion|enumerator change| changed:|return type changed| removed' \
            >"$scratch/bad" || return 0
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
kinds='enum kind { ONE, TWO };'
small='int small(const struct config *c);'
room='unsigned long reserved[4];'
# As public structs are, by a typedef; the last of each pair is told.
typed='int small(const config *c);'
build base "typedef struct config { int size, a; float b; $room } config; $kinds $typed"
build a_typed_field_from_what_is_reserved "typedef struct config { int size, a; float b; double c; unsigned long reserved[3]; } config; $kinds $typed"
build a_typed_field_gone "typedef struct config { int size, a; $room } config; $kinds $typed"
build another_typed_type "typedef struct config { int size, a; int b; $room } config; $kinds $typed"
expect same a_typed_field_from_what_is_reserved
expect differs a_typed_field_gone
expect differs another_typed_type
build base "struct config { int size, a; float b; $room }; $kinds $small"
build unchanged "struct config { int size, a; float b; $room }; $kinds $small"
build a_field_from_what_is_reserved "struct config { int size, a; float b; double c; unsigned long reserved[3]; }; $kinds $small"
build a_field_where_nothing_was "struct config { int size, a; float b; int c; $room }; $kinds $small"
build a_function_added "struct config { int size, a; float b; $room }; $kinds $small int more(void);" 'int more(void) { return 1; }'
build a_struct_grown "struct config { int size, a; float b; double c; $room }; $kinds $small"
build a_field_last "struct config { int size, a; float b; $room int c; }; $kinds $small"
build a_field_before_others "struct config { int size, c, a; float b; $room }; $kinds $small"
build a_field_before_others_from_what_is_reserved "struct config { double c; int size, a; float b; unsigned long reserved[3]; }; $kinds $small"
build another_type "struct config { int size, a; int b; $room }; $kinds $small"
build a_field_gone "struct config { int size, a; $room }; $kinds $small"
expect same unchanged
expect same a_field_from_what_is_reserved
expect same a_field_where_nothing_was
expect same a_function_added
expect differs a_struct_grown
expect differs a_field_last
expect differs a_field_before_others
expect differs a_field_before_others_from_what_is_reserved
expect differs another_type
expect differs a_field_gone
build base "struct config { int size, a; float b; $room }; $kinds $small int other(int x);" 'int other(int x) { return x; }'
build a_function_gone "struct config { int size, a; float b; $room }; $kinds $small"
build a_parameter_of_another_type "struct config { int size, a; float b; $room }; $kinds $small int other(long x);" 'int other(long x) { return (int)x; }'
expect differs a_function_gone
expect differs a_parameter_of_another_type
exit $failures
