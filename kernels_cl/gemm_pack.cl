// SPDX-License-Identifier: Apache-2.0
//
// Operands of a convolution as gemm.cl with TAPS 2 and 3 reads them.
//
// Entries: any work-group
//   gemm_pack        weights: blocks of TK neighbouring terms of each tap, one tap after the other. An item an element,
//                    i = (((z*M + m)*blocks + block)*taps + tap)*TK + k < size:
//                    packed[i] = weight[z*a_z + m*a_m + (block*TK + k)*a_k2 + tap]
//   gemm_pack_image  images: the channels of a pixel lie side by side, and an edge of zeros lies around. An item has CHANNELS of them,
//                    i = ((z*planes + plane)*blocks + block)*positions + position < size:
//                    packed[((z*planes + plane)*positions + position)*blocks*CHANNELS + block*CHANNELS + c]
//                        = x[z*x_z + image*x_image + (block*CHANNELS + c)*x_channel + h*w_size + w], where that is inside, else 0
//                    position = (image*rows + row)*columns + column, of images and beyond them
//                    h = h_0 + row*h_step + plane / w_planes,  w = w_0 + column*w_step + plane % w_planes
//
// Macros
//   T_IN         how weights and images are stored: float, f16 or bf16; default float
//   MATRIX_TYPE  as what they are packed: tf32, f16 or bf16, rounded as the unit wants them (common/matrix.cl), or float; default float
//   TK           terms of a tile; default 16
//   CHANNELS     of an item: 2, 4, 8 or 16, of halves more than 2; default 16
#define T_IN float
#define MATRIX_TYPE float
#define TK 16
#define CHANNELS 16

#define MATRIX_STORE_float(v, p) *(p) = v;
#define MATRIX_TERMS_float 1
#define MATRIX_WORD_float_of_float(T, word, x, y)                                                            \
    word = as_uint(x);                                                                                       \
    (void)(y);
#define WORDS (CHANNELS / MATRIX_TERMS)

__kernel void KERNEL(gemm_pack)(__global MATRIX_TYPE *restrict packed, __global const T_IN *restrict weight,
                                int size, int M, int blocks, int taps, int a_z, int a_m, int a_k2) {
    const int i = (int)get_global_id(0);
    if (i >= size) return;
    const int tap = i / TK % taps, block = i / TK / taps % blocks, row = i / TK / taps / blocks;
    const int at = row / M * a_z + row % M * a_m + (block * TK + i % TK) * a_k2 + tap;
    MATRIX_STORE(LOAD(T_IN, weight + at), packed + i)
}

__kernel void KERNEL(gemm_pack_image)(__global MATRIX_TYPE *restrict packed, __global const T_IN *restrict x,
                                      int size, int positions, int blocks, int planes, int w_planes, int images,
                                      int rows, int columns, int x_z, int x_image, int x_channel, int h_0,
                                      int h_step, int h_size, int w_0, int w_step, int w_size) {
    const int i = (int)get_global_id(0);
    if (i >= size) return;
    const int position = i % positions, block = i / positions % blocks, z_plane = i / positions / blocks;
    const int image = position / columns / rows, plane = z_plane % planes;
    const int h = h_0 + position / columns % rows * h_step + plane / w_planes;
    const int w = w_0 + position % columns * w_step + plane % w_planes;
    T_IN v[CHANNELS];
    _Pragma("unroll") for (int c = 0; c < CHANNELS; c++) v[c] = 0;
    if ((image < images) & ((uint)h < (uint)h_size) & ((uint)w < (uint)w_size)) {
        x += z_plane / planes * x_z + image * x_image + block * CHANNELS * x_channel + h * w_size + w;
        _Pragma("unroll") for (int c = 0; c < CHANNELS; c++) v[c] = x[c * x_channel];
    }
    __global uint *to = (__global uint *)packed + ((z_plane * positions + position) * blocks + block) * WORDS;
    _Pragma("unroll") for (int c = 0; c < WORDS; c += 2) {
        uint word[2];
        MATRIX_WORD(T_IN, word[0], v[c * MATRIX_TERMS], v[(c + 1) * MATRIX_TERMS - 1])
        MATRIX_WORD(T_IN, word[1], v[(c + 1) * MATRIX_TERMS], v[(c + 2) * MATRIX_TERMS - 1])
        *(__global uint2 *)(to + c) = (uint2)(word[0], word[1]);
    }
}
