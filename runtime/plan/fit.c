// SPDX-License-Identifier: Apache-2.0
// `recompute` auto: which results to drop so that a plan fits, with little computed again.
//
// The bytes that live at each position of the plan make a curve for each device; what lies above the limit there, summed over
// positions, is the excess. One node's fate (kept, or computed again) is changed at a time: the change that takes away most excess for the work it adds
// is the next, until none is left; then the layout is made to see whether it really fits, and the limit tightened by what it
// lacks. At last fates that turned out to be needless are taken back. Every look at a fate rewrites the plan and finds lives
// as they would be; nothing is estimated but time.
//
// Scores grow stale as fates change, and mostly fall: only the one that seems best is looked at again before it is taken
// (lazy greedy: Minoux 1978). A result that no gradient reads costs nothing to drop; it is there again whenever a node that is
// computed again wants it, unless to keep it turns out to be better.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/passes.h"
#include "plan/plan.h"
#include "plan/remake.h"

enum { MOST_LAYOUTS = 64 };

/** Another fate for a node; or for two, where one reads what the other makes: what is kept moves along the graph. */
typedef struct move {
    int base[2]; // [1] -1: one node
    clv__fate fate[2];
    double score; // excess taken away for each unit of work; of round `round`
    int round;
} move;

typedef struct fitting {
    clv__remake *remake;
    clv_plan *plan;
    uint64_t *limit; // by place: of activations and workspace
    int64_t *curve;  // scratch: by position
    size_t curve_room;
    bool *read; // by base node: a gradient reads its results
    move *moves;
    size_t moves_room;
    int n_moves, round;
    double excess, work; // of the fates as they are
    double patience;     // nodes that may still be looked at
} fitting;

// ---- what fates cost --------------------------------------------------------------------------------------------------

/** Bytes above the limit at a place, summed over positions. */
static double excess_at(fitting *f, int place) {
    const clv_plan *plan = f->plan;
    size_t n = plan->n_nodes, alignment = plan->places[place].alignment;
    memset(f->curve, 0, (n + 2) * sizeof *f->curve);
    for (size_t i = 0; i < plan->n_values; i++) {
        const clv__value *value = &plan->values[i];
        if (value->place != place || value->root != (int)i || value->segment != CLV__IN_ACTIVATIONS ||
            value->last < 0)
            continue;
        int64_t bytes = (int64_t)clv__size_align(value->bytes, alignment);
        f->curve[value->first] += bytes;
        f->curve[value->last + 1] -= bytes;
    }
    double excess = 0;
    int64_t living = 0, limit = (int64_t)f->limit[place];
    for (size_t at = 0; at < n; at++) {
        const clv__plan_node *node = &plan->nodes[at];
        living += f->curve[at];
        int64_t now = living + (node->place == place ? (int64_t)node->launches.workspace_bytes : 0);
        if (now > limit) excess += (double)(now - limit);
    }
    return excess;
}

/** Rewrite the plan by the fates, and find its excess and the work it adds. */
static clv_status look(fitting *f, double *excess, double *work) {
    CLV_TRY(clv__remake_apply(f->remake));
    f->patience -= (double)f->plan->n_nodes;
    *work = f->remake->extra_work;
    *excess = INFINITY;
    if (f->remake->too_many) return CLV_OK;
    CLV_TRY(clv__passes_run(f->plan, CLV__PASS_roots, CLV__PASS_in_place));
    if (!clv__grow(&f->curve, &f->curve_room, f->plan->n_nodes + 2, sizeof *f->curve))
        return clv__plan_no_memory(f->plan);
    *excess = 0;
    for (int i = 0; i < f->plan->n_places; i++) *excess += excess_at(f, i);
    return CLV_OK;
}

static clv_plan_memory memory_at(const fitting *f, int place) {
    clv_plan *plans[2] = {f->plan, (clv_plan *)f->plan->same_session};
    return clv_plans_memory(plans, plans[1] ? 2 : 1, f->plan->places[place].device);
}

static uint64_t allowed_at(const fitting *f, int place) {
    clv_device *device = f->plan->places[place].device;
    uint64_t budget = clv_device_memory(device).budget, memory = device->info.memory_bytes;
    if (!budget || (memory && memory < budget)) budget = memory;
    return budget ? budget : UINT64_MAX;
}

/** A limit that asks for less than came of the one before: the activations could not be packed as tightly as they live, or
 *  workspaces found no room among them. */
static uint64_t tighter(uint64_t limit, uint64_t activations, uint64_t lacking) {
    uint64_t next = limit - limit / 64;
    if (activations < next && lacking > 0) next = activations; // workspaces fit in if nothing is above it
    return next;
}

