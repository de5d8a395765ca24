// SPDX-License-Identifier: Apache-2.0
// One file, and the folder it lies in, that exist in memory only: readers that open a file by its name read it without a system
// call. The driver is linked with --wrap for each function here; every other name and descriptor goes to the system.
#ifndef CLV_TESTS_FUZZ_MEMORY_FILE_H
#define CLV_TESTS_FUZZ_MEMORY_FILE_H

#include <stddef.h>

/** From now on `path` is a regular file of these bytes, which stay the caller's. */
void memory_file_set(const char *path, const void *bytes, size_t size);

/** From now on `folder` is a folder with one entry, which holds what was last set. */
void memory_file_folder(const char *folder, const char *entry);

#endif
