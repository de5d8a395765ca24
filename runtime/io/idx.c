// SPDX-License-Identifier: Apache-2.0
// IDX, the format of MNIST and its siblings: two zero bytes, an element type, a rank, big-endian dimensions,
// the elements (big-endian). It usually comes gzipped. Source: LeCun, Cortes, Burges, "The MNIST database",
// "the IDX file format"; RFC 1952 (gzip), RFC 1951 (deflate).
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "io/array.h"
#include "io/formats.h"

#define BAD(...) CLV_FAIL(input->error, CLV_E_FORMAT, __VA_ARGS__)

/** A plain or gzipped input, read from front to back. */
typedef struct stream {
    clv__input *input;
    bool gzipped, begun; // begun: inflateInit2 was called
    bool ended;          // gzip: a member ended, its CRC was right
    uint64_t at;         // next byte of the file to take
    z_stream z;
    uint8_t piece[16 * 1024];
} stream;

/** Deflate stores at least one byte in 1/1032 (RFC 1951: 258 bytes for a length and a distance code of one
 * bit each). */
enum { DEFLATE_RATIO = 1032 };

static clv_status stream_open(clv__input *input, stream *s) {
    memset(s, 0, sizeof *s);
    s->input = input;
    uint8_t magic[2] = {0};
    CLV_TRY(clv__input_read(input, 0, magic, input->bytes < 2 ? (size_t)input->bytes : 2));
    s->gzipped = magic[0] == 0x1f && magic[1] == 0x8b;
    if (!s->gzipped) return CLV_OK;
    if (inflateInit2(&s->z, 15 + 16) != Z_OK) { // 32 KiB window, gzip only
        CLV_FAIL(input->error, CLV_E_HOST_MEMORY, "'%s': no host memory to unpack it", input->path);
    }
    s->begun = true;
    return CLV_OK;
}

static void stream_close(stream *s) {
    if (s->begun) inflateEnd(&s->z);
    s->begun = false;
}

/** Refill zlib's input, and begin the next member where one has ended. *done: the file is at its end. */
static clv_status refill(stream *s, bool *done) {
    clv__input *input = s->input;
    *done = false;
    if (s->z.avail_in == 0) {
        uint64_t left = input->bytes - s->at;
        size_t n = left < sizeof s->piece ? (size_t)left : sizeof s->piece;
        CLV_TRY(clv__input_read(input, s->at, s->piece, n));
        s->at += n;
        s->z.next_in = s->piece;
        s->z.avail_in = (uInt)n;
    }
    if (s->z.avail_in == 0) {
        if (!s->ended) BAD("'%s' is cut short: its gzip data does not end", input->path);
        *done = true;
    } else if (s->ended) {
        if (s->z.next_in[0] != 0x1f || inflateReset(&s->z) != Z_OK) {
            BAD("'%s': bytes that are not gzip follow the gzip data, at byte %" PRIu64, input->path,
                s->at - s->z.avail_in);
        }
        s->ended = false;
    }
    return CLV_OK;
}

static clv_status inflate_some(stream *s, void *to, size_t bytes, size_t *got) {
    clv__input *input = s->input;
    *got = 0;
    while (*got < bytes) {
        bool done;
        CLV_TRY(refill(s, &done));
        if (done) break;
        size_t room = bytes - *got < (1u << 30) ? bytes - *got : 1u << 30; // zlib counts in 32 bits
        s->z.next_out = (Bytef *)to + *got;
        s->z.avail_out = (uInt)room;
        int code = inflate(&s->z, Z_NO_FLUSH);
        *got += room - s->z.avail_out;
        if (code == Z_STREAM_END) {
            s->ended = true;
        } else if (code == Z_MEM_ERROR) {
            CLV_FAIL(input->error, CLV_E_HOST_MEMORY, "'%s': no host memory to unpack it", input->path);
        } else if (code != Z_OK && code != Z_BUF_ERROR) {
            BAD("'%s' is damaged near byte %" PRIu64 ": %s", input->path, s->at - s->z.avail_in,
                s->z.msg ? s->z.msg : "not gzip data");
        }
    }
    return CLV_OK;
}

/** Read up to `bytes`; fewer only at the end. */
static clv_status stream_read(stream *s, void *to, size_t bytes, size_t *got) {
    if (s->gzipped) return inflate_some(s, to, bytes, got);
    uint64_t left = s->input->bytes - s->at;
    *got = left < bytes ? (size_t)left : bytes;
    CLV_TRY(clv__input_read(s->input, s->at, to, *got));
    s->at += *got;
    return CLV_OK;
}

