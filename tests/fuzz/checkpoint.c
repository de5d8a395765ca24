// SPDX-License-Identifier: Apache-2.0
// Checkpoints whose checksum is right and whose content is chosen by any bytes: positions, settings, shapes and values of tensors.
// fuzz_checkpoint: a session takes it, or says in one sentence what is wrong. fuzz_resume (FUZZ_TRAINING), which is slow: a whole
// training goes on from it to the end that was asked for, or says so.
#define _GNU_SOURCE
#include "fuzz/fuzz.h"

#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/text.h"
#include "cleave/train.h"
#include "fuzz/memory_file.h"
#include "io/formats.h"
#include "train/state.h"
#include "train/trainer.h"

enum { SAMPLES = 5, BATCH = 2, BEFORE = 4, STEPS = 6, MOST_BYTES = 1 << 16 };

static clv_runtime *runtime;
static clv_dataset *dataset;
static char folder[] = "/dev/shm/cleave-fuzz-XXXXXX", right_path[256], path[256];
static uint8_t right[MOST_BYTES]; // a checkpoint as it should be, after step 4 of 6
static size_t n_right;
#ifndef FUZZ_TRAINING
static clv_trainer *kept;
#endif

static clv_tensor *build(clv_tensor *x, const clv_model *model) {
    return clv_nn_linear(clv_flatten(x, 1), "fc", model->classes, NULL);
}

static const clv_model model = {.name = "fuzzed", .build = build, .input = {1, 2, 2}, .classes = 2};

static void remove_folder(void) {
    char before[300];
    snprintf(before, sizeof before, "%s.prev", path);
    unlink(before);
    unlink(path);
    unlink(right_path);
    rmdir(folder);
}

/** To the end, from a checkpoint or from the beginning; the steps that are done then. */
static clv_status train(const char *resume, const char *checkpoint, int64_t steps, clv_train_result *result) {
    clv_train_config config = {.model = &model,
                               .train = dataset,
                               .batch = BATCH,
                               .steps = steps,
                               .seed = 1,
                               .optimizer = {.kind = CLV_SGD, .momentum = 0.9f},
                               .lr = 0.01,
                               .resume = resume,
                               .checkpoint = checkpoint};
    clv_trainer *trainer = NULL;
    clv_status status = clv_device_find(runtime, "host", &config.device);
    if (status == CLV_OK) status = clv_trainer_create(runtime, &config, &trainer);
    if (status == CLV_OK) status = clv_trainer_run(trainer);
    if (trainer) *result = clv_trainer_result(trainer);
#ifndef FUZZ_TRAINING
    if (checkpoint && status == CLV_OK) {
        kept = trainer; // the session that takes what is fuzzed
        return CLV_OK;
    }
#endif
    clv_trainer_destroy(trainer);
    return status;
}

static void begin(void) {
    static float images[SAMPLES * 4];
    static int32_t labels[SAMPLES];
    if (runtime) return;
    REQUIRE(mkdtemp(folder) != NULL);
    snprintf(right_path, sizeof right_path, "%s/right", folder);
    snprintf(path, sizeof path, "%s/x", folder);
    atexit(remove_folder);
    const clv_runtime_config config = {.no_opencl = true, .visible_devices = "", .partition = ""};
    REQUIRE(clv_runtime_create(&config, &runtime) == CLV_OK);
    for (int i = 0; i < SAMPLES * 4; i++) images[i] = (float)(i % 7) / 7;
    for (int i = 0; i < SAMPLES; i++) labels[i] = i % 2;
    clv_array x = {
        .type = CLV_DTYPE_F32, .shape = CLV_SHAPE(SAMPLES, 1, 2, 2), .data = images, .borrowed = true};
    clv_array y = {.type = CLV_DTYPE_I32, .shape = CLV_SHAPE(SAMPLES), .data = labels, .borrowed = true};
    REQUIRE(clv_dataset_from_arrays(runtime, &x, &y, NULL, &dataset) == CLV_OK);
    clv_train_result result;
    REQUIRE(train(NULL, right_path, BEFORE, &result) == CLV_OK && result.steps == BEFORE);
    FILE *file = fopen(right_path, "rb");
    REQUIRE(file != NULL);
    n_right = fread(right, 1, sizeof right, file);
    fclose(file);
    REQUIRE(n_right > 0 && n_right < sizeof right);
}

