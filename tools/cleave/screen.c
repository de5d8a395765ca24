// SPDX-License-Identifier: Apache-2.0
// The width of terminals and of texts, and lines that fit. Nothing here knows what is shown.
//
// The cursor stands at the beginning of what is drawn, not at its end. When a terminal becomes narrower, some
// break long lines again and others cut them. In both cases the cursor stays where the lines begin, and what
// is below it can be cleared.
#include "screen.h"

#include "base/shown.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/** COLUMNS, or 0 if it is no number of columns. */
static int asked_columns(void) {
    const char *text = getenv("COLUMNS");
    char *end;
    long columns = text && *text ? strtol(text, &end, 10) : 0;
    return columns > 0 && columns < 10000 && !*end ? (int)columns : 0;
}

int screen_width(FILE *out) {
    struct winsize size = {0};
    int asked = asked_columns();
    if (!isatty(fileno(out))) return asked;
    int real = !ioctl(fileno(out), TIOCGWINSZ, &size) ? size.ws_col : 0;
    if (!real) return asked ? asked : SCREEN_USUAL;
    return asked && asked < real ? asked : real; // a wider COLUMNS would make lines break
}

/** Bytes of the escape sequence or character at `text`; its columns. */
static size_t step_over(const char *text, int *columns) {
    size_t n = 1;
    *columns = 0;
    if (*text == '\033' && text[1] == '[') {
        n = 2;
        while (text[n] && !(text[n] >= '@' && text[n] <= '~')) n++;
        return text[n] ? n + 1 : n;
    }
    *columns = 1;
    while (((unsigned char)text[n] & 0xC0) == 0x80) n++;
    return n;
}

int screen_columns(const char *text) {
    int all = 0, columns;
    while (*text) {
        text += step_over(text, &columns);
        all += columns;
    }
    return all;
}

/** Bytes of the longest beginning of `text` that takes at most `columns`. */
static size_t screen_fit(const char *text, int columns) {
    const char *at = text;
    int step;
    while (*at) {
        size_t n = step_over(at, &step);
        if (step > columns) break;
        columns -= step;
        at += n;
    }
    return (size_t)(at - text);
}

int screen_wrap(FILE *out, const char *text, int at, int indent, int width) {
    bool fresh = true; // nothing of the text stands in this line
    if (indent >= width) indent = 0;
    while (*(text += strspn(text, " "))) {
        size_t n = strcspn(text, " ");
        char word[512];
        snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), text);
        int columns = screen_columns(word);
        if (width && !fresh && at + 1 + columns > width) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
            fresh = true;
        }
        at += fprintf(out, "%s", fresh ? "" : " ") + columns;
        fputs(word, out);
        fresh = false;
        text += n;
    }
    return at;
}

void screen_say(FILE *out, const char *format, ...) {
    char text[8192];
    va_list args;
    va_start(args, format);
    clv__format_shown(text, sizeof text, CLV__SHOWN_COLOURS, format, args);
    va_end(args);
    const int width = screen_width(out), indent = (int)strspn(text, " ");
    if (!width || screen_columns(text) <= width) {
        fprintf(out, "%s\n", text);
        return;
    }
    fprintf(out, "%*s", indent, "");
    screen_wrap(out, text, indent, indent + 2, width);
    fputc('\n', out);
}

/** Would a cut before `at` be inside a number? */
static bool in_number(const char *text, const char *at) {
    if (at == text || !isdigit((unsigned char)*at))
        return at > text && *at == '.' && isdigit((unsigned char)at[-1]) && isdigit((unsigned char)at[1]);
    return isdigit((unsigned char)at[-1]) ||
           (at[-1] == '.' && at - 1 > text && isdigit((unsigned char)at[-2]));
}

void screen_cut(const char *text, int columns, bool middle, char *out, size_t bytes) {
    int all = screen_columns(text);
    if (all <= columns || columns < 1) {
        snprintf(out, bytes, "%s", columns < 1 ? "" : text);
        return;
    }
    int tail = middle ? (columns - 1) / 2 : 0;
    const char *begin = text + screen_fit(text, columns - 1 - tail),
               *end = text + screen_fit(text, all - tail);
    while (in_number(text, begin)) begin--;
    while (*end && in_number(text, end)) end++;
    while (begin > text && begin[-1] == ' ') begin--;
    snprintf(out, bytes, "%.*s…%s", (int)(begin - text), text, middle ? end : "");
}

bool screen_is_terminal(FILE *out) {
    const char *term = getenv("TERM");
    return isatty(fileno(out)) && term && strcmp(term, "dumb");
}

bool screen_has_colour(FILE *out) {
    const char *no_color = getenv("NO_COLOR");
    return screen_is_terminal(out) && !(no_color && *no_color);
}

// ---- a line that fits -------------------------------------------------------------------------------------

static screen_piece *new_piece(screen_line *line, int importance, const char *colour) {
    if (line->n == SCREEN_PIECES) return NULL;
    screen_piece *piece = &line->pieces[line->n++];
    *piece = (screen_piece){.colour = colour, .importance = importance};
    return piece;
}

