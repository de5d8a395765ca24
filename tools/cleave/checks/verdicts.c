// SPDX-License-Identifier: Apache-2.0
// Cases for other programs: TAP and JUnit. Sources: Test Anything Protocol, version 13; the JUnit schema that
// Jenkins and pytest use (testsuite, testcase, failure, error, skipped).
#include "checks/verdicts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pages/page.h"

// ---- TAP --------------------------------------------------------------------------------------------------

/** A `#` would begin a directive, a line end another line. */
static void put_tap(FILE *out, const char *text) {
    for (; *text; text++) {
        if (*text == '#' || *text == '\\') fputc('\\', out);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
    }
}

/** A text of YAML between double quotes. */
static void put_quoted(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', out);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
    }
    fputc('"', out);
}

static void put_number(FILE *out, const char *name, double value) {
    if (isfinite(value)) fprintf(out, "  %s: %.6g\n", name, value);
}

void tap_case(FILE *out, int number, const clv_check_case *one) {
    bool ok = one->verdict == CLV_CHECK_PASSED || one->verdict == CLV_CHECK_SKIPPED;
    fprintf(out, "%sok %d - ", ok ? "" : "not ", number);
    put_tap(out, one->name);
    if (one->verdict == CLV_CHECK_SKIPPED) {
        fputs(" # SKIP ", out);
        put_tap(out, one->sentence);
    } else if (one->verdict == CLV_CHECK_KNOWN) {
        fputs(" # TODO known failure", out);
    }
    fputs("\n  ---\n", out);
    if (one->sentence && one->verdict != CLV_CHECK_SKIPPED) {
        fputs("  message: ", out);
        put_quoted(out, one->sentence);
        fprintf(out, "\n  severity: %s\n", one->verdict == CLV_CHECK_NOT_RUN ? "error" : "fail");
    }
    put_number(out, "seconds", one->seconds);
    put_number(out, "ulp", one->ulp);
    put_number(out, "error", one->error);
    put_number(out, "tolerance", one->tolerance);
    fputs("  ...\n", out);
    fflush(out); // a driver that ends the process has not taken what was known before
}

// ---- JUnit ------------------------------------------------------------------------------------------------

/** Text of an element or an attribute. XML holds no control characters, escaped or not; neither are they of
 *  use. */
static void put_xml(FILE *out, const char *text) {
    for (; *text; text++) {
        switch (*text) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '"': fputs("&quot;", out); break;
        case '\n': fputs("&#10;", out); break;
        default: fputc((unsigned char)*text < ' ' || (unsigned char)*text >= 0x7f ? '?' : *text, out);
        }
    }
}

static void put_attribute(FILE *out, const char *name, const char *text) {
    fprintf(out, " %s=\"", name);
    put_xml(out, text);
    fputc('"', out);
}

static void put_property(FILE *out, const char *name, const char *text) {
    fputs("      <property", out);
    put_attribute(out, "name", name);
    put_attribute(out, "value", text);
    fputs("/>\n", out);
}

static void put_outcome(FILE *out, const char *element, const char *prefix, const char *sentence) {
    char message[700];
    snprintf(message, sizeof message, "%s%s", prefix, sentence ? sentence : "");
    fprintf(out, "      <%s", element);
    put_attribute(out, "message", message);
    fputs("/>\n", out);
}

static void put_testcase(FILE *out, const clv_check_case *one) {
    char name[sizeof one->name], number[32];
    const char *slash = strchr(one->name, '/');
    snprintf(name, sizeof name, "%s", slash ? slash + 1 : one->name);
    fputs("    <testcase", out);
    put_attribute(out, "classname", one->op);
    put_attribute(out, "name", name);
    fprintf(out, " time=\"%.6f\">\n", one->seconds);
    switch (one->verdict) {
    case CLV_CHECK_FAILED: put_outcome(out, "failure", "", one->sentence); break;
    case CLV_CHECK_NOT_RUN: put_outcome(out, "error", "could not run: ", one->sentence); break;
    case CLV_CHECK_KNOWN: put_outcome(out, "skipped", "known failure: ", one->sentence); break;
    case CLV_CHECK_SKIPPED: put_outcome(out, "skipped", "", one->sentence); break;
    case CLV_CHECK_PASSED:
    case CLV_CHECK_LISTED: break;
    }
    if (isfinite(one->ulp)) {
        snprintf(number, sizeof number, "%.6g", one->ulp);
        fprintf(out, "      <system-out>%s ULP in %s</system-out>\n", number, one->what);
    }
    fputs("    </testcase>\n", out);
}

static void put_suite(FILE *out, const clv_device_info *device, const clv_check_report *report) {
    double seconds = 0;
    char seed[32];
    for (int i = 0; i < report->n_list; i++) seconds += report->list[i].seconds;
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)report->seed);
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"cleave check\" "
            "tests=\"%d\" failures=\"%d\" errors=\"%d\" skipped=\"%d\" time=\"%.6f\">\n    <properties>\n",
            report->n_list, report->failed, report->not_run, report->skipped_cases + report->known, seconds);
    put_property(out, "cleave", clv_version());
    put_property(out, "device", device->label);
    put_property(out, "platform", device->platform_name);
    put_property(out, "driver", device->driver);
    put_property(out, "seed", seed);
    fputs("    </properties>\n", out);
    for (int i = 0; i < report->n_list; i++) put_testcase(out, &report->list[i]);
    fputs("  </testsuite>\n</testsuites>\n", out);
}

int junit_write(const char *path, const clv_device_info *device, const clv_check_report *report) {
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    if (out) put_suite(out, device, report);
    bool whole = out && !ferror(out);
    if (out && fclose(out)) whole = false;
    int code = whole ? cli_write_whole(path, text, n) : cli_fail(EXIT_FAILED, "no memory for '%s'", path);
    free(text);
    return code;
}
