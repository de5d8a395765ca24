// SPDX-License-Identifier: Apache-2.0
// Failed variants into quarantine and into the tuning file; see findings.h.
#include "check/findings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cache.h"
#include "graph/quarantine.h"
#include "io/file.h"
#include "plan/plan.h"

clv_status clv__findings_add(clv__findings *findings, const clv__op *op, const clv__variant *variant,
                             bool failed, clv__error *error) {
    clv__finding *found = NULL;
    for (size_t i = 0; i < findings->n && !found; i++)
        if (findings->items[i].op == op && findings->items[i].variant == variant) found = &findings->items[i];
    if (!found) {
        if (!clv__grow(&findings->items, &findings->room, findings->n + 1, sizeof *findings->items))
            CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory for what was found of '%s'", op->name);
        found = &findings->items[findings->n++];
        *found = (clv__finding){.op = op, .variant = variant};
    }
    found->failed |= failed;
    return CLV_OK;
}

void clv__findings_explain(clv__findings *findings, const char *op, const char *variant, const char *sentence,
                           bool not_run) {
    for (size_t i = 0; i < findings->n; i++) {
        clv__finding *found = &findings->items[i];
        if (found->op->name != op || strcmp(found->variant->name, variant)) continue;
        found->not_run |= not_run;
        if (!not_run && !found->why) found->why = sentence;
    }
}

void clv__findings_reset(clv__findings *findings) {
    free(findings->items);
    *findings = (clv__findings){0};
}

// ---- the file -------------------------------------------------------------------------------------------------------

clv_status clv__tuning_save(const clv_device *device, const clv__tuning *tuning, const char *path,
                            clv__error *error) {
    clv__text text = {0};
    clv__output output = {0};
    clv__tuning_write(device, tuning, &text);
    clv_status status = text.failed
                            ? clv__error_set(error, CLV_E_HOST_MEMORY, "no memory to write '%s'", path)
                            : clv__output_open(error, path, &output);
    if (status == CLV_OK) status = clv__output_write(&output, text.data, text.n);
    if (status == CLV_OK) status = clv__output_commit(&output, false);
    clv__text_reset(&text);
    return status;
}

/** The file as it is. One of another driver, or a damaged one, is replaced where it is ours, and left alone where the user named it. */
static clv_status load(clv_device *device, const char *path, bool named, clv__error *error,
                       clv__tuning *out) {
    clv_status status = clv__tuning_load(device, path, error, out);
    if (status == CLV_E_NOT_FOUND || (!named && (status == CLV_E_FORMAT || status == CLV_E_UNSUPPORTED)))
        return CLV_OK;
    return status;
}

bool clv__found_by_check(const clv__tuned *row) {
    return !row->key && row->note && !strncmp(row->note, CLV__FOUND_BY_CHECK, strlen(CLV__FOUND_BY_CHECK));
}

static const clv__finding *finding_of(const clv__findings *findings, const clv__tuned *row) {
    for (size_t i = 0; i < findings->n; i++)
        if (findings->items[i].op == row->op && findings->items[i].variant == row->variant)
            return &findings->items[i];
    return NULL;
}

static bool add_name(clv_check_avoided **list, int *n, const clv__op *op, const clv__variant *variant) {
    clv_check_avoided *more = realloc(*list, ((size_t)*n + 1) * sizeof *more);
    if (!more) return false;
    *list = more;
    more[(*n)++] = (clv_check_avoided){.op = op->name, .variant = variant->name};
    return true;
}

/** One line of a sentence that may hold a compiler's log. */
static void note_of(const clv__finding *found, char note[512]) {
    const char *why = found->why ? found->why : "it failed";
    snprintf(note, 512, CLV__FOUND_BY_CHECK "%.*s", (int)strcspn(why, "\n"), why);
}

static clv_status change(const clv__findings *findings, clv_check_report *report, clv__error *error,
                         clv__tuning *file, bool *changed) {
    bool whole = true;
    for (size_t i = file->n; whole && findings->whole && i-- > 0;) {
        const clv__tuned row = file->rows[i];
        const clv__finding *found = clv__found_by_check(&row) ? finding_of(findings, &row) : NULL;
        if (!found || found->failed || found->not_run) continue;
        whole = add_name(&report->restored, &report->n_restored, row.op, row.variant);
        clv__tuning_remove_avoided(file, found->op, found->variant);
        *changed = true;
    }
    for (size_t i = 0; whole && i < findings->n; i++) {
        char note[512];
        const clv__finding *found = &findings->items[i];
        if (!found->failed) continue;
        note_of(found, note);
        whole =
            clv__tuning_put(file, &(clv__tuned){.op = found->op, .variant = found->variant, .note = note});
        *changed = true;
    }
    if (!whole) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory for the variants to avoid");
    return CLV_OK;
}

