#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Files that are missing, damaged, of something else, or cannot be written: exit 1, one sentence, and nothing that was on
# the disk is lost.
. "$(dirname "$0")/common.sh"

"$helper" images 32 x.npy && "$helper" labels 32 y.npy && "$helper" labels 32 y11.npy 5=11 &&
    "$helper" labels 32 yneg.npy 3=-1 && "$helper" labels 31 y31.npy || fail "no arrays"
mkdir idx idx11 && "$helper" idx idx 40 && "$helper" idx idx11 40 7=10 || fail "no IDX files"
train() { "$helper" last "$cleave" train --images x.npy --labels y.npy --model linear --device host --batch 16 --epochs 1 --quiet "$@"; }
works train --save w.safetensors --checkpoint c
cp w.safetensors good && cp c goodc

# arrays
expect 1 "missing.npy" train --images missing.npy
head -c 100 x.npy >short.npy
expect 1 "short.npy" train --images short.npy
echo "no array" >text.npy
expect 1 "text.npy" train --images text.npy
expect 1 "11" train --labels y11.npy
expect 1 "-1" train --labels yneg.npy
expect 1 "31" train --labels y31.npy
expect 1 "" train --labels x.npy
expect 1 "y.npy" "$cleave" run --model linear --device host --weights w.safetensors --input y.npy --output o.npy
expect 1 "missing.npy" "$cleave" run --model linear --device host --weights w.safetensors --input missing.npy --output o.npy
[ -e o.npy ] && fail "a failed run left an output"

# arrays of another shape than the model's: what they seem to be, and what mends them
"$helper" images 32 nhwc.npy 28 28 1 && "$helper" images 32 rgb.npy 32 32 3 && "$helper" images 32 flat.npy 784 &&
    "$helper" images 32 hw.npy 28 28 && "$helper" images 32 wide.npy 1 28 30 && "$helper" images 32 swapped.npy 28 1 28 ||
    fail "no arrays"
each() { # each CODE TEXT FILE: train, eval and run
    expect "$1" "$2" train --images "$3"
    expect "$1" "$2" "$cleave" eval --images "$3" --labels y.npy --model linear --device host --weights good
    expect "$1" "$2" "$cleave" run --input "$3" --output o.npy --model linear --device host --weights good
}
each 1 "images 'nhwc.npy' of shape [28,28,1] do not fit model 'linear', which wants [1,28,28]" nhwc.npy
for array in nhwc rgb; do each 1 "their channels are last (NHWC) and must be first (NCHW); numpy mends it with x.transpose(0, 3, 1, 2)" $array.npy; done
for array in flat swapped; do each 1 "numpy mends it with x.reshape(-1, 1, 28, 28)" $array.npy; done
each 0 "" hw.npy
"$helper" images 32 rows.npy 5 || fail "no rows"
expect 1 "do not fit model 'linear', which wants [1,28,28]; rows of numbers are named arrays: numpy.savez('data.npz', x=x, y=y), and then \`arrays data.npz --target y\`" \
    train --images rows.npy
works train --images wide.npy # a model for images of that size
for command in "eval --images wide.npy --labels y.npy" "run --input wide.npy --output o.npy"; do
    # shellcheck disable=SC2086
    expect 1 "the samples here are [1,28,30], and 'good' was trained on samples of [1,28,28]" "$cleave" $command --model linear --device host --weights good
    grep -qF "'fc.weight' is [10,784] and must be [10,840]" err || fail "no shape is told: $(cat err)"
    grep -q "own are" err && fail "shapes that are off the point: $(cat err)"
done

# labels outside of the classes
"$helper" labels 32 one.npy %10+1 || fail "no labels"
for command in train eval; do
    for file in y11.npy yneg.npy one.npy; do
        expect 1 "but labels are 0 to 9" "$cleave" $command --images x.npy --labels $file --model linear --device host --weights good
    done
    grep -qF "they seem to begin at 1" err || fail "labels from 1 are not seen: $(cat err)"
    "$helper" bare good bare
    expect 1 "labels are 0 to 4; a model of 10 classes has room for all of them (--classes 10)" "$cleave" $command --images x.npy --labels y.npy --model linear --classes 5 --device host --weights bare
