// SPDX-License-Identifier: Apache-2.0
// LoRA: beside a weight W [out, in] two small ones, A [rank, in] and B [out, rank], and  y = W x + alpha / rank * B A x.
// First values and names are PEFT's: A uniform within 1/sqrt(in), which is kaiming_uniform(a = sqrt(5)), and B zero, so that a training
// begins with what W alone does.
// Every linear layer, whatever model or file it is of, is a linear or a matmul of a parameter: these two call clv__lora_add.
// Sources: Hu et al. 2021, arXiv:2106.09685, section 4.1; peft.LoraConfig.
#include "ops/product/lora.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/modules.h"
#include "cleave/ops.h"
#include "ops/product/matmul.h"

void clv__lora_begin(clv_graph *graph, const char *layers, int64_t rank, double alpha) {
    if (!layers || graph->error.status != CLV_OK) return;
    if (rank < 0 || rank > INT32_MAX) {
        clv__graph_fail(graph, CLV_E_VALUE, "lora '%s': the rank must be at least 1, or 0 for 8 (it is %lld)",
                        layers, (long long)rank);
        return;
    }
    if (!(alpha >= 0) || !isfinite(alpha)) {
        clv__graph_fail(graph, CLV_E_VALUE, "lora '%s': alpha must be at least 0 (it is %g)", layers, alpha);
        return;
    }
    graph->lora = clv__arena_strdup(&graph->arena, layers);
    if (!graph->lora) clv__graph_fail(graph, CLV_E_HOST_MEMORY, "no host memory for the graph");
    graph->lora_rank = clv__lora_rank(rank);
    graph->lora_scale = (float)clv__lora_scale(rank, alpha);
}

/** The pattern covers the name, or a module by its last names. */
static bool covers(const char *pattern, const char *name) {
    char last[CLV__PATTERN_BYTES + 2];
    snprintf(last, sizeof last, "*.%s", pattern);
    return clv__pattern_covers(pattern, name) || clv__pattern_covers(last, name);
}

static bool any_covers(const char *patterns, const char *name) {
    char pattern[CLV__PATTERN_BYTES];
    while (clv__patterns_take(&patterns, pattern))
        if (covers(pattern, name)) return true;
    return false;
}

void clv__lora_end(clv_graph *graph) {
    char pattern[CLV__PATTERN_BYTES];
    if (!graph->lora || graph->error.status != CLV_OK) return;
    for (const char *rest = graph->lora; clv__patterns_take(&rest, pattern);) {
        clv__nearest nearest = {.word = pattern};
        bool found = false;
        for (size_t i = 0; i < graph->n_tensors; i++) {
            const clv_tensor *tensor = graph->tensors[i];
            if (!tensor->trainable || clv__lora_is(tensor->name)) continue;
            clv__nearest_offer_modules(&nearest, tensor->name);
            found |= tensor->adapted && covers(pattern, tensor->name);
        }
        if (found) continue;
        clv__graph_fail(graph, CLV_E_NOT_FOUND, "lora: no linear layer matches '%s'%s", pattern,
                        clv__nearest_text(&nearest));
        return;
    }
}

bool clv__lora_name(const char *weight, char which, char *name, size_t bytes) {
    static const char tail[] = "weight";
    const size_t length = strlen(weight), n = sizeof tail - 1;
    const bool ends =
        length >= n && !strcmp(weight + length - n, tail) && (length == n || weight[length - n - 1] == '.');
    const int stem = (int)(ends ? length - n : length); // with its dot, if `ends`
    const int used = snprintf(name, bytes, "%.*s%slora_%c.weight", stem, weight, ends ? "" : ".", which);
    return used > 0 && (size_t)used < bytes;
}

bool clv__lora_is(const char *name) {
    static const char *const tails[] = {"lora_A.weight", "lora_B.weight"};
    const size_t length = strlen(name), n = strlen(tails[0]);
    if (length < n || (length > n && name[length - n - 1] != '.')) return false;
    return !strcmp(name + length - n, tails[0]) || !strcmp(name + length - n, tails[1]);
}

/** The adapter's part, a parameter of the weight's layer; NULL: the graph has failed. */
static clv_tensor *part_of(clv_tensor *weight, char which, clv_shape shape, clv_init init) {
    char name[1200];
    if (!clv__lora_name(weight->name, which, name, sizeof name))
        return clv__graph_fail(weight->graph, CLV_E_VALUE, "lora: the name '%.1000s' is too long",
                               weight->name);
    clv_tensor *part = clv__persistent(weight->graph, name, clv__f32(shape), init, CLV_PARAMETERS, true);
    if (part) part->layer = weight->layer;
    return part;
}

clv_tensor *clv__lora_add(clv_tensor *y, clv_tensor *x, clv_tensor *weight, bool in_out) {
    if (!y || !y->graph->lora || y->graph->phase != CLV__FORWARD) return y;
    clv_graph *graph = y->graph;
    const clv__node *node = weight->node; // files of ONNX turn a weight round
    if (node && weight->desc.shape.rank == 2 && !strcmp(node->io.op->name, "permute")) {
        weight = node->in[0];
        in_out = !in_out;
    }
    const clv_shape *shape = &weight->desc.shape;
    if (weight->kind != CLV__PERSISTENT || !weight->trainable || shape->rank != 2 ||
        !any_covers(graph->lora, weight->name))
        return y;
    const int64_t rank = graph->lora_rank, in = shape->dims[!in_out], out = shape->dims[in_out];
    const float bound = in > 0 ? (float)(1 / sqrt((double)in)) : 0;
    clv_tensor *a = part_of(weight, 'A', CLV_SHAPE(rank, in), (clv_init){CLV_INIT_UNIFORM, -bound, bound}),
               *b = part_of(weight, 'B', CLV_SHAPE(out, rank), (clv_init){.kind = CLV_INIT_ZEROS});
    weight->adapted = true;
    weight->in_out = in_out;
    x = clv__linear_node(x, a, NULL);
    if (graph->lora_scale != 1) x = clv_mul_scalar(x, graph->lora_scale);
    return clv_add(y, clv__linear_node(x, b, NULL));
}
