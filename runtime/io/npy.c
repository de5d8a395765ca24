// SPDX-License-Identifier: Apache-2.0
// numpy's array file: magic, version, length of a header, the header (a Python dict literal), the elements.
// Only the dict that numpy writes is understood: three known keys, a string, True or False, a tuple of whole
// numbers. Source: NEP 1, "A simple file format for NumPy arrays"; numpy.lib.format.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/array.h"
#include "io/formats.h"
#include "io/shown.h"

static const char MAGIC[6] = "\x93NUMPY";
enum { MAX_HEADER = 1 << 20 }; // what numpy writes has under 200 bytes

static const struct {
    const char *descr;
    clv_dtype type;
    clv__element element;
} descrs[] = {
    {"<f8", CLV_DTYPE_F32, CLV__ELEMENT_F64},
#define READ_FLOAT(id) CLV_DTYPE_##id, CLV__ELEMENT_SAME
#define READ_WHOLE READ_FLOAT
#define READ_TRUTH READ_FLOAT
#define READ_F16(id) CLV_DTYPE_F32, CLV__ELEMENT_F16
#define READ_BF16(id) CLV_DTYPE_F32, CLV__ELEMENT_BF16
#define DTYPE(id, name, kind, type, least, most, kernels, safetensors, npy) {npy, READ_##kind(id)},
#include "tensor/dtypes.def"
};
enum { N_DESCRS = sizeof descrs / sizeof *descrs };

#define BAD(...) CLV_FAIL(input->error, CLV_E_FORMAT, __VA_ARGS__)

/** Where the header is being parsed, and what was found. */
typedef struct parser {
    clv__input *input;
    const char *at, *end;
    size_t start; // of the header in the file, so that sentences can say the byte
    const char *begin;
    bool has_descr, has_order, has_shape, fortran;
    size_t descr;
    clv_shape shape;
} parser;

static clv_status bad(const parser *p, const char *wanted) {
    CLV_FAIL(p->input->error, CLV_E_FORMAT,
             "'%s': the header of this .npy file is not as numpy writes it: %s wanted "
             "at byte %zu",
             p->input->path, wanted, p->start + (size_t)(p->at - p->begin));
}

static void skip_spaces(parser *p) {
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\t')) p->at++;
}

/** Take this character, after spaces, if it is next. */
static bool take(parser *p, char c) {
    skip_spaces(p);
    if (p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

static bool take_word(parser *p, const char *word) {
    size_t n = strlen(word);
    skip_spaces(p);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0) return false;
    p->at += n;
    return true;
}

/** A quoted string without escapes, borrowed. */
static bool take_string(parser *p, const char **text, size_t *bytes) {
    skip_spaces(p);
    if (p->at == p->end || (*p->at != '\'' && *p->at != '"')) return false;
    char quote = *p->at;
    const char *close = memchr(p->at + 1, quote, (size_t)(p->end - p->at - 1));
    if (!close || memchr(p->at, '\\', (size_t)(close - p->at))) return false;
    *text = p->at + 1;
    *bytes = (size_t)(close - *text);
    p->at = close + 1;
    return true;
}

static bool take_dim(parser *p, int64_t *out) {
    skip_spaces(p);
    const char *from = p->at;
    int64_t value = 0;
    for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *p->at - '0', &value)) {
            return false;
        }
    }
    bool digits = p->at > from;
    if (digits && p->at < p->end && *p->at == 'L') p->at++; // Python 2 wrote long integers so
    *out = value;
    return digits;
}

