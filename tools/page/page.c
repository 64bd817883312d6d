/* page.c - writes the page: head, contents, sections in order, and the end. */
#include <string.h>
#include "tools/page/page.h"

/* Colours by Okabe & Ito 2008, lighter on a dark background. Texts have a contrast of 4.5 or more. */
static const char style[] =
    "<style>\n"
    ":root{color-scheme:light dark;--ground:#fff;--ink:#1a1a1a;--quiet:#555;--line:#8a8a8a;\n"
    "--grid:#e2e2e2;--link:#00558a;--pad:#999;--c0:#0072b2;--c1:#c24f00;--c2:#00795a;--c3:#b3547f;\n"
    "--c4:#966400;--c5:#2a7fae;--c6:#7a6800;--c7:#555;--t0:#a8d3ee;--t1:#f6c3a0;--t2:#a3dfcb;\n"
    "--t3:#eccbdd;--t4:#f8dc9d;--t5:#c9e6f8;--t6:#eee59b;--t7:#d0d0d0}\n"
    "@media screen and (prefers-color-scheme:dark){:root{--ground:#14171a;--ink:#ececec;\n"
    "--quiet:#b4b8bc;--line:#7d848b;--grid:#2c3237;--link:#8cc8f2;--pad:#7d848b;--c0:#56b4e9;\n"
    "--c1:#ff9a5c;--c2:#35d0a5;--c3:#eaa0c8;--c4:#f0b53a;--c5:#9ad4f5;--c6:#d8c84a;--c7:#bdbdbd;\n"
    "--t0:#1d4f70;--t1:#6e3a17;--t2:#13553f;--t3:#673d56;--t4:#614708;--t5:#275a78;--t6:#4f470f;\n"
    "--t7:#484848}}*{box-sizing:border-box}body{margin:0 auto;max-width:1100px;padding:8px;\n"
    "background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,'DejaVu Sans',Verdana,\n"
    "sans-serif;overflow-wrap:break-word}h1{font-size:1.6em;line-height:1.2}\n"
    "h2{font-size:1.25em;margin:2em 0 .5em;border-top:1px solid var(--line);padding-top:.6em}\n"
    "a{color:var(--link)}a:focus-visible,\n"
    ".scroll:focus-visible,pre:focus-visible{outline:3px solid var(--link);outline-offset:2px}\n"
    ".skip{position:absolute;left:-999em}.skip:focus{position:static}\n"
    "p,li,dl,figcaption{max-width:44em}dl{display:grid;grid-template-columns:auto 1fr;gap:0 1em}\n"
    "dt{color:var(--quiet)}dd{margin:0;min-width:0}\n"
    "nav ol{columns:18em;padding-left:2em}.scroll{overflow-x:auto;margin:1em 0}\n"
    "table{border-collapse:collapse;font-size:.85em;font-variant-numeric:tabular-nums}\n"
    "caption{text-align:left;color:var(--quiet);padding-bottom:.3em}\n"
    "caption span{display:block;position:sticky;left:0;max-width:min(50em,100vw - 24px)}\n"
    "th,td{padding:.2em .5em;text-align:right;border-bottom:1px solid var(--grid);white-space:nowrap}\n"
    "thead th{vertical-align:bottom;white-space:normal;border-bottom:1px solid var(--line)}\n"
    "th:first-child,td.words{text-align:left}tbody th{font-weight:normal}\n"
    "tbody th:first-child{white-space:normal;min-width:13em;max-width:24em}\n"
    ".figures{display:flex;flex-wrap:wrap;gap:12px}\n"
    "figure{margin:0;width:534px;max-width:100%;break-inside:avoid}\n"
    "figcaption{font-size:.85em;color:var(--quiet)}\n"
    "figure svg{display:block;width:100%;height:auto}\n"
    "svg text{font:11px system-ui,'DejaVu Sans',Verdana,sans-serif;fill:var(--ink)}\n"
    "svg .axis{stroke:var(--line);fill:none}svg .grid{stroke:var(--grid);fill:none}\n"
    "svg .mark{stroke:var(--ink);stroke-width:1.5;fill:none}\n"
    "svg text{paint-order:stroke;stroke:var(--ground);stroke-width:3px;\n"
    "stroke-linejoin:round}svg .tiny{font-size:8px}\n"
    "svg .reset{stroke:var(--ink);stroke-width:3;fill:none}\n"
    "svg .pads{fill:url(#hatch);stroke:var(--pad)}\n"
    "svg .hatch{stroke:var(--pad);stroke-width:1.4}\n"
    "svg .curve{fill:none;stroke-width:2}svg .band{fill-opacity:.22}svg .gap{stroke:var(--ground)}\n"
    "svg .label{text-anchor:middle}\n"
    ".more{position:absolute;width:0;height:0}\n"
    "pre{overflow-x:auto;border:1px solid var(--line);padding:.5em;font-size:.85em}\n"
    ".bad{text-decoration:underline wavy}@page{size:landscape;margin:10mm}\n"
    "@media print{body{max-width:none;font-size:10pt}caption span{max-width:none}\n"
    ".scroll,pre{overflow:visible;white-space:pre-wrap}table{font-size:7pt}th,td{\n"
    "padding:.1em .3em}section{break-inside:auto}h2{break-after:avoid}.skip,nav,button{display:none}}\n";

