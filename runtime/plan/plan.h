// SPDX-License-Identifier: Apache-2.0
// What others ask of a plan: how much it holds, what is too large, what it looks like. How it is made: passes.h.
#ifndef CLV_PLAN_PLAN_H
#define CLV_PLAN_PLAN_H

#include "plan/ir.h"

/** Does a placement text name devices that are there, and layers of the graph, and all of these? */
clv_status clv__plan_place_check(clv_graph *graph, const char *place);
/** Forget choices and layout and make them again: after a variant was put into quarantine. */
clv_status clv__plan_again(clv_plan *plan);
/** Make it again without what is kept of nodes that are done once, to save memory, if there is any. *changed (or NULL): there was. */
clv_status clv__plan_each_step(clv_plan *plan, bool *changed);

static inline size_t clv__io_bytes(const clv__place *place) {
    return place->io.bytes;
}
static inline size_t clv__staging_bytes(const clv__place *place) {
    return 2 * (place->input_bytes + place->staged_bytes);
}
/** Bytes of a layout's i-th chunk; 0 past the last. */
size_t clv__layout_chunk(const clv__layout *layout, int i);
/** Does a persistent tensor of that name live at the place? */
bool clv__place_keeps(const clv_plan *plan, const clv__place *place, const char *name);
/** A piece of memory that is one allocation at most: a value's, or workspace (value -1). */
typedef struct clv__piece {
    size_t bytes;
    int value;
} clv__piece;
/** The largest at a place. */
clv__piece clv__place_largest(const clv_plan *plan, const clv__place *place);
/** Add "; the largest single buffer is ..." with the op, layer and shape it belongs to. Is it smaller with a smaller batch? */
bool clv__piece_text(const clv_plan *plan, const clv__piece *piece, clv__text *text);
/** Add "; the layers that hold most of it: ...", of what lives on the device when it is fullest. */
void clv__plans_holders(clv_plan *const *plans, int n, const clv_device *device, clv__text *text);
/** Would a session for these plans, `bytes` in all, fit on the device? */
clv_status clv__plans_check(clv_plan *const *plans, int n, clv_device *device, size_t bytes);

/** Of one node: the longer of its work and its bytes, by its device's figures; 0: there are none. */
double clv__plan_node_least(const clv_plan *plan, int index);
/** clv_plan_device_info.least_seconds. */
double clv__plan_least_seconds(const clv_plan *plan, const clv_device *device);

#endif
