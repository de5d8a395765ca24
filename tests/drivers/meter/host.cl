// SPDX-License-Identifier: Apache-2.0
// Before each program that the meter compiles for the host: loads and stores of vectors whose accesses are seen, as those of PoCL's
// library are not compiled with the sanitizer. PoCL has a macro for each name, and for `vload` and `vstore` alone too: those are
// expanded before a kernel's own macro pastes a width to them, so all have to go (run.py refuses a program that still calls PoCL's).
// The sanitizer passes over accesses of more than 16 bytes: meter.c is told of those here, and `volatile` keeps them whole.
void meter_wide(ulong address, ulong bytes, int write);
#define METER_VECTOR(T, n, space)                                                                            \
    static inline __attribute__((overloadable, always_inline)) T##n meter_vload##n(size_t i, const space T *p) { \
        typedef T##n at __attribute__((aligned(sizeof(T))));                                                         \
        return *(const space at *)(p + i * n);                                                               \
    }                                                                                                        \
    static inline __attribute__((overloadable, always_inline)) void meter_vstore##n(T##n v, size_t i, space T *p) { \
        typedef T##n at __attribute__((aligned(sizeof(T))));                                                         \
        *(space at *)(p + i * n) = v;                                                                        \
    }
#define METER_WIDE(T, n, space)                                                                              \
    static inline __attribute__((overloadable, always_inline)) T##n meter_vload##n(size_t i, const space T *p) { \
        typedef T##n at __attribute__((aligned(sizeof(T))));                                                         \
        meter_wide((ulong)(p + i * n), sizeof(T##n), 0);                                                     \
        return *(const volatile space at *)(p + i * n);                                                      \
    }                                                                                                        \
    static inline __attribute__((overloadable, always_inline)) void meter_vstore##n(T##n v, size_t i, space T *p) { \
        typedef T##n at __attribute__((aligned(sizeof(T))));                                                         \
        meter_wide((ulong)(p + i * n), sizeof(T##n), 1);                                                     \
        *(volatile space at *)(p + i * n) = v;                                                               \
    }
#define METER_NARROW(T, n) METER_VECTOR(T, n, __global) METER_VECTOR(T, n, __local) METER_VECTOR(T, n, __private)
#define METER_BROAD(T, n) METER_WIDE(T, n, __global) METER_WIDE(T, n, __local) METER_VECTOR(T, n, __private)
#define METER_TYPES(n, words, shorts) words(float, n) words(int, n) words(uint, n) shorts(ushort, n)
METER_TYPES(2, METER_NARROW, METER_NARROW)
METER_TYPES(4, METER_NARROW, METER_NARROW)
METER_TYPES(8, METER_BROAD, METER_NARROW)
METER_TYPES(16, METER_BROAD, METER_BROAD)
#undef vload
#undef vstore
#undef vload2
#define vload2 meter_vload2
#undef vload4
#define vload4 meter_vload4
#undef vload8
#define vload8 meter_vload8
#undef vload16
#define vload16 meter_vload16
#undef vstore2
#define vstore2 meter_vstore2
#undef vstore4
#define vstore4 meter_vstore4
#undef vstore8
#define vstore8 meter_vstore8
#undef vstore16
#define vstore16 meter_vstore16
