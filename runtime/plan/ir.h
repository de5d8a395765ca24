// SPDX-License-Identifier: Apache-2.0
// What a plan is made of, and what every pass may do to it: places (devices), values (tensors at a place), nodes (what is
// computed or carried), in one order of execution, and transfers. No device memory is touched.
//
// A pass reads nodes by an index (plan/index.h), and changes the list of nodes by writing it again: clv__rewrite_begin takes the
// nodes away, clv__plan_append puts them, or others, back one by one, clv__rewrite_end drops the old list.
#ifndef CLV_PLAN_IR_H
#define CLV_PLAN_IR_H

#include "cleave/plan.h"
#include "base/text.h"
#include "device/device.h"
#include "graph/graph.h"

/** Where the bytes of a value are. */
typedef enum clv__segment {
    CLV__NOWHERE,    // not needed by this plan
    CLV__IN_SESSION, // a persistent tensor's own allocation
    CLV__IN_INPUTS,  // the io buffer's two input slots, `offset` into a slot
    CLV__IN_OUTPUTS, // the io buffer's outputs
    CLV__IN_GRADIENTS,
    CLV__IN_ACTIVATIONS,
    CLV__IN_ONCE,  // written in a run's first step, for all of them: once.c
    CLV__IN_SHARED // memory of another device: see clv__value.owner
} clv__segment;

/** How a value's elements lie in its bytes. */
typedef enum clv__value_layout {
    CLV__ROW_MAJOR // one after the other, the last dimension's next to each other
} clv__value_layout;

/** A tensor at a place. A graph tensor is one value where it is made, one more for each copy on another device, and one more
 *  each time it is computed again. Nodes name values, so each says which one it reads. A value owns what it is: the graph's tensor
 *  says what it is called and what it counts as, and nobody asks it for shape, dtype or bytes (lint.values). */
typedef struct clv__value {
    const clv_tensor *tensor;
    clv__desc desc; // dtype and shape
    clv__value_layout layout;
    size_t bytes; // without alignment
    int place;
    bool copy; // received from another place
    bool once; // made by a node that is done once
    int of;    // computed again: the value that was made first; -1: this is the first
    clv__segment segment;
    int root;        // value whose memory this one is (views, in place); itself if it has memory of its own
    size_t offset;   // in the segment; of the root
    size_t within;   // where it begins in its root
    int first, last; // of a root: positions of the nodes between which it lives
    int owner;       // IN_SHARED: the value, on another device, whose memory this one is
    size_t second;   // IN_INPUTS: the offset for the other slot
    size_t staged;   // of an input: offset in a slot's staging memory
    const struct clv__pass
        *writer; // of an input of the plan's own: the pass that knows what is fed (passes.h); else NULL
} clv__value;

/** Chunks of a place's gradients that a launch may have among its arguments (CLV__SLOT_GRADIENTS). */
enum { CLV__GRADIENT_CHUNKS = 4 };

typedef enum clv__work { CLV__COMPUTE, CLV__SEND, CLV__RECEIVE } clv__work;

/** Why a node has its variant. */
typedef enum clv__chosen {
    CLV__NO_CHOICE, // a view, a transfer, a reference
    CLV__PINNED,    // by name, or as the pin for all ops
    CLV__TUNED,     // the fastest, as measured: tuning.h
    CLV__RANKED     // the one whose rank promises the most
} clv__chosen;

/** Several nodes of the graph that the plan does as one. */
typedef struct clv__fused {
    clv__node node;         // of the plan's own: what the graph's nodes would be as one
    const clv__node *base;  // the first of them, whose op it is
    int n;                  // so many
    clv__epilogue epilogue; // node.io.epilogue, if the others are done to the base's result
    char also[64];          // names of their ops: "add+relu"; "" if they are uses of the base's op
} clv__fused;

typedef struct clv__plan_node {
    clv__work work;
    // COMPUTE: the graph's node, or that of `fused`; else the one whose result is carried, NULL if none made it
    const clv__node *node;
    clv__fused *fused; // NULL: the node stands for itself
    int place;
    int in[CLV__MAX_IN], out[CLV__MAX_OUT]; // values, -1: not there. SEND: in[0]; RECEIVE: out[0]
    int transfer;                           // SEND, RECEIVE
    size_t within;                          // of a view: where its result begins in its input
    // split.c: the node of the graph that it does a part of, which of how many; slice -1: it takes a part of a tensor, or puts parts
    // together. NULL: it is a node of the graph, done whole
    const clv__node *whole;
    int slice, slices;
    bool once; // done in a run's first step, and after parameters were written; such nodes come first: once.c
    bool again;                  // computes what an earlier node of the plan computed, and was dropped
    const clv__variant *variant; // COMPUTE; NULL: the reference (host device), or a view
    clv__chosen chosen;
    clv__launches launches;
    // the arena in which its workspace lies, where nothing lives meanwhile, and where there; NOWHERE: in none
    clv__segment workspace_in;
    size_t workspace_at;
    uint64_t awaits; // a bit for each place that must have finished the last step before this begins: await.c
} clv__plan_node;

