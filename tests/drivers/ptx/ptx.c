// SPDX-License-Identifier: Apache-2.0
// Kernels on a card that has its vendor's compute driver and none for OpenCL: loads what a compiler made of them (FOLDER/*.ptx) through
// that driver's own interface, runs the launches of meter/launches.c, holds the results of all samples against the reference, and times the
// nodes of the models' training steps. So kernels are known to be right, and how fast; of the runtime around them nothing is.
//
// usage: ptx FOLDER [LIBRARY]      FOLDER: data.bin and *.ptx, as pack.sh makes it; LIBRARY: the driver, default libcuda.so.1
// Exit 0: all samples right; 1: some wrong, or the driver failed; 2: wrong usage; 77: there is no such driver, or it has no card.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <glob.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../meter/meter.h"

// ---- the driver ----------------------------------------------------------------------------------------------------------

typedef unsigned long long address; // on the card
typedef void *handle;

static struct {
    int (*init)(unsigned);
    int (*device_count)(int *);
    int (*device_get)(int *, int);
    int (*device_name)(char *, int, int);
    int (*driver_version)(int *);
    int (*context_create)(handle *, unsigned, int);
    int (*module_load)(handle *, const void *);
    int (*function_get)(handle *, handle, const char *);
    int (*alloc)(address *, size_t);
    int (*release)(address);
    int (*to_card)(address, const void *, size_t);
    int (*from_card)(void *, address, size_t);
    int (*copy)(address, address, size_t);
    int (*fill)(address, unsigned, size_t);
    int (*launch)(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle,
                  void **, void **);
    int (*synchronize)(void);
    int (*event_create)(handle *, unsigned);
    int (*event_record)(handle, handle);
    int (*event_synchronize)(handle);
    int (*event_elapsed)(float *, handle, handle);
    int (*error_string)(int, const char **);
} cu;

static const struct {
    const char *name;
    void *to;
} symbols[] = {{"cuInit", &cu.init},
               {"cuDeviceGetCount", &cu.device_count},
               {"cuDeviceGet", &cu.device_get},
               {"cuDeviceGetName", &cu.device_name},
               {"cuDriverGetVersion", &cu.driver_version},
               {"cuCtxCreate_v2", &cu.context_create},
               {"cuModuleLoadData", &cu.module_load},
               {"cuModuleGetFunction", &cu.function_get},
               {"cuMemAlloc_v2", &cu.alloc},
               {"cuMemFree_v2", &cu.release},
               {"cuMemcpyHtoD_v2", &cu.to_card},
               {"cuMemcpyDtoH_v2", &cu.from_card},
               {"cuMemcpyDtoD_v2", &cu.copy},
               {"cuMemsetD32_v2", &cu.fill},
               {"cuLaunchKernel", &cu.launch},
               {"cuCtxSynchronize", &cu.synchronize},
               {"cuEventCreate", &cu.event_create},
               {"cuEventRecord", &cu.event_record},
               {"cuEventSynchronize", &cu.event_synchronize},
               {"cuEventElapsedTime", &cu.event_elapsed},
               {"cuGetErrorString", &cu.error_string}};

static void stop(int code, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
static void stop(int code, const char *format, ...) {
    va_list more;
    va_start(more, format);
    fputs("ptx: ", stderr);
    vfprintf(stderr, format, more);
    fputc('\n', stderr);
    va_end(more);
    exit(code);
}

/** A call that must succeed. */
static void must(int code, const char *what, const char *of) {
    const char *said = NULL;
    if (!code) return;
    if (cu.error_string) cu.error_string(code, &said);
    stop(1, "%s of %s failed: %d, %s", what, of, code, said ? said : "the driver does not say why");
}

static void begin(const char *library) {
    void *driver = dlopen(library, RTLD_NOW);
    int n = 0, device, version = 0;
    char name[256] = "";
    handle context;
    if (!driver) stop(77, "there is no driver: %s", dlerror());
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *found = dlsym(driver, symbols[i].name);
        if (!found) stop(77, "'%s' has no %s", library, symbols[i].name);
        memcpy(symbols[i].to, &found, sizeof found);
    }
    if (cu.init(0) || cu.device_count(&n) || n < 1) stop(77, "'%s' has no card", library);
    must(cu.device_get(&device, 0), "asking for the first card", library);
    must(cu.device_name(name, sizeof name, device), "the name", library);
    must(cu.driver_version(&version), "the version", library);
    must(cu.context_create(&context, 0, device), "a context", name);
    printf("card: %s, driver's interface %d.%d\n", name, version / 1000, version % 1000 / 10);
}

