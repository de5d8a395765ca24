#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model of PyTorch beside the same model exported to ONNX and read by Cleave: same weights, same data, on both sides.

    tools/parity-pytorch.py CLEAVE MODEL|FILE.onnx [--exporter old|new] [--device SPEC] [--batch 4] [--size 64] [--dims seq=16]
                            [--optimizers LIST] [--steps 10] [--no-winograd] [--no-train] [--smooth] [--keep DIR] [--json]

CLEAVE is the tool. MODEL is a name of torchvision (resnet18, deeplabv3_mobilenet_v3_large, backbone:resnet50) or one of transformers made
small (bert, gpt2, llama, vit, whisper, t5), with random weights. FILE.onnx has its own; onnx_torch.py makes a module of it, and --dims
says how large its open dimensions are. Prints a table: results beside ONNX Runtime's (`run`: the largest difference over the largest value), ours and
its own beside PyTorch's in f64 (`exact`, `peer`), then beside PyTorch in f64 the loss, all gradients together and the parameter whose gradient is furthest off (norm of the difference over the
norm), the same of PyTorch's own gradients in f32 (`theirs`), and the parameters after some steps of each optimizer (norm of the difference over the norm of what the steps changed).

--exporter old is torch.onnx.export(dynamo=False), new is dynamo=True. --size own is the size of pictures that torchvision's weights of the
model are for; the default is 64, or what the model insists on. --no-winograd pins direct convolutions. --no-train compares results only. A ReLU at its
kink, below zero here and above it there, changes gradients far more than rounding: --smooth puts SiLU in its place, and means in that of maxima, so what is left then
is rounding, or a fault.
Exit 0 done, 1 Cleave or an exporter refused (the sentence is told), 2 wrong usage.
"""
import argparse
import contextlib
import copy
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
warnings.filterwarnings("ignore")
try:
    import numpy
    import onnx
    import torch
    import torch.nn.functional as F
    from onnx import numpy_helper
except ImportError as missing:
    sys.exit(f"parity-pytorch.py: {missing}; run the script with a Python that has torch, numpy and onnx")


class Refused(Exception):
    """Cleave or an exporter does not do it; its sentence."""


# ---- models ---------------------------------------------------------------------------------------------------------
class First(torch.nn.Module):
    """Some results of a module, in a list."""

    def __init__(self, net, pick):
        super().__init__()
        self.net, self.pick = net, pick

    def forward(self, *x):
        return self.pick(self.net(**dict(zip(("input_ids", "attention_mask"), x))) if len(x) > 1 else self.net(*x))


def pictures(batch, size):
    return [torch.randn(batch, 3, size, size)]


def tokens(batch, length, most):
    return [torch.randint(1, most, (batch, length))]  # 0 may be padding, which PyTorch's embeddings leave out and a file cannot


def of_transformers(name, batch):
    """Models that people name, of one or two narrow layers."""
    import transformers as T
    small = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
    if name == "bert":
        net = T.BertForSequenceClassification(T.BertConfig(vocab_size=99, num_labels=5, max_position_embeddings=32, **small))
        mask = torch.ones(batch, 12, dtype=torch.long)
        mask[0, 9:] = 0
        return First(net, lambda y: y.logits), tokens(batch, 12, 99) + [mask]
    if name == "gpt2":
        net = T.GPT2LMHeadModel(T.GPT2Config(vocab_size=99, n_positions=32, n_embd=32, n_layer=2, n_head=4, use_cache=False))
        return First(net, lambda y: y.logits), tokens(batch, 12, 99) + [torch.ones(batch, 12, dtype=torch.long)]
    if name == "llama":
        net = T.LlamaForCausalLM(T.LlamaConfig(vocab_size=99, max_position_embeddings=32, num_key_value_heads=2, use_cache=False, **small))
        return First(net, lambda y: y.logits), tokens(batch, 12, 99) + [torch.ones(batch, 12, dtype=torch.long)]
    if name == "vit":
        net = T.ViTForImageClassification(T.ViTConfig(image_size=32, patch_size=8, num_labels=5, **small))
        return First(net, lambda y: y.logits), pictures(batch, 32)
    if name == "whisper":
        config = T.WhisperConfig(d_model=32, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=64, num_mel_bins=8,
                                 max_source_positions=20, decoder_layers=1, decoder_attention_heads=4, decoder_ffn_dim=64)
        return First(T.WhisperModel(config).get_encoder(), lambda y: y.last_hidden_state), [torch.randn(batch, 8, 40)]
    if name == "t5":
        config = T.T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
        return First(T.T5EncoderModel(config), lambda y: y.last_hidden_state), tokens(batch, 12, 99)
    return None


# Sizes that a model insists on, and what it must be told of them.
SIZES = {"inception_v3": 128, "alexnet": 224, "vgg": 224, "maxvit": 224}


def own_size(name):
    """Of a side of the pictures that a model of torchvision was trained on, as its weights say; of detectors, of which they say none, 224."""
    from torchvision import models
    if name not in models.list_models():
        return 224
    told = models.get_model_weights(name).DEFAULT.transforms()
    return getattr(told, "crop_size", getattr(told, "resize_size", [224]))[0]


def of_torchvision(name, batch, size):
    import torchvision
    batch = min(batch, 2) if name.startswith(("alexnet", "vgg", "maxvit")) else batch
    if size == "own":
        size = own_size(name)
        batch = min(batch, 2) if size > 256 else batch
    more, size = {}, size or next((s for key, s in SIZES.items() if name.startswith(key)), 64)
    if name.startswith("backbone:"):
        from torchvision.models.detection import backbone_utils as backbones
        of = name.split(":")[1]
        build = backbones.mobilenet_backbone if of.startswith("mobilenet") else backbones.resnet_fpn_backbone
        net = build(backbone_name=of, weights=None, **({"fpn": True} if build is backbones.mobilenet_backbone else {}))
        return First(net, lambda y: list(y.values())), pictures(batch, size)
    if name not in torchvision.models.list_models():
        return None
    if name.startswith("vit_"):
        more["image_size"] = size // 14 * 14 if name.endswith("_14") else size
        size = more["image_size"]
    if name.startswith("maxvit"):
        more["input_size"] = (size, size)
    if name in ("googlenet", "inception_v3"):
        more.update(aux_logits=False, init_weights=False)
    segments = name in torchvision.models.list_models(torchvision.models.segmentation)
    if segments:
        more.update(weights_backbone=None, num_classes=5)
    net = torchvision.models.get_model(name, weights=None, **more)
    return (First(net, lambda y: list(y.values())) if segments else net), pictures(batch, size)


def of_file(path, batch, dims):
    """Its module, and random numbers for its inputs; whole ones are 0 or 1."""
    from onnx_torch import File
    net, inputs = File(path), []
    sizes = dict(one.split("=") for one in dims.split(",") if one)
    for one in net.inputs:
        kind = one.type.tensor_type
        shape = [batch] + [d.dim_value or int(sizes.get(d.dim_param, 1)) for d in kind.shape.dim][1:]
        inputs.append(torch.randn(shape) if kind.elem_type in (1, 10, 11, 16) else torch.randint(0, 2, shape))
    return net, inputs


def smoothed(net):
    """Without kinks: SiLU in the place of ReLU and its kin, means in the place of maxima, of which two may be equal but for rounding."""
    F.relu = lambda x, inplace=False: F.silu(x)
    for module in list(net.modules()):
        for key, child in module.named_children():
            if isinstance(child, (torch.nn.ReLU, torch.nn.ReLU6, torch.nn.Hardswish)):
                setattr(module, key, torch.nn.SiLU())
            elif isinstance(child, torch.nn.Hardsigmoid):
                setattr(module, key, torch.nn.Sigmoid())
            elif isinstance(child, torch.nn.MaxPool2d):
                setattr(module, key, torch.nn.AvgPool2d(child.kernel_size, child.stride, child.padding, child.ceil_mode))
    return net


def model_of(name, batch, size, smooth):
    """A module and what it is given."""
    made = of_transformers(name, batch) or of_torchvision(name, batch, size)
    if not made:
        sys.exit(f"parity-pytorch.py: neither torchvision nor this script has a model '{name}'")
    return prepare(smoothed(made[0]) if smooth else made[0], made[1]), made[1]


@torch.no_grad()
def prepare(net, inputs):
    """No dropout, no two parameters alike, and running statistics of what the layers are really given."""
    for module in net.modules():
        if isinstance(module, torch.nn.Dropout) or type(module).__name__ == "StochasticDepth":
            module.p = 0.0
        for key in ("dropout", "attention_dropout", "layerdrop", "activation_dropout"):
            if isinstance(getattr(module, key, None), float):
                setattr(module, key, 0.0)
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.momentum = 1.0
    for parameter in net.parameters():
        if parameter.numel() > 1 and parameter.std() < 1e-3:
            parameter += torch.randn_like(parameter) / 8
    net.train()(*inputs)
    for module in net.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.momentum = 0.1
    return net.eval()


def listed(y):
    return list(y) if isinstance(y, (list, tuple)) else [y]


# ---- the file -------------------------------------------------------------------------------------------------------
def export(net, inputs, path, exporter):
    """The old exporter as docs/onnx.md says, with a batch that varies. The new one as it is called most, for one sample, which says of
    every shape that the batch is 1; batch norms are trained before it puts them into convolutions, and run thereafter. Gives the file to
    run."""
    names, results = [f"x{i}" for i in range(len(inputs))], [f"y{i}" for i in range(len(listed(net(*inputs))))]
    args = dict(input_names=names, output_names=results)
    torch.backends.mha.set_fastpath_enabled(False)  # which the old exporter cannot write
    if exporter == "old":
        axes = {name: {0: "batch"} for name in names + results}
        torch.onnx.export(net, tuple(inputs), str(path), dynamo=False, dynamic_axes=axes, opset_version=17,
                          training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False, **args)
        return path
    args |= {"dynamo": True, "optimize": False, "verbose": False}
    program = torch.onnx.export(net, tuple(x[:1] for x in inputs), **args)
    program.save(str(path))
    program.optimize()
    program.save(str(path.with_suffix(".run.onnx")))
    return path.with_suffix(".run.onnx")


def initializers(path):
    file = onnx.load(str(path))
    return {one.name: numpy_helper.to_array(one) for one in file.graph.initializer if one.data_type in (1, 10, 11)}


def same_numbers(a, b):
    """In which order of axes b is a; None: in none."""
    if a.size != b.size:
        return None
    if a.shape == b.shape and numpy.array_equal(a, b):
        return tuple(range(a.ndim))
    for axes in ((1, 0), (0, 2, 1), (1, 2, 0), (2, 1, 0), (1, 0, 2)):
        if b.ndim == len(axes) and b.transpose(axes).shape == a.shape and numpy.array_equal(a, b.transpose(axes)):
            return axes
    return "flat" if numpy.array_equal(a.reshape(-1), b.reshape(-1)) else None


def places(net, path):
    """For each parameter (or buffer) the initializer that has its numbers, and in which order of axes. Exporters rename and turn some."""
    if hasattr(net, "names"):
        return {label: (name, range(value.ndim)) for label, (name, value) in net.names.items()}
    left, found = initializers(path), {}
    for name, value in list(net.named_parameters()) + list(net.named_buffers()):
        value = value.detach().float().numpy()
        if value.ndim == 0 or value.dtype != numpy.float32:
            continue
        same = [key for key in left if key == name] + [key for key in left if key != name]
        for key in same:
            axes = same_numbers(left[key], value)
            if axes is not None:
                found[name] = key, axes
                break
    return found


def turned(value, axes, shape):
    return value.reshape(shape) if axes == "flat" else value.transpose(*axes)


# ---- both sides -----------------------------------------------------------------------------------------------------
def loss_of(results, targets):
    total = 0
    for y, t in zip(results, targets):
        if t.is_floating_point():
            total = total + F.mse_loss(y, t.to(y.dtype))
        else:
            total = total + F.cross_entropy(y.flatten(0, -2), t.flatten())
    return total


def targets_of(results, inputs):
    """Classes for logits, numbers for the rest, as Cleave takes them."""
    texts = not any(x.is_floating_point() for x in inputs)
    out = []
    for y in results:
        if y.ndim == 2 or (y.ndim == 3 and texts):
            out.append(torch.randint(0, y.shape[-1], y.shape[:-1]))
        else:
            out.append(torch.randn_like(y))
    return out


def torch_steps(net, inputs, targets, optimizer, steps, dtype=torch.float64):
    """Loss and gradients of the first step, and the parameters after the last."""
    net = copy.deepcopy(net).to(dtype).train()
    inputs = [x.to(dtype) if x.is_floating_point() else x for x in inputs]
    optimizer, gradients = optimizer(net.parameters()), {}
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(listed(net(*inputs)), targets)
        loss.backward()
        if step == 0:
            first = loss.item()
            gradients = {key: p.grad.numpy().copy() for key, p in net.named_parameters() if p.grad is not None}
        optimizer.step()
    return first, gradients, {key: value.detach().numpy() for key, value in net.state_dict().items()}


class Cleave:
    def __init__(self, tool, device, folder, model, winograd=True):
        self.tool, self.folder, self.model = tool, pathlib.Path(folder), str(model)
        self.more = ["--device", device, "--quiet", "--json"]
        if not winograd:
            self.more += ["--variants", "conv2d=plain,conv2d_backward_input=plain,conv2d_backward_weight=plain"]

    def call(self, *args):
        done = subprocess.run([self.tool, *map(str, args), "--model", self.model, *self.more], capture_output=True, text=True, timeout=1200)
        if done.returncode:
            raise Refused((done.stderr.strip().splitlines() or [f"cleave ended with {done.returncode}"])[-1])
        return json.loads(done.stdout) if done.stdout.strip().startswith("{") else {}

    def arrays(self, inputs, targets=()):
        path = self.folder / "data.npz"
        put = {f"x{i}": x.numpy() for i, x in enumerate(inputs)} | {f"y{i}": y.numpy() for i, y in enumerate(targets)}
        numpy.savez(path, **{k: v.astype(numpy.int32) if v.dtype == numpy.int64 else v for k, v in put.items()})
        return path

    def run(self, inputs, n_results):
        if len(inputs) == 1 and n_results == 1:
            x, y = self.folder / "x.npy", self.folder / "y.npy"
            numpy.save(x, inputs[0].numpy() if inputs[0].is_floating_point() else inputs[0].int().numpy())
            self.call("run", "--input", x, "--batch", len(inputs[0]), "--output", y)
            return [numpy.load(y)]
        out = self.folder / "out.npz"
        self.call("run", "arrays", self.arrays(inputs), "--batch", len(inputs[0]), "--output", out)
        told = numpy.load(out)
        return [told[f"y{i}"] for i in range(n_results)]

    def train(self, inputs, targets, steps, *how):
        names = ",".join(f"y{i}" for i in range(len(targets)))
        return self.call("train", "arrays", self.arrays(inputs, targets), "--target", names, "--no-standardize", "--validation", 0,
                         "--no-shuffle", "--batch", len(inputs[0]), "--epochs", steps, "--steps", steps, "--schedule", "constant",
                         "--weight-decay", 0, *how)

    def gradients(self, inputs, targets):
        path = self.folder / "gradients.safetensors"
        told = self.train(inputs, targets, 1, "--optimizer", "sgd", "--lr", 1e-6, "--dump-gradients", path)
        return told["train_loss"], tensors(path)

    def weights(self, inputs, targets, steps, *how):
        path = self.folder / "weights.safetensors"
        self.train(inputs, targets, steps, "--save", path, *how)
        return tensors(path)


def tensors(path):
    """A safetensors file's floats."""
    with open(path, "rb") as file:
        n = int.from_bytes(file.read(8), "little")
        header, data = json.loads(file.read(n)), file.read()
    header.pop("__metadata__", None)
    return {key: numpy.frombuffer(data[one["data_offsets"][0]:one["data_offsets"][1]], numpy.float32).reshape(one["shape"])
            for key, one in header.items() if one["dtype"] == "F32"}


