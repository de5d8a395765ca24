// SPDX-License-Identifier: Apache-2.0
// The runtime object, its devices, and the account of bytes on each (the ledger).
// A device is opened (context, queues) when first used, not when listed.
#ifndef CLV_DEVICE_DEVICE_H
#define CLV_DEVICE_DEVICE_H

#include <stdatomic.h>

#include "base/memory.h"
#include "device/backend.h"

/** One allocation that is held. */
typedef struct clv__ledger_entry {
    char *layer; // owned; its address is the entry's key
    clv_category category;
    size_t bytes;
} clv__ledger_entry;

typedef struct clv__ledger {
    pthread_mutex_t lock;
    clv_memory_info info;
    clv__ledger_entry *entries; // unordered; a freed one is replaced by the last
    size_t n_entries, room;
} clv__ledger;

/** By what programs convert f16 (F16_WAY of kernels_cl/common/storage.cl). Integers are the last resort. */
typedef enum clv__f16_way {
    CLV__F16_INTEGERS,
    CLV__F16_NATIVE,   // cl_khr_fp16
    CLV__F16_PTX_BOTH, // NVIDIA's instructions, bf16's too
    CLV__F16_PTX
} clv__f16_way;

/** A variant that failed on a device: plans pass it over. */
typedef struct clv__quarantine {
    const void *op, *variant; // the descriptors, opaque down here
    char *why;                // owned
    struct clv__quarantine *next;
} clv__quarantine;

struct clv_device {
    clv_runtime *runtime;
    const clv__backend *backend;
    void *handle;
    clv_device_info info; // strings live in the runtime's arena
    clv__traits traits;
    char name[24];
    bool elsewhere; // of another rank, `rank`, which computes (exec/elsewhere.c); in plans it stands for it
    int rank;
    clv__ledger ledger;
    pthread_mutex_t open_lock;
    clv__bdevice *open;   // NULL until clv__device_open
    clv__f16_way f16_way; // set when it is opened, see f16.h
    bool sub_groups;      // and it has sub-groups that trees may use: sub_groups.h
    int matrix_unit;      // and what multiplies info.matrix_units: matrix.h
    struct clv__program_store *programs;
    struct {
        struct clv__ahead *ahead;       // NULL: no kernels are compiled ahead; under open_lock
        struct clv__isolated *isolated; // NULL: nothing was built first; under the runtime's report_lock
    } helpers;                          // see helpers/helpers.h
    struct clv__worker *worker;         // started by exec when first used; see exec/worker.h
    void (*worker_destroy)(struct clv__worker *worker); // set with it: called before the device closes
    void (*worker_leave)(struct clv__worker *worker);   // the same for one that does not come back
    clv__quarantine *quarantine;                        // owned; under the runtime's report_lock
    struct clv__tuned_choices *tuned; // read by the plan when first asked for; under open_lock
    void (*tuned_destroy)(struct clv__tuned_choices *); // set with it
    atomic_bool silent;                                 // see clv__device_silence
    atomic_bool call_left; // see clv__device_serve
    atomic_ulong beats;                   // grows while its worker gets on with what it was given
    bool lost;                            // see clv__device_lose; under the ledger's lock
    struct clv__kept_host *kept;          // the same
    _Atomic uint64_t busy_ns, busy_steps; // see clv_activity; booked by exec
    atomic_bool timed;                    // clv_device_activity_start: steps are counted there
};

struct clv_runtime {
    clv__error error;                   // see clv__runtime_error_of
    clv__arena arena;                   // strings of devices
    clv_runtime_config config;
    clv_device **devices;
    size_t n_devices, room;
    int rank; // this process among those of a training: its own devices may be named `0:gpu:0`
    struct {
        const clv__backend *backend;
        void *state;
    } backends[4];
    int n_backends;
    pthread_mutex_t report_lock;
    pthread_mutex_t post_lock; // see exec/worker.h
    clv_program_report report; // under report_lock
    int debug;                 // CLEAVE_DEBUG: 1 devices, 2 launches, 3 the plan, 4 kernel sources
    const char *variants;      // CLEAVE_VARIANTS: pins of plans that have none of their own; "": none
    bool warned_cache;         // one warning about the disk cache was given; under report_lock
    bool warned_tuning;        // one warning about tuning files was given; under report_lock
    bool warned_host;          // the warning that the slow host device is in use was given; under report_lock
};

