// SPDX-License-Identifier: Apache-2.0
// For a layer whose program builds the same sources over and over: what a driver has made of a source is kept for the life of the
// process, and the next program of that source is made from it. The program above sees the calls that it makes. PoCL preprocesses a
// source at each build, also one whose kernels it has on disk: three quarters of the time of a short training.
#ifndef CLV_TESTS_DEVICE_KEPT_PROGRAMS_H
#define CLV_TESTS_DEVICE_KEPT_PROGRAMS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "device/layer.h"

enum { MOST_KEPT = 256 };

typedef struct kept_program {
    cl_device_id device;
    char *text, *options;
    bool
        other_options; // the text was built with others too: which are meant is not known when the program is made
    size_t bytes;
    unsigned char *binary;
} kept_program;

static struct {
    pthread_mutex_t lock;
    bool wanted;
    int n;
    kept_program items[MOST_KEPT];
    cl_api_clCreateProgramWithSource create; // the driver's
    cl_api_clBuildProgram build;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static inline kept_program *kept_find(cl_device_id device, const char *text) {
    for (int i = 0; i < kept.n; i++)
        if (kept.items[i].device == device && !strcmp(kept.items[i].text, text)) return &kept.items[i];
    return NULL;
}

/** A program of this source in a context of one device; NULL: the driver has to read the source. */
static inline cl_program kept_make(cl_context context, cl_uint n, const char **texts, cl_int *code) {
    cl_device_id devices[2];
    size_t bytes = 0;
    cl_program made = NULL;
    if (!kept.wanted || n != 1) return NULL;
    if (below.clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof devices, devices, &bytes) != CL_SUCCESS ||
        bytes != sizeof *devices)
        return NULL;
    pthread_mutex_lock(&kept.lock);
    const kept_program *item = kept_find(devices[0], texts[0]);
    if (item && !item->other_options) {
        const unsigned char *binary = item->binary;
        made = below.clCreateProgramWithBinary(context, 1, devices, &item->bytes, &binary, NULL, code);
    }
    pthread_mutex_unlock(&kept.lock);
    return made;
}

/** The source of a program, which the caller frees; NULL for one without. */
static inline char *kept_text(cl_program program) {
    size_t bytes = 0;
    if (below.clGetProgramInfo(program, CL_PROGRAM_SOURCE, 0, NULL, &bytes) != CL_SUCCESS || bytes < 2)
        return NULL;
    char *text = malloc(bytes);
    if (text && below.clGetProgramInfo(program, CL_PROGRAM_SOURCE, bytes, text, NULL) == CL_SUCCESS)
        return text;
    free(text);
    return NULL;
}

/** A program was built for a device: keep what it became, unless it is there. */
static inline void kept_take(cl_program program, cl_uint n, const cl_device_id *devices,
                             const char *options) {
    char *text = kept.wanted && n == 1 ? kept_text(program) : NULL;
    if (!text) return;
    pthread_mutex_lock(&kept.lock);
    kept_program *item = kept_find(devices[0], text);
    if (item) {
        item->other_options |= strcmp(item->options, options ? options : "") != 0;
    } else if (kept.n < MOST_KEPT) {
        kept_program new = {.device = devices[0], .text = text, .options = strdup(options ? options : "")};
        if (below.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof new.bytes, &new.bytes, NULL) ==
                CL_SUCCESS &&
            new.bytes &&new.options && (new.binary = malloc(new.bytes)) &&
            below.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof new.binary, &new.binary, NULL) ==
                CL_SUCCESS) {
            kept.items[kept.n++] = new;
            text = NULL;
        } else {
            free(new.options);
            free(new.binary);
        }
    }
    pthread_mutex_unlock(&kept.lock);
    free(text);
}

static inline cl_program CL_API_CALL kept_create(cl_context context, cl_uint n, const char **texts,
                                                 const size_t *sizes, cl_int *code) {
    cl_program made = sizes ? NULL : kept_make(context, n, texts, code);
    return made ? made : kept.create(context, n, texts, sizes, code);
}

static inline cl_int CL_API_CALL kept_build(cl_program program, cl_uint n, const cl_device_id *devices,
                                            const char *options, void(CL_CALLBACK *done)(cl_program, void *),
                                            void *user) {
    cl_int code = kept.build(program, n, devices, options, done, user);
    if (code == CL_SUCCESS) kept_take(program, n, devices, options);
    return code;
}

/** In clInitLayer, after layer_begin: puts itself between the layer and what lies below. */
static inline void kept_begin(void) {
    kept.create = below.clCreateProgramWithSource;
    kept.build = below.clBuildProgram;
    below.clCreateProgramWithSource = kept_create;
    below.clBuildProgram = kept_build;
}

#endif
