// SPDX-License-Identifier: Apache-2.0
// What would make a training fit that does not: found by planning it so, never guessed. Takes no device memory.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "device/device.h"
#include "nn/replicas.h"
#include "train/trainer.h"

/** Does a step fit of a training with this batch, which is cut in as many micro-batches? Its layers are placed anew, if they are
 *  to be chosen a place for. */
static clv_status try_step(clv_runtime *runtime, const clv_train_config *given, int64_t batch) {
    clv__step step = {0};
    clv_train_config config = *given;
    clv_placement *placement = &config.placement;
    clv_place_choice *choice = NULL;
    config.batch = batch;
    clv_status status = clv__step_graph(runtime, &config, placement->shares, batch, &step);
    clv_plan_config plan = clv__step_plan_config(&config);
    if (status == CLV_OK) status = clv__placement_choose(placement, step.graph, &plan, &choice);
    plan.place = placement->place;
    if (status == CLV_OK) status = clv_plan_create(step.graph, &plan, &step.plan);
    if (status == CLV_OK) status = clv_plans_fit(&step.plan, 1);
    clv__step_destroy(&step);
    clv_place_choice_destroy(choice);
    return status;
}

/** A training, to try batches of. */
typedef struct trial {
    clv_runtime *runtime;
    const clv_train_config *config;
} trial;

static bool fits_with(void *user, int64_t batch) {
    const trial *tried = user;
    return try_step(tried->runtime, tried->config, batch) == CLV_OK;
}

/** Up to the batch asked for; 0: none. */
static int64_t largest_batch(clv_runtime *runtime, const clv_train_config *config) {
    trial tried = {runtime, config};
    return clv_batch_search(config->batch, config->batch, fits_with, &tried);
}

// ---- layers on other devices ------------------------------------------------------------------------------------------

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

static void find_modules(clv_runtime *runtime, const clv_train_config *config, modules *all) {
    clv__step step = {0};
    all->n = 0;
    if (clv__step_build(runtime, config, NULL, config->batch, NULL, &step) == CLV_OK) {
        for (int i = 0; i < clv_plan_node_count(step.plan); i++) {
            clv_plan_node node = clv_plan_node_get(step.plan, i);
            if (strcmp(node.phase, "forward") == 0) add_module(all, node.layer);
        }
    }
    clv__step_destroy(&step);
}

/** Modules from first[i] on are on devices[i]; first[0] is 0. */
typedef struct split {
    clv_device *devices[CLV__MOST_REPLICAS];
    int first[CLV__MOST_REPLICAS], n;
} split;

/** `*=cpu:0,fc1.*=cpu:1`: everything is on the first device but what is said to be elsewhere. */
static void split_text(const modules *all, const split *s, clv__text *text) {
    clv__text_add(text, "*=%s", clv_device_get_info(s->devices[0])->name);
    for (int i = 1; i < s->n; i++) {
        int end = i + 1 < s->n ? s->first[i + 1] : all->n;
        for (int k = s->first[i]; k < end; k++)
            clv__text_add(text, ",%s.*=%s", all->names[k], clv_device_get_info(s->devices[i])->name);
    }
}

/** Does the plan's part on a device fit there? */
static bool fits_on(clv_plan *plan, clv_device *device) {
    uint64_t bytes = clv_plans_memory_on(&plan, 1, device).predicted_peak_bytes;
    uint64_t budget = clv_device_memory(device).budget, memory = device->info.memory_bytes;
    return (!budget || bytes <= budget) && (!memory || bytes <= memory);
}

/** Plan a split: does all of it fit, does device number `i` at least? On success the text goes to `place`. */
static bool try_split(clv_runtime *runtime, const clv_train_config *config, const modules *all,
                      const split *s, int i, bool *i_fits, char *place, size_t bytes) {
    clv_train_config placed = *config;
    clv__step step = {0};
    clv__text text = {0};
    split_text(all, s, &text);
    placed.placement.place = clv__text_get(&text);
    bool planned = !text.failed && text.n < bytes &&
                   clv__step_build(runtime, &placed, NULL, config->batch, NULL, &step) == CLV_OK;
    bool fits = planned && clv_plans_fit(&step.plan, 1) == CLV_OK;
    *i_fits = planned && fits_on(step.plan, s->devices[i]);
    if (fits) snprintf(place, bytes, "%s", clv__text_get(&text));
    clv__step_destroy(&step);
    clv__text_reset(&text);
    return fits;
}

