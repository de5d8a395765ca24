# SPDX-License-Identifier: Apache-2.0
"""Optimizers, with PyTorch's names, defaults and formulas (include/cleave/optim.h). A rate that is None is that of PyTorch."""
from __future__ import annotations

import warnings

from ._library import ArgumentError, InvalidValueError, UnsupportedError, ffi, lib

TYPE_CHECKING = False
if TYPE_CHECKING:  # an import of it costs milliseconds
    from typing import Any


def _rate(lr):
    try:
        number = float(lr)
    except (TypeError, ValueError):
        number = float("nan")
    if not 0 <= number < float("inf"):
        raise InvalidValueError("the rate must be a number of at least 0, and it is %r" % (lr,))
    return number


def _betas(betas):
    if not isinstance(betas, (tuple, list)) or len(betas) != 2:
        raise ArgumentError("betas are two numbers, and this is %r" % (betas,))
    return {"beta1": betas[0], "beta2": betas[1]}


class Optimizer:
    """What `SGD`, `Adam` and `AdamW` are."""

    def __init__(self, lr: float, kind: int, clip_norm: float = 0.0, **fields: float) -> None:
        self.lr, self.kind, self.fields = _rate(lr), kind, dict(fields, clip_norm=clip_norm or 0.0)
        for name, value in self.fields.items():
            if not isinstance(value, (int, float)):
                raise ArgumentError("%s of %s is a number, and this is %r" % (name, type(self).__name__, value))

    def config(self) -> Any:
        """As the library takes it."""
        config = ffi.new("clv_optimizer_config *")
        config.kind = self.kind
        for name, value in self.fields.items():
            setattr(config, name, value)
        return config

    def __repr__(self) -> str:
        return "%s(lr=%g, %s)" % (type(self).__name__, self.lr, ", ".join("%s=%g" % f for f in self.fields.items()))


class SGD(Optimizer):
    """torch.optim.SGD. clip_norm: all gradients' norm is at most this; 0: whatever it is."""

    def __init__(self, lr: float = 1e-3, momentum: float = 0.0, dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False,
                 clip_norm: float = 0.0) -> None:
        super().__init__(lr, lib.CLV_SGD, clip_norm, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov)


class Adam(Optimizer):
    """torch.optim.Adam."""

    def __init__(self, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0,
                 clip_norm: float = 0.0) -> None:
        super().__init__(lr, lib.CLV_ADAM, clip_norm, **_betas(betas), eps=eps, weight_decay=weight_decay)


class AdamW(Optimizer):
    """torch.optim.AdamW."""

    def __init__(self, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.01,
                 clip_norm: float = 0.0) -> None:
        super().__init__(lr, lib.CLV_ADAMW, clip_norm, **_betas(betas), eps=eps, weight_decay=weight_decay or -1.0)


def of(optimizer: Any, lr: float | None = None) -> Optimizer:
    """An optimizer from its name, one of these classes' objects, or one of torch.optim's, whose settings are taken."""
    if isinstance(optimizer, Optimizer):
        found = optimizer
    elif isinstance(optimizer, str):
        classes = {"sgd": SGD, "adam": Adam, "adamw": AdamW, "momentum": lambda: SGD(momentum=0.9)}
        if optimizer.lower() not in classes:
            raise InvalidValueError("there is no optimizer '%s'; there are %s" % (optimizer, ", ".join(classes)))
        found = classes[optimizer.lower()]()
    elif hasattr(optimizer, "param_groups"):
        found = _of_torch(optimizer)
    else:
        raise ArgumentError("an optimizer is a name, one of cleave.optim or one of torch.optim, and this is %r" % (optimizer,))
    if lr is not None:
        found.lr = _rate(lr)
    return found


def _of_torch(optimizer):
    name, groups = type(optimizer).__name__, optimizer.param_groups
    wanted = {"SGD": (SGD, ("momentum", "dampening", "weight_decay", "nesterov")), "Adam": (Adam, ("betas", "eps", "weight_decay")),
              "AdamW": (AdamW, ("betas", "eps", "weight_decay"))}.get(name)
    if not wanted:
        raise UnsupportedError("Cleave has no optimizer like torch.optim's %s; there are SGD, Adam, AdamW" % name)
    odd = [k for k in ("amsgrad", "maximize", "decoupled_weight_decay") if groups[0].get(k) and not (k[0] == "d" and name == "AdamW")]
    if len(groups) > 1 or odd:
        raise UnsupportedError("torch.optim's %s has %s, which is not taken here" % (name, ", ".join(odd) or "several groups of parameters"))
    if optimizer.state:
        warnings.warn("cleave: the optimizer's settings are taken, and its state is not", stacklevel=4)
    return wanted[0](lr=float(groups[0]["lr"]), **{k: groups[0][k] for k in wanted[1]})
