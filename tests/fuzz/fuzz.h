// SPDX-License-Identifier: Apache-2.0
// What a fuzz driver is: one function that takes any bytes and aborts when a promise is broken.
#ifndef CLV_TESTS_FUZZ_H
#define CLV_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                                   \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            dprintf(2, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                               \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

/** A failure has a sentence with the file's name in it, of printable text, and a status that fits a file. */
static inline void require_sentence(const clv__error *error, clv_status status) {
    REQUIRE(status == CLV_E_FORMAT || status == CLV_E_UNSUPPORTED || status == CLV_E_HOST_MEMORY);
    REQUIRE(strstr(error->text, "'x'") != NULL);
    for (const char *c = error->text; *c; c++) REQUIRE((unsigned char)*c >= 0x20 && *c != 0x7f);
}

#endif
