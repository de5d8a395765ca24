# SPDX-License-Identifier: Apache-2.0
"""conv2d.safetensors: which way the kernel lies, groups, and all that moves positions, unlike in height and width. And convolutions of
other dimensions, and transposed ones."""
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
OTHERS = {  # name: op, shape of x, shape of weight, length of bias or 0, arguments
    "transposed": ("conv_transpose2d", (2, 3, 4, 3), (3, 2, 2, 3), 2, {}),
    "transposed_no_bias": ("conv_transpose2d", (1, 2, 3, 4), (2, 3, 3, 2), 0, dict(stride=2)),
    "transposed_output_padding": ("conv_transpose2d", (1, 2, 3, 4), (2, 2, 3, 2), 2,
                                  dict(stride=(3, 2), padding=(1, 0), output_padding=(2, 1))),
    "transposed_dilation": ("conv_transpose2d", (1, 2, 4, 3), (2, 2, 3, 2), 2,
                            dict(stride=(2, 1), padding=(2, 1), dilation=(1, 3), output_padding=(1, 0))),
    "transposed_groups": ("conv_transpose2d", (1, 6, 4, 3), (6, 2, 3, 3), 4, dict(groups=2, padding=1, stride=2)),
    "transposed_depthwise": ("conv_transpose2d", (1, 3, 4, 4), (3, 1, 3, 3), 3, dict(groups=3, padding=1, stride=2)),
    # an output padding that only the dilation is above
    "transposed_past_stride": ("conv_transpose2d", (1, 2, 3, 3), (2, 2, 2, 2), 2,
                               dict(stride=(1, 2), padding=(2, 1), dilation=(3, 4), output_padding=(2, 3))),
    "transposed_1d": ("conv_transpose1d", (2, 4, 5), (4, 2, 3), 4,
                      dict(stride=2, padding=1, output_padding=1, dilation=2, groups=2)),
    "conv1d": ("conv1d", (2, 4, 11), (6, 2, 3), 6, dict(stride=2, padding=1, dilation=2, groups=2)),
}
for name, (op, x, weight, bias, arguments) in OTHERS.items():
    with cases.case(name, op, **arguments) as c:
        tensors = [c.input("x", torch.randn(x)), c.input("weight", torch.randn(weight))]
        if bias:
            tensors.append(c.input("bias", torch.randn(bias)))
        c.expect("y", getattr(F, op)(*tensors, **arguments))
OTHERS = {
    "solid": ("conv3d", (2, 3, 4, 3, 5), (2, 3, 2, 3, 2), 2, {}),
    "solid_all": ("conv3d", (1, 4, 5, 6, 7), (6, 2, 3, 2, 3), 6,
                  dict(stride=(1, 2, 3), padding=(2, 0, 1), dilation=(2, 1, 1), groups=2)),
    "solid_no_bias": ("conv3d", (1, 2, 3, 3, 3), (2, 2, 2, 2, 2), 0, dict(stride=[2], padding=[1])),
    "solid_transposed": ("conv_transpose3d", (2, 2, 2, 3, 2), (2, 3, 2, 2, 3), 3, dict(stride=[2])),
    "solid_transposed_all": ("conv_transpose3d", (1, 4, 3, 2, 3), (4, 2, 3, 2, 2), 4,
                             dict(stride=(3, 1, 2), padding=(1, 0, 1), output_padding=(2, 0, 1), dilation=(1, 2, 1), groups=2)),
    "solid_transposed_past_stride": ("conv_transpose3d", (1, 2, 2, 2, 2), (2, 2, 2, 2, 2), 2,
                                     dict(padding=(1, 0, 2), dilation=(2, 3, 4), output_padding=(1, 2, 3))),
}
for name, (op, x, weight, bias, arguments) in OTHERS.items():
    with cases.case(name, op, **arguments) as c:
        tensors = [c.input("x", torch.randn(x)), c.input("weight", torch.randn(weight))]
        if bias:
            tensors.append(c.input("bias", torch.randn(bias)))
        c.expect("y", getattr(F, op)(*tensors, **arguments))
cases.write()
