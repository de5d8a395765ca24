// SPDX-License-Identifier: Apache-2.0
// Tuning files on disk: where a device's is, reading it when its choices are first asked for, and the one warning about
// files that cannot be used. What they hold is read in tuning.c.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/text.h"
#include "cleave/plan.h"
#include "device/helpers/notes.h"
#include "graph/quarantine.h"
#include "tuning/tuning.h"

enum { MOST_BYTES = 16 << 20 }; // a hundred thousand choices

/** What a device keeps: nothing, once it has been looked for. */
struct clv__tuned_choices {
    clv__tuning tuning;
};

// ---- one file -------------------------------------------------------------------------------------------------------

char *clv__tuning_path(const clv_device *device, const char *folder) {
    const clv_device_info *info = &device->info;
    char slug[48], whole[1024];
    size_t n = 0;
    for (const char *c = info->label; *c && n + 1 < sizeof slug; c++) {
        const char letter = clv__lower(*c); // ASCII's own, so that the name is the same in every locale
        const bool plain = (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
        if (plain || (n && slug[n - 1] != '-')) slug[n++] = plain ? letter : '-';
    }
    while (n && slug[n - 1] == '-') n--;
    slug[n] = 0;
    snprintf(whole, sizeof whole, "%s\n%s\n%s\n%" PRIu32, info->label, info->platform_name, info->driver,
             info->compute_units);
    clv__text path = {0};
    clv__text_add(&path, "%s/%s-%08" PRIx32 ".tuning", folder, slug,
                  (uint32_t)XXH3_64bits(whole, strlen(whole)));
    char *copy = path.failed ? NULL : clv__strdup(clv__text_get(&path));
    clv__text_reset(&path);
    return copy;
}

/** The whole file, malloc'd. Not blocking: a pipe without a writer must give a sentence, not wait. */
static clv_status read_file(const char *path, clv__error *error, char **bytes, size_t *size) {
    struct stat info;
    *bytes = NULL;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        CLV_FAIL(error, errno == ENOENT ? CLV_E_NOT_FOUND : CLV_E_IO, "'%s' cannot be read: %s", path,
                 strerror(errno));
    bool regular = fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size <= MOST_BYTES;
    size_t done = 0;
    ssize_t n = 1;
    if (regular) *bytes = malloc((size_t)info.st_size + 1);
    while (*bytes && done < (size_t)info.st_size && n > 0) {
        n = read(file, *bytes + done, (size_t)info.st_size - done);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n > 0)
            done += (size_t)n;
    }
    int why = errno;
    close(file);
    *size = done;
    if (!regular) CLV_FAIL(error, CLV_E_FORMAT, "'%s' is no tuning file: it is no file, or too large", path);
    if (!*bytes) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory to read '%s'", path);
    if (n >= 0) return CLV_OK;
    free(*bytes);
    *bytes = NULL;
    CLV_FAIL(error, CLV_E_IO, "'%s' cannot be read: %s", path, strerror(why));
}

clv_status clv__tuning_load(const clv_device *device, const char *path, clv__error *error, clv__tuning *out) {
    char *bytes = NULL;
    size_t size = 0;
    *out = (clv__tuning){0};
    CLV_TRY(read_file(path, error, &bytes, &size));
    clv_status status = clv__tuning_parse(device, path, bytes, size, error, out);
    free(bytes);
    return status;
}

// ---- the device's ---------------------------------------------------------------------------------------------------

/** The first fault is told, whatever the number of devices: a run without tuned choices is right too. */
static void warn_once(clv_runtime *runtime, const char *sentence) {
    pthread_mutex_lock(&runtime->report_lock);
    bool told = runtime->warned_tuning;
    runtime->warned_tuning = true;
    pthread_mutex_unlock(&runtime->report_lock);
    if (!told) clv__log(runtime, CLV_LOG_WARNING, "%s", sentence);
}

/** Avoid a variant that does not build (device/helpers/notes.h). */
static bool add_avoided(void *user, const char *op, const char *variant, const char *why) {
    clv__tuned row = {.op = clv__op_find(op), .note = (char *)(uintptr_t)why};
    if (row.op) row.variant = clv__variant_find(row.op, variant);
    return !row.variant || clv__tuning_put(user, &row);
}

char *clv__tuning_file(const clv_device *device, bool *named) {
    const char *set = device->runtime->config.tuning;
    struct stat info;
    *named = *set && !(stat(set, &info) == 0 && S_ISDIR(info.st_mode));
    return *named ? clv__strdup(set)
                  : clv__tuning_path(device, *set ? set : device->runtime->config.cache_dir);
}