/** A value carried from one place to another: through staging memory of the sender, or not at all (shared/share.c). */
typedef struct clv__transfer {
    int from, to; // values
    size_t bytes, staged_at;
    bool shared;    // no byte moves: the receiver reads, or updates, the sender's memory
    bool until_end; // shared until the receiver has finished the step
    // EXCHANGED: not to another place but with the other ranks, as this node says; NULL: to another place. Then `bytes` are those of the
    // whole, and of them are sent and received:
    const clv__node *exchanged;
    size_t sent_at, sent_bytes, came_at, came_bytes;
    int into; // the value in whose memory, from came_at on, the result lies; -1: in its own
} clv__transfer;
static inline const clv__exchanged *clv__exchanged_of(const clv__transfer *transfer) {
    return transfer->exchanged->attrs;
}

/** A layout of many tensors in one arena that may be cut into chunks no larger than the device's largest allocation. */
typedef struct clv__layout {
    size_t bytes; // from 0 to the end of the last tensor
    size_t chunk; // no tensor crosses a multiple of this
} clv__layout;

/** A device in a plan, and what it holds there. */
typedef struct clv__place {
    clv_device *device;
    size_t alignment;        // of tensors: what the strictest device of the plan wants
    uint64_t awaits;         // a bit for each place whose end of the last step some node here waits for
    int *inputs, n_inputs;   // values that are fed
    int *outputs, n_outputs; // values that are fetched
    int *persistents, n_persistents; // values that live in the session
    bool updates;                    // changes some, of its own or of another place
    clv__layout gradients, activations, once;
    clv__layout io;            // two slots of inputs, and outputs: in one piece if the device allows it
    size_t same_session_bytes; // of activations that plan->same_session had here when this one was made
    size_t workspace_bytes;    // of nodes whose workspace found no room among the activations
    size_t input_bytes;        // of one slot, in staging memory; there are two
    size_t early_bytes;        // of those, of inputs that are not late, which come first
    size_t staged_bytes;       // of one slot: outputs that are read back each step, then what is sent
} clv__place;

/** Keys of the passes: CLV__PASS_NAME. */
typedef enum clv__pass_key {
#define CLV__PASS(name, ...) CLV__PASS_##name,
#include "plan/passes.def"
#undef CLV__PASS
    CLV__PASSES // how many there are
} clv__pass_key;

/** What a pass keeps in a plan for itself, by whatever it counts, mostly by value. */
typedef struct clv__notes {
    char *items;
    size_t room, size; // items; bytes of each
} clv__notes;

struct clv_plan {
    clv_graph *graph;
    char *pins;
    clv__place *places;
    int n_places;
    clv__value *values;
    size_t n_values, values_room;
    clv__plan_node *nodes;
    size_t n_nodes, nodes_room;
    clv__transfer *transfers;
    size_t n_transfers, transfers_room;
    const clv_plan_config *config; // while the graph is placed; all NULL
    bool no_fuse, own_session;     // as in clv_plan_config
    char *recompute;               // what is dropped and computed again: patterns, `auto`; NULL: nothing
    const clv_plan *same_session;  // as in clv_plan_config; gone perhaps, unless `recompute` is `auto`
    bool tight; // layout gives workspaces equal rank with activations, where that takes less
    clv_plan_recomputed recomputed;
    clv__notes notes[CLV__PASSES];
    clv__plan_node
        *placed; // the nodes as they were before choices were made, with which a plan made again begins
    size_t n_placed, n_placed_values;
    clv__arena arena;  // tensors and nodes of the plan's own, lists
    clv__arena chosen; // the same that go when the plan is made again: clv__fused
    bool no_once;      // there is no room for what is kept of nodes that are done once
    bool trains;       // has in-place updates: a step of it counts as a training step
    bool prepared;     // its programs are built
};

static inline clv__error *clv__plan_error(const clv_plan *plan) {
    return clv__runtime_error_of(plan->graph->runtime);
}
/** Set the sentence, and return the status, of host memory that has run out. */
clv_status clv__plan_no_memory(const clv_plan *plan);

