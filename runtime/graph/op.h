// SPDX-License-Identifier: Apache-2.0
// The op descriptor: everything known about a kind of computation, in one place. A graph's nodes point to descriptors;
// the plan, the host device, the checker and the trainer all read them; nobody else knows an op by name.
//
// To add an op: runtime/ops/README.md.
#ifndef CLV_GRAPH_OP_H
#define CLV_GRAPH_OP_H

#include "base/error.h"
#include "cleave/graph.h"
#include "base/nearest.h"
#include "cleave/custom_op.h"
#include "device/launch.h"

enum { CLV__MAX_IN = 57, CLV__MAX_OUT = 8, CLV__ATTRS_BYTES = 256 };

typedef struct clv__op clv__op;
typedef struct clv__node clv__node;

/** Type and shape of a tensor; dtype NONE: an optional input that is not there. */
typedef clv_op_tensor clv__desc;

/** Ops done to the elements of output 0 before they are stored, one after the other, in the launch that makes them: what a plan
 *  makes of several nodes (plan/epilogues.c). Each takes the value so far and further inputs: an element for each of the output's, or
 *  one for each of its channels (clv__op.channels). */
enum {
    CLV__EPILOGUE_STEPS = 4,
    CLV__EPILOGUE_ELEMENTS = 2, // further inputs of the output's shape, at most
    CLV__EPILOGUE_CHANNELS = 4, // further inputs in f32 that have one element for each channel
    CLV__EPILOGUE_INPUTS = CLV__EPILOGUE_ELEMENTS + CLV__EPILOGUE_CHANNELS,
    CLV__STEP_INPUTS = 5,
    CLV__SO_FAR = -1,
    CLV__ABSENT = -2
};
typedef struct clv__epilogue_step {
    const clv__op *op; // one that is `elementwise` or `channelwise`
    const void *attrs;
    int from[CLV__STEP_INPUTS]; // by input of op: CLV__SO_FAR, CLV__ABSENT, or which of the further inputs
} clv__epilogue_step;
typedef struct clv__epilogue {
    clv__epilogue_step steps[CLV__EPILOGUE_STEPS];
    int n_steps;
    int first, n_in;                       // the further inputs are io->in[first ...], behind the op's own
    bool by_channel[CLV__EPILOGUE_INPUTS]; // of a further input: one element for each channel
} clv__epilogue;

/** One use of an op: what its functions see. */
typedef struct clv__op_io {
    const clv__op *op;
    const void *attrs; // op->attrs_bytes of them, plain data without pointers; NULL if none
    int n_in, n_out;
    const clv__desc *in; // n_in of them
    clv__desc out[CLV__MAX_OUT];
    const struct clv__variant *variant; // whose functions are called; NULL elsewhere
    const clv__epilogue *epilogue;      // NULL: output 0 is as the op makes it
} clv__op_io;

/** One way to compute an op by kernels. The first in the list is `plain`: right on every device, work-groups of one, unless its
 *  `supports` finds a size too large to be counted there.
 *  Several rows may share their functions and differ in parameters, as `gemm` and `gemm:128x128`: the functions find them by
 *  io->variant->number. Each is ranked, pinned, tuned, checked and put into quarantine alone. */
typedef struct clv__variant {
    const char *name;
    /** Can it run on this device with these shapes? NULL: always. Looks at capabilities, never at names. */
    bool (*supports)(const clv_device_info *device, const clv__op_io *io);
    /** Expected time relative to the plain variant's 1.0; the smallest wins, the first of equals. NULL: `relative`. */
    double (*rank)(const clv_device_info *device, const clv__op_io *io);
    /** Append the launches. list->device is the device. */
    void (*lower)(clv__launches *list, const clv__op_io *io);
    double relative; // the same as a number, where it does not depend on the use; 0: 1.0
    bool
        lanes; // `relative` is of devices with lanes; of threads it is 2: no local memory to gain from, barriers to lose by
    /** Its sums are rounded so, relative to each, where others round to f32: 2^-11 for f16. Such a variant is taken for inference alone, and
     *  only where it is pinned, as what is summed may be past the type's largest. The check allows for it. 0: as f32. */
    double roundoff;
    /** Its operands are rounded so, relative to each, before they are multiplied, as 2^-11 for tf32; sums are f32. Such a variant is taken where
     *  the runtime's float32_products or the use's own halves allow it. The check allows for it. 0: as they are stored. */
    double operands;
    double work; // the part of the op's FMAs that it needs at least, as 1/4 of Winograd's F(4x4, 3x3); 0: all
    int number; // which of several rows that share functions, by an enum of the file that has these; 0: the usual one
} clv__variant;

