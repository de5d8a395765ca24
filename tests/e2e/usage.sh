#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Wrong words on the command line: exit 2 and one sentence that names the word. Help and lists: exit 0, on stdout.
. "$(dirname "$0")/common.sh"

works "$cleave" --help
grep -q 'cleave COMMAND --help' out || fail "--help tells nothing"
cp out overview
for word in version --version -v -V; do
    works "$cleave" $word
    same "$word" "$(cat out)" "$("$cleave" --version)"
done
works "$cleave" help
cmp -s out overview || fail "help is not --help"
for command in devices train eval run generate models export plan check compare bench tune top env report cache; do
    works "$cleave" "$command" --help all
    cp out all
    works "$cleave" help "$command"
    cp out short
    works "$cleave" "$command" -h
    cmp -s out short || fail "help $command is not $command --help"
    works "$cleave" help "$command" all
    cmp -s out all || fail "help $command all is not $command --help all"
    grep -q -- '--json' out || fail "$command --help does not tell --json"
    [ -s err ] && fail "$command --help writes to stderr"
    # no default or text of another command, lines that fit, and examples whose options all exist
    grep -qE ' \| |[a-z]+: .*[a-z]+: [0-9]+\]' out && fail "$command --help tells of other commands: $(grep -E ' \| ' out)"
    for columns in 40 60 80 120; do
        COLUMNS=$columns "$cleave" "$command" --help all >narrow
        long=$(sed '/^Usage/d;/^      *--[a-z-]* [^ ]*$/d' narrow | grep -E "^.{$((columns + 1)),}" | grep -v '://')
        [ -z "$long" ] || fail "$command --help is wider than $columns columns: $long"
    done
    sed -n '/^Examples:/,$p' narrow | grep -E '^ *(cleave|[A-Z_]*=.* cleave|-)' | tr -d '\\' | tr '\n' ' ' |
        sed 's/ \([A-Z_]*=[^ ]* \)\{0,1\}cleave /\n\1cleave /g' | grep cleave >examples
    [ "$(wc -l <examples)" -ge 3 ] || fail "$command --help has too few examples: $(cat examples)"
    while read -r example; do
        (cleave() { "$cleave_tool" "$@"; }; cleave_tool=$cleave; eval "$example --help") >/dev/null 2>err ||
            fail "the example '$example' is wrong: $(cat err)"
    done <examples
done
"$cleave" eval --help=all | grep -qF -- 'images in a step [default: 256]' || fail "the default of eval --batch is not told"
"$cleave" train --help all | grep -qF -- 'images in a step [default: 64, of pictures 32]' || fail "the default of train --batch is not told"
"$cleave" train --help all | grep -qx 'Optimizer:' || fail "options are not grouped"
# the short help: the ten options that matter most, and how to see the others
works "$cleave" train --help
same "options of the short help" "$(grep -c '^  --' out)" 10
"$cleave" train --help all >all
grep -qF "'cleave train --help all' tells the other $(($(grep -c '^  --' all) - 10)) options" out || fail "the short help does not tell of the others: $(tail -n 2 out)"
expect 2 "unknown command 'trian'; did you mean 'train'?" "$cleave" help trian
works "$cleave" train --epochs 3 -h

expect 2 "unknown command 'trian'" "$cleave" trian
"$cleave" >out 2>err && fail "no command at all is no success"
expect 2 "unknown option '--epoch'" "$cleave" train fashion-mnist --epoch 3
expect 2 "--exif-transpose is of folders of pictures" "$cleave" train fashion-mnist --exif-transpose
expect 2 '--augment is of pictures: `images DIR`, Fashion-MNIST, or --images and --labels' "$cleave" train csv t.csv --target y --augment crop
expect 2 "unknown option '-x'" "$cleave" devices -x
expect 2 "unknown option '--image-size'; it is one of 'cleave train'" "$cleave" devices --image-size 64
grep -q "it is one of 'cleave train'.* and 'cleave " err || fail "an option of two commands: $(cat err)"
expect 2 "unknown option '--image-sise'; did you mean '--image-size' of 'cleave train'" "$cleave" devices --image-sise 64
expect 2 "unknown option '--inputs'; it is one of 'cleave train' and 'cleave eval'; did you mean '--input'?" "$cleave" run --inputs x.npy
for words in "train fashion-mnist" "plan mlp --train"; do
    # shellcheck disable=SC2086  # words on purpose
    expect 2 "--ema is above 0 and below 1, not 2: the part of the running average that each step keeps" "$cleave" $words --ema 2
