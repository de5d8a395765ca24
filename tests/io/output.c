// SPDX-License-Identifier: Apache-2.0
// Writing beside the old file: links, permissions, locks, what stands in the way, limits, and kills.
#include "io/formats.h"
#include "io/support.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "io/array.h"
#include "io/file.h"

static float values[1 << 16];

static clv_status save(const char *path, float value, size_t n) {
    for (size_t i = 0; i < n; i++) values[i] = value;
    clv_array array = {.type = CLV_DTYPE_F32, .shape = CLV_SHAPE((int64_t)n), .data = values};
    return clv_npy_write(support_runtime, &array, path);
}

/** The value that fills the file, which must be whole. */
static float value_of(const char *path) {
    clv_array array;
    expect_ok(clv_npy_read(support_runtime, path, &array));
    const float *x = array.data;
    float value = x[0];
    for (int64_t i = 0; i < array.shape.dims[0]; i++) assert_true(x[i] == value);
    clv_array_reset(&array);
    return value;
}

TEST(links_and_permissions_stay) {
    struct stat info;
    expect_ok(save("a", 1, 10));
    assert_int_equal(chmod("a", 0640), 0);
    assert_int_equal(symlink("a", "link"), 0);
    expect_ok(save("link", 2, 10));
    assert_int_equal(lstat("link", &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(stat("a", &info), 0);
    assert_int_equal(info.st_mode & 07777, 0640);
    assert_true(value_of("a") == 2);
    assert_int_equal(symlink("nowhere", "dangling"), 0); // then it is replaced
    expect_ok(save("dangling", 3, 10));
    assert_true(value_of("dangling") == 3);
    remove("a");
    remove("link");
    remove("dangling");
    assert_int_equal(count_files(), 0);
}

TEST(what_is_protected_stays) {
    if (geteuid() == 0) {
        print_message("skipped: root may write everything\n");
        skip();
    }
    expect_ok(save("a", 1, 10));
    assert_int_equal(chmod("a", 0444), 0);
    expect_failure(save("a", 2, 10), CLV_E_IO, "'a'", "write-protected");
    assert_true(value_of("a") == 1);
    remove("a");
}

TEST(a_second_writer_is_refused) {
    expect_ok(save("a", 1, 10));
    int fd = open("a.tmp", O_RDWR | O_CREAT, 0666);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    expect_failure(save("a", 2, 10), CLV_E_IO, "'a'", "another writer", "a.tmp'");
    assert_true(file_exists("a.tmp"));
    close(fd); // killed: its file stays, its lock goes
    expect_ok(save("a", 3, 10));
    assert_true(value_of("a") == 3);
    assert_false(file_exists("a.tmp"));
    remove("a");
}

TEST(what_is_in_the_way_is_not_touched) {
    write_file("victim", "precious", 8);
    assert_int_equal(symlink("victim", "a.tmp"), 0);
    expect_failure(save("a", 1, 10), CLV_E_IO, "'a'");
    remove("a.tmp");
    assert_int_equal(link("victim", "a.tmp"), 0);
    expect_failure(save("a", 1, 10), CLV_E_IO, "a.tmp'", "not ours");
    remove("a.tmp");
    assert_int_equal(mkdir("a.tmp", 0777), 0);
    expect_failure(save("a", 1, 10), CLV_E_IO, "'a'");
    rmdir("a.tmp");
    assert_int_equal(mkfifo("a.tmp", 0666), 0);
    expect_failure(save("a", 1, 10), CLV_E_IO, "not ours");
    remove("a.tmp");
    size_t n;
    uint8_t *bytes = read_file("victim", &n);
    assert_string_equal((char *)bytes, "precious");
    free(bytes);
    remove("victim");
    assert_int_equal(count_files(), 0);
}

TEST(a_limit_leaves_the_old_file) {
    expect_ok(save("a", 1, 1000));
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = {.rlim_cur = 10000, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    clv_status status = save("a", 2, 10000);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    expect_failure(status, CLV_E_IO, "'a'", "larger than files may be", "untouched");
    assert_true(value_of("a") == 1);
    assert_int_equal(count_files(), 1);
    remove("a");
}

TEST(long_names_have_a_sentence) {
    char name[400];
    memset(name, 'n', sizeof name);
    name[253] = 0; // legal, but with .tmp it is not
    expect_failure(save(name, 1, 10), CLV_E_IO, "too long");
    name[253] = 'n';
    name[sizeof name - 1] = 0;
    expect_failure(save(name, 1, 10), CLV_E_IO, "too long");
    assert_int_equal(count_files(), 0);
}

/** What clv_file_check says is what a writer says, and nothing is left. */
TEST(a_trial_tells_what_writing_would) {
    char name[300];
    struct stat info;
    clv_runtime *runtime = support_runtime;
    expect_ok(clv_file_check(runtime, "a", true));
    assert_int_equal(count_files(), 0);
    expect_failure(clv_file_check(runtime, "nowhere/a", false), CLV_E_IO, "folder 'nowhere'", "No such file");
    expect_failure(save("nowhere/a", 1, 10), CLV_E_IO, "folder 'nowhere'", "No such file");
    expect_failure(clv_file_check(runtime, ".", false), CLV_E_IO, "it is a folder");
    assert_int_equal(clv_file_check(runtime, NULL, false), CLV_E_VALUE);
    memset(name, 'n', sizeof name);
    name[255 - 4] = 0; // .tmp has room
    expect_ok(clv_file_check(runtime, name, false));
    expect_failure(clv_file_check(runtime, name, true), CLV_E_IO, "too long", ".prev.tmp");
    expect_ok(save("a", 1, 10));
    assert_int_equal(mkdir("a.prev", 0777), 0);
    expect_ok(clv_file_check(runtime, "a", false));
    expect_failure(clv_file_check(runtime, "a", true), CLV_E_IO, "a.prev' is in the way");
    rmdir("a.prev");
    assert_true(value_of("a") == 1);
    remove("a");
    assert_int_equal(mkfifo("pipe", 0666), 0);
    expect_ok(clv_file_check(runtime, "pipe", false)); // whoever reads it would see an end
    expect_failure(save("pipe", 1, 10), CLV_E_IO, "'pipe'", "nobody reads");
    assert_int_equal(lstat("pipe", &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    remove("pipe");
    assert_int_equal(count_files(), 0);
}

TEST(a_whole_file_is_written) {
    size_t n;
    expect_ok(clv_file_write(support_runtime, "a", "text", 4));
    uint8_t *bytes = read_file("a", &n);
    assert_int_equal(n, 4);
    assert_memory_equal(bytes, "text", 4);
    free(bytes);
    expect_ok(clv_file_write(support_runtime, "a", NULL, 0));
    free(read_file("a", &n));
    assert_int_equal(n, 0);
    assert_int_equal(clv_file_write(support_runtime, "a", NULL, 1), CLV_E_VALUE);
    assert_int_equal(count_files(), 1);
    remove("a");
}

TEST(a_file_that_shrinks_has_a_sentence) {
    clv__input input;
    char bytes[100] = {0};
    write_file("a", bytes, sizeof bytes);
    expect_ok(clv__input_open(clv__io_error(support_runtime), "a", &input));
    assert_int_equal(truncate("a", 60), 0);
    expect_ok(clv__input_read(&input, 10, bytes, 50));
    expect_failure(clv__input_read(&input, 10, bytes, 51), CLV_E_IO, "'a'", "shorter", "byte 60");
    expect_failure(clv__input_read(&input, 50, bytes, 51), CLV_E_INTERNAL, "outside");
    clv__input_close(&input);
    clv__input_close(&input);
    remove("a");
}

static void *write_again_and_again(void *argument) {
    int *refused = argument;
    float data[512];
    for (size_t i = 0; i < 512; i++) data[i] = (float)(uintptr_t)argument;
    clv_array array = {.type = CLV_DTYPE_F32, .shape = CLV_SHAPE(512), .data = data};
    for (int i = 0; i < 100; i++) *refused += clv_npy_write(support_runtime, &array, "a") != CLV_OK;
    return NULL;
}

TEST(writers_at_once_leave_a_whole_file) {
    pthread_t threads[3];
    int refused[3] = {0};
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_again_and_again, &refused[i]), 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    value_of("a");
    assert_true(refused[0] + refused[1] + refused[2] < 300);
    assert_int_equal(count_files(), 1);
    remove("a");
}

/** A child saves checkpoints until it is killed: a whole one is there each time. */
TEST(a_kill_leaves_a_whole_checkpoint) {
    clv_archive *archive = clv__test_archive(support_runtime);
    expect_ok(clv_archive_add(archive, "x", CLV_DTYPE_F32, SHAPE(1 << 16), values, NULL));
    expect_ok(clv__checkpoint_write(archive, "c"));
    for (int round = 0; round < 8; round++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            for (;;) {
                if (clv__checkpoint_write(archive, "c") != CLV_OK) _exit(3);
            }
        }
        nanosleep(&(struct timespec){.tv_nsec = 3000000 + round * 1700000}, NULL);
        kill(child, SIGKILL);
        int how = 0;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFSIGNALED(how)); // not by a fault of its own
        clv_archive *back = NULL;
        expect_ok(clv__checkpoint_read_file(support_runtime, "c", &back));
        clv_archive_destroy(back);
        if (file_exists("c.prev")) {
            expect_ok(clv__checkpoint_read_file(support_runtime, "c.prev", &back));
            clv_archive_destroy(back);
        }
    }
    expect_ok(clv__checkpoint_write(archive, "c")); // also tidies up
    assert_int_equal(count_files(), 2);
    clv_archive_destroy(archive);
    remove("c");
    remove("c.prev");
}

TEST_MAIN(support_begin, support_end)
