// SPDX-License-Identifier: Apache-2.0
// --metric, --monitor and what goes with them: read, and told.
#include "training/training.h"

#include <math.h>

static bool is_there(const cli_metrics *metrics, const clv_metric *metric, const char *target) {
    for (int i = 0; i < metrics->n; i++)
        if (!strcmp(metrics->own[i].name, metric->name) && !strcmp(metrics->target[i], target)) return true;
    return false;
}

static void keep_metric(const clv_metric *metric, const char *target, cli_metrics *out) {
    const int at = out->n++;
    out->own[at] = *metric;
    snprintf(out->target[at], sizeof out->target[at], "%s", target);
    if (*target) out->own[at].target = out->target[at];
    out->metric[at] = &out->own[at];
}

/** One name of an option: `metric`, or `target:metric`. */
static int add_metric(const char *option, const char *word, bool also_loss, cli_metrics *out) {
    const char *colon = strrchr(word, ':'), *name = colon ? colon + 1 : word;
    const clv_metric *metric = clv_metric_find(name);
    char names[128] = "", target[sizeof out->target[0]] = "";
    clv__nearest nearest = {.word = name};
    if (colon && (colon == word || (size_t)(colon - word) >= sizeof target))
        return cli_fail(EXIT_USAGE, "--%s: '%s' is not TARGET:METRIC, with a name of 1 to %zu letters",
                        option, word, sizeof target - 1);
    if (colon) snprintf(target, sizeof target, "%.*s", (int)(colon - word), word);
    if (metric && is_there(out, metric, target)) return EXIT_DONE;
    if (metric && out->n == CLV_MOST_METRICS)
        return cli_fail(EXIT_USAGE, "--%s: '%s' is one metric too many; there can be %d", option, word,
                        CLV_MOST_METRICS);
    if (metric) {
        keep_metric(metric, target, out);
        return EXIT_DONE;
    }
    if (also_loss) clv__nearest_offer(&nearest, "loss");
    for (int i = 0; clv_metric_get(i); i++) {
        clv__nearest_offer(&nearest, clv_metric_get(i)->name);
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i || also_loss ? ", " : "",
                 clv_metric_get(i)->name);
    }
    return cli_fail(EXIT_USAGE, "--%s: there is no metric '%s', there are %s%s%s", option, name,
                    also_loss ? "loss" : "", names, clv__nearest_text(&nearest));
}

int cli_read_metrics(const cli_args *args, cli_metrics *out) {
    *out = (cli_metrics){0};
    for (const char *at = args->metric; at && *at;) {
        char name[CLI_METRIC_BYTES];
        const size_t n = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), at);
        const int code = add_metric("metric", name, false, out);
        if (code != EXIT_DONE) return code;
        at += n + (at[n] == ',');
    }
    if (!args->monitor || !strcmp(args->monitor, "loss")) return EXIT_DONE;
    return add_metric("monitor", args->monitor, true, out);
}

// ---- of which targets -------------------------------------------------------------------------------------

/** The i-th of what is numbers among a model's targets: a column of a table, or a named array. NULL: past the
 *  last, or it has no name. */
static const char *number_target(const clv_model *model, int64_t i) {
    const clv_port first = clv_model_port_get(model, CLV_PORT_TARGET, 0);
    if (model->number_names) return !first.classes && i < first.dims[0] ? model->number_names[i] : NULL;
    for (int k = 0; k < clv_model_port_count(model, CLV_PORT_TARGET); k++) {
        const clv_port target = clv_model_port_get(model, CLV_PORT_TARGET, k);
        if (!target.classes && i-- == 0) return target.name;
    }
    return NULL;
}

/** How many of these there are. */
static int64_t units_of(const clv_model *model) {
    int64_t n = 0;
    while (number_target(model, n)) n++;
    return n;
}

static bool is_of_all(const clv_metric *metric) {
    return !metric->target && metric->targets == CLV_METRIC_NUMBERS;
}

/** One of each target in the place of one of all. */
static int spread(const clv_metric *metric, const clv_model *model, bool asked, cli_metrics *out) {
    const int64_t n = units_of(model);
    for (int64_t i = 0; i < n; i++) {
        const char *name = number_target(model, i);
        if (is_there(out, metric, name)) continue;
        if (out->n < CLV_MOST_METRICS && strlen(name) < sizeof out->target[0]) {
            keep_metric(metric, name, out);
            continue;
        }
        if (asked)
            return cli_fail(
                EXIT_USAGE,
                "--metric: with %s of each of %lld targets there are more than %d metrics; name those "
                "that you want, as %s:%s",
                metric->name, (long long)n, CLV_MOST_METRICS, name, metric->name);
    }
    return EXIT_DONE;
}

