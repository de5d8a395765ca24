// SPDX-License-Identifier: Apache-2.0
// Programs of a device: finds which kernels are not built yet, gathers them into few sources, and builds
// these side by side. The compiler's front end takes its time for each program on some drivers and for each
// kernel on others, so a few programs of even size suit all. A program that does not build is built in
// halves, at last one kernel at a time, because some compilers refuse what is too large for them, or
// crash.
#include "device/program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/processors.h"
#include "device/compile.h"
#include "device/gather.h"
#include "device/kernel_sources.h"
#include "device/helpers/notes.h"
#include "device/source.h"
#include "device/helpers/helpers.h"

enum { MAX_PROGRAMS = 8, LOG_IN_SENTENCE = 1200 };

/** Kernels of an instance in one program. A later plan's kernels of the same instance are in another. */
typedef struct built {
    uint64_t hash, kernels; // as in clv__instance
    clv__bprogram *program;
} built;

/** A kernel that did not build alone: nobody tries again. */
typedef struct refused {
    uint64_t hash, kernels;
    char *why; // owned
} refused;

struct clv__program_store {
    pthread_mutex_t lock; // held while building: one thread at a time gathers, many build
    clv__source_index index;
    built *built;
    size_t n, room;
    refused *refused;
    size_t n_refused, refused_room;
    clv__bprogram **programs;
    size_t n_programs, programs_room;
    bool noted;     // `largest` was read
    size_t largest; // kernels in a program, at most; 0: any number
};

// ---- Gathering --------------------------------------------------------------------------------------------

static const built *find_built(const struct clv__program_store *store, uint64_t hash, uint64_t kernel) {
    for (size_t i = 0; i < store->n; i++) {
        if (store->built[i].hash == hash && (store->built[i].kernels & kernel) == kernel)
            return &store->built[i];
    }
    return NULL;
}

/** Why a kernel did not build; NULL: it was not tried, or did. */
static const char *find_refused(const struct clv__program_store *store, uint64_t hash, uint64_t kernel) {
    for (size_t i = 0; i < store->n_refused; i++) {
        if (store->refused[i].hash == hash && store->refused[i].kernels == kernel)
            return store->refused[i].why;
    }
    return NULL;
}

/** The instances of the launches, each once, in order, with the kernels that are not in the store. *why: of
 *  one that is not to be had. */
static clv_status gather(struct clv__program_store *store, const clv__launch *const *launches, size_t n,
                         clv__error *error, clv__gathering *out, const char **why) {
    for (size_t i = 0; i < n; i++) {
        const clv__launch *launch = launches[i];
        if (launch->kind != CLV__LAUNCH_KERNEL) continue;
        clv__source_entry at;
        if (!clv__kernel_sources[0].stem)
            CLV_FAIL(error, CLV_E_UNSUPPORTED,
                     "this library was built without OpenCL and holds no kernels: "
                     "only the host device runs");
        if (!clv__source_look_up(&store->index, launch->source, launch->entry, &at))
            CLV_FAIL(error, CLV_E_INTERNAL, "there is no kernel source '%s.cl' in the library",
                     launch->source);
        uint64_t hash = clv__source_hash(at.text_hash, launch->defines);
        if (find_built(store, hash, at.kernel)) continue;
        const char *refusal = find_refused(store, hash, at.kernel);
        if (refusal) {
            *why = refusal;
            continue;
        }
        const clv__instance instance = {
            .hash = hash, .source = at.source, .defines = launch->defines, .kernels = at.kernel};
        if (!clv__gathering_add(out, &instance))
            CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory to gather kernels");
    }
    return CLV_OK;
}

/** The whole source of a program. */
static void assemble(clv__text *out, const clv_device *device, const clv__gathering *all) {
    clv__source_begin(out, device ? &(clv__source_device){.f16_way = (int)device->f16_way,
                                                          .sub_groups = device->sub_groups,
                                                          .matrix_unit = device->matrix_unit,
                                                          .no_int64 = device->info.no_int64}
                                  : NULL);
    for (size_t i = 0; i < all->n; i++) clv__source_add(out, &all->items[i]);
}

