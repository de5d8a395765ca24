// SPDX-License-Identifier: Apache-2.0
// A dataset from a text: stretches of it, and for each token the one that follows.
#include <inttypes.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "data/dataset.h"
#include "io/array.h"
#include "io/formats.h"
#include "io/file.h"

/** A text as tokens; a sample is `sample` of them, the next one begins `stride` later. */
typedef struct stretches {
    clv_dataset common;
    int32_t *tokens;
    int64_t stride;
} stretches;

static void read_stretch(const clv_dataset *dataset, int64_t i, void *sample, void *target) {
    const stretches *own = (const stretches *)dataset;
    const int32_t *from = own->tokens + i * own->stride;
    const size_t bytes = (size_t)dataset->numel * sizeof *from;
    if (sample) memcpy(sample, from, bytes);
    if (target) memcpy(target, from + 1, bytes);
}

static void destroy_stretches(clv_dataset *dataset) {
    stretches *own = (stretches *)dataset;
    free(own->tokens);
    free(own);
}

static clv_status check_config(clv__error *error, const clv_text_config *config) {
    if (!config->vocabulary) CLV_FAIL(error, CLV_E_VALUE, "a text wants a vocabulary");
    if (config->context < 1 || config->stride < 1 || config->limit < 0)
        CLV_FAIL(error, CLV_E_VALUE,
                 "samples of %" PRId64 " tokens that begin %" PRId64 " apart, %" PRId64
                 " at most: they must be at least 1",
                 config->context, config->stride, config->limit);
    if (!(config->begin >= 0 && config->begin < config->end && config->end <= 1))
        CLV_FAIL(error, CLV_E_VALUE, "the part of a text from %g to %g: it must lie within 0 and 1",
                 config->begin, config->end);
    return CLV_OK;
}

/** Keep the part of the text that is wanted, and count its samples. */
static clv_status cut(clv__error *error, const clv_text_config *config, stretches *own, size_t n) {
    const int64_t begin = (int64_t)(config->begin * (double)n), end = (int64_t)(config->end * (double)n);
    const int64_t length = end - begin, context = config->context;
    const bool part = config->begin > 0 || config->end < 1;
    char taken[96] = "";
    if (part)
        snprintf(taken, sizeof taken,
                 ", %" PRId64 " of them in the part from %" PRId64 " %% to %" PRId64 " %% that is taken",
                 length, (int64_t)(100 * config->begin + 0.5), (int64_t)(100 * config->end + 0.5));
    if (length < context + 1)
        CLV_FAIL(error, CLV_E_VALUE,
                 "the text has %zu token%s%s; a sample takes %" PRId64
                 " and the one that follows: take a longer text%s, or a shorter context "
                 "(clv_text_config.context)",
                 n, n == 1 ? "" : "s", taken, context,
                 part ? " or another part of it (clv_text_config.begin)" : "");
    memmove(own->tokens, own->tokens + begin, (size_t)length * sizeof *own->tokens);
    const int64_t count = (length - 1 - context) / config->stride + 1;
    own->common.count = config->limit && config->limit < count ? config->limit : count;
    return CLV_OK;
}

static clv_status create(clv__error *error, const char *text, size_t bytes, const clv_text_config *config,
                         clv_dataset **out) {
    stretches *own = clv__alloc(1, sizeof *own);
    if (!own) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a text of %zu bytes", bytes);
    own->stride = config->stride;
    own->common = (clv_dataset){.sample = CLV_SHAPE(config->context),
                                .target = CLV_SHAPE(config->context),
                                .dtype = CLV_DTYPE_I32,
                                .target_dtype = CLV_DTYPE_I32,
                                .numel = config->context,
                                .target_numel = config->context,
                                .classes = clv_vocabulary_count(config->vocabulary),
                                .read = read_stretch,
                                .destroy = destroy_stretches};
    clv_array tokens;
    clv_status status = clv_vocabulary_encode(config->vocabulary, text, bytes, &tokens);
    own->tokens = tokens.data; // taken
    if (status == CLV_OK) status = cut(error, config, own, (size_t)tokens.shape.dims[0]);
    if (status == CLV_OK)
        *out = &own->common;
    else
        destroy_stretches(&own->common);
    return status;
}

clv_status clv_dataset_text(clv_runtime *runtime, const char *text, size_t bytes,
                            const clv_text_config *config, clv_dataset **out) {
    clv__error *error = clv__io_error(runtime);
    CLV_TRY(CLV__GIVEN(error, text));
    CLV_TRY(CLV__GIVEN(error, config));
    CLV_TRY(CLV__GIVEN(error, out));
    *out = NULL;
    clv_text_config own = *config;
    if (!own.context) own.context = 128;
    if (!own.stride) own.stride = own.context;
    if (own.begin == 0 && own.end == 0) own.end = 1;
    CLV_TRY(check_config(error, &own));
    return create(error, text, bytes, &own, out);
}

clv_status clv_text_read(clv_runtime *runtime, const char *path, clv_array *out) {
    clv__error *error = clv__io_error(runtime);
    CLV_TRY(CLV__GIVEN(error, path));
    CLV_TRY(CLV__GIVEN(error, out));
    *out = (clv_array){0};
    clv__input input;
    CLV_TRY(clv__input_open(error, path, &input));
    const clv_shape shape = CLV_SHAPE((int64_t)input.bytes);
    clv_status status = CLV_OK;
    if (input.bytes == 0) status = clv__error_set(error, CLV_E_FORMAT, "'%s' is empty", path);
    if (status == CLV_OK) status = clv__foreign_check(&input, CLV__WANT_TEXT);
    if (status == CLV_OK) status = clv__array_init(error, CLV_DTYPE_U8, &shape, out);
    if (status == CLV_OK) status = clv__input_read(&input, 0, out->data, (size_t)input.bytes);
    clv__input_close(&input);
    if (status != CLV_OK) clv_array_reset(out);
    return status;
}
