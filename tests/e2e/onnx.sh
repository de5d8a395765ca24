#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Models of ONNX files by every command: run, eval, plan, bench, tune, compare, train and its weights; and what is refused.
. "$(dirname "$0")/common.sh"
models=$(cd "$(dirname "$0")/../onnx/models" && pwd)
cp "$models"/*.onnx . && "$helper" images 20 wide.npy && "$helper" labels 20 y5.npy %5+0 || fail "no data"
works "$cleave" plan cnn.onnx --device "$device"
grep -q "^total .* 169 " out || fail "parameters: $(grep total out)"

# the file is model and weights; others say so
works "$cleave" run --model cnn.onnx --input wide.npy --device "$device" --output a.npy
works "$cleave" eval --model cnn.onnx --images wide.npy --labels y5.npy --device "$device" --json
before=$(at test_loss)
works "$cleave" train --model cnn.onnx --images wide.npy --labels y5.npy --device "$device" --epochs 8 --batch 10 \
    --save w.safetensors --json
works "$cleave" eval --weights w.safetensors --images wide.npy --labels y5.npy --device "$device" --json
awk "BEGIN { exit !($(at test_loss) < $before) }" || fail "the loss was $before and is $(at test_loss)"
works "$cleave" run --weights w.safetensors --input wide.npy --device "$device" --output b.npy
"$helper" near a.npy b.npy 1e-6 >/dev/null && fail "training changed nothing"
works "$cleave" bench --model cnn.onnx --batch 2 --device "$device" --runs 1 --seconds 0.01 --json
same "measured" "$(at results.0.case results.0.mode results.1.mode | tr '\n' ' ')" "cnn.onnx b2 train infer "
if [ "$device" != host ]; then
    works "$cleave" tune --model cnn.onnx --batch 2 --device "$device" --seconds 0.5 -o tuned --json
    [ -s tuned ] || fail "nothing is written down: $(cat err)"
    works "$cleave" compare --model cnn.onnx --device host --device "$device"
fi
works "$cleave" train --model cnn.onnx --classes 7 --except 'classifier.*' --images wide.npy --labels y5.npy --device "$device" \
    --epochs 1 --json
works "$cleave" train --model cnn.onnx --classes 7 --images wide.npy --labels y5.npy --device "$device" --epochs 1 --save seven.safetensors
grep -qF "'cnn.onnx' has 5 classes, and here are 7: 'classifier.weight,classifier.bias' gets new first weights" err ||
    fail "not told: $(cat err)"
works "$cleave" eval --weights seven.safetensors --images wide.npy --labels y5.npy --device "$device"
# pictures of a folder are cut to what the file was made for
pictures=$models/../../golden/images
if "$cleave" train images "$pictures" --model mlp --image-size 12 --device host --steps 1 --quiet --save p.safetensors >out 2>err; then
    works "$cleave" export --weights p.safetensors -o p.onnx
    works "$cleave" train images "$pictures" --model p.onnx --steps 1 --device "$device"
    grep -q 'each \[3,12,12\]' out err || fail "other sizes than the file's: $(cat out err)"
fi

# and out again: what was trained, any model of ours, what its weights tell
works "$cleave" export --weights w.safetensors -o trained.onnx --json
works "$cleave" run --model trained.onnx --input wide.npy --device "$device" --output f.npy
"$helper" near b.npy f.npy 1e-5 >/dev/null || fail "an exported model gives other results"
printf 'size,colour,price\n1,red,3\n2,blue,5\n3,red,7\n4,blue,9\n5,red,11\n' >rows.csv
works "$cleave" train csv rows.csv --target price --steps 3 --device "$device" --save rows.safetensors
works "$cleave" export --weights rows.safetensors -o rows.onnx
grep -aq '"colour"' rows.onnx || fail "the file does not tell the columns"
expect 2 "--model and --output are both 'cnn.onnx': one would overwrite the other" "$cleave" export --model cnn.onnx -o cnn.onnx
expect 2 "--output wants a file" "$cleave" export --weights w.safetensors
expect 2 "its name must end in .onnx" "$cleave" export --weights w.safetensors -o w.pb
expect 2 "--weights wants a file" "$cleave" export -o w.onnx
expect 2 "which model?" "$cleave" export --weights "$models/cnn.safetensors" -o w.onnx

# a batch that the file fixes is told; the row of batch norm is batch norm, whatever comes behind it
works "$cleave" plan cnn.onnx --device "$device" --json
[ "$(at batch)" = 64 ] || fail "the batch is $(at batch)"
works "$cleave" export --weights w.safetensors -o fixed.onnx --batch 3
works "$cleave" plan fixed.onnx --device "$device"
grep -qF "'fixed.onnx' has 3 as the first dimension of its inputs, which is the batch and may be any: 64 is planned, --batch 3 plans" err ||
    fail "the file's batch is not told: $(cat err)"
works "$cleave" plan fixed.onnx --batch 3 --device "$device"
grep -q "first dimension" err && fail "a batch that was asked for is told: $(cat err)"

# where the layer before computes batch norm, its row says what comes then
if [ "$device" = cpu:0 ]; then
    works "$cleave" plan cnn.onnx --device "$device"
    grep -q '^  1  *then max_pool2d ' out || fail "a row of batch norm: $(cat out)"
fi

# named arrays: the file says its inputs and results, of one of each, too; its own weights, and others
"$helper" fields 200 d.npz
works "$cleave" train arrays d.npz --target 'kind,price=mse*0.5' --model linear --device "$device" --epochs 5 --save of.safetensors
works "$cleave" export --weights of.safetensors -o two.onnx
works "$cleave" train arrays d.npz --inputs a --target price --model linear --device "$device" --epochs 1 --save of1.safetensors
works "$cleave" export --weights of1.safetensors -o one.onnx
close() { awk "BEGIN { d = $2 - $3; exit !(d < 1e-4 && d > -1e-4) }" || fail "$1: $2 is not $3"; }
for of in of.safetensors:two.onnx of1.safetensors:one.onnx; do
    file=${of#*:}
    works "$cleave" eval arrays d.npz --weights "${of%:*}" --device "$device" --metric price:mae --json
    mae=$(at metrics.price:mae 2>/dev/null)
    works "$cleave" eval arrays d.npz --model $file --device "$device" --metric price:mae --json
    close "mae of $file" "$(at metrics.price:mae)" "$mae"
    works "$cleave" run arrays d.npz --weights "${of%:*}" --device "$device" --output before.npz
    works "$cleave" run arrays d.npz --model $file --device "$device" --output after.npz
    same "results of $file" "$("$helper" shapes after.npz)" "$("$helper" shapes before.npz)"
    close "prices of $file" "$("$helper" told after.npz d.npz price)" "$("$helper" told before.npz d.npz price)"
    works "$cleave" train arrays d.npz --model $file --device "$device" --epochs 1 --save more.safetensors
    works "$cleave" run arrays d.npz --weights more.safetensors --device "$device" --output after.npz
    works "$cleave" compare --model $file --device "$device" --device "$device"
done
mkdir other less # arrays of other names
"$helper" fields 200 other/q.npy a && "$helper" fields 200 other/r.npy price && "$helper" fields 200 less/a.npy a || fail "no arrays"
works "$cleave" train arrays other --model one.onnx --target r --device "$device" --steps 1 --quiet
expect 1 "'less' has no array 'b', it has a" "$cleave" run arrays less --model two.onnx --device "$device" --output x.npz

# dimensions that the file leaves open: field TAG TEXT is a field of the wire format
field() { printf "\\$(printf %03o "$1")\\$(printf %03o ${#2})%s" "$2"; }
dim() { field 10 "$(field 18 "$1")"; }
shape=$(field 10 "$(printf '\010\001'; field 18 "$(dim N; dim height; dim width)")")
relu=$(field 10 x; field 18 y; field 34 Relu)
graph=$(field 10 "$relu"; field 90 "$(field 10 x; field 18 "$shape")"; field 98 "$(field 10 y)")
{ printf '\010\010'; field 58 "$graph"; field 66 "$(printf '\020\021')"; } >open.onnx
expect 1 "dimension 1 of the input 'x' is open: say how large 'height' is (--dims height=128)" "$cleave" plan open.onnx
expect 1 "'open.onnx' has no open dimension 'heigth' behind the batch (--dims)" "$cleave" plan open.onnx --dims width=4,heigth=4
"$helper" images 5 open.npy 6 28
works "$cleave" run --model open.onnx --dims width=28,height=6 --input open.npy --device "$device" --output d.npy
works "$cleave" run --model open.onnx --dims width=28,height=6 --input d.npy --device "$device" --output e.npy
"$helper" near d.npy e.npy 1e-9 >/dev/null || fail "Relu of a Relu is another"
expect 1 "images 'wide.npy' of shape [1,28,28] do not fit model 'open.onnx', which wants [6,28]" \
    "$cleave" run --model open.onnx --dims width=28,height=6 --input wide.npy --device "$device" --output x.npy
"$helper" near d.npy open.npy 1e-2 >/dev/null && fail "Relu changed nothing"

# named arrays: a model of several inputs takes them by its names, one of tokens is learnt of them
port() { field 90 "$(field 10 "$1"; field 18 "$(field 10 "$(printf '\010\001'; field 18 "$(dim N; dim 6)")")")"; }
graph=$(field 10 "$(field 10 a; field 10 b; field 18 y; field 34 Sub)"; port a; port b; field 98 "$(field 10 y)")
{ printf '\010\010'; field 58 "$graph"; field 66 "$(printf '\020\021')"; } >sub.onnx
mkdir pair texts && "$helper" images 5 pair/a.npy 6 && cp pair/a.npy pair/b.npy || fail "no arrays"
works "$cleave" run arrays pair --model sub.onnx --dims 6=6 --device "$device" --json
same "a - a" "$(at results.y.shape.0 results.y.shape.1 results.y.values.4.5 | tr '\n' ' ')" "5 6 0 "
"$helper" tokens 9 6 texts/x.npy && "$helper" tokens 9 6 texts/next.npy || fail "no tokens"
works "$cleave" train arrays texts --target next --model tokens.onnx --device "$device" --epochs 2 --batch 3 --save t.safetensors --json
works "$cleave" eval arrays texts --weights t.safetensors --validation 1 --device "$device" --json
works "$cleave" run arrays texts --weights t.safetensors --device "$device" --output t.npz
works "$cleave" run --model tokens.onnx --input texts/x.npy --device "$device" --output t.npy
# of one input and one result by the file's names, too
works "$cleave" run arrays texts --model tokens.onnx --device "$device" --output c.npz

# a result [N,C,height,width] is logits of C classes where the target has classes, numbers where it has numbers; the losses are PyTorch's
cp "$models/places.npz" . || fail "no places"
places() { works "$cleave" train arrays places.npz --inputs x --target $1 --model places.onnx --device "$device" --epochs 1 --batch 8 \
    --validation 0 --no-standardize --optimizer sgd --lr 1e-9 --json; }
places y
close "the loss of classes" "$(at train_loss)" 1.42584348
places z
close "the loss of numbers" "$(at train_loss)" 1.08093333

# whole numbers and truth values are fed as NumPy has them; %b of the bytes that follow
npy() { printf '\223NUMPY\001\000\166\000%-117s\n%b' "{'descr': '$1', 'fortran_order': False, 'shape': ($2), }" "$3"; }
port() { field 90 "$(field 10 "$1"; field 18 "$(field 10 "$(printf "\\010\\$2"; field 18 "$(dim N; dim 3)")")")"; }
graph=$(field 10 "$(field 10 k; field 10 k; field 18 twice; field 34 Add)"
        field 10 "$(field 10 m; field 10 twice; field 10 k; field 18 y; field 34 Where)"; port k 007; port m 011; field 98 "$(field 10 y)")
{ printf '\010\010'; field 58 "$graph"; field 66 "$(printf '\020\021')"; } >whole.onnx
mkdir whole
npy '<i8' '2, 3' '\01\0\0\0\0\0\0\0\0376\0377\0377\0377\0377\0377\0377\0377\03\0\0\0\0\0\0\0\04\0\0\0\0\0\0\0\05\0\0\0\0\0\0\0\0\01\0\0\0\0\0\0' >whole/k.npy
npy '|b1' '2, 3' '\0\01\01\01\0\0' >whole/m.npy
works "$cleave" run arrays whole --model whole.onnx --dims 3=3 --device "$device" --json
same "whole numbers" "$(for i in 0 1; do at results.y.values.$i.0 results.y.values.$i.1 results.y.values.$i.2; done | tr '\n' ' ')" "1 -4 6 8 5 256 "
works "$cleave" run arrays texts --model tokens.onnx --device "$device" --output i32.npz
npy '<i8' '1, 6' '\01\0\0\0\0\0\0\0\02\0\0\0\0\0\0\0\03\0\0\0\0\0\0\0\04\0\0\0\0\0\0\0\05\0\0\0\0\0\0\0\06\0\0\0\0\0\0\0' >i64.npy
npy '<i4' '1, 6' '\01\0\0\0\02\0\0\0\03\0\0\0\04\0\0\0\05\0\0\0\06\0\0\0' >i32.npy
for type in i64 i32; do works "$cleave" run --model tokens.onnx --input $type.npy --device "$device" --output $type.out.npy; done
cmp -s i64.out.npy i32.out.npy || fail "tokens of 64 bits are others than of 32"

# labels that have no places of their own are learnt by CTC, of results [T,N,C], of all steps or of those that count; the losses are PyTorch's
cp "$models/sounds.npz" . || fail "no sounds"
sounds() { works "$cleave" "$@" --device "$device" --batch 8 --json; }
learn="--model sounds.onnx --target y=ctc --validation 0 --no-shuffle --optimizer sgd --lr 0.5 --schedule constant"
sounds train arrays sounds.npz $learn --inputs x --epochs 1
close "the loss of all steps" "$(at train_loss)" 3.74514294
sounds train arrays sounds.npz $learn --inputs x,input_lengths --epochs 2 --save sounds.safetensors
close "the loss after a step" "$(at train_loss)" 2.07975507
sounds eval arrays sounds.npz --model sounds.onnx --target y=ctc --inputs x,input_lengths --validation 1
close "the loss on the host" "$(at test_loss)" 2.45214939
sounds eval arrays sounds.npz --weights sounds.safetensors --validation 1
works "$cleave" run arrays sounds.npz --weights sounds.safetensors --device "$device" --output told.npz
same "a row for each sample" "$("$helper" shapes told.npz)" "y [8,7,5]"
works "$cleave" run arrays sounds.npz --model sounds.onnx --device "$device" --output told.npz
same "the batch first" "$("$helper" shapes told.npz)" "y [8,7,5]"

# weights that are no numbers are told by name
"$helper" bare w.safetensors nan.safetensors classifier.bias
works "$cleave" export --model cnn.onnx --weights nan.safetensors -o nan.onnx
expect 1 "'classifier.bias' of the weights 'nan.onnx' has such a value (element 0 is nan)" \
    "$cleave" run --model nan.onnx --input wide.npy --device "$device" --output n.npy

# refused
head -c 900 cnn.onnx >cut.onnx
expect 1 "it is cut or damaged" "$cleave" run --model cut.onnx --input wide.npy --output c.npy
expect 1 "is an array of numpy" sh -c 'cp wide.npy x.onnx && exec "$0" run --model x.onnx --input wide.npy --output c.npy' "$cleave"
mkdir elsewhere && mv cnn.onnx elsewhere
expect 2 "which is not there: --model FILE.onnx says where it is" "$cleave" run --weights w.safetensors --input wide.npy --output c.npy
works "$cleave" run --model elsewhere/cnn.onnx --weights w.safetensors --input wide.npy --device "$device" --output c.npy
cmp -s b.npy c.npy || fail "other results from another folder"
finish
