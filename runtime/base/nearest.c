// SPDX-License-Identifier: Apache-2.0
// The nearest of many names, by the edits that a typing hand makes (Damerau 1964: optimal string alignment).
#include "cleave/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MOST_LETTERS = 63 };

static int lower(char letter) {
    return tolower((unsigned char)letter);
}

static int least(int a, int b) {
    return a < b ? a : b;
}

/** Letters to insert, remove, replace, or swap with their neighbour, in any case, until `a` is `b`; both
 *  short. */
static int edits(const char *a, int n, const char *b, int m) {
    int rows[3][MOST_LETTERS + 1];
    int *before = rows[0], *above = rows[1], *row = rows[2];
    for (int j = 0; j <= m; j++) row[j] = j;
    for (int i = 1; i <= n; i++) {
        int *oldest = before;
        before = above;
        above = row;
        row = oldest;
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            bool same = lower(a[i - 1]) == lower(b[j - 1]);
            row[j] = least(above[j - 1] + !same, 1 + least(above[j], row[j - 1]));
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return row[m];
}

/** How far a name is from the word. A word of three letters or more that the name begins with is one edit
 *  away from it: people stop typing, or forget a number. */
static int distance(const char *word, int n, const char *name, int m) {
    int far = edits(word, n, name, m);
    bool begins = n >= 3 && n < m && edits(word, n, name, n) == 0;
    return begins && far > 1 ? 1 : far;
}

/** A pattern's stem is held against as many letters of the name. */
static int stem_distance(const char *stem, int n, const char *name, int m) {
    int best = n + 1;
    for (int length = n - 1; length <= n + 1; length++)
        if (length >= 1 && length <= m) best = least(best, edits(stem, n, name, length));
    return best;
}

void clv_nearest_offer(clv_nearest *nearest, const char *name) {
    size_t n = strlen(nearest->word), m = strlen(name);
    bool wild = n && nearest->word[n - 1] == '*';
    while (n && (nearest->word[n - 1] == '*' || nearest->word[n - 1] == '.')) n--;
    if (!n || !m || n > MOST_LETTERS || m > MOST_LETTERS) return;
    int far = wild ? stem_distance(nearest->word, (int)n, name, (int)m)
                   : distance(nearest->word, (int)n, name, (int)m);
    if (far > (int)(n + 2) / 3 || (*nearest->name && far >= nearest->edits)) return;
    nearest->edits = far;
    snprintf(nearest->name, sizeof nearest->name, "%s", name);
}

const char *clv_nearest_text(clv_nearest *nearest) {
    *nearest->text = 0;
    if (*nearest->name) snprintf(nearest->text, sizeof nearest->text, "; did you mean '%s'?", nearest->name);
    return nearest->text;
}
