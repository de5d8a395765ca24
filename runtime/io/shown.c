// SPDX-License-Identifier: Apache-2.0
#include "io/shown.h"

#include <stdint.h>
#include <string.h>

/** Bytes of the UTF-8 character at `s`, of which `left` bytes are there; 0 if it is none. Source: RFC 3629.
 */
static size_t utf8_length(const uint8_t *s, size_t left) {
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

bool clv__utf8_valid(const char *text) {
    const uint8_t *s = (const uint8_t *)text;
    size_t left = strlen(text);
    while (left > 0) {
        size_t n = utf8_length(s, left);
        if (n == 0) return false;
        s += n;
        left -= n;
    }
    return true;
}

const char *clv__shown_bytes(const void *text, size_t bytes, clv__shown_text *room) {
    const uint8_t *s = text;
    size_t used = 0, room_bytes = sizeof room->text - 4; // "..." and the end
    while (bytes > 0) {
        size_t n = utf8_length(s, bytes);
        bool control =
            n == 0 || (n == 1 && (s[0] < 0x20 || s[0] == 0x7f)) || (n == 2 && s[0] == 0xc2 && s[1] < 0xa0);
        size_t shown = control ? 1 : n;
        if (used + shown > room_bytes) {
            memcpy(room->text + used, "...", 3);
            used += 3;
            break;
        }
        if (control) {
            room->text[used] = '?';
        } else {
            memcpy(room->text + used, s, n);
        }
        used += shown;
        s += n ? n : 1;
        bytes -= n ? n : 1;
    }
    room->text[used] = 0;
    return room->text;
}

const char *clv__shown(const char *text, clv__shown_text *room) {
    return clv__shown_bytes(text, strlen(text), room);
}

const char *clv__system_reason(int code, clv__shown_text *room) {
    if (strerror_r(code, room->text, sizeof room->text) != 0) memcpy(room->text, "unknown fault", 14);
    return room->text;
}
