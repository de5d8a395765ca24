#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Named arrays on the command line, and rows of a table: several inputs and targets with their losses and metrics, learnt, saved, resumed,
# measured again and run by what the weights tell; what does not fit is told in one sentence.
. "$(dirname "$0")/common.sh"

"$helper" fields 200 d.npz
how="--model linear --device $device --quiet --batch 20 --optimizer adam --lr 0.02 --schedule constant"

# Two inputs, two targets: the loss of one by its name and weight, the other's as usual; metrics of both, and one of them says what is better.
works "$cleave" train arrays d.npz --target 'kind,price=mse*0.5' $how --epochs 40 --metric price:mae,accuracy,price:rmse \
    --monitor price:mae --save-best best.safetensors --save w.safetensors --log run.jsonl --checkpoint c.ckpt --json
cp out json
same "memory" "$(at memory.0.peak_bytes)" "$(at memory.0.predicted_peak_bytes)"
mae=$(at metrics.price:mae) loss=$(at test_loss)
awk "BEGIN { exit !($mae < 0.02 && $(at metrics.accuracy) > 0.7) }" || fail "not learnt: mae $mae, accuracy $(at metrics.accuracy)"
same "accuracy of the first target" "$(at metrics.accuracy)" "$(at test_accuracy)"
same "the last epoch in the log" "$(grep '"event":"epoch"' run.jsonl | tail -n 1 | "$helper" json metrics.price:mae)" "$mae"
same "settings in the log" "$(head -n 1 run.jsonl | "$helper" json settings.target settings.monitor | tr '\n' ' ')" 'kind,price=mse*0.5 price:mae '
best=$(at best_value) n=$(at best_epoch)
same "the best epoch in the log" "$(grep "\"event\":\"epoch\",\"epoch\":$n," run.jsonl | "$helper" json metrics.price:mae)" "$best"

# Numbers tell their error in their units unasked, whichever of the targets they are; what is asked for is told alone.
works "$cleave" train arrays d.npz --target 'kind,price' $how --epochs 1 --log both.jsonl --save both.safetensors --json
unasked=$(at metrics.price:mae metrics.price:rmse | tr '\n' ' ')
same "the error of a second target in the log" "$(grep '"event":"epoch"' both.jsonl | "$helper" json metrics.price:mae metrics.price:rmse | tr '\n' ' ')" "$unasked"
works "$cleave" train arrays d.npz --target 'kind,price' $how --epochs 1
same "the error of a second target in the summary" "$(grep -c '^test price:\(mae\|rmse\) [0-9.]*$' out)" 2
works "$cleave" eval arrays d.npz --weights both.safetensors --metric price:mae,price:rmse --device "$device" --json
same "what is told unasked" "$(at metrics.price:mae metrics.price:rmse | tr '\n' ' ')" "$unasked"
works "$cleave" eval arrays d.npz --weights both.safetensors --metric accuracy --device "$device"
grep -q 'price:' out && fail "metrics that nobody asked for: $(cat out)"

# Prices in hundreds of thousands are learnt as any numbers, by the mean and deviation of those that are trained on, and told in their units.
"$helper" fields 200 dear.npz dear
works "$cleave" train arrays dear.npz --target kind --model linear --device "$device" --steps 1
grep -q "^inputs of very unlike sizes: 'price' goes up to [0-9.e+]*, .* to [0-9.]*, and inputs of arrays are not standardized: .*, or name the inputs with --inputs$" err ||
    fail "an input of hundreds of thousands is not told: $(cat err)"
