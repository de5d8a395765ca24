# SPDX-License-Identifier: Apache-2.0
"""elementwise.safetensors: every elementwise op at ordinary values, at its kinks, and at what is not a number."""
import json
import pathlib
import re

import torch
import torch.nn.functional as F
from golden import Golden, seed_by

cases = Golden("elementwise", by_name=True)
ordinary = torch.arange(-9, 10) * 4 / 9  # 0 in the middle on every machine, which linspace does not give
positive = torch.linspace(0.1, 4, 17)
edges = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 0.0, -1.0, 1.0, 90.0, -90.0])


class Clamp(torch.autograd.Function):
    """torch.clamp with the gradient at the limits that PyTorch 1.13 has; 2.15 gives none there, clv_clamp says so."""

    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return torch.clamp(x, -1, 1)

    @staticmethod
    def backward(context, dy):
        (x,) = context.saved_tensors
        return torch.where((x >= -1) & (x <= 1), dy, 0.0)


UNARY = {  # name: function, values
    "neg": (torch.neg, ordinary),
    "exp": (torch.exp, ordinary),
    "log": (torch.log, positive),
    "sqrt": (torch.sqrt, positive),
    "square": (torch.square, ordinary),
    "abs": (torch.abs, ordinary),
    "relu": (torch.relu, ordinary),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.125), ordinary),
    "sigmoid": (torch.sigmoid, ordinary),
    "tanh": (torch.tanh, ordinary),
    "gelu": (F.gelu, ordinary),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), ordinary),
    "silu": (F.silu, ordinary),
    "clamp": (lambda x: torch.clamp(x, -1.5, 2), ordinary),
    "clamp_crossed": (lambda x: torch.clamp(x, 1, -1), ordinary),
    "pow_2_5": (lambda x: torch.pow(x, 2.5), positive),
    "pow_minus_1": (lambda x: torch.pow(x, -1), positive),
    "pow_0": (lambda x: torch.pow(x, 0), ordinary),
    "pow_2": (lambda x: torch.pow(x, 2), ordinary),
    "pow_3": (lambda x: torch.pow(x, 3), ordinary),
    "pow_half": (lambda x: torch.pow(x, 0.5), positive),
    "add_scalar": (lambda x: x + 1.5, ordinary),
    "mul_scalar": (lambda x: x * -2.5, ordinary),
    # what passes and what does not: NaN, infinities, both zeros
    "relu_edges": (torch.relu, edges),
    "leaky_relu_edges": (lambda x: F.leaky_relu(x, 0.125), edges),
    "clamp_edges": (Clamp.apply, edges),
    "abs_edges": (torch.abs, torch.tensor([float("inf"), -float("inf"), -0.0, 0.0, -1.0])),
    "sigmoid_edges": (torch.sigmoid, edges),
    "tanh_edges": (torch.tanh, edges),
    "exp_edges": (torch.exp, edges[:7]),
    "log_edges": (torch.log, torch.tensor([float("nan"), float("inf"), 0.0, 1.0, -1.0])),
    "sqrt_edges": (torch.sqrt, torch.tensor([float("nan"), float("inf"), 0.0, 1.0, -1.0])),
}
ATTRIBUTES = {"leaky_relu": dict(negative_slope=0.125), "clamp": dict(min=-1.5, max=2), "clamp_crossed": dict(min=1, max=-1),
              "clamp_edges": dict(min=-1, max=1), "add_scalar": dict(value=1.5), "mul_scalar": dict(value=-2.5),
              "leaky_relu_edges": dict(negative_slope=0.125), "pow_2_5": dict(exponent=2.5), "pow_minus_1": dict(exponent=-1),
              "pow_0": dict(exponent=0), "pow_2": dict(exponent=2), "pow_3": dict(exponent=3), "pow_half": dict(exponent=0.5)}


def op_of(name):
    return "pow_scalar" if name.startswith("pow_") else name.replace("_edges", "").replace("_crossed", "").replace("_nan", "")


for name, (function, values) in UNARY.items():
    with cases.case(name, op_of(name), **ATTRIBUTES.get(name, {})) as c:
        c.expect("y", function(c.input("x", values)))

