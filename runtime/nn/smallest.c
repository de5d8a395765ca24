// SPDX-License-Identifier: Apache-2.0
// The smallest images that a model takes, for the sentence of one that was built for smaller ones. Only the model's own layers know;
// so it is built again, in graphs that are thrown away, until it can be.
#include <inttypes.h>

#include "cleave/ops.h"
#include "graph/graph.h"
#include "nn/ports.h"

/** Can the model be built for square images of this size? */
static bool builds(clv_runtime *runtime, const clv_model *model, int64_t channels, int64_t size) {
    clv_graph *graph = NULL;
    if (clv_graph_create(runtime, &graph) != CLV_OK) return false;
    const clv_model sized = clv_model_for(model, channels, size, size, 0);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(1, channels, size, size));
    const bool built = x && sized.build(x, &sized) && graph->error.status == CLV_OK;
    clv_graph_destroy(graph);
    return built;
}

/** The smallest size that is larger than `size`; 0: none up to 1024 does. */
static int64_t smallest_above(clv_runtime *runtime, const clv_model *model, int64_t channels, int64_t size) {
    enum { MOST = 1024 };
    int64_t below = size, enough = size < 1 ? 1 : 2 * size;
    while (enough <= MOST && !builds(runtime, model, channels, enough)) {
        below = enough;
        enough *= 2;
    }
    if (enough > MOST) return 0;
    while (enough - below > 1) {
        const int64_t middle = below + (enough - below) / 2;
        if (builds(runtime, model, channels, middle))
            enough = middle;
        else
            below = middle;
    }
    return enough;
}

void clv__model_tell_smallest(clv_graph *graph, const clv_model *model, const clv_shape *x) {
    char sentence[CLV__ERROR_BYTES];
    if (graph->error.status != CLV_E_SHAPE || x->rank != 4) return;
    const int64_t height = x->dims[2], width = x->dims[3], side = height < width ? height : width;
    if (builds(graph->runtime, model, x->dims[1], side)) return; // another mistake than their size
    const int64_t least = smallest_above(graph->runtime, model, x->dims[1], side);
    if (!least) return;
    clv__error_read(&graph->error, sentence);
    (void)clv__error_set(&graph->error, CLV_E_SHAPE,
                         "%s; model '%s' takes images of %" PRId64 "x%" PRId64
                         " at least, and these are %" PRId64 "x%" PRId64,
                         sentence, model->name, least, least, height, width);
}
