// SPDX-License-Identifier: Apache-2.0
// What can be asked of a plan. (How it is made: passes.c.)
#include "plan/plan.h"

clv_plan_info clv_plan_info_get(const clv_plan *plan) {
    clv_plan_info info = {.n_devices = plan->n_places,
                          .n_nodes = (int)plan->n_nodes,
                          .n_transfers = (int)plan->n_transfers,
                          .recomputed = plan->recomputed};
    for (int i = 0; i < plan->n_places; i++) info.n_kept += plan->places[i].n_persistents;
    return info;
}

clv_device *clv_plan_device_get(const clv_plan *plan, int index) {
    return index >= 0 && index < plan->n_places ? plan->places[index].device : NULL;
}

// ---- memory -----------------------------------------------------------------------------------------------------------

size_t clv__layout_chunk(const clv__layout *layout, int i) {
    size_t start = (size_t)i * layout->chunk;
    if (layout->chunk == 0 || start >= layout->bytes) return 0;
    size_t rest = layout->bytes - start;
    return rest < layout->chunk ? rest : layout->chunk;
}

bool clv__place_keeps(const clv_plan *plan, const clv__place *place, const char *name) {
    const clv_tensor *tensor = clv_graph_find(plan->graph, name);
    int low = 0,
        high = place->n_persistents; // in the order of the graph's tensors: begin_with_persistents (place.c)
    while (tensor && low < high) {
        int middle = low + (high - low) / 2, id = plan->values[place->persistents[middle]].tensor->id;
        if (id == tensor->id) return true;
        if (id < tensor->id)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/** Does an earlier plan keep a tensor of that name on the device? */
static bool counted(clv_plan *const *plans, int n, const clv_device *device, const char *name) {
    for (int p = 0; p < n; p++) {
        const clv__place *place = clv__plan_place_of(plans[p], device);
        if (place && clv__place_keeps(plans[p], place, name)) return true;
    }
    return false;
}

static void at_least(uint64_t *most, uint64_t bytes) {
    if (bytes > *most) *most = bytes;
}

clv_plan_memory clv_plans_memory(clv_plan *const *plans, int n, clv_device *device) {
    if (!device && n > 0) device = plans[0]->places[0].device;
    clv_plan_memory memory = {.device = device};
    uint64_t kept[CLV_CATEGORIES] = {
        0}; // beside arenas: a step's own activations, and those kept between steps
    uint64_t once = 0;
    for (int p = 0; p < n; p++) {
        const clv__place *place = clv__plan_place_of(plans[p], device);
        if (!place) continue;
        for (int i = 0; i < place->n_persistents; i++) {
            const clv__value *value = &plans[p]->values[place->persistents[i]];
            if (!counted(plans, p, device, value->tensor->name))
                kept[value->tensor->category] += value->bytes;
        }
        at_least(&memory.category[CLV_GRADIENTS], place->gradients.bytes);
        at_least(&memory.category[CLV_ACTIVATIONS], place->activations.bytes);
        at_least(&memory.category[CLV_WORKSPACE], place->workspace_bytes);
        at_least(&once, place->once.bytes);
        at_least(&memory.category[CLV_IO], clv__io_bytes(place));
        at_least(&memory.category[CLV_STAGING], clv__staging_bytes(place));
    }
    kept[CLV_WORKSPACE] = once;
    for (int c = 0; c < CLV_CATEGORIES; c++) {
        memory.category[c] += kept[c];
        memory.predicted_peak_bytes += memory.category[c];
    }
    return memory;
}

/** Is there room for what no smaller batch makes smaller? */
static bool holds_lasting(clv_plan *const *plans, int n, clv_device *device) {
    const clv_plan_memory memory = clv_plans_memory(plans, n, device);
    const uint64_t lasting = memory.category[CLV_PARAMETERS] + memory.category[CLV_GRADIENTS] +
                             memory.category[CLV_OPTIMIZER],
                   budget = clv_device_memory(device).budget, all = device->info.memory_bytes;
    return (!budget || lasting <= budget) && (!all || lasting <= all);
}

clv_status clv__plans_check(clv_plan *const *plans, int n, clv_device *device, size_t bytes) {
    clv__piece largest = {.value = -1};
    const clv_plan *of = NULL;
    for (int p = 0; p < n; p++) {
        const clv__place *place = clv__plan_place_of(plans[p], device);
        clv__piece piece = place ? clv__place_largest(plans[p], place) : largest;
        if (piece.bytes > largest.bytes) largest = piece, of = plans[p];
    }
    clv_status status = clv__memory_check(device, bytes, largest.bytes, "the plan", "", true);
    if (status != CLV_E_BUDGET && status != CLV_E_DEVICE_MEMORY) return status;
    clv__text about = {0};
    bool smaller_batch = holds_lasting(plans, n, device);
    if (device->info.max_alloc_bytes && largest.bytes > device->info.max_alloc_bytes)
        smaller_batch = clv__piece_text(of, &largest, &about);
    else
        clv__plans_holders(plans, n, device, &about);
    status =
        clv__memory_check(device, bytes, largest.bytes, "the plan", clv__text_get(&about), smaller_batch);
    clv__text_reset(&about);
    return status;
}

clv_status clv_plans_fit(clv_plan *const *plans, int n) {
    if (n < 1 || !plans) return CLV_E_VALUE;
    for (int p = 0; p < n; p++) CLV_TRY(CLV__GIVEN(NULL, plans[p]));
    CLV_TRY(CLV__USABLE(clv__plan_error(plans[0]), plans));
    for (int p = 0; p < n; p++) {
        for (int i = 0; i < plans[p]->n_places; i++) {
            clv_device *device = plans[p]->places[i].device;
            uint64_t bytes = clv_plans_memory(plans, n, device).predicted_peak_bytes;
            CLV_TRY(clv__plans_check(plans, n, device, (size_t)bytes));
        }
    }
    return CLV_OK;
}

// ---- what it does ---------------------------------------------------------------------------------------------------

/** Is it of the launches of another node, which reads what it writes? */
static bool is_of_launches(const clv_plan *plan, const clv__plan_node *at) {
    return at->once && at->node->io.n_out && plan->values[at->out[0]].tensor != at->node->out[0];
}

/** Does an earlier node of the plan read this tensor? */
static bool read_before(const clv_plan *plan, int index, const clv_tensor *tensor) {
    for (int at = 0; at < index; at++) {
        const clv__plan_node *node = &plan->nodes[at];
        if (is_of_launches(plan, node)) continue;
        for (int i = 0; node->work == CLV__COMPUTE && i < node->node->io.n_in; i++) {
            if (node->node->in[i] == tensor) return true;
        }
    }
    return false;
}

/** Bytes that a node writes to memory of its own, by what they count as. */
static void count_made(const clv_plan *plan, const clv__plan_node *at, uint64_t made[CLV_CATEGORIES]) {
    made[CLV_WORKSPACE] += at->launches.workspace_bytes;
    for (int i = 0; i < CLV__MAX_OUT; i++) {
        if (at->out[i] < 0 || plan->values[at->out[i]].root != at->out[i]) continue;
        const clv__value *value = &plan->values[at->out[i]];
        if (value->segment == CLV__IN_GRADIENTS) made[CLV_GRADIENTS] += value->bytes;
        if (value->segment == CLV__IN_ACTIVATIONS) made[CLV_ACTIVATIONS] += value->bytes;
        if (value->segment == CLV__IN_OUTPUTS) made[CLV_IO] += value->bytes;
        if (value->segment == CLV__IN_ONCE) made[CLV_WORKSPACE] += value->bytes;
    }
}

clv_plan_node clv_plan_node_get(const clv_plan *plan, int index) {
    static const char *const phases[] = {"forward", "backward", "update"};
    static const char *const works[] = {"compute", "send", "receive"};
    static const char *const reasons[] = {
        [CLV__NO_CHOICE] = "", [CLV__PINNED] = "pinned", [CLV__TUNED] = "tuned", [CLV__RANKED] = "ranked"};
    if (index < 0 || index >= clv_plan_info_get(plan).n_nodes) return (clv_plan_node){0};
    const clv__plan_node *at = &plan->nodes[index];
    const clv__value *carried = at->work == CLV__SEND      ? &plan->values[at->in[0]]
                                : at->work == CLV__RECEIVE ? &plan->values[at->out[0]]
                                                           : NULL;
    const clv__node *node = at->node;
    clv_plan_node out = {
        .layer = carried ? carried->tensor->layer : node->layer,
        .op = carried ? works[at->work] : node->io.op->name,
        .variant = carried             ? "transfer"
                   : node->io.op->view ? "view"
                   : at->variant       ? at->variant->name
                                       : "reference",
        .chosen = reasons[at->chosen],
        .phase = at->once    ? "once"
                 : at->again ? "recompute"
                             : phases[node ? node->phase : CLV__FORWARD],
        .device = plan->places[at->place].device,
        .bytes = at->launches.workspace_bytes,
        .launches = (int)at->launches.n,
        .fused = at->fused ? at->fused->n : 0,
        .also = at->fused ? at->fused->also : "",
        .micro_batch = node ? node->micro_batch : -1,
        .part = at->slice,
        .parts = at->slices,
    };
    count_made(plan, at, out.made);
    if (carried) {
        out.output_shape = carried->desc.shape;
        if (at->work == CLV__RECEIVE && !plan->transfers[at->transfer].shared) out.bytes = carried->bytes;
        out.traffic = plan->transfers[at->transfer].shared ? 0 : (double)carried->bytes;
        return out;
    }
    if (is_of_launches(plan, at)) {
        out.chosen = ""; // as that node's is
        out.output_shape = plan->values[at->out[0]].desc.shape;
        out.bytes += out.made[CLV_WORKSPACE] - at->launches.workspace_bytes;
        return out;
    }
    const clv__node *whole = at->whole && at->whole->io.n_out ? at->whole : node;
    if (whole->io.n_out) out.output_shape = whole->io.out[0].shape;
    for (int i = 0; i < node->io.n_in; i++) {
        const clv_tensor *in = node->in[i];
        if (in && in->trainable && !read_before(plan, index, in))
            out.parameters += clv__numel(&plan->values[at->in[i]].desc);
    }
    if (!node->io.op->view) {
        clv__cost cost = {0};
        for (int i = 0; i < node->io.n_out; i++)
            out.bytes += at->out[i] < 0 ? 0 : plan->values[at->out[i]].bytes;
        clv__op_cost(&node->io, &cost);
        out.flops = at->once ? 0 : cost.flops; // of a step
        out.traffic = at->once ? 0 : cost.bytes;
    }
    return out;
}

double clv__plan_node_least(const clv_plan *plan, int index) {
    const clv_plan_node node = clv_plan_node_get(plan, index);
    const clv_device_info *device = clv_device_info_get(node.device);
    if (!(device->peak_bytes_per_second > 0)) return 0;
    const double move = node.traffic / device->peak_bytes_per_second;
    const clv__variant *variant = plan->nodes[index].variant;
    const double flops = node.flops * (variant && variant->work > 0 ? variant->work : 1);
    const double work = device->peak_flops > 0 ? flops / device->peak_flops : 0;
    return work > move ? work : move;
}

double clv__plan_least_seconds(const clv_plan *plan, const clv_device *device) {
    double seconds = 0;
    for (int i = 0; device && i < (int)plan->n_nodes; i++)
        if (plan->places[plan->nodes[i].place].device == device) seconds += clv__plan_node_least(plan, i);
    return seconds;
}

clv_plan_kept clv_plan_kept_get(const clv_plan *plan, int index) {
    for (int i = 0; i < plan->n_places && index >= 0; index -= plan->places[i++].n_persistents) {
        const clv__place *place = &plan->places[i];
        if (index >= place->n_persistents) continue;
        const clv__value *value = &plan->values[place->persistents[index]];
        const clv_tensor *tensor = value->tensor;
        const int *pieces;
        return (clv_plan_kept){.name = tensor->name,
                               .category = tensor->category,
                               .shape = value->desc.shape,
                               .bytes = value->bytes,
                               .parameter = tensor->trainable,
                               .frozen = tensor->trainable && !tensor->requires_grad,
                               .pieces = clv__value_pieces(plan, &place->persistents[index], &pieces),
                               .device = place->device};
    }
    return (clv_plan_kept){0};
}

clv_plan_transfer clv_plan_transfer_get(const clv_plan *plan, int index) {
    if (index < 0 || index >= clv_plan_info_get(plan).n_transfers) return (clv_plan_transfer){0};
    const clv__transfer *transfer = &plan->transfers[index];
    const clv__value *from = &plan->values[transfer->from], *to = &plan->values[transfer->to];
    return (clv_plan_transfer){.from = plan->places[from->place].device,
                               .to = plan->places[to->place].device,
                               .tensor = from->tensor->name,
                               .bytes = transfer->bytes,
                               .shared = transfer->shared};
}
