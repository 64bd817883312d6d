/* test_loader.c - tests the loader: batches against their definition, every planner over several epochs,
 * stopped and resumed anywhere, names, streams, damaged positions, and refused calls. */
#include "core/inside.h"
#include "files.h"

enum { N = 60 };

static weft_loader_opts any_opts(void)
{
    weft_loader_opts o = { .count = (int64_t)dice(2) * (int64_t)(1 + dice(9)),
                           .pool = (int)dice(8),
                           .keep_order = dice(4) == 0 };
    o.tokens = o.count && dice(2) ? 0 : (int64_t)(1 + dice(60));
    return o;
}

/* An epoch is a random order, the plan of the sequences in this order, and a random order of its batches.
 * tests/scripts/test_reference.sh compares planners with their definitions. */
Test(loader, batches_match_the_definition)
{
    int32_t len[N], drawn[N], order[N], turn[N];
    dice_seed(3);
    for (int round = 0; round < rounds(300, 3000); round++) {
        weft *w = open_on(WEFT_CPU);
        int64_t n = (int64_t)dice(N + 1), size;
        weft_loader_opts o = any_opts();
        weft_plan_opts plain = { .count = o.count, .tokens = o.tokens, .pool = o.keep_order ? 0 : o.pool };
        const weft_planner *planner = weft_planner_named(o.keep_order ? "order" : "pool");
        for (int32_t i = 0; i < n; i++)
            len[i] = (int32_t)dice(20), order[i] = i;
        weft_loader *l = weft_loader_new(w, "train", n, len, &o);
        weft_stream *same = weft_stream_new(w->random.seed, "loader.train");
        for (int k = 0; k < 3; k++) {
            weft_plan p;
            if (!o.keep_order)
                weft_stream_permutation(same, n, order);
            for (int64_t i = 0; i < n; i++)
                drawn[i] = len[order[i]], turn[i] = (int32_t)i;
            cr_assert_eq(weft_plan_make(planner, drawn, n, &plain, &p), WEFT_OK);
            if (!o.keep_order)
                weft_stream_permutation(same, p.batches, turn);
            for (int64_t b = 0; b < p.batches; b++) {
                const int32_t *got = weft_loader_next(l, &size);
                const weft_plan_batch *want = p.batch + turn[b];
                cr_assert(got && size == want->n);
                for (int64_t i = 0; i < size; i++)
                    cr_assert_eq(got[i], order[p.segment[want->first + i].sequence]);
            }
            cr_assert(!weft_loader_next(l, &size));
            weft_plan_free(&p);
        }
        weft_stream_free(same);
        CLEAN(w);
    }
}

