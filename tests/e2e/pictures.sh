#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A folder of pictures on the command line: a model learns to tell its classes apart and is measured with its weights; the same weights
# whatever the number of threads; broken pictures are told, or refused; what is no such folder is told in one sentence.
pictures=$(cd "$(dirname "$0")/../golden/images" && pwd)
. "$(dirname "$0")/common.sh"

mkdir -p f/one f/two
if ! "$cleave" train images "$pictures" --model mlp --image-size 12 --device host --steps 1 --quiet >out 2>err; then
    expect 1 'built without libjpeg and libpng; install both' "$cleave" train images "$pictures" --device "$device"
    left_out "built without libjpeg and libpng"
fi
cp "$pictures"/jpeg/*.[jJ]* f/one && cp "$pictures"/png/*.[pP]* f/two || fail "no pictures"
small="--model mlp --image-size 12 --batch 5 --device $device --quiet --optimizer sgd --lr 0.02 --schedule constant"

works "$cleave" train images f --val f $small --augment none --epochs 60 --save w.safetensors --json
awk "BEGIN { exit !($(at test_accuracy) > 0.9) }" || fail "thirteen pictures are not learnt: $(at test_accuracy)"
same "broken pictures" "$(at broken_pictures)" 0
loss=$(at test_loss)
works "$cleave" eval images f --model mlp --image-size 12 --classes 2 --weights w.safetensors --device "$device" --json
awk "BEGIN { exit !($(at test_loss) - $loss < 1e-6 && $loss - $(at test_loss) < 1e-6) }" || fail "evaluated again the loss is $(at test_loss), not $loss"
same "pictures tested on" "$(at count)" 13

# A training without a size goes on with what its pictures were cut to, to the bits of one that was not interrupted.
works "$cleave" train images f --model mlp --batch 5 --device "$device" --quiet --schedule constant --epochs 2 --save straight.safetensors
works "$cleave" train images f --model mlp --batch 5 --device "$device" --quiet --schedule constant --epochs 1 --checkpoint own.ckpt
works "$cleave" train images f --model mlp --batch 5 --device "$device" --quiet --schedule constant --epochs 2 --resume own.ckpt --save resumed.safetensors
cmp straight.safetensors resumed.safetensors || fail "a resumed training of pictures of their own size has other weights"
cp "$0" lines.txt
expect 1 "'lines.txt' is a text: \`cleave generate --prompt TEXT\` goes on with one" "$cleave" run images lines.txt --weights w.safetensors

# The weights know model, size and classes: three commands need nothing but paths.
works "$cleave" eval images f --weights w.safetensors --device "$device" --per-class --json
same "by what weights tell" "$(at correct) $(at per_class.macro.f1)" "13 1"
same "classes" "$(at per_class.classes.0.name per_class.classes.0.targets per_class.classes.1.name per_class.confusion.1.1 | tr '\n' ' ')" 'one 5 two 8 '
works "$cleave" eval images f --weights w.safetensors --device "$device" --per-class
grep -qE '^two +1.0000 +1.0000 +1.0000 +8 +8 +8$' out || fail "no row of class two: $(cat out)"
grep -qE '^two +0 +8$' out || fail "no confusions of class two: $(cat out)"
mkdir -p short unknown && cp -r f/two short/ && cp -r f/two unknown/ && cp -r f/one unknown/zebra
works "$cleave" eval images short --weights w.safetensors --device "$device" --json # a class has the number that it had
same "of a folder short of a class" "$(at correct) of $(at count)" "8 of 8"
expect 1 "'unknown' has a class 'zebra', which the model was not trained on; its classes are one, two" \
    "$cleave" eval images unknown --weights w.safetensors --device "$device"
expect 1 "--except LAYER.* gives the last layer new first weights" "$cleave" train images unknown --weights w.safetensors $small
works "$cleave" train images unknown --weights w.safetensors --except fc2 $small --steps 1
sed 's/one\\",\\"two/two\\",\\"one/' w.safetensors >swapped.safetensors
works "$cleave" eval images f --weights swapped.safetensors --device "$device" --json # the names decide, not the order of folders
same "with classes the other way round" "$(at correct)" 0
works "$cleave" train images short --val short --weights w.safetensors --device "$device" --quiet --augment none --lr 0.0001 --steps 1 --json
same "trained on with one class" "$(at test_accuracy)" 1
for words in "--model linear" "--classes 3" "--image-size 14"; do
    # shellcheck disable=SC2086
    expect 2 "leave ${words% *} out" "$cleave" eval images f --weights w.safetensors --device "$device" $words
    # shellcheck disable=SC2086
    expect 2 "leave ${words% *} out" "$cleave" run images f --weights w.safetensors --device "$device" $words
done
# a large model that begins from nothing on few pictures, because none was named
"$cleave" train images f --image-size 32 --freeze no.such --device "$device" >out 2>err && fail "a layer that is not there is frozen"
grep -qF "resnet18 is trained from scratch, and 13 pictures are few for that" err || fail "few pictures: $(cat err)"
"$cleave" train images f --model cnn --image-size 32 --freeze no.such --device "$device" >out 2>err
grep -q "begins from nothing" err && fail "a model that was named is called too large: $(cat err)"
expect 2 "'w.safetensors' gives one of 2 classes for each picture: leave --labels out" "$cleave" eval images f --labels t.csv \
    --weights w.safetensors --device "$device"
works "$cleave" train images f --val f $small --augment none --steps 1 --exif-transpose --save-best best.safetensors --checkpoint e.ckpt
"$helper" told_by best.safetensors cleave.record | grep -qF '"resize":14,"exif_transpose":true' || fail "how pictures were read is not told"
for weights in best.safetensors e.ckpt; do
    works "$cleave" eval images f --weights $weights --device "$device" --json
    same "pictures tested with $weights" "$(at count)" 13
done

# The same pictures as bytes in arrays are normalised as the weights tell, each channel; channels last are refused.
mkdir -p b/one b/two named && "$helper" bitmaps b x.npy y.npy last.npy && cp x.npy named/x.npy && cp y.npy named/kind.npy || fail "no bitmaps"
works "$cleave" train images b --model mlp --image-size 14 --batch 8 --device "$device" --quiet --augment none --steps 5 --save b.safetensors
use="--weights b.safetensors --device $device"
works "$cleave" eval images b $use --json
loss=$(at test_loss)
works "$cleave" eval --images x.npy --labels y.npy $use --json
same "loss of bytes in arrays" "$(at test_loss)" "$loss"
works "$cleave" eval arrays named --target kind $use --validation 1 --json
same "loss of bytes in named arrays" "$(at test_loss)" "$loss"
grep -qF "'named': bytes are normalised as the weights tell" err || fail "eval arrays does not tell the normalisation: $(cat err)"
works "$cleave" run images b $use --output told.csv
works "$cleave" run --input x.npy $use --output logits.npy
grep -qF "'x.npy': bytes are normalised as the weights tell, (x / 255 - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225) of each channel" err ||
    fail "no word of the normalisation: $(cat err)"
same "predictions of bytes" "$("$helper" likeliest logits.npy | sed 's/^0/one/; s/^1/two/' | tr '\n' ' ')" \
    "$(sed 1d told.csv | awk -F, '{ printf "%s,%.3f ", $2, $3 }')"
mends="their channels are last (NHWC) and must be first (NCHW); numpy mends it with x.transpose(0, 3, 1, 2)"
expect 1 "$mends" "$cleave" run --input last.npy $use --output o.npy
expect 1 "numpy mends it with x.transpose(0, 3, 1, 2)" "$cleave" eval --images last.npy --labels y.npy $use
mkdir turned && cp last.npy turned/x.npy && cp y.npy turned/kind.npy
expect 1 "numpy mends it with x.transpose(0, 3, 1, 2)" "$cleave" eval arrays turned --target kind $use
# Named arrays that go on from them: what they were normalised with is kept, for run arrays too.
works "$cleave" train arrays named --target kind $use --batch 8 --steps 1 --quiet --save n.safetensors
works "$cleave" eval arrays named --weights n.safetensors --validation 1 --device "$device" --json
loss=$(at test_loss)
works "$cleave" eval --images x.npy --labels y.npy --weights n.safetensors --classes 2 --device "$device" --json
same "loss of named arrays, trained on" "$(at test_loss)" "$loss"
works "$cleave" run arrays named --weights n.safetensors --device "$device" --output n.npz
expect 1 "numpy mends it with x.transpose(0, 3, 1, 2)" "$cleave" run arrays turned --weights n.safetensors --device "$device" --output n.npz

# Without such weights bytes are 0 to 1, in run as in train and eval.
works "$cleave" train --images x.npy --labels y.npy --model mlp --classes 2 --batch 8 --steps 3 --device "$device" --quiet --save p.safetensors
works "$cleave" eval --images x.npy --labels y.npy --weights p.safetensors --device "$device" --json
right=$(at correct)
works "$cleave" run --input x.npy --weights p.safetensors --device "$device" --output plain.npy
same "right ones of bytes" "$("$helper" likeliest plain.npy | awk -F, '{ right += $1 == (NR > 4) } END { print right }')" "$right"
works "$cleave" train arrays named --target kind --batch 8 --steps 3 --device "$device" --quiet --save q.safetensors
works "$cleave" run arrays named --weights q.safetensors --device "$device" --output q.npz
same "results of bytes" "$("$helper" shapes q.npz)" "kind [8,2]"

"$helper" bare w.safetensors bare.safetensors # of another program: as before
expect 2 "which model?" "$cleave" eval images f --weights bare.safetensors --device "$device"
works "$cleave" eval images f --weights bare.safetensors --model mlp --image-size 12 --classes 2 --device "$device" --json
same "of another program" "$(at correct)" 13
bare="--weights bare.safetensors --model mlp --image-size 12 --device $device"
works "$cleave" eval images f $bare --per-class --json # as many classes as folders, which name them
same "classes by the folders" "$(at correct per_class.classes.0.name per_class.classes.1.name per_class.confusion.1.1 | tr '\n' ' ')" '13 one two 8 '
grep -qF "'bare.safetensors' does not tell what it was trained on: pictures are normalized as ImageNet's, and classes are numbered in the order of their names" err ||
    fail "it is not told what stands in for what weights tell: $(cat err)"
# a folder that is missing would give the others its number
expect 1 "'short' has folders of 1 class, and the model has 2, whose names 'bare.safetensors' does not hold" "$cleave" eval images short $bare --classes 2
cp -r f f3 && cp -r f/two f3/zebra
expect 1 "is of a model with 2 classes, this one has 3" "$cleave" eval images f3 $bare
expect 1 "labels of 3 classes do not fit model 'mlp', which has 2" "$cleave" eval images f3 $bare --classes 2
expect 1 "[128,432] and must be [128,588]; the model was built for the samples, [3,14,14]" "$cleave" eval images f --weights bare.safetensors \
    --model mlp --image-size 14 --device "$device"

cp -r f latin && mv latin/two "latin/tw$(printf '\364')"
expect 1 "class 'tw?': its name is not UTF-8, and weights keep the names of classes; rename its folder" \
    "$cleave" train images latin --model mlp --image-size 12 --epochs 1 --device "$device"
# run images: one file, several, folders with classes and without; table, CSV, JSON.
works "$cleave" run images f/two/color.png --weights w.safetensors --device "$device"
grep -qE '^f/two/color.png +two +0\.9[0-9]{3}$' out || fail "a picture is told as: $(cat out)"
works "$cleave" run images f --weights w.safetensors --device "$device" --top 2 --batch 4 --output told.csv
"$cleave" run images f --weights w.safetensors --device "$device" --top 2 --batch 4 -o - 2>err | cmp -s - told.csv || fail "what pictures show goes to stdout as: $(cat err)"
same "the head" "$(head -n 1 told.csv)" file,label,probability,label2,probability2
same "the right classes" "$(awk -F'[/,]' 'NR > 1 && $2 == $4' told.csv | wc -l | tr -d ' ')" 13
awk -F, 'NR > 1 { s = $3 + $5; if (s < 0.999 || s > 1.001) bad = 1 } END { exit bad }' told.csv || fail "probabilities: $(cat told.csv)"
cp f/one/color.jpg 'a, b.jpg'
works "$cleave" run images f/two/tiny.png 'a, b.jpg' f/one --weights w.safetensors --device "$device" --output told.csv
same "names in quotes" "$(sed -n 3p told.csv | cut -d, -f1-3)" '"a, b.jpg",one'
works "$cleave" run images f/two/tiny.png f/one --weights w.safetensors --device "$device" --json
same "JSON" "$(at pictures.0.file pictures.0.labels.0.label pictures.5.labels.0.label broken_pictures | tr '\n' ' ')" 'f/two/tiny.png two one 0 '
same "memory of run" "$(at memory.0.peak_bytes)" "$(at memory.0.predicted_peak_bytes)"
works "$cleave" run images f/one/grey.jpg --weights bare.safetensors --model mlp --image-size 12 --classes 2 --device "$device" --json
same "without names" "$(at pictures.0.labels.0.label)" 0
# shellcheck disable=SC2046
works "$cleave" run images $(yes f/two/tiny.png | head -n 40) f/one/grey.jpg --weights w.safetensors --device "$device" --output told.csv
same "any number of files" "$(wc -l <told.csv | tr -d ' ') $(tail -n 1 told.csv | cut -d, -f1-2)" '42 f/one/grey.jpg,one'
mkdir damaged && cp f/one/grey.jpg damaged/b.jpg && head -c 500 f/one/color.jpg >damaged/a.jpg
{ head -c 60 f/two/color.png; head -c 40 /dev/zero; tail -c +101 f/two/color.png; } >damaged/c.png # shows when it is decoded
expect 0 "2 pictures are broken and skipped" "$cleave" run images damaged --weights w.safetensors --device "$device" --output told.csv
same "of those that are whole" "$(sed 1d told.csv | cut -d, -f1-2)" damaged/b.jpg,one
expect 1 "'damaged/a.jpg' is a broken JPEG: it is cut off" "$cleave" run images damaged --weights w.safetensors --device "$device" --strict
expect 1 "cannot read 'none.jpg'" "$cleave" run images f/one none.jpg --weights w.safetensors --device "$device"
mkdir -p nothing && expect 1 "'nothing' has no pictures" "$cleave" run images nothing --weights w.safetensors --device "$device"

# Weights that are no numbers: told, and no success.
"$helper" bare w.safetensors nan.safetensors fc2.weight
expect 1 "'fc2.weight' of the weights 'nan.safetensors' has such a value (element 0 is nan)" "$cleave" run images f/one --weights nan.safetensors --device "$device" --output nan.csv
"$cleave" eval images f --weights nan.safetensors --device "$device" --json >out 2>err && fail "NaN weights are measured, and that is told as a success"
grep -qF "results of 13 of 13 samples are not finite (NaN or infinity); 'fc2.weight' of the weights 'nan.safetensors'" err || fail "NaN weights: $(cat err)"
same "counted all the same" "$(at correct)" 0

# What is drawn does not depend on the threads.
for workers in 1 3; do
    works "$cleave" train images f $small --color-jitter 0.4 --epochs 2 --workers $workers --save w$workers.safetensors
done
cmp w1.safetensors w3.safetensors || fail "other weights from other numbers of threads"
works "$cleave" train images f $small --augment flip --epochs 2 --save flip.safetensors
cmp -s w1.safetensors flip.safetensors && fail "--augment changes nothing"

# A folder of parts: trained on train, tested on val; where one part is wanted, or a part has no classes, a sentence.
mkdir -p parts/val parts/train && cp -r f/one f/two parts/train && cp -r f/one f/two parts/val || fail "no parts"
works "$cleave" train images parts --model mlp --image-size 12 --steps 1 --device "$device" --json
same "tested by itself" "$(at test_accuracy | grep -c '^[01]')" 1
grep -qF "'parts' holds the splits of a data set: images 'parts/train' --val 'parts/val'" err || fail "no word of parts: $(cat err)"
expect 1 "'parts' holds the splits of a data set ('train') instead of folders of classes: give one of them, 'parts/train'" \
    "$cleave" eval images parts --weights w.safetensors --device "$device"
mkdir -p flat/train flat/test && cp f/one/* flat/train && cp f/two/* flat/test || fail "no flat parts"
expect 1 "'flat' holds the splits of a data set ('train')" "$cleave" train images flat $small
mkdir -p road/train road/bus && cp f/one/* road/train && cp f/two/* road/bus || fail "no vehicles"
works "$cleave" train images road $small --steps 1 --save road.safetensors # a class of that name is one among others
works "$cleave" eval images road --weights road.safetensors --device "$device"

# Too small for a model: how large they must be is said.
expect 1 "model 'vgg11' takes images of 32x32 at least, and these are 16x16: --image-size 32 makes them larger" "$cleave" train images f --model vgg11 --image-size 16 --device "$device"
expect 1 "model 'vgg11' takes images of 32x32 at least, and these are 16x16: --input-size 3x32x32" "$cleave" plan vgg11 --input-size 3x16x16 --device "$device"

# Mixed, smoothed, resumed; and drafts.
mixed="--mixup 0.4 --label-smoothing 0.1 --color-jitter 0.2"
works "$cleave" train images f $small $mixed --epochs 2 --workers 1 --save mixed.safetensors --json
same "memory" "$(at memory.0.predicted_peak_bytes)" "$(at memory.0.peak_bytes)"
works "$cleave" train images f $small $mixed --epochs 1 --workers 4 --checkpoint mixed.ckpt
works "$cleave" train images f $small $mixed --epochs 2 --workers 4 --resume mixed.ckpt --save again.safetensors
cmp mixed.safetensors again.safetensors || fail "mixed, from other threads and resumed: other weights"
expect 1 "was written with --mixup 0.4, now it is 0" "$cleave" train images f $small --label-smoothing 0.1 \
    --color-jitter 0.2 --epochs 2 --resume mixed.ckpt
works "$cleave" train images f $small --draft --augment none --steps 2
expect 2 '--mixup wants a number greater than 0' "$cleave" train images f $small --mixup 0
expect 2 '--label-smoothing is at least 0 and below 1, not 1' "$cleave" train images f $small --label-smoothing 1
expect 2 '--draft is of folders of pictures' "$cleave" train fashion-mnist --draft
expect 2 '--exif-transpose is of folders of pictures' "$cleave" train fashion-mnist --exif-transpose

# Several labels each, from a table; those to test on from another one.
{
    echo file,colored,jpeg
    for picture in jpeg/color.jpg jpeg/steps.jpeg jpeg/ink.jpg; do echo "$picture,1,1"; done
    printf 'jpeg/grey.jpg,0,1\npng/color.png,1,0\npng/wide.png,1,0\npng/grey.png,0,0\n'
} >table.csv
printf 'file,colored,jpeg\npng/line.png,0,0\njpeg/color.jpg,1,1\n' >val.csv
several="images $pictures --labels table.csv --model mlp --image-size 12 --batch 4 --device $device"
works "$cleave" train $several --quiet --augment none --epochs 60 --lr 0.002 --save several.safetensors --json
[ "$(at test_loss)" = null ] || fail "tested on nothing, and told $(at test_loss)"
works "$cleave" eval $several --quiet --weights several.safetensors --json
awk "BEGIN { exit !($(at test_accuracy) > 0.9 && $(at test_loss) < 0.3) }" || fail "two labels are not learnt: $(at test_accuracy)"
same "pictures tested on" "$(at count)" 7
works "$cleave" eval $several --quiet --weights several.safetensors
grep -q "^always each label's commoner value: accuracy 0\.[0-9]*$" out || fail "what labels are without a model: $(cat out)"
works "$cleave" train $several --val-labels val.csv --steps 4
grep -qF 'test accuracy' out || fail "labels have no accuracy: $(cat out)"
grep -qF '2 labels' err || fail "it is not told how many labels there are: $(cat err)"
works "$cleave" train $several --val "$pictures" --val-labels val.csv --mixup 1 --label-smoothing 0.1 --steps 2 --quiet
"$helper" shapes several.safetensors | grep -qF 'fc2.bias [2]' || fail "the model has other results than two labels"
expect 2 'which table has the labels of --val? --val-labels wants its name' "$cleave" train $several --val "$pictures"
expect 2 '--val-labels needs --labels' "$cleave" train images f --val-labels val.csv
expect 2 '--val-labels is of folders of pictures' "$cleave" train fashion-mnist --val-labels val.csv
expect 2 'leave --classes out' "$cleave" train $several --classes 2
printf 'file,jpeg,colored\npng/line.png,0,0\n' >other.csv
works "$cleave" train $several --val-labels other.csv --steps 1 # columns are found by their names
printf 'file,jpeg,colored,large\npng/line.png,0,0,1\n' >more.csv
expect 1 "'more.csv' has a column 'large' that is none of the labels wanted; the labels are colored, jpeg" "$cleave" train $several --val-labels more.csv
printf 'file,jpeg\npng/line.png,0\n' >less.csv
expect 1 "'less.csv' has no column 'colored'; the labels are colored, jpeg" "$cleave" train $several --val-labels less.csv
# The weights know labels, size and model: a table with its columns turned round is measured as the other one is.
loss=$("$cleave" eval images "$pictures" --labels table.csv --weights several.safetensors --device "$device" --json | "$helper" json test_loss)
awk -F, 'BEGIN { OFS = "," } { print $1, $3, $2 }' table.csv >turned.csv
works "$cleave" eval images "$pictures" --labels turned.csv --weights several.safetensors --device "$device" --per-class --json
same "loss with columns turned round" "$(at test_loss)" "$loss"
same "labels" "$(at per_class.classes.0.name per_class.classes.0.targets per_class.classes.1.name per_class.classes.1.targets | tr '\n' ' ')" 'colored 5 jpeg 4 '
[ "$(at per_class.confusion)" = null ] || fail "labels are not told for each other"
expect 2 "'several.safetensors' gives 2 labels for each picture (colored, ...): --labels TABLE needs the labels of these pictures" \
    "$cleave" eval images f --weights several.safetensors --device "$device"
works "$cleave" run images "$pictures/png/grey.png" "$pictures/jpeg/color.jpg" --weights several.safetensors --device "$device" --output labels.csv
same "a column for each label" "$(head -n 1 labels.csv)" file,colored,jpeg
awk -F, 'NR == 2 { exit !($2 < 0.5 && $3 < 0.5) }' labels.csv || fail "a grey PNG: $(sed -n 2p labels.csv)"
awk -F, 'NR == 3 { exit !($2 > 0.5 && $3 > 0.5) }' labels.csv || fail "a coloured JPEG: $(sed -n 3p labels.csv)"
works "$cleave" run images "$pictures/jpeg/color.jpg" --weights several.safetensors --device "$device" --json
same "labels of a picture" "$(at pictures.0.labels.0.label pictures.0.labels.1.label | tr '\n' ' ')" 'colored jpeg '
printf 'file,colored,jpeg\npng/line.png,,0\n' >hole.csv
expect 1 "'hole.csv', line 2: nothing stands in column 'colored'; 0 or 1 is wanted" "$cleave" train images "$pictures" \
    --labels hole.csv --device "$device"

# Fine-tuning in one command: a new head, of the rest the last block. Running statistics of what is frozen go on, as in PyTorch.
if [ "$device" != host ]; then
    resnet="images f --model resnet18 --image-size 32 --batch 13 --augment none --optimizer momentum --lr 0.01 --device $device --quiet"
    works "$cleave" train $resnet --classes 10 --steps 1 --save base.safetensors
    works "$cleave" train $resnet --val f --weights base.safetensors --except 'fc.*' \
        --freeze 'conv1,bn1,layer1.*,layer2.*,layer3.*,layer4.0.*' --steps 30 --save tuned.safetensors --json
    same "memory" "$(at memory.0.predicted_peak_bytes)" "$(at memory.0.peak_bytes)"
    awk "BEGIN { exit !($(at train_loss) < 0.5) }" || fail "two classes are not learnt: $(at train_loss)"
    "$helper" tensors tuned.safetensors base.safetensors >which || fail "no comparison"
    for line in 'conv1.weight same' 'bn1.weight same' 'bn1.running_mean other' 'layer4.0.conv2.weight same' \
        'layer4.0.bn2.running_var other' 'layer4.1.conv1.weight other' 'layer4.1.bn2.bias other' 'fc.weight other'; do
        grep -qx "$line" which || fail "not '$line', but '$(grep "^${line% *} " which)'"
    done
fi

# Every format, turned as they say.
mkdir -p all/one all/two
cp "$pictures"/../pictures/* all/one && cp "$pictures"/png/*.png all/two
works "$cleave" train images all $small --strict --exif-transpose --steps 2
grep -q . err && fail "pictures of all formats: $(cat err)"

# Broken ones.
head -c 500 f/one/color.jpg >f/one/a.jpg
cp f/two/tiny.png f/one/no.txt && : >f/one/.DS_Store && : >f/.DS_Store # whose names come first, and which nobody misses
mkfifo f/two/pipe.png
expect 0 "2 pictures are broken and skipped; the first: 'f/one/a.jpg' is a broken JPEG: it is cut off" \
    "$cleave" train images f --model mlp --image-size 12 --device "$device" --steps 2 --json
same "broken pictures" "$(at broken_pictures)" 2
grep -qF "'f': skipped: 1 file with an ending that is no picture's, 2 hidden names; the first: 'one/no.txt' (--strict refuses them)" err ||
    fail "what is passed over is not told: $(cat err)"
expect 1 "the first: 'one/no.txt'" "$cleave" train images f $small --strict
rm f/one/no.txt f/one/.DS_Store f/.DS_Store
expect 1 "'f/one/a.jpg' is a broken JPEG: it is cut off" "$cleave" train images f $small --strict
rm f/one/a.jpg
expect 1 "cannot read 'f/two/pipe.png': it is a device or pipe" "$cleave" train images f $small --strict
mkdir -p alone && cp -r f/one alone/
expect 1 "'alone' has pictures of one class; a classifier needs two or more" "$cleave" train images alone $small
expect 1 "'f/one' has pictures and no folders of classes: it is one class, give the folder of all classes, 'f'" "$cleave" train images f/one $small
expect 1 "'f/one/' has pictures and no folders of classes: it is one class, give the folder of all classes, 'f'" "$cleave" train images f/one/ $small
mkdir -p deep/data && cp -r f deep/data/train || fail "no pictures that lie deeper"
expect 1 "the class 'data' of 'deep' has folders and no pictures: give 'deep/data/train', which is a folder of classes" "$cleave" train images deep $small
mkdir f/three
expect 1 "the class 'three' of 'f' has no pictures" "$cleave" train images f $small
expect 1 "'f/three' has no folders of classes" "$cleave" train images "$pictures" --val f/three $small
expect 1 "'f' has a class 'one', which '$pictures' does not have" "$cleave" train images "$pictures" --val f $small

# Words that do not fit.
expect 2 'which folder? `images DIR` wants one' "$cleave" train images
expect 2 '--strict is of folders of pictures' "$cleave" train fashion-mnist --strict
expect 2 '--val is of folders of pictures' "$cleave" train csv t.csv --target y --val f
expect 2 '--validation is of texts and tables' "$cleave" train images f --validation 0.1
expect 2 '--workers is 1 to 64' "$cleave" train images f --workers 65
expect 2 '--image-size is 1 to 4096' "$cleave" train images f --image-size 5000
expect 2 'gpt is a model of texts' "$cleave" train images f --model gpt
finish
