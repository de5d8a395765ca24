# SPDX-License-Identifier: Apache-2.0
"""norm.safetensors: batch_norm in training (which variance goes where) and in evaluation, with and without weights; rms_norm."""
import torch
import torch.nn.functional as F
from golden import Golden

cases = Golden("norm")
SHAPES = {"images": (3, 4, 3, 5), "large_images": (2, 3, 5, 4), "matrix": (6, 9), "length": (3, 2, 7)}
for name, shape in SHAPES.items():
    for training in (True, False):
        with cases.case(f"batch_norm_{name}_{'train' if training else 'eval'}", "batch_norm", training=int(training)) as c:
            x = c.input("x", 2 * torch.randn(shape) + 1)
            weight, bias = c.input("weight", torch.randn(shape[1])), c.input("bias", torch.randn(shape[1]))
            mean, var = c.buffer("running_mean", torch.randn(shape[1])), c.buffer("running_var", torch.rand(shape[1]) + 0.5)
            c.expect("y", F.batch_norm(x, mean, var, weight, bias, training, 0.1, 1e-5))
with cases.case("batch_norm_momentum", "batch_norm", ["x", None, None, "running_mean", "running_var"], training=1, momentum=0.75,
                eps=0.5) as c:
    x = c.input("x", torch.randn(4, 3))
    mean, var = c.buffer("running_mean", torch.randn(3)), c.buffer("running_var", torch.rand(3) + 0.5)
    c.expect("y", F.batch_norm(x, mean, var, None, None, True, 0.75, 0.5))
with cases.case("batch_norm_no_running", "batch_norm", training=1) as c:
    c.expect("y", F.batch_norm(c.input("x", torch.randn(2, 3, 4, 4)), None, None, None, None, True, 0.1, 1e-5))
with cases.case("rms_norm", "rms_norm", eps=1e-5) as c:
    x, w = c.input("x", 2 * torch.randn(2, 3, 19) + 1), c.input("weight", torch.randn(19))
    c.expect("y", x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w)  # torch.nn.functional.rms_norm, since 2.4
with cases.case("rms_norm_alone", "rms_norm", eps=0.25) as c:
    x = c.input("x", torch.randn(4, 7))
    c.expect("y", x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 0.25))
cases.write()
