// SPDX-License-Identifier: Apache-2.0
// The n-th call of the system, or the n-th allocation, fails, for n = 1, 2, ... until an operation passes untouched.
// Each time there is a status with a sentence, nothing leaks (the sanitizers look), and what was on disk is there.
// The linker sends the library's calls here (see CMakeLists.txt).
#include "io/formats.h"
#include "io/support.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleave/data.h"
#include "onnx/file.h"

static struct {
    int armed, left; // the left-th call from now on fails
    int no_links;    // every link() fails, as on some file systems
    int code;
    int failed;
} fault;

static char trace[64]; // what was done to files while armed, a letter each
static size_t n_trace;

static void note(char what) {
    if (fault.armed && n_trace < sizeof trace - 1) trace[n_trace++] = what;
}

static int fails(void) {
    if (!fault.armed || --fault.left != 0) return 0;
    fault.failed = 1;
    errno = fault.code;
    return 1;
}

// One line per wrapped call: what it returns when it fails.
#define WRAP(type, name, failure, parameters, arguments)                                                     \
    WRAP_NOTED(type, name, failure, parameters, arguments, (void)0)
#define WRAP_NOTED(type, name, failure, parameters, arguments, noted)                                        \
    type __real_##name parameters;                                                                           \
    type __wrap_##name parameters;                                                                           \
    type __wrap_##name parameters {                                                                          \
        noted;                                                                                               \
        return fails() ? (failure) : __real_##name arguments;                                                \
    }

WRAP_NOTED(ssize_t, write, -1, (int fd, const void *data, size_t n), (fd, data, n), note('w'))
WRAP(ssize_t, pread, -1, (int fd, void *data, size_t n, off_t at), (fd, data, n, at))
WRAP_NOTED(int, fsync, -1, (int fd), (fd), note('s'))
WRAP(int, ftruncate, -1, (int fd, off_t n), (fd, n))
WRAP_NOTED(int, rename, -1, (const char *a, const char *b), (a, b), note('r'))
WRAP(char *, realpath, NULL, (const char *path, char *out), (path, out))
WRAP(void *, malloc, NULL, (size_t n), (n))
WRAP(void *, calloc, NULL, (size_t n, size_t size), (n, size))
WRAP(void *, realloc, NULL, (void *old, size_t n), (old, n))
WRAP(void *, aligned_alloc, NULL, (size_t alignment, size_t n), (alignment, n))
WRAP(char *, strdup, NULL, (const char *text), (text))
WRAP(void *, mmap, MAP_FAILED, (void *at, size_t n, int protection, int flags, int fd, off_t offset),
     (at, n, protection, flags, fd, offset))
WRAP(int, pthread_create, EAGAIN,
     (pthread_t * thread, const pthread_attr_t *attributes, void *(*work)(void *), void *argument),
     (thread, attributes, work, argument))

int __real_link(const char *a, const char *b);
int __wrap_link(const char *a, const char *b);
int __wrap_link(const char *a, const char *b) {
    note('l');
    if (fault.armed && fault.no_links) {
        errno = EPERM;
        return -1;
    }
    return fails() ? -1 : __real_link(a, b);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    return fails() ? -1 : __real_open(path, flags, mode);
}

static float numbers[3] = {1, 2, 3};
static clv_archive *weights; // what is written

static clv_status read_safetensors(void) {
    clv_archive *archive = NULL;
    clv_status status = clv_safetensors_read(support_runtime, "in.safetensors", &archive);
    assert_true((status == CLV_OK) == (archive != NULL));
    clv_archive_destroy(archive);
    return status;
}

static clv_status read_checkpoint(void) {
    clv_archive *archive = NULL;
    clv_status status = clv__checkpoint_read_file(support_runtime, "in.checkpoint", &archive);
    assert_true((status == CLV_OK) == (archive != NULL));
    clv_archive_destroy(archive);
    return status;
}

static clv_status read_npy(void) {
    clv_array array;
    clv_status status = clv_npy_read(support_runtime, "in.npy", &array);
    clv_array_reset(&array);
    return status;
}

static clv_status read_idx(void) {
    clv_array array;
    clv_status status = clv__idx_read_file(support_runtime, "in.idx.gz", &array);
    clv_array_reset(&array);
    return status;
}

static clv_status read_onnx(const char *path) {
    clv__onnx_model *model = NULL;
    clv_status status = clv__onnx_open(support_runtime, path, &model);
    assert_true((status == CLV_OK) == (model != NULL));
    clv__onnx_close(model);
    return status;
}

