# SPDX-License-Identifier: Apache-2.0
"""A PyTorch module, computed and trained by Cleave."""
import contextlib
import copy
import time

import numpy
import torch

from . import optim
from ._library import Handle, NULL, StateError, ffi, lib, make, runtime, text
from ._program import Program
from .device import CATEGORIES, Device
from .graph import Graph, Tensor

_LOSSES = {
    "cross_entropy": torch.nn.functional.cross_entropy,
    "mse": torch.nn.functional.mse_loss,
    "l1": torch.nn.functional.l1_loss,
    "bce_with_logits": torch.nn.functional.binary_cross_entropy_with_logits,
    "nll": torch.nn.functional.nll_loss,
}


class _WithLoss(torch.nn.Module):
    def __init__(self, module, loss, n_inputs):
        super().__init__()
        self.module, self.loss, self.n_inputs = module, loss, n_inputs

    def forward(self, *args):
        return self.loss(self.module(*args[:self.n_inputs]), *args[self.n_inputs:])


def _tensor(x):
    """What may come as a batch, as a tensor on the CPU."""
    if isinstance(x, torch.Tensor):
        return x.detach().to("cpu").contiguous()
    if hasattr(x, "__dlpack__") and not isinstance(x, numpy.ndarray):
        return torch.from_dlpack(x).to("cpu").contiguous()
    x = numpy.asarray(x)
    if x.dtype == numpy.float64:
        x = x.astype(numpy.float32)
    return torch.from_numpy(numpy.ascontiguousarray(x) if x.flags.writeable else x.copy(order="C"))


def _fed(x):
    """The same as it lies in a graph's input: floats as f32, odd integers as i64."""
    if x.is_floating_point():
        return x.float()
    return x if x.dtype in (torch.int64, torch.int32, torch.uint8, torch.int8, torch.bool) else x.long()


def _pointer(x):
    return ffi.cast("void *", x.data_ptr()), x.numel() * x.element_size()


class _Step:
    """One plan: the graph of a kind of pass for inputs of these shapes."""

    def __init__(self, model, kind, inputs, device=None, place=None):
        self.kind = kind
        graph = Graph(training=kind != "predict", precision=model.precision)
        self.graph, self.inputs, self.outputs, self.run = graph, [], {}, None
        program = model._program(kind, inputs)
        trained = dict(model.module.named_parameters())
        names = model._names
        kept = {}

        def of_loss(name):  # what the loss holds, as weights of classes, is constant
            at = model.loss
            for part in name[len("loss."):].split("."):
                at = getattr(at, part)
            return at.detach()

        def parameter(name):
            if kind != "predict":
                if name.startswith("loss."):
                    return of_loss(name)
                name = name[len("module."):]
            name = names[name]
            if name not in kept:
                kept[name] = graph.parameter(name, trained[name].shape)
                if not trained[name].requires_grad:
                    lib.clv_requires_grad(kept[name].pointer, False)
            return kept[name]

        def buffer(name):
            if kind != "predict":
                if name.startswith("loss."):
                    return of_loss(name)
                name = name[len("module."):]
            value = model.buffers[name]
            if name.endswith("num_batches_tracked"):
                return None
            if name not in model._kept_buffers:  # of no state_dict, or not of floats: a constant
                return value
            if name not in kept:
                kept[name] = graph.buffer(name, "float32", value.shape)
            return kept[name]

        for i, x in enumerate(inputs):
            self.inputs.append(graph.input("input%d" % i, x.dtype, x.shape))
        results = program.build(graph, self.inputs, parameter, buffer, kind != "predict")
        if kind == "predict":
            for i, y in enumerate(results):
                self.outputs["output%d" % i] = graph.output(y, "output%d" % i)
        else:
            if len(results) != 1 or results[0].n_bytes != 4:
                raise ValueError("the loss must be one number, and it is %s" % results)
            self.outputs["loss"] = graph.output(results[0], "loss")
            lib.clv_backward(results[0].pointer)
            graph.check()
            if kind == "gradients":
                for name in list(kept):
                    gradient = lib.clv_gradient(kept[name].pointer)
                    if gradient != NULL:
                        self.outputs[name] = graph.output(Tensor(graph, gradient), name + ".gradient")
            else:
                self.config = model.optimizer.config()
                lib.clv_optimizer_add(graph.pointer, self.config)
        graph.check()
        config = ffi.new("clv_plan_config *")
        config.device = (device or model.device)._pointer
        self.kept = [ffi.new("char[]", t.encode()) if t else NULL for t in (place or model.place, model.recompute)]
        config.place, config.recompute = self.kept
        self.plan = make("clv_plan", lambda out: lib.clv_plan_create(graph.pointer, config, out), lib.clv_plan_destroy, graph.handle,
                         self.kept, config)

    def feed(self, run, inputs, lr=None, step=0):
        here = runtime()
        for tensor, x in zip(self.inputs, inputs):
            here.check(lib.clv_run_feed(run.pointer, tensor.pointer, *_pointer(x)))
        if lr is not None:
            values = ffi.new("float[]", lib.CLV_HYPER_VALUES)
            lib.clv_optimizer_hyper_values(self.graph.pointer, step, lr, values)
            hyper = lib.clv_graph_info_get(self.graph.pointer).hyper
            here.check(lib.clv_run_feed(run.pointer, hyper, values, ffi.sizeof(values)))
        ticket = ffi.new("int64_t *")
        here.check(lib.clv_run_step(run.pointer, ticket))
        return ticket[0]

    def fetch(self, run, ticket, name):
        tensor = self.outputs[name]
        y = torch.empty(tensor.shape, dtype={"float32": torch.float32, "int32": torch.int32, "int64": torch.int64, "uint8": torch.uint8,
                                             "bool": torch.bool, "int8": torch.int8}[str(tensor.dtype)])
        runtime().check(lib.clv_run_fetch(run.pointer, ticket, tensor.pointer, *_pointer(y)))
        return y


