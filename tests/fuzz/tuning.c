// SPDX-License-Identifier: Apache-2.0
// Any bytes as a tuning file, and any bytes behind a right head: refused with a sentence, or rows of ops and variants that
// there are, which come back the same when they are written and read again.
#include "fuzz/fuzz.h"

#include "device/kernel_sources.h"
#include "tuning/tuning.h"

/** In place of the library's: hashing them all took most of the time. */
const clv__kernel_source clv__kernel_sources[] = {{.stem = "one", .text = "kernel", .bytes = 6}, {0}};

static const clv_device device = {
    .info = {.label = "a device", .platform_name = "a platform", .driver = "1", .compute_units = 2}};

static void parse(const char *bytes, size_t size) {
    clv__error error;
    clv__tuning tuning, again;
    clv__text text = {0}, second = {0};
    clv__error_init(&error);
    clv_status status = clv__tuning_parse(&device, "x", bytes, size, &error, &tuning);
    if (status != CLV_OK) {
        require_sentence(&error, status);
        REQUIRE(tuning.n == 0 && !tuning.rows);
        clv__error_destroy(&error);
        return;
    }
    REQUIRE(tuning.n <= size && (tuning.passed_over > 0) == (*tuning.first_such != 0));
    for (size_t i = 0; i < tuning.n; i++) {
        const clv__tuned *row = &tuning.rows[i];
        REQUIRE(row->op && row->variant && row->variant->name && (row->median_us > 0) == (row->key != NULL));
        if (row->key) REQUIRE(clv__tuning_find(&tuning, row->op, row->key) == row);
    }
    clv__tuning_write(&device, &tuning, &text);
    REQUIRE(clv__tuning_parse(&device, "x", text.data, text.n, &error, &again) == CLV_OK);
    REQUIRE(again.n == tuning.n && again.passed_over == 0);
    clv__tuning_write(&device, &again, &second);
    REQUIRE(text.n == second.n && memcmp(text.data, second.data, text.n) == 0);
    clv__text_reset(&text);
    clv__text_reset(&second);
    clv__tuning_reset(&tuning);
    clv__tuning_reset(&again);
    clv__error_destroy(&error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static clv__text head; // it changes with the kernels, so a corpus cannot hold it
    clv__text text = {0};
    if (!head.n) {
        clv__tuning_write(&device, &(clv__tuning){0}, &head);
        head.n -= strlen("end\n");
    }
    parse((const char *)data, size);
    clv__text_add_bytes(&text, head.data, head.n);
    clv__text_add_bytes(&text, (const char *)data, size);
    parse(text.data, text.n);
    clv__text_reset(&text);
    return 0;
}
