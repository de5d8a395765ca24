// SPDX-License-Identifier: Apache-2.0
// Which devices there are, which of them are visible, what they are called, and which one a text means. The
// order is: OpenCL devices as the platforms list them, the host, null devices. Settings are applied in this
// order too: `partition` replaces devices by their parts, then `visible_devices` picks, then names are
// counted.
#include "device/select.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shown.h"
#include "base/text.h"
#include "base/nearest.h"

static const char *const type_names[] = {"host", "cpu", "gpu", "accelerator", "other"};

static const char *type_name_of(clv_device_type type) {
    return (int)type >= 0 && (size_t)type < sizeof type_names / sizeof *type_names ? type_names[type]
                                                                                   : "unknown";
}

// ---- The list ---------------------------------------------------------------------------------------------

typedef struct device_list {
    clv_device **items;
    size_t n, room;
} device_list;

/** What `tell` needs to know while a backend enumerates. */
typedef struct listing {
    clv_runtime *runtime;
    const clv__backend *backend;
    device_list *list;
} listing;

static void list_reset(device_list *list) {
    for (size_t i = 0; i < list->n; i++) clv__device_destroy(list->items[i]);
    free(list->items);
    *list = (device_list){0};
}

static clv_status list_add(clv_runtime *runtime, device_list *list, clv_device *device) {
    if (!clv__grow(&list->items, &list->room, list->n + 1, sizeof *list->items))
        CLV_FAIL(&runtime->error, CLV_E_HOST_MEMORY, "no host memory for the list of devices");
    list->items[list->n++] = device;
    return CLV_OK;
}

/** Copies the strings of an info record into the runtime's arena; a NULL becomes "". What a driver says is
 *  shown in many places, so it is made fit for that here. */
static bool own_strings(clv_runtime *runtime, clv_device_info *info) {
    const char **names[] = {&info->label,  &info->backend, &info->platform_name,
                            &info->vendor, &info->driver,  &info->opencl_c};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char shown[CLV__NAME_BYTES + 1] = "";
        if (*names[i]) clv__show_name(*names[i], strlen(*names[i]), shown);
        *names[i] = clv__arena_strdup(&runtime->arena, shown);
        if (!*names[i]) return false;
    }
    char *reason = clv__arena_strdup(&runtime->arena, info->reason ? info->reason : "");
    if (reason) clv__show(reason, false);
    info->reason = reason;
    return reason != NULL;
}

static const char *execution_name_of(clv_execution execution) {
    return execution == CLV_EXECUTION_THREADS ? "threads" : "lanes";
}

/** Too few work-items in a group for lanes: threads. GPUs have lanes; other devices only if they speak of
 *  sub-groups or of a multiple of eight and more, but CPUs, whose drivers speak of their vectors so. */
clv_execution clv__execution_of(const clv_device_info *info, const clv__traits *traits) {
    enum { FEWEST_LANES = 8 };
    if (traits->execution != CLV__BY_TRAITS)
        return traits->execution == CLV__AS_THREADS ? CLV_EXECUTION_THREADS : CLV_EXECUTION_LANES;
    if (info->type == CLV_DEVICE_HOST) return CLV_EXECUTION_LANES; // runs no kernels
    if (info->type == CLV_DEVICE_CPU || info->max_work_group < 2 * FEWEST_LANES) return CLV_EXECUTION_THREADS;
    if (info->type == CLV_DEVICE_GPU || info->sub_groups || info->preferred_multiple >= FEWEST_LANES)
        return CLV_EXECUTION_LANES;
    return CLV_EXECUTION_THREADS;
}

