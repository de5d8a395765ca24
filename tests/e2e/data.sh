#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Texts and tables on the command line: a GPT learns a text and is measured with its weights, a table of numbers and one of words are
# learnt; what does not fit is told in one sentence.
. "$(dirname "$0")/common.sh"

awk 'BEGIN { for (i = 0; i < 250; i++) print "the quick brown fox jumps over the lazy dog " i % 7 }' >text.txt
gpt="--context 16 --width 24 --heads 3 --layers 2 --batch 8 --device $device --quiet"

# at_shape FILE : the tokens that weights know.
at_shape() { "$helper" shapes "$1" | sed -n 's/^lm_head.weight \[\([0-9]*\),.*/\1/p'; }

# A text: learnt, kept with its vocabulary, measured again on the same last part.
works "$cleave" train text text.txt $gpt --lr 0.01 --epochs 2 --save gpt.safetensors --json
accuracy=$(at test_accuracy) loss=$(at test_loss)
awk "BEGIN { exit !($accuracy > 0.8 && $loss < 0.8) }" || fail "a text that repeats itself is not learnt: accuracy $accuracy, loss $loss"
works "$cleave" eval text text.txt --weights gpt.safetensors --device "$device" --json
awk "BEGIN { exit !($(at test_loss) - $loss < 1e-6 && $loss - $(at test_loss) < 1e-6) }" || fail "evaluated again the loss is $(at test_loss), not $loss"
grep -q '"cleave.tokens":"characters"' gpt.safetensors || fail "the weights do not tell their vocabulary"
# written by it: what it has read again and again; the same with every way to compute it
works "$cleave" generate --weights gpt.safetensors --prompt 'the quick brown' --length 29 --temperature 0 --device "$device" --json
same "text" "$(at text)" "the quick brown fox jumps over the lazy dog "
cp out json
works "$cleave" generate --weights gpt.safetensors --prompt 'the quick brown' --length 29 --temperature 0 --device "$device" --no-kv-cache
same "text without a cache" "$(cat out)" "the quick brown fox jumps over the lazy dog "
cp json out
same "memory of generate" "$(at memory.0.peak_bytes)" "$(at memory.0.predicted_peak_bytes)"
works "$cleave" generate --weights gpt.safetensors --prompt 'dog' --length 50 --seed 3 --top-k 5 --device "$device"
cp out first
works "$cleave" generate --weights gpt.safetensors --prompt 'dog' --length 50 --seed 3 --top-k 5 --device "$device"
cmp -s first out || fail "the same seed writes another text"
# what it tells of its speed and its loss
"$cleave" generate --weights gpt.safetensors --prompt 'dog' --length 20 --device "$device" >out 2>err
grep -q '^20 tokens, [0-9][0-9]* a second on ' err || fail "generate tells of its speed: $(cat err)"
works "$cleave" eval text text.txt --weights gpt.safetensors --device "$device" --json
awk "BEGIN { d = $(at perplexity) - exp($(at test_loss)); exit !(d < 1e-6 && d > -1e-6) }" || fail "perplexity $(at perplexity) of the loss $(at test_loss)"
works "$cleave" eval text text.txt --weights gpt.safetensors --device "$device"
grep -q '^perplexity 1\.' out || fail "eval tells no perplexity: $(cat out)"
# weights that are not finite: a sentence, and no text
cp gpt.safetensors nan.safetensors
header=$(od -An -tu8 -N8 gpt.safetensors | tr -d ' ')
printf '\000\000\300\177' | dd of=nan.safetensors bs=1 seek=$((8 + header)) conv=notrunc 2>/dev/null
expect 1 'no token can be chosen: the logit of token 0 is NaN' "$cleave" generate --weights nan.safetensors --prompt 'dog' --device "$device"
expect 2 '--weights wants a file' "$cleave" generate --prompt x
expect 2 '--prompt TEXT says it' "$cleave" generate --weights gpt.safetensors
expect 2 '--top-p is a probability' "$cleave" generate --weights gpt.safetensors --prompt x --top-p 2
expect 1 "the character 'Q' (byte 4 of the text) is not in the vocabulary" "$cleave" generate --weights gpt.safetensors --prompt 'the Queen' --device "$device"
# logits of tokens, of the model that the weights tell of
"$helper" tokens 3 16 t.npy || fail "no tokens"
works "$cleave" run --model gpt --weights gpt.safetensors --input t.npy --output l.npy --device "$device" --json
same "shape of logits" "$(at shape.0 shape.1 shape.2 | tr '\n' ' ')" "3 16 $(at_shape gpt.safetensors) "
"$helper" tokens 3 5 short.npy
expect 1 "of shape [5] do not fit model 'gpt', which wants [16]" "$cleave" run --model gpt --weights gpt.safetensors --input short.npy --output l.npy --device "$device"
"$helper" images 2 x.npy
expect 1 "tokens must be int32" "$cleave" run --model gpt --weights gpt.safetensors --input x.npy --output l.npy --device "$device"
expect 2 '--input-size is for models of images' "$cleave" plan gpt --input-size 3x4x5 --device "$device"
# going on with them takes their sizes and vocabulary
works "$cleave" train text text.txt --batch 8 --device "$device" --quiet --weights gpt.safetensors --epochs 1 --json
awk "BEGIN { exit !($(at train_loss) < $loss + 0.2) }" || fail "weights to begin with do not help: $(at train_loss)"
# bytes, without a part to test on; what they write is no UTF-8 everywhere
works "$cleave" train text text.txt $gpt --vocabulary bytes --validation 0 --steps 3 --save bytes.safetensors --json
[ "$(at test_loss) $(at perplexity)" = "null null" ] || fail "tested on nothing, and told $(at test_loss)"
works "$cleave" generate --weights bytes.safetensors --prompt "$(printf 'a\346\227')" --length 40 --device "$device" --json
grep -q "\"text\": *\"a$(printf '\357\277\275')" out || fail "bytes that are no UTF-8 become $(cat out)"
works "$cleave" generate --weights bytes.safetensors --prompt "$(printf 'a\346\227')" --length 40 --device "$device"
grep -q "$(printf '\357\277\275')" out || fail "bytes that are no UTF-8 are shown as '$(cat out)'"
# micro-batches and a checkpoint: as any other training
works "$cleave" train text text.txt $gpt --micro-batches 2 --schedule constant --epochs 1 --checkpoint t.ckpt --json
works "$cleave" train text text.txt $gpt --micro-batches 2 --schedule constant --epochs 2 --resume t.ckpt --json

