// SPDX-License-Identifier: Apache-2.0
// A training over ranks: which settings it can have, and whether all ranks have the same. What a step does is
// in step.c, what is exchanged in exec/exchange.c.
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "data/rows.h"
#include "device/device.h"
#include "exec/ranks.h"
#include "exec/session.h"
#include "infer/losses.h"
#include "train/trainer.h"

bool clv__trainer_writes(const clv_trainer *trainer) {
    return !trainer->config->ranks || trainer->config->ranks->place.rank == 0;
}

bool clv__trainer_shares_out(const clv_train_config *config) {
    return config->ranks && !config->ranks->layered && config->ranks->place.size > 1;
}

/** Does a name say of which rank the device is: `1:gpu:0`? */
static bool names_rank(const char *device) {
    const size_t space = strspn(device, " "), digits = strspn(device + space, "0123456789");
    const char *colon = device + space + digits;
    return digits > 0 && *colon == ':' && isalpha((unsigned char)colon[1]);
}

void clv__ranks_look(const clv_train_config *config) {
    bool any = false;
    for (const char *at = config->placement.place; at && (at = strchr(at, '=')) != NULL; at++)
        any |= names_rank(at + 1);
    if (config->ranks) config->ranks->layered = any;
}

clv_status clv__ranks_place(clv_trainer *trainer, clv_train_config *config) {
    clv__text text = {0};
    if (!config->ranks || !config->ranks->layered) return CLV_OK;
    for (const char *at = config->placement.place; *at; at++) {
        clv__text_add(&text, "%c", *at);
        if (*at == '=' && !names_rank(at + 1)) clv__text_add(&text, "0:");
    }
    trainer->ranks_place = text.failed ? NULL : clv__strdup(clv__text_get(&text));
    clv__text_reset(&text);
    if (!trainer->ranks_place)
        CLV_FAIL(clv__runtime_error_of(trainer->runtime), CLV_E_HOST_MEMORY, "no memory for a trainer");
    config->placement.place = trainer->ranks_place;
    return CLV_OK;
}

/** Layers on devices of several ranks: each step is of one batch, so nothing of it is shared out. */
static clv_status check_layered(clv__error *error, const clv_train_config *config) {
    if (config->placement.n_replicas)
        CLV_FAIL(
            error, CLV_E_UNSUPPORTED,
            "layers on devices of several ranks ('%.100s') do not go together with replicas: leave one of "
            "them out",
            config->placement.place);
    if (config->gradients)
        CLV_FAIL(error, CLV_E_UNSUPPORTED,
                 "rank 0 writes the file of gradients, and has none of layers on devices of other ranks");
    return CLV_OK;
}

clv_status clv__ranks_gather(const clv_trainer *trainer) {
    const clv_train_config *config = trainer->config;
    return config->ranks && config->ranks->layered ? clv__session_gather(trainer->session) : CLV_OK;
}

/** Can those that are left go on when one of them is lost? */
static clv_status check_survival(clv__error *error, const clv_train_config *config) {
    const struct clv_ranks *ranks = config->ranks;
    if (config->on_rank_failure == CLV_RANK_FAILURE_STOP) return CLV_OK;
    if (!config->checkpoint)
        CLV_FAIL(error, CLV_E_VALUE,
                 "going on without a lost rank needs a checkpoint (clv_train_config.checkpoint)");
    if (!ranks->place.survives)
        CLV_FAIL(
            error, CLV_E_UNSUPPORTED,
            "here all ranks end when one of them is lost: start them with Open MPI's mpirun "
            "--enable-recovery, or "
            "leave clv_train_config.on_rank_failure out and start again with fewer, from the checkpoint");
    if (ranks->layered)
        CLV_FAIL(error, CLV_E_UNSUPPORTED,
                 "training cannot go on without a rank that has layers: leave "
                 "clv_train_config.on_rank_failure out");
    if (config->rank_shares)
        CLV_FAIL(error, CLV_E_UNSUPPORTED,
                 "the shares of fewer ranks are not known: leave shares out, or have them measured");
    if (ranks->place.size > CLV__MOST_LEFT)
        CLV_FAIL(error, CLV_E_UNSUPPORTED,
                 "training can go on without a rank where there are at most %d, here are %d", CLV__MOST_LEFT,
                 ranks->place.size);
    return CLV_OK;
}

