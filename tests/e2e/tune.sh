#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cleave tune: a file is written, used, printed, kept, pinned, switched off; what is wrong with one is told once. No time is
# judged: a test machine is busy.
. "$(dirname "$0")/common.sh"
export CLEAVE_CACHE_DIR="$scratch/cache"
unset CLEAVE_TUNING

expect 2 "--size wants MxNxK" "$cleave" tune --size 3x3
expect 2 "--size is for one product, and --model for models" "$cleave" tune --size 3x3x3 --model mlp
expect 2 "--batch needs a --model" "$cleave" tune --batch 3
expect 2 "--seconds wants" "$cleave" tune --seconds 0
expect 2 "--output wants a value" "$cleave" tune -o
expect 2 "unknown option '--tuning'" "$cleave" tune --tuning x
expect 1 "cannot tune host: it runs no kernels, so there is nothing to choose" "$cleave" tune --device host
[ "$device" != host ] || left_out "the host has no variants to choose from, and there is no other device"
expect 2 "unknown model 'nothing'" "$cleave" tune --model nothing --device "$device"
expect 2 "there is no op 'matmall'" "$cleave" tune --op matmall --device "$device"
expect 2 "no use of argmax leaves a choice of variants on" "$cleave" tune --op argmax --device "$device"
expect 1 "" "$cleave" tune --size 5x7x3 --device "$device" -o nowhere/t.tuning

choice() { # choice ARGUMENTS... : variant and reason of the plan's layer, behind what makes floats of pixels
    "$cleave" plan linear --batch 3 --device "$device" --json "$@" >out 2>err || fail "plan $*: $(cat err)"
    same "warnings of plan $*" "$(grep -c '^cleave: ' err)" "${warnings:-0}"
    "$helper" json choices.1.op choices.1.variant choices.1.chosen <out | tr '\n' ' '
}
ranked=$(choice)
case $ranked in "linear "*" ranked ") ;; *) fail "without a file: $ranked" ;; esac

# the winners of a model, in the file that every command finds
works "$cleave" tune --model linear --batch 3 --op linear --seconds 0.1 --device "$device" --json
file=$(at file)
[ "$(dirname "$file")" = "$scratch/cache" ] && [ -f "$file" ] || fail "the file is not in the cache's folder: $file"
at label seconds results.0.op results.0.key results.0.nodes results.0.median_us results.0.ranked results.0.ranked_us \
    results.0.candidates.0.variant >/dev/null
same "failures, kept, interrupted" "$(at failures kept interrupted | tr '\n' ' ')" "array of 0 0 false "
[ "$(grep -c '^linear f32\[3,784\];f32\[10,784\];f32\[10\];() ' "$file")" = 1 ] || fail "no line for linear: $(cat "$file")"
for line in cleave-tuning version device platform driver compute-units kernels end; do
    grep -q "^$line" "$file" || fail "the file has no $line: $(cat "$file")"
done
case $(choice) in "linear "*" tuned ") ;; *) fail "the file is not used: $(choice)" ;; esac
same "the same file twice" "$(choice)" "$(choice)"
works "$cleave" plan linear --batch 3 --device "$device"
grep -q 'linear .* tuned' out && grep -q '^variants: 0 pinned, 1 tuned' out || fail "the table does not tell: $(cat out)"
same "--tuning none" "$(choice --tuning none)" "$ranked"
same "CLEAVE_TUNING=none" "$(CLEAVE_TUNING=none choice)" "$ranked"
same "another batch" "$("$cleave" plan linear --batch 4 --device "$device" --json | "$helper" json choices.1.chosen)" ranked
same "a pin" "$(choice --variants linear=plain)" "linear plain pinned "

