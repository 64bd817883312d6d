/* drawn.c - lengths that are drawn: uniform, geometric, lognormal, of two kinds. */
#include <math.h>
#include "tools/corpora/corpora.h"

static bool draw(const corpus_spec *s, corpus_builder *b, double (*one)(const corpus_spec *, weft_stream *))
{
    weft_stream *stream = weft_stream_new(s->seed, s->name);
    if (!stream)
        return corpus_refuse(s, "no memory for a stream");
    bool good = true;
    for (int64_t i = 0; i < s->n && good; i++)
        good = corpus_length(b, one(s, stream));
    weft_stream_free(stream);
    return good;
}

static double one_uniform(const corpus_spec *s, weft_stream *r)
{
    return s->number[0] + (double)weft_stream_below(r, (uint64_t)(s->number[1] - s->number[0]) + 1);
}
bool draw_uniform(const corpus_spec *s, corpus_builder *b)
{
    if (!corpus_is_length(s->number[0]) || !corpus_is_length(s->number[1]) || s->number[1] < s->number[0])
        return corpus_refuse(s, "whole numbers are expected, 0 <= LEAST <= MOST");
    return draw(s, b, one_uniform);
}

/* How often one tries until it succeeds: 1, 2, .. */
static double one_geometric(const corpus_spec *s, weft_stream *r)
{
    double p = s->number[0];
    return p == 1 ? 1 : fmin(1 + floor(log1p(-weft_stream_uniform(r)) / log1p(-p)), INT32_MAX);
}
bool draw_geometric(const corpus_spec *s, corpus_builder *b)
{
    if (!(s->number[0] > 0 && s->number[0] <= 1))
        return corpus_refuse(s, "0 < P <= 1 is expected");
    return draw(s, b, one_geometric);
}

static double one_lognormal(const corpus_spec *s, weft_stream *r)
{
    return fmin(fmax(1, nearbyint(exp(s->number[0] + s->number[1] * weft_stream_normal(r)))), INT32_MAX);
}
bool draw_lognormal(const corpus_spec *s, corpus_builder *b)
{
    if (!(fabs(s->number[0]) <= 20 && s->number[1] >= 0 && s->number[1] <= 20))
        return corpus_refuse(s, "-20 <= MU <= 20 and 0 <= SIGMA <= 20 are expected");
    return draw(s, b, one_lognormal);
}

static double one_of_two(const corpus_spec *s, weft_stream *r) { return s->number[weft_stream_below(r, 2)]; }
bool draw_twopoint(const corpus_spec *s, corpus_builder *b)
{
    if (!corpus_is_length(s->number[0]) || !corpus_is_length(s->number[1]))
        return corpus_refuse(s, "two whole numbers are expected");
    return draw(s, b, one_of_two);
}
