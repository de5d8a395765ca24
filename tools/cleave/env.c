// SPDX-License-Identifier: Apache-2.0
// The environment, as a bug report needs it. It says nothing of persons: home folders
// are ~, and only those variables of the environment are listed that change what Cleave, the OpenCL loader or
// a driver does.
#define _GNU_SOURCE // sched_getaffinity, dl_iterate_phdr
#include "checks/checks.h"

#include <dirent.h>
#include <link.h>
#include <stdarg.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

extern char **environ;

enum { TEXT_BYTES = 4096 };

// Of Cleave, of OpenCL's loader, of drivers and the compilers in them, of threads.
static const char *const prefixes[] = {
    "CLEAVE_",   "OCL_",  "OPENCL_", "POCL_", "RUSTICL_", "MESA_", "LP_", "CUDA_", "GPU_",
    "HSA_",      "ROCR_", "AMD_",    "SYCL_", "ZE_",      "NEO",   "CL_", "OMP_",  "XDG_CACHE_HOME=",
    "NO_COLOR=", "TERM=", "LC_ALL=", "LANG="};

// ---- what is private --------------------------------------------------------------------------------------

/** Replace a text wherever it stands as the beginning of names of files. */
static void replace(char *text, const char *what, const char *with) {
    size_t n = strlen(what), m = strlen(with);
    for (char *at = text; n > 1 && (at = strstr(at, what)); at += m) {
        if (at[n] && at[n] != '/' && at[n] != ':' && at[n] != ',') { // /home/ann is not /home/anna
            at += n - m;
            continue;
        }
        memmove(at + m, at + n, strlen(at + n) + 1);
        memcpy(at, with, m);
    }
}

/** Home folders, also of others: `/home/NAME` and `/Users/NAME`. */
static void hide_homes(char *text) {
    static const char *const roots[] = {"/home/", "/Users/"};
    const char *home = getenv("HOME");
    if (home) replace(text, home, "~");
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        size_t n = strlen(roots[i]);
        for (char *at = text; (at = strstr(at, roots[i])); at++) {
            size_t name = strcspn(at + n, "/:, ");
            memmove(at + 1, at + n + name, strlen(at + n + name) + 1);
            *at = '~';
        }
    }
}

static void show(char *out, size_t bytes, const char *format, ...) {
    va_list args;
    va_start(args, format);
    clv__format_shown(out, bytes, 0, format, args);
    va_end(args);
}

/** A text without what is private, and without bytes that JSON cannot hold. */
static json_t *text_json(const char *text) {
    char clean[TEXT_BYTES];
    show(clean, sizeof clean, "%s", text ? text : "");
    for (char *at = clean; *at; at++)
        if (*at == '\n' || *at == '\t') *at = ' ';
    hide_homes(clean);
    json_t *string = json_string(clean);
    for (char *at = clean; !string && *at; at++)
        if ((unsigned char)*at >= 0x80) *at = '?';
    return string ? string : json_string(clean);
}

// ---- files of the system ----------------------------------------------------------------------------------

/** What follows the first `key` at the beginning of a line of a file, without blanks and quotes around it; ""
 *  if nothing. */
static const char *line_of(const char *path, const char *key, char text[256]) {
    FILE *file = fopen(path, "r");
    *text = 0;
    if (!file) return text;
    char line[1024];
    while (!*text && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, strlen(key)) != 0) continue;
        char *value = line + strlen(key);
        value += strspn(value, " \t:=\"");
        value[strcspn(value, "\"\n")] = 0;
        snprintf(text, 256, "%s", value);
    }
    fclose(file);
    return text;
}

/** A number of KiB in /proc/meminfo as bytes. */
static json_t *meminfo(const char *key) {
    char text[256];
    line_of("/proc/meminfo", key, text);
    return *text ? json_integer((json_int_t)strtoll(text, NULL, 10) * 1024) : json_null();
}

/** The limit of this process's group, where there is one. */
static json_t *memory_limit(void) {
    static const char *const files[] = {"/sys/fs/cgroup/memory.max",
                                        "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    char text[256];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        long long limit = strtoll(line_of(files[i], "", text), NULL, 10);
        if (limit > 0 && limit < 1ll << 60) return json_integer(limit);
    }
    return json_null();
}

