# SPDX-License-Identifier: Apache-2.0
"""A layer of one's own, of Cleave's ops, without PyTorch."""
import numpy

from cleave import nn, ops


def scaled_tanh(x):
    scale = x.graph.parameter("scale", [x.shape[-1]], value=1)
    return ops.mul(ops.tanh(x), scale)


model = nn.Model(nn.Sequential(nn.Linear(32), scaled_tanh, nn.Residual(nn.Linear(32)), nn.Linear(1)), loss="mse", lr=1e-2)
x = numpy.random.default_rng(1).normal(size=(64, 4))
y = numpy.sin(x).sum(1, keepdims=True)
for _ in range(100):
    loss = model.step(x, y)
print("loss %.4f; %s" % (loss, ", ".join(model.state_dict())))
