# SPDX-License-Identifier: Apache-2.0
"""Graphs and ops: what is computed. `ops` has a function for each op of the library, made from its signature."""
from __future__ import annotations

import contextlib
import types
from typing import TYPE_CHECKING, Any, Callable, Iterator, Sequence

import numpy

from ._library import ArgumentError, Error, Handle, NULL, UnsupportedError, fault, ffi, lib, make, runtime, text

_DTYPES = {"float32": "F32", "int32": "I32", "float16": "F16", "uint8": "U8", "int64": "I64", "bool": "BOOL", "int8": "I8",
           "bfloat16": "BF16"}
_NUMPY = {"F32": numpy.float32, "I32": numpy.int32, "F16": numpy.float16, "U8": numpy.uint8, "I64": numpy.int64,
          "BOOL": numpy.bool_, "I8": numpy.int8, "BF16": numpy.uint16}
_BY_VALUE = {getattr(lib, "CLV_DTYPE_" + name): name for name in _NUMPY}


def dtype_value(dtype):
    """The library's number of a dtype: `float32`, `numpy.int64`, `torch.bool`."""
    name = str(dtype).split(".")[-1] if "torch" in str(dtype) else dtype if dtype == "bfloat16" else numpy.dtype(dtype).name
    if name not in _DTYPES:
        raise UnsupportedError("there is no dtype %s in Cleave; there are %s" % (dtype, ", ".join(sorted(_DTYPES))))
    return getattr(lib, "CLV_DTYPE_" + _DTYPES[name])


def shape_value(dims):
    shape = ffi.new("clv_shape *")
    if len(dims) > lib.CLV_MAX_RANK:
        raise UnsupportedError("a tensor has at most %d dimensions, and this has %d" % (lib.CLV_MAX_RANK, len(dims)))
    shape.rank = len(dims)
    for i, n in enumerate(dims):
        shape.dims[i] = int(n)
    return shape[0]


class Tensor:
    """A value in a graph: it has a shape and a dtype, and numbers only while a plan runs."""

    __slots__ = ("graph", "pointer", "_info")

    def __init__(self, graph: Graph, pointer: Any) -> None:
        self.graph, self.pointer = graph, pointer
        self._info = lib.clv_tensor_info_get(pointer)

    @property
    def shape(self) -> tuple[int, ...]:
        """Its lengths."""
        return tuple(self._info.shape.dims[0:self._info.shape.rank])

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """As NumPy's; of bf16 that of its bits."""
        return numpy.dtype(_NUMPY[_BY_VALUE[self._info.dtype]])

    @property
    def ndim(self) -> int:
        """How many dimensions."""
        return self._info.shape.rank

    @property
    def name(self) -> str:
        """As it was given, with its layer."""
        return text(self._info.name)

    @property
    def n_bytes(self) -> int:
        """Its size as it is stored."""
        return self._info.bytes

    def outputs(self, i: int) -> Tensor:
        """The i-th output of the op that this is output 0 of."""
        return Tensor(self.graph, lib.clv_op_output(self.pointer, i))

    def __repr__(self) -> str:
        return "Tensor(%s, %s, %s)" % (self.name or "?", list(self.shape), self.dtype)


