#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The weights of the small models after a few steps in each mode, as digests of their bytes: a change that is to change nothing is seen
# to change nothing.
# usage: digests.sh CLEAVE HELPER [DEVICE]          the table
#        digests.sh CLEAVE HELPER host compare      held against digests.tsv beside this file (CLV_UPDATE=1 writes it again)
# On `host` the bytes are the same wherever doubles are IEEE's. Of `cpu:0` compare two builds on one machine: PoCL's compiler makes
# other code for other processors. With POCL_DEVICES='pthread pthread' there are replicas and layers on two devices besides.
set -u
export LC_ALL=C
cleave=$1 helper=$2 device=${3:-host}
table=$(cd "$(dirname "$0")" && pwd)/digests.tsv
[ "$device" != host ] || export OCL_ICD_VENDORS=/nonexistent
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export CLEAVE_CACHE_DIR=$scratch/cache CLEAVE_TUNING=none
{ "$helper" images 32 x.npy && "$helper" labels 32 y.npy; } || exit 1
i=0
while [ $i -lt 60 ]; do printf 'a cat sat on mat %d, and the dog ran to hill %d.\n' $((i % 7)) $((i * 31 % 10)); i=$((i + 1)); done >text.txt
two=
if [ "$device" != host ] && "$cleave" devices --json 2>/dev/null | grep -q '"cpu:1"'; then two=cpu:0,cpu:1; fi

# row MODEL MODE OPTIONS... : train it, and print the digest of the tensors (what stands before them tells of versions).
row() {
    model=$1 mode=$2
    shift 2
    case $model in
    gpt) data="text text.txt --context 16 --width 24 --heads 2 --layers 2 --validation 0.2" ;;
    *) data="--images x.npy --labels y.npy" ;;
    esac
    rm -f w
    # shellcheck disable=SC2086  # words on purpose
    "$cleave" train $data --model "$model" --steps 3 --batch 8 --seed 5 --save w --quiet "$@" >out 2>err || {
        echo "$model, $mode: $(cat err)" >&2
        exit 1
    }
    header=$(od -An -t u8 -N 8 w | tr -d ' ')
    printf '%s\t%s\t%s\n' "$model" "$mode" "$(tail -c "+$((header + 9))" w | sha256sum | cut -c1-16)"
}

# shellcheck disable=SC2086  # words on purpose
rows() {
    on="--device $device"
    for model in linear mlp cnn gpt; do
        row $model recipe $on
        row $model momentum $on --optimizer momentum --lr 0.01
        row $model "adam, clipped, averaged" $on --optimizer adamw --clip-norm 0.5 --ema 0.9 --lr 0.001
        row $model "mixed precision" $on --precision mixed
        row $model "mixed bf16" $on --precision mixed-bf16
        row $model "2 micro-batches" $on --micro-batches 2
        row $model "computed again" $on --recompute '*'
        row $model "not fused" $on --fuse off
        if [ -n "$two" ]; then
            row $model "2 replicas" --replicas $two --shares 0.5,0.5
            case $model in gpt) layers='*h.1*' ;; mlp | cnn) layers='fc*' ;; *) continue ;; esac
            row $model placed $on --place "$layers=cpu:1"
        fi
    done
    row cnn "mixup, smoothing, cosine" $on --mixup 0.2 --label-smoothing 0.1 --schedule cosine
}
if [ "${4:-}" != compare ]; then
    rows
    exit
fi
rows >got || exit 1
[ -z "${CLV_UPDATE:-}" ] || cp got "$table"
diff "$table" got && echo "$(wc -l <got) digests are as they were"