/** In words with commas; NULL: no memory. */
static const char *quirks_of(clv_runtime *runtime, const clv__traits *traits) {
    char threads[48] = "", turns[64] = "", text[256] = "";
    if (traits->build_threads)
        snprintf(threads, sizeof threads, "builds %d program%s at a time", traits->build_threads,
                 traits->build_threads == 1 ? "" : "s");
    if (traits->loop_turns)
        snprintf(turns, sizeof turns, "ends a work-item's loops after %u turns",
                 (unsigned)traits->loop_turns);
    const char *words[] = {traits->caches_programs ? "keeps programs itself" : "", threads,
                           traits->compiles_at_launch ? "compiles kernels when they are launched" : "", turns,
                           traits->host_memory ? "computes in the host's memory" : ""};
    size_t used = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!*words[i] || used >= sizeof text) continue;
        int more = snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "", words[i]);
        used += more > 0 ? (size_t)more : 0;
    }
    return clv__arena_strdup(&runtime->arena, text);
}

static clv_status tell(void *user, const clv__found *found) {
    const listing *to = user;
    clv_device *device = clv__alloc(1, sizeof *device);
    if (!device) CLV_FAIL(&to->runtime->error, CLV_E_HOST_MEMORY, "no host memory for a device");
    device->runtime = to->runtime;
    device->backend = to->backend;
    device->handle = found->handle;
    device->info = found->info;
    device->traits = found->traits;
    device->info.loop_turns = found->traits.loop_turns;
    device->info.local_doubled = found->traits.local_doubled;
    device->info.execution = clv__execution_of(&device->info, &device->traits);
    if (found->info.name) snprintf(device->name, sizeof device->name, "%s", found->info.name);
    device->info.backend = to->backend->name;
    if (device->info.alignment_bytes == 0) device->info.alignment_bytes = 1;
    if (device->info.vector_width == 0) device->info.vector_width = 1;
    clv__ledger_init(&device->ledger);
    pthread_mutex_init(&device->open_lock, NULL);
    device->info.quirks = quirks_of(to->runtime, &device->traits);
    clv_status status =
        device->info.quirks && own_strings(to->runtime, &device->info)
            ? list_add(to->runtime, to->list, device)
            : clv__error_set(&to->runtime->error, CLV_E_HOST_MEMORY, "no host memory for a device");
    if (status != CLV_OK) clv__device_destroy(device);
    return status;
}

/** Count names per type and indices over the whole list. */
static void name_devices(device_list *list) {
    int counts[sizeof type_names / sizeof *type_names] = {0}, nulls = 0;
    for (size_t i = 0; i < list->n; i++) {
        clv_device *device = list->items[i];
        clv_device_type type = device->info.type;
        device->info.index = (int)i;
        if (strcmp(device->info.backend, "null") == 0) {
            if (!*device->name) snprintf(device->name, sizeof device->name, "null:%d", nulls++);
        } else if (type == CLV_DEVICE_HOST)
            snprintf(device->name, sizeof device->name, "host");
        else
            snprintf(device->name, sizeof device->name, "%s:%d", type_name_of(type), counts[type]++);
        device->info.name = device->name;
    }
}

// ---- Specs ------------------------------------------------------------------------------------------------

/** Part of a text, trimmed. */
typedef struct span {
    const char *text;
    size_t n;
} span;

/** Cut the next part off *rest at `separator`; false when there is none left. */
static bool next_part(const char **rest, char separator, span *part) {
    if (!*rest) return false;
    const char *end = strchr(*rest, separator);
    *part = (span){*rest, end ? (size_t)(end - *rest) : strlen(*rest)};
    *rest = end ? end + 1 : NULL;
    while (part->n && isspace((unsigned char)part->text[0])) part->text++, part->n--;
    while (part->n && isspace((unsigned char)part->text[part->n - 1])) part->n--;
    return true;
}

static bool same(span part, const char *text) {
    return strlen(text) == part.n && clv__same_letters(part.text, text, part.n);
}

/** All digits, at most nine: the number; else -1. */
static int number(span part) {
    if (part.n == 0 || part.n > 9) return -1;
    int value = 0;
    for (size_t i = 0; i < part.n; i++) {
        if (!isdigit((unsigned char)part.text[i])) return -1;
        value = value * 10 + (part.text[i] - '0');
    }
    return value;
}

