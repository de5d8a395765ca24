#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Words that must not stand in some places: what a library may not call, what stays below the device seam, vendors' names,
# special cases on ops outside their own file.
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
    without_comments $search_files | grep -E "$@" "^[^:]*:[0-9]*:.*($search_pattern)" || true
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
search "$quirk_free" "(^|[^A-Za-z0-9_])($vendors)([^A-Za-z0-9_]|$)" -i >"$scratch"
# Where the same code serves every device, not even a comment leans on one of them.
neutral=$(echo "$above" | grep -E '^runtime/(ops|plan|graph|exec)/' || true)
# shellcheck disable=SC2086
[ -z "$neutral" ] || grep -H -n -i -w -E "$vendors" $neutral >>"$scratch" || true
sort -u "$scratch" >"$scratch.sorted"
tell_all "vendors are named in the tables of quirks and of cards that are not here only" <"$scratch.sorted"
rm -f "$scratch.sorted"

search "$library" '"[^"]*[( `]--[a-z][a-z-]*[^"]*"' | grep -v '`cleave ' >"$scratch" || true
tell_all "sentences of the library name fields and functions; options are the command's" <"$scratch"

search "$kernels" '(^|[^A-Za-z0-9_])(native_[a-z0-9]+|atomic_[a-z_]+|atom_[a-z_]+)[[:space:]]*\(' >"$scratch"
tell_all "no native_ functions, no atomics: same bits twice" <"$scratch"
finish
