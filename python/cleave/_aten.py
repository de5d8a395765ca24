# SPDX-License-Identifier: Apache-2.0
"""PyTorch's ops over Cleave's: a function for each op of `torch.export`'s graphs. What depends on no tensor of the graph is computed by
PyTorch itself, and becomes a constant where it meets one that does."""
import math
import operator
from typing import Any, Callable

import torch

from ._library import lib
from .graph import Tensor, ops

F32, I32 = "float32", "int32"
TABLE = {}
VIEWS = {"view", "reshape", "_unsafe_view", "permute", "transpose", "t", "numpy_T", "unsqueeze", "squeeze", "expand", "expand_as", "slice",
         "select", "split", "split_with_sizes", "chunk", "unbind", "narrow", "flatten", "unflatten", "alias", "detach", "movedim", "unfold", "diagonal", "swapaxes",
         "swapdims", "tensor_split", "positive"}


def op(*names):
    """The function stands for these ops of ATen, every overload of each, or one where the name has a dot."""
    def keep(function):
        for name in names:
            TABLE[name] = function
        return function
    return keep


def for_torch(name: str, function: Callable[..., Any]) -> None:
    """PyTorch's custom op `library::name` is this function of tensors of the graph, in modules that are compiled."""
    TABLE[name.replace("::", ".") + ".default"] = lambda c, *args, **more: function(
        *(c.tensor(x) if isinstance(x, torch.Tensor) else x for x in args), **more)


class Context:
    """What the functions need besides their arguments."""

    def __init__(self, graph, training, masks=None, statistics=None):
        self.graph, self.training, self.masks, self.statistics, self.node = graph, training, masks, statistics, None

    def gives(self, dtype):
        """Is that the dtype of the node's result in PyTorch?"""
        value = self.node.meta.get("val")
        return isinstance(value, torch.Tensor) and value.dtype == dtype

    def tensor(self, x, like=None):
        """A tensor of the graph. Numbers and tensors of PyTorch become constants, of the dtype of `like` if that is given."""
        if isinstance(x, Tensor):
            return x
        if not isinstance(x, torch.Tensor):
            x = torch.tensor(x, dtype=torch.float32 if like is None or like.dtype == F32 else torch.int32)
        if x.is_floating_point():
            x = x.to(torch.float32)
        elif like is not None and like.dtype == F32:
            x = x.to(torch.float32)
        elif x.dtype == torch.int64:
            x = x.clamp(-2**31, 2**31 - 1).to(torch.int32)
        if x.numel() > 1 and x.dtype in (torch.float32, torch.int32) and bool((x == x.flatten()[0]).all()):
            return ops.full(graph=self.graph, dtype=str(x.dtype)[6:], shape=list(x.shape), value=x.flatten()[0].item())
        return self.graph.constant(x.detach().contiguous().numpy())


def cast(x, dtype):
    return x if str(x.dtype) == dtype else ops.cast(x, dtype=dtype)


def floats(c, x):
    return cast(c.tensor(x), F32)


def number(x):
    """f32 and i32 as they are, other integers as i32: what arithmetic is done in."""
    return x if str(x.dtype) in (F32, I32) else cast(x, I32)


def axis(x, dim):
    return dim + x.ndim if dim < 0 else dim


def axes(x, dims):
    if dims is None or dims == []:
        return list(range(x.ndim))
    return [axis(x, d) for d in ([dims] if isinstance(dims, int) else dims)]


def reshape(x, shape):
    return x if list(x.shape) == list(shape) else ops.reshape(x, shape=list(shape))


def scalar(c, x, wants):
    return c.tensor(torch.tensor(x, dtype=torch.float32 if wants == F32 else torch.int32))


def pair(c, a, b):
    """Two operands as tensors of one dtype, f32 if one of them is a float, as PyTorch promotes them."""
    def is_float(x):
        return isinstance(x, float) or (isinstance(x, Tensor) and str(x.dtype) == F32) or \
            (isinstance(x, torch.Tensor) and x.is_floating_point())
    wants = F32 if is_float(a) or is_float(b) else I32
    return tuple(scalar(c, x, wants) if isinstance(x, (int, float)) else cast(number(c.tensor(x)), wants) for x in (a, b))


def binary(name):
    return lambda c, a, b: getattr(ops, name)(*pair(c, a, b))


# ---- elementwise ------------------------------------------------------------------------------------------------------

@op("add")
def add(c, a, b, *, alpha=1):
    if alpha != 1:
        b = mul(c, b, alpha)
    if isinstance(b, (int, float)) and str(a.dtype) == F32:
        return ops.add_scalar(a, value=b) if b else a
    if isinstance(a, (int, float)) and str(b.dtype) == F32:
        return add(c, b, a)
    return binary("add")(c, a, b)


@op("sub")
def sub(c, a, b, *, alpha=1):
    if isinstance(b, (int, float)):
        return add(c, a, -b * alpha)
    return binary("sub")(c, a, b if alpha == 1 else mul(c, b, alpha))


@op("rsub")
def rsub(c, a, b, *, alpha=1):
    return sub(c, b, a, alpha=alpha)


@op("mul", "multiply")
def mul(c, a, b):
    if isinstance(a, (int, float)):
        a, b = b, a
    if isinstance(b, (int, float)) and str(number(a).dtype) == F32:
        return ops.mul_scalar(a, value=b) if b != 1 else a
    return binary("mul")(c, a, b)


@op("div", "divide", "true_divide")
def div(c, a, b, *, rounding_mode=None):
    whole = rounding_mode and all(isinstance(x, int) or isinstance(x, Tensor) and str(x.dtype) != F32 or
                isinstance(x, torch.Tensor) and not x.is_floating_point() for x in (a, b))
    if whole:
        return whole_quotient(c, *pair(c, a, b), rounding_mode)
    a = a if isinstance(a, (int, float)) else floats(c, a)
    if isinstance(b, (int, float)):
        y = ops.div(a, scalar(c, float(b), F32))
    else:
        b = floats(c, b)
        y = ops.reciprocal(b) if a == 1 else ops.div(a if isinstance(a, Tensor) else scalar(c, float(a), F32), b)
    if rounding_mode == "floor":
        y = ops.floor(y)
    return trunc(c, y) if rounding_mode == "trunc" else y


def whole_quotient(c, a, b, rounding):
    """Of i32, exactly: by floats, which are made right twice."""
    if rounding == "trunc":
        sign = binary("mul")(c, cast(ops.sign(cast(a, F32)), I32), cast(ops.sign(cast(b, F32)), I32))
        return binary("mul")(c, sign, whole_quotient(c, absolute(c, a), absolute(c, b), "floor"))
    quotient = lambda x: cast(ops.floor(ops.div(cast(x, F32), cast(b, F32))), I32)
    q = quotient(a)
    q = ops.add(q, quotient(ops.sub(a, ops.mul(q, b))))
    rest = ops.sub(a, ops.mul(q, b))
    over = cast(compare("ge")(c, absolute(c, rest), absolute(c, b)), I32)
    under = logical("and")(c, rest, logical("xor")(c, compare("lt")(c, rest, 0), compare("lt")(c, b, 0)))
    return ops.sub(ops.add(q, over), cast(under, I32))


@op("trunc", "fix")
def trunc(c, x):
    return ops.mul(ops.sign(x), ops.floor(ops.abs(x))) if str(x.dtype) == F32 else x


@op("frac")
def frac(c, x):
    return ops.sub(x, trunc(c, x))


@op("floor_divide")
def floor_divide(c, a, b):
    return div(c, a, b, rounding_mode="floor")


def _two(name):
    """Of floats; of whole numbers by floats."""
    def build(c, a, b):
        a, b = pair(c, a, b)
        whole = str(a.dtype) == I32
        y = getattr(ops, name)(*((cast(a, F32), cast(b, F32)) if whole else (a, b)))
        return cast(y, I32) if whole and name != "atan2" else y
    return build


for _name in ("remainder", "fmod", "atan2"):
    TABLE[_name] = _two(_name)


@op("nan_to_num")
def nan_to_num(c, x, nan=None, posinf=None, neginf=None):
    given = {"nan": nan, "posinf": posinf, "neginf": neginf}
    return ops.nan_to_num(x, **{k: v for k, v in given.items() if v is not None}) if str(x.dtype) == F32 else x


@op("prod")
def prod(c, x, dim=None, keepdim=False, *, dtype=None):
    return ops.prod(floats(c, x), axes=axes(x, dim), keepdim=keepdim)


@op("cumprod")
def cumprod(c, x, dim, *, dtype=None):
    return ops.cumprod(floats(c, x), axis=axis(x, dim))


@op("pow")
def power(c, a, b):
    if isinstance(b, (int, float)):
        a = floats(c, a)
        return ops.square(a) if b == 2 else ops.sqrt(a) if b == 0.5 else ops.pow_scalar(a, exponent=b)
    return ops.pow(scalar(c, float(a), F32) if isinstance(a, (int, float)) else floats(c, a), floats(c, b))


def unary(name, **fixed):
    def build(c, x):
        return getattr(ops, name)(floats(c, x), **fixed)
    return build


for _name in ("exp", "log", "expm1", "log1p", "sqrt", "square", "erf", "floor", "ceil", "round", "sign", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
              "cosh", "asinh", "acosh", "atanh", "relu", "relu6", "sigmoid", "tanh", "silu", "selu", "hardsigmoid", "hardswish", "mish",
              "reciprocal"):
    TABLE[_name] = unary(_name)
