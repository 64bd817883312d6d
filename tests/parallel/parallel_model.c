/* parallel_model.c - how many ranks are worth it: a model of what an update costs on 1 .. 1,024 ranks, which
 * goes through the messages of the library's own schedule, one by one. It prints a line of JSON a figure.
 *
 * Assumed. A shard takes seconds a token, and seconds that do not depend on its tokens. A message leaves when
 * its rank is done with what it sends and has a free port, which it takes for `gap` seconds and beta a byte,
 * the sender's and, alpha seconds later, the receiver's; one message at a time (LogGP: Alexandrov et al.
 * 1995). Ranks of one node have a faster way. Adding, stepping and averaging take seconds a number. Nothing
 * is disturbed by anything else. The lengths of a batch are drawn anew for each of several updates; their
 * mean is told.
 *
 * GPUs exchange by recursive halving and doubling, neighbours first, where the ranks are a power of two: 2
 * log2(ranks) messages, and as many bytes, of which fewer leave a node. Others exchange pieces from each to
 * all. Beside what an exchange takes stands what the other way would.
 *
 * The constants of `this machine` are fitted on what bench/parallel.sh measured there on one rank and in the
 * exchange of 1e4 and 1e6 numbers; the other figures that it measured are predicted, and both are told. Those
 * of the others are said below, and what comes of them is a prediction. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "parallel/parallel.h"

enum { MOST = 1024, UPDATES = 5 };

typedef struct {
    double alpha, gap, beta;
} link; /* seconds: until it comes; a message; a byte */
typedef struct machine {
    const char *name;
    int node; /* ranks of one */
    link near, far;
    double token, fixed, number, add; /* seconds a token; a shard; a number stepped; one added */
    bool linked; /* GPUs, by a link */
} machine;

typedef enum { WORDS, SENTENCES, ATTENDED } lengths;
static const char *const names[] = { "words of 4 .. 14", "lognormal, median 33", "the same, attended" };

/* ---- a batch ---- */
static double dice(void)
{
    static uint64_t s = 88172645463325252u;
    s ^= s << 13, s ^= s >> 7, s ^= s << 17;
    return (double)(s >> 11) / 9007199254740992.;
}

static int32_t one_length(lengths of)
{
    if (of == WORDS)
        return 4 + (int32_t)(11 * dice());
    double normal = sqrt(-2 * log(1 - dice())) * cos(6.283185307179586 * dice());
    double length = 33 * exp(.6 * normal);
    return length < 1 ? 1 : length > 400 ? 400 : (int32_t)length;
}

/* What a shard costs, in tokens. */
static double cost(lengths of, int32_t length)
{
    return length + (of == ATTENDED ? length * (double)length / 50 : 0);
}

typedef struct batch {
    int64_t n;
    int shards;
    double tokens, shard[MOST];
} batch;

static void draw(batch *b, lengths of)
{
    int32_t *len = malloc((size_t)b->n * sizeof *len), *order = malloc((size_t)b->n * 3 * sizeof *order);
    int64_t start[MOST + 1];
    static weft__bin bin[MOST];
    if (!len || !order)
        exit(1);
    b->tokens = 0;
    for (int64_t i = 0; i < b->n; i++)
        len[i] = one_length(of), b->tokens += len[i];
    weft__cut(b->n, NULL, len, b->shards, order, start, bin, order + b->n);
    for (int s = 0; s < b->shards; s++) {
        b->shard[s] = 0;
        for (int64_t i = start[s]; i < start[s + 1]; i++)
            b->shard[s] += cost(of, len[order[i]]);
    }
    free(len), free(order);
}

/* ---- ranks and their ports ---- */
typedef struct run {
    const machine *m;
    int ranks;
    bool overlap, pieces; /* pieces: from each to all, in any case */
    int64_t n; /* numbers to train */
    double at[MOST]; /* the rank's clock */
    double out[MOST], in[MOST]; /* its port is free */
    int64_t messages, bytes; /* of rank 0 */
} run;

static const link *link_of(const run *r, int a, int b)
{
    return a / r->m->node == b / r->m->node ? &r->m->near : &r->m->far;
}

