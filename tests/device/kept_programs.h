// SPDX-License-Identifier: Apache-2.0
// For a layer whose program makes the same devices, contexts and programs over and over: what a driver has made is kept for the life of
// the process and given out again. The program above sees the calls that it makes. A driver reads a source at each build, also one whose
// kernels it has on disk: nine tenths of the time of a short training.
#ifndef CLV_TESTS_DEVICE_KEPT_PROGRAMS_H
#define CLV_TESTS_DEVICE_KEPT_PROGRAMS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "device/layer.h"

enum { MOST_KEPT = 256, MOST_PARTS = 16, MOST_PARTITION = 16 };

typedef struct kept_parts {
    cl_device_id whole;
    cl_device_partition_property how[MOST_PARTITION];
    cl_uint n;
    cl_device_id ids[MOST_PARTS];
} kept_parts;

typedef struct kept_context {
    cl_device_id device;
    cl_context context;
} kept_context;

typedef struct kept_program {
    cl_context context;
    char *text;
    cl_program program;
    char *options; // by which it was built; NULL: not built
} kept_program;

static struct {
    pthread_mutex_t lock;
    bool wanted;
    int n_parts, n_contexts, n_programs;
    kept_parts parts[MOST_PARTS];
    kept_context contexts[MOST_PARTS];
    kept_program programs[MOST_KEPT];
    cl_api_clCreateSubDevices cut; // the driver's
    cl_api_clCreateContext create_context;
    cl_api_clCreateProgramWithSource create;
    cl_api_clBuildProgram build;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/** Properties of a partition, in room of a fixed size, zeros behind them; false: there are too many. */
static inline bool kept_copy(const cl_device_partition_property *how, cl_device_partition_property *out) {
    memset(out, 0, MOST_PARTITION * sizeof *out);
    for (int i = 0; i < MOST_PARTITION; i++) {
        if (i >= 1 && how[i] == 0 && (how[0] != CL_DEVICE_PARTITION_BY_COUNTS || i >= 2)) return true;
        out[i] = how[i];
    }
    return false;
}

static inline cl_int CL_API_CALL kept_cut(cl_device_id whole, const cl_device_partition_property *how,
                                          cl_uint n, cl_device_id *ids, cl_uint *count) {
    cl_device_partition_property copy[MOST_PARTITION];
    cl_int code = CL_SUCCESS;
    if (!kept.wanted || !ids || n > MOST_PARTS || !kept_copy(how, copy))
        return kept.cut(whole, how, n, ids, count);
    pthread_mutex_lock(&kept.lock);
    kept_parts *item = kept.parts, *end = item + kept.n_parts;
    while (item < end && (item->whole != whole || item->n > n || memcmp(item->how, copy, sizeof copy) != 0))
        item++;
    if (item == end) {
        cl_uint made = 0;
        code = kept.cut(whole, how, n, ids, &made);
        if (code == CL_SUCCESS && kept.n_parts < MOST_PARTS) {
            kept.n_parts++;
            *item = (kept_parts){.whole = whole, .n = made};
            memcpy(item->how, copy, sizeof copy);
            memcpy(item->ids, ids, made * sizeof *ids);
            end = item + 1;
        } else if (count) {
            *count = made;
        }
    }
    if (item < end) {
        for (cl_uint i = 0; i < item->n; i++) below.clRetainDevice(ids[i] = item->ids[i]);
        if (count) *count = item->n;
    }
    pthread_mutex_unlock(&kept.lock);
    return code;
}

static inline cl_context CL_API_CALL kept_create_context(
    const cl_context_properties *properties, cl_uint n, const cl_device_id *ids,
    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user, cl_int *code) {
    if (!kept.wanted || n != 1 || notify) return kept.create_context(properties, n, ids, notify, user, code);
    pthread_mutex_lock(&kept.lock);
    cl_context context = NULL;
    for (int i = 0; i < kept.n_contexts; i++)
        if (kept.contexts[i].device == ids[0]) context = kept.contexts[i].context;
    if (context) {
        *code = CL_SUCCESS;
        below.clRetainContext(context);
    } else {
        context = kept.create_context(properties, n, ids, notify, user, code);
        if (context && kept.n_contexts < MOST_PARTS) {
            kept.contexts[kept.n_contexts++] = (kept_context){ids[0], context};
            below.clRetainContext(context);
        }
    }
    pthread_mutex_unlock(&kept.lock);
    return context;
}

static inline cl_program CL_API_CALL kept_create(cl_context context, cl_uint n, const char **texts,
                                                 const size_t *sizes, cl_int *code) {
    if (!kept.wanted || n != 1 || sizes) return kept.create(context, n, texts, sizes, code);
    pthread_mutex_lock(&kept.lock);
    cl_program program = NULL;
    for (int i = 0; i < kept.n_programs && !program; i++)
        if (kept.programs[i].context == context && !strcmp(kept.programs[i].text, texts[0]))
            program = kept.programs[i].program;
    if (program) {
        *code = CL_SUCCESS;
        below.clRetainProgram(program);
    } else {
        program = kept.create(context, n, texts, sizes, code);
        char *text = program && kept.n_programs < MOST_KEPT ? strdup(texts[0]) : NULL;
        if (text) {
            kept.programs[kept.n_programs++] =
                (kept_program){.context = context, .text = text, .program = program};
            below.clRetainProgram(program);
        }
    }
    pthread_mutex_unlock(&kept.lock);
    return program;
}

static inline cl_int CL_API_CALL kept_build(cl_program program, cl_uint n, const cl_device_id *devices,
                                            const char *options, void(CL_CALLBACK *done)(cl_program, void *),
                                            void *user) {
    pthread_mutex_lock(&kept.lock);
    kept_program *item = kept.programs, *end = item + kept.n_programs;
    while (item < end && item->program != program) item++;
    const bool built = item < end && item->options && !strcmp(item->options, options ? options : "");
    pthread_mutex_unlock(&kept.lock);
    if (built) return CL_SUCCESS;
    cl_int code = kept.build(program, n, devices, options, done, user);
    pthread_mutex_lock(&kept.lock);
    if (item < end) {
        free(item->options);
        item->options = code == CL_SUCCESS ? strdup(options ? options : "") : NULL;
    }
    pthread_mutex_unlock(&kept.lock);
    return code;
}

/** In clInitLayer, after layer_begin: puts itself between the layer and what lies below. */
static inline void kept_begin(void) {
    kept.cut = below.clCreateSubDevices;
    kept.create_context = below.clCreateContext;
    kept.create = below.clCreateProgramWithSource;
    kept.build = below.clBuildProgram;
    below.clCreateSubDevices = kept_cut;
    below.clCreateContext = kept_create_context;
    below.clCreateProgramWithSource = kept_create;
    below.clBuildProgram = kept_build;
}

#endif
