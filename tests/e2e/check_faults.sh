#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A compiler that is wrong about one kernel: check fails, keeps the variant out of later plans, says what is used instead, and makes
# a program that shows the fault without Cleave. Each is held against the same without the fault.
. "$(dirname "$0")/common.sh"
layer=${CLV_TEST_LAYER:?the OpenCL layer that makes a compiler faulty}
export CLEAVE_CACHE_DIR="$scratch/cache" POCL_CACHE_DIR="$scratch/pocl"
unset CLEAVE_TUNING
mkdir pocl
check() { "$cleave" check --device cpu:0 --case 'relu/*/17 elements' "$@"; }
faulty() { OPENCL_LAYERS="$layer" CLV_TEST_REPLACE='int j = begin;=>int j = inner;' POCL_CACHE_DIR="$scratch/faulty" "$@"; }
mkdir faulty
chosen() { # the variant of relu in a plan
    "$cleave" plan mlp --batch 4 --device cpu:0 --fuse off --json >out 2>/dev/null
    grep -A 3 '"op": "relu"' out | grep -m 1 '"variant"' | sed 's/.*: "\(.*\)".*/\1/'
}
in_quarantine() { "$cleave" devices --json 2>/dev/null | "$helper" json devices.0.quarantine; }

# without the fault nothing is written; the variants of ops that are right are not touched
works check --json
same "verdicts" "$(at passed failed not_run avoided | tr '\n' ' ')" "4 0 0 array of 0 "
same "the plan's variant" "$(chosen)" rows
same "quarantine" "$(in_quarantine)" "array of 0"
cp out right.json

# with it: exit 1, one sentence, and unless it is recorded nothing changes
expect 1 "cases failed on cpu:0" faulty check --no-record
same "quarantine with --no-record" "$(in_quarantine)" "array of 0"
[ ! -e cache ] || ! grep -rl avoid cache >/dev/null 2>&1 || fail "--no-record recorded"
grep -q "^AVOIDED" out && fail "--no-record avoids: $(cat out)"
works check --json
cp out right.json

faulty check >out 2>err
same "exit" $? 1
grep -q "^FAILED relu, rows, sample '17 elements': out0\[[0-9]*\] is nan" out || fail "no failure: $(cat out)"
grep -q "^AVOIDED variant 'rows' of relu: plans use plain instead" out || fail "what is used instead is not told: $(cat out)"
file=$(sed -n 's/^written to //p' out)
grep -q '^avoid relu rows # check: relu, rows, sample' "$file" || fail "no line to avoid it in '$file': $(cat "$file")"
same "the next plan's variant" "$(chosen)" plain
"$helper" images 8 x.npy && "$helper" labels 8 y.npy || fail "no data"
works "$cleave" train --images x.npy --labels y.npy --model mlp --batch 8 --steps 1 --fuse off --device cpu:0 --profile
grep -q 'relu.*plain' out err || fail "train does not use plain: $(cat out)"
same "quarantine" "$(in_quarantine)" "array of 1"
works "$cleave" devices
grep -q "^cpu:0: in quarantine: variant 'rows' of relu: check: relu, rows" out || fail "devices does not tell: $(cat out)"
grep -qF -- 'to use it again: `cleave check --device cpu:0 --op relu`, once all its cases pass' out || fail "no way out: $(cat out)"
works "$cleave" env
grep -q "in quarantine .*variant 'rows' of relu: check: " out || fail "env does not tell: $(cat out)"
works "$cleave" env --json
same "env's quarantine" "$(at devices.0.quarantine.0.op devices.0.quarantine.0.variant | tr '\n' ' ')" "relu rows "
# a race does not take it back, nor does a check of a part of its cases; all of them do
works check
same "after a part" "$(chosen)" plain
works "$cleave" tune --model linear --batch 3 --op linear --seconds 0.05 --device cpu:0
grep -q '^avoid relu rows # check: ' "$file" || fail "tune took back what check had found: $(cat "$file")"
works "$cleave" check --device cpu:0 --op relu
grep -q "variant 'rows' of relu passes all its cases: plans use it again" out || fail "not taken back: $(tail -n 5 out)"
same "after all cases" "$(in_quarantine)" "array of 0"

# Elementwise ops share their variants: the one that is wrong is blamed, and no other. With nothing left a plan is refused; the check
# runs what is in quarantine all the same, and on a healthy driver takes it out.
OPENCL_LAYERS="$layer" CLV_TEST_REPLACE='(K(1.0) + exp(=>(K(1.5) + exp(' POCL_CACHE_DIR="$scratch/faulty" \
    "$cleave" check --device cpu:0 --case 'sigmoid/*/17 elements' --case 'relu/*/17 elements' >out 2>err
same "exit with a wrong sigmoid" $? 1
same "who is blamed" "$(grep '^avoid' "$file" | cut -d ' ' -f 1-3 | tr '\n' ' ')" "avoid sigmoid plain avoid sigmoid rows "
works "$cleave" check --device cpu:0 --op sigmoid
grep -q "variant 'plain' of sigmoid passes all its cases: plans use it again" out || fail "plain is not taken back: $(tail -n 5 out)"
same "after a healthy check" "$(in_quarantine)" "array of 0"

