// SPDX-License-Identifier: Apache-2.0
// Inside of a run: commands with their arguments fixed, and two slots so that one step is fed while another
// computes.
//
// The io buffer:   | inputs, slot 0 | inputs, slot 1 | outputs |        step t uses slot t % 2
// Staging (host):  | inputs, slot 0 | inputs, slot 1 | outputs and sent values of slot 0 | of slot 1 |
// Each device of the plan is an executor with its own commands; executors meet at transfers, and where one
// waits for the end of the last step on another.
#ifndef CLV_EXEC_RUN_H
#define CLV_EXEC_RUN_H

#include "exec/activity.h"
#include "exec/profile.h"
#include "exec/memory.h"
#include "exec/worker.h"

enum { CLV__SLOTS = 2 };

/** One launch, copy, fill or carry with its arguments fixed; enqueued as it stands. */
typedef struct clv__command {
    clv__work work;        // COMPUTE: `launch`; SEND, RECEIVE: `transfer`
    const clv__node *node; // NULL: a fed input that is carried
    int at;                // position of its node in the plan
    const clv__launch *launch;
    clv__bkernel *kernel;   // of a KERNEL launch
    bool own_kernel;        // made for this slot (not shared with slot 0's command)
    clv__bbuffer **buffers; // of other launches: of every argument
    int transfer;
    uint64_t awaits;      // places that must have finished the last step before
    bool after_downloads; // it uses memory that the queue of downloads may still read
} clv__command;

typedef enum clv__slot_state { CLV__SLOT_FREE, CLV__SLOT_POSTED, CLV__SLOT_ENQUEUED } clv__slot_state;

/** A step under way on one device. */
typedef struct clv__executor_step {
    clv__job job; // must stay first
    struct clv__executor *executor;
    int slot;
    clv__slot_state state;
    clv__bevent *done;
    int64_t ticket;
    bool resumed;  // it is the rest of a step
    bool once;     // what is done once is done in it
    bool updating; // an update was enqueued, or tried to
    bool complete; // all of it was enqueued, and the device says that it is done
} clv__executor_step;

/** A part of device memory that commands refer to. */
typedef struct clv__part {
    clv__bbuffer *buffer; // NULL for an empty tensor
    bool owned;           // made by this run; else the session's own allocation
} clv__part;

/** Where a device's queue is when it has done a step; for places that await it. */
typedef struct clv__finish {
    int64_t ticket;     // of the newest step in the slot that told it; -1: none
    clv__bevent *event; // NULL: the step is over
    int users;          // who wait for the event now
} clv__finish;

/** A run's share of one device. */
typedef struct clv__executor {
    clv_run *run;
    int index; // of the plan's place
    const clv__place *place;
    clv__arenas *arenas;
    clv_device *device;
    clv__part *workspaces; // parts of the workspace that launches use
    size_t n_workspaces, workspaces_room;
    clv__command *commands[CLV__SLOTS];
    size_t n_commands;
    size_t n_once;   // the first of them are done in the steps that say so
    size_t pause;    // before this command a step stops until late inputs are fed; n_commands: it does not
    uint64_t awaits; // while commands are bound: of nodes that have none of their own
    bool downloads;  // each step ends on the queue of downloads
    bool unawaited_reads; // something was enqueued there since the compute queue was made to wait for it
    bool *fed;            // by index in place->inputs: fed since the last step
    bool *ever_fed;
    size_t *staged_at; // by index in place->outputs: offset in a slot's staged outputs
    bool *early;       // the same: made before the pause
    const void **seen; // the same: where the program looks at it; NULL: it is read to staging
    clv__executor_step steps[CLV__SLOTS];
    clv__activity activity[CLV__SLOTS];
    clv__recording recording[CLV__SLOTS];
    clv__finish finished[CLV__SLOTS]; // under the run's lock
    atomic_bool waits;                // for another device
    unsigned long seen_beats;         // of its device, when it was looked at last
    int64_t waited_in;                // a step, and the transfer whose event was waited for last in it
    int waited_for;
} clv__executor;

