# SPDX-License-Identifier: Apache-2.0
"""Models without PyTorch: layers under its names, with its layouts and first values.

    from cleave import nn
    model = nn.Model(nn.Sequential(nn.Flatten(), nn.Linear(128), nn.ReLU(), nn.Linear(10)), optimizer="adam", lr=1e-3)
    model.fit(batches, epochs=3)

A layer is a function of a tensor of the graph. How wide its input is it sees then, so only what comes out is said. A function of your own
with `cleave.ops` can stand wherever a layer can.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence, Union

import numpy

from ._library import InvalidValueError, NotFoundError, NULL, ffi, lib
from ._steps import Steps
from .graph import Tensor, ops


Ints = Union[int, Sequence[int]]
Function = Callable[[Tensor], Tensor]


class Layer:
    """forward(x): the layer's tensor. `self.child(name, layer, x)` calls a layer within."""

    def __call__(self, x: Tensor) -> Tensor:
        return self.forward(x)

    def forward(self, x: Tensor) -> Tensor:
        """What it computes."""
        raise NotImplementedError

    @staticmethod
    def child(name: str, layer: Function, x: Tensor) -> Tensor:
        """A layer within, whose parameters are `name.weight` and so on."""
        with x.graph.scope(name):
            return layer(x)


class Sequential(Layer):
    """One after the other; parameters are `0.weight`, `1.bias` and so on."""

    def __init__(self, *layers: Function) -> None:
        self.layers = layers

    def forward(self, x: Tensor) -> Tensor:
        for i, layer in enumerate(self.layers):
            x = self.child(str(i), layer, x)
        return x


class Residual(Layer):
    """x + layer(x)."""

    def __init__(self, layer: Function) -> None:
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return ops.add(x, self.child("layer", self.layer, x))


def _pair(x):
    return [x, x] if isinstance(x, int) else list(x)


def _make(x, function, *arguments):
    """A layer of nn.h. Its parameters are named by the scope alone, as PyTorch's are by their module."""
    return x.graph.tensor(function(x.pointer, *arguments))


class Linear(Layer):
    """torch.nn.Linear, of what is last."""

    def __init__(self, out_features: int, bias: bool = True) -> None:
        self.out_features, self.bias = out_features, bias

    def forward(self, x: Tensor) -> Tensor:
        bound = x.shape[-1] ** -0.5
        weight = x.graph.parameter("weight", [self.out_features, x.shape[-1]], uniform=bound)
        return ops.linear(x, weight, x.graph.parameter("bias", [self.out_features], uniform=bound) if self.bias else None)


