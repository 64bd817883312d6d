/* Lesson 9: reads a text in windows of K steps, and compares outputs and gradients with
 * those of whole sequences. */
#include "weft_plan.h"
#include "weft_plot.h"
#include "common/lesson.h"
#include "given.h"

/* ---- the text and the network ---- */
static text it;

static void make_text(void)
{
    dice_seed(9);
    it.tokens = 0;
    for (int s = 0; s < SEQUENCES; s++) {
        int key = dice_below(4), asked = 0,
            n = SHORTEST + dice_below(LONGEST - SHORTEST + 1);
        it.len[s] = n, it.start[s] = it.tokens;
        for (int t = 0; t < n; t++) {
            int letter = t == 0 || asked ? key : dice_below(8) ? 4 + dice_below(3) : 7;
            it.letter[it.tokens++] = letter;
            asked = letter == 7;
        }
    }
}

typedef struct {
    weft *w;
    weft_module *m;
    weft_rnn *lstm;
    weft_linear *scores;
} network;

/* Opens the forget gates, so that gradients reach far back (lesson 3). */
static network network_open(void)
{
    network n = { .w = lesson_open(9) };
    n.m = weft_module_new(n.w, "net");
    n.lstm = weft_lstm_new(n.m, "lstm",
                           &(weft_rnn_opts){ .input = LETTERS, .hidden = HIDDEN });
    n.scores = weft_linear_new(n.m, "scores",
                               &(weft_linear_opts){ .in = HIDDEN, .out = LETTERS });
    double bias[4 * HIDDEN] = { 0 };
    for (int j = HIDDEN; j < 2 * HIDDEN; j++)
        bias[j] = 5;
    weft_assign_values(weft_find_parameter(n.m, "lstm.bias_hh_l0"), bias, 4 * HIDDEN);
    return n;
}

/* ---- a result: all outputs, and the gradient of the summed loss ---- */
enum { WEIGHTS = 4 * HIDDEN * (LETTERS + HIDDEN + 2) };
enum { OUTPUTS = SEQUENCES * LONGEST * HIDDEN };
typedef struct {
    double y[OUTPUTS], g[WEIGHTS];
    int64_t tape, windows;
} result;

static void learn(network *n, weft_tensor *y, weft_tensor *next)
{
    weft_cross_entropy_opts opts = { .ignore_index = -1 };
    weft_backward(weft_cross_entropy(weft_linear_run(n->scores, y), next, &opts).sum);
}

static void finish(network *n, result *r)
{
    static const char *const names[] = { "weight_ih_l0", "weight_hh_l0", "bias_ih_l0",
                                         "bias_hh_l0" };
    double *to = r->g;
    for (int k = 0; k < 4; k++) {
        char path[64];
        snprintf(path, sizeof path, "lstm.%s", names[k]);
        weft_tensor *g = weft_grad(weft_find_parameter(n->m, path));
        weft_read(g, to, (size_t)weft_numel(g) * sizeof *to);
        to += weft_numel(g);
    }
    lesson_close(n->w);
}

/* Returns the letter that follows token t of sequence s; -1: none. */
static int32_t after(int s, int t)
{
    return t + 1 < it.len[s] ? it.letter[it.start[s] + t + 1] : -1;
}

static void whole(result *r)
{
    network n = network_open();
    int32_t next[SEQUENCES * LONGEST];
    for (int s = 0; s < SEQUENCES; s++)
        for (int t = 0; t < it.len[s]; t++)
            next[it.start[s] + t] = after(s, t);
    weft_lengths lengths = { .n = SEQUENCES, .len = it.len };
    weft_tensor *x = weft_one_hot(weft_ragged_ints(n.w, it.letter, &lengths), LETTERS);
    weft_tensor *y = weft_rnn_run(n.lstm, x, WEFT_ZERO_STATE).y;
    weft_read_sequences(y, r->y, (size_t)(it.tokens * HIDDEN) * sizeof *r->y);
    r->windows = 1;
    learn(&n, y, weft_ragged_ints(n.w, next, &lengths));
    r->tape = weft_usage_of(n.w).tape;
    finish(&n, r);
}

/* ---- by hand ---- */
enum { MOST = 200 };
typedef struct {
    int32_t letter[MOST * SLOTS],
        next[SLOTS * MOST]; /* [steps, slots]; [slots, steps] */
    bool begins[MOST * SLOTS];
} grid;

static weft_plan make_plan(int steps)
{
    weft_plan plan = { 0 };
    weft_plan_opts opts = { .slots = SLOTS, .window = steps };
    if (weft_plan_make(weft_planner_named("streams"), it.len, SEQUENCES, &opts,
                       &plan)) {
        printf("%s\n", weft_plan_message());
        exit(1);
    }
    return plan;
}