class Model:
    """What `cleave.compile` gives. Parameters live on the device; `state_dict()` reads them, and so does `to_torch()` into the module."""

    def __init__(self, module, example=None, device=None, loss="cross_entropy", optimizer="adam", lr=None, precision="f32", place=None,
                 recompute=None, seed=0):
        self.module, self.device, self.precision = module, Device(device), precision
        self.place, self.recompute = place, recompute
        if isinstance(loss, str) and loss not in _LOSSES:
            raise ValueError("there is no loss '%s'; there are %s, and any function or module of PyTorch's" % (loss, ", ".join(_LOSSES)))
        self.loss = _LOSSES[loss] if isinstance(loss, str) else loss
        self.optimizer = optim.of(optimizer, lr)
        self._programs, self._steps, self.n_inputs = {"train": [], "predict": []}, {}, None
        self.buffers = dict(module.named_buffers())
        kept = set(module.state_dict())
        self._kept_buffers = {n for n, b in self.buffers.items() if n in kept and b.is_floating_point()}
        first = {}
        self._names = {n: first.setdefault(id(p), n) for n, p in module.named_parameters(remove_duplicate=False)}
        self._runtime = runtime()
        config = ffi.new("clv_session_config *")
        config.seed = seed
        self._session = make("clv_session", lambda out: lib.clv_session_create(self._runtime.pointer, config, out),
                             lib.clv_session_destroy, self._runtime.handle)
        self._loaded, self._tracked = False, 0
        if example is not None:
            self.predict(*(example if isinstance(example, (list, tuple)) else [example]), _only_plan=True)

    # ---- plans --------------------------------------------------------------------------------------------------------

    def _program(self, kind, inputs):
        kind = "predict" if kind == "predict" else "train"
        shapes = [x.shape for x in inputs]
        for program in self._programs[kind]:
            if program.fits(shapes):
                return program
        with _mode(self.module, kind == "train"):
            module = self.module if kind == "predict" else _WithLoss(self.module, self.loss, self.n_inputs).train()
            program = Program(module, inputs)
        self._programs[kind].append(program)
        return program

    @staticmethod
    def _key(kind, inputs):
        return (kind,) + tuple((tuple(x.shape), x.dtype) for x in inputs)

    def _step(self, kind, inputs):
        key = self._key(kind, inputs)
        if key not in self._steps:
            step = _Step(self, kind, inputs)
            for other in self._steps.values():  # a larger arena can be had only while nothing uses the smaller one
                other.run = None
            self._reserve(list(self._steps.values()) + [step])
            self._steps[key] = step
        step = self._steps[key]
        if step.run is None:
            step.run = make("clv_run", lambda out: lib.clv_run_create(self._session.pointer, step.plan.pointer, out), lib.clv_run_destroy,
                            self._session, step.plan)
        return step

    def _reserve(self, steps):
        plans = ffi.new("clv_plan *[]", [s.plan.pointer for s in steps])
        self._runtime.check(lib.clv_session_reserve(self._session.pointer, plans, len(steps)))
        known = set(self._loaded or ())
        values = {n: p for n, p in self.module.named_parameters()}
        values.update({n: self.buffers[n] for n in self._kept_buffers})
        self._loaded = known | self._write({n: v for n, v in values.items() if n not in known})

    def _held(self):
        info = lib.clv_session_info_get(self._session.pointer)
        for i in range(info.n_tensors):
            yield i, lib.clv_session_get(self._session.pointer, i)

    def _write(self, values):
        written = set()
        for i, held in self._held():
            name = text(held.name)
            if name in values:
                x = values[name].detach().to("cpu", torch.float32).contiguous()
                if tuple(x.shape) != tuple(held.shape.dims[0:held.shape.rank]):
                    raise ValueError("'%s' has the shape %s, and here it has %s" % (name, list(x.shape),
                                                                                    list(held.shape.dims[0:held.shape.rank])))
                self._runtime.check(lib.clv_session_write(self._session.pointer, i, *_pointer(x)))
                written.add(name)
        return written

    # ---- use ------------------------------------------------------------------------------------------------------------

    def predict(self, *inputs, _only_plan=False):
        """The module's results for a batch, as in evaluation: tensors of PyTorch for tensors, else NumPy arrays."""
        given = inputs
        inputs = [_fed(_tensor(x)) for x in inputs]
        self.n_inputs = len(inputs)
        step = self._step("predict", inputs)
        if _only_plan:
            return None
        ticket = step.feed(step.run, inputs)
        results = [step.fetch(step.run, ticket, name) for name in step.outputs]
        results = results if isinstance(given[0], torch.Tensor) else [r.numpy() for r in results]
        return results[0] if len(results) == 1 else results

    __call__ = predict

    def _batch(self, batch):
        batch = [_fed(_tensor(x)) for x in batch]
        self.n_inputs = self.n_inputs or max(1, len(batch) - 1)
        return batch

    def step(self, *batch, lr=None):
        """Train on a batch, inputs and then targets. Result: its loss, before the update."""
        step, ticket = self._begin(batch, lr)
        return float(step.fetch(step.run, ticket, "loss"))

    def _begin(self, batch, lr=None):
        batch = self._batch(batch)
        step = self._step("train", batch)
        done = lib.clv_session_info_get(self._session.pointer).step
        ticket = step.feed(step.run, batch, self.optimizer.lr if lr is None else lr, done + 1)
        self._tracked += 1
        return step, ticket

    def gradients(self, *batch):
        """(loss, {name: gradient}) of a batch; nothing is updated but running statistics."""
        batch = self._batch(batch)
        step = self._step("gradients", batch)
        ticket = step.feed(step.run, batch)
        found = {name: step.fetch(step.run, ticket, name) for name in step.outputs}
        return float(found.pop("loss")), found

    def fit(self, loader, epochs=1, validation=None, schedule=None, callbacks=(), progress=True):
        """Train.

        loader      batches (inputs..., targets...): a DataLoader, or anything that can be gone through several times
        validation  the same, for `evaluate` after each epoch
        schedule    from the step, counted from 0, to a factor of the rate; None: 1
        callbacks   each is called with {'epoch', 'loss', 'seconds', 'validation'} after an epoch; True of one ends the training
        result      those dicts
        """
        history, done = [], 0
        for epoch in range(1, epochs + 1):
            began, total, n, waiting = time.monotonic(), 0.0, 0, None
            for batch in loader:
                batch = list(batch.values()) if isinstance(batch, dict) else list(batch)
                lr = self.optimizer.lr * (schedule(done) if schedule else 1.0)
                batch = self._batch(batch)
                if waiting and self._steps.get(self._key("train", batch)) is not waiting[0]:  # only the run used last keeps its steps
                    total, waiting = total + self._loss(waiting), None
                begun = self._begin(batch, lr) + (len(batch[0]),)
                done += 1
                if waiting:  # the step before: the device has this one to do meanwhile
                    total += self._loss(waiting)
                waiting = begun
                n += begun[2]
            if not n:
                raise ValueError("the loader gave no batch in epoch %d" % epoch)
            total += self._loss(waiting)
            told = {"epoch": epoch, "loss": total / n, "seconds": time.monotonic() - began,
                    "validation": None if validation is None else self.evaluate(validation)}
            if not numpy.isfinite(told["loss"]):
                from ._library import NotFiniteError
                raise NotFiniteError("the loss of epoch %d is %s: a lower rate than %g may help" % (epoch, told["loss"], self.optimizer.lr))
            history.append(told)
            if progress:
                print("epoch %d/%d  loss %.4f%s  %.1f s" % (epoch, epochs, told["loss"], "".join(
                    "  %s %.4f" % v for v in (told["validation"] or {}).items()), told["seconds"]), flush=True)
            if any([callback(told) for callback in callbacks]):
                break
        return history

    @staticmethod
    def _loss(waiting):
        step, ticket, n = waiting
        return float(step.fetch(step.run, ticket, "loss")) * n

    def evaluate(self, loader):
        """{'loss': ...} over all batches, and of classes {'accuracy': ...}."""
        total, right, n, labels = 0.0, 0, 0, 0
        for batch in loader:
            batch = [_tensor(x) for x in (batch.values() if isinstance(batch, dict) else batch)]
            self.n_inputs = self.n_inputs or max(1, len(batch) - 1)
            results = self.predict(*batch[:self.n_inputs])
            targets = batch[self.n_inputs:]
            with torch.no_grad():
                total += float(self.loss(results, *targets)) * len(batch[0])
            n += len(batch[0])
            if isinstance(results, torch.Tensor) and len(targets) == 1 and not targets[0].is_floating_point() and results.ndim > 1:
                right += int((results.argmax(1) == targets[0]).sum())
                labels += targets[0].numel()
        return dict({"loss": total / max(n, 1)}, **({"accuracy": right / labels} if labels else {}))

    # ---- weights ------------------------------------------------------------------------------------------------------------

    def state_dict(self):
        """As the module's: parameters and buffers as they are on the device now."""
        found = self.module.state_dict()  # with the versions of its modules, that loading asks for
        for name in found:
            found[name] = found[name].detach().clone()
        held = {}
        for i, tensor in self._held():
            name = text(tensor.name)
            if name in self._names or name in self._kept_buffers:
                x = torch.empty(tuple(tensor.shape.dims[0:tensor.shape.rank]))
                self._runtime.check(lib.clv_session_read(self._session.pointer, i, *_pointer(x)))
                held[name] = x
        for name in found:
            at = self._names.get(name, name)
            if at in held:
                found[name] = held[at].to(found[name].dtype)
            elif name.endswith("num_batches_tracked"):
                found[name] += self._tracked
        return found

    def load_state_dict(self, state, strict=True):
        """Take parameters and buffers, as torch.nn.Module.load_state_dict."""
        result = self.module.load_state_dict(state, strict=strict)
        self._tracked = 0
        values = {n: p for n, p in self.module.named_parameters()}
        values.update({n: self.buffers[n] for n in self._kept_buffers})
        self._write({n: v for n, v in values.items() if n in (self._loaded or ())})
        return result

    def to_torch(self):
        """The module, with the parameters and buffers as they are on the device now."""
        self.module.load_state_dict(self.state_dict())
        self._tracked = 0
        return self.module

    # ---- what it takes ----------------------------------------------------------------------------------------------------

    def plan(self, *batch, device=None, place=None):
        """What a training step of this batch takes, on this device or on any other, before it is taken. Tensors of the shapes will do."""
        batch = self._batch(batch)
        return Plan(_Step(self, "train", batch, None if device is None else Device(device), place))

    def check(self, *batch, tolerance=1e-3):
        """Compare with PyTorch in f64 on the CPU: the loss and every gradient of a batch. Result: rows (name, norm of the difference over the
        norm), of the loss, of each gradient, and of all gradients as one. Raises AssertionError, with the worst rows, where one is above
        `tolerance`."""
        self.to_torch()
        loss, gradients = self.gradients(*batch)
        batch = [x.double() if x.is_floating_point() else x for x in self._batch(batch)]
        module, loss_of = copy.deepcopy(self.module).double().train(), copy.deepcopy(self.loss)
        if isinstance(loss_of, torch.nn.Module):
            loss_of = loss_of.double()
        with torch.enable_grad():
            wanted = loss_of(module(*batch[:self.n_inputs]), *batch[self.n_inputs:])
            wanted.backward()
        rows = [("loss", abs(loss - float(wanted.detach())) / max(1e-12, abs(float(wanted.detach()))))]
        given = {n: p.grad for n, p in module.named_parameters() if p.grad is not None and n in gradients}
        all_of_them = float(torch.stack([g.norm() for g in given.values()]).norm()) if given else 0.0
        for name, wanted in given.items():  # a gradient of rounding alone, of a bias before a batch norm, is held against all of them
            rows.append((name, float((gradients[name] - wanted).norm()) / max(float(wanted.norm()), 1e-4 * all_of_them, 1e-30)))
        apart = float(torch.stack([(gradients[n] - g).norm() for n, g in given.items()]).norm()) if given else 0.0
        rows.append(("all gradients", apart / max(all_of_them, 1e-30)))
        self.load_state_dict(self.module.state_dict())  # running statistics, too
        worse = sorted((r for r in rows if not r[1] <= tolerance), key=lambda r: -r[1])
        if worse:
            raise AssertionError("%d of %d differ from PyTorch by more than %g: %s" % (
                len(worse), len(rows), tolerance, ", ".join("%s %.2g" % r for r in worse[:5])))
        return rows

    def close(self):
        """Give up what is held on the device, now."""
        for step in self._steps.values():
            if step.run is not None:
                step.run.close()
            step.plan.close()
        self._steps.clear()
        self._session.close()


