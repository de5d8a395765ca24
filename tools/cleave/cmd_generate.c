// SPDX-License-Identifier: Apache-2.0
// cleave generate: go on with a text, by a GPT that `cleave train text` has made.
#include "cli.h"

#include <string.h>

typedef struct writing {
    const clv_vocabulary *vocabulary;
    FILE *out; // NULL: with --json, all at the end
    char *text;
    size_t n, room, shown;
    int64_t tokens;
    double since;
    const volatile int *interrupt;
} writing;

/** How many bytes a character has that begins so; 1 where none does. */
static size_t length_of(unsigned char lead) {
    return lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;
}

/** Show what is whole of the characters that are not shown yet; printf lets no control characters pass. */
static void show(writing *job, bool all) {
    while (job->out && job->shown < job->n) {
        const size_t left = job->n - job->shown;
        size_t length = length_of((unsigned char)job->text[job->shown]);
        if (length > left && !all) break; // its other bytes are tokens to come
        if (length > left) length = left;
        fprintf(job->out, "%.*s", (int)length, job->text + job->shown);
        job->shown += length;
    }
    if (job->out) fflush(job->out);
}

static void put(writing *job, const char *bytes, size_t n) {
    if (n > job->room - 1 - job->n) n = job->room - 1 - job->n;
    memcpy(job->text + job->n, bytes, n);
    job->n += n;
    show(job, false);
}

static bool on_token(void *user, int32_t token) {
    writing *job = user;
    size_t n;
    const char *bytes = clv_vocabulary_token(job->vocabulary, token, &n);
    if (job->tokens++ == 0) job->since = cli_seconds();
    put(job, bytes, n);
    return !*job->interrupt && !ferror(stdout);
}

/** Tokens a second, from the first on. */
static double rate_of(const writing *job) {
    const double seconds = cli_seconds() - job->since;
    return job->tokens > 1 && seconds > 0 ? (double)(job->tokens - 1) / seconds : 0;
}

static int report(const cli_session *session, writing *job, clv_plan *plan) {
    const char *device = clv_device_info_get(clv_plan_device_get(plan, 0))->name;
    const double rate = rate_of(job);
    job->text[job->n] = 0;
    if (session->args->json) {
        json_t *text = json_stringn(job->text, job->n); // bytes need not be UTF-8
        return cli_print_json(json_pack("{s:o, s:I, s:o, s:s, s:o}", "text", text ? text : json_null(),
                                        "tokens", (json_int_t)job->tokens, "tokens_per_second",
                                        rate > 0 ? cli_real(rate) : json_null(), "device", device, "memory",
                                        cli_plan_memory_json(plan)));
    }
    show(job, true);
    putchar('\n');
    if (!session->args->quiet)
        fprintf(stderr, "%lld token%s, %.0f a second on %s\n", (long long)job->tokens,
                job->tokens == 1 ? "" : "s", rate, device);
    return cli_finish_output();
}

/** The prompt as tokens; the caller frees. */
static int read_prompt(cli_session *session, const clv_vocabulary *vocabulary, int32_t **tokens, size_t *n) {
    const char *prompt = session->args->prompt;
    const size_t bytes = strlen(prompt);
    *tokens = malloc((bytes + 1) * sizeof **tokens);
    if (!*tokens) return cli_fail(EXIT_FAILED, "no memory for the prompt");
    clv_status status = clv_vocabulary_encode(vocabulary, prompt, bytes, *tokens, n);
    return status == CLV_OK ? EXIT_DONE : cli_fail_status(session->runtime, status);
}

static int generate(cli_session *session, clv_generator *generator, const clv_vocabulary *vocabulary) {
    const cli_args *args = session->args;
    const int64_t length = args->length ? args->length : 200;
    const clv_sampling sampling = {.temperature = args->given_temperature ? args->temperature : 1,
                                   .top_k = args->top_k,
                                   .top_p = args->top_p,
                                   .seed = args->has_seed ? args->seed : 1};
    int32_t *tokens = NULL;
    size_t n = 0;
    int code = read_prompt(session, vocabulary, &tokens, &n);
    writing job = {.vocabulary = vocabulary,
                   .out = args->json ? NULL : stdout,
                   .room = strlen(args->prompt) + (size_t)length * 4 + 1, // four bytes a character at most
                   .interrupt = cli_catch_interrupts()};
    if (code == EXIT_DONE) job.text = malloc(job.room);
    if (code == EXIT_DONE && !job.text) code = cli_fail(EXIT_FAILED, "no memory for the text");
    if (code == EXIT_DONE) {
        put(&job, args->prompt, strlen(args->prompt));
        clv_status status = clv_generate(generator, tokens, (int64_t)n, &sampling, length, on_token, &job);
        if (status != CLV_OK && job.out) putchar('\n');
        code = status == CLV_OK ? report(session, &job, clv_generator_plan(generator))
                                : cli_fail_status(session->runtime, status);
        if (code == EXIT_DONE && *job.interrupt) code = EXIT_INTERRUPTED;
    }
    free(tokens);
    free(job.text);
    return code;
}

static int run(cli_session *session) {
    const cli_args *args = session->args;
    clv_gpt_config sizes;
    clv_vocabulary *vocabulary = NULL;
    clv_generator *generator = NULL;
    clv_status status = clv_gpt_weights_read(session->runtime, args->weights, &sizes, &vocabulary);
    const clv_generator_config config = {
        .device = session->device, .gpt = &sizes, .variants = args->variants, .no_cache = args->no_kv_cache};
    if (status == CLV_OK) status = clv_generator_create(session->runtime, &config, &generator);
    if (status == CLV_OK) status = clv_weights_load(clv_generator_session(generator), args->weights);
    int code = status == CLV_OK ? generate(session, generator, vocabulary)
                                : cli_fail_status(session->runtime, status);
    clv_generator_destroy(generator);
    clv_vocabulary_destroy(vocabulary);
    return code;
}

int cmd_generate(const cli_args *args) {
    if (!args->weights)
        return cli_fail(EXIT_USAGE,
                        "which weights? --weights wants a file that `cleave train text --save` wrote");
    if (!args->prompt || !*args->prompt)
        return cli_fail(EXIT_USAGE, "how does the text begin? --prompt wants some of it");
    if (args->top_p > 1)
        return cli_fail(EXIT_USAGE, "--top-p is a probability, at most 1, not %g", args->top_p);
    cli_session session;
    cli_start_early(args, true, &session);
    int code = cli_start(&session);
    if (code != EXIT_DONE) return code;
    code = run(&session);
    cli_stop(&session);
    return code;
}
