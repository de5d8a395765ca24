// SPDX-License-Identifier: Apache-2.0
// safetensors: what the format's own package writes is read, and written again to the same bytes; whatever is wrong in a
// file has its status and its sentence.
#include "io/formats.h"
#include "io/support.h"

#include <math.h>

static void write_raw(const char *path, uint64_t length, const char *header, size_t data_bytes) {
    size_t n = strlen(header);
    uint8_t *bytes = calloc(1, 8 + n + data_bytes);
    assert_non_null(bytes);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, n);
    write_file(path, bytes, 8 + n + data_bytes);
    free(bytes);
}

static clv_status read_header(const char *header, size_t data_bytes) {
    clv_archive *archive = NULL;
    write_raw("x.safetensors", strlen(header), header, data_bytes);
    clv_status status = clv_safetensors_read(support_runtime, "x.safetensors", &archive);
    assert_true((status == CLV_OK) == (archive != NULL));
    clv_archive_destroy(archive);
    return status;
}

/** Texts in the metadata are decoded as JSON's are; what JSON has not is refused. */
TEST(decodes_texts) {
    static const struct {
        const char *written, *read; // NULL: refused
    } cases[] = {{"plain", "plain"},
                 {"", ""},
                 {"a\\\"b\\\\c\\/d", "a\"b\\c/d"},
                 {"\\b\\f\\n\\r\\t", "\b\f\n\r\t"},
                 {"\xc3\xbc\\\"\xe2\x82\xac", "\xc3\xbc\"\xe2\x82\xac"},
                 {"\\u0041\\u00fc\\\"", "A\xc3\xbc\""},
                 {"\\q", NULL},
                 {"\\", NULL},
                 {"\xff\\\"", NULL},
                 {"\\\"\x01", NULL},
                 {"\\ud800", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char header[128];
        clv_archive *archive = NULL;
        snprintf(header, sizeof header, "{\"__metadata__\":{\"k\":\"%s\"}}", cases[i].written);
        write_raw("x.safetensors", strlen(header), header, 0);
        clv_status status = clv_safetensors_read(support_runtime, "x.safetensors", &archive);
        if (!cases[i].read) {
            expect_failure(status, CLV_E_FORMAT, "'x.safetensors'");
            continue;
        }
        expect_ok(status);
        assert_string_equal(clv_archive_text(archive, "k"), cases[i].read);
        clv_archive_destroy(archive);
    }
}

static clv_archive *read_golden(const char *name) {
    clv_archive *archive = NULL;
    expect_ok(clv_safetensors_read(support_runtime, golden(name), &archive));
    return archive;
}

TEST(reads_the_package_s_file) {
    clv_archive *archive = read_golden("weights.safetensors");
    assert_int_equal(clv_archive_count(archive), 7);
    assert_string_equal(clv_archive_text(archive, "format"), "pt");
    const clv_array *weight = NULL, *count = NULL, *index = NULL;
    expect_ok(clv__archive_require(archive, "features.0.weight", CLV_DTYPE_F32, SHAPE(2, 1, 2, 3), &weight));
    for (int i = 0; i < 12; i++) assert_true(((float *)weight->data)[i] == (float)i / 8 - 0.5f);
    clv_shape scalar = {0};
    expect_ok(clv__archive_require(archive, "bn.num_batches_tracked", CLV_DTYPE_I64, &scalar, &count));
    assert_int_equal(*(int64_t *)count->data, 7);
    expect_ok(clv__archive_require(archive, "index", CLV_DTYPE_I32, SHAPE(1, 3), &index));
    assert_int_equal(((int32_t *)index->data)[2], INT32_MIN);
    assert_int_equal(clv_array_bytes(clv_archive_find(archive, "empty")), 0);
    const float *signs = clv_archive_find(archive, "größe")->data;
    assert_true(isinf(signs[0]) && signs[1] < 0 && signbit(signs[2]));
    assert_int_equal(((uint8_t *)clv_archive_find(archive, "mask")->data)[2], 255);
    assert_null(clv_archive_find(archive, "feature"));
    clv_archive_destroy(archive);
}

TEST(writes_the_package_s_bytes) {
    static const char *const names[] = {"weights.safetensors", "integers.safetensors"};
    for (int k = 0; k < 2; k++) {
        clv_archive *archive = read_golden(names[k]), *reversed = NULL;
        reversed = clv__test_archive(support_runtime);
        for (size_t i = clv_archive_count(archive); i-- > 0;) { // the order of adding must not matter
            const clv_array *array = clv_archive_get(archive, i);
            expect_ok(clv_archive_add(reversed, array->name, array->type, &array->shape, array->data, NULL));
        }
        expect_ok(clv_archive_set_text(reversed, "format", "pt"));
        expect_ok(clv_safetensors_write(reversed, "y.safetensors"));
        size_t a, b;
        uint8_t *ours = read_file("y.safetensors", &a), *theirs = read_file(golden(names[k]), &b);
        assert_int_equal(a, b);
        assert_memory_equal(ours, theirs, a);
        free(ours);
        free(theirs);
        clv_archive_destroy(reversed);
        clv_archive_destroy(archive);
    }
}

TEST(widens_half_and_bfloat16) {
    clv_archive *half = read_golden("half.safetensors"), *wide = read_golden("half_widened.safetensors");
    const char *names[] = {"half", "brain"};
    for (int i = 0; i < 2; i++) {
        const clv_array *a = clv_archive_find(half, names[i]), *b = clv_archive_find(wide, names[i]);
        assert_int_equal(a->type, CLV_DTYPE_F32);
        assert_true(clv_shape_equal(&a->shape, &b->shape));
        assert_memory_equal(a->data, b->data, clv_array_bytes(b));
    }
    clv_archive_destroy(half);
    clv_archive_destroy(wide);
}

TEST(an_empty_archive_is_a_file) {
    clv_archive *again = NULL;
    clv_archive *archive = clv__test_archive(support_runtime);
    expect_ok(clv_safetensors_write(archive, "none.safetensors"));
    expect_ok(clv_safetensors_read(support_runtime, "none.safetensors", &again));
    assert_int_equal(clv_archive_count(again), 0);
    clv_archive_destroy(archive);
    clv_archive_destroy(again);
}

/** A file begins with its header's length, which may look like another format's mark: 640 like a pickle's. */
TEST(headers_of_any_length_are_read) {
    char header[1600] = "{}";
    for (size_t n = 2; n + 1 < sizeof header; header[n++] = ' ')
        if (read_header(header, 0) != CLV_OK)
            fail_msg("length %zu: %s", n, clv_runtime_error(support_runtime));
}

TEST(refuses_what_is_no_file_of_its_kind) {
    clv_archive *archive = (clv_archive *)1;
    expect_failure(clv_safetensors_read(support_runtime, "absent", &archive), CLV_E_IO, "'absent'",
                   "No such file");
    assert_null(archive);
    expect_failure(clv_safetensors_read(support_runtime, ".", &archive), CLV_E_IO, "'.'", "a folder");
    expect_failure(clv_safetensors_read(support_runtime, "/dev/null", &archive), CLV_E_IO,
                   "a device or pipe");
    expect_failure(clv_safetensors_read(support_runtime, "", &archive), CLV_E_VALUE, "name");
    write_file("x.safetensors", "", 0);
    expect_failure(clv_safetensors_read(support_runtime, "x.safetensors", &archive), CLV_E_FORMAT,
                   "has 0 bytes");
    write_file("x.safetensors", "\1\0\0\0\0\0\0\0{", 9);
    expect_failure(clv_safetensors_read(support_runtime, "x.safetensors", &archive), CLV_E_FORMAT, "1 bytes");
    static const uint64_t lengths[] = {100000001, UINT64_MAX, 1ull << 63, 3, UINT64_MAX - 7};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        write_raw("x.safetensors", lengths[i], "{}", 0);
        expect_failure(clv_safetensors_read(support_runtime, "x.safetensors", &archive), CLV_E_FORMAT,
                       "header would have");
    }
    expect_failure(read_header(" {}", 0), CLV_E_FORMAT, "does not begin with '{'");
    expect_failure(read_header("[]", 0), CLV_E_FORMAT, "does not begin with '{'");
    expect_failure(read_header("{} x", 0), CLV_E_FORMAT, "not JSON", "byte 1");
    expect_failure(read_header("{\"a\":}", 0), CLV_E_FORMAT, "not JSON");
    expect_failure(read_header("{\"a\xff\":1}", 0), CLV_E_FORMAT, "not JSON");
    expect_ok(read_header("{}   ", 0));
}

