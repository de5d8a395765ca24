// SPDX-License-Identifier: Apache-2.0
// What is known of the place where text is shown: how wide it is, how many columns a text takes there; text
// wrapped to it, lines made to fit it, and lines that are drawn over.
#ifndef CLEAVE_SCREEN_H
#define CLEAVE_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { SCREEN_USUAL = 80 };

/** Columns of `out`: those of the terminal, or fewer if COLUMNS says so; elsewhere those of COLUMNS; 0: no
 *  limit is known. It is asked again each time, so that a resize is noticed. */
int screen_width(FILE *out);

/** Columns that a text takes: control sequences none, an UTF-8 sequence one. */
int screen_columns(const char *text);

/** Print words from column `at` on, each new line indented by `indent`, within `width` columns (0: on one
 *  line). No line end is printed after the last word. Returns the column after it. */
int screen_wrap(FILE *out, const char *text, int at, int indent, int width);

/** Print a line as printf does, and end it; on a screen it is broken at words, and goes on two columns
 *  further in. */
void screen_say(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Text that takes at most `columns`: what is left out is told by an ellipsis, and no number is cut in two.
 *  In `middle`: the beginning and the end are kept. Text holds no control sequences. */
void screen_cut(const char *text, int columns, bool middle, char *out, size_t bytes);

/** Can lines be drawn over there? And in colours (NO_COLOR)? */
bool screen_is_terminal(FILE *out);
bool screen_has_colour(FILE *out);

// ---- a line that fits -------------------------------------------------------------------------------------

enum { SCREEN_PIECES = 24, SCREEN_KEEP = 100 };

/** A part of a line. A bar has no text, and takes what room there is. */
typedef struct screen_piece {
    char text[560];
    const char *colour; // NULL: as it is
    int importance;     // the least important piece is left out first; SCREEN_KEEP: never
    int least, most;    // columns of a bar
    double part;        // of a bar that is full
} screen_piece;

typedef struct screen_line {
    screen_piece pieces[SCREEN_PIECES];
    int n;
    bool colour;
} screen_line;

/** Add text, blanks that part it from what is before it included. */
void screen_line_add(screen_line *line, int importance, const char *colour, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void screen_line_bar(screen_line *line, int importance, const char *colour, int least, int most, double part);
/** The line in at most `width` columns (0: all of it, bars as wide as they are at most). */
void screen_line_text(const screen_line *line, int width, char *out, size_t bytes);

// ---- lines that are drawn over ----------------------------------------------------------------------------

/** Some lines at the bottom of a terminal, which the next drawing replaces. */
typedef struct screen_area {
    FILE *out;
    bool terminal, colour, drawn;
} screen_area;

void screen_area_init(screen_area *area, FILE *out, bool terminal);
/** Draw lines over those before; what does not fit in height is left out. Not a terminal: nothing. */
void screen_area_draw(screen_area *area, const screen_line *lines, int n);
/** Wipe the lines, before something else is printed there. */
void screen_area_clear(screen_area *area);
/** The same for what is drawn on stderr, for those who do not know of it. */
void screen_clear(void);

#endif