/** Lay the plan out as it is; does it fit? Where it does not, the limit is tightened. */
static clv_status lay_out(fitting *f, bool *fits) {
    CLV_TRY(clv__passes_run(f->plan, CLV__PASS_roots, CLV__PASS_layout));
    *fits = true;
    for (int i = 0; i < f->plan->n_places; i++) {
        const clv__place *place = &f->plan->places[i];
        if (memory_at(f, i).predicted_peak_bytes <= allowed_at(f, i)) continue;
        *fits = false;
        f->limit[i] = tighter(f->limit[i], place->activations.bytes, place->workspace_bytes);
    }
    return CLV_OK;
}

// ---- moves ------------------------------------------------------------------------------------------------------------

/** Give the move's nodes these fates, and *before those that they had. */
static void change(fitting *f, const move *m, const clv__fate fates[2], clv__fate before[2]) {
    for (int i = 0; i < 2 && m->base[i] >= 0; i++) {
        before[i] = f->remake->fate[m->base[i]];
        f->remake->fate[m->base[i]] = fates[i];
    }
}

static clv_status score(fitting *f, move *m) {
    const clv__fate *now = f->remake->fate;
    clv__fate before[2], same[2];
    double excess, work, least = f->remake->base_work * 1e-6;
    m->round = f->round;
    m->score = -INFINITY;
    if (m->fate[0] == now[m->base[0]] || (m->base[1] >= 0 && m->fate[1] == now[m->base[1]])) return CLV_OK;
    change(f, m, m->fate, before);
    clv_status status = look(f, &excess, &work);
    change(f, m, before, same);
    double added = work - f->work;
    m->score = (f->excess - excess) / (added > least ? added : least);
    return status;
}

static move *best_scored(const fitting *f) {
    move *best = NULL;
    for (int i = 0; i < f->n_moves; i++) {
        if (!best || f->moves[i].score > best->score) best = &f->moves[i];
    }
    return best;
}

/** The move that pays best; NULL: none does. */
static clv_status choose(fitting *f, move **out) {
    *out = NULL;
    f->round++;
    while (f->patience > 0) {
        move *best = best_scored(f);
        if (!best) return CLV_OK;
        if (best->round != f->round) {
            CLV_TRY(score(f, best));
        } else if (best->score > 0) {
            *out = best;
            return CLV_OK;
        } else { // none seems good: look at all of them once more
            bool looked = false;
            for (int i = 0; i < f->n_moves; i++) {
                if (f->moves[i].round == f->round) continue;
                CLV_TRY(score(f, &f->moves[i]));
                looked = true;
            }
            if (!looked) return CLV_OK;
        }
    }
    return CLV_OK;
}

/** Change fates until the plan fits, or nothing helps any more. */
static clv_status descend(fitting *f, bool *fits) {
    *fits = false;
    for (int layouts = 0; layouts < MOST_LAYOUTS;) {
        CLV_TRY(look(f, &f->excess, &f->work));
        if (f->excess <= 0) {
            CLV_TRY(lay_out(f, fits));
            if (*fits) return CLV_OK;
            layouts++;
            continue;
        }
        move *next;
        CLV_TRY(choose(f, &next));
        if (next) {
            clv__fate before[2];
            change(f, next, next->fate, before);
            continue;
        }
        return look(f, &f->excess, &f->work);
    }
    return CLV_OK;
}

/** Give a node a fate that is less work, if the plan still fits. */
static clv_status try_fate(fitting *f, int base, clv__fate fate) {
    clv__fate before = f->remake->fate[base];
    double excess, work;
    bool fits = false;
    f->remake->fate[base] = fate;
    clv_status status = look(f, &excess, &work);
    if (status == CLV_OK && excess <= 0 && work < f->work) status = lay_out(f, &fits);
    if (fits)
        f->work = work;
    else
        f->remake->fate[base] = before;
    return status;
}

static int most_work_first(const void *a, const void *b) {
    const move *x = a, *y = b;
    return x->score < y->score ? 1 : x->score > y->score ? -1 : x->base[0] - y->base[0];
}

/** Take back what is not needed after all, the most work first. */
static clv_status take_back(fitting *f) {
    CLV_TRY(look(f, &f->excess, &f->work));
    for (int i = 0; i < f->n_moves; i++) f->moves[i].score = f->remake->work[f->moves[i].base[0]];
    qsort(f->moves, (size_t)f->n_moves, sizeof *f->moves, most_work_first);
    for (int i = 0; i < f->n_moves; i++) {
        int base = f->moves[i].base[0];
        if (f->moves[i].base[1] < 0 && f->moves[i].fate[0] < f->remake->fate[base])
            CLV_TRY(try_fate(f, base, f->moves[i].fate[0]));
    }
    return look(f, &f->excess, &f->work);
}

