// SPDX-License-Identifier: Apache-2.0
// Names and what is registered under them.
#include "base/registry.h"

#include <string.h>

static const void *find(const clv__registry *registry, const char *name) {
    for (int i = 0; name && i < registry->n; i++)
        if (!strcmp(registry->name[i], name)) return registry->item[i];
    return NULL;
}

static clv_status add(clv__registry *registry, clv__error *error, const char *name, bool brought,
                      const void *item) {
    const void *before = find(registry, name);
    if (before == item) return CLV_OK;
    if (before || brought)
        CLV_FAIL(error, CLV_E_STATE, "another %s is called '%.100s' already", registry->what, name);
    if (registry->n == CLV__REGISTRY_ITEMS)
        CLV_FAIL(error, CLV_E_STATE, "%s '%.100s' is one too many: %d can be registered", registry->what,
                 name, CLV__REGISTRY_ITEMS);
    registry->name[registry->n] = name;
    registry->item[registry->n++] = item;
    return CLV_OK;
}

clv_status clv__registry_add(clv__registry *registry, clv__error *error, const char *name, bool brought,
                             const void *item) {
    if (!name || !*name)
        CLV_FAIL(error, CLV_E_VALUE, "a %s without a name cannot be registered", registry->what);
    pthread_mutex_lock(&registry->lock);
    const clv_status status = add(registry, error, name, brought, item);
    pthread_mutex_unlock(&registry->lock);
    return status;
}

const void *clv__registry_find(clv__registry *registry, const char *name) {
    pthread_mutex_lock(&registry->lock);
    const void *found = find(registry, name);
    pthread_mutex_unlock(&registry->lock);
    return found;
}
