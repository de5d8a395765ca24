// SPDX-License-Identifier: Apache-2.0
// Devices: which there are, which one a text means, and how many bytes are on each.
#ifndef CLEAVE_DEVICE_H
#define CLEAVE_DEVICE_H

#include "runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A device of a runtime. Owned by the runtime. */
typedef struct clv_device clv_device;

typedef enum clv_device_type {
    CLV_DEVICE_HOST,
    CLV_DEVICE_CPU,
    CLV_DEVICE_GPU,
    CLV_DEVICE_ACCELERATOR,
    CLV_DEVICE_OTHER /**< cannot run kernels: a custom device, or a platform that failed before it listed its devices */
} clv_device_type;

/** How a device does a kernel's work-items. Kernels are chosen, and launches cut, by this and by limits, not by the type. */
typedef enum clv_execution {
    CLV_EXECUTION_LANES, /**< many at once, neighbours in step: one for each element, in groups. GPUs */
    CLV_EXECUTION_THREADS /**< one after the other on each unit: one for each task, vectors inside. CPUs, DSPs */
} clv_execution;

/** What a device's floats (f32) do; bits of clv_device_info.floats. */
enum {
    CLV_FLOATS_DENORMALS = 1,
    CLV_FLOATS_INF_NAN = 2,
    CLV_FLOATS_ROUND_NEAREST = 4,
    CLV_FLOATS_ROUND_ZERO = 8,
    CLV_FLOATS_FMA = 16 /**< a multiply-add rounded once, in hardware */
};
/** What a device's matrix units multiply (sums are f32); bits of clv_device_info.matrix_units. */
enum {
    CLV_MATRIX_TF32 = 1,
    CLV_MATRIX_F16 = 2,
    CLV_MATRIX_BF16 = 4,
    CLV_MATRIX_UNTIMED =
        8 /**< they are right, and no card has shown how fast: pins and tuning alone take them */
};
enum { CLV_SUB_GROUP_SIZES = 8 };

/** What is known of a device. Strings are borrowed from the device. Bytes are bytes. */
typedef struct clv_device_info {
    /** ours: `gpu:0`, `cpu:0`, `accelerator:0`, `other:0`, `null:0`, `host`; `1:gpu:0` is rank 1's (clv_ranks_create) */
    const char *name;
    const char *label;    /**< the driver's name for it */
    const char *backend;  /**< `opencl`, `host`, `null`; `rank`: another rank computes on it */
    clv_device_type type; /**< of a null device: what it pretends to be */
    int index;            /**< position in the runtime's list */
    int platform, device; /**< as clinfo counts them; -1 outside OpenCL */
    const char *platform_name;
    const char *vendor, *driver; /**< driver: its version */
    const char *opencl_c;        /**< OpenCL C version, `1.2` */
    bool usable;
    const char *reason;       /**< why not usable; "" if it is */
    uint64_t memory_bytes;    /**< global memory */
    uint64_t max_alloc_bytes; /**< largest single allocation */
    uint64_t local_bytes;     /**< local memory of a work-group */
    uint32_t max_work_group;  /**< work-items in a work-group; a kernel may allow fewer */
    uint32_t compute_units;
    uint32_t alignment_bytes; /**< of a tensor inside a buffer */
    uint32_t vector_width;    /**< native float vector width, at least 1 */
    /** a work-item's loops end after this many iterations together, silently; 0: no limit known */
    uint32_t loop_turns;
    clv_execution execution;     /**< from type, groups and multiple; CLEAVE_EXECUTION may overrule */
    uint32_t preferred_multiple; /**< work-items in a group are best a multiple of this; 0: not known */
    uint32_t sub_group_sizes[CLV_SUB_GROUP_SIZES]; /**< possible ones, then zeros; all zero: not known */
    uint32_t floats;                               /**< CLV_FLOATS_*; 0: not known */
    uint32_t address_bits;                         /**< of a pointer in kernels; 0: not known */
    uint32_t argument_bytes;                       /**< of a kernel's arguments together; 0: not known */
    double peak_flops,
        peak_bytes_per_second; /**< what its maker says, of devices that are not here; 0: not known */
    bool compiler;             /**< its driver compiles kernels */
    bool local_doubled;        /**< counts arrays of local memory in a kernel twice: half can be had */
    bool fp16, fp64, sub_groups;
    bool embedded;       /**< OpenCL's embedded profile: fewer promises, smaller limits */
    bool no_int64;       /**< no 64-bit integers in kernels, as an embedded profile may be: they do without */
    bool gemm;           /**< has a library for matrix products */
    bool local_memory;   /**< local memory is fast memory of its own, not a part of global memory */
    bool unified_memory; /**< shares memory with the host */
    const char *type_name;      /**< `host`, `cpu`, `gpu`, `accelerator`, `other` */
    const char *execution_name; /**< `lanes` or `threads` */
    /** what is known of its driver beyond what that says of itself, in words with commas; "": nothing */
    const char *quirks;
    /** CLV_MATRIX_* bits of units that kernels can use; 0: none, or the device was not opened yet, which is when it is asked */
    uint32_t matrix_units;
    CLV_RESERVED(4);
} clv_device_info;

