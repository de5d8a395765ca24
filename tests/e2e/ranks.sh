#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trainings over ranks by MPI: the bits of replicas in one process, bytes as the plan tells and as a profiling layer of MPI counts
# them, a checkpoint that goes on with fewer, and a rank that is killed. Without MPI: the sentence.
. "$(dirname "$0")/common.sh"
"$helper" images 96 x.npy && "$helper" labels 96 y.npy || fail "no data"
data="--images x.npy --labels y.npy --batch 32 --quiet"
# shellcheck disable=SC2086  # words on purpose
if [ -z "${CLV_TEST_MPIRUN:-}" ]; then
    CLEAVE_MPI_LIBRARY=/nowhere.so expect 1 "ranks need libcleave_mpi.so" "$cleave" train $data --model mlp --steps 1 --device host --ranks
    finish
fi
recovery=
case $($CLV_TEST_MPIRUN --version) in
*"Open MPI"* | *OpenRTE*) # more ranks than cores, by root too
    CLV_TEST_MPIRUN="$CLV_TEST_MPIRUN --oversubscribe"
    recovery=--enable-recovery
    ;;
esac
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# shellcheck disable=SC2086
ranks() { n=$1 && shift && $CLV_TEST_MPIRUN -n "$n" ${launch:-} "$cleave" train $data --ranks "$@"; }

# what all ranks find wrong is told once, what one does with its rank
once() { # CODE TEXT COMMAND...: one sentence of ours
    once_code=$1 once_text=$2 && shift 2
    "$@" >out 2>err
    same "code of $*" "$?" "$once_code"
    same "sentences of $*" "$(grep -c '^cleave: ' err)" 1
    grep -qF -- "$once_text" err || fail "no '$once_text': $(cat err)"
}
once 2 "cleave: unknown option '--bogus'" ranks 3 --bogus
once 2 "cleave: --checkpoint-every needs --checkpoint" ranks 3 --model mlp --checkpoint-every 3
once 1 "cleave: a batch of 2 samples for 3 ranks" ranks 3 --model mlp --batch 2 --device host
printf '#!/bin/sh\ncase ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} in 1) cd away ;; esac\nexec "$@"\n' >some
chmod +x some && mkdir away
launch=./some
once 1 "cleave: rank 1 of 3: " ranks 3 --model mlp --steps 1 --device host
launch=
once 1 "cannot write '/nowhere/at/all'" ranks 3 --model mlp --steps 1 --device host --save /nowhere/at/all

# the bits of replicas, where there are as many devices
if [ "$device" != host ]; then
    for how in "--model mlp --optimizer adam --precision mixed"; do
        # shellcheck disable=SC2086
        works "$cleave" train $data $how --steps 7 --replicas cpu:0,cpu:1,cpu:2,cpu:3 --shares equal --save one
        # shellcheck disable=SC2086
        works ranks 4 $how --steps 7 --save many
        cmp -s one many || fail "four ranks, other bits than four replicas: $how"
    done
fi

# a log of each, which tell whose they are
works ranks 2 --model mlp --steps 3 --device host --log log
works "$cleave" top log log.rank1 --json
same "ranks of the logs" "$(at trainings.0.rank) $(at trainings.1.rank) $(at trainings.1.ranks) $(at trainings.1.step)" "0 1 2 3"
works "$cleave" top log.rank1
grep -q "rank 1 of 2" out || fail "no rank: $(cat out)"
same "losses in both" "$(sed -n 's/.*"loss":\([^,]*\),.*/\1/p' log)" "$(sed -n 's/.*"loss":\([^,]*\),.*/\1/p' log.rank1)"
works "$cleave" report --log log -o page.html
grep -q ">ranks<.*" page.html || fail "no ranks in the report"

