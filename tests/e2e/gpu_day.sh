#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/gpu-day.sh, with small sizes: packed into a folder, run there with no network, no compiler and none of our libraries but those
# it carries; every part leaves its files, a part that fails is said and stops no other.
. "$(dirname "$0")/common.sh"
day=$(cd "$(dirname "$0")/../../tools" && pwd)/gpu-day.sh
tools=
for tool in awk basename cat cp cut date dirname getconf uniq du env find grep head id ldd ls mkdir mktemp paste rm sed sh sort tail timeout tr uname wc ld; do # PoCL links with ld
    tools="$tools $(command -v $tool)"
done

"$day" --pack carried --cleave "$cleave" 2>err || fail "pack: $(cat err)"
ls carried/lib/libjansson.so* carried/bin/cleave carried/gpu-day.sh carried/data/train-images* >/dev/null || fail "packed without what it needs"
LD_LIBRARY_PATH=$PWD/carried/lib ldd carried/bin/cleave | grep jansson | grep -qF "$PWD/carried/lib" || fail "the carried libraries are not used"
expect_line=$("$day" --pack carried --cleave "$cleave" 2>&1) && fail "packs over a folder that is not empty"
same "a folder that is not empty" "$expect_line" "gpu-day: 'carried' is there and not empty"

mkdir few && for tool in $tools; do ln -s "$tool" few/; done
unshare=$(command -v unshare) alone=$(command -v env)
"$unshare" -rn true 2>/dev/null && alone="$unshare -rn $alone"
# day OPTION... : there, as on a machine that has little.
day() {
    $alone -u CC -u LD_LIBRARY_PATH HOME="$PWD" PATH="$PWD/few" carried/gpu-day.sh --small --device "$device" "$@" >out 2>err
}
# row PART OUTCOME : the summary says so.
row() { grep -q "^| $1 | $2" day/summary.md || fail "$1 is not '$2': $(grep "^| $1 " day/summary.md)"; }

if [ "$device" = host ]; then
    day --parts machine,curve,train day || fail "exit $?: $(cat out err)"
    for part in machine curve train; do row $part passed; done
else
    day day || fail "exit $?: $(cat out err)"
    for part in machine check gemm conv ops models profile curve train; do row $part passed; done
    row pytorch 'left out'
    row report 'left out'
    ls day/check-1.xml day/profile-mlp-f32.json day/gemm.json day/conv.json day/ops.json day/models.json day/train.jsonl >/dev/null || fail "files are missing"
    grep -q '^# cleave .* on .*'"$device" day/summary.md || fail "the summary names no device: $(head -n 1 day/summary.md)"
fi
# A part that fails: the others are still there, and the exit says it.
rm -f carried/data/train-labels*
day --parts curve,machine day && fail "a training without labels passed"
row curve 'FAILED (1)'
row machine passed

# Stopped, it leaves nothing that runs.
"$day" --device "$device" --cleave "$cleave" --parts check --jobs 2 "$PWD/stopped" >out 2>err &
stopped=$!
still_there() { grep -qs "$PWD/stopped/check" /proc/[0-9]*/cmdline; } # processes come and go: -q says 0 all the same
for _ in $(seq 600); do
    [ -s stopped/check-1.tap ] && [ -s stopped/check-2.tap ] && break
    sleep 0.1
done
kill -TERM $stopped
wait $stopped
same "exit of a day that was stopped" $? 143
for _ in $(seq 300); do
    still_there || break
    sleep 0.1
done
! still_there || fail "a day that was stopped goes on"

for parts in foo machine,foo ,; do
    "$day" --parts $parts --cleave "$cleave" none >out 2>err
    same "exit of --parts $parts" "$? $(grep -c '^gpu-day: --parts' err)" "2 1"
done
"$day" --device null:rx-580 --cleave "$cleave" none >out 2>err
same "exit of a card that is not here" $? 3
"$day" --device nothing --cleave "$cleave" none >out 2>err && fail "a device that is not there is found"
same "exit of a device that is not there" $? 3
grep -q "^gpu-day: cleave: .*'nothing'" err || fail "no reason: $(cat err)"
"$day" --sizes >out 2>err
same "exit of an unknown option" $? 2
"$day" --cleave none/cleave >out 2>err
same "exit without a command" $? 3
finish
