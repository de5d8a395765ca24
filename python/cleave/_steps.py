# SPDX-License-Identifier: Apache-2.0
"""What every model of this package does: plans for each kind of pass and shape, a session with the weights, steps, epochs."""
from __future__ import annotations

import functools
import os
import threading
import time
from typing import Any, Callable, Iterable, Sequence

import numpy

from . import _watch, optim
from ._library import (ArgumentError, DtypeError, Error, InvalidValueError, NULL, NotFiniteError, ShapeError, StateError, ffi, lib, make, runtime,
                       text)
from .device import CATEGORIES, Device
from .graph import Graph, Tensor


def from_dlpack(x: Any) -> numpy.ndarray[Any, Any]:
    """An array over the memory of anything with `__dlpack__` that lies on the CPU. Nothing is copied."""
    if not hasattr(x, "__dlpack__"):
        raise ArgumentError("from_dlpack wants something with __dlpack__, and this is a %s" % type(x).__name__)
    kind = x.__dlpack_device__()[0] if hasattr(x, "__dlpack_device__") else 1
    if kind not in (1, 3, 11):  # the CPU's memory, or pinned there for a GPU
        raise InvalidValueError("these numbers lie on another device (DLPack's number %d): copy them to the CPU first" % kind)
    try:
        return numpy.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError) as error:
        raise InvalidValueError("a %s has no memory to be read by DLPack: %s" % (type(x).__name__, error)) from error


def array(x):
    """What may come as a part of a batch, as an array in C order: NumPy's, PyTorch's, anything with __dlpack__, lists. Floats are f32. An array
    that is so already is itself."""
    if hasattr(x, "detach") and hasattr(x, "cpu"):  # a tensor of PyTorch
        x = x.detach().cpu()
        x = (x.float() if x.is_floating_point() else x).contiguous().numpy()
    elif not isinstance(x, numpy.ndarray) and hasattr(x, "__dlpack__"):
        x = from_dlpack(x)
    try:
        x = numpy.asarray(x)
    except ValueError as error:
        raise InvalidValueError("a part of a batch is no array: %s" % error) from error
    if x.dtype.kind not in "fiub":
        raise DtypeError("a batch is of numbers, and this is an array of %s" % x.dtype)
    if x.dtype.kind == "f" and x.dtype != numpy.float32:
        x = x.astype(numpy.float32)
    elif x.dtype.kind in "iu" and x.dtype.name not in ("int64", "int32", "uint8", "int8"):
        x = x.astype(numpy.int64)
    if not x.dtype.isnative:
        x = x.astype(x.dtype.newbyteorder("="))
    return numpy.asarray(x, order="C")


def alone(method):
    """A model is used by one thread of the process that made it."""
    @functools.wraps(method)
    def call(self, *args, **kwargs):
        if self._session.pid != os.getpid():
            raise StateError("this model was made before the fork: a child makes its own, with the weights of a file")
        if not self._busy.acquire(blocking=False):
            raise StateError("another thread uses this model: each wants a model of its own")
        try:
            return method(self, *args, **kwargs)
        finally:
            self._busy.release()
    return call


def pointer(x):
    return ffi.from_buffer(x) if x.size else NULL, x.nbytes