/** What a text is matched against, from the surest reading to the loosest. */
typedef enum reading { BY_NAME, BY_TYPE, BY_NUMBER, BY_LABEL, BY_PLATFORM, READINGS } reading;

static bool matches(const clv_device *device, span part, reading by) {
    const clv_device_info *info = &device->info;
    char text[256];
    snprintf(text, sizeof text, "%.*s", part.n < 255 ? (int)part.n : 255, part.text);
    const char *colon = memchr(part.text, ':', part.n);
    if (device->elsewhere && by != BY_NAME) return false;
    switch (by) {
    case BY_NAME: return same(part, info->name);
    case BY_TYPE:
        if (strcmp(info->backend, "null") == 0) return same(part, "null");
        return same(part, type_name_of(info->type));
    case BY_NUMBER:
        if (!colon) return number(part) >= 0 && number(part) == info->index;
        return info->platform >= 0 &&
               number((span){part.text, (size_t)(colon - part.text)}) == info->platform &&
               number((span){colon + 1, part.n - (size_t)(colon + 1 - part.text)}) == info->device;
    case BY_LABEL: return number(part) < 0 && clv__text_holds(info->label, text);
    case BY_PLATFORM: return number(part) < 0 && clv__text_holds(info->platform_name, text);
    default: return false;
    }
}

/** Is it a type's word or a numbered name? Then it means nothing else: a CPU whose label says "GPU" is not
 * `gpu`. */
static bool is_type_word(span part) {
    const char *colon = memchr(part.text, ':', part.n);
    if (colon) part.n = (size_t)(colon - part.text);
    for (size_t i = 0; i < sizeof type_names / sizeof *type_names; i++) {
        if (same(part, type_names[i])) return true;
    }
    return same(part, "null");
}

/** The device one alternative means: the first usable match, else the first match, else NULL. */
static clv_device *match(const device_list *list, span part) {
    if (part.n == 0) return NULL;
    reading end = is_type_word(part) ? BY_LABEL : READINGS;
    for (reading by = BY_NAME; by < end; by++) {
        clv_device *first = NULL;
        for (size_t i = 0; i < list->n; i++) {
            if (!matches(list->items[i], part, by)) continue;
            if (list->items[i]->info.usable) return list->items[i];
            if (!first) first = list->items[i];
        }
        if (first) return first;
    }
    return NULL;
}

/** The first usable device of `a|b|c`, else the first that is there, else NULL. */
static clv_device *match_any(const device_list *list, span spec) {
    char text[256];
    if (spec.n >= sizeof text) return NULL;
    memcpy(text, spec.text, spec.n);
    text[spec.n] = 0;
    clv_device *unusable = NULL;
    const char *rest = text;
    span part;
    while (next_part(&rest, '|', &part)) {
        clv_device *device = match(list, part);
        if (device && device->info.usable) return device;
        if (device && !unusable) unusable = device;
    }
    return unusable;
}

/** `gpu:0 (H200), cpu:0 (llvmpipe; not usable: why), host` for sentences that say what there is. */
static void list_text(const device_list *list, clv__text *out) {
    size_t not_here = 0; // cards that a plan is made for: too many to name
    for (size_t i = 0; i < list->n; i++) {
        const clv_device_info *info = &list->items[i]->info;
        if (!strncmp(info->name, "null:", 5) && !isdigit((unsigned char)info->name[5])) {
            not_here++;
            continue;
        }
        clv__text_add(out, "%s%s", i ? ", " : "", info->name);
        if (info->type == CLV_DEVICE_HOST) continue;
        clv__text_add(out, " (%.60s%s%.200s)", info->label,
                      info->usable ? "" : "; not usable: ", info->reason);
    }
    if (not_here)
        clv__text_add(out, ", and %zu cards that are not in this machine, such as null:rx-580", not_here);
}

