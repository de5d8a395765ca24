// SPDX-License-Identifier: Apache-2.0
// Nodes that Cleave computes: each was made of the nodes of a part, and is a model of its own. For each set of shapes that its inputs
// have there is a plan, made when they are first seen, and kept; all of a node's plans share a session with its weights.
#include <stdlib.h>
#include <string.h>

#include "provider.h"

#define TRY(call)                                                                                            \
    do {                                                                                                     \
        const clv_status tried = (call);                                                                     \
        if (tried != CLV_OK) return tried;                                                                   \
    } while (0)

enum { MOST_PLANS = 64 }; // of a node; then the one that was used longest ago goes

/** What a set of shapes needs. Inputs and outputs are the graph's. */
typedef struct shaped {
    clv_shape *shapes; // of the inputs
    clv_graph *graph;
    clv_plan *plan;
    clv_run *run; // NULL: a larger plan came
    clv_tensor **inputs, **outputs;
    uint64_t used;
    struct shaped *next;
} shaped;

/** An input or a result: where ONNX Runtime has it, and of which type. */
typedef struct place {
    size_t at;
    clv_dtype dtype;
    char *name; // of an input
} place;

typedef struct node {
    ort_compute_info face;
    const provider *provider;
    pthread_mutex_t lock; // ONNX Runtime computes from several threads
    uint8_t *bytes;       // of the model
    clv_onnx *onnx;
    clv_session *session;
    place *inputs, *outputs;
    int n_inputs, n_outputs;
    int n_kept; // tensors of the session that have their weights
    shaped *plans;
    uint64_t used;
} node;

// ---- plans ----------------------------------------------------------------------------------------------------------------

static void drop(shaped *s) {
    clv_run_destroy(s->run);
    clv_plan_destroy(s->plan);
    clv_graph_destroy(s->graph);
    free(s->shapes);
    free(s->inputs);
    free(s->outputs);
    free(s);
}

static void drop_all(node *self) {
    while (self->plans) {
        shaped *s = self->plans;
        self->plans = s->next;
        drop(s);
    }
}

static clv_status build(node *self, shaped *s) {
    clv_runtime *runtime = self->provider->factory->runtime;
    const clv_plan_config config = {.device = self->provider->device};
    TRY(clv_graph_create(runtime, &s->graph));
    for (int i = 0; i < self->n_inputs; i++)
        s->inputs[i] = clv_input(s->graph, self->inputs[i].name, self->inputs[i].dtype, s->shapes[i]);
    TRY(clv_onnx_append(self->onnx, s->graph, s->inputs, self->n_inputs, s->outputs, self->n_outputs, NULL));
    for (int i = 0; i < self->n_outputs; i++) {
        if (clv_tensor_dtype(s->outputs[i]) != self->outputs[i].dtype)
            s->outputs[i] = clv_cast(s->outputs[i], self->outputs[i].dtype);
        clv_output(s->outputs[i], NULL);
    }
    TRY(clv_graph_status(s->graph));
    return clv_plan_create(s->graph, &config, &s->plan);
}

/** Take the memory of all plans, with a new one, and the weights of what is new. Runs have to go for that. */
static clv_status reserve(node *self, shaped *s) {
    const clv_plan *plans[MOST_PLANS + 1];
    int n = 0;
    plans[n++] = s->plan;
    for (shaped *other = self->plans; other; other = other->next) {
        clv_run_destroy(other->run);
        other->run = NULL;
        plans[n++] = other->plan;
    }
    TRY(clv_session_reserve(self->session, (clv_plan *const *)plans, n));
    const int n_kept = clv_session_info_get(self->session).n_tensors;
    if (n_kept > self->n_kept) TRY(clv_onnx_weights_load(self->session, self->onnx));
    self->n_kept = n_kept;
    return CLV_OK;
}