/* When the message has arrived that may leave at `ready`. */
static double send(run *r, int from, int to, double ready, double bytes)
{
    const link *l = link_of(r, from, to);
    double leaves = ready > r->out[from] ? ready : r->out[from], takes = l->gap + bytes * l->beta;
    r->out[from] = leaves + takes;
    double comes = leaves + l->alpha > r->in[to] ? leaves + l->alpha : r->in[to];
    if (from == 0)
        r->messages++, r->bytes += (int64_t)bytes;
    return r->in[to] = comes + takes;
}

/* Bruck's all-gather: in round d each sends what it has of min(d, ranks - d) ranks. */
static void gather(run *r, double bytes)
{
    double next[MOST];
    for (int d = 1; d < r->ranks; d *= 2) {
        int blocks = d < r->ranks - d ? d : r->ranks - d;
        for (int q = 0; q < r->ranks; q++)
            next[q] = r->at[q];
        for (int q = 0; q < r->ranks; q++) {
            int to = (q - d + r->ranks) % r->ranks;
            double comes = send(r, q, to, r->at[q], blocks * bytes);
            next[to] = comes > next[to] ? comes : next[to];
        }
        memcpy(r->at, next, (size_t)r->ranks * sizeof *next);
    }
}

/* Chunk by chunk: hand in, add, hand out. ready[q]: when a rank's chunk is final. */
static void exchange_chunk(run *r, const weft__transfer *x, int chunk, const double *ready, int shards,
                           double *done)
{
    static double summed[MOST];
    for (int q = 0; q < r->ranks; q++)
        summed[q] = ready[q];
    weft__branch b[WEFT__BRANCHES];
    for (int d = 1; d < r->ranks; d++)
        for (int q = 0; q < r->ranks; q++) {
            int to = (q + d) % r->ranks,
                parts = weft__tree_parts(shards, weft__shards_of(shards, q, r->ranks), b);
            for (int i = 0; i < parts; i++) {
                double comes = send(r, q, to, ready[q], 4. * (double)weft__piece_size(x, chunk, to));
                summed[to] = comes > summed[to] ? comes : summed[to];
            }
        }
    for (int q = 0; q < r->ranks; q++)
        summed[q] += r->m->add * (double)weft__piece_size(x, chunk, q) * (r->ranks - 1);
    for (int q = 0; q < r->ranks; q++)
        done[q] = summed[q] > done[q] ? summed[q] : done[q];
    for (int d = 1; d < r->ranks && !x->whole; d++)
        for (int q = 0; q < r->ranks; q++) {
            int to = (q + d) % r->ranks;
            double comes = send(r, q, to, summed[q], 4. * (double)weft__piece_size(x, chunk, q));
            done[to] = comes > done[to] ? comes : done[to];
        }
}

/* With the partner at each distance, half of what is left; and back. */
static void swap(run *r, int far, double bytes, double adding)
{
    static double next[MOST];
    for (int q = 0; q < r->ranks; q++)
        next[q ^ far] = send(r, q, q ^ far, r->at[q], bytes);
    for (int q = 0; q < r->ranks; q++)
        r->at[q] = (next[q] > r->at[q] ? next[q] : r->at[q]) + adding;
}

static void exchange_halves(run *r)
{
    double n = (double)r->n;
    for (int far = 1; far < r->ranks; far *= 2)
        n /= 2, swap(r, far, 4 * n, r->m->add * n);
    for (int far = r->ranks / 2; far; far /= 2)
        swap(r, far, 4 * n, 0), n *= 2;
}

static double latest(const run *r)
{
    double last = 0;
    for (int q = 0; q < r->ranks; q++)
        last = r->at[q] > last ? r->at[q] : last;
    return last;
}

/* Of one rank: shard after shard; two thirds of the last one are the walk back, and its chunks end one by
 * one. */
static void compute(run *r, const batch *b, int chunks, double final[WEFT__CHUNKS][MOST])
{
    for (int q = 0; q < r->ranks; q++) {
        weft__branch mine = weft__shards_of(b->shards, q, r->ranks);
        double took = 0, last = 0;
        for (int s = mine.from; s < mine.end; s++)
            last = r->m->fixed + r->m->token * b->shard[s], took += last;
        for (int c = 0; c < chunks; c++) {
            double left = r->overlap ? 2. / 3 * last * (chunks - 1 - c) / chunks : 0;
            final[c][q] = took - left;
        }
        r->at[q] = took;
    }
}

