// SPDX-License-Identifier: Apache-2.0
// What optimizers' ops have in common: their inputs, launches over several parameters, samples, parts, states: update.c.
#ifndef CLV_OPS_UPDATE_H
#define CLV_OPS_UPDATE_H

#include "cleave/optim.h"
#include "graph/graph.h"
#include "graph/signature.h"
#include "ops/slices.h"
#include "ops/update/gradients.h"

// Inputs of every update: what is the same for all parameters, then groups that begin alike.
enum { CLV__UPDATE_HYPER, CLV__UPDATE_CLIP, CLV__UPDATE_FIRST };
// In a group: the gradient is GRAD, or GRAD + TERM; states from STATE on.
enum { CLV__UPDATE_PARAM, CLV__UPDATE_GRAD, CLV__UPDATE_TERM, CLV__UPDATE_STATE };

/** What is the same for all parameters, and what every group begins with; its states follow. */
#define CLV__UPDATE_INPUTS(...)                                                                              \
    CLV__INPUTS({"hyper", "f32[5]"}, {"clip_factor", "f32[1]?"}, {"parameter", "f32[*]"},                    \
                {"gradient", "f32[*]"}, {"term", "f32[*]?"}, __VA_ARGS__)
_Static_assert(CLV_HYPER_VALUES == 5, "as the type of hyper says");

/** Input `which` of a group, as an index. */
static inline int clv__update_at(const clv__op_io *io, int group, int which) {
    return CLV__UPDATE_FIRST + group * io->op->groups.size + which;
}
static inline int64_t clv__update_numel(const clv__op_io *io, int group) {
    return clv__numel(&io->in[clv__update_at(io, group, CLV__UPDATE_PARAM)]);
}

/** How the variant of a use shares its slices out. */
const clv__sharing *clv__update_sharing(const clv__op_io *io);
/** What all updates' launches begin with: the tensors of each slice, groups that are not there included (no elements), hyper
 *  and clip, sizes. `order`: of a group's inputs, ends with -1. */
clv__launch *clv__update_launch(clv__launches *list, const clv__op_io *io, const char *entry,
                                const int *order);
/** The launch and its sizes alone; *parts: how many groups it has. */
clv__launch *clv__update_launch_slices(clv__launches *list, const clv__op_io *io, const char *entry,
                                       const int *order, int64_t *parts);

/** Each group's elements by its slice. Nothing where the factor is negative. */
void clv__update_reference(const clv__ref *ref);
/** Element i of a group's gradient. */
double clv__update_gradient(const clv__ref *ref, int group, int64_t i);

void clv__update_cost(const clv__op_io *io, clv__cost *cost);
/** Along every dimension of the parameter; of a use with one group. */
bool clv__update_split(const clv__op_io *io, int i, clv__split *out);

/** What samples are of: attributes, and what there is. Of states bits: those that are there, that are above 0, that are small. */
typedef struct clv__update_case {
    const char *label;
    const void *attrs;
    unsigned states, positive, small;
    bool first, clip, terms;
} clv__update_case;
/** The i-th sample: the cases on each of some shapes, with hyper values of a first or a later step. */
bool clv__update_sample(const clv__op *op, int i, clv__sample *out);

/** What an update's `data` points to. */
typedef struct clv__update {
    void (*slice)(const clv__ref *ref, int group,
                  double factor);  // a group's elements, whose gradient is times `factor`
    const clv__update_case *cases; // ends with an empty one
} clv__update;
/** Of a descriptor: all but the states and the split. It has id##_attrs, id##_lower, id##_slice and id##_cases, and writes parameters and
 *  states. */
#define CLV__UPDATE(id, size, most)                                                                          \
    .name = #id "_update", .outputs = CLV__NO_OUTPUTS, .attrs_bytes = sizeof(id##_attrs),                    \
    .groups = {CLV__UPDATE_FIRST, size, most, .sum = CLV__UPDATE_GRAD},                                      \
    .mutates = (((UINT64_C(1) << (size) * (most)) - 1) / ((1u << (size)) - 1) *                              \
                ((1u << (size)) - 1 - (1u << CLV__UPDATE_GRAD | 1u << CLV__UPDATE_TERM)))                    \
               << CLV__UPDATE_FIRST,                                                                         \
    .variants = (const clv__variant[])CLV__SHARING_VARIANTS(id##_lower),                                     \
    .data = &(const clv__update){id##_slice, id##_cases}, .reference = clv__update_reference,                \
    .sample = clv__update_sample, .cost = clv__update_cost

/** The decimal number that the caller wrote: 0.999f means 0.999, not 0.99900001287. 1 - beta2 has lost 5e-5 of itself otherwise. */
double clv__update_decimal(float value);
/** The same, or the default where it is 0. */
static inline double clv__update_or(float value, double standard) {
    return value == 0 ? standard : clv__update_decimal(value);
}
/** The betas that are meant. */
double clv__update_beta1(const clv_optimizer_config *config);
double clv__update_beta2(const clv_optimizer_config *config);
/** A state of the parameter, zero at first: `<parameter>.<name>`. */
clv_tensor *clv__update_state(const clv_tensor *parameter, const char *name);
/** Append an update of one parameter; n states, of which NULL is not there. */
void clv__update_add(const clv__op *op, const void *attrs, clv_tensor *parameter, const clv__gradients *all,
                     clv_tensor *const *states, int n);

// What appends a parameter's update, by the kind.
typedef void clv__update_builder(const clv_optimizer_config *config, float lr_factor, clv_tensor *parameter,
                                 const clv__gradients *all);
clv__update_builder clv__rmsprop_add, clv__adagrad_add, clv__lion_add; // adaptive.c
clv__update_builder clv__lamb_add;                                     // lamb.c
clv__update_builder clv__muon_add;                                     // muon.c
clv__update_builder clv__adam_add;                                     // optimizer.c

#endif
