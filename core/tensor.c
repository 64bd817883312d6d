/* tensor.c - makes and reads tensors. */
#include <math.h>
#include <string.h>
#include "core/report/check.h"

static size_t bytes_of_one(weft_dtype t) { return t == WEFT_I32 ? sizeof(int32_t) : sizeof(real); }

weft__form weft__plain(weft_dtype type, int rank, const int64_t *shape)
{
    weft__form f = { .type = type, .rank = rank };
    for (int i = 0; i < rank && i < WEFT_RANK; i++)
        f.size[i] = shape[i];
    return f;
}

int64_t weft__elements(const weft__form *f)
{
    int64_t n = 1;
    for (int i = 0; i < f->rank; i++)
        n *= f->size[i];
    return n;
}

int64_t weft__rows(const weft__form *f)
{
    int64_t n = 1;
    for (int i = 0; i + 1 < f->rank; i++)
        n *= f->size[i];
    return n;
}

int64_t weft__bytes(const weft__form *f) { return weft__elements(f) * (int64_t)bytes_of_one(f->type); }
int64_t weft__capacity(const weft__form *f)  { return weft__elements(f) * (int64_t)sizeof(real); }

bool weft__forms_equal(const weft__form *a, const weft__form *b)
{
    return a->type == b->type && a->rank == b->rank &&
           !memcmp(a->size, b->size, (size_t)a->rank * sizeof *a->size) && a->batch == b->batch &&
           a->layout == b->layout && a->place == b->place;
}

const char *weft__text(const weft__form *f, char text[128])
{
    static const char *const layouts[] = { "", " packed", " concat", " rows", " padded" };
    int length = snprintf(text, 128, "[");
    for (int i = 0; i < f->rank && length < 100; i++)
        length += snprintf(text + length, 128 - (size_t)length, i ? ", %lld" : "%lld", (long long)f->size[i]);
    snprintf(text + length, 128 - (size_t)length, "]%s%s", layouts[f->layout],
             f->type == WEFT_I32 ? " of ints" : "");
    return text;
}

/* ---- making ---- */
weft_tensor *weft__header(weft *w, const weft__form *f)
{
    weft_tensor *t = weft__take(w, WEFT__ARENA_HEADERS + (w->step & 1), sizeof *t);
    if (t)
        *t = (weft_tensor){ .w = w, .step = w->step, .f = *f };
    if (t && w->check)
        weft__check_created(w, t);
    return t;
}

/* Fails the context with the reason why no tensor can have these extents. */
static bool refuse_form(weft *w, const weft__form *f)
{
    const char *function = w->running ? w->running : "tensor";
    for (int i = 0; i < f->rank; i++)
        if (f->size[i] < 0) {
            weft__fail(w, WEFT_ESHAPE, "%s: extent %lld on axis %d; expected 0 or more", function,
                       (long long)f->size[i], i);
            return false;
        }
    weft__fail(w, WEFT_ESHAPE,
               "%s: %s: the product of its extents is too large; expected fewer than 2^59 "
               "elements",
               function, WEFT__TEXT(f));
    return false;
}

/* Skips extents of 0, so the product of the others is checked even if the tensor is empty. */
bool weft__extents_are_possible(weft *w, const weft__form *f)
{
    int64_t n = 1;
    for (int i = 0; i < f->rank; i++)
        if (f->size[i] < 0 || __builtin_mul_overflow(n, f->size[i] ? f->size[i] : 1, &n) ||
            n > INT64_MAX / 16)
            return refuse_form(w, f);
    return true;
}

static weft_tensor *new_tensor(weft *w, const weft__form *f)
{
    weft_tensor *t = weft__extents_are_possible(w, f) ? weft__header(w, f) : NULL;
    return t && (t->data = weft__take(w, WEFT__ARENA_DATA, weft__capacity(f))) ? t : &w->nil;
}

weft_tensor *weft__empty(weft *w, const weft__form *f)
{
    if (!w->check)
        return new_tensor(w, f);
    if (!weft__check_enter(w, w->running ? w->running : "tensor"))
        return &w->nil;
    weft_tensor *t = new_tensor(w, f);
    weft__check_leave(w);
    return t;
}

