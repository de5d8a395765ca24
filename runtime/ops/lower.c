// SPDX-License-Identifier: Apache-2.0
// What `lower` functions share that is too long for a header.
#include "ops/lower.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/** The tensor that the n characters at `at` name. */
static void add_tensor(clv__launches *list, clv__launch *launch, const clv__op_io *io, const char *at,
                       size_t n) {
    enum { MACRO_BYTES = 32 };
    char macro[MACRO_BYTES] = "";
    char *after;
    const bool out = *at == 'o';
    const int index = (int)strtol(at + 1, &after, 10);
    assert((out || *at == 'i') && after > at + 1 && (after == at + n || *after == '=') && n < MACRO_BYTES);
    if (*after == '=') memcpy(macro, after + 1, n - (size_t)(after + 1 - at));
    if (*macro && out) clv__define_storage(list, launch, macro, io->out[index].dtype);
    if (*macro && !out && clv__has_in(io, index))
        clv__define_storage(list, launch, macro, io->in[index].dtype);
    (out ? clv__arg_out : clv__arg_in)(list, launch, index);
}

clv__launch *clv__args_add(clv__launches *list, clv__launch *launch, const clv__op_io *io,
                           const clv__args *args) {
    size_t n;
    for (const char *at = args->tensors ? args->tensors : ""; *at && launch; at += n, at += strspn(at, " ")) {
        n = strcspn(at, " ");
        if (*at == 'w')
            clv__arg_part(list, launch, args->part);
        else if (*at == 'b')
            clv__arg_in(list, launch, args->bias);
        else
            add_tensor(list, launch, io, at, n);
    }
    for (int i = 0; i < args->n_ints; i++) clv__arg_i32(list, launch, args->ints[i]);
    for (int i = 0; i < args->n_floats; i++) clv__arg_f32(list, launch, args->floats[i]);
    return launch;
}

clv__part clv__floats(clv__launches *list, int64_t n) {
    clv__part part = {.bytes = (size_t)n * sizeof(float)};
    if (n) part.offset = clv__launch_workspace(list, part.bytes);
    return part;
}

bool clv__split_matrices(const clv__op_io *io, int i, clv__split *out) {
    clv__split_all(io, i, out);
    return i + 2 < io->in[0].shape.rank;
}
