// SPDX-License-Identifier: Apache-2.0
// Any bytes as a tokenizer.json, and any text in tokens. An input that begins with '{' is a tokenizer, and behind its first zero byte a
// text; another one is a text for a tokenizer that is right. Refused with a sentence, or tokens whose bytes are the text.
#include "fuzz/fuzz.h"

#include "cleave/cleave.h"

static clv_runtime *runtime;
static clv_vocabulary *right;

static void require_said(clv_status status) {
    REQUIRE(status == CLV_E_FORMAT || status == CLV_E_UNSUPPORTED || status == CLV_E_HOST_MEMORY);
    const char *sentence = clv_runtime_error(runtime);
    REQUIRE(*sentence);
    for (const char *c = sentence; *c; c++) REQUIRE((unsigned char)*c >= 0x20 && *c != 0x7f);
}

static void start(void) {
    if (runtime) return;
    const clv_runtime_config config = {.no_opencl = true};
    clv_array json;
    REQUIRE(clv_runtime_create(&config, &runtime) == CLV_OK);
    REQUIRE(clv_text_read(runtime, CLV_TEST_SOURCE_DIR "/tests/golden/tokenizers/split.json", &json) ==
            CLV_OK);
    REQUIRE(clv_vocabulary_tokenizer(runtime, json.data, clv_array_bytes(&json), &right) == CLV_OK);
    clv_array_reset(&json);
}

static void encode(const clv_vocabulary *vocabulary, const char *text, size_t bytes) {
    int32_t *tokens = malloc((bytes + 1) * sizeof *tokens);
    size_t n = 0, done = 0;
    REQUIRE(tokens);
    const clv_status status = clv_vocabulary_encode(vocabulary, text, bytes, tokens, &n);
    if (status != CLV_OK) require_said(status);
    for (size_t i = 0; status == CLV_OK && i < n; i++) {
        size_t length;
        const char *one = clv_vocabulary_token(vocabulary, tokens[i], &length);
        REQUIRE(one && length <= bytes - done && !memcmp(one, text + done, length));
        done += length;
    }
    REQUIRE(status != CLV_OK || (done == bytes && n <= bytes));
    free(tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    start();
    if (size == 0 || *data != '{') {
        encode(right, (const char *)data, size);
        return 0;
    }
    const uint8_t *end = memchr(data, 0, size);
    const size_t json = end ? (size_t)(end - data) : size;
    clv_vocabulary *vocabulary = NULL;
    const clv_status status = clv_vocabulary_tokenizer(runtime, (const char *)data, json, &vocabulary);
    if (status != CLV_OK) {
        REQUIRE(!vocabulary);
        require_said(status);
    } else if (end) {
        encode(vocabulary, (const char *)end + 1, size - json - 1);
    }
    clv_vocabulary_destroy(vocabulary);
    return 0;
}
