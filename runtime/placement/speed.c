// SPDX-License-Identifier: Apache-2.0
// Measures a device with the library's own ops, planned and run like a model's, because what counts is what a
// model gets and not what the device could do at most (that is runtime/bench/peak.c). There are three small
// graphs, a square matrix product, a pass over memory and a chain of tiny launches, and copies from and to
// the host. The best of a few rounds counts.
#include "placement/speed.h"

#include <stdlib.h>

#include "base/clock.h"
#include "cleave/ops.h"

enum { PRODUCT, PASS, CHAIN, SUBJECTS };
enum { ROUNDS = 3, MOST_STEPS = 256, CHAIN_LAUNCHES = 64 };
static const double round_seconds = 0.03;

/** Where to measure, and with how much. */
typedef struct speed_job {
    clv_device *device;
    int64_t side;   // of the matrices
    int64_t length; // of what is passed over
    clv_graph *graphs[SUBJECTS];
    clv_plan *plans[SUBJECTS];
    clv_session *session;
    double seconds[SUBJECTS]; // of a step
    double copies[2];         // of the pass's operand: to the host, from it
} speed_job;

// ---- a model, where nothing can be measured ---------------------------------------------------------------

/** Roughly what devices of these kinds reach. Only their order and proportion matter. */
static clv__speed modelled(const clv_device_info *info) {
    double units = info->compute_units ? info->compute_units : 1, width = info->vector_width;
    if (info->peak_bytes_per_second > 0) {
        const double flops = info->peak_flops > 0 ? info->peak_flops : units * 100e9;
        return (clv__speed){flops, info->peak_bytes_per_second, 10e9, 10e9, 10e-6};
    }
    if (info->type == CLV_DEVICE_HOST) return (clv__speed){1e9, 2e9, 5e9, 5e9, 1e-6};
    if (info->type == CLV_DEVICE_CPU) return (clv__speed){units * width * 4e9, 20e9, 5e9, 5e9, 5e-6};
    return (clv__speed){units * 100e9, units * 5e9, 10e9, 10e9, 10e-6};
}

// ---- what is measured -------------------------------------------------------------------------------------

/** Sizes that keep the device busy for some milliseconds, in at most a half of what is free there; false: too
 *  little is. */
static bool choose_sizes(speed_job *j) {
    const clv_device_info *info = &j->device->info;
    clv_memory_info held = clv_device_memory(j->device);
    uint64_t limit = info->memory_bytes;
    if (held.budget && (!limit || held.budget < limit)) limit = held.budget;
    uint64_t room = limit > held.all.current ? limit - held.all.current : 0;
    if (info->max_alloc_bytes && room > info->max_alloc_bytes) room = info->max_alloc_bytes;
    bool slow = info->type == CLV_DEVICE_HOST, cpu = info->type == CLV_DEVICE_CPU;
    j->side = slow ? 96 : cpu ? 512 : 2048;
    j->length = INT64_C(1) << (slow ? 18 : cpu ? 23 : 25);
    // The product holds 3 matrices and perhaps packed copies; the pass two vectors, the host's references
    // doubles of both.
    while (j->length > 1 << 16 && (uint64_t)j->length * 4 * 6 > room / 2) j->length /= 2;
    while (j->side > 64 && (uint64_t)j->side * (uint64_t)j->side * 4 * 9 > room / 2) j->side /= 2;
    return room >= 4 << 20;
}

/** Operands are parameters, so that nothing is uploaded; of the result one element is fetched. */
static clv_tensor *build(const speed_job *j, int subject, clv_graph *graph) {
    const clv_init ones = {.kind = CLV_INIT_ONES};
    clv_tensor *x;
    switch (subject) {
    case PRODUCT:
        x = clv_parameter(graph, "a", CLV_SHAPE(j->side, j->side), ones);
        x = clv_matmul(x, clv_parameter(graph, "b", CLV_SHAPE(j->side, j->side), ones));
        return clv_slice(clv_slice(x, 0, 0, 1), 1, 0, 1);
    case PASS: return clv_slice(clv_relu(clv_parameter(graph, "x", CLV_SHAPE(j->length), ones)), 0, 0, 1);
    default:
        x = clv_parameter(graph, "z", CLV_SHAPE(64), ones);
        for (int i = 0; i < CHAIN_LAUNCHES; i++) x = clv_relu(x);
        return x;
    }
}

