# SPDX-License-Identifier: Apache-2.0
"""The execution provider in ONNX Runtime, beside its provider for CPUs. CLEAVE_ORT_LIBRARY is libcleave_ort.so, CLEAVE_TEST_DEVICE the
device (default: host). Wants onnx and onnxruntime 1.23 or newer."""
import gc
import os
import threading
import unittest
import zlib

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

DEVICE = os.environ.get("CLEAVE_TEST_DEVICE", "host")
SEED = int(os.environ.get("CLV_SEED", 1))
TURN = os.environ.get("CLEAVE_TURN", "0")
onnxruntime.set_default_logger_severity(4)
onnxruntime.register_execution_provider_library("cleave", os.path.abspath(os.environ["CLEAVE_ORT_LIBRARY"]))
DEVICES = [d for d in onnxruntime.get_ep_devices() if d.ep_name == "CleaveExecutionProvider"]
FLOAT, INT64, DOUBLE, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.DOUBLE, TensorProto.BOOL


def random(*shape):
    return numpy.random.default_rng(SEED).standard_normal(shape).astype(numpy.float32)


def model(nodes, inputs, outputs, weights=(), opset=18):
    """inputs, outputs: (name, type, shape); weights: (name, array)"""
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*v) for v in inputs],
                              [helper.make_tensor_value_info(*v) for v in outputs], [numpy_helper.from_array(a, n) for n, a in weights])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    onnx.checker.check_model(made)
    return made.SerializeToString()


def options(**given):
    o = onnxruntime.SessionOptions()
    o.log_severity_level = 4
    o.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    o.add_provider_for_devices(DEVICES[:1], dict({"device": DEVICE}, **given))
    return o


def taken(session):
    """Ops of the nodes that are Cleave's, part by part."""
    if not hasattr(session, "get_provider_graph_assignment_info"):  # before 1.24
        return None
    return [sorted(n.op_type for n in part.get_nodes()) for part in session.get_provider_graph_assignment_info()
            if part.ep_name == "CleaveExecutionProvider"]


def mlp(batch="batch"):
    return model([helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], transB=1), helper.make_node("Relu", ["h"], ["r"]),
                  helper.make_node("Gemm", ["r", "w2"], ["y"])],
                 [("x", FLOAT, [batch, 20])], [("y", FLOAT, [batch, 5])],
                 [("w1", random(16, 20)), ("b1", random(16)), ("w2", random(16, 5))])


