/* learning.c - of the page: loss against tokens, updates and seconds, with a band over seeds. */
#include <stdlib.h>
#include <string.h>
#include "tools/page/page.h"

typedef struct {
    const char *title, *label;
    double (*of)(const lab_point *);
} measure;

static double tokens_of(const lab_point *p) { return p->tokens; }
static double updates_of(const lab_point *p) { return p->updates; }
static double seconds_of(const lab_point *p) { return p->seconds; }
static const measure measures[] = { { "Loss against tokens", "tokens", tokens_of },
                                    { "Loss against updates", "updates", updates_of },
                                    { "Loss against seconds", "seconds", seconds_of } };

/* Over the seeds of a plan that have a point i: mean of x, least, mean and largest loss; false: none has. */
static bool join_seeds(const lab_plan *l, const measure *m, int i, double *x, double loss[3])
{
    double sum = 0, at = 0;
    int seeds = 0;
    for (int k = 0; k < l->curves; k++)
        if (i < l->curve[k].n && isfinite(l->curve[k].point[i].loss) &&
            isfinite(m->of(l->curve[k].point + i))) {
            double here = l->curve[k].point[i].loss;
            loss[0] = seeds ? fmin(loss[0], here) : here;
            loss[2] = seeds ? fmax(loss[2], here) : here;
            sum += here;
            at += m->of(l->curve[k].point + i);
            seeds++;
        }
    if (seeds) {
        loss[1] = sum / seeds;
        *x = at / seeds;
    }
    return seeds > 0;
}

static int longest(const lab_plan *l)
{
    int n = 0;
    for (int k = 0; k < l->curves; k++)
        n = l->curve[k].n > n ? l->curve[k].n : n;
    return n;
}

/* Points of a long run that are drawn: every so many-th, and the last. */
static int stride(int n) { return (n + 199) / 200; }
static int next_point(int i, int n) { return i == n - 1 ? n : i + stride(n) < n - 1 ? i + stride(n) : n - 1; }

static void widen(const lab *l, const measure *m, double range[4])
{
    range[0] = range[2] = HUGE_VAL;
    range[1] = range[3] = -HUGE_VAL;
    for (int k = 0; k < l->plans; k++)
        for (int n = longest(l->plan + k), i = 0; i < n; i++) {
            double x, loss[3];
            if (!join_seeds(l->plan + k, m, i, &x, loss))
                continue;
            range[0] = fmin(range[0], x);
            range[1] = fmax(range[1], x);
            range[2] = fmin(range[2], loss[0]);
            range[3] = fmax(range[3], loss[2]);
        }
}

/* The points of one level, there or back; begun: whether there was one before, and afterwards. */
static void put_path(page *p, const lab_plan *l, const measure *m, const page_axes *axes, int level,
                     bool back, bool *begun)
{
    int n = longest(l), at[202], points = 0;
    for (int i = 0; i < n && points < 202; i = next_point(i, n))
        at[points++] = i;
    for (int k = 0; k < points; k++) {
        double where, loss[3];
        if (!join_seeds(l, m, at[back ? points - 1 - k : k], &where, loss))
            continue;
        put(p, "%s%.1f %.1f", *begun ? "L" : "M", weft__axis_pixel(&axes->x, where),
            weft__axis_pixel(&axes->y, loss[level]));
        *begun = true;
    }
}

/* A line of its plan's colour and dashes. */
static void begin_line(page *p, int plan)
{
    static const char *const dashes[] = {
        "none", "6 3", "2 2", "8 3 2 3", "12 4", "4 4", "1 3", "9 2 2 2 2 2"
    };
    put(p, "<path class=\"curve s%d\" stroke-dasharray=\"%s\" d=\"", plan % PAGE_COLOURS,
        dashes[(plan + plan / PAGE_COLOURS) % 8]);
}

/* The means over a band from least to largest. */
static void put_curve(page *p, int plan, const measure *m, const page_axes *axes)
{
    const lab_plan *l = p->lab->plan + plan;
    bool begun = false;
    if (!longest(l))
        return;
    if (l->curves > 1) {
        put(p, "<path class=\"band f%d\" d=\"", plan % PAGE_COLOURS);
        put_path(p, l, m, axes, 2, false, &begun);
        put_path(p, l, m, axes, 0, true, &begun);
        put(p, "\"/>\n");
    }
    begun = false;
    begin_line(p, plan);
    put_path(p, l, m, axes, 1, false, &begun);
    put(p, "\"/>\n");
}

/* ---- numbers at the ends of lines ---- */
enum { LABELS = 64, APART = 10 };
typedef struct {
    double x, y;
    int plan;
} line_end;

static int from_below(const void *a, const void *b)
{
    const line_end *s = a, *t = b;
    return s->y != t->y ? (s->y < t->y) - (s->y > t->y) : s->plan - t->plan;
}

/* From below upwards, each above the one before. */
static void put_ends(page *p, const measure *m, const page_axes *axes)
{
    line_end end[LABELS];
    int n = 0;
    for (int i = 0; i < p->lab->plans && n < LABELS; i++) {
        const lab_plan *l = p->lab->plan + i;
        double at, loss[3];
        if (longest(l) && join_seeds(l, m, longest(l) - 1, &at, loss))
            end[n++] =
                (line_end){ weft__axis_pixel(&axes->x, at), weft__axis_pixel(&axes->y, loss[1]), i };
    }
    qsort(end, (size_t)n, sizeof *end, from_below);
    for (int k = 0; k < n; k++) {
        if (k && end[k].y > end[k - 1].y - APART)
            end[k].y = end[k - 1].y - APART;
        put_label(p, end[k].x + 3, end[k].y + 4, "", WEFT__START, "%d", end[k].plan + 1);
    }
}

