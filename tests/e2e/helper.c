// SPDX-License-Identifier: Apache-2.0
// What the end-to-end scripts need beyond a shell: arrays to train on, a look into JSON and safetensors.
//   helper images N FILE [DIM...]  float32 [N,1,28,28] as .npy, made up of classes that can be learned; or [N,DIM...]
//   helper labels N FILE [ROW=V]   int64 [N] as .npy; the label of one row replaced
//   helper labels N FILE %C+A      the labels modulo C, plus A
//   helper tokens N T FILE         int32 [N,T] as .npy, of those from 0 to 9
//   helper idx FOLDER N ROW=V      Fashion-MNIST's four files with N images each, one training label replaced
//   helper tensors A B             each tensor of A: `NAME same` if B has it with the same bits, else `NAME other`
//   helper json PATH...            stdin must be exactly one JSON value; prints what stands at each a.b.0.c
//   helper lines PATH              stdin must be one JSON object a line; prints what stands at the path of each step
//   helper trace FILE              a Chrome trace that is whole: prints who|category|layer|op of each slice, who|memory of each count
//   helper fields N FILE [NAME]    `a` [N,2], `b` [N], and to be learnt of them `price` [N] and `kind` [N], of three
//                                  classes, as .npz; or that one alone as .npy; `fish`: all, and an index `word`; `dear`: all, large prices
//   helper told A.npz B.npz NAME   results A beside targets B: the part of classes that is right, or the mean |difference|
//   helper shapes FILE             names and shapes of a safetensors or an .npz file
//   helper near A.npy B.npy X      the largest difference is at most X
//   helper close A B X             the same for all tensors of two safetensors files
//   helper forge A B KEY=TEXT...   checkpoint A as B, with other texts and a checksum that is right
//   helper bare A B [NAME[=V]]     weights A as B without their texts, as other programs write them; the first number of one is
//                                  V, or NaN, then, and texts stay
//   helper told_by FILE KEY        a text of a safetensors file
//   helper bitmaps FOLDER X Y X2   pictures of 16 x 16 in FOLDER/one and FOLDER/two; the bytes of their middles, as `--image-size 14`
//                                  cuts them out, [8,3,14,14] u8; labels [8]; and the same with channels last
//   helper likeliest LOGITS.npy    `CLASS,PROBABILITY` of each row, its probability to three digits
//   helper last COMMAND...         runs it, and of an option that is there twice, with a value, only the last
#include "io/formats.h"

#include <cleave/cleave.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static clv_runtime *runtime;

static void must(clv_status status) {
    if (status == CLV_OK) return;
    fprintf(stderr, "helper: %s\n", clv_runtime_error(runtime));
    exit(1);
}

static int die(const char *sentence) {
    fprintf(stderr, "helper: %s\n", sentence);
    exit(1);
}

static int label_of(int64_t i) {
    return (int)((i * 7 + i / 10) % 10);
}

static unsigned pixel(int64_t i, int64_t j) {
    unsigned noise = (unsigned)(i * 784 + j) * 2654435761u >> 26;
    return noise + (j / 78 == label_of(i) ? 150 : 0);
}

static int images(int64_t n, const char *path, int sizes, char **size) {
    clv_array array;
    clv_shape shape = CLV_SHAPE(n, 1, 28, 28);
    if (sizes) shape.rank = sizes + 1;
    for (int i = 0; i < sizes; i++) shape.dims[i + 1] = atol(size[i]);
    int64_t each = clv_shape_numel(&shape) / n;
    must(clv_array_init(runtime, CLV_DTYPE_F32, &shape, &array));
    for (int64_t i = 0; i < n * each; i++)
        ((float *)array.data)[i] = (float)pixel(i / each, i % each) / 128.0f - 0.5f;
    must(clv_npy_write(runtime, &array, path));
    clv_array_reset(&array);
    return 0;
}

static int labels(int64_t n, const char *path, const char *change) {
    clv_array array;
    clv_shape shape = CLV_SHAPE(n);
    must(clv_array_init(runtime, CLV_DTYPE_I64, &shape, &array));
    long row, value, classes = 10, first = 0;
    if (change) sscanf(change, "%%%ld+%ld", &classes, &first);
    for (int64_t i = 0; i < n; i++) ((int64_t *)array.data)[i] = label_of(i) % classes + first;
    if (change && sscanf(change, "%ld=%ld", &row, &value) == 2) ((int64_t *)array.data)[row] = value;
    must(clv_npy_write(runtime, &array, path));
    clv_array_reset(&array);
    return 0;
}

