// SPDX-License-Identifier: Apache-2.0
// --profile and --trace: where a step's time goes, as tables, as JSON and as a file for a browser; and, of a
// plan, how little time it could take at the device's measured peak.
#include "models/models.h"
#include "plans/plans.h"
#include "table.h"

#include <stdlib.h>
#include <string.h>

enum { TRACE_SLICES = 200000, MOST_OPS = 20 };

// ---- peaks ------------------------------------------------------------------------------------------------

/** What the device can do at most. Without room for measuring it nothing is known, and that is all. */
static int look_at_peak(cli_profile *profile, clv_device *device) {
    clv_runtime *runtime = profile->session->runtime;
    cli_peak *peak = &profile->peaks[profile->n_peaks];
    peak->device = device;
    clv_status status = clv_bench_peak_get(device, false, &peak->peak);
    if (status != CLV_OK && status != CLV_E_BUDGET && status != CLV_E_DEVICE_MEMORY)
        return cli_fail_status(runtime, status);
    profile->n_peaks++;
    return EXIT_DONE;
}

static clv_bench_peak peak_of(const cli_profile *profile, const clv_device *device) {
    for (int i = 0; i < profile->n_peaks; i++)
        if (profile->peaks[i].device == device) return profile->peaks[i].peak;
    return (clv_bench_peak){0};
}

/** The part of the peak that binds, and which that is; 0: not known. */
static double part_of_peak(const clv_profile_work *work, clv_bench_peak peak, const char **bound) {
    *bound = "";
    return work->ns > 0 ? clv_bench_peak_part(&peak, work->flops / work->ns, work->bytes / work->ns, bound)
                        : 0;
}

/** Was the machine busy when a peak was measured? Then work may beat it, and it is measured again, once. */
static void look_again(const cli_profile *profile, const clv_profile_row *rows, int n) {
    cli_profile *self = (cli_profile *)(uintptr_t)profile; // what is known better now
    for (int k = 0; k < self->n_peaks; k++) {
        cli_peak *peak = &self->peaks[k];
        bool beaten = false;
        for (int i = 0; i < n && peak->peak.gflops > 0 && !peak->again; i++) {
            const clv_profile_work *all[] = {&rows[i].forward, &rows[i].backward, &rows[i].update,
                                             &rows[i].all};
            for (int w = 0; w < 4 && rows[i].device == peak->device; w++)
                beaten |= all[w]->ns > 0 && (all[w]->flops > all[w]->ns * peak->peak.gflops ||
                                             all[w]->bytes > all[w]->ns * peak->peak.cache_gbps);
        }
        if (!beaten) continue;
        peak->again = true;
        clv_status status = clv_bench_peak_raise(peak->device, &peak->peak);
        (void)status; // without room for it the figures stay as they are
    }
}

// ---- begin and end ----------------------------------------------------------------------------------------

int cli_profile_begin(cli_session *session, clv_session *of,
                      clv_device *(*device)(const void *owner, int index), const void *owner,
                      cli_profile *out) {
    const cli_args *args = session->args;
    *out = (cli_profile){.session = session};
    if (!args->profile && !args->trace) return EXIT_DONE;
    clv_device *next;
    for (int i = 0; args->profile && i < CLI_MAX_REPLICAS && (next = device(owner, i)); i++) {
        int code = look_at_peak(out, next);
        if (code != EXIT_DONE) return code;
    }
    clv_profile_config config = {.slices = args->trace ? TRACE_SLICES : 0};
    clv_status status = clv_profile_create(session->runtime, &config, &out->profile);
    if (status != CLV_OK) return cli_fail_status(session->runtime, status);
    clv_session_set_profile(of, out->profile);
    return EXIT_DONE;
}

static clv_device *device_of(const void *predictor, int index) {
    return clv_plan_device_get(clv_predictor_info_get(predictor).plan, index);
}

