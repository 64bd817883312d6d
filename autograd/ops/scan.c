/* scan.c - linear recurrences y = a y_before + b along an axis or within sequences, and shifts of rows. */
#include "autograd/api_scan.h"
#include "autograd/op.h"

/* ---- shift: a gather of the rows of x, followed by those of `fill` ---- */
static int64_t rows_of(const weft__along *a) { return weft__extents(&a->whole, 0, a->axis + 1); }
static int64_t count_of(const weft__along *a)
{
    return a->tokens ? a->whole.batch->n : weft__extents(&a->whole, 0, a->axis);
}
static int64_t run_start(const weft__along *a, int64_t run)
{
    return a->tokens ? a->whole.batch->offset.host[run] : run * a->whole.size[a->axis];
}

/* Returns an index for each row of the result: of the row `by` rows earlier in the same run. Outside the run
 * it is -1, or with fill that of the run's row of fill. */
static weft_tensor *shifted_rows(weft *w, const weft__along *a, int64_t by, bool fill)
{
    const int64_t rows = rows_of(a);
    int32_t *index = weft__take(w, WEFT__ARENA_CALLS, rows * (int64_t)sizeof *index);
    for (int64_t run = 0; index && run < count_of(a); run++)
        for (int64_t from = run_start(a, run), end = run_start(a, run + 1), r = from; r < end; r++) {
            const bool inside = by >= 0 ? r - from >= by : end - r > -by;
            index[r] = (int32_t)(inside ? r - by : fill ? rows + run : -1);
        }
    return index ? weft_ints(w, index, 1, &rows) : &w->nil;
}

/* Returns x as a plain [rows, numbers of a row]. */
static weft_tensor *as_rows(weft_tensor *x, int64_t rows, const weft__along *a)
{
    const int64_t shape[] = { rows, weft__extents(&a->whole, a->axis + 1, a->whole.rank) };
    const weft__form f = weft__plain(x->f.type, 2, shape);
    return weft__view(x, &f);
}

/* fill [runs, ..], in the layout of x, or NULL */
static weft_tensor *shifted(weft_tensor *x, weft__along a, int64_t by, weft_tensor *fill)
{
    weft *w = x->w;
    x = a.tokens ? weft_to_layout(x, WEFT_CONCAT) : x;
    if (w->status)
        return &w->nil;
    a.whole = x->f;
    if (rows_of(&a) + count_of(&a) > INT32_MAX)
        return weft__failed(x, WEFT_ESHAPE, "shift", "expected fewer than 2^31 rows");
    weft_tensor *table = as_rows(x, rows_of(&a), &a);
    if (fill)
        table = weft_concat(LIST(table, as_rows(fill, count_of(&a), &a)), 0);
    weft_tensor *y = weft_index_select(table, shifted_rows(w, &a, by, fill));
    return w->status ? &w->nil : weft__view(y, &x->f);
}

weft_tensor *weft_shift(weft_tensor *x, int64_t by, weft_tensor *fill)
{
    int axis = 0;
    if (!x || (fill && weft__handle_error(x->w, fill)))
        return weft__failed_of(LIST(x, fill), WEFT_EARG, "shift", "expected x, and fill or NULL");
    if (!weft__find_axis(x, &axis, "shift"))
        return weft__inert_of(x);
    const weft__along a = weft__along_axis(x, 0, true);
    weft__form all = weft__reduced_form(&a), one = all;
    if (a.tokens) {
        one.rank--;
        for (int i = 0; i < one.rank; i++)
            one.size[i] = all.size[i + 1];
    }
    if (fill && !weft__forms_equal(&fill->f, &all) && !weft__forms_equal(&fill->f, &one))
        return weft__failed(fill, WEFT_ESHAPE, "shift", "fill; expected %s%s", WEFT__TEXT(&one),
                            a.tokens ? " or a row for each sequence" : "");
    return shifted(x, a, by, weft__spread_to(fill, &all));
}

/* ---- scan: inputs b, a, perhaps first ---- */
/* along.flag: from the end. later, shared: as in weft__scan; shared: a_row 0. */
typedef struct recurrence { weft__along along; bool later, shared; } recurrence;
enum { B_, A_, FIRST_ };
static const recurrence *how(const weft_call *c) { return c->attributes; }

/* Returns the first row of each run in the direction of the scan, as f; 0 for an empty run. */
static weft_tensor *first_rows(weft_tensor *x, const weft__along *a, const weft__form *f)
{
    const int64_t runs = count_of(a);
    int32_t *index = weft__take(x->w, WEFT__ARENA_CALLS, runs * (int64_t)sizeof *index);
    for (int64_t run = 0; index && run < runs; run++) {
        const int64_t from = run_start(a, run), end = run_start(a, run + 1);
        index[run] = (int32_t)(end == from ? -1 : a->flag ? end - 1 : from);
    }
    if (!index)
        return &x->w->nil;
    weft_tensor *rows = weft_index_select(as_rows(x, rows_of(a), a), weft_ints(x->w, index, 1, &runs));
    return x->w->status ? &x->w->nil : weft__view(rows, f);
}

