// SPDX-License-Identifier: Apache-2.0
// The one printer of tables: widths from what the cells hold, then as much as the screen has room for.
#include "table.h"

#include "base/shown.h"

#include "screen.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 2, CELL_BYTES = 4096, LEAST_NAME = 4, LEAST_REST = 30, REST_INDENT = 4 };

typedef struct cell {
    char *text;
    const char *colour;
    bool rest; // it goes on to the end of the row
} cell;

struct table {
    table_column columns[TABLE_COLUMNS];
    int n;
    cell *cells; // n of each row
    size_t n_cells, room;
    const char *colour; // of the next cell
    bool hidden[TABLE_COLUMNS], failed;
};

table *table_create(const table_column *columns, int n) {
    table *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->n = n < TABLE_COLUMNS ? n : TABLE_COLUMNS;
    memcpy(t->columns, columns, (size_t)t->n * sizeof *columns);
    return t;
}

static void add_cell(table *t, char *text, bool rest) {
    if (!t || !text) {
        if (t) t->failed = true;
        free(text);
        return;
    }
    if (t->n_cells == t->room) {
        size_t room = t->room ? 2 * t->room : 64;
        cell *cells = realloc(t->cells, room * sizeof *cells);
        if (!cells) {
            t->failed = true;
            free(text);
            return;
        }
        t->cells = cells;
        t->room = room;
    }
    t->cells[t->n_cells++] = (cell){text, t->colour, rest};
    t->colour = NULL;
}

static char *format_text(const char *format, va_list args) {
    char text[CELL_BYTES];
    clv__format_shown(text, sizeof text, 0, format, args);
    return strdup(text);
}

void table_add(table *t, const char *format, ...) {
    va_list args;
    if (!t) return;
    va_start(args, format);
    add_cell(t, format_text(format, args), false);
    va_end(args);
}

void table_rest(table *t, const char *format, ...) {
    va_list args;
    if (!t) return;
    va_start(args, format);
    add_cell(t, format_text(format, args), true);
    va_end(args);
    while (!t->failed && t->n_cells % (size_t)t->n) add_cell(t, strdup(""), false);
}

void table_paint(table *t, const char *colour) {
    if (t) t->colour = colour;
}

void table_hide(table *t, int column) {
    if (t) t->hidden[column] = true;
}

// ---- widths -----------------------------------------------------------------------------------------------

/** What a table looks like on a screen. */
typedef struct layout {
    int width[TABLE_COLUMNS]; // of each column; 0: left out
    bool shown[TABLE_COLUMNS];
    int screen; // 0: no limit
} layout;

/** Is it the column that stays the longest of those under one heading? */
static bool leads(const table *t, int column) {
    const char *over = t->columns[column].over;
    for (int i = 0; i < t->n; i++) {
        int more = t->columns[i].importance - t->columns[column].importance;
        if (i != column && t->columns[i].over == over && (more > 0 || (more == 0 && i < column)))
            return false;
    }
    return over != NULL;
}

/** Columns that the widest cell, or a heading, takes. */
static int natural_width(const table *t, int column) {
    int widest = screen_columns(t->columns[column].name);
    if (leads(t, column) && screen_columns(t->columns[column].over) > widest)
        widest = screen_columns(t->columns[column].over);
    for (size_t i = 0; i < t->n_cells; i += (size_t)t->n) {
        const cell *row = &t->cells[i];
        bool covered = false; // by a sentence
        for (int k = 0; k <= column; k++) covered |= row[k].rest;
        int wide = covered ? 0 : screen_columns(row[column].text);
        if (wide > widest) widest = wide;
    }
    return widest;
}

static int total_width(const table *t, const layout *l) {
    int all = -GAP;
    for (int i = 0; i < t->n; i++)
        if (l->shown[i]) all += l->width[i] + GAP;
    return all;
}

/** The shown or hidden column that is the least or most important; -1: none. */
static int pick(const table *t, const bool *among, bool most) {
    int found = -1;
    for (int i = 0; i < t->n; i++) {
        int better = found < 0 ? 1 : t->columns[i].importance - t->columns[found].importance;
        if (among[i] && (found < 0 || (most ? better > 0 : better <= 0))) found = i;
    }
    return found;
}

static layout lay_out(const table *t, int screen) {
    layout l = {.screen = screen};
    int natural[TABLE_COLUMNS];
    bool left[TABLE_COLUMNS] = {false}, droppable[TABLE_COLUMNS];
    for (int i = 0; i < t->n; i++) {
        const table_column *column = &t->columns[i];
        natural[i] = l.width[i] = natural_width(t, i);
        l.shown[i] = !t->hidden[i];
        droppable[i] = l.shown[i] && column->importance < TABLE_KEEP;
        if (screen && column->kind != TABLE_NUMBER && column->least && column->least < l.width[i])
            l.width[i] = column->least;
    }
    if (!screen) return l;
    for (int least; total_width(t, &l) > screen && (least = pick(t, droppable, false)) >= 0;) {
        droppable[least] = l.shown[least] = false;
        left[least] = true;
    }
    for (int most; (most = pick(t, left, true)) >= 0;
         left[most] = false) { // what a wider column has made room for
        l.shown[most] = true;
        if (total_width(t, &l) > screen) l.shown[most] = false;
    }
    bool waiting[TABLE_COLUMNS];
    memcpy(waiting, l.shown, sizeof waiting);
    for (int most; (most = pick(t, waiting, true)) >= 0; waiting[most] = false) {
        int spare = screen - total_width(t, &l), more = natural[most] - l.width[most];
        if (spare > 0) l.width[most] += more < spare ? more : spare;
    }
    for (int i = 0; i < t->n; i++) { // a screen on which not even what matters fits
        int over = total_width(t, &l) - screen;
        if (over <= 0 || !l.shown[i] || t->columns[i].kind == TABLE_NUMBER) continue;
        int least = l.width[i] < LEAST_NAME ? l.width[i] : LEAST_NAME;
        l.width[i] = l.width[i] - over > least ? l.width[i] - over : least;
    }
    return l;
}