typedef struct choices {
    const uint8_t *data;
    size_t size, at;
} choices;

static unsigned next(choices *c) {
    return c->at < c->size ? c->data[c->at++] : 0;
}

static const char *const values[] = {"0",
                                     "1",
                                     "2",
                                     "3",
                                     "4",
                                     "5",
                                     "6",
                                     "-1",
                                     "nan",
                                     "inf",
                                     "-inf",
                                     "",
                                     "1e400",
                                     "0x7",
                                     "1 ",
                                     "9223372036854775807",
                                     "-0",
                                     "1e-9",
                                     "04",
                                     "\33",
                                     "2147483648",
                                     "-9223372036854775808",
                                     "9223372036854775808",
                                     "\"\\u0000"};

// The archive that an input spoils is read once, and set right again after each input: reading it takes as long as what is tested.
typedef struct change {
    size_t text; // which text it is, of those of an archive
    char *old;   // what it was; NULL: a tensor's
    clv_array *array, was;
    uint32_t *at, bits; // NULL: type and shape only
} change;

enum { MOST_CHANGES = 5 };

static change changes[MOST_CHANGES];
static int n_changes;
static bool has_more; // a tensor was added, which nothing takes back

static void set_right(clv_archive *archive) {
    while (n_changes > 0) {
        change *now = &changes[--n_changes];
        if (now->old) {
            const char *text, *key = clv_archive_text_at(archive, now->text, &text);
            REQUIRE(clv_archive_set_text(archive, key, now->old) == CLV_OK);
            free(now->old);
        } else {
            if (now->at) *now->at = now->bits;
            now->array->shape = now->was.shape;
            now->array->type = now->was.type;
        }
    }
}

static void spoil_text(choices *c, clv_archive *archive) {
    size_t n = 0;
    const char *text, *key;
    while (clv_archive_text_at(archive, n, &text)) n++;
    REQUIRE(n > 0);
    const size_t which = next(c) % n;
    key = clv_archive_text_at(archive, which, &text);
    changes[n_changes] = (change){.text = which, .old = strdup(text)};
    REQUIRE(changes[n_changes++].old != NULL);
    unsigned what = next(c);
    char own[16] = "";
    if (what >= 128) // what stands there, or something near
        snprintf(own, sizeof own, "%lld", strtoll(text, NULL, 10) % 1000000000000 + (int)(what % 16) - 8);
    REQUIRE(clv_archive_set_text(archive, key,
                                 *own ? own : values[what % (sizeof values / sizeof *values)]) == CLV_OK);
}

static void spoil_tensor(choices *c, clv_archive *archive) {
    static const uint32_t bits[] = {0x7fc00000, 0x7f800000, 0xff800000, 0x7f7fffff,
                                    1,          0x80000000, 0x3f800000};
    clv_array *array = clv_archive_get(archive, next(c) % clv_archive_count(archive));
    unsigned what = next(c);
    const size_t n = clv_array_bytes(array) / 4;
    change *now = &changes[n_changes++];
    *now = (change){.array = array, .was = *array};
    if (what < 64 && n) {
        now->at = (uint32_t *)array->data + next(c) % n;
        now->bits = *now->at;
        *now->at = bits[what % 7];
    } else if (what < 128 && array->shape.rank > 0) {
        int64_t *dim = &array->shape.dims[what % (unsigned)array->shape.rank];
        if (*dim > 1) --*dim; // its storage is not too small
    } else if (what < 160 && array->shape.rank == 2) {
        int64_t rows = array->shape.dims[0]; // the same values in another shape
        array->shape.dims[0] = array->shape.dims[1];
        array->shape.dims[1] = rows;
    } else if (what < 192) {
        array->type = CLV_DTYPE_I32;
    } else {
        char name[32];
        clv_array *more;
        const clv_shape shape = CLV_SHAPE(what % 4);
        snprintf(name, sizeof name, "%s%u", what & 4 ? "model." : "optimizer.", next(c) % 3);
        has_more |= clv_archive_add(archive, name, CLV_DTYPE_F32, &shape, NULL, &more) ==
                    CLV_OK; // or it is there twice
    }
}

