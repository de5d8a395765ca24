#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cleave.onnx beside ONNX Runtime and the official node tests. Wants onnx and onnxruntime; PyTorch for one test of modules."""
import gc
import os
import pickle
import tempfile
import unittest
import zlib

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import cleave
from cleave import nn

try:
    import torch
except ImportError:
    torch = None

DEVICE = os.environ.get("CLEAVE_TEST_DEVICE", "host")
TURN = os.environ.get("CLEAVE_TURN", "0")
HERE = os.path.dirname(os.path.abspath(__file__))
RANDOM = numpy.random.default_rng(int(os.environ.get("CLV_SEED", 1)))


def random(*shape):
    return RANDOM.standard_normal(shape).astype(numpy.float32)


def mlp(op="Relu"):
    """Two layers with a batch norm between."""
    nodes = [helper.make_node("Gemm", ["x", "a.weight", "a.bias"], ["h"], transB=1),
             helper.make_node("BatchNormalization", ["h", "n.weight", "n.bias", "n.running_mean", "n.running_var"], ["k"]),
             helper.make_node(op, ["k"], ["r"]), helper.make_node("Gemm", ["r", "b.weight", "b.bias"], ["logits"], transB=1)]
    weights = {"a.weight": random(8, 6), "a.bias": random(8), "n.weight": random(8), "n.bias": random(8), "n.running_mean": random(8),
               "n.running_var": random(8) ** 2 + 1, "b.weight": random(3, 8), "b.bias": random(3)}
    graph = helper.make_graph(nodes, "mlp", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 6])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 3])],
                              [numpy_helper.from_array(a, n) for n, a in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def run(model, **feeds):
    """ONNX Runtime's results of a ModelProto or a file."""
    model = model if isinstance(model, str) else model.SerializeToString()
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds)