works "$cleave" train arrays dear.npz --inputs a,b --target kind --model linear --device "$device" --steps 1
! grep -q 'unlike sizes' err || fail "inputs of like sizes: $(cat err)"
works "$cleave" train arrays dear.npz --inputs a,b --target price $how --epochs 40 --save dear.safetensors --json
awk "BEGIN { exit !($(at metrics.mae) < 2000 && $(at metrics.mae) > 0 && $(at test_loss) < 0.01) }" || fail "prices: mae $(at metrics.mae), loss $(at test_loss)"
same "better than the mean" "$(at baseline.no_better)" false
dear=$(at metrics.mae)
works "$cleave" eval arrays dear.npz --weights dear.safetensors --validation 0.1 --device "$device" --json
awk "BEGIN { d = $(at metrics.mae) / $dear; exit !(d > 0.999 && d < 1.001) }" || fail "mae of prices again: $(at metrics.mae), not $dear"
works "$cleave" eval arrays dear.npz --weights dear.safetensors --json --device "$device"
awk "BEGIN { d = $(at metrics.mae) / $dear; exit !(d > 0.999 && d < 1.001) }" || fail "eval tests on other samples than train: $(at metrics.mae), not $dear"
works "$cleave" eval arrays dear.npz --weights dear.safetensors --validation 1 --inputs a,b --target price --model linear --device "$device" --json
dear=$(at metrics.mae)
works "$cleave" run arrays dear.npz --weights dear.safetensors --output out.npz --device "$device"
awk "BEGIN { d = $("$helper" told out.npz dear.npz price) / $dear; exit !(d > 0.999 && d < 1.001) }" || fail "prices that were written: $("$helper" told out.npz dear.npz price), not $dear"
works "$cleave" train arrays dear.npz --inputs a,b --target price --no-standardize --validation 0 --epochs 1 --device "$device"
grep -q 'no better than always predicting the mean, whose loss is [0-9.]*e+10: the model has learnt nothing of the samples; standardize targets as large as these' out ||
    fail "it is not said that prices were not learnt: $(cat out)"
# Nothing to learn, and standardized: the mean's loss stands in the units of the loss, and no advice says to standardize.
works "$cleave" train arrays dear.npz --inputs b --target 'price=mse*0.5' --model linear --device "$device" --lr 0.3 --schedule constant --epochs 1 \
    --batch 90 --no-shuffle --save none.safetensors --json
same "no better than the mean" "$(at baseline.no_better)" true
none=$(at test_loss) mean=$(at baseline.loss)
awk "BEGIN { exit !($mean > 0.2 && $mean < 1 && $none >= $mean && $none < 100) }" || fail "a loss of $none beside that of the mean, $mean"
works "$cleave" eval arrays dear.npz --weights none.safetensors --device "$device"
grep -qF "no better than always predicting the mean, whose loss is $(printf %.4f $mean) (of standardized targets): the model has learnt nothing of the samples; more --epochs" out ||
    fail "the mean in other units than the loss: $(cat out)"

# An array that cannot be read is no input, and a line says so; asked for, it is an error.
mkdir named && (cd named && "$helper" fields 40 a.npy a && "$helper" fields 40 price.npy price) || fail "no arrays by themselves"
printf '\223NUMPY\001\000\166\000%-117s\n%0800d' "{'descr': '<U5', 'fortran_order': False, 'shape': (40,), }" 0 >named/names.npy
works "$cleave" train arrays named --target price --device "$device" --steps 1
grep -qF "'names' is left out: 'named/names.npy': the array has type '<U5'" err || fail "an array of text: $(cat err)"
expect 1 "the array has type '<U5'" "$cleave" train arrays named --inputs a,names --target price --device "$device" --steps 1

# The weights tell all that eval and run need. Eval tells the same of the same part; run's results are those that eval measures.
works "$cleave" eval arrays d.npz --weights w.safetensors --validation 0.1 --metric price:mae,kind:accuracy --device "$device" --json
near() { awk "BEGIN { d = $2 - $3; exit !(d < 1e-5 && d > -1e-5) }" || fail "$1: $2 is not $3"; }
near "mae again" "$(at metrics.price:mae)" "$mae"
near "loss again" "$(at test_loss)" "$loss"
works "$cleave" eval arrays d.npz --weights best.safetensors --validation 0.1 --metric price:mae --device "$device" --json
near "the best mae again" "$(at metrics.price:mae)" "$best"
works "$cleave" eval arrays d.npz --weights w.safetensors --validation 1 --metric price:mae,kind:accuracy --device "$device" --json
mae=$(at metrics.price:mae) accuracy=$(at metrics.kind:accuracy)
works "$cleave" eval arrays d.npz --weights w.safetensors --validation 1 --metric mae --device "$device" --json
same "mae of the target that is numbers" "$(at metrics.price:mae)" "$mae"
same "all samples" "$(at count)" 200
works "$cleave" run arrays d.npz --weights w.safetensors --output out.npz --device "$device" --json
same "memory of run" "$(at memory.0.peak_bytes)" "$(at memory.0.predicted_peak_bytes)"
same "shapes told" "$(at outputs.kind.0 outputs.kind.1 outputs.price.0 | tr '\n' ' ')" "200 3 200 "
same "shapes written" "$("$helper" shapes out.npz | tr '\n' ' ')" "kind [200,3] price [200] "
works "$cleave" run arrays d.npz --weights w.safetensors --device "$device" --json
same "named results" "$(at results.kind.shape.0 results.price.shape.0 results.price.dtype outputs.kind.0 | tr '\n' ' ')" '200 200 f32 200 '
near "mae of what was written" "$("$helper" told out.npz d.npz price)" "$mae"
near "accuracy of what was written" "$("$helper" told out.npz d.npz kind)" "$accuracy"
works "$cleave" run arrays d.npz --weights w.safetensors --output out.npz --device "$device" --batch 7
grep -qF 'kind [200,3] is in out.npz' out || fail "run tells: $(cat out)"
near "mae in other batches" "$("$helper" told out.npz d.npz price)" "$mae"

