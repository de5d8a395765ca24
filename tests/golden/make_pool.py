# SPDX-License-Identifier: Apache-2.0
"""pool.safetensors: pooling with what could be misunderstood: padding, ceil_mode, dilation, ties, NaN, the divisor."""
import torch
import torch.nn.functional as F
from golden import Golden

cases = Golden("pool")
MAX = {  # name: shape of x, arguments
    "max_2x2": ((2, 3, 6, 18), dict(kernel_size=2)),
    "max_2x2_rest": ((1, 2, 5, 9), dict(kernel_size=2)),
    "max_2x2_ceil": ((1, 2, 5, 7), dict(kernel_size=2, ceil_mode=True)),
    "max_overlap": ((1, 2, 7, 8), dict(kernel_size=3, stride=2, padding=1)),
    "max_overlap_ceil": ((1, 2, 8, 8), dict(kernel_size=3, stride=2, padding=1, ceil_mode=True)),
    "max_dilation": ((1, 2, 9, 8), dict(kernel_size=(3, 2), stride=(1, 2), padding=(1, 1), dilation=(2, 3))),
}
AVG = {
    "avg_2x2": ((2, 2, 4, 6), dict(kernel_size=2)),
    "avg_padding": ((1, 2, 5, 6), dict(kernel_size=3, stride=2, padding=1)),
    "avg_padding_excluded": ((1, 2, 5, 6), dict(kernel_size=3, stride=2, padding=1, count_include_pad=False)),
    "avg_ceil": ((1, 2, 6, 8), dict(kernel_size=3, stride=2, padding=1, ceil_mode=True)),
    "avg_ceil_excluded": ((1, 2, 6, 8), dict(kernel_size=3, stride=2, padding=1, ceil_mode=True, count_include_pad=False)),
    "avg_uneven": ((1, 2, 7, 5), dict(kernel_size=(4, 2), stride=(3, 1), padding=(2, 0))),
}
def named(kernel_size, count_include_pad=True, **others):
    """PyTorch's arguments as attributes."""
    return dict(kernel=kernel_size, **({} if count_include_pad else {"exclude_padding": 1}),
                **{k: int(v) if isinstance(v, bool) else v for k, v in others.items()})


for name, (shape, arguments) in MAX.items():
    with cases.case(name, "max_pool2d", **named(**arguments)) as c:
        c.expect("y", F.max_pool2d(c.input("x", torch.randn(shape)), **arguments))
for name, (shape, arguments) in AVG.items():
    with cases.case(name, "avg_pool2d", **named(**arguments)) as c:
        c.expect("y", F.avg_pool2d(c.input("x", torch.randn(shape)), **arguments))
for name, arguments in {"max_ties_2x2": dict(kernel_size=2), "max_ties": dict(kernel_size=3, stride=1, padding=1)}.items():
    with cases.case(name, "max_pool2d", **named(**arguments)) as c:  # the first maximum of a window takes the gradient
        c.expect("y", F.max_pool2d(c.input("x", torch.randint(0, 2, (1, 2, 4, 16)).double()), **arguments))
holes = torch.randn(1, 1, 4, 16)
holes[0, 0, 0, 1] = holes[0, 0, 2, 6] = holes[0, 0, 3, 7] = float("nan")
holes[0, 0, 0:2, 12:14] = -float("inf")
with cases.case("max_nan", "max_pool2d", kernel=2) as c:  # a NaN wins, of several the last
    c.expect("y", F.max_pool2d(c.input("x", holes), 2))
with cases.case("global_avg", "global_avg_pool2d") as c:
    c.expect("y", F.adaptive_avg_pool2d(c.input("x", torch.randn(2, 3, 4, 5)), 1))
for name, (shape, size) in {"adaptive_narrower": ((2, 3, 9, 10), (7, 4)), "adaptive_wider": ((1, 2, 1, 3), (7, 7)),
                            "adaptive_even": ((1, 2, 8, 6), (4, 3))}.items():
    with cases.case(name, "adaptive_avg_pool2d", OH=size[0], OW=size[1]) as c:
        c.expect("y", F.adaptive_avg_pool2d(c.input("x", torch.randn(shape)), size))
holes = torch.randn(1, 2, 7, 37)
holes[0, 0, 0:2, 0:2] = holes[0, 0, 5:7, 34:37] = holes[0, 1, 2:5, 8:14] = -float("inf")  # nothing is larger than the padding
holes[0, 0, 2, 5] = holes[0, 0, 3, 4] = holes[0, 1, 4, 20] = holes[0, 1, 4, 21] = holes[0, 1, 6, 36] = float("nan")
with cases.case("max_nan_overlap", "max_pool2d", kernel=3, stride=2, padding=1) as c:
    c.expect("y", F.max_pool2d(c.input("x", holes), kernel_size=3, stride=2, padding=1))
OTHERS = {  # name: op, shape, PyTorch's arguments
    "max_row": ("max_pool1d", (2, 3, 9), dict(kernel_size=3, stride=2, padding=1)),
    "max_row_dilated": ("max_pool1d", (1, 2, 11), dict(kernel_size=2, stride=1, dilation=3, ceil_mode=True)),
    "avg_row": ("avg_pool1d", (2, 3, 10), dict(kernel_size=3, padding=1, ceil_mode=True)),
    "avg_row_excludes": ("avg_pool1d", (1, 2, 8), dict(kernel_size=3, stride=2, padding=1, count_include_pad=False)),
    "max_solid": ("max_pool3d", (2, 2, 5, 6, 7), dict(kernel_size=(2, 3, 2), stride=(1, 2, 2), padding=(1, 1, 0))),
    "max_solid_ceil": ("max_pool3d", (1, 2, 5, 7, 6), dict(kernel_size=[2], dilation=(2, 1, 2), ceil_mode=True)),
    "avg_solid": ("avg_pool3d", (1, 2, 5, 6, 7), dict(kernel_size=[3], stride=[2], padding=[1], ceil_mode=True)),
    "avg_solid_excludes": ("avg_pool3d", (1, 2, 4, 5, 5), dict(kernel_size=(2, 3, 3), padding=(1, 1, 0), count_include_pad=False)),
}
NAMES = {"kernel_size": "kernel", "count_include_pad": "exclude_padding"}
for name, (op, shape, arguments) in OTHERS.items():
    ours = {NAMES.get(k, k): v for k, v in arguments.items()}
    for flag in ("ceil_mode", "exclude_padding"):
        if flag in ours:
            ours[flag] = 1
    with cases.case(name, op, **ours) as c:
        c.expect("y", getattr(F, op)(c.input("x", torch.randn(shape)), **arguments))
with cases.case("max_solid_ties", "max_pool3d", kernel=[2]) as c:  # the first in memory has it all
    c.expect("y", F.max_pool3d(c.input("x", torch.randint(0, 3, (1, 2, 4, 4, 6)).double()), 2))
cases.write()
