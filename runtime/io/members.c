// SPDX-License-Identifier: Apache-2.0
#include "io/members.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "base/memory.h"
#include "io/formats.h"
#include "io/shown.h"

enum { WINDOW = 64 * 1024, DEEPEST = 2048 }; // as jansson's

// ---- the window ---------------------------------------------------------------------------------------------------

void clv__members_init(clv__members *m, const clv__input *input, uint64_t begin, uint64_t end) {
    *m = (clv__members){.input = input, .next = begin, .end = end};
}

void clv__members_reset(clv__members *m) {
    free(m->text);
    *m = (clv__members){0};
}

/** Bring more into the window; false at the end, or with m->status. */
static bool refill(clv__members *m) {
    if (m->status != CLV_OK || m->next == m->end) return false;
    if (m->keep) {
        memmove(m->text, m->text + m->keep, m->n - m->keep);
        m->n -= m->keep;
        m->at -= m->keep;
        m->keep = 0;
    }
    if (m->n == m->room) {
        size_t room = m->room ? 2 * m->room : WINDOW;
        char *text = realloc(m->text, room);
        if (!text) {
            m->status = clv__error_set(m->input->error, CLV_E_HOST_MEMORY,
                                       "'%s': no host memory for its header", m->input->path);
            return false;
        }
        m->text = text;
        m->room = room;
    }
    size_t n = m->room - m->n;
    if (n > m->end - m->next) n = (size_t)(m->end - m->next);
    m->status = clv__input_read(m->input, m->next, m->text + m->n, n);
    if (m->status != CLV_OK) return false;
    m->n += n;
    m->next += n;
    return true;
}

/** The next byte, which stays; -1: there is none. */
static inline int look(clv__members *m) {
    return m->at < m->n || refill(m) ? (unsigned char)m->text[m->at] : -1;
}

static int look_past_blanks(clv__members *m) {
    int c;
    while ((c = look(m)) == ' ' || c == '\n' || c == '\t' || c == '\r') m->at++;
    return c;
}

/** Where the next byte is in the file. */
static uint64_t place(const clv__members *m) {
    return m->next - (m->n - m->at);
}

clv_status clv__members_bad(const clv__members *m, const char *why) {
    clv__shown_text shown;
    if (m->status != CLV_OK) return m->status; // of the file, or of memory
    CLV_FAIL(m->input->error, CLV_E_FORMAT, "'%s': the header is not JSON: %s (byte %" PRIu64 " of the file)",
             m->input->path, clv__shown(why, &shown), place(m));
}

// ---- members ------------------------------------------------------------------------------------------------------

clv_status clv__members_parse(clv__members *m, const char *text, size_t n, json_t **out) {
    json_error_t why;
    clv__shown_text shown;
    *out = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (*out) return CLV_OK;
    if (why.text[0] == 0 || json_error_code(&why) == json_error_out_of_memory)
        CLV_FAIL(m->input->error, CLV_E_HOST_MEMORY, "'%s': no host memory to parse its header",
                 m->input->path);
    CLV_FAIL(m->input->error, CLV_E_FORMAT, "'%s': the header is not JSON: %s (byte %" PRIu64 " of the file)",
             m->input->path, clv__shown(why.text, &shown),
             place(m) - n + (uint64_t)(why.position > 0 ? why.position : 0));
}

// Bytes that a run of plain ones ends at, in a string and in a value: runs are passed over without a call for each byte.
static const bool ends_plain[256] = {
    [0 ... 0x1f] = true, ['"'] = true, ['\\'] = true, [0x7f ... 0xff] = true};
static const bool ends_run[256] = {
    ['"'] = true, ['{'] = true, ['}'] = true, ['['] = true, [']'] = true, [','] = true};

