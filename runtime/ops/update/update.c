// SPDX-License-Identifier: Apache-2.0
// What optimizers' ops have in common. What is here knows of no optimizer but its betas.
#include "ops/update/update.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"

enum { HYPER = CLV__UPDATE_HYPER, CLIP = CLV__UPDATE_CLIP, FIRST = CLV__UPDATE_FIRST };
enum { PARAM = CLV__UPDATE_PARAM, GRAD, TERM, STATE };

static const clv__sharing sharings[CLV__SHARINGS] = {{1, 1, 1}, {1, 2048, 16}, {CLV__SHARING_ITEMS, 1024, 4}};

const clv__sharing *clv__update_sharing(const clv__op_io *io) {
    return clv__sharing_of(io, sharings);
}

clv__launch *clv__update_launch_slices(clv__launches *list, const clv__op_io *io, const char *entry,
                                       const int *order, int64_t *parts) {
    const clv__sharing *share = clv__update_sharing(io);
    const int n = clv__groups_of(io), slices = clv__groups_most(io->op, list->device);
    int64_t groups = 0;
    for (int g = 0; g < n; g++) groups += clv__div_up(clv__update_numel(io, g), share->count);
    *parts = groups;
    clv__launch *launch = clv__sharing_launch(list, io, "optimizer", entry, share, groups);
    for (int g = 0; g < slices; g++) {
        for (const int *which = order; *which >= 0; which++)
            clv__arg_in(list, launch, clv__update_at(io, g, *which));
    }
    clv__arg_in(list, launch, HYPER);
    clv__arg_in(list, launch, CLIP);
    for (int g = 0; g < slices; g++) clv__arg_i32(list, launch, g < n ? clv__update_numel(io, g) : 0);
    clv__arg_i32(list, launch, clv__has_in(io, CLIP));
    return launch;
}

clv__launch *clv__update_launch(clv__launches *list, const clv__op_io *io, const char *entry,
                                const int *order) {
    int64_t parts;
    clv__launch *launch = clv__update_launch_slices(list, io, entry, order, &parts);
    clv__arg_i32(list, launch, clv__has_in(io, clv__update_at(io, 0, TERM)));
    return launch;
}

double clv__update_gradient(const clv__ref *ref, int group, int64_t i) {
    double *const *in = &ref->in[clv__update_at(ref->io, group, 0)];
    return in[TERM] ? in[GRAD][i] + in[TERM][i] : in[GRAD][i];
}

void clv__update_reference(const clv__ref *ref) {
    const clv__update *update = ref->io->op->data;
    const double factor = ref->in[CLIP] ? ref->in[CLIP][0] : 1;
    for (int g = 0; factor >= 0 && g < clv__groups_of(ref->io); g++) update->slice(ref, g, factor);
}

void clv__update_cost(const clv__op_io *io, clv__cost *cost) {
    for (int g = 0; g < clv__groups_of(io); g++) {
        double n = (double)clv__update_numel(io, g);
        int states = 0;
        for (int i = STATE; i < io->op->groups.size; i++) states += clv__has_in(io, clv__update_at(io, g, i));
        cost->flops += (4 + 6 * states) * n;
        cost->bytes += 4 * n * (3 + 2 * states + clv__has_in(io, clv__update_at(io, g, TERM)));
    }
}

bool clv__update_split(const clv__op_io *io, int i, clv__split *out) {
    const clv_shape *shape = &io->in[clv__update_at(io, 0, PARAM)].shape;
    if (clv__groups_of(io) == 1) out->length = clv__split_length(shape, i);
    for (int k = FIRST; k < io->n_in; k++)
        if (clv__has_in(io, k)) out->in[k] = (int8_t)i;
    return i < shape->rank;
}

/** Sizes of the parameters of a sample. */
static const struct update_shapes {
    bool quick;
    int64_t n[11];
    int groups; // those of no elements included
} shapes[] = {
    {true, {130}, 1},
    {true, {17, 65, 1}, 3},
    {false, {1}, 1},
    {false, {2}, 1},
    {false, {63}, 1},
    {false, {64}, 1},
    {false, {65}, 1},
    {false, {4097}, 1},
    {false, {9001}, 1},
    {false, {0}, 1},
    {false, {0, 8193, 0, 16, 4096, 0}, 6},
    {false, {100, 1, 4097, 2, 33, 64}, 6},
    {false, {100, 1, 9001, 2, 33, 0}, 6},
    {false, {3, 1, 257, 1025, 7, 0, 64, 1023, 5, 2, 1}, 11},
};

