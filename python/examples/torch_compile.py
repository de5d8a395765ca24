# SPDX-License-Identifier: Apache-2.0
"""An unchanged training loop of PyTorch's, whose graphs are computed by Cleave."""
import torch
from torch import nn

module = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Dropout(0.1), nn.Linear(128, 10))
model = torch.compile(module, backend="cleave")
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x, y = torch.randn(32, 1, 28, 28), torch.randint(0, 10, (32,))
for step in range(20):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
print("loss %.4f" % loss.item())
