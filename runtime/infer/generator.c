// SPDX-License-Identifier: Apache-2.0
// A GPT that writes. With a cache a small plan computes one token at a time: keys and values of those before
// it stay on the device, and each step adds its own. Else the whole context is computed for each token.
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "cleave/generate.h"
#include "cleave/ops.h"
#include "device/device.h"
#include "nn/decoders.h"
#include "nn/models.h"
#include "infer/sampling.h"

struct clv_generator {
    clv_runtime *runtime;
    clv_gpt_config sizes;
    bool no_cache;
    clv_session *session;
    clv_graph *graph;
    clv_plan *plan;
    clv_run *run;                // made when first used: the weights are read then
    clv_tensor *tokens, *logits; // [1] and [1,V]; without a cache [1,T] and [1,T,V]
    clv_tensor *position;        // of the token, [1]; NULL without a cache
    int32_t *window;             // the context's tokens
    int64_t n;                   // tokens in the window
    float *out;                  // all logits of a step
};

// ---- making one -------------------------------------------------------------------------------------------

static clv_status no_memory(const clv_generator *g) {
    CLV_FAIL(clv__runtime_error_of(g->runtime), CLV_E_HOST_MEMORY, "no host memory for a generator");
}

static clv_status take_memory(clv_generator *g) {
    const size_t T = (size_t)g->sizes.context, rows = g->no_cache ? T : 1;
    g->window = clv__alloc(T, sizeof *g->window);
    g->out = clv__alloc(rows * (size_t)g->sizes.vocabulary, sizeof *g->out);
    return g->window && g->out ? CLV_OK : no_memory(g);
}

static clv_status prepare(clv_generator *g, const clv_generator_config *config) {
    CLV_TRY(take_memory(g));
    CLV_TRY(clv_graph_create(g->runtime, &g->graph));
    clv_graph_set_precision(g->graph, config->precision);
    if (g->no_cache) {
        g->tokens = clv_input(g->graph, "tokens", CLV_DTYPE_I32, CLV_SHAPE(1, g->sizes.context));
        g->logits = clv_gpt(g->tokens, &g->sizes);
    } else {
        g->tokens = clv_input(g->graph, "token", CLV_DTYPE_I32, CLV_SHAPE(1));
        g->position = clv_input(g->graph, "position", CLV_DTYPE_I32, CLV_SHAPE(1));
        g->logits = clv__gpt_next(g->tokens, g->position, &g->sizes);
    }
    if (g->logits && clv_tensor_dtype(g->logits) != CLV_DTYPE_F32)
        g->logits = clv_cast(g->logits, CLV_DTYPE_F32);
    clv_output(g->logits, "logits");
    CLV_TRY(clv_graph_status(g->graph));
    const clv_plan_config how = {.device = config->device, .variants = config->variants, .own_session = true};
    CLV_TRY(clv_plan_create(g->graph, &how, &g->plan));
    CLV_TRY(clv_session_create(g->runtime, NULL, &g->session));
    return clv_session_reserve(g->session, &g->plan, 1);
}

clv_status clv_generator_create(clv_runtime *runtime, const clv_generator_config *config,
                                clv_generator **out) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    clv__error *error = clv__runtime_error_of(runtime);
    CLV_TRY(CLV__USABLE(error, out));
    *out = NULL;
    CLV_TRY(CLV__USABLE(error, config));
    CLV_TRY(CLV__USABLE(error, config->gpt));
    clv_generator *g = clv__alloc(1, sizeof *g);
    if (!g) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a generator");
    *g = (clv_generator){.runtime = runtime, .sizes = *config->gpt, .no_cache = config->no_cache};
    g->sizes.dropout = 0;
    clv__gpt_defaults(&g->sizes);
    const clv__decoder *decoder = clv__decoder_find(g->sizes.model);
    g->no_cache |= decoder && !decoder->steps;
    clv_status status = CLV_OK;
    if (g->sizes.context < 1 || g->sizes.width < 1 || g->sizes.layers < 1 || g->sizes.vocabulary < 1)
        status = clv__error_set(error, CLV_E_VALUE, "a generator's sizes must be at least 1");
    if (status == CLV_OK) status = prepare(g, config);
    if (status == CLV_OK)
        *out = g;
    else
        clv_generator_destroy(g);
    return status;
}

