// SPDX-License-Identifier: Apache-2.0
// --place, --devices, --transfers, --replicas, --shares, --micro-batches: what a person wrote, as the library
// wants it, and what came out.
#include "plans/plans.h"
#include "training/training.h"
#include "table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int check_shares(const cli_args *args, const cli_placement *out, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        if (!(out->shares[i] > 0))
            return cli_fail(EXIT_USAGE, "--shares '%s': the share of %s is %g, it must be above 0",
                            args->shares, out->devices[i], out->shares[i]);
        sum += out->shares[i];
    }
    if (!(fabs(sum - 1) <= 1e-6))
        return cli_fail(EXIT_USAGE, "--shares '%s' sum to %g, they must sum to 1", args->shares, sum);
    return EXIT_DONE;
}

static int read_shares(const cli_args *args, cli_placement *out) {
    clv_placement *placement = &out->placement;
    if (!args->shares || !strcmp(args->shares, "auto")) {
        placement->measure_shares = true;
        return EXIT_DONE;
    }
    if (!strcmp(args->shares, "equal")) return EXIT_DONE;
    const char *at = args->shares;
    int n = 0;
    for (; n < CLI_MAX_REPLICAS; n++) {
        char *end;
        out->shares[n] = strtod(at, &end);
        if (end == at || (*end && *end != ',')) break;
        at = end + 1;
        if (!*end) {
            n++;
            placement->shares = out->shares;
            if (args->ranks && !args->replicas)
                return EXIT_DONE; // the trainer knows how many ranks there are
            if (n != placement->n_replicas)
                return cli_fail(EXIT_USAGE, "--shares '%s' has %d parts for %d replicas", args->shares, n,
                                placement->n_replicas);
            return check_shares(args, out, n);
        }
    }
    return cli_fail(EXIT_USAGE,
                    "--shares wants auto, equal, or one number for each replica or rank (0.7,0.3), not '%s'",
                    args->shares);
}

static int check_micro_batches(const cli_args *args) {
    int64_t batch = args->batch ? args->batch : 64;
    if (args->micro_batches > batch)
        return cli_fail(EXIT_USAGE, "--micro-batches %lld is more than the %lld images of a batch",
                        (long long)args->micro_batches, (long long)batch);
    if (args->micro_batches && args->command == CLI_PLAN && !args->train)
        return cli_fail(EXIT_USAGE, "--micro-batches is for --train");
    return EXIT_DONE;
}

/** Cut a list of devices at its commas; `option` is for the sentence. */
static int read_devices(const char *option, const char *list, char *text, size_t room, const char **devices,
                        int *n) {
    if (strlen(list) >= room) return cli_fail(EXIT_USAGE, "--%s is too long", option);
    strcpy(text, list);
    for (char *name; (name = strsep(&text, ",")) != NULL;) {
        if (!*name || *n == CLI_MAX_REPLICAS)
            return cli_fail(EXIT_USAGE, "--%s wants 1 to %d devices, cpu:0,cpu:1, not '%s'", option,
                            CLI_MAX_REPLICAS, list);
        devices[(*n)++] = name;
    }
    return EXIT_DONE;
}

static bool is_method(const char *place) {
    return !strcmp(place, "auto") || !strcmp(place, "balanced") || !strcmp(place, "sequential");
}

/** Layers that --place names no device for are where --device says. */
static int place_rest(const cli_args *args, cli_placement *out) {
    int n = snprintf(out->text, sizeof out->text, "*=%s,%s", args->device, args->place);
    if (n < 0 || (size_t)n >= sizeof out->text) return cli_fail(EXIT_USAGE, "--place is too long");
    out->placement.place = out->text;
    return EXIT_DONE;
}

/** --place and --devices. */
static int read_place(const cli_args *args, cli_placement *out) {
    clv_placement *placement = &out->placement;
    placement->place = args->place;
    placement->explicit_transfers = args->transfers && !strcmp(args->transfers, "explicit");
    bool method = args->place && is_method(args->place);
    if (args->devices && !method)
        return cli_fail(EXIT_USAGE, "--devices is for --place auto, balanced or sequential");
    if (!method) return args->place && args->device ? place_rest(args, out) : EXIT_DONE;
    if (args->device)
        return cli_fail(EXIT_USAGE, "--device and --place %s both say where to compute; give one of them",
                        args->place);
    if (!args->devices)
        return cli_fail(EXIT_USAGE, "--place %s wants --devices A,B: among which?", args->place);
    if (placement->explicit_transfers)
        return cli_fail(EXIT_USAGE,
                        "--place %s lets data cross between devices, --transfers explicit does not",
                        args->place);
    placement->devices = out->devices;
    return read_devices("devices", args->devices, out->text, sizeof out->text, out->devices,
                        &placement->n_devices);
}

