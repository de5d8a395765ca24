// SPDX-License-Identifier: Apache-2.0
// Does a device convert f16 as storage.cl does by integers? runtime/device/f16.c asks, no op uses this.
//
//   f16_differences   item i takes the i-th of 64 parts of all f16: to float; and back from each such float, from next to it, and
//                     from around half way to its neighbour, by scalars and by vectors of each width. out[i]: 0 if all is
//                     as it should be. Any NaN is as good as another
//
// There is nothing to ask where F16_NATIVE is 0.
#if F16_NATIVE

// What is added to a float's bits: between two normal f16 lie 0x2000 of them. Between two denormals lies 2^-24.
constant uint KERNEL(f16_steps)[6] = {0, 1, 0x0fff, 0x1000, 0x1001, 0x1fff};
constant ushort KERNEL(f16_lanes)[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

#define F16_NAN(h) (((h) & 0x7fffu) > 0x7c00u)
#define F16_WIDTH(n)                                                                                         \
    int KERNEL(f16_stored_alike##n)(PASTE(float, n) v) {                                                     \
        const PASTE(uint, n) a = PASTE(convert_uint, n)(f16_of_float##n(v));                                 \
        const PASTE(uint, n) b = PASTE(convert_uint, n)(half_of_float##n(v));                                \
        return all((a == b) | (F16_NAN(a) & F16_NAN(b)));                                                    \
    }                                                                                                        \
    int KERNEL(f16_alike##n)(PASTE(ushort, n) h) {                                                           \
        const PASTE(float, n) a = float_of_f16##n(h), b = float_of_half##n(h);                               \
        const PASTE(float, n) middle = a + 0x1p-25f;                                                         \
        int alike = all((PASTE(as_uint, n)(a) == PASTE(as_uint, n)(b)) | ((a != a) & (b != b)));             \
        for (int k = 0; k < 6; k++)                                                                          \
            alike &= KERNEL(f16_stored_alike##n)(                                                            \
                PASTE(as_float, n)(PASTE(as_uint, n)(a) + KERNEL(f16_steps)[k]));                            \
        for (int k = 0; k < 3; k++)                                                                          \
            alike &=                                                                                         \
                KERNEL(f16_stored_alike##n)(PASTE(as_float, n)(PASTE(as_uint, n)(middle) + (uint)(k - 1)));  \
        return alike;                                                                                        \
    }
F16_WIDTH(2)
F16_WIDTH(4)
F16_WIDTH(8)
F16_WIDTH(16)

// A scalar beside the first lane of a vector.
int KERNEL(f16_alike1)(ushort h) {
    const float a = float_of_f16(h), b = float_of_half(h);
    int alike = as_uint(a) == as_uint(b) || (a != a && b != b);
    for (int k = 0; k < 6; k++) {
        const float v = as_float(as_uint(a) + KERNEL(f16_steps)[k]);
        const uint x = f16_of_float(v), y = half_of_float(v);
        alike &= x == y || (F16_NAN(x) && F16_NAN(y));
    }
    return alike;
}

#define F16_ALL(n)                                                                                           \
    for (int h = first; h < first + 1024; h += n)                                                            \
        alike &= KERNEL(f16_alike##n)((PASTE(ushort, n))((ushort)h) + PASTE(vload, n)(0, KERNEL(f16_lanes)));

kernel void KERNEL(f16_differences)(global int *restrict out) {
    const int i = get_global_id(0), first = i * 1024;
    int alike = 1;
    for (int h = first; h < first + 1024; h++) alike &= KERNEL(f16_alike1)((ushort)h);
    F16_ALL(2)
    F16_ALL(4)
    F16_ALL(8)
    F16_ALL(16)
    out[i] = !alike;
}
#endif
