// SPDX-License-Identifier: Apache-2.0
// The pipeline: the table of passes, and one that is made again from its middle.
#include "plan/passes.h"

#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"
#include "plan/print.h"
#include "plan/variants.h"

static const struct row {
    const char *name;
    const clv__pass *pass;
} passes[] = {
#define CLV__PASS(name, ...) [CLV__PASS_##name] = {#name, &clv__pass_##name},
#include "plan/passes.def"
#undef CLV__PASS
};

/** CLEAVE_DEBUG=3 shows what became of the plan. */
static void tell(const clv_plan *plan, const char *pass) {
    clv_runtime *runtime = plan->graph->runtime;
    clv__text text = {0};
    if (runtime->debug < 3) return;
    clv__plan_print(plan, &text);
    clv__log(runtime, CLV_LOG_DEBUG, "plan: after %s\n%s", pass, clv__text_get(&text));
    clv__text_reset(&text);
}

clv_status clv__passes_run(clv_plan *plan, clv__pass_key first, clv__pass_key last) {
    for (int i = (int)first; i <= (int)last; i++) CLV_TRY(passes[i].pass->run(plan));
    return CLV_OK;
}

static clv_status run_all(clv_plan *plan, clv__pass_key first, clv__pass_key last) {
    for (int i = (int)first; i <= (int)last; i++) {
        CLV_TRY(passes[i].pass->run(plan));
        tell(plan, passes[i].name);
    }
    return CLV_OK;
}

// ---- making it, and making it again --------------------------------------------------------------------------------------------

static clv_status keep_placed(clv_plan *plan) {
    plan->placed = clv__alloc(plan->n_nodes, sizeof *plan->placed);
    if (!plan->placed) return clv__plan_no_memory(plan);
    memcpy(plan->placed, plan->nodes, plan->n_nodes * sizeof *plan->placed);
    plan->n_placed = plan->n_nodes;
    plan->n_placed_values = plan->n_values;
    return CLV_OK;
}

static void forget_choices(clv_plan *plan) {
    for (size_t i = 0; i < plan->n_nodes; i++) clv__launches_reset(&plan->nodes[i].launches);
    plan->n_nodes = 0;
    for (int i = 0; i < plan->n_places; i++) { // inputs of the plan's own are the last ones
        clv__place *at = &plan->places[i];
        while (at->n_inputs && plan->values[at->inputs[at->n_inputs - 1]].writer) at->n_inputs--;
    }
    plan->n_values = plan->n_placed_values;
    for (int i = CLV__PASS_epilogues; i < CLV__PASSES; i++) clv__notes_reset(plan, (clv__pass_key)i);
    clv__arena_reset(&plan->chosen);
    plan->prepared = false;
}

static bool keeps(const clv_plan *plan) {
    bool any = false;
    for (int i = 0; i < plan->n_places; i++) any |= plan->places[i].once.bytes > 0;
    return any;
}

clv_status clv__plan_again(clv_plan *plan) {
    forget_choices(plan);
    for (size_t i = 0; i < plan->n_placed; i++) CLV_TRY(clv__plan_append(plan, &plan->placed[i]));
    CLV_TRY(run_all(plan, CLV__PASS_epilogues, CLV__PASS_await));
    return keeps(plan) && clv_plans_fit(&plan, 1) != CLV_OK ? clv__plan_each_step(plan, NULL) : CLV_OK;
}

clv_status clv__plan_each_step(clv_plan *plan, bool *changed) {
    if (!keeps(plan)) return CLV_OK;
    if (changed) *changed = true;
    plan->no_once = true;
    return clv__plan_again(plan);
}

static clv_status copy(const clv_plan *plan, const char *text, char **out) {
    *out = clv__strdup(text);
    return text && !*out
               ? clv__error_set(clv__plan_error(plan), CLV_E_HOST_MEMORY, "no host memory for a plan")
               : CLV_OK;
}

static clv_status make(clv_plan *plan, const char *pins, const clv_plan_config *config) {
    plan->config = config;
    plan->same_session = config->same_session;
    plan->no_fuse = config->no_fuse;
    plan->own_session = config->own_session;
    CLV_TRY(copy(plan, pins, &plan->pins));
    if (config->recompute && *config->recompute) CLV_TRY(copy(plan, config->recompute, &plan->recompute));
    CLV_TRY(run_all(plan, CLV__PASS_place, CLV__PASS_split));
    plan->config = NULL; // the caller's
    CLV_TRY(keep_placed(plan));
    return clv__plan_again(plan);
}

clv_status clv_plan_create(clv_graph *graph, const clv_plan_config *config, clv_plan **out) {
    CLV_TRY(CLV__GIVEN(NULL, graph));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(graph->runtime), out));
    *out = NULL;
    CLV_TRY(clv__graph_built(graph));
    CLV_TRY(clv_variants_check(graph->runtime, config ? config->variants : NULL));
    clv_plan *plan = clv__alloc(1, sizeof *plan);
    if (!plan)
        CLV_FAIL(clv__runtime_error_of(graph->runtime), CLV_E_HOST_MEMORY, "no host memory for a plan");
    plan->graph = graph;
    const clv_plan_config none = {0};
    const clv_status status =
        make(plan, clv__pins(graph->runtime, config ? config->variants : NULL), config ? config : &none);
    if (status == CLV_OK)
        *out = plan;
    else
        clv_plan_destroy(plan);
    return status;
}

void clv_plan_destroy(clv_plan *plan) {
    if (!plan) return;
    forget_choices(plan);
    for (int i = 0; i < CLV__PASSES; i++) clv__notes_reset(plan, (clv__pass_key)i);
    free(plan->places);
    free(plan->values);
    free(plan->nodes);
    free(plan->placed);
    free(plan->transfers);
    free(plan->pins);
    free(plan->recompute);
    clv__arena_reset(&plan->arena);
    free(plan);
}
