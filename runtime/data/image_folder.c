// SPDX-License-Identifier: Apache-2.0
// A dataset of pictures in files: what is broken is left out when it is made, the others are decoded when a batch
// wants them, by threads of the loader.
#define _GNU_SOURCE // the cores this process may use
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"
#include "data/image_list.h"
#include "data/rows.h"
#include "data/transforms.h"
#include "io/array.h"

enum { MAX_SIZE = 4096, MAX_WORKERS = 64, USUAL_SIZE = 224, LEAST_SIZE = 64, SIZE_STEP = 32 };

typedef struct pictures {
    clv_dataset common;
    clv__image_list list;
    clv__transforms transforms;
    bool strict, draft, exif;
    bool alone; // files without classes: a broken one keeps its place
    int64_t shorter[USUAL_SIZE +
                    1];   // of the sides of pictures: how many there are of each, larger ones with the last
    pthread_mutex_t lock; // guards what follows; the last two are read without it, in a fork too
    bool *broken;         // [count]: found when it was decoded
    _Atomic int64_t n_broken; // those that were left out too
    _Atomic(char *) first;    // what is wrong with the first of them
} pictures;

static void read_pictures(const clv_dataset *dataset, int64_t i, void *sample, void *target);

// ---- one picture ------------------------------------------------------------------------------------------

/** The path of a sample, to be freed. */
static char *path_of(const pictures *own, size_t i) {
    if (own->alone) return clv__strdup(own->list.files[i]);
    const size_t bytes = strlen(own->list.folder) + strlen(own->list.files[i]) + 2;
    char *path = malloc(bytes);
    if (path) snprintf(path, bytes, "%s/%s", own->list.folder, own->list.files[i]);
    return path;
}

/** A whole file in memory; `bytes` to be freed. */
static clv_status load(const clv__input *file, uint8_t **bytes, clv__input *out) {
    clv__image_info info;
    CLV_TRY(clv__image_probe(file, &info)); // before memory is taken for it
    *bytes = malloc((size_t)file->bytes);
    if (!*bytes)
        CLV_FAIL(file->error, CLV_E_HOST_MEMORY, "'%s': no host memory for its %" PRIu64 " bytes", file->path,
                 file->bytes);
    CLV_TRY(clv__input_read(file, 0, *bytes, (size_t)file->bytes));
    clv__input_memory(file->error, file->path, *bytes, (size_t)file->bytes, out);
    return CLV_OK;
}

/** From a file in memory to a sample. */
static clv_status transform(const pictures *own, const clv__input *input, clv__random *random, bool bytes,
                            void *out) {
    const clv__transforms *t = &own->transforms;
    clv__image_info info;
    clv__drawn drawn;
    clv__image image;
    CLV_TRY(clv__image_probe(input, &info));
    const int orientation = own->exif ? info.orientation : 1;
    const bool across = orientation >= 5;
    const int64_t width = across ? info.height : info.width, height = across ? info.width : info.height;
    clv__transforms_draw(t, random, width, height, &drawn);
    clv__image_wish wish = {0};
    if (own->draft && info.format == CLV__JPEG) wish.scale = clv__transforms_draft(&drawn, width, height);
    if (orientation == 1) wish.rows = clv__transforms_rows(&drawn);
    CLV_TRY(clv__image_read(input, &info, &wish, &image));
    if (!clv__image_turn(&image, orientation)) {
        clv__image_reset(&image);
        CLV_FAIL(input->error, CLV_E_HOST_MEMORY, "'%s': no host memory to turn it", input->path);
    }
    uint8_t *window = malloc((size_t)(t->size * t->size) * 3);
    const bool done = window && clv__transforms_window(t, &drawn, &image, window);
    if (done && bytes) clv__transforms_bytes(t, &drawn, window, out);
    if (done && !bytes) clv__transforms_finish(t, &drawn, window, out);
    free(window);
    clv__image_reset(&image);
    if (!done) CLV_FAIL(input->error, CLV_E_HOST_MEMORY, "'%s': no host memory to resize it", input->path);
    return CLV_OK;
}

