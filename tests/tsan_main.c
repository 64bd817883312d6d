/* tsan_main.c - runs weft's threads as a plain program, because Criterion does not start under
 * ThreadSanitizer.
 *
 * It tests the pool, then two threads that each train a model in a separate context, on every kernel table.
 * Both contexts have the same seed, so their losses must have equal bits, and must decrease. */
#include <pthread.h>
#include <stdlib.h>
#include "core/inside.h"
#include "tables.h"

enum { STEPS = 4, SEQUENCES = 12, LONGEST = 17, CLASSES = 9, WIDTH = 24, TASKS = 64 };

typedef struct {
    weft_embedding *embed;
    weft_rnn *lstm, *gru;
    weft_attention_layer *attention;
    weft_linear *out;
    weft_module *all;
} model;
typedef struct { const struct table *table; double loss[STEPS]; bool good; } trainer;

static model build(weft *w)
{
    model m = { .all = weft_module_new(w, "m") };
    m.embed = weft_embedding_new(m.all, "embed", &(weft_embedding_opts){ .rows = CLASSES, .columns = WIDTH });
    m.lstm = weft_lstm_new(m.all, "lstm",
                           &(weft_rnn_opts){ .input = WIDTH,
                                             .hidden = WIDTH / 2,
                                             .bidirectional = true,
                                             .dropout = (weft_real).1,
                                             .layers = 2 });
    m.gru = weft_gru_new(m.all, "gru", &(weft_rnn_opts){ .input = WIDTH, .hidden = WIDTH });
    m.attention = weft_attention_new(
        m.all, "attention",
        &(weft_attention_layer_opts){ .kind = WEFT_MULTIHEAD, .width = WIDTH, .heads = 2 });
    m.out = weft_linear_new(m.all, "out", &(weft_linear_opts){ .in = WIDTH, .out = CLASSES });
    return m;
}

static weft_tensor *loss_of(weft *w, const model *m)
{
    int32_t ids[SEQUENCES * LONGEST], len[SEQUENCES];
    for (int s = 0; s < SEQUENCES; s++)
        len[s] = (s * 7 + 3) % (LONGEST + 1);
    for (int i = 0; i < SEQUENCES * LONGEST; i++)
        ids[i] = i * 5 % CLASSES;
    weft_tensor *x = weft_ragged_ints(w, ids, &(weft_lengths){ .n = SEQUENCES, .len = len });
    weft_tensor *h = weft_rnn_run(m->lstm, weft_embedding_run(m->embed, x), WEFT_ZERO_STATE).y;
    h = weft_add(h, weft_attention_run(m->attention, h, h, WEFT_CAUSAL_TOP_LEFT, NULL));
    h = weft_rnn_run(m->gru, h, WEFT_ZERO_STATE).y;
    return weft_mean_loss(weft_cross_entropy(weft_linear_run(m->out, h), x, NULL));
}

static weft *open_here(const struct table *table)
{
    return weft_open(&(weft_opts){ .device = table->device, .seed = 7, .threads = 3 });
}

static void *train(void *argument)
{
    trainer    *t = argument;
    weft       *w = open_here(t->table);
    model       m = build(w);
    weft_optim *o = weft_adam_new(
        m.all, &(weft_adam_opts){ (weft_real).01, (weft_real).9, (weft_real).99, (weft_real)1e-8, 0 });
    for (int i = 0; i < STEPS; i++) {
        weft_tensor *loss = loss_of(w, &m);
        weft_backward(loss);
        weft_clip_grad_norm(m.all, 1, 0);
        weft_optim_step(o);
        t->loss[i] = (double)weft_item(loss);
        weft_clear(w);
    }
    t->good = weft_ok(w) && t->loss[STEPS - 1] < t->loss[0];
    if (!t->good)
        printf("FAIL  training on %s: loss %g to %g, %s\n", t->table->name, t->loss[0], t->loss[STEPS - 1],
               weft_error_message(w));
    weft_close(w);
    return NULL;
}

static bool two_trainers(const struct table *table)
{
    pthread_t thread[2];
    trainer   t[2] = { { .table = table }, { .table = table } };
    for (int i = 0; i < 2; i++)
        if (pthread_create(&thread[i], NULL, train, &t[i]))
            return false;
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    bool same = !memcmp(t[0].loss, t[1].loss, sizeof t[0].loss);
    if (!same)
        printf("FAIL  two contexts of one seed on %s: losses %.9g and %.9g\n", table->name,
               t[0].loss[STEPS - 1], t[1].loss[STEPS - 1]);
    return same && t[0].good && t[1].good;
}

/* Plain memory that the tasks write, read after them. Only the pool's barrier makes this valid. */
static void square(void *argument, int64_t i) { ((int64_t *)argument)[i] += i * i; }

static bool pool_alone(void)
{
    weft   *w = open_here(&tables[0]);
    int64_t sum[TASKS] = { 0 };
    bool    good = true;
    for (int round = 1; round <= 200; round++) {
        weft__parallel(&w->dev, TASKS, square, sum);
        for (int64_t i = 0; i < TASKS; i++)
            good &= sum[i] == round * i * i;
    }
    weft_close(w);
    if (!good)
        printf("FAIL  the pool lost a task\n");
    return good;
}

int main(void)
{
    int good = pool_alone(), all = 1;
    for (int i = 0; i < COUNT(tables); i++) {
        if (!table_is_here(tables[i].name))
            continue;
        if (tables[i].tier)
            setenv("WEFT_ISA", tables[i].name, 1);
        else
            unsetenv("WEFT_ISA");
        good += two_trainers(&tables[i]);
        all++;
    }
    printf("%d of %d threaded programs hold\n", good, all);
    return good != all;
}
