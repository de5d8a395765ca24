// SPDX-License-Identifier: Apache-2.0
// The nearest of many names, by the edits that a typing hand makes (Damerau 1964: optimal string alignment).
#include "base/nearest.h"
#include "base/text.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_LETTERS = 63 };

static int least(int a, int b) {
    return a < b ? a : b;
}

/** A name of at most MOST_LETTERS, in lower case. */
typedef struct letters {
    int n;
    char at[MOST_LETTERS];
} letters;

static letters letters_of(const char *text, size_t n) {
    letters out = {.n = (int)n};
    for (size_t i = 0; i < n; i++) out.at[i] = clv__lower(text[i]);
    return out;
}

/** Letters to insert, remove, replace, or swap with their neighbour until `a` is the first m of `b`. */
static int edits(const letters *a, const letters *b, int m) {
    int rows[3][MOST_LETTERS + 1];
    int *before = rows[0], *above = rows[1], *row = rows[2];
    for (int j = 0; j <= m; j++) row[j] = j;
    for (int i = 1; i <= a->n; i++) {
        int *oldest = before;
        before = above;
        above = row;
        row = oldest;
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            bool same = a->at[i - 1] == b->at[j - 1];
            row[j] = least(above[j - 1] + !same, 1 + least(above[j], row[j - 1]));
            if (i > 1 && j > 1 && a->at[i - 1] == b->at[j - 2] && a->at[i - 2] == b->at[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return row[m];
}

/** How many edits a name may be away from a word of n letters. */
static int most_edits(int n) {
    return (n + 2) / 3;
}

/** How far a name is from the word. A word of three letters or more that the name begins with is one edit
 *  away: people stop typing, or forget a number. Lengths that differ too much tell without a look at the
 *  letters. */
static int distance(const letters *word, const letters *name) {
    bool begins = word->n >= 3 && word->n < name->n && !memcmp(word->at, name->at, (size_t)word->n);
    if (begins) return 1;
    int longer = word->n > name->n ? word->n - name->n : name->n - word->n;
    return longer > most_edits(word->n) ? longer : edits(word, name, name->n);
}

/** A pattern's stem is held against as many letters of the name. */
static int stem_distance(const letters *stem, const letters *name) {
    int best = stem->n + 1;
    for (int length = stem->n - 1; length <= stem->n + 1; length++)
        if (length >= 1 && length <= name->n) best = least(best, edits(stem, name, length));
    return best;
}

void clv__nearest_offer(clv__nearest *nearest, const char *name) {
    size_t n = strlen(nearest->word), m = strlen(name);
    bool wild = n && nearest->word[n - 1] == '*';
    while (n && (nearest->word[n - 1] == '*' || nearest->word[n - 1] == '.')) n--;
    if (!n || !m || n > MOST_LETTERS || m > MOST_LETTERS) return;
    const letters word = letters_of(nearest->word, n), other = letters_of(name, m);
    int far = wild ? stem_distance(&word, &other) : distance(&word, &other);
    if (far > most_edits(word.n) || far >= word.n || (*nearest->name && far >= nearest->edits)) return;
    nearest->edits = far;
    snprintf(nearest->name, sizeof nearest->name, "%s", name);
}

const char *clv__nearest_text(clv__nearest *nearest) {
    *nearest->text = 0;
    if (*nearest->name) snprintf(nearest->text, sizeof nearest->text, "; did you mean '%s'?", nearest->name);
    return nearest->text;
}

// ---- names of files ---------------------------------------------------------------------------------------

/** Not hidden, and without bytes that would move a cursor. */
static int can_be_told(const struct dirent *entry) {
    const char *at = entry->d_name;
    if (*at == '.') return 0;
    while ((unsigned char)*at >= ' ' && *at != 127) at++;
    return !*at;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

/** Offer a file's name; an ending that both have tells nothing of how near they are. */
static void offer_file(clv__nearest *nearest, const char *name) {
    const char *dot = strrchr(nearest->word, '.'), *other = strrchr(name, '.');
    const size_t n = dot ? (size_t)(dot - nearest->word) : 0, m = other ? (size_t)(other - name) : 0;
    if (n && m && n <= MOST_LETTERS && m <= MOST_LETTERS && clv__same_word(dot, other)) {
        const letters word = letters_of(nearest->word, n), stem = letters_of(name, m);
        if (distance(&word, &stem) > (n < 3 ? 1 : (int)n / 3)) return;
    }
    clv__nearest_offer(nearest, name);
}

/** Where the folder is not there: the nearest to its name, with what stands behind it if that is there. */
static const char *nearest_folder(clv__nearest *nearest, const char *folder, const char *rest) {
    char whole[sizeof nearest->name];
    clv__nearest_file(nearest, folder);
    snprintf(whole, sizeof whole, "%.*s%s", (int)(sizeof whole - 1 - strlen(rest)), nearest->name, rest);
    if (*nearest->name && access(whole, F_OK) == 0) memcpy(nearest->name, whole, sizeof whole);
    return clv__nearest_text(nearest);
}

const char *clv__nearest_file(clv__nearest *nearest, const char *path) {
    const char *slash = strrchr(path, '/');
    struct dirent **names = NULL;
    *nearest = (clv__nearest){.word = slash ? slash + 1 : path};
    char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    const int n = folder ? scandir(folder, &names, can_be_told, by_name) : 0;
    if (n < 0 && slash && slash != path && access(folder, F_OK) != 0 &&
        strlen(slash) < sizeof nearest->name) {
        const char *text = nearest_folder(nearest, folder, slash);
        free(folder);
        return text;
    }
    for (int i = 0; i < n; i++) {
        offer_file(nearest, names[i]->d_name);
        free(names[i]);
    }
    const size_t before = slash ? (size_t)(slash + 1 - path) : 0, n_name = strlen(nearest->name);
    if (n_name && before && before + n_name < sizeof nearest->name) {
        memmove(nearest->name + before, nearest->name, n_name + 1);
        memcpy(nearest->name, path, before);
    }
    free(names);
    free(folder);
    return clv__nearest_text(nearest);
}
