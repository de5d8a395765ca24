// SPDX-License-Identifier: Apache-2.0
// After fork: a child that uses its parent's objects gets a status and never hangs, whoever held a lock when it was made; destroys do
// nothing there; and the parent goes on as if nothing had been.
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "device/device.h"
#include "misuse/world.h"

static world w;

enum { PATIENCE = 60 }; // seconds: a child that hangs is ended by its alarm

/** Everything that would wait for a thread or a driver. 0: all is as it should be; else which call was not. */
static int misbehave(void) {
    float data[64];
    clv_batch batch;
    clv_graph *graph;
    clv_plan *plan;
    clv_run *run;
    int64_t ticket;
    size_t bytes = clv_session_get(w.session, 0).bytes;
    const clv_status got[] = {
        clv_run_feed(w.run, w.labels, data, ROWS * sizeof(int32_t)),
        clv_run_step(w.run, &ticket),
        clv_run_fetch(w.run, 0, w.loss, data, sizeof(float)),
        clv_run_do(w.run, &(clv_step){0}),
        clv_run_finish(w.run),
        clv_run_failed(w.run).status,
        clv_run_create(w.session, w.plan, &run),
        clv_session_read(w.session, 0, data, bytes),
        clv_session_write(w.session, 0, data, bytes),
        clv_session_reserve(w.session, &w.plan, 1),
        clv_session_move(w.session, NULL, w.host),
        clv_weights_save(w.session, "never.safetensors"),
        clv_plan_create(w.graph, NULL, &plan),
        clv_graph_create(w.runtime, &graph),
        clv_loader_next(w.loader, &batch),
        clv_predictor_forward(w.predictor, data, 1, data),
        clv_trainer_run(w.trainer),
    };
    for (size_t i = 0; i < sizeof got / sizeof *got; i++)
        if (got[i] != CLV_E_STATE) return (int)i + 1;
    if (!strstr(clv_runtime_error(w.runtime), "this is a fork of it")) return 100;
    world_end(&w);
    return 0;
}

/** Fork, do it there, and tell what came of it. */
static void in_a_child(int (*act)(void)) {
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(PATIENCE);
        _exit(act());
    }
    int how;
    assert_true(waitpid(child, &how, 0) == child);
    if (WIFSIGNALED(how)) fail_msg("the child was ended by signal %d", WTERMSIG(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

TEST(a_child_gets_a_status) {
    float before = world_step(&w, 1);
    (void)before;
    in_a_child(misbehave);
    world_step(&w, 2);
}

TEST(a_child_made_while_a_lock_is_held_too) {
    clv__error *error = clv__runtime_error_of(w.runtime);
    pthread_mutex_lock(&error->lock);
    in_a_child(misbehave);
    pthread_mutex_unlock(&error->lock);
    world_step(&w, 3);
}

#ifndef __SANITIZE_THREAD__ // which cannot start threads in a fork
static int begin_anew(void) {
    world fresh;
    world_begin(&fresh);
    float loss = world_step(&fresh, 1);
    world_end(&fresh);
    return loss > 0 ? 0 : 1;
}

TEST(a_child_can_make_its_own) {
    in_a_child(begin_anew);
}
#endif

FIXTURE(begin) {
    world_begin(&w);
}

FIXTURE(end) {
    world_end(&w);
}

TEST_MAIN(begin, end)
