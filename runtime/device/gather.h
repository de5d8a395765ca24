// SPDX-License-Identifier: Apache-2.0
// Which kernels go into which program. A gathering is a list of instances (source.h), each source with its
// defines once. A piece is the smallest part that can be built alone: one kernel of one instance. Nothing
// here knows a device.
#ifndef CLV_DEVICE_GATHER_H
#define CLV_DEVICE_GATHER_H

#include "device/source.h"

/** Zeroed: empty. */
typedef struct clv__gathering {
    clv__instance *items;
    size_t n, room;
} clv__gathering;

/** Add kernels to the instance of that hash, or the instance itself. false: no memory. */
bool clv__gathering_add(clv__gathering *to, const clv__instance *instance);
void clv__gathering_reset(clv__gathering *gathering);

/** How many pieces it falls into. */
size_t clv__gathering_pieces(const clv__gathering *all);
/** Add n of its pieces, from one on, to `out`. false: no memory. */
bool clv__gathering_take(const clv__gathering *all, size_t from, size_t n, clv__gathering *out);
/** Share whole instances out to n empty parts, each to the one that has least text so far. Depends on the
 *  list alone. false: no memory. */
bool clv__gathering_share(const clv__gathering *all, clv__gathering *parts, size_t n);

#endif
