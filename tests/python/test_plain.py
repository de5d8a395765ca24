#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The package without PyTorch: devices, graphs, ops, errors, lifetimes. By unittest; wants cffi and NumPy."""
import gc
import os
import random
import subprocess
import sys
import threading
import unittest

import numpy

import cleave
from cleave import graph as g
from cleave._library import ffi, lib, runtime

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
