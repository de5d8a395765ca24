// SPDX-License-Identifier: Apache-2.0
// ONNX files that tests make a field at a time, right and wrong ones. Fields: of a model 1 IR version, 7 graph, 8 opset, 25 function; of a
// graph 1 node, 5 initializer, 11 input, 12 output.
#ifndef CLV_TESTS_ONNX_MESSAGE_H
#define CLV_TESTS_ONNX_MESSAGE_H

#include "io/support.h"

/** A message that grows. */
typedef struct message {
    uint8_t *bytes;
    size_t n, room;
} message;

message *put_bytes(message *m, const void *bytes, size_t n);
message *put_varint(message *m, uint64_t value);
message *put_int(message *m, unsigned field, int64_t value);
message *put_data(message *m, unsigned field, const void *bytes, size_t n);
message *put_text(message *m, unsigned field, const char *text);
/** A message in a message, which is done then. */
message *put(message *m, unsigned field, message *inner);

/** NULL: it has no input, or no output. */
message node(const char *name, const char *op, const char *input, const char *output);
message *put_node(message *graph, const char *name, const char *op, const char *input, const char *output);
/** An input or an output of which nothing is said. */
message *put_info(message *graph, unsigned field, const char *name);
/** The tensor 'w', without data. */
message tensor(int64_t dtype, size_t rank, const int64_t *dims);
/** x, which a Relu makes y. */
message small_graph(void);
message model_of(message *graph, int64_t opset);

#endif
