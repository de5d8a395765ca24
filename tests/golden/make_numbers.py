# SPDX-License-Identifier: Apache-2.0
"""numbers.safetensors: functions of two numbers, remainders, products, rows of numbers, what is not a number."""
import torch
from golden import Golden

cases = Golden("numbers")
edge = torch.tensor([1e-9, -1e-9, 0.0, -0.0, 1.0, -1.0, float("inf"), float("nan")])
for name in ("expm1", "log1p"):
    with cases.case(name, name) as c:
        c.expect("y", getattr(torch, name)(c.input("x", torch.rand(11) * 3 - 0.9)))
    with cases.case(name + "_edge", name) as c:
        c.expect("y", getattr(torch, name)(c.input("x", edge, grad=False)))
for name in ("atan2", "fmod", "remainder"):
    with cases.case(name, name) as c:
        a, b = c.input("a", torch.randn(4, 5) * 3), c.input("b", torch.randn(5))
        c.expect("y", getattr(torch, name)(a, b))
signs = torch.tensor([5.5, -5.5, 0.0, 3.0, -3.0, float("inf")])
for name in ("fmod", "remainder"):
    with cases.case(name + "_signs", name) as c:
        a, b = c.input("a", signs[:, None], grad=False), c.input("b", torch.tensor([2.0, -2.0, 0.0, float("inf")]), grad=False)
        c.expect("y", getattr(torch, name)(a, b))
large = torch.tensor([2**31 - 1, -(2**31 - 1), 2**24 + 1, -(2**24) - 3, 0], dtype=torch.int32)
for name in ("fmod", "remainder"):
    with cases.case(name + "_whole", name) as c:
        a, b = c.input("a", large[:, None], grad=False), c.input("b", torch.tensor([2, -7, 10**9, -1, -(2**31 - 1)], dtype=torch.int32), grad=False)
        c.expect("y", getattr(torch, name)(a, b))
zeros = torch.tensor([0.0, 1.0, -1.0])
with cases.case("atan2_axes", "atan2") as c:
    c.expect("y", torch.atan2(c.input("a", zeros[:, None], grad=False), c.input("b", zeros, grad=False)))
odd = torch.tensor([1.0, float("nan"), float("inf"), -float("inf"), 3.0])
with cases.case("nan_to_num", "nan_to_num", nan=0.5, posinf=7, neginf=-8) as c:
    c.expect("y", torch.nan_to_num(c.input("x", odd), 0.5, 7, -8))
with cases.case("nan_to_num_largest", "nan_to_num") as c:
    c.expect("y", torch.nan_to_num(c.input("x", odd.float(), grad=False).float()))
holes = torch.randint(-1, 3, (4, 6)).double()
for name, (axes, keepdim) in {"rows": ([1], 0), "columns": ([0], 1), "all": ([0, 1], 0)}.items():
    for kind, values in {"": torch.randn(4, 6), "_zeros": holes}.items():
        with cases.case(f"prod_{name}{kind}", "prod", axes=axes, keepdim=keepdim) as c:
            y = c.input("x", values)
            for axis in axes:
                y = y.prod(axis, keepdim=True)
            c.expect("y", y if keepdim else y.squeeze(axes))
for name, axis, values in (("cumprod", 1, torch.randn(4, 5, 3)), ("cumprod_zeros", 0, holes), ("cumprod_two_zeros", 0, torch.tensor([2.0, 0, 3, 0, 4]))):
    with cases.case(name, "cumprod", axis=axis) as c:
        c.expect("y", c.input("x", values).cumprod(axis))
for name, (exclusive, reverse) in {"exclusive": (1, 0), "reverse": (0, 1), "both": (1, 1)}.items():
    with cases.case(f"cumprod_{name}", "cumprod", axis=1, exclusive=exclusive, reverse=reverse) as c:
        x = c.input("x", torch.randn(3, 5))
        y = x.flip(1) if reverse else x
        if exclusive:
            y = torch.cat([torch.ones(3, 1), y[:, :-1]], 1)
        y = y.cumprod(1)
        c.expect("y", y.flip(1) if reverse else y)
for name, arguments, dtype in (("arange", (0.5, 4, 0.75), torch.float64), ("arange_whole", (7, -4, -3), torch.int32)):
    with cases.case(name, "arange", start=arguments[0], end=arguments[1], step=arguments[2], dtype="f32" if dtype == torch.float64 else "i32") as c:
        c.expect("y", torch.arange(*arguments, dtype=dtype))
cases.write()
