#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Writes files/ beside itself, and the corpus of fuzz_onnx, with the package `onnx` of PyPI (made with 1.23.2). What file.c expects of
# them are the same rules: element i of a tensor is (i * 7 + 3) % 11, and so on.
import os
import shutil
import numpy
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

here = os.path.dirname(os.path.abspath(__file__))
files = os.path.join(here, "files")
corpus = os.path.join(here, "..", "fuzz", "corpus", "onnx")
os.makedirs(files, exist_ok=True)
os.makedirs(corpus, exist_ok=True)


def opset(version=17, domain=""):
    return h.make_opsetid(domain, version)


def model(graph, **more):
    more.setdefault("opset_imports", [opset()])
    more.setdefault("ir_version", 8)
    return h.make_model(graph, producer_name="maker", producer_version="1.0", **more)


def save(name, m, fuzz=True):
    path = os.path.join(files, name)
    with open(path, "wb") as file:
        file.write(m.SerializeToString())
    if fuzz and os.path.getsize(path) <= 4096:
        shutil.copy(path, os.path.join(corpus, name.removesuffix(".onnx")))


def value(name, dims=("N", 4), dtype=T.FLOAT):
    return h.make_tensor_value_info(name, dtype, dims)


def numbers(n):
    return [(i * 7 + 3) % 11 for i in range(n)]


# ---- all that a model has -------------------------------------------------------------------------------------------
weight = h.make_tensor("w", T.FLOAT, [4, 3], numpy.array(numbers(12), "<f4").tobytes(), raw=True)
bias = h.make_tensor("b", T.FLOAT, [3], [0.5, -1.5, 2.5])
nodes = [
    h.make_node("MatMul", ["x", "w"], ["m"], name="product"),
    h.make_node("Add", ["m", "b"], ["s"], name="sum", doc_string="passed over"),
    h.make_node("Dropout", ["s", "", ""], ["d", ""], name=""),
    h.make_node("Relu", ["d"], ["y"], name="last", domain="ai.onnx"),
]
graph = h.make_graph(nodes, "plain", [value("x"), h.make_tensor_value_info("b", T.FLOAT, [3])],
                     [value("y", ("N", None)), value("x")], [weight, bias],
                     value_info=[value("m", ("N", 3)), h.make_tensor_value_info("s", T.FLOAT, None),
                                 h.make_tensor_sequence_value_info("d", T.FLOAT, None), value("of nobody")])
m = model(graph, opset_imports=[opset(17), opset(3, "of.somebody")])
m.domain = "some.where"
m.model_version = 5
h.set_model_props(m, {"key": "its value", "other": ""})
save("plain.onnx", m)

# ---- attributes -----------------------------------------------------------------------------------------------------
inner = h.make_graph([h.make_node("Identity", ["x"], ["inner y"])], "inner", [], [value("inner y")])
other = h.make_graph([h.make_node("Neg", ["x"], ["other y"])], "other", [], [value("other y")])
one = h.make_tensor("one", T.INT64, [2], [5, -6])
attributes = {
    "f": 1.5, "i": -7, "s": b"a\x00b", "t": one, "g": inner, "floats": [0.25, -2.0, 1e30], "ints": [1, -1, 2**62],
    "strings": [b"first", b"", b"third"], "tensors": [one, weight], "graphs": [inner, other],
}
node = h.make_node("Any", ["x"], ["y"], name="all", domain="of.somebody", **attributes)
node.attribute.append(h.make_attribute("empty", [], attr_type=onnx.AttributeProto.INTS))
node.attribute.append(h.make_attribute("type", h.make_tensor_type_proto(T.FLOAT, [1])))
old = onnx.AttributeProto(name="old", i=3)  # without its type, as in IR version 1
node.attribute.append(old)
unpacked = onnx.AttributeProto(name="zero", type=onnx.AttributeProto.FLOAT)
node.attribute.append(unpacked)
save("attributes.onnx", model(h.make_graph([node], "attributes", [value("x")], [value("y")])))