# bytes: as planned, and at most twice (N-1)/N of the parameters and a hundredth
rm -f count
launch="env LD_PRELOAD=$CLV_TEST_COUNTER CLV_TEST_COUNT=$PWD/count"
works ranks 4 --model cnn --steps 3 --device "$device" --checkpoint c --save four
launch=
works "$cleave" plan cnn --train --batch 32 --ranks 4 --device "$device" --optimizer adam --json
[ "$(wc -l <count)" = 4 ] || fail "not all four ranks came to their end"
while read -r rank _ exchanged _; do
    planned=$(at "ranks.$rank.sent_bytes")
    same "bytes of rank $rank" "$exchanged" "$((3 * planned))"
    [ "$planned" -le "$((2 * 3 * 4 * 1199882 / 4 * 101 / 100))" ] || fail "rank $rank sends $planned bytes a step"
done <count

# layers on devices of two ranks: the bits of one process, bytes as planned
rm -f count
launch="env LD_PRELOAD=$CLV_TEST_COUNTER CLV_TEST_COUNT=$PWD/count"
place="*=$device,fc*=1:$device"
works ranks 2 --model cnn --steps 3 --micro-batches 2 --place "$place" --save layers
launch=
# shellcheck disable=SC2086
works "$cleave" train $data --model cnn --steps 3 --micro-batches 2 --device "$device" --save one
cmp -s one layers || fail "layers on two ranks, other bits than in one process"
works "$cleave" plan cnn --train --batch 32 --ranks 2 --micro-batches 2 --place "$place" --json
while read -r rank _ exchanged _; do
    same "bytes of rank $rank, of layers" "$exchanged" "$((3 * $(at "ranks.$rank.sent_bytes")))"
done <count

# gradients as bf16: half the bytes, as planned; unequal parts of a batch, and statistics of all of it
rm -f count
launch="env LD_PRELOAD=$CLV_TEST_COUNTER CLV_TEST_COUNT=$PWD/count"
works ranks 2 --model mlp --steps 6 --device "$device" --bf16-compress
launch=
works "$cleave" plan mlp --train --batch 32 --ranks 2 --device "$device" --bf16-compress --json
while read -r rank _ exchanged _; do
    planned=$(at "ranks.$rank.sent_bytes")
    same "bytes of rank $rank, as bf16" "$exchanged" "$((6 * planned))"
    [ "$planned" -le "$((2 * 101770 / 2 * 2 * 101 / 100))" ] || fail "rank $rank sends $planned bytes a step as bf16"
done <count
works ranks 2 --model mlp --steps 3 --device "$device" --shares 0.75,0.25
works ranks 2 --model mlp --steps 3 --device "$device" --shares auto
works ranks 2 --model mlp --steps 3 --device "$device" --sync-batch-norm

# a checkpoint goes on with two, and in one process; three steps of an epoch are done
works ranks 2 --model cnn --steps 5 --device "$device" --resume c --save two
works "$cleave" train $data --model cnn --steps 5 --device "$device" --resume c --save none

# a rank is killed: the others end within ten seconds, and one says which it was
[ -n "$recovery" ] || { in_part "this MPI ends all ranks when one dies"; finish; }
# shellcheck disable=SC2086
$CLV_TEST_MPIRUN $recovery -n 3 "$cleave" train $data --model mlp --epochs 100000 --device host --checkpoint k \
    --checkpoint-every 500 --ranks >out 2>err &
launcher=$!
i=0
while [ ! -e k ] && [ $i -lt 300 ]; do sleep 0.1 && i=$((i + 1)); done
[ -e k ] || fail "no checkpoint after 30 s: $(cat err)"
victim=$(ps -o pid= --ppid "$launcher" | tail -1)
kill -9 "$victim" || fail "no rank to kill"
began=$(date +%s)
wait "$launcher"
[ "$(($(date +%s) - began))" -le 11 ] || fail "the others took $(($(date +%s) - began)) s to end"
grep -q "rank [0-2] of 3 .*after step [0-9]*; go on, with any number of ranks, with --resume k" err ||
    fail "no sentence: $(cat err)"
works "$cleave" train $data --model mlp --epochs 1 --device host --weights k
finish
