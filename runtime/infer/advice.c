// SPDX-License-Identifier: Apache-2.0
// What would make a training fit that does not: found by planning it so, never guessed. Takes no device
// memory.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "device/device.h"
#include "nn/replicas.h"
#include "infer/placed.h"

/** What is to fit: the step of a training, or a forward pass. */
typedef struct wanted {
    clv_runtime *runtime;
    clv_train_config config;
    clv__graph_maker *make;
} wanted;

/** A status that says nothing of what was tried: it could not be planned. */
static bool breaks(clv_status status) {
    return status == CLV_E_HOST_MEMORY;
}

/** Plan it with this batch. Its layers are placed again, if they are to be chosen a place for. */
static clv_status plan_it(const wanted *w, int64_t batch, clv__step *step) {
    clv_train_config config = w->config;
    clv_placement *placement = &config.placement;
    clv_place_choice *choice = NULL;
    config.batch = batch;
    clv_status status = w->make(w->runtime, &config, placement->shares, batch, step);
    clv_plan_config plan = clv__step_plan_config(&config, w->make);
    if (status == CLV_OK) status = clv__placement_choose(placement, step->graph, &plan, &choice);
    plan.place = clv__placement_of_plan(placement);
    if (status == CLV_OK) status = clv_plan_create(step->graph, &plan, &step->plan);
    clv_free(choice);
    return status;
}

static clv_status fits_with(void *user, int64_t batch) {
    clv__step step = {0};
    clv_status status = plan_it(user, batch, &step);
    if (status == CLV_OK) status = clv_plans_fit(&step.plan, 1);
    clv__step_destroy(&step);
    return status;
}

/** Up to the batch asked for; 0: none. */
static clv_status find_batch(wanted *w, int64_t *largest) {
    return clv_batch_search(w->config.batch, w->config.batch, fits_with, w, largest);
}

// ---- layers on other devices ------------------------------------------------------------------------------

enum { MOST_MODULES = 64 };

/** The outermost modules of a model, in the order of the forward pass. */
typedef struct modules {
    char names[MOST_MODULES][64];
    int n;
} modules;

static void add_module(modules *all, const char *layer) {
    char name[64];
    size_t n = strcspn(layer, ".");
    if (n == 0 || n >= sizeof name || all->n == MOST_MODULES) return;
    memcpy(name, layer, n);
    name[n] = 0;
    for (int i = 0; i < all->n; i++) {
        if (strcmp(all->names[i], name) == 0) return;
    }
    memcpy(all->names[all->n++], name, n + 1);
}

static clv_status find_modules(const wanted *w, modules *all) {
    clv__step step = {0};
    all->n = 0;
    clv_status status = plan_it(w, w->config.batch, &step);
    for (int i = 0; status == CLV_OK && i < clv_plan_info_get(step.plan).n_nodes; i++) {
        clv_plan_node node = clv_plan_node_get(step.plan, i);
        if (strcmp(node.phase, "forward") == 0) add_module(all, node.layer);
    }
    clv__step_destroy(&step);
    return breaks(status) ? status : CLV_OK;
}

/** Modules from first[i] on are on devices[i]; first[0] is 0. */
typedef struct split {
    clv_device *devices[CLV__MOST_REPLICAS];
    int first[CLV__MOST_REPLICAS], n;
} split;

/** `*=cpu:0,fc1.*=cpu:1`: everything is on the first device but what is said to be elsewhere. */
static void split_text(const modules *all, const split *s, clv__text *text) {
    clv__text_add(text, "*=%s", clv_device_info_get(s->devices[0])->name);
    for (int i = 1; i < s->n; i++) {
        int end = i + 1 < s->n ? s->first[i + 1] : all->n;
        for (int k = s->first[i]; k < end; k++)
            clv__text_add(text, ",%s.*=%s", all->names[k], clv_device_info_get(s->devices[i])->name);
    }
}

/** Does the plan's part on a device fit there? */
static bool fits_on(clv_plan *plan, clv_device *device) {
    uint64_t bytes = clv_plans_memory(&plan, 1, device).predicted_peak_bytes;
    uint64_t budget = clv_device_memory(device).budget, memory = device->info.memory_bytes;
    return (!budget || bytes <= budget) && (!memory || bytes <= memory);
}

