# SPDX-License-Identifier: Apache-2.0
"""A PyTorch module, computed and trained by Cleave."""
from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Mapping
from typing import Any

import numpy
import torch
from torch.utils import _pytree as pytree

from ._library import ArgumentError, DtypeError, InvalidValueError, ShapeError, UnsupportedError, lib
from ._program import Program
from ._steps import Plan, Steps, alone, array
from .device import Device

__all__ = ["compile", "Model", "Plan"]

_LOSSES = {
    "cross_entropy": torch.nn.functional.cross_entropy,
    "mse": torch.nn.functional.mse_loss,
    "l1": torch.nn.functional.l1_loss,
    "bce_with_logits": torch.nn.functional.binary_cross_entropy_with_logits,
    "nll": torch.nn.functional.nll_loss,
    "ctc": torch.nn.functional.ctc_loss,
}


def _is_array(x):
    """Lists of numbers are arrays, lists of tensors are not."""
    return isinstance(x, list) and bool(x) and not any(hasattr(leaf, "shape") or isinstance(leaf, Mapping) for leaf in pytree.tree_leaves(x))


class _Arguments:
    """How a module is called: which of its arguments, and of their parts, the arrays of a batch are."""

    def __init__(self, args, named):
        leaves, self.spec = pytree.tree_flatten((tuple(args), dict(named)), is_leaf=_is_array)
        self.constants = {i: x for i, x in enumerate(leaves) if x is None or isinstance(x, (bool, str))}
        self.arrays = [array(x) for i, x in enumerate(leaves) if i not in self.constants]
        self.plain = not named and not self.constants and len(leaves) == len(args)
        self.key = "" if self.plain else "%s %s" % (self.spec, self.constants)
        self.names = [] if self.plain else [n for n, x in named.items() for leaf in pytree.tree_leaves(x, is_leaf=_is_array) if hasattr(leaf, "shape")]

    def call(self, module, arrays):
        arrays, n = iter(arrays), len(self.arrays) + len(self.constants)
        args, named = pytree.tree_unflatten([self.constants[i] if i in self.constants else next(arrays) for i in range(n)], self.spec)
        return module(*args, **named)


def _own_loss(result):
    """Of a module that computes its loss itself, as those of transformers do if they are given labels."""
    loss = result
    if not isinstance(result, torch.Tensor):
        loss = result.get("loss") if hasattr(result, "get") else result[0]
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        raise InvalidValueError("without `loss` the module gives it: a number, the first of several results, or one under the name 'loss'; "
                                "is a batch without labels?")
    return loss


def _alone(loss):
    """Is it one of results alone, without targets?"""
    if loss is _own_loss:
        return True
    parameters = inspect.signature(loss.forward if isinstance(loss, torch.nn.Module) else loss).parameters.values()
    return len(parameters) == 1 and all(p.kind is not p.VAR_POSITIONAL for p in parameters)


class _Called(torch.nn.Module):
    """A module as it is called with tensors in a row; with its loss, if that is wanted."""

    def __init__(self, module, arguments, loss=None):
        super().__init__()
        self.module, self.arguments, self.loss = module, arguments, loss

    def forward(self, *args):
        n = len(self.arguments.arrays)
        result = self.arguments.call(self.module, args[:n])
        return result if self.loss is None else self.loss(result, *args[n:])


