#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trainings with parameter groups, and averages of their weights, by PyTorch, for tests/train/groups.c: a small model, ten images,
batches of four in order. Writes groups.safetensors beside itself. Needs PyTorch only."""
import pathlib

import torch

from golden import rounded, save

torch.set_default_dtype(torch.float64)
EPOCHS, BATCH, N, DECAY = 3, 4, 10, 0.8


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 3, (2, 3), padding=(1, 0), bias=False)
        self.norm = torch.nn.BatchNorm2d(3)
        self.fc = torch.nn.Linear(3 * 5 * 4, 3)

    def forward(self, x):
        return self.fc(torch.relu(self.norm(self.conv1(x))).flatten(1))


def train(out, name, make_optimizer):
    torch.manual_seed(1)
    net = Net()
    x, y = rounded(torch.randn(N, 1, 4, 6)), torch.arange(N) * 2 % 3
    for key, value in net.state_dict().items():
        value.copy_(rounded(value))
        if not key.endswith("num_batches_tracked"):
            out[f"before/{key}"] = value.float().clone()
    out["images"], out["labels"] = x.float(), y.int()
    optimizer = make_optimizer(net)
    average = torch.optim.swa_utils.AveragedModel(net, avg_fn=lambda a, p, n: DECAY * a + (1 - DECAY) * p)
    for _ in range(EPOCHS):
        for i in range(0, N, BATCH):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x[i:i + BATCH]), y[i:i + BATCH]).backward()
            optimizer.step()
            average.update_parameters(net)
    for key, value in net.state_dict().items():
        if not key.endswith("num_batches_tracked"):
            out[f"{name}/after/{key}"] = value.detach().float()
    for key, value in average.module.named_parameters():
        out[f"{name}/average/{key}"] = value.detach().float()


def vectors(net):
    """Weight decay not on biases and norms."""
    return [{"params": [p for p in net.parameters() if p.dim() < 2], "weight_decay": 0.0},
            {"params": [p for p in net.parameters() if p.dim() >= 2]}]


def rates(net, lr):
    """A tenth of the rate and another decay for the convolution, none for the head's bias; the rest as usual."""
    return [{"params": net.conv1.parameters(), "lr": lr * 0.1, "weight_decay": 0.2},
            {"params": [net.fc.bias], "weight_decay": 0.0, "lr": lr * 2},
            {"params": [*net.norm.parameters(), net.fc.weight]}]


def main():
    out = {}
    train(out, "sgd_vectors", lambda n: torch.optim.SGD(vectors(n), 0.05, momentum=0.9, weight_decay=0.1))
    train(out, "sgd_rates", lambda n: torch.optim.SGD(rates(n, 0.05), 0.05, momentum=0.9, weight_decay=0.1))
    train(out, "adamw_vectors", lambda n: torch.optim.AdamW(vectors(n), 0.02, weight_decay=0.3))
    train(out, "adamw_rates", lambda n: torch.optim.AdamW(rates(n, 0.02), 0.02, weight_decay=0.3))
    save(pathlib.Path(__file__).with_name("groups.safetensors"), out)


main()
