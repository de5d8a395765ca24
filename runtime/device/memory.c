// SPDX-License-Identifier: Apache-2.0
// The account of bytes on a device. OpenCL cannot say how much memory is free. So every allocation is booked
// here before the driver is asked, and booked off when it is freed. What does not fit is refused, with a
// report.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "device/device.h"
#include "device/select.h"

static const char *const category_names[CLV_CATEGORIES] = {
    "parameters", "gradients", "optimizer", "activations", "workspace", "io", "staging",
};

const char *clv_category_name(clv_category category) {
    return (int)category >= 0 && category < CLV_CATEGORIES ? category_names[category] : "unknown";
}

enum { HOLDERS = 3, STAGING_ALIGNMENT = 4096 }; // pages: what drivers like to copy from

void clv__ledger_init(clv__ledger *ledger) {
    pthread_mutex_init(&ledger->lock, NULL);
}

void clv__ledger_destroy(clv__ledger *ledger) {
    for (size_t i = 0; i < ledger->n_entries; i++) free(ledger->entries[i].layer);
    free(ledger->entries);
    pthread_mutex_destroy(&ledger->lock);
}

// ---- Booking; the lock is held ----------------------------------------------------------------------------

static void count_add(clv_memory_count *count, size_t bytes) {
    count->current += bytes;
    count->total_allocated += bytes;
    if (count->current > count->peak) count->peak = count->current;
}

static void count_sub(clv_memory_count *count, size_t bytes) {
    count->current -= bytes;
    count->total_freed += bytes;
}

/** Books the bytes and returns the entry's key; NULL if host memory is out. */
static char *book(clv__ledger *ledger, size_t bytes, clv_category category, const char *layer) {
    char *key = clv__strdup(layer);
    if (!key) return NULL;
    if (!clv__grow(&ledger->entries, &ledger->room, ledger->n_entries + 1, sizeof *ledger->entries)) {
        free(key);
        return NULL;
    }
    ledger->entries[ledger->n_entries++] = (clv__ledger_entry){key, category, bytes};
    count_add(&ledger->info.all, bytes);
    count_add(&ledger->info.category[category], bytes);
    return key;
}

static void book_off(clv__ledger *ledger, const char *key) {
    for (size_t i = 0; i < ledger->n_entries; i++) {
        clv__ledger_entry *entry = &ledger->entries[i];
        if (entry->layer != key) continue;
        count_sub(&ledger->info.all, entry->bytes);
        count_sub(&ledger->info.category[entry->category], entry->bytes);
        free(entry->layer);
        *entry = ledger->entries[--ledger->n_entries];
        return;
    }
}

/** An allocation that the driver then refused never was: no peak, no total. */
static void book_undo(clv__ledger *ledger, const char *key, const clv_memory_info *before) {
    for (size_t i = 0; i < ledger->n_entries; i++) {
        clv__ledger_entry *entry = &ledger->entries[i];
        if (entry->layer != key) continue;
        clv_memory_count *counts[2] = {&ledger->info.all, &ledger->info.category[entry->category]};
        const clv_memory_count *old[2] = {&before->all, &before->category[entry->category]};
        for (int c = 0; c < 2; c++) {
            counts[c]->current -= entry->bytes;
            counts[c]->total_allocated -= entry->bytes;
            // Exact unless another thread allocated meanwhile; then the larger of what is sure is kept.
            counts[c]->peak = old[c]->peak > counts[c]->current ? old[c]->peak : counts[c]->current;
        }
        free(entry->layer);
        *entry = ledger->entries[--ledger->n_entries];
        return;
    }
}

/** The largest entries held, largest first. */
static size_t largest_entries(const clv__ledger *ledger, clv_memory_entry *out, size_t room) {
    size_t n = 0;
    for (size_t i = 0; i < ledger->n_entries; i++) {
        const clv__ledger_entry *entry = &ledger->entries[i];
        size_t at = n;
        while (at > 0 && out[at - 1].bytes < entry->bytes) at--;
        if (at == room) continue;
        if (n < room) n++;
        memmove(out + at + 1, out + at, (n - at - 1) * sizeof *out);
        out[at] = (clv_memory_entry){entry->layer, entry->category, entry->bytes};
    }
    return n;
}

