#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ops of language models, and a tiny GPT: loss, logits and every gradient, from PyTorch in float64. The C side is text.c."""
import math

import torch
import torch.nn.functional as F

from golden import Golden

cases = Golden("text")

with cases.case("layer_norm", "layer_norm", eps=1e-5) as c:
    x, w, b = c.input("x", 2 * torch.randn(2, 3, 19) + 1), c.input("weight", torch.randn(19)), c.input("bias", torch.randn(19))
    c.expect("y", F.layer_norm(x, (19,), w, b, 1e-5))
with cases.case("layer_norm_alone", "layer_norm", eps=0.25) as c:
    c.expect("y", F.layer_norm(c.input("x", torch.randn(3, 5)), (5,), eps=0.25))
with cases.case("embedding", "embedding", ["weight", "indices"]) as c:
    w = c.input("weight", torch.randn(6, 18))
    indices = torch.tensor([[4, 0, 4], [5, 4, 1]])
    c.put("indices", indices)
    c.expect("y", F.embedding(indices, w))
for name, shape in {"mask": (2, 4, 4), "mask_wide": (1, 3, 5)}.items():
    with cases.case(name) as c:
        x = c.input("x", torch.randn(shape))
        hidden = torch.ones(shape[1:]).triu(shape[2] - shape[1] + 1).bool()
        c.expect("y", x.masked_fill(hidden, -math.inf).softmax(-1))
for name, causal in {"attention": False, "attention_causal": True}.items():
    with cases.case(name, "scaled_dot_product_attention", causal=int(causal)) as c:
        q, k, v = (c.input(n, torch.randn(2, 3, 5, width)) for n, width in {"q": 4, "k": 4, "v": 6}.items())
        c.expect("y", F.scaled_dot_product_attention(q, k, v, is_causal=causal))
with cases.case("attention_scale", "scaled_dot_product_attention", scale=0.75) as c:
    q, k, v = c.input("q", torch.randn(2, 4)), c.input("k", torch.randn(3, 4)), c.input("v", torch.randn(3, 2))
    c.expect("y", F.scaled_dot_product_attention(q, k, v, scale=0.75))

