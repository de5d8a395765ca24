#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Words that must not stand in some places: what a library may not call, what stays below the device seam, vendors' names,
# special cases on ops outside their own file, numbers written by the program's locale.
. "$(dirname "$0")/common.sh"

library=$(our_files '*.c' '*.h' '*.def' | grep -E '^(include|runtime|backends)/' || true)
above=$(echo "$library" | grep -E '^(include|runtime)/' || true)
kernels=$(our_files '*.cl')
all=$(echo "$library" && echo "$kernels")
vendors='nvidia|geforce|amd|radeon|rocm|intel|mali|adreno|powervr|apple|pocl|rusticl|llvmpipe|clover|mesa|oclgrind'

# search FILES PATTERN GREP-OPTIONS... : code lines that match, comments left out.
search() {
    search_files=$1 search_pattern=$2
    shift 2
    [ -n "$search_files" ] || return 0
    # shellcheck disable=SC2086
    search_files=$(grep -l -E "$@" "$search_pattern" $search_files) || return 0 # the others need no stripping
    # shellcheck disable=SC2086
    without_comments $search_files | grep -E "$@" "^[^:]*:[0-9]*:.*($search_pattern)" || true
}
# calls FILES NAME : each call of a function of that name on a line of its own, arguments and all.
calls() {
    # shellcheck disable=SC2086
    without_comments $1 | awk -v name="(^|[^A-Za-z0-9_])$2[[:space:]]*[(]" '
        {
            at = index($0, ": "); where = substr($0, 1, at); line = substr($0, at + 1)
            while (line != "") {
                if (!inside) {
                    if (!match(line, name)) break
                    inside = 1; depth = 0; quote = ""; call = where; line = substr(line, RSTART + RLENGTH - 1)
                }
                n = length(line)
                for (i = 1; i <= n; i++) {
                    c = substr(line, i, 1)
                    if (quote != "") { if (c == "\\") i++; else if (c == quote) quote = "" }
                    else if (c == "\"" || c == "\047") quote = c
                    else if (c == "(") depth++
                    else if (c == ")" && --depth == 0) break
                }
                call = call " " substr(line, 1, i)
                if (i > n) break
                print call
                inside = 0; line = substr(line, i + 1)
            }
        }'
}
scratch=$(mktemp)
trap 'rm -f "$scratch"' EXIT

strings=blank
search "$library" '(^|[^A-Za-z0-9_])(_?exit|_Exit|quick_exit|abort|v?printf|v?fprintf|puts|putchar|perror|system)[[:space:]]*\(' \
    >"$scratch"
search "$library" '(^|[^A-Za-z0-9_])(stdout|stderr)([^A-Za-z0-9_]|$)' >>"$scratch"
tell_all "a library never exits, aborts or prints" <"$scratch"

search "$above" '(^|[^A-Za-z0-9_])(cl_[a-z]+|CL_[A-Z_]+|cl[A-Z][A-Za-z]+)([^A-Za-z0-9_]|$)' >"$scratch"
tell_all "OpenCL stays below the device seam" <"$scratch"

search "$library" '(^|[^A-Za-z0-9_])(switch|case)[^A-Za-z0-9_].*CLV_+OP_' >"$scratch"
outside_ops=$(echo "$library" | grep -v '^runtime/ops/' || true)
search "$outside_ops" '[!=]=[[:space:]]*&clv_+op_' >>"$scratch"
strings=keep
search "$outside_ops" 'str(case)?cmp\([^,]*op(->|\.)name' >>"$scratch"
tell_all "no special case on an op: the descriptor says it" <"$scratch"

quirk_free=$(echo "$all" | grep -v -E '^backends/(opencl/quirks|null/cards)' || true)
# An extension's name is one word, a compiler's option is not.
search "$quirk_free" "(^|[^A-Za-z0-9_])($vendors)([^A-Za-z0-9_]|$)" -i | grep -v -e ' -cl-[a-z]*-' >"$scratch" || true
# Where the same code serves every device, not even a comment leans on one of them.
neutral=$(echo "$above" | grep -E '^runtime/(ops|plan|graph|exec)/' || true)
# shellcheck disable=SC2086
[ -z "$neutral" ] || grep -H -n -i -w -E "$vendors" $neutral >>"$scratch" || true
sort -u "$scratch" >"$scratch.sorted"
tell_all "vendors are named in the tables of quirks and of cards that are not here only" <"$scratch.sorted"
rm -f "$scratch.sorted"

search "$library" '"[^"]*[( `]--[a-z][a-z-]*[^"]*"' | grep -v '`cleave ' >"$scratch" || true
tell_all "sentences of the library name fields and functions; options are the command's" <"$scratch"

# Numbers go in and out through base/number.h: a locale's comma is no point. The command line is in "C", which main.c sees to.
numbers=$(echo "$library" | grep -v '^runtime/base/number\.' || true)
tools=$(our_files '*.c' '*.h' | grep '^tools/' || true)
strings=blank
search "$numbers" '(^|[^A-Za-z0-9_])(strto(d|f|ld)(_l)?|atof|vs?n?printf|vsn?printf|v?f?scanf|(set|use|new)locale|localeconv|strn?casecmp|to(low|upp)er)[[:space:]]*\(' \
    >"$scratch"
search "$(echo "$tools" | grep -v '^tools/cleave/main\.c$' || true)" '(^|[^A-Za-z0-9_])(set|use|new)locale[[:space:]]*\(' >>"$scratch"
strings=keep
real='%[-+ #0]*([0-9]+|[*])?([.]([0-9]+|[*]))?[lL]?[aAeEfFgG]'
# shellcheck disable=SC2086
with_reals=$([ -z "$numbers" ] || grep -l -E "$real" $numbers || true)
[ -z "$with_reals" ] || calls "$with_reals" 's(n?printf|scanf)' | sed 's/%%//g' | grep -E "$real" >>"$scratch" || true
tell_all "numbers go through base/number.h and letters through base/text.h, in any locale the same" <"$scratch"

search "$kernels" '(^|[^A-Za-z0-9_])(native_[a-z0-9]+|atomic_[a-z_]+|atom_[a-z_]+)[[:space:]]*\(' >"$scratch"
tell_all "no native_ functions, no atomics: same bits twice" <"$scratch"

search "$(echo "$kernels" | grep -v -E '^kernels_cl/common/(matrix|storage)\.cl$' || true)" '(^|[^A-Za-z0-9_])(__asm|asm|__builtin_[a-z]+_[a-z0-9_]+|intel_[a-z0-9_]+)([[:space:]]+volatile)?[[:space:]]*\(' >"$scratch"
tell_all "one maker's instructions stand in common/matrix.cl and common/storage.cl" <"$scratch"

# Names that went: ops, optimizers and losses of a program are custom ones; arrays have a clv_dtype.
search "$all" '(^|[^A-Za-z0-9])(own_op|clv_own|CLV_OWN|OWN_OP|CLV_ARRAY_)' >"$scratch"
tell_all "an old spelling" <"$scratch"
finish
