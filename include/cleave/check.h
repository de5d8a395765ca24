// SPDX-License-Identifier: Apache-2.0
// Is this device right? Every op's sample cases, every variant, forward and gradient, held against the references.
//
//     clv_check_report *report;
//     clv_check(runtime, device, &(clv_check_config){.quick = true}, &report);
//     for (int i = 0; i < report->n_failures; i++) puts(report->failures[i].sentence);
//     clv_free(report);
#ifndef CLEAVE_CHECK_H
#define CLEAVE_CHECK_H

#include "device.h"
#include "nn.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef CLEAVE_STABLE_ONLY // experimental

/** How a case ended. */
typedef enum clv_check_verdict {
    CLV_CHECK_PASSED,
    CLV_CHECK_FAILED,
    CLV_CHECK_KNOWN,   /**< it failed, as clv_check_config.known says that it does */
    CLV_CHECK_NOT_RUN, /**< it could not run, because memory was out: nothing is known of it */
    CLV_CHECK_SKIPPED, /**< it does not apply to this device, or there is nothing to compare */
    CLV_CHECK_LISTED   /**< only named: clv_check_config.list */
} clv_check_verdict;

/** One case. */
typedef struct clv_check_case {
    char name[192]; /**< op/variant/sample: the same on every device, and the only case of that name */
    const char *op;
    /** `plan` is a graph with gradients in a planned run; `differences` the gradient's formula */
    const char *variant;
    char sample[96]; /**< the sample's label */
    clv_check_verdict verdict;
    const char *
        verdict_name; /**< `passed`, `failed`, `known failure`, `could not run`, `skipped`, `listed`; static */
    double seconds; /**< how long it took, without building programs and without the reference */
    /** The element nearest to its tolerance, or furthest past it: `what` is out0, gradient of in1, ... */
    char what[64];
    int64_t index; /**< of the element, row-major; -1: no element was compared */
    double got, want, error, tolerance;
    double
        ulp; /**< `error` in units in the last place of `want`, as it is stored; not a number if there are none */
    char *sentence; /**< why it failed, could not run or was skipped; NULL if it passed or is only named */
} clv_check_case;

/**
 * What to check. All zero: every op, every sample, seed 0.
 *
 * Lists end with NULL; NULL is an empty list. A name in a list may be a pattern: `*` stands for any text, `?` for one character.
 */
typedef struct clv_check_config {
    CLV_UNTIL_NULL const char *const *ops;     /**< only ops of these names; empty: all */
    CLV_UNTIL_NULL const char *const *cases;   /**< only cases of these names; empty: all */
    CLV_UNTIL_NULL const char *const *exclude; /**< no cases of these names, whatever the other lists say */
    CLV_UNTIL_NULL const char *const *known; /**< cases that are known to fail: their failures count apart */
    int shard,
        n_shards; /**< only part `shard`, from 1, of `n_shards`; each case is in one of them. 0 and 0: all */
    bool quick;   /**< only the few small samples that ops mark as quick */
    clv_dtype dtype; /**< only cases with floats stored so: CLV_DTYPE_F32, F16 or BF16; CLV_DTYPE_NONE: all
                              (a quick check of all has f32, and one sample of an op in f16) */
    uint64_t seed;   /**< of the inputs: the same seed gives the same values everywhere */
    bool list;       /**< name the cases, run none */
    /** Keep variants that failed out of later plans: write them to the device's tuning file, as ones to avoid, and take back
     *  those that an earlier check wrote there and that pass all their cases now. Not of ops of a program's own. */
    bool record;
    /** Called after each case: `done` of `total`. Return false to stop with CLV_E_INTERRUPTED. NULL: nobody listens. */
    bool (*progress)(void *user, int done, int total, const char *op);
    /** Called with each case as soon as it is known, skipped ones too. NULL: nobody listens. */
    void (*on_case)(void *user, const clv_check_case *one);
    void *user;
    CLV_RESERVED(8);
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
    double error;      /**< |got - want| where error / tolerance is largest; infinite if it did not run */
    double tolerance;  /**< there */
    int cases, failed; /**< failed ones that were known count here too */
} clv_check_worst;

typedef struct clv_check_failure {
    const char *op, *variant;
    char sample[96]; /**< the sample's label */
    char what[64];   /**< `out0`, `gradient of in1`, ... */
    int64_t index;   /**< of the element, row-major; -1 if the case did not run */
    double got, want, tolerance;
    char sentence[512]; /**< all of it to read, or why the case did not run */
} clv_check_failure;

/** A variant that failed, and that plans pass over from now on: in this process, and if it was recorded in later ones too. */
typedef struct clv_check_avoided {
    const char *op, *variant;
    char instead
        [64]; /**< the variants that plans use in its place, with commas; "": there is none, and plans are refused */
} clv_check_avoided;

