# SPDX-License-Identifier: Apache-2.0
"""loss.safetensors: softmax and its logarithm along any axis, with infinities; cross entropy; mean squared error."""
import torch
import torch.nn.functional as F
from golden import Golden

cases = Golden("loss")
inf = float("inf")
SOFTMAX = {  # shape of x, axis
    "rows": ((5, 10), 1),
    "long_rows": ((2, 37), -1),
    "columns": ((6, 17), 0),
    "middle": ((2, 5, 3), 1),
    "channels": ((2, 4, 3, 5), 1),
}
infinite = torch.randn(4, 20)
infinite[0, 3] = infinite[0, 17] = -inf  # a masked element
infinite[1, 1:] = -inf                   # all but one
infinite[2] = -inf                       # all: not a number
infinite[3, 5] = inf
for name, function in {"softmax": F.softmax, "log_softmax": F.log_softmax}.items():
    for how, (shape, axis) in SOFTMAX.items():
        with cases.case(f"{name}_{how}", name, axis=axis) as c:
            c.expect("y", function(c.input("x", 3 * torch.randn(shape)), axis))
    with cases.case(f"{name}_large", name, axis=1) as c:
        c.expect("y", function(c.input("x", 30 * torch.randn(3, 19)), 1))
    with cases.case(f"{name}_infinite", name, axis=1) as c:
        c.expect("y", function(c.input("x", infinite, grad=False), 1))
    with cases.case(f"{name}_masked", name, axis=1) as c:  # the gradient of a masked element is 0
        c.expect("y", function(c.input("x", infinite[:2], grad=name == "softmax"), 1))

CROSS_ENTROPY = {"few": (6, 10), "many": (3, 41), "pixels": (2, 5, 3), "images": (2, 3, 2, 4), "one_class": (3, 1)}
for name, shape in CROSS_ENTROPY.items():
    with cases.case("cross_entropy_" + name, "cross_entropy") as c:
        labels = torch.randint(0, shape[1], shape[:1] + shape[2:])
        c.expect("loss", F.cross_entropy(c.input("logits", 3 * torch.randn(shape)), c.input("labels", labels)))
with cases.case("cross_entropy_large", "cross_entropy") as c:
    c.expect("loss", F.cross_entropy(c.input("logits", 1000 * torch.randn(4, 33)), c.input("labels", torch.tensor([0, 32, 5, 7]))))
with cases.case("cross_entropy_masked", "cross_entropy") as c:
    c.expect("loss", F.cross_entropy(c.input("logits", infinite[:2]), c.input("labels", torch.tensor([4, 0]))))

# class weights and labels that count nothing; behind the others, whose numbers stay
WEIGHTED = {"few": (6, 10), "pixels": (2, 5, 3), "many": (3, 41)}
def weighted(shape, weights, ignored):
    labels = torch.randint(0, shape[1], shape[:1] + shape[2:])
    labels.view(-1)[1] = ignored
    logits = 3 * torch.randn(shape)
    class_weights = (torch.arange(shape[1]) % 3 + 0.5) if weights else None
    return labels, logits, class_weights

with cases.case("mse_loss", "mse_loss") as c:
    c.expect("loss", F.mse_loss(c.input("x", torch.randn(7, 11)), c.input("target", torch.randn(7, 11))))
with cases.case("mse_loss_one", "mse_loss") as c:
    c.expect("loss", F.mse_loss(c.input("x", torch.randn(1)), c.input("target", torch.randn(1), grad=False)))
for name, shape in WEIGHTED.items():
    for how, (weights, ignored) in {"ignored": (False, -100), "weights": (True, 2)}.items():
        with cases.case(f"cross_entropy_{how}_{name}") as c:
            labels, logits, class_weights = weighted(shape, weights, ignored)
            c.expect("loss", F.cross_entropy(c.input("logits", logits), c.input("labels", labels), weight=class_weights,
                                             ignore_index=ignored))
cases.write()
