#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a first training gives, with nothing named, beside the same model in PyTorch with Adam at 0.001.

    first_results.py [--data 0,1] [--seeds 1,2] [--model linear] [--words WORDS] CLEAVE DIR [houses] [arrays] [kinds] [pictures] [text]

For each number of --data made_data.py makes data in DIR/NUMBER (and pictures to test on in DIR/NUMBER-test); on each both train with
each of --seeds. PyTorch gets the same samples, standardized and augmented alike, as many steps of as many samples, and first values by
the same rule; its rate is constant. --model linear is of houses, arrays and kinds. --words '--epochs 1' makes
less of pictures and text, which take half an hour of two cores each and more; without names the other three are trained.

Prints a row for each data: what is measured, ours, PyTorch's (means over seeds), by how much ours is worse, what always the mean or the
commonest class would get, and whether `cleave` told that; then a row for the means over all data. How texts are made is known, so there
is a least loss of any model, and a row that holds ours against it, before PyTorch trains.
"""
import argparse
import collections
import csv
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch
from torch import nn
from torch.nn import functional as F

import made_data
import same_recipe

# A measure by both, one for each seed; `least` is that of who always tells the same; `told`: did Cleave compare itself with such?
Row = collections.namedtuple("Row", "measure ours theirs least told")


def cleave(option, command, *words):
    said = subprocess.run([option.tool, command, *words, "--json", "--quiet"], stdout=subprocess.PIPE, check=True)
    return json.loads(said.stdout)


def train(option, seed, *words):
    model = ["--model", option.model] if option.model else []
    return cleave(option, "train", *words, "--seed", str(seed), *model, *option.words.split())


def fit(net, sample, count, loss, steps, batch, lr=1e-3):
    """Adam at a constant rate over shuffled batches; `sample` makes inputs and targets of indices."""
    optimizer, done = torch.optim.Adam(net.parameters(), lr), 0
    net.train()
    while done < steps:
        order = torch.randperm(count)
        for at in range(0, count, batch):
            if done == steps:
                break
            x, y = sample(order[at:at + batch])
            optimizer.zero_grad()
            loss(net(x), y).backward()
            optimizer.step()
            done += 1
    return net.eval()


def compares(*results):
    """Do all tell what always the same would get, and rightly whether they are better?"""
    def better(result):
        least, loss = result["baseline"], result["test_loss"]
        if result["test_accuracy"] is not None:
            return result["test_accuracy"] > least["accuracy"]
        return (result["train_loss"] if loss is None else loss) < least["loss"]
    return all(result["baseline"] and result["baseline"]["no_better"] != better(result) for result in results)


# ---- rows of numbers --------------------------------------------------------------------------------------------------------


def rows(option, words, x, y, known, outputs, loss):
    """Our results, and what PyTorch's model tells of the rows that are tested on, for each seed."""
    results, told = [], []
    for seed in option.seeds:
        results.append(train(option, seed, *words))
        torch.manual_seed(seed)
        width = x.shape[1]
        net = (nn.Linear(width, outputs) if option.model == "linear"
               else nn.Sequential(nn.Linear(width, 128), nn.ReLU(), nn.Linear(128, outputs)))
        net = fit(net, lambda at: (x[at], y[at]), known, loss, results[-1]["steps"], 64)
        with torch.no_grad():
            told.append(net(x[known:]))
    return results, told


def numbers(option, words, x, y, known):
    mean, std = y[:known].mean(), y[:known].std(unbiased=False)
    results, told = rows(option, words, x, ((y - mean) / std).float()[:, None], known, 1, F.mse_loss)
    measures = {"mae": lambda off: off.abs().mean().item(), "rmse": lambda off: (off ** 2).mean().sqrt().item()}
    for name, measure in measures.items():
        theirs = [measure(out.double()[:, 0] * std + mean - y[known:]) for out in told]
        yield Row(name, [r["metrics"][name] for r in results], theirs, measure(y[known:] - mean), compares(*results))


