// SPDX-License-Identifier: Apache-2.0
// Files of tensors made of any bytes, part by part, so that most of them are nearly right: names, dtypes, shapes, offsets and
// metadata are chosen, then one or two of them spoiled. What fuzz_safetensors does with the bytes is done with the file.
#include "fuzz/fuzz.h"

#include "base/text.h"

int fuzz_safetensors_one(const uint8_t *data, size_t size);

typedef struct choices {
    const uint8_t *data;
    size_t size, at;
} choices;

static unsigned next(choices *c) {
    return c->at < c->size ? c->data[c->at++] : 0;
}

static const char *const dtypes[] = {"F32", "I32", "F16", "BF16", "F64", "I64", "U8", "BOOL", "F8_E4M3", ""};
static const unsigned widths[] = {4, 4, 2, 2, 8, 8, 1, 1, 1, 0};
static const char *const names[] = {"a",    "b.weight", "b.bias",      "\\u00e9", "__metadata__",
                                    "x\\n", "model.w",  "optimizer.w", "\\\"",    ""};

static void add_tensor(choices *c, clv__text *out, unsigned long long *end) {
    unsigned what = next(c), dtype = what % 10, rank = next(c) % 10, bytes = widths[dtype];
    clv__text_add(out, "\"%s%u\":{\"dtype\":\"%s\",\"shape\":[", names[next(c) % 10], next(c) % 3,
                  dtypes[dtype]);
    unsigned long long numel = 1;
    for (unsigned d = 0; d < rank; d++) {
        unsigned size = next(c);
        unsigned long long dim = size < 200 ? size % 4 : size < 250 ? size : 1ull << (size % 64);
        clv__text_add(out, "%s%llu", d ? "," : "", dim);
        numel *= dim;
    }
    unsigned long long begin = *end;
    *end += numel * bytes;
    unsigned spoil = next(c);
    if (spoil == 1) begin++;
    if (spoil == 2) *end += next(c);
    if (spoil == 3) begin = 0;
    clv__text_add(out, "],\"data_offsets\":[%llu,%llu]%s}", begin, *end, spoil == 4 ? ",\"more\":1" : "");
}

static void add_metadata(choices *c, clv__text *out) {
    clv__text_add(out, "\"__metadata__\":{");
    unsigned n = next(c) % 4;
    for (unsigned i = 0; i < n; i++)
        clv__text_add(out, "%s\"%s%u\":\"%u\"", i ? "," : "", names[next(c) % 10], next(c) % 3, next(c));
    clv__text_add(out, "}");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    choices c = {data, size, 0};
    clv__text text = {0}, file = {0};
    unsigned long long end = 0;
    unsigned n = next(&c) % 12;
    clv__text_add(&text, "{");
    if (next(&c) % 3 == 0) add_metadata(&c, &text);
    for (unsigned i = 0; i < n; i++) {
        if (text.n > 1) clv__text_add(&text, next(&c) == 7 ? ",," : ",");
        add_tensor(&c, &text, &end);
    }
    clv__text_add(&text, next(&c) == 9 ? "" : "}");
    unsigned long long header = text.n + (next(&c) == 5 ? next(&c) : 0);
    clv__text_add_bytes(&file, (const char *)&header, sizeof header);
    clv__text_add_bytes(&file, text.data, text.n);
    unsigned cut = next(&c);
    unsigned long long there = end > 4096 ? 4096 : end;
    if (cut == 3 && there) there--;
    static char values[4096];
    for (size_t i = values[1] ? sizeof values : 0; i < sizeof values; i++) values[i] = (char)i;
    clv__text_add_bytes(&file, values, (size_t)there);
    if (cut == 4) clv__text_add_bytes(&file, "x", 1);
    REQUIRE(!text.failed && !file.failed);
    fuzz_safetensors_one((const uint8_t *)file.data, file.n);
    clv__text_reset(&text);
    clv__text_reset(&file);
    return 0;
}