/** Decode one picture; `out` NULL: only to see whether it is whole. */
static clv_status decode(const pictures *own, size_t i, const clv__draw *draw, clv__error *error, void *out) {
    char *path = path_of(own, i);
    if (!path) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for the name of a picture");
    clv__input file, input;
    uint8_t *bytes = NULL;
    clv__random random;
    clv__random_init(&random, draw->seed, CLV__STREAM_AUGMENT, (uint64_t)draw->epoch << 32 | i);
    clv_status status = clv__input_open(error, path, &file);
    if (status == CLV_OK) {
        status = load(&file, &bytes, &input);
        clv__input_close(&file);
    }
    if (status == CLV_OK && out) status = transform(own, &input, &random, draw->bytes, out);
    if (status == CLV_OK && !out) {
        clv__image_info info;
        clv__image image = {0};
        status = clv__image_probe(&input, &info);
        if (status == CLV_OK) status = clv__image_read(&input, &info, &(clv__image_wish){0}, &image);
        clv__image_reset(&image);
    }
    free(bytes);
    free(path);
    return status;
}

// ---- the dataset ------------------------------------------------------------------------------------------

/** `i`: of a picture that is in the dataset; -1: it is not. */
static void note_broken(pictures *own, int64_t i, clv__error *error) {
    pthread_mutex_lock(&own->lock);
    const bool known = i >= 0 && own->broken[i];
    if (i >= 0) own->broken[i] = true;
    own->n_broken += !known;
    if (!own->first) own->first = clv__strdup(clv__error_text(error));
    pthread_mutex_unlock(&own->lock);
}

/** By the names of the files and what is to be learnt of them: pixels depend on the version of a decoder. */
static uint64_t digest_pictures(const clv_dataset *dataset, uint64_t digest) {
    const pictures *own = (const pictures *)dataset;
    for (int64_t i = 0; i < dataset->count; i++) digest = clv__digest_text(digest, own->list.files[i]);
    for (size_t i = 0; i < own->list.n_classes; i++) digest = clv__digest_text(digest, own->list.classes[i]);
    for (size_t i = 0; own->list.targets && i < (size_t)dataset->count * own->list.n_classes; i++)
        digest = clv__digest_number(digest, own->list.targets[i] > 0);
    return digest;
}

static void read_target(const pictures *own, int64_t i, void *target) {
    const size_t n = own->list.n_classes;
    if (own->list.labels)
        memcpy(target, own->list.labels + i, sizeof *own->list.labels);
    else
        memcpy(target, own->list.targets + (size_t)i * n, n * sizeof *own->list.targets);
}

/** A damaged picture's place is taken by the next that is whole, which depends on the files alone. */
static clv_status draw_picture(const clv_dataset *dataset, int64_t i, const clv__draw *draw,
                               clv__error *error, void *sample, void *target) {
    pictures *own = (pictures *)dataset; // only what the lock guards is changed
    int64_t at = i;
    clv_status status = CLV_OK;
    for (int64_t tries = 0; sample && tries < dataset->count; tries++) {
        at = (i + tries) % dataset->count;
        status = decode(own, (size_t)at, draw, error, sample);
        if (status == CLV_OK || status == CLV_E_HOST_MEMORY || status == CLV_E_UNSUPPORTED) break;
        note_broken(own, at, error);
        if (own->strict) break;
        if (!own->alone) continue;
        memset(sample, 0, (size_t)dataset->numel * (draw->bytes ? 1 : sizeof(float)));
        status = CLV_OK;
        break;
    }
    if (target) read_target(own, at, target);
    return status;
}

/** Without a loader there is no seed, no epoch, and nobody to tell of a failure. */
static void read_pictures(const clv_dataset *dataset, int64_t i, void *sample, void *target) {
    const clv__draw none = {0};
    clv__error error;
    clv__error_init(&error);
    if (draw_picture(dataset, i, &none, &error, sample, target) != CLV_OK)
        memset(sample, 0, (size_t)dataset->numel * sizeof(float));
    clv__error_destroy(&error);
}

static clv__norm bytes_of_pictures(const clv_dataset *dataset, int k) {
    (void)k;
    return dataset->norm;
}

static void destroy_pictures(clv_dataset *dataset) {
    pictures *own = (pictures *)dataset;
    clv__image_list_reset(&own->list);
    pthread_mutex_destroy(&own->lock);
    free(own->broken);
    free(own->first);
    free(own);
}

// ---- making one -------------------------------------------------------------------------------------------

static clv_status check_range(clv__error *error, const char *name, const double range[2], double most) {
    if (!(range[0] > 0 && range[0] <= range[1] && range[1] <= most))
        CLV_FAIL(error, CLV_E_VALUE,
                 "RandomResizedCrop with %s from %g to %g: it must rise, above 0 and to %g", name, range[0],
                 range[1], most);
    return CLV_OK;
}

