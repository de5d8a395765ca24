// SPDX-License-Identifier: Apache-2.0
// The worker's side of a step: upload the slot's inputs in one write, enqueue the commands, read outputs back. A value for
// another device is read to staging, or stays where it is when it is lent (plan/lend.c); its receiver waits until it is
// there. Devices walk the plan's one order of execution, so the oldest unmet transfer always has a sender on its way.
#include "exec/reference.h"
#include "exec/run.h"

static clv__error *error_of(const clv__station *station) {
    return clv__plan_error(station->run->plan);
}

char *clv__staged_inputs(const clv__station *station, int slot) {
    return (char *)station->home->staging.pointer + (size_t)slot * station->place->input_bytes;
}

char *clv__staged_outputs(const clv__station *station, int slot) {
    return (char *)station->home->staging.pointer + CLV__SLOTS * station->place->input_bytes +
           (size_t)slot * station->place->staged_bytes;
}

/** The event of a command: the profile has it, if there is one; else it is the begin of a stretch, if none is under way. */
static clv_status event_for(clv__station *station, int slot, int row, clv__bevent ***event) {
    clv__activity *activity = &station->activity[slot];
    clv__recording *recording = &station->recording[slot];
    if (!clv__recording_on(recording)) {
        *event = clv__activity_begin(activity);
        return CLV_OK;
    }
    CLV_TRY(clv__activity_mark(activity, station->device, error_of(station)));
    *event = clv__recording_event(recording, row);
    return CLV_OK;
}

/** Around commands that give no event: nothing without a profile. */
static clv_status open_mark(clv__station *station, int slot, int row) {
    clv__recording *recording = &station->recording[slot];
    if (!clv__recording_on(recording)) return CLV_OK;
    return clv__recording_open(recording, row, station->device, error_of(station));
}

static clv_status close_mark(clv__station *station, int slot) {
    clv__recording *recording = &station->recording[slot];
    if (!clv__recording_on(recording)) return CLV_OK;
    return clv__recording_close(recording, station->device, error_of(station));
}

static clv_status enqueue_kernel(clv__station *station, int slot, const clv__command *command) {
    clv__bevent **event;
    CLV_TRY(event_for(station, slot, command->at, &event));
    return station->device->backend->launch(station->device->open, command->kernel, event, error_of(station));
}

/** A launch that is no kernel. */
static clv_status enqueue_other(clv__station *station, const clv__command *command) {
    const clv__backend *backend = station->device->backend;
    clv__bdevice *open = station->device->open;
    clv__error *error = error_of(station);
    const clv__launch *launch = command->launch;
    clv__bbuffer *const *b = command->buffers;
    switch (launch->kind) {
    case CLV__LAUNCH_KERNEL: break;
    case CLV__LAUNCH_COPY: return backend->copy(open, b[1], 0, b[0], 0, launch->bytes, error);
    case CLV__LAUNCH_FILL: return backend->fill(open, b[0], 0, launch->bytes, launch->pattern, error);
    case CLV__LAUNCH_GEMM:
        return backend->gemm(open, launch->gemm.transpose_a, launch->gemm.transpose_b, launch->gemm.m,
                             launch->gemm.n, launch->gemm.k, launch->gemm.alpha, b[1], launch->gemm.lda,
                             launch->gemm.stride_a, b[2], launch->gemm.ldb, launch->gemm.stride_b,
                             launch->gemm.beta, b[0], launch->gemm.ldc, launch->gemm.stride_c,
                             launch->gemm.n_batch, error);
    case CLV__LAUNCH_REFERENCE:
        return backend->call(open, clv__reference_call, (void *)&command->node->io, b, launch->n_slots,
                             error);
    }
    return CLV_E_INTERNAL;
}

static clv_status enqueue_launch(clv__station *station, int slot, const clv__command *command) {
    if (command->launch->kind == CLV__LAUNCH_KERNEL) return enqueue_kernel(station, slot, command);
    CLV_TRY(clv__activity_mark(&station->activity[slot], station->device, error_of(station)));
    CLV_TRY(open_mark(station, slot, command->at));
    CLV_TRY(enqueue_other(station, command));
    return close_mark(station, slot);
}

// ---- between devices ----------------------------------------------------------------------------------------------------

static const clv__transfer *transfer_of(const clv__station *station, const clv__command *command) {
    return &station->run->plan->transfers[command->transfer];
}

/** How many commands from this one on lend a value each: nothing is done between them, so one event will do. */
static size_t lent_together(const clv__station *station, const clv__command *command,
                            const clv__command *end) {
    size_t n = 0;
    while (command + n < end && command[n].work == CLV__SEND && transfer_of(station, &command[n])->lent &&
           (n == 0 || !command[n].awaits))
        n++;
    return n;
}

