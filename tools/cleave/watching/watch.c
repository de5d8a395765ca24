// SPDX-License-Identifier: Apache-2.0
// Watches a training of this process: after each step it collects what devices and trainer report, writes the
// log's line, and now and then draws the picture. Rates are means of the last second. Nothing here waits for
// a device.
#include "datasets/datasets.h"
#include "training/training.h"
#include "watching/watch.h"

#include "watching/events.h"
#include "watching/presence.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#define WINDOW_SECONDS 1.0 // that rates are taken over
#define DRAW_SECONDS 0.1   // between two pictures on a terminal
#define PRINT_SECONDS 10.0 // between two prints elsewhere

static clv_device *device_of(const watch_eye *watch, int i) {
    return clv_trainer_info_get(watch->trainer).devices[i];
}

/** How many layers of the model a device computes: names of the plan's forward nodes there, each once. */
static int count_layers(const clv_plan *plan, const clv_device *device) {
    int count = 0;
    for (int i = 0; i < clv_plan_info_get(plan).n_nodes; i++) {
        clv_plan_node node = clv_plan_node_get(plan, i);
        bool counts = node.device == device && *node.layer && !strcmp(node.phase, "forward");
        for (int j = 0; counts && j < i; j++) {
            clv_plan_node earlier = clv_plan_node_get(plan, j);
            counts = earlier.device != device || strcmp(earlier.layer, node.layer) != 0;
        }
        count += counts;
    }
    return count;
}

clv_status watch_begin(watch_eye *watch, cli_session *session, const clv_train_config *config,
                       clv_trainer *trainer) {
    watch->session = session;
    watch->config = config;
    watch->trainer = trainer;
    watch->shown = session->args->watch && !session->args->quiet;
    watch_moment *now = &watch->now;
    now->process = getpid();
    now->batch_size = config->batch;
    if (config->ranks) {
        const clv_ranks_info info = clv_ranks_info_get(config->ranks);
        now->rank = info.rank;
        now->ranks = info.size;
    }
    now->test_loss = now->test_accuracy = now->images_per_second = NAN;
    snprintf(now->version, sizeof now->version, "%s", clv_version());
    snprintf(now->model, sizeof now->model, "%s", config->model->name);
    const cli_unit unit = cli_unit_of(session->args, config->model);
    snprintf(now->unit, sizeof now->unit, "%s", unit.name);
    now->unit_each = unit.each;
    for (int i = 0; i < clv_trainer_info_get(trainer).n_devices && i < WATCH_DEVICES; i++) {
        watch_device *device = &now->devices[now->n_devices++];
        const clv_device_info *info = clv_device_info_get(device_of(watch, i));
        *device = (watch_device){.busy = NAN, .share = NAN, .images_per_second = NAN, .layers = -1};
        snprintf(device->name, sizeof device->name, "%s", info->name);
        snprintf(device->label, sizeof device->label, "%s", info->label);
        device->predicted_bytes =
            clv_trainer_device_info_get(trainer, device_of(watch, i)).memory.predicted_peak_bytes;
        if (config->placement.place)
            device->layers = count_layers(clv_trainer_info_get(trainer).plan, device_of(watch, i));
        if (watch->shown || watch->log.file || session->args->tensorboard) {
            clv_status status = clv_device_activity_start(device_of(watch, i));
            if (status != CLV_OK) return status;
        }
    }
    presence_take_over(session->presence, now, watch->log.path);
    return CLV_OK;
}

/** Somebody looks at the machine: from here on it is known how busy devices are. */
static void keep_times(const watch_eye *watch) {
    for (int i = 0; i < watch->now.n_devices; i++)
        if (!watch->now.devices[i].lost && clv_device_activity_start(device_of(watch, i)) != CLV_OK)
            return; // then nobody knows; the step that comes will say what is wrong
}

/** The share of a device: replicas name devices in their own order, and as specs. */
static double share_of(const watch_eye *watch, const clv_device *device) {
    const clv_placement *placement = &watch->config->placement;
    const double *shares = clv_trainer_info_get(watch->trainer).shares;
    for (int i = 0; shares && i < placement->n_replicas; i++) {
        clv_device *replica;
        if (clv_device_find(watch->session->runtime, placement->replicas[i], &replica) == CLV_OK &&
            replica == device)
            return shares[i];
    }
    return NAN;
}

static bool is_lost(const watch_eye *watch, const clv_device *device) {
    for (int i = 0; i < clv_trainer_info_get(watch->trainer).n_lost; i++)
        if (clv_trainer_info_get(watch->trainer).lost[i].device == device) return true;
    return false;
}

/** Where the window begins. */
static void begin_window(watch_eye *watch, double time) {
    watch->since = time;
    watch->images_at = watch->images;
    for (int i = 0; i < watch->now.n_devices; i++) {
        clv_activity activity = clv_device_activity(device_of(watch, i));
        watch->busy_at[i] = activity.busy_ns;
        watch->steps_at[i] = activity.steps;
    }
}

/** The part of the window that a device was busy; NAN where its driver tells no times. */
static double busy_part(const watch_eye *watch, int i, double seconds) {
    clv_activity activity = clv_device_activity(device_of(watch, i));
    if (activity.steps == watch->steps_at[i]) return NAN;
    double part = (double)(activity.busy_ns - watch->busy_at[i]) * 1e-9 / seconds;
    return part < 1 ? part : 1; // what a window counts began a little before it
}

