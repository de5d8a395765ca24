// SPDX-License-Identifier: Apache-2.0
// Matrix products by CLBlast: the library variant of matmul. It compiles its kernels at the first call
// (seconds), and its cache is not safe for threads before 1.6.1, so calls are made one at a time.
#include <clblast_c.h>

#include "opencl.h"

/** One product, or a batch of them at strides. The lock is held. */
static CLBlastStatusCode call_library(clv__bdevice *device, CLBlastTranspose ta, CLBlastTranspose tb,
                                      size_t m, size_t n, size_t k, float alpha, cl_mem a, size_t lda,
                                      size_t stride_a, cl_mem b, size_t ldb, size_t stride_b, float beta,
                                      cl_mem c, size_t ldc, size_t stride_c, size_t n_batch,
                                      cl_event *event) {
    cl_command_queue compute = device->queue[CLV__QUEUE_COMPUTE], *queue = &compute;
    if (n_batch == 1)
        return CLBlastSgemm(CLBlastLayoutRowMajor, ta, tb, m, n, k, alpha, a, 0, lda, b, 0, ldb, beta, c, 0,
                            ldc, queue, event);
    return CLBlastSgemmStridedBatched(CLBlastLayoutRowMajor, ta, tb, m, n, k, alpha, a, 0, lda, stride_a, b,
                                      0, ldb, stride_b, beta, c, 0, ldc, stride_c, n_batch, queue, event);
}

clv_status clv__ocl_gemm(clv__bdevice *device, bool transpose_a, bool transpose_b, int m, int n, int k,
                         float alpha, clv__bbuffer *a, int lda, int64_t stride_a, clv__bbuffer *b, int ldb,
                         int64_t stride_b, float beta, clv__bbuffer *c, int ldc, int64_t stride_c,
                         int n_batch, clv__error *error) {
    if (m == 0 || n == 0 || n_batch == 0) return CLV_OK;
    clv__ocl_state *state = device->state;
    clv__bevent *command; // of its last kernel; those before it are in that one's wait list
    CLV_TRY(clv__ocl_wait_now(device, CLV__QUEUE_COMPUTE, error)); // the library takes no wait list
    CLV_TRY(clv__ocl_command_begin(device, CLV__QUEUE_COMPUTE, NULL, error, &command));
    pthread_mutex_lock(&state->gemm_lock);
    state->gemm_used = true;
    CLBlastStatusCode code = call_library(
        device, transpose_a ? CLBlastTransposeYes : CLBlastTransposeNo,
        transpose_b ? CLBlastTransposeYes : CLBlastTransposeNo, (size_t)m, (size_t)n, (size_t)k, alpha,
        a->memory, (size_t)lda, (size_t)stride_a, b->memory, (size_t)ldb, (size_t)stride_b, beta, c->memory,
        (size_t)ldc, (size_t)stride_c, (size_t)n_batch, &command->event);
    pthread_mutex_unlock(&state->gemm_lock);
    if (code == CLBlastSuccess && command->event)
        return clv__ocl_command_end(command, "CLBlastSgemm", CL_SUCCESS, NULL, error);
    clv__ocl_command_drop(command);
    if (code == CLBlastSuccess) return CLV_OK; // nothing was enqueued
    // Down to -68 its numbers are OpenCL's, below they are its own.
    if (code > -1000) return clv__ocl_fail(error, device->label, "CLBlastSgemm", (cl_int)code);
    CLV_FAIL(error, CLV_E_UNSUPPORTED, "CLBlastSgemm of [%d,%d]x[%d,%d] on '%s': CLBlast error %d", m, k, k,
             n, device->label, (int)code);
}

void clv__ocl_gemm_forget(clv__ocl_state *state) {
    if (state->gemm_used) CLBlastClearCache(); // it holds programs, and so contexts, of ours
}
