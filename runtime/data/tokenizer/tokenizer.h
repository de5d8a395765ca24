// SPDX-License-Identifier: Apache-2.0
// The parts of a tokenizer.json, in the order in which a text goes through them: added tokens are found, what lies between is normalized and
// split into words, a model makes tokens of each word; a decoder makes a text of tokens. Each part reads its own section of the JSON and
// does not change once made. What each does is Hugging Face's definition (PyPI: tokenizers), which tests hold it against.
#ifndef CLV_DATA_TOKENIZER_H
#define CLV_DATA_TOKENIZER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/tokenizer/bpe.h"
#include "data/tokenizer/names.h"
#include "data/vocabulary.h"

enum {
    CLV__MOST_STEPS = 32, // of a Sequence
    CLV__MOST_DEPTH = 8,  // of Sequences in one another
    CLV__MOST_NAME =
        1024, // bytes of an added token, and of one of Unigram: what is looked at from each place in a text
    CLV__MOST_TOKENS = 1 << 22 // numbers of tokens
};

// ---- the JSON -----------------------------------------------------------------------------------------------------

/** A member's string, and its bytes; NULL: there is none. */
const char *clv__json_text(const json_t *object, const char *key, size_t *bytes);
/** A member that is true or false; `otherwise` where it is not there or null. */
bool clv__json_flag(const json_t *object, const char *key, bool otherwise);
/** Is object.type this? */
bool clv__json_is(const json_t *object, const char *type);
/** A part is of a type that is not read. */
clv_status clv__json_unknown(clv__error *error, const char *part, const json_t *object);
/** Call `add` with the object, or with each member of a Sequence, and of those in it. NULL and null are none. */
clv_status clv__json_steps(clv__error *error, const char *part, const char *members, const json_t *object,
                           void *to, clv_status (*add)(clv__error *error, const json_t *step, void *to));
clv_status clv__tokenizer_no_memory(clv__error *error);
/** A word needs a token for what is unknown, and there is none. */
clv_status clv__tokenizer_unknown(clv__error *error, const char *word, size_t bytes);
/** Is a text that was made of `bytes` so much larger that the file means harm? Then says so. */
clv_status clv__tokenizer_check_growth(clv__error *error, const char *part, const clv__text *made,
                                       size_t bytes);

// ---- regular expressions (PCRE2) ------------------------------------------------------------------------------------

/** A stretch of a text: what an expression matches, or what lies between. */
typedef struct clv__segment {
    size_t begin, end;
    bool match;
} clv__segment;
/** All of them, in order. Zero-initialised is empty. */
typedef struct clv__segments {
    clv__segment *all;
    size_t n, room;
} clv__segments;

/** False: no memory. */
bool clv__segments_add(clv__segments *segments, size_t begin, size_t end, bool match);

typedef struct clv__expression clv__expression;

/** Is there what matches expressions? */
bool clv__expression_there(void);
/**
 * An expression in the syntax of Oniguruma, as far as PCRE2 means the same by it.
 *
 * Errors  CLV_E_FORMAT  what is wrong with it, and where;  CLV_E_UNSUPPORTED  what means something else;  a build without PCRE2
 */
clv_status clv__expression_make(clv__error *error, const char *text, size_t bytes, bool literal,
                                clv__expression **out);
/** A pattern of the JSON: {"String": ...}, {"Regex": ...}, or a string. */
clv_status clv__expression_read(clv__error *error, const char *part, const json_t *pattern,
                                clv__expression **out);
/** Append all of a text, which is UTF-8. Errors: CLV_E_FORMAT  it takes too long on this text;  CLV_E_HOST_MEMORY */
clv_status clv__expression_find(const clv__expression *expression, clv__error *error, const char *text,
                                size_t bytes, clv__segments *out);
void clv__expression_destroy(clv__expression *expression);

// ---- normalizer -----------------------------------------------------------------------------------------------------

typedef struct clv__normalizer {
    struct clv__normalizer_step *steps;
    int n;
} clv__normalizer;

clv_status clv__normalizer_read(clv__error *error, const json_t *json, clv__normalizer *out);
/** Append the normalized text. *first: it still begins with what the text began with; untouched where it does. */
clv_status clv__normalizer_run(const clv__normalizer *normalizer, clv__error *error, const char *text,
                               size_t bytes, clv__text *out, bool *first);
void clv__normalizer_reset(clv__normalizer *normalizer);

/** A table of replacements, as SentencePiece compiles it. */
typedef struct clv__charsmap clv__charsmap;
/** From base64. Errors: CLV_E_FORMAT */
clv_status clv__charsmap_make(clv__error *error, const char *base64, size_t bytes, clv__charsmap **out);
/** Append the text with its replacements. Errors: CLV_E_FORMAT  it becomes too large;  CLV_E_HOST_MEMORY */
clv_status clv__charsmap_run(const clv__charsmap *map, clv__error *error, const char *text, size_t bytes,
                             clv__text *out, bool *first);