int cli_read_placement(const cli_args *args, cli_placement *out) {
    *out = (cli_placement){0};
    clv_placement *placement = &out->placement;
    int code = check_micro_batches(args);
    if (code != EXIT_DONE) return code;
    if (args->replicas && args->place && is_method(args->place))
        return cli_fail(EXIT_USAGE,
                        "--place %s chooses places for all layers, so none is left for --replicas: name the "
                        "layers that are not replicated, --place 'fc*=cpu:0'",
                        args->place);
    if (args->shares && !args->replicas && !args->ranks)
        return cli_fail(EXIT_USAGE, "--shares is for --replicas%s",
                        args->command == CLI_TRAIN ? " and --ranks" : "");
    if (args->on_device_failure && !args->replicas)
        return cli_fail(EXIT_USAGE, "--on-device-failure is for --replicas");
    if (args->device && args->replicas)
        return cli_fail(EXIT_USAGE, "--device and --replicas both say where to compute; give one of them");
    code = read_place(args, out);
    if (code == EXIT_DONE && args->shares && !args->replicas) return read_shares(args, out);
    if (code != EXIT_DONE || !args->replicas) return code;
    placement->replicas = out->devices;
    code = read_devices("replicas", args->replicas, out->replicas, sizeof out->replicas, out->devices,
                        &placement->n_replicas);
    return code == EXIT_DONE ? read_shares(args, out) : code;
}

/** Devices that are there, each once. */
static int check_replicas(clv_runtime *runtime, const clv_placement *placement) {
    clv_device *found[CLI_MAX_REPLICAS];
    for (int i = 0; i < placement->n_replicas; i++) {
        clv_status status = clv_device_find(runtime, placement->replicas[i], &found[i]);
        if (status != CLV_OK) {
            int code = cli_fail_status(runtime, status);
            return status == CLV_E_VALUE || status == CLV_E_NOT_FOUND ? EXIT_USAGE : code;
        }
        for (int j = 0; j < i; j++) {
            if (found[i] != found[j]) continue;
            const char *name = clv_device_info_get(found[i])->name, *first = placement->replicas[j],
                       *second = placement->replicas[i];
            if (strcmp(first, second) == 0)
                return cli_fail(EXIT_USAGE, "--replicas: %s is named twice", name);
            return cli_fail(EXIT_USAGE, "--replicas: %s is named twice, as '%s' and as '%s'", name, first,
                            second);
        }
    }
    return EXIT_DONE;
}

/** The model's forward pass, to hold names against. The caller destroys the graph, after a failure too. */
static clv_status make_graph(clv_runtime *runtime, const clv_model *model, clv_graph **out) {
    return clv_pass_graph(runtime, &(clv_train_config){.model = model}, CLV_PASS_PREDICT, 1, out);
}

/** A name of what is not there is a wrong word on the command line. */
static int fail_names(clv_runtime *runtime, clv_status status) {
    int code = cli_fail_status(runtime, status);
    return status == CLV_E_VALUE || status == CLV_E_NOT_FOUND ? EXIT_USAGE : code;
}

int cli_check_freeze(clv_runtime *runtime, const clv_model *model, const char *freeze) {
    clv_graph *graph;
    if (!freeze) return EXIT_DONE;
    clv_status status = make_graph(runtime, model, &graph);
    if (status == CLV_OK) {
#ifndef CLEAVE_INFERENCE // which has no --freeze
        clv_freeze(graph, freeze);
#endif
        status = clv_graph_status(graph);
    }
    clv_graph_destroy(graph);
    return status == CLV_OK ? EXIT_DONE : fail_names(runtime, status);
}

int cli_check_groups(clv_runtime *runtime, const clv_model *model, const cli_groups *groups) {
    clv_graph *graph;
    if (!groups->n) return EXIT_DONE;
    clv_status status = make_graph(runtime, model, &graph);
    if (status == CLV_OK) {
#ifndef CLEAVE_INFERENCE // which has no --param-group
        clv_optimizer_freeze(graph, &(clv_optimizer_config){.groups = groups->group, .n_groups = groups->n});
#endif
        status = clv_graph_status(graph);
    }
    clv_graph_destroy(graph);
    return status == CLV_OK ? EXIT_DONE : fail_names(runtime, status);
}

/** A placement that names what is not there is a wrong word on the command line; that it does not fit is a
 *  failure. */
