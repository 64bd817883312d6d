/* Lesson 14: compares short cases with all paths, one by one, and long cases with a
 * recursion of its own. */
#include "common/lesson.h"
#include "common/mistakes.h"
#include "lesson.h"

enum { MOST_STEPS = 700, MOST_CLASSES = 600, MOST_LABELS = 160 };
enum { MOST_SCORES = 100 * MOST_CLASSES };
enum { CASES = 60, LONG_CASES = 7 }; /* the last has many classes */
typedef struct {
    int steps, classes, n, labels[MOST_LABELS];
    double score[MOST_SCORES];
} question;
typedef struct {
    double p;
    int n, path[MOST_STEPS];
} reply;
enum { OLD = -7 };

/* ---- collapse ---- */
static int collapse_with(int way, int steps, const int *path, int *out)
{
    int n = 0, blanks = 0;
    for (int t = 0; t < steps; t++) {
        bool blank = path[t] == BLANK, merged = t && path[t] == path[t - 1];
        if (way == C_BLANKS_FIRST)
            merged = n && path[t] == out[n - 1];
        if (way == C_NOT_MERGED)
            merged = false;
        if (way == C_NO_FIRST)
            merged |= t == 0;
        for (int k = 0; way == C_ONCE && k < n; k++)
            merged |= out[k] == path[t];
        blanks += blank && !merged;
        if (!merged && (!blank || way == C_BLANKS_KEPT))
            out[n++] = path[t];
    }
    n -= way == C_NO_LAST && steps && path[steps - 1] != BLANK;
    return n + (way == C_BLANKS_COUNTED ? blanks : 0);
}

static void check_collapse(void)
{
    int like[MISTAKES] = { 0 }, labels = 0;
    bool bad = false;
    for (int i = 0; i < CASES; i++) {
        int steps = i % 12, path[12], out[12], want[12];
        for (int t = 0; t < 12; t++)
            path[t] = t < steps ? dice_below(i % 3 ? 3 : 2) : OLD, out[t] = OLD;
        int n = collapse(steps, path, out);
        labels += n;
        for (int way = RIGHT; way <= C_ONCE; way++) {
            int right = collapse_with(way, steps, path, want);
            bool same =
                n == right && same_ints(out, want, way == C_BLANKS_COUNTED ? 0 : n);
            like[way] += same;
            bad |= way == RIGHT && !same;
        }
        for (int t = n; !bad && t < steps; t++)
            if (out[t] != OLD)
                hint("collapse writes to out[%d], though it returns %d labels", t, n);
    }
    if (like[RIGHT] == CASES)
        return;
    for (int way = C_BLANKS_FIRST; way <= C_ONCE; way++)
        if (like[way] == CASES)
            hint("%s", hints[way]);
    if (!labels)
        hint("collapse finds no label in a path that has one: write the classes that "
             "begin a label to out, and count them");
    hint("collapse is wrong for %d of %d random paths: merge equal neighbours first, "
         "then leave out the blanks. 1 1 0 1 2 2 gives 1 1 2",
         CASES - like[RIGHT], CASES);
}

/* ---- all paths ---- */
/* Tries each path. Returns the sum or the best of those that collapse to the labels. */
static reply try_all(const question *q, bool best)
{
    reply all = { .p = best ? -INFINITY : 0 };
    int path[8] = { 0 }, out[8];
    double paths = pow(q->classes, q->steps);
    for (int i = 0; i < paths; i++) {
        double p = 0;
        for (int t = 0, rest = i; t < q->steps; t++, rest /= q->classes)
            p += q->score[t * q->classes + (path[t] = rest % q->classes)];
        int n = collapse_with(RIGHT, q->steps, path, out);
        if (n != q->n || !same_ints(out, q->labels, n))
            continue;
        all.n++;
        if (best && p > all.p)
            memcpy(all.path, path, sizeof path);
        all.p = best ? fmax(all.p, p) : all.p + exp(p);
    }
    all.p = best ? all.p : log(all.p);
    return all;
}

/* ---- a recursion over states, right or with a known mistake ---- */
static int class_of(const question *q, int way, int s)
{
    return way == L_NO_BLANKS ? q->labels[s] : s % 2 ? q->labels[s / 2] : BLANK;
}

static double score_of(const question *q, int way, int t, int s)
{
    int k = class_of(q, way, s), at = t * q->classes + k;
    return q->score[way == L_FIRST_ROW ? k : way == L_TURNED ? k * q->steps + t : at];
}

