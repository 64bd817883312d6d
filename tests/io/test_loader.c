/* test_loader.c - the loader: every sequence once an epoch, budgets kept, batches of similar length,
 * positions that come back. */
#include "tests/check.h"
#include "core/inside.h"
#include "io/io.h"

static weft_loader_opts any_opts(void)
{
    weft_loader_opts o = { .count = (int64_t)dice(2) * (int64_t)(1 + dice(9)),
                           .pool = (int)dice(8),
                           .keep_order = dice(4) == 0 };
    o.tokens = o.count && dice(2) ? 0 : (int64_t)(1 + dice(60));
    return o;
}

/* One epoch; each sequence must come once. Appends the indices to out (or NULL). */
static int64_t run_epoch(weft_loader *l, int64_t n, const int32_t *len, const weft_loader_opts *o,
                         int32_t *out)
{
    int64_t size, batches = 0, all = 0;
    char *seen = calloc((size_t)n + 1, 1);
    for (const int32_t *b; (b = weft_loader_next(l, &size)); batches++) {
        int64_t tokens = 0;
        cr_assert(size > 0 && (!o->count || size <= o->count));
        for (int64_t i = 0; i < size; i++) {
            cr_assert(b[i] >= 0 && b[i] < n && !seen[b[i]]++);
            tokens += len[b[i]];
            if (o->keep_order)
                cr_assert_eq(b[i], all);
            else if (i)
                /* sorted within the pool, so within the batch */
                cr_assert_leq(len[b[i - 1]], len[b[i]]);
            if (out)
                out[all] = b[i];
            all++;
        }
        cr_assert(!o->tokens || tokens <= o->tokens || size == 1, "%lld tokens of at most %lld",
                  (long long)tokens, (long long)o->tokens);
    }
    cr_assert(all == n && size == 0 && batches == weft_loader_batches(l));
    free(seen);
    return batches;
}

/* What could not be made is no loader, but may be used as one. */
static void is_inert(weft_loader *l)
{
    int64_t size = 7;
    cr_assert(l && !weft_loader_next(l, &size) && size == 0 && weft_loader_batches(l) == 0 &&
              weft_loader_epoch(l) == 0);
    weft_loader_set_state(l, (weft_loader_state){ { 1, 1, 1, 1 } });
    weft_loader_state s = weft_loader_get_state(l);
    cr_assert(!s.at[0] && !s.at[1] && !s.at[2] && !s.at[3]);
}

static const char *numbered(int k)
{
    static char name[24];
    snprintf(name, sizeof name, "number %d", k);
    return name;
}

Test(loader, a_name_is_one_loaders)
{
    const int32_t len[] = { 1, 2, 3 };
    const weft_loader_opts o = { .count = 2 };
    weft *w = open_on(WEFT_CPU), *other = open_on(WEFT_CPU);
    weft_loader *l = weft_loader_new(w, "train", 3, len, &o);
    cr_assert(l && weft_loader_new(w, "dev", 3, len, &o) && weft_loader_new(other, "train", 3, len, &o));
    is_inert(weft_loader_new(w, "train", 2, len, &o));
    FAILS(w, WEFT_EARG, "loader \"train\": there is one of that name");
    for (int n = 1; n < 4; n++) {                /* one that could not be made has no name */
        fail_in(w, n);
        is_inert(weft_loader_new(w, "late", 3, len, &o));
        FAILS(w, WEFT_ENOMEM, "out of memory");
    }
    fail_in(w, 0);
    cr_assert_eq(run_epoch(weft_loader_new(w, "late", 3, len, &o), 3, len, &o, NULL), 2);
    CLEAN(w);
    CLEAN(other);
}

