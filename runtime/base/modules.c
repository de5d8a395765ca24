// SPDX-License-Identifier: Apache-2.0
#include "base/modules.h"

#include <fnmatch.h>
#include <string.h>

enum { NAME_BYTES = 1024 };

bool clv__patterns_take(const char **rest, char pattern[CLV__PATTERN_BYTES]) {
    while (*rest && **rest) {
        size_t n = strcspn(*rest, ",");
        const char *item = *rest;
        *rest += n + ((*rest)[n] == ',');
        while (n && strchr(" \t", *item)) item++, n--;
        while (n && strchr(" \t", item[n - 1])) n--;
        if (!n) continue;
        if (n >= CLV__PATTERN_BYTES) n = CLV__PATTERN_BYTES - 1; // matches nothing, and is told of
        memcpy(pattern, item, n);
        pattern[n] = 0;
        return true;
    }
    return false;
}

/** Copy the next longer module of a name, or the name itself, to `module`; 0 past the end. Begin with length
 *  0. */
static size_t next_module(const char *name, size_t length, char module[NAME_BYTES]) {
    if (length && !name[length]) return 0;
    length += length > 0; // its dot
    length += strcspn(name + length, ".");
    if (length >= NAME_BYTES) return 0;
    memcpy(module, name, length);
    module[length] = 0;
    return length;
}

bool clv__pattern_covers(const char *pattern, const char *name) {
    char module[NAME_BYTES];
    for (size_t n = next_module(name, 0, module); n; n = next_module(name, n, module))
        if (fnmatch(pattern, module, 0) == 0) return true;
    return false;
}

bool clv__patterns_cover(const char *patterns, const char *name) {
    char pattern[CLV__PATTERN_BYTES];
    while (clv__patterns_take(&patterns, pattern))
        if (clv__pattern_covers(pattern, name)) return true;
    return false;
}

void clv__nearest_offer_modules(clv__nearest *nearest, const char *name) {
    char module[NAME_BYTES];
    for (size_t n = next_module(name, 0, module); n; n = next_module(name, n, module))
        clv__nearest_offer(nearest, module);
}
