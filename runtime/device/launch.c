// SPDX-License-Identifier: Apache-2.0
// Writing launches down. Nothing here touches a device; what goes wrong sets `failed`, and the plan tells it.
#include "device/launch.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

/** The next launch of the list, or its spare when memory is out, so that callers need no check. */
static clv__launch *append(clv__launches *list) {
    clv__launch *launch = list->spare;
    if (list->n == list->room) { // from one on: most nodes have no more
        size_t room = list->room ? 2 * list->room : 1;
        clv__launch *items = realloc(list->items, room * sizeof *items);
        if (items) {
            list->items = items;
            list->room = room;
        }
    }
    if (list->n < list->room)
        launch = &list->items[list->n++];
    else
        list->failed = list->out_of_memory = true;
    assert(launch);
    memset(launch, 0, sizeof *launch);
    return launch;
}

clv__launch *clv__launch_kernel(clv__launches *list, const char *source, const char *entry) {
    clv__launch *launch = append(list);
    launch->kind = CLV__LAUNCH_KERNEL;
    launch->source = source;
    launch->entry = entry;
    return launch;
}

void clv__launch_define(clv__launches *list, clv__launch *launch, const char *name, const char *format, ...) {
    if (!launch) return;
    size_t used = strlen(launch->defines), room = sizeof launch->defines - used;
    char value[CLV__DEFINES_BYTES];
    va_list args;
    va_start(args, format);
    int n = clv__format_list(value, sizeof value, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof value || (size_t)snprintf(NULL, 0, "%s %s\n", name, value) >= room) {
        list->failed = true;
        return;
    }
    snprintf(launch->defines + used, room, "%s %s\n", name, value);
}

static void add_slot(clv__launches *list, clv__launch *launch, clv__slot slot) {
    if (!launch) return;
    if (launch->n_slots == CLV__MAX_ARGS)
        list->failed = true;
    else
        launch->slots[launch->n_slots++] = slot;
}

void clv__arg_out(clv__launches *list, clv__launch *launch, int index) {
    add_slot(list, launch, (clv__slot){.kind = CLV__SLOT_OUT, .index = index});
}

void clv__arg_in(clv__launches *list, clv__launch *launch, int index) {
    add_slot(list, launch, (clv__slot){.kind = CLV__SLOT_IN, .index = index});
}

void clv__arg_workspace(clv__launches *list, clv__launch *launch, size_t offset, size_t bytes) {
    add_slot(list, launch, (clv__slot){.kind = CLV__SLOT_WORKSPACE, .offset = offset, .bytes = bytes});
}

void clv__arg_gradients(clv__launches *list, clv__launch *launch, int chunk) {
    add_slot(list, launch, (clv__slot){.kind = CLV__SLOT_GRADIENTS, .index = chunk});
}

void clv__arg_i32(clv__launches *list, clv__launch *launch, int64_t value) {
    if (value < INT32_MIN || value > INT32_MAX) list->failed = true;
    add_slot(list, launch, (clv__slot){.kind = CLV__SLOT_I32, .i32 = (int32_t)value});
}

void clv__arg_f32(clv__launches *list, clv__launch *launch, float value) {
    add_slot(list, launch, (clv__slot){.kind = CLV__SLOT_F32, .f32 = value});
}

void clv__arg_local(clv__launches *list, clv__launch *launch, size_t bytes) {
    add_slot(list, launch, (clv__slot){.kind = CLV__SLOT_LOCAL, .bytes = bytes});
}

static void set_grid(clv__launch *launch, int dims, const size_t *items, const size_t *local) {
    launch->grid = (clv__grid){.dims = dims};
    bool given = true;
    for (int d = 0; d < dims; d++) given &= local[d] != 0;
    for (int d = 0; d < dims; d++) {
        size_t group = given ? local[d] : 1;
        launch->grid.global[d] = (items[d] + group - 1) / group * group;
        launch->grid.local[d] = given ? group : 0;
    }
}

void clv__launch_grid(clv__launch *launch, size_t items, size_t local) {
    set_grid(launch, 1, &items, &local);
}

void clv__launch_grid2(clv__launch *launch, size_t x, size_t y, size_t local_x, size_t local_y) {
    set_grid(launch, 2, (size_t[]){x, y}, (size_t[]){local_x, local_y});
}

