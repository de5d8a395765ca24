# SPDX-License-Identifier: Apache-2.0
"""Layers on two devices: the first ones here, the others there."""
from torch import nn
import torch

import cleave

module = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
first, other = (cleave.devices() * 2)[:2]  # "gpu:0" and "cpu:0", for example
model = cleave.compile(module, place="0*=%s,2*=%s,4*=%s" % (first.name, other.name, other.name), optimizer="sgd", lr=0.1)
x, y = torch.randn(32, 20), torch.randint(0, 2, (32,))
print(model.plan(x, y))
print("loss %.4f, then %.4f" % (model.step(x, y), model.step(x, y)))