typedef struct idx_header {
    clv_dtype type;
    clv_shape shape;
    size_t bytes;
} idx_header;

static clv_status read_header(stream *s, idx_header *h) {
    clv__input *input = s->input;
    uint8_t magic[4], dim[4];
    size_t got;
    CLV_TRY(stream_read(s, magic, sizeof magic, &got));
    if (got < sizeof magic || magic[0] != 0 || magic[1] != 0) {
        BAD("'%s' is no IDX file: it does not begin with two zero bytes, a type and a rank", input->path);
    }
    h->type = magic[2] == 0x08   ? CLV_DTYPE_U8
              : magic[2] == 0x09 ? CLV_DTYPE_I8
              : magic[2] == 0x0c ? CLV_DTYPE_I32
              : magic[2] == 0x0d ? CLV_DTYPE_F32
                                 : CLV_DTYPE_NONE;
    if (h->type == CLV_DTYPE_NONE) {
        bool legal = magic[2] == 0x0b || magic[2] == 0x0e;
        CLV_FAIL(input->error, legal ? CLV_E_UNSUPPORTED : CLV_E_FORMAT,
                 "'%s': element type 0x%02x of an IDX file; 0x08 (u8), 0x09 (i8), 0x0c (i32) and 0x0d (f32) "
                 "can be read",
                 input->path, magic[2]);
    }
    if (magic[3] < 1 || magic[3] > CLV_MAX_RANK) {
        BAD("'%s': an IDX file of rank %d; 1 to %d can be read", input->path, magic[3], CLV_MAX_RANK);
    }
    h->shape = (clv_shape){.rank = magic[3]};
    for (int i = 0; i < h->shape.rank; i++) {
        CLV_TRY(stream_read(s, dim, sizeof dim, &got));
        if (got < sizeof dim) BAD("'%s' is cut short within its dimensions", input->path);
        h->shape.dims[i] =
            (int64_t)((uint32_t)dim[0] << 24 | (uint32_t)dim[1] << 16 | (uint32_t)dim[2] << 8 | dim[3]);
    }
    char text[128];
    clv_shape_text(&h->shape, text, sizeof text);
    if (!clv__shape_bytes(&h->shape, clv__array_dtype_bytes(h->type), &h->bytes)) {
        BAD("'%s': the shape %s is too large to count", input->path, text);
    }
    uint64_t most; // bytes that the file can hold
    if (!s->gzipped) {
        most = input->bytes - s->at;
    } else if (__builtin_mul_overflow(input->bytes, DEFLATE_RATIO, &most)) {
        most = UINT64_MAX;
    }
    if (h->bytes > most) {
        BAD("'%s' is cut short: %s takes %zu bytes, the file can hold at most %" PRIu64, input->path, text,
            h->bytes, most);
    }
    return CLV_OK;
}

static clv_status read_stream(stream *s, clv_array *out) {
    clv__input *input = s->input;
    char text[128];
    idx_header h = {0};
    CLV_TRY(read_header(s, &h));
    if (clv__array_init(input->error, h.type, &h.shape, out) != CLV_OK) {
        return clv__error_prefix(input->error, "'%s': ", input->path);
    }
    size_t got;
    CLV_TRY(stream_read(s, out->data, h.bytes, &got));
    if (got < h.bytes) {
        BAD("'%s' is cut short: %s takes %zu bytes, %zu are there", input->path,
            clv_shape_text(&h.shape, text, sizeof text), h.bytes, got);
    }
    uint8_t more;
    CLV_TRY(stream_read(s, &more, 1, &got)); // also sees the CRC
    if (got > 0) {
        BAD("'%s': bytes follow the array %s", input->path, clv_shape_text(&h.shape, text, sizeof text));
    }
    if (clv__array_dtype_bytes(h.type) == 4) {
        uint32_t *words = out->data;
        for (size_t i = 0; i < h.bytes / 4; i++) words[i] = __builtin_bswap32(words[i]);
    }
    return CLV_OK;
}

clv_status clv__idx_read(clv__input *input, clv_array *out) {
    *out = (clv_array){0};
    stream s;
    CLV_TRY(stream_open(input, &s));
    clv_status status = read_stream(&s, out);
    stream_close(&s);
    if (status != CLV_OK) clv_array_reset(out);
    return status;
}

clv_status clv__idx_read_file(clv_runtime *runtime, const char *path, clv_array *out) {
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), out));
    *out = (clv_array){0};
    clv__input input;
    CLV_TRY(clv__input_open(clv__io_error(runtime), path, &input));
    clv_status status = clv__idx_read(&input, out);
    clv__input_close(&input);
    return status;
}
