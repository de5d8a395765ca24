#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The execution provider for ONNX Runtime beside its provider for CPUs, and beside the same file run by Cleave itself.

    PYTHONPATH=BUILD/python CLEAVE_LIBRARY=BUILD/backends/libcleave.so CLEAVE_ORT_LIBRARY=BUILD/ort/libcleave_ort.so provider.py [DEVICE [TIMES]]

A row for each model, random weights, batch 8: the largest difference of results, over the largest of them, and milliseconds: least and median
of TIMES runs, by turns, and the ratio of both and of the medians of processor time, which others on the machine change less. Wants onnxruntime, torch, torchvision, transformers, onnx."""
import os
import statistics
import sys
import tempfile
import time

import numpy
import onnxruntime
import torch
import torchvision
import transformers

import cleave

DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cpu"
TIMES = int(sys.argv[2]) if len(sys.argv) > 2 else 12
BATCH = 8


class Bert(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = transformers.BertModel(transformers.BertConfig(attn_implementation="eager"))

    def forward(self, input_ids, attention_mask):
        result = self.bert(input_ids=input_ids, attention_mask=attention_mask)
        return result.last_hidden_state, result.pooler_output


def models():
    for name in ("mobilenet_v2", "resnet50"):
        yield name, getattr(torchvision.models, name)(weights=None), {"x": torch.randn(BATCH, 3, 224, 224)}
    ids = torch.randint(0, 30000, (BATCH, 64))
    yield "bert", Bert(), {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def timed(call):
    begin, busy = time.perf_counter(), time.process_time()
    call()
    return 1e3 * (time.perf_counter() - begin), 1e3 * (time.process_time() - busy)


def main():
    torch.manual_seed(1)
    for name, module, inputs in models():
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, name + ".onnx")
            torch.onnx.export(module.eval(), tuple(inputs.values()), path, input_names=list(inputs), dynamo=False)
            session = onnxruntime.InferenceSession(path, cleave.onnx.session_options(onnxruntime, DEVICE))
            plain = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
            own = cleave.onnx.load(path, device=DEVICE)
        feeds = {k: v.numpy() for k, v in inputs.items()}
        calls = [lambda: session.run(None, feeds), lambda: own.predict(feeds)]
        apart = max(float(numpy.abs(a - b).max() / numpy.abs(b).max()) for a, b in zip(session.run(None, feeds), plain.run(None, feeds)))
        own.predict(feeds)
        took = [[], []]
        for i in range(TIMES):
            for k in (0, 1) if i % 2 else (1, 0):
                took[k].append(timed(calls[k]))
        least, median = ([of(wall for wall, _ in t) for t in took] for of in (min, statistics.median))
        busy = [statistics.median(cpu for _, cpu in t) for t in took]
        print("%-14s apart %.1e  provider %7.1f %7.1f ms  Cleave %7.1f %7.1f ms  ratio %.3f %.3f, busy %.3f" % (
            name, apart, least[0], median[0], least[1], median[1], least[0] / least[1], median[0] / median[1],
            busy[0] / busy[1]), flush=True)


if __name__ == "__main__":
    main()
