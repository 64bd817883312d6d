/* test_cuda_link.c - tests transfers between GPUs (core/shared/link.h) on the emulated NCCL. Ranks are
 * threads. They record failures, because Criterion's assertions work only in the first one. */
#include <pthread.h>
#include <sched.h>
#include "core/inside.h"
#include "core/report/profile.h"
#include "core/shared/link.h"
#include "cuda_emulated.h"

enum { MOST = 5, NUMBERS = 30000 };
static pthread_barrier_t all;
static char id[WEFT__LINK_ID];
static int ranks;

typedef struct rank {
    int number; weft *w; weft__device *d; weft__link *link; const weft__links *l;
    real *at[3];                                 /* [ranks, NUMBERS] of device memory */
    char why[300]; int wrong;                    /* a line number */
} rank;
#define IS(r, what) ((r)->wrong = (r)->wrong ? (r)->wrong : (what) ? 0 : __LINE__)

static void by_nccl(void)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/libnccl.so", getenv("WEFT_BACKEND_PATH"));
    setenv("WEFT_NCCL", path, 1);
    setenv("WEFT_EMU_DEVICES", "8", 1);
    setenv("WEFT_EMU_GUARD", "0", 1);            /* because threads share device memory */
}

static int when(const rank *r, int (*state)(weft__link *))         /* waits until it is not 0, at most 4 s */
{
    int64_t until = weft__now() + 4000000000;
    int is;
    while (!(is = state(r->link)) && weft__now() < until)
        sched_yield();
    return is;
}

/* ---- ranks ---- */
static void join(rank *r)
{
    char name[64] = "";
    r->l = r->d->links;
    IS(r, r->l->begin_world(r->d, r->number ? NULL : id, name, r->why, sizeof r->why));
    IS(r, !strncmp(name, "NCCL 2.", 7));
    pthread_barrier_wait(&all);
    r->link = r->l->open(r->d, id, r->number, ranks, r->why, sizeof r->why);
    IS(r, r->link && when(r, r->l->taken) == 1);
}

static void in_ranks(int n, void *(*program)(void *))
{
    rank r[MOST] = { { 0 } };
    pthread_t thread[MOST];
    by_nccl();
    ranks = n;
    pthread_barrier_init(&all, NULL, (unsigned)n);
    for (int q = 0; q < n; q++) {
        r[q].number = q;
        r[q].d = &(r[q].w = open_gpu(q))->dev;
        for (int i = 0; i < COUNT(r[q].at); i++)
            r[q].at[i] = weft__device_allocate(r[q].w, (size_t)n * NUMBERS * sizeof(real));
        cr_assert_not_null(r[q].d->links);
    }
    for (int q = 0; q < n; q++)
        cr_assert(!pthread_create(thread + q, NULL, program, r + q));
    for (int q = 0; q < n; q++)
        pthread_join(thread[q], NULL);
    for (int q = 0; q < n; q++) {
        cr_assert(!r[q].wrong, "rank %d of %d, line %d: %s", q, n, r[q].wrong, r[q].why);
        for (int i = 0; i < COUNT(r[q].at); i++)
            weft__device_release(r[q].w, r[q].at[i]);
        CLEAN(r[q].w);
    }
    pthread_barrier_destroy(&all);
}

/* ---- numbers ---- */
static real value(int from, int to, int64_t i) { return (real)(from * 1000 + to * 100) + (real)(i % 97) / 8; }

