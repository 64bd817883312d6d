/* test_plan_loader.c - loaders that run planners: weft_loader_new's batches by its definition, written once
 * more; every planner over epochs, stopped and resumed anywhere; what is refused. */
#include "core/inside.h"
#include "tests/check.h"

enum { N = 60 };

/* ---- weft_loader_new, plainly ---- */
typedef struct {
    int32_t order[N];
    int64_t start[N + 1], batches;
} whole_epoch;

static bool above(const weft_loader_opts *o, int64_t count, int64_t tokens)
{
    return (o->count && count > o->count) || (o->tokens && count > 1 && tokens > o->tokens);
}

static int64_t pool_end(const weft_loader_opts *o, const int32_t *len, const int32_t *order, int64_t from,
                        int64_t n)
{
    int64_t count = 0, tokens = 0, batches = 0, at = from;
    for (; at < n; at++) {
        tokens += len[order[at]];
        if (!above(o, ++count, tokens))
            continue;
        if (++batches == (o->pool ? o->pool : 50))
            break;
        count = 1, tokens = len[order[at]];
    }
    return at;
}

static void sort_plainly(const int32_t *len, int32_t *order, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        for (int64_t k = i; k && len[order[k - 1]] > len[order[k]]; k--) {
            int32_t is = order[k];
            order[k] = order[k - 1], order[k - 1] = is;
        }
}

static void cut(const weft_loader_opts *o, const int32_t *len, int64_t from, int64_t to, whole_epoch *e)
{
    int64_t count = 0, tokens = 0;
    e->start[e->batches++] = from;
    for (int64_t i = from; i < to; i++) {
        tokens += len[e->order[i]];
        if (above(o, ++count, tokens))
            e->start[e->batches++] = i, count = 1, tokens = len[e->order[i]];
    }
}

static whole_epoch epoch_of(weft_stream *stream, const weft_loader_opts *o, const int32_t *len, int64_t n,
                            int32_t *turn)
{
    whole_epoch e = { .batches = 0 };
    weft_stream_permutation(stream, n, e.order);
    for (int64_t from = 0, to; from < n; from = to) {
        to = pool_end(o, len, e.order, from, n);
        sort_plainly(len, e.order + from, to - from);
        cut(o, len, from, to, &e);
    }
    e.start[e.batches] = n;
    weft_stream_permutation(stream, e.batches, turn);
    return e;
}

Test(plan_loader, batches_are_those_of_the_definition)
{
    int32_t len[N], turn[N];
    dice_seed(3);
    for (int round = 0; round < rounds(300, 3000); round++) {
        weft *w = open_on(WEFT_CPU);
        int64_t n = (int64_t)dice(N + 1), size;
        weft_loader_opts o = { .count = (int64_t)dice(9), .pool = (int)dice(5) };
        o.tokens = o.count && dice(2) ? 0 : 1 + (int64_t)dice(40);
        for (int64_t i = 0; i < n; i++)
            len[i] = (int32_t)dice(20);
        weft_loader *l = weft_loader_new(w, "train", n, len, &o);
        weft_stream *same = weft_stream_new(w->random.seed, "loader.train");
        for (int k = 0; k < 3; k++) {
            whole_epoch e = epoch_of(same, &o, len, n, turn);
            for (int64_t b = 0; b < e.batches; b++) {
                const int32_t *got = weft_loader_next(l, &size);
                const int64_t from = e.start[turn[b]];
                cr_assert(got && size == e.start[turn[b] + 1] - from);
                cr_assert(!memcmp(got, e.order + from, (size_t)size * sizeof *got));
            }
            cr_assert(!weft_loader_next(l, &size));
        }
        weft_stream_free(same);
        CLEAN(w);
    }
}

/* ---- every planner ---- */
static const char *const texts[] = {
    "order:tokens=30",         "sorted:count=3,shuffle=yes",     "random:count=4",
    "laplace:count=2,pool=2",  "tokens:budget=60,shuffle=yes",   "powers:budget=32,shuffle=yes",
    "refill:slots=3",          "streams:slots=3,window=5",       "first_fit:capacity=25,rows=1,shuffle=yes",
    "chunk:capacity=9,rows=2", "buckets:bounds=4/9,sizes=3/2/1", "optimal_buckets:k=3,count=4,shuffle=yes",
};

