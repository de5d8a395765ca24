// SPDX-License-Identifier: Apache-2.0
// Trainings that lose a device (tests/device/lost_layer.c): what they say, what is on disk then, and that going on without
// a replica gives the bits of a training that did without it from that step on.
#include <unistd.h>

#include "cleave/train.h"
#include "device/device.h"
#include "device/lost.h"
#include "train/small.h"

enum { SAMPLES = 26, BATCH = 8, EPOCHS = 3, BATCHES = 4, STEPS = EPOCHS * BATCHES, MOST_FLOATS = 2048 };

static clv_runtime *runtime;
static clv_dataset *dataset;
static int warnings;
static char newest_warning[4096];

static void on_log(void *user, clv_log_level level, const char *sentence) {
    if (level != CLV_LOG_WARNING || !strstr(sentence, "failed in step")) return;
    warnings++;
    snprintf(newest_warning, sizeof newest_warning, "%s", sentence);
}

static const char *const pair[] = {"cpu:0", "cpu:1"}, *const three[] = {"cpu:0", "cpu:1", "host"};
static const double shares_of_pair[] = {0.5, 0.5}, shares_of_three[] = {0.5, 0.25, 0.25};

static clv_train_config config_of(const char *const *replicas, const double *shares, int n) {
    clv_train_config config = small_config(&small_model, dataset, BATCH, EPOCHS);
    config.placement = (clv_placement){.replicas = replicas, .shares = shares, .n_replicas = n};
    return config;
}

FIXTURE(setup) {
    dataset = small_dataset(runtime, SAMPLES);
}

FIXTURE(teardown) {
    clv_dataset_destroy(dataset);
}

/** What a training ended with. */
typedef struct outcome {
    clv_status status;
    clv_train_result result;
    clv_lost_device lost; // the first; its reason is gone
    int n_lost;
    double shares[3];
    long calls; // enqueues of the device that was armed
    int n_floats;
    float floats[MOST_FLOATS]; // all that the session keeps
} outcome;

/** Train; the device that is armed fails at its enqueue. Where training worked, memory was what was predicted. */
static outcome train(const clv_train_config *config, int device, long enqueue, int code, bool late) {
    outcome out = {0};
    clv_device *devices[3];
    for (int i = 0; i < 3; i++) clv_device_memory_reset_peak(devices[i] = clv_device_get(runtime, i));
    clv_trainer *trainer = clv__test_trainer(runtime, config);
    lost_arm(device, enqueue, code, late);
    out.status = clv_trainer_run(trainer);
    out.calls = lost_calls();
    lost_arm(-1, 0, 0, 0);
    out.result = clv_trainer_result(trainer);
    out.n_lost = clv_trainer_info_get(trainer).n_lost;
    if (out.n_lost) {
        out.lost = clv_trainer_info_get(trainer).lost[0];
        assert_true(*out.lost.reason);
    }
    for (int i = 0; i < config->placement.n_replicas; i++)
        out.shares[i] = clv_trainer_info_get(trainer).shares[i];
    assert_int_equal(clv_trainer_info_get(trainer).n_devices, config->placement.n_replicas);
    for (int i = 0; i < config->placement.n_replicas && out.status == CLV_OK; i++) {
        clv_device *one = clv_trainer_info_get(trainer).devices[i];
        assert_int_equal(clv_device_memory(one).all.peak,
                         clv_trainer_device_info_get(trainer, one).memory.predicted_peak_bytes);
    }
    if (out.status == CLV_OK)
        assert_status(
            small_read(clv_trainer_info_get(trainer).session, out.floats, MOST_FLOATS, &out.n_floats), CLV_OK,
            runtime);
    char sentence[4096];
    snprintf(sentence, sizeof sentence, "%s", clv_runtime_error(runtime));
    clv_trainer_destroy(trainer);
    if (out.status != CLV_OK) assert_string_equal(clv_runtime_error(runtime), sentence);
    for (int i = 0; i < 3; i++) assert_int_equal(clv_device_memory(devices[i]).all.current, 0);
    return out;
}

static const char *checkpoint_path(void) {
    const char *path = CLV_TEST_BINARY_DIR "/train_lost.checkpoint";
    remove(path);
    return path;
}

/** A training with all devices for `steps`, and without one of them from then on. */
static outcome train_in_two(clv_train_config config, int64_t steps, const char *const *rest,
                            const double *shares, int n) {
    config.on_device_failure = CLV_DEVICE_FAILURE_STOP;
    if (steps > 0) {
        clv_train_config first = config;
        first.steps = steps;
        first.checkpoint = checkpoint_path();
        assert_status(train(&first, -1, 0, 0, false).status, CLV_OK, runtime);
        config.resume = first.checkpoint;
    }
    config.placement = (clv_placement){.replicas = rest, .shares = shares, .n_replicas = n};
    outcome out = train(&config, -1, 0, 0, false);
    assert_status(out.status, CLV_OK, runtime);
    return out;
}

