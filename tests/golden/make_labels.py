#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What trainings make of labels, by PyTorch, for tests/train/labels.c: CrossEntropyLoss(label_smoothing, weight, ignore_index), BCEWithLogitsLoss, and mixup as in
torchvision's references. The small model of make_finetune.py; twelve images, three epochs of batches of four in order. Writes
labels.safetensors beside itself: weights before and after, losses, gradients of the first step. Needs PyTorch only."""
import pathlib

import torch
import torch.nn.functional as F

from golden import rounded, save

torch.set_default_dtype(torch.float64)
EPOCHS, BATCH, N, CLASSES = 3, 4, 12, 5
# What Cleave draws from Beta(0.4, 0.4) for seed 7, by epoch and batch; the test asks for these very numbers.
LAMBDAS = [0.029889699422972926, 0.018627953344883551, 0.27065636905588147,
           0.40578036074623292, 0.0040275465313992127, 0.042108008648165371,
           0.80039393495936673, 0.999983776400444, 0.71899360534002366]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 3, (2, 3), padding=(1, 0), bias=False)
        self.norm = torch.nn.BatchNorm2d(3)
        self.fc = torch.nn.Linear(3 * 5 * 4, CLASSES)

    def forward(self, x):
        return self.fc(torch.relu(self.norm(self.conv1(x))).flatten(1))


def mix(x, y, lam):
    """torchvision's RandomMixup with p = 1, on targets that are rows already."""
    return x.mul(lam).add(x.roll(1, 0).mul(1 - lam)), y.mul(lam).add(y.roll(1, 0).mul(1 - lam))


def train(out, name, targets, loss_of, mixed=False, lr=0.1):
    torch.manual_seed(2)
    net = Net()
    x, classes = rounded(torch.randn(N, 1, 4, 6)), torch.arange(N) * 2 % CLASSES
    labels = (torch.rand(N, CLASSES) < 0.4).double()
    numbers = rounded(torch.randn(N, CLASSES))
    for key, value in net.state_dict().items():
        value.copy_(rounded(value))
        if not key.endswith("num_batches_tracked"):
            out[f"before/{key}"] = value.float().clone()
    out["images"], out["labels"] = x.float(), classes.int()
    out["several"], out["numbers"] = labels.float(), numbers.float()
    ignored = classes.clone()
    ignored[[0, 3, 5, 6]] = -100
    out["ignored"] = ignored.int()
    y = {"classes": classes, "several": labels, "numbers": numbers, "ignored": ignored}[targets]
    optimizer = torch.optim.SGD(net.parameters(), lr, momentum=0.9)
    losses = []
    for epoch in range(EPOCHS):
        for i in range(0, N, BATCH):
            bx, by = x[i:i + BATCH], y[i:i + BATCH]
            if mixed:
                rows = F.one_hot(by, CLASSES).double() if targets == "classes" else by
                bx, by = mix(bx, rows, LAMBDAS[len(losses)])
            optimizer.zero_grad()
            loss = loss_of(net(bx), by)
            loss.backward()
            if not losses:
                for key, parameter in net.named_parameters():
                    out[f"{name}/gradient/{key}"] = parameter.grad.float().clone()
            optimizer.step()
            losses.append(loss.item())
    out[f"{name}/losses"] = torch.tensor(losses).float()
    for key, value in net.state_dict().items():
        if not key.endswith("num_batches_tracked"):
            out[f"{name}/after/{key}"] = value.detach().float().clone()


def main():
    out = {"lambdas": torch.tensor(LAMBDAS).float()}
    smooth = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    train(out, "smooth", "classes", smooth)
    train(out, "mixup", "classes", torch.nn.CrossEntropyLoss(), mixed=True)
    train(out, "mixup_smooth", "classes", smooth, mixed=True)
    train(out, "bce", "several", torch.nn.BCEWithLogitsLoss())
    train(out, "bce_mixup_smooth", "several", lambda x, y: F.binary_cross_entropy_with_logits(x, y * 0.75 + 0.125), mixed=True)
    train(out, "mse_mixup", "numbers", torch.nn.MSELoss(), mixed=True, lr=0.05)
    weight = torch.tensor([0.5, 2.0, 1.0, 0.0, 4.0])
    train(out, "weights", "classes", torch.nn.CrossEntropyLoss(weight=weight))
    train(out, "ignored", "ignored", torch.nn.CrossEntropyLoss())
    train(out, "weights_ignored", "ignored", torch.nn.CrossEntropyLoss(weight=weight))
    train(out, "ignored_smooth", "ignored", torch.nn.CrossEntropyLoss(label_smoothing=0.1))
    save(pathlib.Path(__file__).with_name("labels.safetensors"), out)


main()
