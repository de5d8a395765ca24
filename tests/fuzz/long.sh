#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# By hand: lets each fuzz driver run so many inputs, nearly all without sanitizers (preset fuzz-fast), every hundredth of them, and at
# the end all that was kept, with them (preset fuzz). Goes on where it was stopped. What it found lies in OUT/NAME/found.
# usage: long.sh [RUNS [NAME...]]     default: 100000000 inputs, every driver; trainings (resume) a hundredth. 0: the table only
# OUT=FOLDER (outside the tree, default ~/.local/state/cleave-fuzz), JOBS=N at a time (2)
set -eu
cd "$(dirname "$0")/../.."
fuzz_all() { # of one driver: RUNS NAME
    name=$2 runs=$1 at=$OUT/$2 length=512
    case $name in
    csv | options | tensors) length=256 ;;
    graph) length=2048 ;;
    log | onnx | results | safetensors) length=1024 ;;
    checkpoint) length=64 ;;
    resume) length=64 runs=$((runs / 100)) ;;
    esac
    mkdir -p "$at/corpus" "$at/found"
    piece=$((runs / 100 > 10000 ? runs / 100 : 10000))
    inputs=0 seconds=0 pieces=0
    [ ! -f "$at/state" ] || read -r inputs seconds pieces <"$at/state"
    while [ "$inputs" -lt "$runs" ]; do
        left=$((runs - inputs))
        run fuzz-fast $((piece < left ? piece : left)) "$length" || return 1
        [ $((pieces % 10)) -ne 0 ] || run fuzz $((piece / 10)) 4096 || return 1
    done
    [ "$inputs" = "$(cat "$at/replayed" 2>/dev/null)" ] || { run fuzz 0 4096 && echo "$inputs" >"$at/replayed"; }
}
run() { # PRESET RUNS LENGTH: a piece, whose inputs and seconds go to the state
    begin=$(date +%s) code=0
    "build/$1/tests/fuzz/fuzz_$name" -runs="$2" -seed=$((pieces + 1)) -max_len="$3" -len_control=0 -reload=0 -use_value_profile=0 -entropic=0 \
        -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$at/found/" "$at/corpus" "tests/fuzz/corpus/$name" \
        >"$at/log" 2>&1 || code=$?
    n=$(sed -n 's/^stat::number_of_executed_units: *//p' "$at/log")
    case $code in 0 | 70 | 71 | 77 | 1) ;; *) n= ;; esac # stopped, or not started
    if [ -z "$n" ]; then
        tail -n 5 "$at/log" >&2
        return 1
    fi
    inputs=$((inputs + n)) seconds=$((seconds + $(date +%s) - begin)) pieces=$((pieces + 1))
    echo "$inputs $seconds $pieces" >"$at/state.new"
    mv "$at/state.new" "$at/state"
    [ $code -eq 0 ] || { # kept beside its input
        cp "$at/log" "$at/found-$pieces.log"
        echo "$name: a fault in $1: see $at/found and $at/found-$pieces.log" >&2
    }
    [ "$(find "$at/found" -type f | wc -l)" -lt 20 ] || {
        echo "$name: 20 faults are enough to begin with" >&2
        return 1
    }
}
if [ "${1:-}" = --one ]; then
    fuzz_all "$2" "$3"
    exit
fi
export OUT="${OUT:-$HOME/.local/state/cleave-fuzz}" ASAN_OPTIONS="quarantine_size_mb=16:malloc_context_size=10"
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)
runs=${1:-100000000} code=0
[ $# -eq 0 ] || shift
tools/build.sh fuzz-fast
tools/build.sh fuzz
# shellcheck disable=SC2046 # names are words
[ $# -gt 0 ] || set -- $(cd build/fuzz-fast/tests/fuzz && find . -name 'fuzz_*' -type f -perm -u+x | sed 's|./fuzz_||' | sort)
[ "$runs" -eq 0 ] || printf '%s\n' "$@" | xargs -P "${JOBS:-2}" -n 1 sh "$0" --one "$runs" || code=1
printf '%-12s %12s %9s %9s\n' name inputs seconds findings | tee "$OUT/table"
for name in "$@"; do
    [ -f "$OUT/$name/state" ] || continue
    read -r inputs seconds pieces <"$OUT/$name/state"
    found=$(find "$OUT/$name/found" -type f | wc -l)
    [ "$found" -eq 0 ] || code=1
    printf '%-12s %12d %9d %9d\n' "$name" "$inputs" "$seconds" "$found" | tee -a "$OUT/table"
done
exit $code