// What a variant says of a use.
static inline bool clv__variant_supports(const clv__variant *variant, const clv_device_info *device,
                                         const clv__op_io *use) {
    clv__op_io io = *use;
    io.variant = variant;
    return !variant->supports || variant->supports(device, &io);
}
/** How its sums' terms may be rounded, by either: of a product both operands are. */
static inline double clv__variant_roundoff(const clv__variant *variant) {
    return variant->roundoff > 2 * variant->operands ? variant->roundoff : 2 * variant->operands;
}
/** May its operands be rounded as the variant does? `products`: of f32 (clv_float32_products). Halves are multiplied as such at any. */
static inline bool clv__variant_rounds(const clv__variant *variant, clv_float32_products products,
                                       const clv__op_io *use) {
    static const double of_products[] = {0, 0x1p-11, 0x1p-8};
    double allowed = of_products[products];
    for (int i = 0; i < use->n_in; i++) {
        const double half = use->in[i].dtype == CLV_DTYPE_F16    ? 0x1p-11
                            : use->in[i].dtype == CLV_DTYPE_BF16 ? 0x1p-8
                                                                 : 0;
        allowed = half > allowed ? half : allowed;
    }
    return variant->operands <= allowed;
}
static inline double clv__variant_rank(const clv__variant *variant, const clv_device_info *device,
                                       const clv__op_io *use) {
    clv__op_io io = *use;
    io.variant = variant;
    if (variant->rank) return variant->rank(device, &io);
    if (variant->lanes && device->execution == CLV_EXECUTION_THREADS) return 2;
    return variant->relative > 0 ? variant->relative : 1.0;
}
static inline void clv__variant_lower(const clv__variant *variant, clv__launches *list,
                                      const clv__op_io *use) {
    clv__op_io io = *use;
    clv__launch spare;
    io.variant = variant;
    list->spare = &spare;
    variant->lower(list, &io);
    list->spare = NULL;
    clv__launches_trim(list);
}

/** What the reference gets: every tensor as doubles, contiguous (i32 too; exact). in[i] is written only if op->mutates has it. */
typedef struct clv__ref {
    const clv__op_io *io;
    double *in[CLV__MAX_IN]; // NULL: not there
    double *out[CLV__MAX_OUT];
} clv__ref;

/** How a sample's input is filled. */
typedef enum clv__fill_kind {
    CLV__FILL_UNIFORM,  // lo <= v < hi (default -1..1)
    CLV__FILL_INTEGER,  // lo <= v <= hi, whole numbers
    CLV__FILL_DISTINCT, // all values differ by at least (hi-lo)/numel, shuffled: no ties, no kinks hit
    // uniform, but for an infinite element: what does not depend on that has to stay finite
    CLV__FILL_FIRST_INFINITE,
    CLV__FILL_LAST_INFINITE,
} clv__fill_kind;
typedef struct clv__fill {
    clv__fill_kind kind;
    double lo, hi; // both 0: -1 and 1
} clv__fill;

/** One legal case of an op: for tests, `cleave check`, bench and tuning alike. Zeroed before sample() fills it. */
typedef struct clv__sample {
    char label[96]; // what the case is about: "stride 2, padding 1"
    _Alignas(16) char attrs[CLV__ATTRS_BYTES];
    int n_in;
    clv__desc in[CLV__MAX_IN];
    clv__fill fill[CLV__MAX_IN];
    bool no_gradient; // the gradient is not checked against differences (steps, kinks, randomness)
    bool quick;       // one of the few cases of `check --quick`; a handful per op, small
    clv_dtype
        stored; // of outputs that may be f16 or bf16; NONE: as the graph has it. The checker's, not for sample()
    bool followed; // by ops that the plan makes an epilogue of. The checker's too
} clv__sample;

