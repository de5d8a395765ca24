// SPDX-License-Identifier: Apache-2.0
// The table of verbs of the OpenCL backend.
#include "opencl.h"

const clv__backend clv__backend_opencl = {
    .name = "opencl",
    .startup = clv__ocl_startup,
    .shutdown = clv__ocl_shutdown,
    .enumerate = clv__ocl_enumerate,
    .partition = clv__ocl_partition,
    .open = clv__ocl_open,
    .close = clv__ocl_close,
    .buffer_create = clv__ocl_buffer_create,
    .buffer_part = clv__ocl_buffer_part,
    .buffer_destroy = clv__ocl_buffer_destroy,
    .buffer_pointer = clv__ocl_buffer_pointer,
    .buffer_block = clv__ocl_buffer_block,
    .buffer_over = clv__ocl_buffer_over,
    .write = clv__ocl_write,
    .read = clv__ocl_read,
    .copy = clv__ocl_copy,
    .fill = clv__ocl_fill,
    .program_build = clv__ocl_program_build,
    .program_load = clv__ocl_program_load,
    .program_binary = clv__ocl_program_binary,
    .program_destroy = clv__ocl_program_destroy,
    .kernel_create = clv__ocl_kernel_create,
    .kernel_destroy = clv__ocl_kernel_destroy,
    .launch = clv__ocl_launch,
#ifdef CLEAVE_CLBLAST
    .gemm = clv__ocl_gemm,
#endif
    .wait_on_queue = clv__ocl_wait_on_queue,
    .record = clv__ocl_record,
    .event_wait = clv__ocl_event_wait,
    .elapsed = clv__ocl_elapsed,
    .event_destroy = clv__ocl_event_destroy,
    .flush = clv__ocl_flush,
    .synchronize = clv__ocl_synchronize,
    .still_runs = clv__ocl_still_runs,
    .silent = clv__ocl_silent,
    .abandon = clv__ocl_abandon,
};