Test(loader, each_sequence_once_an_epoch)
{
    weft *w = open_on(WEFT_CPU);
    for (int k = 0; k < rounds(300, 5000); k++) {
        int32_t len[200];
        int64_t n = (int64_t)dice(200);
        dice_lengths(len, n, 30);
        weft_loader_opts o = any_opts();
        weft_loader *l = weft_loader_new(w, numbered(k), n, len, &o);
        OK(w);
        cr_assert_eq(weft_loader_epoch(l), 0);
        for (int e = 1; e <= 3; e++) {
            run_epoch(l, n, len, &o, NULL);
            cr_assert_eq(weft_loader_epoch(l), e);
        }
    }
    CLEAN(w);
}

Test(loader, pools_make_batches_even_and_shuffling_differs)
{
    enum { N = 6400, B = 64 };
    static int32_t len[N], first[N], second[N];
    weft *w = open_on(WEFT_CPU);
    for (int i = 0; i < N; i++)
        len[i] = 1 + (int32_t)dice(50);
    for (int pool = 1; pool <= 100; pool *= 10) {
        weft_loader_opts o = { .count = B, .pool = pool };
        weft_loader *l = weft_loader_new(w, numbered(pool), N, len, &o);
        cr_assert_eq(run_epoch(l, N, len, &o, first), N / B);
        run_epoch(l, N, len, &o, second);
        cr_assert(memcmp(first, second, sizeof first));
        int64_t cells = 0, tokens = 0, ordered = 0;
        for (int b = 0; b < N / B; b++) {
            int32_t most = 0;
            for (int i = 0; i < B; i++) {
                most = len[first[b * B + i]] > most ? len[first[b * B + i]] : most;
                tokens += len[first[b * B + i]];
            }
            cells += (int64_t)most * B;
            ordered += b && len[first[b * B]] >= len[first[b * B - B]];
        }
        double fill = (double)tokens / (double)cells;
        cr_assert(pool == 1  ? fill < 0.6 :
                  pool == 10 ? fill > 0.85 :
                               fill > 0.97,
                  "pool %d: %.3f full", pool, fill);
        cr_assert(ordered > 20 && ordered < 90, "%lld of 99 neighbours in order: batches must be shuffled",
                  (long long)ordered);
    }
    CLEAN(w);
}

