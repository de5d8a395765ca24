// SPDX-License-Identifier: Apache-2.0
// A dataset from arrays: everything is checked here once, so that assembling a batch cannot fail.
#include "data/dataset.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "data/finite.h"
#include "io/array.h"
#include "tensor/dtype.h"

/** Samples and targets that lie in memory as arrays. */
typedef struct arrays {
    clv_dataset common;
    clv_array images; // [N, ...] f32 or u8; N may be more than count
    int32_t *labels;  // [count]; NULL: targets are numbers:
    float *targets;   // [count, ...]
    clv__scale scale;
    int64_t crop_padding;
    double flip;
} arrays;

clv_status clv__norm_init(clv__error *error, float mean, float std, int channels, const float *means,
                          const float *stds, clv__norm *out) {
    *out = (clv__norm){.channels = channels ? channels : mean != 0 || std != 0, .mean = {mean}, .std = {std}};
    if (channels && channels != 1 && channels != CLV__MOST_CHANNELS)
        CLV_FAIL(error, CLV_E_VALUE, "normalisation of %d channels: 1 or 3 are possible", channels);
    if (channels && (!means || !stds))
        CLV_FAIL(error, CLV_E_VALUE, "normalisation of %d channels without %s", channels,
                 means ? "stds" : "means");
    for (int c = 0; c < channels; c++) {
        out->mean[c] = means[c];
        out->std[c] = stds[c];
    }
    for (int c = 0; c < out->channels; c++)
        if (!(out->std[c] > 0) || !isfinite(out->std[c]) || !isfinite(out->mean[c]))
            CLV_FAIL(error, CLV_E_VALUE,
                     "normalisation with mean %g and std %g: std must be above 0, both finite",
                     (double)out->mean[c], (double)out->std[c]);
    return CLV_OK;
}

clv_status clv__norm_fits(clv__error *error, const clv__norm *norm, const char *what,
                          const clv_shape *shape) {
    const int n = norm->channels;
    char text[128];
    if (n <= 1 || (shape->rank > 1 && shape->dims[1] == n)) return CLV_OK;
    CLV_FAIL(error, CLV_E_SHAPE,
             "%s of shape %s do not have the %d channels of mean and std, [N,%d,height,width]%s", what,
             clv_shape_text(shape, text, sizeof text), n, n,
             shape->rank == 4 && shape->dims[3] == n
                 ? ": their channels are last (NHWC); numpy mends it with x.transpose(0, 3, 1, 2)"
                 : "");
}

void clv__scale_bytes(float mean, float std, float out[256]) {
    // in float and in this order, as torchvision's ToTensor and Normalize
    for (int i = 0; i < 256; i++) out[i] = ((float)i / 255.0f - mean) / std;
}

void clv__scale_init(clv__scale *scale, const clv_array *array, const clv__norm *norm) {
    static const clv__norm zero_to_one = {.channels = 1, .std = {1}};
    scale->norm = norm->channels ? *norm : zero_to_one;
    const int channels = scale->norm.channels;
    const int64_t n = clv_shape_numel(&array->shape) / array->shape.dims[0];
    scale->plane = n / channels;
    scale->plain =
        array->type == CLV_DTYPE_F32 && channels == 1 && scale->norm.mean[0] == 0 && scale->norm.std[0] == 1;
    for (int c = 0; c < channels; c++)
        clv__scale_bytes(scale->norm.mean[c], scale->norm.std[c], scale->byte[c]);
}

void clv__scale_read(const clv__scale *scale, const clv_array *array, int64_t i, float *out) {
    const int channels = scale->norm.channels;
    const int64_t plane = scale->plane;
    if (scale->plain) memcpy(out, (const float *)array->data + i * plane, (size_t)plane * sizeof *out);
    for (int c = 0; c < channels && !scale->plain; c++, out += plane) {
        const float mean = scale->norm.mean[c], std = scale->norm.std[c], *byte = scale->byte[c];
        const int64_t first = (i * channels + c) * plane;
        const uint8_t *bytes = (const uint8_t *)array->data + first;
        const float *floats = (const float *)array->data + first;
        if (array->type == CLV_DTYPE_U8)
            for (int64_t k = 0; k < plane; k++) out[k] = byte[bytes[k]];
        else
            for (int64_t k = 0; k < plane; k++) out[k] = (floats[k] - mean) / std;
    }
}

