/* windows.c - windows over series: their positions, and their batches, ragged or padded.
 *
 * Random numbers are drawn for each window in the order of the batch, so a resumed run with its streams
 * repeats them. Nothing is drawn unless the context is training. */
#include <math.h>
#include <string.h>
#include "rnn/forecast/series/windows.h"

static void end_windows(void *it)
{
    weft_windows *v = it;
    if (!v->w)
        return;
    weft__release(v->w, v->p.block);
    weft__release(v->w, v->first);
}

/* ---- positions ---- */
static int64_t rows_of_series(const weft_windows *v, int64_t s) { return v->p.start[s + 1] - v->p.start[s]; }

static int64_t count_in(const weft_windows *v, int64_t s)
{
    int64_t spare = rows_of_series(v, s) - v->o.min_context - v->o.min_horizon;
    return spare < 0 ? 0 : spare / v->o.stride + 1;
}

static int32_t least(int64_t a, int64_t b) { return (int32_t)(a < b ? a : b); }

weft_window weft__window(const weft_windows *v, int64_t i)           /* 0 <= i < v->n */
{
    int64_t low = 0, high = v->p.n;              /* first[low] <= i < first[high] */
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (v->first[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    int64_t origin = v->o.min_context + (i - v->first[low]) * v->o.stride;
    return (weft_window){ low, origin, least(origin, v->x->context),
                          least(rows_of_series(v, low) - origin, v->x->horizon) };
}

static bool count_windows(weft_windows *v)
{
    int64_t series = v->p.n, n = 0, longest = 0;
    for (int64_t s = 0; s < series; s++) {
        n += count_in(v, s);
        v->skipped += count_in(v, s) == 0;
        longest = rows_of_series(v, s) > longest ? rows_of_series(v, s) : longest;
    }
    if (!n || n >= INT32_MAX) {
        weft__fail(v->w, WEFT_EARG,
                   "windows \"%s\": %lld windows; the longest of %lld series has %lld rows; expected at "
                   "least %lld of past and %lld of future",
                   v->name, (long long)n, (long long)series, (long long)longest, (long long)v->o.min_context,
                   (long long)v->o.min_horizon);
        return false;
    }
    v->first = weft__allocate(v->w, (size_t)(series + 1) * sizeof *v->first + (size_t)n * sizeof *v->lengths);
    if (!v->first)
        return false;
    v->lengths = (int32_t *)(void *)(v->first + series + 1);
    v->first[0] = 0;
    for (int64_t s = 0; s < series; s++)
        v->first[s + 1] = v->first[s] + count_in(v, s);
    v->n = n;
    for (int64_t i = 0; i < n; i++) {
        weft_window a = weft__window(v, i);
        v->lengths[i] = a.past + a.future;
    }
    return true;
}

/* ---- making ---- */
static bool set_options(weft_windows *v, const weft_windows_opts *o)
{
    const weft_features *x = v->x;
    v->o = o ? *o : (weft_windows_opts){ 0 };
    v->o.stride = v->o.stride ? v->o.stride : x->horizon;
    v->o.min_context = v->o.min_context ? v->o.min_context : x->context;
    v->o.min_horizon = v->o.min_horizon ? v->o.min_horizon : x->horizon;
    if (v->o.stride < 1 || v->o.min_context < 1 || v->o.min_context > x->context || v->o.min_horizon < 1 ||
        v->o.min_horizon > x->horizon)
        weft__fail(v->w, WEFT_EARG,
                   "windows \"%s\": expected a stride of 1 or more, min_context in 1 .. %lld and min_horizon "
                   "in 1 .. %lld, not %lld, %lld, %lld",
                   v->name, (long long)x->context, (long long)x->horizon, (long long)v->o.stride,
                   (long long)v->o.min_context, (long long)v->o.min_horizon);
    else if (!(v->o.past_noise >= 0) || !(v->o.future_noise >= 0) ||
             !isfinite(v->o.past_noise + v->o.future_noise))
        weft__fail(v->w, WEFT_EARG, "windows \"%s\": noise: expected 0 or more", v->name);
    return !v->w->status;
}

/* Two windows that draw from a stream of the same name would disturb each other. */
static bool stream_is_taken(const weft_windows *v)
{
    for (const weft_windows *other = NULL; (other = weft__next_owned(v->w, end_windows, other));)
        if (other != v && (other->shorten || other->noise) && !strcmp(other->name, v->name))
            return true;
    return false;
}

static weft_stream *stream(weft_windows *v, const char *kind)
{
    char name[48];
    if (stream_is_taken(v))
        weft__fail(v->w, WEFT_EARG,
                   "windows \"%s\": other windows have this name; expected different names, because each "
                   "name has one random stream",
                   v->name);
    snprintf(name, sizeof name, "%s.%s", kind, v->name);
    return weft_stream_of(v->w, name);
}

/* Copies the features, so that fitting them again changes neither the windows' numbers nor the inverse. */
static bool copy_features(weft_windows *v, const weft_features *x)
{
    v->copy = *x;
    v->copy.state = weft__own(v->w, (size_t)x->n * sizeof *x->state, NULL, NULL);
    v->x = &v->copy;
    return v->copy.state && memcpy(v->copy.state, x->state, (size_t)x->n * sizeof *x->state);
}

weft_windows *weft_windows_new(weft_features *x, const char *name, const weft_frame *f,
                               const weft_windows_opts *o)
{
    static weft_windows inert;                    /* could not be made; the context has failed */
    if (!weft__features_ready(x, "windows"))
        return &inert;
    weft *w = x->w;
    if (!name || !*name || strlen(name) > 30) {
        weft__fail(w, WEFT_EARG, "windows: name: expected 1 .. 30 bytes");
        return &inert;
    }
    weft_windows *v = weft__features_frame(x, f) ? weft__own(w, sizeof *v, end_windows, NULL) : NULL;
    if (!v)
        return &inert;
    v->w = w;
    snprintf(v->name, sizeof v->name, "%s", name);
    if (!copy_features(v, x) || !set_options(v, o) || !weft__prepare(&v->p, v->x, f, 0, f->n, false) ||
        !count_windows(v))
        return &inert;
    v->shorten = v->o.shorten ? stream(v, "shorten") : NULL;
    v->noise = v->o.past_noise > 0 || v->o.future_noise > 0 ? stream(v, "noise") : NULL;
    return w->status ? &inert : v;
}

weft_window_counts weft_windows_counts(const weft_windows *v)
{
    return v ? (weft_window_counts){ v->n, v->skipped, v->lengths } : (weft_window_counts){ 0 };
}

bool weft__has_window(const weft_windows *v, int64_t i)
{
    if (i < 0 || i >= v->n)
        weft__fail(v->w, WEFT_EARG, "windows \"%s\": window %lld; expected a number from 0, below %lld",
                   v->name, (long long)i, (long long)v->n);
    return !v->w->status;
}

weft_window weft_window_at(const weft_windows *v, int64_t i)
{
    return v && v->w && weft__has_window(v, i) ? weft__window(v, i) : (weft_window){ 0 };
}

/* ---- one batch: positions and drawn lengths of its windows ---- */
typedef struct {
    weft_windows *v;
    int64_t n;
    weft_window *window;
    int32_t *past, *future;
    int64_t *id;
    int64_t pasts, futures, longest_past, longest_future;
} choice;

/* Draws once even if low equals high. */
static int32_t draw_length(weft_stream *stream, int64_t low, int32_t high)
{
    uint64_t beyond = high > low ? (uint64_t)(high - low) : 0;
    return high - (int32_t)weft_stream_below(stream, beyond + 1);
}

static void measure_choice(choice *c, int64_t i)
{
    const weft_windows *v = c->v;
    weft_window a = c->window[i];
    bool shorten = v->shorten && v->w->training;
    c->past[i] = shorten ? draw_length(v->shorten, v->o.min_context, a.past) : a.past;
    c->future[i] = shorten ? draw_length(v->shorten, v->o.min_horizon, a.future) : a.future;
    c->pasts += c->past[i];
    c->futures += c->future[i];
    c->longest_past = c->past[i] > c->longest_past ? c->past[i] : c->longest_past;
    c->longest_future = c->future[i] > c->longest_future ? c->future[i] : c->longest_future;
}

static bool choose(choice *c, weft_windows *v, const int32_t *index, int64_t n)
{
    weft *w = v->w;
    *c = (choice){ .v = v, .n = n };
    w->running = "windows_batch";
    if (w->status || n < 0 || n >= INT32_MAX || (n && !index)) {
        weft__fail(w, WEFT_EARG, "windows \"%s\": %lld windows%s; expected 0 or more, fewer than 2^31 - 1",
                   v->name, (long long)n, index ? "" : ", index is NULL");
        return false;
    }
    c->window = weft__take(w, WEFT__ARENA_CALLS, (n + 1) * (int64_t)sizeof *c->window);
    c->past = weft__take(w, WEFT__ARENA_CALLS, (n + 1) * (int64_t)sizeof *c->past);
    c->future = weft__take(w, WEFT__ARENA_CALLS, (n + 1) * (int64_t)sizeof *c->future);
    c->id = weft__take(w, WEFT__ARENA_CALLS, (n + 1) * (int64_t)sizeof *c->id);
    for (int64_t i = 0; i < n && !w->status; i++)
        if (weft__has_window(v, index[i])) {
            c->window[i] = weft__window(v, index[i]);
            c->id[i] = index[i];
        }
    /* A batch that fails draws nothing. */
    for (int64_t i = 0; i < n && !w->status; i++)
        measure_choice(c, i);
    return !w->status;
}

/* ---- numbers ---- */
static void add_noise(weft_stream *stream, double by, int64_t rows, int64_t columns, int64_t from, real *to)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = from; k < columns; k++)
            to[i * columns + k] += (real)(by * weft_stream_normal(stream));
}