int cli_profile_predictor(cli_session *session, clv_predictor *predictor, const clv_model *sized,
                          cli_profile *out) {
    const cli_args *args = session->args;
    const clv_predictor_info info = clv_predictor_info_get(predictor);
    const int code = cli_profile_begin(session, info.session, device_of, predictor, out);
    if (code != EXIT_DONE) return code;
    cli_print_place(args, info.place);
    cli_tell_idle(session, info.plan);
    clv_status status = clv_weights_load_lora(info.session, args->weights, NULL, args->lora_weights);
    return status == CLV_OK ? EXIT_DONE : cli_fail_sized(session->runtime, args, status, sized);
}

int cli_profile_trace(const cli_profile *profile) {
    const cli_args *args = profile->session->args;
    if (!profile->profile || !args->trace) return EXIT_DONE;
    clv_status status = clv_profile_trace(profile->profile, args->trace);
    if (status != CLV_OK) return cli_fail_status(profile->session->runtime, status);
    const clv_profile_info info = clv_profile_info_get(profile->profile);
    const int64_t steps = info.traced_steps, left_out = info.left_out_steps;
    if (args->quiet) return EXIT_DONE;
    char more[64] = "";
    if (left_out)
        snprintf(more, sizeof more, "; %lld later one%s left out", (long long)left_out,
                 left_out == 1 ? " is" : "s are");
    screen_say(stderr, "a trace of %lld step%s is in %s, for ui.perfetto.dev or chrome://tracing%s",
               (long long)steps, steps == 1 ? "" : "s", args->trace, more);
    return EXIT_DONE;
}

void cli_profile_end(cli_profile *profile) {
    clv_profile_destroy(profile->profile);
    profile->profile = NULL;
}

// ---- figures ----------------------------------------------------------------------------------------------

/** Nodes, and their sums. */
typedef struct figures {
    clv_profile_node *nodes;
    clv_profile_row *layers, *ops;
    int n, n_layers, n_ops;
    double step_ns; // what parts are parts of
    bool trains;
} figures;

static bool figures_make(figures *f, int n) {
    *f = (figures){.n = n};
    f->nodes = calloc((size_t)n + 1, sizeof *f->nodes);
    f->layers = calloc((size_t)n + 1, sizeof *f->layers);
    f->ops = calloc((size_t)n + 1, sizeof *f->ops);
    return f->nodes && f->layers && f->ops;
}

static void figures_sum(figures *f) {
    f->n_layers = clv_profile_sum(f->nodes, f->n, CLV_PROFILE_LAYERS, f->layers);
    f->n_ops = clv_profile_sum(f->nodes, f->n, CLV_PROFILE_OPS, f->ops);
}

static void figures_free(figures *f) {
    free(f->nodes);
    free(f->layers);
    free(f->ops);
}

/** Of a profile's run. */
static bool figures_of_run(const cli_profile *of_command, int run, figures *f) {
    const clv_profile *profile = of_command->profile;
    if (!figures_make(f, clv_profile_run_get(profile, run).n_nodes)) return false;
    for (int i = 0; i < f->n; i++) f->nodes[i] = clv_profile_node_get(profile, run, i);
    clv_profile_run of = clv_profile_run_get(profile, run);
    f->step_ns = of.step_ns;
    f->trains = of.trains;
    figures_sum(f);
    look_again(of_command, f->layers, f->n_layers);
    look_again(of_command, f->ops, f->n_ops);
    return true;
}

/** Of a plan: the least time at the peak. */
static bool figures_of_plan(const cli_profile *profile, const clv_plan *plan, bool trains, figures *f) {
    int n = clv_plan_info_get(plan).n_nodes;
    if (!figures_make(f, n)) return false;
    f->n = 0;
    f->trains = trains;
    for (int i = 0; i < n; i++) {
        clv_plan_node node = clv_plan_node_get(plan, i);
        if (!node.launches) continue;
        clv_bench_peak peak = peak_of(profile, node.device);
        double compute = peak.gflops > 0 ? node.flops / peak.gflops : 0,
               move = peak.gbps > 0 ? node.traffic / peak.gbps : 0;
        f->nodes[f->n++] = (clv_profile_node){.node = node, .ns = compute > move ? compute : move};
        f->step_ns += compute > move ? compute : move;
    }
    figures_sum(f);
    return true;
}

