// SPDX-License-Identifier: Apache-2.0
// The bytes of a table: UTF-16 becomes UTF-8, and marks of either are taken away.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "io/csv.h"

static uint32_t unit_at(const unsigned char *at, bool big) {
    return big ? (uint32_t)at[0] << 8 | at[1] : (uint32_t)at[1] << 8 | at[0];
}

static char *add_character(char *to, uint32_t c) {
    const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char heads[] = {0, 0xc0, 0xe0, 0xf0};
    *to++ = (char)(heads[more] | c >> (6 * more));
    for (int i = more - 1; i >= 0; i--) *to++ = (char)(0x80 | (c >> (6 * i) & 0x3f));
    return to;
}

/** UTF-16 behind its mark; a half of a pair without the other becomes U+FFFD, as everywhere. */
static clv_status from_utf16(const clv__input *input, char **text, size_t *bytes) {
    const unsigned char *at = (const unsigned char *)*text, *end = at + *bytes / 2 * 2;
    const bool big = at[0] == 0xfe;
    char *own = clv__alloc(*bytes / 2 * 3 + 2, 1), *to = own;
    if (!own) CLV_FAIL(input->error, CLV_E_HOST_MEMORY, "'%s': no host memory for its table", input->path);
    for (at += 2; at < end; at += 2) {
        uint32_t c = unit_at(at, big);
        const uint32_t next = end - at > 2 ? unit_at(at + 2, big) : 0;
        if (c >= 0xd800 && c < 0xdc00 && next >= 0xdc00 && next < 0xe000) {
            c = 0x10000 + ((c - 0xd800) << 10) + (next - 0xdc00);
            at += 2;
        } else if (c >= 0xd800 && c < 0xe000) {
            c = 0xfffd;
        }
        to = add_character(to, c);
    }
    free(*text);
    *text = own;
    *bytes = (size_t)(to - own);
    return CLV_OK;
}

static clv_status make_utf8(const clv__input *input, char **text, size_t *bytes) {
    const unsigned char *mark = (const unsigned char *)*text;
    if (*bytes >= 2 && ((mark[0] == 0xff && mark[1] == 0xfe) || (mark[0] == 0xfe && mark[1] == 0xff)))
        CLV_TRY(from_utf16(input, text, bytes));
    else if (*bytes >= 3 && memcmp(mark, "\xef\xbb\xbf", 3) == 0) // spreadsheets put it before UTF-8
        memmove(*text, *text + 3, *bytes -= 3);
    return CLV_OK;
}

clv_status clv__csv_bytes(clv__input *input, char **text, size_t *bytes) {
    *bytes = (size_t)input->bytes;
    *text = clv__alloc(*bytes + 1, 1);
    if (!*text) CLV_FAIL(input->error, CLV_E_HOST_MEMORY, "'%s': no host memory for its table", input->path);
    clv_status status = clv__input_read(input, 0, *text, *bytes);
    if (status == CLV_OK) status = make_utf8(input, text, bytes);
    if (status == CLV_OK) return CLV_OK;
    free(*text);
    *text = NULL;
    return status;
}
