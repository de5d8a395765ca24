# SPDX-License-Identifier: Apache-2.0
"""Fine-tune torchvision's resnet18: other classes, first layers frozen, weights back in PyTorch."""
import torch
import torchvision

import cleave

module = torchvision.models.resnet18(weights=None)  # weights="DEFAULT", where they can be fetched
module.fc = torch.nn.Linear(512, 3)
for name, parameter in module.named_parameters():
    parameter.requires_grad_(name.startswith(("layer4", "fc")))
x, y = torch.randn(16, 3, 64, 64), torch.randint(0, 3, (16,))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=8, shuffle=True)

model = cleave.compile(module, loss="cross_entropy", optimizer=cleave.optim.SGD(0.01, momentum=0.9))
model.fit(loader, epochs=2, validation=loader)
torch.save(model.to_torch().state_dict(), "resnet18.pt")
