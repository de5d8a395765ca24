#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the offline matrix see what became worse? A kernel is compiled, its figures kept; then the same kernel with a spill, with more
registers than it needs, with a further load in its loop, with more to do around its loop, with a load that is waited for before the
loop, and with one behind it. run.py must fail for each, with that figure, and pass for the kernel as it was. With other macros it is held
against the one before."""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import targets  # noqa: E402
import tools    # noqa: E402

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run.py")
KERNEL = """
#define N %(sums)d
__attribute__((reqd_work_group_size(%(group)d, 1, 1)))
__kernel void planted(__global float *out, __global const float *a, __global const float *b, int n) {
    float sums[N];
    int item = get_global_id(0);
    #pragma unroll
    for (int k = 0; k < N; k++) sums[k] = 0;
    #pragma nounroll
    for (int i = 0; i < n; i++) {
        float x = a[i * 64 + item];
        if (x == 0.5f) continue; // a second way back
        #pragma unroll
        for (int k = 0; k < N; k++) sums[k] = fma(x, %(load)s, sums[k]);
    }
    #pragma unroll
    for (int k = 0; k < N; k++) out[k * 64 + item] = sums[k];
}
// The next element is fetched while this one is multiplied.
__attribute__((reqd_work_group_size(64, 1, 1)))
__kernel void nested(__global float *out, __global const float *a, int n, int turns) {
    __local float own[64];
    int item = get_local_id(0);
    float sum = 0.0f;
    own[item] = a[item];
    #pragma nounroll
    for (int t = 1; t < turns; t++) {
        float next = %(next)s;
        #pragma nounroll
        for (int i = 0; i < n; i++) {
            float x = own[(item + i) %% 64];
            sum = fma(x, x, fma(sum, x, fma(x, sum, sum)));
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        own[item] = %(keep)s;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[get_global_id(0)] = sum;
}
"""
GOOD = {"sums": 8, "group": 64, "load": "b[i * N + k]", "next": "0.0f; if (t + 1 < turns) next = a[t * 64 + item]", "keep": "next"}
FURTHER_LOAD = {"load": "(b[i * N + k] * a[i * 7 + k * item])"}
# What becomes worse, and where: a kernel, changes, and the makers whose compilers tell it.
PLANTED = {
    "spills": ("planted", {"sums": 300, "group": 1024}, ("gfx906", "sm_80", "dg2")),
    "waves": ("planted", {"sums": 56}, ("gfx906", "sm_80")),
    "glds": ("planted", FURTHER_LOAD, ("gfx906", "sm_80", "dg2")),
    "around": ("nested", {"keep": "next + (float)(t / n % (t + item))"}, ("gfx906", "sm_80", "dg2")),
    "ahead 1 -> 0": ("nested", {"next": GOOD["next"] + "; if (next == 0.5f) sum += 1.0f"}, ("gfx906", "sm_80")),
    "ahead 1 -> none": ("nested", {"next": "0.0f", "keep": "a[t * 64 + item]"}, ("sm_80",)),  # AMD's moves it to the loop's beginning
}


def compile_and_compare(folder, changes, *options, turn="", key="0"):
    with open(os.path.join(folder, "planted.cl"), "w") as file:
        file.write(KERNEL % dict(GOOD, **changes))
    with open(os.path.join(folder, "kernels.tsv"), "w") as file:
        for name in ("planted", "nested"):
            file.write(f"{name}\tplanted\t{name}\t{key}\tself\ttest\t64\t0\there\n")
    done = subprocess.run([sys.executable, RUN, "-", "--programs", folder, "--table", os.path.join(folder, "table"), *options],
                          stdout=subprocess.PIPE, text=True, env=dict(os.environ, CLEAVE_TURN=turn))
    return done.returncode, done.stdout


def turns_hide_nothing(folder, wanted):
    """A part of the targets for a program that is what the table was made of, all of them for another, or if the table was changed by
    hand. How many do not."""
    compile_and_compare(folder, {}, "--update")
    failures = 0
    compiled = 0
    for turn in "12345":
        code, said = compile_and_compare(folder, {}, turn=turn)
        of_all = re.search(r"(\d+) of (\d+) programs for a target were compiled", said)
        if code or "compiled for" in said or not of_all:
            print(f"FAILED: the same program is not left to its turn:\n{said}")
            failures += 1
        compiled += int(of_all.group(1)) if of_all else 0
    if of_all and compiled != int(of_all.group(2)):
        print(f"FAILED: five turns compile for {compiled} of {of_all.group(2)} targets")
        failures += 1
    table = os.path.join(folder, "table")
    with open(table) as file:
        kept = file.read()
    with open(table, "w") as file:
        file.write(kept + "# by hand\n")
    code, said = compile_and_compare(folder, {}, turn="1")
    if code or "all is compiled" not in said or "the others" in said:
        print(f"FAILED: a table that was changed by hand is believed:\n{said}")
        failures += 1
    with open(table, "w") as file:
        file.write(kept)
    code, said = compile_and_compare(folder, FURTHER_LOAD, turn="1")
    for target in wanted:
        if code == 0 or f"worse: {target}: planted 0 self:test: glds " not in said:
            print(f"FAILED: {target}: a changed program waits for its turn:\n{said}")
            failures += 1
    return failures


def main():
    missing = tools.find()[1]
    # One of each maker; occupancy is known of AMD's and NVIDIA's alone.
    wanted = [target for target in ("gfx906", "sm_80", "dg2") if target not in missing]
    failures = 0
    if not wanted:
        print("left out: there is none of the compilers")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        options = ["--targets", ",".join(wanted)]
        compile_and_compare(folder, {}, "--update", *options)
        for changes, n in (({}, 0), ({"sums": 9}, 1), ({}, 1)):
            code, said = compile_and_compare(folder, changes, "--update", *options)
            if code or f"{n} of 1 programs compiled" not in said:
                print(f"FAILED: --update compiles something else than what changed:\n{said}")
                failures += 1
        code, said = compile_and_compare(folder, {}, *options)
        if code:
            print(f"FAILED: the same kernel is called worse:\n{said}")
            failures += 1
        for what, (kernel, changes, who) in PLANTED.items():
            code, said = compile_and_compare(folder, changes, *options)
            for target in set(wanted) & set(who):
                if code == 0 or f"worse: {target}: {kernel} 0 self:test: {what}" not in said:
                    print(f"FAILED: {target}: a planted change of '{what}' is not seen:\n{said}")
                    failures += 1
        code, said = compile_and_compare(folder, FURTHER_LOAD, "--update", *options, key="1")  # other macros
        for target in wanted:
            if f"worse: {target}: planted 1 self:test: glds " not in said or "(before: 0)" not in said:
                print(f"FAILED: {target}: a kernel with other macros is not held against the one before:\n{said}")
                failures += 1
    with tempfile.TemporaryDirectory() as folder:
        failures += turns_hide_nothing(folder, [target for target in targets.TARGETS if target not in missing and target != "spir"])
    print(f"planted on {' and '.join(wanted)}: {', '.join(PLANTED)}: {failures} not seen")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
