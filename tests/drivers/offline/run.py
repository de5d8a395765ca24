#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles every kernel that a device with lanes can get by compilers of three vendors, without a device, and holds what they say
against kernels.tsv: a kernel that became worse fails, and so does one that is new or gone until the table is made again. A new one is
held against a gone one of the same entry and use: the same kernel with other macros.

Needs clang-15, libclc-15, llvm-spirv-15, spirv-tools; ocloc and its libraries; ptxas and nvdisasm. tools.py brings the last
three. run.sh does it all.
A compiler that is not there is left out with a note, and its columns are not compared.
"""
import argparse
import concurrent.futures
import hashlib
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import readme   # noqa: E402
import targets  # noqa: E402
import tools    # noqa: E402

TABLE = os.path.join(HERE, "kernels.tsv")
N_WORST = 20  # in the README
PROGRAMS = "programs.tsv"  # beside the table: what its figures were made of
UNITS = "gemm_units"  # the program whose kernels use matrix units; elsewhere its cells are "ok"
SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # compilers write thousands of files
FIGURES = ["registers", "spills", "scratch", "local", "waves", "simd", "fma", "lds", "glds", "around", "ahead"]
# What is worse: more, or less, by more than this part and this much. Registers alone tell nothing: waves do.
MORE_IS_WORSE = {"spills": (0, 0), "scratch": (0, 0), "local": (0, 0), "lds": (0.02, 0.005), "glds": (0.02, 0.005), "around": (0.05, 0.05)}
LESS_IS_WORSE = {"waves": (0, 0), "simd": (0, 0), "fma": (0, 0.01), "ahead": (0, 0)}


def text_of(figures, name):
    value = figures.get(name)
    if value is None:
        return "-"
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def cell(figures):
    return "/".join(text_of(figures, name) for name in FIGURES) if figures else "ok"


def stems_of(folder):
    """The programs, the longest first."""
    return sorted((name[:-3] for name in os.listdir(folder) if name.endswith(".cl")),
                  key=lambda stem: -os.path.getsize(os.path.join(folder, stem + ".cl")))


def programs_of(folder, names):
    """kernel's name -> the program that has it, where names end in a hash (kernels.c): programs of few kernels are put together."""
    programs = {}
    for stem in stems_of(folder):
        with open(os.path.join(folder, stem + ".cl")) as file:
            words = set(re.findall(r"\w+", file.read()))
        programs.update((name, stem) for name in names if name in words or name[-17:] in words)
    return programs


def compile_all(folder, wanted, have):
    """wanted: program -> its targets. A dict kernel's name -> target -> figures, and the sentences of what did not compile."""
    found, mistakes = {}, []

    def one(job):
        target, stem = job
        if stem == UNITS and target not in targets.WITH_UNITS:
            return target, {}
        with tempfile.TemporaryDirectory(dir=SCRATCH) as scratch:
            try:
                return target, targets.TARGETS[target](target, os.path.join(folder, stem + ".cl"), scratch, have)
            except targets.Failed as failed:
                mistakes.append(f"{target}: {stem}.cl: {failed}")
                return target, {}

    # First one target of each maker: the others take over a part of what is made for it.
    jobs, later = [], []
    for stem in stems_of(folder):
        makers = set()
        for target in wanted[stem]:
            (later if targets.TARGETS[target] in makers else jobs).append((target, stem))
            makers.add(targets.TARGETS[target])
    jobs += later
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for target, kernels in pool.map(one, jobs):
            for name, figures in kernels.items():
                found.setdefault(name, {})[target] = figures
    return found, mistakes


def fingerprints(folder, wanted, have):
    """What the figures of each program and target come from: the program's text, and the compilers."""
    versions = {target: targets.version_of(target, have) for target in wanted}
    prints = {}
    for stem in stems_of(folder):
        with open(os.path.join(folder, stem + ".cl"), "rb") as file:
            text = file.read()
        for target in wanted:
            prints[stem, target] = hashlib.sha256(text + versions[target].encode()).hexdigest()[:12]
    return prints


def hash_of_table(table):
    with open(table, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:12]


def read_fingerprints(table):
    """Of a table that is not as --update left it nothing is known: where its figures come from was said of another."""
    path = os.path.join(os.path.dirname(table), PROGRAMS)
    if not os.path.exists(path) or not os.path.exists(table):
        return {}
    with open(path) as file:
        if f" {hash_of_table(table)} " not in file.readline():
            return {}
    return {(stem, target): made for stem, row in read_table(path, 1).items() for target, made in row.items()}


def write_fingerprints(table, prints, wanted, stems):
    with open(os.path.join(os.path.dirname(table), PROGRAMS), "w") as out:
        out.write(f"# Made with kernels.tsv {hash_of_table(table)} by run.py --update: hashes of the programs and compilers that its figures "
                  "come from\n")
        out.write("\t".join(["program"] + wanted) + "\n")
        for stem in sorted(stems):
            out.write("\t".join([stem] + [prints[stem, t] for t in wanted]) + "\n")


