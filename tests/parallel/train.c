/* train.c - a small training program for tests of parallel/: train SHARDS UPDATES [WORD ..]. It trains a
 * language model on generated sequences. Rank 0 prints the losses.
 *
 * Words: size=N sequences per update; units=N; out=FILE saves at the end, every=K also each K updates, resume
 * continues from FILE; recovers, all ranks drop a failed update and continue; gathers, all ranks check the
 * results of most sequences, and rank 0 prints them. Faults of rank R: breaks=R, ends before its batch;
 * skips=R an update; fails=R at an index; judges=R, evaluates alone; saves=R alone; other_data=R;
 * other_seed=R; other_rate=R; changes=R a weight; forgets=R a loss; twice=R, puts a result twice; starves=R,
 * lacks memory for the gathered results; stops_last=R, stops after all work. */
#include <signal.h>
#include <unistd.h>
#include "weft_lab.h"
#include "weft_op.h"
#include "weft_parallel.h"
#include "program.h"

enum { DATA = 97, LONGEST = 19, TOKENS = 23, MOMENT = 2 };    /* MOMENT: the update of the fault */

typedef struct {
    int rank; bool recovered;
    weft *w; weft_module *m;
    weft_embedding *table; weft_rnn *rnn; weft_linear *head, *rare;
    weft_optim *adam; weft_ema *average; weft_loader *loader; weft_loader_state at;
    weft_parallel *p;
    int32_t len[DATA], token[DATA][LONGEST];
} run;

/* ---- the command line ---- */
static bool here(const run *r, const char *name)
{
    return number(name, -1) == r->rank && weft_optim_steps(r->adam) == MOMENT && !r->recovered;
}