static uint64_t hash_batch(const weft_plan *p, int64_t b)
{
    uint64_t hash = (uint64_t)p->batch[b].n;
    for (int64_t i = p->batch[b].first; i < p->batch[b].first + p->batch[b].n; i++) {
        const weft_segment *s = p->segment + i;
        hash = (hash ^ (uint64_t)s->sequence) * 0x9E3779B97F4A7C15u;
        hash = (hash ^ (uint64_t)(s->offset * 64 + s->length)) * 0x9E3779B97F4A7C15u;
    }
    return hash;
}

static weft_loader *loader_of(weft *w, const char *text, const int32_t *len)
{
    const weft_planner *planner;
    weft_plan_opts o;
    void *memory;
    cr_assert_eq(weft_plan_parse(text, &planner, &o, &memory), WEFT_OK, "%s", weft_plan_message());
    weft_loader *l = weft_plan_loader_new(w, "it", N, len, planner, &o);
    free(memory); /* the lists were copied */
    OK(w);
    return l;
}

Test(plan_loader, every_planner_goes_on_where_it_was)
{
    int32_t len[N];
    dice_seed(4);
    for (int i = 0; i < N; i++)
        len[i] = (int32_t)dice(20);
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        uint64_t all[3 * 200];
        weft_loader_state at[3 * 200];
        const weft_plan *p;
        int64_t n = 0, b;
        weft *w = open_on(WEFT_CPU);
        weft_loader *l = loader_of(w, texts[t], len);
        for (int epoch = 0; epoch < 3; epoch++) {
            int64_t batches = weft_loader_batches(l), given = 0;
            for (; at[n] = weft_loader_get_state(l), (b = weft_loader_next_batch(l, &p)) >= 0; given++)
                all[n++] = hash_batch(p, b);
            cr_assert(given == batches && weft_loader_epoch(l) == epoch + 1, "%s", texts[t]);
        }
        CLEAN(w);
        for (int round = 0; round < 6; round++) {
            int64_t from = (int64_t)dice((uint64_t)n);
            w = open_on(WEFT_CPU);
            l = loader_of(w, texts[t], len);
            weft_loader_set_state(l, at[from]);
            OK(w);
            for (int64_t i = from; i < n; i++) {
                while ((b = weft_loader_next_batch(l, &p)) < 0)
                    OK(w);
                cr_assert_eq(hash_batch(p, b), all[i], "%s", texts[t]);
            }
            CLEAN(w);
        }
    }
}

Test(plan_loader, what_is_refused)
{
    const int32_t len[] = { 5, 30, 2 };
    weft *w = open_on(WEFT_CPU);
    const weft_plan *p;
    int64_t size;
    const weft_planner *fit = weft_planner_named("first_fit"), *chunk = weft_planner_named("chunk");
    cr_assert_not(weft_loader_next(
        weft_plan_loader_new(w, "a", 3, len, fit, &(weft_plan_opts){ .capacity = 9 }), &size));
    FAILS(w, WEFT_EARG, "loader \"a\": ");
    weft_loader *l = weft_plan_loader_new(w, "a", 3, len, chunk, &(weft_plan_opts){ .capacity = 9 });
    OK(w);
    cr_assert_not(weft_loader_next(l, &size));
    FAILS(w, WEFT_EARG, "planner chunk may cut sequences");
    cr_assert(!weft_loader_next_batch(l, &p) && p && weft_loader_next_batch(l, &p) < 0 && p->batches == 1);
    weft_loader *other = weft_plan_loader_new(w, "b", 3, len, chunk, &(weft_plan_opts){ .capacity = 8 });
    weft_loader_set_state(other, weft_loader_get_state(l));
    FAILS(w, WEFT_EARG, "the position was saved of other sequences or options");
    weft_plan_loader_new(w, "c", 3, len, NULL, NULL);
    FAILS(w, WEFT_EARG, "a planner, and lists as long as said, are expected");
    weft_plan_loader_new(w, "d", 3, len, weft_planner_named("radom"), NULL);
    FAILS(w, WEFT_EARG, "the planner is NULL, there is no planner \"radom\"; \"random\" is near");
    weft_plan_loader_new(w, "e", 3, len, fit, &(weft_plan_opts){ .capacity = 30, .count = 2 });
    FAILS(w, WEFT_EARG, "first_fit: there is no option \"count\"");
    CLEAN(w);
}
