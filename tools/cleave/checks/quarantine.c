// SPDX-License-Identifier: Apache-2.0
// Variants that plans pass over on a device, because they failed there: for `devices` and `env`.
#include "checks/checks.h"

#include <string.h>

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

/** How the variant gets out of it: what put it there may look again, or be told to forget. */
static void way_out(FILE *out, const char *device, const json_t *one, int indent) {
    const char *op = json_string_value(json_object_get(one, "op")),
               *variant = json_string_value(json_object_get(one, "variant")),
               *why = json_string_value(json_object_get(one, "why"));
    if (!strncmp(why, "check: ", 7))
        fprintf(out, "%*sto use it again: `cleave check --device %s --op %s`, once all its cases pass\n",
                indent, "", device, op);
    else
        fprintf(out,
                "%*sto use it again: `cleave cache clear`, if a compiler failed; else take 'avoid %s %s' out "
                "of the "
                "tuning file\n",
                indent, "", op, variant);
}

void cli_quarantine_print(FILE *out, clv_device *device, int indent) {
    size_t i;
    json_t *list = cli_quarantine_json(device), *one;
    json_array_foreach(list, i, one) {
        fprintf(out, "%*s%s: in quarantine: variant '%s' of %s: %s\n", indent, "",
                clv_device_info_get(device)->name, json_string_value(json_object_get(one, "variant")),
                json_string_value(json_object_get(one, "op")),
                json_string_value(json_object_get(one, "why")));
        way_out(out, clv_device_info_get(device)->name, one, indent + 2);
    }
    json_decref(list);
}