# ---- comparing ------------------------------------------------------------------------------------------------------
def of_largest(a, b):
    return max(float(numpy.abs(x.astype(numpy.float64) - y).max() / (numpy.abs(y).max() + 1e-30)) for x, y in zip(a, b))


def run_by_onnxruntime(path, inputs):
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names, fixed, n = [one.name for one in session.get_inputs()], session.get_inputs()[0].shape[0], len(inputs[0])
    step = fixed if isinstance(fixed, int) else n
    told = [session.run(None, {name: x[i:i + step].numpy() for name, x in zip(names, inputs)}) for i in range(0, n, step)]
    return [numpy.concatenate(parts) for parts in zip(*told)]


def compare(found, told, wanted, minus=None):
    """Of all that both have: norm of the difference over the norm (of the change since `minus`), all together and the worst one."""
    off, size, worst, missing = 0.0, 0.0, (0.0, ""), []
    for name, value in wanted.items():
        key, axes = found.get(name, (None, None))
        if key not in told:
            missing.append(name)
            continue
        other = told[key].astype(numpy.float64)
        value = turned(value, axes, other.shape)
        base = turned(minus[name], axes, other.shape) if minus else 0.0
        a, b = float(((other - value) ** 2).sum()), float(((value - base) ** 2).sum())
        off, size, worst = off + a, size + b, max(worst, ((a / (b + 1e-60)) ** 0.5, key) if b > 1e-24 else (0.0, ""))
    return (off / (size + 1e-60)) ** 0.5, worst, missing


