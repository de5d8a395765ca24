# SPDX-License-Identifier: Apache-2.0
# What the scripts of this folder share. Sourced, with arguments: the command line, the end-to-end helper, the program or
# library that makes the faults.
set -u
export LC_ALL=C CLEAVE_COMPILE_HELPER=
[ -n "${CLV_TEST_DRIVERS:-}" ] || export OCL_ICD_VENDORS=/nonexistent # the host device alone, and no driver's own files
cleave=$1
helper=$2
tool=$3
shift 3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export CLEAVE_CACHE_DIR=$scratch/cache HOME=$scratch
failures=0 tried=0 refused=0 done_right=0
# With a number in CLEAVE_TURN (.ci/run draws it by the commit) every second fault: the odd ones or the others.
every=$((${CLEAVE_TURN:+1} + 1)) begin_at=$((${CLEAVE_TURN:-0} % 2))

fail() {
    printf 'FAILED %s\n' "$*"
    failures=$((failures + 1))
    [ "$failures" -lt 20 ] || finish
}

finish() {
    printf '%s faults: %s told in a sentence, %s outlived with the right result, %s failures\n' \
        "$tried" "$refused" "$done_right" "$failures"
    [ "$failures" = 0 ] && [ "$tried" -gt 0 ]
    exit
}

golden=$(cd "$(dirname "$0")/../golden/io" && pwd) || exit 1
cache_entry=$(dirname "$tool")/system_cache_entry
"$helper" images 64 x.npy && "$helper" labels 64 y.npy && mkdir idx && "$helper" idx idx 4 0=1 || fail "no data"
train="train --images x.npy --labels y.npy --model linear --device host --batch 16"
# shellcheck disable=SC2086  # words on purpose
{
    "$cleave" $train --epochs 1 --seed 2 --save old.w --checkpoint old.c --log old.l --quiet >/dev/null 2>&1
    "$cleave" $train --epochs 2 --save new.w --checkpoint new.c --log new.l --quiet >/dev/null 2>&1
    "$cleave" run --model linear --weights new.w --input x.npy --output new.o --device host --quiet >/dev/null 2>&1
} || fail "the trainings without faults failed"
echo '{"device": "d", "results": [{"name": "a", "op": "b", "verdict": "failed", "sentence": "c"}]}' >checked.json
"$cleave" report -o new.html --results checked.json --quiet >/dev/null 2>&1 || fail "the page without faults failed"
mkdir older && cp old.w older/w && cp old.c older/c && cp old.l older/l && cp old.w older/o && cp old.w older/p.html && : >older/t.json
"$helper" lines loss <new.l >new.losses
printf 'cleave-tuning 1\nend\n' >tuned.json