// ---- as tables --------------------------------------------------------------------------------------------

/** Four cells. */
static void add_work(table *t, const clv_profile_work *work, clv_bench_peak peak) {
    const char *bound;
    double fraction = part_of_peak(work, peak, &bound);
    if (!work->nodes) {
        for (int i = 0; i < 4; i++) table_add(t, "%s", "");
        return;
    }
    table_add(t, "%.3f", work->ns / 1e6);
    table_add(t, "%.1f", work->ns > 0 ? work->flops / work->ns : 0);
    table_add(t, "%.2f", work->ns > 0 ? work->bytes / work->ns : 0);
    if (fraction > 0)
        table_add(t, "%.0f %%%s", 100 * fraction, strcmp(bound, "cache") ? "" : "*");
    else
        table_add(t, "-");
}

static double part_of_step(const figures *f, const clv_profile_work *work) {
    return f->step_ns > 0 ? 100 * work->ns / f->step_ns : 0;
}

static void print_layers(FILE *out, const cli_profile *profile, const figures *f) {
    static const char forward[] = "forward", backward[] = "backward", optimizer[] = "optimizer";
    const table_column columns[] = {
        {"layer", TABLE_NAME, TABLE_KEEP, 16, NULL},   {"device", TABLE_TEXT, 60, 0, NULL},
        {"ms", TABLE_NUMBER, 82, 0, forward},          {"GFLOP/s", TABLE_NUMBER, 42, 0, forward},
        {"GB/s", TABLE_NUMBER, 32, 0, forward},        {"peak", TABLE_NUMBER, 52, 0, forward},
        {"ms", TABLE_NUMBER, 81, 0, backward},         {"GFLOP/s", TABLE_NUMBER, 41, 0, backward},
        {"GB/s", TABLE_NUMBER, 31, 0, backward},       {"peak", TABLE_NUMBER, 51, 0, backward},
        {"ms", TABLE_NUMBER, 80, 0, optimizer},        {"GFLOP/s", TABLE_NUMBER, 40, 0, optimizer},
        {"GB/s", TABLE_NUMBER, 30, 0, optimizer},      {"peak", TABLE_NUMBER, 50, 0, optimizer},
        {"all ms", TABLE_NUMBER, TABLE_KEEP, 0, NULL}, {"part", TABLE_NUMBER, 95, 0, NULL},
    };
    enum { BACKWARD = 6, ALL = 14 };
    fputc('\n', out);
    table *t = table_create(columns, sizeof columns / sizeof *columns);
    for (int i = BACKWARD; i < ALL && !f->trains; i++) table_hide(t, i);
    for (int i = 0; i < f->n_layers; i++) {
        const clv_profile_row *row = &f->layers[i];
        clv_bench_peak peak = peak_of(profile, row->device);
        table_add(t, "%s", row->name);
        table_add(t, "%s", clv_device_info_get(row->device)->name);
        add_work(t, &row->forward, peak);
        add_work(t, &row->backward, peak);
        add_work(t, &row->update, peak);
        table_add(t, "%.3f", row->all.ns / 1e6);
        table_add(t, "%.1f %%", part_of_step(f, &row->all));
    }
    table_print(t, out);
}

