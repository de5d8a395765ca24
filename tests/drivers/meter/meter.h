// SPDX-License-Identifier: Apache-2.0
// What launches.c writes for meter.c and for ptx/ptx.c, as C: nodes of plans and samples with the launches that a null card gets, and
// their memory. Who does not link the kernels defines METER_NO_CALLS.
#ifndef CLV_METER_H
#define CLV_METER_H

#include <stddef.h>
#include <stdint.h>

enum { METER_MOST_BUFFERS = 72 };

typedef struct meter_buffer {
    size_t bytes;  // 0: a null pointer
    long given;    // where its values are in data.bin; -1: nowhere
    long wanted;   // what it must hold in the end, as doubles; -1: anything
    size_t n;      // elements
    int element;   // clv_dtype
    double within; // of the largest wanted value
    int indices;   // without given values: small whole numbers, which are legal everywhere
} meter_buffer;

typedef struct meter_arg {
    int buffer; // -1: `bits` is the value, of an int or a float
    size_t at;  // bytes into the buffer
    uint32_t bits;
} meter_arg;

typedef enum meter_kind { METER_KERNEL, METER_COPY, METER_FILL } meter_kind;

typedef struct meter_launch {
    meter_kind kind;
    const char *entry, *key;
    const char *name; // of the kernel in its program
    const meter_arg *args;
    int n_args;
    void (*call)(char *const *buffers, char *local);
    size_t global[3], local[3];
    int to, from; // COPY, FILL: buffers
    size_t to_at, from_at, bytes;
    uint32_t pattern;
} meter_launch;

typedef struct meter_node {
    const char *model, *use; // `resnet18`; `conv2d:plain`. Samples: "" and `conv2d:plain, label`
    int alone;               // 0: of a training step; 1: one node that shows a variant which its plan did not choose
    int count;               // so many alike in a step
    const meter_buffer *buffers;
    int n_buffers;
    size_t must; // bytes that have to be read and written
    const meter_launch *launches;
    int n_launches;
} meter_node;

#ifdef METER_NO_CALLS
#define METER_CALL(function) 0
#else
#define METER_CALL(function) function
#endif

extern const meter_node meter_nodes[];
extern const int meter_n_nodes;

#endif
