# SPDX-License-Identifier: Apache-2.0
"""What `fit` calls after each epoch. A callback is any function of what it tells, {'epoch', 'step', 'loss', 'seconds', 'rate',
'validation'}; if it gives True the training ends. One with `begin(model)` is told of the model first."""
from __future__ import annotations

import os
import socket
import struct
import time
from typing import Any

from ._library import InvalidValueError


def _monitored(told, name):
    """The value of `loss`, `validation.loss` or `validation.accuracy`, so that smaller is better. None: the validation's loss, if there is
    one, else the training's."""
    of_validation = told["validation"] or {}
    name = name or ("validation.loss" if of_validation else "loss")
    found = of_validation if name.startswith("validation.") else told
    key = name.rpartition(".")[2]
    if not isinstance(found.get(key), (int, float)):
        raise InvalidValueError("there is no '%s' to go by; there are loss%s" % (name, "".join(", validation." + k for k in of_validation)))
    return -found[key] if key == "accuracy" else found[key]


class EarlyStopping:
    """Ends a training when `monitor` has not become better by more than `min_delta` for `patience` epochs."""

    def __init__(self, patience: int = 3, monitor: str | None = None, min_delta: float = 0.0) -> None:
        self.patience, self.monitor, self.min_delta = patience, monitor, min_delta
        self.best, self.waited = float("inf"), 0

    def __call__(self, told: dict[str, Any]) -> bool:
        value = _monitored(told, self.monitor)
        if value < self.best - self.min_delta:
            self.best, self.waited = value, 0
        else:
            self.waited += 1
        return self.waited >= self.patience


class BestCheckpoint:
    """Writes the weights to a safetensors file after each epoch whose `monitor` is the best so far."""

    def __init__(self, path: str | os.PathLike[str], monitor: str | None = None) -> None:
        self.path, self.monitor, self.best, self.model = path, monitor, float("inf"), None

    def begin(self, model: Any) -> None:
        """The model whose weights are written."""
        self.model = model

    def __call__(self, told: dict[str, Any]) -> None:
        value = _monitored(told, self.monitor)
        if value < self.best:
            self.best = value
            self.model.save(self.path)


class TensorBoard:
    """Writes an event file into a folder, for `tensorboard --logdir`: losses, rate and seconds by step. TensorBoard's format is TensorFlow's
    record format (length, its checksum, data, its checksum) of protocol buffers of event.proto."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, "events.out.tfevents.%010d.%s.%d" % (time.time(), socket.gethostname(), os.getpid()))
        self._write(_field(3, b"brain.Event:2"), 0)

    def __call__(self, told: dict[str, Any]) -> None:
        values = {"train/loss": told["loss"], "train/rate": told["rate"], "train/seconds": told["seconds"]}
        values.update({"validation/" + k: v for k, v in (told["validation"] or {}).items()})
        each = (_field(1, _field(1, k.encode()) + struct.pack("<Bf", 2 << 3 | 5, v)) for k, v in values.items())
        self._write(_field(5, b"".join(each)), told["step"])

    def _write(self, what, step):
        event = struct.pack("<Bd", 1 << 3 | 1, time.time()) + b"\x10" + _varint(step) + what
        length = struct.pack("<Q", len(event))
        with open(self.path, "ab") as f:
            f.write(length + _masked(length) + event + _masked(event))


def _varint(n):
    parts = bytearray()
    while n > 127:
        parts.append(n & 127 | 128)
        n >>= 7
    return bytes(parts + bytes([n]))


def _field(number, data):
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def crc32c(data: bytes) -> int:
    """Castagnoli's checksum, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def _masked(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
