// SPDX-License-Identifier: Apache-2.0
// cleave generate: go on with a text, by a GPT that `cleave train text` has made.
#include "models/models.h"
#include "plans/plans.h"

#include <string.h>

/** Tokens of a prompt, then those that are made. */
typedef struct writing {
    const clv_vocabulary *vocabulary;
    FILE *out; // NULL: with --json, all at the end
    int32_t *tokens;
    size_t n, from,
        shown; // tokens before `shown` are on the screen; the text from `from` on is looked at for the next
    int64_t made;
    double since;
    clv_status status; // of what is shown
    const volatile int *interrupt;
} writing;

enum { MOST_WAITING = 64 }; // tokens that may wait for the end of a character

/** Write text, which is UTF-8; printf lets no control characters pass. */
static void show(FILE *out, const char *text, size_t n) {
    for (size_t i = 0, length; i < n; i += length) {
        for (length = 1; i + length < n && ((unsigned char)text[i + length] & 0xc0) == 0x80;) length++;
        fprintf(out, "%.*s", (int)length, text + i);
    }
    fflush(out);
}

/** Does a text end with what may be the beginning of a character? */
static bool ends_open(const char *text, size_t n) {
    return n >= 3 && !memcmp(text + n - 3, "\xef\xbf\xbd", 3);
}

/** Show what the tokens that are not shown yet add to the text, once it ends with a whole character;
 *  `all`: in any case. */
static void show_new(writing *job, bool all) {
    clv_array before = {0}, now = {0};
    if (!job->out || job->status != CLV_OK || job->shown == job->n) return;
    const int32_t *tokens = job->tokens + job->from;
    job->status = clv_vocabulary_decode(job->vocabulary, tokens, job->shown - job->from, false, &before);
    if (job->status == CLV_OK)
        job->status = clv_vocabulary_decode(job->vocabulary, tokens, job->n - job->from, false, &now);
    const size_t old = clv_array_bytes(&before), n = clv_array_bytes(&now);
    if (job->status == CLV_OK && (all || !ends_open(now.data, n) || job->n - job->shown > MOST_WAITING)) {
        if (n > old) show(job->out, (const char *)now.data + old, n - old);
        job->from = job->shown;
        job->shown = job->n;
    }
    clv_array_reset(&before);
    clv_array_reset(&now);
}

static bool on_token(void *user, int32_t token) {
    writing *job = user;
    if (job->made++ == 0) job->since = cli_seconds();
    job->tokens[job->n++] = token;
    show_new(job, false);
    return job->status == CLV_OK && !*job->interrupt && !ferror(stdout);
}

/** Tokens a second, from the first on. */
static double rate_of(const writing *job) {
    const double seconds = cli_seconds() - job->since;
    return job->made > 1 && seconds > 0 ? (double)(job->made - 1) / seconds : 0;
}

static int report_json(const cli_session *session, const writing *job, clv_plan *plan) {
    const double rate = rate_of(job);
    clv_array text;
    const clv_status status = clv_vocabulary_decode(job->vocabulary, job->tokens, job->n, false, &text);
    if (status != CLV_OK) return cli_fail_status(session->runtime, status);
    json_t *all = json_pack(
        "{s:s%, s:I, s:o, s:s, s:o}", "text", text.data, clv_array_bytes(&text), "tokens",
        (json_int_t)job->made, "tokens_per_second", rate > 0 ? cli_real(rate) : json_null(), "device",
        clv_device_info_get(clv_plan_device_get(plan, 0))->name, "memory", cli_plan_memory_json(plan));
    clv_array_reset(&text);
    return cli_print_json(all);
}

