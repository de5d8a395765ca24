// SPDX-License-Identifier: Apache-2.0
// Inside of a graph: tensors and nodes in an arena, in the order they were made, which is the order of execution.
#ifndef CLV_GRAPH_GRAPH_H
#define CLV_GRAPH_GRAPH_H

#include "base/memory.h"
#include "base/names.h"
#include "cleave/optim.h"
#include "graph/op.h"

typedef enum clv__tensor_kind {
    CLV__VALUE,     // made by a node
    CLV__INPUT,     // fed before each step
    CLV__PERSISTENT // lives in the session by name: parameter, buffer, optimizer state
} clv__tensor_kind;

typedef enum clv__phase { CLV__FORWARD, CLV__BACKWARD, CLV__UPDATE } clv__phase;

struct clv_tensor {
    clv_graph *graph;
    int id; // position in graph->tensors
    clv__tensor_kind kind;
    clv__desc desc;
    const char *name;  // full name with scopes; a value's is its layer and op
    const char *layer; // path of the layer it belongs to, "" at the root
    clv__node *node;   // that made it; NULL for inputs and persistents
    int output_index;  // of that node
    bool requires_grad;
    bool is_output;
    bool late; // INPUT: fed in the middle of a step
    clv_tensor *gradient; // made by clv_backward
    // VALUE: ACTIVATIONS, GRADIENTS (of a parameter) or IO (an output); PERSISTENT: PARAMETERS or OPTIMIZER
    clv_category category;
    clv_tensor *part, *part_gradient; // PERSISTENT, a parameter: what this rank updates of it; NULL: all
    bool is_part;    // PERSISTENT, optimizer state: a rank's part of what is, all of it, so:
    clv_shape whole; // for files
    clv_init init;        // PERSISTENT
    const void *values;   // PERSISTENT: the first values themselves, of clv_constant; NULL: `init` says
    bool trainable;       // PERSISTENT: a parameter
    bool adapted, in_out; // PERSISTENT: it has an adapter, and is [in, out] (ops/product/lora.h)
    clv_tensor *as_float; // an f32 copy, for ops that take no half; NULL if none was needed
    size_t read_by;       // one more than the number of the last node that reads it; 0: none does
};

/** Which part of the batch is built, where it is cut in parts that are built alike: replicas, micro-batches. */
typedef struct clv__cut {
    int64_t first, rows; // of the whole batch's; rows 0: all of them
    int replica;         // 0: the first one, or none
    int micro_batch;     // -1: none
} clv__cut;

struct clv__node {
    clv_graph *graph;
    int id; // position in graph->nodes
    clv__op_io io;
    const void *attrs; // op->attrs_bytes of them; zeros where there are none
    clv_tensor **in;    // io.n_in of them; NULL: not there
    clv__desc *in_desc; // of each: what io.in points to
    clv_tensor *out[CLV__MAX_OUT];
    const char *layer;
    clv__phase phase;
    const char *place_hint; // device that the builder asked for; NULL: as the plan says
    const clv__node *of;    // BACKWARD: the forward node whose gradient this is part of; else NULL
    int micro_batch;        // -1: of no micro-batch
    bool cut;               // of a part of the batch (clv__cut)
};

struct clv_graph {
    clv_runtime *runtime;
    clv__arena arena;
    clv__error error; // the first mistake
    bool training;
    clv_precision precision;
    float dropout; // of all layers; below 0: each its own
    bool asked_dropout; // did one ask?
    const char *lora;   // patterns of weights that have adapters (ops/product/lora.h); NULL: none
    int64_t lora_rank;
    float lora_scale;
    clv_tensor **tensors;
    size_t n_tensors, tensors_room;
    clv__names names; // of inputs, persistents and outputs: ids of tensors
    clv__node **nodes;
    size_t n_nodes, nodes_room;
    char scope[512];              // "features.0." or ""
    char scope_ends[512];         // a mark where a scope ends: a name may hold dots itself
    const char *layer_override;   // while gradients are made: the forward node's layer; NULL otherwise
    const clv__node *gradient_of; // while gradients are made: the forward node; NULL otherwise
    clv__phase phase;
    const char *place_hint; // see clv_graph_set_place
    clv__cut cut;
    // nodes before this one are of another part of the batch: names of their layers may be used again
    size_t layers_since;
    clv_tensor *random;
    int32_t next_random_id;
    clv_tensor *hyper;                        // the optimizer's step values (optim.h), NULL before
    // batch normalisation over ranks: so many have rows of the batch, this one such a part of it, and all together so many times the
    // rows that are here. 0: each by itself
    struct {
        int terms;
        double part, rows;
    } sync_batch_norm;
    int over_ranks; // so many update a part of each parameter; 0: one updates all
    clv_optimizer_config optimizer;           // as it was added; with `hyper`
    clv_tensor *update_hyper, *update_factor; // as updates read them: clv__gradients (ops/gradients.h)
    clv_scaler_config scaler;
    clv_tensor *scale, *growth_tracker, *skipped; // the scaler's state, NULL without
};