// ---- Refusing ---------------------------------------------------------------------------------------------

/** Why `bytes`, in pieces of at most `largest`, do not fit now; CLV_OK if they do. Staging is host memory:
 * only budget. */
static clv_status refusal(const clv_device *device, size_t bytes, size_t largest, bool staging,
                          uint64_t *limit) {
    const clv_memory_info *held = &device->ledger.info;
    const clv_device_info *info = &device->info;
    *limit = 0;
    if (!staging && info->max_alloc_bytes && largest > info->max_alloc_bytes) {
        *limit = info->max_alloc_bytes;
        return CLV_E_DEVICE_MEMORY;
    }
    if (held->budget && (held->all.current > held->budget || bytes > held->budget - held->all.current)) {
        *limit = held->budget;
        return CLV_E_BUDGET;
    }
    uint64_t on_device = held->all.current - held->category[CLV_STAGING].current;
    if (!staging && info->memory_bytes &&
        (on_device > info->memory_bytes || bytes > info->memory_bytes - on_device)) {
        *limit = info->memory_bytes;
        return CLV_E_DEVICE_MEMORY;
    }
    return CLV_OK;
}

static void add_holders(clv__text *text, const clv__ledger *ledger) {
    clv_memory_entry top[HOLDERS];
    size_t n = largest_entries(ledger, top, HOLDERS);
    for (size_t i = 0; i < n; i++) {
        clv__text_add(text, "%s'%.80s' %s for %s", i == 0 ? "; the largest held: " : ", ", top[i].layer,
                      clv__bytes_text(top[i].bytes).text, clv_category_name(top[i].category));
    }
}

bool clv__could_serve(const clv_device *other, const clv_device *device) {
    return other != device && other->info.usable && !strcmp(other->info.backend, device->info.backend) &&
           !(other->info.peak_bytes_per_second > 0) && !(device->info.peak_bytes_per_second > 0);
}

/** Another usable OpenCL device with more room than is wanted, else NULL. */
static const clv_device *roomier(const clv_device *device, uint64_t bytes, uint64_t largest) {
    for (size_t i = 0; i < device->runtime->n_devices; i++) {
        const clv_device *other = device->runtime->devices[i];
        if (!clv__could_serve(other, device)) continue;
        if (other->info.memory_bytes > bytes && other->info.max_alloc_bytes >= largest) return other;
    }
    return NULL;
}

/** The report of a refusal: what was wanted, what is held, what would make it fit. The lock is held. */
static clv_status refuse(const clv_device *device, clv_status status, size_t bytes, size_t largest,
                         uint64_t limit, const char *category, const char *layer, const char *about,
                         bool smaller_batch) {
    const clv__ledger *ledger = &device->ledger;
    const uint64_t memory = device->info.memory_bytes;
    uint64_t held = ledger->info.all.current;
    clv__text text = {0};
    const char *quote = strchr(layer, ' ') ? "" : "'"; // of a name, not of words: `the plan`
    clv__text_add(&text, "%s%.200s%s wants %s (%zu bytes)%s%s on %s (%.60s), ", quote, layer, quote,
                  clv__bytes_text(bytes).text, bytes, *category ? " for " : "", category, device->name,
                  device->info.label);
    bool too_large =
        status == CLV_E_DEVICE_MEMORY && limit == device->info.max_alloc_bytes && largest > limit;
    if (too_large) {
        clv__text_add(&text,
                      "in one allocation of %zu bytes, but its largest single allocation is %s (%" PRIu64
                      " bytes)",
                      largest, clv__bytes_text(limit).text, limit);
    } else {
        clv__text_add(&text, "which holds %s (%" PRIu64 " bytes) of %s %s (%" PRIu64 " bytes)",
                      clv__bytes_text(held).text, held,
                      status == CLV_E_BUDGET ? "a budget of" : "its memory of", clv__bytes_text(limit).text,
                      limit);
        add_holders(&text, ledger);
    }
    clv__text_add(&text, "%s; it would fit ", about);
    if (smaller_batch) clv__text_add(&text, "with a smaller batch, or ");
    if (status == CLV_E_BUDGET && (!memory || held + bytes <= memory))
        clv__text_add(&text, "with a larger budget (clv_device_set_budget: %s=%" PRIu64 "KiB), or ",
                      device->name, (held + bytes + 1023) / 1024);
    const clv_device *other = roomier(device, held + bytes, largest);
    if (other)
        clv__text_add(&text, "on %s (%s)", other->name, clv__bytes_text(other->info.memory_bytes).text);
    else
        clv__text_add(&text, "on a device with %s", too_large ? "larger allocations" : "more memory");
    clv__error_set(&device->runtime->error, status, "%s", clv__text_get(&text));
    clv__text_reset(&text);
    return status;
}

