// SPDX-License-Identifier: Apache-2.0
// What is known of drivers and cannot be asked of them. The only place where vendors and drivers have names;
// whoever adds a line says how it was found (README.md beside this file).
#include <string.h>

#include "opencl.h"

static const struct {
    const char *platform; // begins so
    const char *driver;   // the driver version begins so; "" is any
    clv__ocl_quirk quirk;
} quirks[] = {
    {"Portable Computing Language",
     "",
     {.traits = {.caches_programs = true,
                 .compiles_at_launch = true,
                 .compiler = CLV__COMPILER_SOUND,
                 .build_threads = 1,
                 .host_memory = true},
      .keep_parts = true}},
    {"Oclgrind", "", {.traits = {.compiler = CLV__COMPILER_SOUND, .build_threads = 1}}},
    {"Intel(R) OpenCL", "", {.traits = {.compiler = CLV__COMPILER_SOUND, .host_memory = true}}},
    {"NVIDIA CUDA", "", {.traits = {.caches_programs = true}, .pointers = true}},
    {"rusticl", "", {.traits = {.loop_turns = 65535, .local_doubled = true, .host_memory = true}}},
};

// PoCL: its manual, "Environment variables" (POCL_CACHE_DIR, POCL_KERNEL_CACHE); without any of the three
// variables 3.1 keeps code in pocl/kcache below the temporary folder, and where it is told to keep none in
// pocl/uncached, whoever owns that. NVIDIA: CUDA programming guide, "CUDA environment variables" (its OpenCL
// shares the cache).
const clv__ocl_store clv__ocl_stores[CLV__OCL_STORES] = {
    {.driver = "PoCL",
     .folder = "pocl",
     .platform = "Portable Computing Language",
     .variable = "POCL_CACHE_DIR",
     .in_xdg = "pocl/kcache",
     .in_home = ".cache/pocl/kcache",
     .off_variable = "POCL_KERNEL_CACHE",
     .off = "0",
     .touches = true,
     .maps = true},
    {.driver = "NVIDIA's driver",
     .folder = "nvidia",
     .platform = "NVIDIA CUDA",
     .variable = "CUDA_CACHE_PATH",
     .in_home = ".nv/ComputeCache",
     .off_variable = "CUDA_CACHE_DISABLE",
     .off = "1"},
};

static bool begins(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

clv__ocl_quirk clv__ocl_quirks(const char *platform, const char *driver) {
    for (size_t i = 0; i < sizeof quirks / sizeof *quirks; i++) {
        if (begins(platform, quirks[i].platform) && begins(driver, quirks[i].driver)) return quirks[i].quirk;
    }
    return (clv__ocl_quirk){0};
}