static clv_status check_augment(clv__error *error, const clv_image_augment *a) {
    const double strengths[] = {a->brightness, a->contrast, a->saturation};
    CLV_TRY(check_range(error, "scale", a->scale, 1));
    CLV_TRY(check_range(error, "ratio", a->ratio, 1000));
    if (!(a->flip >= 0 && a->flip <= 1))
        CLV_FAIL(error, CLV_E_VALUE, "RandomHorizontalFlip with p %g: it must lie within 0 and 1", a->flip);
    for (int i = 0; i < 3; i++)
        if (!(strengths[i] >= 0 && strengths[i] <= 100))
            CLV_FAIL(error, CLV_E_VALUE, "ColorJitter by %g: it must lie within 0 and 100", strengths[i]);
    return CLV_OK;
}

static clv_status check_config(clv__error *error, const clv_image_folder_config *config) {
    if (config->size < 1 || config->size > MAX_SIZE)
        CLV_FAIL(error, CLV_E_VALUE, "pictures of %" PRId64 " pixels a side: 1 to %d are possible",
                 config->size, MAX_SIZE);
    if (config->resize < config->size || config->resize > 4 * MAX_SIZE)
        CLV_FAIL(error, CLV_E_VALUE,
                 "pictures of %" PRId64
                 " pixels a side cannot be cut out of pictures whose shorter side is resized to "
                 "%" PRId64 "; `resize` is from `size` to %d",
                 config->size, config->resize, 4 * MAX_SIZE);
    if (config->limit < 0) CLV_FAIL(error, CLV_E_VALUE, "a limit of %" PRId64 " pictures", config->limit);
    if (config->workers < 0 || config->workers > MAX_WORKERS)
        CLV_FAIL(error, CLV_E_VALUE,
                 "%d threads to decode pictures: 1 to %d are possible, or 0 for all cores", config->workers,
                 MAX_WORKERS);
    for (int c = 0; c < 3; c++)
        if (!(config->std[c] > 0) || !isfinite(config->std[c]) || !isfinite(config->mean[c]))
            CLV_FAIL(error, CLV_E_VALUE,
                     "normalisation with mean %g and std %g: std must be above 0, both finite",
                     (double)config->mean[c], (double)config->std[c]);
    return check_augment(error, &config->augment);
}

static bool all_zero(const float values[3]) {
    return values[0] == 0 && values[1] == 0 && values[2] == 0;
}

static int cores(void) {
    cpu_set_t set;
    const int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < MAX_WORKERS ? n : MAX_WORKERS;
}

static const pictures *pictures_of(const clv_dataset *dataset) {
    return dataset && dataset->read == read_pictures ? (const pictures *)dataset : NULL;
}

static int64_t usual_resize(int64_t size) {
    return (size * 8 + 3) / 7;
}

static clv_image_folder_config with_defaults(const clv_image_folder_config *config) {
    static const clv_image_folder_config none = {0};
    static const float mean[3] = {0.485f, 0.456f, 0.406f}, std[3] = {0.229f, 0.224f, 0.225f}; // ImageNet's
    clv_image_folder_config own = config ? *config : none;
    clv_image_augment *a = &own.augment;
    if (!own.size && !own.resize && pictures_of(own.like)) {
        own.size = own.like->sample.dims[1];
        own.resize = own.like->resize;
    }
    if (!own.size) own.size = USUAL_SIZE;
    if (!own.resize) own.resize = usual_resize(own.size);
    if (all_zero(own.mean) && all_zero(own.std)) {
        memcpy(own.mean, mean, sizeof mean);
        memcpy(own.std, std, sizeof std);
    }
    if (a->scale[0] == 0 && a->scale[1] == 0) a->scale[0] = 0.08, a->scale[1] = 1;
    if (a->ratio[0] == 0 && a->ratio[1] == 0) a->ratio[0] = 3.0 / 4, a->ratio[1] = 4.0 / 3;
    if (!own.workers) own.workers = cores();
    return own;
}

/** Keep `limit` of all, evenly spread. */
static void keep_some(clv__image_list *list, int64_t limit) {
    const size_t all = list->count;
    if (limit == 0 || (size_t)limit >= all) return;
    for (int64_t i = 0; i < limit; i++)
        clv__image_list_move(list, (size_t)((double)i * (double)all / (double)limit), (size_t)i);
    list->count = (size_t)limit;
}