class Step:
    """One plan: the graph of a kind of pass (`train`, `gradients`, `predict`) for inputs of these shapes."""

    def __init__(self, model, kind, inputs, device=None, place=None):
        self.graph, self.outputs, self.run = Graph(training=kind != "predict", precision=model.precision), {}, None
        graph = self.graph
        self.inputs = [graph.input("input%d" % i, x.dtype, x.shape) for i, x in enumerate(inputs)]
        results = model.build(kind, graph, self.inputs)
        if kind == "predict":
            for i, y in enumerate(results):
                self.outputs["output%d" % i] = graph.output(y, "output%d" % i)
        else:
            if len(results) != 1 or results[0].n_bytes != 4:
                raise InvalidValueError("the loss must be one number, and it is %s" % results)
            self.outputs["loss"] = graph.output(results[0], "loss")
            lib.clv_backward(results[0].pointer)
            graph.check()
            if kind == "gradients":
                self._ask_for_gradients()
            else:
                self.config = model.optimizer.config()
                lib.clv_optimizer_add(graph.pointer, self.config)
                for buffer, value in graph.updates:
                    lib.clv_buffer_update(buffer.pointer, value.pointer)
        graph.check()
        config = ffi.new("clv_plan_config *")
        config.device = (device or model.device)._pointer
        texts = [ffi.new("char[]", t.encode()) if t else NULL for t in (place or model.place, model.recompute)]
        config.place, config.recompute = texts
        self.plan = make("clv_plan", lambda out: lib.clv_plan_create(graph.pointer, config, out), lib.clv_plan_destroy, graph.handle, texts,
                         config)

    def _ask_for_gradients(self):
        i = 0
        while True:
            parameter = lib.clv_parameter_get(self.graph.pointer, i)
            if parameter == NULL:
                return
            gradient = lib.clv_gradient(parameter)
            if gradient != NULL:
                name = text(lib.clv_tensor_info_get(parameter).name)
                self.outputs[name] = self.graph.output(Tensor(self.graph, gradient), name + ".gradient")
            i += 1

    def feed(self, inputs, lr=None, step=0):
        """Hand a step over; the ticket to fetch its results with."""
        here, run = runtime(), self.run.pointer
        for tensor, x in zip(self.inputs, inputs):
            here.check(lib.clv_run_feed(run, tensor.pointer, *pointer(x)))
        if lr is not None:
            values = ffi.new("float[]", lib.CLV_HYPER_VALUES)
            lib.clv_optimizer_hyper_values(self.graph.pointer, step, lr, values)
            here.check(lib.clv_run_feed(run, lib.clv_graph_info_get(self.graph.pointer).hyper, values, ffi.sizeof(values)))
        ticket = ffi.new("int64_t *")
        here.check(lib.clv_run_step(run, ticket))
        return ticket[0]

    def fetch(self, ticket, name):
        tensor = self.outputs[name]
        y = numpy.empty(tensor.shape, tensor.dtype)
        runtime().check(lib.clv_run_fetch(self.run.pointer, ticket, tensor.pointer, *pointer(y)))
        return y


