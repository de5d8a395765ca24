// SPDX-License-Identifier: Apache-2.0
// cleave devices: what there is, what it can do, and why some of it cannot be used.
#include "cli.h"

static void print_table(clv_runtime *runtime) {
    printf("%-14s %-8s %-40s %10s %10s  %s\n", "name", "P:D", "device", "memory", "largest", "capabilities");
    for (int i = 0; i < clv_device_count(runtime); i++) {
        const clv_device_info *info = clv_device_get_info(clv_device_get(runtime, i));
        char place[24] = "-";
        if (info->platform >= 0 && info->device >= 0)
            snprintf(place, sizeof place, "%d:%d", info->platform, info->device);
        if (!info->usable) {
            printf("%-14s %-8s %-40.40s not usable: %s\n", info->name, place, info->label, info->reason);
            continue;
        }
        printf("%-14s %-8s %-40.40s %10s %10s  ", info->name, place, info->label,
               cli_bytes(info->memory_bytes), cli_bytes(info->max_alloc_bytes));
        if (*info->opencl_c)
            printf("OpenCL C %s, work-group %u, %u units%s%s%s, %s\n", info->opencl_c, info->max_work_group,
                   info->compute_units, info->fp16 ? ", fp16" : "", info->fp64 ? ", fp64" : "",
                   info->sub_groups ? ", sub-groups" : "", info->platform_name);
        else
            printf("plain C references: right, and slow\n");
    }
}

int cmd_devices(const cli_args *args) {
    cli_session session;
    cli_start_early(args, false, &session);
    int code = cli_start(&session);
    if (code != EXIT_DONE) return code;
    if (args->json) {
        json_t *devices = json_array();
        for (int i = 0; i < clv_device_count(session.runtime); i++)
            json_array_append_new(devices,
                                  cli_device_json(clv_device_get_info(clv_device_get(session.runtime, i))));
        code = cli_print_json(json_pack("{s:o}", "devices", devices));
    } else {
        print_table(session.runtime);
        code = cli_finish_output();
    }
    cli_stop(&session);
    return code;
}
