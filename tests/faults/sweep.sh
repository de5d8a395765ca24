#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every fault of training.c, or a part of them, in every mode, and a table of what came of them. A case that ends the process or hangs is
# counted and passed over.
#
#   tests/faults/sweep.sh BUILD_FOLDER [OPTION VALUE]...     options of training.c: --every 10 --positions 12 --kinds oneau
#
# MODES chooses modes, OUT keeps the lines of each. With the same OUT and options a sweep goes on where it was stopped: by TERM or INT it
# ends after the table (`timeout 3600 tests/faults/sweep.sh ...`). Exit 1: something came out as it must not.
set -u
program=$1/tests/faults/faults_training
shift
out=${OUT:-$(mktemp -d)}
mkdir -p "$out"
every=1 first=0
case " $* " in *" --every "*) every=$(echo " $* " | sed 's/.* --every \([0-9]*\) .*/\1/') ;; esac
case " $* " in *" --from "*) first=$(echo " $* " | sed 's/.* --from \([0-9]*\) .*/\1/') ;; esac
export CLEAVE_CACHE_DIR="$out/cache" CLEAVE_TUNING=none CLEAVE_COMPILE_HELPER= CLEAVE_VISIBLE_DEVICES= CLEAVE_PARTITION=
stopped= child=
trap 'stopped=1; [ -z "$child" ] || kill "$child" 2>/dev/null' INT TERM

# last_of FILE : the number of the last case in it.
last_of() { grep -E '^[0-9]+ ' "$1" | tail -n 1 | cut -d' ' -f1; }

for mode in ${MODES:-plain replicas continue checkpoints budget placed pointers}; do
    lines=$out/$mode.txt
    touch "$lines"
    from=$(last_of "$lines")
    from=${from:+$((from + every))}
    from=${from:-$first}
    until [ "$stopped" ] || grep -q -E '^(next|skipped) ' "$lines"; do
        nice "$program" "$mode" "$@" --from "$from" --calls "$out/$mode.calls" >"$out/part.txt" 2>"$out/errors.txt" &
        child=$!
        wait $child
        code=$?
        cat "$out/part.txt" >>"$lines"
        [ $code = 77 ] && echo "skipped $mode" >>"$lines"
        [ "$stopped" ] || grep -q -E '^(next|skipped) ' "$lines" && break
        # the case at hand has no line, or one that says that it hung
        last=$(grep -E '^[0-9]+ ' "$out/part.txt" | tail -n 1)
        number=${last%% *}
        case $last in *HANG) ;; *)
            number=$((${number:-$((from - every))} + every))
            echo "$number ? 0 0 ?: CRASH | exit $code: $(tail -n 1 "$out/errors.txt")" >>"$lines" ;;
        esac
        from=$((number + every))
    done
done
printf '%-12s %8s %8s' mode cases of
outcomes='same told without avoided unseen WRONG LEAK WORDS LOST HANG CRASH'
for o in $outcomes; do printf ' %8s' "$o"; done
echo
bad=0
for mode in ${MODES:-plain replicas continue checkpoints budget placed pointers}; do
    printf '%-12s %8s %8s' "$mode" "$(grep -cE '^[0-9]+ ' "$out/$mode.txt")" "$(sed -n 's/^cases //p' "$out/$mode.txt" | tail -n 1)"
    for o in $outcomes; do
        n=$(grep -cE "^[0-9]+ [^|]*: ?$o( \||\$)" "$out/$mode.txt")
        printf ' %8s' "$n"
        case $o in [A-Z]*) bad=$((bad + n)) ;; esac
    done
    echo
done
echo "lines of each case: $out"
[ -z "$stopped" ] || echo "stopped: the same command with OUT=$out goes on"
[ $bad = 0 ]