#define F32(name, shape, begin, end)                                                                         \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

TEST(refuses_tensors_that_do_not_add_up) {
    static const struct {
        const char *header;
        size_t data_bytes;
        clv_status status;
        const char *part, *part2;
    } cases[] = {
        {"{" F32("a", "[2]", "0", "8") "}", 8, CLV_OK, "", ""},
        {"{" F32("a", "[2]", "0", "8") "," F32("b", "[1]", "8", "12") "}", 12, CLV_OK, "", ""},
        {"{" F32("b", "[0]", "8", "8") "," F32("a", "[2]", "0", "8") "}", 8, CLV_OK, "", ""},
        // Duplicate keys, of tensors and within one.
        {"{" F32("a", "[2]", "0", "8") "," F32("a", "[2]", "0", "8") "}", 8, CLV_E_FORMAT, "not JSON",
         "duplicate"},
        {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
         CLV_E_FORMAT, "duplicate", "dtype"},
        // Holes, overlaps, trailing and missing bytes.
        {"{" F32("a", "[2]", "4", "12") "}", 12, CLV_E_FORMAT, "bytes 0 to 4", "'a'"},
        {"{" F32("a", "[1]", "0", "4") "," F32("b", "[1]", "8", "12") "}", 12, CLV_E_FORMAT, "bytes 4 to 8",
         "'b'"},
        {"{" F32("a", "[2]", "0", "8") "," F32("b", "[2]", "4", "12") "}", 12, CLV_E_FORMAT, "overlap",
         "'a' and 'b'"},
        {"{" F32("a", "[2]", "0", "8") "," F32("b", "[2]", "0", "8") "}", 8, CLV_E_FORMAT, "overlap",
         "byte 0"},
        {"{" F32("a", "[2]", "0", "8") "," F32("b", "[0]", "4", "4") "}", 8, CLV_E_FORMAT, "overlap",
         "byte 4"},
        {"{" F32("a", "[2]", "0", "8") "}", 9, CLV_E_FORMAT, "last 1 bytes", "no tensor"},
        {"{}", 1, CLV_E_FORMAT, "last 1 bytes", ""},
        {"{" F32("a", "[2]", "0", "8") "}", 7, CLV_E_FORMAT, "'a' ends at byte 8", "has 7"},
        // Sizes.
        {"{" F32("a", "[3]", "0", "8") "}", 8, CLV_E_FORMAT, "[3] of F32 takes 12", "hold 8"},
        {"{" F32("a", "[4294967296,4294967296]", "0", "8") "}", 8, CLV_E_FORMAT, "'a'", "too large"},
        {"{" F32("a", "[9223372036854775807]", "0", "8") "}", 8, CLV_E_FORMAT, "'a'", "too large"},
        {"{" F32("a", "[0,9223372036854775807,4]", "0", "0") "}", 0, CLV_E_FORMAT, "'a'", "too large"},
        {"{" F32("a", "[9223372036854775808]", "0", "8") "}", 8, CLV_E_FORMAT, "not JSON", ""},
        {"{" F32("a", "[-1]", "0", "8") "}", 8, CLV_E_FORMAT, "dimension 0", ">= 0"},
        {"{" F32("a", "[1,2.0]", "0", "8") "}", 8, CLV_E_FORMAT, "dimension 1", "whole"},
        {"{" F32("a", "[1,1,1,1,1,1,1,1,2]", "0", "8") "}", 8, CLV_E_UNSUPPORTED, "rank 9", "at most 8"},
        {"{" F32("a", "2", "0", "8") "}", 8, CLV_E_FORMAT, "'a' has no shape", ""},
        // Offsets.
        {"{" F32("a", "[2]", "8", "0") "}", 8, CLV_E_FORMAT, "data_offsets", "rising"},
        {"{" F32("a", "[2]", "-8", "0") "}", 8, CLV_E_FORMAT, "data_offsets", "rising"},
        {"{" F32("a", "[2]", "0", "8.0") "}", 8, CLV_E_FORMAT, "data_offsets", ""},
        {"{" F32("a", "[2]", "0", "8,9") "}", 8, CLV_E_FORMAT, "data_offsets", ""},
        {"{" F32("a", "[2]", "0", "9223372036854775807") "}", 8, CLV_E_FORMAT,
         "ends at byte 9223372036854775807", ""},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, CLV_E_FORMAT, "data_offsets", ""},
        // Kinds.
        {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8, CLV_E_UNSUPPORTED,
         "'a' has dtype F64", "Convert"},
        {"{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[8],\"data_offsets\":[0,8]}}", 8, CLV_E_UNSUPPORTED,
         "F8_E4M3", ""},
        {"{\"a\":{\"dtype\":\"\\u001b[2J\",\"shape\":[8],\"data_offsets\":[0,8]}}", 8, CLV_E_UNSUPPORTED,
         "dtype ?[2J", ""},
        {"{\"a\":{\"dtype\":1,\"shape\":[8],\"data_offsets\":[0,8]}}", 8, CLV_E_FORMAT, "no dtype", ""},
        {"{\"a\":{\"shape\":[8],\"data_offsets\":[0,8]}}", 8, CLV_E_FORMAT, "no dtype", ""},
        {"{\"a\":[]}", 0, CLV_E_FORMAT, "'a' is not described", ""},
        {"{\"__metadata__\":[]}", 0, CLV_E_FORMAT, "__metadata__", "not a JSON object"},
        {"{\"__metadata__\":{\"k\":1}}", 0, CLV_E_FORMAT, "'k' in __metadata__", "not a text"},
        {"{\"__metadata__\":{\"k\":\"1\"}}", 0, CLV_OK, "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clv_status status = read_header(cases[i].header, cases[i].data_bytes);
        if (status != cases[i].status) print_error("case %zu: %s\n", i, cases[i].header);
        if (cases[i].status == CLV_OK) {
            expect_ok(status);
        } else {
            expect_failure(status, cases[i].status, "'x.safetensors'", cases[i].part, cases[i].part2);
        }
    }
}

