#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Do the headers tell all that a generator of bindings must know, of the functions that the library exports and of no others? And would
# it be seen if they did not: a mark that is gone or wrong, a function that nobody can end.
#
# usage: declarations.sh LIBRARY SOURCES
set -u
here=$(cd "$(dirname "$0")" && pwd)
library=$1
sources=$2
# What is added is worth a function: an op is none (ops.h), and inline helpers make one of several.
python3 "$sources/tools/declarations.py" --library "$library" --most 300 --sources "$sources/runtime" "$sources/include" || exit 1

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
# expect SENTENCE HEADER FROM TO [OPTION...] : without a change to the header all is well, with it that is said, with header and line
expect() {
    sentence=$1 header=$2 from=$3 to=$4
    shift 4
    rm -rf "$scratch/cleave"
    cp -r "$sources/include/cleave" "$scratch/cleave"
    sed "s/$from/$to/" "$sources/include/cleave/$header" >"$scratch/cleave/$header"
    cmp -s "$sources/include/cleave/$header" "$scratch/cleave/$header" && echo "FAILED: $header has no '$from'" && failures=1
    said=$(python3 "$sources/tools/declarations.py" "$@" "$scratch" 2>&1 >/dev/null) && echo "FAILED: '$from' became '$to', and nobody said it" && failures=1
    echo "$said" | grep -q "^$header:[0-9]*: $sentence" || {
        echo "FAILED: '$from' became '$to', and that is told as: $said"
        failures=1
    }
}
expect "clv_loader_next: 'out' (clv_batch \*): is it read or written" data.h 'CLV_OUT clv_batch \*' 'clv_batch *'
expect "clv_session_write: 'data' (const void \*) is one, or an array" plan.h 'CLV_COUNT(bytes) const void \*data, size_t' 'const void *data, size_t'
expect "clv_sum: CLV_COUNT(axis) of 'axes': there is no 'axis'" ops.h 'CLV_COUNT(n_axes)' 'CLV_COUNT(axis)'
expect "clv_predictor_config: 'losses' is beside 'n_losses'" train.h 'CLV_COUNT(n_losses) ' ''
expect "clv_device_find: 'out' (clv_device \*\*): there is no clv_device_destroy" device.h 'CLV_BORROWED ' ''
expect "clv_batch_search: 'fits' is a function; behind it stands no" plan.h 'int64_t batch), void \*user,' 'int64_t batch),'
expect "clv_run_create: 'plan' is CLV_OR_NULL, and the function refuses it" plan.h 'CLV_KEPT clv_plan \*plan' 'CLV_OR_NULL clv_plan *plan' \
    --sources "$sources/runtime"
exit $failures
