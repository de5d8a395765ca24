# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime, with its sessions on a device of Cleave's."""
import numpy
import onnxruntime

import cleave
from cleave import nn

model = nn.Model(nn.Sequential(nn.Conv2d(8, 3), nn.ReLU(), nn.GlobalAvgPool2d(), nn.Linear(10)))
x = numpy.random.default_rng(1).normal(size=(16, 3, 32, 32)).astype(numpy.float32)
cleave.onnx.save(model, "net.onnx", example=x)

cleave.onnx.register(onnxruntime)  # once; all that follows is ONNX Runtime's own
device = next(d for d in onnxruntime.get_ep_devices() if d.ep_name == "CleaveExecutionProvider")
options = onnxruntime.SessionOptions()
options.add_provider_for_devices([device], {"device": "gpu|cpu|host"})
session = onnxruntime.InferenceSession("net.onnx", options)
told = session.run(None, {"x": x})[0]
assert numpy.allclose(told, model.predict(x), atol=1e-4)
print(session.get_providers(), told.shape)
