// SPDX-License-Identifier: Apache-2.0
// From a plan's launches to commands: parts of the session's memory for every tensor, kernel objects with their
// arguments set once. Launches that touch a fed input exist once for each slot.
#include <stdlib.h>

#include "device/program.h"
#include "exec/run.h"

static clv__error *error_of(const clv_run *run) {
    return clv__runtime_error_of(run->device->runtime);
}

static clv_status out_of_memory(const clv_run *run) {
    return clv__error_set(error_of(run), CLV_E_HOST_MEMORY, "no host memory for a run");
}

// ---- parts ------------------------------------------------------------------------------------------------------------

static clv_status part_of(clv_run *run, const clv__memory *memory, size_t offset, size_t bytes, clv__part *part) {
    if (bytes == 0) return CLV_OK;
    part->owned = true;
    return run->device->backend->buffer_part(memory->buffer, offset, bytes, error_of(run), &part->buffer);
}

static clv_status part_of_chunks(clv_run *run, const clv__chunks *chunks, const clv__plan_tensor *tensor, clv__part *part) {
    if (tensor->bytes == 0) return CLV_OK;
    // the plan keeps tensors inside the device's chunks; the session's have the same size
    size_t i = tensor->offset / chunks->layout.chunk;
    return part_of(run, &chunks->items[i], tensor->offset % chunks->layout.chunk, tensor->bytes, part);
}

static clv_status bind_tensor(clv_run *run, int id) {
    const clv_plan *plan = run->plan;
    const clv__plan_tensor *tensor = &plan->tensors[id];
    clv_session *session = run->session;
    clv__part *part = &run->parts[0][id];
    switch (tensor->segment) {
    case CLV__NOWHERE: return CLV_OK;
    case CLV__IN_SESSION: {
        int kept = clv_session_find(session, plan->graph->tensors[tensor->root]->name);
        part->buffer = session->kept[kept].memory.buffer;
        break;
    }
    case CLV__IN_INPUTS:
        for (int slot = 0; slot < CLV__SLOTS; slot++) {
            CLV_TRY(part_of(run, &session->io, (size_t)slot * plan->input_bytes + tensor->offset, tensor->bytes,
                            &run->parts[slot][id]));
        }
        return CLV_OK;
    case CLV__IN_OUTPUTS:
        CLV_TRY(part_of(run, &session->io, CLV__SLOTS * plan->input_bytes + tensor->offset, tensor->bytes, part));
        break;
    case CLV__IN_GRADIENTS: CLV_TRY(part_of_chunks(run, &session->gradients, tensor, part)); break;
    case CLV__IN_ACTIVATIONS: CLV_TRY(part_of_chunks(run, &session->activations, tensor, part)); break;
    }
    run->parts[1][id] = (clv__part){part->buffer, false};
    return CLV_OK;
}

static clv_status bind_workspace(clv_run *run, const clv__slot *slot, clv__bbuffer **out) {
    *out = NULL;
    if (slot->bytes == 0) return CLV_OK;
    if (!clv__grow(&run->workspaces, &run->workspaces_room, run->n_workspaces + 1, sizeof *run->workspaces))
        return out_of_memory(run);
    clv__part *part = &run->workspaces[run->n_workspaces];
    CLV_TRY(part_of(run, &run->session->workspace, slot->offset, slot->bytes, part));
    run->n_workspaces++;
    *out = part->buffer;
    return CLV_OK;
}

// ---- commands ---------------------------------------------------------------------------------------------------------

static const clv_tensor *tensor_of(const clv__node *node, const clv__slot *slot) {
    return slot->kind == CLV__SLOT_IN ? node->in[slot->index] : node->out[slot->index];
}

static clv_status buffer_of(clv_run *run, int step_slot, const clv__node *node, const clv__slot *slot, clv__bbuffer **out) {
    *out = NULL;
    if (slot->kind == CLV__SLOT_WORKSPACE) return bind_workspace(run, slot, out);
    const clv_tensor *tensor = tensor_of(node, slot);
    if (tensor) *out = run->parts[step_slot][tensor->id].buffer;
    return CLV_OK;
}

static clv_status bind_kernel(clv_run *run, int step_slot, clv__command *command) {
    const clv__launch *launch = command->launch;
    clv__barg args[CLV__MAX_ARGS];
    for (int i = 0; i < launch->n_slots; i++) {
        const clv__slot *slot = &launch->slots[i];
        args[i] = (clv__barg){.kind = CLV__BARG_BUFFER};
        switch (slot->kind) {
        case CLV__SLOT_I32: args[i] = (clv__barg){.kind = CLV__BARG_I32, .i32 = slot->i32}; break;
        case CLV__SLOT_F32: args[i] = (clv__barg){.kind = CLV__BARG_F32, .f32 = slot->f32}; break;
        case CLV__SLOT_LOCAL: args[i] = (clv__barg){.kind = CLV__BARG_LOCAL, .bytes = slot->bytes}; break;
        default: CLV_TRY(buffer_of(run, step_slot, command->node, slot, &args[i].buffer));
        }
    }
    clv__kernel_ref kernel;
    CLV_TRY(clv__programs_find(run->device, launch, &kernel));
    command->own_kernel = true;
    return run->device->backend->kernel_create(kernel.program, kernel.name, args, launch->n_slots, &launch->grid,
                                               error_of(run), &command->kernel);
}

