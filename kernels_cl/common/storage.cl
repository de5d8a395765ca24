// SPDX-License-Identifier: Apache-2.0
// Elements as they are stored and as they are computed with. A kernel file takes the storage of each tensor as a macro whose
// value is `float` (the default), `int`, `f16`, `bf16`, `u8`, `i64`, `b8`, `i8`, ... (runtime/tensor/dtypes.def; or `ushort`, `uchar` and
// `int2`, to move bytes as they are), declares the pointer with it, and goes through what stands here:
//
//     VALUE(T)             what a loaded element is: float, of u8 int, of i64 long, or int and the like themselves
//     LOAD(T, p)           the element at p                          STORE(T, v, p)       v to p
//     VLOAD(T, n, p)       n neighbours from p on, n 2, 4, 8, 16     VSTORE(T, n, v, p)   n values from p on
//     ALOAD(T, n, p)       VLOAD of global memory where p is a      ASTORE(T, n, v, p)   VSTORE, too: an access of n elements,
//                          multiple of n elements                                        where VLOAD may become n on GPUs
//
// For float, int, ushort and uchar these are the plain accesses. f16 is IEEE 754 binary16 and bf16 the upper half of a binary32;
// both are ushorts here and converted by integer arithmetic, so that no half type is needed, denormals are right on devices
// that have none in float, and what is stored is the nearest value, to even between two, infinity past the largest, on every
// device. vload_half and its kin are not used: PoCL 3.1 compiles those of vectors as if pointers were aligned to the vector,
// and dies.
//
// F16_WAY      by what a device converts f16 to the same bits as the integers do (runtime/device/f16.c has asked it; arithmetic is in
//              float all the same): 0 integers (default); 1 cl_khr_fp16; 2 NVIDIA's instructions in PTX, bf16's too (sm_80 up);
//              3 NVIDIA's for f16 alone
// F16_NATIVE   whether there is arithmetic in half, too
#ifndef F16_WAY
#define F16_WAY 0
#endif
#define F16_NATIVE (F16_WAY == 1)
// How far apart elements are. An embedded device may have no 64-bit integers (CLV_NO_INT64, which the library defines then); a
// tensor has fewer than 2^31 elements.
#ifdef CLV_NO_INT64
typedef int clv_offset;
#else
typedef long clv_offset;
typedef long i64;
#endif
typedef ushort f16;
typedef ushort bf16;
typedef uchar u8; // what is stored is within its range
typedef uchar b8; // 0 or 1
typedef char i8;

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

// 0x38000000 is 112 in float's exponent: the difference of the two biases. A denormal is made as 2^-14 + fraction * 2^-24 and
// then less 2^-14; back, adding 0.5 lets the float addition round at 2^-24.
#define STORAGE_CONVERSIONS(suffix, n)                                                                       \
    PASTE(float, n) float_of_f16##suffix(PASTE(ushort, n) stored) {                                          \
        const PASTE(uint, n) h = PASTE(convert_uint, n)(stored), m = h & 0x7fffu;                            \
        const PASTE(uint, n) normal = (m << 13) + 0x38000000u;                                               \
        const PASTE(float, n) small =                                                                        \
            PASTE(as_float, n)(normal + 0x00800000u) - (PASTE(float, n))(0x1p-14f);                          \
        PASTE(uint, n) bits = select(normal, normal + 0x38000000u, m >= 0x7c00u);                            \
        bits = select(bits, PASTE(as_uint, n)(small), m < 0x0400u);                                          \
        return PASTE(as_float, n)(bits | (h & 0x8000u) << 16);                                               \
    }                                                                                                        \
    PASTE(ushort, n) f16_of_float##suffix(PASTE(float, n) v) {                                               \
        const PASTE(uint, n) x = PASTE(as_uint, n)(v), m = x & 0x7fffffffu;                                  \
        const PASTE(uint, n) large = (m - 0x38000000u + 0x0fffu + ((m >> 13) & 1u)) >> 13;                   \
        const PASTE(uint, n) small = PASTE(as_uint, n)(PASTE(as_float, n)(m) + 0.5f) - 0x3f000000u;          \
        PASTE(uint, n)                                                                                       \
        h = select(min(large, (PASTE(uint, n))(0x7c00u)), small, m < 0x38800000u);                           \
        h = select(h, (PASTE(uint, n))(0x7e00u), m > 0x7f800000u);                                           \
        return PASTE(convert_ushort, n)(h | ((x >> 16) & 0x8000u));                                          \
    }                                                                                                        \
    PASTE(float, n) float_of_bf16##suffix(PASTE(ushort, n) stored) {                                         \
        return PASTE(as_float, n)(PASTE(convert_uint, n)(stored) << 16);                                     \
    }                                                                                                        \
    PASTE(ushort, n) bf16_of_float##suffix(PASTE(float, n) v) {                                              \
        const PASTE(uint, n) x = PASTE(as_uint, n)(v);                                                       \
        const PASTE(uint, n) rounded = x + 0x7fffu + ((x >> 16) & 1u);                                       \
        return PASTE(convert_ushort,                                                                         \
                     n)(select(rounded, x | 0x00400000u, (x & 0x7fffffffu) > 0x7f800000u) >> 16);            \
    }

