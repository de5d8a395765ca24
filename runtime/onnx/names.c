// SPDX-License-Identifier: Apache-2.0
#include "onnx/names.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "base/memory.h"

/** The slot of the text, or the free one where it goes. */
static uint32_t *slot_of(const clv__onnx_names *names, clv__onnx_text text) {
    size_t at = (size_t)XXH64(text.data, text.n, names->seed) & (names->room - 1);
    while (names->slots[at] && !clv__onnx_text_equal(names->texts[names->slots[at] - 1], text))
        at = (at + 1) & (names->room - 1);
    return &names->slots[at];
}

static bool grow(clv__onnx_names *names) {
    clv__onnx_names larger = *names;
    larger.room = names->room ? 2 * names->room : 16;
    larger.slots = clv__alloc(larger.room, sizeof *larger.slots);
    if (!larger.slots) return false;
    for (uint32_t i = 0; i < names->n; i++) *slot_of(&larger, names->texts[i]) = i + 1;
    free(names->slots);
    *names = larger;
    return true;
}

bool clv__onnx_names_find(const clv__onnx_names *names, clv__onnx_text text, uint32_t *number) {
    if (!names->room) return false;
    const uint32_t slot = *slot_of(names, text);
    if (!slot) return false;
    *number = slot - 1;
    return true;
}

bool clv__onnx_names_put(clv__onnx_names *names, clv__onnx_text text, uint32_t *number, bool *is_new) {
    if (!names->room) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        names->seed = (uint64_t)now.tv_nsec ^ (uint64_t)(uintptr_t)&now;
    }
    *is_new = false;
    if (clv__onnx_names_find(names, text, number)) return true;
    if (names->n >= UINT32_MAX - 2 || (2 * ((size_t)names->n + 1) > names->room && !grow(names)) ||
        !clv__grow(&names->texts, &names->texts_room, (size_t)names->n + 1, sizeof *names->texts))
        return false;
    *is_new = true;
    *number = names->n;
    *slot_of(names, text) = *number + 1;
    names->texts[names->n++] = text;
    return true;
}

void clv__onnx_names_reset(clv__onnx_names *names) {
    free(names->slots);
    free(names->texts);
    *names = (clv__onnx_names){0};
}
