#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The models of torchvision: zoo.txt, names and shapes of each state_dict; zoo.safetensors, logits and some gradients for
small inputs, in evaluation. Needs torchvision beside PyTorch. The C side is zoo.c.

Weights follow a formula that zoo.c has too (values_of). num_batches_tracked is left out: Cleave has no such counter.
"""
import pathlib

import torch
import torch.nn.functional as F
from torchvision import models

from golden import Golden

MODELS = ["alexnet", "vgg11", "vgg16", "resnet18", "resnet34", "resnet50", "resnet101", "mobilenet_v2", "mobilenet_v3_large",
          "mobilenet_v3_small", "efficientnet_b0", "squeezenet1_1", "shufflenet_v2_x1_0", "densenet121", "regnet_y_400mf", "convnext_tiny",
          "vit_b_16"]


def entries(model):
    return [(name, tensor) for name, tensor in model.state_dict().items() if not name.endswith("num_batches_tracked")]


def values_of(k, name, tensor):
    """The k-th entry's values: weights scaled so that signals keep their size, the others about 1 or 0."""
    i = torch.arange(tensor.numel(), dtype=torch.int64)
    u = ((i * 7919 + (k + 1) * 104729) % 2003).double() / 2003 - 0.5
    if tensor.dim() > 1:
        u *= (24 / (tensor.numel() // tensor.shape[0])) ** 0.5
    else:
        u = 0.2 * u + (1 if name.endswith(".weight") or name.endswith(".running_var") else 0)
    return u.float().double().reshape(tensor.shape)


with open(pathlib.Path(__file__).parent / "zoo.txt", "w") as file:
    for name in MODELS:
        model = getattr(models, name)()
        for key, tensor in entries(model):
            print(name, key, *tensor.shape, file=file)

cases = Golden("zoo")


def case(name, batch, size, gradients):
    with cases.case(name) as c:
        x = c.input("x", torch.rand(batch, 3, size, size), grad=False)
        sized = {"image_size": size} if name.startswith("vit") else {}
        model = getattr(models, name)(num_classes=10, **sized).eval()
        with torch.no_grad():
            for k, (key, tensor) in enumerate(entries(model)):
                tensor.copy_(values_of(k, key, tensor))
        if gradients:
            labels = torch.arange(batch) * 3 % 10
            c.put("labels", labels)
            logits = model(x)
            c.expect("loss", F.cross_entropy(logits, labels))
            c.expect("logits", logits)
            c.inputs.update((key, p) for key, p in model.named_parameters() if key in gradients)
        else:
            with torch.no_grad():
                c.expect("logits", model(x))


case("resnet18", 1, 32, ["conv1.weight", "layer1.0.bn2.weight", "layer2.0.downsample.1.bias", "layer4.1.bn2.bias", "fc.bias"])
case("mobilenet_v2", 2, 32, ["features.0.0.weight", "features.1.conv.0.0.weight", "features.2.conv.1.0.weight",
                             "features.5.conv.3.weight", "features.14.conv.1.1.bias", "classifier.1.bias"])
case("vgg11", 1, 32, [])
case("mobilenet_v3_small", 2, 32, ["features.0.0.weight", "features.1.block.1.fc2.bias", "features.4.block.2.fc1.weight", "classifier.3.bias"])
case("efficientnet_b0", 2, 32, ["features.0.0.weight", "features.2.0.block.2.fc1.bias", "features.7.0.block.3.1.bias", "classifier.1.bias"])
case("squeezenet1_1", 2, 33, ["features.0.bias", "features.3.squeeze.bias", "features.12.expand3x3.bias", "classifier.1.bias"])
case("shufflenet_v2_x1_0", 2, 32, ["conv1.0.weight", "stage2.0.branch1.0.weight", "stage4.3.branch2.6.bias", "fc.bias"])
case("densenet121", 2, 32, ["features.conv0.weight", "features.denseblock1.denselayer2.norm1.weight", "features.norm5.bias", "classifier.bias"])
case("regnet_y_400mf", 2, 32, ["stem.0.weight", "trunk_output.block2.block2-0.f.se.fc1.bias", "trunk_output.block4.block4-5.f.c.1.bias", "fc.bias"])
case("convnext_tiny", 2, 32, ["features.0.0.bias", "features.1.0.layer_scale", "features.6.0.weight", "classifier.2.bias"])
case("vit_b_16", 1, 32, ["class_token", "conv_proj.bias", "encoder.layers.encoder_layer_3.ln_1.weight", "encoder.ln.bias", "heads.head.bias"])
cases.write()
