// SPDX-License-Identifier: Apache-2.0
#include "io/shown.h"

#include <stdint.h>
#include <string.h>

#include "base/shown.h"

bool clv__utf8_valid(const char *text) {
    const uint8_t *s = (const uint8_t *)text;
    size_t left = strlen(text);
    while (left > 0) {
        size_t n = clv__utf8_length(s, left);
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
        size_t n = clv__utf8_length(s, bytes);
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
