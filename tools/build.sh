#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Configures and builds one preset of CMakePresets.json into build/PRESET. Says now and then how far it is; all else that was said is
# shown if it fails.
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

# `building release: 120/796 after 16 s`, seldom enough for a log: after 2, 4, 8, 16, 32 s, then every 32.
tell_progress() {
    waited=0 next=2
    while sleep 1 >/dev/null 2>&1; do
        waited=$((waited + 1))
        [ $waited -ge $next ] || continue
        next=$((next < 32 ? 2 * next : next + 32))
        done_so_far=$(sed -n 's/^\[ *\([0-9/%]*\)\].*/\1/p' "$log" | tail -n 1)
        echo "building $preset: ${done_so_far:-configuring} after $waited s" >&2
    done
}
echo "Building preset $preset; what is said stands in $log." >&2
: >"$log"
tell_progress &
teller=$!
trap 'kill $teller 2>/dev/null || :' EXIT
if ! { cmake --preset "$preset" $launcher "$@" && cmake --build --preset "$preset"; } >"$log" 2>&1; then
    cat "$log" >&2
    echo "The build of preset $preset failed (above; also in $log)." >&2
    exit 1
fi
echo "Built preset $preset in $(($(date +%s) - start)) s." >&2