/* Sends two messages to each other rank, of n and n / 3 numbers, then adds up the received ones. */
static void exchange(rank *r, int64_t n)
{
    real *mine = r->at[0], *theirs = r->at[1], *sum = r->at[2];
    weft__device *d = r->d;
    int64_t third = n / 3;
    real host[NUMBERS];
    for (int q = 0; q < ranks; q++) {
        for (int64_t i = 0; i < n; i++)
            host[i] = value(r->number, q, i);
        d->k->upload(d, mine + q * n, host, (size_t)n * sizeof *host);
    }
    r->l->begin(r->link);
    for (int q = 0; q < ranks; q++)
        if (q != r->number) {
            r->l->receive(r->link, q, theirs + q * n, n), r->l->send(r->link, q, mine + q * n, n);
            r->l->receive(r->link, q, theirs + q * n, third), r->l->send(r->link, q, mine + q * n, third);
        }
    r->l->end(r->link);
    IS(r, when(r, r->l->taken) == 1);
    d->k->fill(d, n, 0, sum);
    for (int q = 0; q < ranks; q++)
        if (q != r->number)
            d->k->scale(d, n, 1, theirs + q * n, sum, true);
    if (IS(r, when(r, r->l->done) == 1))
        return;
    d->k->download(d, host, sum, (size_t)n * sizeof *host);
    for (int64_t i = 0; i < n; i++) {
        real is = 0;
        for (int q = 0; q < ranks; q++)
            is += q == r->number ? 0 : value(q, r->number, i);
        IS(r, host[i] == is);
    }
}

static void *exchanges(void *of)
{
    static const int64_t sizes[] = { 3, 1, 100, NUMBERS, 8192 };
    rank *r = of;
    join(r);
    for (int i = 0; i < COUNT(sizes) && !r->wrong; i++)
        exchange(r, sizes[i]);
    pthread_barrier_wait(&all);
    r->l->close(r->link);
    return NULL;
}

Test(cuda_link, exchanges_between_all_ranks_are_exact)
{
    for (int n = 2; n <= MOST; n++)
        in_ranks(n, exchanges);
}

/* ---- failures ---- */
static void *waits_in_vain(void *of)
{
    rank *r = of;
    join(r);
    if (r->number == 0) {
        r->l->begin(r->link), r->l->receive(r->link, 1, r->at[0], 64), r->l->end(r->link);
        IS(r, when(r, r->l->taken) == 1);
        for (int i = 0; i < 2000; i++)
            IS(r, r->l->done(r->link) == 0);
    }
    pthread_barrier_wait(&all);
    r->l->close(r->link);                        /* ends the wait */
    r->d->k->wait(r->d);
    return NULL;
}
Test(cuda_link, close_ends_a_wait_for_a_missing_sender) { in_ranks(2, waits_in_vain); }

static void *is_told(void *of)
{
    rank *r = of;
    join(r);
    int is = 1;
    for (int i = 0; i < 3 && is == 1; i++) {
        r->l->begin(r->link);
        if (r->number)
            r->l->receive(r->link, 0, r->at[0], 64);
        else
            r->l->send(r->link, 1, r->at[0], 64);
        r->l->end(r->link);
        is = when(r, r->l->taken);
    }
    IS(r, is == (r->number ? WEFT__LINK_FAILED : 1));
    IS(r, !r->number || !strcmp(r->l->why(r->link), "NCCL: a call: unhandled system error"));
    pthread_barrier_wait(&all);
    r->l->close(r->link);
    return NULL;
}
Test(cuda_link, failed_group_is_reported)
{
    setenv("WEFT_EMU_NCCL_FAULT", "fail:1:2", 1);
    in_ranks(2, is_told);
}

static void there_is_none(const char *library, const char *says)
{
    by_nccl();
    library ? setenv("WEFT_NCCL", library, 1) : unsetenv("WEFT_NCCL");
    char name[64], why[300] = "";
    weft *w = open_gpu(0);
    cr_assert(!w->dev.links->begin_world(&w->dev, id, name, why, sizeof why) && strstr(why, says), "%s", why);
    cr_assert_null(w->dev.links->open(&w->dev, id, 0, 2, why, sizeof why));
    CLEAN(w);
}
Test(cuda_link, missing_library_is_refused)
{
    there_is_none("/nowhere/nccl.so", "NCCL: /nowhere/nccl.so: cannot open");
}
Test(cuda_link, other_library_is_refused)
{
    there_is_none("libm.so.6", "NCCL: the library has no ncclGetVersion");
}
Test(cuda_link, can_be_switched_off) { there_is_none("off", "WEFT_NCCL=off"); }
Test(cuda_link, needs_the_name_of_a_library) { there_is_none(NULL, "NCCL: WEFT_NCCL names no library"); }
