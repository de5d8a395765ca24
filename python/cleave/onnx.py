# SPDX-License-Identifier: Apache-2.0
"""Models of ONNX files: read and trained here, written from here, and ONNX Runtime on Cleave's devices.

    model = cleave.onnx.load("net.onnx", device="gpu")      # then as what cleave.compile gives: predict, fit, evaluate, plan, ...
    cleave.onnx.save(model, "trained.onnx")                 # any model of this package
    cleave.onnx.register(onnxruntime)                       # InferenceSession(..., cleave.onnx.session_options(onnxruntime))

The package onnx is wanted by `backend` alone, for onnx.backend.test.
"""
import os
import types

import numpy

from . import nn
from ._library import HERE, ArgumentError, InvalidValueError, NULL, UnsupportedError, ffi, lib, make, runtime, text
from ._steps import Steps, array
from .device import Device
from .graph import Graph, Tensor

__all__ = ["load", "save", "Model", "backend", "register", "session_options", "runtime_library"]

PROVIDER = "CleaveExecutionProvider"

# TensorProto.DataType; bfloat16 has no dtype in NumPy, and comes as f32
_TYPES = {1: numpy.float32, 2: numpy.uint8, 3: numpy.int8, 4: numpy.uint16, 5: numpy.int16, 6: numpy.int32, 7: numpy.int64, 9: numpy.bool_,
          10: numpy.float16, 11: numpy.float64, 12: numpy.uint32, 13: numpy.uint64, 16: numpy.float32}


class _Value:
    """What a file says of an input or a result."""

    def __init__(self, told):
        self.name, self.type = text(told.name), told.type
        self.shape = None if told.rank < 0 else tuple(n if n >= 0 else None for n in told.dims[0:told.rank])

    def __repr__(self):
        shape = "?" if self.shape is None else "[%s]" % ", ".join("?" if n is None else str(n) for n in self.shape)
        return "%s %s %s" % (self.name, numpy.dtype(_TYPES.get(self.type, object)).name, shape)


def _fed(x):
    """An array; one number stays without a dimension."""
    if str(getattr(x, "dtype", "")) == "bfloat16":
        x = x.astype(numpy.float32)
    return array(x).reshape(numpy.shape(x))