class Model(Steps):
    """What `cleave.compile` gives. A batch is (inputs..., targets...), or a dict: its inputs are those that forward() names, also for
    `example` and `predict`; the others are targets. Parameters live on the device; `state_dict()` reads them, and so does `to_torch()` into the module."""

    def __init__(self, module: torch.nn.Module, example: Any = None, loss: Any = "cross_entropy", **settings: Any) -> None:
        if not isinstance(module, torch.nn.Module):
            raise ArgumentError("cleave.compile wants a torch.nn.Module, and this is %r" % (module,))
        if isinstance(loss, str) and loss not in _LOSSES:
            raise InvalidValueError("there is no loss '%s'; there are %s, and any function or module of PyTorch's" % (loss, ", ".join(_LOSSES)))
        if loss is not None and not isinstance(loss, str) and not callable(loss):
            raise ArgumentError("a loss is a name, a function of results and targets, or None where the module gives it, and this is %r" % (loss,))
        if isinstance(loss, torch.nn.Module) and any(p.requires_grad for p in loss.parameters()):
            raise UnsupportedError("the loss has parameters of its own, which would not be trained: make them the module's")
        groups = getattr(settings.get("optimizer"), "param_groups", None)
        if groups and {id(p) for g in groups for p in g["params"]} != {id(p) for p in module.parameters() if p.requires_grad}:
            raise UnsupportedError("the optimizer has other parameters than the module trains: freeze the others by requires_grad_(False)")
        super().__init__(**settings)
        self.module, self.loss = module, _LOSSES[loss] if isinstance(loss, str) else _own_loss if loss is None else loss
        self._programs, self._loaded, self._called = {}, set(), None
        self.buffers = dict(module.named_buffers())
        kept = set(module.state_dict())
        self._kept_buffers = {n for n, b in self.buffers.items() if n in kept and b.is_floating_point()}
        first = {}
        self._names = {n: first.setdefault(id(p), n) for n, p in module.named_parameters(remove_duplicate=False)}
        self._n_given: int | None = None  # how many of a batch are inputs
        self._tracked = 0  # steps since the module's own counters
        if example is not None:
            self._step("predict", self._inputs(example if isinstance(example, (list, tuple)) else [example]))

    def __getstate__(self):
        loss = None if self.loss is _own_loss else next((n for n, f in _LOSSES.items() if f is self.loss), self.loss)
        return dict(super().__getstate__(), module=self.to_torch(), loss=loss)

    def __setstate__(self, state):
        n_inputs, history = state.pop("n_inputs"), state.pop("history")
        self.__init__(**state)
        self.n_inputs, self._n_given, self.history = n_inputs, n_inputs, history

    # ---- batches ----------------------------------------------------------------------------------------------------------

    def _named(self, batch):
        """Of a dict what forward() has arguments for, in their order, and the others, which are targets."""
        parameters = inspect.signature(self.module.forward).parameters
        named = {n: batch[n] for n in parameters if n in batch}
        if self.loss is _own_loss and any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            named.update({n: x for n, x in batch.items() if n not in named})
        return named, [x for n, x in batch.items() if n not in named]

    def _inputs(self, batch):
        """The arrays of inputs: positional, or one dict of them by the names of forward()'s arguments."""
        args, named = batch, {}
        if len(batch) == 1 and isinstance(batch[0], Mapping):
            given, _ = self._named(batch[0])
            if given:
                args, named = [], given
        if not named:
            self._n_given = len(args)
        self._called = _Arguments(args, named)
        self.n_inputs = len(self._called.arrays)
        return self._called.arrays

    def _batch(self, batch):
        """Arrays of inputs, then those of targets."""
        batch = list(batch)
        if len(batch) == 1 and isinstance(batch[0], Mapping):
            named, targets = self._named(batch[0])
            if not named or not targets and not _alone(self.loss):
                raise ArgumentError("of a dict the inputs must have the names of the arguments of forward(), and targets others; there are %s"
                                    % ", ".join(map(str, batch[0])))
            batch, n = [named] + targets, 1
        else:
            n = len(batch) if _alone(self.loss) else self._n_given or max(1, len(batch) - 1)
        return self._inputs(batch[:n]) + [array(x) for x in pytree.tree_leaves(tuple(batch[n:]), is_leaf=_is_array)]

    def _arrays(self, batch):
        return [batch] if isinstance(batch, Mapping) else super()._arrays(batch)

    def _key(self, kind, inputs):
        return super()._key(kind, inputs) + (self._called.key,)

    # ---- graphs -------------------------------------------------------------------------------------------------------

    def _program(self, kind, inputs):
        """inputs: anything with shape and dtype."""
        example = [torch.zeros(x.shape, dtype=getattr(torch, str(x.dtype))) for x in inputs]
        with _mode(self.module, kind != "predict"):
            module = self._wrapped(kind)
            for program in self._known(kind):
                if program.fits(module, inputs):
                    return program
            try:
                program = Program(module, example)
            except UnsupportedError as error:
                if error.__cause__ is not None and "depends on numbers of" not in str(error):  # PyTorch's own
                    self._explain(kind, inputs, error)
                raise
        self._known(kind).append(program)
        return program

    def _known(self, kind):
        """The programs of batches like this one."""
        return self._programs.setdefault(("predict" if kind == "predict" else "train", self._called.key), [])

    def _wrapped(self, kind):
        if kind == "predict":
            return self.module if self._called.plain else _Called(self.module, self._called)
        return _Called(self.module, self._called, self.loss)

    def _explain(self, kind, inputs, error):
        """PyTorch refused a batch: was it of a wrong shape or type? Raises that."""
        names = (self._called.names or [n for n in inspect.signature(self.module.forward).parameters])[:self.n_inputs]
        names += ["input%d" % i for i in range(len(names), self.n_inputs)]
        targets = len(inputs) - self.n_inputs
        names += ["target" if targets == 1 else "target%d" % i for i in range(targets)]
        told = ["'%s' has the shape %s" % (n, list(x.shape)) for n, x in zip(names, inputs)]
        for program in self._known(kind):
            for name, x, before in zip(names, inputs, program.shapes):
                if tuple(x.shape)[1:] != before[1:]:
                    raise ShapeError("'%s' has the shape %s, and it had %s before: %s" % (
                        name, list(x.shape), str(["N", *before[1:]] if program.open else list(before)).replace("'", ""), error)) from error
        for name, layer in self.module.named_modules():
            wanted = _wants(layer, inputs[0])
            if wanted:
                last = len(inputs[0].shape) > 3 and inputs[0].shape[-1] == getattr(layer, "in_channels", 0)
                raise wanted[0]("%s, and '%s' (%s) wants %s%s: %s" % (
                    told[0] if wanted[0] is ShapeError else "'%s' is of %s" % (names[0], inputs[0].dtype), name, type(layer).__name__, wanted[1],
                    "; its channels seem to be last: x.permute(0, %d, %s)" % (len(inputs[0].shape) - 1, ", ".join(
                        str(d) for d in range(1, len(inputs[0].shape) - 1))) if last else "", error)) from error
            if wanted is not None:
                break
        if len({x.shape[0] for x in inputs if len(x.shape)}) > 1:
            raise ShapeError("%s: are they of as many samples? %s" % ("; ".join(told), error)) from error

    def build(self, kind: str, graph: Any, inputs: list[Any]) -> list[Any]:
        trained, kept = dict(self.module.named_parameters()), {}

        def own(name):
            """A name of the module; None: what the loss holds, which is constant."""
            if kind == "predict" and self._called.plain:
                return name
            return name[len("module."):] if name.startswith("module.") else None

        def of_loss(name):
            at = self.loss
            for part in name[len("loss."):].split("."):
                at = getattr(at, part)
            return at.detach()

        def parameter(name):
            if own(name) is None:
                return of_loss(name)
            name = self._names[own(name)]
            if name not in kept:
                kept[name] = graph.parameter(name, trained[name].shape)
                if not trained[name].requires_grad:
                    lib.clv_requires_grad(kept[name].pointer, False)
            return kept[name]

        def buffer(name):
            if own(name) is None:
                return of_loss(name)
            name = own(name)
            if name.endswith("num_batches_tracked"):  # counted here
                return None
            if name not in self._kept_buffers:  # in no state_dict, or not of floats: a constant
                return self.buffers[name]
            if name not in kept:
                kept[name] = graph.buffer(name, "float32", self.buffers[name].shape)
            return kept[name]

        return self._program(kind, inputs).build(graph, inputs, parameter, buffer, kind != "predict")

    def _values(self):
        values = {n: p for n, p in self.module.named_parameters()}
        values.update({n: self.buffers[n] for n in self._kept_buffers})
        return values

    def _reserved(self):
        self._loaded |= self._write({n: v for n, v in self._values().items() if n not in self._loaded})

    # ---- use ------------------------------------------------------------------------------------------------------------

    @alone
    def predict(self, *inputs: Any) -> Any:
        """The module's results for a batch, as in evaluation: tensors of PyTorch for tensors, else arrays."""
        if not inputs:
            raise ArgumentError("predict wants the inputs of a batch")
        arrays = self._inputs(inputs)
        results = self._predict(arrays)
        if not any(isinstance(x, torch.Tensor) for x in pytree.tree_leaves([dict(x) if isinstance(x, Mapping) else x for x in inputs])):
            return results[0] if len(results) == 1 else results
        return self._unflatten(results, arrays)

    def _unflatten(self, results, arrays):
        """As the module gives them."""
        with _mode(self.module, False):
            program = next(p for p in self._known("predict") if p.fits(self._wrapped("predict"), arrays))
        return program.unflatten([torch.from_numpy(r) for r in results])

    def _begin(self, batch, lr=None):
        begun = super()._begin(batch, lr)
        self._tracked += 1
        return begun

    def _measure(self, results, targets):
        with torch.no_grad():
            return float(self.loss(self._unflatten(results, self._called.arrays), *(torch.from_numpy(t) for t in targets)))

    def state_dict(self) -> dict[str, torch.Tensor]:
        """As the module's: parameters and buffers as they are on the device now."""
        found, held = self.module.state_dict(), self._read()  # it has the versions of its modules, that loading asks for
        for name in found:
            at = self._names.get(name, name)
            if at in held:
                found[name] = torch.from_numpy(held[at].copy()).to(found[name].dtype)
            else:
                found[name] = found[name].detach().clone()
                if name.endswith("num_batches_tracked"):
                    found[name] += self._tracked
        return found

    def load_state_dict(self, state: Any, strict: bool = True) -> Any:
        """Take parameters and buffers, as torch.nn.Module.load_state_dict."""
        result = self.module.load_state_dict(state, strict=strict)
        self._tracked = 0
        self._write({n: v for n, v in self._values().items() if n in self._loaded})
        return result

    def to_torch(self) -> torch.nn.Module:
        """The module, with the parameters and buffers as they are on the device now."""
        self.module.load_state_dict(self.state_dict())
        self._tracked = 0
        return self.module

    def check(self, *batch: Any, tolerance: float = 1e-3) -> list[tuple[str, float]]:
        """Compare with PyTorch in f64 on the CPU: the loss and every gradient of a batch. Result: rows (name, norm of the difference over the
        norm), of the loss, of each gradient, and of all gradients as one. Raises AssertionError, with the worst rows, where one is above
        `tolerance`."""
        self.to_torch()
        loss, gradients = self.gradients(*batch)
        batch = [torch.from_numpy(x) for x in self._batch(batch)]
        batch = [x.double() if x.is_floating_point() else x for x in batch]
        module, loss_of = copy.deepcopy(self.module).double(), copy.deepcopy(self.loss)
        if not module.training:
            module.train()
        if isinstance(loss_of, torch.nn.Module):
            loss_of = loss_of.double()
        with torch.enable_grad():
            wanted = loss_of(self._called.call(module, batch[:self.n_inputs]), *batch[self.n_inputs:])
            wanted.backward()
        wanted = float(wanted.detach())
        rows = [("loss", abs(loss - wanted) / max(1e-12, abs(wanted)))]
        given = {n: p.grad.numpy() for n, p in module.named_parameters() if p.grad is not None and n in gradients}
        whole = float(numpy.sqrt(sum((g ** 2).sum() for g in given.values())))
        for name, g in given.items():  # a gradient of rounding alone, of a bias before a batch norm, is held against all of them
            rows.append((name, float(numpy.linalg.norm(gradients[name] - g)) / max(float(numpy.linalg.norm(g)), 1e-4 * whole, 1e-30)))
        apart = float(numpy.sqrt(sum(((gradients[n] - g) ** 2).sum() for n, g in given.items())))
        rows.append(("all gradients", apart / max(whole, 1e-30)))
        self.load_state_dict(self.module.state_dict())  # running statistics, too
        worse = sorted((r for r in rows if not r[1] <= tolerance), key=lambda r: -r[1])
        if worse:
            raise AssertionError("%d of %d differ from PyTorch by more than %g: %s" % (
                len(worse), len(rows), tolerance, ", ".join("%s %.2g" % r for r in worse[:5])))
        return rows


