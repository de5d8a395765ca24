// SPDX-License-Identifier: Apache-2.0
// Values that session tensors take: what an optimizer of a program's own has made of parameters and states, and running averages of
// parameters. It reads `hyper` and the factor of all gradients as the updates in optimizer.c do, and does nothing in a step in which
// those do nothing.
// Source of the average: torch.optim.swa_utils.AveragedModel, whose first update copies.
#include <stdio.h>
#include <string.h>

#include "cleave/optim.h"
#include "graph/signature.h"
#include "ops/update/custom_optimizer.h"
#include "ops/slices.h"

extern const clv__op clv__op_assign_update;

enum { HYPER, CLIP, FIRST };
enum { TARGET, VALUE, GROUP, MOST = 16 };

typedef struct assign_attrs {
    float keep, rest; // rest: 1 - keep
} assign_attrs;

static int at(int group, int which) {
    return FIRST + group * GROUP + which;
}

static const clv__sharing sharings[CLV__SHARINGS] = {{1, 1, 1}, {1, 2048, 16}, {CLV__SHARING_ITEMS, 1024, 4}};

static void lower(clv__launches *list, const clv__op_io *io) {
    const assign_attrs *a = io->attrs;
    const clv__sharing *share = clv__sharing_of(io, sharings);
    const int n = clv__groups_of(io), slices = clv__groups_most(io->op, list->device);
    int64_t groups = 0;
    for (int g = 0; g < n; g++) groups += clv__div_up(clv__numel(&io->in[at(g, TARGET)]), share->count);
    clv__launch *launch = clv__sharing_launch(list, io, "optimizer", "assign_update", share, groups);
    for (int g = 0; g < slices; g++) {
        clv__arg_in(list, launch, at(g, TARGET));
        clv__arg_in(list, launch, at(g, VALUE));
    }
    clv__arg_in(list, launch, HYPER);
    clv__arg_in(list, launch, CLIP);
    for (int g = 0; g < slices; g++)
        clv__arg_i32(list, launch, g < n ? clv__numel(&io->in[at(g, TARGET)]) : 0);
    CLV__ARGS(list, launch, io, NULL, CLV__INTS(clv__has_in(io, CLIP)), CLV__FLOATS(a->keep, a->rest));
}

static void reference(const clv__ref *ref) {
    const assign_attrs *a = ref->io->attrs;
    const bool mixes = a->keep > 0 && ref->in[HYPER][1] <= 0.5;
    if (ref->in[CLIP] && ref->in[CLIP][0] < 0) return;
    for (int g = 0; g < clv__groups_of(ref->io); g++) {
        double *target = ref->in[at(g, TARGET)];
        const double *value = ref->in[at(g, VALUE)];
        for (int64_t i = 0; i < clv__numel(&ref->io->in[at(g, TARGET)]); i++)
            target[i] = mixes ? (double)a->keep * target[i] + (double)a->rest * value[i] : value[i];
    }
}

static bool sample(const clv__op *op, int i, clv__sample *out) {
    (void)op;
    static const assign_attrs plain = {0, 1}, mean = {0.75f, 0.25f};
    static const struct {
        const char *label;
        int64_t n[4];
        int groups;
        const assign_attrs *attrs;
        bool first, clip, quick;
    } cases[] = {
        {"values are taken", {130}, 1, &plain, false, false, true},
        {"values are mixed", {17, 65, 1}, 3, &mean, false, true, true},
        {"mixed, first step", {64}, 1, &mean, true, false, true},
        {"mixed, one element", {1}, 1, &mean, false, false, false},
        {"mixed, 4097 elements", {4097}, 1, &mean, false, false, false},
        {"taken, several", {0, 8193, 0, 9001}, 4, &plain, false, true, false},
        {"mixed, several", {2049, 2, 1025, 31}, 4, &mean, false, false, false},
        {"taken, none", {0}, 1, &plain, false, false, false},
    };
    if (i < 0 || (size_t)i >= sizeof cases / sizeof *cases) return false;
    snprintf(out->label, sizeof out->label, "%s", cases[i].label);
    memcpy(out->attrs, cases[i].attrs, sizeof *cases[i].attrs);
    out->quick = cases[i].quick;
    out->n_in = FIRST + cases[i].groups * GROUP;
    out->in[HYPER] = clv__f32(CLV_SHAPE(CLV_HYPER_VALUES));
    out->fill[HYPER] =
        cases[i].first ? (clv__fill){CLV__FILL_UNIFORM, 0.6, 0.9} : (clv__fill){CLV__FILL_UNIFORM, 0.1, 0.4};
    if (cases[i].clip) out->in[CLIP] = clv__f32(CLV_SHAPE(1));
    out->fill[CLIP] = (clv__fill){CLV__FILL_UNIFORM, 0.1, 0.9};
    for (int k = FIRST; k < out->n_in; k++) out->in[k] = clv__f32(CLV_SHAPE(cases[i].n[(k - FIRST) / GROUP]));
    return true;
}