/** Pass over a string; `plain`: it holds nothing that would have to be decoded or checked. */
static clv_status pass_string(clv__members *m, bool *plain) {
    *plain = true;
    m->at++;
    for (;;) {
        while (m->at < m->n && !ends_plain[(unsigned char)m->text[m->at]]) m->at++;
        int c = look(m);
        if (c < 0) return clv__members_bad(m, "a text has no end");
        m->at++;
        if (c == '"') return CLV_OK;
        if (c < 0x20 || c >= 0x7f) *plain = false;
        if (c != '\\') continue;
        *plain = false;
        if (look(m) < 0) return clv__members_bad(m, "a text has no end");
        m->at++;
    }
}

/** Decode a string with short escapes, between its quotes; NULL: it has others, or bytes that are no UTF-8, for jansson to judge.
 *  (Out of memory in a string with a backslash, jansson can end the process, and texts in the metadata are JSON in a string.) */
static char *decode_short(const char *text, size_t n) {
    static const char escapes[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char *out = malloc(n + 1);
    size_t used = 0;
    for (size_t i = 0; out && i < n; i++) {
        const char *escape =
            text[i] == '\\' && i + 1 < n ? memchr(escapes, text[i + 1], sizeof escapes - 1) : NULL;
        if ((text[i] == '\\' && !escape) || (unsigned char)text[i] < 0x20) {
            free(out);
            return NULL;
        }
        out[used++] = escape ? values[escape - escapes] : text[i];
        i += escape != NULL;
    }
    if (!out) return NULL;
    out[used] = 0;
    if (clv__utf8_valid(out)) return out;
    free(out);
    return NULL;
}

/** The string from m->keep to m->at, decoded. */
static clv_status decode(clv__members *m, bool plain, char **out) {
    const char *text = m->text + m->keep;
    size_t n = m->at - m->keep;
    *out = plain ? strndup(text + 1, n - 2) : decode_short(text + 1, n - 2);
    if (!*out && !plain) {
        json_t *json;
        CLV_TRY(clv__members_parse(m, text, n, &json));
        *out = clv__strdup(json_string_value(json));
        json_decref(json);
    }
    if (!*out)
        CLV_FAIL(m->input->error, CLV_E_HOST_MEMORY, "'%s': no host memory for a name", m->input->path);
    return CLV_OK;
}

clv_status clv__members_enter(clv__members *m, bool *is_object) {
    *is_object = look_past_blanks(m) == '{';
    m->at += *is_object;
    return m->status;
}

clv_status clv__members_next(clv__members *m, bool *begun, char **name) {
    bool plain;
    *name = NULL;
    int c = look_past_blanks(m);
    if (c == '}') {
        m->at++;
        return CLV_OK;
    }
    if (*begun) {
        if (c != ',') return clv__members_bad(m, "',' or '}' was expected");
        m->at++;
        c = look_past_blanks(m);
    }
    *begun = true;
    if (c != '"') return clv__members_bad(m, "a name or '}' was expected");
    m->keep = m->at;
    CLV_TRY(pass_string(m, &plain));
    CLV_TRY(decode(m, plain, name));
    clv_status status = CLV_OK;
    if (look_past_blanks(m) != ':')
        status = clv__members_bad(m, "':' was expected");
    else
        m->at++;
    if (status == CLV_OK && look_past_blanks(m) < 0) status = clv__members_bad(m, "a value was expected");
    m->keep = m->at;
    if (status != CLV_OK) {
        free(*name);
        *name = NULL;
    }
    return status;
}

clv_status clv__members_value(clv__members *m, size_t most, const char **text, size_t *n) {
    int depth = 0;
    *text = NULL;
    m->keep = m->at;
    for (int c; (c = look(m)) >= 0;) {
        bool plain;
        if (!ends_run[c]) {
            while (++m->at < m->n && !ends_run[(unsigned char)m->text[m->at]]) continue;
            continue;
        }
        if (m->at - m->keep > most) return CLV_OK;
        if (c == '"') {
            CLV_TRY(pass_string(m, &plain));
            continue;
        }
        if (c == '{' || c == '[') {
            if (++depth >= DEEPEST) return clv__members_bad(m, "values lie too deep in each other");
        } else if (depth == 0 && (c == ',' || c == '}' || c == ']')) {
            break;
        } else if (c == '}' || c == ']') {
            depth--;
        }
        m->at++;
    }
    if (m->status != CLV_OK || m->at == m->n) return clv__members_bad(m, "a value has no end");
    if (m->at - m->keep > most) return CLV_OK;
    *text = m->text + m->keep;
    *n = m->at - m->keep;
    return CLV_OK;
}

clv_status clv__members_text(clv__members *m, char **out) {
    bool plain;
    *out = NULL;
    if (look(m) != '"') return CLV_OK;
    m->keep = m->at;
    CLV_TRY(pass_string(m, &plain));
    return decode(m, plain, out);
}

clv_status clv__members_end(clv__members *m) {
    if (look_past_blanks(m) >= 0) return clv__members_bad(m, "the end was expected");
    return m->status;
}

// ---- names --------------------------------------------------------------------------------------------------------

// A slot holds a number and the top bits of the name's hash: another name that lies there is told by them, without being read.

enum { NUMBER_BITS = 24, NUMBERS = (1 << NUMBER_BITS) - 1, AHEAD = 16 };
_Static_assert(CLV__SAFETENSORS_HEADER_BYTES / (sizeof "'':''," - 1) < NUMBERS,
               "a header has more members than numbers");

static uint64_t hash_of(const clv__name_set *names, const char *name) {
    return XXH64(name, strlen(name), names->seed);
}

void clv__name_set_expect(const clv__name_set *names, const char *name) {
    if (names->room) __builtin_prefetch(&names->slots[hash_of(names, name) & (names->room - 1)], 1);
}

/** The slot of the i-th name, or the empty one where it goes; *fill is what it holds then. */
static uint32_t *slot_of(const clv__name_set *names, size_t i, uint32_t *fill) {
    const char *name = names->name_of(names->owner, i);
    uint64_t hash = hash_of(names, name);
    uint32_t tag = (uint32_t)(hash >> 32) & ~(uint32_t)NUMBERS;
    size_t at = (size_t)hash & (names->room - 1);
    for (uint32_t slot; (slot = names->slots[at]) != 0; at = (at + 1) & (names->room - 1)) {
        if ((slot & ~(uint32_t)NUMBERS) != tag) continue;
        if (strcmp(names->name_of(names->owner, (slot & NUMBERS) - 1), name) == 0) break;
    }
    *fill = tag | (uint32_t)(i + 1);
    return &names->slots[at];
}

static bool grow(clv__name_set *names) {
    clv__name_set larger = *names;
    larger.room = names->room ? 2 * names->room : 64;
    larger.slots = clv__alloc(larger.room, sizeof *larger.slots);
    if (!larger.slots) return false;
    for (size_t i = 0; i < names->n; i++) {
        if (i + AHEAD < names->n) clv__name_set_expect(&larger, names->name_of(names->owner, i + AHEAD));
        uint32_t fill, *slot = slot_of(&larger, i, &fill);
        *slot = fill;
    }
    free(names->slots);
    *names = larger;
    return true;
}

bool clv__name_set_add(clv__name_set *names, bool *twice) {
    if (!names->room) { // a file cannot know where its names will lie
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        names->seed = (uint64_t)now.tv_nsec ^ (uint64_t)(uintptr_t)&now;
    }
    if (4 * (names->n + 1) > 3 * names->room && !grow(names)) return false;
    uint32_t fill, *slot = slot_of(names, names->n, &fill);
    *twice = *slot != 0;
    if (*twice) return true;
    *slot = fill;
    names->n++;
    return true;
}

void clv__name_set_reset(clv__name_set *names) {
    free(names->slots);
    names->slots = NULL;
    names->n = names->room = 0;
}