/** Is it a picture, and whole? Only one that does not end as it should is decoded for that. */
static clv_status check_picture(pictures *own, size_t i, clv__error *error) {
    char *path = path_of(own, i);
    if (!path) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for the name of a picture");
    clv__input file;
    clv__image_info info = {0};
    clv_status status = clv__input_open(error, path, &file);
    if (status == CLV_OK) {
        status = clv__image_probe(&file, &info);
        clv__input_close(&file);
    }
    free(path);
    if (status == CLV_OK && !clv__image_can_read(info.format))
        info.closed = false; // the decoder says what is missing
    if (status == CLV_OK && !info.closed) status = decode(own, i, &(clv__draw){0}, error, NULL);
    const int64_t side = info.width < info.height ? info.width : info.height;
    if (status == CLV_OK) own->shorter[side < USUAL_SIZE ? side : USUAL_SIZE]++;
    return status;
}

/** The median of the shorter sides, in whole steps; pictures are not made larger than they are for nothing. */
static int64_t own_size(const pictures *own) {
    int64_t side = 0, seen = own->shorter[0];
    while (2 * seen < (int64_t)own->list.count) seen += own->shorter[++side];
    const int64_t size = (side + SIZE_STEP - 1) / SIZE_STEP * SIZE_STEP;
    return size < LEAST_SIZE ? LEAST_SIZE : size;
}

/** Leave out what is broken. */
static clv_status check_pictures(pictures *own, clv__error *error) {
    const size_t all = own->list.count;
    size_t n = 0;
    for (size_t i = 0; i < all; i++) {
        const clv_status status = check_picture(own, i, error);
        if (status == CLV_E_HOST_MEMORY || status == CLV_E_UNSUPPORTED || (status != CLV_OK && own->strict))
            return status;
        if (status == CLV_OK)
            clv__image_list_move(&own->list, i, n++);
        else
            note_broken(own, -1, error);
    }
    own->list.count = n;
    if (n) return CLV_OK;
    const char *of = own->alone ? "" : " of '", *folder = own->alone ? "" : own->list.folder,
               *end = own->alone ? "" : "'", *first = own->first ? own->first : "no host memory";
    if (all == 1)
        CLV_FAIL(error, CLV_E_FORMAT, "the one picture%s%s%s cannot be read: %s", of, folder, end, first);
    CLV_FAIL(error, CLV_E_FORMAT, "none of the %zu pictures%s%s%s can be read; the first: %s", all, of,
             folder, end, first);
}

/** `given`: what the caller says, where it may leave the size out; `config`: with defaults. */
static clv_status finish(pictures *own, clv__error *error, const clv_image_folder_config *given,
                         clv_image_folder_config *config) {
    keep_some(&own->list, config->limit);
    CLV_TRY(check_pictures(own, error));
    if (!own->alone && !config->like && !(given && (given->size || given->resize))) {
        config->size = own_size(own);
        config->resize = usual_resize(config->size);
    }
    clv__transforms_init(&own->transforms, config->size, config->resize, &config->augment, config->mean,
                         config->std);
    own->broken = clv__alloc(own->list.count, sizeof *own->broken);
    if (!own->broken) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for %zu pictures", own->list.count);
    const int64_t n = (int64_t)own->list.n_classes;
    const bool several = own->list.targets != NULL;
    own->common.sample = CLV_SHAPE(3, config->size, config->size);
    own->common.numel = 3 * config->size * config->size;
    own->common.target = several ? CLV_SHAPE(n) : (clv_shape){0};
    own->common.target_numel = several ? n : 1;
    own->common.target_dtype = several ? CLV_DTYPE_F32 : CLV_DTYPE_I32;
    own->common.dtype = CLV_DTYPE_F32;
    own->common.count = (int64_t)own->list.count;
    own->common.classes = several ? 0 : (int)n;
    own->common.names = own->list.classes;
    own->common.n_names = own->list.n_classes;
    own->common.norm.channels = 3;
    memcpy(own->common.norm.mean, config->mean, sizeof config->mean);
    memcpy(own->common.norm.std, config->std, sizeof config->std);
    own->common.resize = config->resize;
    own->common.exif_transpose = config->exif_transpose;
    return CLV_OK;
}

/** What was wrong with it so far. */
static clv_image_folder_info look_back(const clv_dataset *dataset) {
    const pictures *own = (const pictures *)dataset;
    clv_image_folder_info info = own->list.rest;
    info.passed_over = clv__image_list_rest(&own->list);
    info.broken = own->n_broken;
    info.first_broken = own->first; // stays what it is
    return info;
}

