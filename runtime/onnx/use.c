// SPDX-License-Identifier: Apache-2.0
// A node while it is built: failures, attributes, results.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "device/device.h"
#include "graph/graph.h"
#include "onnx/import.h"

// ---- failures -------------------------------------------------------------------------------------------------------

bool clv__onnx_failed(const clv__onnx_use *use) {
    return use->graph->error.status != CLV_OK;
}

void clv__onnx_fail(clv__onnx_use *use, clv_status status, const char *format, ...) {
    if (clv__onnx_failed(use)) return;
    char text[CLV__ERROR_BYTES / 2];
    clv__onnx_node_text node;
    va_list args;
    va_start(args, format);
    clv__format_list(text, sizeof text, format, args);
    va_end(args);
    clv__graph_fail(use->graph, status, "%s: %s", clv__onnx_node_shown(use->node, &node), text);
}

bool clv__onnx_is_float(int type) {
    return type == CLV__ONNX_FLOAT || type == CLV__ONNX_FLOAT16 || type == CLV__ONNX_DOUBLE ||
           type == CLV__ONNX_BFLOAT16;
}

bool clv__onnx_of_floats(const clv__onnx_use *use) {
    return use->n_in > 0 && use->in[0] && clv__onnx_is_float(use->in[0]->type);
}

// ---- attributes -----------------------------------------------------------------------------------------------------

int64_t clv__onnx_int(const clv__onnx_use *use, const char *name, int64_t fallback) {
    const clv__onnx_attribute *one = clv__onnx_attribute_find(use->node, name);
    const int64_t is = one ? one->i : fallback;
    return is > CLV__ONNX_FAR ? CLV__ONNX_FAR : is < -CLV__ONNX_FAR ? -CLV__ONNX_FAR : is;
}

double clv__onnx_real(const clv__onnx_use *use, const char *name, double fallback) {
    const clv__onnx_attribute *one = clv__onnx_attribute_find(use->node, name);
    return one ? (double)one->f : fallback;
}

bool clv__onnx_word(const clv__onnx_use *use, const char *name, const char *word, bool is_default) {
    const clv__onnx_attribute *one = clv__onnx_attribute_find(use->node, name);
    return one ? one->s.n == strlen(word) && !memcmp(one->s.data, word, one->s.n) : is_default;
}

int clv__onnx_ints(clv__onnx_use *use, const char *name, int64_t *out, int most) {
    const clv__onnx_attribute *one = clv__onnx_attribute_find(use->node, name);
    if (!one) return 0;
    if (one->n > (size_t)most) {
        clv__onnx_fail(use, CLV_E_VALUE, "%s has %zu numbers, and %d are the most", name, one->n, most);
        return 0;
    }
    for (size_t i = 0; i < one->n; i++)
        out[i] = one->ints[i] > CLV__ONNX_FAR    ? CLV__ONNX_FAR
                 : one->ints[i] < -CLV__ONNX_FAR ? -CLV__ONNX_FAR
                                                 : one->ints[i];
    return (int)one->n;
}

int clv__onnx_axis(clv__onnx_use *use, int64_t axis, int rank) {
    if (axis < -rank || axis >= rank) {
        clv__onnx_fail(use, CLV_E_VALUE, "axis %lld of rank %d", (long long)axis, rank);
        return 0;
    }
    return (int)(axis < 0 ? axis + rank : axis);
}

// ---- outputs --------------------------------------------------------------------------------------------------------

void clv__onnx_give_type(clv__onnx_use *use, int i, clv_tensor *tensor, int type) {
    if (i >= use->n_out || !use->out[i]) return;
    use->out[i]->tensor = tensor;
    use->out[i]->type = type;
}

void clv__onnx_give(clv__onnx_use *use, int i, clv_tensor *tensor) {
    clv__onnx_give_type(use, i, tensor, use->n_in && use->in[0] ? use->in[0]->type : CLV__ONNX_FLOAT);
}

clv__known *clv__onnx_room_for(clv__onnx_use *use, int type, clv_shape shape) {
    const int64_t n = clv_shape_numel(&shape);
    clv__known *known = n >= 0 ? clv__arena_alloc(&use->graph->arena, 1, sizeof *known) : NULL;
    if (known)
        *known =
            (clv__known){type, shape, clv__arena_alloc(&use->graph->arena, (size_t)n + 1, sizeof(double))};
    if (!known || !known->v) {
        clv__onnx_fail(use, CLV_E_HOST_MEMORY, "no memory for %lld numbers", (long long)n);
        return NULL;
    }
    return known;
}

/** May so many more numbers be made? */
static bool take(clv__onnx_use *use, int64_t n) {
    if (n >= 0 && n <= *use->known_left) {
        *use->known_left -= n;
        return true;
    }
    clv__onnx_fail(use, CLV_E_UNSUPPORTED,
                   "it makes %lld numbers while the graph is built, and all nodes together make %lld at most",
                   (long long)n, (long long)CLV__KNOWN_IN_ALL);
    return false;
}

clv__known *clv__onnx_new_known(clv__onnx_use *use, int type, clv_shape shape) {
    return take(use, clv_shape_numel(&shape)) ? clv__onnx_room_for(use, type, shape) : NULL;
}

int64_t *clv__onnx_indices(clv__onnx_use *use, int64_t n) {
    if (!take(use, n)) return NULL;
    int64_t *index = clv__arena_alloc(&use->graph->arena, (size_t)n + 1, sizeof *index);
    if (!index) clv__onnx_fail(use, CLV_E_HOST_MEMORY, "no memory for %lld numbers", (long long)n);
    return index;
}

void clv__onnx_give_known(clv__onnx_use *use, int i, const clv__known *known) {
    if (i >= use->n_out || !use->out[i] || !known) return;
    use->out[i]->known = known;
    use->out[i]->type = known->type;
}

// ---- tensors --------------------------------------------------------------------------------------------------------

clv_tensor *clv__onnx_as_float(clv_tensor *x) {
    return x && !clv__onnx_tensor_is_float(x) ? clv_cast(x, CLV_DTYPE_F32) : x;
}

clv_tensor *clv__onnx_as_i32(clv_tensor *x) {
    return x && clv__onnx_tensor_is_float(x) ? clv_cast(x, CLV_DTYPE_I32) : x;
}

clv_tensor *clv__onnx_constant(clv__onnx_use *use, const clv__known *known) {
    const int64_t n = clv_shape_numel(&known->shape);
    const bool is_float = clv__onnx_is_float(known->type);
    void *data = clv__arena_alloc(&use->graph->arena, (size_t)n + 1, 4);
    if (!data) {
        clv__onnx_fail(use, CLV_E_HOST_MEMORY, "no memory for %lld numbers", (long long)n);
        return NULL;
    }
    for (int64_t i = 0; i < n; i++) {
        const double value = known->v[i];
        if (is_float)
            ((float *)data)[i] = (float)value;
        else // what is past the ends of i32 stands for an end
            ((int32_t *)data)[i] = value >= 2147483647.0    ? INT32_MAX
                                   : value <= -2147483648.0 ? INT32_MIN
                                                            : (int32_t)value;
    }
    return clv_constant(use->graph, is_float ? CLV_DTYPE_F32 : CLV_DTYPE_I32, known->shape, data);
}
