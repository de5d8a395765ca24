// SPDX-License-Identifier: Apache-2.0
// CLEAVE_VISIBLE_DEVICES says which OpenCL devices a program sees, and renumbers them, as CUDA_VISIBLE_DEVICES does. The
// host is always there. A program may set it itself, in the runtime's configuration.
#include "common.h"

#include <string.h>

static void list(clv_runtime *runtime) {
    for (int i = 0; i < clv_runtime_info_get(runtime).n_devices; i++) {
        const clv_device_info *info = clv_device_info_get(clv_device_get(runtime, i));
        printf("  %-8s %s\n", info->name, info->label);
    }
}

int main(void) {
    clv_runtime *all = NULL, *some = NULL;
    TRY(all, clv_runtime_create(&(clv_runtime_config){.visible_devices = ""}, &all));
    int n = clv_runtime_info_get(all).n_devices - 1; // without the host
    printf("all devices\n");
    list(all);
    CHECK(strcmp(clv_device_info_get(clv_device_get(all, n))->name, "host") == 0);

    if (n > 0) { // only the last one: it has number 0 now
        char variable[16];
        snprintf(variable, sizeof variable, "%d", n - 1);
        setenv("CLEAVE_VISIBLE_DEVICES", variable, 1);
        TRY(some, clv_runtime_create(NULL, &some));
        printf("CLEAVE_VISIBLE_DEVICES=%s\n", variable);
        list(some);
        CHECK(clv_runtime_info_get(some).n_devices == 2);
        const clv_device_info *only = clv_device_info_get(clv_device_get(some, 0));
        CHECK(strcmp(only->label, clv_device_info_get(clv_device_get(all, n - 1))->label) == 0);
        CHECK(strcmp(only->name + strlen(only->name) - 2, ":0") == 0);
        clv_runtime_destroy(some);
    }

    // One that is not there is a mistake, and said.
    setenv("CLEAVE_VISIBLE_DEVICES", "77", 1);
    CHECK(clv_runtime_create(NULL, &some) == CLV_E_NOT_FOUND);
    printf("refused: %s\n", clv_runtime_error(some));
    CHECK(strstr(clv_runtime_error(some), "77"));
    clv_runtime_destroy(some);
    clv_runtime_destroy(all);
    return 0;
}
