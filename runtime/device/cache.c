// SPDX-License-Identifier: Apache-2.0
#include "device/cache.h"

clv__cache_key clv__cache_key_of(const clv_device *device, const char *source, const char *options) {
    (void)device, (void)source, (void)options;
    return (clv__cache_key){{0}};
}

bool clv__cache_read(const clv_device *device, clv__cache_key key, void **binary, size_t *bytes) {
    (void)device, (void)key;
    *binary = 0;
    *bytes = 0;
    return false;
}

void clv__cache_write(clv_device *device, clv__cache_key key, const void *binary, size_t bytes) {
    (void)device, (void)key, (void)binary, (void)bytes;
}
