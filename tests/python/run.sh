#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The wheel as a user has it: built, installed into an empty virtual environment, tested there with PyTorch from PyPI, on the host and on an
# OpenCL device, and without PyTorch by the oldest and the newest Python that is here. What PyPI does not give is left out, with a note.
set -u
cd "$(dirname "$0")/../.." || exit 1
here=$PWD
kept=${CLEAVE_DRIVERS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/cleave-drivers}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
left_out() { echo "python: left out: $*"; exit 77; }
tools/wheel.sh >"$work/log" 2>&1 || { grep -q 'No matching distribution\|Connection' "$work/log" && left_out "$(tail -n 1 "$work/log")"; cat "$work/log"; exit 1; }
wheel=$(ls build/wheel/*.whl)
bytes=$(wc -c <"$wheel")
[ "$bytes" -le 4194304 ] || { echo "python: the wheel has $bytes bytes, more than 4 MiB"; exit 1; }
# environment NAME PYTHON PACKAGE... : a virtual environment, kept, with the wheel as it is now
environment() {
    name=$1 python=$2
    shift 2
    [ -e "$kept/$name/whole" ] || { rm -rf "${kept:?}/$name" && "$python" -m venv "$kept/$name" &&
        "$kept/$name/bin/pip" install --quiet "$@" && touch "$kept/$name/whole"; } || return 1
    "$kept/$name/bin/pip" install --quiet "$@" && "$kept/$name/bin/pip" install --quiet --force-reinstall --no-deps "$wheel"
}
# run DEVICE PYTHON FILE [ARGUMENT...] : in a folder of its own, with what the wheel holds alone
run() {
    device=$1 python=$2
    shift 2
    (cd "$work" && env -u PYTHONPATH -u CLEAVE_LIBRARY CLEAVE_CACHE_DIR="$work/cache" CLEAVE_TEST_DEVICE="$device" "$python" -W ignore "$@" \
        >"$work/log" 2>&1) || { status=1 && echo "python: $* failed" && cat "$work/log"; }
}
environment python-torch python3 torch torchvision cffi numpy pillow onnx onnxruntime >"$work/log" 2>&1 || left_out "$(tail -n 1 "$work/log")"
python=$kept/python-torch/bin/python
status=0
# test NAME DEVICE [CLASS...]
test() {
    name=$1 device=$2
    shift 2
    run "$device" "$python" "$here/tests/python/test_$name.py" "$@"
    echo "python: $name on $device: $(grep '^Ran' "$work/log"), $(tail -n 1 "$work/log")"
}
test plain host
test torch host
test onnx host
test plain cpu
test torch cpu Check Training Compiled # what is refused is refused on all devices alike
for example in python/examples/*.py; do
    run '' "$python" "$here/$example"
    echo "python: $(basename "$example"): $(tail -n 1 "$work/log")"
done
run cpu "$python" "$here/tests/python/stress.py" 5
echo "python: stress: $(tail -n 2 "$work/log" | head -n 1)"
# other Pythons: those of the search path, and of pyenv
others=$(for each in $(command -v python3.9 python3.10 python3.11 python3.12 python3.13 python3.14) "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3; do
    [ -x "$each" ] && "$each" -c 'import sys; v = sys.version_info; v >= (3, 9) and print("%d.%d" % v[:2], sys.executable)' 2>"$work/log"
done | sort -V -u -k 1,1)
for other in "$(echo "$others" | head -n 1)" "$(echo "$others" | tail -n 1)"; do
    version=${other%% *}
    [ -n "$version" ] || continue
    environment "python-$version" "${other#* }" cffi numpy >"$work/log" 2>&1 || { echo "python: $version is left out: $(tail -n 1 "$work/log")"; continue; }
    run cpu "$kept/python-$version/bin/python" "$here/tests/python/test_plain.py"
    echo "python: plain by Python $version: $(grep '^Ran' "$work/log"), $(tail -n 1 "$work/log")"
done
echo "python: the wheel has $bytes bytes"
exit $status
