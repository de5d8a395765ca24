#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The same work on an unlike driver: every op against its reference, then 20 training steps of the CNN whose losses must be
# those of the host device's references (within 1e-3, relative).
#
# usage: run.sh [--list] CLEAVE DRIVER...      --list: say what would be checked, run nothing
# drivers: pocl lanes nvidia embedded basic work-group-1 memory-1GiB rusticl host oclgrind null intel
#
# Intel's runtime is brought by fetch.sh; where it cannot be had, it is left out with a note.
#
# With CLEAVE_TURN, which .ci/run makes of the commit, each check is of an eighth to a 32nd of the ops, and each draws its own (tests/turns.sh).
# Beside them stand the ops in CLEAVE_TOUCHED, a line for each touched file: whole, as far as a check has room for their cases.
# Without CLEAVE_TURN everything is run.
#
# The losses of the host are computed once and kept in $CLEAVE_HOST_CURVE if that is set. Two drivers at a time: each keeps
# about one core busy, with compiling kernels most of the time.
set -eu
list=
[ "${1:-}" != --list ] || { list=1 && shift; }
[ $# -gt 1 ] && { [ -n "$list" ] || { [ -x "$1" ] && [ -f "$1" ]; }; } || {
    echo "usage: run.sh [--list] CLEAVE DRIVER...; CLEAVE: build/dev/cleave, which has to be built" >&2
    exit 2
}
cleave=$1
here=$(cd "$(dirname "$0")" && pwd)
shift
for driver; do
    case $driver in
    pocl | lanes | nvidia | embedded | basic | work-group-1 | memory-1GiB | rusticl | host | oclgrind | null | intel) ;;
    *) echo "run.sh: '$driver' is none of the drivers" >&2 && exit 2 ;;
    esac
done
scratch=$(mktemp -d)
roomy=
room=64 # for cases of touched ops in a check: half as many as it draws, or as many
trap 'rm -rf "$scratch"' EXIT
curve=${CLEAVE_HOST_CURVE:-$scratch/host.curve}
unset OCL_ICD_VENDORS RUSTICL_ENABLE POCL_DEVICES POCL_MAX_WORK_GROUP_SIZE POCL_MEMORY_LIMIT 2>/dev/null || true
failed=0

# within DRIVER COMMAND... : run a command as that driver wants it.
within() {
    case $1 in
    pocl) shift && "$@" ;;
    lanes) shift && CLEAVE_EXECUTION=cpu=lanes "$@" ;; # the kernels and groups of GPUs
    nvidia) # memory by pointers, as sub-buffers do not work there; events are polled; and `lanes`
        shift && OPENCL_LAYERS="$(dirname "$cleave")/tests/device/libclv_says_layer.so" CLV_TEST_SAYS=nvidia "$@" ;;
    embedded) # 32 bits, rounding toward zero, groups of 12, 4 KiB of local memory, 4 of 16 MiB in a piece
        shift && OPENCL_LAYERS="$(dirname "$cleave")/tests/device/libclv_says_layer.so" CLV_TEST_SAYS="embedded toward-zero ${roomy:-tiny}" "$@" ;;
    basic) shift && POCL_DEVICES=basic "$@" ;;
    work-group-1) shift && POCL_MAX_WORK_GROUP_SIZE=1 "$@" ;;
    memory-1GiB) shift && POCL_MEMORY_LIMIT=1 "$@" ;;
    rusticl) shift && RUSTICL_ENABLE=llvmpipe "$@" ;;
    # Not --uninitialized: Oclgrind 21.10 dies of it on any thread but the first, and on LLVM's freeze. The check itself puts
    # NaN wherever nothing was written.
    oclgrind) shift && oclgrind --data-races --check-api --log "$work/oclgrind.log" "$@" ;;
    intel) shift && OCL_ICD_VENDORS="$intel/vendors" LD_LIBRARY_PATH="$intel/lib" "$@" ;;
    host | null) shift && "$@" ;;
    esac
}
device_of() {
    case $1 in
    rusticl) echo llvmpipe ;;
    host) echo host ;;
    oclgrind) echo oclgrind ;;
    nvidia) echo gpu ;;
    *) echo cpu ;;
    esac
}

# losses DRIVER MODEL OPTION... : of 20 steps, one a line. Dropout draws the same numbers on every device.
losses() {
    driver_of_losses=$1 model=$2
    shift 2
    rm -f "$work/log.jsonl"
    within "$driver_of_losses" "$cleave" train fashion-mnist --model "$model" --device "$(device_of "$driver_of_losses")" "$@" --epochs 1 \
        --seed 1 --log "$work/log.jsonl" --json >"$work/train.json" 2>"$work/train.err" ||
        { cat "$work/train.err"; return 1; }
    sed -n 's/.*"loss": *\([^,} ]*\).*/\1/p' "$work/log.jsonl" | head -n 20
}
train() { # DRIVER
    roomy= # with Adam's moments the CNN is more than the tiny device has
    [ "$1" != embedded ] || roomy=1
    losses "$1" cnn --batch 12 --limit 240
    roomy=
}
train_mlp() { losses "$1" mlp --batch 12 --limit 240; }
# The tiny device itself: without moments, in batches of four, and weights that are larger than an allocation may be.
train_tiny() { losses "$1" cnn --optimizer sgd --lr 0.05 --batch 4 --limit 80; }