static void put_chart(page *p, const measure *m)
{
    double range[4];
    widen(p->lab, m, range);
    if (!isfinite(range[0]))
        return;
    range[0] = fmin(0, range[0]);
    page_axes axes = axes_of(range, 0, 0, CHART_HEIGHT);
    begin_image(p, CHART_HEIGHT, m->title,
                "A line for each plan, the mean over its seeds, with its number at the end.");
    put_axes(p, &axes, m->label, "loss", CHART_HEIGHT);
    for (int i = 0; i < p->lab->plans; i++)
        put_curve(p, i, m, &axes);
    put_ends(p, m, &axes);
    end_image(p);
    put(p, "%s: means over seeds, the band from the least to the largest.", m->title);
    end_figure(p);
}

static void put_legend(page *p)
{
    put(p, "<ul class=\"legend\">\n");
    for (int i = 0; i < p->lab->plans; i++) {
        if (!longest(p->lab->plan + i))
            continue;
        put(p, "<li><svg width=\"48\" height=\"10\" aria-hidden=\"true\" focusable=\"false\">");
        begin_line(p, i);
        put(p, "M2 5H46\"/></svg> ");
        put_plan(p, i);
        put(p, "</li>\n");
    }
    put(p, "</ul>\n");
}

/* ---- tables ---- */
/* When a run had come to so many bits, on the line between two points; NaN: it has not. */
static double time_of(const lab_curve *c, double bits)
{
    for (int i = 0; i < c->n; i++) {
        const lab_point *here = c->point + i;
        double over = here->loss - bits * log(2);
        if (over <= 0)
            return i ? here->seconds -
                           (here->seconds - here[-1].seconds) * over / (here->loss - here[-1].loss) :
                       here->seconds;
    }
    return LAB_NONE;
}

/* The mean over seeds; NaN: one of them has not come there. */
static double time_to(const lab_plan *l, double bits)
{
    double sum = 0;
    for (int k = 0; k < l->curves; k++)
        sum += time_of(l->curve + k, bits);
    return l->curves ? sum / l->curves : LAB_NONE;
}

/* Seconds to the target, and how many times those of the first plan that came to it. */
static void fill_target(const lab *l, int i, page_row *row)
{
    double first = LAB_NONE, t = time_to(l->plan + i, l->target);
    for (int k = 0; k <= i && isnan(first); k++)
        first = time_to(l->plan + k, l->target);
    SET_ROW(row, NULL, CELL("seconds", t, 0, 1), CELL("ratio to the first", t / first, 0, 2));
}

static void fill_learning(const lab *l, int i, page_row *row)
{
    const lab_plan *p = l->plan + i;
    double last[3] = { LAB_NONE, LAB_NONE, LAB_NONE }, loss[3] = { LAB_NONE, LAB_NONE, LAB_NONE };
    for (int k = 0; k < 3 && longest(p); k++)
        join_seeds(p, measures + k, longest(p) - 1, last + k, loss);
    SET_ROW(row, NULL, CELL("seeds", p->curves ? p->curves : LAB_NONE, 0, 0), CELL("tokens", last[0], 0, 0),
            CELL("updates", last[1], 0, 0), CELL("seconds", last[2], 0, 1), CELL("last loss", loss[1], -1, 4),
            CELL("least", loss[0], 0, 4), CELL("largest", loss[2], 0, 4),
            CELL("bits", loss[1] / log(2), 0, 3));
}

/* Plans without a curve, each with its reason; where none was trained only those with a reason of their own.
 */
static void put_unlearned(page *p, bool trained)
{
    for (int i = 0; i < p->lab->plans; i++) {
        const char *why = p->lab->plan[i].no_curve;
        if (longest(p->lab->plan + i) || !(trained || why))
            continue;
        put(p, "<p>");
        put_plan(p, i);
        put(p, " has no curve: ");
        why = why ? why : p->lab->stopped;
        put_text(p, why ? why : "it was not trained");
        put(p, ".</p>\n");
    }
}

void put_learning(page *p)
{
    int runs = 0;
    char caption[96];
    for (int i = 0; i < p->lab->plans; i++)
        runs += longest(p->lab->plan + i) > 0;
    if (!runs) {
        put_missing(p, "Nothing was trained for this page");
        put_unlearned(p, false);
        return;
    }
    put(p, "<p>Plans with fewer, larger batches make fewer updates of the same tokens: compare at equal "
           "tokens and at equal updates.</p>\n");
    put_table(p, "At the end of training; least and largest over the seeds.", "planner", p->lab->plans,
              fill_learning);
    put_unlearned(p, true);
    snprintf(caption, sizeof caption, "Seconds of training to %g bits a token.", p->lab->target);
    if (p->lab->target > 0)
        put_table(p, caption, "planner", p->lab->plans, fill_target);
    put_legend(p);
    put(p, "<div class=\"figures\">\n");
    for (int i = 0; i < 3; i++)
        put_chart(p, measures + i);
    put(p, "</div>\n");
}
