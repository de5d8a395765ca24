#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --profile and --trace: figures that add up, a trace that is whole, the same bits as without, and disks that are full.
. "$(dirname "$0")/common.sh"
"$helper" images 80 x.npy && "$helper" labels 80 y.npy || fail "no data"
train() { "$cleave" train --images x.npy --labels y.npy --model mlp --device "$device" --batch 16 --quiet "$@"; }

works train --epochs 2 --save plain.safetensors --json
same "no profile" "$(at profile)" null
works train --epochs 2 --save profiled.safetensors --profile --trace t.json --json
cmp -s plain.safetensors profiled.safetensors || fail "a profile changes the bits"
same "prediction" "$(at memory.0.predicted_peak_bytes)" "$(at memory.0.peak_bytes)"
name=$(at device)
same "run" "$(at profile.steps profile.warm profile.trains profile.devices.0.device | tr '\n' ' ')" "8 true true $name "
same "all steps" "$(at profile.all_steps)" 10
at profile.step_ms profile.host_ms profile.bubble profile.devices.0.idle_ms profile.devices.0.transfer_ms >/dev/null
busy=$(at profile.devices.0.busy_ms)
awk "BEGIN { exit !($busy > 0 && $busy <= $(at profile.step_ms) * 1.001) }" || fail "busy $busy of $(at profile.step_ms)"
# the layers' times are the device's
layers=$(at profile.layers | sed 's/array of //')
sum=0
i=0
while [ $i -lt "$layers" ]; do
    sum="$sum + $(at "profile.layers.$i.all.ms")"
    i=$((i + 1))
done
awk "BEGIN { d = $sum - $busy - $(at profile.devices.0.transfer_ms); exit !(d < 0.002 && d > -0.002) }" || fail "layers: $sum"
"$helper" trace t.json >events || fail "the trace: $(cat events)"
same "steps of the trace" "$(grep -c '^host program|host||hand over a step|training' events)" 10
[ "$(grep -c "^$name|forward|fc1|" events)" -ge 10 ] || fail "fc1 is not in each step" # a node may have several launches
grep -q "^$name|backward|fc1|" events || fail "no backward pass: $(sort -u events)"
grep -q "^$name|update|" events || fail "no optimizer: $(sort -u events)"
for what in "host program|host||feed" "host program|host||fetch" "$name|transfer||upload" "$name|transfer||read" "$name|memory"; do
    grep -qF "$what" events || fail "no $what: $(sort -u events)"
done

# tables for people
works train --epochs 1 --profile
grep -q "^profile: .* ms a step" out || fail "no profile: $(cat out)"
works train --batch 32 --steps 7 --profile # 80 images are two batches of 32 and one of 16
grep -qF "(the average of 3 of 7 steps: the first 2 warm up, 2 are of another batch size)" out || fail "steps: $(grep ^profile out)"
grep -q "^layer .*GFLOP/s .*GB/s .*peak .*all ms" out || fail "no table of layers"
grep -q "^fc1 " out || fail "no row of fc1"
grep -q "^op .*variant .*nodes" out || fail "no table of ops"

# one step: figures all the same
works train --steps 1 --profile --json --no-cache # the device's peak is measured again, in memory that is none of the model's
same "one step" "$(at profile.steps profile.warm | tr '\n' ' ')" "1 false "
same "prediction after measuring the peak" "$(at memory.0.predicted_peak_bytes)" "$(at memory.0.peak_bytes)"

# evaluation and inference
works "$cleave" eval --images x.npy --labels y.npy --model mlp --weights plain.safetensors --device "$device" --batch 16 --profile \
    --trace e.json --json
same "eval" "$(at profile.steps profile.trains | tr '\n' ' ')" "3 false "
"$helper" trace e.json >events || fail "the trace of eval: $(cat events)"
grep -q "|backward|" events && fail "eval went backward"
same "steps of eval" "$(grep -c '^host program|host||hand over a step|not training' events)" 5 # with two that warm up
works "$cleave" run --model mlp --weights plain.safetensors --input x.npy --output l.npy --device "$device" --batch 16 --profile \
    --trace r.json --json
same "run" "$(at profile.steps)" 3
"$helper" trace r.json >events || fail "the trace of run: $(cat events)"

# of a plan: what it could take at least
works "$cleave" plan mlp --device "$device" --train --profile --json
at least.step_ms least.layers.0.forward least.nodes.0.op >/dev/null
works "$cleave" plan mlp --device "$device" --train --profile
! grep -Eq "(^|[^0-9])(10[1-9]|1[1-9][0-9]|[2-9][0-9][0-9]|[0-9]{4,}) %" out || fail "more than the whole of a peak: $(cat out)"
peaks="at the measured peaks"
[ "$device" != host ] || peaks="host: its peaks are not known"
grep -q "^$peaks" out || fail "nothing of the peaks: $(cat out)"

# places where no trace can be written, before and after the work; nothing else is lost
expect 1 "cannot write 'nowhere/t.json': a file cannot be made in folder 'nowhere': No such file or directory" train --steps 1 --trace nowhere/t.json
expect 1 "cannot write '.': it is a folder; add a file name" train --steps 1 --trace .
expect 2 "--trace wants FILE, not an empty text" train --steps 1 --trace ''
echo before >full.json
# (on the host: a driver's compiler writes files too)
(ulimit -f 200; trap '' XFSZ; exec "$cleave" train --images x.npy --labels y.npy --model linear --device host --batch 4 --quiet \
    --epochs 10 --trace full.json --save kept.safetensors) >out 2>err
same "a full disk" $? 1
same "sentences" "$(grep -c '^cleave: ' err)" 1
grep -qF "cannot write 'full.json'" err || fail "a full disk: $(cat err)"
same "what was there" "$(cat full.json)" before
[ -e full.json.tmp ] && fail "half a trace was left"
grep -q "^train loss" out || fail "the result was lost: $(cat out)"
"$helper" shapes kept.safetensors >/dev/null || fail "the weights were lost"
finish
