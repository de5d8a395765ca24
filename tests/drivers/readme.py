# SPDX-License-Identifier: Apache-2.0
"""Tables of figures in a README: written with the table that they are of, so they cannot tell another story."""
import os


def hold(readme, lines, update):
    """The table in `readme` that has the same head as `lines` (rows of it, head first) becomes them with `update`, else has to be them.
    Gives 1, and says so, where it is another."""
    with open(readme) as file:
        text = file.read().split("\n")
    if lines[0] not in text:
        print(f"{readme} has no table '{lines[0]}'")
        return 1
    begin = end = text.index(lines[0])
    while end < len(text) and text[end].startswith("|"):
        end += 1
    if text[begin:end] == lines:
        return 0
    if not update:
        print(f"{os.path.relpath(readme)}: the table '{lines[0][:60]}...' is not of the present figures: make it again with --update")
        return 1
    text[begin:end] = lines
    with open(readme, "w") as file:
        file.write("\n".join(text))
    return 0
