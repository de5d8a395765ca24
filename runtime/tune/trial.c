// SPDX-License-Identifier: Apache-2.0
// Checks and times the candidates of one use; see trial.h. Each runs by clv__guarded_run: guard zones around every buffer,
// twice with the same bits, then timed.
#include "tune/trial.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "check/guarded.h"
#include "check/subject.h"
#include "check/tolerance.h"
#include "graph/quarantine.h"
#include "graph/signature.h"
#include "plan/plan.h"
#include "tensor/dtype.h"

// ---- making one -----------------------------------------------------------------------------------------------------

/** Whole numbers that any op may take as a label or an index: below every dimension of the numbers around them. */
static clv__fill whole_numbers(const clv__op_io *io) {
    int64_t least = 0;
    for (int i = 0; i < io->n_in + io->n_out; i++) {
        const clv__desc *desc = i < io->n_in ? &io->in[i] : &io->out[i - io->n_in];
        for (int d = 0; clv__is_float(desc->dtype) && d < desc->shape.rank; d++)
            if (desc->shape.dims[d] > 1 && (!least || desc->shape.dims[d] < least))
                least = desc->shape.dims[d];
    }
    return (clv__fill){CLV__FILL_INTEGER, 0,
                       least > 1 ? (double)(least - 1) : 0.5}; // 0 and 0 would be -1 to 1
}

/** Values as the op's own samples have them: what has to be positive is positive. */
static clv__fill fill_of(const clv__op_io *io, int input) {
    clv__sample sample = {0};
    if (io->in[input].dtype == CLV_DTYPE_I32) return whole_numbers(io);
    for (int i = 0; clv__op_sample(io->op, i, &sample); i++)
        if (input < sample.n_in && sample.in[input].dtype == io->in[input].dtype) return sample.fill[input];
    return (clv__fill){0};
}

/** Into its place by rank, behind those of the same rank. */
static void add_candidate(clv__trial *t, const clv__variant *variant) {
    const clv_device_info *info = &t->device->info;
    clv__candidate new = {.variant = variant, .rank = clv__variant_rank(variant, info, &t->io)};
    new.launches.device = info;
    clv__variant_lower(variant, &new.launches, &t->io);
    int at = t->n_candidates++;
    for (; at > 0 && t->candidates[at - 1].rank > new.rank; at--) t->candidates[at] = t->candidates[at - 1];
    t->candidates[at] = new;
}

static clv_status create(clv_device *device, const clv__op_io *use, const clv__sample *sample,
                         clv__trial **out) {
    clv__error *error = clv__runtime_error_of(device->runtime);
    size_t n = 0;
    while (use->op->variants && use->op->variants[n].name) n++;
    clv__trial *t = *out = clv__alloc(1, sizeof *t + n * sizeof *t->candidates);
    if (!t) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory for a use of '%s'", use->op->name);
    t->device = device;
    t->io = *use;
    t->nodes = 1;
    t->sample.n_in = use->n_in;
    memcpy(t->sample.in, use->in, (size_t)use->n_in * sizeof *use->in);
    if (use->attrs) memcpy(t->sample.attrs, use->attrs, use->op->attrs_bytes);
    t->io.in = t->sample.in;
    t->io.attrs = t->sample.attrs;
    for (int i = 0; i < use->n_in; i++) t->sample.fill[i] = sample ? sample->fill[i] : fill_of(use, i);
    for (const clv__variant *v = use->op->variants; v && v->name; v++)
        if (!v->roundoff && clv__variant_rounds(v, device->runtime->config.float32_products, &t->io) &&
            clv__variant_supports(v, &device->info, &t->io) &&
            !clv__quarantined(device, use->op, v))
            add_candidate(t, v);
    for (int i = 0; i < t->n_candidates; i++)
        if (t->candidates[i].launches.out_of_memory) {
            clv__trial_destroy(t);
            *out = NULL;
            CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory for the launches of '%s'", use->op->name);
        }
    clv__cost cost = {0};
    clv__op_cost(&t->io, &cost);
    t->weight =
        cost.flops * 1e-2 + cost.bytes * 1e-1; // 100 GFLOP/s and 10 GB/s, in ns: only the order counts
    return CLV_OK;
}

clv_status clv__trial_create(clv_device *device, const clv__op_io *use, clv__trial **out) {
    return create(device, use, NULL, out);
}