static void zero_tensor(weft *w, weft_tensor *t)
{
    if (t->f.type == WEFT_I32)
        w->dev.k->fill_ints(&w->dev, weft__elements(&t->f), 0, (int32_t *)(void *)t->data);
    else
        w->dev.k->fill(&w->dev, weft__elements(&t->f), 0, t->data);
}

weft_tensor *weft__tensor(weft *w, const weft__form *f, const void *values)
{
    weft_tensor *t = weft__empty(w, f);
    if (t == &w->nil)
        return t;
    if (!values)
        zero_tensor(w, t);
    else if (weft__bytes(f))
        w->dev.k->upload(&w->dev, t->data, values, (size_t)weft__bytes(f));
    return t;
}

static bool shaped(weft *w, const char *function, weft_dtype type, int rank, const int64_t *shape,
                   weft__form *f)
{
    if (w->status)
        return false;
    if (rank < 0 || rank > WEFT_RANK || (rank && !shape)) {
        weft__fail(w, WEFT_EARG, "%s: rank %d%s; expected 0 .. %d and a shape", function, rank,
                   shape ? "" : " without a shape", WEFT_RANK);
        return false;
    }
    *f = weft__plain(type, rank, shape);
    w->running = function;
    return true;
}

static weft_tensor *tensor_of_values(weft *w, const char *function, weft_dtype type, const void *values,
                                     int rank, const int64_t *shape)
{
    weft__form f;
    w = w ? w : weft__no_context();
    return shaped(w, function, type, rank, shape, &f) ? weft__tensor(w, &f, values) : &w->nil;
}

weft_tensor *weft_reals(weft *w, const real *values, int rank, const int64_t *shape)
{
    return tensor_of_values(w, "reals", WEFT_REAL, values, rank, shape);
}
weft_tensor *weft_ints(weft *w, const int32_t *values, int rank, const int64_t *shape)
{
    return tensor_of_values(w, "ints", WEFT_I32, values, rank, shape);
}
weft_tensor *weft_zeros(weft *w, int rank, const int64_t *shape)
{
    return tensor_of_values(w, "zeros", WEFT_REAL, NULL, rank, shape);
}
weft_tensor *weft_scalar(weft *w, double value) { return weft_full(w, value, 0, NULL); }

/* uninitialised: a kernel writes the data */
static weft_tensor *tensor_of_shape(weft *w, const char *function, int rank, const int64_t *shape)
{
    weft__form f;
    return shaped(w, function, WEFT_REAL, rank, shape, &f) ? weft__empty(w, &f) : &w->nil;
}

weft_tensor *weft_full(weft *w, double value, int rank, const int64_t *shape)
{
    w = w ? w : weft__no_context();
    weft_tensor *t = tensor_of_shape(w, "full", rank, shape);
    if (t != &w->nil)
        w->dev.k->fill(&w->dev, weft__elements(&t->f), (real)value, t->data);
    return t;
}

static weft_tensor *draw_tensor(weft *w, const char *function, bool normal, real a, real b, int rank,
                                const int64_t *shape)
{
    w = w ? w : weft__no_context();
    weft_tensor *t = tensor_of_shape(w, function, rank, shape);
    weft_stream *s = t == &w->nil ? NULL : weft_stream_of(w, "tensor");
    if (!s || w->status)
        return &w->nil;
    w->dev.k->random(&w->dev, weft__elements(&t->f), s->key, s->count, normal, a, b, t->data);
    s->count += (uint64_t)weft__elements(&t->f);
    return t;
}

weft_tensor *weft_randn(weft *w, int rank, const int64_t *shape)
{
    return draw_tensor(w, "randn", true, 0, 1, rank, shape);
}
weft_tensor *weft_rand(weft *w, double low, double high, int rank, const int64_t *shape)
{
    real from = (real)low, to = (real)high;
    if (!(from <= to) || !isfinite(to - from))
        weft__fail(w, WEFT_EARG,
                   "rand: from %g to %g; expected low <= high, both finite, with a finite difference", low,
                   high);
    return draw_tensor(w, "rand", false, from, weft__span_within(from, to, to - from), rank, shape);
}

/* Returns the number of values from, from + step, .. that come before `to`. */
static int64_t count_steps(int64_t from, int64_t to, int64_t step)
{
    uint64_t apart = step > 0 ? (uint64_t)to - (uint64_t)from : (uint64_t)from - (uint64_t)to,
             by = step > 0 ? (uint64_t)step : -(uint64_t)step;
    return (int64_t)(apart / by + (apart % by != 0));
}