static double update(run *r, const batch *b)
{
    static double final[WEFT__CHUNKS][MOST], done[MOST];
    weft__transfer x;
    memset(r->out, 0, sizeof r->out), memset(r->in, 0, sizeof r->in);
    r->messages = 0, r->bytes = 0;
    weft__cut_vector(&x, r->n, 0, r->ranks, r->m->linked);
    compute(r, b, x.chunks, final);
    if (r->ranks > 1) {
        memset(done, 0, sizeof done);
        for (int c = 0; r->overlap && c < x.chunks; c++)
            exchange_chunk(r, &x, c, final[c], b->shards, done);
        gather(r, 640), gather(r, 160);
        bool halves = r->m->linked && !r->pieces && !x.whole && !(r->ranks & (r->ranks - 1));
        for (int c = 0; !r->overlap && !halves && c < x.chunks; c++)
            exchange_chunk(r, &x, c, r->at, b->shards, done);
        if (halves)
            exchange_halves(r);
        for (int q = 0; q < r->ranks; q++)
            r->at[q] = done[q] > r->at[q] ? done[q] : r->at[q];
    }
    return latest(r) + r->m->number * (double)r->n;
}

/* ---- machines ---- */
/* What was measured: docs/design/parallel.md. */
static const double exchange_4 = 6.8e-6, exchange_5 = 36.1e-6, exchange_6 = 552e-6, exchange_7 = 3400e-6,
                    one_256 = 45.74e-3, two_256 = 25.18e-3, one_32 = 6.96e-3, two_32 = 4.64e-3;
enum { G2P = 820000, TOKENS = 17 }; /* numbers; letters and phones of a word */

/* An exchange of 1e4 numbers on two ranks takes one message each way, of 1e7 two of half the bytes; a word a
 * token's seconds for each of its tokens; what is left of an update of 32 words is stepping, clipping,
 * averaging. */
static machine this_machine(void)
{
    double beta = (exchange_7 - 2 * exchange_4) / (4 * (1e7 - 2e4)), alpha = exchange_4 - 4e4 * beta;
    double token = (one_256 - one_32) / ((256 - 32) * (double)TOKENS), rest = one_32 - 32. * TOKENS * token;
    link near = { alpha, 0, beta };
    return (machine){ "this machine", 1 << 20, near, near, token, 0, rest / G2P, 0, false };
}

/* A token takes 6 FLOPs a number and direction of a model of `numbers`, at `flops`; a step of a recurrent
 * layer on a GPU some launches, so a shard has a cost of its own; stepping moves 40 bytes a number. */
static machine gpus(const char *name, double numbers, double flops, double fixed, double memory, link near,
                    link far)
{
    return (machine){ name, 8, near, far, 6 * numbers / flops, fixed, 40 / memory, 12 / memory, true };
}

/* ---- what is told ---- */
/* Neighbours first: what leaves a node are sums of the node. */
static double by_halving(const machine *m, int64_t n, int ranks)
{
    double seconds = m->add * (double)n, bytes = 4. * (double)n;
    for (int far = 1; far < ranks; far *= 2) {
        const link *l = far < m->node ? &m->near : &m->far;
        bytes /= 2;
        seconds += 2 * (l->alpha + l->gap + bytes * l->beta);
    }
    return seconds;
}

static void told(const machine *m, lengths of, double words, int64_t n, int ranks, bool overlap)
{
    static batch b;
    static run r;
    double one = 0, many = 0, tokens = 0, alone = 0, pieces = 0;
    for (int k = 0; k < UPDATES; k++) {
        b = (batch){ .n = (int64_t)words * ranks, .shards = ranks };
        draw(&b, of);
        r = (run){ .m = m, .ranks = ranks, .overlap = overlap, .n = n };
        many += update(&r, &b) / UPDATES, tokens += b.tokens / UPDATES;
        r = (run){ .m = m, .ranks = ranks, .overlap = overlap, .pieces = true, .n = n };
        pieces += update(&r, &b) / UPDATES;
        double all = 0, slowest = 0;
        for (int s = 0; s < b.shards; s++)
            all += b.shard[s], slowest = b.shard[s] > slowest ? b.shard[s] : slowest;
        one += (m->fixed + m->token * all / ranks + m->number * (double)n) / UPDATES;
        alone += (m->fixed + m->token * slowest + m->number * (double)n) / UPDATES;
    }
    double other = m->linked ? pieces - alone : by_halving(m, n, ranks);
    printf("{\"case\": \"predicted\", \"machine\": \"%s\", \"lengths\": \"%s\", \"numbers\": %lld, "
           "\"ranks\": %d, "
           "\"overlap\": %s, \"ms\": %.4g, \"tokens_per_second\": %.4g, \"efficiency\": %.3f, "
           "\"imbalance\": %.3f, \"exchange_ms\": %.4g, \"other_ms\": %.4g}\n",
           m->name, names[of], (long long)n, ranks, overlap ? "true" : "false", 1e3 * many, tokens / many,
           one / many, (alone - one) / many, 1e3 * (many - alone), 1e3 * other);
}

