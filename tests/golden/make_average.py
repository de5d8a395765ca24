#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trainings with running averages of their weights, for tests/train/average.c: a small model, ten images, batches of four in order,
twenty steps. The average is what torch.optim.swa_utils.AveragedModel makes with get_ema_multi_avg_fn(decay) of PyTorch 2: parameters
alone, the first update copies, and buffers are the model's. It is written out here, so that older PyTorch gives it too. Writes
average.safetensors beside itself. Needs PyTorch only."""
import copy
import itertools
import pathlib

import torch

from golden import rounded, save

torch.set_default_dtype(torch.float64)
STEPS, BATCH, N = 20, 4, 10


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 3, (2, 3), padding=(1, 0), bias=False)
        self.norm = torch.nn.BatchNorm2d(3)
        self.fc = torch.nn.Linear(3 * 5 * 4, 3)

    def forward(self, x):
        return self.fc(torch.relu(self.norm(self.conv1(x))).flatten(1))


class Average:
    """AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay)): p_avg.lerp_(p, 1 - decay), use_buffers False."""

    def __init__(self, model, decay):
        self.module, self.decay, self.n = copy.deepcopy(model), decay, 0

    @torch.no_grad()
    def update_parameters(self, model):
        for average, parameter in zip(self.module.parameters(), model.parameters()):
            if self.n == 0:
                average.copy_(parameter)
            else:
                average.lerp_(parameter, 1 - self.decay)
        for mine, theirs in zip(self.module.buffers(), model.buffers()):
            mine.copy_(theirs)
        self.n += 1


def train(out, name, decay, make_optimizer):
    torch.manual_seed(1)
    net = Net()
    x, y = rounded(torch.randn(N, 1, 4, 6)), torch.arange(N) * 2 % 3
    for key, value in net.state_dict().items():
        value.copy_(rounded(value))
        if not key.endswith("num_batches_tracked"):
            out[f"before/{key}"] = value.float().clone()
    out["images"], out["labels"] = x.float(), y.int()
    optimizer, average = make_optimizer(net), Average(net, decay)
    for _, i in zip(range(STEPS), itertools.cycle(range(0, N, BATCH))):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x[i:i + BATCH]), y[i:i + BATCH]).backward()
        optimizer.step()
        average.update_parameters(net)
    for where, model in (("after", net), ("average", average.module)):
        for key, value in model.state_dict().items():
            if not key.endswith("num_batches_tracked"):
                out[f"{name}/{where}/{key}"] = value.detach().float()
        logits = model.eval()(x)
        out[f"{name}/{where}/test"] = torch.stack([torch.nn.functional.cross_entropy(logits, y),
                                                   (logits.argmax(1) == y).double().mean()]).float()


def main():
    out = {}
    train(out, "sgd", 0.9, lambda n: torch.optim.SGD(n.parameters(), 0.05, momentum=0.9, weight_decay=0.1))
    train(out, "adam", 0.4, lambda n: torch.optim.Adam(n.parameters(), 0.02))
    save(pathlib.Path(__file__).with_name("average.safetensors"), out)


main()