done

# datasets
expect 1 "nowhere" "$cleave" train fashion-mnist --data nowhere --device host
mkdir empty && expect 1 "empty" "$cleave" train fashion-mnist --data empty --device host
expect 1 "10" "$cleave" train fashion-mnist --data idx11 --device host
cp -r idx bad && head -c 1000 idx/train-images-idx3-ubyte >bad/train-images-idx3-ubyte
expect 1 "train-images" "$cleave" train fashion-mnist --data bad --device host
cp -r idx magic && printf '\001' | dd of=magic/t10k-labels-idx1-ubyte conv=notrunc 2>/dev/null
expect 1 "t10k-labels" "$cleave" eval fashion-mnist --data magic --device host --model linear --weights good
cp -r idx zipped && gzip zipped/* && works "$cleave" eval fashion-mnist --data zipped --device host --model linear --weights good
head -c 1000 zipped/t10k-images-idx3-ubyte.gz >cut && mv cut zipped/t10k-images-idx3-ubyte.gz
expect 1 "t10k-images" "$cleave" eval fashion-mnist --data zipped --device host --model linear --weights good

# weights
expect 1 "missing.safetensors" train --weights missing.safetensors
"$helper" bare good bare || fail "no weights of another program"
expect 1 "missing 'fc1.weight', 'fc1.bias', 'fc2.weight', 'fc2.bias'" train --model mlp --weights bare
expect 1 "unexpected 'fc.bias', 'fc.weight'" train --model mlp --weights bare
for command in "train --images x.npy --labels y.npy" "eval --images x.npy --labels y.npy" "run --input x.npy --output o.npy"; do
    # shellcheck disable=SC2086
    expect 2 "--model is mlp, and 'good' holds weights of linear: leave --model out" "$cleave" $command --model mlp --device host --weights good
done
expect 2 "which model?" "$cleave" eval --images x.npy --labels y.npy --device host --weights bare
head -c 200 good >cut.safetensors
expect 1 "cut.safetensors" train --weights cut.safetensors
printf '\377\377\377\377\377\377\377\177{}' >huge.safetensors
expect 1 "huge.safetensors" train --weights huge.safetensors
expect 1 "x.npy" train --weights x.npy
"$helper" labels 32 y5.npy %5+0 || fail "no labels"
other="'good' is of a model with 10 classes, this one has 5: 'fc.weight' is [10,784] and must be [5,784], 'fc.bias' is [10] and must be [5]"
expect 1 "$other" train --classes 5 --labels y5.npy --weights good
grep -qF -- "(--classes 10), or leave 'fc.*' out (--except 'fc.*') and train it from the start" err || fail "no mend: $(cat err)"
other="'bare'${other#\'good\'}"
expect 1 "$other" "$cleave" eval --images x.npy --labels y5.npy --classes 5 --model linear --device host --weights bare
expect 1 "$other" "$cleave" run --input x.npy --output o.npy --classes 5 --model linear --device host --weights bare
expect 2 "--classes is 5, and 'good' has 10 classes: leave --classes out" "$cleave" eval --images x.npy --labels y5.npy --classes 5 \
    --device host --weights good
expect 1 "$other" "$cleave" run --input x.npy --output o.npy --classes 5 --model linear --device host --weights bare
grep -q -- "build the model for 10 classes (--classes 10)$" err || fail "run has no --except: $(cat err)"
golden=${0%/*}/../golden/io
for file in torch.pth torch_before_1_6.pt; do
    cp "$golden/$file" w.pth
    for command in "train --images x.npy --labels y.npy" "eval --images x.npy --labels y.npy" "run --input x.npy --output o.npy"; do
        # shellcheck disable=SC2086
        expect 1 "make a safetensors file of it: python3 -c 'import sys,torch; " "$cleave" $command --model linear --device host --weights w.pth
    done
done
works "$cleave" eval --images x.npy --labels y.npy --device host --weights goodc # a checkpoint's parameters, and what they are of

# checkpoints
expect 1 "missing.ckpt" train --resume missing.ckpt
cp goodc flipped && printf 'XYXY' | dd of=flipped bs=1 seek=9000 conv=notrunc 2>/dev/null
expect 1 "flipped" train --resume flipped
expect 1 "" train --resume good
expect 1 "model 'linear', not of 'mlp'" train --model mlp --resume goodc
expect 1 "seed" train --seed 7 --resume goodc
expect 1 "batch" train --batch 8 --resume goodc
expect 1 "was written with --optimizer adam" train --optimizer sgd --resume goodc

# a disk that is full, a folder that is not there, a folder that cannot be written
expect 1 "w.safetensors" sh -c 'ulimit -f 8; trap "" XFSZ; exec "$@"' sh "$cleave" train --images x.npy --labels y.npy \
    --model linear --device host --batch 16 --epochs 1 --seed 3 --quiet --save w.safetensors
cmp -s w.safetensors good || fail "a full disk changed the weights that were there"
expect 1 "c" sh -c 'ulimit -f 8; trap "" XFSZ; exec "$@"' sh "$cleave" train --images x.npy --labels y.npy \
    --model linear --device host --batch 16 --epochs 1 --seed 3 --quiet --checkpoint c
cmp -s c goodc || fail "a full disk changed the checkpoint that was there"
expect 1 "folder 'nowhere'" train --save nowhere/w.safetensors
expect 1 "folder 'nowhere'" train --checkpoint nowhere/c
expect 1 "it is a folder" train --save idx
expect 1 "folder 'nowhere'" "$cleave" run --model linear --device host --weights good --input x.npy --output nowhere/o.npy
expect 1 "nowhere" train --log nowhere/log
if [ -w /dev/full ]; then
    expect 1 "/dev/full" train --log /dev/full
    "$cleave" devices --json >/dev/full 2>err
    same "exit code with a full stdout" $? 1
fi

# what is written at the end is tried before the first step: names without room, folders in the way, read-only ones
early() { # early TEXT OPTIONS...: no step is done
    expect_early=$1
    shift
    rm -f early.log
    expect 1 "$expect_early" train --log early.log "$@"
    [ ! -s early.log ] || fail "it trained before it said '$expect_early'"
}
long=$(printf '%0253d' 0)
for option in --save --save-best --checkpoint --dump-gradients --trace; do
    early "its name is too long, as '.tmp'" $option "$long"
    [ ! -e "$long" ] || fail "$option left a file"
done
early "its name is too long" --checkpoint "$(printf '%0249d' 0)" # .tmp has room, .prev.tmp has none
works train --save "$(printf '%0249d' 0)"
mkdir c2.prev w2.tmp
early "folder 'c2.prev' is in the way" --checkpoint c2
early "w2" --save w2
if [ "$(id -u)" != 0 ]; then
    mkdir -m 555 locked
    early "folder 'locked'" --save locked/w
fi
expect 1 "too long" "$cleave" run --model linear --device host --weights good --input x.npy --output "$long"
expect 1 "too long" "$cleave" eval --images x.npy --labels y.npy --model linear --device host --weights good --trace "$long"
expect 3 "too long" "$cleave" check --case 'relu/*/scalar' --device host --junit "$long"
expect 1 "too long" "$cleave" report -o "$long" --results missing.json
expect 1 "too long" "$cleave" tune --device host --size 8x8x8 --output "$long"

