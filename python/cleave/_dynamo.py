# SPDX-License-Identifier: Apache-2.0
"""`torch.compile(model, backend="cleave")`: an unchanged training loop, whose graphs are computed by Cleave.

Values come from PyTorch's memory and go back there, parameters and gradients too, as the loop and its optimizer want them. A graph that is
asked for gradients is computed once for its results, and in the backward pass once more with its gradients: nothing is kept between. But where
its last backward pass began at one number alone, a loss within the graph, the next call computes the gradients of that number along with the results, and
the backward pass multiplies them. What dropout drops PyTorch draws, so a seed gives the same as in eager mode.
"""
import warnings

import torch
import torch._dynamo

from ._aten import ops
from ._library import Error, InvalidValueError, NULL, ffi, lib, make, runtime
from ._program import Program
from ._steps import array, pointer
from .device import Device
from .graph import Graph, Tensor

if hasattr(torch._dynamo.config, "allow_rnn"):  # else LSTM, GRU and RNN are computed by PyTorch, without a word
    torch._dynamo.config.allow_rnn = True


class _Pass:
    """A plan of its own session, from tensors of PyTorch to tensors."""

    def __init__(self, program, example, device, precision, gradients, loss=None):
        """gradients: indices of the inputs whose gradients are wanted; None: the results. loss: the result, a number, whose gradients come
        with all results; None: gradients alone, of what is given for each result."""
        self.graph = graph = Graph(training=True, precision=precision)
        self.masks, self.inputs, self.fed, self.written = [], [], [], {}
        names, counters = program.written(), program.counters()
        for i, x in enumerate(example):
            if not isinstance(x, torch.Tensor) or i in counters:
                self.inputs.append(x)
                continue
            if i in names:  # running statistics
                t = graph.buffer("buffer%d" % i, "float32", x.shape)
                self.written[i] = "buffer%d" % i
            else:
                t = graph.input("input%d" % i, array(x).dtype, x.shape)
                if gradients is not None and i in gradients:
                    lib.clv_requires_grad(t.pointer, True)
                self.fed.append((i, t))
            self.inputs.append(t)
        results = program.build(graph, self.inputs, None, None, gradients is not None, self.masks)
        self.given, self.outputs = [], []
        if gradients is None or loss is not None:
            self.outputs = [graph.output(y, "output%d" % i) for i, y in enumerate(results)]
        if loss is not None:
            self._differentiate(ops.reshape(results[loss], shape=[]), gradients)
        elif gradients is not None:
            self.given = [graph.input("given%d" % i, "float32", y.shape) for i, y in enumerate(results) if str(y.dtype) == "float32"]
            parts = [ops.sum(ops.mul(y, dy)) for y, dy in zip((y for y in results if str(y.dtype) == "float32"), self.given)]
            loss = parts[0]
            for part in parts[1:]:
                loss = ops.add(loss, part)
            self._differentiate(loss, gradients)
        graph.check()
        config, here = ffi.new("clv_plan_config *"), runtime()
        config.device, config.own_session = device._pointer, True
        self.plan = make("clv_plan", lambda out: lib.clv_plan_create(graph.pointer, config, out), lib.clv_plan_destroy, graph.handle)
        self.session = make("clv_session", lambda out: lib.clv_session_create(here.pointer, NULL, out), lib.clv_session_destroy, here.handle)
        self.run = make("clv_run", lambda out: lib.clv_run_create(self.session.pointer, self.plan.pointer, out), lib.clv_run_destroy,
                        self.session, self.plan)

    def _differentiate(self, loss, gradients):
        graph = self.graph
        graph.output(loss, "loss")
        lib.clv_backward(loss.pointer)
        graph.check()
        for i in gradients:
            gradient = lib.clv_gradient(self.inputs[i].pointer)
            self.outputs.append(None if gradient == NULL else graph.output(Tensor(graph, gradient), "gradient%d" % i))

    def __call__(self, args, masks, given=()):
        here, kept = runtime(), []

        def feed(tensor, x):
            kept.append(array(x))
            here.check(lib.clv_run_feed(self.run.pointer, tensor.pointer, *pointer(kept[-1])))

        for i, t in self.fed:
            feed(t, args[i])
        for (t, *_), mask in zip(self.masks, masks):
            feed(t, mask)
        for t, dy in zip(self.given, given):
            feed(t, torch.zeros(t.shape) if dy is None else dy)
        at = {i: lib.clv_session_find(self.session.pointer, name.encode()) for i, name in self.written.items()}
        for i, k in at.items():
            here.check(lib.clv_session_write(self.session.pointer, k, *pointer(array(args[i]))))
        ticket = ffi.new("int64_t *")
        here.check(lib.clv_run_step(self.run.pointer, ticket))
        results = []
        for t in self.outputs:
            y = None if t is None else torch.empty(t.shape, dtype=getattr(torch, str(t.dtype)))
            if t is not None:
                here.check(lib.clv_run_fetch(self.run.pointer, ticket[0], t.pointer, ffi.cast("void *", y.data_ptr()), t.n_bytes))
            results.append(y)
        found = {}
        for i, k in at.items():
            found[i] = torch.empty(args[i].shape)
            here.check(lib.clv_session_read(self.session.pointer, k, ffi.cast("void *", found[i].data_ptr()), found[i].numel() * 4))
        return results, found


