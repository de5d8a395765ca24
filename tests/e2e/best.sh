#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --metric, --patience, --save-best and --ema: what is told where, the best weights, an end before the end, averages that are
# tested, saved and counted in memory, resumed to the same bits; and what is refused.
. "$(dirname "$0")/common.sh"
mkdir idx && "$helper" idx idx 200 && "$helper" images 200 x.npy && "$helper" labels 200 y.npy || fail "no data"
train() { "$cleave" train fashion-mnist --data idx --model mlp --device "$device" --batch 32 "$@"; }

# metrics: in an epoch's line, the log, the events, the page, the result; the same by eval
works train --epochs 2 --lr 1e-5 --metric top5,accuracy --save w.safetensors --log log.jsonl --tensorboard events --json
cp err lines
top5=$(at metrics.top5) accuracy=$(at test_accuracy)
same "accuracy among the metrics" "$(at metrics.accuracy)" "$accuracy"
awk "BEGIN { exit !($top5 > $accuracy && $top5 <= 1) }" || fail "top5 is $top5, accuracy $accuracy"
same "nothing was looked for" "$(at best_epoch best_value end | tr '\n' ' ')" "null null steps "
same "lines" "$(grep -c '^epoch [12]/2  loss [0-9.]*  test loss [0-9.]*  accuracy [0-9.]*  top5 [01]\.[0-9]*  [0-9.]* s$' lines)" 2
same "log" "$(grep '"event":"epoch"' log.jsonl | tail -n 1 | "$helper" json metrics.top5)" "$top5"
grep -q '"best"' log.jsonl && fail "a best epoch that nobody asked for"
same "event files" "$("$CLV_TEST_EVENTS" events/* | grep -c ' scalar top5/test ')" 2
works "$cleave" top log.jsonl --once --json
same "top" "$(at metrics.top5)" "$top5"
works "$cleave" report -o page.html --log log.jsonl --quiet
grep -q '<figcaption>test top5<' page.html || fail "no curve of the metric"
grep -q '<th[^>]*>test top5<' page.html || fail "no column of the metric"
grep -q '<figcaption>test accuracy<' page.html || fail "no curve of the accuracy"
works "$cleave" eval fashion-mnist --data idx --model mlp --weights w.safetensors --device "$device" --metric top5 --json
same "top5 of eval" "$(at metrics.top5)" "$top5"
# The same pictures as bytes in arrays: normalised as the weights tell, and a line says so. Floats are taken as they are.
npy() { printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': ($1), }"; }
{ npy "200, 28, 28" && tail -c +17 idx/t10k-images-idx3-ubyte; } >u8.npy
{ npy "200," && tail -c +9 idx/t10k-labels-idx1-ubyte; } >u8-labels.npy
right=$(at correct)
works "$cleave" eval --images u8.npy --labels u8-labels.npy --weights w.safetensors --device "$device" --json
same "bytes in arrays" "$(at correct)" "$right"
mkdir named && cp u8.npy named/images.npy && cp u8-labels.npy named/label.npy
works "$cleave" eval arrays named --target label --validation 1 --weights w.safetensors --device "$device" --json
same "bytes in named arrays" "$(at correct)" "$right"
works "$cleave" run --input u8.npy --weights w.safetensors --device "$device" --output u8-logits.npy
grep -qF "'u8.npy': bytes are normalised as the weights tell, (x / 255 - 0.286) / 0.353" err ||
    fail "no word of the normalisation: $(cat err)"
"$helper" images 200 floats.npy
works "$cleave" run --input floats.npy --weights w.safetensors --device "$device" --output f-logits.npy
grep -qF "'floats.npy': floats are taken as they are; the weights expect (x - 0.286) / 0.353, of x 0 to 1" err || fail "floats: $(cat err)"
head -c 128 floats.npy >zeros.npy && head -c $((200 * 784 * 4)) /dev/zero >>zeros.npy
works "$cleave" run --input zeros.npy --weights w.safetensors --device "$device" --output f-logits.npy
grep -qF "and these lie between 0 and 1, where the weights expect (x - 0.286) / 0.353 of them: normalise them, or give bytes" err ||
    fail "floats that look as they were not normalised: $(cat err)"

works "$cleave" eval fashion-mnist --data idx --model mlp --weights w.safetensors --device "$device" --metric top5
grep -q '^test top5 [01]\.[0-9]*$' out || fail "eval does not tell top5"

# patience: a rate that is too large makes the second epoch worse than the first, and so on
works train --epochs 9 --lr 0.2 --optimizer sgd --patience 2 --min-delta 100 --save-best best.safetensors --save last.safetensors \
    --log early.jsonl --json
cp err lines
same "ends early" "$(at best_epoch epochs end steps | tr '\n' ' ')" "1 3 patience 21 "
same "best epochs" "$(grep -c '  best$' lines)" 1
grep -q '^epoch 1/9 .*  best$' lines || fail "the first epoch is not told as the best"
same "best in the log" "$(grep -c '"best":true' early.jsonl)" 1
value=$(at best_value)
works "$cleave" eval fashion-mnist --data idx --model mlp --weights best.safetensors --device "$device" --json
awk "BEGIN { d = $(at test_loss) - $value; exit !(d < 1e-5 && d > -1e-5) }" || fail "the best weights give $(at test_loss), not $value"
works train --epochs 1 --lr 0.2 --optimizer sgd --save one.safetensors --quiet
cmp -s one.safetensors best.safetensors || fail "the best weights are not those of the first epoch"
cmp -s last.safetensors best.safetensors && fail "the last weights are the best"
works train --epochs 9 --lr 0.2 --optimizer sgd --patience 2 --min-delta 100
grep -q '^best epoch 1, with loss [0-9.]*$' out || fail "the best epoch is not told"
grep -q '^ended after epoch 3: none was better for 2 epochs$' out || fail "why it ended is not told"
# without --save-best: that an earlier epoch was better by more than a twentieth (the target has nothing to do with the columns)
awk 'BEGIN { print "a,b,c,y"; for (i = 1; i <= 40; i++) printf "%d,%d,%d,%d\n", i * 37 % 101, i * 59 % 97, i * 83 % 89, i * i * 13 % 101 }' >noise.csv
noise() { "$cleave" train csv noise.csv --target y --device "$device" --weight-decay 0 --validation 0.5 "$@"; }
worse='^epoch [0-9]* was better than the last: its test loss was [0-9.]*, and is [0-9.]* now; --save-best FILE keeps the weights of the best epoch$'
works noise --epochs 100 --log noise.jsonl
grep -q "$worse" out || fail "that the last epoch was worse is not told: $(cat out)"
same "the best epoch" "$(sed -n 's/^epoch \([0-9]*\) was better .*/\1/p' out)" "$(sed -n 's/.*"epoch":\([0-9]*\),.*"test_loss":\([0-9.]*\),.*/\2 \1/p' noise.jsonl | sort -g | head -n 1 | cut -d' ' -f2)"
works noise --epochs 100 --monitor rmse --patience 99
grep -q '^epoch [0-9]* was better than the last: its test rmse was [0-9.]*, and is ' out || fail "what is monitored: $(cat out)"
works noise --epochs 100 --save-best best.safetensors
grep -q 'was better than the last' out && fail "the best one is kept, and it is told all the same"
works train --epochs 3 --lr 1e-5
grep -q 'was better than the last' out && fail "the last is the best, and another one is told: $(cat out)"
works train --epochs 3 --monitor top5 --metric accuracy --save-best best.safetensors --json
[ "$(at metrics.top5)" != null ] || fail "what is monitored is not told"

# resumed within the time of patience: the same end
works train --epochs 2 --lr 0.2 --optimizer sgd --patience 2 --min-delta 100 --checkpoint c --quiet
works train --epochs 9 --lr 0.2 --optimizer sgd --patience 2 --min-delta 100 --resume c --save parts.safetensors --json
same "resumed" "$(at best_epoch epochs end steps | tr '\n' ' ')" "1 3 patience 21 "
cmp -s last.safetensors parts.safetensors || fail "resumed, other bits"
expect 1 "was written with --patience 2, now it is 3" train --epochs 9 --lr 0.2 --optimizer sgd --patience 3 --min-delta 100 --resume c

# averages: as large as the parameters, tested and saved, predicted to the byte, the same bits when resumed
works train --epochs 2 --save plain.safetensors --json
optimizer=$(at memory.0.categories.optimizer) parameters=$(at memory.0.categories.parameters)
works train --epochs 2 --ema 0.9 --save average.safetensors --json
same "memory of averages" "$(at memory.0.categories.optimizer)" $((optimizer + parameters))
same "prediction" "$(at memory.0.predicted_peak_bytes)" "$(at memory.0.peak_bytes)"
loss=$(at test_loss)
cmp -s plain.safetensors average.safetensors && fail "averages are the parameters"
works "$cleave" eval fashion-mnist --data idx --model mlp --weights average.safetensors --device "$device" --json
awk "BEGIN { d = $(at test_loss) - $loss; exit !(d < 1e-5 && d > -1e-5) }" || fail "the averages give $(at test_loss), not $loss"
works train --steps 10 --ema 0.9 --checkpoint c --quiet
works train --epochs 2 --ema 0.9 --resume c --save parts.safetensors --quiet
cmp -s average.safetensors parts.safetensors || fail "averages, resumed: other bits"
works "$cleave" plan mlp --samples numbers --batch 32 --train --device "$device" --json
optimizer=$(at devices.0.categories.optimizer)
works "$cleave" plan mlp --samples numbers --batch 32 --train --ema 0.9 --device "$device" --json
same "the plan's averages" "$(at devices.0.categories.optimizer)" $((optimizer + parameters))
for precision in mixed mixed-bf16; do
    works train --epochs 1 --ema 0.9 --precision $precision --json
    same "prediction of $precision" "$(at memory.0.predicted_peak_bytes)" "$(at memory.0.peak_bytes)"
done

# a GPT's best weights have what is needed to write with them
printf 'to be or not to be that is the question %s' "$(seq 1 200 | tr '\n' ' ')" >text.txt
works "$cleave" train text text.txt --context 16 --width 16 --heads 2 --layers 1 --epochs 1 --device "$device" --ema 0.5 \
    --save-best gpt.safetensors --quiet
works "$cleave" generate --weights gpt.safetensors --prompt to --length 5 --device "$device"

# mistakes
expect 2 "--metric: there is no metric 'top6', there are accuracy, top5, mae, rmse; did you mean 'top5'?" train --metric accuracy,top6
expect 2 "--monitor: there is no metric 'los', there are loss, accuracy, top5, mae, rmse; did you mean 'loss'?" train --patience 1 --monitor los
expect 2 "--monitor is for --patience and --save-best; give one of them" train --monitor loss
expect 2 "--min-delta is for --patience and --save-best; give one of them" train --min-delta 0.1
expect 2 "there is no metric 'tpo5'" "$cleave" eval fashion-mnist --model mlp --weights w.safetensors --metric tpo5
expect 1 "metric 'mae' is for models that give numbers, and 'mlp' gives classes: take accuracy or top5" train --metric mae
expect 1 "metric 'rmse' is for models that give numbers" "$cleave" eval fashion-mnist --data idx --model mlp --weights w.safetensors \
    --device "$device" --metric rmse
expect 2 "--patience wants data to test on, and there are none: --images and --labels are all trained on" "$cleave" train --images x.npy --labels y.npy --model mlp \
    --device "$device" --patience 2
expect 2 "--metric wants data to test on, and there are none" "$cleave" train --images x.npy --labels y.npy --model mlp \
    --device "$device" --metric top5
expect 2 "--ema is above 0 and below 1, not 1: the part of the running average that each step keeps" train --ema 1
expect 1 "nowhere" train --save-best nowhere/best.safetensors
finish
