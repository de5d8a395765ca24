// SPDX-License-Identifier: Apache-2.0
// How the gradient of self_attention cuts its queries on devices with little local memory: into whole register tiles, within
// what a work-group may have. The devices at hand have too much of it for samples to tell.
#include <string.h>

#include "cleave/ops.h"
#include "graph/graph.h"
#include "harness/harness.h"
#include "ops/tiles.h"

/** The gradient's node of a graph with one attention. */
static const clv__op_io *gradient_of(clv_graph *graph, int64_t T, int64_t E) {
    clv_tensor *x = clv_parameter(graph, "x", CLV_SHAPE(1, T, 3 * E), (clv_init){.kind = CLV_INIT_ONES});
    clv_backward(clv_sum(clv_self_attention(x, 1, NULL), NULL, 0, false));
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (strcmp(graph->nodes[i]->io.op->name, "self_attention_backward") == 0) return &graph->nodes[i]->io;
    fail_msg("there is no gradient");
    return NULL;
}

static const clv__variant *tile_of(const clv__op_io *io) {
    const clv__variant *variant = io->op->variants;
    while (strcmp(variant->name, "tile") != 0) variant++;
    return variant;
}

/** The block is the last of the launch's integers. */
static int64_t block_of(const clv__launch *launch) {
    for (int i = launch->n_slots - 1; i >= 0; i--)
        if (launch->slots[i].kind == CLV__SLOT_I32) return launch->slots[i].i32;
    return -1;
}

static void blocks_are_whole_tiles(void **state) {
    (void)state;
    clv_runtime *runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    int cut = 0;
    for (int64_t T = 1; T <= 100; T += 3) {
        for (int64_t E = 8; E <= 264; E += 64) {
            clv_graph *graph;
            assert_status(clv_graph_create(runtime, &graph), CLV_OK, runtime);
            const clv__op_io *io = gradient_of(graph, T, E);
            const clv__variant *tile = tile_of(io);
            for (uint32_t width = 4; width <= 16; width *= 2) {
                for (uint64_t local = 32 << 10; local <= 2 << 20; local *= 2) {
                    const clv_device_info device = {.type = CLV_DEVICE_CPU,
                                                    .execution = CLV_EXECUTION_THREADS,
                                                    .vector_width = width,
                                                    .local_bytes = local,
                                                    .max_work_group = 1024};
                    if (!clv__variant_supports(tile, &device, io)) continue;
                    clv__launches list = {.device = &device};
                    tile->lower(&list, io);
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_are_whole_tiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