# A table of numbers: y = 3 a - 2 b + 1.
awk 'BEGIN { print "a,b,name,y"; for (i = 0; i < 200; i++) { a = i % 13 / 6 - 1; b = i % 7 / 3 - 1; print a "," b ",n" i "," 3 * a - 2 * b + 1 } }' >line.csv
table="--target y --ignore name --model linear --device $device --quiet --batch 10"
works "$cleave" train csv line.csv $table --optimizer sgd --lr 0.1 --schedule constant --epochs 40 --save line.safetensors --json
awk "BEGIN { exit !($(at test_loss) < 1e-4) }" || fail "a line is not learnt: $(at test_loss)"
[ "$(at test_accuracy)" = null ] || fail "numbers have no accuracy, and $(at test_accuracy) is told"
works "$cleave" train csv line.csv --target y --ignore name --device "$device" --steps 1
grep -qF '1 number to be learnt, shuffled' err || fail "what is learnt is told in other words: $(grep -A 1 samples err)"
works "$cleave" eval csv line.csv --target y --ignore name --model linear --weights line.safetensors --device "$device"
grep -q 'test loss 0.0000' out || fail "eval of a table tells: $(cat out)"
# the weights know the model, and what was learnt; columns by their names, whatever their order
awk -F, 'BEGIN { OFS = "," } { print $4, $2, $3, $1 }' line.csv >turned.csv
works "$cleave" eval csv turned.csv --weights line.safetensors --device "$device"
grep -q 'test loss 0.0000' out || fail "eval of a table with its columns turned round tells: $(cat out)"
works "$cleave" train csv turned.csv --weights line.safetensors --device "$device" --quiet --optimizer sgd --lr 1e-6 --schedule constant --epochs 1 --json
awk "BEGIN { exit !($(at train_loss) < 1e-3) }" || fail "weights to begin with, of a table with other columns: $(at train_loss)"
# of words: two classes, standardized
awk 'BEGIN { print "x;y;side"; for (i = 0; i < 200; i++) { x = i * 37 % 101; y = i * 53 % 97; print x ";" y ";" (x > y ? "above" : "below") } }' >side.csv
works "$cleave" train csv side.csv --target side --standardize --device "$device" --quiet --epochs 40 --json
awk "BEGIN { exit !($(at test_accuracy) > 0.9) }" || fail "two classes of rows are not learnt: $(at test_accuracy)"
works "$cleave" train csv side.csv --target side --standardize --device "$device" --quiet --epochs 40 --save side.safetensors
works "$cleave" eval csv side.csv --validation 1 --weights side.safetensors --device "$device" --per-class --json
same "classes by name" "$(at per_class.classes.0.name per_class.classes.1.name | tr '\n' ' ')" 'above below '
same "all of them" "$(($(at per_class.classes.0.targets) + $(at per_class.classes.1.targets)))" 200
"$helper" bare side.safetensors nan.safetensors fc2.bias
"$cleave" eval csv side.csv --weights nan.safetensors --device "$device" >out 2>err && fail "NaN weights of a table are a success"
grep -qF "'fc2.bias' of the weights 'nan.safetensors' has such a value" err || fail "NaN weights of a table: $(cat err)"