static clv_status parse_shape(parser *p) {
    if (!take(p, '(')) return bad(p, "a tuple");
    p->shape = (clv_shape){0};
    while (!take(p, ')')) {
        if (p->shape.rank == CLV_MAX_RANK) {
            CLV_FAIL(p->input->error, CLV_E_UNSUPPORTED, "'%s': the array has more than %d dimensions",
                     p->input->path, CLV_MAX_RANK);
        }
        if (!take_dim(p, &p->shape.dims[p->shape.rank]))
            return bad(p, "a dimension (a whole number of 63 bits)");
        p->shape.rank++;
        if (take(p, ',')) continue;
        if (p->shape.rank == 1 || !take(p, ')')) return bad(p, "','"); // (3) is no tuple, (3,) is
        break;
    }
    p->has_shape = true;
    return CLV_OK;
}

/** The types that can be read: ` f8 i8 ...`. */
static const char *readable(char text[64]) {
    size_t used = 0;
    for (size_t i = 0; i < N_DESCRS && used < 64; i++)
        if (descrs[i].descr) used += (size_t)snprintf(text + used, 64 - used, " %s", descrs[i].descr + 1);
    return text;
}

/** What in numpy makes an array of that type one that can be read. */
static const char *numpy_mends(const char *descr, size_t bytes) {
    const char kind = bytes > 1 ? descr[1] : 0;
    switch (kind) {
    case 'U':
    case 'S': return "text: of words numpy makes labels with numpy.unique(array, return_inverse=True)[1]";
    case 'O': return "Python objects: make numbers of them first, numpy.array(list, dtype='<f4')";
    case 'i':
    case 'u': return "save it with array.astype('<i8')";
    case 'c':
        return "complex numbers: save their parts with numpy.stack([array.real, array.imag], "
               "-1).astype('<f4')";
    case 'M':
    case 'm': return "times: save them as numbers with array.astype('<i8')";
    default: return "save it with array.astype('<f4') or the like";
    }
}

static clv_status parse_descr(parser *p) {
    const char *text;
    size_t bytes;
    clv__shown_text shown;
    char descr[64];
    if (take(p, '[')) {
        CLV_FAIL(p->input->error, CLV_E_UNSUPPORTED,
                 "'%s': the array has named fields; one plain type is wanted", p->input->path);
    }
    if (!take_string(p, &text, &bytes)) return bad(p, "a type");
    p->has_descr = true;
    for (p->descr = 0; p->descr < N_DESCRS; p->descr++) {
        const char *known = descrs[p->descr].descr;
        if (known && bytes == strlen(known) && memcmp(text, known, bytes) == 0) return CLV_OK;
    }
    CLV_FAIL(p->input->error, CLV_E_UNSUPPORTED, "'%s': the array has type '%s'; these can be read, little-endian:%s; %s",
             p->input->path, clv__shown_bytes(text, bytes, &shown), readable(descr),
             numpy_mends(text, bytes));
}

static clv_status parse_entry(parser *p) {
    const char *key;
    size_t bytes;
    clv__shown_text shown;
    if (!take_string(p, &key, &bytes)) return bad(p, "a key");
    if (!take(p, ':')) return bad(p, "':'");
    bool *seen = bytes == 5 && memcmp(key, "descr", 5) == 0             ? &p->has_descr
                 : bytes == 5 && memcmp(key, "shape", 5) == 0           ? &p->has_shape
                 : bytes == 13 && memcmp(key, "fortran_order", 13) == 0 ? &p->has_order
                                                                        : NULL;
    if (!seen || *seen) {
        CLV_FAIL(p->input->error, CLV_E_FORMAT, "'%s': the key '%s' in the header of this .npy file is %s",
                 p->input->path, clv__shown_bytes(key, bytes, &shown), seen ? "there twice" : "unknown");
    }
    if (seen == &p->has_descr) return parse_descr(p);
    if (seen == &p->has_shape) return parse_shape(p);
    p->fortran = take_word(p, "True");
    if (!p->fortran && !take_word(p, "False")) return bad(p, "True or False");
    p->has_order = true;
    return CLV_OK;
}

