#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The package without PyTorch: devices, graphs, ops, errors, lifetimes. By unittest; wants cffi and NumPy."""
import gc
import inspect
import os
import pickle
import random
import struct
import subprocess
import sys
import tempfile
import threading
import types
import unittest
from unittest import mock

import numpy

import cleave
from cleave import callbacks, data, nn
from cleave import graph as g
from cleave._library import _use_packaged_driver, ffi, lib, runtime

DEVICE = os.environ.get("CLEAVE_TEST_DEVICE", "host")


class Devices(unittest.TestCase):
    def test_there_is_the_host(self):
        self.assertEqual(cleave.devices()[-1].name, "host")
        self.assertEqual(cleave.Device("host"), cleave.devices()[-1])

    def test_cards_that_are_not_here(self):
        self.assertEqual(cleave.Device("null:rtx-4090").memory_bytes, 24 * 2**30)
        self.assertGreater(len(cleave.devices(cards=True)), len(cleave.devices()))

    def test_no_such_device(self):
        with self.assertRaisesRegex(cleave.NotFoundError, "there is no device 'quantum'"):
            cleave.Device("quantum")
        with self.assertRaises(LookupError):
            cleave.Device("quantum")

    def test_import_wants_no_pytorch(self):
        code = "import sys, cleave; assert 'torch' not in sys.modules; print(cleave.__version__)"
        self.assertEqual(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout.decode().strip(),
                         cleave.__version__)

    def test_no_driver(self):
        """Without one the host is told to be slow; the extra `cpu` is found where packages are."""
        with tempfile.TemporaryDirectory() as folder:
            code = "import cleave; print(cleave.Device().name)"
            said = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env=dict(os.environ, OCL_ICD_VENDORS=folder, OCL_ICD_FILENAMES=""))
            self.assertEqual(said.stdout.decode().strip(), "host")
            self.assertIn("an OpenCL driver for this CPU would be much faster: Debian's pocl-opencl-icd, or `pip install 'cleave[cpu]'`",
                          said.stderr.decode())
            driver, loader = (os.path.join(folder, "lib", name) for name in ("libintelocl.so", "libOpenCL.so.1"))
            os.mkdir(os.path.join(folder, "lib"))
            for path in (driver, loader):
                open(path, "w").close()
            clean = {k: v for k, v in os.environ.items() if "OCL_ICD" not in k and k not in ("OPENCL_VENDOR_PATH", "LD_LIBRARY_PATH")}
            with mock.patch.dict(os.environ, clean, clear=True):
                loaded = []
                _use_packaged_driver(["/nowhere", folder], system="/nowhere", load=loaded.append)
                self.assertEqual([os.environ.get(v) for v in ("OCL_ICD_VENDORS", "OCL_ICD_FILENAMES", "LD_LIBRARY_PATH")],
                                 [driver, driver, os.path.dirname(driver)])
                self.assertEqual(loaded, [driver, loader])
            open(os.path.join(folder, "some.icd"), "w").close()
            for here, system in ((clean, folder), (dict(clean, OCL_ICD_VENDORS="/mine"), "/nowhere")):
                with mock.patch.dict(os.environ, here, clear=True):
                    _use_packaged_driver([folder], system=system)
                    self.assertEqual(dict(os.environ), here)

    def test_a_library_that_is_not_there(self):
        said = subprocess.run([sys.executable, "-c", "import cleave"], stderr=subprocess.PIPE,
                              env=dict(os.environ, CLEAVE_LIBRARY="/nowhere/libcleave.so")).stderr.decode()
        self.assertIn("ImportError: Cleave's library cannot be loaded: ", said)
        self.assertIn("CLEAVE_LIBRARY", said)


