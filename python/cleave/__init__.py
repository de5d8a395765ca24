# SPDX-License-Identifier: Apache-2.0
"""Cleave: train and run models on any OpenCL device.

    import cleave
    model = cleave.compile(module, loss="cross_entropy", optimizer="adam", lr=1e-3)   # a torch.nn.Module
    model.fit(loader, epochs=3)

`import cleave` wants neither PyTorch nor an OpenCL driver; `compile` wants PyTorch, and without a driver there is the device `host`.
"""
from __future__ import annotations

import importlib

from . import optim
from ._library import (ArgumentError, DeviceError, DtypeError, Error, FileError, InvalidValueError, NotFiniteError, NotFoundError,
                       OutOfMemoryError, ShapeError, StateError, UnsupportedError, __version__)
from .device import Device, devices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from . import callbacks, data, graph, model, nn
    from ._aten import for_torch
    from ._custom import check, custom_op
    from ._steps import Plan, from_dlpack
    from .graph import Graph, Tensor, ops
    from .model import Model, compile

__all__ = ["Device", "devices", "compile", "Model", "Plan", "ops", "Graph", "Tensor", "optim", "nn", "data", "callbacks", "graph", "model",
           "custom_op", "check", "for_torch", "from_dlpack", "Error", "ArgumentError", "DeviceError", "DtypeError", "FileError", "InvalidValueError",
           "NotFiniteError", "NotFoundError", "OutOfMemoryError", "ShapeError", "StateError", "UnsupportedError", "__version__"]


def __getattr__(name: str) -> Any:  # what wants PyTorch is imported when it is asked for
    home = {"compile": "model", "Model": "model", "Plan": "_steps", "from_dlpack": "_steps",
            "custom_op": "_custom", "check": "_custom", "for_torch": "_aten", "ops": "graph", "Graph": "graph", "Tensor": "graph"}.get(name)
    if home:
        return getattr(importlib.import_module("." + home, __name__), name)
    if name in ("nn", "data", "graph", "model", "onnx", "callbacks"):
        return importlib.import_module("." + name, __name__)
    raise AttributeError("module 'cleave' has no attribute '%s'" % name)