/** A case as a row of a static table (clv__op.samples), for ops whose inputs and attributes can be written down. */
enum { CLV__ROW_INPUTS = 4 };
typedef struct clv__sample_row {
    const char *label; // NULL ends a table
    clv_shape in[CLV__ROW_INPUTS];
    const void *attrs; // &(softmax_attrs){1}; NULL: zeros
    clv__fill fill[CLV__ROW_INPUTS];
    bool quick, no_gradient;
    int n_in;               // 0: one
    uint32_t i32, left_out; // bit i: input i is i32; an optional input that is not there
    clv_dtype whole;        // what those of i32 are instead; NONE: i32
} clv__sample_row;

/** Work of one use, for placement and roofline. */
typedef struct clv__cost {
    double flops;
    double bytes; // read and written
} clv__cost;

/** Inputs that come in groups, one group after the other, as parameter, gradient and momentum of an update. A use with
 *  several groups does what as many uses of one group do, so that the plan can make one node of them (plan/groups.c). What it does to
 *  a group depends on that group's inputs alone, and but for LAMB's norms on the same element of each. */
typedef struct clv__groups {
    int first; // the input that the first group begins with; those before it belong to all groups
    int size;  // inputs in a group; 0: there are no groups
    int most;  // groups in a use; at least one. On a device: clv__groups_most
    int sum;   // this input of a group may come as two terms, the other one being the next input; 0: none may
    bool chain; // input 0 may be output 0 of the use before: the two become one as well
} clv__groups;

/**
 * A way to do a use in parts, for tensors that are larger than a device's largest allocation (plan/split.c). A length is cut, from
 * `begin` to before `end`, and each tensor goes with it along one of its dimensions, or as one of the words below says. The uses on
 * the parts, put together, are what the whole use is.
 */
enum {
    CLV__SPLIT_WHOLE = -1, // an input: each part reads all of it
    CLV__SPLIT_SHARE = -2, // an input: all of it, times the part's share of the length
    CLV__SPLIT_CARRY =
        -3, // an input: output 0 of the part before, of the first what it is. Output 0: that of the last part
    CLV__SPLIT_SUM = -4, // an output: the parts' results added up, the first part's first
    CLV__SPLIT_MEAN = -5 // an output: the same, each times the part's share of the length
};
typedef struct clv__split {
    int8_t in[CLV__MAX_IN]; // a dimension, or a word; WHOLE before the op is asked
    int8_t out[CLV__MAX_OUT];
    int64_t
        length; // 0: this way is not possible here. A tensor's dimension is a multiple of it, and goes along in proportion
    bool one_for_one; // input 0 does not: each of the length is one of its dimension, from `from` on
    int64_t from;
} clv__split;

/** How an op's results are stored in a graph of mixed precision (graph/precision.c). */
typedef enum clv__autocast {
    CLV__CAST_FOLLOW, // as its inputs are; f32 if one of them is
    CLV__CAST_HALF,   // in two bytes, whatever the inputs are
    CLV__CAST_FLOAT,  // in f32
} clv__autocast;

/** Several uses of a chain, done at once. What they read lies anywhere among the device's gradients; a table says where, which is
 *  an input behind those of the last use (plan/chains.c; its rows are those of plan/chains.c). */
typedef struct clv__chained {
    const int64_t *n; // elements of each row
    int rows;
    int chunks; // of gradients, at most: so many arguments
} clv__chained;

/** What ranks make of a tensor that each has, or has a part of. */
typedef enum clv__exchange_kind {
    CLV__EXCHANGE_SUM,     // the sum, on every rank
    CLV__EXCHANGE_SCATTER, // of the sum each rank its part
    CLV__EXCHANGE_GATHER   // of each rank's part the whole, on every rank
} clv__exchange_kind;

/** A sum is in an order that does not depend on who is first. */
typedef struct clv__exchanged {
    int32_t kind;
    int32_t terms;         // of ranks 0 to terms - 1; the others have nothing to add
    int32_t from_last;     // the last rank's is the first term
    int32_t bf16;          // SUM: sent as such, and the sum is one
    int64_t begin, length; // SCATTER, GATHER, and a view of it: this rank's part, in elements
} clv__exchanged;

/** Parts of a tensor begin at multiples of so many elements: 512 bytes, where devices let a tensor begin. */
enum { CLV__PART_ELEMENTS = 128 };
/** A rank's part of n elements begins there; rank `size`: where the last one ends. */
static inline int64_t clv__part_begin(int64_t n, int rank, int size) {
    const int64_t at = n / size * rank + n % size * rank / size;
    return rank == size ? n : at / CLV__PART_ELEMENTS * CLV__PART_ELEMENTS;
}