static void grid_fill(grid *g, const weft_plan *plan, int64_t b, int steps)
{
    for (int k = 0; k < steps * SLOTS; k++)
        g->letter[k] = g->next[k] = -1, g->begins[k] = false;
    for (int64_t i = 0; i < plan->batch[b].n; i++) {
        const weft_segment *seg = plan->segment + plan->batch[b].first + i;
        int s = (int)seg->sequence;
        for (int t = 0; t < seg->length; t++) {
            g->letter[t * SLOTS + seg->row] = it.letter[it.start[s] + seg->offset + t];
            g->next[seg->row * steps + t] = after(s, seg->offset + t);
        }
        g->begins[seg->row] = seg->offset == 0;
    }
}

/* Copies the outputs of a window to r, in the order of the text. */
static void keep_outputs(const weft_plan *plan, int64_t b, int steps, weft_tensor *y,
                         result *r)
{
    static double all[SLOTS * MOST * HIDDEN];
    weft_read(y, all, (size_t)(SLOTS * steps * HIDDEN) * sizeof *all);
    for (int64_t i = 0; i < plan->batch[b].n; i++) {
        const weft_segment *seg = plan->segment + plan->batch[b].first + i;
        memcpy(r->y + (it.start[seg->sequence] + seg->offset) * HIDDEN,
               all + seg->row * steps * HIDDEN,
               (size_t)(seg->length * HIDDEN) * sizeof *all);
    }
}

static weft_state read_grid(network *n, const grid *g, int steps, weft_state from,
                            weft_tensor **y)
{
    weft_tensor *x[MOST], *each[MOST];
    for (int t = 0; t < steps; t++)
        x[t] = weft_one_hot(weft_ints(n->w, g->letter + t * SLOTS, WEFT_SHAPE(SLOTS)),
                            LETTERS);
    window in = { n->w, n->lstm, steps, SLOTS, x, g->begins, from };
    weft_state last = read_window(&in, each);
    *y = weft_stack(each, steps, 1);
    return last;
}

/* carry false: every window begins with zeros. */
static void by_hand(int steps, bool carry, result *r)
{
    static grid g;
    network n = network_open();
    weft_plan plan = make_plan(steps);
    weft_tensor *h = weft_buffer(n.m, "h", WEFT_SHAPE(1, SLOTS, HIDDEN));
    weft_tensor *c = weft_buffer(n.m, "c", WEFT_SHAPE(1, SLOTS, HIDDEN)), *y;
    r->windows = plan.batches, r->tape = 0;
    for (int64_t b = 0; b < plan.batches; b++) {
        grid_fill(&g, &plan, b, steps);
        weft_state from = { weft_scale(h, 1), weft_scale(c, 1) };
        weft_state last = read_grid(&n, &g, steps, from, &y);
        keep_outputs(&plan, b, steps, y, r);
        learn(&n, y, weft_ints(n.w, g.next, WEFT_SHAPE(SLOTS, steps)));
        int64_t tape = weft_usage_of(n.w).tape;
        r->tape = tape > r->tape ? tape : r->tape;
        if (carry)
            weft_assign(h, last.h), weft_assign(c, last.c);
        weft_clear(n.w);
    }
    weft_plan_free(&plan);
    finish(&n, r);
}

/* ---- by weft ---- */
static void by_weft(int steps, result *r)
{
    network n = network_open();
    weft_plan plan = make_plan(steps);
    weft_carried *kept = weft_carried_new(n.m, "kept", n.lstm, &plan);
    for (int64_t b = 0; b < plan.batches; b++) {
        int32_t now[SLOTS * MOST], next[SLOTS * MOST];
        weft_plan_step s = weft_plan_step_of(n.w, &plan, b);
        for (int64_t i = 0, k = 0; i < s.lengths.n; i++)
            for (int t = 0; t < s.lengths.len[i]; t++, k++) {
                int of = (int)s.lengths.id[i], at = s.lengths.offset[i] + t;
                now[k] = it.letter[it.start[of] + at], next[k] = after(of, at);
            }
        weft_tensor *x = weft_one_hot(weft_ragged_ints(n.w, now, &s.lengths), LETTERS);
        learn(&n, weft_rnn_run_plan(n.lstm, x, &s, kept).y,
              weft_ragged_ints(n.w, next, &s.lengths));
        weft_clear(n.w);
    }
    weft_plan_free(&plan);
    finish(&n, r);
}

/* ---- the table ---- */
static const int windows[] = { 5, 10, 25, 50, 100, 180 };
enum { WINDOWS = sizeof windows / sizeof *windows };

static double product(const double *a, const double *b) { return dot(a, b, WEIGHTS); }
static double cosine(const result *a, const result *b)
{
    return product(a->g, b->g) / sqrt(product(a->g, a->g) * product(b->g, b->g));
}
static double distance(const result *a, const result *b)
{
    double sum = 0;
    for (int k = 0; k < WEIGHTS; k++)
        sum += (a->g[k] - b->g[k]) * (a->g[k] - b->g[k]);
    return sqrt(sum / product(b->g, b->g));
}
static int differ(const result *a, const result *b)
{
    int n = 0;
    for (int k = 0; k < it.tokens * HIDDEN; k++)
        n += !is(a->y[k], b->y[k]);
    return n;
}