BINARY = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div}
SHAPES = {"same": ((3, 5), (3, 5)), "channels": ((2, 3, 2, 2), (3, 1, 1)), "outer": ((4, 1), (1, 3)), "with_scalar": ((), (2, 3))}
for name, function in BINARY.items():
    for how, (a, b) in SHAPES.items():
        with cases.case(f"{name}_{how}", name) as c:
            c.expect("y", function(c.input("a", torch.randn(a)), c.input("b", torch.rand(b) + 0.5)))

COMPARE = {"eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge}
left = torch.tensor([1.0, 2, 3, float("nan"), 0.0, float("inf")])
right = torch.tensor([2.0, 2, 2, float("nan"), -0.0, float("inf")])
for name, function in COMPARE.items():
    with cases.case(name, name) as c:
        c.expect("y", function(c.input("a", left, grad=False), c.input("b", right, grad=False)))

with cases.case("where", "where") as c:
    condition = c.input("condition", torch.tensor([[1], [0], [1]], dtype=torch.int32))
    c.expect("y", torch.where(condition.bool(), c.input("a", torch.randn(3, 4)), c.input("b", torch.randn(4))))
with cases.case("where_nan", "where") as c:  # what is not chosen does not matter, in the gradient neither
    condition = c.input("condition", torch.tensor([1, 0], dtype=torch.int32))
    c.expect("y", torch.where(condition.bool(), c.input("a", torch.tensor([1.0, float("nan")])), c.input("b", torch.ones(2))))
with cases.case("cast_i32", "cast", dtype="i32") as c:
    c.expect("y", c.input("x", torch.tensor([2.9, -2.9, 0.5, -0.5, 1e6]), grad=False).int())
with cases.case("cast_f32", "cast", dtype="f32") as c:
    c.expect("y", c.input("x", torch.tensor([-7, 0, 16777217], dtype=torch.int32)).double())
for name, values in {"relu6": torch.linspace(-4, 9, 27), "relu6_edges": torch.cat([edges[1:], torch.tensor([6.0, 7.0])])}.items():
    with cases.case(name, "relu6") as c:
        c.expect("y", F.relu6(c.input("x", values)))
with cases.case("relu6_nan", "relu6") as c:
    c.expect("y", F.relu6(c.input("x", edges[:2], grad=False)))
with cases.case("full", "full", dtype="f32", shape=[2, 3], value=-1.25) as c:
    c.expect("y", torch.full((2, 3), -1.25))
for name, values in {"logsigmoid": ordinary, "logsigmoid_edges": edges}.items():
    with cases.case(name, "logsigmoid") as c:
        c.expect("y", F.logsigmoid(c.input("x", values)))
for name, function in {"floor": torch.floor, "ceil": torch.ceil, "round": torch.round, "sign": torch.sign}.items():
    with cases.case(name, name) as c:
        c.expect("y", function(c.input("x", torch.cat([ordinary, torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 16777215.0, -1e30])]))))
    with cases.case(f"{name}_edges", name) as c:
        c.expect("y", function(c.input("x", edges)))
with cases.case("elu", "elu", alpha=0.75) as c:
    c.expect("y", F.elu(c.input("x", ordinary), 0.75))
for name, function in {"elu": F.elu, "selu": F.selu, "softplus": F.softplus, "hardsigmoid": F.hardsigmoid, "hardswish": F.hardswish,
                       "mish": F.mish}.items():
    with cases.case(f"{name}_edges", name) as c:  # of infinities PyTorch has no slopes of mish, and no hardswish
        c.expect("y", function(c.input("x", edges[[4, 5, 6, 7, 8] if name in ("mish", "hardswish") else [1, 2, 4, 5, 6, 7, 8]])))
with cases.case("pow_ab", "pow") as c:
    c.expect("y", torch.pow(c.input("a", torch.linspace(0.25, 3, 12).view(4, 3)), c.input("b", torch.linspace(-2, 2, 3))))
with cases.case("pow_zero", "pow") as c:
    c.expect("y", torch.pow(c.input("a", torch.tensor([0.0, 0.0, 2.0, 0.0])), c.input("b", torch.tensor([2.0, 0.0, 0.0, 1.0]))))