static clv_status bind_buffers(clv_run *run, int step_slot, clv__command *command) {
    const clv__launch *launch = command->launch;
    command->buffers = clv__alloc((size_t)launch->n_slots, sizeof(clv__bbuffer *));
    if (!command->buffers) return out_of_memory(run);
    for (int i = 0; i < launch->n_slots; i++)
        CLV_TRY(buffer_of(run, step_slot, command->node, &launch->slots[i], &command->buffers[i]));
    return CLV_OK;
}

/** Does the launch touch memory that differs between the slots? */
static bool depends_on_slot(const clv_run *run, const clv__node *node, const clv__launch *launch) {
    for (int i = 0; i < launch->n_slots; i++) {
        const clv__slot *slot = &launch->slots[i];
        if (slot->kind != CLV__SLOT_IN && slot->kind != CLV__SLOT_OUT) continue;
        const clv_tensor *tensor = tensor_of(node, slot);
        if (tensor && run->plan->tensors[tensor->id].segment == CLV__IN_INPUTS) return true;
    }
    return false;
}

static clv_status bind_command(clv_run *run, size_t at, const clv__node *node, const clv__launch *launch) {
    for (int slot = 0; slot < CLV__SLOTS; slot++) {
        clv__command *command = &run->commands[slot][at];
        if (slot > 0 && launch->kind == CLV__LAUNCH_KERNEL && !depends_on_slot(run, node, launch)) {
            *command = run->commands[0][at];
            command->own_kernel = false;
            continue;
        }
        *command = (clv__command){.kind = launch->kind, .node = node, .launch = launch};
        CLV_TRY(launch->kind == CLV__LAUNCH_KERNEL ? bind_kernel(run, slot, command) : bind_buffers(run, slot, command));
    }
    return CLV_OK;
}

/** Nothing to compute: a kernel over no elements. */
static bool is_empty(const clv__launch *launch) {
    if (launch->kind != CLV__LAUNCH_KERNEL) return launch->kind != CLV__LAUNCH_REFERENCE && launch->kind != CLV__LAUNCH_GEMM && launch->bytes == 0;
    for (int i = 0; i < launch->grid.dims; i++) {
        if (launch->grid.global[i] == 0) return true;
    }
    return false;
}

clv_status clv__run_bind(clv_run *run, const clv__plan_node **failed) {
    const clv_plan *plan = run->plan;
    *failed = NULL;
    size_t n = 0;
    for (int i = 0; i < plan->n_nodes; i++) n += plan->nodes[i].launches.n;
    for (int slot = 0; slot < CLV__SLOTS; slot++) {
        run->parts[slot] = clv__alloc((size_t)plan->n_tensors, sizeof *run->parts[slot]);
        run->commands[slot] = clv__alloc(n, sizeof *run->commands[slot]);
        if (!run->parts[slot] || !run->commands[slot]) return out_of_memory(run);
    }
    for (int id = 0; id < plan->n_tensors; id++) CLV_TRY(bind_tensor(run, id));
    for (int i = 0; i < plan->n_nodes; i++) {
        const clv__plan_node *at = &plan->nodes[i];
        for (size_t j = 0; j < at->launches.n; j++) {
            if (is_empty(&at->launches.items[j])) continue;
            size_t command = run->n_commands++; // counted first: unbind frees what a failure leaves half made
            clv_status status = bind_command(run, command, at->node, &at->launches.items[j]);
            if (status != CLV_OK) {
                clv__error_prefix(error_of(run), "%s '%s', variant '%s' on %s: ", at->node->io.op->name, at->node->layer,
                                  at->variant ? at->variant->name : "reference", run->device->info.name);
                *failed = at;
                return status;
            }
        }
    }
    return CLV_OK;
}

void clv__run_unbind(clv_run *run) {
    const clv__backend *backend = run->device->backend;
    for (int slot = CLV__SLOTS; slot-- > 0;) {
        for (size_t i = 0; run->commands[slot] && i < run->n_commands; i++) {
            clv__command *command = &run->commands[slot][i];
            if (command->own_kernel) backend->kernel_destroy(command->kernel);
            free(command->buffers);
        }
        free(run->commands[slot]);
        run->commands[slot] = NULL;
        for (int id = 0; run->parts[slot] && id < run->plan->n_tensors; id++) {
            if (run->parts[slot][id].owned) backend->buffer_destroy(run->parts[slot][id].buffer);
        }
        free(run->parts[slot]);
        run->parts[slot] = NULL;
    }
    for (size_t i = 0; i < run->n_workspaces; i++) backend->buffer_destroy(run->workspaces[i].buffer);
    free(run->workspaces);
    run->workspaces = NULL;
    run->n_workspaces = run->workspaces_room = run->n_commands = 0;
}
