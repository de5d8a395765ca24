// SPDX-License-Identifier: Apache-2.0
// A vocabulary of any kind.
#include "data/dataset.h"
#include "data/vocabulary.h"
#include "io/array.h"

clv_status clv_vocabulary_create(clv_runtime *runtime, clv_vocabulary_kind kind, const char *text,
                                 size_t bytes, clv_vocabulary **out) {
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), out));
    switch (kind) {
    case CLV_VOCABULARY_BYTES: return clv__vocabulary_bytes(runtime, out);
    case CLV_VOCABULARY_CHARACTERS: return clv__vocabulary_characters(runtime, text, bytes, out);
    case CLV_VOCABULARY_TOKENIZER: return clv__vocabulary_tokenizer(runtime, text, bytes, out);
    }
    CLV_FAIL(clv__io_error(runtime), CLV_E_VALUE, "there is no vocabulary of the kind %d", (int)kind);
}