# near CURVE CURVE : are both 20 losses, within 1e-3?
near() {
    paste "$1" "$2" | awk '
        { d = $1 - $2; if (d < 0) d = -d; r = d / ($1 < 0 ? -$1 : $1); if (r > worst) worst = r
          if (!($2 == $2 + 0) || NF < 2) bad = 1 }
        END { printf "losses of %d steps within %.1e; ", NR, worst
              exit !(NR == 20 && worst <= 1e-3 && !bad) }' || { echo "(they should be 20, within 1e-3)"; return 1; }
}

# check_cases DRIVER OPTION... : how many cases there were, passed and failed; fails with what is wrong if one did, or could not run.
check_cases() {
    driver_of_check=$1
    shift
    [ -z "$list" ] || { echo "$driver_of_check: check $*"; return 0; }
    within "$driver_of_check" "$cleave" check --device "$(device_of "$driver_of_check")" "$@" --junit "$work/check.xml" \
        >"$work/check.out" 2>"$work/check.err" || {
        grep -E '^(FAILED|COULD NOT RUN|AVOIDED)' "$work/check.out" | head -n 20
        tail -n 20 "$work/check.err"
        return 1
    }
    tail -n 1 "$work/check.out" | sed 's/ on .*:/:/; s/;.*/; /' | tr -d '\n'
}

# Whole on the host's references and on PoCL. Types of two bytes differ by how they are stored and by nothing else: elsewhere
# a few samples of each op are run in halves. Gradients are held against differences on the host alone:
# both are computed there, whatever the device. With CLEAVE_TURN each check draws a 16th of the ops, a 32nd where cases take long, the host
# an eighth. PoCL, which has all samples, draws of these a 32nd in f32, and of the quick ones in halves a 16th.
check() {
    case $1 in
    host) drawn host 8 ;;
    # A third of Oclgrind's time, and no other kernels: 17 groups of one channel by tiles (three groups are a sample of their own, and
    # `lanes` has these), and plans of convolutions, whose three ops are cases by themselves.
    oclgrind) on_device oclgrind 32 --quick --exclude 'conv2d*/gemm*/depthwise' --exclude 'conv2d*/plan/*' ;;
    # the quick ones of `small` have sums too short for all its slices
    lanes) on_device lanes 16 --quick && check_cases lanes --case '*/small/*' --dtype f32 --exclude '*/differences/*' ;;
    nvidia) on_device nvidia 32 --quick ;;
    embedded | basic | memory-1GiB | intel) on_device "$1" 16 --quick ;;
    work-group-1) on_device work-group-1 16 --dtype f32 && on_device work-group-1 16 --quick --dtype f16 ;;
    rusticl) on_device rusticl 32 --dtype f32 && on_device rusticl 32 --quick --dtype f16 ;;
    pocl)
        room=192 # no other driver is so much like a user's
        on_device pocl 32 --dtype f32 || return
        room=64
        on_device pocl "${CLEAVE_TURN:+16}" ${CLEAVE_TURN:+--quick} --dtype f16 && on_device pocl "${CLEAVE_TURN:+16}" ${CLEAVE_TURN:+--quick} --dtype bf16
        ;;
    null) ;;
    esac
}
on_device() { drawn "$@" --exclude '*/differences/*'; }
# drawn DRIVER N OPTION... : of what the options say one of N parts, which have an op whole each, and the touched ops; without turns all.
drawn() {
    driver_of_check=$1 shards=$2
    shift 2
    if [ -z "${CLEAVE_TURN:-}" ]; then check_cases "$driver_of_check" "$@"; return; fi
    check_cases "$driver_of_check" --shard "$("$here/../turns.sh" shard "$driver_of_check${*:+ $*}" "$shards")" "$@" || return
    [ -z "${CLEAVE_TOUCHED:-}" ] || touched "$driver_of_check" "$@"
}
# touched DRIVER OPTION... : the touched ops, the newest first, while there is room for the cases of a file's ops. Where the newest file
# alone has more, one of so many parts as have room. So a check with all of convolution takes no longer than one with all of softmax.
touched() {
    driver_of_check=$1
    shift
    if [ -n "$list" ]; then
        echo "$driver_of_check: check $* $(as_options "$CLEAVE_TOUCHED" | tr '\n' ' '): $room cases of these"
        return
    fi
    within "$driver_of_check" "$cleave" check --list --device "$(device_of "$driver_of_check")" "$@" >"$work/cases" 2>"$work/check.err" || { cat "$work/check.err"; return 1; }
    echo "$CLEAVE_TOUCHED" | awk -v room="$room" '
        FILENAME != "-" { sub(/\/.*/, ""); cases[$0]++; next }
        { n = 0; known = ""; for (i = 1; i <= NF; i++) if ($i in cases) { n += cases[$i]; known = known " " $i } }
        n == 0 { next }
        n <= room - taken { whole = whole known; taken += n; next }
        !taken { part = known; parts = int((n + room - 1) / room); taken = room; next }
        { later = later known }
        END { print whole; print part; print parts; print later }' "$work/cases" - >"$work/touched"
    whole=$(sed -n 1p "$work/touched") part=$(sed -n 2p "$work/touched") parts=$(sed -n 3p "$work/touched") later=$(sed -n 4p "$work/touched")
    # shellcheck disable=SC2046  # words on purpose
    if [ -n "$whole" ]; then
        printf 'touched:%s: ' "$whole"
        check_cases "$driver_of_check" "$@" $(as_options "$whole") || return
    fi
    # shellcheck disable=SC2046  # words on purpose
    if [ -n "$part" ]; then
        part_of=$("$here/../turns.sh" shard "$driver_of_check touched $*" "$parts")
        printf 'touched, part %s:%s: ' "$part_of" "$part"
        check_cases "$driver_of_check" --shard "$part_of" "$@" $(as_options "$part") || return
    fi
    [ -z "$later" ] || printf 'left to be drawn:%s; ' "$later"
}
as_options() { for op in $1; do echo "--op $op"; done; }