static clv_status parse_header(parser *p) {
    if (!take(p, '{')) return bad(p, "'{'");
    while (!take(p, '}')) {
        CLV_TRY(parse_entry(p));
        if (take(p, ',')) continue;
        if (!take(p, '}')) return bad(p, "',' or '}'");
        break;
    }
    skip_spaces(p);
    if (p->at != p->end) return bad(p, "the header's end");
    if (!p->has_descr || !p->has_order || !p->has_shape) {
        CLV_FAIL(p->input->error, CLV_E_FORMAT, "'%s': the header of this .npy file lacks '%s'",
                 p->input->path,
                 !p->has_descr   ? "descr"
                 : !p->has_order ? "fortran_order"
                                 : "shape");
    }
    if (p->fortran && p->shape.rank > 1) {
        CLV_FAIL(p->input->error, CLV_E_UNSUPPORTED,
                 "'%s': the array is in Fortran order; save it with "
                 "numpy.ascontiguousarray(array)",
                 p->input->path);
    }
    return CLV_OK;
}

/** Magic, version and length of the header: where it begins and how long it is. */
static clv_status read_prefix(clv__input *input, size_t *start, size_t *length) {
    uint8_t bytes[12];
    CLV_TRY(clv__foreign_check(input, CLV__WANT_ARRAY));
    if (input->bytes < 10) {
        BAD("'%s' is no .npy file: it has %" PRIu64 " bytes", input->path, input->bytes);
    }
    CLV_TRY(clv__input_read(input, 0, bytes, 10));
    if (memcmp(bytes, MAGIC, sizeof MAGIC) != 0) {
        BAD("'%s' is no .npy file: it does not begin with numpy's magic", input->path);
    }
    if (bytes[6] < 1 || bytes[6] > 3) {
        CLV_FAIL(input->error, CLV_E_UNSUPPORTED,
                 "'%s': version %d.%d of the .npy format; 1 to 3 can be read", input->path, bytes[6],
                 bytes[7]);
    }
    *start = bytes[6] == 1 ? 10 : 12;
    if (input->bytes < *start)
        BAD("'%s' is no .npy file: it has %" PRIu64 " bytes", input->path, input->bytes);
    CLV_TRY(clv__input_read(input, 0, bytes, *start));
    *length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (bytes[6] > 1) *length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (*length > MAX_HEADER) {
        BAD("'%s': the header would have %zu bytes, more than any array needs", input->path, *length);
    }
    if (*length > input->bytes - *start) {
        BAD("'%s' is cut short: its header would have %zu bytes, the whole file has %" PRIu64, input->path,
            *length, input->bytes);
    }
    return CLV_OK;
}

static clv_status read_elements(clv__input *input, const parser *p, uint64_t offset, clv_array *out) {
    char text[128];
    clv__element element = descrs[p->descr].element;
    clv_dtype type = descrs[p->descr].type;
    size_t size = clv__element_bytes(element, type), bytes, kept; // in the file, in memory
    clv_shape_text(&p->shape, text, sizeof text);
    if (!clv__shape_bytes(&p->shape, size, &bytes) ||
        !clv__shape_bytes(&p->shape, clv__array_dtype_bytes(type), &kept)) {
        BAD("'%s': the shape %s is too large to count", input->path, text);
    }
    uint64_t there = input->bytes - offset;
    if (bytes > there) {
        BAD("'%s' is cut short: %s of %s takes %zu bytes, %" PRIu64 " are there", input->path, text,
            descrs[p->descr].descr, bytes, there);
    }
    if (bytes < there) {
        BAD("'%s': %" PRIu64 " bytes follow the array %s of %s", input->path, there - bytes, text,
            descrs[p->descr].descr);
    }
    if (clv__array_init(input->error, type, &p->shape, out) != CLV_OK) {
        return clv__error_prefix(input->error, "'%s': ", input->path);
    }
    if (element == CLV__ELEMENT_SAME) return clv__input_read(input, offset, out->data, bytes);
    char piece[16 * 1024];
    for (size_t at = 0; at < bytes;) {
        size_t n = bytes - at < sizeof piece ? bytes - at : sizeof piece;
        CLV_TRY(clv__input_read(input, offset + at, piece, n));
        clv__element_convert(element, piece, n / size, (float *)out->data + at / size);
        at += n;
    }
    return CLV_OK;
}

