// SPDX-License-Identifier: Apache-2.0
// That nothing goes on, and why: the first reason stays.
#include <stdio.h>

#include "device/device.h"
#include "exec/ranks.h"

void clv__ranks_end(clv_ranks *ranks, bool first, const char *sentence) {
    pthread_mutex_lock(&ranks->lock);
    if (!ranks->over) {
        ranks->over = true;
        ranks->first_to_tell = first;
        snprintf(ranks->sentence, sizeof ranks->sentence, "%s", sentence);
    }
    pthread_mutex_unlock(&ranks->lock);
    atomic_store(&ranks->is_over, true);
}

clv_status clv__ranks_status(clv_ranks *ranks) {
    pthread_mutex_lock(&ranks->lock);
    clv_status status = ranks->over ? clv__error_set(clv__runtime_error_of(ranks->runtime), CLV_E_RANK_LOST,
                                                     "%s", ranks->sentence)
                                    : CLV_OK;
    pthread_mutex_unlock(&ranks->lock);
    return status;
}
