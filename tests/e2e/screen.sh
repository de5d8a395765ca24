#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a person sees: tables, bars and pictures on terminals of 60 to 200 columns, whose width changes while they are drawn. Nothing
# is broken by the terminal, no number is cut, nothing old stays behind. `terminal.c` is the terminal.
. "$(dirname "$0")/common.sh"
terminal=${CLV_TEST_TERMINAL:?}
export CLEAVE_CACHE_DIR="$scratch/cache" LC_ALL=C.UTF-8
unset COLUMNS NO_COLOR
"$helper" images 96 x.npy && "$helper" labels 96 y.npy || fail "no data"
train() { "$cleave" train --images x.npy --labels y.npy --model mlp --device host --batch 8 "$@"; }
works train --epochs 1 --quiet --save w.safetensors --log run.jsonl
works "$cleave" devices --json
cpu=$(grep -o 'cpu:0' out | head -n 1) # the host has nothing to tune

# on COLUMNS... COMMAND... : the command on a terminal; nothing broke, and the terminal understood it all
on() {
    columns=$1
    shift
    "$terminal" "$columns" 300 screen facts -- "$@" || fail "exit $?: $* on $columns columns: $(tail -n 3 screen)"
    for fact in 'breaks 0' 'clipped 0' 'unknown 0'; do
        grep -qx "$fact" facts || fail "$(tail -n 3 facts | tr '\n' ' ')of $* on $columns columns: $(cat screen)"
    done
}

# whole COMMAND... : after `on`: no number but those of the full output
whole() {
    "$@" >full 2>&1
    tr -cs '0-9.,' '\n' <full | grep '[0-9]' | sort -u >known
    grep -v '^(no room for' screen | tr -cs '0-9.,' '\n' | grep '[0-9]' | sort -u >seen
    [ -z "$(comm -13 known seen)" ] || fail "numbers that are none on $columns columns of $*: $(comm -13 known seen | tr '\n' ' ')"
}

for width in 60 80 120 200; do
    for command in devices "plan cnn --batch 2 --train --device host" "plan resnet18 --batch 2 --device host --depth 2" "bench conv --list" \
        "env --quiet" "cache list"; do
        # shellcheck disable=SC2086  # words of a command
        on $width "$cleave" $command
        # shellcheck disable=SC2086
        case $command in env*) ;; *) whole "$cleave" $command ;; esac
    done
    on $width "$cleave" train --help
    on $width "$cleave" bench gemm --size 5x7x3 --runs 1 --seconds 0.01 --device host
    on $width "$cleave" check --op softmax --quick --device host
    [ -z "$cpu" ] || on $width "$cleave" tune --size 5x7x3 --seconds 0.01 --device "$cpu" -o t.tuning
    on $width "$cleave" compare --model linear --device host --device host --batch 2
    on $width "$cleave" eval --images x.npy --labels y.npy --model mlp --weights w.safetensors --device host --profile
    on $width "$cleave" run --input x.npy --output o.npy --model mlp --weights w.safetensors --device host --profile
    on $width "$cleave" top run.jsonl --once
    on $width "$cleave" train --images x.npy --labels y.npy --model mlp --device host --batch 8 --epochs 3 --profile --save w2.safetensors
    for line in '^  model  *mlp, 101,770 parameters, all trainable' '^  device  *host, ' '^  samples  *96 to train on' \
        '^  batch  *8, 3 epochs of 12 steps, 36 in all' '^  optimizer  *adam' '^  rate  *0.001' '^  schedule  *step: times 0.1 every 3 epochs' \
        '^  precision  *f32' '^  seed  *1' '^train loss' '^time ' '^weights in w2.safetensors'; do
        grep -q "$line" screen || fail "a training on $width columns tells no '$line': $(cat screen)"
    done
    same "the last line" "$(tail -n 1 screen)" "weights in w2.safetensors"
    grep -q '^drawn epoch 3/3 .*━.* 12/12  loss' facts || fail "no bar on $width columns: $(cat facts)"
    grep -q '━' screen && fail "a bar stays behind on $width columns: $(cat screen)"
