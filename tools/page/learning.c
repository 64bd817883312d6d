/* learning.c - of the page: loss against tokens, updates and seconds, with a band over seeds. */
#include <stdlib.h>
#include "tools/page/page.h"

typedef struct {
    const char *title, *label;
    double (*of)(const lab_point *);
} measure;

static double tokens_of(const lab_point *p) { return p->tokens; }
static double updates_of(const lab_point *p) { return p->updates; }
static double seconds_of(const lab_point *p) { return p->seconds; }

/* Over the seeds of a plan that have a point i: mean of x, least, mean and largest loss; false: none has. */
static bool join_seeds(const lab_plan *l, const measure *m, int i, double *x, double loss[3])
{
    double sum = 0, at = 0;
    int seeds = 0;
    for (int k = 0; k < l->curves; k++)
        if (i < l->curve[k].n && isfinite(l->curve[k].point[i].loss) &&
            isfinite(m->of(l->curve[k].point + i))) {
            double here = l->curve[k].point[i].loss;
            loss[0] = seeds ? fmin(loss[0], here) : here, loss[2] = seeds ? fmax(loss[2], here) : here;
            sum += here, at += m->of(l->curve[k].point + i), seeds++;
        }
    if (seeds)
        loss[1] = sum / seeds, *x = at / seeds;
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
    range[0] = range[2] = HUGE_VAL, range[1] = range[3] = -HUGE_VAL;
    for (int k = 0; k < l->plans; k++)
        for (int n = longest(l->plan + k), i = 0; i < n; i++) {
            double x, loss[3];
            if (!join_seeds(l->plan + k, m, i, &x, loss))
                continue;
            range[0] = fmin(range[0], x), range[1] = fmax(range[1], x);
            range[2] = fmin(range[2], loss[0]), range[3] = fmax(range[3], loss[2]);
        }
}