clv_status clv__ranks_check(clv_runtime *runtime, const clv_train_config *config) {
    clv__error *error = clv__runtime_error_of(runtime);
    if (!config->ranks && (config->sync_batch_norm || config->bf16_compress || config->on_rank_failure))
        CLV_FAIL(error, CLV_E_VALUE, "%s needs several ranks, and there are none (clv_train_config.ranks)",
                 config->sync_batch_norm ? "clv_train_config.sync_batch_norm"
                 : config->bf16_compress ? "clv_train_config.bf16_compress"
                                         : "clv_train_config.on_rank_failure");
    if (!config->ranks) return CLV_OK;
    const int size = config->ranks->place.size;
    clv__target_loss losses[CLV_MAX_PORTS];
    if (!config->ranks->engine)
        CLV_FAIL(error, CLV_E_STATE,
                 "these ranks are for planning alone (clv_ranks_config.planned): they cannot train");
    for (int i = 0; i < config->placement.n_devices; i++)
        if (names_rank(config->placement.devices[i]))
            CLV_FAIL(error, CLV_E_UNSUPPORTED,
                     "the speed of %.40s was not measured, since it is another rank's: say where layers are, "
                     "--place 'layer4*=1:gpu:0'",
                     config->placement.devices[i]);
    clv__ranks_look(config);
    CLV_TRY(check_survival(error, config));
    if (config->ranks->layered) return check_layered(error, config);
    if (config->sync_batch_norm && (config->placement.n_replicas || config->micro_batches > 1))
        CLV_FAIL(error, CLV_E_UNSUPPORTED,
                 "sync_batch_norm takes the statistics of one part of the batch on each rank: it does not go "
                 "together with %s",
                 config->placement.n_replicas ? "replicas" : "micro-batches");
    if (config->sync_batch_norm && config->recompute)
        CLV_FAIL(error, CLV_E_UNSUPPORTED,
                 "with sync_batch_norm what is computed again would be exchanged again: leave recompute out");
    if (config->batch < size)
        CLV_FAIL(error, CLV_E_VALUE, "a batch of %" PRId64 " samples for %d ranks, each needs at least one",
                 config->batch, size);
    if (config->mixup > 0)
        CLV_FAIL(error, CLV_E_UNSUPPORTED, "mixup mixes the samples of a whole batch: no rank has them all");
    if (config->on_device_failure != CLV_DEVICE_FAILURE_STOP)
        CLV_FAIL(error, CLV_E_UNSUPPORTED,
                 "ranks cannot go on without a device of one of them: start again "
                 "with the ranks that are left, from the checkpoint");
    if (config->placement.measure_shares && config->placement.n_replicas && !config->placement.shares)
        CLV_FAIL(error, CLV_E_UNSUPPORTED,
                 "shares of replicas that are measured differ from rank to rank: give them, or equal ones");
    CLV_TRY(clv__losses_find(runtime, config, losses));
    for (int i = 0; i < clv_model_port_count(config->model, CLV_PORT_TARGET); i++)
        if (losses[i].class_weights || losses[i].ignores)
            CLV_FAIL(error, CLV_E_UNSUPPORTED,
                     "%s: what a label counts depends on the whole batch, which no rank has",
                     losses[i].class_weights ? "weights of classes" : "ignored labels");
    return CLV_OK;
}

static clv_status take_buffer(clv_trainer *trainer, const char *name) {
    clv__error *error = clv__runtime_error_of(trainer->runtime);
    const int index = clv_session_find(trainer->session, name);
    const size_t bytes = clv_session_get(trainer->session, index).bytes;
    struct clv_ranks *ranks = trainer->config->ranks;
    void *data = clv__alloc(1, bytes);
    if (!data) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for '%s' of rank 0", name);
    clv_status status = CLV_OK;
    if (ranks->place.rank == 0) status = clv_session_read(trainer->session, index, data, bytes);
    if (status == CLV_OK) status = clv__ranks_agree(ranks, data, bytes);
    if (status == CLV_OK && ranks->place.rank)
        status = clv_session_write(trainer->session, index, data, bytes);
    if (status == CLV_E_RANK_LOST)
        clv__leave(data); // a message may come still
    else
        free(data);
    return status;
}

clv_status clv__ranks_take_buffers(clv_trainer *trainer) {
    const clv_graph *graph = trainer->step[trainer->step[CLV__FULL].graph ? CLV__FULL : CLV__LAST].graph;
    for (size_t i = 0; i < graph->n_tensors && trainer->config->ranks->place.size > 1; i++) {
        const clv_tensor *tensor = graph->tensors[i];
        if (tensor->kind == CLV__PERSISTENT && tensor->category == CLV_PARAMETERS && !tensor->trainable &&
            !tensor->values)
            CLV_TRY(take_buffer(trainer, tensor->name));
    }
    return CLV_OK;
}