def _wants(layer, x):
    """Of a layer that sees the inputs first: (error, what it wants) if x is not so, () if it is; None: it tells nothing."""
    kind, shape = type(layer).__name__, x.shape
    floats = str(x.dtype) == "float32"
    if kind in ("Conv1d", "Conv2d", "Conv3d"):
        n = int(kind[4])
        right = len(shape) == n + 2 and shape[1] == layer.in_channels
        wanted = "[N, %d, %s]" % (layer.in_channels, ", ".join(("L",) if n == 1 else ("D", "H", "W")[3 - n:]))
    elif kind in ("Linear", "LSTM", "GRU", "RNN"):
        width = layer.in_features if kind == "Linear" else layer.input_size
        right, wanted = len(shape) and shape[-1] == width, "[..., %d]" % width
    elif kind == "Embedding":
        right, wanted, floats = True, "integers", not floats
    else:
        return None
    return (DtypeError, wanted if kind == "Embedding" else "floats") if not floats else () if right else (ShapeError, wanted)


@contextlib.contextmanager
def _mode(module, training):
    """In evaluation, or as it is in training: a part that was set to eval() stays so, but not the whole."""
    before = {m: m.training for m in module.modules()}
    if not (training and module.training):
        module.train(training)
    try:
        yield
    finally:
        for m, was in before.items():
            m.training = was