done
mkdir idx && "$helper" idx idx 60 || fail "no data"
on 60 "$cleave" train fashion-mnist --data idx --model mlp --device host --epochs 2 --precision mixed --trace t.json
same "epochs" "$(grep -c '^epoch [12]/2  loss [0-9.]*  accuracy [0-9.]*' screen)" 2
on 60 "$cleave" plan resnet18 --batch 2 --train --device host --depth 1 --recompute 'layer1.*' --precision mixed --input-size 3x32x32
on 60 "$cleave" plan cnn --batch 2 --train --place 'conv*=host,fc*=null' # values that are carried

# not a terminal: as wide as it is, unless COLUMNS says how wide
works "$cleave" plan cnn --batch 2 --train --device host
head -n 4 out | grep -q 'variant .*chosen .*device .*output .*workspace' || fail "columns are missing in a pipe: $(head -n 4 out)"
works env COLUMNS=70 "$cleave" plan cnn --batch 2 --train --device host
grep -E '^.{71}' out >long && fail "COLUMNS is not respected: $(cat long)"
works env COLUMNS=no "$cleave" plan cnn --batch 2 --train --device host
grep -q 'workspace' out || fail "COLUMNS that is no number"
# and of many epochs some: all of 50, of more the first three, about 50 evenly, the last, and one that ends early; the log has all
many() { "$cleave" train --images x.npy --labels y.npy --model linear --limit 8 --device host --batch 8 "$@"; }
told() { grep -c '^epoch [0-9]*/[0-9]*  loss' err; }
for epochs in '50 50' '51 28' '500 53' '501 49'; do
    works many --epochs "${epochs% *}" --log many.jsonl
    same "lines of ${epochs% *} epochs" "$(told)" "${epochs#* }"
    same "epochs in the log" "$(grep -c '"event":"epoch"' many.jsonl)" "${epochs% *}"
done
same "which epochs" "$(sed -n 's|^epoch \([0-9]*\)/501 .*|\1|p' err | sed -n '1,5p;$p' | tr '\n' ' ')" "1 2 3 11 22 501 "
works "$cleave" train fashion-mnist --data idx --model linear --device host --batch 60 --epochs 500 --lr 0.5 --optimizer sgd --patience 4 --min-delta 100
same "the epoch that ends it" "$(grep -c '^epoch 5/500  loss' err)" 1

# a width that changes under a bar or a picture, on terminals that cut long lines and on those that break them again
for how in cut reflow; do
    for what in "" "--watch --budget host=64MiB"; do
        # shellcheck disable=SC2086
        "$terminal" 130 30 screen facts resize ' left' 61 $how resize ' left' 90 $how resize ' left' 40 $how -- \
            "$cleave" train --images x.npy --labels y.npy --model mlp --device host --batch 4 --epochs 60 $what || fail "exit $?"
        grep -q '^never seen' facts && fail "no drawing: $(cat facts)"
        grep -q '━' screen && fail "something stays behind ($how $what): $(cat screen)"
        grep -q ' left\| busy ' screen && fail "something stays behind ($how $what): $(cat screen)"
        same "epochs ($how $what)" "$(grep -c '^epoch [0-9]*/60  loss' screen)" 60
    done
    # top, of a training that goes on until it has been resized
    cp run.jsonl live.jsonl && sed -i "/\"event\":\"end\"/d; s/\"process\":[0-9]*/\"process\":$$/" live.jsonl
    (sleep 1.2 && grep '"event":"end"' run.jsonl >>live.jsonl) &
    "$terminal" 130 30 screen facts resize 'step 12/12' 50 $how -- "$cleave" top live.jsonl || fail "top: exit $?"
    wait
    grep -q '^never seen' facts && fail "top drew nothing: $(cat facts)"
    same "lines of top ($how)" "$(wc -l <screen)" 2
    grep -q '^mlp .* done$' screen || fail "the last picture of top: $(cat screen)"
done
# A prompt is written after the bar of the kernels that are compiled for it, which would draw over it.
i=0
while [ $i -lt 20 ]; do echo "In the beginning were $i words."; i=$((i + 1)); done >text.txt
works "$cleave" train text text.txt --context 8 --width 16 --heads 2 --layers 1 --batch 8 --steps 1 --quiet --save g.safetensors
on 80 "$cleave" generate --weights g.safetensors --prompt 'In the' --length 4
grep -q '^In the' screen || fail "the prompt is not on the screen: $(cat screen)"
finish