/** n rows of tokens, of those from 0 to 9. */
static int tokens(int64_t n, int64_t each, const char *path) {
    clv_array array;
    clv_shape shape = CLV_SHAPE(n, each);
    must(clv_array_init(runtime, CLV_DTYPE_I32, &shape, &array));
    for (int64_t i = 0; i < n * each; i++) ((int32_t *)array.data)[i] = (int32_t)(i * 7 % 10);
    must(clv_npy_write(runtime, &array, path));
    clv_array_reset(&array);
    return 0;
}

static void put_u32(FILE *file, uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) fputc((int)(value >> shift & 255), file);
}

static int idx(const char *folder, int64_t n, const char *change) {
    long row = -1, value = 0;
    if (change) sscanf(change, "%ld=%ld", &row, &value);
    for (int set = 0; set < 2; set++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s-images-idx3-ubyte", folder, set ? "t10k" : "train");
        FILE *file = fopen(path, "wb");
        if (!file) return die("cannot write an IDX file");
        put_u32(file, 0x803), put_u32(file, (uint32_t)n), put_u32(file, 28), put_u32(file, 28);
        for (int64_t i = 0; i < n * 784; i++) fputc((int)pixel(i / 784, i % 784), file);
        fclose(file);
        snprintf(path, sizeof path, "%s/%s-labels-idx1-ubyte", folder, set ? "t10k" : "train");
        file = fopen(path, "wb");
        if (!file) return die("cannot write an IDX file");
        put_u32(file, 0x801), put_u32(file, (uint32_t)n);
        for (int64_t i = 0; i < n; i++) fputc(!set && i == row ? (int)value : label_of(i), file);
        fclose(file);
    }
    return 0;
}

/** Print what stands at a path of keys and positions. */
static int print_at(const json_t *value, const char *path) {
    char key[256];
    for (const char *at = path; value && *at;) {
        size_t length = strcspn(at, ".");
        snprintf(key, sizeof key, "%.*s", (int)length, at);
        value = json_is_array(value) ? json_array_get(value, (size_t)atoi(key)) : json_object_get(value, key);
        at += length + (at[length] == '.');
    }
    if (!value) {
        fprintf(stderr, "helper: nothing at %s\n", path);
        return 1;
    }
    if (json_is_string(value))
        puts(json_string_value(value));
    else if (json_is_array(value))
        printf("array of %zu\n", json_array_size(value));
    else if (json_is_object(value))
        printf("object of %zu\n", json_object_size(value));
    else if (json_is_real(value))
        printf("%.17g\n", json_real_value(value));
    else if (json_is_integer(value))
        printf("%lld\n", (long long)json_integer_value(value));
    else
        puts(json_is_true(value) ? "true" : json_is_false(value) ? "false" : "null");
    return 0;
}

static int json(int n, char **paths) {
    json_error_t error;
    json_t *root = json_loadf(stdin, JSON_REJECT_DUPLICATES, &error); // also refuses anything after the value
    if (!root) return die(error.text);
    int failed = json_is_object(root) ? 0 : die("no JSON object");
    for (int i = 0; i < n; i++) failed |= print_at(root, paths[i]);
    json_decref(root);
    return failed;
}

static int lines(const char *path) {
    static char line[65536];
    int failed = 0;
    while (!failed && fgets(line, sizeof line, stdin)) {
        json_error_t error;
        json_t *root = json_loads(line, JSON_REJECT_DUPLICATES, &error);
        if (!root) return die(error.text);
        if (!json_object_get(root, "event")) failed = print_at(root, path);
        json_decref(root);
    }
    return failed;
}

