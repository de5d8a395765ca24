// SPDX-License-Identifier: Apache-2.0
// The nearest name for a mistyped one: what every sentence of the library and of the command line says of
// unknown names.
//
//     clv__nearest nearest = {.word = "restnet18"};
//     for (int i = 0; clv_model_get(i); i++) clv__nearest_offer(&nearest, clv_model_get(i)->name);
//     printf("no model '%s'%s\n", nearest.word, clv__nearest_text(&nearest)); // ; did you mean 'resnet18'?
#ifndef CLV_BASE_NEAREST_H
#define CLV_BASE_NEAREST_H

/** Begin with the word and zeros. */
typedef struct clv__nearest {
    const char *word; /**< as it was typed; a pattern's `*` or `.*` at its end stands for any letters */
    char name[256];   /**< the nearest that was offered, the first of equals; "" if none is near */
    int edits;        /**< between the two */
    char text[300];   /**< of clv__nearest_text */
} clv__nearest;

/**
 * Offer a name. It is near if at most a third of the word's letters (rounded up) have to be inserted,
 * removed, replaced, or swapped with their neighbour, or if the word is its beginning. Letters match in
 * any case; names above 63 letters, and ones without a letter in common, are never
 * near.
 */
void clv__nearest_offer(clv__nearest *nearest, const char *name);

/** `; did you mean 'NAME'?` to put behind a sentence, or "". Borrowed, until the structure goes. */
const char *clv__nearest_text(clv__nearest *nearest);

/** The same for a file that is not there: the nearest name in its folder, with the folder; or where that is
 *  not there, either, the folder nearest to its name. An ending that both names have does not make them near.
 *  Everything in *nearest is set. */
const char *clv__nearest_file(clv__nearest *nearest, const char *path);

#endif