static void same_bits(const outcome *a, const outcome *b) {
    assert_int_equal(a->n_floats, b->n_floats);
    assert_memory_equal(a->floats, b->floats, (size_t)a->n_floats * sizeof(float));
    assert_memory_equal(&a->result.train_loss, &b->result.train_loss, sizeof a->result.train_loss);
    assert_memory_equal(&a->result.test.loss, &b->result.test.loss, sizeof a->result.test.loss);
    assert_int_equal(a->result.steps, b->result.steps);
}

/** Lose the second of two at many an enqueue, and compare with a training that did without it from that step on. */
static void going_on(int code, bool late, int parts) {
    clv_train_config config = config_of(pair, shares_of_pair, 2);
    config.on_device_failure = CLV_DEVICE_FAILURE_CONTINUE;
    outcome whole = train(&config, 1, 0, 0, false);
    assert_status(whole.status, CLV_OK, runtime);
    assert_int_equal(whole.n_lost, 0);
    assert_int_equal(whole.result.steps, STEPS);
    int told = warnings;
    for (int i = 0; i < parts; i++) {
        long enqueue = whole.calls * i / parts + i + 1; // not in the same place of a step
        outcome lost = train(&config, 1, enqueue, code, late);
        assert_status(lost.status, CLV_OK, runtime);
        assert_int_equal(lost.n_lost, 1);
        assert_int_equal(++told, warnings);
        assert_holds(newest_warning, "cpu:1 failed in step ");
        assert_holds(newest_warning, "; going on without it");
        assert_ptr_equal(lost.lost.device, clv_device_get(runtime, 1));
        assert_in_range(lost.lost.step, 1, STEPS);
        assert_true(lost.shares[0] == 1 && lost.shares[1] == 0);
        outcome want = train_in_two(config, lost.lost.step - 1, pair, (const double[]){1}, 1);
        same_bits(&lost, &want);
    }
}

TEST(test_going_on) {
    going_on(-5, false, 9);
}

TEST(test_going_on_when_waiting_fails) {
    going_on(-9999, true, 5);
}

TEST(test_going_on_with_two_of_three) {
    static const char *const two[] = {"cpu:0", "host"};
    clv_train_config config = config_of(three, shares_of_three, 3);
    config.on_device_failure = CLV_DEVICE_FAILURE_CONTINUE;
    outcome lost = train(&config, 1, 150, -2, false);
    assert_status(lost.status, CLV_OK, runtime);
    assert_int_equal(lost.n_lost, 1);
    assert_true(lost.shares[1] == 0);
    assert_true(lost.shares[0] > 0.66 && lost.shares[0] < 0.67 && lost.shares[2] > 0.33 &&
                lost.shares[2] < 0.34);
    outcome want = train_in_two(config, lost.lost.step - 1, two, (const double[]){2.0 / 3, 1.0 / 3}, 2);
    same_bits(&lost, &want);
}

/** Without leave to go on: all that was learned is on disk, and is gone on with elsewhere. */
TEST(test_stopping) {
    char want[1024];
    clv_train_config config = config_of(pair, shares_of_pair, 2);
    config.checkpoint = checkpoint_path();
    outcome lost = train(&config, 1, 150, -5, false);
    assert_int_equal(lost.status, CLV_E_DEVICE_LOST);
    assert_int_equal(lost.n_lost, 0);
    long done = (long)lost.result.steps;
    assert_in_range(done, 1, STEPS - 1);
    snprintf(want, sizeof want, "cpu:1 failed in step %ld of %d: ", done + 1, STEPS);
    assert_true(strstr(clv_runtime_error(runtime), want) == clv_runtime_error(runtime));
    assert_holds(clv_runtime_error(runtime), "CL_OUT_OF_RESOURCES (-5)");
    snprintf(want, sizeof want,
             "; all %ld steps before it are in checkpoint '%s': go on with clv_train_config.resume %s", done,
             config.checkpoint, config.checkpoint);
    assert_holds(clv_runtime_error(runtime), want);

    clv_train_config resumed = config_of(pair, (const double[]){1}, 1);
    resumed.resume = config.checkpoint;
    outcome end = train(&resumed, -1, 0, 0, false);
    assert_status(end.status, CLV_OK, runtime);
    config.checkpoint = NULL;
    outcome two = train_in_two(config, done, pair, (const double[]){1}, 1);
    same_bits(&end, &two);

    lost = train(&config, 1, 150, -5, false);
    assert_int_equal(lost.status, CLV_E_DEVICE_LOST);
    snprintf(want, sizeof want,
             "; there is no checkpoint (clv_train_config.checkpoint): all %ld steps before it are lost",
             (long)lost.result.steps);
    assert_holds(clv_runtime_error(runtime), want);

    config.checkpoint = "/dev/full";         // told when it is written; what can be told before is
    lost = train(&config, 1, 60, -5, false); // before an epoch ends
    assert_int_equal(lost.status, CLV_E_DEVICE_LOST);
    assert_holds(clv_runtime_error(runtime), "; the checkpoint could not be written either: ");
    assert_holds(clv_runtime_error(runtime), "/dev/full");

    const char **const late[] = {&config.checkpoint, &config.best, &config.gradients};
    for (int i = 0; i < 3; i++) {
        config.checkpoint = config.best = config.gradients = NULL;
        *late[i] = "/nowhere/file";
        outcome early = train(&config, -1, 0, 0, false);
        assert_int_equal(early.status, CLV_E_IO);
        assert_int_equal(early.result.steps, 0);
    }
}

