// SPDX-License-Identifier: Apache-2.0
// What every Cleave function that can fail returns. The list is data: status.def.
#ifndef CLEAVE_STATUS_H
#define CLEAVE_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__)
#define CLV_MUST_CHECK __attribute__((warn_unused_result))
#define CLV_API __attribute__((visibility("default")))
#else
#define CLV_MUST_CHECK
#define CLV_API
#endif

/** What a Cleave built for inference (-DCLEAVE_INFERENCE=ON) leaves out: training, and checking, measuring and tuning devices. Its
 *  package defines CLEAVE_INFERENCE for those who use it: then a compiler that can refuses a call with this sentence, and a linker
 *  finds none of them. */
#if !defined(CLEAVE_INFERENCE)
#define CLV_TRAIN_API CLV_API
#elif defined(__has_attribute)
#if __has_attribute(unavailable)
#define CLV_TRAIN_API __attribute__((unavailable("this Cleave is built for inference alone (CLEAVE_INFERENCE)")))
#else
#define CLV_TRAIN_API
#endif
#else
#define CLV_TRAIN_API
#endif

/** The version of these headers; clv_version() is that of the library a program runs with. Until 1.0 a new minor version may change the
 *  interface, from then on only a new major one; what is added keeps older programs as they are. */
#define CLV_VERSION_MAJOR 0
#define CLV_VERSION_MINOR 1
#define CLV_VERSION_PATCH 0
/** For comparisons: `#if CLV_VERSION >= CLV_VERSION_OF(0, 2, 0)`. */
#define CLV_VERSION_OF(major, minor, patch) ((major) * 1000000 + (minor) * 1000 + (patch))
#define CLV_VERSION CLV_VERSION_OF(CLV_VERSION_MAJOR, CLV_VERSION_MINOR, CLV_VERSION_PATCH)

/** The end of a struct that may grow. From 1.0 on no public struct changes its size within a major version: a new field takes its room from
 *  `reserved`, and 0 in it means what was before. So a program and a library of unlike minor versions fit together. Leave it zero, as
 *  `{0}` and initializers that name their fields do. Descriptors that begin with `bytes` say their size instead. */
#define CLV_RESERVED(n) uint64_t reserved[n]

typedef enum clv_status {
#define X(name, number, text) CLV_##name = (number),
#include "status.def"
#undef X
} clv_status;

/** The name of a status, `E_SHAPE` and the like. Never NULL; static. */
CLV_API const char *clv_status_name(clv_status status);

/** What a status means in general, one sentence. Never NULL; static. */
CLV_API const char *clv_status_text(clv_status status);

#ifdef __cplusplus
}
#endif
#endif