/** A call of an op: its inputs, as many as the signature has (NULL: not given) or so many of a list, and its attributes. */
typedef struct clv__call {
    clv_graph *graph;
    clv_tensor *const *in;
    int n_in;
    const void *attrs; // as clv__op.attributes says where they are
    const clv__op *op;
} clv__call;

struct clv__op {
    union {
        clv_op_signature signature;
        struct
        { // the same, written once (graph/signature.h); outputs may be NULL where there is `infer`, all but name in ops of others
            const char *name;
            const clv_op_value *inputs;
            const clv_op_attribute *attributes;
            const clv_op_value *outputs;
            const clv_custom_op *custom;
        };
    };
    /** What a call does that is more than to append one node: its inputs and attributes fit (clv__call_fits). NULL: nothing. A composite has
     *  that and nothing else. */
    clv_tensor *(*build)(const clv__call *call);
    bool attributes_of_call; // `attributes` are of a structure that `build` reads, not of the node's
    /** Of a node, how a graph's file calls it: the op whose builder made it; attributes, if they are of the call, are put into attrs. NULL:
     *  as the node is. */
    const clv__op *(*call_of)(const clv__node *node, void *attrs);
    size_t
        attrs_bytes; // of the attribute structure, at most CLV__ATTRS_BYTES; its bytes stand in keys of tuning files
    const void *data; // table row or the like for descriptors that share functions
    uint64_t mutates; // bit i: input i is written in place (parameters, buffers, optimizer state, caches)
    bool view;        // output 0 is input 0's bytes under another shape: no launch, no memory
    bool
        joins; // a view too: output 0 is the inputs' bytes one after the other. Of the plan's own (plan/pieces.c)
    bool moves; // exists to carry its input to the device it is computed on: crossing is asked for
    bool
        exchanges; // output 0 is what ranks make of their inputs 0, in that memory, or in input 1's; attrs: clv__exchanged
    bool part;        // a view of some elements of input 0; attrs: clv__exchanged
    uint64_t inplace; // bit i: output 0 may be written over input i, if that has the same bytes and dies here
    uint64_t half_in,
        half_out; // bit i: input i, output i may be f16 or bf16; else it is f32 where it is a float
    clv__autocast autocast;
    bool detaches;    // no gradient leads through it: of a composite
    bool elementwise; // `data` is a clv__ew_row: can be a step of an epilogue
    bool channelwise; // `data` is a clv__channel_row (ops/epilogue.h): the same, of an op that knows channels
    bool
        epilogue; // its variants do io->epilogue (ops/epilogue.h), but those whose `supports` refuses a use that has one
    int channels; // the dimension of output 0 that has its channels for an epilogue, from the end if negative; 0: it has none
    clv__groups groups;
    /** Of a chain, by io->variant: append the launches of all its uses, in place of their own; io is that of the last. False: nothing is
     *  appended, and each has launches of its own. NULL: so it is always. chain_cut: elements of a part, which the table counts. */
    bool (*lower_chain)(clv__launches *list, const clv__op_io *io, const clv__chained *chained);
    int64_t chain_cut;
    bool random; // depends on the step's random state, input (n_in - 1), i32[4]: seed low, seed high, step, 0

    /** Input shapes, dtypes, attributes -> io->n_out, io->out; or a sentence. Pure. The caller has put op, attrs, in; f16 and
     *  bf16 are f32 to it, and which of the outputs become such is the graph's affair (graph/precision.c). The
     *  sentence begins with the mistake ("weight wants 3 input channels, x has 4"); layer and shapes are put around it. */
    clv_status (*infer)(
        clv__op_io *io,
        clv__error *error); // after the signature's own checks; NULL: outputs are as their types say

    /** The op that is the gradient: `grad` is clv__pair_grad, which adds one node of it (graph/pair.c). */
    const clv__op *gradient;
    /** And of such an op, whose gradient it is, and what it takes: "d0 i1 o2" is the gradient of output 0, input 1, output 2; "e0" is "d0"
     *  that may be left out; s0, the shape of input 0, stands behind the attributes, which begin with the other op's; "g0 g1", its outputs
     *  are the gradients of inputs 0 and 1; "n1", less the first of them is that of input 1. CLV__GRADIENT_OF has the rest: shape rule,
     *  samples, ways to be done in parts. */
    const clv__op *gradient_of;
    const char *takes;

