# SPDX-License-Identifier: Apache-2.0
"""conv2d.safetensors: which way the kernel lies, groups, and all that moves positions, unlike in height and width."""
import torch
import torch.nn.functional as F
from golden import Golden

cases = Golden("conv2d")
CONV2D = {  # name: shape of x, shape of weight, bias, arguments
    "kernel_1": ((2, 3, 4, 3), (5, 3, 1, 1), True, {}),
    "kernel_3": ((2, 2, 5, 6), (3, 2, 3, 3), True, {}),
    "no_bias": ((1, 2, 5, 6), (3, 2, 3, 3), False, {}),
    "kernel_2x3": ((1, 2, 5, 6), (3, 2, 2, 3), True, {}),
    "stride": ((1, 2, 7, 8), (3, 2, 3, 3), True, dict(stride=(2, 3))),
    "stride_past_kernel": ((1, 1, 7, 8), (2, 1, 1, 2), True, dict(stride=(2, 3))),
    "padding": ((1, 2, 4, 5), (3, 2, 3, 3), True, dict(padding=(1, 2))),
    "dilation": ((1, 2, 7, 9), (2, 2, 3, 3), True, dict(dilation=(2, 3))),
    "all": ((2, 2, 9, 8), (3, 2, 3, 2), True, dict(stride=(2, 1), padding=(2, 1), dilation=(1, 2))),
    "stride_dilation": ((1, 1, 9, 10), (2, 1, 2, 3), True, dict(stride=2, dilation=2)),
    "groups": ((1, 6, 5, 4), (4, 3, 3, 3), True, dict(groups=2, padding=1)),
    "depthwise": ((1, 3, 6, 6), (6, 1, 3, 3), True, dict(groups=3, padding=1, stride=2)),
}
for name, (x, weight, bias, arguments) in CONV2D.items():
    with cases.case(name, "conv2d", **arguments) as c:
        tensors = [c.input("x", torch.randn(x)), c.input("weight", torch.randn(weight))]
        if bias:
            tensors.append(c.input("bias", torch.randn(weight[0])))
        c.expect("y", F.conv2d(*tensors, **arguments))
cases.write()