/** Offer the words of a text of at least four letters: `llvmpipe` of a driver's name. */
static void offer_words(clv__nearest *nearest, const char *text) {
    char word[64];
    while (*text) {
        size_t n = 0;
        while (isalnum((unsigned char)text[n])) n++;
        if (n >= 4 && n < sizeof word) {
            memcpy(word, text, n);
            word[n] = 0;
            clv__nearest_offer(nearest, word);
        }
        text += n ? n : 1;
    }
}

/** The device that a mistyped word may mean. A type's word is none: who asks for a GPU does not mean a
 *  CPU. */
static void find_nearest(const device_list *list, span part, clv__nearest *nearest) {
    const bool names_card =
        part.n > 5 && same((span){part.text, 5}, "null:") && isalpha((unsigned char)part.text[5]);
    if (is_type_word(part) && !names_card) return;
    clv__nearest_offer(nearest, "host");
    for (size_t i = 0; i < list->n; i++) {
        const clv_device_info *info = &list->items[i]->info;
        if (strcmp(info->backend, "null") != 0) clv__nearest_offer(nearest, type_name_of(info->type));
        clv__nearest_offer(nearest, info->name);
        offer_words(nearest, info->label);
        offer_words(nearest, info->platform_name);
    }
}

/** Could a driver that failed have a device of that kind? Only of words that name kinds can that be said. */
static bool may_be_missing(const device_list *list, span spec) {
    bool failed = false, kind = false;
    for (size_t i = 0; i < list->n; i++)
        failed |= list->items[i]->info.type == CLV_DEVICE_OTHER; // it never said what kind it is
    for (size_t at = 0, n; at < spec.n; at += n + 1) {
        const char *bar = memchr(spec.text + at, '|', spec.n - at);
        n = bar ? (size_t)(bar - spec.text) - at : spec.n - at;
        span word = {spec.text + at, n};
        while (word.n && isspace((unsigned char)*word.text)) word.text++, word.n--;
        while (word.n && isspace((unsigned char)word.text[word.n - 1])) word.n--;
        const char *colon = memchr(word.text, ':', word.n);
        size_t letters = colon ? (size_t)(colon - word.text) : word.n;
        bool counted = !colon || number((span){colon + 1, word.n - letters - 1}) >= 0;
        kind |= counted && is_type_word(word) && !same((span){word.text, letters}, "null");
    }
    return failed && kind;
}

static clv_status not_found(clv_runtime *runtime, const device_list *list, const char *what, span part) {
    clv__text there = {0};
    list_text(list, &there);
    bool has_host = false; // it comes after the settings are read, and is there anyway
    for (size_t i = 0; i < list->n; i++) has_host |= list->items[i]->info.type == CLV_DEVICE_HOST;
    if (!has_host) clv__text_add(&there, "%shost", list->n ? ", " : "");
    char word[201];
    snprintf(word, sizeof word, "%.*s", part.n < 200 ? (int)part.n : 200, part.text);
    clv__nearest nearest = {.word = word};
    find_nearest(list, part, &nearest);
    clv_status status = may_be_missing(list, part) ? CLV_E_DEVICE : CLV_E_NOT_FOUND;
    clv__error_set(&runtime->error, status, "%sthere is no device '%s'; there is %.1500s%s", what, word,
                   clv__text_get(&there), clv__nearest_text(&nearest));
    clv__text_reset(&there);
    return status;
}

// ---- Partition and visibility -----------------------------------------------------------------------------

/** The `=N` of a partition setting; 0 if malformed. */
static int parts_of(span *spec) {
    const char *equals = memchr(spec->text, '=', spec->n);
    if (!equals) return 0;
    span count = {equals + 1, spec->n - (size_t)(equals + 1 - spec->text)};
    spec->n = (size_t)(equals - spec->text);
    int parts = number(count);
    return parts >= 1 && parts <= 4096 ? parts : 0;
}

