// SPDX-License-Identifier: Apache-2.0
// .npy: what numpy writes is read, and written again to the same bytes; whatever is wrong has its status and sentence.
#include "io/formats.h"
#include "io/support.h"

#include <math.h>

static clv_array read_golden(const char *name) {
    clv_array array;
    expect_ok(clv_npy_read(support_runtime, golden(name), &array));
    return array;
}

TEST(reads_what_numpy_writes) {
    clv_array a = read_golden("f4.npy"), b = read_golden("version2.npy");
    assert_true(clv_shape_equal(&a.shape, SHAPE(2, 3)) && a.type == CLV_DTYPE_F32);
    for (int i = 0; i < 6; i++) assert_true(((float *)a.data)[i] == (float)i / 4);
    assert_memory_equal(a.data, b.data, 24);
    clv_array_reset(&a);
    clv_array_reset(&b);
    a = read_golden("i4.npy");
    assert_int_equal(((int32_t *)a.data)[0], INT32_MIN);
    clv_array_reset(&a);
    a = read_golden("i8.npy");
    assert_true(clv_shape_equal(&a.shape, SHAPE(1, 2, 1)));
    assert_true(((int64_t *)a.data)[0] == INT64_MIN && ((int64_t *)a.data)[1] == INT64_MAX);
    clv_array_reset(&a);
    a = read_golden("u1.npy");
    assert_int_equal(((uint8_t *)a.data)[1], 255);
    clv_array_reset(&a);
    a = read_golden("b1.npy");
    assert_true(a.type == CLV_DTYPE_BOOL && !memcmp(a.data, "\1\0\1", 3));
    clv_array_reset(&a);
    a = read_golden("i1.npy");
    assert_true(((int8_t *)a.data)[0] == INT8_MIN && ((int8_t *)a.data)[1] == INT8_MAX);
    clv_array_reset(&a);
    a = read_golden("f8.npy");
    const float *x = a.data;
    assert_true(a.type == CLV_DTYPE_F32 && x[0] == (float)(1.0 / 3) && isinf(x[1]) && signbit(x[2]));
    clv_array_reset(&a);
    a = read_golden("f2.npy");
    x = a.data;
    assert_true(a.type == CLV_DTYPE_F32 && x[0] == 0.333251953125f && x[1] == 65504 && signbit(x[2]));
    clv_array_reset(&a);
    a = read_golden("scalar.npy");
    assert_true(a.shape.rank == 0 && *(float *)a.data == 2.5f);
    clv_array_reset(&a);
    a = read_golden("empty.npy");
    assert_true(clv_shape_equal(&a.shape, SHAPE(3, 0)));
    clv_array_reset(&a);
}

TEST(writes_numpy_s_bytes) {
    static const char *const names[] = {"f4.npy", "i4.npy",     "i8.npy",    "u1.npy",   "i1.npy",
                                        "b1.npy", "scalar.npy", "empty.npy", "rank8.npy"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        clv_array array = read_golden(names[i]);
        expect_ok(clv_npy_write(support_runtime, &array, "y.npy"));
        size_t a, b;
        uint8_t *ours = read_file("y.npy", &a), *theirs = read_file(golden(names[i]), &b);
        assert_int_equal(a, b);
        assert_memory_equal(ours, theirs, a);
        free(ours);
        free(theirs);
        clv_array_reset(&array);
    }
}

TEST(the_longest_header_fits) {
    enum { D = 1 << 27 }; // all but one are large, and that one is 0
    clv_array array = {.type = CLV_DTYPE_F32, .shape = CLV_SHAPE(0, D, D, 1, 1, 1, 1, 1)}, back;
    assert_int_equal(clv_array_bytes(&array), 0);
    expect_ok(clv_npy_write(support_runtime, &array, "y.npy"));
    expect_ok(clv_npy_read(support_runtime, "y.npy", &back));
    assert_true(clv_shape_equal(&array.shape, &back.shape));
    clv_array_reset(&back);
}