static json_t *system_json(void) {
    char os[256], cpu[256], libc[64] = "";
#ifdef _CS_GNU_LIBC_VERSION
    confstr(_CS_GNU_LIBC_VERSION, libc, sizeof libc);
#endif
    struct utsname names = {0};
    cpu_set_t usable;
    CPU_ZERO(&usable);
    int n_usable = sched_getaffinity(0, sizeof usable, &usable) ? 0 : CPU_COUNT(&usable);
    uname(&names);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:i, s:o, s:o, s:o}", "os",
                     line_of("/etc/os-release", "PRETTY_NAME", os), "kernel", names.sysname, "release",
                     names.release, "machine", names.machine, "libc", libc, "cpu",
                     line_of("/proc/cpuinfo", "model name", cpu), "processors",
                     (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "usable_processors", n_usable, "memory_bytes",
                     meminfo("MemTotal"), "available_bytes", meminfo("MemAvailable"), "limit_bytes",
                     memory_limit());
}

// ---- the parts --------------------------------------------------------------------------------------------

static json_t *build_json(void) {
#ifdef CLEAVE_OPENCL
    const bool opencl = true;
#else
    const bool opencl = false;
#endif
#ifdef CLEAVE_CLBLAST
    const bool clblast = true;
#else
    const bool clblast = false;
#endif
#ifdef CLEAVE_INFERENCE
    const bool inference = true;
#else
    const bool inference = false;
#endif
#ifdef __clang__
    const char *compiler = "clang " __clang_version__;
#else
    const char *compiler = "gcc " __VERSION__;
#endif
    return json_pack("{s:s, s:s, s:s, s:s, s:b, s:b, s:b}", "version", clv_version(), "build", CLEAVE_BUILD,
                     "sanitizers", CLEAVE_SANITIZED, "compiler", compiler, "opencl", opencl, "clblast",
                     clblast, "inference", inference);
}

static int on_library(struct dl_phdr_info *info, size_t size, void *list) {
    (void)size;
    char file[TEXT_BYTES];
    if (!info->dlpi_name || info->dlpi_name[0] != '/') return 0;
    json_array_append_new(list, text_json(realpath(info->dlpi_name, file) ? file : info->dlpi_name));
    return 0;
}

/** The drivers that the loader knows of: what stands in the .icd files. */
static json_t *vendors_json(void) {
    static const char usual[] = "/etc/OpenCL/vendors";
    const char *folder = getenv("OCL_ICD_VENDORS");
    if (!folder || !*folder) folder = usual;
    json_t *vendors = json_object();
    DIR *entries = opendir(folder);
    if (!entries && folder != usual)
        json_object_set_new(vendors, "OCL_ICD_VENDORS", text_json(folder)); // a driver
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        char path[TEXT_BYTES], library[256];
        size_t n = strlen(entry->d_name);
        if (n < 4 || strcmp(entry->d_name + n - 4, ".icd") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        json_object_set_new(vendors, entry->d_name, text_json(line_of(path, "", library)));
    }
    if (entries) closedir(entries);
    return vendors;
}

static json_t *devices_json(clv_runtime *runtime) {
    json_t *devices = json_array();
    for (int i = 0; i < clv_runtime_info_get(runtime).n_devices; i++) {
        clv_device *device = clv_device_get(runtime, i);
        json_t *object = cli_device_json(clv_device_info_get(device));
        json_object_set_new(object, "quirks", json_string(clv_device_info_get(device)->quirks));
        json_object_set_new(object, "gemm", json_boolean(clv_device_info_get(device)->gemm));
        json_object_set_new(object, "local_memory", json_boolean(clv_device_info_get(device)->local_memory));
        json_object_set_new(object, "quarantine", cli_quarantine_json(device));
        json_array_append_new(devices, object);
    }
    return devices;
}

typedef struct cache_sum {
    int64_t programs, damaged, bytes;
} cache_sum;

static void on_program(void *user, const clv_cache_entry *entry) {
    cache_sum *sum = user;
    sum->programs++;
    sum->damaged += !entry->valid;
    sum->bytes += (int64_t)entry->bytes;
}

static json_t *cache_json(clv_runtime *runtime) {
    cache_sum sum = {0};
    clv_status status = clv_cache_list(runtime, on_program, &sum);
    return json_pack(
        "{s:o, s:o, s:I, s:I, s:I}", "folder", text_json(clv_runtime_info_get(runtime).cache_folder), "state",
        text_json(status == CLV_OK ? "can be read" : clv_runtime_error(runtime)), "programs",
        (json_int_t)sum.programs, "damaged", (json_int_t)sum.damaged, "bytes", (json_int_t)sum.bytes);
}