with cases.case("pow_below", "pow") as c:
    c.expect("y", torch.pow(c.input("a", torch.tensor([-2.0, -2.0, -1.5]), grad=False), c.input("b", torch.tensor([3.0, 2.0, -1.0]), grad=False)))
for name in ("sin", "cos"):  # far from 0, where the angle has to be reduced with care
    with cases.case(f"{name}_far", name) as c:
        c.expect("y", getattr(torch, name)(c.input("x", torch.tensor([100.0, -1000.0, 65536.0, 1e6, -3e8]))))
# Every other row of one input and no attributes that PyTorch has under the same name.
rows = (pathlib.Path(__file__).parents[2] / "runtime/ops/elementwise.def").read_text()
told = {json.loads(text)["op"] for text in cases.texts.values()}
for name, low, high in re.findall(r"^UNARY(?:_F32)?\((\w+), NONE, [^,]+, [^,]+, ([^,]+), ([^,]+),", rows, re.M):
    if name not in told:
        with cases.case(name, name) as c:
            function = getattr(torch, name, None) or getattr(F, name)
            c.expect("y", function(c.input("x", torch.linspace(float(low), float(high), 19))))
with cases.case("cast_u8", "cast", dtype="u8") as c:  # outside of 0 to 255 PyTorch leaves it undefined
    c.expect("y", c.input("x", torch.tensor([0, 0.9, 1.5, 200.7, 254.999, 255]), grad=False).to(torch.uint8))
with cases.case("cast_u8_of_i32", "cast", dtype="u8") as c:
    c.expect("y", c.input("x", torch.tensor([0, 7, 255], dtype=torch.int32)).to(torch.uint8))
for to, dtype in {"f32": torch.float64, "i32": torch.int32}.items():
    with cases.case(f"cast_{to}_of_u8", "cast", dtype=to) as c:
        c.expect("y", c.input("x", torch.tensor([0, 1, 127, 128, 255], dtype=torch.uint8)).to(dtype))
with cases.case("cast_i64", "cast", dtype="i64") as c:
    c.expect("y", c.input("x", torch.tensor([2.9, -2.9, 0.5, -3e12, 2.0**52]), grad=False).float().long(), as_is=True)
longs = torch.tensor([-3, 0, 7, 2**40 + 1, -(2**52)])
with cases.case("cast_f32_of_i64", "cast", dtype="f32") as c:
    c.expect("y", c.input("x", longs, as_is=True).double())
with cases.case("cast_i32_of_i64", "cast", dtype="i32") as c:  # beyond i32 PyTorch wraps
    c.expect("y", c.input("x", longs[:3], as_is=True).int())
with cases.case("full_u8", "full", dtype="u8", shape=[3], value=255) as c:
    c.expect("y", torch.full((3,), 255, dtype=torch.uint8))
truths = torch.tensor([True, False, False, True, True])
with cases.case("cast_bool", "cast", dtype="bool") as c:
    c.expect("y", c.input("x", torch.tensor([0.0, -0.0, 0.25, -3, float("nan"), float("inf")]), grad=False).bool(), as_is=True)
with cases.case("cast_bool_of_i32", "cast", dtype="bool") as c:
    c.expect("y", c.input("x", torch.tensor([0, 1, -2, 256], dtype=torch.int32)).bool(), as_is=True)
with cases.case("cast_bool_of_i64", "cast", dtype="bool") as c:
    c.expect("y", c.input("x", torch.tensor([0, 2**40, -1]), as_is=True).bool(), as_is=True)
for to, dtype in {"f32": torch.float64, "i32": torch.int32, "u8": torch.uint8}.items():
    with cases.case(f"cast_{to}_of_bool", "cast", dtype=to) as c:
        c.expect("y", c.input("x", truths, as_is=True).to(dtype))
with cases.case("full_bool", "full", dtype="bool", shape=[3], value=1) as c:
    c.expect("y", torch.full((3,), True), as_is=True)
