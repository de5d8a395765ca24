// SPDX-License-Identifier: Apache-2.0
// What is done to a result's elements before they are stored: rows of runtime/ops/elementwise.def, strung onto an op's own
// kernel by the plan, so that they cost neither a launch nor a pass over memory. A kernel file that takes part has, after its
// macro parameters,
//
//     EPILOGUE_FUNCTION(KERNEL(epilogue), float)            and, for vectors,     EPILOGUE_FUNCTION(KERNEL(epilogue16), float16)
//
// its last kernels end their parameters with EPILOGUE_PARAMS, and store
//
//     KERNEL(epilogue)(v EPILOGUE_AT(i))                    or     KERNEL(epilogue16)(v EPILOGUE_VECTOR_AT(16, i))
//
// where v is the value and i its place in the output. What follows are parameters of such a file, which it gives defaults:
//
// EPI_N      further inputs, each of the output's shape: 0, 1 or 2 (default 0)
// EPI_T0, 1  how they are stored (default float)
// EPI_BODY   statements over v, e0, e1 that leave the result in v (default: as it is). Each row is a statement of its own, so that
//            a compiler that contracts a * b + c within expressions gives the bits that separate launches give
//
// F is the type at hand, a float or a vector of floats; the words of the expressions are explained in elementwise.def.
#define K(v) ((F)(v##f))
#define P0 ((F)(p0))
#define P1 ((F)(p1))
#define SELECT(c, a, b) select((b), (a), (c))

#define EPILOGUE_CAT_(a, b) a##b
#define EPILOGUE_CAT(a, b) EPILOGUE_CAT_(a, b)
#define EPILOGUE_FUNCTION(name, type)                                                                        \
    type name(type v EPILOGUE_CAT(EPILOGUE_VALUES_, EPI_N)(type)) {                                          \
        typedef type F;                                                                                      \
        v = (F)(v);                                                                                          \
        EPI_BODY                                                                                             \
        return v;                                                                                            \
    }
#define EPILOGUE_VALUES_0(type)
#define EPILOGUE_VALUES_1(type) , type e0
#define EPILOGUE_VALUES_2(type) , type e0, type e1
#define EPILOGUE_PARAMS EPILOGUE_CAT(EPILOGUE_PARAMS_, EPI_N)
#define EPILOGUE_PARAMS_0
#define EPILOGUE_PARAMS_1 , __global const EPI_T0 *further0
#define EPILOGUE_PARAMS_2 , __global const EPI_T0 *further0, __global const EPI_T1 *further1
#define EPILOGUE_AT(i) EPILOGUE_CAT(EPILOGUE_AT_, EPI_N)(i)
#define EPILOGUE_AT_0(i)
#define EPILOGUE_AT_1(i) , LOAD(EPI_T0, further0 + (i))
#define EPILOGUE_AT_2(i) , LOAD(EPI_T0, further0 + (i)), LOAD(EPI_T1, further1 + (i))
#define EPILOGUE_VECTOR_AT(n, i) EPILOGUE_CAT(EPILOGUE_VECTOR_AT_, EPI_N)(n, i)
#define EPILOGUE_VECTOR_AT_0(n, i)
#define EPILOGUE_VECTOR_AT_1(n, i) , VLOAD(EPI_T0, n, further0 + (i))
#define EPILOGUE_VECTOR_AT_2(n, i) , VLOAD(EPI_T0, n, further0 + (i)), VLOAD(EPI_T1, n, further1 + (i))