static void print_ops(FILE *out, const cli_profile *profile, const figures *f) {
    static const table_column columns[] = {
        {"op", TABLE_TEXT, TABLE_KEEP, 12, NULL},  {"variant", TABLE_TEXT, 80, 0, NULL},
        {"device", TABLE_TEXT, 60, 0, NULL},       {"nodes", TABLE_NUMBER, 50, 0, NULL},
        {"ms", TABLE_NUMBER, TABLE_KEEP, 0, NULL}, {"GFLOP/s", TABLE_NUMBER, 85, 0, NULL},
        {"GB/s", TABLE_NUMBER, 70, 0, NULL},       {"peak", TABLE_NUMBER, 88, 0, NULL},
        {"part", TABLE_NUMBER, 95, 0, NULL},
    };
    fputc('\n', out);
    table *t = table_create(columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < f->n_ops && i < MOST_OPS; i++) {
        const clv_profile_row *row = &f->ops[i];
        table_add(t, "%s", row->name);
        table_add(t, "%s", row->variant);
        table_add(t, "%s", clv_device_info_get(row->device)->name);
        table_add(t, "%d", row->all.nodes);
        add_work(t, &row->all, peak_of(profile, row->device));
        table_add(t, "%.1f %%", part_of_step(f, &row->all));
    }
    table_print(t, out);
    if (f->n_ops > MOST_OPS) screen_say(out, "and %d more; --json tells all", f->n_ops - MOST_OPS);
}

static void print_device(FILE *out, const cli_profile *profile, const clv_profile_device *device) {
    clv_bench_peak peak = peak_of(profile, device->device);
    const char *name = clv_device_info_get(device->device)->name;
    char most[160] = "";
    if (!device->known) {
        screen_say(out, "%s: its driver tells no times", name);
        return;
    }
    if (peak.gflops > 0)
        snprintf(most, sizeof most,
                 "; at most %.1f GFLOP/s, %.1f GB/s, and %.1f GB/s in caches (*), as measured", peak.gflops,
                 peak.gbps, peak.cache_gbps);
    screen_say(out, "%s: computes %.3f ms, transfers %.3f ms, idle %.3f ms%s", name, device->busy_ns / 1e6,
               device->transfer_ns / 1e6, device->idle_ns / 1e6, most);
}

/** Steps of all runs that do what this one does: a last batch that is smaller has a run of its own. */
static int64_t steps_like(const clv_profile *profile, const clv_profile_run *run) {
    int64_t steps = 0;
    for (int i = 0; i < clv_profile_info_get(profile).n_runs; i++) {
        clv_profile_run other = clv_profile_run_get(profile, i);
        if (other.trains == run->trains) steps += other.done;
    }
    return steps;
}

/** How many steps there were, and which of them the figures are averages of. */
static void steps_text(const clv_profile *profile, const clv_profile_run *run, char *out, size_t bytes) {
    const int64_t all = steps_like(profile, run), warm = run->warm ? run->done - run->steps : 0,
                  others = all - run->done;
    char why[160] = "";
    int n = warm ? snprintf(why, sizeof why, "the first %lld warm up", (long long)warm) : 0;
    if (others)
        snprintf(why + n, sizeof why - (size_t)n, "%s%lld %s of another batch size", n ? ", " : "",
                 (long long)others, others == 1 ? "is" : "are");
    if (all == run->steps)
        snprintf(out, bytes, "the average of %lld step%s", (long long)all, all == 1 ? "" : "s");
    else
        snprintf(out, bytes, "the average of %lld of %lld steps: %s", (long long)run->steps, (long long)all,
                 why);
}