/** The name that a process was given. */
static const char *process_name(const json_t *events, int64_t process) {
    size_t i;
    const json_t *event;
    json_array_foreach(events, i, event) {
        if (strcmp(json_string_value(json_object_get(event, "ph")), "M") ||
            strcmp(json_string_value(json_object_get(event, "name")), "process_name") ||
            json_integer_value(json_object_get(event, "pid")) != process)
            continue;
        return json_string_value(json_object_get(json_object_get(event, "args"), "name"));
    }
    return NULL;
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/** Check a slice, and that it begins after the one before on its thread has ended. */
static int check_slice(const json_t *event, const char *who, double *ends) {
    const json_t *args = json_object_get(event, "args");
    double start = json_number_value(json_object_get(event, "ts")),
           length = json_number_value(json_object_get(event, "dur"));
    int64_t process = json_integer_value(json_object_get(event, "pid")),
            thread = json_integer_value(json_object_get(event, "tid"));
    const char *category = text_of(event, "cat");
    if (!json_is_number(json_object_get(event, "ts")) || !json_is_number(json_object_get(event, "dur")) ||
        start < 0 || length < 0)
        return die("a slice without times");
    const json_t *trains = json_object_get(args, "trains");
    if (json_integer_value(json_object_get(args, "step")) < 1) return die("a slice without a step");
    if (json_integer_value(json_object_get(args, "run")) < 1 || !json_is_boolean(trains))
        return die("a slice without a run");
    if ((!strcmp(category, "backward") || !strcmp(category, "update")) && !json_is_true(trains))
        return die("a run that does not train goes backward");
    if (process < 0 || process >= 32 || thread < 0 || thread >= 4)
        return die("too many processes or threads");
    // one queue in its order; uploads go by another
    double *end = &ends[process * 4 + thread];
    if (thread == 1 && start < *end - 0.001) return die("slices of one queue overlap");
    if (start + length > *end) *end = start + length;
    if (!strcmp(category, "host"))
        printf("%s|%s||%s|%s\n", who, category, text_of(event, "name"),
               json_is_true(trains) ? "training" : "not training");
    else
        printf("%s|%s|%s|%s|%s\n", who, category, text_of(args, "layer"), text_of(args, "op"),
               text_of(args, "variant"));
    return 0;
}

static int check_count(const json_t *event, const char *who) {
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(event, "args"), key, value) {
        if (!json_is_integer(value) || json_integer_value(value) < 0) return die("a count that is none");
    }
    printf("%s|memory\n", who);
    return 0;
}

static int trace(const char *path) {
    json_error_t error;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!root) return die(error.text);
    const json_t *events = json_object_get(root, "traceEvents"), *event;
    double ends[32 * 4] = {0};
    int failed = json_is_array(events) && json_array_size(events) ? 0 : die("no events");
    size_t i;
    json_array_foreach(events, i, event) {
        const char *phase = text_of(event, "ph"),
                   *who = process_name(events, json_integer_value(json_object_get(event, "pid")));
        if (!who || !*text_of(event, "name")) return die("an event without a process or a name");
        if (!strcmp(phase, "X"))
            failed |= check_slice(event, who, ends);
        else if (!strcmp(phase, "C"))
            failed |= check_count(event, who);
        else if (strcmp(phase, "M"))
            return die("an event of a kind that is not expected");
    }
    json_decref(root);
    return failed;
}

static clv_archive *read_any(const char *path) {
    clv_archive *archive;
    const size_t n = strlen(path);
    if (n > 4 && !strcmp(path + n - 4, ".npz"))
        must(clv_npz_read(runtime, path, &archive));
    else
        must(clv_safetensors_read(runtime, path, &archive));
    return archive;
}

