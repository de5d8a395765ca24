# SPDX-License-Identifier: Apache-2.0
"""The C library: finding it, its errors as exceptions, and the lifetime of what it makes."""
from __future__ import annotations

import os
import sys
import threading
import warnings
import weakref

from ._c import ffi

HERE = os.path.dirname(os.path.abspath(__file__))


class Error(Exception):
    """What the library refused, in its own sentence. Each subclass is one of Python's exceptions too."""


def _kind(name: str, base: type, text: str) -> type[Error]:
    return type(name, (Error, base), {"__doc__": text, "__module__": "cleave"})


InvalidValueError = _kind("InvalidValueError", ValueError, "A value, a text or a file that is not as it must be.")
ArgumentError = _kind("ArgumentError", TypeError, "An argument of another kind than is taken.")
ShapeError = _kind("ShapeError", ValueError, "Shapes that do not fit.")
DtypeError = _kind("DtypeError", TypeError, "A type of elements that is not taken here.")
StateError = _kind("StateError", RuntimeError, "A call at the wrong time.")
NotFoundError = _kind("NotFoundError", LookupError, "A device, name or file that there is not.")
UnsupportedError = _kind("UnsupportedError", NotImplementedError, "What Cleave, or the device, cannot do.")
OutOfMemoryError = _kind("OutOfMemoryError", MemoryError, "It does not fit on the device, or the host; nothing was taken.")
DeviceError = _kind("DeviceError", RuntimeError, "A driver failed, or a device is lost.")
FileError = _kind("FileError", OSError, "A file cannot be read or written.")
NotFiniteError = _kind("NotFiniteError", ArithmeticError, "A loss or parameters that are not finite any more.")

_KINDS = {
    "E_VALUE": InvalidValueError, "E_FORMAT": InvalidValueError, "E_SHAPE": ShapeError, "E_DTYPE": DtypeError,
    "E_STATE": StateError, "E_NOT_FOUND": NotFoundError, "E_UNSUPPORTED": UnsupportedError,
    "E_HOST_MEMORY": OutOfMemoryError, "E_DEVICE_MEMORY": OutOfMemoryError, "E_BUDGET": OutOfMemoryError,
    "E_DEVICE": DeviceError, "E_DEVICE_LOST": DeviceError, "E_BUILD": DeviceError, "E_IO": FileError,
    "E_NOT_FINITE": NotFiniteError,
}


def _open():
    path = os.environ.get("CLEAVE_LIBRARY") or os.path.join(HERE, "lib", "libcleave.so")
    try:
        library = ffi.dlopen(path)
    except OSError as error:
        raise ImportError("Cleave's library cannot be loaded: %s. Install the wheel again, or name the library in CLEAVE_LIBRARY."
                          % error) from None
    version = ffi.string(library.clv_version()).decode()
    wanted = "%d.%d." % (library.CLV_VERSION_MAJOR, library.CLV_VERSION_MINOR)
    if not version.startswith(wanted):
        raise ImportError("%s is version %s of Cleave, and this package wants %sx" % (path, version, wanted))
    return library


_kept: list[object] = []
faults: list[BaseException] = []  # what Python raised where it could not go on, for the next call
lib = _open()
NULL = ffi.NULL
__version__ = ffi.string(lib.clv_version()).decode()


def text(pointer):
    return ffi.string(pointer).decode("utf-8", "replace") if pointer != NULL else ""


def fault(status, runtime, where=""):
    """The exception of a status, with the library's sentence."""
    name = text(lib.clv_status_info_get(status).name)
    sentence = text(lib.clv_runtime_error(runtime)) or text(lib.clv_status_info_get(status).text)
    return _KINDS.get(name, Error)(sentence + where)


class Handle:
    """What the library made, until nobody has it any more. It keeps what it was made of, so that no order of `del` and no end of the
    interpreter can destroy the one before the other: what is destroyed is done so before `parents` are let go."""

    __slots__ = ("pointer", "parents", "pid", "_end", "__weakref__")

    def __init__(self, pointer, destroy, *parents):
        self.pointer, self.parents, self.pid = pointer, parents, os.getpid()
        self._end = weakref.finalize(self, _destroy, destroy, pointer, self.pid, parents)

    def close(self):
        self._end()
        self.pointer = NULL