/* ---- every planner ---- */
static const char *const texts[] = {
    "order:tokens=30",         "sorted:count=3,shuffle=yes",     "random:count=4",
    "laplace:count=2,pool=2",  "tokens:budget=60,shuffle=yes",   "powers:budget=32,shuffle=yes",
    "pool:count=4,pool=3,shuffle=yes", "pool:tokens=30,pool=2",
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

Test(loader, every_planner_resumes_at_its_position)
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

CPU_TEST(loader, unsuitable_plans_are_refused)
{
    const int32_t len[] = { 5, 30, 2 };
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
    FAILS(w, WEFT_EARG, "the position was saved with other sequences or options");
    weft_plan_loader_new(w, "c", 3, len, NULL, NULL);
    FAILS(w, WEFT_EARG, "expected a planner, and lists of bounds and sizes");
    weft_plan_loader_new(w, "d", 3, len, weft_planner_named("radom"), NULL);
    FAILS(w, WEFT_EARG, "the planner is NULL, unknown planner \"radom\"; \"random\" is near");
    weft_plan_loader_new(w, "e", 3, len, fit, &(weft_plan_opts){ .capacity = 30, .count = 2 });
    FAILS(w, WEFT_EARG, "first_fit: unknown option \"count\"");
}

/* ---- guarantees of a loader ---- */
/* The number of batches of an epoch. */
static int64_t run_epoch(weft_loader *l)
{
    int64_t size, batches = 0;
    while (weft_loader_next(l, &size))
        batches++;
    cr_assert_eq(batches, weft_loader_batches(l));
    return batches;
}

/* A loader that could not be created is inert, and calls on it are safe. */
static void is_inert(weft_loader *l)
{
    int64_t size = 7;
    cr_assert(l && !weft_loader_next(l, &size) && size == 0 && weft_loader_batches(l) == 0 &&
              weft_loader_epoch(l) == 0);
    weft_loader_set_state(l, (weft_loader_state){ { 1, 1, 1, 1 } });
    weft_loader_state s = weft_loader_get_state(l);
    cr_assert(!s.at[0] && !s.at[1] && !s.at[2] && !s.at[3]);
}

CPU_TEST(loader, names_are_unique_in_a_context)
{
    const int32_t len[] = { 1, 2, 3 };
    const weft_loader_opts o = { .count = 2 };
    weft *other = open_on(WEFT_CPU);
    weft_loader *l = weft_loader_new(w, "train", 3, len, &o);
    cr_assert(l && weft_loader_new(w, "dev", 3, len, &o) && weft_loader_new(other, "train", 3, len, &o));
    is_inert(weft_loader_new(w, "train", 2, len, &o));
    FAILS(w, WEFT_EARG, "loader \"train\": the name is in use");
    for (int n = 1; n < 4; n++) {                /* one that could not be made has no name */
        fail_in(w, n);
        is_inert(weft_loader_new(w, "late", 3, len, &o));
        FAILS(w, WEFT_ENOMEM, "out of memory");
    }
    fail_in(w, 0);
    cr_assert_eq(run_epoch(weft_loader_new(w, "late", 3, len, &o)), 2);
    CLEAN(other);
}

/* Batch i of both loaders, to the end of `epochs`. */
static void same_batches(weft_loader *a, weft_loader *b, int epochs)
{
    int64_t sizes[2];
    for (int ended = 0; ended < epochs;) {
        const int32_t *x = weft_loader_next(a, &sizes[0]), *y = weft_loader_next(b, &sizes[1]);
        cr_assert(!x == !y && sizes[0] == sizes[1] && (!x || !memcmp(x, y, (size_t)sizes[0] * sizeof *x)));
        ended += !x;
    }
}

Test(loader, the_number_of_batches_is_known_before_an_epoch)
{
    for (int k = 0; k < rounds(100, 2000); k++) {
        int32_t len[120];
        int64_t n = (int64_t)dice(120);
        dice_lengths(len, n, 30);
        weft_loader_opts o = any_opts();
        weft *w = open_on(WEFT_CPU), *v = open_on(WEFT_CPU);
        weft_loader *asked = weft_loader_new(w, "x", n, len, &o), *not = weft_loader_new(v, "x", n, len, &o);
        int64_t before = weft_loader_batches(asked);
        for (int i = (int)dice(3); i; i--)
            cr_assert_eq(weft_loader_batches(asked), before);
        cr_assert(!weft_loader_epoch(asked) && w->random.streams->count == 0, "the query drew numbers");
        weft_loader_state a = weft_loader_get_state(asked), b = weft_loader_get_state(not);
        cr_assert(!memcmp(&a, &b, sizeof a));
        same_batches(asked, not, 1);
        cr_assert(weft_loader_batches(asked) == before &&
                  w->random.streams->count == v->random.streams->count);
        /* between two epochs of a restored loader: the next epoch's count */
        a = weft_loader_get_state(asked);
        weft_loader_set_state(not, a);
        before = weft_loader_batches(not);
        same_batches(asked, not, 1);
        cr_assert_eq(weft_loader_batches(asked), before);
        same_batches(asked, not, 2);
        CLEAN(w);
        CLEAN(v);
    }
}

/* What moves the stream after the question (a checkpoint that is loaded) makes the plan void. */
Test(loader, plan_depends_on_its_stream)
{
    int32_t len[50];
    weft_loader_opts o = { .tokens = 40, .pool = 2 };
    for (int k = 0; k < 20; k++) {
        weft *w = open_on(WEFT_CPU), *v = open_on(WEFT_CPU);
        dice_lengths(len, 50, 30);
        weft_loader *a = weft_loader_new(w, "x", 50, len, &o), *b = weft_loader_new(v, "x", 50, len, &o);
        weft_loader_batches(a);
        w->random.streams->count = v->random.streams->count = 1000u + (unsigned)k;
        int64_t size, batches = k % 2 ? weft_loader_batches(a) : -1;
        cr_assert(weft_loader_next(b, &size) && (batches < 0 || batches == weft_loader_batches(b)));
        cr_assert_not_null(weft_loader_next(a, &size));
        same_batches(a, b, 2);
        CLEAN(w);
        CLEAN(v);
    }
}

CPU_TEST(loader, invalid_arguments_are_refused)
{
    int32_t len[] = { 1, 2, -3 }, good[] = { 1, 2, 3 };
    int64_t size;
    const weft_loader_opts o = { .count = 2 }, none = { 0 }, negative = { .count = -1 };
    const struct {
        const char *name;
        int64_t n;
        const int32_t *len;
        const weft_loader_opts *o;
        const char *says;
    } bad[] = {
        { "a", 3, len, &o, "sequence 2 has length -3" },
        { "a", 3, good, &none, "count or tokens" },
        { "a", 3, good, &negative, "missing or negative" },
        { "a", 3, good, NULL, "count or tokens" },
        { NULL, 3, good, &o, "a name" },
        { "a", -1, good, &o, "-1 sequences" },
        { "a", 3, NULL, &o, "without lengths" },
    };
    for (int i = 0; i < COUNT(bad); i++) {
        is_inert(weft_loader_new(w, bad[i].name, bad[i].n, bad[i].len, bad[i].o));
        FAILS(w, WEFT_EARG, bad[i].says);
    }
    is_inert(weft_loader_new(NULL, "a", 3, good, &o));
    weft_loader *l = weft_loader_new(w, "a", 3, good, &o), *other = weft_loader_new(w, "b", 2, good, &o);
    weft_loader_set_state(l, weft_loader_get_state(other));
    FAILS(w, WEFT_EARG, "other sequences or options");
    weft_loader_state s = weft_loader_get_state(l);
    s.at[0] = 1;
    s.at[1] = 77;
    FAILS_AT(w, weft_loader_set_state(l, s), WEFT_EARG, "batch 77 of 2");
    cr_assert(!weft_loader_next(NULL, &size) && size == 0 && weft_loader_epoch(NULL) == 0 &&
              weft_loader_batches(NULL) == 0);
    cr_assert_eq(weft_loader_get_state(NULL).at[0], 0);
}

/* A damaged position is refused as a whole. The loader continues like one that never saw it. */
Test(loader, damaged_position_changes_nothing)
{
    for (int k = 0; k < rounds(60, 600); k++) {
        int32_t len[N];
        int64_t sizes[2], steps = (int64_t)dice(30);
        dice_lengths(len, N, 30);
        weft *w = open_on(WEFT_CPU);
        weft_loader_opts o = any_opts();
        weft_loader *l[] = { weft_loader_new(w, "x", N, len, &o), NULL };
        weft *v = open_on(WEFT_CPU);
        l[1] = weft_loader_new(v, "x", N, len, &o);
        const int32_t *last = NULL;
        for (int64_t i = 0; i < steps; i++)
            last = weft_loader_next(l[0], &sizes[0]), weft_loader_next(l[1], &sizes[1]);
        int32_t kept = last ? last[0] : 0;
        /* epoch, batch, draws; 0 draws: any number */
        const int64_t bad[][3] = { { INT64_MAX, 0, 0 },  { -1, 0, 0 },         { 1, INT64_MAX, 0 },
                                   { 1, N + 1, 0 },
                                   { 1, -2, 0 },         { 0, 0, 0 },          { INT64_MIN, -1, 0 },
                                   { INT64_MAX, -1, 0 }, { 1, 0, -1 },         { 0, -1, -1 },
                                   { 1, -1, INT64_MIN }, { 1, -1, INT64_MAX } };
        weft_loader_state s = weft_loader_get_state(l[0]), before = s;
        int which = (int)dice(COUNT(bad));
        memcpy(s.at, bad[which], sizeof bad[which]);
        s.at[2] = bad[which][2] ? bad[which][2] : (int64_t)dice(UINT64_MAX);
        int64_t batches = weft_loader_batches(l[0]);
        FAILS_AT(w, weft_loader_set_state(l[0], s), WEFT_EARG, "position");
        weft_loader_state after = weft_loader_get_state(l[0]);
        cr_assert(!memcmp(&after, &before, sizeof after) && weft_loader_batches(l[0]) == batches &&
                      (!last || last[0] == kept),
                  "position %d", which);
        same_batches(l[0], l[1], 3);
        cr_assert_eq(weft_loader_epoch(l[0]), weft_loader_epoch(l[1]));
        CLEAN(w);
        CLEAN(v);
    }
}

CPU_TEST(loader, epochs_allocate_nothing)
{
    enum { MANY = 5000 };
    static int32_t len[MANY];
    for (int i = 0; i < MANY; i++)
        len[i] = (int32_t)dice(40);
    weft_loader_opts o = { .tokens = 500 };
    weft_loader *l = weft_loader_new(w, "a", MANY, len, &o);
    int64_t before = allocations(w);
    for (int e = 0; e < 3; e++)
        run_epoch(l);
    cr_assert_eq(allocations(w), before);
}
