// SPDX-License-Identifier: Apache-2.0
// What stands in one cell of a table: a number as people and spreadsheets write it, a date, a word, or nothing.
#include "data/table_cell.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"

static const char *const blanks[] = {" ", "\t", "\xc2\xa0", "\xe2\x80\xaf",
                                     "\xe2\x80\x89"}; // U+00A0, U+202F, U+2009
static const char *const units[] = {"",  "%", "$", "€", "£", "¥", "₹", "₽",
                                    "₩", "₺", "₫", "₴", "₪", "₦", "฿"};
// as pandas.read_csv takes them by default
static const char *const missing[] = {"",    "NA",   "N/A",  "n/a",  "#N/A", "#NA",  "<NA>",    "NaN",
                                      "nan", "-NaN", "-nan", "NULL", "null", "None", "#N/A N/A"};

#define COUNT(list) (sizeof(list) / sizeof *(list))

/** How long the text is that `at` begins with, of a list; 0: none. */
static size_t begins_with(const char *at, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (*list[i] && !strncmp(at, list[i], strlen(list[i]))) return strlen(list[i]);
    return 0;
}

char *clv__cell_trim(char *text) {
    for (size_t n; (n = begins_with(text, blanks, COUNT(blanks)));) text += n;
    size_t length = strlen(text);
    for (size_t i = 0; i < COUNT(blanks); i++) {
        const size_t n = strlen(blanks[i]);
        if (length < n || strcmp(text + length - n, blanks[i]) != 0) continue;
        text[length -= n] = 0;
        i = (size_t)-1; // from the first again
    }
    return text;
}

const char *clv__cell_unit(const char *name) {
    for (size_t i = 0; i < COUNT(units); i++)
        if (!strcmp(units[i], name)) return units[i];
    return NULL;
}

// ---- numbers ------------------------------------------------------------------------------------------------

enum { MOST_BYTES = 80 };

/** A number while it is read: what strtod shall see of it. */
typedef struct reading {
    const char *at;
    char plain[MOST_BYTES + 8];
    size_t n;
    bool is_negative;
    clv__cell *cell;
} reading;

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static void pass_blanks(reading *r) {
    for (size_t n; (n = begins_with(r->at, blanks, COUNT(blanks)));) r->at += n;
}

/** A sign, U+2212 too. */
static bool take_sign(reading *r) {
    const bool wide = !strncmp(r->at, "\xe2\x88\x92", 3);
    if (!wide && *r->at != '-' && *r->at != '+') return false;
    r->is_negative = *r->at != '+';
    r->at += wide ? 3 : 1;
    return true;
}

/** A unit, of which a number has one; a percent sign stands behind. */
static bool take_unit(reading *r, bool before) {
    if (*r->cell->unit) return false;
    for (size_t i = before ? 2 : 1; i < COUNT(units); i++) {
        if (strncmp(r->at, units[i], strlen(units[i])) != 0) continue;
        r->cell->unit = units[i];
        r->at += strlen(units[i]);
        return true;
    }
    return false;
}

static size_t take_digits(reading *r) {
    size_t n = 0;
    for (; is_digit(*r->at) && r->n < MOST_BYTES; n++) r->plain[r->n++] = *r->at++;
    return n;
}

/** The bytes of what sets thousands apart here, with a digit behind: the other one of point and comma, a blank or an apostrophe. */
static size_t group_length(const reading *r, char point) {
    static const char *const marks[] = {"'", "\xe2\x80\x99"};
    const char other = point == '.' ? ',' : '.';
    size_t n = *r->at == other ? 1 : begins_with(r->at, marks, COUNT(marks));
    if (!n && *r->at != '\t') n = begins_with(r->at, blanks, COUNT(blanks));
    return n && is_digit(r->at[n]) ? n : 0;
}

/** Digits, in groups of three or not. */
static bool take_whole(reading *r, char point) {
    const char *first = r->at, *mark = NULL;
    size_t n = take_digits(r), groups = 0, length = 0;
    if (!n) return *r->at == point && is_digit(r->at[1]); // .5
    for (size_t bytes; (bytes = group_length(r, point)); groups++) {
        if (groups && (bytes != length || strncmp(mark, r->at, bytes) != 0)) return false;
        if (!groups && (n > 3 || *first == '0')) return false;
        mark = r->at;
        length = bytes;
        r->at += bytes;
        if (take_digits(r) != 3) return false;
    }
    r->cell->is_grouped = groups && *mark == ',';
    r->cell->is_surely = groups > 1 || *r->at == point;
    return true;
}

