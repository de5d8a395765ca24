// SPDX-License-Identifier: Apache-2.0
// All gradients together, before the updates: their norm and what clips it, whether all of them are finite, and the loss
// scaler. What comes out is one factor for every gradient (clv__gradients), which the updates multiply by; a negative factor
// tells them to leave everything as it is. All of it is on the device, the host does not look.
//
// sum_squares and count_nonfinite go through the gradients one after the other and carry the sum on; the plan makes one use of many
// gradients of it.
// Sources: torch.nn.utils.clip_grad_norm_; torch.amp.GradScaler (unscale_, step, update); Micikevicius et al. 2017,
// arXiv:1710.03740, section 3.2.
#include "ops/update/over_ranks.h"
#include "ops/update/gradients.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/slices.h"

extern const clv__op clv__op_sum_squares, clv__op_count_nonfinite, clv__op_clip_scale, clv__op_scaler_step;

// ---- trees over gradients ---------------------------------------------------------------------------------

// Inputs: the sum so far, then gradients. What is added to it is each gradient's sum, in order, and that depends on the gradient's
// size alone: so many uses of one gradient, each with the sum of the one before, give the bits of one use of many.
enum { SO_FAR, FIRST, MOST = 35, PARTS = 1024, CHAIN_CUT = 8192 };

static const clv__sharing sharings[CLV__SHARINGS] = {{1, 1024, 1},
                                                     {1, 16384, 16},
                                                     {CLV__SHARING_ITEMS, CHAIN_CUT, 4}},
                          of_parts = {1, PARTS, 1}, of_all = {CLV__SHARING_ITEMS, PARTS, 1};

/** A launch over slices of n[] elements each, whose results are the sums of their parts: of the gradients, or of the parts that a
 *  launch before left. n[] becomes how many each has. */
static clv__part sums_launch(clv__launches *list, const clv__op_io *io, const clv__part *from,
                             int64_t n[MOST]) {
    const clv__sharing *share = from ? &of_parts : clv__sharing_of(io, sharings);
    const char *entry = from                                 ? "sum_parts"
                        : io->op == &clv__op_count_nonfinite ? "count_nonfinite"
                                                             : "sum_squares";
    const int slices = clv__groups_most(io->op, list->device);
    int64_t groups = 0, sizes[MOST];
    memcpy(sizes, n, sizeof sizes);
    for (int j = 0; j < MOST; j++) groups += n[j] = clv__div_up(n[j], share->count);
    const clv__part to = clv__floats(list, groups);
    clv__launch *launch = clv__sharing_launch(list, io, "gradients", entry, share, groups);
    clv__arg_part(list, launch, to);
    if (from) clv__arg_part(list, launch, *from);
    for (int j = 0; !from && j < slices; j++) clv__arg_in(list, launch, FIRST + j);
    CLV__ARGS(list, launch, NULL, NULL, .n_ints = slices, .ints = sizes);
    clv__arg_i32(list, launch, groups);
    return to;
}

static int64_t most_of(const int64_t n[MOST]) {
    int64_t most = 0;
    for (int j = 0; j < MOST; j++) most = n[j] > most ? n[j] : most;
    return most;
}

static void squares_lower(clv__launches *list, const clv__op_io *io) {
    const int groups = clv__groups_of(io);
    int64_t n[MOST] = {0}, all = 0;
    for (int j = 0; j < groups; j++) n[j] = clv__numel(&io->in[FIRST + j]);
    clv__part parts = sums_launch(list, io, NULL, n);
    // the parts of each gradient by an item of one group, if they are not too many
    const bool at_once = clv__sharing_of(io, sharings)->items > 1 && most_of(n) <= PARTS;
    while (!at_once && most_of(n) > 1) parts = sums_launch(list, io, &parts, n);
    clv__launch *launch = at_once ? clv__sharing_launch(list, io, "gradients", "sum_all", &of_all, 1)
                                  : clv__launch_items(list, "gradients", "sum_slices", CLV__TASKS, 1);
    CLV__ARGS(list, launch, io, "o0 w i0", .part = parts,
              .n_ints = at_once ? clv__groups_most(io->op, list->device) : 0, .ints = n);
    for (int j = 0; j < groups; j++) all += n[j];
    CLV__ARGS_I32(list, launch, all, clv__has_in(io, SO_FAR));
}

