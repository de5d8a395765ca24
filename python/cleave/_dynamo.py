# SPDX-License-Identifier: Apache-2.0
"""`torch.compile(model, backend="cleave")`: an unchanged training loop, whose graphs are computed by Cleave.

Values come from PyTorch's memory and go back there, parameters and gradients too, as the loop and its optimizer want them. A graph that is
asked for gradients is one plan of forward and backward pass, whose step stops between the two: the loop fetches results, and feeds what its
loss makes of them (clv_input_late). Only where another forward pass of the same graph comes between is the first one done once more. What
dropout drops PyTorch draws, so a seed gives the same as in eager mode.
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
    """A plan of its own session, from tensors of PyTorch to tensors: results, and, with `wanted`, their gradients for those inputs. Then a step
    stops between the two, until it is told what the backward pass begins with."""

    def __init__(self, program, example, device, precision, wanted=None):
        self.graph = graph = Graph(training=True, precision=precision)
        self.masks, inputs, self.fed, self.paused, statistics = [], [], [], None, []
        for i, x in enumerate(example):
            inputs.append(x)
            if isinstance(x, torch.Tensor) and i not in program.counters():
                inputs[i] = graph.input("input%d" % i, array(x).dtype, x.shape)
                lib.clv_requires_grad(inputs[i].pointer, wanted is not None and i in wanted)
                self.fed.append((i, inputs[i]))
        results = program.build(graph, inputs, None, None, wanted is not None, self.masks, statistics)
        self.outputs = [graph.output(y, "output%d" % i) for i, y in enumerate(results)]
        self.statistics = [(next(i for i, x in enumerate(inputs) if x is running), graph.output(batch, "statistic%d" % i), momentum)
                           for i, (running, batch, momentum) in enumerate(statistics)]
        self.given, self.gradients = [], []
        if wanted is not None:
            self._differentiate([(i, y) for i, y in enumerate(results) if str(y.dtype) == "float32"], [inputs[i] for i in wanted])
        graph.check()
        config, here = ffi.new("clv_plan_config *"), runtime()
        config.device, config.own_session = device._pointer, True
        self.plan = make("clv_plan", lambda out: lib.clv_plan_create(graph.pointer, config, out), lib.clv_plan_destroy, graph.handle)
        self.session = make("clv_session", lambda out: lib.clv_session_create(here.pointer, NULL, out), lib.clv_session_destroy, here.handle)
        self.run = make("clv_run", lambda out: lib.clv_run_create(self.session.pointer, self.plan.pointer, out), lib.clv_run_destroy,
                        self.session, self.plan)

    def _differentiate(self, results, wanted):
        graph, loss = self.graph, None
        for i, y in results:
            dy = graph.input("given%d" % i, "float32", y.shape)
            lib.clv_input_late(dy.pointer)
            self.given.append((i, dy))
            part = ops.sum(ops.mul(y, dy))
            loss = part if loss is None else ops.add(loss, part)
        lib.clv_backward(loss.pointer)
        graph.check()
        for i, x in enumerate(wanted):
            gradient = lib.clv_gradient(x.pointer)
            self.gradients.append(None if gradient == NULL else graph.output(Tensor(graph, gradient), "gradient%d" % i))

    def _feed(self, tensor, x):
        x = array(x)
        runtime().check(lib.clv_run_feed(self.run.pointer, tensor.pointer, *pointer(x)))

    def _fetch(self, ticket, tensor):
        y = torch.empty(tensor.shape, dtype=getattr(torch, str(tensor.dtype)))
        runtime().check(lib.clv_run_fetch(self.run.pointer, ticket, tensor.pointer, ffi.cast("void *", y.data_ptr()), tensor.n_bytes))
        return y

    def begin(self, args, masks):
        """The forward pass: its number, which `finish` wants."""
        for i, t in self.fed:
            self._feed(t, args[i])
        for (t, *_), mask in zip(self.masks, masks):
            self._feed(t, mask)
        ticket = ffi.new("int64_t *")
        runtime().check(lib.clv_run_step(self.run.pointer, ticket))
        self.paused = ticket[0]
        return ticket[0]

    def results(self, ticket, args):
        """What it made; running statistics are moved towards the batch's."""
        results = [self._fetch(ticket, y) for y in self.outputs]
        for i, batch, momentum in self.statistics:
            args[i].lerp_(self._fetch(ticket, batch).to(args[i].dtype), momentum)
        return results

    def finish(self, ticket, given):
        """The backward pass of the forward pass begun last. given: for each result; None: zeros."""
        for i, t in self.given:
            self._feed(t, torch.zeros(t.shape) if given[i] is None else given[i])
        self.paused = None
        runtime().check(lib.clv_run_resume(self.run.pointer, ticket))
        return [None if t is None else self._fetch(ticket, t) for t in self.gradients]


class _Compiled:
    """A graph for inputs of fixed shapes."""

    def __init__(self, module, args, device, precision):
        self.program = Program(module, [x.detach() if isinstance(x, torch.Tensor) else x for x in args], open_batch=False)
        self.settings = (device, precision)
        self.wanted = [i for i, x in enumerate(args) if isinstance(x, torch.Tensor) and x.requires_grad]
        self.passes, self.dtypes = {}, self.program.result_dtypes()
        self.of(torch.is_grad_enabled(), args)

    def of(self, differentiable, args):
        """The pass with gradients, or the one without."""
        differentiable = differentiable and bool(self.wanted)
        if differentiable not in self.passes:
            self.passes[differentiable] = _Pass(self.program, args, *self.settings, self.wanted if differentiable else None)
        return self.passes[differentiable]

    @staticmethod
    def draw(masks):
        places = ((torch.empty_strided(t.shape, stride) if stride else torch.empty(t.shape), p) for t, p, stride in masks)
        return [torch.empty_like(place).bernoulli_(1 - p).div_(1 - p) for place, p in places]

    def __call__(self, *args):
        results = _Call.apply(self, torch.is_grad_enabled(), *args)
        return results if isinstance(results, tuple) else (results,)


class _Call(torch.autograd.Function):
    @staticmethod
    def forward(ctx, compiled, differentiable, *args):
        ctx.set_materialize_grads(False)
        work = ctx.work = compiled.of(differentiable, args)
        ctx.compiled, ctx.masks = compiled, compiled.draw(work.masks)
        changed = {i for i, *_ in work.statistics} | set(compiled.program.counters())  # by other calls, too; and the backward pass reads none
        ctx.others = [None if isinstance(x, torch.Tensor) and i not in changed else x for i, x in enumerate(args)]
        ctx.save_for_backward(*[x for x, other in zip(args, ctx.others) if other is None])
        ctx.ticket = work.begin(args, ctx.masks)
        results = work.results(ctx.ticket, args)
        for i in compiled.program.counters():
            args[i].add_(1)
        ctx.mark_non_differentiable(*[r for r in results if not r.is_floating_point()])
        return tuple(r.to(d) for r, d in zip(results, compiled.dtypes))

    @staticmethod
    def backward(ctx, *given):
        work, saved = ctx.work, iter(ctx.saved_tensors)
        args = [next(saved) if x is None else x for x in ctx.others]
        if work.paused != ctx.ticket:  # another forward pass has come since, or its backward pass was done already
            ctx.ticket = work.begin(args, ctx.masks)
        gradients = work.finish(ctx.ticket, given)
        found = [None] * len(args)
        for i, g in zip(ctx.compiled.wanted, gradients):
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
