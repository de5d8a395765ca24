# SPDX-License-Identifier: Apache-2.0
"""reduce.safetensors: sums, means, maxima over axes, argmax, and what they do with ties and NaN."""
import torch
from golden import Golden

cases = Golden("reduce")
AXES = {  # shape, axes, keepdim
    "last": ((4, 5), (-1,), False),
    "first": ((4, 5), (0,), True),
    "channels": ((2, 3, 2, 4), (0, 2, 3), False),
    "middle": ((2, 3, 4), (1,), False),
    "all": ((3, 7), (0, 1), False),
    "scalar": ((), (), False),
}
for name, function in {"sum": torch.sum, "mean": torch.mean, "max": torch.amax}.items():
    for how, (shape, axes, keepdim) in AXES.items():
        with cases.case(f"{name}_{how}", name, axes=axes, keepdim=int(keepdim)) as c:
            x = c.input("x", torch.randn(shape))
            c.expect("y", function(x, axes, keepdim=keepdim) if axes else function(x))

ties = torch.tensor([[1.0, 3, 3, 0], [2, 2, 2, 2], [-1, 0, -3, 0]])
with cases.case("max_ties", "max", axes=[1]) as c:  # the gradient is shared evenly
    c.expect("y", torch.amax(c.input("x", ties), 1))
with cases.case("max_ties_all", "max") as c:
    c.expect("y", torch.amax(c.input("x", ties), (0, 1)))
with cases.case("max_nan", "max", axes=[1]) as c:
    c.expect("y", torch.amax(c.input("x", torch.tensor([[1.0, float("nan"), 3], [1, 2, 3]]), grad=False), 1))
with cases.case("max_infinite", "max", axes=[1]) as c:
    c.expect("y", torch.amax(c.input("x", torch.full((2, 3), -float("inf"))), 1))
with cases.case("sum_nothing", "sum", axes=[1]) as c:
    c.expect("y", torch.sum(c.input("x", torch.zeros(2, 0), grad=False), 1))
with cases.case("mean_nothing", "mean", axes=[1]) as c:
    c.expect("y", torch.mean(c.input("x", torch.zeros(2, 0), grad=False), 1))
with cases.case("sum_infinite", "sum", axes=[1]) as c:
    c.expect("y", torch.sum(c.input("x", torch.tensor([[1.0, float("inf")], [float("inf"), -float("inf")]])), 1))

with cases.case("argmax_last", "argmax", axis=-1) as c:
    c.expect("y", torch.argmax(c.input("x", torch.randn(5, 7), grad=False), -1).int())
with cases.case("argmax_first_keepdim", "argmax", axis=0, keepdim=1) as c:
    c.expect("y", torch.argmax(c.input("x", torch.randn(5, 7), grad=False), 0, keepdim=True).int())
with cases.case("argmax_ties", "argmax", axis=1) as c:
    c.expect("y", torch.argmax(c.input("x", ties, grad=False), 1).int())
with cases.case("argmax_nan", "argmax", axis=1) as c:
    x = torch.tensor([[1.0, float("nan"), 3, float("nan")], [1, float("inf"), 3, float("inf")]])
    c.expect("y", torch.argmax(c.input("x", x, grad=False), 1).int())
with cases.case("sum_to", "sum_to", shape=[3, 1, 5]) as c:
    c.expect("y", c.input("x", torch.randn(2, 3, 4, 5)).sum_to_size(3, 1, 5))
for name, axis, flip, exclusive in (("cumsum", 1, False, False), ("cumsum_reverse", -1, True, False),
                                    ("cumsum_exclusive", 0, False, True), ("cumsum_both", 1, True, True)):
    with cases.case(name, "cumsum", axis=axis, reverse=int(flip), exclusive=int(exclusive)) as c:
        x = c.input("x", torch.randn(4, 5, 3))
        y = x.flip(axis).cumsum(axis).flip(axis) if flip else x.cumsum(axis)
        c.expect("y", y - x if exclusive else y)
with cases.case("cumsum_i32", "cumsum", axis=0) as c:
    c.expect("y", c.input("x", torch.randint(-9, 9, (7, 2))).cumsum(0))
with cases.case("cumsum_nan", "cumsum", axis=0) as c:
    c.expect("y", c.input("x", torch.tensor([1, -float("inf"), 2, float("inf"), 3]), grad=False).cumsum(0))
# made of others; behind them, whose numbers stay
with cases.case("min_rows", "min", axes=[1]) as c:
    c.expect("y", torch.amin(c.input("x", torch.randn(5, 7)), 1))
with cases.case("argmin_columns", "argmin", axis=0, keepdim=1) as c:
    c.expect("y", torch.argmin(c.input("x", torch.randn(5, 7), grad=False), 0, True))
for name, (axes, correction, keepdim) in {"rows": ([1], 1, 0), "two": ([0, 2], 0, 1), "all": ([0, 1, 2], 2, 0)}.items():
    for op, function in {"var": torch.var, "std": torch.std}.items():
        with cases.case(f"{op}_{name}", op, axes=axes, correction=correction, keepdim=keepdim) as c:
            c.expect("y", function(c.input("x", torch.randn(3, 4, 5)), axes, correction=correction, keepdim=bool(keepdim)))
for p in (0, 1, 2, 3, 0.5):
    with cases.case(f"vector_norm_{p}", "vector_norm", p=p, axes=[-1]) as c:
        c.expect("y", torch.linalg.vector_norm(c.input("x", torch.randn(3, 6), grad=p != 0), p, -1))
cases.write()