void screen_line_add(screen_line *line, int importance, const char *colour, const char *format, ...) {
    screen_piece *piece = new_piece(line, importance, colour);
    va_list args;
    if (!piece) return;
    va_start(args, format);
    vsnprintf(piece->text, sizeof piece->text, format, args);
    va_end(args);
}

void screen_line_bar(screen_line *line, int importance, const char *colour, int least, int most,
                     double part) {
    screen_piece *piece = new_piece(line, importance, colour);
    if (!piece) return;
    piece->least = least;
    piece->most = most;
    piece->part = isfinite(part) ? fmin(fmax(part, 0), 1) : 0;
}

/** Text that is put together in a buffer. */
typedef struct buffer {
    char *text;
    size_t n, bytes;
} buffer;

static void put(buffer *to, const char *text) {
    size_t n = strlen(text);
    if (to->n + n >= to->bytes) return; // sequences are never cut
    memcpy(to->text + to->n, text, n + 1);
    to->n += n;
}

static void put_bar(buffer *to, int width, double part, const char *colour) {
    int full = (int)lround(width * part);
    if (colour) put(to, colour);
    for (int i = 0; i < full; i++) put(to, "━");
    if (colour) put(to, "\033[0m\033[2m");
    for (int i = full; i < width; i++) put(to, "─");
    if (colour) put(to, "\033[0m");
}

/** Which pieces stay, and the columns that they take with bars as short as they may be. */
static int choose_pieces(const screen_line *line, int width, bool kept[SCREEN_PIECES]) {
    int all = 0;
    for (int i = 0; i < line->n; i++) {
        kept[i] = true;
        all += line->pieces[i].least + screen_columns(line->pieces[i].text);
    }
    while (width && all > width) {
        int least = -1;
        for (int i = 0; i < line->n; i++)
            if (kept[i] && line->pieces[i].importance < SCREEN_KEEP &&
                (least < 0 || line->pieces[i].importance <= line->pieces[least].importance))
                least = i;
        if (least < 0) break;
        kept[least] = false;
        all -= line->pieces[least].least + screen_columns(line->pieces[least].text);
    }
    return all;
}

void screen_line_text(const screen_line *line, int width, char *out, size_t bytes) {
    bool kept[SCREEN_PIECES];
    int all = choose_pieces(line, width, kept), left = width ? width : 1 << 20, spare = width - all;
    buffer to = {out, 0, bytes};
    *out = 0;
    for (int i = 0; i < line->n; i++) {
        const screen_piece *piece = &line->pieces[i];
        const char *colour = line->colour ? piece->colour : NULL;
        char text[sizeof piece->text];
        if (!kept[i]) continue;
        int more = piece->most - piece->least, bar = piece->least + (!width || more < spare ? more
                                                                     : spare > 0            ? spare
                                                                                            : 0);
        if (piece->most) {
            if (bar > left) bar = left;
            spare -= bar - piece->least;
            left -= bar;
            put_bar(&to, bar, piece->part, colour);
            continue;
        }
        screen_cut(piece->text, left, false, text, sizeof text);
        left -= screen_columns(text);
        if (colour) put(&to, colour);
        put(&to, text);
        if (colour) put(&to, "\033[0m");
    }
}

// ---- lines that are drawn over ----------------------------------------------------------------------------

void screen_area_init(screen_area *area, FILE *out, bool terminal) {
    *area = (screen_area){.out = out, .terminal = terminal};
    area->colour = terminal && screen_has_colour(out);
}

static screen_area *drawn_on_stderr; // at most one: whoever prints there asks for it to be wiped

void screen_area_draw(screen_area *area, const screen_line *lines, int n) {
    enum { LINE_BYTES = 4096, ALL_BYTES = 16 * LINE_BYTES };
    struct winsize size = {0};
    char text[LINE_BYTES], all[ALL_BYTES], up[32];
    buffer to = {all, 0, sizeof all};
    if (!area->terminal) return;
    int width = screen_width(area->out) - 1; // some terminals break a line that is exactly full
    int height = !ioctl(fileno(area->out), TIOCGWINSZ, &size) && size.ws_row ? size.ws_row : 24;
    if (n > height - 1) n = height > 2 ? height - 1 : 1;
    // Lines do not break even if the terminal becomes narrower just now. All of it is one write: a process
    // that is killed has switched breaking on again.
    put(&to, "\r\033[J\033[?7l");
    for (int i = 0; i < n; i++) {
        screen_line_text(&lines[i], width, text, sizeof text);
        if (i) put(&to, "\n");
        put(&to, text);
    }
    snprintf(up, sizeof up, "\033[%dA", n - 1);
    if (n > 1) put(&to, up);
    put(&to, "\r\033[?7h");
    fwrite(all, 1, to.n, area->out);
    fflush(area->out);
    area->drawn = true;
    if (area->out == stderr) drawn_on_stderr = area;
}

void screen_area_clear(screen_area *area) {
    if (area->drawn) fputs("\r\033[J", area->out);
    if (area->drawn) fflush(area->out);
    area->drawn = false;
    if (drawn_on_stderr == area) drawn_on_stderr = NULL;
}

void screen_clear(void) {
    if (drawn_on_stderr) screen_area_clear(drawn_on_stderr);
}