/** PyTorch's files and numpy's archive: known by what is in them, whatever their names, and answered with the line that mends it. */
TEST(names_the_mend_of_foreign_files) {
    static const struct {
        const char *file, *what, *loads;
    } cases[] = {{"torch.pth", "a PyTorch file", "torch.load(sys.argv[1]"},
                 {"torch_before_1_6.pt", "a PyTorch file", "torch.load(sys.argv[1]"},
                 {"arrays.npz", "an archive of numpy arrays", "numpy.load(sys.argv[1])"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const char *const names[][2] = {{"w.safetensors", "'w.safetensors' 'w.safetensors'"},
                                               {"it's w.pth", "'it'\\''s w.pth' 'it'\\''s w.safetensors'"},
                                               {".w", "'.w' '.w.safetensors'"}};
        size_t n;
        uint8_t *bytes = read_file(golden(cases[i].file), &n);
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            clv_archive *archive = NULL;
            write_file(names[k][0], bytes, n);
            expect_failure(clv_safetensors_read(support_runtime, names[k][0], &archive), CLV_E_FORMAT,
                           names[k][0], cases[i].what, "python3 -c '", cases[i].loads,
                           k ? names[k][1] : "save_file");
            assert_null(archive);
        }
        for (size_t cut = 0; cut < n; cut += 7) { // whatever is left of it, nothing is read past its end
            clv_archive *archive = NULL;
            clv__input input;
            clv__input_memory(clv__io_error(support_runtime), "x", bytes, cut, &input);
            expect_failure(clv__safetensors_read(&input, &archive), CLV_E_FORMAT, "'x'");
        }
        free(bytes);
    }
    clv_archive *archive = NULL;
    write_file("other.zip", "PK\3\4\24\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\5\0\0\0a.txt", 35);
    expect_failure(clv_safetensors_read(support_runtime, "other.zip", &archive), CLV_E_FORMAT, "'other.zip'");
}

