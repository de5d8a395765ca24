// SPDX-License-Identifier: Apache-2.0
// Are two nodes of two graphs the same: op, attributes, names of what they read and make, layer, place?
#ifndef CLV_TESTS_HARNESS_SAME_NODE_H
#define CLV_TESTS_HARNESS_SAME_NODE_H

#include "graph/graph.h"
#include "harness/harness.h"

/** Between an int and an int64_t: nobody says what is there. */
static inline bool clv__test_is_padding(const clv__op *op, size_t byte) {
    static const char *const int_first[] = {"slice", "reshape", "broadcast_to"};
    for (size_t i = 0; i < sizeof int_first / sizeof *int_first; i++)
        if (!strcmp(op->name, int_first[i])) return byte >= sizeof(int) && byte < sizeof(int64_t);
    return false;
}

static inline void clv__test_same_node(const clv__node *a, const clv__node *b) {
    assert_ptr_equal(a->io.op, b->io.op);
    assert_int_equal(a->io.n_in, b->io.n_in);
    assert_int_equal(a->io.n_out, b->io.n_out);
    assert_string_equal(a->layer, b->layer);
    assert_true(!a->place_hint == !b->place_hint &&
                (!a->place_hint || !strcmp(a->place_hint, b->place_hint)));
    for (size_t i = 0; i < a->io.op->attrs_bytes; i++)
        if (!clv__test_is_padding(a->io.op, i) && ((const char *)a->attrs)[i] != ((const char *)b->attrs)[i])
            fail_msg("attributes of %s differ at byte %zu", a->io.op->name, i);
    for (int i = 0; i < a->io.n_in; i++) {
        assert_true(!a->in[i] == !b->in[i]);
        if (a->in[i]) assert_string_equal(clv_tensor_name(a->in[i]), clv_tensor_name(b->in[i]));
    }
    for (int i = 0; i < a->io.n_out; i++) {
        const clv_shape p = clv_tensor_shape(a->out[i]), q = clv_tensor_shape(b->out[i]);
        assert_true(clv_shape_equal(&p, &q));
        assert_int_equal(clv_tensor_dtype(a->out[i]), clv_tensor_dtype(b->out[i]));
        assert_int_equal(a->out[i]->requires_grad, b->out[i]->requires_grad);
        assert_int_equal(a->out[i]->is_output, b->out[i]->is_output);
        assert_string_equal(clv_tensor_name(a->out[i]), clv_tensor_name(b->out[i]));
    }
}

#endif