static clv_status check_config(clv__error *error, const clv_dataset_config *config) {
    if (config->limit < 0)
        CLV_FAIL(error, CLV_E_VALUE, "a limit of %" PRId64 " samples: it must be >= 0", config->limit);
    if (config->classes < 0)
        CLV_FAIL(error, CLV_E_VALUE, "%d classes: there must be at least one", config->classes);
    if (!(config->flip >= 0 && config->flip <= 1))
        CLV_FAIL(error, CLV_E_VALUE, "flip of %g: it is a probability, 0 to 1", config->flip);
    if (config->crop_padding < 0 || config->crop_padding > INT32_MAX / 4)
        CLV_FAIL(error, CLV_E_VALUE, "a crop_padding of %" PRId64 " pixels: 0 to %d are possible",
                 config->crop_padding, INT32_MAX / 4);
    return CLV_OK;
}

static clv_status check_arrays(clv__error *error, const clv_array *images, const clv_array *labels,
                               const clv__dataset_defaults *names) {
    char a[128], b[128];
    clv_shape_text(&images->shape, a, sizeof a);
    clv_shape_text(&labels->shape, b, sizeof b);
    if (images->type != CLV_DTYPE_F32 && images->type != CLV_DTYPE_U8) {
        CLV_FAIL(error, CLV_E_DTYPE, "%s: the type is %s; f32 or u8 is wanted", names->images,
                 clv_dtype_name(images->type));
    }
    if (images->shape.rank < 1)
        CLV_FAIL(error, CLV_E_SHAPE, "%s: one number; [N,...] is wanted", names->images);
    if (clv_array_bytes(images) == 0)
        CLV_FAIL(error, CLV_E_SHAPE, "%s: %s holds no samples", names->images, a);
    if (clv_array_bytes(labels) == 0)
        CLV_FAIL(error, CLV_E_SHAPE, "%s: %s holds no labels", names->labels, b);
    bool numbers = labels->type == CLV_DTYPE_F32,
         row = numbers ? labels->shape.rank >= 1 : labels->shape.rank == 1;
    if (!row || labels->shape.dims[0] != images->shape.dims[0]) {
        CLV_FAIL(error, CLV_E_SHAPE,
                 "%s: the shape is %s, but [%" PRId64 "%s] is wanted, a %s for each of %s %s%s",
                 names->labels, b, images->shape.dims[0], numbers ? ",..." : "", numbers ? "target" : "label",
                 names->images, a,
                 labels->shape.rank != 2 || numbers ? ""
                 : labels->shape.dims[1] == 1       ? "; numpy mends it with y[:,0]"
                                              : "; of one-hot rows numpy makes labels with y.argmax(1)");
    }
    return CLV_OK;
}

int64_t clv__whole_at(const clv_array *array, int64_t i) {
    return clv__element_whole(array->type, array->data, i);
}

bool clv__label_ignored(const clv_dataset_config *config, int64_t label) {
    return label == (config->ignore_index ? *config->ignore_index : CLV_LABEL_IGNORED);
}

/** What mends labels that are no classes: those that are 1 to their number, those that are more, others. */
static const char *labels_mend(const clv_array *labels, const clv_dataset_config *config, int64_t classes,
                               char text[160]) {
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (int64_t i = 0; i < labels->shape.dims[0]; i++) {
        int64_t label = clv__whole_at(labels, i);
        if (clv__label_ignored(config, label)) continue;
        if (label < least) least = label;
        if (label > most) most = label;
    }
    if (least == 1 && most == classes)
        snprintf(text, 160, "; they seem to begin at 1: numpy mends it with y - 1");
    else if (least < 0)
        snprintf(text, 160, "; samples without a class are left out, or have the label %d, which is ignored",
                 config->ignore_index ? (int)*config->ignore_index : CLV_LABEL_IGNORED);
    else if (most >= 1 << 20)
        snprintf(text, 160, "; labels are rarely as large as this: is it the right file?");
    else
        snprintf(text, 160,
                 "; a model of %" PRId64 " classes has room for all of them (clv_model.classes %" PRId64 ")",
                 most + 1, most + 1);
    return text;
}