/** The same of all uses of a chain, in two launches, with the same bits: the parts of all gradients, and one group for the rest. */
static bool squares_chain(clv__launches *list, const clv__op_io *io, const clv__chained *chained) {
    enum { TURNS = 2048 };
    const clv__sharing *share = clv__sharing_of(io, sharings);
    const bool count = io->op == &clv__op_count_nonfinite;
    int64_t parts = 0;
    if (share->count != CHAIN_CUT ||
        !clv__loops_fit(list->device, TURNS * clv__div_up(chained->rows, share->items)))
        return false;
    for (int j = 0; j < chained->rows; j++) {
        const int64_t n = clv__div_up(chained->n[j], share->count);
        if (n > PARTS) return false;
        parts += n;
    }
    if (parts == 0) return false;
    const size_t bytes = (size_t)parts * sizeof(float), at = clv__launch_workspace(list, bytes);
    clv__launch *launch =
        clv__launch_kernel(list, "gradients", count ? "count_nonfinite_table" : "sum_squares_table");
    clv__launch_define(list, launch, "ITEMS", "%d", share->items);
    clv__launch_define(list, launch, "COUNT", "%d", share->count);
    clv__launch_define(list, launch, "WIDE", "%d", share->wide);
    clv__launch_grid(launch, (size_t)(parts * share->items), (size_t)share->items);
    clv__arg_workspace(list, launch, at, bytes);
    for (int i = 0; i < chained->chunks; i++) clv__arg_gradients(list, launch, i);
    clv__arg_in(list, launch, io->n_in);
    CLV__ARGS_I32(list, launch, chained->rows, parts);
    launch = clv__launch_kernel(list, "gradients", "sum_table");
    clv__launch_define(list, launch, "ITEMS", "%d", share->items);
    clv__launch_grid(launch, (size_t)share->items, (size_t)share->items);
    clv__arg_out(list, launch, 0);
    clv__arg_workspace(list, launch, at, bytes);
    clv__arg_in(list, launch, io->n_in);
    CLV__ARGS_I32(list, launch, chained->rows, parts);
    return true;
}

static void squares_reference(const clv__ref *ref) {
    const bool count = ref->io->op == &clv__op_count_nonfinite;
    double sum = ref->in[SO_FAR] ? ref->in[SO_FAR][0] : 0;
    for (int k = FIRST; k < ref->io->n_in; k++) {
        for (int64_t i = 0; i < clv__numel(&ref->io->in[k]); i++)
            sum += count ? !isfinite(ref->in[k][i]) : ref->in[k][i] * ref->in[k][i];
    }
    ref->out[0][0] = sum;
}

static int64_t squares_reduction(const clv__op_io *io) {
    int64_t n = 0;
    for (int i = FIRST; i < io->n_in; i++) n += clv__numel(&io->in[i]);
    return n;
}

static bool squares_sample(const clv__op *op, int i, clv__sample *out) {
    (void)op;
    static const int64_t cases[][4] = {
        {65},    {1500, 3, 0, 17000}, {1},       {2}, {31}, {1023}, {1025}, {16385},
        {40009}, {8192, 8193, 64, 1}, {1100003}, {0}};
    if (i < 0 || (size_t)i >= sizeof cases / sizeof *cases) return false;
    const int64_t *n = cases[i];
    const int groups = n[1] ? 4 : 1;
    snprintf(out->label, sizeof out->label, "%lld elements%s%s", (long long)n[0],
             groups > 1 ? ", and others" : "", i % 2 ? ", a sum so far" : "");
    out->quick = i < 2;
    out->n_in = FIRST + groups;
    if (i % 2) out->in[SO_FAR] = clv__f32(CLV_SHAPE(1));
    out->fill[SO_FAR] = (clv__fill){CLV__FILL_UNIFORM, 1, 2};
    for (int g = 0; g < groups; g++) out->in[FIRST + g] = clv__f32(CLV_SHAPE(n[g]));
    return true;
}

static const clv__variant squares_variants[] = CLV__SHARING_VARIANTS(squares_lower);

