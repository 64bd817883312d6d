/* test_cuda_link.c - tests transfers between GPUs (core/shared/link.h) on the emulated NCCL. Ranks are
 * threads. They record failures, because Criterion's assertions work only in the first one. */
#include <pthread.h>
#include <sched.h>
#include "core/shared/link.h"
#include "cuda_emulated.h"

enum { MOST = 5, NUMBERS = 30000 };
static pthread_barrier_t all;
static char id[WEFT__LINK_ID];
static int ranks;

typedef struct rank {
    int number; weft *w; weft__device *d; weft__link *link; const weft__links *l;
    real *buffer[3];                             /* [ranks, NUMBERS] of device memory */
    char why[300]; int wrong;                    /* a line number */
} rank;
#define CHECK(r, what) ((r)->wrong = (r)->wrong ? (r)->wrong : (what) ? 0 : __LINE__)

static void use_emulated_nccl(void)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/libnccl.so", getenv("WEFT_BACKEND_PATH"));
    setenv("WEFT_NCCL", path, 1);
    setenv("WEFT_EMU_DEVICES", "8", 1);
    setenv("WEFT_EMU_GUARD", "0", 1);            /* because threads share device memory */
}

static int wait_state(const rank *r, int (*state)(weft__link *))   /* waits until it is not 0, at most 4 s */
{
    int64_t until = weft__now() + 4000000000;
    int result;
    while (!(result = state(r->link)) && weft__now() < until)
        sched_yield();
    return result;
}

/* ---- ranks ---- */
static void join(rank *r)
{
    char name[64] = "";
    r->l = r->d->links;
    CHECK(r, r->l->begin_world(r->d, r->number ? NULL : id, name, r->why, sizeof r->why));
    CHECK(r, !strncmp(name, "NCCL 2.", 7));
    pthread_barrier_wait(&all);
    r->link = r->l->open(r->d, id, r->number, ranks, r->why, sizeof r->why);
    CHECK(r, r->link && wait_state(r, r->l->taken) == 1);
}

static void run_ranks(int n, void *(*program)(void *))
{
    rank r[MOST] = { { 0 } };
    pthread_t thread[MOST];
    use_emulated_nccl();
    ranks = n;
    pthread_barrier_init(&all, NULL, (unsigned)n);
    for (int q = 0; q < n; q++) {
        r[q].number = q;
        r[q].d = &(r[q].w = open_gpu(q))->dev;
        for (int i = 0; i < COUNT(r[q].buffer); i++)
            r[q].buffer[i] = weft__device_allocate(r[q].w, (size_t)n * NUMBERS * sizeof(real));
        cr_assert_not_null(r[q].d->links);
    }
    for (int q = 0; q < n; q++)
        cr_assert(!pthread_create(thread + q, NULL, program, r + q));
    for (int q = 0; q < n; q++)
        pthread_join(thread[q], NULL);
    for (int q = 0; q < n; q++) {
        cr_assert(!r[q].wrong, "rank %d of %d, line %d: %s", q, n, r[q].wrong, r[q].why);
        for (int i = 0; i < COUNT(r[q].buffer); i++)
            weft__device_release(r[q].w, r[q].buffer[i]);
        CLEAN(r[q].w);
    }
    pthread_barrier_destroy(&all);
}

/* ---- numbers ---- */
static real value(int from, int to, int64_t i) { return (real)(from * 1000 + to * 100) + (real)(i % 97) / 8; }

