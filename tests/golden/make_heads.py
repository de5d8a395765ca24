#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training of two inputs and two outputs by PyTorch, for tests/train/heads.c: rows of numbers and words in, classes and numbers out,
eleven samples, batches of four in order. Writes heads.safetensors beside itself. Needs PyTorch only."""
import pathlib

import torch

from golden import rounded, save

torch.set_default_dtype(torch.float64)
STEPS, BATCH, N, WEIGHT = 20, 4, 11, 0.5


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(5, 3)
        self.body = torch.nn.Linear(6 + 3, 8)
        self.kind = torch.nn.Linear(8, 3)
        self.place = torch.nn.Linear(8, 2)

    def forward(self, row, word):
        x = torch.relu(self.body(torch.cat([row, self.words(word)], 1)))
        return self.kind(x), self.place(x)


def losses_of(net, data, rows):
    kind, place = net(data["row"][rows], data["word"][rows])
    return (torch.nn.functional.cross_entropy(kind, data["kind"][rows]),
            torch.nn.functional.mse_loss(place, data["place"][rows]), kind, place)


def train(out, name, data, make_optimizer):
    torch.manual_seed(1)
    net, told = Net(), []
    for key, value in net.state_dict().items():
        value.copy_(rounded(value))
        out[f"before/{key}"] = value.float().clone()
    optimizer, step = make_optimizer(net.parameters()), 0
    while step < STEPS:
        for i in range(0, N, BATCH):
            if step == STEPS:
                break
            optimizer.zero_grad()
            kind, place, _, _ = losses_of(net, data, slice(i, i + BATCH))
            loss = kind + WEIGHT * place
            loss.backward()
            optimizer.step()
            told.append(loss.detach())
            step += 1
    out[f"{name}/losses"] = torch.stack(told).float()
    for key, value in net.state_dict().items():
        out[f"{name}/after/{key}"] = value.detach().float()
    kind, place, logits, places = losses_of(net, data, slice(0, N))
    out[f"{name}/evaluated"] = torch.stack([kind + WEIGHT * place, kind, place]).float()
    out[f"{name}/correct"] = (logits.argmax(1) == data["kind"]).sum().reshape(1).int()
    out[f"{name}/logits"], out[f"{name}/places"] = logits.float(), places.float()


def main():
    torch.manual_seed(2)
    data = {"row": rounded(torch.randn(N, 6)), "word": torch.arange(N) * 3 % 5, "kind": torch.arange(N) * 2 % 3,
            "place": rounded(torch.randn(N, 2))}
    out = {key: value.float() if value.is_floating_point() else value.int() for key, value in data.items()}
    train(out, "sgd", data, lambda p: torch.optim.SGD(p, 0.1, momentum=0.9))
    train(out, "adamw", data, lambda p: torch.optim.AdamW(p, 0.02, weight_decay=0.1))
    save(pathlib.Path(__file__).with_name("heads.safetensors"), out)


main()
