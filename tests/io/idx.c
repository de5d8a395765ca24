// SPDX-License-Identifier: Apache-2.0
// IDX, plain and gzipped: golden files, and whatever is wrong in one.
#include "io/formats.h"
#include "io/support.h"

#include <zlib.h>

TEST(reads_plain_and_gzipped) {
    static const char *const names[] = {"u8.idx", "u8.idx.gz"};
    for (int k = 0; k < 2; k++) {
        clv_array array;
        expect_ok(clv__idx_read_file(support_runtime, golden(names[k]), &array));
        assert_true(array.type == CLV_DTYPE_U8 && clv_shape_equal(&array.shape, SHAPE(2, 3, 4)));
        for (int i = 0; i < 24; i++) assert_int_equal(((uint8_t *)array.data)[i], i * 7 % 256);
        clv_array_reset(&array);
    }
    clv_array array;
    expect_ok(clv__idx_read_file(support_runtime, golden("i32.idx"), &array));
    assert_int_equal(((int32_t *)array.data)[0], -2);
    assert_int_equal(((int32_t *)array.data)[2], INT32_MAX);
    clv_array_reset(&array);
    expect_ok(clv__idx_read_file(support_runtime, golden("f32.idx"), &array));
    assert_true(((float *)array.data)[0] == 0.5f && ((float *)array.data)[1] == -3e38f);
    clv_array_reset(&array);
}

static clv_status read_bytes(const void *bytes, size_t size) {
    clv_array array;
    write_file("x.idx", bytes, size);
    clv_status status = clv__idx_read_file(support_runtime, "x.idx", &array);
    assert_true((status == CLV_OK) == (array.data != NULL));
    clv_array_reset(&array);
    return status;
}

/** gzip `size` bytes; the result is to be freed. */
static uint8_t *pack(const void *bytes, size_t size, size_t *packed) {
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t room = deflateBound(&z, size);
    uint8_t *out = malloc(room);
    assert_non_null(out);
    z.next_in = (Bytef *)(uintptr_t)bytes;
    z.avail_in = (uInt)size;
    z.next_out = out;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    *packed = room - z.avail_out;
    deflateEnd(&z);
    return out;
}

#define BYTES(text) (text), sizeof(text) - 1

TEST(refuses_what_does_not_add_up) {
    expect_failure(read_bytes(BYTES("")), CLV_E_FORMAT, "'x.idx'", "no IDX file");
    expect_failure(read_bytes(BYTES("\0")), CLV_E_FORMAT, "no IDX file");
    expect_failure(read_bytes(BYTES("\0\1\x08\1\0\0\0\0")), CLV_E_FORMAT, "no IDX file");
    expect_failure(read_bytes(BYTES("\0\0\x0b\1\0\0\0\0")), CLV_E_UNSUPPORTED, "0x0b");
    expect_failure(read_bytes(BYTES("\0\0\x07\1\0\0\0\0")), CLV_E_FORMAT, "0x07");
    expect_failure(read_bytes(BYTES("\0\0\x08\0")), CLV_E_FORMAT, "rank 0");
    expect_failure(read_bytes(BYTES("\0\0\x08\x09")), CLV_E_FORMAT, "rank 9");
    expect_failure(read_bytes(BYTES("\0\0\x08\1\0\0\0")), CLV_E_FORMAT, "cut short within its dimensions");
    expect_failure(read_bytes(BYTES("\0\0\x08\1\0\0\0\2x")), CLV_E_FORMAT, "cut short", "[2] takes 2",
                   "at most 1");
    expect_failure(read_bytes(BYTES("\0\0\x08\1\0\0\0\1xy")), CLV_E_FORMAT, "bytes follow the array [1]");
    expect_failure(read_bytes(BYTES("\0\0\x08\3\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")),
                   CLV_E_FORMAT, "too large to count");
    expect_failure(read_bytes(BYTES("\0\0\x0d\2\x7f\xff\xff\xff\x7f\xff\xff\xff")), CLV_E_FORMAT,
                   "too large to count");
    expect_failure(read_bytes(BYTES("\0\0\x08\2\xff\xff\xff\xff\x7f\xff\xff\xff")), CLV_E_FORMAT,
                   "too large to count");
    expect_failure(read_bytes(BYTES("\0\0\x08\2\0\xff\xff\xff\0\0\xff\xff")), CLV_E_FORMAT, "cut short",
                   "at most 0");
    expect_ok(read_bytes(BYTES("\0\0\x08\2\0\0\0\0\xff\xff\xff\xff")));
    clv_array array;
    expect_failure(clv__idx_read_file(support_runtime, "absent", &array), CLV_E_IO, "'absent'",
                   "No such file");
}