/* Writes the inputs of window i: the newest rows of its past, the first rows of its future. Its first row is
 * the first one kept. */
static void fill_past(const choice *c, int64_t i, int64_t columns, real *to)
{
    const weft_windows *v = c->v;
    int64_t origin = v->p.start[c->window[i].series] + c->window[i].origin, first = origin - c->past[i];
    weft__prepared_past(&v->p, first, first, c->past[i], to);
    if (v->w->training && v->o.past_noise > 0)
        add_noise(v->noise, v->o.past_noise, c->past[i], columns, v->x->time != NULL, to);
    weft__prepared_mask(&v->p, c->past[i], to);
}

static void fill_future(const choice *c, int64_t i, int64_t columns, real *to)
{
    const weft_windows *v = c->v;
    int64_t origin = v->p.start[c->window[i].series] + c->window[i].origin;
    weft__prepared_future(&v->p, origin - c->past[i], origin, c->future[i], to);
    if (v->w->training && v->o.future_noise > 0)
        add_noise(v->noise, v->o.future_noise, c->future[i], columns, v->x->time != NULL, to);
}

static void fill_target(const choice *c, int64_t i, int64_t columns, real *to)
{
    const weft__prepared *p = &c->v->p;
    int64_t origin = p->start[c->window[i].series] + c->window[i].origin;
    for (int64_t r = 0; r < c->future[i]; r++)
        memcpy(to + r * columns, p->z + (origin + r + 1) * p->width - columns, (size_t)columns * sizeof *to);
}