with cases.case("where_bool", "where") as c:
    condition = c.input("condition", truths[:3, None], as_is=True)
    c.expect("y", torch.where(condition, c.input("a", torch.randn(3, 4)), c.input("b", torch.randn(4))))
with cases.case("eq_bool", "eq") as c:
    c.expect("y", c.input("a", truths, as_is=True) == c.input("b", truths.flip(0), as_is=True))
with cases.case("lt_i64", "lt") as c:
    c.expect("y", c.input("a", longs, as_is=True) < c.input("b", longs.flip(0), as_is=True))
with cases.case("cast_i8", "cast", dtype="i8") as c:  # outside of -128 to 127 PyTorch leaves it undefined
    c.expect("y", c.input("x", torch.tensor([0, -0.9, 1.5, -128, 127.9, -127.9]), grad=False).to(torch.int8))
with cases.case("cast_i8_of_i32", "cast", dtype="i8") as c:
    c.expect("y", c.input("x", torch.tensor([0, -7, 127, -128], dtype=torch.int32)).to(torch.int8))
for to, dtype in {"f32": torch.float64, "i32": torch.int32, "bool": torch.bool}.items():
    with cases.case(f"cast_{to}_of_i8", "cast", dtype=to) as c:
        c.expect("y", c.input("x", torch.tensor([0, -1, 127, -128], dtype=torch.int8)).to(dtype), as_is=True)
with cases.case("full_i8", "full", dtype="i8", shape=[3], value=-128) as c:
    c.expect("y", torch.full((3,), -128, dtype=torch.int8))
with cases.case("ge_i8", "ge") as c:
    left, right = torch.tensor([-1, 0, 127], dtype=torch.int8), torch.tensor([0, -128, 127], dtype=torch.int8)
    c.expect("y", c.input("a", left) >= c.input("b", right))
for name, shape, n in (("prelu", (2, 3, 4), 3), ("prelu_one", (2, 3, 4), 1), ("prelu_rows", (5, 6), 6)):
    with cases.case(name, "prelu") as c:
        x = torch.randn(shape)
        x.view(-1)[0] = 0
        c.expect("y", F.prelu(c.input("x", x), c.input("weight", torch.randn(n))))
with cases.case("glu", "glu", axis=1) as c:
    c.expect("y", F.glu(c.input("x", torch.randn(2, 6, 3)), 1))
truths = torch.tensor([0, -0.0, 1, -2, float("nan"), 0.25]), torch.tensor([0, 1, 0, 3, -1, float("inf")])
seed_by("integers")
integers = torch.randint(-2**31, 2**31 - 1, (9,)), torch.randint(-2**31, 2**31 - 1, (9,))
seed_by("bytes")
bytes_ = torch.randint(0, 256, (9,), dtype=torch.uint8), torch.randint(0, 256, (9,), dtype=torch.uint8)
signed = bytes_[0].view(torch.int8), bytes_[1].view(torch.int8)
both = torch.tensor([False, True, False, True]), torch.tensor([False, False, True, True])
for word in ("and", "or", "xor"):
    op = f"logical_{word}"
    with cases.case(op, op) as c:
        c.expect("y", getattr(torch, op)(c.input("a", truths[0], grad=False), c.input("b", truths[1], grad=False)))
    op = f"bitwise_{word}"
    kinds = {"i32": integers, "u8": bytes_, "i8": signed, "bool": both}
    for kind, (a, b) in list(kinds.items())[:4 if word == "xor" else 1]:
        with cases.case(f"{op}_{kind}", op) as c:
            y = getattr(torch, op)(c.input("a", a, as_is=kind == "bool"), c.input("b", b, as_is=kind == "bool"))
            c.expect("y", y, as_is=kind == "bool")
with cases.case("logical_not", "logical_not") as c:
    c.expect("y", torch.logical_not(c.input("x", truths[0], grad=False)))
for kind, x in (("i32", integers[0]), ("u8", bytes_[0]), ("i8", signed[0]), ("bool", both[0])):
    with cases.case(f"bitwise_not_{kind}", "bitwise_not") as c:
        c.expect("y", torch.bitwise_not(c.input("x", x, as_is=kind == "bool")), as_is=kind == "bool")
cases.write()
