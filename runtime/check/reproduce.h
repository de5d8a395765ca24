// SPDX-License-Identifier: Apache-2.0
// A case written down as a program in C over OpenCL alone: see clv_check_reproduce.
#ifndef CLV_CHECK_REPRODUCE_H
#define CLV_CHECK_REPRODUCE_H

#include "base/text.h"
#include "check/subject.h"
#include "check/tolerance.h"
#include "plan/plan.h"

/** What is to be written down. `use` and `launches` for one variant, or `plan`. */
typedef struct clv__reproduction {
    const char *name; // of the case
    uint64_t seed;
    clv_device *device;          // open
    const clv__subject *subject; // filled
    const clv__expected *expected;
    const clv__op_io *use;
    const clv__launches *launches;
    const clv_plan *plan;
} clv__reproduction;

/** Errors  CLV_E_UNSUPPORTED a part of it is done by a library, or by no kernel; CLV_E_HOST_MEMORY */
clv_status clv__reproduce(const clv__reproduction *of, clv__error *error, clv__text *out);

/** What stands before the case's data in the program, and what stands behind it. */
extern const char clv__reproduce_head[], clv__reproduce_main[];

#endif
