// SPDX-License-Identifier: Apache-2.0
// Memory on a device, as sessions keep it and runs use it.
#ifndef CLV_EXEC_MEMORY_H
#define CLV_EXEC_MEMORY_H

#include "plan/plan.h"

/** A tensor's memory on a device: its rows in as many pieces as the device's largest allocation asks for
 *  (plan/split.c), mostly one. Zero-initialised there is none. */
typedef struct clv__holding {
    clv_device *device;
    size_t bytes; // of all
    clv__memory *pieces;
    int n;
} clv__holding;

/** Memory of an arena, in chunks no larger than the device allows. */
typedef struct clv__chunks {
    clv__memory *items;
    int n;
    clv__layout layout;
} clv__chunks;

/** What runs of a session share on one device. */
typedef struct clv__arenas {
    clv_device *device;
    clv__chunks gradients, activations, once, io;
    clv__memory workspace, staging;
} clv__arenas;

/** Take memory for a tensor. On failure there is none. */
clv_status clv__holding_create(clv_device *device, const clv__desc *desc, clv_category category,
                               const char *layer, clv__holding *out);
void clv__holding_destroy(clv__holding *holding);
/** Write device memory from `source`, or read it into `target` (the other is NULL), and wait. */
clv_status clv__memory_copy(const clv__memory *memory, const void *source, void *target);
/** The same for all pieces, one after the other. */
clv_status clv__holding_copy(const clv__holding *holding, const void *source, void *target);
/** Give back all that runs share. */
void clv__arenas_empty(clv__arenas *arenas);

#endif
