#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of one node each, for tests/onnx/rows.c: what PyTorch computes of the same, in f64, and its gradients. Writes rows.safetensors
beside itself: `CASE/model` is the file, `CASE/inI` and `CASE/outI` what is fed and what comes out, `CASE/dy` and `CASE/gradI` the gradient of
the first result and of each input of floats. Needs PyTorch only, 1.13 or later: the fields of the wire format are written here."""
import math
import pathlib
import re
import struct
import sys

import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "golden"))
from golden import rounded, save  # noqa: E402

torch.manual_seed(0)
FLOAT, UINT8, INT8, INT32, INT64, BOOL = 1, 2, 3, 6, 7, 9
TYPES = {torch.float64: FLOAT, torch.uint8: UINT8, torch.int8: INT8, torch.int32: INT32, torch.int64: INT64, torch.bool: BOOL}
tensors = {}


# ---- the wire format ------------------------------------------------------------------------------------------------
def varint(n):
    n &= 2**64 - 1
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def data(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def real(field, x):
    return varint(field << 3 | 5) + struct.pack("<f", x)


def initializer(name, t):
    raw = (t.float() if t.is_floating_point() else t).contiguous().numpy().tobytes()
    return b"".join(number(1, d) for d in t.shape) + number(2, TYPES[t.dtype]) + data(8, name) + data(9, raw)


def info(name, t):
    shape = b"".join(data(1, number(1, d)) for d in t.shape)
    return data(1, name) + data(2, data(1, number(1, TYPES[t.dtype]) + data(2, shape)))


def graph(nodes, inputs, outputs, known={}):
    """A graph in a node, as an attribute: names of what it takes and gives, initializers by their names."""
    return (b"".join(node(*one) for one in nodes) + b"".join(data(5, initializer(name, t)) for name, t in known.items())
            + b"".join(data(11, data(1, name)) for name in inputs) + b"".join(data(12, data(1, name)) for name in outputs))


def attribute(name, value):
    if isinstance(value, bytes):
        return data(1, name) + data(6, value) + number(20, 5)
    if isinstance(value, float):
        return data(1, name) + real(2, value) + number(20, 1)
    if isinstance(value, int):
        return data(1, name) + number(3, value) + number(20, 2)
    if isinstance(value, str):
        return data(1, name) + data(4, value) + number(20, 3)
    if isinstance(value[0], float):
        return data(1, name) + b"".join(real(7, x) for x in value) + number(20, 6)
    if isinstance(value[0], str):
        return data(1, name) + b"".join(data(9, x) for x in value) + number(20, 8)
    return data(1, name) + b"".join(number(8, x) for x in value) + number(20, 7)


def node(op, inputs, outputs, attributes):
    """op: ONNX's own, or `DOMAIN:OP`."""
    domain, op = op.split(":") if ":" in op else ("", op)
    content = b"".join(data(1, n) for n in inputs) + b"".join(data(2, n) for n in outputs) + data(3, "n") + data(4, op) + data(7, domain)
    return data(1, content + b"".join(data(5, attribute(n.rstrip("_"), v)) for n, v in attributes.items()))


def file(nodes, inputs, known, n_out, opset, batch=None):
    """batch: what the file says of the first dimension of its inputs, where it is another than that of what is fed."""
    graph = b"".join(node(*one) for one in nodes)
    for i, t in enumerate(inputs):
        if t is not None:
            said = t if batch is None else t[:1].expand(batch, *t.shape[1:])
            graph += data(5, initializer(f"in{i}", t)) if i in known else data(11, info(f"in{i}", said))
    graph += b"".join(data(12, data(1, f"out{i}")) for i in range(n_out))
    return number(1, 8) + data(7, graph) + data(8, number(2, opset))


# ---- cases ----------------------------------------------------------------------------------------------------------
def as_fed(t):
    return t.float() if t.is_floating_point() else t.int()


def case(op, of, inputs, known=(), name="", opset=17, grad=True, nodes=None, batch=None, **attributes):
    """`of` computes it: of the inputs, those left out being None. `known`: initializers. `grad`: which inputs' gradients are held.
    `nodes`: of a file of several, each (op, inputs, outputs, attributes)."""
    key = f"{op}{name and ' '}{name}"
    assert f"{key}/model" not in tensors, key
    inputs = [t if t is None else rounded(t) for t in inputs]
    fed = [i for i, t in enumerate(inputs) if t is not None and i not in known]
    wanted = [i for i in fed if inputs[i].is_floating_point() and (grad is True or grad and i in grad)]
    args = [t.clone().requires_grad_() if i in wanted else t for i, t in enumerate(inputs)]
    out = of(*args)
    out = out if isinstance(out, (list, tuple)) else [out]
    names = ["" if t is None else f"in{i}" for i, t in enumerate(inputs)]
    one = [(attributes.pop("domain", "") + op, names, [f"out{i}" for i in range(len(out))], attributes)]
    content = file(nodes or one, inputs, known, len(out), opset, batch)
    tensors[f"{key}/model"] = torch.frombuffer(bytearray(content), dtype=torch.uint8)
    for n, i in enumerate(fed):
        tensors[f"{key}/in{n}"] = as_fed(inputs[i])
    for i, y in enumerate(out):
        tensors[f"{key}/out{i}"] = as_fed(y.detach())
    if wanted and out[0].requires_grad:
        dy = rounded(torch.randn_like(out[0]))
        tensors[f"{key}/dy"] = as_fed(dy)
        gradients = torch.autograd.grad((out[0] * dy).sum(), [args[i] for i in wanted], allow_unused=True)
        for i, g in zip(wanted, gradients):
            if g is not None:
                tensors[f"{key}/grad{fed.index(i)}"] = as_fed(g)


def x(*shape):
    return torch.randn(shape, dtype=torch.float64)


def positive(*shape):
    return torch.rand(shape, dtype=torch.float64) * 2 + 0.25


def inside(*shape):
    return torch.rand(shape, dtype=torch.float64) * 1.8 - 0.9


def whole(low, high, *shape, dtype=torch.int64):
    return torch.randint(low, high, shape, dtype=dtype)


def truth(*shape):
    return torch.rand(shape) > 0.5


def L(*numbers):
    return torch.tensor(numbers, dtype=torch.int64)


def R(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)


# element by element
for op, of in {"Abs": torch.abs, "Asinh": torch.asinh, "Atan": torch.atan, "Ceil": torch.ceil, "Cos": torch.cos, "Cosh": torch.cosh,
               "Erf": torch.erf, "Exp": torch.exp, "Floor": torch.floor, "HardSwish": F.hardswish, "Mish": F.mish, "Neg": torch.neg,
               "Relu": F.relu, "Round": torch.round, "Sigmoid": torch.sigmoid, "Sign": torch.sign, "Sin": torch.sin, "Sinh": torch.sinh,
               "Softplus": F.softplus, "Softsign": F.softsign, "Tan": torch.tan, "Tanh": torch.tanh, "Selu": F.selu}.items():
    case(op, of, [x(3, 7)], opset=18)
for op, of in {"Log": torch.log, "Sqrt": torch.sqrt, "Reciprocal": torch.reciprocal}.items():
    case(op, of, [positive(3, 7)])
case("Acosh", torch.acosh, [positive(3, 5) + 1])
for op, of in {"Acos": torch.acos, "Asin": torch.asin, "Atanh": torch.atanh}.items():
    case(op, of, [inside(3, 7)])