/** How many programs are worth building at once. */
static size_t most_at_once(const clv_device *device) {
    long n = device->traits.build_threads;
    if (n == 0) {
        n = clv__processors();
        if (n > 4) n = 4;
    }
    return n < 1 ? 1 : n > MAX_PROGRAMS ? MAX_PROGRAMS : (size_t)n;
}

// ---- Building ---------------------------------------------------------------------------------------------

/** The building of one program. */
typedef struct build_job {
    clv_device *device;
    clv__gathering part; // owned
    clv__error error;
    clv_status status; // CLV_E_INTERNAL: not built yet
    clv__bprogram *program;
    bool hit;
} build_job;

/** Programs that are built side by side; the callback is called under the lock. */
typedef struct build_team {
    clv_device *device;
    build_job *jobs;
    size_t n;
    pthread_mutex_t lock;
    size_t next;
    int done;
} build_team;

static void job_init(build_job *job, clv_device *device) {
    *job = (build_job){.device = device, .status = CLV_E_INTERNAL};
    clv__error_init(&job->error);
}

static void job_reset(build_job *job) {
    clv__gathering_reset(&job->part);
    clv__error_destroy(&job->error);
}

static void run_job(build_job *job) {
    clv_device *device = job->device;
    clv__text text = {0};
    assemble(&text, device, &job->part);
    if (text.failed) {
        job->status = clv__error_set(&job->error, CLV_E_HOST_MEMORY, "no host memory to assemble a program");
    } else {
        if (device->runtime->debug >= 4)
            clv__log(device->runtime, CLV_LOG_DEBUG, "a program for %s:\n%s", device->name, text.data);
        job->status = clv__compile(device, text.data, &job->error, &job->program, &job->hit);
    }
    clv__text_reset(&text);
}

/** Jobs, until there are none left. */
static void *work(void *context) {
    build_team *team = context;
    clv_runtime *runtime = team->device->runtime;
    for (;;) {
        pthread_mutex_lock(&team->lock);
        build_job *job = team->next < team->n ? &team->jobs[team->next++] : NULL;
        pthread_mutex_unlock(&team->lock);
        if (!job) return NULL;
        run_job(job);
        pthread_mutex_lock(&team->lock);
        team->done++;
        if (runtime->config.build_progress)
            runtime->config.build_progress(runtime->config.build_progress_user, team->done, (int)team->n);
        pthread_mutex_unlock(&team->lock);
    }
}

static void run_jobs(clv_device *device, build_job *jobs, size_t n) {
    build_team team = {.device = device, .jobs = jobs, .n = n};
    pthread_t threads[MAX_PROGRAMS];
    size_t most = most_at_once(device), n_threads = 0;
    pthread_mutex_init(&team.lock, NULL);
    while (n_threads + 1 < most && n_threads + 1 < n &&
           pthread_create(&threads[n_threads], NULL, work, &team) == 0)
        n_threads++;
    work(&team);
    for (size_t i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&team.lock);
}

/** Take a built program and what it has of each instance into the store. */
static clv_status keep(build_job *job) {
    clv_device *device = job->device;
    struct clv__program_store *store = device->programs;
    const clv__gathering *part = &job->part;
    if (!clv__grow(&store->programs, &store->programs_room, store->n_programs + 1, sizeof *store->programs) ||
        !clv__grow(&store->built, &store->room, store->n + part->n, sizeof *store->built)) {
        device->backend->program_destroy(job->program);
        CLV_FAIL(&device->runtime->error, CLV_E_HOST_MEMORY, "no host memory to keep a program");
    }
    store->programs[store->n_programs++] = job->program;
    for (size_t i = 0; i < part->n; i++)
        store->built[store->n++] = (built){part->items[i].hash, part->items[i].kernels, job->program};
    return CLV_OK;
}