TEST(refuses_what_it_cannot_hold) {
    clv_array array;
    expect_failure(clv_npy_read(support_runtime, golden("fortran.npy"), &array), CLV_E_UNSUPPORTED,
                   "fortran.npy", "Fortran order", "ascontiguousarray");
    expect_failure(clv_npy_read(support_runtime, golden("big_endian.npy"), &array), CLV_E_UNSUPPORTED,
                   "'>f4'", "astype");
    static const struct {
        const char *descr, *advice;
    } types[] = {
        {"<U5", "numpy.unique(array, return_inverse=True)[1]"},
        {"|S3", "numpy.unique(array, return_inverse=True)[1]"},
        {"|O", "Python objects"},
        {"<u4", "astype('<i8')"},
        {"<i2", "astype('<i8')"},
        {"<M8[s]", "times: save them as numbers"},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char file[64 + 10] = "\x93NUMPY\1\0\x40", wanted[64];
        memset(file + 10, ' ', 64);
        const int n = snprintf(wanted, sizeof wanted,
                               "{'descr': '%s', 'fortran_order': False, 'shape': (1,)}", types[i].descr);
        memcpy(file + 10, wanted, (size_t)n);
        write_file("t.npy", file, sizeof file);
        snprintf(wanted, sizeof wanted, "the array has type '%s'", types[i].descr);
        expect_failure(clv_npy_read(support_runtime, "t.npy", &array), CLV_E_UNSUPPORTED, wanted,
                       types[i].advice);
    }
    remove("t.npy");
    expect_failure(clv_npy_read(support_runtime, golden("fields.npy"), &array), CLV_E_UNSUPPORTED,
                   "named fields");
    expect_failure(clv_npy_read(support_runtime, golden("rank9.npy"), &array), CLV_E_UNSUPPORTED,
                   "more than 8 dimensions");
    expect_failure(clv_npy_read(support_runtime, "absent.npy", &array), CLV_E_IO, "'absent.npy'",
                   "No such file");
    clv_array none = {0};
    expect_failure(clv_npy_write(support_runtime, &none, "y.npy"), CLV_E_VALUE, "'y.npy'", "none");
    array = read_golden("f4.npy");
    expect_failure(clv_npy_write(support_runtime, &array, "/dev/full"), CLV_E_IO, "'/dev/full'",
                   "disk is full");
    expect_ok(clv_npy_write(support_runtime, &array, "/dev/null"));
    clv_array_reset(&array);
}

static clv_status read_header(int version, size_t length, const char *header, size_t data_bytes) {
    uint8_t bytes[512] = "\x93NUMPY";
    size_t start = version == 1 ? 10 : 12, n = strlen(header);
    bytes[6] = (uint8_t)version;
    for (size_t i = 8; i < start; i++) bytes[i] = (uint8_t)(length >> 8 * (i - 8));
    memcpy(bytes + start, header, n);
    write_file("x.npy", bytes, start + n + data_bytes);
    clv_array array;
    clv_status status = clv_npy_read(support_runtime, "x.npy", &array);
    assert_true((status == CLV_OK) == (array.data != NULL));
    clv_array_reset(&array);
    return status;
}

