// SPDX-License-Identifier: Apache-2.0
// The registry: ops.def as a table of descriptors. No op is known by name anywhere else.
#include <string.h>

#include "graph/op.h"

#define OP(symbol) extern const clv__op symbol;
#include "ops/ops.def"
#undef OP

const clv__op *const clv__ops[] = {
#define OP(symbol) &symbol,
#include "ops/ops.def"
#undef OP
    NULL,
};

const clv__op *clv__op_find(const char *name) {
    for (int i = 0; name && clv__ops[i]; i++) {
        if (strcmp(clv__ops[i]->name, name) == 0) return clv__ops[i];
    }
    return NULL;
}

const char *clv__op_nearest(const char *name, clv_nearest *nearest) {
    *nearest = (clv_nearest){.word = name};
    for (int i = 0; clv__ops[i]; i++) clv_nearest_offer(nearest, clv__ops[i]->name);
    return clv_nearest_text(nearest);
}