case("Abs", torch.abs, [whole(-9, 9, 7, dtype=torch.int32)], name="i32")
case("Neg", torch.neg, [whole(-9, 9, 7, dtype=torch.int32)], name="i32")
case("Relu", F.relu, [whole(-9, 9, 7, dtype=torch.int32)], name="i32")
case("Sign", torch.sign, [whole(-3, 3, 7)], name="i64")
case("Celu", lambda a: F.celu(a, 1.5), [x(3, 7)], alpha=1.5)
case("Elu", lambda a: F.elu(a, 0.75), [x(3, 7)], alpha=0.75)
case("Selu", lambda a: torch.where(a > 0, 2 * a, 3 * (a.exp() - 1)), [x(3, 7)], name="attributes", alpha=1.5, gamma=2.0)
case("Gelu", F.gelu, [x(3, 7)], opset=20)
case("Gelu", lambda a: F.gelu(a, approximate="tanh"), [x(3, 7)], name="tanh", opset=20, approximate="tanh")
case("HardSigmoid", lambda a: torch.clamp(a * 0.25 + 0.5, 0, 1), [x(3, 7)], alpha=0.25, beta=0.5)
case("LeakyRelu", lambda a: F.leaky_relu(a, 0.125), [x(3, 7)], alpha=0.125)
case("Shrink", lambda a: torch.where(a > 0.5, a - 0.25, torch.where(a < -0.5, a + 0.25, a * 0)), [x(3, 7)], lambd=0.5, bias=0.25)
case("Swish", lambda a: a * torch.sigmoid(a * 1.5), [x(3, 7)], opset=24, alpha=1.5)
case("ThresholdedRelu", lambda a: F.threshold(a, 0.5, 0.0), [x(3, 7)], alpha=0.5)
case("PRelu", lambda a, s: torch.where(a < 0, a * s, a), [x(2, 3, 4), x(3, 1)])
case("Clip", lambda a, lo, hi: torch.clamp(a, -0.75, 0.5), [x(3, 7), R(-0.75)[0], R(0.5)[0]], known=(1, 2))
case("Clip", lambda a: torch.clamp(a, -0.5, 0.75), [x(3, 7)], name="opset 9", opset=9, min=-0.5, max=0.75)
case("IsInf", torch.isinf, [R(1, math.inf, -math.inf, math.nan)])
case("IsNaN", torch.isnan, [R(1, math.inf, -math.inf, math.nan)])
case("Cast", lambda a: a.int(), [R(2.5, -2.5, 7)], to=INT32)
case("Cast", lambda a: a.double(), [L(2, -2, 7)], name="f32", to=FLOAT)
case("CastLike", lambda a, b: a.int(), [R(2.5, -2.5, 7), L(1)])
case("Dropout", lambda a: a, [x(3, 7)], grad=False)
case("Identity", lambda a: a, [x(3, 7)], grad=False)
for op, of in {"Add": torch.add, "Sub": torch.sub, "Mul": torch.mul}.items():
    case(op, of, [x(2, 3, 4), x(3, 1)])
    case(op, of, [whole(-9, 9, 5), whole(-9, 9, 5)], name="i64")
case("Div", torch.div, [x(2, 3, 4), positive(3, 1)])
case("Div", lambda a, b: torch.div(a, b, rounding_mode="trunc"), [whole(-9, 9, 7), whole(1, 4, 7)], name="i64")
case("Pow", torch.pow, [positive(2, 3), x(2, 3)])
case("Pow", lambda a, b: a**3, [x(2, 3), R(3)[0]], known=(1,), name="whole")
case("Mod", lambda a, b: torch.remainder(a, b), [whole(-9, 9, 7), whole(1, 4, 7)])
case("Mod", torch.fmod, [x(7) * 4, positive(7)], name="fmod", grad=False, fmod=1)
for op, of in {"Max": torch.maximum, "Min": torch.minimum, "Sum": torch.add}.items():
    case(op, lambda a, b, c, of=of: of(of(a, b), c), [x(2, 3), x(2, 3), x(3)])
case("Mean", lambda a, b, c: (a + b + c) / 3, [x(2, 3), x(2, 3), x(3)])
for op, of in {"Equal": torch.eq, "Greater": torch.gt, "GreaterOrEqual": torch.ge, "Less": torch.lt, "LessOrEqual": torch.le}.items():
    case(op, of, [whole(0, 3, 4, 5).double(), whole(0, 3, 5).double()])
for op, of in {"And": torch.logical_and, "Or": torch.logical_or, "Xor": torch.logical_xor}.items():
    case(op, of, [truth(4, 5), truth(5)])
case("Not", torch.logical_not, [truth(7)])
case("Where", torch.where, [truth(2, 3), x(2, 3), x(3)])
for op, of in {"BitwiseAnd": torch.bitwise_and, "BitwiseOr": torch.bitwise_or, "BitwiseXor": torch.bitwise_xor}.items():
    case(op, of, [whole(0, 99, 7, dtype=torch.int32), whole(0, 99, 7, dtype=torch.int32)], opset=18)
case("BitwiseNot", torch.bitwise_not, [whole(-9, 9, 7, dtype=torch.int32)], opset=18)
case("BitShift", torch.bitwise_left_shift, [whole(0, 9, 7, dtype=torch.uint8), whole(0, 4, 7, dtype=torch.uint8)], direction="LEFT")

# reductions
for op, of in {"ReduceL1": lambda a: a.abs().sum((0, 2), True), "ReduceL2": lambda a: a.square().sum((0, 2), True).sqrt(),
               "ReduceLogSum": lambda a: a.sum((0, 2), True).log(), "ReduceLogSumExp": lambda a: a.logsumexp((0, 2), True),
               "ReduceMax": lambda a: a.amax((0, 2), True), "ReduceMean": lambda a: a.mean((0, 2), True),
               "ReduceMin": lambda a: a.amin((0, 2), True), "ReduceProd": lambda a: a.prod(2, True).prod(0, True),
               "ReduceSumSquare": lambda a: a.square().sum((0, 2), True)}.items():
    case(op, of, [positive(2, 3, 4)], axes=[0, 2])
case("ReduceSum", lambda a, axes: a.sum(1), [x(2, 3, 4), L(1)], known=(1,), keepdims=0)
case("ReduceMean", lambda a, axes: a.mean(-1, True), [x(2, 3, 4), L(-1)], known=(1,), name="opset 18", opset=18)
case("ArgMax", lambda a: a.argmax(1), [x(4, 5)], axis=1, keepdims=0)
case("ArgMin", lambda a: a.argmin(0, True), [x(4, 5)], axis=0)
case("CumSum", lambda a, axis: a.cumsum(1), [x(3, 5), L(1)[0]], known=(1,))
case("CumSum", lambda a, axis: a.flip(0).cumsum(0).flip(0), [x(3, 5), L(0)[0]], known=(1,), name="reverse", reverse=1)
case("CumProd", lambda a, axis: a.cumprod(1), [positive(3, 5), L(1)[0]], known=(1,), opset=26)
case("TopK", lambda a, k: torch.topk(a, 3, 1), [x(4, 6), L(3)], known=(1,), axis=1)
case("Softmax", lambda a: F.softmax(a, 1), [x(3, 5, 2)], axis=1)
case("LogSoftmax", lambda a: F.log_softmax(a, 1), [x(3, 5, 2)], axis=1)
case("Hardmax", lambda a: F.one_hot(a.argmax(1), 5).double(), [x(3, 5)], axis=1, grad=False)

# moves
case("Concat", lambda a, b: torch.cat([a, b], 1), [x(2, 3), x(2, 4)], axis=1)
case("Split", lambda a, s: torch.split(a, [2, 3], 1), [x(4, 5), L(2, 3)], known=(1,), axis=1)
case("Slice", lambda a, *_: a[1:4].flip(1)[:, ::2], [x(5, 6), L(1, -1), L(4, -99), L(0, 1), L(1, -2)], known=(1, 2, 3, 4))
case("Gather", lambda a, i: a[:, i], [x(3, 5), whole(0, 5, 2, 2)], axis=1)
case("GatherElements", lambda a, i: torch.gather(a, 1, i), [x(3, 5), whole(0, 5, 3, 2)], axis=1)
case("GatherND", lambda a, i: a[i[:, 0], i[:, 1]], [x(3, 4, 2), whole(0, 3, 5, 2)])
spread = torch.stack([torch.randperm(5)[:2] for _ in range(3)])
case("Scatter", lambda a, i, u: a.scatter(1, i, u), [x(3, 5), spread, x(3, 2)], opset=10, axis=1)
case("ScatterElements", lambda a, i, u: a.scatter(1, i, u), [x(3, 5), spread, x(3, 2)], axis=1)
case("ScatterElements", lambda a, i, u: a.scatter_add(0, i, u), [x(3, 5), whole(0, 3, 4, 5), x(4, 5)], name="add", axis=0,
     reduction="add")
