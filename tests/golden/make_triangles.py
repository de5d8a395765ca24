# SPDX-License-Identifier: Apache-2.0
"""triangles.safetensors: triangles of matrices, and indices as rows with a one."""
import torch
import torch.nn.functional as F
from golden import Golden

cases = Golden("triangles")
for op in ("tril", "triu"):
    for name, shape, diagonal in ((op, (4, 5), 0), (f"{op}_matrices", (2, 5, 3), -1), (f"{op}_above", (3, 4), 2)):
        with cases.case(name, op, diagonal=diagonal) as c:
            c.expect("y", getattr(torch, op)(c.input("x", torch.randn(shape)), diagonal))
with cases.case("one_hot", "one_hot", classes=4) as c:
    c.expect("y", F.one_hot(c.input("x", torch.tensor([[0, 3, 1], [2, 2, 0]])), 4).double())
cases.write()
