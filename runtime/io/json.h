// SPDX-License-Identifier: Apache-2.0
// JSON that is written: nothing of it may be missing without a word. Each function takes NULL for what could
// not be made, and says so by its own result, so that one test at the end is enough.
#ifndef CLEAVE_IO_JSON_H
#define CLEAVE_IO_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "base/text.h"

/** Put a value under a key; false: no memory, or bytes that are no UTF-8. Takes the value. */
static inline bool clv__json_set(json_t *object, const char *key, json_t *value) {
    return json_object_set_new(object, key, value) == 0;
}

/** Makes the i-th item of a list; NULL: it cannot be made. */
typedef json_t *clv__json_item(const void *from, size_t i);

/** A list of n items; NULL: one of them could not be made. */
static inline json_t *clv__json_list(const void *from, size_t n, clv__json_item *item) {
    json_t *list = json_array();
    for (size_t i = 0; list && i < n; i++) {
        if (json_array_append_new(list, item(from, i)) == 0) continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

static inline int clv__json_add_bytes(const char *bytes, size_t n, void *text) {
    clv__text_add_bytes(text, bytes, n);
    return ((clv__text *)text)->failed ? -1 : 0;
}

/** Write it behind a text; false: no memory. Jansson passes over a failure in a name: the text is asked. */
static inline bool clv__json_write(const json_t *root, size_t flags, clv__text *text) {
    return json_dump_callback(root, clv__json_add_bytes, text, flags) == 0 && !text->failed;
}

#endif