static double joined(double a, double b, bool best)
{
    double most = fmax(a, b);
    return best || most == -INFINITY ? most : most + log(exp(a - most) + exp(b - most));
}

/* Returns from how many states before a path may jump to s: 2, or 1. */
static int reach(const question *q, int way, int s)
{
    bool label = s % 2 && s > 1,
         equal = label && q->labels[s / 2] == q->labels[s / 2 - 1];
    if (way == L_NO_BLANKS || way == L_NO_JUMP || way == B_NO_JUMP)
        return 1;
    if (way == L_BLANK_JUMP && s > 1 && s % 2 == 0)
        return 2;
    return label && (!equal || way == L_EQUAL_JUMP || way == B_EQUAL_JUMP) ? 2 : 1;
}

enum { MOST_STATES = 2 * MOST_LABELS + 1 };
static double table[MOST_STEPS + 1][MOST_STATES];

static void begin_states(const question *q, int way, int states)
{
    for (int s = 0; s < states; s++)
        table[0][s] = -INFINITY;
    if (way == L_NO_BLANKS)
        return;
    table[0][0] = way == L_BEGIN_LABEL && q->n ? -INFINITY : 0;
    if ((way == L_DOUBLE_START || way == B_DOUBLE_START) && q->n)
        table[0][1] = 0;
}

/* Fills row t + 1 of the table. */
static void step_states(const question *q, int way, int t, int states, bool best)
{
    bool in_place = way == L_IN_PLACE || way == B_IN_PLACE;
    const double *before = table[in_place ? t + 1 : t];
    for (int s = 0; s < states; s++) {
        double sum = way == L_NO_STAY && t > 0 ? -INFINITY : table[t][s];
        for (int back = 1; back <= reach(q, way, s) && back <= s; back++)
            sum = joined(sum, before[s - back], best);
        if (t == 0 && (way == L_NO_BLANKS || way == L_BEGIN_LABEL) && q->n)
            sum = s == (way == L_BEGIN_LABEL) ? 0 : -INFINITY;
        if (t == 0 && way == L_BEGIN_BLANK && s)
            sum = -INFINITY;
        table[t + 1][s] = sum + score_of(q, way, t, s);
    }
}

static double end_of(const question *q, int way, int states, bool best)
{
    const double *last = table[q->steps];
    double sum = -INFINITY;
    for (int s = 0; s < states; s++) {
        bool label = s == states - 2, blank = s == states - 1;
        bool counts =
            way == L_NO_BLANKS                                 ? blank :
            way == L_END_ANY                                   ? true :
            q->n && (way == L_END_BLANK || way == B_END_BLANK) ? blank :
            q->n && (way == L_END_LABEL || way == B_END_LABEL) ? label :
                                                                 label || blank;
        sum = counts ? joined(sum, last[s], best) : sum;
    }
    return way == L_NOT_LOG || way == B_NOT_LOG ? exp(sum) :
           way == L_MINUS                       ? -sum :
                                                  sum;
}

static double walk(const question *q, int way, bool best)
{
    int states = way == L_NO_BLANKS ? q->n : 2 * q->n + 1;
    begin_states(q, way, states);
    for (int t = 0; t < q->steps; t++) {
        step_states(q, way, t, states, best);
        if (way == L_STEP_0_TWICE && t == 0) {
            memcpy(table[0], table[1], sizeof table[0]);
            step_states(q, way, t, states, best);
        }
    }
    return end_of(q, way, states, best);
}

/* Finds the path that ends the table, from its end to its begin. */
static void walk_back(const question *q, int way, int *path)
{
    int s = 2 * q->n;
    bool blank_only = way == B_END_BLANK, label_only = way == B_END_LABEL;
    if (q->n && !blank_only &&
        (label_only || table[q->steps][s - 1] > table[q->steps][s]))
        s--;
    for (int t = q->steps; t-- > 0;) {
        path[way == B_REVERSED ? q->steps - 1 - t : t] =
            way == B_STATES ? s : class_of(q, way, s);
        int from = s;
        for (int back = 1; back <= reach(q, way, s) && back <= s; back++)
            from = table[t][s - back] > table[t][from] ? s - back : from;
        s = from;
    }
}

static reply best_with(const question *q, int way)
{
    reply r = { .p = walk(q, way, true) };
    for (int t = 0; t < q->steps; t++)
        r.path[t] = OLD;
    if (way == B_GREEDY)
        for (int t = 0; t < q->steps; t++)
            for (int k = r.path[t] = 0; k < q->classes; k++)
                if (q->score[t * q->classes + k] > q->score[t * q->classes + r.path[t]])
                    r.path[t] = k;
    if (way != B_GREEDY && r.p != (way == B_NOT_LOG ? 0 : -INFINITY))
        walk_back(q, way, r.path);
    if (way == B_SUM)
        r.p = walk(q, RIGHT, false);
    return r;
}

