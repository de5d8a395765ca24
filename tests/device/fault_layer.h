// SPDX-License-Identifier: Apache-2.0
// How a call fails under fault_layer.c.
#ifndef CLV_TESTS_DEVICE_FAULT_LAYER_H
#define CLV_TESTS_DEVICE_FAULT_LAYER_H

typedef enum fault_kind {
    FAULT_ONCE,
    FAULT_ON,       // from then on
    FAULT_IN_EVENT, // these and the next are of calls that enqueue
    FAULT_ALL_AFTER,
    FAULT_UNSEEN,
    FAULT_SILENT,
    FAULT_KINDS,
    FAULT_STUCK = FAULT_KINDS, // these sweeps do not try
    FAULT_RUNS_ON,
} fault_kind;

#endif
