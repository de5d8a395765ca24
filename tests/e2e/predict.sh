#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# eval and run on several devices: layers placed, or each batch shared out. The results of one device, memory as predicted on each
# and as the dry run says, mistakes refused. The one real CPU device is split into two, and the host is the unlike one.
. "$(dirname "$0")/common.sh"
need cpu:0
export CLEAVE_PARTITION=cpu:0=2
"$helper" images 70 x.npy && "$helper" labels 70 y.npy && "$helper" images 1 one.npy || fail "no data"
works "$cleave" train --images x.npy --labels y.npy --model mlp --device cpu:0 --batch 10 --epochs 2 --save w.safetensors --quiet
evaluate() { "$cleave" eval --images x.npy --labels y.npy --model mlp --weights w.safetensors --json "$@"; }
run() { "$cleave" run --input x.npy --model mlp --weights w.safetensors --json "$@"; }

works evaluate --device cpu:0
accuracy=$(at test_accuracy)
works run --device cpu:0 --output single.npy

# several DEVICES OPTIONS...: what eval and run say there is what one device says
several() {
    several_devices=$1
    shift
    works evaluate "$@"
    same "accuracy with $*" "$(at test_accuracy)" "$accuracy"
    same "images with $*" "$(at count)" 70
    same "devices with $*" "$(tr ',' '\n' <out | grep -c predicted_peak_bytes)" "$several_devices"
    for i in $(seq 0 $((several_devices - 1))); do
        same "prediction on $(at memory.$i.device) with $*" "$(at memory.$i.predicted_peak_bytes)" "$(at memory.$i.peak_bytes)"
    done
    works run --output several.npy "$@"
    same "shape with $*" "$(at shape.0) $(at shape.1)" "70 10"
    "$helper" near single.npy several.npy 1e-5 >/dev/null || fail "other logits with $*"
}
several 2 --place 'fc1=cpu:0,fc2=cpu:1'
several 2 --place 'fc1=host,fc2=cpu:1' --batch 32
several 2 --place balanced --devices cpu:0,cpu:1
same "what was chosen" "$(at placement.place)" "fc1=cpu:0,fc2=cpu:1"
grep -qF -- "--place balanced is --place 'fc1=cpu:0,fc2=cpu:1'" err || fail "what was chosen is not told: $(cat err)"
several 2 --replicas cpu:0,cpu:1 --shares equal --batch 16
same "equal shares" "$(at shares.cpu:0) $(at shares.cpu:1)" "0.5 0.5"
"$cleave" plan mlp --samples numbers --batch 16 --replicas cpu:0,cpu:1 --json >out 2>err || fail "no dry run: $(cat err)"
planned="$(at devices.0.predicted_peak_bytes) $(at devices.1.predicted_peak_bytes)"
works evaluate --replicas cpu:0,cpu:1 --shares equal --batch 16
same "the dry run" "$planned" "$(at memory.0.peak_bytes) $(at memory.1.peak_bytes)"
several 2 --replicas cpu:1,host --shares 0.75,0.25 --batch 32
several 2 --replicas cpu:0,cpu:1 --shares 0.75,0.25 --place 'fc2=cpu:1' # a layer placed beside replicas
several 3 --replicas cpu:0,cpu:1 --place 'fc1=host' --batch 32
several 2 --replicas cpu:0,cpu:1 # measured
awk "BEGIN { s = $(at shares.cpu:0) + $(at shares.cpu:1); exit !(s > 0.999 && s < 1.001) }" || fail "measured shares: $(at shares)"
several 3 --replicas cpu:0,cpu:1,host --shares 0.4,0.4,0.2 --precision f32 --fuse off
works evaluate --replicas cpu:0,cpu:1 --shares equal --precision mixed --profile
same "profiled devices" "$(at profile.devices.0.device) $(at profile.devices.1.device)" "cpu:0 cpu:1"
works "$cleave" eval --images x.npy --labels y.npy --model mlp --weights w.safetensors --replicas cpu:0,cpu:1 --shares 0.7,0.3
grep -qF "cpu:1 computes 30.0 % of each batch" out || fail "shares are not told: $(cat out)"
# one image on two replicas: there is one for each all the same
works "$cleave" run --input one.npy --model mlp --weights w.safetensors --replicas cpu:0,cpu:1 --shares equal --output o.npy --json
same "one image" "$(at shape.0)" 1

for command in evaluate "run --output o.npy"; do
    expect 2 "none is left for the replicas" $command --replicas cpu:0,cpu:1 --place '*=cpu:0'
    expect 2 "give one of them" $command --replicas cpu:0,cpu:1 --device cpu:0
    expect 2 "--shares is for --replicas" $command --shares equal
    expect 2 "3 parts for 2 replicas" $command --replicas cpu:0,cpu:1 --shares 0.3,0.3,0.4
    expect 2 "there is no device 'cpu:9'" $command --replicas cpu:0,cpu:9
    expect 2 "cpu:0 is named twice" $command --replicas cpu:0,cpu
    expect 2 "did you mean 'fc1'?" $command --place '*=cpu:0,fx1=cpu:1'
    expect 2 "among which?" $command --place auto
    expect 1 "leaves some without any" $command --replicas cpu:0,cpu:1 --batch 1
    expect 1 "less than one sample" $command --replicas cpu:0,cpu:1 --batch 8 --shares 0.99,0.01
    expect 1 "cpu:1" $command --replicas cpu:0,cpu:1 --shares equal --budget cpu:1=100KB
    expect 2 "unknown option '--micro-batches'" $command --micro-batches 2
done
finish
