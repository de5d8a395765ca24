// SPDX-License-Identifier: Apache-2.0
// The library's own kernel sources. A program holds only the kernels that its plan wants, so each must build without the
// others of its file: it calls none of them, and needs nothing that stands between their lines.
#include "harness/harness.h"

#include "device/program.h"
#include "device/source.h"

enum { MAX_KERNELS = 400 };

typedef struct list {
    clv__launch items[MAX_KERNELS];
    const clv__launch *pointers[MAX_KERNELS];
    char names[MAX_KERNELS][64];
    size_t n;
} list;

/** Read by hand, not as the library does: every kernel that is written out at the start of a line. */
static void add_kernels(list *all, const clv__kernel_source *source) {
    for (const char *line = source->text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        if (strncmp(line, "__kernel", 8) != 0 && strncmp(line, "kernel", 6) != 0) continue;
        const char *name = strstr(line, "KERNEL(");
        assert_non_null(name);
        name += strlen("KERNEL(");
        assert_true(all->n < MAX_KERNELS);
        snprintf(all->names[all->n], sizeof all->names[0], "%.*s", (int)strcspn(name, ")"), name);
        clv__launch *launch = &all->items[all->n];
        *launch =
            (clv__launch){.kind = CLV__LAUNCH_KERNEL, .source = source->stem, .entry = all->names[all->n]};
        snprintf(launch->defines, sizeof launch->defines, "OF_ITS_OWN %zu\n", all->n); // an instance for each
        all->pointers[all->n++] = launch;
    }
}

static list *all_kernels(void) {
    list *all = calloc(1, sizeof *all);
    assert_non_null(all);
    for (const clv__kernel_source *source = clv__kernel_sources; source->stem; source++) {
        if (!source->common) add_kernels(all, source);
    }
    print_message("%zu kernels\n", all->n);
    assert_true(all->n > 80);
    return all;
}

/** Nothing stands in the way of leaving the others out. */
TEST(an_instance_of_one_kernel_holds_no_other) {
    list *all = all_kernels();
    for (size_t i = 0; i < all->n; i++) {
        const clv__launch *launch = &all->items[i];
        const clv__kernel_source *source = clv__source_find(launch->source);
        clv__instance instance = {
            .source = source, .defines = "", .kernels = clv__source_kernel(source, launch->entry)};
        clv__text text = {0};
        clv__source_add(&text, &instance);
        list *left = calloc(1, sizeof *left);
        assert_non_null(left);
        const clv__kernel_source kept = {.stem = source->stem, .text = clv__text_get(&text)};
        add_kernels(left, &kept);
        if (left->n != 1 || strcmp(left->names[0], launch->entry) != 0)
            fail_msg("%s.cl: with %s alone there are %zu kernels", launch->source, launch->entry, left->n);
        assert_true(clv__source_bytes(&instance) <= source->bytes);
        free(left);
        clv__text_reset(&text);
    }
    free(all);
}

/** Files leave their macros defined: an instance ends with an #undef for each, and for each of its defines. */
TEST(an_instance_leaves_no_macro_defined) {
    size_t n = 0;
    for (const clv__kernel_source *source = clv__kernel_sources; source->stem; source++) {
        if (source->common) continue;
        const clv__instance instance = {.source = source, .defines = "SAID 1\n", .kernels = ~UINT64_C(0)};
        clv__text text = {0};
        clv__source_add(&text, &instance);
        const char *line = clv__text_get(&text);
        for (; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
            char name[64], undef[80];
            if (sscanf(line, " # define %63[A-Za-z0-9_]", name) != 1) continue;
            snprintf(undef, sizeof undef, "\n#undef %s\n", name);
            if (!strstr(line, undef)) fail_msg("%s.cl: %s is still defined behind it", source->stem, name);
            n++;
        }
        clv__text_reset(&text);
    }
    assert_true(n > 100);
}

/** What is remembered of a kernel is what its file says; kernels of one name in two files are two. */
TEST(a_kernel_is_found_again_as_at_first) {
    list *all = all_kernels();
    clv__source_index index = {0};
    size_t found = 0;
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < all->n; i++) {
            const clv__launch *launch = &all->items[i];
            clv__source_entry at;
            assert_true(clv__source_look_up(&index, launch->source, launch->entry, &at));
            assert_ptr_equal(at.source, clv__source_find(launch->source));
            assert_true(at.kernel == clv__source_kernel(at.source, launch->entry));
            assert_string_equal(at.entry, launch->entry);
        }
        assert_true(index.n > 0 && index.n <= all->n && (round == 0 || index.n == found));
        found = index.n;
    }
    clv__source_entry a, b;
    assert_true(clv__source_look_up(&index, "matmul", "no_such_kernel", &a));
    assert_true(clv__source_look_up(&index, "conv2d", "no_such_kernel", &b));
    assert_true(a.source != b.source && a.text_hash != b.text_hash && a.kernel == 0);
    assert_true(clv__source_hash(a.text_hash, "") != clv__source_hash(b.text_hash, ""));
    assert_true(clv__source_hash(a.text_hash, "A 1\n") != clv__source_hash(a.text_hash, "A 2\n"));
    assert_false(clv__source_look_up(&index, "no_such_file", "matmul", &a));
    clv__source_index_reset(&index);
    free(all);
}

/** Where DPAS multiplies, a thread has all registers; the other programs of that device have more threads. */
TEST(programs_of_dpas_have_more_registers) {
    static const char option[] = "-cl-intel-256-GRF-per-thread";
    assert_non_null(
        strstr(clv__program_options("#define MATRIX_UNIT 5\n#define MATRIX_TYPE bf16\n"), option));
    assert_null(strstr(clv__program_options("#define MATRIX_UNIT 5\n#define MATRIX_TYPE none\n"), option));
    assert_null(strstr(clv__program_options("#define MATRIX_UNIT 3\n#define MATRIX_TYPE bf16\n"), option));
}

TEST(each_kernel_builds_without_the_others) {
    clv_runtime *runtime = clv__test_runtime(NULL);
    clv_device *device = NULL;
    for (int i = -1; (device = clv__test_next_device(runtime, &i));) {
        if (strcmp(clv_device_info_get(device)->backend, "opencl") == 0) break;
    }
    if (!device) {
        clv_runtime_destroy(runtime);
        print_message("skipped: no usable OpenCL device\n");
        skip();
    }
    list *all = all_kernels();
    assert_status(clv__programs_build(device, all->pointers, all->n), CLV_OK, runtime);
    free(all);
    clv_runtime_destroy(runtime);
}

TEST_MAIN(NULL, NULL)
