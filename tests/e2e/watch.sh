#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Watching a training: the lines of --watch, the log as tools/README.md promises it, and cleave top on logs that are whole, half
# written, cut short, replaced, or not logs at all.
. "$(dirname "$0")/common.sh"
"$helper" images 64 x.npy && "$helper" labels 64 y.npy || fail "no data"
train() { "$cleave" train --images x.npy --labels y.npy --model linear --device "$device" --batch 16 "$@"; }

# --watch in a pipe: lines for the first and the last step at least, no escape sequences, nothing when quiet
train --epochs 2 --watch --log log.jsonl --budget "$device=64MiB" >out 2>err || fail "train --watch: $(cat err)"
grep -qF "linear  epoch 2/2  step 8/8  100 %  loss " err || fail "no line of the last step: $(cat err)"
grep -q "^  $device .* of  *64.0 MiB (budget), peak .*busy .* images/s" err || fail "no line of the device: $(cat err)"
grep -q "$(printf '\033')" err && fail "escape sequences in a pipe"
train --epochs 1 --watch --quiet >out 2>err
grep -v slow err | grep -q . && fail "--quiet is not quiet: $(cat err)"

# the log: begin, steps, epochs, end
same "events" "$(sed -n 's/.*"event":"\([a-z]*\)".*/\1/p' log.jsonl | tr '\n' ' ')" "begin epoch epoch end "
same "steps" "$("$helper" lines step <log.jsonl | tr '\n' ' ')" "1 2 3 4 5 6 7 8 "
for key in steps epoch batch loss lr seconds left_seconds images_per_second; do
    "$helper" lines $key <log.jsonl >/dev/null || fail "a step has no $key"
done
for key in used_bytes peak_bytes budget_bytes memory_bytes busy share images_per_second; do
    "$helper" lines "devices.$device.$key" <log.jsonl >/dev/null || fail "a device has no $key"
done
same "budget" "$("$helper" lines "devices.$device.budget_bytes" <log.jsonl | sort -u)" 67108864
busy=$("$helper" lines "devices.$device.busy" <log.jsonl | tail -n 1)
awk "BEGIN { exit !($busy > 0 && $busy <= 1) }" || fail "busy $busy"
works "$cleave" top log.jsonl
grep -qF "linear  epoch 2/2  step 8/8" out || fail "top does not show the last step: $(cat out)"
grep -q "images/s  done" out || fail "top does not know that it is done"
works "$cleave" top log.jsonl --json
same "top" "$(at state step steps epochs damaged_lines sentence | tr '\n' '|')" "done|8|8|2|0||"
at loss lr images_per_second seconds age_seconds process "devices.$device.peak_bytes" >/dev/null

works "$cleave" train --images x.npy --labels y.npy --model mlp --place "fc*=$device" --batch 16 --steps 1 --quiet --log placed
same "layers" "$("$helper" lines "devices.$device.layers" <placed)" 2

# a line that is half written, or damaged, is passed over; what a log says cannot move the cursor
head -n 6 log.jsonl >half && printf '{"step":6,"ste' >>half
works "$cleave" top half --json
same "half a line" "$(at state step damaged_lines | tr '\n' ' ')" "running 4 0 "
printf '\n{"step":7,"steps":8,"epoch":2,"loss":null,"devices":{"a\\u001b[2Jb":{"used_bytes":-1,"peak_bytes":"x"}}}\n' >>half
works "$cleave" top half
grep -q "$(printf '\033')" out && fail "an escape sequence of the log came through"
grep -qF "cleave: 1 damaged line of the log was skipped" err || fail "nothing said of the damaged line: $(cat err)"
works "$cleave" top half --json
same "damage" "$(at state step loss damaged_lines | tr '\n' ' ')" "running 7 null 1 "
"$helper" lines nothing </dev/null >long && head -c 1500000 /dev/zero | tr '\0' x >>long && echo >>long && cat log.jsonl >>long
works "$cleave" top long --json
same "a line too long" "$(at step damaged_lines | tr '\n' ' ')" "8 1 "
tail -n 4 log.jsonl >cut # the beginning is gone
works "$cleave" top cut --json
same "no beginning" "$(at model step steps | tr '\n' ' ')" " 8 8 "
: >empty
works "$cleave" top empty --json
same "an empty log" "$(at state step | tr '\n' ' ')" "waiting 0 "
works "$cleave" top empty
grep -qF "training  waiting for the first step" out || fail "an empty log: $(cat out)"
expect 1 "the log 'missing' cannot be opened: No such file or directory" "$cleave" top missing
expect 1 "the log '.' is no file" "$cleave" top .
expect 1 "'x.npy' is no log of a training: none of its" "$cleave" top x.npy

