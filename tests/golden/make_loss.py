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

# losses of pairs; NONE pins the elementwise op itself
MEAN, SUM, NONE, BATCHMEAN = range(4)
REDUCTIONS = {"mean": MEAN, "sum": SUM, "none": NONE, "batchmean": BATCHMEAN}


def pair(case, op, x, target, function, reduction="mean", target_grad=True, **attributes):
    with cases.case(case, op, reduction=REDUCTIONS[reduction], **attributes) as c:
        a, b = c.input("x", x), c.input("target", target, grad=target_grad)
        c.expect("y" if reduction == "none" else "loss", function(a, b, reduction))


def randn(*shape):
    return torch.randn(shape)


pair("l1_loss", "l1_loss", randn(5, 7), randn(5, 7), lambda a, b, r: F.l1_loss(a, b, reduction=r))
pair("l1_loss_sum", "l1_loss", randn(5, 7), randn(5, 7), lambda a, b, r: F.l1_loss(a, b, reduction=r), "sum")
for how in "mean", "none":
    pair("huber_loss_" + how, "huber_loss", randn(5, 7), randn(5, 7),
         lambda a, b, r: F.huber_loss(a, b, delta=0.75, reduction=r), how, delta=0.75)
pair("smooth_l1_loss", "smooth_l1_loss", randn(5, 7), randn(5, 7),
     lambda a, b, r: F.smooth_l1_loss(a, b, beta=0.5, reduction=r), beta=0.5)
pair("smooth_l1_loss_of_0", "smooth_l1_loss", randn(5, 7), randn(5, 7),
     lambda a, b, r: F.smooth_l1_loss(a, b, beta=0.0, reduction=r), beta=0)
logits, some = 4 * randn(6, 5), torch.randint(0, 2, (6, 5)).double()
logits[0, 0], logits[0, 1] = 300.0, -300.0
with cases.case("bce", "binary_cross_entropy_with_logits", reduction=MEAN) as c:
    c.expect("loss", F.binary_cross_entropy_with_logits(c.input("x", logits), c.input("target", torch.rand(6, 5))))
with cases.case("bce_weights", "binary_cross_entropy_with_logits", reduction=SUM) as c:
    x, t, w, p = (c.input(n, v, grad=n == "x") for n, v in {"x": logits, "target": some, "weight": torch.rand(6, 1) + 0.5,
                                                               "pos_weight": 3 * torch.rand(5) + 0.5}.items())
    c.expect("loss", F.binary_cross_entropy_with_logits(x, t, w, pos_weight=p, reduction="sum"))
with cases.case("bce_pos_weight", "binary_cross_entropy_with_logits", inputs=["x", "target", None, "pos_weight"],
                reduction=NONE) as c:
    x, t, p = (c.input(n, v, grad=n == "x") for n, v in {"x": logits, "target": some, "pos_weight": torch.rand(5) + 1}.items())
    c.expect("y", F.binary_cross_entropy_with_logits(x, t, pos_weight=p, reduction="none"))
shares = torch.softmax(randn(4, 6), 1)
for how in "batchmean", "none":
    pair("kl_div_" + how, "kl_div", torch.log_softmax(randn(4, 6), 1), shares, lambda a, b, r: F.kl_div(a, b, reduction=r), how,
         log_target=0)
certain = shares.clone()
certain[0], certain[0, 2] = 0, 1  # a probability of 0 counts nothing
pair("kl_div_certain", "kl_div", torch.log_softmax(randn(4, 6), 1), certain, lambda a, b, r: F.kl_div(a, b, reduction=r), "sum",
     target_grad=False, log_target=0)
pair("kl_div_logs", "kl_div", torch.log_softmax(randn(4, 6), 1), shares.log(),
     lambda a, b, r: F.kl_div(a, b, reduction=r, log_target=True), "batchmean", log_target=1)
for name, shape in {"few": (6, 10), "pixels": (2, 5, 3)}.items():
    with cases.case("nll_loss_" + name, "nll_loss", reduction=MEAN) as c:
        labels = torch.randint(0, shape[1], shape[:1] + shape[2:])
        c.expect("loss", F.nll_loss(c.input("x", torch.log_softmax(randn(*shape), 1)), c.input("labels", labels)))
with cases.case("nll_loss_weight", "nll_loss", inputs=["x", "labels", "weight"], reduction=SUM) as c:
    labels, weights = torch.tensor([1, -100, 3, 0]), torch.tensor([0.5, 2.0, 1.0, 1.5])
    x = c.input("x", torch.log_softmax(randn(4, 4), 1))
    c.expect("loss", F.nll_loss(x, c.input("labels", labels), weight=weights, reduction="sum"))
    c.input("weight", torch.where(labels < 0, 0.0, weights[labels.clamp(min=0)]), grad=False)


