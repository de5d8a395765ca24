// SPDX-License-Identifier: Apache-2.0
// The text of a program, assembled of kernel sources. Nothing here knows a device. See source.h for what it
// looks like.
#define XXH_STATIC_LINKING_ONLY
#include "device/source.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "device/f16.h"
#include "device/matrix.h"
#include "device/sub_groups.h"
#include "device/program.h"

// OpenCL C 1.2 is the floor, and no fast-math (see numbers in the design). No warnings: drivers made from
// clang print how many there were past the library, to stderr. DPAS' fragments need a thread's 256 registers,
// which are half as many threads: only its programs have them.
#define OPTIONS "-cl-std=CL1.2 -w"

const char *clv__program_options(const char *source) {
    const bool dpas =
        strstr(source, "#define MATRIX_UNIT 5\n") &&
        (strstr(source, "#define MATRIX_TYPE f16\n") || strstr(source, "#define MATRIX_TYPE bf16\n"));
    return dpas ? OPTIONS " -cl-intel-256-GRF-per-thread" : OPTIONS;
}

/** A source that is not the library's. Never given back: plans of any runtime may name it. */
typedef struct brought {
    clv__kernel_source source;
    struct brought *next;
} brought;
static brought *all_brought;
static pthread_mutex_t brought_lock = PTHREAD_MUTEX_INITIALIZER;

const clv__kernel_source *clv__source_find(const char *stem) {
    for (const clv__kernel_source *source = clv__kernel_sources; source->stem; source++) {
        if (strcmp(source->stem, stem) == 0) return source;
    }
    const clv__kernel_source *found = NULL;
    pthread_mutex_lock(&brought_lock);
    for (const brought *b = all_brought; b && !found; b = b->next)
        if (strcmp(b->source.stem, stem) == 0) found = &b->source;
    pthread_mutex_unlock(&brought_lock);
    return found;
}

bool clv__source_bring(const char *stem, const char *text) {
    brought *b = clv__alloc(1, sizeof *b);
    if (!b) return false;
    b->source = (clv__kernel_source){.stem = stem, .text = text, .bytes = strlen(text)};
    pthread_mutex_lock(&brought_lock);
    b->next = all_brought;
    all_brought = b;
    pthread_mutex_unlock(&brought_lock);
    return true;
}

uint64_t clv__source_hash(uint64_t text_hash, const char *defines) {
    return XXH3_64bits_withSeed(defines, strlen(defines), text_hash);
}

// ---- Lines ------------------------------------------------------------------------------------------------

static const char *next_line(const char *line) {
    const char *end = strchr(line, '\n');
    return end ? end + 1 : line + strlen(line);
}

/** The word of a preprocessor's line, where the blanks after # end; NULL: the line is none. */
static const char *directive_of(const char *line) {
    line += strspn(line, " \t");
    return *line == '#' ? line + 1 + strspn(line + 1, " \t") : NULL;
}

static bool begins(const char *text, const char *word) {
    return strncmp(text, word, strlen(word)) == 0;
}

static size_t name_length(const char *text) {
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
}

// ---- Kernels of a file ------------------------------------------------------------------------------------

/** A kernel with lines of its own, that can be left out. */
typedef struct block {
    const char *begin, *end; // its lines, the last newline included
    const char *entry;       // its name, not ended
    size_t entry_length;
} block;

/** The block that begins with this line, if all in it is its own. */
static bool read_block(const char *begin, block *out) {
    int depth = 0;
    for (const char *line = next_line(begin); *line; line = next_line(line)) {
        const char *directive = directive_of(line);
        if (directive && begins(directive, "if")) {
            depth++;
        } else if (directive && (begins(directive, "el") || begins(directive, "endif"))) {
            if (depth == 0) return false; // half of it belongs to an #if before it
            depth -= begins(directive, "endif");
        } else if (*line == '}') {
            if (depth > 0) return false;
            *out = (block){.begin = begin, .end = next_line(line)};
            const char *name = strstr(begin, "KERNEL(");
            if (!name || name >= out->end) return false;
            out->entry = name + strlen("KERNEL(");
            out->entry_length = name_length(out->entry);
            return true;
        }
    }
    return false;
}

/** The first block at or behind `at`, which is the start of a line. */
static bool next_block(const char *at, block *out) {
    bool continued = false; // the line belongs to the macro of the one before
    for (const char *line = at, *next; *line; line = next) {
        next = next_line(line);
        bool kernel = begins(line, "__kernel ") || begins(line, "kernel ");
        if (kernel && !continued && read_block(line, out)) return true;
        continued = next - line > 1 && next[-1] == '\n' && next[-2] == '\\';
    }
    return false;
}

enum { MAX_BLOCKS = 64 }; // bits of clv__instance.kernels

/** The bits of all blocks of that name. */
static uint64_t bits_of(const clv__kernel_source *source, const char *entry, size_t length) {
    uint64_t bits = 0;
    block b = {.end = source->text};
    for (int i = 0; i < MAX_BLOCKS && next_block(b.end, &b); i++) {
        if (length == b.entry_length && strncmp(entry, b.entry, length) == 0) bits |= UINT64_C(1) << i;
    }
    return bits;
}

uint64_t clv__source_kernel(const clv__kernel_source *source, const char *entry) {
    return bits_of(source, entry, strlen(entry));
}