class Graph:
    """A graph that is being built."""

    def __init__(self, training: bool = False, precision: str = "f32") -> None:
        self._runtime, self.training = runtime(), training
        self.updates: list[tuple[Tensor, Tensor]] = []  # buffers, and what they take at the end of a training step
        self.handle = make("clv_graph", lambda out: lib.clv_graph_create(self._runtime.pointer, out), lib.clv_graph_destroy,
                           self._runtime.handle)
        modes = ffi.new("clv_graph_modes *", lib.clv_graph_modes_get(self.pointer))
        modes.training = training
        modes.precision = {"f32": lib.CLV_PRECISION_F32, "mixed": lib.CLV_PRECISION_MIXED,
                           "mixed-bf16": lib.CLV_PRECISION_MIXED_BF16}[precision]
        lib.clv_graph_modes_set(self.pointer, modes)

    @classmethod
    def of(cls, tensor: Any) -> Graph:
        """The graph of a tensor of the library's."""
        graph = cls.__new__(cls)
        graph._runtime, graph.handle = runtime(), types.SimpleNamespace(pointer=lib.clv_tensor_info_get(tensor).graph)
        graph.training = bool(lib.clv_graph_modes_get(graph.pointer).training)
        return graph

    @property
    def pointer(self) -> Any:
        """The library's."""
        return self.handle.pointer

    def tensor(self, pointer: Any) -> Tensor:
        """A tensor that the library made; its mistake as an exception."""
        if pointer == NULL:
            self.check()
            raise Error("the library made no tensor, and tells no mistake")
        return Tensor(self, pointer)

    def check(self) -> None:
        """Raises the first mistake of what was built."""
        self._runtime.check(lib.clv_graph_status(self.pointer))

    def input(self, name: str, dtype: Any, shape: Sequence[int]) -> Tensor:
        """What is fed in each step."""
        return self.tensor(lib.clv_input(self.pointer, name.encode(), dtype_value(dtype), shape_value(shape)))

    @staticmethod
    def _init(value, uniform, normal):
        """First values: all `value`, or uniform from -uniform to uniform, or normal with that deviation."""
        init = ffi.new("clv_init *")
        if uniform is not None or normal is not None:
            init.kind = lib.CLV_INIT_UNIFORM if normal is None else lib.CLV_INIT_NORMAL
            init.a, init.b = (-uniform, uniform) if normal is None else (0, normal)
        else:
            init.kind = lib.CLV_INIT_UNIFORM if value not in (0, 1) else lib.CLV_INIT_ONES if value else lib.CLV_INIT_ZEROS
            init.a = init.b = value
        return init[0]

    def parameter(self, name: str, shape: Sequence[int], value: float = 0, uniform: float | None = None,
                  normal: float | None = None) -> Tensor:
        """What is trained; first all `value`, or uniform from -uniform to uniform, or normal with that deviation."""
        return self.tensor(lib.clv_parameter(self.pointer, name.encode(), shape_value(shape), self._init(value, uniform, normal)))

    def buffer(self, name: str, dtype: Any, shape: Sequence[int], value: float = 0) -> Tensor:
        """What is kept and not trained, as running statistics."""
        return self.tensor(lib.clv_buffer(self.pointer, name.encode(), dtype_value(dtype), shape_value(shape),
                                          self._init(value, None, None)))

    def constant(self, array: Any) -> Tensor:
        """Numbers that are part of the graph."""
        array = numpy.asarray(array, order="C")
        if array.dtype == numpy.float64 or array.dtype == numpy.float16:
            array = array.astype(numpy.float32)
        data = ffi.from_buffer(array) if array.size else NULL
        return self.tensor(lib.clv_constant(self.pointer, dtype_value(array.dtype), shape_value(array.shape), data))

    def output(self, tensor: Tensor, name: str) -> Tensor:
        """Make it one that can be fetched."""
        lib.clv_output(tensor.pointer, name.encode())
        self.check()
        return tensor

    @contextlib.contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Ops that are built within are of the layer `name`."""
        if name:
            lib.clv_scope_push(self.pointer, name.encode())
        try:
            yield
        finally:
            if name:
                lib.clv_scope_pop(self.pointer)


# ---- ops, by their signatures ----------------------------------------------------------------------------------------

def _argument(op, argument, attribute, value, kept):
    argument.name = attribute.name
    try:
        _value(argument, attribute, value, kept)
    except (TypeError, ValueError) as error:
        raise ArgumentError("%s: '%s' cannot be %r: %s" % (op, text(attribute.name), value, error)) from error


def _value(argument, attribute, value, kept):
    kind = attribute.kind
    if kind == lib.CLV_ATTRIBUTE_TEXT:
        kept.append(ffi.new("char[]", str(value).encode()))
        argument.text = kept[-1]
    elif kind == lib.CLV_ATTRIBUTE_DTYPE:
        argument.number = dtype_value(value)
    elif kind in (lib.CLV_ATTRIBUTE_LIST, lib.CLV_ATTRIBUTE_PAIR) and not isinstance(value, int):
        kept.append(ffi.new("int64_t[]", [int(v) for v in value]))
        argument.list, argument.n = kept[-1], len(value)
    else:
        argument.number = float(value)


def call(graph: Graph, name: str, inputs: Sequence[Tensor | None], **attributes: Any) -> Tensor:
    """Build the op of that name. inputs: tensors, or None for one that is not there."""
    signature = lib.clv_op_find(name.encode())
    if signature == NULL:
        raise UnsupportedError("Cleave has no op '%s'" % name)
    known, i = {}, 0
    while signature.attributes != NULL and signature.attributes[i].name != NULL:
        known[text(signature.attributes[i].name)] = signature.attributes[i]
        i += 1
    given = {k: v for k, v in attributes.items() if v is not None}
    for key in given:
        if key not in known:
            raise ArgumentError("%s has no attribute '%s'; it has %s" % (name, key, ", ".join(known) or "none"))
    kept = []
    arguments = ffi.new("clv_op_argument[]", max(1, len(given)))
    for i, (key, value) in enumerate(given.items()):
        _argument(name, arguments[i], known[key], value, kept)
    tensors = ffi.new("clv_tensor *[]", [NULL if t is None else t.pointer for t in inputs] or [NULL])
    return graph.tensor(lib.clv_op_call(graph.pointer, name.encode(), tensors, len(inputs), arguments, len(given)))


class _Ops:
    """`ops.relu(x)`, `ops.conv2d(x, weight, bias, stride=[2, 2])`: inputs in the signature's order, attributes by name."""

    if TYPE_CHECKING:  # made at run time

        def __getattr__(self, name: str) -> Callable[..., Tensor]: ...

    def __init__(self) -> None:
        i = 0
        while lib.clv_op_get(i) != NULL:
            self._add(lib.clv_op_get(i))
            i += 1

    def _add(self, signature):
        name = text(signature.name)
        inputs, i = [], 0
        while signature.inputs != NULL and signature.inputs[i].name != NULL:
            inputs.append((text(signature.inputs[i].name), text(signature.inputs[i].type)))
            i += 1
        attributes, i = [], 0
        while signature.attributes != NULL and signature.attributes[i].name != NULL:
            attributes.append((text(signature.attributes[i].name), text(signature.attributes[i].fallback) or "needed"))
            i += 1

        def op(*tensors, graph=None, **given):
            there = [t for t in tensors if t is not None]
            odd = next((t for t in there if not isinstance(t, Tensor)), None)
            if odd is not None:
                raise ArgumentError("%s wants tensors of a graph, and this is %r" % (name, odd))
            if graph is None and not there:
                raise ArgumentError("%s: at least one tensor, or graph=, must be given" % name)
            return call(graph or there[0].graph, name, tensors, **given)

        op.__name__ = op.__qualname__ = name
        op.__doc__ = "%s(%s)" % (name, ", ".join(["%s: %s" % x for x in inputs] + ["%s=%s" % x for x in attributes]))
        setattr(self, name, op)


ops = _Ops()
