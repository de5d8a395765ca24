// SPDX-License-Identifier: Apache-2.0
// An OpenCL layer (OPENCL_LAYERS) that makes a driver die: asking the platform of number CLV_TEST_DIE_AT for its devices
// ends the process. Without that variable asking for platforms does. CLV_TEST_DIE_HOW says how; with CLV_TEST_DIE_IF it does so only
// while there is that file. Before it dies it speaks. Each process that asks for platforms adds a line to the file CLV_TEST_COUNT.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/layer.h"

/** Use up the stack, if `deeper`. */
static int descend(volatile const char *page, const volatile int *deeper) {
    volatile char next[4096];
    next[0] = page[0];
    return *deeper ? descend(next, deeper) + next[0] : 0;
}

static void die(void) {
    const char *how = getenv("CLV_TEST_DIE_HOW"), *condition = getenv("CLV_TEST_DIE_IF");
    if (condition && access(condition, F_OK) != 0) return;
    fprintf(stderr, "last words to stderr\n");
    printf("last words to stdout\n"); // stays in the buffer of stdout, unless somebody flushes it
    if (!how) abort();
    if (!strcmp(how, "exit")) exit(0);
    if (!strcmp(how, "segv")) *(volatile int *)(getenv("CLV_TEST_NO_SUCH_VARIABLE")) = 1;
    if (!strcmp(how, "stack")) descend("", &(const volatile int){1});
    if (!strcmp(how, "hang") &&
        strcmp(getenv("CLEAVE_PROBE"), "guard") == 0) // the test is not to wait for the child too
        for (;;) pause();
    abort();
}

static cl_int CL_API_CALL my_clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint room,
                                            cl_device_id *devices, cl_uint *n) {
    cl_platform_id platforms[64];
    cl_uint n_platforms = 0,
            doomed = getenv("CLV_TEST_DIE_AT") ? (cl_uint)atoi(getenv("CLV_TEST_DIE_AT")) : ~0u;
    below.clGetPlatformIDs(64, platforms, &n_platforms);
    if (doomed < n_platforms && platform == platforms[doomed]) die();
    return below.clGetDeviceIDs(platform, type, room, devices, n);
}

static cl_int CL_API_CALL my_clGetPlatformIDs(cl_uint room, cl_platform_id *platforms, cl_uint *n) {
    if (!getenv("CLV_TEST_DIE_AT")) die(); // returns where CLV_TEST_DIE_IF says so
    FILE *count = room == 0 && getenv("CLV_TEST_COUNT") ? fopen(getenv("CLV_TEST_COUNT"), "a") : NULL;
    if (count) fprintf(count, "here\n"), fclose(count);
    if (getenv("CLV_TEST_SPEAK")) printf("a driver speaks\n");
    return below.clGetPlatformIDs(room, platforms, n);
}

LAYER("clv dying layer") {
    LAYER_TAKE(clGetDeviceIDs)
    LAYER_TAKE(clGetPlatformIDs)
    return CL_SUCCESS;
}
