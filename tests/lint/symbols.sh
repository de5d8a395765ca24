#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shared library exports the public interface and nothing else: every symbol is clv_*, none is clv__*, and every
# function that a public header declares with CLV_API is there. usage: symbols.sh LIBRARY INCLUDE_FOLDER
set -eu
exported=$(nm -D --defined-only "$1" | awk '$2 ~ /[A-Z]/ { sub(/@.*/, "", $3); print $3 }' | grep -v -E '^(_init|_fini|__bss_start|_edata|_end)$')
[ -n "$exported" ] || { echo "$1 exports nothing"; exit 1; }
strangers=$(echo "$exported" | grep -v -E '^clv_[a-z0-9]' || true)
[ -z "$strangers" ] || { echo "exported, but not public:"; echo "$strangers"; exit 1; }
declared=$(sed '/^#/d' "$2"/cleave/*.h | tr '\n' ' ' | grep -o 'CLV_API[^;(]*(' | sed 's/[ *(]*($//; s/.*[ *]//' | sort -u)
missing=$(printf '%s\n' "$declared" | grep -vxF "$exported" || true)
[ -z "$missing" ] || { echo "declared in a public header, but not exported:"; echo "$missing"; exit 1; }
undeclared=$(printf '%s\n' "$exported" | grep -vxF "$declared" || true)
[ -z "$undeclared" ] || { echo "exported, but declared in no public header:"; echo "$undeclared"; exit 1; }
echo "$(echo "$exported" | wc -l) symbols"