class Steps:
    """A model: `build(kind, graph, inputs)` of a subclass appends it, and the loss for all kinds but `predict`."""

    def __init__(self, device: str | Device | None = None, optimizer: Any = "adam", lr: float | None = None, precision: str = "f32",
                 place: str | None = None, recompute: str | None = None, seed: int = 0) -> None:
        if precision not in ("f32", "mixed", "mixed-bf16"):
            raise InvalidValueError("precision is f32, mixed or mixed-bf16, and this is %r" % (precision,))
        for name, value in (("place", place), ("recompute", recompute)):
            if value is not None and not isinstance(value, str):
                raise ArgumentError("%s is a text, and this is %r" % (name, value))
        if not isinstance(seed, int) or not 0 <= seed < 2**64:
            raise InvalidValueError("the seed is a whole number from 0 to 2**64 - 1, and it is %r" % (seed,))
        self.device, self.precision, self.place, self.recompute = Device(device), precision, place, recompute
        self.optimizer = optim.of(optimizer, lr)
        self._settings = dict(device=self.device.name, optimizer=self.optimizer, precision=precision, place=place, recompute=recompute, seed=seed)
        self.n_inputs: int | None = None
        self.history: list[dict[str, Any]] = []
        self._steps: dict[Any, Step] = {}
        self._runtime, self._busy = runtime(), threading.RLock()
        config = ffi.new("clv_session_config *")
        config.seed = seed
        self._session = make("clv_session", lambda out: lib.clv_session_create(self._runtime.pointer, config, out),
                             lib.clv_session_destroy, self._runtime.handle)

    def build(self, kind: str, graph: Graph, inputs: list[Tensor]) -> list[Tensor]:
        """Results of `predict`, or the loss of `train` and `gradients`."""
        raise NotImplementedError

    def _reserved(self):
        """Called when the session may hold more than before."""

    # ---- plans ------------------------------------------------------------------------------------------------------

    def _key(self, kind, inputs):
        return (kind,) + tuple((x.shape, x.dtype.name) for x in inputs)

    def _arrays(self, batch):
        """A batch as a sequence."""
        if isinstance(batch, dict):
            raise ArgumentError("a dict has no order of inputs and targets: give (inputs..., targets...)")
        if hasattr(batch, "shape") or not hasattr(batch, "__len__"):
            raise ArgumentError("a batch is (inputs..., targets...), and the loader gave a %s%s" % (
                type(batch).__name__, " of the shape %s" % list(batch.shape) if hasattr(batch, "shape") else ""))
        return batch

    def _step(self, kind, inputs):
        if self._session.pointer == NULL:
            raise StateError("this model is closed")
        key = self._key(kind, inputs)
        if key not in self._steps:
            step = Step(self, kind, inputs)
            self._same_shapes(step)
            self._end_runs()  # a larger arena can be had only while nothing uses the smaller one
            steps = list(self._steps.values()) + [step]
            plans = ffi.new("clv_plan *[]", [s.plan.pointer for s in steps])
            self._runtime.check(lib.clv_session_reserve(self._session.pointer, plans, len(steps)))
            self._reserved()
            self._steps[key] = step
        step = self._steps[key]
        if step.run is None:
            step.run = make("clv_run", lambda out: lib.clv_run_create(self._session.pointer, step.plan.pointer, out), lib.clv_run_destroy,
                            self._session, step.plan)
        return step

    def _end_runs(self):
        for step in self._steps.values():
            if step.run is not None:
                step.run.close()
                step.run = None

    def _same_shapes(self, step):
        """Parameters of a graph are those that the session holds."""
        held, i = {name: shape for _, name, shape in self._held()}, 0
        while lib.clv_parameter_get(step.graph.pointer, i) != NULL:
            tensor, i = Tensor(step.graph, lib.clv_parameter_get(step.graph.pointer, i)), i + 1
            if held.get(tensor.name, tensor.shape) != tensor.shape:
                raise ShapeError("'%s' has the shape %s, and these inputs want %s" % (tensor.name, list(held[tensor.name]), list(tensor.shape)))

    @alone
    def plan(self, *batch: Any, device: str | Device | None = None, place: str | None = None) -> Plan:
        """What a training step of this batch takes, on this device or on any other, before it is taken. Arrays of the shapes will do."""
        return Plan(Step(self, "train", self._batch(batch), None if device is None else Device(device), place))

    # ---- steps ------------------------------------------------------------------------------------------------------

    def _batch(self, batch):
        batch = [array(x) for x in batch]
        self.n_inputs = self.n_inputs or max(1, len(batch) - 1)
        return batch

    def _predict(self, inputs):
        step = self._step("predict", inputs)
        ticket = step.feed(inputs)
        return [step.fetch(ticket, name) for name in step.outputs]

    @alone
    def predict(self, *inputs: Any) -> Any:
        """The model's results for a batch, as in evaluation: an array, or a list of them."""
        self.n_inputs = len(inputs)
        results = self._predict([array(x) for x in inputs])
        return results[0] if len(results) == 1 else results

    def __call__(self, *inputs: Any) -> Any:
        """predict."""
        return self.predict(*inputs)

    def _begin(self, batch, lr=None):
        step = self._step("train", batch)
        done = lib.clv_session_info_get(self._session.pointer).step
        return step, step.feed(batch, self.optimizer.lr if lr is None else lr, done + 1)

    @alone
    def step(self, *batch: Any, lr: float | None = None) -> float:
        """Train on a batch, inputs and then targets. Result: its loss, before the update. lr: of this step; None: the optimizer's."""
        step, ticket = self._begin(self._batch(batch), lr)
        return step.fetch(ticket, "loss").item()

    @property
    def n_steps(self) -> int:
        """Training steps done."""
        return lib.clv_session_info_get(self._session.pointer).step

    @alone
    def gradients(self, *batch: Any) -> tuple[float, dict[str, numpy.ndarray[Any, Any]]]:
        """(loss, {name: gradient}) of a batch; nothing is updated but running statistics."""
        batch = self._batch(batch)
        step = self._step("gradients", batch)
        ticket = step.feed(batch)
        found = {name: step.fetch(ticket, name) for name in step.outputs}
        return found.pop("loss").item(), found

    @alone
    def fit(self, loader: Iterable[Any], epochs: int = 1, validation: Iterable[Any] | None = None,
            schedule: Callable[[int], float] | None = None, callbacks: Sequence[Callable[[dict[str, Any]], Any]] = (),
            progress: bool = True) -> list[dict[str, Any]]:
        """Train.

        loader      batches (inputs..., targets...): a DataLoader, or anything that can be gone through several times
        validation  the same, for `evaluate` after each epoch
        schedule    from the model's step, counted from 0 over all trainings, to a factor of the rate; None: 1
        callbacks   each is called with {'epoch', 'step', 'loss', 'rate', 'seconds', 'validation'} after an epoch; True of one ends the
                    training. `cleave.callbacks` has some
        progress    tell of each epoch, and in a terminal or a notebook of the batches, too
        result      those dicts; `model.history` has those of all trainings
        Ctrl-C ends it after a step, with KeyboardInterrupt; what was learnt stays.
        """
        if not isinstance(epochs, int) or epochs < 1:
            raise InvalidValueError("epochs is a whole number of at least 1, and it is %r" % (epochs,))
        if not hasattr(loader, "__iter__"):
            raise ArgumentError("a loader gives batches when it is gone through, and this is a %s" % type(loader).__name__)
        for each in tuple(callbacks) + ((schedule,) if schedule is not None else ()):
            if not callable(each):
                raise ArgumentError("schedule and callbacks are functions, and this is %r" % (each,))
        history, done = [], self.n_steps
        for callback in callbacks:
            if hasattr(callback, "begin"):
                callback.begin(self)
        for epoch in range(1, epochs + 1):
            began, total, n, waiting = time.monotonic(), 0.0, 0, None
            line, batches = _watch.Progress(progress, epoch, epochs, loader), 0
            for batch in self._told(loader, line):
                batch = self._batch(self._arrays(batch))
                lr = self.optimizer.lr * (self._factor(schedule, done) if schedule else 1.0)
                if waiting and self._steps.get(self._key("train", batch)) is not waiting[0]:  # only the run used last keeps its steps
                    total, waiting = total + self._loss(waiting), None
                begun = self._begin(batch, lr) + (len(batch[0]),)
                done += 1
                if waiting:  # the step before: the device has this one to do meanwhile
                    total += self._loss(waiting)
                waiting = begun
                batches += 1
                if n:
                    line.batch(batches, total / n)
                n += begun[2]
            if not n:
                raise InvalidValueError("the loader gave no batch in epoch %d%s" % (
                    epoch, ": it can be gone through once" if epoch > 1 and hasattr(loader, "__next__") else ""))
            total += self._loss(waiting)
            told = {"epoch": epoch, "step": done, "loss": total / n, "rate": lr, "seconds": time.monotonic() - began,
                    "validation": None if validation is None else self.evaluate(validation)}
            if not numpy.isfinite(told["loss"]):
                raise NotFiniteError("the loss of epoch %d is %s: a lower rate than %g may help" % (epoch, told["loss"], self.optimizer.lr))
            history.append(told)
            self.history.append(told)
            line.end(told)
            if any([callback(told) for callback in callbacks]):
                break
        return history

    @staticmethod
    def _told(loader, line):
        """Its batches; the line is ended if that is by an exception."""
        try:
            yield from loader
        except BaseException:
            line.stopped()
            raise

    @staticmethod
    def _factor(schedule, step):
        factor = schedule(step)
        if not isinstance(factor, (int, float)) or not 0 <= factor < float("inf"):
            raise InvalidValueError("a schedule gives a factor of the rate, at least 0, and of step %d it is %r" % (step, factor))
        return factor

    @staticmethod
    def _loss(waiting):
        step, ticket, n = waiting
        return step.fetch(ticket, "loss").item() * n

    def _measure(self, results, targets):
        """The loss of results on the host."""
        raise NotImplementedError

    @alone
    def evaluate(self, loader: Iterable[Any]) -> dict[str, float]:
        """{'loss': ...} over all batches, and of classes {'accuracy': ...}."""
        total, right, n, labels = 0.0, 0, 0, 0
        for batch in loader:
            batch = self._batch(self._arrays(batch))
            results, targets = self._predict(batch[:self.n_inputs]), batch[self.n_inputs:]
            total += self._measure(results, targets) * len(batch[0])
            n += len(batch[0])
            if len(results) == 1 and len(targets) == 1 and targets[0].dtype.kind in "iu" and results[0].ndim == targets[0].ndim + 1:
                known = targets[0] >= 0
                right += int(((results[0].argmax(1) == targets[0]) & known).sum())
                labels += int(known.sum())
        if not n:
            raise InvalidValueError("there is no batch to evaluate")
        return dict({"loss": total / n}, **({"accuracy": right / labels} if labels else {}))

    # ---- watching -----------------------------------------------------------------------------------------------------

    @alone
    def profile(self, *batch: Any, steps: int = 10, train: bool = True, trace: str | os.PathLike[str] | None = None) -> _watch.Profile:
        """Where a step's time goes, by layer and by op: a Profile, that prints as a table. Does so many steps.

        batch  inputs and targets; with train=False inputs alone
        train  training steps, which train; False: predictions
        trace  a file, for ui.perfetto.dev; None: none
        """
        if train and len(batch) < 2 and not isinstance(batch[0] if batch else None, dict):
            raise ArgumentError("profile of a training wants inputs and targets; of a prediction give train=False")
        work = (lambda: self.step(*batch)) if train else lambda: self.predict(*batch)
        work()  # what is made at the first time is not measured
        return _watch.profile(self, work, steps, trace)

    def plot(self, *batch: Any, path: str | os.PathLike[str] | None = None) -> Any:
        """A figure of matplotlib: the losses of all trainings by step, and, if a batch is given, the bytes of its training step by layer.

        path  where to write it, `curves.png`; None: nowhere
        """
        if not self.history and not batch:
            raise StateError("there is nothing to plot yet: call fit, or give a batch")
        return _watch.plot(self.history, self.plan(*batch) if batch else None, path)

    # ---- copies -------------------------------------------------------------------------------------------------------

    def __getstate__(self):
        """For pickle: settings, what is computed and the weights. The optimizer's state stays: it begins anew."""
        return dict(self._settings, n_inputs=self.n_inputs, history=self.history)

    # ---- weights ------------------------------------------------------------------------------------------------------

    def _held(self):
        """(index, name, shape) of parameters and buffers in the session."""
        for i in range(lib.clv_session_info_get(self._session.pointer).n_tensors):
            tensor = lib.clv_session_get(self._session.pointer, i)
            if tensor.category == lib.CLV_PARAMETERS:
                yield i, text(tensor.name), tuple(tensor.shape.dims[0:tensor.shape.rank])

    @alone
    def _read(self):
        found = {}
        for i, name, shape in self._held():
            found[name] = numpy.empty(shape, numpy.float32)
            self._runtime.check(lib.clv_session_read(self._session.pointer, i, *pointer(found[name])))
        return found

    @alone
    def _write(self, values):
        written = set()
        for i, name, shape in self._held():
            if name in values:
                x = array(values[name])
                if x.shape != shape:
                    raise InvalidValueError("'%s' has the shape %s, and here it has %s" % (name, list(x.shape), list(shape)))
                self._runtime.check(lib.clv_session_write(self._session.pointer, i, *pointer(x)))
                written.add(name)
        return written

    def _needs_weights(self, what):
        if self._session.pointer == NULL:
            raise StateError("this model is closed")
        if not self._steps:
            raise StateError("no weights can be %s yet: a model holds them when it has seen a batch; call predict, or compile it with `example`"
                             % what)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and buffers as a safetensors file, under their names. Atomic."""
        self._needs_weights("saved")
        self._runtime.check(lib.clv_weights_save_texts(self._session.pointer, NULL, 0, os.fsencode(path)))

    def load(self, path: str | os.PathLike[str], without: str | None = None) -> None:
        """Read a safetensors file, or a checkpoint. without: patterns of what keeps its values, `fc.*`. The model must have been used
        once, or compiled with `example`."""
        self._needs_weights("loaded")
        self._runtime.check(lib.clv_weights_load_except(self._session.pointer, os.fsencode(path), without.encode() if without else NULL))

    @alone
    def to_onnx(self, path: str | os.PathLike[str], **settings: Any) -> None:
        """Write the model with its weights as an ONNX file: cleave.onnx.save."""
        from .onnx import save
        save(self, path, **settings)

    @alone
    def close(self) -> None:
        """Give up what is held on the device, now."""
        for step in self._steps.values():
            if step.run is not None:
                step.run.close()
            step.plan.close()
        self._steps.clear()
        self._session.close()


class Plan:
    """How a step is computed: bytes by device and category, nodes by layer. Exact, and nothing of it is taken."""

    def __init__(self, step: Any) -> None:
        self._step = step
        plan = step.plan.pointer
        info = lib.clv_plan_info_get(plan)
        self.devices = []
        plans = ffi.new("clv_plan *[]", [plan])
        for i in range(info.n_devices):
            device = lib.clv_plan_device_get(plan, i)
            memory = lib.clv_plans_memory(plans, 1, device)
            self.devices.append({"device": text(lib.clv_device_info_get(device).name), "bytes": memory.predicted_peak_bytes,
                                 "least_seconds": lib.clv_plan_device_info_get(plan, device).least_seconds,
                                 "categories": {n: memory.category[k] for k, n in enumerate(CATEGORIES)}})
        self.nodes = []
        for i in range(info.n_nodes):
            node = lib.clv_plan_node_get(plan, i)
            self.nodes.append({"layer": text(node.layer), "op": text(node.op), "variant": text(node.variant), "phase": text(node.phase),
                               "flops": node.flops, "bytes": node.bytes, "traffic": node.traffic, "launches": node.launches,
                               "shape": tuple(node.output_shape.dims[0:node.output_shape.rank])})

    @property
    def bytes(self) -> int:
        """Held on all devices at most."""
        return sum(d["bytes"] for d in self.devices)

    @property
    def flops(self) -> float:
        """Of one step."""
        return sum(n["flops"] for n in self.nodes)

    def fits(self) -> bool:
        """Would it fit on the devices now?"""
        plans = ffi.new("clv_plan *[]", [self._step.plan.pointer])
        return lib.clv_plans_fit(plans, 1) == lib.CLV_OK

    def __repr__(self) -> str:
        rows = ["%-14s %14s  %s" % ("device", "bytes", "of which")]
        for d in self.devices:
            rows.append("%-14s %14s  %s" % (d["device"], format(d["bytes"], ","), ", ".join(
                "%s %s" % (k, format(v, ",")) for k, v in d["categories"].items() if v)))
        rows.append("%d nodes, %.3g FLOPs a step" % (len(self.nodes), self.flops))
        return "\n".join(rows)
