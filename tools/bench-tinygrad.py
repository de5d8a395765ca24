#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cases of `cleave bench` beside the same work in tinygrad on the same OpenCL driver, in turn, because a machine's speed drifts.

    tools/bench-tinygrad.py CLEAVE [CASE...] [--rounds 2] [--seconds 0.5] [--prepare 300] [--device SPEC] [--json]

A CASE is `1024x1024x1024`, or a model with its batch and mode: `mlp:64:train`, `resnet18:8:infer`; without any: all that there are. Prints, for
each, the medians of both sides in milliseconds and how many times faster Cleave is. tinygrad takes its first OpenCL device (DEV=CL),
its steps are captured by TinyJit, nothing is tuned; a case whose kernels it has not compiled within --prepare seconds, or that it cannot
run, is told and passed over. Models are trained with momentum in float32, as `cleave bench` does.
Exit 0 done, 1 a case failed on our side, 2 wrong usage.
"""
import argparse
import json
import os
import re
import select
import statistics
import subprocess
import sys
import time

GEMMS = ["256x256x256", "512x512x512", "1024x1024x1024"]
NETWORKS = ["resnet18", "resnet50", "alexnet", "vgg16", "mobilenet_v2"]
CASES = GEMMS + ["mlp:64:train", "cnn:64:train", "gpt:16:train"] + [
    f"{name}:8:{mode}" for mode in ("infer", "train") for name in NETWORKS]


# ---- their side: a process of its own that prepares a case, and times a run for each line it is given ----------------------


def layers(name):
    """The model as tinygrad's functions of a tensor, with torchvision's layers."""
    from tinygrad import Tensor, nn

    def relu(x):
        return x.relu()

    def relu6(x):
        return x.relu6()

    def flatten(x):
        return x.flatten(1)

    def pool(size, stride, padding=0):
        return lambda x: x.max_pool2d((size, size), stride, padding=padding)

    def drop(x):
        return x.dropout(0.5)

    def mean(x):
        return x.mean((2, 3))

    def conv_norm(c, o, k, stride=1, groups=1):
        return [nn.Conv2d(c, o, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm(o)]

    class Residual:
        def __init__(self, body, shortcut, rectify):
            self.body, self.shortcut, self.rectify = body, shortcut, rectify

        def __call__(self, x):
            y = x.sequential(self.body) + (x.sequential(self.shortcut) if self.shortcut else x)
            return y.relu() if self.rectify else y

    def resnet(counts, bottleneck):
        made, c, grow = [*conv_norm(3, 64, 7, 2), relu, pool(3, 2, 1)], 64, 4 if bottleneck else 1
        for stage, count in enumerate(counts):
            width = 64 << stage
            for block in range(count):
                stride, out = 2 if stage and not block else 1, width * grow
                body = ([*conv_norm(c, width, 1), relu, *conv_norm(width, width, 3, stride), relu, *conv_norm(width, out, 1)]
                        if bottleneck else [*conv_norm(c, width, 3, stride), relu, *conv_norm(width, width, 3)])
                made.append(Residual(body, conv_norm(c, out, 1, stride) if stride > 1 or c != out else [], True))
                c = out
        return made + [mean, nn.Linear(c, 1000)]

    def mobilenet_v2():
        made, c = [*conv_norm(3, 32, 3, 2), relu6], 32
        for expand, out, count, first in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                          (6, 160, 3, 2), (6, 320, 1, 1)]:
            for block in range(count):
                stride, width = first if block == 0 else 1, c * expand
                body = [*conv_norm(c, width, 1), relu6] if expand > 1 else []
                body += [*conv_norm(width, width, 3, stride, width), relu6, *conv_norm(width, out, 1)]
                made += [Residual(body, [], False)] if stride == 1 and c == out else body
                c = out
        return made + [*conv_norm(c, 1280, 1), relu6, mean, lambda x: x.dropout(0.2), nn.Linear(1280, 1000)]

    def alexnet():
        made = []
        for c, o, k, s, p, pooled in [(3, 64, 11, 4, 2, True), (64, 192, 5, 1, 2, True), (192, 384, 3, 1, 1, False),
                                      (384, 256, 3, 1, 1, False), (256, 256, 3, 1, 1, True)]:
            made += [nn.Conv2d(c, o, k, s, p), relu] + ([pool(3, 2)] if pooled else [])
        return made + [flatten, drop, nn.Linear(9216, 4096), relu, drop, nn.Linear(4096, 4096), relu, nn.Linear(4096, 1000)]

    def vgg16():
        made, c = [], 3
        for o in [64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0]:
            made += [nn.Conv2d(c, o, 3, 1, 1), relu] if o else [pool(2, 2)]
            c = o or c
        return made + [flatten, nn.Linear(25088, 4096), relu, drop, nn.Linear(4096, 4096), relu, drop, nn.Linear(4096, 1000)]

    class Block:
        def __init__(self, width, heads):
            self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
            self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def __call__(self, x):
            n, t, d = x.shape
            q, k, v = (part.reshape(n, t, self.heads, -1).transpose(1, 2) for part in self.attend(self.norm1(x)).chunk(3, 2))
            y = q.scaled_dot_product_attention(k, v, is_causal=True)
            x = x + self.project(y.transpose(1, 2).reshape(n, t, d))
            return x + self.narrow(self.widen(self.norm2(x)).gelu())

    class Positions:
        def __init__(self):
            self.positions = Tensor.zeros(128, 192).contiguous()

        def __call__(self, x):
            return x + self.positions

    def gpt():
        return [nn.Embedding(65, 192), Positions(), *[Block(192, 6) for _ in range(4)], nn.LayerNorm(192),
                nn.Linear(192, 65, bias=False), lambda x: x.flatten(0, 1)]

    return {
        "mlp": lambda: [flatten, nn.Linear(784, 128), relu, nn.Linear(128, 10)],
        "cnn": lambda: [nn.Conv2d(1, 32, 3), relu, nn.Conv2d(32, 64, 3), relu, pool(2, 2), lambda x: x.dropout(0.25), flatten,
                        nn.Linear(9216, 128), relu, drop, nn.Linear(128, 10)],
        "gpt": gpt,
        "alexnet": alexnet,
        "vgg16": vgg16,
        "resnet18": lambda: resnet([2, 2, 2, 2], False),
        "resnet50": lambda: resnet([3, 4, 6, 3], True),
        "mobilenet_v2": mobilenet_v2,
    }[name]()


def prepare(case):
    """A function that does one step and gives a tensor; called often, it is a captured one."""
    from tinygrad import Context, Tensor, TinyJit, dtypes, nn

    if "x" in case and ":" not in case:
        m, n, k = map(int, case.split("x"))
        a, b = Tensor.rand(m, k).realize(), Tensor.rand(k, n).realize()
        product = TinyJit(lambda x, y: (x @ y).realize())
        return lambda: product(a, b)
    name, batch, mode = case.split(":")
    batch, model = int(batch), layers(name)
    if name == "gpt":
        x = Tensor.randint(batch, 128, low=0, high=65).realize()
        labels = Tensor.randint(batch * 128, low=0, high=65).realize()
    else:
        size = (1, 28, 28) if name in ("mlp", "cnn") else (3, 224, 224)
        x = (Tensor.rand(batch, *size) * 2 - 1).realize()
        labels = Tensor.randint(batch, low=0, high=10).realize()
    if mode == "infer":
        forward = TinyJit(lambda data: data.sequential(model).realize())
        return lambda: forward(x)
    optimizer = nn.optim.SGD(nn.state.get_parameters(model), lr=0.001, momentum=0.9)

    @TinyJit
    def train(data, wanted):
        with Context(TRAINING=1):
            optimizer.zero_grad()
            loss = data.sequential(model).sparse_categorical_crossentropy(wanted).backward()
            return loss.realize(*optimizer.schedule_step())

    return lambda: train(x, labels)


def serve(case, seconds):
    """Prepare, say so, and time a run of about so many seconds for each line on stdin."""
    from tinygrad import Device

    step = prepare(case)

    def run(steps):
        start = time.perf_counter()
        for _ in range(steps):
            step()
        Device[Device.DEFAULT].synchronize()
        return (time.perf_counter() - start) / steps

    run(4)  # compiled, captured, and captured once more
    steps = max(1, min(100000, int(seconds / run(1))))
    print("ready", flush=True)
    for _ in sys.stdin:
        print(f"{1e3 * run(steps):.6f}", flush=True)


# ---- both in turn -----------------------------------------------------------------------------------------------------


class Peer:
    """Their side of a case; `why` is a sentence if it could not be prepared."""

    def __init__(self, case, options):
        command = [sys.executable, os.path.abspath(__file__), "--serve", case, "--seconds", str(options.seconds)]
        environment = {**os.environ, "DEV": "CL"}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=environment)
        ready, _, _ = select.select([self.process.stdout], [], [], options.prepare)
        if not ready:
            self.why = f"not ready after {options.prepare:g} s"
        elif self.process.stdout.readline().strip() == "ready":
            self.why = None
        else:
            said = self.process.stderr.read().strip().splitlines()
            self.why = said[-1][:200] if said else "it ended without saying why"
        if self.why:
            self.end()

    def run(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self):
        self.process.kill()
        self.process.communicate()


def ours(case, options):
    """The median milliseconds of `cleave bench`; raises with its sentence."""
    words = [options.cleave, "bench", "--json", "--quiet", "--runs", "3", "--seconds", str(options.seconds)]
    words += ["--device", options.device] if options.device else []
    if ":" in case:
        name, batch, mode = case.split(":")
        words += ["--model", name, "--batch", batch, "--mode", mode]
    else:
        words += ["--size", case]
    done = subprocess.run(words, capture_output=True, text=True)
    results = json.loads(done.stdout)["results"] if done.stdout else []
    if not results:
        raise RuntimeError(done.stderr.strip() or "cleave bench gave no result")
    return results[0]["median_ms"]


def measure(case, options):
    peer = Peer(case, options)
    if peer.why:
        return {"case": case, "failure": peer.why}
    try:
        rounds = [(ours(case, options), peer.run()) for _ in range(options.rounds)]
    finally:
        peer.end()
    mine, theirs = (statistics.median(side) for side in zip(*rounds))
    times = [b / a for a, b in rounds]
    return {"case": case, "cleave_ms": mine, "tinygrad_ms": theirs, "times": theirs / mine, "least": min(times), "most": max(times)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cleave", metavar="CLEAVE")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--device")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--prepare", type=float, default=300)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.rounds < 1 or options.seconds <= 0 or options.prepare <= 0:
        parser.error("--rounds, --seconds and --prepare must be positive")
    for case in options.cases:
        if not re.fullmatch(r"\d+x\d+x\d+|\w+:\d+:(train|infer)", case):
            parser.error(f"'{case}' is no case; see --help")
    rows = []
    for case in options.cases or CASES:
        try:
            row = measure(case, options)
        except (OSError, RuntimeError, ValueError) as error:
            sys.exit(f"bench-tinygrad.py: {case}: {error}")
        rows.append(row)
        if options.json:
            continue
        if "failure" in row:
            print(f"{case:24} tinygrad: {row['failure']}", flush=True)
        else:
            print(f"{case:24} cleave {row['cleave_ms']:10.4g} ms   tinygrad {row['tinygrad_ms']:10.4g} ms   "
                  f"{row['times']:6.2f} times ({row['least']:.2f}..{row['most']:.2f})", flush=True)
    if options.json:
        print(json.dumps({"results": rows}, indent=2))


if sys.argv[1:2] == ["--serve"]:
    serve(sys.argv[2], float(sys.argv[4]))
else:
    main()
