// SPDX-License-Identifier: Apache-2.0
// The tree of `cleave plan`: modules by their names, each with what it holds and does in total.
#ifndef CLEAVE_PLAN_TREE_H
#define CLEAVE_PLAN_TREE_H

#include "plans/plan_rows.h"

/** Numbers of parameters, bytes, and work. */
typedef struct plan_total {
    int64_t parameters, frozen; // elements; frozen ones are among the first
    int64_t buffers;            // elements that are kept and not trained: running statistics
    uint64_t bytes[CLV_CATEGORIES];
    double flops;
    int layers; // rows below, or this one
} plan_total;

/** A module with its children behind it, or a layer, or an op. */
typedef struct plan_module {
    char name[256];  // full, as `layer1.0.conv1`; "" for the model
    const char *tip; // what its parent does not say: `conv1`
    int depth;       // 0: the model
    bool has_children;
    const plan_row *row; // NULL: only a module
    plan_total all;      // with its children
} plan_module;

typedef struct plan_tree {
    plan_module *modules; // the model first, each before its children
    int n;
} plan_tree;

/** From the rows of a plan, which must outlive it, and what the plan keeps. False without host memory;
 *  `modules` is to be freed. */
bool plan_tree_make(const clv_plan *plan, const plan_rows *rows, plan_tree *tree);
/** As a table down to a depth (-1: all). */
void plan_tree_print(FILE *out, const plan_tree *tree, int64_t depth);
/** Modules and layers as objects: `name depth layers parameters frozen flops bytes`. */
json_t *plan_tree_json(const plan_tree *tree, int64_t depth);
/** `1.2 GFLOP`; static text of this thread, good for eight calls. */
const char *plan_flops(double flops);
/** `1,234,567`; the same. */
const char *plan_count(int64_t count);

#endif
