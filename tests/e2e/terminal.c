// SPDX-License-Identifier: Apache-2.0
// A terminal for tests: runs a command on a pseudo terminal, understands what it draws, and tells what was to be seen.
//
//   terminal COLUMNS ROWS SCREEN FACTS [resize TEXT COLUMNS cut|reflow]... -- COMMAND...
//
// SCREEN gets every line that stood on the terminal at the end, those scrolled away too. FACTS gets, for each drawing that was done
// (marked by automatic line breaks switched on again), the lines below the cursor, as `drawn TEXT`; and at the end `breaks N`: lines
// that the terminal had to break, `clipped N`: characters lost at the edge, and `unknown N`: sequences it does not know.
//
// `resize` gives the terminal another width when TEXT has been seen, between two drawings. Terminals differ: some cut lines (xterm), some break them again
// and take the cursor with its character (tmux, VTE). The exit code is the command's.
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_COLUMNS = 400, MOST_LINES = 4000, MOST_RESIZES = 8 };

/** A character as its UTF-8 bytes; "" is a blank. */
typedef struct glyph {
    char bytes[5];
} glyph;

typedef struct line {
    glyph cells[MOST_COLUMNS];
    int n;       // cells that are used
    bool broken; // it goes on in the next one
} line;

typedef struct resize {
    const char *text;
    int columns;
    bool reflow, done;
} resize;

static struct {
    int columns, rows, row, column; // of the cursor; row counts from the first line ever
    int n_lines;
    bool waits; // the last column is written, the next character breaks the line
    bool no_breaks;
    char sequence[64];
    int n_sequence; // 0: none is being read
    int breaks, clipped, unknown;
    FILE *facts;
} term;
static line lines[MOST_LINES];

static int first_row(void) {
    return term.n_lines > term.rows ? term.n_lines - term.rows : 0;
}

static void grow_to(int row) {
    if (row >= MOST_LINES) {
        fprintf(stderr, "terminal: more than %d lines\n", MOST_LINES);
        exit(99);
    }
    while (term.n_lines <= row) lines[term.n_lines++] = (line){.n = 0};
}

static void put_glyph(glyph shown) {
    if (term.waits && term.no_breaks) {
        term.clipped++;
    } else if (term.waits) {
        term.breaks++;
        lines[term.row].broken = true;
        grow_to(++term.row);
        term.column = 0;
    }
    line *at = &lines[term.row];
    at->cells[term.column] = shown;
    if (at->n <= term.column) at->n = term.column + 1;
    term.waits = term.column + 1 == term.columns;
    if (!term.waits) term.column++;
}

static void clear_line(int row, int from) {
    for (int i = from; i < MOST_COLUMNS; i++) lines[row].cells[i] = (glyph){""};
    if (lines[row].n > from) lines[row].n = from;
    if (lines[row].broken) lines[row].broken = false;
}

static void line_text(const line *at, char out[MOST_COLUMNS * 4 + 1]) {
    size_t n = 0;
    for (int i = 0; i < at->n; i++) {
        const char *bytes = *at->cells[i].bytes ? at->cells[i].bytes : " ";
        memcpy(out + n, bytes, strlen(bytes));
        n += strlen(bytes);
    }
    while (n && out[n - 1] == ' ') n--;
    out[n] = 0;
}

static void tell_drawing(void) {
    char text[MOST_COLUMNS * 4 + 1];
    for (int i = term.row; i < term.n_lines; i++) {
        line_text(&lines[i], text);
        fprintf(term.facts, "drawn %s\n", text);
    }
}

/** What ESC [ ... does. */
static void do_sequence(const char *text, char last) {
    int number = atoi(text);
    if (last == 'm') return;
    if (last == 'A') {
        term.row -= number ? number : 1;
        if (term.row < first_row()) term.row = first_row();
    } else if (last == 'K' && !number) {
        clear_line(term.row, term.column);
    } else if (last == 'J' && !number) {
        clear_line(term.row, term.column);
        for (int i = term.row + 1; i < term.n_lines; i++) clear_line(i, 0);
    } else if (!strcmp(text, "?7") && (last == 'l' || last == 'h')) {
        term.no_breaks = last == 'l';
        if (last == 'h') tell_drawing();
    } else {
        term.unknown++;
    }
    term.waits = false;
}

static void feed(char c) {
    static glyph part;
    static int more; // bytes of a character that are still to come
    if (term.n_sequence) {
        if (term.n_sequence == 1 && c != '[') {
            term.unknown++;
            term.n_sequence = 0;
        } else if (term.n_sequence > 1 && c >= '@' && c <= '~') {
            term.sequence[term.n_sequence - 2] = 0;
            term.n_sequence = 0;
            do_sequence(term.sequence, c);
        } else if (term.n_sequence < (int)sizeof term.sequence) {
            if (term.n_sequence > 1) term.sequence[term.n_sequence - 2] = c;
            term.n_sequence++;
        }
        return;
    }
    unsigned char byte = (unsigned char)c;
    if (c == '\033') {
        term.n_sequence = 1;
    } else if (c == '\r') {
        term.column = 0;
        term.waits = false;
    } else if (c == '\n') {
        grow_to(++term.row);
        term.waits = false;
    } else if (byte >= 0xC0) {
        part = (glyph){{c}};
        more = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : 1;
    } else if (byte >= 0x80 && more) {
        part.bytes[strlen(part.bytes)] = c;
        if (!--more) put_glyph(part);
    } else if (byte >= ' ' && byte < 0x7F) {
        put_glyph((glyph){{c}});
    } else if (c != '\a') {
        term.unknown++;
    }
}