/** Tell whoever waits that the values of n commands are on their way. */
static void tell_sent(clv__station *station, int slot, const clv__command *command, size_t n,
                      clv__bevent *event) {
    clv_run *run = station->run;
    pthread_mutex_lock(&run->lock);
    for (size_t i = 0; i < n; i++)
        run->passages[slot][command[i].transfer] = (clv__passage){.sent = true, .shares = command->transfer};
    run->passages[slot][command->transfer].event = event;
    run->passages[slot][command->transfer].left = (int)n;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
}

static clv_status lend(clv__station *station, int slot, const clv__command *command, size_t n) {
    const clv__backend *backend = station->device->backend;
    clv__bevent *event = NULL;
    CLV_TRY(backend->record(station->device->open, CLV__QUEUE_COMPUTE, &event, error_of(station)));
    clv_status status = backend->flush(station->device->open, error_of(station));
    if (status == CLV_OK)
        tell_sent(station, slot, command, n, event);
    else
        backend->event_destroy(event);
    return status;
}

static clv_status send(clv__station *station, int slot, const clv__command *command) {
    const clv__transfer *transfer = transfer_of(station, command);
    const clv__backend *backend = station->device->backend;
    clv__bdevice *open = station->device->open;
    clv__bevent *event = NULL;
    if (transfer->bytes) {
        CLV_TRY(open_mark(station, slot, command->at));
        CLV_TRY(backend->read(open, CLV__QUEUE_COMPUTE, station->run->parts[slot][transfer->from].buffer, 0,
                              transfer->bytes, clv__staged_outputs(station, slot) + transfer->staged_at, NULL,
                              &event, error_of(station)));
        clv_status status = close_mark(station, slot);
        if (status == CLV_OK) status = backend->flush(open, error_of(station));
        if (status != CLV_OK) {
            backend->event_destroy(event);
            return status;
        }
    }
    tell_sent(station, slot, command, 1, event);
    return CLV_OK;
}

/** Wait until a value is on its way. *event: what tells that it is there, NULL if nothing does. */
static clv_status await_sender(clv__station *station, int slot, int number, clv__bevent **event) {
    clv_run *run = station->run;
    const int64_t ticket = station->steps[slot].ticket;
    const clv__failure *failure = &run->failure;
    const clv__passage *passage = &run->passages[slot][number];
    pthread_mutex_lock(&run->lock);
    atomic_store(&station->waits, true);
    while (!passage->sent && (failure->status == CLV_OK || failure->ticket > ticket))
        pthread_cond_wait(&run->changed, &run->lock);
    atomic_store(&station->waits, false);
    clv_status status = passage->sent ? CLV_OK : failure->status;
    *event = passage->sent ? run->passages[slot][passage->shares].event : NULL;
    pthread_mutex_unlock(&run->lock);
    return status;
}

/** Has this station waited already, in this step, for what tells that the value is there? */
static bool is_there(clv__station *station, int slot, int number) {
    clv_run *run = station->run;
    const clv__passage *passage = &run->passages[slot][number];
    pthread_mutex_lock(&run->lock);
    bool there = passage->sent && passage->shares == station->waited_for &&
                 station->waited_in == station->steps[slot].ticket;
    pthread_mutex_unlock(&run->lock);
    return there;
}

/** It was received: whoever does so last destroys the event. */
static void end_passage(clv__station *station, int slot, int number, const clv__station *sender) {
    clv_run *run = station->run;
    clv__bevent *over = NULL;
    pthread_mutex_lock(&run->lock);
    clv__passage *passage = &run->passages[slot][number], *first = &run->passages[slot][passage->shares];
    station->waited_in = station->steps[slot].ticket;
    station->waited_for = passage->shares;
    passage->sent = false;
    if (--first->left == 0) {
        over = first->event;
        first->event = NULL;
    }
    pthread_mutex_unlock(&run->lock);
    sender->device->backend->event_destroy(over);
}

