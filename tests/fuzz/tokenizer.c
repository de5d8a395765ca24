// SPDX-License-Identifier: Apache-2.0
// Any bytes as a tokenizer.json, and any text in tokens and back. An input that begins with '{' is a tokenizer, and behind its first zero byte
// a text; another one is a text for tokenizers that are right. Refused with a sentence, or tokens that there are and whose text is UTF-8.
#include "fuzz/fuzz.h"

#include "base/shown.h"
#include "cleave/cleave.h"

enum { BYTE_LEVEL, N_RIGHT = 5 };

static clv_runtime *runtime;
static clv_vocabulary *right[N_RIGHT]; // the first of bytes: its tokens are the text

static void require_said(clv_status status) {
    REQUIRE(status == CLV_E_FORMAT || status == CLV_E_UNSUPPORTED || status == CLV_E_HOST_MEMORY ||
            status == CLV_E_NOT_FOUND);
    const char *sentence = clv_runtime_error(runtime);
    REQUIRE(*sentence);
    for (const char *c = sentence; *c; c++) REQUIRE((unsigned char)*c >= 0x20 && *c != 0x7f);
}

static void start(void) {
    static const char *const names[N_RIGHT] = {"split", "llama2", "bert", "t5", "prefixes"};
    if (runtime) return;
    const clv_runtime_config config = {.no_opencl = true};
    REQUIRE(clv_runtime_create(&config, &runtime) == CLV_OK);
    for (int i = 0; i < N_RIGHT; i++) {
        char path[512];
        clv_array json;
        snprintf(path, sizeof path, CLV_TEST_SOURCE_DIR "/tests/golden/tokenizers/%s.json", names[i]);
        REQUIRE(clv_text_read(runtime, path, &json) == CLV_OK);
        // without utf8proc some are refused
        const clv_status status = clv_vocabulary_create(runtime, CLV_VOCABULARY_TOKENIZER, json.data,
                                                        clv_array_bytes(&json), &right[i]);
        REQUIRE(status == CLV_OK || (i != BYTE_LEVEL && status == CLV_E_UNSUPPORTED));
        clv_array_reset(&json);
    }
}

static void require_text(const clv_vocabulary *vocabulary, const clv_array *tokens, bool skip) {
    clv_array text;
    const clv_status status =
        clv_vocabulary_decode(vocabulary, tokens->data, (size_t)tokens->shape.dims[0], skip, &text);
    if (status != CLV_OK) {
        require_said(status);
        return;
    }
    const uint8_t *at = text.data;
    for (size_t left = clv_array_bytes(&text), n; left > 0; at += n, left -= n) {
        n = clv__utf8_length(at, left);
        REQUIRE(n > 0);
    }
    clv_array_reset(&text);
}

static void encode(const clv_vocabulary *vocabulary, const char *text, size_t bytes, bool of_bytes) {
    clv_array tokens;
    size_t done = 0;
    const clv_status status = clv_vocabulary_encode(vocabulary, text, bytes, &tokens);
    if (status != CLV_OK) {
        require_said(status);
        return;
    }
    const int32_t *token = tokens.data;
    for (int64_t i = 0; i < tokens.shape.dims[0]; i++) {
        size_t length;
        const char *one = clv_vocabulary_token(vocabulary, token[i], &length);
        REQUIRE(one);
        if (!of_bytes) continue;
        REQUIRE(length <= bytes - done && !memcmp(one, text + done, length));
        done += length;
    }
    REQUIRE(!of_bytes || done == bytes);
    require_text(vocabulary, &tokens, false);
    require_text(vocabulary, &tokens, true);
    clv_array_reset(&tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    start();
    if (size == 0 || *data != '{') {
        for (int i = 0; i < N_RIGHT; i++)
            if (right[i]) encode(right[i], (const char *)data, size, i == BYTE_LEVEL);
        return 0;
    }
    const uint8_t *end = memchr(data, 0, size);
    const size_t json = end ? (size_t)(end - data) : size;
    clv_vocabulary *vocabulary = NULL;
    const clv_status status =
        clv_vocabulary_create(runtime, CLV_VOCABULARY_TOKENIZER, (const char *)data, json, &vocabulary);
    if (status != CLV_OK) {
        REQUIRE(!vocabulary);
        require_said(status);
    } else if (end) {
        encode(vocabulary, (const char *)end + 1, size - json - 1, false);
    }
    clv_vocabulary_destroy(vocabulary);
    return 0;
}
