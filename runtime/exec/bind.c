// SPDX-License-Identifier: Apache-2.0
// From a plan's launches to commands: parts of the session's memory for every tensor, kernel objects with
// their arguments set once. Launches that touch a fed input exist once for each slot.
#include <stdlib.h>

#include "device/program.h"
#include "exec/run.h"

static clv_status out_of_memory(const clv_run *run) {
    return clv__error_set(clv__plan_error(run->plan), CLV_E_HOST_MEMORY, "no host memory for a run");
}

// ---- parts ------------------------------------------------------------------------------------------------

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
    const clv__memory *piece = &run->holdings[id]->pieces[clv__value_piece(run->plan, value->root)];
    if (value->bytes == 0) return CLV_OK;
    if (value->bytes < root->bytes) return part_of(piece, value->within, value->bytes, part);
    part->buffer = piece->buffer;
    return CLV_OK;
}

static clv_status bind_value(clv_run *run, size_t id) {
    const clv_plan *plan = run->plan;
    const clv__value *value = &plan->values[id];
    const clv__executor *executor = &run->executors[value->place];
    const clv__arenas *arenas = executor->arenas;
    clv__part *part = &run->parts[0][id];
    switch (value->segment) {
    case CLV__NOWHERE:
    case CLV__IN_SHARED: return CLV_OK;
    case CLV__IN_SESSION: CLV_TRY(part_of_kept(run, id, part)); break;
    case CLV__IN_INPUTS:
        for (int slot = 0; slot < CLV__SLOTS; slot++)
            CLV_TRY(part_of_chunks(&arenas->io, slot ? value->second : value->offset, value->bytes,
                                   &run->parts[slot][id]));
        return CLV_OK;
    case CLV__IN_OUTPUTS: CLV_TRY(part_of_chunks(&arenas->io, value->offset, value->bytes, part)); break;
    case CLV__IN_GRADIENTS:
        CLV_TRY(part_of_chunks(&arenas->gradients, value->offset, value->bytes, part));
        break;
    case CLV__IN_ACTIVATIONS:
        CLV_TRY(part_of_chunks(&arenas->activations, value->offset, value->bytes, part));
        break;
    case CLV__IN_ONCE: CLV_TRY(part_of_chunks(&arenas->once, value->offset, value->bytes, part)); break;
    }
    run->parts[1][id] = (clv__part){part->buffer, false};
    return CLV_OK;
}

/** A value that lies in memory of another device, which is bound by now. */
static clv_status bind_shared(clv_run *run, size_t id) {
    const clv__value *value = &run->plan->values[id];
    const clv_device *owner = run->executors[run->plan->values[value->owner].place].device,
                     *reader = run->executors[value->place].device;
    clv__part *part = &run->parts[0][id];
    part->owned = true;
    clv__bbuffer *theirs = run->parts[0][value->owner].buffer;
    char *pointer = (char *)owner->backend->buffer_pointer(theirs) + value->within;
    CLV_TRY(reader->backend->buffer_over(reader->open, owner->backend->buffer_block(theirs), pointer,
                                         value->bytes, clv__plan_error(run->plan), &part->buffer));
    run->parts[1][id] = (clv__part){part->buffer, false};
    return CLV_OK;
}

static clv_status bind_values(clv_run *run) {
    const clv_plan *plan = run->plan;
    for (size_t id = 0; id < plan->n_values; id++) CLV_TRY(bind_value(run, id));
    for (size_t id = 0; id < plan->n_values; id++) {
        if (plan->values[id].segment == CLV__IN_SHARED) CLV_TRY(bind_shared(run, id));
    }
    return CLV_OK;
}

static clv_status bind_workspace(clv__executor *executor, const clv__plan_node *at, const clv__slot *slot,
                                 clv__bbuffer **out) {
    *out = NULL;
    if (slot->bytes == 0) return CLV_OK;
    if (!clv__grow(&executor->workspaces, &executor->workspaces_room, executor->n_workspaces + 1,
                   sizeof *executor->workspaces))
        return out_of_memory(executor->run);
    clv__part *part = &executor->workspaces[executor->n_workspaces];
    clv__arenas *arenas = executor->arenas;
    if (at->workspace_in == CLV__NOWHERE)
        CLV_TRY(part_of(&arenas->workspace, slot->offset, slot->bytes, part));
    else
        CLV_TRY(
            part_of_chunks(at->workspace_in == CLV__IN_GRADIENTS ? &arenas->gradients : &arenas->activations,
                           at->workspace_at + slot->offset, slot->bytes, part));
    executor->n_workspaces++;
    *out = part->buffer;
    return CLV_OK;
}

