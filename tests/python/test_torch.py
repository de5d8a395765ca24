#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch modules through cleave.compile, held against PyTorch itself. By unittest; wants PyTorch."""
import copy
import gc
import os
import threading
import unittest
import warnings
from unittest import mock

import numpy
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import cleave
import cleave.nn
from cleave import _dynamo
from cleave._dynamo import _Pass, backend  # the wheel tells PyTorch of it: backend="cleave"

DEVICE = os.environ.get("CLEAVE_TEST_DEVICE", "host")
warnings.filterwarnings("ignore", module="torch")


def cnn(bias=True):
    return nn.Sequential(nn.Conv2d(1, 6, 3, padding=1, bias=bias), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(6 * 16, 5))


def digits(n=8, seed=3):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, 1, 8, 8, generator=generator), torch.randint(0, 5, (n,), generator=generator)


class Recurrent(nn.Module):
    def __init__(self, kind, **more):
        super().__init__()
        self.embedding, self.rnn = nn.Embedding(20, 6), kind(6, 7, batch_first=True, **more)
        self.out = nn.Linear(7 * (2 if more.get("bidirectional") else 1), 20)

    def forward(self, x):
        y, last = self.rnn(self.embedding(x))
        h = last[0] if isinstance(last, tuple) else last
        return (self.out(y) + h.mean()).transpose(1, 2)


class GPT(nn.Module):
    """As people write it: a mask that is a buffer, tied weights, positions made in forward, dropout, the loss within."""

    def __init__(self, words=17, length=8, width=16, heads=2):
        super().__init__()
        self.words, self.places, self.drop = nn.Embedding(words, width), nn.Embedding(length, width), nn.Dropout(0.1)
        self.norms, self.heads = nn.ModuleList(nn.LayerNorm(width) for _ in range(3)), heads
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))
        self.out = nn.Linear(width, words, bias=False)
        self.out.weight = self.words.weight
        self.register_buffer("mask", torch.tril(torch.ones(length, length)).view(1, 1, length, length))

    def forward(self, x, targets=None):
        n, t = x.size()
        h = self.drop(self.words(x) + self.places(torch.arange(0, t, dtype=torch.long, device=x.device).unsqueeze(0)))
        q, k, v = (z.view(n, t, self.heads, -1).transpose(1, 2) for z in self.qkv(self.norms[0](h)).split(h.size(2), dim=2))
        scores = (q @ k.transpose(-2, -1) / k.size(-1) ** 0.5).masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
        h = h + self.project((self.drop(scores.softmax(-1)) @ v).transpose(1, 2).contiguous().view(n, t, -1))
        logits = self.out(self.norms[2](h + self.mlp(self.norms[1](h))))
        return logits, None if targets is None else F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)


class Mixed(nn.Module):
    """Norms, transposed convolution, resizing, shuffles, indices, padding, masks."""

    def __init__(self):
        super().__init__()
        self.a, self.up = nn.Conv2d(3, 8, 3, padding="same"), nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.group, self.instance, self.rms = nn.GroupNorm(2, 8), nn.InstanceNorm2d(8, affine=True), nn.RMSNorm(6)
        self.scale = nn.Parameter(torch.rand(6))
        self.register_buffer("mask", torch.rand(6, 6) > 0.5)

    def forward(self, x):
        x = F.pad(self.instance(F.silu(self.group(self.a(x)))), (1, 1, 1, 1), mode="reflect")
        x = F.pixel_shuffle(F.interpolate(self.up(x), scale_factor=1.5, mode="bilinear"), 2)
        x = F.interpolate(x, size=(6, 6), mode="nearest").squeeze(1)
        x = self.rms(x) * self.scale
        x = torch.where(self.mask, x, x.flip(1).roll(2, 2)) + torch.arange(6)
        x = x[:, [0, 2, 4]] - x[:, 1::2].amin(2, keepdim=True) + x.std(dim=(1, 2), keepdim=True)
        return torch.cat([x.cumsum(1), x.tril().exp() / (1 + x.abs())], 1).logsumexp(2)


ODD = torch.randn(4, 6, generator=torch.Generator().manual_seed(9))
PLACES = torch.tensor([[0, 2], [5, 1], [3, 3], [4, 0]])
FORMS = {  # of x [4, 6]
    "flip": lambda x: x.flip(0, 1), "roll": lambda x: x.roll((1, -2), (0, 1)) + x.roll(3), "tile": lambda x: x.tile(3, 1, 2), "repeat": lambda x: x.repeat(2, 2),
    "pad": lambda x: F.pad(x, (1, -2, 0, 3), value=2.0), "reflect": lambda x: F.pad(x.view(1, 4, 6), (2, 1), mode="reflect"),
    "circular": lambda x: F.pad(x.view(1, 4, 6), (2, 1), mode="circular"), "replicate": lambda x: F.pad(x.view(1, 4, 6), (2, 1), mode="replicate"),
    "shuffle": lambda x: F.pixel_shuffle(x.view(1, 4, 2, 3), 2), "unshuffle": lambda x: F.pixel_unshuffle(x.view(4, 2, 3).repeat(1, 1, 2), 2),
    "diagonal": lambda x: x.diagonal(1) + x[:, :4].trace() + x.view(2, 2, 6).diagonal(-1, 2, 1).sum(), "unfold": lambda x: x.unfold(1, 3, 2),
    "fold": lambda x: F.fold(F.unfold(x.view(1, 1, 4, 6), (2, 3), padding=1, stride=2), (4, 6), (2, 3), padding=1, stride=2),
    "swapdims": lambda x: x.swapdims(0, 1), "tensor_split": lambda x: x.tensor_split(4, 1)[1] + x.tensor_split((2, 4), 1)[2],
    "stacks": lambda x: torch.hstack([x, x]) + torch.stack([x, 2 * x], 1).flatten(1) + torch.dstack([x, x]).flatten(1),
    "trunc": lambda x: (3 * x).trunc() + x.frac(), "logs": lambda x: x.abs().log10() + x.erfc() + torch.hypot(x, x + 1) + torch.logaddexp(x, 2 * x),
    "var": lambda x: x.var(1) + x.var() + x.std(1, unbiased=False) + torch.var_mean(x, 1)[1] + torch.std_mean(x)[0],
    "min": lambda x: x.amin(1) + x.min(1)[0] + x.min() + x.max(1)[0], "argmin": lambda x: (x * ODD.argmin(1)[:, None].float())[:, :1],
    "median": lambda x: x.median() + x.median(1)[0] + x.kthvalue(2, 1)[0], "triangles": lambda x: x.tril(1) + x.triu(-1),
    "one_hot": lambda x: x * F.one_hot(PLACES[:, 0], 6), "index": lambda x: x.view(2, 2, 6)[[0, 1], :, [-1, 2]] + x[[3, 1], 2:4],
    "index_put": lambda x: x.index_put((torch.tensor([0, 1]), torch.tensor([2, -1])), x[2, :2]).index_put((torch.tensor([3]),), x[0], accumulate=True),
    "masks": lambda x: x.index_put((ODD > 0,), torch.tensor(2.0, dtype=x.dtype)).index_fill(1, torch.tensor([0, 2]), 7.0),
    "scatter": lambda x: x.scatter(1, PLACES, 2.0) + x.scatter_reduce(1, PLACES, x[:, :2], "sum"), "edges": lambda x: x * torch.bucketize(ODD, torch.arange(-1.0, 2)),
    "cdist": lambda x: torch.cdist(x, x.flip(0) + 1) + torch.cdist(x, x.flip(0) + 1, p=1), "group": lambda x: F.group_norm(x.view(2, 4, 3), 2, x[0, :4], x[1, :4]),
    "instance": lambda x: F.instance_norm(x.view(1, 4, 6), weight=x[0, :4]), "triplet": lambda x: F.triplet_margin_loss(x, x.flip(0), x.roll(1)),
    "broadcast": lambda x: F.mse_loss(x[:, :1], ODD.to(x)) + F.l1_loss(ODD[:1].to(x), x, reduction="sum") + F.huber_loss(x, ODD.to(x), reduction="none", delta=0.3),
}


