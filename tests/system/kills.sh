#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trainings are killed (SIGKILL) at any moment and resumed from their last checkpoint until they are done, until so many kills
# have been made. Each training ends with the same bits as one that was left alone, its log has each step once, in order, and no
# file of ours is left behind.
# usage: kills.sh CLEAVE HELPER KILLS [OPTIONS OF A TRAINING...]        default: --device host --model linear; SEED=N repeats moments
. "$(dirname "$0")/common.sh"
wanted=$tool # the third argument is a number here; moments are drawn, so there are others each time
[ $# -gt 0 ] || set -- --device host --model linear
seed=${SEED:-$$}
echo "SEED=$seed: $*"
train="train --images x.npy --labels y.npy --batch 16 --quiet --epochs 30 --optimizer adam --seed 3 $*"

milliseconds() { echo $(($(date +%s%N) / 1000000)); }
# shellcheck disable=SC2086  # words on purpose
"$cleave" $train --save alone.w --log alone.l >/dev/null 2>err || { cat err; exit 1; }
begin=$(milliseconds)
# shellcheck disable=SC2086
"$cleave" $train --save alone.w --log alone.l --checkpoint alone.c --checkpoint-every 7 >/dev/null 2>err || { cat err; exit 1; }
whole_ms=$(($(milliseconds) - begin))
"$helper" lines loss <alone.l >alone.losses

kills=0 trainings=0 turn=0 resumed=0
while [ $kills -lt "$wanted" ]; do
    rm -f w c c.prev l
    while :; do
        turn=$((turn + 1))
        moment=$(awk -v s=$((seed + turn)) -v most=$whole_ms 'BEGIN { srand(s); printf "%.3f", rand() * most / 1000 }')
        resume=
        [ ! -e c ] || resume="--resume c" resumed=$((resumed + 1))
        [ -e c ] || rm -f l # nothing to go on from: the log starts again, too
        # shellcheck disable=SC2086
        "$cleave" $train $resume --checkpoint c --checkpoint-every 7 --log l --save w >out 2>err &
        process=$!
        (sleep "$moment" && kill -KILL $process) 2>/dev/null &
        killer=$!
        wait $process 2>/dev/null
        code=$?
        kill $killer 2>/dev/null
        wait $killer 2>/dev/null
        case $code in
        137) kills=$((kills + 1)) ;;
        0) break ;;
        *)
            fail "exit $code after $kills kills: $(head -c 300 err)"
            break
            ;;
        esac
    done
    trainings=$((trainings + 1))
    cmp -s w alone.w || fail "after $kills kills: other bits"
    "$helper" lines loss <l | cmp -s - alone.losses || fail "after $kills kills: the log's losses are not those of one training"
    for file in *.tmp; do [ ! -e "$file" ] || fail "'$file' was left behind"; done
done
echo "$kills kills, $trainings trainings with $resumed resumes, $failures failures"
[ $failures = 0 ]
