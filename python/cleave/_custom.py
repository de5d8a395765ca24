# SPDX-License-Identifier: Apache-2.0
"""Ops of a program's own: OpenCL C, with shape rule, reference and gradient in Python; and the check of ops on a device. Nothing of Python runs
in a step, except on the device `host`, which computes by references."""
from __future__ import annotations

import math
from typing import Any, Callable, Sequence

import numpy

from ._library import ArgumentError, InvalidValueError, NULL, faults, ffi, lib, runtime, text
from .device import Device
from .graph import Graph, Tensor, dtype_value, ops

_kept: list[Any] = []  # what the library points to until the process ends
_FIELDS = {kind: dict(ffi.typeof(kind).fields) for kind in ("clv_custom_op", "clv_op_variant")}


def _callback(kind, field, function, otherwise=None):
    """A function for the library. What it raises is raised by the call that led to it."""
    def call(*args):
        try:
            return function(*args)
        except Exception as error:  # for the thread that called the library
            faults.append(error)
            return otherwise
    _kept.append(ffi.callback(_FIELDS[kind][field].type, call))
    return _kept[-1]


def _text(value):
    _kept.append(ffi.new("char[]", value.encode()))
    return _kept[-1]


def _list(kind, rows):
    """An array of structs, with one of zeros behind."""
    found = ffi.new(kind + "[]", len(rows) + 1)
    for i, row in enumerate(rows):
        for name, value in row.items():
            setattr(found[i], name, value)
    _kept.append(found)
    return found


_KINDS = {bool: "BOOL", int: "INT", float: "NUMBER", str: "TEXT", list: "LIST"}


def _kind(name, given):
    kind = given if isinstance(given, type) else list if isinstance(given, (tuple, list)) else type(given)
    if kind not in _KINDS:
        raise ArgumentError("attribute '%s' is a bool, int, float, str or list, and this is %r" % (name, given))
    return kind


def _attribute(name, given):
    """`given` is its default, or its type, if there is none."""
    kind = _kind(name, given)
    row = {"name": _text(name), "kind": getattr(lib, "CLV_ATTRIBUTE_" + _KINDS[kind])}
    if not isinstance(given, type):
        row["fallback"] = _text(",".join(map(str, given)) if kind is list else str(int(given)) if kind is bool else str(given))
    return row


def _shape(tensor):
    return tuple(tensor.shape.dims[0:tensor.shape.rank])


def _values(use, kinds):
    """Attributes by name, as their kinds are."""
    found = {}
    for argument, (name, kind) in zip(use.attributes[0:use.n_attributes], kinds.items()):
        found[name] = text(argument.text) if kind is str else list(argument.list[0:argument.n]) if kind is list else kind(argument.number)
    return found


def _many(results, n, what):
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    if len(results) != n:
        raise InvalidValueError("%s gave %d results, and there are %d" % (what, len(results), n))
    return results


def _arguments(given, known):
    rows = []
    for name, value in given.items():
        row = {"name": _text(name)}
        if known[name] is str:
            row["text"] = _text(value)
        elif isinstance(value, (list, tuple)):
            _kept.append(ffi.new("int64_t[]", list(value)))
            row.update(list=_kept[-1], n=len(value))
        else:
            row["number"] = float(value)
        rows.append(row)
    return rows


