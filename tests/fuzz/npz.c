// SPDX-License-Identifier: Apache-2.0
// Any bytes as a .npz file: refused with a sentence, or arrays no larger than the file accounts for.
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    clv__error error;
    clv__error_init(&error);
    clv__input input;
    clv_archive *archive;
    size_t bytes = 0;
    clv__input_memory(&error, "x", data, size, &input);
    clv_status status = clv__npz_read(&input, &archive);
    REQUIRE((status == CLV_OK) == (archive != NULL));
    if (status != CLV_OK) require_sentence(&error, status);
    for (size_t i = 0; archive && clv_archive_get(archive, i); i++)
        bytes += clv_array_bytes(clv_archive_get(archive, i));
    REQUIRE(bytes <= 2 * 1033 * size); // deflated, and half becomes float
    clv_archive_destroy(archive);
    clv__error_destroy(&error);
    return 0;
}
