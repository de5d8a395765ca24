# SPDX-License-Identifier: Apache-2.0
"""Batches, without PyTorch. Whatever gives batches can be trained on; a DataLoader, too."""
from __future__ import annotations

import gzip
import os
import struct
from typing import Any, Callable, Iterator

import numpy

from ._library import FileError, InvalidValueError, NotFoundError, UnsupportedError


class Batches:
    """Arrays of as many samples each, in batches: shuffled anew each time it is gone through.

    transform   of a batch's arrays, each time: pictures turned round, for example. None: none
    """

    def __init__(self, *arrays: Any, batch_size: int = 64, shuffle: bool = True, seed: int = 0,
                 transform: Callable[..., Any] | None = None, drop_last: bool = False) -> None:
        n = len(arrays[0])
        if any(len(a) != n for a in arrays):
            raise InvalidValueError("the arrays have %s samples" % ", ".join(str(len(a)) for a in arrays))
        self.arrays, self.batch_size, self.shuffle, self.transform = [numpy.asarray(a) for a in arrays], batch_size, shuffle, transform
        self.drop_last, self._random = drop_last, numpy.random.default_rng(seed)

    def __len__(self) -> int:
        n = len(self.arrays[0])
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        n = len(self.arrays[0])
        order = self._random.permutation(n) if self.shuffle else numpy.arange(n)
        for i in range(len(self)):
            at = order[i * self.batch_size:(i + 1) * self.batch_size]
            batch = [a[at] for a in self.arrays]
            yield self.transform(*batch) if self.transform else batch


class ImageFolder:
    """Pictures of a folder for each class, `pets/cat/1.jpg`, in batches ([N, 3, H, W] from 0 to 1, classes): the shorter side becomes `size`,
    and the middle is taken. Wants Pillow. `classes` has the folders' names, in order.

    transform   as Batches'
    """

    def __init__(self, folder: str | os.PathLike[str], size: int = 224, batch_size: int = 64, shuffle: bool = True, seed: int = 0,
                 transform: Callable[..., Any] | None = None) -> None:
        self._pillow()
        if not os.path.isdir(folder):
            raise NotFoundError("there is no folder '%s'" % folder)
        self.classes = sorted(e.name for e in os.scandir(folder) if e.is_dir() and not e.name.startswith("."))
        self.files = [(os.path.join(folder, name, f), i) for i, name in enumerate(self.classes)
                      for f in sorted(os.listdir(os.path.join(folder, name))) if f.lower().endswith(self.ENDINGS)]
        if not self.files:
            raise NotFoundError("'%s' has no pictures in a folder for each class; their names end with %s" % (folder, ", ".join(self.ENDINGS)))
        self.size, self.batch_size, self.shuffle, self.transform = size, batch_size, shuffle, transform
        self._random = numpy.random.default_rng(seed)

    ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".tif", ".tiff")

    @staticmethod
    def _pillow():
        try:
            from PIL import Image
        except ImportError:
            raise UnsupportedError("ImageFolder wants Pillow, which reads pictures: pip install pillow") from None
        return Image

    def __len__(self) -> int:
        return -(-len(self.files) // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        n = len(self.files)
        order = self._random.permutation(n) if self.shuffle else numpy.arange(n)
        for i in range(0, n, self.batch_size):
            chosen = [self.files[k] for k in order[i:i + self.batch_size]]
            batch = [numpy.stack([self.read(path) for path, _ in chosen]), numpy.array([k for _, k in chosen], numpy.int32)]
            yield self.transform(*batch) if self.transform else batch

    def read(self, path: str | os.PathLike[str]) -> numpy.ndarray[Any, Any]:
        """One of them as [3, H, W]."""
        image_module = self._pillow()
        try:
            with image_module.open(path) as image:
                w, h = image.size
                scale = self.size / min(w, h)
                w, h = max(self.size, round(w * scale)), max(self.size, round(h * scale))
                image = image.convert("RGB").resize((w, h), image_module.BILINEAR)
        except (OSError, ValueError, SyntaxError) as error:
            raise InvalidValueError("'%s' is no picture that can be read: %s" % (path, error)) from error
        left, top = (w - self.size) // 2, (h - self.size) // 2
        image = image.crop((left, top, left + self.size, top + self.size))
        return numpy.asarray(image, numpy.float32).transpose(2, 0, 1) / 255


def idx(path: str | os.PathLike[str]) -> numpy.ndarray[Any, Any]:
    """An array of an IDX file, as MNIST has them; `.gz` too."""
    with (gzip.open if str(path).endswith(".gz") else open)(path, "rb") as f:
        data = f.read()
    zero, kind, rank = struct.unpack(">HBB", data[:4]) if len(data) > 3 else (0, 0, 0)
    if zero or kind != 8 or len(data) < 4 + 4 * rank:
        raise InvalidValueError("%s is no IDX file of bytes" % path)
    shape = struct.unpack(">%dI" % rank, data[4:4 + 4 * rank])
    values = numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * rank)
    if values.size != numpy.prod(shape):
        raise InvalidValueError("%s says %s and holds %d bytes" % (path, list(shape), values.size))
    return values.reshape(shape)


def fashion_mnist(folder: str | None = None, train: bool = True) -> tuple[numpy.ndarray[Any, Any], numpy.ndarray[Any, Any]]:
    """(pictures [N, 1, 28, 28] from 0 to 1, classes [N]). The folder with the four files; None: CLEAVE_DATA_DIR, else that of Debian's
    package dataset-fashion-mnist."""
    folder = folder or os.environ.get("CLEAVE_DATA_DIR") or "/usr/share/datasets/fashion-mnist"
    name = "train" if train else "t10k"
    found = []
    for kind in ("images-idx3-ubyte", "labels-idx1-ubyte"):
        paths = [os.path.join(folder, "%s-%s%s" % (name, kind, end)) for end in ("", ".gz")]
        path = next((p for p in paths if os.path.exists(p)), None)
        if not path:
            raise FileError("there is no %s; get Fashion-MNIST's four files, or Debian's package dataset-fashion-mnist" % paths[1])
        found.append(idx(path))
    return found[0][:, None].astype(numpy.float32) / 255, found[1].astype(numpy.int32)
