// SPDX-License-Identifier: Apache-2.0
// A page of HTML that is put together in memory: one file, no scripts, nothing loaded from elsewhere. page.c holds the frame, the
// escaping and the atomic write, plot.c the pictures.
#ifndef CLEAVE_PAGE_H
#define CLEAVE_PAGE_H

#include "cli.h"

typedef struct cli_page {
    FILE *out; // into memory
    char *text;
    size_t n;
} cli_page;

/** Begin a page. Prints and returns EXIT_FAILED without memory. */
int page_begin(cli_page *page, const char *title);
/** End it and write it: beside the file that is there, which is replaced when all of the new one is on the disk. Prints what fails. */
int page_write(cli_page *page, const char *path);
/** Throw away what is left. */
void page_drop(cli_page *page);
/** Markup, as it stands. */
void page_add(cli_page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** Text: what HTML would take for markup is escaped, what no text may hold is replaced. */
void page_text(cli_page *page, const char *text);

/** A point of a curve. */
typedef struct plot_point {
    double x, y;
} plot_point;

/** A curve. */
typedef struct plot_curve {
    const char *name;
    plot_point *points; // x grows
    size_t n;
} plot_curve;

/** Curves in one frame; y as a logarithm where it spans more than two powers of ten. */
void plot_curves(cli_page *page, const plot_curve *curves, int n, const char *x_name, const char *y_name);
/** A horizontal bar, `part` of it full. */
void plot_bar(cli_page *page, double part, const char *class);

#endif
