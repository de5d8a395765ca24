// SPDX-License-Identifier: Apache-2.0
// cleave plan: what a model needs, layer by layer, without taking any of it.
#include "models/models.h"
#include "plans/plans.h"
#include "training/training.h"
#include "options/options.h"
#include "plans/plan_tree.h"
#include "table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/** What is planned, for any batch size. */
typedef struct plan_job {
    cli_session *session;
    const clv_model *model;
    clv_train_config recipe;
    cli_groups groups;
    clv_placement placement;
    clv_place_choice *choice;        // NULL: none was to be made
    double shares[CLI_MAX_REPLICAS]; // of replicas, within budgets
    cli_ranks_planned ranks;         // none without --ranks
} plan_job;

/** A plan and its graph. */
typedef struct plan_made {
    clv_graph *graph;
    clv_plan *plan;
} plan_made;

static void planned_destroy(plan_made *planned) {
    clv_plan_destroy(planned->plan);
    clv_graph_destroy(planned->graph);
    planned->plan = NULL;
    planned->graph = NULL;
}

/** What is planned, as a training. */
static clv_train_config training_of(const plan_job *job, int64_t batch) {
    clv_train_config config = job->recipe;
    config.model = job->model;
    config.bytes = !job->session->args->samples || strcmp(job->session->args->samples, "numbers") != 0;
    config.device = job->session->device;
    config.placement = job->placement;
    if (job->choice) {
        config.placement.place = job->choice->place;
        config.placement.n_devices = 0;
    }
    config.batch = batch;
    config.optimizer.groups = job->groups.group;
    config.optimizer.n_groups = job->groups.n;
    return config;
}

static clv_pass pass_of(const plan_job *job) {
    return job->session->args->train ? CLV_PASS_TRAIN : CLV_PASS_PREDICT;
}

static clv_status make_graph(const plan_job *job, int64_t batch, clv_graph **out) {
    clv_train_config config = training_of(job, batch);
    return clv_pass_graph(job->session->runtime, &config, pass_of(job), batch, out);
}

static clv_plan_config plan_config(const plan_job *job) {
    return (clv_plan_config){.device = job->session->device,
                             .place = job->choice                 ? job->choice->place
                                      : job->placement.n_replicas ? NULL // the graph says it
                                                                  : job->placement.place,
                             .explicit_transfers = job->placement.explicit_transfers,
                             .variants = job->session->args->variants,
                             .no_fuse = cli_no_fuse(job->session->args),
                             .own_session = !job->session->args->train, // as cleave run and eval plan it
                             .recompute = job->session->args->recompute};
}

static clv_status make_plan(const plan_job *job, int64_t batch, plan_made *out) {
    *out = (plan_made){0};
    clv_status status = make_graph(job, batch, &out->graph);
    if (status != CLV_OK) return status;
    clv_plan_config config = plan_config(job);
    return clv_plan_create(out->graph, &config, &out->plan);
}

/** The same plan without mixed precision and micro-batches, to compare with; nothing if there are none. */
static clv_status make_plain_plan(const plan_job *job, int64_t batch, plan_made *out) {
    plan_job other = *job;
    *out = (plan_made){0};
    if (job->recipe.precision == CLV_PRECISION_F32 && job->recipe.micro_batches <= 1) return CLV_OK;
    other.recipe.precision = CLV_PRECISION_F32;
    other.recipe.micro_batches = 1;
    return make_plan(&other, batch, out);
}

/** What would make it fit; the runtime's sentence stays the refusal. */
static clv_status advise_by(const plan_job *job, int64_t batch, clv_train_advice *found, char *text,
                            size_t bytes) {
    clv_train_config config = training_of(job, batch);
    clv_status status = clv_pass_advise(job->session->runtime, &config, pass_of(job), found);
    if (status == CLV_OK) snprintf(text, bytes, "%s", cli_option_words(found->text)); // which lie elsewhere
    return status;
}

/** No choice fits: print why, and what would. */
static int nothing_fits(const plan_job *job, int64_t batch) {
    char text[1024] = "";
    clv_train_advice advice;
    clv_status status = advise_by(job, batch, &advice, text, sizeof text);
    if (status != CLV_OK) return cli_fail_status(job->session->runtime, status);
    return cli_fail(EXIT_FAILED, "%s%s%s", cli_sentence(job->session->runtime), *text ? "; " : "", text);
}