/** Along the gradient's first dimension, of a use with one: the sum is carried on. */
static bool squares_split(const clv__op_io *io, int i, clv__split *out) {
    if (clv__groups_of(io) == 1) out->length = clv__split_length(&io->in[FIRST].shape, 0);
    out->in[FIRST] = 0;
    out->in[SO_FAR] = out->out[0] = CLV__SPLIT_CARRY;
    return i == 0;
}

#define COMMON                                                                                               \
    .inputs = CLV__INPUTS({"so_far", "f32[1]?"}, {"gradient", "f32"}),                                       \
    .outputs = CLV__OUTPUTS({"sum", "f32[1]"}), .groups = {FIRST, 1, MOST, .chain = true},                   \
    .lower_chain = squares_chain, .chain_cut = CHAIN_CUT, .variants = squares_variants,                      \
    .reference = squares_reference, .split = squares_split
CLV__TRAIN_OP(sum_squares) = {
    .name = "sum_squares", .sample = squares_sample, .reduction = squares_reduction, COMMON};

static bool nonfinite_sample(const clv__op *op, int i, clv__sample *out) {
    if (!squares_sample(op, i / 2, out)) return false;
    if (i % 2) out->fill[FIRST] = (clv__fill){CLV__FILL_UNIFORM, -1e39, 1e39}; // most are infinite as floats
    out->fill[SO_FAR] = (clv__fill){CLV__FILL_INTEGER, 0, 3};
    return true;
}

CLV__TRAIN_OP(count_nonfinite) = {.name = "count_nonfinite", .sample = nonfinite_sample, COMMON};

// ---- clipping ---------------------------------------------------------------------------------------------

static void clip_plain(clv__launches *list, const clv__op_io *io) {
    CLV__LAUNCH(list, io, "gradients", "clip_scale", CLV__TASKS, 1, "o0 i0 i1", CLV__INTS(clv__has_in(io, 1)),
                CLV__FLOATS(*(const float *)io->attrs));
}

static void clip_reference(const clv__ref *ref) {
    double norm = sqrt(ref->in[0][0]) / (ref->in[1] ? ref->in[1][0] : 1);
    double factor = (double)*(const float *)ref->io->attrs / (norm + 1e-6);
    ref->out[0][0] = factor > 1 ? 1 : factor;
}

static const clv__sample_row clip_samples[] = {
#define CLIPPED(norm)                                                                                        \
    .attrs = &(float){norm}, .quick = true, .n_in = 2,                                                       \
    .fill = {{CLV__FILL_UNIFORM, 1, 2}, {CLV__FILL_UNIFORM, 1, 2}}, .in = {CLV__DIMS(1), CLV__DIMS(1)}
    {"a large norm is cut", CLIPPED(0.5f), .left_out = 2},
    {"a small norm stays", CLIPPED(10.0f), .left_out = 2},
    {"a large norm is cut, scaled", CLIPPED(0.0625f)},
    {0},
};

static const clv__variant clip_variants[] = {{"plain", .lower = clip_plain}, {0}};

CLV__TRAIN_OP(clip_scale) = {
    .name = "clip_scale",
    .inputs = CLV__INPUTS({"sum", "f32[1]"}, {"scale", "f32[1]?"}),
    .outputs = CLV__OUTPUTS({"factor", "f32[1]"}),
    .attrs_bytes = sizeof(float),
    .variants = clip_variants,
    .reference = clip_reference,
    .samples = clip_samples,
};

// ---- the scaler's step ------------------------------------------------------------------------------------

enum { SCALE, GROWTH_TRACKER, SKIPPED, NONFINITE, HYPER, CLIP };

typedef struct scaler_attrs {
    float growth, backoff;
    int interval;
    float log_beta1, log_beta2;
} scaler_attrs;

static void scaler_plain(clv__launches *list, const clv__op_io *io) {
    const scaler_attrs *a = io->attrs;
    CLV__LAUNCH(list, io, "gradients", "scaler_step", CLV__TASKS, 1, "o0 o1 i0 i1 i2 i3 i4 i5",
                CLV__INTS(clv__has_in(io, CLIP), a->interval),
                CLV__FLOATS(a->growth, a->backoff, a->log_beta1, a->log_beta2));
}

