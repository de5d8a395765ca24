// SPDX-License-Identifier: Apache-2.0
// Shared by the files of self_attention: what it is about, and the variant for devices with lanes.
#ifndef CLV_OPS_SELF_ATTENTION_H
#define CLV_OPS_SELF_ATTENTION_H

#include "graph/op.h"

/** N sequences of T, in H heads of E, which share G heads of keys and values. */
typedef struct clv__sequences {
    int64_t N, T, H, G, E;
    bool causal, backward;
    float scale;
    bool
        masked; // what is added to scores, [N or 1, H or 1, T or 1, T], and how far apart its matrices and rows are
    int64_t mask[3]; // of sequences, heads, queries
} clv__sequences;

/** Of a use of self_attention or of its gradient. */
clv__sequences clv__sequences_of(const clv__op_io *io);

/** The mask, if there is one, as the last arguments of a launch; `first`: of its sequences, that the launch begins with. */
void clv__sequences_mask(clv__launches *list, clv__launch *launch, const clv__op_io *io, int64_t first);

// runtime/ops/attention/flash_attention.c
bool clv__flash_attention_supports(const clv_device_info *device, const clv__op_io *io);
double clv__flash_attention_rank(const clv_device_info *device, const clv__op_io *io);
void clv__flash_attention(clv__launches *list, const clv__op_io *io);
/** The same on matrix units; the variant's number is a CLV_MATRIX_* bit. */
bool clv__flash_matrix_supports(const clv_device_info *device, const clv__op_io *io);
double clv__flash_matrix_rank(const clv_device_info *device, const clv__op_io *io);
void clv__flash_matrix(clv__launches *list, const clv__op_io *io);

#endif