done
expect 2 "--dropout is at least 0 and below 1, not 1" "$cleave" plan mlp --train --dropout 1
for option in freeze=fc1 param-group=fc1:frozen weight-decay-skip=vectors label-smoothing=0.1 mixup=0.2; do
    expect 2 "--${option%%=*} is about what is trained: it needs --train" "$cleave" plan mlp "--$option"
done
expect 2 "--samples wants one of bytes|numbers, not 'words'" "$cleave" plan mlp --samples words
expect 2 "variants 'foo=bar': there is no op 'foo'" "$cleave" plan mlp --device host --variants foo=bar
expect 2 "CLEAVE_VARIANTS 'foo': 'foo' is not of the form" env CLEAVE_VARIANTS=foo "$cleave" plan mlp --device host
expect 2 "--epochs wants a whole number of at least 1, not '0'" "$cleave" train fashion-mnist --epochs 0
expect 2 "not '-3'" "$cleave" train fashion-mnist --batch -3
expect 2 '--missing is of tables' "$cleave" train fashion-mnist --missing mean
expect 2 "--missing wants one of mean|drop, not 'median'" "$cleave" train csv t.csv --target y --missing median
expect 2 '--no-standardize is of tables: `csv FILE`, and of named arrays: `arrays FILE`' "$cleave" train text t.txt --no-standardize
expect 2 '--context is of texts' "$cleave" train csv t.csv --target y --context 5
expect 2 '--top is of pictures' "$cleave" run --input x.npy --model mlp --weights w --output y.npy --top 2
expect 2 '--words is of tables' "$cleave" train arrays t.npz --target y --words a
expect 2 '--decimal-comma is of tables' "$cleave" run --input x.npy --model mlp --weights w --output y.npy --decimal-comma
expect 2 '--standardize and --no-standardize contradict each other' "$cleave" train csv t.csv --target y --standardize --no-standardize
expect 2 "not '3x'" "$cleave" train fashion-mnist --batch 3x
expect 2 "not '99999999999999999999'" "$cleave" train fashion-mnist --batch 99999999999999999999
expect 2 "--lr wants a number greater than 0, not '0'" "$cleave" train fashion-mnist --lr 0
expect 2 "not 'nan'" "$cleave" train fashion-mnist --lr nan
expect 2 "--momentum wants a number of at least 0" "$cleave" train fashion-mnist --momentum=-1
expect 2 "--seed wants a whole number of at least 0" "$cleave" train fashion-mnist --seed -1
expect 2 "one of sgd|momentum|adam|adamw|rmsprop|adagrad|lion|lamb|muon, not 'ada'" "$cleave" train fashion-mnist --optimizer ada
expect 2 "one of sgd|momentum|adam|adamw|rmsprop|adagrad|lion|lamb|muon, not 'sgd|momentum'" "$cleave" train fashion-mnist --optimizer 'sgd|momentum'
expect 2 "one of constant|step|cosine|one-cycle|plateau" "$cleave" train fashion-mnist --schedule ''
expect 2 "--epochs is given twice, with '8' and with '16'; leave one of them out" "$cleave" train fashion-mnist --epochs 8 --epochs=16
expect 2 "--seed is given twice" "$cleave" train fashion-mnist --seed 1 --seed 2
expect 2 "--float32-products wants one of highest|high|medium, not 'tf32'" "$cleave" plan mlp --float32-products tf32 --device host
works "$cleave" plan mlp --float32-products high --device host
works "$cleave" plan mlp --precision f32 --precision f32 --device host --device host
works "$cleave" bench --list --precision mixed --device host
[ ! -s err ] || fail "the same value twice: $(cat err)"
works "$cleave" plan mlp --batch 8 --device host --batch=16 # remedies are pasted behind a command
grep -qF -- "--batch is given more than once: '16', the last, counts" err || fail "not told: $(cat err)"
expect 2 "--batch wants a value" "$cleave" train fashion-mnist --batch
expect 2 "--json takes no value" "$cleave" devices --json=yes
expect 2 "one word too many" "$cleave" devices now
expect 2 "one word too many" "$cleave" train fashion-mnist mnist
expect 2 "unknown dataset 'mnist'" "$cleave" train mnist
expect 2 "unknown dataset 'cvs'; there are fashion-mnist, images DIR, text FILE, csv FILE and arrays FILE; did you mean 'csv'?" "$cleave" train cvs houses.csv --target price
expect 2 "on what?" "$cleave" train
expect 2 "unknown model 'vgg'; there are linear, mlp, cnn" "$cleave" train fashion-mnist --model vgg
"$cleave" models >help
for model in $(sed -n "s/.*there are //;s/;.*//;s/,//gp" err); do
    grep -qw -e "$model" help || fail "models does not tell of the model $model: $(cat help)"
