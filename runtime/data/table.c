// SPDX-License-Identifier: Apache-2.0
// A dataset from a table of separated values: which columns are samples and which are learnt, which rows are kept, and what is learnt of
// the rows that are trained on: words, means, deviations. Values are kept one a column and made into a sample's numbers when it is read,
// so that a column of many words costs no memory for each of them.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/nearest.h"
#include "data/table.h"
#include "io/array.h"
#include "io/shown.h"

// ---- the dataset --------------------------------------------------------------------------------------------

typedef struct table {
    clv_dataset common;
    clv__table_form form; // of its columns alone which are words, and their places
    clv__table_value *values;
    void *targets; // [count, targets] f32, or [count] i32
    clv_table_report report;
} table;

static void read_row(const clv_dataset *dataset, int64_t i, void *sample, void *target) {
    const table *own = (const table *)dataset;
    const size_t bytes = (size_t)dataset->target_numel * sizeof(float); // an i32 is as large
    if (sample) clv__table_expand(&own->form, own->values + (size_t)i * own->form.n, sample);
    if (target) memcpy(target, (const char *)own->targets + (size_t)i * bytes, bytes);
}

static void destroy(clv_dataset *dataset) {
    table *own = (table *)dataset;
    clv__table_form_free(&own->form);
    free(own->values);
    free(own->targets);
    free(dataset->target_scales);
    free(dataset->number_names);
    free(own);
}

/** What is made of a table. */
typedef struct making {
    clv__error *error;
    const clv_table_config *config;
    clv__table_file file;
    clv__table_form form;
    void *owner;               // of the texts of a form that a record gave
    size_t *kept, n_kept;      // rows that are not left out
    size_t first, last, known; // of these: the part that is asked for, and how many are trained on
} making;

static clv_status no_memory(const making *m) {
    return clv__table_no_memory(&m->file);
}

static const char *name_of(const making *m, int column) {
    return clv__csv_field(&m->file.csv, -1, (size_t)column);
}

// ---- which columns ------------------------------------------------------------------------------------------

static clv_status no_column(const making *m, const char *name, size_t length) {
    char word[128];
    snprintf(word, sizeof word, "%.*s", (int)(length < 100 ? length : 100), name);
    clv__nearest nearest = {.word = word};
    for (size_t i = 0; i < m->file.csv.columns; i++) clv__nearest_offer(&nearest, name_of(m, (int)i));
    clv__shown_text shown;
    const char *meant = clv__nearest_text(&nearest);
    char has[400] = "";
    for (size_t i = 0; !*meant && i < m->file.csv.columns; i++) {
        clv__shown_text one;
        const size_t used = strlen(has);
        if (used + 60 < sizeof has)
            snprintf(has + used, sizeof has - used, "%s'%.40s'", i ? ", " : ", it has ",
                     clv__shown(name_of(m, (int)i), &one));
    }
    CLV_FAIL(m->error, CLV_E_NOT_FOUND, "'%s' has no column '%s'%s%s%s", m->file.path,
             clv__shown(word, &shown), has, meant, *meant ? "" : clv__table_row_hint(&m->file));
}

/** Names with commas between them, as columns, each once. Blanks around a name are nothing. */
static clv_status find_columns(const making *m, const char *names, int *out, size_t *n) {
    clv__shown_text shown;
    *n = 0;
    for (const char *at = names; at;) {
        at += strspn(at, " ");
        const size_t length = strcspn(at, ",");
        size_t own = length;
        while (own && at[own - 1] == ' ') own--;
        const int column = own ? clv__csv_column(&m->file.csv, at, own) : -1;
        if (column < 0) return no_column(m, at, own);
        for (size_t i = 0; i < *n; i++)
            if (out[i] == column)
                CLV_FAIL(m->error, CLV_E_VALUE, "the column '%s' is named twice",
                         clv__shown(name_of(m, column), &shown));
        out[(*n)++] = column;
        at = at[length] ? at + length + 1 : NULL;
    }
    return CLV_OK;
}

/** What a column is asked for to be. */
enum { FREE, LEARNT, IGNORED, WORDS };

