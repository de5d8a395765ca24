#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every public header compiles alone, twice in a row, as C99, C11 and C++11, without a warning; and its stable part without the rest.
# usage: headers.sh ROOT [C compiler] [C++ compiler]
set -eu
cd "$1/include"
cc=${2:-cc}
cxx=${3:-c++}
failed=0
for header in cleave/*.h; do
    for language in c:c99 c:c11 c++:c++11 c++:c++17; do
        compiler=$cc
        [ "${language%%:*}" = c ] || compiler=$cxx
        printf '#include "%s"\n#include "%s"\n' "$header" "$header" |
            $compiler -x "${language%%:*}" -std="${language##*:}" -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I. - ||
            { echo "$header does not compile alone as ${language##*:}"; failed=1; }
    done
    printf '#include "%s"\n' "$header" | $cc -x c -std=c99 -DCLEAVE_STABLE_ONLY -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I. - ||
        { echo "$header: what is stable needs what is experimental"; failed=1; }
done
exit $failed
