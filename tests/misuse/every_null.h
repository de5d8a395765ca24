// SPDX-License-Identifier: Apache-2.0
// What every_null.c, which tools/declarations.py makes of the headers, calls functions with: an object of each kind, room for structs,
// and what looks at the answer. The functions of each header are called in a process of their own, so that a crash or a call without end
// is told and the others go on.
#ifndef CLV_TESTS_MISUSE_EVERY_NULL_H
#define CLV_TESTS_MISUSE_EVERY_NULL_H

#include <sys/wait.h>
#include <unistd.h>

#include "misuse/world.h"

static clv_runtime *a_clv_runtime;
static clv_device *a_clv_device;
static clv_graph *a_clv_graph;
static clv_tensor *a_clv_tensor;
static clv_plan *a_clv_plan;
static clv_session *a_clv_session;
static clv_run *a_clv_run;
static clv_archive *a_clv_archive;
static clv_dataset *a_clv_dataset;
static clv_loader *a_clv_loader;
static clv_predictor *a_clv_predictor;
static clv_trainer *a_clv_trainer;
static clv_profile *a_clv_profile;
static clv_vocabulary *a_clv_vocabulary;
static clv_generator *a_clv_generator;
static clv_confusion *a_clv_confusion;
static clv_onnx *a_clv_onnx;
static clv_tensor *no_tensor;
static const char *a_text = "no such folder/x"; // a name that is none of a file

static int calls, wrong;

static void nothing(void) {}

/** Zeros, more than any struct has, another time elsewhere: no function that was given a NULL looks at them. */
static inline void *room(void) {
    static _Alignas(64) char zeros[8][1 << 14];
    static int turn;
    _Static_assert(sizeof(clv_train_config) < sizeof *zeros && sizeof(clv_metrics) < sizeof *zeros &&
                       sizeof(clv_node_info) < sizeof *zeros,
                   "room for each struct");
    return memset(zeros[turn++ % 8], 0, sizeof *zeros);
}

static inline void begin(void) {
    static world w;
    world_begin(&w);
    a_clv_runtime = w.runtime, a_clv_device = w.host, a_clv_graph = w.graph, a_clv_tensor = w.x;
    a_clv_plan = w.plan, a_clv_session = w.session, a_clv_run = w.run, a_clv_archive = w.archive;
    a_clv_dataset = w.dataset, a_clv_loader = w.loader, a_clv_predictor = w.predictor;
    a_clv_trainer = w.trainer, a_clv_profile = w.profile;
    assert_status(clv_vocabulary_create(w.runtime, CLV_VOCABULARY_BYTES, NULL, 0, &a_clv_vocabulary), CLV_OK,
                  w.runtime);
    static const char relu[] =
        "\010\010\022\000:'\012\014\012\001x\022\001y\042\004Relu\022\001gZ\011\012\001x\022\004"
        "\012\002\010\001b\011\012\001y\022\004\012\002\010\001B\004\012\000\020\021"; // y = Relu(x)
    const clv_onnx_config any_shape = {.any_shape = true};
    assert_status(clv_onnx_read_bytes(w.runtime, "relu", relu, sizeof relu - 1, &any_shape, &a_clv_onnx),
                  CLV_OK, w.runtime);
    assert_status(clv_confusion_create(w.runtime, &model, NULL, &a_clv_confusion), CLV_OK, w.runtime);
    const clv_gpt_config gpt = {.vocabulary = 4, .context = 4, .width = 4, .heads = 1, .layers = 1};
    const clv_generator_config writes = {.device = w.host, .gpt = &gpt};
    assert_status(clv_generator_create(w.runtime, &writes, &a_clv_generator), CLV_OK, w.runtime);
}

/** What a call has to answer: any status, where a runtime is wanted for sentences alone; a mistake; and the sentence that says what is
 *  NULL, where a runtime is known that keeps it. */
typedef enum answer { ANY, REFUSED, TOLD } answer;

static inline void look(answer wanted, const char *function, const char *parameter, clv_status status) {
    char sentence[256];
    const char *said = clv_runtime_error(a_clv_runtime);
    snprintf(sentence, sizeof sentence, "%s: %s is NULL", function, parameter);
    calls++;
    if (wanted == ANY || (status == CLV_E_VALUE && (wanted != TOLD || !strcmp(said, sentence)))) return;
    wrong++;
    printf("%s: %s is NULL: %s, '%s'\n", function, parameter, clv_status_name(status),
           wanted == TOLD ? said : "");
}

/** Call it. A crash leaves its name as the last line. */
#define CALL(wanted, function, parameter, call)                                                              \
    do {                                                                                                     \
        fprintf(stderr, "%s with %s NULL\n", function, parameter);                                           \
        look(wanted, function, parameter, call);                                                             \
    } while (0)

/** Call what takes NULL. */
#define PASSES(function, right)                                                                              \
    do {                                                                                                     \
        fprintf(stderr, "%s with NULL\n", function);                                                         \
        calls++;                                                                                             \
        if (!(right)) wrong++, printf("%s of NULL is not NULL\n", function);                                 \
    } while (0)

/** The calls of one header. */
typedef struct part {
    const char *header;
    void (*calls)(void);
} part;

static inline void do_part(const part *one) {
    alarm(100); // of a call without end
    begin();
    one->calls();
    printf("%s: %d calls, %d wrong\n", one->header, calls, wrong);
    fflush(NULL);
    _exit(wrong != 0); // what was made by a call that should have refused is nobody's
}

static inline int each(const part *parts, size_t n) {
    int failed = 0;
    for (size_t i = 0; i < n; i++) {
        fflush(NULL);
        int state = -1;
        const pid_t child = fork();
        if (child == 0) do_part(&parts[i]);
        if (child > 0 && waitpid(child, &state, 0) == child && WIFEXITED(state) && !WEXITSTATUS(state))
            continue;
        failed = 1;
        if (WIFSIGNALED(state))
            printf("%s: signal %d, in the call above\n", parts[i].header, WTERMSIG(state));
    }
    return failed;
}

#endif