static void require_told(clv_status status) {
    const char *sentence = clv_runtime_error(runtime);
    const bool expected = status == CLV_E_FORMAT || status == CLV_E_VALUE || status == CLV_E_SHAPE ||
                          status == CLV_E_UNSUPPORTED || status == CLV_E_NOT_FINITE ||
                          status == CLV_E_NOT_FOUND || status == CLV_E_DTYPE;
    if (!expected) fprintf(stderr, "status %d: %s\n", (int)status, sentence);
    REQUIRE(expected);
    REQUIRE(status == CLV_E_NOT_FINITE || strstr(sentence, path) != NULL);
    for (const char *at = sentence; *at; at++) REQUIRE((unsigned char)*at >= 0x20 && *at != 0x7f);
}

#ifdef FUZZ_TRAINING
static void read_or_train(const clv_archive *archive, bool is_right, bool load) {
    if (clv__checkpoint_write(archive, path) != CLV_OK) return; // a text that is not UTF-8 is refused
    clv_train_result result = {0};
    const clv_status status = train(path, NULL, STEPS, &result);
    if (is_right) REQUIRE(status == CLV_OK);
    if (status == CLV_OK)
        REQUIRE(result.steps == STEPS && result.epochs >= 0);
    else
        require_told(status);
}
#else
static const char zeros[] = "xxh64:0000000000000000";

static void put(clv__text *text, const char *words) {
    clv__text_add_bytes(text, words, strlen(words));
}

static void put_string(clv__text *text, const char *string) {
    put(text, "\"");
    for (; *string; string++) {
        char escaped[8];
        const bool plain = (unsigned char)*string >= 0x20 && *string != '"' && *string != '\\';
        if (!plain) snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned char)*string);
        plain ? clv__text_add_bytes(text, string, 1) : put(text, escaped);
    }
    put(text, "\"");
}

/** The header of a checkpoint, not sorted: the library's writer takes longer than all that is tested. */
static void put_header(const clv_archive *archive, clv__text *text) {
    static const char *const types[] = {
        [CLV_DTYPE_F32] = "F32", [CLV_DTYPE_I32] = "I32", [CLV_DTYPE_I64] = "I64", [CLV_DTYPE_U8] = "U8"};
    char words[200];
    const char *key, *value;
    snprintf(words, sizeof words, "{\"__metadata__\":{\"%s\":\"%s\"", CLV__CHECKSUM_KEY, zeros);
    put(text, words);
    for (size_t i = 0; (key = clv_archive_text_at(archive, i, &value)) != NULL; i++) {
        if (strcmp(key, CLV__CHECKSUM_KEY) == 0) continue;
        put(text, ",");
        put_string(text, key);
        put(text, ":");
        put_string(text, value);
    }
    put(text, "}");
    size_t at = 0;
    for (size_t i = 0; clv_archive_get(archive, i); i++) {
        const clv_array *array = clv_archive_get(archive, i);
        put(text, ",");
        put_string(text, array->name);
        int n = snprintf(words, sizeof words, ":{\"dtype\":\"%s\",\"shape\":[", types[array->type]);
        for (int d = 0; d < array->shape.rank; d++) {
            n += snprintf(words + n, sizeof words - (size_t)n, d ? ",%" PRId64 : "%" PRId64,
                          array->shape.dims[d]);
        }
        const size_t end = at + clv_array_bytes(array);
        snprintf(words + n, sizeof words - (size_t)n, "],\"data_offsets\":[%zu,%zu]}", at, end);
        put(text, words);
        at = end;
    }
    put(text, "}");
    while (text->n % 8) put(text, " ");
}

static void put_checksum(uint8_t *file, size_t header_bytes, size_t size) {
    char digits[17], *place = memmem(file, header_bytes, zeros, sizeof zeros - 1);
    REQUIRE(place != NULL);
    snprintf(digits, sizeof digits, "%016" PRIx64, (uint64_t)XXH64(file, size, 0));
    memcpy(place + strlen("xxh64:"), digits, 16);
}

