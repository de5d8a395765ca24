// SPDX-License-Identifier: Apache-2.0
// Placement by name: `features.*=cpu:0,classifier.*=gpu:0`. Patterns match layer paths; `*` stands for any text, `?` for
// one character; `features.*` also means the layer `features` itself. The last match wins.
#ifndef CLV_PLAN_PATTERN_H
#define CLV_PLAN_PATTERN_H

#include "plan/ir.h"

typedef struct clv__pattern {
    char *glob;
    int place;
} clv__pattern;

typedef struct clv__patterns {
    clv__pattern *items;
    size_t n, room;
} clv__patterns;

/** Read config->place and fill plan->places with the devices it names (or the one device of the config). */
clv_status clv__patterns_parse(clv_plan *plan, const clv_plan_config *config, clv__patterns *out);
/** Every layer with parameters must be covered, every pattern must match something; else the sentence lists them. */
clv_status clv__patterns_check(const clv__patterns *patterns, const clv_plan *plan, const bool *needed);
/** The second half of that: every pattern must match a layer of the plan's graph. */
clv_status clv__patterns_match(const clv__patterns *patterns, const clv_plan *plan);
/** The place of a layer, -1 if no pattern matches. */
int clv__patterns_place(const clv__patterns *patterns, const char *layer);
void clv__patterns_reset(clv__patterns *patterns);

#endif