class _Compiled:
    """A graph for inputs of fixed shapes."""

    def __init__(self, module, args, device, precision):
        self.program = Program(module, [x.detach() if isinstance(x, torch.Tensor) else x for x in args], open_batch=False)
        self.settings = (device, precision)
        self.wanted = [i for i, x in enumerate(args) if isinstance(x, torch.Tensor) and x.requires_grad]
        self.passes = {"forward": _Pass(self.program, args, device, precision, None)}
        self.places = [(t.shape, p, stride) for t, p, stride in self.passes["forward"].masks]
        self.dtypes = self.program.result_dtypes()
        self.loss = None  # the result whose gradients come with the results; -1: not any more

    def of(self, kind, args):
        """The pass of that kind, and no other that it replaces."""
        if kind not in self.passes:
            if kind == "both":
                self.passes.clear()
            self.passes[kind] = _Pass(self.program, args, *self.settings, None if kind == "forward" else self.wanted,
                                      self.loss if kind == "both" else None)
        return self.passes[kind]

    def began(self, given):
        """A backward pass began at these: at one number alone?"""
        at = [i for i, dy in enumerate(given) if dy is not None]
        alone = len(at) == 1 and given[at[0]].numel() == 1 and self.dtypes[at[0]] == torch.float32
        if self.loss is None:
            self.loss = at[0] if alone else -1
        elif self.loss >= 0 and (not alone or at[0] != self.loss):
            self.loss = -1
            self.passes.pop("both", None)
        return self.loss

    def draw(self):
        places = ((torch.empty_strided(shape, stride) if stride else torch.empty(shape), p) for shape, p, stride in self.places)
        return [torch.empty_like(place).bernoulli_(1 - p).div_(1 - p) for place, p in places]

    def __call__(self, *args):
        results = _Call.apply(self, torch.is_grad_enabled() and bool(self.wanted), *args)
        return results if isinstance(results, tuple) else (results,)


class _Call(torch.autograd.Function):
    @staticmethod
    def forward(ctx, compiled, differentiable, *args):
        masks = compiled.draw()
        ctx.set_materialize_grads(False)
        ctx.compiled, ctx.masks = compiled, masks
        changed = compiled.program.written() | set(compiled.program.counters())  # by other calls, too, before the backward pass
        ctx.others = [None if isinstance(x, torch.Tensor) and i not in changed else x.clone() if i in changed else x
                      for i, x in enumerate(args)]
        ctx.save_for_backward(*[x for i, x in enumerate(args) if ctx.others[i] is None])
        both = differentiable and compiled.loss is not None and compiled.loss >= 0
        results, written = compiled.of("both" if both else "forward", args)(args, masks)
        n = len(compiled.dtypes)
        results, ctx.gradients = results[:n], results[n:] if both else None
        for i, value in written.items():
            args[i].copy_(value)
        for i in compiled.program.counters():
            args[i].add_(1)
        ctx.mark_non_differentiable(*[r for r in results if not r.is_floating_point()])
        return tuple(r.to(d) for r, d in zip(results, compiled.dtypes))

    @staticmethod
    def backward(ctx, *given):
        compiled, saved = ctx.compiled, iter(ctx.saved_tensors)
        args = [next(saved) if x is None else x for x in ctx.others]
        loss = compiled.began(given)
        if ctx.gradients is not None and loss >= 0:
            gradients = [None if g is None else g * given[loss] for g in ctx.gradients]
        else:
            gradients, _ = compiled.of("backward", args)(args, ctx.masks, [dy for dy, d in zip(given, compiled.dtypes) if d.is_floating_point])
        found = [None] * len(args)
        for i, g in zip(compiled.wanted, gradients):
            found[i] = None if g is None else g.to(args[i].dtype)
        return (None, None, *found)


def backend(module, example, options=None):
    """Called by torch.compile. options: `device`, `precision`, and `fallback` (True): whether a graph that Cleave cannot compute is PyTorch's."""
    options = dict(options or {})
    fallback, precision = options.pop("fallback", True), options.pop("precision", "f32")
    device = Device(options.pop("device", None))
    if options:
        raise InvalidValueError("torch.compile(backend='cleave') has no option %s; it has device, precision, fallback" % ", ".join(options))
    kept = {}

    def call(*args):
        key = tuple((tuple(x.shape), x.dtype, x.requires_grad) if isinstance(x, torch.Tensor) else x for x in args)
        if key not in kept:
            try:
                kept[key] = _Compiled(module, args, device, precision)
            except Error as error:
                if not fallback:
                    raise
                n = sum(node.op in ("call_function", "call_method", "call_module") for node in module.graph.nodes)
                warnings.warn("cleave: a graph of %d ops is computed by PyTorch: %s" % (n, error), stacklevel=2)
                kept[key] = module
        return kept[key](*args)

    return call