# begin: the files as a user has them before the command.
begin() {
    rm -f mark w w.* c c.* l o p.html
    if [ "$kind" = cache ]; then rm -rf kept && "$cache_entry" kept write old 2>/dev/null; fi
    cp older/* .
}

# whole FILE OLD NEW WHAT : the file is the older one or the newer one, byte by byte.
whole() { cmp -s "$1" "$2" || cmp -s "$1" "$3" || fail "$4: '$1' is neither the older file nor the newer one"; }

# The checkpoint after a killed or failed training: the older, the newer, or that of an epoch, from which it goes on to the end.
checkpoint_good() {
    [ -e c ] || cp c.prev c || fail "$1: no checkpoint is left"
    cmp -s c old.c || cmp -s c new.c && return
    # shellcheck disable=SC2086  # words on purpose
    "$cleave" $train --epochs 2 --resume c --save again.w --quiet >again.out 2>again.err || fail "$1: $(cat again.err)"
    cmp -s again.w new.w || fail "$1: resumed to other bits"
    cp new.c c
}

# files_good WHAT : what was on disk before is there, or what was to be written is.
files_good() {
    whole w old.w new.w "$1"
    checkpoint_good "$1"
    [ "$kind" != page ] || whole p.html old.w new.html "$1"
    [ "$kind" != cache ] || entries_good "$1"
    [ "$kind" != tune ] || [ ! -s t.json ] || grep -q '^end$' t.json || fail "$1: half of a tuning file"
}

# The cache after a write that failed: the older entry is there, the newer one is whole or not there, and can be written now.
entries_good() {
    [ "$("$cache_entry" kept read old)" = whole ] || fail "$1: the older entry of the cache is lost"
    "$cache_entry" kept read new >/dev/null || fail "$1: half of an entry is taken for a whole one"
    "$cache_entry" kept write new
    [ "$("$cache_entry" kept read new)" = whole ] || fail "$1: the entry cannot be written any more"
}

# judge WHAT CODE : done right, or one sentence; and what was on disk is there.
judge() {
    tried=$((tried + 1))
    case $2 in
    0) done_right=$((done_right + 1)) ;;
    1)
        refused=$((refused + 1))
        sentences=$(grep -c '^cleave: ' err)
        [ "$sentences" = 1 ] || fail "$1: $sentences sentences: $(head -c 300 err)"
        ;;
    3) refused=$((refused + 1)) ;; # of check alone: it could not run, and finds nothing wrong
    *) fail "$1: exit $2: $(head -c 300 err)" ;;
    esac
    if [ "$kind" = check ]; then
        [ "$2" != 1 ] || fail "$1: right ops are called wrong: $(grep -m 3 FAILED out; head -c 300 err)"
    else
        [ "$2" != 3 ] || fail "$1: exit 3 is of check: $(head -c 300 err)"
    fi
    files_good "$1"
    [ "$2" != 0 ] || [ "$kind" != train ] || cmp -s w new.w || fail "$1: exit 0, but the weights are not saved"
    [ "$2" != 0 ] || [ "$kind" != train ] || "$helper" lines loss <l | cmp -s - new.losses ||
        grep -q "log" err || fail "$1: exit 0, no word of it, and the log is not that of the training"
    [ "$2" != 0 ] || [ "$kind" != run ] || cmp -s o new.o || fail "$1: exit 0, but the output is wrong"
}

# program KIND : what is run; variables KIND : in which environment.
program() { if [ "$1" = cache ]; then echo "$cache_entry"; else echo "$cleave"; fi; }
variables() {
    case $1 in
    idx) echo "CLEAVE_DATA_DIR=$scratch/idx" ;;
    tuning) echo "CLEAVE_TUNING=$scratch/tuned.json" ;;
    esac
}

# commands KIND : the arguments of the command of that kind.
commands() {
    case $1 in
    train) echo "$train --epochs 2 --save w --checkpoint c --log l --quiet" ;;
    run) echo "run --model linear --weights new.w --input x.npy --output o --device host --quiet" ;;
    eval) echo "eval --images x.npy --labels y.npy --model linear --weights new.w --device host --trace t --quiet" ;;
    resume) echo "$train --epochs 2 --resume new.c --save w --device host --quiet" ;;
    plan) echo "plan mlp --train --device host --json" ;;
    check) echo "check --case relu/*/scalar --device host --quiet" ;;
    devices) echo "devices --json" ;;
    env) echo "env --json" ;;
    report) echo "report -o p.html --log new.l --device host --quiet" ;;
    page) echo "report -o p.html --results checked.json --quiet" ;;
    log) echo "top --once new.l" ;;
    npz) echo "run --model linear --weights $golden/arrays.npz --input x.npy --output o --device host --quiet" ;;
    pth) echo "run --model linear --weights $golden/torch.pth --input x.npy --output o --device host --quiet" ;;
    idx) echo "eval fashion-mnist --model linear --weights new.w --device host --quiet" ;;
    tuning) echo "plan linear --device host --json" ;;
    cache) echo "kept write new" ;;
    tune) echo "tune --size 8x8x8 --seconds 1 --device cpu --output t.json --quiet" ;; # CLV_TEST_DRIVERS=1
    esac
}
