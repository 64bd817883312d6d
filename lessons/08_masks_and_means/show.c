/* Lesson 8: prints three means of one batch, with and without pads, and the gradient of
 * two batches. */
#include "weft_op.h"
#include "weft_plot.h"
#include "common/lesson.h"
#include "given.h"

/* ---- a network over batches ---- */
void task_fill(task *t, int other)
{
    int all = sum_of(t->n, t->len), usual = sum_of(t->n - other, t->len);
    dice_fill(t->x, all * INPUTS);
    for (int k = 0; k < all; k++)
        t->y[k] = (k < usual ? 1 : -2) * t->x[k * INPUTS] + .5 * t->x[k * INPUTS + 1] +
                  .1 * dice();
}

/* Computes the loss of batch i; -1: of all batches as one. */
static weft_loss loss_of(const batches *b, int i)
{
    const task *t = b->given;
    double x[MOST_TOKENS * INPUTS], y[MOST_TOKENS];
    int32_t len[MOST_SEQUENCES];
    int n = 0, tokens = 0;
    for (int s = 0, at = 0; s < t->n; at += t->len[s++]) {
        if (i >= 0 && t->batch[s] != i)
            continue;
        memcpy(x + tokens * INPUTS, t->x + at * INPUTS,
               (size_t)(t->len[s] * INPUTS) * sizeof *x);
        memcpy(y + tokens, t->y + at, (size_t)t->len[s] * sizeof *y);
        tokens += t->len[s], len[n++] = t->len[s];
    }
    weft_lengths lengths = { .n = n, .len = len };
    weft_tensor *weight = weft_find_parameter(b->net, "weight"),
                *bias = weft_find_parameter(b->net, "bias");
    weft_tensor *said = weft_matmul(weft_ragged(b->w, x, INPUTS, &lengths), weight);
    return weft_mse_loss(weft_add(said, bias), weft_ragged(b->w, y, 1, &lengths), NULL);
}

void network_open(network *it, const task *t)
{
    const weft_init half = { .kind = WEFT_INIT_CONSTANT, .a = .5 };
    *it = (network){
        .b = { .w = lesson_open(1), .n = t->batches, .loss = loss_of, .given = t }
    };
    it->b.net = weft_module_new(it->b.w, "net");
    it->b.sequences = it->sequences, it->b.longest = it->longest;
    weft_parameter(it->b.net, "weight", WEFT_SHAPE(INPUTS, 1), half);
    weft_parameter(it->b.net, "bias", WEFT_SHAPE(1), half);
    for (int s = 0; s < t->n; s++) {
        int *longest = it->longest + t->batch[s];
        it->sequences[t->batch[s]]++;
        *longest = t->len[s] > *longest ? t->len[s] : *longest;
    }
    lesson_ok(it->b.w);
}

void network_gradient(const network *it, double *g)
{
    weft_read(weft_grad(weft_find_parameter(it->b.net, "weight")), g,
              INPUTS * sizeof *g);
    weft_read(weft_grad(weft_find_parameter(it->b.net, "bias")), g + INPUTS, sizeof *g);
}

double sum_gradient(const task *t, int batch, double *g)
{
    network it;
    network_open(&it, t);
    weft_loss l = loss_of(&it.b, batch);
    weft_backward(l.sum);
    double tokens = weft_item(l.weight);
    network_gradient(&it, g);
    lesson_close(it.b.w);
    return tokens;
}

/* ---- three means ---- */
enum { SEQUENCES = 4, TOKENS = 11, BATCHES = 2 };
static const int lengths[] = { 5, 3, 1, 2 }, in_batch[] = { 0, 0, 1, 1 };
static const double logit[] = { .5, -1, 2, .2, -.3, 1, .4, -2, -.5, .8, 1.5 };
static const double target[] = { 1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0 };
static const char *const names[MEANS] = { "tokens", "sequences", "batches" };

/* Computes the loss of sequences from .. to - 1. mask: the weight of each token. */
static weft_loss loss_between(weft_tensor *z, int from, int to, const double *mask)
{
    weft *w = weft_context_of(z);
    int32_t place[TOKENS], len[SEQUENCES];
    int first = sum_of(from, lengths), n = sum_of(to, lengths) - first;
    for (int k = 0; k < n; k++)
        place[k] = first + k;
    for (int s = from; s < to; s++)
        len[s - from] = lengths[s];
    weft_lengths l = { .n = to - from, .len = len };
    weft_tensor *right = weft_ragged(w, target + first, 1, &l);
    weft_loss_opts opts = { .mask = weft_ragged(w, mask + first, 1, &l) };
    return weft_bce_with_logits(weft_index_select(z, weft_ragged_ints(w, place, &l)),
                                right, &opts);
}

