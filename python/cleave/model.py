# SPDX-License-Identifier: Apache-2.0
"""A PyTorch module, computed and trained by Cleave."""
from __future__ import annotations

import contextlib
import copy
import functools
import inspect
from typing import Any

import numpy
import torch

from ._library import ArgumentError, DtypeError, InvalidValueError, ShapeError, UnsupportedError, lib
from ._program import Program
from ._steps import Plan, Steps, alone, array
from .device import Device

__all__ = ["compile", "Model", "Plan"]

@torch.library.custom_op("cleave::ctc_loss", mutates_args=())
def _traced_ctc_loss(log_probs: torch.Tensor, targets: torch.Tensor, input_lengths: torch.Tensor, target_lengths: torch.Tensor, blank: int,
                     reduction: int, zero_infinity: bool) -> torch.Tensor:
    return torch.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)


@_traced_ctc_loss.register_fake
def _(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    return log_probs.new_empty(log_probs.shape[1:2] if reduction == 0 else ())


def ctc_loss(log_probs: torch.Tensor, targets: torch.Tensor, input_lengths: torch.Tensor, target_lengths: torch.Tensor, blank: int = 0,
             reduction: str = "mean", zero_infinity: bool = False) -> torch.Tensor:
    """torch.nn.functional.ctc_loss with lengths that are tensors, which torch.export does not trace."""
    args = (log_probs, targets, input_lengths, target_lengths, blank, ("none", "mean", "sum").index(reduction), zero_infinity)
    return (_traced_ctc_loss if torch.compiler.is_compiling() else torch.ctc_loss)(*args)


def _traced(loss):
    """The loss, or one like it that torch.export traces."""
    if isinstance(loss, torch.nn.CTCLoss):
        return functools.partial(ctc_loss, blank=loss.blank, reduction=loss.reduction, zero_infinity=loss.zero_infinity)
    return ctc_loss if loss is torch.nn.functional.ctc_loss else loss


_LOSSES = {
    "cross_entropy": torch.nn.functional.cross_entropy,
    "mse": torch.nn.functional.mse_loss,
    "l1": torch.nn.functional.l1_loss,
    "bce_with_logits": torch.nn.functional.binary_cross_entropy_with_logits,
    "nll": torch.nn.functional.nll_loss,
    "ctc": ctc_loss,
}


class _WithLoss(torch.nn.Module):
    def __init__(self, module, loss, n_inputs):
        super().__init__()
        self.module, self.loss, self.n_inputs = module, loss, n_inputs

    def forward(self, *args):
        return self.loss(self.module(*args[:self.n_inputs]), *args[self.n_inputs:])


class Model(Steps):
    """What `cleave.compile` gives. Parameters live on the device; `state_dict()` reads them, and so does `to_torch()` into the module."""

    def __init__(self, module: torch.nn.Module, example: Any = None, loss: Any = "cross_entropy", **settings: Any) -> None:
        if not isinstance(module, torch.nn.Module):
            raise ArgumentError("cleave.compile wants a torch.nn.Module, and this is %r" % (module,))
        if isinstance(loss, str) and loss not in _LOSSES:
            raise InvalidValueError("there is no loss '%s'; there are %s, and any function or module of PyTorch's" % (loss, ", ".join(_LOSSES)))
        if not isinstance(loss, str) and not callable(loss):
            raise ArgumentError("a loss is a name or a function of results and targets, and this is %r" % (loss,))
        if isinstance(loss, torch.nn.Module) and any(p.requires_grad for p in loss.parameters()):
            raise UnsupportedError("the loss has parameters of its own, which would not be trained: make them the module's")
        groups = getattr(settings.get("optimizer"), "param_groups", None)
        if groups and {id(p) for g in groups for p in g["params"]} != {id(p) for p in module.parameters() if p.requires_grad}:
            raise UnsupportedError("the optimizer has other parameters than the module trains: freeze the others by requires_grad_(False)")
        super().__init__(**settings)
        self.module, self.loss = module, _LOSSES[loss] if isinstance(loss, str) else _traced(loss)
        self._programs, self._loaded = {"train": [], "predict": []}, set()
        self.buffers = dict(module.named_buffers())
        kept = set(module.state_dict())
        self._kept_buffers = {n for n, b in self.buffers.items() if n in kept and b.is_floating_point()}
        first = {}
        self._names = {n: first.setdefault(id(p), n) for n, p in module.named_parameters(remove_duplicate=False)}
        self._tracked = 0  # steps since the module's own counters
        if example is not None:
            example = [array(x) for x in (example if isinstance(example, (list, tuple)) else [example])]
            self.n_inputs = len(example)
            self._step("predict", example)

    def __getstate__(self):
        loss = next((n for n, f in _LOSSES.items() if f is self.loss), self.loss)
        return dict(super().__getstate__(), module=self.to_torch(), loss=loss)

    def __setstate__(self, state):
        n_inputs, history = state.pop("n_inputs"), state.pop("history")
        self.__init__(**state)
        self.n_inputs, self.history = n_inputs, history

    # ---- graphs -------------------------------------------------------------------------------------------------------

    def _program(self, kind, inputs):
        """inputs: anything with shape and dtype."""
        example = [torch.zeros(x.shape, dtype=getattr(torch, str(x.dtype))) for x in inputs]
        with _mode(self.module, kind != "predict"):
            module = self.module if kind == "predict" else _WithLoss(self.module, self.loss, self.n_inputs)
            for program in self._programs["predict" if kind == "predict" else "train"]:
                if program.fits(module, inputs):
                    return program
            try:
                program = Program(module, example)
            except UnsupportedError as error:
                if error.__cause__ is not None:  # PyTorch's own
                    self._explain(kind, inputs, error)
                raise
        self._programs["predict" if kind == "predict" else "train"].append(program)
        return program

    def _explain(self, kind, inputs, error):
        """PyTorch refused a batch: was it of a wrong shape or type? Raises that."""
        names = [n for n in inspect.signature(self.module.forward).parameters][:self.n_inputs]
        names += ["input%d" % i for i in range(len(names), self.n_inputs)]
        targets = len(inputs) - self.n_inputs
        names += ["target" if targets == 1 else "target%d" % i for i in range(targets)]
        told = ["'%s' has the shape %s" % (n, list(x.shape)) for n, x in zip(names, inputs)]
        for program in self._programs["predict" if kind == "predict" else "train"]:
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
            if kind == "predict":
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
        if not isinstance(inputs[0], torch.Tensor):
            return super().predict(*inputs)
        self.n_inputs, arrays = len(inputs), [array(x) for x in inputs]
        results = [torch.from_numpy(r) for r in self._predict(arrays)]
        with _mode(self.module, False):
            program = next(p for p in self._programs["predict"] if p.fits(self.module, arrays))
        return program.unflatten(results)

    def _arrays(self, batch):
        """A dict's inputs are those that forward() names, in its order; the others are targets."""
        if not isinstance(batch, dict):
            return super()._arrays(batch)
        named = [n for n in inspect.signature(self.module.forward).parameters if n in batch]
        if not named or len(named) == len(batch):
            raise ArgumentError("of a dict the inputs must have the names of the arguments of forward(), and targets others; there are %s"
                            % ", ".join(map(str, batch)))
        self.n_inputs = len(named)
        return [batch[n] for n in named] + [v for k, v in batch.items() if k not in named]

    def _begin(self, batch, lr=None):
        begun = super()._begin(batch, lr)
        self._tracked += 1
        return begun

    def _measure(self, results, targets):
        with torch.no_grad():
            results = [torch.from_numpy(r) for r in results]
            return float(self.loss(results[0] if len(results) == 1 else results, *(torch.from_numpy(t) for t in targets)))

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
            wanted = loss_of(module(*batch[:self.n_inputs]), *batch[self.n_inputs:])
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
    loss        a name (cross_entropy, mse, l1, bce_with_logits, nll), or a function or module of PyTorch of results and targets
    optimizer   a name, an object of cleave.optim or of torch.optim, whose settings are taken
    lr          its rate; None: the optimizer's own
    precision   `f32`, `mixed`, `mixed-bf16`
    place       layers on devices, `layer1.*=gpu:0,*=cpu:0`; None: all on `device`
    recompute   layers whose results are computed again to save memory, or `auto`
    seed        of dropout

    Errors      UnsupportedError names every op of PyTorch that Cleave has not, with the lines of the module
    """
    return Model(module, example, loss, optimizer=optimizer, lr=lr, device=device, precision=precision, place=place, recompute=recompute, seed=seed)
