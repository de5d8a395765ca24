// SPDX-License-Identifier: Apache-2.0
#ifndef CLV_DATA_FINITE_H
#define CLV_DATA_FINITE_H

#include "base/error.h"
#include "cleave/io.h"

/** Are the first `rows` rows of an array of f32 finite? CLV_E_VALUE, with the index of the first value that is not. Other types are. */
clv_status clv__array_finite(clv__error *error, const char *what, const clv_array *array, int64_t rows);

#endif
