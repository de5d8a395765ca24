#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every fault of training.c, or a part of them, in every mode, and a table of what came of them. A case that ends the process or hangs is
# counted and passed over.
#
#   tests/faults/sweep.sh BUILD_FOLDER [OPTION VALUE]...     options of training.c: --every 10 --positions 12 --kinds oneau
#
# MODES chooses modes, OUT keeps the lines of each. Exit 1: something came out as it must not.
set -u
program=$1/tests/faults/faults_training
shift
out=${OUT:-$(mktemp -d)}
every=1
case " $* " in *" --every "*) every=$(echo " $* " | sed 's/.* --every \([0-9]*\) .*/\1/') ;; esac
export CLEAVE_CACHE_DIR="$out/cache" CLEAVE_TUNING=none CLEAVE_COMPILE_HELPER= CLEAVE_VISIBLE_DEVICES= CLEAVE_PARTITION=
for mode in ${MODES:-plain replicas continue checkpoints budget placed}; do
    lines=$out/$mode.txt
    from=0
    : >"$lines"
    while :; do
        nice "$program" "$mode" --from "$from" "$@" >"$out/part.txt" 2>"$out/errors.txt"
        code=$?
        cat "$out/part.txt" >>"$lines"
        [ $code = 77 ] && break
        grep -q '^next ' "$out/part.txt" && break
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
printf '%-12s %8s' mode cases
outcomes='same told without avoided unseen WRONG LEAK WORDS LOST HANG CRASH'
for o in $outcomes; do printf ' %8s' "$o"; done
echo
bad=0
for mode in ${MODES:-plain replicas continue checkpoints budget placed}; do
    printf '%-12s %8s' "$mode" "$(grep -cE '^[0-9]+ ' "$out/$mode.txt")"
    for o in $outcomes; do
        n=$(grep -cE "^[0-9]+ [^|]*: ?$o( \||\$)" "$out/$mode.txt")
        printf ' %8s' "$n"
        case $o in [A-Z]*) bad=$((bad + n)) ;; esac
    done
    echo
done
echo "lines of each case: $out"
[ $bad = 0 ]
