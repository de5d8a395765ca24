// SPDX-License-Identifier: Apache-2.0
// Does a device convert f16 and bf16 as storage.cl does by integers? runtime/device/f16.c asks, no op uses this.
//
//   f16_differences   item i takes the i-th of 64 parts of all f16: to float; and back from each such float, from next to it, and
//                     from around half way to its neighbour, by scalars and by vectors of each width. Of bf16, where they
//                     are converted otherwise, the same. out[i]: 0 if all is as it should be. Any NaN is as good as another
//
// There is nothing to ask where F16_WAY is 0.
#if F16_WAY

// What is added to a float's bits: between two normal f16 lie 0x2000 of them, between two bf16 0x10000. Between two denormal f16
// lies 2^-24, between bf16 the same as between others.
constant uint KERNEL(f16_steps)[6] = {0, 1, 0x0fff, 0x1000, 0x1001, 0x1fff};
constant uint KERNEL(bf16_steps)[6] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
constant ushort KERNEL(f16_lanes)[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

#define F16_NAN(h) (((h) & 0x7fffu) > 0x7c00u)
#define BF16_NAN(h) (((h) & 0x7fffu) > 0x7f80u)
// kind: f16 or bf16; of, to: what is asked
#define F16_WIDTH(kind, of, to, NAN, n)                                                                      \
    int KERNEL(kind##_stored_alike##n)(PASTE(float, n) v) {                                                  \
        const PASTE(uint, n) a = PASTE(convert_uint, n)(kind##_of_float##n(v));                              \
        const PASTE(uint, n) b = PASTE(convert_uint, n)(to##n(v));                                           \
        return all((a == b) | (NAN(a) & NAN(b)));                                                            \
    }                                                                                                        \
    int KERNEL(kind##_alike##n)(PASTE(ushort, n) h) {                                                        \
        const PASTE(float, n) a = float_of_##kind##n(h), b = of##n(h);                                       \
        const PASTE(float, n) middle = a + 0x1p-25f;                                                         \
        int alike = all((PASTE(as_uint, n)(a) == PASTE(as_uint, n)(b)) | ((a != a) & (b != b)));             \
        for (int k = 0; k < 6; k++)                                                                          \
            alike &= KERNEL(kind##_stored_alike##n)(                                                         \
                PASTE(as_float, n)(PASTE(as_uint, n)(a) + KERNEL(kind##_steps)[k]));                         \
        for (int k = 0; k < 3; k++)                                                                          \
            alike &= KERNEL(kind##_stored_alike##n)(                                                         \
                PASTE(as_float, n)(PASTE(as_uint, n)(middle) + (uint)(k - 1)));                              \
        return alike;                                                                                        \
    }
// A scalar beside the first lane of a vector; and all of them.
#define F16_WIDTHS(kind, of, to, NAN)                                                                        \
    F16_WIDTH(kind, of, to, NAN, 2)                                                                          \
    F16_WIDTH(kind, of, to, NAN, 4)                                                                          \
    F16_WIDTH(kind, of, to, NAN, 8)                                                                          \
    F16_WIDTH(kind, of, to, NAN, 16)                                                                         \
    int KERNEL(kind##_alike1)(ushort h) {                                                                    \
        const float a = float_of_##kind(h), b = of(h);                                                       \
        int alike = as_uint(a) == as_uint(b) || (a != a && b != b);                                          \
        for (int k = 0; k < 6; k++) {                                                                        \
            const float v = as_float(as_uint(a) + KERNEL(kind##_steps)[k]);                                  \
            const uint x = kind##_of_float(v), y = to(v);                                                    \
            alike &= x == y || (NAN(x) && NAN(y));                                                           \
        }                                                                                                    \
        return alike;                                                                                        \
    }                                                                                                        \
    int KERNEL(kind##_all_alike)(int first) {                                                                \
        int alike = 1;                                                                                       \
        for (int h = first; h < first + 1024; h++) alike &= KERNEL(kind##_alike1)((ushort)h);                \
        F16_ALL(kind, 2)                                                                                     \
        F16_ALL(kind, 4)                                                                                     \
        F16_ALL(kind, 8)                                                                                     \
        F16_ALL(kind, 16)                                                                                    \
        return alike;                                                                                        \
    }
#define F16_ALL(kind, n)                                                                                     \
    for (int h = first; h < first + 1024; h += n)                                                            \
        alike &=                                                                                             \
            KERNEL(kind##_alike##n)((PASTE(ushort, n))((ushort)h) + PASTE(vload, n)(0, KERNEL(f16_lanes)));

F16_WIDTHS(f16, float_of_half, half_of_float, F16_NAN)
#if F16_WAY == 2
F16_WIDTHS(bf16, float_of_bfloat, bfloat_of_float, BF16_NAN)
#endif

kernel void KERNEL(f16_differences)(global int *restrict out) {
    const int i = get_global_id(0), first = i * 1024;
    int alike = KERNEL(f16_all_alike)(first);
#if F16_WAY == 2
    alike &= KERNEL(bf16_all_alike)(first);
#endif
    out[i] = !alike;
}
#endif