static clv_status receive(clv__station *station, int slot, const clv__command *command) {
    clv_run *run = station->run;
    const int number = command->transfer;
    const clv__transfer *transfer = transfer_of(station, command);
    clv__station *sender = &run->stations[run->plan->values[transfer->from].place];
    clv__bevent *event;
    if (is_there(station, slot, number)) {
        end_passage(station, slot, number, sender);
        return CLV_OK;
    }
    CLV_TRY(clv__activity_pause(&station->activity[slot], station->device, error_of(station)));
    // what is enqueued here must not wait for the next flush while this thread waits
    CLV_TRY(station->device->backend->flush(station->device->open, error_of(station)));
    CLV_TRY(await_sender(station, slot, number, &event));
    atomic_store(&station->waits, true);
    clv_status status = event ? clv__device_wait(sender->device, event, error_of(station)) : CLV_OK;
    atomic_store(&station->waits, false);
    end_passage(station, slot, number, sender);
    if (status != CLV_OK) // not this device's fault
        clv__run_fail(run, station->steps[slot].ticket, sender->device, status);
    if (status != CLV_OK || !event || transfer->lent) return status;
    clv__bevent **arrived;
    CLV_TRY(event_for(station, slot, command->at, &arrived));
    return station->device->backend->write(
        station->device->open, CLV__QUEUE_COMPUTE, run->parts[slot][transfer->to].buffer, 0, transfer->bytes,
        clv__staged_outputs(sender, slot) + transfer->staged_at, NULL, arrived, error_of(station));
}

/** Wait until one other place has finished a step. */
static clv_status await_finish(clv__station *station, clv__station *other, int64_t ticket) {
    clv_run *run = station->run;
    const clv__failure *failure = &run->failure;
    clv__finish *finish = &other->finished[ticket % CLV__SLOTS];
    pthread_mutex_lock(&run->lock);
    atomic_store(&station->waits, true);
    while (finish->ticket < ticket && (failure->status == CLV_OK || failure->ticket > ticket))
        pthread_cond_wait(&run->changed, &run->lock);
    clv_status status = finish->ticket >= ticket ? CLV_OK : failure->status;
    clv__bevent *event = finish->ticket == ticket ? finish->event : NULL;
    finish->users += event != NULL;
    if (!event) atomic_store(&station->waits, false);
    pthread_mutex_unlock(&run->lock);
    if (!event) return status;
    status = clv__device_wait(other->device, event, error_of(station));
    atomic_store(&station->waits, false);
    pthread_mutex_lock(&run->lock);
    finish->users--;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
    // what it did in the last step, it tells itself: from here it only does not answer in this one
    if (status != CLV_OK) clv__run_fail(run, ticket + 1, other->device, status);
    return status;
}

/** Wait until other places have finished the last step, where they may still read what the next command writes over, or write
 *  what it reads. */
static clv_status await_last_step(clv__station *station, int slot, uint64_t places) {
    clv_run *run = station->run;
    const int64_t last = station->steps[slot].ticket - 1;
    if (last < 0) return CLV_OK;
    CLV_TRY(clv__activity_pause(&station->activity[slot], station->device, error_of(station)));
    CLV_TRY(station->device->backend->flush(station->device->open, error_of(station)));
    for (int s = 0; s < run->n_stations; s++) {
        if (places & UINT64_C(1) << s) CLV_TRY(await_finish(station, &run->stations[s], last));
    }
    return CLV_OK;
}

static bool is_awaited(const clv__station *station) {
    for (int s = 0; s < station->run->n_stations; s++) {
        if (station->run->stations[s].place->awaits & UINT64_C(1) << station->index) return true;
    }
    return false;
}

/** Take back the event of the step before last: that step is over on every device, or this one would not have been posted. */
static void begin_step(clv__station *station, int slot) {
    clv_run *run = station->run;
    clv__finish *finish = &station->finished[slot];
    pthread_mutex_lock(&run->lock);
    while (finish->users) pthread_cond_wait(&run->changed, &run->lock);
    clv__bevent *old = finish->event;
    finish->event = NULL;
    pthread_mutex_unlock(&run->lock);
    station->device->backend->event_destroy(old);
}

static clv_status finish_step(clv__station *station, int slot) {
    clv_run *run = station->run;
    clv__bevent *event;
    CLV_TRY(station->device->backend->record(station->device->open, CLV__QUEUE_COMPUTE, &event,
                                             error_of(station)));
    clv_status status = station->device->backend->flush(station->device->open, error_of(station));
    if (status != CLV_OK) {
        station->device->backend->event_destroy(event);
        return status;
    }
    pthread_mutex_lock(&run->lock);
    station->finished[slot] = (clv__finish){station->steps[slot].ticket, event, 0};
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
    return CLV_OK;
}

// ---- a step -------------------------------------------------------------------------------------------------------------

/** The profile's row of a station's upload; the next is that of what is read back. */
static int io_row(const clv__station *station) {
    return (int)station->run->plan->n_nodes + 2 * station->index;
}