STORAGE_CONVERSIONS(, )
STORAGE_CONVERSIONS(2, 2)
STORAGE_CONVERSIONS(4, 4)
STORAGE_CONVERSIONS(8, 8)
STORAGE_CONVERSIONS(16, 16)

// The device's own, of f16 (`half`) and bf16 (`bfloat`).
#if F16_WAY == 0
#define STORAGE_OF_F16 float_of_f16
#define STORAGE_TO_F16 f16_of_float
#else
#define STORAGE_OF_F16 float_of_half
#define STORAGE_TO_F16 half_of_float
#endif
#if F16_WAY != 2
#define STORAGE_OF_BF16 float_of_bf16
#define STORAGE_TO_BF16 bf16_of_float
#else
#define STORAGE_OF_BF16 float_of_bfloat
#define STORAGE_TO_BF16 bfloat_of_float
#endif

#if F16_WAY == 1
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define STORAGE_NATIVE(suffix, n)                                                                            \
    PASTE(float, n) float_of_half##suffix(PASTE(ushort, n) stored) {                                         \
        return PASTE(convert_float, n)(PASTE(as_half, n)(stored));                                           \
    }                                                                                                        \
    PASTE(ushort, n) half_of_float##suffix(PASTE(float, n) v) {                                              \
        return PASTE(as_ushort, n)(PASTE(PASTE(convert_half, n), _rte)(v));                                  \
    }
