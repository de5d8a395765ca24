# SPDX-License-Identifier: Apache-2.0
"""Cleave: train and run models on any OpenCL device.

    import cleave
    model = cleave.compile(module, loss="cross_entropy", optimizer="adam", lr=1e-3)   # a torch.nn.Module
    model.fit(loader, epochs=3)

`import cleave` wants neither PyTorch nor an OpenCL driver; `compile` wants PyTorch, and without a driver there is the device `host`.
"""
import importlib

from . import optim
from ._library import (ArgumentError, DeviceError, DtypeError, Error, FileError, InvalidValueError, NotFiniteError, NotFoundError,
                       OutOfMemoryError, ShapeError, StateError, UnsupportedError, __version__)
from .device import Device, devices

__all__ = ["Device", "devices", "compile", "optim", "Error", "ArgumentError", "DeviceError", "DtypeError", "FileError", "InvalidValueError",
           "NotFiniteError", "NotFoundError", "OutOfMemoryError", "ShapeError", "StateError", "UnsupportedError", "__version__"]


def __getattr__(name):  # what wants PyTorch is imported when it is asked for
    home = {"compile": "model", "Model": "model", "Plan": "model", "from_dlpack": "_steps",
            "custom_op": "_custom", "check": "_custom", "for_torch": "_aten", "ops": "graph", "Graph": "graph", "Tensor": "graph"}.get(name)
    if home:
        return getattr(importlib.import_module("." + home, __name__), name)
    if name in ("nn", "data", "graph", "model", "callbacks"):
        return importlib.import_module("." + name, __name__)
    raise AttributeError("module 'cleave' has no attribute '%s'" % name)
