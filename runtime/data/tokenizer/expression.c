// SPDX-License-Identifier: Apache-2.0
// Regular expressions of a tokenizer: PCRE2, for what Hugging Face's tokenizers give to Oniguruma. What the two understand differently is
// rewritten or refused.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/unicode.h"
#include "io/shown.h"

bool clv__segments_add(clv__segments *segments, size_t begin, size_t end, bool match) {
    if (segments->n == segments->room &&
        !clv__grow(&segments->all, &segments->room, segments->n + 1, sizeof *segments->all))
        return false;
    segments->all[segments->n++] = (clv__segment){begin, end, match};
    return true;
}

clv_status clv__expression_read(clv__error *error, const char *part, const json_t *pattern,
                                clv__expression **out) {
    size_t bytes = 0;
    const char *text = clv__json_text(pattern, "Regex", &bytes);
    const bool literal = !text;
    if (!text) text = clv__json_text(pattern, "String", &bytes);
    if (!text && json_is_string(pattern))
        text = json_string_value(pattern), bytes = json_string_length(pattern);
    if (!text || bytes == 0)
        CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer: a pattern of its %s is neither a String nor a Regex",
                 part);
    return clv__expression_make(error, text, bytes, literal, out);
}

#ifdef CLEAVE_TOKENIZERS
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

struct clv__expression {
    pcre2_code *code;
};

/** Oniguruma's \w, within a class. */
#define WORD_CLASS                                                                                           \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}\\x{24b6}-\\x{24e9}\\x{1f130}-"    \
    "\\x{1f149}"                                                                                             \
    "\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"

bool clv__expression_there(void) {
    return true;
}

/** What means something else to PCRE2; NULL: nothing. `at`: a character of the expression, `inside`: of a class. */
static const char *differs(const char *at, size_t left, bool inside) {
    static const struct {
        const char *text;
        bool inside;
    } others[] = {{"\\h", false}, {"\\H", false}, {"\\h", true},  {"\\H", true},  {"\\W", true},
                  {"&&", true},   {"(?m", false}, {"\\O", false}, {"\\y", false}, {"\\Y", false}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const size_t n = strlen(others[i].text);
        if (others[i].inside == inside && left >= n && !memcmp(at, others[i].text, n)) return others[i].text;
    }
    if (inside && *at == '[' && !(left > 1 && at[1] == ':')) return "[ in a class";
    if (!inside && *at == '{') { // {1,3}+ repeats that, and is not possessive
        size_t i = 1;
        while (i < left && ((at[i] >= '0' && at[i] <= '9') || at[i] == ',')) i++;
        if (i > 1 && i + 1 < left && at[i] == '}' && at[i + 1] == '+') return "}+";
    }
    return NULL;
}

/** The same expression for PCRE2. */
static clv_status rewrite(clv__error *error, const char *text, size_t bytes, clv__text *out) {
    bool inside = false;
    for (size_t i = 0; i < bytes; i++) {
        const size_t left = bytes - i;
        const char *other = differs(text + i, left, inside);
        if (other)
            CLV_FAIL(error, CLV_E_UNSUPPORTED, "the tokenizer: an expression has %s, which is not supported",
                     other);
        if (text[i] == '\\' && left > 1) {
            const char kind = text[++i];
            if (kind == 'w' && inside)
                clv__text_add(out, "%s", WORD_CLASS);
            else if (kind == 'w' || kind == 'W')
                clv__text_add(out, "[%s%s]", kind == 'W' ? "^" : "", WORD_CLASS);
            else
                clv__text_add_bytes(out, text + i - 1, 2);
            continue;
        }
        if (inside && text[i] == '[') { // [:alpha:]
            const char *end = memchr(text + i, ']', left);
            const size_t n = end ? (size_t)(end - text) - i + 1 : left;
            clv__text_add_bytes(out, text + i, n);
            i += n - 1;
            continue;
        }
        clv__text_add_bytes(out, text + i, 1);
        if (!inside && text[i] == '[') {
            inside = true;
            if (left > 1 && text[i + 1] == '^') clv__text_add_bytes(out, text + ++i, 1);
            if (i + 1 < bytes && text[i + 1] == ']') clv__text_add_bytes(out, text + ++i, 1);
        } else if (inside && text[i] == ']') {
            inside = false;
        }
    }
    return out->failed ? clv__tokenizer_no_memory(error) : CLV_OK;
}

static clv_status compile(clv__error *error, const char *text, size_t bytes, uint32_t options,
                          pcre2_code **out) {
    int code;
    PCRE2_SIZE at;
    PCRE2_UCHAR why[160] = {0};
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context) return clv__tokenizer_no_memory(error);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context, 50);
    *out = pcre2_compile((PCRE2_SPTR)text, bytes, options, &code, &at, context);
    pcre2_compile_context_free(context);
    if (!*out) {
        pcre2_get_error_message(code, why, sizeof why);
        CLV_FAIL(error, CLV_E_FORMAT,
                 "the tokenizer splits by an expression that is wrong at character %zu: %s", (size_t)at,
                 (const char *)why);
    }
    (void)pcre2_jit_compile(*out, PCRE2_JIT_COMPLETE); // without, it is slower
    return CLV_OK;
}

