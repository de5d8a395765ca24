// SPDX-License-Identifier: Apache-2.0
// The worker's side of a step: upload the slot's inputs (in one write where they lie in one allocation),
// enqueue the commands, read outputs back. Each of the three has a queue of its own, so that a result is read
// while the next step computes. A value for another device is read to staging memory, or stays where it is
// when both devices share a buffer (plan/shared/). Its receiver waits until it is there. All devices go
// through the plan's nodes in one order, so the sender of the oldest transfer that is still missing never
// waits for a later one.
#include <string.h>

#include "exec/elsewhere.h"
#include "exec/exchange.h"
#include "exec/reference.h"
#include "exec/run.h"

static clv__error *error_of(const clv__executor *executor) {
    return clv__plan_error(executor->run->plan);
}

char *clv__staged_inputs(const clv__executor *executor, int slot) {
    return (char *)executor->arenas->staging.pointer + (size_t)slot * executor->place->input_bytes;
}

char *clv__staged_outputs(const clv__executor *executor, int slot) {
    return (char *)executor->arenas->staging.pointer + CLV__SLOTS * executor->place->input_bytes +
           (size_t)slot * executor->place->staged_bytes;
}

/** Where to put the event of a command, NULL if nobody wants it. While a profile records, each command has
 *  one. Without, only the first command after the device has waited for something: from there its busy time
 *  is counted (activity.h). */
static clv_status event_for(clv__executor *executor, int slot, int row, clv__bevent ***event) {
    clv__activity *activity = &executor->activity[slot];
    clv__recording *recording = &executor->recording[slot];
    if (!clv__recording_on(recording)) {
        *event = clv__activity_begin(activity, executor->device);
        return CLV_OK;
    }
    CLV_TRY(clv__activity_mark(activity, executor->device, error_of(executor)));
    *event = clv__recording_event(recording, row);
    return CLV_OK;
}

/** Before and after commands that give no event of their own, for the profile; without one these do
 *  nothing. */
static clv_status open_mark(clv__executor *executor, int slot, clv__queue queue, int row) {
    clv__recording *recording = &executor->recording[slot];
    if (!clv__recording_on(recording)) return CLV_OK;
    return clv__recording_open(recording, row, executor->device, queue, error_of(executor));
}

static clv_status close_mark(clv__executor *executor, int slot, clv__queue queue) {
    clv__recording *recording = &executor->recording[slot];
    if (!clv__recording_on(recording)) return CLV_OK;
    return clv__recording_close(recording, executor->device, queue, error_of(executor));
}

/** What is enqueued on `later` from now on waits for all that is on `queue` by now. */
static clv_status wait_for_queue(clv__executor *executor, clv__queue later, clv__queue queue) {
    const clv__backend *backend = executor->device->backend;
    clv__bevent *event;
    CLV_TRY(backend->record(executor->device->open, queue, &event, error_of(executor)));
    clv_status status = backend->wait_on_queue(executor->device->open, later, event, error_of(executor));
    backend->event_destroy(event);
    return status;
}

/** Later commands wait for the reads enqueued so far, because they may write over that memory (order.c). */
static clv_status wait_for_downloads(clv__executor *executor) {
    if (!executor->unawaited_reads) return CLV_OK;
    executor->unawaited_reads = false;
    return wait_for_queue(executor, CLV__QUEUE_COMPUTE, CLV__QUEUE_DOWNLOAD);
}

static clv_status enqueue_kernel(clv__executor *executor, int slot, const clv__command *command) {
    clv__bevent **event;
    CLV_TRY(event_for(executor, slot, command->at, &event));
    return executor->device->backend->launch(executor->device->open, command->kernel, event,
                                             error_of(executor));
}