/** Where a runtime keeps the sentence of its last failure. */
clv__error *clv__runtime_error_of(clv_runtime *runtime);
/** Hand a sentence to the runtime's log callback, if there is one. */
void clv__log(clv_runtime *runtime, clv_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Open the device if it is not open yet. Any thread. */
clv_status clv__device_open(clv_device *device);

/** Wait on the worker until the device has done all that it was given; an error of any command before is
 *  told, once. If its driver does not say that they are done, what they may still use of the host's memory is
 *  kept from now on: see clv__device_free. */
clv_status clv__device_settle(clv_device *device, clv__error *error);
/** The same without waiting: it does not answer any more. */
void clv__device_lose(clv_device *device);
/** It has not answered in time: it is lost, its driver is not called any more, and jobs for its worker fail
 *  at once. */
void clv__device_silence(clv_device *device);
/** The sentence for that. */
clv_status clv__device_silent(const clv_device *device, clv__error *error);
/** Wait for an event of the device, as the backend's verb does; one that does not answer in time is
 *  silenced. */
clv_status clv__device_wait(clv_device *device, clv__bevent *event, clv__error *error);
/** This thread is the device's worker. If its caller gave up (call_left) while it waited in its driver, it
 *  stops when the driver answers after all: the memory it was to write may be another's by then. Its beats
 *  grow before it looks. */
void clv__device_serve(const clv_device *device);
/** The worker, about to touch what its caller gave it: counts a beat, and goes no further if the caller is
 *  gone. Other threads pass. */
void clv__device_come_back(clv_device *device);
/** Free memory that commands of the device read or wrote; of one that is lost it is kept until the device is
 *  closed, and left for ever if it may run on even then. NULL is fine. */
void clv__device_free(clv_device *device, void *memory);
/** The same for staging of the driver's; of a lost device it is left for ever. */
void clv__device_free_staging(clv_device *device, clv__bbuffer *staging);
/** Write device memory from `source`, or read it into `target` (the other is NULL), and wait. Neither is used
 *  by the device after that, even if it is lost. Worker. */
clv_status clv__device_copy(clv_device *device, clv__bbuffer *buffer, size_t bytes, const void *source,
                            void *target, clv__error *error);
/** Free what was kept, or leave it; the device is closed. */
void clv__device_forget_host(clv_device *device, bool still_runs);

/** Device memory with its place in the account. */
typedef struct clv__memory {
    clv_device *device;
    clv__bbuffer *buffer; // NULL for bytes == 0
    size_t bytes;
    clv_category category;
    const char *layer; // borrowed from the ledger
    bool host; // staging: `pointer` is host memory; `buffer` is the driver's hold on it, NULL: it is ours
    void *pointer;
} clv__memory;

/**
 * Allocate on a device and book it. Checks budget, device memory and largest allocation before asking the
 * driver; the refusal's sentence says what was wanted for which layer, what holds the most, and what would
 * make it fit.
 * bytes 0 is fine and takes nothing. CLV_STAGING allocates host memory, the driver's where the
 * device reaches that better.
 * Errors  CLV_E_BUDGET, CLV_E_DEVICE_MEMORY, CLV_E_HOST_MEMORY, CLV_E_DEVICE
 */
clv_status clv__memory_create(clv_device *device, size_t bytes, clv_category category, const char *layer,
                              clv__memory *out);
/** Free and book it off. Zeroes *memory; a zeroed one is fine. */
void clv__memory_destroy(clv__memory *memory);

/** May a user be sent from `device` to `other`? Both are usable and of one backend, and neither is a card
 *  that is not here (clv_device_info.peak_bytes_per_second): nobody has those. */
bool clv__could_serve(const clv_device *other, const clv_device *device);

/** What was held between `before` and now was no part of what the program does: peaks are as if it had not
 *  been. */
void clv__memory_forget(clv_device *device, const clv_memory_info *before);
/**
 * Would `bytes` in pieces of at most `largest` fit on the device besides what is held? The same sentence as a
 * refused allocation if not, with `about` in it: who wants them ("; the layers ..."). `smaller_batch`: would
 * one want less? Takes nothing.
 */
clv_status clv__memory_check(clv_device *device, size_t bytes, size_t largest, const char *layer,
                             const char *about, bool smaller_batch);

#endif
