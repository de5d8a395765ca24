// SPDX-License-Identifier: Apache-2.0
// Gathers nodes with their launches, and writes them down: FOLDER/nodes.c as meter.h has them, and FOLDER/STEM.cl, their kernels; FOLDER/data.bin,
// values of tensors.
#ifndef CLV_METER_NODES_H
#define CLV_METER_NODES_H

#include "device/launch.h"
#include "graph/op.h"
#include "plan/ir.h"

/** Where the values of a node's tensors are in data.bin, -1: nowhere; bytes of all gradients, which a node reads by a table. */
typedef struct node_values {
    long given[CLV__MAX_IN], wanted[CLV__MAX_OUT];
    size_t gradients[CLV__GRADIENT_CHUNKS];
} node_values;

typedef struct node_label {
    char model[128], use[160]; // as in meter_node
    bool alone;
} node_label;

/** Say why, and end the program. */
void nodes_fail(const char *why);
void nodes_begin(const char *folder);
/** Write values; returns where they are. */
long nodes_keep(const void *bytes, size_t n);
/** A node, as a plan has it or by itself. Without `known` those alike are one. False: not all of its launches are kernels, copies and
 *  fills. */
bool nodes_add(const node_label *label, const clv__op_io *io, const char *variant, const clv__launches *launches,
               const node_values *known);
void nodes_write(const char *folder);

#endif