// ---- kernels -------------------------------------------------------------------------------------------------------------

static handle modules[256];
static int n_modules;

static char *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    long n = -1;
    if (file && !fseek(file, 0, SEEK_END) && (n = ftell(file)) >= 0 && !fseek(file, 0, SEEK_SET) &&
        (bytes = malloc((size_t)n + 1)) && fread(bytes, 1, (size_t)n, file) == (size_t)n)
        bytes[n] = 0;
    else
        stop(1, "'%s' cannot be read", path);
    fclose(file);
    if (size) *size = (size_t)n;
    return bytes;
}

static void load(const char *folder) {
    char pattern[4096];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*.ptx", folder);
    if (glob(pattern, 0, NULL, &found)) stop(2, "there is no program in '%s'", folder);
    for (size_t i = 0; i < found.gl_pathc && n_modules < (int)(sizeof modules / sizeof *modules); i++) {
        char *text = read_file(found.gl_pathv[i], NULL);
        must(cu.module_load(&modules[n_modules++], text), "loading", found.gl_pathv[i]);
        free(text);
    }
    printf("%d programs loaded\n", n_modules);
    globfree(&found);
}

static handle function_of(const char *name) {
    handle function = NULL;
    for (int i = 0; i < n_modules; i++)
        if (!cu.function_get(&function, modules[i], name)) return function;
    stop(1, "no program has the kernel %s", name);
}

// ---- nodes ---------------------------------------------------------------------------------------------------------------

static address buffers[METER_MOST_BUFFERS];

/** Memory with the node's values; where there are none zeros, which are legal numbers and indices. */
static void prepare(const meter_node *node, const char *data) {
    for (int i = 0; i < node->n_buffers; i++) {
        const meter_buffer *b = &node->buffers[i];
        buffers[i] = 0;
        if (!b->bytes) continue;
        must(cu.alloc(&buffers[i], b->bytes + 256), "memory", node->use);
        must(cu.fill(buffers[i], 0, (b->bytes + 256) / 4), "a fill", node->use);
        if (b->given >= 0) must(cu.to_card(buffers[i], data + b->given, b->bytes), "a write", node->use);
    }
}

static void release(const meter_node *node) {
    for (int i = 0; i < node->n_buffers; i++)
        if (buffers[i]) must(cu.release(buffers[i]), "giving memory back", node->use);
}

static void launch(const meter_launch *l) {
    enum { MOST_ARGS = 128 };
    union {
        address at;
        uint32_t bits;
    } values[MOST_ARGS];
    void *pointers[MOST_ARGS];
    must(l->n_args > MOST_ARGS, "more arguments than there is room for", l->name);
    if (l->kind == METER_COPY) {
        must(cu.copy(buffers[l->to] + l->to_at, buffers[l->from] + l->from_at, l->bytes), "a copy", "a node");
    } else if (l->kind == METER_FILL) {
        must(cu.fill(buffers[l->to] + l->to_at, l->pattern, l->bytes / 4), "a fill", "a node");
    } else {
        unsigned groups[3];
        for (int i = 0; i < l->n_args; i++) {
            pointers[i] = &values[i];
            if (l->args[i].buffer >= 0)
                values[i].at = buffers[l->args[i].buffer] ? buffers[l->args[i].buffer] + l->args[i].at : 0;
            else
                values[i].bits = l->args[i].bits;
        }
        for (int d = 0; d < 3; d++) groups[d] = (unsigned)(l->global[d] / l->local[d]);
        must(cu.launch(function_of(l->name), groups[0], groups[1], groups[2], (unsigned)l->local[0],
                       (unsigned)l->local[1], (unsigned)l->local[2], 0, NULL, pointers, NULL),
             "the launch", l->name);
    }
}

