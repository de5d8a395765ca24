// SPDX-License-Identifier: Apache-2.0
#include "data/image_list.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "base/nearest.h"
#include "io/csv.h"
#include "io/image.h"
#include "io/shown.h"

static clv_status no_memory(clv__error *error, const char *folder) {
    CLV_FAIL(error, CLV_E_HOST_MEMORY, "'%s': no host memory for the names of its pictures", folder);
}

static char *joined(clv__arena *arena, const char *a, const char *b) {
    const size_t bytes = strlen(a) + strlen(b) + 2;
    char *text = clv__arena_alloc(arena, bytes, 1);
    if (text) snprintf(text, bytes, "%s/%s", a, b);
    return text;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/** Names in a folder, in order. The list is the caller's, the names are the arena's. */
static clv_status list_folder(clv__error *error, clv__arena *arena, const char *path, const char ***out,
                              size_t *n) {
    DIR *folder = opendir(path);
    const char **names = NULL;
    size_t room = 0;
    clv__shown_text reason;
    *n = 0;
    if (!folder) {
        const int code = errno;
        clv__nearest nearest;
        CLV_FAIL(error, CLV_E_IO, "cannot read the folder '%s': %s%s", path,
                 clv__system_reason(code, &reason), code == ENOENT ? clv__nearest_file(&nearest, path) : "");
    }
    clv_status status = CLV_OK;
    const struct dirent *entry;
    while (status == CLV_OK && (entry = readdir(folder))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        char *name = clv__arena_strdup(arena, entry->d_name);
        if (!name || !clv__grow(&names, &room, *n + 1, sizeof *names))
            status = no_memory(error, path);
        else
            names[(*n)++] = name;
    }
    closedir(folder);
    if (*n) qsort(names, *n, sizeof *names, compare_names);
    *out = names;
    return status;
}

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_picture(const char *name) {
    const char *ending = strrchr(name, '.'), *known;
    for (int i = 0; ending && (known = clv__image_ending(i)); i++)
        if (clv__same_word(ending, known)) return true;
    return false;
}

/** All endings of pictures, for a sentence. */
static const char *endings_text(char *text, size_t bytes) {
    const char *ending;
    size_t n = 0;
    *text = 0;
    for (int i = 0; n < bytes && (ending = clv__image_ending(i)); i++)
        n += (size_t)snprintf(text + n, bytes - n, "%s%s",
                              !i                         ? ""
                              : clv__image_ending(i + 1) ? ", "
                                                         : " or ",
                              ending);
    return text;
}

static clv_status add_file(clv__error *error, clv__image_list *list, const char *file) {
    if (!file || !clv__grow(&list->files, &list->files_room, list->count + 1, sizeof *list->files))
        return no_memory(error, list->folder);
    list->files[list->count++] = file;
    return CLV_OK;
}

// ---- what is passed over -----------------------------------------------------------------------------------

/** Counted; the first is kept of those that may be a picture that somebody misses: a file with an ending before one without, and what is
 *  hidden last. `folder` NULL: it is in the folder itself. */
static clv_status pass_over(clv__error *error, clv__image_list *list, int64_t *count, const char *folder,
                            const char *name) {
    const int missed = count == &list->rest.endings  ? 2 + (strrchr(name, '.') != NULL)
                       : count == &list->rest.hidden ? 0
                                                     : 1;
    ++*count;
    if (list->rest.first_passed_over && missed <= list->missed) return CLV_OK;
    list->missed = missed;
    list->rest.first_passed_over =
        folder ? joined(&list->arena, folder, name) : clv__arena_strdup(&list->arena, name);
    return list->rest.first_passed_over ? CLV_OK : no_memory(error, list->folder);
}

int64_t clv__image_list_rest(const clv__image_list *list) {
    const clv_image_folder_info *rest = &list->rest;
    return rest->endings + rest->folders + rest->hidden + rest->loose;
}

static clv_status refuse_rest(clv__error *error, const clv__image_list *list) {
    const clv_image_folder_info *rest = &list->rest;
    clv__shown_text shown;
    char endings[96];
    if (!clv__image_list_rest(list)) return CLV_OK;
    CLV_FAIL(error, CLV_E_FORMAT,
             "'%s' has other things than folders of classes with pictures, and `strict` refuses them: with "
             "another ending than %s %" PRId64 ", folders within classes %" PRId64 ", hidden %" PRId64
             ", beside the classes %" PRId64 "; the first: '%s'",
             list->folder, endings_text(endings, sizeof endings), rest->endings, rest->folders, rest->hidden,
             rest->loose, clv__shown(list->rest.first_passed_over, &shown));
}

// ---- where classes are instead ----------------------------------------------------------------------------

/** Has the folder pictures of its own? */
static bool has_pictures(const char *path) {
    DIR *folder = opendir(path);
    const struct dirent *entry;
    bool found = false;
    while (folder && !found && (entry = readdir(folder)))
        found = *entry->d_name != '.' && is_picture(entry->d_name);
    if (folder) closedir(folder);
    return found;
}

/** A folder of classes in this one, which is none itself, or deeper; NULL: there is none. What fails is none, for
 *  this is looked for where there is a sentence already. */
static const char *find_classes(clv__error *error, clv__arena *arena, const char *path, int depth) {
    const char **names = NULL, *found = NULL;
    size_t n = 0;
    if (list_folder(error, arena, path, &names, &n) != CLV_OK) n = 0;
    for (size_t i = 0; !found && i < n; i++) {
        const char *within = *names[i] == '.' ? NULL : joined(arena, path, names[i]);
        if (within && is_folder(within) && has_pictures(within)) found = path;
    }
    for (size_t i = 0; !found && depth && i < n; i++) {
        const char *within = *names[i] == '.' ? NULL : joined(arena, path, names[i]);
        if (within && is_folder(within)) found = find_classes(error, arena, within, depth - 1);
    }
    free(names);
    return found;
}

/** A folder of pictures that stands beside others is a class: the folder that holds them; NULL: it is none. */
static const char *parent_of_classes(clv__error *error, clv__arena *arena, const char *folder) {
    size_t end = strlen(folder), at;
    while (end && folder[end - 1] == '/') end--;
    for (at = end; at && folder[at - 1] != '/';) at--;
    char *own = clv__arena_strdup(arena, folder), *parent = own ? clv__arena_strdup(arena, folder) : NULL;
    if (!parent || at == end || !has_pictures(folder)) return NULL;
    own[end] = 0;
    while (at > 1 && parent[at - 1] == '/') at--;
    parent[at] = 0;
    if (!*parent) parent = clv__arena_strdup(arena, ".");
    const char **names = NULL;
    size_t n = 0;
    bool others = false;
    if (!parent || list_folder(error, arena, parent, &names, &n) != CLV_OK) n = 0;
    for (size_t i = 0; !others && i < n; i++) {
        const char *beside = *names[i] == '.' ? NULL : joined(arena, parent, names[i]);
        const bool itself = !strcmp(names[i], strrchr(own, '/') ? strrchr(own, '/') + 1 : own);
        others = beside && !itself && is_folder(beside) && has_pictures(beside);
    }
    free(names);
    return others ? parent : NULL;
}

// ---- folders of classes -----------------------------------------------------------------------------------

/** A name in the folder of a class: a picture, or passed over. */
static clv_status add_name(clv__error *error, clv__image_list *list, const char *name, const char *file,
                           int32_t label) {
    clv_image_folder_info *rest = &list->rest;
    if (*file == '.') return pass_over(error, list, &rest->hidden, name, file);
    const char *within = joined(&list->arena, name, file);
    const char *path = within ? joined(&list->arena, list->folder, within) : NULL;
    if (!path) return no_memory(error, list->folder);
    if (!is_picture(file))
        return pass_over(error, list, is_folder(path) ? &rest->folders : &rest->endings, name, file);
    if (is_folder(path)) return pass_over(error, list, &rest->folders, name, file);
    if (!clv__grow(&list->labels, &list->labels_room, list->count + 1, sizeof *list->labels))
        return no_memory(error, list->folder);
    list->labels[list->count] = label;
    return add_file(error, list, within);
}

enum { MOST_DEEPER = 3 }; // folders in which classes are looked for

/** The pictures of one class. */
static clv_status add_class(clv__error *error, clv__image_list *list, const char *name, int32_t label) {
    const char **names = NULL;
    size_t n = 0;
    const size_t before = list->count;
    clv__shown_text shown;
    char endings[96];
    const char *path = joined(&list->arena, list->folder, name);
    if (!path) return no_memory(error, list->folder);
    clv_status status = list_folder(error, &list->arena, path, &names, &n);
    for (size_t i = 0; status == CLV_OK && i < n; i++) status = add_name(error, list, name, names[i], label);
    free(names);
    if (status != CLV_OK || list->count > before) return status;
    const char *deeper = find_classes(error, &list->arena, path, MOST_DEEPER);
    if (deeper)
        CLV_FAIL(
            error, CLV_E_FORMAT,
            "the class '%s' of '%s' has folders and no pictures: give '%s', which is a folder of classes",
            clv__shown(name, &shown), list->folder, deeper);
    CLV_FAIL(error, CLV_E_FORMAT, "the class '%s' of '%s' has no pictures: a file of it ends in %s",
             clv__shown(name, &shown), list->folder, endings_text(endings, sizeof endings));
}

/** Where a name stands among the known ones; -1: nowhere. */
static int32_t find_name(const clv__known_names *known, const char *name) {
    for (size_t i = 0; i < known->n; i++)
        if (!strcmp(known->names[i], name)) return (int32_t)i;
    return -1;
}

/** All of them in a sentence, the first few where they are many. */
typedef struct known_text {
    char text[320];
} known_text;

static const char *text_of(const clv__known_names *known, known_text *out) {
    enum { FEW = 10 };
    size_t used = 0;
    *out->text = 0;
    for (size_t i = 0; i < known->n && i < FEW; i++) {
        clv__shown_text shown;
        used = strlen(out->text);
        snprintf(out->text + used, sizeof out->text - used, "%s%.24s", i ? ", " : "",
                 clv__shown(known->names[i], &shown));
    }
    used = strlen(out->text);
    if (known->n > FEW) snprintf(out->text + used, sizeof out->text - used, " and %zu more", known->n - FEW);
    return out->text;
}

static clv_status add_class_name(clv__error *error, clv__image_list *list, const char *name) {
    const char *own = clv__arena_strdup(&list->arena, name);
    if (!own || !clv__grow(&list->classes, &list->classes_room, list->n_classes + 1, sizeof *list->classes))
        return no_memory(error, list->folder);
    list->classes[list->n_classes++] = own;
    return CLV_OK;
}

static clv_status no_such_class(clv__error *error, const clv__image_list *list, const char *name,
                                const clv__known_names *known) {
    clv__shown_text shown;
    known_text text;
    if (known->whose)
        CLV_FAIL(error, CLV_E_NOT_FOUND, "'%s' has a class '%s', which '%s' does not have", list->folder,
                 clv__shown(name, &shown), known->whose);
    CLV_FAIL(error, CLV_E_NOT_FOUND,
             "'%s' has a class '%s', which the model was not trained on; its classes are %s", list->folder,
             clv__shown(name, &shown), text_of(known, &text));
}

static clv_status add_classes(clv__error *error, clv__image_list *list, const clv__known_names *known,
                              const char *const *names, size_t n) {
    clv_status status = CLV_OK;
    for (size_t i = 0; known && status == CLV_OK && i < known->n; i++)
        status = add_class_name(error, list, known->names[i]);
    for (size_t i = 0; status == CLV_OK && i < n; i++) {
        const char *path = joined(&list->arena, list->folder, names[i]);
        if (!path) return no_memory(error, list->folder);
        if (*names[i] == '.' || !is_folder(path)) {
            status = pass_over(error, list, *names[i] == '.' ? &list->rest.hidden : &list->rest.loose, NULL,
                               names[i]);
            continue;
        }
        int32_t label = (int32_t)list->n_classes;
        if (known)
            label = find_name(known, names[i]);
        else
            status = add_class_name(error, list, names[i]);
        if (label < 0) return no_such_class(error, list, names[i], known);
        if (status == CLV_OK) status = add_class(error, list, names[i], label);
    }
    return status;
}

/** Are all folders here parts of a data set, as `train` and `val`? No class is named so where its neighbours
 *  are, too. */
static clv_status check_parts(clv__error *error, clv__image_list *list, const clv__known_names *known,
                              const char *const *names, size_t n) {
    static const char *const parts[] = {"train", "training", "val", "valid", "validation", "test", "testing"};
    const char *first = NULL;
    for (size_t i = 0; i < n; i++) {
        const char *path = joined(&list->arena, list->folder, names[i]);
        bool part = false;
        if (!path) return no_memory(error, list->folder);
        if (*names[i] == '.' || !is_folder(path)) continue;
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) part |= clv__same_word(names[i], parts[k]);
        if (!part || (known && find_name(known, names[i]) >= 0)) return CLV_OK;
        if (!first || clv__same_word(names[i], "train")) first = names[i];
    }
    if (!first) return CLV_OK;
    CLV_FAIL(
        error, CLV_E_FORMAT,
        "'%s' holds the splits of a data set ('%s') instead of folders of classes: give one of them, '%s/%s'",
        list->folder, first, list->folder, first);
}

