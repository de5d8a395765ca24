// SPDX-License-Identifier: Apache-2.0
// What is done to a result's elements before they are stored: other ops, strung onto an op's own kernel by the plan, so that they
// cost neither a launch nor a pass over memory. A kernel file that takes part has, after its macro parameters,
//
//     EPILOGUE_FUNCTION(KERNEL(epilogue), float)            and, for vectors,     EPILOGUE_FUNCTION(KERNEL(epilogue16), float16)
//
// its last kernels end their parameters with EPILOGUE_PARAMS, and store
//
//     KERNEL(epilogue)(v EPILOGUE_AT(i))                    or     KERNEL(epilogue16)(v EPILOGUE_VECTOR_AT(16, i))
//
// where v is the value and i its place in the output. A helper that stores for them ends its parameters with EPILOGUE_PARAMS, and
// calls of it their arguments with EPILOGUE_ARGS. If the op's descriptor says that it has channels, a block that stores has
// above that, outside of the loop over what belongs to one channel,
//
//     EPILOGUE_CHANNEL(c);                 or, of n channels from c on, one for each lane,     EPILOGUE_VECTOR_CHANNEL(n, c);
//
// Who stores several elements asks for what all epilogues read before the first store, as compilers fetch nothing ahead of a store that
// may go there: EPILOGUE_AHEAD(n) declares room for n, EPILOGUE_READ(r, i) reads that of i as the r-th, and KERNEL(epilogue)(v EPILOGUE_AS_READ(r))
// takes it.
//
// EPILOGUE_PREFETCH(i) asks for what an epilogue at i will read, common/prefetch.cl.
//
// What follows are parameters of such a file, as runtime/ops/epilogue.c writes them. They are not repeated there: where they are
// not defined, nothing is done.
//
// EPI_N        further inputs of the output's shape: 0, 1 or 2
// EPI_T0, 1    how they are stored
// EPI_BODY     statements over v, e0, e1 and g0 to g3 that leave the result in v. Each op is a statement of its own, so that a
//              compiler that contracts a * b + c within expressions gives the bits that separate launches give
// EPI_C        1: there are further inputs with a float for each channel, at most four
// EPI_CHANNEL  statements over h0 to h3, the channel's floats in them, that leave in g0 to g3 what EPI_BODY wants
//
// F is the type at hand, a float or a vector of floats; the words of the expressions are explained in elementwise.def.
#define K(v) ((F)(v##f))
#define P0 ((F)(p0))
#define P1 ((F)(p1))
#define SELECT(c, a, b) select((b), (a), (c))
#define FMOD(a, b) fmod(a, b)

#define EPILOGUE_FUNCTION(name, type)                                                                        \
    type name(type v PASTE(EPILOGUE_VALUES_, EPI_N)(type) PASTE(EPILOGUE_GIVEN_, EPI_C)(type)) {             \
        typedef type F;                                                                                      \
        v = (F)(v);                                                                                          \
        PASTE(EPILOGUE_BODY_, EPI_N)                                                                         \
        return v;                                                                                            \
    }
#define EPILOGUE_PARAMS PASTE(EPILOGUE_PARAMS_, EPI_N) PASTE(EPILOGUE_FLOATS_, EPI_C)
#define EPILOGUE_ARGS PASTE(EPILOGUE_ARGS_, EPI_N) PASTE(EPILOGUE_PASS_, EPI_C)
#define EPILOGUE_AT(i) PASTE(EPILOGUE_AT_, EPI_N)(i) PASTE(EPILOGUE_GIVE_, EPI_C)
#define EPILOGUE_VECTOR_AT(n, i)                                                                             \
    PASTE(EPILOGUE_VECTOR_AT_, EPI_N)(n, i) PASTE(EPILOGUE_VECTOR_GIVE_, EPI_C)(n)
#define EPILOGUE_AHEAD(n) PASTE(EPILOGUE_AHEAD_, EPI_N)(n)
#define EPILOGUE_READ(r, i) PASTE(EPILOGUE_READ_, EPI_N)(r, i)
#define EPILOGUE_AS_READ(r) PASTE(EPILOGUE_AS_READ_, EPI_N)(r) PASTE(EPILOGUE_GIVE_, EPI_C)
#define EPILOGUE_PREFETCH(i) PASTE(EPILOGUE_PREFETCH_, EPI_N)(i)
#define EPILOGUE_CHANNEL(c) PASTE(EPILOGUE_CHANNEL_, EPI_C)(c)
#define EPILOGUE_VECTOR_CHANNEL(n, c) PASTE(EPILOGUE_VECTOR_CHANNEL_, EPI_C)(n, c)
// 1: anything is done.
#define EPILOGUE_STEPS PASTE(EPILOGUE_STEPS_, EPI_N)
// 1: there are such inputs.
#define EPILOGUE_CHANNELS PASTE(EPILOGUE_CHANNELS_, EPI_C)

