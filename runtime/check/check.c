// SPDX-License-Identifier: Apache-2.0
// clv_check: every sample of every op on a device. First everything is written down (graphs, launches, plans) and built
// in few programs, because a program costs much more than a kernel; then sample by sample is run and compared.
#include "check/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "check/differences.h"
#include "check/findings.h"
#include "check/guarded.h"
#include "check/planned.h"
#include "check/report.h"
#include "check/reproduce.h"
#include "check/wanted.h"
#include "device/program.h"
#include "graph/quarantine.h"
#include "plan/plan.h"
#include "tensor/dtype.h"

/** What is done with a variant of the op. */
typedef struct attempt {
    clv__launches launches;
    bool wanted, ran, failed;
} attempt;

/** One sample with all that is run for it. */
typedef struct trial {
    const clv__op *op;
    char label[96];        // the sample's
    const clv__op_io *use; // the subject's node, or what the plan made of it and what follows it
    clv__subject subject;
    clv_plan *plan;
    char *broken;             // why there is no graph or no plan; NULL if there are
    clv_status broken_status; // of that
    attempt *variants;        // of each that the op has
    int n_variants;
    bool plan_wanted, differences_wanted;
    int cases;
} trial;

typedef struct job {
    clv_runtime *runtime;
    clv_device *device;
    clv__sampler sampler;
    const clv_check_config *config;
    clv__tally tally;
    clv__wanted wanted;
    bool lost; // the device, in an earlier case
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

/** Then nothing is known of what was to be done: it is neither right nor wrong. */
static bool is_out_of_memory(clv_status status) {
    return status == CLV_E_HOST_MEMORY || status == CLV_E_DEVICE_MEMORY || status == CLV_E_BUDGET;
}

static clv__case case_of(const trial *t, const char *variant) {
    return (clv__case){t->op->name, variant, t->label, 0};
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

/** Say of each tensor among the arguments how large it is, as the planner does (plan/variants.h). */
static void note_bytes(clv__launches *list, const clv__op_io *io) {
    for (size_t i = 0; i < list->n; i++) {
        for (int k = 0; k < list->items[i].n_slots; k++) {
            clv__slot *slot = &list->items[i].slots[k];
            if (slot->kind == CLV__SLOT_OUT) slot->bytes = clv__desc_bytes(&io->out[slot->index]);
            if (slot->kind == CLV__SLOT_IN && clv__has_in(io, slot->index))
                slot->bytes = clv__desc_bytes(&io->in[slot->index]);
        }
    }
}

static clv_status lower_variants(job *j, trial *t) {
    const clv__op_io *io = t->use;
    int k = 0;
    for (const clv__variant *v = t->op->variants; k < t->n_variants; v++, k++) {
        if (!t->variants[k].wanted) continue;
        if (!clv__variant_supports(v, &j->device->info, io)) {
            clv__tally_skip(&j->tally, case_of(t, v->name),
                            "variant '%s' does not take these shapes on this device", v->name);
            t->variants[k].wanted = false;
            continue;
        }
        t->variants[k].launches.device = &j->device->info;
        clv__variant_lower(v, &t->variants[k].launches, io);
        note_bytes(&t->variants[k].launches, io);
        if (j->config->quick && clv__threads(&j->device->info)) fix_groups(&t->variants[k].launches);
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
    clv_status status = clv_plan_create(t->subject.graph, &config, &t->plan);
    if (status != CLV_E_UNSUPPORTED) return status;
    // Nothing is left but what is in quarantine: only what is tried can be found right, and used again.
    clv__quarantine *lifted = clv__quarantine_lift(j->device);
    if (lifted) status = clv_plan_create(t->subject.graph, &config, &t->plan);
    clv__quarantine_give_back(j->device, lifted);
    return status;
}

static clv_status keep_broken(job *j, trial *t, clv_status status) {
    t->broken_status = status;
    return (t->broken = clv__strdup(error_of(j)->text)) ? CLV_OK : CLV_E_HOST_MEMORY;
}

/** The graph with its gradient, or without if that cannot be built: then the plan's case is broken, and says why. */
static clv_status write_down(job *j, trial *t, const clv__sample *sample) {
    clv_status status = clv__subject_init(&t->subject, j->runtime, t->op, sample, !sample->followed);
    if (status != CLV_OK) {
        CLV_TRY(keep_broken(j, t, status));
        if (!is_out_of_memory(status))
            status = clv__subject_init(&t->subject, j->runtime, t->op, sample, false);
        if (status != CLV_OK && t->plan_wanted)
            t->differences_wanted = false; // `plan` says that there is no graph
        t->cases = t->plan_wanted + (t->differences_wanted && !sample->no_gradient);
        if (status != CLV_OK) return CLV_OK;
        t->use = &t->subject.node->io;
        return lower_variants(j, t);
    }
    t->use = &t->subject.node->io;
    t->differences_wanted &= held_against_differences(t);
    t->cases += t->plan_wanted + (t->differences_wanted && !sample->no_gradient);
    if (t->plan_wanted || t->subject.sample.followed) { // which tells the use with the epilogue
        status = make_plan(j, t);
        if (status == CLV_OK) status = find_epilogue(j, t);
        if (status != CLV_OK) CLV_TRY(keep_broken(j, t, status));
    }
    return lower_variants(j, t);
}

/** Which of its cases are asked for? */
static clv_status find_wanted(job *j, trial *t, const clv__sample *sample, bool *any) {
    const clv__variant *v = t->op->variants;
    while (v && v[t->n_variants].name) t->n_variants++;
    t->variants = clv__alloc((size_t)t->n_variants, sizeof *t->variants);
    if (!t->variants)
        CLV_FAIL(error_of(j), CLV_E_HOST_MEMORY, "no memory for the variants of '%s'", t->op->name);
    for (int k = 0; k < t->n_variants && by_kernels(j); v++, k++) {
        *any |= t->variants[k].wanted = clv__wanted_case(&j->wanted, t->op->name, v->name, t->label);
    }
    *any |= t->plan_wanted = clv__wanted_case(&j->wanted, t->op->name, "plan", t->label);
    if ((t->op->grad || clv__is_composite(t->op)) && sample->stored == CLV_DTYPE_NONE && !sample->followed)
        *any |= t->differences_wanted = clv__wanted_case(&j->wanted, t->op->name, "differences", t->label);
    return CLV_OK;
}

static clv_status add_trial(job *j, const clv__op *op, const clv__sample *sample) {
    trial new = {.op = op};
    bool any = false;
    memcpy(new.label, sample->label, sizeof new.label);
    CLV_TRY(find_wanted(j, &new, sample, &any));
    const bool here = any && clv__wanted_here(&j->wanted);
    if (!here || !clv__grow(&j->trials, &j->room, j->n + 1, sizeof *j->trials)) {
        free(new.variants);
        if (!here) return CLV_OK;
        CLV_FAIL(error_of(j), CLV_E_HOST_MEMORY, "no memory for the cases of '%s'", op->name);
    }
    trial *t = &j->trials[j->n++];
    *t = new;
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

/** Labels of the samples of an op so far. */
typedef struct labels {
    char (*items)[sizeof((clv__sample *)0)->label];
    size_t n, room;
} labels;

/** Name the sample as no other of the op is: the second of a label is `label (2)`, whichever samples are asked for. */
static clv_status make_unique(job *j, const clv__op *op, labels *seen, clv__sample *sample) {
    int times = 1;
    size_t used = strlen(sample->label);
    for (size_t i = 0; i < seen->n; i++) times += strcmp(seen->items[i], sample->label) == 0;
    if (!clv__grow(&seen->items, &seen->room, seen->n + 1, sizeof *seen->items))
        CLV_FAIL(error_of(j), CLV_E_HOST_MEMORY, "no memory for the cases of '%s'", op->name);
    memcpy(seen->items[seen->n++], sample->label, sizeof sample->label);
    if (times > 1) snprintf(sample->label + used, sizeof sample->label - used, " (%d)", times);
    return CLV_OK;
}

static clv_status write_down_samples(job *j, const clv__op *op, labels *seen) {
    clv__sample sample = {0};
    clv_dtype only = j->config->dtype;
    int taken = 0, before = j->wanted.samples;
    for (int i = 0; j->sampler(op, i, &sample); i++) {
        CLV_TRY(make_unique(j, op, seen, &sample));
        if (j->config->quick && !sample.quick) continue;
        if (only == CLV_DTYPE_NONE || only == CLV_DTYPE_F32) {
            CLV_TRY(add_trial(j, op, &sample));
            CLV_TRY(add_followed_trial(j, op, &sample, taken == 0));
        }
        if (only != CLV_DTYPE_F32) CLV_TRY(add_stored_trials(j, op, &sample, taken == 0));
        taken++;
    }
    bool filtered = (j->config->cases && *j->config->cases) || j->wanted.excluded || j->config->shard > 1;
    if (j->wanted.samples == before && !filtered)
        clv__tally_skip(&j->tally, (clv__case){op->name, "", "", 0},
                        !op->sample && !op->samples ? "the op has no samples"
                        : taken                     ? "it stores nothing in that dtype"
                                                    : "no sample is marked as quick");
    return CLV_OK;
}

/** How many samples there are of it to be dealt out, of one dtype. */
static int samples_of(const job *j, const clv__op *op) {
    clv__sample sample = {0};
    int n = 0;
    for (int i = 0; j->sampler(op, i, &sample); i++) n += !j->config->quick || sample.quick;
    return n;
}

static clv_status write_down_op(job *j, const clv__op *op) {
    labels seen = {0};
    clv_status status = write_down_samples(j, op, &seen);
    free(seen.items);
    return status;
}

static clv_status gather(job *j, size_t from, size_t to, const clv__launch ***list, size_t *n) {
    *n = 0;
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1 && !(*list = clv__alloc(*n + 1, sizeof **list)))
            CLV_FAIL(error_of(j), CLV_E_HOST_MEMORY, "no memory for %zu launches", *n);
        *n = 0;
        for (size_t i = from; i < to; i++) {
            const trial *t = &j->trials[i];
            for (int v = 0; v < t->n_variants; v++)
                for (size_t l = 0; l < t->variants[v].launches.n; l++, (*n)++)
                    if (pass) (*list)[*n] = &t->variants[v].launches.items[l];
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
        CLV_FAIL(error_of(j), CLV_E_INTERRUPTED, "check stopped after %d of %d cases: %d passed, %d failed",
                 j->done, j->total, j->tally.report->passed, j->tally.report->failed);
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

/** Compare the first n targets; the worst of them is the case's. Is it right? */
static bool compare(job *j, const trial *t, clv__case where, const clv__expected *expected, const elements *e,
                    int n) {
    clv__distance worst = {.index = -1, .ratio = -1};
    int at = 0;
    for (int i = 0; i < n; i++) {
        clv__distance here = clv__expected_distance(expected, t->subject.targets[i], e->target[i]);
        if (!(here.ratio <= worst.ratio)) worst = here, at = i;
    }
    clv__tally_ran(&j->tally, where, t->subject.what[at], &worst);
    return worst.ratio <= 1;
}

/** A case that ended with a status: how is it counted? Once a device is lost, no later case says anything of its op. */
static bool tally_status(job *j, clv__case where, clv_status status) {
    const char *why = error_of(j)->text;
    if (is_out_of_memory(status) || (j->lost && status == CLV_E_DEVICE_LOST)) {
        clv__tally_not_run(&j->tally, where, why);
        return false;
    }
    j->lost |= status == CLV_E_DEVICE_LOST;
    clv__tally_broken(&j->tally, where, why);
    return true;
}

/** The targets that the op itself makes come first: its outputs, then the inputs it mutates. */
static clv_status run_variant(job *j, trial *t, int k, const clv__expected *expected, elements *e) {
    const clv__subject *subject = &t->subject;
    clv__case where = case_of(t, t->op->variants[k].name);
    clv__guarded tensors = {0};
    double start = clv__seconds();
    int target = 0;
    for (int i = 0; i < t->use->n_out; i++) tensors.out[i] = e->target[target++];
    for (int i = 0; i < subject->sample.n_in; i++) {
        tensors.in[i] = e->in[i];
        if (subject->in[i] && t->op->mutates >> i & 1) tensors.in_after[i] = e->target[target++];
    }
    clv_status status =
        t->variants[k].launches.failed
            ? clv__error_set(error_of(j),
                             t->variants[k].launches.out_of_memory ? CLV_E_HOST_MEMORY : CLV_E_UNSUPPORTED,
                             "its launches could not be recorded: %s",
                             t->variants[k].launches.out_of_memory
                                 ? "no host memory"
                                 : "a size is past int, or there are too many arguments")
            : clv__guarded_run(j->device, t->use, &t->variants[k].launches, &tensors);
    where.seconds = clv__seconds() - start;
    if (status == CLV_E_UNSUPPORTED && k > 0 && !t->variants[k].launches.failed) { // `plain` has no excuse
        clv__tally_skip(&j->tally, where, "variant '%s': %s", where.variant, error_of(j)->text);
    } else if (status != CLV_OK) {
        t->variants[k].failed = tally_status(j, where, status);
        t->variants[k].ran = true;
    } else {
        clv__expected own = *expected; // borrows
        own.roundoff = clv__variant_roundoff(&t->op->variants[k]);
        t->variants[k].failed = !compare(j, t, where, &own, e, target);
        t->variants[k].ran = true;
    }
    return told(j, t->op->name);
}

static clv_status run_plan(job *j, trial *t, const clv__expected *expected, elements *e) {
    clv__case where = case_of(t, "plan");
    double start = clv__seconds();
    clv_status status = clv__planned_run(&t->subject, t->plan, j->config->seed, e->target);
    where.seconds = clv__seconds() - start;
    if (status != CLV_OK)
        tally_status(j, where, status);
    else
        compare(j, t, where, expected, e, t->subject.n_targets);
    return told(j, t->op->name);
}

static clv_status run_differences(job *j, trial *t) {
    const clv__subject *subject = &t->subject;
    clv__case where = case_of(t, "differences");
    double start = clv__seconds();
    clv_tensor *wrt[CLV__MAX_IN];
    int n = 0;
    clv__distance worst;
    if (subject->sample.no_gradient) {
        clv__tally_skip(
            &j->tally, where,
            "gradient not compared with finite differences: the op has steps, kinks or randomness");
        return CLV_OK;
    }
    for (int i = 0; i < subject->sample.n_in; i++)
        if (subject->in[i] && subject->in[i]->requires_grad) wrt[n++] = subject->in[i];
    clv_status status =
        clv__differences(&subject->start, subject->loss, wrt, n, 0, j->config->seed, error_of(j), &worst);
    where.seconds = clv__seconds() - start;
    if (status != CLV_OK) {
        tally_status(j, where, status);
        return told(j, t->op->name);
    }
    clv__tally_ran(&j->tally, where, "derivative along direction", &worst);
    return told(j, t->op->name);
}

static clv_status run_with(job *j, trial *t, const clv__expected *expected, elements *e) {
    for (int k = 0; k < t->n_variants; k++)
        if (t->variants[k].wanted) CLV_TRY(run_variant(j, t, k, expected, e));
    if (t->plan && t->plan_wanted && !t->broken) CLV_TRY(run_plan(j, t, expected, e));
    return t->differences_wanted ? run_differences(j, t) : CLV_OK;
}

/** Every case of the trial that is left ends so; `plan` has been told of where it is broken. */
static clv_status none_could_run(job *j, const trial *t, const char *why) {
    for (int k = 0; k < t->n_variants; k++) {
        if (!t->variants[k].wanted) continue;
        clv__tally_not_run(&j->tally, case_of(t, t->op->variants[k].name), why);
        CLV_TRY(told(j, t->op->name));
    }
    if (t->plan_wanted && !t->broken) {
        clv__tally_not_run(&j->tally, case_of(t, "plan"), why);
        CLV_TRY(told(j, t->op->name));
    }
    if (!t->differences_wanted || t->subject.sample.no_gradient) return CLV_OK;
    clv__tally_not_run(&j->tally, case_of(t, "differences"), why);
    return told(j, t->op->name);
}

static clv_status tell_broken(job *j, const trial *t, const char *which) {
    if (is_out_of_memory(t->broken_status))
        clv__tally_not_run(&j->tally, case_of(t, which), t->broken);
    else
        clv__tally_broken(&j->tally, case_of(t, which), t->broken);
    return told(j, t->op->name);
}

static clv_status run_trial(job *j, trial *t) {
    if (t->broken && t->plan_wanted) CLV_TRY(tell_broken(j, t, "plan"));
    if (t->broken && !t->subject.loss &&
        t->differences_wanted) { // there is no gradient to hold against anything
        t->differences_wanted = false;
        if (!t->subject.sample.no_gradient) CLV_TRY(tell_broken(j, t, "differences"));
    }
    bool not_known = t->broken && is_out_of_memory(t->broken_status);
    // Without a plan nobody knows a variant's use with what follows it, and the use without gives other values.
    bool no_use = t->broken && t->subject.sample.followed;
    if (!t->subject.graph || no_use)
        return not_known || (t->subject.graph && no_use) ? none_could_run(j, t, t->broken) : CLV_OK;
    clv__expected expected = {0};
    elements e = {0};
    clv_status status = clv__subject_fill(&t->subject, j->config->seed);
    if (status == CLV_OK)
        status = clv__expected_init(&expected, &t->subject.start, t->subject.targets, t->subject.n_targets,
                                    j->device, error_of(j));
    if (status == CLV_OK) status = elements_init(j, &t->subject, &e);
    if (status == CLV_OK) {
        status = run_with(j, t, &expected, &e);
    } else if (is_out_of_memory(status)) {
        char why[CLV__ERROR_BYTES];
        clv__error_read(error_of(j), why);
        status = none_could_run(j, t, why);
    }
    elements_reset(&e);
    clv__expected_reset(&expected);
    clv__values_reset(&t->subject.start);
    return status;
}

/** Name the cases that would be run. */
static clv_status list_trial(job *j, const trial *t) {
    for (int k = 0; k < t->n_variants; k++)
        if (t->variants[k].wanted) clv__tally_listed(&j->tally, case_of(t, t->op->variants[k].name));
    if (t->plan_wanted) clv__tally_listed(&j->tally, case_of(t, "plan"));
    if (t->differences_wanted && !t->subject.sample.no_gradient)
        clv__tally_listed(&j->tally, case_of(t, "differences"));
    if (j->tally.failed) CLV_FAIL(error_of(j), CLV_E_HOST_MEMORY, "no memory for the report");
    return CLV_OK;
}

// ---- what follows from it -------------------------------------------------------------------------------------------

/** What became of the variants of ops, for those who plan. Of a program's own op nothing is kept: it has a name that others may give
 *  theirs, and whoever checks it mends it. */
static clv_status record(job *j) {
    clv__findings findings = {.whole = clv__wanted_whole(&j->wanted)};
    clv_status status = CLV_OK;
    for (size_t i = 0; status == CLV_OK && i < j->n; i++) {
        const trial *t = &j->trials[i];
        for (int k = 0; status == CLV_OK && k < t->n_variants; k++)
            if (t->variants[k].ran && !clv__op_is_enlisted(t->op)) // of what did not run nothing is known
                status = clv__findings_add(&findings, t->op, &t->op->variants[k], t->variants[k].failed,
                                           error_of(j));
    }
    for (int i = 0; i < j->tally.report->n_list; i++) {
        const clv_check_case *one = &j->tally.report->list[i];
        if (one->sentence && one->verdict != CLV_CHECK_SKIPPED)
            clv__findings_explain(&findings, one->op, one->variant, one->sentence,
                                  one->verdict == CLV_CHECK_NOT_RUN);
    }
    if (status == CLV_OK) status = clv__findings_record(&findings, j->device, j->tally.report, error_of(j));
    for (size_t i = 0; status == CLV_OK && i < j->n; i++)
        if (j->trials[i].use)
            clv__findings_instead(j->tally.report, j->device, j->trials[i].use,
                                  &j->trials[i].subject.node->io);
    clv__findings_reset(&findings);
    return status;
}

// ---- all of it ------------------------------------------------------------------------------------------------------

static void job_reset(job *j) {
    for (size_t i = 0; i < j->n; i++) {
        trial *t = &j->trials[i];
        clv_plan_destroy(t->plan);
        clv__subject_reset(&t->subject);
        for (int k = 0; k < t->n_variants; k++) clv__launches_reset(&t->variants[k].launches);
        free(t->variants);
        free(t->broken);
    }
    free(j->trials);
    clv__wanted_reset(&j->wanted);
}

/** The library's ops, composites, and those of programs; ends with NULL. Owned. */
static const clv__op **all_ops(void) {
    size_t n = 0, more = 0;
    while (clv__op_at((int)n)) n++;
    while (clv__composites[more]) more++;
    const clv__op **all = clv__alloc(n + more + 1, sizeof *all);
    for (size_t i = 0; all && i < n + more; i++) all[i] = i < n ? clv__op_at((int)i) : clv__composites[i - n];
    return all;
}

static clv_status write_down_ops(job *j, const clv__op *const *ops) {
    for (const char *const *name = j->config->ops; name && *name; name++) {
        bool found = false;
        for (const clv__op *const *op = ops; *op && !found; op++)
            found = clv__name_matches(*name, (*op)->name);
        clv__nearest nearest;
        if (!found)
            CLV_FAIL(error_of(j), CLV_E_NOT_FOUND, "there is no op '%s'%s", *name,
                     clv__op_nearest(*name, &nearest));
    }
    int all = 0;
    for (const clv__op *const *op = ops; *op && j->config->n_shards > 1; op++)
        if (clv__wanted_op(&j->wanted, (*op)->name)) all += samples_of(j, *op);
    for (; *ops; ops++) {
        if (!clv__wanted_op(&j->wanted, (*ops)->name)) continue;
        clv__wanted_begin(&j->wanted, all ? samples_of(j, *ops) : 0, all);
        CLV_TRY(write_down_op(j, *ops));
    }
    const char *missing = clv__wanted_missing(&j->wanted);
    if (missing)
        CLV_FAIL(error_of(j), CLV_E_NOT_FOUND, "%s has no case '%s'; `cleave check --list` names them",
                 j->device->info.name, missing);
    j->tally.report->excluded = j->wanted.excluded;
    return CLV_OK;
}

static clv_status check_device(const job *j) {
    clv_device *device = j->device;
    if (!device->info.usable)
        CLV_FAIL(error_of(j), CLV_E_UNSUPPORTED, "cannot check %s: %s", device->info.name,
                 device->info.reason);
    if (strcmp(device->info.backend, "null") == 0)
        CLV_FAIL(error_of(j), CLV_E_UNSUPPORTED, "cannot check %s: it records commands and computes nothing",
                 device->info.name);
    return CLV_OK;
}

static clv_status run_job(job *j, const clv__op *const *ops) {
    CLV_TRY(check_device(j));
    CLV_TRY(write_down_ops(j, ops));
    if (j->config->list) {
        for (size_t i = 0; i < j->n; i++) CLV_TRY(list_trial(j, &j->trials[i]));
        return CLV_OK;
    }
    if (by_kernels(j)) CLV_TRY(build_all(j));
    for (size_t i = 0; i < j->n; i++) CLV_TRY(run_trial(j, &j->trials[i]));
    return j->config->record && by_kernels(j) ? record(j) : CLV_OK;
}

clv_status clv__check_ops(clv_runtime *runtime, clv_device *device, const clv__op *const *ops,
                          clv__sampler sampler, const clv_check_config *config, clv_check_report **out) {
    static const clv_check_config defaults = {0};
    *out = NULL;
    job j = {.runtime = runtime, .device = device, .config = config ? config : &defaults};
    j.sampler = sampler ? sampler : clv__op_sample;
    j.tally.report = clv__check_report_create();
    if (!j.tally.report) CLV_FAIL(error_of(&j), CLV_E_HOST_MEMORY, "no memory for the report");
    j.tally.report->seed = j.config->seed;
    j.tally.config = j.config;
    clv_status status = clv__wanted_init(&j.wanted, j.config, error_of(&j));
    if (status == CLV_OK) status = run_job(&j, ops);
    job_reset(&j);
    if (status == CLV_OK)
        *out = j.tally.report;
    else
        clv_free(j.tally.report);
    return status;
}

// ---- one case as a program ------------------------------------------------------------------------------------------

/** The one trial, and of its cases the one that is asked for: a variant's number, or -1 for the plan's. */
static clv_status find_case(const job *j, const char *name, trial **out, int *variant) {
    trial *found = NULL;
    int n = 0, on_host = 0;
    for (size_t i = 0; i < j->n; i++) {
        trial *t = &j->trials[i];
        for (int k = -1; k < t->n_variants; k++) {
            if (!(k < 0 ? t->plan_wanted : t->variants[k].wanted)) continue;
            n++;
            found = t;
            *variant = k;
        }
        on_host += t->differences_wanted && !t->subject.sample.no_gradient;
    }
    *out = found;
    if (n + on_host > 1)
        CLV_FAIL(error_of(j), CLV_E_NOT_FOUND,
                 "'%s' names %d cases, and one is wanted; `cleave check --list` names them", name,
                 n + on_host);
    if (on_host)
        CLV_FAIL(error_of(j), CLV_E_UNSUPPORTED,
                 "'%s' is computed on the host alone, in double: no device takes part", name);
    if (found) return CLV_OK;
    const clv_check_report *report = j->tally.report;
    CLV_FAIL(error_of(j), CLV_E_NOT_FOUND, "%s has no case '%s'%s%s", j->device->info.name, name,
             report->n_list ? ": " : "; `cleave check --list` names them",
             report->n_list ? report->list[0].sentence : "");
}

static clv_status reproduce(job *j, const char *name, clv__text *text) {
    trial *t = NULL;
    int variant = -1;
    if (!by_kernels(j))
        CLV_FAIL(error_of(j), CLV_E_UNSUPPORTED, "%s runs no kernels: name an OpenCL device",
                 j->device->info.name);
    const clv__op **ops = all_ops();
    if (!ops) CLV_FAIL(error_of(j), CLV_E_HOST_MEMORY, "no memory for the case");
    clv_status written = write_down_ops(j, ops);
    free(ops);
    CLV_TRY(written);
    CLV_TRY(find_case(j, name, &t, &variant));
    if (t->broken && (variant < 0 || !t->subject.graph))
        CLV_FAIL(error_of(j), CLV_E_UNSUPPORTED, "'%s' has no launches: %.1000s", name, t->broken);
    if (variant >= 0 && t->variants[variant].launches.failed)
        CLV_FAIL(error_of(j), CLV_E_UNSUPPORTED, "the launches of '%s' could not be recorded", name);
    CLV_TRY(clv__device_open(j->device));
    CLV_TRY(clv__subject_fill(&t->subject, j->config->seed));
    clv__expected expected = {0};
    CLV_TRY(clv__expected_init(&expected, &t->subject.start, t->subject.targets, t->subject.n_targets,
                               j->device, error_of(j)));
    if (variant >= 0) expected.roundoff = clv__variant_roundoff(&t->op->variants[variant]);
    clv__reproduction of = {.name = name,
                            .seed = j->config->seed,
                            .device = j->device,
                            .subject = &t->subject,
                            .expected = &expected,
                            .use = variant < 0 ? NULL : t->use,
                            .launches = variant < 0 ? NULL : &t->variants[variant].launches,
                            .plan = variant < 0 ? t->plan : NULL};
    clv_status status = clv__reproduce(&of, error_of(j), text);
    clv__expected_reset(&expected);
    return status;
}

clv_status clv_check_reproduce(clv_runtime *runtime, clv_device *device, const clv_check_config *config,
                               const char *name, char **out) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), device));
    CLV_TRY(CLV__GIVEN(clv__runtime_error_of(runtime), out));
    CLV_TRY(CLV__GIVEN(clv__runtime_error_of(runtime), name));
    const char *const names[] = {name, NULL};
    clv_check_config only = {
        .cases = names, .quick = config && config->quick, .seed = config ? config->seed : 0};
    job j = {.runtime = runtime, .device = device, .sampler = clv__op_sample, .config = &only};
    clv__text text = {0};
    *out = NULL;
    j.tally = (clv__tally){.report = clv__check_report_create(), .config = &only};
    if (!j.tally.report) CLV_FAIL(error_of(&j), CLV_E_HOST_MEMORY, "no memory for the case");
    clv_status status = clv__wanted_init(&j.wanted, &only, error_of(&j));
    if (status == CLV_OK) status = check_device(&j);
    if (status == CLV_OK) status = reproduce(&j, name, &text);
    job_reset(&j);
    clv_free(j.tally.report);
    if (status == CLV_OK && !(*out = clv__owned(text.n + 1, NULL)))
        status = clv__error_set(error_of(&j), CLV_E_HOST_MEMORY, "no memory for the case");
    if (status == CLV_OK) memcpy(*out, text.data, text.n);
    clv__text_reset(&text);
    return status;
}

clv_status clv_check(clv_runtime *runtime, clv_device *device, const clv_check_config *config,
                     clv_check_report **out) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), device));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), out));
    const clv__op **ops = all_ops();
    if (!ops) CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_HOST_MEMORY, "no memory for the report");
    clv_status status = clv__check_ops(runtime, device, ops, NULL, config, out);
    free(ops);
    return status;
}
