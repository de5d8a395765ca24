// SPDX-License-Identifier: Apache-2.0
// A driver without a card, for run.sh: it takes memory, copies and fills, reads the programs' kernels and parameters, and computes nothing.
// Each launch must name a kernel that there is, have groups that cards can have, and hand it an address of memory that was taken where the
// kernel wants one. So ptx.c is tried but for the results, which are all zeros.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096, MOST_PARAMS = 128 };
static struct {
    char name[128];
    int n, wide[MOST_PARAMS]; // 1: of 64 bits, an address
} kernels[MOST];
static struct {
    char *at;
    size_t bytes;
} taken[MOST];
static int n_kernels, n_taken;

static int wrong(const char *what, const char *of) {
    fprintf(stderr, "FAKE: %s: %s\n", of, what);
    return 1;
}
int cuInit(unsigned flags) { return flags != 0; }
int cuDeviceGetCount(int *n) { return *n = 1, 0; }
int cuDeviceGet(int *device, int i) { return *device = i, 0; }
int cuDeviceGetName(char *name, int n, int device) { return snprintf(name, (size_t)n, "no card %d", device), 0; }
int cuDriverGetVersion(int *version) { return *version = 12040, 0; }
int cuCtxCreate_v2(void **context, unsigned flags, int device) { return *context = &kernels, (int)flags + device; }
int cuCtxSynchronize(void) { return 0; }
int cuEventCreate(void **event, unsigned flags) { return *event = &taken, (int)flags; }
int cuEventRecord(void *event, void *stream) { return !event || stream; }
int cuEventSynchronize(void *event) { return !event; }
int cuEventElapsedTime(float *ms, void *from, void *to) { return *ms = 1, !from || !to; }
int cuGetErrorString(int code, const char **said) { return *said = "the fake driver said no", code == 0; }

int cuModuleLoadData(void **module, const void *text) {
    *module = (void *)text;
    for (const char *at = text; (at = strstr(at, ".entry ")); at++) {
        const char *open = strchr(at, '('), *close = strchr(at, ')');
        if (!open || !close || n_kernels == MOST) return wrong("a program that cannot be read", "module");
        snprintf(kernels[n_kernels].name, sizeof kernels[0].name, "%.*s", (int)(open - at - 7), at + 7);
        for (const char *param = open; (param = strstr(param, ".param ")) && param < close; param++)
            kernels[n_kernels].wide[kernels[n_kernels].n++] = !strncmp(param + 7, ".u64", 4);
        n_kernels++;
    }
    return 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    for (int i = 0; i < n_kernels; i++)
        if (!strcmp(kernels[i].name, name)) return *function = &kernels[i], !module;
    return 1;
}
int cuMemAlloc_v2(unsigned long long *at, size_t bytes) {
    if (n_taken == MOST) return wrong("more memory than is given back", "cuMemAlloc");
    taken[n_taken].at = malloc(bytes);
    taken[n_taken].bytes = bytes;
    return *at = (unsigned long long)taken[n_taken++].at, 0;
}
int cuMemFree_v2(unsigned long long at) {
    for (int i = 0; i < n_taken; i++) {
        if ((unsigned long long)taken[i].at != at) continue;
        free(taken[i].at);
        taken[i] = taken[--n_taken];
        return 0;
    }
    return wrong("memory that was not taken", "cuMemFree");
}
static int is_taken(unsigned long long at, size_t bytes) {
    for (int i = 0; i < n_taken; i++)
        if (at >= (unsigned long long)taken[i].at && at + bytes <= (unsigned long long)taken[i].at + taken[i].bytes) return 1;
    return 0;
}
int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t n) {
    return is_taken(to, n) ? memcpy((void *)to, from, n), 0 : wrong("beyond memory", "cuMemcpyHtoD");
}
int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t n) {
    return is_taken(from, n) ? memcpy(to, (void *)from, n), 0 : wrong("beyond memory", "cuMemcpyDtoH");
}
int cuMemcpyDtoD_v2(unsigned long long to, unsigned long long from, size_t n) {
    return is_taken(to, n) && is_taken(from, n) ? memcpy((void *)to, (void *)from, n), 0 : wrong("beyond memory", "cuMemcpyDtoD");
}
int cuMemsetD32_v2(unsigned long long to, unsigned pattern, size_t n) {
    if (!is_taken(to, 4 * n)) return wrong("beyond memory", "cuMemsetD32");
    for (size_t i = 0; i < n; i++) ((unsigned *)to)[i] = pattern;
    return 0;
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned x, unsigned y, unsigned z, unsigned local, void *stream,
                   void **params, void **more) {
    const int i = (int)((char (*)[sizeof kernels[0]])function - (char (*)[sizeof kernels[0]])kernels);
    if (!gx || !gy || !gz || gy > 65535 || gz > 65535 || x * y * z < 1 || x * y * z > 1024 || z > 64 || local || stream || more)
        return wrong("a grid that no card takes", kernels[i].name);
    for (int k = 0; k < kernels[i].n; k++)
        if (kernels[i].wide[k] && *(unsigned long long *)params[k] && !is_taken(*(unsigned long long *)params[k], 1))
            return wrong("a parameter that is no address", kernels[i].name);
    return 0;
}