/** Rates over the window. Before the first is over, what there is of it; then whole ones, unless epochs are
 *  shorter. */
static void take_rates(watch_eye *watch, double time) {
    double seconds = time - watch->since;
    bool over = seconds >= WINDOW_SECONDS;
    if (!(seconds > 0) || (watch->told > 0 && time - watch->told < WINDOW_SECONDS)) return;
    watch_moment *now = &watch->now;
    now->images_per_second = (double)(watch->images - watch->images_at) / seconds;
    for (int i = 0; i < now->n_devices; i++) {
        watch_device *device = &now->devices[i];
        device->busy = device->lost ? NAN : busy_part(watch, i, seconds);
        device->images_per_second = now->images_per_second * (isnan(device->share) ? 1 : device->share);
    }
    if (!over && watch->told == 0) return;
    watch->told = time;
    begin_window(watch, time);
}

static void take_devices(watch_eye *watch) {
    for (int i = 0; i < watch->now.n_devices; i++) {
        watch_device *device = &watch->now.devices[i];
        clv_memory_info memory = clv_device_memory(device_of(watch, i));
        device->used_bytes = memory.all.current;
        device->peak_bytes = memory.all.peak;
        device->budget_bytes = memory.budget;
        device->memory_bytes = clv_device_info_get(device_of(watch, i))->memory_bytes;
        device->share = share_of(watch, device_of(watch, i));
        device->lost = is_lost(watch, device_of(watch, i));
    }
}

static void take_step(watch_eye *watch, const clv_train_step *step, double time) {
    watch_moment *now = &watch->now;
    int64_t count = clv_dataset_info_get(watch->config->train).count, batch = watch->config->batch;
    bool short_batch = step->batch == step->batches && count % batch;
    watch->images += short_batch ? count % batch : batch;
    now->state = WATCH_RUNS;
    now->step = step->step;
    now->steps = step->steps;
    now->epoch = step->epoch;
    now->epochs = (step->steps + step->batches - 1) / step->batches;
    now->batch = step->batch;
    now->batches = step->batches;
    now->loss = step->loss;
    now->lr = step->lr;
    now->seconds = time;
    // The first step of each size of batch compiles kernels, and the first of all starts up: no rate has it.
    if (watch->since == 0 || (short_batch && !watch->short_seen)) begin_window(watch, time);
    watch->short_seen |= short_batch;
    take_rates(watch, time);
    now->left_seconds = (double)((step->steps - step->step) * batch) / now->images_per_second;
}

static void show(watch_eye *watch, double time) {
    screen_area *area = &watch->session->progress.area;
    if (!watch->shown) return;
    bool first = watch->printed == 0, last = watch->now.step == watch->now.steps;
    if (!first && !last && time - watch->printed < (area->terminal ? DRAW_SECONDS : PRINT_SECONDS)) return;
    watch->printed = time;
    if (area->terminal)
        watch_draw(area, &watch->now);
    else
        watch_print(stderr, &watch->now);
}

bool watch_step(watch_eye *watch, const clv_train_step *step) {
    double time = cli_seconds();
    bool first = watch->since == 0;
    take_devices(watch);
    take_step(watch, step, time);
    if (first && watch->log.file &&
        !watch_log_begin(&watch->log, &watch->now, watch_settings(watch->session->args, watch->config)))
        return false;
    if (presence_tell(watch->session->presence, &watch->now, time)) keep_times(watch);
    if (!watch_log_step(&watch->log, &watch->now)) return false;
    if (!events_step(&watch->events, &watch->now)) return false;
    show(watch, time);
    return true;
}

bool watch_epoch(watch_eye *watch, const clv_train_epoch *epoch) {
    cli_progress_clear(&watch->session->progress);
    if (epoch->evaluated) {
        watch->now.test_loss = epoch->test.loss;
        watch->now.test_accuracy = epoch->test.accuracy;
        watch->now.n_metrics = epoch->test.n_values;
        for (int i = 0; i < epoch->test.n_values; i++) {
            watch_metric *metric = &watch->now.metrics[i];
            cli_metric_name(&epoch->test.values[i], metric->name);
            metric->value = epoch->test.values[i].value;
        }
    }
    begin_window(watch, cli_seconds()); // a test is no part of a window
    return watch_log_epoch(&watch->log, epoch) &&
           events_epoch(&watch->events, &watch->now, epoch, clv_trainer_info_get(watch->trainer).session);
}

void watch_end(watch_eye *watch, watch_state state, const char *sentence) {
    cli_progress_clear(&watch->session->progress);
    watch->now.state = state;
    watch->now.seconds = cli_seconds();
    const clv_train_result result = clv_trainer_result(watch->trainer); // as the summary tells it
    watch->now.loss = result.train_loss;
    if (result.step_ms > 0) watch->now.images_per_second = result.images_per_second;
    snprintf(watch->now.sentence, sizeof watch->now.sentence, "%s", sentence ? sentence : "");
    watch_log_end(&watch->log, &watch->now); // a failure of it is told, and an exit code
}
