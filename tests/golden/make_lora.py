#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""LoRA by PyTorch, for tests/train/lora.c, by its formula: y = W x + alpha / rank * B A x, of which A and B alone are trained. Of a small
perceptron, whose weight in the middle is [in, out] and square, and of a GPT. Three steps of SGD on the same samples. Writes
lora.safetensors beside itself: weights, A and B before and after, gradients of the first step, losses, results after. Needs PyTorch only."""
import pathlib

import torch
import torch.nn.functional as F

from golden import rounded, save

torch.set_default_dtype(torch.float64)
STEPS, LR = 3, 0.05


class Model:
    """Parameters by name, made when they are first asked for; adapters beside those whose names end so."""

    def __init__(self, rank, alpha, adapted):
        self.rank, self.alpha, self.adapted = rank, alpha, adapted
        self.weights, self.adapters = {}, {}

    def parameter(self, name, *shape, mean=0.0, scale=0.25):
        if name not in self.weights:
            self.weights[name] = rounded(mean + scale * torch.randn(shape))
        return self.weights[name]

    def adapter(self, name, letter, *shape):
        key = f"{name}.lora_{letter}.weight"
        if key not in self.adapters:
            self.adapters[key] = rounded(0.3 * torch.randn(shape)).requires_grad_()
        return self.adapters[key]

    def added(self, x, name, out):
        if not name.endswith(self.adapted):
            return 0
        a, b = self.adapter(name, "A", self.rank, x.shape[-1]), self.adapter(name, "B", out, self.rank)
        return self.alpha / self.rank * (x @ a.T @ b.T)

    def linear(self, x, name, out, bias=True):
        y = F.linear(x, self.parameter(name + ".weight", out, x.shape[-1]), self.parameter(name + ".bias", out) if bias else None)
        return y + self.added(x, name, out)

    def norm(self, x, name):
        width = x.shape[-1]
        return F.layer_norm(x, (width,), self.parameter(name + ".weight", width, mean=1.0), self.parameter(name + ".bias", width), 1e-5)


def mlp(m, x):
    x = torch.relu(m.linear(x, "fc1", 10))
    x = torch.relu(x @ m.parameter("mid", 10, 10) + m.added(x, "mid", 10))
    return m.linear(x, "fc2", 3)


def gpt(m, tokens):
    vocabulary, width, heads = 11, 12, 3
    n, t = tokens.shape
    x = F.embedding(tokens, m.parameter("transformer.wte.weight", vocabulary, width)) + m.parameter("transformer.wpe.weight", t, width)
    for i in range(2):
        name = f"transformer.h.{i}."
        q, k, v = (part.view(n, t, heads, width // heads).transpose(1, 2)
                   for part in m.linear(m.norm(x, name + "ln_1"), name + "attn.c_attn", 3 * width).split(width, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + m.linear(y.transpose(1, 2).reshape(n, t, width), name + "attn.c_proj", width)
        y = F.gelu(m.linear(m.norm(x, name + "ln_2"), name + "mlp.c_fc", 4 * width), approximate="tanh")
        x = x + m.linear(y, name + "mlp.c_proj", width)
    return m.linear(m.norm(x, "transformer.ln_f"), "lm_head", vocabulary, bias=False)


def train(out, name, model, forward, x, y):
    logits = forward(model, x)
    for key, value in model.weights.items():
        out[f"{name}/before/{key}"] = value.float()
    for key, value in model.adapters.items():
        out[f"{name}/lora/{key}"] = value.detach().float().clone()
    optimizer = torch.optim.SGD(model.adapters.values(), LR)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        logits = forward(model, x)
        loss = F.cross_entropy(logits.flatten(0, -2), y.flatten())
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            for key, value in model.adapters.items():
                out[f"{name}/gradient/{key}"] = value.grad.float().clone()
        optimizer.step()
    for key, value in model.adapters.items():
        out[f"{name}/after/{key}"] = value.detach().float().clone()
    logits = forward(model, x).detach()
    losses.append(F.cross_entropy(logits.flatten(0, -2), y.flatten()).item())
    out[f"{name}/losses"] = torch.tensor(losses).float()
    out[f"{name}/logits"] = logits.float()
    out[f"{name}/x"], out[f"{name}/labels"] = x.float() if x.is_floating_point() else x.int(), y.int()


def main():
    out = {}
    torch.manual_seed(7)
    train(out, "mlp", Model(3, 6, ("fc1", "mid", "fc2")), mlp, rounded(torch.randn(6, 8)), torch.arange(6) * 2 % 3)
    train(out, "gpt", Model(2, 3, ("c_attn", "c_proj")), gpt, torch.randint(0, 11, (3, 7)), torch.randint(0, 11, (3, 7)))
    save(pathlib.Path(__file__).with_suffix("").with_name("lora.safetensors"), out)


main()