static int fields(int64_t n, const char *path, const char *only) {
    clv_archive *archive;
    clv_array *a, *b, *kind, *price;
    clv_shape pairs = CLV_SHAPE(n, 2), one = CLV_SHAPE(n);
    must(clv_archive_create(runtime, &archive));
    must(clv_archive_add(archive, "a", CLV_DTYPE_F32, &pairs, NULL, &a));
    must(clv_archive_add(archive, "b", CLV_DTYPE_F32, &one, NULL, &b));
    must(clv_archive_add(archive, "kind", CLV_DTYPE_I64, &one, NULL, &kind));
    must(clv_archive_add(archive, "price", CLV_DTYPE_F32, &one, NULL, &price));
    const bool dear = only && !strcmp(only, "dear");       // prices in hundreds of thousands
    const bool ignored = only && !strcmp(only, "ignored"); // every fourth kind is -100
    if (dear || ignored) only = NULL;
    if (only && !strcmp(only, "fish")) { // all of them, and an index
        clv_array *word;
        must(clv_archive_add(archive, "word", CLV_DTYPE_I32, &one, NULL, &word));
        for (int64_t i = 0; i < n; i++) ((int32_t *)word->data)[i] = (int32_t)(i % 5);
        only = NULL;
    }
    for (int64_t i = 0; i < n; i++) {
        const float x = (float)(i * 37 % 101) / 50 - 1, y = (float)(i * 53 % 97) / 48 - 1,
                    z = (float)(i * 29 % 89) / 44 - 1, told = x - 2 * y + z;
        ((float *)a->data)[2 * i] = x, ((float *)a->data)[2 * i + 1] = y, ((float *)b->data)[i] = z;
        ((float *)price->data)[i] = dear ? 430000 + 100000 * told : told;
        ((int64_t *)kind->data)[i] = ignored && i % 4 == 1 ? -100 : told < -1 ? 0 : told < 1 ? 1 : 2;
    }
    must(only ? clv_npy_write(runtime, clv_archive_find(archive, only), path) : clv_npz_write(archive, path));
    clv_archive_destroy(archive);
    return 0;
}

static int told(const char *results, const char *targets, const char *name) {
    clv_archive *a = read_any(results), *b = read_any(targets);
    const clv_array *got = clv_archive_find(a, name), *want = clv_archive_find(b, name);
    if (!got || !want) return die("no such array in both files");
    const int64_t n = clv_shape_numel(&want->shape), each = clv_shape_numel(&got->shape) / n;
    const float *values = got->data;
    double sum = 0;
    for (int64_t i = 0; i < n; i++, values += each) {
        int64_t best = 0;
        for (int64_t c = 1; c < each; c++) best = values[c] > values[best] ? c : best;
        sum += want->type == CLV_DTYPE_I64 ? best == ((const int64_t *)want->data)[i]
                                           : fabs((double)*values - (double)((const float *)want->data)[i]);
    }
    printf("%.6f\n", sum / (double)n);
    clv_archive_destroy(a);
    clv_archive_destroy(b);
    return 0;
}

static int shapes(const char *path) {
    clv_archive *archive = read_any(path);
    for (size_t i = 0; clv_archive_get(archive, i); i++) {
        const clv_array *array = clv_archive_get(archive, i);
        char text[96];
        printf("%s %s\n", array->name, clv_shape_text(&array->shape, text, sizeof text));
    }
    clv_archive_destroy(archive);
    return 0;
}

/** Each tensor of one file in name order: the same bits in the other, or others. */
static int tensors(const char *one, const char *other) {
    clv_archive *a, *b;
    must(clv_safetensors_read(runtime, one, &a));
    must(clv_safetensors_read(runtime, other, &b));
    for (size_t i = 0; clv_archive_get(a, i); i++) { // stand in the file by name
        const clv_array *array = clv_archive_get(a, i), *there = clv_archive_find(b, array->name);
        bool same = there && clv_shape_equal(&array->shape, &there->shape) &&
                    !memcmp(array->data, there->data, clv_array_bytes(array));
        printf("%s %s\n", array->name, same ? "same" : "other");
    }
    clv_archive_destroy(a);
    clv_archive_destroy(b);
    return 0;
}

static double largest_difference(const clv_array *a, const clv_array *b) {
    if (!clv_shape_equal(&a->shape, &b->shape)) die("shapes differ");
    double worst = 0;
    for (int64_t i = 0; i < clv_shape_numel(&a->shape); i++) {
        double difference = fabs((double)((float *)a->data)[i] - ((float *)b->data)[i]);
        if (!(difference <= worst)) worst = difference;
    }
    return worst;
}

static int near(const char *one, const char *other, double allowed) {
    clv_array a, b;
    must(clv_npy_read(runtime, one, &a));
    must(clv_npy_read(runtime, other, &b));
    double worst = largest_difference(&a, &b);
    clv_array_reset(&a);
    clv_array_reset(&b);
    printf("%g\n", worst);
    return worst <= allowed ? 0 : 1;
}

