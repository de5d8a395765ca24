// SPDX-License-Identifier: Apache-2.0
#include "data/split.h"

#ifdef CLEAVE_TOKENIZERS
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

bool clv__split_there(void) {
    return true;
}

clv_status clv__split_add(clv__split *split, clv__error *error, const char *expression, size_t bytes) {
    if (split->n == CLV__MOST_SPLITS)
        CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer splits by more than %d expressions", CLV__MOST_SPLITS);
    int code;
    PCRE2_SIZE at;
    PCRE2_UCHAR why[160] = {0};
    pcre2_code *made = pcre2_compile((PCRE2_SPTR)expression, bytes, PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
    if (!made) {
        pcre2_get_error_message(code, why, sizeof why);
        CLV_FAIL(error, CLV_E_FORMAT,
                 "the tokenizer splits by an expression that is wrong at character %zu: %s", (size_t)at,
                 (const char *)why);
    }
    (void)pcre2_jit_compile(made, PCRE2_JIT_COMPLETE); // without, it is slower
    split->expressions[split->n++] = made;
    return CLV_OK;
}

/** What one walk over a text needs. */
typedef struct walk {
    const clv__split *split;
    clv__error *error;
    pcre2_match_data *match; // of one expression at a time: where it was found is kept apart
    clv__on_piece *on_piece;
    void *user;
    bool stopped;
} walk;

static clv_status walk_from(walk *w, int level, const char *text, size_t bytes) {
    if (w->stopped || bytes == 0) return CLV_OK;
    if (level == w->split->n) {
        w->stopped = !w->on_piece(w->user, text, bytes);
        return CLV_OK;
    }
    const pcre2_code *expression = w->split->expressions[level];
    size_t done = 0, from = 0; // what pieces were made of; where to look on
    while (from < bytes && !w->stopped) {
        const int found =
            pcre2_match(expression, (PCRE2_SPTR)text, bytes, from, PCRE2_NO_UTF_CHECK, w->match, NULL);
        if (found == PCRE2_ERROR_NOMATCH) break;
        if (found < 0)
            CLV_FAIL(w->error, found == PCRE2_ERROR_NOMEMORY ? CLV_E_HOST_MEMORY : CLV_E_FORMAT,
                     "an expression of the tokenizer takes too long on this text (PCRE2 code %d)", found);
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(w->match);
        const size_t begin = span[0], end = span[1];
        if (end <= begin) { // an empty text was matched: split there, and look behind the next character
            CLV_TRY(walk_from(w, level + 1, text + done, begin - done));
            done = begin;
            from = begin > from ? begin : from;
            do from++;
            while (from < bytes && ((unsigned char)text[from] & 0xc0) == 0x80);
            continue;
        }
        CLV_TRY(walk_from(w, level + 1, text + done, begin - done));
        CLV_TRY(walk_from(w, level + 1, text + begin, end - begin));
        done = from = end;
    }
    return walk_from(w, level + 1, text + done, bytes - done);
}

clv_status clv__split_run(const clv__split *split, clv__error *error, const char *text, size_t bytes,
                          clv__on_piece *on_piece, void *user) {
    walk w = {.split = split, .error = error, .on_piece = on_piece, .user = user};
    w.match = pcre2_match_data_create(1, NULL);
    if (!w.match) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory to split a text");
    const clv_status status = walk_from(&w, 0, text, bytes);
    pcre2_match_data_free(w.match);
    return status;
}

void clv__split_reset(clv__split *split) {
    for (int i = 0; i < split->n; i++) pcre2_code_free(split->expressions[i]);
    *split = (clv__split){0};
}
#else
bool clv__split_there(void) {
    return false;
}

clv_status clv__split_add(clv__split *split, clv__error *error, const char *expression, size_t bytes) {
    (void)split, (void)expression, (void)bytes;
    CLV_FAIL(error, CLV_E_UNSUPPORTED,
             "this build reads no tokenizers: it is without PCRE2 (CLEAVE_TOKENIZERS)");
}

clv_status clv__split_run(const clv__split *split, clv__error *error, const char *text, size_t bytes,
                          clv__on_piece *on_piece, void *user) {
    (void)split, (void)error;
    on_piece(user, text, bytes);
    return CLV_OK;
}

void clv__split_reset(clv__split *split) {
    *split = (clv__split){0};
}
#endif
