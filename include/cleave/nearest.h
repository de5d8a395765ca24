// SPDX-License-Identifier: Apache-2.0
// The nearest name for a mistyped one: what every sentence of the library and of the command line says of unknown names.
//
//     clv_nearest nearest = {.word = "restnet18"};
//     for (int i = 0; clv_model_get(i); i++) clv_nearest_offer(&nearest, clv_model_get(i)->name);
//     printf("unknown model '%s'%s\n", nearest.word, clv_nearest_text(&nearest));   // ...; did you mean 'resnet18'?
#ifndef CLEAVE_NEAREST_H
#define CLEAVE_NEAREST_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef CLEAVE_STABLE_ONLY // experimental

/** Begin with the word and zeros. */
typedef struct clv_nearest {
    const char *word; /**< as it was typed; a pattern's `*` or `.*` at its end stands for any letters */
    char name[64];    /**< the nearest that was offered, the first of equals; "" if none is near */
    int edits;        /**< between the two */
    char text[96];    /**< of clv_nearest_text */
} clv_nearest;

/**
 * Offer a name. It is near if at most a third of the word's letters (rounded up) have to be inserted, removed, replaced, or swapped
 * with their neighbour, or if the word is its beginning. Letters match in any case; names above 63 letters are never near.
 */
CLV_API void clv_nearest_offer(CLV_INOUT clv_nearest *nearest, const char *name);

/** `; did you mean 'NAME'?` to put behind a sentence, or "". Borrowed, until the structure goes. */
CLV_API const char *clv_nearest_text(CLV_INOUT clv_nearest *nearest);

/** The same for a file that is not there: the nearest name in its folder. Everything in *nearest is set. */
CLV_API const char *clv_nearest_file(CLV_INOUT clv_nearest *nearest, CLV_KEPT const char *path);

#endif // CLEAVE_STABLE_ONLY

#ifdef __cplusplus
}
#endif
#endif