# Prices in hundreds of thousands, two columns of words, values missing: learnt with nothing named, told in their units by all three
# commands, and new rows with a word that nobody knows.
awk 'BEGIN {
    srand(7); split("Ulm Bonn Kiel", city, " "); split("flat house", kind, " "); print "city,kind,area,year,price"
    for (i = 0; i < 400; i++) {
        c = int(rand() * 3) + 1; k = int(rand() * 2) + 1; a = 40 + int(rand() * 160); y = 1950 + int(rand() * 70)
        p = 100000 + c * 60000 + k * 50000 + a * 2000 + (y - 1950) * 1500
        print (i % 40 ? city[c] : "") "," kind[k] "," (i % 50 ? a : "NA") "," y "," p
    } }' >houses.csv
expect 1 "(in 10 of 400 rows; also 'area' in 8); --missing drop leaves such rows out, --missing mean fills in the column's mean and makes a category of missing words" "$cleave" train csv houses.csv --target price --device "$device"
works "$cleave" train csv houses.csv --target price --missing mean --device "$device" --save houses.safetensors --json
awk "BEGIN { exit !($(at metrics.mae) > 100 && $(at metrics.mae) < 25000 && $(at baseline.loss) > 4e9 && $(at test_loss) < $(at baseline.loss) / 5) }" ||
    fail "prices are not learnt: mae $(at metrics.mae), loss $(at test_loss), of the mean $(at baseline.loss)"
same "better than the mean" "$(at baseline.no_better)" false
same "values filled in" "$(at table.filled)" 17
mae=$(at metrics.mae)
works "$cleave" eval csv houses.csv --weights houses.safetensors --device "$device"
grep -qx 'houses.csv: of the 40 rows tested on: [0-9] missing values* [a-z ]*' err || fail "what is filled in: $(cat err)"
expect 2 "'houses.csv' is a file: \`cleave train csv houses.csv\` takes it" "$cleave" train houses.csv --target price --device "$device"
cut -d, -f1-4 houses.csv >few.csv
expect 1 "has no column 'price', which the model was trained on; of rows without it \`cleave run csv few.csv --weights houses.safetensors -o FILE\` writes predictions" \
    "$cleave" eval csv few.csv --weights houses.safetensors --device "$device"