class Forms(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.5))  # of no dimension
        self.linear = nn.utils.parametrizations.weight_norm(nn.Linear(6, 6))

    def forward(self, x):
        x = self.linear(x) * self.scale
        return [form(x) for form in FORMS.values()]


class Check(unittest.TestCase):
    """Loss and every gradient against PyTorch in f64."""

    def held(self, module, *batch, tolerance=2e-4, **settings):
        torch.manual_seed(5)
        return cleave.compile(module, device=DEVICE, **settings).check(*batch, tolerance=tolerance)

    def test_cnn(self):
        rows = dict(self.held(cnn(), *digits()))
        self.assertEqual(len(rows), 8)

    def test_a_check_can_fail(self):
        model = cleave.compile(cnn(), device=DEVICE)
        x, y = digits()
        model.step(x, y)
        with self.assertRaisesRegex(AssertionError, r"of 8 differ from PyTorch by more than 1e-12: "):
            model.check(x, y, tolerance=1e-12)

    def test_recurrent(self):
        x, y = torch.randint(0, 20, (3, 5)), torch.randint(0, 20, (3, 5))
        for kind in (nn.LSTM, nn.GRU, nn.RNN):
            self.held(Recurrent(kind, num_layers=2, bidirectional=True), x, y)

    def test_padding_of_an_embedding(self):
        module, x = nn.Sequential(nn.Embedding(5, 3, padding_idx=1), nn.Flatten(), nn.Linear(12, 2)), torch.tensor([[1, 0, 1, 4], [2, 1, 1, 3]])
        self.held(module, x, torch.tensor([0, 1]))
        loss, found = cleave.compile(module, device=DEVICE).gradients(x, torch.tensor([0, 1]))
        self.assertEqual(found["0.weight"][1].tolist(), [0, 0, 0])
        with self.assertRaisesRegex(cleave.UnsupportedError, "scale_grad_by_freq"):
            cleave.compile(nn.Embedding(5, 3, scale_grad_by_freq=True), x, device=DEVICE)

    def test_transformer(self):
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, activation="gelu")
        self.held(nn.Sequential(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Flatten(), nn.Linear(80, 4)),
                  torch.randn(3, 5, 16), torch.randint(0, 4, (3,)))

    def test_masked_attention(self):
        class Attention(nn.Module):
            def __init__(self):
                super().__init__()
                self.qkv = nn.Linear(8, 24)

            def forward(self, x):
                q, k, v = self.qkv(x).view(2, 6, 3, 2, 4).permute(2, 0, 3, 1, 4)
                mask = torch.ones(6, 6, dtype=torch.bool).tril(1)
                return (F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
                        + F.scaled_dot_product_attention(q, k, v, is_causal=True)).sum((1, 3))
        self.held(Attention(), torch.randn(2, 6, 8), torch.rand(2, 6), loss="mse")

    def test_mixed(self):
        self.held(Mixed(), torch.randn(2, 3, 8, 8), torch.randn(2, 6), loss="mse")

    def test_forms(self):
        torch.manual_seed(2)
        module, x = Forms(), torch.randn(4, 6)
        for name, got, wanted in zip(FORMS, cleave.compile(module, device="host").predict(x), module(x)):
            torch.testing.assert_close(got, wanted.detach(), rtol=1e-4, atol=1e-5, msg=lambda m: "%s: %s" % (name, m))
        cleave.compile(module, device="host", loss=lambda ys, _: sum((y ** 2).mean() / (1 + i % 5) for i, y in enumerate(ys))).check(x, x)

    def test_a_median_of_nothing(self):
        class Middle(nn.Module):
            def forward(self, x):
                return x.median(), x.median(1)[0], x
        x = torch.randn(3, 5)
        x[1, 2] = float("nan")
        for got, wanted in zip(cleave.compile(Middle(), device=DEVICE).predict(x), Middle()(x)):
            torch.testing.assert_close(got, wanted, equal_nan=True)

    def test_sampling(self):
        class Sampled(nn.Module):
            def __init__(self):
                super().__init__()
                self.theta = nn.Parameter(torch.tensor([[0.91, 0.23, 0.12], [-0.13, 0.83, 0.05]]))
                ys, xs = torch.meshgrid(torch.linspace(-1, 1, 6), torch.linspace(-1, 1, 5), indexing="ij")
                self.register_buffer("base", torch.stack([xs, ys, torch.ones(6, 5)], -1))

            def forward(self, x):
                grid = torch.einsum("ij,hwj->hwi", self.theta, self.base)[None].expand(2, -1, -1, -1)
                y = F.grid_sample(x, grid, padding_mode="border", align_corners=False)
                for how in (dict(size=(7, 9), mode="bilinear"), dict(size=(5, 6), mode="nearest"), dict(scale_factor=1.5, mode="bicubic"),
                            dict(size=(4, 5), mode="bilinear", antialias=True), dict(scale_factor=(2, 1.4), mode="nearest-exact")):
                    y = F.interpolate(y, **how)
                y = F.adaptive_max_pool2d(y, (5, 4)).sum(1)
                y = torch.atan2(y, x[:, 0, :5, :4]) + torch.expm1(y * 0.1) + torch.log1p(y * y) + torch.remainder(y.floor(), 3) + torch.fmod(y.floor(), 3)
                return torch.nan_to_num(y.prod(2) + y.cumprod(2).sum(2))
        self.held(Sampled(), torch.randn(2, 3, 6, 5), torch.randn(2, 5), loss="mse", tolerance=1e-3)

    def test_losses(self):
        x, k = torch.randn(6, 4), torch.randint(0, 4, (6,))
        k_ignored = k.clone()
        k_ignored[2] = -100
        numbers, bits = torch.randn(6, 4), torch.randint(0, 2, (6, 4)).float()
        w = torch.tensor([1.0, 0.5, 2.0, 3.0])
        for loss, y in ((nn.CrossEntropyLoss(), k_ignored), (nn.CrossEntropyLoss(weight=w), k), (nn.CrossEntropyLoss(label_smoothing=0.1), k),
                        (nn.CrossEntropyLoss(label_smoothing=0.1, weight=w), k_ignored), (nn.NLLLoss(weight=w, reduction="sum"), k_ignored),
                        (lambda o, t: nn.CrossEntropyLoss(weight=w.to(o.dtype), reduction="none", label_smoothing=0.1)(o, t).mean(), k_ignored),
                        (lambda o, t: F.cross_entropy(o.view(2, 3, 4).transpose(1, 2), t.view(2, 3)), k_ignored),
                        (lambda o, t: F.cross_entropy(o[0], t[0]) + F.cross_entropy(o, t, reduction="sum"), k_ignored),
                        (lambda o, t: F.kl_div(F.log_softmax(o, 1), F.log_softmax(t, 1), log_target=True), numbers), (nn.SoftMarginLoss(), bits * 2 - 1),
                        (nn.CrossEntropyLoss(), numbers.softmax(1)), (nn.MSELoss(reduction="sum"), numbers), (nn.L1Loss(), numbers),
                        (nn.SmoothL1Loss(beta=0.5), numbers), (nn.HuberLoss(delta=0.7), numbers), (nn.BCEWithLogitsLoss(pos_weight=w), bits),
                        (lambda o, t: F.nll_loss(F.log_softmax(o, 1), t), k), (lambda o, t: F.binary_cross_entropy(torch.sigmoid(o), t), bits),
                        (lambda o, t: F.kl_div(F.log_softmax(o, 1), t, reduction="batchmean"), numbers.softmax(1))):
            with self.subTest(str(loss)):
                self.held(nn.Linear(4, 4), x, y, loss=loss)

    def test_ctc(self):
        class Steps(nn.Linear):
            def forward(self, x):
                return super().forward(x).transpose(0, 1).log_softmax(2)

        x, labels = torch.randn(3, 9, 4), torch.tensor([[1, 1, 2, 3], [4, 2, 2, 2], [3, 1, 4, 1]])
        steps, lengths = torch.tensor([9, 8, 7]), torch.tensor([4, 3, 2])
        for loss in ("ctc", F.ctc_loss, nn.CTCLoss(blank=5, reduction="sum"), nn.CTCLoss(zero_infinity=True)):
            with self.subTest(str(loss)):
                module = Steps(4, 6)
                self.held(module, x, labels, steps, lengths, loss=loss, example=x)
                model = cleave.compile(module, example=x, device=DEVICE, loss=loss, optimizer="adam", lr=0.1)
                told = model.fit([(x, labels, steps, lengths)] * 4, epochs=3, progress=False)
                self.assertLess(told[-1]["loss"], told[0]["loss"])
                wanted = (F.ctc_loss if isinstance(loss, str) else loss)(model.to_torch()(x), labels, steps, lengths)
                self.assertAlmostEqual(model.evaluate([(x, labels, steps, lengths)])["loss"], float(wanted), delta=1e-3 * float(wanted))


