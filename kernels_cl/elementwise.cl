// SPDX-License-Identifier: Apache-2.0
// One expression over every element, inputs broadcast against each other. The expression comes from
// runtime/ops/elementwise.def (or a chain of them), as the macro EW_EXPR.
//
//   elementwise_plain   item i makes output i; its place in each input by EW_RANK dimensions and strides
//   elementwise_rows    output as rows of `inner` elements, in two levels (rows / d1, d1); an item does some
//                       rows, or a chunk of one, by vectors of EW_VW; an input steps by 1 along a row, or not
//   elementwise_fours   item i makes four outputs from 4i on, of any row: inputs that lie as the output are read as vectors, the
//                       others' places are found as in plain. EW_VW is 4
//
// EW_N       number of inputs, 0..3 (default 1)
// EW_TO      how the output is stored, common/storage.cl (default float); EW_T0..EW_T2 the inputs
// EW_X0..2   names of the inputs in the expression (defaults x, b, c)
// EW_EXPR    the expression (default x): over EW_X0..2, P0, P1 and the words explained in elementwise.def
// EW_RANK    plain: dimensions, 1..8 (default 1)
// EW_VW      rows: vector width, 2, 4, 8 or 16 (default 16)
// EW_U0..2   rows: 1 if that input does not step along a row (default 0)
// EW_F0..2   fours: 1 if that input lies as the output (default 0)
// EW_ACCESS  rows: A where every vector lies at a multiple of EW_VW elements, else V (default; common/storage.cl)
// EPI_*      what is done to the result besides: common/epilogue.cl
//
// The output may be the same memory as an input of the same size: no restrict, and each element is read
// before it is written, by the same item.
#define EW_N 1
#define EW_TO float
#define EW_T0 float
#define EW_T1 float
#define EW_T2 float
#define EW_X0 x
#define EW_X1 b
#define EW_X2 c
#define EW_EXPR x
#define EW_RANK 1
#define EW_VW 16
#define EW_ACCESS V
#define EW_U0 0
#define EW_U1 0
#define EW_U2 0
#define EW_F0 0
#define EW_F1 0
#define EW_F2 0

EPILOGUE_FUNCTION(KERNEL(epilogue), VALUE(EW_TO))
EPILOGUE_FUNCTION(KERNEL(epilogue_vector), PASTE(VALUE(EW_TO), EW_VW))

// The words of the expressions that are not in common/epilogue.cl. EW_W is the width at hand: nothing for scalars, or EW_VW.
#define F PASTE(float, EW_W)
#define I PASTE(int, EW_W)
#define BOOL(c) (PASTE(convert_int, EW_W)(c) & 1)
#define CAST(v) PASTE(to_, EW_TO)(v)
#define to_float(v) PASTE(convert_float, EW_W)(v)
#define to_f16 to_float
#define to_bf16 to_float
#define to_int(v) PASTE(PASTE(convert_int, EW_W), _sat_rtz)(v)
#define to_i64(v) PASTE(PASTE(convert_long, EW_W), _sat_rtz)(v)
#define to_u8(v) clamp(to_int(v), (I)(0), (I)(255))
#define to_i8(v) clamp(to_int(v), (I)(-128), (I)(127))
#define to_b8(v) BOOL((v) != 0)
#undef FMOD
#define FMOD(a, b) PASTE(fmod_, EW_TO)(a, b)
#define fmod_float(a, b) fmod(a, b)
#define fmod_f16 fmod_float
#define fmod_bf16 fmod_float
// By 0 and -1, which processors do not divide everything by, nothing is left: as by 1.
#define fmod_int(a, b) ((a) % select((b), (I)(1), (I)(((b) == 0) | ((b) == -1))))

// Lists over the inputs that are there.
#if EW_N == 0
#define EW_INPUTS(M)
#elif EW_N == 1
#define EW_INPUTS(M) M(0)
#elif EW_N == 2
#define EW_INPUTS(M) M(0) M(1)
#else
#define EW_INPUTS(M) M(0) M(1) M(2)
#endif
#define EW_VALUE(k) PASTE(VALUE(EW_T##k), EW_W) EW_X##k,
#define EW_POINTER(k) const global EW_T##k *in##k,

#define EW_W
VALUE(EW_TO) KERNEL(elementwise_one)(EW_INPUTS(EW_VALUE) float p0, float p1) {
    return EW_EXPR;
}
#undef EW_W
#define EW_W EW_VW
PASTE(VALUE(EW_TO), EW_VW) KERNEL(elementwise_vector)(EW_INPUTS(EW_VALUE) float p0, float p1) {
    return EW_EXPR;
}
#undef EW_W

// Lists over the dimensions, outermost first, and all but the outermost from the innermost out.
#define EW_DIMS_1(M)
#define EW_DIMS_2(M) M(1)
#define EW_DIMS_3(M) M(2) M(1)
#define EW_DIMS_4(M) M(3) EW_DIMS_3(M)
#define EW_DIMS_5(M) M(4) EW_DIMS_4(M)
#define EW_DIMS_6(M) M(5) EW_DIMS_5(M)
#define EW_DIMS_7(M) M(6) EW_DIMS_6(M)
#define EW_DIMS_8(M) M(7) EW_DIMS_7(M)
#define EW_DIMS(M) PASTE(EW_DIMS_, EW_RANK)(M)
#define EW_DIM_PARAM(k) int d##k,
#define EW_STRIDE_PARAM0(d) int s0_##d,
#define EW_STRIDE_PARAM1(d) int s1_##d,
#define EW_STRIDE_PARAM2(d) int s2_##d,
#define EW_STRIDE_PARAMS(k) EW_DIMS(EW_STRIDE_PARAM##k) int s##k##_0,
#define EW_SPLIT(k)                                                                                          \
    const int i##k = rest % d##k;                                                                            \
    rest /= d##k;
