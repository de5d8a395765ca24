// SPDX-License-Identifier: Apache-2.0
// From a plan's launches to commands: parts of the session's memory for every tensor, kernel objects with their
// arguments set once. Launches that touch a fed input exist once for each slot.
#include <stdlib.h>

#include "device/program.h"
#include "exec/run.h"

static clv_status out_of_memory(const clv_run *run) {
    return clv__error_set(clv__plan_error(run->plan), CLV_E_HOST_MEMORY, "no host memory for a run");
}

// ---- parts ------------------------------------------------------------------------------------------------------------

static clv_status part_of(const clv__memory *memory, size_t offset, size_t bytes, clv__part *part) {
    if (bytes == 0) return CLV_OK;
    part->owned = true;
    return memory->device->backend->buffer_part(
        memory->buffer, offset, bytes, clv__runtime_error_of(memory->device->runtime), &part->buffer);
}

static clv_status part_of_chunks(const clv__chunks *chunks, size_t offset, size_t bytes, clv__part *part) {
    if (bytes == 0) return CLV_OK;
    // the plan keeps tensors inside the device's chunks; the session's have the same size
    size_t i = offset / chunks->layout.chunk;
    return part_of(&chunks->items[i], offset % chunks->layout.chunk, bytes, part);
}

/** A persistent, or what is seen of it through a view. */
static clv_status part_of_kept(const clv_run *run, size_t id, clv__part *part) {
    const clv__value *value = &run->plan->values[id];
    const clv__value *root = &run->plan->values[value->root];
    const clv__memory *piece = &run->holdings[id]->pieces[root->piece];
    if (value->bytes < root->bytes) return part_of(piece, value->within, value->bytes, part);
    part->buffer = piece->buffer;
    return CLV_OK;
}

static clv_status bind_value(clv_run *run, size_t id) {
    const clv_plan *plan = run->plan;
    const clv__value *value = &plan->values[id];
    const clv__station *station = &run->stations[value->place];
    const clv__home *home = station->home;
    clv__part *part = &run->parts[0][id];
    switch (value->segment) {
    case CLV__NOWHERE:
    case CLV__IN_LENDER: return CLV_OK;
    case CLV__IN_SESSION: CLV_TRY(part_of_kept(run, id, part)); break;
    case CLV__IN_INPUTS:
        for (int slot = 0; slot < CLV__SLOTS; slot++)
            CLV_TRY(part_of_chunks(&home->io, slot ? value->second : value->offset, value->bytes,
                                   &run->parts[slot][id]));
        return CLV_OK;
    case CLV__IN_OUTPUTS: CLV_TRY(part_of_chunks(&home->io, value->offset, value->bytes, part)); break;
    case CLV__IN_GRADIENTS:
        CLV_TRY(part_of_chunks(&home->gradients, value->offset, value->bytes, part));
        break;
    case CLV__IN_ACTIVATIONS:
        CLV_TRY(part_of_chunks(&home->activations, value->offset, value->bytes, part));
        break;
    }
    run->parts[1][id] = (clv__part){part->buffer, false};
    return CLV_OK;
}

/** A value that lies in memory of another place, which is bound by now. */
static clv_status bind_lent(clv_run *run, size_t id) {
    const clv__value *value = &run->plan->values[id];
    const clv_device *lender = run->stations[run->plan->values[value->lender].place].device,
                     *borrower = run->stations[value->place].device;
    clv__part *part = &run->parts[0][id];
    part->owned = true;
    clv__bbuffer *lent = run->parts[0][value->lender].buffer;
    char *pointer = (char *)lender->backend->buffer_pointer(lent) + value->within;
    CLV_TRY(borrower->backend->buffer_over(borrower->open, lender->backend->buffer_block(lent), pointer,
                                           value->bytes, clv__plan_error(run->plan), &part->buffer));
    run->parts[1][id] = (clv__part){part->buffer, false};
    return CLV_OK;
}

static clv_status bind_values(clv_run *run) {
    const clv_plan *plan = run->plan;
    for (size_t id = 0; id < plan->n_values; id++) CLV_TRY(bind_value(run, id));
    for (size_t id = 0; id < plan->n_values; id++) {
        if (plan->values[id].segment == CLV__IN_LENDER) CLV_TRY(bind_lent(run, id));
    }
    return CLV_OK;
}