done
expect 2 "unknown model 'vgg'" "$cleave" plan vgg
: >weights.safetensors
expect 2 "'weights.safetensors' is a file, and a model's name is wanted, one of linear, mlp, " "$cleave" plan weights.safetensors
grep -qF "; eval, run and train take weights by --weights FILE" err || fail "--weights is not named: $(cat err)"
expect 2 "where to? --output wants the name of a .csv file; -o - is stdout" "$cleave" run csv rows.csv --weights weights.safetensors
expect 2 "which model?" "$cleave" plan
expect 1 "cannot read 'w.safetensors'" "$cleave" eval fashion-mnist --weights w.safetensors
expect 2 "--top is of pictures" "$cleave" run csv x.csv --weights w.safetensors -o y.csv --top 3
expect 2 "--top wants a whole number of at least 1" "$cleave" run images x.png --weights w.safetensors --top 0
expect 2 "one word too many" "$cleave" run csv x.csv y.csv --weights w.safetensors -o y.csv
expect 2 'which file? `images FILE` wants its name' "$cleave" run images --weights w.safetensors
expect 2 "unknown option '--per-class'; it is one of 'cleave eval'" "$cleave" train fashion-mnist --per-class
expect 2 "which weights?" "$cleave" eval fashion-mnist --model mlp
expect 2 "--input" "$cleave" run --model mlp --weights w --output y
expect 2 "--output" "$cleave" run --model mlp --weights w --input x
expect 2 "belong together" "$cleave" train --images x.npy
expect 2 "not both" "$cleave" train fashion-mnist --images x.npy --labels y.npy
expect 2 "--weights and --resume" "$cleave" train fashion-mnist --weights a --resume b
expect 2 "--checkpoint-every needs --checkpoint" "$cleave" train fashion-mnist --checkpoint-every 5
expect 2 "--momentum is for the optimizers sgd" "$cleave" train fashion-mnist --optimizer adam --momentum 0.9
expect 2 "--nesterov is for the optimizers sgd" "$cleave" train fashion-mnist --optimizer adamw --nesterov
expect 2 "--nesterov needs a momentum" "$cleave" train fashion-mnist --optimizer sgd --nesterov
expect 2 "--gamma is for the schedule step, plateau or exponential" "$cleave" train fashion-mnist --schedule cosine --gamma 0.5
expect 2 "--min-lr is for the schedule cosine, plateau or polynomial" "$cleave" train fashion-mnist --schedule constant --min-lr 0.5
expect 2 "--pct-start is for the schedule one-cycle" "$cleave" train fashion-mnist --schedule cosine --pct-start 0.5
expect 2 "--plateau-patience is for the schedule plateau" "$cleave" train fashion-mnist --plateau-patience 3
expect 2 "--warmup is not for the schedule one-cycle" "$cleave" train fashion-mnist --schedule one-cycle --warmup 3
for words in 0 -1 two 2eras 99999999999999999999; do
    expect 2 "--warmup wants steps, 500, or epochs, 2epochs, not '$words'" "$cleave" train fashion-mnist --warmup=$words
