// SPDX-License-Identifier: Apache-2.0
// A graph as placement sees it: layers in the order of execution, what each takes on each device, and what is
// transferred if the order is cut between two of them. All of it is read from plans of the whole graph on one
// device at a time.
#ifndef CLV_PLACEMENT_LAYERS_H
#define CLV_PLACEMENT_LAYERS_H

#include "placement/speed.h"

/** A layer with parameters: it stays whole. Nodes without such a layer go with the one whose data they
 *  get. */
typedef struct clv__layer {
    const char *name;          // borrowed from the graph
    uint64_t parameter_bytes;  // buffers too; shared ones count for the layer that reads them first
    uint64_t persistent_bytes; // parameters, buffers, optimizer state
} clv__layer;

/** Reading or writing of a block: by a node of this layer, at this position in the plan. */
typedef struct clv__use {
    int layer, at;
} clv__use;

/** Bytes that live together, and who uses them. */
typedef struct clv__block {
    clv__segment segment;
    uint64_t bytes;
    int made_by; // layer; -1: fed wherever it is used
    size_t first_use, n_uses;
} clv__block;

/** What a run of layers holds and exchanges, whatever the device. */
typedef struct clv__span {
    uint64_t bytes;               // without workspace
    uint64_t in_bytes, out_bytes; // received from other layers, sent to them
    int in, out;                  // how many values
} clv__span;

typedef struct clv__layers {
    int n, n_devices;
    bool shares_memory; // all devices compute in the host's memory: what is carried need not be copied
    clv__layer *items;
    size_t room;
    clv__block *blocks;
    size_t n_blocks;
    clv__use *uses;
    int n_positions;          // nodes of the plan
    double *seconds;          // [device][layer]: forward, backward and update
    size_t *workspace;        // [device][layer]
    const clv__speed *speeds; // [device], borrowed
    clv__span *spans;         // [first][past the last]
} clv__layers;

/** Layers with parameters of a graph that is planned on one device. Reset `out` also after a failure. */
clv_status clv__layers_find(const clv_plan *plan, clv__layers *out);
/** All the rest, from a plan of the whole graph on each device. */
clv_status clv__layers_weigh(clv__layers *layers, clv_plan *const *plans, const clv__speed *speeds, int n);
void clv__layers_reset(clv__layers *layers);

/** What they take on a device: an estimate, which a plan is the judge of. None of them: nothing. */
double clv__layers_seconds(const clv__layers *layers, int device, int first, int end);
uint64_t clv__layers_bytes(const clv__layers *layers, int device, int first, int end);

#endif