/* Computes the mean and its gradient by each token's logit, with weft. */
static double by_weft(mean_of which, double *gradient)
{
    weft *w = lesson_open(1);
    weft_tensor *z = weft_reals(w, logit, WEFT_SHAPE(TOKENS, 1)), *loss, *dz;
    double mask[TOKENS];
    for (int s = 0, k = 0; s < SEQUENCES; s++)
        for (int t = 0; t < lengths[s]; t++)
            mask[k++] = which == OF_SEQUENCES ? 1. / lengths[s] : 1;
    if (which == OF_BATCHES)
        loss = weft_scale(weft_add(weft_mean_loss(loss_between(z, 0, 2, mask)),
                                   weft_mean_loss(loss_between(z, 2, 4, mask))),
                          1. / BATCHES);
    else
        loss = weft_mean_loss(loss_between(z, 0, SEQUENCES, mask));
    weft_gradients(loss, WEFT_LIST(z), &dz);
    double value = weft_item(loss);
    weft_read(dz, gradient, TOKENS * sizeof *gradient);
    lesson_close(w);
    return value;
}

static void means_by_hand(double weight[MEANS][TOKENS])
{
    for (int m = 0; m < MEANS; m++)
        weigh((mean_of)m, SEQUENCES, lengths, BATCHES, in_batch, weight[m]);
}

static void show_tokens(double weight[MEANS][TOKENS])
{
    printf("                          by weft: the gradient by the logit, mean of\n");
    printf("batch sequence token   p - y   tokens sequences  batches\n");
    double g[MEANS][TOKENS], value[MEANS], mine[MEANS] = { 0 };
    bool same = true;
    for (int m = 0; m < MEANS; m++)
        value[m] = by_weft((mean_of)m, g[m]);
    for (int s = 0, k = 0; s < SEQUENCES; s++)
        for (int t = 0; t < lengths[s]; t++, k++) {
            double p = 1 / (1 + exp(-logit[k])),
                   loss = target[k] ? -log(p) : -log(1 - p);
            printf("%5d %8d %5d %7s %8s %9s %8s\n", in_batch[s] + 1, s + 1, t + 1,
                   digits(p - target[k]), digits(g[0][k]), digits(g[1][k]),
                   digits(g[2][k]));
            for (int m = 0; m < MEANS; m++) {
                double hand = weight[m][k] * (p - target[k]);
                mine[m] += weight[m][k] * loss;
                same &= is(hand, g[m][k]);
            }
        }
    printf("\nmean of   by weft  by hand\n");
    for (int m = 0; m < MEANS; m++)
        printf("%-9s %7s %8s\n", names[m], digits(value[m]), digits(mine[m]));
    printf("your weights times p - y are weft's gradients: %s\n\n",
           same ? "yes" : "no");
}

/* ---- pads ---- */
enum { CELLS = 20, LONGEST = 5 };

/* Computes the loss of the four sequences, padded to [4, 5, 1] with `fill`. */
static weft_loss padded_loss(weft *w, double fill, bool masked)
{
    int32_t len[SEQUENCES];
    for (int s = 0; s < SEQUENCES; s++)
        len[s] = lengths[s];
    weft_lengths l = { .n = SEQUENCES, .len = len };
    weft_tensor *z = weft_pad_packed_sequence(weft_ragged(w, logit, 1, &l), LONGEST,
                                              fill, WEFT_ALIGN_LEFT);
    weft_tensor *y = weft_pad_packed_sequence(weft_ragged(w, target, 1, &l), LONGEST, 0,
                                              WEFT_ALIGN_LEFT);
    weft_tensor *mask = weft_reshape(weft_length_mask(w, &l, LONGEST, WEFT_ALIGN_LEFT),
                                     WEFT_SHAPE(SEQUENCES, LONGEST, 1));
    return weft_bce_with_logits(z, y,
                                &(weft_loss_opts){ .mask = masked ? mask : NULL });
}

static void show_pads(void)
{
    weft *w = lesson_open(1);
    weft_loss without = padded_loss(w, 0, false), with = padded_loss(w, NAN, true);
    printf("the same batch padded: %d cells, %d of them tokens\n", CELLS, TOKENS);
    printf("without a mask, pads of 0:            %s\n",
           digits(weft_item(weft_mean_loss(without))));
    printf("with a mask, but divided by cells:    %s\n",
           digits(weft_item(with.sum) / CELLS));
    printf("with a mask, divided by its sum, %s:  %s, though the pads are NaN\n\n",
           digits(weft_item(with.weight)), digits(weft_item(weft_mean_loss(with))));
    lesson_close(w);
}

