#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Brings the compilers, holds what they make of every kernel against kernels.tsv and of halves and matrix units against bounds, and then shows that a
# spill, a lost occupancy and a further load would be seen, and more. Under four minutes on two cores; with a number in CLEAVE_TURN a
# fifth of what did not change.
#
# usage: run.sh LIST [OPTION...]      LIST: build/dev/tests/drivers/offline_kernels; options of run.py, such as --update
set -u
[ -x "${1:-}" ] && [ -f "$1" ] || {
    echo "usage: run.sh LIST [OPTION...]; LIST: build/dev/tests/drivers/offline_kernels, which has to be built" >&2
    exit 2
}
here=$(cd "$(dirname "$0")" && pwd)
list=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shift
python3 "$here/tools.py"
python3 "$here/run.py" "$list" "$@"
status=$?
if [ $status = 77 ]; then
    exit 0 # said with a reason for each target
fi
[ $status != 2 ] || exit 2 # wrong usage
python3 "$here/halves.py" || status=1
python3 "$here/units.py" || status=1
python3 "$here/selftest.py" || status=1
exit $status