done
expect 2 "--class-weights wants balanced, or a number of at least 0 for each class" "$cleave" train fashion-mnist --class-weights 1,-2
expect 2 "--class-weights does not go together with --mixup" "$cleave" train fashion-mnist --class-weights balanced --mixup 0.2
expect 2 "--class-weights does not go together with --label-smoothing" "$cleave" train fashion-mnist --class-weights balanced --label-smoothing 0.1
expect 2 "--ignore-index wants a whole number" "$cleave" train --images x.npy --labels y.npy --ignore-index none
expect 2 "--ignore-index is for labels in arrays" "$cleave" train fashion-mnist --ignore-index=-1
expect 2 "--dropout is at least 0 and below 1, not 1" "$cleave" train fashion-mnist --dropout 1
# the nearest name of what is mistyped, and none where none is near
near() {
    near_name=$1
    shift
    expect 2 "did you mean '$near_name'?" "$@"
}
near train "$cleave" trian
near check "$cleave" chekc
near --epochs "$cleave" train fashion-mnist --epoch 3
near --batch "$cleave" train fashion-mnist --bacth=3
near --momentum "$cleave" train fashion-mnist --momentun 0.9
expect 2 "unknown option '--epochs'; it is one of 'cleave train'" "$cleave" cache list --epochs 3
near momentum "$cleave" train fashion-mnist --optimizer momentun
near cosine "$cleave" train fashion-mnist --schedule cosin
near fashion-mnist "$cleave" train fashion_mnist
near resnet18 "$cleave" plan resnt18
near resnet18 "$cleave" plan ResNet18x
near vgg11 "$cleave" plan vgg
near gpt "$cleave" bench --device host --model gtp
near gemm "$cleave" bench gem --device host
near host "$cleave" plan mlp --device hots
near host "$cleave" plan mlp --device host --budget hst=1MiB
near relu "$cleave" check --device host --op rleu
near conv2d "$cleave" plan mlp --device host --variants conv2=tile
near tile "$cleave" plan mlp --device host --variants matmul=tiel
near balanced "$cleave" plan mlp --quiet --place balaned
near host "$cleave" plan mlp --quiet --place '*=hots'
near fc1 "$cleave" plan mlp --quiet --place '*=host,fx1.*=host'
near conv1 "$cleave" plan cnn --quiet --place 'cov1=host' # though it leaves layers without a device, too
near --version "$cleave" --verison
near 'cleave --version' "$cleave" train --verison
near --image-size "$cleave" train --image-sise 3
expect 1 "did you mean 'conv1'?" "$cleave" plan cnn --device host --train --recompute 'conv?,cov*'
for words in "frobnicate" "plan banana --device host" "plan mlp --device zzzzzz" "check --device host --op zebra"; do
    # shellcheck disable=SC2086
    "$cleave" $words >out 2>err && fail "'$words' is no mistake"
    grep -q "did you mean" err && fail "'$words' is like nothing: $(cat err)"
done

# completion: what could stand for the last word, as shells ask for it
completes() {
    completes_wanted=$1
    shift
    works "$cleave" --complete "$@"
    grep -qx -e "$completes_wanted" out || fail "--complete $*: there is no '$completes_wanted': $(head -n 3 out)"
}
tab=$(printf '\t')
completes "train$tab.*" tr
completes "plan$tab.*" help pl
completes "--model$tab.*" train fashion-mnist --mod
completes "resnet18${tab}model" train fashion-mnist --model res
completes "resnet18${tab}model" plan res
completes "cosine$tab" train --schedule ''
completes "conv2d${tab}op" check --op conv
completes "host$tab.*" eval --device h
completes "host,host$tab.*" eval --replicas host,h
completes "host=$tab.*" plan cnn --budget h
completes "csv$tab" train ''
completes "clear$tab" cache ''
completes :files train csv ''
completes :files train csv houses.csv --save ''
completes "adam$tab" train csv houses.csv --no-shuffle --optimizer ''
works "$cleave" --complete train --epochs ''
[ ! -s out ] || fail "a number is completed: $(cat out)"
expect 2 "--completion wants bash, zsh or fish, not 'tcsh'" "$cleave" --completion tcsh
for shell in bash zsh fish; do
    "$cleave" --completion $shell >script || fail "no completion for $shell"
    if command -v $shell >/dev/null; then $shell -n script || fail "completion for $shell is wrong"; fi
