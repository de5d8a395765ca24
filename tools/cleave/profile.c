// SPDX-License-Identifier: Apache-2.0
// --profile and --trace: where a step's time goes, as tables, as JSON and as a file for a browser; and, of a plan, how little time it
// could take at the device's measured peak.
#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum { TRACE_SLICES = 200000, MOST_OPS = 20 };

// ---- peaks ----------------------------------------------------------------------------------------------------------

/** What the device can do at most. Without room for measuring it nothing is known, and that is all. */
static int look_at_peak(cli_profile *profile, clv_device *device) {
    clv_runtime *runtime = profile->session->runtime;
    cli_peak *peak = &profile->peaks[profile->n_peaks];
    peak->device = device;
    clv_status status = clv_bench_peak_get(device, false, &peak->peak);
    if (status != CLV_OK && status != CLV_E_BUDGET && status != CLV_E_DEVICE_MEMORY)
        return cli_fail_status(runtime, status);
    clv_device_memory_reset_peak(device); // what was measured with is none of the model's
    profile->n_peaks++;
    return EXIT_DONE;
}

static clv_bench_peak peak_of(const cli_profile *profile, const clv_device *device) {
    for (int i = 0; i < profile->n_peaks; i++)
        if (profile->peaks[i].device == device) return profile->peaks[i].peak;
    return (clv_bench_peak){0};
}

/** The part of the peak that binds; 0: not known. */
static double part_of_peak(const clv_profile_work *work, clv_bench_peak peak) {
    if (!(work->ns > 0 && peak.gflops > 0 && peak.gbps > 0)) return 0;
    double flops = work->flops / work->ns / peak.gflops, bytes = work->bytes / work->ns / peak.gbps;
    return flops > bytes ? flops : bytes;
}

// ---- begin and end --------------------------------------------------------------------------------------------------

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

int cli_profile_trace(const cli_profile *profile) {
    const cli_args *args = profile->session->args;
    if (!profile->profile || !args->trace) return EXIT_DONE;
    clv_status status = clv_profile_trace(profile->profile, args->trace);
    if (status != CLV_OK) return cli_fail_status(profile->session->runtime, status);
    int64_t left_out, steps = clv_profile_traced_steps(profile->profile, &left_out);
    if (args->quiet) return EXIT_DONE;
    fprintf(stderr, "a trace of %lld step%s is in %s, for ui.perfetto.dev or chrome://tracing",
            (long long)steps, steps == 1 ? "" : "s", args->trace);
    if (left_out)
        fprintf(stderr, "; %lld later one%s left out", (long long)left_out, left_out == 1 ? " is" : "s are");
    fputc('\n', stderr);
    return EXIT_DONE;
}

void cli_profile_end(cli_profile *profile) {
    clv_profile_destroy(profile->profile);
    profile->profile = NULL;
}

// ---- figures --------------------------------------------------------------------------------------------------------

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
static bool figures_of_run(const clv_profile *profile, int run, figures *f) {
    if (!figures_make(f, clv_profile_node_count(profile, run))) return false;
    for (int i = 0; i < f->n; i++) f->nodes[i] = clv_profile_node_get(profile, run, i);
    clv_profile_run of = clv_profile_run_get(profile, run);
    f->step_ns = of.step_ns;
    f->trains = of.trains;
    figures_sum(f);
    return true;
}

/** Of a plan: the least time at the peak. */
static bool figures_of_plan(const cli_profile *profile, const clv_plan *plan, bool trains, figures *f) {
    int n = clv_plan_node_count(plan);
    if (!figures_make(f, n)) return false;
    f->n = 0;
    f->trains = trains;
    for (int i = 0; i < n; i++) {
        clv_plan_node node = clv_plan_node_get(plan, i);
        if (!node.launches) continue;
        clv_bench_peak peak = peak_of(profile, node.device);
        double compute = peak.gflops > 0 ? node.flops / peak.gflops : 0,
               move = peak.gbps > 0 ? node.traffic / peak.gbps : 0;
        f->nodes[f->n++] = (clv_profile_node){node, compute > move ? compute : move};
        f->step_ns += compute > move ? compute : move;
    }
    figures_sum(f);
    return true;
}

// ---- as tables ------------------------------------------------------------------------------------------------------