    /** Emit nodes for the gradients of inputs that clv__wants_grad; dy[i] is NULL if none comes to output i. dx[] is NULL
     *  before. The builders stick errors in the graph. NULL: not differentiable. */
    void (*grad)(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx);

    const clv__variant *variants; // ends with a NULL name; NULL only for views
    /** Plain loops, double accumulators: the specification. NULL only for views. */
    void (*reference)(const clv__ref *ref);
    /** Cases for tests, check, bench and tuning: rows of a table, which `adapt` (NULL: nothing) may go on with, as it may with a gradient's,
     *  which are made of the op's own. All NULL in a library for inference. */
    const clv__sample_row *samples;
    void (*adapt)(clv__sample *sample);
    /** Or, where a table will not do, a function: the i-th case; false when i is past the last. */
    bool (*sample)(const clv__op *op, int i, clv__sample *sample);
    /** NULL: one flop for each output element, bytes of all inputs and outputs. */
    void (*cost)(const clv__op_io *io, clv__cost *cost);
    /** Length of the longest sum behind one output element: sets the tolerance. NULL: 1. */
    int64_t (*reduction)(const clv__op_io *io);
    /** The i-th way to do a use in parts, the one to be preferred first; false when i is past the last. NULL: there is none. */
    bool (*split)(const clv__op_io *io, int i, clv__split *out);
    /** Make the attributes, a copy, those of a part. NULL: they stay. */
    void (*split_attrs)(const clv__op_io *io, const clv__split *split, int64_t begin, int64_t end,
                        void *attrs);
};

/** A function or descriptor that only training, check, bench and tune need: a library for inference does without, and with all
 *  that only it leads to. */
#ifdef CLEAVE_INFERENCE
#define CLV__TRAINS(symbol) (0 ? (symbol) : NULL)
#else
#define CLV__TRAINS(symbol) (symbol)
#endif
/** A descriptor's rows. */
#define CLV__SAMPLES(...) .samples = CLV__TRAINS(((const clv__sample_row[]){__VA_ARGS__, {0}}))

/** The descriptor of a gradient that is an op of its own, and what the op whose gradient it is says of that. */
#define CLV__GRADIENT_OF(id, terms) .name = #id "_backward", .gradient_of = &clv__op_##id, CLV__PAIR(terms)
#define CLV__PAIR(terms)                                                                                     \
    .takes = terms, .infer = clv__pair_infer, .split = clv__pair_split, .split_attrs = clv__pair_split_attrs
#define CLV__GRADIENT(id)                                                                                    \
    .gradient = CLV__TRAINS(&clv__op_##id##_backward), .grad = CLV__TRAINS(clv__pair_grad)
/** sizeof the attributes of a gradient that takes a shape besides. */
#define CLV__ATTRS_AND_SHAPE(type)                                                                           \
    sizeof(struct {                                                                                          \
        type attrs;                                                                                          \
        clv_shape shape;                                                                                     \
    })
clv_status clv__pair_infer(clv__op_io *io, clv__error *error);
void clv__pair_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx);
bool clv__pair_sample(const clv__op *op, int i, clv__sample *sample);
bool clv__pair_split(const clv__op_io *io, int i, clv__split *out);
void clv__pair_split_attrs(const clv__op_io *io, const clv__split *split, int64_t begin, int64_t end,
                           void *attrs);
/** A node of such a gradient, from tensors of the use whose gradient it is. */
clv_tensor *clv__pair_node(const clv__op *op, const void *attrs, clv_tensor *const *dy, clv_tensor *const *in,
                           clv_tensor *const *out);
/** A gradient that is made another way: of input 0 of `of`, where `before` made what comes to it. NULL: not here. */
typedef struct clv__gradient_rewrite {
    const clv__op *of, *before;
    clv_tensor *(*build)(const clv__node *node, const clv__node *before);
} clv__gradient_rewrite;
/** Ends with a NULL op. Defined in runtime/ops/update/rewrites.c. */
extern const clv__gradient_rewrite clv__gradient_rewrites[];
/** Does a use make gradients? */
static inline bool clv__is_gradient(const clv__op_io *io) {
    return io->op->gradient_of != NULL;
}

