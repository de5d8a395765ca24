// SPDX-License-Identifier: Apache-2.0
// Any bytes as a table: refused with a sentence, or fields that all lie in what was read, with names that are found again.
#include "fuzz/fuzz.h"

#include "io/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    clv__error error;
    clv__error_init(&error);
    clv__input input;
    clv__csv csv;
    clv__input_memory(&error, "x", data, size, &input);
    clv_status status = clv__csv_read(&input, &csv);
    if (status != CLV_OK) {
        REQUIRE(!csv.text && !csv.fields && !csv.lines && !csv.rows);
        require_sentence(&error, status);
    } else {
        REQUIRE(csv.rows >= 1 && csv.columns >= 1 && (csv.rows + 1) * csv.columns <= size + 1);
        size_t bytes = 0;
        for (int64_t row = -1; row < (int64_t)csv.rows; row++) {
            REQUIRE(csv.lines[row + 1] >= 1 && csv.lines[row + 1] <= size);
            for (size_t c = 0; c < csv.columns; c++) bytes += strlen(clv__csv_field(&csv, row, c)) + 1;
        }
        REQUIRE(bytes <= size / 2 * 3 + 2); // a separator or a line's end for each; two bytes may become three
        for (size_t c = 0; c < csv.columns; c++) {
            const char *name = clv__csv_field(&csv, -1, c);
            REQUIRE((*name || !c) && clv__csv_column(&csv, name, strlen(name)) == (int)c);
        }
    }
    clv__csv_reset(&csv);
    clv__error_destroy(&error);
    return 0;
}
