// SPDX-License-Identifier: Apache-2.0
// A table's file while it is read: its text, without blanks around values.
#include "data/table.h"

clv_status clv__table_no_memory(const clv__table_file *file) {
    CLV_FAIL(file->error, CLV_E_HOST_MEMORY, "'%s': no host memory for its table", file->path);
}

static void trim_all(clv__csv *csv) {
    for (size_t i = csv->columns; i < (csv->rows + 1) * csv->columns; i++)
        csv->fields[i] = (size_t)(clv__cell_trim(csv->text + csv->fields[i]) - csv->text);
}

clv_status clv__table_open(clv__error *error, const char *path, clv__table_file *out) {
    clv__input input;
    *out = (clv__table_file){.error = error, .path = path};
    CLV_TRY(clv__input_open(error, path, &input));
    clv_status status = clv__csv_read(&input, &out->csv);
    clv__input_close(&input);
    if (status == CLV_OK)
        trim_all(&out->csv);
    else
        clv__table_close(out);
    return status;
}

void clv__table_close(clv__table_file *file) {
    clv__csv_reset(&file->csv);
}
