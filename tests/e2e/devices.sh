#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Several devices in one training: layers placed, a batch shared out. The one real CPU device is split into two, and the
# host is the unlike one. Results equal the one-device run; memory is as predicted on each; mistakes are refused.
. "$(dirname "$0")/common.sh"
need cpu:0
mkdir idx && "$helper" idx idx 200 || fail "no data"
export CLEAVE_PARTITION=cpu:0=2
train() { "$helper" last "$cleave" train fashion-mnist --data idx --model mlp --epochs 2 --batch 32 --json "$@"; }

check_memory() {
    for i in 0 1; do
        same "prediction on $(at memory.$i.device)" "$(at memory.$i.predicted_peak_bytes)" "$(at memory.$i.peak_bytes)"
    done
}

works train --device cpu:0 --save one.safetensors
loss=$(at train_loss)

# layers on two devices of one kind: the same bits
works train --place 'fc1=cpu:0,fc2=cpu:1' --save placed.safetensors --log log.jsonl
same "loss of layers on two devices" "$(at train_loss)" "$loss"
cmp -s one.safetensors placed.safetensors || fail "layers on two devices gave other bits"
check_memory
"$helper" lines devices.cpu:1.peak_bytes <log.jsonl >/dev/null || fail "the log has no memory of cpu:1"

# chosen by time, in turn, by bytes: the same bits; what is printed can be given again
for method in auto sequential; do
    works train --place $method --devices cpu:0,cpu:1 --save chosen.safetensors
    cmp -s one.safetensors chosen.safetensors || fail "--place $method gave other bits"
    at placement.place placement.stages.0.device placement.stages.0.layers placement.stages.0.bytes \
        placement.stages.0.predicted_ms >/dev/null
done
same "sequential" "$(at placement.place)" "*=cpu:0"
cnn() { train --model cnn --limit 60 --batch 20 --epochs 1 "$@"; }
works cnn --device cpu:0 --save one-cnn.safetensors
works cnn --place balanced --devices cpu:0,cpu:1 --save chosen.safetensors
place=$(at placement.place)
same "balanced" "$place" "conv1=cpu:0,conv2=cpu:0,fc1=cpu:1,fc2=cpu:1"
cmp -s one-cnn.safetensors chosen.safetensors || fail "--place balanced gave other bits"
check_memory
grep -qF -- "--place '$place'" err || fail "--place balanced is not told on stderr"
works cnn --place "$place" --save pasted.safetensors
cmp -s one-cnn.safetensors pasted.safetensors || fail "'$place' gave other bits"
same "the placement of a text" "$(at placement)" null
# under a budget: the dry run and the training agree, and keep it
for method in balanced sequential auto; do
    works "$cleave" plan mlp --samples numbers --batch 32 --train --place $method --devices cpu:0,cpu:1 --budget cpu:0=300KB --json
    # auto goes by measured time, and may leave the small layer on either
    case $method:$(at placement.place) in
    *:"*=cpu:1" | auto:"fc1=cpu:1,fc2=cpu:0") ;;
    *) fail "budgeted $method: $(at placement.place)" ;;
    esac
done
works train --place auto --devices cpu:0,cpu:1 --budget cpu:0=300KB --save chosen.safetensors
same "prediction under a budget" "$(at memory.0.predicted_peak_bytes)" "$(at memory.0.peak_bytes)"
cmp -s one.safetensors chosen.safetensors || fail "--place auto under a budget gave other bits"
works "$cleave" plan mlp --samples numbers --batch 32 --train --place "fc1=cpu:0,fc2=host" --json
same "devices of a plan" "$(at layers.1.device devices.0.device devices.1.device transfers.0.from | tr '\n' ' ')" \
    "cpu:0 cpu:0 host cpu:0 "
works "$cleave" plan mlp --samples numbers --batch 32 --train --replicas cpu:0,host --shares 0.5,0.5 --json
same "replicas of a plan" "$(at devices.0.device devices.1.device | tr '\n' ' ')" "cpu:0 host "
works "$cleave" plan vgg11 --train --place balanced --devices null:0,null:1 --json
same "balanced vgg11" "$(at placement.place)" "features.*=null:0,classifier.*=null:1"