static clv_status read_onnx_with_functions(void) {
    return read_onnx(CLV_TEST_SOURCE_DIR "/tests/onnx/files/functions.onnx");
}

static clv_status read_onnx_with_external_data(void) {
    return read_onnx(CLV_TEST_SOURCE_DIR "/tests/onnx/files/external.onnx");
}

static clv_status read_onnx_out_of_order(void) {
    return read_onnx(CLV_TEST_SOURCE_DIR "/tests/onnx/files/unordered.onnx");
}

static clv_status fill_archive(void) {
    clv_archive *archive = NULL;
    clv_array *array = NULL;
    clv_status status = clv_archive_create(support_runtime, &archive);
    if (status == CLV_OK) status = clv_archive_add(archive, "a", CLV_DTYPE_F32, SHAPE(2), NULL, &array);
    if (status == CLV_OK) status = clv_archive_add(archive, "b", CLV_DTYPE_F32, SHAPE(3), numbers, NULL);
    if (status == CLV_OK) status = clv_archive_set_text(archive, "k", "v");
    if (status == CLV_OK) status = clv_archive_set_text(archive, "k", "w");
    clv_archive_destroy(archive);
    return status;
}

static clv_status load_batches(void) {
    clv_dataset *dataset = NULL;
    clv_loader *loader = NULL;
    clv_batch batch;
    clv_status status = clv_dataset_npy(support_runtime, "in.npy", "labels.npy", NULL, &dataset);
    clv_loader_config config = {.batch = 2, .shuffle = true};
    if (status == CLV_OK) status = clv_loader_create(support_runtime, dataset, &config, &loader);
    if (status == CLV_OK) status = clv_loader_next(loader, &batch);
    clv_loader_destroy(loader);
    clv_dataset_destroy(dataset);
    return status;
}

/** A dataset of an archive's fields, and a batch of it. */
static clv_status load_fields(void) {
    const clv_field fields[] = {{.name = "word", .role = CLV_PORT_TARGET}, {.name = "row"}};
    clv_archive *archive = NULL;
    clv_dataset *dataset = NULL;
    clv_loader *loader = NULL;
    clv_batch batch;
    clv_status status = clv_npz_read(support_runtime, "in.npz", &archive);
    clv_loader_config config = {.batch = 2, .shuffle = true};
    assert_true((status == CLV_OK) == (archive != NULL));
    if (status == CLV_OK)
        status = clv_dataset_from_fields(support_runtime, archive, fields, 2, NULL, &dataset);
    if (status == CLV_OK) status = clv_loader_create(support_runtime, dataset, &config, &loader);
    if (status == CLV_OK) status = clv_loader_next(loader, &batch);
    clv_loader_destroy(loader);
    clv_dataset_destroy(dataset);
    clv_archive_destroy(archive);
    return status;
}

static clv_status write_safetensors(void) {
    return clv_safetensors_write(weights, "out");
}

static clv_status write_checkpoint(void) {
    return clv__checkpoint_write(weights, "out");
}

static clv_status write_npy(void) {
    clv_array array = {.type = CLV_DTYPE_F32, .shape = CLV_SHAPE(3), .data = numbers};
    return clv_npy_write(support_runtime, &array, "out");
}

/** How often an operation fails when its n-th call does. `check` looks at the disk after each. */
static int fail_each(clv_status (*operation)(void), int code, void (*check)(clv_status)) {
    for (int n = 1;; n++) {
        assert_true(n < 1000);
        fault.code = code;
        fault.left = n;
        fault.failed = 0;
        fault.armed = 1;
        clv_status status = operation();
        fault.armed = 0;
        if (check) check(status);
        if (!fault.failed) {
            expect_ok(status);
            return n - 1;
        }
        if (status == CLV_OK) continue; // what failed was not needed: a lock, a link
        // jansson's tokenizer does not tell a lack of memory from a bad token.
        int misread = status == CLV_E_FORMAT && strstr(clv_runtime_error(support_runtime), "not JSON");
        if (status != CLV_E_IO && status != CLV_E_HOST_MEMORY && !misread) {
            fail_msg("call %d: %s: %s", n, clv_status_name(status), clv_runtime_error(support_runtime));
        }
        assert_true(strlen(clv_runtime_error(support_runtime)) > 10);
    }
}