static clv_status write_down(const clv__findings *findings, clv_device *device, clv_check_report *report,
                             clv__error *error) {
    bool named = false, changed = false;
    clv__tuning file = {0};
    if (clv__tuning_is_none(device))
        CLV_FAIL(error, CLV_E_STATE, "tuning files are switched off, or have no folder");
    char *path = clv__tuning_file(device, &named);
    if (!path) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory for a file's name");
    clv_status status = load(device, path, named, error, &file);
    if (status == CLV_OK) status = change(findings, report, error, &file, &changed);
    // With no folder, writing says what is wrong with it.
    if (status == CLV_OK && changed && !named) clv__cache_make_folder(device->runtime);
    if (status == CLV_OK && changed) status = clv__tuning_save(device, &file, path, error);
    clv__tuning_reset(&file);
    if (status == CLV_OK && changed)
        report->file = path;
    else
        free(path);
    return status;
}

clv_status clv__findings_record(const clv__findings *findings, clv_device *device, clv_check_report *report,
                                clv__error *error) {
    bool any = false;
    for (size_t i = 0; i < findings->n; i++) {
        char note[512];
        const clv__finding *found = &findings->items[i];
        if (!found->failed) continue;
        any = true;
        note_of(found, note);
        if (!clv__quarantined(device, found->op, found->variant))
            CLV_TRY(clv__quarantine_put(device, found->op, found->variant, note));
        if (!add_name(&report->avoided, &report->n_avoided, found->op, found->variant))
            CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory for the variants to avoid");
    }
    if (!any && clv__tuning_is_none(device)) return CLV_OK;
    clv_status status = write_down(findings, device, report, error);
    if (status == CLV_OK) {
        for (size_t i = 0; i < findings->n; i++)
            for (int k = 0; k < report->n_restored; k++)
                if (findings->items[i].op->name == report->restored[k].op &&
                    findings->items[i].variant->name == report->restored[k].variant)
                    clv__quarantine_remove(device, findings->items[i].op, findings->items[i].variant);
        if (report->file) clv__tuning_forget(device);
        return CLV_OK;
    }
    report->n_restored = 0;
    if (!any && status != CLV_E_HOST_MEMORY) return CLV_OK; // there was nothing to write
    char sentence[CLV__ERROR_BYTES];
    clv__error_read(error, sentence);
    report->record_fault = clv__strdup(sentence);
    return report->record_fault ? CLV_OK : CLV_E_HOST_MEMORY;
}

// ---- what is used instead -------------------------------------------------------------------------------------------

/** What ranks choose among those that are not in quarantine; NULL: nothing is left. */
static const clv__variant *best_left(const clv_device *device, const clv__op_io *use,
                                     const clv__op_io *known) {
    const clv__variant *best = NULL;
    double best_rank = 0;
    for (const clv__variant *v = use->op->variants; v && v->name; v++) {
        if (!clv__variant_supports(v, &device->info, use) || clv__quarantined(device, use->op, v)) continue;
        double rank = clv__variant_rank(v, &device->info, known);
        if (best && rank >= best_rank) continue;
        best = v;
        best_rank = rank;
    }
    return best;
}

static bool in_list(const char *list, const char *name) {
    size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at++)
        if ((at == list || at[-1] == ' ') && (!at[n] || at[n] == ',')) return true;
    return false;
}

void clv__findings_instead(clv_check_report *report, const clv_device *device, const clv__op_io *use,
                           const clv__op_io *known) {
    for (int i = 0; i < report->n_avoided; i++) {
        clv_check_avoided *avoided = &report->avoided[i];
        if (avoided->op != use->op->name) continue;
        const clv__variant *gone = clv__variant_find(use->op, avoided->variant);
        const bool could = gone && clv__variant_supports(gone, &device->info, use);
        const clv__variant *left = could ? best_left(device, use, known) : NULL;
        size_t used = strlen(avoided->instead);
        if (left && !in_list(avoided->instead, left->name))
            snprintf(avoided->instead + used, sizeof avoided->instead - used, "%s%s", used ? ", " : "",
                     left->name);
    }
}