clv_status clv__trial_of_sample(clv_device *device, const clv__op *op, const clv__sample *sample,
                                clv__trial **out) {
    clv__op_io io = {.op = op, .attrs = sample->attrs, .n_in = sample->n_in, .in = sample->in};
    *out = NULL;
    if (clv__op_infer(&io, clv__runtime_error_of(device->runtime)) != CLV_OK) return CLV_E_INTERNAL;
    return create(device, &io, sample, out);
}

void clv__trial_destroy(clv__trial *t) {
    if (!t) return;
    for (int i = 0; i < t->n_candidates; i++) {
        clv__launches_reset(&t->candidates[i].launches);
        free(t->candidates[i].failure);
    }
    free(t);
}

/** A candidate whose rank is so many times the best one's is not expected to win. */
enum { FAR_BEHIND = 10 };

bool clv__trial_is_open(const clv__trial *t) {
    return t->n_candidates > 1 && t->candidates[1].rank <= FAR_BEHIND * t->candidates[0].rank;
}

bool clv__trial_is_large(const clv__trial *t) {
    // The reference runs nine times to learn the tolerance: a few tenths of a second at most.
    enum { MOST_FLOPS = 10000000, MOST_ELEMENTS = 500000 };
    clv__cost cost = {0};
    double elements = 0;
    clv__op_cost(&t->io, &cost);
    for (int i = 0; i < t->io.n_in; i++)
        elements += clv__has_in(&t->io, i) ? (double)clv__numel(&t->io.in[i]) : 0;
    for (int i = 0; i < t->io.n_out; i++) elements += (double)clv__numel(&t->io.out[i]);
    return cost.flops > MOST_FLOPS || elements > MOST_ELEMENTS;
}

// ---- racing ---------------------------------------------------------------------------------------------------------

/** The tensors of a race, as elements of their dtypes. */
typedef struct race {
    clv__trial *trial;
    clv__error *error;
    clv__subject subject;
    clv__expected expected; // empty until the reference has been asked
    bool is_expected;
    int first; // the candidate whose results the others are compared with; -1: none yet
    void *in[CLV__MAX_IN], *got[CLV__MAX_TARGETS], *of_first[CLV__MAX_TARGETS];
} race;

static void race_reset(race *r) {
    for (int i = 0; i < CLV__MAX_IN; i++) free(r->in[i]);
    for (int i = 0; i < CLV__MAX_TARGETS; i++) {
        free(r->got[i]);
        free(r->of_first[i]);
    }
    clv__expected_reset(&r->expected);
    clv__subject_reset(&r->subject);
}

static clv_status race_init(race *r) {
    const clv__trial *t = r->trial;
    clv__subject *subject = &r->subject;
    CLV_TRY(clv__subject_init(subject, t->device->runtime, t->io.op, &t->sample, false));
    CLV_TRY(clv__subject_fill(subject, 1));
    bool there = true;
    for (int i = 0; i < t->sample.n_in; i++) {
        if (!subject->in[i]) continue;
        there &= (r->in[i] = clv__alloc(clv_tensor_bytes(subject->in[i]) + 1, 1)) != NULL;
        if (r->in[i]) clv__values_get(&subject->start, subject->in[i], r->in[i]);
    }
    for (int i = 0; i < subject->n_targets; i++) {
        size_t bytes = clv_tensor_bytes(subject->targets[i]) + 1;
        there &= (r->got[i] = clv__alloc(bytes, 1)) && (r->of_first[i] = clv__alloc(bytes, 1));
    }
    clv__values_reset(
        &subject->start); // twice as large as the elements; made again when the reference is asked
    if (!there) CLV_FAIL(r->error, CLV_E_HOST_MEMORY, "no memory for the tensors of '%s'", t->io.op->name);
    return CLV_OK;
}

static clv_status ask_reference(race *r) {
    if (r->is_expected) return CLV_OK;
    CLV_TRY(clv__subject_fill(&r->subject, 1));
    CLV_TRY(clv__expected_init(&r->expected, &r->subject.start, r->subject.targets, r->subject.n_targets,
                               r->trial->device, r->error));
    r->is_expected = true;
    return CLV_OK;
}