static clv_status no_classes(clv__error *error, clv__image_list *list) {
    const char *parent = parent_of_classes(error, &list->arena, list->folder);
    if (parent)
        CLV_FAIL(error, CLV_E_FORMAT,
                 "'%s' has pictures and no folders of classes: it is one class, give the folder of all "
                 "classes, '%s'",
                 list->folder, parent);
    CLV_FAIL(error, CLV_E_FORMAT, "'%s' has no folders of classes: pictures belong in %s/CLASS/PICTURE.jpg",
             list->folder, list->folder);
}

clv_status clv__image_list_classes(clv__error *error, const char *folder, const clv__known_names *known,
                                   bool strict, clv__image_list *out) {
    *out = (clv__image_list){.folder = clv__strdup(folder)};
    if (!out->folder) return no_memory(error, folder);
    const char **names = NULL;
    size_t n = 0;
    clv_status status = list_folder(error, &out->arena, folder, &names, &n);
    if (status == CLV_OK) status = check_parts(error, out, known, names, n);
    if (status == CLV_OK) status = add_classes(error, out, known, names, n);
    free(names);
    if (status == CLV_OK && !out->count) status = no_classes(error, out);
    if (status == CLV_OK && strict) status = refuse_rest(error, out);
    if (status != CLV_OK) clv__image_list_reset(out);
    return status;
}