class Training(unittest.TestCase):
    def test_steps_are_pytorchs(self):
        x, y = digits()
        for ours, theirs in ((cleave.optim.SGD(0.1), lambda p: torch.optim.SGD(p, 0.1)),
                             (cleave.optim.SGD(0.05, momentum=0.9, nesterov=True, weight_decay=1e-3),
                              lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, nesterov=True, weight_decay=1e-3)),
                             (cleave.optim.Adam(1e-2), lambda p: torch.optim.Adam(p, 1e-2)),
                             (cleave.optim.AdamW(1e-2, weight_decay=0.1), lambda p: torch.optim.AdamW(p, 1e-2, weight_decay=0.1))):
            torch.manual_seed(1)
            module = cnn(bias=False)  # before a batch norm its gradient is rounding alone, which Adam makes steps of
            twin = copy.deepcopy(module)
            optimizer = theirs(twin.parameters())
            model = cleave.compile(module, device=DEVICE, optimizer=ours)
            for i in range(10):
                optimizer.zero_grad()
                loss = F.cross_entropy(twin(x), y)
                loss.backward()
                optimizer.step()
                self.assertAlmostEqual(model.step(x, y), float(loss.detach()), delta=2e-4 * max(1, float(loss.detach())))
            wanted = twin.state_dict()
            for name, value in model.state_dict().items():
                torch.testing.assert_close(value, wanted[name], rtol=2e-3, atol=2e-3, msg=lambda m: "%s %s: %s" % (ours, name, m))
            self.assertEqual(int(model.state_dict()["1.num_batches_tracked"]), 10)

    def test_fit_and_evaluate(self):
        torch.manual_seed(0)
        x = torch.randn(200, 6)
        y = (x[:, :3].sum(1) > x[:, 3:].sum(1)).long()
        module = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2))
        model = cleave.compile(module, device=DEVICE, optimizer=torch.optim.Adam(module.parameters(), lr=1e-2))
        loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
        told = model.fit(loader, epochs=8, validation=loader, progress=False, callbacks=[lambda t: t["epoch"] == 7])
        self.assertEqual(len(told), 7)
        self.assertLess(told[-1]["loss"], told[0]["loss"])
        self.assertGreater(told[-1]["validation"]["accuracy"], 0.9)
        model.to_torch().eval()
        torch.testing.assert_close(module(x), model.predict(x), rtol=1e-4, atol=1e-5)
        self.assertEqual(len(model._programs["train", ""]), 1)  # 32 and the last 8 are one

    def test_batches_of_any_size(self):
        model = cleave.compile(cnn(), device=DEVICE, loss=nn.CrossEntropyLoss(reduction="sum"), lr=0.0)
        x, y = digits(7)
        model.module.eval()
        for n in (1, 2, 7):
            torch.testing.assert_close(model.predict(x[:n]), model.module(x[:n]), rtol=1e-4, atol=1e-5)
        self.assertIsInstance(model.predict(x.numpy()), numpy.ndarray)
        model.step(x, y)
        model.step(x[:4], y[:4])

    def test_frozen_and_tied(self):
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.embedding, self.out = nn.Linear(5, 5), nn.Embedding(9, 5), nn.Linear(5, 9, bias=False)
                self.out.weight = self.embedding.weight
                self.first.weight.requires_grad_(False)

            def forward(self, x):
                return self.out(self.first(self.embedding(x)))
        module = Tied()
        frozen = module.first.weight.detach().clone()
        model = cleave.compile(module, device=DEVICE, optimizer="sgd", lr=0.5)
        x, y = torch.randint(0, 9, (6,)), torch.randint(0, 9, (6,))
        names = dict(model.check(x, y))
        self.assertNotIn("first.weight", names)
        before = model.state_dict()["out.weight"].clone()
        model.step(x, y)
        state = model.state_dict()
        torch.testing.assert_close(state["first.weight"], frozen, rtol=0, atol=0)
        torch.testing.assert_close(state["out.weight"], state["embedding.weight"], rtol=0, atol=0)
        self.assertFalse(torch.equal(state["out.weight"], before))
        module.load_state_dict(state)

    def test_weights_go_both_ways(self):
        x, y = digits()
        one, other = (cleave.compile(cnn(), device=DEVICE) for _ in range(2))
        one.step(x, y)
        other.load_state_dict(one.state_dict())
        torch.testing.assert_close(other.predict(x), one.predict(x), rtol=0, atol=0)
        with self.assertRaises(RuntimeError):
            other.load_state_dict({"0.weight": torch.zeros(1)})

    def test_copies(self):
        import pickle
        x, y = digits()
        for loss in ("cross_entropy", nn.CrossEntropyLoss(label_smoothing=0.1)):
            model = cleave.compile(cnn(), device=DEVICE, loss=loss, optimizer=cleave.optim.SGD(0.1))
            model.step(x, y)
            other = pickle.loads(pickle.dumps(model))
            torch.testing.assert_close(other.predict(x), model.predict(x), rtol=0, atol=0)
            self.assertEqual(other.step(x, y), model.step(x, y))
            self.assertEqual(copy.deepcopy(model).step(x, y), model.step(x, y))

    def test_memory_is_as_planned(self):
        x, y = digits()
        device = cleave.Device(DEVICE)
        gc.collect()
        before = device.memory()["current"]
        model = cleave.compile(cnn(), device=device)
        planned = model.plan(x, y)
        self.assertEqual(device.memory()["current"], before)
        model.step(x, y)
        self.assertEqual(device.memory()["current"] - before, planned.bytes)
        self.assertIn("parameters", repr(planned))
        model.close()
        self.assertEqual(device.memory()["current"], before)
        self.assertGreater(model.plan(x, y, device="null:rtx-4090").devices[0]["least_seconds"], 0)

    def test_ten_thousand_steps_hold_no_more(self):
        module = nn.Linear(3, 2)
        model = cleave.compile(module, device="host", optimizer="sgd", lr=1e-3)
        x, y = torch.randn(4, 3), torch.tensor([0, 1, 1, 0])
        model.step(x, y)
        before = _resident()
        for _ in range(10000):
            model.step(x, y)
        self.assertLess(_resident() - before, 4 << 20)

    def test_models_come_and_go(self):
        x, y = torch.randn(4, 3), torch.tensor([0, 1, 1, 0])
        cleave.compile(nn.Linear(3, 2), device="host").step(x, y)
        gc.collect()
        held = cleave.Device("host").memory()["current"]
        for _ in range(10):
            cleave.compile(nn.Linear(3, 2), device="host").step(x, y)
        gc.collect()
        self.assertEqual(cleave.Device("host").memory()["current"], held)