// ---- What does not build ----------------------------------------------------------------------------------

/** What came of a program, whole or in parts. */
typedef struct outcome {
    size_t largest; // kernels of the largest program that was built
    size_t limit;   // of the largest where a larger one of good kernels failed; 0: none did
    size_t refused; // kernels that did not build alone
} outcome;

/** Remember a kernel that does not build alone, and say so. */
static clv_status refuse(build_job *job) {
    clv_device *device = job->device;
    struct clv__program_store *store = device->programs;
    const clv__instance *instance = job->part.items;
    char defines[200];
    snprintf(defines, sizeof defines, "%s", instance->defines);
    for (char *c = defines; *c; c++) *c = *c == '\n' ? ';' : *c;
    clv__error_set(&device->runtime->error, job->status, "kernel source %s.cl (%s) on %s: %.*s",
                   instance->source->stem, defines, device->name, LOG_IN_SENTENCE, job->error.text);
    char why[CLV__ERROR_BYTES];
    clv__error_read(&device->runtime->error, why);
    char *copy = clv__strdup(why);
    if (!copy ||
        !clv__grow(&store->refused, &store->refused_room, store->n_refused + 1, sizeof *store->refused))
        free(copy); // then it is tried again
    else
        store->refused[store->n_refused++] = (refused){instance->hash, instance->kernels, copy};
    return job->status;
}

static clv_status settle(build_job *job, outcome *all);

/** Build both halves of what did not build. The first failure is told. */
static clv_status halve(const build_job *job, size_t pieces, outcome *all) {
    clv_status status = CLV_OK;
    const size_t half = pieces - pieces / 2;
    for (size_t from = 0; from < pieces; from += half) {
        build_job part;
        job_init(&part, job->device);
        clv_status this_status = CLV_OK;
        if (clv__gathering_take(&job->part, from, half, &part.part)) {
            run_job(&part);
            this_status = settle(&part, all);
        } else {
            this_status = clv__error_set(&job->device->runtime->error, CLV_E_HOST_MEMORY,
                                         "no host memory to gather kernels");
        }
        job_reset(&part);
        if (status == CLV_OK) status = this_status;
    }
    return status;
}

/** A job that ran: keep its program, or get its kernels from smaller ones. A kernel alone is tried twice. */
static clv_status settle(build_job *job, outcome *all) {
    const size_t pieces = clv__gathering_pieces(&job->part);
    if (job->status == CLV_E_BUILD && pieces == 1) run_job(job);
    if (job->status == CLV_OK) {
        if (pieces > all->largest) all->largest = pieces;
        return keep(job);
    }
    if (job->status != CLV_E_BUILD)
        return clv__error_set(&job->device->runtime->error, job->status, "%s", job->error.text);
    if (pieces == 1) {
        all->refused++;
        return refuse(job);
    }
    outcome parts = {0};
    clv_status status = halve(job, pieces, &parts);
    if (!parts.refused && !parts.limit) parts.limit = parts.largest; // it was its size, then
    if (parts.limit && (!all->limit || parts.limit < all->limit)) all->limit = parts.limit;
    if (parts.largest > all->largest) all->largest = parts.largest;
    all->refused += parts.refused;
    return status;
}

/** Programs of good kernels failed for their size: smaller ones from now on, and in later processes. */
static void learn(clv_device *device, const outcome *all) {
    struct clv__program_store *store = device->programs;
    if (!all->limit || (store->largest && store->largest <= all->limit)) return;
    store->largest = all->limit;
    char number[32];
    snprintf(number, sizeof number, "%zu", all->limit);
    if (!clv__compiler_is_trusted(device)) clv__notes_keep(device, "largest", number);
    clv__log(device->runtime, CLV_LOG_WARNING,
             "the compiler of %s (%s) builds no large programs: from now on they have at most %zu kernel%s",
             device->name, device->info.label, all->limit, all->limit == 1 ? "" : "s");
}