static bool scan_shape(weft_call *c)
{
    const weft__along *along = weft__store_form(c);
    const weft__form expected = weft__reduced_form(along);
    weft_op_like(c->y[0], c->x[B_]);
    for (int i = 0; i < c->n; i++)
        if (!is_real(c, i))
            return weft_op_refuse(c, "expected reals (weft_to_reals)");
    if (c->n > FIRST_ && !weft__forms_equal(&c->x[FIRST_]->f, &expected))
        return weft__refuse(c, "first; expected %s: b without the axis%s", WEFT__TEXT(&expected),
                            along->tokens ? ", with a row for each sequence" : "");
    return true;
}
static weft__scan kernel_of(const weft_call *c)
{
    const recurrence *s = how(c);
    const weft__segments runs = weft__segments_of(&s->along);
    return (weft__scan){ .s = runs,
                         .reverse = s->along.flag,
                         .later = s->later,
                         .a = X(c, A_),
                         .a_row = s->shared ? 0 : runs.inner,
                         .b = X(c, B_),
                         .first = c->n > FIRST_ ? X(c, FIRST_) : NULL,
                         .y = Y(c, 0) };
}
static void scan_run(weft_call *c) { RUN(c, scan, (weft__scan[]){ kernel_of(c) }); }

/* da of a shared row is a sum over the rows of all da. */
static void scan_fused(const weft_call *c)
{
    weft__scan k = kernel_of(c);
    weft *w = c->y[0]->w;
    const int64_t n = count(c->y[0]);
    weft__into *const to[] = { &k.db, &k.da, &k.dfirst };
    k.dy = weft_op_dy(c, 0);
    for (int i = 0; i < c->n; i++)
        to[i]->to = weft_op_dx(c, i, &to[i]->add);
    const weft__into da = k.da;
    if (da.to && how(c)->shared)
        k.da = (weft__into){ weft__device_scratch(c, n), false };
    if (w->status)
        return;
    RUN(c, scan_back, &k);
    if (da.to && how(c)->shared) {
        const weft__grid rows = { 2, { k.s.inner ? n / k.s.inner : 0, k.s.inner }, { { 0, 1 } } };
        RUN(c, sum, &rows, k.da.to, da.to, da.add);
    }
}

static weft_tensor *apply(const recurrence *, weft_tensor *b, weft_tensor *a, weft_tensor *first);
/* By operators the gradient of b is a scan of dy in the other direction, with the factors of the later rows
 * (Martin & Cundy 2017); its own gradient is a scan as the first. */
static weft_tensor *scan_back(const weft_call *c, weft_tensor *dy, int i)
{
    const recurrence *s = how(c);
    weft__along a = weft__current_along(c);
    const int64_t by = a.flag ? -1 : 1;
    recurrence other = *s;
    other.along.flag = !a.flag;
    other.later = !s->later;
    weft_tensor *first = c->n > FIRST_ ? c->x[FIRST_] : NULL, *g = apply(&other, dy, c->x[A_], NULL);
    if (i == B_)
        return g;
    if (i == A_)
        return weft__sum_to(s->later ? weft__given_times(shifted(g, a, -by, NULL), c->y[0]) :
                                       weft__given_times(g, shifted(c->y[0], a, by, first)),
                            &c->x[A_]->f);
    return first_rows(weft__given_times(g, c->x[A_]), &a, &first->f);
}

#define SCAN_RECORD                                                                                  \
    .name = "scan", .layout = WEFT__ALONG, .unread = 1 << B_, .shape = scan_shape, .forward = scan_run, \
    .backward = scan_back, .describe = weft__describe_along
static const weft_op op_scan = { SCAN_RECORD, .fused = scan_fused }, op_later = { SCAN_RECORD };

static weft_tensor *apply(const recurrence *s, weft_tensor *b, weft_tensor *a, weft_tensor *first)
{
    weft_tensor *const in[] = { b, a, first };
    return weft__apply(s->later ? &op_later : &op_scan, in, first ? 3 : 2, s, sizeof *s)->y[0];
}

/* Repeats a to the form of b, or of one row if it is the same for all rows. */
static weft_tensor *factors_for(weft_tensor *a, const weft__along *along, bool *shared)
{
    weft__form to = along->whole, y;
    weft__grid g;
    *shared = !a->f.batch && a->f.rank < to.rank - along->axis;
    if (*shared)
        to = weft__plain(WEFT_REAL, to.rank - along->axis - 1, to.size + along->axis + 1);
    else if (a->f.batch && to.batch)
        weft__copy_layout(&to, &a->f);
    if (!weft__broadcast(&g, (const weft__form *[]){ &to, &a->f }, 2, &y) || !weft__forms_equal(&y, &to))
        return weft__failed(a, WEFT_ESHAPE, "scan", "factors a; expected %s, or what broadcasts to it",
                            WEFT__TEXT(&along->whole));
    return weft__spread_to(a, &to);
}

weft_tensor *weft_scan(weft_tensor *a, weft_tensor *b, int axis, weft_tensor *first, bool reverse)
{
    if (!a || !b || weft__handle_error(b->w, a))
        return weft__failed_of(LIST(a, b, first), WEFT_EARG, "scan", "expected factors a and terms b");
    if (!weft__find_axis(b, &axis, "scan"))
        return weft__inert_of(b);
    recurrence s = { .along = weft__along_axis(b, axis, true) };
    s.along.flag = reverse;
    a = factors_for(a, &s.along, &s.shared);
    return apply(&s, b, a, first);
}
