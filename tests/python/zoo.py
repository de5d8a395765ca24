#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torchvision's classifiers through cleave.compile, beside PyTorch: logits, loss and all gradients of one step, of random weights.

    zoo.py [--device host] [--out FILE] [NAME...]      without names: all that FILE (zoo.tsv, beside this) has not, each in a process

A row for each: name, the largest difference of logits over the largest logit, the loss's, and the norm of the gradients' difference over
their norm, of all and of the worst; or what was refused. Where one is above 1e-3 a second row has SiLU in place of ReLU, Hardswish and
Hardsigmoid, whose kinks make other gradients of a rounding. Dropout and stochastic depth are taken out. By hand: all take hours.
"""
import argparse
import os
import subprocess
import sys
import time
import warnings

import torch
import torchvision

import cleave

SIZES = {"inception_v3": 96, "alexnet": 64, "maxvit_t": 224, "swin_v2": 64, "googlenet": 64, "squeezenet": 64, "vit_h_14": 224, "vit": 224,
         "densenet": 64}


def size_of(name):
    return next((n for k, n in SIZES.items() if name.startswith(k)), 64)


def quiet(module):
    for m in module.modules():
        if isinstance(m, torch.nn.Dropout):
            m.p = 0.0
        if type(m).__name__ == "StochasticDepth":
            m.p = 0.0
        if isinstance(m, torch.nn.MultiheadAttention):
            m.dropout = 0.0
    return module


def smooth(module):
    for name, child in module.named_children():
        if isinstance(child, (torch.nn.ReLU, torch.nn.ReLU6, torch.nn.Hardswish, torch.nn.Hardsigmoid)):
            setattr(module, name, torch.nn.SiLU())
        smooth(child)
    return module


def one(name, device, change=lambda module: module):
    torch.manual_seed(1)
    kw = {"aux_logits": False, "init_weights": True} if name in ("googlenet", "inception_v3") else {}
    module = change(quiet(torchvision.models.get_model(name, weights=None, num_classes=10, **kw)))
    n = size_of(name)
    x, y = torch.randn(4, 3, n, n), torch.tensor([1, 7, 0, 9])
    model = cleave.compile(module, device=device, loss="cross_entropy")
    rows = model.check(x, y, tolerance=float("inf"))
    with torch.no_grad():
        module.eval()
        want, got = module(x), model.predict(x)
    off = float((got - want).abs().max() / want.abs().max())
    model.close()
    return off, rows[0][1], rows[-1][1], max(r[1] for r in rows[1:-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="host")
    parser.add_argument("--out", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "zoo.tsv"))
    parser.add_argument("names", nargs="*")
    option = parser.parse_args()
    warnings.simplefilter("ignore")
    if not option.names:
        done = {line.split("\t")[0] for line in open(option.out)} if os.path.exists(option.out) else ()
        numbers = lambda n: torchvision.models.get_model_weights(n).DEFAULT.meta["num_params"]
        for name in sorted((n for n in torchvision.models.list_models(module=torchvision.models) if n not in done), key=numbers):
            ended = subprocess.run([sys.executable, os.path.abspath(__file__), "--device", option.device, "--out", option.out, name]).returncode
            if ended:
                print("%s: ended with %d" % (name, ended), flush=True)
        return
    for name in option.names:
        began = time.monotonic()
        try:
            found = one(name, option.device)
            row = "%s\t%.1e\t%.1e\t%.1e\t%.1e" % ((name,) + found)
            if not found[3] <= 1e-3:
                row += "\n%s, SiLU\t%.1e\t%.1e\t%.1e\t%.1e" % ((name,) + one(name, option.device, smooth))
        except Exception as error:
            row = "%s\trefused\t%s" % (name, str(error).replace("\n", " ")[:400])
        print(row, "%.0f s" % (time.monotonic() - began), sep="\t", flush=True)
        with open(option.out, "a") as f:
            f.write(row + "\n")


if __name__ == "__main__":
    sys.exit(main())
