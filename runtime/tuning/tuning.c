// SPDX-License-Identifier: Apache-2.0
// Measured choices as rows and as text; see tuning.h. Knows nothing of files and folders: those are in load.c.
#include "tuning/tuning.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/number.h"
#include "device/kernel_sources.h"

static const char first_line[] = "cleave-tuning 1";

// ---- keys -----------------------------------------------------------------------------------------------------------

static size_t add(char *key, size_t used, const char *text) {
    int n = snprintf(key + used, CLV__TUNING_KEY_BYTES - used, "%s", text);
    return used + (n > 0 ? (size_t)n : 0);
}

void clv__tuning_key(const clv__op_io *io, char key[CLV__TUNING_KEY_BYTES]) {
    // Room for the most there can be: 57 inputs of 8 dimensions, 64 words of attributes, 21 characters each.
    _Static_assert((CLV__MAX_IN * (CLV_MAX_RANK + 1) + CLV__ATTRS_BYTES / 4) * 21 < CLV__TUNING_KEY_BYTES,
                   "a key may not fit");
    size_t used = 0;
    key[0] = 0;
    for (int i = 0; i < io->n_in; i++) {
        char shape[24 * (CLV_MAX_RANK + 1)];
        if (i) used = add(key, used, ";");
        if (!clv__has_in(io, i)) {
            used = add(key, used, "-");
            continue;
        }
        used = add(key, used, clv_dtype_name(io->in[i].dtype));
        used = add(key, used, clv_shape_text(&io->in[i].shape, shape, sizeof shape));
    }
    used = add(key, used, io->n_in ? ";(" : "(");
    for (size_t at = 0; io->attrs && at < io->op->attrs_bytes; at += sizeof(int32_t)) {
        int32_t word = 0;
        char number[16];
        size_t left = io->op->attrs_bytes - at;
        memcpy(&word, (const char *)io->attrs + at, left < sizeof word ? left : sizeof word);
        snprintf(number, sizeof number, "%s%" PRId32, at ? "," : "", word);
        used = add(key, used, number);
    }
    add(key, used, ")");
}

// ---- rows -----------------------------------------------------------------------------------------------------------

/** In the order of the file: op, then avoided variants by name, then keys. */
static int compare(const clv__op *op, const char *key, const clv__variant *variant, const clv__tuned *row) {
    const char *mine = op->name, *its = row->op->name;
    int order = strcmp(mine, its);
    if (order) return order;
    if (!key || !row->key) return key ? 1 : row->key ? -1 : strcmp(variant->name, row->variant->name);
    return strcmp(key, row->key);
}

/** The first row that does not come before; *found: it is the same. */
static size_t position(const clv__tuning *tuning, const clv__op *op, const char *key,
                       const clv__variant *variant, bool *found) {
    size_t from = 0, to = tuning->n;
    *found = false;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = compare(op, key, variant, &tuning->rows[middle]);
        if (order == 0) *found = true;
        if (order <= 0)
            to = middle;
        else
            from = middle + 1;
    }
    return from;
}

static void row_reset(clv__tuned *row) {
    free(row->key);
    free(row->note);
}

bool clv__tuning_put(clv__tuning *tuning, const clv__tuned *row) {
    bool found;
    size_t at = position(tuning, row->op, row->key, row->variant, &found);
    clv__tuned copy = *row;
    copy.key = clv__strdup(row->key);
    copy.note = clv__strdup(row->note);
    bool whole = (copy.key || !row->key) && (copy.note || !row->note);
    if (!whole || (!found && !clv__grow(&tuning->rows, &tuning->room, tuning->n + 1, sizeof *tuning->rows))) {
        row_reset(&copy);
        return false;
    }
    if (found) {
        row_reset(&tuning->rows[at]);
    } else {
        memmove(&tuning->rows[at + 1], &tuning->rows[at], (tuning->n - at) * sizeof *tuning->rows);
        tuning->n++;
    }
    tuning->rows[at] = copy;
    return true;
}

void clv__tuning_remove_avoided(clv__tuning *tuning, const clv__op *op, const clv__variant *variant) {
    bool found;
    size_t at = position(tuning, op, NULL, variant, &found);
    if (!found) return;
    row_reset(&tuning->rows[at]);
    tuning->n--;
    memmove(&tuning->rows[at], &tuning->rows[at + 1], (tuning->n - at) * sizeof *tuning->rows);
}

const clv__tuned *clv__tuning_find(const clv__tuning *tuning, const clv__op *op, const char *key) {
    bool found;
    size_t at = position(tuning, op, key, NULL, &found);
    return found ? &tuning->rows[at] : NULL;
}

void clv__tuning_reset(clv__tuning *tuning) {
    for (size_t i = 0; i < tuning->n; i++) row_reset(&tuning->rows[i]);
    free(tuning->rows);
    *tuning = (clv__tuning){0};
}

// ---- the head -------------------------------------------------------------------------------------------------------

