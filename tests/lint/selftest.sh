#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lint that cannot fail is no lint: builds a small tree with one fault of every kind and looks for each finding.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cd "$tree"
mkdir -p include/cleave runtime/base runtime/ops runtime/plan backends/opencl kernels_cl samples tools docs
echo 'set(CLEAVE_LAYERS base ops plan)' >runtime/CMakeLists.txt
printf '#include "base/ok.h"\n' >include/cleave/up.h
printf '#include "plan/plan.h"\n#include "base/ok.h"\n// exit(1) and printf("%%d") in a comment are fine\n' >runtime/base/up.c
printf 'void f(void) { exit(1); }\nint g(void) { return fprintf(stderr, "x"); }\ncl_mem m;\nconst char *s = "less (--lr)";\n' >runtime/base/words.c
printf 'void f(char *t) { snprintf(t, 1, "exit(1)"); /* abort(\n abort() */ }\n' >runtime/base/fine.c
cat >runtime/base/locale.c <<'END'
double f(const char *t) { return strtod(t, 0) + strcasecmp(t, "i"); }
void g(char *t) {
    snprintf(t, 9,
             "%d %%f "
             "%-8.3f", 1, 2.0);
    snprintf(t, 9, "%d 100 %% free of %lld ages", 1, 2); /* fine */
}
int h(char *t, double *x) { return sscanf(t, "%lg", x); }
END
echo 'double f(const char *t) { return strtod(t, 0); }' >runtime/base/number.c
echo 'void f(void) { setlocale(0, ""); }' >tools/t.c
printf 'int f(int o) { switch (o) { case CLV_OP_ADD: return 1; } }\nint g(n *x) { return x->op == &clv_op_add; }\n' >runtime/plan/ops.c
printf '#include "device/helpers/internal.h"\n' >runtime/plan/inside.c
printf '// PoCL is slow here\n' >runtime/plan/vendor.c
printf 'CLV__PASS(one)\nCLV__PASS(two)\n' >runtime/plan/passes.def
printf '#include "plan/own.h"\nstatic clv_status run(clv_plan *p) {\n    return clv__pass_two.run(p);\n}\nconst clv__pass clv__pass_one = {.run = run};\n' >runtime/plan/one.c
printf '#include "plan/own.h"\nstatic clv_status run(clv_plan *p) {\n    return clv__noted(p, CLV__PASS_one, 0) != 0;\n}\nconst clv__pass clv__pass_two = {.run = run};\n' >runtime/plan/two.c
printf '#include "plan/plan.h"\nconst char *v = "NVIDIA";\n' >backends/opencl/device.c
printf 'const char *v = "NVIDIA";\n' >backends/opencl/quirks.c
printf 'kernel void k(global float *y) { y[0] = native_exp(y[0]); }\nkernel void l(void) { __asm("nop;"); }\nkernel void v(void) { __asm volatile("nop;"); }\n' >kernels_cl/k.cl
mkdir kernels_cl/common
printf 'kernel void m(void) { __asm("nop;"); }\n' >kernels_cl/common/matrix.cl
printf 'void clv_own_op(void);\n' >include/cleave/old.h
printf '#include "base/ok.h"\n' >samples/s.c
printf '// %0120d\n' 7 >runtime/base/wide.c
printf 'Here is `fine.c`, and forgotten.c without a mark.\n' >runtime/ops/README.md
touch runtime/ops/fine.c runtime/ops/forgotten.c
echo 'CLV__OP(a) = {0};' >runtime/ops/op_fine.c # its mark says what it is
mkdir runtime/stray
touch runtime/stray/x.c
cat >README.md <<'END'
See [the page](docs/none.md).
```sh
tools/none.sh
cmake --preset none
cleave train --json --none
```
END
printf '#!/bin/sh\necho "  --json  --nonesuch"\n' >cleave
chmod +x cleave
echo '{"configurePresets": [{"name": "dev"}]}' >CMakePresets.json

failed=0
# expect SCRIPT PATTERN... : the script exits 1 and prints each pattern.
expect() {
    script=$1
    shift
    if output=$("$here/$script" "$tree" ${tool:+"$tool"} 2>&1); then
        echo "$script found nothing in a bad tree"
        failed=1
    fi
    for pattern; do
        echo "$output" | grep -q -e "$pattern" || { echo "$script did not find: $pattern"; failed=1; }
    done
    # shellcheck disable=SC2254  # a pattern on purpose
    case $output in *fine.c* | *base/locale.c:6:* | *base/number.c:*numbers* | *backends/opencl/quirks.c:*vendors*) echo "$script found what is fine: $output"; failed=1 ;; esac
}
tool=''
# Objects in a circle: the one with a reason is no finding.
build=$tree/build/CMakeFiles/cleave_ops.dir/ops
mkdir -p "$build" tests/lint
for pair in 'ring about' 'about ring' 'here there' 'there here'; do
    set -- $pair
    touch "runtime/ops/$1.c"
    printf 'void %s(void);\nvoid %s(void) { %s(); }\n' "$2" "$1" "$2" | cc -x c -c -o "$build/$1.c.o" -
