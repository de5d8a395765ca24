// SPDX-License-Identifier: Apache-2.0
// cleave devices: what there is, what it can do, and why some of it cannot be used.
#include "cli.h"
#include "table.h"

static void print_table(clv_runtime *runtime) {
    static const table_column columns[] = {
        {"name", TABLE_TEXT, TABLE_KEEP, 0, NULL}, {"P:D", TABLE_TEXT, 30, 0, NULL},
        {"device", TABLE_NAME, 80, 14, NULL},      {"memory", TABLE_NUMBER, 90, 0, NULL},
        {"largest", TABLE_NUMBER, 60, 0, NULL},    {"units", TABLE_NUMBER, 50, 0, NULL},
        {"work-group", TABLE_NUMBER, 45, 0, NULL}, {"OpenCL C", TABLE_TEXT, 40, 0, NULL},
        {"has", TABLE_TEXT, 70, 4, NULL},          {"platform", TABLE_NAME, 20, 8, NULL},
    };
    table *t = table_create(columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < clv_device_count(runtime); i++) {
        const clv_device_info *info = clv_device_get_info(clv_device_get(runtime, i));
        table_add(t, "%s", info->name);
        if (info->platform >= 0 && info->device >= 0)
            table_add(t, "%d:%d", info->platform, info->device);
        else
            table_add(t, "-");
        table_add(t, "%s", info->label);
        if (!info->usable) {
            table_rest(t, "not usable: %s", info->reason);
            continue;
        }
        table_add(t, "%s", cli_bytes(info->memory_bytes));
        table_add(t, "%s", cli_bytes(info->max_alloc_bytes));
        if (!*info->opencl_c) {
            table_rest(t, "plain C references: right, and slow");
            continue;
        }
        table_add(t, "%u", info->compute_units);
        table_add(t, "%u", info->max_work_group);
        table_add(t, "%s", info->opencl_c);
        const char *has[] = {info->fp16 ? "fp16" : NULL, info->fp64 ? "fp64" : NULL,
                             info->sub_groups ? "sub-groups" : NULL,
                             info->embedded ? "embedded profile" : NULL, info->no_int64 ? "no int64" : NULL};
        char features[96] = "";
        for (size_t k = 0; k < sizeof has / sizeof *has; k++)
            if (has[k])
                snprintf(features + strlen(features), sizeof features - strlen(features), "%s%s",
                         *features ? " " : "", has[k]);
        table_add(t, "%s", *features ? features : "-");
        table_add(t, "%s", info->platform_name);
    }
    table_print(t, stdout);
}

int cmd_devices(const cli_args *args) {
    cli_session session;
    cli_start_early(args, false, &session);
    int code = cli_start(&session);
    if (code != EXIT_DONE) return code;
    if (args->json) {
        json_t *devices = json_array();
        for (int i = 0; i < clv_device_count(session.runtime); i++) {
            clv_device *device = clv_device_get(session.runtime, i);
            json_t *object = cli_device_json(clv_device_get_info(device));
            json_object_set_new(object, "quarantine", cli_quarantine_json(device));
            json_array_append_new(devices, object);
        }
        code = cli_print_json(json_pack("{s:o}", "devices", devices));
    } else {
        print_table(session.runtime);
        for (int i = 0; i < clv_device_count(session.runtime); i++)
            cli_quarantine_print(stdout, clv_device_get(session.runtime, i), 0);
        code = cli_finish_output();
    }
    cli_stop(&session);
    return code;
}
