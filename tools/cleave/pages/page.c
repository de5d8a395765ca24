// SPDX-License-Identifier: Apache-2.0
// The frame of a page: its style, light and dark, for a wide screen and a phone; escaping.
#include "pages/page.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char style[] =
    ":root{color-scheme:light "
    "dark;--paper:#fbfbfa;--card:#fff;--ink:#1d2126;--faint:#667079;--line:#e3e5e8;--good:#1a7f4b;"
    "--bad:#c4321f;--bar:#3b76c4;--track:#e9ecf0;--c0:#2f6fc0;--c1:#d9730d;--c2:#2a9461;--c3:#a3479f;--c4:#"
    "c23a4b;--c5:#7a6a1f}"
    "@media(prefers-color-scheme:dark){:root{--paper:#14171a;--card:#1c2024;--ink:#e7e9eb;--faint:#98a1aa;--"
    "line:#30363c;"
    "--good:#4cc38a;--bad:#ff7a66;--bar:#6ea8f0;--track:#2a2f35;--c0:#6ea8f0;--c1:#f0a050;--c2:#5cc995;--c3:#"
    "d48bd0;"
    "--c4:#f0808c;--c5:#cdbb62}}"
    "*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 "
    "system-ui,-apple-system,"
    "'Segoe UI',Roboto,'DejaVu Sans',sans-serif}main{max-width:62rem;margin:0 auto;padding:1.5rem 1rem 4rem}"
    "header p,.faint{color:var(--faint)}h1{font-size:1.7rem;line-height:1.2;margin:.5rem 0 .2rem}"
    "h2{font-size:1.15rem;margin:2.4rem 0 .7rem}p{margin:.3rem 0}"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.7rem;margin-top:1."
    "2rem}"
    ".tile,.card{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:.7rem .9rem}"
    ".tile b{display:block;font-size:1.45rem;line-height:1.3;font-weight:650}.tile "
    "span{color:var(--faint);font-size:.85rem}"
    ".card{overflow-x:auto}.rows "
    "th{white-space:normal}.plots{display:grid;gap:.7rem;grid-template-columns:repeat(auto-fit,minmax(min("
    "24rem,"
    "100%),1fr))}figure{margin:0}figcaption{color:var(--faint);font-size:.85rem}"
    ".raw .curve{opacity:.25}.at rect{fill:transparent}.at "
    ".tip{visibility:hidden;pointer-events:none}.at:hover "
    ".tip{visibility:visible}.tip line{stroke:var(--faint);stroke-dasharray:2 3}.tip "
    "text{fill:var(--ink);paint-order:stroke;stroke:var(--card);stroke-width:4px;stroke-linejoin:round}"
    ".smooth{position:absolute;opacity:0}.smooth+label{display:inline-block;border:1px solid "
    "var(--line);border-radius:.5rem;padding:.1rem "
    ".7rem;margin-right:.3rem;color:var(--faint);cursor:pointer}"
    ".smooth:checked+label{background:var(--bar);color:var(--paper)}.smooth:focus-visible+label{outline:2px "
    "solid "
    "var(--ink)}.s1,.s2{display:none}#smooth0:checked~.plots .raw .curve{opacity:1}"
    "#smooth1:checked~.plots .s1,#smooth2:checked~.plots .s2{display:inline}"
    ".differs{background:color-mix(in srgb,var(--c1) "
    "16%,transparent)}.good{color:var(--good)}.bad{color:var(--bad)}"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}"
    "th,td{text-align:left;padding:.32rem .9rem .32rem 0;border-bottom:1px solid "
    "var(--line);white-space:nowrap}"
    "th{color:var(--faint);font-weight:500;font-size:.85rem}tr:last-child "
    "td{border-bottom:0}td.n,th.n{text-align:right}"
    "td.wide{white-space:normal;overflow-wrap:anywhere}.facts{display:grid;gap:.7rem;"
    "grid-template-columns:repeat(auto-fit,minmax(min(24rem,100%),1fr))}.facts "
    "h3{font-size:.95rem;margin:.1rem 0 .3rem}"
    ".facts "
    "th{padding-right:1.2rem;vertical-align:top}svg{display:block;width:100%;height:auto}svg.bar{width:9rem;"
    "height:.55rem}"
    "svg text{fill:var(--faint);font:12px "
    "system-ui,sans-serif}.grid{stroke:var(--line)}.track{fill:var(--track)}"
    ".fill{fill:var(--bar)}.fill.good{fill:var(--good)}.fill.bad{fill:var(--bad)}.curve{fill:none;stroke-"
    "width:2;"
    "stroke-linejoin:round}.legend{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;margin-top:.5rem}"
    ".legend "
    "i{display:inline-block;width:.9rem;height:.25rem;border-radius:.2rem;vertical-align:middle;margin-right:"
    ".45rem}"
    "details{margin-top:.7rem}summary{cursor:pointer;color:var(--faint)}li{overflow-wrap:anywhere}ul{padding-"
    "left:1.2rem}"
    "@media(max-width:40rem){table.rows,.rows tbody,.rows tr,.rows td{display:block}.rows "
    "tr.heads{display:none}"
    ".rows tr{padding:.5rem 0;border-bottom:1px solid var(--line)}.rows tr:last-child{border-bottom:0}"
    ".rows td,.rows td.n{display:flex;justify-content:space-between;gap:1rem;border:0;padding:.1rem .3rem;"
    "white-space:normal;overflow-wrap:anywhere;text-align:right}.rows td[data-head]::before{"
    "content:attr(data-head);color:var(--faint);text-align:left;flex:none;max-width:50%}"
    ".facts th,.facts td{white-space:normal;overflow-wrap:anywhere}.facts "
    "th{padding-right:.7rem}h1{font-size:1.3rem}}"
    "@media print{.card,.tile{break-inside:avoid}}";