/** Layers on devices, and what is planned on a device alone without them. */
static int choose_devices(plan_job *job, int64_t batch) {
    clv_runtime *runtime = job->session->runtime;
    const clv_placement *placement = &job->placement;
    if (batch < placement->n_replicas) // as a training refuses it
        return cli_fail(EXIT_FAILED, "a batch of %" PRId64 " samples for %d replicas leaves some without any",
                        batch, placement->n_replicas);
    int code = cli_check_place(runtime, job->model, placement);
    if (code == EXIT_DONE) code = cli_check_freeze(runtime, job->model, job->session->args->freeze);
#ifndef CLEAVE_INFERENCE
    if (code == EXIT_DONE) code = cli_read_groups(job->session->args, &job->groups);
    if (code == EXIT_DONE) code = cli_check_groups(runtime, job->model, &job->groups);
#endif
    if (code == EXIT_DONE && placement->n_replicas) {
        clv_status status = clv_device_find(runtime, placement->replicas[0], &job->session->device);
        clv_train_config config = training_of(job, batch);
        if (status == CLV_OK && placement->measure_shares) {
            status = clv_pass_shares(runtime, &config, pass_of(job), job->shares);
            job->placement.shares = job->shares;
        }
        return status == CLV_OK ? EXIT_DONE : cli_fail_status(runtime, status);
    }
    if (code != EXIT_DONE || !placement->n_devices) return code;
    clv_graph *graph = NULL;
    clv_status status = make_graph(job, batch, &graph);
    const clv_place_config config = {.place = placement->place,
                                     .devices = placement->devices,
                                     .n_devices = placement->n_devices,
                                     .plan = plan_config(job)};
    if (status == CLV_OK) status = clv_place_choose(graph, &config, &job->choice);
    clv_graph_destroy(graph);
    if (status == CLV_E_BUDGET) return nothing_fits(job, batch);
    if (status != CLV_OK) return cli_fail_status(runtime, status);
    cli_print_place(job->session->args, job->choice);
    return EXIT_DONE;
}

// ---- the largest batch that fits --------------------------------------------------------------------------

static clv_status fits_with(void *user, int64_t batch) {
    plan_made planned;
    clv_status status = make_plan(user, batch, &planned);
    if (status == CLV_OK) status = clv_plans_fit(&planned.plan, 1);
    planned_destroy(&planned);
    return status;
}

// ---- what would fit, if it does not -----------------------------------------------------------------------

typedef struct plan_advice {
    int64_t largest; // batch that fits; 0: none
    bool fits;
    char reason[2048];      // why it does not fit; "" if it does
    clv_train_advice found; // what would
    char text[1024];
} plan_advice;

static clv_status advise(plan_job *job, clv_plan *plan, int64_t batch, plan_advice *out) {
    *out = (plan_advice){.fits = clv_plans_fit(&plan, 1) == CLV_OK};
    clv_status status = out->fits ? CLV_OK : advise_by(job, batch, &out->found, out->text, sizeof out->text);
    if (!out->fits) snprintf(out->reason, sizeof out->reason, "%s", cli_sentence(job->session->runtime));
    if (status == CLV_OK) status = clv_batch_search(batch, INT64_C(1) << 31, fits_with, job, &out->largest);
    return status;
}

static json_t *advice_json(const plan_advice *advice) {
    return json_pack("{s:s, s:I, s:I, s:s, s:s, s:s}", "reason", advice->reason, "largest_batch",
                     (json_int_t)advice->found.largest_batch, "largest_recomputed",
                     (json_int_t)advice->found.largest_recomputed, "place", advice->found.place, "device",
                     advice->found.device, "text", advice->text);
}

// ---- output -----------------------------------------------------------------------------------------------

static json_t *shape_json(const clv_shape *shape) {
    json_t *dims = json_array();
    for (int i = 0; i < shape->rank; i++)
        json_array_append_new(dims, json_integer((json_int_t)shape->dims[i]));
    return dims;
}

/** Milliseconds of a step by the maker's figures; null where there are none. */
static json_t *least_json(const clv_plan *plan, const clv_device *device) {
    const double seconds = clv_plan_device_info_get(plan, device).least_seconds;
    return seconds > 0 ? json_real(1e3 * seconds) : json_null();
}

/** What these milliseconds were counted from. */
static const char *least_of(const clv_device *device) {
    const clv_device_info *info = clv_device_info_get(device);
    return !(info->peak_bytes_per_second > 0) ? "" : info->peak_flops > 0 ? "flops and bytes" : "bytes";
}