expect 2 "--output is 'told.npy', and .npz is written: name it told.npz" \
    "$cleave" run arrays d.npz --weights w.safetensors --output told.npy --device "$device"
expect 1 "'d.npz' has no array 'z', it has a, b, kind, price" "$cleave" train arrays d.npz --target z
grep -q "did you mean" err && fail "a name without a letter of it is offered: $(cat err)"

# Interrupted and resumed: the same bits. Other losses are another training.
works "$cleave" train arrays d.npz --target 'kind,price=mse*0.5' $how --epochs 20 --checkpoint half.ckpt
works "$cleave" train arrays d.npz --target 'kind,price=mse*0.5' $how --epochs 40 --resume half.ckpt --save again.safetensors
cmp -s w.safetensors again.safetensors || fail "resumed weights are others"
expect 1 "was written with losses (--target) 'kind: cross_entropy, price: mse * " \
    "$cleave" train arrays d.npz --target 'kind,price=mse*0.25' $how --epochs 40 --resume half.ckpt

# One input of many, one target of many; a folder of .npy files; weights to begin with.
works "$cleave" train arrays d.npz --inputs a --target price $how --epochs 2 --save one.safetensors
works "$cleave" run arrays d.npz --weights one.safetensors --output one.npz --device "$device"
same "one target" "$("$helper" shapes one.npz)" "price [200]"
mkdir parts
for name in a b price kind; do "$helper" fields 200 parts/$name.npy $name; done
works "$cleave" train arrays parts --inputs a,b --target 'kind,price=mse*0.5' $how --epochs 40 --save folder.safetensors
cmp -s w.safetensors folder.safetensors || fail "a folder of .npy trains to other weights than the .npz"
mkdir order # inputs that are not named come by name, however the folder lists them
for name in m c x k b z a; do cp parts/a.npy order/$name.npy; done
cp parts/price.npy order
works "$cleave" train arrays order --target price --model linear --device "$device" --steps 1
tr -d '\n' <err | sed 's/\[[0-9,]*\]//g; s/  */ /g' | grep -qF 'from a , b , c , k , m , x , z to price' || fail "another order: $(cat err)"
rm parts/kind.npy parts/price.npy
works "$cleave" run arrays parts --weights w.safetensors --output parts.npz --device "$device"
near "mae of a folder" "$("$helper" told parts.npz d.npz price)" "$mae"
works "$cleave" train arrays d.npz --target 'kind,price=mse*0.5' $how --epochs 1 --weights w.safetensors --json
awk "BEGIN { exit !($(at train_loss) < $loss + 0.1) }" || fail "weights to begin with do not help: $(at train_loss)"
# which need no names again; others, or another order, are refused
works "$cleave" train arrays d.npz $how --epochs 1 --weights w.safetensors --json
awk "BEGIN { exit !($(at train_loss) < $loss + 0.1) }" || fail "named by the weights: $(at train_loss)"
expect 2 "--target names other arrays than 'w.safetensors' was trained with, or these in another order" \
    "$cleave" eval arrays d.npz --target price,kind --weights w.safetensors --device "$device"
expect 2 "--inputs names other arrays than 'w.safetensors'" "$cleave" eval arrays d.npz --inputs b,a --weights w.safetensors --device "$device"
expect 2 "--target names other arrays" "$cleave" train arrays d.npz $how --target kind --weights w.safetensors
# a model of images
mkdir images
"$helper" images 40 images/picture.npy 28 28
"$helper" labels 40 images/label.npy
works "$cleave" train arrays images --target label --model cnn --device "$device" --quiet --epochs 1 --save cnn.safetensors
works "$cleave" run arrays images --weights cnn.safetensors --output label.npz --device "$device"
same "logits of images" "$("$helper" shapes label.npz)" "label [40,10]"