static clv_status copy_labels(clv__error *error, const clv_array *labels, const clv_dataset_config *config,
                              const clv__dataset_defaults *names, arrays *own) {
    enum { MOST = 1 << 24 }; // where nobody says how many classes there are
    clv_dataset *dataset = &own->common;
    int64_t limit = dataset->classes ? dataset->classes : MOST;
    own->labels = clv__alloc((size_t)dataset->count, sizeof *own->labels);
    if (!own->labels)
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for %" PRId64 " labels", dataset->count);
    int64_t largest = -1;
    for (int64_t i = 0; i < dataset->count; i++) {
        int64_t label = clv__whole_at(labels, i);
        if (clv__label_ignored(config, label)) {
            own->labels[i] = CLV_LABEL_IGNORED;
            dataset->ignores = true;
            continue;
        }
        if (label < 0 || label >= limit) {
            char mend[160];
            CLV_FAIL(error, CLV_E_VALUE,
                     "%s: row %" PRId64 " is %" PRId64 ", but labels are 0 to %" PRId64 "%s", names->labels,
                     i, label, limit - 1, labels_mend(labels, config, limit, mend));
        }
        own->labels[i] = (int32_t)label;
        if (label > largest) largest = label;
    }
    if (dataset->classes == 0 && largest < 0)
        CLV_FAIL(error, CLV_E_VALUE, "%s: all labels are %" PRId64 ", which is ignored: there is no class",
                 names->labels, clv__whole_at(labels, 0));
    if (dataset->classes == 0) dataset->classes = (int)largest + 1;
    dataset->target_dtype = CLV_DTYPE_I32;
    dataset->target_numel = 1;
    return CLV_OK;
}

/** Targets that are numbers, not classes. */
static clv_status copy_targets(clv__error *error, const clv_array *targets, arrays *own) {
    clv_dataset *dataset = &own->common;
    dataset->classes = 0;
    dataset->target_dtype = CLV_DTYPE_F32;
    dataset->target = clv_shape_make(targets->shape.rank - 1, targets->shape.dims + 1);
    dataset->target_numel = clv_shape_numel(&dataset->target);
    size_t n = (size_t)(dataset->count * dataset->target_numel);
    own->targets = clv__alloc(n, sizeof *own->targets);
    if (!own->targets)
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for the targets of %" PRId64 " samples",
                 dataset->count);
    memcpy(own->targets, targets->data, n * sizeof *own->targets);
    return CLV_OK;
}

static void read_arrays(const clv_dataset *dataset, int64_t i, void *sample, void *target) {
    const arrays *own = (const arrays *)dataset;
    const size_t bytes = (size_t)dataset->target_numel * sizeof(float);
    if (sample) clv__scale_read(&own->scale, &own->images, i, sample);
    if (target && own->labels) memcpy(target, own->labels + i, sizeof *own->labels);
    if (target && own->targets) memcpy(target, own->targets + i * dataset->target_numel, bytes);
}

static void read_array_bytes(const clv_dataset *dataset, int64_t i, void *const *to) {
    const arrays *own = (const arrays *)dataset;
    if (to[0]) memcpy(to[0], (const uint8_t *)own->images.data + i * dataset->numel, (size_t)dataset->numel);
    read_arrays(dataset, i, NULL, to[1]);
}

/** Where in an image the upper left pixel of what is drawn lies, outside of it too; and whether it is flipped. */
typedef struct shift {
    int64_t top, left;
    bool flip;
} shift;

static shift draw_shift(const arrays *own, int64_t i, const clv__draw *draw) {
    const int64_t p = own->crop_padding;
    clv__random random;
    clv__random_init(&random, draw->seed, CLV__STREAM_AUGMENT, (uint64_t)draw->epoch << 32 | (uint64_t)i);
    shift s;
    s.top = (int64_t)clv__random_below(&random, (uint32_t)(2 * p + 1)) - p;
    s.left = (int64_t)clv__random_below(&random, (uint32_t)(2 * p + 1)) - p;
    s.flip = (double)clv__random_uniform(&random) < own->flip;
    return s;
}

/** A sample as it was drawn; what is outside of the image is 0 before it is normalised. */
static clv_status draw_arrays(const clv_dataset *dataset, int64_t i, const clv__draw *draw, clv__error *error,
                              void *sample, void *target) {
    (void)error;
    const arrays *own = (const arrays *)dataset;
    read_arrays(dataset, i, NULL, target);
    if (!sample) return CLV_OK;
    const int64_t height = dataset->sample.dims[dataset->sample.rank - 2],
                  width = dataset->sample.dims[dataset->sample.rank - 1],
                  planes = dataset->numel / (height * width);
    const shift s = draw_shift(own, i, draw);
    const clv__norm *norm = &own->scale.norm;
    const bool from_bytes = own->images.type == CLV_DTYPE_U8, to_bytes = from_bytes && draw->bytes;
    for (int64_t plane = 0, at = 0; plane < planes; plane++) {
        const int64_t first = (i * planes + plane) * height * width, c = plane / (planes / norm->channels);
        for (int64_t y = s.top; y < s.top + height; y++) {
            for (int64_t column = 0; column < width; column++, at++) {
                const int64_t x = (s.flip ? width - 1 - column : column) + s.left;
                const bool inside = y >= 0 && y < height && x >= 0 && x < width;
                const int64_t from = first + (inside ? y * width + x : 0);
                const uint8_t byte = from_bytes && inside ? ((const uint8_t *)own->images.data)[from] : 0;
                const float number = !from_bytes && inside ? ((const float *)own->images.data)[from] : 0;
                if (to_bytes)
                    ((uint8_t *)sample)[at] = byte;
                else
                    ((float *)sample)[at] =
                        from_bytes ? own->scale.byte[c][byte] : (number - norm->mean[c]) / norm->std[c];
            }
        }
    }
    return CLV_OK;
}

