/* positions.c - sinusoidal positions and rotary embeddings. Sines and cosines are computed in double, once
 * for all tokens at a position. A token selects those of its position, so its neighbours change no bit. */
#include <math.h>
#include "autograd/api_windows.h"
#include "autograd/op.h"

typedef struct { double rate, sin, cos, sin_of_rate, cos_of_rate; } angle;

static angle *angles_of(weft *w, int64_t width, double base)
{
    angle *a = weft__take(w, WEFT__ARENA_CALLS, width / 2 * (int64_t)sizeof *a);
    for (int64_t i = 0; a && i < width / 2; i++) {
        const double rate = pow(base, -2. * (double)i / (double)width);
        a[i] = (angle){ rate, 0, 1, sin(rate), cos(rate) };
    }
    return a;
}

/* Columns of a row: sine and cosine in turn; or all columns' cosines and then sines, minus those of the first
 * number of a pair. Pairs are apart by half a row, or neighbours. */
typedef enum { IN_TURN, HALVES, NEIGHBOURS } form;

static void write_pair(form f, int64_t width, int64_t i, real sine, real cosine, real *y)
{
    const int64_t a = f == HALVES ? i : 2 * i, b = f == HALVES ? i + width / 2 : 2 * i + 1;
    y[a] = f == IN_TURN ? sine : cosine;
    y[b] = cosine;
    if (f != IN_TURN) {
        y[width + a] = -sine;
        y[width + b] = sine;
    }
}

/* Writes n rows, of positions from `first` on. At multiples of 32 sine and cosine are computed; the other
 * positions turn the angles of the position before them, which is faster. So the bits of a position are the
 * same wherever a piece of a sequence begins. */
static void write_rows(angle *a, form f, int64_t width, int64_t first, int64_t n, real *y)
{
    enum { EXACT_EVERY = 32 };
    for (int64_t t = first - first % EXACT_EVERY; t < first + n; t++) {
        for (int64_t i = 0; i < width / 2; i++) {
            const angle o = a[i];
            const bool turn = t % EXACT_EVERY;
            const double at = (double)t * o.rate;
            a[i].sin = turn ? o.sin * o.cos_of_rate + o.cos * o.sin_of_rate : sin(at);
            a[i].cos = turn ? o.cos * o.cos_of_rate - o.sin * o.sin_of_rate : cos(at);
            if (t >= first)
                write_pair(f, width, i, (real)a[i].sin, (real)a[i].cos, y);
        }
        y += t < first ? 0 : f == IN_TURN ? width : 2 * width;
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

/* Returns a row for each token of x, of width or 2 * width columns. */
static weft_tensor *rows_of(weft_tensor *x, form f, int64_t width, double base)
{
    weft *w = x->w;
    const weft_batch *b = x->f.batch;
    const bool shared = !b->before; /* sequences share rows; with offsets they may be far apart */
    const int64_t n = shared ? b->longest : b->tokens, columns = f == IN_TURN ? width : 2 * width;
    angle *angles = angles_of(w, width, base);
    real *y = weft__take(w, WEFT__ARENA_CALLS, n * columns * (int64_t)sizeof *y);
    if (!angles || !y)
        return &w->nil;
    for (int64_t s = 0; s < (shared ? 1 : b->n); s++)
        write_rows(angles, f, width, shared ? 0 : b->before[s], shared ? n : b->len[s],
                   shared ? y : y + b->offset.host[s] * columns);
    weft_tensor *table = weft_reals(w, y, WEFT_SHAPE(n, columns));
    return shared ? weft_index_select(table, positions_of(x)) : weft_ragged_rows(table, x);
}

static bool is_ragged(const weft_tensor *x) { return x && !weft__handle_error(x->w, x) && x->f.batch; }
static bool is_base(double base) { return base > 0 && !isinf(base); }

weft_tensor *weft_positional_encoding(weft_tensor *like, int64_t width, double base)
{
    base = weft__or(base, 10000);
    if (!is_ragged(like) || width < 2 || width % 2 || width > INT32_MAX || !is_base(base))
        return weft__failed(like, WEFT_EARG, "positional_encoding",
                            "width %lld, base %g; expected a ragged tensor, an even width, a base above 0",
                            (long long)width, base);
    return rows_of(like, IN_TURN, width, base);
}

weft_tensor *weft_rope(weft_tensor *x, const weft_rope_opts *opts)
{
    const weft_rope_opts o = opts ? *opts : (weft_rope_opts){ 0 };
    const int64_t heads = o.heads ? o.heads : 1;
    const double base = weft__or(o.base, 10000);
    if (!is_ragged(x) || x->f.type != WEFT_REAL || x->f.rank != 2 || heads < 1 || width(x) < 2 ||
        width(x) % (2 * heads) || !is_base(base))
        return weft__failed(x, WEFT_ESHAPE, "rope",
                            "%lld heads, base %g; expected ragged reals [N, heads * d] with an even d, and a "
                            "base above 0",
                            (long long)heads, base);
    const int64_t d = width(x) / heads, half = d / 2;
    weft_tensor *angles = rows_of(x, o.interleaved ? NEIGHBOURS : HALVES, d, base);
    weft_tensor *cosines = weft_reshape(weft_slice(angles, 1, 0, d), WEFT_SHAPE(-1, 1, d)),
                *sines = weft_reshape(weft_slice(angles, 1, d, 2 * d), WEFT_SHAPE(-1, 1, d));
    weft_tensor *others = o.interleaved ? weft_flip(weft_reshape(x, WEFT_SHAPE(-1, heads, half, 2)), 3) :
                                          weft_flip(weft_reshape(x, WEFT_SHAPE(-1, heads, 2, half)), 2);
    x = weft_mul(weft_reshape(x, WEFT_SHAPE(-1, heads, d)), cosines);
    others = weft_mul(weft_reshape(others, WEFT_SHAPE(-1, heads, d)), sines);
    return weft_reshape(weft_add(x, others), WEFT_SHAPE(-1, heads * d));
}