# a pipe that nobody reads is told, and none waits for a reader for ever; one that is read gets all of it
mkfifo pipe
limit() { timeout -k 1 60 "$@"; }
for option in --save --save-best --checkpoint --dump-gradients --trace --log; do
    expect 1 "'pipe' is a pipe that nobody reads; start its reader first" limit "$cleave" train --images x.npy --labels y.npy \
        --model linear --device host --batch 16 --epochs 1 --quiet $option pipe
done
expect 1 "nobody reads" limit "$cleave" run --model linear --device host --weights good --input x.npy --output pipe
expect 3 "nobody reads" limit "$cleave" check --case 'relu/*/scalar' --device host --junit pipe
expect 1 "nobody reads" limit "$cleave" report -o pipe --results missing.json
expect 1 "nobody reads" limit "$cleave" tune --device host --size 8x8x8 --output pipe
works train --seed 5 --save piped.w --log piped.log
for option in "--save piped.w" "--log piped.log"; do
    (sleep 0.3; cat pipe >got) & # it may be late
    limit "$cleave" train --images x.npy --labels y.npy --model linear --device host --batch 16 --epochs 1 --quiet --seed 5 \
        ${option% *} pipe >out 2>err || fail "a pipe that is read: $(cat err)"
    wait
    if [ "${option% *}" = --save ]; then
        cmp -s got piped.w || fail "weights through a pipe are others"
    else
        same "a log through a pipe" "$("$helper" lines loss <got)" "$("$helper" lines loss <piped.log)"
    fi
