#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same training by `cleave train` and by PyTorch: the same first weights, samples in the same order, the same recipe. Prints both losses.

    same_recipe.py CLEAVE text FILE [STEPS]             the GPT of characters, batch 16, AdamW 0.001, cosine
    same_recipe.py CLEAVE csv FILE TARGET [EPOCHS]      regression: the mlp on a table of numbers, standardized, batch 64, Adam 0.001
    same_recipe.py CLEAVE fine-tune TRAIN VAL [STEPS]         resnet18 on folders with a folder for each class: 64 x 64, batch 16, SGD 0.01
                                                              with momentum; a new head, all frozen but the last block
    same_recipe.py CLEAVE multi-label DIR TABLE VAL [STEPS]   the same on a folder and two tables of labels

By hand: PyTorch is needed, torchvision for pictures, and minutes. The first weights are what Cleave writes after a step with a learning
rate of 1e-30. `make_pictures.py` makes folders.
"""
import csv
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

CONTEXT, WIDTH, HEADS, LAYERS, KEPT = 128, 192, 6, 4, 0.9


def cleave(tool, words, shuffle=False):
    """A training's result, as JSON."""
    order = [] if shuffle else ["--no-shuffle"]
    said = subprocess.run([tool, "train", *words, "--json", "--quiet", *order], check=True, stdout=subprocess.PIPE)
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


# ---- pictures: resnet18 -----------------------------------------------------------------------------------------------------

SIDE, PICTURES = 64, 16
RECIPE = ["--model", "resnet18", "--image-size", str(SIDE), "--batch", str(PICTURES), "--augment", "none", "--optimizer", "momentum",
          "--schedule", "constant"]
RATE = ["--lr", "0.01"]
FROZEN = ("conv1", "bn1", "layer1", "layer2", "layer3", "layer4.0")


def decoded(files):
    """Pictures as Cleave cuts them: torchvision's Resize, CenterCrop and Normalize."""
    from PIL import Image
    from torchvision import transforms
    change = transforms.Compose([transforms.Resize((SIDE * 8 + 3) // 7), transforms.CenterCrop(SIDE), transforms.ToTensor(),
                                 transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
    return torch.stack([change(Image.open(file).convert("RGB")) for file in files])


def of_classes(folder):
    """Pictures and classes in the order of their names, as ImageFolder has them."""
    classes = sorted(path for path in pathlib.Path(folder).iterdir() if path.is_dir())
    files = [(file, i) for i, path in enumerate(classes) for file in sorted(path.iterdir())]
    return decoded(file for file, _ in files), torch.tensor([i for _, i in files])


def of_table(folder, table):
    rows = list(csv.reader(open(table)))[1:]
    return decoded(pathlib.Path(folder) / row[0] for row in rows), torch.tensor([[float(v) for v in row[1:]] for row in rows])


def pytorch(model, train, test, loss_of, right, steps):
    """Test loss and accuracy after so many steps, with the order of Cleave's loader for seed 1."""
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "golden"))
    from order import order
    (x, y), batches = train, (len(train[0]) + PICTURES - 1) // PICTURES
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 0.01, momentum=0.9)
    model.train()  # frozen layers too: the running statistics of their batch norm go on
    for step in range(steps):
        at = order(1, step // batches, len(x))[step % batches * PICTURES:][:PICTURES]
        optimizer.zero_grad()
        loss_of(model(x[at]), y[at]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        logits = model(test[0])
        return loss_of(logits, test[1]).item(), right(logits, test[1]).float().mean().item()


def pictures(tool, words, train, test, loss_of, outputs, right, steps):
    """Weights that are there, for want of better ones of ten steps; a new head; all frozen but the last block."""
    from torchvision.models import resnet18
    place = tempfile.mkdtemp()
    cleave(tool, words + RECIPE + RATE + ["--steps", "10", "--seed", "2", "--save", place + "/base"], True)
    words = words + RECIPE + ["--weights", place + "/base", "--except", "fc.*", "--freeze", ",".join(FROZEN)]
    cleave(tool, words + ["--steps", "1", "--lr", "1e-30", "--save", place + "/first"], True)
    ours = cleave(tool, words + RATE + ["--steps", str(steps)], True)
    model = resnet18(num_classes=outputs)
    base, first = read_weights(place + "/base"), read_weights(place + "/first")
    model.load_state_dict({**base, **{name: first[name] for name in ("fc.weight", "fc.bias")}}, strict=False)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not name.startswith(tuple(f + "." for f in FROZEN)))
    theirs = pytorch(model, train, test, loss_of, right, steps)
    tell(ours["test_loss"], theirs[0])
    print(f"accuracy: Cleave {ours['test_accuracy']:.4f}, PyTorch {theirs[1]:.4f}")


def fine_tune(tool, folder, val, steps=40):
    train, test = of_classes(folder), of_classes(val)
    pictures(tool, ["images", folder, "--val", val], train, test, F.cross_entropy, int(train[1].max()) + 1,
             lambda x, y: x.argmax(1) == y, int(steps))


def multi_label(tool, folder, table, val, steps=40):
    train, test = of_table(folder, table), of_table(folder, val)
    pictures(tool, ["images", folder, "--labels", table, "--val-labels", val], train, test, F.binary_cross_entropy_with_logits,
             train[1].shape[1], lambda x, y: (x > 0) == (y > 0), int(steps))


def tell(ours, theirs):
    print(f"test loss: Cleave {ours:.6f}, PyTorch {theirs:.6f}, difference {ours - theirs:+.6f}")


if __name__ == "__main__":
    {"text": text, "csv": table, "fine-tune": fine_tune, "multi-label": multi_label}[sys.argv[2]](sys.argv[1], *sys.argv[3:])