static json_t *devices_json(clv_plan *plan) {
    json_t *devices = json_array();
    for (int d = 0; d < clv_plan_info_get(plan).n_devices; d++) {
        clv_plan_memory memory = clv_plans_memory(&plan, 1, clv_plan_device_get(plan, d));
        json_t *categories = json_object();
        for (int i = 0; i < CLV_CATEGORIES; i++)
            json_object_set_new(categories, clv_category_name((clv_category)i),
                                json_integer((json_int_t)memory.category[i]));
        json_array_append_new(devices,
                              json_pack("{s:s, s:I, s:f, s:o, s:s, s:o}", "device",
                                        clv_device_info_get(memory.device)->name, "predicted_peak_bytes",
                                        (json_int_t)memory.predicted_peak_bytes, "predicted_busy",
                                        clv_plan_device_info_get(plan, memory.device).busy, "least_ms",
                                        least_json(plan, memory.device), "least_of", least_of(memory.device),
                                        "categories", categories));
    }
    return devices;
}

static json_t *transfers_json(const clv_plan *plan) {
    json_t *transfers = json_array();
    for (int i = 0; i < clv_plan_info_get(plan).n_transfers; i++) {
        clv_plan_transfer transfer = clv_plan_transfer_get(plan, i);
        json_array_append_new(transfers,
                              json_pack("{s:s, s:s, s:s, s:I, s:b}", "from",
                                        clv_device_info_get(transfer.from)->name, "to",
                                        clv_device_info_get(transfer.to)->name, "tensor", transfer.tensor,
                                        "bytes", (json_int_t)transfer.bytes, "shared", (int)transfer.shared));
    }
    return transfers;
}

/** Every node that had a choice: the forward ones' are in the layers' rows, here are all. */
static json_t *choices_json(const clv_plan *plan) {
    json_t *choices = json_array();
    for (int i = 0; i < clv_plan_info_get(plan).n_nodes; i++) {
        clv_plan_node node = clv_plan_node_get(plan, i);
        if (*node.chosen)
            json_array_append_new(
                choices, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:i}", "layer", node.layer, "op",
                                   node.op, "phase", node.phase, "variant", node.variant, "chosen",
                                   node.chosen, "device", clv_device_info_get(node.device)->name, "flops",
                                   node.flops, "bytes", node.traffic, "launches", node.launches));
    }
    return choices;
}

/** Nodes that stand for several of the graph. */
static json_t *fused_json(const clv_plan *plan) {
    json_t *fused = json_array();
    for (int i = 0; i < clv_plan_info_get(plan).n_nodes; i++) {
        clv_plan_node node = clv_plan_node_get(plan, i);
        if (node.fused)
            json_array_append_new(fused,
                                  json_pack("{s:s, s:s, s:s, s:s, s:i, s:s}", "layer", node.layer, "op",
                                            node.op, "also", node.also, "phase", node.phase, "nodes",
                                            node.fused, "device", clv_device_info_get(node.device)->name));
    }
    return fused;
}

/** Of each step, or of a run's first one besides. */
static int launches_of(const clv_plan *plan, bool once) {
    int n = 0;
    for (int i = 0; i < clv_plan_info_get(plan).n_nodes; i++) {
        const clv_plan_node node = clv_plan_node_get(plan, i);
        if (!strcmp(node.phase, "once") == once) n += node.launches;
    }
    return n;
}

/** What is done together, on one line. */
static void print_fused(const clv_plan *plan) {
    int nodes = 0, into = 0;
    for (int i = 0; i < clv_plan_info_get(plan).n_nodes; i++) {
        clv_plan_node node = clv_plan_node_get(plan, i);
        nodes += node.fused;
        into += node.fused > 0;
    }
    char first[64] = "", fused[96] = "";
    if (launches_of(plan, true))
        snprintf(first, sizeof first, ", %d more in the first", launches_of(plan, true));
    if (into) snprintf(fused, sizeof fused, "; %d nodes of the graph are done as %d", nodes, into);
    screen_say(stdout, "launches: %d a step%s%s", launches_of(plan, false), first, fused);
}

/** How many nodes were chosen in which way, on one line. */
static void print_choices(const clv_plan *plan) {
    static const char *const ways[] = {"pinned", "tuned", "ranked"};
    int counts[3] = {0};
    for (int i = 0; i < clv_plan_info_get(plan).n_nodes; i++)
        for (int w = 0; w < 3; w++) counts[w] += !strcmp(clv_plan_node_get(plan, i).chosen, ways[w]);
    screen_say(stdout, "variants: %d pinned, %d tuned (by measured time), %d ranked", counts[0], counts[1],
               counts[2]);
}

