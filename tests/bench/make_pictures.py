#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A folder of JPEGs that look like photographs to a decoder: make_pictures.py FOLDER COUNT [SIDE] [CLASSES]. Needs PIL and numpy."""
import pathlib
import sys

import numpy
from PIL import Image

folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
side, classes = (int(a) for a in (sys.argv[3:5] + ["256", "10"][len(sys.argv) - 3:]))
random = numpy.random.default_rng(1)
for c in range(classes):
    (folder / f"class{c}").mkdir(parents=True, exist_ok=True)
for i in range(count):
    # Shapes of all sizes, the smaller the fainter, about a class's own colour: as much detail as a photograph has.
    c = i % classes
    image = numpy.full((side, side, 3), [40 + 170 * (c & 1), 40 + 85 * (c >> 1 & 1), 20 * c], dtype=numpy.float32)
    for cells, strength in (4, 60), (16, 30), (64, 15), (side, 6):
        noise = random.normal(0, strength, (cells, cells, 3)).astype(numpy.float32)
        image += numpy.stack([numpy.asarray(Image.fromarray(noise[..., k]).resize((side, side), Image.BICUBIC))
                              for k in range(3)], -1)
    Image.fromarray(image.clip(0, 255).astype(numpy.uint8)).save(folder / f"class{c}" / f"{i:06}.jpg", quality=90)