/* ---- questions ---- */
static void ask(question *q, int i, bool is_long)
{
    *q = (question){ .steps = !is_long ? i % 7 : i == 6 ? 100 : 100 * (i + 2),
                     .classes = !is_long ? 2 + i % 3 : i == 6 ? MOST_CLASSES : 5,
                     .n = is_long ? 8 * i + (i == 5 ? 110 : 0) : i / 2 % 5 };
    if (!is_long && q->n > q->steps)
        q->n = i % 4 ? q->steps : q->n; /* sometimes there is no path */
    for (int k = 0; k < q->n; k++)
        q->labels[k] = k && i % 2 && dice_below(2) ? q->labels[k - 1] :
                                                     1 + dice_below(q->classes - 1);
    for (int t = 0; t < q->steps; t++) {
        double *row = q->score + t * q->classes, sum = 0;
        for (int k = 0; k < q->classes; k++)
            sum += exp(row[k] = is_long && i == 3 && k == q->labels[0] ?
                                    row[BLANK] + 1e-5 * dice() : /* nearly a tie */
                                    (is_long && i > 3 ? 300 : 2) * dice());
        for (int k = 0; k < q->classes; k++)
            row[k] -= log(sum);
        if (!is_long && i % 4 == 3 && dice_below(3) == 0)
            row[dice_below(q->classes)] = -INFINITY;
    }
}

static bool same(double a, double b) { return is_near(a, b, 1e-10); }

static const char *labels_of(const question *q)
{
    static char text[4 * MOST_LABELS];
    int size = 0;
    snprintf(text, sizeof text, q->n ? " (%d of them)" : " none", q->n);
    for (int k = 0; k < q->n && q->n < 10; k++)
        size += snprintf(text + size, sizeof text - (size_t)size, " %d", q->labels[k]);
    return text;
}

static void hint_of_case(const question *q, const char *name, double got, double want)
{
    if (isnan(got) && q->steps > 50)
        hint("%s is NaN with %d steps, though short cases are right: exp(x) is "
             "infinite above 709, so take the larger of both logarithms out of their "
             "sum",
             name, q->steps);
    if (isnan(got))
        hint("%s is NaN with %d steps and labels%s: if both of two logarithms are "
             "-INFINITY, their difference is NaN. Their sum is then -INFINITY",
             name, q->steps, labels_of(q));
    if (want == -INFINITY && got < -1e3)
        hint("%s is %s for labels without a path: the logarithm of 0 is -INFINITY, not "
             "a large number below 0",
             name, digits(got));
    if (want == -INFINITY)
        hint("%s is %s with %d steps and labels%s, but no path is possible: return "
             "-INFINITY",
             name, digits(got), q->steps, labels_of(q));
    if (q->steps > 50)
        hint("with %d steps and %d labels, %s is %s, not %s: short cases are right. %s",
             q->steps, q->n, name, BOTH(got, want),
             *name == 'b'   ? "Keep all states to the end: one with a low score may "
                              "win. Use types for 600 classes" :
             q->classes > 5 ? "Do your types suffice for 600 classes?" :
             is_near(got, want, 1e-3) ? "Small parts of a sum count too" :
                                        "Add probabilities in logarithms, with the "
                                        "larger one taken out, as in lesson 10");
    if (same((float)got, (float)want) || fabs(got - want) < 1e-5 * (1 + fabs(want)))
        hint("%s is right to about six digits, not to ten: use double, log and exp",
             name);
    if (got == -INFINITY && q->steps < 2 * q->n - 1)
        hint("%s is -INFINITY for labels%s in %d steps, but paths that collapse to "
             "them: %d. Only equal neighbours need a blank between them",
             name, labels_of(q), q->steps, try_all(q, false).n);
    bool zero = false;
    for (int k = 0; k < q->steps * q->classes; k++)
        zero |= q->score[k] == -INFINITY;
    hint("with %d steps, %d classes and labels%s, %s is %s, not %s; number of paths "
         "that collapse to the labels: %d%s",
         q->steps, q->classes, labels_of(q), name, BOTH(got, want), try_all(q, false).n,
         zero ? "; some scores are -INFINITY" : "");
}

