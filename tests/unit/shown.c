// SPDX-License-Identifier: Apache-2.0
// What people read: printf as the system's, but for control characters and long names; parts of a peak.
#include "harness/harness.h"

#include <stdarg.h>
#include <string.h>

#include "base/error.h"
#include "base/folder.h"
#include "base/shown.h"
#include "cleave/bench.h"
#include "cleave/runtime.h"

static int shown(char *out, size_t bytes, unsigned flags, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static int shown(char *out, size_t bytes, unsigned flags, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = clv__format_shown(out, bytes, flags, format, args);
    va_end(args);
    return n;
}

#define SAME(...)                                                                                            \
    do {                                                                                                     \
        char want_[256], got_[256];                                                                          \
        int n_ = snprintf(want_, sizeof want_, __VA_ARGS__);                                                 \
        assert_int_equal(shown(got_, sizeof got_, CLV__SHOWN_NAMES, __VA_ARGS__), n_);                       \
        assert_string_equal(got_, want_);                                                                    \
    } while (0)

TEST(numbers_and_texts_are_those_of_printf) {
    SAME("plain %% text");
    SAME("%d %5d|%-5d|%05d %+d %i %u %x %#X %o %c|", -1, 2, 3, 4, 5, 6, 7u, 255u, 255u, 8u, 'c');
    SAME("%hhd %hd %ld %lld %zu %jd %td", (signed char)1, (short)2, 3L, 4LL, (size_t)5, (intmax_t)6,
         (ptrdiff_t)7);
    SAME("%f %.3f %10.2e %g %.0f %a %Lf", 1.5, 2.25, 3.0, 4e20, 5.5, 6.0, 7.0L);
    SAME("%s|%10s|%-10s|%.3s|%.*s|%*s|%-*s|", "a", "b", "c", "defgh", 2, "ijk", 6, "l", 6, "m");
    SAME("%*d|%-*.*f|%.*s", 7, 1, 8, 2, 3.14159, -1, "whole");
    SAME("ä €%s 𝄞 %8s", "ö", "x");
    char small[8];
    assert_int_equal(shown(small, sizeof small, 0, "%s", "0123456789"), 10);
    assert_string_equal(small, "0123456");
    shown(small, sizeof small, 0, "%s", "01234€");
    assert_string_equal(small, "01234"); // not half a character
    assert_int_equal(shown(NULL, 0, 0, "%d", 12345), 5);
}

TEST(texts_have_no_control_characters) {
    char out[512];
    shown(out, sizeof out, 0, "%s",
          "a\033[2Jb\r\x7f\xc2\x9b"
          "c\xff\xe2\x80\xae\n\tä");
    assert_string_equal(out, "a?[2Jb???c??\n\tä");
    shown(out, sizeof out, CLV__SHOWN_COLOURS, "%s", "\033[1;31mred\033[0m\033[2J");
    assert_string_equal(out, "\033[1;31mred\033[0m?[2J");
    shown(out, sizeof out, CLV__SHOWN_NAMES, "'%s' %c", "two\nlines\t", 7);
    assert_string_equal(out, "'two?lines?' ?");
}

TEST(names_are_short) {
    char name[5001], out[512], want[CLV__NAME_BYTES + 1];
    memset(name, 'n', 5000);
    memcpy(name + 4996, "tail", 5);
    assert_int_equal(shown(out, sizeof out, CLV__SHOWN_NAMES, "'%s'", name), CLV__NAME_BYTES + 2);
    assert_non_null(strstr(out, "nnn...nnn"));
    assert_string_equal(out + CLV__NAME_BYTES - 3, "tail'");
    for (size_t i = 0; i < 5000; i += 2) memcpy(name + i, "ä", 2);
    clv__show_name(name, 5000, want);
    assert_true(strlen(want) <= CLV__NAME_BYTES);
    clv__error error;
    clv__error_init(&error);
    memset(name, 27, 5000);
    assert_int_equal(clv__error_set(&error, CLV_E_VALUE, "no '%s'", name), CLV_E_VALUE);
    assert_true(strlen(error.text) <= CLV__NAME_BYTES + 5 && !strchr(error.text, 27));
    clv__error_destroy(&error);
}

TEST(parts_of_a_peak_stay_within_it) {
    const clv_bench_peak peak = {.gflops = 100, .gbps = 10, .cache_gbps = 80};
    const char *bound;
    assert_float_equal(clv_bench_peak_part(&peak, 50, 1, &bound), 0.5, 1e-9);
    assert_string_equal(bound, "compute");
    assert_float_equal(clv_bench_peak_part(&peak, 1, 9, &bound), 0.9, 1e-9);
    assert_string_equal(bound, "memory");
    assert_float_equal(clv_bench_peak_part(&peak, 1, 40, &bound), 0.5,
                       1e-9); // faster than memory: from caches
    assert_string_equal(bound, "cache");
    assert_float_equal(clv_bench_peak_part(&peak, 250, 1, &bound), 1.0, 1e-9);
    assert_float_equal(clv_bench_peak_part(&peak, 1, 500, NULL), 1.0, 1e-9);
    assert_float_equal(clv_bench_peak_part(&(clv_bench_peak){0}, 1, 5, &bound), 0, 0);
}

/** A peak that was measured too low is beaten, measured again, and kept; one that was higher than now stays. */
TEST(beaten_peaks_are_measured_again) {
    clv_runtime *runtime = clv__test_runtime(&(clv_runtime_config){0});
    clv_device *device;
    for (int i = -1; (device = clv__test_next_device(runtime, &i));) {
        if (strcmp(clv_device_info_get(device)->backend, "opencl") != 0) continue;
        clv_bench_peak peak = {.gflops = 1e-6, .gbps = 1e-6, .cache_gbps = 1e9}, kept;
        assert_status(clv_bench_peak_raise(device, &peak), CLV_OK, runtime);
        assert_true(peak.gflops > 1e-6 && peak.gbps > 1e-6 && peak.cache_gbps == 1e9);
        assert_status(clv_bench_peak_get(device, false, &kept), CLV_OK, runtime);
        assert_true(kept.gflops == peak.gflops && kept.gbps == peak.gbps && kept.cache_gbps == 1e9);
        assert_status(clv_bench_peak_get(device, true, &kept), CLV_OK, runtime); // for who comes next
        assert_true(kept.cache_gbps < 1e9);
        break;
    }
    clv_runtime_destroy(runtime);
}

TEST_MAIN(NULL, NULL)
