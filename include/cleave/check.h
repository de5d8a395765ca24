// SPDX-License-Identifier: Apache-2.0
// Is this device right? Every op's sample cases, every variant, forward and gradient, held against the references.
//
//     clv_check_report *report;
//     clv_check(runtime, device, &(clv_check_config){.quick = true}, &report);
//     for (int i = 0; i < report->n_failures; i++) puts(report->failures[i].sentence);
//     clv_check_report_destroy(report);
#ifndef CLEAVE_CHECK_H
#define CLEAVE_CHECK_H

#include "device.h"
#include "nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What to check. All zero: every op, every sample, seed 0. */
typedef struct clv_check_config {
    const char *op;  /**< only the op of this name; NULL: all */
    bool quick;      /**< only the few small samples that ops mark as quick */
    clv_dtype dtype; /**< only cases with floats stored so: CLV_DTYPE_F32, F16 or BF16; CLV_DTYPE_NONE: all
                          (a quick check of all has f32, and one sample of an op in f16) */
    uint64_t seed;   /**< of the inputs: the same seed gives the same values everywhere */
    /** Called after each case: `done` of `total`. Return false to stop with CLV_E_INTERRUPTED. NULL: nobody listens. */
    bool (*progress)(void *user, int done, int total, const char *op);
    void *user;
} clv_check_config;

/** Cases that were not run, gathered by reason. They count neither as passed nor as failed. */
typedef struct clv_check_skip {
    const char *op;
    char reason[160];
    int cases;
} clv_check_skip;

/** The case of an op and variant that came nearest to its tolerance, or went furthest beyond it. */
typedef struct clv_check_worst {
    const char *op;
    /** `plan` is a graph with gradients in a planned run; `differences` the gradient's formula */
    const char *variant;
    double error;     /**< |got - want| where error / tolerance is largest; infinite if it did not run */
    double tolerance; /**< there */
    int cases, failed;
} clv_check_worst;

typedef struct clv_check_failure {
    const char *op, *variant;
    char sample[96]; /**< the sample's label */
    char what[64];   /**< `out0`, `gradient of in1`, ... */
    int64_t index;   /**< of the element, row-major; -1 if the case did not run */
    double got, want, tolerance;
    char sentence[512]; /**< all of it to read, or why the case did not run */
} clv_check_failure;

typedef struct clv_check_report {
    int cases, passed, failed; /**< cases == passed + failed */
    int skipped_cases;
    clv_check_skip *skipped;
    int n_skipped;
    clv_check_worst *worst;
    int n_worst;
    clv_check_failure *failures;
    int n_failures;
    uint64_t seed;
} clv_check_report;

/**
 * Run the cases on the device and compare. A case is one of
 *   - a sample of an op by one variant, guard zones around every buffer, twice with the same bits;
 *   - a sample with its backward pass, planned and run as users run it (`plan`), twice with the same bits;
 *   - a sample's backward pass in double against central differences (`differences`).
 *
 * out  the report, even when cases failed; destroy it with clv_check_report_destroy. NULL after an error.
 *
 * Errors  CLV_E_UNSUPPORTED the device is not usable or computes nothing (null); CLV_E_NOT_FOUND no op of that name;
 *         CLV_E_INTERRUPTED by the callback; memory. A wrong result is no error: read report->failed.
 */
CLV_API CLV_MUST_CHECK clv_status clv_check(clv_runtime *runtime, clv_device *device,
                                            const clv_check_config *config, clv_check_report **out);
/** NULL is fine. */
CLV_API void clv_check_report_destroy(clv_check_report *report);

// ---- two devices ------------------------------------------------------------------------------------------------------

/** A training step to do on two devices. Zero means the default. */
typedef struct clv_compare_config {
    clv_device *a, *b;      /**< must be given */
    const clv_model *model; /**< must be given */
    int64_t batch;          /**< 0: 8 */
    uint64_t seed;          /**< of first weights, dropout, and images that are made up */
    const float *images;    /**< [batch, input...]; NULL: made up */
    const int32_t *labels;  /**< [batch]; given with images */
    const char *weights;    /**< begin with these, safetensors; NULL: first values */
    const char *variants;   /**< as clv_plan_config */
    /** how far values may drift apart, |a - b| / |a| over all elements, while each op is right for what it was given; 0: 0.001 */
    double tolerance;
    /** Called for each value. Return false to stop with CLV_E_INTERRUPTED. NULL: nobody listens. */
    bool (*progress)(void *user, int done, int total, const char *op);
    void *user;
} clv_compare_config;

/** One value of the step, on both devices. Strings without a size are static. */
typedef struct clv_compare_value {
    char layer[128];
    const char *op, *phase; /**< that made it; `forward`, `backward`, `update` */
    char what[160];         /**< `output 0`, `'fc1.weight' after it` */
    const char *variant_a, *variant_b;
    int64_t elements;
    double drift;      /**< |a - b| / |a| over all elements; infinite if numbers are missing on one side */
    double difference; /**< the largest, of the element `index`; -1: there are no elements */
    int64_t index;
    double a, b;
    /** Held against the op's reference, each for what it was given there: done where a and b differ by more than rounding. */
    bool judged, wrong_a, wrong_b;
    int64_t wrong_index;                     /**< the worst element of one that is wrong, of b if both are */
    double wrong_value, wanted, wrong_limit; /**< there: what it is, should be, and how far it may be off */
} clv_compare_value;

typedef struct clv_compare_report {
    clv_compare_value *values; /**< in the order of execution: forward, backward, updates */
    int n_values;
    int n_equal, n_judged, n_wrong, n_drifted; /**< equal: to the bit; drifted: beyond the tolerance */
    int first; /**< the first that is wrong, else the first that drifted; -1: the devices agree */
    int worst; /**< the largest drift; -1 without values */
    char sentence[768];
} clv_compare_report;

/**
 * Do one training step of a model on each of two devices, from the same parameters and samples, and compare all that is computed on
 * the way. Where values differ by more than rounding, the op's reference decides for each device whether the op is right for what it
 * was given there, so that a fault is told where it arises and not by its consequences. All values of the step are held: more
 * memory than a training needs.
 *
 * out  the report; destroy it with clv_compare_report_destroy. NULL after an error.
 *
 * Errors  CLV_E_UNSUPPORTED a device is not usable or computes nothing (null); CLV_E_VALUE something is not given, or out of range;
 *         CLV_E_INTERRUPTED by the callback; as clv_plan_create, clv_run_create, clv_weights_load. Devices that differ are no
 *         error: read report->first.
 */
CLV_API CLV_MUST_CHECK clv_status clv_compare(clv_runtime *runtime, const clv_compare_config *config,
                                              clv_compare_report **out);
/** NULL is fine. */
CLV_API void clv_compare_report_destroy(clv_compare_report *report);

#ifdef __cplusplus
}
#endif
#endif
