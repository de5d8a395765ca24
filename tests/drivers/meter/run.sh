#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The meter on all kernels, then on some that are made worse on purpose. A minute on two cores.
#
# usage: run.sh LAUNCHES [OPTION...]      LAUNCHES: build/dev/tests/drivers/meter_launches; options of run.py, such as --update
set -u
[ -x "${1:-}" ] && [ -f "$1" ] || {
    echo "usage: run.sh LAUNCHES [OPTION...]; LAUNCHES: build/dev/tests/drivers/meter_launches, which has to be built" >&2
    exit 2
}
here=$(cd "$(dirname "$0")" && pwd)
python3 "$here/run.py" "$@"
status=$?
if [ $status = 77 ]; then
    exit 0 # said why
fi
[ $status != 2 ] || exit 2 # wrong usage
python3 "$here/selftest.py" || status=1
exit $status
