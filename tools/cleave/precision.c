// SPDX-License-Identifier: Apache-2.0
// --precision: the word as the library wants it, and what mixed precision saved.
#include "cli.h"

#include <string.h>

clv_precision cli_precision(const cli_args *args) {
    if (!args->precision || !strcmp(args->precision, "f32")) return CLV_PRECISION_F32;
    return !strcmp(args->precision, "mixed") ? CLV_PRECISION_MIXED : CLV_PRECISION_MIXED_BF16;
}

static uint64_t activations(clv_plan *plan) {
    uint64_t bytes = 0;
    for (int i = 0; i < clv_plan_device_count(plan); i++)
        bytes += clv_plans_memory_on(&plan, 1, clv_plan_device_get(plan, i)).category[CLV_ACTIVATIONS];
    return bytes;
}

json_t *cli_precision_json(const cli_args *args, clv_plan *plan, clv_plan *in_f32) {
    if (!in_f32) return json_null();
    return json_pack("{s:s, s:I, s:I}", "precision", args->precision, "activation_bytes",
                     (json_int_t)activations(plan), "activation_bytes_f32", (json_int_t)activations(in_f32));
}

void cli_precision_print(FILE *out, const cli_args *args, clv_plan *plan, clv_plan *in_f32) {
    if (!in_f32) return;
    uint64_t now = activations(plan), before = activations(in_f32);
    fprintf(out, "precision %s: activations take %s", args->precision, cli_bytes(now));
    fprintf(out, ", %.2f of the %s of f32\n", before ? (double)now / (double)before : 1, cli_bytes(before));
}
