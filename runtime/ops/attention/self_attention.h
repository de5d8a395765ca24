// SPDX-License-Identifier: Apache-2.0
// Shared by the files of self_attention: what it is about, and the variant for devices with lanes.
#ifndef CLV_OPS_SELF_ATTENTION_H
#define CLV_OPS_SELF_ATTENTION_H

#include "graph/op.h"

/** N sequences of T, in H heads of E. */
typedef struct clv__sequences {
    int64_t N, T, H, E;
    bool causal, backward;
    float scale;
} clv__sequences;

/** Of a use of self_attention or of its gradient. */
clv__sequences clv__sequences_of(const clv__op_io *io);

// runtime/ops/attention/flash_attention.c
bool clv__flash_attention_supports(const clv_device_info *device, const clv__op_io *io);
double clv__flash_attention_rank(const clv_device_info *device, const clv__op_io *io);
void clv__flash_attention(clv__launches *list, const clv__op_io *io);

#endif
