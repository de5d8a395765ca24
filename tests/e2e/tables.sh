#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tables as a first user meets them: weights that lost what they know, another target than the one learnt, two targets, how many rows were
# tested, what data are counted in.
. "$(dirname "$0")/common.sh"

awk 'BEGIN { print "area,rooms,town,price,rent"
    for (i = 0; i < 60; i++) {
        a = 40 + i * 7 % 90; r = 1 + i % 5
        print (i % 20 == 3 ? "" : a) "," r "," (i % 3 ? "Ulm" : "Bonn") "," 1000 * (2 * a + 15 * r) "," 3 * a + r
    } }' >houses.csv
how="--missing mean --device $device --batch 6"
works "$cleave" train csv houses.csv --target price --ignore rent $how --steps 200 --save w.safetensors --json

# Weights that went through a program which keeps the tensors alone: what they lost is said, and no option that the command lacks.
lost="the program that wrote it kept the tensors alone, as safetensors' save_file does; save_file(tensors, path, metadata=f.metadata())"
# says TEXT COMMAND... : one sentence with it and with what keeps the record, and no remedy of `train`.
says() {
    says_text=$1
    shift
    "$@" >out 2>err && fail "lost weights are a success: $*"
    grep '^cleave: ' err >sentence
    grep -qF -- "$says_text" sentence && grep -qF "$lost" sentence || fail "$*: $(cat err)"
    ! grep -q -- '--missing\|--words\|,0,0\]' sentence || fail "$* names what is not there: $(cat sentence)"
}
"$helper" bare w.safetensors bare.safetensors || fail "no bare weights"
for model in '' '--model mlp'; do
    says "'bare.safetensors' does not tell the columns of its table; " "$cleave" eval csv houses.csv $model --weights bare.safetensors --device "$device"
    says "'bare.safetensors' does not tell the columns of its table; " "$cleave" run csv houses.csv $model --weights bare.safetensors --output x.csv --device "$device"
    says "does not tell its inputs and targets; " "$cleave" run arrays d.npz $model --weights bare.safetensors --output x.npz --device "$device"
    says "does not tell its inputs and targets; " "$cleave" eval arrays d.npz $model --weights bare.safetensors --device "$device"
done
says "nothing stands in column 'area' (in 3 of 60 rows); 'bare.safetensors' does not tell what to do with it" \
    "$cleave" eval csv houses.csv --target price --model mlp --weights bare.safetensors --device "$device"
says "rows are [3] here, and 'bare.safetensors' does not tell the columns of its table" \
    "$cleave" eval csv houses.csv --target price --ignore area,rent --model mlp --weights bare.safetensors --device "$device"
says 'which model? --model wants one of linear, mlp, ' "$cleave" eval images . --weights bare.safetensors --device "$device"
says 'which model? ' "$cleave" run images x.png --weights bare.safetensors --device "$device"
says 'which model? ' "$cleave" run --input x.npy --weights bare.safetensors --output y.npy --device "$device"
# weights of a model of another program, on a table of numbers: as the options say, and that is told
sed 's/Bonn/1/;s/Ulm/2/;s/^,/50,/' houses.csv >numbers.csv
works "$cleave" train csv numbers.csv --target price --ignore rent --device "$device" --steps 5 --no-standardize --save n.safetensors --json
loss=$(at test_loss)
"$helper" bare n.safetensors other.safetensors
works "$cleave" eval csv numbers.csv --target price --ignore rent --model mlp --weights other.safetensors --device "$device" --json
same "the loss of weights that tell nothing" "$(at test_loss)" "$loss"
grep -qF "'other.safetensors' does not tell what it was trained on: columns are as this table has them" err || fail "it is not told: $(cat err)"

# All columns that a table lacks are named, by eval and by run, which needs no targets.
printf 'aera,rooms\n50,3\n' >less.csv
expect 1 "'less.csv' has no columns 'area', 'town', which the model was trained on" "$cleave" run csv less.csv --weights w.safetensors --output o.csv --device "$device"
expect 1 "'less.csv' has no columns 'area', 'town', 'price', which the model was trained on" "$cleave" eval csv less.csv --weights w.safetensors --device "$device"
printf 'area,rooms,twon\n50,3,Ulm\n' >less.csv
expect 1 "'less.csv' has no column 'town', which the model was trained on; did you mean 'twon'?" "$cleave" run csv less.csv --weights w.safetensors --output o.csv --device "$device"
printf 'area,rooms,town\n50,3,Ulm\n' >less.csv
expect 1 "'less.csv' has no column 'price', which the model was trained on" "$cleave" eval csv less.csv --weights w.safetensors --device "$device"
# Another column than the one learnt.
expect 1 "'houses.csv': the model learnt 'price', and the column 'rent' is another one; leave its name out (--target)" \
    "$cleave" eval csv houses.csv --target rent --weights w.safetensors --device "$device"
