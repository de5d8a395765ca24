// SPDX-License-Identifier: Apache-2.0
// One training step on one device, with every value that it computes kept on the host.
#ifndef CLV_CHECK_SIDE_H
#define CLV_CHECK_SIDE_H

#include "cleave/check.h"
#include "cleave/optim.h"
#include "plan/plan.h"

/** The step that both sides do. */
typedef struct clv__scene {
    clv_graph *graph;                           // every value of it is an output
    clv_tensor *fed[2 * CLV_MAX_PORTS], *hyper; // the model's inputs, then its targets
    int n_fed;
    void *values[2 * CLV_MAX_PORTS]; // of each
    float hyper_values[CLV_HYPER_VALUES];
    uint64_t seed;
    const char *weights, *variants;
} clv__scene;

/** Elements by tensor id, float or int32_t: what a device was given, and what it made of it. NULL: no elements. */
typedef struct clv__side {
    clv_device *device;
    clv_plan *plan;
    void **before; // inputs; persistents before the step
    void **after;  // values; persistents after the step
} clv__side;

/** The graph of a training step of the model, and what it is fed. */
clv_status clv__scene_init(clv__scene *scene, clv_runtime *runtime, const clv_compare_config *config);
void clv__scene_reset(clv__scene *scene);

/** Do the step. Nothing is left on the device. */
clv_status clv__side_init(clv__side *side, const clv__scene *scene, clv_device *device);
void clv__side_reset(clv__side *side, const clv__scene *scene);

/** What a node reads at a side, and what stands in a tensor after the step. */
const void *clv__side_given(const clv__side *side, const clv_tensor *tensor);
/** The variant that computed a node there; `reference` on the host. Static. */
const char *clv__side_variant(const clv__side *side, const clv__node *node);

#endif
