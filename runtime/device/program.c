// SPDX-License-Identifier: Apache-2.0
// Programs of a device: which kernels are built, gathering what is not into few sources, building them side
// by side. Front-end time is per program on some drivers and per kernel on others, so a few programs of even
// size serve all.
#include "device/program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/processors.h"
#include "device/cache.h"
#include "device/kernel_sources.h"
#include "device/source.h"

/** The one set of compiler options: OpenCL C 1.2 is the floor, and no fast-math (see numbers in the design).
 */
const char clv__program_options[] = "-cl-std=CL1.2";

enum { MAX_PROGRAMS = 8, LOG_IN_SENTENCE = 1200 };

/** Kernels of an instance in one program. A later plan's kernels of the same instance are in another. */
typedef struct built {
    uint64_t hash, kernels; // as in clv__instance
    clv__bprogram *program;
} built;

struct clv__program_store {
    pthread_mutex_t lock; // held while building: one thread at a time gathers, many build
    clv__source_index index;
    built *built;
    size_t n, room;
    clv__bprogram **programs;
    size_t n_programs, programs_room;
};

// ---- Gathering --------------------------------------------------------------------------------------------

typedef struct gathering {
    clv__instance *items;
    size_t n, room;
} gathering;

static const built *find_built(const struct clv__program_store *store, uint64_t hash, uint64_t kernel) {
    for (size_t i = 0; i < store->n; i++) {
        if (store->built[i].hash == hash && (store->built[i].kernels & kernel) == kernel)
            return &store->built[i];
    }
    return NULL;
}

static clv__instance *find_instance(const gathering *all, uint64_t hash) {
    for (size_t i = 0; i < all->n; i++) {
        if (all->items[i].hash == hash) return &all->items[i];
    }
    return NULL;
}

/** The instances of the launches, each once, in order, with the kernels that are not in the store. */
static clv_status gather(struct clv__program_store *store, const clv__launch *const *launches, size_t n,
                         clv__error *error, gathering *out) {
    for (size_t i = 0; i < n; i++) {
        const clv__launch *launch = launches[i];
        if (launch->kind != CLV__LAUNCH_KERNEL) continue;
        clv__source_entry at;
        if (!clv__kernel_sources[0].stem)
            CLV_FAIL(error, CLV_E_UNSUPPORTED, "this library was built without OpenCL and holds no kernels: "
                                               "only the host device runs");
        if (!clv__source_look_up(&store->index, launch->source, launch->entry, &at))
            CLV_FAIL(error, CLV_E_INTERNAL, "there is no kernel source '%s.cl' in the library",
                     launch->source);
        uint64_t hash = clv__source_hash(at.text_hash, launch->defines);
        if (find_built(store, hash, at.kernel)) continue;
        clv__instance *instance = find_instance(out, hash);
        if (!instance) {
            if (!clv__grow(&out->items, &out->room, out->n + 1, sizeof *out->items))
                CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory to gather kernels");
            instance = &out->items[out->n++];
            *instance = (clv__instance){.hash = hash, .source = at.source, .defines = launch->defines};
        }
        instance->kernels |= at.kernel;
    }
    return CLV_OK;
}

/** The whole source of a program; `of_program` says which instances are its own, NULL: all. */
static void assemble(clv__text *out, const clv_device *device, const gathering *all, const int *of_program,
                     int program) {
    clv__source_begin(out, device && device->f16_native, device && device->info.no_int64);
    for (size_t i = 0; i < all->n; i++) {
        if (!of_program || of_program[i] == program) clv__source_add(out, &all->items[i]);
    }
}

/** Give each instance to the program that has least text so far. Depends on nothing but the list. */
static void distribute(const gathering *all, int n_programs, int *of_program) {
    size_t load[MAX_PROGRAMS] = {0};
    for (size_t i = 0; i < all->n; i++) {
        int least = 0;
        for (int p = 1; p < n_programs; p++) {
            if (load[p] < load[least]) least = p;
        }
        of_program[i] = least;
        load[least] += clv__source_bytes(&all->items[i]);
    }
}