// ---- a table of labels ------------------------------------------------------------------------------------

/** Would the name lead out of the folder? */
static bool leads_out(const char *name) {
    if (*name == '/') return true;
    for (const char *at = name; at; at = strchr(at, '/'), at += at ? 1 : 0)
        if (!strncmp(at, "..", 2) && (at[2] == '/' || !at[2])) return true;
    return false;
}

/** A table while it is read. */
typedef struct labels {
    clv__error *error;
    const clv__csv *csv;
    const char *table;
    size_t *label; // of each column, the first left out
    clv__image_list *list;
} labels;

static clv_status read_label(const labels *own, size_t row, size_t column) {
    clv__shown_text a, b;
    clv__image_list *list = own->list;
    const char *field = clv__csv_field(own->csv, (int64_t)row, column);
    if (!*field)
        CLV_FAIL(own->error, CLV_E_FORMAT,
                 "'%s', line %" PRIu64 ": nothing stands in column '%s'; 0 or 1 is wanted", own->table,
                 own->csv->lines[row + 1], clv__shown(clv__csv_field(own->csv, -1, column), &b));
    if (strcmp(field, "0") && strcmp(field, "1"))
        CLV_FAIL(own->error, CLV_E_FORMAT, "'%s', line %" PRIu64 ": '%s' in column '%s'; 0 or 1 is wanted",
                 own->table, own->csv->lines[row + 1], clv__shown(field, &a),
                 clv__shown(clv__csv_field(own->csv, -1, column), &b));
    list->targets[row * list->n_classes + own->label[column - 1]] = *field == '1';
    return CLV_OK;
}

