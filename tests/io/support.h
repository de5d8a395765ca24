// SPDX-License-Identifier: Apache-2.0
// What the tests of files and data share: a runtime, a folder that goes away, bytes in and out of files, and the check
// that a failure has its status and a sentence that says what it should.
#ifndef CLV_TESTS_IO_SUPPORT_H
#define CLV_TESTS_IO_SUPPORT_H

#include "harness/harness.h"

#include "cleave/io.h"

/** A shape by address, for the length of the block. */
#define SHAPE(...)                                                                                           \
    (&(clv_shape){.rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), .dims = {__VA_ARGS__}})

/** For group_setup and group_teardown: a runtime with the host device, and an empty folder that is the current one. */
int support_begin(void **state);
int support_end(void **state);

extern clv_runtime *support_runtime; // a test program is one thread

/** A file of the golden folder; in static memory, until the next call. */
const char *golden(const char *name);

void write_file(const char *path, const void *bytes, size_t size);
/** The bytes of a file, to be freed. */
uint8_t *read_file(const char *path, size_t *size);
int file_exists(const char *path);
/** Number of entries of the current folder. */
int count_files(void);

#define expect_ok(status) assert_status((status), CLV_OK, support_runtime)
/** `status` is the expected one, and the sentence holds each of the parts that follow it. */
#define expect_failure(status, ...)                                                                          \
    expect_failure_at(__FILE__, __LINE__, (status), __VA_ARGS__, (const char *)NULL)
void expect_failure_at(const char *file, int line, clv_status status, clv_status expected, ...);

#endif