static int program_count(const clv_device *device, size_t n_instances) {
    long n = device->traits.build_threads;
    if (n == 0) {
        n = clv__processors();
        if (n > 4) n = 4;
    }
    if (n > MAX_PROGRAMS) n = MAX_PROGRAMS;
    if (n > (long)n_instances) n = (long)n_instances;
    return n < 1 ? 1 : (int)n;
}

// ---- Building ---------------------------------------------------------------------------------------------

/** How far a build is; the callback is called under its lock. */
typedef struct build_progress {
    pthread_mutex_t lock;
    int done, total;
} build_progress;

/** The building of one program, perhaps on a thread of its own. */
typedef struct build_job {
    clv_device *device;
    char *source; // owned
    clv__error error;
    clv_status status;
    clv__bprogram *program;
    bool hit;
    build_progress *progress; // NULL: told to nobody
    pthread_t thread;
    bool threaded;
} build_job;

static void tell_progress(clv_runtime *runtime, build_progress *progress) {
    pthread_mutex_lock(&progress->lock);
    progress->done++;
    if (runtime->config.build_progress)
        runtime->config.build_progress(runtime->config.build_progress_user, progress->done, progress->total);
    pthread_mutex_unlock(&progress->lock);
}

/** From the disk cache, else from source, which is then kept in the cache. */
static void run_job(build_job *job) {
    clv_device *device = job->device;
    const clv__backend *backend = device->backend;
    bool cached = !device->runtime->config.no_cache && !device->traits.caches_programs &&
                  backend->program_load && backend->program_binary;
    clv__cache_key key = {{0}};
    void *binary = NULL;
    size_t bytes = 0;
    job->status = CLV_E_BUILD;
    if (cached) {
        key = clv__cache_key_of(device, job->source, clv__program_options);
        if (clv__cache_read(device, key, &binary, &bytes))
            job->status = backend->program_load(device->open, binary, bytes, &job->error, &job->program);
        job->hit = job->status == CLV_OK;
        free(binary);
        binary = NULL;
    }
    if (!job->hit) {
        job->status = backend->program_build(device->open, job->source, clv__program_options, &job->error,
                                             &job->program);
        if (cached && job->status == CLV_OK &&
            backend->program_binary(job->program, &binary, &bytes, &job->error) == CLV_OK) {
            clv__cache_write(device, key, binary, bytes);
            free(binary);
        }
    }
    if (job->progress) tell_progress(device->runtime, job->progress);
}

static void *run_job_thread(void *context) {
    run_job(context);
    return NULL;
}

/** Take a built program and what it has of each instance into the store. */
static clv_status keep(clv_device *device, clv__bprogram *program, const gathering *all,
                       const int *of_program, int number) {
    struct clv__program_store *store = device->programs;
    if (!clv__grow(&store->programs, &store->programs_room, store->n_programs + 1, sizeof *store->programs) ||
        !clv__grow(&store->built, &store->room, store->n + all->n, sizeof *store->built)) {
        device->backend->program_destroy(program);
        CLV_FAIL(&device->runtime->error, CLV_E_HOST_MEMORY, "no host memory to keep a program");
    }
    store->programs[store->n_programs++] = program;
    for (size_t i = 0; i < all->n; i++) {
        if (of_program[i] != number) continue;
        store->built[store->n++] = (built){all->items[i].hash, all->items[i].kernels, program};
    }
    return CLV_OK;
}

/**
 * A program of several kernels did not build: build each alone, so that the rest is there and the sentence
 * names the culprit.
 */