done
echo 'ops/here.c ops/there.c  a reason' >tests/lint/circles.txt
tool=$tree/build
expect circles.sh 'ops/about.c calls ring of ops/ring.c'
if "$here/circles.sh" "$tree" "$tree/build" | grep -q here; then echo "circles.sh found what has a reason"; failed=1; fi
rm -r runtime/ops/ring.c runtime/ops/about.c runtime/ops/here.c runtime/ops/there.c tests
tool=''
expect layers.sh 'include/cleave/up.h:1' 'runtime/base/up.c:1:' 'backends/opencl/device.c:1' 'samples/s.c:1' 'runtime/stray' \
    'plan/one.c:3:.*calls another' 'plan/two.c:3:.*notes of another' 'plan/two.c: includes plan/own.h' 'plan/inside.c:1:.*its own folder only'
mkdir -p tests/bench
printf '#!/bin/sh\necho one\n' >tests/bench/page.sh
chmod +x tests/bench/page.sh
echo two >tests/bench/RESULTS.md
expect results.sh 'RESULTS.md: not what page.sh prints: < one'
rm -r tests
expect width.sh 'runtime/base/wide.c:1: 123 columns'
expect words.sh 'base/words.c:1:.*exits' 'base/words.c:2:.*exits' 'base/words.c:3:.*seam' 'base/words.c:4:.*options' 'plan/ops.c:1:.*descriptor' \
    'base/locale.c:1:.*numbers' 'base/locale.c:3:.*numbers' 'base/locale.c:8:.*numbers' 'tools/t.c:1:.*numbers' \
    'plan/ops.c:2:.*descriptor' 'plan/vendor.c:1:.*vendors' 'opencl/device.c:2:.*vendors' 'kernels_cl/k.cl:1:.*same bits' \
    'kernels_cl/k.cl:2:.*maker' 'kernels_cl/k.cl:3:.*maker' 'cleave/old.h:1:.*spelling'
expect readmes.sh 'runtime/base:' 'kernels_cl:' 'runtime/ops/forgotten.c:'
tool=$tree/cleave
expect docs.sh 'docs/none.md' 'tools/none.sh' 'preset none' 'no option --none$'
tool=''
# Three that run a compiler.
printf '#include <cleave/cleave.h>\n```c\nint main(void) { return clv_version(0); }\n```\n' >README.md
printf 'clv_shape clv_no_header_before(void);\n' >include/cleave/alone.h
printf 'KERNEL(k)(global float *y) { y[0] = 1.0f; }\n' >kernels_cl/no_default.cl
printf 'kernel void same(global float *y) { y[0] = 1.0f; }\n' >kernels_cl/k.cl
mkdir -p runtime/graph
printf '#include "graph/graph.h"\nint f(struct clv_tensor *t) { return t->desc.rank; }\nint g(struct clv_tensor *t) { return clv_tensor_bytes(t); }\n' >runtime/plan/asks.c
printf 'struct clv_tensor {\n    int rank;\n};\n' >runtime/graph/graph.h
if "$here/values.sh" "$tree" >/dev/null 2>&1; then echo "values.sh took a tensor without a desc"; failed=1; fi
printf 'typedef struct { int rank; } clv__desc;\nint clv_tensor_bytes(void *);\nstruct clv_tensor {\n    clv__desc desc;\n};\n' >runtime/graph/graph.h
expect values.sh 'plan/asks.c:2:.*owns' 'plan/asks.c:3:.*owns'
expect headers.sh 'alone.h does not compile alone as c99' 'alone.h does not compile alone as c++17'
if command -v clang >/dev/null; then
    expect kernels.sh 'no_default.cl: does not parse alone (once)' 'k.cl: does not parse alone (twice)'
fi
if "$here/sample.sh" "$tree" none.so >/dev/null 2>&1; then
    echo "sample.sh took a program that does not compile"
    failed=1
fi

rm runtime/base/fine.c runtime/base/words.c runtime/ops/fine.c runtime/ops/op_fine.c
expect spdx.sh 'runtime/base/up.c:1'
[ "$failed" = 0 ] && echo "every fault was found"
exit "$failed"
