// SPDX-License-Identifier: Apache-2.0
// Pictures as SVG inside the page. Colours come from the page's style, so that they fit light and dark.
#include "pages/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 440, HEIGHT = 250, LEFT = 60, RIGHT = 12, TOP = 10, BOTTOM = 34, COLOURS = 6 };
enum { POINTER_STEPS = 60 }; // places of the pointer with values of their own
enum { DASH = 9 };           // of a curve that lies on another, in the picture's units
static const double smoothing[PLOT_SMOOTH] = {0, 0.6,
                                              0.9}; // TensorBoard's measure: the weight of what was before
static const char *const smoothing_names[PLOT_SMOOTH] = {"not smoothed", "smoothed", "much"};

/** An axis: values from lo to hi, or their logarithms. */
typedef struct scale {
    double lo, hi;
    bool log;
} scale;

static double place_of(const scale *axis, double value) {
    double v = axis->log ? log10(value) : value;
    return (v - axis->lo) / (axis->hi - axis->lo);
}

static double x_of(const scale *axis, double value) {
    return LEFT + place_of(axis, value) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const scale *axis, double value) {
    return HEIGHT - BOTTOM - place_of(axis, value) * (HEIGHT - TOP - BOTTOM);
}

static bool can_be_drawn(const scale *y, const plot_point *point) {
    return isfinite(point->x) && isfinite(point->y) && (!y->log || point->y > 0);
}

/** Axes that hold every point. */
static void span(const plot_curve *curves, int n, scale *x, scale *y) {
    double least = INFINITY, most = -INFINITY, first = INFINITY, last = -INFINITY;
    for (int c = 0; c < n; c++) {
        for (size_t i = 0; i < curves[c].n; i++) {
            plot_point p = curves[c].points[i];
            if (!isfinite(p.x) || !isfinite(p.y)) continue;
            first = fmin(first, p.x), last = fmax(last, p.x);
            least = fmin(least, p.y), most = fmax(most, p.y);
        }
    }
    *x = (scale){first, last > first ? last : first + 1, false};
    *y = (scale){.log = least > 0 && most / least > 100};
    y->lo = y->log ? floor(log10(least)) : fmin(0, least);
    y->hi = y->log ? ceil(log10(most)) : most > y->lo ? most + 0.05 * (most - y->lo) : y->lo + 1;
}

/** A step between grid lines of 1, 2 or 5 times a power of ten: about `count` of them. */
static double grid_step(const scale *axis, int count) {
    double raw = (axis->hi - axis->lo) / count, power = pow(10, floor(log10(raw))), part = raw / power;
    double step = (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10) * power;
    return axis->log && step < 1 ? 1 : step;
}

/** A value beside an axis, in the room that there is: at most 7 letters. */
static const char *label_of(double value, double step, char text[32]) {
    if (fabs(value) < 1e-6 * step) value = 0; // which steps have missed by rounding
    const double size = fabs(value);
    const bool millions = size >= 1e6 && size < 1e9, whole = size >= 1e4 && size < 1e5;
    snprintf(text, 32,
             millions                                     ? "%.4gM"
             : whole                                      ? "%.0f"
             : value == 0 || (size >= 1e-4 && size < 1e4) ? "%.4g"
                                                          : "%.1e",
             millions ? value / 1e6 : value);
    char *power = strchr(text, 'e'); // 1.5e-04 is 1.5e-4, and 2.0e+11 is 2e11
    if (power) {
        const int exponent = atoi(power + 1);
        if (power - text > 2 && !strncmp(power - 2, ".0", 2)) power -= 2;
        snprintf(power, 8, "e%d", exponent);
    }
    return text;
}

static void draw_grid(cli_page *page, const scale *x, const scale *y) {
    char label[32];
    double step = grid_step(y, 5);
    for (double v = ceil(y->lo / step) * step; v <= y->hi + 1e-9 * step; v += step) {
        double at = y_of(&(scale){y->lo, y->hi, false}, v);
        page_add(
            page,
            "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%d\" y=\"%.1f\" "
            "text-anchor=\"end\">%s</text>\n",
            LEFT, WIDTH - RIGHT, at, at, LEFT - 8, at + 4,
            y->log ? label_of(pow(10, v), 0, label) : label_of(v, step, label));
    }
    step = grid_step(x, 5);
    for (double v = ceil(x->lo / step) * step; v <= x->hi + 1e-9 * step; v += step)
        page_add(page, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%s</text>\n", x_of(x, v),
                 HEIGHT - BOTTOM + 16, x_of(x, v) > WIDTH - 3 * RIGHT ? "end" : "middle",
                 label_of(v, step, label));
}