static clv_status bind_workspace(clv__station *station, const clv__plan_node *at, const clv__slot *slot,
                                 clv__bbuffer **out) {
    *out = NULL;
    if (slot->bytes == 0) return CLV_OK;
    if (!clv__grow(&station->workspaces, &station->workspaces_room, station->n_workspaces + 1,
                   sizeof *station->workspaces))
        return out_of_memory(station->run);
    clv__part *part = &station->workspaces[station->n_workspaces];
    clv__home *home = station->home;
    if (at->workspace_in == CLV__NOWHERE)
        CLV_TRY(part_of(&home->workspace, slot->offset, slot->bytes, part));
    else
        CLV_TRY(part_of_chunks(at->workspace_in == CLV__IN_GRADIENTS ? &home->gradients : &home->activations,
                               at->workspace_at + slot->offset, slot->bytes, part));
    station->n_workspaces++;
    *out = part->buffer;
    return CLV_OK;
}

// ---- commands ---------------------------------------------------------------------------------------------------------

/** One launch being bound for one slot. */
typedef struct binding {
    clv__station *station;
    const clv__plan_node *at;
    int slot;
} binding;

static int value_of(const binding *b, const clv__slot *slot) {
    return slot->kind == CLV__SLOT_IN ? b->at->in[slot->index] : b->at->out[slot->index];
}

static clv_status buffer_of(const binding *b, const clv__slot *slot, clv__bbuffer **out) {
    *out = NULL;
    if (slot->kind == CLV__SLOT_WORKSPACE) return bind_workspace(b->station, b->at, slot, out);
    int value = value_of(b, slot);
    if (value >= 0) *out = b->station->run->parts[b->slot][value].buffer;
    return CLV_OK;
}

static clv_status bind_kernel(const binding *b, clv__command *command) {
    const clv__launch *launch = command->launch;
    clv_device *device = b->station->device;
    clv__barg args[CLV__MAX_ARGS];
    for (int i = 0; i < launch->n_slots; i++) {
        const clv__slot *slot = &launch->slots[i];
        args[i] = (clv__barg){.kind = CLV__BARG_BUFFER};
        switch (slot->kind) {
        case CLV__SLOT_I32: args[i] = (clv__barg){.kind = CLV__BARG_I32, .i32 = slot->i32}; break;
        case CLV__SLOT_F32: args[i] = (clv__barg){.kind = CLV__BARG_F32, .f32 = slot->f32}; break;
        case CLV__SLOT_LOCAL: args[i] = (clv__barg){.kind = CLV__BARG_LOCAL, .bytes = slot->bytes}; break;
        default: CLV_TRY(buffer_of(b, slot, &args[i].buffer));
        }
    }
    clv__kernel_ref kernel;
    CLV_TRY(clv__programs_find(device, launch, &kernel));
    command->own_kernel = true;
    return device->backend->kernel_create(kernel.program, kernel.name, args, launch->n_slots, &launch->grid,
                                          clv__runtime_error_of(device->runtime), &command->kernel);
}

static clv_status bind_buffers(const binding *b, clv__command *command) {
    const clv__launch *launch = command->launch;
    command->buffers = clv__alloc((size_t)launch->n_slots, sizeof(clv__bbuffer *));
    if (!command->buffers) return out_of_memory(b->station->run);
    for (int i = 0; i < launch->n_slots; i++) CLV_TRY(buffer_of(b, &launch->slots[i], &command->buffers[i]));
    return CLV_OK;
}

/** Does the launch touch memory that differs between the slots? */
static bool depends_on_slot(const binding *b, const clv__launch *launch) {
    for (int i = 0; i < launch->n_slots; i++) {
        const clv__slot *slot = &launch->slots[i];
        if (slot->kind != CLV__SLOT_IN && slot->kind != CLV__SLOT_OUT) continue;
        int value = value_of(b, slot);
        if (value >= 0 && b->station->run->plan->values[value].segment == CLV__IN_INPUTS) return true;
    }
    return false;
}

static clv_status bind_launch(clv__station *station, const clv__plan_node *at, const clv__launch *launch) {
    size_t number = station->n_commands++; // counted first: unbind frees what a failure leaves half made
    for (int slot = 0; slot < CLV__SLOTS; slot++) {
        binding b = {station, at, slot};
        clv__command *command = &station->commands[slot][number];
        if (slot > 0 && launch->kind == CLV__LAUNCH_KERNEL && !depends_on_slot(&b, launch)) {
            *command = station->commands[0][number];
            command->own_kernel = false;
            continue;
        }
        *command = (clv__command){.work = CLV__COMPUTE,
                                  .node = at->node,
                                  .at = (int)(at - station->run->plan->nodes),
                                  .launch = launch};
        CLV_TRY(launch->kind == CLV__LAUNCH_KERNEL ? bind_kernel(&b, command) : bind_buffers(&b, command));
    }
    return CLV_OK;
}

/** Nothing to compute: a kernel over no elements. */
static bool is_empty(const clv__launch *launch) {
    if (launch->kind == CLV__LAUNCH_COPY || launch->kind == CLV__LAUNCH_FILL) return launch->bytes == 0;
    if (launch->kind != CLV__LAUNCH_KERNEL) return false;
    for (int i = 0; i < launch->grid.dims; i++) {
        if (launch->grid.global[i] == 0) return true;
    }
    return false;
}