static bool take_rest(reading *r, char point) {
    if (*r->at == point) {
        r->at++;
        r->plain[r->n++] = '.';
        const size_t n = take_digits(r);
        r->cell->is_pointed = point == '.' && n && n != 3;
    }
    if (*r->at != 'e' && *r->at != 'E') return true;
    const bool sign = r->at[1] == '-' || r->at[1] == '+';
    if (!is_digit(r->at[1 + sign])) return false;
    r->plain[r->n++] = 'e';
    if (sign) r->plain[r->n++] = r->at[1];
    r->at += 1 + sign;
    return take_digits(r) > 0;
}

/** Is all of it a number with such a point? */
static bool is_number(const char *text, char point, clv__cell *cell) {
    reading r = {.at = text, .cell = cell};
    *cell = (clv__cell){.kind = CLV__CELL_NUMBER, .unit = ""};
    bool sign = take_sign(&r);
    if (take_unit(&r, true)) {
        pass_blanks(&r);
        if (!sign) take_sign(&r);
    }
    if (!take_whole(&r, point) || !take_rest(&r, point)) return false;
    pass_blanks(&r);
    take_unit(&r, false);
    if (*r.at) return false;
    r.plain[r.n] = 0;
    cell->number = clv__number_read(r.plain, NULL);
    if (r.is_negative) cell->number = -cell->number;
    return true;
}

static bool is_infinity(const char *text) {
    text += *text == '-' || *text == '+';
    return clv__same_word(text, "inf") || clv__same_word(text, "infinity");
}

// ---- dates --------------------------------------------------------------------------------------------------

static size_t count_digits(const char *text) {
    size_t n = 0;
    while (is_digit(text[n])) n++;
    return n;
}

/** 12:30, 12:30:59.5 */
static bool is_time(const char *text) {
    const size_t hours = count_digits(text);
    return hours >= 1 && hours <= 2 && text[hours] == ':' && count_digits(text + hours + 1) == 2;
}

/** 2024-01-31, 31.1.2024, 1/31/24, with a time or without; 2024-01; a time. */
static bool is_date(const char *text) {
    const size_t a = count_digits(text);
    const char mark = text[a];
    if (is_time(text)) return true;
    if (!a || a > 4 || a == 3 || !strchr("-/.", mark) || !mark) return false;
    const char *second = text + a + 1;
    const size_t b = count_digits(second);
    if (b < 1 || b > 2) return false;
    if (a == 4 && b == 2 && mark == '-' && !second[b]) return atoi(second) >= 1 && atoi(second) <= 12;
    if (second[b] != mark) return false;
    const char *third = second + b + 1;
    const size_t c = count_digits(third);
    if (a == 4 ? c < 1 || c > 2 : c != 2 && c != 4) return false;
    return !third[c] || third[c] == ' ' || third[c] == 'T';
}

// ---- all of them --------------------------------------------------------------------------------------------

clv__cell clv__cell_read(const char *text, bool decimal_comma) {
    const clv__cell_odd other = decimal_comma ? CLV__ODD_POINT : CLV__ODD_COMMA;
    const char point = decimal_comma ? ',' : '.';
    clv__cell cell = {.unit = ""};
    for (size_t i = 0; i < COUNT(missing); i++)
        if (!strcmp(text, missing[i])) return cell;
    if (strlen(text) <= MOST_BYTES && is_number(text, point, &cell)) {
        if (fabs(cell.number) <= 3.4028234e38) return cell;
        return (clv__cell){.kind = CLV__CELL_ODD, .odd = CLV__ODD_LARGE, .unit = ""};
    }
    if (is_infinity(text)) return (clv__cell){.kind = CLV__CELL_ODD, .odd = CLV__ODD_LARGE, .unit = ""};
    if (is_date(text)) return (clv__cell){.kind = CLV__CELL_DATE, .unit = ""};
    if (strlen(text) <= MOST_BYTES && is_number(text, decimal_comma ? '.' : ',', &cell))
        return (clv__cell){.kind = CLV__CELL_ODD, .odd = other, .unit = ""};
    return (clv__cell){.kind = CLV__CELL_WORD, .unit = ""};
}
