// SPDX-License-Identifier: Apache-2.0
// Devices that are not here: what OpenCL tells of them there, as far as that was published or reported, for
// plans, for tables of what a device gets, and for tests of limits. Besides backends/opencl/quirks.c the only
// file of the library with names of makers.
//
// Sources, by column. peak_flops and peak_bytes_per_second: the makers' data sheets, f32, multiply-adds as
// two; 0 where the maker publishes none. Limits: the makers' programming guides for OpenCL, and clinfo's
// output as users posted it. Memory that is shared with the host is that of a common machine with the part. A
// figure here is no promise of a driver: what counts on a device is what it says itself.
//
//   cards.def     cards that people own: figures of the makers' product pages; limits of a family from the
//                 CUDA programming guide (compute capability 8.6 to 12.0), the ISA documents of RDNA 2 to 4
//                 (waves of 32; their FLOP/s count two at a time from RDNA 3 on), Intel's product pages
//                 (EUs * 8 * 2 * GHz, of B twice as wide). An APU's memory is what a common machine gives it
//   RX 580        AMD product page (6.17 TFLOP/s, 256 GB/s, 36 units); GCN 3 ISA document: waves of 64
//   Iris Xe       Intel product page of Core i7-1185G7 (96 EUs, 1.35 GHz), LPDDR4X-4266 on two channels
//   UHD 620       Intel product page of Core i5-8250U (24 EUs, 1.1 GHz), DDR4-2400 on two channels: 38.4 GB/s
//   Adreno 740    Qualcomm's OpenCL programming guide (80-NB295-11); Snapdragon 8 Gen 2
//                 product brief: 67.2 GB/s
//   Mali-G610     Arm's GPU data sheet (64 multiply-adds a core and cycle), four cores at 1 GHz;
//                 RK3588 brief: LPDDR4X-4224
//   GC7000L       NXP i.MX 8M data sheet: LPDDR4-3200, 32 bits
//   VideoCore IV  Broadcom's architecture guide (12 QPUs, 24 GFLOP/s at 250 MHz);
//                 VC4CL's documentation of its limits
//   TI C66x       66AK2H14 data sheet (eight cores, 19.2 GFLOP/s each at 1.2 GHz, DDR3-1600);
//                 TI OpenCL user's guide
#include "cards.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

enum {
    USUAL = CLV_FLOATS_DENORMALS | CLV_FLOATS_INF_NAN | CLV_FLOATS_ROUND_NEAREST | CLV_FLOATS_ROUND_ZERO |
            CLV_FLOATS_FMA
};

// What cards of a family have in common; the rest is a row of cards.def.
#define GPU                                                                                                  \
    .type = CLV_DEVICE_GPU, .local_bytes = 64 * KIB, .vector_width = 1, .floats = USUAL, .address_bits = 64, \
    .local_memory = true
#define OF_NVIDIA(gib)                                                                                       \
    .type = CLV_DEVICE_GPU, .opencl_c = "1.2", .local_bytes = 48 * KIB, .vector_width = 1, .floats = USUAL,  \
    .address_bits = 64, .local_memory = true, .memory_bytes = (gib)*GIB, .max_alloc_bytes = (gib)*GIB / 4,   \
    .max_work_group = 1024, .alignment_bytes = 512, .preferred_multiple = 32, .sub_group_sizes = {32},       \
    .argument_bytes = 4352, .fp64 = true, .matrix_units = CLV_MATRIX_TF32 | CLV_MATRIX_F16 | CLV_MATRIX_BF16
#define OF_RDNA(gib)                                                                                         \
    GPU, .opencl_c = "2.0", .memory_bytes = (gib)*GIB, .max_alloc_bytes = (gib)*GIB / 100 * 85,              \
         .max_work_group = 256, .alignment_bytes = 128, .preferred_multiple = 32, .sub_group_sizes = {32},   \
         .argument_bytes = 1024, .fp16 = true, .fp64 = true, .sub_groups = true
