// SPDX-License-Identifier: Apache-2.0
// OpenCL platforms and devices: what there is, what each can do and why it cannot be used, opening and
// closing. Platforms without devices and platforms that fail are normal; neither is an error of the process.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/patience.h"
#include "device/launch.h"
#include "opencl.h"

enum { MIN_ALIGNMENT = 64 }; // kernels read float16 vectors from the start of a tensor

typedef clv_status (*tell_function)(void *user, const clv__found *found);

// ---- Startup ----------------------------------------------------------------------------------------------

/** Every line of `left_out` is `P=reason` or `*=reason`. */
static bool left_out_is_well_formed(const char *lines) {
    while (*lines) {
        size_t digits = *lines == '*' ? 1 : strspn(lines, "0123456789");
        if (digits == 0 || lines[digits] != '=') return false;
        lines += strcspn(lines, "\n");
        if (*lines) lines++;
    }
    return true;
}

/** The reason why platform `number` is left out, copied to the arena; NULL if it is not. -1 asks for all of
 * OpenCL. */
static const char *left_out_reason(clv__ocl_state *state, int number) {
    for (const char *line = state->config->left_out; *line;
         line += strcspn(line, "\n"), line += *line == '\n') {
        if (number < 0 ? *line != '*' : (*line == '*' || atoi(line) != number)) continue;
        const char *reason = strchr(line, '=') + 1;
        size_t n = strcspn(reason, "\n");
        char *copy = clv__arena_alloc(&state->arena, n + 1, 1);
        if (copy) memcpy(copy, reason, n);
        return copy ? copy : "left out";
    }
    return NULL;
}

clv_status clv__ocl_startup(const clv_runtime_config *config, void **out, clv__error *error) {
    *out = NULL;
    if (!left_out_is_well_formed(config->left_out))
        CLV_FAIL(error, CLV_E_VALUE, "left_out wants lines of the form PLATFORM=reason, not '%.200s'",
                 config->left_out);
    clv__ocl_state *state = clv__alloc(1, sizeof *state);
    if (!state) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for the OpenCL backend");
    state->config = config; // the runtime's, which lives longer
    pthread_mutex_init(&state->gemm_lock, NULL);
    *out = state;
    return CLV_OK;
}

void clv__ocl_shutdown(void *opaque) {
    clv__ocl_state *state = opaque;
    if (!state) return;
#ifdef CLEAVE_CLBLAST
    clv__ocl_gemm_forget(state);
#endif
    for (clv__ocl_handle *part = state->parts; part; part = part->next) {
        if (!part->keep) clReleaseDevice(part->id);
    }
    clv__arena_reset(&state->arena);
    pthread_mutex_destroy(&state->gemm_lock);
    free(state);
}

// ---- Asking -----------------------------------------------------------------------------------------------

/** Questions to one device; the first answer that did not come is kept. */
typedef struct asking {
    clv__ocl_state *state;
    cl_device_id id;
    cl_int failed;
} asking;

static void ask(asking *to, cl_device_info what, size_t bytes, void *answer) {
    memset(answer, 0, bytes);
    cl_int code = clGetDeviceInfo(to->id, what, bytes, answer, NULL);
    if (code != CL_SUCCESS && to->failed == CL_SUCCESS) to->failed = code;
}

static cl_ulong ask_ulong(asking *to, cl_device_info what) {
    cl_ulong answer;
    ask(to, what, sizeof answer, &answer);
    return answer;
}

static cl_uint ask_uint(asking *to, cl_device_info what) {
    cl_uint answer;
    ask(to, what, sizeof answer, &answer);
    return answer;
}

static bool ask_bool(asking *to, cl_device_info what) {
    cl_bool answer;
    ask(to, what, sizeof answer, &answer);
    return answer == CL_TRUE;
}

/** A text of `n` bytes, which may or may not end in zeros, without blanks at its ends; in the arena.
 *  NULL if memory is out. */
static const char *tidy(clv__ocl_state *state, const char *raw, size_t n) {
    n = strnlen(raw, n);
    while (n && isspace((unsigned char)*raw)) raw++, n--;
    while (n && isspace((unsigned char)raw[n - 1])) n--;
    char *copy = clv__arena_alloc(&state->arena, n + 1, 1);
    if (copy) memcpy(copy, raw, n);
    return copy;
}

