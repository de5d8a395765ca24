#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The n-th allocation of a command fails, alone or with all after it, for n = 1, 2, ... until the command passes untouched: one
# sentence and exit 1 (check: 3, and no op is called wrong), or the right result.
# usage: memory.sh CLEAVE HELPER LIBRARY [STRIDE [KIND...]]
. "$(dirname "$0")/common.sh"
stride=${1:-1}
[ $# -lt 2 ] && set -- "$stride" train resume run eval plan check devices env page log npz pth idx tuning
shift
for kind in "$@"; do
    for rest in "" 1; do
        n=$((1 + begin_at * stride)) told=
        while :; do # a short command may have ended before the drawn one: then from the first
            begin
            # shellcheck disable=SC2046  # words on purpose
            timeout 60 env $(variables "$kind") ${rest:+CLV_TEST_ALLOCATION_REST=1} CLV_TEST_ALLOCATION=$n CLV_TEST_FAULT_MARK="$scratch/mark" \
                LD_PRELOAD="$tool" "$(program "$kind")" $(commands "$kind") >out 2>err
            code=$?
            if [ ! -e mark ]; then
                [ -z "$told" ] && [ "$n" -gt 1 ] && n=1 && continue
                break
            fi
            told=1
            judge "$kind, allocation $n${rest:+ and all after it}" $code
            n=$((n + every * stride))
        done
        [ -n "$told" ] || fail "$kind: no allocation was seen"
    done
done
finish
