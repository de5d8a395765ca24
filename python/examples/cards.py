# SPDX-License-Identifier: Apache-2.0
"""What a training step would take, here and on cards that are not here: bytes, and the least time."""
import torch
import torchvision

import cleave

model = cleave.compile(torchvision.models.mobilenet_v2(weights=None), device="host")
x, y = torch.zeros(32, 3, 96, 96), torch.zeros(32, dtype=torch.int64)
for card in ("null:rtx-3060", "null:rx-7600", "null:arc-b580"):
    plan = model.plan(x, y, device=card)
    print("%-15s %6.0f MiB  at least %.1f ms" % (card, plan.bytes / 2**20, 1000 * plan.devices[0]["least_seconds"]))