/* Buttons, and tables as cards on phones. */
static const char controls[] =
    "button{font:inherit;color:var(--link);background:none;border:1px solid var(--line);\n"
    "border-radius:3px;margin:2px;padding:0 .5em}thead button{border:0;margin:0;padding:0;\n"
    "text-align:inherit;color:inherit;text-decoration:underline dotted}\n"
    "button:focus-visible,summary:focus-visible{outline:3px solid var(--link)}\n"
    "[aria-sort=ascending] button::after{content:' ▲'}\n"
    "[aria-sort=descending] button::after{content:' ▼'}\n"
    "@media screen and (max-width:600px){nav ol{columns:auto}\n"
    "table,caption,tbody,tr,tbody th{display:block}thead{display:none}.js thead{display:block}\n"
    "thead tr{display:flex;flex-wrap:wrap}thead th{border:0}tbody tr{padding:.3em .5em;\n"
    "border:1px solid var(--line);margin:.5em 0}tbody th:first-child{max-width:none}\n"
    "td{display:flex;justify-content:space-between;white-space:normal}\n"
    "td::before{content:attr(data-label);color:var(--quiet)}}\n";

/* Writes the colours as classes: s0 strokes, f0 fills, p0 is a piece of sequence 0, h0 a text in it. */
static void put_colours(page *p)
{
    for (int i = 0; i < PAGE_COLOURS; i++)
        put(p,
            "[stroke='%s'],.s%d{stroke:var(--c%d)}[fill='%s'],.f%d{fill:var(--c%d)}\n"
            ".p%d{fill:var(--t%d);stroke:var(--c%d)}svg .h%d{stroke:var(--t%d)}",
            weft__svg_colour(i), i, i, weft__svg_colour(i), i, i, i, i, i, i, i);
    put(p, "\n%s</style>\n", controls);
}

void put_missing(page *p, const char *sentence)
{
    put(p, "<p>%s", sentence);
    if (p->lab->stopped)
        put_between(p, ": ", p->lab->stopped, "");
    put(p, ".</p>\n");
}

/* ---- head and end ---- */
static void put_fact(page *p, const char *name, const char *text) /* NULL: writes nothing */
{
    if (!text)
        return;
    put(p, "<dt>%s</dt>", name);
    put_between(p, "<dd>", text, "</dd>\n");
}

static void put_facts(page *p)
{
    const lab *l = p->lab;
    int64_t tokens = 0;
    for (int64_t i = 0; i < l->n; i++)
        tokens += l->len[i];
    put_between(p, "<dl>\n<dt>Corpus</dt><dd>", l->corpus, ", ");
    put_real(p, (double)l->n, 0);
    put(p, " sequences, ");
    put_real(p, (double)tokens, 0);
    put(p, " tokens</dd>\n");
    put_fact(p, "Version", weft_version());
    put_fact(p, "Seed", l->device ? "1" : NULL);
    put_fact(p, "Measured on", l->device);
    put_fact(p, "Machine", l->busy);
    put_fact(p, "Date", l->date);
    put(p, "</dl>\n");
}