/** Name columns in a list; one that is named in another one, too, is refused. */
static clv_status mark(const making *m, const char *names, int what, int *room, char *roles, size_t *n) {
    static const char *const lists[] = {NULL, "the targets", "those to ignore", "those of words"};
    clv__shown_text shown;
    CLV_TRY(find_columns(m, names, room, n));
    for (size_t i = 0; i < *n; i++) {
        if (roles[room[i]] != FREE)
            CLV_FAIL(m->error, CLV_E_VALUE,
                     "the column '%s' is named among %s and among %s; name it in one of the lists",
                     clv__shown(name_of(m, room[i]), &shown), lists[(int)roles[room[i]]], lists[what]);
        roles[room[i]] = (char)what;
    }
    return CLV_OK;
}

static clv__table_column column_of(const making *m, int at) {
    return (clv__table_column){
        .name = name_of(m, at), .at = at, .scale = {0, 1}, .fill = (double)NAN, .unit = ""};
}

/** Targets in the order they are named, all others in the order of the file; an index is passed over. */
static clv_status choose(making *m, int *room, char *roles) {
    const size_t columns = m->file.csv.columns;
    clv__table_form *form = &m->form;
    size_t n;
    CLV_TRY(mark(m, m->config->targets, LEARNT, room, roles, &form->n_targets));
    for (size_t i = 0; i < form->n_targets; i++) form->targets[i] = column_of(m, room[i]);
    CLV_TRY(mark(m, m->config->ignore, IGNORED, room, roles, &form->n_ignored));
    for (size_t i = 0; i < form->n_ignored; i++) form->ignored[i] = name_of(m, room[i]);
    CLV_TRY(mark(m, m->config->words, WORDS, room, roles, &n));
    for (size_t i = 0; i < columns; i++) {
        if (roles[i] == LEARNT || roles[i] == IGNORED || !*name_of(m, (int)i)) continue;
        form->columns[form->n] = column_of(m, (int)i);
        form->columns[form->n++].is_words = roles[i] == WORDS;
    }
    if (!form->n) CLV_FAIL(m->error, CLV_E_VALUE, "'%s': no column is left to learn from", m->file.path);
    return CLV_OK;
}

static clv_status choose_columns(making *m) {
    const size_t columns = m->file.csv.columns;
    clv__table_form *form = &m->form;
    form->targets = clv__alloc(columns, sizeof *form->targets);
    form->columns = clv__alloc(columns, sizeof *form->columns);
    form->ignored = clv__alloc(columns, sizeof *form->ignored);
    int *room = clv__alloc(columns, sizeof *room);
    char *roles = clv__alloc(columns, 1);
    const bool there = form->targets && form->columns && form->ignored && room && roles;
    const clv_status status = there ? choose(m, room, roles) : no_memory(m);
    free(room);
    free(roles);
    return status;
}

/** What each column holds, by all rows. */
static clv_status tell_kinds(making *m) {
    clv__table_form *form = &m->form;
    const bool alone = form->n_targets == 1;
    for (size_t i = 0; i < form->n_targets + form->n; i++) {
        const bool target = i < form->n_targets;
        clv__table_column *column = target ? &form->targets[i] : &form->columns[i - form->n_targets];
        const clv__table_role role = !target ? CLV__ROLE_FEATURE
                                     : alone ? CLV__ROLE_TARGET
                                             : CLV__ROLE_TARGETS;
        CLV_TRY(clv__table_survey_make(&m->file, column->at, &column->survey));
        if (target) column->is_words = m->config->classes && alone;
        if (!column->is_words)
            CLV_TRY(clv__table_tell_kind(&m->file, column->at, &column->survey, role, &column->is_words));
        column->unit = column->is_words ? "" : column->survey.unit;
        column->is_grouped = !column->is_words && column->survey.is_surely_grouped;
    }
    return CLV_OK;
}

// ---- which rows ---------------------------------------------------------------------------------------------

