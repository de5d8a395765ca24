// SPDX-License-Identifier: Apache-2.0
// Trainings under faults (tests/device/fault_layer.c): each call of each OpenCL function fails, in each way, with each code, and what
// comes of it is sorted. A case is a number, so a part of them can be run, and one again by itself:
//
//   training MODE [--every K] [--from I] [--only I] [--kinds LETTERS] [--call NAME] [--code N] [--positions P] [--calls FILE]
//
// NAME, N: only faults of that function, with that code. P: no more than so many calls of each function, from the first to the last. FILE: how often each function is called, by which cases are
// numbered. It is written if it is not there: a few calls depend on time, so a sweep in several processes would count differently in each.
//
// A line for each case: number, call, n, code, how it failed, outcome, sentence. If all were run: the cases with an outcome that must
// not be, once more; a line with how many had which outcome; a line `next I`. Exit 1: a case had an outcome that must not be. Outcomes:
//
//   same       the training was done, and its weights are those of one without faults, bit for bit
//   told       it failed with a sentence that names the call and the code; a checkpoint that it names goes on to the same weights (where
//              a replica had been done without before, to some end)
//   without    it went on without a replica and said so; the weights are those of a training that did without from that step on
//   avoided    it went on with other kernels and said so
//   unseen     it was done with other weights, and no program could have seen it: neither call nor event said so
//   WRONG, LEAK, WORDS, LOST, HANG   other weights although it could be seen; objects that live on; a sentence without call or code; a
//              checkpoint that does not go on; no end
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <unistd.h>

#include "cleave/train.h"
#include "device/fault_layer.h"
#include "train/small.h"

enum {
    SAMPLES = 26,
    BATCH = 8,
    BATCHES = 4,
    EPOCHS = 2,
    STEPS = EPOCHS * BATCHES,
    MOST_FLOATS = 4096,
    MOST_NAMES = 64,
    MOST_WAITS = 3000,   // of a millisecond each
    MOST_EVERY_KEPT = 50 // of fewer cases keeping programs costs more than it brings
};

static void (*fault_arm_call)(const char *call, long n, int code, fault_kind kind);
static const char *(*fault_fired)(void);
static const char *(*fault_name)(int i, long *n);
static int (*fault_live)(void);
static void (*fault_keep_programs)(void);

static const int codes[] = {-2, -4, -5, -6, -14, -30, -34, -36, -38, -54, -9999};
static const char *const kind_names[] = {"once",         "from then on", "in the event",
                                         "all after it", "unseen",       "silent"};
static const char kind_letters[] = "oneaus";
enum { CODES = sizeof codes / sizeof *codes, ALLOCATION_FAILURE = -4 };

// ---- a training -------------------------------------------------------------------------------------------------------

typedef struct mode {
    const char *name, *partition;
    int n_replicas;
    const char *place;
    bool goes_on, checkpoints, budget, pointers;
} mode;

static const mode modes[] = {
    {"plain", "", 0, NULL, false, false, false, false},
    {"replicas", "cpu:0=2", 2, NULL, false, false, false, false},
    {"continue", "cpu:0=2", 2, NULL, true, true, false, false},
    {"checkpoints", "", 0, NULL, false, true, false, false},
    {"budget", "", 0, NULL, false, false, true, false},
    {"placed", "cpu:0=2", 0, "conv=cpu:0,norm=cpu:0,fc*=cpu:1", false, false, false, false},
    // as NVIDIA's driver: memory by pointers, and events are asked
    {"pointers", "", 0, NULL, false, false, false, true},
};

typedef struct outcome {
    clv_status status;
    char sentence[2048];
    char warnings[4096]; // what the log was told
    int n_lost, n_floats, live;
    int64_t lost_step, steps;
    float floats[MOST_FLOATS];
} outcome;

static const mode *how;
static const char *device;    // that trains, or the first of them
static double patience = 300; // a first step compiles
static uint64_t budget;       // of cpu:0 in mode budget
static char checkpoint[4096];

