// SPDX-License-Identifier: Apache-2.0
// Which commands of the compute queue have to wait for what the queue of downloads still reads. Results and
// values for other devices are read while the device computes on. The memory they lie in is used again, at
// the latest by the next step: there, and not earlier, the compute queue waits. Found once, when a run is
// bound.
#include "exec/run.h"

/** Bytes of an arena. */
typedef struct range {
    clv__segment segment;
    size_t from, bytes;
} range;

static range range_of(const clv__value *value) {
    return (range){value->segment, value->offset, value->bytes};
}

static bool overlap(range a, range b) {
    return a.segment == b.segment && a.from < b.from + b.bytes && b.from < a.from + a.bytes;
}

/** Does the command write there, or may it? What it only reads counts as well: that waits too early at
 *  worst. */
static bool touches(const clv_run *run, const clv__command *command, range read) {
    const clv_plan *plan = run->plan;
    const clv__plan_node *at = &plan->nodes[command->at];
    if (command->work == CLV__SEND) return false;
    if (command->work == CLV__RECEIVE)
        return overlap(range_of(&plan->values[plan->transfers[command->transfer].to]), read);
    for (int i = 0; i < command->launch->n_slots; i++) {
        const clv__slot *slot = &command->launch->slots[i];
        range used = {.segment = CLV__NOWHERE};
        if (slot->kind == CLV__SLOT_WORKSPACE)
            used = (range){at->workspace_in, at->workspace_at + slot->offset, slot->bytes};
        else if (slot->kind == CLV__SLOT_IN && at->in[slot->index] >= 0)
            used = range_of(&plan->values[at->in[slot->index]]);
        else if (slot->kind == CLV__SLOT_OUT && at->out[slot->index] >= 0)
            used = range_of(&plan->values[at->out[slot->index]]);
        if (used.segment != CLV__NOWHERE && overlap(used, read)) return true;
    }
    return false;
}

bool clv__executor_touches(const clv__executor *executor, const clv__value *value, size_t end) {
    size_t i = 0;
    while (i < end && !touches(executor->run, &executor->commands[0][i], range_of(value))) i++;
    return i < end;
}

/** A value is read when the commands before `next` are done, and must not change before: mark the command
 *  that waits. The commands of the next step follow those of this one. */
static void protect(clv__executor *executor, const clv__value *value, size_t next) {
    const size_t first = executor->n_once; // what is before waits anyway: enqueue.c
    const size_t n = executor->n_commands - first;
    if (value->bytes == 0 || value->segment == CLV__IN_INPUTS || n == 0) return; // its slot is waited for
    next = next < first ? 0 : next - first;
    size_t found = next % n;
    // other devices may write what the session keeps, and own what is shared: there the next command waits
    if (value->segment != CLV__IN_SESSION && value->segment != CLV__IN_SHARED) {
        size_t i = 0;
        while (i < n &&
               !touches(executor->run, &executor->commands[0][first + (next + i) % n], range_of(value)))
            i++;
        if (i == n) return; // made by nobody here
        found = (next + i) % n;
    }
    for (int slot = 0; slot < CLV__SLOTS; slot++)
        executor->commands[slot][first + found].after_downloads = true;
}

void clv__executor_order(clv__executor *executor) {
    const clv_plan *plan = executor->run->plan;
    executor->downloads = false;
    for (size_t i = 0; i < executor->n_commands; i++) {
        const clv__command *command = &executor->commands[0][i];
        if (command->work != CLV__SEND || plan->transfers[command->transfer].shared) continue;
        executor->downloads |= plan->transfers[command->transfer].bytes != 0;
        protect(executor, &plan->values[plan->transfers[command->transfer].from], i + 1);
    }
    for (int i = 0; i < executor->place->n_outputs; i++) {
        const int *pieces, n = clv__value_pieces(plan, &executor->place->outputs[i], &pieces);
        for (int k = 0; k < n; k++) {
            executor->downloads |= plan->values[pieces[k]].bytes != 0;
            protect(executor, &plan->values[pieces[k]], 0);
        }
    }
}
