#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What cleave env tells, and what it must not: names of people, and variables that are none of its business.
. "$(dirname "$0")/common.sh"
mkdir home
env() { command env HOME="$scratch/home" "$@"; }

works env CLEAVE_CACHE_DIR="$scratch/home/cache" POCL_TEST="/home/ann/x:/home/bob,$scratch/homely" SECRET_TOKEN=hidden \
    CLEAVE_SECRET= "$cleave" env --json
same "variables" "$(at environment.CLEAVE_CACHE_DIR environment.POCL_TEST environment.CLEAVE_SECRET | tr '\n' '|')" \
    "~/cache|~/x:~,$scratch/homely||"
grep -q "SECRET_TOKEN\|hidden" out && fail "a variable that is none of ours is told"
grep -q "$scratch/home/\|/home/\(ann\|bob\)" out && fail "a home folder is told"
same "version" "$(at cleave.version)" "$("$cleave" --version | sed 's/cleave //')"
at cleave.build cleave.compiler cleave.opencl cleave.clblast system.os system.kernel system.machine system.processors \
    system.usable_processors system.memory_bytes cache.folder cache.programs cache.bytes cache.state drivers libraries.0 >/dev/null
works "$cleave" env --json
n=$(at devices | sed 's/array of //')
same "devices" "$(at "devices.$((n - 1)).name" "devices.$((n - 1)).usable" | tr '\n' ' ')" "host true "
at devices.0.quirks devices.0.reason devices.0.driver devices.0.memory_bytes devices.0.fp16 devices.0.gemm >/dev/null
works env CLEAVE_TEST=1 "$cleave" env
grep -qE '^  memory limit  *([0-9.]+ [KMGT]iB|-)$' out && ! sed '/^environment/,$d;/^drivers/,/^[a-z]/d' out | grep -qE '^  [a-z]+_' ||
    fail "names of fields are told: $(grep -E '^  [a-z]+_|limit' out)"
grep -qx "device host" out && grep -q "^  CLEAVE_TEST  *1$" out && grep -q "^  version  *[0-9]" out || fail "the text: $(cat out)"
chmod 700 home && mkdir -p home/open && chmod 777 home/open
works env CLEAVE_CACHE_DIR="$scratch/home/open" "$cleave" env --json # a cache that cannot be used is told, and no failure
at cache.state | grep -q "other users can write" || fail "the state of the cache: $(at cache.state)"
if [ -w /dev/full ]; then
    "$cleave" env >/dev/full 2>err
    same "exit code with a full stdout" $? 1
fi
# whatever the variables say: it comes out, with the fault as a line
for wrong in CLEAVE_VISIBLE_DEVICES=gpu:77 CLEAVE_VISIBLE_DEVICES=, CLEAVE_PARTITION=cpu:0=0 CLEAVE_PARTITION=nonsense \
    CLEAVE_PARTITION=host=2 CLEAVE_VARIANTS=nonsense 'CLEAVE_VARIANTS=matmul=no-such'; do
    works env "$wrong" "$cleave" env --json
    case $(at faults) in "array of 1") ;; *) fail "$wrong: $(at faults)" ;; esac
    same "$wrong: a sentence" "$(grep -c '^cleave: ' err)" 1
    at devices.0.name >/dev/null
    works env "$wrong" "$cleave" env
    grep -q '^faults' out || fail "$wrong: no line of the fault: $(cat out)"
done
works env CLEAVE_CACHE_DIR=/dev/null/x CLEAVE_TUNING=/nowhere CLEAVE_PROBE=nonsense CLEAVE_DEBUG=x "$cleave" env --json
at cache.state faults >/dev/null
works env CLEAVE_VISIBLE_DEVICES=gpu:77 CLEAVE_VARIANTS=nonsense "$cleave" report -o page.html --device host
grep -q "gpu:77" page.html && grep -q "nonsense" page.html || fail "the page has no line of the faults"
expect 2 "one word too many" "$cleave" env now
finish