class Model(nn.Model):
    """A model of an ONNX file. Floats that are weights are its parameters, under the file's names; first values are the file's."""

    def __init__(self, source, loss="cross_entropy", **settings):
        super().__init__(self._layers, loss, **settings)
        self._given, self._weights = dict(settings, loss=loss), {}
        config = ffi.new("clv_onnx_config *")
        config.any_shape = True
        here = self._runtime.pointer
        if isinstance(source, (str, os.PathLike)):
            self._source = os.fspath(source)
            self._file = make("clv_onnx", lambda out: lib.clv_onnx_read(here, os.fsencode(source), config, out), lib.clv_onnx_destroy,
                              self._runtime.handle)
        else:
            if not isinstance(source, (bytes, bytearray, memoryview)) and not hasattr(source, "SerializeToString"):
                raise ArgumentError("a model of ONNX is a path, bytes or a ModelProto, and this is a %s" % type(source).__name__)
            self._source = bytes(source if isinstance(source, (bytes, bytearray, memoryview)) else source.SerializeToString())
            self._bytes = ffi.from_buffer(self._source)
            self._file = make("clv_onnx", lambda out: lib.clv_onnx_read_bytes(here, b"the model", self._bytes, len(self._bytes), config, out),
                              lib.clv_onnx_destroy, self._runtime.handle, self._bytes)
        info = lib.clv_onnx_info_get(self._file.pointer)
        if text(info.missing):
            raise UnsupportedError(text(info.missing))
        values = [_Value(lib.clv_onnx_value_get(self._file.pointer, i)) for i in range(info.n_inputs + info.n_targets)]
        self.inputs, self.results = values[:info.n_inputs], values[info.n_inputs:]
        self.producer, self.opset, self.n_inputs = text(info.producer), info.opset, info.n_inputs
        self._loaded = set()

    def _layers(self, *inputs):
        return self._append(inputs[0].graph, inputs)

    def _append(self, graph, inputs):
        given = ffi.new("clv_tensor *[]", [x.pointer for x in inputs] or [NULL])
        made = ffi.new("clv_tensor *[]", len(self.results))
        self._runtime.check(lib.clv_onnx_append(self._file.pointer, graph.pointer, given, len(inputs), made, len(self.results), NULL))
        return [Tensor(graph, y) for y in made]

    def build(self, kind, graph, inputs):
        return self._append(graph, []) if not inputs else super().build(kind, graph, inputs)

    def _reserved(self):
        """Parameters that are new have the file's values; those that were there keep theirs."""
        names = {name for _, name, _ in self._held()}
        if not names - self._loaded:
            return
        kept = dict(self._weights, **{n: x for n, x in self._read().items() if n in self._loaded} if self._loaded else {})
        self._runtime.check(lib.clv_onnx_weights_load(self._session.pointer, self._file.pointer))
        self._write(kept)
        self._loaded = names

    def __reduce__(self):
        """For pickle: the file or its bytes, settings, and the weights. The optimizer's state begins anew."""
        given = dict(self._given, device=self.device.name)
        return _restored, (self._source, given, self._read() if self._loaded else self._weights)

    def _arrays(self, batch):
        """A dict has inputs under the file's names; the others are targets, in order."""
        if not isinstance(batch, dict):
            return super()._arrays(batch)
        names = [v.name for v in self.inputs]
        missing = [n for n in names if n not in batch]
        if missing:
            raise ArgumentError("there is no input %s; the model has %s" % (", ".join(missing), ", ".join(map(str, self.inputs))))
        return [batch[n] for n in names] + [v for k, v in batch.items() if k not in names]

    def predict(self, *inputs):
        """Results for inputs in the file's order, or for a dict of them by name: an array, or a list of them, of the file's types."""
        if len(inputs) == 1 and isinstance(inputs[0], dict):
            inputs = self._arrays(inputs[0])
        if len(inputs) != len(self.inputs):
            raise ArgumentError("the model has %d inputs (%s), and was given %d" % (
                len(self.inputs), ", ".join(map(str, self.inputs)), len(inputs)))
        results = [y.astype(_TYPES.get(v.type, y.dtype), copy=False)
                   for y, v in zip(self._predict([_fed(x) for x in inputs]), self.results)]
        return results[0] if len(results) == 1 else results


def _restored(source, given, weights):
    model = Model(source, **given)
    model._weights = weights
    return model


def load(source, **settings):
    """A model of an ONNX file.

    source      a path, bytes, or a ModelProto of the package onnx
    settings    loss, device, optimizer, lr, precision, place, recompute, seed, as cleave.nn.Model's

    Errors      UnsupportedError names every op that Cleave has not; FileError, InvalidValueError
    """
    return Model(source, **settings)


# ---- writing ---------------------------------------------------------------------------------------------------------

class _Borrowed(Graph):
    """A graph that the library builds."""

    def __init__(self, pointer):
        self._runtime, self.training, self.handle = runtime(), False, types.SimpleNamespace(pointer=pointer)


def _ports(named, kept):
    """named: (name, shape of a sample, is it of integers)"""
    ports = ffi.new("clv_port[]", max(1, len(named)))
    for port, (name, shape, whole) in zip(ports, named):
        kept.append(ffi.new("char[]", name.encode()))
        port.name = kept[-1]
        port.dtype = lib.CLV_DTYPE_I32 if whole else lib.CLV_DTYPE_F32
        for d, n in enumerate(shape):
            port.dims[d] = n
    kept.append(ports)
    return ports