def compute(build, *arrays):
    """What a graph of these arrays gives."""
    graph = cleave.Graph()
    inputs = [graph.input("x%d" % i, a.dtype, a.shape) for i, a in enumerate(arrays)]
    y = graph.output(build(*inputs), "y")
    config = ffi.new("clv_plan_config *")
    config.device = cleave.Device(DEVICE)._pointer
    from cleave._library import make
    here = runtime()
    plan = make("clv_plan", lambda out: lib.clv_plan_create(graph.pointer, config, out), lib.clv_plan_destroy, graph.handle)
    session = make("clv_session", lambda out: lib.clv_session_create(here.pointer, ffi.NULL, out), lib.clv_session_destroy, here.handle)
    run = make("clv_run", lambda out: lib.clv_run_create(session.pointer, plan.pointer, out), lib.clv_run_destroy, session, plan)
    for t, a in zip(inputs, arrays):
        here.check(lib.clv_run_feed(run.pointer, t.pointer, ffi.from_buffer(a), a.nbytes))
    ticket = ffi.new("int64_t *")
    here.check(lib.clv_run_step(run.pointer, ticket))
    result = numpy.empty(y.shape, y.dtype)
    here.check(lib.clv_run_fetch(run.pointer, ticket[0], y.pointer, ffi.from_buffer(result), result.nbytes))
    return result


class Ops(unittest.TestCase):
    def test_every_signature_has_a_function(self):
        i = 0
        while lib.clv_op_get(i) != ffi.NULL:
            name = ffi.string(lib.clv_op_get(i).name).decode()
            self.assertTrue(callable(getattr(cleave.ops, name)), name)
            self.assertIn(name + "(", getattr(cleave.ops, name).__doc__)
            i += 1
        self.assertGreater(i, 100)

    def test_results(self):
        a, b = numpy.random.rand(3, 4).astype("f"), numpy.random.rand(4, 5).astype("f")
        numpy.testing.assert_allclose(compute(cleave.ops.matmul, a, b), a @ b, rtol=1e-5)
        numpy.testing.assert_array_equal(compute(lambda x: cleave.ops.permute(x, axes=[1, 0]), a), a.T)
        numpy.testing.assert_array_equal(compute(lambda x: cleave.ops.slice(x, axis=1, start=1, length=2), a), a[:, 1:3])
        numpy.testing.assert_array_equal(compute(lambda x: cleave.ops.cast(x, dtype="int32"), a * 10), (a * 10).astype("i4"))

    def test_mistakes(self):
        graph = cleave.Graph()
        x = graph.input("x", "float32", [2, 3])
        with self.assertRaisesRegex(TypeError, "relu has no attribute 'slope'; it has none"):
            cleave.ops.relu(x, slope=1)
        with self.assertRaisesRegex(cleave.UnsupportedError, "Cleave has no op 'quux'"):
            g.call(graph, "quux", [x])
        with self.assertRaises(cleave.ShapeError):
            cleave.ops.matmul(x, x)
        with self.assertRaisesRegex(cleave.UnsupportedError, "there is no dtype float64"):
            cleave.Graph().input("x", "float64", [1])
        with self.assertRaisesRegex(cleave.UnsupportedError, "at most 8 dimensions"):
            cleave.Graph().input("x", "float32", [1] * 9)


def lines(n=64):
    x = numpy.random.default_rng(1).normal(size=(n, 4)).astype("f")
    return x, (x.sum(1) > 0).astype("i4")


def mlp(**settings):
    return nn.Model(nn.Sequential(nn.Linear(8), nn.ReLU(), nn.Linear(2)), device=DEVICE, **dict({"optimizer": "sgd", "lr": 0.1}, **settings))


