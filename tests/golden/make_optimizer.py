# SPDX-License-Identifier: Apache-2.0
"""optimizer.safetensors: ten steps of two parameters by every optimizer, with given gradients and changing rates.

c/a, c/b       first values            c/a.grads, c/b.grads  [steps, ...]
c/a.steps ...  [steps, ...] values after each step
"""
import math

import torch
from golden import Golden, rounded

STEPS = 10
cases = Golden("optimizer")
SGD = {
    "sgd": dict(),
    "sgd_decay": dict(weight_decay=0.1),
    "sgd_momentum": dict(momentum=0.9),
    "sgd_dampening": dict(momentum=0.9, dampening=0.5, weight_decay=0.05),
    "sgd_nesterov": dict(momentum=0.8, nesterov=True, weight_decay=0.05),
}
ADAM = {
    "adam": dict(),
    "adam_decay": dict(weight_decay=0.1),
    "adam_betas": dict(betas=(0.8, 0.95), eps=1e-3),
}
ADAMW = {"adamw": dict(), "adamw_decay": dict(weight_decay=0.3), "adamw_no_decay": dict(weight_decay=0.0)}
CLIP = {"sgd_clip": (torch.optim.SGD, dict(momentum=0.9)), "adam_clip": (torch.optim.Adam, dict())}


def trajectory(name, kind, arguments, clip=None):
    with cases.case(name) as c:
        parameters = {"a": torch.randn(3, 5), "b": torch.randn(17)}
        for key in parameters:
            c.put(key, parameters[key])
            parameters[key] = torch.nn.Parameter(rounded(parameters[key]))
        optimizer = kind(parameters.values(), lr=1.0, **arguments)
        grads = {key: rounded(torch.randn(STEPS, *p.shape)) for key, p in parameters.items()}
        values = {key: [] for key in parameters}
        for step in range(STEPS):
            optimizer.param_groups[0]["lr"] = 0.1 / (1 + step)
            for key, p in parameters.items():
                p.grad = grads[key][step].clone()
            if clip:
                torch.nn.utils.clip_grad_norm_(parameters.values(), clip[step % 2])
            optimizer.step()
            for key, p in parameters.items():
                values[key].append(p.detach().clone())
        for key in parameters:
            c.put(key + ".grads", grads[key])
            c.put(key + ".steps", torch.stack(values[key]))


for table, kind in ((SGD, torch.optim.SGD), (ADAM, torch.optim.Adam), (ADAMW, torch.optim.AdamW)):
    for name, arguments in table.items():
        trajectory(name, kind, arguments)
for name, (kind, arguments) in CLIP.items():
    trajectory(name, kind, arguments, clip=(1.5, 100.0))  # cut, and left alone: by a norm of about 5.6


def scaled(name, kind, arguments):
    """A loss scaler that halves its scale twice and doubles it twice: gradients of steps 0 and 5 overflow. c/scale.steps holds the scale."""
    with cases.case(name) as c:
        first = torch.randn(3, 5), torch.randn(17)
        parameters = dict(zip("ab", (torch.nn.Parameter(rounded(tensor)) for tensor in first)))
        optimizer = kind(parameters.values(), lr=1.0, **arguments)
        scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=3)
        grads = {key: rounded(torch.randn(STEPS, *p.shape)) for key, p in parameters.items()}
        grads["a"][0, 1, 2] = math.inf
        grads["b"][5, 16] = math.nan
        for key in parameters:
            c.put(key, parameters[key])
        values, scales = {key: [] for key in parameters}, []
        for step in range(STEPS):
            optimizer.param_groups[0]["lr"] = 0.1 / (1 + step)
            for key, p in parameters.items():
                p.grad = scaler.scale(grads[key][step])
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
            for key, p in parameters.items():
                values[key].append(p.detach().clone())
        for key in parameters:
            c.put(key + ".grads", grads[key])
            c.put(key + ".steps", torch.stack(values[key]))
        c.put("scale.steps", torch.tensor(scales))


scaled("sgd_scaler", torch.optim.SGD, dict(momentum=0.9))
scaled("adam_scaler", torch.optim.Adam, dict())
cases.write()