clv_status clv__npy_read(clv__input *input, clv_array *out) {
    *out = (clv_array){0};
    size_t start = 0, length = 0;
    CLV_TRY(read_prefix(input, &start, &length));
    char *text = malloc(length ? length : 1);
    if (!text) CLV_FAIL(input->error, CLV_E_HOST_MEMORY, "'%s': no host memory for its header", input->path);
    parser p = {.input = input, .at = text, .begin = text, .end = text + length, .start = start};
    clv_status status = clv__input_read(input, start, text, length);
    if (status == CLV_OK) status = parse_header(&p);
    if (status == CLV_OK) status = read_elements(input, &p, start + length, out);
    free(text);
    if (status != CLV_OK) clv_array_reset(out);
    return status;
}

clv_status clv_npy_read(clv_runtime *runtime, const char *path, clv_array *out) {
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), out));
    *out = (clv_array){0};
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), path));
    clv__input input;
    CLV_TRY(clv__input_open(clv__io_error(runtime), path, &input));
    clv_status status = clv__npy_read(&input, out);
    clv__input_close(&input);
    return status;
}

clv_status clv__npy_header(clv__error *error, const clv_array *array, const char *path,
                           char header[CLV__NPY_HEADER_BYTES], size_t *header_bytes, size_t *data_bytes) {
    size_t descr = 0, bytes;
    while (descr < N_DESCRS &&
           (descrs[descr].type != array->type || descrs[descr].element != CLV__ELEMENT_SAME)) {
        descr++;
    }
    if (descr == N_DESCRS || !clv__shape_bytes(&array->shape, clv__array_dtype_bytes(array->type), &bytes)) {
        CLV_FAIL(error, CLV_E_VALUE, "cannot write '%s': the array has type %s and rank %d", path,
                 clv_dtype_name(array->type), array->shape.rank);
    }
    // Ten bytes, the dict, spaces, a newline: a multiple of 64, as numpy has it. Eight dimensions fit in 256
    // - 64.
    memset(header, 0, CLV__NPY_HEADER_BYTES);
    memcpy(header, MAGIC, sizeof MAGIC);
    header[6] = 1;
    int n = 10 + snprintf(header + 10, CLV__NPY_HEADER_BYTES - 10,
                          "{'descr': '%s', 'fortran_order': False, 'shape': (", descrs[descr].descr);
    for (int i = 0; i < array->shape.rank; i++) {
        n += snprintf(header + n, CLV__NPY_HEADER_BYTES - (size_t)n, "%s%" PRId64, i ? ", " : "",
                      array->shape.dims[i]);
    }
    n += snprintf(header + n, CLV__NPY_HEADER_BYTES - (size_t)n, "%s), }", array->shape.rank == 1 ? "," : "");
    size_t total = clv__size_align((size_t)n + 1, 64);
    memset(header + n, ' ', total - (size_t)n);
    header[total - 1] = '\n';
    header[8] = (char)((total - 10) & 0xff);
    header[9] = (char)((total - 10) >> 8);
    *header_bytes = total;
    *data_bytes = bytes;
    return CLV_OK;
}

clv_status clv_npy_write(clv_runtime *runtime, const clv_array *array, const char *path) {
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), array));
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), path));
    clv__error *error = clv__io_error(runtime);
    char header[CLV__NPY_HEADER_BYTES];
    size_t total, bytes;
    CLV_TRY(clv__npy_header(error, array, path, header, &total, &bytes));
    clv__output output;
    CLV_TRY(clv__output_open(error, path, &output));
    CLV_TRY(clv__output_write(&output, header, total));
    CLV_TRY(clv__output_write(&output, array->data, bytes));
    return clv__output_commit(&output, false);
}