// ---- lines ------------------------------------------------------------------------------------------------

static bool is_last(const table *t, const layout *l, int column) {
    for (int i = column + 1; i < t->n; i++)
        if (l->shown[i]) return false;
    return true;
}

/** A text in its column; blanks after it are owed, so that no line ends with them. */
static void put_cell(FILE *out, const table *t, const layout *l, int column, const char *text,
                     const char *colour, int *owed) {
    char fitting[CELL_BYTES];
    const table_column *of = &t->columns[column];
    screen_cut(text, of->kind == TABLE_NUMBER ? 1 << 20 : l->width[column], of->kind == TABLE_NAME, fitting,
               sizeof fitting);
    int blanks = l->width[column] - screen_columns(fitting);
    if (blanks < 0) blanks = 0;
    if (of->kind == TABLE_NUMBER) *owed += blanks;
    if (*fitting) {
        fprintf(out, "%*s%s%s%s", *owed, "", colour ? colour : "", fitting, colour ? "\033[0m" : "");
        *owed = 0;
    } else {
        *owed += screen_columns(fitting);
    }
    if (of->kind != TABLE_NUMBER) *owed += blanks;
    if (!is_last(t, l, column)) *owed += GAP;
}

/** The headings over several columns, where there are any. */
static void put_over(FILE *out, const table *t, const layout *l) {
    bool any = false;
    for (int i = 0; i < t->n; i++) any |= l->shown[i] && t->columns[i].over && *t->columns[i].over;
    int at = 0, owed = 0;
    const char *last = NULL;
    for (int i = 0; any && i < t->n; i++) {
        const char *over = t->columns[i].over;
        if (!l->shown[i]) continue;
        if (over && over != last) {
            if (owed < at) owed += fprintf(out, "%*s", at - owed, "");
            owed += fprintf(out, "%s", over);
        }
        last = over;
        at += l->width[i] + GAP;
    }
    if (any) fputc('\n', out);
}

static void put_row(FILE *out, const table *t, const layout *l, const cell *row, bool colours) {
    int owed = 0, at = 0;
    for (int i = 0; i < t->n; i++) {
        const char *colour = colours ? row[i].colour : NULL;
        if (row[i].rest) {
            bool below = l->screen && l->screen - at < LEAST_REST;
            int indent = below ? REST_INDENT : at;
            if (below)
                fprintf(out, "\n%*s", indent, "");
            else
                fprintf(out, "%*s", owed, "");
            if (colour) fputs(colour, out);
            screen_wrap(out, row[i].text, indent, indent, l->screen);
            if (colour) fputs("\033[0m", out);
            break;
        }
        if (!l->shown[i]) continue;
        put_cell(out, t, l, i, row[i].text, colour, &owed);
        at += l->width[i] + GAP;
    }
    fputc('\n', out);
}

/** What is not shown. */
static void put_left_out(FILE *out, const table *t, const layout *l) {
    char text[CELL_BYTES] = "";
    const char *last = NULL;
    size_t n = 0;
    for (int i = 0; i < t->n && n < sizeof text; i++) {
        const table_column *column = &t->columns[i];
        if (l->shown[i] || t->hidden[i]) continue;
        const char *over = column->over && *column->over ? column->over : NULL;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s%s%s",
                              n ? ", " : "(no room for: ", over && over != last ? over : "",
                              over && over != last ? " " : "", column->name);
        last = over;
    }
    if (!n) return;
    if (n < sizeof text) snprintf(text + n, sizeof text - n, ")");
    screen_wrap(out, text, 0, 1, l->screen);
    fputc('\n', out);
}

void table_destroy(table *t) {
    for (size_t i = 0; t && i < t->n_cells; i++) free(t->cells[i].text);
    if (t) free(t->cells);
    free(t);
}

void table_print(table *t, FILE *out) {
    if (!t || t->failed) {
        fputs("cleave: out of host memory for a table\n", stderr);
    } else {
        const bool colours = screen_has_colour(out);
        layout l = lay_out(t, screen_width(out));
        int owed = 0;
        put_over(out, t, &l);
        for (int i = 0; i < t->n; i++)
            if (l.shown[i]) put_cell(out, t, &l, i, t->columns[i].name, NULL, &owed);
        fputc('\n', out);
        for (size_t i = 0; i + (size_t)t->n <= t->n_cells; i += (size_t)t->n)
            put_row(out, t, &l, &t->cells[i], colours);
        put_left_out(out, t, &l);
    }
    table_destroy(t);
}