works "$cleave" eval csv houses.csv --model mlp --weights houses.safetensors --device "$device" --json
same "mae in eval" "$(at metrics.mae)" "$mae"
{ head -n 11 houses.csv; echo 'Rom,flat,100,2000,0'; } >new.csv
works "$cleave" run csv new.csv --weights houses.safetensors --output told.csv --device "$device"
grep -q '^new.csv: 2 missing values are filled in; 1 word that the rows trained on do not have counts as none: .Rom. in line 12, column .city.$' err || fail "rows: $(cat err)"
paste -d, new.csv told.csv | awk -F, 'NR > 3 && NR < 12 { d = $5 - $6; if (d > 90000 || d < -90000) bad = 1 } END { exit bad }' || fail "prices: $(paste new.csv told.csv)"
# Numbers have a recipe of their own, classes another; options count more.
decays() {
    decay=$1
    shift
    works "$cleave" train csv houses.csv --missing drop --steps 1 --batch 7 --device "$device" "$@"
    grep -q "^  optimizer *adamw, weight decay $decay\$" err || fail "$*: no weight decay of $decay: $(cat err)"
}
decays 0.1 --target price
decays 0.01 --target kind
decays 0.03 --target price --weight-decay 0.03
works "$cleave" train csv houses.csv --target price --missing drop --steps 1 --batch 7 --device "$device" --json
same "rows left out" "$(at table.dropped)" 16
# without steps nothing is learnt, and that is said, of numbers and of classes, with a test set and without
works "$cleave" train csv houses.csv --target price --missing mean --device "$device" --lr 1e-9 --epochs 1
grep -q 'no better than always predicting the mean, whose loss is [0-9.e+]*: the model has learnt nothing' out || fail "it is not said: $(cat out)"
works "$cleave" train csv houses.csv --target price --missing mean --device "$device" --lr 1e-9 --epochs 1 --validation 0
grep -q 'no better than always predicting the mean' out || fail "it is not said without a test set: $(cat out)"
# a sorted table: what is tested on is not what was trained on
awk 'BEGIN { print "a,b,k"; for (i = 0; i < 200; i++) print i * 37 % 101 "," i * 17 % 53 "," (i < 120 ? "one" : i < 175 ? "two" : "three") }' >sorted.csv
awk 'BEGIN { print "a,b,y"; for (i = 0; i < 200; i++) print i * 37 % 101 "," i * 17 % 53 "," i * i }' >rising.csv
remedy="put them in random order, \`(head -n 1 sorted.csv; tail -n +2 sorted.csv | shuf) >mixed.csv\`"
works "$cleave" train csv sorted.csv --target k --device "$device" --epochs 2 --save sorted.safetensors
grep -qF "all 20 rows tested on are of class 'three': that tells nothing of how well classes are told apart; the last rows of a table are tested on: $remedy" out ||
    fail "one class is not told: $(cat out)"
grep -q 'no better than always' out && fail "it is blamed on the training: $(cat out)"
works "$cleave" eval csv sorted.csv --weights sorted.safetensors --device "$device"
grep -qF "all 20 rows tested on are of class 'three'" out || fail "eval does not tell one class: $(cat out)"
works "$cleave" train csv sorted.csv --target k --device "$device" --epochs 2 --validation 0.2
grep -qF "class 'three' is in 25 of the 40 rows tested on and in none that was trained on: it cannot be learnt; the last" out || fail "a new class: $(cat out)"
works "$cleave" train csv rising.csv --target y --device "$device" --epochs 2
grep -qF "all 20 rows tested on have larger numbers to be learnt than any that was trained on" out || fail "larger numbers: $(cat out)"
works "$cleave" train csv rising.csv --target y --device "$device" --epochs 150
best=$(sed -n 's/^epoch \([0-9]*\).* was better than the last.*/\1/p' out)
[ "$best" ] || fail "no epoch was better: $(cat out)"
case $(grep -c "^epoch $best/" err)$(grep -c "^epoch $best, whose line is one of those left out, was better" out) in 10 | 01) ;; *) fail "where is the best epoch's line? $(cat out)" ;; esac
# a column of decimal points: a comma sets thousands apart
awk 'BEGIN { print "a;y"; for (i = 0; i < 40; i++) print i * 37 % 101 * 20 ".5;" i }' >points.csv
works "$cleave" train csv points.csv --target y --device "$device" --steps 2 --save points.safetensors
printf 'a;y\n1,200;0\n' >comma.csv && printf 'a;y\n1200;0\n' >plain.csv
works "$cleave" run csv comma.csv --weights points.safetensors -o comma.out --device "$device"
works "$cleave" run csv plain.csv --weights points.safetensors -o plain.out --device "$device"
cmp -s comma.out plain.out || fail "1,200 is not 1200"
awk 'BEGIN { print "a;y"; for (i = 0; i < 40; i++) print i * 37 % 101 * 20 ";" i }' >points.csv
works "$cleave" train csv points.csv --target y --device "$device" --steps 2 --save points.safetensors
expect 1 "'1,200' in column 'a' may be a thousand and more" "$cleave" run csv comma.csv --weights points.safetensors -o comma.out --device "$device"
# several targets: the mean's loss is in the model's units, deviations
for part in 0.1 0; do
    works "$cleave" train csv houses.csv --target price,area --missing drop --device "$device" --lr 1e-9 --epochs 1 --validation $part --save two.safetensors
    grep -q 'no better than always predicting the mean, whose loss is [01][.][0-9]*: the model has learnt nothing' out || fail "it is not said of two targets: $(cat out)"
