#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same training by `cleave train` and by PyTorch: the same first weights, samples in the same order, the same recipe. Prints both losses.

    same_recipe.py CLEAVE text FILE [STEPS]             the GPT of characters, batch 16, AdamW 0.001, cosine
    same_recipe.py CLEAVE csv FILE TARGET [EPOCHS]      the mlp on a table of numbers, standardized, batch 64, Adam 0.001

By hand: PyTorch is needed, and minutes. The first weights are what Cleave writes after a step with a learning rate of 1e-30.
"""
import csv
import json
import math
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

CONTEXT, WIDTH, HEADS, LAYERS, KEPT = 128, 192, 6, 4, 0.9


def cleave(tool, words):
    """A training's result, as JSON."""
    said = subprocess.run([tool, "train", *words, "--json", "--quiet", "--no-shuffle"], check=True, stdout=subprocess.PIPE)
    return json.loads(said.stdout)


def read_weights(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = np.frombuffer(data[8 + n + begin:8 + n + end], np.float32).copy()
        tensors[name] = torch.from_numpy(values.reshape(entry["shape"]))
    return tensors


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn = nn.ModuleDict({"c_attn": nn.Linear(WIDTH, 3 * WIDTH), "c_proj": nn.Linear(WIDTH, WIDTH)})
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(WIDTH, 4 * WIDTH), "c_proj": nn.Linear(4 * WIDTH, WIDTH)})

    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = (p.view(n, t, HEADS, -1).transpose(1, 2) for p in self.attn["c_attn"](self.ln_1(x)).split(WIDTH, 2))
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(WIDTH // HEADS)
        scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), -math.inf)
        y = (F.softmax(scores, -1) @ v).transpose(1, 2).reshape(n, t, WIDTH)
        x = x + self.attn["c_proj"](y)
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.transformer = nn.ModuleDict({"wte": nn.Embedding(vocabulary, WIDTH), "wpe": nn.Embedding(CONTEXT, WIDTH),
                                          "h": nn.ModuleList(Block() for _ in range(LAYERS)), "ln_f": nn.LayerNorm(WIDTH)})
        self.lm_head = nn.Linear(WIDTH, vocabulary, bias=False)

    def forward(self, x):
        t = self.transformer
        y = t["wte"](x) + t["wpe"](torch.arange(x.shape[1]))
        for block in t["h"]:
            y = block(y)
        return self.lm_head(t["ln_f"](y))


def text(tool, path, steps=300):
    steps, batch = int(steps), 16
    folder = tempfile.mkdtemp()
    words = ["text", path, "--batch", str(batch)]
    cleave(tool, words + ["--steps", "1", "--lr", "1e-30", "--weight-decay", "0", "--validation", "0", "--save", folder + "/first"])
    ours = cleave(tool, words + ["--steps", str(steps)])
    characters = open(path, encoding="utf-8", newline="").read()
    index = {c: i for i, c in enumerate(sorted(set(characters)))}
    tokens = torch.tensor([index[c] for c in characters])
    cut = int(KEPT * len(tokens))
    train, test = tokens[:cut], tokens[cut:]
    model = GPT(len(index))
    model.load_state_dict(read_weights(folder + "/first"))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001, weight_decay=0.01)

    def sample(of, i):
        return of[i * CONTEXT:i * CONTEXT + CONTEXT], of[i * CONTEXT + 1:i * CONTEXT + CONTEXT + 1]

    per_epoch = (len(train) - 1 - CONTEXT) // CONTEXT + 1
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 0.001 * (1 + math.cos(math.pi * step / steps)) / 2
        first = step * batch % per_epoch
        x, y = (torch.stack(part) for part in zip(*(sample(train, first + i) for i in range(batch))))
        optimizer.zero_grad()
        F.cross_entropy(model(x).flatten(0, 1), y.flatten()).backward()
        optimizer.step()
    count, total = (len(test) - 1 - CONTEXT) // CONTEXT + 1, 0.0
    with torch.no_grad():
        for first in range(0, count, 64):
            x, y = (torch.stack(part) for part in zip(*(sample(test, i) for i in range(first, min(first + 64, count)))))
            total += F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item() * len(x)
    tell(ours["test_loss"], total / count)


def table(tool, path, target, epochs=20):
    epochs, batch = int(epochs), 64
    folder = tempfile.mkdtemp()
    words = ["csv", path, "--target", target, "--standardize", "--model", "mlp", "--batch", str(batch), "--schedule", "constant"]
    cleave(tool, words + ["--steps", "1", "--lr", "1e-30", "--save", folder + "/first"])
    ours = cleave(tool, words + ["--epochs", str(epochs)])
    rows = list(csv.DictReader(open(path)))
    names = [name for name in rows[0] if name != target]
    x = torch.tensor([[float(row[name]) for name in names] for row in rows], dtype=torch.float64)
    y = torch.tensor([[float(row[target])] for row in rows])
    cut = int(KEPT * len(rows))
    x = ((x - x[:cut].mean(0)) / x[:cut].std(0, unbiased=False)).float()
    model = nn.ModuleDict({"fc1": nn.Linear(len(names), 128), "fc2": nn.Linear(128, 1)})
    model.load_state_dict(read_weights(folder + "/first"))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)

    def forward(x):
        return model["fc2"](F.relu(model["fc1"](x)))

    for _ in range(epochs):
        for first in range(0, cut, batch):
            optimizer.zero_grad()
            F.mse_loss(forward(x[first:min(first + batch, cut)]), y[first:min(first + batch, cut)]).backward()
            optimizer.step()
    with torch.no_grad():
        tell(ours["test_loss"], F.mse_loss(forward(x[cut:]), y[cut:]).item())


def tell(ours, theirs):
    print(f"test loss: Cleave {ours:.6f}, PyTorch {theirs:.6f}, difference {ours - theirs:+.6f}")


if __name__ == "__main__":
    {"text": text, "csv": table}[sys.argv[2]](sys.argv[1], *sys.argv[3:])
