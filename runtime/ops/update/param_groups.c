// SPDX-License-Identifier: Apache-2.0
// Groups of parameters: which parameter is in which, and what the group changes. The updates themselves are in optimizer.c. No node is
// made here.
// Source: torch.optim.Optimizer.param_groups; patterns are those of clv_freeze.
#include "ops/update/param_groups.h"

#include <math.h>

#include "base/modules.h"

static bool covers(const clv_param_group *group, const clv_tensor *parameter) {
    if (group->max_rank > 0 && parameter->desc.shape.rank > group->max_rank) return false;
    return !group->patterns || clv__patterns_cover(group->patterns, parameter->name);
}

int clv__param_group_of(const clv_optimizer_config *config, const clv_tensor *parameter) {
    for (int i = 0; i < config->n_groups; i++)
        if (covers(&config->groups[i], parameter)) return i;
    return -1;
}

clv_optimizer_config clv__param_group_config(const clv_optimizer_config *config, int group) {
    clv_optimizer_config own = *config;
    const float decay = group < 0 ? 0 : config->groups[group].weight_decay;
    if (decay > 0) own.weight_decay = decay;
    if (decay < 0)
        own.weight_decay = own.kind == CLV_ADAMW || own.kind == CLV_MUON ? -1.0f : 0.0f; // 0 is their default
    return own;
}

float clv__param_group_lr(const clv_optimizer_config *config, int group) {
    return group < 0 || config->groups[group].lr == 0 ? 1.0f : config->groups[group].lr;
}

/** How sentences call a group. */
static const char *name_of(const clv_param_group *group) {
    return group->patterns ? group->patterns : group->max_rank > 0 ? "max_rank" : "*";
}

/** A pattern that covers no parameter is mistyped. */
static bool check_patterns(clv_graph *graph, const char *patterns, const char *call) {
    char pattern[CLV__PATTERN_BYTES];
    for (const char *rest = patterns; clv__patterns_take(&rest, pattern);) {
        clv__nearest nearest = {.word = pattern};
        bool found = false;
        for (size_t i = 0; i < graph->n_tensors; i++) {
            if (!graph->tensors[i]->trainable) continue;
            clv__nearest_offer_modules(&nearest, graph->tensors[i]->name);
            found |= clv__pattern_covers(pattern, graph->tensors[i]->name);
        }
        if (found) continue;
        clv__graph_fail(graph, CLV_E_NOT_FOUND, "%s: parameter group '%s': no parameter matches '%s'%s", call,
                        patterns, pattern, clv__nearest_text(&nearest));
        return false;
    }
    return true;
}

static bool check_members(clv_graph *graph, const clv_optimizer_config *config, int group, const char *call) {
    bool covered = false;
    for (size_t i = 0; i < graph->n_tensors; i++) {
        const clv_tensor *tensor = graph->tensors[i];
        if (!tensor->trainable) continue;
        if (clv__param_group_of(config, tensor) == group) return true;
        covered |= covers(&config->groups[group], tensor);
    }
    clv__graph_fail(graph, CLV_E_NOT_FOUND, "%s: parameter group '%s': %s", call,
                    name_of(&config->groups[group]),
                    covered ? "groups before it take all parameters that it matches"
                            : "no parameter of at most max_rank dimensions matches");
    return false;
}

bool clv__param_groups_check(clv_graph *graph, const clv_optimizer_config *config, const char *call) {
    if (config->n_groups < 0 || (config->n_groups > 0 && !config->groups)) {
        clv__graph_fail(graph, CLV_E_VALUE,
                        "%s: %d parameter groups, and groups is NULL or the number is below 0", call,
                        config->n_groups);
        return false;
    }
    for (int i = 0; i < config->n_groups; i++) {
        const clv_param_group *group = &config->groups[i];
        const bool lr = isfinite(group->lr) && group->lr >= 0;
        if (!lr || !isfinite(group->weight_decay) || group->max_rank < 0) {
            clv__graph_fail(graph, CLV_E_VALUE, "%s: parameter group '%s': %s", call, name_of(group),
                            !lr                              ? "lr must be at least 0 (0: 1) and finite"
                            : !isfinite(group->weight_decay) ? "weight_decay must be finite"
                                                             : "max_rank must be at least 0 (0: any)");
            return false;
        }
        if (group->patterns && !check_patterns(graph, group->patterns, call)) return false;
        if (!check_members(graph, config, i, call)) return false;
    }
    return true;
}

static bool is_frozen(const void *user, const clv_tensor *parameter) {
    const clv_optimizer_config *config = user;
    const int group = clv__param_group_of(config, parameter);
    return group >= 0 && config->groups[group].frozen;
}

void clv_optimizer_freeze(clv_graph *graph, const clv_optimizer_config *config) {
    bool any = false;
    if (!graph || graph->error.status != CLV_OK) return;
    if (!config) {
        clv__graph_fail(graph, CLV_E_VALUE, "clv_optimizer_freeze: config is NULL");
        return;
    }
    if (!clv__param_groups_check(graph, config, "clv_optimizer_freeze")) return;
    for (int i = 0; i < config->n_groups; i++) any |= config->groups[i].frozen;
    if (any) clv__freeze_if(graph, is_frozen, config, "parameter groups");
}

void clv__param_groups_text(const clv_optimizer_config *config, clv__text *out) {
    for (int i = 0; i < config->n_groups; i++) {
        const clv_param_group *group = &config->groups[i];
        clv__text_add(out, "%s%s:", i ? "; " : "", group->patterns ? group->patterns : "*");
        if (group->max_rank > 0) clv__text_add(out, " max_rank %d", group->max_rank);
        if (group->lr != 0) clv__text_add(out, " lr %.9g", (double)group->lr);
        if (group->weight_decay < 0) clv__text_add(out, " weight_decay none");
        if (group->weight_decay > 0) clv__text_add(out, " weight_decay %.9g", (double)group->weight_decay);
        if (group->frozen) clv__text_add(out, " frozen");
    }
}