static void scaler_reference(const clv__ref *ref) {
    const scaler_attrs *a = ref->io->attrs;
    const double *hyper = ref->in[HYPER];
    double *scale = ref->in[SCALE], *tracker = ref->in[GROWTH_TRACKER], *skipped = ref->in[SKIPPED];
    double *fed = ref->out[1], step = hyper[4] - skipped[0];
    memcpy(fed, hyper, CLV_HYPER_VALUES * sizeof *fed);
    if (skipped[0] > 0) {
        fed[1] = step <= 1;
        fed[2] = a->log_beta1 < 0 ? hyper[0] / -expm1(step * (double)a->log_beta1) : hyper[2];
        fed[3] = a->log_beta2 < 0 ? sqrt(-expm1(step * (double)a->log_beta2)) : hyper[3];
        fed[4] = step;
    }
    if (ref->in[NONFINITE][0] > 0) {
        ref->out[0][0] = -1;
        scale[0] *= (double)a->backoff;
        tracker[0] = 0;
        skipped[0]++;
        return;
    }
    ref->out[0][0] = (ref->in[CLIP] ? ref->in[CLIP][0] : 1) / scale[0];
    if (++tracker[0] < a->interval) return;
    tracker[0] = 0;
    if (scale[0] * (double)a->growth < 3e38) scale[0] *= (double)a->growth;
}

static bool scaler_sample(const clv__op *op, int i, clv__sample *out) {
    (void)op;
    static const struct {
        const char *label;
        double tracker, skipped, nonfinite;
        bool clip;
    } cases[] = {{"finite, no skipped step", 1, 0, 0, false},
                 {"an overflow halves the scale", 1, 0, 2, false},
                 {"the scale grows, clipped", 4, 3, 0, true},
                 {"the first step after skipped ones", 0, 6, 0, false},
                 {"finite, after skipped steps", 2, 2, 0, true}};
    if (i < 0 || (size_t)i >= sizeof cases / sizeof *cases) return false;
    const scaler_attrs attrs = {2, 0.5f, 5, -0.1053605157f, -0.0010005003f}; // betas 0.9 and 0.999
    snprintf(out->label, sizeof out->label, "%s", cases[i].label);
    memcpy(out->attrs, &attrs, sizeof attrs);
    out->quick = true;
    out->n_in = CLIP + 1;
    for (int k = SCALE; k <= NONFINITE; k++) out->in[k] = clv__f32(CLV_SHAPE(1));
    out->in[HYPER] = clv__f32(CLV_SHAPE(CLV_HYPER_VALUES));
    if (cases[i].clip) out->in[CLIP] = clv__f32(CLV_SHAPE(1));
    out->fill[SCALE] = (clv__fill){CLV__FILL_INTEGER, 64, 64};
    out->fill[GROWTH_TRACKER] = (clv__fill){CLV__FILL_INTEGER, cases[i].tracker, cases[i].tracker + 1e-9};
    out->fill[SKIPPED] = (clv__fill){CLV__FILL_INTEGER, cases[i].skipped, cases[i].skipped + 1e-9};
    out->fill[NONFINITE] = (clv__fill){CLV__FILL_INTEGER, cases[i].nonfinite, cases[i].nonfinite + 1e-9};
    out->fill[HYPER] = (clv__fill){CLV__FILL_INTEGER, 7, 9};
    out->fill[CLIP] = (clv__fill){CLV__FILL_UNIFORM, 0.1, 0.9};
    return true;
}

static const clv__variant scaler_variants[] = {{"plain", .lower = scaler_plain}, {0}};

CLV__TRAIN_OP(scaler_step) = {
    .name = "scaler_step",
    .inputs = CLV__INPUTS({"scale", "f32[1]"}, {"growth_tracker", "f32[1]"}, {"skipped", "f32[1]"},
                          {"nonfinite", "f32[1]"}, {"hyper", "f32[5]"}, {"clip_factor", "f32[1]?"}),
    .outputs = CLV__OUTPUTS({"factor", "f32[1]"}, {"hyper", "f32[5]"}),
    .attrs_bytes = sizeof(scaler_attrs),
    .mutates = 1u << SCALE | 1u << GROWTH_TRACKER | 1u << SKIPPED,
    .variants = scaler_variants,
    .reference = scaler_reference,
    .sample = scaler_sample,
};

