#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data as people have them, made up by a seed: a table of houses, named arrays, a folder of pictures, a text.

    made_data.py DIR [houses] [arrays] [pictures] [text]

houses.csv    1,000 rows: five numbers, two columns of words, some values missing; the price, 100,000 to 900,000, is to be learnt
arrays.npz    x [2000,8], y [2000] f32, kind [2000] of three classes
pictures/     three classes (circles, squares, crosses) of 160 pictures of 64 x 64, .png
text.txt      1 MB of sentences of a small grammar
"""
import os
import random
import sys

import numpy

CITIES = {"Aachen": 40e3, "Bremen": 0, "Dresden": 25e3, "Erfurt": -60e3, "Hamburg": 120e3, "Kiel": 10e3, "Ulm": 60e3}
KINDS = {"detached": 90e3, "terraced": 0, "flat": -50e3}


def houses(folder):
    rng = random.Random(1)
    lines = ["city,kind,area,rooms,year,distance,plot,price"]
    while len(lines) <= 1000:
        city, kind = rng.choice(list(CITIES)), rng.choice(list(KINDS))
        area = rng.uniform(40, 220)
        rooms = max(1, round(area / 28 + rng.gauss(0, 0.8)))
        year, distance = rng.randint(1900, 2023), rng.expovariate(1 / 6)
        plot = area * rng.uniform(1, 6) if kind == "detached" else rng.uniform(0, 120)
        price = (60e3 + CITIES[city] + KINDS[kind] + area * (2100 + 8 * max(0, year - 1970))
                 + 60 * plot - 9e3 * min(distance, 15) + rng.gauss(0, 25e3))
        if not 100e3 <= price <= 900e3:
            continue
        cells = [city, kind, "%.1f" % area, rooms, year, "%.2f" % distance, "%.0f" % plot]
        cells = ["" if rng.random() < 0.02 else str(c) for c in cells]
        lines.append(",".join(cells) + ",%.0f" % price)
    with open(os.path.join(folder, "houses.csv"), "w") as f:
        f.write("\n".join(lines) + "\n")


def arrays(folder):
    rng = numpy.random.default_rng(2)
    x = rng.normal(size=(2000, 8)).astype("float32")
    y = numpy.sin(x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * x[:, 3] + rng.normal(scale=0.05, size=2000)
    kind = numpy.digitize(x[:, 4] + x[:, 5] * x[:, 6], [-0.5, 0.5])
    numpy.savez(os.path.join(folder, "arrays.npz"), x=x, y=y.astype("float32"), kind=kind.astype("int64"))


def pictures(folder):
    from PIL import Image, ImageDraw
    rng = random.Random(3)
    for kind in ("circles", "squares", "crosses"):
        os.makedirs(os.path.join(folder, "pictures", kind), exist_ok=True)
        for i in range(160):
            back = [rng.randint(0, 255) for _ in range(3)]
            ink = tuple((c + rng.randint(80, 176)) % 256 for c in back)
            image = Image.new("RGB", (64, 64), tuple(back))
            draw = ImageDraw.Draw(image)
            r = rng.randint(9, 22)
            x, y = rng.randint(r, 63 - r), rng.randint(r, 63 - r)
            if kind == "circles":
                draw.ellipse((x - r, y - r, x + r, y + r), outline=ink, width=5)
            elif kind == "squares":
                draw.rectangle((x - r, y - r, x + r, y + r), outline=ink, width=5)
            else:
                draw.line((x - r, y - r, x + r, y + r), fill=ink, width=5)
                draw.line((x - r, y + r, x + r, y - r), fill=ink, width=5)
            image.save(os.path.join(folder, "pictures", kind, "%03d.png" % i))


def text(folder):
    rng = random.Random(4)
    names = "Anna Ben Clara David Emma Finn Greta Hugo".split()
    verbs = "sees finds likes paints counts carries".split()
    things = "house river garden bicycle letter window kitchen mountain".split()
    looks = "old small green quiet heavy bright".split()
    parts, size = [], 0
    while size < 1_000_000:
        name, verb = rng.choice(names), rng.choice(verbs)
        sentence = f"{name} {verb} the {rng.choice(looks)} {rng.choice(things)}."
        if rng.random() < 0.3:
            sentence = f"In the {rng.choice(things)}, {sentence}"
        parts.append(sentence + rng.choice((" ", " ", "\n")))
        size += len(parts[-1])
    with open(os.path.join(folder, "text.txt"), "w") as f:
        f.write("".join(parts)[:1_000_000])


if __name__ == "__main__":
    made = {"houses": houses, "arrays": arrays, "pictures": pictures, "text": text}
    if len(sys.argv) < 2 or any(name not in made for name in sys.argv[2:]):
        sys.exit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    for each in sys.argv[2:] or made:
        made[each](sys.argv[1])
