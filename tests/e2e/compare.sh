#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One training step on two devices: they agree, to the bit with themselves; arrays, weights, and what cannot be compared.
. "$(dirname "$0")/common.sh"
"$helper" images 16 x.npy && "$helper" labels 16 y.npy && "$helper" labels 8 y8.npy && "$helper" images 16 small.npy 1 4 4 || fail "no data"
compare() { "$cleave" compare --model mlp --device host --device "$device" "$@"; }

works compare --json
same "agreement" "$(at agree wrong_values drifted_values first | tr '\n' ' ')" "true 0 0 null "
same "devices" "$(at a model batch | tr '\n' ' ')" "host mlp 8 "
same "a value" "$(at values.1.op values.1.layer values.1.phase values.1.what values.1.variant_a | tr '\n' '|')" \
    "linear|fc1|forward|output 0|reference|"
at largest_drift equal_values judged_values tolerance values.0.verdict values.0.a values.0.b values.0.index sentence >/dev/null
works compare
grep -q " agree in all " out || fail "no sentence: $(cat out)"
works "$cleave" compare --model linear --device "$device" --device "$device" --json
same "a device with itself" "$(at equal_values)" "$(at values | sed 's/array of //')"
works compare --images x.npy --labels y.npy --batch 16 --seed 3 --classes 10 --json
same "given samples" "$(at batch values.1.elements | tr '\n' ' ')" "16 2048 "
if [ "$device" != host ]; then # no two devices round alike
    "$cleave" compare --model mlp --device host --device "$device" --tolerance 1e-15 >out 2>err
    same "drift" $? 1
    grep -q "have drifted apart by .* No op is wrong" out || fail "no word of drift: $(cat out err)"
fi
works "$cleave" train --images x.npy --labels y.npy --model mlp --device host --steps 1 --save w --quiet
works compare --weights w --json
works "$cleave" compare --device host --device "$device" --weights w # of the model that they tell
# weights of any sizes: those that they tell
"$helper" images 8 wide.npy 3 12 16 && awk 'BEGIN { for (i = 0; i < 40; i++) printf "what was said "; }' >text || fail "no data"
{ echo a,b,price && for i in 1 2 3 4 5 6 7 8 9; do echo "$i,$((i * i)),$i.5"; done; } >rows.csv
mkdir fields && "$helper" images 8 fields/left.npy 5 && "$helper" images 8 fields/right.npy 3 && "$helper" labels 8 fields/kind.npy
once="--device host --steps 1 --batch 4 --quiet"
works "$cleave" train --images wide.npy --labels y8.npy --classes 12 --model cnn $once --save cnn.weights
works "$cleave" train text text --vocabulary bytes --context 8 --width 8 --heads 2 --layers 1 $once --save gpt.weights
works "$cleave" train csv rows.csv --target price $once --save csv.weights
works "$cleave" train arrays fields --inputs left,right --target kind $once --save fields.weights
for weights in cnn gpt csv fields; do
    works "$cleave" compare --device host --device "$device" --weights $weights.weights --batch 2
done
"$helper" bare w nan fc1.weight
expect 1 "there is nothing to compare: 'fc1.weight' of the weights 'nan' has such a value (element 0 is nan)" compare --weights nan

expect 2 "which two devices? Give --device twice" "$cleave" compare --model mlp
expect 2 "which two devices?" "$cleave" compare --model mlp --device host --device host --device host
expect 2 "which model?" "$cleave" compare --device host --device host
expect 2 "nowhere" "$cleave" compare --model mlp --device host --device nowhere
expect 2 "--images and --labels belong together; --labels is missing" compare --images x.npy
expect 2 "variants 'foo=bar': there is no op 'foo'" compare --variants foo=bar
expect 2 "--tolerance wants a number greater than 0, not '0'" compare --tolerance 0
expect 1 "--images has 16 images, a batch of 17 was asked for" compare --images x.npy --labels y.npy --batch 17
expect 1 "missing.npy" compare --images missing.npy --labels y.npy
expect 1 "missing.safetensors" compare --weights missing.safetensors
finish