static bool split(const clv__op_io *io, int i, clv__split *out) {
    const clv_shape *shape = &io->in[at(0, TARGET)].shape;
    if (clv__groups_of(io) == 1) out->length = clv__split_length(shape, i);
    for (int k = FIRST; k < io->n_in; k++) out->in[k] = (int8_t)i;
    return i < shape->rank;
}

static void cost(const clv__op_io *io, clv__cost *out) {
    for (int g = 0; g < clv__groups_of(io); g++) {
        const double n = (double)clv__numel(&io->in[at(g, TARGET)]);
        out->flops += 3 * n;
        out->bytes += 12 * n;
    }
}

static const clv__variant variants[] = CLV__SHARING_VARIANTS(lower);

CLV__TRAIN_OP(assign_update) = {
    .name = "assign_update",
    .inputs = CLV__INPUTS({"hyper", "f32[5]"}, {"clip_factor", "f32[1]?"}, {"target", "f32[*]"},
                          {"value", "f32[*]"}),
    .outputs = CLV__NO_OUTPUTS,
    .attrs_bytes = sizeof(assign_attrs),
    .groups = {.first = FIRST, .size = GROUP, .most = MOST},
    .mutates = (((UINT64_C(1) << GROUP * MOST) - 1) / 3) << FIRST, // each group's target
    .variants = variants,
    .reference = reference,
    .sample = sample,
    .cost = cost,
    .split = split,
};

void clv_buffer_update(clv_tensor *buffer, clv_tensor *value) {
    if (!buffer || !value || buffer->graph->error.status != CLV_OK) return;
    clv_graph *graph = buffer->graph;
    char want[96], have[96];
    if (buffer->kind != CLV__PERSISTENT || buffer->trainable || buffer->values ||
        buffer->desc.dtype != CLV_DTYPE_F32) {
        clv__graph_fail(graph, CLV_E_VALUE, "'%.200s' is no buffer of f32, and takes no value", buffer->name);
    } else if (!graph->hyper) {
        clv__graph_fail(graph, CLV_E_STATE, "a buffer takes its value when an optimizer updates: '%.200s'",
                        buffer->name);
    } else if (value->desc.dtype != CLV_DTYPE_F32) {
        clv__graph_fail(graph, CLV_E_DTYPE, "'%.200s' is f32, and is to take %s", buffer->name,
                        clv_dtype_name(value->desc.dtype));
    } else if (!clv_shape_equal(&value->desc.shape, &buffer->desc.shape)) {
        clv__graph_fail(graph, CLV_E_SHAPE, "'%.200s' is %s, and is to take %s", buffer->name,
                        clv_shape_text(&buffer->desc.shape, want, sizeof want),
                        clv_shape_text(&value->desc.shape, have, sizeof have));
    } else {
        const clv__gradients all = {.factor = graph->update_factor, .hyper = graph->update_hyper};
        graph->phase = CLV__UPDATE;
        graph->layer_override = buffer->layer;
        clv__assign_add(buffer, value, 0, &all);
        graph->layer_override = NULL;
        graph->phase = CLV__FORWARD;
    }
}

void clv__assign_add(clv_tensor *target, clv_tensor *value, double keep, const clv__gradients *all) {
    const assign_attrs attrs = {(float)keep, (float)(1 - keep)};
    clv_tensor *inputs[] = {all->hyper, all->factor, target, value};
    clv__node_add(&clv__op_assign_update, &attrs, inputs, FIRST + GROUP, 1u << CLIP);
}