/** A value on its way in one slot. Of shared values one after another only the first has an event. */
typedef struct clv__in_flight {
    bool sent;
    int event_of;       // the transfer whose event tells when it is there, its own mostly
    clv__bevent *event; // NULL: it is another's, or nothing has to be waited for
    int left;           // how many have not received yet what this event is for
} clv__in_flight;

/** The earliest step that a device could not do. */
typedef struct clv__failure {
    clv_status status; // CLV_OK: none
    int64_t ticket;
    clv_device *device; // whose driver failed
    char sentence[CLV__ERROR_BYTES];
    // known when everything that was under way has ended:
    bool settled, partial; // some updates of a step are made and others not
    int updated;           // steps that are done all the same, from the failed one on
} clv__failure;

struct clv_run {
    clv_session *session;
    clv_plan *plan;
    clv__part *parts[CLV__SLOTS]; // by value
    const clv__holding *
        *holdings;            // by value, of those that the session keeps; NULL but while commands are bound
    clv__executor *executors; // by place
    int n_executors;
    clv__in_flight *in_flight[CLV__SLOTS]; // by transfer
    int64_t next_ticket;                   // of the step that is fed now
    int64_t paused;                        // the step that is to be resumed; -1: none
    bool once;      // what is done once was done, and nobody has written there or changed what it reads
    bool each_step; // it is done in each step: some parameters lie in memory of the program's
    pthread_mutex_t lock;
    pthread_cond_t changed; // what devices wait for: a value on its way, a step finished elsewhere, a failure
    pthread_cond_t enqueued;        // what the caller waits for: a executor's step is no longer POSTED
    clv__failure failure;           // sticky
    bool counted;                   // in the session's n_runs
    bool stuck;                     // a worker that does not come back has a step at hand: all of it stays
    struct clv__exchange *exchange; // with other ranks (exchange.h); NULL: there are none
    struct clv__between *between;   // values to and from devices of theirs (elsewhere.h); NULL: none
    clv__profiled *profiled;        // NULL: nobody wants to know; kept by the session's profile
};

/** Do its steps stop for late inputs? Such a plan has one place. */
static inline bool clv__run_pauses(const clv_run *run) {
    return run->n_executors == 1 && run->executors[0].pause < run->executors[0].n_commands;
}

/** Keep that a device failed in a step, with the newest sentence; of several failures the one of the earliest
 *  step stays. Receivers that wait for a sender are woken by it. */
void clv__run_fail(clv_run *run, int64_t ticket, clv_device *device, clv_status status);
/** May this step go on, or be begun? */
bool clv__run_goes_on(clv_run *run, int64_t ticket);
/** CLV_OK if no step up to this one failed; else the failure, and its sentence is the newest again. */
clv_status clv__run_status(clv_run *run, int64_t ticket);
/** Wait for the slot's step on every device; CLV_OK unless a step up to the ticket failed. */
clv_status clv__run_wait_for_slot(clv_run *run, int slot, int64_t ticket);
/** Wait for every step; reports nothing. */
void clv__run_wait(clv_run *run);
/** Wait until nothing of the run is under way on any device, also after a failure. */
void clv__run_settle(clv_run *run);

/** Make every part and command of the run, in the memory of `arenas` and `holdings`. On failure *at is the
 *  plan node whose command could not be made, NULL if it was none's fault. */
clv_status clv__run_bind(clv_run *run, const clv__plan_node **at);
void clv__run_unbind(clv_run *run);
/** Does a command before this one touch the value's memory? */
bool clv__executor_touches(const clv__executor *executor, const clv__value *value, size_t end);
/** Mark which commands wait for the queue of downloads: order.c. */
void clv__executor_order(clv__executor *executor);

/** Where an input of the next step is staged, for who writes it there before feeding that address; NULL: it
 *  lies in several places, or in none. May wait as clv_run_feed does. Until the step is posted no other run
 *  of the session may be used. */
clv_status clv__run_lend(clv_run *run, const clv_tensor *input, void **out);

/** On the device's worker: upload, every command, read back, and an event at the end. */
clv_status clv__executor_enqueue(clv__executor *executor, int slot, clv__bevent **done);

/** Staging memory of a slot: inputs, and outputs with what is sent behind them. */
char *clv__staged_inputs(const clv__executor *executor, int slot);
char *clv__staged_outputs(const clv__executor *executor, int slot);

#endif
