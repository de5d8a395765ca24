// SPDX-License-Identifier: Apache-2.0
// Running averages of parameters, in the graph: averages.c.
#ifndef CLV_OPS_AVERAGES_H
#define CLV_OPS_AVERAGES_H

#include <stdio.h>

#include "cleave/optim.h"
#include "graph/graph.h"

/** What the session keeps beside a parameter: `<parameter>.average`. False: the name is too long. */
static inline bool clv__average_name(const char *parameter, char *name, size_t bytes) {
    const int n = snprintf(name, bytes, "%s.average", parameter);
    return n >= 0 && (size_t)n < bytes;
}

#endif
