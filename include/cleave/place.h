// SPDX-License-Identifier: Apache-2.0
// Automatic placement: which layer is computed on which device, when nobody says it. What comes out is an ordinary
// placement text (clv_plan_config.place), to be printed, edited and given again.
//
//     const char *devices[] = {"gpu:0", "cpu:0"};
//     clv_place_config config = {.place = "auto", .devices = devices, .n_devices = 2};
//     clv_place_choose(graph, &config, &choice);
//     clv_plan_create(graph, &(clv_plan_config){.place = choice->place}, &plan);
#ifndef CLEAVE_PLACE_H
#define CLEAVE_PLACE_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_place_choice clv_place_choice; // further down

#ifndef CLEAVE_STABLE_ONLY // experimental

typedef struct clv_place_config {
    /**
     * `auto`        balances time: runs of layers in the order of execution, so that the slowest stage takes the least time;
     *               of what is within a tenth of that, what takes the least time in all. Devices that would slow it down
     *               get nothing; their order is free.
     * `balanced`    evens out bytes, as far as budgets allow, in the order of the devices
     * `sequential`  fills the first device, then the next
     *
     * Or a placement text, which is taken as it is, without `devices`. NULL: `auto`
     */
    const char *place;
    CLV_COUNT(n_devices)
    const char *const *devices; /**< device specs; a budget is the device's own (clv_device_set_budget) */
    int n_devices;
    clv_plan_config plan; /**< how the graph will be planned; its `device` and `place` are not read */
    CLV_RESERVED(8);
} clv_place_config;

/** A device's part of a placement. */
typedef struct clv_place_stage {
    clv_device *device;
    int layers;     /**< with parameters */
    uint64_t bytes; /**< that a session with this plan alone holds there: exact */
    /** of a step, as predicted: computing, and transfers in and out. 0 if a text was given */
    double seconds;
    CLV_RESERVED(4);
} clv_place_stage;

struct clv_place_choice {
    char *place;             /**< `features.*=gpu:0,classifier.*=cpu:0`, as clv_plan_config takes it */
    CLV_COUNT(n_stages) clv_place_stage *stages; /**< in the order of execution */
    int n_stages;
};

/**
 * Is this a placement of the graph's layers? Reads the text, finds the devices, looks at the layers' names. Touches no device.
 *
 * Errors  CLV_E_VALUE malformed, layers that no pattern covers, no devices, one that is named twice, more of them than
 *         layers; CLV_E_NOT_FOUND no such device, a pattern that matches nothing; CLV_E_UNSUPPORTED it cannot be used
 */
CLV_API CLV_MUST_CHECK clv_status clv_place_check(clv_graph *graph, const clv_place_config *config);

/**
 * Choose a device for each layer, and prove by planning that it fits. Counts parameters, gradients, optimizer state,
 * activations, workspace, input/output and staging. The first time a device is used so it is measured for about a second
 * (a matrix product, a pass over memory, launches, copies), which is kept in the program cache's folder; devices that
 * compute nothing (null), or whose budget leaves no room for that, are modelled.
 *
 * graph  whole, with gradients and updates if it has any
 * out    give it up with clv_free; NULL after an error
 *
 * Errors  as clv_place_check, before any device memory is taken; CLV_E_BUDGET nothing fits: the sentence says what would;
 *         as clv_plan_create
 */
CLV_API CLV_MUST_CHECK clv_status clv_place_choose(clv_graph *graph, const clv_place_config *config,
                                                   clv_place_choice **out);

#endif // CLEAVE_STABLE_ONLY

#ifdef __cplusplus
}
#endif
#endif
