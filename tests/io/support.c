// SPDX-License-Identifier: Apache-2.0
#include "io/support.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

clv_runtime *support_runtime;
static char *folder;

int support_begin(void **state) {
    support_runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true, .no_cache = true});
    folder = clv__test_folder();
    return chdir(folder);
}

static int walk(int remove_all) {
    int n = 0;
    DIR *dir = opendir(".");
    if (!dir) return -1;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        n++;
        if (remove_all && unlink(entry->d_name) != 0) rmdir(entry->d_name);
    }
    closedir(dir);
    return n;
}

int support_end(void **state) {
    clv_runtime_destroy(support_runtime);
    walk(1);
    int failed = chdir("/") != 0 || rmdir(folder) != 0;
    free(folder);
    return failed;
}

int count_files(void) {
    return walk(0);
}

const char *golden(const char *name) {
    static char path[1024];
    snprintf(path, sizeof path, "%s/tests/golden/io/%s", CLV_TEST_SOURCE_DIR, name);
    return path;
}

void write_file(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

uint8_t *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("no file %s", path);
    struct stat info;
    assert_int_equal(fstat(fileno(file), &info), 0);
    *size = (size_t)info.st_size;
    uint8_t *bytes = malloc(*size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    bytes[*size] = 0;
    fclose(file);
    return bytes;
}

int file_exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

void expect_failure_at(const char *file, int line, clv_status status, clv_status expected, ...) {
    const char *sentence = clv_runtime_error(support_runtime);
    clv__assert_status(status, expected, support_runtime, sentence, file, line);
    va_list parts;
    va_start(parts, expected);
    for (const char *part; (part = va_arg(parts, const char *));)
        clv__assert_holds(sentence, part, file, line);
    va_end(parts);
}