static clv_status read_row(const labels *own, size_t row) {
    clv__shown_text a;
    clv__image_list *list = own->list;
    const char *name = clv__csv_field(own->csv, (int64_t)row, 0);
    const char *path = joined(&list->arena, list->folder, name);
    struct stat info;
    if (!path) return no_memory(own->error, list->folder);
    if (leads_out(name))
        CLV_FAIL(own->error, CLV_E_FORMAT, "'%s', line %" PRIu64 ": '%s' is not within '%s'", own->table,
                 own->csv->lines[row + 1], clv__shown(name, &a), list->folder);
    if (!*name || stat(path, &info) != 0)
        CLV_FAIL(own->error, CLV_E_NOT_FOUND, "'%s', line %" PRIu64 ": there is no file '%s' in '%s'",
                 own->table, own->csv->lines[row + 1], clv__shown(name, &a), list->folder);
    for (size_t c = 1; c < own->csv->columns; c++) CLV_TRY(read_label(own, row, c));
    return add_file(own->error, list, clv__arena_strdup(&list->arena, name));
}

/** Columns, no two of one name, are matched by their names: a model's results stand for these, in its order. */
static clv_status match_columns(const labels *own, const clv__known_names *known) {
    clv__shown_text shown;
    known_text text;
    bool *there = clv__alloc(known->n, sizeof *there);
    if (!there) return no_memory(own->error, own->list->folder);
    clv_status status = CLV_OK;
    for (size_t c = 1; status == CLV_OK && c < own->csv->columns; c++) {
        const char *name = clv__csv_field(own->csv, -1, c);
        const int32_t at = find_name(known, name);
        if (at < 0)
            status =
                clv__error_set(own->error, CLV_E_FORMAT,
                               "'%s' has a column '%s' that is none of the labels wanted; the labels are %s",
                               own->table, clv__shown(name, &shown), text_of(known, &text));
        else
            there[own->label[c - 1] = (size_t)at] = true;
    }
    for (size_t i = 0; status == CLV_OK && i < known->n; i++)
        if (!there[i])
            status = clv__error_set(own->error, CLV_E_FORMAT, "'%s' has no column '%s'; the labels are %s",
                                    own->table, clv__shown(known->names[i], &shown), text_of(known, &text));
    free(there);
    return status;
}

