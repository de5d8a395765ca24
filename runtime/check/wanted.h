// SPDX-License-Identifier: Apache-2.0
// Which cases a clv_check_config asks for: by op, by name, without the excluded ones, and of those one shard.
#ifndef CLV_CHECK_WANTED_H
#define CLV_CHECK_WANTED_H

#include "check/report.h"

enum { CLV__WHOLE_SHARDS = 64 }; // of more shards than that each has a part of every op

typedef struct clv__wanted {
    const clv_check_config *config;
    bool *matched; // by index in config->cases: some case has that name
    int samples;   // that have a wanted case, in all shards
    int excluded;
    int dealt[CLV__WHOLE_SHARDS]; // samples by shard, so far
    int whole;                    // the shard that has all samples of the op at hand; -1: each has a part
} clv__wanted;

/** Errors  CLV_E_VALUE a shard, or a dtype, that there is not; CLV_E_HOST_MEMORY */
clv_status clv__wanted_init(clv__wanted *wanted, const clv_check_config *config, clv__error *error);
void clv__wanted_reset(clv__wanted *wanted);

/** May the op have a wanted case? */
bool clv__wanted_op(const clv__wanted *wanted, const char *op);
/** Is it asked for? Each case is asked about once: those that are excluded are counted. */
bool clv__wanted_case(clv__wanted *wanted, const char *op, const char *variant, const char *sample);
/** The next samples are those of an op that has `samples` of the `all` there are. An op goes to one shard, the one with the fewest
 *  samples so far, because its samples share kernels, and compiling these is most of the time. An op with more samples than a
 *  shard's part is spread over shards. */
void clv__wanted_begin(clv__wanted *wanted, int samples, int all);
/** Is the next sample that has a wanted case in this shard? */
bool clv__wanted_here(clv__wanted *wanted);
/** Is everything asked for that there is to check of an op? */
bool clv__wanted_whole(const clv__wanted *wanted);
/** The first name of config->cases that no case has; NULL: there is none. */
const char *clv__wanted_missing(const clv__wanted *wanted);

#endif
