#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The long form of the soak: 20,000 steps on the host and on each device that is named, without growth of memory, files or threads.
# usage: tests/misuse/soak.sh [PRESET [STEPS [DEVICE...]]]     PRESET dev, asan-ubsan or tsan; built first
set -eu
cd "$(dirname "$0")/../.."
preset=${1:-dev} steps=${2:-20000}
[ $# -gt 2 ] && shift 2 || set --
tools/build.sh "$preset"
export CLV_SOAK_STEPS="$steps"
LSAN_OPTIONS=suppressions=$PWD/tests/sanitizers/lsan.supp:print_suppressions=0
TSAN_OPTIONS=suppressions=$PWD/tests/sanitizers/tsan.supp:halt_on_error=1
export LSAN_OPTIONS TSAN_OPTIONS
soak=$(find "build/$preset" -name test_misuse_soak -type f)
"$soak"
for device; do CLV_SOAK_DEVICE=$device "$soak"; done
