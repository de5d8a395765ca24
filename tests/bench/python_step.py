#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training step of a module of PyTorch: by cleave.compile, by PyTorch, and by an unchanged loop under torch.compile, in turn.

    python_step.py [--device cpu] [--rounds 7] [--steps 3] [--sides cleave,eager,compiled,backend,within] [--processor] [NAME...]

cleave is cleave.compile's step, the C library's with tens of microseconds around it; eager and compiled are PyTorch's own; backend is
torch.compile(module, backend="cleave"), and within the same of a function that gives the loss. Adam in all (PyTorch's fused one, but for
Cleave's own), no dropout, two threads. The least of the rounds' means counts for each, and the last numbers are the others over the first.
Without names all models. --processor: the time of all threads on processors, for a machine that others use; OMP_WAIT_POLICY=PASSIVE then
keeps PyTorch's threads from waiting there.
"""
import argparse
import functools
import time
import warnings

import torch
from torch import nn
from torch.nn import functional as F

import cleave
from cleave._dynamo import backend


class Recurrent(nn.Module):
    """Two layers of 256 over 128 steps of a batch of 32."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(256, 256, 2, batch_first=True)
        self.head = nn.Linear(256, 10)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


class UNet(nn.Module):
    """Ronneberger's, with padding and batch norm; the width is that of the paper."""

    def __init__(self, width=64, depth=4):
        super().__init__()
        both = lambda a, b: nn.Sequential(nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(),
                                          nn.Conv2d(b, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU())
        widths = [width << i for i in range(depth + 1)]
        self.down = nn.ModuleList(both(a, b) for a, b in zip([3] + widths, widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in reversed(widths[:-1]))
        self.join = nn.ModuleList(both(2 * w, w) for w in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        kept = []
        for block in self.down:
            x = block(F.max_pool2d(x, 2) if kept else x)
            kept.append(x)
        for i, (up, join) in enumerate(zip(self.up, self.join)):
            x = join(torch.cat([kept[-2 - i], up(x)], 1))
        return self.head(x)


class OfTransformers(nn.Module):
    def __init__(self, module, many):
        super().__init__()
        self.module, self.many = module, many

    def forward(self, ids):
        logits = self.module(ids).logits
        return logits.flatten(0, 1) if self.many else logits


def lstm():
    return Recurrent(), torch.randn(32, 128, 256), torch.randint(10, (32,))


def unet():
    return UNet(), torch.randn(8, 3, 64, 64), torch.randint(2, (8, 64, 64))


def vit_tiny():
    from torchvision.models import VisionTransformer
    return VisionTransformer(224, 16, 12, 3, 192, 768, num_classes=10), torch.randn(8, 3, 224, 224), torch.randint(10, (8,))


def bert_mini():
    from transformers import BertConfig, BertForSequenceClassification
    config = BertConfig(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024, num_labels=2,
                        hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    return OfTransformers(BertForSequenceClassification(config), False), torch.randint(30000, (16, 128)), torch.randint(2, (16,))


def llama_10m():
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(vocab_size=4096, hidden_size=256, intermediate_size=688, num_hidden_layers=11, num_attention_heads=8,
                         num_key_value_heads=4, max_position_embeddings=256, use_cache=False)
    return OfTransformers(LlamaForCausalLM(config), True), torch.randint(4096, (8, 128)), torch.randint(4096, (8 * 128,))


def gpt():
    from transformers import GPT2Config, GPT2LMHeadModel
    config = GPT2Config(vocab_size=256, n_positions=128, n_embd=192, n_layer=4, n_head=6, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    return OfTransformers(GPT2LMHeadModel(config), True), torch.randint(256, (8, 128)), torch.randint(256, (8 * 128,))


def pictures(name):
    import torchvision
    return torchvision.models.get_model(name, weights=None, dropout=0, num_classes=10) if "mobile" in name else \
        torchvision.models.get_model(name, weights=None, num_classes=10), torch.randn(8, 3, 224, 224), torch.randint(10, (8,))


MODELS = {f.__name__: f for f in (lstm, unet, vit_tiny, bert_mini, llama_10m, gpt)}
MODELS.update({name: functools.partial(pictures, name) for name in ("resnet18", "mobilenet_v3_large")})
SIDES = ("cleave", "eager", "compiled", "backend", "within")


def of_pytorch(module, x, y, side, device):
    module.train()
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-4, fused=True)
    ours = dict(backend=backend, options={"device": device, "fallback": False})
    run = torch.compile(module, **(ours if side == "backend" else {})) if side in ("compiled", "backend") else module
    loss_of = lambda x, y: F.cross_entropy(run(x), y)
    if side == "within":
        loss_of = torch.compile(loss_of, **ours)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def steps_of(name, option):
    torch.manual_seed(1)
    module, x, y = MODELS[name]()
    weights = {k: v.clone() for k, v in module.state_dict().items()}
    found = {}
    for side in option.sides.split(","):
        if side == "cleave":
            model = cleave.compile(module, device=option.device, loss="cross_entropy", optimizer="adam", lr=1e-4)
            found[side] = lambda: float(model.step(x, y))
        else:
            other = MODELS[name]()[0]
            other.load_state_dict(weights)
            found[side] = of_pytorch(other, x, y, side, option.device)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--processor", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    option = parser.parse_args()
    clock = time.process_time if option.processor else time.perf_counter
    warnings.simplefilter("ignore")
    torch.set_num_threads(2)
    for name in option.names or MODELS:
        found = steps_of(name, option)
        first = {k: step() for k, step in found.items()}  # the first steps plan and compile
        took = {k: [] for k in found}
        for _ in range(option.rounds):
            for kind, step in found.items():
                step()
                began = clock()
                for _ in range(option.steps):
                    step()
                took[kind].append((clock() - began) / option.steps)
        least = {k: min(v) for k, v in took.items()}
        base = next(iter(least.values()))
        print(name, *(f"{k} {v * 1e3:.1f} ms" for k, v in least.items()), "ratios", *(f"{v / base:.2f}" for v in least.values()),
              "first losses", *(f"{v:.5f}" for v in first.values()), sep="  ", flush=True)


if __name__ == "__main__":
    main()
