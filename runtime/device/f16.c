// SPDX-License-Identifier: Apache-2.0
// Finds out how a device converts f16 (kernels_cl/f16.cl). What the driver says is not enough: some have a
// half type that is wrong, and what they say of denormals and rounding is not always what they do. Any fault
// means no, as does a program that does not compile; integers are right everywhere.
#include "device/f16.h"

#include <stdio.h>

#include "device/probe.h"

/** Of each way: the question's name among what is kept, and how it is told. */
static const struct {
    const char *note, *words;
} ways[] = {
    [CLV__F16_INTEGERS] = {NULL, "; it converts f16 by integers"},
    [CLV__F16_NATIVE] = {"f16 converted to the same bits, 2", "; it converts f16 itself"},
    [CLV__F16_PTX_BOTH] = {"f16 and bf16 converted by PTX, 1", "; it converts f16 and bf16 by PTX"},
    [CLV__F16_PTX] = {"f16 converted by PTX, 1", "; it converts f16 by PTX"},
};

/** May it be asked? A compiler that knows no PTX need not see any. */
static bool may_be(const clv_device *device, clv__f16_way way) {
    return way == CLV__F16_NATIVE ? device->info.fp16 : device->traits.ptx;
}

clv__f16_way clv__f16_way_of(clv_device *device) {
    for (clv__f16_way way = CLV__F16_NATIVE; way <= CLV__F16_PTX; way++) {
        char begin[32];
        snprintf(begin, sizeof begin, CLV__F16_TEXT, (int)way);
        const clv__probe probe = {.begin = begin,
                                  .stem = "f16",
                                  .entry = "f16_differences",
                                  .items = 64,
                                  .group = 1,
                                  .note = ways[way].note};
        if (may_be(device, way) && clv__probe_passes(device, &probe)) return way;
    }
    return CLV__F16_INTEGERS;
}

const char *clv__f16_words(const clv_device *device) {
    if (device->f16_way) return ways[device->f16_way].words;
    return device->info.fp16    ? "; its fp16 does not convert as it should"
           : device->traits.ptx ? ways[CLV__F16_INTEGERS].words
                                : "";
}