/** Exponential means of the values so far, without the pull of a beginning at zero. */
static double smoothed(double weight, double *mean, double *part, double value) {
    if (!isfinite(value)) return value;
    *mean = weight * *mean + (1 - weight) * value;
    *part = weight * *part + (1 - weight);
    return *mean / *part;
}

/** Do two curves look alike, point by point? */
static bool look_alike(const plot_curve *a, const plot_curve *b, const scale *x, const scale *y) {
    if (a->n != b->n) return false;
    for (size_t i = 0; i < a->n; i++) {
        bool drawn = can_be_drawn(y, &a->points[i]);
        if (drawn != can_be_drawn(y, &b->points[i])) return false;
        if (drawn && (fabs(x_of(x, a->points[i].x) - x_of(x, b->points[i].x)) > 1 ||
                      fabs(y_of(y, a->points[i].y) - y_of(y, b->points[i].y)) > 1))
            return false;
    }
    return true;
}

/** Curves that look alike share the line: dashes by turns. */
typedef struct turn {
    int member, members;
} turn;

static turn turn_of(const plot_curve *curves, int n, int c, const scale *x, const scale *y) {
    turn t = {0, 0};
    for (int other = 0; other < n; other++) {
        if (!look_alike(&curves[c], &curves[other], x, y)) continue;
        t.member += other < c;
        t.members++;
    }
    return t;
}

static void draw_curve(cli_page *page, const plot_curve *curve, double weight, double width, turn t,
                       const scale *x, const scale *y) {
    page_add(page, "<path class=\"curve\" stroke=\"var(--c%d)\" style=\"stroke-width:%.1f",
             curve->colour % COLOURS, width);
    if (t.members > 1)
        page_add(page, ";stroke-dasharray:%d %d;stroke-dashoffset:%d", DASH, DASH * (t.members - 1),
                 -DASH * t.member);
    page_add(page, "\" d=\"");
    bool pen_down = false;
    double mean = 0, part = 0;
    for (size_t i = 0; i < curve->n; i++) {
        plot_point point = curve->points[i];
        bool drawn = can_be_drawn(y, &point);
        if (drawn) point.y = smoothed(weight, &mean, &part, point.y);
        if (drawn) page_add(page, "%s%.1f %.1f", pen_down ? "L" : "M", x_of(x, point.x), y_of(y, point.y));
        pen_down = drawn; // a loss that is no number leaves a gap
    }
    page_add(page, "\"/>\n");
    for (size_t i = 0; curve->dotted && i < curve->n; i++)
        if (can_be_drawn(y, &curve->points[i]))
            page_add(page, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"var(--c%d)\"/>",
                     x_of(x, curve->points[i].x), y_of(y, curve->points[i].y), 1.2 + width,
                     curve->colour % COLOURS);
}

/** All curves, smoothed so. Where they partly lie on each other the one below is wider. */
static void draw_curves(cli_page *page, const plot_curve *curves, int n, double weight, const scale *x,
                        const scale *y) {
    for (int c = 0; c < n; c++)
        if (weight == 0 || curves[c].smooth)
            draw_curve(page, &curves[c], weight, 1.6 + 1.8 * (n - 1 - c) / n, turn_of(curves, n, c, x, y), x,
                       y);
}

/** The point of a curve that is nearest to a place on the axis; NULL if it does not reach there. */
static const plot_point *nearest(const plot_curve *curve, double at, double within) {
    const plot_point *best = NULL;
    for (size_t i = 0; i < curve->n; i++) {
        const plot_point *point = &curve->points[i];
        if (fabs(point->x - at) <= within && (!best || fabs(point->x - at) < fabs(best->x - at)))
            best = point;
    }
    return best;
}