/** Replace the devices named in the `partition` setting by their parts. All specs mean the list as it was
 * before. */
static clv_status split_devices(clv_runtime *runtime, device_list *list) {
    if (!*runtime->config.partition || runtime->config.no_opencl) return CLV_OK;
    clv__error *error = &runtime->error;
    int *parts = clv__alloc(list->n, sizeof *parts);
    if (!parts) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory to split devices");
    device_list next = {0};
    clv_status status = CLV_OK;
    const char *rest = runtime->config.partition;
    span spec;
    while (status == CLV_OK && next_part(&rest, ',', &spec)) {
        int count = parts_of(&spec);
        if (count == 0) {
            status = clv__error_set(
                error, CLV_E_VALUE,
                "the partition setting '%.200s' is not of the form DEVICE=PARTS, such as cpu:0=2",
                runtime->config.partition);
            break;
        }
        clv_device *device = match_any(list, spec);
        if (!device && same(spec, "host")) // it comes after the settings are read
            status = clv__error_set(error, CLV_E_UNSUPPORTED, "partition: 'host' cannot be partitioned");
        else if (!device)
            status = not_found(runtime, list, "partition: ", spec);
        else
            parts[device->info.index] = count;
    }
    for (size_t i = 0; status == CLV_OK && i < list->n; i++) {
        clv_device *device = list->items[i];
        if (parts[i] == 0) {
            status = list_add(runtime, &next, device);
            if (status == CLV_OK) list->items[i] = NULL;
            continue;
        }
        listing to = {runtime, device->backend, &next};
        size_t before = next.n;
        if (!device->info.usable)
            status = clv__error_set(error, CLV_E_UNSUPPORTED, "%s", device->info.reason);
        else if (!device->backend->partition)
            status = clv__error_set(error, CLV_E_UNSUPPORTED, "this kind of device cannot be partitioned");
        else
            status = device->backend->partition(clv__backend_state(runtime, device->backend), device->handle,
                                                parts[i], tell, &to, error);
        if (status != CLV_OK && status != CLV_E_HOST_MEMORY)
            clv__error_prefix(error, "%s (%.60s) cannot be split into %d parts: ", device->name,
                              device->info.label, parts[i]);
        for (size_t j = before; j < next.n; j++) { // a part is where its whole was
            next.items[j]->info.platform = device->info.platform;
            next.items[j]->info.device = device->info.device;
        }
    }
    free(parts);
    if (status == CLV_OK) {
        for (size_t i = 0; i < list->n; i++)
            clv__device_destroy(list->items[i]); // only those that were split
        free(list->items);
        *list = next;
    } else {
        list_reset(&next);
    }
    return status;
}

/** Keep what the `visible_devices` setting names, in its order. `host` may be named; it is there anyway. */
static clv_status choose_visible(clv_runtime *runtime, device_list *list) {
    if (!*runtime->config.visible_devices || runtime->config.no_opencl) return CLV_OK;
    device_list next = {0};
    clv_status status = CLV_OK;
    const char *rest = runtime->config.visible_devices;
    span spec;
    while (status == CLV_OK && next_part(&rest, ',', &spec)) {
        if (spec.n == 0) {
            status = clv__error_set(&runtime->error, CLV_E_VALUE,
                                    "the list of visible devices '%.200s' has an empty item",
                                    runtime->config.visible_devices);
            break;
        }
        if (same(spec, "host") || number(spec) == (int)list->n)
            continue; // the index host has without this setting
        clv_device *device = match_any(list, spec);
        if (!device) {
            status = not_found(runtime, list, "visible devices: ", spec);
            break;
        }
        bool twice = false;
        for (size_t i = 0; i < next.n; i++) twice |= next.items[i] == device;
        if (!twice) status = list_add(runtime, &next, device);
    }
    if (status != CLV_OK) {
        free(next.items); // the devices are still the list's
        return status;
    }
    for (size_t i = 0; i < list->n; i++) {
        bool kept = false;
        for (size_t j = 0; j < next.n; j++) kept |= next.items[j] == list->items[i];
        if (!kept) clv__device_destroy(list->items[i]);
    }
    free(list->items);
    *list = next;
    return CLV_OK;
}

