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

# What is drawn does not depend on the threads.
for workers in 1 3; do
    works "$cleave" train images f $small --color-jitter 0.4 --epochs 2 --workers $workers --save w$workers.safetensors
done
cmp w1.safetensors w3.safetensors || fail "other weights from other numbers of threads"
works "$cleave" train images f $small --augment flip --epochs 2 --save flip.safetensors
cmp -s w1.safetensors flip.safetensors && fail "--augment changes nothing"

# Mixed, smoothed, resumed; and drafts.
mixed="--mixup 0.4 --label-smoothing 0.1 --color-jitter 0.2"
works "$cleave" train images f $small $mixed --epochs 2 --workers 1 --save mixed.safetensors --json
same "memory" "$(at memory.0.predicted_peak_bytes)" "$(at memory.0.peak_bytes)"
works "$cleave" train images f $small $mixed --epochs 1 --workers 4 --checkpoint mixed.ckpt
works "$cleave" train images f $small $mixed --epochs 2 --workers 4 --resume mixed.ckpt --save again.safetensors
cmp mixed.safetensors again.safetensors || fail "mixed, from other threads and resumed: other weights"
expect 1 "was written with mixup 0.4, now it is 0" "$cleave" train images f $small --label-smoothing 0.1 \
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
works "$cleave" train $several --val-labels val.csv --steps 4
grep -qF 'test accuracy' out || fail "labels have no accuracy: $(cat out)"
grep -qF '2 labels' err || fail "it is not told how many labels there are: $(cat err)"
works "$cleave" train $several --val "$pictures" --val-labels val.csv --mixup 1 --label-smoothing 0.1 --steps 2 --quiet
"$helper" shapes several.safetensors | grep -qF 'fc2.bias [2]' || fail "the model has other results than two labels"
expect 2 'which table has the labels of --val? --val-labels wants its name' "$cleave" train $several --val "$pictures"
expect 2 '--val-labels is of --labels' "$cleave" train images f --val-labels val.csv
expect 2 '--val-labels is of folders of pictures' "$cleave" train fashion-mnist --val-labels val.csv
expect 2 'leave --classes out' "$cleave" train $several --classes 2
printf 'file,jpeg,colored\npng/line.png,0,0\n' >other.csv
expect 1 "'other.csv' has a column 'jpeg' where 'colored' is wanted" "$cleave" train $several --val-labels other.csv
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
cp f/two/tiny.png f/one/no.txt
mkfifo f/two/pipe.png
expect 0 "2 pictures are broken and passed over; the first: 'f/one/a.jpg' is a broken JPEG: it is cut off" \
    "$cleave" train images f --model mlp --image-size 12 --device "$device" --steps 2 --json
same "broken pictures" "$(at broken_pictures)" 2
grep -qF "'f': passed over: 1 file with an ending that is no picture's; the first: 'one/no.txt' (--strict refuses such)" err ||
    fail "what is passed over is not told: $(cat err)"
expect 1 "the first: 'one/no.txt'" "$cleave" train images f $small --strict
rm f/one/no.txt
expect 1 "'f/one/a.jpg' is a broken JPEG: it is cut off" "$cleave" train images f $small --strict
rm f/one/a.jpg
expect 1 "cannot read 'f/two/pipe.png': it is a device or pipe" "$cleave" train images f $small --strict
mkdir -p alone && cp -r f/one alone/
expect 1 "'alone' has pictures of one class; to tell classes apart takes two or more" "$cleave" train images alone $small
expect 1 'has no folders of classes' "$cleave" train images f/one $small
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
