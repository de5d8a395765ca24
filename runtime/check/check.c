// SPDX-License-Identifier: Apache-2.0
// clv_check: every sample of every op on a device. First everything is written down (graphs, launches, plans) and built
// in few programs, because a program costs much more than a kernel; then sample by sample is run and compared.
#include "check/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/differences.h"
#include "check/guarded.h"
#include "check/planned.h"
#include "check/report.h"
#include "device/program.h"
#include "plan/plan.h"
#include "tensor/half.h"

enum { MAX_VARIANTS = 8 };

/** One sample with all that is run for it. */
typedef struct trial {
    const clv__op *op;
    char label[96];        // the sample's
    const clv__op_io *use; // the subject's node, or what the plan made of it and what follows it
    clv__subject subject;
    clv_plan *plan;
    char *broken; // why there is no graph or no plan; NULL if there are
    clv__launches launches[MAX_VARIANTS];
    bool wanted[MAX_VARIANTS];
    int cases;
} trial;

typedef struct job {
    clv_runtime *runtime;
    clv_device *device;
    const clv_check_config *config;
    clv__tally tally;
    trial *trials;
    size_t n, room;
    int total, done;
} job;

static bool by_kernels(const job *j) {
    return j->device->info.type != CLV_DEVICE_HOST;
}

static clv__error *error_of(const job *j) {
    return clv__runtime_error_of(j->runtime);
}

// ---- writing down ---------------------------------------------------------------------------------------------------

/** Some drivers for CPUs compile a kernel again for every group size that they choose, which is most of the time of a quick
 *  check. Where the kernel leaves the choice to the driver, groups of one are as right, and one compilation serves all. The
 *  planned runs leave the choice where it is. */
static void fix_groups(clv__launches *launches) {
    for (size_t i = 0; i < launches->n; i++) {
        clv__grid *grid = &launches->items[i].grid;
        bool free = launches->items[i].kind == CLV__LAUNCH_KERNEL;
        for (int d = 0; d < grid->dims; d++) free &= grid->local[d] == 0;
        for (int d = 0; free && d < grid->dims; d++) grid->local[d] = 1;
    }
}

static clv_status lower_variants(job *j, trial *t) {
    const clv__op_io *io = t->use;
    int k = 0;
    for (const clv__variant *v = t->op->variants; v && v->name && by_kernels(j); v++, k++) {
        if (k == MAX_VARIANTS)
            CLV_FAIL(error_of(j), CLV_E_INTERNAL, "op '%s' has more than %d variants", t->op->name,
                     MAX_VARIANTS);
        if (!clv__variant_supports(v, &j->device->info, io)) {
            clv__tally_skip(&j->tally, t->op->name, "variant '%s' does not take these shapes on this device",
                            v->name);
            continue;
        }
        t->launches[k].device = &j->device->info;
        clv__variant_lower(v, &t->launches[k], io);
        if (j->config->quick && clv__cpu_class(&j->device->info)) fix_groups(&t->launches[k]);
        t->wanted[k] = true;
        t->cases++;
    }
    return CLV_OK;
}

/** Whether the gradient's formula is right does not depend on how tensors are stored: asked in f32 only. */
static bool held_against_differences(const trial *t) {
    return t->subject.loss && t->subject.sample.stored == CLV_DTYPE_NONE;
}

/** What follows the op was meant to be done with it: the use with the epilogue, for every variant. */
static clv_status find_epilogue(job *j, trial *t) {
    if (!t->subject.sample.followed || !by_kernels(j)) return CLV_OK;
    for (size_t i = 0; i < t->plan->n_nodes; i++) {
        const clv__plan_node *at = &t->plan->nodes[i];
        if (at->fused && at->fused->base == t->subject.node) t->use = &at->node->io;
    }
    if (t->use->n_in == t->subject.sample.n_in) return CLV_OK;
    CLV_FAIL(error_of(j), CLV_E_INTERNAL, "the plan made no epilogue of what follows '%s'", t->op->name);
}

