#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program that the root's README.md shows compiles as it stands there without a warning, with each compiler here, and runs. So do
# the blocks of C in docs/, each with what it leaves out in front of it; all of them as C++ too.
# usage: sample.sh ROOT LIBRARY [C compiler]
. "$(dirname "$0")/common.sh"
library=$2
cc=${3:-cc}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# block PAGE N : the N-th block of C in a page.
block() { awk -v wanted="$2" '/^```c$/ { n++; inside = n == wanted; next } /^```/ { inside = 0 } inside' "$1"; }
block README.md 1 >"$scratch/block1.c"
[ -s "$scratch/block1.c" ] || { echo "README.md shows no program in C"; exit 1; }

blocks=1
# around PAGE N DECLARATION... : that block as a file: declarations, its functions, and what stands behind them in one more function.
around() {
    block "$1" "$2" >"$scratch/block"
    shift 2
    blocks=$((blocks + 1))
    {
        echo '#include <cleave/cleave.h>'
        printf '%s\n' "$@" 'void shown(void);'
        grep -q '^}$' "$scratch/block" && sed '/^}$/q' "$scratch/block"
        echo 'void shown(void) {'
        awk '{ line[NR] = $0 } /^}$/ { last = NR } END { for (i = last + 1; i <= NR; i++) print line[i] }' "$scratch/block"
        echo '}'
    } >"$scratch/block$blocks.c"
}
around docs/data.md 1 'clv_tensor *line(clv_tensor *x, const clv_model *model);' 'extern clv_dataset *table;'
around docs/data.md 2 'void build(clv_tensor *const *inputs, clv_tensor **outputs, const clv_model *model);' 'extern clv_runtime *runtime;' \
    'extern clv_archive *archive;' 'extern clv_dataset *data;'
around docs/data.md 3 '#include <string.h>' 'extern clv_runtime *runtime;' 'extern clv_weights_info *info;' 'extern clv_array rows, results;' \
    'extern clv_predictor *predictor;'
around docs/models-and-weights.md 1 'extern clv_runtime *runtime;'
around docs/custom-ops.md 1 'extern const clv_attribute attributes[];' 'extern const char kernel[];' 'extern const clv_op_sample cases[];' \
    'void reference(const clv_op_use *use, const double *const *in, double *const *out);' \
    'void gradient(const clv_op_use *, clv_tensor *const *, clv_tensor *const *, clv_tensor *const *, clv_tensor **);' \
    'extern clv_runtime *runtime;' 'extern clv_graph *graph;' 'extern clv_tensor *h;'
around docs/custom-ops.md 2
around docs/getting-started.md 1 '#include <stdio.h>' 'extern clv_train_config config;'
[ "$(cat README.md docs/*.md | grep -c '^```c$')" = "$blocks" ] ||
    finding "README.md or docs/ have a block of C that nobody compiles: sample.sh names what stands around each"

# compiles COMPILER... : all blocks; of those that are no whole program values are unused, and statuses.
compiles() {
    "$@" -Wall -Wextra -Werror -Iinclude "$scratch/block1.c" -fsyntax-only || finding "README.md's program does not compile with $*"
    for i in $(seq 2 "$blocks"); do
        "$@" -Wall -Wextra -Werror -Wno-unused -Wno-unused-result -Iinclude "$scratch/block$i.c" -fsyntax-only ||
            finding "block $i of C (README.md, then docs/ as sample.sh names them) does not compile with $*"
    done
}
tried=' '
for compiler in "$cc" gcc clang; do
    case $tried in *" $(command -v "$compiler") "*) continue ;; esac
    command -v "$compiler" >/dev/null || continue
    tried="$tried$(command -v "$compiler") "
    for standard in c99 c11 c17; do compiles "$compiler" -std=$standard -pedantic; done
done
for compiler in g++ clang++; do
    command -v "$compiler" >/dev/null || continue
    for standard in c++11 c++17; do compiles "$compiler" -x c++ -std=$standard -Wno-missing-field-initializers; done
done
$cc -std=c99 -Iinclude "$scratch/block1.c" -o "$scratch/readme" "$library" -Wl,-rpath,"$(dirname "$library")" ||
    finding "README.md's program does not link"
[ "$findings" = 0 ] || finish
cd "$scratch" && ./readme