/** The first of the columns in which nothing stands, and how often; then the others, as far as there is room. */
static clv_status refuse_missing(const making *m, const clv__table_column *column) {
    const clv__table_form *form = &m->form;
    const clv__table_column *each[2] = {form->targets, form->columns};
    const size_t n[2] = {form->n_targets, form->n}, rows = m->file.csv.rows;
    clv__shown_text name;
    char others[300] = "";
    size_t used = 0, untold = 0;
    bool words = false, numbers = false; // among the inputs
    for (int of = 0; of < 2; of++) {
        for (size_t i = 0; i < n[of]; i++) {
            const clv__table_column *other = &each[of][i];
            const size_t missing = other->survey.n[CLV__CELL_MISSING];
            words |= of && missing && other->is_words;
            numbers |= of && missing && !other->is_words;
            if (!missing || other == column) continue;
            char text[100];
            const int bytes = snprintf(text, sizeof text, "%s '%.60s' in %zu", used ? "," : "; also",
                                       clv__shown(other->name, &name), missing);
            if (untold || used + (size_t)bytes >= sizeof others) {
                untold++;
                continue;
            }
            memcpy(others + used, text, (size_t)bytes + 1);
            used += (size_t)bytes;
        }
    }
    char more[40] = "";
    if (untold) snprintf(more, sizeof more, " and %zu more columns", untold);
    CLV_FAIL(m->error, CLV_E_FORMAT,
             "'%s', line %" PRIu64 ": nothing stands in column '%s' (in %zu of %zu rows%s%s); "
             "clv_table_config.missing = CLV_MISSING_DROP leaves such rows out%s%s%s%s",
             m->file.path, m->file.csv.lines[column->survey.first[CLV__CELL_MISSING] + 1],
             clv__shown(column->name, &name), column->survey.n[CLV__CELL_MISSING], rows, others, more,
             words || numbers ? ", clv_table_config.missing = CLV_MISSING_MEAN " : "",
             numbers ? "fills in the column's mean" : "", words && numbers ? " and " : "",
             !words    ? ""
             : numbers ? "makes a category of missing words"
                       : "makes a category of them");
}

/** The rows in which nothing is missing that must be there. */
static clv_status keep_rows(making *m) {
    const clv__table_form *form = &m->form;
    const size_t rows = m->file.csv.rows, all = form->n_targets + form->n;
    const clv__table_column *worst = NULL;
    m->kept = clv__alloc(rows, sizeof *m->kept);
    if (!m->kept) return no_memory(m);
    for (size_t row = 0; row < rows; row++) {
        bool good = true;
        for (size_t i = 0; i < all && good; i++) {
            const bool target = i < form->n_targets;
            const clv__table_column *column =
                target ? &form->targets[i] : &form->columns[i - form->n_targets];
            const bool filled = !target && form->missing == CLV_MISSING_MEAN;
            good = filled || column->survey.kinds[row] != CLV__CELL_MISSING;
            if (!good && !worst) worst = column;
        }
        if (!good && form->missing == CLV_MISSING_REFUSE) return refuse_missing(m, worst);
        if (good) m->kept[m->n_kept++] = row;
    }
    if (!m->n_kept)
        CLV_FAIL(m->error, CLV_E_FORMAT,
                 "'%s': each of the %zu rows lacks a value; leave out the columns that have few "
                 "(clv_table_config.ignore)",
                 m->file.path, rows);
    return CLV_OK;
}

/** So many of n rows are this part; 0.2 of 100 is 20, whatever 1 - 0.8 is in binary. */
static size_t part_of(size_t n, double part) {
    const double exact = part * (double)n, whole = nearbyint(exact);
    return (size_t)(fabs(exact - whole) < 1e-9 * (double)n + 1e-9 ? whole : floor(exact));
}

static clv_status choose_rows(making *m) {
    const clv_table_config *config = m->config;
    CLV_TRY(keep_rows(m));
    m->first = part_of(m->n_kept, config->begin);
    m->last = part_of(m->n_kept, config->end > 0 ? config->end : 1);
    m->known = config->begin > 0 ? m->first : m->last;
    if (m->last <= m->first)
        CLV_FAIL(m->error, CLV_E_VALUE,
                 "'%s': none of the %zu rows lies in the part from %g to %g; give more rows, or another part "
                 "(clv_table_config.begin)",
                 m->file.path, m->n_kept, config->begin, config->end);
    return CLV_OK;
}

// ---- what is learnt of them -----------------------------------------------------------------------------------

