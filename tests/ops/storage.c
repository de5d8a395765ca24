// SPDX-License-Identifier: Apache-2.0
// f16 and bf16 on every device, to the bit: the checker's tolerance would let a truncation pass for a rounding. Every stored
// value is loaded; floats near and half way between neighbours, huge, tiny and not numbers, are stored.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cleave/ops.h"
#include "cleave/plan.h"
#include "harness/harness.h"
#include "tensor/half.h"

enum { VALUES = 0x10000 };

static void cast_on(clv_runtime *runtime, clv_device *device, const char *variants, clv_dtype from,
                    clv_dtype to, const void *in, void *out) {
    clv_graph *graph;
    clv_plan *plan;
    clv_session *session;
    clv_run *run;
    int64_t ticket;
    assert_status(clv_graph_create(runtime, &graph), CLV_OK, runtime);
    clv_tensor *x = clv_input(graph, "x", from, CLV_SHAPE(VALUES)), *y = clv_cast(x, to);
    clv_output(y, "y");
    assert_status(clv_plan_create(graph, &(clv_plan_config){.device = device, .variants = variants}, &plan),
                  CLV_OK, runtime);
    assert_status(clv_session_create(runtime, NULL, &session), CLV_OK, runtime);
    assert_status(clv_run_create(session, plan, &run), CLV_OK, runtime);
    assert_status(clv_run_feed(run, x, in, clv_tensor_bytes(x)), CLV_OK, runtime);
    assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
    assert_status(clv_run_fetch(run, ticket, y, out, clv_tensor_bytes(y)), CLV_OK, runtime);
    clv_run_destroy(run);
    clv_session_destroy(session);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
}

static float widen(clv_dtype dtype, uint16_t stored) {
    return dtype == CLV_DTYPE_F16 ? clv__f16_to_float(stored) : clv__bf16_to_float(stored);
}

static uint16_t narrow(clv_dtype dtype, float value) {
    return dtype == CLV_DTYPE_F16 ? clv__f16_of_float(value) : clv__bf16_of_float(value);
}

/** A float around stored value h: itself, or between it and the next one, half way or next to that. */
static float around(clv_dtype dtype, int h) {
    float low = widen(dtype, (uint16_t)h), high = widen(dtype, (uint16_t)(h + 1));
    float middle = low + (high - low) / 2;
    switch (h % 4) {
    case 0: return middle;
    case 1: return nextafterf(middle, low);
    case 2: return nextafterf(middle, high);
    default: return low;
    }
}

static void compare(clv_dtype dtype, clv_runtime *runtime, clv_device *device, const char *variants) {
    static uint16_t stored[VALUES], back[VALUES];
    static float values[VALUES], got[VALUES];
    for (int h = 0; h < VALUES; h++) stored[h] = (uint16_t)h;
    cast_on(runtime, device, variants, dtype, CLV_DTYPE_F32, stored, got);
    for (int h = 0; h < VALUES; h++) {
        float want = widen(dtype, (uint16_t)h);
        bool flushed = fabsf(want) < 0x1p-126f && got[h] == 0; // a small bf16 may be a denormal float
        if (isnan(want) ? !isnan(got[h]) : !flushed && memcmp(&want, &got[h], sizeof want) != 0)
            fail_msg("%s: %s 0x%04x is loaded as %a, not %a", clv_device_info_get(device)->name,
                     clv_dtype_name(dtype), (unsigned)h, (double)got[h], (double)want);
        values[h] = around(dtype, h);
    }
    cast_on(runtime, device, variants, CLV_DTYPE_F32, dtype, values, back);
    for (int h = 0; h < VALUES; h++) {
        uint16_t want = narrow(dtype, values[h]);
        bool flushed = fabsf(values[h]) < 0x1p-126f && widen(dtype, back[h]) == 0;
        if (isnan(values[h]) ? !isnan(widen(dtype, back[h])) : !flushed && want != back[h])
            fail_msg("%s: %a is stored as %s 0x%04x, not 0x%04x", clv_device_info_get(device)->name,
                     (double)values[h], clv_dtype_name(dtype), (unsigned)back[h], (unsigned)want);
    }
}

static void conversions_are_exact(void **state) {
    (void)state;
    clv_runtime *runtime = clv__test_runtime(NULL);
    for (int i = -1; clv__test_next_device(runtime, &i);) {
        clv_device *device = clv_device_get(runtime, i);
        bool host = clv_device_info_get(device)->type == CLV_DEVICE_HOST;
        for (int k = 0; k < (host ? 1 : 2); k++) {
            const char *variants = host ? NULL : k ? "cast=rows" : "cast=plain";
            compare(CLV_DTYPE_F16, runtime, device, variants);
            compare(CLV_DTYPE_BF16, runtime, device, variants);
        }
    }
    clv_runtime_destroy(runtime);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(conversions_are_exact)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