def classes(option, words, x, y, known):
    results, told = rows(option, words, x, y, known, int(y.max()) + 1, F.cross_entropy)
    of_test = y[known:].bincount() / len(y[known:])
    right = [(out.argmax(1) == y[known:]).float().mean().item() for out in told]
    loss = [F.cross_entropy(out, y[known:]).item() for out in told]
    yield Row("accuracy", [r["test_accuracy"] for r in results], right, of_test.max().item(), compares(*results))
    yield Row("loss", [r["test_loss"] for r in results], loss, -(of_test * of_test.log()).sum().item(), compares(*results))


def houses(option, folder, number):
    """Numbers are standardized by the rows that are trained on, a missing one is the mean; a missing word is a word of its own."""
    made_data.houses(folder, number)
    table, known, columns = list(csv.DictReader(open(folder + "/houses.csv"))), 900, []
    for name in ("area", "rooms", "year", "distance", "plot"):
        values = numpy.array([float(row[name]) if row[name] else math.nan for row in table])
        mean, std = numpy.nanmean(values[:known]), numpy.nanstd(values[:known])
        columns.append((numpy.where(numpy.isnan(values), mean, values) - mean) / std)
    for name in ("city", "kind"):
        for word in sorted({row[name] for row in table}):
            columns.append(numpy.array([row[name] == word for row in table], float))
    x, y = torch.tensor(numpy.stack(columns, 1)).float(), torch.tensor([float(row["price"]) for row in table]).double()
    return numbers(option, ["csv", folder + "/houses.csv", "--target", "price", "--missing", "mean"], x, y, known)


def of_arrays(folder, number, target):
    made_data.arrays(folder, number)
    data = numpy.load(folder + "/arrays.npz")
    words = ["arrays", folder + "/arrays.npz", "--inputs", "x", "--target", target]
    return words, torch.tensor(data["x"]), torch.tensor(data[target]), 1800


def arrays(option, folder, number):
    words, x, y, known = of_arrays(folder, number, "y")
    return numbers(option, words, x, y.double(), known)


def kinds(option, folder, number):
    return classes(option, *of_arrays(folder, number, "kind"))


# ---- pictures and text ------------------------------------------------------------------------------------------------------