static const char *ask_text(asking *to, cl_device_info what) {
    size_t bytes = 0;
    cl_int code = clGetDeviceInfo(to->id, what, 0, NULL, &bytes);
    char *raw = code == CL_SUCCESS && bytes ? clv__alloc(bytes, 1) : NULL;
    const char *text = NULL;
    if (raw) code = clGetDeviceInfo(to->id, what, bytes, raw, NULL);
    if (raw && code == CL_SUCCESS) text = tidy(to->state, raw, bytes);
    if (code == CL_SUCCESS && bytes && !text) code = CL_OUT_OF_HOST_MEMORY; // ours, not the driver's
    if (code != CL_SUCCESS && to->failed == CL_SUCCESS) to->failed = code;
    free(raw);
    return text ? text : "";
}

/** Its name; "" with a code if it is not to be had. */
static const char *platform_name(clv__ocl_state *state, cl_platform_id platform, cl_int *code) {
    char raw[512];
    size_t bytes = 0;
    *code = clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof raw, raw, &bytes);
    if (*code != CL_SUCCESS) return "";
    const char *text = tidy(state, raw, bytes < sizeof raw ? bytes : sizeof raw);
    if (!text) *code = CL_OUT_OF_HOST_MEMORY;
    return text ? text : "";
}

/** Is the whole word `name` in a list of words? */
static bool has_extension(const char *list, const char *name) {
    size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += n) {
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == 0)) return true;
    }
    return false;
}

/** "OpenCL C 1.2 pocl" -> "1.2" in the arena; and as 102. */
static const char *version_of(clv__ocl_state *state, const char *text, int *number) {
    int major = 0, minor = 0;
    char plain[32] = "";
    if (sscanf(text, "OpenCL C %d.%d", &major, &minor) == 2)
        snprintf(plain, sizeof plain, "%d.%d", major, minor);
    *number = major * 100 + minor;
    const char *copy = clv__arena_strdup(&state->arena, plain);
    return copy ? copy : "";
}

static clv_device_type type_of(cl_device_type type) {
    if (type & CL_DEVICE_TYPE_GPU) return CLV_DEVICE_GPU;
    if (type & CL_DEVICE_TYPE_CPU) return CLV_DEVICE_CPU;
    if (type & CL_DEVICE_TYPE_ACCELERATOR) return CLV_DEVICE_ACCELERATOR;
    return CLV_DEVICE_OTHER;
}

/** A sentence in the arena. */
static const char *sentence(clv__ocl_state *state, const char *format, const char *a, int b) {
    char text[300];
    snprintf(text, sizeof text, format, a, b);
    const char *copy = clv__arena_strdup(&state->arena, text);
    return copy ? copy : "";
}

/** A number that only some drivers know; 0 where this one does not. */
static cl_uint ask_if_known(const asking *to, cl_device_info what) {
    size_t bytes = 0;
    cl_ulong answer = 0; // size_t or cl_uint, low bytes first
    if (clGetDeviceInfo(to->id, what, sizeof answer, &answer, &bytes) != CL_SUCCESS) return 0;
    return bytes != sizeof(cl_uint) && bytes != sizeof(cl_ulong) ? 0 : (cl_uint)answer;
}

/** Groups and sub-groups. Before OpenCL 3.0 a device is asked for its multiple in its vendor's words only. */
static void describe_groups(const asking *to, const char *extensions, clv_device_info *info) {
    enum { MULTIPLE = 0x1067, WARP = 0x4003, WAVEFRONT = 0x4043, SUB_GROUP_SIZES = 0x4108 };
    info->sub_groups =
        has_extension(extensions, "cl_khr_subgroups") || has_extension(extensions, "cl_intel_subgroups");
    static const struct {
        cl_device_info what;
        const char *extension; // "": asked in any case
    } ways[] = {
        {MULTIPLE, ""}, {WARP, "cl_nv_device_attribute_query"}, {WAVEFRONT, "cl_amd_device_attribute_query"}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways && !info->preferred_multiple; i++)
        if (!*ways[i].extension || has_extension(extensions, ways[i].extension))
            info->preferred_multiple = ask_if_known(to, ways[i].what);
    if (info->preferred_multiple == 1) info->preferred_multiple = 0; // an emulator's, it tells nothing
    if (info->preferred_multiple > info->max_work_group) info->preferred_multiple = info->max_work_group;
    size_t sizes[CLV_SUB_GROUP_SIZES] = {0}, bytes = 0;
    if (!has_extension(extensions, "cl_intel_required_subgroup_size")) return;
    if (clGetDeviceInfo(to->id, SUB_GROUP_SIZES, sizeof sizes, sizes, &bytes) != CL_SUCCESS) return;
    for (size_t i = 0; i < bytes / sizeof *sizes && i < CLV_SUB_GROUP_SIZES; i++)
        info->sub_group_sizes[i] = (uint32_t)sizes[i];
}