TABLE["log_sigmoid"] = unary("logsigmoid")
REDUCTIONS = ("NONE", "MEAN", "SUM")  # PyTorch's 0, 1, 2


@op("neg")
def neg(c, x):
    return ops.neg(number(x))


@op("abs")
def absolute(c, x):
    return ops.abs(x) if str(x.dtype) == F32 else maximum(c, number(x), ops.neg(number(x)))


@op("rsqrt")
def rsqrt(c, x):
    return ops.pow_scalar(floats(c, x), exponent=-0.5)


@op("log2")
def log2(c, x):
    return ops.mul_scalar(ops.log(floats(c, x)), value=1 / math.log(2))


@op("log10")
def log10(c, x):
    return ops.mul_scalar(ops.log(floats(c, x)), value=1 / math.log(10))


@op("erfc")
def erfc(c, x):
    return ops.add_scalar(ops.neg(ops.erf(floats(c, x))), value=1)


@op("hypot")
def hypot(c, a, b):
    return ops.sqrt(ops.add(ops.square(floats(c, a)), ops.square(floats(c, b))))


@op("exp2")
def exp2(c, x):
    return ops.exp(ops.mul_scalar(floats(c, x), value=math.log(2)))


@op("gelu")
def gelu(c, x, *, approximate="none"):
    return ops.gelu_tanh(x) if approximate == "tanh" else ops.gelu(x)


@op("leaky_relu")
def leaky_relu(c, x, negative_slope=0.01):
    return ops.leaky_relu(x, negative_slope=negative_slope)


@op("elu")
def elu(c, x, alpha=1.0, scale=1.0, input_scale=1.0):
    return mul(c, ops.elu(mul(c, x, input_scale), alpha=alpha), scale)


@op("celu")
def celu(c, x, alpha=1.0):
    return mul(c, ops.elu(mul(c, x, 1 / alpha), alpha=1.0), alpha)


@op("softplus")
def softplus(c, x, beta=1.0, threshold=20.0):
    return mul(c, ops.softplus(mul(c, x, float(beta))), 1 / beta)


@op("prelu")
def prelu(c, x, weight):
    return ops.prelu(x, weight)


@op("glu")
def glu(c, x, dim=-1):
    return ops.glu(x, axis=dim)


@op("hardtanh")
def hardtanh(c, x, min_val=-1.0, max_val=1.0):
    return ops.clamp(x, min=min_val, max=max_val)


@op("clamp", "clip")
def clamp(c, x, min=None, max=None):
    if isinstance(min, (Tensor, torch.Tensor)) or isinstance(max, (Tensor, torch.Tensor)) or str(x.dtype) != F32:
        x = x if min is None else maximum(c, x, min)
        return x if max is None else minimum(c, x, max)
    return ops.clamp(x, min=min, max=max)


@op("clamp_min")
def clamp_min(c, x, min):
    return clamp(c, x, min=min)


@op("clamp_max")
def clamp_max(c, x, max):
    return clamp(c, x, max=max)


@op("threshold")
def threshold(c, x, threshold, value):
    return where(c, compare("gt")(c, x, threshold), x, float(value))


def compare(name):
    return lambda c, a, b: getattr(ops, name)(*pair(c, a, b))


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    TABLE[_name] = compare(_name)


def logical(name):
    def build(c, a, b):
        return getattr(ops, "logical_" + name)(*(cast(truth(c, x), I32) for x in (a, b)))
    return build


def truth(c, x):
    x = number(c.tensor(x))
    return x if str(x.dtype) == I32 else compare("ne")(c, x, 0.0)


def bitwise(name):
    """Of truths as logic, else of bits."""
    def build(c, a, b):
        return logical(name)(c, a, b) if c.gives(torch.bool) else getattr(ops, "bitwise_" + name)(*pair(c, a, b))
    return build


for _name in ("and", "or", "xor"):
    TABLE["logical_" + _name] = logical(_name)
    TABLE["bitwise_" + _name] = TABLE["__%s__" % _name] = bitwise(_name)


@op("logical_not")
def logical_not(c, x):
    return ops.logical_not(truth(c, x))


@op("bitwise_not")
def bitwise_not(c, x):
    return logical_not(c, x) if c.gives(torch.bool) else ops.bitwise_not(number(x))


@op("isinf")
def isinf(c, x):
    return compare("eq")(c, absolute(c, x), float("inf"))


@op("isfinite")
def isfinite(c, x):
    return compare("lt")(c, absolute(c, x), float("inf"))


@op("isnan")
def isnan(c, x):
    return ops.ne(x, x)


@op("where")
def where(c, condition, a, b):
    return ops.where(truth(c, condition), *pair(c, a, b))


@op("masked_fill")
def masked_fill(c, x, mask, value):
    return where(c, mask, value if not isinstance(value, torch.Tensor) or value.dim() else value.item(), x)


@op("maximum")
def maximum(c, a, b):
    a, b = pair(c, a, b)
    y = ops.where(ops.ge(a, b), a, b)
    return y if str(a.dtype) == I32 else ops.where(ops.ne(a, a), a, y)  # NaN is kept


@op("minimum")
def minimum(c, a, b):
    a, b = pair(c, a, b)
    y = ops.where(ops.le(a, b), a, b)
    return y if str(a.dtype) == I32 else ops.where(ops.ne(a, a), a, y)


@op("addcmul")
def addcmul(c, x, a, b, *, value=1):
    return add(c, x, mul(c, mul(c, a, b), value))


@op("lerp")
def lerp(c, a, b, weight):
    return add(c, a, mul(c, sub(c, b, a), weight))


@op("feature_dropout")
def feature_dropout(c, x, p, train):
    """Whole channels."""
    if not train or not p:
        return x
    ones = ops.full(graph=c.graph, dtype=F32, shape=list(x.shape[:2]) + [1] * (x.ndim - 2), value=1)
    return ops.mul(x, dropped(c, ones, p))


@op("dropout")
def dropout(c, x, p, train):
    return dropped(c, x, p, tuple(int(n) for n in c.node.args[0].meta["val"].stride())) if train and p else x


def dropped(c, x, p, stride=None):
    """stride: of PyTorch's tensor: in this order it would draw."""
    if c.masks is None:
        return ops.dropout(x, p=p)
    c.masks.append((c.graph.input("mask%d" % len(c.masks), F32, x.shape), p, stride))
    return ops.mul(x, c.masks[-1][0])


# ---- random numbers ------------------------------------------------------------------------------------------------------

RANDOM = {"rand_like", "randn_like", "randint_like", "bernoulli", "normal_", "uniform_", "rand", "randn", "randint", "rrelu"}


def drawn(c, name, shape, *range_):
    """Anew in each step, by the session's seed; PyTorch's numbers are others."""
    if c.masks is not None:
        raise NotImplementedError("random numbers, which would not be those of eager mode")
    return getattr(ops, "random_" + name)(graph=c.graph, shape=list(shape), **dict(zip(("low", "high") if name == "uniform" else ("mean", "std"), range_)))


@op("rand_like", "rand")
def rand(c, like, **_):
    return drawn(c, "uniform", getattr(like, "shape", like), 0, 1)


@op("randn_like", "randn")
def randn(c, like, **_):
    return drawn(c, "normal", getattr(like, "shape", like), 0, 1)


@op("uniform")
def uniform(c, x, low=0.0, high=1.0, **_):
    return drawn(c, "uniform", x.shape, low, high)


@op("normal_functional")
def normal(c, x, mean=0.0, std=1.0, **_):
    return drawn(c, "normal", x.shape, mean, std)


@op("bernoulli")
def bernoulli(c, p, *fixed, **_):
    return cast(compare("lt")(c, drawn(c, "uniform", p.shape, 0, 1), fixed[0] if fixed else p), F32)


@op("randint", "randint_like")
def randint(c, *given, **_):
    bounds = [x for x in given if isinstance(x, int)]
    shape = next(getattr(x, "shape", x) for x in given if not isinstance(x, int))
    low, high = ([0] + bounds)[-2:]
    return cast(ops.floor(drawn(c, "uniform", shape, low, high)), I32)


@op("rrelu")
def rrelu(c, x, lower=1 / 8, upper=1 / 3, training=False, generator=None):
    if not training:
        return ops.leaky_relu(x, negative_slope=(lower + upper) / 2)
    return where(c, compare("ge")(c, x, 0.0), x, mul(c, x, drawn(c, "uniform", x.shape, lower, upper)))


# ---- dtypes and copies ------------------------------------------------------------------------------------------------

_TYPES = {torch.float32: F32, torch.float64: F32, torch.float16: F32, torch.bfloat16: F32, torch.int64: I32, torch.int32: I32,
          torch.int16: I32, torch.int8: I32, torch.uint8: I32}


def to_type(c, x, dtype):
    if dtype is None:
        return x
    if dtype == torch.bool:
        return compare("ne")(c, x, 0)
    return cast(x, _TYPES[dtype]) if str(x.dtype) != "int64" or _TYPES[dtype] == F32 else x


@op("to.dtype", "to.dtype_layout", "_to_copy", "to.device", "to.other")
def to(c, x, *rest, dtype=None, **_):
    for r in rest:
        dtype = r if isinstance(r, torch.dtype) else dtype
    return to_type(c, x, dtype)


@op("type_as")
def type_as(c, x, other):
    return to_type(c, x, other.dtype) if isinstance(other, torch.Tensor) else cast(x, str(other.dtype))