/** Without the plan that was used longest ago, where there are too many. */
static void make_room(node *self) {
    int n = 0;
    shaped **oldest = &self->plans;
    for (shaped **at = &self->plans; *at; at = &(*at)->next, n++)
        if ((*at)->used < (*oldest)->used) oldest = at;
    if (n < MOST_PLANS) return;
    shaped *s = *oldest;
    *oldest = s->next;
    drop(s);
}

static clv_status add_plan(node *self, shaped *s) {
    TRY(build(self, s));
    clv_status status = reserve(self, s);
    if (self->plans && (status == CLV_E_DEVICE_MEMORY || status == CLV_E_BUDGET)) {
        drop_all(self); // all together do not fit: this one alone may
        status = reserve(self, s);
    }
    return status;
}

static bool same_shapes(const node *self, const shaped *s, const clv_shape *shapes) {
    for (int i = 0; i < self->n_inputs; i++)
        if (!clv_shape_equal(&s->shapes[i], &shapes[i])) return false;
    return true;
}

/** The plan for these shapes, and its run. */
static clv_status plan_for(node *self, const clv_shape *shapes, shaped **out) {
    shaped *s = self->plans;
    while (s && !same_shapes(self, s, shapes)) s = s->next;
    if (!s) {
        const size_t n_in = (size_t)self->n_inputs + 1, n_out = (size_t)self->n_outputs + 1;
        s = calloc(1, sizeof *s);
        if (!s) return CLV_E_HOST_MEMORY;
        s->shapes = calloc(n_in, sizeof *s->shapes);
        s->inputs = calloc(n_in, sizeof(clv_tensor *));
        s->outputs = calloc(n_out, sizeof(clv_tensor *));
        clv_status status = s->shapes && s->inputs && s->outputs ? CLV_OK : CLV_E_HOST_MEMORY;
        if (status == CLV_OK) memcpy(s->shapes, shapes, (size_t)self->n_inputs * sizeof *shapes);
        make_room(self);
        if (status == CLV_OK) status = add_plan(self, s);
        if (status != CLV_OK) {
            drop(s);
            return status;
        }
        s->next = self->plans;
        self->plans = s;
    }
    if (!s->run) TRY(clv_run_create(self->session, s->plan, &s->run));
    s->used = ++self->used;
    *out = s;
    return CLV_OK;
}

// ---- runs -------------------------------------------------------------------------------------------------------------------

static OrtStatus *shape_of(const factory *f, const OrtValue *value, clv_shape *out) {
    OrtTensorTypeAndShapeInfo *info = NULL;
    size_t rank = 0;
    ORT_TRY(f->ort.GetTensorTypeAndShape(value, &info));
    OrtStatus *status = f->ort.GetDimensionsCount(info, &rank);
    if (!status && rank > CLV_MAX_RANK)
        status = f->ort.CreateStatus(ERROR_ARGUMENT, "Cleave: an input has more than 8 dimensions");
    out->rank = (int)rank;
    if (!status) status = f->ort.GetDimensions(info, out->dims, rank);
    f->ort.ReleaseTensorTypeAndShapeInfo(info);
    return status;
}

static OrtStatus *read_inputs(const node *self, OrtKernelContext *context, clv_shape *shapes,
                              clv_feed *feeds) {
    const factory *f = self->provider->factory;
    for (int i = 0; i < self->n_inputs; i++) {
        const OrtValue *value = NULL;
        ORT_TRY(f->ort.KernelContext_GetInput(context, self->inputs[i].at, &value));
        if (!value) return f->ort.CreateStatus(ERROR_ARGUMENT, "Cleave: an input is missing");
        ORT_TRY(shape_of(f, value, &shapes[i]));
        ORT_TRY(f->ort.GetTensorSizeInBytes(value, &feeds[i].bytes));
        if (feeds[i].bytes) ORT_TRY(f->ort.GetTensorData(value, &feeds[i].data));
    }
    return NULL;
}

