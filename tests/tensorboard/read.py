# SPDX-License-Identifier: Apache-2.0
# What TensorBoard makes of a folder of event files, held against a log of `cleave train`: read.py FOLDER LOG STEPS
import json
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

folder, log, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
board = EventAccumulator(folder, size_guidance={"scalars": 0, "histograms": 0})
board.Reload()
tags = board.Tags()
told = {event.step: event.value for event in board.Scalars("loss/train")}
assert list(told) == list(range(1, steps + 1)), f"{folder}: steps {list(told)}"
for line in map(json.loads, open(log)):
    if "event" in line:
        continue
    for tag, value in (("loss/train", line["loss"]), ("learning_rate", line["lr"])):
        shown = [event.value for event in board.Scalars(tag) if event.step == line["step"]]
        assert len(shown) == 1 and abs(shown[0] - value) <= 1e-6 * abs(value), f"{folder}: {tag} {shown}, {value}"
wanted = ["images_per_second", "memory_MiB/host", "loss/epoch"]
assert all(tag in tags["scalars"] for tag in wanted), f"{folder}: {tags['scalars']}"
for tag in tags["histograms"]:
    last = board.Histograms(tag)[-1].histogram_value
    assert last.num == sum(last.bucket) and last.min <= last.max, f"{folder}: {tag}"
print(f"TensorBoard read {folder}: {len(told)} steps, {len(tags['scalars'])} scalars, {len(tags['histograms'])} histograms")
