/* layer.c - makes a recurrent layer by its name, and times it on the first batches of a plan. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "weft_op.h"
#include "weft_plan.h"
#include "tools/options.h"
#include "tools/plan/cost.h"

static const struct {
    const char *name;
    weft_rnn *(*make)(weft_module *, const char *, const weft_rnn_opts *);
} cells[] = { { "lstm", weft_lstm_new },
              { "gru", weft_gru_new },
              { "elman", weft_elman_new },
              { "cifg", weft_cifg_new },
              { "mgu", weft_mgu_new },
              { "attention", NULL } };
enum { CELLS = sizeof cells / sizeof *cells, MOST_UNITS = 4096 };

static const char *cell_of(const char *text)
{
    size_t n = strcspn(text, ":");
    for (int i = 0; i < CELLS; i++)
        if (strlen(cells[i].name) == n && !strncmp(cells[i].name, text, n))
            return cells[i].name;
    return NULL;
}

bool is_layer(const char *text) { return cell_of(text) != NULL; }

bool parse_layer(const char *text, int threads, layer_asked *out)
{
    size_t n = strcspn(text, ":");
    *out = (layer_asked){ .hidden = 128, .threads = threads };
    if (!(out->cell = cell_of(text)))
        return say_failure("plan: --explain: found cell \"%.*s\"; expected lstm, gru, elman, cifg, mgu or "
                           "attention",
                           n < 40 ? (int)n : 40, text);
    if (text[n] && !parse_whole(text + n + 1, 1, MOST_UNITS, &out->hidden))
        return say_failure("plan: --explain: found \"%.40s\"; expected CELL:UNITS, one layer of 1 .. %d "
                           "units",
                           text, MOST_UNITS);
    return true;
}

bool is_attention(const layer_asked *a) { return !strcmp(a->cell, "attention"); }

/* Heads of attention have 64 units, if that divides the width. */
static costed_layer make_layer(const layer_asked *a, weft_module *m)
{
    const weft_rnn_opts o = { .input = a->hidden, .hidden = a->hidden };
    const weft_attention_layer_opts of_attention = {
        .width = a->hidden, .heads = a->hidden % 64 ? 1 : (int)a->hidden / 64
    };
    int i = 0;
    if (is_attention(a))
        return (costed_layer){ .attention = weft_attention_new(m, "layer", &of_attention) };
    while (i < CELLS - 2 && strcmp(cells[i].name, a->cell))
        i++;
    return (costed_layer){ .rnn = cells[i].make(m, "layer", &o) };
}

weft_tensor *run_costed(const costed_layer *l, weft_tensor *x)
{
    return l->rnn ? weft_rnn_run(l->rnn, x, WEFT_ZERO_STATE).y :
                    weft_attention_run(l->attention, x, x, WEFT_ALL_KEYS, NULL);
}

double work_seconds(const weft *w)
{
    bool one = weft_threads(w) == 1 && strncmp(weft_device_name(w), "cuda", 4);
    return one ? cpu_seconds() : seconds_now();
}

/* ---- running a plan ---- */
/* Returns a view of the shortest start of a plan with at least `tokens` tokens. */
static weft_plan begin_of(const weft_plan *p, int64_t tokens)
{
    weft_plan part = *p;
    int64_t n = 0, i = 0;
    for (part.batches = 0; part.batches < p->batches && n < tokens; part.batches++)
        for (; i < p->batch[part.batches].first + p->batch[part.batches].n; i++)
            n += p->segment[i].length;
    part.segments = i;
    return part;
}

void make_rows(const weft_dataset *source, int64_t width, weft_dataset *out)
{
    int64_t n = (source->n ? source->offset[source->n] : 0) * width;
    *out = (weft_dataset){ .n = source->n, .columns = width, .len = source->len, .offset = source->offset };
    out->rows = get_memory(n, sizeof *out->rows);
    for (int64_t i = 0; i < n; i++)
        out->rows[i] = (weft_real)((double)(i * 7919 % 1009) / 1009 - .5);
}

bool open_run(const layer_asked *a, const weft_plan *plan, int64_t tokens, bool padded, layer_run *t)
{
    *t = (layer_run){ .part = begin_of(plan, tokens), .padded = padded };
    t->w = weft_open(&(weft_opts){ .seed = 1, .threads = a->threads });
    t->m = weft_module_new(t->w, "layer");
    t->layer = make_layer(a, t->m);
    t->scale = weft_parameter(t->m, "scale", WEFT_SHAPE(a->hidden), (weft_init){ WEFT_INIT_NORMAL, 0, 1 });
    t->least = get_memory(t->part.batches, sizeof *t->least);
    for (int64_t b = 0; b < t->part.batches; b++)
        t->least[b] = HUGE_VAL;
    if (t->layer.rnn)
        t->kept = weft_carried_new(t->m, "kept", t->layer.rnn, &t->part);
    return weft_ok(t->w);
}

void run_layer(layer_run *t, const weft_dataset *data)
{
    t->ms = 0;
    for (int64_t b = 0; b < t->part.batches; b++) {
        double start = work_seconds(t->w);
        weft_plan_step s = weft_plan_step_of(t->w, &t->part, b);
        weft_tensor *x = weft_mul(weft_plan_tokens(&s, data, 0, 0), t->scale), *y;
        if (t->padded)
            y = run_costed(&t->layer, weft_pad_packed_sequence(x, 0, 0, WEFT_ALIGN_LEFT));
        else
            y = t->layer.rnn ? weft_rnn_run_plan(t->layer.rnn, x, &s, t->kept).y : run_costed(&t->layer, x);
        weft_backward(weft_sum_all(y));
        weft_synchronize(t->w);
        t->least[b] = fmin(t->least[b], 1e3 * (work_seconds(t->w) - start));
        weft_zero_grad(t->m);
        weft_clear(t->w);
        t->ms += t->least[b];
    }
}

void close_run(layer_run *t)
{
    weft_close(t->w);
    free(t->least);
}