done
works "$cleave" eval csv houses.csv --weights two.safetensors --device "$device" --json
same "two targets, no better" "$(at baseline.no_better)" true
works "$cleave" train csv houses.csv --target price,area --missing drop --device "$device" --epochs 40 --json
same "two targets, better" "$(at baseline.no_better)" false
works "$cleave" train csv houses.csv --target price --missing mean --device "$device" --no-standardize --epochs 1
grep -q '^test loss [0-9.]*e+[0-9]*$' out || fail "a large loss is not readable: $(cat out)"
awk 'BEGIN { print "a,y"; for (i = 0; i < 100; i++) print i * 37 % 101 "," (i % 10 ? "common" : "rare") }' >rare.csv
works "$cleave" train csv rare.csv --target y --device "$device" --epochs 1
grep -q 'no better than always predicting the commonest class, which is right in 0.9000' out || fail "it is not said of classes: $(cat out)"
# a part of the rows is what was asked for: 0.8 of 100 leaves 20
works "$cleave" train csv rare.csv --target y --validation 0.8 --device "$device" --epochs 1
grep -q '20 to train on, 80 to test on' err || fail "parts: $(cat err)"
awk 'BEGIN { print "id,a"; for (i = 0; i < 100; i++) print "n" i "," i }' >ids.csv
awk 'BEGIN { print "id,a"; for (i = 0; i < 300; i++) print "n" i % 60 "," i }' >few.csv
works "$cleave" train csv few.csv --target id --device "$device" --steps 1
grep -q "^few.csv: column 'id' has 60 classes in 270 rows, 4.5 rows each: few to learn a class from" err || fail "few rows are not told: $(cat err)"
expect 1 "column 'id' has 100 classes in 100 rows, and a class needs several rows" "$cleave" train csv ids.csv --target id --device "$device"

# Labels of tokens smoothed; mixed rows; tokens are not.
works "$cleave" train text text.txt $gpt --lr 0.01 --label-smoothing 0.1 --epochs 2 --json
same "memory with smoothing" "$(at memory.0.peak_bytes)" "$(at memory.0.predicted_peak_bytes)"
awk "BEGIN { exit !($(at test_accuracy) > 0.8 && $(at train_loss) > $(at test_loss)) }" || fail "smoothed: loss $(at train_loss), tested $(at test_loss)"
works "$cleave" train csv side.csv --target side --standardize --mixup 0.2 --label-smoothing 0.1 --device "$device" --quiet --epochs 40 --json
awk "BEGIN { exit !($(at test_accuracy) > 0.9) }" || fail "two classes of mixed rows are not learnt: $(at test_accuracy)"
expect 1 "label smoothing is for the losses cross_entropy and bce_with_logits, not for 'mse'" "$cleave" train csv line.csv $table --label-smoothing 0.1
expect 1 "those of model 'gpt' are tokens" "$cleave" train text text.txt $gpt --mixup 0.2

