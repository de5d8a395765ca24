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

# ---- by an index: every place beside the axis, smaller indices, places that are named again ----


def indices(*shape, below):
    return torch.randint(0, below, shape)


def table(c, *shape):
    return c.input("x", torch.randn(*shape))


with cases.case("gather", "gather", axis=1) as c:
    x = table(c, 3, 5, 4)
    c.expect("y", torch.gather(x, 1, c.input("index", indices(2, 7, 3, below=5))))
with cases.case("gather_last", "gather", axis=-1) as c:
    x = table(c, 4, 6)
    c.expect("y", torch.gather(x, -1, c.input("index", indices(4, 9, below=6))))
with cases.case("gather_u8", "gather", axis=2) as c:
    x, index = c.input("x", picture[0]), indices(5, 7, 2, below=3)
    c.expect("y", torch.gather(x, 2, c.input("index", index)))
with cases.case("gather_i64", "gather", axis=0) as c:  # the index too
    x, index = c.input("x", longs, as_is=True), indices(5, 4, below=3)
    c.expect("y", torch.gather(x, 0, c.input("index", index, as_is=True)), as_is=True)
with cases.case("index_select", "index_select", axis=1) as c:
    x = table(c, 3, 5, 20)
    c.expect("y", torch.index_select(x, 1, c.input("index", indices(8, below=5))))
with cases.case("index_select_u8", "index_select", axis=0) as c:
    x = c.input("x", picture[0])
    c.expect("y", torch.index_select(x, 0, c.input("index", indices(4, below=5))))
with cases.case("index_select_many", "index_select", axis=1) as c:  # an index of two dimensions, ONNX's Gather
    x, index = table(c, 2, 5, 3), c.input("index", indices(2, 4, below=5))
    c.expect("y", x[:, index])
for name, put in {"scatter": torch.scatter, "scatter_add": torch.scatter_add}.items():
    with cases.case(name, name, axis=1) as c:
        x = table(c, 3, 12, 4)
        once = torch.stack([torch.randperm(12)[:5] for _ in range(6)]).reshape(2, 3, 5).transpose(1, 2).contiguous()
        index = c.input("index", once if name == "scatter" else indices(2, 9, 3, below=12))
        c.expect("y", put(x, 1, index, c.input("src", torch.randn(index.shape))))
with cases.case("scatter_add_line", "scatter_add", axis=0) as c:
    x, index = table(c, 7), c.input("index", indices(30, below=7))
    c.expect("y", torch.scatter_add(x, 0, index, c.input("src", torch.randn(30))))
with cases.case("scatter_u8", "scatter", axis=0) as c:
    x, index = c.input("x", picture[0]), c.input("index", torch.tensor([3, 1]).reshape(2, 1, 1).expand(2, 7, 3))
    c.expect("y", torch.scatter(x, 0, index, c.input("src", picture[1, :2])))
with cases.case("index_copy", "index_copy", axis=1) as c:
    x, index = table(c, 3, 6, 2), c.input("index", torch.tensor([4, 0, 5]))
    c.expect("y", torch.index_copy(x, 1, index, c.input("source", torch.randn(3, 3, 2))))
with cases.case("index_add", "index_add", axis=1) as c:
    x, index = table(c, 3, 6, 20), c.input("index", indices(9, below=6))
    c.expect("y", torch.index_add(x, 1, index, c.input("source", torch.randn(3, 9, 20))))
with cases.case("index_add_i32", "index_add", axis=0) as c:
    x, index = c.input("x", torch.arange(12).reshape(4, 3)), c.input("index", indices(7, below=4))
    c.expect("y", torch.index_add(x, 0, index, c.input("source", torch.arange(21).reshape(7, 3) - 9)))
# ONNX's, with PyTorch's indexing by tuples
with cases.case("gather_nd", "gather_nd") as c:
    x, at = table(c, 4, 5, 3), c.input("indices", torch.tensor([[3, 1], [0, -1], [3, 1], [-4, 4]]))
    c.expect("y", x[at[:, 0], at[:, 1]])