/**
 * Build some layers once for each part of the batch. A part after the first uses their names again, so the parameters are the
 * same, and each draws the random numbers of its own rows, so dropout drops what it would drop in the whole batch.
 *
 *     clv__parts parts = clv__parts_begin(graph);
 *     for (...) {
 *         clv__parts_next(graph, &parts, cut);
 *         ...
 *     }
 *     clv__parts_end(graph, &parts);
 */
typedef struct clv__parts {
    clv__cut outer;
    size_t outer_since;
    int32_t first_random_id;
    bool begun;
} clv__parts;
clv__parts clv__parts_begin(const clv_graph *graph);
/** `cut.first` and `cut.rows` count rows of what is cut here. */
void clv__parts_next(clv_graph *graph, clv__parts *parts, clv__cut cut);
void clv__parts_end(clv_graph *graph, const clv__parts *parts);

/** `; did you mean 'NAME'?` for a pattern that matches no layer; `nearest` is the caller's. */
const char *clv__graph_nearest(const clv_graph *graph, const char *pattern, clv__nearest *nearest);

/** How sentences call a node: `conv2d 'features.3'`, or where it is in no layer by its number, `add#12`, which its result's name
 *  has too. */
typedef struct clv__node_title {
    char text[640];
} clv__node_title;
const char *clv__title(const clv__op *op, const char *layer, size_t number, clv__node_title *title);
static inline const char *clv__title_of(const clv__node *node, clv__node_title *title) {
    return clv__title(node->io.op, node->layer, (size_t)node->id, title);
}

/** clv_graph_status of a graph that is built: no scope may be open. */
clv_status clv__graph_built(const clv_graph *graph);

/** Freeze the parameters that `covers` says, as clv_freeze. `what` says in sentences who wants it. */
void clv__freeze_if(clv_graph *graph, bool (*covers)(const void *user, const clv_tensor *parameter),
                    const void *user, const char *what);

/** A session tensor of that full name (scope is not put before it), made when new. `category` PARAMETERS, OPTIMIZER, or
 *  ACTIVATIONS (clv__cache). */
clv_tensor *clv__persistent(clv_graph *graph, const char *full_name, clv__desc desc, clv_init init,
                            clv_category category, bool trainable);

/** A copy of an op's attributes, aligned for any type; zeros that nobody owns where it has none. NULL: no memory. */
const void *clv__attrs_copy(clv__arena *arena, const clv__op *op, const void *attrs);
/** Give a node room for n inputs, of which it keeps those that it has. False: no memory. */
bool clv__node_room(clv__arena *arena, clv__node *node, int n);
/** Put f32 copies in the place of half inputs that the node's op does not take. False: the build has failed. */
bool clv__node_cast_inputs(clv__node *node);
/** Choose how a node's outputs are stored, after infer has made them f32. */
void clv__node_store(clv__node *node);
/**
 * A float tensor stored as `dtype`: itself if the node that made it can do that, is no older than node number `since`, and has
 * no reader yet; else a cast of it. NULL for NULL.
 */
clv_tensor *clv__stored_as(clv_tensor *tensor, clv_dtype dtype, size_t since);

/** The part that a layer drops which was built with `p`: for layers of your own. */
float clv__graph_dropout(clv_graph *graph, float p);
/** The device set by clv_graph_set_place; NULL if none is. */
const char *clv__graph_place(const clv_graph *graph);
bool clv__graph_training(const clv_graph *graph);

#endif