OPTIMIZERS = {
    "sgd": (lambda p: torch.optim.SGD(p, 0.01), ["--lr", 0.01]),
    "momentum": (lambda p: torch.optim.SGD(p, 0.01, 0.9), ["--lr", 0.01]),
    "adam": (lambda p: torch.optim.Adam(p, 0.001), ["--lr", 0.001]),
    "adamw": (lambda p: torch.optim.AdamW(p, 0.001, weight_decay=0.0), ["--lr", 0.001]),
}


def train_both(cleave, net, inputs, path, optimizers, steps, table):
    found = places(net, path)
    targets = targets_of(listed(net(*inputs)), inputs)
    first, wanted, _ = torch_steps(net, inputs, targets, lambda p: torch.optim.SGD(p, 0.0), 1)
    loss, told = cleave.gradients(inputs, targets)
    table["loss"] = abs(loss - first) / abs(first)
    # of a module and an initializer that several parameters share, the file has the sum
    table["gradients"], table["worst"], missing = compare(found, told, wanted)
    _, single, _ = torch_steps(net, inputs, targets, lambda p: torch.optim.SGD(p, 0.0), 1, torch.float32)
    table["theirs"] = (sum(float(((single[key] - value) ** 2).sum()) for key, value in wanted.items())
                       / sum(float((value ** 2).sum()) for value in wanted.values())) ** 0.5
    table["kept"] = f"{len(wanted) - len(missing)}/{len(wanted)}"
    before = {key: value.detach().double().numpy() for key, value in net.state_dict().items()}
    parameters = dict(net.named_parameters())
    for one in optimizers:
        make, how = OPTIMIZERS[one]
        _, _, after = torch_steps(net, inputs, targets, make, steps)
        told = cleave.weights(inputs, targets, steps, "--optimizer", one, *how)
        table[one] = compare(found, told, {k: v for k, v in after.items() if k in parameters}, before)[0]