static clv_status read_rows(const labels *own, const clv__known_names *known) {
    const clv__csv *csv = own->csv;
    clv__image_list *list = own->list;
    if (known) CLV_TRY(match_columns(own, known));
    for (size_t i = 0; i < csv->columns - 1; i++) {
        if (!known) own->label[i] = i;
        CLV_TRY(add_class_name(own->error, list, known ? known->names[i] : clv__csv_field(csv, -1, i + 1)));
    }
    list->targets = clv__alloc(csv->rows * list->n_classes, sizeof *list->targets);
    if (!list->targets) return no_memory(own->error, list->folder);
    for (size_t row = 0; row < csv->rows; row++) CLV_TRY(read_row(own, row));
    return CLV_OK;
}

static clv_status read_table(labels *own, const clv__known_names *known) {
    if (own->csv->columns < 2)
        CLV_FAIL(own->error, CLV_E_FORMAT, "'%s' has names of pictures, but no column with a label",
                 own->table);
    own->label = clv__alloc(own->csv->columns - 1, sizeof *own->label);
    if (!own->label) return no_memory(own->error, own->list->folder);
    const clv_status status = read_rows(own, known);
    free(own->label);
    return status;
}

clv_status clv__image_list_table(clv__error *error, const char *folder, const char *table,
                                 const clv__known_names *known, clv__image_list *out) {
    *out = (clv__image_list){.folder = clv__strdup(folder)};
    if (!out->folder) return no_memory(error, folder);
    clv__input input;
    clv__csv csv = {0};
    labels own = {.error = error, .csv = &csv, .table = table, .list = out};
    clv_status status = clv__input_open(error, table, &input);
    if (status == CLV_OK) {
        status = clv__csv_read(&input, &csv);
        clv__input_close(&input);
    }
    if (status == CLV_OK) status = read_table(&own, known);
    clv__csv_reset(&csv);
    if (status != CLV_OK) clv__image_list_reset(out);
    return status;
}