case("ScatterND", lambda a, i, u: a.index_put((i[:, 0],), u), [x(6, 3), torch.randperm(6)[:2, None], x(2, 3)])
case("TensorScatter", lambda a, u, i: torch.cat([a[:, :, :1], u, a[:, :, 3:]], 2), [x(1, 2, 4, 3), x(1, 2, 2, 3), L(1)], opset=24)
case("Expand", lambda a, s: a.expand(2, 3, 4), [x(3, 1), L(2, 3, 4)], known=(1,))
case("Flatten", lambda a: a.flatten(2).reshape(6, 20), [x(2, 3, 4, 5)], axis=2)
case("Reshape", lambda a, s: a.reshape(2, 12), [x(2, 3, 4), L(0, -1)], known=(1,))
case("Squeeze", lambda a, s: a.squeeze(1), [x(3, 1, 4), L(1)], known=(1,))
case("Unsqueeze", lambda a, s: a[None, :, :, None], [x(3, 4), L(0, 3)], known=(1,))
case("Transpose", lambda a: a.permute(2, 0, 1), [x(2, 3, 4)], perm=[2, 0, 1])
case("Tile", lambda a, s: a.repeat(2, 3), [x(2, 3), L(2, 3)], known=(1,))
case("Pad", lambda a, p: F.pad(a, (1, 2, 0, 1)), [x(2, 3, 4), L(0, 0, 1, 0, 1, 2)], known=(1,))
for mode in ("reflect", "edge"):
    of = "replicate" if mode == "edge" else mode
    case("Pad", lambda a, p, of=of: F.pad(a, (1, 2), mode=of), [x(2, 3, 4), L(0, 0, 1, 0, 0, 2)], known=(1,), name=mode, mode=mode)
case("DepthToSpace", lambda a: F.pixel_shuffle(a, 2), [x(1, 8, 2, 3)], blocksize=2, mode="CRD")
case("SpaceToDepth", lambda a: a.reshape(1, 2, 2, 2, 3, 2).permute(0, 3, 5, 1, 2, 4).reshape(1, 8, 2, 3), [x(1, 2, 4, 6)], blocksize=2)
case("Trilu", lambda a, k: torch.triu(a, 1), [x(4, 5), L(1)[0]], known=(1,))
case("OneHot", lambda i, d, v: F.one_hot(i, 4) * 3.0 - 1, [whole(0, 4, 5), L(4)[0], R(-1, 2)], known=(1,), grad=False)
case("EyeLike", lambda a: torch.eye(3, 4, dtype=torch.float64), [x(3, 4)], grad=False)
case("Shape", lambda a: L(2, 3), [x(2, 3)], grad=False)
case("Size", lambda a: L(6)[0], [x(2, 3)], grad=False)
case("CenterCropPad", lambda a, s: F.pad(a[1:3], (1, 1)), [x(4, 3), L(2, 5)], known=(1,), opset=18)
case("Compress", lambda a, c: a[[0, 2]], [x(3, 4), torch.tensor([True, False, True])], known=(1,), axis=0)
case("ReverseSequence", lambda a, n: torch.stack([torch.cat([r[: int(m)].flip(0), r[int(m):]]) for r, m in zip(a, n)]),
     [x(3, 4), L(2, 4, 1)], batch_axis=0, time_axis=1)

# products
case("MatMul", torch.matmul, [x(2, 3, 4), x(4, 5)])
case("Gemm", lambda a, b, c: 0.5 * a.T @ b.T + 2 * c, [x(4, 3), x(5, 4), x(5)], transA=1, transB=1, alpha=0.5, beta=2.0)
case("Einsum", lambda a, b: torch.einsum("bij,bjk->bki", a, b), [x(2, 3, 4), x(2, 4, 5)], equation="bij,bjk->bki")
case("Conv", lambda a, w, b: F.conv2d(a, w, b, 2, 1, 1), [x(2, 4, 7, 6), x(6, 4, 3, 3), x(6)], strides=[2, 2], pads=[1, 1, 1, 1])
case("Conv", lambda a, w: F.conv2d(a, w, None, 1, 0, 2, 2), [x(2, 4, 7, 8), x(6, 2, 2, 3)], name="groups", group=2, dilations=[2, 2])
case("Conv", lambda a, w: F.conv1d(a, w, None, 1, 1), [x(2, 3, 9), x(4, 3, 3)], name="1d", pads=[1, 1])
case("Conv", lambda a, w: F.conv3d(a, w), [x(1, 2, 3, 4, 4), x(3, 2, 2, 3, 2)], name="3d")
case("ConvTranspose", lambda a, w, b: F.conv_transpose2d(a, w, b, 2, 1, 1), [x(1, 3, 4, 5), x(3, 2, 3, 3), x(2)], strides=[2, 2],
     pads=[1, 1, 1, 1], output_padding=[1, 1])
u8, i8 = torch.uint8, torch.int8
scale = lambda s: R(s)[0]  # noqa: E731
zero = torch.tensor(3, dtype=u8)
case("MatMulInteger", lambda a, b, z: (a.int() - 3) @ b.int(), [whole(0, 200, 3, 4, dtype=u8), whole(-90, 90, 4, 2, dtype=i8), zero])
case("ConvInteger", lambda a, w, z: F.conv2d((a.int() - 3).double(), w.double()).int(),
     [whole(0, 200, 1, 2, 4, 4, dtype=u8), whole(-90, 90, 3, 2, 2, 2, dtype=i8), zero])
case("QuantizeLinear", lambda a, s, z: torch.clamp(torch.round(a / 0.0625) + 3, 0, 255).to(u8), [x(3, 5) * 4, scale(0.0625), zero], grad=False)
case("DequantizeLinear", lambda a, s, z: (a.double() - 3) * 0.0625, [whole(0, 200, 3, 5, dtype=u8), scale(0.0625), zero], grad=False)
case("QLinearMatMul", lambda a, sa, za, b, sb, zb, sy, zy: torch.clamp(torch.round((a.double() - 3) * 0.125 @ ((b.double() - 3) * 0.25) / 64) + 3, 0, 255).to(u8),
     [whole(0, 200, 3, 4, dtype=u8), scale(0.125), zero, whole(0, 200, 4, 2, dtype=u8), scale(0.25), zero, scale(64), zero], grad=False)
case("QLinearConv", lambda a, sa, za, w, sw, zw, sy, zy: torch.clamp(torch.round(F.conv2d((a.double() - 3) * 0.125, (w.double() - 3) * 0.25) / 128) + 3, 0, 255).to(u8),
     [whole(0, 200, 1, 2, 4, 4, dtype=u8), scale(0.125), zero, whole(0, 200, 3, 2, 2, 2, dtype=u8), scale(0.25), zero, scale(128), zero], grad=False)


def dynamic(a):
    low, high = min(a.min(), 0), max(a.max(), 0)
    s = (high - low) / 255
    z = torch.clamp(torch.round(-low / s), 0, 255)
    return torch.clamp(torch.round(a / s) + z, 0, 255).to(u8), s, z.to(u8)


case("DynamicQuantizeLinear", dynamic, [R(-1.5, 0.2, 3, 2.2, -0.7)], grad=False)