/* Sends two messages to each other rank, of n and n / 3 numbers, then adds up the received ones. */
static void exchange(rank *r, int64_t n)
{
    real *sent = r->buffer[0], *received = r->buffer[1], *sum = r->buffer[2];
    weft__device *d = r->d;
    int64_t third = n / 3;
    real host[NUMBERS];
    for (int q = 0; q < ranks; q++) {
        for (int64_t i = 0; i < n; i++)
            host[i] = value(r->number, q, i);
        d->k->upload(d, sent + q * n, host, (size_t)n * sizeof *host);
    }
    r->l->begin(r->link);
    for (int q = 0; q < ranks; q++)
        if (q != r->number) {
            r->l->receive(r->link, q, received + q * n, n), r->l->send(r->link, q, sent + q * n, n);
            r->l->receive(r->link, q, received + q * n, third), r->l->send(r->link, q, sent + q * n, third);
        }
    r->l->end(r->link);
    CHECK(r, wait_state(r, r->l->taken) == 1);
    d->k->fill(d, n, 0, sum);
    for (int q = 0; q < ranks; q++)
        if (q != r->number)
            d->k->scale(d, n, 1, received + q * n, sum, true);
    if (CHECK(r, wait_state(r, r->l->done) == 1))
        return;
    d->k->download(d, host, sum, (size_t)n * sizeof *host);
    for (int64_t i = 0; i < n; i++) {
        real result = 0;
        for (int q = 0; q < ranks; q++)
            result += q == r->number ? 0 : value(q, r->number, i);
        CHECK(r, host[i] == result);
    }
}

static void *exchanges(void *user)
{
    static const int64_t sizes[] = { 3, 1, 100, NUMBERS, 8192 };
    rank *r = user;
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
        run_ranks(n, exchanges);
}

/* ---- failures ---- */
static void *receive_without_sender(void *user)
{
    rank *r = user;
    join(r);
    if (r->number == 0) {
        r->l->begin(r->link), r->l->receive(r->link, 1, r->buffer[0], 64), r->l->end(r->link);
        CHECK(r, wait_state(r, r->l->taken) == 1);
        for (int i = 0; i < 2000; i++)
            CHECK(r, r->l->done(r->link) == 0);
    }
    pthread_barrier_wait(&all);
    r->l->close(r->link);                        /* ends the wait */
    r->d->k->wait(r->d);
    return NULL;
}
Test(cuda_link, close_ends_a_wait_for_a_missing_sender) { run_ranks(2, receive_without_sender); }

static void *fail_group(void *user)
{
    rank *r = user;
    join(r);
    int result = 1;
    for (int i = 0; i < 3 && result == 1; i++) {
        r->l->begin(r->link);
        if (r->number)
            r->l->receive(r->link, 0, r->buffer[0], 64);
        else
            r->l->send(r->link, 1, r->buffer[0], 64);
        r->l->end(r->link);
        result = wait_state(r, r->l->taken);
    }
    CHECK(r, result == (r->number ? WEFT__LINK_FAILED : 1));
    CHECK(r, !r->number || !strcmp(r->l->why(r->link), "NCCL: a call: unhandled system error"));
    pthread_barrier_wait(&all);
    r->l->close(r->link);
    return NULL;
}
Test(cuda_link, failed_group_is_reported)
{
    setenv("WEFT_EMU_NCCL_FAULT", "fail:1:2", 1);
    run_ranks(2, fail_group);
}

static void check_unavailable(const char *library, const char *text)
{
    use_emulated_nccl();
    library ? setenv("WEFT_NCCL", library, 1) : unsetenv("WEFT_NCCL");
    char name[64], why[300] = "";
    weft *w = open_gpu(0);
    cr_assert(!w->dev.links->begin_world(&w->dev, id, name, why, sizeof why) && strstr(why, text), "%s", why);
    cr_assert_null(w->dev.links->open(&w->dev, id, 0, 2, why, sizeof why));
    CLEAN(w);
}
Test(cuda_link, missing_library_is_refused)
{
    check_unavailable("/nowhere/nccl.so", "NCCL: /nowhere/nccl.so: cannot open");
}
Test(cuda_link, other_library_is_refused)
{
    check_unavailable("libm.so.6", "NCCL: the library has no ncclGetVersion");
}
Test(cuda_link, can_be_switched_off) { check_unavailable("off", "WEFT_NCCL=off"); }
Test(cuda_link, needs_the_name_of_a_library) { check_unavailable(NULL, "NCCL: WEFT_NCCL names no library"); }