static int report(const cli_session *session, writing *job, clv_plan *plan) {
    const double rate = rate_of(job);
    char speed[64] = "";
    if (session->args->json) return report_json(session, job, plan);
    show_new(job, true);
    putchar('\n');
    fflush(stdout); // before what goes to stderr, where both are one file
    if (job->status != CLV_OK) return cli_fail_status(session->runtime, job->status);
    if (rate > 0) snprintf(speed, sizeof speed, ", %.0f a second", rate);
    if (!session->args->quiet)
        fprintf(stderr, "%lld token%s%s on %s\n", (long long)job->made, job->made == 1 ? "" : "s", speed,
                clv_device_info_get(clv_plan_device_get(plan, 0))->name);
    return cli_finish_output();
}

/** The prompt's tokens, with room for those to be made. */
static int read_prompt(cli_session *session, int64_t length, writing *job) {
    const char *prompt = session->args->prompt;
    clv_array tokens;
    const clv_status status = clv_vocabulary_encode(job->vocabulary, prompt, strlen(prompt), &tokens);
    if (status != CLV_OK) return cli_fail_status(session->runtime, status);
    job->n = (size_t)tokens.shape.dims[0];
    job->tokens = malloc((job->n + (size_t)length + 1) * sizeof *job->tokens);
    if (job->tokens) memcpy(job->tokens, tokens.data, job->n * sizeof *job->tokens);
    clv_array_reset(&tokens);
    if (!job->tokens) return cli_fail(EXIT_FAILED, "no memory for %lld tokens", (long long)length);
    if (job->n == 0) return cli_fail(EXIT_FAILED, "--prompt '%s' has no token: give another text", prompt);
    return EXIT_DONE;
}

static int generate(cli_session *session, clv_generator *generator, const clv_vocabulary *vocabulary) {
    const cli_args *args = session->args;
    const int64_t length = args->length ? args->length : 200;
    const clv_sampling sampling = {.temperature = args->given.temperature ? args->temperature : 1,
                                   .top_k = args->top_k,
                                   .top_p = args->top_p,
                                   .seed = args->given.seed ? args->seed : 1,
                                   .tokens = clv_vocabulary_count(vocabulary)};
    writing job = {
        .vocabulary = vocabulary, .out = args->json ? NULL : stdout, .interrupt = cli_catch_interrupts()};
    int code = read_prompt(session, length, &job);
    if (code == EXIT_DONE) {
        const int64_t given =
            (int64_t)job.n; // shown with the first token, when no progress is drawn any more
        clv_status status = clv_generate(generator, job.tokens, given, &sampling, length, on_token, &job);
        if (status != CLV_OK && job.shown) putchar('\n');
        code = status == CLV_OK ? report(session, &job, clv_generator_info_get(generator).plan)
                                : cli_fail_status(session->runtime, status);
        if (code == EXIT_DONE && *job.interrupt) code = EXIT_INTERRUPTED;
    }
    free(job.tokens);
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
    if (status == CLV_OK)
        status = clv_weights_load_lora(clv_generator_info_get(generator).session, args->weights, NULL,
                                       args->lora_weights);
    int code = status == CLV_OK ? generate(session, generator, vocabulary)
                                : cli_fail_status(session->runtime, status);
    clv_generator_destroy(generator);
    clv_vocabulary_destroy(vocabulary);
    return code;
}

int cmd_generate(const cli_args *given) {
    cli_args copy = *given;
    const cli_args *args = &copy;
    if (!args->weights)
        return cli_fail(EXIT_USAGE,
                        "which weights? --weights wants a file that `cleave train text --save` wrote");
    if (!args->prompt || !*args->prompt)
        return cli_fail(EXIT_USAGE, "how does the text begin? --prompt TEXT says it");
    if (args->top_p > 1)
        return cli_fail(EXIT_USAGE, "--top-p is a probability, at most 1, not %g", args->top_p);
    int code = cli_tell_weights(&copy);
    if (code != EXIT_DONE) return code;
    cli_session session;
    cli_start_early(args, true, &session);
    code = cli_start(&session);
    if (code != EXIT_DONE) return code;
    code = run(&session);
    cli_stop(&session);
    return code;
}