/** The `=lanes` or `=threads` of an execution setting; CLV__BY_TRAITS if malformed. */
static int execution_word(span *spec) {
    const char *equals = memchr(spec->text, '=', spec->n);
    if (!equals) return CLV__BY_TRAITS;
    span word = {equals + 1, spec->n - (size_t)(equals + 1 - spec->text)};
    spec->n = (size_t)(equals - spec->text);
    return same(word, "lanes") ? CLV__AS_LANES : same(word, "threads") ? CLV__AS_THREADS : CLV__BY_TRAITS;
}

/** Let devices be of the class that the `execution` setting says. Their labels say so too: by labels tuning
 *  files know devices. */
static clv_status overrule_executions(clv_runtime *runtime, device_list *list) {
    if (!*runtime->config.execution || runtime->config.no_opencl) return CLV_OK;
    const char *rest = runtime->config.execution;
    span spec;
    while (next_part(&rest, ',', &spec)) {
        int as = execution_word(&spec);
        if (as == CLV__BY_TRAITS)
            CLV_FAIL(&runtime->error, CLV_E_VALUE,
                     "the execution setting '%.200s' is not of the form DEVICE=lanes or DEVICE=threads, such "
                     "as cpu:0=lanes",
                     runtime->config.execution);
        clv_device *device = match_any(list, spec);
        if (!device) return not_found(runtime, list, "execution: ", spec);
        if (device->traits.execution == (as == CLV__AS_LANES ? CLV__AS_LANES : CLV__AS_THREADS)) continue;
        device->traits.execution = as == CLV__AS_LANES ? CLV__AS_LANES : CLV__AS_THREADS;
        const clv_execution before = device->info.execution;
        device->info.execution = clv__execution_of(&device->info, &device->traits);
        if (device->info.execution == before) continue;
        char label[256];
        snprintf(label, sizeof label, "%.200s as %s", device->info.label,
                 execution_name_of(device->info.execution));
        device->info.label = clv__arena_strdup(&runtime->arena, label);
        if (!device->info.label) CLV_FAIL(&runtime->error, CLV_E_HOST_MEMORY, "no host memory for a device");
    }
    return CLV_OK;
}

clv_status clv__devices_list(clv_runtime *runtime) {
    device_list list = {0};
    clv_status status = CLV_OK;
    for (int i = 0; status == CLV_OK && i < runtime->n_backends; i++) {
        const clv__backend *backend = runtime->backends[i].backend;
        if (backend == &clv__backend_host) { // all that the settings speak of stands before it
            name_devices(&list);
            status = split_devices(runtime, &list);
            if (status == CLV_OK) name_devices(&list);
            if (status == CLV_OK) status = choose_visible(runtime, &list);
        }
        listing to = {runtime, backend, &list};
        if (status == CLV_OK)
            status = backend->enumerate(runtime->backends[i].state, tell, &to, &runtime->error);
    }
    if (status == CLV_OK) name_devices(&list);
    if (status == CLV_OK) status = overrule_executions(runtime, &list);
    if (status != CLV_OK) {
        list_reset(&list);
        return status;
    }
    for (size_t i = 0; i < list.n; i++) {
        clv_device_info *info = &list.items[i]->info;
        info->type_name = type_name_of(info->type);
        info->execution_name = execution_name_of(info->execution);
    }
    runtime->devices = list.items;
    runtime->n_devices = list.n;
    runtime->room = list.room;
    for (size_t i = 0; runtime->debug >= 1 && i < list.n; i++) {
        const clv_device_info *info = &list.items[i]->info;
        clv__log(runtime, CLV_LOG_DEBUG, "%d %s: %s, %s, %s%s%s", info->index, info->name, info->label,
                 info->platform_name, clv__bytes_text(info->memory_bytes).text,
                 info->usable ? "" : ", not usable: ", info->reason);
    }
    return CLV_OK;
}

