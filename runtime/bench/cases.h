// SPDX-License-Identifier: Apache-2.0
// What is measured: cases by suite, name and mode, each a graph.
#ifndef CLV_BENCH_CASES_H
#define CLV_BENCH_CASES_H

#include "cleave/bench.h"
#include "graph/graph.h"

enum { CLV__BENCH_NUMBERS = 9 };

typedef struct clv__bench_case clv__bench_case;

/** A graph to time. */
typedef struct clv__bench_graph {
    clv_graph *graph;
    double flops, bytes; // of one step
    size_t n_nodes;      // the graph's first that do the work; what comes after them reads a result back
} clv__bench_graph;

struct clv__bench_case {
    const char *suite, *mode; // static
    char name[96];
    /** Append to graph->graph (made, empty) what is timed. */
    void (*build)(const clv__bench_case *c, clv__bench_graph *graph);
    int64_t numbers[CLV__BENCH_NUMBERS];
    const void *what; // model, or the op's builder
};

typedef struct clv__bench_cases {
    clv__bench_case *items;
    size_t n, room;
} clv__bench_cases;

/** The cases that the configuration asks for, in order. */
clv_status clv__bench_cases_init(clv_runtime *runtime, const clv_bench_config *config, clv__bench_cases *out);
void clv__bench_cases_reset(clv__bench_cases *cases);

/** Build a case's graph; destroy graph->graph also after a failure. */
clv_status clv__bench_build(clv_runtime *runtime, const clv__bench_case *c, clv_precision precision,
                            clv__bench_graph *out);

#endif