# by hand: another variant, in a file of one's own, in a folder of them; what is planned is what is taken
sed 's/^\(linear f32\[3,784\][^ ]*\) [^ ]* /\1 plain /' "$file" >own.tuning
same "a file of one's own" "$(choice --tuning own.tuning)" "linear plain tuned "
same "by the variable" "$(CLEAVE_TUNING=own.tuning choice)" "linear plain tuned "
mkdir folder && cp own.tuning "folder/$(basename "$file")"
same "a folder" "$(choice --tuning folder)" "linear plain tuned "
# pictures as bytes, as a plan takes them for; all are black
header="{'descr': '|u1', 'fortran_order': False, 'shape': (6, 1, 28, 28), }"
{ printf '\223NUMPY\001\000\166\000%-117s\n' "$header" && head -c 4704 /dev/zero; } >x.npy
"$helper" labels 6 y.npy || fail "no data"
works "$cleave" plan linear --batch 3 --train --device "$device" --tuning own.tuning --json
predicted=$(at devices.0.predicted_peak_bytes)
train="--images x.npy --labels y.npy --model linear --batch 3 --steps 2 --device $device --tuning own.tuning"
# shellcheck disable=SC2086
works "$cleave" train $train --save one.safetensors --json
same "peak" "$(at memory.0.peak_bytes)" "$predicted"
# shellcheck disable=SC2086
works "$cleave" train $train --save two.safetensors
cmp -s one.safetensors two.safetensors || fail "the same file, and other bits"

# time is over after the first use: the others are left, and what is known is kept
works "$cleave" tune --model mlp --batch 3 --seconds 0.001 --device "$device" -o short.tuning --json
same "measured" "$(at results interrupted | tr '\n' ' ')" "array of 1 false "
[ "$(at left)" -ge 1 ] || fail "nothing is left"
same "lines" "$(grep -c ';(.*) ' short.tuning)" 1 # and not of the device, Intel(R) and the like

# what is there stays; -o; --op; a file of something else is replaced
works "$cleave" tune --size 5x7x3 --seconds 0.1 --device "$device" --json
[ "$(at kept)" -ge 1 ] && grep -q '^matmul f32\[5,3\];f32\[3,7\];(0,0) ' "$file" && grep -q '^linear ' "$file" ||
    fail "the file does not hold both: $(cat "$file")"
echo "not a tuning file" >new.tuning
works "$cleave" tune --model linear --batch 2 --op linear --seconds 0.1 --device "$device" -o new.tuning
grep -q '^linear f32\[2,784\]' new.tuning && ! grep -q '^matmul' new.tuning || fail "--op does not keep to it: $(cat new.tuning)"
grep -q 'uses measured' out || fail "no table: $(cat out)"
ls new.tuning.* ./*.tmp 2>/dev/null && fail "something is left beside the file"

# what cannot be used is told in one line, and changes nothing
warnings=1
same "no such file" "$(choice --tuning gone.tuning)" "$ranked"
grep -q "tuning file 'gone.tuning' cannot be read: No such file or directory" err || fail "$(cat err)"
head -c 200 "$file" >cut.tuning
same "a cut file" "$(choice --tuning cut.tuning)" "$ranked"
grep -q "tuning file 'cut.tuning' is damaged" err || fail "$(cat err)"
sed 's/^driver .*/driver 0.0/' "$file" >driver.tuning
same "another driver" "$(choice --tuning driver.tuning)" "$ranked"
grep -q "'driver.tuning' is of another driver: '0.0', and here it is" err || fail "$(cat err)"
sed 's/^linear \([^ ]*\) [^ ]* /linear \1 tilde /; s/^matmul/matmall/' "$file" >unknown.tuning
same "unknown names" "$(choice --tuning unknown.tuning)" "$ranked"
grep -q "'unknown.tuning': line .* has no variant 'tilde'; lines skipped: 2" err || fail "$(cat err)"
{ sed '/^end/d' "$file" && echo 'avoid linear tile # it was wrong once' && echo end; } >avoid.tuning
choice --tuning avoid.tuning | grep -q '^linear tile' && fail "what is to be avoided is chosen"
grep -q "variant 'tile' of linear is not used on this device any more (.cleave devices. tells how to use it again): it was wrong once" err || fail "$(cat err)"
finish
