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

# RMSprop and Adagrad of PyTorch; those that PyTorch has not, or has in bf16, by their papers' formulas.
RMSPROP = {"rmsprop": dict(), "rmsprop_momentum": dict(alpha=0.9, momentum=0.8, weight_decay=0.05),
           "rmsprop_centered": dict(alpha=0.95, eps=1e-3, centered=True, momentum=0.5)}
ADAGRAD = {"adagrad": dict(), "adagrad_decay": dict(weight_decay=0.1, eps=1e-3)}
for table, kind in ((RMSPROP, torch.optim.RMSprop), (ADAGRAD, torch.optim.Adagrad)):
    for name, arguments in table.items():
        trajectory(name, kind, arguments)


class ByFormula(torch.optim.Optimizer):
    def __init__(self, parameters, lr, **settings):
        super().__init__(parameters, dict(lr=lr, **settings))

    @torch.no_grad()
    def step(self):
        group = self.param_groups[0]
        for p in group["params"]:
            state = self.state[p]
            state["t"] = state.get("t", 0) + 1
            self.update(p, p.grad, state, group)

    @staticmethod
    def kept(state, name, p):
        return state.setdefault(name, torch.zeros_like(p))


class Lion(ByFormula):
    """Chen et al. 2023, algorithm 2."""

    def update(self, p, g, state, c):
        m, (beta1, beta2) = self.kept(state, "m", p), c.get("betas", (0.9, 0.99))
        p -= c["lr"] * (torch.sign(beta1 * m + (1 - beta1) * g) + c.get("weight_decay", 0) * p)
        m.mul_(beta2).add_((1 - beta2) * g)


class Lamb(ByFormula):
    """You et al. 2019, algorithm 2, phi(z) = z."""

    def update(self, p, g, state, c):
        m, v, (beta1, beta2) = self.kept(state, "m", p), self.kept(state, "v", p), c.get("betas", (0.9, 0.999))
        m.mul_(beta1).add_((1 - beta1) * g)
        v.mul_(beta2).add_((1 - beta2) * g * g)
        u = m / (1 - beta1 ** state["t"]) / ((v / (1 - beta2 ** state["t"])).sqrt() + c.get("eps", 1e-6))
        u = u + c.get("weight_decay", 0) * p
        norms = p.norm(), u.norm()
        p -= c["lr"] * (norms[0] / norms[1] if norms[0] > 0 and norms[1] > 0 else 1) * u


class Muon(ByFormula):
    """torch.optim.Muon in float64; what has not two dimensions by AdamW."""

    def __init__(self, parameters, lr, weight_decay=0.1, momentum=0.95):
        parameters = list(parameters)
        super().__init__([p for p in parameters if p.dim() == 2], lr, weight_decay=weight_decay, momentum=momentum)
        self.others = torch.optim.AdamW([p for p in parameters if p.dim() != 2], lr=lr, weight_decay=weight_decay)

    def step(self):
        super().step()
        self.others.param_groups[0]["lr"] = self.param_groups[0]["lr"]
        self.others.step()

    def update(self, p, g, state, c):
        buffer = self.kept(state, "buffer", p)
        buffer.lerp_(g, 1 - c["momentum"])
        x = g.lerp(buffer, c["momentum"])
        high = x.shape[0] > x.shape[1]
        x = x.T if high else x
        x = x / x.norm().clamp(min=1e-7)
        for _ in range(5):
            gram = x @ x.T
            x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
        x = x.T if high else x
        p.mul_(1 - c["lr"] * c["weight_decay"])
        p -= c["lr"] * math.sqrt(max(1, p.shape[0] / p.shape[1])) * x


def same_as_torch():
    """The formula above is PyTorch's, where that does not iterate in bf16."""
    bfloat16, torch.bfloat16 = torch.bfloat16, torch.float64
    for shape in ((3, 5), (6, 4)):
        pair = [torch.nn.Parameter(torch.ones(shape, dtype=torch.float64)) for _ in range(2)]
        both = Muon([pair[0], torch.nn.Parameter(torch.ones(1))], 0.1), torch.optim.Muon([pair[1]], lr=0.1)
        both[0].others.zero_grad()
        for step in range(3):
            numbers = torch.arange(shape[0] * shape[1], dtype=torch.float64)
            pair[0].grad = pair[1].grad = torch.sin(numbers * (step + 1.5)).view(shape)
            for optimizer in both:
                optimizer.step()
        assert (pair[0] - pair[1]).abs().max() < 1e-12
    torch.bfloat16 = bfloat16


if hasattr(torch.optim, "Muon"):
    same_as_torch()
for name, kind, arguments in (("lion", Lion, dict()), ("lion_decay", Lion, dict(betas=(0.8, 0.95), weight_decay=0.1)),
                              ("lamb", Lamb, dict()), ("lamb_decay", Lamb, dict(betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1)),
                              ("muon", Muon, dict()), ("muon_decay", Muon, dict(momentum=0.9, weight_decay=0.3))):
    trajectory(name, kind, arguments)
scaled("rmsprop_scaler", torch.optim.RMSprop, dict(momentum=0.5))
scaled("lamb_scaler", Lamb, dict())
cases.write()