class Faults(unittest.TestCase):
    """What Python's own exceptions would tell badly."""

    def test_kinds(self):
        graph, model = cleave.Graph(), nn.Model(nn.Sequential(nn.Linear(2)), device="host")
        x = graph.input("x", "float32", [2, 2])
        model.predict(numpy.zeros((2, 3), "f"))
        with tempfile.NamedTemporaryFile() as short:
            short.write(b"\0")
            short.flush()
            for kind, sentence, call in (
                    (TypeError, "relu wants tensors of a graph, and this is 3", lambda: cleave.ops.relu(3)),
                    (TypeError, "mul_scalar: 'value' cannot be 'x'", lambda: cleave.ops.mul_scalar(x, value="x")),
                    (TypeError, "reshape: 'shape' cannot be ", lambda: cleave.ops.reshape(x, shape=[None])),
                    (TypeError, "a budget is a number of bytes", lambda: cleave.Device("host").set_budget("much")),
                    (TypeError, "a path, bytes or a ModelProto, and this is a int", lambda: cleave.onnx.load(3)),
                    (TypeError, "a model of this package, and this is a dict", lambda: cleave.onnx.save({}, "net.onnx")),
                    (LookupError, "missing: 0.bias, 0.weight; not of this model: w", lambda: model.load_state_dict({"w": 1})),
                    (OSError, "get Fashion-MNIST's four files", lambda: data.fashion_mnist("/nowhere")),
                    (ValueError, "is no IDX file", lambda: data.idx(short.name))):
                with self.assertRaisesRegex(kind, sentence) as caught:
                    call()
                self.assertIsInstance(caught.exception, cleave.Error)