static int close_weights(const char *one, const char *other, double allowed) {
    clv_archive *a, *b;
    must(clv_safetensors_read(runtime, one, &a));
    must(clv_safetensors_read(runtime, other, &b));
    double worst = 0;
    if (clv_archive_count(a) != clv_archive_count(b)) die("one has more tensors");
    for (size_t i = 0; clv_archive_get(a, i); i++) {
        const clv_array *array = clv_archive_get(a, i), *twin = clv_archive_find(b, array->name);
        if (!twin) return die("a tensor is missing");
        double difference = largest_difference(array, twin);
        if (!(difference <= worst)) worst = difference;
    }
    clv_archive_destroy(a);
    clv_archive_destroy(b);
    printf("%g\n", worst);
    return worst <= allowed ? 0 : 1;
}

static int forge(const char *from, const char *to, int n, char **changes) {
    clv_archive *archive = NULL;
    must(clv__checkpoint_read_file(runtime, from, &archive));
    for (int i = 0; i < n; i++) {
        char *text = strchr(changes[i], '=');
        if (!text) return die("no KEY=TEXT");
        *text = 0;
        must(clv_archive_set_text(archive, changes[i], text + 1));
    }
    must(clv__checkpoint_write(archive, to));
    clv_archive_destroy(archive);
    return 0;
}

static int bare(const char *from, const char *to, char *name) {
    clv_archive *archive = NULL, *copy = NULL;
    char *value = name ? strchr(name, '=') : NULL;
    if (value) *value++ = 0;
    must(clv_safetensors_read(runtime, from, &archive));
    must(clv_archive_create(runtime, &copy));
    for (size_t i = 0; clv_archive_get(archive, i); i++) {
        clv_array *array = clv_archive_get(archive, i);
        if (name && !strcmp(array->name, name)) *(float *)array->data = value ? strtof(value, NULL) : NAN;
        must(clv_archive_add(copy, array->name, array->type, &array->shape, array->data, NULL));
    }
    must(clv_safetensors_write(name ? archive : copy, to));
    clv_archive_destroy(copy);
    clv_archive_destroy(archive);
    return 0;
}

static int told_by(const char *path, const char *key) {
    clv_archive *archive = NULL;
    must(clv_safetensors_read(runtime, path, &archive));
    const char *text = clv_archive_text(archive, key);
    if (text) puts(text);
    clv_archive_destroy(archive);
    return text ? 0 : die("no such text");
}

static unsigned char colour(int i, int c, int y, int x) {
    return (unsigned char)(((unsigned)(i * 3 + c) * 256 + (unsigned)(y * 16 + x)) * 2654435761u >> 25) +
           (c == i / 4 ? 120 : 10);
}

/** A bitmap of 24 bits, lowest row first, blue first. Source: Microsoft, BITMAPINFOHEADER */
static void bitmap(const char *folder, int i) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s/%d.bmp", folder, i < 4 ? "one" : "two", i);
    const unsigned char head[54] = {
        'B', 'M', 54, 3, [10] = 54, [14] = 40, [18] = 16, [22] = 16, [26] = 1, [28] = 24};
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(head, 1, sizeof head, file) != sizeof head) die("cannot write a bitmap");
    for (int y = 15; y >= 0; y--)
        for (int x = 0; x < 16; x++)
            for (int c = 2; c >= 0; c--) fputc(colour(i, c, y, x), file);
    if (fclose(file)) die("cannot write a bitmap");
}

static int bitmaps(const char *folder, char **arrays) {
    static unsigned char first[8][3][14][14], last[8][14][14][3], label[8];
    for (int i = 0; i < 8; i++) {
        bitmap(folder, i);
        label[i] = i >= 4;
        for (int at = 0; at < 14 * 14 * 3; at++) {
            const int c = at % 3, x = at / 3 % 14, y = at / 42;
            first[i][c][y][x] = last[i][y][x][c] = colour(i, c, y + 1, x + 1);
        }
    }
    clv_array made[] = {{.type = CLV_DTYPE_U8, .shape = CLV_SHAPE(8, 3, 14, 14), .data = first},
                        {.type = CLV_DTYPE_U8, .shape = CLV_SHAPE(8), .data = label},
                        {.type = CLV_DTYPE_U8, .shape = CLV_SHAPE(8, 14, 14, 3), .data = last}};
    for (int i = 0; i < 3; i++) must(clv_npy_write(runtime, &made[i], arrays[i]));
    return 0;
}