static void check_probability(void)
{
    static question q, worst;
    int like[MISTAKES] = { 0 }, wrong = 0, zeros = 0;
    double worst_got = 0, worst_want = 0;
    for (int i = 0; i < CASES + LONG_CASES; i++) {
        bool is_long = i >= CASES;
        ask(&q, is_long ? i - CASES : i, is_long);
        double got = log_probability(q.steps, q.classes, q.score, q.n, q.labels);
        double want = is_long ? walk(&q, RIGHT, false) : try_all(&q, false).p;
        for (int way = L_ONLY_BEST; !is_long && way <= L_TURNED; way++)
            like[way] += same(got, walk(&q, way, way == L_ONLY_BEST));
        zeros += got == 0;
        if (!same(got, want) && wrong++ == 0)
            worst = q, worst_got = got, worst_want = want;
    }
    if (!wrong)
        return;
    if (zeros == CASES + LONG_CASES)
        hint("log_probability is always 0: walk over the states, step by step, and add "
             "the probabilities of the paths");
    for (int way = L_ONLY_BEST; way <= L_TURNED; way++)
        if (like[way] == CASES)
            hint("%s", hints[way]);
    hint_of_case(&worst, "log_probability", worst_got, worst_want);
}

/* ---- best_path ---- */
static reply best_of(const question *q)
{
    reply r = { 0 };
    for (int t = 0; t < q->steps; t++)
        r.path[t] = OLD;
    r.p = best_path(q->steps, q->classes, q->score, q->n, q->labels, r.path);
    return r;
}

static bool same_path(const question *q, const reply *a, const reply *b)
{
    return same(a->p, b->p) && same_ints(a->path, b->path, q->steps);
}

static void hint_of_path(const question *q, const reply *got, const reply *want)
{
    int t = 0, out[MOST_STEPS];
    if (!same(got->p, want->p))
        hint_of_case(q, "best_path", got->p, want->p);
    while (got->path[t] == want->path[t])
        t++;
    if (want->p == -INFINITY)
        hint("no path is possible for labels%s in %d steps, but path[%d] is written: "
             "it must stay as it is",
             labels_of(q), q->steps, t);
    if (got->path[t] == OLD)
        hint("path[%d] is not written: go back from the last state to the first, and "
             "write a class for each step",
             t);
    int n = collapse_with(RIGHT, q->steps, got->path, out);
    if (q->steps > 50)
        hint("with %d steps and %d labels, path[%d] is %d, not %d: short cases are "
             "right. Do your arrays and their types suffice for %d states?",
             q->steps, q->n, t, got->path[t], want->path[t], 2 * q->n + 1);
    if (n != q->n || !same_ints(out, q->labels, n))
        hint("the path does not collapse to the labels%s: with %d steps, path[%d] is "
             "%d, not %d",
             labels_of(q), q->steps, t, got->path[t], want->path[t]);
    hint("the path collapses to the labels%s, but it is not the best: with %d steps, "
         "path[%d] is %d, not %d",
         labels_of(q), q->steps, t, got->path[t], want->path[t]);
}

static void check_best(void)
{
    static question q, worst;
    static reply got, want, worst_got, worst_want;
    int like[MISTAKES] = { 0 }, wrong = 0, zeros = 0;
    for (int i = 0; i < CASES + LONG_CASES; i++) {
        bool is_long = i >= CASES;
        ask(&q, is_long ? i - CASES : i, is_long);
        got = best_of(&q);
        want = best_with(&q, RIGHT);
        if (!is_long) {
            reply all = try_all(&q, true);
            want.p = all.p;
            if (all.n && want.p > -INFINITY)
                memcpy(want.path, all.path, (size_t)q.steps * sizeof *want.path);
        }
        zeros += got.p == 0;
        if (!same_path(&q, &got, &want) && wrong++ == 0)
            worst = q, worst_got = got, worst_want = want;
        for (int way = B_SUM; !is_long && way < MISTAKES; way++) {
            want = best_with(&q, way);
            like[way] += way == B_GREEDY ? same_ints(got.path, want.path, q.steps) :
                         way > B_NOT_LOG ? same(got.p, want.p) :
                                           same_path(&q, &got, &want);
        }
    }
    if (!wrong)
        return;
    if (zeros == CASES + LONG_CASES)
        hint("best_path always returns 0: walk as in log_probability, with the largest "
             "instead of the sum");
    for (int way = B_SUM; way < MISTAKES; way++)
        if (like[way] == CASES)
            hint("%s", hints[way]);
    hint_of_path(&worst, &worst_got, &worst_want);
}

void check(void)
{
    dice_seed(14);
    check_collapse();
    check_probability();
    check_best();
}
