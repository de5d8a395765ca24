// SPDX-License-Identifier: Apache-2.0
// What `lower` functions share that is too long for a header.
#include "ops/lower.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void clv__arg_tensors(clv__launches *list, clv__launch *launch, const clv__op_io *io, const char *tensors) {
    enum { MACRO_BYTES = 32 };
    for (const char *at = tensors; *at && launch; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        char macro[MACRO_BYTES] = "";
        char *after;
        const bool out = *at == 'o';
        const int index = (int)strtol(at + 1, &after, 10);
        assert((out || *at == 'i') && after > at + 1 && (after == at + n || *after == '=') &&
               n < MACRO_BYTES);
        if (*after == '=') memcpy(macro, after + 1, n - (size_t)(after + 1 - at));
        const clv_dtype dtype = out                      ? io->out[index].dtype
                                : clv__has_in(io, index) ? io->in[index].dtype
                                                         : CLV_DTYPE_NONE;
        if (*macro) clv__define_storage(list, launch, macro, dtype);
        if (out)
            clv__arg_out(list, launch, index);
        else
            clv__arg_in(list, launch, index);
        at += n;
    }
}

clv__part clv__floats(clv__launches *list, int64_t n) {
    clv__part part = {.bytes = (size_t)n * sizeof(float)};
    if (n) part.offset = clv__launch_workspace(list, part.bytes);
    return part;
}

clv_status clv__want_vector(const clv__op_io *io, int i, const char *what, int64_t n, const char *why,
                            clv__error *error) {
    if (!clv__has_in(io, i)) return CLV_OK;
    CLV_TRY(clv__want_dtype(io, i, what, CLV_DTYPE_F32, error));
    if (io->in[i].shape.rank != 1 || io->in[i].shape.dims[0] != n)
        CLV_FAIL(error, CLV_E_SHAPE, "%s must be [%lld], %s", what, (long long)n, why);
    return CLV_OK;
}
