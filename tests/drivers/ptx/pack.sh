#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A folder to carry to a machine whose card has its vendor's compute driver and none for OpenCL: kernels, launches, values, and the program
# that runs them there. FOLDER/ptx FOLDER; it needs no compiler there. tools/gpu-day.sh --pack takes it along as FOLDER/ptx.
#
# usage: pack.sh LAUNCHES FOLDER      LAUNCHES: build/dev/tests/drivers/meter_launches
# Exit 77: clang-15 and libclc-15 are not installed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
library=/usr/lib/clc/nvptx64--nvidiacl.bc
command -v clang-15 >/dev/null && [ -e $library ] || { echo "ptx: clang-15 and libclc-15 are not installed: left out" >&2; exit 77; }
mkdir -p "$2"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" "$work" null:h200
for source in "$work"/*.cl; do
    name=${source##*/}
    clang-15 -x cl -cl-std=CL1.2 -Xclang -finclude-default-header -Wno-everything -O3 -target nvptx64-nvidia-cuda -Xclang -target-cpu \
        -Xclang sm_70 -Xclang -target-feature -Xclang +ptx63 -Xclang -mlink-builtin-bitcode -Xclang $library -S "$source" \
        -o "$2/${name%.cl}.ptx"
done
cp "$work/data.bin" "$2/"
clang-15 -O1 -w -DMETER_NO_CALLS "-I$here/../meter" "$here/ptx.c" "$work/nodes.c" -ldl -lm -o "$2/ptx"