int cli_check_place(clv_runtime *runtime, const clv_model *model, const clv_placement *placement) {
    const int code = check_replicas(runtime, placement);
    if (code != EXIT_DONE || !placement->place) return code;
    clv_graph *graph;
    clv_status status;
    if (placement->n_replicas) { // which read it while they are built
        const clv_train_config config = {.model = model,
                                         .placement = {.place = placement->place,
                                                       .replicas = placement->replicas,
                                                       .n_replicas = placement->n_replicas}};
        status = clv_pass_graph(runtime, &config, CLV_PASS_PREDICT, placement->n_replicas, &graph);
    } else {
        status = make_graph(runtime, model, &graph);
    }
    if (status == CLV_OK && !placement->n_replicas) {
        const clv_place_config config = {
            .place = placement->place, .devices = placement->devices, .n_devices = placement->n_devices};
        status = clv_place_check(graph, &config);
    }
    clv_graph_destroy(graph);
    return status == CLV_OK ? EXIT_DONE : fail_names(runtime, status);
}

void cli_tell_idle(const cli_session *session, const clv_plan *plan) {
    const cli_args *args = session->args;
    clv_device *used[64];
    int n = 0;
    for (int i = 0; i < clv_plan_info_get(plan).n_devices && n < 64; i++)
        used[n++] = clv_plan_device_get(plan, i);
    // What `auto` leaves out it has left out knowingly.
    if ((args->place || args->replicas) && !args->devices) cli_tell_unused_budgets(session, used, n);
    for (int i = 0; i < clv_plan_info_get(plan).n_devices && args->place && !args->quiet; i++) {
        clv_device *device = clv_plan_device_get(plan, i);
        bool works = false;
        for (int k = 0; k < clv_plan_info_get(plan).n_nodes && !works; k++)
            works = clv_plan_node_get(plan, k).device == device;
        if (!works)
            fprintf(stderr,
                    "cleave: --place names %s, and leaves it nothing: a later pattern takes all its layers\n",
                    clv_device_info_get(device)->name);
    }
}

void cli_print_place(const cli_args *args, const clv_place_choice *choice) {
    if (!choice || args->quiet) return;
    static const table_column columns[] = {{"device", TABLE_TEXT, TABLE_KEEP, 0, NULL},
                                           {"layers", TABLE_NUMBER, 90, 0, NULL},
                                           {"memory", TABLE_NUMBER, 80, 0, NULL},
                                           {"ms a step, as predicted", TABLE_NUMBER, TABLE_KEEP, 0, NULL}};
    double seconds = 0;
    // Never broken into lines: it is there to be pasted.
    fprintf(stderr, "--place %s is --place '%s'\n", args->place, choice->place);
    table *t = table_create(columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < choice->n_stages; i++) {
        const clv_place_stage *stage = &choice->stages[i];
        table_add(t, "%s", clv_device_info_get(stage->device)->name);
        table_add(t, "%d", stage->layers);
        table_add(t, "%s", cli_bytes(stage->bytes));
        table_add(t, "%.2f", 1e3 * stage->seconds);
        seconds += stage->seconds;
    }
    table_print(t, stderr);
    if (choice->n_stages > 1) fprintf(stderr, "one after the other %.2f ms\n", 1e3 * seconds);
}

json_t *cli_plan_memory_json(clv_plan *plan) {
    json_t *memory = json_array();
    for (int i = 0; i < clv_plan_info_get(plan).n_devices; i++) {
        clv_device *device = clv_plan_device_get(plan, i);
        uint64_t predicted = clv_plans_memory(&plan, 1, device).predicted_peak_bytes;
        json_array_append_new(memory, cli_memory_json(device, predicted));
    }
    return memory;
}

void cli_plan_memory_tables(FILE *out, clv_plan *plan) {
    for (int i = 0; i < clv_plan_info_get(plan).n_devices; i++) {
        clv_device *device = clv_plan_device_get(plan, i);
        cli_memory_table(out, device, clv_plans_memory(&plan, 1, device).predicted_peak_bytes);
    }
}

json_t *cli_shares_json(const clv_placement *placement, const double *shares) {
    json_t *object = json_object();
    for (int i = 0; i < placement->n_replicas; i++)
        json_object_set_new(object, placement->replicas[i], json_real(shares[i]));
    return object;
}

void cli_shares_print(const clv_placement *placement, const double *shares) {
    for (int i = 0; i < placement->n_replicas; i++)
        if (shares[i] > 0)
            screen_say(stdout, "%s computes %.1f %% of each batch", placement->replicas[i], 100 * shares[i]);
}

json_t *cli_place_json(const clv_place_choice *choice) {
    if (!choice) return json_null();
    json_t *stages = json_array();
    for (int i = 0; i < choice->n_stages; i++) {
        const clv_place_stage *stage = &choice->stages[i];
        json_array_append_new(stages, json_pack("{s:s, s:i, s:I, s:f}", "device",
                                                clv_device_info_get(stage->device)->name, "layers",
                                                stage->layers, "bytes", (json_int_t)stage->bytes,
                                                "predicted_ms", 1e3 * stage->seconds));
    }
    return json_pack("{s:s, s:o}", "place", choice->place, "stages", stages);
}
