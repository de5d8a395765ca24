#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds with warnings as errors, runs every test, and lists what was skipped.
# Arguments are passed on to ctest: tools/test.sh -R conv2d
set -eu
cd "$(dirname "$0")/.."
tools/install-deps.sh --tests
tools/build.sh dev
status=0
ctest --preset dev --output-junit Testing/Temporary/junit.xml "$@" || status=$?
tests/skips.sh build/dev
exit "$status"
