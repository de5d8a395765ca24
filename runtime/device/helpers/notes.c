// SPDX-License-Identifier: Apache-2.0
// What was found out about a device's compiler: see notes.h.
#include "device/helpers/notes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/text.h"
#include "device/cache.h"
#include "device/kernel_sources.h"

/** Of the kernels too: what one text did tells nothing of another. */
static clv__cache_key key_of(const clv_device *device) {
    XXH64_hash_t hash = 0;
    for (const clv__kernel_source *source = clv__kernel_sources; source->stem; source++)
        hash = XXH3_64bits_withSeed(source->text, source->bytes, hash);
    char kernels[20];
    snprintf(kernels, sizeof kernels, "%016" PRIx64, (uint64_t)hash);
    return clv__cache_key_of(device, kernels, "notes of builds, 1");
}

/** All notes, malloc'd; "" if there are none; NULL if memory is out. */
static char *notes_read(const clv_device *device) {
    void *bytes = NULL;
    size_t n = 0;
    if (device->runtime->config.no_cache || !clv__cache_read(device, key_of(device), &bytes, &n))
        return clv__strdup("");
    char *text = clv__alloc(n + 1, 1);
    if (text) memcpy(text, bytes, n);
    free(bytes);
    return text;
}

/** Does the line begin with these words? */
static bool begins(const char *line, const char *word) {
    size_t n = strlen(word);
    return strncmp(line, word, n) == 0 && line[n] == ' ';
}

static const char *next_line(const char *line) {
    const char *end = strchr(line, '\n');
    return end ? end + 1 : line + strlen(line);
}

long clv__notes_number(const clv_device *device, const char *word) {
    char *text = notes_read(device);
    long number = 0;
    for (const char *line = text; line && *line; line = next_line(line)) {
        if (begins(line, word)) number = strtol(line + strlen(word), NULL, 10);
    }
    free(text);
    return number < 0 ? 0 : number;
}

void clv__notes_keep(clv_device *device, const char *word, const char *rest) {
    if (device->runtime->config.no_cache) return;
    char *text = notes_read(device);
    clv__text all = {0};
    for (const char *line = text; line && *line; line = next_line(line)) {
        if (!begins(line, word)) clv__text_add_bytes(&all, line, (size_t)(next_line(line) - line));
    }
    clv__text_add(&all, "%s ", word);
    size_t at = all.n;
    clv__text_add(&all, "%s", rest);
    for (; !all.failed && at < all.n; at++) {
        if (all.data[at] == '\n' || all.data[at] == '\r') all.data[at] = ' ';
    }
    clv__text_add(&all, "\n");
    if (text && !all.failed) clv__cache_write(device, key_of(device), all.data, all.n);
    clv__text_reset(&all);
    free(text);
}

void clv__notes_avoid(clv_device *device, const char *op, const char *variant, const char *why) {
    if (clv__compiler_is_trusted(device)) return;
    clv__text word = {0};
    clv__text_add(&word, "avoid %s %s", op, variant);
    if (!word.failed) clv__notes_keep(device, word.data, why);
    clv__text_reset(&word);
}

/** End the word here and go to the next one; NULL: there is none. */
static char *cut(char *word) {
    char *end = word ? strchr(word, ' ') : NULL;
    if (end) *end++ = 0;
    return end;
}

bool clv__notes_avoided(const clv_device *device,
                        bool (*tell)(void *user, const char *op, const char *variant, const char *why),
                        void *user) {
    char *text = notes_read(device);
    bool told = text != NULL;
    for (char *line = text, *next; told && *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next) *next++ = 0;
        if (!begins(line, "avoid")) continue;
        char *op = cut(line), *variant = cut(op), *why = cut(variant);
        if (why) told = tell(user, op, variant, why);
    }
    free(text);
    return told;
}

bool clv__compiler_is_trusted(const clv_device *device) {
    return device->traits.compiler == CLV__NO_COMPILER ||
           (device->traits.compiler == CLV__COMPILER_SOUND && !clv__notes_number(device, "dies"));
}
