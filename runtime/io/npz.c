// SPDX-License-Identifier: Apache-2.0
// numpy's archive of arrays, .npz: a ZIP file with a .npy file for each array, as numpy.savez (stored) and savez_compressed (deflated)
// write it. Sizes and places are those of the central directory at the file's end. Source: APPNOTE.TXT of the ZIP format, sections 4.3.7,
// 4.3.12, 4.3.16; RFC 1951; numpy.lib.format.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/text.h"
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
    bool is_array;
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
    if (!n || strlen(m->name) != n || !clv__utf8_valid(m->name))
        BAD("'%s' is no .npz file: its member '%s' is no .npy file", input->path,
            clv__shown_bytes(m->name, n, &shown));
    m->is_array = n > 4 && !memcmp(m->name + n - 4, ".npy", 4);
    if (m->is_array) m->name[n - 4] = 0;
    *at += ENTRY_BYTES + behind;
    return CLV_OK;
}

/** Members that cannot be read are left out of the archive: whoever asks for one is told why. */
typedef struct left_out {
    int n;
    clv_status status; // of the first
    char *first;       // its sentence, for an archive of nothing else
} left_out;

static clv_status leave_out(const clv__input *input, const member *m, clv_status status, clv_archive *archive,
                            left_out *left) {
    enum { MOST = 64 }; // names are looked for one by one
    clv__text key = {0};
    const char *why = input->error ? clv__error_text(input->error) : "it cannot be read";
    if (left->n++ == MOST) return status;
    if (left->n == 1) left->status = status;
    if (left->n == 1) left->first = clv__strdup(why);
    clv__text_add(&key, "%s%s", CLV__UNREAD, m->name);
    status = !left->first || key.failed ? clv__error_set(input->error, CLV_E_HOST_MEMORY,
                                                         "'%s': no host memory for a name", input->path)
                                        : clv__archive_append_text(archive, clv__text_get(&key), why);
    clv__text_reset(&key);
    return status;
}

static clv_status take_member(const clv__input *input, const directory *dir, const member *m,
                              clv_archive *archive, left_out *left) {
    clv__shown_text shown;
    if (clv_archive_find(archive, m->name) || clv__archive_unread(archive, m->name))
        CLV_FAIL(input->error, CLV_E_FORMAT, "'%s' has array '%s' twice", input->path,
                 clv__shown(m->name, &shown));
    clv_status status = m->is_array ? read_member(input, dir, m, archive)
                                    : clv__error_set(input->error, CLV_E_FORMAT,
                                                     "'%s' is no .npz file: its member '%s' is no .npy file",
                                                     input->path, clv__shown(m->name, &shown));
    if (status == CLV_OK) return status;
    if (m->is_array) clv__error_prefix(input->error, "array '%s': ", clv__shown(m->name, &shown));
    if (m->is_array && status != CLV_E_UNSUPPORTED) return status; // damage of one may be damage of all
    return leave_out(input, m, status, archive, left);
}

static clv_status read_members(const clv__input *input, const directory *dir, clv_archive *archive,
                               left_out *left) {
    uint64_t at = dir->offset, packed = 0;
    for (uint32_t i = 0; i < dir->entries; i++) {
        member m = {0};
        clv_status status = read_entry(input, dir, &at, &m);
        packed += m.packed;
        if (status == CLV_OK && packed > dir->offset) // members that share bytes could become anything
            status =
                clv__error_set(input->error, CLV_E_FORMAT,
                               "'%s' is damaged: its members have more bytes than the file", input->path);
        if (status == CLV_OK) status = take_member(input, dir, &m, archive, left);
        free(m.name);
        CLV_TRY(status);
    }
    return CLV_OK;
}

clv_status clv__npz_read(clv__input *input, clv_archive **out) {
    directory dir;
    *out = NULL;
    left_out left = {0};
    CLV_TRY(clv__foreign_check(input, CLV__WANT_ARRAYS));
    CLV_TRY(find_directory(input, &dir));
    CLV_TRY(clv__archive_create(input->error, input->path, out));
    clv_status status = read_members(input, &dir, *out, &left);
    if (status == CLV_OK && left.n && !clv_archive_count(*out))
        status = clv__error_set(input->error, left.status, "%s", left.first);
    free(left.first);
    if (status == CLV_OK) return CLV_OK;
    clv_archive_destroy(*out);
    *out = NULL;
    return status;
}

clv_status clv_npz_read(clv_runtime *runtime, const char *path, clv_archive **out) {
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), out));
    *out = NULL;
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), path));
    clv__input input;
    CLV_TRY(clv__input_open(clv__io_error(runtime), path, &input));
    clv_status status = clv__npz_read(&input, out);
    clv__input_close(&input);
    return status;
}

// ---- writing ----------------------------------------------------------------------------------------------------------

enum { VERSION = 20, NAMES_ARE_UTF8 = 1 << 11, NO_DATE = 1 << 5 | 1 }; // the first of January 1980