expect 1 "the model learnt 'price', and the column 'rent' is another one" "$cleave" train csv houses.csv --target rent --weights w.safetensors --device "$device"
# What to do without a column that rows lack; what a file is that has not the column meant; a part of no rows.
printf 'rooms,town\n3,Ulm\n' >less.csv
expect 1 "'less.csv' has no column 'area', which the model was trained on; to do without it train again and leave it out (--ignore)" \
    "$cleave" run csv less.csv --weights w.safetensors --output o.csv --device "$device"
expect 1 "'houses.csv' has no column 'cost', it has 'area', 'rooms', 'town', 'price', 'rent'" "$cleave" train csv houses.csv --target cost --device "$device"
# Numbers with a unit are no words, few or many, as an input and as a target; words that only begin with numbers are.
awk 'BEGIN { print "area,street,price"; for (i = 0; i < 60; i++) print 40 + i " m²," i % 3 " Long Street " i % 4 "," 100 * i " EUR" }' >units.csv
head -n 20 units.csv >few.csv
for table in units few; do
    expect 1 "'$table.csv': '40 m²' in column 'area' is a number with the unit 'm²', like all of the column: write the numbers alone, or take them as words (--words)" \
        "$cleave" train csv $table.csv --target street --device "$device"
    expect 1 "'0 EUR' in column 'price' is a number with the unit 'EUR', like all of the column: write the numbers alone, or take them as classes (--classes N)" \
        "$cleave" train csv $table.csv --target price --ignore area --device "$device"
done
works "$cleave" train csv few.csv --target street --words area,price --validation 0 --steps 1 --device "$device"
# A table without names of columns: what is learnt, and what weights know, is not there.
tail -n +6 houses.csv >nohead.csv
expect 1 "'nohead.csv' has no column 'cost', it has '68', '5', 'Ulm', '211000', '209'; the first line must name the columns, and looks like a row" \
    "$cleave" train csv nohead.csv --target cost --device "$device"
for command in 'eval csv nohead.csv' 'run csv nohead.csv --output o.csv'; do
    expect 1 ", which the model was trained on; the first line must name the columns, and looks like a row" "$cleave" $command --weights w.safetensors --device "$device"
done
head -n 2 houses.csv >one.csv
expect 1 "none of the 1 rows lies in the part from 0 to 0.9; give more rows, or another part (--validation)" "$cleave" train csv one.csv --target price --device "$device"
# A column that counts the rows, in their order or not, is told before the training; numbers that come twice are none.
awk -F, 'NR == 1 { print "id," $0 } NR > 1 { print NR * 7 % 61 + 100 "," $0 }' houses.csv >ids.csv
works "$cleave" train csv ids.csv --target price $how --steps 1
same "ids" "$(grep -c 'another whole number in each row' err)" 1
grep -qF "ids.csv: column 'id' has another whole number in each row, as ids do, and rows to predict will need it; --ignore id leaves it out" err || fail "ids: $(cat err)"
works "$cleave" train csv ids.csv --target price $how --ignore id --steps 1
! grep -q 'another whole number' err || fail "no ids: $(cat err)"
works "$cleave" eval csv houses.csv --target price --weights w.safetensors --device "$device"