# ---- every type of element, raw and as a list of numbers -----------------------------------------------------------
lists, raws = [], []
for name, dtype in T.DataType.items():
    if dtype in (T.UNDEFINED, T.STRING) or name.startswith("FLOAT6"):
        continue
    bits = {T.COMPLEX64: 64, T.COMPLEX128: 128, T.DOUBLE: 64, T.INT64: 64, T.UINT64: 64, T.FLOAT: 32, T.INT32: 32,
            T.UINT32: 32, T.INT16: 16, T.UINT16: 16, T.FLOAT16: 16, T.BFLOAT16: 16, T.UINT4: 4, T.INT4: 4,
            T.FLOAT4E2M1: 4, T.UINT2: 2, T.INT2: 2}.get(dtype, 8)
    n_bytes = (5 * bits + 7) // 8
    data = bytes((i * 37 + 11) % 128 for i in range(n_bytes))
    raws.append(T(name="raw " + name, data_type=dtype, dims=[5], raw_data=data))
    t = T(name="list " + name, data_type=dtype, dims=[5])
    if dtype in (T.FLOAT, T.COMPLEX64):
        t.float_data.extend(numpy.frombuffer(data, "<f4").tolist())
    elif dtype in (T.DOUBLE, T.COMPLEX128):
        t.double_data.extend(numpy.frombuffer(data, "<f8").tolist())
    elif dtype == T.INT64:
        t.int64_data.extend(numpy.frombuffer(data, "<i8").tolist())
    elif dtype in (T.UINT64, T.UINT32):
        t.uint64_data.extend(numpy.frombuffer(data, "<u8" if dtype == T.UINT64 else "<u4").tolist())
    else:
        size = max(bits // 8, 1)
        t.int32_data.extend(int.from_bytes(data[i:i + size], "little") for i in range(0, n_bytes, size))
    lists.append(t)
texts = h.make_tensor("texts", T.STRING, [3], [b"one", b"", b"th\x00ree"])
negative = h.make_tensor("negative", T.INT8, [3], [-1, -128, 5])
scalar = h.make_tensor("scalar", T.FLOAT, [], [2.5])
nothing = h.make_tensor("nothing", T.FLOAT, [3, 0, 2], [])
save("types.onnx", model(h.make_graph([h.make_node("Identity", ["scalar"], ["y"])], "types", [], [value("y", [])],
                                      lists + raws + [texts, negative, scalar, nothing])), fuzz=False)
save("texts.onnx", model(h.make_graph([h.make_node("Identity", ["texts"], ["y"])], "texts", [],
                                      [value("y", [3], T.STRING)], [texts, negative, scalar, nothing])))

# ---- graphs in graphs -----------------------------------------------------------------------------------------------
then = h.make_graph([h.make_node("Add", ["x", "k"], ["t1"]), h.make_node("Mul", ["t1", "late"], ["t2"])], "then", [],
                    [value("t2")], [h.make_tensor("k", T.FLOAT, [1], [3.0])])
otherwise = h.make_graph([h.make_node("Identity", ["x"], ["x2"])], "else", [], [value("x2")])
branch = h.make_node("If", ["c"], ["y"], name="branch", then_branch=then, else_branch=otherwise)
late = h.make_node("Neg", ["x"], ["late"], name="late")
save("nested.onnx", model(h.make_graph([branch, late], "nested", [value("x"), value("c", [], T.BOOL)], [value("y")])))

# ---- nodes in another order -----------------------------------------------------------------------------------------
chain = [h.make_node("Relu", [f"v{i}"], [f"v{i + 1}"], name=f"n{i}") for i in range(6)]
save("unordered.onnx", model(h.make_graph(chain[::-1], "unordered", [value("v0")], [value("v6")])))

# ---- functions ------------------------------------------------------------------------------------------------------
leaf = h.make_function("mine", "Leaf", ["a", "b"], ["r"], [
    h.make_node("Add", ["a", "b"], ["mid"], name="add"),
    h.make_node("LeakyRelu", ["mid"], ["r"]),
], [opset(18)], ["alpha"])
leaf.node[1].attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT))
leaf.node[0].attribute.append(onnx.AttributeProto(name="gone", ref_attr_name="nowhere", type=onnx.AttributeProto.INT))
body = h.make_graph([h.make_node("Leaf", ["p", "q"], ["w"], domain="mine", name="deep")], "body", [], [value("w")])
body2 = h.make_graph([h.make_node("Identity", ["q"], ["w"])], "body2", [], [value("w")])
outer = h.make_function("mine", "Outer", ["p", "c", "q"], ["u", "v"], [
    h.make_node("Leaf", ["p", "p"], ["q1"], domain="mine", name="leaf"),
    h.make_node("If", ["c"], ["u"], name="choose", then_branch=body, else_branch=body2),
    h.make_node("Identity", ["q1"], ["v"], name="copy"),
], [opset(18), opset(1, "mine")], [])
outer.attribute_proto.append(h.make_attribute("scale", 4.0))
outer.node[0].attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="scale", type=onnx.AttributeProto.FLOAT))
calls = [
    h.make_node("Outer", ["x", "c", "z"], ["y1", ""], domain="mine", name="first"),
    h.make_node("Outer", ["y1", "c", "z"], ["y2", "y3"], domain="mine", name="first", scale=9.0),
    h.make_node("Relu", ["y3"], ["first/mid"], name="taken"),
]
save("functions.onnx", model(
    h.make_graph(calls, "calls", [value("x"), value("c", [], T.BOOL), value("z")], [value("y2"), value("first/mid")]),
    opset_imports=[opset(17), opset(1, "mine")], functions=[leaf, outer]))

