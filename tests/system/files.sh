#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The n-th call of the system that touches a file fails (EIO, ENOSPC, EINTR), does half of its bytes, or is where the process is
# killed, for n = 1, 2, ... until a command passes untouched. Weights, checkpoints, outputs and pages are the older or the newer ones,
# whole; a killed training goes on from its checkpoint to the same bits.
# usage: files.sh CLEAVE HELPER INJECT [KIND...]      FAULTS="5" takes another errno
. "$(dirname "$0")/common.sh"
"$tool" 5 0 mark true
[ $? != 77 ] || { echo "left out: this system lets no process trace another"; exit 77; }
[ $# -gt 0 ] || set -- train resume run eval page log cache
kills=0

for kind in "$@"; do
    for fault in ${FAULTS:-28 4 short kill}; do
        n=$((1 + begin_at)) told=
        while :; do
            begin
            # shellcheck disable=SC2046  # words on purpose
            timeout 60 "$tool" $fault $n mark "$(program "$kind")" $(commands "$kind") >out 2>err
            code=$?
            grep -q reached mark || break
            told=1
            what="$kind, call $n, fault $fault"
            if [ $fault = kill ] && [ $code = 137 ]; then
                tried=$((tried + 1)) kills=$((kills + 1))
                files_good "$what"
            else
                judge "$what" $code
            fi
            n=$((n + every))
        done
        [ -n "$told" ] || fail "$kind: no call was seen"
    done
done
echo "$kills kills"
finish
