#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kill -9 of a random rank at a random moment: the others end within ten seconds, one of them with a sentence, the checkpoint is whole,
# and what fewer ranks make of it has the losses of one process that goes on from the same file. Three times; by hand
#   tests/e2e/kills.sh build/dev/cleave build/dev/tests/e2e/e2e_helper 100
# with CLV_TEST_MPIRUN=mpirun; it prints the longest time from the kill to the end. SEED=N repeats a row.
. "$(dirname "$0")/common.sh"
[ -n "${CLV_TEST_MPIRUN:-}" ] || left_out "there is no MPI here"
case $($CLV_TEST_MPIRUN --version) in
*"Open MPI"* | *OpenRTE*) ;;
*) left_out "this MPI ends all ranks when one dies" ;;
esac
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun="$CLV_TEST_MPIRUN --oversubscribe --enable-recovery"
times=${3:-3} seed=${SEED:-$(date +%s)} ranks=3 longest=0
echo "seed $seed"
"$helper" images 96 x.npy && "$helper" labels 96 y.npy || fail "no data"
data="--images x.npy --labels y.npy --batch 32 --quiet --model mlp --device host --ranks"
random() { # N: 0 to N - 1, the next of the row
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    echo $((seed / 65536 % $1))
}
now() { date +%s%3N; }
losses() { sed -n 's/^{"step":\([0-9]*\),.*"loss":\([0-9.e-]*\),.*/\1 \2/p' "$1"; }

round=0
while [ "$round" -lt "$times" ] && [ "$failures" = 0 ]; do
    round=$((round + 1))
    rm -f k k.prev a b
    # shellcheck disable=SC2086
    $mpirun -n $ranks "$cleave" train $data --epochs 100000 --checkpoint k --checkpoint-every 20 >out 2>err &
    launcher=$! i=0
    while [ ! -e k ] && [ $i -lt 600 ]; do sleep 0.05 && i=$((i + 1)); done
    [ -e k ] || { fail "no checkpoint after 30 s: $(cat err)"; kill "$launcher"; break; }
    # no row in a subshell: seed is to go on
    random 1000 >number && read -r moment <number
    random 1 >/dev/null && random $ranks >number && read -r which <number
    sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
    victim=$(ps -o pid= --ppid "$launcher" | sed -n "$((which + 1))p")
    kill -9 "$victim" || { fail "no rank to kill: $(cat err)"; break; }
    began=$(now)
    wait "$launcher"
    took=$(($(now) - began))
    [ $took -le $longest ] || longest=$took
    [ $took -le 10000 ] || fail "round $round: the others took $took ms to end"
    [ "$(grep -c '^cleave: ' err)" = 1 ] && grep -q "rank [0-9] of $ranks .*after step [0-9]*; go on, .*--resume k" err ||
        fail "round $round: not one sentence: $(cat err)"
    # with one rank fewer, and by itself, from the same file
    # shellcheck disable=SC2086
    "$cleave" train ${data% --ranks} --steps 1 --resume k 2>asked
    steps=$(sed -n 's/.* stands after step \([0-9]*\),.*/\1/p' asked)
    [ -n "$steps" ] || { fail "round $round: no whole checkpoint: $(cat asked)"; break; }
    cp k fresh
    # shellcheck disable=SC2086
    works $CLV_TEST_MPIRUN --oversubscribe -n $((ranks - 1)) "$cleave" train $data --steps $((steps + 6)) --resume k --log a
    # shellcheck disable=SC2086
    works "$cleave" train ${data% --ranks} --steps $((steps + 6)) --resume fresh --log b
    losses a >la
    losses b >lb
    [ -s la ] && paste -d' ' la lb | awk '$1 != $3 || ($2 - $4) ^ 2 > 1e-10 { exit 1 }' || fail "round $round: other losses"
    echo "round $round: rank $which $moment ms after the first checkpoint, ended after $took ms; step $steps"
done
echo "longest $longest ms"

# --on-rank-failure continue: the others go on as two ranks, also without the first, to the end
for which in 1 3; do
    [ "$failures" = 0 ] || break
    rm -f k k.prev a a.* w
    # shellcheck disable=SC2086
    $mpirun -n $ranks "$cleave" train $data --steps 1000 --checkpoint k --checkpoint-every 20 --on-rank-failure continue --save w \
        --log a >out 2>err &
    launcher=$! i=0
    while [ ! -e k ] && [ $i -lt 600 ]; do sleep 0.05 && i=$((i + 1)); done
    sleep 0.3 # until all know of the first checkpoint, not rank 0 alone
    kill -9 "$(ps -o pid= --ppid "$launcher" | sed -n ${which}p)" || fail "no rank to kill: $(cat err)"
    wait "$launcher"
    grep -q "rank $((which - 1)) of $ranks .*after step [0-9]*: going on with 2 ranks from k" err || fail "no going on: $(cat err)"
    losses a | grep -q "^1000 " || fail "no last step: $(cat err)"
    [ -s w ] && grep -q "weights in w" out || fail "no weights: $(cat out err)"
done

# one that is gone before all have joined: the others give up after a minute (by hand: it takes that long)
printf '#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" = 1 ] && kill -9 $$\nexec "$@"\n' >gone && chmod +x gone
if [ "$times" -gt 3 ]; then
    # shellcheck disable=SC2086
    timeout 90 $mpirun -n $ranks ./gone "$cleave" train $data --epochs 1 >out 2>err
    same "those that gave up" "$(grep -c '^cleave: .*not all processes came within 60 seconds' err)" $((ranks - 1))
fi
finish