@op("clone", "contiguous", "alias", "positive", "lift_fresh_copy", "lift_fresh", "_assert_tensor_metadata")
def same(c, x, *_, **__):
    return x


@op("detach", "detach_copy", "cleave.stopped.default")
def detach(c, x):
    return ops.detach(x)


@op("copy")
def copy(c, x, source, *_):
    return expand(c, cast(c.tensor(source), str(x.dtype)), x.shape)


def filled(value):
    def build(c, x, shape=None, *_, dtype=None, **__):
        shape = list(shape) if isinstance(shape, (tuple, list)) else list(x.shape)
        return ops.full(graph=c.graph, dtype=_TYPES.get(dtype, str(number(x).dtype)), shape=shape, value=value)
    return build


TABLE["zeros_like"] = TABLE["empty_like"] = TABLE["zero"] = filled(0)
TABLE["ones_like"] = filled(1)


@op("full_like")
def full_like(c, x, value, *, dtype=None, **_):
    return filled(value)(c, x, dtype=dtype)


# ---- shapes -----------------------------------------------------------------------------------------------------------

@op("view", "reshape", "_unsafe_view")
def view(c, x, shape):
    return reshape(x, shape)


@op("view_as", "reshape_as")
def view_as(c, x, other):
    return reshape(x, other.shape)


@op("flatten")
def flatten(c, x, start_dim=0, end_dim=-1):
    s, e = axis(x, start_dim), axis(x, end_dim)
    return reshape(x, x.shape[:s] + (math.prod(x.shape[s:e + 1]),) + x.shape[e + 1:])


