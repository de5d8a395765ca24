// SPDX-License-Identifier: Apache-2.0
#include "message.h"

#include "base/memory.h"

message *put_bytes(message *m, const void *bytes, size_t n) {
    assert_true(clv__grow(&m->bytes, &m->room, m->n + n, 1));
    if (n) memcpy(m->bytes + m->n, bytes, n);
    m->n += n;
    return m;
}

message *put_varint(message *m, uint64_t value) {
    uint8_t bytes[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) bytes[n++] = (uint8_t)(value | 0x80);
    bytes[n++] = (uint8_t)value;
    return put_bytes(m, bytes, n);
}

message *put_int(message *m, unsigned field, int64_t value) {
    return put_varint(put_varint(m, field << 3), (uint64_t)value);
}

message *put_data(message *m, unsigned field, const void *bytes, size_t n) {
    return put_bytes(put_varint(put_varint(m, field << 3 | 2), n), bytes, n);
}

message *put_text(message *m, unsigned field, const char *text) {
    return put_data(m, field, text, strlen(text));
}

message *put(message *m, unsigned field, message *inner) {
    put_data(m, field, inner->bytes, inner->n);
    free(inner->bytes);
    *inner = (message){0};
    return m;
}

message node(const char *name, const char *op, const char *input, const char *output) {
    message m = {0};
    if (input) put_text(&m, 1, input);
    if (output) put_text(&m, 2, output);
    put_text(put_text(&m, 3, name), 4, op);
    return m;
}

message *put_node(message *graph, const char *name, const char *op, const char *input, const char *output) {
    message m = node(name, op, input, output);
    return put(graph, 1, &m);
}

message *put_info(message *graph, unsigned field, const char *name) {
    message m = {0};
    put_text(&m, 1, name);
    return put(graph, field, &m);
}

message small_graph(void) {
    message g = {0};
    put_node(&g, "relu", "Relu", "x", "y");
    put_info(put_info(&g, 11, "x"), 12, "y");
    return g;
}

message model_of(message *graph, int64_t opset) {
    message m = {0}, o = {0};
    put_int(&m, 1, 8);
    put(&m, 7, graph);
    put_int(&o, 2, opset);
    put(&m, 8, &o);
    return m;
}

message tensor(int64_t dtype, size_t rank, const int64_t *dims) {
    message t = {0};
    for (size_t i = 0; i < rank; i++) put_int(&t, 1, dims[i]);
    put_text(put_int(&t, 2, dtype), 8, "w");
    return t;
}
