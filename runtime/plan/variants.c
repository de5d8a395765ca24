// SPDX-License-Identifier: Apache-2.0
// A variant for a node, and its launches. A pinned choice is taken or refused, never replaced; else the one that was measured as
// the fastest (tuning/tuning.h) wins, else the smallest rank. A quarantined variant is not taken.
#include "plan/variants.h"

#include <stdio.h>
#include <string.h>

#include "graph/quarantine.h"
#include "tuning/tuning.h"

// ---- pins: "matmul=plain,conv2d=tile,*=plain" ----------------------------------------------------------------------

/** The variant pinned for an op, as a part of `pins`; NULL if none. A name goes before `*`. */
static const char *pinned(const char *pins, const char *op, size_t *length, bool *by_name) {
    const char *found = NULL;
    *by_name = false;
    for (const char *at = pins; at && *at;) {
        const char *end = strchr(at, ',');
        size_t n = end ? (size_t)(end - at) : strlen(at);
        const char *equals = memchr(at, '=', n);
        if (equals) {
            size_t name = (size_t)(equals - at);
            bool exact = strlen(op) == name && memcmp(at, op, name) == 0;
            if (exact || (!*by_name && name == 1 && *at == '*')) {
                found = equals + 1;
                *length = n - name - 1;
                *by_name = exact;
            }
        }
        at = end ? end + 1 : NULL;
    }
    return found;
}

const char *clv__pins(const clv_runtime *runtime, const char *variants) {
    const char *pins = variants ? variants : runtime->variants;
    return *pins ? pins : NULL;
}

clv_status clv_variants_check(clv_runtime *runtime, const char *variants) {
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), runtime));
    clv__error *error = clv__runtime_error_of(runtime);
    const char *pins = clv__pins(runtime, variants), *where = variants ? "variants" : "CLEAVE_VARIANTS";
    for (const char *at = pins; at && *at;) {
        const char *end = strchr(at, ',');
        size_t n = end ? (size_t)(end - at) : strlen(at);
        const char *equals = memchr(at, '=', n);
        char op_name[64] = "";
        if (!equals || (size_t)(equals - at) >= sizeof op_name) {
            CLV_FAIL(error, CLV_E_VALUE, "%s '%.500s': '%.*s' is not of the form op=variant", where, pins,
                     (int)n, at);
        }
        memcpy(op_name, at, (size_t)(equals - at));
        const char *wanted = equals + 1;
        size_t length = n - (size_t)(wanted - at);
        bool known = false;
        clv__nearest nearest = {0};
        const clv__op *only = clv__op_find(op_name);
        if (!only && strcmp(op_name, "*") != 0)
            CLV_FAIL(error, CLV_E_VALUE, "%s '%.500s': there is no op '%s'%s", where, pins, op_name,
                     clv__op_nearest(op_name, &nearest));
        for (const clv__op *const *op = clv__ops; *op && !known; op++) {
            for (const clv__variant *v = only ? only->variants : (*op)->variants; v && v->name && !known; v++)
                known = strlen(v->name) == length && memcmp(v->name, wanted, length) == 0;
        }
        if (!known) {
            char word[64];
            snprintf(word, sizeof word, "%.*s", (int)(length < 63 ? length : 63), wanted);
            nearest = (clv__nearest){.word = word};
            for (const clv__op *const *op = clv__ops; *op; op++) {
                for (const clv__variant *v = only ? only->variants : (*op)->variants; v && v->name; v++)
                    clv__nearest_offer(&nearest, v->name);
            }
            CLV_FAIL(error, CLV_E_VALUE, "%s '%.500s': %s has no variant '%.*s'%s", where, pins, op_name,
                     (int)length, wanted, clv__nearest_text(&nearest));
        }
        at = end ? end + 1 : NULL;
    }
    return CLV_OK;
}

// ---- choosing ------------------------------------------------------------------------------------------------------

bool clv__variant_pinned(const clv_plan *plan, const clv__op *op) {
    size_t length;
    bool by_name = false;
    pinned(plan->pins, op->name, &length, &by_name);
    return by_name;
}

/** The variant that was measured as the fastest for this use; NULL if nobody knows. */
static const clv__variant *tuned(const clv__tuning *tuning, const clv__op_io *io) {
    char key[CLV__TUNING_KEY_BYTES];
    if (!tuning) return NULL;
    clv__tuning_key(io, key);
    const clv__tuned *row = clv__tuning_find(tuning, io->op, key);
    return row ? row->variant : NULL;
}

