// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"

clv__short_text clv__bytes_text(uint64_t bytes) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    clv__short_text out;
    if (bytes < 1024) {
        snprintf(out.text, sizeof out.text, "%u B", (unsigned)bytes);
        return out;
    }
    double value = (double)bytes / 1024.0;
    size_t unit = 0;
    while (value >= 1023.95 && unit + 1 < sizeof units / sizeof *units) { // 1023.95 would print as 1024.0
        value /= 1024.0;
        unit++;
    }
    clv__format(out.text, sizeof out.text, "%.1f %s", value, units[unit]);
    return out;
}

void clv__text_add_bytes(clv__text *text, const char *bytes, size_t n) {
    if (text->failed) return;
    size_t need;
    if (!clv__size_add(text->n, n, &need) || !clv__size_add(need, 1, &need) ||
        !clv__grow(&text->data, &text->room, need, 1)) {
        text->failed = true;
        return;
    }
    memcpy(text->data + text->n, bytes, n);
    text->n += n;
    text->data[text->n] = 0;
}

void clv__text_add(clv__text *text, const char *format, ...) {
    char small[512];
    va_list args;
    va_start(args, format);
    int n = clv__format_list(small, sizeof small, format, args);
    va_end(args);
    if (n < 0) {
        text->failed = true;
    } else if ((size_t)n < sizeof small) {
        clv__text_add_bytes(text, small, (size_t)n);
    } else {
        char *big = malloc((size_t)n + 1);
        if (!big) {
            text->failed = true;
            return;
        }
        va_start(args, format);
        clv__format_list(big, (size_t)n + 1, format, args);
        va_end(args);
        clv__text_add_bytes(text, big, (size_t)n);
        free(big);
    }
}

const char *clv__text_get(const clv__text *text) {
    return text->data ? text->data : "";
}

void clv__text_reset(clv__text *text) {
    free(text->data);
    *text = (clv__text){0};
}

char clv__lower(char letter) {
    return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

bool clv__same_letters(const char *a, const char *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (clv__lower(a[i]) != clv__lower(b[i]) || !a[i]) return false;
    }
    return true;
}

bool clv__same_word(const char *a, const char *b) {
    const size_t n = strlen(b);
    return strlen(a) == n && clv__same_letters(a, b, n);
}

bool clv__text_holds(const char *text, const char *part) {
    size_t n = strlen(part);
    for (; *text; text++) {
        if (clv__same_letters(text, part, n)) return true;
    }
    return n == 0;
}

char *clv__text_trim(char *text) {
    size_t n = strlen(text);
    while (n && isspace((unsigned char)text[n - 1])) n--;
    text[n] = 0;
    while (isspace((unsigned char)*text)) text++;
    return text;
}
