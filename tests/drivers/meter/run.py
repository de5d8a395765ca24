#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the kernels of GPUs ask of memory, counted on the host: compiles what meter_launches writes, runs it (meter.c), and holds the
figures against meter.tsv: a kernel that became worse fails, and so does one that is new or gone until the table is made again. A variant
that a GPU can get and that has no row fails as well.

Needs clang-15, and PoCL's library of built-in functions. Exit 77: they are not there.
"""
import argparse
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import readme  # noqa: E402

TABLE = os.path.join(HERE, "meter.tsv")
CARD = "null:rx-580"
POCL = "/usr/share/pocl"
CLANG = "clang-15"
N_WORST = 20  # in the README
SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
# Of each row: sectors of 32 bytes a request of 32 neighbouring items, and the fewest that could hold what they ask for; the same for
# stores; both together for 64 and for 16 items; how many accesses of local memory wait for each other; all sectors of a step; how
# many times what its nodes must read and write all launches of a use move (in its first row).
FIGURES = ["loads", "ideal", "stores", "ideal", "by64", "by16", "ways", "worst", "sectors", "moved"]
KEYS = ["of", "model", "use", "kernel", "key"]
# What can be had and has no row, and why.
EXEMPT = {"full:plain": "fills memory, without a kernel",
          "topk:groups": "wants groups of 512, and the card that is metered has 256; checked as lanes"}
PARTS = 16  # of the nodes, which are measured beside each other
WORSE = {0: "sectors a load", 2: "sectors a store", 6: "ways in local memory", 8: "sectors in all"}


class Missing(Exception):
    pass


def run(command, cwd):
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:1] + command[-3:])}:\n{done.stdout[-2000:]}")
    return done.stdout


def library():
    found = sorted(glob.glob(f"{POCL}/kernel-x86_64*sse2.bc"))
    if not found:
        raise Missing(f"there is no library of PoCL's for sse2 in {POCL}")
    return found[0]


def build(folder):
    """FOLDER/meter from what is in it. Loops stay as they are: several of an item's accesses made one vector would be another request, and
    made a call of memcpy (-fno-builtin) none that is seen."""
    try:
        subprocess.run([CLANG, "--version"], stdout=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Missing(f"{CLANG}: {error}") from error
    builtins = library()

    def one(source):
        stem = os.path.basename(source)[:-3]
        text = os.path.join(folder, stem + ".host")
        with open(text, "w") as out, open(os.path.join(HERE, "host.cl")) as head, open(source) as body:
            out.write(head.read() + body.read())
        run([CLANG, "-x", "cl", "-cl-std=CL1.2", f"-I{POCL}/include", "-include", "_builtin_renames.h", "-include", "opencl-c-base.h",
             "-include", "opencl-c.h", "-Wno-everything", "-O2", "-fno-vectorize", "-fno-slp-vectorize", "-fno-builtin", "-ffp-contract=off",
             "-fsanitize=thread", "-fPIC", "-Xclang", "-mlink-builtin-bitcode", "-Xclang", builtins, "-c", text, "-o", stem + ".o"], folder)
        with open(os.path.join(folder, stem + ".o"), "rb") as made:
            unseen = sorted(set(re.findall(rb"_cl_v(?:load|store)\w*", made.read())))
        if unseen:
            raise SystemExit(f"{stem}.cl: accesses that the meter does not see: {b' '.join(unseen).decode()} (host.cl)")

    sources = sorted(glob.glob(os.path.join(folder, "*.cl")), key=os.path.getsize, reverse=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, sources))
    for name, source in (("nodes", os.path.join(folder, "nodes.c")), ("meter", os.path.join(HERE, "meter.c"))):
        run([CLANG, "-O2" if name == "meter" else "-O0", "-w", f"-I{HERE}", "-c", source, "-o", name + ".o"], folder)
    objects = [os.path.basename(source)[:-3] + ".o" for source in sources] + ["nodes.o", "meter.o"]
    # What kernels have in common is in each program; the first one is as good as the others.
    run([CLANG, "-Wl,-z,muldefs", *objects, "-lm", "-o", "meter"], folder)


def measure(folder):
    """Rows of figures by KEYS, summed up over the launches that are alike."""
    sums = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = list(pool.map(lambda part: run(["./meter", "data.bin", f"{part}/{PARTS}"], folder), range(PARTS)))
    lines = [line.split("\t") for line in "".join(said).splitlines()]
    for _node, *fields in sorted(lines, key=lambda line: int(line[0])):
        key, numbers = "\t".join(fields[:len(KEYS)]), [float(x) for x in fields[len(KEYS) + 1:]]
        have = sums.setdefault(key, [0.0] * len(numbers))
        for i, x in enumerate(numbers):
            have[i] = max(have[i], x) if i == 20 else have[i] + x
    rows, whole = {}, {}  # whole: sectors of a use, and the bytes that it must move
    for key, n in sums.items():
        use = whole.setdefault(key.rsplit("\t", 2)[0], [0, 0])
        use[0] += n[1] + n[10]
        use[1] += n[21] if len(n) > 21 else 0
    for key, n in sums.items():
        side = lambda s, w: n[9 * s + 3 * w:9 * s + 3 * w + 3]  # requests, sectors, ideal
        ratio = lambda a, b: a / b if b else None
        both = lambda w: [x + y for x, y in zip(side(0, w), side(1, w))]
        all_sectors = both(0)[1]
        all_of_use, must = whole.pop(key.rsplit("\t", 2)[0], (0, 0))  # told once, in its first row
        rows[key] = [ratio(side(0, 0)[1], side(0, 0)[0]), ratio(side(0, 0)[2], side(0, 0)[0]), ratio(side(1, 0)[1], side(1, 0)[0]),
                     ratio(side(1, 0)[2], side(1, 0)[0]), ratio(both(1)[1], both(1)[0]), ratio(both(2)[1], both(2)[0]),
                     ratio(n[19], n[18]), n[20], all_sectors, ratio(32 * all_of_use, must)]
    models = {}
    for key, n in sums.items():
        of, model = key.split("\t")[:2]
        if of != "step":
            continue
        all_of_model = models.setdefault(model, [0, 0])
        all_of_model[0] += n[1] + n[10]
        all_of_model[1] += n[2] + n[11]
    print("sectors of all, by their ideal: " + ", ".join(f"{model} {a / b:.2f}" for model, (a, b) in sorted(models.items()) if b))
    return rows


def text_of(value):
    return "-" if value is None else f"{value:.4g}" if value < 1000 else f"{value:.0f}"


def read_table(path):
    with open(path) as file:
        lines = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    return {"\t".join(fields[:len(KEYS)]): fields[len(KEYS):] for fields in lines[1:]}


def worst(rows, n, of):
    """The rows of a step, or of nodes by themselves, with the most sectors that their ideal would not need, as lines."""
    waste = []
    for key, cells in rows.items():
        if key.split("\t")[0] != of:
            continue
        number = [None if cell == "-" else float(cell) for cell in cells]
        # Of the sectors of loads and of stores the part that their ideal would not need; both are weighed alike.
        parts = [1 - number[i + 1] / number[i] for i in (0, 2) if number[i]]
        waste.append((number[8] * max(parts, default=0), key, cells))
    waste.sort(reverse=True)
    lines = ["| model | use | kernel | sectors a load (ideal) | sectors a store (ideal) | ways | "
             f"MiB of sectors {'a step' if of == 'step' else 'of the node'} |", "|---" * 7 + "|"]
    for _, key, c in waste[:n]:
        _of, model, use, entry, _hash = key.split("\t")
        lines.append(f"| {model} | {use} | `{entry}` | {c[0]} ({c[1]}) | {c[2]} ({c[3]}) | {c[6]} | {float(c[8]) * 32 / 2**20:.0f} |")
    return lines


def hold_readme(table, update):
    if table != TABLE:
        return 0
    rows = read_table(table)
    return sum(readme.hold(os.path.join(HERE, "README.md"), worst(rows, N_WORST, of), update) for of in ("step", "node"))


def without_rows(folder, rows):
    """Tell each use that a null card with lanes can get and that has no row; how many."""
    have = {key.split("\t")[2] for key in rows}
    with open(os.path.join(folder, "uses.txt")) as file:
        wanted = set(file.read().split())
    for use in sorted(wanted - have - set(EXEMPT)):
        print(f"no row: {use}: a card can get it, and no node was found or metered that shows it (others.c)")
    for use in sorted(set(EXEMPT) & have):
        print(f"exempt: {use} has a row: take it off EXEMPT")
    print(f"{len(wanted)} uses can be had: {len(wanted & have)} have rows, {len(wanted & set(EXEMPT))} exempt")
    return len(wanted - have - set(EXEMPT)) + len(set(EXEMPT) & have)


def compare(rows, path, update):
    texts = {key: [text_of(value) for value in figures] for key, figures in rows.items()}
    kept = read_table(path) if os.path.exists(path) else {}
    n_worse = 0
    for key, now in texts.items():
        for i, what in WORSE.items():
            was = kept.get(key, now)[i]
            if was != now[i] and now[i] != "-" and (was == "-" or float(now[i]) > 1.02 * float(was)):
                print(f"worse: {' '.join(key.split(chr(9)))}: {what} {was} -> {now[i]}")
                n_worse += 1
    blind = [key for key, figures in rows.items() if not figures[8]]
    for key in blind:
        print(f"blind: {' '.join(key.split(chr(9)))}: not one access to memory was seen, and every kernel has some")
    new, gone = [key for key in texts if key not in kept], [key for key in kept if key not in texts]
    if update:
        with open(path, "w") as out:
            out.write("# Made by tests/drivers/meter/run.py --update, which says what the figures are.\n")
            out.write("\t".join(KEYS + FIGURES) + "\n")
            for key in sorted(texts):
                out.write(key + "\t" + "\t".join(texts[key]) + "\n")
        print(f"{len(texts)} rows written; {n_worse} figures are worse, {len(new)} rows are new, {len(gone)} gone")
        hold_readme(path, True)
        return 1 if blind else 0
    for word, keys in (("new", new), ("gone", gone)):
        for key in keys[:10]:
            print(f"{word}: {' '.join(key.split(chr(9)))}: make the table again with --update, and look at the difference")
    print(f"{len(texts)} rows: {n_worse} worse, {len(new)} new, {len(gone)} gone")
    return 1 if n_worse or new or gone or blind or hold_readme(path, False) else 0


def main():
    about, needs = __doc__.strip().rsplit("\n\n", 1)
    parser = argparse.ArgumentParser(description=about, epilog=needs, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("launches", nargs="?", metavar="LAUNCHES", help="the program build/*/tests/drivers/meter_launches")
    parser.add_argument("--update", action="store_true", help="write the table again, and show what became worse")
    parser.add_argument("--table", metavar="FILE", default=TABLE, help="another table than meter.tsv")
    parser.add_argument("--folder", help="instead of LAUNCHES: a folder with kernels, nodes.c, uses.txt and data.bin as it makes them")
    parser.add_argument("--worst", metavar="N", type=int, help="of the table: the N kernels with the most sectors beyond what they need "
                        "in a training step, as text for a README")
    parser.add_argument("--others", action="store_true", help="with --worst: of those that no step has")
    options = parser.parse_args()
    if not os.path.isfile(options.table) and not options.update:
        parser.error(f"there is no table {options.table}: give another with --table")
    if options.worst is not None:
        print("\n".join(worst(read_table(options.table), options.worst, "node" if options.others else "step")))
        return 0
    if not options.launches and not options.folder:
        parser.error("neither LAUNCHES nor --folder is given")
    if options.launches and not os.access(options.launches, os.X_OK):
        parser.error(f"LAUNCHES '{options.launches}' is no program that can be run: build the preset it belongs to")
    if options.folder and not os.path.isfile(os.path.join(options.folder, "uses.txt")):
        parser.error(f"--folder '{options.folder}' is no folder with a uses.txt")
    with tempfile.TemporaryDirectory(dir=SCRATCH) as made:
        folder = options.folder or made
        try:
            if folder == made:
                run([os.path.abspath(options.launches), made, CARD, "--others"], made)
            build(folder)
        except Missing as missing:
            print(f"left out: {missing}")
            return 77
        status = 0
        if folder == made:
            done = subprocess.run(["./meter", "data.bin", "--samples"], cwd=folder)
            status = 1 if done.returncode else 0
        rows = measure(folder)
        status |= 1 if without_rows(folder, rows) else 0
        return compare(rows, options.table, options.update) or status


if __name__ == "__main__":
    sys.exit(main())
