// SPDX-License-Identifier: Apache-2.0
// Attention by tiles on devices with little local memory. The gradient cuts its queries into whole register tiles, within what a
// work-group may have; where a head has no room at all, groups take heads in turn, and each has a part of the workspace. The devices at
// hand have too much local memory for samples to tell.
#include <string.h>

#include "cleave/ops.h"
#include "graph/graph.h"
#include "harness/harness.h"
#include "ops/tiles.h"

/** The gradient's node of a graph with one attention. */
static const clv__op_io *gradient_of(clv_graph *graph, int64_t N, int64_t T, int heads, int64_t E) {
    clv_tensor *x =
        clv_parameter(graph, "x", CLV_SHAPE(N, T, 3 * heads * E), (clv_init){.kind = CLV_INIT_ONES});
    clv_backward(clv_sum(clv_self_attention(x, heads, NULL), NULL, 0, false));
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (strcmp(graph->nodes[i]->io.op->name, "self_attention_backward") == 0) return &graph->nodes[i]->io;
    fail_msg("there is no gradient");
    return NULL;
}

static clv__launches lowered(const clv_device_info *device, const clv__op_io *io,
                             const clv__variant *variant) {
    clv__launches list = {.device = device};
    clv__op_io chosen = *io;
    chosen.variant = variant;
    variant->lower(&list, &chosen);
    return list;
}

static const clv__variant *variant_of(const clv__op_io *io, const char *name) {
    const clv__variant *variant = io->op->variants;
    while (strcmp(variant->name, name) != 0) variant++;
    return variant;
}

/** The block is the last of the launch's integers. */
static int64_t block_of(const clv__launch *launch) {
    for (int i = launch->n_slots - 1; i >= 0; i--)
        if (launch->slots[i].kind == CLV__SLOT_I32) return launch->slots[i].i32;
    return -1;
}

TEST(blocks_are_whole_tiles) {
    clv_runtime *runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    int cut = 0;
    for (int64_t T = 1; T <= 100; T += 3) {
        for (int64_t E = 8; E <= 264; E += 64) {
            clv_graph *graph = clv__test_graph(runtime);
            const clv__op_io *io = gradient_of(graph, 1, T, 1, E);
            const clv__variant *tile = variant_of(io, "tile");
            for (uint32_t width = 4; width <= 16; width *= 2) {
                for (uint64_t local = 32 << 10; local <= 2 << 20; local *= 2) {
                    const clv_device_info device = {.type = CLV_DEVICE_CPU,
                                                    .execution = CLV_EXECUTION_THREADS,
                                                    .vector_width = width,
                                                    .local_bytes = local,
                                                    .max_work_group = 1024};
                    if (!clv__variant_supports(tile, &device, io)) continue;
                    clv__launches list = lowered(&device, io, tile);
                    int64_t block = block_of(&list.items[0]), mr = width == 16 ? 8 : 4;
                    assert_true(block > 0);
                    assert_int_equal(block % mr, 0);
                    cut += block < clv__min64(clv__round_up(T, mr), 64);
                    clv__launches_reset(&list);
                }
            }
            clv_graph_destroy(graph);
        }
    }
    assert_true(cut > 20); // else nothing was asked
    clv_runtime_destroy(runtime);
}

/** However long the text, no scores are kept for the gradient. */
TEST(long_texts_are_one_op) {
    clv_runtime *runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    clv_graph *graph = clv__test_graph(runtime);
    assert_int_equal(gradient_of(graph, 1, 8192, 2, 64)->in[0].shape.dims[1], 8192);
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
}

TEST(groups_take_heads_in_turn) {
    clv_runtime *runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    clv_graph *graph = clv__test_graph(runtime);
    const clv__op_io *io = gradient_of(graph, 5, 100, 3, 64);
    for (uint32_t units = 1; units <= 16; units *= 2) {
        const clv_device_info device = {.type = CLV_DEVICE_CPU,
                                        .execution = CLV_EXECUTION_THREADS,
                                        .vector_width = 4,
                                        .local_bytes = 4 << 10,
                                        .compute_units = units,
                                        .max_work_group = 12};
        assert_false(clv__variant_supports(variant_of(io, "tile"), &device, io));
        const clv__variant *global = variant_of(io, "tile:global");
        assert_true(clv__variant_supports(global, &device, io));
        clv__launches list = lowered(&device, io, global);
        const int64_t groups = clv__min64(2 * units, 5 * 3);
        // tiles of 4 x 8: 104 queries and keys; seven matrices of them, p and ds of 64 queries, a tile
        const int64_t floats = 7 * 104 * 64 + 2 * 64 * 104 + 4 * 8;
        assert_int_equal(list.n, 1);
        assert_int_equal(list.items[0].grid.global[0], groups);
        assert_in_range(list.workspace_bytes, (uint64_t)(groups * floats) * 4,
                        (uint64_t)(groups * floats) * 4 + 4096);
        clv__launches_reset(&list);
    }
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
}

TEST_MAIN(NULL, NULL)
