/* test_shards.c - tests shards on one rank: the summation tree, the assignment of sequences, results against
 * whole batches, refused calls. tests/scripts/test_parallel.sh tests ranks. */
#include <unistd.h>
#include "../check.h"
#include "parallel/parallel.h"

/* ---- the tree ---- */
static bool is_branch(weft__branch tree, weft__branch b)
{
    while (tree.end - tree.from > 1 && (tree.from != b.from || tree.end != b.end)) {
        int middle = weft__tree_middle(tree), left = middle - tree.from, n = tree.end - tree.from;
        cr_assert(left > 0 && (left & (left - 1)) == 0 && left < n && 2 * left >= n);
        if (b.from >= middle)
            tree.from = middle;
        else
            tree.end = middle;
    }
    return tree.from == b.from && tree.end == b.end;
}

Test(shards, ranges_split_into_branches_of_the_tree)
{
    for (int n = 1; n <= 40; n++)
        for (int from = 0; from < n; from++)
            for (int end = from + 1; end <= n; end++) {
                weft__branch out[WEFT__BRANCHES];
                int k = weft__tree_parts(n, (weft__branch){ from, end }, out), at = from;
                for (int i = 0; i < k; i++) {
                    cr_assert_eq(out[i].from, at);
                    cr_assert(is_branch((weft__branch){ 0, n }, out[i]), "%d .. %d of %d", out[i].from,
                              out[i].end, n);
                    at = out[i].end;
                }
                cr_assert_eq(at, end);
            }
}

Test(shards, ranks_have_consecutive_shards)
{
    for (int shards = 1; shards <= 30; shards++)
        for (int ranks = 1, at = 0; ranks <= shards; ranks++, at = 0) {
            for (int q = 0; q < ranks; q++) {
                weft__branch b = weft__shards_of(shards, q, ranks);
                cr_assert(b.from == at && b.end > at);
                at = b.end;
            }
            cr_assert_eq(at, shards);
        }
}

/* ---- assignment of sequences ---- */
enum { MANY = 60 };

static void cut_slowly(int n, const int32_t *len, int shards, int *of)    /* shard of each position */
{
    int64_t load[MANY] = { 0 };
    bool done[MANY] = { 0 };
    for (int k = 0; k < n; k++) {
        int longest = -1, least = 0;
        for (int i = 0; i < n; i++)
            if (!done[i] && (longest < 0 || len[i] > len[longest]))
                longest = i;
        for (int s = 1; s < shards; s++)
            least = load[s] < load[least] ? s : least;
        of[longest] = least, done[longest] = true;
        load[least] += len[longest] ? len[longest] : 1;
    }
}

Test(shards, longest_sequence_goes_to_the_emptiest_shard)
{
    weft_stream *s = weft_stream_new(3, "lengths");
    for (int round = 0; round < 300; round++) {
        int n = (int)weft_stream_below(s, MANY), shards = 1 + (int)weft_stream_below(s, 12), of[MANY];
        int32_t len[MANY], index[MANY], order[MANY], by_place[MANY], scratch[2 * MANY];
        int64_t start[MANY];
        weft__bin bin[MANY];
        weft_stream_permutation(s, n, index);
        for (int i = 0; i < n; i++)
            len[i] = (int32_t)weft_stream_below(s, 9);
        for (int i = 0; i < n; i++)
            by_place[i] = len[index[i]];
        cut_slowly(n, by_place, shards, of);
        weft__cut(n, index, len, shards, order, start, bin, scratch);
        cr_assert(start[0] == 0 && start[shards] == n);
        for (int k = 0; k < shards; k++)
            for (int64_t i = start[k]; i < start[k + 1]; i++) {
                cr_assert(i == start[k] || order[i] > order[i - 1]);
                cr_assert_eq(of[order[i]], k, "place %d of %d in %d shards", order[i], n, shards);
            }
    }
    weft_stream_free(s);
}

/* ---- shards against a whole batch ---- */
enum { N = 11, WIDTH = 5, CLASSES = 4, TOKENS = 66 };
/* Runs a batch of N sequences shard by shard. */
#define FOR_PARTS(p, index, part)                                                  \
    for (weft_part part = (weft_parallel_begin(p, index, N), (weft_part){ 0 }); \
         weft_parallel_next(p, &part);)

typedef struct { weft *w; weft_module *m; weft_rnn *rnn; weft_linear *head, *rare; weft_parallel *p; } model;

static int32_t lengths[N], classes[N][N];
static weft_real rows[N][N][WIDTH];

