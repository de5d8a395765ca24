// SPDX-License-Identifier: Apache-2.0
// Heads and masks of attention, for kernels with T queries of H heads in image n_ and the macro parameters
//     SHARED   1: several heads of queries share one of G of keys and values; 0: G is H
//     MASKED   1: what is added to scores, mask[m_first + n*m_n + h*m_h + t*m_t + u], are the last arguments; -INFINITY hides
//
//     KEY_HEADS, KEY_HEAD(h)     heads of keys; the one that h shares
//     EACH_SHARER                before what is done for each head h_ of queries that share `head`
//     MASK_PARAMS, MASK_BEGIN    parameters; behind h_: where the head's rows lie
//     MASK_ADDED(t, u)           `+` what is added to the score of query t and key u
//     LEAST_SCORE                no score that counts is below: masked it is finite, so that differences of two are numbers
#define KEY_HEADS PASTE(KEY_HEADS_, SHARED)
#define KEY_HEADS_0 H
#define KEY_HEADS_1 G
#define KEY_HEAD(h) PASTE(KEY_HEAD_, SHARED)(h)
#define KEY_HEAD_0(h) (h)
#define KEY_HEAD_1(h) ((h) / (H / G))
#define EACH_SHARER PASTE(EACH_SHARER_, SHARED)
#define EACH_SHARER_0 const int h_ = head;
#define EACH_SHARER_1 for (int h_ = head * (H / G); h_ < (head + 1) * (H / G); h_++)
#define MASK_PARAMS PASTE(MASK_PARAMS_, MASKED)
#define MASK_PARAMS_0
#define MASK_PARAMS_1 , __global const float *restrict mask, int m_first, int m_n, int m_h, int m_t
#define MASK_BEGIN PASTE(MASK_BEGIN_, MASKED)
#define MASK_BEGIN_0
#define MASK_BEGIN_1 __global const float *added_ = mask + m_first + n_ * m_n + h_ * m_h;
#define MASK_ADDED(t, u) PASTE(MASK_ADDED_, MASKED)(t, u)
#define MASK_ADDED_0(t, u)
#define MASK_ADDED_1(t, u) +added_[min(t, T - 1) * m_t + (u)]
#define LEAST_SCORE PASTE(LEAST_SCORE_, MASKED)
#define LEAST_SCORE_0 -INFINITY
#define LEAST_SCORE_1 -FLT_MAX