class Watching(unittest.TestCase):
    def test_profile(self):
        model, (x, y) = mlp(), lines()
        found = model.profile(x, y, steps=6)
        self.assertGreaterEqual(found.steps, 4)
        self.assertLessEqual({"0", "2"}, {row["name"] for row in found.layers})
        self.assertTrue(any(row["name"].startswith("linear") and row["seconds"] > 0 for row in found.ops), found.ops)
        self.assertGreaterEqual(found.step_seconds * 1.01, sum(d["busy"] for d in found.devices))
        self.assertIn("ms a step, of", repr(found))
        self.assertEqual(model.n_steps, 7)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            self.assertTrue(all(row["backward"] == 0 for row in model.profile(x, train=False, trace=path).ops))
            self.assertIn('"traceEvents"', open(path).read())
        with self.assertRaisesRegex(cleave.ArgumentError, "give train=False"):
            model.profile(x)
        model.step(x, y)  # and it goes on

    def test_plot(self):
        model, (x, y) = mlp(), lines()
        with self.assertRaisesRegex(cleave.StateError, "nothing to plot yet"):
            model.plot()
        batches = data.Batches(x, y)
        model.fit(batches, epochs=2, validation=batches, progress=False)
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            with self.assertRaisesRegex(cleave.UnsupportedError, "plot wants matplotlib: pip install matplotlib"):
                model.plot(x, y)
            return
        with tempfile.TemporaryDirectory() as folder:
            figure = model.plot(x, y, path=os.path.join(folder, "curves.png"))
            self.assertGreater(os.path.getsize(os.path.join(folder, "curves.png")), 1000)
        curves, bars = figure.axes
        self.assertEqual([line.get_label() for line in curves.lines], ["training", "validation"])
        self.assertLessEqual({"0", "2"}, {label.get_text() for label in bars.get_yticklabels()})

    def test_early_stopping(self):
        model, (x, y) = mlp(lr=0.0), lines()
        self.assertEqual(len(model.fit(data.Batches(x, y, shuffle=False), epochs=9, progress=False, callbacks=[callbacks.EarlyStopping(2)])), 3)
        stop = callbacks.EarlyStopping(1, "validation.accuracy")
        told = [stop({"loss": 1, "validation": {"loss": 3, "accuracy": a}}) for a in (0.5, 0.6, 0.6)]
        self.assertEqual(told, [False, False, True])
        with self.assertRaisesRegex(cleave.InvalidValueError, "no 'validation.f1' to go by; there are loss, validation.loss"):
            callbacks.EarlyStopping(monitor="validation.f1")({"loss": 1, "validation": {"loss": 2}})

    def test_best_checkpoint(self):
        model, (x, y) = mlp(), lines()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "best.safetensors")
            best = callbacks.BestCheckpoint(path, "loss")
            model.fit(data.Batches(x, y, shuffle=False), progress=False, callbacks=[best])
            kept = model.state_dict()
            first = best.best
            for loss in (first + 1, first - 1):  # a worse one leaves the file
                model.step(x, y)
                best({"loss": loss, "validation": None})
                other = mlp()
                other.predict(x)
                other.load(path)
                same = all((other.state_dict()[n] == kept[n]).all() for n in kept)
                self.assertEqual(same, loss > first)

    def test_tensorboard(self):
        self.assertEqual(callbacks.crc32c(b"123456789"), 0xE3069283)
        model, (x, y) = mlp(), lines()
        batches = data.Batches(x, y, batch_size=16)
        with tempfile.TemporaryDirectory() as folder:
            board = callbacks.TensorBoard(folder)
            told = model.fit(batches, epochs=2, validation=batches, progress=False, callbacks=[board])
            with open(board.path, "rb") as f:
                text = f.read()
            if os.environ.get("CLEAVE_TENSORBOARD_DIR"):  # for TensorBoard itself, by hand
                with open(os.path.join(os.environ["CLEAVE_TENSORBOARD_DIR"], os.path.basename(board.path)), "wb") as f:
                    f.write(text)
        events = []
        while text:
            n, = struct.unpack("<Q", text[:8])
            self.assertEqual(text[8:12], callbacks._masked(text[:8]))
            events.append(text[12:12 + n])
            self.assertEqual(text[12 + n:16 + n], callbacks._masked(events[-1]))
            text = text[16 + n:]
        self.assertEqual(len(events), 3)
        self.assertTrue(events[0].endswith(b"brain.Event:2"))
        at = events[2].index(b"train/loss") + len("train/loss")
        self.assertEqual(struct.unpack("<f", events[2][at + 1:at + 5])[0], numpy.float32(told[1]["loss"]))
        self.assertEqual(events[2][9:11], bytes([2 << 3, 8]))  # step 8

    def test_schedules_go_on(self):
        model, (x, y) = mlp(), lines()
        seen = []
        for _ in range(2):
            model.fit(data.Batches(x, y, batch_size=16), epochs=2, progress=False, schedule=lambda i: seen.append(i) or 0.5 ** i)
        self.assertEqual(seen, list(range(16)))
        self.assertEqual([t["step"] for t in model.history], [4, 8, 12, 16])
        self.assertAlmostEqual(model.history[-1]["rate"], 0.1 * 0.5 ** 15)

    def test_progress(self):
        code = ("import sys, numpy, cleave\nfrom cleave import nn, data\nsys.stdout.isatty = lambda: %s\n"
                "m = nn.Model(nn.Sequential(nn.Linear(2)), device='host')\n"
                "m.fit(data.Batches(numpy.ones((64, 4), 'f'), numpy.zeros(64, 'i4'), batch_size=1), epochs=2)\n")
        for terminal in (True, False):
            said = subprocess.run([sys.executable, "-c", code % terminal], stdout=subprocess.PIPE, check=True).stdout.decode()
            self.assertRegex(said, r"epoch 2/2  loss 0\.\d{4}  \d+\.\d s")
            self.assertEqual("\r" in said, terminal)
            self.assertEqual(said.count("\n"), 2)

    def test_copies(self):
        model, (x, y) = mlp(optimizer=cleave.optim.SGD(0.1, momentum=0.9)), lines()
        model.fit(data.Batches(x, y), epochs=2, progress=False)
        other = pickle.loads(pickle.dumps(model))
        numpy.testing.assert_array_equal(other.predict(x), model.predict(x))
        self.assertEqual((other.history, repr(other.optimizer)), (model.history, repr(model.optimizer)))
        other.step(x, y)
        unused = pickle.loads(pickle.dumps(mlp()))
        unused.step(x, y)
        again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(model))))  # before it has seen a batch
        numpy.testing.assert_array_equal(again.predict(x), model.predict(x))


