#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole models: loss, logits and every gradient, from PyTorch in float64. The C side is models.c.

Images are 8x8 so that the file stays small. Weights follow a formula that models.c has too (weight_at).
"""
import torch
import torch.nn.functional as F

from golden import Golden


def parameter(k, shape, scale):
    """The k-th parameter of a model."""
    i = torch.arange(torch.Size(shape).numel(), dtype=torch.int64)
    values = ((i * 7919 + (k + 1) * 104729) % 2003).double() / 2003 - 0.5
    return (values * scale).reshape(shape).float().double()


def load(c, specification):
    """Parameters by name; only their gradients go into the file."""
    made = {}
    for k, (name, shape, scale) in enumerate(specification):
        made[name] = parameter(k, shape, scale).requires_grad_()
    c.inputs.update(made)
    return made


cases = Golden("models")
labels = torch.tensor([3, 0, 9])

with cases.case("mlp") as c:
    x = c.input("x", torch.rand(3, 1, 8, 8), grad=False)
    c.put("labels", labels)
    p = load(c, [("fc1.weight", (128, 64), 0.25), ("fc1.bias", (128,), 0.25), ("fc2.weight", (10, 128), 0.25),
                 ("fc2.bias", (10,), 0.25)])
    h = F.relu(F.linear(x.flatten(1), p["fc1.weight"], p["fc1.bias"]))
    logits = F.linear(h, p["fc2.weight"], p["fc2.bias"])
    c.expect("loss", F.cross_entropy(logits, labels))
    c.expect("logits", logits)

with cases.case("cnn") as c:
    x = c.input("x", torch.rand(3, 1, 8, 8), grad=False)
    c.put("labels", labels)
    p = load(c, [("conv1.weight", (32, 1, 3, 3), 0.6), ("conv1.bias", (32,), 0.6),
                 ("conv2.weight", (64, 32, 3, 3), 0.12), ("conv2.bias", (64,), 0.12),
                 ("fc1.weight", (128, 256), 0.12), ("fc1.bias", (128,), 0.12), ("fc2.weight", (10, 128), 0.18),
                 ("fc2.bias", (10,), 0.18)])
    h = F.relu(F.conv2d(x, p["conv1.weight"], p["conv1.bias"]))
    h = F.relu(F.conv2d(h, p["conv2.weight"], p["conv2.bias"]))
    h = F.max_pool2d(h, 2).flatten(1)  # evaluation: no dropout
    h = F.relu(F.linear(h, p["fc1.weight"], p["fc1.bias"]))
    logits = F.linear(h, p["fc2.weight"], p["fc2.bias"])
    c.expect("loss", F.cross_entropy(logits, labels))
    c.expect("logits", logits)

cases.write()
