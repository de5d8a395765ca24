// SPDX-License-Identifier: Apache-2.0
//
// Weights of a convolution as gemm.cl with TAPS 2 reads them: blocks of TK neighbouring terms of each tap, one tap after the other.
//
// Entries: any work-group, an item an element
//   gemm_pack   i = (((z*M + m)*blocks + block)*taps + tap)*TK + k < size:
//               packed[i] = weight[z*a_z + m*a_m + (block*TK + k)*a_k2 + tap]
//
// Macros
//   T_IN         how weights are stored: float, f16 or bf16; default float
//   MATRIX_TYPE  as what they are packed: tf32, f16 or bf16, rounded as the unit wants them (common/matrix.cl), or float; default float
//   TK           terms of a tile; default 16
#define T_IN float
#define MATRIX_TYPE float
#define TK 16

#define MATRIX_STORE_float(v, p) *(p) = v;

__kernel void KERNEL(gemm_pack)(__global MATRIX_TYPE *restrict packed, __global const T_IN *restrict weight,
                                int size, int M, int blocks, int taps, int a_z, int a_m, int a_k2) {
    const int i = (int)get_global_id(0);
    if (i >= size) return;
    const int tap = i / TK % taps, block = i / TK / taps % blocks, row = i / TK / taps / blocks;
    const int at = row / M * a_z + row % M * a_m + (block * TK + i % TK) * a_k2 + tap;
    MATRIX_STORE(LOAD(T_IN, weight + at), packed + i)
}
