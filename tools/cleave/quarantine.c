// SPDX-License-Identifier: Apache-2.0
// Variants that plans pass over on a device, because they failed there: for `devices` and `env`.
#include "cli.h"

static void append(void *user, const char *op, const char *variant, const char *why) {
    json_t *one = json_pack("{s:s, s:s, s:s}", "op", op, "variant", variant, "why", why);
    // A driver's words may hold bytes that JSON cannot.
    if (!one) one = json_pack("{s:s, s:s, s:s}", "op", op, "variant", variant, "why", "it failed");
    json_array_append_new(user, one);
}

json_t *cli_quarantine_json(clv_device *device) {
    json_t *list = json_array();
    if (list && clv_device_quarantine(device, append, list) != CLV_OK) {
        json_decref(list);
        return NULL;
    }
    return list;
}

void cli_quarantine_print(FILE *out, clv_device *device, int indent) {
    size_t i;
    json_t *list = cli_quarantine_json(device), *one;
    json_array_foreach(list, i, one) fprintf(
        out, "%*s%s: in quarantine: variant '%s' of %s: %s\n", indent, "", clv_device_info_get(device)->name,
        json_string_value(json_object_get(one, "variant")), json_string_value(json_object_get(one, "op")),
        json_string_value(json_object_get(one, "why")));
    json_decref(list);
}
