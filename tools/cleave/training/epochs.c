// SPDX-License-Identifier: Apache-2.0
// A training's epochs, for a person: a line each on a terminal, few of many elsewhere; and a word at the end
// if an earlier one was better than the last. The log has every epoch, as log.c writes it.
#include "datasets/datasets.h"
#include "training/training.h"

#include <math.h>
#include <unistd.h>

/** Is an epoch's line written where stderr is no terminal? All of up to 50; of more the first three that this
 *  process does, about 50 evenly, and the last. */
static bool is_told(int64_t nth, int64_t epoch, int64_t epochs) {
    enum { ALL = 50, FIRST = 3 };
    const int64_t each = (epochs + ALL - 1) / ALL;
    return epochs <= ALL || nth <= FIRST || epoch % each == 0 || epoch == epochs;
}

static void line_of(const cli_args *args, const clv_placement *placement, const clv_train_epoch *epoch,
                    char *text, size_t bytes) {
    screen_line line = {0};
    screen_line_add(&line, SCREEN_KEEP, NULL, "epoch %lld/%lld  loss %s", (long long)epoch->epoch,
                    (long long)epoch->epochs, cli_figure(epoch->train_loss));
    if (epoch->evaluated) {
        screen_line_add(&line, 70, NULL, "  test loss %s", cli_figure(epoch->test.loss));
        if (!isnan(epoch->test.accuracy))
            screen_line_add(&line, 90, NULL, "  accuracy %.4f", epoch->test.accuracy);
        if (cli_data_is(args, "text"))
            screen_line_add(&line, 85, NULL, "  perplexity %.4g", cli_perplexity(args, &epoch->test));
        cli_metrics_line(&line, &epoch->test);
    }
    screen_line_add(&line, 80, NULL, "  %.1f s", epoch->seconds);
    for (int i = 0; epoch->shares && i < placement->n_replicas; i++)
        screen_line_add(&line, 60, NULL, "%s%s %.1f %%", i ? ", " : "  ", placement->replicas[i],
                        100 * epoch->shares[i]);
    if (epoch->best) screen_line_add(&line, 75, NULL, "  best");
    screen_line_text(&line, screen_width(stderr), text, bytes);
}

/** What --monitor names, of an evaluation; without, the loss. */
static double monitored(const cli_args *args, const clv_metrics *test, bool *larger) {
    const char *colon = args->monitor ? strrchr(args->monitor, ':') : NULL;
    const clv_metric *metric = clv_metric_find(colon ? colon + 1 : args->monitor);
    char name[CLI_METRIC_BYTES];
    *larger = metric && metric->larger_is_better;
    for (int i = 0; metric && i < test->n_values; i++)
        if (!strcmp(cli_metric_name(&test->values[i], name), args->monitor)) return test->values[i].value;
    return test->loss;
}

/** Keep what is needed to say at the end that an earlier one was better. */
static void judge(cli_epochs *epochs, const cli_args *args, const clv_train_epoch *epoch) {
    if (!epoch->evaluated) return;
    epochs->last = monitored(args, &epoch->test, &epochs->larger);
    const double gain = epochs->larger ? epochs->last - epochs->best : epochs->best - epochs->last;
    if (!isfinite(epochs->last) || (epochs->best_epoch && gain <= 0)) return;
    epochs->best = epochs->last;
    epochs->best_epoch = epoch->epoch;
}

void cli_epochs_see(cli_epochs *epochs, const cli_args *args, const clv_placement *placement,
                    const clv_train_epoch *epoch) {
    judge(epochs, args, epoch);
    epochs->seen++;
    if (args->quiet) return;
    line_of(args, placement, epoch, epochs->untold, sizeof epochs->untold);
    const bool told = isatty(STDERR_FILENO) || is_told(epochs->seen, epoch->epoch, epoch->epochs);
    if (epochs->best_epoch == epoch->epoch) epochs->best_untold = !told;
    if (told) cli_epochs_end(epochs);
}

void cli_epochs_end(cli_epochs *epochs) {
    if (*epochs->untold) fprintf(stderr, "%s\n", epochs->untold);
    *epochs->untold = 0;
}

void cli_epochs_say_worse(FILE *out, const cli_epochs *epochs, const cli_source *source) {
    const cli_args *args = source->args;
    const double lost = epochs->larger ? epochs->best - epochs->last : epochs->last - epochs->best;
    const bool loss = !args->monitor || !strcmp(args->monitor, "loss");
    if (args->save_best || !epochs->best_epoch || !(lost > 0.05 * fabs(epochs->best))) return;
    if (!strcmp(cli_figure(epochs->best), cli_figure(epochs->last))) return; // nobody sees a difference
    screen_say(
        out,
        "epoch %lld%s was better than the last: its test %s was %s, and is %s now%s; --save-best FILE keeps "
        "the weights of the best epoch",
        (long long)epochs->best_epoch, epochs->best_untold ? ", whose line is one of those left out," : "",
        loss ? "loss" : args->monitor, cli_figure(epochs->best), cli_figure(epochs->last),
        loss ? cli_loss_units(source) : "");
}
