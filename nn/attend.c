/* attend.c - from the queries and the memory that a program has to the ragged ones that attention works
 * on, and back. */
#include "nn/attention.h"

/* itself if it is neither ragged nor of a rank that can be taken so */
static weft_tensor *as_ragged(weft_tensor *x)
{
    if (x->f.batch || x->f.type != WEFT_REAL || (x->f.rank != 2 && x->f.rank != 3))
        return x;
    return weft__as_batch(x, "attention", x->f.size[0], x->f.rank == 3 ? x->f.size[1] : 1);
}

static bool memory_is_ragged(weft_tensor *memory)
{
    return as_ragged(memory)->f.batch && !(memory->f.rank == 2 && !memory->f.batch);
}

static bool batches_fit(weft_tensor *q, weft_tensor *memory)
{
    weft *w = q->w;
    const char *wrong = weft__wrong(w, memory);
    char text[2][128];
    if (wrong)
        weft__fail(w, WEFT_EARG, "attention: the memory %s", wrong);
    else if (as_ragged(q)->f.rank != 2 || !as_ragged(q)->f.batch || !memory_is_ragged(memory))
        weft__fail(w, WEFT_ESHAPE,
                   "attention: query %s, memory %s: a query of rank 2 (or plain of rank 3) and a memory, "
                   "ragged of rank 2 or plain of "
                   "rank 3, are expected",
                   weft__text(&q->f, text[0]), weft__text(&memory->f, text[1]));
    else if (as_ragged(q)->f.batch->n != as_ragged(memory)->f.batch->n)
        weft__fail(w, WEFT_ESHAPE, "attention: %s %lld, but the memory has %lld sequences",
                   q->f.batch ? "sequences of queries:" : "plain queries, one a sequence:",
                   (long long)as_ragged(q)->f.batch->n, (long long)as_ragged(memory)->f.batch->n);
    return !w->status;
}

static weft_tensor *plain_like(weft_tensor *y, const weft_tensor *q)
{
    weft__form f = q->f;
    if (!y->f.batch)                             /* it has failed */
        return y;
    f.size[f.rank - 1] = width(y);
    return weft__view(weft_to_layout(y, WEFT_CONCAT), &f);
}

static weft_tensor *attend(weft__asked a, weft_tensor *q, weft_attention_memory memory, weft_causal causal,
                           weft_tensor **map)
{
    weft_tensor *y = weft__refused(a.m, q, a.name);
    if (map)
        *map = y ? y : &q->w->nil;
    if (y)
        return y;
    const weft_module *before = weft__enter(a.m);
    y = &q->w->nil;
    if (batches_fit(q, memory.keys) && (memory.values == memory.keys || batches_fit(q, memory.values))) {
        memory = (weft_attention_memory){ as_ragged(memory.keys),
                                          a.project ? NULL : as_ragged(memory.values) };
        y = a.how(a.layer, as_ragged(q), memory, causal, map);
    }
    y = q->f.batch ? y : plain_like(y, q);
    weft__leave(a.m, before);
    return y;
}

weft_tensor *weft__attend(weft__asked a, weft_tensor *q, weft_tensor *memory, weft_causal causal,
                          weft_tensor **map)
{
    return attend(a, q, (weft_attention_memory){ memory, memory }, causal, map);
}

weft_tensor *weft__attend_projected(weft__asked a, weft_tensor *q, weft_attention_memory memory,
                                    weft_causal causal, weft_tensor **map)
{
    a.project = NULL;
    return attend(a, q, memory, causal, map);
}

weft_attention_memory weft__project_memory(weft__asked a, weft_tensor *memory)
{
    weft_tensor *y = weft__refused(a.m, memory, a.name);
    char text[128];
    if (y)
        return (weft_attention_memory){ y, y };
    weft *w = memory->w;
    const weft_module *before = weft__enter(a.m);
    weft_attention_memory projected = { &w->nil, &w->nil };
    if (!memory_is_ragged(memory))
        weft__fail(w, WEFT_ESHAPE, "attention: memory %s: ragged of rank 2 or plain of rank 3 is expected",
                   weft__text(&memory->f, text));
    else
        projected = a.project(a.layer, as_ragged(memory));
    weft__leave(a.m, before);
    return projected;
}