static clv__norm bytes_of_arrays(const clv_dataset *dataset, int k) {
    (void)k;
    return ((const arrays *)dataset)->scale.norm;
}

static void destroy_arrays(clv_dataset *dataset) {
    arrays *own = (arrays *)dataset;
    clv_array_reset(&own->images);
    free(own->labels);
    free(own->targets);
    free(own);
}

clv_status clv__dataset_create(clv__error *error, clv_array *images, const clv_array *labels,
                               const clv_dataset_config *config, const clv__dataset_defaults *defaults,
                               clv_dataset **out) {
    *out = NULL;
    static const clv_dataset_config none = {0};
    if (!config) config = &none;
    clv__norm norm;
    CLV_TRY(check_config(error, config));
    CLV_TRY(clv__norm_init(error, config->mean, config->std, config->channels, config->means, config->stds,
                           &norm));
    CLV_TRY(check_arrays(error, images, labels, defaults));
    if (!norm.channels || (config->only_bytes && images->type != CLV_DTYPE_U8))
        norm = (clv__norm){.channels = 1, .mean = {defaults->mean}, .std = {defaults->std}};
    CLV_TRY(clv__norm_fits(error, &norm, defaults->images, &images->shape));
    const bool drawn = config->crop_padding > 0 || config->flip > 0;
    if (drawn && images->shape.rank < 3) {
        char text[128];
        CLV_FAIL(error, CLV_E_SHAPE,
                 "%s of shape %s: crop_padding and flip are of images, [N,...,height,width]",
                 defaults->images, clv_shape_text(&images->shape, text, sizeof text));
    }
    const int64_t n = images->shape.dims[0], count = config->limit && config->limit < n ? config->limit : n;
    if (defaults->finite) {
        CLV_TRY(clv__array_finite(error, defaults->images, images, count));
        CLV_TRY(clv__array_finite(error, defaults->labels, labels, count));
    }
    arrays *own = clv__alloc(1, sizeof *own);
    if (!own) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a dataset");
    clv_dataset *dataset = &own->common;
    dataset->read = read_arrays;
    if (drawn) dataset->draw = draw_arrays;
    own->crop_padding = config->crop_padding;
    own->flip = config->flip;
    dataset->destroy = destroy_arrays;
    dataset->dtype = CLV_DTYPE_F32;
    dataset->count = count;
    dataset->sample = clv_shape_make(images->shape.rank - 1, images->shape.dims + 1);
    dataset->numel = clv_shape_numel(&dataset->sample);
    dataset->classes = config->classes ? config->classes : defaults->classes;
    dataset->norm = norm;
    clv__scale_init(&own->scale, images, &norm);
    clv_status status = labels->type == CLV_DTYPE_F32 ? copy_targets(error, labels, own)
                                                      : copy_labels(error, labels, config, defaults, own);
    if (status != CLV_OK) {
        clv_dataset_destroy(dataset);
        return status;
    }
    if (images->type == CLV_DTYPE_U8) {
        dataset->bytes = bytes_of_arrays;
        dataset->read_bytes = read_array_bytes;
    }
    own->images = *images;
    if (images->borrowed) {
        own->images.name = NULL; // the name stays the caller's
    } else {
        *images = (clv_array){0};
    }
    *out = dataset;
    return CLV_OK;
}

clv_status clv_dataset_from_arrays(clv_runtime *runtime, clv_array *images, const clv_array *labels,
                                   const clv_dataset_config *config, clv_dataset **out) {
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), out));
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), images));
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), labels));
    clv__dataset_defaults defaults = {.std = 1, .images = "images", .labels = "labels"};
    return clv__dataset_create(clv__io_error(runtime), images, labels, config, &defaults, out);
}