// ---- files -------------------------------------------------------------------------------------------------

enum { DEEPEST = 32 }; // folders in folders

/** All pictures of a folder and of those in it. Links to folders are not followed: they may lead round. */
static clv_status add_tree(clv__error *error, clv__image_list *list, const char *folder, int depth) {
    const char **names = NULL;
    size_t n = 0;
    clv_status status = list_folder(error, &list->arena, folder, &names, &n);
    for (size_t i = 0; status == CLV_OK && i < n; i++) {
        const char *path = joined(&list->arena, folder, names[i]);
        struct stat info;
        if (!path)
            status = no_memory(error, folder);
        else if (*names[i] == '.')
            continue; // hidden
        else if (is_picture(names[i]) && !is_folder(path))
            status = add_file(error, list, path);
        else if (depth < DEEPEST && lstat(path, &info) == 0 && S_ISDIR(info.st_mode))
            status = add_tree(error, list, path, depth + 1);
    }
    free(names);
    return status;
}

clv_status clv__image_list_files(clv__error *error, const char *const *paths, size_t n,
                                 clv__image_list *out) {
    clv_status status = CLV_OK;
    *out = (clv__image_list){.folder = clv__strdup("")};
    if (!out->folder) return no_memory(error, "");
    for (size_t i = 0; status == CLV_OK && i < n; i++) {
        const size_t before = out->count;
        char endings[96];
        clv__shown_text reason;
        struct stat info;
        if (stat(paths[i], &info) != 0) {
            const int code = errno;
            clv__nearest nearest;
            status = clv__error_set(error, CLV_E_IO, "cannot read '%s': %s%s", paths[i],
                                    clv__system_reason(code, &reason),
                                    code == ENOENT ? clv__nearest_file(&nearest, paths[i]) : "");
            continue;
        }
        if (!S_ISDIR(info.st_mode)) {
            status = add_file(error, out, clv__arena_strdup(&out->arena, paths[i]));
            continue;
        }
        status = add_tree(error, out, paths[i], 0);
        if (status == CLV_OK && out->count == before)
            status = clv__error_set(error, CLV_E_FORMAT, "'%s' has no pictures: a file of it ends in %s",
                                    paths[i], endings_text(endings, sizeof endings));
    }
    if (status == CLV_OK) {
        out->labels = clv__alloc(out->count, sizeof *out->labels);
        if (!out->labels) status = no_memory(error, "");
    }
    if (status != CLV_OK) clv__image_list_reset(out);
    return status;
}

// ---------------------------------------------------------------------------------------------------------------

void clv__image_list_move(clv__image_list *list, size_t from, size_t to) {
    list->files[to] = list->files[from];
    if (list->labels) list->labels[to] = list->labels[from];
    if (list->targets)
        memmove(list->targets + to * list->n_classes, list->targets + from * list->n_classes,
                list->n_classes * sizeof *list->targets);
}

void clv__image_list_reset(clv__image_list *list) {
    clv__arena_reset(&list->arena);
    free(list->folder);
    free(list->files);
    free(list->labels);
    free(list->targets);
    free(list->classes);
    *list = (clv__image_list){0};
}
