// SPDX-License-Identifier: Apache-2.0
// What a program registers for the whole process, by name: optimizers, models, losses of its own. They are
// the process's and not a runtime's, as custom ops are: who looks for a model by its name has no runtime yet.
#ifndef CLV_BASE_REGISTRY_H
#define CLV_BASE_REGISTRY_H

#include <pthread.h>

#include "base/error.h"

enum { CLV__REGISTRY_ITEMS = 64 };

/** Any thread may ask. Items are borrowed for the rest of the process. */
typedef struct clv__registry {
    pthread_mutex_t lock;
    const char *what; // that is registered, for sentences: "model"
    int n;
    const char *name[CLV__REGISTRY_ITEMS];
    const void *item[CLV__REGISTRY_ITEMS];
} clv__registry;

#define CLV__REGISTRY(called)                                                                                \
    { .lock = PTHREAD_MUTEX_INITIALIZER, .what = (called) }

/** The same item again is fine. brought: one of that name is there already. CLV_E_VALUE no name; CLV_E_STATE
 *  the name is taken, or there are too many. */
clv_status clv__registry_add(clv__registry *registry, clv__error *error, const char *name, bool brought,
                             const void *item);
/** NULL: there is none. */
const void *clv__registry_find(clv__registry *registry, const char *name);

#endif