class Plan:
    """How a step is computed: bytes by device and category, nodes by layer. Exact, and nothing of it is taken."""

    def __init__(self, step):
        self._step = step
        plan = step.plan.pointer
        info = lib.clv_plan_info_get(plan)
        self.devices = []
        plans = ffi.new("clv_plan *[]", [plan])
        for i in range(info.n_devices):
            device = lib.clv_plan_device_get(plan, i)
            memory = lib.clv_plans_memory(plans, 1, device)
            least = lib.clv_plan_device_info_get(plan, device).least_seconds
            self.devices.append({"device": text(lib.clv_device_info_get(device).name), "bytes": memory.predicted_peak_bytes,
                                 "least_seconds": least,
                                 "categories": {n: memory.category[k] for k, n in enumerate(CATEGORIES)}})
        self.nodes = []
        for i in range(info.n_nodes):
            node = lib.clv_plan_node_get(plan, i)
            self.nodes.append({"layer": text(node.layer), "op": text(node.op), "variant": text(node.variant), "phase": text(node.phase),
                               "flops": node.flops, "bytes": node.bytes, "traffic": node.traffic, "launches": node.launches,
                               "shape": tuple(node.output_shape.dims[0:node.output_shape.rank])})

    @property
    def bytes(self):
        return sum(d["bytes"] for d in self.devices)

    @property
    def flops(self):
        return sum(n["flops"] for n in self.nodes)

    def fits(self):
        """Would it fit on the devices now?"""
        plans = ffi.new("clv_plan *[]", [self._step.plan.pointer])
        return lib.clv_plans_fit(plans, 1) == lib.CLV_OK

    def __repr__(self):
        rows = ["%-14s %14s  %s" % ("device", "bytes", "of which")]
        for d in self.devices:
            rows.append("%-14s %14s  %s" % (d["device"], format(d["bytes"], ","), ", ".join(
                "%s %s" % (k, format(v, ",")) for k, v in d["categories"].items() if v)))
        rows.append("%d nodes, %.3g FLOPs a step" % (len(self.nodes), self.flops))
        return "\n".join(rows)


