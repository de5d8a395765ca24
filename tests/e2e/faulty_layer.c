// SPDX-License-Identifier: Apache-2.0
// An OpenCL layer (OPENCL_LAYERS) that makes the compiler faulty: with CLV_TEST_REPLACE='FROM=>TO' it takes every FROM in a
// program's source for TO.
#include <stdlib.h>

#include "device/layer.h"

/** A copy with every FROM replaced. */
static char *changed(const char *text, size_t n, const char *from, size_t from_n, const char *to) {
    size_t to_n = strlen(to), used = 0;
    char *out = malloc(n * (to_n + 1) + to_n + 1);
    for (size_t i = 0; out && i < n;) {
        if (from_n && n - i >= from_n && !memcmp(text + i, from, from_n)) {
            memcpy(out + used, to, to_n);
            used += to_n;
            i += from_n;
        } else {
            out[used++] = text[i++];
        }
    }
    if (out) out[used] = 0;
    return out;
}

static cl_program CL_API_CALL my_clCreateProgramWithSource(cl_context context, cl_uint n, const char **texts,
                                                           const size_t *sizes, cl_int *code) {
    const char *how = getenv("CLV_TEST_REPLACE"), *arrow = how ? strstr(how, "=>") : NULL;
    if (!arrow) return below.clCreateProgramWithSource(context, n, texts, sizes, code);
    char **all = calloc(n + 1, sizeof *all);
    if (!all) abort();
    for (cl_uint i = 0; i < n; i++) {
        size_t bytes = sizes && sizes[i] ? sizes[i] : strlen(texts[i]);
        if (!(all[i] = changed(texts[i], bytes, how, (size_t)(arrow - how), arrow + 2))) abort();
    }
    cl_program program = below.clCreateProgramWithSource(context, n, (const char **)all, NULL, code);
    for (cl_uint i = 0; i < n; i++) free(all[i]);
    free(all);
    return program;
}

LAYER("clv faulty compiler") {
    LAYER_TAKE(clCreateProgramWithSource)
    return CL_SUCCESS;
}