/** What decides which kernels suit a device, beyond its limits. */
static void describe_traits(asking *to, const char *extensions, clv_device_info *info) {
    static const struct {
        cl_device_fp_config theirs;
        uint32_t ours;
    } bits[] = {{CL_FP_DENORM, CLV_FLOATS_DENORMALS},
                {CL_FP_INF_NAN, CLV_FLOATS_INF_NAN},
                {CL_FP_ROUND_TO_NEAREST, CLV_FLOATS_ROUND_NEAREST},
                {CL_FP_ROUND_TO_ZERO, CLV_FLOATS_ROUND_ZERO},
                {CL_FP_FMA, CLV_FLOATS_FMA}};
    cl_device_fp_config floats;
    ask(to, CL_DEVICE_SINGLE_FP_CONFIG, sizeof floats, &floats);
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
        if (floats & bits[i].theirs) info->floats |= bits[i].ours;
    size_t arguments;
    ask(to, CL_DEVICE_MAX_PARAMETER_SIZE, sizeof arguments, &arguments);
    info->argument_bytes = arguments > UINT32_MAX ? UINT32_MAX : (uint32_t)arguments;
    info->address_bits = ask_uint(to, CL_DEVICE_ADDRESS_BITS);
    describe_groups(to, extensions, info);
}

/** Is its memory to be had by pointers? A device of OpenCL 1.2 need not know what is asked. */
static bool uses_pointers(asking *to, const clv_device_info *info) {
    cl_device_svm_capabilities can = 0;
    int major = 0;
    if (!clv__ocl_quirks(info->platform_name, info->driver).pointers || !clv__ocl_knows_pointers())
        return false;
    if (sscanf(ask_text(to, CL_DEVICE_VERSION), "OpenCL %d.", &major) != 1) major = 0;
    cl_int code = clGetDeviceInfo(to->id, CL_DEVICE_SVM_CAPABILITIES, sizeof can, &can, NULL);
    if (code == CL_INVALID_VALUE && major < 2) return false;
    if (code != CL_SUCCESS && to->failed == CL_SUCCESS) to->failed = code;
    return code == CL_SUCCESS && can & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
}