class Brought(unittest.TestCase):
    """What models that people have do, beside PyTorch."""

    def same(self, forward, *inputs):
        class Module(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(3, 2)

        Module.forward = forward
        module = Module()
        model = cleave.compile(module, device=DEVICE)
        told, wanted = model.predict(*inputs), module.eval()(*inputs)
        self.assertTrue(torch.allclose(told.double(), wanted.detach().double(), atol=1e-6), (told, wanted))
        model.close()

    def test_integers(self):
        i, by = torch.tensor([[7, -7, 2**31 - 1], [-8, 2**24 + 1, -2**31 + 1]]), torch.tensor([3, -2, 7])
        for f in (lambda i: i // 7, lambda i: i // by, lambda i: torch.div(i, -3, rounding_mode="trunc"), lambda i: i.argmax(1), lambda i: i.argmin(),
                  lambda i: i.amax(0), lambda i: i.min(1).values):
            self.same(lambda self, i: f(i) + 0 * i.sum(), i)

    def test_moves(self):
        x, i = torch.rand(6, 3), torch.tensor([0, 2, 2, 5])
        for reduce in ("sum", "mean", "amax", "amin"):
            for inclusive in (True, False):
                self.same(lambda self, x: x.scatter_reduce(0, i[:, None].expand(-1, 3), 2 * x[:4], reduce, include_self=inclusive), x)
        self.same(lambda self, x: nn.functional.embedding_bag(torch.tensor([0, 3, 1, 5]), x, torch.tensor([0, 3]), mode="sum"), x)
        self.same(lambda self, x: torch.histc(x, 4, 0, 1) + x[:4, 0], x)
        self.same(lambda self, x: torch.zeros(6, 4).slice_scatter(x, 1, 0, 3).reshape_as(torch.zeros(3, 8)), x)

    def test_arguments_by_name(self):
        """A dict is what forward() is called with; the module's own loss."""
        class Module(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(3, 2)

            def forward(self, x, scale=None, parts=None, labels=None):
                y = self.linear(x)
                y = y if scale is None else y * scale
                y = y if parts is None else y + parts["a"] - parts["b"][0]
                return {"loss": F.mse_loss(y, labels), "y": y} if labels is not None else {"y": y}

        x, y, parts = torch.rand(4, 3), torch.rand(4, 2), {"a": torch.rand(4, 2), "b": [torch.rand(4, 2)]}
        for inputs in ({"x": x}, {"parts": parts, "x": x}, {"x": x, "scale": torch.rand(4, 1)}):
            module = Module()
            wanted, reference = module(**inputs, labels=y), torch.optim.SGD(module.parameters(), 0.1)
            model = cleave.compile(module, inputs, loss=None, optimizer="sgd", lr=0.1, device=DEVICE)
            self.assertTrue(torch.allclose(model.predict(inputs)["y"], wanted["y"], atol=1e-6))
            self.assertAlmostEqual(model.step({**inputs, "labels": y}), wanted["loss"].item(), places=5)
            wanted["loss"].backward()
            reference.step()
            for name, value in model.state_dict().items():
                self.assertTrue(torch.allclose(value, module.state_dict()[name], atol=1e-6))
            self.assertEqual(len(model.fit([{**inputs, "labels": y}] * 2, progress=False)), 1)
            model.close()
        model = cleave.compile(Module(), loss=lambda r, y: F.mse_loss(r["y"], y), device=DEVICE)
        self.assertAlmostEqual(model.step({"x": x}, y), model.step({"x": x, "target": y}), delta=0.1)
        self.assertIn("loss", model.evaluate([{"x": x, "target": y}]))
        with self.assertRaisesRegex(cleave.Error, "is a batch without labels"):
            cleave.compile(Module(), loss=None, device=DEVICE).step({"x": x})

    def test_complex_numbers(self):
        x, turn = torch.rand(4, 6, 8), torch.polar(torch.rand(6, 4), torch.rand(6, 4))

        def rotary(self, x):
            z = torch.view_as_complex(x.reshape(4, 6, 4, 2)) * turn[None]
            return torch.view_as_real(z.transpose(0, 1)).flatten(2) + (z + z.conj() * 2 - 1).abs().sum()
        self.same(rotary, x)
        for norm in (None, "ortho", "forward"):
            self.same(lambda self, x: torch.fft.fft(x, dim=1, norm=norm).real + torch.fft.ifft(x, dim=-1, norm=norm).imag, x)
            self.same(lambda self, x: torch.fft.irfft(torch.fft.rfft(x, dim=1, norm=norm) * (0.5 - 2j), n=5, dim=1, norm=norm), x)
            self.same(lambda self, x: torch.fft.irfft(torch.fft.rfft(x, 7, norm=norm)[..., :3], norm=norm), x)
        self.same(lambda self, x: torch.fft.fftn(x, dim=(1, 2)).real + torch.fft.fft2(x).imag, x)

    def test_packed_sequences(self):
        class Packed(nn.Module):
            def __init__(self, layer, first, ordered, **how):
                super().__init__()
                self.layer, self.first, self.ordered = layer(3, 4, batch_first=first, **how), first, ordered

            def forward(self, x, lengths):
                packed = nn.utils.rnn.pack_padded_sequence(x if self.first else x.transpose(0, 1), lengths, self.first, self.ordered)
                y, last = self.layer(packed)
                y, n = nn.utils.rnn.pad_packed_sequence(y, self.first, padding_value=0.5, total_length=8)
                last = last[-1] if isinstance(last, tuple) else last
                return (y if self.first else y.transpose(0, 1)).sum(2) * n[:, None] + last.sum(2).mean(0)[:, None]

        x, y = torch.rand(3, 7, 3), torch.rand(3, 8)
        for module, lengths in ((Packed(nn.LSTM, True, False, num_layers=2, bidirectional=True), [2, 7, 5]), (Packed(nn.GRU, False, True), [7, 4, 1]),
                                (Packed(nn.RNN, True, False, bidirectional=True, bias=False), [3, 7, 7])):
            lengths = torch.tensor(lengths)
            model = cleave.compile(module, loss="mse", device=DEVICE)
            model.check(x, lengths, y, tolerance=1e-4)
            torch.testing.assert_close(model.predict(x, lengths), module.eval()(x, lengths).detach(), rtol=1e-4, atol=1e-5)
            model.close()

    def test_buffers_that_are_written(self):
        class Averages(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3))
                self.norm = nn.BatchNorm1d(3)
                self.register_buffer("mean", torch.zeros(3))

            def forward(self, x):
                y = self.norm(self.linear(x))
                if self.training:
                    self.mean.mul_(0.9).add_(y.detach().mean(0), alpha=0.1)
                with torch.no_grad():
                    scale = torch.std_mean(y, 0, correction=0)[0] + 1
                return y / scale - self.mean + y.detach() * torch.logaddexp(y, x)

        torch.manual_seed(3)
        module = Averages()
        x, y = torch.rand(5, 3), torch.rand(5, 3)
        model = cleave.compile(copy.deepcopy(module), loss="mse", optimizer="sgd", lr=0.1, device=DEVICE)
        optimizer = torch.optim.SGD(module.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            loss = F.mse_loss(module(x), y)
            loss.backward()
            optimizer.step()
            self.assertAlmostEqual(model.step(x, y), loss.item(), places=5)
        for name, value in model.state_dict().items():
            torch.testing.assert_close(value, module.state_dict()[name], rtol=1e-4, atol=1e-5, msg=name)
        torch.testing.assert_close(model.predict(x), module.eval()(x).detach(), rtol=1e-4, atol=1e-5)

    def test_random_numbers(self):
        """Anew in each step, of the right kind."""
        class Module(nn.Module):
            def forward(self, x):
                return torch.randn_like(x), torch.rand_like(x), torch.bernoulli(torch.full_like(x, 0.25)), torch.randint(2, 7, x.shape) + 0 * x

        model = cleave.compile(Module(), device=DEVICE)
        x = torch.zeros(100, 100)
        normal, uniform, truths, whole = model.predict(x)
        self.assertAlmostEqual(normal.mean().item(), 0, delta=0.05)
        self.assertAlmostEqual(normal.std().item(), 1, delta=0.05)
        self.assertAlmostEqual(uniform.mean().item(), 0.5, delta=0.02)
        self.assertAlmostEqual(truths.mean().item(), 0.25, delta=0.02)
        self.assertEqual(sorted(whole.unique().tolist()), [2, 3, 4, 5, 6])
        module = nn.Linear(3, 2)
        module.forward = lambda x: x @ module.weight.T + torch.randn(2)
        model = cleave.compile(module, loss="mse", optimizer="sgd", lr=0.0, device=DEVICE)
        self.assertEqual(len({model.step(torch.zeros(4, 3), torch.zeros(4, 2)) for _ in range(3)}), 3)


class Told(unittest.TestCase):
    def test_every_public_name_has_types_and_a_sentence(self):
        from test_plain import untold
        self.assertEqual(list(untold(cleave.model)), [])

    """What would be silently wrong is refused, or is right."""

    def refused(self, forward, *inputs, sentence):
        class Module(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(3, 2)
                self.register_buffer("seen", torch.zeros(2))

        Module.forward = forward
        with self.assertRaisesRegex(cleave.UnsupportedError, sentence):
            cleave.compile(Module(), device=DEVICE).predict(*inputs)

    def test_what_a_graph_cannot_do(self):
        x = torch.rand(4, 3)
        self.refused(lambda self, x: self.linear(x) + torch.poisson(x)[:, :2], x, sentence="draws random numbers within the module")

        def keeps(self, x):
            self.seen += self.linear(x).mean(0)
            return self.linear(x) + self.seen
        self.refused(keeps, x, sentence="writes into the buffer 'seen'")
        self.refused(lambda self, x: self.linear(x.add_(1)), x, sentence="writes into its input")

        class Sign(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.sign()

            @staticmethod
            def backward(ctx, g):
                return g

        def chooses(self, x):
            return self.linear(x) if x.sum() > 0 else self.linear(-x)
        self.refused(chooses, x, sentence="depends on numbers of the batch")
        module = nn.Sequential(nn.Linear(3, 2))
        module.linear = module[0]
        module.forward = lambda x: module.linear(Sign.apply(x))
        with self.assertRaisesRegex(cleave.UnsupportedError, "a torch.autograd.Function, whose backward"):
            cleave.compile(module, loss="mse", device=DEVICE).step(x, torch.zeros(4, 2))

        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, g):
                return 2 * ctx.saved_tensors[0] * g
        module.forward = lambda x: module.linear(Square.apply(x))
        cleave.compile(module, loss="mse", device=DEVICE).step(x, torch.zeros(4, 2))
        module.layerdrop = 0.5
        module.forward = lambda x: module.linear(x) if torch.rand([]) < module.layerdrop else module.linear(-x)
        with self.assertRaisesRegex(cleave.UnsupportedError, "layerdrop 0.5"):
            cleave.compile(module, loss="mse", device=DEVICE).step(x, torch.zeros(4, 2))
        module.layerdrop = 0.0
        cleave.compile(module, loss="mse", device=DEVICE).step(x, torch.zeros(4, 2))

    def test_integers(self):
        class Module(nn.Module):
            def forward(self, i):
                return i & 3, i | 8, i ^ 5, ~i, i.abs(), i.clamp(-5, 99999998), (i > 0) & (i < 7), i.sum(), i.sum(1)
        i = torch.tensor([[6, -7, 123456789], [99999999, 3, 2]])
        for got, wanted in zip(cleave.compile(Module(), device=DEVICE).predict(i), Module()(i)):
            torch.testing.assert_close(got, wanted, rtol=0, atol=0)

    def test_a_batch_as_a_number_of_python(self):
        model = cleave.compile(nn.Linear(3, 2), device=DEVICE, loss=lambda a, y: ((a - y) ** 2).sum() / len(a), optimizer="sgd", lr=0.0)
        for n in (4, 2, 3):
            x, y = torch.rand(n, 3), torch.rand(n, 2)
            self.assertAlmostEqual(model.step(x, y), float((((model.module(x) - y) ** 2).sum() / n).detach()), places=5)

    def test_dicts(self):
        class Two(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(3, 2)

            def forward(self, ids, mask):
                return {"logits": self.linear(ids) * mask, "of": (ids.sum(),)}
        module = Two()
        model = cleave.compile(module, device=DEVICE, loss=lambda o, y: F.mse_loss(o["logits"], y), optimizer="sgd", lr=0.0)
        batch = {"mask": torch.rand(4, 1), "y": torch.rand(4, 2), "ids": torch.rand(4, 3)}
        told = model.fit([batch], progress=False)[0]["loss"]
        self.assertAlmostEqual(told, float(F.mse_loss(module(batch["ids"], batch["mask"])["logits"], batch["y"]).detach()), places=5)
        torch.testing.assert_close(model.predict(batch["ids"], batch["mask"])["logits"], module(batch["ids"], batch["mask"])["logits"])
        with self.assertRaisesRegex(TypeError, "of a dict the inputs must have the names"):
            model.fit([{"a": batch["ids"], "b": batch["y"]}], progress=False)

    def test_parts_in_evaluation_stay_so(self):
        module = cnn()
        module[1].eval()
        x, y = digits()
        self.assertAlmostEqual(cleave.compile(module, device=DEVICE).step(x, y), float(F.cross_entropy(module(x), y).detach()), places=5)

    def test_weights_before_the_first_batch(self):
        model = cleave.compile(nn.Linear(3, 2), device=DEVICE)
        for call in (model.save, model.load):
            with self.assertRaisesRegex(cleave.StateError, "a model holds them when it has seen a batch"):
                call("nothing.safetensors")
        model.predict(torch.rand(4, 3))
        model.close()
        with self.assertRaisesRegex(cleave.StateError, "this model is closed"):
            model.predict(torch.rand(4, 3))

    def test_another_width(self):
        model = cleave.nn.Model(cleave.nn.Sequential(cleave.nn.Linear(2)), device=DEVICE)
        model.predict(numpy.ones((8, 6)))
        with self.assertRaisesRegex(cleave.ShapeError, r"'0.weight' has the shape \[2, 6\], and these inputs want \[2, 3\]"):
            model.predict(numpy.ones((8, 3)))

    def test_regression_with_dropout(self):
        module = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2))
        x, y = torch.rand(2000, 3), torch.rand(2000, 2)
        told = cleave.compile(module, device=DEVICE, loss="mse", optimizer="sgd", lr=0.0)
        with torch.no_grad():  # dropping half, doubling the others: bias, and a variance, which evaluation has not
            wanted = numpy.mean([float(F.mse_loss(module(x), y)) for _ in range(50)])
            self.assertGreater(abs(wanted - float(F.mse_loss(module.eval()(x), y))), 0.02 * wanted)
        module.train()
        self.assertAlmostEqual(numpy.mean([told.step(x, y) for _ in range(50)]), wanted, delta=0.01 * wanted)


class Compiled(unittest.TestCase):
    """torch.compile(backend=...): an unchanged loop beside eager PyTorch."""

    def setUp(self):
        torch._dynamo.reset()

    def looped(self, module, x, y, steps=20, lr=0.02, loss_of=lambda m, x, y: F.cross_entropy(m(x), y)):
        twin = copy.deepcopy(module)
        compiled = torch.compile(module, backend=backend, fullgraph=True, options={"device": DEVICE, "fallback": False})
        told = []
        for each in (twin, compiled):
            torch.manual_seed(11)
            optimizer, losses = torch.optim.SGD(each.parameters(), lr, momentum=0.9), []
            for _ in range(steps):
                optimizer.zero_grad()
                loss = loss_of(each, x, y)
                loss.backward()
                optimizer.step()
                losses.append(float(loss.detach()))
            told.append(losses)
        numpy.testing.assert_allclose(told[1], told[0], rtol=1e-4, atol=1e-5)
        for name, value in twin.state_dict().items():
            torch.testing.assert_close(module.state_dict()[name], value, rtol=1e-3, atol=1e-4)
        return compiled, twin

    def test_dropout_is_drawn_as_in_eager_mode(self):
        self.looped(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.4), nn.Linear(16, 4)), torch.randn(6, 8), torch.arange(6) % 4)
        self.looped(nn.Sequential(nn.Conv2d(1, 8, 3), nn.Dropout2d(0.4), nn.Flatten(), nn.Linear(8 * 36, 5)), *digits())

    def test_running_statistics(self):
        module = cnn(bias=False)
        x, y = digits()
        compiled, twin = self.looped(module, x, y)
        self.assertEqual(int(module.state_dict()["1.num_batches_tracked"]), 20)
        module.eval(), twin.eval()
        with torch.no_grad():
            for n in (8, 3, 1):
                torch.testing.assert_close(compiled(x[:n]), twin(x[:n]), rtol=1e-3, atol=1e-3)

    def test_attention_with_dropout(self):
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.2, batch_first=True)
        self.looped(nn.Sequential(nn.Embedding(11, 16), nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), nn.Flatten(),
                                  nn.Linear(96, 3)), torch.randint(0, 11, (4, 6)), torch.arange(4) % 3)

    def test_gpt(self):
        x = torch.randint(0, 17, (4, 8))
        self.looped(GPT(), x, x.roll(-1, 1), loss_of=lambda m, x, y: m(x, y)[1])

    def test_a_loss_within(self):
        """Wherever the backward pass begins, results are computed once."""
        module, x = GPT().eval(), torch.randint(0, 17, (2, 8))
        twin, calls, run = copy.deepcopy(module), [], _Pass.begin
        compiled = torch.compile(module, backend=backend, options={"device": DEVICE, "fallback": False})
        with mock.patch.object(_Pass, "begin", lambda self, *args: calls.append(self) or run(self, *args)):
            for begin in (lambda logits, loss: loss, lambda logits, loss: 3 * loss, lambda logits, loss: loss + logits.square().mean()):
                calls.clear()
                for each in (twin, compiled):
                    each.zero_grad()
                    begin(*each(x, x)).backward()
                self.assertEqual(len(calls), 1)
                for (name, p), q in zip(module.named_parameters(), twin.parameters()):
                    torch.testing.assert_close(p.grad, q.grad, rtol=1e-3, atol=1e-4, msg=lambda m: "%s: %s" % (name, m))
            with torch.no_grad():
                torch.testing.assert_close(compiled(x, x)[1], twin(x, x)[1])
            alone = torch.compile(lambda x: module(x, x)[1], backend=backend, options={"device": DEVICE, "fallback": False})  # the only result
            calls.clear()
            for _ in range(3):
                alone(x).backward()
            self.assertEqual(len(calls), 3)

    def pair(self):
        module = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
        twin = copy.deepcopy(module)
        return module, twin, torch.compile(module, backend=backend, options={"device": DEVICE, "fallback": False})

    def same(self, module, twin):
        for p, q in zip(module.parameters(), twin.parameters()):
            torch.testing.assert_close(p.grad, q.grad, rtol=1e-4, atol=1e-5)

    def test_what_comes_between_the_passes(self):
        """Other passes, evaluation, an exception, no backward pass at all, a second one."""
        module, twin, compiled = self.pair()
        x = torch.randn(6, 8)
        for each in (twin, compiled):
            results = [each(k * x) for k in (1, 2, 3)]
            with torch.no_grad():
                each(4 * x)
            each(5 * x)
            for y in (results[1], results[2], results[0]):
                y.square().sum().backward(retain_graph=True)
            results[0].sum().backward()
            each(x)
        self.same(module, twin)
        with self.assertRaises(ZeroDivisionError):
            compiled(x).sum().backward(gradient=torch.tensor(1 / 0))
        for each in (twin, compiled):
            each.zero_grad()
            each(x).sum().backward()
        self.same(module, twin)
        y = compiled(x).sum()
        with torch.no_grad():
            module[2].weight.mul_(2)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):  # as in eager mode
            y.backward()
        del y, compiled
        torch._dynamo.reset()
        gc.collect()
        self.assertIsNotNone(module[0].weight.grad.sum().item())

    def test_gradients_stay_with_who_has_them(self):
        """They lie where the device made them, if it computes in the host's memory, and still nobody sees them change."""
        module, twin, compiled = self.pair()
        kept = []
        for step in range(8):
            x = torch.randn(6, 8)
            if step in (2, 5):
                for each in (module, twin):
                    each.zero_grad(set_to_none=step == 2)
            for each in (twin, compiled):
                each(x).square().sum().backward()
            self.same(module, twin)
            if step % 3 == 1:
                kept += [(p.grad, p.grad.clone()) for p in module.parameters()]
                for each in (module, twin):
                    each.zero_grad()
        for gradient, copied in kept:
            torch.testing.assert_close(gradient, copied, rtol=0, atol=0)
        both = nn.ParameterList([nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))])  # of one gradient
        torch.compile(lambda: (both[0] + both[1]).sum(), backend=backend, options={"device": DEVICE, "fallback": False})().backward()
        both[0].grad.mul_(2)
        self.assertEqual(both[1].grad.tolist(), [1, 1, 1])

    def test_parameters_in_other_memory(self):
        """Given anew, and at odd addresses, before a pass and between two."""
        module, twin, compiled = self.pair()
        x = torch.randn(6, 8)
        for step in range(12):
            for p, q in zip(module.parameters(), twin.parameters()):
                q.data = q.data * 1.1
                p.data = torch.empty(q.numel() + 3)[step % 3:][:q.numel()].view_as(q).copy_(q) if step % 2 else q.data.clone()
            for each in (twin, compiled):
                each.zero_grad()
                y, z = each(x), each(2 * x)
                (y.square().sum() + z.sum()).backward()
            self.same(module, twin)

    def test_where_nothing_is_in_common(self):
        """As on a device with memory of its own; and in mixed precision."""
        x, y = digits()
        with mock.patch.object(_dynamo, "MOST_MOVES", 0):
            self.looped(cnn(), x, y)
            self.test_two_passes_before_the_backward_pass()
        module, passes, make = cnn(), [], _Pass.__init__
        with mock.patch.object(_Pass, "__init__", lambda self, *args: make(self, *args) or passes.append(self)):
            torch.compile(module, backend=backend, options={"device": "null", "fallback": False})(x).sum().backward()  # a card that computes nothing
        self.assertEqual([(len(p.where), len(p.seen), len(p.fed)) for p in passes], [(0, 0, 7)])
        self.assertEqual([p.grad.shape for p in module.parameters()], [p.shape for p in module.parameters()])
        module = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
        x, twin = torch.randn(6, 8), copy.deepcopy(module)
        twin(x).square().sum().backward()
        for precision in ("mixed", "mixed-bf16"):
            module.zero_grad()
            torch.compile(module, backend=backend, options={"device": DEVICE, "fallback": False, "precision": precision})(x).square().sum().backward()
            for p, q in zip(module.parameters(), twin.parameters()):
                torch.testing.assert_close(p.grad, q.grad, rtol=0.1, atol=0.1)

    def test_batches_of_other_sizes(self):
        module, twin, compiled = self.pair()
        for n in (6, 3, 7, 6, 3, 9):
            x = torch.randn(n, 8)
            for each in (twin, compiled):
                each.zero_grad()
                each(x).square().sum().backward()
            self.same(module, twin)

    def test_two_passes_before_the_backward_pass(self):
        module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
        twin, x = copy.deepcopy(module), torch.rand(5, 3)
        compiled = torch.compile(module, backend=backend, options={"device": DEVICE, "fallback": False})
        for each in (compiled, twin):
            (each(x) ** 2 + each(2 * x) ** 3).sum().backward()
        for p, q in zip(module.parameters(), twin.parameters()):
            torch.testing.assert_close(p.grad, q.grad, rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(module[1].running_var, twin[1].running_var)

    def test_recurrent(self):
        for kind in (nn.LSTM, nn.GRU):
            self.looped(Recurrent(kind, num_layers=2, dropout=0.3), torch.randint(0, 20, (3, 5)), torch.randint(0, 20, (3, 5)))

    def test_what_is_missing_is_pytorchs(self):
        class Odd(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(3, 3)

            def forward(self, x):
                return torch.linalg.inv(self.linear(x) + 3 * torch.eye(3))
        module, x = Odd(), torch.rand(3, 3)
        compiled = torch.compile(module, backend=backend, options={"device": DEVICE})
        with self.assertWarnsRegex(UserWarning, r"cleave: a graph of \d+ ops is computed by PyTorch: Cleave has no way to compute 1 of"):
            y = compiled(x)
        torch.testing.assert_close(y, module(x))
        torch._dynamo.reset()
        with self.assertRaisesRegex(Exception, "no way to compute 1 of PyTorch's ops"):
            torch.compile(module, backend=backend, options={"device": DEVICE, "fallback": False})(x)
        with self.assertRaisesRegex(Exception, "has no option speed; it has device, precision, fallback"):
            torch.compile(cnn(), backend=backend, options={"speed": 9})(digits()[0])


def _resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class BadInput(unittest.TestCase):
    def test_missing_ops_in_one_sentence(self):
        class Odd(nn.Module):
            def forward(self, x):
                return torch.linalg.inv(x) + torch.linalg.inv(x.exp()) + torch.special.bessel_j0(x)
        with self.assertRaises(cleave.UnsupportedError) as caught:
            cleave.compile(Odd(), torch.rand(3, 3), device=DEVICE)
        self.assertRegex(str(caught.exception), r"no way to compute 2 of PyTorch's ops that this module uses: aten\.linalg_inv")
        self.assertRegex(str(caught.exception), r"\(2, first at .*test_torch\.py, line \d+.*: return torch.linalg.inv")

    def test_shapes(self):
        model = cleave.compile(cnn(), device=DEVICE)
        with self.assertRaisesRegex(cleave.ShapeError, r"^'input' has the shape \[4, 3, 8, 8\], and '0' \(Conv2d\) wants \[N, 1, H, W\]: .*channels"):
            model.predict(torch.rand(4, 3, 8, 8))
        with self.assertRaisesRegex(cleave.ShapeError, r"wants \[N, 1, H, W\]; its channels seem to be last: x.permute\(0, 3, 1, 2\)"):
            model.predict(torch.rand(4, 8, 8, 1))
        x, y = digits()
        with self.assertRaisesRegex(cleave.ShapeError, r"'input' has the shape \[8, 1, 8, 8\]; 'target' has the shape \[3\]: are they of as many"):
            model.step(x, y[:3])
        model.step(x, y)
        with self.assertRaisesRegex(cleave.ShapeError, r"'input' has the shape \[8, 1, 12, 12\], and it had \[N, 1, 8, 8\] before"):
            model.step(torch.rand(8, 1, 12, 12), y)
        with self.assertRaisesRegex(cleave.DtypeError, r"'input' is of float32, and '' \(Embedding\) wants integers"):
            cleave.compile(nn.Embedding(3, 2), device=DEVICE).predict(torch.rand(2, 3))
        with self.assertRaisesRegex(cleave.DtypeError, "a batch is of numbers, and this is an array of <U1"):
            model.predict(numpy.array(["a"]))
        with self.assertRaisesRegex(cleave.InvalidValueError, "a part of a batch is no array"):
            model.predict([[1, 2], [3]])
        with self.assertRaisesRegex(cleave.ArgumentError, "predict wants the inputs"):
            model.predict()
        model.step(x, y)  # and it goes on

    def test_layouts_and_dtypes(self):
        model = cleave.compile(cnn(), device=DEVICE)
        x, y = digits()
        wanted = model.predict(x)
        torch.testing.assert_close(model.predict(x.to(memory_format=torch.channels_last)), wanted, rtol=0, atol=0)
        torch.testing.assert_close(model.predict(x.double()), wanted, rtol=0, atol=0)
        torch.testing.assert_close(model.predict(x.transpose(2, 3).contiguous().transpose(2, 3)), wanted, rtol=0, atol=0)
        numpy.testing.assert_array_equal(model.predict(x.numpy()), wanted.numpy())
        numpy.testing.assert_array_equal(model.predict(numpy.asfortranarray(x.numpy())), wanted.numpy())
        model.step(x, y.int())
        model.step(x.numpy(), y.numpy())

    def test_a_loader_that_breaks(self):
        x, y = digits()

        def loader():
            yield x, y
            raise OSError("the disk is gone")
        model = cleave.compile(cnn(), device=DEVICE)
        with self.assertRaisesRegex(OSError, "the disk is gone"):
            model.fit(loader(), progress=False)
        model.fit([(x, y)], progress=False)
        for loader, more, kind, sentence in (
                ([], {}, ValueError, "the loader gave no batch in epoch 1"), (iter([(x, y)]), {"epochs": 2}, ValueError, "can be gone through once"),
                ([x], {}, TypeError, r"the loader gave a Tensor of the shape \[8, 1, 8, 8\]"), (7, {}, TypeError, "a loader gives batches"),
                ([(x, y)], {"epochs": "3"}, ValueError, "epochs is a whole number"), ([(x, y)], {"callbacks": [3]}, TypeError, "are functions"),
                ([(x, y)], {"schedule": lambda i: "x"}, ValueError, r"of step \d+ it is 'x'")):
            with self.assertRaisesRegex(kind, sentence) as caught:
                model.fit(loader, progress=False, **more)
            self.assertIsInstance(caught.exception, cleave.Error)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, num_workers=2)  # by fork, whose children call nothing of ours
        self.assertEqual(len(model.fit(loader, epochs=2, progress=False)), 2)

    def test_settings(self):
        module = cnn()
        for settings, sentence in (({"precision": "f8"}, "precision is f32, mixed or mixed-bf16"), ({"lr": -1}, "at least 0"), ({"loss": 3}, "a loss is"),
                                   ({"optimizer": torch.optim.SGD([module[0].weight], 0.1)}, "the optimizer has other parameters"),
                                   ({"optimizer": None}, "an optimizer is a name"), ({"loss": "hinge"}, "there is no loss 'hinge'; there are cross_entropy"),
                                   ({"optimizer": "adamant"}, "there is no optimizer 'adamant'"),
                                   ({"optimizer": torch.optim.Adadelta(module.parameters())}, "no optimizer like torch.optim's Adadelta"),
                                   ({"device": "tpu"}, "there is no device 'tpu'"), ({"device": 7}, "a device is a name"),
                                   ({"lr": "x"}, "a number of at least 0, and it is 'x'"), ({"optimizer": 3}, "an optimizer is a name"),
                                   ({"place": 3}, "place is a text"), ({"recompute": True}, "recompute is a text"), ({"seed": "x"}, "the seed is")):
            with self.assertRaisesRegex(cleave.Error, sentence):
                cleave.compile(module, **settings)
        for make, sentence in ((lambda: cleave.optim.Adam(betas=(0.9,)), "betas are two"), (lambda: cleave.optim.SGD(momentum="x"), "momentum of SGD")):
            with self.assertRaisesRegex(cleave.ArgumentError, sentence):
                make()
        with self.assertRaisesRegex(TypeError, "wants a torch.nn.Module"):
            cleave.compile(lambda x: x)

    def test_not_finite(self):
        model = cleave.compile(cnn(), device=DEVICE, optimizer="sgd", lr=1e30)
        with self.assertRaisesRegex(cleave.NotFiniteError, "a lower rate than"):
            model.fit([digits()] * 4, epochs=2, progress=False)

    def test_out_of_memory(self):
        device = cleave.Device(DEVICE)
        model = cleave.compile(nn.Sequential(nn.Linear(4, 1000), nn.Linear(1000, 1000), nn.Linear(1000, 3)), device=device)
        device.set_budget(device.memory()["current"] + 100000)
        try:
            with self.assertRaises(MemoryError) as caught:
                model.step(torch.rand(2, 4), torch.tensor([0, 1]))
            self.assertIsInstance(caught.exception, cleave.OutOfMemoryError)
        finally:
            device.set_budget(0)
        model.step(torch.rand(2, 4), torch.tensor([0, 1]))

    def test_two_threads_in_one_model(self):
        model, x, y = cleave.compile(cnn(), device=DEVICE), *digits()
        told, within, go_on = [], threading.Event(), threading.Event()

        def loader():
            yield x, y
            within.set()
            go_on.wait(60)
            yield x, y
        thread = threading.Thread(target=lambda: told.extend(model.fit(loader(), progress=False)))
        thread.start()
        within.wait(60)
        for call in (lambda: model.step(x, y), lambda: model.predict(x), model.state_dict, model.close):
            with self.assertRaisesRegex(cleave.StateError, "another thread uses this model"):
                call()
        go_on.set()
        thread.join()
        self.assertEqual(len(told), 1)
        model.step(x, y)

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork here")
    def test_a_model_in_a_child(self):
        model, x, y = cleave.compile(nn.Linear(3, 2), device="host"), torch.rand(4, 3), torch.tensor([0, 1, 1, 0])
        model.step(x, y)
        pid = os.fork()
        if pid == 0:
            try:
                model.step(x, y)
            except cleave.StateError as error:
                os._exit(0 if "made before the fork" in str(error) else 2)
            os._exit(1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        model.step(x, y)

    def test_memory_is_shared(self):
        x = numpy.random.rand(4, 3).astype("f")
        self.assertIs(cleave._steps.array(x), x)
        for made in (torch.from_numpy(x), x):
            self.assertTrue(numpy.shares_memory(cleave.from_dlpack(made), x))
        self.assertTrue(numpy.shares_memory(cleave._steps.array(torch.from_numpy(x)), x))
        model = cleave.compile(nn.Linear(3, 2), device=DEVICE)
        y = model.predict(x)
        self.assertEqual(torch.from_dlpack(y).data_ptr(), y.ctypes.data)
        torch.testing.assert_close(torch.from_dlpack(model.predict(torch.from_numpy(x))), torch.from_numpy(y), rtol=0, atol=0)

        class Elsewhere:
            __dlpack__ = __dlpack_device__ = lambda self: (2, 0)
        with self.assertRaisesRegex(cleave.InvalidValueError, "lie on another device .*number 2"):
            model.predict(Elsewhere())
        with self.assertRaisesRegex(cleave.ArgumentError, "wants something with __dlpack__"):
            cleave.from_dlpack([1])

    def test_two_threads_with_a_model_each(self):
        faults = []

        def work():
            try:
                for _ in range(5):
                    model = cleave.compile(nn.Linear(3, 2), device="host")
                    model.step(torch.rand(4, 3), torch.tensor([0, 1, 1, 0]))
            except Exception as error:
                faults.append(error)
        threads = [threading.Thread(target=work) for _ in range(2)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(faults, [])


if __name__ == "__main__":
    unittest.main()
