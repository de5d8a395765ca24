// SPDX-License-Identifier: Apache-2.0
// What a placement may ask for, and one that asks for a choice (`auto` and the like) becomes one that says
// where layers are.
#include <inttypes.h>
#include <string.h>

#include "nn/replicas.h"
#include "train/trainer.h"

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
    if (placement->n_replicas && (placement->place || placement->n_devices))
        CLV_FAIL(error, CLV_E_VALUE, "layers are placed and replicas are asked for: give one of them");
    if (placement->n_replicas < 0 || (placement->n_replicas && !placement->replicas))
        CLV_FAIL(error, CLV_E_VALUE, "%d replicas", placement->n_replicas);
    if (!placement->n_replicas) return CLV_OK;
    CLV_TRY(
        clv__replicas_check(runtime, placement->replicas, placement->shares, placement->n_replicas, error));
    return check_rows(placement, batch, error);
}

clv_status clv__placement_choose(clv_placement *placement, clv_graph *graph, const clv_plan_config *plan,
                                 clv_place_choice **choice) {
    static const char *const methods[] = {"auto", "balanced", "sequential"};
    bool wanted = placement->n_devices > 0;
    for (size_t i = 0; i < sizeof methods / sizeof *methods && placement->place; i++)
        wanted |= strcmp(placement->place, methods[i]) == 0;
    *choice = NULL;
    if (!wanted) return CLV_OK;
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