# One sentence each.
expect 2 'gpt is a model of texts' "$cleave" train fashion-mnist --model gpt
expect 2 'cnn is a model of images; of texts there are gpt, gpt2, llama and lstm_lm' "$cleave" train text text.txt --model cnn
expect 2 '`text FILE` wants the name of a file' "$cleave" train text
expect 2 '--context is of texts' "$cleave" train fashion-mnist --context 5
expect 2 '--validation is of texts and tables' "$cleave" train fashion-mnist --validation 0.5
expect 2 'below 1, not 1' "$cleave" train text text.txt --validation 1
# tokens of a tokenizer.json: the weights carry it
awk 'BEGIN { for (i = 0; i < 300; i++) printf "encyclopaedia thoroughfare " }' >words.txt
echo '{"model":{"type":"WordLevel","unk_token":"u","vocab":{"u":0,"encyclopaedia":1,"thoroughfare":2}},"pre_tokenizer":{"type":"WhitespaceSplit"}}' >long.json
if "$cleave" train text words.txt $gpt --tokenizer long.json --validation 0 --lr 0.01 --steps 60 --save long.safetensors >said 2>&1; then
    # tokens of more than four bytes: all of the text, on the screen and in JSON
    works "$cleave" generate --weights long.safetensors --prompt 'encyclopaedia' --length 30 --temperature 0 --device "$device" --json
    at text >written
    [ "$(wc -c <written)" -gt 400 ] || fail "30 tokens of words are $(wc -c <written) bytes: $(cat written)"
    works "$cleave" generate --weights long.safetensors --prompt 'encyclopaedia' --length 30 --temperature 0 --device "$device"
    cmp -s written out || fail "the text on the screen is '$(cat out)', in JSON '$(cat written)'"
    works "$cleave" train text text.txt $gpt --tokenizer "${0%/*}/../golden/tokenizers/words.json" --validation 0 --steps 3 --save bpe.safetensors
    works "$cleave" generate --weights bpe.safetensors --prompt 'the quick 日本' --length 5 --device "$device"
    expect 1 'the text is not UTF-8 (byte 1)' "$cleave" generate --weights bpe.safetensors --prompt "$(printf 'a\377')" --device "$device"
else
    grep -q 'this build reads no tokenizers' said || fail "a tokenizer: $(cat said)"
fi
expect 2 'both say what a token is' "$cleave" train text text.txt --tokenizer x.json --vocabulary bytes
expect 2 'their classes are the tokens of the vocabulary' "$cleave" train text text.txt --classes 5
expect 2 'which column is to be learnt' "$cleave" train csv line.csv
expect 2 "--target and --ignore both name the column 'y'" "$cleave" train csv line.csv --target a,y --ignore name,y
expect 2 '--target is of tables' "$cleave" train text text.txt --target y
expect 2 'cnn is no model of rows' "$cleave" train csv line.csv --target y --model cnn
expect 2 'one word too many' "$cleave" train fashion-mnist line.csv
expect 1 "'none.txt'" "$cleave" train text none.txt --device "$device"
expect 1 "no column 'z'" "$cleave" train csv line.csv --target z --device "$device"
expect 1 "column 'name' has 180 different words in 180 rows: it names its rows, and says little of other rows; leave it out (--ignore), or take it all the same (--words)" \
    "$cleave" train csv line.csv --target y --device "$device"
expect 1 'take a longer text or another part of it (--validation), or a shorter context (--context)' "$cleave" train text text.txt --context 100000 --device "$device"
printf hello >five.txt
expect 1 'the text has 5 tokens, 1 of them in the part from 90 % to 100 % that is taken; a sample takes 128 and the one that follows: take a longer text or another part of it (--validation), or a shorter context (--context)' "$cleave" train text five.txt --device "$device"
head -c 3 text.txt >tiny.txt
expect 1 'the text has 3 tokens, 1 of them in the part from 90 % to 100 % that is taken; a sample takes' "$cleave" eval text tiny.txt --weights gpt.safetensors --device "$device"
grep -q 'take a longer text or another part of it (--validation); the weights have a context of [0-9]*$' err && ! grep -q -- '--context' err || fail "a remedy of train: $(cat err)"
works "$cleave" train text text.txt --context 8 --batch 1 --steps 1 --device "$device"
grep -q 'tokens to learn from are few for gpt as large as it is by default: --width 48 --heads 4 --layers 2 --context 48 ' err || fail "a short text: $(cat err)"
# more characters than can be learnt: told, and tested on some samples only; eval takes all
LC_ALL=C awk 'BEGIN { for (k = 0; k < 2; k++) for (i = 0; i < 9000; i++) printf "%c%c%c", 228 + int(i / 4096), 128 + int(i / 64) % 64, 128 + i % 64 }' >many.txt
many="--context 8 --width 8 --heads 1 --layers 1 --device $device"
works "$cleave" train text many.txt $many --stride 1 --validation 0.4 --batch 2 --steps 2 --save many.safetensors
grep -q '^9000 different tokens, and 10799 to learn from: too few of each' err || fail "few of each: $(cat err)"
grep -q '^tested after each epoch on 3596 of 719[0-9] samples' err || fail "all samples are tested on: $(cat err)"
expect 1 "'line.safetensors' holds weights of a table with the columns a, b, rows of 2 numbers: \`cleave train csv FILE" "$cleave" train text text.txt --weights line.safetensors --device "$device"
printf 'abc\377def' >bad.txt
expect 1 'not UTF-8 (byte 3)' "$cleave" train text bad.txt --context 2 --device "$device"
printf 'a,y\n1,2\n3,\n' >hole.csv
expect 1 "line 3: nothing stands in column 'y'" "$cleave" train csv hole.csv --target y --device "$device"
expect 1 "(in 1 of 2 rows); --missing drop leaves such rows out" "$cleave" train csv hole.csv --target y --device "$device"
printf 'a;y\n1,5;2\n3;3\n' >comma.csv
expect 1 "line 2: '1,5' in column 'a' is a number if commas are decimal; --decimal-comma reads numbers so" "$cleave" train csv comma.csv --target y --device "$device"
expect 1 "line 3: '3 rooms' in column 'y' is not a number, and 1 other of the column is one; mend it, or take each value as a class (--classes N)" \
    sh -c 'printf "a,y\n1,2\n2,3 rooms\n" >rooms.csv; "$0" train csv rooms.csv --target y --device "$1"' "$cleave" "$device"