void clv__launch_grid3(clv__launch *launch, size_t x, size_t y, size_t z, size_t local_x, size_t local_y,
                       size_t local_z) {
    set_grid(launch, 3, (size_t[]){x, y, z}, (size_t[]){local_x, local_y, local_z});
}

/** Work-items in a group on lanes. */
static size_t lanes_group(const clv_device_info *device, size_t n) {
    enum { UNTOLD = 64, MANY = 128, GROUPS_A_UNIT = 4 };
    const size_t most = device->max_work_group ? device->max_work_group : 1;
    const size_t multiple = device->preferred_multiple ? device->preferred_multiple : UNTOLD;
    const size_t units = device->compute_units ? device->compute_units : 1;
    if (multiple >= most) return most;
    const size_t group = (MANY + multiple - 1) / multiple * multiple;
    return group <= most && n >= units * GROUPS_A_UNIT * group ? group : multiple;
}

/** Elements in a group on threads: the driver's choice (0), or of few sizes where it could only choose an odd
 *  one, which it compiles for that count alone. */
static size_t threads_group(const clv_device_info *device, size_t n) {
    static const size_t sizes[] = {1024, 64, 16};
    enum { EVEN = 64, GROUPS_A_UNIT = 4, LEAST = 2 };
    const size_t units = device->compute_units ? device->compute_units : 1;
    if (n % EVEN == 0) return 0;
    for (size_t i = 0; i < LEAST; i++)
        if (sizes[i] <= device->max_work_group && n >= units * GROUPS_A_UNIT * sizes[i]) return sizes[i];
    return sizes[LEAST] <= device->max_work_group ? sizes[LEAST] : 0;
}

void clv__launch_over(const clv__launches *list, clv__launch *launch, clv__items kind, int64_t n) {
    enum { SIXTEEN = 16 };
    const clv_device_info *device = list->device;
    size_t local = 0;
    if (device->execution == CLV_EXECUTION_THREADS && kind == CLV__ELEMENTS)
        local = threads_group(device, (size_t)n);
    else if (device->execution == CLV_EXECUTION_LANES)
        local = lanes_group(device, (size_t)n);
    else if (kind == CLV__TASKS)
        local = 1;
    else if (kind == CLV__SHORT && device->max_work_group >= SIXTEEN)
        local = SIXTEEN;
    clv__launch_grid(launch, (size_t)n, local);
    launch->grid.any_local = true;
}

clv__launch *clv__launch_items(clv__launches *list, const char *source, const char *entry, clv__items kind,
                               int64_t n) {
    if (n == 0) return NULL;
    clv__launch *launch = clv__launch_kernel(list, source, entry);
    clv__launch_over(list, launch, kind, n);
    return launch;
}

size_t clv__launch_workspace(clv__launches *list, size_t bytes) {
    size_t alignment = list->device && list->device->alignment_bytes ? list->device->alignment_bytes : 1;
    size_t offset = clv__size_align(list->workspace_bytes, alignment), end;
    if (offset < list->workspace_bytes || !clv__size_add(offset, bytes, &end)) {
        list->failed = true;
        return 0;
    }
    list->workspace_bytes = end;
    return offset;
}

void clv__launch_copy(clv__launches *list, int out, int in, size_t bytes) {
    clv__launch *launch = append(list);
    launch->kind = CLV__LAUNCH_COPY;
    launch->bytes = bytes;
    clv__arg_out(list, launch, out);
    clv__arg_in(list, launch, in);
}

void clv__launch_fill(clv__launches *list, int out, size_t bytes, uint32_t pattern) {
    clv__launch *launch = append(list);
    launch->kind = CLV__LAUNCH_FILL;
    launch->bytes = bytes;
    launch->pattern = pattern;
    clv__arg_out(list, launch, out);
}

void clv__launches_trim(clv__launches *list) {
    if (list->n == list->room || !list->n) return;
    clv__launch *items = realloc(list->items, list->n * sizeof *items);
    if (!items) return;
    list->items = items;
    list->room = list->n;
}

void clv__launches_reset(clv__launches *list) {
    free(list->items);
    *list = (clv__launches){.device = list->device, .spare = list->spare};
}
