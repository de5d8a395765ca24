#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Configures and builds one preset of CMakePresets.json into build/PRESET, quietly; all that was said is shown if it fails.
# usage: tools/build.sh PRESET [CMake options...]
set -eu
cd "$(dirname "$0")/.."
preset=$1
shift
launcher=
command -v ccache >/dev/null && launcher=-DCMAKE_C_COMPILER_LAUNCHER=ccache
start=$(date +%s)
mkdir -p build
log=build/$preset.log
if ! { cmake --preset "$preset" $launcher "$@" && cmake --build --preset "$preset"; } >"$log" 2>&1; then
    cat "$log" >&2
    echo "The build of preset $preset failed (above; also in $log)." >&2
    exit 1
fi
echo "Built preset $preset in $(($(date +%s) - start)) s." >&2