// ---- building ---------------------------------------------------------------------------------------------

void clv_scaler_add(clv_graph *graph, const clv_scaler_config *config) {
    if (!graph || graph->error.status != CLV_OK) return;
    clv_scaler_config c = config ? *config : (clv_scaler_config){0};
    if (c.scale == 0) c.scale = 65536;
    if (c.growth == 0) c.growth = 2;
    if (c.backoff == 0) c.backoff = 0.5f;
    if (c.growth_interval == 0) c.growth_interval = 2000;
    const char *what = !(c.scale > 0 && isfinite(c.scale))     ? "scale must be above 0 and finite"
                       : !(c.growth > 1 && isfinite(c.growth)) ? "growth must be above 1 and finite"
                       : !(c.backoff > 0 && c.backoff < 1)     ? "backoff must be between 0 and 1"
                       : c.growth_interval < 1 || c.growth_interval > INT32_MAX
                           ? "growth_interval must be at least 1"
                           : NULL;
    if (what) {
        clv__graph_fail(graph, CLV_E_VALUE, "clv_scaler_add: %s", what);
        return;
    }
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (graph->nodes[i]->phase != CLV__BACKWARD) continue;
        clv__graph_fail(graph, CLV_E_STATE,
                        "clv_scaler_add: call it before clv_backward, which begins with the scale");
        return;
    }
    if (graph->scale) {
        clv__graph_fail(graph, CLV_E_STATE, "clv_scaler_add: the graph has a scaler already");
        return;
    }
    clv__desc one = clv__f32(CLV_SHAPE(1));
    const clv_init first = {CLV_INIT_UNIFORM, c.scale, c.scale}, zero = {.kind = CLV_INIT_ZEROS};
    graph->scaler = c;
    graph->scale = clv__persistent(graph, "scaler.scale", one, first, CLV_OPTIMIZER, false);
    graph->growth_tracker = clv__persistent(graph, "scaler.growth_tracker", one, zero, CLV_OPTIMIZER, false);
    graph->skipped = clv__persistent(graph, "scaler.skipped", one, zero, CLV_OPTIMIZER, false);
}

/** One of the trees over all gradients: a use for each, which the plan makes one of many. */
static clv_tensor *over_all(const clv__op *op, clv_graph *graph, clv_tensor *const *parameters, size_t n) {
    clv_tensor *total = NULL;
    for (size_t i = 0; i < n; i++) {
        graph->layer_override = parameters[i]->layer;
        clv_tensor *gradient = parameters[i]->part ? parameters[i]->part_gradient : parameters[i]->gradient;
        total = clv__node_add(op, NULL, (clv_tensor *[]){total, gradient}, 2, i == 0 ? 1u : 0);
    }
    graph->layer_override = "";
    return total;
}

clv__gradients clv__gradients_add(clv_graph *graph, clv_tensor *const *parameters, size_t n, float clip_norm,
                                  double log_beta1, double log_beta2) {
    clv__gradients out = {.hyper = graph->hyper};
    if (clip_norm > 0) {
        clv_tensor *inputs[] = {over_all(&clv__op_sum_squares, graph, parameters, n), graph->scale};
        out.factor = clv__node_add(&clv__op_clip_scale, &clip_norm, inputs, 2, 2u);
    }
    if (!graph->scale) return out;
    const clv_scaler_config *c = &graph->scaler;
    scaler_attrs attrs = {c->growth, c->backoff, (int)c->growth_interval, (float)log_beta1, (float)log_beta2};
    clv_tensor *count = over_all(&clv__op_count_nonfinite, graph, parameters, n);
    if (graph->over_ranks) count = clv__over_ranks(count, graph->over_ranks, false); // each counts its parts
    clv_tensor *inputs[] = {graph->scale, graph->growth_tracker, graph->skipped,
                            count,        graph->hyper,          out.factor};
    out.factor = clv__node_add(&clv__op_scaler_step, &attrs, inputs, 6, 1u << CLIP);
    out.hyper = clv__sibling(out.factor, 1);
    return out;
}