static clv_status bind_commands(clv_run *run, const clv__plan_node *at) {
    clv__station *station = &run->stations[at->place];
    if (at->work != CLV__COMPUTE) {
        for (int slot = 0; slot < CLV__SLOTS; slot++) {
            station->commands[slot][station->n_commands] = (clv__command){.work = at->work,
                                                                          .node = at->node,
                                                                          .at = (int)(at - run->plan->nodes),
                                                                          .transfer = at->transfer};
        }
        station->n_commands++;
        return CLV_OK;
    }
    for (size_t j = 0; j < at->launches.n; j++) {
        if (is_empty(&at->launches.items[j])) continue;
        clv_status status = bind_launch(station, at, &at->launches.items[j]);
        if (status == CLV_OK) continue;
        clv__node_title title;
        clv__error_prefix(clv__plan_error(run->plan),
                          "%s, variant '%s' on %s: ", clv__title_of(at->node, &title),
                          at->variant ? at->variant->name : "reference", station->device->info.name);
        return status;
    }
    return CLV_OK;
}

/** What a node without commands awaits, the place's next command does. */
static clv_status bind_node(clv_run *run, const clv__plan_node *at) {
    clv__station *station = &run->stations[at->place];
    const size_t first = station->n_commands;
    CLV_TRY(bind_commands(run, at));
    station->awaits |= at->awaits;
    if (station->n_commands == first) return CLV_OK;
    for (int slot = 0; slot < CLV__SLOTS; slot++) station->commands[slot][first].awaits = station->awaits;
    station->awaits = 0;
    return CLV_OK;
}

static clv_status make_room(clv_run *run) {
    const clv_plan *plan = run->plan;
    for (int slot = 0; slot < CLV__SLOTS; slot++) {
        run->parts[slot] = clv__alloc(plan->n_values, sizeof *run->parts[slot]);
        run->passages[slot] = clv__alloc(plan->n_transfers, sizeof *run->passages[slot]);
        if (!run->parts[slot] || !run->passages[slot]) return out_of_memory(run);
    }
    for (int s = 0; s < run->n_stations; s++) {
        size_t n = 0;
        for (size_t i = 0; i < plan->n_nodes; i++) {
            if (plan->nodes[i].place == s)
                n += plan->nodes[i].work == CLV__COMPUTE ? plan->nodes[i].launches.n : 1;
        }
        for (int slot = 0; slot < CLV__SLOTS; slot++) {
            run->stations[s].commands[slot] = clv__alloc(n, sizeof *run->stations[s].commands[slot]);
            if (!run->stations[s].commands[slot]) return out_of_memory(run);
        }
    }
    return CLV_OK;
}

clv_status clv__run_bind(clv_run *run, const clv__plan_node **failed) {
    const clv_plan *plan = run->plan;
    *failed = NULL;
    CLV_TRY(make_room(run));
    CLV_TRY(bind_values(run));
    for (size_t i = 0; i < plan->n_nodes; i++) {
        clv_status status = bind_node(run, &plan->nodes[i]);
        if (status == CLV_OK) continue;
        *failed = &plan->nodes[i];
        return status;
    }
    return CLV_OK;
}

static void station_unbind(clv__station *station) {
    const clv__backend *backend = station->device->backend;
    for (int slot = CLV__SLOTS; slot-- > 0;) {
        for (size_t i = 0; station->commands[slot] && i < station->n_commands; i++) {
            clv__command *command = &station->commands[slot][i];
            if (command->own_kernel) backend->kernel_destroy(command->kernel);
            free(command->buffers);
        }
        free(station->commands[slot]);
        station->commands[slot] = NULL;
    }
    for (size_t i = 0; i < station->n_workspaces; i++) backend->buffer_destroy(station->workspaces[i].buffer);
    free(station->workspaces);
    station->workspaces = NULL;
    station->n_workspaces = station->workspaces_room = station->n_commands = 0;
    station->awaits = 0;
}

void clv__run_unbind(clv_run *run) {
    for (int s = 0; s < run->n_stations; s++) station_unbind(&run->stations[s]);
    for (int slot = CLV__SLOTS; slot-- > 0;) {
        for (size_t id = 0; run->parts[slot] && id < run->plan->n_values; id++) {
            const clv__part *part = &run->parts[slot][id];
            if (part->owned)
                run->stations[run->plan->values[id].place].device->backend->buffer_destroy(part->buffer);
        }
        free(run->parts[slot]);
        run->parts[slot] = NULL;
        free(run->passages[slot]);
        run->passages[slot] = NULL;
    }
}