def _destroy(destroy, pointer, pid, parents):
    if os.getpid() != pid:  # a child of fork has not the threads that this would wait for
        return
    try:
        destroy(pointer)
    except KeyboardInterrupt as error:  # Ctrl-C meanwhile: Python forgets what is raised here, so the next call raises it
        faults.append(error)


def _use_packaged_driver(prefixes, system="/etc/OpenCL/vendors", load=ffi.dlopen):
    """The extra `cpu`, where the system names no driver: Intel's for CPUs, and its loader, lie in lib/ of where packages are installed. They
    are loaded here, with what they need, and found by their names after that; the compile helper finds them by LD_LIBRARY_PATH."""
    variables = ("OCL_ICD_VENDORS", "OCL_ICD_FILENAMES", "OPENCL_VENDOR_PATH")
    if any(os.environ.get(v) for v in variables) or (os.path.isdir(system) and any(n.endswith(".icd") for n in os.listdir(system))):
        return
    for folder in (os.path.join(prefix, "lib") for prefix in prefixes):
        driver, loader = (os.path.join(folder, name) for name in ("libintelocl.so", "libOpenCL.so.1"))
        if os.path.exists(driver) and os.path.exists(loader):
            _kept.extend(load(path) for path in (driver, loader))
            os.environ.update({variables[0]: driver, variables[1]: driver})  # ocl-icd reads the first, Khronos' loader the second
            os.environ["LD_LIBRARY_PATH"] = ":".join(filter(None, [os.environ.get("LD_LIBRARY_PATH"), folder]))
            return


class Runtime:
    """The one of this process. A child of fork makes its own."""

    def __init__(self, **settings):
        self.messages = []

        @ffi.callback("void(void *, clv_log_level, const char *)")
        def log(_, level, sentence):
            if level == lib.CLV_LOG_WARNING:
                told = text(sentence)
                more = ": Debian's pocl-opencl-icd, or `pip install 'cleave[cpu]'`" if told.startswith("no OpenCL device is usable") else ""
                warnings.warn(told + more, stacklevel=2)

        config = ffi.new("clv_runtime_config *")
        config.log = log
        config.null_devices = config.null_cards = True
        kept = [log, config]
        helper = os.path.join(HERE, "lib", "cleave-compile-helper")
        if "CLEAVE_COMPILE_HELPER" not in os.environ and os.path.exists(helper):
            settings.setdefault("compile_helper", helper)
        for name, value in settings.items():
            if isinstance(value, str):
                value = ffi.new("char[]", os.fsencode(value))
                kept.append(value)
            setattr(config, name, value)
        out = ffi.new("clv_runtime **")
        status = lib.clv_runtime_create(config, out)
        if status != lib.CLV_OK:
            error = fault(status, out[0])
            lib.clv_runtime_destroy(out[0])
            raise error
        self.kept = kept
        self.handle = Handle(out[0], lib.clv_runtime_destroy, log)

    @property
    def pointer(self):
        return self.handle.pointer

    def check(self, status, where=""):
        if faults:
            first = faults[0]
            faults.clear()
            raise first
        if status != lib.CLV_OK:
            raise fault(status, self.pointer, where)


_lock = threading.Lock()
_runtimes: dict[int, Runtime] = {}


def runtime():
    """This process's runtime; it is made when it is first wanted, and so are devices looked for."""
    with _lock:
        here = os.getpid()
        if here not in _runtimes:
            if _runtimes:
                warnings.warn("cleave: OpenCL drivers do not live through a fork; this child has the device `host` alone. Start processes by "
                              "`spawn` to use others", stacklevel=3)
            else:
                _use_packaged_driver([sys.prefix, "/usr/local", os.path.expanduser("~/.local")])
            _runtimes[here] = Runtime(no_opencl=bool(_runtimes))
        return _runtimes[here]


def make(kind, create, destroy, *parents):
    """`create(out)` gives a status and writes a `kind *`."""
    out = ffi.new(kind + " **")
    runtime().check(create(out))
    return Handle(out[0], destroy, *parents)
