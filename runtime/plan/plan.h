// SPDX-License-Identifier: Apache-2.0
// Inside of a plan: places (devices), values (tensors at a place), nodes (what is computed or carried), in one order of
// execution. No device memory is touched.
//
// Passes, in order, one file each: place (nodes to places, transfers between them; schedule
// puts them in order), split (what is larger than the largest allocation lies in several, and is computed in parts), fuse (several nodes to one; sums: what else updates do), select (variants, launches), recompute (values
// that are dropped and computed again), memory (early moves large updates; liveness -> offsets, place by place; lend says which
// transfers need no copy, await who has to wait for it).
#ifndef CLV_PLAN_PLAN_H
#define CLV_PLAN_PLAN_H

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
    CLV__IN_LENDER // memory of another place: see clv__value.lender
} clv__segment;

/** A tensor at a place. A graph tensor is one value where it is made, one more for each copy on another device, and one more
 *  each time it is computed again. Nodes name values, so each says which one it reads. */
typedef struct clv__value {
    const clv_tensor *tensor;
    int place;
    bool copy; // received from another place
    int of;    // computed again: the value that was made first; -1: this is the first
    clv__segment segment;
    int root;        // value whose memory this one is (views, in place); itself if it has memory of its own
    size_t offset;   // in the segment; of the root
    size_t within;   // where it begins in its root
    size_t bytes;    // without alignment
    int first, last; // of a root: positions of the nodes between which it lives
    int lender;      // IN_LENDER: the value, at another place, whose memory this one is
    size_t second;   // IN_INPUTS: the offset for the other slot
    size_t staged;   // of an input: offset in a slot's staging memory
    // split.c: the values that hold its rows, one after the other, where it is too large for one allocation; NULL: it is whole
    const int *pieces;
    int n_pieces;
    int piece; // of a persistent: which of its pieces this is
} clv__value;

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
    struct clv__fused *next;
} clv__fused;

typedef struct clv__plan_node {
    clv__work work;
    // COMPUTE: the graph's node, or that of `fused`; else the one whose result is carried, NULL if none made it
    const clv__node *node;
    clv__fused *fused; // NULL: the node stands for itself
    int place;
    int in[CLV__MAX_IN], out[CLV__MAX_OUT]; // values, -1: not there. SEND: in[0]; RECEIVE: out[0]
    int transfer;                           // SEND, RECEIVE
    size_t within;               // of a view: where its result begins in its input
    // split.c: the node of the graph that it does a part of, which of how many; slice -1: it takes a part of a tensor, or puts parts
    // together. NULL: it is a node of the graph, done whole
    const clv__node *whole;
    int slice, slices;
    bool again;                  // computes what an earlier node of the plan computed, and was dropped
    const clv__variant *variant; // COMPUTE; NULL: the reference (host device), or a view
    clv__chosen chosen;
    uint32_t roomy; // a bit for each variant of its op that would need a workspace larger than an allocation may be
    clv__launches launches;
    // the arena in which its workspace lies, where nothing lives meanwhile, and where there; NOWHERE: in none
    clv__segment workspace_in;
    size_t workspace_at;
    uint64_t awaits; // a bit for each place that must have finished the last step before this begins: await.c
} clv__plan_node;

/** A value carried from one place to another: through staging memory of the sender, or not at all (lend.c). */
typedef struct clv__transfer {
    int from, to; // values
    size_t bytes, staged_at;
    bool lent;      // no byte moves: the receiver reads, or updates, the sender's memory
    bool until_end; // lent until the receiver has finished the step
} clv__transfer;

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
    clv__layout gradients, activations;
    clv__layout io; // two slots of inputs, and outputs: in one piece if the device allows it
    size_t beside_bytes;    // of activations that plan->beside had here when this one was made
    size_t workspace_bytes; // of nodes whose workspace found no room among the activations
    size_t input_bytes;     // of one slot, in staging memory; there are two
    size_t staged_bytes;    // of one slot: outputs that are read back each step, then what is sent
} clv__place;

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
    bool no_fuse, alone; // as in clv_plan_config
    clv__plan_node *placed;           // the nodes before they were fused; NULL: nothing was
    size_t n_placed;
    clv__fused *fused;      // all of them
    char *recompute;        // what is dropped and computed again: patterns, `auto`; NULL: nothing
    const clv_plan *beside; // as in clv_plan_config; gone perhaps, unless `recompute` is `auto`
    clv_plan_recomputed recomputed;
    clv__arena arena;             // what the plan's own nodes and tensors are in (split.c)
    const clv__node *unsplit;     // the first node that cannot be done in parts where it would have to be; NULL: none
    const clv_tensor *unsplit_of; // and the tensor that is too large for it
    bool unsplit_row;             // one of whose rows is too large by itself
    bool trains;   // has in-place updates: a step of it counts as a training step
    bool prepared; // its programs are built
};

