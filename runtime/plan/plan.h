// SPDX-License-Identifier: Apache-2.0
// Inside of a plan: which nodes, by which variant, with which launches, and where every tensor lies. No device memory.
//
// Passes, in order, one file each: prune (what is needed), select (variants, launches), memory (liveness -> offsets).
#ifndef CLV_PLAN_PLAN_H
#define CLV_PLAN_PLAN_H

#include "cleave/plan.h"
#include "device/device.h"
#include "graph/graph.h"

/** Where the bytes of a tensor are. */
typedef enum clv__segment {
    CLV__NOWHERE,     // not needed by this plan
    CLV__IN_SESSION,  // a persistent tensor's own allocation
    CLV__IN_INPUTS,   // the io buffer's two input slots, `offset` into a slot
    CLV__IN_OUTPUTS,  // the io buffer's outputs
    CLV__IN_GRADIENTS,
    CLV__IN_ACTIVATIONS
} clv__segment;

typedef struct clv__plan_tensor {
    clv__segment segment;
    int root;           // tensor id whose memory this one is (views, in place); its own id if it has memory of its own
    size_t offset;      // in the segment; of the root
    size_t bytes;       // without alignment
    int first, last;    // of a root: positions of the nodes between which it lives
} clv__plan_tensor;

typedef struct clv__plan_node {
    const clv__node *node;
    const clv__variant *variant; // NULL: the reference (host device), or a view
    clv__launches launches;
} clv__plan_node;

/** A layout of many tensors in one arena that may be cut into chunks no larger than the device's largest allocation. */
typedef struct clv__layout {
    size_t bytes; // from 0 to the end of the last tensor
    size_t chunk; // no tensor crosses a multiple of this
} clv__layout;

struct clv_plan {
    clv_graph *graph;
    clv_device *device;
    char *pins;
    clv__plan_node *nodes;
    int n_nodes;
    clv__plan_tensor *tensors; // by tensor id
    int n_tensors;
    int *inputs, n_inputs;           // tensor ids that are fed
    int *outputs, n_outputs;         // tensor ids that are fetched
    int *persistents, n_persistents; // tensor ids that live in the session
    clv__layout gradients, activations;
    size_t workspace_bytes;
    size_t input_bytes;   // of one slot; there are two
    size_t output_bytes;  // outputs in the io buffer
    size_t staged_bytes;  // outputs that are read back each step, those in other segments included
    bool trains;          // has in-place updates: a step of it counts as a training step
    bool prepared;        // its programs are built
};

clv_status clv__plan_prune(clv_plan *plan);
clv_status clv__plan_select(clv_plan *plan);
clv_status clv__plan_memory(clv_plan *plan);

/** Forget choices and layout and make them again: after a variant was put into quarantine. */
clv_status clv__plan_again(clv_plan *plan);

/** Put a variant of an op into quarantine on a device: it failed to build, to run or to verify there. */
clv_status clv__quarantine_add(clv_device *device, const clv__op *op, const char *variant, const char *why);
bool clv__quarantined(const clv_device *device, const clv__op *op, const char *variant);

static inline size_t clv__io_bytes(const clv_plan *plan) { return 2 * plan->input_bytes + plan->output_bytes; }
static inline size_t clv__staging_bytes(const clv_plan *plan) { return 2 * (plan->input_bytes + plan->staged_bytes); }
/** Bytes of a layout's i-th chunk; 0 past the last. */
size_t clv__layout_chunk(const clv__layout *layout, int i);

#endif
