/* page_learning.c - of the page: loss against tokens, updates and seconds, with a band over seeds. */
#include "tools/page.h"

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

/* The line of level 1, the means, there; or the band of levels 2 and 0, back. */
static void put_path(page *p, const lab_plan *l, const measure *m, const scale *x, const scale *y, int level,
                     bool back)
{
    int n = longest(l), at[202], points = 0;
    for (int i = 0; i < n && points < 202; i = next_point(i, n))
        at[points++] = i;
    for (int k = 0; k < points; k++) {
        double where, loss[3];
        if (join_seeds(l, m, at[back ? points - 1 - k : k], &where, loss))
            put(p, "%s%.1f %.1f", k || back ? "L" : "M", scaled(x, where), scaled(y, loss[level]));
    }
}

static void put_curve(page *p, int plan, const measure *m, const scale *x, const scale *y)
{
    static const char *const dashes[] = {
        "none", "6 3", "2 2", "8 3 2 3", "12 4", "4 4", "1 3", "9 2 2 2 2 2"
    };
    const lab_plan *l = p->lab->plan + plan;
    int n = longest(l), colour = plan % PAGE_COLOURS;
    double at, loss[3];
    if (!n)
        return;
    if (l->curves > 1) {
        put(p, "<path class=\"band f%d\" d=\"", colour);
        put_path(p, l, m, x, y, 2, false), put_path(p, l, m, x, y, 0, true);
        put(p, "Z\"/>\n");
    }
    put(p, "<path class=\"curve s%d\" stroke-dasharray=\"%s\" d=\"", colour,
        dashes[(plan + plan / PAGE_COLOURS) % 8]);
    put_path(p, l, m, x, y, 1, false);
    put(p, "\"/>\n");
    if (join_seeds(l, m, n - 1, &at, loss))
        put_label(p, scaled(x, at) + 3, scaled(y, loss[1]) + 4, "start", "%d", plan + 1);
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
    end_image(p);
    put(p, "%s: means over seeds, the band from the least to the largest.", m->title);
    end_figure(p);
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
static double last_tokens(const lab_plan *l) { return last(l, tokens_of, -1); }
static double last_updates(const lab_plan *l) { return last(l, updates_of, -1); }
static double last_seconds(const lab_plan *l) { return last(l, seconds_of, -1); }
static double last_loss(const lab_plan *l) { return last(l, tokens_of, 1); }
static double least_loss(const lab_plan *l) { return last(l, tokens_of, 0); }
static double largest_loss(const lab_plan *l) { return last(l, tokens_of, 2); }

void put_learning(page *p)
{
    static const measure measures[] = { { "Loss against tokens", "tokens", tokens_of },
                                        { "Loss against updates", "updates", updates_of },
                                        { "Loss against seconds", "seconds", seconds_of } };
    static const page_column columns[] = {
        { "seeds", seeds, 0, 0 },          { "tokens", last_tokens, 0, 0 },
        { "updates", last_updates, 0, 0 }, { "seconds", last_seconds, 0, 1 },
        { "last loss", last_loss, -1, 4 }, { "least", least_loss, 0, 4 },
        { "largest", largest_loss, 0, 4 },
    };
    int runs = 0;
    for (int i = 0; i < p->lab->plans; i++)
        runs += longest(p->lab->plan + i) > 0;
    if (!runs) {
        put_missing(p, "Nothing was trained for this page.");
        return;
    }
    put(p, "<p>Plans with fewer, larger batches make fewer updates of the same tokens: compare at equal "
           "tokens and at equal updates.</p>\n");
    put_plan_table(p, "At the end of training; least and largest over the seeds.", columns,
                   sizeof columns / sizeof *columns);
    begin_figures(p);
    for (int i = 0; i < 3; i++) {
        double range[4];
        widen(p->lab, measures + i, range);
        if (isfinite(range[0]))
            put_chart(p, measures + i);
    }
    end_figures(p);
}