@contextlib.contextmanager
def _mode(module, training):
    before = {m: m.training for m in module.modules()}
    module.train(training)
    try:
        yield
    finally:
        for m, was in before.items():
            m.training = was


def compile(module, example=None, **settings):
    """A PyTorch module, to be computed and trained on an OpenCL device.

        model = cleave.compile(module, loss="cross_entropy", optimizer="adam", lr=1e-3)
        model.fit(loader, epochs=3)
        module = model.to_torch()

    module      torch.nn.Module. Its parameters are copied; `to_torch` writes them back
    example     a batch of inputs, to plan for at once; None: the first batch that comes
    device      a Device or its name, `gpu:0`, `cpu`; None: the best there is
    loss        a name (cross_entropy, mse, l1, bce_with_logits, nll), or a function or module of PyTorch of results and targets
    optimizer   a name, an object of cleave.optim or of torch.optim, whose settings are taken
    lr          its rate; None: the optimizer's own
    precision   `f32`, `mixed`, `mixed-bf16`
    place       layers on devices, `layer1.*=gpu:0,*=cpu:0`; None: all on `device`
    recompute   layers whose results are computed again to save memory, or `auto`

    Errors      UnsupportedError names every op of PyTorch that Cleave has not, with the lines of the module
    """
    return Model(module, example, **settings)