enum { HEAD_LINES = 6, HEAD_BYTES = 256 };

/** For what the choices hold. `version` is for the reader only: the kernels' hash says more. */
typedef struct head {
    const char *names[HEAD_LINES];
    char values[HEAD_LINES][HEAD_BYTES];
} head;

enum { VERSION, DEVICE, PLATFORM, DRIVER, COMPUTE_UNITS, KERNELS };

static uint64_t kernels_hash(void) {
    uint64_t hash = 0;
    for (const clv__kernel_source *source = clv__kernel_sources; source->stem; source++) {
        hash = XXH3_64bits_withSeed(source->stem, strlen(source->stem), hash);
        hash = XXH3_64bits_withSeed(source->text, source->bytes, hash);
    }
    return hash;
}

/** What drivers and sentences say, as a part of a line: cut, no blanks at the ends, nothing that a reader would stop at. */
static void put_value(char *value, size_t room, const char *text) {
    size_t n = 0;
    while (*text == ' ') text++;
    for (; *text && n + 1 < room; text++)
        value[n++] = (char)(*text < ' ' || *text >= 0x7f || *text == '#' ? '?' : *text);
    while (n && value[n - 1] == ' ') n--;
    value[n] = 0;
}

static void head_of(const clv_device *device, head *out) {
    *out = (head){.names = {"version", "device", "platform", "driver", "compute-units", "kernels"}};
    put_value(out->values[VERSION], HEAD_BYTES, CLEAVE_VERSION);
    put_value(out->values[DEVICE], HEAD_BYTES, device->info.label);
    put_value(out->values[PLATFORM], HEAD_BYTES, device->info.platform_name);
    put_value(out->values[DRIVER], HEAD_BYTES, device->info.driver);
    snprintf(out->values[COMPUTE_UNITS], HEAD_BYTES, "%" PRIu32, device->info.compute_units);
    snprintf(out->values[KERNELS], HEAD_BYTES, "%016" PRIx64, kernels_hash());
}

// ---- reading --------------------------------------------------------------------------------------------------------

/** What is left of a file's bytes, line by line. */
typedef struct reader {
    const char *path;
    clv__error *error;
    const char *at, *end;
    int line;   // number of the last line taken
    char *text; // that line: without its end, its comment, and blanks around it
    char *note; // its comment, without blanks around it; NULL: none
    char buffer[8192];
} reader;

static char *trim(char *text) {
    while (*text == ' ') text++;
    size_t n = strlen(text);
    while (n && text[n - 1] == ' ') text[--n] = 0;
    return text;
}

/** Take a line; empty ones and comments are skipped. */
static clv_status next_line(reader *r) {
    do {
        const char *stop = r->at < r->end ? memchr(r->at, '\n', (size_t)(r->end - r->at)) : NULL;
        if (!stop)
            CLV_FAIL(r->error, CLV_E_FORMAT, "'%s' is damaged: it ends after line %d, without 'end'", r->path,
                     r->line);
        size_t n = (size_t)(stop - r->at);
        r->line++;
        bool good = n < sizeof r->buffer;
        for (size_t i = 0; good && i < n; i++) good = r->at[i] >= ' ' && r->at[i] < 0x7f;
        if (!good)
            CLV_FAIL(r->error, CLV_E_FORMAT, "'%s' is damaged: line %d is not a line of text", r->path,
                     r->line);
        memcpy(r->buffer, r->at, n);
        r->buffer[n] = 0;
        r->at = stop + 1;
        char *comment = strchr(r->buffer, '#');
        if (comment) *comment = 0;
        r->note = comment ? trim(comment + 1) : NULL;
        r->text = trim(r->buffer);
    } while (!*r->text);
    return CLV_OK;
}

/** The head: its lines in their order. Which of them must agree with the device is said with both sides. */
static clv_status read_head(reader *r, const clv_device *device) {
    static const char *const others[HEAD_LINES] = {[DEVICE] = "is of another device",
                                                   [PLATFORM] = "is of another platform",
                                                   [DRIVER] = "is of another driver",
                                                   [COMPUTE_UNITS] = "is of another number of compute units",
                                                   [KERNELS] = "was measured with other kernels"};
    head want;
    head_of(device, &want);
    CLV_TRY(next_line(r));
    if (strcmp(r->text, first_line))
        CLV_FAIL(r->error, CLV_E_FORMAT, "'%s' is no tuning file: it does not begin with '%s'", r->path,
                 first_line);
    for (int i = 0; i < HEAD_LINES; i++) {
        CLV_TRY(next_line(r));
        size_t n = strlen(want.names[i]);
        if (strncmp(r->text, want.names[i], n) || (r->text[n] && r->text[n] != ' '))
            CLV_FAIL(r->error, CLV_E_FORMAT, "'%s' is damaged: line %d should tell the %s", r->path, r->line,
                     want.names[i]);
        const char *value = trim(r->text + n);
        if (others[i] && strcmp(value, want.values[i]))
            CLV_FAIL(r->error, CLV_E_UNSUPPORTED, "'%s' %s: '%.100s', and here it is '%.100s'", r->path,
                     others[i], value, want.values[i]);
    }
    return CLV_OK;
}

