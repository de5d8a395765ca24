# SPDX-License-Identifier: Apache-2.0
"""What the make_*.py scripts share: gather cases, write them as safetensors. Needs PyTorch only.

    cases = Golden("pool")
    with cases.case("avg_padding", "avg_pool2d", kernel=2, padding=1) as c:     # the op, and its attributes by name
        x = c.input("x", torch.randn(2, 3, 5, 5))
        c.expect("y", F.avg_pool2d(x, 2, padding=1))     # the first expect also makes dy and runs backward
    cases.write()
"""
import contextlib
import json
import pathlib
import struct
import zlib

import torch

STORED = (torch.uint8, torch.int8)  # as they are; other whole numbers become int32, unless as_is says so
NAMES = {torch.float32: "F32", torch.int32: "I32", torch.int64: "I64", torch.uint8: "U8", torch.bool: "BOOL",
         torch.int8: "I8"}


def save(path, tensors, texts=None):
    """The safetensors format: length of the header, header in JSON, bytes."""
    header, blobs, offset = {"__metadata__": texts} if texts else {}, [], 0
    for name, tensor in tensors.items():
        tensor = tensor.detach().contiguous()
        blob = tensor.numpy().tobytes()
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        file.writelines(blobs)
    print(path.name, 8 + len(text) + offset, "bytes,", len(tensors), "tensors")


def rounded(tensor):
    """Values that float32 holds exactly, as float64: both sides begin with the same numbers."""
    return tensor.float().double() if tensor.is_floating_point() else tensor


class Case:
    def __init__(self, tensors, name):
        self.tensors, self.name = tensors, name
        self.inputs, self.buffers, self.first = {}, {}, None
        self.order = []  # inputs and buffers as the op takes them

    def put(self, name, tensor, as_is=False):
        tensor = tensor.detach()
        if tensor.is_floating_point():
            tensor = tensor.float()
        elif tensor.dtype not in STORED and not as_is:
            tensor = tensor.int()
        self.tensors[f"{self.name}/{name}"] = tensor

    def input(self, name, tensor, grad=True, as_is=False):
        """as_is: int64 and bool stay so."""
        tensor = rounded(tensor).clone()
        self.put(name, tensor, as_is)
        self.order.append(name)
        if grad and tensor.is_floating_point():
            self.inputs[name] = tensor.requires_grad_()
        return tensor

    def buffer(self, name, tensor):
        """Changed in place by what follows: its values afterwards are pinned."""
        self.buffers[name] = rounded(tensor).clone()
        self.put(name, self.buffers[name])
        self.order.append(name)
        return self.buffers[name]

    def expect(self, name, tensor, as_is=False):
        self.put(name, tensor, as_is)
        if self.first is None and tensor.is_floating_point():
            self.first = (name, tensor)

    def finish(self):
        for name, tensor in self.buffers.items():
            self.put(name + ".after", tensor)
        if self.first is None or not self.first[1].requires_grad:
            return
        name, tensor = self.first
        if name == "loss":
            tensor.backward()
        else:
            dy = rounded(torch.randn(tensor.shape, dtype=torch.float64))
            self.put("dy", dy)
            tensor.backward(dy)
        for name, tensor in self.inputs.items():
            if tensor.grad is not None:
                self.put(name + ".grad", tensor.grad)


def seed_by(name):
    torch.manual_seed(zlib.crc32(name.encode()))


class Golden:
    def __init__(self, name, seed=1, by_name=False):
        """by_name: each case draws from a seed of its own, so that a new case changes no other."""
        torch.manual_seed(seed)
        torch.set_default_dtype(torch.float64)
        self.by_name = by_name
        self.path = pathlib.Path(__file__).parent / (name + ".safetensors")
        self.tensors, self.texts = {}, {}

    @contextlib.contextmanager
    def case(self, name, op=None, inputs=None, **attributes):
        """With an op, ops.c calls it by name with the case's inputs in their order, or `inputs` (None: left out); else a program has
        the case in C."""
        case = Case(self.tensors, name)
        if self.by_name:
            seed_by(name)
        yield case
        case.finish()
        if op:
            call = {"op": op, "inputs": inputs if inputs is not None else case.order, "attributes": attributes}
            self.texts[name] = json.dumps(call, separators=(",", ":"))

    def write(self):
        save(self.path, self.tensors, self.texts)
