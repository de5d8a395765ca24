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
# behind the others, whose numbers stay
def affine(case, C):
    return case.input("weight", torch.rand(C) + 0.5), case.input("bias", torch.randn(C))


for name, (shape, groups) in {"images": ((2, 6, 3, 2), 3), "rows": ((3, 8), 2), "one": ((2, 4, 5), 1)}.items():
    with cases.case("group_norm_" + name, "group_norm", groups=groups, eps=1e-4) as c:
        x, (w, b) = c.input("x", torch.randn(shape)), affine(c, shape[1])
        c.expect("y", torch.nn.functional.group_norm(x, groups, w, b, 1e-4))
with cases.case("group_norm_plain", "group_norm", groups=2) as c:
    c.expect("y", torch.nn.functional.group_norm(c.input("x", torch.randn(2, 4, 3)), 2))
with cases.case("instance_norm", "instance_norm") as c:
    x, (w, b) = c.input("x", torch.randn(2, 3, 4, 2)), affine(c, 3)
    c.expect("y", torch.nn.functional.instance_norm(x, weight=w, bias=b))
for size, (alpha, beta, k) in {5: (0.5, 0.75, 1.0), 2: (0.25, 0.5, 2.0), 1: (1.0, 1.0, 1.0)}.items():
    with cases.case(f"local_response_norm_{size}", "local_response_norm", size=size, alpha=alpha, beta=beta, k=k) as c:
        c.expect("y", torch.nn.functional.local_response_norm(c.input("x", torch.randn(2, 7, 3, 2)), size, alpha, beta, k))
cases.write()