/** Inputs that lie in several allocations, one by one; *arrived: the last one's event. The queue is in order. */
static clv_status upload_each(clv__station *station, int slot, clv__bevent **arrived) {
    const clv__backend *backend = station->device->backend;
    const clv_run *run = station->run;
    const int *pieces;
    for (int i = 0; i < station->place->n_inputs; i++) {
        const int n = clv__value_pieces(run->plan, &station->place->inputs[i], &pieces);
        for (int k = 0; k < n; k++) {
            const clv__value *value = &run->plan->values[pieces[k]];
            if (value->bytes == 0 || value->segment != CLV__IN_INPUTS) continue;
            backend->event_destroy(*arrived);
            *arrived = NULL;
            CLV_TRY(backend->write(station->device->open, CLV__QUEUE_TRANSFER, run->parts[slot][pieces[k]].buffer, 0,
                                   value->bytes, clv__staged_inputs(station, slot) + value->staged, NULL, arrived,
                                   error_of(station)));
        }
    }
    return CLV_OK;
}

static clv_status upload(clv__station *station, int slot) {
    const clv__backend *backend = station->device->backend;
    clv__bdevice *open = station->device->open;
    const clv__layout *io = &station->place->io;
    size_t bytes = station->place->input_bytes;
    if (bytes == 0) return CLV_OK;
    clv__bevent *arrived = NULL;
    if (io->bytes <= io->chunk)
        CLV_TRY(backend->write(open, CLV__QUEUE_TRANSFER, station->home->io.items[0].buffer, (size_t)slot * bytes,
                               bytes, clv__staged_inputs(station, slot), NULL, &arrived, error_of(station)));
    else
        CLV_TRY(upload_each(station, slot, &arrived));
    clv_status status = backend->wait_on_queue(open, CLV__QUEUE_COMPUTE, arrived, error_of(station));
    if (clv__recording_on(&station->recording[slot]))
        *clv__recording_event(&station->recording[slot], io_row(station)) = arrived;
    else
        backend->event_destroy(arrived);
    return status;
}

static clv_status read_outputs(clv__station *station, int slot) {
    const clv_run *run = station->run;
    for (int i = 0; i < station->place->n_outputs; i++) {
        const int *pieces, n = clv__value_pieces(run->plan, &station->place->outputs[i], &pieces);
        char *target = clv__staged_outputs(station, slot) + station->staged_at[i];
        clv__recording *recording = &station->recording[slot];
        for (int k = 0; k < n; k++) {
            size_t bytes = run->plan->values[pieces[k]].bytes;
            if (bytes == 0) continue;
            clv__bevent **event =
                clv__recording_on(recording) ? clv__recording_event(recording, io_row(station) + 1) : NULL;
            CLV_TRY(station->device->backend->read(station->device->open, CLV__QUEUE_COMPUTE,
                                                   run->parts[slot][pieces[k]].buffer, 0, bytes, target, NULL, event,
                                                   error_of(station)));
            target += bytes;
        }
    }
    return CLV_OK;
}

clv_status clv__station_enqueue(clv__station *station, int slot, clv__bevent **done) {
    const clv__backend *backend = station->device->backend;
    begin_step(station, slot);
    CLV_TRY(upload(station, slot));
    const clv__command *end = station->commands[slot] + station->n_commands;
    size_t lent;
    for (const clv__command *command = station->commands[slot]; command < end; command += lent ? lent : 1) {
        lent = lent_together(station, command, end);
        atomic_fetch_add_explicit(&station->device->beats, 1, memory_order_relaxed);
        if (command->awaits) CLV_TRY(await_last_step(station, slot, command->awaits));
        if (command->work == CLV__COMPUTE && command->node->phase == CLV__UPDATE)
            station->steps[slot].updating = true;
        clv_status status = lent                            ? lend(station, slot, command, lent)
                            : command->work == CLV__SEND    ? send(station, slot, command)
                            : command->work == CLV__RECEIVE ? receive(station, slot, command)
                                                            : enqueue_launch(station, slot, command);
        if (status == CLV_OK) continue;
        if (command->work == CLV__COMPUTE) {
            clv__node_title title;
            clv__error_prefix(error_of(station), "%s on %s: ", clv__title_of(command->node, &title),
                              station->device->info.name);
        }
        return status;
    }
    CLV_TRY(read_outputs(station, slot));
    CLV_TRY(backend->record(station->device->open, CLV__QUEUE_COMPUTE, done, error_of(station)));
    CLV_TRY(backend->flush(station->device->open, error_of(station)));
    return is_awaited(station) ? finish_step(station, slot) : CLV_OK;
}
