#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A folder of pictures on the command line: a model learns to tell its classes apart and is measured with its weights; the same weights
# whatever the number of threads; broken pictures are told, or refused; what is no such folder is told in one sentence.
pictures=$(cd "$(dirname "$0")/../golden/images" && pwd)
. "$(dirname "$0")/common.sh"

mkdir -p f/one f/two
if ! "$cleave" train images "$pictures" --model mlp --image-size 12 --device host --steps 1 --quiet >out 2>err; then
    expect 1 'built without libjpeg and libpng; install both' "$cleave" train images "$pictures" --device "$device"
    finish
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

# Broken ones.
head -c 500 f/one/color.jpg >f/one/a.jpg
cp f/two/tiny.png f/one/no.txt
mkfifo f/two/pipe.png
expect 0 "2 pictures are broken and passed over; the first: 'f/one/a.jpg' is a broken JPEG: it is cut off" \
    "$cleave" train images f --model mlp --image-size 12 --device "$device" --steps 2 --json
same "broken pictures" "$(at broken_pictures)" 2
expect 1 "'f/one/a.jpg' is a broken JPEG: it is cut off" "$cleave" train images f $small --strict
rm f/one/a.jpg
expect 1 "cannot read 'f/two/pipe.png': it is a device or pipe" "$cleave" train images f $small --strict
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
