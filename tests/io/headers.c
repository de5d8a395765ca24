// SPDX-License-Identifier: Apache-2.0
// Headers as large as the format allows: what they take of memory is held against the file's size, not against what a tree of them
// would be. And what a header of many members may do to a reader that goes through it in pieces.
#include "io/support.h"

#include <sys/resource.h>
#include <unistd.h>

enum { MANY = 1000000 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1 // memory of their own
#else
#define SANITIZED 0
#endif

static const char path[] = "large.safetensors";

/** A header that is being written. */
static FILE *begin_file(void) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(&(uint64_t){0}, 1, 8, file), 8);
    assert_true(fputc('{', file) != EOF);
    return file;
}

static size_t end_file(FILE *file) {
    assert_true(fputc('}', file) != EOF);
    uint64_t bytes = (uint64_t)ftell(file), header = bytes - 8;
    rewind(file);
    assert_int_equal(fwrite(&header, 1, 8, file), 8);
    assert_int_equal(fclose(file), 0);
    return bytes;
}

static void add_empty(FILE *file, int i, const char *more) {
    fprintf(file, "%s\"t%07d\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]%s}", i ? "," : "", i,
            more);
}

static long peak_kib(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss;
}

TEST(a_million_empty_tensors) {
    FILE *file = begin_file();
    for (int i = 0; i < MANY; i++) add_empty(file, i, "");
    size_t bytes = end_file(file);
    clv_archive *archive = NULL;
    expect_ok(clv_safetensors_read(support_runtime, path, &archive));
    assert_int_equal(clv_archive_count(archive), MANY);
    assert_string_equal(clv_archive_get(archive, MANY - 1)->name, "t0999999");
    assert_non_null(clv_archive_get(archive, 0)->data);
    clv_archive_destroy(archive);
    long limit = 2 * (long)(bytes >> 10) + 64 * 1024;
    print_message("file of %zu MB, peak %ld MiB of %ld\n", bytes / 1000000, peak_kib() >> 10, limit >> 10);
    if (!SANITIZED) assert_true(peak_kib() <= limit);
}

TEST(a_twin_among_many) {
    FILE *file = begin_file();
    for (int i = 0; i < 100000; i++) add_empty(file, i, "");
    fprintf(
        file,
        ",\"t00\\u00300777\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}"); // an escape hides nothing
    end_file(file);
    clv_archive *archive = NULL;
    expect_failure(clv_safetensors_read(support_runtime, path, &archive), CLV_E_FORMAT,
                   "duplicate object key 't0000777'");
}

/** Members that nobody asks for are legal, and read by the slow way: the same tensors, and no more memory. */
TEST(what_is_not_plain_is_the_same) {
    FILE *file = begin_file();
    for (int i = 0; i < 20000; i++)
        add_empty(file, i, i % 2 ? ",\"note\":[{\"a\":[1.5e3,null,true]},\"\\u00e4\"]" : "");
    end_file(file);
    clv_archive *archive = NULL;
    expect_ok(clv_safetensors_read(support_runtime, path, &archive));
    assert_int_equal(clv_archive_count(archive), 20000);
    clv_archive_destroy(archive);
}

TEST(what_it_says_of_a_tensor_is_bounded) {
    FILE *file = begin_file();
    fprintf(file, "\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0],\"x\":[0");
    for (int i = 0; i < 10 * 1000 * 1000; i++) fputs(",0", file);
    fputs("]}", file);
    end_file(file);
    clv_archive *archive = NULL;
    long before = peak_kib();
    expect_failure(clv_safetensors_read(support_runtime, path, &archive), CLV_E_FORMAT, "tensor 'a'",
                   "more than 65536");
    if (!SANITIZED) assert_true(peak_kib() <= before + 1024);
}

/** Each member of the file, whichever piece of it is the last in the window. */
TEST(pieces_end_anywhere) {
    for (size_t pad = 65536 - 160; pad < 65536 + 8; pad++) {
        FILE *file = begin_file();
        fprintf(file, "\"__metadata__\":{\"k\":\"");
        for (size_t i = 0; i < pad; i++) fputc('x', file);
        fputs("\",\"\\u00fc\":\"\\\"\"} , \"a\" : { \"shape\" : [ 0 , 3 ], \"data_offsets\":[ 0, 0 ] "
              ",\"dtype\":\"I64\" } ",
              file);
        end_file(file);
        clv_archive *archive = NULL;
        expect_ok(clv_safetensors_read(support_runtime, path, &archive));
        assert_int_equal(clv_archive_count(archive), 1);
        assert_true(clv_shape_equal(&clv_archive_get(archive, 0)->shape, SHAPE(0, 3)));
        assert_int_equal(strlen(clv_archive_text(archive, "k")), pad);
        assert_string_equal(clv_archive_text(archive, "ü"), "\"");
        clv_archive_destroy(archive);
    }
}

TEST(json_is_read_as_strictly_as_ever) {
    static const char *const wrong[] = {
        "\"a\"",
        "\"a\":",
        "\"a\" 1",
        "\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},",
        ",\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}",
        "\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0],}",
        "\"a\":{\"dtype\":\"F32\",\"shape\":[0,],\"data_offsets\":[0,0]}",
        "\"a\":{\"dtype\":\"F32\",\"shape\":[00],\"data_offsets\":[0,0]}",
        "\"a\":{\"dtype\":\"F32\",\"shape\":[+0],\"data_offsets\":[0,0]}",
        "\"a\":{\"dtype\":\"F32\",\"shape\":[0},\"data_offsets\":[0,0]]",
        "\"a\":{\"dtype\":\"F32\" \"shape\":[0],\"data_offsets\":[0,0]}",
        "\"a\\u0000b\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}",
        "\"a\\ud800\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}",
        "\"a\tb\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}",
        "\"\xc3\x28\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}",
        "\"__metadata__\":{\"k\":\"v\",\"k\":\"w\"}",
        "\"__metadata__\":{\"k\":\"v\",}",
        "\"__metadata__\":{\"k\":\"v\"},\"__metadata__\":{}",
        "\"__metadata__\":{\"k\":\"\xff\"}",
        "\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0],\"b\":{\"c\":1,\"c\":2}}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        FILE *file = begin_file();
        fputs(wrong[i], file);
        end_file(file);
        clv_archive *archive = NULL;
        clv_status status = clv_safetensors_read(support_runtime, path, &archive);
        if (status != CLV_E_FORMAT) print_error("number %zu: {%s}\n", i, wrong[i]);
        expect_failure(status, CLV_E_FORMAT, "the header is not JSON", "of the file)");
    }
}

TEST_MAIN(support_begin, support_end)