/** What is followed is planned with the variant that every op with an epilogue has it in: the one chosen on this device may do
 *  without (a vendor's library), and then there would be no use with an epilogue to check the others by. */
static clv_status make_plan(job *j, trial *t) {
    char pin[96];
    snprintf(pin, sizeof pin, "%s=plain", t->op->name);
    bool pinned = t->subject.sample.followed && !t->op->elementwise;
    clv_plan_config config = {.device = j->device, .variants = pinned ? pin : NULL};
    return clv_plan_create(t->subject.graph, &config, &t->plan);
}

/** The graph with its gradient, or without if that cannot be built: then the plan's case is broken, and says why. */
static clv_status write_down(job *j, trial *t, const clv__sample *sample) {
    clv_status status = clv__subject_init(&t->subject, j->runtime, t->op, sample, !sample->followed);
    if (status != CLV_OK) {
        if (!(t->broken = clv__strdup(error_of(j)->text))) return CLV_E_HOST_MEMORY;
        t->cases = 1;
        if (clv__subject_init(&t->subject, j->runtime, t->op, sample, false) != CLV_OK) return CLV_OK;
        t->use = &t->subject.node->io;
        return lower_variants(j, t);
    }
    t->use = &t->subject.node->io;
    t->cases++;
    if (held_against_differences(t) && !sample->no_gradient) t->cases++;
    status = make_plan(j, t);
    if (status == CLV_OK) status = find_epilogue(j, t);
    if (status != CLV_OK && !(t->broken = clv__strdup(error_of(j)->text))) return CLV_E_HOST_MEMORY;
    return lower_variants(j, t);
}

static clv_status add_trial(job *j, const clv__op *op, const clv__sample *sample) {
    if (!clv__grow(&j->trials, &j->room, j->n + 1, sizeof *j->trials))
        CLV_FAIL(error_of(j), CLV_E_HOST_MEMORY, "no memory for the cases of '%s'", op->name);
    trial *t = &j->trials[j->n++];
    t->op = op;
    memcpy(t->label, sample->label, sizeof t->label);
    CLV_TRY(write_down(j, t, sample));
    j->total += t->cases;
    return CLV_OK;
}

/** The sample stored in two bytes. bf16 differs from f16 by its conversions only, and takes the chance to have some tensors in
 *  f32 beside it: quick samples are enough. A quick check, most of whose time is compilation, has one sample in f16, or in
 *  bf16 if asked for that. */
static clv_status add_stored_trials(job *j, const clv__op *op, const clv__sample *sample, bool first) {
    if (!(op->half_in | op->half_out)) return CLV_OK;
    clv_dtype only = j->config->dtype;
    clv__sample f16 = *sample, bf16 = *sample;
    clv__sample_store(op, CLV_DTYPE_F16, true, &f16);
    clv__sample_store(op, CLV_DTYPE_BF16, false, &bf16);
    if (only != CLV_DTYPE_BF16 && (!j->config->quick || first)) CLV_TRY(add_trial(j, op, &f16));
    if (only != CLV_DTYPE_F16 && (j->config->quick ? first && only == CLV_DTYPE_BF16 : sample->quick))
        CLV_TRY(add_trial(j, op, &bf16));
    return CLV_OK;
}

/** The sample with an epilogue: of a quick check one for each op that is not elementwise itself, which would be most of them. */
static clv_status add_followed_trial(job *j, const clv__op *op, const clv__sample *sample, bool first) {
    clv__sample followed = *sample;
    if (j->config->quick ? !first || op->elementwise : !sample->quick) return CLV_OK;
    return clv__sample_follow(op, &followed) ? add_trial(j, op, &followed) : CLV_OK;
}

