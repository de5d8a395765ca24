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
     {.traits =
          {.caches_programs = true, .compiles_at_launch = true, .build_threads = 1, .host_memory = true},
      .keep_parts = true}},
    {"Oclgrind", "", {.traits = {.build_threads = 1}}},
    {"Intel(R) OpenCL", "", {.traits = {.host_memory = true}}},
    {"NVIDIA CUDA", "", {.traits = {.caches_programs = true}}},
    {"rusticl", "", {.traits = {.loop_turns = 65535, .host_memory = true}}},
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