TEST(every_cut_is_refused) {
    size_t n;
    uint8_t *bytes = read_file(golden("weights.safetensors"), &n);
    for (size_t cut = 0; cut < n; cut++) {
        clv_archive *archive = NULL;
        clv__input input;
        clv__input_memory(clv__io_error(support_runtime), "x.safetensors", bytes, cut, &input);
        expect_failure(clv__safetensors_read(&input, &archive), CLV_E_FORMAT, "'x.safetensors'");
        assert_null(archive);
    }
    free(bytes);
}

TEST(writing_says_where_it_cannot) {
    clv_archive *archive = clv__test_archive(support_runtime);
    float x[4] = {0};
    expect_ok(clv_archive_add(archive, "x", CLV_DTYPE_F32, SHAPE(4), x, NULL));
    expect_failure(clv_safetensors_write(archive, "/dev/full"), CLV_E_IO, "'/dev/full'", "disk is full");
    expect_failure(clv_safetensors_write(archive, "no/folder/x"), CLV_E_IO, "'no/folder/x'", "No such file");
    expect_failure(clv_safetensors_write(archive, "."), CLV_E_IO, "a folder");
    expect_failure(clv_safetensors_write(archive, ""), CLV_E_VALUE, "name");
    clv_archive_destroy(archive);
}

TEST_MAIN(support_begin, support_end)