def custom_op(name: str, inputs: dict[str, str], outputs: dict[str, str], kernel: str, reference: Callable[..., Any],
              gradient: Callable[..., Any] | None = None, attributes: dict[str, Any] | None = None, shape: Callable[..., Any] | None = None,
              items: Callable[..., int] | None = None, samples: Sequence[dict[str, Any]] = ()) -> Callable[..., Tensor]:
    """An op of your own, for `cleave.ops`, graphs and checks. Registered for the process.

        softplus = cleave.custom_op("softplus_beta", {"x": "f32|f16"}, {"y": "like x"}, attributes={"beta": 1.0}, kernel=TEXT,
                                    reference=lambda x, beta: numpy.log1p(numpy.exp(beta * x)) / beta,
                                    gradient=lambda x, y, dy, beta: ops.mul(dy, ops.sigmoid(ops.mul_scalar(x, value=beta))),
                                    samples=[{"x": (1003,)}, {"x": ((7, 5), -9, 9), "beta": 3.0}])

    inputs, outputs  {name: type}: `f32[N,*,D]`, `f32|f16`, `like x`, `int[N]?` (include/cleave/custom_op.h)
    kernel      OpenCL C 1.2: `__kernel void KERNEL(name)(outputs, inputs, int n, attributes)`, one work-item for each element of output 0
    reference   of arrays in f64, attributes by name: the outputs. It is the specification
    gradient    of tensors (inputs, then outputs, then what comes back for each output, or None), attributes by name: tensors for the inputs,
                None where there is none. None: not differentiable
    attributes  {name: default}, or its type where it must be given: bool, int, float, str, list of whole numbers
    shape       of the inputs' shapes, attributes by name: those of the outputs, where their types do not say them; ValueError tells a mistake
    items       the same: how many work-items. None: one for each element of output 0
    samples     cases for the check: {input: shape, or (shape, least, most), attribute: value}; at least one
    result      the function in `cleave.ops`

    Errors      InvalidValueError  something does not fit together;  StateError  there is such an op
    """
    attributes = dict(attributes or {})
    kinds = {n: _kind(n, v) for n, v in attributes.items()}
    if not samples:
        raise InvalidValueError("custom_op '%s' wants at least one sample, for the check" % name)
    op = ffi.new("clv_custom_op *")
    op.bytes, op.name = ffi.sizeof("clv_custom_op"), _text(name)
    op.inputs, op.outputs = (_list("clv_op_value", [{"name": _text(n), "type": _text(t)} for n, t in rows.items()]) for rows in (inputs, outputs))
    op.attributes = _list("clv_op_attribute", [_attribute(n, v) for n, v in attributes.items()])
    n_out = len(outputs)

    def run(use, given, made):
        arrays = []
        for i in range(use.n_in):
            here = _shape(getattr(use, "in")[i])
            n = math.prod(here)
            arrays.append(None if given[i] == NULL else numpy.frombuffer(ffi.buffer(given[i], 8 * n), numpy.float64).reshape(here) if n else
                          numpy.zeros(here))
        for i, y in enumerate(_many(reference(*arrays, **_values(use, kinds)), n_out, "the reference of '%s'" % name)):
            here = _shape(use.out[i])
            y = numpy.ascontiguousarray(y, numpy.float64)
            if y.shape != here:
                raise InvalidValueError("the reference of '%s' gave the shape %s, and output %d has %s" % (name, list(y.shape), i, list(here)))
            ffi.memmove(made[i], ffi.from_buffer(y), y.nbytes)

    def back(use, given, made, dy, dx):
        first = next(p for p in list(given[0:use.n_in]) + list(made[0:use.n_out]) if p != NULL)
        graph = Graph.of(first)
        tensors = [None if p == NULL else Tensor(graph, p) for ps, n in ((given, use.n_in), (made, use.n_out), (dy, use.n_out)) for p in ps[0:n]]
        for i, t in enumerate(_many(gradient(*tensors, **_values(use, kinds)), use.n_in, "the gradient of '%s'" % name)):
            dx[i] = NULL if t is None else t.pointer

    def infer(use, out):
        shapes = [_shape(t) for t in getattr(use, "in")[0:use.n_in]]
        try:
            told = shape(*shapes, **_values(use, kinds))
            told = told if told and isinstance(told[0], (tuple, list)) else [told]
            for i, dims in enumerate(_many(told, n_out, "the shape rule of '%s'" % name)):
                out[i].shape.rank = len(dims)
                out[i].shape.dims[0:len(dims)] = [int(n) for n in dims]
        except ValueError as error:
            return _text(str(error))
        return NULL

    variant = {"name": _text("plain"), "kernel": _text(kernel)}
    if items is not None:
        variant["items"] = _callback("clv_op_variant", "items", lambda use: int(items(
            *[_shape(t) for t in getattr(use, "in")[0:use.n_in]], **_values(use, kinds))), 0)
    op.variants = _list("clv_op_variant", [variant])
    op.reference = _callback("clv_custom_op", "reference", run)
    if gradient is not None:
        op.gradient = _callback("clv_custom_op", "gradient", back)
    if shape is not None:
        op.infer = _callback("clv_custom_op", "infer", infer, NULL)
    cases = []
    for k, sample in enumerate(samples):
        odd = [n for n in sample if n not in inputs and n not in attributes]
        if odd:
            raise InvalidValueError("sample %d of '%s' has '%s', which is neither input nor attribute" % (k, name, odd[0]))
        rows = []
        for n, kind in inputs.items():
            row = {}
            if n in sample:
                dims, least, most = sample[n] if len(sample[n]) == 3 and isinstance(sample[n][0], (tuple, list)) else (sample[n], 0, 0)
                row["dtype"] = dtype_value("int32" if kind.startswith(("int", "i32")) else "float32")
                row.update(lo=float(least), hi=float(most), shape={"rank": len(dims), "dims": list(dims)})
            rows.append(row)
        given = _arguments({n: v for n, v in sample.items() if n in attributes}, kinds)
        cases.append({"label": _text("sample %d" % k), "in": _list("clv_op_sample_input", rows), "n_in": len(rows),
                      "attributes": _list("clv_op_argument", given), "n_attributes": len(given), "quick": True, "no_gradient": gradient is None})
    op.samples = _list("clv_op_sample", cases)
    _kept.append(op)
    runtime().check(lib.clv_op_register(runtime().pointer, op))
    ops._add(lib.clv_op_find(op.name))
    return getattr(ops, name)


def check(*names: str, device: str | Device | None = None, quick: bool = False) -> int:
    """Check ops on a device: each sample by each variant against the reference, in a planned run with its gradient, and the gradient's formula
    against differences. Without names all ops, which takes minutes.

    result  how many cases passed
    Errors  AssertionError  with the sentences of those that failed
    """
    here, out, config = runtime(), ffi.new("clv_check_report **"), ffi.new("clv_check_config *")
    wanted = [ffi.new("char[]", n.encode()) for n in names]
    listed = ffi.new("char *[]", wanted + [NULL])
    config.ops = listed if names else NULL
    config.quick = quick
    here.check(lib.clv_check(here.pointer, Device(device)._pointer, config, out))
    try:
        report = out[0]
        told = [text(f.sentence) for f in report.failures[0:report.n_failures]]
        passed, cases = report.passed, report.cases
    finally:
        lib.clv_free(out[0])
    if told:
        raise AssertionError("%d of %d cases failed: %s" % (len(told), cases, "; ".join(told[:5])))
    return passed
