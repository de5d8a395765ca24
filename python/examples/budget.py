# SPDX-License-Identifier: Apache-2.0
"""A training within a budget of bytes: what is not kept is computed again, to the same bits."""
from torch import nn
import torch

import cleave

layers = [nn.Conv2d(3, 32, 3, padding=1), nn.ReLU()] + [m for _ in range(6) for m in (nn.Conv2d(32, 32, 3, padding=1), nn.ReLU())]
module = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 4))
x, y = torch.randn(16, 3, 32, 32), torch.randint(0, 4, (16,))
device = cleave.Device()
whole = cleave.compile(module, device=device).plan(x, y).bytes
device.set_budget(device.memory()["current"] + int(0.8 * whole))
model = cleave.compile(module, device=device, recompute="auto")
print("loss %.4f with %d of %d KiB" % (model.step(x, y), device.memory()["peak"] >> 10, whole >> 10))