# several logs side by side
works "$cleave" top log.jsonl half --json
same "two logs" "$(at trainings.0.state trainings.0.step trainings.0.log trainings.1.state trainings.1.step trainings.1.log | tr '\n' ' ')" \
    "done 8 log.jsonl running 7 half "
works "$cleave" top log.jsonl half cut --json
same "three logs" "$(at trainings.2.log trainings.2.step | tr '\n' ' ')" "cut 8 "
works "$cleave" top log.jsonl half
same "two logs as text" "$(grep -xE 'log.jsonl|half' out | tr '\n' ' ')" "log.jsonl half "
expect 1 "the log 'missing' cannot be opened" "$cleave" top log.jsonl missing

# without a log: every device, what is held there, and the trainings that use it; killed ones go, also where their number is another's
export CLEAVE_CACHE_DIR="$scratch/machine"
works "$cleave" top
grep -qxF "nothing of yours runs here" out || fail "something runs here: $(cat out)"
for name in one two; do
    "$cleave" train --images x.npy --labels y.npy --model mlp --device "$device" --batch 4 --epochs 100000 --log $name.jsonl --quiet >out 2>err &
    eval "$name=$!"
    tries=0
    until [ "$(cat $name.jsonl 2>/dev/null | wc -l)" -gt 3 ] || [ $tries -gt 600 ]; do sleep 0.05; tries=$((tries + 1)); done
done
running() { ls machine/running | grep -vx asked | wc -l; }
same "files of those that run" "$(running)" 2
[ "$(find machine/running -type f -perm 600 | wc -l)" = 3 ] || fail "files that others can read: $(ls -l machine/running)"
[ "$(stat -c %a machine/running)" = 700 ] || fail "the folder is open"
works "$cleave" top --json
at devices.0.name devices.0.memory_bytes >/dev/null
same "trainings" "$({ at trainings.0.process trainings.1.process | sort -n; } | tr '\n' ' ')" "$(printf '%s\n' "$one" "$two" | sort -n | tr '\n' ' ')"
same "what it is" "$(at trainings.0.model trainings.0.log | tr '\n' ' ')" "mlp $(realpath "$(if [ "$one" -lt "$two" ]; then echo one; else echo two; fi).jsonl") "
used=$(at "trainings.0.devices.$device.used_bytes")
tr -d ' \n' <out | grep -q "\"name\":\"$device\",[^{]*\"used_bytes\":$((2 * used)),[^{]*\"processes\":\[[0-9]*,[0-9]*\]" || fail "$device: $(cat out)"
works "$cleave" top --once
grep -qE "^$device +.* of .* busy .* 2 trainings" out || fail "no line of the device: $(cat out)"
grep -qE "^$one +mlp .* step .* on $device" out || fail "no line of the training: $(cat out)"
kill -KILL $one
wait $one 2>/dev/null
works "$cleave" top --json
same "one is killed" "$(at trainings.0.process)$(running)" "${two}1"
sed "s/\"started\":[0-9.]*/\"started\":1.5/" machine/running/*-$two >other && cp other machine/running/"$(ls machine/running | grep -x ".*-$two" | sed 's/-.*//')-1"
echo nonsense >machine/running/"$(ls machine/running | grep -x ".*-$two" | sed 's/-.*//')-2"
works "$cleave" top --json
same "numbers of others, and nonsense" "$(at trainings.0.process)$(running)" "${two}1"
kill -TERM $two
wait $two
same "one has ended" "$(running)" 0
works train --epochs 1 --quiet --no-cache
same "without a cache" "$(running)" 0