// clang-format off
#define EW_STEP0(d) + i##d * s0_##d
#define EW_STEP1(d) + i##d * s1_##d
#define EW_STEP2(d) + i##d * s2_##d
// clang-format on
#define EW_LOAD(k) LOAD(EW_T##k, in##k + (rest * s##k##_0 EW_DIMS(EW_STEP##k))),

kernel void KERNEL(elementwise_plain)(global EW_TO *out, EW_INPUTS(EW_POINTER) int n,
                                      EW_DIMS(EW_DIM_PARAM) EW_INPUTS(EW_STRIDE_PARAMS) float p0,
                                      float p1 EPILOGUE_PARAMS) {
    const int i = get_global_id(0);
    if (i >= n) return;
    int rest = i;
    EW_DIMS(EW_SPLIT)
    const VALUE(EW_TO) v = KERNEL(elementwise_one)(EW_INPUTS(EW_LOAD) p0, p1);
    STORE(EW_TO, KERNEL(epilogue)(v EPILOGUE_AT(i)), out + i);
}

// ---- fours
#define EW_PLACE(k, e)                                                                                       \
    {                                                                                                        \
        int rest = first + e;                                                                                \
        EW_DIMS(EW_SPLIT)                                                                                    \
        each##k[e] = LOAD(EW_T##k, in##k + (rest * s##k##_0 EW_DIMS(EW_STEP##k)));                           \
    }
#define EW_FOUR_1(k) const PASTE(VALUE(EW_T##k), 4) four##k = ALOAD(EW_T##k, 4, in##k + first);
#define EW_FOUR_0(k)                                                                                         \
    VALUE(EW_T##k) each##k[4];                                                                               \
    EW_PLACE(k, 0) EW_PLACE(k, 1) EW_PLACE(k, 2) EW_PLACE(k, 3)                                              \
    const PASTE(VALUE(EW_T##k), 4) four##k = vload4(0, each##k);
#define EW_FOUR(k) PASTE(EW_FOUR_, EW_F##k)(k)
#define EW_GIVE_FOUR(k) four##k,

kernel void KERNEL(elementwise_fours)(global EW_TO *out, EW_INPUTS(EW_POINTER) int n,
                                      EW_DIMS(EW_DIM_PARAM) EW_INPUTS(EW_STRIDE_PARAMS) float p0,
                                      float p1 EPILOGUE_PARAMS) {
    const int first = (int)get_global_id(0) * 4;
#if EW_VW == 4
    if (first + 4 <= n) {
        EW_INPUTS(EW_FOUR)
        const PASTE(VALUE(EW_TO), 4) v = KERNEL(elementwise_vector)(EW_INPUTS(EW_GIVE_FOUR) p0, p1);
        ASTORE(EW_TO, 4, KERNEL(epilogue_vector)(v EPILOGUE_VECTOR_AT(4, first)), out + first);
        return;
    }
#endif
    for (int i = first; i < n; i++) {
        int rest = i;
        EW_DIMS(EW_SPLIT)
        const VALUE(EW_TO) v = KERNEL(elementwise_one)(EW_INPUTS(EW_LOAD) p0, p1);
        STORE(EW_TO, KERNEL(epilogue)(v EPILOGUE_AT(i)), out + i);
    }
}

// ---- rows
#define EW_ROW_PARAMS(k) int s##k##_0, int s##k##_1,
#define EW_ROW_BASE(k) const global EW_T##k *row##k = in##k + (r / d1) * s##k##_0 + (r % d1) * s##k##_1;
#define EW_UNIFORM_1(k, j) (PASTE(VALUE(EW_T##k), EW_VW))(LOAD(EW_T##k, row##k)),
#define EW_UNIFORM_0(k, j) PASTE(EW_ACCESS, LOAD)(EW_T##k, EW_VW, row##k + j),
#define EW_ROW_VECTOR(k) PASTE(EW_UNIFORM_, EW_U##k)(k, j)
#define EW_ROW_ONE(k) LOAD(EW_T##k, row##k + (EW_U##k ? 0 : j)),

kernel void KERNEL(elementwise_rows)(global EW_TO *out, EW_INPUTS(EW_POINTER) int rows, int rows_per_item,
                                     int d1, int inner, int chunk, int chunks,
                                     EW_INPUTS(EW_ROW_PARAMS) float p0, float p1 EPILOGUE_PARAMS) {
    const int id = get_global_id(0);
    const int begin = (id % chunks) * chunk;
    const int end = inner - begin > chunk ? begin + chunk : inner;
    const int first = (id / chunks) * rows_per_item;
    if (first >= rows) return;
    const int last = rows - first > rows_per_item ? first + rows_per_item : rows;
    for (int r = first; r < last; r++) {
        EW_INPUTS(EW_ROW_BASE)
        global EW_TO *to = out + r * inner;
        int j = begin;
        for (; end - j >= EW_VW; j += EW_VW) {
            const PASTE(VALUE(EW_TO), EW_VW) v = KERNEL(elementwise_vector)(EW_INPUTS(EW_ROW_VECTOR) p0, p1);
            PASTE(EW_ACCESS, STORE)
            (EW_TO, EW_VW, KERNEL(epilogue_vector)(v EPILOGUE_VECTOR_AT(EW_VW, r * inner + j)), to + j);
        }
        for (; j < end; j++) {
            const VALUE(EW_TO) v = KERNEL(elementwise_one)(EW_INPUTS(EW_ROW_ONE) p0, p1);
            STORE(EW_TO, KERNEL(epilogue)(v EPILOGUE_AT(r * inner + j)), to + j);
        }
    }
}