/** Before a descriptor, at the beginning of a line: `CLV__OP(relu) = {...};`. From these marks runtime/ops/list.cmake makes the tables
 *  below. */
#define CLV__OP(id) const clv__op clv__op_##id
#define CLV__COMPOSITE CLV__OP // made of other ops; in ops.h, too
#define CLV__INNER_OP CLV__OP  // a part of others, and not in ops.h
#define CLV__TRAIN_OP                                                                                        \
    CLV__OP // only gradients and updates use it: not in ops.h, and not in a library for inference

/** Every op but composites, by name; ends with NULL. */
extern const clv__op *const clv__ops[];
extern const int clv__n_ops;
/** Those of ops.h, composites too; ends with NULL. */
extern const clv__op *const clv__public_ops[];
extern const int clv__n_public_ops;
/** The composites alone. */
extern const clv__op *const clv__composites[];
static inline bool clv__is_composite(const clv__op *op) {
    return op->build && !op->variants && !op->view;
}
/** The i-th op: of clv__ops first, then those that programs brought (ops/custom_op.c); NULL past the last. */
const clv__op *clv__op_at(int i);
enum { CLV__MAX_ENLISTED = 1024 };
/** Put an op of a program's own behind the others, for the rest of the process; false if there are too many. One thread at a
 *  time. */
bool clv__op_enlist(const clv__op *op);
/** Is it one of those? */
bool clv__op_is_enlisted(const clv__op *op);
/** The op of that name, NULL if there is none. */
const clv__op *clv__op_find(const char *name);
/** An op's variant of that name, NULL if there is none. */
const clv__variant *clv__variant_find(const clv__op *op, const char *name);
/** `; did you mean 'NAME'?` for a name that is of no op; `nearest` is the caller's. */
const char *clv__op_nearest(const char *name, clv__nearest *nearest);
/** The i-th case of an op, from its table or its function; false when i is past the last, or the op has none. */
bool clv__op_sample(const clv__op *op, int i, clv__sample *sample);
/** The work of one use: as the op says, or what its `cost` stands for when it is NULL. */
void clv__op_cost(const clv__op_io *io, clv__cost *cost);

// ---- for builders and grad functions --------------------------------------------------------------------------

/**
 * Append a node. inputs[i] NULL: an optional input that is not there if bit i of `optional` is set, else a failed build.
 * attrs is copied. Returns output 0 (others: clv__sibling), or NULL with the graph's error set.
 */
clv_tensor *clv__node_add(const clv__op *op, const void *attrs, clv_tensor *const *inputs, int n_in,
                          uint64_t optional);
/** The same for an op that may have no inputs; graph NULL: nothing is done. */
clv_tensor *clv__node_add_to(clv_graph *graph, const clv__op *op, const void *attrs,
                             clv_tensor *const *inputs, int n_in, uint64_t optional);
/** Of an op with `build`: are the attributes within their bounds, and of a composite the inputs what its signature says? If not, the graph
 *  has the sentence. */
bool clv__call_fits(const clv__call *call);
/** The i-th output of the node that made `tensor`; NULL for NULL. */
clv_tensor *clv__sibling(clv_tensor *tensor, int i);

clv_tensor *clv__node_in(const clv__node *node, int i); // NULL: not there
clv_tensor *clv__node_out(const clv__node *node, int i);
const void *clv__node_attrs(const clv__node *node);
const char *clv__node_place(const clv__node *node); // the device that it was asked for on; NULL: none
const clv__op_io *clv__node_io(const clv__node *node);
/** Does input i exist, and lead from something that wants a gradient? */
bool clv__wants_grad(const clv__node *node, int i);

