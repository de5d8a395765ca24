#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models that PyTorch exports to ONNX, for tests/onnx/models.c: a convolutional classifier, a model of tokens with attention, and an
encoder and decoder of pictures, a loop over steps with a branch and a list in it. Writes tests/onnx/models/NAME.onnx, and NAME.safetensors: what is fed, what comes out, the loss, its
gradients, and the parameters after three steps of SGD, computed in f64. Needs PyTorch only.

    make_onnx.py [NAME...]     default: all"""
import inspect
import math
import pathlib
import sys
from typing import List

import numpy
import torch

from golden import rounded, save

HERE = pathlib.Path(__file__).resolve().parent.parent / "onnx" / "models"


class Cnn(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.features = torch.nn.Sequential(
            torch.nn.Conv2d(1, 4, 3, padding=1, bias=False), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
            torch.nn.Conv2d(4, 4, 3, padding=1, groups=4), torch.nn.ReLU6(), torch.nn.Conv2d(4, 8, 1), torch.nn.Hardswish(),
            torch.nn.AdaptiveAvgPool2d(1))
        self.classifier = torch.nn.Linear(8, 5)

    def forward(self, x):
        return self.classifier(torch.flatten(self.features(x), 1))


class Tokens(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(11, 8)
        self.position = torch.nn.Parameter(torch.randn(6, 8) / 4)
        self.norm1, self.norm2 = torch.nn.LayerNorm(8), torch.nn.LayerNorm(8)
        self.qkv, self.out = torch.nn.Linear(8, 24), torch.nn.Linear(8, 8)
        self.up, self.down, self.head = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8), torch.nn.Linear(8, 11, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.position
        n, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, 2, c // 2).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(c // 2)
        mask = torch.triu(torch.ones(t, t, dtype=torch.bool), 1)
        scores = scores.masked_fill(mask, float("-inf")).softmax(-1)
        x = x + self.out((scores @ v).transpose(1, 2).reshape(n, t, c))
        x = x + self.down(torch.nn.functional.gelu(self.up(self.norm2(x))))
        return self.head(x)


class Pictures(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2 = torch.nn.Conv2d(2, 4, 3, padding=1), torch.nn.Conv2d(4, 8, 3, stride=2, padding=1)
        self.up1, self.out = torch.nn.ConvTranspose2d(8, 4, 2, stride=2), torch.nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, x):
        a = torch.nn.functional.silu(self.down1(x))
        b = torch.nn.functional.leaky_relu(self.down2(a), 0.1)
        return torch.tanh(self.out(torch.cat([self.up1(b), a], 1)))


class Steps(torch.nn.Module):
    """Scripted, so that the file has Loop, If, and a sequence that the loop fills."""

    def __init__(self):
        super().__init__()
        self.cell, self.out = torch.nn.Linear(10, 6), torch.nn.Linear(6, 5)

    def forward(self, x):
        h = x.new_zeros([x.shape[0], 6])
        told: List[torch.Tensor] = []
        for t in range(x.shape[1]):
            h = torch.tanh(self.cell(torch.cat([x[:, t], h], 1)))
            if t % 2 == 0:
                told.append(self.out(h))
        return torch.stack(told, 1).mean(1)


def make(name, net, x, y, loss_of, opset):
    if sys.argv[1:] and name not in sys.argv[1:]:
        return
    old = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    for value in net.state_dict().values():
        if value.is_floating_point():
            value.copy_(rounded(value))
    net.eval()
    torch.onnx.export(net, x[:2], str(HERE / f"{name}.onnx"), input_names=["x"], output_names=["y"], opset_version=opset,
                      dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}}, training=torch.onnx.TrainingMode.PRESERVE,
                      do_constant_folding=False, **old)
    net.double().train()
    x, out = x.double() if x.is_floating_point() else x, {}
    net.eval()
    out["x"], out["y"] = (x.float() if x.is_floating_point() else x.int()), net(x).float()
    net.train()
    out["target"] = y.float() if y.is_floating_point() else y.int()
    optimizer, losses = torch.optim.SGD(net.parameters(), 0.1), []
    for step in range(3):
        optimizer.zero_grad()
        loss = loss_of(net(x), y.double() if y.is_floating_point() else y)
        loss.backward()
        if step == 0:
            for key, parameter in net.named_parameters():
                out[f"gradient/{key}"] = parameter.grad.float().clone()
        optimizer.step()
        losses.append(loss.item())
    out["losses"] = torch.tensor(losses)
    for key, value in net.state_dict().items():
        if not key.endswith("num_batches_tracked"):
            out[f"after/{key}"] = value.float().clone()
    save(HERE / f"{name}.safetensors", {key: value.contiguous() for key, value in out.items()})


def places():
    """A class for each place: classes are dimension 1 of the result. places.npz has classes y, and numbers z; prints the losses."""
    torch.manual_seed(4)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(4, 4, 1))
    x, y, z = torch.randn(8, 3, 4, 4), torch.randint(4, (8, 4, 4)), torch.randn(8, 4, 4, 4)
    dynamic = {"x": {0: "N"}, "y": {0: "N"}}
    torch.onnx.export(net, (x,), str(HERE / "places.onnx"), dynamo=False, input_names=["x"], output_names=["y"], dynamic_axes=dynamic)
    numpy.savez(HERE / "places.npz", x=x, y=y, z=z)
    print(torch.nn.functional.cross_entropy(net(x), y).item(), torch.nn.functional.mse_loss(net(x), z).item())


class Sounds(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.ear, self.out = torch.nn.Linear(3, 6), torch.nn.Linear(6, 5)

    def forward(self, x):
        return self.out(torch.tanh(self.ear(x))).log_softmax(-1).transpose(0, 1)


def sounds():
    """Labels without places, learnt by CTC: the result is [T,N,C]. sounds.npz has labels y, and steps that count; prints the losses: of all
    steps, of those, and the latter after a step of SGD."""
    torch.manual_seed(5)
    net, x, y = Sounds(), torch.randn(8, 7, 3), torch.randint(1, 5, (8, 3))
    labels, steps = torch.tensor([3, 2, 1, 3, 2, 3, 1, 2]), torch.tensor([7, 6, 5, 7, 4, 7, 1, 7])
    y[torch.arange(3) >= labels[:, None]] = -100
    dynamic = {"x": {0: "N"}, "y": {1: "N"}}
    torch.onnx.export(net, (x,), str(HERE / "sounds.onnx"), dynamo=False, input_names=["x"], output_names=["y"], dynamic_axes=dynamic)
    numpy.savez(HERE / "sounds.npz", x=x, y=y, input_lengths=steps)
    ctc = lambda of: torch.nn.functional.ctc_loss(net(x), y, of, labels)
    optimizer = torch.optim.SGD(net.parameters(), 0.5)
    told = [ctc(torch.full((8,), 7)), ctc(steps)]
    told[1].backward()
    optimizer.step()
    print(*[loss.item() for loss in told + [ctc(steps)]])


def main():
    HERE.mkdir(exist_ok=True)
    sounds()
    places()
    torch.manual_seed(3)
    cross_entropy = lambda y, t: torch.nn.functional.cross_entropy(y.flatten(0, -2), t.flatten())
    make("cnn", Cnn(), rounded(torch.randn(6, 1, 8, 8)).float(), torch.arange(6) % 5, cross_entropy, 13)
    make("tokens", Tokens(), torch.randint(0, 11, (4, 6)), torch.randint(0, 11, (4, 6)), cross_entropy, 16)
    make("pictures", Pictures(), rounded(torch.randn(3, 2, 8, 8)).float(), rounded(torch.randn(3, 1, 8, 8)).float(),
         torch.nn.functional.mse_loss, 11)
    make("steps", torch.jit.script(Steps()), rounded(torch.randn(6, 5, 4)).float(), torch.arange(6) % 5, cross_entropy, 17)


main()