/** Is the node computed by kernels? */
bool clv__by_kernels(const clv_plan *plan, const clv__plan_node *at);
/** How long a node computes on a nominal device, by its op's cost; 0 for what is carried or viewed. */
double clv__node_seconds(const clv__plan_node *at);
/** The place of a device in a plan, NULL if it has no part in it. */
const clv__place *clv__plan_place_of(const clv_plan *plan, const clv_device *device);
/** Does the plan have places on devices of other ranks? */
static inline bool clv__plan_elsewhere(const clv_plan *plan) {
    for (int i = 0; i < plan->n_places; i++)
        if (plan->places[i].device->elsewhere) return true;
    return false;
}
/** The value whose memory this one is: its `root`, or that one's, when roots are known (roots.c). */
int clv__value_root(clv_plan *plan, int value);
// ---- pieces: how a tensor that is too large for one allocation is cut ---------------------------------------------------------

/** The largest allocation that a tensor may be on the device. */
size_t clv__split_largest(const clv_device *device);
/** How many of a tensor's rows (its first dimension) lie in an allocation on the device, the last one's may be fewer; 0: not even one.
 *  Depends on shape and device alone, so that every plan finds what is kept in the same pieces. A power of two if not all. */
int64_t clv__split_rows(const clv__desc *desc, const clv_device *device);
/** The i-th piece's rows; i * rows is its first one. */
static inline int64_t clv__split_piece(const clv__desc *desc, int64_t rows, int64_t i) {
    const int64_t rest = desc->shape.dims[0] - i * rows;
    return rest < rows ? rest : rows;
}

// What the pass split knows.

/** The values that hold a value's rows, one after the other; itself if it is whole. Returns how many. */
int clv__value_pieces(const clv_plan *plan, const int *value, const int **pieces);
/** Is it in such pieces, and no value of its own? */
bool clv__value_is_cut(const clv_plan *plan, int value);
/** Of a persistent: which of its pieces it is. */
int clv__value_piece(const clv_plan *plan, int value);
/** The first node that cannot be done in parts where it would have to be; NULL: none. *value is too large for it, and *row: one row of
 *  that is too large by itself. */
const clv__node *clv__plan_unsplit(const clv_plan *plan, int *value, bool *row);

// ---- writing ------------------------------------------------------------------------------------------------------------------

/** A node that does nothing yet, without inputs and outputs. */
clv__plan_node clv__plan_node_of(clv__work work, const clv__node *node, int place);
/** Append a copy of a node, or a value whose number is *out. */
clv_status clv__plan_append(clv_plan *plan, const clv__plan_node *node);
clv_status clv__plan_append_value(clv_plan *plan, const clv__value *value, int *out);
/** A tensor's value at a place, as it is when it is made. */
clv__value clv__value_of(const clv_tensor *tensor, int place);
/** Append a value, stored as `desc`, for a tensor of the plan's own, which is copied. */
clv_status clv__plan_append_own(clv_plan *plan, const clv_tensor *tensor, const clv__desc *desc, int place,
                                int *out);

/** Append a node of the plan's own, with the layer, phase and so on of `of`; in[], out[]: values, -1: not there. */
clv_status clv__plan_append_node(clv_plan *plan, const clv__node *of, const clv__op *op, const void *attrs,
                                 int place, const int *in, int n_in, const int *out, int n_out);
/** Append an input of the plan's own, which `writer` feeds. */
clv_status clv__plan_append_input(clv_plan *plan, int place, const char *name, const clv__desc *desc,
                                  const struct clv__pass *writer, int *out);

/** Note number i of a pass, to be written: `size` bytes, the same for all of them, zeros at first. The next call may move it. NULL: no
 *  memory. Notes go with the plan, or when it is made again, and nobody but the pass reads them. */
void *clv__note(clv_plan *plan, clv__pass_key pass, size_t i, size_t size);
/** The same to be read; NULL: neither it nor a later one was written. */
const void *clv__noted(const clv_plan *plan, clv__pass_key pass, size_t i);
/** Forget the notes of a pass. */
void clv__notes_reset(clv_plan *plan, clv__pass_key pass);

/** A list of nodes that is written again. */
typedef struct clv__rewrite {
    clv__plan_node *nodes; // as they were
    size_t n;
} clv__rewrite;
/** Take the nodes away. So many can be appended without asking for memory. */
clv_status clv__rewrite_begin(clv_plan *plan, clv__rewrite *out);
void clv__rewrite_end(clv__rewrite *rewrite);
/** Leave out the nodes that are `gone`, by position. */
void clv__plan_leave_out(clv_plan *plan, const bool *gone);

/** Let a node stand for more than its own: at->fused begins as a copy of the graph's, with room for the most inputs, and goes when the
 *  plan is made again. */
clv_status clv__fuse_begin(clv_plan *plan, clv__plan_node *at);

/** p = n zeros of what it points to, of an arena; NULL: no memory. */
#define CLV__NEW(arena, p, n) ((p) = clv__arena_alloc(arena, n, sizeof *(p)))

#endif
