/* positions.c - sinusoidal positions and rotary embeddings. Sines and cosines are computed in double, once for
 * all tokens at a position. A token selects those of its position, so its neighbours do not change a bit. */
#include <math.h>
#include "autograd/api_windows.h"
#include "autograd/op.h"

typedef struct angle {
    double rate, sin, cos, sin_of_rate, cos_of_rate;
} angle;

static angle *angles_of(weft *w, int64_t width, double base)
{
    angle *a = weft__take(w, WEFT__ARENA_CALLS, width / 2 * (int64_t)sizeof *a);
    for (int64_t i = 0; a && i < width / 2; i++) {
        const double rate = pow(base, -2. * (double)i / (double)width);
        a[i] = (angle){ rate, 0, 1, sin(rate), cos(rate) };
    }
    return a;
}

/* Writes rows of `width` numbers for n positions from `first` on. Most rows turn the angles of the row before
 * them, which is faster than a sine and as exact for a few rows. */
static void write_positions(angle *a, int64_t width, int64_t first, int64_t n, real *y)
{
    enum { EXACT_EVERY = 32 };
    for (int64_t t = 0; t < n; t++, y += width)
        for (int64_t i = 0; i < width / 2; i++) {
            const angle o = a[i];
            const bool turn = t % EXACT_EVERY;
            const double at = (double)(first + t) * o.rate;
            a[i].sin = turn ? o.sin * o.cos_of_rate + o.cos * o.sin_of_rate : sin(at);
            a[i].cos = turn ? o.cos * o.cos_of_rate - o.sin * o.sin_of_rate : cos(at);
            y[2 * i] = (real)a[i].sin, y[2 * i + 1] = (real)a[i].cos;
        }
}

/* Returns the position of each token as ints in the layout of x. */
static weft_tensor *positions_of(weft_tensor *x)
{
    weft__form f = weft__plain(WEFT_I32, 1, x->f.size);
    const struct weft__rows *rows = weft__rows_of(x->f.batch, &x->f);
    weft__copy_layout(&f, &x->f);
    weft_tensor *index = rows ? weft__header(x->w, &f) : &x->w->nil;
    if (index != &x->w->nil)
        index->data = (real *)(uintptr_t)rows->position.device;
    return index;
}

weft_tensor *weft_positional_encoding(weft_tensor *like, int64_t width, double base)
{
    base = weft__or(base, 10000);
    if (!like || weft__handle_error(like->w, like) || !like->f.batch || width < 2 || width % 2 ||
        width > INT32_MAX || !(base > 0) || isinf(base))
        return weft__failed(
            like, WEFT_EARG, "positional_encoding",
            "width %lld, base %g; expected a ragged tensor, an even width of 2 or more, and a "
            "finite base above 0",
            (long long)width, base);
    weft *w = like->w;
    const weft_batch *b = like->f.batch;
    const bool shared = !b->before; /* sequences share rows; with offsets they may be far apart */
    const int64_t rows = shared ? b->longest : b->tokens;
    angle *angles = angles_of(w, width, base);
    real *y = weft__take(w, WEFT__ARENA_CALLS, rows * width * (int64_t)sizeof *y);
    if (!angles || !y)
        return &w->nil;
    for (int64_t s = 0; s < (shared ? 1 : b->n); s++)
        write_positions(angles, width, shared ? 0 : b->before[s], shared ? rows : b->len[s],
                        shared ? y : y + b->offset.host[s] * width);
    weft_tensor *table = weft_reals(w, y, WEFT_SHAPE(rows, width));
    return shared ? weft_index_select(table, positions_of(like)) : weft_ragged_rows(table, like);
}

weft_tensor *weft_rope(weft_tensor *x, const weft_rope_opts *opts)
{
    const weft_rope_opts o = opts ? *opts : (weft_rope_opts){ 0 };
    const int64_t heads = o.heads ? o.heads : 1;
    if (!x || weft__handle_error(x->w, x) || !x->f.batch || x->f.type != WEFT_REAL || x->f.rank != 2 ||
        heads < 1 || width(x) < 2 || width(x) % (2 * heads))
        return weft__failed(x, WEFT_ESHAPE, "rope",
                            "%lld heads; expected ragged reals [N, heads * d] with an even d",
                            (long long)heads);
    const int64_t half = width(x) / heads / 2;
    const int pair = o.interleaved ? 3 : 2; /* axis of the two numbers of a pair */
    weft_tensor *angles =
        weft_reshape(weft_positional_encoding(x, 2 * half, o.base), WEFT_SHAPE(-1, 1, half, 2));
    weft_tensor *sine = weft_slice(angles, 3, 0, 1), *cosine = weft_slice(angles, 3, 1, 2);
    x = weft_reshape(x, WEFT_SHAPE(-1, heads, o.interleaved ? half : 2, o.interleaved ? 2 : half));
    if (!o.interleaved)
        sine = weft_reshape(sine, WEFT_SHAPE(-1, 1, 1, half)),
        cosine = weft_reshape(cosine, WEFT_SHAPE(-1, 1, 1, half));
    weft_tensor *turned = weft_mul(weft_flip(x, pair), weft_concat(WEFT_LIST(weft_neg(sine), sine), pair));
    return weft_reshape(weft_add(weft_mul(x, cosine), turned), WEFT_SHAPE(-1, heads * 2 * half));
}
