#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --tensorboard: event files that another reader understands to the last byte, the same figures as the log, written as training
# goes, and gone on with by a resumed training.
. "$(dirname "$0")/common.sh"
events=$CLV_TEST_EVENTS
"$helper" images 48 x.npy && "$helper" labels 48 y.npy || fail "no data"
train() { "$cleave" train --images x.npy --labels y.npy --model linear --device "$device" --batch 16 --quiet "$@"; }
read_events() { for file in "$1"/*; do "$events" "$file" || fail "$file is no event file"; done; }

works train --epochs 3 --log a.jsonl --tensorboard runs/a/one --histograms
read_events runs/a/one >events
same "files" "$(ls runs/a/one | wc -l)" 1
same "the version first" "$(head -n 1 events)" "version brain.Event:2"
same "the begin second" "$(sed -n 2p events)" "step 1 start"
same "losses" "$(grep -c ' scalar loss/train ' events)" 9
same "rates" "$(grep -c ' scalar learning_rate ' events)" 9
same "memory" "$(grep -c " scalar memory_MiB/$device " events)" 9
same "means of epochs" "$(grep -c ' scalar loss/epoch ' events)" 3
same "steps of epochs" "$(sed -n 's/^step \([0-9]*\) scalar loss.epoch .*/\1/p' events | tr '\n' ' ')" "3 6 9 "
"$helper" lines loss <a.jsonl >logged
sed -n 's/.* scalar loss.train //p' events >told
paste -d ' ' logged told | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-6 * $1) exit 1 }' || fail "other losses than the log's"
same "histograms" "$(grep -c ' histogram parameters/fc.weight 7840 .* 7840 30$' events)" 3
same "histograms of biases" "$(grep -c ' histogram parameters/fc.bias 10 .* 10 30$' events)" 3

# without --histograms there are none; a dataset with a test set has its figures
works train --epochs 1 --tensorboard plain
read_events plain | grep -q histogram && fail "histograms that nobody asked for"
mkdir data && "$helper" idx data 32 0=1 || fail "no dataset"
works "$cleave" train fashion-mnist --data data --model linear --device "$device" --batch 16 --epochs 2 --quiet --tensorboard tested
same "accuracies" "$(read_events tested | grep -c 'scalar accuracy/test ')" 2
same "test losses" "$(read_events tested | grep -c 'scalar loss/test ')" 2

# resumed: another file, which begins where the checkpoint is, so that TensorBoard drops what came after it
works train --epochs 1 --checkpoint c --tensorboard again
works train --epochs 3 --resume c --tensorboard again
same "files of a resumed training" "$(ls again | wc -l)" 2
"$events" "$(ls again/* | tail -n 1)" >events || fail "the second is no event file"
same "where it goes on" "$(sed -n 2p events)" "step 4 start"
same "what it tells" "$(sed -n 's/^step \([0-9]*\) scalar loss.train .*/\1/p' events | tr '\n' ' ')" "4 5 6 7 8 9 "

# as training goes: all that was told can be read after a kill, and at most the last record is not whole
"$cleave" train --images x.npy --labels y.npy --model linear --device "$device" --batch 16 --quiet --epochs 100000 --tensorboard killed >/dev/null 2>&1 &
child=$!
i=0
until [ -n "$(ls killed 2>/dev/null)" ] && [ "$(cat killed/* | wc -c)" -gt 4000 ] || [ $i = 600 ]; do i=$((i + 1)); sleep 0.1; done
kill -9 $child
wait $child 2>/dev/null
"$events" killed/* >events 2>err
[ "$(grep -c ' scalar loss/train ' events)" -gt 5 ] || fail "a killed training told nothing"

# mistakes
expect 2 "--histograms needs --tensorboard DIR" train --histograms
expect 1 "the folder 'x.npy/a' cannot be made" train --tensorboard x.npy/a
expect 1 "could not be written: File too large" sh -c 'ulimit -f 1; trap "" XFSZ; exec "$@"' sh "$cleave" train --images x.npy \
    --labels y.npy --model linear --device "$device" --batch 16 --epochs 9 --quiet --no-cache --tensorboard full
finish