# a value that is no number is told when it is read, by its place in the file
mkdir nan && "$helper" images 8 nan/x.npy && "$helper" labels 8 nan/y.npy || fail "no data"
printf '\000\000\300\177' | dd of=nan/x.npy bs=1 seek=$((128 + 4 * (3 * 784 + 28 + 2))) conv=notrunc 2>/dev/null
expect 1 "'nan', array 'x': element [3,0,1,2] is nan" "$cleave" train arrays nan --target y --model mlp --device "$device" --quiet

# Rows of a table: predictions by what the weights tell of columns, classes and standardization.
awk 'BEGIN { print "x;y;id;side"; for (i = 0; i < 200; i++) { x = i * 37 % 101; y = i * 53 % 97; print x ";" y ";n" i ";" (x > y ? "above" : "below, or so") } }' >side.csv
works "$cleave" train csv side.csv --target side --ignore id --standardize --device "$device" --quiet --epochs 40 --validation 0 --save side.safetensors
works "$cleave" run csv side.csv --weights side.safetensors --device "$device" --json
first=$(at predictions.0.side) second=$(at predictions.1.side)
same "a file of none" "$(at output)" null
works "$cleave" run csv side.csv --weights side.safetensors --output told.csv --device "$device" --json
same "predictions in the JSON" "$first" "$(sed -n '2s/,.*//p' told.csv)"
sed -n 3p told.csv | grep -qF "\"$second\"," || fail "a quoted prediction in the JSON: $second"
same "and in a file" "$(at predictions)" null
same "memory of rows" "$(at memory.0.peak_bytes)" "$(at memory.0.predicted_peak_bytes)"
same "the head of predictions" "$(head -n 1 told.csv)" 'side,p(above),"p(below, or so)"'
same "rows of predictions" "$(wc -l <told.csv | tr -d ' ')" 201
sed 1d told.csv | sed 's/^"\([^"]*\)".*/\1/; s/^above,.*/above/' >classes
sed 1d side.csv | cut -d';' -f4 >wanted
right=$(paste -d'|' classes wanted | awk -F'|' '$1 == $2' | wc -l)
awk "BEGIN { exit !($right > 180) }" || fail "of 200 rows $right are told right"
# other order, no target, nothing ignored: the same bits
awk -F';' '{ print $2 "," $1 }' side.csv >rows.csv
works "$cleave" run csv rows.csv --weights side.safetensors --output again.csv --device "$device"
cmp -s told.csv again.csv || fail "columns in another order give other predictions"
awk '{ print $0 (NR == 1 ? ",z" : ",1") }' rows.csv >more.csv
expect 1 "has a column 'z', which the model was not trained on" "$cleave" run csv more.csv --weights side.safetensors --output x.csv --device "$device"
works "$cleave" run csv more.csv --weights side.safetensors --ignore z --output again.csv --device "$device"
cmp -s told.csv again.csv || fail "an ignored column changes predictions"
cut -d, -f1 rows.csv >less.csv
expect 1 "has no column 'x', which the model was trained on" "$cleave" run csv less.csv --weights side.safetensors --output x.csv --device "$device"
[ ! -e x.csv ] || fail "predictions were written of rows that are refused"
# a test table is read by the record too: columns in another order, one class of the two, standardized as they were
works "$cleave" eval csv side.csv --target side --ignore id --model mlp --weights side.safetensors --validation 1 --device "$device" --json
near "accuracy by the record" "$(at test_accuracy)" "$(awk "BEGIN { print $right / 200 }")"
awk -F';' '{ print $4 ";" $2 ";" $1 }' side.csv | grep -v above >below.csv
below=$(paste -d'|' classes wanted | awk -F'|' '$2 != "above" { n++; if ($1 == $2) right++ } END { print right / n }')
works "$cleave" eval csv below.csv --target side --model mlp --weights side.safetensors --validation 1 --device "$device" --json
near "accuracy of one class" "$(at test_accuracy)" "$below"
sed '2s/^[^;]*/other/' below.csv >other.csv
expect 1 "line 2: 'other' is no class that the model was trained on" "$cleave" eval csv other.csv --target side --model mlp \
    --weights side.safetensors --validation 1 --device "$device"
