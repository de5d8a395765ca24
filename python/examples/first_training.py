# SPDX-License-Identifier: Apache-2.0
import cleave
from cleave import nn, data
train, test = (data.Batches(*data.fashion_mnist(train=t)) for t in (True, False))
model = nn.Model(nn.Sequential(nn.Conv2d(16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 3, padding=1), nn.ReLU(),
                               nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128), nn.ReLU(), nn.Linear(10)), optimizer="adam", lr=1e-3)
print(model.summary(*next(iter(train))))
model.fit(train, epochs=1, validation=test)
model.save("fashion.safetensors")