static void copy_file(const char *from, const char *to) {
    size_t n;
    uint8_t *bytes = read_file(from, &n);
    write_file(to, bytes, n);
    free(bytes);
}

TEST(reading_survives) {
    copy_file(golden("weights.safetensors"), "in.safetensors");
    copy_file(golden("state.checkpoint"), "in.checkpoint");
    copy_file(golden("f4.npy"), "in.npy");
    copy_file(golden("u8.idx.gz"), "in.idx.gz");
    copy_file(golden("packed.npz"), "in.npz");
    clv_array labels = {.type = CLV_DTYPE_I32, .shape = CLV_SHAPE(2), .data = (int32_t[]){1, 0}};
    expect_ok(clv_npy_write(support_runtime, &labels, "labels.npy"));
    assert_true(fail_each(read_safetensors, EIO, NULL) > 20);
    assert_true(fail_each(read_checkpoint, EIO, NULL) > 30);
    assert_true(fail_each(read_npy, EIO, NULL) >= 5);
    assert_true(fail_each(read_idx, EIO, NULL) >= 4);
    assert_true(fail_each(read_onnx_with_functions, ENOMEM, NULL) > 40);
    assert_true(fail_each(read_onnx_with_external_data, EIO, NULL) > 12);
    assert_true(fail_each(read_onnx_out_of_order, ENOMEM, NULL) > 12);
    assert_true(fail_each(fill_archive, ENOMEM, NULL) > 8);
    assert_true(fail_each(load_batches, ENOMEM, NULL) > 10);
    assert_true(fail_each(load_fields, EIO, NULL) > 40);
}

/** Whatever happened: `out` is whole, old or new, and nothing lies about. */
static void check_disk(clv_status status) {
    size_t n;
    uint8_t *bytes = read_file("out", &n);
    int old = n == 3 && memcmp(bytes, "old", 3) == 0;
    if (status == CLV_OK) assert_false(old);
    if (!old) assert_true(n > 100);
    assert_false(file_exists("out.tmp"));
    assert_false(file_exists("out.prev.tmp"));
    free(bytes);
    write_file("out", "old", 3);
}

TEST(writing_leaves_old_or_new) {
    static const int codes[] = {ENOSPC, EIO, EPERM};
    weights = clv__test_archive(support_runtime);
    expect_ok(clv_archive_add(weights, "w", CLV_DTYPE_F32, SHAPE(3), numbers, NULL));
    expect_ok(clv_archive_set_text(weights, "key",
                                   "a longer text, so that the file has more than a hundred bytes"));
    write_file("out", "old", 3);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        assert_true(fail_each(write_safetensors, codes[i], check_disk) > 30);
        assert_true(fail_each(write_checkpoint, codes[i], check_disk) > 30);
        assert_true(fail_each(write_npy, codes[i], check_disk) > 8);
    }
    // Where there are no hard links the old one is moved; when the rename after that fails it comes back.
    fault.no_links = 1;
    fail_each(write_checkpoint, EIO, check_disk);
    fault.no_links = 0;
    clv_archive_destroy(weights);
}

static const char *trace_of(clv_status (*operation)(void)) {
    memset(trace, 0, sizeof trace);
    n_trace = 0;
    fault.left = -1;
    fault.armed = 1;
    clv_status status = operation();
    fault.armed = 0;
    expect_ok(status);
    return trace;
}

/** Written, synced, renamed, the folder synced; the previous one is linked and renamed before the new one comes. */
TEST(the_order_is_what_crashes_need) {
    assert_string_equal(trace_of(write_npy), "wwsrs");
    weights = clv__test_archive(support_runtime);
    assert_string_equal(trace_of(write_safetensors), "wsrs");
    assert_string_equal(trace_of(write_checkpoint), "wslrrs");
    clv_archive_destroy(weights);
}

TEST(a_full_disk_is_named) {
    fault.code = ENOSPC;
    for (int n = 1; n < 40; n++) {
        fault.left = n;
        fault.failed = 0;
        fault.armed = 1;
        clv_status status = write_npy();
        fault.armed = 0;
        if (status == CLV_E_IO && strstr(clv_runtime_error(support_runtime), "is full")) {
            expect_failure(status, CLV_E_IO, "cannot write 'out': the disk is full", "untouched",
                           "another folder");
            return;
        }
    }
    fail_msg("no call told that the disk is full");
}

int main(void) {
    json_set_alloc_funcs(__wrap_malloc, free);
    return clv__tests_run(support_begin, support_end);
}