/** The largest difference from what is wanted, as a part of the largest value; a NaN where it should be a number is infinitely wrong. */
static double difference(const meter_buffer *b, const char *got, const char *data) {
    double largest = 0, apart = 0;
    for (size_t i = 0; i < b->n; i++) {
        double want, have;
        float f;
        int32_t whole;
        memcpy(&want, data + b->wanted + i * sizeof want, sizeof want);
        memcpy(&f, got + 4 * i, sizeof f);
        memcpy(&whole, got + 4 * i, sizeof whole);
        have = b->element ? whole : (double)f;
        if (isnan(want) && isnan(have)) continue;
        if (want == have) continue;
        if (!(fabs(want) <= 1e300)) return INFINITY;
        if (!(fabs(want - have) <= apart)) apart = isnan(have) ? INFINITY : fabs(want - have);
    }
    for (size_t i = 0; i < b->n; i++) {
        double want;
        memcpy(&want, data + b->wanted + i * sizeof want, sizeof want);
        if (fabs(want) > largest && fabs(want) <= 1e300) largest = fabs(want);
    }
    return apart == 0 ? 0 : largest > 0 ? apart / largest : INFINITY;
}

static bool sample_is_right(const meter_node *node, const char *data) {
    bool right = true;
    prepare(node, data);
    for (int i = 0; i < node->n_launches; i++) launch(&node->launches[i]);
    must(cu.synchronize(), "the end", node->use);
    for (int i = 0; i < node->n_buffers; i++) {
        const meter_buffer *b = &node->buffers[i];
        if (b->wanted < 0 || !b->n) continue;
        char *got = malloc(b->bytes);
        if (!got) stop(1, "there is no memory for the results of %s", node->use);
        must(cu.from_card(got, buffers[i], b->bytes), "reading results", node->use);
        double apart = difference(b, got, data);
        free(got);
        if (apart <= b->within) continue;
        printf("WRONG %s: %g of the largest value, at most %g is right\n", node->use, apart, b->within);
        right = false;
    }
    release(node);
    return right;
}

/** Milliseconds of a node's launches, the least of three runs after one that is not counted. */
static double time_of(const meter_node *node, const char *data, handle from, handle to) {
    double least = INFINITY;
    prepare(node, data);
    for (int run = 0; run < 4; run++) {
        float ms = 0;
        must(cu.event_record(from, NULL), "an event", node->use);
        for (int i = 0; i < node->n_launches; i++) launch(&node->launches[i]);
        must(cu.event_record(to, NULL), "an event", node->use);
        must(cu.event_synchronize(to), "waiting", node->use);
        must(cu.event_elapsed(&ms, from, to), "the time", node->use);
        if (run && (double)ms < least) least = (double)ms;
    }
    release(node);
    return least;
}

int main(int argc, char **argv) {
    char path[4096];
    size_t size;
    int n = 0, wrong = 0;
    handle from, to;
    if (argc < 2 || argc > 3) stop(2, "usage: ptx FOLDER [LIBRARY]");
    begin(argc > 2 ? argv[2] : "libcuda.so.1");
    load(argv[1]);
    snprintf(path, sizeof path, "%s/data.bin", argv[1]);
    char *data = read_file(path, &size);
    for (int i = 0; i < meter_n_nodes; i++) {
        if (*meter_nodes[i].model) continue;
        n++;
        wrong += !sample_is_right(&meter_nodes[i], data);
    }
    must(cu.event_create(&from, 0), "an event", "the card");
    must(cu.event_create(&to, 0), "an event", "the card");
    printf("model\tuse\tkernels\tcount\tms\tms of a step\tGB/s of the node's tensors\n");
    for (int i = 0; i < meter_n_nodes; i++) {
        const meter_node *node = &meter_nodes[i];
        if (!*node->model) continue;
        double ms = time_of(node, data, from, to);
        printf("%s\t%s\t%s\t%d\t%.4f\t%.4f\t%.1f\n", node->model, node->use,
               node->launches[0].entry ? node->launches[0].entry : "copy", node->count, ms, ms * node->count,
               ms > 0 ? 1e-6 * (double)node->must / ms : 0);
    }
    printf("%d samples, %d wrong\n", n, wrong);
    free(data);
    return wrong > 0;
}