/* Predicted beside measured, of this machine. */
static void beside(const char *what, double predicted, double measured)
{
    printf("{\"case\": \"model\", \"of\": \"%s\", \"predicted_ms\": %.4g, \"measured_ms\": %.4g}\n", what,
           1e3 * predicted, 1e3 * measured);
}

static double g2p(const machine *m, int words)
{
    static batch b;
    static run r;
    b = (batch){ .n = words, .shards = 2 };
    double sum = 0;
    for (int k = 0; k < UPDATES; k++) {
        draw(&b, WORDS);
        double scale = words * (double)TOKENS / b.tokens; /* letters and phones */
        for (int s = 0; s < 2; s++)
            b.shard[s] *= scale;
        r = (run){ .m = m, .ranks = 2, .overlap = true, .n = G2P };
        sum += update(&r, &b) / UPDATES;
    }
    return sum;
}

static double exchange_alone(run *r, int shards)
{
    static double done[MOST];
    weft__transfer x;
    weft__cut_vector(&x, r->n, 0, r->ranks, r->m->linked);
    memset(done, 0, sizeof done);
    for (int c = 0; c < x.chunks; c++)
        exchange_chunk(r, &x, c, r->at, shards, done);
    return done[0] > done[1] ? done[0] : done[1];
}

static double exchange_of_two(const machine *m, int64_t n)
{
    static run r;
    r = (run){ .m = m, .ranks = 2, .n = n };
    return exchange_alone(&r, 2);
}

/* ---- tests: what must be so whatever the constants ---- */
static int fail(const char *what) { return fprintf(stderr, "parallel_model: not so: %s\n", what), 1; }

/* A transport that counts what the library posts on rank 0, and takes no time. */
static int64_t posted, posted_bytes;
static int count_send(int to, int tag, const void *bytes, size_t n)
{
    (void)to, (void)tag, (void)bytes;
    return posted++, posted_bytes += (int64_t)n, 0;
}
static int no_receive(int from, int tag, void *bytes, size_t n)
{
    (void)from, (void)tag, (void)bytes, (void)n;
    return 0;
}
static int over(int request)
{
    (void)request;
    return 1;
}
static int over_at_once(int request, double seconds)
{
    (void)request, (void)seconds;
    return 1;
}

static int counts_of(int ranks, int shards, int64_t n)
{
    static const weft__transport counting = { .name = "counting",
                                              .post_send = count_send,
                                              .post_recv = no_receive,
                                              .test = over,
                                              .wait = over_at_once };
    static run r;
    static const machine none = { .name = "none", .node = 8 };
    weft *w = weft_open(&(weft_opts){ .device = WEFT_CPU, .threads = 1 });
    weft_module *m = weft_module_new(w, "m");
    weft_parameter(m, "x", WEFT_SHAPE(n), (weft_init){ WEFT_INIT_ZERO, 0, 0 });
    weft_parallel *p = weft_parallel_new(m, &(weft_parallel_opts){ .shards = shards });
    p->transport = &counting, p->world.ranks = ranks, p->mine = weft__shards_of(shards, 0, ranks), p->n = n;
    p->done = weft__branches_before(p, p->mine.end, (weft__branch[WEFT__BRANCHES]){ { 0, 0 } });
    posted = posted_bytes = 0;
    bool fine = weft__exchange(p);
    p->transport = NULL;
    weft_close(w);
    r = (run){ .m = &none, .ranks = ranks, .n = n };
    exchange_alone(&r, shards);
    return fine && r.messages == posted && r.bytes * (int64_t)sizeof(weft_real) / 4 == posted_bytes ?
               0 :
               fail("the messages are those that the library sends");
}