static model new_model(int shards)
{
    model x = { .w = open_on(WEFT_CPU) };
    x.m = weft_module_new(x.w, "net");
    x.rnn = weft_gru_new(x.m, "rnn", &(weft_rnn_opts){ .input = WIDTH, .hidden = 6 });
    x.head = weft_linear_new(x.m, "head", &(weft_linear_opts){ .in = 6, .out = CLASSES });
    x.rare = weft_linear_new(x.m, "rare", &(weft_linear_opts){ .in = 6, .out = CLASSES });
    for (int i = 0; i < N; i++) {
        lengths[i] = (i * 5 + 2) % N + (i == 3 ? 0 : 1);
        for (int t = 0; t < lengths[i]; t++) {
            classes[i][t] = (i + t * t) % CLASSES;
            for (int k = 0; k < WIDTH; k++)
                rows[i][t][k] = (weft_real)((i * 13 + t * 7 + k * 3) % 11 - 5) / 4;
        }
    }
    if (shards)
        x.p = weft_parallel_new(x.m, &(weft_parallel_opts){ .shards = shards, .n = N, .len = lengths });
    return x;
}

static weft_tensor *input(model *x, int64_t n, const int32_t *index, weft_tensor **target)
{
    static weft_real in[N * N * WIDTH];
    static int32_t out[N * N], len[N];
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        int s = index ? index[i] : (int)i;
        len[i] = lengths[s];
        for (int t = 0; t < len[i]; t++, at++) {
            memcpy(in + at * WIDTH, rows[s][t], sizeof rows[s][t]);
            out[at] = classes[s][t];
        }
    }
    weft_lengths l = { .n = n, .len = len };
    *target = weft_ragged_ints(x->w, out, &l);
    return weft_ragged(x->w, in, WIDTH, &l);
}

static weft_loss loss_of(model *x, int64_t n, const int32_t *index, bool rare)
{
    weft_tensor *target, *h = weft_rnn_run(x->rnn, input(x, n, index, &target), WEFT_ZERO_STATE).y;
    return weft_cross_entropy(weft_linear_run(rare ? x->rare : x->head, h), target, NULL);
}

static int64_t gradient(model *x, weft_real *out)
{
    weft_tensor *g = weft_flat_gradient(x->m);
    OK(x->w);
    int64_t n = weft_numel(g);
    weft_read(g, out, (size_t)n * sizeof *out);
    weft_clear(x->w);
    return n;
}

static void shard_after_shard(model *x, const int32_t *index)
{
    FOR_PARTS(x->p, index, part)
        weft_parallel_add(x->p, loss_of(x, part.n, part.index, false));
}