printf 'a,y\n1,red\n3,red\n5,red\n' >one.csv
expect 1 "the targets of 'one.csv' are of one class" "$cleave" train csv one.csv --target y --validation 0 --device "$device"
# Values that are not finite: told where they stand; results that are not are written, and told.
"$helper" images 6 x.npy && "$helper" labels 6 y.npy || fail "no arrays"
linear="--model linear --device $device --quiet"
works "$cleave" train --images x.npy --labels y.npy $linear --steps 1 --save linear.safetensors
# Without a file the JSON has the results: the values that a file has, or a line that says how to have so many.
works "$cleave" run --input x.npy --weights linear.safetensors $linear --output logits.npy --json
same "results that a file has" "$(at results)" null
works "$cleave" run --input x.npy --weights linear.safetensors $linear --json
same "the results" "$(at output results.logits.dtype results.logits.shape.0 results.logits.shape.1 results.logits.hint | tr '\n' ' ')" 'null f32 6 10 null '
told=$(for r in 0 1 2 3 4 5; do
    for c in 0 1 2 3 4 5 6 7 8 9; do echo "$c $(at results.logits.values.$r.$c)"; done | sort -k2 -g | tail -n 1 | cut -d' ' -f1
done | tr '\n' ' ')
same "the likeliest of each" "$told" "$("$helper" likeliest logits.npy | cut -d, -f1 | tr '\n' ' ')"
"$helper" images 1001 many.npy 1 2 2 && "$helper" labels 1001 many-y.npy || fail "no arrays"
works "$cleave" train --images many.npy --labels many-y.npy $linear --steps 1 --save many.safetensors
works "$cleave" run --input many.npy --weights many.safetensors $linear --json
same "10010 results" "$(at results.logits.shape.0 results.logits.values results.logits.hint | tr '\n' ' ')" \
    '1001 null at most 10000 values are shown; --output FILE writes them all '
printf '\000\000\300\177' | dd of=x.npy bs=1 seek=$(($(wc -c <x.npy) - 4)) conv=notrunc 2>/dev/null
expect 1 "images 'x.npy': element [5,0,27,27] is nan in f32, and data must be finite" \
    "$cleave" train --images x.npy --labels y.npy $linear --steps 1
expect 1 "1 of 6 rows of 'logits.npy' are not finite (NaN or infinity), the first is row 5; in the input there are 1, the first is row 5" \
    "$cleave" run --input x.npy --weights linear.safetensors $linear --output logits.npy
[ -s logits.npy ] || fail "results that are not finite were not written"
"$cleave" run --input x.npy --weights linear.safetensors $linear --json >out 2>err && fail "results that are not finite are a success"
grep -qF "rows of 'x.npy' are not finite" err || fail "whose rows are not finite: $(cat err)"
finish
