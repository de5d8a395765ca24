// SPDX-License-Identifier: Apache-2.0
// What stands in one cell of a table.
#ifndef CLV_DATA_TABLE_CELL_H
#define CLV_DATA_TABLE_CELL_H

#include <stdbool.h>
#include <stddef.h>

typedef enum clv__cell_kind {
    CLV__CELL_MISSING, // nothing, or a word that says so
    CLV__CELL_NUMBER,
    CLV__CELL_ODD, // a number, but not as it should be: `odd` says how
    CLV__CELL_DATE,
    CLV__CELL_WORD,
    CLV__N_CELL_KINDS
} clv__cell_kind;

typedef enum clv__cell_odd {
    CLV__ODD_NOT,
    CLV__ODD_COMMA, // would be a number with a decimal comma
    CLV__ODD_POINT, // would be one with a decimal point
    CLV__ODD_LARGE  // beyond f32, or infinite
} clv__cell_odd;

typedef struct clv__cell {
    clv__cell_kind kind;
    clv__cell_odd odd;
    double number;
    const char *unit;           // a percent sign, a currency's, or ""; static
    bool is_grouped, is_surely; // commas set thousands apart; and cannot be decimal ones
    bool is_pointed;            // a point sets decimals apart, and cannot set thousands apart
} clv__cell;

/** Take blanks away at both ends, no-break spaces too; returns where the text begins then. */
char *clv__cell_trim(char *text);
/** What a text without blanks at its ends is. */
clv__cell clv__cell_read(const char *text, bool decimal_comma);
/** The unit of that name, static; NULL: there is none. */
const char *clv__cell_unit(const char *name);

#endif