static clv_status write_down_op(job *j, const clv__op *op) {
    clv__sample sample = {0};
    clv_dtype only = j->config->dtype;
    int taken = 0;
    size_t before = j->n;
    for (int i = 0; op->sample && op->sample(i, &sample); i++, sample = (clv__sample){0}) {
        if (j->config->quick && !sample.quick) continue;
        if (only == CLV_DTYPE_NONE || only == CLV_DTYPE_F32) {
            CLV_TRY(add_trial(j, op, &sample));
            CLV_TRY(add_followed_trial(j, op, &sample, taken == 0));
        }
        if (only != CLV_DTYPE_F32) CLV_TRY(add_stored_trials(j, op, &sample, taken == 0));
        taken++;
    }
    if (j->n == before)
        clv__tally_skip(&j->tally, op->name,
                        !op->sample ? "the op has no samples"
                        : taken     ? "it stores nothing in that dtype"
                                    : "no sample is marked as quick");
    return CLV_OK;
}

static clv_status gather(job *j, size_t from, size_t to, const clv__launch ***list, size_t *n) {
    *n = 0;
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1 && !(*list = clv__alloc(*n + 1, sizeof **list)))
            CLV_FAIL(error_of(j), CLV_E_HOST_MEMORY, "no memory for %zu launches", *n);
        *n = 0;
        for (size_t i = from; i < to; i++) {
            const trial *t = &j->trials[i];
            for (int v = 0; v < MAX_VARIANTS; v++)
                for (size_t l = 0; l < t->launches[v].n; l++, (*n)++)
                    if (pass) (*list)[*n] = &t->launches[v].items[l];
            for (size_t k = 0; t->plan && k < t->plan->n_nodes; k++)
                for (size_t l = 0; l < t->plan->nodes[k].launches.n; l++, (*n)++)
                    if (pass) (*list)[*n] = &t->plan->nodes[k].launches.items[l];
        }
    }
    return CLV_OK;
}

static clv_status build(job *j, size_t from, size_t to, bool *built) {
    const clv__launch **list = NULL;
    size_t n;
    CLV_TRY(gather(j, from, to, &list, &n));
    *built = clv__programs_build(j->device, list, n) == CLV_OK;
    free(list);
    return CLV_OK;
}

/** All at once; where that fails op by op, so that one broken source costs one op. Who is to blame shows in the cases. */
static clv_status build_all(job *j) {
    bool built;
    CLV_TRY(clv__device_open(j->device));
    CLV_TRY(build(j, 0, j->n, &built));
    for (size_t from = 0, to; !built && from < j->n; from = to) {
        bool op_built;
        for (to = from; to < j->n && j->trials[to].op == j->trials[from].op;) to++;
        CLV_TRY(build(j, from, to, &op_built));
    }
    return CLV_OK;
}

// ---- running --------------------------------------------------------------------------------------------------------

static clv_status told(job *j, const char *op) {
    j->done++;
    if (j->tally.failed) CLV_FAIL(error_of(j), CLV_E_HOST_MEMORY, "no memory for the report");
    if (j->config->progress && !j->config->progress(j->config->user, j->done, j->total, op))
        CLV_FAIL(error_of(j), CLV_E_INTERRUPTED, "check stopped after %d of %d cases", j->done, j->total);
    return CLV_OK;
}

/** Elements of all targets and inputs of a subject, in their dtypes. */
typedef struct elements {
    void *in[CLV__MAX_IN], *target[CLV__MAX_TARGETS];
} elements;

static void elements_reset(elements *e) {
    for (int i = 0; i < CLV__MAX_IN; i++) free(e->in[i]);
    for (int i = 0; i < CLV__MAX_TARGETS; i++) free(e->target[i]);
    *e = (elements){0};
}

