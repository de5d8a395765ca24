// SPDX-License-Identifier: Apache-2.0
// Arrays and archives: what may be put in, what must be there, and numbers as texts.
#include "io/array.h"
#include "io/formats.h"
#include "io/support.h"

#include <float.h>
#include <math.h>

/** The sanitizers' allocators, too, shall answer a request for an exabyte with NULL. */
CLV_API const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1";
}
CLV_API const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
    return "allocator_may_return_null=1";
}

TEST(arrays_have_sizes) {
    clv_array array;
    expect_ok(clv_array_init(support_runtime, CLV_DTYPE_I64, SHAPE(3, 5), &array));
    assert_int_equal(clv_array_bytes(&array), 120);
    for (int i = 0; i < 15; i++) assert_int_equal(((int64_t *)array.data)[i], 0);
    clv_array_reset(&array);
    clv_array_reset(&array);
    clv_array_reset(NULL);
    expect_ok(clv_array_init(support_runtime, CLV_DTYPE_U8, SHAPE(0), &array));
    assert_non_null(array.data);
    clv_array_reset(&array);
    expect_failure(clv_array_init(support_runtime, CLV_DTYPE_NONE, SHAPE(1), &array), CLV_E_VALUE,
                   "element type");
    expect_failure(clv_array_init(support_runtime, (clv_dtype)99, SHAPE(1), &array), CLV_E_VALUE,
                   "cannot be none");
    expect_failure(clv_array_init(support_runtime, CLV_DTYPE_F32, SHAPE(2, -1), &array), CLV_E_SHAPE,
                   "[2,-1]");
    expect_failure(clv_array_init(support_runtime, CLV_DTYPE_F32, SHAPE(1ll << 40, 1ll << 40), &array),
                   CLV_E_SHAPE, "too large");
    expect_failure(clv_array_init(support_runtime, CLV_DTYPE_F32, SHAPE(1ll << 55), &array),
                   CLV_E_HOST_MEMORY, "144115188075855872 bytes");
    expect_failure(clv_array_init(support_runtime, CLV_DTYPE_F32, SHAPE(1ll << 58), &array), CLV_E_SHAPE,
                   "too large");
    expect_failure(clv_array_init(support_runtime, CLV_DTYPE_U8, SHAPE(0, 1ll << 62, 1ll << 62), &array),
                   CLV_E_SHAPE, "too large");
    assert_null(array.data);
    expect_failure(clv_array_init(support_runtime, CLV_DTYPE_F16, SHAPE(1), &array), CLV_E_VALUE,
                   "an array's element type cannot be f16");
}

TEST(names_are_checked) {
    clv_array *array = NULL;
    clv_archive *archive = clv__test_archive(support_runtime);
    expect_ok(clv_archive_add(archive, "a", CLV_DTYPE_F32, SHAPE(2), NULL, &array));
    expect_failure(clv_archive_add(archive, "a", CLV_DTYPE_F32, SHAPE(2), NULL, &array), CLV_E_VALUE,
                   "'a' already");
    assert_null(array);
    expect_failure(clv_archive_add(archive, "", CLV_DTYPE_F32, SHAPE(2), NULL, &array), CLV_E_VALUE,
                   "needs a name");
    expect_failure(clv_archive_add(archive, NULL, CLV_DTYPE_F32, SHAPE(2), NULL, &array), CLV_E_VALUE,
                   "name is NULL");
    expect_failure(clv_archive_add(archive, "__metadata__", CLV_DTYPE_F32, SHAPE(2), NULL, &array),
                   CLV_E_VALUE, "__metadata__");
    expect_failure(clv_archive_add(archive, "b\xc3(", CLV_DTYPE_F32, SHAPE(2), NULL, &array), CLV_E_VALUE,
                   "'b?('", "UTF-8");
    expect_failure(clv_archive_add(archive, "b", CLV_DTYPE_F32, SHAPE(-2), NULL, &array), CLV_E_SHAPE, "'b'",
                   "[-2]");
    expect_failure(clv_archive_add(archive, "b", CLV_DTYPE_NONE, SHAPE(2), NULL, &array), CLV_E_VALUE, "'b'",
                   "none");
    float x[2] = {1, 2};
    expect_failure(clv_archive_add(archive, "b", CLV_DTYPE_NONE, SHAPE(2), x, NULL), CLV_E_VALUE, "'b'");
    expect_failure(clv_archive_add(archive, "b", CLV_DTYPE_F32, SHAPE(-2), x, NULL), CLV_E_SHAPE, "'b'");
    expect_ok(clv_archive_add(archive, "b", CLV_DTYPE_F32, SHAPE(2), x, NULL));
    assert_ptr_equal(clv_archive_find(archive, "b")->data, x);
    assert_int_equal(clv_archive_count(archive), 2);
    assert_string_equal(clv_archive_get(archive, 1)->name, "b");
    assert_null(clv_archive_get(archive, 2));
    clv_archive_destroy(archive);
    clv_archive_destroy(NULL);
}

