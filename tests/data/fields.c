// SPDX-License-Identifier: Apache-2.0
// Datasets of named fields: what becomes of each type, whose arrays they are, batches of all of them, and what is refused.
#include <math.h>

#include "io/support.h"

#include "cleave/data.h"
#include "data/dataset.h"

enum { N = 7 };

static float numbers[N * 2], pair[N];
static uint8_t pixels[N] = {0, 255, 51, 0, 0, 0, 0};
static int64_t words[N * 3];
static int32_t kinds[N] = {2, 0, 1, 2, 0, 1, 3};

static int begin(void **state) {
    for (int i = 0; i < N; i++) {
        numbers[2 * i] = (float)i, numbers[2 * i + 1] = (float)-i, pair[i] = (float)i / 2;
        for (int k = 0; k < 3; k++) words[3 * i + k] = 10 * i + k;
    }
    return support_begin(state);
}

static clv_array borrowed(clv_dtype type, clv_shape shape, void *data) {
    return (clv_array){.type = type, .shape = shape, .data = data, .borrowed = true};
}

/** Every type there is: f32, u8 and i64 in, classes and numbers out. */
typedef struct given {
    clv_array arrays[5];
    clv_field fields[5];
} given;

static void make(given *g) {
    g->arrays[0] = borrowed(CLV_DTYPE_I32, CLV_SHAPE(N), kinds);
    g->arrays[1] = borrowed(CLV_DTYPE_F32, CLV_SHAPE(N, 2), numbers);
    g->arrays[2] = borrowed(CLV_DTYPE_U8, CLV_SHAPE(N, 1), pixels);
    g->arrays[3] = borrowed(CLV_DTYPE_F32, CLV_SHAPE(N), pair);
    g->arrays[4] = borrowed(CLV_DTYPE_I64, CLV_SHAPE(N, 3), words);
    const clv_field fields[5] = {
        {.name = "kind", .role = CLV_PORT_TARGET},
        {.name = "row", .mean = 1, .std = 2},
        {.name = "pixel"},
        {.name = "price", .role = CLV_PORT_TARGET},
        {.name = "words"},
    };
    for (int i = 0; i < 5; i++) g->fields[i] = fields[i], g->fields[i].array = &g->arrays[i];
}

static clv_dataset *dataset_of(const clv_dataset_config *config) {
    given g;
    clv_dataset *dataset;
    make(&g);
    expect_ok(clv_dataset_from_fields(support_runtime, NULL, g.fields, 5, config, &dataset));
    return dataset;
}

static void expect_port(clv_port port, const char *name, clv_dtype dtype, int64_t first, int64_t classes) {
    assert_string_equal(port.name, name);
    assert_int_equal(port.dtype, dtype);
    assert_int_equal(port.dims[0], first);
    assert_int_equal(port.classes, classes);
}

TEST(each_type_becomes_what_it_should) {
    clv_dataset *dataset = dataset_of(NULL);
    assert_int_equal(clv_dataset_info_get(dataset).n_inputs, 3);
    assert_int_equal(clv_dataset_info_get(dataset).n_targets, 2);
    expect_port(clv_dataset_port_get(dataset, CLV_PORT_INPUT, 0), "row", CLV_DTYPE_F32, 2, 0);
    expect_port(clv_dataset_port_get(dataset, CLV_PORT_INPUT, 1), "pixel", CLV_DTYPE_F32, 1, 0);
    expect_port(clv_dataset_port_get(dataset, CLV_PORT_INPUT, 2), "words", CLV_DTYPE_I32, 3, 63);
    expect_port(clv_dataset_port_get(dataset, CLV_PORT_TARGET, 0), "kind", CLV_DTYPE_I32, 0, 4);
    expect_port(clv_dataset_port_get(dataset, CLV_PORT_TARGET, 1), "price", CLV_DTYPE_F32, 0, 0);
    assert_null(clv_dataset_port_get(dataset, CLV_PORT_INPUT, 3).name);
    assert_null(clv_dataset_port_get(dataset, CLV_PORT_TARGET, -1).name);
    assert_int_equal(clv_dataset_info_get(dataset).count, N);
    assert_int_equal(clv_dataset_info_get(dataset).classes, 4); // of the first target
    assert_int_equal(clv__dataset_label(dataset, 6), 3);
    float row[2], pixel, price;
    int32_t indices[3], kind;
    clv__dataset_sample(dataset, 3, row); // of the first input
    assert_true(row[0] == 1 && row[1] == -2);
    clv_dataset_read(dataset, 1, (void *[]){row, &pixel, indices, &kind, &price});
    assert_true(row[0] == 0 && row[1] == -1 && pixel == 1 && price == 0.5f);
    assert_true(indices[0] == 10 && indices[2] == 12 && kind == 0);
    clv_dataset_read(dataset, 2, (void *[]){NULL, &pixel, NULL, NULL, NULL});
    assert_true(pixel == 51.0f / 255.0f && price == 0.5f);
    clv_dataset_destroy(dataset);
    dataset = dataset_of(&(clv_dataset_config){.limit = 2}); // classes of what is left out do not count
    assert_int_equal(clv_dataset_info_get(dataset).count, 2);
    expect_port(clv_dataset_port_get(dataset, CLV_PORT_TARGET, 0), "kind", CLV_DTYPE_I32, 0, 3);
    clv_dataset_destroy(dataset);
}