typedef struct clv_check_report {
    int cases, passed, failed; /**< cases == passed + failed + known + not_run */
    int known, not_run;        /**< see clv_check_verdict */
    int skipped_cases;
    int excluded;         /**< by clv_check_config.exclude; in no other number */
    CLV_COUNT(n_list)
    clv_check_case *list; /**< all cases, skipped ones too, in the order in which they were known */
    int n_list;
    CLV_COUNT(n_skipped) clv_check_skip *skipped;
    int n_skipped;
    CLV_COUNT(n_worst) clv_check_worst *worst;
    int n_worst;
    CLV_COUNT(n_failures) clv_check_failure *failures; /**< `failed` of them */
    int n_failures;
    CLV_COUNT(n_avoided) clv_check_avoided *avoided;
    int n_avoided;
    CLV_COUNT(n_restored)
    clv_check_avoided
        *restored; /**< avoided until now, because of an earlier check, and right again; `instead` is empty */
    int n_restored;
    char *file;         /**< the tuning file that was changed; NULL: none was */
    char *record_fault; /**< why that could not be done; NULL: it was, or there was nothing to do */
    uint64_t seed;
} clv_check_report;

/**
 * Run the cases on the device and compare. A case is one of
 *   - a sample of an op by one variant, guard zones around every buffer, twice with the same bits;
 *   - a sample with its backward pass, planned and run as users run it (`plan`), twice with the same bits;
 *   - a sample's backward pass in double against central differences (`differences`).
 *
 * out  the report, even when cases failed; give it up with clv_free. NULL after an error.
 *
 * Errors  CLV_E_UNSUPPORTED the device is not usable or computes nothing (null); CLV_E_NOT_FOUND no op, or no case, of a name
 *         that was given; CLV_E_VALUE a dtype or a shard that there is not; CLV_E_INTERRUPTED by the callback; memory. A wrong
 *         result is no error: read report->failed. Neither is a case for which memory was out: read report->not_run.
 */
CLV_TRAIN_API CLV_MUST_CHECK clv_status clv_check(clv_runtime *runtime, clv_device *device,
                                                  CLV_OR_NULL const clv_check_config *config,
                                                  clv_check_report **out);

/**
 * A case as a program of its own: one file in C that needs OpenCL and nothing of Cleave. It holds the kernels, their arguments, the
 * inputs, what the results should be and how far they may be off; it does what clv_check does with the case, and exits with 0 if
 * the device is right, 1 if it is wrong, 3 if it could not run.
 *
 * name  of one case; config: its seed and whether it is `quick`, as they were given to clv_check; NULL: defaults
 * out   the text, to be given up with clv_free; NULL after an error
 *
 * Errors  CLV_E_NOT_FOUND no case of that name on this device; CLV_E_UNSUPPORTED it runs no kernels, or a library's; memory
 */
CLV_TRAIN_API CLV_MUST_CHECK clv_status clv_check_reproduce(clv_runtime *runtime, clv_device *device,
                                                            CLV_OR_NULL const clv_check_config *config,
                                                            const char *name, char **out);

// ---- two devices ------------------------------------------------------------------------------------------------------

/** A training step to do on two devices. Zero means the default. */
typedef struct clv_compare_config {
    clv_device *a, *b;      /**< must be given */
    const clv_model *model; /**< must be given */
    int64_t batch;          /**< 0: 8 */
    uint64_t seed;          /**< of first weights, dropout, and images that are made up */
    CLV_ARRAY const float *images;   /**< [batch, input...]; NULL: made up */
    CLV_ARRAY const int32_t *labels; /**< [batch]; given with images */
    const char *weights;    /**< begin with these, safetensors; NULL: first values */
    const char *variants;   /**< as clv_plan_config */
    /** how far values may drift apart, |a - b| / |a| over all elements, while each op is right for what it was given; 0: 0.001 */
    double tolerance;
    /** Called for each value. Return false to stop with CLV_E_INTERRUPTED. NULL: nobody listens. */
    bool (*progress)(void *user, int done, int total, const char *op);
    void *user;
    CLV_RESERVED(8);
} clv_compare_config;

/** One value of the step, on both devices. Strings without a size are static. */
typedef struct clv_compare_value {
    char layer[128];        /**< `#12`, the node's number, where it is in none */
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
    CLV_COUNT(n_values)
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
 * was given there, so that a fault is reported where it arises and not by its consequences. All values of the step are held: more
 * memory than a training needs.
 *
 * out  the report; give it up with clv_free. NULL after an error.
 *
 * Errors  CLV_E_UNSUPPORTED a device is not usable or computes nothing (null); CLV_E_VALUE something is not given, or out of range;
 *         CLV_E_INTERRUPTED by the callback; as clv_plan_create, clv_run_create, clv_weights_load. Devices that differ are no
 *         error: read report->first.
 */
CLV_TRAIN_API CLV_MUST_CHECK clv_status clv_compare(clv_runtime *runtime, const clv_compare_config *config,
                                                    clv_compare_report **out);

#endif // CLEAVE_STABLE_ONLY

#ifdef __cplusplus
}
#endif
#endif
