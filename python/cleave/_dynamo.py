# SPDX-License-Identifier: Apache-2.0
"""`torch.compile(model, backend="cleave")`: an unchanged training loop, whose graphs are computed by Cleave.

Values come from PyTorch's memory and go back there, parameters and gradients too, as the loop and its optimizer want them. A graph that is
asked for gradients is one plan of forward and backward pass, whose step stops between the two: the loop fetches results, and feeds what its
loss makes of them (clv_input_late). Only where another forward pass of the same graph comes between is the first one done once more. What
dropout drops PyTorch draws, so a seed gives the same as in eager mode.
"""
import warnings
import weakref

import numpy
import torch
import torch._dynamo

from ._aten import cast, ops
from ._library import Error, InvalidValueError, NULL, UnsupportedError, ffi, lib, make, runtime
from ._program import Program
from ._steps import array, pointer
from .device import Device
from .graph import Graph, Tensor

if hasattr(torch._dynamo.config, "allow_rnn"):  # else LSTM, GRU and RNN are computed by PyTorch, without a word
    torch._dynamo.config.allow_rnn = True
MOST_MOVES = 8  # of parameters to other memory: then they are copied in each step


class _Memory:
    """For NumPy: memory of a session, which stays while an array over it does."""

    def __init__(self, session, pointer, shape):
        self.session = session
        self.__array_interface__ = {"data": (int(ffi.cast("intptr_t", pointer)), False), "shape": shape, "typestr": "<f4", "version": 3}


class _Seen:
    """A gradient that PyTorch has where the device made it, if by the next backward pass nobody has this one any more."""

    def __init__(self, memory):
        self.memory, self._had, self._kept = memory, lambda: None, None

    def keep(self):
        """What somebody has still is kept while the device makes the next."""
        self._kept = None if self._had() is None else self.memory.copy()

    def take(self):
        """The new one: a copy where somebody has the old one still, which is there again."""
        if self._kept is not None:
            new, self.memory[...], self._kept = self.memory.copy(), self._kept, None
            return torch.from_numpy(new)
        view = self.memory.view()
        self._had = weakref.ref(view)  # a tensor keeps the array that it was made of
        return torch.from_numpy(view)


def _shares(x):
    """Can the device, if it computes in the host's memory, use these values where they are?"""
    return isinstance(x, torch.nn.Parameter) and x.dtype == torch.float32 and x.is_contiguous() and x.numel() and x.data_ptr() % 64 == 0


class _Pass:
    """A plan of its own session, from tensors of PyTorch to tensors: results, and, with `wanted`, their gradients for those inputs. Then a step
    stops between the two, until it is told what the backward pass begins with."""

    def __init__(self, program, example, device, precision, wanted=None, share=True):
        self.where = {i: (x.data_ptr(), x.untyped_storage()) for i, x in enumerate(example) if share and _shares(x)}  # used where they are
        self.graph = graph = Graph(training=True, precision=precision)
        self.masks, inputs, self.fed, self.paused, statistics = [], [], [], None, []
        for i, x in enumerate(example):
            inputs.append(x)
            if isinstance(x, torch.Tensor) and i not in program.counters:
                if i in self.where:
                    inputs[i] = graph.buffer("input%d" % i, "float32", x.shape)
                else:
                    inputs[i] = graph.input("input%d" % i, array(x).dtype, x.shape)
                    self.fed.append((i, inputs[i]))
                lib.clv_requires_grad(inputs[i].pointer, wanted is not None and i in wanted)
        results = program.build(graph, inputs, None, None, wanted is not None, self.masks, statistics)
        results = [cast(y, "float32") if str(y.dtype) in ("float16", "uint16") else y for y in results]  # of mixed precision
        self.outputs = [graph.output(y, "output%d" % i) for i, y in enumerate(results)]
        self.statistics = [(next(i for i, x in enumerate(inputs) if x is running), graph.output(batch, "statistic%d" % i), momentum)
                           for i, (running, batch, momentum) in enumerate(statistics)]
        moved = {i for i, *_ in self.statistics}
        self.fed = [(i, t) for i, t in self.fed if i not in moved or program.readers[i] > 1]  # of the batch alone is normalised
        self.given, self.gradients = [], []
        if wanted is not None:
            self._differentiate([(i, y) for i, y in enumerate(results) if str(y.dtype) == "float32"], [inputs[i] for i in wanted])
        graph.check()
        config, here = ffi.new("clv_plan_config *"), runtime()
        config.device, config.own_session = device._pointer, True
        self.plan = make("clv_plan", lambda out: lib.clv_plan_create(graph.pointer, config, out), lib.clv_plan_destroy, graph.handle)
        self.session = make("clv_session", lambda out: lib.clv_session_create(here.pointer, NULL, out), lib.clv_session_destroy, here.handle)
        plans = ffi.new("clv_plan *[]", [self.plan.pointer])
        here.check(lib.clv_session_reserve(self.session.pointer, plans, 1))
        for i, (address, _) in self.where.items():
            at = lib.clv_session_find(self.session.pointer, b"input%d" % i)
            if at >= 0:  # else nothing reads it
                here.check(lib.clv_session_use(self.session.pointer, at, ffi.cast("void *", address), example[i].numel() * 4))
        self.run = make("clv_run", lambda out: lib.clv_run_create(self.session.pointer, self.plan.pointer, out), lib.clv_run_destroy,
                        self.session, self.plan)
        seen = [self._see(t) for _, t, _ in self.statistics]
        self.batch = [None if memory is None else torch.from_numpy(memory) for memory in seen]  # None: it is fetched
        self.seen, taken = {}, []  # gradients that can be handed over where they lie: each with memory of its own
        for i, t in enumerate(self.gradients):
            memory = None if t is None else self._see(t)
            begin = 0 if memory is None else memory.__array_interface__["data"][0]
            if begin and all(begin >= b or begin + t.n_bytes <= a for a, b in taken):
                taken.append((begin, begin + t.n_bytes))
                self.seen[i] = _Seen(memory)

    def _see(self, tensor):
        """An array over an output's memory, on a device that computes in the host's."""
        at = ffi.new("void **")
        if not self.where or not tensor.n_bytes or lib.clv_run_see(self.run.pointer, tensor.pointer, at) != lib.CLV_OK:
            return None
        return numpy.asarray(_Memory(self.session, at[0], tensor.shape))

    def stays(self, args):
        """Are the values that it uses where they were?"""
        return all(args[i].data_ptr() == address for i, (address, _) in self.where.items())

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
        if self.statistics:
            runtime().check(lib.clv_run_finish(self.run.pointer))
        for momentum in {momentum for *_, momentum in self.statistics}:
            moved = [(args[i], self._fetch(ticket, t) if batch is None else batch)
                     for batch, (i, t, m) in zip(self.batch, self.statistics) if m == momentum]
            torch._foreach_lerp_([x for x, _ in moved], [batch.to(x.dtype) for x, batch in moved], momentum)
        return results

    def finish(self, ticket, given):
        """The backward pass of the forward pass begun last. given: for each result; None: zeros."""
        for i, t in self.given:
            self._feed(t, torch.zeros(t.shape) if given[i] is None else given[i])
        for gradient in self.seen.values():
            gradient.keep()
        self.paused = None
        runtime().check(lib.clv_run_resume(self.run.pointer, ticket))
        runtime().check(lib.clv_run_finish(self.run.pointer))
        return [self.seen[i].take() if i in self.seen else None if t is None else self._fetch(ticket, t) for i, t in enumerate(self.gradients)]