static void on_log(void *user, clv_log_level level, const char *sentence) {
    outcome *out = user;
    size_t n = strlen(out->warnings);
    if (level == CLV_LOG_WARNING) snprintf(out->warnings + n, sizeof out->warnings - n, "%s\n", sentence);
}

/** What differs from the mode: a part of the training, without the second replica, from a checkpoint. */
typedef struct part {
    int64_t steps;
    bool alone;
    const char *resume, *checkpoint;
} part;

static clv_status train(clv_runtime *runtime, clv_dataset *dataset, const part *of, outcome *out) {
    static const char *const replicas[] = {"cpu:0", "cpu:1"};
    static const double shares[] = {0.5, 0.5}, whole[] = {1};
    clv_train_config config = small_config(&small_model, dataset, BATCH, EPOCHS);
    config.steps = of->steps;
    config.resume = of->resume;
    config.checkpoint = of->checkpoint;
    config.checkpoint_every = of->checkpoint ? 3 : 0;
    config.recompute = how->budget ? "auto" : NULL;
    clv_status status = clv_device_find(runtime, device, &config.device);
    if (status != CLV_OK) return status;
    clv_device_set_budget(config.device, how->budget ? budget : 0);
    if (how->n_replicas)
        config.placement = (clv_placement){
            .replicas = replicas, .shares = of->alone ? whole : shares, .n_replicas = of->alone ? 1 : 2};
    config.placement.place = how->place;
    config.on_device_failure =
        how->goes_on && !of->alone ? CLV_DEVICE_FAILURE_CONTINUE : CLV_DEVICE_FAILURE_STOP;
    clv_trainer *trainer;
    status = clv_trainer_create(runtime, &config, &trainer);
    if (status != CLV_OK) return status;
    if (how->budget && !budget)
        budget = clv_trainer_device_info_get(trainer, NULL).memory.predicted_peak_bytes;
    status = clv_trainer_run(trainer);
    out->steps = clv_trainer_result(trainer).steps;
    out->n_lost = clv_trainer_info_get(trainer).n_lost;
    if (out->n_lost) out->lost_step = clv_trainer_info_get(trainer).lost[0].step;
    if (status == CLV_OK)
        status = small_read(clv_trainer_info_get(trainer).session, out->floats, MOST_FLOATS, &out->n_floats);
    if (status != CLV_OK) snprintf(out->sentence, sizeof out->sentence, "%s", clv_runtime_error(runtime));
    clv_trainer_destroy(trainer);
    return status;
}

static int kept; // objects of devices that did not answer: they stay

/** Did a device not answer? Its driver is not called any more, not to release objects either. */
static bool left_alone(const outcome *out) {
    return strstr(out->sentence, "has not answered for") || strstr(out->warnings, "has not answered for");
}

/** From nothing to nothing. */
static outcome run(const part *of) {
    static outcome out;
    memset(&out, 0, sizeof out);
    clv_runtime *runtime = NULL, *files = NULL;
    const clv_runtime_config plain = {.no_opencl = true};
    const clv_runtime_config config = {.partition = how->partition,
                                       .visible_devices = *how->partition ? "cpu:0,cpu:1" : device,
                                       .device_timeout = patience,
                                       .log = on_log,
                                       .log_user = &out};
    assert_int_equal(clv_runtime_create(&plain, &files), CLV_OK); // data are not what is tested here
    clv_dataset *dataset = small_dataset(files, SAMPLES);
    out.status = clv_runtime_create(&config, &runtime);
    if (out.status == CLV_OK) out.status = train(runtime, dataset, of, &out);
    if (out.status != CLV_OK && !*out.sentence && runtime)
        snprintf(out.sentence, sizeof out.sentence, "%s", clv_runtime_error(runtime));
    clv_runtime_destroy(runtime);
    clv_dataset_destroy(dataset);
    clv_runtime_destroy(files);
    out.live = fault_live();
    for (int i = 0; out.live > kept && !left_alone(&out) && i < MOST_WAITS; i++) {
        usleep(1000); // a driver's thread may hold an object for a moment longer
        out.live = fault_live();
    }
    return out;
}

