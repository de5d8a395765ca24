#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A driver that ends the process while it is asked for its devices is a row with a reason; the rest goes on.
. "$(dirname "$0")/common.sh"
layer=${CLV_TEST_LAYER:?the OpenCL layer that dies}

works env OPENCL_LAYERS="$layer" CLV_TEST_DIE_AT=99 "$cleave" devices --json # the layer alone changes nothing
same "the first device" "$(at devices.0.usable)" true
[ ! -s err ] || fail "stderr holds something: $(cat err)"

# What a driver says that lives is told, and stands not between results.
works env OPENCL_LAYERS="$layer" CLV_TEST_DIE_AT=99 CLV_TEST_SPEAK=1 CLEAVE_PROBE=guard "$cleave" devices --json
same "the first device" "$(at devices.0.usable)" true
grep -q 'a driver speaks' err || fail "what a driver says is lost: $(cat err)"

# dies HOW WHY : a driver dies so while it is probed, and while it is loaded, with a child ahead and under guard. What it says then is
# told by nobody. (PoCL's LLVM has taken the guard's place once it is loaded, and lets an abort pass; see below.)
dies() {
    for how_probed in child guard; do
        works env OPENCL_LAYERS="$layer" CLEAVE_PROBE=$how_probed CLV_TEST_DIE_AT=0 CLV_TEST_DIE_HOW="$1" "$cleave" devices
        grep -q "not usable: the driver of .* died while it was probed: $2" out || fail "$1: no reason: $(cat out)"
        cat out err | grep 'last words' && fail "$1: a dying driver speaks"
        [ "$1 $how_probed" = 'abort guard' ] && continue
        works env OPENCL_LAYERS="$layer" CLEAVE_PROBE=$how_probed CLV_TEST_DIE_HOW="$1" "$cleave" devices
        grep -q "not usable: a driver died while it was loaded: $2" out || fail "$1: no reason: $(cat out)"
        cat out err | grep 'last words' && fail "$1: a dying driver speaks"
    done
}
dies abort Aborted
dies exit 'it ended the process'
dies segv 'Segmentation fault'
dies stack 'Segmentation fault'

# One that does not answer: the command starts again after some seconds, with all its words.
expect 3 'cpu:7' env OPENCL_LAYERS="$layer" CLEAVE_PROBE=guard CLV_TEST_DIE_AT=0 CLV_TEST_DIE_HOW=hang "$cleave" check --device cpu:7

# looks WANTED WHAT : so many processes look at drivers in one command.
looks() {
    rm -f "$scratch/looks"
    works env OPENCL_LAYERS="$layer" CLV_TEST_DIE_AT=0 CLV_TEST_DIE_IF="$scratch/ill" CLV_TEST_COUNT="$scratch/looks" \
        CLEAVE_CACHE_DIR="$scratch/new/cache" "$cleave" devices
    same "processes, $2" "$(grep -c here "$scratch/looks")" "$1"
}
looks 2 'of drivers that nobody knows'
looks 1 'of drivers that have come through'
looks 1 'of the same'
mkdir elsewhere && cd elsewhere && looks 1 'called from elsewhere' && cd ..
printf 'damaged' >new/cache/drivers
looks 2 'after the note was damaged'
export CLV_TEST_OTHER=1
looks 2 'in another environment'
looks 1 'there again'
touch ill
looks 4 'after one has died under guard: that one, two children, and the command'
grep -q "not usable: the driver of .* died while it was probed: Aborted" out || fail "no reason: $(cat out)"
[ ! -e new/cache/drivers ] || fail "drivers that die are known as good ones"
rm ill
looks 2 'after it was ill'

# What nothing catches ends one command. The next one is careful.
ill() { env OPENCL_LAYERS="$layer" CLV_TEST_DIE_IF="$scratch/ill" CLEAVE_CACHE_DIR="$scratch/new/cache" "$cleave" devices; }
works ill
works ill
touch ill
ill >out 2>err && fail "it should have ended the command; see above"
works ill
grep -q 'not usable: a driver died while it was loaded: Aborted' out || fail "no reason: $(cat out)"
rm ill
looks 2 'after it was ill'
[ -e new/cache/drivers ] || fail "drivers that came through are not known"

# A pipe in the note's place: nobody is at its other end.
rm -f new/cache/drivers
mkfifo new/cache/drivers
works timeout 60 env CLEAVE_CACHE_DIR="$scratch/new/cache" "$cleave" devices
rm new/cache/drivers

"$helper" images 40 x.npy && "$helper" labels 40 y.npy || fail "no data"
expect 0 "slow" env OPENCL_LAYERS="$layer" "$cleave" train --images x.npy --labels y.npy --model linear --steps 2 --json
same "what is left" "$(at device)" host
expect 1 "cpu" env OPENCL_LAYERS="$layer" "$cleave" train --images x.npy --labels y.npy --model linear --device cpu
finish