static void load(clv_device *device, clv__tuning *out) {
    clv__error error;
    bool named;
    char *path = clv__tuning_file(device, &named);
    if (!path) return;
    clv__error_init(&error);
    clv_status status = clv__tuning_load(device, path, &error, out);
    char sentence[CLV__ERROR_BYTES + 256];
    if (status == CLV_E_NOT_FOUND ? named : status != CLV_OK) {
        snprintf(sentence, sizeof sentence,
                 "tuning file %s; variants are chosen as without it ('cleave tune' makes one)", error.text);
        warn_once(device->runtime, sentence);
    } else if (out->passed_over) {
        snprintf(sentence, sizeof sentence, "tuning file '%s': %s; lines skipped: %d", path, out->first_such,
                 out->passed_over);
        warn_once(device->runtime, sentence);
    }
    clv__error_destroy(&error);
    free(path);
    clv__notes_avoided(device, add_avoided, out); // without memory they are tried again
    for (size_t i = 0; i < out->n; i++) {
        const clv__tuned *row = &out->rows[i];
        if (row->key || clv__quarantined(device, row->op, row->variant)) continue;
        // Out of memory: the variant stays in use, as without the file.
        if (clv__quarantine_add(device, row->op, row->variant,
                                row->note ? row->note : "its tuning file says so") != CLV_OK)
            break;
    }
}

static void destroy(struct clv__tuned_choices *choices) {
    clv__tuning_reset(&choices->tuning);
    free(choices);
}

bool clv__tuning_is_none(const clv_device *device) {
    const char *set = device->runtime->config.tuning;
    return !strcmp(set, "none") || (!*set && !*device->runtime->config.cache_dir);
}

const clv__tuning *clv__tuning_of(clv_device *device) {
    if (clv__tuning_is_none(device)) return NULL;
    pthread_mutex_lock(&device->open_lock);
    if (!device->tuned && (device->tuned = clv__alloc(1, sizeof *device->tuned))) {
        device->tuned_destroy = destroy;
        load(device, &device->tuned->tuning);
    }
    const clv__tuning *tuning = device->tuned ? &device->tuned->tuning : NULL;
    pthread_mutex_unlock(&device->open_lock);
    return tuning && tuning->n ? tuning : NULL;
}

void clv__tuning_forget(clv_device *device) {
    pthread_mutex_lock(&device->open_lock);
    if (device->tuned) destroy(device->tuned);
    device->tuned = NULL;
    pthread_mutex_unlock(&device->open_lock);
}

// ---- for people -----------------------------------------------------------------------------------------------------

clv_status clv_device_quarantine(clv_device *device,
                                 void (*tell)(void *user, const char *op, const char *variant,
                                              const char *why),
                                 void *user) {
    CLV_TRY(CLV__GIVEN(NULL, device));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(device->runtime), tell));
    clv__tuning file = {0};
    clv__error
        unread; // a file that cannot be used puts nothing into quarantine, and is told where it would be used
    bool named;
    char *path = clv__tuning_is_none(device) ? NULL : clv__tuning_file(device, &named);
    clv__error_init(&unread);
    clv_status status = path ? clv__tuning_load(device, path, &unread, &file) : CLV_OK;
    clv__error_destroy(&unread);
    free(path);
    if (!clv__tuning_is_none(device) && !clv__notes_avoided(device, add_avoided, &file))
        status = CLV_E_HOST_MEMORY;
    for (size_t i = 0; i < file.n; i++)
        if (!file.rows[i].key)
            tell(user, file.rows[i].op->name, file.rows[i].variant->name,
                 file.rows[i].note ? file.rows[i].note : "");
    pthread_mutex_lock(&device->runtime->report_lock);
    for (const clv__quarantine *q = device->quarantine; q; q = q->next) {
        const clv__op *op = q->op;
        bool told = false;
        for (size_t i = 0; i < file.n; i++)
            told |= !file.rows[i].key && file.rows[i].op == op && file.rows[i].variant == q->variant;
        if (!told) tell(user, op->name, ((const clv__variant *)q->variant)->name, q->why);
    }
    pthread_mutex_unlock(&device->runtime->report_lock);
    clv__tuning_reset(&file);
    return status == CLV_E_HOST_MEMORY ? clv__error_set(clv__runtime_error_of(device->runtime), status,
                                                        "no memory to tell what is in quarantine")
                                       : CLV_OK;
}