static bool same_weights(const outcome *a, const outcome *b) {
    return a->n_floats == b->n_floats &&
           !memcmp(a->floats, b->floats, (size_t)a->n_floats * sizeof *a->floats);
}

static bool near_weights(const outcome *a, const outcome *b) {
    bool near = a->n_floats == b->n_floats;
    for (int i = 0; i < a->n_floats && near; i++) near = fabsf(a->floats[i] - b->floats[i]) <= 1e-3f;
    return near;
}

// ---- sorting ----------------------------------------------------------------------------------------------------------

static outcome whole;

/** A training that does without the second replica from a step on. */
static const outcome *without(int64_t step) {
    static outcome known[STEPS + 2];
    static bool is_known[STEPS + 2];
    if (step < 1 || step > STEPS + 1) return NULL;
    if (!is_known[step]) {
        char path[4200];
        snprintf(path, sizeof path, "%s.without", checkpoint);
        if (step > 1) (void)run(&(part){.steps = step - 1, .checkpoint = path});
        known[step] = run(&(part){.alone = true, .resume = step > 1 ? path : NULL});
        assert_int_equal(known[step].status, CLV_OK);
        is_known[step] = true;
    }
    return &known[step];
}

typedef struct fault {
    const char *call;
    long n;
    int code;
    fault_kind kind;
} fault;

static bool holds_code(const char *text, int code) {
    char want[16];
    snprintf(want, sizeof want, "(%d)", code);
    return strstr(text, want) != NULL;
}

/** What the program is told: clSVMAlloc gives no code. */
static int told_code(const fault *f) {
    return strcmp(f->call, "clSVMAlloc") != 0 ? f->code : ALLOCATION_FAILURE;
}

/** The checkpoint on disk goes on, to the end of a training without faults where all replicas were there until then. */
static bool goes_on(const outcome *out) {
    static outcome resumed;
    fault_arm_call("", 0, 0, FAULT_ONCE);
    resumed = run(&(part){.resume = checkpoint});
    if (resumed.status != CLV_OK || resumed.n_floats != whole.n_floats) return false;
    return out->n_lost || same_weights(&resumed, &whole);
}

static const char *sort(const fault *f, outcome *out) {
    const int code = told_code(f);
    if (out->live > kept && !left_alone(out)) return "LEAK";
    bool seen = f->kind != FAULT_UNSEEN;
    if (out->status == CLV_OK) {
        if (same_weights(out, &whole)) return "same";
        if (out->n_lost) {
            const outcome *want = without(out->lost_step);
            return want && same_weights(out, want) ? "without" : "WRONG";
        }
        if (holds_code(out->warnings, code) && near_weights(out, &whole)) return "avoided";
        return seen ? "WRONG" : "unseen";
    }
    if (f->kind == FAULT_SILENT) {
        if (!strstr(out->sentence, "has not answered for")) return "WORDS";
    } else if (seen && (!strstr(out->sentence, f->call) || !holds_code(out->sentence, code))) {
        return f->kind == FAULT_ON && holds_code(out->sentence, code) && strstr(out->sentence, "cl")
                   ? "told"
                   : "WORDS";
    }
    if (how->checkpoints && strstr(out->sentence, "go on with clv_train_config.resume") && !goes_on(out))
        return seen ? "LOST" : "unseen";
    return seen ? "told" : "unseen";
}

static char at_hand[256];

static void on_alarm(int number) {
    ssize_t n = write(STDOUT_FILENO, at_hand, strlen(at_hand));
    n += write(STDOUT_FILENO, " HANG\n", 6);
    _exit(n ? 3 : 4);
}

static struct {
    const char *outcome; // as sort() gives it
    long n;
} counts[16];
static char *bad; // lines of the cases that must not be
static size_t bad_bytes;
static FILE *bad_lines;

static void count(const char *sorted, const char *sentence) {
    int i = 0;
    while (counts[i].outcome && strcmp(counts[i].outcome, sorted) != 0) i++;
    counts[i].outcome = sorted;
    counts[i].n++;
    if (*sorted >= 'a') return;
    if (!bad_lines) bad_lines = open_memstream(&bad, &bad_bytes);
    assert_non_null(bad_lines);
    fprintf(bad_lines, "must not be: %s %s | %s\n", at_hand, sorted, sentence);
}