with cases.case("gather_nd_batch", "gather_nd", batch_dims=1) as c:
    x, at = table(c, 2, 5, 3), c.input("indices", indices(2, 4, 1, below=5))
    c.expect("y", torch.stack([x[b][at[b, :, 0]] for b in range(2)]))
with cases.case("scatter_nd", "scatter_nd") as c:
    x, at = table(c, 4, 5, 3), c.input("indices", torch.tensor([[3, 1], [0, -1], [-4, 2]]))
    c.expect("y", x.index_put((at[:, 0], at[:, 1]), c.input("updates", torch.randn(3, 3))))
with cases.case("scatter_nd_add", "scatter_nd_add") as c:
    x, at = table(c, 4, 5, 3), c.input("indices", torch.tensor([[3, 1], [0, -1], [3, 1], [-4, 2]]))
    c.expect("y", x.index_put((at[:, 0], at[:, 1]), c.input("updates", torch.randn(4, 3)), accumulate=True))
for largest in (True, False):
    with cases.case(f"topk_{'largest' if largest else 'smallest'}", "topk", k=3, axis=1, largest=int(largest)) as c:
        c.expect("y", torch.topk(c.input("x", torch.randn(2, 7, 3)), 3, 1, largest)[0])
    how = dict(axis=-1, descending=int(largest))
    word = "down" if largest else "up"
    nan = torch.tensor([[float("nan"), 1, -float("inf"), 0, float("inf"), -1, float("nan"), -0.0, 2, 1]])
    ties = torch.randint(-2, 3, (3, 12)).double()
    for kind, x in (("ties", ties), ("nan", nan), ("i32", ties.int())):
        with cases.case(f"sort_{kind}_{word}", "sort", **how) as c:
            c.expect("y", torch.sort(c.input("x", x, grad=kind == "ties"), dim=-1, descending=largest, stable=True)[0])
        with cases.case(f"argsort_{kind}_{word}", "argsort", **how) as c:
            c.expect("y", torch.sort(c.input("x", x, grad=False), dim=-1, descending=largest, stable=True)[1])
with cases.case("sort_columns", "sort", axis=0) as c:
    c.expect("y", torch.sort(c.input("x", torch.randn(40, 3)), 0)[0])
# made of others; behind them, whose numbers stay
with cases.case("flip", "flip", axis=1) as c:
    c.expect("y", torch.flip(c.input("x", torch.randn(2, 5, 3)), [1]))
for shift in (2, -9):
    with cases.case(f"roll_{shift}", "roll", shift=shift, axis=-2) as c:
        c.expect("y", torch.roll(c.input("x", torch.randn(2, 5, 3)), shift, -2))
for axis in (0, 1, -1):
    with cases.case(f"stack_{axis}", "stack", axis=axis) as c:
        c.expect("y", torch.stack([c.input(n, torch.randn(2, 3)) for n in "abc"], axis))
with cases.case("pixel_shuffle", "pixel_shuffle", factor=2) as c:
    c.expect("y", torch.nn.functional.pixel_shuffle(c.input("x", torch.randn(2, 8, 3, 2)), 2))
with cases.case("pixel_unshuffle", "pixel_unshuffle", factor=3) as c:
    c.expect("y", torch.nn.functional.pixel_unshuffle(c.input("x", torch.randn(2, 2, 3, 6)), 3))
for mode, word in enumerate(("constant", "reflect", "replicate", "circular")):
    with cases.case("pad_" + word, "pad", padding=[2, 1, 1, 2], mode=mode, value=0.75) as c:
        value = 0.75 if word == "constant" else None
        c.expect("y", torch.nn.functional.pad(c.input("x", torch.randn(1, 2, 3, 4)), (2, 1, 1, 2), mode=word, value=value))
with cases.case("pad_less", "pad", padding=[-1, 2, 0, -2]) as c:
    c.expect("y", torch.nn.functional.pad(c.input("x", torch.randn(2, 3, 4)), (-1, 2, 0, -2)))
for name, repeats in {"both": (2, 3), "last": (2,), "more": (2, 1, 2)}.items():
    with cases.case("tile_" + name, "tile", repeats=list(repeats)) as c:
        c.expect("y", torch.tile(c.input("x", torch.randn(2, 3)), repeats))
cases.write()
