// SPDX-License-Identifier: Apache-2.0
// --ops: a shared library with ops, optimizers, models and losses of its own, which it registers.
#include "cli.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if !defined(CLEAVE_STATIC) && !defined(CLEAVE_INFERENCE)
/** A file that is there is meant, not one of that name in the folders of libraries; and it is a library. */
static int find_library(const char *file, char *path, size_t bytes) {
    char start[4] = "";
    struct stat info;
    snprintf(path, bytes, "%s%s", strchr(file, '/') || access(file, F_OK) != 0 ? "" : "./", file);
    if (stat(path, &info) != 0) return EXIT_DONE; // perhaps the loader finds one; else it says so
    FILE *stream = S_ISREG(info.st_mode) ? fopen(path, "rb") : NULL;
    const size_t n = stream ? fread(start, 1, sizeof start, stream) : 0;
    if (stream) fclose(stream);
    if (stream && (n < sizeof start || memcmp(start, "\177ELF", sizeof start) != 0))
        return cli_fail(EXIT_USAGE,
                        "'%s' is no shared library; --ops wants one (.so) whose function %s registers ops, "
                        "models or losses",
                        file, CLV_OPS_INIT);
    return EXIT_DONE;
}
#endif

/** It stays loaded: what is registered lies in it. */
int cli_load_library(clv_runtime *runtime, const char *file) {
#if defined(CLEAVE_STATIC) || defined(CLEAVE_INFERENCE)
    (void)runtime;
    return cli_fail(EXIT_USAGE, "this command was %s and cannot load '%s'",
#ifdef CLEAVE_STATIC
                    "linked statically",
#else
                    "built for inference alone (CLEAVE_INFERENCE)",
#endif
                    file);
#else
    union { // as POSIX has it: a pointer of dlsym is one of a function
        void *symbol;
        clv_ops_init_function call;
    } init;
    char path[4096];
    const int code = find_library(file, path, sizeof path);
    if (code != EXIT_DONE) return code;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return cli_fail(EXIT_USAGE, "cannot load the ops: %s", dlerror());
    init.symbol = dlsym(library, CLV_OPS_INIT);
    if (!init.symbol)
        return cli_fail(EXIT_USAGE, "'%s' has no function %s, which registers its ops", file, CLV_OPS_INIT);
    clv_status status = init.call(runtime);
    if (status == CLV_OK) return EXIT_DONE;
    cli_fail_status(runtime, status);
    return EXIT_USAGE;
#endif
}

int cli_load_own(const cli_args *args) {
    const clv_runtime_config config = {.no_opencl = true, .visible_devices = "", .partition = ""};
    clv_runtime *runtime;
    if (!args->custom_ops) return EXIT_DONE;
    clv_status status = clv_runtime_create(&config, &runtime);
    if (status != CLV_OK) return cli_fail(EXIT_FAILED, "no runtime to load '%s' with", args->custom_ops);
    const int code = cli_load_library(runtime, args->custom_ops);
    clv_runtime_destroy(runtime);
    return code;
}