# driver DRIVER : all of it, in a folder and with caches of its own; prints one line, fails if anything did.
driver() {
    work=$scratch/$1
    mkdir -p "$work"
    export CLEAVE_CACHE_DIR="$work/cache"
    start=$(date +%s)
    failed=0
    printf '%s: ' "$1"
    if [ "$1" = intel ]; then
        intel=$("$here/fetch.sh" intel 2>"$work/fetch.err") || { sed 's/^intel: //' "$work/fetch.err"; return 0; }
    fi
    case $1 in
    null)
        # Takes nothing, computes nothing: the dry run of a device that is not there.
        "$cleave" plan cnn --batch 64 --train --device null --json >"$work/plan.json" &&
            grep -q predicted_peak_bytes "$work/plan.json" || { echo "no plan"; return 1; }
        ;;
    oclgrind)
        check oclgrind || failed=1
        if [ -s "$work/oclgrind.log" ]; then
            head -n 40 "$work/oclgrind.log"
            failed=1
        fi
        ;;
    *)
        check "$1" || failed=1
        # rusticl compiles the CNN for minutes: with seven commits of eight it trains the MLP
        if [ "$1" = rusticl ] && [ "$("$here/../turns.sh" shard "rusticl cnn" 8 | sed 's,1/1,1/8,')" != 1/8 ]; then
            { train_mlp host >"$work/host.mlp" && train_mlp "$1" >"$work/curve" && near "$work/host.mlp" "$work/curve"; } || failed=1
        else
            { train "$1" >"$work/curve" && await_curve && near "$curve" "$work/curve"; } || failed=1
        fi
        if [ "$1" = embedded ]; then
            { train_tiny host >"$work/host.tiny" && train_tiny "$1" >"$work/tiny" && near "$work/host.tiny" "$work/tiny"; } || failed=1
        fi
        ;;
    esac
    times >"$work/times"
    echo "$(($(date +%s) - start)) s, $(awk 'NR == 2 { split($1, u, /[ms]/); split($2, s, /[ms]/); printf "%d", 60 * (u[1] + s[1]) + u[2] + s[2] }' "$work/times") s of processors"
    return $failed
}

# The host's losses, for all who compare with them. Of several drivers none waits for them before its own are there.
await_curve() {
    until [ -s "$curve" ] || [ -e "$curve.failed" ]; do sleep 1; done
    [ -s "$curve" ]
}
host_curve() {
    case " $* " in " null " | " oclgrind " | " oclgrind null " | " null oclgrind ") return 0 ;; esac # nothing is trained there
    [ -s "$curve" ] && return 0
    work=$scratch
    train host >"$scratch/curve" && mv "$scratch/curve" "$curve"
}

if [ -n "$list" ]; then
    for driver; do check "$driver"; done
elif [ $# -gt 1 ]; then
    export CLEAVE_HOST_CURVE="$curve" CLEAVE_HOST_CURVE_COMES=1
    rm -f "$curve.failed"
    { host_curve "$@" || touch "$curve.failed"; } &
    printf '%s\n' "$@" | xargs -P 2 -n 1 sh "$0" "$cleave" || failed=1
    wait
    exit $failed
else
    [ -n "${CLEAVE_HOST_CURVE_COMES:-}" ] || host_curve "$1"
    driver "$1" >"$scratch/said" && failed=0 || failed=1
    cat "$scratch/said"
    exit $failed
fi