static int test(void)
{
    static batch b;
    static run r;
    machine slow = { "none", 8, { 0, 0, 0 }, { 0, 0, 0 }, 1e-6, 0, 0, 0, false };
    int bad = 0;
    for (int ranks = 1; ranks <= 64; ranks *= 4) {
        b = (batch){ .shards = ranks, .tokens = ranks * 100 };
        for (int s = 0; s < ranks; s++)
            b.shard[s] = 100;
        double before = 0;
        for (slow.near.beta = slow.far.beta = 0; slow.far.beta < 4e-8;
             slow.near.beta = slow.far.beta += 1e-8) {
            r = (run){ .m = &slow, .ranks = ranks, .n = 1000000 };
            double takes = update(&r, &b);
            if (slow.far.beta == 0 && fabs(takes - 1e-4) > 1e-12)
                bad += fail("equal shards and a network that costs nothing: efficiency 1");
            if (slow.far.beta > 0 && ranks > 1 && takes <= before)
                bad += fail("a slower network takes longer");
            r.overlap = true;
            if (slow.far.beta > 0 && update(&r, &b) > takes * 1.0000001)
                bad += fail("overlap is no slower");
            before = takes;
        }
    }
    for (int ranks = 2, rounds = 1; ranks <= 64; ranks *= 2, rounds++) {
        enum { NUMBERS = 1 << 20 };
        slow.linked = true, b = (batch){ .shards = ranks };
        r = (run){ .m = &slow, .ranks = ranks, .n = NUMBERS };
        update(&r, &b);
        int64_t agreed = (640 + 160) * (int64_t)(ranks - 1);
        if (r.messages != 4 * rounds || r.bytes != agreed + 8 * (NUMBERS - NUMBERS / ranks))
            bad += fail("GPUs take 2 log2(ranks) messages, of 8 (ranks - 1) / ranks bytes a number");
    }
    const int ranks[] = { 2, 3, 5, 8 }, shards[] = { 8, 13 };
    const int64_t numbers[] = { 5008, 100000, 3000000 };
    for (int i = 0; i < 24; i++)
        bad += counts_of(ranks[i % 4], shards[i / 4 % 2], numbers[i / 8]);
    return bad;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--test"))
        return test();
    machine here = this_machine();
    beside("an exchange of 1e5 numbers", exchange_of_two(&here, 100000), exchange_5);
    beside("an exchange of 1e6 numbers", exchange_of_two(&here, 1000000), exchange_6);
    beside("g2p, 32 words, 2 ranks", g2p(&here, 32), two_32);
    beside("g2p, 256 words, 2 ranks", g2p(&here, 256), two_256);
    const link shared = here.near, gigabit = { 30e-6, 3e-6, 8e-9 }, ten = { 20e-6, 3e-6, .8e-9 },
               infiniband = { 2e-6, .5e-6, .08e-9 };
    const link nvlink = { 6e-6, 1e-6, 1 / 350e9 }, infiniband_400 = { 5e-6, 1e-6, 1 / 45e9 };
    const struct {
        const char *name;
        link far;
    } networks[] = { { "cores, 1 Gb Ethernet", gigabit },
                     { "cores, 10 Gb Ethernet", ten },
                     { "cores, 100 Gb InfiniBand", infiniband } };
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        for (int ranks = 2; ranks <= 64; ranks *= 2) {
            machine m = here;
            m.name = networks[i].name, m.node = 2, m.near = shared, m.far = networks[i].far;
            told(&m, WORDS, 128, G2P, ranks, true);
        }
    const double numbers[] = { 1e6, 100e6 };
    for (int i = 0; i < 2; i++)
        for (lengths of = SENTENCES; of <= ATTENDED; of++)
            for (int ranks = 8; ranks <= MOST; ranks *= 2) {
                machine m = gpus("H100s", numbers[i], i ? 200e12 : 20e12, i ? 5e-3 : 2e-3, 2.5e12, nvlink,
                                 infiniband_400);
                told(&m, of, 128, (int64_t)numbers[i], ranks, false);
            }
    return 0;
}
