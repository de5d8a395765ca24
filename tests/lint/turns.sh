#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What tests/turns.sh chooses, from lists of files and made-up commits: no history is read. Each part of each
# shard has to come.
# usage: turns.sh ROOT
set -eu
export LC_ALL=C
cd "$1"
turns=$PWD/tests/turns.sh run=$PWD/tests/drivers/run.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset CLEAVE_TURN CLEAVE_TOUCHED
failures=0
same() { # WHAT IS SHOULD
    [ "$2" = "$3" ] || { echo "$1: '$2' instead of '$3'" && failures=$((failures + 1)); }
}
ops_of() { printf '%s\n' "$@" | "$turns" ops 2>"$scratch/left" | tr '\n' ';'; }

# ---- which ops a file has
same "an op's file" "$(ops_of runtime/ops/mask.c)" 'causal_mask;'
same "a file of several ops" "$(ops_of runtime/ops/layer_norm.c)" 'layer_norm_backward layer_norm;'
same "its kernels again" "$(ops_of runtime/ops/softmax.c kernels_cl/softmax.cl)" \
    'softmax_backward log_softmax_backward softmax log_softmax;'
same "a file of one op" "$(ops_of runtime/ops/full.c)" 'full;'
same "two rows" "$(ops_of runtime/ops/elementwise.def:gelu runtime/ops/elementwise.def:add)" \
    'gelu gelu_backward;add;'
conv2d='conv2d conv2d_backward_input conv2d_backward_weight;'
same "kernels whose file has no op" "$(ops_of kernels_cl/conv2d_channels.cl)" "$conv2d"
same "attention by tiles" "$(ops_of runtime/ops/flash_attention.c)" 'self_attention_backward self_attention;'
pool=$(ops_of kernels_cl/pool.cl)
case $pool in *avg_pool2d*max_pool2d\ *) ;; *) same "what several include" "$pool" "each kind of pooling" ;; esac
gemm=$(ops_of runtime/ops/gemm.c)
case $gemm in *"${conv2d%;} "*linear*) ;; *) same "products by tiles" "$gemm" "convolution and linear" ;; esac
same "the newest first" "$(ops_of kernels_cl/mask.cl runtime/ops/full.c)" 'causal_mask;full;'
same "what is no op's" "$(ops_of README.md runtime/ops/README.md tests/ops/samples.c runtime/ops/list.cmake)" ''
# In a folder of its family an op's file is the same one; the new folders are found too.
same "a file in a folder" "$(ops_of runtime/ops/rows/layer_norm.c)" 'layer_norm_backward layer_norm;'

# ---- what is common to all runs nothing on every driver, and the log says so
same "a header that all include" "$(ops_of runtime/ops/lower.h runtime/ops/mask.c)" 'causal_mask;'
grep -q '^common to many, left to be drawn: runtime/ops/lower.h ([0-9]* ops)$' "$scratch/left" ||
    same "its note" "$(cat "$scratch/left")" "common to many"