static OrtStatus *make_outputs(const node *self, OrtKernelContext *context, const shaped *s,
                               clv_fetch *fetches) {
    const factory *f = self->provider->factory;
    for (int i = 0; i < self->n_outputs; i++) {
        const clv_tensor_info info = clv_tensor_info_get(s->outputs[i]);
        OrtValue *value = NULL;
        ORT_TRY(f->ort.KernelContext_GetOutput(context, self->outputs[i].at, info.shape.dims,
                                               (size_t)info.shape.rank, &value));
        fetches[i] = (clv_fetch){.output = s->outputs[i], .bytes = info.bytes};
        ORT_TRY(f->ort.GetTensorMutableData(value, &fetches[i].data));
    }
    return NULL;
}

static OrtStatus *do_step(node *self, OrtKernelContext *context, clv_shape *shapes, clv_feed *feeds,
                          clv_fetch *fetches) {
    const factory *f = self->provider->factory;
    shaped *s = NULL;
    ORT_TRY(read_inputs(self, context, shapes, feeds));
    ORT_TRY(failure(f, plan_for(self, shapes, &s)));
    for (int i = 0; i < self->n_inputs; i++) feeds[i].input = s->inputs[i];
    ORT_TRY(make_outputs(self, context, s, fetches));
    const clv_step step = {
        .feeds = feeds, .n_feeds = self->n_inputs, .fetches = fetches, .n_fetches = self->n_outputs};
    return failure(f, clv_run_do(s->run, &step));
}

static OrtStatus *compute(ort_compute_info *face, void *state, OrtKernelContext *context) {
    node *self = (node *)face;
    (void)state;
    clv_shape *shapes = calloc((size_t)self->n_inputs + 1, sizeof *shapes);
    clv_feed *feeds = calloc((size_t)self->n_inputs + 1, sizeof *feeds);
    clv_fetch *fetches = calloc((size_t)self->n_outputs + 1, sizeof *fetches);
    OrtStatus *status;
    if (shapes && feeds && fetches) {
        pthread_mutex_lock(&self->lock);
        status = do_step(self, context, shapes, feeds, fetches);
        pthread_mutex_unlock(&self->lock);
    } else {
        status = no_memory(self->provider->factory);
    }
    free(shapes);
    free(feeds);
    free(fetches);
    return status;
}

static OrtStatus *create_state(ort_compute_info *face, OrtNodeComputeContext *context, void **state) {
    (void)context;
    *state = face;
    return NULL;
}

static void release_state(ort_compute_info *face, void *state) {
    (void)face, (void)state;
}

// ---- making one -------------------------------------------------------------------------------------------------------------

