// SPDX-License-Identifier: Apache-2.0
// .npz: what numpy writes is read, stored and deflated; what is written is read again; whatever is wrong has its status and sentence.
#include "cleave/data.h"
#include "io/formats.h"
#include "io/support.h"

TEST(reads_what_numpy_writes) {
    clv_archive *archive;
    const clv_array *array;
    expect_ok(clv_npz_read(support_runtime, golden("arrays.npz"), &archive));
    assert_int_equal(clv_archive_count(archive), 2);
    expect_ok(clv__archive_require(archive, "fc.weight", CLV_DTYPE_F32, SHAPE(2, 3), &array));
    for (int i = 0; i < 6; i++) assert_true(((float *)array->data)[i] == (float)i);
    expect_ok(clv__archive_require(archive, "fc.bias", CLV_DTYPE_F32, SHAPE(2), &array));
    clv_archive_destroy(archive);
    expect_ok(clv_npz_read(support_runtime, golden("packed.npz"), &archive));
    assert_int_equal(clv_archive_count(archive), 3);
    expect_ok(clv__archive_require(archive, "row", CLV_DTYPE_F32, SHAPE(50, 6), &array));
    expect_ok(clv__archive_require(archive, "word", CLV_DTYPE_I64, SHAPE(50), &array));
    for (int i = 0; i < 50; i++) assert_int_equal(((int64_t *)array->data)[i], i % 5);
    assert_true(*(float *)clv_archive_find(archive, "größe")->data == 1.5f);
    clv_archive_destroy(archive);
}

/** Where in the golden archives something stands; `which` counts from 0, below 0: from the end. */
static size_t find(const uint8_t *bytes, size_t size, const char *what, size_t n, int which) {
    size_t found[16], count = 0;
    for (size_t i = 0; i + n <= size; i++)
        if (!memcmp(bytes + i, what, n)) found[count++] = i;
    assert_true(count > 0);
    return which < 0 ? found[count - 1] : found[which];
}

enum { LOCAL, ENTRY, END, NAME }; // what is changed, `at` bytes behind its beginning

static const struct {
    const char *file;
    int what, at;
    const char *bytes; // written there
    int n;
    clv_status status;
    const char *said;
} faults[] = {
    {"arrays.npz", END, 0, "XX", 2, CLV_E_FORMAT, "is no .npz file: no directory of a ZIP archive ends it"},
    {"arrays.npz", END, 20, "\1", 1, CLV_E_FORMAT, "is no .npz file: no directory of a ZIP archive ends it"},
    {"arrays.npz", END, 4, "\1", 1, CLV_E_UNSUPPORTED, "is one part of a ZIP archive"},
    {"arrays.npz", END, 16, "\xff\xff\xff\xff", 4, CLV_E_UNSUPPORTED, "more than 4 GiB or 65534 arrays"},
    {"arrays.npz", END, 16, "\0\0\0\x10", 4, CLV_E_FORMAT, "is damaged: its directory would be"},
    {"arrays.npz", END, 12, "\0\0\0\x10", 4, CLV_E_FORMAT, "is damaged: its directory would be"},
    {"arrays.npz", END, 8, "\7\0\7\0", 4, CLV_E_FORMAT, "is damaged: its directory is cut short"},
    {"arrays.npz", ENTRY, 0, "XX", 2, CLV_E_FORMAT, "is damaged: its directory has no entry at byte"},
    {"arrays.npz", ENTRY, 30, "\xff\xff", 2, CLV_E_FORMAT, "is damaged: its directory has no entry at byte"},
    {"arrays.npz", ENTRY, 24, "\1\0\0\0", 4, CLV_E_FORMAT, "is damaged: 152 bytes cannot become 1"},
    {"arrays.npz", ENTRY, 16, "abcd", 4, CLV_E_FORMAT, "is damaged: the checksum does not match"},
    {"arrays.npz", ENTRY, 42, "\1\0\0\0", 4, CLV_E_FORMAT, "is damaged: no member begins at byte 1"},
    {"arrays.npz", ENTRY, 42, "\0\0\0\1", 4, CLV_E_FORMAT,
     "is damaged: a member would begin at byte 16777216"},
    {"arrays.npz", LOCAL, 28, "\xff\xff", 2, CLV_E_FORMAT,
     "bytes of a member do not lie before its directory"},
    {"arrays.npz", NAME, 3, "\0", 1, CLV_E_FORMAT, "is no .npy file"},
    {"arrays.npz", NAME, 3, "\xff", 1, CLV_E_FORMAT, "is no .npy file"},
    {"packed.npz", ENTRY, 24, "\0\0\0\x10", 4, CLV_E_FORMAT, "cannot become 268435456"},
    {"packed.npz", ENTRY, 24, "\1", 1, CLV_E_FORMAT, "its deflated bytes are not as they should be"},
    {"packed.npz", ENTRY, 20, "\x40\x7f", 2, CLV_E_FORMAT, "is damaged"},
};

