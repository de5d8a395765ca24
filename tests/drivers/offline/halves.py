#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many instructions of NVIDIA's machines convert eight halves, by kernels_cl/common/storage.cl: what a kernel has beyond one that moves
as many bytes, without loads and stores. A float is a register, so eight of them take eight instructions; ptxas makes one of two floats to
halves. What integers take is printed beside it, and has to be more: else nothing is measured."""
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import targets  # noqa: E402
import tools    # noqa: E402

STORAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../kernels_cl/common/storage.cl")
MOST = {"load": 8, "store": 4}
KERNELS = """
#define MOVE(name, to, from, body) __kernel void name(__global to *y, __global const from *x) { int i = get_global_id(0); body; }
MOVE(eight_load_plain, float4, float4, float4 v = x[i]; y[2 * i] = v; y[2 * i + 1] = v)
MOVE(eight_store_plain, float4, float4, float4 v = x[2 * i]; float4 w = x[2 * i + 1]; v.x = w.y; v.z = w.w; y[i] = v)
MOVE(eight_load_f16, float8, f16, y[i] = ALOAD(f16, 8, x + 8 * i))
MOVE(eight_load_bf16, float8, bf16, y[i] = ALOAD(bf16, 8, x + 8 * i))
MOVE(eight_store_f16, f16, float8, ASTORE(f16, 8, x[i], y + 8 * i))
MOVE(eight_store_bf16, bf16, float8, ASTORE(bf16, 8, x[i], y + 8 * i))
"""


def instructions(way, target, have, folder):
    """kernel's name -> its instructions but loads and stores."""
    source, ptx, code = (os.path.join(folder, "halves." + kind) for kind in ("cl", "ptx", "cubin"))
    with open(STORAGE) as storage, open(source, "w") as file:
        file.write(storage.read() + KERNELS)
    with open(ptx, "w") as file:
        file.write(targets.ptx_text(source, "sm_80", [f"-DF16_WAY={way}"]))
    targets.run([have["ptxas"], f"-arch={target}", ptx, "-o", code])
    counts = {}
    for part in re.split(r"^\.text\.", targets.run([have["nvdisasm"], "-c", code]), flags=re.M)[1:]:
        lines = [re.sub(r"^\s*/\*\w+\*/\s*|\s*;.*$", "", line) for line in part.splitlines()]
        body = lines[:lines.index("EXIT") + 1]
        counts[part[:part.index(":")]] = sum(bool(re.match(r"(?:@!?U?P\d+ )?[A-Z]", line)) and not re.match(r"(?:LDG|STG|NOP)", line)
                                             for line in body)
    return counts


def main():
    have, missing = tools.find()
    failures = 0
    for target in ("sm_80", "sm_90"):
        if target in missing:
            print(f"left out: {target}: {missing[target]}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            machine, integers = (instructions(way, target, have, folder) for way in (2, 0))
        for what, most in MOST.items():
            for kind in ("f16", "bf16"):
                taken, before = (counts[f"eight_{what}_{kind}"] - counts[f"eight_{what}_plain"] for counts in (machine, integers))
                good = taken <= most < before
                failures += not good
                print(f"{'' if good else 'FAILED: '}{target}: a {what} of eight {kind}: {taken} instructions, {most} at most; by integers {before}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
