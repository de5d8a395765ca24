// SPDX-License-Identifier: Apache-2.0
// A placement that asks for a choice (`auto` and the like) becomes one that says where layers are.
#include <string.h>

#include "train/trainer.h"

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