class _Compiled:
    """A graph for inputs of fixed shapes."""

    def __init__(self, module, args, device, precision):
        self.program = Program(module, [x.detach() if isinstance(x, torch.Tensor) else x for x in args], open_batch=False)
        self.settings = (device, precision)
        self.wanted = [i for i, x in enumerate(args) if isinstance(x, torch.Tensor) and x.requires_grad]
        self.passes, self.dtypes, self.moves = {}, self.program.result_dtypes(), 0
        self.of(torch.is_grad_enabled(), args)

    def of(self, differentiable, args):
        """The pass with gradients, or the one without."""
        differentiable = differentiable and bool(self.wanted)
        if differentiable in self.passes and not self.passes[differentiable].stays(args):
            del self.passes[differentiable]
            self.moves += 1
        if differentiable not in self.passes:
            settings = (self.program, args, *self.settings, self.wanted if differentiable else None)
            made = None
            try:
                made = _Pass(*settings, self.moves < MOST_MOVES)
            except UnsupportedError:  # the device has memory of its own; what was taken there is free again behind this
                self.moves = MOST_MOVES
            self.passes[differentiable] = made or _Pass(*settings, False)
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
        changed = {i for i, *_ in work.statistics} | set(compiled.program.counters)  # by other calls, too; and the backward pass reads none
        ctx.others = [None if isinstance(x, torch.Tensor) and i not in changed else x for i, x in enumerate(args)]
        ctx.save_for_backward(*[x for x, other in zip(args, ctx.others) if other is None])
        ctx.ticket = work.begin(args, ctx.masks)
        results = work.results(ctx.ticket, args)
        for i in compiled.program.counters:
            args[i].add_(1)
        ctx.mark_non_differentiable(*[r for r in results if not r.is_floating_point()])
        return tuple(r.to(d) for r, d in zip(results, compiled.dtypes))

    @staticmethod
    def backward(ctx, *given):
        work, saved = ctx.work, iter(ctx.saved_tensors)
        args = [next(saved) if x is None else x for x in ctx.others]
        if work.paused != ctx.ticket:  # another forward pass has come since, or its backward pass was done already
            work = ctx.work = ctx.compiled.of(True, args)
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
    # PyTorch calls this anew for another dtype, requires_grad or fixed shape
    open_ = [i for i, x in enumerate(example) if not isinstance(x, torch.Tensor) or any(not isinstance(n, int) for n in x.shape)]

    def call(*args):
        key = tuple(tuple(args[i].shape) if isinstance(args[i], torch.Tensor) else args[i] for i in open_)
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