/** Lines that are longer are broken, those that were broken are joined; the cursor stays with its character. */
static void reflow(int columns) {
    static line old[MOST_LINES];
    int n = term.n_lines, row = term.row, column = term.column;
    memcpy(old, lines, sizeof *lines * (size_t)n);
    memset(lines, 0, sizeof *lines * (size_t)n);
    term.n_lines = 0;
    for (int i = 0; i < n; i++) {
        int at = 0;
        grow_to(term.n_lines);
        int now = term.n_lines - 1;
        for (int more = 1; more; i += more) {
            for (int k = 0; k < old[i].n || (i == row && k <= column); k++) {
                if (at == columns) {
                    lines[now].broken = true;
                    grow_to(++now);
                    at = 0;
                }
                if (i == row && k == column) term.row = now, term.column = at;
                lines[now].cells[at++] = old[i].cells[k];
                if (k < old[i].n) lines[now].n = at;
            }
            more = old[i].broken && i + 1 < n;
        }
    }
    grow_to(term.row);
}

static void set_width(int terminal, const resize *to) {
    struct winsize size = {.ws_row = (unsigned short)term.rows, .ws_col = (unsigned short)to->columns};
    if (to->reflow)
        reflow(to->columns);
    else
        for (int i = 0; i < term.n_lines; i++)
            if (lines[i].n > to->columns) clear_line(i, to->columns);
    term.columns = to->columns;
    if (term.column >= term.columns) term.column = term.columns - 1;
    term.waits = false;
    if (ioctl(terminal, TIOCSWINSZ, &size)) perror("terminal: TIOCSWINSZ");
}

static void run_command(const char *name, char **command) {
    setsid();
    int terminal = open(name, O_RDWR);
    if (terminal < 0 || ioctl(terminal, TIOCSCTTY, 0)) _exit(98);
    for (int i = 0; i < 3; i++) dup2(terminal, i);
    if (terminal > 2) close(terminal);
    setenv("TERM", "xterm-256color", 1);
    execvp(command[0], command);
    _exit(97);
}

int main(int argc, char **argv) {
    resize resizes[MOST_RESIZES];
    int n_resizes = 0, at = 5;
    if (argc < 7) return 96;
    term.columns = atoi(argv[1]);
    term.rows = atoi(argv[2]);
    for (; at + 3 < argc && !strcmp(argv[at], "resize") && n_resizes < MOST_RESIZES; at += 4)
        resizes[n_resizes++] = (resize){
            .text = argv[at + 1], .columns = atoi(argv[at + 2]), .reflow = !strcmp(argv[at + 3], "reflow")};
    if (at >= argc || strcmp(argv[at], "--") || term.columns < 1 || term.columns >= MOST_COLUMNS) return 96;
    term.facts = fopen(argv[4], "w");
    FILE *screen = fopen(argv[3], "w");
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (!term.facts || !screen || terminal < 0 || grantpt(terminal) || unlockpt(terminal)) return 95;
    struct winsize size = {.ws_row = (unsigned short)term.rows, .ws_col = (unsigned short)term.columns};
    ioctl(terminal, TIOCSWINSZ, &size);
    pid_t child = fork();
    if (!child) run_command(ptsname(terminal), argv + at + 1);
    grow_to(0);
    static char seen[1 << 20]; // what came since the last resize
    size_t n_seen = 0;
    char bytes[4096];
    for (ssize_t n; (n = read(terminal, bytes, sizeof bytes)) > 0;) { // EIO when all have closed it
        for (ssize_t i = 0; i < n; i++) {
            feed(bytes[i]);
            if (n_seen + 1 < sizeof seen) seen[n_seen++] = bytes[i];
        }
        seen[n_seen] = 0;
        for (int i = 0; i < n_resizes && !term.no_breaks; i++) { // not within a drawing
            if (resizes[i].done || (i && !resizes[i - 1].done) || !strstr(seen, resizes[i].text)) continue;
            set_width(terminal, &resizes[i]);
            resizes[i].done = true;
            seen[n_seen = 0] = 0;
        }
    }
    int status = 0;
    waitpid(child, &status, 0);
    int last = term.n_lines;
    while (last && !lines[last - 1].n) last--;
    for (int i = 0; i < last; i++) {
        char text[MOST_COLUMNS * 4 + 1];
        line_text(&lines[i], text);
        fprintf(screen, "%s\n", text);
    }
    for (int i = 0; i < n_resizes; i++)
        if (!resizes[i].done) fprintf(term.facts, "never seen %s\n", resizes[i].text);
    fprintf(term.facts, "breaks %d\nclipped %d\nunknown %d\n", term.breaks, term.clipped, term.unknown);
    fclose(screen);
    fclose(term.facts);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