/** Nodes, values and transfers from the graph and the places' devices. */
clv_status clv__plan_place(clv_plan *plan, const clv_plan_config *config);
/** Does a placement text name devices that are there, and layers of the graph, and all of these? */
clv_status clv__plan_place_check(clv_graph *graph, const char *place);
/** Put tensors that are larger than their device's largest allocation into several, and do what computes with them in parts. */
clv_status clv__plan_split(clv_plan *plan);
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
/** Of an input or output: the values that hold it, itself if it is whole. */
static inline int clv__value_pieces(const clv_plan *plan, const int *value, const int **pieces) {
    const clv__value *at = &plan->values[*value];
    *pieces = at->n_pieces ? at->pieces : value;
    return at->n_pieces ? at->n_pieces : 1;
}
/** Make one node of several, where their ops can be done together. */
clv_status clv__plan_fuse(clv_plan *plan);
/** Part of it, before updates are grouped: what else updates do themselves. */
clv_status clv__plan_take_sums(clv_plan *plan);
/** Let the plan's node stand for more than its own; it begins as a copy of the graph's. */
clv_status clv__fuse_begin(clv_plan *plan, clv__plan_node *at, clv__fused **out);
/** Is the node computed by kernels? */
bool clv__by_kernels(const clv_plan *plan, const clv__plan_node *at);
/** Take that back: the nodes are those that were placed. */
void clv__fuse_forget(clv_plan *plan);
clv_status clv__plan_select(clv_plan *plan);
/** The variant for one node, and why. */
clv_status clv__plan_choose(const clv_plan *plan, clv__plan_node *at);
/** Choices to pin: those given, else those of CLEAVE_VARIANTS; NULL for none. */
const char *clv__pins(const char *variants);
/** Is the op pinned by its name? */
bool clv__plan_pins(const clv_plan *plan, const clv__op *op);
/** Write down the launches of one node again, by the variant that it has. */
clv_status clv__plan_lower(clv_plan *plan, clv__plan_node *at);
/** Insert nodes that compute again what plan->recompute says is dropped. */
clv_status clv__plan_recompute(clv_plan *plan);
clv_status clv__plan_memory(clv_plan *plan);
/** One alignment for all places, so that a tensor of one can be read by another where it is. */
void clv__plan_align(clv_plan *plan);
/** Would this update come as soon as it can, by itself? */
bool clv__plan_updates_early(const clv_plan *plan, const clv__plan_node *at);
/** Part of clv__plan_memory, when roots are known: move such updates; are lives to be found again? */
clv_status clv__plan_early(clv_plan *plan, bool *moved);
/** The first half of clv__plan_memory: lives, segments and roots, no offsets. */
clv_status clv__plan_lives(clv_plan *plan);
/** Do two devices of the plan compute in the host's memory, so that what one made may be read there by the other? */
bool clv__plan_may_lend(const clv_plan *plan, int from, int to);
/** Part of clv__plan_memory, between lives and offsets: which transfers need no copy. */
clv_status clv__plan_lend(clv_plan *plan);
/** Part of it, after offsets: which nodes wait until another place has finished the last step. */
void clv__plan_await(clv_plan *plan);

/** Forget choices and layout and make them again: after a variant was put into quarantine. */
clv_status clv__plan_again(clv_plan *plan);

/** Put a variant of an op into quarantine on a device: it failed to build, to run or to verify there. */
clv_status clv__quarantine_add(clv_device *device, const clv__op *op, const char *variant, const char *why);
/** The same, without a word to the log: for who tells it in another way. */
clv_status clv__quarantine_put(clv_device *device, const clv__op *op, const char *variant, const char *why);
/** Use it again. */
void clv__quarantine_remove(clv_device *device, const clv__op *op, const char *variant);
bool clv__quarantined(const clv_device *device, const clv__op *op, const char *variant);

static inline clv__error *clv__plan_error(const clv_plan *plan) {
    return clv__runtime_error_of(plan->graph->runtime);
}
static inline size_t clv__io_bytes(const clv__place *place) {
    return place->io.bytes;
}
static inline size_t clv__staging_bytes(const clv__place *place) {
    return 2 * (place->input_bytes + place->staged_bytes);
}
/** How long a node computes on a nominal device, by its op's cost; 0 for what is carried or viewed. */
double clv__node_seconds(const clv__plan_node *at);
/** Bytes of a layout's i-th chunk; 0 past the last. */
size_t clv__layout_chunk(const clv__layout *layout, int i);
/** The place of a device in a plan, NULL if it has no part in it. */
const clv__place *clv__plan_place_of(const clv_plan *plan, const clv_device *device);
/** Does a persistent tensor of that name live at the place? */
bool clv__place_keeps(const clv_plan *plan, const clv__place *place, const char *name);
/** A piece of memory that is one allocation at most: a value's, or workspace (value -1). */
typedef struct clv__piece {
    size_t bytes;
    int value;
} clv__piece;
/** The largest at a place. */
clv__piece clv__place_largest(const clv_plan *plan, const clv__place *place);
/** Add "; the largest piece is ..." with the op, layer and shape it belongs to. Is it smaller with a smaller batch? */
bool clv__piece_text(const clv_plan *plan, const clv__piece *piece, clv__text *text);
/** Add "; the layers that hold most of it: ...", of what lives on the device when it is fullest. */
void clv__plans_holders(clv_plan *const *plans, int n, const clv_device *device, clv__text *text);
/** Would a session for these plans, `bytes` in all, fit on the device? */
clv_status clv__plans_check(clv_plan *const *plans, int n, clv_device *device, size_t bytes);

#endif