/** What came of all; true: no case was one that must not be. */
static bool sum_up(void) {
    if (bad_lines) {
        fclose(bad_lines);
        fputs(bad, stdout);
        free(bad);
    }
    printf("%s:", how->name);
    for (int i = 0; counts[i].outcome; i++) printf("%s %ld %s", i ? "," : "", counts[i].n, counts[i].outcome);
    printf("\n");
    return !bad_lines;
}

/** Forget what an earlier case has left on disk. */
static void clear_checkpoints(void) {
    char path[4200];
    remove(checkpoint);
    snprintf(path, sizeof path, "%s.prev", checkpoint);
    remove(path);
}

static void try_case(long number, const fault *f) {
    const part of = {.checkpoint = how->checkpoints ? checkpoint : NULL};
    clear_checkpoints();
    snprintf(at_hand, sizeof at_hand, "%ld %s %ld %d %s:", number, f->call, f->n, f->code,
             kind_names[f->kind]);
    alarm(100);
    fault_arm_call(f->call, f->n, f->code, f->kind);
    patience = f->kind == FAULT_SILENT ? 2 : 30;
    static outcome out;
    out = run(&of);
    patience = 300;
    const char *fired = fault_fired();
    fault_arm_call("", 0, 0, FAULT_ONCE);
    const char *sorted = fired ? sort(f, &out) : "same"; // not so many calls this time
    kept = out.live;
    alarm(0);
    for (char *at = out.sentence; *at; at++)
        if (*at == '\n') *at = ' ';
    printf("%s %s | %s\n", at_hand, sorted, out.sentence);
    fflush(stdout);
    count(sorted, out.sentence);
}

// ---- all cases --------------------------------------------------------------------------------------------------------

static struct {
    const char *call;
    long n;
} names[MOST_NAMES];
static int n_names;
static long most_positions; // of a function's calls; 0: all

static long positions_of(long n) {
    return most_positions && n > most_positions ? most_positions : n;
}

static bool enqueues(const char *call) {
    return !strncmp(call, "clEnqueue", 9);
}

/** The case of that number: codes change first, then calls of all names side by side, then ways; false past the last. */
static bool case_of(long number, fault *out) {
    for (int kind = 0; kind < FAULT_KINDS; kind++) {
        for (int i = 0; i < n_names; i++) {
            if (kind > FAULT_ON && !enqueues(names[i].call)) continue;
            bool coded = kind != FAULT_UNSEEN && kind != FAULT_SILENT; // a code is told
            long positions = positions_of(names[i].n), n = positions * (coded ? CODES : 1);
            if (number >= n) {
                number -= n;
                continue;
            }
            long at = coded ? number / CODES : number;
            if (positions < names[i].n) at = positions > 1 ? at * (names[i].n - 1) / (positions - 1) : 0;
            *out = (fault){names[i].call, 1 + at, codes[coded ? number % CODES : 0], (fault_kind)kind};
            return true;
        }
    }
    return false;
}

/** Which functions there are and how often each is called: from the file, or from the training that was just run. */
static bool find_calls(const char *path) {
    static char calls[MOST_NAMES][64];
    FILE *file = path ? fopen(path, "r") : NULL;
    if (file) {
        while (n_names < MOST_NAMES && fscanf(file, "%63s %ld", calls[n_names], &names[n_names].n) == 2) {
            names[n_names].call = calls[n_names];
            n_names++;
        }
        fclose(file);
        if (n_names == 0) fprintf(stderr, "'%s' names no call: remove it, and it is written again\n", path);
        return n_names > 0;
    }
    for (long n; n_names < MOST_NAMES && (names[n_names].call = fault_name(n_names, &n)); n_names++)
        names[n_names].n = n;
    if (!path) return true;
    file = fopen(path, "w");
    for (int i = 0; file && i < n_names; i++) fprintf(file, "%s %ld\n", names[i].call, names[i].n);
    if (file && fclose(file) == 0) return true;
    fprintf(stderr, "the calls cannot be written to '%s': %s\n", path, strerror(errno));
    return false;
}

