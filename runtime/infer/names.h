// SPDX-License-Identifier: Apache-2.0
// A list of names for a sentence: counts all, writes as many as fit.
#ifndef CLV_INFER_NAMES_H
#define CLV_INFER_NAMES_H

#include <stdio.h>
#include <string.h>

typedef struct clv__told_names {
    int n;
    char text[400]; // `'a', 'b'`, with `...` where it was cut
} clv__told_names;

static inline void clv__told_add_text(clv__told_names *names, const char *text) {
    size_t used = strlen(names->text), length = strlen(text);
    names->n++;
    if (used + length + 12 < sizeof names->text)
        snprintf(names->text + used, sizeof names->text - used, "%s%s", used ? ", " : "", text);
    else if (used < 3 || strcmp(names->text + used - 3, "..."))
        snprintf(names->text + used, sizeof names->text - used, "%s...", used ? ", " : "");
}

static inline void clv__told_add(clv__told_names *names, const char *name) {
    char quoted[sizeof names->text];
    snprintf(quoted, sizeof quoted, "'%s'", name);
    clv__told_add_text(names, quoted);
}

#endif
