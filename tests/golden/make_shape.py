# SPDX-License-Identifier: Apache-2.0
"""shape.safetensors: ops that move elements. Integers too: their bits must arrive as they are."""
import torch
from golden import Golden

cases = Golden("shape")
with cases.case("reshape", "reshape", shape=[3, 1, 4]) as c:
    c.expect("y", c.input("x", torch.randn(2, 6)).reshape(3, 1, 4))
with cases.case("flatten", "flatten", start_axis=1) as c:
    c.expect("y", c.input("x", torch.randn(2, 3, 4)).flatten(1))
with cases.case("flatten_scalar", "flatten", start_axis=0) as c:
    c.expect("y", c.input("x", torch.randn(())).flatten(0))
with cases.case("transpose", "transpose", axis0=-1, axis1=0) as c:
    c.expect("y", c.input("x", torch.randn(2, 3, 4)).transpose(-1, 0))
with cases.case("permute", "permute", axes=[0, 2, 3, 1]) as c:
    c.expect("y", c.input("x", torch.randn(2, 3, 4, 5)).permute(0, 2, 3, 1))
with cases.case("permute_i32", "permute", axes=[1, 0]) as c:
    c.expect("y", c.input("x", torch.arange(-3, 9, dtype=torch.int32).reshape(3, 4) * 123456789).permute(1, 0))
with cases.case("broadcast_to", "broadcast_to", shape=[2, 3, 4]) as c:
    c.expect("y", c.input("x", torch.randn(3, 1)).expand(2, 3, 4))
with cases.case("slice", "slice", axis=1, start=2, length=3) as c:
    c.expect("y", c.input("x", torch.randn(3, 6, 2)).narrow(1, 2, 3))
with cases.case("slice_nothing", "slice", axis=0, start=3, length=0) as c:
    c.expect("y", c.input("x", torch.randn(3, 2)).narrow(0, 3, 0))
with cases.case("concat", "concat", axis=-2) as c:
    parts = [c.input(f"x{i}", torch.randn(2, n, 3)) for i, n in enumerate((1, 4, 2))]
    c.expect("y", torch.cat(parts, -2))
with cases.case("concat_many", "concat") as c:  # more than a node takes
    parts = [c.input(f"x{i}", torch.randn(1 + i % 2)) for i in range(33)]
    c.expect("y", torch.cat(parts, 0))
picture = (torch.arange(2 * 5 * 7 * 3) * 37 % 256).to(torch.uint8).reshape(2, 5, 7, 3)
MOVES = {"permute": ({"axes": [0, 3, 1, 2]}, lambda x: x.permute(0, 3, 1, 2)),
         "transpose": ({"axis0": 0, "axis1": 2}, lambda x: x.transpose(0, 2)),
         "reshape": ({"shape": [7, 30]}, lambda x: x.reshape(7, 30)),
         "broadcast_to": ({"shape": [2, 2, 5, 7, 3]}, lambda x: x.expand(2, 2, 5, 7, 3)),
         "slice": ({"axis": 2, "start": 1, "length": 5}, lambda x: x.narrow(2, 1, 5))}
for name, (attributes, move) in MOVES.items():
    with cases.case(f"{name}_u8", name, **attributes) as c:
        c.expect("y", move(c.input("x", picture)))
longs = torch.arange(12).reshape(3, 4) * 123456789123 - 7
with cases.case("permute_i64", "permute", axes=[1, 0]) as c:
    c.expect("y", c.input("x", longs, as_is=True).permute(1, 0), as_is=True)
with cases.case("concat_i64", "concat", axis=1) as c:
    c.expect("y", torch.cat([c.input("x0", longs, as_is=True), c.input("x1", longs[:, :1], as_is=True)], 1), as_is=True)
with cases.case("concat_u8", "concat", axis=1) as c:
    c.expect("y", torch.cat([c.input("x0", picture), c.input("x1", picture[:, :2] + 1)], 1))
with cases.case("lookup", "lookup") as c:  # (x / 255 - mean) / std, of three channels
    x, bytes_of_one = c.input("x", picture.permute(0, 3, 1, 2).contiguous()), torch.arange(256) / 255.0
    mean, std = torch.tensor([[0.485], [0.456], [0.406]]), torch.tensor([[0.229], [0.224], [0.225]])
    c.input("table", (bytes_of_one - mean) / std, grad=False)
    c.expect("y", (x.double() / 255 - mean[:, :, None]) / std[:, :, None])
with cases.case("lookup_one", "lookup") as c:
    x, table = c.input("x", picture[0, 0]), c.input("table", torch.randn(1, 256), grad=False)
    c.expect("y", table[0][x.long()])
with cases.case("embedding_i64", "embedding") as c:  # what is beyond i32 is no row either
    c.expect("y", torch.nn.functional.embedding(torch.tensor([[2, 0], [1, 2]]), c.input("weight", torch.randn(3, 5), grad=False)))
    c.input("indices", torch.tensor([[2, 0], [1, 2]]), as_is=True)
for name, (attributes, move) in MOVES.items():
    with cases.case(f"{name}_bool", name, **attributes) as c:
        c.expect("y", move(c.input("x", picture % 3 == 0, as_is=True)), as_is=True)
    with cases.case(f"{name}_i8", name, **attributes) as c:
        c.expect("y", move(c.input("x", picture.to(torch.int8))))
cases.write()
