// SPDX-License-Identifier: Apache-2.0
// Which results are dropped and computed again (gradient checkpointing: Chen et al. 2016, arXiv:1604.06174).
//
// By name: each pattern of `layer1.*,layer2.0` names modules, and each module is treated as one wrapped in
// torch.utils.checkpoint: what its layers compute is dropped after the forward pass, except what leaves the module; the first
// gradient inside it computes the module's forward pass again, from what came into it. `auto` asks fit.c.
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "plan/passes.h"
#include "plan/remake.h"

// ---- by name ----------------------------------------------------------------------------------------------------------

/** Does the pattern name the module, or (as `features.*`) what lies in it? */
static bool names(const char *pattern, const char *module) {
    char whole[512];
    size_t n = strlen(pattern);
    if (fnmatch(pattern, module, 0) == 0) return true;
    if (n < 3 || n >= sizeof whole || strcmp(pattern + n - 2, ".*") != 0) return false;
    memcpy(whole, pattern, n - 2);
    whole[n - 2] = 0;
    return fnmatch(whole, module, 0) == 0;
}

/** Length of the outermost module around a layer that the pattern names; 0: none. */
static size_t module_of(const char *pattern, const char *layer) {
    char module[512];
    for (size_t n = 1; *layer && n <= strlen(layer) && n < sizeof module; n++) {
        if (layer[n] != '.' && layer[n]) continue;
        memcpy(module, layer, n);
        module[n] = 0;
        if (names(pattern, module)) return n;
    }
    return 0;
}

/** A module that a pattern names: a pattern, and the beginning of a layer's path. Length 0: none. */
typedef struct segment {
    int pattern;
    const char *layer;
    size_t length;
} segment;

static bool same_segment(const segment *a, const segment *b) {
    return a->length == b->length && a->pattern == b->pattern &&
           (a->length == 0 || memcmp(a->layer, b->layer, a->length) == 0);
}

/** Put each forward node into the segment that `pattern` names; a later pattern overrides an earlier one. */
static clv_status mark(const clv__remake *remake, const char *pattern, int number, segment *segments) {
    bool found = false;
    for (size_t i = 0; i < remake->n_base; i++) {
        const clv__plan_node *node = &remake->base[i];
        if (node->work != CLV__COMPUTE || node->node->phase != CLV__FORWARD) continue;
        size_t length = module_of(pattern, node->node->layer);
        if (length) segments[i] = (segment){number, node->node->layer, length};
        found |= length > 0;
    }
    if (found) return CLV_OK;
    clv__nearest nearest;
    CLV_FAIL(clv__plan_error(remake->plan), CLV_E_NOT_FOUND, "recompute: no layer matches '%s'%s", pattern,
             clv__graph_nearest(remake->plan->graph, pattern, &nearest));
}

static clv_status mark_all(const clv__remake *remake, const char *patterns, segment *segments) {
    clv__error *error = clv__plan_error(remake->plan);
    char *text = clv__strdup(patterns), *rest = text;
    clv_status status = CLV_OK;
    int n = 0;
    if (!text) return clv__plan_no_memory(remake->plan);
    for (char *pattern; status == CLV_OK && (pattern = strsep(&rest, ",")) != NULL;) {
        pattern = clv__text_trim(pattern);
        if (strcmp(pattern, "auto") == 0)
            status = clv__error_set(error, CLV_E_VALUE,
                                    "recompute: auto cannot be combined with names of layers, as in '%s'",
                                    patterns);
        else if (*pattern)
            status = mark(remake, pattern, n++, segments);
    }
    if (status == CLV_OK && n == 0)
        status = clv__error_set(error, CLV_E_VALUE, "recompute: '%s' names no layer", patterns);
    free(text);
    return status;
}

/** Everything in a segment is dropped, except what the forward pass reads outside of it. */
static void drop_inside(clv__remake *remake, const segment *segments) {
    for (size_t i = 0; i < remake->n_base; i++)
        remake->fate[i] = segments[i].length ? CLV__AGAIN_ONCE : CLV__KEEP;
    for (size_t i = 0; i < remake->n_base; i++) {
        const clv__plan_node *node = &remake->base[i];
        if (node->work == CLV__COMPUTE && node->node->phase != CLV__FORWARD) continue;
        for (int k = 0; k < CLV__MAX_IN; k++) {
            int made_by = node->in[k] < 0 ? -1 : remake->maker[node->in[k]];
            if (made_by < 0 || same_segment(&segments[made_by], &segments[i])) continue;
            remake->fate[made_by] = CLV__KEEP;
            // what is seen through views leaves with them
            while (made_by >= 0 && remake->base[made_by].node->io.op->view) {
                made_by = remake->maker[remake->base[made_by].in[0]];
                if (made_by >= 0) remake->fate[made_by] = CLV__KEEP;
            }
        }
    }
}

static clv_status choose_by_name(clv__remake *remake) {
    segment *segments = clv__alloc(remake->n_base, sizeof *segments);
    if (!segments) return clv__plan_no_memory(remake->plan);
    clv_status status = mark_all(remake, remake->plan->recompute, segments);
    if (status == CLV_OK) {
        drop_inside(remake, segments);
        status = clv__remake_apply(remake);
    }
    free(segments);
    return status;
}

// ---- the pass ---------------------------------------------------------------------------------------------------------

/** What becomes of the plan with the nodes that it has now. */
static clv_status lay_out(clv_plan *plan) {
    return clv__passes_run(plan, CLV__PASS_roots, CLV__PASS_layout);
}

static uint64_t held_between(const clv_plan *plan) {
    uint64_t bytes = 0;
    for (int i = 0; i < plan->n_places; i++)
        bytes += plan->places[i].activations.bytes + plan->places[i].workspace_bytes;
    return bytes;
}

/** What came of it, for the plan to tell. */
static clv_status account(clv__remake *remake, uint64_t before) {
    clv_plan *plan = remake->plan;
    CLV_TRY(lay_out(plan));
    uint64_t after = held_between(plan);
    plan->recomputed = (clv_plan_recomputed){
        .saved_bytes = before > after ? before - after : 0,
        .extra_time = remake->base_work > 0 ? remake->extra_work / remake->base_work : 0,
    };
    for (size_t i = 0; i < plan->n_nodes; i++)
        plan->recomputed.nodes += plan->nodes[i].again && !plan->nodes[i].node->io.op->view;
    return CLV_OK;
}

static clv_status run(clv_plan *plan) {
    plan->recomputed = (clv_plan_recomputed){0};
    plan->tight = false;
    if (!plan->recompute) return CLV_OK;
    clv__remake remake;
    CLV_TRY(clv__remake_init(&remake, plan)); // of nodes in the order in which all updates are last
    clv_status status = lay_out(plan);
    const uint64_t before =
        held_between(plan); // and from here on in the tighter layout of plans that are to save memory
    plan->tight = true;
    if (status == CLV_OK) status = lay_out(plan); // perhaps nothing need be dropped
    if (status == CLV_OK)
        status = strcmp(plan->recompute, "auto") == 0 ? clv__remake_fit(&remake) : choose_by_name(&remake);
    if (status == CLV_OK) status = account(&remake, before);
    if (status == CLV_OK) return clv__remake_finish(&remake);
    clv__remake_undo(&remake);
    return status;
}

const clv__pass clv__pass_recompute = {.run = run};
