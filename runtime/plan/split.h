// SPDX-License-Identifier: Apache-2.0
// What the two files of the split pass share: split.c does the nodes that compute, carry.c those that send and receive.
#ifndef CLV_PLAN_SPLIT_H
#define CLV_PLAN_SPLIT_H

#include "plan/pieces.h"

/** What the pass notes of a value. */
typedef struct clv__in_pieces {
    const int *pieces; // the values that hold its rows, one after the other; n 0: it is whole
    int n;
    int number;              // of a persistent: which of its pieces this is
    const clv__node *undone; // clv__plan_unsplit, if it is for this value
    bool row;
} clv__in_pieces;

typedef struct clv__splitting {
    clv__pieces to;
    clv__region *regions; // by value that was placed: in more than one item, if it is in pieces
    size_t n_regions;
    // by transfer of a whole value, if that is carried in pieces: the transfer of the first; the others follow it. 0: it is whole
    int *first_of;
    size_t n_transfers; // that were placed
    bool undone;        // a node was noted that cannot be done in parts
} clv__splitting;

/** Does a value that was placed lie in pieces? */
bool clv__split_is_cut(const clv__splitting *s, int value);
/** What it is in. */
clv_status clv__split_region_of(clv__splitting *s, int value, clv__region *out);

/** A node that sends a value, or receives one: the same, or such a node for each piece. */
clv_status clv__split_send(clv__splitting *s, const clv__plan_node *at);
clv_status clv__split_receive(clv__splitting *s, const clv__plan_node *at);
/** At the end: transfers of whole values that are carried in pieces are no more, and the others have other numbers. */
clv_status clv__split_renumber(clv__splitting *s);

#endif
