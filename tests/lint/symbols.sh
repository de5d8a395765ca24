#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shared library exports the public interface and nothing else: every symbol is clv_*, none is clv__*, and every
# function that a public header declares with CLV_API is there. usage: symbols.sh LIBRARY INCLUDE_FOLDER [inference]
# Of a library for inference, those are that are declared with CLV_API and none that is with CLV_TRAIN_API.
set -eu
exported=$(nm -D --defined-only "$1" | awk '$2 ~ /[A-Z]/ { sub(/@.*/, "", $3); print $3 }' | grep -v -E '^(_init|_fini|__bss_start|_edata|_end)$')
[ -n "$exported" ] || { echo "$1 exports nothing"; exit 1; }
strangers=$(echo "$exported" | grep -v -E '^clv_[a-z0-9]' || true)
[ -z "$strangers" ] || { echo "exported, but not public:"; echo "$strangers"; exit 1; }
kinds='CLV_\(TRAIN_\)\{0,1\}API'
[ "${3:-}" != inference ] || kinds=CLV_API
declared=$(sed '/^#/d' "$2"/cleave/*.h | tr '\n' ' ' | grep -o "$kinds[^;(]*(" | sed 's/[ *(]*($//; s/.*[ *]//' | sort -u)
missing=$(printf '%s\n' "$declared" | grep -vxF "$exported" || true)
[ -z "$missing" ] || { echo "declared in a public header, but not exported:"; echo "$missing"; exit 1; }
undeclared=$(printf '%s\n' "$exported" | grep -vxF "$declared" || true)
[ -z "$undeclared" ] || { echo "exported, but declared in no public header:"; echo "$undeclared"; exit 1; }
echo "$(echo "$exported" | wc -l) symbols"
