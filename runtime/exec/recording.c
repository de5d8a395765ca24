// SPDX-License-Identifier: Apache-2.0
// The worker's side of a profile: an event beside each command. Nothing is allocated and nothing waited for.
#include "exec/profile.h"

static clv__mark *begin(clv__recording *recording, int row) {
    clv__mark *mark = &recording->marks[recording->n++];
    *mark = (clv__mark){.row = row};
    return mark;
}

clv__bevent **clv__recording_event(clv__recording *recording, int row) {
    return &begin(recording, row)->begin;
}

clv_status clv__recording_open(clv__recording *recording, int row, clv_device *device, clv__queue queue,
                               clv__error *error) {
    return device->backend->record(device->open, queue, &begin(recording, row)->begin, error);
}

clv_status clv__recording_close(clv__recording *recording, clv_device *device, clv__queue queue,
                                clv__error *error) {
    return device->backend->record(device->open, queue, &recording->marks[recording->n - 1].end, error);
}

void clv__recording_reset(clv__recording *recording, const clv_device *device) {
    for (int i = 0; i < recording->n; i++) {
        device->backend->event_destroy(recording->marks[i].begin);
        device->backend->event_destroy(recording->marks[i].end);
    }
    recording->n = 0;
}