/** Hold results against the reference; a failure is kept with the candidate. */
static clv_status judge(race *r, int k, void *const *results) {
    clv__candidate *c = &r->trial->candidates[k];
    CLV_TRY(ask_reference(r));
    for (int i = 0; i < r->subject.n_targets && !c->failure; i++) {
        clv__distance d = clv__expected_distance(&r->expected, r->subject.targets[i], results[i]);
        if (d.ratio <= 1) continue;
        clv__text text = {0};
        clv__text_add(&text, "wrong: element %lld of %s is %.9g and should be %.9g, within %.3g",
                      (long long)d.index, r->subject.what[i], d.got, d.want, d.tolerance);
        c->failure = text.failed ? NULL : clv__strdup(clv__text_get(&text));
        clv__text_reset(&text);
        c->median_us = 0;
        if (!c->failure) CLV_FAIL(r->error, CLV_E_HOST_MEMORY, "no memory for a sentence");
    }
    return CLV_OK;
}

/** Verify what a candidate has computed. Only where two candidates do not agree the reference is asked, however long it
 *  takes: then it says which of them is wrong. */
static clv_status verify(race *r, int k) {
    bool large = clv__trial_is_large(r->trial), agree = r->first >= 0;
    if (!large) return judge(r, k, r->got);
    for (int i = 0; agree && i < r->subject.n_targets; i++)
        agree = clv__tolerance_agree(r->subject.targets[i], r->trial->device, r->of_first[i], r->got[i]);
    if (r->first >= 0 && !agree) {
        CLV_TRY(judge(r, k, r->got));
        CLV_TRY(judge(r, r->first, r->of_first));
        if (!r->trial->candidates[r->first].failure) return CLV_OK;
        r->first = -1;
    }
    if (r->first >= 0 || r->trial->candidates[k].failure) return CLV_OK;
    for (int i = 0; i < r->subject.n_targets; i++)
        memcpy(r->of_first[i], r->got[i], clv_tensor_bytes(r->subject.targets[i]));
    r->first = k;
    return CLV_OK;
}

/** Run one candidate. The op's own targets come first: its outputs, then the inputs it mutates. */
static clv_status run_candidate(race *r, int k, clv__timing *timing) {
    clv__trial *t = r->trial;
    clv__candidate *c = &t->candidates[k];
    clv__guarded tensors = {.timing = timing};
    int target = 0;
    for (int i = 0; i < t->io.n_out; i++) tensors.out[i] = r->got[target++];
    for (int i = 0; i < t->sample.n_in; i++) {
        tensors.in[i] = r->in[i];
        if (r->subject.in[i] && t->io.op->mutates >> i & 1) tensors.in_after[i] = r->got[target++];
    }
    clv_status status = clv__guarded_run(t->device, &t->io, &c->launches, &tensors);
    switch (status) {
    case CLV_OK: break;
    case CLV_E_HOST_MEMORY:
    case CLV_E_DEVICE_LOST: return status;
    case CLV_E_DEVICE_MEMORY:
    case CLV_E_BUDGET:
    case CLV_E_UNSUPPORTED: return CLV_OK; // no room, or no such work-group: not timed, and not wrong
    default: {
        char text[CLV__ERROR_BYTES];
        clv__error_read(r->error, text);
        if (!(c->failure = clv__strdup(text)))
            CLV_FAIL(r->error, CLV_E_HOST_MEMORY, "no memory for a sentence");
        return CLV_OK;
    }
    }
    if (timing) c->median_us = timing->median_us;
    return verify(r, k);
}

/** Not worth its time: by its rank far behind the best, and slow enough to hurt. It would run four times at least. */
static bool is_hopeless(const clv__candidate *c, const clv__candidate *best, double seconds) {
    double expected_us = best && best->rank > 0 ? best->median_us * c->rank / best->rank : 0;
    return best && expected_us > FAR_BEHIND * best->median_us && 4 * expected_us > 2e6 * seconds;
}

static clv_status run_all(race *r, double seconds) {
    const clv__candidate *best = NULL;
    for (int k = 0; k < r->trial->n_candidates; k++) {
        clv__candidate *c = &r->trial->candidates[k];
        clv__timing timing = {.seconds = seconds, .enough_us = best ? 3 * best->median_us : 0};
        if (c->failure || c->launches.failed || (seconds > 0 && is_hopeless(c, best, seconds))) continue;
        CLV_TRY(run_candidate(r, k, seconds > 0 ? &timing : NULL));
        if (best && best->failure) best = NULL;
        if (c->median_us > 0 && (!best || c->median_us < best->median_us)) best = c;
    }
    return CLV_OK;
}

clv_status clv__trial_run(clv__trial *trial, double seconds) {
    race r = {.trial = trial, .error = clv__runtime_error_of(trial->device->runtime), .first = -1};
    clv_status status = race_init(&r);
    if (status == CLV_OK) status = run_all(&r, seconds);
    race_reset(&r);
    return status;
}
