#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times one training step of PyTorch on the CPU, for the models and the batch that `cleave train` uses.

Prints one JSON object: {"model": ..., "batch": ..., "threads": ..., "torch": ..., "step_ms": median, "p10_ms", "p90_ms"}.
A step is: take a batch that lies in memory, zero the gradients, forward, cross entropy, backward, SGD with momentum.

    tests/bench/pytorch_step.py [mlp|cnn] [--batch 64] [--threads 2] [--steps 100] [--warm 10]
"""
import argparse
import json
import os
import time

# An OpenBLAS that does not know a new CPU falls back to an old one's kernels; give the peer its best.
if "avx512f" in open("/proc/cpuinfo").read():
    os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")

import torch
from torch import nn


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25),
        nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?", choices=["mlp", "cnn"], default="cnn")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warm", type=int, default=10)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    model = {"mlp": mlp, "cnn": cnn}[options.model]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    batches = [(torch.randn(options.batch, 1, 28, 28), torch.randint(0, 10, (options.batch,))) for _ in range(8)]

    times = []
    for step in range(options.warm + options.steps):
        images, labels = batches[step % len(batches)]
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        if step >= options.warm:
            times.append((time.perf_counter() - start) * 1e3)
    times.sort()
    print(json.dumps({
        "model": options.model, "batch": options.batch, "threads": options.threads, "torch": torch.__version__,
        "steps": len(times), "step_ms": times[len(times) // 2],
        "p10_ms": times[len(times) // 10], "p90_ms": times[len(times) * 9 // 10]}))


main()