# How many rows were tested, and what data are counted in.
# The first batch, for which kernels are compiled, is not in the rate: with one batch alone there is none.
grep -q '^tested on 6 rows$' out || fail "eval does not tell its rows: $(cat out)"
part="this tests on the last tenth of 'houses.csv', as \`train\` does; --validation 1 tests on all of it, if it was not trained on"
grep -qF "$part" err || fail "eval does not tell that these are a part: $(cat err)"
works "$cleave" eval csv houses.csv --validation 1 --weights w.safetensors --device "$device"
grep -q '^tested on 60 rows$' out && ! grep -q 'the last tenth' err || fail "all rows, and eval tells: $(cat out err)"
works "$cleave" eval csv houses.csv --target price --weights w.safetensors --device "$device"
# What always the mean gets stands beside what the model got: of the rows tested, in their units.
# mean_of COLUMN N NAME : its mae and rmse over the last N rows, as eval tells them.
mean_of() {
    tail -n "$2" houses.csv | awk -F, -v c="$1" -v name="$3" '{ v[NR] = $c; s += $c }
        END { m = s / NR; for (i = 1; i <= NR; i++) { d = v[i] - m; q += d * d; a += d < 0 ? -d : d }
            f = m < 1000 ? "%s%s %.4f, %s%s %.4f\n" : "%s%s %.1f, %s%s %.1f\n"; printf f, name, "mae", a / NR, name, "rmse", sqrt(q / NR) }'
}
same "the mean's error" "$(grep '^always' out)" "always the mean: $(mean_of 4 6 '')"
works "$cleave" eval csv houses.csv --weights w.safetensors --device "$device" --batch 2
grep -q '^tested on 6 rows, [0-9]* rows/s$' out || fail "eval does not tell how fast it was: $(cat out)"
works "$cleave" eval csv houses.csv --weights w.safetensors --device "$device" --batch 4 --json # 4 rows and 2: no whole batch follows
same "rate" "$(at images_per_second)" null
works "$cleave" eval csv houses.csv --validation 1 --weights w.safetensors --device "$device" --json
same "rows tested" "$(at count table.rows | tr '\n' ' ')" '60 60 '
works "$cleave" train csv houses.csv --target price --ignore rent $how --epochs 40 --log t.jsonl
grep -q '^[0-9]* rows/s on average, ' out || fail "a table's speed is told as: $(cat out)"
works "$cleave" top t.jsonl
grep -q ' rows/s  done' out && ! grep -q 'images/s' out || fail "top counts rows as: $(cat out)"
works "$cleave" report --log t.jsonl --output r.html
grep -q 'rows per second' r.html && grep -q 'rows/s' r.html && ! grep -q 'images' r.html || fail "the page does not count rows"
i=0
while [ $i -lt 20 ]; do echo "In the beginning were $i words."; i=$((i + 1)); done >text.txt
works "$cleave" train text text.txt --context 8 --width 16 --heads 2 --layers 1 --batch 8 --epochs 5 --device "$device" --save g.safetensors
grep -q '^  samples  *[0-9]* to train on, [0-9]* to test on: text.txt, each of 8 tokens, 26 in the vocabulary, shuffled$' err || fail "the samples of a text: $(cat err)"
grep -q '^[0-9]* tokens/s on average, ' out || fail "a text's speed is told as: $(cat out)"
works "$cleave" eval text text.txt --weights g.safetensors --device "$device"
grep -q '^tested on [0-9]* tokens$' out || fail "eval does not tell its tokens: $(cat out)"
works "$cleave" eval text text.txt --weights g.safetensors --device "$device" --per-class
grep -q '^token  *told as  *times$\|^token  *precision' out && ! grep -q class out || fail "the tokens of a text are told as: $(cat out)"
works "$cleave" train text text.txt --context 8 --width 16 --heads 2 --layers 1 --batch 8 --steps 1 --lr 1e-9 --device "$device"
grep -q '^no better than always predicting the commonest token, .* to tell tokens apart; ' out && ! grep -q class out err || fail "a text that was not learnt: $(cat out)"
"$helper" fields 40 d.npz || fail "no arrays"
works "$cleave" train arrays d.npz --target kind,price --epochs 5 --batch 8 --device "$device" --save a.safetensors
grep -q '^[0-9]* samples/s on average, ' out || fail "the speed of arrays is told as: $(cat out)"
works "$cleave" eval arrays d.npz --weights a.safetensors --validation 1 --batch 10 --device "$device"
grep -q '^tested on 40 samples, [0-9]* samples/s$' out || fail "eval does not tell its samples: $(cat out)"
grep -q '^always the commonest class of kind: accuracy 0\.[0-9]*$' out && grep -q '^always the mean: price:mae [0-9.]*, price:rmse [0-9.]*$' out ||
    fail "the commonest class and the mean: $(cat out)"
grep -q '^test price:mae [0-9.]*$' out || fail "a second target's error in its units is told unasked: $(cat out)"
works "$cleave" eval arrays d.npz --weights a.safetensors --validation 1 --metric price:mae --device "$device"
grep -q '^always the commonest class of kind: accuracy 0\.[0-9]*$' out && grep -q '^always the mean: price:mae [0-9.]*$' out || fail "the mean of an array: $(cat out)"