static int rank_by_launcher(void)                /* before weft_parallel exists */
{
    static const char *const names[] = { "WEFT_PAIRS", "OMPI_COMM_WORLD_RANK", "PMI_RANK" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    return 0;
}

/* ---- data and model ---- */
static bool starving;
static void *meagre(size_t n, void *user) { (void)user; return starving ? NULL : malloc(n); }
static void meagre_end(void *at, void *user) { (void)user; free(at); }

static void make_data(run *r)
{
    for (int i = 0; i < DATA; i++) {
        r->len[i] = (i * 7 + i * i) % LONGEST + 1;
        for (int t = 0; t < LONGEST; t++)
            r->token[i][t] = (int32_t)((i * 31 + t * t * 5 + t) % TOKENS);
    }
    if (number("other_data", -1) == r->rank)
        r->len[3] = r->len[3] == LONGEST ? 1 : r->len[3] + 1;
}

static void make_model(run *r, int shards)
{
    int units = number("units", 24);
    uint64_t seed = number("other_seed", -1) == r->rank ? 8 : 7;
    r->w = weft_open(&(weft_opts){
        .device = WEFT_CPU, .threads = 1, .seed = seed, .allocate = meagre, .release = meagre_end });
    r->m = weft_module_new(r->w, "net");
    r->table = weft_embedding_new(
        r->m, "table", &(weft_embedding_opts){ .rows = TOKENS, .columns = units, .row_dropout = .1 });
    r->rnn = weft_lstm_new(
        r->m, "rnn", &(weft_rnn_opts){ .input = units, .hidden = units, .layers = 2, .dropout = .2 });
    r->head = weft_linear_new(r->m, "head", &(weft_linear_opts){ .in = units, .out = TOKENS });
    r->rare = weft_linear_new(r->m, "rare", &(weft_linear_opts){ .in = units, .out = TOKENS });
    double rate = number("other_rate", -1) == r->rank ? .02 : .01;
    r->adam = weft_adamw_new(r->m, &(weft_adam_opts){ .lr = rate, .weight_decay = .01 });
    r->average = weft_ema_new(r->m, .9);
    weft_parallel_opts opts = { .shards = shards, .n = DATA, .len = r->len };
    r->p = weft_parallel_new(r->m, &opts);
    weft_loader_opts batches = { .count = number("size", 20), .pool = 2 };
    r->loader = weft_loader_new(r->w, "train", DATA, r->len, &batches);
}

/* ---- files ---- */
static weft_checkpoint_item position(run *r)
{
    return (weft_checkpoint_item){ "loader", WEFT_I64, r->at.at, 4 };
}

static bool save(run *r)
{
    r->at = weft_loader_get_state(r->loader);
    weft_checkpoint_item item = position(r);
    return fine(r->rank, weft_parallel_save(r->p, argument("out"), r->m, r->adam, &item, 1));
}

static bool resume(run *r)
{
    weft_checkpoint_item item = position(r);
    if (!fine(r->rank, weft_parallel_load(r->p, argument("out"), r->m, r->adam, &item, 1)))
        return false;
    weft_loader_set_state(r->loader, r->at);
    return true;
}

/* ---- results ---- */
/* Returns the size of a sequence's result in this update: -1 for none, 0, or more bytes. */
static int result_of(const run *r, int32_t s, char *out)
{
    int t = (int)weft_optim_steps(r->adam), some = s * 13 % DATA * (t % 60 + 1);
    int n = s % 5 == 0 ? -1 : s % 7 == 0 ? 0 : some;
    for (int k = 0; k < n; k++)
        out[k] = (char)('a' + (s + t + k) % 26);
    return n;
}

static void put_results(run *r, const weft_part *part)
{
    char result[DATA * 64];
    for (int64_t i = part->n; i-- > 0;) {
        int n = result_of(r, part->index[i], result);
        for (int k = here(r, "twice") && n >= 0 ? 2 : 1; k > 0 && n >= 0; k--)
            weft_parallel_put(r->p, i, result, n);
    }
}

static void look_at_results(run *r, const int32_t *index, int64_t n)
{
    char expected[DATA * 64];
    int64_t all = 0;
    const weft_parallel_result *result = weft_parallel_gathered(r->p, &all);
    starving = false;
    if (weft_ok(r->w) && all != n)
        weft_fail(r->w, WEFT_EARG, "%d results", (int)all);
    for (int64_t i = 0; weft_ok(r->w) && i < all; i++) {
        int size = result_of(r, index[i], expected);
        const char *bytes = result[i].bytes;
        bool right = size < 0 ? !bytes :
                                bytes && result[i].n == size && !memcmp(bytes, expected, (size_t)size);
        if (!right)
            weft_fail(r->w, WEFT_EARG, "result %d is another", (int)i);
        if (r->rank == 0 && bytes)
            printf("%d: %.*s\n", (int)index[i], (int)result[i].n, bytes);
    }
}

/* ---- an update ---- */
/* Dropout between layers, of rows of the table, of a plain tensor whose rows are sequences; draws of two
 * streams; a layer that only some shards reach. */
static weft_loss loss_of(run *r, const weft_part *part)
{
    int32_t in[DATA * LONGEST], out[DATA * LONGEST], length[DATA];
    int64_t at = 0;
    for (int64_t i = 0; i < part->n; i++) {
        const int32_t *token = r->token[part->index[i]];
        length[i] = r->len[part->index[i]];
        for (int t = 0; t < length[i]; t++, at++)
            in[at] = t ? token[t - 1] : 0, out[at] = token[t];
    }
    if (here(r, "fails"))
        out[0] = TOKENS + 5;
    weft_lengths l = { .n = part->n, .len = length };
    weft_tensor *x = weft_embedding_run(r->table, weft_ragged_ints(r->w, in, &l));
    weft_tensor *noise = weft_rand(r->w, 0, .01, WEFT_SHAPE(1, weft_size(x, 1)));
    weft_tensor *h = weft_rnn_run(r->rnn, weft_add(x, noise), WEFT_ZERO_STATE).y;
    weft_tensor *whole = weft_dropout(weft_pool(h, WEFT_POOL_MEAN), .3, "whole", false);
    bool rare = weft_stream_uniform(weft_stream_of(r->w, "coin")) < .3;
    weft_tensor *y = weft_linear_run(rare ? r->rare : r->head, h), *target = weft_ragged_ints(r->w, out, &l);
    double right = weft_item(weft_accuracy(y, target, NULL).right);
    weft_parallel_add_values(r->p, &right, 1);
    weft_loss loss = weft_cross_entropy(y, target, NULL);
    loss.sum = weft_add(loss.sum, weft_sum_all(weft_mul(whole, whole)));
    return loss;
}

static void update(run *r, const int32_t *index, int64_t n)
{
    weft_parallel_begin(r->p, index, n);
    for (weft_part part; weft_parallel_next(r->p, &part);) {
        weft_loss loss = loss_of(r, &part);
        if (argument("gathers"))
            put_results(r, &part);
        if (!here(r, "forgets"))
            weft_parallel_add(r->p, loss);
        starving = here(r, "starves");           /* after its first shard */
    }
    if (argument("gathers"))
        look_at_results(r, index, n);
    weft_clip_grad_norm(r->m, 1, 0);
    weft_optim_step(r->adam);
    weft_ema_update(r->average, weft_optim_steps(r->adam));
    weft_clear(r->w);
    if (r->rank == 0 && weft_ok(r->w))
        printf("%lld %.17g %.0f\n", (long long)weft_optim_steps(r->adam), weft_parallel_mean(r->p),
               weft_parallel_values(r->p)[0]);
    fflush(stdout);
}

static bool train(run *r, int updates)
{
    while (weft_ok(r->w) && weft_optim_steps(r->adam) < updates && !weft_parallel_stopping(r->p)) {
        int64_t n;
        const int32_t *index = weft_loader_next(r->loader, &n);
        if (index && here(r, "skips"))
            index = weft_loader_next(r->loader, &n);
        if (here(r, "breaks"))
            weft_fail(r->w, WEFT_EARG, "broken before its batch");
        if (here(r, "saves"))
            save(r);
        if (here(r, "judges"))
            sleep(6);
        if (here(r, "changes"))
            weft_initialise(weft_find_parameter(r->m, "rnn.weight_hh_l1"),
                            (weft_init){ WEFT_INIT_XAVIER, 0, 0 });
        if (index)
            update(r, index, n);
        if (!weft_ok(r->w) && argument("recovers") && !r->recovered)
            weft_recover(r->w), r->recovered = true;
        if (index && saves_now(r->w, r->adam) && !save(r))
            return false;
    }
    return weft_ok(r->w) && (!argument("out") || save(r));
}

int main(int argc, char **argv)
{
    static run r;
    if (!arguments(argc, argv))
        return 2;
    r.rank = rank_by_launcher();
    make_data(&r);
    make_model(&r, atoi(argv[1]));
    bool good = (!argument("resume") || resume(&r)) && train(&r, atoi(argv[2]));
    int status = ended(r.rank, r.w, good);
    if (number("stops_last", -1) == r.rank)
        raise(SIGSTOP);
    return status;
}
