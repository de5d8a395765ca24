# SPDX-License-Identifier: Apache-2.0
"""An op of one's own in OpenCL C, checked on a device, and trained in a module of PyTorch."""
import numpy
import torch

import cleave
from cleave import ops

KERNEL = """
__kernel void KERNEL(softplus_beta)(global T_y *y, global const T_x *x, int n, float beta) {
    const int i = get_global_id(0);
    if (i >= n) return;
    const float v = LOAD(T_x, x + i);
    STORE(T_y, fmax(v, 0.0f) + log1p(exp(-fabs(beta * v))) / beta, y + i);
}
"""
cleave.custom_op("softplus_beta", {"x": "f32|f16"}, {"y": "like x"}, KERNEL, attributes={"beta": 1.0},
                 reference=lambda x, beta: numpy.log1p(numpy.exp(beta * x)) / beta,
                 gradient=lambda x, y, dy, beta: ops.mul(dy, ops.sigmoid(ops.mul_scalar(x, value=beta))),
                 samples=[{"x": ((1003,), -9, 9)}, {"x": (7, 5), "beta": 3.0}])
print("%d cases passed" % cleave.check("softplus_beta"))


@torch.library.custom_op("mine::softplus_beta", mutates_args=())
def softplus_beta(x: torch.Tensor, beta: float) -> torch.Tensor:
    return torch.nn.functional.softplus(x, beta)


softplus_beta.register_fake(lambda x, beta: torch.empty_like(x))
cleave.for_torch("mine::softplus_beta", lambda x, beta: ops.softplus_beta(x, beta=beta))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(4, 32), torch.nn.Linear(32, 2)

    def forward(self, x):
        return self.last(softplus_beta(self.first(x), 2.0))


x = torch.randn(256, 4)
model = cleave.compile(Net(), optimizer="adam", lr=1e-2)
for _ in range(100):
    loss = model.step(x, (x.sum(1) > 0).long())
print("loss %.4f" % loss)