/** Nothing is listed yet. */
static pictures *make(const clv_image_folder_config *config) {
    pictures *own = clv__alloc(1, sizeof *own);
    if (!own) return NULL;
    pthread_mutex_init(&own->lock, NULL);
    own->strict = config->strict;
    own->draft = config->draft;
    own->exif = config->exif_transpose;
    own->common.read = read_pictures;
    own->common.draw = draw_picture;
    own->common.bytes = bytes_of_pictures;
    own->common.digest = digest_pictures;
    own->common.workers = config->workers;
    own->common.destroy = destroy_pictures;
    own->common.folder = look_back;
    return own;
}

/** The names that classes or columns must be of; *known stays NULL where there are none. */
static clv_status known_names(clv__error *error, const clv_image_folder_config *config,
                              clv__known_names *names, const clv__known_names **known) {
    const pictures *like = pictures_of(config->like);
    *known = config->like || config->classes ? names : NULL;
    if (config->like && config->classes)
        CLV_FAIL(error, CLV_E_VALUE, "`like` and `classes` both say which classes there are: give one");
    if (config->classes && config->n_classes < 1)
        CLV_FAIL(error, CLV_E_VALUE, "`classes` has %d names", config->n_classes);
    if (config->like && (!like || !like->list.targets != !config->labels))
        CLV_FAIL(
            error, CLV_E_VALUE,
            "`like` is a folder of pictures: with classes for another such folder, or with a table of labels "
            "for another table");
    *names = like ? (clv__known_names){like->list.classes, like->list.n_classes, like->list.folder}
                  : (clv__known_names){config->classes, (size_t)config->n_classes, NULL};
    return CLV_OK;
}

/** What was listed becomes a dataset. */
static clv_status complete(pictures *own, clv_status status, clv__error *error,
                           const clv_image_folder_config *given, clv_image_folder_config *config,
                           clv_dataset **out) {
    if (status == CLV_OK) status = finish(own, error, given, config);
    if (status == CLV_OK)
        *out = &own->common;
    else
        destroy_pictures(&own->common);
    return status;
}

static clv_status check(clv__error *error, const clv_image_folder_config *config) {
    CLV_TRY(clv__image_built(error));
    return check_config(error, config);
}

clv_status clv_dataset_image_folder(clv_runtime *runtime, const char *folder,
                                    const clv_image_folder_config *config, clv_dataset **out) {
    CLV_TRY(CLV__GIVEN(NULL, runtime)); // keeps what is wrong with a picture
    clv__error *error = clv__io_error(runtime);
    CLV_TRY(CLV__GIVEN(error, folder));
    CLV_TRY(CLV__GIVEN(error, out));
    *out = NULL;
    clv_image_folder_config own = with_defaults(config);
    clv__known_names names;
    const clv__known_names *known;
    CLV_TRY(check(error, &own));
    CLV_TRY(known_names(error, &own, &names, &known));
    pictures *made = make(&own);
    if (!made) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a dataset");
    const clv_status status = own.labels
                                  ? clv__image_list_table(error, folder, own.labels, known, &made->list)
                                  : clv__image_list_classes(error, folder, known, own.strict, &made->list);
    return complete(made, status, error, config, &own, out);
}

clv_status clv_dataset_image_files(clv_runtime *runtime, const char *const *paths, int n,
                                   const clv_image_folder_config *config, clv_dataset **out) {
    CLV_TRY(CLV__GIVEN(NULL, runtime)); // keeps what is wrong with a picture
    clv__error *error = clv__io_error(runtime);
    CLV_TRY(CLV__GIVEN(error, paths));
    CLV_TRY(CLV__GIVEN(error, out));
    *out = NULL;
    clv_image_folder_config own = with_defaults(config);
    if (n < 1) CLV_FAIL(error, CLV_E_VALUE, "clv_dataset_image_files: %d paths", n);
    for (int i = 0; i < n; i++) CLV_TRY(CLV__GIVEN(error, paths[i]));
    if (own.labels || own.classes || own.like)
        CLV_FAIL(error, CLV_E_VALUE,
                 "clv_dataset_image_files: pictures alone have no `labels`, `classes` or `like`");
    CLV_TRY(check(error, &own));
    pictures *made = make(&own);
    if (!made) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a dataset");
    made->alone = true;
    return complete(made, clv__image_list_files(error, paths, (size_t)n, &made->list), error, config, &own,
                    out);
}

const char *clv_image_folder_file(const clv_dataset *dataset, int64_t i, bool *broken) {
    pictures *own = (pictures *)pictures_of(dataset);
    if (broken) *broken = false;
    if (!own || i < 0 || i >= dataset->count) return NULL;
    pthread_mutex_lock(&own->lock);
    if (broken) *broken = own->broken[i];
    pthread_mutex_unlock(&own->lock);
    return own->list.files[i];
}
