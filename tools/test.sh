#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds with warnings as errors, and runs every test. Arguments are passed on to ctest:
# tools/test.sh -R conv2d
set -eu
cd "$(dirname "$0")/.."
tools/install-deps.sh --tests
tools/build.sh dev
exec ctest --preset dev "$@"
