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

/**
 * What a type does not tell of a pointer. Such a mark stands before the type of a parameter, a result or a member, and means nothing to a
 * compiler. A generator of bindings reads it: tools/declarations.py makes a table of all declarations.
 *
 * CLV_OUT         the function writes there; what was there before does not matter
 * CLV_INOUT       the function reads what is there, and changes it
 * CLV_OR_NULL     may be NULL; of a result: is NULL where there is nothing
 * CLV_COUNT(n)    an array of n elements, of `void` n bytes. n is a constant, or another parameter or member (`config->n` too); where n
 *                 is a shape, the array has its elements. An array of none may be NULL
 * CLV_ARRAY       an array whose length its comment tells
 * CLV_UNTIL_NULL  an array that ends with a NULL, or with an element whose name is NULL
 * CLV_KEPT        used after the call: it must outlive what the call makes or changes. Of a config, all that its members point to must
 * CLV_TAKEN       when the call succeeds the library owns the arrays in it, and they become zero; the library uses borrowed ones further
 * CLV_BORROWED    the function writes there what stays the library's
 *
 * What has no mark:
 *
 * T *, const T *  one T, not NULL, that nothing uses after the call; `const char *` is a text that ends with a zero
 * T **            the function writes a T * there; NULL after most errors. The caller owns it, and calls T_destroy later; where T is a
 *                 struct, or char (a text), clv_free. What is written to a `const T **` is the library's, as with CLV_BORROWED
 * result          a pointer to what is the library's, not NULL. A function never returns what the caller must destroy
 * clv_tensor *    NULL after a mistake; calls that build (they return a clv_tensor * or nothing) take it, and a NULL clv_graph * too
 * void *user      the library hands it to the function before it (as `..._user` to that member's) and does nothing else. It may be NULL
 * T_destroy       takes NULL, and so does T_reset, which leaves the caller's T empty
 * a member        may be NULL, unless its comment says that it must be given
 * clv_runtime *   outlives all that is made with it
 */
#define CLV_OUT
#define CLV_INOUT
#define CLV_OR_NULL
#define CLV_COUNT(n)
#define CLV_ARRAY
#define CLV_UNTIL_NULL
#define CLV_KEPT
#define CLV_TAKEN
#define CLV_BORROWED

/** The version of these headers; clv_version() is that of the library a program runs with. Until 1.0 a new minor version may change the
 *  interface, from then on only a new major one; what is added keeps older programs as they are. What stands between `#ifndef
 *  CLEAVE_STABLE_ONLY` and its #endif is experimental: it may change in a new minor version even then. A program that defines
 *  CLEAVE_STABLE_ONLY before it includes Cleave sees nothing of it. */
#define CLV_VERSION_MAJOR 0
#define CLV_VERSION_MINOR 2
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

/** Give up a struct or a text that a function gave the caller: a clv_check_report, a clv_place_choice and the like, with all that its
 *  members point to. NULL is fine. */
CLV_API void clv_free(void *what);

/** What is known of a status. Never NULL; static. */
typedef struct clv_status_info {
    const char *name; /**< `E_SHAPE` and the like */
    const char *text; /**< what it means in general, one sentence */
} clv_status_info;
CLV_API clv_status_info clv_status_info_get(clv_status status);

static inline const char *clv_status_name(clv_status status) {
    return clv_status_info_get(status).name;
}
static inline const char *clv_status_text(clv_status status) {
    return clv_status_info_get(status).text;
}

#ifdef __cplusplus
}
#endif
#endif