enum { NUMBERS = 1000 };
static double farthest(const weft_real *a, const weft_real *b, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

Test(shards, gradients_match_the_whole_batch)
{
    static const int many[] = { 1, 2, 3, 5, 8, 16 };
    static weft_real whole[NUMBERS], parts[NUMBERS];
    static const int32_t index[N] = { 4, 0, 9, 3, 1, 10, 2, 8, 7, 5, 6 };
    model x = new_model(0);
    weft_tensor *mean = weft_mean_loss(loss_of(&x, N, index, false));
    double loss = weft_item(mean);
    weft_backward(mean);
    int64_t n = gradient(&x, whole);
    CLEAN(x.w);
    for (int i = 0; i < COUNT(many); i++) {
        x = new_model(many[i]);
        for (int again = 0; again < 2; again++) {
            shard_after_shard(&x, index);
            cr_assert_eq(gradient(&x, parts), n);
            double off = farthest(whole, parts, n);
            cr_assert(many[i] == 1 ? off == 0 : off < (sizeof(weft_real) == 8 ? 1e-14 : 1e-6),
                      "%d shards: %g", many[i], off);
            cr_assert(fabs(weft_parallel_mean(x.p) - loss) < 1e-6);
        }
        CLEAN(x.w);
    }
}

/* ---- masks and streams ---- */
Test(shards, masks_match_the_whole_batch)
{
    static weft_real whole[TOKENS], some[TOKENS], plain[N], few[N];
    model x = new_model(4);
    static const int32_t index[N] = { 4, 0, 9, 3, 1, 10, 2, 8, 7, 5, 6 };
    weft_tensor *target;
    input(&x, N, index, &target);
    int64_t first[N + 1] = { 0 };
    for (int i = 0; i < N; i++)
        first[i + 1] = first[i] + lengths[index[i]];
    weft_tensor *ones = weft_add(weft_mul(weft_to_reals(target), weft_scalar(x.w, 0)), weft_scalar(x.w, 1));
    x.w->random.draw = 5;
    weft_read(weft_to_layout(weft_dropout(ones, .5, "drop", false), WEFT_CONCAT), whole,
              sizeof *whole * (size_t)first[N]);
    weft_read(weft_dropout(weft_full(x.w, 1, WEFT_SHAPE(N)), .5, "plain", false), plain, sizeof plain);
    weft_clear(x.w);
    x.w->random.draw = 5;
    FOR_PARTS(x.p, index, part) {
        input(&x, part.n, part.index, &target);
        ones = weft_add(weft_mul(weft_to_reals(target), weft_scalar(x.w, 0)), weft_scalar(x.w, 1));
        weft_tensor *y = weft_to_layout(weft_dropout(ones, .5, "drop", false), WEFT_CONCAT);
        weft_read(y, some, sizeof *some * (size_t)weft_numel(y));
        weft_read(weft_dropout(weft_full(x.w, 1, WEFT_SHAPE(part.n)), .5, "plain", false), few,
                  sizeof *few * (size_t)part.n);
        int64_t at = 0;
        for (int64_t i = 0; i < part.n; i++) {
            cr_assert_eq(few[i], plain[part.place[i]]);
            for (int t = 0; t < lengths[part.index[i]]; t++)
                cr_assert_eq(some[at++], whole[first[part.place[i]] + t]);
        }
        weft_parallel_add(x.p, loss_of(&x, part.n, part.index, false));
    }
    OK(x.w);
    cr_assert_eq(x.w->random.draw, 6);
    CLEAN(x.w);
}

Test(shards, streams_are_independent_between_shards)
{
    uint64_t first[8][4], next;
    for (int round = 0; round < 2; round++) {
        model x = new_model(8);
        weft_stream *s = weft_stream_of(x.w, "coin");
        weft_stream_next(s);
        FOR_PARTS(x.p, NULL, part) {
            for (int k = 0; k < 4; k++) {
                uint64_t draw = weft_stream_next(k < 2 ? s : weft_stream_of(x.w, "made inside"));
                cr_assert(!round || draw == first[part.shard][k]);
                cr_assert(part.shard == 0 || draw != first[0][k]);
                first[part.shard][k] = draw;
            }
            if (round && part.shard == 3)
                weft_stream_next(s);             /* an extra draw does not affect other shards */
            weft_parallel_add(x.p, loss_of(&x, part.n, part.index, false));
        }
        cr_assert(!round || weft_stream_next(s) == next);
        next = round ? 0 : weft_stream_next(s);
        CLEAN(x.w);
    }
}

/* Also if the program does not call weft_clear. Each update has new masks. */
Test(shards, one_shard_matches_a_plain_loop)
{
    static weft_real plain[4][NUMBERS], shard[NUMBERS];
    int64_t n = 0;
    for (int how = 0; how < 3; how++) {
        model x = new_model(how ? 1 : 0);
        for (int k = 0; k < 4; k++) {
            weft_part all = { 0, N, NULL, NULL };
            if (how)
                weft_parallel_begin(x.p, NULL, N);
            for (bool more = true; more && (!how || weft_parallel_next(x.p, &all)); more = how) {
                weft_tensor *target, *in = input(&x, all.n, all.index, &target);
                weft_tensor *h = weft_rnn_run(x.rnn, weft_dropout(in, .5, "drop", false), WEFT_ZERO_STATE).y;
                weft_loss loss = weft_cross_entropy(weft_linear_run(x.head, h), target, NULL);
                if (how)
                    weft_parallel_add(x.p, loss);
                else
                    weft_backward(weft_mean_loss(loss));
            }
            weft_real *to = how ? shard : plain[k];
            weft_tensor *g = weft_flat_gradient(x.m);
            n = weft_numel(g);
            weft_read(g, to, (size_t)n * sizeof *to);
            cr_assert(how == 0 || farthest(plain[k], shard, n) == 0, "update %d", k);
            cr_assert(how || k == 0 || farthest(plain[k - 1], plain[k], n) > 0);
            weft_zero_grad(x.m);
            if (how < 2)
                weft_clear(x.w);
        }
        CLEAN(x.w);
    }
}

/* ---- sums, evaluation, parameters used by some shards ---- */
Test(shards, values_are_summed_without_gradients)
{
    static weft_real before[NUMBERS], after[NUMBERS];
    model x = new_model(3);
    shard_after_shard(&x, NULL);
    int64_t n = gradient(&x, before);
    WEFT_NO_GRAD(x.w) WEFT_EVAL(x.w) {
        FOR_PARTS(x.p, NULL, part) {
            double values[2] = { (double)part.n, 1 };
            weft_parallel_add_values(x.p, values, 2);
            if (part.shard)
                weft_parallel_add(x.p, loss_of(&x, part.n, part.index, false));
        }
    }
    const double *sums = weft_parallel_values(x.p);
    cr_assert(sums[0] == N && sums[1] == 3 && sums[2] == 0);
    cr_assert(weft_parallel_mean(x.p) > 0);
    gradient(&x, after);
    cr_assert_eq(farthest(before, after, n), 0);
    CLEAN(x.w);
}

Test(shards, layer_used_by_one_shard_is_updated)
{
    model x = new_model(4);
    weft_optim *o = weft_adamw_new(x.m, &(weft_adam_opts){ .lr = .1, .weight_decay = .1 });
    weft_tensor *rare = weft_find_parameter(x.m, "rare.bias"), *head = weft_find_parameter(x.m, "head.bias");
    weft_real was[CLASSES], is[CLASSES];
    for (int shard = -1; shard < 4; shard += 4) {
        weft_read(rare, was, sizeof was);
        FOR_PARTS(x.p, NULL, part)
            weft_parallel_add(x.p, loss_of(&x, part.n, part.index, part.shard == shard));
        weft_optim_step(o);
        weft_read(rare, is, sizeof is);
        cr_assert_eq(memcmp(was, is, sizeof is) == 0, shard < 0);
        weft_clear(x.w);
    }
    weft_read(head, is, sizeof is);
    cr_assert(weft_ok(x.w) && is[0] != 0);
    CLEAN(x.w);
}

/* ---- refused calls ---- */
static void fails(model *x, const char *with)
{
    cr_assert(!weft_ok(x->w), "expected: %s", with);
    cr_assert(strstr(weft_error_message(x->w), with), "%s, not: %s", with, weft_error_message(x->w));
    weft_part part;
    for (int more = 0; weft_parallel_next(x->p, &part); more++)
        cr_assert(more < 99);
    weft_recover(x->w);
    shard_after_shard(x, NULL);           /* works again */
    cr_assert(weft_ok(x->w) && isfinite(weft_parallel_mean(x->p)), "%s", weft_error_message(x->w));
}

Test(shards, wrong_calls_are_reported)
{
    model x = new_model(4);
    weft_part part;
    double values[17] = { 0 };
    int64_t n;
    weft_loader *loader = weft_loader_new(x.w, "train", N, lengths, &(weft_loader_opts){ .count = 4 });
#define IN_A_SHARD (weft_parallel_begin(x.p, NULL, N), weft_parallel_next(x.p, &part))
    weft_parallel_begin(x.p, NULL, N), weft_parallel_begin(x.p, NULL, N);
    fails(&x, "parallel_begin: the batch before has more shards");
    weft_parallel_begin(x.p, (int32_t[]){ 1, N, 2 }, 3);
    fails(&x, "parallel_begin: sequence 1 of the batch is number 11; expected 0 .. 10, with 11 lengths");
    weft_parallel_begin(x.p, NULL, -1);
    fails(&x, "parallel_begin: -1 sequences");
    IN_A_SHARD, weft_parallel_next(x.p, &part);
    fails(&x, "parallel_next: shard 0 has no loss; expected one; pass it to weft_parallel_add");
    IN_A_SHARD, weft_parallel_add(x.p, loss_of(&x, part.n, part.index, false));
    weft_parallel_add(x.p, loss_of(&x, part.n, part.index, false));
    fails(&x, "parallel_add: the shard already has one");
    weft_parallel_add(x.p, loss_of(&x, N, NULL, false));
    fails(&x, "parallel_add: no shard is in progress");
    IN_A_SHARD, weft_parallel_add_values(x.p, values, 17);
    fails(&x, "parallel_add_values: 17 values; expected 0 .. 16");
    weft_parallel_add_values(x.p, values, 1);
    fails(&x, "and no shard is in progress");
    IN_A_SHARD, weft_parallel_add(x.p, loss_of(&x, part.n, part.index, false));
    weft_backward(weft_mean_loss(loss_of(&x, part.n, part.index, false)));
    fails(&x, "backward: the shard has its loss; expected no weft_backward");
    weft_optim *sgd = weft_sgd_new(x.m, &(weft_sgd_opts){ .lr = .1 });
    IN_A_SHARD, weft_optim_step(sgd);
    fails(&x, "optim_step: a shard of a batch is at work");
    IN_A_SHARD, weft_clip_grad_norm(x.m, 1, 0);
    fails(&x, "clip_grad_norm: a shard of a batch is at work");
    IN_A_SHARD, weft_zero_grad(x.m);
    fails(&x, "zero_grad: a shard of a batch is at work");
    IN_A_SHARD, weft_divide_grad(x.m, weft_scalar(x.w, 2));
    fails(&x, "divide_grad: a shard of a batch is at work");
    IN_A_SHARD, weft_loader_next(loader, &n);
    fails(&x, "loader_next: a shard of a batch is at work");
    IN_A_SHARD, weft_dropout(weft_full(x.w, 1, WEFT_SHAPE(N + 3, 2)), .5, "drop", false);
    fails(&x, "dropout: 14 rows in a shard of");
    IN_A_SHARD, weft_dropout(weft_to_reals(weft_ragged_ints(x.w, classes[0],
                                                            &(weft_lengths){ .n = 1, .len = lengths })),
                             .5, "drop", false);
    fails(&x, "dropout: 1 sequences without ids in a shard of");
    IN_A_SHARD, weft_recover(x.w), weft_parallel_next(x.p, &part);
    fails(&x, "weft_recover ended the batch before its last shard");
    weft_parallel_begin(x.p, NULL, N), weft_parallel_next(x.p, NULL);
    fails(&x, "part is NULL");
    CLEAN(x.w);
}

Test(shards, files_store_the_number_of_shards)
{
    char path[] = "shards_XXXXXX";
    cr_assert(close(mkstemp(path)) == 0);
    model x = new_model(4);
    weft_part part;
    cr_assert_eq(weft_parallel_save(x.p, path, x.m, NULL, NULL, 0), WEFT_OK, "%s", weft_file_message());
    weft_parallel_begin(x.p, NULL, N), weft_parallel_next(x.p, &part);
    cr_assert_eq(weft_parallel_save(x.p, path, x.m, NULL, NULL, 0), WEFT_EARG);
    cr_assert(strstr(weft_file_message(), "a shard of a batch is in progress"), "%s", weft_file_message());
    CLEAN(x.w);
    x = new_model(5);
    cr_assert_eq(weft_parallel_load(x.p, path, x.m, NULL, NULL, 0), WEFT_EARG);
    cr_assert(strstr(weft_file_message(), "saved by a run of 4 shards; expected 5"), "%s",
              weft_file_message());
    CLEAN(x.w);
    x = new_model(0);
    x.p = weft_parallel_new(x.m, NULL);
    cr_assert_eq(weft_parallel_place_of(x.p).shards, 1);
    cr_assert_eq(weft_parallel_load(x.p, path, x.m, NULL, NULL, 0), WEFT_OK, "%s", weft_file_message());
    cr_assert_eq(weft_parallel_place_of(x.p).shards, 4);
    shard_after_shard(&x, NULL);
    OK(x.w);
    CLEAN(x.w);
    remove(path);
}

Test(shards, invalid_options_are_refused)
{
    static const int32_t wrong[] = { 3, -1 };
    const struct { weft_parallel_opts o; const char *text; } some[] = {
        { { .shards = -1 }, "parallel_new: -1 shards; expected 0 .. 1048576" },
        { { .n = -3 }, "parallel_new: -3 lengths" },
        { { .n = 3 }, "parallel_new: 3 lengths, len is NULL" },
        { { .n = 2, .len = wrong }, "parallel_new: sequence 1 has length -1; expected 0 or more" },
        { { .timeout = -2 }, "parallel_new: timeout -2" },
    };
    for (int i = 0; i < COUNT(some); i++) {
        model x = new_model(0);
        x.p = weft_parallel_new(x.m, &some[i].o);
        cr_assert(strstr(weft_error_message(x.w), some[i].text), "%s", weft_error_message(x.w));
        weft_part part;
        weft_parallel_begin(x.p, NULL, N);       /* an inert object does nothing */
        cr_assert(!weft_parallel_next(x.p, &part) && weft_parallel_place_of(x.p).shards == 0);
        CLEAN_FAILED(x.w);
    }
    weft_part part;
    weft_parallel_begin(NULL, NULL, 3), weft_parallel_add(NULL, (weft_loss){ NULL, NULL });
    weft_parallel_add_values(NULL, NULL, 0);
    cr_assert(!weft_parallel_next(NULL, &part) && !weft_parallel_stopping(NULL));
    cr_assert(isnan(weft_parallel_mean(NULL)) && weft_parallel_values(NULL)[0] == 0);
    cr_assert_eq(weft_parallel_save(NULL, "x", NULL, NULL, NULL, 0), WEFT_EARG);
    cr_assert_eq(weft_parallel_load(NULL, "x", NULL, NULL, NULL, 0), WEFT_EARG);
    cr_assert_eq(weft_parallel_new(NULL, NULL), weft_parallel_new(NULL, NULL));
}
