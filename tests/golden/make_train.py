#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole trainings by PyTorch, for tests/train/trainer.c: a small model, ten images, batches of four in order, so that each
epoch ends with a batch of two. Writes train.safetensors beside itself. Needs PyTorch only."""
import pathlib

import torch

from golden import rounded, save

torch.set_default_dtype(torch.float64)
EPOCHS, BATCH, N = 3, 4, 10


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 3, (2, 3), padding=(1, 0), bias=False)  # its gradient would be rounding alone
        self.norm = torch.nn.BatchNorm2d(3)
        self.fc = torch.nn.Linear(3 * 5 * 4, 3)

    def forward(self, x):
        return self.fc(torch.relu(self.norm(self.conv1(x))).flatten(1))


def train(out, name, make_optimizer, make_schedule, per_step, clip):
    torch.manual_seed(1)
    net = Net()
    x, y = rounded(torch.randn(N, 1, 4, 6)), torch.arange(N) * 2 % 3
    for key, value in net.state_dict().items():
        value.copy_(rounded(value))
        if not key.endswith("num_batches_tracked"):
            out[f"{name}/before/{key}"] = value.float().clone()
    out["images"], out["labels"] = x.float(), y.int()
    optimizer = make_optimizer(net.parameters())
    schedule = make_schedule(optimizer) if make_schedule else None
    losses, rates = [], []
    for _ in range(EPOCHS):
        for i in range(0, N, BATCH):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(x[i:i + BATCH]), y[i:i + BATCH])
            loss.backward()
            if clip:
                torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            losses.append(loss.item())
            if schedule and per_step:
                schedule.step()
        if schedule and not per_step:
            schedule.step()
    out[f"{name}/losses"] = torch.tensor(losses).float()
    out[f"{name}/rates"] = torch.tensor(rates).float()
    for key, value in net.state_dict().items():
        if not key.endswith("num_batches_tracked"):
            out[f"{name}/after/{key}"] = value.detach().float()


def main():
    out = {}
    steps = EPOCHS * -(-N // BATCH)
    lr = torch.optim.lr_scheduler
    train(out, "sgd", lambda p: torch.optim.SGD(p, 0.1), None, False, 0)
    train(out, "momentum", lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=0.01),
          lambda o: lr.StepLR(o, 2, 0.1), False, 0)
    train(out, "nesterov", lambda p: torch.optim.SGD(p, 0.05, momentum=0.8, nesterov=True),
          lambda o: lr.StepLR(o, 4, 0.5), True, 0.5)
    train(out, "adam", lambda p: torch.optim.Adam(p, 0.01, weight_decay=0.02),
          lambda o: lr.CosineAnnealingLR(o, steps), True, 0)
    train(out, "adamw", lambda p: torch.optim.AdamW(p, 0.02, weight_decay=0.1),
          lambda o: lr.CosineAnnealingLR(o, EPOCHS, 0.001), False, 0.1)
    save(pathlib.Path(__file__).with_name("train.safetensors"), out)


main()
