# SPDX-License-Identifier: Apache-2.0
"""An ONNX file as a module of PyTorch, in f64, for parity-pytorch.py: its nodes one after the other, its initializers of floats with a
dimension as parameters under their own names, running statistics as buffers. BatchNormalization follows train() and eval(); dropout
drops nothing. Knows the ops that exporters of PyTorch write; another one is refused by its name. Must not know Cleave."""
import math

import numpy
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper

TYPES = {1: torch.float64, 10: torch.float64, 11: torch.float64, 16: torch.float64, 2: torch.uint8, 3: torch.int8, 6: torch.int32,
         7: torch.int64, 9: torch.bool}


def array(a):
    value = numpy_helper.to_array(a)
    return torch.from_numpy(value.astype(numpy.float64) if value.dtype.kind == "f" or value.dtype.name == "bfloat16" else value.copy())


def whole(t):
    return [int(i) for i in t.reshape(-1).tolist()]


def axes_of(a, x, i=1, fallback=None):
    return a["axes"] if "axes" in a else whole(x[i]) if len(x) > i and x[i] is not None else fallback


# ---- windows --------------------------------------------------------------------------------------------------------
def padded(a, x, kernel, fill=0.0):
    """x padded as a node says, and its strides and dilations."""
    n = len(kernel)
    strides, dilations = a.get("strides", [1] * n), a.get("dilations", [1] * n)
    pads = a.get("pads", [0] * 2 * n)
    if a.get("auto_pad", "NOTSET").startswith("SAME"):
        all_of = [max((math.ceil(s / t) - 1) * t + (k - 1) * d + 1 - s, 0) for s, t, k, d in zip(x.shape[2:], strides, kernel, dilations)]
        first = [p // 2 if a["auto_pad"] == "SAME_UPPER" else (p + 1) // 2 for p in all_of]
        pads = first + [p - q for p, q in zip(all_of, first)]
    flat = [side for d in reversed(range(n)) for side in (pads[d], pads[n + d])]
    return (F.pad(x, flat, value=fill) if any(flat) else x), strides, dilations


def conv(a, x):
    n = x[1].ndim - 2
    y, strides, dilations = padded(a, x[0], x[1].shape[2:])
    return (F.conv1d, F.conv2d, F.conv3d)[n - 1](y, x[1], x[2] if len(x) > 2 else None, strides, 0, dilations, a.get("group", 1))


def conv_transpose(a, x):
    n = x[1].ndim - 2
    pads = a.get("pads", [0] * 2 * n)
    return (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[n - 1](
        x[0], x[1], x[2] if len(x) > 2 else None, a.get("strides", [1] * n), pads[:n], a.get("output_padding", 0), a.get("group", 1),
        a.get("dilations", [1] * n))


def max_pool(a, x):
    kernel = a["kernel_shape"]
    y, strides, dilations = padded(a, x[0], kernel, -math.inf)
    return (F.max_pool1d, F.max_pool2d, F.max_pool3d)[len(kernel) - 1](y, kernel, strides, 0, dilations, bool(a.get("ceil_mode")))


def average_pool(a, x):
    n = len(a["kernel_shape"])
    pads = a.get("pads", [0] * 2 * n)
    assert pads[:n] == pads[n:], "uneven pads of AveragePool"
    return (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[n - 1](x[0], a["kernel_shape"], a.get("strides", [1] * n), pads[:n],
                                                           bool(a.get("ceil_mode")), bool(a.get("count_include_pad")))


# ---- moves ----------------------------------------------------------------------------------------------------------
def reshape(a, x):
    shape = whole(x[1])
    return x[0].reshape([x[0].shape[i] if d == 0 and not a.get("allowzero") else d for i, d in enumerate(shape)])


def sliced(a, x):
    starts, ends = a.get("starts") or whole(x[1]), a.get("ends") or whole(x[2])
    axes = axes_of(a, x, 3, list(range(len(starts))))
    steps = whole(x[4]) if len(x) > 4 and x[4] is not None else [1] * len(starts)
    y = x[0]
    for start, end, axis, step in zip(starts, ends, axes, steps):
        start, end, step = slice(start, end if end > -2**62 else None, step).indices(y.shape[axis])
        y = y.index_select(axis, torch.arange(start, end, step))
    return y


def split(a, x):
    axis, size = a.get("axis", 0), x[0].shape[a.get("axis", 0)]
    sizes = a.get("split") or (whole(x[1]) if len(x) > 1 else None)
    each = -(-size // a["outputs"])
    return list(torch.split(x[0], sizes or each, axis))


def squeeze(a, x):
    axes = axes_of(a, x)
    return x[0].squeeze(tuple(axes)) if axes else x[0].squeeze()


def unsqueeze(a, x):
    axes, rank = axes_of(a, x), x[0].ndim
    y = x[0]
    for axis in sorted(i % (rank + len(axes)) for i in axes):
        y = y.unsqueeze(axis)
    return y


def gather(a, x):
    axis, index = a.get("axis", 0) % x[0].ndim, x[1].long() % x[0].shape[a.get("axis", 0)]
    y = x[0].index_select(axis, index.reshape(-1))
    return y.reshape(x[0].shape[:axis] + index.shape + x[0].shape[axis + 1:])


def pad(a, x):
    pads = a.get("pads") or whole(x[1])
    n, axes = len(pads) // 2, axes_of({}, x, 3, list(range(x[0].ndim)))
    before, after = [0] * x[0].ndim, [0] * x[0].ndim
    for i, axis in enumerate(axes):
        before[axis], after[axis] = pads[i], pads[n + i]
    flat = [side for d in reversed(range(x[0].ndim)) for side in (before[d], after[d])]
    mode = {"constant": "constant", "reflect": "reflect", "edge": "replicate"}[a.get("mode", "constant")]
    value = x[2].item() if len(x) > 2 and x[2] is not None else 0.0
    return F.pad(x[0], flat, mode, value) if mode == "constant" else F.pad(x[0], flat[:4] if x[0].ndim == 4 else flat, mode)


def shape(a, x):
    return torch.tensor(x[0].shape[a.get("start", 0):a.get("end", None)], dtype=torch.int64)


def expand(a, x):
    return x[0].expand(torch.broadcast_shapes(x[0].shape, tuple(whole(x[1]))))


def resize(a, x):
    sizes = whole(x[3])[2:] if len(x) > 3 and x[3] is not None else [int(s * d) for s, d in zip(x[2].tolist()[2:], x[0].shape[2:])]
    mode = {"nearest": "nearest", "linear": "bilinear", "cubic": "bicubic"}[a.get("mode", "nearest")]
    corners = {} if mode == "nearest" else {"align_corners": a.get("coordinate_transformation_mode") == "align_corners"}
    return F.interpolate(x[0], sizes, mode=mode, **corners)


# ---- numbers --------------------------------------------------------------------------------------------------------
def reduced(of):
    def by(a, x):
        axes = axes_of(a, x)
        if axes is None and a.get("noop_with_empty_axes"):
            return x[0]
        return of(x[0], tuple(axes) if axes else tuple(range(x[0].ndim)), bool(a.get("keepdims", 1)))
    return by


def gemm(a, x):
    left, right = x[0].T if a.get("transA") else x[0], x[1].T if a.get("transB") else x[1]
    y = a.get("alpha", 1.0) * (left @ right)
    return y + a.get("beta", 1.0) * x[2] if len(x) > 2 else y


def batch_norm(a, x):
    return F.batch_norm(x[0], x[3], x[4], x[1], x[2], a["training"], 1 - a.get("momentum", 0.9), a.get("epsilon", 1e-5))


def layer_norm(a, x):
    axis = a.get("axis", -1)
    y = F.layer_norm(x[0], x[0].shape[axis:], None, None, a.get("epsilon", 1e-5)) * x[1]
    return y + x[2] if len(x) > 2 else y


def rms_norm(a, x):
    axes = tuple(range(a.get("axis", -1) % x[0].ndim, x[0].ndim))
    return x[0] / (x[0].square().mean(axes, True) + a.get("epsilon", 1e-5)).sqrt() * x[1]


def attention(a, x):
    assert x[0].ndim == 4 and len(x) < 5, "Attention of this kind"
    q, (k, v) = x[0], (t.repeat_interleave(x[0].shape[1] // t.shape[1], 1) for t in x[1:3])
    mask = x[3] if len(x) > 3 else None
    return F.scaled_dot_product_attention(q, k, v, mask, is_causal=bool(a.get("is_causal")), scale=a.get("scale"))


def clip(a, x):
    low = x[1].item() if len(x) > 1 and x[1] is not None else a.get("min")
    high = x[2].item() if len(x) > 2 and x[2] is not None else a.get("max")
    return torch.clamp(x[0], low, high)


def divide(a, x):
    return x[0] / x[1] if x[0].is_floating_point() else torch.div(x[0], x[1], rounding_mode="trunc")


def constant(a, x):
    for key in ("value_int", "value_ints"):
        if key in a:
            return torch.tensor(a[key], dtype=torch.int64)
    for key in ("value_float", "value_floats"):
        if key in a:
            return torch.tensor(a[key], dtype=torch.float64)
    return array(a["value"])


def filled(a, x):
    value = array(a["value"]) if "value" in a else torch.zeros(1, dtype=torch.float64)
    return value.reshape(()).expand(whole(x[0])).clone()


def counted(a, x):
    return torch.arange(x[0].item(), x[1].item(), x[2].item(), dtype=x[0].dtype)


def trilu(a, x):
    k = int(x[1].item()) if len(x) > 1 else 0
    return torch.triu(x[0], k) if a.get("upper", 1) else torch.tril(x[0], k)


UNARY = {"Abs": torch.abs, "Ceil": torch.ceil, "Cos": torch.cos, "Erf": torch.erf, "Exp": torch.exp, "Floor": torch.floor,
         "HardSwish": F.hardswish, "IsNaN": torch.isnan, "Log": torch.log, "Mish": F.mish, "Neg": torch.neg, "Not": torch.logical_not,
         "Reciprocal": torch.reciprocal, "Relu": F.relu, "Round": torch.round, "Sigmoid": torch.sigmoid, "Sign": torch.sign,
         "Sin": torch.sin, "Softplus": F.softplus, "Sqrt": torch.sqrt, "Tanh": torch.tanh, "Identity": lambda t: t}
BINARY = {"Add": torch.add, "And": torch.logical_and, "Equal": torch.eq, "Greater": torch.gt, "GreaterOrEqual": torch.ge, "Less": torch.lt,
          "LessOrEqual": torch.le, "MatMul": torch.matmul, "Max": torch.maximum, "Min": torch.minimum, "Mod": torch.remainder,
          "Mul": torch.mul, "Or": torch.logical_or, "Pow": lambda a, b: torch.pow(a, b), "Sub": torch.sub}
OPS = {
    "Attention": attention, "AveragePool": average_pool, "BatchNormalization": batch_norm, "Clip": clip, "Constant": constant,
    "ConstantOfShape": filled, "Conv": conv, "ConvTranspose": conv_transpose, "Div": divide, "Expand": expand, "Gather": gather,
    "Gemm": gemm, "LayerNormalization": layer_norm, "MaxPool": max_pool, "Pad": pad, "RMSNormalization": rms_norm, "Range": counted,
    "Reshape": reshape, "Resize": resize, "Shape": shape, "Slice": sliced, "Split": split, "Squeeze": squeeze, "Trilu": trilu,
    "Unsqueeze": unsqueeze,
    "Cast": lambda a, x: x[0].to(TYPES[a["to"]]), "Concat": lambda a, x: torch.cat(x, a["axis"]),
    "Dropout": lambda a, x: [x[0], torch.ones_like(x[0], dtype=torch.bool)],
    "Elu": lambda a, x: F.elu(x[0], a.get("alpha", 1.0)), "LeakyRelu": lambda a, x: F.leaky_relu(x[0], a.get("alpha", 0.01)),
    "Flatten": lambda a, x: x[0].reshape(math.prod(x[0].shape[:a.get("axis", 1)]), -1),
    "GatherElements": lambda a, x: torch.gather(x[0], a.get("axis", 0), x[1].long()),
    "Gelu": lambda a, x: F.gelu(x[0], approximate=a.get("approximate", "none")),
    "GlobalAveragePool": lambda a, x: x[0].mean(tuple(range(2, x[0].ndim)), True),
    "GlobalMaxPool": lambda a, x: x[0].amax(tuple(range(2, x[0].ndim)), True),
    "HardSigmoid": lambda a, x: torch.clamp(x[0] * a.get("alpha", 0.2) + a.get("beta", 0.5), 0, 1),
    "LogSoftmax": lambda a, x: F.log_softmax(x[0], a.get("axis", -1)), "Softmax": lambda a, x: F.softmax(x[0], a.get("axis", -1)),
    "PRelu": lambda a, x: torch.where(x[0] < 0, x[0] * x[1], x[0]), "Swish": lambda a, x: x[0] * torch.sigmoid(x[0] * a.get("alpha", 1.0)),
    "ReduceMax": reduced(lambda t, axes, keep: t.amax(axes, keep)), "ReduceMean": reduced(lambda t, axes, keep: t.mean(axes, keep)),
    "ReduceMin": reduced(lambda t, axes, keep: t.amin(axes, keep)), "ReduceSum": reduced(lambda t, axes, keep: t.sum(axes, keep)),
    "ReduceL2": reduced(lambda t, axes, keep: t.square().sum(axes, keep).sqrt()),
    "ReduceProd": reduced(lambda t, axes, keep: t.flatten().prod()),
    "Size": lambda a, x: torch.tensor(x[0].numel()), "Tile": lambda a, x: x[0].repeat(whole(x[1])),
    "Transpose": lambda a, x: x[0].permute(a.get("perm", list(reversed(range(x[0].ndim))))),
    "Where": lambda a, x: torch.where(x[0], x[1], x[2]),
} | {op: (lambda a, x, of=of: of(x[0])) for op, of in UNARY.items()} | {op: (lambda a, x, of=of: of(x[0], x[1])) for op, of in BINARY.items()}


def attributes(node):
    out = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
    out = {key: value.decode() if isinstance(value, bytes) else list(value) if hasattr(value, "append") else value
           for key, value in out.items()}
    return out | {"outputs": len(node.output)}


class File(torch.nn.Module):
    """`names` tells of each parameter what the file calls it, and has its numbers; `inputs` is what is fed."""

    def __init__(self, path):
        super().__init__()
        graph = onnx.load(str(path)).graph
        unknown = sorted({node.op_type for node in graph.node} - set(OPS))
        if unknown:
            raise NotImplementedError(f"onnx_torch.py does not know {', '.join(unknown)}")
        statistics = {name for node in graph.node if node.op_type == "BatchNormalization" for name in node.input[3:5]}
        self.values, self.names = {}, {}
        for one in graph.initializer:
            value = array(one)
            if value.is_floating_point() and value.ndim and one.name not in statistics:
                value, label = torch.nn.Parameter(value), f"p{len(self.names)}"
                self.names[label] = one.name, value
                self.register_parameter(label, value)
            self.values[one.name] = value
        self.nodes = [(OPS[node.op_type], attributes(node), list(node.input), list(node.output)) for node in graph.node]
        self.inputs = [one for one in graph.input if one.name not in self.values]
        self.results = [one.name for one in graph.output]

    def forward(self, *x):
        made = dict(self.values) | {one.name: value for one, value in zip(self.inputs, x)}
        for of, a, inputs, outputs in self.nodes:
            y = of(a | {"training": self.training}, [made[name] if name else None for name in inputs])
            made.update(zip(outputs, y if isinstance(y, list) else [y]))
        return [made[name] for name in self.results]
