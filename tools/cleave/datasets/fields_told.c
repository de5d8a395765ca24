// SPDX-License-Identifier: Apache-2.0
// What weights tell of named arrays: inputs and targets by name, as JSON, written and read. What is read is a
// stranger's: each value is checked.
#include "datasets/datasets.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_CLASSES = 1 << 24 }; // as datasets have it

static json_t *ports_json(const cli_fields *fields, int first, int n) {
    json_t *list = json_array();
    for (int i = first; i < first + n; i++) {
        const clv_port *port = &fields->port[i];
        json_t *dims = json_array();
        for (int d = 0; d < CLV_MAX_RANK - 1 && port->dims[d]; d++)
            json_array_append_new(dims, json_integer((json_int_t)port->dims[d]));
        json_t *one = json_pack("{s:s, s:o}", "name", fields->name[i], "dims", dims);
        if (port->classes) json_object_set_new(one, "classes", json_integer((json_int_t)port->classes));
        const clv_train_loss *loss = first ? &fields->loss[i - first] : NULL;
        if (loss && loss->loss) json_object_set_new(one, "loss", json_string(loss->loss->name));
        if (loss && loss->weight > 0) json_object_set_new(one, "weight", json_real(loss->weight));
        if (loss && fields->scale[i - first] > 0) {
            json_object_set_new(one, "mean", json_real(fields->mean[i - first]));
            json_object_set_new(one, "scale", json_real(fields->scale[i - first]));
        }
        json_array_append_new(list, one);
    }
    return list;
}

char *cli_fields_record(const cli_fields *fields) {
    json_t *root = json_pack("{s:o, s:o}", "inputs", ports_json(fields, 0, fields->n_inputs), "targets",
                             ports_json(fields, fields->n_inputs, fields->n_targets));
    char *text = NULL;
    size_t n;
    FILE *memory = root ? open_memstream(&text, &n) : NULL;
    bool good = memory && json_dumpf(root, memory, JSON_COMPACT | JSON_PRESERVE_ORDER) == 0;
    if (memory && fclose(memory) != 0) good = false;
    json_decref(root);
    if (good) return text;
    free(text);
    return NULL;
}

static bool read_port(const json_t *one, bool target, cli_fields *out) {
    const int i = out->n_inputs + out->n_targets;
    const char *name = json_string_value(json_object_get(one, "name")),
               *loss = json_string_value(json_object_get(one, "loss"));
    const json_t *dims = json_object_get(one, "dims");
    clv_port *port = &out->port[i];
    if (!name || !*name || strlen(name) >= sizeof out->name[i] || json_array_size(dims) >= CLV_MAX_RANK - 1)
        return false;
    if ((target ? out->n_targets : out->n_inputs) == CLV_MAX_PORTS) return false;
    snprintf(out->name[i], sizeof out->name[i], "%s", name);
    *port = (clv_port){.name = out->name[i],
                       .classes = target ? json_integer_value(json_object_get(one, "classes")) : 0};
    for (size_t d = 0; d < json_array_size(dims); d++) {
        port->dims[d] = json_integer_value(json_array_get(dims, d));
        if (port->dims[d] < 1 || port->dims[d] > INT32_MAX) return false;
    }
    if (port->classes < 0 || port->classes > MOST_CLASSES) return false;
    int64_t numbers = port->classes ? port->classes : 1; // of a sample: a tensor has 2^31 at most
    for (int d = 0; d < CLV_MAX_RANK - 1 && port->dims[d]; d++)
        if ((numbers *= port->dims[d]) > INT32_MAX) return false;
    if (!target) return out->n_inputs++, true;
    const json_t *weight = json_object_get(one, "weight");
    if (!cli_field_scale(one, &out->mean[out->n_targets], &out->scale[out->n_targets])) return false;
    out->loss[out->n_targets++] =
        (clv_train_loss){.target = out->name[i],
                         .loss = loss ? clv_loss_find(loss) : NULL,
                         .weight = json_is_number(weight) ? json_number_value(weight) : 0};
    return true;
}

bool cli_parse_fields(const char *text, cli_fields *out) {
    json_t *root = text ? cli_json_read(text, strlen(text)) : NULL;
    const json_t *inputs = json_object_get(root, "inputs"), *targets = json_object_get(root, "targets");
    bool good = json_array_size(inputs) && json_array_size(targets);
    *out = (cli_fields){.n_inputs = 0};
    for (size_t i = 0; good && i < json_array_size(inputs); i++)
        good = read_port(json_array_get(inputs, i), false, out);
    for (size_t i = 0; good && i < json_array_size(targets); i++)
        good = read_port(json_array_get(targets, i), true, out);
    json_decref(root);
    return good;
}

bool cli_told_fields(clv_runtime *runtime, const char *path, cli_fields *out) {
    clv_archive *archive = NULL;
    const bool good = clv_safetensors_read(runtime, path, &archive) == CLV_OK &&
                      cli_parse_fields(clv_archive_text(archive, "cleave.fields"), out);
    clv_archive_destroy(archive);
    return good;
}
