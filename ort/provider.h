// SPDX-License-Identifier: Apache-2.0
// The parts of the provider, and what they share.
#ifndef CLV_ORT_PROVIDER_H
#define CLV_ORT_PROVIDER_H

#include <cleave/cleave.h>
#include <pthread.h>

#include "abi.h"

#define PROVIDER_NAME "CleaveExecutionProvider"

/** All of one registration. ONNX Runtime has it as an OrtEpFactory, so that comes first. */
typedef struct factory {
    ort_factory face;
    ort_functions ort;
    ort_ep_functions ep;
    bool knows_gpu; // ONNX Runtime has one in its list
    pthread_mutex_t lock;
    clv_runtime *runtime; // made with the first session
} factory;

/** The provider in one session. */
typedef struct provider {
    ort_ep face;
    factory *factory;
    clv_device *device;
    const OrtLogger *logger;
} provider;

/** A failure of Cleave as one of ONNX Runtime, with its sentence; NULL of CLV_OK. */
OrtStatus *failure(const factory *f, clv_status status);
/** No memory of the host. */
OrtStatus *no_memory(const factory *f);
/** Forget a failure of ONNX Runtime's functions. Result: there was none. */
bool passed(const factory *f, OrtStatus *status);

#define ORT_TRY(call)                                                                                        \
    do {                                                                                                     \
        OrtStatus *tried = (call);                                                                           \
        if (tried) return tried;                                                                             \
    } while (0)

// ---- a graph of ONNX Runtime (view.c) ----------------------------------------------------------------------------------

typedef struct view_value {
    const char *name;
    const OrtValueInfo *info;
    int type;                          // ELEMENT_*; 0: no tensor, or one of a type that is not known
    int rank;                          // -1: more dimensions than there are
    int64_t dims[CLV_MAX_RANK];        // -1: open
    const char *symbols[CLV_MAX_RANK]; // names of open ones; "": none
    bool constant;                     // an initializer that nobody feeds
    bool result;                       // of the graph
    int maker;                         // the node that makes it; -1: none
} view_value;

typedef struct view_node {
    const OrtNode *node;
    const char *op, *domain;
    int *in, *out; // values; -1: left out
    int n_in, n_out;
    int *inner; // values that its graphs read
    int n_inner;
    bool has_graphs;
} view_node;

typedef struct view {
    const factory *factory;
    const OrtGraph *graph;
    view_value *values;
    view_node *nodes; // each after those that it reads
    int n_values, n_nodes;
    int *slots; // a hash table of names
    int n_slots, room;
} view;

/** Names are borrowed from the graph. After a failure there is nothing to reset. */
OrtStatus *view_read(const factory *f, const OrtGraph *graph, view *out);
void view_reset(view *v);
/** -1: there is no such value. */
int view_find(const view *v, const char *name);

// ---- as a model of ONNX (model.c) ---------------------------------------------------------------------------------------

/** Bytes of a ModelProto, and which values are its inputs and results, in order. */
typedef struct model {
    uint8_t *bytes;
    size_t n, room;
    int *inputs, *outputs;
    int n_inputs, n_outputs;
    bool failed; // no memory
} model;

/** The nodes that are marked; what they read of others is an input, what others read of them, or the graph gives, a result. */
OrtStatus *model_write(const view *v, const bool *marked, model *out);
void model_reset(model *m);

// ---- which nodes are taken (partition.c) -----------------------------------------------------------------------------------

OrtStatus *get_capability(OrtEp *self, const OrtGraph *graph, OrtEpGraphSupportInfo *info);

// ---- nodes that are computed here (compute.c) --------------------------------------------------------------------------------

OrtStatus *compile(OrtEp *self, const OrtGraph **graphs, const OrtNode **fused, size_t n,
                   ort_compute_info **out, OrtNode **context_nodes);
void release_compute_infos(OrtEp *self, ort_compute_info **infos, size_t n);
/** The dtype that an element of ONNX Runtime is fed as; NONE: it is not taken. */
clv_dtype dtype_of(int element);

#endif