// ---- all of it --------------------------------------------------------------------------------------------------------

static void find_read(fitting *f) {
    const clv__remake *remake = f->remake;
    for (size_t i = 0; i < remake->n_base; i++) {
        const clv__plan_node *node = &remake->base[i];
        if (node->work != CLV__COMPUTE || node->node->phase != CLV__BACKWARD) continue;
        for (int k = 0; k < node->node->io.n_in; k++) {
            int base = node->in[k] < 0 ? -1 : remake->maker[node->in[k]];
            while (base >= 0 && !f->read[base]) { // and what is seen through views
                f->read[base] = true;
                const clv__plan_node *made_by = &remake->base[base];
                base = made_by->node->io.op->view ? remake->maker[made_by->in[0]] : -1;
            }
        }
    }
}

static void begin(fitting *f) {
    enum {
        ENOUGH = 1000000
    }; // a second or two, for what will not fit, whatever is made again: it is only told how much it wants
    clv__remake *remake = f->remake;
    f->patience = INFINITY;
    find_read(f);
    for (int i = 0; i < f->plan->n_places; i++) {
        clv_plan_memory memory = memory_at(f, i);
        uint64_t others = memory.predicted_peak_bytes - memory.category[CLV_ACTIVATIONS] -
                          memory.category[CLV_WORKSPACE],
                 allowed = allowed_at(f, i);
        f->limit[i] = allowed > others ? allowed - others : 0;
        if (!f->limit[i]) f->patience = ENOUGH;
        if (f->limit[i] > INT64_MAX) f->limit[i] = INT64_MAX;
    }
    for (size_t i = 0; i < remake->n_base; i++) {
        if (clv__remake_can(remake, (int)i)) remake->fate[i] = f->read[i] ? CLV__KEEP : CLV__AGAIN_EACH;
    }
}

/** The node that makes what the k-th input of a base node views, or is; -1: none that can be computed again. */
static int source_of(const clv__remake *remake, const clv__plan_node *node, int k) {
    int base = node->in[k] < 0 ? -1 : remake->maker[node->in[k]];
    while (base >= 0 && remake->base[base].node->io.op->view) base = remake->maker[remake->base[base].in[0]];
    return base;
}

static clv_status add_move(fitting *f, int a, clv__fate fate_a, int b, clv__fate fate_b) {
    if (!clv__grow(&f->moves, &f->moves_room, (size_t)f->n_moves + 1, sizeof *f->moves))
        return clv__plan_no_memory(f->plan);
    f->moves[f->n_moves++] = (move){{a, b}, {fate_a, fate_b}, INFINITY, 0};
    return CLV_OK;
}

/** Of moves that do the same now the first is taken: what holds nothing between its uses leaves more ways open. */
static clv_status list_moves(fitting *f) {
    const clv__remake *remake = f->remake;
    for (int i = 0; i < (int)remake->n_base; i++) {
        if (!clv__remake_can(remake, i)) continue;
        for (clv__fate fate = CLV__AGAIN_EACH + 1; fate-- > CLV__KEEP;)
            CLV_TRY(add_move(f, i, fate, -1, CLV__KEEP));
        for (int k = 0; k < remake->base[i].node->io.n_in; k++) {
            int source = source_of(remake, &remake->base[i], k);
            for (clv__fate fate = CLV__AGAIN_EACH; source >= 0 && fate > CLV__KEEP; fate--) {
                CLV_TRY(add_move(f, source, fate, i, CLV__KEEP));
                CLV_TRY(add_move(f, source, CLV__KEEP, i, fate));
            }
        }
    }
    return CLV_OK;
}

static bool is_fine(const fitting *f) {
    for (int i = 0; i < f->plan->n_places; i++) {
        if (memory_at(f, i).predicted_peak_bytes > allowed_at(f, i)) return false;
    }
    return true;
}

clv_status clv__remake_fit(clv__remake *remake) {
    fitting f = {.remake = remake, .plan = remake->plan};
    if (is_fine(&f)) return CLV_OK; // the plan is laid out, and as it was
    f.limit = clv__alloc((size_t)f.plan->n_places, sizeof *f.limit);
    f.read = clv__alloc(remake->n_base, sizeof *f.read);
    clv_status status = f.limit && f.read ? CLV_OK : clv__plan_no_memory(f.plan);
    bool fits = false;
    if (status == CLV_OK) {
        begin(&f);
        status = list_moves(&f);
        if (status == CLV_OK) status = descend(&f, &fits);
    }
    if (status == CLV_OK && fits) status = take_back(&f);
    free(f.limit);
    free(f.read);
    free(f.moves);
    free(f.curve);
    return status;
}