done
if command -v bash >/dev/null; then # as a person presses the key
    "$cleave" --completion bash >script
    reply=$(PATH=$(dirname "$cleave"):$PATH bash -c 'compopt() { :; }; . ./script; COMP_WORDS=(cleave plan vit) COMP_CWORD=2; _cleave; echo "${COMPREPLY[*]}"')
    same "bash completes" "$reply" vit_b_16
fi
for command in '' train check; do
    "$cleave" --manual $command >page || fail "no manual of $command"
    grep -q '^.TH CLEAVE' page || fail "no manual of $command"
done

expect 2 "list or clear" "$cleave" cache
expect 2 "not 'empty'" "$cleave" cache empty

for budget in host host= =1MiB host=-1 host=1XB host=0 host=0x10 host=nan host=1e400; do
    expect 2 "--budget wants DEVICE=BYTES" "$cleave" train fashion-mnist --budget "$budget"
done
expect 2 "nowhere" "$cleave" plan mlp --device nowhere
expect 2 "nowhere" "$cleave" plan mlp --device host --budget nowhere=1MiB
expect 2 "gpu:99" "$cleave" train fashion-mnist --device gpu:99
# files that would overwrite each other, or what is read
expect 2 "--save and --checkpoint are both 'a.st'" "$cleave" train fashion-mnist --device host --save a.st --checkpoint a.st
expect 2 "--save and --log are both './a.st'" "$cleave" train fashion-mnist --device host --save a.st --log ./a.st
expect 2 "--images and --save are both 'x.npy'" "$cleave" train --images x.npy --labels y.npy --model mlp --device host --save x.npy
expect 2 "the data and --trace are both 't.txt'" "$cleave" train text t.txt --device host --trace t.txt
mkdir -p same/photos && cd same || fail "no folder"
for file in w.safetensors rows.csv q.npz y.npy one.jpg photos/two.png ops.so tuning; do echo "$file" >$file; done
ln -s w.safetensors link && ln -s ../same around && ln rows.csv hard.csv
keeps() { # keeps TEXT COMMAND...: it is refused, and what is there stays
    keeps_text=$1
    shift
    expect 2 "$keeps_text" "$cleave" "$@"
    for file in w.safetensors rows.csv q.npz y.npy one.jpg photos/two.png ops.so tuning; do same "what was in $file" "$(cat $file)" "$file"; done
}
for path in rows.csv ./rows.csv hard.csv around/rows.csv "$PWD/rows.csv"; do
    keeps "the data and --output are both '$path'" run csv rows.csv --weights w.safetensors -o "$path"
done
for path in w.safetensors link; do
    keeps "--weights and --output are both '$path'" run csv rows.csv --weights w.safetensors -o $path
    keeps "--weights and --trace are both '$path'" eval csv rows.csv --weights w.safetensors --trace $path
done
keeps "the data and --output are both 'q.npz'" run arrays q.npz --weights w.safetensors -o q.npz
keeps "--input and --output are both 'y.npy'" run --input y.npy --weights w.safetensors -o y.npy
keeps "the data and --output are both 'one.jpg'" run images photos one.jpg --weights w.safetensors -o one.jpg
keeps "--output 'photos/two.png' is one of the data in 'photos'" run images photos --weights w.safetensors -o photos/two.png
keeps "--output and --trace are both './new'" run csv rows.csv --weights w.safetensors -o new --trace ./new
keeps "--ops and --output are both 'ops.so'" run csv rows.csv --weights w.safetensors --ops ops.so -o ops.so
keeps "--tuning and --output are both 'tuning'" run csv rows.csv --weights w.safetensors --tuning tuning -o tuning
for option in save save-best checkpoint dump-gradients log trace; do
    case $option in save*) ;; *) keeps "--weights and --$option are both 'link'" train csv rows.csv --target a --weights w.safetensors --$option link ;; esac # weights are read before the first step
    keeps "the data and --$option are both 'hard.csv'" train csv rows.csv --target a --$option hard.csv
    keeps "--$option 'photos/two.png' is one of the data in 'photos'" train images other --val photos --$option photos/two.png