static clv_status prepare(speed_job *j) {
    clv_runtime *runtime = j->device->runtime;
    for (int i = 0; i < SUBJECTS; i++) {
        CLV_TRY(clv_graph_create(runtime, &j->graphs[i]));
        clv_output(build(j, i, j->graphs[i]), "y");
        CLV_TRY(clv_plan_create(j->graphs[i], &(clv_plan_config){.device = j->device, .no_fuse = true},
                                &j->plans[i]));
    }
    CLV_TRY(clv_session_create(runtime, NULL, &j->session));
    return clv_session_reserve(j->session, j->plans, SUBJECTS);
}

static clv_status time_steps(clv_run *run, int steps, double *seconds) {
    double start = clv__seconds();
    for (int i = 0; i < steps; i++) CLV_TRY(clv_run_step(run, NULL));
    CLV_TRY(clv_run_finish(run));
    *seconds = (clv__seconds() - start) / steps;
    return CLV_OK;
}

/** The least seconds of a step. */
static clv_status time_run(clv_run *run, double *best) {
    double seconds;
    CLV_TRY(time_steps(run, 2, &seconds)); // compiles, touches memory
    CLV_TRY(time_steps(run, 1, &seconds));
    int steps = seconds > round_seconds / MOST_STEPS ? (int)(round_seconds / seconds) : MOST_STEPS;
    if (steps < 1) steps = 1;
    *best = seconds;
    for (int round = 0; round < ROUNDS; round++) {
        CLV_TRY(time_steps(run, steps, &seconds));
        if (seconds < *best) *best = seconds;
    }
    return CLV_OK;
}

static clv_status time_copies(speed_job *j) {
    int index = clv_session_find(j->session, "x");
    size_t bytes = clv_session_get(j->session, index).bytes;
    void *data = clv__alloc(1, bytes);
    if (!data) CLV_FAIL(clv__runtime_error_of(j->device->runtime), CLV_E_HOST_MEMORY, "no host memory");
    clv_status status = CLV_OK;
    for (int round = 0; round < ROUNDS && status == CLV_OK; round++) {
        for (int way = 0; way < 2 && status == CLV_OK; way++) {
            double start = clv__seconds();
            status = way ? clv_session_write(j->session, index, data, bytes)
                         : clv_session_read(j->session, index, data, bytes);
            double seconds = clv__seconds() - start;
            if (round == 0 || seconds < j->copies[way]) j->copies[way] = seconds;
        }
    }
    free(data);
    return status;
}

static clv_status measure(speed_job *j) {
    CLV_TRY(prepare(j));
    for (int i = 0; i < SUBJECTS; i++) {
        clv_run *run;
        CLV_TRY(clv_run_create(j->session, j->plans[i], &run));
        clv_status status = time_run(run, &j->seconds[i]);
        clv_run_destroy(run);
        if (status != CLV_OK) return status;
    }
    return time_copies(j);
}

static double rate(double amount, double seconds) {
    return amount / (seconds > 1e-9 ? seconds : 1e-9);
}

static clv__speed speed_of(const speed_job *j) {
    double side = (double)j->side, bytes = (double)j->length * sizeof(float), launches = 0;
    for (int i = 0; i < clv_plan_info_get(j->plans[CHAIN]).n_nodes; i++)
        launches += clv_plan_node_get(j->plans[CHAIN], i).launches;
    return (clv__speed){.flops = rate(2 * side * side * side, j->seconds[PRODUCT]),
                        .bytes = rate(2 * bytes, j->seconds[PASS]),
                        .read = rate(bytes, j->copies[0]),
                        .write = rate(bytes, j->copies[1]),
                        .launch = j->seconds[CHAIN] / (launches > 1 ? launches : 1)};
}

// ---- all of it --------------------------------------------------------------------------------------------

clv_status clv__speed_of(clv_device *device, clv__speed *out) {
    speed_job j = {.device = device};
    *out = modelled(&device->info);
    if (device->backend == &clv__backend_null) return CLV_OK;
    if (clv__speed_kept(device, out) || !choose_sizes(&j)) return CLV_OK;
    clv_status status = measure(&j);
    if (status == CLV_OK) *out = speed_of(&j);
    clv_session_destroy(j.session);
    for (int i = 0; i < SUBJECTS; i++) {
        clv_plan_destroy(j.plans[i]);
        clv_graph_destroy(j.graphs[i]);
    }
    clv_device_memory_reset_peak(device);
    if (status == CLV_E_BUDGET || status == CLV_E_DEVICE_MEMORY) return CLV_OK; // the model it is
    if (status == CLV_OK) clv__speed_keep(device, out);
    return status;
}
