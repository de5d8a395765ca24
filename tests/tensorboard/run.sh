#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TensorBoard itself reads what `cleave train --tensorboard` writes: the log's losses, histograms, and a resumed training without what
# the checkpoint did not hold. TensorBoard comes from PyPI into a folder of its own; where it cannot be had this is left out, with a note.
# usage: tests/tensorboard/run.sh CLEAVE HELPER [FOLDER of a virtual environment, kept]
set -eu
cleave=$(realpath "$1") helper=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
venv=${3:-$work/venv}
skip() { echo "TensorBoard is left out: $1"; exit 0; }
command -v python3 >/dev/null || skip "there is no python3"
[ -x "$venv/bin/python" ] || python3 -m venv "$venv" >"$work/log" 2>&1 || skip "no virtual environment can be made (python3-venv)"
"$venv/bin/python" -c 'import tensorboard' 2>/dev/null ||
    timeout 300 "$venv/bin/pip" install --quiet --disable-pip-version-check tensorboard >"$work/log" 2>&1 ||
    skip "it could not be installed: $(tail -n 1 "$work/log")"
cd "$work"
"$helper" images 64 x.npy
"$helper" labels 64 y.npy
train() { "$cleave" train --images x.npy --labels y.npy --model linear --device host --batch 16 --quiet "$@" >/dev/null; }
train --epochs 3 --log a.jsonl --tensorboard a --histograms
# A training that was killed after its checkpoint, at step 4: it told steps that the resumed one does again.
train --epochs 1 --checkpoint c --tensorboard b
cp c kept
train --epochs 2 --resume c --checkpoint c --tensorboard b
train --epochs 3 --resume kept --log b.jsonl --tensorboard b
"$venv/bin/python" "$here/read.py" a a.jsonl 12
"$venv/bin/python" "$here/read.py" b b.jsonl 12