static int64_t depth_of(const cli_args *args) {
    return args->depth ? args->depth : -1;
}

static int print_json(const plan_job *job, clv_plan *plan, clv_plan *plain, const plan_rows *rows,
                      const plan_tree *tree, int64_t batch, const plan_advice *advice,
                      const cli_profile *profile) {
    json_t *layers = json_array();
    for (int i = 0; i < rows->n; i++) {
        const plan_row *row = &rows->items[i];
        json_array_append_new(
            layers,
            json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:I, s:I, s:f}", "name", row->name, "op", row->op,
                      "variant", row->variant ? row->variant : "", "chosen", row->chosen ? row->chosen : "",
                      "device", row->device, "output_shape", shape_json(&row->output_shape), "parameters",
                      (json_int_t)row->parameters, "bytes", (json_int_t)row->bytes, "flops", row->flops));
    }
    return cli_print_json(json_pack(
        "{s:s, s:I, s:b, s:o, s:o, s:o, s:o, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:b, s:o, "
        "s:o, s:o}",
        "model", job->model->name, "batch", (json_int_t)batch, "train", job->session->args->train, "layers",
        layers, "modules", plan_tree_json(tree, depth_of(job->session->args)), "choices", choices_json(plan),
        "fused", fused_json(plan), "launches", launches_of(plan, false), "launches_once",
        launches_of(plan, true), "placement", cli_place_json(job->choice), "devices", devices_json(plan),
        "transfers", transfers_json(plan), "parts", cli_parts_json(plan), "recomputed",
        cli_recomputed_json(plan), "mixed", cli_precision_json(job->session->args, plan, plain), "without",
        cli_without_json(plan, plain), "largest_batch", (json_int_t)advice->largest, "fits", advice->fits,
        "advice", advice_json(advice), "least", cli_profile_plan_json(profile, plan), "ranks",
        cli_ranks_json(&job->ranks)));
}

/** What the devices hold at most, by what it is for. */
static void print_memory(clv_plan *plan) {
    const int n = clv_plan_info_get(plan).n_devices;
    const table_column columns[] = {{"memory", TABLE_TEXT, TABLE_KEEP, 0, NULL},
                                    {"on", TABLE_TEXT, 90, 0, NULL},
                                    {"held", TABLE_NUMBER, TABLE_KEEP, 0, NULL},
                                    {"share", TABLE_NUMBER, 95, 0, NULL},
                                    {"bytes", TABLE_NUMBER, 80, 0, NULL}};
    table *t = table_create(columns, sizeof columns / sizeof *columns);
    for (int d = 0; d < n; d++) {
        clv_plan_memory memory = clv_plans_memory(&plan, 1, clv_plan_device_get(plan, d));
        const char *device = clv_device_info_get(memory.device)->name;
        for (int i = 0; i <= CLV_CATEGORIES; i++) {
            const bool peak = i == CLV_CATEGORIES;
            uint64_t bytes = peak ? memory.predicted_peak_bytes : memory.category[i];
            if (!bytes) continue;
            table_add(t, "%s", peak ? "peak" : clv_category_name((clv_category)i));
            table_add(t, "%s", device);
            table_add(t, "%s", cli_bytes(bytes));
            table_add(t, "%.1f %%", 100 * (double)bytes / (double)memory.predicted_peak_bytes);
            table_add(t, "%" PRIu64, bytes);
        }
    }
    table_print(t, stdout);
}

/** The sums, in words. */
static void print_totals(const plan_total *all, bool train) {
    screen_say(stdout, "parameters: %s, of which %s trainable and %s frozen%s%s%s",
               plan_count(all->parameters), plan_count(all->parameters - all->frozen),
               plan_count(all->frozen), all->buffers ? "; " : "",
               all->buffers ? plan_count(all->buffers) : "", all->buffers ? " in buffers" : "");
    screen_say(stdout, "work: %s a %s", plan_flops(all->flops), train ? "step" : "forward pass");
}

