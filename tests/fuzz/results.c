// SPDX-License-Identifier: Apache-2.0
// Any bytes as the results of an earlier check, and as a list of known failures: refused, or compared with a run, and nothing of it
// reaches a terminal as it is.
#define _GNU_SOURCE
#include "fuzz/fuzz.h"

#include "fuzz/memory_file.h"
#include "fuzz/quiet.h"
#include "checks/verdicts.h"

/** What was printed: lines of text, with no other control characters but tabs and colours. */
static void require_shown(const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == 0x1b) {
            REQUIRE(text[++i] == '[');
            while (strchr("0123456789;", text[++i])) REQUIRE(i < n);
            REQUIRE(text[i] == 'm');
        } else {
            REQUIRE(c >= 0x20 ? c != 0x7f : c == '\n' || c == '\t' || c == '\r');
        }
    }
}

static void compare(const char *path) {
    static clv_check_case cases[] = {{.name = "relu/plain/17 elements",
                                      .op = "relu",
                                      .variant = "plain",
                                      .verdict = CLV_CHECK_PASSED,
                                      .verdict_name = "passed",
                                      .ulp = 3},
                                     {.name = "add/plain/a",
                                      .op = "add",
                                      .variant = "plain",
                                      .verdict = CLV_CHECK_FAILED,
                                      .verdict_name = "failed"}};
    const clv_check_report report = {.list = cases, .n_list = 2, .seed = 1};
    baseline then;
    names known = {0};
    if (baseline_read(path, &then, &known) == EXIT_DONE) {
        json_t *comparison = baseline_compare(&then, &report, false);
        REQUIRE(comparison != NULL);
        char *text = NULL;
        size_t n = 0;
        FILE *printed = open_memstream(&text, &n);
        REQUIRE(printed != NULL);
        FILE *terminal = stdout;
        stdout = printed; // what is for people goes through one place, which knows it by its stream
        baseline_print(stdout, comparison, path);
        stdout = terminal;
        fclose(printed);
        require_shown(text, n);
        free(text);
        json_decref(comparison);
    }
    baseline_drop(&then);
    names_drop(&known);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    quiet_begin();
    const char *path = "x";
    memory_file_set(path, data, size);
    compare(path);
    names list = {0};
    (void)names_read(path, &list);
    names_drop(&list);
    return 0;
}