static void destroy(node *self) {
    if (!self) return;
    drop_all(self);
    clv_session_destroy(self->session);
    clv_onnx_destroy(self->onnx);
    for (int i = 0; self->inputs && i < self->n_inputs; i++) free(self->inputs[i].name);
    free(self->inputs);
    free(self->outputs);
    free(self->bytes);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

typedef OrtStatus *(*list_of)(const OrtNode *node, const OrtValueInfo **out, size_t n);

/** Where the fused node has the model's values: by name. */
static OrtStatus *find_places(const view *v, const OrtNode *fused, list_of list, size_t n, const int *values,
                              int n_values, place *out) {
    const factory *f = v->factory;
    const OrtValueInfo **infos = calloc(n + 1, sizeof *infos);
    OrtStatus *status = infos ? list(fused, infos, n) : no_memory(f);
    for (int i = 0; !status && i < n_values; i++) {
        const view_value *value = &v->values[values[i]];
        out[i] = (place){.at = n, .dtype = dtype_of(value->type), .name = strdup(value->name)};
        for (size_t k = 0; !status && k < n; k++) {
            const char *name = NULL;
            if (infos[k]) status = f->ort.GetValueInfoName(infos[k], &name);
            if (name && strcmp(name, value->name) == 0) out[i].at = k;
        }
        if (!status && (out[i].at == n || !out[i].name))
            status = f->ort.CreateStatus(ERROR_EP, "Cleave: a value of a part is not one of its node");
    }
    free(infos);
    return status;
}

static OrtStatus *take_places(node *self, const view *v, const OrtNode *fused, const model *m) {
    const ort_functions *ort = &v->factory->ort;
    size_t n_in = 0, n_out = 0;
    ORT_TRY(ort->Node_GetNumInputs(fused, &n_in));
    ORT_TRY(ort->Node_GetNumOutputs(fused, &n_out));
    self->inputs = calloc((size_t)m->n_inputs + 1, sizeof *self->inputs);
    self->outputs = calloc((size_t)m->n_outputs + 1, sizeof *self->outputs);
    if (!self->inputs || !self->outputs) return no_memory(v->factory);
    self->n_inputs = m->n_inputs;
    self->n_outputs = m->n_outputs;
    ORT_TRY(find_places(v, fused, ort->Node_GetInputs, n_in, m->inputs, m->n_inputs, self->inputs));
    return find_places(v, fused, ort->Node_GetOutputs, n_out, m->outputs, m->n_outputs, self->outputs);
}

/** With all shapes known the plan is made now, so that a session that was made is one that runs. */
static OrtStatus *plan_ahead(node *self, const view *v, const model *m) {
    clv_shape *shapes = calloc((size_t)m->n_inputs + 1, sizeof *shapes);
    bool known = shapes != NULL;
    shaped *s;
    for (int i = 0; known && i < m->n_inputs; i++) {
        const view_value *value = &v->values[m->inputs[i]];
        shapes[i] = clv_shape_make(value->rank, value->dims);
        known = clv_shape_numel(&shapes[i]) >= 0;
    }
    OrtStatus *status = known ? failure(v->factory, plan_for(self, shapes, &s)) : NULL;
    free(shapes);
    return status;
}

static OrtStatus *fill(node *self, const view *v, const OrtNode *fused) {
    const factory *f = v->factory;
    const clv_onnx_config config = {.any_shape = true};
    bool *all = malloc((size_t)v->n_nodes + 1);
    if (!all) return no_memory(f);
    memset(all, 1, (size_t)v->n_nodes + 1);
    model m;
    OrtStatus *status = model_write(v, all, &m);
    free(all);
    if (status) return status;
    status = take_places(self, v, fused, &m);
    self->bytes = m.bytes;
    m.bytes = NULL;
    if (!status)
        status =
            failure(f, clv_onnx_read_bytes(f->runtime, "a graph", self->bytes, m.n, &config, &self->onnx));
    if (!status) status = failure(f, clv_session_create(f->runtime, NULL, &self->session));
    if (!status) status = plan_ahead(self, v, &m);
    model_reset(&m);
    return status;
}

static OrtStatus *make_node(provider *p, const OrtGraph *graph, const OrtNode *fused, node **out) {
    *out = NULL;
    node *self = calloc(1, sizeof *self);
    if (!self) return no_memory(p->factory);
    self->face = (ort_compute_info){.version = ORT_VERSION,
                                    .create_state = create_state,
                                    .compute = compute,
                                    .release_state = release_state};
    self->provider = p;
    pthread_mutex_init(&self->lock, NULL);
    view v;
    OrtStatus *status = view_read(p->factory, graph, &v);
    if (!status) {
        status = fill(self, &v, fused);
        view_reset(&v);
    }
    if (status)
        destroy(self);
    else
        *out = self;
    return status;
}

OrtStatus *compile(OrtEp *ep, const OrtGraph **graphs, const OrtNode **fused, size_t n,
                   ort_compute_info **out, OrtNode **context_nodes) {
    (void)context_nodes;
    for (size_t i = 0; i < n; i++) {
        node *made;
        OrtStatus *status = make_node((provider *)ep, graphs[i], fused[i], &made);
        if (status) {
            release_compute_infos(ep, out, i);
            for (size_t k = 0; k < i; k++) out[k] = NULL;
            return status;
        }
        out[i] = &made->face;
    }
    return NULL;
}

void release_compute_infos(OrtEp *ep, ort_compute_info **infos, size_t n) {
    (void)ep;
    for (size_t i = 0; i < n; i++) destroy((node *)infos[i]);
}
