/* tape_svg.c - draws the tape from top to bottom as SVG.
 *
 * A box is below its inputs and not above an earlier entry. Boxes of one row do not depend on each other. A
 * result has a lane, a column, from its box down to the last operator that uses it, so no arrow crosses a
 * box: an arrow runs down the lane of its source, and in the gap above its operator over to it. */
#include <stdlib.h>
#include "io/pictures/svg.h"
#include "io/pictures/tape.h"

enum { CHARACTERS = 21 };
static const double WIDE = 172, HIGH = 54, BESIDE = 14, GAP = 34, LEFT = 24, TOP = 96;

/* row, lane; last: the row of the last operator that uses it */
typedef struct {
    int row, lane, last;
} place;
typedef struct {
    weft__svg svg;
    weft__graph *g;
    place *place;
    int *until;                                  /* [nodes] the row where a lane becomes free */
    int lanes, rows;
} picture;

const char *weft__node_colour(const weft__graph *g, const weft__drawn *n)
{
    return weft__svg_tint(n->x == g->target ? 4 : n->entry >= 0 ? 5 : weft__node_of(n->x)->parameter ? 2 : 7);
}

/* ---- places ---- */
static void find_rows(picture *p)
{
    int row = 0;
    for (int64_t i = 0; i < p->g->nodes; i++) {
        int inputs = weft__inputs_of(p->g, i);
        for (int k = 0; k < inputs; k++) {
            int above = p->place[weft__input_of(p->g, i, k)].row;
            row = row > above ? row : above + 1;
        }
        p->place[i].row = row;
        p->place[i].last = row + 1;
        for (int k = 0; k < inputs; k++)
            p->place[weft__input_of(p->g, i, k)].last = row;
    }
    p->rows = row + 1;
}

/* Finds the free lane nearest to that of its first input; ties go left. */
static void find_lane(picture *p, int64_t i)
{
    place *current = &p->place[i];
    int preferred = weft__inputs_of(p->g, i) ? p->place[weft__input_of(p->g, i, 0)].lane : 0;
    for (int away = 0;; away++)
        for (int side = -1; side <= 1; side += 2) {
            int lane = preferred + side * away;
            if (lane < 0 || p->until[lane] > current->row)
                continue;
            current->lane = lane;
            p->until[lane] = current->last;
            p->lanes = lane < p->lanes ? p->lanes : lane + 1;
            return;
        }
}

static double left_of(const picture *p, int64_t i) { return LEFT + p->place[i].lane * (WIDE + BESIDE); }
static double top_of(const picture *p, int64_t i)  { return TOP + p->place[i].row * (HIGH + GAP); }

static void draw_arrow(picture *p, int64_t from, int64_t to, int k)
{
    double x = left_of(p, from) + WIDE / 2, y = top_of(p, from) + HIGH,
           end_x = left_of(p, to) + WIDE * (k + 1.) / (weft__inputs_of(p->g, to) + 1.), end_y = top_of(p, to),
           turn = end_y - GAP;
    weft__svg_put(&p->svg,
                  "<path class=\"axis\" d=\"M%g %gV%gC%g %g %.5g %g %.5g %g\" "
                  "marker-end=\"url(#arrow)\"/>\n",
                  x, y, turn, x, turn + .6 * GAP, end_x, end_y - .6 * GAP, end_x, end_y);
}

/* ---- boxes ---- */
/* shortens a name at its front, other texts at their end */
static void draw_line(picture *p, double x, double y, const char *class_, char *text, bool of_name)
{
    char cut[WEFT__LINE_ROOM + 4];
    int more = weft__utf8_length(text) - CHARACTERS, n = 0;
    const char *cursor = text;
    int characters = more > 0 ? of_name ? more + 2 : CHARACTERS - 2 : 0;
    for (; n < characters; n++)
        cursor += weft__utf8_character(cursor) ? weft__utf8_character(cursor) : 1;
    if (more > 0 && of_name)
        snprintf(cut, sizeof cut, "..%s", cursor);
    else
        snprintf(cut, sizeof cut, "%.*s%s", more > 0 ? (int)(cursor - text) : WEFT__LINE_ROOM, text,
                 more > 0 ? ".." : "");
    weft__svg_text(&p->svg, x, y, class_, WEFT__MIDDLE, cut);
}

static void draw_box(picture *p, int64_t i)
{
    const weft__drawn *n = &p->g->node[i];
    double x = left_of(p, i), y = top_of(p, i);
    char line[WEFT__LINES][WEFT__LINE_ROOM], *tip = weft__tooltip_of(p->g, i);
    weft__lines_of(p->g, i, line);
    weft__svg_put(&p->svg, "<g class=\"node\"><title>");
    weft__svg_escaped(&p->svg, tip);
    weft__svg_put(&p->svg,
                  "</title><rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" rx=\"6\" fill=\"%s\" "
                  "stroke=\"#666666\"/>\n",
                  x, y, WIDE, HIGH, weft__node_colour(p->g, n));
    draw_line(p, x + WIDE / 2, y + (*line[1] ? 16 : 23), "head", line[0], n->entry < 0);
    draw_line(p, x + WIDE / 2, y + 31, "", line[1], false);
    draw_line(p, x + WIDE / 2, y + (*line[1] ? 46 : 40), "", line[2], false);
    weft__svg_put(&p->svg, "</g>\n");
    free(tip);
}

/* ---- the whole ---- */
static void draw_legend(picture *p)
{
    const weft__graph *g = p->g;
    char text[64] = "";
    if (g->target)
        snprintf(text, sizeof text, "; number | gradient of %%%lld by it",
                 (long long)weft__node_of(g->target)->entry_number - 1);
    weft__svg_text(&p->svg, 24, 54, "", WEFT__START,
                   "blue: operators, from top to bottom as they ran; green: parameters; grey: given tensors");
    weft__svg_textf(&p->svg, 24, 72, "", WEFT__START, "of one element: its number, else the shape%s", text);
}

static weft_status draw_all(picture *p, const char *path, const char *title)
{
    double width = 2 * LEFT + p->lanes * (WIDE + BESIDE) - BESIDE,
           title_width = 48 + 10.5 * (title ? weft__utf8_length(title) : 0);
    width = width < 640 ? 640 : width;
    weft__svg_begin(&p->svg, path, title, width < title_width ? title_width : width,
                    TOP + p->rows * (HIGH + GAP) - GAP + LEFT);
    weft__svg_put(&p->svg,
                  "<style>.node text { fill: #111111 }</style>\n"        /* also on a dark page */
                  "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" "
                  "markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#666666\"/></marker>"
                  "</defs>\n");
    draw_legend(p);
    for (int64_t i = 0; i < p->g->nodes; i++)
        for (int k = 0; k < weft__inputs_of(p->g, i); k++)
            draw_arrow(p, weft__input_of(p->g, i, k), i, k);
    for (int64_t i = 0; i < p->g->nodes; i++)
        draw_box(p, i);
    return weft__svg_end(&p->svg);
}

weft_status weft__tape_as_svg(weft__graph *g, const char *path, const char *title)
{
    picture p = { .g = g, .place = calloc((size_t)g->nodes + 1, sizeof *p.place),
                  .until = calloc(3 * (size_t)g->nodes + 1, sizeof *p.until) };
    weft_status status;
    if (p.place && p.until) {
        find_rows(&p);
        for (int64_t i = 0; i < g->nodes; i++)
            find_lane(&p, i);
        status = draw_all(&p, path, title);
    } else
        status = weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path ? path : "a picture");
    free(p.place);
    free(p.until);
    return status;
}
