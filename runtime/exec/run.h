// SPDX-License-Identifier: Apache-2.0
// Inside of a run: commands with their arguments fixed, and two slots so that one step is fed while another computes.
//
// The io buffer:   | inputs, slot 0 | inputs, slot 1 | outputs |        step t uses slot t % 2
// Staging (host):  | inputs, slot 0 | inputs, slot 1 | outputs of slot 0 | outputs of slot 1 |
#ifndef CLV_EXEC_RUN_H
#define CLV_EXEC_RUN_H

#include "exec/session.h"
#include "exec/worker.h"

enum { CLV__SLOTS = 2 };

/** One launch, copy or fill with its arguments fixed; enqueued as it stands. */
typedef struct clv__command {
    clv__launch_kind kind;
    const clv__node *node;
    const clv__launch *launch;
    clv__bkernel *kernel;                // KERNEL
    clv__bbuffer **buffers;              // REFERENCE: of every slot; COPY, FILL, GEMM: the same, by slot
    bool own_kernel;                     // made for this slot (not shared with slot 0's command)
} clv__command;

typedef enum clv__slot_state { CLV__SLOT_FREE, CLV__SLOT_POSTED, CLV__SLOT_ENQUEUED } clv__slot_state;

/** A step under way. */
typedef struct clv__step {
    clv__job job; // must stay first
    clv_run *run;
    int index; // of the slot
    clv__slot_state state;
    clv_status status;
    clv__bevent *done;
} clv__step;

/** A part of device memory that commands refer to. */
typedef struct clv__part {
    clv__bbuffer *buffer; // NULL for an empty tensor
    bool owned;           // made by this run; else the session's own allocation
} clv__part;

struct clv_run {
    clv_session *session;
    clv_plan *plan;
    clv_device *device;
    clv__part *parts[CLV__SLOTS];       // by tensor id
    clv__part *workspaces;              // parts of the workspace that launches use
    size_t n_workspaces, workspaces_room;
    clv__command *commands[CLV__SLOTS];
    size_t n_commands;
    bool *fed;                          // by index in plan->inputs: fed since the last step
    bool *ever_fed;
    size_t *staged_at;                  // by index in plan->outputs: offset in a slot's staged outputs
    clv__step steps[CLV__SLOTS];
    int64_t next_ticket;                // of the step that is fed now
    pthread_mutex_t lock;
    pthread_cond_t changed;
    clv_status status;                  // sticky: the first failure on the device
    bool counted;                       // in the session's n_runs
};

/** Make every part and command of the run; the session has reserved the memory. On failure *at is the plan node whose
 *  command could not be made, NULL if it was none's fault. */
clv_status clv__run_bind(clv_run *run, const clv__plan_node **at);
void clv__run_unbind(clv_run *run);

#endif
