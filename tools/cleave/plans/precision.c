// SPDX-License-Identifier: Apache-2.0
// --precision and --micro-batches: the word as the library wants it, and what they saved, or cost.
#include "plans/plans.h"

#include <string.h>

clv_precision cli_precision(const cli_args *args) {
    if (!args->precision || !strcmp(args->precision, "f32")) return CLV_PRECISION_F32;
    return !strcmp(args->precision, "mixed") ? CLV_PRECISION_MIXED : CLV_PRECISION_MIXED_BF16;
}

/** On all devices together, like the plan's peak. */
static clv_plan_memory memory_of(const clv_plan *plan) {
    clv_plan *one_plan = (clv_plan *)(uintptr_t)plan; // the library asks for a list of plans that may change
    clv_plan_memory all = {0};
    for (int i = 0; i < clv_plan_info_get(plan).n_devices; i++) {
        clv_plan_memory one = clv_plans_memory(&one_plan, 1, clv_plan_device_get(plan, i));
        all.predicted_peak_bytes += one.predicted_peak_bytes;
        for (int c = 0; c < CLV_CATEGORIES; c++) all.category[c] += one.category[c];
    }
    return all;
}

static bool is_mixed(const cli_args *args) {
    return cli_precision(args) != CLV_PRECISION_F32;
}

json_t *cli_precision_json(const cli_args *args, clv_plan *plan, clv_plan *plain) {
    if (!plain || !is_mixed(args)) return json_null();
    return json_pack("{s:s, s:I, s:I}", "precision", args->precision, "activation_bytes",
                     (json_int_t)memory_of(plan).category[CLV_ACTIVATIONS], "activation_bytes_f32",
                     (json_int_t)memory_of(plain).category[CLV_ACTIVATIONS]);
}

json_t *cli_without_json(const clv_plan *plan, clv_plan *plain) {
    if (!plain) return json_null();
    return json_pack("{s:I, s:I}", "peak_bytes", (json_int_t)memory_of(plan).predicted_peak_bytes,
                     "peak_bytes_without", (json_int_t)memory_of(plain).predicted_peak_bytes);
}

/** "--precision mixed and --micro-batches 4" */
static const char *what(const cli_args *args, char text[96]) {
    char parts[48] = "";
    if (args->micro_batches > 1)
        snprintf(parts, sizeof parts, "--micro-batches %lld", (long long)args->micro_batches);
    snprintf(text, 96, "%s%s%s%s", is_mixed(args) ? "--precision " : "",
             is_mixed(args) ? args->precision : "", is_mixed(args) && *parts ? " and " : "", parts);
    return text;
}

void cli_without_print(FILE *out, const cli_args *args, const clv_plan *plan, clv_plan *plain,
                       bool only_more) {
    if (!plain) return;
    clv_plan_memory now = memory_of(plan), before = memory_of(plain);
    bool more = now.predicted_peak_bytes > before.predicted_peak_bytes;
    uint64_t gradients = now.category[CLV_GRADIENTS], gradients_before = before.category[CLV_GRADIENTS],
             activations = now.category[CLV_ACTIVATIONS],
             activations_before = before.category[CLV_ACTIVATIONS];
    char text[96], why[160] = "";
    if (only_more && !more) return;
    if (more && gradients > gradients_before)
        snprintf(why, sizeof why, ": all gradients (%s, not %s) wait for the end of the step",
                 cli_bytes(gradients), cli_bytes(gradients_before));
    screen_say(out, "%s%s: activations take %s, %.2f of the %s without; in all %s, %s the %s without%s",
               only_more ? "cleave: " : "", what(args, text), cli_bytes(activations),
               activations_before ? (double)activations / (double)activations_before : 1,
               cli_bytes(activations_before), cli_bytes(now.predicted_peak_bytes),
               more ? "which is more than" : "instead of", cli_bytes(before.predicted_peak_bytes), why);
}
