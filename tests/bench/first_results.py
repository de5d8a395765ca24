#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a first training gives, with nothing named, beside the same model in PyTorch with Adam at 0.001.

    first_results.py CLEAVE DIR [houses] [arrays] [kinds]

DIR is where made_data.py writes. PyTorch gets the same samples, standardized alike, and as many steps of as many samples; two seeds
each. Prints a row for each: what is measured, ours, PyTorch's, what always the mean or the commonest class would get.
"""
import csv
import json
import math
import subprocess
import sys

import numpy
import torch

torch.set_num_threads(2)


def cleave(tool, seed, *words):
    done = subprocess.run([tool, "train", *words, "--seed", str(seed), "--json", "--quiet"], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def fit(net, x, y, loss, steps, batch, seed, lr=1e-3):
    """Adam at a constant rate over shuffled batches."""
    torch.manual_seed(seed)
    for layer in net.modules():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
    optimizer, done = torch.optim.Adam(net.parameters(), lr), 0
    net.train()
    while done < steps:
        order = torch.randperm(len(x))
        for at in range(0, len(x), batch):
            if done == steps:
                break
            part = order[at:at + batch]
            optimizer.zero_grad()
            loss(net(x[part]), y[part]).backward()
            optimizer.step()
            done += 1
    return net.eval()


def mlp(inputs, outputs):
    return torch.nn.Sequential(torch.nn.Linear(inputs, 128), torch.nn.ReLU(), torch.nn.Linear(128, outputs))


def houses_of(path, known):
    rows = list(csv.DictReader(open(path)))
    columns = []
    for name in ("area", "rooms", "year", "distance", "plot"):
        values = numpy.array([float(r[name]) if r[name] else math.nan for r in rows])
        mean, std = numpy.nanmean(values[:known]), numpy.nanstd(values[:known])
        columns.append((numpy.where(numpy.isnan(values), mean, values) - mean) / std)
    for name in ("city", "kind"):
        for word in sorted({r[name] for r in rows}):
            columns.append(numpy.array([r[name] == word for r in rows], float))
    return numpy.stack(columns, 1).astype("float32"), numpy.array([float(r["price"]) for r in rows])


def told(what, measure, ours, theirs, least, less_is_better=True):
    a, b = sum(ours) / len(ours), sum(theirs) / len(theirs)
    worse = a / b - 1 if less_is_better else 1 - a / b
    print(f"| {what} | {measure} | {a:.4g} | {b:.4g} | {100 * worse:+.1f} % | {least:.4g} |", flush=True)


def houses(tool, folder):
    x, y = houses_of(folder + "/houses.csv", 900)
    mean, std = y[:900].mean(), y[:900].std()
    xs, ys = torch.tensor(x), torch.tensor((y - mean) / std, dtype=torch.float32)[:, None]
    ours, theirs = [], []
    for seed in (1, 2):
        result = cleave(tool, seed, "csv", folder + "/houses.csv", "--target", "price", "--missing", "mean")
        ours.append(result["metrics"]["mae"])
        net = fit(mlp(x.shape[1], 1), xs[:900], ys[:900], torch.nn.MSELoss(), result["steps"], 64, seed)
        theirs.append((net(xs[900:]) - ys[900:]).abs().mean().item() * std)
    told("houses.csv", "mean error", ours, theirs, abs(y[900:] - mean).mean())


def numbers(tool, folder):
    data = numpy.load(folder + "/arrays.npz")
    x, y = torch.tensor(data["x"]), torch.tensor(data["y"])[:, None]
    ours, theirs = [], []
    for seed in (1, 2):
        result = cleave(tool, seed, "arrays", folder + "/arrays.npz", "--inputs", "x", "--target", "y")
        ours.append(result["metrics"]["mae"])
        net = fit(mlp(8, 1), x[:1800], y[:1800], torch.nn.MSELoss(), result["steps"], 64, seed)
        theirs.append((net(x[1800:]) - y[1800:]).abs().mean().item())
    told("arrays, numbers", "mean error", ours, theirs, (y[1800:] - y[:1800].mean()).abs().mean().item())


def kinds(tool, folder):
    data = numpy.load(folder + "/arrays.npz")
    x, y = torch.tensor(data["x"]), torch.tensor(data["kind"])
    ours, theirs = [], []
    for seed in (1, 2):
        result = cleave(tool, seed, "arrays", folder + "/arrays.npz", "--inputs", "x", "--target", "kind")
        ours.append(result["test_accuracy"])
        net = fit(mlp(8, 3), x[:1800], y[:1800], torch.nn.CrossEntropyLoss(), result["steps"], 64, seed)
        theirs.append((net(x[1800:]).argmax(1) == y[1800:]).float().mean().item())
    told("arrays, classes", "accuracy", ours, theirs, y[1800:].bincount().max().item() / 200, False)


if __name__ == "__main__":
    made = {"houses": houses, "arrays": numbers, "kinds": kinds}
    if len(sys.argv) < 3 or any(name not in made for name in sys.argv[3:]):
        sys.exit(__doc__)
    print("| data | measure | cleave | PyTorch, Adam 0.001 | worse by | always the same |\n|---|---|---|---|---|---|")
    for each in sys.argv[3:] or made:
        made[each](sys.argv[1], sys.argv[2])