# every other command that works on a device: its name, what it holds there; its file goes with it
works "$cleave" train --images x.npy --labels y.npy --model cnn --device "$device" --batch 16 --steps 1 --quiet --save w.safetensors
same "after a training" "$(running)" 0
"$helper" images 20000 many.npy && "$helper" labels 20000 labels.npy || fail "no data"
seen() { # NAME: the command after it is shown while it works, by top too
    name=$1
    shift
    "$cleave" "$@" >out.$name 2>err.$name &
    process=$!
    tries=0
    until ls machine/running/*-$process >out 2>&1 || [ $tries -gt 600 ]; do sleep 0.02; tries=$((tries + 1)); done
    works "$cleave" top --json
    same "$name in top" "$(at commands.0.command commands.0.process 2>&1 | tr '\n' ' ')" "$name $process "
    tr -d ' \n' <out | grep -q "\"name\":\"$device\",[^{]*\"processes\":\[$process\]" || fail "$name is not at $device: $(cat out)"
}
end_it() { kill -KILL $process && wait $process 2>/dev/null; }
seen eval eval --images many.npy --labels labels.npy --weights w.safetensors --batch 1 --device "$device"
same "what eval holds" "$(at "commands.0.devices.$device.used_bytes" | grep -c '^[1-9]')" 1
same "a model" "$(at commands.0.model)" cnn
works "$cleave" top --once
grep -qE "^$device +.* of .* busy .* 1 command" out || fail "no line of the device: $(cat out)"
grep -qE "^$process +eval cnn .* on $device" out || fail "no line of eval: $(cat out)"
end_it
seen run run --input many.npy --weights w.safetensors --batch 1 --device "$device" --output logits.npy
end_it
works "$cleave" eval --images x.npy --labels y.npy --weights w.safetensors --device "$device"
same "eval has ended" "$(running)" 1 # of the run that was killed
for name in check bench; do
    seen $name $name --device "$device"
    end_it
done
works "$cleave" top --json
same "killed ones" "$(running)" 0
works "$cleave" devices
same "who looks alone" "$(running)" 0
unset CLEAVE_CACHE_DIR

# resumed after a kill that left half a line: it goes
train --epochs 1 --checkpoint c --quiet --log parts 2>/dev/null
printf '{"step":5,"st' >>parts
train --epochs 2 --resume c --quiet --log parts 2>/dev/null || fail "cannot go on with a log that was cut"
works "$cleave" top parts --json
same "resumed" "$(at state step damaged_lines | tr '\n' ' ')" "done 8 0 "

# interrupted, killed, failed: top says which; a log that is full stops the training, with its checkpoint
"$cleave" train --images x.npy --labels y.npy --model mlp --device "$device" --batch 4 --epochs 100000 --log run --quiet >out 2>err &
process=$!
tries=0
until [ "$(cat run 2>/dev/null | wc -l)" -gt 3 ] || [ $tries -gt 600 ]; do sleep 0.05; tries=$((tries + 1)); done
works "$cleave" top run --json
same "while it runs" "$(at state process | tr '\n' ' ')" "running $process "
mv run old && grep -v nothing old >run # replaced while it is written: the old one goes on
works "$cleave" top run --once
kill -KILL $process
wait $process 2>/dev/null
touch -d '1 minute ago' run
works "$cleave" top run --json
same "killed" "$(at state sentence | tr '\n' '|')" "gone|process $process ended without saying why|"
"$cleave" train --images x.npy --labels y.npy --model mlp --device "$device" --batch 16 --epochs 20 --lr 1e30 --log failed --quiet >out 2>err &&
    fail "a loss that is no number, and it trains"
works "$cleave" top failed --json
same "failed" "$(at state)" failed
at sentence | grep -q 'not finite' || fail "no word on why: $(at sentence)"
(ulimit -f 400; trap '' XFSZ; exec "$cleave" train --images x.npy --labels y.npy --model linear --device host --batch 4 \
    --epochs 100 --quiet --log full --checkpoint kept) >out 2>err
same "a full disk" $? 1
same "sentences" "$(grep -c '^cleave: ' err)" 1
grep -qF "the log 'full' could not be written: File too large" err || fail "a full disk: $(cat err)"
works "$cleave" train --images x.npy --labels y.npy --model linear --device host --batch 4 --epochs 100 --resume kept --json
same "steps after a full disk" "$(at steps)" 1600
touch full # the training may have taken a minute
works "$cleave" top full --json
same "lines of a full disk" "$(at state)" running
finish