uint64_t clv__source_same_kernel(const clv__kernel_source *source, uint64_t kernels) {
    block b = {.end = source->text};
    for (int i = 0; i < MAX_BLOCKS && next_block(b.end, &b); i++) {
        if (kernels >> i & 1) return bits_of(source, b.entry, b.entry_length);
    }
    return kernels;
}

bool clv__source_look_up(clv__source_index *index, const char *stem, const char *entry,
                         clv__source_entry *out) {
    for (size_t i = 0; i < index->n; i++) {
        *out = index->items[i];
        if (strcmp(out->entry, entry) == 0 && strcmp(out->stem, stem) == 0) return true;
    }
    const clv__kernel_source *source = clv__source_find(stem);
    if (!source) return false;
    *out = (clv__source_entry){.stem = stem,
                               .entry = entry,
                               .source = source,
                               .text_hash = XXH3_64bits(source->text, source->bytes),
                               .kernel = clv__source_kernel(source, entry)};
    if (clv__grow(&index->items, &index->room, index->n + 1, sizeof *index->items))
        index->items[index->n++] = *out; // else it is looked for again
    return true;
}

void clv__source_index_reset(clv__source_index *index) {
    free(index->items);
    *index = (clv__source_index){0};
}

/** The next block of the instance's file that is not asked for; `number` counts blocks, from 0. */
static bool next_unwanted(const clv__instance *instance, const char *at, int *number, block *out) {
    out->end = at;
    while (*number < MAX_BLOCKS && next_block(out->end, out)) {
        if (!(instance->kernels >> (*number)++ & 1)) return true;
    }
    return false;
}

size_t clv__source_bytes(const clv__instance *instance) {
    size_t bytes = instance->source->bytes;
    int number = 0;
    block b;
    for (const char *at = instance->source->text; next_unwanted(instance, at, &number, &b); at = b.end)
        bytes -= (size_t)(b.end - b.begin);
    return bytes;
}

// ---- Assembling -------------------------------------------------------------------------------------------

void clv__source_begin(clv__text *out, const clv__source_device *device) {
    if (device && device->no_int64) clv__text_add(out, "#define CLV_NO_INT64 1\n");
    if (device && device->f16_way) clv__text_add(out, CLV__F16_TEXT, device->f16_way);
    if (device && device->sub_groups) clv__text_add(out, "%s", CLV__SUB_GROUPS_TEXT);
    if (device) clv__text_add(out, CLV__MATRIX_TEXT, device->matrix_unit);
    for (const clv__kernel_source *source = clv__kernel_sources; source->stem; source++) {
        if (!source->common) continue;
        clv__text_add(out, "#line 1 \"common/%s.cl\"\n", source->stem);
        clv__text_add_bytes(out, source->text, source->bytes);
        clv__text_add(out, "\n");
    }
}

/** The macro that a line defines; NULL: the line is no #define. */
static const char *defined_by(const char *line) {
    const char *directive = directive_of(line);
    if (!directive || (!begins(directive, "define ") && !begins(directive, "define\t"))) return NULL;
    return directive + strlen("define") + strspn(directive + strlen("define"), " \t");
}

/** Is the line a macro's default where the instance has a value of its own? */
static bool is_unused_default(const clv__instance *instance, const char *line) {
    const char *name = defined_by(line);
    const size_t n = name ? name_length(name) : 0;
    for (const char *own = name ? instance->defines : ""; *own; own = next_line(own))
        if (name_length(own) == n && strncmp(own, name, n) == 0) return true;
    return false;
}

/** Lines of a file, those of defaults that are not used left empty. A default has one line. */
static void add_lines(clv__text *out, const clv__instance *instance, const char *begin, const char *end) {
    for (const char *line = begin, *next; line < end; line = next) {
        next = next_line(line);
        if (is_unused_default(instance, line))
            clv__text_add(out, "\n");
        else
            clv__text_add_bytes(out, line, (size_t)(next - line));
    }
}

/** The file, with as many lines as it has: what a compiler says of a line is true. */
static void add_file(clv__text *out, const clv__instance *instance) {
    const char *at = instance->source->text;
    int number = 0;
    block b;
    for (; next_unwanted(instance, at, &number, &b); at = b.end) {
        add_lines(out, instance, at, b.begin);
        for (const char *line = b.begin; line < b.end; line = next_line(line)) clv__text_add(out, "\n");
    }
    add_lines(out, instance, at, at + strlen(at));
    clv__text_add(out, "\n");
}

/** `#undef` every macro that a source defines itself: its next instance begins clean. */
static void add_undefs(clv__text *out, const char *text) {
    for (const char *line = text; *line; line = next_line(line)) {
        const char *name = defined_by(line);
        if (name) clv__text_add(out, "#undef %.*s\n", (int)name_length(name), name);
    }
}

void clv__source_add(clv__text *out, const clv__instance *instance) {
    clv__text_add(out, "#define KERNEL(name) name##_%016" PRIx64 "\n", instance->hash);
    for (const char *line = instance->defines; *line; line = next_line(line))
        clv__text_add(out, "#define %.*s\n", (int)strcspn(line, "\n"), line);
    clv__text_add(out, "#line 1 \"%s.cl\"\n", instance->source->stem);
    add_file(out, instance);
    add_undefs(out, instance->source->text);
    for (const char *line = instance->defines; *line; line = next_line(line))
        clv__text_add(out, "#undef %.*s\n", (int)strcspn(line, " (\n"), line);
    clv__text_add(out, "#undef KERNEL\n");
}
