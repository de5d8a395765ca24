// SPDX-License-Identifier: Apache-2.0
// An OpenCL layer (OPENCL_LAYERS) under which compilers refuse programs, or end the process that has them built: CLV_TEST_DIES from
// the environment, words between blanks:
//
//   fail, exit, segv, abort, hang   how: clBuildProgram returns an error, calls _exit, raises a signal, does not come back
//   at=K            the K-th build does, once
//   large=N         each program of more than N instances of kernel sources does
//   kernel=NAME     each program that has this kernel does
//   binaries=0      programs have no binaries
//   name=0          the platform keeps its name; else it has one that no quirk is for
//
// Builds are counted over all processes in the file CLV_TEST_DIES_FILE, a line each: `begun`, and `built` if that came to its end, with
// a hash of the text. `fail` counts every call. A process that ends does so for a text: one that was built once is built again,
// uncounted, as the compilers meant are deterministic; loading a binary is no build either.
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "device/layer.h"

/** The value of a word, what stands behind its `=`; NULL: it is not said. */
static const char *says(const char *word) {
    const char *all = getenv("CLV_TEST_DIES");
    size_t n = strlen(word);
    for (const char *at = all ? all : ""; *at; at += *at != 0) {
        size_t length = strcspn(at, " ");
        if (length >= n && !strncmp(at, word, n) && (length == n || word[n - 1] == '=')) return at + n;
        at += length;
    }
    return NULL;
}

// ---- the count --------------------------------------------------------------------------------------------------------

/** Write a line; returns how many builds were begun, this one included, or 0 if the text was built before. */
static long count(const char *what, uint64_t hash, int again) {
    const char *path = getenv("CLV_TEST_DIES_FILE");
    FILE *file = path ? fopen(path, "a+") : NULL;
    if (!file) return -1;
    flock(fileno(file), LOCK_EX);
    char line[64], begun[64], built[64];
    snprintf(built, sizeof built, "built %016llx\n", (unsigned long long)hash);
    snprintf(begun, sizeof begun, "%s %016llx\n", what, (unsigned long long)hash);
    long n = 1;
    rewind(file);
    while (n && fgets(line, sizeof line, file)) {
        if (!again && !strcmp(line, built)) n = 0;
        n += n && !strncmp(line, "begun", 5);
    }
    fseek(file, 0, SEEK_END);
    if (n) fputs(begun, file);
    fclose(file); // the lock goes with it
    return n;
}

// ---- builds -----------------------------------------------------------------------------------------------------------

/** The text of a program, malloc'd; NULL: it has none. */
static char *text_of(cl_program program) {
    size_t n = 0;
    if (below.clGetProgramInfo(program, CL_PROGRAM_SOURCE, 0, NULL, &n) != CL_SUCCESS || n < 2) return NULL;
    char *text = calloc(n + 1, 1);
    if (text && below.clGetProgramInfo(program, CL_PROGRAM_SOURCE, n, text, NULL) == CL_SUCCESS) return text;
    free(text);
    return NULL;
}

static int is_deadly(const char *text) {
    const char *large = says("large="), *kernel = says("kernel=");
    char entry[100] = "";
    long instances = 0;
    if (kernel) snprintf(entry, sizeof entry, "KERNEL(%.*s)(", (int)strcspn(kernel, " "), kernel);
    for (const char *at = text; (at = strstr(at, "#define KERNEL(name) name##")); at++) instances++;
    return (large && instances > atol(large)) || (kernel && strstr(text, entry));
}

/** Does not return, but for `fail`. */
static void die(void) {
    if (says("exit")) _exit(3);
    const int number = says("segv") ? SIGSEGV : says("abort") ? SIGABRT : 0;
    if (number) {
        signal(number, SIG_DFL);
        raise(number);
    }
    while (says("hang")) pause();
}

static cl_int CL_API_CALL my_clBuildProgram(cl_program program, cl_uint n, const cl_device_id *ids,
                                            const char *options, void(CL_CALLBACK *done)(cl_program, void *),
                                            void *user) {
    char *text = text_of(program);
    if (!text && !says("fail")) return below.clBuildProgram(program, n, ids, options, done, user);
    uint64_t hash = UINT64_C(14695981039346656037); // FNV-1a
    for (const char *c = text ? text : ""; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    const char *at = says("at=");
    const long number = count("begun", hash, says("fail") != NULL);
    const int dies = (at && number == atol(at)) || (text && is_deadly(text));
    free(text);
    if (dies) {
        die();
        return CL_BUILD_PROGRAM_FAILURE;
    }
    cl_int code = below.clBuildProgram(program, n, ids, options, done, user);
    if (code == CL_SUCCESS && number) count("built", hash, 1);
    return code;
}

// ---- what else is not as below ----------------------------------------------------------------------------------------

static cl_int CL_API_CALL my_clGetPlatformInfo(cl_platform_id platform, cl_platform_info what, size_t room,
                                               void *out, size_t *size) {
    static const char name[] = "A driver with a compiler";
    if (what != CL_PLATFORM_NAME || says("name=0"))
        return below.clGetPlatformInfo(platform, what, room, out, size);
    if (out && room < sizeof name) return CL_INVALID_VALUE;
    if (out) memcpy(out, name, sizeof name);
    if (size) *size = sizeof name;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL my_clGetProgramInfo(cl_program program, cl_program_info what, size_t room,
                                              void *out, size_t *size) {
    cl_int code = below.clGetProgramInfo(program, what, room, out, size);
    if (code == CL_SUCCESS && what == CL_PROGRAM_BINARY_SIZES && out && says("binaries=0"))
        memset(out, 0, room);
    return code;
}

LAYER("clv dies layer") {
    LAYER_TAKE(clBuildProgram)
    LAYER_TAKE(clGetPlatformInfo)
    LAYER_TAKE(clGetProgramInfo)
    return CL_SUCCESS;
}