STORAGE_NATIVE(, )
STORAGE_NATIVE(2, 2)
STORAGE_NATIVE(4, 4)
STORAGE_NATIVE(8, 8)
STORAGE_NATIVE(16, 16)
#undef STORAGE_NATIVE
#elif F16_WAY >= 2
// A statement for 1, 2, 4 or 8 values, as compilers move no load across one and an access of several is to stay one. `what` names the
// conversion by integers, which tests/device/probe.c has in its place. ptxas makes one instruction of two to f16 or bf16.
#ifndef CVT1
#define CVT1(what, to, v) __asm(PTX_##what(%0, %1) : PTX_TO_##what(to) : PTX_FROM_##what(v))
#define CVT2(what, to, v)                                                                                    \
    __asm(PTX_##what(%0, %2) PTX_##what(%1, %3)                                                              \
          : PTX_TO_##what(to.x), PTX_TO_##what(to.y)                                                         \
          : PTX_FROM_##what(v.x), PTX_FROM_##what(v.y))
#define CVT4(what, to, v)                                                                                    \
    __asm(PTX_##what(%0, %4) PTX_##what(%1, %5) PTX_##what(%2, %6) PTX_##what(%3, %7)                        \
          : PTX_TO_##what(to.x), PTX_TO_##what(to.y), PTX_TO_##what(to.z), PTX_TO_##what(to.w)               \
          : PTX_FROM_##what(v.x), PTX_FROM_##what(v.y), PTX_FROM_##what(v.z), PTX_FROM_##what(v.w))
#define CVT8(what, to, v)                                                                                    \
    __asm(PTX_##what(%0, %8) PTX_##what(%1, %9) PTX_##what(%2, %10) PTX_##what(%3, %11)                      \
          PTX_##what(%4, %12) PTX_##what(%5, %13) PTX_##what(%6, %14) PTX_##what(%7, %15)                    \
          : PTX_TO_##what(to.s0), PTX_TO_##what(to.s1), PTX_TO_##what(to.s2), PTX_TO_##what(to.s3),          \
            PTX_TO_##what(to.s4), PTX_TO_##what(to.s5), PTX_TO_##what(to.s6), PTX_TO_##what(to.s7)           \
          : PTX_FROM_##what(v.s0), PTX_FROM_##what(v.s1), PTX_FROM_##what(v.s2), PTX_FROM_##what(v.s3),      \
            PTX_FROM_##what(v.s4), PTX_FROM_##what(v.s5), PTX_FROM_##what(v.s6), PTX_FROM_##what(v.s7))
#endif
#define PTX_float_of_f16(to, h) "cvt.f32.f16 " #to ", " #h "; "
#define PTX_f16_of_float(to, v) "cvt.rn.f16.f32 " #to ", " #v "; "
#define PTX_float_of_bf16(to, h) "{ .reg .b16 z; mov.b16 z, 0; mov.b32 " #to ", {z, " #h "}; } "
#define PTX_bf16_of_float(to, v) "cvt.rn.bf16.f32 " #to ", " #v "; "
#define PTX_TO_float_of_f16 "=f"
#define PTX_TO_f16_of_float "=h"
#define PTX_TO_float_of_bf16 "=f"
#define PTX_TO_bf16_of_float "=h"
#define PTX_FROM_float_of_f16 "h"
#define PTX_FROM_f16_of_float "f"
#define PTX_FROM_float_of_bf16 "h"
#define PTX_FROM_bf16_of_float "f"
#define STORAGE_BY_PTX(name, what, from, to_type, n)                                                         \
    PASTE(to_type, n) name##n(PASTE(from, n) v) {                                                            \
        PASTE(to_type, n) to;                                                                                \
        CVT##n(what, to, v);                                                                                 \
        return to;                                                                                           \
    }
#define STORAGE_PTX(name, what, from, to_type)                                                               \
    to_type name(from v) {                                                                                   \
        to_type to;                                                                                          \
        CVT1(what, to, v);                                                                                   \
        return to;                                                                                           \
    }                                                                                                        \
    STORAGE_BY_PTX(name, what, from, to_type, 2)                                                             \
    STORAGE_BY_PTX(name, what, from, to_type, 4)                                                             \
    STORAGE_BY_PTX(name, what, from, to_type, 8)                                                             \
    to_type##16 name##16(from##16 v) {                                                                       \
        return (to_type##16)(name##8(v.lo), name##8(v.hi));                                                  \
    }
STORAGE_PTX(float_of_half, float_of_f16, ushort, float)
STORAGE_PTX(half_of_float, f16_of_float, float, ushort)
#if F16_WAY == 2
STORAGE_PTX(float_of_bfloat, float_of_bf16, ushort, float)
STORAGE_PTX(bfloat_of_float, bf16_of_float, float, ushort)
#endif
#undef STORAGE_PTX
#undef STORAGE_BY_PTX
#endif

// A row for each: what lies in memory, what it is computed as, and the two made of each other; n is the number of them, nothing
// for one.
#define word_float float
#define value_float float
#define load_float(n, v) (v)
#define store_float(n, v) (v)

#define word_int int
#define value_int int
#define load_int(n, v) (v)
#define store_int(n, v) (v)

#define word_ushort ushort
#define value_ushort ushort
#define load_ushort(n, v) (v)
#define store_ushort(n, v) (v)

#define word_uchar uchar
#define value_uchar uchar
#define load_uchar(n, v) (v)
#define store_uchar(n, v) (v)

#define word_int2 int2 // alone: it has no vectors
#define value_int2 int2
#define load_int2(n, v) (v)
#define store_int2(n, v) (v)

#define word_f16 ushort
#define value_f16 float
#define load_f16(n, v) PASTE(STORAGE_OF_F16, n)(v)
#define store_f16(n, v) PASTE(STORAGE_TO_F16, n)(v)

#define word_bf16 ushort
#define value_bf16 float
#define load_bf16(n, v) PASTE(STORAGE_OF_BF16, n)(v)
#define store_bf16(n, v) PASTE(STORAGE_TO_BF16, n)(v)

#define word_i64 long
#define value_i64 long
#define load_i64(n, v) (v)
#define store_i64(n, v) (v)

#define word_u8 uchar
#define value_u8 int
#define load_u8(n, v) PASTE(convert_int, n)(v)
#define store_u8(n, v) PASTE(convert_uchar, n)(v)

#define word_i8 char
#define value_i8 int
#define load_i8(n, v) PASTE(convert_int, n)(v)
#define store_i8(n, v) PASTE(convert_char, n)(v)

#define word_b8 uchar
#define value_b8 int
#define load_b8(n, v) (PASTE(convert_int, n)((v) != (uchar)0) & 1) // of a vector the comparison is -1
#define store_b8(n, v) PASTE(convert_uchar, n)(v)

#define VALUE(T) PASTE(value_, T)
#define WORD(T) PASTE(word_, T)
#define LOAD(T, p) PASTE(load_, T)(, *(p))
#define STORE(T, v, p) (*(p) = PASTE(store_, T)(, v))
#define VLOAD(T, n, p) PASTE(load_, T)(n, PASTE(vload, n)(0, p))
#define VSTORE(T, n, v, p) PASTE(vstore, n)(PASTE(store_, T)(n, v), 0, p)
#define ALOAD(T, n, p) PASTE(load_, T)(n, *(__global const PASTE(WORD(T), n) *)(p))
#define ASTORE(T, n, v, p) (*(__global PASTE(WORD(T), n) *)(p) = PASTE(store_, T)(n, v))

#undef STORAGE_CONVERSIONS
