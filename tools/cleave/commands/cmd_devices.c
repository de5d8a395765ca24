// SPDX-License-Identifier: Apache-2.0
// cleave devices: what there is, what it can do, and why some of it cannot be used.
#include "checks/checks.h"
#include "table.h"

static void print_table(clv_runtime *runtime) {
    static const table_column columns[] = {
        {"name", TABLE_TEXT, TABLE_KEEP, 0, NULL}, {"P:D", TABLE_TEXT, 30, 0, NULL},
        {"device", TABLE_NAME, 80, 14, NULL},      {"memory", TABLE_NUMBER, 90, 0, NULL},
        {"largest", TABLE_NUMBER, 60, 0, NULL},    {"units", TABLE_NUMBER, 50, 0, NULL},
        {"work-group", TABLE_NUMBER, 45, 0, NULL}, {"runs", TABLE_TEXT, 48, 0, NULL},
        {"OpenCL C", TABLE_TEXT, 40, 0, NULL},     {"has", TABLE_TEXT, 70, 4, NULL},
        {"platform", TABLE_NAME, 20, 8, NULL},
    };
    table *t = table_create(columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < clv_runtime_info_get(runtime).n_devices; i++) {
        const clv_device_info *info = clv_device_info_get(clv_device_get(runtime, i));
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
        table_add(t, "%s", info->execution_name);
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

/** A card that is not here, as `null:0`, which is like none. */
static bool is_card(const clv_device_info *info) {
    return !strncmp(info->name, "null:", 5) && info->peak_bytes_per_second > 0;
}

static void print_cards(clv_runtime *runtime) {
    static const table_column columns[] = {
        {"name", TABLE_TEXT, TABLE_KEEP, 0, NULL},  {"card", TABLE_NAME, 80, 14, NULL},
        {"memory", TABLE_NUMBER, 90, 0, NULL},      {"largest", TABLE_NUMBER, 50, 0, NULL},
        {"units", TABLE_NUMBER, 60, 0, NULL},       {"f32 TFLOP/s", TABLE_NUMBER, 85, 0, NULL},
        {"memory GB/s", TABLE_NUMBER, 75, 0, NULL},
    };
    table *t = table_create(columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < clv_runtime_info_get(runtime).n_devices; i++) {
        const clv_device_info *info = clv_device_info_get(clv_device_get(runtime, i));
        if (!is_card(info)) continue;
        table_add(t, "%s", info->name);
        table_add(t, "%s", info->label);
        table_add(t, "%s", cli_bytes(info->memory_bytes));
        table_add(t, "%s", cli_bytes(info->max_alloc_bytes));
        table_add(t, "%u", info->compute_units);
        if (info->peak_flops > 0)
            table_add(t, "%.3g", info->peak_flops / 1e12);
        else
            table_add(t, "-");
        table_add(t, "%.4g", info->peak_bytes_per_second / 1e9);
    }
    table_print(t, stdout);
    screen_say(stdout,
               "These are not here: `cleave plan resnet18 --train --device null:rtx-3060` says what fits "
               "on one, and how fast it can be at most. Figures are the makers'.");
}

static void add_word(char *text, size_t bytes, const char *word) {
    size_t used = strlen(text);
    snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", word);
}

/** A line of each device that runs kernels: what decides, beside its limits, which of them it gets. */
static void print_traits(const clv_device_info *info) {
    static const struct {
        uint32_t bit;
        const char *without;
    } floats[] = {{CLV_FLOATS_ROUND_NEAREST, "no rounding to nearest"},
                  {CLV_FLOATS_INF_NAN, "no infinities"},
                  {CLV_FLOATS_FMA, "no fma in hardware"},
                  {CLV_FLOATS_DENORMALS, "no denormals"}};
    char text[400] = "", word[96];
    if (!info->usable || !*info->opencl_c) return;
    snprintf(word, sizeof word, "%u-bit addresses", (unsigned)info->address_bits);
    if (info->address_bits) add_word(text, sizeof text, word);
    snprintf(word, sizeof word, "%s of %s local memory", cli_bytes(info->local_bytes),
             info->local_memory ? "fast" : "emulated");
    add_word(text, sizeof text, info->local_bytes ? word : "no local memory");
    if (info->local_doubled) add_word(text, sizeof text, "half of it for a kernel");
    snprintf(word, sizeof word, "groups in multiples of %u", (unsigned)info->preferred_multiple);
    if (info->preferred_multiple) add_word(text, sizeof text, word);
    for (int i = 0; i < CLV_SUB_GROUP_SIZES && info->sub_group_sizes[i]; i++) {
        snprintf(word, sizeof word, "sub-groups of %u", (unsigned)info->sub_group_sizes[i]);
        add_word(text, sizeof text, word);
    }
    snprintf(word, sizeof word, "%u bytes of arguments", (unsigned)info->argument_bytes);
    if (info->argument_bytes) add_word(text, sizeof text, word);
    for (size_t i = 0; info->floats && i < sizeof floats / sizeof *floats; i++)
        if (!(info->floats & floats[i].bit)) add_word(text, sizeof text, floats[i].without);
    snprintf(word, sizeof word, "loops of %u turns", (unsigned)info->loop_turns);
    if (info->loop_turns) add_word(text, sizeof text, word);
    screen_say(stdout, "%s: %s; shares %s memory", info->name, text,
               info->unified_memory ? "the host's" : "no");
}

int cmd_devices(const cli_args *args) {
    cli_session session;
    cli_start_early(args, false, &session);
    int code = cli_start(&session);
    if (code != EXIT_DONE) return code;
    if (args->json) {
        json_t *devices = json_array();
        for (int i = 0; i < clv_runtime_info_get(session.runtime).n_devices; i++) {
            clv_device *device = clv_device_get(session.runtime, i);
            if (args->cards && !is_card(clv_device_info_get(device))) continue;
            json_t *object = cli_device_json(clv_device_info_get(device));
            json_object_set_new(object, "quarantine", cli_quarantine_json(device));
            json_array_append_new(devices, object);
        }
        code = cli_print_json(json_pack("{s:o}", "devices", devices));
    } else if (args->cards) {
        print_cards(session.runtime);
        code = cli_finish_output();
    } else {
        print_table(session.runtime);
        for (int i = 0; i < clv_runtime_info_get(session.runtime).n_devices; i++)
            print_traits(clv_device_info_get(clv_device_get(session.runtime, i)));
        for (int i = 0; i < clv_runtime_info_get(session.runtime).n_devices; i++)
            cli_quarantine_print(stdout, clv_device_get(session.runtime, i), 0);
        code = cli_finish_output();
    }
    cli_stop(&session);
    return code;
}