N, T, V, CONTEXT, D, HEADS, LAYERS = 2, 5, 11, 7, 12, 3, 2
with cases.case("gpt") as c:
    tokens, labels = torch.randint(0, V, (N, T)), torch.randint(0, V, (N * T,))
    c.put("tokens", tokens)
    c.put("labels", labels)

    def parameter(name, *shape, mean=0.0, scale=0.3):
        return c.input(name, mean + scale * torch.randn(shape))

    def linear(x, name, out, bias=True):
        return F.linear(x, parameter(name + ".weight", out, x.shape[-1]), parameter(name + ".bias", out) if bias else None)

    def norm(x, name):
        return F.layer_norm(x, (D,), parameter(name + ".weight", D, mean=1.0), parameter(name + ".bias", D), 1e-5)

    x = F.embedding(tokens, parameter("transformer.wte.weight", V, D)) + parameter("transformer.wpe.weight", CONTEXT, D)[:T]
    for i in range(LAYERS):
        name = f"transformer.h.{i}."
        q, k, v = (part.view(N, T, HEADS, D // HEADS).transpose(1, 2)
                   for part in linear(norm(x, name + "ln_1"), name + "attn.c_attn", 3 * D).split(D, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(y.transpose(1, 2).reshape(N, T, D), name + "attn.c_proj", D)
        y = F.gelu(linear(norm(x, name + "ln_2"), name + "mlp.c_fc", 4 * D), approximate="tanh")
        x = x + linear(y, name + "mlp.c_proj", D)
    logits = linear(norm(x, "transformer.ln_f"), "lm_head", V, bias=False)
    c.expect("loss", F.cross_entropy(logits.view(N * T, V), labels))
    c.expect("logits", logits)

# Three heads; two without a cause; one head of more steps than are done in one op.
for name, (n, t, d, heads, causal) in {"self_attention_causal": (2, 5, 12, 3, True), "self_attention": (2, 9, 10, 2, False),
                                       "self_attention_long": (1, 1025, 1, 1, True)}.items():
    with cases.case(name, "self_attention", heads=heads, causal=int(causal)) as c:
        x = c.input("x", torch.randn(n, t, 3 * d))
        q, k, v = (part.view(n, t, heads, d // heads).transpose(1, 2) for part in x.split(d, 2))
        c.expect("y", F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).reshape(n, t, d))

# Scores of a causal attention: as many keys as queries, more keys, more queries (the first of which see nothing, and whose rows are 0).
for name, (shape, scale) in {"causal_softmax": ((2, 3, 5, 5), 0.5), "causal_softmax_keys": ((2, 4, 23), 1.5),
                             "causal_softmax_queries": ((9, 4), 2.0)}.items():
    with cases.case(name, "causal_softmax", scale=scale) as c:
        x = c.input("x", torch.randn(shape))
        seen = torch.ones(shape[-2:]).tril(shape[-1] - shape[-2]).bool()
        y = (scale * x).masked_fill(~seen, -math.inf)[..., seen.any(-1), :].softmax(-1)
        c.expect("y", torch.cat([torch.zeros(*shape[:-2], shape[-2] - y.shape[-2], shape[-1]), y], -2))

# One more token: three heads of four columns, at position 3 of 5. The caches get its key and value.
with cases.case("attention_step") as c:
    n, t, d, heads, at = 2, 5, 12, 3, 3
    x = c.input("x", torch.randn(n, 3 * d), grad=False)
    keys, values = c.buffer("keys", torch.randn(n, t, d)), c.buffer("values", torch.randn(n, t, d))
    c.put("position", torch.tensor([at]))
    query, keys[:, at], values[:, at] = x.split(d, 1)
    q, k, v = (part.view(n, -1, heads, d // heads).transpose(1, 2)
               for part in (query.unsqueeze(1), keys[:, : at + 1], values[:, : at + 1]))
    c.expect("y", (q @ k.transpose(2, 3) / (d // heads) ** 0.5).softmax(-1).matmul(v).transpose(1, 2).reshape(n, d))

for name, mask in {"truths": torch.tensor([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 1, 1]]).bool(), "added": torch.randn(2, 1, 3, 4)}.items():
    with cases.case(f"attention_{name}", "scaled_dot_product_attention") as c:
        q, k, v = c.input("q", torch.randn(2, 2, 3, 4)), c.input("k", torch.randn(2, 2, 4, 4)), c.input("v", torch.randn(2, 2, 4, 5))
        c.expect("y", F.scaled_dot_product_attention(q, k, v, c.input("mask", mask, as_is=True)))
with cases.case("attention_hidden", "scaled_dot_product_attention") as c:  # a query that sees nothing
    q, k, v = (c.input(name, torch.randn(1, 3, 4)) for name in "qkv")
    c.expect("y", F.scaled_dot_product_attention(q, k, v, c.input("mask", torch.tensor([[1, 0, 1], [0, 0, 0], [0, 1, 0]]).bool(), as_is=True)))
with cases.case("attention_hidden_added", "scaled_dot_product_attention") as c:
    q, k, v = (c.input(name, torch.randn(1, 3, 4)) for name in "qkv")
    mask = torch.zeros(3, 3)
    mask[1], mask[2, 0] = -float("inf"), -float("inf")
    c.expect("y", F.scaled_dot_product_attention(q, k, v, c.input("mask", mask, grad=False)))
for name, causal in (("groups", False), ("groups_causal", True)):
    with cases.case(f"attention_{name}", "scaled_dot_product_attention", enable_gqa=1, causal=int(causal)) as c:
        q, k, v = c.input("q", torch.randn(2, 4, 3, 4)), c.input("k", torch.randn(2, 2, 3, 4)), c.input("v", torch.randn(2, 2, 3, 5))
        c.expect("y", F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True))
with cases.case("attention_groups_mask", "scaled_dot_product_attention", enable_gqa=1) as c:
    q, k, v = c.input("q", torch.randn(2, 4, 3, 4)), c.input("k", torch.randn(2, 2, 5, 4)), c.input("v", torch.randn(2, 2, 5, 5))
    c.expect("y", F.scaled_dot_product_attention(q, k, v, c.input("mask", torch.randn(2, 4, 3, 5)), enable_gqa=True))
for name, interleaved in (("rotary", False), ("rotary_neighbours", True)):  # transformers' rotate_half, and that of GPT-J
    with cases.case(name, "rotary_embedding", interleaved=int(interleaved)) as c:
        x, angle = c.input("x", torch.randn(2, 2, 3, 8)), torch.randn(3, 3)
        cos, sin = c.input("cos", angle.cos()), c.input("sin", angle.sin())
        a, b = (x[..., 0:6:2], x[..., 1:6:2]) if interleaved else (x[..., :3], x[..., 3:6])
        left, right = a * cos - b * sin, b * cos + a * sin
        c.expect("y", torch.cat([torch.stack([left, right], -1).flatten(-2) if interleaved else torch.cat([left, right], -1), x[..., 6:]], -1))
# With masks: truths of keys, of which one sequence sees none; numbers of heads and queries, causal too, some infinite; the mask's own gradient.
seen = torch.tensor([[1, 1, 0, 1, 1, 0, 1], [0, 0, 0, 0, 0, 0, 0]]).bool()
bias = torch.randn(1, 2, 7, 7)
bias[0, 1, 4, :5] = -math.inf
for name, (mask, causal, grad) in {"keys": (seen[:, None, None, :], False, False), "heads": (bias, True, False),
                                   "learnt": (torch.randn(2, 7, 7), False, True)}.items():
    with cases.case("self_attention_mask_" + name, "self_attention", heads=2, causal=int(causal)) as c:
        x, m = c.input("x", torch.randn(2, 7, 24)), c.input("attn_mask", mask, grad=grad, as_is=True)
        q, k, v = (part.view(2, 7, 2, 4).transpose(1, 2) for part in x.split(8, 2))
        m = torch.where(m, 0.0, -math.inf).double() if m.dtype == torch.bool else m
        m = m.masked_fill(torch.ones(7, 7).triu(1).bool(), -math.inf) if causal else m
        none = torch.isinf(m).all(-1, keepdim=True)
        weights = torch.where(none, 0.0, torch.softmax(q @ k.transpose(2, 3) / 2 + torch.where(none, 0.0, m), -1))
        c.expect("y", (weights @ v).transpose(1, 2).reshape(2, 7, 8))
for name, (heads, mask) in {"grouped": (2, None), "grouped_mask": (1, torch.randn(7, 7)), "mask": (4, seen[:, None, None, :])}.items():
    with cases.case("attention_" + name, "scaled_dot_product_attention", enable_gqa=int(heads < 4)) as c:
        q, k, v = (c.input(n, torch.randn(2, h, 7, 5)) for n, h in {"q": 4, "k": heads, "v": heads}.items())
        m = None if mask is None else c.input("attn_mask", mask, grad=False, as_is=True)
        c.expect("y", F.scaled_dot_product_attention(q, k, v, attn_mask=m, enable_gqa=heads < 4))
with cases.case("self_attention_shared", "self_attention", heads=6, kv_heads=2, causal=1) as c:
    x = c.input("x", torch.randn(2, 7, 10 * 3))
    q, k, v = (part.unflatten(2, (-1, 3)).transpose(1, 2) for part in x.split([18, 6, 6], 2))
    c.expect("y", F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2).flatten(2))
cases.write()
