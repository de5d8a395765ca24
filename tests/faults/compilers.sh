#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A CNN whose compiler dies at the k-th build, for every k, by the command: the weights of each training against those of one that
# nothing befell. By hand: it takes minutes. Usage: tests/faults/compilers.sh BUILD-FOLDER [HOW...], HOW as in tests/device/dies_layer.c.
set -eu
build=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- "fail" "segv"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export CLEAVE_TUNING="" CLEAVE_VISIBLE_DEVICES="" CLEAVE_PARTITION="" POCL_CACHE_DIR="$folder/pocl"
export CLV_TEST_DIES_FILE="$folder/builds"

# train WORDS OUTPUT: in an empty cache of programs
train() {
    rm -rf "$folder/cache" "$CLV_TEST_DIES_FILE"
    CLEAVE_CACHE_DIR="$folder/cache" CLV_TEST_DIES="$1" OPENCL_LAYERS="$build/tests/device/libclv_dies_layer.so" \
        "$build/cleave" train fashion-mnist --model cnn --device cpu --batch 4 --steps 2 --seed 1 --limit 8 --quiet --save "$2" \
        >"$folder/out" 2>"$folder/err"
}

train "" "$folder/right.safetensors"
for how in "$@"; do
    train "$how" "$folder/same.safetensors"
    cmp "$folder/right.safetensors" "$folder/same.safetensors"
    n=$(grep -c begun "$CLV_TEST_DIES_FILE")
    same=0 died=0 k=1
    while [ "$k" -le "$n" ]; do
        if train "$how at=$k" "$folder/k.safetensors" && cmp -s "$folder/right.safetensors" "$folder/k.safetensors"; then
            same=$((same + 1))
        else
            echo "$how at=$k: $(cat "$folder/err")"
        fi
        [ "$(grep -c begun "$CLV_TEST_DIES_FILE")" -gt "$(grep -c built "$CLV_TEST_DIES_FILE")" ] && died=$((died + 1))
        k=$((k + 1))
    done
    echo "$how: $n builds, $died trainings in which one ended badly, $same with the same weights"
    [ "$same" = "$n" ] && [ "$died" = "$n" ]
done
