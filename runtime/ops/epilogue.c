// SPDX-License-Identifier: Apache-2.0
// The text of an epilogue: each step's row of elementwise.def as one statement, in a block that gives its inputs their names.
//
//     { const F x = v; v = SELECT(x < K(0.0), K(0.0), x); }        relu
//     { const F a = v, b = e0; v = a + b; }                        the value so far plus the first of the further inputs
//
// Parameters of rows stand in the text as they are, bit for bit (hexadecimal).
#include "ops/epilogue.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/elementwise.h"
#include "ops/lower.h"

enum { BODY_BYTES = 1024 };

bool clv__epilogue_takes(const clv__op_io *io) {
    const clv__ew_row *row = io->op->data;
    const clv__ew_attrs *attrs = io->attrs;
    if (!io->op->elementwise || !clv__is_float(io->out[0].dtype) || !isfinite(attrs->p0) ||
        !isfinite(attrs->p1))
        return false;
    for (int i = 0; i < row->n_in; i++) {
        if (!clv__is_float(io->in[i].dtype) || !clv_shape_equal(&io->in[i].shape, &io->out[0].shape))
            return false;
    }
    return true;
}

/** Append a step; how many bytes the text has then, or would have if there were room. */
static size_t add_step(char body[BODY_BYTES], size_t used, const clv__epilogue_step *step) {
    const clv__ew_row *row = step->op->data;
    const clv__ew_attrs *attrs = step->attrs;
    char inputs[96], parameters[96] = "";
    size_t n = 0;
    for (int i = 0; i < row->n_in; i++) {
        char from[8] = "v";
        if (step->from[i] != CLV__SO_FAR) snprintf(from, sizeof from, "e%d", step->from[i]);
        n += (size_t)snprintf(inputs + n, sizeof inputs - n, "%s%s = %s", i ? ", " : "const F ",
                              row->names[i], from);
    }
    if (strstr(row->expression, "P0"))
        snprintf(parameters, sizeof parameters, "const float p0 = %af, p1 = %af; ", (double)attrs->p0,
                 (double)attrs->p1);
    size_t left = used < BODY_BYTES ? BODY_BYTES - used : 0;
    return used + (size_t)snprintf(left ? body + used : NULL, left, "{ %s; %sv = %s; } ", inputs, parameters,
                                   row->expression);
}

static bool write_body(char body[BODY_BYTES], const clv__epilogue *epilogue) {
    size_t used = 0;
    for (int i = 0; i < epilogue->n_steps; i++) used = add_step(body, used, &epilogue->steps[i]);
    return used < BODY_BYTES;
}

bool clv__epilogue_fits(const clv__epilogue *epilogue) {
    char body[BODY_BYTES];
    return write_body(body, epilogue);
}

void clv__arg_epilogue(clv__launches *list, clv__launch *launch, const clv__op_io *io) {
    const clv__epilogue *epilogue = io->epilogue;
    char body[BODY_BYTES], storage[] = "EPI_T0";
    if (!epilogue) return;
    if (!write_body(body, epilogue)) list->failed = true;
    clv__launch_define(list, launch, "EPI_BODY", "%s", body);
    if (epilogue->n_in) clv__launch_define(list, launch, "EPI_N", "%d", epilogue->n_in);
    for (int i = 0; i < epilogue->n_in; i++) {
        storage[sizeof storage - 2] = (char)('0' + i);
        clv__arg_in_as(list, launch, io, epilogue->first + i, storage);
    }
}
