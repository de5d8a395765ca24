#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A driver that ends the process while it is asked for its devices is a row with a reason; the rest goes on.
. "$(dirname "$0")/common.sh"
layer=${CLV_TEST_LAYER:?the OpenCL layer that dies}

works env OPENCL_LAYERS="$layer" CLV_TEST_DIE_AT=99 "$cleave" devices --json # the layer alone changes nothing
same "the first device" "$(at devices.0.usable)" true

works env OPENCL_LAYERS="$layer" CLV_TEST_DIE_AT=0 "$cleave" devices
grep -q 'not usable: the driver of .* died while it was probed' out || fail "no reason: $(cat out)"
works env OPENCL_LAYERS="$layer" "$cleave" devices
grep -q 'not usable: a driver died while it was loaded' out || fail "no reason: $(cat out)"

"$helper" images 40 x.npy && "$helper" labels 40 y.npy || fail "no data"
expect 0 "slow" env OPENCL_LAYERS="$layer" "$cleave" train --images x.npy --labels y.npy --model linear --steps 2 --json
same "what is left" "$(at device)" host
expect 2 "cpu" env OPENCL_LAYERS="$layer" "$cleave" train --images x.npy --labels y.npy --model linear --device cpu
finish
