// SPDX-License-Identifier: Apache-2.0
// --ranks: this process is one of several that train together. The first one speaks for all.
#include "training/training.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int send_to_nowhere(int file) {
    const int kept = dup(file), nowhere = open("/dev/null", O_WRONLY);
    if (nowhere >= 0) {
        dup2(nowhere, file);
        close(nowhere);
    }
    return kept;
}

/** The how manieth device of the best one's type is this rank's: one each, as long as there are some. */
static clv_device *own_device(const cli_session *session, int local) {
    const char *name = clv_device_info_get(session->device)->name, *colon = strchr(name, ':');
    clv_device *found = session->device, *other;
    char spec[64];
    int n = 0;
    if (!colon) return found;
    while (snprintf(spec, sizeof spec, "%.*s:%d", (int)(colon - name), name, n) < (int)sizeof spec &&
           clv_device_find(session->runtime, spec, &other) == CLV_OK)
        n++;
    snprintf(spec, sizeof spec, "%.*s:%d", (int)(colon - name), name, n ? local % n : 0);
    return n && clv_device_find(session->runtime, spec, &other) == CLV_OK ? other : found;
}

static void bring_back(int *kept, int file) {
    if (*kept < 0) return;
    dup2(*kept, file);
    close(*kept);
    *kept = -1;
}

/** The first one prints and writes files; of the others none does, or tries to. */
static int take_part(cli_session *session, cli_ranks *ranks) {
    const int rank = clv_ranks_info_get(ranks->ranks).rank;
    cli_args *args = &ranks->args;
    *args = *ranks->given;
    session->args = args;
    fflush(stdout);
    if (rank == 0) {
        bring_back(&ranks->output, STDOUT_FILENO);
        bring_back(&ranks->errors, STDERR_FILENO);
        return cli_check_train_files(args);
    }
    if (ranks->output < 0) ranks->output = send_to_nowhere(STDOUT_FILENO);
    if (ranks->errors < 0) ranks->errors = send_to_nowhere(STDERR_FILENO);
    args->quiet = true;
    args->json = args->watch = false;
    args->save = args->lora_save = args->tensorboard = NULL;
    snprintf(ranks->log, sizeof ranks->log, "%s.rank%d", args->log ? args->log : "", rank);
    args->log = args->log && !cli_is_pipe(args->log) && !cli_is_stdout(args->log) ? ranks->log : NULL;
    return EXIT_DONE;
}

int cli_ranks_join(cli_session *session, cli_ranks *out) {
    *out = (cli_ranks){.given = session->args, .output = -1, .errors = -1};
    if (!session->args->ranks) return EXIT_DONE;
    const clv_status status = clv_ranks_create(session->runtime, NULL, &out->ranks);
    if (status != CLV_OK) return cli_fail_status(session->runtime, status);
    const clv_ranks_info info = clv_ranks_info_get(out->ranks);
    const cli_args *args = session->args;
    if (!args->device && !args->place && !args->replicas) session->device = own_device(session, info.local);
    if (info.size == 1 && !args->quiet)
        fprintf(stderr,
                "cleave: there is one rank only: start several with mpirun -n 4 cleave train ... --ranks\n");
    return take_part(session, out);
}

bool cli_ranks_go_on(cli_session *session, cli_ranks *ranks, int *code) {
    if (!ranks->lost || !ranks->given->on_rank_failure) return false;
    char said[512];
    snprintf(said, sizeof said, "%s", clv_ranks_info_get(ranks->ranks).lost);
    const clv_status status = clv_ranks_go_on(ranks->ranks);
    ranks->lost = false;
    *cli_held() = 0;
    *code = status == CLV_OK ? EXIT_DONE : cli_fail_status(session->runtime, status);
    if (status != CLV_OK) return false;
    ranks->begun = false;
    *code = take_part(session, ranks);
    ranks->args.resume = ranks->args.checkpoint;
    const clv_ranks_info info = clv_ranks_info_get(ranks->ranks);
    if (info.rank == 0)
        fprintf(stderr, "%s: going on with %d rank%s from %s\n", said, info.size, info.size == 1 ? "" : "s",
                ranks->args.resume);
    return *code == EXIT_DONE;
}

/** What is kept is told by one of the ranks: as it is, or if they are not alike in it, as they agreed on. */
static void speak(const cli_ranks *ranks) {
    char *kept = cli_held();
    const clv_ranks_info info = clv_ranks_info_get(ranks->ranks);
    if (info.lost ? !info.tells : info.rank > 0)
        *kept = 0;
    else if (info.lost && !ranks->begun && !strstr(kept, cli_option_words(info.lost)))
        cli_fail((int)strlen(strcpy(kept, "")), "%s", cli_option_words(info.lost));
    if (*kept && ranks->errors >= 0) dup2(ranks->errors, STDERR_FILENO);
}

void cli_ranks_end(cli_ranks *ranks) {
    const char *kept = cli_held();
    cli_nothing_done(
        false); // who ends first makes mpirun end the others by a signal: that is told by what failed
    cli_answer_interrupts(NULL);
    if (ranks->ranks && kept && (*kept || !ranks->begun)) {
        if (!ranks->begun) clv_ranks_fail(ranks->ranks, *kept ? kept : "it ended");
        speak(ranks);
    }
    cli_release_failures();
    clv_ranks_destroy(ranks->ranks);
    if (ranks->errors >= 0) close(ranks->errors);
    if (ranks->output >= 0) close(ranks->output);
}

int cli_ranks_refuse(int code) {
    const clv_runtime_config config = {.no_opencl = true, .visible_devices = "", .partition = ""};
    clv_runtime *runtime = NULL;
    cli_ranks ranks = {.output = -1, .errors = -1};
    const char *kept = cli_held();
    // without MPI each tells for itself
    if (kept && *kept && clv_runtime_create(&config, &runtime) == CLV_OK)
        (void)!clv_ranks_create(runtime, NULL, &ranks.ranks);
    cli_ranks_end(&ranks);
    clv_runtime_destroy(runtime);
    return code;
}
