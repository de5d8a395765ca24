// SPDX-License-Identifier: Apache-2.0
// The words that graph_write.c and graph_read.c share. A graph in a file is a safetensors file: its arrays are the graph's constants, and
// the text FORMAT_KEY of its metadata is a JSON object:
//
//     version    1
//     training, precision
//     inputs     [{name, dtype, shape, requires_grad?}]
//     state      [{kind: parameter, buffer or constant; name, shape; dtype, init: [kind, a, b], requires_grad?}]
//     nodes      [{op, inputs, attributes?, layer?, place?, dtype?, requires_grad?}]: calls of builders by their names, in their order
//     outputs    [[value, name]]
//
// A value is the name of an input or a tensor of the state, the number of a node, [number, output] for another output than the first, or
// null for an optional input that is not there. What is left out is as the builders leave it.
#ifndef CLV_NN_GRAPH_FILE_H
#define CLV_NN_GRAPH_FILE_H

#include "cleave/graph.h"
#include "cleave/io.h"

/** Into an archive, whose arrays are the graph's: it goes before the graph. */
clv_status clv__graph_to_archive(const clv_graph *graph, clv_archive *archive);
/** From one; `path` is for sentences. */
clv_status clv__graph_from_archive(clv_graph *graph, const clv_archive *archive, const char *path);

#define CLV__GRAPH_KEY "cleave.graph"
enum { CLV__GRAPH_VERSION = 1 };

/** By clv_precision, by clv_init_kind; NULL ends a list. */
static const char *const clv__precision_words[] = {"f32", "mixed", "mixed-bf16", NULL};
static const char *const clv__init_words[] = {"zeros", "ones", "uniform", "normal", NULL};

#endif