same "all elementwise ops" "$(ops_of runtime/ops/elementwise.c)" ''
ops_of runtime/device/launch.h include/cleave/ops.h >"$scratch/out"
same "the runtime" "$(cat "$scratch/out" "$scratch/left")" "2 touched files of the library are no op's"
n=$(ops_of runtime/ops/*.c runtime/ops/*/*.c kernels_cl/*.cl | tr ' ;' '\n' | grep -c .)
[ "$n" -gt 12 ] && [ "$n" -le 24 ] || same "ops of all files" "$n" "24 at most"
grep -q '^beyond the first 24 ops, left to be drawn: .* runtime/ops/reduce/softmax.c' "$scratch/left" ||
    same "the note of all files" "$(cat "$scratch/left")" "beyond the first"
grep -q '^without an op of their own: .*kernels_cl/peak.cl' "$scratch/left" ||
    same "the note of all files" "$(cat "$scratch/left")" "without an op"

# ---- which tests
later() { printf '%s\n' "$@" | CLEAVE_TURN=$number "$turns" tests | sed -n 's/^later //p'; }
for number in 0 1 2 3 4 5 6; do later '' >"$scratch/later.$number"; done
same "turns of a long test, not one of seven" \
    "$(cat "$scratch"/later.* | sort | uniq -c | awk '$1 != 6' | wc -l)" 0
n_long=$(sort -u "$scratch"/later.* | wc -l)
number=0
later tests/e2e/README.md docs/data.md tests/README.md >"$scratch/out"
cmp -s "$scratch/out" "$scratch/later.0" || same "pages" "$(cat "$scratch/out")" "as if untouched"
same "a test's own file" "$(later tests/e2e/split.sh | grep -c 'e2e.split$' || true)" 0
same "a test's own file, on two devices" "$(later tests/e2e/data.sh | grep -c 'e2e.data.cpu' || true)" 0
same "one program of two tests" "$(later tests/faults/compilers.c | grep -c 'faults.compilers' || true)" 0
same "a program" "$(later tests/train/custom_op.c | grep -c train_custom_op || true)" 0
same "a changed folder" "$(later tests/system/README.md tests/system/common.sh | grep -c system || true)" 0
whole=$(echo tests/system/common.sh | CLEAVE_TURN=0 "$turns" tests | sed -n 's/^whole //p' | tr '\n' ' ')
same "has all its faults" "$whole" 'system.memory system.files '
same "a folder of many" "$(later tests/e2e/common.sh | wc -l)" $(($(wc -l <"$scratch/later.0") - 6))
same "the newest of many" "$(later tests/e2e/common.sh tests/e2e/icd.sh | grep -c e2e.icd || true)" 0
[ "$n_long" -gt 30 ] || same "long tests" "$n_long" "over 30"
same "without turns" "$(echo tests/e2e/data.sh | CLEAVE_TURN='' "$turns" tests)" ''

# ---- what a driver runs: a stand-in says which cases there are, and keeps what it was asked
cat >"$scratch/cleave" <<'END'
#!/bin/sh
case " $* " in
*" --list "*) for n in 5 9 20 50 100; do seq "$n" | sed "s,^,op$n/plan/,"; done ;;
*) echo "$*" >>"${0%/*}/asked" && echo "check on x: 1 case" ;;
esac
END
printf '#!/bin/sh\nshift 4\nexec "$@"\n' >"$scratch/oclgrind" # its options
chmod +x "$scratch/cleave" "$scratch/oclgrind"
asked() { # TOUCHED : of what Oclgrind's check was asked, shards drawn as I
    : >"$scratch/asked"
    CLEAVE_TURN=a CLEAVE_TOUCHED=$1 PATH=$scratch:$PATH "$run" "$scratch/cleave" oclgrind >"$scratch/out" ||
        same "the stand-in" "$(cat "$scratch/out")" "good"
    sed 's/--junit.*//; s/check --device oclgrind //; s/--quick.*differences\/\*/.../; s/ *$//
        s/--shard [0-9]*/--shard I/' "$scratch/asked" | tr '\n' ';'
}
same "nothing is touched" "$(asked '')" '--shard I/32 ...;'
same "ops of two files, one without cases there" "$(asked 'op9 op0 op20
op5')" '--shard I/32 ...;... --op op9 --op op20 --op op5;'
same "more cases than there is room for" "$(asked 'op9 op20
op50
op5')" '--shard I/32 ...;... --op op9 --op op20 --op op5;'
grep -q 'left to be drawn: op50;' "$scratch/out" ||
    same "its note" "$(cat "$scratch/out")" "left to be drawn: op50"
same "more cases than any has room for" "$(asked 'op100 op50
op5')" '--shard I/32 ...;--shard I/3 ... --op op100 --op op50;'
same "an op that a driver has no case of" "$(asked op0)" '--shard I/32 ...;'

