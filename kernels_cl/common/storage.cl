// SPDX-License-Identifier: Apache-2.0
// Elements as they are stored and as they are computed with. A kernel file takes the storage of each tensor as a macro whose
// value is `float` (the default), `int`, `f16` or `bf16` (or `ushort`, to move two bytes as they are), declares the pointer
// with it, and goes through what stands here:
//
//     VALUE(T)             what a loaded element is: float, or int and ushort for themselves
//     LOAD(T, p)           the element at p                          STORE(T, v, p)       v to p
//     VLOAD(T, n, p)       n neighbours from p on, n 2, 4, 8, 16     VSTORE(T, n, v, p)   n values from p on
//     ALOAD(T, n, p)       VLOAD of global memory where p is a      ASTORE(T, n, v, p)   VSTORE, too: an access of n elements,
//                          multiple of n elements                                        where VLOAD may become n on GPUs
//
// For float, int and ushort these are the plain accesses. f16 is IEEE 754 binary16 and bf16 the upper half of a binary32;
// both are ushorts here and converted by integer arithmetic, so that no half type is needed, denormals are right on devices
// that have none in float, and what is stored is the nearest value, to even between two, infinity past the largest, on every
// device. vload_half and its kin are not used: PoCL 3.1 compiles those of vectors as if pointers were aligned to the vector,
// and dies.
//
// F16_NATIVE   1: the device has cl_khr_fp16, and converts to the same bits as the integers (runtime/device/f16.c has asked it):
//              then its conversions are used. Arithmetic is in float all the same. Default 0
#ifndef F16_NATIVE
#define F16_NATIVE 0
#endif
// How far apart elements are. An embedded device may have no 64-bit integers (CLV_NO_INT64, which the library defines then); a
// tensor has fewer than 2^31 elements.
#ifdef CLV_NO_INT64
typedef int clv_offset;
#else
typedef long clv_offset;
#endif
typedef ushort f16;
typedef ushort bf16;

#define STORAGE_CAT_(a, b) a##b
#define STORAGE_CAT(a, b) STORAGE_CAT_(a, b)
#define STORAGE_TYPE(t, n) STORAGE_CAT(t, n)

// 0x38000000 is 112 in float's exponent: the difference of the two biases. A denormal is made as 2^-14 + fraction * 2^-24 and
// then less 2^-14; back, adding 0.5 lets the float addition round at 2^-24.
#define STORAGE_CONVERSIONS(suffix, n)                                                                       \
    STORAGE_TYPE(float, n) float_of_f16##suffix(STORAGE_TYPE(ushort, n) stored) {                            \
        const STORAGE_TYPE(uint, n) h = STORAGE_TYPE(convert_uint, n)(stored), m = h & 0x7fffu;              \
        const STORAGE_TYPE(uint, n) normal = (m << 13) + 0x38000000u;                                        \
        const STORAGE_TYPE(float, n) small =                                                                 \
            STORAGE_TYPE(as_float, n)(normal + 0x00800000u) - (STORAGE_TYPE(float, n))(0x1p-14f);            \
        STORAGE_TYPE(uint, n) bits = select(normal, normal + 0x38000000u, m >= 0x7c00u);                     \
        bits = select(bits, STORAGE_TYPE(as_uint, n)(small), m < 0x0400u);                                   \
        return STORAGE_TYPE(as_float, n)(bits | (h & 0x8000u) << 16);                                        \
    }                                                                                                        \
    STORAGE_TYPE(ushort, n) f16_of_float##suffix(STORAGE_TYPE(float, n) v) {                                 \
        const STORAGE_TYPE(uint, n) x = STORAGE_TYPE(as_uint, n)(v), m = x & 0x7fffffffu;                    \
        const STORAGE_TYPE(uint, n) large = (m - 0x38000000u + 0x0fffu + ((m >> 13) & 1u)) >> 13;            \
        const STORAGE_TYPE(uint, n) small =                                                                  \
            STORAGE_TYPE(as_uint, n)(STORAGE_TYPE(as_float, n)(m) + 0.5f) - 0x3f000000u;                     \
        STORAGE_TYPE(uint, n)                                                                                \
        h = select(min(large, (STORAGE_TYPE(uint, n))(0x7c00u)), small, m < 0x38800000u);                    \
        h = select(h, (STORAGE_TYPE(uint, n))(0x7e00u), m > 0x7f800000u);                                    \
        return STORAGE_TYPE(convert_ushort, n)(h | ((x >> 16) & 0x8000u));                                   \
    }                                                                                                        \
    STORAGE_TYPE(float, n) float_of_bf16##suffix(STORAGE_TYPE(ushort, n) stored) {                           \
        return STORAGE_TYPE(as_float, n)(STORAGE_TYPE(convert_uint, n)(stored) << 16);                       \
    }                                                                                                        \
    STORAGE_TYPE(ushort, n) bf16_of_float##suffix(STORAGE_TYPE(float, n) v) {                                \
        const STORAGE_TYPE(uint, n) x = STORAGE_TYPE(as_uint, n)(v);                                         \
        const STORAGE_TYPE(uint, n) rounded = x + 0x7fffu + ((x >> 16) & 1u);                                \
        return STORAGE_TYPE(convert_ushort,                                                                  \
                            n)(select(rounded, x | 0x00400000u, (x & 0x7fffffffu) > 0x7f800000u) >> 16);     \
    }

