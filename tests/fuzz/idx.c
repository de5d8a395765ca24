// SPDX-License-Identifier: Apache-2.0
// Any bytes as an IDX file, gzipped or not: refused with a sentence, or an array that the file accounts for.
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    clv__error error;
    clv__error_init(&error);
    clv__input input;
    clv_array array;
    clv__input_memory(&error, "x", data, size, &input);
    clv_status status = clv__idx_read(&input, &array);
    REQUIRE((status == CLV_OK) == (array.data != NULL));
    if (status != CLV_OK) require_sentence(&error, status);
    REQUIRE(clv_array_bytes(&array) <= 1032 * size);
    clv_array_reset(&array);
    clv__error_destroy(&error);
    return 0;
}
