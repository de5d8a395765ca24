#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A folder of pictures of every kind, and what torchvision makes of them. The C side is tests/data/images.c.
Needs torchvision and PIL (Debian: python3-torchvision)."""
import pathlib
import random

import numpy
import torch
from PIL import Image
from torchvision import transforms
from torchvision.transforms import functional as F

from golden import save

SIZE, RESIZE = 24, 28
here = pathlib.Path(__file__).parent
folder = here / "images"
random.seed(1)
numpy.random.seed(1)


def picture(width, height, channels=3):
    """Colours that change slowly, with some edges and noise."""
    small = numpy.random.randint(0, 256, (5, 6, channels), dtype=numpy.uint8)
    image = Image.merge("RGB CMYK".split()[channels == 4], [
        Image.fromarray(small[..., c]).resize((width, height), Image.BICUBIC) for c in range(channels)])
    image.paste(tuple(random.randrange(256) for _ in range(channels)), (width // 3, height // 3, width // 2, height // 2))
    return image


def deep(name, width, height):
    """16 bits a channel, which PIL reads and does not write: a PNG by hand."""
    import struct
    import zlib
    values = numpy.asarray(picture(width, height)).astype(">u2") * 257 ^ 0x55
    rows = b"".join(b"\0" + row.tobytes() for row in values.astype(">u2"))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    name.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


for name in "jpeg", "png":
    (folder / name).mkdir(parents=True, exist_ok=True)
jpeg, png = folder / "jpeg", folder / "png"
picture(53, 37).save(jpeg / "color.jpg", quality=90)
picture(40, 61).save(jpeg / "fine.JPEG", quality=95, subsampling=0)
picture(64, 64).convert("L").save(jpeg / "grey.jpg")
picture(48, 33, 4).save(jpeg / "ink.jpg", quality=85)
picture(90, 45).save(jpeg / "steps.jpeg", progressive=True)
picture(45, 41).save(png / "color.png")
picture(25, 70).convert("L").save(png / "grey.png")
picture(33, 32).convert("1").save(png / "line.png")
image = picture(38, 29)
image.putalpha(picture(38, 29).convert("L"))
image.save(png / "mask.png")
picture(31, 47).convert("LA").save(png / "mask_grey.PNG")
picture(36, 36).quantize(16).save(png / "palette.png", transparency=3)
picture(20, 12).save(png / "tiny.png")
deep(png / "wide.png", 30, 34)

tensors = {}
files = sorted(p.relative_to(folder).as_posix() for p in folder.glob("*/*"))
print(files)
middle = transforms.Compose([transforms.Resize(RESIZE), transforms.CenterCrop(SIZE)])
images = {name: Image.open(folder / name).convert("RGB") for name in files}
tensors["resize"] = torch.stack([F.pil_to_tensor(middle(images[name])) for name in files])
normalize = transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
tensors["normalize"] = torch.stack([normalize(F.to_tensor(middle(images[name]))) for name in files if name.startswith("png")])
# Boxes (top, left, height, width) that are cut out and resized, as RandomResizedCrop does.
boxes = [(0, 0, 41, 45), (5, 7, 24, 24), (40, 44, 1, 1), (3, 1, 37, 12), (10, 20, 9, 25)]
tensors["boxes"] = torch.tensor(boxes, dtype=torch.int32)
tensors["crops"] = torch.stack([F.pil_to_tensor(F.resized_crop(images["png/color.png"], *box, [SIZE, SIZE])) for box in boxes])
tensors["flipped"] = F.pil_to_tensor(F.hflip(middle(images["png/color.png"])))
# ColorJitter: factors of brightness, contrast and saturation, and the order in which they come.
adjust = [F.adjust_brightness, F.adjust_contrast, F.adjust_saturation]
factors = [(0.3, 1, 1), (1.9, 1, 1), (1, 0, 1), (1, 0.6, 1), (1, 2.5, 1), (1, 1, 0), (1, 1, 1.7), (0.8, 1.3, 0.5), (1.4, 0.7, 1.6)]
orders = [(0, 1, 2)] * 7 + [(2, 0, 1), (1, 2, 0)]
results = []
for factor, order in zip(factors, orders):
    image = middle(images["png/color.png"])
    for what in order:
        image = adjust[what](image, factor[what])
    results.append(F.pil_to_tensor(image))
tensors["factors"] = torch.tensor(factors, dtype=torch.float32)
tensors["orders"] = torch.tensor(orders, dtype=torch.int32)
tensors["jitters"] = torch.stack(results)
save(here / "images.safetensors", tensors)
