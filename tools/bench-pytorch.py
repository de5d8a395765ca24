#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cases of `cleave bench` beside the same work in PyTorch, in turn (A B A B), because a machine's speed drifts.

    tools/bench-pytorch.py CLEAVE [gemm|conv|ops|models] [--size MxNxK] [--model NAME] [--batch N] [--mode MODE] [--case NAME]
                           [--device SPEC] [--rounds 3] [--runs 3] [--seconds 0.5] [--threads 2] [--torch-device cpu] [--json]
    tools/bench-pytorch.py CLEAVE --memory [--model NAME] [--batch 8] [--device SPEC] [--threads 2] [--json]

CLEAVE is the tool. Prints, for each case, the median of the rounds' medians on both sides and their ratio, ours / theirs in
time (smaller is better), and the ratios of the single rounds, least and most. At the end the geometric mean of each suite. Takes the torch of the Python that runs it. Both sides
time a run of many steps and a wait; models are trained with momentum as `cleave bench` does, in float32, TF32 off.

--memory: what training steps hold at most, each side in a process of its own. Ours: the peak of the device's account, which on a CPU
is all of it, staging included. Theirs: how far the most that was resident goes beyond what was before the model was made.
Exit 0 done, 1 a case failed, 2 wrong usage.
"""
import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

# An OpenBLAS that does not know a new CPU falls back to an old one's kernels; give the peer its best.
if os.path.exists("/proc/cpuinfo") and "avx512f" in open("/proc/cpuinfo").read():
    os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")

try:
    import numpy
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError:
    sys.exit("bench-pytorch.py: this Python has no torch or no numpy; run the script with one that has")


# ---- models, with torchvision's layers, so that torchvision is not needed ------------------------------------------


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25),
        nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10))


def alexnet():
    def conv(c, o, k, s, p):
        return [nn.Conv2d(c, o, k, s, p), nn.ReLU(inplace=True)]

    return nn.Sequential(
        *conv(3, 64, 11, 4, 2), nn.MaxPool2d(3, 2), *conv(64, 192, 5, 1, 2), nn.MaxPool2d(3, 2), *conv(192, 384, 3, 1, 1),
        *conv(384, 256, 3, 1, 1), *conv(256, 256, 3, 1, 1), nn.MaxPool2d(3, 2), nn.AdaptiveAvgPool2d(6), nn.Flatten(),
        nn.Dropout(), nn.Linear(9216, 4096), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, 4096),
        nn.ReLU(inplace=True), nn.Linear(4096, 1000))


def vgg(plan):
    layers, c = [], 3
    for o in plan:
        if o == "M":
            layers.append(nn.MaxPool2d(2))
        else:
            layers += [nn.Conv2d(c, o, 3, padding=1), nn.ReLU(inplace=True)]
            c = o
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(7), nn.Flatten(), nn.Linear(25088, 4096), nn.ReLU(inplace=True), nn.Dropout(),
        nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, 1000))


def conv_norm(c, o, k, stride=1, groups=1):
    return [nn.Conv2d(c, o, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o)]


class Residual(nn.Module):
    """body(x) + shortcut(x), then relu if there is one after it."""

    def __init__(self, body, shortcut, relu):
        super().__init__()
        self.body, self.shortcut, self.relu = nn.Sequential(*body), nn.Sequential(*shortcut), relu

    def forward(self, x):
        y = self.body(x)
        y += self.shortcut(x)
        return F.relu(y, inplace=True) if self.relu else y


def resnet(blocks, bottleneck):
    layers, c = [*conv_norm(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)], 64
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for block in range(count):
            stride, out = (2 if stage and not block else 1), width * (4 if bottleneck else 1)
            if bottleneck:
                body = [*conv_norm(c, width, 1), nn.ReLU(inplace=True), *conv_norm(width, width, 3, stride),
                        nn.ReLU(inplace=True), *conv_norm(width, out, 1)]
            else:
                body = [*conv_norm(c, width, 3, stride), nn.ReLU(inplace=True), *conv_norm(width, out, 3)]
            layers.append(Residual(body, conv_norm(c, out, 1, stride) if stride > 1 or c != out else [], True))
            c = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, 1000))


def mobilenet_v2():
    layers, c = [*conv_norm(3, 32, 3, 2), nn.ReLU6(inplace=True)], 32
    for expand, out, count, first in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                      (6, 160, 3, 2), (6, 320, 1, 1)]:
        for block in range(count):
            stride, width = first if block == 0 else 1, c * expand
            body = [*conv_norm(c, width, 1), nn.ReLU6(inplace=True)] if expand > 1 else []
            body += [*conv_norm(width, width, 3, stride, width), nn.ReLU6(inplace=True), *conv_norm(width, out, 1)]
            layers.append(Residual(body, [], False) if stride == 1 and c == out else nn.Sequential(*body))
            c = out
    return nn.Sequential(*layers, *conv_norm(c, 1280, 1), nn.ReLU6(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Dropout(0.2), nn.Linear(1280, 1000))


class Block(nn.Module):
    """A block of minGPT's; with PyTorch's own attention where it has one."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))
        self.register_buffer("mask", torch.ones(128, 128, dtype=torch.bool).triu(1))

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = (part.view(n, t, self.heads, -1).transpose(1, 2) for part in self.attend(self.norm1(x)).split(d, 2))
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            weights = (q @ k.transpose(-2, -1)) * (d // self.heads) ** -0.5
            y = F.softmax(weights.masked_fill(self.mask, -math.inf), -1) @ v
        x = x + self.project(y.transpose(1, 2).reshape(n, t, d))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(65, 192), nn.Parameter(torch.zeros(128, 192))
        self.rest = nn.Sequential(*[Block(192, 6) for _ in range(4)], nn.LayerNorm(192), nn.Linear(192, 65, bias=False))

    def forward(self, x):
        return self.rest(self.tokens(x) + self.positions).flatten(0, 1)


MODELS = {
    "gpt": GPT,
    "linear": lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 10)),
    "mlp": mlp,
    "cnn": cnn,
    "alexnet": alexnet,
    "vgg11": lambda: vgg([64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"]),
    "vgg16": lambda: vgg([64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M", 512, 512, 512, "M"]),
    "resnet18": lambda: resnet([2, 2, 2, 2], False),
    "resnet50": lambda: resnet([3, 4, 6, 3], True),
    "mobilenet_v2": mobilenet_v2,
}


# ---- cases: what one step does --------------------------------------------------------------------------------------


def make_gemm(name, mode, device):
    batch, m, n, k, how = re.fullmatch(r"(?:(\d+)\*)?(\d+)x(\d+)x(\d+)(?: (nt|tn|tt))?", name).groups()
    m, n, k, how = int(m), int(n), int(k), how or "nn"
    lead = [int(batch)] if batch else []

    def operand(rows, columns, transposed):
        if transposed:
            return torch.rand(*lead, columns, rows, device=device).transpose(-1, -2)
        return torch.rand(*lead, rows, columns, device=device)

    a, b = operand(m, k, how[0] == "t"), operand(k, n, how[1] == "t")
    return lambda: torch.matmul(a, b)


def make_conv(name, mode, device):
    n, c, h, w, o, k, s, p, g = map(int, re.fullmatch(
        r"n(\d+) c(\d+) (\d+)x(\d+) o(\d+) k(\d+) s(\d+) p(\d+) g(\d+)", name).groups())
    x, weight = torch.rand(n, c, h, w, device=device), torch.rand(o, c // g, k, k, device=device)
    if mode == "forward":
        return lambda: F.conv2d(x, weight, None, s, p, 1, g)
    dy = torch.rand_like(F.conv2d(x, weight, None, s, p, 1, g))
    wanted = [mode == "backward_data", mode == "backward_weight", False]
    return lambda: torch.ops.aten.convolution_backward(dy, x, weight, None, [s, s], [p, p], [1, 1], False, [0, 0], g, wanted)


def training_step(model, loss_of):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)

    def step():
        with torch.enable_grad():
            optimizer.zero_grad()
            loss_of().backward()
            optimizer.step()

    return step


def make_op(name, mode, device):
    op, dims = name.split(" ")
    x = torch.rand([int(d) for d in dims.split("x")], device=device) * 2 - 1
    if op == "lstm":
        layers = nn.LSTM(x.shape[2], x.shape[2], 2).to(device)
        return training_step(layers, lambda: layers(x)[0].square().mean())
    other = torch.rand_like(x)
    channels = x.shape[1] if x.dim() > 1 else 1
    ones, zeros = torch.ones(channels, device=device), torch.zeros(channels, device=device)
    mean, var = zeros.clone(), ones.clone()
    return {
        "add": lambda: x + other,
        "relu": lambda: F.relu(x),
        "gelu": lambda: F.gelu(x),
        "exp": lambda: torch.exp(x),
        "sum": lambda: x.sum(),
        "sum_rows": lambda: x.sum(1),
        "softmax": lambda: F.softmax(x, -1),
        "log_softmax": lambda: F.log_softmax(x, -1),
        "transpose": lambda: x.t().contiguous(),
        "layer_norm": lambda: F.layer_norm(x, x.shape[-1:], ones, zeros),
        "batch_norm": lambda: F.batch_norm(x, mean, var, ones, zeros, True),
        "max_pool2d": lambda: F.max_pool2d(x, 3, 2, 1),
        "avg_pool2d": lambda: F.avg_pool2d(x, 2, 2),
        "dropout": lambda: F.dropout(x, 0.5, True),
        "self_attention": lambda: F.scaled_dot_product_attention(
            *(part.unflatten(2, (6, -1)).transpose(1, 2) for part in x.split(x.shape[2] // 3, 2)),
            is_causal=True).transpose(1, 2).flatten(2),
    }[op]


def make_model(name, mode, device):
    which, batch = re.fullmatch(r"(\w+) b(\d+)", name).groups()
    batch, small = int(batch), which in ("linear", "mlp", "cnn")
    model = MODELS[which]().to(device)
    shape = (1, 28, 28) if small else (3, 224, 224)
    x, labels = torch.rand(batch, *shape, device=device) * 2 - 1, torch.randint(0, 10, (batch,), device=device)
    if which == "gpt":
        x, labels = torch.randint(0, 65, (batch, 128), device=device), torch.randint(0, 65, (batch * 128,), device=device)
    if mode == "infer":
        model.eval()
        return lambda: model(x)
    model.train()
    return training_step(model, lambda: F.cross_entropy(model(x), labels))


MAKERS = {"gemm": make_gemm, "conv": make_conv, "ops": make_op, "models": make_model}


# ---- memory -----------------------------------------------------------------------------------------------------------

NETWORKS = ["resnet18", "resnet50", "alexnet", "vgg16", "mobilenet_v2"]


def resident(field):
    """Bytes of this process: VmRSS now, VmHWM at most."""
    for line in open("/proc/self/status"):
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"/proc/self/status has no {field}")


def their_memory(name, batch, threads):
    """In a process of its own: by how much training steps let it grow."""
    torch.set_num_threads(threads)
    (torch.rand(8, 8) @ torch.rand(8, 8)).sum().item()  # what the library itself needs
    before = resident("VmRSS")
    step = make_model(f"{name} b{batch}", "train", "cpu")
    for _ in range(4):
        step()
    print(json.dumps({"growth": resident("VmHWM") - before, "most": resident("VmHWM")}))


def our_memory(name, batch, options, folder):
    """The peak of the device's account, and what it was predicted to be, after training steps."""
    shape = (1, 28, 28) if name in ("linear", "mlp", "cnn") else (3, 224, 224)
    images, labels = os.path.join(folder, "images.npy"), os.path.join(folder, "labels.npy")
    numpy.save(images, numpy.random.default_rng(1).random((batch, *shape), dtype=numpy.float32))
    numpy.save(labels, numpy.arange(batch) % 10)
    words = [options.cleave, "train", "--images", images, "--labels", labels, "--model", name, "--batch", str(batch), "--epochs", "4",
             "--optimizer", "momentum", "--lr", "0.001", "--json", "--quiet"]
    words += ["--device", options.device] if options.device else []
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"bench-pytorch.py: {done.stderr.strip()}")
    return json.loads(done.stdout)["memory"][0]


def memory_main(options):
    rows, batch = [], options.batch or 8
    if not options.json:
        print(f"bytes that training steps of batch {batch} hold at most, beside torch {torch.__version__} on the CPU")
        print(f"{'model':14} {'cleave MiB':>11} {'torch MiB':>11} {'ratio':>6}   what cleave holds")
    with tempfile.TemporaryDirectory() as folder:
        for name in [options.model] if options.model else NETWORKS:
            mine = our_memory(name, batch, options, folder)
            done = subprocess.run([sys.executable, os.path.abspath(__file__), "--their-memory", name, str(batch),
                                   str(options.threads)], capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"bench-pytorch.py: torch's {name}: {done.stderr.strip().splitlines()[-1]}")
            theirs = json.loads(done.stdout)["growth"]
            rows.append({"model": name, "batch": batch, "cleave_bytes": mine["peak_bytes"], "torch_bytes": theirs,
                         "ratio": mine["peak_bytes"] / theirs, "categories": mine["categories"]})
            if not options.json:
                parts = ", ".join(f"{key} {value / 2**20:.0f}" for key, value in mine["categories"].items() if value >= 2**19)
                print(f"{name:14} {mine['peak_bytes'] / 2**20:11.1f} {theirs / 2**20:11.1f} {rows[-1]['ratio']:6.2f}   {parts}",
                      flush=True)
    if options.json:
        print(json.dumps({"torch": torch.__version__, "results": rows}, indent=2))
    return 0


# ---- timing -----------------------------------------------------------------------------------------------------------


def time_run(step, steps, device):
    start = time.perf_counter()
    for _ in range(steps):
        step()
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / steps


def time_theirs(step, options):
    """Median milliseconds of a step, by the scheme of `cleave bench`."""
    with torch.no_grad():
        share, steps, wanted = options.seconds / options.runs, 1, 1
        time_run(step, 2, options.torch_device)
        while True:
            wanted = max(1, min(100000, int(share / time_run(step, steps, options.torch_device))))
            if steps * 2 > wanted:
                break
            steps *= 2
        return 1e3 * statistics.median(time_run(step, wanted, options.torch_device) for _ in range(options.runs))


def cleave(options, more):
    """The JSON of `cleave bench` with the selecting options; exits as it does if it has none."""
    words = [options.cleave, "bench"] + ([options.suite] if options.suite else [])
    for name in ("size", "model", "batch", "device"):
        if getattr(options, name):
            words += ["--" + name, str(getattr(options, name))]
    try:
        done = subprocess.run(words + more + ["--json", "--quiet"], capture_output=True, text=True)
    except OSError as error:
        sys.exit(f"bench-pytorch.py: {error}")
    if not done.stdout:
        sys.stderr.write(done.stderr)
        sys.exit(done.returncode or 1)
    return json.loads(done.stdout)


def measure(case, options):
    """The rounds' (ours, theirs) in milliseconds, or a sentence."""
    step = None
    try:
        step = MAKERS[case["suite"]](case["case"], case["mode"], options.torch_device)
    except (KeyError, AttributeError):
        return "PyTorch's side is not written for this case"
    rounds = []
    for _ in range(options.rounds):
        got = cleave(options, ["--case", case["case"], "--mode", case["mode"], "--runs", str(options.runs), "--seconds",
                               str(options.seconds)])
        if got["failures"]:
            return got["failures"][0]["sentence"]
        rounds.append((got["results"][0]["median_ms"], time_theirs(step, options)))
    return rounds


def warn_of_slow_blas():
    """The peer must have its best: torch's products by the reference BLAS say nothing."""
    if os.path.exists("/proc/self/maps"):
        torch.rand(2, 2) @ torch.rand(2, 2)
        names = {line.split()[-1] for line in open("/proc/self/maps") if "/libblas." in line}
        if names and not any("openblas" in os.path.realpath(name) for name in names):
            print(f"bench-pytorch.py: this torch multiplies with {names.pop()}, a slow BLAS; install libopenblas0-pthread",
                  file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cleave", metavar="CLEAVE")
    parser.add_argument("suite", nargs="?", choices=list(MAKERS))
    for name in ("size", "model", "mode", "case", "device"):
        parser.add_argument("--" + name)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--torch-device", default="cpu")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if min(options.rounds, options.runs, options.threads) < 1 or options.seconds <= 0:
        parser.error("--rounds, --runs, --threads and --seconds must be positive")
    if options.memory and options.model and options.model not in MODELS or options.memory and options.model == "gpt":
        parser.error(f"--memory: there is no model '{options.model}' that trains on images")
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    if options.memory:
        return memory_main(options)
    warn_of_slow_blas()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False

    listed = cleave(options, ["--list"] + (["--mode", options.mode] if options.mode else []) +
                    (["--case", options.case] if options.case else []))
    rows, ratios, failed = [], {}, 0
    if not options.json:
        print(f"cleave on {listed['device']} beside torch {torch.__version__} on {options.torch_device}, "
              f"{options.threads} threads, {options.rounds} rounds in turn")
        print(f"{'suite':7} {'case':36} {'mode':16} {'cleave ms':>10} {'torch ms':>10} {'ratio':>6}   rounds", flush=True)
    for case in listed["cases"]:
        got = measure(case, options)
        if isinstance(got, str):
            failed += 1
            rows.append({**case, "failure": got})
            print(f"bench-pytorch.py: {case['case']} {case['mode']}: {got}", file=sys.stderr)
            continue
        ours, theirs = (statistics.median(side) for side in zip(*got))
        ratio, spread = ours / theirs, [a / b for a, b in got]
        ratios.setdefault(case["suite"], []).append(ratio)
        rows.append({**case, "cleave_ms": ours, "torch_ms": theirs, "ratio": ratio, "least": min(spread), "most": max(spread)})
        if not options.json:
            print(f"{case['suite']:7} {case['case']:36} {case['mode']:16} {ours:10.4g} {theirs:10.4g} {ratio:6.2f}"
                  f"   {min(spread):.2f}..{max(spread):.2f}", flush=True)
    means = {suite: math.exp(sum(map(math.log, r)) / len(r)) for suite, r in ratios.items()}
    if options.json:
        print(json.dumps({"device": listed["device"], "torch": torch.__version__, "torch_device": options.torch_device,
                          "threads": options.threads, "rounds": options.rounds, "results": rows, "geometric_mean": means},
                         indent=2))
    else:
        for suite, mean in means.items():
            print(f"{suite}: geometric mean of {len(ratios[suite])}: {mean:.2f}")
    return 1 if failed else 0


if sys.argv[1:2] == ["--their-memory"]:
    their_memory(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
else:
    sys.exit(main())