static clv_status elements_init(job *j, const clv__subject *subject, elements *e) {
    *e = (elements){0};
    bool there = true;
    for (int i = 0; i < subject->sample.n_in; i++) {
        if (!subject->in[i]) continue;
        there &= (e->in[i] = clv__alloc(clv_tensor_bytes(subject->in[i]) + 1, 1)) != NULL;
        if (e->in[i]) clv__values_get(&subject->start, subject->in[i], e->in[i]);
    }
    for (int i = 0; i < subject->n_targets; i++)
        there &= (e->target[i] = clv__alloc(clv_tensor_bytes(subject->targets[i]) + 1, 1)) != NULL;
    if (there) return CLV_OK;
    elements_reset(e);
    CLV_FAIL(error_of(j), CLV_E_HOST_MEMORY, "no memory for the tensors of a sample of '%s'",
             subject->op->name);
}

/** Compare the first n targets; the worst of them is the case's. */
static void compare(job *j, const trial *t, clv__case where, const clv__expected *expected, const elements *e,
                    int n) {
    clv__distance worst = {.index = -1, .ratio = -1};
    int at = 0;
    for (int i = 0; i < n; i++) {
        clv__distance here = clv__expected_distance(expected, t->subject.targets[i], e->target[i]);
        if (!(here.ratio <= worst.ratio)) worst = here, at = i;
    }
    clv__tally_ran(&j->tally, where, t->subject.what[at], &worst);
}

/** The targets that the op itself makes come first: its outputs, then the inputs it mutates. */
static clv_status run_variant(job *j, trial *t, int k, const clv__expected *expected, elements *e) {
    const clv__subject *subject = &t->subject;
    clv__case where = {t->op->name, t->op->variants[k].name, t->label};
    clv__guarded tensors = {0};
    int target = 0;
    for (int i = 0; i < t->use->n_out; i++) tensors.out[i] = e->target[target++];
    for (int i = 0; i < subject->sample.n_in; i++) {
        tensors.in[i] = e->in[i];
        if (subject->in[i] && t->op->mutates >> i & 1) tensors.in_after[i] = e->target[target++];
    }
    clv_status status =
        t->launches[k].failed
            ? clv__error_set(error_of(j), CLV_E_HOST_MEMORY, "its launches could not be written down")
            : clv__guarded_run(j->device, t->use, &t->launches[k], &tensors);
    if (status == CLV_E_UNSUPPORTED && k > 0) { // `plain` has no excuse
        clv__tally_skip(&j->tally, t->op->name, "variant '%s': %s", where.variant, error_of(j)->text);
    } else if (status != CLV_OK) {
        clv__tally_broken(&j->tally, where, error_of(j)->text);
    } else {
        compare(j, t, where, expected, e, target);
    }
    return told(j, t->op->name);
}

static clv_status run_plan(job *j, trial *t, const clv__expected *expected, elements *e) {
    clv__case where = {t->op->name, "plan", t->label};
    clv_status status = clv__planned_run(&t->subject, t->plan, j->config->seed, e->target);
    if (status != CLV_OK)
        clv__tally_broken(&j->tally, where, error_of(j)->text);
    else
        compare(j, t, where, expected, e, t->subject.n_targets);
    return told(j, t->op->name);
}

static clv_status run_differences(job *j, trial *t) {
    const clv__subject *subject = &t->subject;
    clv__case where = {t->op->name, "differences", t->label};
    clv_tensor *wrt[CLV__MAX_IN];
    int n = 0;
    clv__distance worst;
    if (subject->sample.no_gradient) {
        clv__tally_skip(&j->tally, t->op->name,
                        "gradient not held against differences: steps, kinks or randomness");
        return CLV_OK;
    }
    for (int i = 0; i < subject->sample.n_in; i++)
        if (subject->in[i] && subject->in[i]->requires_grad) wrt[n++] = subject->in[i];
    CLV_TRY(
        clv__differences(&subject->start, subject->loss, wrt, n, 0, j->config->seed, error_of(j), &worst));
    clv__tally_ran(&j->tally, where, "derivative along direction", &worst);
    return told(j, t->op->name);
}

