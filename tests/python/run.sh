#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The wheel as a user has it: built, installed into an empty virtual environment, tested there with PyTorch from PyPI, on the host and on an
# OpenCL device. What PyPI does not give is left out, with a note.
set -u
cd "$(dirname "$0")/../.." || exit 1
kept=${CLEAVE_DRIVERS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/cleave-drivers}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
left_out() { echo "python: left out: $*"; exit 77; }
tools/wheel.sh >"$work/log" 2>&1 || { grep -q 'No matching distribution\|Connection' "$work/log" && left_out "$(tail -n 1 "$work/log")"; cat "$work/log"; exit 1; }
wheel=$(ls build/wheel/*.whl)
bytes=$(wc -c <"$wheel")
[ "$bytes" -le 4194304 ] || { echo "python: the wheel has $bytes bytes, more than 4 MiB"; exit 1; }
venv=$kept/python-torch
[ -e "$venv/whole" ] || { rm -rf "$venv" && python3 -m venv "$venv" && "$venv/bin/pip" install --quiet torch torchvision >"$work/log" 2>&1 &&
    touch "$venv/whole"; } || left_out "$(tail -n 1 "$work/log")"
"$venv/bin/pip" install --quiet --force-reinstall --no-deps "$wheel" && "$venv/bin/pip" install --quiet cffi numpy onnx onnxruntime || exit 1
status=0
for device in host cpu; do
    for test in plain torch onnx; do
        (cd "$work" && env -u PYTHONPATH -u CLEAVE_LIBRARY CLEAVE_CACHE_DIR="$work/cache" CLEAVE_TEST_DEVICE=$device "$venv/bin/python" -W ignore \
            "$OLDPWD/tests/python/test_$test.py" >"$work/log" 2>&1) || { status=1 && cat "$work/log"; }
        echo "python: $test on $device: $(grep '^Ran' "$work/log"), $(tail -n 1 "$work/log")"
    done
done
for example in python/examples/*.py; do
    (cd "$work" && env -u PYTHONPATH -u CLEAVE_LIBRARY CLEAVE_CACHE_DIR="$work/cache" "$venv/bin/python" -W ignore "$OLDPWD/$example" >"$work/log" 2>&1) ||
        { status=1 && echo "python: $example failed" && cat "$work/log"; }
    echo "python: $(basename "$example"): $(tail -n 1 "$work/log")"
done
echo "python: the wheel has $bytes bytes"
exit $status
