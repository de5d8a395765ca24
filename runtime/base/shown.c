// SPDX-License-Identifier: Apache-2.0
#include "base/shown.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cleave/runtime.h"

size_t clv__utf8_length(const uint8_t *s, size_t left) { // Source: RFC 3629
    static const struct {
        uint8_t first_lo, first_hi, second_lo, second_hi;
        size_t bytes;
    } forms[] = {
        {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    if (left == 0) return 0;
    if (s[0] < 0x80) return 1;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (s[0] < forms[i].first_lo || s[0] > forms[i].first_hi) continue;
        if (left < forms[i].bytes || s[1] < forms[i].second_lo || s[1] > forms[i].second_hi) return 0;
        for (size_t k = 2; k < forms[i].bytes; k++) {
            if ((s[k] & 0xc0) != 0x80) return 0;
        }
        return forms[i].bytes;
    }
    return 0;
}

// ---- characters -------------------------------------------------------------------------------------------

enum { LINES = 1, COLOURS = 2 }; // what else may pass

/** Bytes of a colour, ESC [ 1;31 m, at `s`; 0 if it is none. */
static size_t colour_length(const uint8_t *s, size_t left) {
    if (left < 3 || s[0] != 0x1b || s[1] != '[') return 0;
    for (size_t n = 2; n < left && n < 16; n++) {
        if (s[n] == 'm') return n + 1;
        if (s[n] != ';' && (s[n] < '0' || s[n] > '9')) return 0;
    }
    return 0;
}

/** The next character, of *bytes, as it may be shown: *shown bytes, 0 for a '?' in its place. */
static void next(const uint8_t *s, size_t left, unsigned pass, size_t *bytes, size_t *shown) {
    size_t n = clv__utf8_length(s, left), colour = pass & COLOURS ? colour_length(s, left) : 0;
    bool line = n == 1 && (s[0] == '\n' || s[0] == '\t') && pass & LINES;
    // U+2028 and U+2029 break lines; U+202A to E and U+2066 to 9 turn the direction of what follows.
    bool turns =
        n == 3 && s[0] == 0xe2 &&
        ((s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae) || (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9));
    bool control = n == 0 || (n == 1 && (s[0] < 0x20 || s[0] == 0x7f)) ||
                   (n == 2 && s[0] == 0xc2 && s[1] < 0xa0) || turns;
    *bytes = colour ? colour : n ? n : 1;
    *shown = colour || line || !control ? *bytes : 0;
}

/** Bytes that `bytes` of text take when they are shown; they go to `out` if it is not NULL, which may be the
 *  text. */
static size_t show(const uint8_t *s, size_t bytes, unsigned pass, char *out) {
    size_t used = 0;
    while (bytes) {
        size_t n, shown;
        next(s, bytes, pass, &n, &shown);
        if (out && shown) memmove(out + used, s, shown);
        if (out && !shown) out[used] = '?';
        used += shown ? shown : 1;
        s += n;
        bytes -= n;
    }
    return used;
}

void clv__show(char *text, int lines) {
    text[show((const uint8_t *)text, strlen(text), lines ? LINES : 0, text)] = 0;
}

/** How many of the first `n` bytes are whole characters, where the last may have been cut. */
static size_t whole(const char *text, size_t n) {
    size_t last = n;
    while (last && n - last < 3 && ((uint8_t)text[last - 1] & 0xc0) == 0x80) last--;
    if (!last || (uint8_t)text[last - 1] < 0xc0) return n;
    return clv__utf8_length((const uint8_t *)text + last - 1, n - last + 1) ? n : last - 1;
}

void clv__show_name(const char *name, size_t bytes, char out[CLV__NAME_BYTES + 1]) {
    enum { HEAD = 130, TAIL = CLV__NAME_BYTES - HEAD - 3, PIECE = 4 * CLV__NAME_BYTES };
    char piece[PIECE];
    if (bytes <= sizeof piece) {
        size_t n = show((const uint8_t *)name, bytes, 0, piece);
        if (n <= CLV__NAME_BYTES) {
            memcpy(out, piece, n);
            out[n] = 0;
            return;
        }
    }
    // Its ends tell names apart: layers begin alike, and parameters end alike.
    size_t head = bytes < sizeof piece ? bytes : sizeof piece, tail = head;
    size_t n = show((const uint8_t *)name, head, 0, piece);
    n = whole(piece, n < HEAD ? n : HEAD);
    memcpy(out, piece, n);
    memcpy(out + n, "...", 3);
    n += 3;
    size_t m = show((const uint8_t *)name + bytes - tail, tail, 0, piece), from = m > TAIL ? m - TAIL : 0;
    while (from < m && ((uint8_t)piece[from] & 0xc0) == 0x80) from++;
    memcpy(out + n, piece + from, m - from);
    out[n + m - from] = 0;
}

// ---- printf -----------------------------------------------------------------------------------------------

typedef struct printed {
    char *out;
    size_t room, n; // n: what it would take, as vsnprintf counts
} printed;

static void put(printed *to, const char *text, size_t bytes) {
    if (to->n + 1 < to->room) {
        size_t fits = to->room - 1 - to->n;
        memcpy(to->out + to->n, text, bytes < fits ? bytes : fits);
    }
    to->n += bytes;
}

static void pad(printed *to, long width, size_t columns) {
    for (; width > 0 && (size_t)width > columns; width--) put(to, " ", 1);
}

/** One conversion: %-12.3f with its numbers read. */
typedef struct conversion {
    char flags[8];
    long width, precision; // -1: none
    char length[4], letter;
    bool quoted;
} conversion;

static const char *parse(const char *at, va_list *args, conversion *c) {
    *c = (conversion){.width = -1, .precision = -1};
    size_t n = 0;
    for (; *at && strchr("-+ #0'", *at); at++)
        if (n + 1 < sizeof c->flags) c->flags[n++] = *at;
    long *numbers[] = {&c->width, &c->precision};
    for (int i = 0; i < 2; i++) {
        if (i && *at != '.') continue;
        if (i) at++, *numbers[i] = 0;
        if (*at == '*') {
            *numbers[i] = va_arg(*args, int), at++;
        } else if (i || (*at >= '0' && *at <= '9')) {
            *numbers[i] = 0;
            for (; *at >= '0' && *at <= '9'; at++) *numbers[i] = *numbers[i] * 10 + (*at - '0');
        }
    }
    if (c->width < -1) { // a negative one means left, a negative precision none
        c->width = -c->width;
        if (n + 1 < sizeof c->flags) c->flags[n++] = '-';
    }
    for (n = 0; *at && strchr("hljztL", *at); at++)
        if (n + 1 < sizeof c->length) c->length[n++] = *at;
    c->letter = *at;
    return *at ? at + 1 : at;
}

/** A text or a name, with its width. */
static void put_text(printed *to, const conversion *c, unsigned flags, const char *text) {
    if (!text) text = "(null)";
    size_t bytes = c->precision >= 0 ? strnlen(text, (size_t)c->precision) : strlen(text);
    if (c->precision >= 0 && (size_t)c->precision == bytes) bytes = whole(text, bytes);
    char name[CLV__NAME_BYTES + 1];
    bool is_name = flags & CLV__SHOWN_NAMES && c->quoted;
    if (is_name) clv__show_name(text, bytes, name);
    unsigned pass = LINES | (flags & CLV__SHOWN_COLOURS ? COLOURS : 0);
    size_t shown = is_name ? strlen(name) : show((const uint8_t *)text, bytes, pass, NULL);
    bool left = strchr(c->flags, '-') != NULL;
    if (!left) pad(to, c->width, shown);
    if (is_name) {
        put(to, name, shown);
    } else {
        for (size_t n, keep; bytes; text += n, bytes -= n) {
            next((const uint8_t *)text, bytes, pass, &n, &keep);
            put(to, keep ? text : "?", keep ? keep : 1);
        }
    }
    if (left) pad(to, c->width, shown);
}

/** Everything but texts, by the system's printf. */
static void put_number(printed *to, const conversion *c, va_list *args) {
    char format[64], text[512], width[24] = "", precision[24] = "";
    if (c->width >= 0) snprintf(width, sizeof width, "%ld", c->width);
    if (c->precision >= 0) snprintf(precision, sizeof precision, ".%ld", c->precision);
    snprintf(format, sizeof format, "%%%s%s%s%s%c", c->flags, width, precision, c->length, c->letter);
    int n = -1;
    bool is_long = c->length[0] == 'l' && c->length[1] != 'l';
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored                                                                               \
    "-Wformat-nonliteral" // made of a literal, which the caller's attribute has checked
    if (strchr("diouxXc", c->letter)) {
        if (c->letter == 'c') {
            int letter = va_arg(*args, int);
            n = snprintf(text, sizeof text, format, letter < 0x20 || letter >= 0x7f ? '?' : letter);
        } else if (!strcmp(c->length, "ll") || c->length[0] == 'j' || c->length[0] == 'L') {
            n = snprintf(text, sizeof text, format, va_arg(*args, long long));
        } else if (is_long || c->length[0] == 't') {
            n = snprintf(text, sizeof text, format, va_arg(*args, long));
        } else if (c->length[0] == 'z') {
            n = snprintf(text, sizeof text, format, va_arg(*args, size_t));
        } else {
            n = snprintf(text, sizeof text, format, va_arg(*args, int));
        }
    } else if (strchr("aAeEfFgG", c->letter)) {
        n = c->length[0] == 'L' ? clv__format(text, sizeof text, format, va_arg(*args, long double))
                                : clv__format(text, sizeof text, format, va_arg(*args, double));
    } else if (c->letter == 'p') {
        n = snprintf(text, sizeof text, format, va_arg(*args, void *));
    }
#pragma GCC diagnostic pop
    if (n > 0) put(to, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

int clv__format_shown(char *text, size_t bytes, unsigned flags, const char *format, va_list given) {
    printed to = {text, bytes, 0};
    va_list args;
    va_copy(args, given);
    while (*format) {
        const char *percent = strchr(format, '%');
        size_t plain = percent ? (size_t)(percent - format) : strlen(format);
        put(&to, format, plain);
        if (!percent) break;
        conversion c;
        const bool quoted = plain && percent[-1] == '\'';
        format = parse(percent + 1, &args, &c);
        c.quoted = quoted;
        if (c.letter == '%')
            put(&to, "%", 1);
        else if (c.letter == 's')
            put_text(&to, &c, flags, va_arg(args, const char *));
        else
            put_number(&to, &c, &args);
    }
    va_end(args);
    if (bytes) {
        size_t end = to.n < bytes ? to.n : whole(text, bytes - 1);
        text[end] = 0;
    }
    return to.n <= INT32_MAX ? (int)to.n : INT32_MAX;
}
