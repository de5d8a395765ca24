// SPDX-License-Identifier: Apache-2.0
// PREFETCH(p) asks the memory for the line at p, PREFETCH_STORE(p) in order to write there, for kernels of CPU-class devices that
// gather short runs: a processor sees a long run coming by itself, and waits for each of many short ones. Nothing need be at p: a
// prefetch never fails. Where the compiler is none for a processor known to have it, it is nothing; OpenCL's own prefetch() is
// nothing in PoCL.
#if defined(__clang__) && (defined(__x86_64__) || defined(__aarch64__))
#define PREFETCH(p) __builtin_prefetch((const void *)(size_t)(p))
#define PREFETCH_STORE(p) __builtin_prefetch((const void *)(size_t)(p), 1)
#else
#define PREFETCH(p)
#define PREFETCH_STORE(p)
#endif