done
keeps "--resume and --save are both 'w.safetensors'" train csv rows.csv --target a --resume w.safetensors --save w.safetensors
keeps "--val-labels and --log are both 'rows.csv'" train images photos --val-labels rows.csv --log rows.csv
keeps "--log and --output are both 'rows.csv'" report --log rows.csv -o rows.csv
keeps "--results and --output are both 'rows.csv'" report --results q.npz --results rows.csv -o rows.csv
keeps "--baseline and --junit are both 'rows.csv'" check --baseline rows.csv --junit rows.csv
"$cleave" train csv rows.csv --target a --resume w.safetensors --checkpoint w.safetensors 2>&1 | grep -q "would overwrite" &&
    fail "a training that goes on may keep its checkpoint's name"
cd .. || fail "no way back"
expect 2 "" env CLEAVE_VISIBLE_DEVICES=77 "$cleave" devices
expect 2 "" env CLEAVE_PARTITION=what "$cleave" devices
# other tools' words for options and values
for word in fp16 float16 half; do expect 2 "not '$word'; did you mean 'mixed'?" "$cleave" train fashion-mnist --precision $word; done
expect 2 "not 'bfloat16'; did you mean 'mixed-bf16'?" "$cleave" plan cnn --precision bfloat16
expect 2 "unknown option '--tokens'; did you mean '--length'?" "$cleave" generate --weights w --tokens 4
expect 2 "unknown option '--max_new_tokens'; did you mean '--length'?" "$cleave" generate --weights w --max_new_tokens 4
expect 2 "unknown option '--learning-rate'; did you mean '--lr'?" "$cleave" train fashion-mnist --learning-rate 1
expect 2 "unknown option '--batch_size'; did you mean '--batch'?" "$cleave" train fashion-mnist --batch_size 1
sed -n 's/^OPTION("\([^"]*\)", "\([^"]*\)")/\1 \2/p' "$(dirname "$0")/../../tools/cleave/options/synonyms.def" >synonyms # each is of a command
expect 2 "unknown command 'predict'; did you mean 'run'?" "$cleave" predict
expect 1 "there is no file 'holidays/*.jpg'; it looks like a pattern: without quotes the shell" "$cleave" run images 'holidays/*.jpg' --weights w.safetensors --model cnn
[ -s synonyms ] || fail "no table of synonyms"
while read -r word meant; do
    found=
    for command in train eval run generate plan; do
        "$cleave" $command "--$word" 2>&1 | grep -qF "did you mean '--$meant'?" && found=1 && break
    done
    [ "$found" ] || fail "--$word does not lead to --$meant"
done <synonyms

# names of files that are not there: the nearest in their folder
mkdir -p near/folder && printf 'a,b\n1,2\n' >near/houses.csv && printf '1\n' >"near/$(printf 'hous\033[2J')" || fail "no files"
expect 1 "cannot read 'near/hosues.csv': No such file or directory; did you mean 'near/houses.csv'?" "$cleave" train csv near/hosues.csv --target a --device host
expect 1 "did you mean 'near/houses.csv'?" "$cleave" eval fashion-mnist --weights near/houses --device host
expect 1 "cannot read the folder 'near/foldr': No such file or directory; did you mean 'near/folder'?" "$cleave" train images near/foldr --device host
expect 1 "did you mean 'near/houses.csv'?" "$cleave" top near/house.csv
expect 3 "did you mean 'near/houses.csv'?" "$cleave" check --device host --known-failures near/house.csv
expect 1 "did you mean 'near/houses.csv'?" "$cleave" train text near/house.csv --device host
finish