/** The graph of a tensor; NULL for NULL. */
clv_graph *clv__tensor_graph(const clv_tensor *tensor);
/** Stick a mistake in the graph (the first one stays). graph may be NULL. Returns NULL. */
clv_tensor *clv__graph_fail(clv_graph *graph, clv_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/**
 * Push the scope of a layer that makes its own parameters; `parameter` is one that each such layer has. False, with the
 * graph's error set and nothing pushed, if a layer of that full name computes with it already: the two would train one set
 * of weights unasked. Parameters that the caller made by name are his to share.
 */
bool clv__layer_push(clv_graph *graph, const char *name, const char *parameter);

/** The graph's random-state input (i32[4]: seed low, seed high, step, 0), made when first asked for. exec feeds it. */
clv_tensor *clv__graph_random(clv_graph *graph);
/** A number for the next random node of the graph: its Philox stream id. */
int32_t clv__graph_random_id(clv_graph *graph);
/** The position of a tensor's first element in what it would be if the batch were not cut; 0 for what has no rows. */
int64_t clv__graph_first_element(const clv_graph *graph, const clv_tensor *tensor);

/** Values that outlast a step, for an op that changes them in place (`mutates`): zeros at first, f32, under the scope as a buffer is. They
 *  are activations to the account, and no part of weights or checkpoints. */
clv_tensor *clv__cache(clv_graph *graph, const char *name, clv_shape shape);

// ---- for infer and sample functions ---------------------------------------------------------------------------

/** A shape in a static table: CLV__DIMS(2, 3). */
#define CLV__DIMS(...)                                                                                       \
    {                                                                                                        \
        sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {                                                \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }
static inline clv__desc clv__f32(clv_shape shape) {
    return (clv__desc){CLV_DTYPE_F32, shape};
}
static inline clv__desc clv__i32(clv_shape shape) {
    return (clv__desc){CLV_DTYPE_I32, shape};
}
/** For the end of `infer`: the use has this one output. */
static inline clv_status clv__one_out(clv__op_io *io, clv__desc out) {
    io->n_out = 1;
    io->out[0] = out;
    return CLV_OK;
}
static inline bool clv__has_in(const clv__op_io *io, int i) {
    return i < io->n_in && io->in[i].dtype != CLV_DTYPE_NONE;
}
/** How many groups of inputs a use has. */
static inline int clv__groups_of(const clv__op_io *io) {
    return (io->n_in - io->op->groups.first) / io->op->groups.size;
}
/** How many groups one use may have on a device: an argument for each input and one more for each group, and some for the rest. */
static inline int clv__groups_most(const clv__op *op, const clv_device_info *device) {
    enum { OTHERS = 10 };
    const uint32_t args = device->address_bits ? device->argument_bytes / (device->address_bits / 8) : 0;
    const int room = ((int)args - OTHERS - op->groups.first) / (op->groups.size + 1);
    return args && room < op->groups.most ? room : op->groups.most;
}
static inline int64_t clv__numel(const clv__desc *desc) {
    return clv_shape_numel(&desc->shape);
}
/** The shape's dimension d; 0 where it has none: a way of `split` along it is not possible. */
static inline int64_t clv__split_length(const clv_shape *shape, int d) {
    return d >= 0 && d < shape->rank ? shape->dims[d] : 0;
}
/** Every tensor of the use goes along dimension d. */
static inline void clv__split_all(const clv__op_io *io, int d, clv__split *out) {
    out->length = clv__split_length(&io->in[0].shape, d);
    for (int k = 0; k < io->n_in; k++)
        if (clv__has_in(io, k)) out->in[k] = (int8_t)d;
    for (int k = 0; k < io->n_out; k++) out->out[k] = (int8_t)d;
}
/** The same along the first dimension alone, as `split`. */
static inline bool clv__split_first(const clv__op_io *io, int i, clv__split *out) {
    clv__split_all(io, 0, out);
    return i == 0;
}
/** Zeros in every output, for references that add up in them. */
static inline void clv__ref_zero(const clv__ref *ref) {
    for (int k = 0; k < ref->io->n_out; k++)
        for (int64_t i = 0; i < clv__numel(&ref->io->out[k]); i++) ref->out[k][i] = 0;
}
static inline size_t clv__desc_bytes(const clv__desc *desc) {
    return (size_t)clv__numel(desc) * clv_dtype_bytes(desc->dtype);
}
/** Fail unless input i is there with this dtype. `what` names it in the sentence. */
clv_status clv__want_dtype(const clv__op_io *io, int i, const char *what, clv_dtype dtype, clv__error *error);
/** An axis counted from the end if negative; fails outside the rank. */
clv_status clv__want_axis(int axis, int rank, int *out, clv__error *error);
/** A device whose work-items are tasks, one after the other on each unit: wide vectors, few work-items. The others have lanes. */
static inline bool clv__threads(const clv_device_info *device) {
    return device->execution == CLV_EXECUTION_THREADS;
}

#endif