class Pictures(unittest.TestCase):
    def test_folders(self):
        try:
            from PIL import Image
        except ImportError:
            with self.assertRaisesRegex(cleave.UnsupportedError, "ImageFolder wants Pillow, which reads pictures: pip install pillow"):
                data.ImageFolder(".")
            return
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(cleave.NotFoundError, "has no pictures in a folder for each class"):
                data.ImageFolder(folder)
            for k, (name, colour) in enumerate((("red", (255, 0, 0)), ("blue", (0, 0, 255)))):
                os.mkdir(os.path.join(folder, name))
                for i in range(3):
                    Image.new("RGB", (20 + 10 * i, 16), colour).save(os.path.join(folder, name, "%d.png" % i))
            pictures = data.ImageFolder(folder, size=8, batch_size=4)
            self.assertEqual((pictures.classes, len(pictures)), (["blue", "red"], 2))
            seen = list(pictures)
            self.assertEqual([x.shape for x, _ in seen], [(4, 3, 8, 8), (2, 3, 8, 8)])
            for x, y in seen:
                numpy.testing.assert_array_equal(x[:, 0].mean((1, 2)), y)  # red
            with open(os.path.join(folder, "red", "odd.jpg"), "w") as f:
                f.write("no picture")
            with self.assertRaisesRegex(cleave.InvalidValueError, "odd.jpg' is no picture that can be read"):
                list(data.ImageFolder(folder, size=8))


