#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What pictures.c does, by torchvision and PyTorch's DataLoader: pictures_torchvision.py FOLDER WORKERS BATCH. Prints pictures a second.
Needs torchvision (Debian: python3-torchvision)."""
import sys
import time

import torch
from torchvision import datasets, transforms

torch.set_num_threads(1)
data = datasets.ImageFolder(sys.argv[1], transforms.Compose([
    transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
    transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]))
begin = time.perf_counter()
for images, labels in torch.utils.data.DataLoader(data, batch_size=int(sys.argv[3]), shuffle=True, num_workers=int(sys.argv[2])):
    images[0, 0, 0, 0].item()
print(f"{len(data) / (time.perf_counter() - begin):.1f}")