static clv_status build_each(clv_device *device, const gathering *all, const int *of_program, int number) {
    clv_status status = CLV_OK;
    for (size_t i = 0; i < all->n; i++) {
        if (of_program[i] != number) continue;
        gathering one = {.items = &all->items[i], .n = 1};
        clv__text text = {0};
        assemble(&text, device, &one, NULL, 0);
        if (text.failed) {
            clv__text_reset(&text);
            CLV_FAIL(&device->runtime->error, CLV_E_HOST_MEMORY, "no host memory to assemble a program");
        }
        build_job alone = {.device = device, .source = text.data};
        clv__error_init(&alone.error);
        run_job(&alone);
        clv_status this_status = alone.status;
        if (this_status == CLV_OK) {
            this_status = keep(device, alone.program, &one, (int[]){0}, 0);
        } else if (status == CLV_OK) { // the first is told
            char defines[200];
            snprintf(defines, sizeof defines, "%s", all->items[i].defines);
            for (char *c = defines; *c; c++) *c = *c == '\n' ? ';' : *c;
            clv__error_set(&device->runtime->error, this_status, "kernel source %s.cl (%s) on %s: %.*s",
                           all->items[i].source->stem, defines, device->name, LOG_IN_SENTENCE,
                           alone.error.text);
        }
        if (status == CLV_OK) status = this_status;
        clv__text_reset(&text);
        clv__error_destroy(&alone.error);
    }
    return status;
}

static clv_status build_gathered(clv_device *device, const gathering *all) {
    clv_runtime *runtime = device->runtime;
    int n_programs = program_count(device, all->n);
    int *of_program = clv__alloc(all->n, sizeof *of_program);
    build_job *jobs = clv__alloc((size_t)n_programs, sizeof *jobs);
    clv_status status = CLV_OK;
    build_progress progress = {.total = n_programs};
    pthread_mutex_init(&progress.lock, NULL);
    if (!of_program || !jobs) {
        status = clv__error_set(&runtime->error, CLV_E_HOST_MEMORY, "no host memory to build programs");
        goto done;
    }
    distribute(all, n_programs, of_program);
    for (int p = 0; p < n_programs && status == CLV_OK; p++) {
        clv__text text = {0};
        assemble(&text, device, all, of_program, p);
        jobs[p] = (build_job){
            .device = device, .source = text.data, .progress = &progress, .status = CLV_E_INTERNAL};
        clv__error_init(&jobs[p].error);
        if (text.failed)
            status =
                clv__error_set(&runtime->error, CLV_E_HOST_MEMORY, "no host memory to assemble a program");
        else if (runtime->debug >= 4)
            clv__log(runtime, CLV_LOG_DEBUG, "program %d of %d for %s:\n%s", p + 1, n_programs, device->name,
                     text.data);
    }
    if (status == CLV_OK) {
        for (int p = 1; p < n_programs; p++) // a thread that cannot start is done here below
            jobs[p].threaded = pthread_create(&jobs[p].thread, NULL, run_job_thread, &jobs[p]) == 0;
        for (int p = 0; p < n_programs; p++) {
            if (!jobs[p].threaded) run_job(&jobs[p]);
        }
        for (int p = 0; p < n_programs; p++) {
            if (jobs[p].threaded) pthread_join(jobs[p].thread, NULL);
        }
    }
    for (int p = 0; p < n_programs && jobs[p].source; p++) {
        if (status == CLV_OK || jobs[p].program) { // after a failure the others are still kept
            clv_status job_status = jobs[p].status;
            if (job_status == CLV_OK)
                job_status = keep(device, jobs[p].program, all, of_program, p);
            else if (job_status == CLV_E_BUILD)
                job_status = build_each(device, all, of_program, p);
            else
                clv__error_set(&runtime->error, job_status, "%s", jobs[p].error.text);
            if (status == CLV_OK) status = job_status;
        }
        pthread_mutex_lock(&runtime->report_lock);
        runtime->report.programs++;
        if (jobs[p].hit)
            runtime->report.cache_hits++;
        else
            runtime->report.cache_misses++;
        pthread_mutex_unlock(&runtime->report_lock);
    }
done:
    for (int p = 0; jobs && p < n_programs; p++) {
        if (jobs[p].device) clv__error_destroy(&jobs[p].error);
        free(jobs[p].source);
    }
    pthread_mutex_destroy(&progress.lock);
    free(jobs);
    free(of_program);
    return status;
}