/** The first keeps the parameters: the last checkpoint on disk is named. */
TEST(test_the_first_is_lost) {
    char want[1024];
    clv_train_config config = config_of(pair, shares_of_pair, 2);
    config.on_device_failure = CLV_DEVICE_FAILURE_CONTINUE;
    outcome whole = train(&config, 0, 0, 0, false);
    int in_steps = 0, in_evaluation = 0;
    for (int i = 4; i < 12; i++) {
        config.checkpoint = checkpoint_path();
        outcome lost = train(&config, 0, whole.calls * i / 12 + i, -9999, false);
        assert_int_equal(lost.status, CLV_E_DEVICE_LOST);
        const char *sentence = clv_runtime_error(runtime);
        long done = (long)lost.result.steps, saved = done / BATCHES * BATCHES;
        if (!strstr(sentence, "cpu:0 failed in step ")) { // in evaluation, or while a checkpoint was written
            in_evaluation++;
            snprintf(want, sizeof want, "after step %ld of %d: ", done, STEPS);
            assert_holds(sentence, want);
            assert_holds(sentence, "checkpoint");
            continue;
        }
        in_steps++;
        assert_holds(sentence, "; the others cannot go on without the parameters it kept; ");
        if (done == saved)
            snprintf(
                want, sizeof want,
                "; all %ld steps before it are in checkpoint '%s': go on with clv_train_config.resume %s",
                done, config.checkpoint, config.checkpoint);
        else
            snprintf(want, sizeof want,
                     "; %ld steps before it are lost, the last checkpoint is '%s' of step %ld: go on with "
                     "clv_train_config.resume %s",
                     done - saved, config.checkpoint, saved, config.checkpoint);
        assert_holds(sentence, want);
        assert_int_equal(access(config.checkpoint, R_OK), 0);
    }
    assert_true(in_steps && in_evaluation);

    config.checkpoint = NULL;
    outcome lost = train(&config, 0, 60, -9999, false);
    assert_int_equal(lost.status, CLV_E_DEVICE_LOST);
    assert_holds(clv_runtime_error(runtime), "; there is no checkpoint (clv_train_config.checkpoint): all ");
}

/** Layers on two devices: each keeps some parameters, neither can be done without. */
TEST(test_a_placed_device_is_lost) {
    clv_train_config config = config_of(NULL, NULL, 0);
    config.placement.place = "conv=cpu:0,norm=cpu:0,fc=cpu:1";
    config.on_device_failure = CLV_DEVICE_FAILURE_CONTINUE;
    clv_trainer *trainer = clv__test_trainer(runtime, &config);
    lost_arm(1, 100, -5, 0);
    assert_int_equal(clv_trainer_run(trainer), CLV_E_DEVICE_LOST);
    lost_arm(-1, 0, 0, 0);
    assert_holds(clv_runtime_error(runtime), "cpu:1 failed in step ");
    assert_holds(clv_runtime_error(runtime), "; there is no checkpoint (clv_train_config.checkpoint): all ");
    clv_trainer_destroy(trainer);
}

/** The second fails, and nobody knows what still runs on the first: nothing is forgotten, and nothing of it becomes a checkpoint.
 *  The last test: the first device stays lost. */
TEST(test_no_device_is_left) {
    clv_train_config config = config_of(pair, shares_of_pair, 2);
    config.on_device_failure = CLV_DEVICE_FAILURE_CONTINUE;
    config.checkpoint = checkpoint_path();
    clv_trainer *trainer = clv__test_trainer(runtime, &config);
    const int told = warnings;
    lost_arm(1, 60, -5, 0); // before an epoch ends
    clv__device_lose(clv_device_get(runtime, 0));
    assert_int_equal(clv_trainer_run(trainer), CLV_E_DEVICE_LOST);
    lost_arm(-1, 0, 0, 0);
    assert_holds(clv_runtime_error(runtime), "cpu:1 failed in step ");
    assert_holds(clv_runtime_error(runtime), "; no other device is left; no checkpoint was written to '");
    assert_int_equal(access(config.checkpoint, F_OK), -1);
    assert_int_equal(warnings, told); // none that it goes on
    assert_int_equal(clv_trainer_info_get(trainer).n_lost, 0);
    assert_true(clv_session_info_get(clv_trainer_info_get(trainer).session).n_tensors > 0);
    clv_trainer_destroy(trainer);
}

int main(void) {
    int status = 0;
    if (!(runtime = lost_runtime(on_log, &status))) return status;
    int failed = clv__tests_run(setup, teardown);
    clv_runtime_destroy(runtime);
    return failed;
}