class Conv2d(Layer):
    """torch.nn.Conv2d."""

    def __init__(self, out_channels: int, kernel_size: Ints, stride: Ints = 1, padding: Ints = 0, dilation: Ints = 1, groups: int = 1,
                 bias: bool = True) -> None:
        self.out_channels, self.kernel, self.bias = out_channels, _pair(kernel_size), bias
        self.given = dict(stride=_pair(stride), padding=_pair(padding), dilation=_pair(dilation), groups=groups)

    def forward(self, x: Tensor) -> Tensor:
        shape = [self.out_channels, x.shape[1] // self.given["groups"]] + self.kernel
        bound = float(numpy.prod(shape[1:])) ** -0.5
        weight = x.graph.parameter("weight", shape, uniform=bound)
        return ops.conv2d(x, weight, x.graph.parameter("bias", shape[:1], uniform=bound) if self.bias else None, **self.given)


class BatchNorm(Layer):
    """BatchNorm1d, 2d and 3d: of [N, C, ...]."""

    def __init__(self, momentum: float = 0.1, eps: float = 1e-5) -> None:
        self.momentum, self.eps = momentum, eps

    def forward(self, x: Tensor) -> Tensor:
        n = [x.shape[1]]
        graph = x.graph
        return ops.batch_norm(x, graph.parameter("weight", n, value=1), graph.parameter("bias", n), graph.buffer("running_mean", "float32", n),
                              graph.buffer("running_var", "float32", n, value=1), training=graph.training, momentum=self.momentum,
                              eps=self.eps)


class LayerNorm(Layer):
    """torch.nn.LayerNorm over the last dimension."""

    def __init__(self, eps: float = 1e-5) -> None:
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return ops.layer_norm(x, x.graph.parameter("weight", [x.shape[-1]], value=1), x.graph.parameter("bias", [x.shape[-1]]), eps=self.eps)


class Embedding(Layer):
    """torch.nn.Embedding: a row for each index."""

    def __init__(self, num_embeddings: int, embedding_dim: int) -> None:
        self.shape = [num_embeddings, embedding_dim]

    def forward(self, x: Tensor) -> Tensor:
        return ops.embedding(x.graph.parameter("weight", self.shape, normal=1), x)


class _Recurrent(Layer):
    def __init__(self, hidden_size: int, num_layers: int = 1, bidirectional: bool = False, dropout: float = 0.0) -> None:
        self.hidden, self.given = hidden_size, dict(layers=num_layers, bidirectional=bidirectional, dropout=dropout)

    def forward(self, x: Tensor) -> Tensor:
        config = ffi.new("clv_recurrent_config *", dict(self.given, batch_first=True))
        return _make(x, getattr(lib, "clv_nn_" + self.kind), NULL, b"rnn", self.hidden, config, NULL)


class LSTM(_Recurrent):
    """Of [N, T, F]: [N, T, hidden_size], or twice as wide. Parameters are under `rnn.`."""
    kind = "lstm"


class GRU(_Recurrent):
    """Of [N, T, F]: [N, T, hidden_size], or twice as wide. Parameters are under `rnn.`."""
    kind = "gru"


class Dropout(Layer):
    """torch.nn.Dropout; nothing in evaluation."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return ops.dropout(x, p=self.p) if x.graph.training else x


class MaxPool2d(Layer):
    """torch.nn.MaxPool2d."""

    def __init__(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0) -> None:
        self.given = dict(kernel=_pair(kernel_size), stride=_pair(stride or kernel_size), padding=_pair(padding))

    def forward(self, x: Tensor) -> Tensor:
        return ops.max_pool2d(x, **self.given)


class AvgPool2d(MaxPool2d):
    """torch.nn.AvgPool2d."""

    def forward(self, x: Tensor) -> Tensor:
        return ops.avg_pool2d(x, **self.given)


class GlobalAvgPool2d(Layer):
    """[N, C, H, W] to the means [N, C]."""

    def forward(self, x: Tensor) -> Tensor:
        return ops.flatten(ops.global_avg_pool2d(x), start_axis=1)


class Flatten(Layer):
    """[N, ...] to [N, numbers]."""

    def forward(self, x: Tensor) -> Tensor:
        return ops.flatten(x, start_axis=1)


class _Plain(Layer):
    """An op without settings."""


def _function(name: str, op: str, **fixed: Any) -> type[_Plain]:
    return type(name, (_Plain,), {"forward": lambda self, x: getattr(ops, op)(x, **fixed), "__module__": __name__,
                                 "__doc__": "ops.%s." % op})


ReLU, GELU, SiLU, Tanh, Sigmoid, Softmax, LeakyReLU, Hardswish = (
    _function(*names) for names in (("ReLU", "relu"), ("GELU", "gelu"), ("SiLU", "silu"), ("Tanh", "tanh"), ("Sigmoid", "sigmoid"),
                                    ("Softmax", "softmax"), ("LeakyReLU", "leaky_relu"), ("Hardswish", "hardswish")))


# ---- losses: on tensors of a graph, and the same on the host, for evaluation ------------------------------------------

def _logs(x):
    x = x - x.max(1, keepdims=True)
    return x - numpy.log(numpy.exp(x).sum(1, keepdims=True))


def _cross_entropy(x, y):
    if y.dtype.kind == "f":
        return float(-(y * _logs(x)).sum(1).mean())
    return float(-numpy.take_along_axis(_logs(x), y[:, None].astype(numpy.int64), 1).mean())


def _bce(x, y):
    return float((numpy.maximum(x, 0) - x * y + numpy.log1p(numpy.exp(-numpy.abs(x)))).mean())


def _bce_of_graph(x, y):
    both = ops.add(ops.mul(y, ops.logsigmoid(x)), ops.mul(ops.add_scalar(ops.neg(y), value=1), ops.logsigmoid(ops.neg(x))))
    return ops.neg(ops.mean(both))


LOSSES = {
    "cross_entropy": (lambda x, y: ops.cross_entropy(x, y), _cross_entropy),
    "mse": (lambda x, y: ops.mse_loss(x, y), lambda x, y: float(((x - y) ** 2).mean())),
    "bce_with_logits": (_bce_of_graph, _bce),
}


class Model(Steps):
    """Layers with a loss and an optimizer, on a device.

    layers    a Layer, or any function of tensors of the graph, of several for several inputs
    loss      a name of LOSSES, or two functions: of results and targets in the graph, and of arrays
    The others are cleave.compile's.
    """

    def __init__(self, layers: Callable[..., Any], loss: Any = "cross_entropy", optimizer: Any = "adam", lr: float | None = None,
                 device: Any = None, precision: str = "f32", place: str | None = None, recompute: str | None = None, seed: int = 0) -> None:
        if isinstance(loss, str) and loss not in LOSSES:
            raise InvalidValueError("there is no loss '%s'; there are %s, or two functions of results and targets" % (loss, ", ".join(LOSSES)))
        super().__init__(device, optimizer, lr, precision, place, recompute, seed)
        self._weights: dict[str, Any] = {}  # that a session of no parameters yet has not taken
        self.layers, self.loss = layers, LOSSES[loss] if isinstance(loss, str) else loss

    def __getstate__(self):
        loss = next((n for n, f in LOSSES.items() if f is self.loss), self.loss)
        return dict(super().__getstate__(), layers=self.layers, loss=loss, weights=self._read() or self._weights)

    def __setstate__(self, state):
        n_inputs, history, weights = (state.pop(k) for k in ("n_inputs", "history", "weights"))
        self.__init__(**state)
        self.n_inputs, self.history, self._weights = n_inputs, history, weights

    def _reserved(self):
        for name in self._write(self._weights):
            del self._weights[name]

    def build(self, kind: str, graph: Any, inputs: list[Tensor]) -> list[Tensor]:
        results = self.layers(*inputs[:self.n_inputs])
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        return results if kind == "predict" else [self.loss[0](*results, *inputs[self.n_inputs:])]

    def _measure(self, results, targets):
        return self.loss[1](*results, *targets)

    def state_dict(self) -> dict[str, numpy.ndarray[Any, Any]]:
        """{name: array} of parameters and buffers as they are on the device now."""
        return self._read()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take these; all that the model has must be there. The model must have been used or planned once."""
        names = {name for _, name, _ in self._held()}
        missing, odd = sorted(names - set(state)), sorted(set(state) - names)
        if missing or odd:
            raise NotFoundError("missing: %s; not of this model: %s" % (", ".join(missing) or "none", ", ".join(odd) or "none"))
        self._write(state)

    def summary(self, *batch: Any) -> str:
        """A text: each parameter, and what a training step of this batch takes."""
        self._step("predict", self._batch(batch)[:self.n_inputs])
        rows = ["%-32s %-20s %12s" % ("parameter", "shape", "numbers")]
        total = 0
        for _, name, shape in self._held():
            n = int(numpy.prod(shape))
            total += n
            rows.append("%-32s %-20s %12s" % (name, list(shape), format(n, ",")))
        rows.append("%-53s %12s" % ("", format(total, ",")))
        if len(batch) > (self.n_inputs or 1):
            rows.append(repr(self.plan(*batch)))
        return "\n".join(rows)