# on unlike devices: the same to rounding
works train --place '*=cpu:0,fc2=host' --save unlike.safetensors
"$helper" close one.safetensors unlike.safetensors 1e-4 >/dev/null || fail "layers on unlike devices gave other weights"
check_memory

# replicas: the sum of their gradients is the batch's, to rounding
for shares in equal 0.7,0.3 auto; do
    works train --replicas cpu:0,cpu:1 --shares $shares --save shared.safetensors
    "$helper" close one.safetensors shared.safetensors 1e-4 >/dev/null || fail "shares $shares gave other weights"
    [ $shares = auto ] || { # the same bits twice
        mv shared.safetensors before.safetensors
        works train --replicas cpu:0,cpu:1 --shares $shares --save shared.safetensors
        cmp -s before.safetensors shared.safetensors || fail "shares $shares twice gave other bits"
        works train --replicas cpu:0,cpu:1 --shares $shares --checkpoint c --steps 5 --quiet
        works train --replicas cpu:0,cpu:1 --shares $shares --resume c --save shared.safetensors
        cmp -s before.safetensors shared.safetensors || fail "shares $shares, resumed, gave other bits"
    }
    check_memory
done
same "epochs with shares" "$(at shares_by_epoch.0.epoch) $(at shares_by_epoch.1.epoch)" "1 2"
at shares_by_epoch.1.shares.cpu:0 shares_by_epoch.1.shares.cpu:1 >/dev/null
works train --replicas cpu:1,host --shares 0.8,0.2 --save shared.safetensors
"$helper" close one.safetensors shared.safetensors 1e-4 >/dev/null || fail "replicas on unlike devices gave other weights"

# parts: layers that --place names lie there, all others are replicated
works train --replicas cpu:0,cpu:1 --shares 0.75,0.25 --place 'fc2=cpu:1' --save parts.safetensors
"$helper" close one.safetensors parts.safetensors 1e-4 >/dev/null || fail "one layer placed beside replicas gave other weights"
check_memory
same "shares beside a placed layer" "$(at shares.cpu:0) $(at shares.cpu:1)" "0.75 0.25"
works train --replicas cpu:0,cpu:1 --place 'fc1=cpu:1' --micro-batches 2 --checkpoint c --steps 5 --shares equal
works train --replicas cpu:0,cpu:1 --place 'fc1=cpu:1' --micro-batches 2 --resume c --save parts.safetensors --shares equal
"$helper" close one.safetensors parts.safetensors 1e-4 >/dev/null || fail "one layer placed beside replicas, resumed, gave other weights"
check_memory
works train --replicas cpu:0,cpu:1 --place 'fc1=cpu:1' --epochs 1 # shares by measured speed
works "$cleave" plan vgg11 --train --batch 8 --replicas null:rx-580,null:1 --place 'classifier.*=null:1' --json
same "devices of parts" "$(at devices.0.device devices.1.device | tr '\n' ' ')" "null:rx-580 null:1 "
works "$cleave" plan resnet18 --train --batch 8 --replicas null:0,null:1 --place 'fc=null:rx-580' --json # statistics are moved once

# a device with room for its part of the work and not for all of it: speeds cannot be measured there before
works train --replicas cpu:0,cpu:1 --shares equal
budget=$(at memory.1.peak_bytes)
works train --replicas cpu:0,cpu:1 --shares auto --budget "cpu:1=$budget"
grep -q 'cleave: the batch is shared equally at first: measuring cpu:1 alone with 16 samples: .* of a budget of ' err ||
    fail "no word on why shares are equal: $(cat err)"
[ "$(at memory.1.peak_bytes)" -le "$budget" ] || fail "a budget that was exceeded"

works "$cleave" plan mlp --train --replicas cpu:0,cpu:1
grep -q '^fc1 .* several ' out || fail "a layer of two replicas is told to be on one: $(grep '^fc1' out)"

# blanks in a list mean nothing
works train --place ' fc1 = cpu:0, fc2 =cpu:1 ' --save blanks.safetensors
works train --place 'fc1=cpu:0,fc2=cpu:1' --save placed.safetensors
cmp -s blanks.safetensors placed.safetensors || fail "blanks placed layers elsewhere"