# weights without that record: as before, and no use for rows
awk 'BEGIN { print "a,y"; for (i = 0; i < 50; i++) print i % 7 "," 3 * (i % 7) + 1 }' >line.csv
works "$cleave" train csv line.csv --target y --model linear --device "$device" --quiet --lr 0.1 --schedule constant --batch 10 --epochs 100 --validation 0 --save line.safetensors
works "$cleave" run csv line.csv --weights line.safetensors --output line.out --device "$device"
awk -F, 'NR == FNR { y[FNR] = $2; next } FNR > 1 { d = $1 - y[FNR]; if (d > 0.2 || d < -0.2) bad = 1 } END { exit bad }' line.csv line.out || fail "a line is not told: $(head -n 3 line.out)"
works "$cleave" train --images images/picture.npy --labels images/label.npy --model mlp --device "$device" --quiet --epochs 1 --save plain.safetensors
! grep -q 'cleave\.table\|cleave\.fields' plain.safetensors || fail "weights of plain arrays tell of columns"
expect 1 "'plain.safetensors' holds weights of samples [1,28,28]: \`cleave run --input FILE --weights plain.safetensors\` takes them" "$cleave" run csv rows.csv --weights plain.safetensors --output x.csv --device "$device"

# of what weights are, and the shape that they know, is said where arrays are given that are neither
"$helper" images 4 seven.npy 7 7 && "$helper" labels 40 shown.npy || fail "no data"
for ask in "run --input seven.npy -o x.npy" "eval --images seven.npy --labels shown.npy"; do
    expect 1 "holds weights of a table with the columns x, y, rows of 2 numbers: \`cleave ${ask%% *} csv FILE --weights side.safetensors\`" \
        "$cleave" $ask --weights side.safetensors --device "$device"
    expect 1 "named arrays with the inputs a [2], b: \`cleave ${ask%% *} arrays FILE --weights w.safetensors\`" "$cleave" $ask --weights w.safetensors --device "$device"
done
"$helper" images 40 square.npy 7 7 && "$helper" fields 40 flat.npy a || fail "no data"
works "$cleave" train --images square.npy --labels images/label.npy --model mlp --device "$device" --quiet --steps 1 --save square.safetensors
expect 1 "'w.safetensors' holds weights of named arrays" "$cleave" run --input square.npy --weights w.safetensors --device "$device" -o x.npy
expect 1 "the samples here are [1,28,28], and 'square.safetensors' was trained on samples of [1,7,7]" \
    "$cleave" run --input images/picture.npy --weights square.safetensors --device "$device" -o x.npy
expect 1 "which wants [1,7,7]" "$cleave" eval --images flat.npy --labels images/label.npy --weights square.safetensors --device "$device"