/** A dataset of one array each answers in the same words. */
TEST(others_have_one_of_each) {
    clv_dataset *dataset;
    given g;
    float row[2];
    int32_t kind;
    make(&g);
    expect_ok(clv_dataset_from_arrays(support_runtime, &g.arrays[1], &g.arrays[0], NULL, &dataset));
    assert_int_equal(clv_dataset_info_get(dataset).n_inputs, 1);
    expect_port(clv_dataset_port_get(dataset, CLV_PORT_INPUT, 0), "x", CLV_DTYPE_F32, 2, 0);
    expect_port(clv_dataset_port_get(dataset, CLV_PORT_TARGET, 0), "labels", CLV_DTYPE_I32, 0, 4);
    assert_null(clv_dataset_port_get(dataset, CLV_PORT_TARGET, 1).name);
    clv_dataset_read(dataset, 3, (void *[]){row, &kind});
    assert_true(row[0] == 3 && kind == 2);
    clv_dataset_destroy(dataset);
}

TEST(ownership_is_as_told) {
    clv_array x, y;
    expect_ok(clv_array_init(support_runtime, CLV_DTYPE_F32, SHAPE(2, 3), &x));
    expect_ok(clv_array_init(support_runtime, CLV_DTYPE_I64, SHAPE(2), &y));
    clv_field fields[] = {{.name = "x", .array = &x}, {.name = "y", .role = CLV_PORT_TARGET, .array = &y}};
    clv_dataset *dataset;
    ((int64_t *)y.data)[1] = -1; // refused: both stay the caller's
    expect_failure(clv_dataset_from_fields(support_runtime, NULL, fields, 2, NULL, &dataset), CLV_E_VALUE,
                   "field 'y': row 1 has -1, but values are 0 to 16777215");
    assert_null(dataset);
    assert_non_null(x.data);
    ((int64_t *)y.data)[1] = 1;
    expect_ok(clv_dataset_from_fields(support_runtime, NULL, fields, 2, NULL, &dataset));
    assert_true(x.data == NULL && y.data == NULL);
    clv_dataset_destroy(dataset);
    fields[1].array = &x;
    expect_ok(clv_array_init(support_runtime, CLV_DTYPE_F32, SHAPE(2, 3), &x));
    expect_failure(
        clv_dataset_from_fields(support_runtime, NULL, fields, 2, NULL, &dataset), CLV_E_VALUE,
        "fields 'x' and 'y' have the same array, and only one of them can own it; make it borrowed");
    x.borrowed = true; // an autoencoder learns what it is given
    expect_ok(clv_dataset_from_fields(support_runtime, NULL, fields, 2, NULL, &dataset));
    clv_dataset_destroy(dataset);
    x.borrowed = false;
    clv_array_reset(&x);
}

