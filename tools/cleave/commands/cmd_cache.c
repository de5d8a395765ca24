// SPDX-License-Identifier: Apache-2.0
// cleave cache: look at the compiled programs that are kept, or remove them. Needs no driver.
#include "cli.h"
#include "table.h"

#include <string.h>

typedef struct list_job {
    json_t *programs; // or
    table *table;
    uint64_t bytes;
    int n;
} list_job;

static void on_program(void *user, const clv_cache_entry *entry) {
    list_job *job = user;
    job->n++;
    job->bytes += entry->bytes;
    if (job->programs)
        json_array_append_new(job->programs, json_pack("{s:s, s:I, s:s, s:b}", "file", entry->file, "bytes",
                                                       (json_int_t)entry->bytes, "made_for", entry->made_for,
                                                       "valid", entry->valid));
    table_add(job->table, "%s", cli_bytes(entry->bytes));
    table_add(job->table, "%s", entry->file);
    if (!entry->valid) table_paint(job->table, "\033[31m");
    table_add(job->table, "%s", entry->valid ? entry->made_for : "damaged");
}

static int list(clv_runtime *runtime, bool json) {
    static const table_column columns[] = {{"size", TABLE_NUMBER, TABLE_KEEP, 0, NULL},
                                           {"program", TABLE_NAME, 90, 14, NULL},
                                           {"made for", TABLE_NAME, TABLE_KEEP, 20, NULL}};
    list_job listing = {.programs = json ? json_array() : NULL,
                        .table = json ? NULL : table_create(columns, 3)};
    clv_status status = clv_cache_list(runtime, on_program, &listing);
    if (status != CLV_OK) {
        json_decref(listing.programs);
        table_destroy(listing.table);
        return cli_fail_status(runtime, status);
    }
    if (json)
        return cli_print_json(json_pack("{s:s, s:o, s:I}", "folder",
                                        clv_runtime_info_get(runtime).cache_folder, "programs",
                                        listing.programs, "bytes", (json_int_t)listing.bytes));
    if (listing.n)
        table_print(listing.table, stdout);
    else
        table_destroy(listing.table);
    screen_say(stdout, "%d program%s, %s, in %s", listing.n, listing.n == 1 ? "" : "s",
               cli_bytes(listing.bytes), clv_runtime_info_get(runtime).cache_folder);
    return cli_finish_output();
}

static int clear(clv_runtime *runtime, bool json) {
    int removed = 0;
    uint64_t bytes = 0;
    clv_status status = clv_cache_clear(runtime, &removed, &bytes);
    if (status != CLV_OK) return cli_fail_status(runtime, status);
    if (json)
        return cli_print_json(json_pack("{s:s, s:i, s:I}", "folder",
                                        clv_runtime_info_get(runtime).cache_folder, "removed", removed,
                                        "bytes", (json_int_t)bytes));
    printf("removed %d program%s, %s, from %s\n", removed, removed == 1 ? "" : "s", cli_bytes(bytes),
           clv_runtime_info_get(runtime).cache_folder);
    return cli_finish_output();
}

int cmd_cache(const cli_args *args) {
    const char *word = args->n_words ? args->words[0] : "";
    if (strcmp(word, "list") && strcmp(word, "clear"))
        return *word ? cli_fail(EXIT_USAGE, "cleave cache wants list or clear, not '%s'", word)
                     : cli_fail(EXIT_USAGE, "cleave cache wants list or clear");
    clv_runtime *runtime = NULL;
    clv_runtime_config config = {.no_opencl = true, .visible_devices = "", .partition = ""};
    clv_status status = clv_runtime_create(&config, &runtime);
    int code = status == CLV_OK ? (!strcmp(word, "list") ? list : clear)(runtime, args->json)
                                : cli_fail_status(runtime, status);
    clv_runtime_destroy(runtime);
    return code;
}