/** Where a search for a split stands. */
typedef struct splitting {
    const wanted *wanted;
    const modules *all;
    split split;
    clv_status status; // not OK: it is broken off
    char *place;       // of PLACE_BYTES; "": none was found
} splitting;

enum { PLACE_BYTES = sizeof((clv_train_advice){0}.place) };

/** Plan the split: does all of it fit, does device number `i` at least? */
static bool try_split(splitting *s, int i, bool *i_fits) {
    wanted placed = *s->wanted;
    clv__step step = {0};
    clv__text text = {0};
    split_text(s->all, &s->split, &text);
    placed.config.placement.place = clv__text_get(&text);
    clv_status status = text.failed             ? CLV_E_HOST_MEMORY
                        : text.n >= PLACE_BYTES ? CLV_E_VALUE
                                                : plan_it(&placed, placed.config.batch, &step);
    if (breaks(status)) s->status = status;
    *i_fits = status == CLV_OK && fits_on(step.plan, s->split.devices[i]);
    bool fits = status == CLV_OK && clv_plans_fit(&step.plan, 1) == CLV_OK;
    if (fits) snprintf(s->place, PLACE_BYTES, "%s", clv__text_get(&text));
    clv__step_destroy(&step);
    clv__text_reset(&text);
    return fits;
}

/** Fill one device after the other: each keeps as many modules as fit there, the next gets the rest. */
static void find_split(splitting *s) {
    split *at = &s->split;
    int n = at->n;
    at->first[0] = 0;
    for (int i = 0; i + 1 < n; i++) {
        bool i_fits = false;
        at->n = i + 2;
        for (int k = s->all->n - 1; k > at->first[i] && !i_fits; k--) {
            at->first[i + 1] = k;
            if (try_split(s, i, &i_fits) || s->status != CLV_OK) return;
        }
        if (!i_fits) return;
    }
}

/** A device on which it fits as it is. */
static clv_status try_device(const wanted *w, clv_device *device, clv_train_advice *out) {
    wanted there = *w;
    there.config.device = device;
    clv_status status = fits_with(&there, there.config.batch);
    if (status == CLV_OK) snprintf(out->device, sizeof out->device, "%s", clv_device_info_get(device)->name);
    return breaks(status) ? status : CLV_OK;
}

/** Another device; or as few other devices as do it: one of them, whichever; else all, in their order. */
static clv_status advise_elsewhere(const wanted *w, clv_train_advice *out) {
    clv_device *first = w->config.device;
    split every = {.devices = {first}, .n = 1};
    modules all;
    CLV_TRY(find_modules(w, &all));
    for (int i = 0; i < clv_runtime_info_get(w->runtime).n_devices; i++) {
        clv_device *other = clv_device_get(w->runtime, i);
        if (!clv__could_serve(other, first)) continue;
        if (every.n < CLV__MOST_REPLICAS) every.devices[every.n++] = other;
        if (!*out->device) CLV_TRY(try_device(w, other, out));
        splitting one = {w, &all, {.devices = {first, other}, .n = 2}, CLV_OK, out->place};
        if (!*out->place) find_split(&one);
        CLV_TRY(one.status);
    }
    splitting several = {w, &all, every, CLV_OK, out->place};
    if (every.n > 2 && !*out->place) find_split(&several);
    return several.status;
}

// ---- all of it --------------------------------------------------------------------------------------------

/** What lasts, and so is there whatever the batch: parameters, their gradients, optimizer state. */
static clv_status find_lasting(const wanted *w, clv_train_advice *out) {
    clv__step step = {0};
    clv_status status = plan_it(w, w->config.batch, &step);
    if (status == CLV_OK) {
        clv_plan_memory memory = clv_plans_memory(&step.plan, 1, NULL);
        out->parameter_bytes = memory.category[CLV_PARAMETERS];
        out->lasting_bytes =
            memory.category[CLV_PARAMETERS] + memory.category[CLV_GRADIENTS] + memory.category[CLV_OPTIMIZER];
    }
    clv__step_destroy(&step);
    return breaks(status) ? status : CLV_OK;
}