// ---- All of them ------------------------------------------------------------------------------------------

/** Share the kernels out to jobs: few of even size, or as many as a compiler wants that builds only small
 *  ones. NULL: no memory. */
static build_job *make_jobs(clv_device *device, const clv__gathering *all, size_t *n) {
    struct clv__program_store *store = device->programs;
    if (!store->noted) store->largest = (size_t)clv__notes_number(device, "largest");
    store->noted = true;
    const size_t pieces = clv__gathering_pieces(all), most = most_at_once(device);
    size_t each = store->largest;
    *n = most < all->n ? most : all->n;
    const bool small = each && each * *n < pieces;
    if (small) *n = (pieces + each - 1) / each;
    build_job *jobs = clv__alloc(*n, sizeof *jobs);
    clv__gathering *parts = clv__alloc(*n, sizeof *parts);
    bool made = jobs && parts && (small || clv__gathering_share(all, parts, *n));
    for (size_t p = 0; p < *n && made && small; p++)
        made = clv__gathering_take(all, p * each, each, &parts[p]);
    for (size_t p = 0; p < *n && jobs && parts; p++) {
        job_init(&jobs[p], device);
        jobs[p].part = parts[p];
        if (!made) job_reset(&jobs[p]);
    }
    free(parts);
    if (made) return jobs;
    free(jobs);
    return NULL;
}

static clv_status build_gathered(clv_device *device, const clv__gathering *all) {
    clv_runtime *runtime = device->runtime;
    size_t n = 0;
    clv_status status = CLV_OK;
    outcome what = {0};
    build_job *jobs = make_jobs(device, all, &n);
    if (!jobs) CLV_FAIL(&runtime->error, CLV_E_HOST_MEMORY, "no host memory to build programs");
    run_jobs(device, jobs, n);
    for (size_t p = 0; p < n; p++) {
        pthread_mutex_lock(&runtime->report_lock);
        runtime->report.programs++;
        if (jobs[p].hit)
            runtime->report.cache_hits++;
        else
            runtime->report.cache_misses++;
        pthread_mutex_unlock(&runtime->report_lock);
        // After a failure the others are still kept: another variant may be taken for what is missing.
        clv_status job_status =
            status == CLV_OK || status == CLV_E_BUILD || jobs[p].program ? settle(&jobs[p], &what) : status;
        if (status == CLV_OK) status = job_status;
        job_reset(&jobs[p]);
    }
    free(jobs);
    clv__helpers_rest(device);
    learn(device, &what);
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
    clv__gathering all = {0};
    const char *why = NULL;
    clv_status status = gather(store, launches, n, &device->runtime->error, &all, &why);
    bool any = status == CLV_OK && all.n > 0;
    if (any) status = build_gathered(device, &all);
    if (status == CLV_OK && why) status = clv__error_set(&device->runtime->error, CLV_E_BUILD, "%s", why);
    clv__gathering_reset(&all);
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
    for (size_t i = 0; i < store->n_refused; i++) free(store->refused[i].why);
    free(store->refused);
    clv__source_index_reset(&store->index);
    pthread_mutex_destroy(&store->lock);
    free(store);
    device->programs = NULL;
}

char *clv__programs_source(const clv_device *device, const clv__launch *const *launches, size_t n) {
    struct clv__program_store nothing = {0};
    clv__gathering all = {0};
    const char *why = NULL;
    clv__text text = {0};
    char *source = NULL;
    if (gather(&nothing, launches, n, NULL, &all, &why) == CLV_OK) {
        assemble(&text, device, &all);
        if (text.failed) clv__text_reset(&text);
        source = text.data ? text.data : NULL;
    }
    clv__gathering_reset(&all);
    clv__source_index_reset(&nothing.index);
    return source;
}
