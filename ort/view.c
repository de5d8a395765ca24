// SPDX-License-Identifier: Apache-2.0
// A graph of ONNX Runtime as arrays: nodes, and values by number.
#include <stdlib.h>
#include <string.h>

#include "provider.h"

static size_t slot_of(const char *name, int n_slots) {
    uint64_t hash = 1469598103934665603u; // FNV-1a
    for (; *name; name++) hash = (hash ^ (uint8_t)*name) * 1099511628211u;
    return (size_t)(hash % (uint64_t)n_slots);
}

/** Where a name is, or would be. */
static int *place_of(const view *v, const char *name) {
    size_t at = slot_of(name, v->n_slots);
    while (v->slots[at] >= 0 && strcmp(v->values[v->slots[at]].name, name) != 0)
        at = (at + 1) % (size_t)v->n_slots;
    return &v->slots[at];
}

int view_find(const view *v, const char *name) {
    return v->n_slots ? *place_of(v, name) : -1;
}

/** Room for one more value; false: no memory. */
static bool grow(view *v) {
    if (v->n_values < v->room) return true;
    const int room = v->room ? 2 * v->room : 256;
    view_value *values = realloc(v->values, (size_t)room * sizeof *values);
    if (values) v->values = values;
    int *slots = malloc((size_t)room * 2 * sizeof *slots);
    if (!values || !slots) {
        free(slots);
        return false;
    }
    free(v->slots);
    v->slots = slots;
    v->n_slots = 2 * room;
    v->room = room;
    for (int i = 0; i < v->n_slots; i++) slots[i] = -1;
    for (int i = 0; i < v->n_values; i++) *place_of(v, v->values[i].name) = i;
    return true;
}

/** Type and shape, if it is a tensor. */
static OrtStatus *read_type(const factory *f, view_value *value) {
    const OrtTypeInfo *type = NULL;
    const OrtTensorTypeAndShapeInfo *info = NULL;
    ONNXTensorElementDataType element = 0;
    size_t rank = 0;
    ORT_TRY(f->ort.GetValueInfoTypeInfo(value->info, &type));
    if (!type || !passed(f, f->ort.CastTypeInfoToTensorInfo(type, &info)) || !info) return NULL;
    ORT_TRY(f->ort.GetTensorElementType(info, &element));
    ORT_TRY(f->ort.GetDimensionsCount(info, &rank));
    value->type = (int)element;
    value->rank = rank <= CLV_MAX_RANK ? (int)rank : -1;
    if (value->rank < 1) return NULL;
    ORT_TRY(f->ort.GetDimensions(info, value->dims, rank));
    return f->ort.GetSymbolicDimensions(info, value->symbols, rank);
}

/** The number of a value, which is read when it is new. */
static OrtStatus *take_value(view *v, const OrtValueInfo *info, int *out) {
    const factory *f = v->factory;
    const char *name = NULL;
    *out = -1;
    if (!info) return NULL;
    ORT_TRY(f->ort.GetValueInfoName(info, &name));
    if (!name || !*name) return NULL;
    if (!grow(v)) return no_memory(f);
    int *place = place_of(v, name);
    if (*place < 0) {
        *place = v->n_values;
        view_value *value = &v->values[v->n_values++];
        *value = (view_value){.name = name, .info = info, .maker = -1, .rank = -1};
        ORT_TRY(f->ort.ValueInfo_IsConstantInitializer(info, &value->constant));
        ORT_TRY(read_type(f, value));
    }
    *out = *place;
    return NULL;
}

typedef OrtStatus *(*count_of)(const OrtNode *node, size_t *out);
typedef OrtStatus *(*list_of)(const OrtNode *node, const OrtValueInfo **out, size_t n);

static OrtStatus *take_list(view *v, const OrtNode *node, count_of count, list_of list, int **out,
                            int *n_out) {
    size_t n = 0;
    ORT_TRY(count(node, &n));
    const OrtValueInfo **infos = calloc(n + 1, sizeof *infos);
    *out = calloc(n + 1, sizeof **out);
    OrtStatus *status = infos && *out ? NULL : no_memory(v->factory);
    if (!status) status = list(node, infos, n);
    for (size_t i = 0; !status && i < n; i++) status = take_value(v, infos[i], &(*out)[i]);
    free(infos);
    if (!status) *n_out = (int)n;
    return status;
}

static OrtStatus *take_node(view *v, int index, const OrtNode *from) {
    const ort_functions *ort = &v->factory->ort;
    view_node *node = &v->nodes[index];
    size_t graphs = 0;
    node->node = from;
    ORT_TRY(ort->Node_GetOperatorType(from, &node->op));
    ORT_TRY(ort->Node_GetDomain(from, &node->domain));
    ORT_TRY(take_list(v, from, ort->Node_GetNumInputs, ort->Node_GetInputs, &node->in, &node->n_in));
    ORT_TRY(take_list(v, from, ort->Node_GetNumOutputs, ort->Node_GetOutputs, &node->out, &node->n_out));
    ORT_TRY(take_list(v, from, ort->Node_GetNumImplicitInputs, ort->Node_GetImplicitInputs, &node->inner,
                      &node->n_inner));
    ORT_TRY(ort->Node_GetNumSubgraphs(from, &graphs));
    node->has_graphs = graphs > 0;
    for (int i = 0; i < node->n_out; i++)
        if (node->out[i] >= 0) v->values[node->out[i]].maker = index;
    return NULL;
}

static OrtStatus *take_all(view *v) {
    const ort_functions *ort = &v->factory->ort;
    size_t n = 0, n_outputs = 0;
    ORT_TRY(ort->Graph_GetNumNodes(v->graph, &n));
    ORT_TRY(ort->Graph_GetNumOutputs(v->graph, &n_outputs));
    const OrtNode **nodes = calloc(n + 1, sizeof *nodes);
    const OrtValueInfo **outputs = calloc(n_outputs + 1, sizeof *outputs);
    v->nodes = calloc(n + 1, sizeof *v->nodes);
    OrtStatus *status = nodes && outputs && v->nodes ? NULL : no_memory(v->factory);
    if (!status) status = ort->Graph_GetNodes(v->graph, nodes, n);
    if (!status) v->n_nodes = (int)n;
    for (size_t i = 0; !status && i < n; i++) status = take_node(v, (int)i, nodes[i]);
    if (!status) status = ort->Graph_GetOutputs(v->graph, outputs, n_outputs);
    for (size_t i = 0; !status && i < n_outputs; i++) {
        int value;
        status = take_value(v, outputs[i], &value);
        if (!status && value >= 0) v->values[value].result = true;
    }
    free(nodes);
    free(outputs);
    return status;
}

OrtStatus *view_read(const factory *f, const OrtGraph *graph, view *out) {
    *out = (view){.factory = f, .graph = graph};
    OrtStatus *status = take_all(out);
    if (status) view_reset(out);
    return status;
}

void view_reset(view *v) {
    for (int i = 0; v->nodes && i < v->n_nodes; i++) {
        free(v->nodes[i].in);
        free(v->nodes[i].out);
        free(v->nodes[i].inner);
    }
    free(v->nodes);
    free(v->values);
    free(v->slots);
    *v = (view){0};
}
