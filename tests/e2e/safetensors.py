# SPDX-License-Identifier: Apache-2.0
"""As the package of that name, which need not be there: what the examples of docs/pytorch.md take of it.
Source: https://github.com/huggingface/safetensors, README.md, "Format"."""
import json
import struct
import sys

import torch

sys.modules["safetensors.torch"] = sys.modules[__name__]


class safe_open:
    def __init__(self, path, framework):
        with open(path, "rb") as file:
            data = file.read()
        at = 8 + struct.unpack("<Q", data[:8])[0]
        self.head, self.body = json.loads(data[8:at].decode()), data[at:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def metadata(self):
        return self.head.get("__metadata__")

    def keys(self):
        return [name for name in self.head if name != "__metadata__"]

    def get_tensor(self, name):
        a, b = self.head[name]["data_offsets"]
        kind = {"F32": torch.float32, "I64": torch.int64}[self.head[name]["dtype"]]
        return torch.frombuffer(bytearray(self.body[a:b]), dtype=kind).reshape(self.head[name]["shape"])


def save_file(tensors, path, metadata=None):
    head, body = ({"__metadata__": metadata} if metadata else {}), b""
    for name, tensor in tensors.items():
        bytes_of = tensor.detach().contiguous().numpy().tobytes()
        kind = {torch.float32: "F32", torch.int64: "I64"}[tensor.dtype]
        head[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [len(body), len(body) + len(bytes_of)]}
        body += bytes_of
    text = json.dumps(head).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)