def _names(given, base, n):
    if given and len(given) != n:
        raise InvalidValueError("%d names for %d of them: %s" % (len(given), n, ", ".join(given)))
    return list(given) if given else [base] if n == 1 else ["%s%d" % (base, i) for i in range(n)]


def save(model, path, example=None, batch=None, input_names=None, output_names=None):
    """Write a model with its weights as it predicts, as an ONNX file: opset 18, f32.

    model           what cleave.compile, cleave.nn.Model or cleave.onnx.load gave
    example         a batch of inputs; None: of the shapes that it saw last
    batch           samples of a batch; None: any number
    input_names, output_names   None: a file's own, those of forward()'s arguments, else `x`; results are `output`. Several are numbered

    Errors  UnsupportedError names every op that ONNX has no node for; StateError: it saw no batch yet
    """
    if not isinstance(model, Steps):
        raise ArgumentError("what is written is a model of this package, and this is a %s" % type(model).__name__)
    if example is not None:
        model.predict(*(example if isinstance(example, (list, tuple)) else [example]))
    model._needs_weights("written")
    key = [k for k in model._steps if k[0] == "predict"] or list(model._steps)
    shapes = [(shape, numpy.dtype(dtype)) for shape, dtype in key[-1][1:1 + model.n_inputs]]
    if not shapes or any(not shape or dtype.name not in ("float32", "int32", "int64") for shape, dtype in shapes):
        raise UnsupportedError("inputs of f32 and integers with a batch can be written, and these are %s" % shapes)
    step = model._step("predict", [numpy.zeros(shape, dtype) for shape, dtype in shapes])
    outputs = [step.outputs[name] for name in step.outputs]
    file, forward = getattr(model, "inputs", None), getattr(getattr(model, "module", None), "forward", None)
    if input_names is None and file:
        input_names = [v.name for v in file]
    elif input_names is None and forward is not None:
        import inspect
        input_names = list(inspect.signature(forward).parameters)[:len(shapes)]
    if output_names is None and file:
        output_names = [v.name for v in model.results]
    kept, faults = [], []

    def build(given, made, _):
        try:
            graph = _Borrowed(lib.clv_tensor_info_get(given[0]).graph)
            for i, y in enumerate(model.build("predict", graph, [Tensor(graph, given[i]) for i in range(len(shapes))])):
                made[i] = y.pointer
        except BaseException as fault:  # nothing may leave through the library
            faults.append(fault)

    build = ffi.callback("void(clv_tensor *const *, clv_tensor **, const clv_model *)", build)
    described = ffi.new("clv_model *")
    described.name = kept_name = ffi.new("char[]", b"model")
    described.build_all = build
    described.inputs = _ports([(n, shape[1:], dtype.kind == "i") for n, (shape, dtype) in zip(_names(input_names, "x", len(shapes)), shapes)],
                              kept)
    described.targets = _ports([(n, y.shape[1:], False) for n, y in zip(_names(output_names, "output", len(outputs)), outputs)], kept)
    described.n_inputs, described.n_targets = len(shapes), len(outputs)
    config = ffi.new("clv_onnx_write_config *")
    config.batch = batch or 0
    status = lib.clv_onnx_write(model._session.pointer, described, config, os.fsencode(path))
    del kept_name
    if faults:
        raise faults[0]
    model._runtime.check(status)


# ---- ONNX Runtime ---------------------------------------------------------------------------------------------------------

def runtime_library():
    """The path of libcleave_ort.so: OrtApi's RegisterExecutionProviderLibrary takes it, in any language."""
    return os.environ.get("CLEAVE_ORT_LIBRARY") or os.path.join(HERE, "lib", "libcleave_ort.so")


def register(onnxruntime, name="cleave"):
    """Make ONNX Runtime (1.23 or newer; the module) know Cleave. Again is fine. Result: its devices for it."""
    def found():
        return [d for d in onnxruntime.get_ep_devices() if d.ep_name == PROVIDER]

    if not found():
        onnxruntime.register_execution_provider_library(name, runtime_library())
    return found()


