/* random.c - named random streams: Philox4x32-10 with a key from (seed, name) and a counter. Draw i of a
 * stream is word pair i % 2 of block i / 2, so the kernel `random` can compute n draws in one call. All
 * instruction sets use the version in this file. */
#include <stdlib.h>
#include <string.h>
#include "core/cpu/cpu.h"
#include "core/inside.h"
#include "core/shared/normal.h"

/* Hashes with FNV-1a, then mixes in the seed (finaliser of splitmix64). */
uint64_t weft__hash(uint64_t seed, const char *text)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001B3u;
    h += (seed + 1) * 0x9E3779B97F4A7C15u;
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9u;
    h = (h ^ (h >> 27)) * 0x94D049BB133111EBu;
    return h ^ (h >> 31);
}

weft_stream *weft_stream_of(weft *w, const char *name)
{
    w = w ? w : weft__no_context();
    for (weft_stream *s = w->random.streams; s && name; s = s->next)
        if (!strcmp(s->name, name))
            return s;
    if (!name || !*name || strlen(name) >= sizeof w->random.streams->name)
        weft__fail(w, WEFT_EARG, "stream_of: \"%.60s\"; expected a name of 1 .. %zu bytes",
                   name ? name : "", sizeof w->random.streams->name - 1);
    weft_stream *s = w->status ? NULL : weft__own(w, sizeof *s, NULL, NULL);
    if (!s)
        return NULL;
    uint64_t salt = w->shard ? w->shard->salt : 0;
    *s = (weft_stream){ .next = w->random.streams, .w = w, .key = weft__hash(w->random.seed, name) ^ salt };
    memcpy(s->name, name, strlen(name) + 1);
    return w->random.streams = s;
}

weft_stream *weft_stream_new(uint64_t seed, const char *name)
{
    bool ok = name && *name && strlen(name) < sizeof ((weft_stream *)0)->name;
    weft_stream *s = ok ? malloc(sizeof *s) : NULL;
    if (!s)
        return NULL;
    *s = (weft_stream){ .key = weft__hash(seed, name) };
    memcpy(s->name, name, strlen(name) + 1);
    return s;
}

void weft_stream_free(weft_stream *s)
{
    if (s && !s->w)                              /* the context frees its own streams */
        free(s);
}

uint64_t weft_stream_next(weft_stream *s)
{
    if (!s)
        return 0;
    uint64_t i = s->count++, block = i / 2;
    uint32_t counter[4] = { (uint32_t)block, (uint32_t)(block >> 32), 0, 0 }, out[4];
    weft__philox(s->key, counter, out);
    const uint32_t *pair = out + 2 * (i % 2);
    return (uint64_t)pair[1] << 32 | pair[0];
}

double weft_stream_uniform(weft_stream *s) { return (double)(weft_stream_next(s) >> 11) * 0x1p-53; }

double weft_stream_normal(weft_stream *s)
{
    double u = 1 - weft_stream_uniform(s), v = weft_stream_uniform(s);
    return weft__normal_of(u, v);
}

uint64_t weft_stream_below(weft_stream *s, uint64_t below)
{
    if (below == 0)
        return 0;
    /* rejects the first 2^64 mod below values, so the rest divides evenly */
    uint64_t first = -below % below, x;
    do
        x = weft_stream_next(s);
    while (s && x < first);
    return x % below;
}

void weft_stream_permutation(weft_stream *s, int64_t n, int32_t *out)
{
    for (int64_t i = 0; out && i < n; i++) {
        int64_t j = (int64_t)weft_stream_below(s, (uint64_t)i + 1);
        out[i] = out[j];
        out[j] = (int32_t)i;
    }
}

/* ---- many draws ---- */
void weft__random(int64_t n, uint64_t key, uint64_t from, bool normal, real a, real b, real *y)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t draw = weft__philox_draw(key, from + (uint64_t)i);
        y[i] = sizeof(real) == sizeof(float) ? (real)weft__random_float(draw, normal, (float)a, (float)b)
                                             : (real)weft__random_double(draw, normal, (double)a, (double)b);
    }
}

real weft__span_within(real from, real to, real span)
{
    while (span > 0 && from + span > to)
        span = sizeof(real) == sizeof(float) ? (real)weft__below_float((float)span) :
                                               (real)weft__below_double((double)span);
    return span;
}

double weft__standard_normal(uint64_t draw) { return weft__normal(draw); }