def parity(tool, name, exporter="old", device="cpu", batch=4, size=None, dims="", optimizers=(), steps=10, winograd=True, smooth=False,
           folder=".", trains=True):
    """The table of a model: a dict of numbers, and under `refused` the sentence that ended it."""
    torch.manual_seed(0)
    is_file, folder = name.endswith(".onnx"), pathlib.Path(folder)
    net, inputs = of_file(name, batch, dims) if is_file else model_of(name, batch, size, smooth)
    path, table = pathlib.Path(name) if is_file else folder / "model.onnx", {"model": name, "device": device}
    if inputs[0].ndim == 4:
        table["side"] = inputs[0].shape[-1]
    to_run = path
    try:
        with torch.no_grad():
            if not is_file:
                table["exporter"] = exporter
                with open(os.devnull, "w") as nobody, contextlib.redirect_stdout(nobody):
                    to_run = export(net, inputs, path, exporter)
            results = listed(net(*(inputs if not is_file else [x.double() if x.is_floating_point() else x for x in inputs])))
        table["nodes"] = len(onnx.load(str(to_run), load_external_data=False).graph.node)
        cleave = Cleave(tool, device, folder, to_run, winograd)
        wanted = run_by_onnxruntime(to_run, inputs) or [y.numpy() for y in results]
        told = cleave.run(inputs, len(results))
        table["run"] = of_largest(told, wanted)
        wide = [x.double() if x.is_floating_point() else x for x in inputs]
        with torch.no_grad():
            exact = [y.numpy() for y in listed(copy.deepcopy(net).double()(*wide))]
        table["exact"], table["peer"] = of_largest(told, exact), of_largest(wanted, exact)
        cleave.model = str(path)
        if trains:
            train_both(cleave, net, inputs, path, optimizers, steps, table)
    except Refused as sentence:
        table["refused"] = str(sentence)
    return table