class Reading(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "net.onnx")
        self.proto = mlp()
        onnx.save(self.proto, self.path)
        self.addCleanup(self.folder.cleanup)

    def test_sources(self):
        x = random(5, 6)
        wanted, = run(self.proto, x=x)
        for source in (self.path, self.proto, self.proto.SerializeToString()):
            model = cleave.onnx.load(source, device=DEVICE)
            numpy.testing.assert_allclose(model.predict(x), wanted, rtol=1e-4, atol=1e-5)
            numpy.testing.assert_allclose(model.predict({"x": x[:2]}), wanted[:2], rtol=1e-4, atol=1e-5)
        self.assertEqual((model.inputs[0].name, model.inputs[0].shape, model.results[0].name), ("x", (None, 6), "logits"))
        self.assertEqual(model.opset, 17)
        del source
        gc.collect()
        numpy.testing.assert_allclose(model.predict(x[:3]), wanted[:3], rtol=1e-4, atol=1e-5)

    def test_trains(self):
        """Weights are the file's at first, and stay what was learnt when plans come."""
        x, y = random(32, 6), RANDOM.integers(0, 3, 32)
        model = cleave.onnx.load(self.path, device=DEVICE, optimizer="sgd", lr=0.1)
        model.predict(x)
        self.assertEqual(sorted(model.state_dict()), sorted(t.name for t in self.proto.graph.initializer))
        losses = [model.step(x, y) for _ in range(20)]
        self.assertLess(losses[-1], losses[0] / 2)
        learnt = model.state_dict()
        model.predict(x[:7])  # a new plan
        for name, value in model.state_dict().items():
            numpy.testing.assert_array_equal(value, learnt[name])
        self.assertLess(model.evaluate([(x, y)])["loss"], losses[0])
        model.to_onnx(os.path.join(self.folder.name, "trained.onnx"))
        wanted, = run(os.path.join(self.folder.name, "trained.onnx"), x=x)
        numpy.testing.assert_allclose(model.predict(x), wanted, rtol=1e-4, atol=1e-5)
        self.assertGreater(model.plan(x, y, device="null:rtx-4090").bytes, 0)
        again = pickle.loads(pickle.dumps(model))
        numpy.testing.assert_array_equal(again.predict(x), model.predict(x))
        history = model.fit([(x, y)], epochs=2, progress=False)
        self.assertEqual(len(history), 2)

    def test_refused(self):
        with self.assertRaisesRegex(cleave.UnsupportedError, "Nowhere: 1 node"):
            cleave.onnx.load(mlp("Nowhere"), device=DEVICE)
        with self.assertRaises(cleave.FileError):
            cleave.onnx.load("nowhere.onnx")
        with self.assertRaises(cleave.InvalidValueError):
            cleave.onnx.load(b"no model")
        model = cleave.onnx.load(self.proto, device=DEVICE)
        with self.assertRaisesRegex(cleave.ArgumentError, "1 inputs"):
            model.predict(random(2, 6), random(2, 6))
        with self.assertRaisesRegex(cleave.ArgumentError, "no input x"):
            model.predict({"y": random(2, 6)})
        with self.assertRaises(cleave.ShapeError):
            model.predict(random(2, 7))
        with self.assertRaises(cleave.StateError):
            cleave.onnx.load(self.proto, device=DEVICE).to_onnx("never.onnx")
        self.assertFalse(os.path.exists("never.onnx"))

    def test_types(self):
        """Integers and truth values come back as the file has them; numbers without a dimension stay so."""
        graph = helper.make_graph([helper.make_node("Add", ["x", "k"], ["y"]), helper.make_node("Greater", ["x", "k"], ["z"])], "g",
                                  [helper.make_tensor_value_info("x", TensorProto.INT64, ["n"]),
                                   helper.make_tensor_value_info("k", TensorProto.INT64, [])],
                                  [helper.make_tensor_value_info("y", TensorProto.INT64, ["n"]),
                                   helper.make_tensor_value_info("z", TensorProto.BOOL, ["n"])])
        model = cleave.onnx.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), device=DEVICE)
        y, z = model.predict(numpy.arange(4), numpy.array(2))
        self.assertEqual((y.dtype, y.tolist(), z.dtype, z.tolist()), (numpy.int64, [2, 3, 4, 5], numpy.bool_, [False] * 3 + [True]))


class Writing(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "net.onnx")
        self.addCleanup(self.folder.cleanup)

    def test_layers(self):
        model = nn.Model(nn.Sequential(nn.Embedding(10, 8), nn.LSTM(6), nn.Flatten(), nn.Dropout(0.5), nn.Linear(3)), device=DEVICE)
        ids = RANDOM.integers(0, 10, (4, 5))
        model.step(ids, RANDOM.integers(0, 3, 4))
        model.to_onnx(self.path)
        numpy.testing.assert_allclose(run(self.path, x=ids[:3])[0], model.predict(ids[:3]), rtol=1e-4, atol=1e-5)
        again = cleave.onnx.load(self.path, device=DEVICE)
        numpy.testing.assert_allclose(again.predict(ids), model.predict(ids), rtol=1e-4, atol=1e-5)

    def test_several(self):
        def two(a, b):
            return [cleave.ops.add(a, b), cleave.ops.relu(b)]

        model = nn.Model(two, device=DEVICE)
        a, b = random(3, 4), random(3, 4)
        cleave.onnx.save(model, self.path, example=(a, b), input_names=["left", "right"], batch=3)
        got = run(self.path, left=a, right=b)
        numpy.testing.assert_allclose(got[0], a + b, rtol=1e-5)
        numpy.testing.assert_allclose(got[1], numpy.maximum(b, 0))
        with self.assertRaisesRegex(cleave.InvalidValueError, "1 names for 2"):
            cleave.onnx.save(model, self.path, input_names=["left"])

    def test_faults_come_through(self):
        """A layer that raises while the library builds it."""
        def layer(x):
            if x.shape[0] == 3:
                raise KeyError("three")
            return x.graph.parameter("w", [4]) if x is None else cleave.ops.relu(x)

        model = nn.Model(layer, device=DEVICE)
        model.predict(random(2, 4))
        with self.assertRaises(KeyError):
            model.to_onnx(self.path)
        self.assertFalse(os.path.exists(self.path))

    @unittest.skipIf(torch is None, "no PyTorch here")
    def test_modules(self):
        module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
                                     torch.nn.Flatten(), torch.nn.Linear(4, 2))
        model = cleave.compile(module, device=DEVICE)
        x = random(5, 3, 8, 8)
        model.step(x, RANDOM.integers(0, 2, 5))
        model.to_onnx(self.path)
        numpy.testing.assert_allclose(run(self.path, input=x[:4])[0], model.predict(x[:4]), rtol=1e-4, atol=1e-5)
        wanted = model.state_dict()
        names = {t.name for t in onnx.load(self.path).graph.initializer}
        self.assertLessEqual({n for n in wanted if not n.endswith("num_batches_tracked")}, names)