done
(cat pipe >got) &
limit "$cleave" check --case 'relu/*/scalar' --device host --junit pipe >out 2>err || fail "JUnit through a pipe: $(cat err)"
wait
grep -q '</testsuites>' got || fail "JUnit through a pipe: $(head -c 200 got)"
[ -p pipe ] || fail "a file was put in the pipe's place"

# standard files that are closed: nothing of ours takes their place
works train --log open.log --save open.w
for closed in '<&-' '>&-' '2>&-' '<&- >&- 2>&-'; do
    sh -c "exec \"\$@\" $closed" sh "$cleave" train --images x.npy --labels y.npy --model linear --device host --batch 16 \
        --epochs 1 --log closed.log --save closed.w >out 2>err
    same "exit code with $closed" $? 0
    cmp -s closed.w open.w || fail "weights with $closed are others"
    same "a log with $closed" "$("$helper" lines loss <closed.log)" "$("$helper" lines loss <open.log)"
    grep -v '^{' closed.log && fail "with $closed something else is in the log"
done

# one log, one training
"$cleave" train --images x.npy --labels y.npy --model mlp --device host --batch 4 --epochs 100000 --log shared.log --quiet >held 2>&1 &
process=$!
tries=0
until [ "$(cat shared.log 2>/dev/null | wc -l)" -gt 3 ] || [ $tries -gt 600 ]; do sleep 0.05; tries=$((tries + 1)); done
expect 1 "the log 'shared.log' is being written by another training; give this one a --log of its own" train --log shared.log
expect 1 "is being written by another training" train --resume goodc --epochs 2 --log shared.log
kill -TERM $process
wait $process
ended=$(cat shared.log)
same "steps of a log that two wanted" "$("$helper" lines step <shared.log | awk '$1 != NR' | head -n 1)" ""

# the log of a training that has ended is kept, once, and its link stays one; a name or folder without room for it costs no log
works "$cleave" train --images x.npy --labels y.npy --model linear --device host --batch 16 --epochs 1 --log shared.log
grep -qxF "'shared.log' holds the log of an earlier training: it is kept as 'shared.log.prev'" err || fail "not told: $(cat err)"
same "the former log" "$(cat shared.log.prev)" "$ended"
same "events of the new one" "$(sed -n 's/.*"event":"\([a-z]*\)".*/\1/p' shared.log | tr '\n' ' ')" "begin epoch end "
new=$(cat shared.log)
ln -s shared.log link.log
works train --log link.log --quiet
[ -s err ] && fail "--quiet is not quiet: $(cat err)"
same "a link" "$(readlink link.log)$(cat shared.log.prev)" "shared.log$new"
works train --resume goodc --epochs 2 --log shared.log --quiet
same "resumed" "$(cat shared.log.prev)" "$new"
: >empty.log
works train --log empty.log --quiet
[ -e empty.log.prev ] && fail "an empty log was kept"
new=$(cat empty.log)
mkdir empty.log.prev
expect 1 "folder '$PWD/empty.log.prev' is in the way; rename it" train --log "$PWD/empty.log"
rmdir empty.log.prev
echo mine >empty.log.prev
expect 1 "'empty.log.prev' holds something that is no log of a training" train --log empty.log
long=$(printf '%0252d' 0)
cp empty.log "$long"
expect 1 "its name is too long" train --log "$long"
same "logs that could not be kept" "$(cat empty.log "$long" empty.log.prev)" "$(printf '%s\n' "$new" "$new" mine)"
ls -A | grep '\.tmp$' | grep -vx w2.tmp && fail "temporary files were left: $(ls -A)"
finish
