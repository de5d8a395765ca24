#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""autocast.txt: in which type PyTorch's autocast leaves the result of each op that we have too. The C side is autocast.c.

A line is `op inputs cpu cuda`: inputs f32, half (all floats in the block's two-byte type) or both (the first half, the others
f32); then the result's type, f32 or half, inside torch.autocast("cpu", dtype=torch.bfloat16), and as on a GPU in
torch.autocast("cuda", dtype=torch.float16). No GPU is needed: fake tensors have types and shapes only, but go through the same lists.
"""
import pathlib

import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

IMAGES, WEIGHT, CHANNELS = (2, 4, 8, 8), (4, 4, 3, 3), (4,)


def batch_norm(x, weight, bias, training):
    mean, var = torch.zeros(4, device=x.device), torch.ones(4, device=x.device)
    return F.batch_norm(x, mean, var, weight, bias, training)


def indices(x):
    return torch.zeros(2, dtype=torch.int64, device=x.device)


# Op: shapes of its floats, and the call. Functions of parameters get these in f32 always: `both` is what they see in a model.
OPS = {
    "add": ([(2, 3)] * 2, torch.add),
    "sub": ([(2, 3)] * 2, torch.sub),
    "mul": ([(2, 3)] * 2, torch.mul),
    "div": ([(2, 3)] * 2, torch.div),
    "neg": ([(2, 3)], torch.neg),
    "add_scalar": ([(2, 3)], lambda x: x + 1.5),
    "mul_scalar": ([(2, 3)], lambda x: x * 1.5),
    "exp": ([(2, 3)], torch.exp),
    "log": ([(2, 3)], torch.log),
    "sqrt": ([(2, 3)], torch.sqrt),
    "square": ([(2, 3)], torch.square),
    "abs": ([(2, 3)], torch.abs),
    "clamp": ([(2, 3)], lambda x: torch.clamp(x, -0.5, 0.5)),
    "pow_scalar": ([(2, 3)], lambda x: torch.pow(x, 2.5)),
    "relu": ([(2, 3)], F.relu),
    "relu6": ([(2, 3)], F.relu6),
    "leaky_relu": ([(2, 3)], F.leaky_relu),
    "sigmoid": ([(2, 3)], torch.sigmoid),
    "logsigmoid": ([(2, 3)], F.logsigmoid),
    "tanh": ([(2, 3)], torch.tanh),
    "silu": ([(2, 3)], F.silu),
    "gelu": ([(2, 3)], F.gelu),
    "gelu_tanh": ([(2, 3)], lambda x: F.gelu(x, approximate="tanh")),
    "where": ([(2, 3)] * 2, lambda a, b: torch.where(torch.ones(2, 3, dtype=torch.bool, device=a.device), a, b)),
    "sum": ([(2, 3)], torch.sum),
    "mean": ([(2, 3)], torch.mean),
    "max": ([(2, 3)], torch.amax),
    "reshape": ([(2, 3)], lambda x: x.reshape(6)),
    "permute": ([(2, 3)], lambda x: x.permute(1, 0)),
    "broadcast_to": ([(1, 3)], lambda x: x.broadcast_to(2, 3)),
    "slice": ([(2, 3)], lambda x: x[:1]),
    "concat": ([(2, 3)] * 2, lambda a, b: torch.cat([a, b])),
    "matmul": ([(2, 3), (3, 4)], torch.matmul),
    "linear": ([(2, 3), (4, 3), (4,)], F.linear),
    "conv2d": ([IMAGES, WEIGHT, CHANNELS], F.conv2d),
    "max_pool2d": ([IMAGES], lambda x: F.max_pool2d(x, 2)),
    "avg_pool2d": ([IMAGES], lambda x: F.avg_pool2d(x, 2)),
    "adaptive_avg_pool2d": ([IMAGES], lambda x: F.adaptive_avg_pool2d(x, 3)),
    "softmax": ([(2, 3)], lambda x: F.softmax(x, 1)),
    "log_softmax": ([(2, 3)], lambda x: F.log_softmax(x, 1)),
    "cross_entropy": ([(2, 3)], lambda x: F.cross_entropy(x, indices(x))),
    "mse_loss": ([(2, 3)] * 2, F.mse_loss),
    "batch_norm": ([IMAGES, CHANNELS, CHANNELS], lambda x, w, b: batch_norm(x, w, b, True)),
    "batch_norm_eval": ([IMAGES, CHANNELS, CHANNELS], lambda x, w, b: batch_norm(x, w, b, False)),
    "layer_norm": ([(2, 3), (3,), (3,)], lambda x, w, b: F.layer_norm(x, (3,), w, b)),
    "embedding": ([(5, 3)], lambda weight: F.embedding(indices(weight), weight)),
    "causal_mask": ([(3, 3)], lambda x: x.masked_fill(torch.ones(3, 3, dtype=torch.bool, device=x.device).triu(1), -1e4)),
    "dropout": ([(2, 3)], lambda x: F.dropout(x, 0.5, True)),
}
PEERS = {"cpu": torch.bfloat16, "cuda": torch.float16}


def result(shapes, call, inputs, device):
    half = PEERS[device]
    kinds = {"f32": [torch.float32] * 3, "half": [half] * 3, "both": [half, torch.float32, torch.float32]}[inputs]
    torch.set_autocast_enabled(device, True)  # what torch.autocast does, but for the question whether there is a GPU
    torch.set_autocast_dtype(device, half)
    try:
        out = call(*(torch.ones(shape, dtype=kind, device=device) for shape, kind in zip(shapes, kinds)))
    finally:
        torch.set_autocast_enabled(device, False)
        torch.clear_autocast_cache()
    return {torch.float32: "f32", half: "half"}[out.dtype]


if __name__ == "__main__":
    lines = []  # written when all is known: an older PyTorch knows no devices here
    with FakeTensorMode():
        for name, (shapes, call) in OPS.items():
            for inputs in ["f32", "half"] + (["both"] if len(shapes) > 1 else []):
                lines.append(" ".join([name, inputs, *(result(shapes, call, inputs, device) for device in PEERS)]))
    (pathlib.Path(__file__).parent / "autocast.txt").write_text("".join(line + "\n" for line in lines))
