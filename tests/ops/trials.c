// SPDX-License-Identifier: Apache-2.0
// Does the tuner tell right variants from wrong ones before it believes their times? An op made of copies, with variants that
// are right, slow, or wrong in one way each, on the first device that runs launches; no kernel stands in the way.
#include <unistd.h>

#include "device/device.h"
#include "harness/harness.h"
#include "ops/copy_op.h"
#include "tune/trial.h"

static void copy_again_and_again(clv__launches *list, const clv__op_io *io) {
    for (int i = 0; i < 40; i++) copy_lower(list, io);
}

static void zeros(clv__launches *list, const clv__op_io *io) {
    clv__launch_fill(list, 0, copy_bytes(io), 0);
}

static double first(const clv_device_info *device, const clv__op_io *io) {
    return 0.5;
}

static double far(const clv_device_info *device, const clv__op_io *io) {
    return 1e9;
}

static const clv__op base = {.name = "copy", .infer = copy_infer, .reference = copy_reference};

typedef struct world {
    clv_runtime *runtime;
    clv_device *device; // NULL: none runs launches
} world;

/** Race these variants over n numbers; each for so long. */
static clv__trial *race(world *w, const clv__variant *variants, int64_t n, double seconds) {
    static clv__op op; // the trial points there
    op = base;
    op.variants = variants;
    const clv__desc numbers = clv__f32(CLV_SHAPE(n));
    clv__op_io io = {.op = &op, .n_in = 1, .n_out = 1, .in = &numbers, .out = {numbers}};
    clv__trial *trial;
    assert_status(clv__trial_create(w->device, &io, &trial), CLV_OK, w->runtime);
    assert_int_equal(clv__trial_is_large(trial), n > 500000);
    assert_status(clv__trial_run(trial, seconds), CLV_OK, w->runtime);
    return trial;
}

TEST(the_faster_one_is_found) {
    world *w = *state;
    if (!w->device) skip();
    for (int64_t n = 1000; n < 2000000; n *= 1000) {
        const clv__variant variants[] = {{"plain", .lower = copy_lower},
                                         {"slow", NULL, first, .lower = copy_again_and_again},
                                         {"picky", copy_never, .lower = copy_lower},
                                         {0}};
        bool found = false;
        // It is forty times the work, but a loaded machine may stop any run: one race of ten must tell.
        for (int attempt = 0; attempt < 10 && !found; attempt++) {
            clv__trial *trial = race(w, variants, n, 0.01);
            assert_int_equal(trial->n_candidates, 2);
            assert_true(clv__trial_is_open(trial));
            assert_string_equal(trial->candidates[0].variant->name, "slow"); // by its rank
            assert_true(trial->candidates[1].median_us > 0);
            found = trial->candidates[0].median_us > trial->candidates[1].median_us;
            clv__trial_destroy(trial);
        }
        assert_true(found);
    }
}

/** One that promises to be the fastest is wrong, and one that comes last: small, by the reference; large, by each other. */
TEST(a_wrong_one_is_not_timed) {
    world *w = *state;
    static const struct {
        void (*lower)(clv__launches *list, const clv__op_io *io);
        const char *words;
    } wrong[] = {{copy_last_forgotten, "wrong: element "},
                 {zeros, "wrong: element "},
                 {copy_past_the_end, "wrote outside its buffers: byte 0 after the end of out0"}};
    if (!w->device) skip();
    for (int64_t n = 1000; n < 2000000; n *= 1000)
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
            for (int is_first = 0; is_first < 2; is_first++) {
                const clv__variant variants[] = {
                    {"plain", .lower = copy_lower},
                    {"bad", NULL, is_first ? first : NULL, .lower = wrong[i].lower},
                    {0}};
                clv__trial *trial = race(w, variants, n, 0.002);
                const clv__candidate *bad = &trial->candidates[!is_first],
                                     *good = &trial->candidates[is_first];
                assert_string_equal(bad->variant->name, "bad");
                assert_non_null(bad->failure);
                assert_holds(bad->failure, wrong[i].words);
                assert_true(bad->median_us == 0);
                assert_null(good->failure);
                assert_true(good->median_us > 0);
                clv__trial_destroy(trial);
            }
}

TEST(what_is_far_behind_is_not_waited_for) {
    world *w = *state;
    if (!w->device) skip();
    const clv__variant variants[] = {
        {"plain", .lower = copy_lower}, {"far", NULL, far, .lower = copy_lower}, {0}};
    clv__trial *trial = race(w, variants, 1000, 0.002);
    assert_false(clv__trial_is_open(trial));
    assert_true(trial->candidates[0].median_us > 0);
    assert_true(trial->candidates[1].median_us == 0);
    assert_null(trial->candidates[1].failure);
    clv__trial_destroy(trial);
    trial = race(w, variants, 1000, 0); // to be checked only: every one
    assert_true(trial->candidates[0].median_us == 0);
    assert_null(trial->candidates[1].failure);
    clv__trial_destroy(trial);
}

static bool once(void *user, int done, int total, const char *what) {
    assert_true(total > 1 && *what);
    ++*(int *)user;
    return done == 0;
}

/** Stopped after the first use: its choice is in the file, and so is what was there for another. */
TEST(an_interrupted_tuning_keeps_what_is_known) {
    world *w = *state;
    if (!w->device) skip();
    char *folder = clv__test_folder(), file[1200], line[8192], *text = calloc(1, 1 << 16);
    snprintf(file, sizeof file, "%s/t.tuning", folder);
    for (int run = 0; run < 2; run++) {
        int calls = 0;
        clv_tune_config config = {.model = "linear",
                                  .batch = 3 + run,
                                  .seconds = 0.01,
                                  .file = file,
                                  .progress = once,
                                  .user = &calls};
        clv_tune_report *report;
        assert_status(clv_tune(w->runtime, w->device, &config, &report), CLV_OK, w->runtime);
        assert_true(report->interrupted);
        assert_int_equal(calls, 2);
        assert_int_equal(report->n_results, 1);
        assert_true(report->left >= 1);
        assert_string_equal(report->file, file);
        assert_int_equal(report->kept, 0 + (run && strstr(text, report->results[0].key) == NULL));
        FILE *in = fopen(file, "r");
        assert_non_null(in);
        for (*text = 0; fgets(line, sizeof line, in);) strcat(text, line);
        fclose(in);
        assert_holds(text, report->results[0].key);
        clv_free(report);
    }
    unlink(file);
    rmdir(folder);
    free(folder);
    free(text);
}

FIXTURE(setup) {
    world *w = *state = calloc(1, sizeof *w);
    w->runtime = clv__test_runtime(NULL);
    int i = -1;
    for (clv_device *device; (device = clv__test_next_device(w->runtime, &i));)
        if (!w->device && device->info.type != CLV_DEVICE_HOST) w->device = device;
}

FIXTURE(teardown) {
    world *w = *state;
    clv_runtime_destroy(w->runtime);
    free(w);
}

TEST_MAIN(setup, teardown)