/** `what 'path'`; NULL if memory is out. */
static char *quoted(const char *what, const char *path) {
    size_t bytes = strlen(what) + strlen(path) + 4;
    char *text = clv__alloc(bytes, 1);
    if (text) snprintf(text, bytes, "%s '%s'", what, path);
    return text;
}

clv_status clv_dataset_npy(clv_runtime *runtime, const char *images_path, const char *labels_path,
                           const clv_dataset_config *config, clv_dataset **out) {
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), out));
    *out = NULL;
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), images_path));
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), labels_path));
    clv_array images = {0}, labels = {0};
    char *images_name = NULL, *labels_name = NULL;
    clv_status status = clv_npy_read(runtime, labels_path, &labels); // the small one first
    if (status == CLV_OK) status = clv_npy_read(runtime, images_path, &images);
    if (status == CLV_OK) {
        images_name = quoted("images", images_path);
        labels_name = quoted("labels", labels_path);
        clv__dataset_defaults defaults = {.std = 1,
                                          .images = images_name ? images_name : "images",
                                          .labels = labels_name ? labels_name : "labels",
                                          .finite = true};
        status = clv__dataset_create(clv__io_error(runtime), &images, &labels, config, &defaults, out);
    }
    clv_array_reset(&images);
    clv_array_reset(&labels);
    free(images_name);
    free(labels_name);
    return status;
}

// ---- of every dataset -------------------------------------------------------------------------------------

void clv_dataset_destroy(clv_dataset *dataset) {
    if (!dataset) return;
    free(dataset->table);
    dataset->destroy(dataset);
}

clv_dataset_info clv_dataset_info_get(const clv_dataset *dataset) {
    if (!dataset) return (clv_dataset_info){0};
    clv_dataset_info info = {.count = dataset->count,
                             .classes = dataset->classes,
                             .dtype = dataset->dtype,
                             .sample = dataset->sample,
                             .target = dataset->target,
                             .n_inputs = dataset->ports ? dataset->n_inputs : 1,
                             .n_targets = dataset->ports ? dataset->n_targets : 1,
                             .number_names = dataset->number_names,
                             .class_names = dataset->names,
                             .n_class_names = (int)dataset->n_names,
                             .table = dataset->table};
    if (dataset->table_report) info.table_report = *dataset->table_report;
    if (dataset->folder) info.folder = dataset->folder(dataset);
    return info;
}

clv_port clv_dataset_port_get(const clv_dataset *dataset, clv_port_role role, int index) {
    const clv_dataset_info info = clv_dataset_info_get(dataset);
    const bool input = role == CLV_PORT_INPUT,
               there = index >= 0 && index < (input ? info.n_inputs : info.n_targets);
    return there ? clv__dataset_field(dataset, input ? index : info.n_inputs + index) : (clv_port){0};
}

int32_t clv__dataset_label(const clv_dataset *dataset, int64_t i) {
    int32_t label = -1;
    if (dataset->classes && dataset->target_numel == 1) dataset->read(dataset, i, NULL, &label);
    return label;
}

void clv__dataset_sample(const clv_dataset *dataset, int64_t i, void *out) {
    dataset->read(dataset, i, out, NULL);
}

void clv__dataset_target(const clv_dataset *dataset, int64_t i, void *out) {
    dataset->read(dataset, i, NULL, out);
}

int clv__dataset_fields(const clv_dataset *dataset) {
    return clv_dataset_info_get(dataset).n_inputs + clv_dataset_info_get(dataset).n_targets;
}

clv_port clv__dataset_field(const clv_dataset *dataset, int k) {
    if (dataset->ports) return dataset->ports[k];
    const clv_shape *shape = k ? &dataset->target : &dataset->sample;
    clv_port port = {.name = k ? "labels" : "x",
                     .dtype = k ? dataset->target_dtype : dataset->dtype,
                     .classes = k ? dataset->classes : 0};
    for (int d = 0; d < shape->rank && d < CLV_MAX_RANK - 1; d++) port.dims[d] = shape->dims[d];
    return port;
}

clv__norm clv__dataset_bytes(const clv_dataset *dataset, int input) {
    const bool there = dataset->bytes && input >= 0 && input < clv_dataset_info_get(dataset).n_inputs;
    return there ? dataset->bytes(dataset, input) : (clv__norm){0};
}

void clv_dataset_read(const clv_dataset *dataset, int64_t i, void *const *to) {
    if (dataset->ports)
        dataset->read_all(dataset, i, to);
    else
        dataset->read(dataset, i, to[0], to[1]);
}