def compile(module: torch.nn.Module, example: Any = None, loss: Any = "cross_entropy", optimizer: Any = "adam", lr: float | None = None,
            device: str | Device | None = None, precision: str = "f32", place: str | None = None, recompute: str | None = None,
            seed: int = 0) -> Model:
    """A PyTorch module, to be computed and trained on an OpenCL device.

        model = cleave.compile(module, loss="cross_entropy", optimizer="adam", lr=1e-3)
        model.fit(loader, epochs=3)
        module = model.to_torch()

    module      torch.nn.Module. Its parameters are copied; `to_torch` writes them back
    example     a batch of inputs, to plan for at once; None: the first batch that comes
    device      a Device or its name, `gpu:0`, `cpu`; None: the best there is
    loss        a name (cross_entropy, mse, l1, bce_with_logits, nll, ctc), or a function or module of PyTorch of results and targets. None:
                the module gives it, as those of transformers do that are given labels
    optimizer   a name, an object of cleave.optim or of torch.optim, whose settings are taken
    lr          its rate; None: the optimizer's own
    precision   `f32`, `mixed`, `mixed-bf16`
    place       layers on devices, `layer1.*=gpu:0,*=cpu:0`; None: all on `device`
    recompute   layers whose results are computed again to save memory, or `auto`
    seed        of dropout

    Errors      UnsupportedError names every op of PyTorch that Cleave has not, with the lines of the module
    """
    return Model(module, example, loss, optimizer=optimizer, lr=lr, device=device, precision=precision, place=place, recompute=recompute, seed=seed)