def focal(x, t, reduction, alpha, gamma):
    """torchvision.ops.sigmoid_focal_loss."""
    p, ce = torch.sigmoid(x), F.binary_cross_entropy_with_logits(x, t, reduction="none")
    loss = ce * (1 - (p * t + (1 - p) * (1 - t))) ** gamma
    loss = loss * (alpha * t + (1 - alpha) * (1 - t)) if alpha >= 0 else loss
    return {"none": lambda v: v, "mean": torch.mean, "sum": torch.sum}[reduction](loss)


for how, alpha, gamma in ("none", 0.25, 2.0), ("mean", -1.0, 1.5), ("sum", 0.5, 0.0):
    pair("focal_" + how, "sigmoid_focal_loss", 4 * randn(6, 5), some, lambda a, b, r: focal(a, b, r, alpha, gamma), how,
         target_grad=False, alpha=alpha, gamma=gamma)
signs = torch.tensor([1.0, -1.0, -1.0, 1.0, -1.0, 1.0])
pair("hinge_embedding_loss", "hinge_embedding_loss", randn(6), signs,
     lambda a, b, r: F.hinge_embedding_loss(a, b, margin=0.75, reduction=r), target_grad=False, margin=0.75)
with cases.case("margin_ranking_loss", "margin_ranking_loss", margin=0.25) as c:
    a, b, t = c.input("a", randn(6)), c.input("b", randn(6)), c.input("target", signs, grad=False)
    c.expect("loss", F.margin_ranking_loss(a, b, t, margin=0.25))
for how in "mean", "none":
    with cases.case("cosine_embedding_loss_" + how, "cosine_embedding_loss", margin=0.125, reduction=REDUCTIONS[how]) as c:
        a, b, t = c.input("a", randn(6, 5)), c.input("b", randn(6, 5)), c.input("target", signs, grad=False)
        c.expect("y" if how == "none" else "loss", F.cosine_embedding_loss(a, b, t, margin=0.125, reduction=how))
for name, (margin, p, swap) in {"": (1.0, 2.0, False), "_swap": (1.5, 2.0, True), "_p1": (0.5, 1.0, True), "_p3": (2.0, 3.0, False)}.items():
    with cases.case("triplet_margin_loss" + name, "triplet_margin_loss", margin=margin, p=p, swap=int(swap)) as c:
        a, b, d = (c.input(n, randn(6, 5)) for n in ("anchor", "positive", "negative"))
        c.expect("loss", F.triplet_margin_loss(a, b, d, margin=margin, p=p, swap=swap))


def ctc(x, targets, steps, labels, blank, zero_infinity):
    """Of each sample. PyTorch's gradient is right behind log_softmax alone, which takes lse from each step."""
    loss = F.ctc_loss(torch.log_softmax(x, 2), targets, steps, labels, blank=blank, reduction="none", zero_infinity=zero_infinity)
    inside = torch.arange(x.shape[0])[:, None] < steps
    taken = torch.where(inside, torch.logsumexp(x, 2), torch.zeros(())).sum(0)
    return torch.where(loss == 0, loss, loss - taken)


def ctc_case(name, reduction, x, targets, steps, labels, blank=0, zero_infinity=False):
    with cases.case("ctc_" + name, "ctc_loss", inputs=["x", "targets", "input_lengths", "target_lengths"], blank=blank,
                    zero_infinity=int(zero_infinity), reduction=REDUCTIONS[reduction]) as c:
        x, steps, labels = c.input("x", x), torch.tensor(steps), torch.tensor(labels)
        each = ctc(x, c.input("targets", targets), c.input("input_lengths", steps), c.input("target_lengths", labels), blank, zero_infinity)
        c.expect(*{"none": ("y", each), "sum": ("loss", each.sum()),
                   "mean": ("loss", (each / labels.clamp(min=1)).mean())}[reduction])


repeated = torch.tensor([[1, 1, 2, 3], [4, 2, 2, 2], [3, 1, 4, 1]])
ctc_case("each", "none", randn(9, 3, 5), repeated, [9, 8, 7], [4, 4, 3])
ctc_case("mean", "mean", randn(9, 3, 5), repeated, [9, 9, 6], [2, 4, 0])
ctc_case("joined", "sum", randn(9, 3, 5), torch.tensor([0, 2, 0, 0, 4, 2, 3]), [9, 9, 9], [2, 1, 4], blank=1)
ctc_case("too_short", "none", randn(5, 3, 5), repeated, [5, 5, 4], [4, 4, 3], zero_infinity=True)
ctc_case("long", "mean", randn(50, 2, 6), torch.randint(1, 6, (2, 20)), [50, 45], [20, 18])
cases.write()
