#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of torchvision and transformers, exported by PyTorch and read by Cleave: what runs and what trains. Writes models.tsv.

    models.py CLEAVE [PATTERN ...] [--exporter old|new] [--device cpu] [--again] [--results]

A row for each model and exporter, by tools/parity-pytorch.py, which says what its numbers are: nodes of the file, the results beside ONNX
Runtime's, and both beside PyTorch's in f64, for pictures of the size that the model's weights are for (`side`; of some rows they
are smaller yet). In smaller ones the loss, all gradients, and the worst one beside PyTorch's in f64; `smooth` has the
gradients with SiLU for ReLU where they are further off than 1e-5, which leaves ReLUs at their kinks out; `kept`
of the parameters how many the file has, as exporters may fold some; `refused` the sentence that ended it; `theirs` how far PyTorch's own
gradients in f32 are off, with SiLU where there is a `smooth`, which tells what of it the model makes of any rounding (not in older rows).
Lines that begin with # tell what was not tried, and why. Rows that are there stay, but for --again, and --results, which measures results
alone anew. By hand: it takes hours, and wants torch, torchvision, transformers, onnx and onnxruntime."""
import argparse
import fnmatch
import gc
import importlib.util
import pathlib
import shutil
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
COLUMNS = ["model", "exporter", "nodes", "run", "exact", "peer", "loss", "gradients", "worst", "smooth", "kept", "refused", "theirs", "side"]
RESULTS = COLUMNS[3:6]
DETECTORS = ["backbone:resnet50", "backbone:mobilenet_v3_large"]
TEXTS_AND_SOUNDS = ["bert", "gpt2", "llama", "vit", "whisper", "t5"]


def script(path):
    spec = importlib.util.spec_from_file_location("parity", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


parity = script(HERE.parent.parent / "tools" / "parity-pytorch.py")


def names():
    from torchvision import models
    return TEXTS_AND_SOUNDS + models.list_models(models) + models.list_models(models.segmentation) + DETECTORS


def read_rows(path):
    lines = [line.split("\t") for line in path.read_text().splitlines() if not line.startswith("#")] if path.exists() else []
    return {tuple(line[:2]): line for line in lines if line[:1] != COLUMNS[:1]}


def write_rows(path, rows):
    head = [line for line in path.read_text().splitlines() if line.startswith("#")] if path.exists() else []
    path.write_text("\n".join(head + ["\t".join(COLUMNS)] + ["\t".join(rows[key]) for key in sorted(rows)]) + "\n")


def number(table, key):
    return f"{table[key]:.1e}" if key in table else ""


def attempt(cleave, name, exporter, device, old):
    """A row; of one that is there, `old`, what is not measured anew."""
    folder = tempfile.mkdtemp()
    try:
        table = parity.parity(cleave, name, exporter, device, size="own", folder=folder, trains=False)
        if old:
            row = dict(zip(COLUMNS, old), refused=table.get("refused", ""))
            row |= {key: number(table, key) for key in RESULTS} | {key: str(table.get(key, "")) for key in ("nodes", "side")}
            return [row.get(key, "") for key in COLUMNS]
        if "refused" not in table:
            table = parity.parity(cleave, name, exporter, device, folder=folder) | {key: table[key] for key in RESULTS + ["side"] if key in table}
        if table.get("gradients", 0) > 1e-5:
            relu = parity.F.relu
            other = parity.parity(cleave, name, exporter, device, folder=folder, smooth=True, winograd=device == "host")
            parity.F.relu = relu
            table["smooth"] = other.get("gradients", 1.0)
            table["theirs"] = other.get("theirs", 1.0)
    except Exception as fault:  # of an exporter
        lines = str(fault).strip().splitlines() or [""]
        table = {"refused": f"{type(fault).__name__}: {lines[0]}"}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        gc.collect()
    worst = "{:.1e} {}".format(*table["worst"]) if "worst" in table else ""
    return [name, exporter, str(table.get("nodes", "")), number(table, "run"), number(table, "exact"),
            number(table, "peer"), number(table, "loss"), number(table, "gradients"), worst,
            number(table, "smooth"), table.get("kept", ""), table.get("refused", "").replace("\t", " ")[:300], number(table, "theirs"),
            str(table.get("side", ""))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cleave")
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--exporter", choices=("old", "new"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--results", action="store_true")
    args = parser.parse_intermixed_args()
    path, wanted = HERE / "models.tsv", []
    for pattern in args.patterns:
        wanted += [name for name in fnmatch.filter(names(), pattern) if name not in wanted]
    for name in wanted:
        for exporter in [args.exporter] if args.exporter else ["old", "new"]:
            old = read_rows(path).get((name, exporter))
            if args.results and not old or old and not (args.again or args.results):
                continue
            row = attempt(args.cleave, name, exporter, args.device, old if args.results else None)
            write_rows(path, read_rows(path) | {(name, exporter): row})
            print("\t".join(row), flush=True)


main()