# Two columns of numbers: each has its metrics by its name, in its own units, wherever they are told.
works "$cleave" train csv houses.csv --target price,rent $how --epochs 60 --save two.safetensors --log two.jsonl
price=$(sed -n 's/^test price:mae //p' out) rent=$(sed -n 's/^test rent:mae //p' out)
awk "BEGIN { exit !($price > 20 && $price < 60000 && $rent > 0.02 && $rent < 90) }" || fail "mae of price $price, of rent $rent: $(cat out)"
grep -q '^test loss [0-9.]* (of standardized targets)$' out || fail "it is not said what the loss is of: $(cat out)"
grep -q 'epoch 60/60 .* price:mae ' err || fail "an epoch does not tell them: $(tail -n 3 err)"
grep -q '"metrics":{"price:mae":.*"rent:mae":.*"price:rmse":.*"rent:rmse":' two.jsonl || fail "the log does not tell them"
works "$cleave" eval csv houses.csv --weights two.safetensors --device "$device"
same "both in eval" "$(sed -n 's/^test \([a-z]*:mae\) /\1 /p' out | tr '\n' ' ')" "price:mae $price rent:mae $rent "
same "the mean's error of both" "$(sed -n 's/^always the mean: //p' out | tr ',' '\n' | sed 's/^ //' | sort | tr '\n' ',')" \
    "$({ mean_of 4 6 price: && mean_of 5 6 rent:; } | tr ',' '\n' | sed 's/^ //' | sort | tr '\n' ',')"
works "$cleave" eval csv houses.csv --weights two.safetensors --device "$device" --metric rent:mae,mae --json
awk "BEGIN { d = $(at metrics.rent:mae) - $rent; exit !(d < 0.01 && d > -0.01) }" || fail "mae of rent is $(at metrics.rent:mae), not $rent"
# a metric that names no target is told of each, and no mean of dollars and years says which epoch is best
works "$cleave" train csv houses.csv --target price,rent $how --epochs 60 --metric rmse,mae,rent:mae --log two.jsonl
same "metrics of each" "$(sed -n 's/^test \([a-z]*:[a-z]*\) .*/\1/p' out | tr '\n' ' ')" "rent:mae price:rmse rent:rmse price:mae "
same "mae of each" "$(sed -n 's/^test [a-z]*:mae //p' out | tr '\n' ' ')" "$rent $price "
grep -q '"metrics":{"rent:mae":[0-9.]*,"price:rmse":[0-9.]*,"rent:rmse":[0-9.]*,"price:mae":[0-9.]*}' two.jsonl || fail "metrics of each in the log"
works "$cleave" eval csv houses.csv --weights two.safetensors --device "$device" --metric mae --json
same "metrics of each as JSON" "$(tr -d ' \n' <out | grep -o '"metrics":{[^}]*}' | sed 's/":[0-9][0-9.]*/"/g')" '"metrics":{"price:mae","rent:mae"}'
expect 2 "--monitor: mae is for one target, and there are several: name one, as price:mae, or take loss" "$cleave" train csv houses.csv \
    --target price,rent $how --metric mae --monitor mae --patience 2
# as the predictions have it
works "$cleave" run csv houses.csv --weights two.safetensors --output told.csv --device "$device"
# --quiet: nothing but what was asked for.
works "$cleave" run csv houses.csv --weights two.safetensors --output quiet.csv --device "$device" --quiet
[ ! -s out ] && [ ! -s err ] && cmp -s told.csv quiet.csv || fail "run --quiet says: $(cat out err)"
works "$cleave" eval csv houses.csv --weights two.safetensors --device "$device" --quiet
grep -q '^test loss' out && ! grep -q '^memory on' out && [ ! -s err ] || fail "eval --quiet says: $(cat out err)"
paste -d, houses.csv told.csv | awk -F, -v want="$price" 'NR > 55 { d = $4 - $6; s += d < 0 ? -d : d } END { d = s / 6 / want - 1; exit !(d < 1e-3 && d > -1e-3) }' ||
    fail "mae of price is $price, and predictions have another"
works "$cleave" train csv houses.csv --target price,rent $how --epochs 3 --monitor rent:mae --patience 2
expect 1 "model 'mlp' has no target 'rents'; it has 'price', 'rent'" "$cleave" eval csv houses.csv --weights two.safetensors --metric rents:mae --device "$device"
works "$cleave" eval csv houses.csv --weights w.safetensors --metric price:mae --device "$device"
grep -q '^test price:mae [0-9.]*$' out || fail "the metric of one column by its name: $(cat out)"
grep -q '^test loss [0-9.e+]*$' out || fail "the loss of one column is in its units: $(cat out)"

# Every column in which something is missing is named with its count, and what is filled in adds up to them: of rows trained on and tested.
awk 'BEGIN { print "area,year,town,price"
    for (i = 0; i < 60; i++) print (i % 20 == 3 ? "" : i) "," (i % 15 == 14 ? "NA" : 1950 + i) "," (i == 7 ? "" : "Ulm") "," 7 * i }' >gaps.csv