static int compare_words(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/** The words of a column in n of the kept rows, each once, in order. */
static clv_status list_words(const making *m, clv__table_column *column, size_t n) {
    const char **words = clv__alloc(n + 1, sizeof *words);
    size_t there = 0, each = 0;
    if (!words) return no_memory(m);
    for (size_t i = 0; i < n; i++)
        if (column->survey.kinds[m->kept[i]] != CLV__CELL_MISSING)
            words[there++] = clv__csv_field(&m->file.csv, (int64_t)m->kept[i], (size_t)column->at);
    qsort(words, there, sizeof *words, compare_words);
    for (size_t i = 0; i < there; i++)
        if (!each || strcmp(words[each - 1], words[i]) != 0) words[each++] = words[i];
    column->words = (clv__table_words){clv__alloc(each + 1, sizeof *column->words.all), each};
    for (size_t i = 0; column->words.all && i < each; i++)
        column->words.all[i] = (clv__table_class){words[i], (int32_t)i};
    free(words);
    return column->words.all ? CLV_OK : no_memory(m);
}

/** What stands behind a number that `text` begins with, as m² of `110 m²`; NULL: it is none, or nothing does. */
static const char *unit_behind(const char *text) {
    const char *at = text + strspn(text, "+-");
    if (at - text > 1 || *at < '0' || *at > '9') return NULL;
    at += strspn(at, "0123456789.,'");
    const char *unit = at + strspn(at, " ");
    const bool is_letter = (*unit | 32) >= 'a' && (*unit | 32) <= 'z';
    return is_letter || (unsigned char)*unit >= 0x80 ? unit : NULL;
}

/** Are the words of a column numbers with one unit all, too many for categories? The unit, or NULL. */
static const char *unit_of_all(const clv__table_words *words) {
    enum { CATEGORIES = 10 };
    const char *unit = words->n > CATEGORIES ? unit_behind(words->all->word) : NULL;
    for (size_t i = 1; unit && i < words->n; i++) {
        const char *other = unit_behind(words->all[i].word);
        if (!other || strcmp(other, unit) != 0) return NULL;
    }
    return unit;
}

enum { FEW_WORDS = 50 }; // so many may be another one in each row
enum { MOST_CLASSES = 65536 };

/** Is it one of the columns of words by the caller's word? */
static clv_status is_asked_for(const making *m, const clv__table_column *column, bool *out) {
    if (!m->config->words || clv__csv_column(&m->file.csv, column->name, strlen(column->name)) < 0)
        return CLV_OK;
    int *room = clv__alloc(m->file.csv.columns, sizeof *room);
    size_t n = 0;
    if (!room) return no_memory(m);
    const clv_status status = find_columns(m, m->config->words, room, &n);
    for (size_t i = 0; i < n; i++) *out |= room[i] == column->at;
    free(room);
    return status;
}

static clv_status check_words(const making *m, const clv__table_column *column, size_t rows, bool target) {
    clv__shown_text name;
    const size_t n = column->words.n;
    if (target && n > MOST_CLASSES)
        CLV_FAIL(m->error, CLV_E_VALUE,
                 "'%s': column '%s' has %zu classes, and there can be %d; learn another column, "
                 "or make fewer classes of it",
                 m->file.path, clv__shown(column->name, &name), n, MOST_CLASSES);
    const char *unit = unit_of_all(&column->words);
    const bool many = n > FEW_WORDS && 2 * n > rows;
    if (!unit && !many) return CLV_OK;
    if (target && many && (!unit || m->config->classes))
        CLV_FAIL(m->error, CLV_E_VALUE,
                 "'%s': column '%s' has %zu classes in %zu rows, and a class needs several rows; learn "
                 "another column, or make fewer classes of it",
                 m->file.path, clv__shown(column->name, &name), n, rows);
    if (target && m->config->classes) return CLV_OK;
    bool asked = false;
    CLV_TRY(is_asked_for(m, column, &asked));
    if (asked) return CLV_OK;
    clv__shown_text word, measure;
    if (unit)
        CLV_FAIL(m->error, CLV_E_FORMAT,
                 "'%s': '%s' in column '%s' is a number with the unit '%s', like all of the column: write "
                 "the numbers alone, or take them as %s",
                 m->file.path, clv__shown(column->words.all->word, &word), clv__shown(column->name, &name),
                 clv__shown(unit, &measure),
                 target ? "classes (clv_table_config.classes)" : "words (clv_table_config.words)");
    CLV_FAIL(
        m->error, CLV_E_VALUE,
        "'%s': column '%s' has %zu different words in %zu rows: it names its rows, and says little of other "
        "rows; leave it out (clv_table_config.ignore), or take it all the same (clv_table_config.words)",
        m->file.path, clv__shown(column->name, &name), n, rows);
}

/** Mean and deviation of a column's numbers in the rows that are trained on, in double. */
static void measure(const making *m, clv__table_column *column) {
    double mean = 0, squares = 0;
    size_t n = 0;
    for (size_t i = 0; i < m->known; i++) {
        const double value = column->survey.values[m->kept[i]];
        if (isnan(value)) continue;
        mean += (value - mean) / (double)++n;
    }
    for (size_t i = 0; i < m->known; i++) {
        const double off = column->survey.values[m->kept[i]] - mean;
        if (!isnan(off)) squares += off * off;
    }
    const double deviation = n ? sqrt(squares / (double)n) : 0;
    column->fill = n ? mean : (double)NAN;
    if (m->config->standardize) column->scale = (clv__table_scale){mean, deviation > 0 ? deviation : 1};
}

static clv_status learn(making *m) {
    clv__table_form *form = &m->form;
    form->is_scaled = m->config->standardize;
    for (size_t i = 0; i < form->n; i++) {
        clv__table_column *column = &form->columns[i];
        if (!column->is_words) {
            measure(m, column);
            continue;
        }
        CLV_TRY(list_words(m, column, m->known));
        CLV_TRY(check_words(m, column, m->known, false));
    }
    for (size_t i = 0; i < form->n_targets; i++) {
        clv__table_column *column = &form->targets[i];
        if (!column->is_words) {
            measure(m, column);
            continue;
        }
        CLV_TRY(list_words(m, column, m->n_kept)); // of every part, so that all parts have the same classes
        CLV_TRY(check_words(m, column, m->n_kept, true));
    }
    clv__table_form_place(form);
    if (form->width > CLV__TABLE_WIDTH)
        CLV_FAIL(m->error, CLV_E_VALUE,
                 "'%s': its columns of words and numbers make rows of %" PRId64
                 " numbers, and %d are the most; leave columns of many words out (clv_table_config.ignore)",
                 m->file.path, form->width, CLV__TABLE_WIDTH);
    return CLV_OK;
}

/** A table for the first time. */
static clv_status make_form(making *m) {
    m->form.missing = m->config->missing;
    m->form.decimal_comma = m->file.decimal_comma = m->config->decimal_comma;
    CLV_TRY(choose_columns(m));
    CLV_TRY(tell_kinds(m));
    CLV_TRY(choose_rows(m));
    return learn(m);
}

// ---- for a model that learnt another table ------------------------------------------------------------------

/** A column that is named among the targets, and that the model did not learn. */
static clv_status other_target(const making *m, int column) {
    const clv__table_form *form = &m->form;
    char learnt[256] = "";
    clv__shown_text shown;
    for (size_t i = 0; i < form->n_targets && strlen(learnt) < sizeof learnt / 2; i++)
        snprintf(learnt + strlen(learnt), sizeof learnt - strlen(learnt), "%s'%.100s'", i ? ", " : "",
                 clv__shown(form->targets[i].name, &shown));
    CLV_FAIL(m->error, CLV_E_VALUE,
             "'%s': the model learnt %s, and the column '%s' is another one; leave its name out "
             "(clv_table_config.targets)",
             m->file.path, learnt, clv__shown(name_of(m, column), &shown));
}

/** Targets that are named must be those that the model learnt, all of them, in whatever order. */
static clv_status check_targets(making *m) {
    const clv__table_form *form = &m->form;
    int *room = clv__alloc(m->file.csv.columns, sizeof *room);
    size_t n = 0;
    clv_status status = room ? find_columns(m, m->config->targets, room, &n) : no_memory(m);
    for (size_t i = 0; status == CLV_OK && i < n; i++) {
        bool learnt = false;
        for (size_t k = 0; k < form->n_targets; k++)
            learnt |= !strcmp(form->targets[k].name, name_of(m, room[i]));
        if (!learnt) status = other_target(m, room[i]);
    }
    free(room);
    if (status == CLV_OK && n && n != form->n_targets)
        CLV_FAIL(m->error, CLV_E_VALUE,
                 "'%s': only %zu of the %zu columns that the model learnt are named; leave their names out "
                 "(clv_table_config.targets)",
                 m->file.path, n, form->n_targets);
    return status;
}

static clv_status take_form(making *m) {
    const char *ignore = m->config->ignore;
    CLV_TRY(clv__table_record_read(m->error, m->config->record, &m->form, &m->owner));
    m->form.decimal_comma |= m->config->decimal_comma;
    m->file.decimal_comma = m->form.decimal_comma;
    CLV_TRY(check_targets(m));
    CLV_TRY(clv__table_find(&m->file, &m->form, true, ignore));
    CLV_TRY(clv__table_form_survey(&m->file, m->form.columns, m->form.n));
    CLV_TRY(clv__table_form_survey(&m->file, m->form.targets, m->form.n_targets));
    return choose_rows(m);
}

// ---- made ---------------------------------------------------------------------------------------------------

/** The class of a row. */
static clv_status read_class(const making *m, size_t row, int32_t *out) {
    const clv__table_column *target = m->form.targets;
    const char *word = clv__csv_field(&m->file.csv, (int64_t)row, (size_t)target->at);
    clv__shown_text a;
    *out = clv__table_word_number(&target->words, word);
    if (*out < 0)
        CLV_FAIL(m->error, CLV_E_VALUE,
                 "'%s', line %" PRIu64 ": '%s' is no class that the model was trained on", m->file.path,
                 m->file.csv.lines[row + 1], clv__shown(word, &a));
    return CLV_OK;
}

static clv_status read_targets(const making *m, size_t row, size_t i, void *out) {
    const clv__table_form *form = &m->form;
    if (form->targets->is_words) return read_class(m, row, (int32_t *)out + i);
    for (size_t k = 0; k < form->n_targets; k++) {
        const clv__table_column *target = &form->targets[k];
        const double value = target->survey.values[row];
        ((float *)out)[i * form->n_targets + k] = (float)((value - target->scale.mean) / target->scale.scale);
    }
    return CLV_OK;
}

/** What of the form a dataset reads its rows by. */
static clv_status copy_places(const making *m, table *own) {
    const clv__table_form *form = &m->form;
    own->form = (clv__table_form){
        .columns = clv__alloc(form->n, sizeof *own->form.columns), .n = form->n, .width = form->width};
    if (!own->form.columns) return no_memory(m);
    for (size_t i = 0; i < form->n; i++) {
        own->form.columns[i] =
            (clv__table_column){.is_words = form->columns[i].is_words, .place = form->columns[i].place};
        own->report.word_columns += form->columns[i].is_words;
    }
    own->common.table_report = &own->report;
    own->report.columns = form->width;
    own->report.dropped = (int64_t)(m->file.csv.rows - m->n_kept);
    return CLV_OK;
}

/** How targets come back into their units; none where they are as they stand. */
static clv_status copy_scales(const making *m, clv_dataset *dataset) {
    const clv__table_form *form = &m->form;
    bool scaled = false;
    for (size_t k = 0; k < form->n_targets; k++)
        scaled |= form->targets[k].scale.mean != 0 || form->targets[k].scale.scale != 1;
    if (form->targets->is_words || !scaled) return CLV_OK;
    dataset->target_scales = clv__alloc(2 * form->n_targets, sizeof *dataset->target_scales);
    if (!dataset->target_scales) return no_memory(m);
    for (size_t k = 0; k < form->n_targets; k++) {
        dataset->target_scales[2 * k] = form->targets[k].scale.mean;
        dataset->target_scales[2 * k + 1] = form->targets[k].scale.scale;
    }
    return CLV_OK;
}

/** The names of numbers to be learnt, in one piece: pointers, and the texts behind them. */
static clv_status copy_number_names(const making *m, clv_dataset *dataset) {
    const clv__table_form *form = &m->form;
    const size_t pointers = form->n_targets * sizeof *dataset->number_names;
    size_t bytes = pointers;
    if (form->targets->is_words) return CLV_OK;
    for (size_t k = 0; k < form->n_targets; k++) bytes += strlen(form->targets[k].name) + 1;
    dataset->number_names = clv__alloc(1, bytes);
    if (!dataset->number_names) return no_memory(m);
    char *text = (char *)dataset->number_names + pointers;
    for (size_t k = 0; k < form->n_targets; k++) {
        dataset->number_names[k] = strcpy(text, form->targets[k].name);
        text += strlen(text) + 1;
    }
    return CLV_OK;
}

static void describe(const making *m, size_t n, clv_dataset *dataset) {
    const clv__table_form *form = &m->form;
    const bool classes = form->targets->is_words;
    const int64_t width = form->width, targets = (int64_t)form->n_targets;
    dataset->read = read_row;
    dataset->destroy = destroy;
    dataset->count = (int64_t)n;
    dataset->dtype = CLV_DTYPE_F32;
    dataset->sample = clv_shape_make(1, &width);
    dataset->numel = width;
    dataset->target = classes ? clv_shape_make(0, NULL) : clv_shape_make(1, &targets);
    dataset->target_dtype = classes ? CLV_DTYPE_I32 : CLV_DTYPE_F32;
    dataset->target_numel = classes ? 1 : targets;
    dataset->classes = classes ? (int)form->targets->words.n : 0;
}

static clv_status fill(const making *m, size_t n, table *own) {
    const clv__table_form *form = &m->form;
    own->values = clv__alloc(n * form->n, sizeof *own->values);
    own->targets = clv__alloc(n * (size_t)own->common.target_numel, sizeof(float));
    if (!own->values || !own->targets) return no_memory(m);
    CLV_TRY(copy_places(m, own));
    CLV_TRY(copy_scales(m, &own->common));
    CLV_TRY(copy_number_names(m, &own->common));
    for (size_t i = 0; i < n; i++) {
        const size_t row = m->kept[m->first + i];
        CLV_TRY(clv__table_row(&m->file, form, row, own->values + i * form->n, &own->report));
        CLV_TRY(read_targets(m, row, i, own->targets));
    }
    own->common.table = m->config->record ? clv__strdup(m->config->record) : clv__table_record_write(form);
    return own->common.table ? CLV_OK : no_memory(m);
}

static clv_status make(making *m, clv_dataset **out) {
    CLV_TRY(m->config->record ? take_form(m) : make_form(m));
    const size_t all = m->last - m->first, limit = (size_t)m->config->limit;
    const size_t n = limit && limit < all ? limit : all;
    table *own = clv__alloc(1, sizeof *own);
    if (!own) return no_memory(m);
    describe(m, n, &own->common);
    const clv_status status = fill(m, n, own);
    if (status == CLV_OK)
        *out = &own->common;
    else
        clv_dataset_destroy(&own->common);
    return status;
}

static clv_status check_config(clv__error *error, const clv_table_config *config) {
    if (!config->record && (!config->targets || !*config->targets))
        CLV_FAIL(error, CLV_E_VALUE, "which columns of the table are to be learnt? `targets` names them");
    if (!(config->begin >= 0 && config->begin < 1 &&
          (config->end == 0 || (config->end > config->begin && config->end <= 1))))
        CLV_FAIL(error, CLV_E_VALUE, "the part of a table from %g to %g: it must lie within 0 and 1",
                 config->begin, config->end);
    if (config->limit < 0) CLV_FAIL(error, CLV_E_VALUE, "a limit of %" PRId64 " rows", config->limit);
    if ((unsigned)config->missing > CLV_MISSING_DROP)
        CLV_FAIL(error, CLV_E_VALUE, "missing is %d, which is no clv_missing", (int)config->missing);
    return CLV_OK;
}

clv_status clv_dataset_table(clv_runtime *runtime, const char *path, const clv_table_config *config,
                             clv_dataset **out) {
    clv__error *error = clv__io_error(runtime);
    CLV_TRY(CLV__GIVEN(error, path));
    CLV_TRY(CLV__GIVEN(error, config));
    CLV_TRY(CLV__GIVEN(error, out));
    *out = NULL;
    CLV_TRY(check_config(error, config));
    making m = {.error = error, .config = config};
    CLV_TRY(clv__table_open(error, path, &m.file));
    const clv_status status = make(&m, out);
    free(m.kept);
    clv__table_record_free(&m.form, m.owner);
    clv__table_close(&m.file);
    return status;
}
