#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the golden files of the formats and of the loader: tests/golden/io.

Needs PyTorch, numpy and safetensors. What has no package here is written down again in plain Python (XXH64, Philox), so
that the files do not come from the code they test. Run it from anywhere; it writes beside itself.
"""
import gzip
import json
import pathlib
import struct

import numpy as np
import safetensors.numpy
import safetensors.torch
import torch

from order import order, philox

OUT = pathlib.Path(__file__).parent / "io"
M64 = (1 << 64) - 1


def tensors():
    """What every weights file below holds."""
    return {
        "features.0.weight": np.arange(12, dtype=np.float32).reshape(2, 1, 2, 3) / 8 - 0.5,
        "features.0.bias": np.array([0.25, -1e-30], np.float32),
        "bn.num_batches_tracked": np.array(7, np.int64),
        "index": np.array([[-1, 2147483647, -2147483648]], np.int32),
        "mask": np.array([0, 1, 255], np.uint8),
        "empty": np.zeros((0, 4), np.float32),
        "größe": np.array([np.inf, -np.inf, -0.0], np.float32),
    }


def integers():
    """Of every type one, and two of the same; the names against the order of the types."""
    return {
        "a": np.array([True, False, True]),
        "b": np.array([0, 255], np.uint8),
        "c": np.array([-128, 127, -1], np.int8),
        "d": np.array([1.5], np.float32),
        "e": np.array([-5], np.int32),
        "f": np.array([2**40], np.int64),
        "g": np.array([[False, True]]),
    }


def weights():
    safetensors.numpy.save_file(tensors(), OUT / "weights.safetensors", metadata={"format": "pt"})
    safetensors.numpy.save_file(integers(), OUT / "integers.safetensors", metadata={"format": "pt"})
    values = [0.0, -0.0, 1.0, -2.5, 65504.0, 6e-8, 6.1e-5, float("inf"), float("-inf"), 1 / 3]
    wide = torch.tensor(values + [3e38, 1e-40], dtype=torch.float32)
    half = {"half": torch.tensor(values).to(torch.float16), "brain": wide.to(torch.bfloat16)}
    safetensors.torch.save_file(half, OUT / "half.safetensors")
    widened = {name: t.float() for name, t in half.items()}
    safetensors.torch.save_file(widened, OUT / "half_widened.safetensors")


def foreign():
    """Files that are no safetensors: PyTorch's two formats, and numpy's archive."""
    weights = {"fc.weight": torch.arange(6, dtype=torch.float32).reshape(2, 3), "fc.bias": torch.ones(2)}
    torch.save(weights, OUT / "torch.pth")
    torch.save({"state_dict": weights}, OUT / "torch_before_1_6.pt", _use_new_zipfile_serialization=False)
    np.savez(OUT / "arrays.npz", **{name: t.numpy() for name, t in weights.items()})
    np.savez_compressed(OUT / "packed.npz", row=np.zeros((50, 6), np.float32), word=np.arange(50) % 5, größe=np.float64(1.5))


def rotl(x, r):
    return ((x << r) | (x >> (64 - r))) & M64


def xxh64(data, seed=0):
    """XXH64, from its specification (xxHash, doc/xxhash_spec.md, section XXH64)."""
    p1, p2, p3, p4, p5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
                          0x27D4EB2F165667C5)

    def step(acc, lane):
        return rotl((acc + lane * p2) & M64, 31) * p1 & M64

    at, n = 0, len(data)
    if n >= 32:
        v = [(seed + p1 + p2) & M64, (seed + p2) & M64, seed, (seed - p1) & M64]
        while at + 32 <= n:
            lanes = struct.unpack_from("<4Q", data, at)
            v = [step(a, lane) for a, lane in zip(v, lanes)]
            at += 32
        h = (rotl(v[0], 1) + rotl(v[1], 7) + rotl(v[2], 12) + rotl(v[3], 18)) & M64
        for a in v:
            h = ((h ^ step(0, a)) * p1 + p4) & M64
    else:
        h = (seed + p5) & M64
    h = (h + n) & M64
    while at + 8 <= n:
        h ^= step(0, struct.unpack_from("<Q", data, at)[0])
        h = (rotl(h, 27) * p1 + p4) & M64
        at += 8
    if at + 4 <= n:
        h ^= struct.unpack_from("<I", data, at)[0] * p1 & M64
        h = (rotl(h, 23) * p2 + p3) & M64
        at += 4
    for byte in data[at:]:
        h ^= byte * p5 & M64
        h = rotl(h, 11) * p1 & M64
    for shift, prime in ((33, p2), (29, p3), (32, 1)):
        h = (h ^ (h >> shift)) * prime & M64
    return h


def checkpoint():
    """A checkpoint as runtime/io/README.md describes it, of the weights above and three texts."""
    zeros = "xxh64:" + "0" * 16
    texts = {"cleave.checksum": zeros, "epoch": "3", "lr": "0.10000000000000001", "seed": "-1"}
    order = {np.dtype(np.int64): 0, np.dtype(np.float32): 1, np.dtype(np.int32): 2, np.dtype(np.uint8): 3}
    names = {np.dtype(np.int64): "I64", np.dtype(np.float32): "F32", np.dtype(np.int32): "I32", np.dtype(np.uint8): "U8"}
    header, data = {"__metadata__": texts}, b""
    for name, a in sorted(tensors().items(), key=lambda item: (order[item[1].dtype], item[0].encode())):
        end = len(data) + a.nbytes
        header[name] = {"dtype": names[a.dtype], "shape": list(a.shape), "data_offsets": [len(data), end]}
        data += a.tobytes()
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    whole = struct.pack("<Q", len(text)) + text + data
    digits = f"{xxh64(whole):016x}"
    (OUT / "state.checkpoint").write_bytes(whole.replace(zeros.encode(), ("xxh64:" + digits).encode(), 1))


def npy():
    a = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
    np.save(OUT / "f4.npy", a)
    np.save(OUT / "i4.npy", np.array([-2147483648, 7], np.int32))
    np.save(OUT / "i8.npy", np.array([[[-(2**63)], [2**63 - 1]]], np.int64))
    np.save(OUT / "u1.npy", np.array([0, 255], np.uint8))
    np.save(OUT / "b1.npy", np.array([True, False, True]))
    np.save(OUT / "i1.npy", np.array([-128, 127], np.int8))
    np.save(OUT / "f8.npy", np.array([1 / 3, 1e300, -0.0], np.float64))
    np.save(OUT / "f2.npy", np.array([1 / 3, 65504, -0.0], np.float16))
    np.save(OUT / "scalar.npy", np.float32(2.5))
    np.save(OUT / "empty.npy", np.zeros((3, 0), np.float32))
    np.save(OUT / "rank8.npy", np.arange(2, dtype=np.float32).reshape(1, 1, 1, 2, 1, 1, 1, 1))
    with open(OUT / "version2.npy", "wb") as f:
        np.lib.format.write_array(f, a, version=(2, 0))
    # What is refused.
    np.save(OUT / "fortran.npy", np.asfortranarray(a))
    np.save(OUT / "big_endian.npy", a.astype(">f4"))
    np.save(OUT / "fields.npy", np.zeros(2, [("x", "<f4"), ("y", "<i4")]))
    np.save(OUT / "rank9.npy", np.zeros((1,) * 9, np.float32))


def idx(code, a):
    return bytes([0, 0, code, a.ndim]) + struct.pack(f">{a.ndim}I", *a.shape) + a.tobytes()


def idx_files():
    images = (np.arange(2 * 3 * 4) * 7 % 256).astype(np.uint8).reshape(2, 3, 4)
    (OUT / "u8.idx").write_bytes(idx(0x08, images))
    (OUT / "u8.idx.gz").write_bytes(gzip.compress(idx(0x08, images), mtime=0))
    (OUT / "i32.idx").write_bytes(idx(0x0C, np.array([-2, 5, 2147483647]).astype(">i4")))
    (OUT / "f32.idx").write_bytes(idx(0x0D, np.array([[0.5], [-3e38]]).astype(">f4")))


def loader():
    assert philox((0, 0), (0, 0, 0, 0))[0] == 0x6627E8D5  # known answer of Random123
    table = [order(seed, epoch, 101) for seed in (1, 0x123456789ABCDEF0) for epoch in (0, 1)]
    np.save(OUT / "orders.npy", np.array(table, np.int32))
    byte = torch.arange(256, dtype=torch.uint8).float().div(255)  # as torchvision's ToTensor and Normalize
    np.save(OUT / "normalised.npy", byte.sub(0.2860).div(0.3530).numpy())


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    weights()
    foreign()
    checkpoint()
    npy()
    idx_files()
    loader()
