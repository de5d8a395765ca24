// SPDX-License-Identifier: Apache-2.0
// The normalizer Precompiled: SentencePiece's table of replacements, a double array (Aoe 1989) in front of the texts that it leads to.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/shown.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/unicode.h"

struct clv__charsmap {
    uint8_t *data; // the units, then the texts, each of which a zero byte ends
    size_t n_units, texts, bytes;
};

static int digit_of(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/** Base64, RFC 4648, with or without its `=`. */
static bool decode(const char *text, size_t n, uint8_t *out, size_t *bytes) {
    uint32_t bits = 0;
    int have = 0;
    *bytes = 0;
    while (n && text[n - 1] == '=') n--;
    for (size_t i = 0; i < n; i++) {
        const int digit = digit_of(text[i]);
        if (digit < 0) return false;
        bits = bits << 6 | (uint32_t)digit;
        have += 6;
        if (have < 8) continue;
        have -= 8;
        out[(*bytes)++] = (uint8_t)(bits >> have);
    }
    return true;
}

static uint32_t unit_at(const clv__charsmap *map, size_t at) {
    const uint8_t *b = map->data + 4 + 4 * at;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

clv_status clv__charsmap_make(clv__error *error, const char *base64, size_t bytes, clv__charsmap **out) {
    clv__charsmap *map = *out = clv__alloc(1, sizeof *map);
    if (map) map->data = clv__alloc(bytes + 4, 1);
    if (!map || !map->data) return clv__tokenizer_no_memory(error);
    bool right = decode(base64, bytes, map->data, &map->bytes) && map->bytes >= 4;
    if (right) {
        const uint8_t *b = map->data;
        const size_t units = (size_t)b[0] | (size_t)b[1] << 8 | (size_t)b[2] << 16 | (size_t)b[3] << 24;
        right = units % 4 == 0 && units <= map->bytes - 4;
        map->n_units = units / 4;
        map->texts = 4 + units;
    }
    if (!right)
        CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer: precompiled_charsmap is no table of SentencePiece");
    return CLV_OK;
}

/** What the shortest beginning of a text that has a replacement becomes; NULL: none has one. */
static const char *replacement_of(const clv__charsmap *map, const char *text, size_t bytes, size_t *n) {
    size_t at = 0;
    if (!map->n_units) return NULL;
    uint32_t unit = unit_at(map, 0);
    at ^= (size_t)(unit >> 10) << ((unit & 1u << 9) >> 6);
    for (size_t i = 0; i < bytes && text[i]; i++) {
        at ^= (uint8_t)text[i];
        if (at >= map->n_units) return NULL;
        unit = unit_at(map, at);
        if ((unit & (1u << 31 | 0xff)) != (uint8_t)text[i]) return NULL;
        at ^= (size_t)(unit >> 10) << ((unit & 1u << 9) >> 6);
        if (!(unit >> 8 & 1)) continue;
        if (at >= map->n_units) return NULL;
        const size_t place = map->texts + (unit_at(map, at) & 0x7fffffffu);
        if (place >= map->bytes) return NULL;
        const char *found = (const char *)map->data + place, *end = memchr(found, 0, map->bytes - place);
        *n = end ? (size_t)(end - found) : map->bytes - place;
        return found;
    }
    return NULL;
}

/** A replacement, which a file may have any bytes for; false: there is none. */
static bool replace(const clv__charsmap *map, const char *text, size_t bytes, clv__text *out, bool *first) {
    size_t n = 0;
    const char *with = replacement_of(map, text, bytes, &n);
    if (!with) return false;
    if (n == 0 && out->n == 0) *first = false;
    clv__utf8_repair(out, with, n);
    return true;
}

clv_status clv__charsmap_run(const clv__charsmap *map, clv__error *error, const char *text, size_t bytes,
                             clv__text *out, bool *first) {
    for (size_t i = 0, length; i < bytes; i += length) {
        length = clv__unicode_grapheme(text + i, bytes - i);
        CLV_TRY(clv__tokenizer_check_growth(error, "normalizer", out, bytes));
        if (length < 6 && replace(map, text + i, length, out, first)) continue;
        for (size_t k = 0, one; k < length; k += one) {
            (void)clv__utf8_code(text + i + k, &one);
            if (!replace(map, text + i + k, one, out, first)) clv__text_add_bytes(out, text + i + k, one);
            CLV_TRY(clv__tokenizer_check_growth(error, "normalizer", out, bytes));
        }
    }
    return out->failed ? clv__tokenizer_no_memory(error) : CLV_OK;
}

void clv__charsmap_destroy(clv__charsmap *map) {
    if (map) free(map->data);
    free(map);
}
