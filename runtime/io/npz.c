// SPDX-License-Identifier: Apache-2.0
// numpy's archive of arrays, .npz: a ZIP file with a .npy file for each array, as numpy.savez (stored) and savez_compressed (deflated)
// write it. Sizes and places are those of the central directory at the file's end. Source: APPNOTE.TXT of the ZIP format, sections 4.3.7,
// 4.3.12, 4.3.16; RFC 1951; numpy.lib.format.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "io/formats.h"
#include "io/shown.h"

enum {
    END_BYTES = 22,       // of the record at the file's end, without its comment
    MOST_COMMENT = 65535, // of that record
    ENTRY_BYTES = 46,     // of an entry of the directory, without its name
    LOCAL_BYTES = 30,     // of what stands before a member's bytes, without its name
    STORED = 0,
    DEFLATED = 8,
    MOST_DEFLATED = 1032, // bytes that one byte becomes at most
};

#define BAD(...) CLV_FAIL(input->error, CLV_E_FORMAT, __VA_ARGS__)

static uint32_t u16(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static uint32_t u32(const uint8_t *at) {
    return u16(at) | u16(at + 2) << 16;
}

/** The central directory. */
typedef struct directory {
    uint64_t offset, bytes;
    uint32_t entries;
} directory;

/** The record at the end of the file: the last one whose comment ends where the file does, and where it begins. */
static clv_status find_end(clv__input *input, uint8_t record[END_BYTES], uint64_t *begin) {
    const size_t n =
        input->bytes < END_BYTES + MOST_COMMENT ? (size_t)input->bytes : END_BYTES + MOST_COMMENT;
    uint8_t *tail = clv__alloc(n + 1, 1);
    bool found = false;
    if (!tail) CLV_FAIL(input->error, CLV_E_HOST_MEMORY, "'%s': no host memory to read it", input->path);
    const clv_status status = clv__input_read(input, input->bytes - n, tail, n);
    for (size_t i = n < END_BYTES ? 0 : n - END_BYTES + 1; status == CLV_OK && !found && i-- > 0;) {
        found = !memcmp(tail + i, "PK\5\6", 4) && i + END_BYTES + u16(tail + i + 20) == n;
        if (!found) continue;
        memcpy(record, tail + i, END_BYTES);
        *begin = input->bytes - n + i;
    }
    free(tail);
    CLV_TRY(status);
    if (!found) BAD("'%s' is no .npz file: no directory of a ZIP archive ends it", input->path);
    return CLV_OK;
}

static clv_status find_directory(clv__input *input, directory *out) {
    uint8_t end[END_BYTES] = {0};
    uint64_t begin = 0;
    CLV_TRY(find_end(input, end, &begin));
    *out = (directory){.offset = u32(end + 16), .bytes = u32(end + 12), .entries = u16(end + 10)};
    if (u16(end + 4) || u16(end + 6) || u16(end + 8) != out->entries)
        CLV_FAIL(input->error, CLV_E_UNSUPPORTED, "'%s' is one part of a ZIP archive", input->path);
    if (out->offset == UINT32_MAX || out->bytes == UINT32_MAX || out->entries == UINT16_MAX)
        CLV_FAIL(input->error, CLV_E_UNSUPPORTED,
                 "'%s' is a ZIP archive of more than 4 GiB or 65534 arrays; put large arrays in .npy files",
                 input->path);
    if (out->offset > begin || out->bytes > begin - out->offset)
        BAD("'%s' is damaged: its directory would be %" PRIu64 " bytes at %" PRIu64
            ", and the file has %" PRIu64,
            input->path, out->bytes, out->offset, input->bytes);
    return CLV_OK;
}

/** A member, as the directory has it. */
typedef struct member {
    char *name; // of the array: without .npy
    uint32_t method, flags, crc;
    uint64_t packed, bytes, at; // at: of what stands before its bytes
} member;

/** Where its own bytes begin: behind a head of its own, which repeats the name. */
static clv_status find_bytes(const clv__input *input, const directory *dir, const member *m, uint64_t *at) {
    uint8_t head[LOCAL_BYTES];
    if (m->at > dir->offset || dir->offset - m->at < LOCAL_BYTES)
        BAD("'%s' is damaged: a member would begin at byte %" PRIu64, input->path, m->at);
    CLV_TRY(clv__input_read(input, m->at, head, sizeof head));
    if (memcmp(head, "PK\3\4", 4) != 0)
        BAD("'%s' is damaged: no member begins at byte %" PRIu64, input->path, m->at);
    *at = m->at + LOCAL_BYTES + u16(head + 26) + u16(head + 28);
    if (*at > dir->offset || m->packed > dir->offset - *at)
        BAD("'%s' is damaged: %" PRIu64 " bytes of a member do not lie before its directory", input->path,
            m->packed);
    return CLV_OK;
}

static clv_status inflate_all(const clv__input *input, const uint8_t *from, size_t n, uint8_t *to,
                              size_t bytes) {
    z_stream z = {
        .next_in = (Bytef *)(uintptr_t)from, .avail_in = (uInt)n, .next_out = to, .avail_out = (uInt)bytes};
    if (inflateInit2(&z, -15) != Z_OK)
        CLV_FAIL(input->error, CLV_E_HOST_MEMORY, "'%s': no host memory to inflate it", input->path);
    const int code = inflate(&z, Z_FINISH);
    const bool whole = code == Z_STREAM_END && z.avail_in == 0 && z.avail_out == 0;
    inflateEnd(&z);
    if (!whole) BAD("'%s' is damaged: its deflated bytes are not as they should be", input->path);
    return CLV_OK;
}

/** The bytes of a member, checked; to be freed. */
static clv_status unpack(const clv__input *input, const directory *dir, const member *m, uint8_t **out) {
    uint64_t at = 0;
    CLV_TRY(find_bytes(input, dir, m, &at));
    const bool stored = m->method == STORED;
    uint8_t *packed = clv__alloc((size_t)m->packed + 1, 1),
            *bytes = stored ? packed : clv__alloc((size_t)m->bytes + 1, 1);
    clv_status status = CLV_OK;
    if (!packed || !bytes)
        status = clv__error_set(input->error, CLV_E_HOST_MEMORY, "'%s': no host memory for %" PRIu64 " bytes",
                                input->path, m->packed + m->bytes);
    if (status == CLV_OK) status = clv__input_read(input, at, packed, (size_t)m->packed);
    if (status == CLV_OK && !stored)
        status = inflate_all(input, packed, (size_t)m->packed, bytes, (size_t)m->bytes);
    if (!stored) free(packed);
    if (status == CLV_OK && crc32(0, bytes, (uInt)m->bytes) != m->crc)
        status = clv__error_set(input->error, CLV_E_FORMAT, "'%s' is damaged: the checksum does not match",
                                input->path);
    if (status == CLV_OK)
        *out = bytes;
    else
        free(bytes);
    return status;
}

static clv_status check_member(const clv__input *input, const member *m) {
    if (m->flags & 1) CLV_FAIL(input->error, CLV_E_UNSUPPORTED, "'%s' is encrypted", input->path);
    if (m->method != STORED && m->method != DEFLATED)
        CLV_FAIL(input->error, CLV_E_UNSUPPORTED, "'%s' is packed by method %" PRIu32 "; 0 and 8 can be read",
                 input->path, m->method);
    if (m->packed == UINT32_MAX || m->bytes == UINT32_MAX || m->at == UINT32_MAX)
        CLV_FAIL(input->error, CLV_E_UNSUPPORTED, "'%s': an array of 4 GiB or more; put it in a .npy file",
                 input->path);
    if (m->method == STORED ? m->packed != m->bytes : m->bytes / MOST_DEFLATED > m->packed)
        BAD("'%s' is damaged: %" PRIu64 " bytes cannot become %" PRIu64, input->path, m->packed, m->bytes);
    return CLV_OK;
}

static clv_status read_member(const clv__input *input, const directory *dir, const member *m,
                              clv_archive *archive) {
    uint8_t *bytes = NULL;
    clv__input inside;
    clv_array array = {0};
    CLV_TRY(check_member(input, m));
    CLV_TRY(unpack(input, dir, m, &bytes));
    clv__input_memory(input->error, input->path, bytes, (size_t)m->bytes, &inside);
    clv_status status = clv__npy_read(&inside, &array);
    free(bytes);
    CLV_TRY(status);
    array.name = clv__strdup(m->name);
    if (!array.name)
        status =
            clv__error_set(input->error, CLV_E_HOST_MEMORY, "'%s': no host memory for a name", input->path);
    if (status == CLV_OK) status = clv__archive_take(archive, &array);
    clv_array_reset(&array);
    return status;
}

/** The next entry of the directory; its name is to be freed. */
static clv_status read_entry(const clv__input *input, const directory *dir, uint64_t *at, member *m) {
    uint8_t entry[ENTRY_BYTES];
    const uint64_t end = dir->offset + dir->bytes;
    clv__shown_text shown;
    if (end - *at < ENTRY_BYTES) BAD("'%s' is damaged: its directory is cut short", input->path);
    CLV_TRY(clv__input_read(input, *at, entry, sizeof entry));
    const size_t n = u16(entry + 28), behind = n + u16(entry + 30) + u16(entry + 32);
    if (memcmp(entry, "PK\1\2", 4) != 0 || behind > end - *at - ENTRY_BYTES)
        BAD("'%s' is damaged: its directory has no entry at byte %" PRIu64, input->path, *at);
    *m = (member){.flags = u16(entry + 8),
                  .method = u16(entry + 10),
                  .crc = u32(entry + 16),
                  .packed = u32(entry + 20),
                  .bytes = u32(entry + 24),
                  .at = u32(entry + 42)};
    if (!(m->name = clv__alloc(n + 1, 1)))
        CLV_FAIL(input->error, CLV_E_HOST_MEMORY, "'%s': no host memory for a name", input->path);
    CLV_TRY(clv__input_read(input, *at + ENTRY_BYTES, m->name, n));
    if (n <= 4 || memcmp(m->name + n - 4, ".npy", 4) != 0 || strlen(m->name) != n ||
        !clv__utf8_valid(m->name))
        BAD("'%s' is no .npz file: its member '%s' is no .npy file", input->path,
            clv__shown_bytes(m->name, n, &shown));
    m->name[n - 4] = 0;
    *at += ENTRY_BYTES + behind;
    return CLV_OK;
}

static clv_status read_members(const clv__input *input, const directory *dir, clv_archive *archive) {
    uint64_t at = dir->offset, packed = 0;
    clv__shown_text shown;
    for (uint32_t i = 0; i < dir->entries; i++) {
        member m = {0};
        clv_status status = read_entry(input, dir, &at, &m);
        packed += m.packed;
        if (status == CLV_OK && packed > dir->offset) // members that share bytes could become anything
            status =
                clv__error_set(input->error, CLV_E_FORMAT,
                               "'%s' is damaged: its members have more bytes than the file", input->path);
        if (status == CLV_OK && clv_archive_find(archive, m.name))
            status = clv__error_set(input->error, CLV_E_FORMAT, "'%s' has array '%s' twice", input->path,
                                    clv__shown(m.name, &shown));
        if (status == CLV_OK && (status = read_member(input, dir, &m, archive)) != CLV_OK)
            clv__error_prefix(input->error, "array '%s': ", clv__shown(m.name, &shown));
        free(m.name);
        CLV_TRY(status);
    }
    return CLV_OK;
}

clv_status clv__npz_read(clv__input *input, clv_archive **out) {
    directory dir;
    *out = NULL;
    CLV_TRY(find_directory(input, &dir));
    CLV_TRY(clv__archive_create(input->error, input->path, out));
    clv_status status = read_members(input, &dir, *out);
    if (status == CLV_OK) return CLV_OK;
    clv_archive_destroy(*out);
    *out = NULL;
    return status;
}

clv_status clv_npz_read(clv_runtime *runtime, const char *path, clv_archive **out) {
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), out));
    *out = NULL;
    clv__input input;
    CLV_TRY(clv__input_open(clv__io_error(runtime), path, &input));
    clv_status status = clv__npz_read(&input, out);
    clv__input_close(&input);
    return status;
}
