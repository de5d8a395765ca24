// SPDX-License-Identifier: Apache-2.0
// The runtime: the one object that holds all state. Everything else is made from it and destroyed before it.
//
// Threads. Several threads may use one runtime and its devices at once, each with objects of its own: a graph with its plans,
// a session with its runs, a trainer, a predictor, a loader, an archive are used by one thread at a time. Datasets do not
// change and may be shared. Only clv_runtime_create and _destroy, clv_check and clv_cache_clear want to be alone. The log
// may come from any thread, progress comes from the thread that called.
//
// NULL. A function that returns a status answers a NULL it cannot use with CLV_E_VALUE, and says which argument it was. What may
// be NULL is marked CLV_OR_NULL (status.h): most configs, some texts; `out` and the object that is asked may not. Calls that build
// take a NULL tensor or graph, after a mistake, and return NULL; a name that is NULL is a mistake of its own. Every destroy takes
// NULL. All other functions want their objects.
//
// Fork. A child of fork has neither the threads nor the drivers of its parent. There, with objects of the parent's runtime, every
// function that returns a status returns CLV_E_STATE, and destroys of what uses threads or drivers do nothing. Only arrays, archives,
// files and datasets, which are memory alone, can be used as before. Make a runtime after the fork, in the child; with OpenCL only if
// the parent had opened no OpenCL device.
#ifndef CLEAVE_RUNTIME_H
#define CLEAVE_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_runtime clv_runtime;

typedef enum clv_log_level { CLV_LOG_WARNING, CLV_LOG_INFO, CLV_LOG_DEBUG } clv_log_level;

/** How the runtime is set up. All zero is the default. Strings are copied. */
/**
 * How products, convolutions and attention whose operands are f32 may round these. Sums are f32. It matters on devices with matrix units
 * (clv_device_info.matrix_units), and for tensors and results nowhere: they stay f32.
 */
typedef enum clv_float32_products {
    CLV_FLOAT32_PRODUCTS_HIGHEST, /**< not at all */
    CLV_FLOAT32_PRODUCTS_HIGH,    /**< to tf32 (10 bits behind the point), or to two bf16, which have 16 */
    CLV_FLOAT32_PRODUCTS_MEDIUM   /**< to bf16 (7 bits) where that is faster */
} clv_float32_products;

typedef struct clv_runtime_config {
    /** Which OpenCL devices to list, and in which order: indices or specs (clv_device_find), comma-separated:
     * `0,4` become 0 and 1. NULL: the variable CLEAVE_VISIBLE_DEVICES; "" shows all. `host` is always there.
     */
    const char *visible_devices;
    /** Devices to replace by equal sub-devices, before visible_devices is read: `cpu:0=2`, comma-separated.
     * NULL: the variable CLEAVE_PARTITION; "" splits none. */
    const char *partition;
    /** How devices do work-items where that is to be another way than their traits say: `cpu:0=lanes`, `gpu=threads`,
     * comma-separated; after the two above. NULL: the variable CLEAVE_EXECUTION; "" overrules none. */
    const char *execution;
    /** OpenCL platforms not to touch, a line `P=reason` each (`*=reason`: all of OpenCL). Each is listed as
     * one unusable device. NULL: none. */
    const char *left_out;
    /** Called before a platform is asked for its devices. A driver that dies takes the process with it: a
     * program that wants to outlive that makes a runtime in a child process first, has this write to a pipe,
     * and names in `left_out` the platform that was the last one told (`*` if none was). NULL: nobody
     * listens. */
    void (*before_platform)(void *user, int platform, const char *name);
    void *before_platform_user;
    /** Folder of the program cache. NULL: CLEAVE_CACHE_DIR, else XDG_CACHE_HOME/cleave, else ~/.cache/cleave. */
    const char *cache_dir;
    /** Measured choices of variants (clv_tune): a tuning file, or a folder with a file for each device; `none` for none.
     * NULL: the variable CLEAVE_TUNING; "": the folder of the program cache. A file that cannot be used is
     * reported once through the log, and not used. */
    const char *tuning;
    /** A program that compiles kernels in processes of their own, for drivers that compile one after another (PoCL): the absolute path
     * of the `cleave` command, or of another program that calls clv_compile_helper(0) when `compile-helper` is its only argument. Where
     * building a device's first programs takes longer than loading them from a cache would, as many are started as there are
     * further processors, at most three; they end when all is compiled, or the runtime is destroyed. They take memory of the host
     * alone. And for drivers whose compiler may crash and end the process: there one builds first what is not in the cache. NULL: the variable CLEAVE_COMPILE_HELPER; "": none. One that cannot be started is told through the log. */
    const char *compile_helper;
    /** Seconds that a device may take for what is waited for before it counts as lost; time in which the process is stopped, or in a debugger, does
     * not count. 0: 600; below 0: for ever. */
    double device_timeout;
    bool no_cache;     /**< build every program afresh, write none */
    bool no_opencl;    /**< only the host device; visible_devices, partition and execution are not read */
    bool null_devices; /**< also list the null devices, which record commands and compute nothing */
    bool
        null_cards; /**< and with them devices that are not here, with their limits: `null:rx-580` and others */
    /** Called with warnings and notes; the library itself never prints. NULL drops them. May come from any
     * thread. */
    void (*log)(void *user, clv_log_level level, const char *sentence);
    void *log_user;
    /** Called while programs build, `done` of `total` built; and, where a driver compiles each kernel at its first launch, while a run's
     *  first step is handed over. From any thread, from several at once. NULL: nobody listens. */
    void (*build_progress)(void *user, int done, int total);
    void *build_progress_user;
    /** how products and convolutions of f32 are computed, as torch.set_float32_matmul_precision: see clv_float32_products */
    clv_float32_products float32_products;
    CLV_RESERVED(7);
} clv_runtime_config;