class Provider(unittest.TestCase):
    def same(self, proto, feeds, parts=None):
        """Both providers give the same; result: Cleave's session."""
        session = onnxruntime.InferenceSession(proto, options())
        plain = onnxruntime.SessionOptions()
        plain.log_severity_level = 4
        reference = onnxruntime.InferenceSession(proto, plain, providers=["CPUExecutionProvider"])
        for got, wanted in zip(session.run(None, feeds), reference.run(None, feeds)):
            self.assertEqual((got.dtype, got.shape), (wanted.dtype, wanted.shape))
            numpy.testing.assert_allclose(got.astype(float), wanted.astype(float), rtol=1e-4, atol=1e-4)
        if parts is not None and taken(session) is not None:
            self.assertEqual(taken(session), parts)
        return session

    def test_offered(self):
        self.assertEqual(DEVICES[0].ep_vendor, "Cleave")

    def test_shapes(self):
        proto = mlp()
        session = self.same(proto, {"x": random(3, 20)}, [["Gemm", "Gemm", "Relu"]])
        wanted = onnxruntime.InferenceSession(proto, providers=["CPUExecutionProvider"])
        for n in (1, 7, 64, 3, 0, 7):
            x = random(n, 20)
            numpy.testing.assert_allclose(session.run(None, {"x": x})[0], wanted.run(None, {"x": x})[0], rtol=1e-4, atol=1e-4)
        for n in range(1, 80):  # more than there are plans for
            self.assertEqual(session.run(None, {"x": random(n, 20)})[0].shape, (n, 5))

    def test_fixed_shape(self):
        self.same(mlp(4), {"x": random(4, 20)})

    def test_convolutions(self):
        self.same(model([helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
                         helper.make_node("BatchNormalization", ["c", "s", "t", "m", "v"], ["n"]), helper.make_node("Relu", ["n"], ["r"]),
                         helper.make_node("GlobalAveragePool", ["r"], ["g"]), helper.make_node("Flatten", ["g"], ["y"])],
                        [("x", FLOAT, ["n", 3, "h", "w_"])], [("y", FLOAT, ["n", 4])],
                        [("w", random(4, 3, 3, 3)), ("b", random(4)), ("s", random(4)), ("t", random(4)), ("m", random(4)),
                         ("v", random(4) ** 2 + 1)]), {"x": random(2, 3, 15, 9)})

    def test_shapes_computed_from_shapes(self):
        self.same(model([helper.make_node("Shape", ["ids"], ["s"]), helper.make_node("Gather", ["table", "ids"], ["e"]),
                         helper.make_node("Concat", ["s", "two"], ["to"], axis=0), helper.make_node("Reshape", ["e", "to"], ["r"]),
                         helper.make_node("MatMul", ["r", "w"], ["y"])],
                        [("ids", INT64, ["n", "t"])], [("y", FLOAT, ["n", "t", 2, 6])],
                        [("table", random(11, 8)), ("two", numpy.array([2, 4])), ("w", random(4, 6))]),
                  {"ids": numpy.arange(10).reshape(2, 5)}, [["Concat", "Gather", "MatMul", "Reshape", "Shape"]])

    def test_types(self):
        for kind, dtype in ((INT64, numpy.int64), (TensorProto.INT32, numpy.int32), (TensorProto.UINT8, numpy.uint8),
                            (TensorProto.INT8, numpy.int8), (BOOL, numpy.bool_), (TensorProto.FLOAT16, numpy.float16)):
            x = (numpy.arange(12).reshape(3, 4) % 5).astype(dtype)
            self.same(model([helper.make_node("Concat", ["x", "x"], ["y"], axis=1), helper.make_node("Cast", ["x"], ["z"], to=FLOAT)],
                            [("x", kind, [3, 4])], [("y", kind, [3, 8]), ("z", FLOAT, [3, 4])]), {"x": x})

    def test_attributes(self):
        """One of each type: a number, numbers, a float, a text, a tensor."""
        self.same(model([helper.make_node("LeakyRelu", ["x"], ["a"], alpha=0.25), helper.make_node("Transpose", ["a"], ["b"], perm=[1, 0]),
                         helper.make_node("Pad", ["b", "p"], ["c"], mode="reflect"), helper.make_node("ConstantOfShape", ["n"], ["k"],
                         value=numpy_helper.from_array(numpy.array([3], numpy.float32))), helper.make_node("Add", ["c", "k"], ["d"]),
                         helper.make_node("MatMul", ["d", "w"], ["y"])],
                        [("x", FLOAT, [3, 4]), ("w", FLOAT, [5, 2])], [("y", FLOAT, [4, 2])],
                        [("p", numpy.array([0, 1, 0, 1])), ("n", numpy.array([1], numpy.int64))]),
                  {"x": random(3, 4), "w": random(5, 2)})

    def test_parts(self):
        """Around a node that Cleave has not, whose result has a shape of its own: others compute that."""
        proto = model([helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["r"]),
                       helper.make_node("NonZero", ["r"], ["nz"]), helper.make_node("Cast", ["nz"], ["f"], to=FLOAT),
                       helper.make_node("Transpose", ["f"], ["t"], perm=[1, 0]), helper.make_node("MatMul", ["t", "v"], ["y"])],
                      [("x", FLOAT, [4, 6])], [("y", FLOAT, [None, 3])], [("w", random(6, 5)), ("v", random(2, 3))])
        session = self.same(proto, {"x": random(4, 6)}, [["MatMul", "Relu"], ["Cast", "MatMul", "Transpose"]])
        self.same(proto, {"x": -numpy.abs(random(4, 6))})
        del session

    def test_left_to_others(self):
        """f64 is not computed in f32, cheap nodes are not worth the way, and graphs of nodes stay."""
        session = self.same(model([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", DOUBLE, [3, 4])], [("y", DOUBLE, [3, 2])],
                                  [("w", random(4, 2).astype(numpy.float64))]), {"x": random(3, 4).astype(numpy.float64)}, [])
        del session
        self.same(model([helper.make_node("Relu", ["x"], ["r"]), helper.make_node("NonZero", ["r"], ["y"])],
                        [("x", FLOAT, [3, 4])], [("y", INT64, [2, None])]), {"x": random(3, 4)}, [])
        body = helper.make_graph([helper.make_node("MatMul", ["s", "w"], ["t"]), helper.make_node("Identity", ["c"], ["d"])], "b",
                                 [helper.make_tensor_value_info("i", INT64, []), helper.make_tensor_value_info("c", BOOL, []),
                                  helper.make_tensor_value_info("s", FLOAT, [3, 3])],
                                 [helper.make_tensor_value_info("d", BOOL, []), helper.make_tensor_value_info("t", FLOAT, [3, 3])])
        self.same(model([helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Loop", ["n", "", "a"], ["l"], body=body),
                         helper.make_node("MatMul", ["l", "w"], ["y"])], [("x", FLOAT, [3, 3]), ("n", INT64, [])], [("y", FLOAT, [3, 3])],
                        [("w", random(3, 3))]), {"x": random(3, 3), "n": numpy.array(3)}, [["MatMul"]])  # of a Loop's result no rank is known

    def test_refused(self):
        proto = mlp()
        for given, word in (({"device": "gpu:77"}, "gpu:77"), ({"devise": "cpu"}, "devise")):
            with self.assertRaises(Exception) as raised:
                onnxruntime.InferenceSession(proto, options(**given))
            self.assertIn(word, str(raised.exception))
        session = onnxruntime.InferenceSession(
            model([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", FLOAT, ["a", "b"]), ("w", FLOAT, ["c", "d"])],
                  [("y", FLOAT, ["a", "d"])]), options())
        with self.assertRaises(Exception) as raised:
            session.run(None, {"x": random(2, 3), "w": random(4, 5)})
        self.assertIn("matmul", str(raised.exception))
        self.assertEqual(session.run(None, {"x": random(2, 3), "w": random(3, 5)})[0].shape, (2, 5))

    def test_threads(self):
        session = onnxruntime.InferenceSession(mlp(), options())
        wanted = {n: session.run(None, {"x": random(n, 20)})[0] for n in range(1, 5)}
        wrong = []

        def work(n):
            for _ in range(30):
                if not numpy.array_equal(session.run(None, {"x": random(n, 20)})[0], wanted[n]):
                    wrong.append(n)

        threads = [threading.Thread(target=work, args=(n,)) for n in wanted]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_many_sessions(self):
        """None keeps anything: memory of the process stays where it is."""
        def held():
            gc.collect()
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096

        proto = model([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", FLOAT, ["n", 512])], [("y", FLOAT, ["n", 1024])],
                      [("w", random(512, 1024))])

        def use():
            onnxruntime.InferenceSession(proto, options()).run(None, {"x": random(9, 512)})

        for _ in range(20):
            use()
        before = held()
        for _ in range(60):
            use()
        self.assertLess(held() - before, 16 << 20)

    def test_nodes(self):
        """The official node tests, those that ONNX Runtime passes: by turns an eighth, on other devices than the host a 32nd."""
        from onnx.backend.test.case.node import collect_testcases
        n, wrong = 0, []
        for case in collect_testcases(None):
            if TURN and (zlib.crc32(case.name.encode()) ^ int(TURN)) % (8 if DEVICE == "host" else 32) or not case.data_sets:
                continue
            given, right = case.data_sets[0]
            feeds = {v.name: numpy_helper.to_array(a) if isinstance(a, TensorProto) else a
                     for v, a in zip(case.model.graph.input, given) if v.name and a is not None}
            proto, plain = case.model.SerializeToString(), onnxruntime.SessionOptions()
            plain.log_severity_level = 4
            try:
                wanted = onnxruntime.InferenceSession(proto, plain, providers=["CPUExecutionProvider"]).run(None, feeds)
            except Exception:
                continue
            n += 1
            try:
                got = onnxruntime.InferenceSession(proto, options()).run(None, feeds)
            except Exception as fault:
                wrong.append("%s: %s" % (case.name, str(fault)[:200]))
                continue
            right = [numpy_helper.to_array(a) if isinstance(a, TensorProto) else a for a in right]
            if not all(close(a, b) for a, b in zip(got, wanted)) and not all(close(a, b) for a, b in zip(got, right)):
                wrong.append(case.name)
        print("%d node tests" % n)
        self.assertGreater(n, 20)
        self.assertEqual(wrong, [])


def close(a, b):
    if isinstance(b, list):
        return len(a) == len(b) and all(close(x, y) for x, y in zip(a, b))
    if a is None or b is None:
        return a is b
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind not in "biuf":
        return bool((a == b).all())
    return numpy.allclose(a.astype(float), b.astype(float), rtol=1e-3, atol=1e-4, equal_nan=True)


if __name__ == "__main__":
    unittest.main()