/** Fill one device after the other: each keeps as many modules as fit there, the next gets the rest. False if that does not do. */
static bool find_split(clv_runtime *runtime, const clv_train_config *config, const modules *all, split *s,
                       char *place, size_t bytes) {
    int n = s->n;
    s->first[0] = 0;
    for (int i = 0; i + 1 < n; i++) {
        bool i_fits = false;
        s->n = i + 2;
        for (int k = all->n - 1; k > s->first[i] && !i_fits; k--) {
            s->first[i + 1] = k;
            if (try_split(runtime, config, all, s, i, &i_fits, place, bytes)) return true;
        }
        if (!i_fits) return false;
    }
    return false;
}

/** With as few other devices as do it: one of them, whichever; else all, in their order. */
static void advise_place(clv_runtime *runtime, const clv_train_config *config, clv_train_advice *out) {
    const clv_device_info *info = clv_device_get_info(config->device);
    split every = {.devices = {config->device}, .n = 1};
    modules all;
    find_modules(runtime, config, &all);
    for (int i = 0; i < clv_device_count(runtime) && !*out->place; i++) {
        clv_device *other = clv_device_get(runtime, i);
        if (other == config->device || !clv_device_get_info(other)->usable ||
            strcmp(clv_device_get_info(other)->backend, info->backend) != 0)
            continue;
        if (every.n < CLV__MOST_REPLICAS) every.devices[every.n++] = other;
        split one = {.devices = {config->device, other}, .n = 2};
        find_split(runtime, config, &all, &one, out->place, sizeof out->place);
    }
    if (every.n > 2 && !*out->place) find_split(runtime, config, &all, &every, out->place, sizeof out->place);
}

// ---- all of it --------------------------------------------------------------------------------------------------------

/** What lasts, and so is there whatever the batch: parameters, their gradients, optimizer state. */
static void find_lasting(clv_runtime *runtime, const clv_train_config *config, clv_train_advice *out) {
    clv__step step = {0};
    if (clv__step_build(runtime, config, NULL, config->batch, NULL, &step) == CLV_OK) {
        clv_plan_memory memory = clv_plans_memory(&step.plan, 1);
        out->parameter_bytes = memory.category[CLV_PARAMETERS];
        out->lasting_bytes =
            memory.category[CLV_PARAMETERS] + memory.category[CLV_GRADIENTS] + memory.category[CLV_OPTIMIZER];
    }
    clv__step_destroy(&step);
}

clv_train_advice clv_train_advise(clv_runtime *runtime, const clv_train_config *given) {
    clv_train_advice out = {0};
    clv_train_config config = *given, again = *given;
    bool alone = !config.placement.place && !config.placement.n_devices && !config.placement.n_replicas;
    if (!config.device && clv_device_find(runtime, NULL, &config.device) != CLV_OK) return out;
    again.device = config.device;
    again.recompute = "auto";
    if (alone) find_lasting(runtime, &config, &out);
    uint64_t budget = clv_device_memory(config.device).budget;
    if (!budget || out.lasting_bytes <= budget) {
        out.largest_batch = largest_batch(runtime, &config);
        if (!config.recompute) out.largest_recomputed = largest_batch(runtime, &again);
    }
    if (alone) advise_place(runtime, &config, &out);
    return out;
}

void clv_train_advice_text(const clv_train_config *config, const clv_train_advice *advice, char *text,
                           size_t bytes) {
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
        clv__text_add(&all, "%s--batch %" PRId64, before, advice->largest_batch);
        before = ", or ";
    }
    if (advice->largest_recomputed >= config->batch) {
        clv__text_add(&all, "%s--recompute auto", before);
        before = ", or ";
    } else if (advice->largest_recomputed > advice->largest_batch) {
        clv__text_add(&all, "%s--batch %" PRId64 " --recompute auto", before, advice->largest_recomputed);
        before = ", or ";
    }
    if (*advice->place) clv__text_add(&all, "%s--place '%s'", before, advice->place);
    snprintf(text, bytes, "%s", clv__text_get(&all));
    clv__text_reset(&all);
}

clv_status clv__trainer_refused(const clv_trainer *trainer, clv_status status) {
    clv__error *error = clv__runtime_error_of(trainer->runtime);
    char sentence[CLV__ERROR_BYTES], text[1024];
    if (status != CLV_E_BUDGET && status != CLV_E_DEVICE_MEMORY) return status;
    clv__error_read(error, sentence); // planning leaves sentences of its own
    clv_train_advice advice = clv_train_advise(trainer->runtime, &trainer->config);
    static const char hope[] = "a smaller batch, ";
    char *vain = strstr(sentence, hope);
    if (vain && !advice.largest_batch && !advice.largest_recomputed) // the account cannot know that none fits
        memmove(vain, vain + strlen(hope), strlen(vain + strlen(hope)) + 1);
    clv_train_advice_text(&trainer->config, &advice, text, sizeof text);
    return clv__error_set(error, status, "%s%s%s", sentence, *text ? "; " : "", text);
}