static int print_table(const plan_job *job, clv_plan *plan, clv_plan *plain, const plan_tree *tree,
                       int64_t batch, const plan_advice *advice, const cli_profile *profile) {
    const cli_args *args = job->session->args;
    char devices[256] = "";
    for (int i = 0; i < clv_plan_info_get(plan).n_devices; i++)
        snprintf(devices + strlen(devices), sizeof devices - strlen(devices), "%s %s", i ? " and" : "",
                 clv_device_info_get(clv_plan_device_get(plan, i))->name);
    screen_say(stdout, "%s of '%s', batch %" PRId64 ", on%s",
               args->train ? "a training step" : "a forward pass", job->model->name, batch, devices);
    putchar('\n');
    plan_tree_print(stdout, tree, depth_of(args));
    screen_say(
        stdout,
        "bytes: all that a layer makes and keeps, and its largest workspace. What does not live at the same "
        "time shares memory, so less is held:");
    putchar('\n');
    print_memory(plan);
    putchar('\n');
    print_totals(&tree->modules[0].all, args->train);
    for (int i = 0; i < clv_plan_info_get(plan).n_transfers; i++) {
        clv_plan_transfer transfer = clv_plan_transfer_get(plan, i);
        screen_say(stdout, "%s goes from %s to %s, %s a step%s", transfer.tensor,
                   clv_device_info_get(transfer.from)->name, clv_device_info_get(transfer.to)->name,
                   cli_bytes(transfer.bytes), transfer.shared ? ", used where it is" : "");
    }
    for (int i = 0; i < clv_plan_info_get(plan).n_devices; i++) {
        const clv_device *device = clv_plan_device_get(plan, i);
        const double seconds = clv_plan_device_info_get(plan, device).least_seconds;
        if (seconds > 0)
            screen_say(stdout, "time on %s: %.3g ms a step at least, by the maker's figures%s",
                       clv_device_info_get(device)->label, 1e3 * seconds,
                       clv_device_info_get(device)->peak_flops > 0 ? "" : " for memory alone");
    }
    print_choices(plan);
    print_fused(plan);
    if (job->ranks.n) cli_ranks_print(&job->ranks);
    cli_parts_print(stdout, plan);
    cli_without_print(stdout, args, plan, plain, false);
    cli_recomputed_print(stdout, args, plan);
    printf("largest batch that fits: %" PRId64 "\n", advice->largest);
    if (!advice->fits)
        screen_say(stdout, "this one does not fit: %s%s%s", advice->reason, *advice->text ? "; " : "",
                   advice->text);
    cli_profile_plan_print(stdout, profile, plan);
    return cli_finish_output();
}

/** CxHxW, each at least 1. */
static bool read_size(const char *text, clv_shape *out) {
    *out = (clv_shape){.rank = 3};
    for (int i = 0; i < 3; i++) {
        char *end;
        errno = 0;
        out->dims[i] = *text >= '0' && *text <= '9' ? strtoll(text, &end, 10) : 0;
        if (out->dims[i] < 1 || errno || *end != (i < 2 ? 'x' : 0)) return false;
        text = end + 1;
    }
    return true;
}

/** Is it a file of weights in the place of the model? Prints which command plans that, and returns
 *  EXIT_USAGE, if so. */
static int check_weights(const cli_args *args) {
    clv_runtime *runtime = NULL;
    clv_weights_info *told = NULL;
    const clv_runtime_config config = {.no_opencl = true, .visible_devices = "", .partition = ""};
    const char *path = args->n_words ? args->words[0] : NULL;
    char size[80] = "", classes[40] = "";
    int code = EXIT_DONE;
    if (!path || clv_model_find(path) || clv_runtime_create(&config, &runtime) != CLV_OK) return EXIT_DONE;
    if (clv_weights_info_read(runtime, path, &told) == CLV_OK && told->model && clv_model_find(told->model)) {
        const int64_t *input = told->input;
        if (told->classes) snprintf(classes, sizeof classes, " --classes %" PRId64, told->classes);
        if (input[2] && !input[3])
            snprintf(size, sizeof size, " --input-size %" PRId64 "x%" PRId64 "x%" PRId64, input[0], input[1],
                     input[2]);
        code = cli_fail(EXIT_USAGE,
                        "'%s' is a file, and a model's name is wanted: `cleave plan %s%s%s` plans %s", path,
                        told->model, *size ? classes : "", size,
                        *size ? "what it holds weights of" : "that model, as large as it is by default");
    }
    clv_free(told);
    clv_runtime_destroy(runtime);
    return code;
}