static void tell(const clv_train_config *config, clv_train_advice *advice) {
    clv__text all = {0};
    uint64_t budget = config->device ? clv_device_memory(config->device).budget : 0;
    if (budget && advice->lasting_bytes > budget) {
        bool parameters = advice->parameter_bytes > budget;
        uint64_t lasting = parameters ? advice->parameter_bytes : advice->lasting_bytes;
        clv__text_add(&all,
                      "%s alone take %s (%" PRIu64 " bytes), so no batch fits a budget of %" PRIu64 " bytes",
                      parameters ? "its parameters" : "its parameters, gradients and optimizer state",
                      clv__bytes_text(lasting).text, lasting, budget);
    }
    const char *before = all.n ? "; planned and found to fit: " : "planned and found to fit: ";
    if (advice->largest_batch) {
        clv__text_add(&all, "%s.batch = %" PRId64, before, advice->largest_batch);
        before = ", or ";
    }
    if (advice->largest_recomputed && advice->largest_recomputed >= config->batch) {
        clv__text_add(&all, "%s.recompute = auto", before);
        before = ", or ";
    } else if (advice->largest_recomputed > advice->largest_batch) {
        clv__text_add(&all, "%s.batch = %" PRId64 " .recompute = auto", before, advice->largest_recomputed);
        before = ", or ";
    }
    if (*advice->device) {
        clv__text_add(&all, "%s.device = %s", before, advice->device);
        before = ", or ";
    }
    if (*advice->place) clv__text_add(&all, "%s.place = '%s'", before, advice->place);
    snprintf(advice->text, sizeof advice->text, "%s", clv__text_get(&all));
    clv__text_reset(&all);
}

/** Where no batch fits, a plan's refusal does not speak of a smaller one: the plan itself cannot know. */
static void correct(const clv_train_advice *advice, char *sentence) {
    if (advice->largest_batch || advice->largest_recomputed) return;
    static const char *const hopes[] = {"with a smaller batch, or ", "a smaller batch, "};
    for (size_t i = 0; i < sizeof hopes / sizeof *hopes; i++) {
        char *vain = strstr(sentence, hopes[i]);
        if (!vain) continue;
        memmove(vain, vain + strlen(hopes[i]), strlen(vain + strlen(hopes[i])) + 1);
        return;
    }
}

static clv_status advise(wanted *w, clv_train_advice *out) {
    clv_train_config *config = &w->config;
    *out = (clv_train_advice){0};
    bool alone = !config->placement.place && !config->placement.n_devices && !config->placement.n_replicas;
    if (!config->device) CLV_TRY(clv_device_find(w->runtime, NULL, &config->device));
    if (alone) CLV_TRY(find_lasting(w, out));
    uint64_t budget = clv_device_memory(config->device).budget;
    if (!budget || out->lasting_bytes <= budget) {
        wanted again = *w;
        again.config.recompute = "auto";
        CLV_TRY(find_batch(w, &out->largest_batch));
        if (w->make != clv__forward_graph && !config->recompute)
            CLV_TRY(find_batch(&again, &out->largest_recomputed));
    }
    if (alone) CLV_TRY(advise_elsewhere(w, out));
    tell(config, out);
    return CLV_OK;
}

clv_status clv__advise(clv_runtime *runtime, const clv_train_config *config, clv__graph_maker *make,
                       clv_train_advice *out) {
    clv__error *error = clv__runtime_error_of(runtime);
    char sentence[CLV__ERROR_BYTES];
    clv__error_read(error, sentence); // planning leaves sentences of its own
    CLV_TRY(advise(&(wanted){runtime, *config, make}, out));
    correct(out, sentence);
    if (*sentence)
        (void)clv__error_set(error, CLV_E_BUDGET, "%s", sentence);
    else
        clv__error_forget(error);
    return CLV_OK;
}

clv_status clv__refused(clv_runtime *runtime, const clv_train_config *config, clv__graph_maker *make,
                        clv_status status) {
    clv__error *error = clv__runtime_error_of(runtime);
    char sentence[CLV__ERROR_BYTES];
    if (status != CLV_E_BUDGET && status != CLV_E_DEVICE_MEMORY) return status;
    clv__error_read(error, sentence); // planning leaves sentences of its own
    clv_train_advice advice;
    if (advise(&(wanted){runtime, *config, make}, &advice) != CLV_OK)
        return clv__error_set(error, status, "%s", sentence);
    correct(&advice, sentence);
    return clv__error_set(error, status, "%s%s%s", sentence, *advice.text ? "; " : "", advice.text);
}