void clv__charsmap_destroy(clv__charsmap *map);

// ---- words ----------------------------------------------------------------------------------------------------------

/** A word to be. `first`: it begins where the whole text does. */
typedef struct clv__piece {
    const char *text;
    size_t bytes;
    bool first;
} clv__piece;

typedef clv_status clv__on_piece(void *user, clv__piece piece);

typedef struct clv__pretokenizer {
    struct clv__pretokenizer_step *steps;
    int n;
} clv__pretokenizer;

clv_status clv__pretokenizer_read(clv__error *error, const json_t *json, clv__pretokenizer *out);
/** Call `on_piece` with each word, in order; an empty one is none. */
clv_status clv__pretokenizer_run(const clv__pretokenizer *pretokenizer, clv__error *error, clv__piece text,
                                 clv__on_piece *on_piece, void *user);
void clv__pretokenizer_reset(clv__pretokenizer *pretokenizer);

/** Append bytes as the characters that stand for them in byte-level vocabularies. */
void clv__byte_level_put(clv__text *out, const char *bytes, size_t n);
/** Append the bytes that characters stand for; false, and nothing appended: one stands for none. */
bool clv__byte_level_get(clv__text *out, const char *text, size_t n);

// ---- models ---------------------------------------------------------------------------------------------------------

typedef enum clv__model_kind { CLV__BPE, CLV__UNIGRAM, CLV__WORDPIECE, CLV__WORDLEVEL } clv__model_kind;

typedef struct clv__model {
    clv__model_kind kind;
    clv__token_names names;
    int32_t unknown; // -1: there is none
    bool fuse_unknown, byte_fallback, whole_words;
    int32_t bytes[256];          // with byte_fallback: tokens <0x00> to <0xFF>; -1: there is none
    const char *prefix, *suffix; // of subwords within a word, and of its last one; the JSON's
    size_t prefix_bytes, suffix_bytes;
    clv__bpe bpe;
    double *scores; // of Unigram, by token
    double unknown_score;
    int64_t most_characters; // of a word of WordPiece
} clv__model;

/** Room for the work on one word after another. All zero is empty. */
typedef struct clv__model_work {
    clv__bpe_work bpe;
    clv__tokens tokens;
    clv__text text;
    struct clv__best *best;
    size_t room;
} clv__model_work;

/** json stays as long as the model. */
clv_status clv__model_read(clv__error *error, const json_t *json, clv__model *out);
clv_status clv__unigram_read(clv__error *error, const json_t *json, clv__model *out);
/** Append the tokens of a word. */
clv_status clv__model_run(const clv__model *model, clv__error *error, clv__model_work *work, const char *word,
                          size_t bytes, clv__tokens *out);
clv_status clv__unigram_run(const clv__model *model, clv__error *error, clv__model_work *work,
                            const char *word, size_t bytes, clv__tokens *out);
clv_status clv__wordpiece_run(const clv__model *model, clv__error *error, clv__model_work *work,
                              const char *word, size_t bytes, clv__tokens *out);
void clv__model_work_reset(clv__model_work *work);
void clv__model_reset(clv__model *model);

// ---- added tokens ---------------------------------------------------------------------------------------------------

typedef struct clv__added_token {
    const char *content; // the JSON's, or normalized
    size_t bytes;
    int32_t token;
    bool single_word, left, right, normalized, special;
} clv__added_token;

typedef struct clv__added {
    clv__added_token *all;
    size_t n;
    clv__arena texts; // normalized ones
    clv__token_names raw,
        normalized; // of what is looked for in a text as it is, and as it is normalized: places in `all`
} clv__added;

clv_status clv__added_read(clv__error *error, const json_t *json, const clv__normalizer *normalizer,
                           clv__added *out);
/** Call `on_text` with what lies between, `on_token` with what is found. */
clv_status clv__added_find(const clv__added *added, bool normalized, clv__piece text, clv__on_piece *on_text,
                           clv_status (*on_token)(void *user, int32_t token), void *user);
void clv__added_reset(clv__added *added);

// ---- decoder --------------------------------------------------------------------------------------------------------

typedef struct clv__decoder {
    struct clv__decoder_step *steps;
    int n;
} clv__decoder;

/** Strings one behind the other. Zero-initialised is empty. */
typedef struct clv__strings {
    clv__text text;
    size_t *ends;
    size_t n, room;
} clv__strings;

/** The last string ends here. */
void clv__strings_end(clv__strings *strings);

clv_status clv__decoder_read(clv__error *error, const json_t *json, clv__decoder *out);
/** Does a name of a token stand for bytes? */
bool clv__decoder_of_bytes(const clv__decoder *decoder);
/** The names of tokens become a text; they are used up. */
clv_status clv__decoder_run(const clv__decoder *decoder, clv__error *error, clv__strings *names,
                            clv__text *out);
void clv__decoder_reset(clv__decoder *decoder);

#endif