/* ---- two batches, one update ---- */
enum { MANY = 100, FEW = 3 };
static const int two_lengths[] = { MANY, FEW }, two_batches[] = { 0, 1 };

static void print_gradient(const char *name, const double *g)
{
    printf("%-24s %8s %8s %8s\n", name, digits(g[0]), digits(g[1]), digits(g[2]));
}

static void show_two(void)
{
    static task t = { .n = 2, .batches = 2, .len = two_lengths, .batch = two_batches };
    double whole[WEIGHTS], part[2][WEIGHTS], mean[WEIGHTS], mine[WEIGHTS],
        weight[MANY + FEW];
    dice_seed(8);
    task_fill(&t, 1);
    double all = sum_gradient(&t, -1, whole);
    sum_gradient(&t, 0, part[0]), sum_gradient(&t, 1, part[1]);
    for (int k = 0; k < WEIGHTS; k++)
        whole[k] /= all, mean[k] = (part[0][k] / MANY + part[1][k] / FEW) / 2;
    network it;
    network_open(&it, &t);
    accumulate(&it.b);
    network_gradient(&it, mine);
    lesson_close(it.b.w);
    weigh(OF_BATCHES, 2, two_lengths, 2, two_batches, weight);
    printf("two batches, %d tokens and %d\n", MANY, FEW);
    printf("gradient by              weight 1 weight 2     bias\n");
    print_gradient("one batch of both", whole);
    print_gradient("the mean of both means", mean);
    print_gradient("what you accumulate", mine);
    printf("in the mean of means a token of the small batch weighs %s times as much as "
           "one of the large\n",
           digits(weight[MANY] / weight[0]));
}

void show(void)
{
    double weight[MEANS][TOKENS];
    means_by_hand(weight);
    show_tokens(weight);
    show_pads();
    show_two();
}

/* ---- the picture: a bar for each token ---- */
enum { BAR = 5 };
#define HIGHEST .25 /* an invisible point here gives all charts the same scale */
typedef struct {
    double x[BAR * MANY + 1], y[BAR * MANY + 1], low[BAR * MANY + 1];
    int n;
} bars;

static void bar(bars *b, double at, double width, double height)
{
    const double x[BAR] = { at, at, at + width, at + width, at + width };
    for (int k = 0; k < BAR; k++, b->n++) {
        b->x[b->n] = x[k], b->low[b->n] = 0;
        b->y[b->n] = k == 0 || k == 3 ? 0 : k == 4 ? NAN : height;
    }
}

weft_status draw(const char *path)
{
    static const char *const titles[MEANS] = { "mean of all 11 tokens",
                                               "mean of the means of 4 sequences",
                                               "mean of the means of 2 batches" };
    static bars b[MEANS + 1][2];
    weft_curve curves[MEANS + 1][4];
    weft_chart charts[MEANS + 1];
    double weight[MEANS][TOKENS], two[MANY + FEW];
    means_by_hand(weight);
    for (int m = 0; m < MEANS; m++) {
        for (int s = 0, k = 0; s < SEQUENCES; s++)
            for (int t = 0; t < lengths[s]; t++, k++)
                bar(&b[m][in_batch[s]], k + .05, t + 1 < lengths[s] ? .9 : .55,
                    weight[m][k]);
        charts[m] = (weft_chart){ .title = titles[m],
                                  .x_label = "tokens, sequence after sequence",
                                  .left = "weight in the gradient" };
    }
    weigh(OF_BATCHES, 2, two_lengths, 2, two_batches, two);
    for (int k = 0; k < MANY + FEW; k++)
        bar(&b[MEANS][k >= MANY], k, 1, two[k]);
    charts[MEANS] = (weft_chart){ .title = "mean of means of 100 tokens and 3",
                                  .x_label = "tokens",
                                  .left = "weight in the gradient" };
    for (int m = 0; m <= MEANS; m++) {
        for (int i = 0; i < 2; i++) {
            bars *of = &b[m][i];
            of->x[of->n] = of->x[0], of->y[of->n] = of->low[of->n] = HIGHEST;
            weft_curve line = {
                .name = i ? "batch 2" : "batch 1", .n = of->n, .x = of->x, .y = of->y
            };
            curves[m][2 * i] = curves[m][2 * i + 1] = line;
            curves[m][2 * i + 1].name = "", curves[m][2 * i + 1].low = of->low,
                              curves[m][2 * i + 1].n++;
        }
        charts[m].curves = curves[m], charts[m].n = 4;
    }
    return weft_plot_lines(path, "The weight of each token", charts, MEANS + 1, 2);
}