// ---- commands ---------------------------------------------------------------------------------------------

/** One launch being bound for one slot. */
typedef struct binding {
    clv__executor *executor;
    const clv__plan_node *at;
    int slot;
} binding;

static int value_of(const binding *b, const clv__slot *slot) {
    return slot->kind == CLV__SLOT_IN ? b->at->in[slot->index] : b->at->out[slot->index];
}

static clv_status buffer_of(const binding *b, const clv__slot *slot, clv__bbuffer **out) {
    *out = NULL;
    if (slot->kind == CLV__SLOT_WORKSPACE) return bind_workspace(b->executor, b->at, slot, out);
    if (slot->kind == CLV__SLOT_GRADIENTS) {
        const clv__chunks *gradients = &b->executor->arenas->gradients;
        if (slot->index < gradients->n) *out = gradients->items[slot->index].buffer;
        return CLV_OK;
    }
    int value = value_of(b, slot);
    if (value >= 0) *out = b->executor->run->parts[b->slot][value].buffer;
    return CLV_OK;
}

static clv_status bind_kernel(const binding *b, clv__command *command) {
    const clv__launch *launch = command->launch;
    clv_device *device = b->executor->device;
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
    if (!command->buffers) return out_of_memory(b->executor->run);
    for (int i = 0; i < launch->n_slots; i++) CLV_TRY(buffer_of(b, &launch->slots[i], &command->buffers[i]));
    return CLV_OK;
}

/** Does the launch touch memory that differs between the slots? */
static bool depends_on_slot(const binding *b, const clv__launch *launch) {
    for (int i = 0; i < launch->n_slots; i++) {
        const clv__slot *slot = &launch->slots[i];
        if (slot->kind != CLV__SLOT_IN && slot->kind != CLV__SLOT_OUT) continue;
        int value = value_of(b, slot);
        if (value >= 0 && b->executor->run->plan->values[value].segment == CLV__IN_INPUTS) return true;
    }
    return false;
}

