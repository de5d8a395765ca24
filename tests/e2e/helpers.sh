#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Kernels compiled ahead by further processes of the tool: when nothing is cached, unless switched off, with the same result.
. "$(dirname "$0")/common.sh"
"$helper" images 64 x.npy && "$helper" labels 64 y.npy || fail "no data"
# train CACHE NAME : with what the driver has in that folder, once more or for the first time
train() {
    POCL_CACHE_DIR=$scratch/$1 works "$cleave" train --images x.npy --labels y.npy --model mlp --device "$device" --batch 16 \
        --epochs 1 --quiet --save "$2.safetensors" --json
}
mkdir with without
train without alone # CLEAVE_COMPILE_HELPER is empty in tests
same "helpers when there should be none" "$(at startup.helpers)" 0
unset CLEAVE_COMPILE_HELPER
most=$(($(getconf _NPROCESSORS_ONLN) - 1))
train with helped
helpers=$(at startup.helpers)
works "$cleave" devices --json
# Only where a driver compiles kernels when they are launched, one after another.
platform=$("$helper" json devices.0.platform_name <out)
if [ "$device" = host ] || [ "$most" = 0 ] || [ "$platform" != "Portable Computing Language" ]; then
    same "helpers" "$helpers" 0
else
    [ "$helpers" -ge 1 ] && [ "$helpers" -le "$most" ] && [ "$helpers" -le 3 ] || fail "$helpers helpers for $most processors"
fi
# whose cache it is: ours is not looked into where the driver has its own
POCL_CACHE_DIR=$scratch/with works "$cleave" train --images x.npy --labels y.npy --model mlp --device "$device" --steps 1
sed -n 's/ s to the first step: / /p' out | grep -o '[0-9]*\.[0-9][0-9]' | awk '{ if (NR == 1) sum = $1; else sum -= $1 } END { exit !(NR > 2 && sum * sum < 1e-6) }' ||
    fail "the parts are not the whole: $(grep 'first step' out)"
if [ "$platform" = "Portable Computing Language" ]; then
    grep -q "to the first step: .* s for [0-9]* program.* (the driver keeps a cache of its own), " out || fail "whose cache: $(grep 'first step' out)"
fi
cmp -s alone.safetensors helped.safetensors || fail "help changes the result"
export CLEAVE_COMPILE_HELPER=/no/such/program
mkdir absent
train absent unhelped
same "a helper that is not there" "$(at startup.helpers)" 0
cmp -s alone.safetensors unhelped.safetensors || fail "a helper that is not there changes the result"
"$cleave" compile-helper </dev/null >out 2>err && fail "a helper without work should exit with 1"
finish