void clv_generator_destroy(clv_generator *g) {
    if (!g) return;
    clv_run_destroy(g->run);
    clv_session_destroy(g->session);
    clv_plan_destroy(g->plan);
    clv_graph_destroy(g->graph);
    free(g->window);
    free(g->out);
    free(g);
}

// ---- a token ----------------------------------------------------------------------------------------------

static clv_status feed(clv_generator *g, const clv_tensor *input, const void *values) {
    return clv_run_feed(g->run, input, values, clv_tensor_bytes(input));
}

/** The token at position p, behind those that were computed; its logits only where they are wanted. */
static clv_status compute_next(clv_generator *g, int64_t p, bool wanted) {
    const int32_t position = (int32_t)p;
    int64_t ticket;
    CLV_TRY(feed(g, g->tokens, &g->window[p]));
    CLV_TRY(feed(g, g->position, &position));
    CLV_TRY(clv_run_step(g->run, &ticket));
    return wanted ? clv_run_fetch(g->run, ticket, g->logits, g->out, clv_tensor_bytes(g->logits)) : CLV_OK;
}

static clv_status compute_all(clv_generator *g) {
    int64_t ticket;
    CLV_TRY(feed(g, g->tokens, g->window));
    CLV_TRY(clv_run_step(g->run, &ticket));
    return clv_run_fetch(g->run, ticket, g->logits, g->out, clv_tensor_bytes(g->logits));
}

/** One more token; `wanted`: its logits are. A full window keeps its last half. */
static clv_status push(clv_generator *g, int32_t token, bool wanted) {
    if (g->n == g->sizes.context) {
        const int64_t kept = g->n / 2;
        memmove(g->window, g->window + g->n - kept, (size_t)kept * sizeof *g->window);
        g->n = kept;
        for (int64_t p = 0; !g->no_cache && p < kept; p++) CLV_TRY(compute_next(g, p, false));
    }
    g->window[g->n++] = token;
    if (!g->no_cache) return compute_next(g, g->n - 1, wanted);
    return wanted ? compute_all(g) : CLV_OK;
}

static clv_status check_prompt(const clv_generator *g, const int32_t *prompt, int64_t n, int64_t most) {
    clv__error *error = clv__runtime_error_of(g->runtime);
    if (n < 1 || most < 0)
        CLV_FAIL(error, CLV_E_VALUE, "a prompt of %lld tokens, and %lld more: at least 1 and 0 are wanted",
                 (long long)n, (long long)most);
    for (int64_t i = 0; i < n; i++)
        if (prompt[i] < 0 || prompt[i] >= g->sizes.vocabulary)
            CLV_FAIL(error, CLV_E_VALUE, "token %lld of the prompt is %d, and the model knows 0 to %lld",
                     (long long)i, prompt[i], (long long)g->sizes.vocabulary - 1);
    return CLV_OK;
}

clv_status clv_generate(clv_generator *g, const int32_t *prompt, int64_t n, const clv_sampling *sampling,
                        int64_t most, bool (*tell)(void *user, int32_t token), void *user) {
    CLV_TRY(CLV__GIVEN(NULL, g));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(g->runtime), prompt));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(g->runtime), tell));
    CLV_TRY(check_prompt(g, prompt, n, most));
    if (!g->run) CLV_TRY(clv_run_create(g->session, g->plan, &g->run));
    memset(g->window, 0, (size_t)g->sizes.context * sizeof *g->window);
    g->n = 0;
    for (int64_t i = 0; i < n; i++) CLV_TRY(push(g, prompt[i], i == n - 1));
    for (int64_t i = 0; i < most; i++) {
        const int64_t tokens = sampling && sampling->tokens > 0 && sampling->tokens < g->sizes.vocabulary
                                   ? sampling->tokens
                                   : g->sizes.vocabulary;
        const float *row = g->out + (g->no_cache ? (g->n - 1) * g->sizes.vocabulary : 0);
        int32_t token;
        CLV_TRY(clv__sample_token(g->runtime, row, tokens, sampling, (uint64_t)i, &token));
        if (tell && !tell(user, token)) break;
        if (i < most - 1) CLV_TRY(push(g, token, true));
    }
    return CLV_OK;
}

clv_generator_info clv_generator_info_get(const clv_generator *generator) {
    return (clv_generator_info){.session = generator->session, .plan = generator->plan};
}