# Models, losses and optimizers of a library's own: two heads with an index among the inputs.
if [ -n "${CLV_TEST_CUSTOM:-}" ]; then
    custom="--ops $CLV_TEST_CUSTOM --device $device"
    "$helper" fields 200 fish.npz fish
    works "$cleave" train arrays fish.npz $custom --model fish --optimizer leo --lr 0.01 --schedule cosine --epochs 40 --batch 20 --quiet \
        --target 'kind,price=absolute*0.5' --inputs a,b,word --metric price:mae,accuracy --save fish.safetensors --log fish.jsonl --json
    awk "BEGIN { exit !($(at metrics.price:mae) < 0.1 && $(at metrics.accuracy) > 0.8) }" || fail "fish: $(at metrics.price:mae), $(at metrics.accuracy)"
    same "the optimizer in the log" "$(head -n 1 fish.jsonl | "$helper" json settings.optimizer)" leo
    works "$cleave" eval arrays fish.npz $custom --weights fish.safetensors --validation 1 --metric price:mae,kind:accuracy --json
    mae=$(at metrics.price:mae) accuracy=$(at metrics.kind:accuracy)
    works "$cleave" run arrays fish.npz $custom --weights fish.safetensors --output fish.out.npz --json
    same "memory of fish" "$(at memory.0.peak_bytes)" "$(at memory.0.predicted_peak_bytes)"
    near "mae of fish" "$("$helper" told fish.out.npz fish.npz price)" "$mae"
    near "accuracy of fish" "$("$helper" told fish.out.npz fish.npz kind)" "$accuracy"
    works "$cleave" train arrays fish.npz $custom --model fish --epochs 1 --quiet # its ports, the usual losses
    # Its models of rows take tables: one that is as long as the rows, and one of its own length. Numbers are standardized for them, too.
    awk 'BEGIN { print "x,y,z,side,price"; for (i = 0; i < 200; i++) { x = i * 37 % 101; y = i * 53 % 97
        print x "," y "," (7 * x + y) % 11 "," (x > y ? "above" : "below") "," 1000 * x + 300 * y } }' >own.csv
    for model in row row3; do
        works "$cleave" train csv own.csv $custom --model $model --target price --ignore side --epochs 30 --batch 20 --lr 0.01 --quiet --save $model.safetensors --json
        mae=$(at metrics.mae)
        awk "BEGIN { exit !($mae < 12000) }" || fail "$model learns no prices: mae $mae"
        works "$cleave" eval csv own.csv $custom --weights $model.safetensors --json
        awk "BEGIN { d = $(at metrics.mae) / $mae; exit !(d > 0.999 && d < 1.001) }" || fail "mae of $model again: $(at metrics.mae), not $mae"
        works "$cleave" run csv own.csv $custom --weights $model.safetensors --output $model.csv
        told=$(paste -d, own.csv $model.csv | tail -n 20 | awk -F, '{ d = $5 - $6; s += d < 0 ? -d : d } END { print s / NR }')
        awk "BEGIN { d = $told / $mae; exit !(d > 0.999 && d < 1.001) }" || fail "$model tells other prices: mae $told, not $mae"
    done
    works "$cleave" train csv own.csv $custom --model row --target side --epochs 1 --quiet # classes
    expect 1 "the rows of 'own.csv' are 2 numbers (one for each word of a column of words), and model 'row3' takes 3: --ignore leaves columns out, or leave \`input\` of the model out" \
        "$cleave" train csv own.csv $custom --model row3 --target price --ignore side,z --quiet
    expect 2 'fish names its inputs and targets itself (build_all)' "$cleave" train csv own.csv $custom --model fish --target price
    expect 2 'cnn is no model of rows of numbers; mlp and linear are, and models of --ops whose input is a row, {columns}, or left out' \
        "$cleave" train csv own.csv --model cnn --target price
    for model in row row3; do # of named arrays: one input, or several side by side
        works "$cleave" train arrays dear.npz $custom --model $model --inputs a,b --target price --epochs 2 --quiet --save own.safetensors --json
        grep -aq '\"scale\\":[0-9]' own.safetensors || fail "$model learns prices as they stand"
        works "$cleave" run arrays dear.npz $custom --weights own.safetensors --output own.npz
    done
    works "$cleave" train arrays d.npz $custom --model row --inputs a --target price --epochs 1 --quiet
    expect 1 "the rows of 'd.npz' are 2 numbers, and model 'row3' takes 3: --inputs names the arrays that it takes" \
        "$cleave" train arrays d.npz $custom --model row3 --inputs a --target price --quiet
    # A library that sets the locale of its maker changes no number of ours.
    if [ -d "${LOCPATH:-none}/de_DE.UTF-8" ]; then
        works env OWN_LOCALE=de_DE.UTF-8 "$cleave" train arrays fish.npz $custom --model fish --epochs 1 --lr 0.25 --target 'kind,price=mse*0.5' \
            --log german.jsonl --profile --trace german.trace
        ! grep -E '[0-9],[0-9]' out || fail "a comma in a number"
        same "the rate in a German log" "$(head -n 1 german.jsonl | "$helper" json settings.lr)" 0.25
        "$helper" json traceEvents.0.pid <german.trace >/dev/null || fail "a German trace is no JSON"
    fi
    works "$cleave" plan fish $custom --train --batch 16 --optimizer leo --json
    at layers.10.flops devices.0.device >/dev/null
    expect 2 "unknown model 'fish'" "$cleave" train arrays fish.npz --model fish --target kind
    expect 2 "'fish.safetensors' holds weights of 'fish', which is no built-in model: --ops FILE" "$cleave" run arrays fish.npz --weights fish.safetensors --output x.npz --device "$device"
    expect 2 "--optimizer wants one of sgd|momentum|adam|adamw|rmsprop|adagrad|lion|lamb|muon, or one that --ops registers, not 'tiger'" \
        "$cleave" train fashion-mnist $custom --optimizer tiger
    expect 2 '--momentum is for the optimizers sgd, momentum, rmsprop and muon, and this is leo' "$cleave" train fashion-mnist $custom --optimizer leo --momentum 0.5
    expect 2 'cannot load the ops' "$cleave" train fashion-mnist --ops ./none.so
    works "$cleave" train csv side.csv $custom --target side --ignore id --standardize --optimizer leo --schedule constant --epochs 2 --quiet --checkpoint lion.ckpt
    expect 1 'was written with --optimizer' "$cleave" train csv side.csv --target side --ignore id --standardize --optimizer sgd --schedule constant --lr 0.001 --epochs 3 --resume lion.ckpt --device "$device"