TEST(refuses_what_is_damaged) {
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        size_t size;
        uint8_t *bytes = read_file(golden(faults[i].file), &size);
        const size_t places[] = {[LOCAL] = 0,
                                 [ENTRY] = find(bytes, size, "PK\1\2", 4, 0),
                                 [END] = find(bytes, size, "PK\5\6", 4, -1),
                                 [NAME] = find(bytes, size, "PK\1\2", 4, 0) + 46};
        memcpy(bytes + places[faults[i].what] + faults[i].at, faults[i].bytes, (size_t)faults[i].n);
        write_file("x.npz", bytes, size);
        free(bytes);
        clv_archive *archive = (clv_archive *)1;
        expect_failure(clv_npz_read(support_runtime, "x.npz", &archive), faults[i].status, "'x.npz'",
                       faults[i].said);
        assert_null(archive);
    }
}

/** An array that is of a kind that is not read is in nobody's way: who asks for it is told why. */
TEST(leaves_out_what_it_cannot_read) {
    static const struct {
        int what, at;
        const char *bytes;
        int n;
        const char *name, *said;
    } cases[] = {{ENTRY, 8, "\1", 1, "fc.weight", "array 'fc.weight': 'x.npz' is encrypted"},
                 {ENTRY, 10, "\14", 1, "fc.weight", "is packed by method 12; 0 and 8 can be read"},
                 {ENTRY, 24, "\xff\xff\xff\xff", 4, "fc.weight", "an array of 4 GiB or more"},
                 {NAME, 10, "x", 1, "fc.weight.xpy",
                  "'x.npz' is no .npz file: its member 'fc.weight.xpy' is no .npy file"}};
    const clv_shape any = CLV_SHAPE(1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size;
        uint8_t *bytes = read_file(golden("arrays.npz"), &size);
        const size_t entry = find(bytes, size, "PK\1\2", 4, 0);
        memcpy(bytes + entry + (cases[i].what == NAME ? 46 : 0) + cases[i].at, cases[i].bytes,
               (size_t)cases[i].n);
        write_file("x.npz", bytes, size);
        free(bytes);
        clv_archive *archive, *all;
        const clv_array *array;
        char key[64];
        expect_ok(clv_npz_read(support_runtime, golden("arrays.npz"), &all));
        expect_ok(clv_npz_read(support_runtime, "x.npz", &archive));
        assert_int_equal(clv_archive_count(archive), clv_archive_count(all) - 1);
        assert_null(clv_archive_find(archive, cases[i].name));
        expect_failure(clv__archive_require(archive, cases[i].name, CLV_DTYPE_F32, &any, &array),
                       CLV_E_UNSUPPORTED, "'x.npz'", cases[i].said);
        snprintf(key, sizeof key, "cleave.unread.%s", cases[i].name);
        assert_non_null(clv_archive_text(archive, key));
        clv_field field = {.name = cases[i].name, .role = CLV_PORT_INPUT};
        clv_dataset *dataset;
        expect_failure(clv_dataset_from_fields(support_runtime, archive, &field, 1, NULL, &dataset),
                       CLV_E_UNSUPPORTED, "'x.npz'", cases[i].said);
        clv_archive_destroy(archive);
        clv_archive_destroy(all);
    }
}