expect 1 "line 5: nothing stands in column 'area' (in 3 of 60 rows; also 'year' in 4, 'town' in 1); --missing drop leaves such rows out, --missing mean fills in the column's mean and makes a category of missing words" \
    "$cleave" train csv gaps.csv --target price --device "$device"
works "$cleave" train csv gaps.csv --target price --device "$device" --missing mean --steps 1
grep -q '^gaps.csv: 8 missing values are filled in$' err || fail "8 values are missing: $(cat err)"
works "$cleave" train csv gaps.csv --target price --device "$device" --missing drop --steps 1
grep -q '^gaps.csv: 8 rows are left out, because values are missing$' err || fail "8 rows have gaps: $(cat err)"

# Inputs made in Python as docs/pytorch.md has it give what `run` tells: numbers and words, categories, what is missing, unknown words;
# one target and two, standardized and not; classes.
python_with torch
examples "$scripts/../../docs/pytorch.md"
[ -s table.py ] || fail "docs/pytorch.md has no example of a table"
if [ -n "$python" ]; then
    { head -n 9 houses.csv && echo 'NA,2,Rom,0,0' && echo '70,3,,0,0'; } >rows.csv
    for options in 'price --words rooms --missing mean' 'rent,price --missing mean' 'price --no-standardize --missing mean' \
        'price --missing mean --model linear' 'town --ignore price --missing mean' 'price --missing drop --ignore rent'; do
        case $options in *drop*) sed -i '/^,/d;/^NA/d;/,,/d' rows.csv ;; *) ;; esac
        works "$cleave" train csv houses.csv --target $options --device "$device" --batch 6 --steps 60 --save houses.safetensors
        works "$cleave" run csv rows.csv --weights houses.safetensors --device "$device" --output told.csv
        "$python" table.py houses.safetensors rows.csv told.csv >made 2>err || fail "the example of docs/pytorch.md, --target $options: $(tail -n 2 err made)"
        [ "$(grep -c ' and cleave: ' made)" -ge 7 ] || fail "Python makes $(cat made) of --target $options"
    done
else
    in_part "there is no python3 with torch: the example of a table in docs/pytorch.md"
fi

# `-` is stdout: the bytes that a file gets, and nothing else there; where that makes no sense it is refused.
# both KIND COMMAND... : with --output FILE and with --output -, to a pipe and behind what a file has already.
both() {
    both_kind=$1
    shift
    works "$@" --output "told.$both_kind" --device "$device"
    "$@" -o - --device "$device" 2>err | cat >piped || fail "to stdout: $* -o -"
    cmp -s "told.$both_kind" piped || fail "$* -o - gives other bytes: $(head -c 200 piped) $(cat err)"
    { echo first && "$@" --output - --device "$device"; } >appended 2>err || fail "behind others: $*: $(cat err)"
    { echo first && cat "told.$both_kind"; } | cmp -s - appended || fail "$* --output - overwrites what is there"
    [ ! -e - ] || fail "$* makes a file '-'"
    expect 2 '--output - and --json are both for stdout: choose one' "$@" -o - --json --device "$device"
}
both csv "$cleave" run csv houses.csv --weights w.safetensors
both npz "$cleave" run arrays d.npz --weights a.safetensors
"$helper" images 3 x.npy && "$helper" labels 3 y.npy || fail "no images"
works "$cleave" train --images x.npy --labels y.npy --model linear --device "$device" --steps 1 --save l.safetensors
both npy "$cleave" run --input x.npy --weights l.safetensors
works "$cleave" report --log two.jsonl --output r.html
"$cleave" report --log two.jsonl -o - 2>err | cat >piped
same "the page's end" "$(tail -c 8 piped)" '</html>'
same "the page's size" "$(wc -c <piped)" "$(wc -c <r.html)"
"$cleave" run csv houses.csv --weights w.safetensors -o - --device "$device" 2>err >/dev/full && fail "a full stdout is a success"
grep -q '^cleave: stdout could not be written: ' err || fail "a full stdout: $(cat err)"
for option in --save --save-best --checkpoint --log --trace --tensorboard --dump-gradients; do
    expect 2 "'-' is stdout, where only the --output of run and report goes; './-' is a file of that name" \
        "$cleave" train csv houses.csv --target price $how --steps 1 $option -
done
expect 2 "'-' is stdout" "$cleave" tune --device "$device" --output -
expect 2 "'-' is stdout" "$cleave" eval csv houses.csv --weights w.safetensors --device "$device" --trace -
expect 3 "'-' is stdout" "$cleave" check --device "$device" --junit -
works "$cleave" run csv houses.csv --weights w.safetensors --output ./- --device "$device"
cmp -s ./- told.csv || fail "./- is no file"
finish