/** The i-th device of the runtime's list (clv_runtime_info.n_devices), NULL if there is none. */
CLV_API CLV_OR_NULL clv_device *clv_device_get(clv_runtime *runtime, int index);

/**
 * The device a text means, in any case of letters: a name (`gpu:0`, `host`), a type (`gpu`, its first usable device), an
 * index (`0`), `0:1` (platform:device as clinfo counts), or part of the driver's name for the device or else of the
 * platform's name (`llvmpipe`). `a|b` is the first of them that exists and is usable. NULL or "" is the best device:
 * gpu|accelerator|cpu|host.
 *
 * Errors  CLV_E_NOT_FOUND, the sentence lists the devices there are; CLV_E_DEVICE the same, where a driver failed that may
 *         have a device of that kind; CLV_E_UNSUPPORTED it is not usable, and why
 */
CLV_API CLV_MUST_CHECK clv_status clv_device_find(clv_runtime *runtime, CLV_OR_NULL const char *spec,
                                                  CLV_BORROWED clv_device **out);

CLV_API const clv_device_info *clv_device_info_get(const clv_device *device);

/** What bytes are for. */
typedef enum clv_category {
    CLV_PARAMETERS,  /**< weights, biases, and buffers such as running statistics */
    CLV_GRADIENTS,   /**< gradients of parameters */
    CLV_OPTIMIZER,   /**< momentum and the like */
    CLV_ACTIVATIONS, /**< values between layers and their gradients; keys and values that a generator keeps */
    CLV_WORKSPACE,   /**< scratch memory of kernels */
    CLV_IO,          /**< inputs and fetched outputs */
    CLV_STAGING,     /**< host memory that feeds this device */
    CLV_CATEGORIES
} clv_category;

/** `parameters`, `gradients`, `optimizer`, `activations`, `workspace`, `io`, `staging`. */
CLV_API const char *clv_category_name(clv_category category);

typedef struct clv_memory_count {
    uint64_t current, peak;                /**< bytes now, and at most */
    uint64_t total_allocated, total_freed; /**< over the life of the runtime */
} clv_memory_count;

typedef struct clv_memory_info {
    clv_memory_count all; /**< every category together; its peak is of the sum */
    clv_memory_count category[CLV_CATEGORIES];
    uint64_t budget; /**< 0: none, the device's memory is the limit */
    CLV_RESERVED(4);
} clv_memory_info;

/**
 * The account of a device, exact: every byte the runtime holds there, and the staging memory on the host that feeds it.
 * At any moment all.current is the sum of the categories' current.
 */
CLV_API clv_memory_info clv_device_memory(const clv_device *device);
/** Reset peaks to what is held now. */
CLV_API void clv_device_memory_reset_peak(clv_device *device);
/** Let the runtime hold at most `bytes` on the device; 0 lifts the limit. What is held already stays. */
CLV_API void clv_device_set_budget(clv_device *device, uint64_t bytes);

/** How much a device had to do since clv_device_activity_start. Take it twice: the difference over the time between is how busy it was. */
typedef struct clv_activity {
    uint64_t
        busy_ns; /**< from a step's first command to its last, without waiting for other devices; uploads overlap it */
    uint64_t
        steps; /**< whose times are in busy_ns; 0 after steps were done: nobody asked, or the driver gives no times */
    CLV_RESERVED(4);
} clv_activity;

/**
 * Count from now on what the device has to do. Its queues keep times for that, which costs time on some drivers, so none do unasked.
 * Profiles ask for it, and so does a trainer with several devices. Again is fine. Waits for what the device has been given.
 *
 * Errors  CLV_E_VALUE NULL; CLV_E_UNSUPPORTED the device cannot be used; CLV_E_DEVICE its driver
 */
CLV_API CLV_MUST_CHECK clv_status clv_device_activity_start(clv_device *device);

/** Steps are counted when they are waited for: when a result is fetched, or two steps later. Any thread. */
CLV_API clv_activity clv_device_activity(const clv_device *device);

/** One allocation that is held now. */
typedef struct clv_memory_entry {
    const char *layer; /**< what it is for; borrowed, until the allocation goes */
    clv_category category;
    uint64_t bytes;
} clv_memory_entry;

/** The largest allocations held on the device, largest first. Returns how many there are in all. */
CLV_API int clv_device_memory_entries(const clv_device *device,
                                      CLV_OUT CLV_COUNT(room) clv_memory_entry *entries, int room);

#ifdef __cplusplus
}
#endif
#endif
