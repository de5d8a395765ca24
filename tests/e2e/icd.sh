#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Why a driver is missing: every .icd file and form of OCL_ICD_VENDORS that does not load is a row with the reason, which
# --device gpu repeats. And what devices may say of themselves (says_layer.c): embedded profiles, hostile names.
. "$(dirname "$0")/common.sh"
no_driver=$3
says=$4
folder=/etc/OpenCL/vendors
mkdir v
cp $folder/pocl.icd v/ 2>/dev/null || echo "no PoCL"
echo libno-such-driver.so.1 >v/a-missing.icd
: >v/b-empty.icd
printf '\nlibpocl.so.2\n' >v/c-blank.icd
echo "$no_driver" >v/d-none.icd
head -c 4096 /dev/urandom >v/junk.so
echo "$scratch/v/junk.so" >v/e-junk.icd
ln -s nowhere v/g-link.icd
mkdir v/h-folder.icd
printf '\033[31mname\n' >v/i-hostile.icd

# told NAME REASON : in the table and in the JSON of `devices`
told() {
    grep -F -- "$1" table | grep -qF -- "not usable: " || fail "no row of $1: $(cat table)"
    tr '\n' ' ' <json | sed 's/},/},\n/g' | grep -F "\"label\": \"$1\"" | grep -qF -- "$2" || fail "$1: not '$2': $(cat json)"
}
export OCL_ICD_VENDORS="$scratch/v"
works timeout 60 "$cleave" devices
mv out table
works timeout 60 "$cleave" devices --json
mv out json
told a-missing.icd "libno-such-driver.so.1: cannot open shared object file"
told b-empty.icd "b-empty.icd' is empty"
told c-blank.icd "c-blank.icd' names no library in its first line"
told d-none.icd "is no OpenCL driver: it has no function clIcdGetPlatformIDsKHR"
told e-junk.icd "junk.so: "
told g-link.icd "g-link.icd' cannot be read: No such file or directory"
told h-folder.icd "h-folder.icd' is no file"
told i-hostile.icd "?[31mname: cannot open shared object file"
grep -q "$(printf '\033')" table json && fail "a terminal's code gets out"
[ ! -e v/pocl.icd ] || grep -q '^cpu:0' table || fail "what loads is gone: $(cat table)"
! grep -q 'pocl.icd' table || fail "what loads is told as missing"
# --device gpu with no GPU repeats it, and a driver that fails is no wrong usage
expect 1 "a-missing.icd; not usable: libno-such-driver.so.1: cannot open" "$cleave" plan linear --device gpu
expect 3 "libno-such-driver" "$cleave" check --device gpu # its own code for what could not run
expect 1 "libno-such-driver" "$cleave" train --model linear --images x --labels y --device gpu:1
expect 1 "libno-such-driver" env CLEAVE_VISIBLE_DEVICES=gpu "$cleave" devices
expect 2 "libno-such-driver" "$cleave" check --device no-such-name

# the other forms of the variable
form() {
    works env OCL_ICD_VENDORS="$1" "$cleave" devices --json
    grep -qF -- "$2" out || fail "OCL_ICD_VENDORS=$1: not '$2': $(cat out)"
}
form "$scratch/v/a-missing.icd" "libno-such-driver.so.1: cannot open shared object file"
form "$no_driver" "is no OpenCL driver"
form libno-such-driver.so.9 "libno-such-driver.so.9: cannot open shared object file"
form "$scratch/nowhere" "nowhere: cannot open shared object file"
form "$scratch/nowhere/" "cannot be read: No such file or directory"
mkdir none
form "$scratch/none" "has no .icd file"
if [ -e v/pocl.icd ]; then
    works env OCL_ICD_VENDORS="$scratch/v/pocl.icd" "$cleave" devices --json
    ! grep -q '"type": "other"' out || fail "a driver that loads is told as missing: $(cat out)"
fi
unset OCL_ICD_VENDORS
works env OPENCL_VENDOR_PATH="$scratch/none" "$cleave" devices --json
grep -qF 'has no .icd file' out || fail "OPENCL_VENDOR_PATH: $(cat out)"