# ---- external data --------------------------------------------------------------------------------------------------
external = T(name="far", data_type=T.FLOAT, dims=[2, 2], data_location=T.EXTERNAL)
for key, text in (("location", "weights.bin"), ("offset", "8"), ("length", "16")):
    external.external_data.add(key=key, value=text)
rest = T(name="rest", data_type=T.UINT8, dims=[3], data_location=T.EXTERNAL)
for key, text in (("location", "weights.bin"), ("offset", "1")):
    rest.external_data.add(key=key, value=text)
save("external.onnx", model(h.make_graph([h.make_node("Identity", ["far"], ["y"])], "external", [], [value("y", [2, 2])],
                                         [external, rest])))
with open(os.path.join(files, "weights.bin"), "wb") as file:
    file.write(bytes(range(8)) + numpy.array([1, -2, 3.5, 4], "<f4").tobytes())

# ---- seeds for the fuzz driver alone --------------------------------------------------------------------------------
with open(os.path.join(corpus, "tensor"), "wb") as file:
    file.write(weight.SerializeToString())
cycle = [h.make_node("Add", ["x", "c"], ["a"]), h.make_node("Neg", ["a"], ["c"])]
with open(os.path.join(corpus, "cycle"), "wb") as file:
    file.write(model(h.make_graph(cycle, "cycle", [value("x")], [value("c")])).SerializeToString())
sparse = onnx.SparseTensorProto(dims=[3])
sparse.values.CopyFrom(h.make_tensor("w", T.FLOAT, [1], [2.0]))
sparse.indices.CopyFrom(h.make_tensor("", T.INT64, [1], [1]))
with open(os.path.join(corpus, "sparse"), "wb") as file:
    file.write(model(h.make_graph([h.make_node("Neg", ["w"], ["y"])], "sparse", [], [value("y", [3])],
                                  sparse_initializer=[sparse])).SerializeToString())
turn = h.make_graph([
    h.make_node("If", ["go"], ["b"], then_branch=h.make_graph([h.make_node("Add", ["a", "w"], ["t"])], "then", [], [value("t")],
                                                              [h.make_tensor("w", T.FLOAT, [1], [3.0])]),
                else_branch=h.make_graph([h.make_node("Neg", ["a"], ["t"])], "else", [], [value("t")], [h.make_tensor("w", T.FLOAT, [2], [1, 2])])),
    h.make_node("Less", ["i", "n"], ["on"]), h.make_node("SequenceInsert", ["list", "b"], ["longer"]),
], "turn", [value("i", [], T.INT64), value("go", [], T.BOOL), value("a"), value("list")], [value("on"), value("b"), value("longer"), value("b")])
step = h.make_graph([h.make_node("Add", ["s", "r"], ["t"]), h.make_node("Neg", ["t"], ["u"])], "step", [value("s"), value("r")], [value("t"), value("u")])
with open(os.path.join(corpus, "loops"), "wb") as file:
    file.write(model(h.make_graph([
        h.make_node("SequenceEmpty", [], ["none"]), h.make_node("Loop", ["n", "", "x", "none"], ["y", "list", "rows"], body=turn),
        h.make_node("Scan", ["zero", "rows"], ["last", "sums"], body=step, num_scan_inputs=1, scan_input_directions=[1]),
        h.make_node("ConcatFromSequence", ["list"], ["joined"], axis=0)], "loops", [value("x", [2])], [value("sums"), value("joined")],
        [h.make_tensor("n", T.INT64, [], [3]), h.make_tensor("zero", T.FLOAT, [2], [0, 0])])).SerializeToString())
twice = [h.make_function("mine", f"F{i}", ["a"], ["r"],
                         [h.make_node(f"F{i + 1}", ["a"], ["m"], domain="mine"),
                          h.make_node(f"F{i + 1}", ["m"], ["r"], domain="mine")], [opset(17)]) for i in range(12)]
twice.append(h.make_function("mine", "F12", ["a"], ["r"], [h.make_node("Neg", ["a"], ["r"])], [opset(17)]))
m = model(h.make_graph([h.make_node("F9", ["x"], ["y"], domain="mine")], "often", [value("x")], [value("y")]),
          functions=twice)
with open(os.path.join(corpus, "often"), "wb") as file:
    file.write(m.SerializeToString())