@op("unflatten")
def unflatten(c, x, dim, sizes):
    d = axis(x, dim)
    sizes = [x.shape[d] // -math.prod(sizes) if n == -1 else n for n in sizes]
    return reshape(x, x.shape[:d] + tuple(sizes) + x.shape[d + 1:])


@op("permute")
def permute(c, x, dims):
    return ops.permute(x, axes=[axis(x, d) for d in dims])


@op("movedim")
def movedim(c, x, source, destination):
    source, destination = axes(x, source), axes(x, destination)
    order = [d for d in range(x.ndim) if d not in source]
    for d, s in sorted(zip(destination, source)):
        order.insert(d, s)
    return ops.permute(x, axes=order)


@op("transpose", "swapaxes", "swapdims")
def transpose(c, x, a, b):
    return ops.transpose(x, axis0=axis(x, a), axis1=axis(x, b))


@op("t", "numpy_T")
def t(c, x):
    return x if x.ndim < 2 else ops.transpose(x, axis0=0, axis1=1)


@op("unsqueeze")
def unsqueeze(c, x, dim):
    d = dim + x.ndim + 1 if dim < 0 else dim
    return reshape(x, x.shape[:d] + (1,) + x.shape[d:])


@op("squeeze")
def squeeze(c, x, dims=None):
    gone = axes(x, dims)
    return reshape(x, [n for i, n in enumerate(x.shape) if n != 1 or i not in gone])


@op("expand", "broadcast_to")
def expand(c, x, shape, *, implicit=False):
    shape = list(shape)
    lead = len(shape) - x.ndim
    shape = [x.shape[i - lead] if n == -1 else n for i, n in enumerate(shape)]
    return x if list(x.shape) == shape else ops.broadcast_to(x, shape=shape)


@op("broadcast_tensors")
def broadcast_tensors(c, tensors):
    shape = torch.broadcast_shapes(*(x.shape for x in tensors))
    return [expand(c, c.tensor(x), shape) for x in tensors]


@op("expand_as")
def expand_as(c, x, other):
    return expand(c, x, other.shape)


@op("slice")
def slice_(c, x, dim=0, start=None, end=None, step=1):
    d = axis(x, dim)
    start, end, step = slice(start, end, step).indices(x.shape[d])
    n = max(0, (end - start + step - 1) // step)
    if step == 1:
        return x if n == x.shape[d] else ops.slice(x, axis=d, start=start, length=n)
    return ops.index_select(x, c.tensor(torch.arange(start, end, step)), axis=d)


@op("slice_scatter")
def slice_scatter(c, x, source, dim=0, start=None, end=None, step=1):
    d = axis(x, dim)
    start, end, step = slice(start, end, step).indices(x.shape[d])
    if step != 1:
        return ops.index_copy(x, c.tensor(torch.arange(start, end, step)), c.tensor(source), axis=d)
    return cat(c, [part for part in (slice_(c, x, d, 0, start), cast(c.tensor(source), str(x.dtype)), slice_(c, x, d, end)) if part.shape[d]], d)


@op("select_scatter")
def select_scatter(c, x, source, dim, index):
    index = index + x.shape[axis(x, dim)] if index < 0 else index
    return slice_scatter(c, x, unsqueeze(c, c.tensor(source), dim), dim, index, index + 1)


@op("fill")
def fill(c, x, value):
    return filled(value)(c, x)


@op("narrow")
def narrow(c, x, dim, start, length):
    return ops.slice(x, axis=axis(x, dim), start=start, length=length)


@op("select")
def select(c, x, dim, index):
    d = axis(x, dim)
    index = index + x.shape[d] if index < 0 else index
    return reshape(ops.slice(x, axis=d, start=index, length=1), x.shape[:d] + x.shape[d + 1:])


@op("split", "split_with_sizes")
def split(c, x, sizes, dim=0):
    d, parts, at = axis(x, dim), [], 0
    if isinstance(sizes, int):
        n = x.shape[d]
        sizes = [min(sizes, n - i) for i in range(0, n, sizes)]
    for n in sizes:
        parts.append(ops.slice(x, axis=d, start=at, length=n))
        at += n
    return parts


@op("chunk")
def chunk(c, x, chunks, dim=0):
    n = x.shape[axis(x, dim)]
    return split(c, x, -(-n // chunks), dim)


@op("unbind")
def unbind(c, x, dim=0):
    return [select(c, x, dim, i) for i in range(x.shape[axis(x, dim)])]


@op("cat", "concat", "concatenate")
def cat(c, tensors, dim=0):
    some = next(x for x in tensors if isinstance(x, Tensor))
    tensors = [c.tensor(x, like=number(some)) for x in tensors]
    tensors = [x for x in tensors if x.ndim > 1 or x.shape[0]] or tensors
    if any(str(x.dtype) == F32 for x in tensors):
        tensors = [cast(x, F32) for x in tensors]
    elif len({str(x.dtype) for x in tensors}) > 1:
        tensors = [number(x) for x in tensors]
    return tensors[0] if len(tensors) == 1 else ops.concat(*tensors, axis=axis(tensors[0], dim))


@op("stack")
def stack(c, tensors, dim=0):
    some = next(x for x in tensors if isinstance(x, Tensor))
    d = dim + some.ndim + 1 if dim < 0 else dim
    return cat(c, [unsqueeze(c, c.tensor(x, like=number(some)), d) for x in tensors], d)


@op("repeat", "tile")
def repeat(c, x, repeats):
    return ops.tile(number(x), repeats=list(repeats))


@op("repeat_interleave.self_int")
def repeat_interleave(c, x, repeats, dim=None, **_):
    x = flatten(c, x) if dim is None else x
    d = axis(x, dim or 0)
    wide = x.shape[:d + 1] + (repeats,) + x.shape[d + 1:]
    y = expand(c, reshape(x, x.shape[:d + 1] + (1,) + x.shape[d + 1:]), wide)
    return reshape(y, x.shape[:d] + (x.shape[d] * repeats,) + x.shape[d + 1:])


@op("flip")
def flip(c, x, dims):
    for d in axes(x, dims):
        x = ops.flip(x, axis=d)
    return x


@op("roll")
def roll(c, x, shifts, dims=()):
    if not dims:
        return reshape(roll(c, flatten(c, x), shifts, [0]), x.shape)
    for n, d in zip([shifts] if isinstance(shifts, int) else shifts, axes(x, dims)):
        x = ops.roll(x, shift=n, axis=d)
    return x


@op("diagonal")
def diagonal(c, x, offset=0, dim1=0, dim2=1):
    a, b = axis(x, dim1), axis(x, dim2)
    n = max(0, min(x.shape[a] + min(offset, 0), x.shape[b] - max(offset, 0)))
    rest = [d for d in range(x.ndim) if d not in (a, b)]
    y = ops.permute(x, axes=rest + [a, b])
    y = reshape(y, y.shape[:-2] + (x.shape[a] * x.shape[b],))
    first = offset if offset >= 0 else -offset * x.shape[b]
    return ops.index_select(y, c.tensor(first + torch.arange(n) * (x.shape[b] + 1)), axis=y.ndim - 1)


@op("diag")
def diag(c, x, offset=0):
    if x.ndim != 2:
        raise NotImplementedError("a matrix of a diagonal")
    return diagonal(c, x, offset)


@op("trace")
def trace(c, x):
    return sum_(c, diagonal(c, x))


@op("unfold")
def unfold(c, x, dim, size, step):
    """Windows along a dimension; their elements are the last one."""
    if not x.ndim:
        return reshape(x, (size,))
    d = axis(x, dim)
    n = (x.shape[d] - size) // step + 1
    at = (torch.arange(n)[:, None] * step + torch.arange(size)).flatten()
    y = reshape(ops.index_select(x, c.tensor(at), axis=d), x.shape[:d] + (n, size) + x.shape[d + 1:])
    return movedim(c, y, d + 1, y.ndim - 1)


@op("col2im")
def col2im(c, x, size, kernel, dilation, padding, stride):
    """torch.nn.Fold: windows added up where they overlap."""
    batch, channels = math.prod(x.shape[:-2]), x.shape[-2] // math.prod(kernel)
    wide = [n + 2 * p for n, p in zip(size, padding)]
    rows, columns = ((torch.arange(k) * d)[:, None] + torch.arange(0, w - d * (k - 1), s) for k, d, w, s in
                     zip(kernel, dilation, wide, stride))  # [KH, OH], [KW, OW]
    at = (rows[:, None, :, None] * wide[1] + columns[None, :, None, :]).flatten()
    zeros = ops.full(graph=c.graph, dtype=F32, shape=[batch * channels, math.prod(wide)], value=0)
    y = ops.index_add(zeros, c.tensor(at), reshape(x, (batch * channels, at.numel())), axis=1)
    y = reshape(y, x.shape[:-2] + (channels, *wide))
    return constant_pad(c, y, [-padding[1], -padding[1], -padding[0], -padding[0]])


@op("tensor_split.sections")
def tensor_split(c, x, sections, dim=0):
    n, more = divmod(x.shape[axis(x, dim)], sections)
    return split(c, x, [n + (i < more) for i in range(sections)], dim)


@op("tensor_split.indices")
def tensor_split_at(c, x, indices, dim=0):
    return [slice_(c, x, dim, a, b) for a, b in zip([0] + list(indices), list(indices) + [None])]


@op("constant_pad_nd")
def constant_pad(c, x, pad, value=0):
    return ops.pad(number(x), padding=list(pad), value=value)


@op("pad")
def pad(c, x, pad, mode="constant", value=None):
    return ops.pad(number(x), padding=list(pad), mode=("constant", "reflect", "replicate", "circular").index(mode), value=value or 0)


@op("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(c, x, sides):
    return pad(c, x, sides, "reflect")


@op("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(c, x, sides):
    return pad(c, x, sides, "replicate")


def _of_pixels(name):
    def build(c, x, factor):
        y = getattr(ops, name)(reshape(x, (math.prod(x.shape[:-3]),) + x.shape[-3:]), factor=factor)
        return reshape(y, x.shape[:-3] + y.shape[1:])
    return build


TABLE["pixel_shuffle"], TABLE["pixel_unshuffle"] = _of_pixels("pixel_shuffle"), _of_pixels("pixel_unshuffle")


@op("channel_shuffle")
def channel_shuffle(c, x, groups):
    n, channels, *rest = x.shape
    y = reshape(x, (n, groups, channels // groups, math.prod(rest)))
    return reshape(ops.permute(y, axes=[0, 2, 1, 3]), x.shape)


@op("sym_size.int")
def sym_size(c, x, dim):
    return x.shape[dim]


@op("sym_numel")
def sym_numel(c, x):
    return math.prod(x.shape)


# ---- indices ------------------------------------------------------------------------------------------------------------

@op("embedding")
def embedding(c, weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    if scale_grad_by_freq:
        raise NotImplementedError("scale_grad_by_freq")
    indices = c.tensor(indices)
    y = ops.embedding(weight, indices)
    if padding_idx < 0 or not c.training:
        return y
    padding = unsqueeze(c, compare("eq")(c, indices, padding_idx), -1)  # its row gets no gradient
    return ops.where(padding, ops.detach(y), y)


@op("embedding_bag", "_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(c, weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, weights=None, include_last_offset=False,
                  padding_idx=None):
    """The rows of a bag lie one behind the other, and offsets say where each begins."""
    if scale_grad_by_freq or mode == 2 or padding_idx not in (None, -1):
        raise NotImplementedError("embedding_bag with scale_grad_by_freq, padding_idx or mode='max'")
    rows, starts = embedding(c, weight, indices), c.tensor(offsets)
    n = starts.shape[0] - int(include_last_offset)
    place = reshape(c.tensor(torch.arange(indices.shape[0])), (1, indices.shape[0]))
    began = unsqueeze(c, narrow(c, starts, 0, 0, n), 1)
    after = narrow(c, starts, 0, 1, n) if include_last_offset else cat(c, [narrow(c, starts, 0, 1, n - 1), torch.tensor([indices.shape[0]])])
    within = cast(logical("and")(c, compare("ge")(c, place, began), compare("lt")(c, place, unsqueeze(c, after, 1))), F32)
    y = ops.matmul(within, rows if weights is None else ops.mul(rows, unsqueeze(c, floats(c, weights), 1)))
    if mode == 1:
        y = ops.div(y, ops.clamp(ops.sum(within, axes=[1], keepdim=True), min=1.0))
    return [y, None, None, None]


@op("index_select")
def index_select(c, x, dim, index):
    return ops.index_select(x, c.tensor(index), axis=axis(x, dim))


@op("gather")
def gather(c, x, dim, index, **_):
    return ops.gather(x, c.tensor(index), axis=axis(x, dim))


@op("scatter.src")
def scatter(c, x, dim, index, src):
    return ops.scatter(x, c.tensor(index), c.tensor(src), axis=axis(x, dim))


@op("scatter.value")
def scatter_value(c, x, dim, index, value):
    index = c.tensor(index)
    return ops.scatter(x, index, filled(value)(c, x, index.shape), axis=axis(x, dim))


@op("scatter_reduce")
def scatter_reduce(c, x, dim, index, src, reduce, *, include_self=True):
    x, index, src, d = floats(c, x), c.tensor(index), floats(c, src), axis(x, dim)
    of = {"sum": "add", "mean": "add", "prod": "mul", "amax": "max", "amin": "min"}[reduce]
    if of not in ("add",):
        return _scatter_extreme(c, x, d, index, src, of, include_self)
    start = x if include_self else scatter_value(c, x, d, index, 0)
    total = ops.scatter_add(start, index, src, axis=d)
    if reduce == "sum":
        return total
    n = ops.scatter_add(filled(1 if include_self else 0)(c, x), index, filled(1)(c, src, src.shape), axis=d)
    return ops.div(total, ops.clamp(n, min=1.0))


def _scatter_extreme(c, x, d, index, src, name, include_self):
    """Of each element's candidates: each of src beside each of x, which takes the product of their numbers."""
    if name == "mul":
        raise NotImplementedError("scatter_reduce of 'prod'")
    n, none = x.shape[d], float("-inf") if name == "max" else float("inf")
    place = reshape(c.tensor(torch.arange(n)), (n,) + (1,) * (x.ndim - d - 1))
    hit = compare("eq")(c, unsqueeze(c, index, d + 1), place)
    found = getattr(ops, name)(where(c, hit, unsqueeze(c, src, d + 1), none), axes=[d])
    if include_self:
        return maximum(c, x, found) if name == "max" else minimum(c, x, found)
    return where(c, any_(c, hit, [d]), found, x)


@op("scatter_add")
def scatter_add(c, x, dim, index, src):
    return ops.scatter_add(c.tensor(x), c.tensor(index), c.tensor(src), axis=axis(x, dim))


@op("index_add")
def index_add(c, x, dim, index, source, *, alpha=1):
    return ops.index_add(c.tensor(x), c.tensor(index), mul(c, source, alpha), axis=axis(x, dim))


def _places(c, x, indices):
    """x with the dimensions that index tensors stand at as one, where that is, the places in it as one list, and their shape."""
    at = [d for d, i in enumerate(indices) if i is not None]
    there = [c.tensor(indices[d]) for d in at]
    if any(str(i.dtype) == "bool" for i in there):
        raise NotImplementedError("a mask as an index: how many elements it gives is not known")
    if at != list(range(at[0], at[0] + len(at))):  # PyTorch puts what they give before the others
        rest = [d for d in range(x.ndim) if d not in at]
        x, first = ops.permute(x, axes=at + rest), 0
    else:
        first = at[0]
    whole = torch.broadcast_shapes(*(i.shape for i in there))
    flat = None
    for k, (d, i) in enumerate(zip(at, there)):
        n = x.shape[first + k]
        i = c.tensor(indices[d] % n) if isinstance(indices[d], torch.Tensor) else number(i)
        if isinstance(indices[d], Tensor):  # from the end, too
            i = ops.where(ops.lt(i, scalar(c, 0, I32)), ops.add(i, scalar(c, n, I32)), i)
        flat = i if flat is None else ops.add(ops.mul(flat, scalar(c, n, I32)), i)
    flat = reshape(expand(c, flat, whole), (math.prod(whole),))
    return reshape(x, x.shape[:first] + (-1,) + x.shape[first + len(at):]) if len(at) > 1 else x, first, flat, tuple(whole), at


@op("index.Tensor")
def index(c, x, indices):
    """x[..., i, ..., j, ...]."""
    y, first, flat, whole, _ = _places(c, c.tensor(x), indices)
    y = ops.index_select(y, flat, axis=first)
    return reshape(y, y.shape[:first] + whole + y.shape[first + 1:])


@op("index_put")
def index_put(c, x, indices, values, accumulate=False):
    x, values = c.tensor(x), c.tensor(values)
    if len(indices) == 1 and c.tensor(indices[0]).dtype == bool and not accumulate and math.prod(values.shape) == 1:
        mask = c.tensor(indices[0])
        return where(c, reshape(mask, mask.shape + (1,) * (x.ndim - mask.ndim)), reshape(values, ()), x)
    y, first, flat, whole, at = _places(c, x, indices)
    if first != at[0] or at[-1] - at[0] + 1 != len(at):
        raise NotImplementedError("index tensors at dimensions %s, which are no neighbours" % at)
    values = cast(expand(c, values, y.shape[:first] + whole + y.shape[first + 1:]), str(number(x).dtype))
    values = reshape(values, y.shape[:first] + (math.prod(whole),) + y.shape[first + 1:])
    return reshape((ops.index_add if accumulate else ops.index_copy)(number(y), flat, values, axis=first), x.shape)


@op("index_fill")
def index_fill(c, x, dim, index, value):
    d, index = axis(x, dim), c.tensor(index)
    shape = x.shape[:d] + (math.prod(index.shape),) + x.shape[d + 1:]
    values = filled(value)(c, x, shape) if isinstance(value, (int, float)) else expand(c, c.tensor(value, like=x), shape)
    return ops.index_copy(x, index, values, axis=d)


@op("searchsorted.Tensor", "searchsorted.Scalar")
def searchsorted(c, edges, x, *, out_int32=False, right=False, side=None, sorter=None):
    if len(edges.shape) != 1 or sorter is not None:
        raise NotImplementedError("searchsorted in several rows, or with a sorter")
    less = compare("le" if right or side == "right" else "lt")
    return sum_(c, cast(less(c, edges, unsqueeze(c, x, -1)), I32), [-1])


@op("histc")
def histc(c, x, bins=100, min=0, max=0):
    if min == max:
        raise NotImplementedError("histc between the least and the largest number")
    x, wide = flatten(c, floats(c, x)), (max - min) / bins
    place = ops.floor(ops.mul_scalar(ops.add_scalar(x, value=-min), value=1 / wide))
    place = where(c, compare("eq")(c, x, float(max)), float(bins - 1), place)
    return ops.sum(cast(compare("eq")(c, unsqueeze(c, place, 0), c.tensor(torch.arange(float(bins))[:, None])), F32), axes=[1])


@op("bucketize.Tensor", "bucketize.Scalar")
def bucketize(c, x, edges, *, out_int32=False, right=False):
    return searchsorted(c, edges, x, right=right)


@op("argmax")
def argmax(c, x, dim=None, keepdim=False):
    if str(x.dtype) != F32:
        x = _low_of_extreme(c, flatten(c, x) if dim is None else x, [dim or 0], "max")[1]
    return ops.argmax(x if dim is not None else flatten(c, x), axis=0 if dim is None else axis(x, dim), keepdim=keepdim)


@op("argmin")
def argmin(c, x, dim=None, keepdim=False):
    if str(x.dtype) != F32:
        x = _low_of_extreme(c, flatten(c, x) if dim is None else x, [dim or 0], "min")[1]
    return ops.argmin(x if dim is not None else flatten(c, x), axis=0 if dim is None else axis(x, dim), keepdim=keepdim)


@op("topk")
def topk(c, x, k, dim=-1, largest=True, sorted=True):
    x = number(x)
    y = ops.topk(x, k=k, axis=axis(x, dim), largest=largest)
    return [y, y.outputs(1)]


@op("sort")
def sort(c, x, dim=-1, descending=False, **_):
    x = number(x)
    return [ops.sort(x, axis=axis(x, dim), descending=descending), ops.argsort(x, axis=axis(x, dim), descending=descending)]


@op("median", "median.dim")
def median(c, x, dim=None, keepdim=False):
    """The lower one of two; NaN where there is one."""
    y = x if dim is not None else flatten(c, x)
    d = axis(y, dim or 0)
    rows, places = ops.sort(y, axis=d), ops.argsort(y, axis=d)
    some = any_(c, ops.ne(y, y), [d], True)
    at = (y.shape[d] - 1) // 2
    value = ops.where(some, scalar(c, float("nan"), F32), narrow(c, rows, d, at, 1))
    place = narrow(c, places, d, at, 1)
    value, place = (v if keepdim and dim is not None else squeeze(c, v, d) for v in (value, place))
    return value if dim is None else [value, place]


@op("kthvalue")
def kthvalue(c, x, k, dim=-1, keepdim=False):
    d = axis(x, dim)
    both = (narrow(c, y, d, k - 1, 1) for y in (ops.sort(x, axis=d), ops.argsort(x, axis=d)))
    return [y if keepdim else squeeze(c, y, d) for y in both]


@op("tril")
def tril(c, x, diagonal=0):
    return ops.tril(number(x), diagonal=diagonal)


@op("triu")
def triu(c, x, diagonal=0):
    return ops.triu(number(x), diagonal=diagonal)


@op("one_hot")
def one_hot(c, x, num_classes=-1):
    return cast(ops.one_hot(x, classes=num_classes), I32)


# ---- reductions ---------------------------------------------------------------------------------------------------------

@op("sum")
def sum_(c, x, dim=None, keepdim=False, *, dtype=None):
    if str(x.dtype) == F32:
        return ops.sum(x, axes=axes(x, dim), keepdim=keepdim)
    x = number(x)
    for d in axes(x, dim):  # exactly, as integers
        x = slice_(c, ops.cumsum(x, axis=d), d, x.shape[d] - 1)
    return x if keepdim else reshape(x, [n for d, n in enumerate(x.shape) if d not in axes(x, dim)])


@op("mean")
def mean(c, x, dim=None, keepdim=False, *, dtype=None):
    return ops.mean(floats(c, x), axes=axes(x, dim), keepdim=keepdim)


def _low_of_extreme(c, x, dims, name):
    """Of whole numbers the extreme of the upper 16 bits, and the lower ones where those are it: both are floats that have them exactly."""
    x = number(x)
    low = ops.bitwise_and(x, scalar(c, 0xffff, I32))
    high = ops.mul_scalar(cast(ops.sub(x, low), F32), value=2**-16)
    most = getattr(ops, name)(high, axes=axes(x, dims), keepdim=True)
    return most, ops.where(truth(c, ops.eq(high, most)), cast(low, F32), scalar(c, -1 if name == "max" else 2**16, F32))


def _whole_extreme(c, x, dim, keepdim, name):
    high, low = _low_of_extreme(c, x, dim, name)
    low = cast(getattr(ops, name)(low, axes=axes(x, dim), keepdim=True), I32)
    y = ops.add(ops.mul(cast(high, I32), scalar(c, 2**16, I32)), low)
    return y if keepdim else squeeze(c, y, dim)


@op("amax")
def amax(c, x, dim=None, keepdim=False):
    if str(x.dtype) != F32:
        return _whole_extreme(c, x, dim, keepdim, "max")
    return ops.max(floats(c, x), axes=axes(x, dim), keepdim=keepdim)


@op("amin")
def amin(c, x, dim=None, keepdim=False):
    if str(x.dtype) != F32:
        return _whole_extreme(c, x, dim, keepdim, "min")
    return ops.min(x, axes=axes(x, dim), keepdim=keepdim)


@op("max.dim")
def max_dim(c, x, dim, keepdim=False):
    return [amax(c, x, [dim], keepdim), argmax(c, x, dim, keepdim)]


@op("max")
def max_(c, x, *rest):
    return maximum(c, x, *rest) if rest else amax(c, x)


@op("min.dim")
def min_dim(c, x, dim, keepdim=False):
    return [amin(c, x, [dim], keepdim), argmin(c, x, dim, keepdim)]


@op("min")
def min_(c, x, *rest):
    return minimum(c, x, *rest) if rest else amin(c, x)


@op("any")
def any_(c, x, dim=None, keepdim=False):
    y = ops.max(cast(truth(c, x), F32), axes=axes(x, dim), keepdim=keepdim)
    return compare("ne")(c, y, 0.0)


@op("all")
def all_(c, x, dim=None, keepdim=False):
    return logical_not(c, any_(c, logical_not(c, x), dim, keepdim))


def _spread(name):
    def build(c, x, dim=None, unbiased=True, keepdim=False, *, correction=None):
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        less = int(unbiased) if correction is None else correction
        return getattr(ops, name)(x, axes=axes(x, dim), correction=less, keepdim=keepdim)
    return build


var = TABLE["var"] = _spread("var")
std = TABLE["std"] = _spread("std")


@op("var_mean")
def var_mean(c, x, dim=None, unbiased=True, keepdim=False, *, correction=None):
    return [var(c, x, dim, unbiased, keepdim, correction=correction), mean(c, x, None if isinstance(dim, bool) else dim, keepdim)]


@op("std_mean")
def std_mean(c, x, dim=None, unbiased=True, keepdim=False, *, correction=None):
    return [std(c, x, dim, unbiased, keepdim, correction=correction), mean(c, x, None if isinstance(dim, bool) else dim, keepdim)]


@op("linalg_vector_norm", "norm.ScalarOpt_dim", "norm.Scalar")
def vector_norm(c, x, ord=2, dim=None, keepdim=False, *, dtype=None):
    return ops.vector_norm(x, p=ord, axes=axes(x, dim), keepdim=keepdim)


@op("_weight_norm", "_weight_norm_interface")
def weight_norm(c, v, g, dim=0):
    over = [d for d in range(v.ndim) if d != dim or dim == -1]
    y = ops.mul(v, ops.div(g, ops.vector_norm(v, axes=over, keepdim=True)))
    return [y, None] if "interface" in str(c.node.target) else y


@op("cdist", "_euclidean_dist")
def cdist(c, a, b, p=2.0, compute_mode=None):
    return ops.vector_norm(ops.sub(unsqueeze(c, a, -2), unsqueeze(c, b, -3)), p=p, axes=[-1])


@op("cumsum")
def cumsum(c, x, dim, *, dtype=None):
    return ops.cumsum(number(x), axis=axis(x, dim))


@op("softmax", "_softmax", "special_softmax")
def softmax(c, x, dim, *_, **__):
    return ops.softmax(floats(c, x), axis=axis(x, dim))


@op("log_softmax", "_log_softmax", "special_log_softmax")
def log_softmax(c, x, dim, *_, **__):
    return ops.log_softmax(floats(c, x), axis=axis(x, dim))


@op("logsumexp")
def logsumexp(c, x, dim, keepdim=False):
    top = ops.detach(amax(c, x, dim, True))
    y = ops.add(ops.log(ops.sum(ops.exp(ops.sub(x, top)), axes=axes(x, dim), keepdim=True)), top)
    return y if keepdim else squeeze(c, y, dim)


# ---- products and windows -------------------------------------------------------------------------------------------------

@op("linear")
def linear(c, x, weight, bias=None):
    return ops.linear(floats(c, x), c.tensor(weight), None if bias is None else c.tensor(bias))


@op("matmul", "mm", "bmm", "mv", "dot")
def matmul(c, a, b):
    return ops.matmul(floats(c, a), floats(c, b))


@op("transformers.grouped_mm_fallback.default")
def grouped_mm(c, x, weight, ends):
    """Rows of x by one matrix of a group: all by each, of which its own are kept, since how many a group has is not known beforehand."""
    row, began, total = c.tensor(torch.arange(x.shape[0])), None, None
    for i in range(weight.shape[0]):
        end = select(c, ends, 0, i)
        within = compare("lt")(c, row, end)
        within = within if began is None else logical("and")(c, within, compare("ge")(c, row, began))
        y = ops.matmul(ops.mul(x, unsqueeze(c, cast(within, F32), 1)), select(c, weight, 0, i))
        began, total = end, y if total is None else ops.add(total, y)
    return total


@op("addmm", "addmv", "baddbmm")
def addmm(c, x, a, b, *, beta=1, alpha=1):
    return add(c, mul(c, x, beta), mul(c, matmul(c, a, b), alpha))


@op("outer")
def outer(c, a, b):
    return ops.mul(unsqueeze(c, a, 1), unsqueeze(c, b, 0))


def _conv(n):
    def build(c, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        every = lambda v: [v] * n if isinstance(v, int) else list(v) * (n if len(v) == 1 else 1)
        stride, dilation = every(stride), every(dilation)
        batched = x.ndim == n + 2
        x = x if batched else unsqueeze(c, x, 0)
        if isinstance(padding, str):
            whole = [0 if padding == "valid" else d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
            if any(p % 2 for p in whole):
                x = constant_pad(c, x, [q for p in reversed(whole) for q in (p // 2, p - p // 2)])
                whole = [0] * n
            padding = [p // 2 for p in whole]
        given = dict(stride=stride, padding=every(padding), dilation=dilation, groups=groups)
        if n == 1:
            given = {k: v if isinstance(v, int) else v[0] for k, v in given.items()}
        y = getattr(ops, "conv%dd" % n)(x, c.tensor(weight), None if bias is None else c.tensor(bias), **given)
        return y if batched else squeeze(c, y, [0])
    return build


def _conv_transpose(n):
    def build(c, x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        every = lambda v: [v] * n if isinstance(v, int) else list(v) * (n if len(v) == 1 else 1)
        given = dict(stride=every(stride), padding=every(padding), output_padding=every(output_padding), dilation=every(dilation), groups=groups)
        if n == 1:
            given = {k: v if isinstance(v, int) else v[0] for k, v in given.items()}
        return getattr(ops, "conv_transpose%dd" % n)(x, c.tensor(weight), None if bias is None else c.tensor(bias), **given)
    return build


for _n in (1, 2, 3):
    TABLE["conv%dd" % _n] = _conv(_n)
    TABLE["conv_transpose%dd" % _n] = _conv_transpose(_n)


@op("convolution")
def convolution(c, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    n = weight.ndim - 2
    if transposed:
        return TABLE["conv_transpose%dd" % n](c, x, weight, bias, stride, padding, output_padding, groups, dilation)
    return TABLE["conv%dd" % n](c, x, weight, bias, stride, padding, dilation, groups)


def _max_pool(n):
    def build(c, x, kernel, stride=None, padding=0, dilation=1, ceil_mode=False):
        every = lambda v: [v] * n if isinstance(v, int) else list(v) * (n if len(v) == 1 else 1)
        given = dict(kernel=every(kernel), stride=every(stride or kernel), padding=every(padding), dilation=every(dilation))
        if n == 1:
            given = {k: v[0] for k, v in given.items()}
        batched = x.ndim == n + 2
        y = getattr(ops, "max_pool%dd" % n)(x if batched else unsqueeze(c, x, 0), ceil_mode=ceil_mode, **given)
        return y if batched else squeeze(c, y, [0])
    return build


def _avg_pool(n):
    def build(c, x, kernel, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        if divisor_override:
            raise NotImplementedError("divisor_override")
        every = lambda v: [v] * n if isinstance(v, int) else list(v) * (n if len(v) == 1 else 1)
        given = dict(kernel=every(kernel), stride=every(stride or kernel), padding=every(padding))
        if n == 1:
            given = {k: v[0] for k, v in given.items()}
        return getattr(ops, "avg_pool%dd" % n)(x, ceil_mode=ceil_mode, exclude_padding=not count_include_pad, **given)
    return build


for _n in (1, 2, 3):
    TABLE["max_pool%dd" % _n] = _max_pool(_n)
    TABLE["avg_pool%dd" % _n] = _avg_pool(_n)


def _even(n, out):
    if n % out:
        raise NotImplementedError("an adaptive pool of %d to %d, of windows of unlike sizes" % (n, out))
    return n // out


@op("adaptive_avg_pool2d", "_adaptive_avg_pool2d")
def adaptive_avg_pool2d(c, x, size):
    batched = x.ndim == 4
    x = x if batched else unsqueeze(c, x, 0)
    h, w = (x.shape[2] if size[0] is None else size[0], x.shape[3] if size[1] is None else size[1])
    y = ops.global_avg_pool2d(x) if (h, w) == (1, 1) else ops.adaptive_avg_pool2d(x, OH=h, OW=w)
    return y if batched else squeeze(c, y, [0])


@op("adaptive_avg_pool1d")
def adaptive_avg_pool1d(c, x, size):
    return squeeze(c, adaptive_avg_pool2d(c, unsqueeze(c, x, -2), [1, size[0] if not isinstance(size, int) else size]), [-2])


@op("adaptive_avg_pool3d")
def adaptive_avg_pool3d(c, x, size):
    kernel = [_even(n, out) for n, out in zip(x.shape[2:], size)]
    return ops.avg_pool3d(x, kernel=kernel)


@op("adaptive_max_pool2d")
def adaptive_max_pool2d(c, x, size):
    oh, ow = [size] * 2 if isinstance(size, int) else size
    return [ops.adaptive_max_pool2d(x, OH=oh, OW=ow), None]


@op("adaptive_max_pool1d")
def adaptive_max_pool1d(c, x, size):
    return [ops.adaptive_max_pool1d(x, OL=size if isinstance(size, int) else size[0]), None]


def _interpolate(x, size, factors, mode, **how):
    """Of ATen's two forms: a size and None, or a list of factors and None, or a size and a factor for each dimension."""
    factors = list(factors[0]) if factors and isinstance(factors[0], (list, tuple)) else list(factors)
    scales = {f"scale{i}": f for i, f in enumerate(factors) if f}
    return ops.interpolate(x, size=list(size) if size is not None else [], mode=mode, **scales, **how)


@op("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d")
def nearest(c, x, size, *factors):
    return _interpolate(x, size, factors, 0)


@op("_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d")
def nearest_exact(c, x, size, *factors):
    return _interpolate(x, size, factors, 1)


@op("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d")
def bilinear(c, x, size, align_corners, *factors):
    return _interpolate(x, size, factors, 2, align_corners=align_corners)


@op("upsample_bicubic2d")
def bicubic(c, x, size, align_corners, *factors):
    return _interpolate(x, size, factors, 3, align_corners=align_corners)


@op("_upsample_bilinear2d_aa")
def bilinear_aa(c, x, size, align_corners, *factors):
    return _interpolate(x, size, factors, 2, align_corners=align_corners, antialias=True)


@op("_upsample_bicubic2d_aa")
def bicubic_aa(c, x, size, align_corners, *factors):
    return _interpolate(x, size, factors, 3, align_corners=align_corners, antialias=True)


@op("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(c, x, grid, mode=0, padding=0, align_corners=False):
    return ops.grid_sample(x, c.tensor(grid), mode=mode, padding_mode=padding, align_corners=align_corners)


# ---- norms ------------------------------------------------------------------------------------------------------------------

@op("batch_norm")
def batch_norm(c, x, weight, bias, running_mean, running_var, training, momentum, eps, *_):
    if running_mean is None and not training:
        training = True
    if training and running_mean is not None and c.statistics is not None:
        y = ops.batch_norm(x, weight, bias, training=True, momentum=momentum, eps=eps)
        c.statistics += [(running_mean, y.outputs(1), momentum), (running_var, y.outputs(3), momentum)]
        return y
    return ops.batch_norm(x, weight, bias, running_mean, running_var, training=training, momentum=momentum, eps=eps)


@op("_native_batch_norm_legit_functional", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training")
def native_batch_norm(c, x, weight, bias, running_mean, running_var, *rest):
    training, momentum, eps = rest if len(rest) == 3 else (False,) + rest
    return [batch_norm(c, x, weight, bias, running_mean, running_var, training, momentum, eps), None, None, None, None]


@op("layer_norm")
def layer_norm(c, x, shape, weight=None, bias=None, eps=1e-5, *_):
    wide = math.prod(shape)
    flat = x if len(shape) == 1 else reshape(x, x.shape[:x.ndim - len(shape)] + (wide,))
    one = lambda w: None if w is None else reshape(c.tensor(w), (wide,))
    return reshape(ops.layer_norm(flat, one(weight), one(bias), eps=eps), x.shape)


@op("native_layer_norm")
def native_layer_norm(c, x, shape, weight, bias, eps):
    return [layer_norm(c, x, shape, weight, bias, eps), None, None]


@op("rms_norm")
def rms_norm(c, x, shape, weight=None, eps=None):
    wide = math.prod(shape)
    flat = x if len(shape) == 1 else reshape(x, x.shape[:x.ndim - len(shape)] + (wide,))
    return reshape(ops.rms_norm(flat, None if weight is None else reshape(weight, (wide,)), eps=eps), x.shape)


@op("group_norm")
def group_norm(c, x, groups, weight=None, bias=None, eps=1e-5, *_):
    return ops.group_norm(x, *(None if w is None else c.tensor(w) for w in (weight, bias)), groups=groups, eps=eps)


@op("instance_norm")
def instance_norm(c, x, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, *_):
    if not use_input_stats:
        return batch_norm(c, x, weight, bias, running_mean, running_var, False, momentum, eps)
    return ops.instance_norm(x, *(None if w is None else c.tensor(w) for w in (weight, bias)), eps=eps)


# ---- attention, recurrent layers --------------------------------------------------------------------------------------------

@op("scaled_dot_product_attention")
def attention(c, q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False):
    drawn = dropout_p and c.masks is not None
    if not drawn:
        if is_causal and q.shape[-2] != k.shape[-2]:  # the first query sees one key here, in Cleave the last one sees all
            attn_mask, is_causal = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril(), False
        masks = [] if attn_mask is None else [c.tensor(attn_mask)]
        return ops.scaled_dot_product_attention(q, k, v, *masks, causal=is_causal, scale=scale or 0.0, dropout=dropout_p,
                                                enable_gqa=enable_gqa)
    if enable_gqa and k.shape[-3] != q.shape[-3]:
        k, v = (repeat_interleave(c, x, q.shape[-3] // x.shape[-3], x.ndim - 3) for x in (k, v))
    scores = mul(c, ops.matmul_t(q, k, transpose_b=True), scale or 1 / math.sqrt(q.shape[-1]))
    if is_causal:
        attn_mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
    if attn_mask is not None:
        truths = attn_mask.dtype == torch.bool if isinstance(attn_mask, torch.Tensor) else str(attn_mask.dtype) != F32
        scores = where(c, attn_mask, scores, float("-inf")) if truths else add(c, scores, c.tensor(attn_mask))
    weights = ops.softmax(scores, axis=-1)
    return ops.matmul(dropped(c, weights, dropout_p) if dropout_p else weights, v)


def _recurrent(cell, n_states):
    """torch.lstm and the like: for each layer and direction a product over all steps, then one node for all of them."""
    def build(c, x, *rest, lengths=None):
        hx = rest[0] if n_states > 1 else [rest[0]]
        weights, biases, layers, p, train, bidirectional, batch_first = rest[1:]
        if not isinstance(weights, (list, tuple)):
            raise NotImplementedError("packed sequences that are inputs")
        states = [None if isinstance(h, torch.Tensor) and not h.any() else c.tensor(h) for h in hx]
        x = ops.transpose(x, axis0=0, axis1=1) if batch_first else x
        directions, last, weights = 2 if bidirectional else 1, [[] for _ in hx], [c.tensor(w) for w in weights]
        per = 4 if biases else 2
        for layer in range(layers):
            ways = []
            for way in range(directions):
                k = layer * directions + way
                w_ih, w_hh, *b = weights[k * per:(k + 1) * per]
                first = [None if h is None else select(c, h, 0, k) for h in states] + [None] * (2 - n_states)
                z = ops.linear(x, w_ih, b[0] if b else None)
                y = ops.recurrence(z, w_hh, b[1] if b else None, *first, lengths, cell=cell, reverse=bool(way), keep=c.training)
                ways.append(y)
                for i in range(n_states):
                    last[i].append(y.outputs(1 + i))
            x = ways[0] if directions == 1 else ops.concat(*ways, axis=2)
            if p and train and layer + 1 < layers:
                x = dropped(c, x, p)
        y = ops.transpose(x, axis0=0, axis1=1) if batch_first else x
        return [y] + [stack(c, h, 0) for h in last]
    return build


@op("cleave.recurrent.default")
def of_packed(c, x, lengths, hx, weights, mode, *rest):
    """Steps of each row; past them 0."""
    name = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "rnn_tanh", "RNN_RELU": "rnn_relu"}[mode] + ".input"
    return TABLE[name](c, x, hx if mode == "LSTM" else hx[0], weights, *rest, False, lengths=number(c.tensor(lengths)))


TABLE["lstm.input"] = _recurrent(0, 2)
TABLE["gru.input"] = _recurrent(1, 1)
TABLE["rnn_tanh.input"] = _recurrent(2, 1)
TABLE["rnn_relu.input"] = _recurrent(3, 1)


# ---- complex numbers --------------------------------------------------------------------------------------------------------

class Complex:
    """Two tensors of the graph."""

    def __init__(self, re, im):
        self.re, self.im = re, im

    @property
    def ndim(self):
        return self.re.ndim

    @property
    def shape(self):
        return self.re.shape


def complexes(c, x):
    """As one, whatever it is."""
    if isinstance(x, complex):
        x = torch.tensor(x)
    if isinstance(x, torch.Tensor):
        return Complex(c.tensor(x.real.contiguous()), c.tensor(x.imag.contiguous() if x.is_complex() else torch.zeros(x.shape)))
    return x if isinstance(x, Complex) else Complex(floats(c, x), filled(0)(c, x))


def of_complex(c, name, function, args, kwargs):
    """What an op makes of complex numbers."""
    if name in OF_COMPLEX:
        return function(c, *args, **kwargs)
    part = lambda at: torch.utils._pytree.tree_map(lambda x: getattr(complexes(c, x), at) if isinstance(x, Complex) or isinstance(x, torch.Tensor) and
                                                   x.is_complex() else x, (args, kwargs))
    if name in VIEWS | {"clone", "contiguous", "cat", "stack", "index", "flip", "roll", "neg", "add", "sub", "sum", "mean", "detach", "constant_pad_nd"}:
        if name in ("add", "sub"):
            args = tuple(complexes(c, x) if not isinstance(x, (int, float)) else x for x in args)
        (re, named), (im, _) = part("re"), part("im")
        if name in ("add", "sub") and any(isinstance(x, (int, float)) for x in args):
            return Complex(function(c, *re, **named), args[0].im)
        re, im = function(c, *re, **named), function(c, *im, **named)
        return [Complex(a, b) for a, b in zip(re, im)] if isinstance(re, (list, tuple)) else Complex(re, im)
    a, b = args[0], args[1] if len(args) > 1 else None
    real = isinstance(b, (int, float, Tensor)) or isinstance(b, torch.Tensor) and not b.is_complex()
    if name in ("mul", "div") and isinstance(a, Complex) and real:
        return Complex(function(c, a.re, b), function(c, a.im, b))
    if name == "mul":
        a, b = complexes(c, a), complexes(c, b)
        return Complex(ops.sub(ops.mul(a.re, b.re), ops.mul(a.im, b.im)), ops.add(ops.mul(a.re, b.im), ops.mul(a.im, b.re)))
    if name == "abs":
        return ops.sqrt(ops.add(ops.square(a.re), ops.square(a.im)))
    raise NotImplementedError("complex numbers")


OF_COMPLEX = {"view_as_real", "view_as_complex", "real", "imag", "_conj", "conj", "_conj_physical", "conj_physical", "resolve_conj", "polar", "complex",
              "fft_fft", "fft_ifft", "fft_rfft", "fft_irfft", "fft_fftn", "fft_fft2"}


@op("view_as_complex")
def view_as_complex(c, x):
    return Complex(select(c, x, -1, 0), select(c, x, -1, 1))


@op("view_as_real")
def view_as_real(c, x):
    return stack(c, [x.re, x.im], -1)


@op("real")
def real(c, x):
    return x.re if isinstance(x, Complex) else x


@op("imag")
def imag(c, x):
    return x.im


@op("conj", "_conj", "conj_physical", "_conj_physical")
def conj(c, x):
    return Complex(x.re, ops.neg(x.im)) if isinstance(x, Complex) else x


@op("resolve_conj")
def resolve_conj(c, x):
    return x


@op("complex")
def of_parts(c, re, im):
    return Complex(floats(c, re), floats(c, im))


@op("polar")
def polar(c, size, angle):
    size, angle = floats(c, size), floats(c, angle)
    return Complex(ops.mul(size, ops.cos(angle)), ops.mul(size, ops.sin(angle)))


def _transform(c, x, n, dim, norm, sign):
    """The Fourier transform of a dimension, as a product with its matrix."""
    x = complexes(c, x)
    d = axis(x, dim)
    n = x.shape[d] if n is None else n
    x = Complex(*(slice_(c, y if y.shape[d] >= n else pad(c, y, [0, 0] * (y.ndim - 1 - d) + [0, n - y.shape[d]]), d, 0, n) for y in (x.re, x.im)))
    angle = torch.outer(torch.arange(n), torch.arange(n)) % n * (2 * math.pi / n)
    scale = n**-0.5 if norm == "ortho" else 1 / n if (norm == "forward") == (sign < 0) and (norm == "forward" or sign > 0) else 1.0
    cos, sin = (c.tensor((scale * f(angle.double())).float()) for f in (torch.cos, torch.sin))
    by = lambda y, table: movedim(c, ops.matmul(movedim(c, y, d, y.ndim - 1), table), y.ndim - 1, d)
    re, im = (ops.sub, ops.add) if sign > 0 else (ops.add, ops.sub)  # of exp(sign * i * angle)
    return Complex(re(by(x.re, cos), by(x.im, sin)), im(by(x.im, cos), by(x.re, sin)))


@op("fft_fft")
def fft(c, x, n=None, dim=-1, norm=None):
    return _transform(c, x, n, dim, norm, -1)


@op("fft_ifft")
def ifft(c, x, n=None, dim=-1, norm=None):
    return _transform(c, x, n, dim, norm, 1)


@op("fft_fftn", "fft_fft2")
def fftn(c, x, s=None, dim=None, norm=None):
    for i, d in enumerate(axes(x, dim) if dim is not None or "fft2" not in str(c.node.target) else [x.ndim - 2, x.ndim - 1]):
        x = _transform(c, x, None if s is None else s[i], d, norm, -1)
    return x


@op("fft_rfft")
def rfft(c, x, n=None, dim=-1, norm=None):
    y = _transform(c, x, n, dim, norm, -1)
    half = (x.shape[axis(x, dim)] if n is None else n) // 2 + 1
    return Complex(slice_(c, y.re, dim, 0, half), slice_(c, y.im, dim, 0, half))


@op("fft_irfft")
def irfft(c, x, n=None, dim=-1, norm=None):
    """What lies behind the half that is given mirrors it."""
    d = axis(x, dim)
    n = 2 * (x.shape[d] - 1) if n is None else n
    half = n // 2 + 1
    x = Complex(*(slice_(c, y if y.shape[d] >= half else pad(c, y, [0, 0] * (y.ndim - 1 - d) + [0, half - y.shape[d]]), d, 0, half)
                  for y in (x.re, x.im)))
    mirror = lambda y: ops.flip(slice_(c, y, d, 1, n - half + 1), axis=d)
    whole = Complex(cat(c, [x.re, mirror(x.re)], d), cat(c, [x.im, ops.neg(mirror(x.im))], d)) if n > half else x
    return _transform(c, whole, n, dim, norm, 1).re


# ---- losses -------------------------------------------------------------------------------------------------------------------

def reduced(c, each, reduction):
    return each if reduction == 0 else ops.mean(each, axes=axes(each, None)) if reduction == 1 else ops.sum(each, axes=axes(each, None))


def loss_of_pairs(name, c, x, target, reduction, *weights, **attributes):
    """One of the library's losses, of what PyTorch broadcasts."""
    x, target = broadcast_tensors(c, [floats(c, x), floats(c, target)])
    weights = [None if w is None else c.tensor(w) for w in weights]
    return getattr(ops, name)(x, target, *weights, reduction=getattr(lib, "CLV_REDUCTION_" + REDUCTIONS[reduction]), **attributes)


def classes_last(c, x):
    """[N, C, ...] with the classes last; of [C] too."""
    return x if x.ndim <= 2 else ops.permute(x, axes=[0] + list(range(2, x.ndim)) + [1])


def counts(c, target, weight, ignore_index):
    """What each label counts."""
    valid = compare("ne")(c, target, ignore_index)
    if weight is None:
        return cast(valid, F32)
    known = where(c, valid, target, 0)
    each = reshape(ops.index_select(c.tensor(weight), reshape(known, (math.prod(known.shape),)), axis=0), known.shape)
    return where(c, valid, each, 0.0)


def of_labels(c, x, target, reduction, weight, ignore_index, logs):
    """Cross entropy of labels; logs: x is of logarithms already."""
    target = number(c.tensor(target))
    if x.ndim == 1:
        x, target = unsqueeze(c, x, 0), reshape(target, (1,))
    each = counts(c, target, weight, ignore_index)
    if reduction == 0:
        return ops.nll_loss(x if logs else ops.log_softmax(x, axis=1), target, each, reduction=lib.CLV_REDUCTION_NONE)
    total = mul(c, (ops.nll_loss if logs else ops.cross_entropy)(x, target, each), math.prod(target.shape))
    return total if reduction == 2 else ops.div(total, ops.sum(each, axes=axes(each, None)))


@op("nll_loss", "nll_loss_nd", "nll_loss2d")
def nll_loss(c, logs, target, weight=None, reduction=1, ignore_index=-100):
    return of_labels(c, logs, target, reduction, weight, ignore_index, True)


@op("cross_entropy_loss")
def cross_entropy(c, x, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0):
    if isinstance(target, Tensor) and str(target.dtype) == F32:  # probabilities
        y = classes_last(c, target)
        if label_smoothing:
            y = add(c, mul(c, y, 1 - label_smoothing), label_smoothing / y.shape[-1])
        logs = ops.log_softmax(classes_last(c, x), axis=-1)
        logs = logs if weight is None else ops.mul(logs, c.tensor(weight))
        each = ops.neg(ops.sum(ops.mul(y, logs), axes=[logs.ndim - 1]))
        return reduced(c, each, reduction)
    hard = of_labels(c, x, target, reduction, weight, ignore_index, False)
    if not label_smoothing:
        return hard
    rows, n = ops.log_softmax(classes_last(c, x), axis=-1), x.shape[min(1, x.ndim - 1)]
    target = number(c.tensor(target))
    valid = counts(c, target, None, ignore_index)
    counted = rows if weight is None else ops.mul(rows, c.tensor(weight))
    soft = reduced(c, ops.neg(ops.mul(ops.sum(counted, axes=[rows.ndim - 1]), valid)), 2 if reduction else 0)
    if reduction == 1:
        soft = ops.div(soft, ops.sum(counts(c, target, weight, ignore_index), axes=axes(target, None)))
    return add(c, mul(c, hard, 1 - label_smoothing), mul(c, soft, label_smoothing / n))


@op("mse_loss")
def mse_loss(c, x, target, reduction=1):
    x, target = broadcast_tensors(c, [floats(c, x), floats(c, target)])
    return ops.mse_loss(x, target) if reduction == 1 else reduced(c, ops.square(ops.sub(x, target)), reduction)


@op("l1_loss")
def l1_loss(c, x, target, reduction=1):
    return loss_of_pairs("l1_loss", c, x, target, reduction)


@op("huber_loss")
def huber_loss(c, x, target, reduction=1, delta=1.0):
    return loss_of_pairs("huber_loss", c, x, target, reduction, delta=delta)


@op("smooth_l1_loss")
def smooth_l1_loss(c, x, target, reduction=1, beta=1.0):
    return loss_of_pairs("smooth_l1_loss", c, x, target, reduction, beta=beta)


@op("binary_cross_entropy_with_logits")
def bce_with_logits(c, x, target, weight=None, pos_weight=None, reduction=1):
    return loss_of_pairs("binary_cross_entropy_with_logits", c, x, target, reduction, weight, pos_weight)


@op("binary_cross_entropy")
def bce(c, p, target, weight=None, reduction=1):
    logs = lambda q: ops.clamp(ops.log(q), min=-100.0)
    each = ops.neg(ops.add(ops.mul(target, logs(p)), ops.mul(rsub(c, target, 1), logs(rsub(c, p, 1)))))
    return reduced(c, each if weight is None else ops.mul(each, c.tensor(weight)), reduction)


@op("kl_div")
def kl_div(c, x, target, reduction=1, *, log_target=False):
    return loss_of_pairs("kl_div", c, x, target, reduction, log_target=log_target)


@op("cleave.ctc_loss.default")  # model.py
def ctc_loss(c, x, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    whole = [number(c.tensor(one)) for one in (targets, input_lengths, target_lengths)]
    return ops.ctc_loss(floats(c, x), *whole, blank=blank, zero_infinity=zero_infinity,
                        reduction=getattr(lib, "CLV_REDUCTION_" + REDUCTIONS[reduction]))


# ---- what export leaves in a graph --------------------------------------------------------------------------------------------

IGNORED = {"_assert_scalar", "_assert_async", "sym_constrain_range", "sym_constrain_range_for_size", "_assert_tensor_metadata"}
PLAIN = {operator.getitem, operator.add, operator.sub, operator.mul, operator.floordiv, operator.truediv, operator.mod, operator.neg,
         operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.pow, operator.and_, operator.or_, math.ceil,
         math.floor, min, max, int, float, bool, round}


def find(target):
    """The function for a node's op, and whether it works in place. None: there is none."""
    name, _, overload = str(target).replace("aten.", "", 1).partition(".")
    in_place = name.endswith("_") and not name.endswith("__")
    name = name[:-1] if in_place else name
    return TABLE.get("%s.%s" % (name, overload)) or TABLE.get(name), in_place