def in_turn(wanted, i):
    """Of program i, with a number in CLEAVE_TURN, every fifth target, so that each program and each target has its share of every turn.
    .ci/run draws the number by the commit."""
    turn = os.environ.get("CLEAVE_TURN")
    return [target for j, target in enumerate(wanted) if not turn or (int(turn) + i + j) % 5 == 0]


def read_table(path, n_keys=3):
    rows = {}
    with open(path) as file:
        lines = [line.rstrip("\n") for line in file if not line.startswith("#")]
    head = lines[0].split("\t")
    for line in lines[1:]:
        fields = line.split("\t")
        rows[" ".join(fields[:n_keys])] = dict(zip(head[n_keys:], fields[n_keys:]))
    return rows


def worse(old, new):
    """The figures of a cell that became worse, as texts."""
    out = []
    if old == new or "ok" in (old, new) or not old:
        return out
    for name, was, now in zip(FIGURES, old.split("/"), new.split("/")):
        bounds = MORE_IS_WORSE.get(name) or LESS_IS_WORSE.get(name)
        if not bounds or was == now:
            continue
        if was == "-" or now == "-":
            if now == "-" and name in LESS_IS_WORSE:
                out.append(f"{name} {was} -> none")
            continue
        change = float(now) - float(was) if name in MORE_IS_WORSE else float(was) - float(now)
        if change > bounds[0] * float(was) + bounds[1]:
            out.append(f"{name} {was} -> {now}")
    return out


def predecessors(rows, kept):
    """new kernel -> the one that is gone, of the same entry and use, whose figures are the likest: other macros of the same."""
    def alike(key):
        entry, _key, use = key.split(" ")
        return entry, use

    def differences(a, b):
        return sum(was != now for target in a if target in b for was, now in zip(a[target].split("/"), b[target].split("/")))

    before = {}
    gone = [key for key in kept if key not in rows]
    for key in rows:
        candidates = [g for g in gone if alike(g) == alike(key)] if key not in kept else []
        if candidates:
            before[key] = min(candidates, key=lambda g: differences(kept[g], rows[key]))
    return before


def worst(rows, n):
    """The kernels whose innermost loop has the smallest share of FMAs: that of the target where it is smallest of four. As lines."""
    shown = ["gfx906", "gfx1030", "dg2", "sm_80"]
    figures = []
    for key, cells in rows.items():
        parts = [cells.get(target, "ok").split("/") for target in shown]
        shares = [part[6] if len(part) > 8 else "-" for part in parts]
        known = [float(share) for share in shares if share != "-"]
        if known:
            figures.append((min(known), key, shares, parts[1][8] if len(parts[1]) > 8 else "-"))
    lines = ["| kernel | use | " + " | ".join(shown) + " | floats from global memory an FMA (gfx1030) |", "|---" * (len(shown) + 3) + "|"]
    seen = set()
    for _least, key, shares, far in sorted(figures):
        entry, _key, use = key.split(" ")
        if (entry, use) in seen:  # another set of macros of the same
            continue
        seen.add((entry, use))
        if len(seen) > n:
            break
        lines.append(f"| `{entry}` | {use} | " + " | ".join(shares) + f" | {far} |")
    return lines


def hold_readme(table, update):
    return readme.hold(os.path.join(HERE, "README.md"), worst(read_table(table), N_WORST), update) if table == TABLE else 0