/** The device's store, made when first asked for. */
static clv_status open_store(clv_device *device) {
    CLV_TRY(clv__device_open(device));
    pthread_mutex_lock(&device->open_lock);
    if (!device->programs) {
        device->programs = clv__alloc(1, sizeof *device->programs);
        if (device->programs) pthread_mutex_init(&device->programs->lock, NULL);
    }
    pthread_mutex_unlock(&device->open_lock);
    if (!device->programs)
        CLV_FAIL(&device->runtime->error, CLV_E_HOST_MEMORY, "no host memory for programs");
    return CLV_OK;
}

clv_status clv__programs_build(clv_device *device, const clv__launch *const *launches, size_t n) {
    CLV_TRY(open_store(device));
    double begin = clv__seconds();
    struct clv__program_store *store = device->programs;
    pthread_mutex_lock(&store->lock);
    gathering all = {0};
    clv_status status = gather(store, launches, n, &device->runtime->error, &all);
    bool any = status == CLV_OK && all.n > 0;
    if (any) status = build_gathered(device, &all);
    free(all.items);
    pthread_mutex_unlock(&store->lock);
    if (any) {
        pthread_mutex_lock(&device->runtime->report_lock);
        device->runtime->report.seconds += clv__seconds() - begin;
        pthread_mutex_unlock(&device->runtime->report_lock);
    }
    return status;
}

static clv_status put_name(const clv__launch *launch, uint64_t hash, clv__error *error,
                           char name[CLV__KERNEL_NAME_BYTES]) {
    int n = snprintf(name, CLV__KERNEL_NAME_BYTES, "%s_%016" PRIx64, launch->entry, hash);
    if (n < 0 || n >= CLV__KERNEL_NAME_BYTES)
        CLV_FAIL(error, CLV_E_INTERNAL, "the kernel name '%s' is too long", launch->entry);
    return CLV_OK;
}

clv_status clv__programs_kernel_name(const clv__launch *launch, clv__error *error,
                                     char name[CLV__KERNEL_NAME_BYTES]) {
    clv__source_index index = {0};
    clv__source_entry at;
    bool found = clv__source_look_up(&index, launch->source, launch->entry, &at);
    clv__source_index_reset(&index);
    if (!found)
        CLV_FAIL(error, CLV_E_INTERNAL, "there is no kernel source '%s.cl' in the library", launch->source);
    return put_name(launch, clv__source_hash(at.text_hash, launch->defines), error, name);
}

clv_status clv__programs_find(clv_device *device, const clv__launch *launch, clv__kernel_ref *out) {
    *out = (clv__kernel_ref){0};
    struct clv__program_store *store = device->programs;
    if (store) {
        clv__source_entry at;
        uint64_t hash = 0;
        pthread_mutex_lock(&store->lock);
        if (clv__source_look_up(&store->index, launch->source, launch->entry, &at)) {
            hash = clv__source_hash(at.text_hash, launch->defines);
            const built *it = find_built(store, hash, at.kernel);
            if (it) out->program = it->program;
        }
        pthread_mutex_unlock(&store->lock);
        if (out->program) return put_name(launch, hash, &device->runtime->error, out->name);
    }
    CLV_FAIL(&device->runtime->error, CLV_E_STATE, "kernel '%s' of %s.cl was not built on %s", launch->entry,
             launch->source, device->name);
}

void clv__programs_reset(clv_device *device) {
    struct clv__program_store *store = device->programs;
    if (!store) return;
    for (size_t i = 0; i < store->n_programs; i++) device->backend->program_destroy(store->programs[i]);
    free(store->programs);
    free(store->built);
    clv__source_index_reset(&store->index);
    pthread_mutex_destroy(&store->lock);
    free(store);
    device->programs = NULL;
}

char *clv__programs_source(const clv_device *device, const clv__launch *const *launches, size_t n) {
    struct clv__program_store nothing = {0};
    gathering all = {0};
    clv__text text = {0};
    char *source = NULL;
    if (gather(&nothing, launches, n, NULL, &all) == CLV_OK) {
        assemble(&text, device, &all, NULL, 0);
        if (text.failed) clv__text_reset(&text);
        source = text.data ? text.data : NULL;
    }
    free(all.items);
    clv__source_index_reset(&nothing.index);
    return source;
}
