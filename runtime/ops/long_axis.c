// SPDX-License-Identifier: Apache-2.0
// Long walks as launches: parts by chunks of a fixed length, then joins until one is left for each row, so that every
// loop is short and the order of the sums depends on sizes only.
#include "ops/long_axis.h"

#include "ops/lower.h"

enum { CHUNK = CLV__LONG_CHUNK };

clv__long_walk clv__long_middle(int64_t outer, int64_t D, int64_t inner) {
    return (clv__long_walk){.rows = outer * inner,
                            .count = D,
                            .inner = inner,
                            .major = D * inner,
                            .minor = 1,
                            .length = D,
                            .near = inner};
}

clv__long_walk clv__long_channels(int64_t N, int64_t C, int64_t S) {
    return (clv__long_walk){
        .rows = C, .count = N * S, .inner = C, .minor = S, .length = S, .far = C * S, .near = 1};
}

static clv__long_rows new_rows(clv__launches *list, int64_t elements) {
    size_t bytes = (size_t)elements * sizeof(float);
    return (clv__long_rows){clv__launch_workspace(list, bytes), bytes};
}

static void walk_args(clv__launches *list, clv__launch *launch, const clv__long_walk *w) {
    int64_t chunks = clv__div_up(w->count, CHUNK);
    CLV__ARGS_I32(list, launch, w->rows * chunks, w->count, CHUNK, chunks, w->inner, w->major, w->minor,
                  w->length, w->far, w->near);
    clv__launch_over(list, launch, CLV__ELEMENTS, w->rows * chunks);
}

/** What each row's chunks left, to one for each row: in the workspace, or in output `out` unless that is -1. */
static clv__long_rows join(clv__launches *list, const char *entry, int planes, clv__long_rows from,
                           const clv__long_walk *w, int out, int finish) {
    int64_t n = clv__div_up(w->count, CHUNK);
    for (bool last = false; !last;) {
        int64_t chunks = clv__div_up(n, CHUNK);
        last = chunks == 1;
        clv__long_rows to = {0};
        if (!last || out < 0) to = new_rows(list, planes * w->rows * chunks);
        clv__launch *launch = clv__launch_kernel(list, "long_axis", entry);
        if (last && out >= 0)
            clv__arg_out(list, launch, out);
        else
            clv__arg_workspace(list, launch, to.offset, to.bytes);
        clv__arg_workspace(list, launch, from.offset, from.bytes);
        CLV__ARGS_I32(list, launch, w->rows * chunks, w->rows * n, n, CHUNK, chunks, last ? finish : 0);
        clv__launch_over(list, launch, CLV__ELEMENTS, w->rows * chunks);
        from = to;
        n = chunks;
    }
    return from;
}

static clv__long_rows softmax(clv__launches *list, const clv__op_io *io, const clv__long_walk *walk, int out,
                              int finish) {
    clv__long_rows parts = new_rows(list, 2 * walk->rows * clv__div_up(walk->count, CHUNK));
    clv__launch *launch = clv__launch_kernel(list, "long_axis", "long_softmax_part");
    clv__arg_workspace(list, launch, parts.offset, parts.bytes);
    clv__arg_in_as(list, launch, io, 0, "T_X");
    walk_args(list, launch, walk);
    return join(list, "long_softmax_join", 2, parts, walk, out, finish);
}

clv__long_rows clv__long_softmax(clv__launches *list, const clv__op_io *io, const clv__long_walk *walk) {
    return softmax(list, io, walk, -1, 1);
}

void clv__long_log_softmax_to(clv__launches *list, const clv__op_io *io, const clv__long_walk *walk,
                              int out) {
    softmax(list, io, walk, out, 2);
}

clv__long_rows clv__long_sums(clv__launches *list, const clv__op_io *io, const clv__long_walk *walk,
                              int mean) {
    clv__long_rows parts = new_rows(list, 2 * walk->rows * clv__div_up(walk->count, CHUNK));
    clv__launch *launch = clv__launch_kernel(list, "long_axis", "long_sums_part");
    clv__arg_workspace(list, launch, parts.offset, parts.bytes);
    clv__arg_in_as(list, launch, io, 0, "T_DY");
    clv__arg_in_as(list, launch, io, 1, "T_X");
    clv__arg_in(list, launch, mean >= 0 ? mean : 1);
    clv__arg_i32(list, launch, mean >= 0);
    walk_args(list, launch, walk);
    return join(list, "long_sums_join", 2, parts, walk, -1, 0);
}

clv__long_rows clv__long_join_sums(clv__launches *list, const clv__long_walk *walk, clv__long_rows parts) {
    return join(list, "long_sums_join", 2, parts, walk, -1, 0);
}

clv__long_rows clv__long_moments(clv__launches *list, const clv__op_io *io, const clv__long_walk *walk) {
    clv__long_rows parts = new_rows(list, 3 * walk->rows * clv__div_up(walk->count, CHUNK));
    clv__launch *launch = clv__launch_kernel(list, "long_axis", "long_moments_part");
    clv__arg_workspace(list, launch, parts.offset, parts.bytes);
    clv__arg_in_as(list, launch, io, 0, "T_X");
    walk_args(list, launch, walk);
    return join(list, "long_moments_join", 3, parts, walk, -1, 0);
}
