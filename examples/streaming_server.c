/* streaming_server.c - lines of requests and the threads behind them; see streaming_server.h. */
#include <pthread.h>
#include <stdlib.h>
#include "common/program.h"
#include "streaming_server.h"

enum { MICROSECONDS = 1 << 14 };                 /* longer ones are counted as so many */
/* a list with its end */
typedef struct { user *first, **end; } line;
typedef struct {
    server *of;
    pthread_t id;
    pthread_cond_t asked;
    line waiting;
    model m;
    served done;
    int64_t after[MICROSECONDS + 1];             /* answers after so many microseconds */
} worker;
struct server {
    pthread_mutex_t lock;                        /* of all lines */
    pthread_cond_t some_answered, opened;
    line answered;
    settings how;
    int64_t batch;
    int threads, ready;
    bool closing;
    worker *worker;
};

static void line_clear(line *l) { l->first = NULL, l->end = &l->first; }
static void line_add(line *l, user *u)
{
    u->next = NULL;
    *l->end = u, l->end = &u->next;
}
static user *line_take(line *l)
{
    user *u = l->first;
    if (u && !(l->first = u->next))
        l->end = &l->first;
    return u;
}

/* ---- a thread ---- */
/* What is there, up to a batch; none: the server closes. */
static int64_t take_batch(worker *t, user **users)
{
    server *s = t->of;
    int64_t n = 0;
    pthread_mutex_lock(&s->lock);
    while (!t->waiting.first && !s->closing)
        pthread_cond_wait(&t->asked, &s->lock);
    while (n < s->batch && (users[n] = line_take(&t->waiting)))
        n++;
    pthread_mutex_unlock(&s->lock);
    return n;
}

static void answer(worker *t, user *const *users, int64_t n)
{
    server *s = t->of;
    double now = seconds();
    for (int64_t i = 0; i < n; i++) {
        double us = (now - users[i]->asked) * 1e6;
        t->after[us < MICROSECONDS ? (int64_t)us : MICROSECONDS]++;
    }
    pthread_mutex_lock(&s->lock);
    t->done.steps++, t->done.answers += n;
    for (int64_t i = 0; i < n; i++)
        line_add(&s->answered, users[i]);
    pthread_cond_signal(&s->some_answered);
    pthread_mutex_unlock(&s->lock);
}

static void *work(void *argument)
{
    worker *t = argument;
    server *s = t->of;
    size_t most = (size_t)s->batch;
    t->m = model_open(&s->how, s->batch);
    pthread_mutex_lock(&s->lock);
    s->ready++;
    pthread_cond_signal(&s->opened);
    pthread_mutex_unlock(&s->lock);
    user **users = memory(most, sizeof *users);
    state **states = memory(most, sizeof *states);
    int32_t *token = memory(most, sizeof *token), *likeliest = memory(most, sizeof *likeliest);
    for (int64_t n; (n = take_batch(t, users));) {
        for (int64_t i = 0; i < n; i++)
            states[i] = &users[i]->s, token[i] = users[i]->token;
        model_step(&t->m, n, states, token, likeliest);
        for (int64_t i = 0; i < n; i++)
            users[i]->answer = likeliest[i];
        answer(t, users, n);
    }
    free(users), free(states), free(token), free(likeliest);
    return NULL;
}

/* ---- the server ---- */
server *server_open(const settings *how, int threads, int64_t batch)
{
    server *s = memory(1, sizeof *s);
    *s = (server){ .how = *how, .batch = batch, .threads = threads };
    s->worker = memory((size_t)threads, sizeof *s->worker);
    line_clear(&s->answered);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->some_answered, NULL), pthread_cond_init(&s->opened, NULL);
    for (int i = 0; i < threads; i++) {
        worker *t = &s->worker[i];
        t->of = s;
        line_clear(&t->waiting);
        pthread_cond_init(&t->asked, NULL);
        if (pthread_create(&t->id, NULL, work, t))
            quit(1, "no thread %d", i + 1);
    }
    pthread_mutex_lock(&s->lock);
    while (s->ready < threads)
        pthread_cond_wait(&s->opened, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return s;
}

void server_close(server *s)
{
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    for (int i = 0; i < s->threads; i++)
        pthread_cond_signal(&s->worker[i].asked);
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < s->threads; i++) {
        pthread_join(s->worker[i].id, NULL);
        model_close(&s->worker[i].m);
        pthread_cond_destroy(&s->worker[i].asked);
    }
    pthread_cond_destroy(&s->some_answered), pthread_cond_destroy(&s->opened);
    pthread_mutex_destroy(&s->lock);
    free(s->worker), free(s);
}

const model *server_model(const server *s, int thread) { return &s->worker[thread].m; }

void server_ask(server *s, user *u)
{
    worker *t = &s->worker[u->thread];
    u->asked = seconds();
    pthread_mutex_lock(&s->lock);
    line_add(&t->waiting, u);
    pthread_cond_signal(&t->asked);
    pthread_mutex_unlock(&s->lock);
}

user *server_answered(server *s, bool wait)
{
    pthread_mutex_lock(&s->lock);
    while (wait && !s->answered.first)
        pthread_cond_wait(&s->some_answered, &s->lock);
    user *all = s->answered.first;
    line_clear(&s->answered);
    pthread_mutex_unlock(&s->lock);
    return all;
}

served server_served(const server *s)
{
    served all = { 0 };
    for (int i = 0; i < s->threads; i++)
        all.steps += s->worker[i].done.steps, all.answers += s->worker[i].done.answers;
    return all;
}

double server_within(const server *s, double share)
{
    int64_t needed = (int64_t)(share * (double)server_served(s).answers), so_far = 0, us = 0;
    for (; us < MICROSECONDS && so_far <= needed; us++)
        for (int i = 0; i < s->threads; i++)
            so_far += s->worker[i].after[us];
    return (double)us;
}
