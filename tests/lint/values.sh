#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A value of a plan owns what it is: nothing in runtime/plan and runtime/exec asks the graph's tensor for its shape, dtype or bytes, but
# runtime/plan/ir.c, where values are made. Found by the compiler: each file is compiled against a graph.h whose tensor has no `desc`.
# usage: values.sh ROOT [C compiler]
. "$(dirname "$0")/common.sh"
cc=${2:-cc}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

mkdir -p "$scratch/graph"
sed '/^struct clv_tensor {/,/^};/ s/^    clv__desc desc;/    clv__desc of_the_graph_alone;/' runtime/graph/graph.h >"$scratch/graph/graph.h"
grep -q of_the_graph_alone "$scratch/graph/graph.h" || { echo "runtime/graph/graph.h: struct clv_tensor has no line 'clv__desc desc;'"; exit 1; }

for file in runtime/plan/*.c runtime/plan/*/*.c runtime/exec/*.c; do
    [ -e "$file" ] && [ "$file" != runtime/plan/ir.c ] || continue
    "$cc" -std=gnu11 -fsyntax-only -I"$scratch" -Iruntime -Iinclude "$file" 2>&1 |
        grep 'error: ' || true
    strings=blank without_comments "$file" | grep -E 'clv_tensor_(bytes|numel|shape|dtype) *\(' || true
done >"$scratch/found"
tell_all "a value owns its shape, dtype and bytes: ask plan->values[...], not the tensor" <"$scratch/found"
finish