TEST(refuses_headers_numpy_would_not_write) {
    static const struct {
        const char *header;
        size_t data_bytes;
        clv_status status;
        const char *part;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", 8, CLV_OK, ""},
        {"{\"shape\":(2,3L),\"fortran_order\":False,\"descr\":\"<f4\"}", 24, CLV_OK, ""},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }", 8, CLV_OK,
         ""}, // one dimension: no order
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 7, CLV_E_FORMAT,
         "cut short: [2] of <f4 takes 8"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 9, CLV_E_FORMAT, "1 bytes follow"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2), }", 8, CLV_E_FORMAT,
         "',' wanted at byte 62"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", 8, CLV_E_FORMAT, "a dimension"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,), }", 8, CLV_E_FORMAT,
         "a dimension"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", 8, CLV_E_FORMAT,
         "a dimension"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,), }", 8, CLV_E_FORMAT,
         "too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296,4294967296), }", 8, CLV_E_FORMAT,
         "too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,), }", 8, CLV_E_FORMAT,
         "cut short"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': [2], }", 8, CLV_E_FORMAT, "a tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,", 8, CLV_E_FORMAT, "a dimension"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }", 8, CLV_E_FORMAT, "True or False"},
        {"{'descr': <f4, 'fortran_order': False, 'shape': (2,), }", 8, CLV_E_FORMAT, "a type"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", 8, CLV_E_UNSUPPORTED, "'<c8'"},
        {"{'descr': '\x1b[2J', 'fortran_order': False, 'shape': (1,), }", 8, CLV_E_UNSUPPORTED, "'?[2J'"},
        {"{'descr': '<f\\'4', 'fortran_order': False, 'shape': (1,), }", 8, CLV_E_FORMAT, "a type"},
        {"{'descr': '<f4', 'fortran_order': False, }", 8, CLV_E_FORMAT, "lacks 'shape'"},
        {"{'fortran_order': False, 'shape': (2,), }", 8, CLV_E_FORMAT, "lacks 'descr'"},
        {"{'descr': '<f4', 'shape': (2,), }", 8, CLV_E_FORMAT, "lacks 'fortran_order'"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 8, CLV_E_FORMAT,
         "'descr'"},
        {"{'x': 1, 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 8, CLV_E_FORMAT, "'x'"},
        {"{'descr' '<f4', 'fortran_order': False, 'shape': (2,), }", 8, CLV_E_FORMAT, "':'"},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (2,), }", 8, CLV_E_FORMAT, "',' or '}'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } x", 8, CLV_E_FORMAT, "the header's end"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), ", 8, CLV_E_FORMAT, "a key"},
        {"['descr']", 8, CLV_E_FORMAT, "'{' wanted at byte 10"},
        {"", 8, CLV_E_FORMAT, "'{'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clv_status status = read_header(1, strlen(cases[i].header), cases[i].header, cases[i].data_bytes);
        if (status != cases[i].status) print_error("case %zu: %s\n", i, cases[i].header);
        if (cases[i].status == CLV_OK) {
            expect_ok(status);
        } else {
            expect_failure(status, cases[i].status, "'x.npy'", cases[i].part);
        }
    }
    static const char good[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
    expect_ok(read_header(2, strlen(good), good, 8));
    expect_ok(read_header(3, strlen(good), good, 8));
    expect_failure(read_header(4, strlen(good), good, 8), CLV_E_UNSUPPORTED, "version 4.0");
    expect_failure(read_header(0, strlen(good), good, 8), CLV_E_UNSUPPORTED, "version 0.0");
    expect_failure(read_header(1, 60000, good, 8), CLV_E_FORMAT, "cut short", "60000");
    expect_failure(read_header(2, 0xffffffff, good, 8), CLV_E_FORMAT, "4294967295 bytes");
    write_file("x.npy", "\x93NUMPX\1\0\0\0\0\0\0", 14);
    clv_array array;
    expect_failure(clv_npy_read(support_runtime, "x.npy", &array), CLV_E_FORMAT, "magic");
}

TEST(every_cut_is_refused) {
    size_t n;
    static const char *const names[] = {"f4.npy", "version2.npy", "f8.npy"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        uint8_t *bytes = read_file(golden(names[k]), &n);
        for (size_t cut = 0; cut < n; cut++) {
            clv_array array;
            clv__input input;
            clv__input_memory(clv__io_error(support_runtime), "x.npy", bytes, cut, &input);
            expect_failure(clv__npy_read(&input, &array), CLV_E_FORMAT, "'x.npy'");
            assert_null(array.data);
        }
        free(bytes);
    }
}

TEST_MAIN(support_begin, support_end)