def untold(module):
    """Public names of a module without a sentence, and functions whose arguments or results have no types."""
    for name, what in vars(module).items():
        if name.startswith("_") or getattr(what, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(what) or inspect.isfunction(what):
            if not what.__doc__:
                yield name
            members = vars(what).items() if inspect.isclass(what) else [(name, what)]
            for member, f in members:
                f = f.fget if isinstance(f, property) else f
                f = inspect.unwrap(f.__func__ if isinstance(f, (classmethod, staticmethod)) else f) if not inspect.isclass(f) else f
                if not inspect.isfunction(f) or f.__name__ == "<lambda>" or member.startswith("_") and member != "__init__":
                    continue
                open_ones = [p for p in inspect.signature(f).parameters if p != "self" and p != "cls" and p not in f.__annotations__]
                if open_ones or "return" not in f.__annotations__:
                    yield "%s.%s: %s" % (name, member, open_ones)
                inherited = any(member in vars(c) and vars(c)[member].__doc__ for c in (inspect.getmro(what) if inspect.isclass(what) else ())[1:])
                if not f.__doc__ and member != "__init__" and not inherited:
                    yield "%s.%s says nothing" % (name, member)


NOTEBOOK = """
import json, sys
with open(sys.argv[1]) as f:
    cells = json.load(f)["cells"]
names = {"__name__": "__main__"}
for i, cell in enumerate(cells):
    if cell["cell_type"] == "code":
        assert not cell["outputs"], "cell %d holds outputs" % i
        exec(compile("".join(cell["source"]), "cell %d" % i, "exec"), names)
"""


class Notebooks(unittest.TestCase):
    EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python", "examples")

    def test_first_steps(self):
        path = os.path.join(self.EXAMPLES, "first_steps.ipynb")
        with tempfile.TemporaryDirectory() as folder:
            ran = subprocess.run([sys.executable, "-W", "ignore", "-c", NOTEBOOK, path], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(ran.returncode, 0, ran.stdout.decode())
            self.assertRegex(ran.stdout.decode(), r"epoch \d/8  loss")
            self.assertTrue(os.path.exists(os.path.join(folder, "best.safetensors")))


class Told(unittest.TestCase):
    def test_every_public_name_has_types_and_a_sentence(self):
        from cleave import _custom, _watch, device, optim
        for module in (device, optim, nn, data, callbacks, _custom):
            self.assertEqual(list(untold(module)), [], module.__name__)
        from cleave._steps import Plan, Steps
        for what in (g.Tensor, g.Graph, Steps, Plan, _watch.Profile):
            home = types.ModuleType(what.__module__)
            setattr(home, what.__name__, what)
            self.assertEqual(list(untold(home)), [], what.__name__)
        self.assertTrue(os.path.exists(os.path.join(os.path.dirname(cleave.__file__), "py.typed")))


class CustomOps(unittest.TestCase):
    """y[n, d] = (x[n] + x[n + 1])[d] * scale[d] * factor: rows that are neighbours."""

    KERNEL = """
__kernel void KERNEL(%s)(global float *y, global const float *x, global const float *scale, int n, float factor, int D) {
    const int i = get_global_id(0);
    if (i < n) y[i] = (x[i] + x[i + D]) * scale[i %% D] * factor;
}
"""

    @staticmethod
    def gradient(x, scale, y, dy, factor, D):
        o = cleave.ops
        dz = o.mul_scalar(o.mul(dy, scale), value=factor)
        zero = o.full(graph=x.graph, dtype="float32", shape=[1, D], value=0)
        pairs = o.add(o.slice(x, axis=0, start=0, length=dy.shape[0]), o.slice(x, axis=0, start=1, length=dy.shape[0]))
        return (o.add(o.concat(dz, zero, axis=0), o.concat(zero, dz, axis=0)),
                o.mul_scalar(o.sum(o.mul(dy, pairs), axes=[0]), value=factor))

    def shape(self, x, scale, factor, D):
        if x[0] < 2:
            raise ValueError("x wants two rows")
        return x[0] - 1, x[1]

    def made(self, name, **more):
        return cleave.custom_op(name, {"x": "f32[N,D]", "scale": "f32[D]"}, {"y": "f32"}, self.KERNEL % name, **dict(dict(
            attributes={"factor": 1.0, "D": int}, shape=self.shape, gradient=self.gradient,
            reference=lambda x, scale, factor, D: (x[:-1] + x[1:]) * scale * factor,
            samples=[{"x": (5, 7), "scale": (7,), "D": 7}, {"x": ((33, 3), 0, 2), "scale": (3,), "D": 3, "factor": 0.5}]), **more))

    def test_right(self):
        op = self.made("neighbours")
        self.assertIs(cleave.ops.neighbours, op)
        self.assertEqual(op.__doc__, "neighbours(x: f32[N,D], scale: f32[D], factor=1.0, D=needed)")
        self.assertGreaterEqual(cleave.check("neighbours", device=DEVICE), 4)
        x, scale = numpy.random.rand(4, 3).astype("f"), numpy.random.rand(3).astype("f")
        numpy.testing.assert_allclose(compute(lambda x, s: op(x, s, D=3, factor=2), x, scale), (x[:-1] + x[1:]) * scale * 2, rtol=1e-6)
        model = nn.Model(lambda x: op(nn.Linear(2)(x), x.graph.parameter("scale", [2], value=1), D=2), device=DEVICE, loss="mse", optimizer="sgd",
                         lr=0.1)
        told = [model.step(numpy.eye(5, 4, dtype="f"), numpy.ones((4, 2), "f")) for _ in range(50)]
        self.assertLess(told[-1], 0.1 * told[0])

    def test_wrong_ones_are_told(self):
        def half(*args, **more):
            dx, ds = self.gradient(*args, **more)
            return cleave.ops.mul_scalar(dx, value=0.5), ds
        self.made("half_gradient", gradient=half)
        with self.assertRaisesRegex(AssertionError, "2 of . cases failed: half_gradient, differences, .*should be"):
            cleave.check("half_gradient", device=DEVICE)
        self.made("wrong_reference", reference=lambda x, scale, factor, D: (x[:-1] - x[1:]) * scale * factor)
        if DEVICE != "host":
            with self.assertRaisesRegex(AssertionError, "cases failed: .*wrong_reference"):
                cleave.check("wrong_reference", device=DEVICE)

    def test_what_functions_raise_is_raised(self):
        def odd(*_, **__):
            raise ZeroDivisionError("odd")
        self.made("odd_reference", reference=odd)
        with self.assertRaisesRegex(ZeroDivisionError, "odd"):
            cleave.check("odd_reference", device=DEVICE)
        self.made("odd_gradient", gradient=odd)
        model = nn.Model(lambda x: cleave.ops.odd_gradient(nn.Linear(2)(x), x.graph.parameter("scale", [2]), D=2), device=DEVICE, loss="mse")
        with self.assertRaisesRegex(ZeroDivisionError, "odd"):
            model.step(numpy.eye(5, 4, dtype="f"), numpy.ones((4, 2), "f"))
        self.made("one_gradient", gradient=lambda *_, **__: None)
        model = nn.Model(lambda x: cleave.ops.one_gradient(nn.Linear(2)(x), x.graph.parameter("scale", [2]), D=2), device=DEVICE, loss="mse")
        with self.assertRaisesRegex(cleave.InvalidValueError, "the gradient of 'one_gradient' gave 1 results, and there are 2"):
            model.step(numpy.eye(5, 4, dtype="f"), numpy.ones((4, 2), "f"))

    def test_mistakes(self):
        op = self.made("few_rows")
        graph = cleave.Graph()
        with self.assertRaisesRegex(cleave.ShapeError, "few_rows#0: x wants two rows"):
            op(graph.input("x", "float32", [1, 3]), graph.input("s", "float32", [3]), D=3)
        for more, kind, sentence in (({"samples": []}, ValueError, "at least one sample"), ({"attributes": {"D": {}}}, TypeError, "attribute 'D' is a bool"),
                                     ({"samples": [{"z": (1,)}]}, ValueError, "has 'z', which is neither")):
            with self.assertRaisesRegex(kind, sentence):
                self.made("mistaken", **more)
        with self.assertRaises(cleave.StateError):
            self.made("few_rows")


class Lifetimes(unittest.TestCase):
    def test_any_order_of_del(self):
        order = random.Random(7)
        for _ in range(30):
            graph = cleave.Graph()
            y = graph.output(cleave.ops.relu(graph.input("x", "float32", [2])), "y")
            config = ffi.new("clv_plan_config *")
            config.device = cleave.Device("host")._pointer
            from cleave._library import make
            here = runtime()
            plan = make("clv_plan", lambda out: lib.clv_plan_create(graph.pointer, config, out), lib.clv_plan_destroy, graph.handle)
            session = make("clv_session", lambda out: lib.clv_session_create(here.pointer, ffi.NULL, out), lib.clv_session_destroy,
                           here.handle)
            run = make("clv_run", lambda out: lib.clv_run_create(session.pointer, plan.pointer, out), lib.clv_run_destroy, session, plan)
            held = {"graph": graph, "y": y, "plan": plan, "session": session, "run": run}
            del graph, y, plan, session, run, here
            names = list(held)
            order.shuffle(names)
            for name in names:
                del held[name]
                gc.collect()

    def test_ctrl_c_while_a_handle_goes(self):
        from cleave._library import Handle

        def destroy(_):
            raise KeyboardInterrupt  # as the interpreter does behind the library's call
        handle = Handle(ffi.NULL, destroy)
        del handle
        with self.assertRaises(KeyboardInterrupt):
            cleave.Graph()
        cleave.Graph()

    def test_threads(self):
        faults = []

        def work():
            try:
                for _ in range(20):
                    a = numpy.random.rand(8, 8).astype("f")
                    numpy.testing.assert_allclose(compute(cleave.ops.relu, a - 0.5), numpy.maximum(a - 0.5, 0), rtol=1e-6)
            except Exception as error:  # for the thread that looks
                faults.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(faults, [])

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork here")
    def test_a_child_of_fork_makes_its_own_runtime(self):
        cleave.Device("host")
        code = ("import os, cleave\n"
                "before = cleave.Graph()\n"
                "pid = os.fork()\n"
                "if pid == 0:\n"
                "    g = cleave.Graph(); cleave.ops.relu(g.input('x', 'float32', [2]))\n"
                "    del before\n"
                "    os._exit(0 if cleave.devices()[-1].name == 'host' else 1)\n"
                "assert os.waitpid(pid, 0)[1] == 0\n")
        env = dict(os.environ, OCL_ICD_VENDORS="/nowhere")  # drivers may not live through it
        subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, env=env)


if __name__ == "__main__":
    unittest.main()