/* The points of one level, there or back; begun: whether there was one before, and afterwards. */
static void put_path(page *p, const lab_plan *l, const measure *m, const scale *x, const scale *y, int level,
                     bool back, bool *begun)
{
    int n = longest(l), at[202], points = 0;
    for (int i = 0; i < n && points < 202; i = next_point(i, n))
        at[points++] = i;
    for (int k = 0; k < points; k++) {
        double where, loss[3];
        if (!join_seeds(l, m, at[back ? points - 1 - k : k], &where, loss))
            continue;
        put(p, "%s%.1f %.1f", *begun ? "L" : "M", scaled(x, where), scaled(y, loss[level]));
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
static void put_curve(page *p, int plan, const measure *m, const scale *x, const scale *y)
{
    const lab_plan *l = p->lab->plan + plan;
    bool begun = false;
    if (!longest(l))
        return;
    if (l->curves > 1) {
        put(p, "<path class=\"band f%d\" d=\"", plan % PAGE_COLOURS);
        put_path(p, l, m, x, y, 2, false, &begun), put_path(p, l, m, x, y, 0, true, &begun);
        put(p, "\"/>\n");
    }
    begun = false;
    begin_line(p, plan);
    put_path(p, l, m, x, y, 1, false, &begun);
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
static void put_ends(page *p, const measure *m, const scale *x, const scale *y)
{
    line_end end[LABELS];
    int n = 0;
    for (int i = 0; i < p->lab->plans && n < LABELS; i++) {
        const lab_plan *l = p->lab->plan + i;
        double at, loss[3];
        if (longest(l) && join_seeds(l, m, longest(l) - 1, &at, loss))
            end[n++] = (line_end){ scaled(x, at), scaled(y, loss[1]), i };
    }
    qsort(end, (size_t)n, sizeof *end, from_below);
    for (int k = 0; k < n; k++) {
        if (k && end[k].y > end[k - 1].y - APART)
            end[k].y = end[k - 1].y - APART;
        put_label(p, end[k].x + 3, end[k].y + 4, "start", "%d", end[k].plan + 1);
    }
}

static void put_chart(page *p, const measure *m)
{
    double range[4];
    widen(p->lab, m, range);
    scale x = scale_of(fmin(0, range[0]), range[1], false, CHART_LEFT, CHART_WIDTH - 2. * CHART_RIGHT),
          y = scale_of(range[2], range[3], false, CHART_HEIGHT - CHART_BOTTOM, CHART_TOP);
    begin_image(p, CHART_HEIGHT, m->title,
                "A line for each plan, the mean over its seeds, with its number at the end.");
    put_axes(p, &x, &y, m->label, "loss", CHART_HEIGHT);
    for (int i = 0; i < p->lab->plans; i++)
        put_curve(p, i, m, &x, &y);
    put_ends(p, m, &x, &y);
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

static double seeds(const lab_plan *l) { return l->curves ? l->curves : LAB_NONE; }
static double last(const lab_plan *l, double (*of)(const lab_point *), int level)
{
    measure m = { "", "", of };
    double x = LAB_NONE, loss[3] = { LAB_NONE, LAB_NONE, LAB_NONE };
    if (longest(l))
        join_seeds(l, &m, longest(l) - 1, &x, loss);
    return level < 0 ? x : loss[level];
}
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

static double last_tokens(const lab_plan *l) { return last(l, tokens_of, -1); }
static double last_updates(const lab_plan *l) { return last(l, updates_of, -1); }
static double last_seconds(const lab_plan *l) { return last(l, seconds_of, -1); }
static double last_loss(const lab_plan *l) { return last(l, tokens_of, 1); }
static double last_bits(const lab_plan *l) { return last_loss(l) / log(2); }
static double least_loss(const lab_plan *l) { return last(l, tokens_of, 0); }
static double largest_loss(const lab_plan *l) { return last(l, tokens_of, 2); }

/* Seconds to the target, and how many times those of the first plan that came to it. */
static void put_target(page *p)
{
    static const char *const heads[] = { "planner", "seconds", "ratio to the first", NULL };
    double first = LAB_NONE;
    char caption[96];
    if (p->lab->target <= 0)
        return;
    snprintf(caption, sizeof caption, "Seconds of training to %g bits a token.", p->lab->target);
    begin_table(p, caption, heads);
    for (int i = 0; i < p->lab->plans; i++) {
        double t = time_to(p->lab->plan + i, p->lab->target);
        first = isnan(first) ? t : first;
        put(p, "<tr><th scope=\"row\">");
        put_plan(p, i);
        put(p, "</th>");
        put_cell(p, t, 1, false), put_cell(p, t / first, 2, false);
        put(p, "</tr>\n");
    }
    end_table(p);
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
    static const measure measures[] = { { "Loss against tokens", "tokens", tokens_of },
                                        { "Loss against updates", "updates", updates_of },
                                        { "Loss against seconds", "seconds", seconds_of } };
    static const page_column columns[] = {
        { "seeds", seeds, 0, 0 },          { "tokens", last_tokens, 0, 0 },
        { "updates", last_updates, 0, 0 }, { "seconds", last_seconds, 0, 1 },
        { "last loss", last_loss, -1, 4 }, { "least", least_loss, 0, 4 },
        { "largest", largest_loss, 0, 4 }, { "bits", last_bits, 0, 3 },
    };
    int runs = 0;
    for (int i = 0; i < p->lab->plans; i++)
        runs += longest(p->lab->plan + i) > 0;
    if (!runs) {
        put_missing(p, "Nothing was trained for this page");
        put_unlearned(p, false);
        return;
    }
    put(p, "<p>Plans with fewer, larger batches make fewer updates of the same tokens: compare at equal "
           "tokens and at equal updates.</p>\n");
    put_plan_table(p, "At the end of training; least and largest over the seeds.", columns,
                   sizeof columns / sizeof *columns);
    put_unlearned(p, true);
    put_target(p);
    put_legend(p);
    begin_figures(p);
    for (int i = 0; i < 3; i++) {
        double range[4];
        widen(p->lab, measures + i, range);
        if (isfinite(range[0]))
            put_chart(p, measures + i);
    }
    end_figures(p);
}