fi

# Weights whose record is damaged, by as many bytes.
sed 's/\\"name\\":\\"a\\"/\\"nume\\":\\"a\\"/' w.safetensors >damaged.safetensors
cmp -s w.safetensors damaged.safetensors && fail "nothing was damaged"
expect 1 'is damaged: what it tells of inputs and targets' "$cleave" run arrays d.npz --weights damaged.safetensors --output x.npz --device "$device"
sed 's/\\"columns\\"/\\"colomns\\"/' side.safetensors >damaged.safetensors
expect 1 "the record of a table's columns is damaged: 'columns' is no list of names" \
    "$cleave" run csv rows.csv --weights damaged.safetensors --output x.csv --device "$device"

# Labels of -100 count nothing, and classes by their weights: in parts the same training; told by the weights, the log and checkpoints.
"$helper" fields 200 ignored.npz ignored
weighted="ignored.npz --target kind --inputs a,b $how --epochs 10"
works "$cleave" train arrays $weighted --class-weights balanced --log weighted.jsonl --checkpoint weighted.ckpt --save weighted.safetensors --json
same "memory with weights of classes" "$(at memory.0.peak_bytes)" "$(at memory.0.predicted_peak_bytes)"
same "no baseline by weights" "$(at baseline)" null
loss=$(at test_loss) accuracy=$(at test_accuracy) told=$(at train_loss)
awk "BEGIN { exit !($accuracy > 0.6) }" || fail "with weights of classes: accuracy $accuracy"
same "settings in the log" "$(head -n 1 weighted.jsonl | "$helper" json settings.class_weights)" balanced
grep -aq 'class_weights' weighted.safetensors || fail "the weights do not tell those of classes"
works "$cleave" train arrays $weighted --class-weights balanced --micro-batches 4 --json
awk "BEGIN { d = $(at train_loss) - $told; exit !(d < 1e-4 && d > -1e-4) }" || fail "in parts: loss $(at train_loss), not $told"
expect 1 "was written with --class-weights and --ignore-index" "$cleave" train arrays $weighted --class-weights 1,2,3 --resume weighted.ckpt
works "$cleave" eval arrays ignored.npz --weights weighted.safetensors --validation 0.1 --device "$device" --per-class --json
same "accuracy again" "$(at test_accuracy)" "$accuracy"
awk "BEGIN { d = $(at correct) / $accuracy - 15; exit !(d < 1e-6 && d > -1e-6) }" || fail "$(at correct) right are $accuracy of other than 15 labels"
works "$cleave" train arrays $weighted --class-weights 0,2,3
works "$cleave" train arrays d.npz --target kind,price --inputs a,b $how --epochs 1 --class-weights balanced
expect 2 "--class-weights names 2 weights, and there are 3 classes" "$cleave" train arrays $weighted --class-weights 1,2
expect 2 "--class-weights is for targets that are classes" "$cleave" train arrays d.npz --target price --inputs a,b --class-weights balanced --device "$device"
expect 1 "target 'kind' has classes below 0; --ignore-index=N" "$cleave" train arrays $weighted --ignore-index=-1
expect 1 "mixup needs " "$cleave" train arrays $weighted --mixup 0.2

# One sentence each.
expect 2 "--optimizer wants one of sgd|momentum|adam|adamw|rmsprop|adagrad|lion|lamb|muon, not 'adan'; did you mean 'adam'?" "$cleave" train fashion-mnist --optimizer adan
expect 1 "'side.safetensors' holds weights of a table with the columns x, y, rows of 2 numbers: \`cleave run csv FILE" "$cleave" run arrays d.npz --weights side.safetensors --output x.npz --device "$device"
expect 2 'which arrays are to be learnt' "$cleave" train arrays d.npz
expect 2 '`arrays FILE` wants an .npz file' "$cleave" train arrays
expect 2 "there is no loss 'mes', there are cross_entropy, mse, l1, huber, focal, bce_with_logits, nll, kl_div, ctc; did you mean 'mse'?" "$cleave" train arrays d.npz --target price=mes
expect 2 'with a weight above 0' "$cleave" train arrays d.npz --target price=mse*0
expect 2 'with a weight above 0' "$cleave" train arrays d.npz --target 'price=mse*'
expect 2 "'price' is named twice" "$cleave" train arrays d.npz --target price,price
expect 2 '--inputs is of named arrays' "$cleave" train fashion-mnist --inputs a
expect 2 '--classes is for one target, and --target names 2' "$cleave" train arrays d.npz --target price,kind --classes 3
expect 2 '--standardize is of tables: `csv FILE`; numpy standardizes the inputs of arrays: x = (x - mean) / std, with x.mean(0) and x.std(0)' \
    "$cleave" train arrays d.npz --target price --standardize