drivers='pocl lanes nvidia embedded oclgrind work-group-1 rusticl host basic memory-1GiB null intel'
# shellcheck disable=SC2086  # words on purpose
listed() { "$run" --list "$scratch/cleave" $drivers | grep -e "${1:---shard}" || true; }
for driver in $drivers; do
    [ "$driver" = null ] || CLEAVE_TURN=a CLEAVE_TOUCHED=mul listed "^$driver: check .*--op mul" | grep -q . ||
        same "mul on $driver" "not run" "run"
done
same "before a release" "$(CLEAVE_TURN='' CLEAVE_TOUCHED=mul listed '--shard\|--op')" ''

# ---- draws: the number is the first 28 bits of SHA-256, of the commit and the part's name. A part of n is
# missed by m commits with (1 - 1/n)^m, so any of the n at most with n times that: 200 and 16 make 4e-5, 400
# and 32 1e-4.
CLEAVE_TURN=abc listed >"$scratch/abc"
CLEAVE_TURN=abc listed | cmp -s - "$scratch/abc" || same "the same commit" "other parts" "the same parts"
CLEAVE_TURN=abd listed | cmp -s - "$scratch/abc" && same "another commit" "the same parts" "others"
bits=$(printf 'abc part' | sha256sum | cut -c 1-7)
same "known bits" "$(CLEAVE_TURN=abc "$turns" number part)" $((0x$bits))
same "without turns" "$(CLEAVE_TURN='' "$turns" number part)$(CLEAVE_TURN='' "$turns" shard part 7)" 1/1
{
    sed 's/^\([^:]*\): check --shard \([0-9]*\).\([0-9]*\) *\(.*\)/\3 \2 \1 \4/' "$scratch/abc"
    for n in 2 3 4 5 7 8 16; do
        part=$(CLEAVE_TURN=abc "$turns" shard test "$n")
        echo "$n ${part%/*} test"
    done
} | sed 's/ *$//' >"$scratch/names" # N, the part of `abc`, name
mkdir "$scratch/texts" && cd "$scratch/texts"
i=0
while read -r n part name; do
    i=$((i + 1)) m=0
    printf 'abc %s' "$name" >"$i.$n.$part.abc"
    while [ $m -lt $((n > 16 ? 400 : 200)) ]; do
        m=$((m + 1))
        printf 'commit %d %s' "$m" "$name" >"$i.$n.$part.$m"
    done
done <"$scratch/names"
find . -type f -exec sha256sum {} + | awk '
    function hex(digits,    i, x) {
        for (i = 1; i <= 7; i++) x = 16 * x + index("0123456789abcdef", substr(digits, i, 1)) - 1
        return x
    }
    # How many of 200 commits have the same step from the part of i to that of j: some 13 to 25; by a count all.
    function together(i, j,    m, d, steps, worst) {
        for (m = 1; m <= 200; m++) {
            d = (drawn[i, m] - drawn[j, m] + 16) % 16
            if (++steps[d] > worst) worst = steps[d]
        }
        return worst
    }
    {
        split($2, at, "."); i = substr(at[2], 2); n[i] = at[3]
        part = drawn[i, at[5]] = hex($1) % n[i] + 1
        if (at[5] != "abc") came[i, part]
        else if (part != at[4]) print "line " i " of the names: not part " at[4] " of " n[i] " but " part
    }
    END {
        for (i in n) for (part = 1; part <= n[i]; part++)
            if (!((i, part) in came)) print "line " i " of the names: part " part " of " n[i] " never comes"
        for (i in n) for (j in n)
            if (i < j && n[i] == 16 && n[j] == 16 && together(i, j) > 40)
                print "lines " i " and " j " of the names: " together(i, j) " of 200 have the same step"
    }' >"$scratch/out"
[ ! -s "$scratch/out" ] || { cat "$scratch/out" "$scratch/names" && failures=$((failures + 1)); }
echo "$(wc -l <"$scratch/names") draws; $failures failures"
[ "$failures" = 0 ]