static result all, mine, zeros, library[WINDOWS];

static void print_text(void)
{
    printf("sequence 1: ");
    for (int t = 0; t < 60 && t < it.len[0]; t++)
        putchar(alphabet[it.letter[t]]);
    printf("..\n%d sequences, %d letters, %d numbers of output; %d slots\n\n",
           SEQUENCES, it.tokens, it.tokens * HIDDEN, SLOTS);
}

void remember(void)
{
    if (all.windows)
        return;
    make_text();
    whole(&all);
    for (int i = 0; i < WINDOWS; i++)
        by_weft(windows[i], library + i);
}

void show(void)
{
    remember();
    print_text();
    printf("              outputs that differ    gradient against the whole one\n");
    printf("steps windows carried  from zeros    cosine    error  as weft's    tape\n");
    for (int i = 0; i < WINDOWS; i++) {
        by_hand(windows[i], true, &mine), by_hand(windows[i], false, &zeros);
        printf("%5d %7d %7d %11d %9s %8s %10s %7d\n", windows[i], (int)mine.windows,
               differ(&mine, &all), differ(&zeros, &all), digits(cosine(&mine, &all)),
               digits(distance(&mine, &all)),
               distance(&mine, library + i) < 1e-9 ? "yes" : "no", (int)mine.tape);
    }
    printf("the tape of all sequences in one run of weft's layer: %d entries\n",
           (int)all.tape);
}

/* ---- the picture ---- */
enum { SHOWN = 25, POINTS = 3000 };
typedef struct {
    double x[POINTS], y[POINTS], low[POINTS];
    int n;
} marks;

/* Adds a bar from x to end, between low and high, and a gap after it. */
static void mark(marks *m, double x, double end, double low, double high)
{
    const double at[] = { x, end, end }, top[] = { high, high, NAN };
    for (int k = 0; k < 3; k++, m->n++)
        m->x[m->n] = at[k], m->y[m->n] = top[k], m->low[m->n] = low;
}

/* Fills m[0] with odd sequences, m[1] with even ones, m[2] with carried states. */
static void mark_slots(marks m[3])
{
    weft_plan plan = make_plan(SHOWN);
    for (int64_t b = 0; b < plan.batches; b++)
        for (int64_t i = 0; i < plan.batch[b].n; i++) {
            const weft_segment *seg = plan.segment + plan.batch[b].first + i;
            double row = 1 + (double)seg->row, from = (double)(b * SHOWN + seg->column);
            mark(&m[seg->sequence % 2], from, from + seg->length, row - .3, row + .3);
            if (seg->offset) {
                double *x = m[2].x + m[2].n, *y = m[2].y + m[2].n;
                x[0] = x[1] = x[2] = from, y[0] = row - .45, y[1] = row + .45,
                y[2] = NAN;
                m[2].n += 3;
            }
        }
    weft_plan_free(&plan);
}

static weft_curve curve_of(const char *name, const marks *m, const double *low)
{
    return (weft_curve){ .name = name, .n = m->n, .x = m->x, .y = m->y, .low = low };
}

weft_status draw(const char *path)
{
    static marks m[3];
    double steps[WINDOWS], cosines[WINDOWS], errors[WINDOWS];
    remember();
    for (int i = 0; i < WINDOWS; i++) {
        by_hand(windows[i], true, &mine);
        steps[i] = windows[i], cosines[i] = cosine(&mine, &all),
        errors[i] = distance(&mine, &all);
        cosines[i] = round(cosines[i] * 1e6) / 1e6,
        errors[i] = round(errors[i] * 1e6) / 1e6;
    }
    mark_slots(m);
    const weft_curve slots[] = { curve_of("sequences 1, 3, 5 ..", &m[0], NULL),
                                 curve_of(NULL, &m[0], m[0].low),
                                 curve_of("sequences 2, 4, 6 ..", &m[1], NULL),
                                 curve_of(NULL, &m[1], m[1].low),
                                 curve_of("cut: h and c are carried", &m[2], NULL) };
    const weft_curve lost[] = {
        { .name = "cosine", .n = WINDOWS, .x = steps, .y = cosines },
        { .name = "relative error", .n = WINDOWS, .x = steps, .y = errors }
    };
    const weft_chart charts[] = {
        { .title = "8 slots, windows of 25 steps",
          .x_label = "step",
          .left = "slot",
          .curves = slots,
          .n = 5 },
        { .title = "The gradient of windows against that of whole sequences",
          .x_label = "steps of a window",
          .x_base = 2,
          .curves = lost,
          .n = 2 },
    };
    return weft_plot_lines(path, "A text in windows", charts, 2, 2);
}
