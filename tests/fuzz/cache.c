// SPDX-License-Identifier: Apache-2.0
// Any bytes as an entry of the program cache, and any bytes behind a right head: not there, or just the binary that was kept. Files
// of the cache are only ever another binary by a hash that fits.
#include "fuzz/fuzz.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleave/cleave.h"
#include "device/cache.h"

static clv_runtime *runtime;
static clv_device *device;
static clv__cache_key key;
static char folder[] = "/dev/shm/cleave-fuzz-XXXXXX", entry[256];
static uint8_t *whole; // a right entry
static size_t n_whole;
static const char binary[] = "a binary of some bytes";

static void remove_folder(void) {
    unlink(entry);
    rmdir(folder);
}

static void find_entry(void *user, const clv_cache_entry *found) {
    (void)user;
    snprintf(entry, sizeof entry, "%s/%s", folder, found->file);
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
    REQUIRE(clv_cache_list(runtime, find_entry, NULL) == CLV_OK && *entry);
    atexit(remove_folder);
    FILE *file = fopen(entry, "rb");
    REQUIRE(file != NULL);
    whole = malloc(4096);
    REQUIRE(whole != NULL);
    n_whole = fread(whole, 1, 4096, file);
    fclose(file);
}

static void read_as_entry(const void *data, size_t size, const void *more, size_t n_more) {
    int file = open(entry, O_WRONLY | O_TRUNC | O_CREAT, 0600); // a damaged entry may have been removed
    REQUIRE(file >= 0);
    REQUIRE(write(file, data, size) == (ssize_t)size && write(file, more, n_more) == (ssize_t)n_more);
    close(file);
    void *found;
    size_t bytes;
    bool there = clv__cache_read(device, key, &found, &bytes);
    REQUIRE(there == (found != NULL));
    if (there)
        REQUIRE(bytes == sizeof binary &&
                memcmp(found, binary, bytes) == 0); // 64 bits of a hash are not met by chance
    free(found);
}

static void list_entries(bool now) {
    if (now) REQUIRE(clv_cache_list(runtime, find_entry, NULL) == CLV_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    begin();
    read_as_entry(data, size, "", 0);
    list_entries(size % 3 == 0); // listing takes longer than reading: one of the three files for each input
    size_t cut = size ? data[0] % n_whole : 0; // the beginning of a right one, then these bytes
    read_as_entry(whole, cut, data, size);
    list_entries(size % 3 == 1);
    for (size_t i = 0; i + 1 < size && i < 8; i += 2) whole[data[i] % n_whole] ^= data[i + 1];
    bool same = true;
    for (size_t i = 0; i + 1 < size && i < 8; i += 2) same &= data[i + 1] == 0;
    (void)same;
    read_as_entry(whole, n_whole, "", 0);
    list_entries(size % 3 == 2);
    for (size_t i = 0; i + 1 < size && i < 8; i += 2) whole[data[i] % n_whole] ^= data[i + 1];
    return 0;
}