TEST(what_is_required_must_be_there) {
    clv_archive *archive = NULL;
    const clv_array *array = NULL;
    expect_ok(clv_safetensors_read(support_runtime, golden("weights.safetensors"), &archive));
    expect_failure(clv__archive_require(archive, "fc.weight", CLV_DTYPE_F32, SHAPE(2), &array),
                   CLV_E_NOT_FOUND, "weights.safetensors", "'fc.weight'", "among its 7",
                   "'bn.num_batches_tracked'");
    expect_failure(clv__archive_require(archive, "features.0.bias", CLV_DTYPE_F32, SHAPE(3), &array),
                   CLV_E_SHAPE, "weights.safetensors", "'features.0.bias' is [2], but [3] is wanted");
    expect_failure(clv__archive_require(archive, "features.0.bias", CLV_DTYPE_I32, SHAPE(2), &array),
                   CLV_E_DTYPE, "'features.0.bias' holds f32, but i32 is wanted");
    assert_null(array);
    char name[400]; // a long one is cut in the sentence, between characters
    for (int i = 0; i < 399; i++) name[i] = "ö"[(i + 1) % 2];
    name[0] = 'x';
    name[399] = 0;
    expect_failure(clv__archive_require(archive, name, CLV_DTYPE_F32, SHAPE(2), &array), CLV_E_NOT_FOUND,
                   "'xö", "ö...'");
    assert_true(strlen(clv_runtime_error(support_runtime)) < 400);
    clv_archive_destroy(archive);
}

TEST(texts_are_kept_and_replaced) {
    const char *text = NULL;
    clv_archive *archive = clv__test_archive(support_runtime);
    assert_null(clv_archive_text(archive, "k"));
    expect_ok(clv_archive_set_text(archive, "k", "v"));
    expect_ok(clv_archive_set_text(archive, "k", "w"));
    assert_string_equal(clv_archive_text(archive, "k"), "w");
    assert_string_equal(clv_archive_text_at(archive, 0, &text), "k");
    assert_string_equal(text, "w");
    assert_null(clv_archive_text_at(archive, 1, NULL));
    expect_failure(clv_archive_set_text(archive, "", "v"), CLV_E_VALUE, "needs a name");
    expect_failure(clv_archive_set_text(archive, "k", NULL), CLV_E_VALUE, "text is NULL");
    expect_failure(clv_archive_set_text(archive, "k", "\xed\xa0\x80"), CLV_E_VALUE,
                   "UTF-8"); // a lone surrogate
    clv_archive_destroy(archive);
}

TEST(numbers_come_back) {
    static const double reals[] = {0,       -0.0,   0.1,   1.0 / 3,  DBL_MAX,
                                   DBL_MIN, 5e-324, -1e-7, INFINITY, -INFINITY};
    static const int64_t ints[] = {0, -1, INT64_MAX, INT64_MIN};
    clv_archive *archive = clv__test_archive(support_runtime);
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        double back = 1;
        expect_ok(clv__archive_set_real(archive, "x", reals[i]));
        assert_null(strchr(clv_archive_text(archive, "x"), ','));
        expect_ok(clv__archive_get_real(archive, "x", &back));
        assert_memory_equal(&back, &reals[i], sizeof back);
    }
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) {
        int64_t back = 1;
        expect_ok(clv__archive_set_int(archive, "x", ints[i]));
        expect_ok(clv__archive_get_int(archive, "x", &back));
        assert_true(back == ints[i]);
    }
    clv_archive_destroy(archive);
}

TEST(what_is_no_number_is_refused) {
    static const char *const texts[] = {"", " 1", "1 ", "x", "1x", "+-1", "--1"};
    static const char *const not_ints[] = {"1.5", "9223372036854775808", "0x10", "nan", "+1"};
    int64_t i64 = 0;
    double real = 0;
    clv_archive *archive = clv__test_archive(support_runtime);
    expect_failure(clv__archive_get_int(archive, "x", &i64), CLV_E_NOT_FOUND, "the archive", "'x'");
    expect_failure(clv__archive_get_real(archive, "x", &real), CLV_E_NOT_FOUND, "'x'");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        expect_ok(clv_archive_set_text(archive, "x", texts[i]));
        expect_failure(clv__archive_get_int(archive, "x", &i64), CLV_E_FORMAT, "'x'", texts[i],
                       "whole number");
        expect_failure(clv__archive_get_real(archive, "x", &real), CLV_E_FORMAT, "'x'", texts[i], "a number");
    }
    for (size_t i = 0; i < sizeof not_ints / sizeof *not_ints; i++) {
        expect_ok(clv_archive_set_text(archive, "x", not_ints[i]));
        expect_failure(clv__archive_get_int(archive, "x", &i64), CLV_E_FORMAT, "'x'", not_ints[i],
                       "whole number");
    }
    clv_archive_destroy(archive);
}

TEST_MAIN(support_begin, support_end)