def main():
    about, needs = __doc__.strip().rsplit("\n\n", 1)
    parser = argparse.ArgumentParser(description=about, epilog=needs, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list", nargs="?", metavar="LIST",
                        help="the program build/*/tests/drivers/offline_kernels, which writes the kernels down")
    parser.add_argument("--update", action="store_true", help="write the table again, and show what became worse; programs and "
                        f"compilers that {PROGRAMS} has as they are give what the table says (without that file all are compiled)")
    parser.add_argument("--targets", metavar="A,B", help="only these of " + ", ".join(targets.TARGETS))
    parser.add_argument("--programs", metavar="FOLDER", help="compile these instead of what LIST writes: a folder with kernels.tsv and "
                        "programs as LIST makes them")
    parser.add_argument("--table", metavar="FILE", default=TABLE, help="another table than kernels.tsv")
    parser.add_argument("--worst", metavar="N", type=int, help="of the table: the N kernels with the smallest share of FMAs in their "
                        "innermost loop, as text for a README")
    options = parser.parse_args()
    update, table = options.update, options.table
    if not os.path.isfile(table) and not update:
        parser.error(f"there is no table {table}: give another with --table")
    if options.worst is not None:
        print("\n".join(worst(read_table(table), options.worst)))
        return 0
    if not options.list and not options.programs:
        parser.error("neither LIST nor --programs is given")
    if not os.environ.get("CLEAVE_TURN", "0").isdecimal() and os.environ["CLEAVE_TURN"]:
        parser.error(f"CLEAVE_TURN is '{os.environ['CLEAVE_TURN']}', it must be a whole number")
    if not options.programs and not os.access(options.list, os.X_OK):
        parser.error(f"LIST '{options.list}' is no program that can be run: build the preset it belongs to")
    if options.programs and not os.path.isfile(os.path.join(options.programs, "kernels.tsv")):
        parser.error(f"--programs '{options.programs}' is no folder with a kernels.tsv")
    unknown = [t for t in (options.targets or "").split(",") if t and t not in targets.TARGETS]
    if unknown:
        parser.error(f"--targets: there is no '{unknown[0]}'; there are {', '.join(targets.TARGETS)}")
    with tempfile.TemporaryDirectory(dir=SCRATCH) as made:
        folder = options.programs or made
        if folder == made:
            subprocess.run([options.list, made], check=True)
        have, missing = tools.find()
        wanted = [t for t in targets.TARGETS if t not in missing and t in (options.targets or t).split(",")]
        prints, known = fingerprints(folder, wanted, have), read_fingerprints(table)
        with open(os.path.join(folder, "kernels.tsv")) as file:
            listed = [line.rstrip("\n").split("\t") for line in file]
        programs = programs_of(folder, {name for name, *_ in listed})
        kept = read_table(table) if os.path.exists(table) else {}
        chosen = {stem: wanted for stem in stems_of(folder)}
        if update:
            full = {stem for name, stem, entry, key, op, variant, *_ in listed for stem in [programs.get(name, stem)]
                    if not set(wanted) <= set(kept.get(f"{entry} {key} {op}:{variant}", {}))}
            chosen = {stem: [t for t in wanted if stem in full or prints[stem, t] != known.get((stem, t))] for stem in chosen}
        elif not options.targets and os.environ.get("CLEAVE_TURN"):
            turns = {stem: in_turn(wanted, i) for i, stem in enumerate(sorted(chosen))}
            chosen = {stem: [t for t in wanted if t in turns[stem] or prints[stem, t] != known.get((stem, t))] for stem in chosen}
            if not known:
                print(f"the table is not as --update left it, or {PROGRAMS} is not there: all is compiled")
            for stem in chosen if known else []:
                if chosen[stem] != turns[stem]:
                    print(f"{stem}.cl is not what the table was made of: compiled for {', '.join(chosen[stem])}")
        for target, why in missing.items():
            print(f"left out: {target}: {why}")
        found, mistakes = compile_all(folder, chosen, have)
    if not wanted:
        print("no target has its compiler")
        return 77
    rows = {}
    for name, stem, entry, key, op, variant, _group, _local, _met in listed:
        stem = programs.get(name, stem)
        looked_at = chosen.get(stem, wanted)
        cells = {target: cell(found.get(name, {}).get(target)) for target in looked_at}
        for target in looked_at:
            if stem == UNITS and target not in targets.WITH_UNITS:
                continue
            if target not in found.get(name, {}) and not any(m.startswith(f"{target}: {stem}.cl") for m in mistakes):
                mistakes.append(f"{target}: {entry} {key} ({op}:{variant}) is not in what the compiler made")
        rows[f"{entry} {key} {op}:{variant}"] = cells
    n_worse, before = 0, predecessors(rows, kept)
    for key, cells in rows.items():
        than = f" (before: {before[key].split(' ')[1]})" if key in before else ""
        for target, now in cells.items():
            for what in worse(kept.get(before.get(key, key), {}).get(target, ""), now):
                print(f"worse: {target}: {key}: {what}{than}")
                n_worse += 1
    new, gone = [k for k in rows if k not in kept], [k for k in kept if k not in rows]
    for sentence in mistakes:
        print(f"failed: {sentence}")
    if update and mistakes:
        print("the table is as it was: first mend what failed")
        return 1
    if update:
        for key, cells in rows.items():  # what was not compiled is what the table has
            cells.update({t: kept[key][t] for t in wanted if t not in cells})
        with open(table, "w") as out:
            out.write("# Made by tests/drivers/offline/run.py --update. A cell: " + "/".join(FIGURES) + " (targets.py says what they are)\n")
            out.write("\t".join(["entry", "key", "use"] + wanted) + "\n")
            for key, cells in rows.items():
                out.write("\t".join(key.split(" ") + [cells[t] for t in wanted]) + "\n")
        write_fingerprints(table, prints, wanted, chosen)
        hold_readme(table, True)
        print(f"{len(rows)} kernels on {len(wanted)} targets written, {sum(map(bool, chosen.values()))} of {len(chosen)} programs compiled; "
              f"{n_worse} figures are worse, {len(new)} kernels are new, {len(gone)} gone")
        return 0
    for word, keys in (("new", new), ("gone", gone)):
        for key in keys[:10]:
            print(f"{word}: {key}: make the table again with --update, and look at the difference")
        if len(keys) > 10:
            print(f"{word}: {len(keys) - 10} more")
    failed = n_worse + len(new) + len(gone) + len(mistakes) + hold_readme(table, False)
    n_anew, n_all = sum(map(len, chosen.values())), len(chosen) * len(wanted)
    print(f"{len(rows)} kernels on {len(wanted)} targets: {n_worse} worse, {len(new)} new, {len(gone)} gone, {len(mistakes)} not compiled"
          + (f"; {n_anew} of {n_all} programs for a target were compiled, the others are those that the table was made of"
             if n_anew < n_all else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