/** What stands at a place of the pointer: the step, and the value of each curve. */
static void draw_tip(cli_page *page, const plot_curve *curves, int n, double at, double within,
                     const char *x_name, const char *format, const scale *x) {
    double place = x_of(x, at);
    bool left = place < (LEFT + WIDTH - RIGHT) / 2.0;
    int row = 0;
    page_add(page, "<g class=\"tip\"><line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", place, place, TOP,
             HEIGHT - BOTTOM);
    page_add(page, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">", place + (left ? 8 : -8), TOP + 12,
             left ? "start" : "end");
    page_text(page, x_name);
    page_add(page, " %.0f</text>", at);
    for (int c = 0; c < n; c++) {
        const plot_point *point =
            nearest(&curves[c], at, curves[c].dotted ? 2 * within + 1e9 * (curves[c].n < 2) : within);
        char value[48];
        if (!point) continue;
        snprintf(value, sizeof value, format, point->y); // of a table in the program
        page_add(page, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\" style=\"fill:var(--c%d)\">%s  ",
                 place + (left ? 8 : -8), TOP + 28 + 15 * row++, left ? "start" : "end",
                 curves[c].colour % COLOURS, value);
        page_text(page, curves[c].name);
        page_add(page, "</text>");
    }
    page_add(page, "</g>");
}

/** Bands over the frame, each with the values that it shows while the pointer, or a finger, is on it. */
static void draw_bands(cli_page *page, const plot_curve *curves, int n, const char *x_name,
                       const char *format, const scale *x) {
    size_t most = 1;
    for (int c = 0; c < n; c++) most = curves[c].n > most ? curves[c].n : most;
    int bands = most < POINTER_STEPS ? (int)most : POINTER_STEPS;
    double width = (double)(WIDTH - LEFT - RIGHT) / bands;
    for (int b = 0; b < bands; b++) {
        double first = x->lo, span_x = x->hi - x->lo,
               at = bands > 1 ? first + span_x * b / (bands - 1) : first;
        double within = bands > 1 ? span_x / (bands - 1) : span_x;
        const plot_point *exact = n ? nearest(&curves[0], at, within) : NULL;
        double centre = x_of(x, at);
        page_add(page, "<g class=\"at\"><rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>",
                 centre - width / 2, TOP, width, HEIGHT - TOP - BOTTOM);
        draw_tip(page, curves, n, exact ? exact->x : at, within, x_name, format, x);
        page_add(page, "</g>\n");
    }
}

void plot_switch(cli_page *page) {
    for (int i = 0; i < PLOT_SMOOTH; i++)
        page_add(page,
                 "<input class=\"smooth\" type=\"radio\" name=\"smooth\" id=\"smooth%d\"%s><label "
                 "for=\"smooth%d\">%s</label>\n",
                 i, i == 1 ? " checked" : "", i, smoothing_names[i]);
}

void plot_curves(cli_page *page, const char *title, const plot_curve *curves, int n, const char *x_name,
                 const char *format) {
    scale x, y;
    span(curves, n, &x, &y);
    if (!isfinite(x.lo) || !isfinite(y.lo)) return;
    bool smooth = false;
    for (int c = 0; c < n; c++) smooth |= curves[c].smooth;
    page_add(page, "<figure class=\"card\"><figcaption>");
    page_text(page, title);
    page_add(page, "</figcaption><svg class=\"plot\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH,
             HEIGHT);
    page_text(page, title);
    page_add(page, "\">\n");
    draw_grid(page, &x, &y);
    page_add(page, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", WIDTH - RIGHT, HEIGHT - 3);
    page_text(page, x_name);
    page_add(page, "</text>\n<g class=\"%s\">\n", smooth ? "raw" : "");
    draw_curves(page, curves, n, 0, &x, &y);
    page_add(page, "</g>\n");
    for (int s = 1; smooth && s < PLOT_SMOOTH; s++) {
        page_add(page, "<g class=\"s%d\">\n", s);
        draw_curves(page, curves, n, smoothing[s], &x, &y);
        page_add(page, "</g>\n");
    }
    draw_bands(page, curves, n, x_name, format, &x);
    page_add(page, "</svg></figure>\n");
}

void plot_legend(cli_page *page, const plot_curve *curves, int n) {
    page_add(page, "<div class=\"legend\">");
    for (int c = 0; c < n; c++) {
        page_add(page, "<span><i style=\"background:var(--c%d)\"></i>", curves[c].colour % COLOURS);
        page_text(page, curves[c].name);
        page_add(page, "</span>");
    }
    page_add(page, "</div>\n");
}

void plot_bar(cli_page *page, double part, const char *class) {
    double full = part > 0 ? fmin(1, part) * 100 : 0;
    page_add(page,
             "<svg class=\"bar\" viewBox=\"0 0 100 6\" preserveAspectRatio=\"none\" "
             "aria-hidden=\"true\"><rect class=\"track\" width=\"100\" "
             "height=\"6\" rx=\"3\"/><rect class=\"fill %s\" width=\"%.1f\" height=\"6\" rx=\"3\"/></svg>",
             class, full);
}