static void print_work(FILE *out, const clv_profile_work *work, clv_bench_peak peak) {
    char part[16] = "-";
    double fraction = part_of_peak(work, peak);
    if (!work->nodes) {
        fprintf(out, " %9s %8s %6s %6s", "", "", "", "");
        return;
    }
    if (fraction > 0) snprintf(part, sizeof part, "%.0f %%", 100 * fraction);
    fprintf(out, " %9.3f %8.1f %6.2f %6s", work->ns / 1e6, work->ns > 0 ? work->flops / work->ns : 0,
            work->ns > 0 ? work->bytes / work->ns : 0, part);
}

static void print_columns(FILE *out, int n) {
    for (int i = 0; i < n; i++) fprintf(out, " %9s %8s %6s %6s", "ms", "GFLOP/s", "GB/s", "peak");
}

static double part_of_step(const figures *f, const clv_profile_work *work) {
    return f->step_ns > 0 ? 100 * work->ns / f->step_ns : 0;
}

static int widest(const clv_profile_row *rows, int n) {
    int width = 8;
    for (int i = 0; i < n; i++)
        if ((int)strlen(rows[i].name) > width) width = (int)strlen(rows[i].name);
    return width;
}

static void print_layers(FILE *out, const cli_profile *profile, const figures *f) {
    const int width = widest(f->layers, f->n_layers), phases = f->trains ? 3 : 1;
    fprintf(out, "\n%-*s %-7s %-32s", width, "", "", " forward");
    if (f->trains) fprintf(out, " %-32s %-32s", " backward", " optimizer");
    fprintf(out, "\n%-*s %-7s", width, "layer", "device");
    print_columns(out, phases);
    fprintf(out, " %9s %6s\n", "all ms", "part");
    for (int i = 0; i < f->n_layers; i++) {
        const clv_profile_row *row = &f->layers[i];
        clv_bench_peak peak = peak_of(profile, row->device);
        fprintf(out, "%-*s %-7s", width, row->name, clv_device_get_info(row->device)->name);
        print_work(out, &row->forward, peak);
        if (f->trains) {
            print_work(out, &row->backward, peak);
            print_work(out, &row->update, peak);
        }
        fprintf(out, " %9.3f %4.1f %%\n", row->all.ns / 1e6, part_of_step(f, &row->all));
    }
}

static void print_ops(FILE *out, const cli_profile *profile, const figures *f) {
    const int width = widest(f->ops, f->n_ops);
    fprintf(out, "\n%-*s %-16s %-7s %6s", width, "op", "variant", "device", "nodes");
    print_columns(out, 1);
    fprintf(out, " %6s\n", "part");
    for (int i = 0; i < f->n_ops && i < MOST_OPS; i++) {
        const clv_profile_row *row = &f->ops[i];
        fprintf(out, "%-*s %-16s %-7s %6d", width, row->name, row->variant,
                clv_device_get_info(row->device)->name, row->all.nodes);
        print_work(out, &row->all, peak_of(profile, row->device));
        fprintf(out, " %4.1f %%\n", part_of_step(f, &row->all));
    }
    if (f->n_ops > MOST_OPS) fprintf(out, "and %d more; --json tells all\n", f->n_ops - MOST_OPS);
}

static void print_device(FILE *out, const cli_profile *profile, const clv_profile_device *device) {
    clv_bench_peak peak = peak_of(profile, device->device);
    fprintf(out, "%s: ", clv_device_get_info(device->device)->name);
    if (!device->known) {
        fprintf(out, "its driver tells no times\n");
        return;
    }
    fprintf(out, "computes %.3f ms, carries %.3f ms, idle %.3f ms", device->busy_ns / 1e6,
            device->transfer_ns / 1e6, device->idle_ns / 1e6);
    if (peak.gflops > 0)
        fprintf(out, "; at most %.1f GFLOP/s, %.1f GB/s, as measured", peak.gflops, peak.gbps);
    fputc('\n', out);
}

void cli_profile_print(FILE *out, const cli_profile *profile) {
    if (!profile->profile || !profile->session->args->profile) return;
    const int number = clv_profile_main_run(profile->profile);
    clv_profile_run run = clv_profile_run_get(profile->profile, number);
    figures f;
    if (number < 0 || !figures_of_run(profile->profile, number, &f)) return;
    fprintf(out, "\nprofile: %.3f ms a step%s (%lld step%s%s)", run.step_ns / 1e6,
            run.host_ns > 0 ? ", besides waiting for the host" : "", (long long)run.steps,
            run.steps == 1 ? "" : "s", run.warm ? " after those that warm up" : ", none to warm up");
    if (run.host_ns > 0) fprintf(out, "; %.3f ms until the host has the next", run.host_ns / 1e6);
    if (run.n_devices > 1) fprintf(out, "; bubble %.1f %%", 100 * run.bubble);
    fputc('\n', out);
    for (int i = 0; i < run.n_devices; i++) {
        clv_profile_device device = clv_profile_device_get(profile->profile, number, i);
        print_device(out, profile, &device);
    }
    print_layers(out, profile, &f);
    print_ops(out, profile, &f);
    figures_free(&f);
}

