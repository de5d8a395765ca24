#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The part of a matrix unit's instructions among those of the innermost loop, of products whose operands are fetched by many bytes at once:
kernels_cl/gemm.cl with the tiles of 128 x 128 that runtime/ops/product/gemm.c has, in all transposes. Each has to reach LEAST, with no
spills; and so do convolutions, whose operands are packed (TAPS 2 and 3). On AMD's and Intel's units no tile may spill, and that of 128 x
128 has to reach LEAST_OF. (gfx90a has all steps of a tile in the loop, the others one.) A loop that fetches one by one is printed beside them and has to
be below it: else nothing is measured. Attention (kernels_cl/flash_attention_matrix.cl) is held to what it has. (Of heads of up
to 64 that is the part in a turn of the walk; where its products stay loops, in those.) And the part of FMAs, without a unit, in a whole slab of
the tile of 128 x 128: SLAB at least, with registers for two groups.

usage: units.py [--all]     --all: of every tile, without a bound"""
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import targets  # noqa: E402
import tools    # noqa: E402

KERNELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../kernels_cl")
COMMON = ["storage", "epilogue", "heads", "matrix"]
LEAST = 0.35
LEAST_OF = {"gfx1100": 0.36, "gfx1200": 0.42, "gfx90a": 0.35, "dg2": 0.31}
ATTENTION_OF = {"gfx1100": 0.15, "gfx1200": 0.21, "gfx90a": 0.34, "dg2": 0.16}
SLAB, SLABS_ON = 0.85, ["sm_90", "gfx1030"]
UNITS = {"sm_80": 1, "sm_90": 2, "gfx1100": 3, "gfx90a": 4, "dg2": 5, "gfx1200": 6}  # MATRIX_UNIT of kernels_cl/common/matrix.cl
NO_TF32 = ["gfx1100", "gfx1200", "dg2"]
CLANG_19 = ["gfx1100", "gfx1200"]  # clang 15 gives the first 128 registers, and does not know the other
# Items along columns and rows, columns and rows of an item, words of a tile's row.
WIDE, USUAL, SMALL = (16, 8, 8, 16, 16), (16, 16, 8, 8, 16), (16, 8, 4, 8, 16)
# What is held: how the unit's operands and A and B are stored, the tile, and the machines.
HELD = [("tf32", "float", "float", WIDE, ["sm_90"]),
        ("f16", "f16", "f16", WIDE, ["sm_80", "sm_90"]),
        ("bf16", "bf16", "bf16", WIDE, ["sm_80", "sm_90"])]
# Convolutions, whose operands are packed: TAPS, PHASES, A_ROWS and B_ROWS. Forward and by the input, of a stride in phases, by the weights.
TAPS = [(2, 0, 1, 1), (2, 1, 1, 1), (3, 0, 0, 0)]
# Of attention, as runtime/ops/attention/flash_attention.c has it: unit, rows' and heads' sizes, items; forward or back; the bound on sm_80
# and sm_90, elsewhere ATTENTION_OF. Nothing may spill.
ATTENTION = [("tf32", 32, 64, 32, 128, 0, 0.08), ("tf32", 64, 64, 32, 128, 0, 0.12), ("tf32", 32, 64, 32, 128, 1, 0.08),
             ("tf32", 64, 32, 32, 128, 1, 0.36), ("f16", 64, 64, 32, 128, 0, 0.08), ("f16", 128, 64, 32, 256, 0, 0.32),
             ("f16", 64, 64, 32, 128, 1, 0.12), ("f16", 128, 32, 32, 128, 1, 0.36), ("bf16", 64, 64, 32, 128, 0, 0.08),
             ("bf16", 64, 64, 32, 128, 1, 0.12)]
SHOWN = [("tf32", "float", "float", WIDE, ["sm_80"]), ("f16", "float", "f16", WIDE, ["sm_90"]), ("f16", "f16", "float", WIDE, ["sm_90"]),
         *((unit, a, a, tile, ["sm_80", "sm_90"]) for tile in (USUAL, SMALL)
           for unit, a in (("tf32", "float"), ("f16", "f16"), ("bf16", "float")))]


def source(number, unit, a, b, tile, a_rows, b_rows, wide, taps=0, phases=0):
    wx, wy, tn, tm, width = tile
    macros = {"T_A": a, "T_B": b, "WX": wx, "WY": wy, "TM": tm, "TN": tn, "TK": width * (1 if unit in ("tf32", "none") else 2), "MATRIX_TYPE": unit,
              "MATRIX_WIDTH": width, "A_ROWS": a_rows, "B_ROWS": b_rows, "A_WIDE": wide, "B_WIDE": wide, "TAPS": taps, "PHASES": phases}
    return instance(number, "gemm", macros)


def instance(number, stem, macros, without=r"(?!)"):
    """A kernel file with these macros, but for the kernels of that name."""
    with open(os.path.join(KERNELS, stem + ".cl")) as file:
        text = file.read()
    text = re.sub(rf"^__kernel GROUP void KERNEL\((?:{without})\).*?^\}}\n", "", text, flags=re.M | re.S)
    for name in macros:
        text = re.sub(rf"^#define {name} .*\n", "", text, flags=re.M)
    own = re.findall(r"^#define (\w+)", text, flags=re.M)
    begin = f"#undef KERNEL\n#define KERNEL(name) name##_{number}\n"
    return (begin + "".join(f"#define {name} {value}\n" for name, value in macros.items()) + text
            + "".join(f"#undef {name}\n" for name in dict.fromkeys([*own, *macros])))


def attention(number, unit, ep, bq, bk, items, backward, _least):
    stored = "float" if unit == "tf32" else unit
    macros = {"T_X": stored, "T_DY": stored, "T_Y": stored, "MATRIX_TYPE": unit, "EP": ep, "BQ": bq, "BK": bk, "ITEMS": items}
    return instance(number, "flash_attention_matrix", macros, "attend_matrix" if backward else r"attend_matrix_\w+")


def measured(texts, target, have, folder):
    """The figures of all kernels of these instances."""
    path = os.path.join(folder, "units.cl")
    with open(path, "w") as out:
        out.write(f"#define KERNEL(name) name\n#define MATRIX_UNIT {UNITS.get(target, 0)}\n")
        for stem in COMMON:
            with open(os.path.join(KERNELS, "common", stem + ".cl")) as file:
                out.write(file.read())
        out.write("".join(texts))
    if target in CLANG_19:
        return targets.amd(target, path, folder, have, have["clang-19"], dict(os.environ, LD_LIBRARY_PATH=have["clang_libraries"]))
    return targets.TARGETS.get(target, targets.amd)(target, path, folder, have)


def attention_wrong(target, have):
    """How many kernels of attention are not as they are to be."""
    units = [row for row in ATTENTION if row[0] != "tf32" or target not in NO_TF32]
    with tempfile.TemporaryDirectory() as folder:
        found = measured([attention(number, *row) for number, row in enumerate(units)], target, have, folder)
    wrong = 0
    for number, (unit, ep, *_sizes, backward, least) in enumerate(units):
        least = ATTENTION_OF.get(target, least)
        for entry in ("attend_matrix_queries", "attend_matrix_keys") if backward else ("attend_matrix",):
            figures = found[f"{entry}_{number}"]
            good = not figures["spills"] and figures["fma"] >= least
            wrong += not good
            print(f"{target} {unit} {entry}, heads of {ep}: {figures['fma']:.3f}, {figures['registers']} registers, {figures['spills']} bytes of spills"
                  + ("" if good else f": must be at least {least}, without spills"))
    return wrong


def slabs(target, have):
    """How many of a slab's loops are not as they should be. The loop is the slab: nothing but the tile is around it."""
    uses = [("none", "float", "float", USUAL, a_rows, b_rows, 1) for a_rows, b_rows in ((1, 0), (1, 1), (0, 1))]  # as is_wide of gemm.c
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        found = measured([source(number, *use) for number, use in enumerate(uses)], target, have, folder)
        for number, use in enumerate(uses):
            figures = found[f"gemm_{number}"]
            good = figures["fma"] >= SLAB and figures["around"] is None and figures["registers"] <= 128 and not figures["spills"]
            wrong += not good
            print(f"{target} float*float 128x128, {'NT'[not use[4]]}{'NT'[use[5]]}, a slab: {figures['fma']:.3f}, {figures['registers']} registers"
                  + ("" if good else f": must be at least {SLAB}, in 128 registers"))
    return wrong


