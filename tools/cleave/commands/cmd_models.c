// SPDX-License-Identifier: Apache-2.0
// cleave models: what models there are, and what each needs.
#include "cleave/custom_op.h"
#include "models/models.h"
#include "options/options.h"
#include "table.h"

/** What a model needs, for a batch. */
typedef struct model_needs {
    int64_t parameters;
    double flops;      // of a sample, forwards
    uint64_t bytes[2]; // at most, predicting and training
} model_needs;

static clv_status plan_pass(const cli_session *session, const clv_model *model, int64_t batch, clv_pass pass,
                            model_needs *needs) {
    clv_graph *graph = NULL;
    clv_plan *plan = NULL;
    const clv_train_config config = {.model = model, .batch = batch, .device = session->device, .lr = 0.1};
    const clv_plan_config planned = {.device = session->device, .own_session = pass == CLV_PASS_PREDICT};
    clv_status status = clv_pass_graph(session->runtime, &config, pass, batch, &graph);
    if (status == CLV_OK) status = clv_plan_create(graph, &planned, &plan);
    if (status == CLV_OK)
        needs->bytes[pass == CLV_PASS_TRAIN] = clv_plans_memory(&plan, 1, NULL).predicted_peak_bytes;
    if (status == CLV_OK && pass == CLV_PASS_PREDICT) {
        for (int i = 0; i < clv_graph_info_get(graph).n_parameters; i++) {
            const clv_shape shape = clv_tensor_shape(clv_parameter_get(graph, i));
            needs->parameters += clv_shape_numel(&shape);
        }
        for (int i = 0; i < clv_plan_info_get(plan).n_nodes; i++)
            needs->flops += clv_plan_node_get(plan, i).flops / (double)batch;
    }
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    return status;
}

static clv_status look_at(const cli_session *session, const clv_model *model, int64_t batch,
                          model_needs *needs) {
    *needs = (model_needs){0};
    clv_status status = plan_pass(session, model, batch, CLV_PASS_PREDICT, needs);
#ifndef CLEAVE_INFERENCE
    if (status == CLV_OK && plan_pass(session, model, batch, CLV_PASS_TRAIN, needs) != CLV_OK)
        needs->bytes[1] = 0; // a batch norm of one value for each channel trains on batches of two and more
#endif
    return status;
}

static void name_input(const clv_model *model, char *text, size_t bytes) {
    const clv_port port = clv_model_port_get(model, CLV_PORT_INPUT, 0);
    size_t used = 0;
    for (int i = 0; i < CLV_MAX_RANK - 1 && port.dims[i]; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%lld", i ? "x" : "", (long long)port.dims[i]);
}

static json_t *model_json(const clv_model *model, const model_needs *needs) {
    char input[96] = "";
    name_input(model, input, sizeof input);
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:I, s:o}", "name", model->name, "text", model->text,
                     "input", input, "classes",
                     (json_int_t)clv_model_port_get(model, CLV_PORT_TARGET, 0).classes, "parameters",
                     (json_int_t)needs->parameters, "flops", cli_real(needs->flops), "predicting_bytes",
                     (json_int_t)needs->bytes[0], "training_bytes",
                     needs->bytes[1] ? json_integer((json_int_t)needs->bytes[1]) : json_null());
}

static void add_row(table *t, const clv_model *model, const model_needs *needs) {
    char input[96] = "";
    name_input(model, input, sizeof input);
    table_add(t, "%s", model->name);
    table_add(t, "%s", input);
    table_add(t, "%.2f M", (double)needs->parameters / 1e6);
    table_add(t, "%.4g G", needs->flops / 1e9);
    table_add(t, "%s", cli_bytes(needs->bytes[0]));
    table_add(t, "%s", needs->bytes[1] ? cli_bytes(needs->bytes[1]) : "-");
    table_add(t, "%s", model->text);
}

static int list(const cli_session *session, int64_t batch) {
    static const table_column columns[] = {
        {"model", TABLE_TEXT, TABLE_KEEP, 0, NULL},       {"input", TABLE_TEXT, 70, 0, NULL},
        {"parameters", TABLE_NUMBER, 90, 0, NULL},        {"FLOP", TABLE_NUMBER, 80, 0, NULL},
        {"predicting", TABLE_NUMBER, 50, 0, NULL},        {"training", TABLE_NUMBER, 60, 0, NULL},
        {"what it is made of", TABLE_TEXT, 40, 16, NULL},
    };
    const cli_args *args = session->args;
    json_t *all = json_array();
    table *t = table_create(columns, sizeof columns / sizeof *columns);
    int code = EXIT_DONE;
    for (int i = 0; code == EXIT_DONE && clv_model_get(i); i++) {
        model_needs needs;
        const clv_status status = look_at(session, clv_model_get(i), batch, &needs);
        if (status != CLV_OK) code = cli_fail_status(session->runtime, status);
        json_array_append_new(all, model_json(clv_model_get(i), &needs));
        add_row(t, clv_model_get(i), &needs);
    }
    const char *device = clv_device_info_get(session->device)->name;
    if (code != EXIT_DONE || args->json) table_destroy(t);
    if (code == EXIT_DONE && args->json)
        return cli_print_json(
            json_pack("{s:s, s:I, s:o}", "device", device, "batch", (json_int_t)batch, "models", all));
    json_decref(all);
    if (code != EXIT_DONE) return code;
    table_print(t, stdout);
    screen_say(stdout,
               "FLOP: one sample, forward. Memory: the most that a batch of %lld holds on %s, with SGD; "
               "--batch and --device set others. `cleave plan MODEL` has each layer",
               (long long)batch, device);
    return cli_finish_output();
}

int cmd_models(const cli_args *given) {
    cli_args args = *given;
    cli_session session;
    if (!args.device) args.device = "host";
    cli_start_early(&args, true, &session);
    int code = cli_start(&session);
    if (code != EXIT_DONE) return code;
    code = list(&session, args.batch ? args.batch : 1);
    cli_stop(&session);
    return code;
}
