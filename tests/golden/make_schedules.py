#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Learning rates by PyTorch's schedules, for tests/train/schedules.c: one for each of 40 steps. Writes schedules.safetensors beside
itself. Needs PyTorch only."""
import pathlib
import warnings

import torch

from golden import save

warnings.simplefilter("ignore")  # nothing is trained
STEPS, LR = 40, 0.25
lr = torch.optim.lr_scheduler


def rates(make, values=None):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], LR)
    schedule = make(optimizer)
    out = []
    for step in range(STEPS):
        out.append(optimizer.param_groups[0]["lr"])
        if values is None:
            schedule.step()
        else:
            schedule.step(values[step])
    return torch.tensor(out, dtype=torch.float64).float()


def warm(n, then):
    """n steps up to the rate, then another schedule."""
    return lambda o: lr.SequentialLR(o, [lr.LinearLR(o, 1 / n, 1, n - 1), then(o)], [n])


def main():
    out = {}
    out["step"] = rates(lambda o: lr.StepLR(o, 7, 0.5))
    out["cosine"] = rates(lambda o: lr.CosineAnnealingLR(o, STEPS, 0.01))
    out["cosine, warm"] = rates(warm(5, lambda o: lr.CosineAnnealingLR(o, STEPS - 5, 0.01)))
    out["step, warm"] = rates(warm(8, lambda o: lr.StepLR(o, 7, 0.5)))
    out["constant, warm"] = rates(lambda o: lr.LinearLR(o, 1 / 10, 1, 9))
    out["one-cycle"] = rates(lambda o: lr.OneCycleLR(o, LR, STEPS + 1, cycle_momentum=False))
    out["one-cycle, set"] = rates(lambda o: lr.OneCycleLR(o, LR, STEPS + 1, pct_start=0.45, div_factor=10,
                                                          final_div_factor=50, cycle_momentum=False))
    out["exponential"] = rates(lambda o: lr.ExponentialLR(o, 0.9))
    out["exponential, warm"] = rates(warm(6, lambda o: lr.ExponentialLR(o, 0.95)))
    out["polynomial"] = rates(lambda o: lr.PolynomialLR(o, 30))
    out["polynomial, squares"] = rates(warm(4, lambda o: lr.PolynomialLR(o, STEPS, 2)))
    # falls, rises, falls a little less than the threshold, stands
    values = [3, 2, 1, 1.5, 1.2, 0.99995, 0.9999, 0.99992, 0.8, 0.8, 0.81, 0.79999, 0.8, 0.8, 0.5] + [0.5] * 25
    out["values"] = torch.tensor(values)
    out["plateau"] = rates(lambda o: lr.ReduceLROnPlateau(o, factor=0.3, patience=2, min_lr=0.001), values)
    out["plateau, larger"] = rates(lambda o: lr.ReduceLROnPlateau(o, mode="max", threshold=0.05), values)
    save(pathlib.Path(__file__).with_name("schedules.safetensors"), out)


main()