# what would fit where no choice does
works "$cleave" plan mlp --samples numbers --train --batch 640 --device cpu:0 --json
budget=$(($(at devices.0.predicted_peak_bytes) - 1000000))
auto="mlp --samples numbers --train --place auto --devices cpu:0 --budget cpu:0=$budget"
# shellcheck disable=SC2086  # words on purpose
expect 1 "placement: nothing fits; the nearest, *=cpu:0, would hold " "$cleave" plan $auto --batch 640
fewer=$(sed -n 's/.*; planned and found to fit: --batch \([0-9]*\).*/\1/p' err)
[ "${fewer:-0}" -gt 0 ] || fail "no word on what would fit: $(cat err)"
# shellcheck disable=SC2086
works "$cleave" plan $auto --batch "$fewer"
# shellcheck disable=SC2086
expect 1 "planned and found to fit: --batch $fewer" "$cleave" plan $auto --batch $((fewer + 1))

# a pattern that later ones leave nothing
works train --place 'fc1=cpu:0,*=cpu:1'
grep -qF 'cleave: --place names cpu:0, and leaves it nothing: a later pattern takes all its layers' err ||
    fail "no word on a device that does nothing: $(cat err)"

# a budget for a device that has no part in it, and for one that has
works train --place '*=cpu:0' --budget cpu:1=64MiB
grep -qxF 'cleave: --budget cpu:1 is for a device that is not used here' err || fail "no word on the budget: $(cat err)"
works "$cleave" plan mlp --device cpu:0 --budget cpu:1=64MiB --budget cpu:0=64MiB
same "words on budgets" "$(grep -- --budget err)" 'cleave: --budget cpu:1 is for a device that is not used here'
works train --replicas cpu:0,cpu:1 --budget cpu:1=64MiB
! grep -q -- '--budget' err || fail "a word on a budget of a replica: $(cat err)"

# a device that is lost: stop with a checkpoint, or go on without it
if [ -n "${CLV_TEST_LOST_LAYER:-}" ]; then
    lose() {
        doomed=$1
        shift
        OPENCL_LAYERS=$CLV_TEST_LOST_LAYER CLV_TEST_LOSE=$doomed "$cleave" train fashion-mnist --data idx --model mlp \
            --batch 32 --shares equal --replicas cpu:0,cpu:1 --epochs 4 "$@"
    }
    expect 1 "cpu:1 failed in step " lose 1:150:-5 --quiet
    grep -q 'CL_OUT_OF_RESOURCES (-5).*there is no checkpoint (--checkpoint FILE): all [0-9]* steps before it are lost' err ||
        fail "what is lost: $(cat err)"
    expect 1 "in checkpoint 'c': go on with --resume c" lose 1:150:-2 --quiet --checkpoint c
    works "$cleave" train fashion-mnist --data idx --model mlp --batch 32 --epochs 4 --device cpu:0 --resume c --quiet
    works lose 1:150:-9999 --on-device-failure continue --json
    same "the lost device" "$(at lost_devices.0.device)" cpu:1
    at lost_devices.0.step lost_devices.0.reason >/dev/null
    same "steps" "$(at steps)" 28
    same "shares" "$(at shares.cpu:0) $(at shares.cpu:1)" "1 0"
    check_memory
    grep -q 'cleave: cpu:1 failed in step [0-9]* of 28: .*; going on without it' err || fail "no word of it: $(cat err)"
    expect 1 "the others cannot go on without the parameters it kept" lose 0:150:-9999 --on-device-failure continue --quiet
fi
expect 2 "--on-device-failure is for --replicas" train --on-device-failure continue
expect 2 "no pattern covers 'fc2'" train --place fc1=cpu:0
expect 2 "no layer matches 'fc3'" train --place '*=cpu:0,fc3=cpu:1'
expect 2 "'fc2' is not of the form pattern=device" train --place fc1=cpu:0,fc2
expect 2 "there is no device 'cpu:7'" train --place '*=cpu:7'
expect 2 "no layer matches 'conv1'" "$cleave" plan mlp --place '*=cpu:0,conv1=cpu:1'
expect 2 "--devices is for --place auto, balanced or sequential" train --place '*=cpu:0' --devices cpu:1
expect 2 "--devices is for --place auto, balanced or sequential" train --devices cpu:1
expect 2 "--place auto wants --devices A,B: among which?" train --place auto
expect 2 "--devices wants 1 to 16 devices, cpu:0,cpu:1, not 'cpu:0,'" train --place auto --devices cpu:0,
expect 2 "lets data cross between devices, --transfers explicit does not" \
    train --place balanced --devices cpu:0,cpu:1 --transfers explicit