// ---- as JSON --------------------------------------------------------------------------------------------------------

static json_t *work_json(const clv_profile_work *work, clv_bench_peak peak) {
    if (!work->nodes) return json_null();
    double part = part_of_peak(work, peak);
    return json_pack(
        "{s:i, s:f, s:f, s:f, s:f, s:f, s:o}", "nodes", work->nodes, "ms", work->ns / 1e6, "flops",
        work->flops, "bytes", work->bytes, "gflops", work->ns > 0 ? work->flops / work->ns : 0, "gbps",
        work->ns > 0 ? work->bytes / work->ns : 0, "peak_fraction", part > 0 ? json_real(part) : json_null());
}

static json_t *rows_json(const cli_profile *profile, const clv_profile_row *rows, int n, const char *name) {
    json_t *array = json_array();
    for (int i = 0; i < n; i++) {
        clv_bench_peak peak = peak_of(profile, rows[i].device);
        json_array_append_new(
            array,
            json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", name, rows[i].name, "variant",
                      rows[i].variant, "device", clv_device_get_info(rows[i].device)->name, "forward",
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
                             clv_device_get_info(node->device)->name, "output",
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
    return json_pack("{s:f, s:f}", "gflops", peak.gflops, "gbps", peak.gbps);
}

static json_t *devices_json(const cli_profile *profile, int run, int n) {
    json_t *devices = json_array();
    for (int i = 0; i < n; i++) {
        clv_profile_device device = clv_profile_device_get(profile->profile, run, i);
        json_array_append_new(
            devices,
            json_pack("{s:s, s:o, s:o, s:o, s:o}", "device", clv_device_get_info(device.device)->name,
                      "busy_ms", device.known ? json_real(device.busy_ns / 1e6) : json_null(), "transfer_ms",
                      device.known ? json_real(device.transfer_ns / 1e6) : json_null(), "idle_ms",
                      device.known ? json_real(device.idle_ns / 1e6) : json_null(), "peak",
                      peak_json(peak_of(profile, device.device))));
    }
    return devices;
}

json_t *cli_profile_json(const cli_profile *profile) {
    if (!profile->profile || !profile->session->args->profile) return json_null();
    const int number = clv_profile_main_run(profile->profile);
    clv_profile_run run = clv_profile_run_get(profile->profile, number);
    figures f;
    if (number < 0 || !figures_of_run(profile->profile, number, &f)) return json_null();
    json_t *object =
        json_pack("{s:b, s:I, s:b, s:f, s:f, s:f, s:o}", "trains", run.trains, "steps", (json_int_t)run.steps,
                  "warm", run.warm, "step_ms", run.step_ns / 1e6, "host_ms", run.host_ns / 1e6, "bubble",
                  run.bubble, "devices", devices_json(profile, number, run.n_devices));
    add_figures(object, profile, &f);
    figures_free(&f);
    return object;
}

// ---- of a plan ------------------------------------------------------------------------------------------------------

int cli_profile_plan(cli_session *session, const clv_plan *plan, cli_profile *out) {
    *out = (cli_profile){.session = session};
    for (int i = 0; session->args->profile && i < clv_plan_device_count(plan) && i < CLI_MAX_REPLICAS; i++) {
        int code = look_at_peak(out, clv_plan_device_get(plan, i));
        if (code != EXIT_DONE) return code;
    }
    return EXIT_DONE;
}

void cli_profile_plan_print(FILE *out, const cli_profile *profile, const clv_plan *plan) {
    const cli_args *args = profile->session->args;
    figures f;
    if (!args->profile || !figures_of_plan(profile, plan, args->train, &f)) return;
    fprintf(out, "\nat the measured peaks, with no gaps, all of it one after another would take %.3f ms\n",
            f.step_ns / 1e6);
    for (int i = 0; i < profile->n_peaks; i++) {
        const cli_peak *peak = &profile->peaks[i];
        fprintf(out, "%s: at most %.1f GFLOP/s, %.1f GB/s\n", clv_device_get_info(peak->device)->name,
                peak->peak.gflops, peak->peak.gbps);
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
