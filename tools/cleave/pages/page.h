// SPDX-License-Identifier: Apache-2.0
// A page of HTML that is put together in memory: one file, no scripts, nothing loaded from elsewhere. page.c
// holds the frame and the escaping, plot.c the pictures.
#ifndef CLEAVE_PAGE_H
#define CLEAVE_PAGE_H

#include "cli.h"

typedef struct cli_page {
    FILE *out; // into memory
    char *text;
    size_t n;
    const struct page_head *heads; // of the table that is being put
    int column;
} cli_page;

/** Begin a page. Prints and returns EXIT_FAILED without memory. */
int page_begin(cli_page *page, const char *title);
/** End it and write it, as cli_write_whole. Prints what fails. */
int page_write(cli_page *page, const char *path);
/** Throw away what is left. */
void page_drop(cli_page *page);
/** Markup, as it stands. */
void page_add(cli_page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** Text: what HTML would take for markup is escaped, what no text may hold is replaced. */
void page_text(cli_page *page, const char *text);

/** The head of a column. The last one of a table has no text. */
typedef struct page_head {
    const char *text;
    bool number; // to the right
} page_head;
/** Begin a table with these heads, which must outlive it. On a phone each row becomes a block, in which each
 *  cell has its head beside it: nothing is cut, and nothing has to be moved sideways. */
void page_table(cli_page *page, const page_head *heads);
/** Begin a row; a cell with a text, or with a number of as many digits as say something (a dash for none);
 *  the begin of a cell whose markup follows. Each cell takes the next head. */
void page_row(cli_page *page);
void page_cell(cli_page *page, const char *class, const char *text);
void page_cell_number(cli_page *page, double number);
void page_cell_begin(cli_page *page, const char *class);

/** A point of a curve. */
typedef struct plot_point {
    double x, y;
} plot_point;

/** A curve. */
typedef struct plot_curve {
    const char *name;
    const plot_point *points; // x grows
    size_t n;
    int colour;
    bool dotted; // each point with a dot: there are few
    bool smooth; // drawn smoothed too, as the page's switch says
} plot_curve;

/** How strongly curves are smoothed: what the page's switch offers. The first is not at all. */
enum { PLOT_SMOOTH = 3 };
void plot_switch(cli_page *page);
/** Curves in one frame, with the values at the pointer; y as a logarithm where it spans more than two powers
 *  of ten. Equal curves are drawn as dashes by turns, so that each is seen. `format` is of a value: `%.4f`.
 *  Nothing is drawn without a point. */
void plot_curves(cli_page *page, const char *title, const plot_curve *curves, int n, const char *x_name,
                 const char *format);
/** Names and colours of curves, once for several frames. */
void plot_legend(cli_page *page, const plot_curve *curves, int n);
/** A horizontal bar, `part` of it full. */
void plot_bar(cli_page *page, double part, const char *class);

#endif
