#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Models of ONNX files by every command: run, eval, plan, train and its weights; and what is refused.
. "$(dirname "$0")/common.sh"
models=$(cd "$(dirname "$0")/../onnx/models" && pwd)
cp "$models"/*.onnx . && "$helper" images 20 wide.npy && "$helper" labels 20 y5.npy %5+0 || fail "no data"
works "$cleave" plan cnn.onnx --device "$device"
grep -q "^total .* 169 " out || fail "parameters: $(grep total out)"

# the file is model and weights; others say so
works "$cleave" run --model cnn.onnx --input wide.npy --device "$device" --output a.npy
works "$cleave" eval --model cnn.onnx --images wide.npy --labels y5.npy --device "$device" --json
before=$(at test_loss)
works "$cleave" train --model cnn.onnx --images wide.npy --labels y5.npy --device "$device" --epochs 8 --batch 10 \
    --save w.safetensors --json
works "$cleave" eval --weights w.safetensors --images wide.npy --labels y5.npy --device "$device" --json
awk "BEGIN { exit !($(at test_loss) < $before) }" || fail "the loss was $before and is $(at test_loss)"
works "$cleave" run --weights w.safetensors --input wide.npy --device "$device" --output b.npy
"$helper" near a.npy b.npy 1e-6 >/dev/null && fail "training changed nothing"
works "$cleave" train --model cnn.onnx --classes 7 --except 'classifier.*' --images wide.npy --labels y5.npy --device "$device" \
    --epochs 1 --json

# refused
head -c 900 cnn.onnx >cut.onnx
expect 1 "it is cut or damaged" "$cleave" run --model cut.onnx --input wide.npy --output c.npy
expect 1 "is an array of numpy" sh -c 'cp wide.npy x.onnx && exec "$0" run --model x.onnx --input wide.npy --output c.npy' "$cleave"
mkdir elsewhere && mv cnn.onnx elsewhere
expect 2 "which is not there: --model FILE.onnx says where it is" "$cleave" run --weights w.safetensors --input wide.npy --output c.npy
works "$cleave" run --model elsewhere/cnn.onnx --weights w.safetensors --input wide.npy --device "$device" --output c.npy
cmp -s b.npy c.npy || fail "other results from another folder"
finish