bool clv__update_sample(const clv__op *op, int i, clv__sample *out) {
    const clv__update_case *cases = ((const clv__update *)op->data)->cases;
    int n_cases = 0;
    while (cases[n_cases].label) n_cases++;
    if (i < 0 || i >= n_cases * (int)(sizeof shapes / sizeof *shapes)) return false;
    const struct update_shapes *s = &shapes[i / n_cases];
    const clv__update_case *c = &cases[i % n_cases];
    const clv__groups *groups = &op->groups;
    const int n_groups = s->groups < groups->most ? s->groups : groups->most;
    int n = snprintf(out->label, sizeof out->label, "%s,", c->label);
    for (int g = 0; g < n_groups; g++)
        n += snprintf(out->label + n, sizeof out->label - (size_t)n, " %lld", (long long)s->n[g]);
    snprintf(out->label + n, sizeof out->label - (size_t)n, " elements");
    memcpy(out->attrs, c->attrs, op->attrs_bytes);
    out->quick = s->quick;
    out->n_in = groups->first + n_groups * groups->size;
    out->in[HYPER] = clv__f32(CLV_SHAPE(CLV_HYPER_VALUES));
    out->fill[HYPER] =
        c->first ? (clv__fill){CLV__FILL_UNIFORM, 0.6, 0.9} : (clv__fill){CLV__FILL_UNIFORM, 0.1, 0.4};
    if (c->clip) out->in[CLIP] = clv__f32(CLV_SHAPE(1));
    out->fill[CLIP] = (clv__fill){CLV__FILL_UNIFORM, 0.1, 0.9};
    for (int k = groups->first; k < out->n_in; k++) {
        const int group = (k - groups->first) / groups->size, which = (k - groups->first) % groups->size;
        const unsigned state = which < STATE ? 0 : 1u << (which - STATE);
        if (which == TERM ? c->terms : which < STATE || (c->states & state))
            out->in[k] = clv__f32(CLV_SHAPE(s->n[group]));
        if (c->positive & state) out->fill[k] = (clv__fill){CLV__FILL_UNIFORM, 0.05, 1};
        if (c->small & state) out->fill[k] = (clv__fill){CLV__FILL_UNIFORM, -0.1, 0.1};
    }
    return true;
}

double clv__update_decimal(float value) {
    char text[32];
    clv__format(text, sizeof text, "%.7g", (double)value);
    double written = clv__number_read(text, NULL);
    return (float)written == value ? written : (double)value;
}

double clv__update_beta1(const clv_optimizer_config *config) {
    return clv__update_or(config->beta1, 0.9);
}
double clv__update_beta2(const clv_optimizer_config *config) {
    return clv__update_or(config->beta2, config->kind == CLV_LION ? 0.99 : 0.999);
}

clv_tensor *clv__update_state(const clv_tensor *parameter, const char *state) {
    char name[1200];
    clv_graph *graph = parameter->graph;
    int n = snprintf(name, sizeof name, "%s.%s", parameter->name, state);
    if (n < 0 || (size_t)n >= sizeof name) {
        return clv__graph_fail(graph, CLV_E_VALUE, "the name '%s.%s' is too long", parameter->name, state);
    }
    const clv_tensor *like = parameter->part ? parameter->part : parameter;
    clv_tensor *kept =
        clv__persistent(graph, name, like->desc, (clv_init){.kind = CLV_INIT_ZEROS}, CLV_OPTIMIZER, false);
    if (kept && parameter->part) kept->is_part = true, kept->whole = parameter->desc.shape;
    return kept;
}

void clv__update_add(const clv__op *op, const void *attrs, clv_tensor *parameter, const clv__gradients *all,
                     clv_tensor *const *states, int n) {
    clv_tensor *inputs[FIRST + STATE + 3] = {
        all->hyper, all->factor, parameter->part ? parameter->part : parameter,
        parameter->part ? parameter->part_gradient : parameter->gradient};
    uint64_t optional = 1u << CLIP | 1u << (FIRST + TERM);
    for (int i = 0; i < n; i++) {
        inputs[FIRST + STATE + i] = states[i];
        if (!states[i]) optional |= 1u << (FIRST + STATE + i);
    }
    clv__node_add(op, attrs, inputs, FIRST + STATE + n, optional);
}