/* ---- sections ---- */
static page_section put_more;
static const struct {
    const char *name, *title; /* name: for links */
    page_section *write;
} sections[] = { { "lengths", "Lengths", put_lengths },
                 { "layouts", "The first batch in four layouts", put_layouts },
                 { "planners", "Planners", put_planners },
                 { "steps", "Steps against milliseconds", put_steps },
                 { "weights", "Weight of a token", put_weights },
                 { "order", "Order", put_order },
                 { "live", "Live rows", put_live },
                 { "learning", "Learning", put_learning },
                 { "gradient", "Gradient and exactness", put_gradient },
                 { "contamination", "Contamination", put_contamination },
                 { "cost", "Cost: predicted against measured", put_cost },
                 { "adversaries", "Adversaries", put_adversaries },
                 { "more", "Your own planner, citing, the command", put_more } };
enum { SECTIONS = sizeof sections / sizeof *sections };

static void put_head(page *p)
{
    put_between(p,
                "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<meta "
                "name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>Packing "
                "laboratory: ",
                p->lab->corpus, "</title>\n");
    put(p, "%s", style);
    put_colours(p);
    put(p, "</head>\n<body>\n<a class=\"skip\" href=\"#lengths\">Skip to the first section</a>\n<svg "
           "class=\"more\" aria-hidden=\"true\" focusable=\"false\"><defs><pattern id=\"hatch\" "
           "width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><line "
           "class=\"hatch\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\"/></pattern></defs></svg>\n<header>\n"
           "<h1>Packing laboratory: ");
    put_text(p, p->lab->corpus);
    put(p,
        "</h1>\n<p>The effects of %d plan%s for this corpus on work, gradients and order. A plan decides "
        "which sequences, or pieces of them, form a batch, and the position of each.</p>\n",
        p->lab->plans, p->lab->plans == 1 ? "" : "s");
    put_verdict(p);
    put_facts(p);
    put(p, "</header>\n<nav aria-label=\"Contents\">\n<ol>\n");
    for (int i = 0; i < SECTIONS; i++)
        put(p, "<li><a href=\"#%s\">%s</a></li>\n", sections[i].name, sections[i].title);
    put(p, "</ol>\n</nav>\n<main>\n");
}

static void put_sources(page *p)
{
    put(p, "<p>Please cite the version of weft, and the source of each planner:</p>\n<ul>\n");
    for (int i = 0; i < p->lab->plans; i++) {
        const char *source = p->lab->plan[i].made->planner.source;
        if (!source || !strcmp(source, "-"))
            continue;
        put(p, "<li>");
        put_plan(p, i);
        put_between(p, ": ", source, "</li>\n");
    }
    put_between(p, "<li>weft ", weft_version(), "</li>\n</ul>\n");
}

static void put_more(page *p)
{
    put(p, "<p>You can compare planners of your own. One is a C function in a shared object: <code>weft "
           "plan LENGTHS ./mine.so:planner</code>. Or a program in any language prints one plan a line "
           "as JSON: <code>weft plan --from mine.jsonl LENGTHS</code>. A line is an object with "
           "<code>planner</code>, a name, and <code>batches</code>, such as <code>[[0, 1], [[2, 0, "
           "4]]]</code>, or <code>rows</code>. Each plan gets a row in every table. docs/planners.md "
           "and docs/lab.md describe both.</p>\n");
    put_sources(p);
    put_between(p, "<p>The command that wrote this page:</p>\n<pre tabindex=\"0\">", p->lab->command,
                "</pre>\n");
}

bool write_page(const char *path, const lab *l)
{
    lab judged = *l;
    VERDICT v;
    page p = { .lab = &judged };
    if (!judge_lab(l, &v))
        return false;
    judged.verdict = &v;
    weft__svg_open(&p.svg, path);
    put_head(&p);
    for (int i = 0; i < SECTIONS; i++) {
        put(&p, "<section aria-labelledby=\"%s\">\n<h2 id=\"%s\">%d. %s</h2>\n", sections[i].name,
            sections[i].name, i + 1, sections[i].title);
        sections[i].write(&p);
        put(&p, "</section>\n");
    }
    put(&p, "</main>\n<script>\n%s</script>\n", page_script);
    return weft__svg_close(&p.svg, "</body>\n</html>\n") == WEFT_OK || say_failure("%s", weft_file_message());
}