static clv_status bind_launch(clv__executor *executor, const clv__plan_node *at, const clv__launch *launch) {
    size_t number = executor->n_commands++; // counted first: unbind frees what a failure leaves half made
    for (int slot = 0; slot < CLV__SLOTS; slot++) {
        binding b = {executor, at, slot};
        clv__command *command = &executor->commands[slot][number];
        if (slot > 0 && launch->kind == CLV__LAUNCH_KERNEL && !depends_on_slot(&b, launch)) {
            *command = executor->commands[0][number];
            command->own_kernel = false;
            continue;
        }
        *command = (clv__command){.work = CLV__COMPUTE,
                                  .node = at->node,
                                  .at = (int)(at - executor->run->plan->nodes),
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
    clv__executor *executor = &run->executors[at->place];
    if (at->work != CLV__COMPUTE) {
        for (int slot = 0; slot < CLV__SLOTS; slot++) {
            executor->commands[slot][executor->n_commands] =
                (clv__command){.work = at->work,
                               .node = at->node,
                               .at = (int)(at - run->plan->nodes),
                               .transfer = at->transfer};
        }
        executor->n_commands++;
        return CLV_OK;
    }
    for (size_t j = 0; j < at->launches.n; j++) {
        if (is_empty(&at->launches.items[j])) continue;
        clv_status status = bind_launch(executor, at, &at->launches.items[j]);
        if (status == CLV_OK) continue;
        clv__node_title title;
        clv__error_prefix(clv__plan_error(run->plan),
                          "%s, variant '%s' on %s: ", clv__title_of(at->node, &title),
                          at->variant ? at->variant->name : "reference", executor->device->info.name);
        return status;
    }
    return CLV_OK;
}

/** What a node without commands awaits, the place's next command does; what one awaits that is done once, the
 *  next of each step too. */
static clv_status bind_node(clv_run *run, const clv__plan_node *at) {
    clv__executor *executor = &run->executors[at->place];
    const size_t first = executor->n_commands;
    CLV_TRY(bind_commands(run, at));
    executor->awaits |= at->awaits;
    if (executor->n_commands == first) return CLV_OK;
    for (int slot = 0; slot < CLV__SLOTS; slot++) executor->commands[slot][first].awaits = executor->awaits;
    if (at->once)
        executor->n_once = executor->n_commands;
    else
        executor->awaits = 0;
    return CLV_OK;
}

static bool reads_late(const clv_plan *plan, const clv__plan_node *at) {
    for (int i = 0; i < CLV__MAX_IN; i++)
        if (at->in[i] >= 0 && plan->values[at->in[i]].tensor->late) return true;
    return false;
}

/** Outputs that a node before the pause makes. */
static void note_early(clv__executor *executor, const clv__plan_node *at) {
    for (int i = 0; i < CLV__MAX_OUT; i++)
        for (int k = 0; k < executor->place->n_outputs; k++)
            executor->early[k] |= at->out[i] >= 0 && at->out[i] == executor->place->outputs[k];
}

static clv_status make_room(clv_run *run) {
    const clv_plan *plan = run->plan;
    for (int slot = 0; slot < CLV__SLOTS; slot++) {
        run->parts[slot] = clv__alloc(plan->n_values, sizeof *run->parts[slot]);
        run->in_flight[slot] = clv__alloc(plan->n_transfers, sizeof *run->in_flight[slot]);
        if (!run->parts[slot] || !run->in_flight[slot]) return out_of_memory(run);
    }
    for (int s = 0; s < run->n_executors; s++) {
        size_t n = 0;
        for (size_t i = 0; i < plan->n_nodes; i++) {
            if (plan->nodes[i].place == s)
                n += plan->nodes[i].work == CLV__COMPUTE ? plan->nodes[i].launches.n : 1;
        }
        for (int slot = 0; slot < CLV__SLOTS; slot++) {
            run->executors[s].commands[slot] = clv__alloc(n, sizeof *run->executors[s].commands[slot]);
            if (!run->executors[s].commands[slot]) return out_of_memory(run);
        }
    }
    return CLV_OK;
}

clv_status clv__run_bind(clv_run *run, const clv__plan_node **failed) {
    const clv_plan *plan = run->plan;
    *failed = NULL;
    CLV_TRY(make_room(run));
    CLV_TRY(bind_values(run));
    for (int s = 0; s < run->n_executors; s++)
        for (int i = 0; i < run->executors[s].place->n_outputs; i++) run->executors[s].early[i] = false;
    bool paused = false;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        clv__executor *executor = &run->executors[plan->nodes[i].place];
        paused |= reads_late(plan, &plan->nodes[i]);
        if (!paused) note_early(executor, &plan->nodes[i]);
        clv_status status = bind_node(run, &plan->nodes[i]);
        if (!paused) executor->pause = executor->n_commands;
        if (status == CLV_OK) continue;
        *failed = &plan->nodes[i];
        return status;
    }
    for (int s = 0; s < run->n_executors; s++) clv__executor_order(&run->executors[s]);
    return CLV_OK;
}

static void executor_unbind(clv__executor *executor) {
    const clv__backend *backend = executor->device->backend;
    for (int slot = CLV__SLOTS; slot-- > 0;) {
        for (size_t i = 0; executor->commands[slot] && i < executor->n_commands; i++) {
            clv__command *command = &executor->commands[slot][i];
            if (command->own_kernel) backend->kernel_destroy(command->kernel);
            free(command->buffers);
        }
        free(executor->commands[slot]);
        executor->commands[slot] = NULL;
    }
    for (size_t i = 0; i < executor->n_workspaces; i++)
        backend->buffer_destroy(executor->workspaces[i].buffer);
    free(executor->workspaces);
    executor->workspaces = NULL;
    executor->n_workspaces = executor->workspaces_room = executor->n_commands = executor->n_once =
        executor->pause = 0;
    executor->awaits = 0;
}

void clv__run_unbind(clv_run *run) {
    for (int s = 0; s < run->n_executors; s++) executor_unbind(&run->executors[s]);
    for (int slot = CLV__SLOTS; slot-- > 0;) {
        for (size_t id = 0; run->parts[slot] && id < run->plan->n_values; id++) {
            const clv__part *part = &run->parts[slot][id];
            if (part->owned)
                run->executors[run->plan->values[id].place].device->backend->buffer_destroy(part->buffer);
        }
        free(run->parts[slot]);
        run->parts[slot] = NULL;
        free(run->in_flight[slot]);
        run->in_flight[slot] = NULL;
    }
}