# windows
case("MaxPool", lambda a: F.max_pool2d(a, 3, 2, 1), [x(1, 2, 7, 6)], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
case("MaxPool", lambda a: F.max_pool2d(a, 3, 2, ceil_mode=True), [x(1, 2, 8, 6)], name="ceil", kernel_shape=[3, 3], strides=[2, 2],
     ceil_mode=1)
case("AveragePool", lambda a: F.avg_pool2d(a, 3, 2, 1, count_include_pad=False), [x(1, 2, 7, 6)], kernel_shape=[3, 3], strides=[2, 2],
     pads=[1, 1, 1, 1])
case("GlobalAveragePool", lambda a: a.mean((2, 3), True), [x(2, 3, 4, 5)])
case("GlobalMaxPool", lambda a: a.amax((2, 3), True), [x(2, 3, 4, 5)])
case("LpPool", lambda a: F.avg_pool2d(a**2, 2, 1).mul(4).sqrt(), [x(1, 2, 4, 5)], kernel_shape=[2, 2], p=2)
case("GlobalLpPool", lambda a: a.square().sum((2, 3), True).sqrt(), [x(2, 3, 4, 5)], p=2)
case("Col2Im", lambda a, s, k: F.fold(a, (4, 5), (2, 3)), [x(1, 12, 9), L(4, 5), L(2, 3)], known=(1, 2), opset=18)
case("Resize", lambda a, r, s: F.interpolate(a, scale_factor=2, mode="nearest"), [x(1, 2, 3, 4), None, R(1, 1, 2, 2)], known=(2,),
     coordinate_transformation_mode="asymmetric", nearest_mode="floor")
for align, how in ((True, "align_corners"), (False, "half_pixel")):
    case("Resize", lambda a, r, s, n, align=align: F.interpolate(a, (5, 7), mode="bilinear", align_corners=align),
         [x(1, 2, 3, 4), None, None, L(1, 2, 5, 7)], known=(3,), name=f"linear {how}", mode="linear", coordinate_transformation_mode=how)
case("Resize", lambda a, r, s, n: F.interpolate(a, (5, 7), mode="bicubic", align_corners=False),
     [x(1, 2, 4, 5), None, None, L(1, 2, 5, 7)], known=(3,), name="cubic", mode="cubic", cubic_coeff_a=-0.75)
case("Upsample", lambda a, s: F.interpolate(a, scale_factor=2, mode="nearest"), [x(1, 2, 3, 4), R(1, 1, 2, 2)], known=(1,), opset=9)
grid = inside(1, 4, 3, 2)
case("GridSample", lambda a, g: F.grid_sample(a, g, align_corners=False), [x(1, 2, 5, 6), grid])
case("AffineGrid", lambda t, n: F.affine_grid(t, (2, 3, 4, 5), align_corners=False), [x(2, 2, 3), L(2, 3, 4, 5)], known=(1,), opset=20)

# norms
case("BatchNormalization", lambda a, w, b, m, v: F.batch_norm(a, m, v, w, b, False, 0.1, 1e-5),
     [x(2, 3, 4, 5), x(3), x(3), x(3), positive(3)], grad=False)
case("InstanceNormalization", lambda a, w, b: F.instance_norm(a, None, None, w, b, True, 0.1, 1e-5), [x(2, 3, 4, 5), x(3), x(3)])
case("LayerNormalization", lambda a, w, b: F.layer_norm(a, (5,), w, b), [x(2, 3, 5), x(5), x(5)])
case("GroupNormalization", lambda a, w, b: F.group_norm(a, 2, w, b), [x(2, 4, 3, 5), x(4), x(4)], opset=21, num_groups=2)
case("RMSNormalization", lambda a, w: a / (a.square().mean(-1, True) + 1e-5).sqrt() * w, [x(2, 3, 5), x(5)], opset=23)
case("LRN", lambda a: F.local_response_norm(a, 3, 0.01, 0.75, 1.0), [x(2, 5, 3, 3)], size=3, alpha=0.01)
case("LpNormalization", lambda a: F.normalize(a, 2, 1), [x(3, 5)], axis=1, p=2)
case("MeanVarianceNormalization", lambda a: (a - a.mean((0, 2, 3), True)) / (a.var((0, 2, 3), False, True).sqrt() + 1e-9), [x(2, 3, 4, 5)])

# losses
case("NegativeLogLikelihoodLoss", lambda a, t, w: F.nll_loss(a, t, w, ignore_index=1), [x(6, 4), whole(0, 4, 6), positive(4)], grad=(0,),
     ignore_index=1)
case("SoftmaxCrossEntropyLoss", lambda a, t: F.cross_entropy(a, t, reduction="sum"), [x(6, 4), whole(0, 4, 6)], reduction="sum")

# over time: ONNX has the gates of an LSTM as input, output, forget, cell; of a GRU as update, reset, hidden
T, N, I, H = 3, 2, 4, 3


def gates(w, order):
    return torch.cat([w.chunk(len(order))[i] for i in order])


def recurrent(net, order):
    def of(a, w, r, b, lengths=None, h0=None, c0=None):
        h0, bias = torch.zeros(1, N, H, dtype=torch.float64) if h0 is None else h0, b[0].chunk(2)
        weights = [gates(w[0], order), gates(r[0], order), gates(bias[0], order), gates(bias[1], order)]
        y, *last = net(a, h0 if c0 is None else (h0, c0), weights, True, 1, 0.0, False, False, False)
        return (y[:, None], *last)
    return of


case("RNN", recurrent(torch.rnn_tanh, [0]), [x(T, N, I), x(1, H, I), x(1, H, H), x(1, 2 * H)], hidden_size=H)
case("LSTM", recurrent(torch.lstm, [0, 2, 3, 1]), [x(T, N, I), x(1, 4 * H, I), x(1, 4 * H, H), x(1, 8 * H), None, x(1, N, H), x(1, N, H)],
     hidden_size=H)
case("GRU", recurrent(torch.gru, [1, 0, 2]), [x(T, N, I), x(1, 3 * H, I), x(1, 3 * H, H), x(1, 6 * H)], hidden_size=H, linear_before_reset=1)

# attention and what stands beside it


def attention(q, k, v, causal=False):
    s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
    return s.softmax(-1) @ v


case("Attention", attention, [x(2, 2, 3, 4), x(2, 2, 5, 4), x(2, 2, 5, 4)], opset=23)
case("Attention", lambda q, k, v: attention(q, k, v, True), [x(2, 2, 4, 4), x(2, 2, 4, 4), x(2, 2, 4, 4)], name="causal", opset=23, is_causal=1)


def rotary(a, cos, sin):
    left, right = a.chunk(2, -1)
    cos, sin = cos[:, None], sin[:, None]
    return torch.cat([left * cos - right * sin, right * cos + left * sin], -1)


case("RotaryEmbedding", rotary, [x(1, 2, 3, 8), x(1, 3, 4), x(1, 3, 4)], opset=23)
case("SwiGLU", lambda a, b: F.silu(a) * b, [x(3, 4), x(3, 4)], opset=27)
case("CausalConvWithState", lambda a, w: (F.conv1d(F.pad(a, (2, 0)), w, groups=3), F.pad(a, (2, 0))[:, :, 5:]), [x(2, 3, 5), x(3, 1, 3)], opset=27)


def linear_attention(q, k, v):  # one head
    state, out = torch.zeros(q.shape[0], 4, 3, dtype=torch.float64), []
    for t in range(q.shape[1]):
        state = state + k[:, t, :, None] * v[:, t, None, :]
        out.append((q[:, t, None] @ state)[:, 0] / 2)
    return torch.stack(out, 1), state[:, None]


case("LinearAttention", linear_attention, [x(2, 3, 4), x(2, 3, 4), x(2, 3, 3)], opset=27, update_rule="linear", q_num_heads=1, kv_num_heads=1)

# signals
case("DFT", lambda a: torch.view_as_real(torch.fft.fft(a[..., 0], dim=1)), [x(2, 5, 1)], axis=1)
case("STFT", lambda a, step, w, n: torch.view_as_real(torch.stft(a[..., 0], 8, 4, 8, w, center=False, return_complex=True).transpose(1, 2)),
     [x(2, 16, 1), L(4)[0], positive(8), L(8)[0]], known=(1, 3))
case("Det", torch.det, [x(2, 3, 3)])

# sequences, which end in a tensor
case("SplitToSequence", lambda a, n: a[:, 2:4], [x(3, 5), L(2)[0]], known=(1,),
     nodes=[("SplitToSequence", ["in0", "in1"], ["s"], {"axis": 1}), ("Constant", [], ["i"], {"value_int": -2}),
            ("SequenceAt", ["s", "i"], ["out0"], {})])
case("SplitToSequence", lambda a, n: a[1:], [x(3, 5), L(1, 2)], known=(1,), name="lengths",
     nodes=[("SplitToSequence", ["in0", "in1"], ["s"], {}), ("Constant", [], ["i"], {"value_int": 1}), ("SequenceAt", ["s", "i"], ["out0"], {})])
case("SplitToSequence", lambda a: a[:, 3], [x(3, 5)], name="single",
     nodes=[("SplitToSequence", ["in0"], ["s"], {"axis": -1, "keepdims": 0}), ("Constant", [], ["i"], {"value_int": 3}),
            ("SequenceAt", ["s", "i"], ["out0"], {})])
case("SequenceAt", lambda a, b, i: -b, [x(2, 3), x(2, 4), L(1)[0]], known=(2,), grad=(1,),
     nodes=[("SequenceConstruct", ["in0", "in1"], ["s"], {}), ("SequenceAt", ["s", "in2"], ["t"], {}), ("Neg", ["t"], ["out0"], {})])
case("SequenceConstruct", lambda a, b: torch.stack([a, b, a], 1), [x(2, 3), x(2, 3)],
     nodes=[("SequenceConstruct", ["in0", "in1", "in0"], ["s"], {}), ("ConcatFromSequence", ["s"], ["out0"], {"axis": 1, "new_axis": 1})])
case("ConcatFromSequence", lambda a, b: torch.cat([a, b], 1), [x(2, 3), x(2, 4)],
     nodes=[("SequenceConstruct", ["in0", "in1"], ["s"], {}), ("ConcatFromSequence", ["s"], ["out0"], {"axis": -1})])
case("SequenceLength", lambda a: a + 3, [x(5, 2)],
     nodes=[("Constant", [], ["n"], {"value_int": 2}), ("SplitToSequence", ["in0", "n"], ["s"], {}), ("SequenceLength", ["s"], ["k"], {}),
            ("Cast", ["k"], ["f"], {"to": FLOAT}), ("Add", ["in0", "f"], ["out0"], {})])

# of what is known, several and alone
case("Max", lambda a, n: a + 4, [x(2, 3), L(1, 4, 2)], known=(1,), name="known",
     nodes=[("Max", ["in1"], ["m"], {}), ("ReduceMax", ["m"], ["k"], {"keepdims": 0}), ("Cast", ["k"], ["f"], {"to": FLOAT}),
            ("Add", ["in0", "f"], ["out0"], {})])
case("Min", lambda a, n, m: a + torch.tensor([1.0, 2, 0]).double(), [x(2, 3), L(1, 4, 2), L(3, 2, 0)], known=(1, 2), name="known",
     nodes=[("Min", ["in1", "in2", "in1"], ["m"], {}), ("Cast", ["m"], ["f"], {"to": FLOAT}), ("Add", ["in0", "f"], ["out0"], {})])

# roots of 0, of which the gradient is 0
with_zeros = x(3, 5) * L(1, 0, 1)[:, None]
case("ReduceL2", lambda a: torch.linalg.vector_norm(a, dim=1, keepdim=True), [with_zeros], name="zeros", axes=[1])
case("LpNormalization", lambda a: torch.stack([F.normalize(a[0], 2, 0), a[1] * 0, F.normalize(a[2], 2, 0)]), [with_zeros], name="zeros", axis=1, p=2)

# files that say one batch, given another
case("Reshape", lambda a, s: a.reshape(3, 4, -1, 2).transpose(1, 2), [x(3, 4, 10), L(1, 4, -1, 2)], known=(1,), name="batch of 1", batch=1,
     nodes=[("Reshape", ["in0", "in1"], ["r"], {}), ("Transpose", ["r"], ["out0"], {"perm": [0, 2, 1, 3]})])
case("Reshape", lambda a, s: a.reshape(6, 4, -1), [x(6, 4, 2, 3), L(2, 4, -1)], known=(1,), name="batch of 2", batch=2)
case("Reshape", lambda a, s, t: a.reshape(6, 12), [x(6, 4, 3), L(4, -1), L(2, -1)], known=(1, 2), name="twice the batch of 2", batch=2,
     nodes=[("Reshape", ["in0", "in1"], ["r"], {}), ("Relu", ["r"], ["p"], {}), ("Neg", ["r"], ["n"], {}), ("Relu", ["n"], ["q"], {}),
            ("Sub", ["p", "q"], ["d"], {}), ("Reshape", ["d", "in2"], ["out0"], {})])
case("Reshape", lambda a, s, b: a * b.reshape(1, -1, 1), [x(3, 6, 2), L(1, -1, 1), L(1, 2, 3, 4, 5, 6)], known=(1, 2), name="none of the batch",
     batch=1, nodes=[("Reshape", ["in2", "in1"], ["r"], {}), ("Cast", ["r"], ["f"], {"to": FLOAT}), ("Mul", ["in0", "f"], ["out0"], {})])
case("Expand", lambda a, s: a - a.mean(0, True), [x(6, 4, 3), L(2, 4, 3)], known=(1,), name="batch of 2", batch=2,
     nodes=[("ReduceMean", ["in0"], ["m"], {"axes": [0]}), ("Expand", ["m", "in1"], ["e"], {}), ("Sub", ["in0", "e"], ["out0"], {})])
case("Expand", lambda a, b, s: a + b.double(), [x(6, 3), L(5, 7, 9), L(2, 3)], known=(1, 2), name="known, batch of 2", batch=2,
     nodes=[("Expand", ["in1", "in2"], ["e"], {}), ("Cast", ["e"], ["f"], {"to": FLOAT}), ("Add", ["in0", "f"], ["out0"], {})])
case("Concat", lambda a, b: torch.cat([b.double().expand(3, 1, 5), a], 1), [x(3, 4, 5), whole(-9, 9, 1, 1, 5)], known=(1,), name="batch of 1",
     batch=1, nodes=[("Cast", ["in1"], ["f"], {"to": FLOAT}), ("Concat", ["f", "in0"], ["out0"], {"axis": 1})])
case("Expand", lambda a, *_: a.reshape(12, 2, 1).expand(12, 2, 3).reshape(6, 12), [x(6, 4), L(4, 2, 1), L(4, 2, 3), L(2, 12)], known=(1, 2, 3),
     name="twice the batch of 2", batch=2, nodes=[("Reshape", ["in0", "in1"], ["r"], {}), ("Expand", ["r", "in2"], ["e"], {}),
                                                  ("Reshape", ["e", "in3"], ["out0"], {})])
for name, strided in (("all", L(*range(6)).reshape(1, 3, 2)), ("some", L(5, 1, 1, 2).reshape(1, 4))):
    case("Gather", lambda a, s, i, strided=strided: a.reshape(4, 6)[:, strided[0]], [x(4, 2, 3), L(-1), strided], known=(1, 2),
         name=f"{name} of a batch of 1", batch=1, nodes=[("Reshape", ["in0", "in1"], ["r"], {}), ("Gather", ["r", "in2"], ["out0"], {})])
case("Reshape", lambda a, *_: a * 2, [x(4, 5, 6), L(5, 6), L(5, 1, 6)], known=(1, 2), name="places first, batch of 1", batch=1,
     nodes=[("Transpose", ["in0"], ["t"], {"perm": [1, 0, 2]}), ("Reshape", ["t", "in1"], ["r"], {}), ("Add", ["r", "r"], ["s"], {}),
            ("Reshape", ["s", "in2"], ["u"], {}), ("Transpose", ["u"], ["out0"], {"perm": [1, 0, 2]})])
case("Reshape", lambda a, *_: a.reshape(4, 5, 2, 3).transpose(1, 2), [x(4, 5, 6), L(5, 2, 3), L(1, 2, 5, 3)], known=(1, 2), name="heads, batch of 1",
     batch=1, nodes=[("Transpose", ["in0"], ["t"], {"perm": [1, 0, 2]}), ("Reshape", ["t", "in1"], ["r"], {}),
                     ("Transpose", ["r"], ["u"], {"perm": [1, 0, 2]}), ("Reshape", ["u", "in2"], ["out0"], {})])
case("Clip", lambda a, n: torch.clamp(a, min=2.0), [x(3, 4) * 3, L(2)[0]], known=(1,), name="as a cast",
     nodes=[("CastLike", ["in1", "in0"], ["m"], {}), ("Clip", ["in0", "m"], ["out0"], {})])
places = L(4, 0, 3)
for batch in (1, 2):
    index = torch.stack([torch.arange(batch)[:, None].expand(batch, 3), places.expand(batch, 3)], -1)
    case("GatherND", lambda a, i: a[:, places], [x(6, 5, 2), index], known=(1,), name=f"batch of {batch}", batch=batch)

# windows of other dimensions, and uneven padding
case("ConvTranspose", lambda a, w, b: F.conv_transpose1d(a, w, b, 3, 1), [x(2, 3, 4), x(3, 2, 4), x(2)], name="1d", strides=[3], pads=[1, 1])
case("ConvTranspose", lambda a, w, b: F.conv_transpose3d(a, w, b, 2, (1, 0, 1), (0, 1, 1)), [x(1, 2, 3, 2, 3), x(2, 3, 3, 2, 2), x(3)],
     name="3d", strides=[2, 2, 2], pads=[1, 0, 1, 1, 0, 1], output_padding=[0, 1, 1])
case("ConvTranspose", lambda a, w, b: F.conv_transpose2d(a, w, None, 2)[:, :, 1:-2, :-1] + b[:, None, None],
     [x(1, 2, 4, 3), x(2, 2, 3, 3), x(2)], name="uneven", strides=[2, 2], pads=[1, 0, 2, 1])
case("Conv", lambda a, w, b: F.conv3d(a, w, b, (1, 2, 1), (1, 0, 2), (2, 1, 1), 2), [x(2, 4, 5, 5, 4), x(4, 2, 3, 2, 3), x(4)],
     name="3d all", strides=[1, 2, 1], pads=[1, 0, 2, 1, 0, 2], dilations=[2, 1, 1], group=2)
case("MaxPool", lambda a: F.max_pool3d(a, (2, 3, 2), (1, 2, 2), (1, 1, 0)), [x(1, 2, 4, 5, 6)], name="3d", kernel_shape=[2, 3, 2], strides=[1, 2, 2],
     pads=[1, 1, 0, 1, 1, 0])
case("AveragePool", lambda a: F.avg_pool3d(a, 2, 1, 1, count_include_pad=False), [x(1, 2, 3, 4, 3)], name="3d", kernel_shape=[2, 2, 2],
     pads=[1, 1, 1, 1, 1, 1])
case("AveragePool", lambda a: F.avg_pool1d(a, 3, 2, 1), [x(1, 2, 8)], name="1d", kernel_shape=[3], strides=[2], pads=[1, 1], count_include_pad=1)
case("TopK", lambda a, k: torch.topk(a, 2, 0, False), [x(5, 3), L(2)], known=(1,), name="smallest", axis=0, largest=0)

# graphs in nodes
double = graph([("Add", ["in0", "in0"], ["d"], {})], [], ["d"])
negative = graph([("Neg", ["in0"], ["m"], {})], [], ["m"])
nested = graph([("Shape", ["in0"], ["s"], {}), ("Constant", [], ["k"], {"value_ints": [2, 3]}), ("Equal", ["s", "k"], ["e"], {}),
                ("ReduceMin", ["f"], ["g"], {"keepdims": 0}), ("Cast", ["g"], ["b"], {"to": BOOL}),
                ("If", ["b"], ["r"], {"then_branch": double, "else_branch": negative})], [], ["r"])
case("If", lambda a, c: -a, [x(2, 3), torch.tensor(False)], known=(1,), nodes=[
    ("If", ["in1"], ["out0"], {"then_branch": graph([("Nowhere", ["in0"], ["n"], {})], [], ["n"]), "else_branch": negative})])
case("If", lambda a, c: 2 * a, [x(2, 3), torch.tensor(True)], known=(1,), name="in another", nodes=[
    ("Shape", ["in0"], ["s"], {}), ("Constant", [], ["k"], {"value_ints": [2, 3]}), ("Equal", ["s", "k"], ["e"], {}),
    ("Cast", ["e"], ["f"], {"to": INT32}), ("If", ["in1"], ["out0"], {"then_branch": nested, "else_branch": negative})])
case("Identity", lambda a: a + 1, [x(3)], name="of a list", nodes=[
    ("Constant", [], ["zero"], {"value_int": 0}), ("Constant", [], ["one"], {"value_float": 1.0}), ("SequenceConstruct", ["in0"], ["s"], {}),
    ("Identity", ["s"], ["t"], {}), ("SequenceAt", ["t", "zero"], ["u"], {}), ("Add", ["u", "one"], ["out0"], {})])


def looped(a, b, n):
    rows = []
    for i in range(n):
        a, b = b, a * b + i
        rows.append(b * 2)
    return a, b, torch.stack(rows)


turns = graph([("Cast", ["i"], ["f"], {"to": FLOAT}), ("Mul", ["a", "b"], ["p"], {}), ("Add", ["p", "f"], ["c"], {}), ("Add", ["c", "c"], ["row"], {}),
               ("Identity", ["go"], ["on"], {})], ["i", "go", "a", "b"], ["on", "b", "c", "row"])
case("Loop", lambda a, b, n: looped(a, b, 4), [x(2, 3), x(2, 3), L(4)[0]], known=(2,), grad=(0, 1), nodes=[
    ("Loop", ["in2", "", "in0", "in1"], ["out0", "out1", "out2"], {"body": turns})])
until = graph([("Add", ["i", "n"], ["m"], {}), ("Less", ["m", "in1"], ["on"], {}), ("Mul", ["a", "in0"], ["c"], {})], ["i", "go", "a", "n"], ["on", "c", "m"])
case("Loop", lambda a, m: (a ** 5, L(6)[0]), [inside(4), L(6)[0]], known=(1,), name="until", nodes=[  # 0, 1, 3, 6
    ("Constant", [], ["zero"], {"value_int": 0}), ("Loop", ["", "", "in0", "zero"], ["out0", "out1"], {"body": until})])
inner = graph([("Mul", ["d", "in0"], ["e"], {}), ("Identity", ["go2"], ["on2"], {})], ["j", "go2", "d"], ["on2", "e"])
outer = graph([("Loop", ["i", "go", "a"], ["b"], {"body": inner}), ("Identity", ["go"], ["on"], {})], ["i", "go", "a"], ["on", "b", "b"])
case("Loop", lambda a, n: (a ** 4, torch.stack([a, a ** 2, a ** 4])), [inside(2, 2), L(3)[0]], known=(1,), name="in a loop", nodes=[
    ("Loop", ["in1", "", "in0"], ["out0", "out1"], {"body": outer})])
filled = graph([("Add", ["i", "one"], ["next"], {}), ("Unsqueeze", ["next", "zeros"], ["ends"], {}), ("Slice", ["in0", "zeros", "ends"], ["part"], {}),
                ("SequenceInsert", ["list", "part"], ["longer"], {}), ("Identity", ["go"], ["on"], {})], ["i", "go", "list"], ["on", "longer"],
               {"one": L(1)[0], "zeros": L(0)})
case("SequenceEmpty", lambda a, n: torch.cat([a[:1], a[:2], a[:3]]), [x(3, 2), L(3)[0]], known=(1,), name="filled by a loop", nodes=[
    ("SequenceEmpty", [], ["none"], {}), ("Loop", ["in1", "", "none"], ["list"], {"body": filled}),
    ("ConcatFromSequence", ["list"], ["out0"], {"axis": 0})])


def scanned(s, a, b):
    rows, turned = [], []
    for t in range(3):
        s = torch.tanh(s + a[:, t] * b[2 - t])
        rows.append(s)
        turned.insert(0, s * s)
    return s, torch.stack(rows, 1), torch.stack(turned)


step = graph([("Mul", ["u", "v"], ["w"], {}), ("Add", ["s", "w"], ["z"], {}), ("Tanh", ["z"], ["t"], {}), ("Mul", ["t", "t"], ["q"], {})],
             ["s", "u", "v"], ["t", "t", "q"])
case("Scan", scanned, [x(2, 4), x(2, 3, 4), x(3, 4)], body=step, num_scan_inputs=2, scan_input_axes=[-2, 0], scan_input_directions=[0, 1],
     scan_output_axes=[1, 0], scan_output_directions=[0, 1])
case("Scan", lambda a, k: torch.cumsum(a * k.double()[:, None], 0) + 3, [x(4, 2), L(1, 2, 3, 4)], known=(1,), name="of known numbers too", nodes=[
    ("Constant", [], ["c"], {"value_floats": [3.0, 3.0]}), ("Scan", ["c", "in0", "in1"], ["last", "out0"], {"num_scan_inputs": 2, "body": graph(
        [("Cast", ["k"], ["f"], {"to": FLOAT}), ("Mul", ["r", "f"], ["p"], {}), ("Add", ["s", "p"], ["t"], {})], ["s", "r", "k"], ["t", "t"])})])
case("Scan", lambda s, a: (s + a.sum(1), torch.cumsum(a, 1) + s[:, None]), [x(2, 3), x(2, 4, 3)], name="of samples", opset=8, nodes=[
    ("Scan", ["", "in0", "in1"], ["out0", "out1"], {"num_scan_inputs": 1, "body": graph([("Add", ["s", "r"], ["t"], {})], ["s", "r"], ["t", "t"])})])
case("SequenceMap", lambda a, b: torch.cat([a[:2] * b, a[2:] * b]), [x(3, 4), x(4)], nodes=[
    ("Constant", [], ["n"], {"value_int": 2}), ("SplitToSequence", ["in0", "n"], ["list"], {}),
    ("SequenceMap", ["list", "in1"], ["made"], {"body": graph([("Mul", ["p", "q"], ["r"], {})], ["p", "q"], ["r"])}),
    ("ConcatFromSequence", ["made"], ["out0"], {"axis": 0})])

# lists that are changed, and values that may not be there
case("SequenceEmpty", lambda a: a + 0, [x(3)], nodes=[
    ("SequenceEmpty", [], ["s"], {}), ("SequenceLength", ["s"], ["n"], {}), ("Cast", ["n"], ["f"], {"to": FLOAT}), ("Add", ["in0", "f"], ["out0"], {})])
case("SequenceInsert", lambda a, b, c, i: torch.cat([c, a, b]), [x(3), x(2), x(1), L(-2)[0]], known=(3,), nodes=[
    ("SequenceConstruct", ["in0", "in1"], ["s"], {}), ("SequenceInsert", ["s", "in2", "in3"], ["t"], {}),
    ("ConcatFromSequence", ["t"], ["out0"], {"axis": 0})])
case("SequenceErase", lambda a, b, i: torch.cat([b, a]), [x(3), x(2), L(1)[0]], known=(2,), nodes=[
    ("SequenceConstruct", ["in1", "in1", "in0", "in0"], ["s"], {}), ("SequenceErase", ["s", "in2"], ["t"], {}), ("SequenceErase", ["t"], ["u"], {}),
    ("ConcatFromSequence", ["u"], ["out0"], {"axis": 0})])
case("Optional", lambda a: a + 1, [x(3)], nodes=[
    ("Optional", ["in0"], ["o"], {}), ("OptionalHasElement", ["o"], ["h"], {}), ("OptionalGetElement", ["o"], ["e"], {}),
    ("Cast", ["h"], ["f"], {"to": FLOAT}), ("Add", ["e", "f"], ["out0"], {})])
case("OptionalHasElement", lambda a: 2 * a, [x(2, 3)], nodes=[
    ("Optional", [], ["o"], {}), ("Identity", ["o"], ["p"], {}), ("OptionalHasElement", ["p"], ["h"], {}),
    ("If", ["h"], ["out0"], {"then_branch": negative, "else_branch": double})])
case("OptionalGetElement", lambda a: -a, [x(3)], nodes=[
    ("SequenceConstruct", ["in0", "in0"], ["s"], {}), ("Optional", ["s"], ["o"], {}), ("OptionalGetElement", ["o"], ["t"], {}),
    ("SequenceErase", ["t"], ["u"], {}), ("ConcatFromSequence", ["u"], ["v"], {"axis": 0}), ("Neg", ["v"], ["out0"], {})])

# weights that stay bytes: 4096 of them and more
small = dict(w=whole(-90, 90, 64, 64, dtype=i8), s=torch.tensor([0.5, 0.25] * 32))
case("DequantizeLinear", lambda a, w, k: a @ (w.double() * 0.25 - 0.5) @ (w.double() * 0.25 - 0.5), [x(2, 64), small["w"], L(2)[0]], known=(1, 2),
     name="of many weights", nodes=[
         ("Constant", [], ["s"], {"value_float": 0.25}), ("Cast", ["in2"], ["z"], {"to": INT8}), ("DequantizeLinear", ["in1", "s", "z"], ["v"], {}),
         ("MatMul", ["in0", "v"], ["y"], {}), ("MatMul", ["y", "v"], ["out0"], {})])
case("DequantizeLinear", lambda a, w: (w.double() * 0.5, -a), [x(3), whole(0, 200, 70, 60, dtype=u8)], known=(1,), name="as a result", nodes=[
    ("Constant", [], ["s"], {"value_float": 0.5}), ("DequantizeLinear", ["in1", "s"], ["out0"], {}), ("Neg", ["in0"], ["out1"], {})])
case("If", lambda a, c, w: a + w.double() * 0.5, [x(65, 64), torch.tensor(True), whole(0, 200, 65, 64, dtype=u8)], known=(1, 2), name="of many weights", nodes=[
    ("Constant", [], ["s"], {"value_float": 0.5}), ("DequantizeLinear", ["in2", "s"], ["v"], {}), ("Neg", ["v"], ["n"], {}),
    ("If", ["in1"], ["b"], {"then_branch": graph([], [], ["v"]), "else_branch": graph([], [], ["n"])}), ("Add", ["in0", "b"], ["out0"], {})])
case("Gather", lambda w, i: w[i], [whole(-90, 90, 70, 60, dtype=i8), whole(0, 70, 5)], known=(0,), name="of many bytes", grad=False, nodes=[
    ("Gather", ["in0", "in1"], ["out0"], {})])
case("MatMulInteger", lambda a, w, z: a.int() @ (w.int() - 3), [whole(0, 200, 3, 64, dtype=u8), whole(0, 200, 64, 65, dtype=u8), zero], known=(1, 2),
     name="of many weights", nodes=[("MatMulInteger", ["in0", "in1", "", "in2"], ["out0"], {})])

# ONNX Runtime's own quantised ops
by = dict(domain="com.microsoft:", grad=False)
bytes_of = lambda y, s: torch.clamp(torch.round(y / s) + 3, 0, 255).to(u8)  # noqa: E731
real_of = lambda a, s: (a.double() - 3) * s  # noqa: E731
a8, b8 = whole(0, 200, 2, 3, 4, dtype=u8), whole(0, 200, 3, 1, dtype=u8)
two = [a8, scale(0.125), zero, b8, scale(0.25), zero]
case("QLinearAdd", lambda a, sa, za, b, sb, zb, sy, zy: bytes_of(real_of(a, 0.125) + real_of(b, 0.25), 0.5), two + [scale(0.5), zero], **by)
case("QLinearMul", lambda a, sa, za, b, sb, zb, sy, zy: bytes_of(real_of(a, 0.125) * real_of(b, 0.25), 8), two + [scale(8), zero], **by)
case("QLinearConcat", lambda sy, zy, a, sa, za, b, sb, zb: bytes_of(torch.cat([real_of(a, 0.125), real_of(b, 0.25)]), 0.5),
     [scale(0.5), zero, a8[0], scale(0.125), zero, whole(0, 200, 2, 4, dtype=u8), scale(0.25), zero], axis=0, **by)
case("QLinearGlobalAveragePool", lambda a, sa, za, sy, zy: bytes_of(real_of(a, 0.125).mean((2, 3), True), 0.25),
     [whole(0, 200, 2, 3, 4, 4, dtype=u8), scale(0.125), zero, scale(0.25), zero], **by)
case("QLinearGlobalAveragePool", lambda a, sa, za, sy, zy: bytes_of(real_of(a, 0.125).mean((1, 2), True), 0.25),
     [whole(0, 200, 2, 4, 4, 3, dtype=u8), scale(0.125), zero, scale(0.25), zero], name="channels last", channels_last=1, **by)
case("QLinearSigmoid", lambda a, sa, za, sy, zy: bytes_of(torch.sigmoid(real_of(a, 0.125)), 2**-7), [a8, scale(0.125), zero, scale(2**-7), zero], **by)
case("QLinearLeakyRelu", lambda a, sa, za, sy, zy: bytes_of(F.leaky_relu(real_of(a, 0.125), 0.25), 0.25), [a8, scale(0.125), zero, scale(0.25), zero],
     alpha=0.25, **by)
sums = lambda a, b, c: ((a.double().T - 3) @ (b.double() - 3).T + c) * 0.125 * 0.25 * 0.5  # noqa: E731
gemm = [whole(0, 200, 4, 3, dtype=u8), scale(0.125), zero, whole(0, 200, 5, 4, dtype=u8), scale(0.25), zero, whole(-999, 999, 5, dtype=torch.int32)]
case("QGemm", lambda a, sa, za, b, sb, zb, c, sy, zy: bytes_of(sums(a, b, c), 8), gemm + [scale(8), zero], transA=1, transB=1, alpha=0.5, **by)
case("QGemm", lambda a, sa, za, b, sb, zb, c: sums(a, b, c), gemm, name="of floats", transA=1, transB=1, alpha=0.5, **by)
case("MatMulIntegerToFloat", lambda a, b, sa, sb, za, zb, c: (a.double() - 3) @ (b.double() - 3) * 0.125 * torch.tensor([0.25, 0.5]) + c,
     [whole(0, 200, 3, 4, dtype=u8), whole(0, 200, 4, 2, dtype=u8), scale(0.125), R(0.25, 0.5), zero, zero, x(2)], **by)

# where the largest are
def places(a, *how, columns=False, **more):
    y, i = getattr(F, f"max_pool{a.ndim - 2}d")(a, *how, return_indices=True, **more)
    if columns:
        i = i // a.shape[3] + i % a.shape[3] * a.shape[2]
    first = torch.arange(a.shape[0] * a.shape[1]).reshape(a.shape[:2] + (1,) * (a.ndim - 2))
    return y, i + first * a.shape[2:].numel()


case("MaxPool", lambda a: places(a, 3, 2, 1), [x(2, 3, 5, 6)], name="places", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
case("MaxPool", lambda a: places(a, 2, 2, ceil_mode=True, columns=True), [x(2, 2, 5, 6)], name="places by columns", kernel_shape=[2, 2], strides=[2, 2],
     ceil_mode=1, storage_order=1)
case("MaxPool", lambda a: places(a, 2, 1, dilation=2), [x(1, 3, 7)], name="places of a row", kernel_shape=[2], dilations=[2])
case("MaxPool", lambda a: places(a, (2, 1, 2)), [x(1, 2, 4, 3, 2)], name="places of three dimensions", kernel_shape=[2, 1, 2], strides=[2, 1, 2])
case("MaxUnpool", lambda a: F.max_unpool2d(*F.max_pool2d(a, 2, 2, return_indices=True), 2, 2), [x(2, 3, 4, 6)], nodes=[
    ("MaxPool", ["in0"], ["m", "i"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ("MaxUnpool", ["m", "i"], ["out0"], {"kernel_shape": [2, 2], "strides": [2, 2]})])
case("MaxUnpool", lambda a, s: F.pad(F.max_unpool2d(*F.max_pool2d(a, 2, 2, return_indices=True), 2, 2), (0, 2, 0, 1)), [x(1, 1, 4, 6), L(1, 1, 5, 8)],
     known=(1,), name="of a shape", nodes=[("MaxPool", ["in0"], ["m", "i"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
                                           ("MaxUnpool", ["m", "i", "in1"], ["out0"], {"kernel_shape": [2, 2], "strides": [2, 2]})])

one = [scale(0.125), zero, scale(2**-8), zero]
case("QLinearSoftmax", lambda a, sa, za, sy, zy: bytes_of(torch.softmax(real_of(a, 0.125), 1), 2**-8), [a8, *one], axis=1, **by)
case("QLinearSoftmax", lambda a, sa, za, sy, zy: bytes_of(torch.softmax(real_of(a, 0.125).flatten(1), 1).reshape(2, 3, 4), 2**-8), [a8, *one],
     name="of the rest", axis=1, **(by | {"opset_": 11}))
case("QLinearAveragePool", lambda a, sa, za, sy, zy: bytes_of(F.avg_pool2d(real_of(a, 0.125), 2, 1), 0.25),
     [whole(0, 200, 2, 3, 4, 4, dtype=u8), scale(0.125), zero, scale(0.25), zero], kernel_shape=[2, 2], **by)

# random numbers, of which nothing is left to chance
case("RandomUniform", lambda a: a + 1.5, [x(2, 3)], nodes=[("RandomUniform", [], ["r"], dict(shape=[2, 3], low=1.5, high=1.5)),
                                                           ("Add", ["in0", "r"], ["out0"], {})])
case("RandomNormal", lambda a: a - 2, [x(2, 3)], nodes=[("RandomNormal", [], ["r"], dict(shape=[3], mean=-2.0, scale=0.0)),
                                                        ("Add", ["in0", "r"], ["out0"], {})])
case("RandomUniformLike", lambda a: torch.full((2, 3), 0.25).double(), [x(2, 3)], grad=False, low=0.25, high=0.25)
case("RandomNormalLike", lambda a: torch.full((2, 3), 4).int(), [x(2, 3)], grad=False, mean=4.0, scale=0.0, dtype=INT32)
case("Bernoulli", lambda a: a, [whole(0, 2, 3, 4).double()], grad=False, opset=15)
case("Multinomial", lambda a: torch.tensor([[1, 1, 1], [2, 2, 2]]).int(), [R(-500, 3, -500, -800, -700, 0).reshape(2, 3)], grad=False, sample_size=3)
case("GridSample", lambda a, g: F.grid_sample(a, g, "bicubic", "border", align_corners=True), [x(1, 2, 5, 6), grid], name="bicubic",
     mode="bicubic", padding_mode="border", align_corners=1)
case("Attention", lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m, enable_gqa=True),
     [x(2, 4, 3, 4), x(2, 2, 5, 4), x(2, 2, 5, 4), x(3, 5)], name="groups, mask", opset=23)
case("RotaryEmbedding", lambda a, cos, sin: torch.stack([a[..., ::2] * cos[:, None] - a[..., 1::2] * sin[:, None],
                                                         a[..., 1::2] * cos[:, None] + a[..., ::2] * sin[:, None]], -1).flatten(-2),
     [x(1, 2, 3, 8), x(1, 3, 4), x(1, 3, 4)], name="neighbours", opset=23, interleaved=1)

# what PyTorch has under the name of our op, element by element
rows = (HERE.parents[1] / "runtime/ops/elementwise.def").read_text()
ranges = {name: [float(low), float(high)] for name, low, high in
          re.findall(r"^UNARY(?:_F32)?\((\w+), NONE, [^,]+, [^,]+, ([^,]+), ([^,]+),", rows, re.M)}
for name, op in re.findall(r"^ONNX\((\w+), (\w+), FLOATS\)", rows, re.M):
    if f"{op}/model" not in tensors:
        case(op, getattr(torch, name, None) or getattr(F, name), [torch.linspace(*ranges[name], 21, dtype=torch.float64).reshape(3, 7)])

save(HERE / "rows.safetensors", tensors)