clv_status clv__expression_make(clv__error *error, const char *text, size_t bytes, bool literal,
                                clv__expression **out) {
    clv__text own = {0};
    pcre2_code *code = NULL;
    clv_status status = CLV_OK;
    *out = NULL;
    if (literal)
        status = compile(error, text, bytes, PCRE2_UTF | PCRE2_LITERAL, &code);
    else if ((status = rewrite(error, text, bytes, &own)) == CLV_OK) // ^ and $ are of lines, as in Ruby
        status = compile(error, clv__text_get(&own), own.n, PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &code);
    clv__text_reset(&own);
    if (status != CLV_OK) return status;
    *out = clv__alloc(1, sizeof **out);
    if (*out)
        (*out)->code = code;
    else
        pcre2_code_free(code);
    return *out ? CLV_OK : clv__tokenizer_no_memory(error);
}

/** The text as the expression is to see it: a copy where it has characters that are newer than PCRE2. */
static bool seen_text(const char *text, size_t bytes, char **copy) {
    *copy = NULL;
    for (size_t i = 0, length; i < bytes; i += length) {
        const uint32_t code = clv__utf8_code(text + i, &length);
        const uint32_t stand_in = code < 0x300 ? code : clv__unicode_stand_in(code);
        if (stand_in == code) continue;
        if (!*copy) {
            *copy = malloc(bytes);
            if (!*copy) return false;
            memcpy(*copy, text, bytes);
        }
        clv__text one = {0};
        clv__utf8_put(&one, stand_in);
        if (one.n == length) memcpy(*copy + i, one.data, length);
        clv__text_reset(&one);
    }
    return true;
}

/** Matches one after the other; an empty one right behind a match is none. */
static clv_status find_all(const clv__expression *expression, clv__error *error, const char *text,
                           size_t bytes, pcre2_match_data *match, clv__segments *out) {
    size_t done = 0, from = 0;
    bool any = false;
    while (from <= bytes) {
        const int found =
            pcre2_match(expression->code, (PCRE2_SPTR)text, bytes, from, PCRE2_NO_UTF_CHECK, match, NULL);
        if (found == PCRE2_ERROR_NOMATCH) break;
        if (found < 0)
            CLV_FAIL(error, found == PCRE2_ERROR_NOMEMORY ? CLV_E_HOST_MEMORY : CLV_E_FORMAT,
                     "an expression of the tokenizer takes too long on this text (PCRE2 code %d)", found);
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(match);
        const size_t begin = span[0], end = span[1] > span[0] ? span[1] : span[0];
        if (begin == end && any && end == done) {
            do from++;
            while (from < bytes && ((unsigned char)text[from] & 0xc0) == 0x80);
            continue;
        }
        if ((done < begin && !clv__segments_add(out, done, begin, false)) ||
            !clv__segments_add(out, begin, end, true))
            return clv__tokenizer_no_memory(error);
        done = from = end;
        any = true;
    }
    return done < bytes && !clv__segments_add(out, done, bytes, false) ? clv__tokenizer_no_memory(error)
                                                                       : CLV_OK;
}

clv_status clv__expression_find(const clv__expression *expression, clv__error *error, const char *text,
                                size_t bytes, clv__segments *out) {
    char *copy = NULL;
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    clv_status status = match && seen_text(text, bytes, &copy) ? CLV_OK : clv__tokenizer_no_memory(error);
    if (status == CLV_OK) status = find_all(expression, error, copy ? copy : text, bytes, match, out);
    pcre2_match_data_free(match);
    free(copy);
    return status;
}

void clv__expression_destroy(clv__expression *expression) {
    if (expression) pcre2_code_free(expression->code);
    free(expression);
}
#else
bool clv__expression_there(void) {
    return false;
}

clv_status clv__expression_make(clv__error *error, const char *text, size_t bytes, bool literal,
                                clv__expression **out) {
    (void)text, (void)bytes, (void)literal;
    *out = NULL;
    CLV_FAIL(error, CLV_E_UNSUPPORTED,
             "this build reads no tokenizers: it is without PCRE2 (CLEAVE_TOKENIZERS)");
}

clv_status clv__expression_find(const clv__expression *expression, clv__error *error, const char *text,
                                size_t bytes, clv__segments *out) {
    (void)expression, (void)error, (void)text, (void)bytes, (void)out;
    return CLV_OK;
}

void clv__expression_destroy(clv__expression *expression) {
    (void)expression;
}
#endif