static weft_tensor *fixed_of(const choice *c)
{
    const weft__prepared *p = &c->v->p;
    weft *w = c->v->w;
    int64_t columns = c->v->x->fixed;
    real *to = columns ? weft__take(w, WEFT__ARENA_CALLS, (c->n * columns + 1) * (int64_t)sizeof *to) : NULL;
    for (int64_t i = 0; to && i < c->n; i++)
        memcpy(to + i * columns, p->fixed + c->window[i].series * columns, (size_t)columns * sizeof *to);
    return to ? weft_reals(w, to, WEFT_SHAPE(c->n, columns)) : NULL;
}

static weft_window_batch inert_batch(const weft_windows *v)
{
    weft_tensor *nil = &(v && v->w ? v->w : weft__no_context())->nil;
    return (weft_window_batch){ .series = { .past = nil, .future = nil }, .target = nil };
}

/* Layout of a tensor's windows: sequence by sequence, or padded to `longest` rows each. */
typedef struct { const int32_t *len; int64_t rows, longest; bool padded; weft_align align; } layout;
typedef void filler(const choice *, int64_t i, int64_t columns, real *to);

static weft_tensor *filled(const choice *c, filler *fill, layout l, int64_t columns)
{
    weft *w = c->v->w;
    int64_t rows = l.padded ? c->n * l.longest : l.rows;
    real *all = weft__take(w, WEFT__ARENA_CALLS, (rows * columns + 1) * (int64_t)sizeof *all), *to = all;
    if (!all)
        return &w->nil;
    if (l.padded)
        memset(all, 0, (size_t)(rows * columns) * sizeof *all);
    for (int64_t i = 0; i < c->n; i++) {
        bool behind = l.padded && l.align == WEFT_ALIGN_RIGHT;
        fill(c, i, columns, to + (behind ? (l.longest - l.len[i]) * columns : 0));
        to += (l.padded ? l.longest : l.len[i]) * columns;
    }
    return l.padded ? weft_reals(w, all, WEFT_SHAPE(c->n, l.longest, columns)) :
                      weft_ragged(w, all, columns, &(weft_lengths){ .n = c->n, .len = l.len, .id = c->id });
}