void cli_profile_print(FILE *out, const cli_profile *profile) {
    if (!profile->profile || !profile->session->args->profile) return;
    const int number = clv_profile_info_get(profile->profile).main_run;
    clv_profile_run run = clv_profile_run_get(profile->profile, number);
    char steps[240], host[64] = "", bubble[48] = "";
    figures f;
    if (number < 0 || !figures_of_run(profile, number, &f)) return;
    steps_text(profile->profile, &run, steps, sizeof steps);
    if (run.host_ns > 0)
        snprintf(host, sizeof host, "; %.3f ms until the host has the next", run.host_ns / 1e6);
    if (run.n_devices > 1) snprintf(bubble, sizeof bubble, "; bubble %.1f %%", 100 * run.bubble);
    fputc('\n', out);
    screen_say(out, "profile: %.3f ms a step%s (%s)%s%s", run.step_ns / 1e6,
               run.host_ns > 0 ? ", besides waiting for the host" : "", steps, host, bubble);
    for (int i = 0; i < run.n_devices; i++) {
        clv_profile_device device = clv_profile_device_get(profile->profile, number, i);
        print_device(out, profile, &device);
    }
    print_layers(out, profile, &f);
    print_ops(out, profile, &f);
    figures_free(&f);
}

// ---- as JSON ----------------------------------------------------------------------------------------------

static json_t *work_json(const clv_profile_work *work, clv_bench_peak peak) {
    if (!work->nodes) return json_null();
    const char *bound;
    double part = part_of_peak(work, peak, &bound);
    return json_pack("{s:i, s:f, s:f, s:f, s:f, s:f, s:o, s:s}", "nodes", work->nodes, "ms", work->ns / 1e6,
                     "flops", work->flops, "bytes", work->bytes, "gflops",
                     work->ns > 0 ? work->flops / work->ns : 0, "gbps",
                     work->ns > 0 ? work->bytes / work->ns : 0, "peak_fraction",
                     part > 0 ? json_real(part) : json_null(), "bound", bound);
}

static json_t *rows_json(const cli_profile *profile, const clv_profile_row *rows, int n, const char *name) {
    json_t *array = json_array();
    for (int i = 0; i < n; i++) {
        clv_bench_peak peak = peak_of(profile, rows[i].device);
        json_array_append_new(
            array,
            json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", name, rows[i].name, "variant",
                      rows[i].variant, "device", clv_device_info_get(rows[i].device)->name, "forward",
                      work_json(&rows[i].forward, peak), "backward", work_json(&rows[i].backward, peak),
                      "optimizer", work_json(&rows[i].update, peak), "transfer",
                      work_json(&rows[i].transfer, peak), "all", work_json(&rows[i].all, peak)));
    }
    return array;
}

static json_t *nodes_json(const figures *f) {
    json_t *array = json_array();
    for (int i = 0; i < f->n; i++) {
        const clv_plan_node *node = &f->nodes[i].node;
        char shape[96];
        json_array_append_new(
            array, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:i, s:i}", "layer", node->layer,
                             "op", node->op, "variant", node->variant, "phase", node->phase, "device",
                             clv_device_info_get(node->device)->name, "output",
                             clv_shape_text(&node->output_shape, shape, sizeof shape), "ms",
                             f->nodes[i].ns / 1e6, "flops", node->flops, "bytes", node->traffic, "launches",
                             node->launches, "micro_batch", node->micro_batch));
    }
    return array;
}

/** What both kinds of figures share. */
static void add_figures(json_t *object, const cli_profile *profile, const figures *f) {
    json_object_set_new(object, "layers", rows_json(profile, f->layers, f->n_layers, "layer"));
    json_object_set_new(object, "ops", rows_json(profile, f->ops, f->n_ops, "op"));
    json_object_set_new(object, "nodes", nodes_json(f));
}

static json_t *peak_json(clv_bench_peak peak) {
    if (!(peak.gflops > 0)) return json_null();
    return json_pack("{s:f, s:f, s:f}", "gflops", peak.gflops, "gbps", peak.gbps, "cache_gbps",
                     peak.cache_gbps);
}