static bool steps_fit_int32(int64_t from, int64_t n, int64_t step)
{
    int64_t far, last;
    if (n < 1)
        return n == 0;
    return n <= INT32_MAX && from == (int32_t)from && !__builtin_mul_overflow(n - 1, step, &far) &&
           !__builtin_add_overflow(from, far, &last) && last == (int32_t)last;
}

weft_tensor *weft_arange(weft *w, int64_t from, int64_t to, int64_t step)
{
    w = w ? w : weft__no_context();
    w->running = "arange";
    bool ends = step > 0 ? from <= to : step < 0 && from >= to;
    int64_t n = ends ? count_steps(from, to, step) : 0;
    if (!ends || !steps_fit_int32(from, n, step))
        weft__fail(w, WEFT_EARG, "arange: from %lld to %lld in steps of %lld; expected %s", (long long)from,
                   (long long)to, (long long)step,
                   ends ? "fewer than 2^31 numbers that fit an int32" :
                          "a step that is not 0 and leads to the end");
    int32_t *values = w->status ? NULL : weft__take(w, WEFT__ARENA_CALLS, n * (int64_t)sizeof *values);
    for (int64_t i = 0; values && i < n; i++)
        values[i] = (int32_t)(from + i * step);
    return values ? weft_ints(w, values, 1, &n) : &w->nil;
}

/* ---- queries ---- */
weft       *weft_context_of(const weft_tensor *x)       { return x ? x->w : NULL; }
weft_dtype  weft_dtype_of(const weft_tensor *x) { return x ? x->f.type : WEFT_REAL; }
int         weft_rank(const weft_tensor *x)     { return x ? x->f.rank : 0; }
int64_t     weft_numel(const weft_tensor *x)    { return x && x->data ? weft__elements(&x->f) : 0; }
weft_layout weft_layout_of(const weft_tensor *x) { return x ? x->f.layout : WEFT_PLAIN; }

int64_t weft_size(const weft_tensor *x, int axis)
{
    axis += x && axis < 0 ? x->f.rank : 0;
    return x && axis >= 0 && axis < x->f.rank ? x->f.size[axis] : 0;
}

static bool readable(weft *w, const weft_tensor *x, const void *out, size_t bytes)
{
    if (!WEFT__IS_USABLE(w, x, "read: the tensor"))
        return false;
    if (!out)
        weft__fail(w, WEFT_EARG, "read: %s: the memory for it is NULL", WEFT__TEXT(&x->f));
    else if ((size_t)weft__bytes(&x->f) != bytes)
        weft__fail(w, WEFT_ESHAPE, "read: %s has %lld bytes; memory of %zu was given", WEFT__TEXT(&x->f),
                   (long long)weft__bytes(&x->f), bytes);
    return !w->status;
}

weft_status weft__read(const weft_tensor *x, void *out, size_t bytes)
{
    weft *w = x ? x->w : weft__no_context();
    bool ok = readable(w, x, out, bytes) && (!w->check || weft__check_enter(w, "read"));
    if (ok)
        weft__notify(w, WEFT__READ, NULL);
    if (ok && bytes) {
        w->dev.k->download(&w->dev, out, x->data, bytes);
        weft__check_faults(w, "read");
    }
    if (ok)
        weft__check_leave(w);
    if (out && w->status)
        memset(out, 0, bytes);
    return w->status;
}

void weft_read(const weft_tensor *x, void *out, size_t bytes) { weft__read(x, out, bytes); }

double weft_item(const weft_tensor *x)
{
    real value = 0;
    if (x && WEFT__IS_USABLE(x->w, x, "item: the tensor") && weft__elements(&x->f) != 1)
        weft__fail(x->w, WEFT_ESHAPE, "item: %s; expected a tensor of one element", WEFT__TEXT(&x->f));
    if (x && x->f.type == WEFT_I32) {
        int32_t n = 0;
        return weft__read(x, &n, sizeof n) == WEFT_OK ? (double)n : (double)NAN;
    }
    return weft__read(x, &value, sizeof value) == WEFT_OK ? (double)value : (double)NAN;
}
