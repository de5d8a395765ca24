#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the meter see what became worse? A kernel that carries a tile through local memory is measured; then the same with loads that
go down columns, with local memory in which a column lies in one bank, and with accesses that only look like none: vectors by a name
that a macro puts together, which must be counted, and a function of PoCL's own or no access at all, which must be refused. Then with a
use that a card can get and that no node shows."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
KERNEL = """
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
__kernel void planted(__global float *out, __global const float *in) {
    __local float tile[32][%(width)s];
    int x = get_local_id(0), group = get_group_id(0);
    for (int y = 0; y < 32; y++) tile[y][x] = %(load)s;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int y = 0; y < 32; y++) %(store)s;
}
"""
GOOD = {"width": "33", "load": "in[group * 1024 + y * 32 + x]", "store": "out[group * 1024 + y * 32 + x] = tile[x][y]"}
# Eight neighbours do what 32 did, 128 bytes apart: each vector has a sector of its own.
VECTOR = "if (x < 8) %s((float4)(tile[x][y]), 0, out + group * 1024 + x * 32 + y / 8 * 8)"
# Eight neighbours do what 32 did, in vectors that the sanitizer passes over.
WIDE = "if (x < 8) CAT(vstore, 16)((float16)(tile[x][y]), 0, out + group * 1024 + x * 128)"
PLANTED = {
    "sectors a load 4 -> 32": {"load": "in[group * 1024 + x * 32 + y]"},
    "ways in local memory 1 -> ": {"width": "32"},
    "sectors a store 4 -> 8": {"store": VECTOR % "CAT(vstore, 4)"},
    "sectors a store 4 -> 16": {"store": WIDE},
    "accesses that the meter does not see": {"store": VECTOR % "_cl_vstore4"},
    "not one access to memory was seen": {"load": "x", "store": "if (group < 0) out[y] = tile[x][y]"},
}
NODES = """
#include "meter.h"
void planted();
static void call(char *const *b, char *local) { ((void (*)(char *, char *))planted)(b[0], b[1]); }
static const meter_launch launches[] = {
    {.kind = METER_KERNEL, .entry = "planted", .key = "0", .call = call, .global = {160, 1, 1}, .local = {32, 1, 1}}};
static const meter_buffer buffers[] = {{20480, -1, -1, 0, 0, 0, 0}, {20480, -1, -1, 0, 0, 0, 0}};
const meter_node meter_nodes[] = {{"self", "test", 0, 1, buffers, 2, 40960, launches, 1}};
const int meter_n_nodes = 1;
"""


def measure(folder, changes, *options, uses="test"):
    with open(os.path.join(folder, "uses.txt"), "w") as file:
        file.write(uses)
    with open(os.path.join(folder, "planted.cl"), "w") as file:
        file.write(KERNEL % dict(GOOD, **changes))
    done = subprocess.run([sys.executable, os.path.join(HERE, "run.py"), "--folder", folder, "--table", os.path.join(folder, "table"), *options],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def main():
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "nodes.c"), "w") as file:
            file.write(NODES)
        open(os.path.join(folder, "data.bin"), "w").close()
        code, said = measure(folder, {}, "--update")
        if code == 77:
            print(said, end="")
            return 77
        code, said = measure(folder, {})
        if code:
            print(f"FAILED: the same kernel is called worse:\n{said}")
            failures += 1
        for what, changes in PLANTED.items():
            code, said = measure(folder, changes)
            if code == 0 or what not in said:
                print(f"FAILED: '{what}' is not said:\n{said}")
                failures += 1
        code, said = measure(folder, {}, uses="test absent:plain")
        if code == 0 or "no row: absent:plain" not in said:
            print(f"FAILED: a use without a row is not told:\n{said}")
            failures += 1
    print(f"planted: {len(PLANTED) + 1} faults: {failures} not told")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