clv_status clv__variant_choose(const clv_plan *plan, clv__plan_node *at, uint64_t passed_over) {
    clv_device *device = plan->places[at->place].device;
    const clv_device_info *info = &device->info;
    const clv__node *node = at->node;
    if (info->execution == CLV_EXECUTION_LANES)
        CLV_TRY(clv__device_open(device)); // and asked for its matrix units
    const clv__op *op = node->io.op;
    // with an epilogue the op is as fast, or slow, as without: what is known of it without holds
    const clv__op_io *known = node->io.epilogue ? &at->fused->base->io : &node->io;
    const clv__variant *measured = tuned(clv__tuning_of(device), known);
    size_t length = 0;
    bool by_name;
    const char *pin = pinned(plan->pins, op->name, &length, &by_name);
    double best_rank = 0;
    at->variant = NULL;
    at->chosen = CLV__RANKED;
    for (const clv__variant *v = op->variants; v && v->name; v++) {
        bool fits = clv__variant_supports(v, info, &node->io);
        if (pin && strlen(v->name) == length && memcmp(v->name, pin, length) == 0) {
            const bool trains = v->roundoff > 0 && node->graph->training;
            if (fits && !trains) {
                at->variant = v;
                at->chosen = CLV__PINNED;
                return CLV_OK;
            }
            if (by_name) {
                clv__node_title title;
                if (trains)
                    CLV_FAIL(clv__plan_error(plan), CLV_E_UNSUPPORTED,
                             "%s: the pinned variant '%s' is for inference, its sums are not in f32; pin "
                             "another one",
                             clv__title_of(node, &title), v->name);
                CLV_FAIL(clv__plan_error(plan), CLV_E_UNSUPPORTED,
                         "%s: the pinned variant '%s' cannot run on %s with these shapes and types",
                         clv__title_of(node, &title), v->name, info->name);
            }
        }
        if (!clv__variant_rounds(v, device->runtime->config.float32_products, &node->io)) continue;
        if (!fits || v->roundoff > 0 || at->chosen == CLV__TUNED || clv__quarantined(device, op, v)) continue;
        if (passed_over >> (v - op->variants) & 1) continue;
        double rank = clv__variant_rank(v, info, known);
        if (v == measured) at->chosen = CLV__TUNED;
        if (!at->variant || v == measured || rank < best_rank) {
            at->variant = v;
            best_rank = rank;
        }
    }
    if (!at->variant) {
        bool avoided = false;
        for (const clv__variant *v = op->variants; v && v->name; v++)
            avoided |= clv__quarantined(device, op, v) && clv__variant_supports(v, info, &node->io);
        char why[512] = "";
        if (avoided) clv__quarantine_why(device, op, why, sizeof why);
        clv__node_title title;
        CLV_FAIL(clv__plan_error(plan), CLV_E_UNSUPPORTED, "%s: no variant runs on %s%s%s%s",
                 clv__title_of(node, &title), info->name,
                 avoided ? "; what would run failed there and is in quarantine (`cleave devices`)" : "", why,
                 avoided ? "; `cleave check` takes out what passes again" : "");
    }
    return CLV_OK;
}

/** The host device runs references: one launch with every input and output, and room for all of them as doubles. */
static void lower_reference(clv__launches *list, const clv__op_io *io) {
    clv__launch spare, *launch;
    list->spare = &spare;
    launch = clv__launch_kernel(list, "", "");
    launch->kind = CLV__LAUNCH_REFERENCE;
    for (int i = 0; i < io->n_in; i++) clv__arg_in(list, launch, i);
    for (int i = 0; i < io->n_out; i++) clv__arg_out(list, launch, i);
    size_t doubles = 0;
    for (int i = 0; i < io->n_in; i++) doubles += clv__has_in(io, i) ? (size_t)clv__numel(&io->in[i]) : 0;
    for (int i = 0; i < io->n_out; i++) doubles += (size_t)clv__numel(&io->out[i]);
    size_t bytes = doubles * sizeof(double);
    clv__arg_workspace(list, launch, clv__launch_workspace(list, bytes), bytes);
    list->spare = NULL;
}

void clv__variant_note_bytes(const clv_plan *plan, const clv__plan_node *at, clv__launches *list) {
    for (size_t i = 0; i < list->n; i++) {
        for (int k = 0; k < list->items[i].n_slots; k++) {
            clv__slot *slot = &list->items[i].slots[k];
            if (slot->kind != CLV__SLOT_OUT && slot->kind != CLV__SLOT_IN) continue;
            const int value = slot->kind == CLV__SLOT_OUT ? at->out[slot->index] : at->in[slot->index];
            if (value >= 0) slot->bytes = plan->values[value].bytes;
        }
    }
}

clv_status clv__variant_write(const clv_plan *plan, clv__plan_node *at) {
    const clv__node *node = at->node;
    const clv_device *device = plan->places[at->place].device;
    clv__launches_reset(&at->launches);
    at->launches.device = &device->info;
    if (at->work != CLV__COMPUTE || node->io.op->view) return CLV_OK;
    if (at->variant)
        clv__variant_lower(at->variant, &at->launches, &node->io);
    else
        lower_reference(&at->launches, &node->io);
    if (!at->launches.failed) {
        clv__variant_note_bytes(plan, at, &at->launches);
        return CLV_OK;
    }
    bool memory = at->launches.out_of_memory;
    clv__node_title title;
    CLV_FAIL(clv__plan_error(plan), memory ? CLV_E_HOST_MEMORY : CLV_E_UNSUPPORTED,
             "%s: variant '%s' could not record its launches: %s", clv__title_of(node, &title),
             at->variant ? at->variant->name : "reference",
             memory ? "no host memory" : "a size is past int, or there are too many arguments");
}