static json_t *environment_json(void) {
    json_t *variables = json_object();
    for (char **at = environ; *at; at++) {
        const char *equals = strchr(*at, '=');
        bool wanted = false;
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
            wanted |= !strncmp(*at, prefixes[i], strlen(prefixes[i]));
        if (!wanted || !equals) continue;
        char name[128];
        show(name, sizeof name, "%.*s", (int)(equals - *at), *at);
        json_object_set_new(variables, name, text_json(equals + 1));
    }
    return variables;
}

json_t *cli_env_json(const cli_session *session) {
    clv_runtime *runtime = session->runtime;
    json_t *faults = json_array();
    for (size_t i = 0; i < sizeof session->faults / sizeof *session->faults; i++)
        if (*session->faults[i]) json_array_append_new(faults, text_json(session->faults[i]));
    json_t *libraries = json_array();
    dl_iterate_phdr(on_library, libraries);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "faults", faults, "cleave", build_json(),
                     "system", system_json(), "devices", devices_json(runtime), "drivers", vendors_json(),
                     "cache", cache_json(runtime), "environment", environment_json(), "libraries", libraries);
}

// ---- as a person reads it ---------------------------------------------------------------------------------

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

void cli_env_name(const char *key, char *out, size_t bytes) {
    static const struct {
        const char *key, *name;
    } names[] = {{"usable_processors", "processors usable"},
                 {"available_bytes", "memory available"},
                 {"limit_bytes", "memory limit"},
                 {"max_alloc_bytes", "largest allocation"},
                 {"local_bytes", "local memory"},
                 {"local_memory", "local memory fast"},
                 {"max_work_group", "largest work-group"},
                 {"opencl", "OpenCL"},
                 {"opencl_c", "OpenCL C"},
                 {"clblast", "CLBlast"},
                 {"sub_groups", "sub-groups"},
                 {"sub_group_sizes", "sub-group sizes"},
                 {"platform", "platform number"},
                 {"device", "device number"},
                 {"bytes", "size"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(key, names[i].key)) {
            snprintf(out, bytes, "%s", names[i].name);
            return;
        }
    snprintf(out, bytes, "%.*s", (int)(strlen(key) - (ends_with(key, "_bytes") ? 6 : 0)), key);
    for (char *at = out; *at; at++)
        if (*at == '_') *at = ' ';
}

/** More of a list, with commas. */
static void add_item(char *out, size_t bytes, const char *name, const char *value) {
    size_t used = strlen(out);
    snprintf(out + used, bytes - used, "%s%s%s%s", used ? ", " : "", name, *name ? " " : "", value);
}

void cli_env_value(const char *key, const json_t *value, char *out, size_t bytes) {
    const json_int_t number = json_integer_value(value);
    const char *inner;
    json_t *member;
    size_t i;
    char name[48], text[256];
    *out = 0;
    if (json_is_string(value)) {
        snprintf(out, bytes, "%s", json_string_value(value));
        if (ends_with(key, "floats"))
            for (char *at = out; *at; at++)
                if (*at == '_') *at = ' ';
    } else if (json_is_integer(value) && ends_with(key, "bytes")) {
        snprintf(out, bytes, "%s", cli_bytes((uint64_t)number));
    } else if (json_is_integer(value) &&
               (number >= 0 || (strcmp(key, "platform") && strcmp(key, "device")))) {
        snprintf(out, bytes, "%lld", (long long)number);
    } else if (json_is_boolean(value)) {
        snprintf(out, bytes, "%s", json_is_true(value) ? "yes" : "no");
    } else if (json_is_object(value)) {
        json_object_foreach((json_t *)value, inner, member) {
            cli_env_name(inner, name, sizeof name);
            cli_env_value(inner, member, text, sizeof text);
            add_item(out, bytes, name, text);
        }
    } else if (json_is_array(value) && json_is_string(json_array_get(value, 0))) {
        json_array_foreach(value, i, member) {
            cli_env_value(key, member, text, sizeof text);
            add_item(out, bytes, "", text);
        }
    } else if (json_is_array(value)) {
        snprintf(out, bytes, "%zu", json_array_size(value));
    }
    if (!*out) snprintf(out, bytes, "-");
}