/** Of each field where it should be, in memory that was counted. */
TEST(batches_hold_all) {
    clv_dataset *dataset = dataset_of(NULL);
    clv_loader_config config = {.batch = 3, .shuffle = true, .seed = 5, .buffers = 2};
    // Each field is rounded up to 64 bytes: of three samples the largest has 36.
    clv_loader *loader;
    clv_batch batch;
    expect_ok(clv_loader_create(support_runtime, dataset, &config, &loader));
    assert_int_equal(clv_loader_info_get(loader).bytes, 2 * 5 * 64);
    int seen = 0;
    do {
        expect_ok(clv_loader_next(loader, &batch));
        assert_ptr_equal(batch.each_input[0], batch.samples);
        assert_ptr_equal(batch.each_target[0], batch.targets);
        const float *row = batch.each_input[0], *pixel = batch.each_input[1], *price = batch.each_target[1];
        const int32_t *indices = batch.each_input[2], *kind = batch.each_target[0];
        for (int64_t i = 0; i < batch.n; i++) {
            const int sample = (int)(price[i] * 2);
            seen |= 1 << sample;
            assert_true(row[2 * i] == ((float)sample - 1) / 2 && pixel[i] == (float)pixels[sample] / 255.0f);
            assert_true(indices[3 * i + 2] == 10 * sample + 2 && kind[i] == kinds[sample]);
        }
        const char *first = batch.each_input[0];
        assert_in_range((const char *)batch.each_target[1] - first, 0, 5 * 64 - 1);
        clv_loader_release(loader, &batch);
        assert_true(batch.each_input == NULL && batch.each_target == NULL);
    } while (!batch.last);
    assert_int_equal(seen, (1 << N) - 1);
    clv_loader_destroy(loader);
    clv_dataset_destroy(dataset);
}

TEST(an_archive_has_fields) {
    clv_archive *archive;
    clv_dataset *dataset;
    int32_t word[1], target;
    expect_ok(clv_npz_read(support_runtime, golden("packed.npz"), &archive));
    clv_field fields[] = {{.name = "word", .role = CLV_PORT_TARGET}, {.name = "row"}};
    expect_ok(clv_dataset_from_fields(support_runtime, archive, fields, 2, NULL, &dataset));
    clv__dataset_target(dataset, 8, &target);
    assert_int_equal(target, 3);
    clv_dataset_destroy(dataset);
    assert_non_null(clv_archive_find(archive, "row")->data); // it stays the archive's
    fields[1].name = "rows";
    expect_failure(clv_dataset_from_fields(support_runtime, archive, fields, 2, NULL, &dataset),
                   CLV_E_NOT_FOUND, "no array 'rows' in '", "packed.npz'");
    clv_array array = borrowed(CLV_DTYPE_I32, CLV_SHAPE(1), word);
    fields[1] = (clv_field){.name = "row", .array = &array};
    expect_failure(clv_dataset_from_fields(support_runtime, archive, fields, 2, NULL, &dataset), CLV_E_VALUE,
                   "field 'row' has an array of its own; this one reads it from the archive");
    expect_failure(clv_dataset_from_fields(support_runtime, archive, fields, 40, NULL, &dataset), CLV_E_VALUE,
                   "40 fields; 32 are possible");
    fields[1] = (clv_field){.name = "row"};
    const clv_array *row = clv_archive_find(archive, "row");
    ((float *)row->data)[clv_shape_numel(&row->shape) / row->shape.dims[0] * 2 + 1] = NAN; // in the third row
    expect_failure(clv_dataset_from_fields(support_runtime, archive, fields, 2, NULL, &dataset), CLV_E_VALUE,
                   "packed.npz', array 'row': element [2,1] is nan in f32, and data must be finite");
    assert_null(dataset);
    const clv_dataset_config first = {.limit = 2}; // the rows before it
    expect_ok(clv_dataset_from_fields(support_runtime, archive, fields, 2, &first, &dataset));
    clv_dataset_destroy(dataset);
    clv_archive_destroy(archive);
}

static void refuse(const given *g, int n, clv_dataset_config config, clv_status status, const char *said) {
    clv_dataset *dataset = (clv_dataset *)1;
    assert_status(clv_dataset_from_fields(support_runtime, NULL, g->fields, n, &config, &dataset), status,
                  support_runtime);
    assert_null(dataset);
    assert_string_equal(clv_runtime_error(support_runtime), said);
}