/** Cut a line at its blanks: n words, or false. */
static bool cut(char *text, char **words, int n) {
    for (int i = 0; i < n; i++) {
        words[i] = text;
        size_t length = strcspn(text, " ");
        if (!length || (!text[length]) != (i == n - 1)) return false;
        text += length;
        if (*text) *text++ = 0;
        while (*text == ' ') text++;
    }
    return true;
}

/** A number of microseconds, as it is written. */
static bool read_median(const char *text, double *out) {
    if (!isdigit((unsigned char)*text)) return false; // reading also takes signs, inf and nan
    char *end;
    *out = clv__number_read(text, &end);
    return !*end && isfinite(*out) && *out > 0 && !strpbrk(text, "xX");
}

/** `variant` NULL: it is the op that is not there. */
static void pass_over(const reader *r, clv__tuning *out, const char *op, const char *variant) {
    if (out->passed_over++) return;
    if (variant)
        snprintf(out->first_such, sizeof out->first_such, "line %d: %.50s has no variant '%.50s'", r->line,
                 op, variant);
    else
        snprintf(out->first_such, sizeof out->first_such, "line %d: there is no op '%.50s'", r->line, op);
}

static clv_status read_row(reader *r, clv__tuning *out) {
    char *words[4];
    bool avoid = !strncmp(r->text, "avoid ", 6);
    clv__tuned row = {.note = r->note && *r->note ? r->note : NULL};
    if (!cut(r->text, words, avoid ? 3 : 4) || (!avoid && !read_median(words[3], &row.median_us)))
        CLV_FAIL(r->error, CLV_E_FORMAT,
                 "'%s' is damaged: line %d is neither 'op key variant microseconds' nor 'avoid op variant'",
                 r->path, r->line);
    const char *op = words[avoid ? 1 : 0], *variant = words[2];
    if (!avoid) row.key = words[1];
    if (!(row.op = clv__op_find(op))) {
        pass_over(r, out, op, NULL);
        return CLV_OK;
    }
    if (!(row.variant = clv__variant_find(row.op, variant))) {
        pass_over(r, out, op, variant);
        return CLV_OK;
    }
    bool twice;
    position(out, row.op, row.key, row.variant, &twice);
    if (twice)
        CLV_FAIL(r->error, CLV_E_FORMAT, "'%s' is damaged: line %d repeats another line", r->path, r->line);
    if (!clv__tuning_put(out, &row))
        CLV_FAIL(r->error, CLV_E_HOST_MEMORY, "no memory for the choices of '%s'", r->path);
    return CLV_OK;
}

static clv_status read_all(reader *r, const clv_device *device, clv__tuning *out) {
    CLV_TRY(read_head(r, device));
    for (;;) {
        CLV_TRY(next_line(r));
        if (!strcmp(r->text, "end")) break;
        CLV_TRY(read_row(r, out));
    }
    if (r->at != r->end)
        CLV_FAIL(r->error, CLV_E_FORMAT, "'%s' is damaged: it goes on after 'end' in line %d", r->path,
                 r->line);
    return CLV_OK;
}

clv_status clv__tuning_parse(const clv_device *device, const char *path, const char *bytes, size_t size,
                             clv__error *error, clv__tuning *out) {
    *out = (clv__tuning){0};
    reader *r = clv__alloc(1, sizeof *r);
    if (!r) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory to read '%s'", path);
    r->path = path, r->error = error, r->at = bytes, r->end = bytes + size;
    clv_status status = read_all(r, device, out);
    free(r);
    if (status != CLV_OK) clv__tuning_reset(out);
    return status;
}

// ---- writing --------------------------------------------------------------------------------------------------------

void clv__tuning_write(const clv_device *device, const clv__tuning *tuning, clv__text *text) {
    head top;
    head_of(device, &top);
    clv__text_add(text, "%s\n", first_line);
    for (int i = 0; i < HEAD_LINES; i++)
        clv__text_add(text, "%s%s%s\n", top.names[i], *top.values[i] ? " " : "", top.values[i]);
    clv__text_add(text, "\n# op, key, variant, median in microseconds\n");
    for (size_t i = 0; i < tuning->n; i++) {
        const clv__tuned *row = &tuning->rows[i];
        char note[1024] = "";
        if (row->note) put_value(note, sizeof note, row->note);
        if (row->key)
            clv__text_add(text, "%s %s %s %.2f", row->op->name, row->key, row->variant->name,
                          row->median_us > 0.01 ? row->median_us : 0.01);
        else
            clv__text_add(text, "avoid %s %s", row->op->name, row->variant->name);
        clv__text_add(text, "%s%s\n", *note ? " # " : "", note);
    }
    clv__text_add(text, "end\n");
}
