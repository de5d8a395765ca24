#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The execution provider in ONNX Runtime from PyPI, on the host and on an OpenCL device; and what is said of its interface beside its own
# headers, where they are. What PyPI does not give is left out, with a note.
#
# usage: run.sh BUILD [HEADERS]     build/dev; a folder with onnxruntime_c_api.h
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$1 headers=${2:-/usr/include/onnxruntime}
kept=${CLEAVE_DRIVERS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/cleave-drivers}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=$kept/python-onnxruntime status=0
left_out() { echo "ort: left out: $*"; exit 77; }
if [ -e "$headers/onnxruntime_ep_c_api.h" ]; then
    cc -std=gnu11 -Wall -Wextra -Werror -fsyntax-only -I"$headers" -Iort tests/ort/slots.c && echo "ort: the interface is that of $headers" ||
        status=1
fi
[ -e "$venv/whole" ] || { rm -rf "$venv" && python3 -m venv "$venv" && "$venv/bin/pip" install --quiet onnx 'onnxruntime>=1.23' >"$work/log" 2>&1 &&
    touch "$venv/whole"; } || left_out "$(tail -n 1 "$work/log")"
for device in host cpu; do
    CLEAVE_ORT_LIBRARY=$build/ort/libcleave_ort.so CLEAVE_CACHE_DIR=$work/cache CLEAVE_TEST_DEVICE=$device "$venv/bin/python" -W ignore \
        tests/ort/test_ort.py >"$work/log" 2>&1 || { status=1 && cat "$work/log"; }
    echo "ort: on $device: $(grep '^Ran' "$work/log"), $(grep 'node tests' "$work/log"), $(tail -n 1 "$work/log")"
done
exit $status
