/* state.h - a checksum of all that a checkpoint keeps of a module, an optimiser and the random streams. */
#ifndef WEFT_TESTS_STATE_H
#define WEFT_TESTS_STATE_H
#include "io/checkpoint/checkpoint.h"
#include "io/hdf5/hdf5.h"

static inline uint32_t crc_of(uint32_t crc, weft *w, const void *at, size_t n, bool device)
{
    if (!device || !n)
        return weft__crc32c(crc, at, n);
    void *host = malloc(n);
    w->dev.k->download(&w->dev, host, at, n);
    crc = weft__crc32c(crc, host, n);
    free(host);
    return crc;
}

/* Parameters, optimiser and streams. The order of streams and an unused stream are not state. */
static inline uint32_t learnt_state(weft_module *m, weft_optim *o)
{
    uint32_t crc = 0, streams = 0;
    for (weft__parameter *p = m->root->first; p; p = p->next_in_root)
        crc = crc_of(crc, m->w, p->value.data, p->tied ? 0 : (size_t)weft__bytes(&p->value.f), true);
    weft__saved all[32];
    int n = weft__optim_entries(o, all, 32);
    for (int i = 0; i < n; i++)
        crc = crc_of(crc, m->w, all[i].data,
                     (size_t)all[i].n * weft__number_bytes(weft__number_of(all[i].type)), all[i].device);
    for (weft_stream *s = m->w->random.streams; s; s = s->next)
        if (s->count)
            streams += weft__crc32c(weft__crc32c(s->key & 0xFFFFFFFF, s->name, strlen(s->name)), &s->count,
                                    sizeof s->count);
    return crc ^ streams;
}

/* Also the seed and the number of the step. */
static inline uint32_t saved_state(weft_module *m, weft_optim *o)
{
    const weft__draws *r = &m->w->random;
    return weft__crc32c(weft__crc32c(learnt_state(m, o), &r->seed, sizeof r->seed), &r->draw, sizeof r->draw);
}
#endif