clv_status clv__memory_check(clv_device *device, size_t bytes, size_t largest, const char *layer,
                             const char *about, bool smaller_batch) {
    clv__ledger *ledger = &device->ledger;
    uint64_t limit;
    pthread_mutex_lock(&ledger->lock);
    clv_status status = refusal(device, bytes, largest, false, &limit);
    if (status != CLV_OK) refuse(device, status, bytes, largest, limit, "", layer, about, smaller_batch);
    pthread_mutex_unlock(&ledger->lock);
    return status;
}

// ---- Allocating -------------------------------------------------------------------------------------------

/** Should staging be the driver's, so that the device reaches it by itself? Where kernels work in the host's
 *  memory a transfer is a copy in any case; and a driver allocates no more at once than it says. */
static bool driver_stages(const clv_device *device, size_t bytes) {
    return device->backend->staging_create && !device->traits.host_memory &&
           (!device->info.max_alloc_bytes || bytes <= device->info.max_alloc_bytes);
}

/** The memory itself, from the driver or from the host. */
static clv_status take(clv_device *device, clv__memory *memory) {
    clv__error *error = &device->runtime->error;
    if (memory->category == CLV_STAGING) {
        memory->host = true;
        if (driver_stages(device, memory->bytes))
            return device->backend->staging_create(device->open, memory->bytes, error, &memory->buffer,
                                                   &memory->pointer);
        size_t bytes = clv__size_align(memory->bytes, STAGING_ALIGNMENT);
        if (bytes < memory->bytes || !(memory->pointer = aligned_alloc(STAGING_ALIGNMENT, bytes)))
            CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for %zu bytes of staging", memory->bytes);
        return CLV_OK;
    }
    return device->backend->buffer_create(device->open, memory->bytes, error, &memory->buffer);
}

clv_status clv__memory_create(clv_device *device, size_t bytes, clv_category category, const char *layer,
                              clv__memory *out) {
    *out = (clv__memory){.device = device, .bytes = bytes, .category = category};
    if (bytes == 0) return CLV_OK;
    clv_status status = clv__device_open(device);
    if (status != CLV_OK) {
        *out = (clv__memory){0};
        return status;
    }
    clv__ledger *ledger = &device->ledger;
    bool staging = category == CLV_STAGING;
    uint64_t limit;
    pthread_mutex_lock(&ledger->lock);
    clv_memory_info before = ledger->info;
    status = refusal(device, bytes, bytes, staging, &limit);
    const bool lasting = category == CLV_PARAMETERS || category == CLV_GRADIENTS || category == CLV_OPTIMIZER;
    if (status != CLV_OK)
        refuse(device, status, bytes, bytes, limit, clv_category_name(category), layer, "", !lasting);
    // Booked before the driver is asked, so that two threads cannot both be granted the last bytes.
    else if (!(out->layer = book(ledger, bytes, category, layer)))
        status = clv__error_set(&device->runtime->error, CLV_E_HOST_MEMORY,
                                "no host memory for the account of '%s'", layer);
    pthread_mutex_unlock(&ledger->lock);
    if (status == CLV_OK && (status = take(device, out)) != CLV_OK) {
        pthread_mutex_lock(&ledger->lock);
        book_undo(ledger, out->layer, &before);
        clv__text holders = {0};
        add_holders(&holders, ledger);
        clv__error_prefix(&device->runtime->error,
                          "'%.200s' wants %s (%zu bytes) for %s on %s, which holds %s%.600s: ", layer,
                          clv__bytes_text(bytes).text, bytes, clv_category_name(category), device->name,
                          clv__bytes_text(ledger->info.all.current).text, clv__text_get(&holders));
        clv__text_reset(&holders);
        pthread_mutex_unlock(&ledger->lock);
    }
    if (status != CLV_OK) *out = (clv__memory){0};
    return status;
}

