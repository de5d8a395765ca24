// SPDX-License-Identifier: Apache-2.0
// Checkpoints: the file that the golden script makes, every flipped bit, every cut, and the one before.
#include "io/formats.h"
#include "io/support.h"

static clv_archive *make(float value) {
    clv_array *array = NULL;
    clv_archive *archive = clv__test_archive(support_runtime);
    expect_ok(clv_archive_add(archive, "model.weight", CLV_DTYPE_F32, SHAPE(3), NULL, &array));
    ((float *)array->data)[0] = value;
    expect_ok(clv__archive_set_int(archive, "step", (int64_t)value));
    return archive;
}

static void save(float value, const char *path) {
    clv_archive *archive = make(value);
    expect_ok(clv__checkpoint_write(archive, path));
    clv_archive_destroy(archive);
}

static int64_t step_of(const char *path) {
    clv_archive *archive = NULL;
    int64_t step = -1;
    expect_ok(clv__checkpoint_read_file(support_runtime, path, &archive));
    expect_ok(clv__archive_get_int(archive, "step", &step));
    clv_archive_destroy(archive);
    return step;
}

TEST(reads_and_writes_the_golden_bytes) {
    clv_archive *archive = NULL;
    int64_t seed = 0;
    double lr = 0;
    expect_ok(clv__checkpoint_read_file(support_runtime, golden("state.checkpoint"), &archive));
    assert_int_equal(clv_archive_count(archive), 7);
    expect_ok(clv__archive_get_int(archive, "seed", &seed));
    expect_ok(clv__archive_get_real(archive, "lr", &lr));
    assert_true(seed == -1 && lr == 0.1);
    assert_null(clv_archive_text(archive, "cleave.checksum"));
    expect_ok(clv__checkpoint_write(archive, "golden"));
    size_t a, b;
    uint8_t *ours = read_file("golden", &a), *theirs = read_file(golden("state.checkpoint"), &b);
    assert_int_equal(a, b);
    assert_memory_equal(ours, theirs, a);
    free(ours);
    free(theirs);
    clv_archive_destroy(archive);
    expect_ok(clv_safetensors_read(support_runtime, "golden", &archive)); // ordinary tools can open it
    clv_archive_destroy(archive);
    remove("golden");
}

static clv_status read_bytes(const void *bytes, size_t n, clv_archive **archive) {
    clv__input input;
    clv__input_memory(clv__io_error(support_runtime), "x", bytes, n, &input);
    return clv__checkpoint_read(&input, archive);
}

TEST(every_flipped_bit_is_seen) {
    size_t n;
    uint8_t *bytes = read_file(golden("state.checkpoint"), &n);
    for (size_t i = 0; i < n; i++) {
        clv_archive *archive = NULL;
        bytes[i] ^= (uint8_t)(1 << i % 8);
        clv_status status = read_bytes(bytes, n, &archive);
        bytes[i] ^= (uint8_t)(1 << i % 8);
        assert_null(archive);
        if (status == CLV_E_UNSUPPORTED) continue; // a dtype that is none
        expect_failure(status, CLV_E_FORMAT, "'x'");
    }
    bytes[n - 1] ^= 0x10;
    write_file("x", bytes, n);
    clv_archive *archive = NULL;
    expect_failure(clv__checkpoint_read_file(support_runtime, "x", &archive), CLV_E_FORMAT, "'x' is damaged",
                   "checksum");
    for (size_t cut = 0; cut < n; cut++) {
        expect_failure(read_bytes(bytes, cut, &archive), CLV_E_FORMAT, "'x'");
    }
    free(bytes);
    remove("x");
}

TEST(weights_are_no_checkpoint) {
    clv_archive *archive = NULL;
    expect_failure(clv__checkpoint_read_file(support_runtime, golden("weights.safetensors"), &archive),
                   CLV_E_FORMAT, "no checkpoint", "cannot be resumed");
    write_file("x", "\2\0\0\0\0\0\0\0{}", 10);
    expect_failure(clv__checkpoint_read_file(support_runtime, "x", &archive), CLV_E_FORMAT,
                   "'x' is no checkpoint", "10 bytes");
    remove("x");
}

TEST(the_one_before_is_kept_and_named) {
    clv_archive *archive = NULL;
    save(1, "c");
    assert_false(file_exists("c.prev"));
    save(2, "c");
    assert_int_equal(step_of("c.prev"), 1);
    save(3, "c");
    assert_int_equal(step_of("c"), 3);
    assert_int_equal(step_of("c.prev"), 2);
    assert_int_equal(count_files(), 2); // no temporaries
    size_t n;
    uint8_t *bytes = read_file("c", &n);
    write_file("c", bytes, n - 1);
    expect_failure(clv__checkpoint_read_file(support_runtime, "c", &archive), CLV_E_FORMAT, "'c'",
                   "cut short", "resume from 'c.prev'");
    bytes[n - 1] ^= 1;
    write_file("c", bytes, n);
    expect_failure(clv__checkpoint_read_file(support_runtime, "c", &archive), CLV_E_FORMAT, "damaged",
                   "resume from 'c.prev'");
    remove("c");
    expect_failure(clv__checkpoint_read_file(support_runtime, "c", &archive), CLV_E_IO, "No such file",
                   "resume from 'c.prev'");
    write_file("c.prev", bytes, n); // damaged too: not to be named
    expect_failure(clv__checkpoint_read_file(support_runtime, "c", &archive), CLV_E_IO, "'c'",
                   "No such file");
    assert_null(strstr(clv_runtime_error(support_runtime), "c.prev"));
    free(bytes);
    remove("c.prev");
}

TEST(a_checkpoint_of_nothing_is_one) {
    clv_archive *archive = clv__test_archive(support_runtime);
    expect_ok(clv_archive_set_text(archive, "cleave.checksum", "mine")); // does not reach the file
    expect_ok(clv__checkpoint_write(archive, "c"));
    clv_archive_destroy(archive);
    expect_ok(clv__checkpoint_read_file(support_runtime, "c", &archive));
    assert_int_equal(clv_archive_count(archive), 0);
    assert_null(clv_archive_text_at(archive, 0, NULL));
    clv_archive_destroy(archive);
    remove("c");
}

TEST_MAIN(support_begin, support_end)