TEST(refuses_what_is_no_dataset) {
    const clv_dataset_config none = {0};
    given g;
#define REFUSED(change, n, config, status, said)                                                             \
    do {                                                                                                     \
        make(&g);                                                                                            \
        change;                                                                                              \
        refuse(&g, n, config, status, said);                                                                 \
    } while (0)
    REFUSED(, 0, none, CLV_E_VALUE, "none of 0 fields is an input");
    REFUSED(, 1, none, CLV_E_VALUE, "none of 1 fields is an input");
    REFUSED(g.fields[0].role = g.fields[3].role = CLV_PORT_INPUT, 5, none, CLV_E_VALUE,
            "none of 5 fields is a target");
    REFUSED(g.fields[4].name = "row", 5, none, CLV_E_VALUE, "two fields are called 'row'");
    REFUSED(g.fields[2].name = NULL, 5, none, CLV_E_VALUE, "field 2 has no name");
    REFUSED(g.fields[2].name = "", 5, none, CLV_E_VALUE, "field 2 has no name");
    REFUSED(g.fields[2].role = (clv_port_role)7, 5, none, CLV_E_VALUE,
            "field 'pixel' is neither an input nor a target (role 7)");
    REFUSED(g.fields[2].array = NULL, 5, none, CLV_E_VALUE, "field 'pixel' has no array");
    REFUSED(g.arrays[3].shape = CLV_SHAPE(N - 1), 5, none, CLV_E_SHAPE,
            "field 'price' has 6 samples, field 'kind' has 7");
    REFUSED(g.arrays[1].type = CLV_DTYPE_NONE, 5, none, CLV_E_DTYPE, "field 'row': the type is none");
    REFUSED(g.arrays[1].shape = clv_shape_make(0, NULL), 5, none, CLV_E_SHAPE,
            "field 'row': one number; [N,...] is wanted");
    REFUSED(g.arrays[1].shape = CLV_SHAPE(N, 0), 5, none, CLV_E_SHAPE, "field 'row': [7,0] holds no samples");
    REFUSED(g.fields[3].classes = 2, 5, none, CLV_E_VALUE,
            "field 'price' has classes, and is a target of f32: classes are whole numbers");
    REFUSED(g.fields[2].classes = 2, 5, none, CLV_E_VALUE,
            "field 'pixel' has classes, and is an input of u8: classes are whole numbers");
    REFUSED(g.fields[0].classes = -2, 5, none, CLV_E_VALUE, "field 'kind': -2 classes");
    REFUSED(g.fields[0].classes = 3, 5, none, CLV_E_VALUE,
            "field 'kind': row 6 has 3, but values are 0 to 2");
    REFUSED(g.fields[4].classes = 62, 5, none, CLV_E_VALUE,
            "field 'words': row 6 has 62, but values are 0 to 61");
    REFUSED(g.fields[4].std = 1, 5, none, CLV_E_VALUE,
            "field 'words': mean and std are for inputs of f32 or u8");
    REFUSED(g.fields[3].mean = 1, 5, none, CLV_E_VALUE,
            "field 'price': mean and std are for inputs of f32 or u8");
    REFUSED(g.fields[1].std = -1, 5, none, CLV_E_VALUE,
            "field 'row': normalisation with mean 1 and std -1: std must be above 0, both finite");
    REFUSED(, 5, ((clv_dataset_config){.limit = -1}), CLV_E_VALUE, "a limit of -1 samples: it must be >= 0");
    REFUSED(, 5, ((clv_dataset_config){.classes = 2}), CLV_E_VALUE,
            "mean, std and classes belong to each field, not to the dataset");
#undef REFUSED
    words[4] = 1ll << 40;
    make(&g);
    refuse(&g, 5, none, CLV_E_VALUE,
           "field 'words': row 1 has 1099511627776, but values are -2147483648 to 2147483647");
    words[4] = 11;
    clv_field many[CLV_MAX_PORTS + 2];
    char names[CLV_MAX_PORTS + 2][8];
    clv_dataset *dataset;
    for (int i = 0; i < CLV_MAX_PORTS + 2; i++) {
        snprintf(names[i], sizeof names[i], "f%d", i);
        many[i] = g.fields[1];
        many[i].name = names[i];
        if (i == 0) many[i] = g.fields[0];
    }
    expect_failure(clv_dataset_from_fields(support_runtime, NULL, many, CLV_MAX_PORTS + 2, NULL, &dataset),
                   CLV_E_VALUE, "17 inputs and 1 targets; 16 of each are possible");
    expect_ok(clv_dataset_from_fields(support_runtime, NULL, many, CLV_MAX_PORTS + 1, NULL, &dataset));
    clv_dataset_destroy(dataset);
}

TEST_MAIN(begin, support_end)