static clv_status run_with(job *j, trial *t, const clv__expected *expected, elements *e) {
    for (int k = 0; k < MAX_VARIANTS; k++)
        if (t->wanted[k]) CLV_TRY(run_variant(j, t, k, expected, e));
    if (t->plan) CLV_TRY(run_plan(j, t, expected, e));
    return held_against_differences(t) ? run_differences(j, t) : CLV_OK;
}

static clv_status run_trial(job *j, trial *t) {
    if (t->broken) {
        clv__tally_broken(&j->tally, (clv__case){t->op->name, "plan", t->label}, t->broken);
        CLV_TRY(told(j, t->op->name));
    }
    if (!t->subject.graph) return CLV_OK;
    clv__expected expected = {0};
    elements e = {0};
    CLV_TRY(clv__subject_fill(&t->subject, j->config->seed));
    clv_status status = clv__expected_init(&expected, &t->subject.start, t->subject.targets,
                                           t->subject.n_targets, error_of(j));
    if (status == CLV_OK) status = elements_init(j, &t->subject, &e);
    if (status == CLV_OK) status = run_with(j, t, &expected, &e);
    elements_reset(&e);
    clv__expected_reset(&expected);
    clv__values_reset(&t->subject.start);
    return status;
}

// ---- all of it ------------------------------------------------------------------------------------------------------

static void job_reset(job *j) {
    for (size_t i = 0; i < j->n; i++) {
        trial *t = &j->trials[i];
        clv_plan_destroy(t->plan);
        clv__subject_reset(&t->subject);
        for (int k = 0; k < MAX_VARIANTS; k++) clv__launches_reset(&t->launches[k]);
        free(t->broken);
    }
    free(j->trials);
}

static clv_status run_job(job *j, const clv__op *const *ops) {
    clv_device *device = j->device;
    if (!device->info.usable)
        CLV_FAIL(error_of(j), CLV_E_UNSUPPORTED, "cannot check %s: %s", device->info.name,
                 device->info.reason);
    if (strcmp(device->info.backend, "null") == 0)
        CLV_FAIL(error_of(j), CLV_E_UNSUPPORTED, "cannot check %s: it records commands and computes nothing",
                 device->info.name);
    clv_dtype only = j->config->dtype;
    if (only != CLV_DTYPE_NONE && only != CLV_DTYPE_F32 && !clv__is_half(only))
        CLV_FAIL(error_of(j), CLV_E_VALUE, "check: floats are stored in f32, f16 or bf16, not in %s",
                 clv_dtype_name(only));
    bool found = false;
    for (; *ops; ops++) {
        if (j->config->op && strcmp((*ops)->name, j->config->op) != 0) continue;
        CLV_TRY(write_down_op(j, *ops));
        found = true;
    }
    if (!found && j->config->op) CLV_FAIL(error_of(j), CLV_E_NOT_FOUND, "there is no op '%s'", j->config->op);
    if (by_kernels(j)) CLV_TRY(build_all(j));
    for (size_t i = 0; i < j->n; i++) CLV_TRY(run_trial(j, &j->trials[i]));
    return CLV_OK;
}

clv_status clv__check_ops(clv_runtime *runtime, clv_device *device, const clv__op *const *ops,
                          const clv_check_config *config, clv_check_report **out) {
    static const clv_check_config defaults = {0};
    *out = NULL;
    job j = {.runtime = runtime, .device = device, .config = config ? config : &defaults};
    j.tally.report = clv__alloc(1, sizeof *j.tally.report);
    if (!j.tally.report) CLV_FAIL(error_of(&j), CLV_E_HOST_MEMORY, "no memory for the report");
    j.tally.report->seed = j.config->seed;
    clv_status status = run_job(&j, ops);
    job_reset(&j);
    if (status == CLV_OK)
        *out = j.tally.report;
    else
        clv_check_report_destroy(j.tally.report);
    return status;
}

clv_status clv_check(clv_runtime *runtime, clv_device *device, const clv_check_config *config,
                     clv_check_report **out) {
    return clv__check_ops(runtime, device, clv__ops, config, out);
}