/** A launch that is no kernel. */
static clv_status enqueue_other(clv__executor *executor, const clv__command *command) {
    const clv__backend *backend = executor->device->backend;
    clv__bdevice *open = executor->device->open;
    clv__error *error = error_of(executor);
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

static clv_status enqueue_launch(clv__executor *executor, int slot, const clv__command *command) {
    if (command->launch->kind == CLV__LAUNCH_KERNEL) return enqueue_kernel(executor, slot, command);
    CLV_TRY(clv__activity_mark(&executor->activity[slot], executor->device, error_of(executor)));
    CLV_TRY(open_mark(executor, slot, CLV__QUEUE_COMPUTE, command->at));
    CLV_TRY(enqueue_other(executor, command));
    return close_mark(executor, slot, CLV__QUEUE_COMPUTE);
}

// ---- between devices --------------------------------------------------------------------------------------

static const clv__transfer *transfer_of(const clv__executor *executor, const clv__command *command) {
    return &executor->run->plan->transfers[command->transfer];
}

/** How many commands from this one on send a value by a shared buffer? Nothing is computed between them, so
 *  one event will do for all. Reads are waited for before the first at most (order.c: protect). */
static size_t shared_together(const clv__executor *executor, const clv__command *command,
                              const clv__command *end) {
    size_t n = 0;
    while (command + n < end && command[n].work == CLV__SEND && transfer_of(executor, &command[n])->shared &&
           !transfer_of(executor, &command[n])->exchanged && (n == 0 || !command[n].awaits))
        n++;
    return n;
}

/** Let receivers know that the values of n commands are on their way. One event serves all: that of the
 *  first. */
static void tell_sent(clv__executor *executor, int slot, const clv__command *command, size_t n,
                      clv__bevent *event) {
    clv_run *run = executor->run;
    pthread_mutex_lock(&run->lock);
    for (size_t i = 0; i < n; i++)
        run->in_flight[slot][command[i].transfer] =
            (clv__in_flight){.sent = true, .event_of = command->transfer};
    run->in_flight[slot][command->transfer].event = event;
    run->in_flight[slot][command->transfer].left = (int)n;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
}

static clv_status share(clv__executor *executor, int slot, const clv__command *command, size_t n) {
    const clv__backend *backend = executor->device->backend;
    clv__bevent *event = NULL;
    CLV_TRY(backend->record(executor->device->open, CLV__QUEUE_COMPUTE, &event, error_of(executor)));
    clv_status status = backend->flush(executor->device->open, error_of(executor));
    if (status == CLV_OK)
        tell_sent(executor, slot, command, n, event);
    else
        backend->event_destroy(event);
    return status;
}

/** What was sent to another rank in the slot's last step must have left before it is written over. */
static clv_status await_left(clv__executor *executor, int slot, int transfer) {
    atomic_store(&executor->waits, true);
    clv_status status = clv__between_free(executor->run->between, slot, transfer);
    atomic_store(&executor->waits, false);
    return status;
}

/** Hand what ranks exchange over where it is, from when its maker is done. */
static clv_status exchange_there(clv__executor *executor, int slot, const clv__command *command) {
    const clv__backend *backend = executor->device->backend;
    clv__bbuffer *whole = executor->run->parts[slot][transfer_of(executor, command)->into].buffer;
    clv__bevent *event = NULL;
    CLV_TRY(backend->record(executor->device->open, CLV__QUEUE_COMPUTE, &event, error_of(executor)));
    const clv_status status = backend->flush(executor->device->open, error_of(executor));
    if (status == CLV_OK)
        clv__exchange_post(executor->run->exchange, executor, slot, command->transfer,
                           backend->buffer_pointer(whole), event);
    else
        backend->event_destroy(event);
    return status;
}

static clv_status send(clv__executor *executor, int slot, const clv__command *command) {
    const clv__transfer *transfer = transfer_of(executor, command);
    if (transfer->shared) return exchange_there(executor, slot, command);
    const clv__backend *backend = executor->device->backend;
    clv__bdevice *open = executor->device->open;
    clv__bevent *event = NULL;
    const size_t bytes = transfer->exchanged ? transfer->sent_bytes : transfer->bytes;
    const bool leaves = clv__elsewhere_sends(executor->run, command->transfer);
    if (leaves) CLV_TRY(await_left(executor, slot, command->transfer));
    if (bytes) {
        CLV_TRY(wait_for_queue(executor, CLV__QUEUE_DOWNLOAD, CLV__QUEUE_COMPUTE));
        CLV_TRY(open_mark(executor, slot, CLV__QUEUE_DOWNLOAD, command->at));
        executor->unawaited_reads = true;
        CLV_TRY(backend->read(open, CLV__QUEUE_DOWNLOAD, executor->run->parts[slot][transfer->from].buffer, 0,
                              bytes,
                              clv__staged_outputs(executor, slot) + transfer->staged_at + transfer->sent_at,
                              NULL, &event, error_of(executor)));
        clv_status status = close_mark(executor, slot, CLV__QUEUE_DOWNLOAD);
        if (status == CLV_OK) status = backend->flush(open, error_of(executor));
        if (status != CLV_OK) {
            backend->event_destroy(event);
            return status;
        }
    }
    if (transfer->exchanged)
        clv__exchange_post(executor->run->exchange, executor, slot, command->transfer,
                           clv__staged_outputs(executor, slot) + transfer->staged_at, event);
    else if (leaves)
        clv__between_post(executor->run->between, executor, slot, command->transfer,
                          clv__staged_outputs(executor, slot) + transfer->staged_at, event);
    else
        tell_sent(executor, slot, command, 1, event);
    return CLV_OK;
}

/** Wait until the sender has enqueued a value. *event: done when the value is there; NULL if there is nothing
 *  to wait for. `waits` says meanwhile that this worker is not stuck in its driver (wait.c). */
static clv_status await_sender(clv__executor *executor, int slot, int number, clv__bevent **event) {
    clv_run *run = executor->run;
    const int64_t ticket = executor->steps[slot].ticket;
    const clv__failure *failure = &run->failure;
    const clv__in_flight *flight = &run->in_flight[slot][number];
    pthread_mutex_lock(&run->lock);
    atomic_store(&executor->waits, true);
    while (!flight->sent && (failure->status == CLV_OK || failure->ticket > ticket))
        pthread_cond_wait(&run->changed, &run->lock);
    atomic_store(&executor->waits, false);
    clv_status status = flight->sent ? CLV_OK : failure->status;
    *event = flight->sent ? run->in_flight[slot][flight->event_of].event : NULL;
    pthread_mutex_unlock(&run->lock);
    return status;
}

/** Is the value there for certain, because this executor has waited in this step for the event that serves it
 *  too? */
static bool is_there(clv__executor *executor, int slot, int number) {
    clv_run *run = executor->run;
    const clv__in_flight *flight = &run->in_flight[slot][number];
    pthread_mutex_lock(&run->lock);
    bool there = flight->sent && flight->event_of == executor->waited_for &&
                 executor->waited_in == executor->steps[slot].ticket;
    pthread_mutex_unlock(&run->lock);
    return there;
}

/** The value was received. The last of those that an event serves destroys it. */
static void end_transfer(clv__executor *executor, int slot, int number, const clv__executor *sender) {
    clv_run *run = executor->run;
    clv__bevent *over = NULL;
    pthread_mutex_lock(&run->lock);
    clv__in_flight *flight = &run->in_flight[slot][number], *first = &run->in_flight[slot][flight->event_of];
    executor->waited_in = executor->steps[slot].ticket;
    executor->waited_for = flight->event_of;
    flight->sent = false;
    if (--first->left == 0) {
        over = first->event;
        first->event = NULL;
    }
    pthread_mutex_unlock(&run->lock);
    sender->device->backend->event_destroy(over);
}

/** What the ranks made of a value comes back to where it was staged, or is in its place already. */
static clv_status receive_exchanged(clv__executor *executor, int slot, const clv__command *command) {
    clv_run *run = executor->run;
    const clv__transfer *transfer = transfer_of(executor, command);
    const clv__backend *backend = executor->device->backend;
    CLV_TRY(clv__activity_pause(&executor->activity[slot], executor->device, error_of(executor)));
    CLV_TRY(backend->flush(executor->device->open, error_of(executor)));
    atomic_store(&executor->waits, true);
    clv_status status = clv__exchange_await(run->exchange, executor, slot, command->transfer);
    atomic_store(&executor->waits, false);
    if (status != CLV_OK || !transfer->came_bytes || transfer->shared) return status;
    clv__bevent **arrived;
    CLV_TRY(event_for(executor, slot, command->at, &arrived));
    return backend->write(executor->device->open, CLV__QUEUE_COMPUTE, run->parts[slot][transfer->to].buffer,
                          0, transfer->came_bytes,
                          clv__staged_outputs(executor, slot) + transfer->staged_at + transfer->came_at, NULL,
                          arrived, error_of(executor));
}

/** Write a received value, which lies in the sender's staging memory, to the device. */
static clv_status write_received(clv__executor *executor, int slot, const clv__command *command,
                                 const clv__executor *sender) {
    const clv__transfer *transfer = transfer_of(executor, command);
    clv__bevent **arrived;
    CLV_TRY(event_for(executor, slot, command->at, &arrived));
    return executor->device->backend->write(
        executor->device->open, CLV__QUEUE_COMPUTE, executor->run->parts[slot][transfer->to].buffer, 0,
        transfer->bytes, clv__staged_outputs(sender, slot) + transfer->staged_at, NULL, arrived,
        error_of(executor));
}

/** From a device of another rank. */
static clv_status receive_from_elsewhere(clv__executor *executor, int slot, const clv__command *command,
                                         const clv__executor *sender) {
    CLV_TRY(clv__activity_pause(&executor->activity[slot], executor->device, error_of(executor)));
    CLV_TRY(executor->device->backend->flush(executor->device->open, error_of(executor)));
    atomic_store(&executor->waits, true);
    clv_status status =
        clv__between_await(executor->run->between, executor, slot, command->transfer,
                           clv__staged_outputs(sender, slot) + transfer_of(executor, command)->staged_at);
    atomic_store(&executor->waits, false);
    if (status != CLV_OK || !transfer_of(executor, command)->bytes) return status;
    return write_received(executor, slot, command, sender);
}

static clv_status receive(clv__executor *executor, int slot, const clv__command *command) {
    if (transfer_of(executor, command)->exchanged) return receive_exchanged(executor, slot, command);
    clv_run *run = executor->run;
    const int number = command->transfer;
    const clv__transfer *transfer = transfer_of(executor, command);
    clv__executor *sender = &run->executors[run->plan->values[transfer->from].place];
    if (clv__elsewhere_receives(run, number)) return receive_from_elsewhere(executor, slot, command, sender);
    clv__bevent *event;
    if (is_there(executor, slot, number)) {
        end_transfer(executor, slot, number, sender);
        return CLV_OK;
    }
    CLV_TRY(clv__activity_pause(&executor->activity[slot], executor->device, error_of(executor)));
    // what is enqueued here must not wait for the next flush while this thread waits
    CLV_TRY(executor->device->backend->flush(executor->device->open, error_of(executor)));
    CLV_TRY(await_sender(executor, slot, number, &event));
    atomic_store(&executor->waits, true);
    clv_status status = event ? clv__device_wait(sender->device, event, error_of(executor)) : CLV_OK;
    atomic_store(&executor->waits, false);
    end_transfer(executor, slot, number, sender);
    if (status != CLV_OK) // not this device's fault
        clv__run_fail(run, executor->steps[slot].ticket, sender->device, status);
    if (status != CLV_OK || !event || transfer->shared) return status;
    return write_received(executor, slot, command, sender);
}

/** Wait until one other device has finished a step. */
static clv_status await_finish(clv__executor *executor, clv__executor *other, int64_t ticket) {
    clv_run *run = executor->run;
    const clv__failure *failure = &run->failure;
    clv__finish *finish = &other->finished[ticket % CLV__SLOTS];
    pthread_mutex_lock(&run->lock);
    atomic_store(&executor->waits, true);
    while (finish->ticket < ticket && (failure->status == CLV_OK || failure->ticket > ticket))
        pthread_cond_wait(&run->changed, &run->lock);
    // A later ticket: a newer step has the slot, so this one is over.
    clv_status status = finish->ticket >= ticket ? CLV_OK : failure->status;
    clv__bevent *event = finish->ticket == ticket ? finish->event : NULL;
    finish->users += event != NULL;
    if (!event) atomic_store(&executor->waits, false);
    pthread_mutex_unlock(&run->lock);
    if (!event) return status;
    status = clv__device_wait(other->device, event, error_of(executor));
    atomic_store(&executor->waits, false);
    pthread_mutex_lock(&run->lock);
    finish->users--;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
    // The other device tells of its own last step. Here the failure is booked on the step after it.
    if (status != CLV_OK) clv__run_fail(run, ticket + 1, other->device, status);
    return status;
}

/** Wait until other devices have finished the last step: they may still read what the next command writes, or
 *  write what it reads. places: a bit for each. */
static clv_status await_last_step(clv__executor *executor, int slot, uint64_t places) {
    clv_run *run = executor->run;
    const int64_t last = executor->steps[slot].ticket - 1;
    if (last < 0) return CLV_OK;
    CLV_TRY(clv__activity_pause(&executor->activity[slot], executor->device, error_of(executor)));
    CLV_TRY(executor->device->backend->flush(executor->device->open, error_of(executor)));
    for (int s = 0; s < run->n_executors; s++) {
        if (places & UINT64_C(1) << s) CLV_TRY(await_finish(executor, &run->executors[s], last));
    }
    return CLV_OK;
}

/** Does another device wait for the ends of this one's steps? */
static bool is_awaited(const clv__executor *executor) {
    for (int s = 0; s < executor->run->n_executors; s++) {
        if (executor->run->executors[s].place->awaits & UINT64_C(1) << executor->index) return true;
    }
    return false;
}

/** The slot's last step, two steps ago, is over on every device, or this one would not have been posted:
 *  destroy the event that told others of its end, once nobody waits for it. */
static void begin_step(clv__executor *executor, int slot) {
    clv_run *run = executor->run;
    clv__finish *finish = &executor->finished[slot];
    pthread_mutex_lock(&run->lock);
    while (finish->users) pthread_cond_wait(&run->changed, &run->lock);
    clv__bevent *old = finish->event;
    finish->event = NULL;
    pthread_mutex_unlock(&run->lock);
    executor->device->backend->event_destroy(old);
}

/** Let other devices wait for the end of this step: publish the event that comes then. */
static clv_status publish_end(clv__executor *executor, int slot) {
    clv_run *run = executor->run;
    clv__bevent *event;
    CLV_TRY(executor->device->backend->record(executor->device->open,
                                              executor->downloads ? CLV__QUEUE_DOWNLOAD : CLV__QUEUE_COMPUTE,
                                              &event, error_of(executor)));
    clv_status status = executor->device->backend->flush(executor->device->open, error_of(executor));
    if (status != CLV_OK) {
        executor->device->backend->event_destroy(event);
        return status;
    }
    pthread_mutex_lock(&run->lock);
    executor->finished[slot] = (clv__finish){executor->steps[slot].ticket, event, 0};
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
    return CLV_OK;
}

// ---- a step -----------------------------------------------------------------------------------------------

/** The profile's row of an executor's upload; the next is that of what is read back. */
static int io_row(const clv__executor *executor) {
    return (int)executor->run->plan->n_nodes + 2 * executor->index;
}

/** Inputs that lie in several allocations, one by one, late ones or the others; *arrived: the last one's
 *  event. The queue is in order. */
static clv_status upload_each(clv__executor *executor, int slot, bool late, clv__bevent **arrived) {
    const clv__backend *backend = executor->device->backend;
    const clv_run *run = executor->run;
    const int *pieces;
    for (int i = 0; i < executor->place->n_inputs; i++) {
        const int n = clv__value_pieces(run->plan, &executor->place->inputs[i], &pieces);
        for (int k = 0; k < n; k++) {
            const clv__value *value = &run->plan->values[pieces[k]];
            if (value->bytes == 0 || value->segment != CLV__IN_INPUTS) continue; // nobody reads it
            if (value->tensor->late != late) continue;
            backend->event_destroy(*arrived);
            *arrived = NULL;
            CLV_TRY(backend->write(executor->device->open, CLV__QUEUE_UPLOAD,
                                   run->parts[slot][pieces[k]].buffer, 0, value->bytes,
                                   clv__staged_inputs(executor, slot) + value->staged, NULL, arrived,
                                   error_of(executor)));
        }
    }
    return CLV_OK;
}

static clv_status upload(clv__executor *executor, int slot) {
    const clv__backend *backend = executor->device->backend;
    clv__bdevice *open = executor->device->open;
    const clv__layout *io = &executor->place->io;
    const clv__place *place = executor->place;
    const bool late = executor->steps[slot].resumed;
    const size_t from = late ? place->early_bytes : 0,
                 bytes = (late ? place->input_bytes : place->early_bytes) - from;
    if (bytes == 0) return CLV_OK;
    clv__bevent *arrived = NULL;
    if (io->bytes <= io->chunk)
        CLV_TRY(backend->write(open, CLV__QUEUE_UPLOAD, executor->arenas->io.items[0].buffer,
                               (size_t)slot * place->input_bytes + from, bytes,
                               clv__staged_inputs(executor, slot) + from, NULL, &arrived,
                               error_of(executor)));
    else
        CLV_TRY(upload_each(executor, slot, late, &arrived));
    clv_status status = backend->wait_on_queue(open, CLV__QUEUE_COMPUTE, arrived, error_of(executor));
    if (clv__recording_on(&executor->recording[slot]))
        *clv__recording_event(&executor->recording[slot], io_row(executor)) = arrived;
    else
        backend->event_destroy(arrived);
    return status;
}

/** Read outputs when `computed` is reached. *last: the event of the last read, NULL where there is none, or a
 *  profile has it. */
static clv_status read_outputs(clv__executor *executor, int slot, clv__bevent *computed, clv__bevent **last) {
    const clv__backend *backend = executor->device->backend;
    const clv_run *run = executor->run;
    clv__recording *recording = &executor->recording[slot];
    clv__bevent *after = computed; // of the first; the queue is in order
    for (int i = 0; i < executor->place->n_outputs; i++) {
        const int *pieces, n = clv__value_pieces(run->plan, &executor->place->outputs[i], &pieces);
        if (clv__run_pauses(run) && executor->early[i] == executor->steps[slot].resumed) continue;
        if (executor->seen[i]) continue;
        char *target = clv__staged_outputs(executor, slot) + executor->staged_at[i];
        for (int k = 0; k < n; k++) {
            size_t bytes = run->plan->values[pieces[k]].bytes;
            if (bytes == 0) continue;
            clv__bevent **event = last;
            backend->event_destroy(*last);
            *last = NULL;
            if (clv__recording_on(recording)) event = clv__recording_event(recording, io_row(executor) + 1);
            CLV_TRY(backend->read(executor->device->open, CLV__QUEUE_DOWNLOAD,
                                  run->parts[slot][pieces[k]].buffer, 0, bytes, target, after, event,
                                  error_of(executor)));
            after = NULL;
            target += bytes;
        }
    }
    return CLV_OK;
}

/** All commands are enqueued: read outputs, and hand the step over. *done is reached when all of it is
 *  done. */
static clv_status end_step(clv__executor *executor, int slot, clv__bevent **done) {
    const clv__backend *backend = executor->device->backend;
    clv__bdevice *open = executor->device->open;
    clv__error *error = error_of(executor);
    clv__bevent *computed, *last = NULL;
    CLV_TRY(backend->record(open, CLV__QUEUE_COMPUTE, &computed, error));
    clv_status status = CLV_OK;
    if (executor->downloads) {
        executor->unawaited_reads = true;
        status = read_outputs(executor, slot, computed, &last);
        if (status == CLV_OK && !last)
            status = backend->wait_on_queue(open, CLV__QUEUE_DOWNLOAD, computed, error);
        if (status == CLV_OK && !last) status = backend->record(open, CLV__QUEUE_DOWNLOAD, &last, error);
        backend->event_destroy(computed);
        computed = last;
    }
    if (status == CLV_OK) status = backend->flush(open, error);
    if (status == CLV_OK)
        *done = computed;
    else
        backend->event_destroy(computed);
    return status;
}

/** Where a driver compiles kernels when they are launched first, a first step takes longer than building did:
 *  tell how far it is. */
static void tell_first(const clv__executor *executor, int slot, size_t done) {
    const clv_runtime_config *config = &executor->device->runtime->config;
    if (executor->steps[slot].ticket == 0 && executor->device->traits.compiles_at_launch &&
        config->build_progress)
        config->build_progress(config->build_progress_user, (int)done, (int)executor->n_commands);
}

/** A device of another rank: that rank computes and sends. Of what all ranks add up, this one adds zeros, so
 *  the sum is what the device has; it stays in staging memory. */
static clv_status enqueue_elsewhere(clv__executor *executor, int slot, clv__bevent **done) {
    const clv__command *end = executor->commands[slot] + executor->n_commands;
    for (const clv__command *command = executor->commands[slot]; command < end; command++) {
        if (command->work == CLV__COMPUTE || !transfer_of(executor, command)->exchanged) continue;
        if (command->work == CLV__SEND) {
            const clv__transfer *transfer = transfer_of(executor, command);
            char *staged = clv__staged_outputs(executor, slot) + transfer->staged_at;
            memset(staged, 0, transfer->bytes);
            clv__exchange_post(executor->run->exchange, executor, slot, command->transfer, staged, NULL);
            continue;
        }
        atomic_store(&executor->waits, true);
        clv_status status = clv__exchange_await(executor->run->exchange, executor, slot, command->transfer);
        atomic_store(&executor->waits, false);
        CLV_TRY(status);
    }
    return executor->device->backend->record(executor->device->open, CLV__QUEUE_COMPUTE, done,
                                             error_of(executor));
}

clv_status clv__executor_enqueue(clv__executor *executor, int slot, clv__bevent **done) {
    enum { FIRST = 8 }; // commands
    const bool rest = executor->steps[slot].resumed;
    if (!rest) begin_step(executor, slot);
    if (executor->device->elsewhere) {
        CLV_TRY(enqueue_elsewhere(executor, slot, done));
        return is_awaited(executor) ? publish_end(executor, slot) : CLV_OK;
    }
    CLV_TRY(upload(executor, slot));
    const bool once = executor->steps[slot].once;
    if (once && executor->n_once) CLV_TRY(wait_for_downloads(executor));
    const clv__command *begin = executor->commands[slot] + (rest   ? executor->pause
                                                            : once ? 0
                                                                   : executor->n_once);
    const clv__command *end =
        executor->commands[slot] +
        (rest || !clv__run_pauses(executor->run) ? executor->n_commands : executor->pause);
    size_t together; // shared sends that begin at this command; 0: it is another
    for (const clv__command *command = begin; command < end; command += together ? together : 1) {
        together = shared_together(executor, command, end);
        atomic_fetch_add_explicit(&executor->device->beats, 1, memory_order_relaxed);
        if (command->after_downloads) CLV_TRY(wait_for_downloads(executor));
        if (command->awaits) CLV_TRY(await_last_step(executor, slot, command->awaits));
        if (command->work == CLV__COMPUTE && command->node->phase == CLV__UPDATE)
            executor->steps[slot].updating = true;
        clv_status status = together                        ? share(executor, slot, command, together)
                            : command->work == CLV__SEND    ? send(executor, slot, command)
                            : command->work == CLV__RECEIVE ? receive(executor, slot, command)
                                                            : enqueue_launch(executor, slot, command);
        // A driver may keep commands until then, while the device waits.
        if (status == CLV_OK && command == begin + FIRST - 1)
            status = executor->device->backend->flush(executor->device->open, error_of(executor));
        if (status == CLV_OK) {
            tell_first(executor, slot,
                       (size_t)(command - executor->commands[slot]) + (together ? together : 1));
            continue;
        }
        if (command->work == CLV__COMPUTE) {
            clv__node_title title;
            clv__error_prefix(error_of(executor), "%s on %s: ", clv__title_of(command->node, &title),
                              executor->device->info.name);
        }
        return status;
    }
    CLV_TRY(end_step(executor, slot, done));
    return is_awaited(executor) ? publish_end(executor, slot) : CLV_OK;
}
