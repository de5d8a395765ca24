// SPDX-License-Identifier: Apache-2.0
// Pictures as SVG inside the page. Colours come from the page's style, so that they fit light and dark.
#include "page.h"

#include <math.h>

enum { WIDTH = 880, HEIGHT = 340, LEFT = 58, RIGHT = 14, TOP = 12, BOTTOM = 40, COLOURS = 6 };

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

static void draw_grid(cli_page *page, const scale *x, const scale *y) {
    double step = grid_step(y, 5);
    for (double v = ceil(y->lo / step) * step; v <= y->hi + 1e-9 * step; v += step) {
        double at = y_of(&(scale){y->lo, y->hi, false}, v);
        page_add(
            page,
            "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%d\" y=\"%.1f\" "
            "text-anchor=\"end\">%.4g</text>\n",
            LEFT, WIDTH - RIGHT, at, at, LEFT - 8, at + 4,
            y->log            ? pow(10, v)
            : fabs(v) < 1e-12 ? 0
                              : v);
    }
    step = grid_step(x, 7);
    for (double v = ceil(x->lo / step) * step; v <= x->hi + 1e-9 * step; v += step)
        page_add(page, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.10g</text>\n", x_of(x, v),
                 HEIGHT - BOTTOM + 18, v);
}

static void draw_curve(cli_page *page, const plot_curve *curve, int colour, const scale *x, const scale *y) {
    page_add(page, "<path class=\"curve\" stroke=\"var(--c%d)\" d=\"", colour % COLOURS);
    bool pen_down = false;
    for (size_t i = 0; i < curve->n; i++) {
        const plot_point *point = &curve->points[i];
        bool drawn = can_be_drawn(y, point);
        if (drawn) page_add(page, "%s%.1f %.1f", pen_down ? "L" : "M", x_of(x, point->x), y_of(y, point->y));
        pen_down = drawn; // a loss that is no number leaves a gap
    }
    page_add(page, "\"/>\n");
}

void plot_curves(cli_page *page, const plot_curve *curves, int n, const char *x_name, const char *y_name) {
    scale x, y;
    span(curves, n, &x, &y);
    if (!isfinite(x.lo) || !isfinite(y.lo)) {
        page_add(page, "<p class=\"faint\">There is nothing to draw yet.</p>\n");
        return;
    }
    page_add(page, "<svg class=\"plot\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
    page_text(page, y_name);
    page_add(page, "\">\n");
    draw_grid(page, &x, &y);
    page_add(page, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", WIDTH - RIGHT, HEIGHT - 6);
    page_text(page, x_name);
    page_add(page, "</text>\n");
    for (int c = 0; c < n; c++) draw_curve(page, &curves[c], c, &x, &y);
    page_add(page, "</svg>\n<div class=\"legend\">");
    for (int c = 0; c < n; c++) {
        page_add(page, "<span><i style=\"background:var(--c%d)\"></i>", c % COLOURS);
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
