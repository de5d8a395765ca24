# SPDX-License-Identifier: Apache-2.0
"""A module of PyTorch, trained here, as an ONNX file for ONNX Runtime; that file trained further, and its weights back in PyTorch."""
import numpy
import onnxruntime
import torch

import cleave

module = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 2))
x = torch.randn(64, 1, 8, 8)
y = (x.mean((1, 2, 3)) > 0).long()

model = cleave.compile(module, optimizer="adam", lr=1e-2)
model.fit([(x, y)], epochs=5, progress=False)
model.to_onnx("net.onnx")

session = onnxruntime.InferenceSession("net.onnx", providers=["CPUExecutionProvider"])
told = session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
assert numpy.allclose(told, model.predict(x), atol=1e-4)

again = cleave.onnx.load("net.onnx", optimizer="adam", lr=1e-2)
again.fit([(x, y)], epochs=5, progress=False)
module.load_state_dict({name: torch.tensor(value) for name, value in again.state_dict().items()}, strict=False)  # but the count of batches
module.eval()
assert numpy.allclose(module(x).detach(), again.predict(x), atol=1e-4)
print("loss %.4f, then %.4f" % (model.evaluate([(x, y)])["loss"], again.evaluate([(x, y)])["loss"]))