static long count_cases(void) {
    fault f;
    long low = 0, high = 1;
    while (case_of(high, &f)) high *= 2;
    while (low < high) {
        long middle = low + (high - low) / 2;
        if (case_of(middle, &f))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void find_budget(void) {
    budget = 0;
    (void)run(&(part){0});
    uint64_t all = budget;
    for (int percent = 60; percent < 100; percent += 5) {
        budget = all * (uint64_t)percent / 100;
        if (run(&(part){0}).status == CLV_OK) return;
    }
    budget = all;
}

int main(int argc, char **argv) {
    long every = 1, from = 0, only = -1, code = 0;
    const char *kinds = kind_letters, *calls = NULL, *call = NULL;
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(modes[i].name, argv[1])) how = &modes[i];
    for (int i = 2; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--every")) every = atol(argv[i + 1]);
        if (!strcmp(argv[i], "--from")) from = atol(argv[i + 1]);
        if (!strcmp(argv[i], "--only")) only = atol(argv[i + 1]);
        if (!strcmp(argv[i], "--positions")) most_positions = atol(argv[i + 1]);
        if (!strcmp(argv[i], "--kinds")) kinds = argv[i + 1];
        if (!strcmp(argv[i], "--call")) call = argv[i + 1];
        if (!strcmp(argv[i], "--code")) code = atol(argv[i + 1]);
        if (!strcmp(argv[i], "--calls")) calls = argv[i + 1];
    }
    if (!how || every < 1) return 2;
    device = how->pointers ? "gpu:0" : "cpu:0";
    if (how->pointers) setenv("CLV_TEST_SAYS", "nvidia", 1);
    // before the loader wakes up; the last one is called first
    setenv("OPENCL_LAYERS",
           how->pointers ? CLV_TEST_SAYS_LAYER ":" CLV_TEST_FAULT_LAYER : CLV_TEST_FAULT_LAYER, 1);
    void *library = dlopen(CLV_TEST_FAULT_LAYER, RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    *(void **)&fault_arm_call = dlsym(library, "fault_arm_call");
    *(void **)&fault_fired = dlsym(library, "fault_fired");
    *(void **)&fault_name = dlsym(library, "fault_name");
    *(void **)&fault_live = dlsym(library, "fault_live");
    *(void **)&fault_keep_programs = dlsym(library, "fault_keep_programs");
    if (every <= MOST_EVERY_KEPT && only < 0) fault_keep_programs();
    snprintf(checkpoint, sizeof checkpoint, CLV_TEST_BINARY_DIR "/faults.%s.%ld", how->name, (long)getpid());
    signal(SIGALRM, on_alarm);
    if (how->budget) find_budget();
    whole = run(&(part){.checkpoint = how->checkpoints ? checkpoint
                                                       : NULL}); // what is cached now is cached from now on
    if (whole.status != CLV_OK) {
        printf("skipped: %s\n", whole.sentence);
        return 77;
    }
    fault_arm_call("", 0, 0, FAULT_ONCE);
    static outcome again;
    again = run(&(part){.checkpoint = how->checkpoints ? checkpoint : NULL});
    assert_true(again.status == CLV_OK && same_weights(&again, &whole) && !again.live);
    if (!find_calls(calls)) return 1;
    printf("cases %ld\n", count_cases());
    fflush(stdout);
    long number = only >= 0 ? only : from;
    fault f;
    for (; case_of(number, &f); number += every) {
        const bool wanted = (!call || !strcmp(f.call, call)) && (!code || f.code == code);
        if (wanted && strchr(kinds, kind_letters[f.kind])) try_case(number, &f);
        if (only >= 0) break;
    }
    clear_checkpoints();
    char path[4200];
    snprintf(path, sizeof path, "%s.without", checkpoint);
    remove(path);
    const bool good = sum_up();
    printf("next %ld\n", number);
    return !good;
}
