// SPDX-License-Identifier: Apache-2.0
// Inside of datasets.
#ifndef CLV_DATA_DATASET_H
#define CLV_DATA_DATASET_H

#include "base/error.h"
#include "cleave/data.h"

/** What a sample's augmentation depends on, besides the sample. */
typedef struct clv__draw {
    uint64_t seed;
    int64_t epoch;
    bool bytes; // what is written is bytes, where samples are
} clv__draw;

enum { CLV__MOST_CHANNELS = 3 };

/** Mean and std as a caller gives them: one of all (channels 1), or one of each channel. */
typedef struct clv__norm {
    int channels; // 0: none are given
    float mean[CLV__MOST_CHANNELS], std[CLV__MOST_CHANNELS];
} clv__norm;

/** What every dataset has; what it reads from lies behind it, and is known to the file that made it. */
struct clv_dataset {
    clv_shape sample, target; // of one
    clv_dtype dtype, target_dtype;
    int64_t count, numel, target_numel; // elements of a sample, and of its target
    int classes;                        // 0: targets are numbers
    bool ignores;                       // some labels are CLV_LABEL_IGNORED
    /** Write sample i and its target; NULL: that is not wanted. Loaders' threads call it. */
    void (*read)(const clv_dataset *dataset, int64_t i, void *sample, void *target);
    /** The same where samples are drawn again each time, or reading may fail; NULL: `read` is all there is. */
    clv_status (*draw)(const clv_dataset *dataset, int64_t i, const clv__draw *draw, clv__error *error,
                       void *sample, void *target);
    /** Of input k, is it bytes that `read` normalises? NULL: none is. Such are read as they are by `draw`, if there is one, or: */
    clv__norm (*bytes)(const clv_dataset *dataset, int k);
    void (*read_bytes)(const clv_dataset *dataset, int64_t i, void *const *to); // as clv_dataset_read
    /** Of named fields: inputs, then targets, and the above is of the first of each; NULL: one of each, without names. */
    const clv_port *ports;
    int n_inputs, n_targets;
    /** `read` of all fields: a pointer for each, NULL: that is not wanted. With ports. */
    void (*read_all)(const clv_dataset *dataset, int64_t i, void *const *to);
    const clv_table_report *table_report; // of a table; NULL: it is none
    char *table; // of a table: what its rows need to be, a text (table_record.c); owned. NULL: of none
    /** Targets are (number - mean) / scale: mean and scale of each of a sample's, one behind the other; owned. NULL: as they stand */
    double *target_scales;
    const char **
        number_names; // of each of a sample's numbers to be learnt; owned, with the texts behind them. NULL: none
    /** Go on with a digest (rows.h) by what tells the data apart; NULL: rows are read for it */
    uint64_t (*digest)(const clv_dataset *dataset, uint64_t digest);
    const char *const *names; // n_names: of classes, or of labels; NULL: they have none
    size_t n_names;
    clv__norm norm;      // of its channels, if it is known: samples are (x - mean) / std, bytes as 0..1
    int64_t resize;      // of pictures: the shorter side's size before the middle is cut out; 0: no pictures
    bool exif_transpose; // they are turned as their Exif data say
    int workers; // threads of a loader, each of which reads a sample at a time; 0: one, a batch at a time
    clv_image_folder_info (*folder)(const clv_dataset *dataset); // of pictures; NULL: none
    void (*destroy)(clv_dataset *dataset);
};

enum { CLV__MOST_FIELDS = 2 * CLV_MAX_PORTS };

/** Inputs and targets together, and what the k-th of them is. */
int clv__dataset_fields(const clv_dataset *dataset);
clv_port clv__dataset_field(const clv_dataset *dataset, int k);

/** channels 0: mean and std, where not both are 0; else so many means and stds. CLV_E_VALUE: they are not good. */
clv_status clv__norm_init(clv__error *error, float mean, float std, int channels, const float *means,
                          const float *stds, clv__norm *out);
/** Has an array of that shape the channels? CLV_E_SHAPE; `what` is what the sentence calls it. */
clv_status clv__norm_fits(clv__error *error, const clv__norm *norm, const char *what, const clv_shape *shape);
/** Of an input of bytes, how they become numbers, (byte / 255 - mean) / std; channels 0: it is none of bytes. */
clv__norm clv__dataset_bytes(const clv_dataset *dataset, int input);

/**
 * Continue at a position, as if the loader had been made with it.
 *
 * Errors  CLV_E_VALUE  there is no such position;  CLV_E_STATE  a batch is not released
 */
clv_status clv__loader_seek(clv_loader *loader, int64_t epoch, int64_t index);

enum { CLV__LARGE_BATCH = 1 << 20 }; // bytes: several threads copy it
/**
 * clv_loader_next, and the batch is made in `to`, which has a place for `rows` samples of each field, or NULL. It is made in the loader's
 * memory where it has been begun, has another number of samples, is mixed, or takes long: pictures that are decoded are made ahead.
 * `to` may be NULL.
 */
clv_status clv__loader_next_into(clv_loader *loader, void *const *to, int64_t rows, clv_batch *out);

/** How numbers and bytes are normalised. */
typedef struct clv__scale {
    bool plain;    // f32 that stay as they are
    int64_t plane; // elements of a channel, one behind the other
    clv__norm norm;
    float byte[CLV__MOST_CHANNELS][256]; // what a byte becomes
} clv__scale;

/** What each byte becomes. */
void clv__scale_bytes(float mean, float std, float out[256]);
/** Of an array that `norm` fits; of none given bytes become 0..1. */
void clv__scale_init(clv__scale *scale, const clv_array *array, const clv__norm *norm);
/** Sample i as f32. */
void clv__scale_read(const clv__scale *scale, const clv_array *array, int64_t i, float *out);

/** Is it a label that counts nothing? */
bool clv__label_ignored(const clv_dataset_config *config, int64_t label);
/** Element i of integers or truth values; of floats 0. */
int64_t clv__whole_at(const clv_array *array, int64_t i);

/** What a dataset is by itself, where the caller's config leaves it open. */
typedef struct clv__dataset_defaults {
    float mean, std;
    int classes;                 // 0: the largest label + 1
    const char *images, *labels; // what sentences call them
    bool finite;                 // refuse values that are not
} clv__dataset_defaults;

clv_status clv__dataset_create(clv__error *error, clv_array *images, const clv_array *labels,
                               const clv_dataset_config *config, const clv__dataset_defaults *defaults,
                               clv_dataset **out);

/** How many of n rows have their largest logit (the first of equals) at their label. A row with a NaN has
 * none, and so has one whose label is CLV_LABEL_IGNORED. */
int64_t clv__count_correct(const float *logits, const int32_t *labels, int64_t n, int64_t classes);

/** The class of sample i, 0 <= i < count; -1 where a target is not one class. */
int32_t clv__dataset_label(const clv_dataset *dataset, int64_t i);
/** Write sample i, normalised: numel(sample shape) elements; or its target. */
void clv__dataset_sample(const clv_dataset *dataset, int64_t i, void *out);
void clv__dataset_target(const clv_dataset *dataset, int64_t i, void *out);

#endif
