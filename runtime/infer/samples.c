// SPDX-License-Identifier: Apache-2.0
// Samples that are bytes: they are fed so, and the first op of the model's graph makes numbers of them.
#include <string.h>

#include "cleave/ops.h"
#include "infer/samples.h"

/** Nobody says how such are normalised: any numbers take as much memory. */
static clv__norm scale_to_plan(const clv_port *port) {
    const bool picture = port->dtype == CLV_DTYPE_F32 && port->dims[2] && !port->dims[3];
    return (clv__norm){.channels = picture, .std = {1}};
}

clv_status clv__bytes_find(clv_runtime *runtime, const clv_train_config *config, clv__bytes *out) {
    clv__match match = {0};
    *out = (clv__bytes){.model = config->model};
    if (config->mixup > 0) return CLV_OK;
    if (config->train && config->train->ports)
        CLV_TRY(clv__match_data(runtime, config->model, config->train, &match));
    for (int i = 0; i < clv_model_port_count(config->model, CLV_PORT_INPUT); i++) {
        const clv_port port = clv_model_port_get(config->model, CLV_PORT_INPUT, i);
        if (config->train)
            out->scale[i] = clv__dataset_bytes(config->train, match.input[i]);
        else if (config->bytes)
            out->scale[i] = scale_to_plan(&port);
        if (port.dtype != CLV_DTYPE_F32) out->scale[i].channels = 0; // fits.c refuses it
    }
    return CLV_OK;
}

bool clv__bytes_any(const clv__bytes *bytes) {
    bool any = false;
    for (int i = 0; i < CLV_MAX_PORTS; i++) any |= bytes->scale[i].channels > 0;
    return any;
}

void clv__bytes_inputs(clv_graph *graph, const clv__bytes *bytes, int64_t batch, clv_tensor **out) {
    if (!clv__bytes_any(bytes)) {
        clv_model_tensors(graph, bytes->model, CLV_PORT_INPUT, batch, out);
        return;
    }
    for (int i = 0; i < clv_model_port_count(bytes->model, CLV_PORT_INPUT); i++) {
        const clv_port port = clv_model_port_get(bytes->model, CLV_PORT_INPUT, i);
        out[i] = clv_input(graph, port.name, bytes->scale[i].channels ? CLV_DTYPE_U8 : port.dtype,
                           clv_port_shape(&port, batch));
    }
}

/** A table for each channel of a picture, also where all are normalised alike: a plan is the same then,
 *  whatever the numbers are. A model of rows gets the picture as one. */
static clv_tensor *normalize(clv_tensor *x, const clv__norm *scale) {
    const clv_shape shape = clv_tensor_shape(x);
    const bool picture = shape.rank == 4 && shape.dims[1] <= 3;
    const int channels = picture ? (int)shape.dims[1] : scale->channels;
    float mean[3], std[3];
    for (int c = 0; c < channels; c++) {
        mean[c] = scale->mean[scale->channels == 1 ? 0 : c];
        std[c] = scale->std[scale->channels == 1 ? 0 : c];
    }
    if (picture || channels == 1) return clv_nn_normalize(x, mean, std, channels);
    const clv_shape rows = CLV_SHAPE(shape.dims[0], channels, -1);
    return clv_reshape(clv_nn_normalize(clv_reshape(x, rows), mean, std, channels), shape);
}

void clv__bytes_normalize(const clv__bytes *bytes, clv_tensor *const *fed, clv_tensor **out) {
    for (int i = 0; i < clv_model_port_count(bytes->model, CLV_PORT_INPUT); i++)
        out[i] = bytes->scale[i].channels ? normalize(fed[i], &bytes->scale[i]) : fed[i];
}

clv_status clv__bytes_check(clv__error *error, const clv__bytes *bytes, const clv_dataset *dataset,
                            const clv__match *match) {
    for (int i = 0; i < clv_model_port_count(bytes->model, CLV_PORT_INPUT); i++) {
        const clv__norm *planned = &bytes->scale[i], is = clv__dataset_bytes(dataset, match->input[i]);
        if (!planned->channels) continue;
        bool same = planned->channels == is.channels;
        for (int c = 0; same && c < is.channels; c++)
            same = planned->mean[c] == is.mean[c] && planned->std[c] == is.std[c];
        if (!same)
            CLV_FAIL(error, CLV_E_VALUE,
                     "input '%s' of model '%s' was planned for bytes, and this dataset %s; give it as "
                     "`samples` of "
                     "clv_predictor_config",
                     clv_model_port_get(bytes->model, CLV_PORT_INPUT, i).name, bytes->model->name,
                     is.channels ? "normalises them in another way" : "has numbers");
    }
    return CLV_OK;
}
