# SPDX-License-Identifier: Apache-2.0
"""matmul.safetensors: vectors, batches that broadcast, either side transposed, linear over more than two dimensions."""
import torch
import torch.nn.functional as F
from golden import Golden

cases = Golden("matmul")
MATMUL = {  # name: shape of a, shape of b, exchange the last two of a, of b
    "matrices": ((3, 5), (5, 7), False, False),
    "a_transposed": ((5, 3), (5, 7), True, False),
    "b_transposed": ((3, 5), (7, 5), False, True),
    "both_transposed": ((5, 3), (7, 5), True, True),
    "vector_vector": ((6,), (6,), False, False),
    "vector_matrix": ((5,), (5, 4), False, False),
    "matrix_vector": ((4, 5), (5,), False, False),
    "batch_vector": ((2, 4, 5), (5,), False, False),
    "vector_batch": ((5,), (2, 5, 3), False, False),
    "batch": ((2, 3, 4), (2, 4, 5), False, False),
    "batch_one_b": ((2, 3, 4), (4, 5), False, False),
    "batch_one_b_transposed": ((2, 4, 3), (5, 4), True, True),
    "batch_one_a": ((3, 4), (2, 4, 5), False, False),
    "batch_broadcast": ((2, 1, 3, 4), (3, 4, 5), False, False),
    "batch_broadcast_transposed": ((1, 2, 4, 3), (3, 1, 5, 4), True, True),
}
LINEAR = {  # name: shape of x, output features, bias
    "linear": ((4, 6), 3, True),
    "linear_no_bias": ((4, 6), 3, False),
    "linear_vector": ((6,), 3, True),
    "linear_three": ((2, 3, 6), 5, True),
}
for name, (a, b, transpose_a, transpose_b) in MATMUL.items():
    with cases.case(name, "matmul", transpose_a=int(transpose_a), transpose_b=int(transpose_b)) as c:
        x, y = c.input("a", torch.randn(a)), c.input("b", torch.randn(b))
        c.expect("y", (x.transpose(-1, -2) if transpose_a else x) @ (y.transpose(-1, -2) if transpose_b else y))
for name, (x, features, bias) in LINEAR.items():
    with cases.case(name, "linear") as c:
        arguments = [c.input("x", torch.randn(x)), c.input("weight", torch.randn(features, x[-1]))]
        if bias:
            arguments.append(c.input("bias", torch.randn(features)))
        c.expect("y", F.linear(*arguments))
cases.write()