class Backend(unittest.TestCase):
    def test_devices(self):
        backend = cleave.onnx.backend
        self.assertTrue(backend.supports_device("CPU"))
        self.assertFalse(backend.supports_device("gpu:77"))

    def test_node(self):
        y, = cleave.onnx.backend.run_node(helper.make_node("Add", ["a", "b"], ["y"]), [random(2, 3) * 0 + 1, numpy.ones((3,), numpy.float32)],
                                          DEVICE)
        numpy.testing.assert_array_equal(y, numpy.full((2, 3), 2, numpy.float32))

    def test_node_tests(self):
        """Those that the importer passes (tests/onnx/nodes.txt); by turns an eighth, on other devices than the host a 32nd."""
        from onnx.backend.test.case.node import collect_testcases
        backend, wrong, n = cleave.onnx.backend, [], 0
        with open(os.path.join(HERE, "..", "onnx", "nodes.txt")) as file:
            names = {line.strip() for line in file if not line.startswith("#")}
        for case in collect_testcases(None):
            if case.name not in names or not case.data_sets or (TURN and (zlib.crc32(case.name.encode()) ^ int(TURN)) % (8 if DEVICE == "host" else 32)):
                continue
            if not backend.is_compatible(case.model):
                continue
            n += 1
            inputs, wanted = ([numpy_helper.to_array(a) if isinstance(a, TensorProto) else a for a in part] for part in case.data_sets[0])
            try:
                got = backend.run_model(case.model, inputs, DEVICE)
                for y, w in zip(got, wanted):
                    few = w.dtype.name == "bfloat16"  # results have more digits here
                    if not few:
                        self.assertEqual(y.dtype, w.dtype)
                    numpy.testing.assert_allclose(y.astype(float), w.astype(float), rtol=1e-2 if few else 1e-3, atol=1e-2 if few else 1e-4)
                    self.assertEqual(y.shape, w.shape)
            except Exception as fault:
                wrong.append("%s: %s" % (case.name, str(fault)[:200]))
        print("%d node tests" % n)
        self.assertGreater(n, 20)
        self.assertEqual(wrong, [])


class Runtime(unittest.TestCase):
    @unittest.skipUnless(os.path.exists(cleave.onnx.runtime_library()), "libcleave_ort.so is not there")
    def test_session(self):
        proto, x = mlp(), random(4, 6)
        session = onnxruntime.InferenceSession(proto.SerializeToString(), cleave.onnx.session_options(onnxruntime, DEVICE))
        self.assertIn(cleave.onnx.PROVIDER, session.get_providers())
        numpy.testing.assert_allclose(session.run(None, {"x": x})[0], run(proto, x=x)[0], rtol=1e-4, atol=1e-5)
        self.assertTrue(cleave.onnx.register(onnxruntime))  # again


if __name__ == "__main__":
    unittest.main()
