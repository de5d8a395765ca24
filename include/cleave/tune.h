// SPDX-License-Identifier: Apache-2.0
// Which way to compute an op is the fastest on this device? Measured, written down, and used by every plan from then on.
//
//     clv_tune_report *report;
//     clv_tune(runtime, device, &(clv_tune_config){.model = "resnet18", .batch = 8}, &report);
//     for (int i = 0; i < report->n_results; i++) puts(report->results[i].variant);
//     clv_free(report);
#ifndef CLEAVE_TUNE_H
#define CLEAVE_TUNE_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef CLEAVE_STABLE_ONLY // experimental

/** What to measure. All zero: the products, convolutions and ops that clv_bench measures, in about a minute. */
typedef struct clv_tune_config {
    const char *
        model; /**< the nodes of a training step and of inference of this model (as clv_bench_config); NULL: none */
    int64_t batch;    /**< of the model; 0: as clv_bench_config */
    int64_t size[3];  /**< M, N, K: one product; all zero: none */
    const char *op;   /**< only uses of this op; NULL: all */
    double seconds;   /**< to spend on measuring, about; 0: 60. Building programs comes on top. */
    const char *file; /**< where to write; NULL: the device's own file in the folder of the program cache */
    /** Called before each measurement: `done` of `total` uses. Return false to stop: what is known is kept. NULL: nobody
     *  listens. */
    bool (*progress)(void *user, int done, int total, const char *what);
    void *user;
    CLV_RESERVED(8);
} clv_tune_config;

enum { CLV_TUNE_CANDIDATES = 16 }; /* of a use, that a result tells of; more may have raced */

/** A variant that can compute a use of an op. */
typedef struct clv_tune_candidate {
    const char *variant;
    double median_us; /**< 0: not timed, because it failed, or because its rank promises far too little */
} clv_tune_candidate;

/** One use of an op, by its attributes and shapes. */
typedef struct clv_tune_result {
    const char *op;
    char *key;                    /**< as in the file */
    int nodes;                    /**< how many nodes of what was looked at are like it */
    const char *variant, *ranked; /**< the choice, and what is chosen without a tuning file */
    double median_us, ranked_us;  /**< of both */
    clv_tune_candidate candidates[CLV_TUNE_CANDIDATES]; /**< the one with the best rank first */
    int n_candidates;
    CLV_RESERVED(4);
} clv_tune_result;

/** A variant that does not build on the device, or is wrong there: the file says that plans must avoid it. */
typedef struct clv_tune_failure {
    const char *op, *variant;
    char sentence[512];
} clv_tune_failure;

typedef struct clv_tune_report {
    char *file; /**< what was written */
    CLV_COUNT(n_results) clv_tune_result *results;
    int n_results;
    CLV_COUNT(n_failures) clv_tune_failure *failures;
    int n_failures;
    int left;         /**< uses that there was no time for */
    int kept;         /**< choices that were in the file before, and still are */
    bool interrupted; /**< by the callback */
    double seconds;   /**< spent on measuring */
} clv_tune_report;

/**
 * Race the variants of ops on a device, where ranks do not say clearly who wins and where most time goes first, and write the winners to a tuning file. A time
 * counts only if the results are right: they are held against the double-precision reference, or, where that would take too
 * long, against another variant's, after all of the op's quick samples have been held against the reference. Other choices for the same
 * device, driver and kernels that are in the file stay there. Plans made afterwards with this runtime use the file if
 * its configuration leads there (clv_runtime_config.tuning).
 *
 * out  the report; give it up with clv_free. NULL after an error.
 *
 * Errors  CLV_E_UNSUPPORTED the device is not usable, or runs no kernels; CLV_E_NOT_FOUND no such model or op, or no use of
 *         the op that leaves a choice; CLV_E_VALUE a negative number, or model and size together; CLV_E_IO the file cannot
 *         be written; memory. A variant that fails is no error: read report->failures.
 */
CLV_TRAIN_API CLV_MUST_CHECK clv_status clv_tune(clv_runtime *runtime, clv_device *device,
                                                 CLV_OR_NULL const clv_tune_config *config,
                                                 clv_tune_report **out);

#endif // CLEAVE_STABLE_ONLY

#ifdef __cplusplus
}
#endif
#endif