# a file that cannot be written is told, and is no other failure
if [ "$(id -u)" != 0 ]; then
    chmod a-w cache
    faulty check >out 2>err
    same "exit with a folder that is not writable" $? 1
    grep -q "^NOT recorded" out || fail "the folder's fault is not told: $(cat out)"
    chmod u+w cache
fi
expect 1 "cases failed" faulty check --tuning none
grep -q "^NOT recorded.*switched off" out || fail "--tuning none: $(cat out)"

# what got worse since
faulty check --no-record --baseline right.json >out 2>err
same "exit with a baseline" $? 1
grep -q "^WORSE relu/rows/17 elements: failed, and was passed" out || fail "nothing is worse: $(cat out)"
faulty check --no-record --json >wrong.json 2>err
works faulty check --no-record --baseline wrong.json # as wrong as it was
grep -q "^since wrong.json: 0 worse" out || fail "the same is worse: $(cat out)"
works check --baseline wrong.json
grep -q "^better relu/rows/17 elements: passed, and was known failure\|^better relu/rows/17 elements: passed, and was failed" out ||
    fail "nothing is better: $(cat out)"
echo "relu/rows/* # a note" >known.txt
echo "relu/plan/*" >>known.txt
works faulty check --no-record --known-failures known.txt --json
same "known failures" "$(at failed known passed | tr '\n' ' ')" "0 2 2 "
works faulty check --no-record --exclude '*/rows/*' --exclude '*/plan/*' --json
same "excluded" "$(at cases passed excluded | tr '\n' ' ')" "2 2 2 "

# TAP and JUnit with a failure, read by programs that know them
faulty check --no-record --tap --junit junit.xml >tap 2>err
same "exit with --tap" $? 1
grep -q '^not ok [0-9]* - relu/rows/17 elements$' tap && grep -q '^1\.\.5$' tap || fail "no TAP: $(cat tap)"
if command -v prove >/dev/null; then
    prove --exec cat tap >proved 2>&1 && fail "prove sees no failure: $(cat proved)"
    grep -q 'Failed 2/5 subtests' proved || fail "prove: $(cat proved)"
fi
same "tests of JUnit" "$(grep -c '<testcase ' junit.xml)" 5
grep -q 'tests="5" failures="2" errors="0" skipped="1"' junit.xml || fail "JUnit's counts: $(cat junit.xml)"
grep -q '<failure message="relu, rows, sample &apos;\|<failure message="relu, rows, sample '\''17 elements' junit.xml || fail "no failure: $(cat junit.xml)"
if command -v xmllint >/dev/null; then xmllint --noout junit.xml || fail "JUnit's XML is not well formed"; fi

# one case as a program: right on this driver, wrong where the fault is, and when its kernel is broken by hand
reproduce() { # reproduce NAME CASE : NAME.c and the program NAME
    "$cleave" check --device cpu:0 --reproduce "$2" >"$1.c" 2>err || { fail "no program of $2: $(cat err)"; return; }
    ${CC:-cc} -std=c11 -Wall -Wextra -Werror "$1.c" -lOpenCL -o "$1" 2>err || fail "$2 does not compile: $(head -n 5 err)"
    ./"$1" >said 2>&1
    same "$2 without Cleave" $? 0
    grep -q '^right$' said || fail "$2: $(cat said)"
}
reproduce rows 'relu/rows/17 elements'
faulty ./rows >said 2>&1
same "the faulty compiler, without Cleave" $? 1
grep -q 'WRONG: out0\[0\] is .*nan, should be' said || fail "the fault is not shown: $(cat said)"
sed 's/int j = begin;/int j = inner;/' rows.c >broken.c
${CC:-cc} broken.c -lOpenCL -o broken && ./broken >said 2>&1
same "a kernel broken by hand" $? 1
sed 's/STORE(EW_TO, KERNEL(epilogue)(v EPILOGUE_AT(r \* inner + j)), to + j);/& to[inner] = 1;/' rows.c >outside.c
cmp -s rows.c outside.c && fail "the kernel has changed: the test plants no write outside"
${CC:-cc} outside.c -lOpenCL -o outside && ./outside >said 2>&1
same "a kernel that writes outside" $? 1
grep -q 'which is in the guard before' said || fail "the write is not shown: $(cat said)"
reproduce plan 'relu/plan/17 elements'
faulty ./plan >said 2>&1
same "a planned case on the faulty compiler" $? 1
reproduce half 'add/plain/channels: [2,3,4,5] and [3,1,1], f16'
reproduce sums 'softmax/vector/rows of 33'
same "no such device" "$(./rows nothing >said; echo $?; cat said | tr '\n' ' ')" "3
could not run: there is no OpenCL device 'nothing' "
expect 2 "has no case 'relu/rows/nothing'" "$cleave" check --device cpu:0 --reproduce relu/rows/nothing
expect 2 "'conv2d/*' names " "$cleave" check --device cpu:0 --reproduce 'conv2d/*'
expect 2 "names 4 cases, and one is wanted; \`cleave check --list\` names them" "$cleave" check --device cpu:0 --reproduce 'relu/*/17 elements'
expect 3 "no device takes part" "$cleave" check --device cpu:0 --reproduce 'relu/differences/17 elements'
expect 3 "host runs no kernels" "$cleave" check --device host --reproduce 'relu/plan/17 elements'
finish