static const weft_lengths *keep_lengths(weft *w, int64_t n, const int32_t *len, const int64_t *id)
{
    weft_lengths *l = weft__take(w, WEFT__ARENA_CALLS, sizeof *l);
    if (l)
        *l = (weft_lengths){ .n = n, .len = len, .id = id };
    return l;
}

static weft_window_batch batch_of(const choice *c, const weft_windows_batch_opts *o)
{
    weft *w = c->v->w;
    weft_window_batch b = inert_batch(c->v);
    weft_feature_counts k = weft_features_counts(c->v->x);
    const layout past = { c->past, c->pasts, c->longest_past, o->padded, o->past_align },
                 future = { c->future, c->futures, c->longest_future, o->padded, WEFT_ALIGN_LEFT };
    b.series.fixed = fixed_of(c);
    b.series.past = filled(c, fill_past, past, k.past);
    b.series.future = filled(c, fill_future, future, k.future);
    b.target = filled(c, fill_target, future, k.target);
    if (o->padded) {
        b.series.past_lengths = keep_lengths(w, c->n, c->past, c->id);
        b.series.future_lengths = keep_lengths(w, c->n, c->future, c->id);
        b.series.past_align = o->past_align;
    }
    return b;
}

static void check_batch_opts(const weft_windows *v, const weft_windows_batch_opts *o)
{
    if (o->past_align != WEFT_ALIGN_LEFT && o->past_align != WEFT_ALIGN_RIGHT)
        weft__fail(v->w, WEFT_EARG, "windows \"%s\": past_align %d; expected a value of weft_align", v->name,
                   (int)o->past_align);
    else if (o->past_align != WEFT_ALIGN_LEFT && !o->padded)
        weft__fail(v->w, WEFT_EARG, "windows \"%s\": past_align on ragged tensors; expected padded = true",
                   v->name);
}

weft_window_batch weft_windows_batch(weft_windows *v, const int32_t *index, int64_t n,
                                     const weft_windows_batch_opts *opts)
{
    choice c;
    weft_windows_batch_opts o = opts ? *opts : (weft_windows_batch_opts){ 0 };
    if (v && v->w)
        check_batch_opts(v, &o);
    if (!v || !v->w || !choose(&c, v, index, n))
        return inert_batch(v);
    return batch_of(&c, &o);
}