def main():
    have, missing = tools.find()
    rows = HELD + SHOWN if "--all" in sys.argv[1:] else HELD
    wrong = sum(slabs(target, have) for target in SLABS_ON if target not in missing)
    for target in UNITS:
        if target in missing or (target in CLANG_19 and not have["clang-19"]):
            print(f"left out: {target}: {missing.get(target, 'there is no clang-19')}")
            continue
        uses = [(*row[:4], a_rows, b_rows, 1) for row in rows if target in row[4] for a_rows in (1, 0) for b_rows in (0, 1)]
        held = sum(4 for row in HELD if target in row[4])
        uses += [(*row[:4], 1, 0, 0) for row in HELD if target in row[4]]  # fetched one by one
        uses += [(unit, unit, unit, WIDE, a_rows, b_rows, 1, taps, phases) for unit in ("tf32", "f16", "bf16") if target in HELD[1][4]
                 for taps, phases, a_rows, b_rows in TAPS]
        if target in LEAST_OF:
            tiles = [("f16", "f16", tile) for tile in (WIDE, USUAL, SMALL)] + [("bf16", "float", tile) for tile in (USUAL, SMALL)]
            tiles += [("tf32", "float", tile) for tile in (WIDE, USUAL, SMALL) if target not in NO_TF32]
            uses = [(unit, a, a, tile, *rows, 1) for unit, a, tile in tiles for rows in ((1, 0), (1, 1), (0, 0), (0, 1))]
            uses += [("f16", "f16", "f16", tile, a_rows, b_rows, 1, taps, phases) for tile in (WIDE, USUAL, SMALL)
                     for taps, phases, a_rows, b_rows in TAPS]
        wrong += attention_wrong(target, have)
        if not uses:
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = measured([source(number, *use) for number, use in enumerate(uses)], target, have, folder)
        all_figures = [found[f"gemm_{number}"] for number in range(len(uses))]
        for i, (use, figures) in enumerate(zip(uses, all_figures)):
            unit, a, b, tile, a_rows, b_rows, wide, *taps = use
            share, good = figures["fma"], True
            if target in LEAST_OF:
                good = not figures["spills"] and (tile != WIDE or share >= LEAST_OF[target])
            elif i < held or taps:
                good = share >= LEAST and not figures["spills"]
            elif not wide:
                good = share < LEAST
            wrong += not good
            print(f"{target} {unit} {a}*{b} {tile[1] * tile[3]}x{tile[0] * tile[2]}, {tile[0] * tile[1]} items, {'NT'[not a_rows]}{'NT'[b_rows]}, "
                  f"{'taps' + ', phases' * taps[1] if taps else 'wide' if wide else 'one by one'}: {share:.3f}, {figures['registers']} registers, {figures['spills']} bytes of spills"
                  + ("" if good else f": must be {'below' if not wide else 'at least'} {LEAST_OF.get(target, LEAST)}, without spills"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