static int likeliest(const char *path) {
    clv_array array = {0};
    must(clv_npy_read(runtime, path, &array));
    const int64_t n = array.shape.dims[1];
    for (int64_t r = 0; r < array.shape.dims[0]; r++) {
        const float *row = (const float *)array.data + r * n;
        double sum = 0;
        int64_t best = 0;
        for (int64_t i = 1; i < n; i++)
            if (row[i] > row[best]) best = i;
        for (int64_t i = 0; i < n; i++) sum += exp((double)(row[i] - row[best]));
        printf("%lld,%.3f\n", (long long)best, 1 / sum);
    }
    clv_array_reset(&array);
    return 0;
}

/** Is there a value behind the word, so that the two are an option? */
static int has_value(char *const *words, int i, int n) {
    return !strncmp(words[i], "--", 2) && i + 1 < n && strncmp(words[i + 1], "--", 2) != 0;
}

static int last(int n, char **words) {
    int kept = 0;
    for (int i = 0; i < n; i++) {
        int again = 0;
        for (int j = i + 1; has_value(words, i, n) && j < n; j++)
            again |=
                has_value(words, j, n) && !strcmp(words[i], words[j]) && strcmp(words[i], "--budget") != 0;
        if (again)
            i++;
        else
            words[kept++] = words[i];
    }
    words[kept] = NULL;
    execvp(words[0], words);
    return die("the command cannot be run");
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "last") && argc > 2) return last(argc - 2, argv + 2);
    clv_runtime_config config = {.no_opencl = true, .visible_devices = "", .partition = ""};
    must(clv_runtime_create(&config, &runtime));
    int failed;
    if (!strcmp(what, "images") && argc >= 4 && argc < 4 + CLV_MAX_RANK)
        failed = images(atol(argv[2]), argv[3], argc - 4, argv + 4);
    else if (!strcmp(what, "labels") && argc >= 4)
        failed = labels(atol(argv[2]), argv[3], argv[4]);
    else if (!strcmp(what, "tokens") && argc == 5)
        failed = tokens(atol(argv[2]), atol(argv[3]), argv[4]);
    else if (!strcmp(what, "idx") && argc >= 4)
        failed = idx(argv[2], atol(argv[3]), argv[4]);
    else if (!strcmp(what, "json"))
        failed = json(argc - 2, argv + 2);
    else if (!strcmp(what, "lines") && argc == 3)
        failed = lines(argv[2]);
    else if (!strcmp(what, "trace") && argc == 3)
        failed = trace(argv[2]);
    else if (!strcmp(what, "fields") && argc >= 4)
        failed = fields(atol(argv[2]), argv[3], argv[4]);
    else if (!strcmp(what, "told") && argc == 5)
        failed = told(argv[2], argv[3], argv[4]);
    else if (!strcmp(what, "shapes") && argc == 3)
        failed = shapes(argv[2]);
    else if (!strcmp(what, "tensors") && argc == 4)
        failed = tensors(argv[2], argv[3]);
    else if (!strcmp(what, "near") && argc == 5)
        failed = near(argv[2], argv[3], atof(argv[4]));
    else if (!strcmp(what, "close") && argc == 5)
        failed = close_weights(argv[2], argv[3], atof(argv[4]));
    else if (!strcmp(what, "bare") && (argc == 4 || argc == 5))
        failed = bare(argv[2], argv[3], argc == 5 ? argv[4] : NULL);
    else if (!strcmp(what, "told_by") && argc == 4)
        failed = told_by(argv[2], argv[3]);
    else if (!strcmp(what, "bitmaps") && argc == 6)
        failed = bitmaps(argv[2], argv + 3);
    else if (!strcmp(what, "likeliest") && argc == 3)
        failed = likeliest(argv[2]);
    else if (!strcmp(what, "forge") && argc >= 4)
        failed = forge(argv[2], argv[3], argc - 4, argv + 4);
    else
        failed = die("wrong usage; see the top of helper.c");
    clv_runtime_destroy(runtime);
    return failed;
}