# ---- what devices say of themselves ---------------------------------------------------------------------------------------
export OPENCL_LAYERS="$says"
say() { CLV_TEST_SAYS="$1" "$cleave" devices --json --quiet >out 2>err || fail "devices that say $1: $(cat err)"; }
if [ -e v/pocl.icd ]; then
    say ''
    same "a full profile" "$(at devices.0.profile devices.0.int64 devices.0.usable | tr '\n' ' ')" "full true true "
    say embedded
    same "an embedded profile" "$(at devices.0.profile devices.0.int64 devices.0.usable | tr '\n' ' ')" "embedded false true "
    say "embedded int64"
    same "an embedded profile" "$(at devices.0.profile devices.0.int64 devices.0.usable | tr '\n' ' ')" "embedded true true "
    for why in "finite:no infinities and NaN" "arguments:bytes of arguments"; do
        say "embedded ${why%%:*}"
        same "${why%%:*}" "$(at devices.0.usable)" false
        at devices.0.reason | grep -qF "${why#*:}" || fail "$why: $(at devices.0.reason)"
    done
    # what rusticl's llvmpipe cannot do its cards can
    say rusticl
    same "a card of rusticl" "$(at devices.0.type devices.0.traits.loop_turns | tr '\n' ' ')" "gpu 0 "
    # it trains, without a 64-bit integer in any kernel, to the same weights
    "$helper" images 40 x.npy && "$helper" labels 40 y.npy || fail "no data"
    train() { "$cleave" train --model linear --images x.npy --labels y.npy --steps 2 --device cpu:0 --quiet "$@"; }
    export CLV_TEST_SAYS=embedded
    works train --save embedded.safetensors
    works "$cleave" check --quick --op dropout --device cpu:0
    works "$cleave" check --quick --op adaptive_avg_pool2d --device cpu:0
    unset CLV_TEST_SAYS
    works train --save full.safetensors
    "$helper" close embedded.safetensors full.safetensors 1e-4 >/dev/null || fail "an embedded profile gives other weights"
    # rounded toward zero, groups of 12, 4 KiB of local memory, 4 MiB in a piece: other bits, the same network
    train_mlp() { "$helper" last "$cleave" train --model mlp --images x.npy --labels y.npy --steps 10 --batch 8 --device cpu:0 --quiet "$@"; }
    train_cnn() { train_mlp --model cnn --steps 3 --batch 4 --optimizer sgd "$@"; } # Adam's moments are more than 16 MiB
    works train_mlp --save nearest.safetensors
    works train_cnn --save nearest-cnn.safetensors
    export CLV_TEST_SAYS="embedded toward-zero tiny"
    works train_mlp --save zero.safetensors
    works train_cnn --save zero-cnn.safetensors
    for op in matmul softmax layer_norm; do works "$cleave" check --quick --op $op --device cpu:0; done
    unset CLV_TEST_SAYS
    "$helper" close zero.safetensors nearest.safetensors 1e-4 >/dev/null || fail "rounding toward zero gives another network"
    "$helper" close zero-cnn.safetensors nearest-cnn.safetensors 1e-3 >/dev/null || fail "rounding toward zero gives another CNN"
    ! cmp -s zero.safetensors nearest.safetensors || fail "nothing was rounded toward zero"
    # names that would move a cursor
    export CLV_TEST_SAYS=names
    for words in devices "devices --json" env "env --json" "check --device gpu" "plan linear --device cpu:0"; do
        # shellcheck disable=SC2086  # words on purpose
        "$cleave" $words >out 2>err
        LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177]')" out err && fail "$words: control characters get out"
        LC_ALL=C grep -q "$(printf '\302[\200-\237]')" out err && fail "$words: control characters of UTF-8 get out"
    done
    say names
    [ "$(at devices.0.label | wc -c)" -le 202 ] || fail "a name of $(at devices.0.label | wc -c) bytes"
    unset CLV_TEST_SAYS
fi
unset OPENCL_LAYERS

# words and variables
evil=$(printf '\033]0;x\007\033[2J\r\nname\302\2331m')
long=$(head -c 5000 /dev/zero | tr '\0' 'n')
for word in "$evil" "$long"; do
    for command in @ "train @" "check --device host|@ --op @" "plan @" "run --model @" "cache @" "top @" \
        "report -o @/x --device host" "train --model linear --images @ --labels y --device host"; do
        set --
        for part in $command; do
            case $part in *@*) part=${part%%@*}$word${part#*@} ;; esac
            set -- "$@" "$part"
        done
        timeout 60 "$cleave" "$@" >out 2>err </dev/null && fail "$command: exit 0"
        cat out err >both
        LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177]')" both && fail "$command: control characters get out: $(cat -v both)"
        LC_ALL=C grep -q 'n\{201\}' both && fail "$command: a name of more than 200 bytes"
    done
    for variable in CLEAVE_VISIBLE_DEVICES CLEAVE_PARTITION CLEAVE_VARIANTS CLEAVE_CACHE_DIR CLEAVE_TUNING; do
        env "$variable=$word" "$cleave" env >both 2>&1
        LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177]')" both && fail "$variable: control characters get out: $(cat -v both)"
    done
done
finish
