#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a long-lived program does to the package: steps, models made and dropped, any order of `del`, threads, exceptions in loaders and
callbacks, Ctrl-C. Ends with an error if memory grows or something is not as it was.

    stress.py [SECONDS]      600 if not given; CI runs 5. CLEAVE_TEST_DEVICE as the tests
"""
import faulthandler
import gc
import os
import random
import signal
import sys
import threading
import time

import numpy

import cleave
from cleave import data, nn

DEVICE = os.environ.get("CLEAVE_TEST_DEVICE", "host")
ROOM = 8 << 20  # of the heap's own unrest


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def batch(n=8, width=6, seed=0):
    draw = numpy.random.default_rng(seed)
    return draw.normal(size=(n, width)).astype("f"), draw.integers(0, 3, n).astype("i4")


def model(width=16, **settings):
    return nn.Model(nn.Sequential(nn.Linear(width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(3)), device=DEVICE, **settings)


def settled():
    for _ in range(3):
        gc.collect()
    return resident(), cleave.Device(DEVICE).memory()["current"]


def grows(what, n, work):
    """Does memory after n times differ from that after a tenth of them?"""
    for _ in range(max(1, n // 10)):
        work()
    before, held = settled()
    began = time.monotonic()
    for _ in range(n):
        work()
    after, now = settled()
    print("%s: %d times in %.1f s, %+.1f MiB" % (what, n, time.monotonic() - began, (after - before) / 2**20), flush=True)
    assert after - before < ROOM, "%s: memory grew by %d bytes" % (what, after - before)
    assert now == held, "%s: the device holds %d bytes, and held %d" % (what, now, held)


def make_and_drop():
    made = model(random.randint(1, 40), optimizer=random.choice(["sgd", "adam", "adamw"]))
    made.step(*batch())
    made.predict(batch(random.randint(1, 9))[0])


def any_order():
    made = model()
    things = {"model": made, "plan": made.plan(*batch()), "loss": made.step(*batch()), "result": made.predict(batch()[0]),
              "state": made.state_dict(), "profile": made.profile(*batch(), steps=2), "device": cleave.Device(DEVICE), "graph": cleave.Graph()}
    things["tensor"] = cleave.ops.relu(things["graph"].input("x", "float32", [2]))
    del made
    names = list(things)
    random.shuffle(names)
    for name in names:
        del things[name]
        if random.random() < 0.3:
            gc.collect()


class Odd(Exception):
    pass


def breaks():
    """In a loader, a callback, a schedule, or a step of a wrong shape: the model goes on."""
    made, at = model(), random.randint(0, 4)

    def loader():
        for i in range(5):
            if i == at and where == "loader":
                raise Odd()
            yield batch(seed=i) if i != at or where != "shape" else batch(width=5)

    def schedule(i):
        if i == at and where == "schedule":
            raise Odd()
        return 1.0

    def callback(told):
        if where == "callback":
            raise Odd()
    for where in ("loader", "schedule", "callback", "shape", ""):
        try:
            made.fit(loader(), progress=False, schedule=schedule, callbacks=[callback])
            assert where == "", "nothing was raised in the %s" % where
        except (Odd, cleave.ShapeError):
            assert where
        at = made.n_steps + random.randint(0, 4) if where == "loader" else random.randint(0, 4)
    assert numpy.isfinite(made.step(*batch()))


LOST = []


def interrupted():
    """Ctrl-C, somewhere. Python may lose one that comes while it collects garbage."""
    made, ends = model(), time.monotonic() + 10
    fired = threading.Timer(random.uniform(0.0, 0.02), os.kill, (os.getpid(), signal.SIGINT))
    try:
        fired.start()
        while time.monotonic() < ends:
            made.fit([batch()] * 20, progress=False)
        LOST.append(made.n_steps)
    except KeyboardInterrupt:
        pass
    fired.join()
    assert numpy.isfinite(made.step(*batch()))


def threads(n=4):
    """Each with models of its own, and all of them at one that is refused to all but one at a time."""
    shared, faults = model(), []
    shared.step(*batch())

    def work(seed):
        try:
            own = model(8 + seed)
            for _ in range(5):
                own.step(*batch(seed=seed))
                try:
                    shared.step(*batch())
                except cleave.StateError as error:
                    assert "another thread uses this model" in str(error), error
        except Exception as error:
            faults.append(error)
    running = [threading.Thread(target=work, args=(i,)) for i in range(n)]
    [t.start() for t in running]
    [t.join() for t in running]
    assert not faults, faults


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background commands have it ignored
    seed = random.randrange(1 << 30)
    random.seed(seed)
    print("seed %d, device %s" % (seed, DEVICE))
    share = min(1.0, seconds / 60)
    one = model(optimizer="sgd")
    grows("steps", int(10000 * share), lambda: one.step(*batch()))
    grows("models", int(1000 * share), make_and_drop)
    grows("epochs", int(100 * share), lambda: one.fit(data.Batches(*batch(64), batch_size=8), progress=False))
    ends = time.monotonic() + seconds * 0.6
    counts = {}
    before = None
    while time.monotonic() < ends:
        work = random.choice([any_order, breaks, interrupted, threads, make_and_drop])
        work()
        counts[work.__name__] = counts.get(work.__name__, 0) + 1
        if before is None and sum(counts.values()) == 50:
            before = settled()
    after = settled()
    assert len(LOST) <= 1 + counts.get("interrupted", 0) // 50, "%d of %d interrupts were lost" % (len(LOST), counts["interrupted"])
    print("%s; %d interrupts lost; %s" % (", ".join("%s %d" % c for c in sorted(counts.items())), len(LOST), "%+.1f MiB" % ((after[0] - before[0]) / 2**20) if before else ""))
    if before:
        assert after[0] - before[0] < 2 * ROOM, "memory grew by %d bytes" % (after[0] - before[0])
        assert after[1] == before[1], "the device holds %d bytes, and held %d" % (after[1], before[1])
    print("OK")


if __name__ == "__main__":
    main()