def side(text):
    if text != "own" and not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"'{text}' is neither a number of pixels nor own")
    return text if text == "own" else int(text)


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("cleave")
    parser.add_argument("model")
    parser.add_argument("--exporter", choices=("old", "new"), default="old")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--size", type=side)
    parser.add_argument("--dims", default="")
    parser.add_argument("--optimizers", default=",".join(OPTIMIZERS))
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--no-winograd", action="store_true")
    parser.add_argument("--no-train", action="store_true")
    parser.add_argument("--smooth", action="store_true")
    parser.add_argument("--keep")
    parser.add_argument("--json", action="store_true")
    if len(sys.argv) < 3 or "--help" in sys.argv:
        sys.exit(__doc__)
    args = parser.parse_args()
    folder = pathlib.Path(args.keep or tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    try:
        optimizers = [one for one in args.optimizers.split(",") if one]
        table = parity(args.cleave, args.model, args.exporter, args.device, args.batch, args.size, args.dims, optimizers, args.steps,
                       not args.no_winograd, args.smooth, folder, not args.no_train)
    finally:
        if not args.keep:
            shutil.rmtree(folder, ignore_errors=True)
    if args.json:
        print(json.dumps(table))
    else:
        for key, value in table.items():
            shown = f"{value:.2e}" if isinstance(value, float) else "{:.2e} {}".format(*value) if key == "worst" else value
            print(f"{key:16} {shown}")
    sys.exit("refused" in table)


if __name__ == "__main__":
    main()
