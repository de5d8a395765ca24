# SPDX-License-Identifier: Apache-2.0
"""sampling.safetensors: pictures of another size, pictures at places of a grid, pools that adapt."""
import torch
import torch.nn.functional as F
from golden import Golden

cases = Golden("sampling")
MODES = {"nearest": 0, "nearest-exact": 1, "linear": 2, "bilinear": 2, "trilinear": 2, "bicubic": 3}
RESIZES = {  # name: shape of x, size, mode, PyTorch's arguments
    "nearest_up": ((2, 2, 3, 4), (7, 9), "nearest", {}),
    "nearest_down": ((1, 2, 9, 7), (4, 3), "nearest", {}),
    "nearest_solid": ((1, 2, 3, 2, 4), (5, 4, 3), "nearest", {}),
    "nearest_row": ((2, 3, 5), (12,), "nearest", {}),
    "nearest_exact": ((1, 2, 5, 4), (3, 9), "nearest-exact", {}),
    "linear_row": ((2, 3, 5), (8,), "linear", {}),
    "linear_up": ((2, 2, 3, 4), (7, 9), "bilinear", {}),
    "linear_corners": ((1, 2, 5, 4), (8, 3), "bilinear", {"align_corners": True}),
    "linear_corners_one": ((1, 2, 5, 4), (1, 6), "bilinear", {"align_corners": True}),
    "linear_down": ((1, 2, 9, 11), (4, 3), "bilinear", {}),
    "linear_antialias": ((1, 2, 9, 11), (4, 3), "bilinear", {"antialias": True}),
    "linear_antialias_up": ((1, 1, 4, 9), (7, 5), "bilinear", {"antialias": True}),
    "linear_solid": ((1, 2, 2, 3, 4), (4, 5, 2), "trilinear", {}),
    "cubic_up": ((1, 2, 3, 4), (7, 9), "bicubic", {}),
    "cubic_corners": ((1, 2, 5, 4), (8, 3), "bicubic", {"align_corners": True}),
    "cubic_antialias": ((1, 1, 13, 11), (4, 6), "bicubic", {"antialias": True}),
}
for name, (shape, size, mode, how) in RESIZES.items():
    with cases.case(name, "interpolate", size=list(size), mode=MODES[mode], **{k: int(v) for k, v in how.items()}) as c:
        c.expect("y", F.interpolate(c.input("x", torch.randn(shape)), size, mode=mode, **how))
for name, (shape, scales, mode) in {"scales_linear": ((1, 2, 7, 5), (1.7, 0.6), "bilinear"), "scales_nearest": ((1, 2, 7, 5), (1.3, 0.7), "nearest"),
                                    "scales_cubic": ((1, 1, 5, 6), (1.25, 1.9), "bicubic")}.items():
    with cases.case(name, "interpolate", mode=MODES[mode], scale0=scales[0], scale1=scales[1]) as c:
        c.expect("y", F.interpolate(c.input("x", torch.randn(shape)), scale_factor=scales, mode=mode))
with cases.case("resample", "resample", axis=1) as c:  # a row of the table may be beyond the ends
    x, start, weight = c.input("x", torch.randn(2, 5, 3), grad=False), torch.tensor([-1, 0, 4, 2]), torch.randn(4, 3)
    c.input("start", start), c.input("weight", weight, grad=False)
    table = torch.zeros(9, 4)
    for e in range(4):
        table[2 + start[e]:5 + start[e], e] = weight[e].float().double()
    c.expect("y", torch.einsum("ndi,de->nei", x, table[2:7]))

GRID = {"bilinear": 0, "nearest": 1, "bicubic": 2}
EDGES = {"zeros": 0, "border": 1, "reflection": 2}
for mode, number in GRID.items():
    for edges, edge in EDGES.items():
        for corners in (False, True):
            with cases.case(f"grid_{mode}_{edges}{'_corners' * corners}", "grid_sample", mode=number, padding_mode=edge,
                            align_corners=int(corners)) as c:
                x, grid = c.input("x", torch.randn(2, 2, 4, 5)), c.input("grid", torch.rand(2, 3, 4, 2) * 3 - 1.5)
                c.expect("y", F.grid_sample(x, grid, mode, edges, corners))
for mode in ("bilinear", "nearest"):
    with cases.case(f"grid_solid_{mode}", "grid_sample", mode=GRID[mode]) as c:
        x, grid = c.input("x", torch.randn(1, 2, 3, 4, 5)), c.input("grid", torch.rand(1, 2, 2, 3, 3) * 2.4 - 1.2)
        c.expect("y", F.grid_sample(x, grid, mode, align_corners=False))

for name, (shape, size) in {"narrower": ((2, 3, 9, 10), (7, 4)), "wider": ((1, 2, 1, 3), (7, 7)), "even": ((1, 2, 8, 6), (4, 3))}.items():
    with cases.case(f"adaptive_max_{name}", "adaptive_max_pool2d", OH=size[0], OW=size[1]) as c:
        c.expect("y", F.adaptive_max_pool2d(c.input("x", torch.randn(shape)), size))
with cases.case("adaptive_max_ties", "adaptive_max_pool2d", OH=3, OW=2) as c:
    c.expect("y", F.adaptive_max_pool2d(c.input("x", torch.randint(0, 2, (1, 2, 7, 5)).double()), (3, 2)))
with cases.case("adaptive_max_row", "adaptive_max_pool1d", OL=4) as c:
    c.expect("y", F.adaptive_max_pool1d(c.input("x", torch.randn(2, 3, 11)), 4))
cases.write()