STORAGE_CONVERSIONS(, )
STORAGE_CONVERSIONS(2, 2)
STORAGE_CONVERSIONS(4, 4)
STORAGE_CONVERSIONS(8, 8)
STORAGE_CONVERSIONS(16, 16)

#if F16_NATIVE
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define STORAGE_NATIVE(suffix, n)                                                                            \
    STORAGE_TYPE(float, n) float_of_half##suffix(STORAGE_TYPE(ushort, n) stored) {                           \
        return STORAGE_TYPE(convert_float, n)(STORAGE_TYPE(as_half, n)(stored));                             \
    }                                                                                                        \
    STORAGE_TYPE(ushort, n) half_of_float##suffix(STORAGE_TYPE(float, n) v) {                                \
        return STORAGE_TYPE(as_ushort, n)(STORAGE_CAT(STORAGE_TYPE(convert_half, n), _rte)(v));              \
    }
STORAGE_NATIVE(, )
STORAGE_NATIVE(2, 2)
STORAGE_NATIVE(4, 4)
STORAGE_NATIVE(8, 8)
STORAGE_NATIVE(16, 16)
#undef STORAGE_NATIVE
#define STORAGE_OF_F16 float_of_half
#define STORAGE_TO_F16 half_of_float
#else
#define STORAGE_OF_F16 float_of_f16
#define STORAGE_TO_F16 f16_of_float
#endif

#define VALUE(T) STORAGE_CAT(value_, T)
#define value_float float
#define value_int int
#define value_ushort ushort
#define value_f16 float
#define value_bf16 float

#define LOAD(T, p) STORAGE_CAT(load_, T)(p)
#define load_float(p) (*(p))
#define load_int(p) (*(p))
#define load_ushort(p) (*(p))
#define load_f16(p) STORAGE_OF_F16(*(p))
#define load_bf16(p) float_of_bf16(*(p))

#define STORE(T, v, p) STORAGE_CAT(store_, T)(v, p)
#define store_float(v, p) (*(p) = (v))
#define store_int(v, p) (*(p) = (v))
#define store_ushort(v, p) (*(p) = (v))
#define store_f16(v, p) (*(p) = STORAGE_TO_F16(v))
#define store_bf16(v, p) (*(p) = bf16_of_float(v))

#define VLOAD(T, n, p) STORAGE_CAT(vload_, T)(n, p)
#define vload_float(n, p) STORAGE_CAT(vload, n)(0, p)
#define vload_int(n, p) STORAGE_CAT(vload, n)(0, p)
#define vload_ushort(n, p) STORAGE_CAT(vload, n)(0, p)
#define vload_f16(n, p) STORAGE_CAT(STORAGE_OF_F16, n)(STORAGE_CAT(vload, n)(0, p))
#define vload_bf16(n, p) STORAGE_CAT(float_of_bf16, n)(STORAGE_CAT(vload, n)(0, p))

#define VSTORE(T, n, v, p) STORAGE_CAT(vstore_, T)(n, v, p)
#define vstore_float(n, v, p) STORAGE_CAT(vstore, n)(v, 0, p)
#define vstore_int(n, v, p) STORAGE_CAT(vstore, n)(v, 0, p)
#define vstore_ushort(n, v, p) STORAGE_CAT(vstore, n)(v, 0, p)
#define vstore_f16(n, v, p) STORAGE_CAT(vstore, n)(STORAGE_CAT(STORAGE_TO_F16, n)(v), 0, p)
#define vstore_bf16(n, v, p) STORAGE_CAT(vstore, n)(STORAGE_CAT(bf16_of_float, n)(v), 0, p)

#define ALOAD(T, n, p) STORAGE_CAT(aload_, T)(n, p)
#define aload_float(n, p) (*(__global const STORAGE_CAT(float, n) *)(p))
#define aload_int(n, p) (*(__global const STORAGE_CAT(int, n) *)(p))
#define aload_ushort(n, p) (*(__global const STORAGE_CAT(ushort, n) *)(p))
#define aload_f16(n, p) STORAGE_CAT(STORAGE_OF_F16, n)(aload_ushort(n, p))
#define aload_bf16(n, p) STORAGE_CAT(float_of_bf16, n)(aload_ushort(n, p))

#define ASTORE(T, n, v, p) STORAGE_CAT(astore_, T)(n, v, p)
#define astore_float(n, v, p) (*(__global STORAGE_CAT(float, n) *)(p) = (v))
#define astore_int(n, v, p) (*(__global STORAGE_CAT(int, n) *)(p) = (v))
#define astore_ushort(n, v, p) (*(__global STORAGE_CAT(ushort, n) *)(p) = (v))
#define astore_f16(n, v, p) astore_ushort(n, STORAGE_CAT(STORAGE_TO_F16, n)(v), p)
#define astore_bf16(n, v, p) astore_ushort(n, STORAGE_CAT(bf16_of_float, n)(v), p)

#undef STORAGE_CONVERSIONS
#undef STORAGE_TYPE
