# SPDX-License-Identifier: Apache-2.0
"""Devices: which there are, what is known of them, and how many bytes they hold."""
from __future__ import annotations

from ._library import ArgumentError, ffi, lib, runtime, text

TYPE_CHECKING = False
if TYPE_CHECKING:  # an import of it costs milliseconds
    from typing import Any

CATEGORIES = ("parameters", "gradients", "optimizer", "activations", "workspace", "io", "staging")


class Device:
    """A device that kernels run on.

    spec    `gpu:0`, `cpu`, `host`, a part of its driver's name, `gpu|cpu` for the first there is, or `null:rtx-4090` for a card that is
            not here, which plans and computes nothing. None: the best there is.

    Errors  NotFoundError, UnsupportedError
    """

    def __init__(self, spec: str | Device | None = None) -> None:
        if isinstance(spec, Device):
            self._pointer, self._runtime = spec._pointer, spec._runtime
            return
        if spec is not None and not isinstance(spec, str):
            raise ArgumentError("a device is a name, `gpu:0`, or a Device, and this is %r" % (spec,))
        self._runtime = runtime()
        out = ffi.new("clv_device **")
        self._runtime.check(lib.clv_device_find(self._runtime.pointer, ffi.NULL if spec is None else spec.encode(), out))
        self._pointer = out[0]

    @property
    def _info(self):
        return lib.clv_device_info_get(self._pointer)

    @property
    def name(self) -> str:
        """`gpu:0`, `cpu:0`, `host`."""
        return text(self._info.name)

    @property
    def label(self) -> str:
        """The driver's name for it."""
        return text(self._info.label)

    @property
    def type(self) -> str:
        """`gpu`, `cpu`, `accelerator`, `host`, `other`."""
        return text(self._info.type_name)

    @property
    def platform(self) -> str:
        """The name of its OpenCL platform."""
        return text(self._info.platform_name)

    @property
    def driver(self) -> str:
        """The driver's version."""
        return text(self._info.driver)

    @property
    def usable(self) -> bool:
        """Can it compute?"""
        return bool(self._info.usable)

    @property
    def reason(self) -> str:
        """Why it is not usable; '' if it is."""
        return text(self._info.reason)

    @property
    def memory_bytes(self) -> int:
        """How much memory it has."""
        return self._info.memory_bytes

    def memory(self) -> dict[str, Any]:
        """Bytes that Cleave holds there now, and at most so far: {'current': n, 'peak': n, 'budget': n, 'categories': {...}}. Exact."""
        info = lib.clv_device_memory(self._pointer)
        return {"current": info.all.current, "peak": info.all.peak, "budget": info.budget,
                "categories": {name: info.category[i].current for i, name in enumerate(CATEGORIES)}}

    def reset_peak(self) -> None:
        """The peak is what is held now."""
        lib.clv_device_memory_reset_peak(self._pointer)

    def set_budget(self, n_bytes: int | None) -> None:
        """Cleave may hold at most so many bytes there; 0 or None: the device's memory is the limit."""
        try:
            given = int(n_bytes or 0)
        except (TypeError, ValueError, OverflowError):
            given = -1
        if given < 0:
            raise ArgumentError("a budget is a number of bytes, at least 0, and this is %r" % (n_bytes,))
        lib.clv_device_set_budget(self._pointer, given)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other._pointer == self._pointer

    def __hash__(self) -> int:
        return hash(self._pointer)

    def __repr__(self) -> str:
        return "Device(%r, %r)" % (self.name, self.label)


def devices(cards: bool = False) -> list[Device]:
    """All usable devices, the host last. cards: those that are not here (`null:...`) too."""
    here = runtime()
    found = []
    for i in range(lib.clv_runtime_info_get(here.pointer).n_devices):
        device = Device.__new__(Device)
        device._pointer, device._runtime = lib.clv_device_get(here.pointer, i), here
        if device.usable and (cards or not device.name.startswith("null")):
            found.append(device)
    return found