void clv__devices_forget(clv_runtime *runtime) {
    device_list list = {runtime->devices, runtime->n_devices, runtime->room};
    list_reset(&list);
    runtime->devices = NULL;
    runtime->n_devices = runtime->room = 0;
}

clv_status clv__device_add_elsewhere(clv_runtime *runtime, int rank, const clv_device_info *info) {
    device_list list = {runtime->devices, runtime->n_devices, runtime->room};
    char name[24];
    snprintf(name, sizeof name, "%d:%.16s", rank, info->name);
    for (size_t i = 0; i < list.n; i++)
        if (strcmp(list.items[i]->name, name) == 0) return CLV_OK;
    clv__found found = {.info = *info};
    found.info.backend = found.info.platform_name = found.info.vendor = found.info.driver = NULL;
    found.info.opencl_c = found.info.reason = NULL;
    found.info.name = name;
    found.info.platform = found.info.device = -1;
    found.info.compiler = found.info.usable = true;
    const listing to = {runtime, &clv__backend_null, &list};
    clv_status status = tell((void *)(uintptr_t)&to, &found);
    if (status == CLV_OK) {
        clv_device *device = list.items[list.n - 1];
        device->elsewhere = true;
        device->rank = rank;
        device->handle = &device->info;
        device->info.execution = info->execution;
        device->info.name = device->name;
        device->info.index = (int)list.n - 1;
        device->info.backend = "rank";
        device->info.type_name = type_name_of(device->info.type);
        device->info.execution_name = execution_name_of(device->info.execution);
    }
    runtime->devices = list.items;
    runtime->n_devices = list.n;
    runtime->room = list.room;
    return status;
}

/** A device that is named with this process's own rank, without it. */
static const char *without_own_rank(const clv_runtime *runtime, const char *spec) {
    char own[16];
    const int n = snprintf(own, sizeof own, "%d:", runtime->rank);
    return strncmp(spec, own, (size_t)n) == 0 && isalpha((unsigned char)spec[n]) ? spec + n : spec;
}

// ---- Public -----------------------------------------------------------------------------------------------

clv_device *clv_device_get(clv_runtime *runtime, int index) {
    return runtime && index >= 0 && (size_t)index < runtime->n_devices ? runtime->devices[index] : NULL;
}

const clv_device_info *clv_device_info_get(const clv_device *device) {
    return &device->info;
}

clv_status clv_device_find(clv_runtime *runtime, const char *spec, clv_device **out) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), out));
    *out = NULL;
    if (!spec || !*spec) spec = "gpu|accelerator|cpu|host";
    spec = without_own_rank(runtime, spec);
    device_list list = {runtime->devices, runtime->n_devices, runtime->room};
    clv_device *device = match_any(&list, (span){spec, strlen(spec)});
    if (!device) return not_found(runtime, &list, "", (span){spec, strlen(spec)});
    if (!device->info.usable)
        CLV_FAIL(&runtime->error, CLV_E_UNSUPPORTED, "device '%.200s' is %s (%s), which cannot be used: %s",
                 spec, device->name, device->info.label, device->info.reason);
    // Whoever names the host knows what it is; whoever ends up there should be told.
    if (device->info.type == CLV_DEVICE_HOST && !same((span){spec, strlen(spec)}, "host")) {
        pthread_mutex_lock(&runtime->report_lock);
        bool warned = runtime->warned_host;
        runtime->warned_host = true;
        pthread_mutex_unlock(&runtime->report_lock);
        if (!warned)
            clv__log(runtime, CLV_LOG_WARNING,
                     "no OpenCL device is usable: computing on the host, right but slow; an "
                     "OpenCL driver for this CPU would be much faster");
    }
    *out = device;
    return CLV_OK;
}
