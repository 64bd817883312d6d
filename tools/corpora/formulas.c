/* formulas.c - lengths by formulas: random distributions, and hard instances for planners. */
#include <math.h>
#include "weft_lab.h"
#include "tools/corpora/corpora.h"

/* Returns whether the first n numbers are lengths; otherwise prints the expected form. */
static bool are_lengths(const corpus_spec *s, int n, const char *expected)
{
    bool ok = true;
    for (int i = 0; i < n; i++)
        ok = ok && corpus_is_length(s->number[i]);
    return ok || corpus_refuse(s, expected);
}

static bool is_range(const corpus_spec *s)
{
    static const char expected[] = "expected whole numbers, 0 <= LEAST <= MOST";
    return are_lengths(s, 2, expected) && (s->number[0] <= s->number[1] || corpus_refuse(s, expected));
}

/* ---- drawn ---- */
static bool draw(const corpus_spec *s, corpus_builder *b, double (*one)(const corpus_spec *, weft_stream *))
{
    weft_stream *stream = weft_stream_new(s->seed, s->name);
    bool ok = true;
    for (int64_t i = 0; i < s->n && ok; i++)
        ok = corpus_length(b, one(s, stream));
    weft_stream_free(stream);
    return ok;
}

static double one_uniform(const corpus_spec *s, weft_stream *r)
{
    return s->number[0] + (double)weft_stream_below(r, (uint64_t)(s->number[1] - s->number[0]) + 1);
}
bool draw_uniform(const corpus_spec *s, corpus_builder *b) { return is_range(s) && draw(s, b, one_uniform); }

/* Draws the number of trials until the first success: 1, 2, .. */
static double one_geometric(const corpus_spec *s, weft_stream *r)
{
    double p = s->number[0];
    return p == 1 ? 1 : fmin(1 + floor(log1p(-weft_stream_uniform(r)) / log1p(-p)), INT32_MAX);
}
bool draw_geometric(const corpus_spec *s, corpus_builder *b)
{
    if (!(s->number[0] > 0 && s->number[0] <= 1))
        return corpus_refuse(s, "expected 0 < P <= 1");
    return draw(s, b, one_geometric);
}

static double one_lognormal(const corpus_spec *s, weft_stream *r)
{
    return fmin(fmax(1, nearbyint(exp(s->number[0] + s->number[1] * weft_stream_normal(r)))), INT32_MAX);
}
bool draw_lognormal(const corpus_spec *s, corpus_builder *b)
{
    if (!(fabs(s->number[0]) <= 20 && s->number[1] >= 0 && s->number[1] <= 20))
        return corpus_refuse(s, "expected -20 <= MU <= 20 and 0 <= SIGMA <= 20");
    return draw(s, b, one_lognormal);
}

static double one_of_two(const corpus_spec *s, weft_stream *r) { return s->number[weft_stream_below(r, 2)]; }
bool draw_twopoint(const corpus_spec *s, corpus_builder *b)
{
    return are_lengths(s, 2, "expected two whole numbers") && draw(s, b, one_of_two);
}

/* ---- adversaries ---- */
static bool repeat(corpus_builder *b, int64_t n, double length)
{
    bool ok = true;
    for (int64_t i = 0; i < n && ok; i++)
        ok = corpus_length(b, length);
    return ok;
}

bool make_equal(const corpus_spec *s, corpus_builder *b)
{
    return are_lengths(s, 1, "expected a whole number") && repeat(b, s->n, s->number[0]);
}

/* No two share a row of the capacity. */
bool make_half(const corpus_spec *s, corpus_builder *b)
{
    if (!corpus_is_length(s->number[0]) || s->number[0] < 1)
        return corpus_refuse(s, "expected a whole number above 0");
    return repeat(b, s->n, floor(s->number[0] / 2) + 1);
}

/* The long one is in the middle. */
static bool all_but_one(const corpus_spec *s, corpus_builder *b, double most, double one)
{
    return repeat(b, s->n / 2, most) && (!s->n || repeat(b, 1, one)) && repeat(b, s->n - s->n / 2 - 1, most);
}
bool make_giant(const corpus_spec *s, corpus_builder *b)
{
    return are_lengths(s, 2, "expected two whole numbers") && all_but_one(s, b, s->number[0], s->number[1]);
}
bool make_above(const corpus_spec *s, corpus_builder *b)
{
    return are_lengths(s, 1, "expected a whole number") && all_but_one(s, b, s->number[0], s->number[0] + 1);
}

bool make_sorted(const corpus_spec *s, corpus_builder *b)
{
    double least = s->number[0], wide = s->number[1] - s->number[0];
    bool ok = is_range(s);
    for (int64_t i = 0; i < s->n && ok; i++)
        ok = corpus_length(b, least + (s->n > 1 ? floor(wide * (double)i / (double)(s->n - 1)) : 0));
    return ok;
}

/* Johnson et al. 1974: for these 37 lengths and a capacity of 101, first fit makes 17 rows. Ten are enough:
 * seven of 51 + 34 + 10 + 6 and three of 51 + 34 + 16. */
bool make_ff_worst(const corpus_spec *s, corpus_builder *b)
{
    if (s->n % 37)
        return corpus_refuse(s, "expected n as a multiple of 37");
    int64_t m = s->n / 37;
    return repeat(b, 7 * m, 6) && repeat(b, 7 * m, 10) && repeat(b, 3 * m, 16) && repeat(b, 10 * m, 34) &&
           repeat(b, 10 * m, 51);
}

/* Johnson 1973: first fit decreasing makes 11 m rows where 9 m are enough. With C = 4 q: 6 m rows of
 * 2 q + 1, q + 1, q - 2 and 3 m rows of twice q + 2 and q - 2; n = 30 m. */
bool make_ffd_worst(const corpus_spec *s, corpus_builder *b)
{
    double q = s->number[0] / 4;
    if (s->n % 30)
        return corpus_refuse(s, "expected n as a multiple of 30");
    if (!corpus_is_length(q) || q < 11)
        return corpus_refuse(s, "expected CAPACITY as a multiple of 4, at least 44");
    int64_t m = s->n / 30;
    return repeat(b, 6 * m, 2 * q + 1) && repeat(b, 6 * m, q + 2) && repeat(b, 6 * m, q + 1) &&
           repeat(b, 12 * m, q - 2);
}