/** One name twice, bytes that two share, and a member that is no array. */
TEST(refuses_other_archives) {
    size_t size;
    uint8_t *bytes = read_file(golden("arrays.npz"), &size);
    clv_archive *archive;
    const size_t first = find(bytes, size, "PK\1\2", 4, 0), second = find(bytes, size, "PK\1\2", 4, 1);
    uint8_t *twice = malloc(2 * size);
    assert_non_null(twice);
    memcpy(twice, bytes, size); // the first entry once more, and so again for bytes that are there twice
    const size_t entry = second - first, end = find(bytes, size, "PK\5\6", 4, -1);
    memmove(twice + second + entry, twice + end, size - end);
    memcpy(twice + second, bytes + first, entry);
    const size_t at = second + entry, directory = 2 * entry;
    memcpy(twice + at + 12, &(uint32_t){(uint32_t)directory}, 4);
    write_file("x.npz", twice, at + size - end);
    expect_failure(clv_npz_read(support_runtime, "x.npz", &archive), CLV_E_FORMAT,
                   "'x.npz' has array 'fc.weight' twice");
    twice[second + 46] = 'g'; // another name: the same bytes
    memcpy(twice + first + 20, &(uint32_t){400}, 4);
    write_file("x.npz", twice, at + size - end);
    expect_failure(clv_npz_read(support_runtime, "x.npz", &archive), CLV_E_FORMAT, "'x.npz'", "is damaged");
    free(twice);
    free(bytes);
    write_file("x.npz", "", 0);
    expect_failure(clv_npz_read(support_runtime, "x.npz", &archive), CLV_E_FORMAT, "'x.npz' is no .npz file");
    expect_failure(clv_npz_read(support_runtime, golden("torch.pth"), &archive), CLV_E_FORMAT,
                   "is a PyTorch file");
    expect_failure(clv_npz_read(support_runtime, "none.npz", &archive), CLV_E_IO, "'none.npz'");
}

/** What is written is read again, and the same archive gives the same bytes. */
TEST(writes_what_it_reads) {
    clv_archive *archive, *again;
    size_t n, m;
    for (int packed = 0; packed < 2; packed++) {
        expect_ok(clv_npz_read(support_runtime, golden(packed ? "packed.npz" : "arrays.npz"), &archive));
        expect_ok(clv_npz_write(archive, "w.npz"));
        expect_ok(clv_npz_read(support_runtime, "w.npz", &again));
        assert_int_equal(clv_archive_count(again), clv_archive_count(archive));
        for (size_t i = 0; clv_archive_get(archive, i); i++) {
            const clv_array *a = clv_archive_get(archive, i), *b = clv_archive_get(again, i);
            assert_string_equal(a->name, b->name);
            assert_int_equal(a->type, b->type);
            assert_true(clv_shape_equal(&a->shape, &b->shape));
            assert_memory_equal(a->data, b->data, clv_array_bytes(a));
        }
        expect_ok(clv_npz_write(again, "v.npz"));
        uint8_t *first = read_file("w.npz", &n), *second = read_file("v.npz", &m);
        assert_int_equal(n, m);
        assert_memory_equal(first, second, n);
        free(first);
        free(second);
        clv_archive_destroy(again);
        clv_archive_destroy(archive);
    }
    clv_archive *none = clv__test_archive(support_runtime);
    expect_ok(clv_npz_write(none, "w.npz"));
    expect_ok(clv_npz_read(support_runtime, "w.npz", &again));
    assert_int_equal(clv_archive_count(again), 0);
    clv_archive_destroy(again);
    expect_failure(clv_npz_write(none, "none/w.npz"), CLV_E_IO, "cannot write 'none/w.npz'");
    clv_archive_destroy(none);
}

TEST_MAIN(support_begin, support_end)