int page_begin(cli_page *page, const char *title) {
    page->text = NULL;
    page->out = open_memstream(&page->text, &page->n);
    if (!page->out) return cli_fail(EXIT_FAILED, "no memory for the page");
    page_add(page, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                   "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                   "'unsafe-inline'\">\n"
                   "<title>");
    page_text(page, title);
    page_add(page, "</title>\n<style>%s</style></head>\n<body><main>\n", style);
    return EXIT_DONE;
}

void page_add(cli_page *page, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(page->out, format, args);
    va_end(args);
}

void page_text(cli_page *page, const char *text) {
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        switch (*at) {
        case '&': fputs("&amp;", page->out); break;
        case '<': fputs("&lt;", page->out); break;
        case '>': fputs("&gt;", page->out); break;
        case '"': fputs("&quot;", page->out); break;
        case '\'': fputs("&#39;", page->out); break;
        default: fputc(*at < 0x20 && *at != '\n' && *at != '\t' ? ' ' : *at, page->out);
        }
    }
}

void page_table(cli_page *page, const page_head *heads) {
    page->heads = heads;
    page_add(page, "<table class=\"rows\"><tr class=\"heads\">");
    for (int i = 0; heads[i].text; i++) {
        page_add(page, "<th%s>", heads[i].number ? " class=\"n\"" : "");
        page_text(page, heads[i].text);
        page_add(page, "</th>");
    }
    page_add(page, "</tr>\n");
}

void page_row(cli_page *page) {
    page->column = 0;
    page_add(page, "<tr>");
}

void page_cell_begin(cli_page *page, const char *class) {
    const page_head *head = &page->heads[page->column];
    page_add(page, "<td class=\"%s%s\" data-head=\"", head->number ? "n " : "", class);
    page_text(page, head->text ? head->text : "");
    page_add(page, "\">");
    page->column += head->text != NULL;
}

void page_cell(cli_page *page, const char *class, const char *text) {
    page_cell_begin(page, class);
    page_text(page, text);
    page_add(page, "</td>");
}

void page_cell_number(cli_page *page, double number) {
    char text[48] = "–";
    if (isfinite(number) && number != 0)
        snprintf(text, sizeof text, number >= 100 ? "%.0f" : fabs(number) >= 0.01 ? "%.3g" : "%.1e", number);
    page_cell(page, "", text);
}

void page_drop(cli_page *page) {
    if (page->out) fclose(page->out);
    free(page->text);
    *page = (cli_page){0};
}

int page_write(cli_page *page, const char *path) {
    page_add(page, "</main></body></html>\n");
    bool whole = !ferror(page->out);
    whole = !fclose(page->out) && whole;
    page->out = NULL;
    return whole ? cli_write_whole(path, page->text, page->n)
                 : cli_fail(EXIT_FAILED, "no memory for the page");
}
