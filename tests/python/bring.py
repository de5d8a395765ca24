#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models that people bring (bring_models.py), beside PyTorch by cleave.compile and beside ONNX Runtime by a file of ONNX.

    bring.py CLEAVE [--device host] [--way compile|onnx] [--out FILE] [NAME...]      without names: all that FILE (bring.tsv) has not

A row for each model and way: the largest difference of the results over the largest; then, of three steps of SGD, the largest difference of
a loss over it, and the norm of the difference of the parameters over the norm of what the steps changed, beside PyTorch in f64, and the same of PyTorch
in f32; or what was refused. A file of ONNX is what torch.onnx.export writes by default, run by `cleave run` and trained a step by `cleave train`: `trains` says
that its loss is right where the command line has that loss. By hand, with torch, transformers, onnx and onnxruntime."""
import argparse
import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
warnings.simplefilter("ignore")
import numpy
import torch
import torch.nn.functional as F
from torch.utils import _pytree as pytree

import cleave
from bring_models import MODELS

HERE = pathlib.Path(__file__).resolve().parent
STEPS, LR = 3, 0.01


def quiet(module):
    """Without dropout, which each side draws by itself."""
    for m in module.modules():
        for key, value in list(vars(m).items()):
            if isinstance(value, float) and ("drop" in key or key == "p" and "Drop" in type(m).__name__):
                setattr(m, key, 0.0)
        if getattr(getattr(m, "config", None), "layerdrop", 0):
            m.config.layerdrop = 0.0
    for p in module.parameters():
        if p.numel() > 1 and p.std() < 1e-6 and not p.any():  # zeros are the same wherever they are put
            torch.nn.init.normal_(p, std=0.02)
    return module


def floats(result):
    """The tensors of floats of a result, but not a loss."""
    if not isinstance(result, torch.Tensor) and hasattr(result, "keys"):
        result = {k: v for k, v in result.items() if k != "loss"}
    return [x.detach() for x in pytree.tree_leaves(result) if isinstance(x, torch.Tensor) and x.is_floating_point()]


def off(told, wanted):
    if len(told) != len(wanted):
        raise AssertionError("%d results, and PyTorch has %d" % (len(told), len(wanted)))
    return max(float((torch.as_tensor(a).double() - b.double()).abs().max() / b.double().abs().max().clamp(min=1e-30)) for a, b in zip(told, wanted))


def wide(x):
    return pytree.tree_map(lambda v: v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v, x)


def of_result(loss, result, targets):
    if loss is not None:
        return loss(result, *targets)
    return result if isinstance(result, torch.Tensor) else result["loss"]


def by_torch(module, inputs, loss, targets):
    """Losses of the steps, and what they changed."""
    try:
        return steps_of(copy.deepcopy(module).double().train(), wide(inputs), loss, wide(targets))
    except (RuntimeError, TypeError):  # it names f32 somewhere
        return steps_of(copy.deepcopy(module).train(), inputs, loss, targets)


def steps_of(module, inputs, loss, targets):
    before, losses = {n: p.detach().clone() for n, p in module.named_parameters()}, []
    optimizer = torch.optim.SGD(module.parameters(), LR)
    for _ in range(STEPS):
        optimizer.zero_grad()
        value = of_result(loss, module(**inputs), targets)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses, before, {n: p.detach() for n, p in module.named_parameters()}


def by_compile(module, inputs, loss, targets, device):
    module = module.eval()
    with torch.no_grad():
        results = module(**inputs)
    wanted = by_torch(module, inputs, loss, targets)
    model = cleave.compile(module.train(), loss=loss, optimizer="sgd", lr=LR, device=device)
    batch = dict(inputs, **{"target%d" % i: t for i, t in enumerate(targets)})
    told = model.predict(inputs)
    row = ["%.1e" % off(floats(told), floats(results))]
    losses = [model.step(batch) for _ in range(STEPS)]
    row.append("%.1e" % max(abs(a - b) / max(1e-3, abs(b)) for a, b in zip(losses, wanted[0])))
    state = model.state_dict()
    apart = sum(float((state[n].double() - v).square().sum()) for n, v in wanted[2].items())
    moved = sum(float((wanted[1][n] - v).square().sum()) for n, v in wanted[2].items())
    model.close()
    row.append("%.1e" % (apart / max(moved, 1e-30))**0.5)
    single = steps_of(copy.deepcopy(module), inputs, loss, targets)[2]
    return row + ["%.1e" % (sum(float((single[n].double() - v).square().sum()) for n, v in wanted[2].items()) / max(moved, 1e-30))**0.5]


def call(tool, *args):
    done = subprocess.run([tool, *map(str, args)], capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["cleave ended with %d" % done.returncode])[-1])
    return json.loads(done.stdout) if done.stdout.startswith("{") else {}


def by_onnx(module, inputs, loss, targets, device, tool):
    import onnxruntime
    module = module.eval()
    if "labels" in inputs and getattr(getattr(module, "config", None), "is_encoder_decoder", False):
        inputs = dict(inputs, decoder_input_ids=inputs["labels"])
    inputs = {k: v for k, v in inputs.items() if k not in ("labels", "future_values")}
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "net.onnx"), os.path.join(folder, "told.npz")
        try:
            with open(os.devnull, "w") as nobody:
                stdout, sys.stdout = sys.stdout, nobody
                try:
                    torch.onnx.export(module, (), path, kwargs=inputs, verbose=False)
                finally:
                    sys.stdout = stdout
        except Exception as error:
            return ["not exported", type(error).__name__]
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        fed = dict(zip([i.name for i in session.get_inputs()], [x.numpy() for x in pytree.tree_leaves(inputs)]))
        names, batch = [o.name for o in session.get_outputs()], len(next(iter(fed.values())))
        first_is = lambda y: y.swapaxes(0, 1) if y.ndim > 1 and len(y) != batch == y.shape[1] else y  # the batch
        wanted = {name: first_is(y) for name, y in zip(names, session.run(None, fed))}
        data = os.path.join(folder, "data.npz")
        numpy.savez(data, **fed)
        more = ["--model", path, "--device", device, "--quiet", "--batch", batch]
        call(tool, "run", "arrays", data, "--output", out, *more)
        told = numpy.load(out)
        row = ["%.1e" % off([told[n] for n in names], [torch.from_numpy(numpy.atleast_1d(wanted[n])) for n in names])]
        first = next(n for n in names if wanted[n].dtype == numpy.float32)
        target = numpy.random.default_rng(0).standard_normal(wanted[first].shape).astype(numpy.float32)
        numpy.savez(data, **fed, **{first: target})
        with torch.no_grad():
            trained = floats(copy.deepcopy(module).train()(**inputs))
        losses = [float(((y.astype(numpy.float64) - target) ** 2).mean()) for y in [wanted[first]] + [first_is(y.numpy()) for y in trained] if y.shape == target.shape]
        told = call(tool, "train", "arrays", data, "--target", first + "=mse", "--no-standardize", "--validation", 0, "--no-shuffle", "--epochs", 1,
                       "--steps", 1, "--optimizer", "sgd", "--lr", 1e-3, "--json", *more)
        return row + ["%.1e" % min(abs(told["train_loss"] - one) / one for one in losses)]  # of batch statistics, where the exporter kept those


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cleave")
    parser.add_argument("--device", default="host")
    parser.add_argument("--way", choices=("compile", "onnx"))
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "bring.tsv")
    parser.add_argument("names", nargs="*")
    option = parser.parse_intermixed_args()
    rows = {tuple(line.split("\t")[:2]): line for line in option.out.read_text().splitlines()} if option.out.exists() else {}
    ways = [option.way] if option.way else ["compile", "onnx"]
    for name, way in [(n, w) for n in option.names or MODELS for w in ways]:
        if not option.names and (name, way) in rows:
            continue
        torch.manual_seed(1)
        try:
            module, inputs, loss, targets = MODELS[name]()
            module = quiet(module)
            found = by_compile(module, inputs, loss, targets, option.device) if way == "compile" else \
                by_onnx(module, inputs, loss, targets, option.device, option.cleave)
        except Exception as error:
            found = ["refused", "%s: %s" % (type(error).__name__, re.sub(r"(/[^ /]+)+/", "", " ".join(str(error).split()))[:300])]
        rows[name, way] = "\t".join([name, way] + found)
        print(rows[name, way], flush=True)
        option.out.write_text("\n".join(rows.values()) + "\n")


if __name__ == "__main__":
    sys.exit(main())
