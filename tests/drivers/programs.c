// SPDX-License-Identifier: Apache-2.0
#include "drivers/programs.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

void programs_fail(const char *program, const char *why) {
    fprintf(stderr, "%s: %s\n", program, why);
    exit(1);
}

program_kernel programs_look(programs *all, const clv__launch *launch, bool *known) {
    program_kernel found = {.op = "", .variant = "", .group = 1};
    if (!clv__source_look_up(&all->sources, launch->source, launch->entry, &found.at))
        programs_fail(launch->entry, "a launch names no source");
    for (int d = 0; d < launch->grid.dims; d++)
        found.group *= launch->grid.local[d] ? launch->grid.local[d] : 1;
    for (int i = 0; i < launch->n_slots; i++)
        if (launch->slots[i].kind == CLV__SLOT_LOCAL) found.local += launch->slots[i].bytes;
    strcpy(found.defines, launch->defines);
    found.key = (uint32_t)XXH3_64bits(launch->defines, strlen(launch->defines));
    found.hash = clv__source_hash(found.at.text_hash, launch->defines);
    *known = false;
    for (size_t i = 0; i < all->n && !*known; i++)
        *known = all->items[i].hash == found.hash && !strcmp(all->items[i].at.entry, launch->entry);
    return found;
}

void programs_add(programs *all, const program_kernel *kernel) {
    if (!clv__grow(&all->items, &all->room, all->n + 1, sizeof *all->items))
        programs_fail("programs", "no memory");
    all->items[all->n++] = *kernel;
}

/** The program that a kernel goes into: those of matrix units, which few compilers have, are one of their own. */
static const char *program_of(const program_kernel *kernel) {
    return strstr(kernel->defines, "MATRIX_TYPE ") ? PROGRAMS_OF_UNITS : kernel->at.stem;
}

static int by_name(const void *a, const void *b) {
    const program_kernel *x = a, *y = b;
    int order = strcmp(program_of(x), program_of(y));
    if (!order) order = strcmp(x->at.entry, y->at.entry);
    return order ? order : x->key < y->key ? -1 : x->key > y->key;
}

void programs_sort(programs *all) {
    if (all->n) qsort(all->items, all->n, sizeof *all->items, by_name);
}

FILE *programs_file(const char *folder, const char *name, const char *suffix) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s%s", folder, name, suffix);
    FILE *file = fopen(path, "w");
    if (!file) programs_fail(path, "it cannot be made");
    return file;
}

/** One program: the instances of a file behind each other, each with the kernels that were met. */
static void write_program(const program_kernel *kernels, size_t n, const char *folder) {
    clv__text text = {0};
    clv__source_begin(&text, NULL);
    for (size_t first = 0; first < n; first++) {
        clv__instance instance = {kernels[first].hash, kernels[first].at.source, kernels[first].defines, 0};
        bool done = false;
        for (size_t k = 0; k < n; k++) {
            if (kernels[k].hash != instance.hash) continue;
            done |= k < first;
            instance.kernels |= kernels[k].at.kernel;
        }
        if (!done) clv__source_add(&text, &instance);
    }
    FILE *out = programs_file(folder, program_of(kernels), ".cl");
    if (text.failed || fwrite(text.data, 1, text.n, out) != text.n || fclose(out))
        programs_fail(kernels->at.stem, "the program cannot be written");
    clv__text_reset(&text);
}

/** The first kernel of another file. */
static size_t end_of_file(const programs *all, size_t i) {
    size_t end = i + 1;
    while (end < all->n && !strcmp(program_of(&all->items[end]), program_of(&all->items[i]))) end++;
    return end;
}

void programs_write(const programs *all, const char *folder) {
    enum { FEW = 24 }; // kernels: a compiler's start takes longer than a kernel
    for (size_t i = 0, end; i < all->n; i = end) {
        end = end_of_file(all, i);
        const bool units = !strcmp(program_of(&all->items[i]), PROGRAMS_OF_UNITS);
        for (size_t next; !units && end < all->n && (next = end_of_file(all, end)) - i <= FEW &&
                          strcmp(program_of(&all->items[end]), PROGRAMS_OF_UNITS) != 0;)
            end = next;
        write_program(all->items + i, end - i, folder);
    }
}