def session_options(onnxruntime, device=None, options=None):
    """Options of a session that Cleave computes.

    device      `gpu:0`, `cpu`; None: the best there is
    options     SessionOptions to be added to; None: new ones
    """
    options = options or onnxruntime.SessionOptions()
    options.add_provider_for_devices(register(onnxruntime)[:1], {"device": str(device)} if device else {})
    return options


# ---- onnx.backend -----------------------------------------------------------------------------------------------------------

class _Prepared:
    """A model that is ready to run: what onnx.backend.base.BackendRep is."""

    def __init__(self, proto, device):
        self.proto, self.device, self.model = proto, device, None
        try:
            self.model = load(proto, device=device)
        except UnsupportedError as fault:
            if not _wants_numbers(fault):
                raise

    def run(self, inputs, **_):
        """Inputs in order, or by name. What a shape, or the course of a loop, is made of is built into the model."""
        there = {t.name for t in self.proto.graph.initializer}
        names = [v.name for v in self.proto.graph.input if v.name not in there]
        inputs = [numpy.asarray(inputs[n] if isinstance(inputs, dict) else x) for n, x in zip(names, inputs)]
        results = None
        if self.model:
            try:
                results = self.model.predict(*inputs)
            except UnsupportedError:
                pass
        if results is None:
            known = [x.dtype.kind in "iub" or x.size <= 8 for x in inputs]
            model = self._with({n: x for n, x, k in zip(names, inputs, known) if k})
            results = model.predict(*[x for x, k in zip(inputs, known) if not k])
        return tuple(results) if isinstance(results, list) else (results,)

    def _with(self, known):
        from onnx import numpy_helper
        proto = type(self.proto)()
        proto.CopyFrom(self.proto)
        for value in [v for v in proto.graph.input if v.name in known]:
            proto.graph.initializer.append(numpy_helper.from_array(known[value.name], value.name))
            proto.graph.input.remove(value)
        return load(proto, device=self.device)


def _wants_numbers(fault):
    """Are there ops that could be computed, if what they are fed with were known?"""
    return "of what is fed" in str(fault)


class backend:
    """A backend of the package onnx: onnx.backend.test.BackendTest(cleave.onnx.backend, __name__)."""

    @staticmethod
    def _spec(device):
        kind = device.split(":")[0]
        return {"CPU": "cpu|host", "CUDA": "gpu", "GPU": "gpu"}.get(kind, device)

    @classmethod
    def supports_device(cls, device):
        """CPU, CUDA (any GPU), or one of Cleave's own names."""
        try:
            return Device(cls._spec(device)).usable
        except LookupError:
            return False

    @staticmethod
    def is_compatible(model, device="CPU", **_):
        """Are all inputs and results tensors, and all ops there?"""
        if any(v.type.WhichOneof("value") != "tensor_type" for v in list(model.graph.input) + list(model.graph.output)):
            return False
        try:
            load(model, device="host")
        except UnsupportedError as fault:
            return _wants_numbers(fault)
        return True

    @classmethod
    def prepare(cls, model, device="CPU", **_):
        return _Prepared(model, cls._spec(device))

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **_):
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, **given):
        """A node alone; opset_version, or the newest that is read."""
        from onnx import TensorProto, helper
        inputs = [numpy.asarray(x) for x in inputs]
        names = [n for n in node.input if n]
        values = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in zip(names, inputs)]
        types = [helper.np_dtype_to_tensor_dtype(numpy.dtype(d)) for d, _ in outputs_info or []] or [TensorProto.UNDEFINED] * len(node.output)
        results = [helper.make_tensor_value_info(n, t, None) for n, t in zip(node.output, types) if n]
        opset = helper.make_opsetid(node.domain, given.get("opset_version", 21))
        return cls.run_model(helper.make_model(helper.make_graph([node], "node", values, results), opset_imports=[opset]), inputs, device)