Test(loader, resumes_in_mid_epoch)
{
    for (int k = 0; k < rounds(100, 2000); k++) {
        int32_t len[120], straight[1000], resumed[1000];
        int64_t n = 1 + (int64_t)dice(119), size, stop = (int64_t)dice(60), a = 0, b = 0, steps = 80;
        dice_lengths(len, n, 30);
        weft_loader_opts o = any_opts();
        weft_loader_state state = { { 0 } };
        weft *w = open_on(WEFT_CPU);
        weft_loader *l = weft_loader_new(w, "x", n, len, &o);
        for (int64_t i = 0; i <= steps; i++) {
            if (i == stop)
                state = weft_loader_get_state(l);
            const int32_t *batch = weft_loader_next(l, &size);
            if (i >= stop && a < 900)
                straight[a++] = batch ? batch[0] : -1;
        }
        CLEAN(w);
        w = open_on(WEFT_CPU);                   /* another process */
        l = weft_loader_new(w, "x", n, len, &o);
        if (dice(2))
            weft_loader_next(l, &size);
        weft_loader_set_state(l, state);
        for (int64_t i = stop; i <= steps; i++) {
            const int32_t *batch = weft_loader_next(l, &size);
            if (b < 900)
                resumed[b++] = batch ? batch[0] : -1;
        }
        cr_assert(a == b && !memcmp(straight, resumed, (size_t)a * sizeof *straight));
        CLEAN(w);
    }
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
        cr_assert(!weft_loader_epoch(asked) && w->random.streams->count == 0, "asking has drawn");
        weft_loader_state a = weft_loader_get_state(asked), b = weft_loader_get_state(not);
        cr_assert(!memcmp(&a, &b, sizeof a));
        same_batches(asked, not, 1);
        cr_assert(weft_loader_batches(asked) == before && w->random.streams->count == v->random.streams->count);
        /* between two epochs of one that is restored: the next one's */
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
Test(loader, a_plan_follows_its_stream)
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

Test(loader, refuses)
{
    weft *w = open_on(WEFT_CPU);
    int32_t len[] = { 1, 2, -3 }, good[] = { 1, 2, 3 };
    int64_t size;
    weft_loader_opts o = { .count = 2 }, none = { 0 }, negative = { .count = -1 };
    is_inert(weft_loader_new(w, "a", 3, len, &o));
    FAILS(w, WEFT_EARG, "sequence 2 has length -3");
    is_inert(weft_loader_new(w, "a", 3, good, &none));
    FAILS(w, WEFT_EARG, "count or tokens");
    is_inert(weft_loader_new(w, "a", 3, good, &negative));
    FAILS(w, WEFT_EARG, "none negative");
    is_inert(weft_loader_new(w, "a", 3, good, NULL));
    FAILS(w, WEFT_EARG, "count or tokens");
    is_inert(weft_loader_new(w, NULL, 3, good, &o));
    FAILS(w, WEFT_EARG, "a name");
    is_inert(weft_loader_new(w, "a", -1, good, &o));
    FAILS(w, WEFT_EARG, "-1 sequences");
    is_inert(weft_loader_new(w, "a", 3, NULL, &o));
    FAILS(w, WEFT_EARG, "without lengths");
    is_inert(weft_loader_new(NULL, "a", 3, good, &o));
    weft_loader *l = weft_loader_new(w, "a", 3, good, &o), *other = weft_loader_new(w, "b", 2, good, &o);
    weft_loader_set_state(l, weft_loader_get_state(other));
    FAILS(w, WEFT_EARG, "other sequences or options");
    weft_loader_state s = weft_loader_get_state(l);
    s.at[0] = 1, s.at[1] = 77;
    weft_loader_set_state(l, s);
    FAILS(w, WEFT_EARG, "batch 77 of 2");
    cr_assert(!weft_loader_next(NULL, &size) && size == 0 && weft_loader_epoch(NULL) == 0 &&
              weft_loader_batches(NULL) == 0);
    weft_loader_set_state(NULL, s);
    cr_assert_eq(weft_loader_get_state(NULL).at[0], 0);
    CLEAN(w);
}

/* What is damaged is refused whole: the loader gives what another gives that was never asked. */
Test(loader, a_damaged_position_changes_nothing)
{
    enum { N = 40 };
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
        weft_loader_set_state(l[0], s);
        FAILS(w, WEFT_EARG, "the position");
        weft_loader_state after = weft_loader_get_state(l[0]);
        cr_assert(!memcmp(&after, &before, sizeof after) && weft_loader_batches(l[0]) == batches &&
                      (!last || last[0] == kept),
                  "position %d", which);
        for (int i = 0; i < 60; i++) {
            const int32_t *a = weft_loader_next(l[0], &sizes[0]), *b = weft_loader_next(l[1], &sizes[1]);
            cr_assert(!a == !b && sizes[0] == sizes[1] && (!a || !memcmp(a, b, (size_t)sizes[0] * sizeof *a)),
                      "position %d, batch %d", which, i);
        }
        cr_assert_eq(weft_loader_epoch(l[0]), weft_loader_epoch(l[1]));
        CLEAN(w);
        CLEAN(v);
    }
}

Test(loader, allocates_nothing_once_made)
{
    enum { N = 5000 };
    static int32_t len[N];
    weft *w = open_on(WEFT_CPU);
    for (int i = 0; i < N; i++)
        len[i] = (int32_t)dice(40);
    weft_loader_opts o = { .tokens = 500 };
    weft_loader *l = weft_loader_new(w, "a", N, len, &o);
    int64_t before = allocations(w);
    for (int e = 0; e < 3; e++)
        run_epoch(l, N, len, &o, NULL);
    cr_assert_eq(allocations(w), before);
    CLEAN(w);
}
