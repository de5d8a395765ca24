#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning by PyTorch, for tests/train/finetune.c: a small model with some parameters frozen (requires_grad_(False)), in
training mode, so that running statistics go on. Twelve images of five classes, three epochs of batches of four in order.
Writes finetune.safetensors beside itself: weights before and after, losses, and gradients of the first step. Needs PyTorch only."""
import pathlib

import torch

from golden import rounded, save

torch.set_default_dtype(torch.float64)
EPOCHS, BATCH, N, CLASSES = 3, 4, 12, 5


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 3, (2, 3), padding=(1, 0), bias=False)
        self.norm = torch.nn.BatchNorm2d(3)
        self.fc = torch.nn.Linear(3 * 5 * 4, CLASSES)

    def forward(self, x):
        return self.fc(torch.relu(self.norm(self.conv1(x))).flatten(1))


def finetune(out, name, frozen, make_optimizer, clip):
    torch.manual_seed(1)
    net = Net()
    x, y = rounded(torch.randn(N, 1, 4, 6)), torch.arange(N) * 2 % CLASSES
    for key, value in net.state_dict().items():
        value.copy_(rounded(value + 0.1 if key.startswith("norm.running") else value))
        if not key.endswith("num_batches_tracked"):
            out[f"before/{key}"] = value.float().clone()
    out["images"], out["labels"] = x.float(), y.int()
    for key, parameter in net.named_parameters():
        parameter.requires_grad_(not key.startswith(frozen))
    optimizer = make_optimizer(net.parameters())
    losses = []
    for epoch in range(EPOCHS):
        for i in range(0, N, BATCH):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(x[i:i + BATCH]), y[i:i + BATCH])
            loss.backward()
            if not losses:
                for key, parameter in net.named_parameters():
                    if parameter.grad is not None:
                        out[f"{name}/gradient/{key}"] = parameter.grad.float().clone()
            if clip:
                torch.nn.utils.clip_grad_norm_([p for p in net.parameters() if p.grad is not None], clip)
            optimizer.step()
            losses.append(loss.item())
    out[f"{name}/losses"] = torch.tensor(losses).float()
    for key, value in net.state_dict().items():
        if not key.endswith("num_batches_tracked"):
            out[f"{name}/after/{key}"] = value.detach().float().clone()


def main():
    out = {}
    finetune(out, "head", ("conv1", "norm"), lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01), 0)
    finetune(out, "first", ("conv1",), lambda p: torch.optim.Adam(p, 0.01, weight_decay=0.02), 0)
    finetune(out, "norm", ("norm",), lambda p: torch.optim.SGD(p, 0.1), 0.5)
    finetune(out, "bias", ("fc.bias",), lambda p: torch.optim.AdamW(p, 0.02, weight_decay=0.1), 0)
    save(pathlib.Path(__file__).with_name("finetune.safetensors"), out)


main()