/** A checkpoint's file, in memory. */
static size_t write_to_memory(const clv_archive *archive, uint8_t *file) {
    static clv__text text; // its room is kept
    text.n = 0;
    put_header(archive, &text);
    REQUIRE(!text.failed && text.n < MOST_BYTES - 8);
    const uint64_t header = text.n;
    memcpy(file, &header, 8);
    memcpy(file + 8, text.data, header);
    size_t at = 8 + header;
    for (size_t i = 0; clv_archive_get(archive, i); i++) {
        const clv_array *array = clv_archive_get(archive, i);
        const size_t n = clv_array_bytes(array);
        REQUIRE(n <= MOST_BYTES - at);
        if (n) memcpy(file + at, array->data, n);
        at += n;
    }
    put_checksum(file, 8 + header, at);
    return at;
}

/** What clv__checkpoint_write makes of what nothing spoiled: the file that was read. */
static void require_rewritten(const clv_archive *archive) {
    static uint8_t file[MOST_BYTES];
    clv__safetensors_layout layout;
    REQUIRE(clv__safetensors_layout_init(archive, path, zeros, &layout) == CLV_OK);
    size_t at = layout.header_bytes;
    REQUIRE(at < MOST_BYTES);
    memcpy(file, layout.header, at);
    for (size_t i = 0; i < layout.n_arrays; i++) {
        const size_t n = clv_array_bytes(layout.arrays[i]);
        REQUIRE(n <= MOST_BYTES - at);
        if (n) memcpy(file + at, layout.arrays[i]->data, n);
        at += n;
    }
    put_checksum(file, layout.header_bytes, at);
    clv__safetensors_layout_reset(&layout);
    REQUIRE(at == n_right && memcmp(file, right, at) == 0);
}

/** The file is read; with `load` the session takes it too, which wakes its threads and takes five times as long. */
static void read_or_train(const clv_archive *archive, bool is_right, bool load) {
    static uint8_t file[MOST_BYTES];
    if (is_right) require_rewritten(archive);
    const size_t size = write_to_memory(archive, file);
    clv__input input;
    clv_archive *again = NULL;
    clv__input_memory(clv__io_error(runtime), path, file, size, &input);
    const clv_status is_read = clv__checkpoint_read(&input, &again);
    REQUIRE((is_read == CLV_OK) == (again != NULL));
    clv_archive_destroy(again);
    if (is_read != CLV_OK) require_told(is_read);
    if (!is_right && !load) return;
    memory_file_set(path, file, size);
    clv_train_config config = *kept->config;
    config.resume = path;
    clv__position position = {.step = -7};
    const clv_status status = clv__checkpoint_load(&config, false, kept->session, &position);
    if (is_right) REQUIRE(status == CLV_OK && position.step == BEFORE);
    if (status == CLV_OK) {
        REQUIRE(position.step >= 0 && position.epoch >= 0 && position.index >= 0 && position.loss_count >= 0);
    } else {
        REQUIRE(position.step == -7); // unchanged
        require_told(status);
        REQUIRE(strstr(clv_runtime_error(runtime), "checksum") == NULL); // it was right
    }
}
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static clv_archive *archive;
    begin();
    choices c = {data, size, 0};
    if (!archive) {
        clv__input input;
        clv__input_memory(clv__io_error(runtime), "right", right, n_right, &input);
        REQUIRE(clv__checkpoint_read(&input, &archive) == CLV_OK);
    }
    const unsigned n = next(&c) % (MOST_CHANGES + 1);
    for (unsigned i = 0; i < n; i++) next(&c) % 3 ? spoil_text(&c, archive) : spoil_tensor(&c, archive);
    unsigned sum = 0;
    for (size_t i = 0; i < size; i++) sum += data[i];
    read_or_train(archive, n == 0, sum % 8 == 0);
    set_right(archive);
    if (has_more) {
        clv_archive_destroy(archive);
        archive = NULL;
        has_more = false;
    }
    return 0;
}
