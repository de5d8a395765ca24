#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Is everything in its place for the day a card is at hand? Packs, and runs what was packed with a driver that computes nothing: every
# launch must be one that a card could take, and every result that is not zero must be told as wrong. Half a minute.
#
# usage: run.sh LAUNCHES      build/dev/tests/drivers/meter_launches
set -u
[ -x "${1:-}" ] && [ -f "$1" ] || {
    echo "usage: run.sh LAUNCHES; LAUNCHES: build/dev/tests/drivers/meter_launches, which has to be built" >&2
    exit 2
}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$here/pack.sh" "$1" "$work/pack" || { [ $? = 77 ] && exit 0; exit 1; }
cc -shared -fPIC -O1 "$here/fake.c" -o "$work/libfake.so" || exit 1
"$work/pack/ptx" "$work/pack" "$work/none.so" 2>"$work/none"
[ $? = 77 ] && grep -q 'there is no driver' "$work/none" || { echo "ptx: without a driver it should exit with 77 and say so"; cat "$work/none"; exit 1; }
"$work/pack/ptx" "$work/pack" "$work/libfake.so" >"$work/out" 2>"$work/err"
status=$?
tail -n 1 "$work/out"
set -- $(tail -n 1 "$work/out")
timed=$(grep -c '^resnet18\|^mobilenet_v2\|^gpt' "$work/out")
if [ $status != 1 ] || [ -s "$work/err" ] || [ "$1" -lt 400 ] || [ "$3" -lt $(($1 * 8 / 10)) ] || [ "$timed" -lt 100 ]; then
    echo "ptx: with a driver that computes nothing nearly all samples must be wrong, and all launches possible (exit $status, $timed timed)"
    head -n 20 "$work/err"
    exit 1
fi
echo "ptx: $timed nodes of models timed, all launches possible; nothing computed, as it should be here"