/** A file may fix its first dimension, as exporters do; it is a batch all the same. */
static void tell_batch(const cli_args *args, const clv_onnx *onnx, int64_t batch) {
    const int64_t own = clv_onnx_info_get(onnx).batch;
    if (args->quiet || args->batch || !own || own == batch) return;
    fprintf(stderr,
            "'%s' has %" PRId64
            " as the first dimension of its inputs, which is the batch and may be any: %" PRId64
            " is planned, --batch %" PRId64 " plans the file's own\n",
            args->words[0], own, batch, own);
}

static int plan_and_print(plan_job *job, int64_t batch) {
    plan_rows rows = {0};
    plan_tree tree = {0};
    plan_made planned = {0}, plain = {0};
    cli_profile profile;
    int code = cli_ranks_name(job->session);
    if (code == EXIT_DONE) code = choose_devices(job, batch);
    if (code != EXIT_DONE) return code;
    if (job->session->args->n_ranks)
        code = cli_ranks_plan(job->session, training_of(job, batch), plan_config(job), batch, &job->ranks);
    if (code != EXIT_DONE) return code;
    clv_status status = make_plan(job, batch, &planned);
    if (status == CLV_OK) status = make_plain_plan(job, batch, &plain);
    if (status != CLV_OK) {
        code = cli_fail_made(job->session->runtime, job->session->args, status);
    } else if (!cli_plan_rows(planned.plan, &rows) || !plan_tree_make(planned.plan, &rows, &tree)) {
        code = cli_fail(EXIT_FAILED, "out of host memory for the table");
    } else if ((code = cli_profile_plan(job->session, planned.plan, &profile)) == EXIT_DONE) {
        plan_advice advice;
        cli_tell_idle(job->session, planned.plan);
        status = advise(job, planned.plan, batch, &advice);
        if (status != CLV_OK)
            code = cli_fail_status(job->session->runtime, status);
        else if (job->session->args->json)
            code = print_json(job, planned.plan, plain.plan, &rows, &tree, batch, &advice, &profile);
        else
            code = print_table(job, planned.plan, plain.plan, &tree, batch, &advice, &profile);
    }
    free(tree.modules);
    free(rows.items);
    planned_destroy(&planned);
    planned_destroy(&plain);
    return code;
}

int cmd_plan(const cli_args *args) {
    cli_args named = *args;
    int code = cli_load_own(args);
    if (code == EXIT_DONE) code = cli_load_onnx(&named);
    if (code != EXIT_DONE) return code;
    if ((code = check_weights(args)) != EXIT_DONE) return code;
    const clv_model *model = cli_model(args->n_words ? args->words[0] : NULL);
    if (!model) return EXIT_USAGE;
    for (int i = 0; i < OPTIONS && !args->train; i++)
        if (option_rows[i].with_train && option_is_given(&option_rows[i], args))
            return cli_fail(EXIT_USAGE, "--%s is about what is trained: it needs --train",
                            option_rows[i].name);
    if (args->recompute && !args->train)
        return cli_fail(EXIT_USAGE, "--recompute is about the backward pass: it needs --train");
    clv_shape size;
    if (args->input_size && !read_size(args->input_size, &size))
        return cli_fail(EXIT_USAGE, "--input-size wants channels, height and width, as in 3x64x64, not '%s'",
                        args->input_size);
    if (args->input_size && model->dtype == CLV_DTYPE_I32)
        return cli_fail(EXIT_USAGE, "--input-size is for models of images, and %s is a model of texts",
                        model->name);
    clv_model sized = cli_model_for(args, model);
    if (args->input_size) sized = clv_model_for(&sized, size.dims[0], size.dims[1], size.dims[2], 0);
    model = &sized;
    cli_placement placement;
    double link;
    code = cli_read_link(args, &link);
    if (code == EXIT_DONE) code = cli_check_optimizer(args);
    if (code == EXIT_DONE) code = cli_read_placement(args, &placement);
    if (code != EXIT_DONE) return code;
    cli_session session;
    cli_start_early(args, true, &session);
    code = cli_start(&session);
    if (code != EXIT_DONE) return code;
    plan_job job = {.session = &session, .model = model, .placement = placement.placement};
    const int64_t batch = args->batch ? args->batch : 64;
    cli_recipe(args, model, &job.recipe);
    tell_batch(args, named.onnx, batch);
    code = plan_and_print(&job, batch);
    clv_free(job.choice);
    cli_ranks_planned_end(&job.ranks);
    cli_stop(&session);
    return code;
}