/**
 * Make a runtime and enumerate the devices of every OpenCL platform, and the host.
 * A platform without devices, or one that fails, is normal; a device that cannot be used is listed with its
 * reason.
 * Before the first OpenCL call drivers that keep machine code on disk are looked at: one that would keep it where others can write
 * (no HOME, a shared folder) is given a private folder by its own variable, POCL_CACHE_DIR or CUDA_CACHE_PATH, which stays set in
 * this process; the log says so. Environment variables may not be read by other threads meanwhile.
 *
 * config  NULL means all defaults
 * out     the runtime; destroy it with clv_runtime_destroy
 *
 * Errors  CLV_E_HOST_MEMORY: *out is NULL. CLV_E_VALUE a malformed visible_devices, partition, execution or left_out, or no such float32_products;
 *         CLV_E_NOT_FOUND it names no device; CLV_E_DEVICE the same, where a driver failed that may have it;
 *         CLV_E_UNSUPPORTED a device cannot be split so. On these four *out is still a runtime, without devices, so that its sentence can be read; destroy it.
 */
CLV_API CLV_MUST_CHECK clv_status clv_runtime_create(CLV_OR_NULL const clv_runtime_config *config,
                                                     clv_runtime **out);

/** Destroy the runtime. Everything made from it must be gone. NULL is fine. */
CLV_API void clv_runtime_destroy(clv_runtime *runtime);

/** The sentence of the newest failure in the calling thread: what, where, what to do. "" if there was none. Failures of other threads leave
 * it alone, but a thread that had none is told the newest of all. Borrowed, until the thread asks again or ends. */
CLV_API const char *clv_runtime_error(CLV_OR_NULL const clv_runtime *runtime);

/** What building programs cost so far. */
typedef struct clv_program_report {
    int programs;     /**< programs asked for */
    int cache_hits;   /**< loaded from our cache */
    int cache_misses; /**< built from source (by a driver that may have had it in a cache of its own) */
    int helpers; /**< processes that were started to compile kernels ahead; whether they did shows in the time alone */
    double seconds; /**< wall time of loading and building */
    CLV_RESERVED(4);
} clv_program_report;

/** What a runtime has, and what became of it so far. All zero of NULL. */
typedef struct clv_runtime_info {
    int n_devices; /**< in its list, unusable ones included (clv_device_get). `host` is always there, last */
    /** A device did not answer in time (clv_runtime_config.device_timeout). Threads may be inside its driver for ever, and what they use
     *  stays when the runtime is destroyed. Drivers may wait for them when the process exits: better end it with _exit */
    bool is_stuck;
    clv_program_report programs;
    /** of the program cache, "" if there is none (no setting, no home). It may not exist yet. Borrowed */
    const char *cache_folder;
    CLV_RESERVED(3);
} clv_runtime_info;
CLV_API clv_runtime_info clv_runtime_info_get(CLV_OR_NULL const clv_runtime *runtime);

#ifndef CLEAVE_STABLE_ONLY // experimental
/**
 * Be a helper of another process (clv_runtime_config.compile_helper): have the driver compile the kernels that it asks for on
 * `socket`, until they are compiled or it is gone. The driver's cache on disk is what is left of it, or the binaries that it sends.
 *
 * Errors  CLV_E_IO     nobody asked for anything on that socket
 *         CLV_E_VALUE  who asks is another version of the library
 *         and those of clv_runtime_create, clv_device_find and of building programs
 */
CLV_API CLV_MUST_CHECK clv_status clv_compile_helper(int socket);

/** One program in the cache on disk. Borrowed, during the call. */
typedef struct clv_cache_entry {
    const char *file;     /**< its name in clv_runtime_info.cache_folder */
    const char *made_for; /**< device, platform and driver; "" if not valid */
    uint64_t bytes;       /**< of the file */
    int64_t modified;     /**< seconds since 1970 */
    bool valid;           /**< whole and unchanged; one that is not is built again when it is needed */
} clv_cache_entry;

/**
 * Call `each` for every program in the cache, in no order. A missing folder is an empty cache.
 * Drivers that keep programs better themselves have none here.
 *
 * Errors  CLV_E_IO  the folder cannot be read, belongs to another user, or others can write to it
 */
CLV_API CLV_MUST_CHECK clv_status clv_cache_list(clv_runtime *runtime,
                                                 void (*each)(void *user, const clv_cache_entry *entry),
                                                 void *user);

/**
 * Remove every program from the cache; other files in the folder stay. Counts what went; either may be NULL.
 *
 * Errors  as clv_cache_list
 */
CLV_API CLV_MUST_CHECK clv_status clv_cache_clear(clv_runtime *runtime, CLV_OUT CLV_OR_NULL int *files,
                                                  CLV_OUT CLV_OR_NULL uint64_t *bytes);
#endif // CLEAVE_STABLE_ONLY

/** The library's version, `major.minor.patch`. */
CLV_API const char *clv_version(void);

#ifdef __cplusplus
}
#endif
#endif