TEST(refuses_bad_gzip) {
    size_t n;
    uint8_t *good = read_file(golden("u8.idx.gz"), &n);
    for (size_t cut = 0; cut < n; cut++) {
        clv_status status = read_bytes(good, cut);
        expect_failure(status, CLV_E_FORMAT, "'x.idx'");
    }
    for (size_t i = 0; i < 8; i++) { // the CRC and the length at the end
        good[n - 1 - i] ^= 1;
        expect_failure(read_bytes(good, n), CLV_E_FORMAT, "'x.idx' is damaged",
                       i < 4 ? "length" : "data check");
        good[n - 1 - i] ^= 1;
    }
    good[2] ^= 1; // the method
    expect_failure(read_bytes(good, n), CLV_E_FORMAT, "damaged");
    good[2] ^= 1;
    uint8_t *longer = malloc(2 * n);
    assert_non_null(longer);
    memcpy(longer, good, n);
    memcpy(longer + n, good, n);
    longer[n] = 'x';
    expect_failure(read_bytes(longer, n + 1), CLV_E_FORMAT, "not gzip follow", "at byte 56");
    longer[n] = 0x1f;
    expect_failure(read_bytes(longer, n + 1), CLV_E_FORMAT, "does not end");
    expect_failure(read_bytes(longer, 2 * n), CLV_E_FORMAT, "bytes follow the array");
    free(longer);
    free(good);
}

TEST(members_in_a_row_are_one_file) {
    size_t a, b;
    uint8_t *first = pack(BYTES("\0\0\x08\1\0\0\0\4x"), &a), *second = pack(BYTES("yzw"), &b);
    uint8_t *both = malloc(a + b);
    assert_non_null(both);
    memcpy(both, first, a);
    memcpy(both + a, second, b);
    write_file("x.idx", both, a + b);
    clv_array array;
    expect_ok(clv__idx_read_file(support_runtime, "x.idx", &array));
    assert_memory_equal(array.data, "xyzw", 4);
    clv_array_reset(&array);
    expect_failure(read_bytes(both, a), CLV_E_FORMAT, "cut short: [4] takes 4 bytes, 1 are there");
    free(first);
    free(second);
    free(both);
}

/** What is claimed must be possible before anything is allocated: deflate packs 1032 to 1 at most. */
TEST(a_bomb_is_refused_by_its_size) {
    size_t n;
    uint8_t *packed = pack(BYTES("\0\0\x08\3\0\0\xff\xff\0\0\xff\xff\0\0\xff\xff"), &n);
    expect_failure(read_bytes(packed, n), CLV_E_FORMAT, "cut short", "281462092005375 bytes", "at most");
    free(packed);
    size_t size = 1 << 20;
    uint8_t *zeros = calloc(1, size);
    assert_non_null(zeros);
    memcpy(zeros, "\0\0\x08\1\0\x0f\xff\xf8", 8); // 2^20 - 8, which packs close to the limit
    packed = pack(zeros, size, &n);
    assert_true(size / n > 900);
    expect_ok(read_bytes(packed, n));
    free(packed);
    free(zeros);
}

TEST_MAIN(support_begin, support_end)
