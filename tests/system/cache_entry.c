// SPDX-License-Identifier: Apache-2.0
// An entry of the program cache by itself, so that a script can let calls of the system fail around it: a driver would have files of
// its own.
//
//     cache_entry FOLDER write NAME...    keeps a binary for each name
//     cache_entry FOLDER read NAME        `whole`: the binary that was kept; `none`: there is none. Exit 3: another one
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleave/cleave.h"
#include "device/cache.h"

enum { BYTES = 10000 };

static void fill(char *binary, const char *name) {
    for (size_t i = 0; i < BYTES; i++) binary[i] = name[i % (strlen(name) + 1)];
}

static int find(const clv_device *device, clv__cache_key key, const char *wanted) {
    void *found;
    size_t bytes;
    if (!clv__cache_read(device, key, &found, &bytes)) return puts("none") < 0;
    const bool same = bytes == BYTES && !memcmp(found, wanted, BYTES);
    free(found);
    puts(same ? "whole" : "another");
    return same ? 0 : 3;
}

int main(int argc, char **argv) {
    clv_runtime *runtime = NULL;
    clv_device *device = NULL;
    char binary[BYTES];
    if (argc < 4) return 2;
    const clv_runtime_config config = {
        .null_devices = true, .no_opencl = true, .visible_devices = "", .partition = "", .cache_dir = argv[1]};
    int code = clv_runtime_create(&config, &runtime) != CLV_OK || clv_device_find(runtime, "null:0", &device) != CLV_OK;
    for (int i = 3; i < argc && code == 0; i++) {
        const clv__cache_key key = clv__cache_key_of(device, argv[i], "");
        fill(binary, argv[i]);
        if (!strcmp(argv[2], "write"))
            clv__cache_write(device, key, binary, BYTES);
        else
            code = find(device, key, binary);
    }
    clv_runtime_destroy(runtime);
    return code;
}
