// SPDX-License-Identifier: Apache-2.0
// Any bytes as an entry of the program cache, and any bytes behind a right head: not there, or just the binary that was kept. Files
// of the cache are only ever another binary by a hash that fits.
#include "fuzz/fuzz.h"

#include <unistd.h>

#include "cleave/cleave.h"
#include "device/cache.h"
#include "fuzz/memory_file.h"

static clv_runtime *runtime;
static clv_device *device;
static clv__cache_key key;
static char folder[] = "/dev/shm/cleave-fuzz-XXXXXX", name[128];
static uint8_t *whole; // a right entry
static size_t n_whole;
static const char binary[] = "a binary of some bytes";

static void find_entry(void *user, const clv_cache_entry *found) {
    snprintf(name, sizeof name, "%s", found->file);
}

static void begin(void) {
    if (runtime) return;
    REQUIRE(mkdtemp(folder) != NULL);
    clv_runtime_config config = {
        .null_devices = true, .no_opencl = true, .visible_devices = "", .partition = "", .cache_dir = folder};
    REQUIRE(clv_runtime_create(&config, &runtime) == CLV_OK);
    REQUIRE(clv_device_find(runtime, "null:0", &device) == CLV_OK);
    key = clv__cache_key_of(device, "source", "options");
    clv__cache_write(device, key, binary, sizeof binary);
    REQUIRE(clv_cache_list(runtime, find_entry, NULL) == CLV_OK && *name);
    char entry[256];
    snprintf(entry, sizeof entry, "%s/%s", folder, name);
    FILE *file = fopen(entry, "rb");
    REQUIRE(file != NULL);
    whole = malloc(4096);
    REQUIRE(whole != NULL);
    n_whole = fread(whole, 1, 4096, file);
    fclose(file);
    unlink(entry); // from here on both are in memory
    rmdir(folder);
    memory_file_folder(folder, name);
}

static void read_as_entry(const void *data, size_t size, const void *more, size_t n_more, bool list) {
    uint8_t *file = malloc(size + n_more + 1);
    REQUIRE(file != NULL);
    if (size) memcpy(file, data, size);
    if (n_more) memcpy(file + size, more, n_more);
    memory_file_set(NULL, file, size + n_more);
    void *found;
    size_t bytes;
    bool there = clv__cache_read(device, key, &found, &bytes);
    REQUIRE(there == (found != NULL));
    if (there)
        REQUIRE(bytes == sizeof binary &&
                memcmp(found, binary, bytes) == 0); // 64 bits of a hash are not met by chance
    free(found);
    if (list) REQUIRE(clv_cache_list(runtime, find_entry, NULL) == CLV_OK);
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    begin();
    read_as_entry(data, size, "", 0,
                  size % 3 == 0);              // listing reads again: one of the three files for each input
    size_t cut = size ? data[0] % n_whole : 0; // the beginning of a right one, then these bytes
    read_as_entry(whole, cut, data, size, size % 3 == 1);
    for (size_t i = 0; i + 1 < size && i < 8; i += 2) whole[data[i] % n_whole] ^= data[i + 1];
    read_as_entry(whole, n_whole, "", 0, size % 3 == 2);
    for (size_t i = 0; i + 1 < size && i < 8; i += 2) whole[data[i] % n_whole] ^= data[i + 1];
    return 0;
}