clv_status clv__ranks_told(clv_runtime *runtime, struct clv_ranks *ranks, clv_status status) {
    char said[CLV__ERROR_BYTES];
    clv__error *error = clv__runtime_error_of(runtime);
    clv__error_read(error, said);
    clv_ranks_fail(ranks, said);
    clv__error_set(error, status, "%s", said);
    return status;
}

/** What must be the same on all ranks, as a text that a sentence can show. */
static void describe(const clv_train_config *config, const clv_trainer *trainer, char *text, size_t bytes) {
    uint64_t data = 0, tested = 0;
    if (!clv__dataset_digest(config->train, &data)) data = 0;
    if (config->test && !clv__dataset_digest(config->test, &tested)) tested = 0;
    const clv_graph *graph =
        (trainer->step[CLV__FULL].graph ? &trainer->step[CLV__FULL] : &trainer->step[CLV__LAST])->graph;
    uint64_t shapes = 0;
    for (size_t i = 0; i < graph->n_tensors; i++) {
        const clv_tensor *tensor = graph->tensors[i];
        if (!tensor->trainable) continue;
        shapes = clv__digest_text(shapes, tensor->name);
        shapes = clv__digest_number(shapes, clv_tensor_numel(tensor));
    }
    clv__format(text, bytes,
                "model %.100s (%016" PRIx64 "), data %016" PRIx64 ", tests %016" PRIx64 ", batch %" PRId64
                ", steps %" PRId64 ", seed %" PRIu64
                ", lr %.9g, optimizer %d, precision %d, micro-batches %" PRId64
                ", bf16_compress %d, sync_batch_norm %d, epoch %" PRId64 ", step %" PRId64,
                config->model->name, shapes, data, tested, config->batch, trainer->steps, config->seed,
                config->lr, (int)config->optimizer.kind, (int)config->precision, config->micro_batches,
                (int)config->bf16_compress, (int)config->sync_batch_norm, trainer->position.epoch,
                trainer->position.step);
}

/** The first line of `own` that is not in its place in `other`, without its end, into `line`. */
static void first_unlike(const char *own, const char *other, char *line, size_t bytes) {
    const char *begin = own;
    for (; *own && *own == *other; own++, other++)
        if (*own == '\n') begin = own + 1;
    snprintf(line, bytes, "%.*s", (int)strcspn(begin, "\n"), begin);
}

/** Settings that a checkpoint has, of which a rank may have others unseen. */
static clv_status compare_settings(const clv_train_config *config, const clv_trainer *trainer,
                                   const char *own) {
    clv__error *error = clv__runtime_error_of(trainer->runtime);
    int64_t length = (int64_t)strlen(own);
    const int64_t bytes = length + 1;
    CLV_TRY(clv__ranks_agree(config->ranks, &length, sizeof length));
    char *first = clv__alloc(1, (size_t)length + 1);
    if (!first) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for rank 0's settings");
    if (config->ranks->place.rank == 0) memcpy(first, own, (size_t)bytes);
    clv_status status = clv__ranks_agree(config->ranks, first, (size_t)length + 1);
    char here[120], there[120];
    if (status == CLV_OK && strcmp(own, first)) {
        first_unlike(own, first, here, sizeof here);
        first_unlike(first, own, there, sizeof there);
        status = CLV_E_VALUE;
        clv__error_set(error, status, "rank %d trains with other settings than rank 0: %s; there %s",
                       config->ranks->place.rank, here, there);
    }
    if (status == CLV_E_RANK_LOST)
        clv__leave(first); // a message may come still
    else
        free(first);
    return status;
}

clv_status clv__ranks_compare(const clv_train_config *config, const clv_trainer *trainer) {
    char own[512] = "", first[512];
    describe(config, trainer, own, sizeof own);
    memcpy(first, own, sizeof first);
    CLV_TRY(clv__ranks_agree(config->ranks, first, sizeof first));
    first[sizeof first - 1] = 0;
    if (strcmp(own, first) == 0) {
        clv__text settings = {0};
        clv__settings_text(config, trainer->runtime, &settings);
        const clv_status status = compare_settings(config, trainer, clv__text_get(&settings));
        clv__text_reset(&settings);
        return status;
    }
    CLV_FAIL(clv__runtime_error_of(trainer->runtime), CLV_E_VALUE,
             "rank %d trains something else than rank 0: %s; there %s", config->ranks->place.rank, own,
             first);
}