static void put16(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static void put32(uint8_t *at, uint32_t value) {
    put16(at, value);
    put16(at + 2, value >> 16);
}

/** An archive that is being written: each member's bytes, then the directory. */
typedef struct writing {
    clv__output output;
    const clv_archive *archive;
    uint64_t at;       // bytes written
    uint32_t *crcs;    // of each member
    uint64_t *offsets; // where each begins
} writing;

static clv_status put(writing *w, const void *bytes, size_t n) {
    w->at += n;
    if (w->at >= UINT32_MAX) {
        clv__output_abort(&w->output);
        CLV_FAIL(w->output.error, CLV_E_UNSUPPORTED,
                 "cannot write '%s': an .npz file of 4 GiB or more; write large arrays as .npy files",
                 w->output.path);
    }
    return n ? clv__output_write(&w->output, bytes, n) : CLV_OK;
}

/** What stands before a member's bytes and in the directory: 26 bytes from the version on. */
static void put_description(uint8_t *at, uint32_t crc, size_t bytes, size_t name) {
    put16(at, VERSION);
    put16(at + 2, NAMES_ARE_UTF8);
    put16(at + 4, STORED);
    put16(at + 8, NO_DATE);
    put32(at + 10, crc);
    put32(at + 14, (uint32_t)bytes);
    put32(at + 18, (uint32_t)bytes);
    put16(at + 22, (uint32_t)name);
}

static clv_status put_member(writing *w, size_t i) {
    const clv_array *array = clv_archive_get(w->archive, i);
    char header[CLV__NPY_HEADER_BYTES];
    uint8_t head[LOCAL_BYTES] = "PK\3\4";
    size_t header_bytes, data_bytes;
    const size_t name = strlen(array->name);
    clv_status status =
        clv__npy_header(w->output.error, array, w->output.path, header, &header_bytes, &data_bytes);
    if (status == CLV_OK && (name > UINT16_MAX - 4 || data_bytes >= UINT32_MAX - sizeof header))
        status =
            clv__error_set(w->output.error, CLV_E_UNSUPPORTED,
                           "cannot write '%s': array '%.100s' is too large for an .npz file, or its name",
                           w->output.path, array->name);
    if (status != CLV_OK) {
        clv__output_abort(&w->output);
        return status;
    }
    const uLong crc = crc32(0, (const Bytef *)header, (uInt)header_bytes);
    w->crcs[i] = (uint32_t)(data_bytes ? crc32(crc, array->data, (uInt)data_bytes) : crc);
    w->offsets[i] = w->at;
    put_description(head + 4, w->crcs[i], header_bytes + data_bytes, name + 4);
    CLV_TRY(put(w, head, sizeof head));
    CLV_TRY(put(w, array->name, name));
    CLV_TRY(put(w, ".npy", 4));
    CLV_TRY(put(w, header, header_bytes));
    return put(w, array->data, data_bytes);
}

static clv_status put_entry(writing *w, size_t i) {
    const clv_array *array = clv_archive_get(w->archive, i);
    char header[CLV__NPY_HEADER_BYTES];
    uint8_t entry[ENTRY_BYTES] = "PK\1\2";
    size_t header_bytes, data_bytes;
    CLV_TRY(clv__npy_header(w->output.error, array, w->output.path, header, &header_bytes, &data_bytes));
    put16(entry + 4, VERSION);
    put_description(entry + 6, w->crcs[i], header_bytes + data_bytes, strlen(array->name) + 4);
    put32(entry + 42, (uint32_t)w->offsets[i]);
    CLV_TRY(put(w, entry, sizeof entry));
    CLV_TRY(put(w, array->name, strlen(array->name)));
    return put(w, ".npy", 4);
}

static clv_status put_all(writing *w) {
    const size_t n = clv_archive_count(w->archive);
    uint8_t end[END_BYTES] = "PK\5\6";
    for (size_t i = 0; i < n; i++) CLV_TRY(put_member(w, i));
    const uint64_t directory_at = w->at;
    for (size_t i = 0; i < n; i++) CLV_TRY(put_entry(w, i));
    put16(end + 8, (uint32_t)n);
    put16(end + 10, (uint32_t)n);
    put32(end + 12, (uint32_t)(w->at - directory_at));
    put32(end + 16, (uint32_t)directory_at);
    CLV_TRY(put(w, end, sizeof end));
    return clv__output_commit(&w->output, false);
}

clv_status clv_npz_write(const clv_archive *archive, const char *path) {
    CLV_TRY(CLV__GIVEN(NULL, archive));
    clv__error *error = archive->error;
    const size_t n = clv_archive_count(archive);
    writing w = {.archive = archive};
    CLV_TRY(CLV__GIVEN(error, path));
    if (n >= UINT16_MAX)
        CLV_FAIL(error, CLV_E_UNSUPPORTED, "cannot write '%s': %zu arrays; an .npz file has 65534 at most",
                 path, n);
    w.crcs = clv__alloc(n + 1, sizeof *w.crcs);
    w.offsets = clv__alloc(n + 1, sizeof *w.offsets);
    clv_status status = w.crcs && w.offsets ? clv__output_open(error, path, &w.output)
                                            : clv__error_set(error, CLV_E_HOST_MEMORY,
                                                             "cannot write '%s': no host memory", path);
    if (status == CLV_OK) status = put_all(&w);
    free(w.crcs);
    free(w.offsets);
    return status;
}
