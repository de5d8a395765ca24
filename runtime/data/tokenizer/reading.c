// SPDX-License-Identifier: Apache-2.0
// What reading a tokenizer.json takes in each of its parts: members, Sequences, and the sentences that all parts have.
#include <string.h>

#include "data/tokenizer/tokenizer.h"
#include "io/shown.h"

enum { MOST_GROWTH = 1 << 20, MOST_GROWTH_TIMES = 100 };

clv_status clv__tokenizer_no_memory(clv__error *error) {
    CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a tokenizer");
}

clv_status clv__tokenizer_check_growth(clv__error *error, const char *part, const clv__text *made,
                                       size_t bytes) {
    if (made->n < MOST_GROWTH || made->n / MOST_GROWTH_TIMES < bytes) return CLV_OK;
    CLV_FAIL(error, CLV_E_FORMAT,
             "the tokenizer: its %s makes a text of %zu bytes more than %d times as large", part, bytes,
             MOST_GROWTH_TIMES);
}

const char *clv__json_text(const json_t *object, const char *key, size_t *bytes) {
    const json_t *value = json_object_get(object, key);
    *bytes = json_string_length(value);
    return json_string_value(value);
}

bool clv__json_flag(const json_t *object, const char *key, bool otherwise) {
    const json_t *value = json_object_get(object, key);
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

bool clv__json_is(const json_t *object, const char *type) {
    const char *found = json_string_value(json_object_get(object, "type"));
    return found && !strcmp(found, type);
}

clv_status clv__json_unknown(clv__error *error, const char *part, const json_t *object) {
    const char *type = json_string_value(json_object_get(object, "type"));
    clv__shown_text shown;
    CLV_FAIL(error, CLV_E_UNSUPPORTED, "the tokenizer: its %s is of type '%s', which is not supported", part,
             type ? clv__shown(type, &shown) : "");
}

static clv_status add_steps(clv__error *error, const char *part, const char *members, const json_t *object,
                            void *to, clv_status (*add)(clv__error *, const json_t *, void *), int depth) {
    const json_t *one;
    size_t i;
    if (depth == CLV__MOST_DEPTH)
        CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer: Sequences of its %s are nested more than %d deep", part,
                 CLV__MOST_DEPTH);
    if (!clv__json_is(object, "Sequence")) return add(error, object, to);
    json_array_foreach(json_object_get(object, members), i, one)
        CLV_TRY(add_steps(error, part, members, one, to, add, depth + 1));
    return CLV_OK;
}

clv_status clv__json_steps(clv__error *error, const char *part, const char *members, const json_t *object,
                           void *to, clv_status (*add)(clv__error *error, const json_t *step, void *to)) {
    if (!object || json_is_null(object)) return CLV_OK;
    return add_steps(error, part, members, object, to, add, 0);
}

clv_status clv__tokenizer_unknown(clv__error *error, const char *word, size_t bytes) {
    clv__shown_text shown;
    CLV_FAIL(error, CLV_E_NOT_FOUND, "the tokenizer has no token for '%s', and no token for what is unknown",
             clv__shown_bytes(word, bytes, &shown));
}