/** Everything about one device, and whether we can use it. */
static void describe(clv__ocl_state *state, cl_device_id id, clv__found *found, bool *pointers) {
    asking to = {state, id, CL_SUCCESS};
    clv_device_info *info = &found->info;
    cl_device_type type;
    ask(&to, CL_DEVICE_TYPE, sizeof type, &type);
    info->type = type_of(type);
    info->label = ask_text(&to, CL_DEVICE_NAME);
    info->vendor = ask_text(&to, CL_DEVICE_VENDOR);
    info->driver = ask_text(&to, CL_DRIVER_VERSION);
    int version;
    info->opencl_c = version_of(state, ask_text(&to, CL_DEVICE_OPENCL_C_VERSION), &version);
    const char *extensions = ask_text(&to, CL_DEVICE_EXTENSIONS);
    info->memory_bytes = ask_ulong(&to, CL_DEVICE_GLOBAL_MEM_SIZE);
    info->max_alloc_bytes = ask_ulong(&to, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    info->local_bytes = ask_ulong(&to, CL_DEVICE_LOCAL_MEM_SIZE);
    size_t group;
    ask(&to, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof group, &group);
    info->max_work_group = group > UINT32_MAX ? UINT32_MAX : (uint32_t)group;
    info->compute_units = ask_uint(&to, CL_DEVICE_MAX_COMPUTE_UNITS);
    cl_uint align = ask_uint(&to, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8; // told in bits
    info->alignment_bytes = align > MIN_ALIGNMENT && (align & (align - 1)) == 0 ? align : MIN_ALIGNMENT;
    info->vector_width = ask_uint(&to, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
    info->fp16 = has_extension(extensions, "cl_khr_fp16");
    info->fp64 = has_extension(extensions, "cl_khr_fp64");
    cl_device_local_mem_type local;
    ask(&to, CL_DEVICE_LOCAL_MEM_TYPE, sizeof local, &local);
    info->local_memory = local == CL_LOCAL;
    info->unified_memory = ask_bool(&to, CL_DEVICE_HOST_UNIFIED_MEMORY);
    bool available = ask_bool(&to, CL_DEVICE_AVAILABLE);
    info->compiler = ask_bool(&to, CL_DEVICE_COMPILER_AVAILABLE);
    bool little_endian = ask_bool(&to, CL_DEVICE_ENDIAN_LITTLE);
    info->embedded = strcmp(ask_text(&to, CL_DEVICE_PROFILE), "EMBEDDED_PROFILE") == 0;
    info->no_int64 = info->embedded && !has_extension(extensions, "cles_khr_int64");
    describe_traits(&to, extensions, info);
    *pointers = uses_pointers(&to, info);
    const uint32_t floats = info->floats, most_arguments = CLV__SURE_ARGS * (info->address_bits / 8);
    info->reason =
        to.failed != CL_SUCCESS
            ? sentence(state, "clGetDeviceInfo: %s (%d)", clv__ocl_error_name(to.failed), (int)to.failed)
        : info->type == CLV_DEVICE_OTHER ? "a custom device: it runs no OpenCL C kernels"
        : !available                     ? "its driver says that it is not available"
        : !info->compiler                ? "its driver has no compiler"
        : version < 102  ? sentence(state, "OpenCL C 1.2 is needed, it has '%s'", info->opencl_c, 0)
        : !little_endian ? "it is big-endian"
        : info->embedded && !(floats & (CLV_FLOATS_ROUND_NEAREST | CLV_FLOATS_ROUND_ZERO))
            ? "an embedded profile whose driver does not say how floats are rounded"
        : info->embedded && !(floats & CLV_FLOATS_INF_NAN)
            ? "an embedded profile whose floats have no infinities and NaN, which softmax and pooling need"
        : info->embedded && info->argument_bytes < most_arguments
            ? sentence(state, "an embedded profile%s whose kernels take fewer than %d bytes of arguments", "",
                       (int)most_arguments)
        : info->memory_bytes == 0 || info->max_alloc_bytes == 0 ? "its driver says that it has no memory"
        : info->max_work_group == 0                             ? "its driver allows no work-items"
                                                                : "";
    info->usable = !*info->reason;
    found->traits = clv__ocl_quirks(info->platform_name, info->driver).traits;
    if (found->traits.compiler == CLV__NO_COMPILER) found->traits.compiler = CLV__COMPILER_MAY_DIE;
    // a platform may serve other kinds of devices too: rusticl's are llvmpipe, and cards
    found->traits.host_memory &= info->type == CLV_DEVICE_CPU && info->unified_memory;
    if (info->type != CLV_DEVICE_CPU) found->traits.loop_turns = 0;
    found->traits.ptx = has_extension(extensions, "cl_nv_compiler_options") ||
                        has_extension(extensions, "cl_nv_pragma_unroll");
    found->traits.amdgcn = has_extension(extensions, "cl_amd_device_attribute_query");
    found->traits.dpas = has_extension(extensions, "cl_intel_subgroup_matrix_multiply_accumulate");
    found->traits.compiles_at_launch &= found->traits.host_memory; // helpers launch over memory of their own
#ifdef CLEAVE_CLBLAST
    info->gemm = !*pointers; // the library wants buffers
#endif
}

static clv__ocl_handle handle_of(const clv__found *found, cl_device_id id, bool pointers) {
    const clv_device_info *info = &found->info;
    return (clv__ocl_handle){.id = id,
                             .label = info->label,
                             .host_memory = found->traits.host_memory,
                             .pointers = pointers,
                             .polled = info->type != CLV_DEVICE_CPU};
}

// ---- Enumeration ------------------------------------------------------------------------------------------

/** Tell a row that stands for a whole platform, with the reason why it cannot be used. */
static clv_status tell_platform(int number, const char *name, const char *reason, tell_function tell,
                                void *user) {
    clv__found found = {.info = {.label = *name ? name : "an OpenCL platform",
                                 .type = CLV_DEVICE_OTHER,
                                 .platform = number,
                                 .device = -1,
                                 .platform_name = name,
                                 .reason = reason}};
    return tell(user, &found);
}

static clv_status enumerate_platform(clv__ocl_state *state, cl_platform_id platform, int number,
                                     tell_function tell, void *user, clv__error *error) {
    const char *reason = left_out_reason(state, number);
    if (reason) return tell_platform(number, "", reason, tell, user); // not even its name is asked for
    cl_int code;
    const char *name = platform_name(state, platform, &code);
    if (code != CL_SUCCESS) { // what is known of its driver may be why results are right
        reason = sentence(state, "clGetPlatformInfo: %s (%d)", clv__ocl_error_name(code), (int)code);
        return tell_platform(number, "", reason, tell, user);
    }
    if ((reason = clv__ocl_store_refusal(state, name)))
        return tell_platform(number, name, reason, tell, user);
    if (state->config->before_platform)
        state->config->before_platform(state->config->before_platform_user, number, name);
    cl_uint n = 0;
    code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &n);
    if (code == CL_DEVICE_NOT_FOUND || (code == CL_SUCCESS && n == 0))
        return CLV_OK; // a driver without its hardware
    cl_device_id *ids = code == CL_SUCCESS ? clv__alloc(n, sizeof *ids) : NULL;
    if (ids) code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, n, ids, NULL);
    clv_status status = CLV_OK;
    if (code != CL_SUCCESS) {
        reason = sentence(state, "clGetDeviceIDs: %s (%d)", clv__ocl_error_name(code), (int)code);
        status = tell_platform(number, name, reason, tell, user);
    } else if (!ids) {
        status = clv__error_set(error, CLV_E_HOST_MEMORY, "no host memory for a list of devices");
    }
    bool keeps_code = clv__ocl_store_holds(state, name);
    for (cl_uint d = 0; code == CL_SUCCESS && status == CLV_OK && d < n; d++) {
        clv__found found = {.info = {.platform = number, .device = (int)d, .platform_name = name}};
        bool pointers;
        describe(state, ids[d], &found, &pointers);
        found.traits.caches_programs &= keeps_code;
        found.traits.compiles_at_launch &= keeps_code;
        clv__ocl_handle *handle = clv__arena_alloc(&state->arena, 1, sizeof *handle);
        if (!handle) {
            status = clv__error_set(error, CLV_E_HOST_MEMORY, "no host memory for a device");
            break;
        }
        *handle = handle_of(&found, ids[d], pointers);
        found.handle = handle;
        status = tell(user, &found);
    }
    free(ids);
    return status;
}

static clv_status enumerate_platforms(clv__ocl_state *state, tell_function tell, void *user,
                                      clv__error *error) {
    cl_uint n = 0;
    cl_int code = clGetPlatformIDs(0, NULL, &n);
    if (code == -1001 || (code == CL_SUCCESS && n == 0)) return CLV_OK; // the loader knows no platform
    cl_platform_id *platforms = code == CL_SUCCESS ? clv__alloc(n, sizeof *platforms) : NULL;
    if (platforms) code = clGetPlatformIDs(n, platforms, NULL);
    clv_status status = CLV_OK;
    if (code != CL_SUCCESS) {
        const char *reason =
            sentence(state, "clGetPlatformIDs: %s (%d)", clv__ocl_error_name(code), (int)code);
        status = tell_platform(-1, "OpenCL", reason, tell, user);
    } else if (!platforms) {
        status = clv__error_set(error, CLV_E_HOST_MEMORY, "no host memory for a list of platforms");
    }
    for (cl_uint p = 0; code == CL_SUCCESS && status == CLV_OK && p < n; p++)
        status = enumerate_platform(state, platforms[p], (int)p, tell, user, error);
    free(platforms);
    return status;
}

/** What clv__ocl_look_at_drivers tells becomes rows. */
typedef struct missing_drivers {
    tell_function tell;
    void *user;
    clv_status status;
} missing_drivers;

static void tell_missing(void *opaque, const char *name, const char *reason) {
    missing_drivers *to = opaque;
    clv__found found = {.info = {.label = name,
                                 .type = CLV_DEVICE_OTHER,
                                 .platform = -1,
                                 .device = -1,
                                 .platform_name = "",
                                 .reason = reason}};
    if (to->status == CLV_OK) to->status = to->tell(to->user, &found);
}

clv_status clv__ocl_enumerate(void *opaque, tell_function tell, void *user, clv__error *error) {
    clv__ocl_state *state = opaque;
    const char *reason = left_out_reason(state, -1);
    if (reason) return tell_platform(-1, "OpenCL", reason, tell, user);
    clv__ocl_stores_guard(state);
    CLV_TRY(enumerate_platforms(state, tell, user, error));
    missing_drivers to = {tell, user, CLV_OK};
    clv__ocl_look_at_drivers(tell_missing, &to);
    return to.status;
}

/** Asked first: a driver that cannot split may not even have the function. */
static bool can_be_split(asking *to) {
    cl_device_partition_property ways[16] = {0};
    size_t bytes = 0;
    cl_int code = clGetDeviceInfo(to->id, CL_DEVICE_PARTITION_PROPERTIES, sizeof ways, ways, &bytes);
    if (code != CL_SUCCESS) to->failed = code;
    for (size_t i = 0; i < bytes / sizeof *ways && i < 16; i++) {
        if (ways[i] == CL_DEVICE_PARTITION_EQUALLY) return true;
    }
    return false;
}

clv_status clv__ocl_partition(void *opaque, void *whole, int parts, tell_function tell, void *user,
                              clv__error *error) {
    clv__ocl_state *state = opaque;
    const clv__ocl_handle *handle = whole;
    asking to = {state, handle->id, CL_SUCCESS};
    cl_uint units = ask_uint(&to, CL_DEVICE_MAX_COMPUTE_UNITS);
    bool splits = can_be_split(&to);
    CLV__OCL_TRY(error, handle->label, "clGetDeviceInfo", to.failed);
    if (!splits) CLV_FAIL(error, CLV_E_UNSUPPORTED, "its driver makes no sub-devices");
    if (parts < 1 || (cl_uint)parts > units)
        CLV_FAIL(error, CLV_E_UNSUPPORTED, "it has %u compute units", (unsigned)units);
    // Equal parts of floor(units / parts): the driver makes as many as fit, units that are left over stay
    // unused.
    const cl_device_partition_property how[] = {CL_DEVICE_PARTITION_EQUALLY,
                                                (cl_device_partition_property)(units / parts), 0};
    cl_uint n = 0;
    CLV__OCL_TRY(error, handle->label, "clCreateSubDevices",
                 clCreateSubDevices(handle->id, how, 0, NULL, &n));
    if (n < (cl_uint)parts)
        CLV_FAIL(error, CLV_E_UNSUPPORTED, "its driver makes %u parts of it", (unsigned)n);
    cl_device_id *ids = clv__alloc(n, sizeof *ids);
    clv__ocl_handle *handles = clv__arena_alloc(&state->arena, n, sizeof *handles);
    if (!ids || !handles) {
        free(ids);
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for sub-devices");
    }
    cl_int code = clCreateSubDevices(handle->id, how, n, ids, NULL);
    clv_status status =
        code == CL_SUCCESS ? CLV_OK : clv__ocl_fail(error, handle->label, "clCreateSubDevices", code);
    for (cl_uint i = 0; code == CL_SUCCESS && i < n; i++) { // all of them are ours to release, told or not
        handles[i] = (clv__ocl_handle){.id = ids[i], .label = handle->label, .next = state->parts};
        state->parts = &handles[i];
    }
    cl_platform_id platform = NULL;
    if (status == CLV_OK) ask(&to, CL_DEVICE_PLATFORM, sizeof platform, &platform);
    const char *name = platform ? platform_name(state, platform, &code) : "";
    bool keeps_code = clv__ocl_store_holds(state, name);
    for (cl_uint i = 0; status == CLV_OK && i < (cl_uint)parts; i++) {
        clv__found found = {.info = {.platform_name = name}, .handle = &handles[i]};
        bool pointers;
        describe(state, ids[i], &found, &pointers);
        found.traits.caches_programs &= keeps_code;
        found.traits.compiles_at_launch &= keeps_code;
        clv__ocl_handle *next = handles[i].next;
        handles[i] = handle_of(&found, ids[i], pointers);
        handles[i].next = next;
        // a platform that did not tell its name may be one whose parts must stay
        handles[i].keep = !*name || clv__ocl_quirks(name, found.info.driver).keep_parts;
        status = tell(user, &found);
    }
    free(ids);
    return status;
}

// ---- Opening ----------------------------------------------------------------------------------------------

clv_status clv__ocl_open(void *state, void *opaque, clv__error *error, clv__bdevice **out) {
    *out = NULL;
    const clv__ocl_handle *handle = opaque;
    clv__bdevice *device = clv__alloc(1, sizeof *device);
    if (!device) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a device");
    device->state = state;
    device->id = handle->id;
    device->label = handle->label;
    device->host_memory = handle->host_memory;
    device->pointers = handle->pointers;
    device->polled = handle->polled;
    pthread_mutex_init(&device->event_lock, NULL);
    pthread_mutex_init(&device->reach_lock, NULL);
    clv__cond_init(&device->reached);
    device->pending_end = &device->pending;
    asking to = {state, handle->id, CL_SUCCESS};
    device->local_bytes = ask_ulong(&to, CL_DEVICE_LOCAL_MEM_SIZE);
    ask(&to, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof device->max_group, &device->max_group);
    size_t items[16] = {0}; // a device may have more than three dimensions
    if (clGetDeviceInfo(handle->id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof items, items, NULL) == CL_SUCCESS)
        memcpy(device->max_items, items, sizeof device->max_items);
    const char *call = "clGetDeviceInfo";
    cl_int code = to.failed;
    if (code == CL_SUCCESS) {
        call = "clCreateContext";
        device->context = clCreateContext(NULL, 1, &handle->id, NULL, NULL, &code);
    }
    for (int q = 0; code == CL_SUCCESS && q < CLV__QUEUES; q++) {
        call = "clCreateCommandQueue";
        device->queue[q] = clCreateCommandQueue(device->context, handle->id, 0, &code);
    }
    if (code != CL_SUCCESS) {
        clv__ocl_close(device);
        return clv__ocl_fail(error, handle->label, call, code);
    }
    *out = device;
    return CLV_OK;
}

clv_status clv__ocl_keep_times(clv__bdevice *device, clv__error *error) {
    if (device->timed) return CLV_OK;
    cl_command_queue queue[CLV__QUEUES];
    CLV_TRY(clv__ocl_synchronize(device, error));
    for (int q = 0; q < CLV__QUEUES; q++) {
        cl_int code = CL_SUCCESS;
        queue[q] = clCreateCommandQueue(device->context, device->id, CL_QUEUE_PROFILING_ENABLE, &code);
        if (code == CL_SUCCESS) continue;
        while (q-- > 0) clReleaseCommandQueue(queue[q]);
        return clv__ocl_fail(error, device->label, "clCreateCommandQueue", code);
    }
    for (int q = 0; q < CLV__QUEUES; q++) {
        device->untimed[q] = device->queue[q];
        device->queue[q] = queue[q];
    }
    pthread_mutex_lock(&device->event_lock);
    device->timed = true;
    pthread_mutex_unlock(&device->event_lock);
    return CLV_OK;
}

bool clv__ocl_close(clv__bdevice *device) {
    if (!device) return true;
    if (!clv__ocl_answers(device)) return false; // it stays: threads of its driver may hold any of it
    // nothing may run on into memory that is released next
    bool opened = device->queue[CLV__QUEUES - 1] != NULL;
    clv_status status = opened ? clv__ocl_synchronize(device, NULL) : CLV_OK;
    bool still_runs = status != CLV_OK && device->still_runs;
    clv__ocl_free_pointers(device, still_runs ? clv__ocl_first_running(device) : UINT64_MAX);
    for (int q = 0; q < CLV__QUEUES; q++) {
        if (device->queue[q]) clReleaseCommandQueue(device->queue[q]);
        if (device->untimed[q]) clReleaseCommandQueue(device->untimed[q]);
    }
    if (device->context) clReleaseContext(device->context);
    for (int q = 0; q < CLV__QUEUES; q++) clv__ocl_event_destroy(device->awaited[q]);
    while (device->pending) clv__ocl_pending_drop(device);
    while (device->dropped) { // its memory stays
        clv__bbuffer *next = device->dropped->next;
        free(device->dropped);
        device->dropped = next;
    }
    clv__patience patience = {.limit = 1};
    pthread_mutex_lock(&device->reach_lock);
    while (device->n_calls && clv__patience_wait(&patience, &device->reached, &device->reach_lock)) {
    }
    bool called = device->n_calls > 0; // the driver will call us about an event of this device
    pthread_mutex_unlock(&device->reach_lock);
    if (called) return false; // so it stays
    while (device->free_events) {
        clv__bevent *next = device->free_events->next;
        free(device->free_events);
        device->free_events = next;
    }
    pthread_cond_destroy(&device->reached);
    pthread_mutex_destroy(&device->event_lock);
    pthread_mutex_destroy(&device->reach_lock);
    free(device);
    return !still_runs;
}
