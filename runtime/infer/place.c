// SPDX-License-Identifier: Apache-2.0
// What a placement may ask for, and one that asks for a choice (`auto` and the like) becomes one that says
// where layers are.
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "device/device.h"
#include "nn/replicas.h"
#include "infer/placed.h"

/** Does it say how to choose, and not where? */
static bool is_method(const char *place) {
    static const char *const methods[] = {"auto", "balanced", "sequential"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods && place; i++)
        if (strcmp(place, methods[i]) == 0) return true;
    return false;
}

/** Whoever is asked to take part gets a part. */
static clv_status check_rows(const clv_placement *placement, int64_t batch, clv__error *error) {
    int64_t rows[CLV__MOST_REPLICAS];
    if (batch < placement->n_replicas)
        CLV_FAIL(error, CLV_E_VALUE, "a batch of %" PRId64 " samples for %d replicas leaves some without any",
                 batch, placement->n_replicas);
    clv__replica_rows(batch, placement->shares, placement->n_replicas, rows);
    for (int i = 0; i < placement->n_replicas; i++) {
        if (!rows[i])
            CLV_FAIL(error, CLV_E_VALUE,
                     "the share of %s, %g of %" PRId64
                     " samples, is less than one sample: give it at least %g, or leave it out",
                     placement->replicas[i], placement->shares[i], batch, 1.0 / (double)batch);
    }
    return CLV_OK;
}

clv_status clv__placement_check(clv_runtime *runtime, const clv_placement *placement, int64_t batch) {
    clv__error *error = clv__runtime_error_of(runtime);
    if (placement->n_replicas && (placement->n_devices || is_method(placement->place)))
        CLV_FAIL(error, CLV_E_VALUE,
                 "places are chosen for whole models, not beside replicas: name the layers that are not "
                 "replicated, "
                 "'fc*=cpu:0'");
    if (placement->n_replicas < 0 || (placement->n_replicas && !placement->replicas))
        CLV_FAIL(error, CLV_E_VALUE, "%d replicas", placement->n_replicas);
    if (!placement->n_replicas) return CLV_OK;
    CLV_TRY(
        clv__replicas_check(runtime, placement->replicas, placement->shares, placement->n_replicas, error));
    return check_rows(placement, batch, error);
}

const char *clv__placement_of_plan(const clv_placement *placement) {
    return placement->n_replicas ? NULL : placement->place;
}

char *clv__placement_beside(const clv_placement *placement, const char *device) {
    clv__text text = {0};
    clv__text_add(&text, "*=%s", device);
    if (placement->place) clv__text_add(&text, ",%s", placement->place);
    char *place = text.failed ? NULL : clv__strdup(clv__text_get(&text));
    clv__text_reset(&text);
    return place;
}

clv_status clv__placement_choose(clv_placement *placement, clv_graph *graph, const clv_plan_config *plan,
                                 clv_place_choice **choice) {
    *choice = NULL;
    if (!placement->n_devices && !is_method(placement->place)) return CLV_OK;
    const clv_place_config config = {.place = placement->place,
                                     .devices = placement->devices,
                                     .n_devices = placement->n_devices,
                                     .plan = *plan};
    CLV_TRY(clv_place_choose(graph, &config, choice));
    placement->place = (*choice)->place;
    placement->devices = NULL;
    placement->n_devices = 0;
    return CLV_OK;
}
