#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data as people have them, made up by a seed: a table of houses, named arrays, a folder of pictures, a text.

    made_data.py [--seed N] DIR [houses] [arrays] [pictures] [text]

Another N than 0, the default, makes other data of the same kind.

houses.csv    1,000 rows: five numbers, two columns of words, some values missing; the price, 100,000 to 900,000, is to be learnt
arrays.npz    x [2000,8], y [2000] f32, kind [2000] of three classes
pictures/     three classes (circles, squares, crosses) of 160 pictures of 64 x 64, .png
text.txt      1 MB of sentences of a small grammar
"""
import argparse
import os
import random
import sys

import numpy

CITIES = {"Aachen": 40e3, "Bremen": 0, "Dresden": 25e3, "Erfurt": -60e3, "Hamburg": 120e3, "Kiel": 10e3, "Ulm": 60e3}
KINDS = {"detached": 90e3, "terraced": 0, "flat": -50e3}


def houses(folder, seed):
    rng = random.Random(1 + 10 * seed)
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


def arrays(folder, seed):
    rng = numpy.random.default_rng(2 + 10 * seed)
    x = rng.normal(size=(2000, 8)).astype("float32")
    y = numpy.sin(x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * x[:, 3] + rng.normal(scale=0.05, size=2000)
    kind = numpy.digitize(x[:, 4] + x[:, 5] * x[:, 6], [-0.5, 0.5])
    numpy.savez(os.path.join(folder, "arrays.npz"), x=x, y=y.astype("float32"), kind=kind.astype("int64"))


def pictures(folder, seed):
    from PIL import Image, ImageDraw
    rng = random.Random(3 + 10 * seed)
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


NAMES = "Anna Ben Clara David Emma Finn Greta Hugo".split()
VERBS = "sees finds likes paints counts carries".split()
THINGS = "house river garden bicycle letter window kitchen mountain".split()
LOOKS = "old small green quiet heavy bright".split()
ENDS = (" ", " ", "\n")
INTRODUCED = 0.3  # of the sentences


def text(folder, seed):
    rng = random.Random(4 + 10 * seed)
    parts, size = [], 0
    while size < 1_000_000:
        name, verb = rng.choice(NAMES), rng.choice(VERBS)
        sentence = f"{name} {verb} the {rng.choice(LOOKS)} {rng.choice(THINGS)}."
        if rng.random() < INTRODUCED:
            sentence = f"In the {rng.choice(THINGS)}, {sentence}"
        parts.append(sentence + rng.choice(ENDS))
        size += len(parts[-1])
    with open(os.path.join(folder, "text.txt"), "w") as f:
        f.write("".join(parts)[:1_000_000])


def text_chain():
    """The characters of a text as a Markov chain: what each state writes, and how probable each is after each."""
    letters, edges = [], []

    def follow(before, words):
        """One of the words after the states `before`, each state with the part of the way that leaves it; the states behind them."""
        ends = []
        for word in words:
            at = [(state, part / len(words)) for state, part in before]
            for letter in word:
                letters.append(letter)
                edges.extend((state, len(letters) - 1, part) for state, part in at)
                at = [(len(letters) - 1, 1)]
            ends += at
        return ends

    # -1 is every end of a sentence
    introduced = follow(follow(follow([(-1, INTRODUCED)], ["In the "]), THINGS), [", "])
    ends = introduced + [(-1, 1 - INTRODUCED)]
    for words in (NAMES, [" "], VERBS, [" the "], LOOKS, [" "], THINGS, ["."], ENDS):
        ends = follow(ends, words)
    moves = numpy.zeros((len(letters), len(letters)))
    for state, after, part in edges:
        for source in [end for end, _ in ends] if state == -1 else [state]:
            moves[source, after] += part
    return letters, moves


def text_floor(windows):
    """The least mean loss that any model can have, of all but the first character of each window: it knows how texts are made, and not
    what stood before. By the forward algorithm (Rabiner 1989, A tutorial on hidden Markov models, section III.A)."""
    letters, moves = text_chain()
    state = numpy.full(len(letters), 1 / len(letters))
    for _ in range(5000):
        state = (state + state @ moves) / 2
    belief, total, letters = numpy.tile(state, (len(windows), 1)), 0.0, numpy.array(letters)
    windows = numpy.array([list(window) for window in windows])
    for t in range(windows.shape[1]):
        belief = (belief @ moves if t else belief) * (letters == windows[:, t, None])
        seen = belief.sum(1, keepdims=True)
        belief, total = belief / seen, total - (numpy.log(seen).sum() if t else 0)
    return total / len(windows) / (windows.shape[1] - 1)


MADE = {"houses": houses, "arrays": arrays, "pictures": pictures, "text": text}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("folder", metavar="DIR")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    if any(each not in MADE for each in args.names):
        parser.error("NAME is one of " + ", ".join(MADE))
    os.makedirs(args.folder, exist_ok=True)
    for each in args.names or MADE:
        MADE[each](args.folder, args.seed)
