// SPDX-License-Identifier: Apache-2.0
// Every op has golden values, or a reason why it has none. An op counts as pinned when a golden program has compared a tensor that the
// op itself made or changed in place: being somewhere inside a whole model does not count. The programs leave the names of such ops in
// the build folder (golden_close), and ctest runs them before this one.
#include <stdbool.h>

#include "graph/op.h"
#include "harness/harness.h"

static const struct {
    const char *op, *reason;
} without[] = {
    {"cast", "it rounds what is stored, and the interpreter works in doubles; tests/ops/storage.c has each "
             "device's rounding"},
    {"dropout",
     "PyTorch's random numbers are others; tests/ops/dropout.c holds them to the published Philox values"},
    {"random_uniform",
     "PyTorch's random numbers are others; tests/ops/dropout.c holds them to the published Philox values"},
    {"random_normal",
     "as random_uniform; tests/ops/dropout.c holds moments and the share within a deviation"},
    {"to",
     "a copy to another device, no arithmetic; tests/unit/place.c compares models over two devices with one"},
};

enum { MOST = 512 };

typedef struct pinned {
    char names[MOST][64];
    int n;
} pinned;

static bool has(const pinned *p, const char *op) {
    for (int i = 0; i < p->n; i++)
        if (strcmp(p->names[i], op) == 0) return true;
    return false;
}

static void read_program(pinned *p, const char *program) {
    char path[1024], line[64];
    snprintf(path, sizeof path, "%s/tests/golden/%s.pinned", CLV_TEST_BINARY_DIR, program);
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("%s is not there: run golden_%s first", path, program);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        assert_true(p->n < MOST);
        snprintf(p->names[p->n++], sizeof line, "%s", line);
    }
    fclose(file);
}

static const char *reason_of(const char *op) {
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (strcmp(without[i].op, op) == 0) return without[i].reason;
    return NULL;
}

TEST(every_op) {
    static pinned p;
    char programs[] = CLV_GOLDEN_PROGRAMS, *rest;
    int n_missing = 0;
    for (char *name = strtok_r(programs, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
        read_program(&p, name);
    for (int i = 0; clv__ops[i]; i++) {
        const char *op = clv__ops[i]->name;
        bool pins = has(&p, op), excused = reason_of(op) != NULL;
        if (pins != excused) continue;
        n_missing++;
        print_error(pins ? "%s has golden values: take it off the list in every_op.c\n"
                         : "%s has no golden values: add a case (tests/golden/README.md), or its reason to "
                           "every_op.c\n",
                    op);
    }
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (!clv__op_find(without[i].op))
            fail_msg("there is no op %s, which every_op.c lists", without[i].op);
    assert_int_equal(n_missing, 0);
}

TEST_MAIN(NULL, NULL)