expect 2 "placement: device 'cpu:0' is named twice" train --place auto --devices cpu:0,cpu:0
expect 2 "placement: 'cpu:0' and 'cpu' are the same device, cpu:0" train --place auto --devices cpu:0,cpu
expect 2 "there is no device 'cpu:7'" train --place auto --devices cpu:0,cpu:7
expect 2 "placement: 3 devices for 2 layers with parameters: name at most 2" train --place auto --devices cpu:0,cpu:1,host
expect 1 "placement: layer 'fc1' has 392.5 KiB (401920 bytes) of parameters, more than any device may hold (cpu:0 97.7 KiB, cpu:1 195.3 KiB)" \
    train --place auto --devices cpu:0,cpu:1 --budget cpu:0=100000 --budget cpu:1=200000
expect 1 "placement: nothing fits; the nearest, " \
    "$cleave" plan mlp --train --place auto --devices cpu:0,cpu:1 --budget cpu:0=500KB --budget cpu:1=500KB
expect 1 "clv_to" train --place 'fc1=cpu:0,fc2=cpu:1' --transfers explicit
expect 2 "--shares '0.5,0.6' sum to 1.1, they must sum to 1" train --replicas cpu:0,cpu:1 --shares 0.5,0.6
expect 2 "--shares '1,0': the share of cpu:1 is 0, it must be above 0" train --replicas cpu:0,cpu:1 --shares 1,0
expect 2 "the share of cpu:0 is nan, it must be above 0" train --replicas cpu:0,cpu:1 --shares nan,1
expect 2 "--shares '0.5,0.5' has 2 parts for 3 replicas" train --replicas cpu:0,cpu:1,host --shares 0.5,0.5
expect 2 "--replicas: cpu:0 is named twice" train --replicas cpu:0,cpu:0
if grep -q "twice, as" err; then fail "one name told as two"; fi
expect 2 "--replicas: cpu:0 is named twice, as 'cpu:0' and as 'cpu'" train --replicas cpu:0,cpu:1,cpu
expect 2 "--replicas: cpu:0 is named twice, as 'cpu' and as 'cpu:0'" "$cleave" plan mlp --train --replicas cpu,cpu:0
expect 1 "a batch of 1 samples for 2 replicas leaves some without any" train --replicas cpu:0,cpu:1 --batch 1
expect 1 "a batch of 1 samples for 2 replicas leaves some without any" \
    "$cleave" plan mlp --train --replicas cpu:0,cpu:1 --batch 1
expect 1 "the share of cpu:1, 0.01 of 32 samples, is less than one sample: give it at least 0.03125, or leave it out" \
    train --replicas cpu:0,cpu:1 --shares 0.99,0.01
expect 2 "names a device for every layer, so none is left for the replicas" train --replicas cpu:0,cpu:1 --place '*=cpu:0'
expect 2 "placement: no layer matches 'fc3'" train --replicas cpu:0,cpu:1 --place 'fc3=cpu:0'
expect 2 "--place auto chooses places for all layers, so none is left for --replicas" \
    train --replicas cpu:0,cpu:1 --place auto --devices cpu:0,cpu:1
expect 2 "give one of them" train --replicas cpu:0,cpu:1 --device cpu:0
expect 2 "--shares is for --replicas" train --shares equal
expect 2 "3 parts for 2 replicas" train --replicas cpu:0,cpu:1 --shares 0.3,0.3,0.4
expect 2 "one number for each replica" train --replicas cpu:0,cpu:1 --shares half
expect 2 "there is no device 'cpu:9'" train --replicas cpu:0,cpu:9
finish