void clv__memory_destroy(clv__memory *memory) {
    if (!memory->device || !memory->bytes) {
        *memory = (clv__memory){0};
        return;
    }
    clv_device *device = memory->device;
    if (memory->host && memory->buffer)
        clv__device_free_staging(device, memory->buffer);
    else if (memory->host)
        clv__device_free(device, memory->pointer);
    else
        device->backend->buffer_destroy(memory->buffer);
    pthread_mutex_lock(&device->ledger.lock);
    book_off(&device->ledger, memory->layer);
    pthread_mutex_unlock(&device->ledger.lock);
    *memory = (clv__memory){0};
}

// ---- Public -----------------------------------------------------------------------------------------------

/** The ledger of a device that is only looked at; its lock is no part of what a reader sees. */
static clv__ledger *ledger_of(const clv_device *device) {
    return &((clv_device *)(uintptr_t)device)->ledger;
}

clv_memory_info clv_device_memory(const clv_device *device) {
    clv__ledger *ledger = ledger_of(device);
    pthread_mutex_lock(&ledger->lock);
    clv_memory_info info = ledger->info;
    pthread_mutex_unlock(&ledger->lock);
    return info;
}

clv_activity clv_device_activity(const clv_device *device) {
    return (clv_activity){.busy_ns = atomic_load(&device->busy_ns),
                          .steps = atomic_load(&device->busy_steps)};
}

void clv_device_memory_reset_peak(clv_device *device) {
    clv__ledger *ledger = &device->ledger;
    pthread_mutex_lock(&ledger->lock);
    ledger->info.all.peak = ledger->info.all.current;
    for (int c = 0; c < CLV_CATEGORIES; c++) ledger->info.category[c].peak = ledger->info.category[c].current;
    pthread_mutex_unlock(&ledger->lock);
}

void clv__memory_forget(clv_device *device, const clv_memory_info *before) {
    clv__ledger *ledger = &device->ledger;
    pthread_mutex_lock(&ledger->lock);
    for (int c = -1; c < CLV_CATEGORIES; c++) {
        clv_memory_count *count = c < 0 ? &ledger->info.all : &ledger->info.category[c];
        const clv_memory_count *old = c < 0 ? &before->all : &before->category[c];
        count->peak = old->peak > count->current ? old->peak : count->current;
    }
    pthread_mutex_unlock(&ledger->lock);
}

void clv_device_set_budget(clv_device *device, uint64_t bytes) {
    clv__ledger *ledger = &device->ledger;
    pthread_mutex_lock(&ledger->lock);
    ledger->info.budget = bytes;
    pthread_mutex_unlock(&ledger->lock);
}

int clv_device_memory_entries(const clv_device *device, clv_memory_entry *entries, int room) {
    clv__ledger *ledger = ledger_of(device);
    pthread_mutex_lock(&ledger->lock);
    if (room > 0) largest_entries(ledger, entries, (size_t)room);
    int n = (int)ledger->n_entries;
    pthread_mutex_unlock(&ledger->lock);
    return n;
}