#define OF_RDNA_APU(gib) OF_RDNA(gib), .unified_memory = true
#define OF_ARC_A(gib)                                                                                        \
    GPU, .opencl_c = "1.2", .memory_bytes = (gib)*GIB, .max_alloc_bytes = 4 * GIB, .max_work_group = 1024,   \
         .alignment_bytes = 128, .preferred_multiple = 64, .sub_group_sizes = {8, 16, 32},                   \
         .argument_bytes = 2048, .fp16 = true, .sub_groups = true
#define OF_ARC_B(gib)                                                                                        \
    GPU, .opencl_c = "1.2", .memory_bytes = (gib)*GIB, .max_alloc_bytes = 4 * GIB, .max_work_group = 1024,   \
         .alignment_bytes = 128, .preferred_multiple = 64, .sub_group_sizes = {16, 32},                      \
         .argument_bytes = 2048, .fp16 = true, .fp64 = true, .sub_groups = true

const clv_device_info clv__null_cards[] = {
#define X(family, short, text, maker, gib, units, tera_flops, giga_bytes)                                    \
    {family(gib),                                                                                            \
     .name = "null:" short,                                                                                  \
     .label = text,                                                                                          \
     .vendor = maker,                                                                                        \
     .compute_units = units,                                                                                 \
     .peak_flops = tera_flops * 1e12,                                                                        \
     .peak_bytes_per_second = giga_bytes * 1e9},
#include "cards.def"
#undef X
    {.name = "null:rx-580",
     .label = "AMD Radeon RX 580",
     .vendor = "AMD",
     .type = CLV_DEVICE_GPU,
     .opencl_c = "2.0",
     .memory_bytes = 8 * GIB,
     .max_alloc_bytes = 4 * GIB,
     .local_bytes = 64 * KIB,
     .max_work_group = 256,
     .compute_units = 36,
     .alignment_bytes = 256,
     .vector_width = 1,
     .preferred_multiple = 64,
     .sub_group_sizes = {64},
     .floats = USUAL,
     .address_bits = 64,
     .argument_bytes = 1024,
     .fp16 = true,
     .fp64 = true,
     .sub_groups = true,
     .local_memory = true,
     .peak_flops = 6.17e12,
     .peak_bytes_per_second = 256e9},
    {.name = "null:iris-xe",
     .label = "Intel Iris Xe",
     .vendor = "Intel",
     .type = CLV_DEVICE_GPU,
     .opencl_c = "1.2",
     .memory_bytes = 12 * GIB,
     .max_alloc_bytes = 4 * GIB,
     .local_bytes = 64 * KIB,
     .max_work_group = 512,
     .compute_units = 96,
     .alignment_bytes = 128,
     .vector_width = 1,
     .preferred_multiple = 64,
     .sub_group_sizes = {8, 16, 32},
     .floats = USUAL,
     .address_bits = 64,
     .argument_bytes = 2048,
     .fp16 = true,
     .sub_groups = true,
     .local_memory = true,
     .unified_memory = true,
     .peak_flops = 2.07e12,
     .peak_bytes_per_second = 68.3e9},
    {.name = "null:uhd-620",
     .label = "Intel UHD Graphics 620",
     .vendor = "Intel",
     .type = CLV_DEVICE_GPU,
     .opencl_c = "1.2",
     .memory_bytes = 6 * GIB,
     .max_alloc_bytes = 3 * GIB,
     .local_bytes = 64 * KIB,
     .max_work_group = 256,
     .compute_units = 24,
     .alignment_bytes = 128,
     .vector_width = 1,
     .preferred_multiple = 32,
     .sub_group_sizes = {8, 16, 32},
     .floats = USUAL,
     .address_bits = 64,
     .argument_bytes = 1024,
     .fp16 = true,
     .fp64 = true,
     .sub_groups = true,
     .local_memory = true,
     .unified_memory = true,
     .peak_flops = 0.422e12,
     .peak_bytes_per_second = 38.4e9},
    {.name = "null:adreno-740",
     .label = "Qualcomm Adreno 740",
     .vendor = "Qualcomm",
     .type = CLV_DEVICE_GPU,
     .opencl_c = "2.0",
     .memory_bytes = 5 * GIB,
     .max_alloc_bytes = 884 * MIB,
     .local_bytes = 32 * KIB,
     .max_work_group = 1024,
     .compute_units = 6,
     .alignment_bytes = 128,
     .vector_width = 1,
     .preferred_multiple = 64,
     .floats = USUAL & ~CLV_FLOATS_DENORMALS,
     .address_bits = 64,
     .argument_bytes = 1024,
     .fp16 = true,
     .sub_groups = true,
     .local_memory = true,
     .unified_memory = true,
     .peak_bytes_per_second = 67.2e9},
    {.name = "null:mali-g610",
     .label = "Arm Mali-G610",
     .vendor = "Arm",
     .type = CLV_DEVICE_GPU,
     .opencl_c = "2.0",
     .memory_bytes = 8 * GIB,
     .max_alloc_bytes = 8 * GIB,
     .local_bytes = 32 * KIB,
     .max_work_group = 1024,
     .compute_units = 4,
     .alignment_bytes = 128,
     .vector_width = 1,
     .preferred_multiple = 16,
     .sub_group_sizes = {16},
     .floats = USUAL,
     .address_bits = 64,
     .argument_bytes = 1024,
     .fp16 = true,
     .sub_groups = true,
     .unified_memory = true,
     .peak_flops = 0.512e12,
     .peak_bytes_per_second = 33.8e9},
    {.name = "null:gc7000l",
     .label = "Vivante GC7000L",
     .vendor = "Vivante",
     .type = CLV_DEVICE_GPU,
     .opencl_c = "1.2",
     .memory_bytes = 256 * MIB,
     .max_alloc_bytes = 128 * MIB,
     .local_bytes = 32 * KIB,
     .max_work_group = 1024,
     .compute_units = 1,
     .alignment_bytes = 256,
     .vector_width = 4,
     .preferred_multiple = 16,
     .floats = CLV_FLOATS_INF_NAN | CLV_FLOATS_ROUND_NEAREST,
     .address_bits = 32,
     .argument_bytes = 1024,
     .unified_memory = true,
     .peak_bytes_per_second = 12.8e9},
    {.name = "null:videocore-iv",
     .label = "Broadcom VideoCore IV",
     .vendor = "Broadcom",
     .type = CLV_DEVICE_GPU,
     .opencl_c = "1.2",
     .memory_bytes = 16 * MIB,
     .max_alloc_bytes = 4 * MIB,
     .local_bytes = 4 * KIB,
     .max_work_group = 12,
     .compute_units = 1,
     .alignment_bytes = 128,
     .vector_width = 16,
     .preferred_multiple = 1,
     .floats = CLV_FLOATS_ROUND_ZERO,
     .address_bits = 32,
     .argument_bytes = 256,
     .embedded = true,
     .no_int64 = true,
     .unified_memory = true,
     .peak_flops = 24e9,
     .peak_bytes_per_second = 3.2e9},
    {.name = "null:ti-c66x",
     .label = "TI C66x DSP",
     .vendor = "Texas Instruments",
     .type = CLV_DEVICE_ACCELERATOR,
     .opencl_c = "1.1",
     .memory_bytes = 2 * GIB,
     .max_alloc_bytes = 1 * GIB,
     .local_bytes = 128 * KIB,
     .max_work_group = 1024,
     .compute_units = 8,
     .alignment_bytes = 128,
     .vector_width = 2,
     .preferred_multiple = 1,
     .floats = USUAL & ~(CLV_FLOATS_DENORMALS | CLV_FLOATS_FMA),
     .address_bits = 32,
     .argument_bytes = 1024,
     .fp64 = true,
     .local_memory = true,
     .unified_memory = true,
     .peak_flops = 153.6e9,
     .peak_bytes_per_second = 12.8e9},
    {0},
};