// By EPI_N; where it is not defined, the name that is made ends in it.
#define EPILOGUE_BODY_EPI_N
#define EPILOGUE_BODY_0 EPI_BODY
#define EPILOGUE_BODY_1 EPI_BODY
#define EPILOGUE_BODY_2 EPI_BODY
#define EPILOGUE_STEPS_EPI_N 0
#define EPILOGUE_STEPS_0 1
#define EPILOGUE_STEPS_1 1
#define EPILOGUE_STEPS_2 1
#define EPILOGUE_VALUES_EPI_N(type)
#define EPILOGUE_VALUES_0(type)
#define EPILOGUE_VALUES_1(type) , type e0
#define EPILOGUE_VALUES_2(type) , type e0, type e1
#define EPILOGUE_PARAMS_EPI_N
#define EPILOGUE_PARAMS_0
#define EPILOGUE_PARAMS_1 , __global const EPI_T0 *further0
#define EPILOGUE_PARAMS_2 , __global const EPI_T0 *further0, __global const EPI_T1 *further1
#define EPILOGUE_ARGS_EPI_N
#define EPILOGUE_ARGS_0
#define EPILOGUE_ARGS_1 , further0
#define EPILOGUE_ARGS_2 , further0, further1
#define EPILOGUE_AT_EPI_N(i)
#define EPILOGUE_AT_0(i)
#define EPILOGUE_AT_1(i) , LOAD(EPI_T0, further0 + (i))
#define EPILOGUE_AT_2(i) , LOAD(EPI_T0, further0 + (i)), LOAD(EPI_T1, further1 + (i))
#define EPILOGUE_VECTOR_AT_EPI_N(n, i)
#define EPILOGUE_VECTOR_AT_0(n, i)
#define EPILOGUE_VECTOR_AT_1(n, i) , VLOAD(EPI_T0, n, further0 + (i))
#define EPILOGUE_VECTOR_AT_2(n, i) , VLOAD(EPI_T0, n, further0 + (i)), VLOAD(EPI_T1, n, further1 + (i))
#define EPILOGUE_AHEAD_EPI_N(n)
#define EPILOGUE_AHEAD_0(n)
#define EPILOGUE_AHEAD_1(n) float ahead0[n];
#define EPILOGUE_AHEAD_2(n) float ahead0[n], ahead1[n];
#define EPILOGUE_READ_EPI_N(r, i)
#define EPILOGUE_READ_0(r, i)
#define EPILOGUE_READ_1(r, i) ahead0[r] = LOAD(EPI_T0, further0 + (i));
#define EPILOGUE_READ_2(r, i)                                                                                \
    ahead0[r] = LOAD(EPI_T0, further0 + (i));                                                                \
    ahead1[r] = LOAD(EPI_T1, further1 + (i));
#define EPILOGUE_AS_READ_EPI_N(r)
#define EPILOGUE_AS_READ_0(r)
#define EPILOGUE_AS_READ_1(r) , ahead0[r]
#define EPILOGUE_AS_READ_2(r) , ahead0[r], ahead1[r]
#define EPILOGUE_PREFETCH_EPI_N(i)
#define EPILOGUE_PREFETCH_0(i)
#define EPILOGUE_PREFETCH_1(i) PREFETCH(further0 + (i));
#define EPILOGUE_PREFETCH_2(i)                                                                               \
    PREFETCH(further0 + (i));                                                                                \
    PREFETCH(further1 + (i));

// By EPI_C, in the same way.
#define EPILOGUE_CHANNELS_EPI_C 0
#define EPILOGUE_CHANNELS_1 1
#define EPILOGUE_GIVEN_EPI_C(type)
#define EPILOGUE_GIVEN_1(type) , type g0, type g1, type g2, type g3
#define EPILOGUE_FLOATS_EPI_C
#define EPILOGUE_FLOATS_1                                                                                    \
    , __global const float *channel0, __global const float *channel1, __global const float *channel2,        \
        __global const float *channel3
#define EPILOGUE_PASS_EPI_C
#define EPILOGUE_PASS_1 , channel0, channel1, channel2, channel3
#define EPILOGUE_GIVE_EPI_C
#define EPILOGUE_GIVE_1 , g0, g1, g2, g3
#define EPILOGUE_VECTOR_GIVE_EPI_C(n)
#define EPILOGUE_VECTOR_GIVE_1(n)                                                                            \
    , (PASTE(float, n))(g0), (PASTE(float, n))(g1), (PASTE(float, n))(g2), (PASTE(float, n))(g3)
#define EPILOGUE_CHANNEL_EPI_C(c)
#define EPILOGUE_CHANNEL_1(c)                                                                                \
    float g0 = 0.0f, g1 = 0.0f, g2 = 0.0f, g3 = 0.0f;                                                        \
    {                                                                                                        \
        typedef float F;                                                                                     \
        const F h0 = channel0[c], h1 = channel1[c], h2 = channel2[c], h3 = channel3[c];                      \
        EPI_CHANNEL                                                                                          \
    }
#define EPILOGUE_VECTOR_CHANNEL_EPI_C(n, c)
#define EPILOGUE_VECTOR_CHANNEL_1(n, c)                                                                      \
    PASTE(float, n) g0 = (PASTE(float, n))(0.0f), g1 = g0, g2 = g0, g3 = g0;                                 \
    {                                                                                                        \
        typedef PASTE(float, n) F;                                                                           \
        const F h0 = VLOAD(float, n, channel0 + (c)), h1 = VLOAD(float, n, channel1 + (c)),                  \
                h2 = VLOAD(float, n, channel2 + (c)), h3 = VLOAD(float, n, channel3 + (c));                  \
        EPI_CHANNEL                                                                                          \
    }
