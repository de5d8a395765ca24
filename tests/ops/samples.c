// SPDX-License-Identifier: Apache-2.0
// Every op's samples on every usable device. Environment: CLV_CHECK=full for all samples, CLV_CHECK=host for all on the host's
// references (which gradients by differences run again with the same shapes: of these, as on other devices, the quick ones),
// CLV_CHECK_OP for one op, CLV_CHECK_TILES for the tiles of clv__test_tiles alone, on devices with lanes, CLV_TEST_SEED. With a number in
// CLEAVE_TURN (.ci/run draws it by the commit) a third of the ops on the host, a 16th on devices that compile kernels.
#include "cleave/check.h"
#include "cleave/ops.h"
#include "graph/op.h"
#include "harness/harness.h"

static void tell(const clv_check_report *report, const char *device) {
    for (int i = 0; i < report->n_failures; i++) print_error("%s\n", report->failures[i].sentence);
    for (int i = 0; i < report->n_skipped; i++)
        print_message("skipped %d: %s: %s\n", report->skipped[i].cases, report->skipped[i].op,
                      report->skipped[i].reason);
    print_message("%s: %d cases, %d passed, %d failed, %d skipped, seed %llu\n", device, report->cases,
                  report->passed, report->failed, report->skipped_cases, (unsigned long long)report->seed);
}

TEST(every_sample_on_every_device) {
    static const char *const differences[] = {"*/differences/*", NULL}, *const tiles[] = {"*/gemm*", NULL};
    const bool only_tiles = getenv("CLV_CHECK_TILES");
    const char *how = getenv("CLV_CHECK"), *seed = getenv("CLV_TEST_SEED"), *turn = getenv("CLEAVE_TURN");
    bool full = how && strcmp(how, "full") == 0, host = how && strcmp(how, "host") == 0;
    clv_runtime *runtime = clv__test_runtime(NULL);
    int checked = 0, failed = 0;
    for (int i = -1; clv__test_next_device(runtime, &i);) {
        clv_device *device = clv_device_get(runtime, i);
        const clv_device_info *info = clv_device_info_get(device);
        bool references = host && info->type == CLV_DEVICE_HOST;
        if (only_tiles && (info->type == CLV_DEVICE_HOST || info->execution != CLV_EXECUTION_LANES)) continue;
        clv_check_config config = {.ops = (const char *const[]){getenv("CLV_CHECK_OP"), NULL},
                                   .quick = !full && !references,
                                   .cases = only_tiles ? tiles : NULL,
                                   .exclude = references                                 ? differences
                                              : info->execution == CLV_EXECUTION_THREADS ? clv__test_tiles + 1
                                                                                         : NULL,
                                   .seed = seed ? strtoull(seed, NULL, 10) : 0};
        if (turn && *turn) {
            config.n_shards = info->type == CLV_DEVICE_HOST ? 3 : 16;
            config.shard = (int)(strtol(turn, NULL, 10) % config.n_shards) + 1;
        }
        clv_check_report *report = NULL;
        assert_status(clv_check(runtime, device, &config, &report), CLV_OK, runtime);
        tell(report, info->label);
        assert_int_equal(report->cases, report->passed + report->failed);
        assert_true(report->cases > 0 || (only_tiles && turn)); // a 16th of them may be none
        failed += report->failed;
        clv_free(report);
        checked++;
    }
    clv_runtime_destroy(runtime);
    if (only_tiles && !checked) skip();
    assert_true(checked > 0);
    assert_int_equal(failed, 0);
}

/** An op without samples, or whose quick ones are missing, would pass by not being looked at. */
static void samples_of(const clv__op *const *op) {
    for (; *op; op++) {
        clv__sample sample = {0};
        int n = 0, quick = 0;
        for (; clv__op_sample(*op, n, &sample); n++) {
            quick += sample.quick;
            if (!memchr(sample.label, 0, sizeof sample.label) || !sample.label[0])
                fail_msg("%s: sample %d has no label", (*op)->name, n);
        }
        if (n == 0 || quick == 0) fail_msg("%s has %d samples, %d of them quick", (*op)->name, n, quick);
    }
}

TEST(every_op_has_samples) {
    samples_of(clv__ops);
    samples_of(clv__composites);
}

TEST_MAIN(NULL, NULL)