static json_t *devices_json(const cli_profile *profile, int run, int n) {
    json_t *devices = json_array();
    for (int i = 0; i < n; i++) {
        clv_profile_device device = clv_profile_device_get(profile->profile, run, i);
        json_array_append_new(
            devices,
            json_pack("{s:s, s:o, s:o, s:o, s:o}", "device", clv_device_info_get(device.device)->name,
                      "busy_ms", device.known ? json_real(device.busy_ns / 1e6) : json_null(), "transfer_ms",
                      device.known ? json_real(device.transfer_ns / 1e6) : json_null(), "idle_ms",
                      device.known ? json_real(device.idle_ns / 1e6) : json_null(), "peak",
                      peak_json(peak_of(profile, device.device))));
    }
    return devices;
}

json_t *cli_profile_json(const cli_profile *profile) {
    if (!profile->profile || !profile->session->args->profile) return json_null();
    const int number = clv_profile_info_get(profile->profile).main_run;
    clv_profile_run run = clv_profile_run_get(profile->profile, number);
    figures f;
    if (number < 0 || !figures_of_run(profile, number, &f)) return json_null();
    json_t *object =
        json_pack("{s:b, s:I, s:I, s:b, s:f, s:f, s:f, s:o}", "trains", run.trains, "steps",
                  (json_int_t)run.steps, "all_steps", (json_int_t)steps_like(profile->profile, &run), "warm",
                  run.warm, "step_ms", run.step_ns / 1e6, "host_ms", run.host_ns / 1e6, "bubble", run.bubble,
                  "devices", devices_json(profile, number, run.n_devices));
    add_figures(object, profile, &f);
    figures_free(&f);
    return object;
}

// ---- of a plan --------------------------------------------------------------------------------------------

int cli_profile_plan(cli_session *session, const clv_plan *plan, cli_profile *out) {
    *out = (cli_profile){.session = session};
    for (int i = 0; session->args->profile && i < clv_plan_info_get(plan).n_devices && i < CLI_MAX_REPLICAS;
         i++) {
        int code = look_at_peak(out, clv_plan_device_get(plan, i));
        if (code != EXIT_DONE) return code;
    }
    return EXIT_DONE;
}

/** A peak, in words. */
static void print_peak(FILE *out, const cli_peak *peak) {
    const char *name = clv_device_info_get(peak->device)->name;
    if (peak->peak.gflops > 0 && peak->peak.gbps > 0)
        fprintf(out, "%s: at most %.1f GFLOP/s, %.1f GB/s\n", name, peak->peak.gflops, peak->peak.gbps);
    else if (peak->peak.gbps > 0)
        screen_say(out, "%s: at most %.1f GB/s; its FLOP/s are not known, so times are those of memory alone",
                   name, peak->peak.gbps);
    else
        screen_say(out, "%s: its peaks are not known, so it counts as taking no time", name);
}

void cli_profile_plan_print(FILE *out, const cli_profile *profile, const clv_plan *plan) {
    const cli_args *args = profile->session->args;
    bool null = false;
    figures f;
    if (!args->profile || !figures_of_plan(profile, plan, args->train, &f)) return;
    fputc('\n', out);
    for (int i = 0; i < profile->n_peaks; i++)
        null |= !strcmp(clv_device_info_get(profile->peaks[i].device)->backend, "null");
    if (f.step_ns > 0)
        screen_say(out, "at the %s, with no gaps, all of it one after another would take %.3f ms",
                   null ? "makers' peaks" : "measured peaks", f.step_ns / 1e6);
    for (int i = 0; i < profile->n_peaks; i++) print_peak(out, &profile->peaks[i]);
    if (!(f.step_ns > 0)) {
        figures_free(&f);
        return;
    }
    print_layers(out, profile, &f);
    print_ops(out, profile, &f);
    figures_free(&f);
}

json_t *cli_profile_plan_json(const cli_profile *profile, const clv_plan *plan) {
    const cli_args *args = profile->session->args;
    figures f;
    if (!args->profile || !figures_of_plan(profile, plan, args->train, &f)) return json_null();
    json_t *object = json_pack("{s:f}", "step_ms", f.step_ns / 1e6);
    add_figures(object, profile, &f);
    figures_free(&f);
    return object;
}
