#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The models of torchvision: zoo.txt, names and shapes of each state_dict; zoo.safetensors, logits and some gradients for
small inputs, in evaluation. Needs torchvision beside PyTorch. The C side is zoo.c.

Weights follow a formula that zoo.c has too (values_of). num_batches_tracked is left out: Cleave has no such counter.
"""
import collections
import pathlib

import torch
from torch import nn
import torch.nn.functional as F
from torchvision import models

from golden import Golden

MODELS = ["alexnet", "vgg11", "vgg16", "resnet20", "resnet18", "resnet34", "resnet50", "resnet101", "mobilenet_v2", "mobilenet_v3_large",
          "mobilenet_v3_small", "efficientnet_b0", "squeezenet1_1", "shufflenet_v2_x1_0", "densenet121", "regnet_y_400mf", "convnext_tiny",
          "vit_b_16", "swin_t", "deeplabv3_mobilenet_v3_large", "unet"]
LEFT_OUT = ("num_batches_tracked", "relative_position_index")  # counters and tables that Cleave has not


class Pair(nn.Module):
    """Two convolutions of a U-Net."""

    def __init__(self, inner, out):
        super().__init__()
        layers = []
        for c in (inner, out):
            layers += [nn.Conv2d(c, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU()]
        self.double_conv = nn.Sequential(*layers)

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, inner, out):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), Pair(inner, out))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, inner, out):
        super().__init__()
        self.up, self.conv = nn.ConvTranspose2d(inner, out, 2, stride=2), Pair(2 * out, out)

    def forward(self, x, before):
        x = self.up(x)
        lacks = [before.shape[d] - x.shape[d] for d in (3, 2)]
        return self.conv(torch.cat([before, F.pad(x, [n for lack in lacks for n in (lack // 2, lack - lack // 2)])], 1))


class UNet(nn.Module):
    """Ronneberger et al. 2015, arXiv:1505.04597, figure 1, with batch norm and padding."""

    def __init__(self, num_classes):
        super().__init__()
        self.inc = Pair(3, 64)
        for i in range(4):
            setattr(self, f"down{i + 1}", Down(64 << i, 128 << i))
        for i in range(4):
            setattr(self, f"up{i + 1}", Up(1024 >> i, 512 >> i))
        self.outc = nn.Sequential(collections.OrderedDict(conv=nn.Conv2d(64, num_classes, 1)))

    def forward(self, x):
        before, x = [], self.inc(x)
        for i in range(4):
            before.append(x)
            x = getattr(self, f"down{i + 1}")(x)
        for i in range(4):
            x = getattr(self, f"up{i + 1}")(x, before.pop())
        return self.outc(x)


class Small(models.ResNet):
    """He et al. 2015, arXiv:1512.03385, section 4.2, with torchvision's blocks and names."""

    def __init__(self, num_classes):
        super().__init__(models.resnet.BasicBlock, [1, 1, 1, 1], num_classes)
        self.inplanes = 16
        self.conv1, self.bn1, self.maxpool = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.Identity()
        self.layer1, self.layer2, self.layer3 = (self._make_layer(models.resnet.BasicBlock, 16 << i, 3, stride=2 if i else 1) for i in range(3))
        self.layer4, self.fc = nn.Identity(), nn.Linear(64, num_classes)


def make(name, num_classes=1000, **sizes):
    if name == "resnet20":
        return Small(10)
    if name == "unet":
        return UNet(2 if num_classes == 1000 else num_classes)
    if name.startswith("deeplab"):
        return getattr(models.segmentation, name)(weights=None, weights_backbone=None,
                                                  num_classes=21 if num_classes == 1000 else num_classes)
    return getattr(models, name)(num_classes=num_classes, **sizes)


def logits_of(model, x):
    """Of pixels classes come last, as Cleave has them."""
    y = model(x)
    y = y["out"] if isinstance(y, dict) else y
    return y.permute(0, 2, 3, 1) if y.dim() == 4 else y


def entries(model):
    return [(name, tensor) for name, tensor in model.state_dict().items() if not name.endswith(LEFT_OUT)]


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
        model = make(name)
        for key, tensor in entries(model):
            print(name, key, *tensor.shape, file=file)

cases = Golden("zoo")


def case(name, batch, size, gradients):
    with cases.case(name) as c:
        x = c.input("x", torch.rand(batch, 3, size, size), grad=False)
        sized = {"image_size": size} if name.startswith("vit") else {}
        model = make(name, 10, **sized).eval()
        with torch.no_grad():
            for k, (key, tensor) in enumerate(entries(model)):
                tensor.copy_(values_of(k, key, tensor))
        if gradients:
            logits = logits_of(model, x)
            labels = (torch.arange(logits[..., 0].numel()) * 3 % 10).reshape(logits.shape[:-1])
            c.put("labels", labels)
            c.expect("loss", F.cross_entropy(logits.reshape(-1, 10), labels.reshape(-1)))
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
case("swin_t", 1, 60, ["features.0.0.bias", "features.1.1.attn.relative_position_bias_table", "features.2.norm.weight", "features.5.3.attn.qkv.bias",
                      "features.7.0.mlp.0.bias", "norm.weight", "head.bias"])
case("deeplabv3_mobilenet_v3_large", 2, 40, ["backbone.0.0.weight", "backbone.13.block.1.0.weight", "classifier.0.convs.1.1.bias",
                                             "classifier.0.convs.4.2.weight", "classifier.0.project.1.bias", "classifier.4.bias"])
case("unet", 1, 20, ["inc.double_conv.0.weight", "down3.maxpool_conv.1.double_conv.4.bias", "up1.up.bias", "up4.conv.double_conv.1.weight",
                     "outc.conv.bias"])
case("resnet20", 2, 28, ["conv1.weight", "layer1.0.bn2.weight", "layer2.0.downsample.1.bias", "layer3.2.bn2.bias", "fc.bias"])
cases.write()
