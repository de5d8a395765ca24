// SPDX-License-Identifier: Apache-2.0
// Any bytes as a safetensors file: refused with a sentence, or read, and then written and read again to the same.
#include "fuzz/fuzz.h"

static void require_equal(const clv_archive *a, const clv_archive *b) {
    REQUIRE(a->n_arrays == b->n_arrays && a->n_texts == b->n_texts);
    for (size_t i = 0; i < a->n_arrays; i++) {
        const clv_array *x = a->arrays[i], *y = clv_archive_find(b, x->name);
        REQUIRE(y && x->type == y->type && clv_shape_equal(&x->shape, &y->shape));
        REQUIRE(memcmp(x->data, y->data, clv_array_bytes(x)) == 0);
    }
    for (size_t i = 0; i < a->n_texts; i++) {
        const char *text = clv_archive_text(b, a->texts[i].key);
        REQUIRE(text && strcmp(text, a->texts[i].text) == 0);
    }
}

static void write_and_read_again(const clv_archive *archive, clv__error *error) {
    clv__safetensors_layout layout;
    if (clv__safetensors_layout_init(archive, "x", NULL, &layout) != CLV_OK) return; // memory is out
    size_t size = layout.header_bytes;
    for (size_t i = 0; i < layout.n_arrays; i++) size += clv_array_bytes(layout.arrays[i]);
    uint8_t *bytes = malloc(size);
    REQUIRE(bytes);
    memcpy(bytes, layout.header, layout.header_bytes);
    size_t at = layout.header_bytes;
    for (size_t i = 0; i < layout.n_arrays; i++) {
        size_t n = clv_array_bytes(layout.arrays[i]);
        memcpy(bytes + at, layout.arrays[i]->data, n);
        at += n;
    }
    clv__input input;
    clv_archive *again = NULL;
    clv__input_memory(error, "x", bytes, size, &input);
    REQUIRE(clv__safetensors_read(&input, &again) == CLV_OK);
    require_equal(archive, again);
    clv_archive_destroy(again);
    clv__safetensors_layout_reset(&layout);
    free(bytes);
}

int fuzz_safetensors_one(const uint8_t *data, size_t size); // tensors.c gives it files that it makes

int fuzz_safetensors_one(const uint8_t *data, size_t size) {
    clv__error error;
    clv__error_init(&error);
    clv__input input;
    clv_archive *archive = NULL;
    clv__input_memory(&error, "x", data, size, &input);
    clv_status status = clv__safetensors_read(&input, &archive);
    REQUIRE((status == CLV_OK) == (archive != NULL));
    if (status == CLV_OK) {
        size_t all = 0; // no byte of the file is in two tensors; half becomes float
        for (size_t i = 0; i < archive->n_arrays; i++) all += clv_array_bytes(archive->arrays[i]);
        REQUIRE(all <= 2 * size);
        write_and_read_again(archive, &error);
        clv_archive_destroy(archive);
    } else {
        require_sentence(&error, status);
    }
    status = clv__checkpoint_read(&input, &archive);
    REQUIRE((status == CLV_OK) == (archive != NULL));
    if (status != CLV_OK) require_sentence(&error, status);
    clv_archive_destroy(archive);
    clv__error_destroy(&error);
    return 0;
}

#ifndef FUZZ_MADE_FILES
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return fuzz_safetensors_one(data, size);
}
#endif