def pictures(option, folder, number):
    """resnet18 on random parts, flipped or not, as both have them; tested on the middle of other pictures."""
    from torchvision import datasets, models, transforms
    size = int((option.words.split("--image-size ")[1:] or ["64"])[0].split()[0])
    made_data.pictures(folder, number)
    made_data.pictures(folder + "-test", number + 1000)
    usual = [transforms.ToTensor(), transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]
    drawn = datasets.ImageFolder(folder + "/pictures", transforms.Compose(
        [transforms.RandomResizedCrop(size), transforms.RandomHorizontalFlip(), *usual]))
    middle = datasets.ImageFolder(folder + "-test/pictures", transforms.Compose(
        [transforms.Resize((size * 8 + 3) // 7), transforms.CenterCrop(size), *usual]))
    x, y = (torch.stack([picture for picture, _ in middle]), torch.tensor(middle.targets))
    results, tests, right, loss = [], [], [], []
    for seed in option.seeds:
        with tempfile.TemporaryDirectory() as place:
            results.append(train(option, seed, "images", folder + "/pictures", "--save", place + "/w.safetensors"))
            tests.append(cleave(option, "eval", "images", folder + "-test/pictures", "--weights", place + "/w.safetensors"))
        torch.manual_seed(seed)
        net = fit(models.resnet18(num_classes=len(drawn.classes)),
                  lambda at: (torch.stack([drawn[i][0] for i in at]), torch.tensor([drawn.targets[i] for i in at])),
                  len(drawn), F.cross_entropy, results[-1]["steps"], 32)
        with torch.no_grad():
            out = torch.cat([net(part) for part in x.split(32)])
        right.append((out.argmax(1) == y).float().mean().item())
        loss.append(F.cross_entropy(out, y).item())
    told = compares(*results, *tests)
    yield Row("accuracy", [test["test_accuracy"] for test in tests], right, 1 / len(drawn.classes), told)
    yield Row("loss", [test["test_loss"] for test in tests], loss, math.log(len(drawn.classes)), told)


def first_values(net):
    """minGPT's, as ours."""
    for name, parameter in net.named_parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, 0, 0.02 / math.sqrt(2 * same_recipe.LAYERS) if "c_proj" in name else 0.02)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
    return net


def text(option, folder, number):
    """The GPT of characters; the last tenth is tested on."""
    made_data.text(folder, number)
    characters = open(folder + "/text.txt", encoding="utf-8", newline="").read()
    index = {c: i for i, c in enumerate(sorted(set(characters)))}
    tokens, context = torch.tensor([index[c] for c in characters]), same_recipe.CONTEXT
    cut = int(same_recipe.KEPT * len(tokens))
    known, tested = (part.unfold(0, context + 1, context) for part in (tokens[:cut], tokens[cut:]))

    def loss_of(out, y):
        return F.cross_entropy(out.flatten(0, 1), y.flatten())

    results = [train(option, seed, "text", folder + "/text.txt") for seed in option.seeds]
    ours, told = [result["test_loss"] for result in results], compares(*results)
    often = tested[:, 1:].flatten().bincount() / tested[:, 1:].numel()
    least, letters = -(often * often.clamp_min(1e-30).log()).sum().item(), sorted(index)
    floor = made_data.text_floor(["".join(letters[i] for i in window) for window in tested.tolist()])
    yield Row("loss; beside it the least of any model", ours, [floor], least, told)
    theirs = []
    for seed, result in zip(option.seeds, results):
        torch.manual_seed(seed)
        net = fit(first_values(same_recipe.GPT(len(index))), lambda at: (known[at, :-1], known[at, 1:]), len(known), loss_of,
                  result["steps"], 64)
        with torch.no_grad():
            theirs.append(sum(loss_of(net(part[:, :-1]), part[:, 1:]).item() * len(part) for part in tested.split(64)) / len(tested))
    yield Row("loss", ours, theirs, least, told)


# ---- the table --------------------------------------------------------------------------------------------------------------


def mean(values):
    return sum(values) / len(values)


def say(name, number, row):
    worse = mean(row.ours) / mean(row.theirs) - 1 if row.measure != "accuracy" else 1 - mean(row.ours) / mean(row.theirs)
    print(f"| {name} | {number} | {row.measure} | {mean(row.ours):.4g} | {mean(row.theirs):.4g} | {100 * worse:+.1f} % | {row.least:.4g} | "
          f"{'yes' if row.told else 'no'} |", flush=True)


def compare(option, name, of):
    all_rows = collections.defaultdict(list)
    for number in option.data:
        folder = f"{option.folder}/{number}"
        for place in (folder, folder + "-test"):
            pathlib.Path(place).mkdir(parents=True, exist_ok=True)
        for row in of(option, folder, number):
            say(name, number, row)
            all_rows[row.measure].append(row)
    for measure, each in all_rows.items():
        say(name, "all", Row(measure, *([mean(getattr(row, side)) for row in each] for side in ("ours", "theirs")),
                             mean([row.least for row in each]), all(row.told for row in each)))


def integers(words):
    return [int(word) for word in words.split(",")]


if __name__ == "__main__":
    made = {"houses": houses, "arrays": arrays, "kinds": kinds, "pictures": pictures, "text": text}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=integers, default=[0])
    parser.add_argument("--seeds", type=integers, default=[1, 2])
    parser.add_argument("--model")
    parser.add_argument("--words", default="")
    parser.add_argument("tool", metavar="CLEAVE")
    parser.add_argument("folder", metavar="DIR")
    parser.add_argument("names", nargs="*", metavar="NAME")
    wanted = parser.parse_args()
    if any(each not in made for each in wanted.names):
        parser.error("NAME is one of " + ", ".join(made))
    print("| trained on | data | measure | cleave | PyTorch, Adam 0.001 | worse by | always the same | told |")
    print("|---|---|---|---|---|---|---|---|")
    for each in wanted.names or ["houses", "arrays", "kinds"]:
        compare(wanted, each, made[each])