expect 2 'cnn takes one input, and there are 2' "$cleave" train arrays d.npz --inputs a,b --target price --model cnn --device "$device"
expect 2 "'foo' is nothing to run on" "$cleave" run foo --output x.npz
# The command that takes what is there.
printf 'a,b\n1,2\n' >rows.csv && echo words >words.txt && : >one.JPG
expect 2 "'rows.csv' is a file: \`cleave run csv rows.csv\` takes it" "$cleave" run rows.csv --weights w.safetensors
expect 2 "'d.npz' is a file: \`cleave run arrays d.npz\` takes it" "$cleave" run d.npz --weights w.safetensors
expect 2 "'one.JPG' is a file: \`cleave run images one.JPG\` takes it" "$cleave" run one.JPG d.npz --weights w.safetensors
expect 2 "'words.txt' is a text: \`cleave generate --prompt TEXT\` goes on with one, and \`cleave eval text words.txt\` tests on it" "$cleave" run words.txt
expect 2 "a text is nothing to run on: \`cleave generate --prompt TEXT\` goes on with one" "$cleave" run text words.txt --weights w.safetensors
expect 2 'both say what to run on' "$cleave" run csv rows.csv --input x.npy --output x.csv
expect 2 'the weights say how many there are' "$cleave" run csv rows.csv --classes 3 --output x.csv
expect 2 "--metric: there is no metric 'mea'" "$cleave" train arrays d.npz --target price --metric price:mea
expect 1 "no array 'prise', it has a, b, kind, price; did you mean 'price'?" "$cleave" train arrays d.npz --target prise --device "$device"
expect 1 "input 'kind' holds i64" "$cleave" train arrays d.npz --target price --device "$device"
expect 1 'and mse wants numbers' "$cleave" train arrays d.npz --target kind=mse --inputs a --device "$device"
expect 1 "model 'mlp' has no target 'weight'; it has 'price'" "$cleave" train arrays d.npz --target price --inputs a --metric weight:mae --device "$device"
"$helper" fields 50 parts/b.npy b
expect 1 "'b' has 50 samples, and 'a' has 200" "$cleave" run arrays parts --weights w.safetensors --output x.npz --device "$device"
"$helper" images 200 parts/b.npy 3
expect 1 "'b' is [200,3], and the model takes [200]" "$cleave" run arrays parts --weights w.safetensors --output x.npz --device "$device"

# a BERT of Hugging Face: config.json beside the weights has its sizes, arrays have texts of any length, the weights the number of classes
cp -r "$scripts/../golden/bert" bert || fail "no BERT"
bert="arrays bert/data.npz --model bert_base --weights bert/model.safetensors --device $device"
works "$cleave" run $bert --output told.npz
same "logits of BERT" "$("$helper" told told.npz bert/told.npz labels)" 0.000000
works "$cleave" train $bert --target labels --validation 0 --no-shuffle --batch 6 --epochs 2 --optimizer sgd --lr 0.05 --schedule constant \
    --json --save own.safetensors
awk "BEGIN { d = $(at train_loss) - 1.56972170; exit !(d < 1e-5 && d > -1e-5) }" || fail "the loss of BERT after a step is $(at train_loss)"
works "$cleave" eval arrays bert/data.npz --weights own.safetensors --validation 1 --device "$device" # without config.json
works "$cleave" run arrays bert/data.npz --weights own.safetensors --device "$device" --output told.npz
same "results of BERT" "$("$helper" shapes told.npz)" "labels [6,5]"
sed -i 's/"gelu"/"relu"/' bert/config.json
expect 1 'hidden_act is "relu", and only "gelu" is supported' "$cleave" run $bert --output told.npz
finish