/** Those that are of all targets become one of each. */
static int spread_all(const clv_model *model, cli_metrics *metrics) {
    const cli_metrics given = *metrics;
    int code = EXIT_DONE;
    *metrics = (cli_metrics){0};
    for (int i = 0; i < given.n; i++)
        if (!is_of_all(&given.own[i])) keep_metric(&given.own[i], given.target[i], metrics);
    for (int i = 0; i < given.n && code == EXIT_DONE; i++)
        if (is_of_all(&given.own[i])) code = spread(&given.own[i], model, true, metrics);
    return code;
}

/** Better in a mean of unlike units would be better in the largest of them. */
static int check_monitor(const cli_args *args, const clv_model *model) {
    const clv_metric *metric = args->monitor ? clv_metric_find(args->monitor) : NULL;
    if (!metric || !is_of_all(metric)) return EXIT_DONE;
    return cli_fail(EXIT_USAGE,
                    "--monitor: %s is for one target, and there are several: name one, as %s:%s, or take "
                    "loss, which is of all",
                    metric->name, number_target(model, 0), metric->name);
}

int cli_model_metrics(const cli_args *args, const clv_model *model, cli_metrics *out) {
    static const char *const usual[] = {"mae", "rmse"};
    const int64_t units = units_of(model);
    const bool several = units > 1 || (units == 1 && clv_model_port_count(model, CLV_PORT_TARGET) > 1);
    int code = several ? check_monitor(args, model) : EXIT_DONE;
    if (code == EXIT_DONE && several) code = spread_all(model, out);
    const bool numbers = units > 0 || !clv_model_port_get(model, CLV_PORT_TARGET, 0).classes;
    if (args->metric || !numbers || (!cli_data_is(args, "csv") && !cli_data_is(args, "arrays"))) return code;
    for (size_t i = 0; i < sizeof usual / sizeof *usual && code == EXIT_DONE; i++) {
        const clv_metric *metric = clv_metric_find(usual[i]);
        if (several)
            code = spread(metric, model, false, out);
        else if (out->n < CLV_MOST_METRICS && !is_there(out, metric, ""))
            keep_metric(metric, "", out);
    }
    return code;
}

int cli_check_stopping(const cli_args *args) {
    if (args->patience || args->save_best) return EXIT_DONE;
    const bool plateau = args->schedule && !strcmp(args->schedule, "plateau");
    if ((args->monitor && !plateau) || args->min_delta > 0)
        return cli_fail(EXIT_USAGE, "--%s is for --patience and --save-best; give one of them",
                        args->min_delta > 0 ? "min-delta" : "monitor");
    return EXIT_DONE;
}

int cli_check_tested(const cli_args *args, bool tested) {
    const char *option = args->patience    ? "patience"
                         : args->save_best ? "save-best"
                         : args->metric    ? "metric"
                                           : NULL;
    if (tested || !option) return EXIT_DONE;
    return cli_fail(EXIT_USAGE, "--%s wants data to test on, and there are none: %s", option,
                    cli_data_is(args, "images") ? "--val names a folder of them"
                    : cli_data_is(args, "csv") || cli_data_is(args, "text")
                        ? "--validation says which part of the file that is"
                        : "--images and --labels are all trained on");
}

// ---- told -------------------------------------------------------------------------------------------------

const char *cli_metric_name(const clv_metric_value *value, char name[CLI_METRIC_BYTES]) {
    snprintf(name, CLI_METRIC_BYTES, "%s%s%s", value->target ? value->target : "", value->target ? ":" : "",
             value->name);
    return name;
}

/** The accuracy of a model for classes is told in any case. */
static bool is_told_anyway(const clv_metrics *metrics, int i) {
    return !isnan(metrics->accuracy) && !metrics->values[i].target &&
           !strcmp(metrics->values[i].name, "accuracy");
}

double cli_perplexity(const cli_args *args, const clv_metrics *metrics) {
    return cli_data_is(args, "text") ? exp(metrics->loss) : (double)NAN;
}

json_t *cli_metrics_json(const clv_metrics *metrics) {
    json_t *object = json_object();
    char name[CLI_METRIC_BYTES];
    for (int i = 0; i < metrics->n_values; i++)
        json_object_set_new(object, cli_metric_name(&metrics->values[i], name),
                            cli_real(metrics->values[i].value));
    return object;
}

void cli_metrics_line(screen_line *line, const clv_metrics *metrics) {
    char name[CLI_METRIC_BYTES];
    for (int i = 0; i < metrics->n_values; i++)
        if (!is_told_anyway(metrics, i))
            screen_line_add(line, 85, NULL, "  %s %s", cli_metric_name(&metrics->values[i], name),
                            cli_figure(metrics->values[i].value));
}

void cli_metrics_say(FILE *out, const clv_metrics *metrics) {
    char name[CLI_METRIC_BYTES];
    for (int i = 0; i < metrics->n_values; i++)
        if (!is_told_anyway(metrics, i))
            screen_say(out, "test %s %s", cli_metric_name(&metrics->values[i], name),
                       cli_figure(metrics->values[i].value));
}
