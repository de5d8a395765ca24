#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The long form of e2e/caches.sh: 16 processes at once, each damage alone. tests/caches.sh [BUILD], by default build/dev. Minutes.
folder=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:-$folder/../build/dev}" && pwd) || exit 1
CLEAVE_TEST_LONG=1 CLEAVE_VISIBLE_DEVICES='' CLEAVE_PARTITION='' CLEAVE_COMPILE_HELPER='' \
    "$folder/e2e/caches.sh" "$build/cleave" "$build/tests/e2e/e2e_helper" && echo "all well"
