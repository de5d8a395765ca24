// SPDX-License-Identifier: Apache-2.0
// Part of split: values that are carried to another device are carried in pieces if they are too large for one allocation at either
// end. Each end may cut differently. What is carried at a time is as much as both can hold; where the receiving end has larger
// pieces, or the whole, it puts them together.
#include "plan/split.h"

/** Rows that are carried at a time. */
static int64_t rows_carried(const clv__splitting *s, const clv__transfer *transfer) {
    const clv_plan *plan = s->to.plan;
    const clv__desc *desc = &plan->values[transfer->from].desc;
    const int64_t from = clv__split_rows(desc, plan->places[plan->values[transfer->from].place].device),
                  to = clv__split_rows(desc, plan->places[plan->values[transfer->to].place].device);
    return from == 0 || to == 0 ? clv__split_length(&desc->shape, 0) : from < to ? from : to;
}

/** What is kept was made by no node: one to write others for. */
static clv_status stand_in(clv__splitting *s, const clv_tensor *tensor) {
    if (s->to.of) return CLV_OK;
    clv__node *node = clv__arena_alloc(&s->to.plan->arena, 1, sizeof *node);
    if (!node) return clv__plan_no_memory(s->to.plan);
    *node = (clv__node){.graph = tensor->graph, .layer = tensor->layer, .micro_batch = -1};
    s->to.of = node;
    return CLV_OK;
}

/** A sender's or receiver's node for a piece. */
static clv_status carry_piece(clv__splitting *s, const clv__plan_node *at, int transfer, int value) {
    clv__plan_node piece = *at;
    piece.transfer = transfer;
    if (at->work == CLV__SEND)
        piece.in[0] = value;
    else
        piece.out[0] = value;
    return clv__plan_append(s->to.plan, &piece);
}

clv_status clv__split_send(clv__splitting *s, const clv__plan_node *at) {
    clv_plan *plan = s->to.plan;
    const clv__transfer whole = plan->transfers[at->transfer];
    const int64_t rows = rows_carried(s, &whole);
    const clv__desc *desc = &plan->values[whole.from].desc;
    const int64_t all = clv__split_length(&desc->shape, 0);
    if (rows == all && !clv__split_is_cut(s, whole.from)) return clv__plan_append(s->to.plan, at);
    if (whole.exchanged && clv__exchanged_of(&whole)->kind != CLV__EXCHANGE_SUM)
        CLV_FAIL(clv__plan_error(plan), CLV_E_UNSUPPORTED,
                 "'%s' is larger than the largest allocation of %s, and no rank can update a part of it",
                 plan->values[whole.from].tensor->name,
                 plan->places[plan->values[whole.from].place].device->info.name);
    CLV_TRY(stand_in(s, plan->values[whole.from].tensor));
    clv__region from, piece;
    CLV_TRY(clv__split_region_of(s, whole.from, &from));
    s->first_of[at->transfer] = (int)plan->n_transfers;
    for (int64_t row = 0; row < all; row += rows) {
        int value;
        CLV_TRY(clv__region_narrow(&s->to, &from, 0, row, row + rows < all ? row + rows : all, &piece));
        CLV_TRY(clv__region_whole(&s->to, &piece, -1, &value));
        if (!clv__grow(&plan->transfers, &plan->transfers_room, plan->n_transfers + 1,
                       sizeof *plan->transfers))
            return clv__plan_no_memory(s->to.plan);
        plan->transfers[plan->n_transfers] = (clv__transfer){.from = value,
                                                             .to = -1,
                                                             .bytes = clv__desc_bytes(&piece.desc),
                                                             .exchanged = whole.exchanged,
                                                             .sent_bytes = clv__desc_bytes(&piece.desc),
                                                             .came_bytes = clv__desc_bytes(&piece.desc),
                                                             .into = -1};
        CLV_TRY(carry_piece(s, at, (int)plan->n_transfers++, value));
    }
    return CLV_OK;
}

clv_status clv__split_receive(clv__splitting *s, const clv__plan_node *at) {
    clv_plan *plan = s->to.plan;
    const clv__transfer whole = plan->transfers[at->transfer];
    if (!s->first_of[at->transfer]) return clv__plan_append(s->to.plan, at);
    const clv_tensor *tensor = plan->values[whole.to].tensor;
    const clv__desc all_of_it = plan->values[whole.to].desc;
    const int64_t rows = rows_carried(s, &whole), all = clv__split_length(&all_of_it.shape, 0);
    const int n = (int)((all + rows - 1) / rows);
    clv__region arrived, result;
    CLV_TRY(clv__region_make(&s->to, &all_of_it, tensor, n, &arrived));
    for (int i = 0; i < n; i++) {
        const int number = s->first_of[at->transfer] + i;
        clv__desc desc = all_of_it;
        arrived.items[i].n = desc.shape.dims[0] = clv__split_piece(&all_of_it, rows, i);
        CLV_TRY(clv__pieces_value(&s->to, tensor, &desc, &arrived.items[i].value));
        plan->values[arrived.items[i].value].copy = true;
        plan->transfers[number].to = arrived.items[i].value;
        CLV_TRY(carry_piece(s, at, number, arrived.items[i].value));
    }
    CLV_TRY(stand_in(s, tensor));
    CLV_TRY(clv__region_join(&s->to, &arrived, 1, 0, &all_of_it, whole.to, &result));
    s->regions[whole.to] = result;
    return CLV_OK;
}

clv_status clv__split_renumber(clv__splitting *s) {
    clv_plan *plan = s->to.plan;
    int *number = clv__arena_alloc(&s->to.scratch, plan->n_transfers + 1, sizeof *number);
    if (!number) return clv__plan_no_memory(s->to.plan);
    size_t n = 0;
    for (size_t i = 0; i < plan->n_transfers; i++) {
        if (i < s->n_transfers && s->first_of[i]) continue;
        number[i] = (int)n;
        plan->transfers[n++] = plan->transfers[i];
    }
    plan->n_transfers = n;
    for (size_t i = 0; i < plan->n_nodes; i++)
        if (plan->nodes[i].work != CLV__COMPUTE) plan->nodes[i].transfer = number[plan->nodes[i].transfer];
    return CLV_OK;
}
