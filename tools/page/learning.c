/* learning.c - draws loss against tokens, updates and seconds, with a band over seeds. */
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

/* For point i of a plan: the mean of x, and the least, mean and largest loss over its seeds; NaN: no seed. */
static void join_seeds(const lab_plan *l, const measure *m, int i, double *x, double loss[3])
{
    double sum = 0, position = 0;
    int seeds = 0;
    for (int k = 0; k < l->curves; k++)
        if (i < l->curve[k].n && isfinite(l->curve[k].point[i].loss) &&
            isfinite(m->of(l->curve[k].point + i))) {
            double value = l->curve[k].point[i].loss;
            loss[0] = seeds ? fmin(loss[0], value) : value;
            loss[2] = seeds ? fmax(loss[2], value) : value;
            sum += value;
            position += m->of(l->curve[k].point + i);
            seeds++;
        }
    *x = seeds ? position / seeds : LAB_NONE;
    loss[1] = seeds ? sum / seeds : LAB_NONE;
}

static int longest(const lab_plan *l)
{
    int n = 0;
    for (int k = 0; k < l->curves; k++)
        n = l->curve[k].n > n ? l->curve[k].n : n;
    return n;
}

double last_loss(const lab_plan *l)
{
    double x, loss[3] = { LAB_NONE, LAB_NONE, LAB_NONE };
    if (longest(l))
        join_seeds(l, measures, longest(l) - 1, &x, loss);
    return loss[1];
}

enum { MOST = 64 }; /* plans that are drawn */

/* Draws the mean of each plan and a band from the least to the largest loss. Its number marks the end. */
void draw_learning(page *p, int which)
{
    const measure *m = measures + which;
    int plans = p->lab->plans < MOST ? p->lab->plans : MOST, most = 1;
    char name[MOST][12];
    weft_curve curve[2 * MOST];
    for (int k = 0; k < plans; k++)
        most = longest(p->lab->plan + k) > most ? longest(p->lab->plan + k) : most;
    double *number SCOPED = get_memory(4 * (int64_t)plans * most, sizeof *number), loss[3] = { 0 };
    for (int k = 0; k < plans; k++) {
        double *x = number + (ptrdiff_t)k * 4 * most, *y[3] = { x + most, x + 2 * most, x + 3 * most };
        int n = longest(p->lab->plan + k);
        for (int i = 0; i < n; i++) {
            join_seeds(p->lab->plan + k, m, i, x + i, loss);
            for (int level = 0; level < 3; level++)
                y[level][i] = loss[level];
        }
        snprintf(name[k], sizeof name[k], "%d", k + 1);
        curve[2 * k] = (weft_curve){ .name = name[k], .n = n, .x = x, .y = y[1] };
        curve[2 * k + 1] = (weft_curve){ .n = n, .x = x, .y = y[2], .low = y[0] };
    }
    put_chart(p, CHART_HEIGHT, m->title,
              &(weft_chart){ .x_label = m->label, .left = "loss", .curves = curve, .n = 2 * plans },
              "One line for each plan: the mean over its seeds. The plan's number is at the end of the "
              "line.");
    put(p, "%s. Lines are means over seeds, bands span the minimum to the maximum. Numbers are those of the "
           "table.", m->title);
    end_figure(p);
}

/* Returns when a run reached this loss, interpolated between two points, or NaN if it did not. */
static double time_of(const lab_curve *c, double bits)
{
    for (int i = 0; i < c->n; i++) {
        const lab_point *point = c->point + i;
        double over = point->loss - bits * log(2);
        if (over <= 0)
            return i ? point->seconds -
                           (point->seconds - point[-1].seconds) * over / (point->loss - point[-1].loss) :
                       point->seconds;
    }
    return LAB_NONE;
}

/* Returns the mean over seeds, or NaN if one of them did not reach the loss. */
static double time_to(const lab_plan *l, double bits)
{
    double sum = 0;
    for (int k = 0; k < l->curves; k++)
        sum += time_of(l->curve + k, bits);
    return l->curves ? sum / l->curves : LAB_NONE;
}

/* Writes the seconds to the target, and their ratio to those of the first plan that reached it. */
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

/* Lists plans without a curve and the reasons. If nothing was trained, only those with their own reason. */
static void put_unlearned(page *p, bool trained)
{
    for (int i = 0; i < p->lab->plans; i++) {
        const char *reason = p->lab->plan[i].no_curve;
        if (longest(p->lab->plan + i) || !(trained || reason))
            continue;
        put(p, "<p>");
        put_plan(p, i);
        reason = reason ? reason : p->lab->stopped;
        put_between(p, " has no curve: ", reason ? reason : "it was not trained", ".</p>\n");
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
    put(p, "<p>A plan with fewer, larger batches makes fewer updates from the same tokens. Compare "
           "plans at equal tokens and at equal updates.</p>\n");
    put_table(p,
              "At the end of training. Last loss: mean over the seeds. Least and largest: over the "
              "seeds. Bits: of a token.",
              "planner", p->lab->plans, fill_learning, NULL);
    put_unlearned(p, true);
    snprintf(caption, sizeof caption, "Seconds of training to %g bits a token.", p->lab->target);
    if (p->lab->target > 0)
        put_table(p, caption, "planner", p->lab->plans, fill_target, NULL);
    put(p, "<div class=\"figures\">\n");
    for (int i = 0; i < 3; i++)
        draw_learning(p, i);
    put(p, "</div>\n");
}
