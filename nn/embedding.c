/* embedding.c - looks up rows of a table by ids.
 *
 * A gather by id -1 gives 0 without a gradient. So a constant table of ints maps every id to itself, and the
 * padding id to -1. This needs neither a mask of the result's size nor another pass over the gradient. */
#include "autograd/fused.h"
#include "nn/loss.h"

struct weft_embedding {
    weft_module *m;
    /* ids: [rows] ints: each id itself, but -1 for the padding id; data is NULL without a padding id. */
    weft_tensor *weight, ids;
    double row_dropout;
};

/* ---- ids without the padding id ---- */
static bool skip_shape(weft_call *c)
{
    weft_op_like(c->y[0], c->x[0]);
    return !is_real(c, 0) || weft_op_refuse(c, "expected ids as ints");
}
static void skip_run(weft_call *c)
{
    RUN(c, gather_ints, count(c->y[0]), 1, count(c->x[1]), I(c, 1), I(c, 0), -1, YI(c, 0));
}
static const weft_op op_skip = {
    .name = "embedding_run", .no_gradient = true, .shape = skip_shape, .forward = skip_run
};

static void embedding_end(void *p)
{
    weft_embedding *e = p;
    if (e->ids.w)
        weft__device_release(e->ids.w, e->ids.data);
}

static bool map_ids(weft_embedding *e, int64_t rows, int64_t padding)
{
    weft *w = e->m->w;
    size_t bytes = (size_t)rows * sizeof(int32_t);
    int32_t *id = weft__allocate(w, bytes);
    real *data = id ? weft__device_allocate(w, bytes) : NULL;
    for (int64_t i = 0; data && i < rows; i++)
        id[i] = i == padding ? -1 : (int32_t)i;
    if (data) {
        w->dev.k->upload(&w->dev, data, id, bytes);
        e->ids = (weft_tensor){ .w = w, .f = weft__plain(WEFT_I32, 1, &rows), .data = data };
    }
    weft__release(w, id);
    return data;
}

/* ---- the layer ---- */
static bool has_padding(const weft_embedding_opts *o) { return o->has_padding || o->padding != 0; }

static bool check_embedding(weft_module *m, const char *name, const weft_embedding_opts *o)
{
    if (!WEFT__SIZES(m, "embedding", name, o, { "rows", o ? o->rows : 0 }, { "columns", o ? o->columns : 0 }))
        return false;
    if (o->rows > INT32_MAX)
        weft__fail(m->w, WEFT_EARG, "embedding \"%.80s\" in %s: rows is %lld; expected 1 .. %d",
                   name ? name : "", m->path, (long long)o->rows, INT32_MAX);
    else if (has_padding(o) && (o->padding < 0 || o->padding >= o->rows))
        weft__fail(m->w, WEFT_EARG, "embedding \"%.80s\" in %s: padding is %lld; expected 0 .. %lld",
                   name ? name : "", m->path, (long long)o->padding, (long long)o->rows - 1);
    else if (!(o->row_dropout >= 0 && (real)o->row_dropout < 1))
        weft__fail(m->w, WEFT_EARG, "embedding \"%.80s\" in %s: row_dropout is %g; expected 0 <= p < 1",
                   name ? name : "", m->path, o->row_dropout);
    return !m->w->status;
}

weft_embedding *weft_embedding_new(weft_module *parent, const char *name, const weft_embedding_opts *opts)
{
    static weft_embedding inert;
    if (!check_embedding(parent, name, opts))
        return &inert;
    weft_module *m = weft_submodule_new(parent, name);
    weft *w = weft__ready(m);
    weft_embedding *e = w ? weft__own(w, sizeof *e, embedding_end, NULL) : NULL;
    if (!e)
        return weft__finish_layer(m, e, &inert);
    e->m = m;
    e->row_dropout = opts->row_dropout;
    e->weight = weft_parameter(m, "weight", WEFT_SHAPE(opts->rows, opts->columns),
                               (weft_init){ WEFT_INIT_NORMAL, 0, 1 });
    if (has_padding(opts))
        m->padding = opts->padding + 1;
    if (!w->status && has_padding(opts) && map_ids(e, opts->rows, opts->padding))
        w->dev.k->fill(&w->dev, opts->columns, 0, e->weight->data + opts->padding * opts->columns);
    return weft__finish_layer(m, e, &inert);
}

/* Applies dropout of whole rows. The factor of each row, 0 or 1 / (1 - p), is looked up by the ids, so the
 * table is not copied. */
static weft_tensor *drop_rows(const weft_embedding *e, weft_tensor *ids, weft_tensor *y)
{
    char place[WEFT__PATH + WEFT__NAME];
    if (e->row_dropout == 0 || !y->w->training || y->w->status)
        return y;
    snprintf(place, sizeof place, "%s.row_dropout", e->m->path);
    weft_tensor *factor = weft__row_factors(y->w, e->weight->f.size[0], e->row_dropout, place);
    return weft_mul(y, weft__as_column(weft_index_select(factor, ids)));
}

weft_tensor *weft_embedding_run(weft_embedding *e, weft_tensor *ids)
{
    weft_tensor *bad = weft__bad_input(e ? e->m : NULL, ids, "embedding_run");
    if (bad)
        return bad;
    const weft_module *before = weft__enter(e->m);
    if (ids->f.type != WEFT_I32)
        weft__failed(ids, WEFT_ESHAPE, "embedding_run", "expected ids as ints below %lld",
                     (long long)e->weight->f.size[0]);
    weft_tensor *rows = e->ids.data ? APPLY(&op_skip, ids, &e->ids) : ids,
                *y = weft_index_select(e->weight, rows);
    weft__record_lookup(y, e->weight, rows);
    return weft__leave_with(e->m, before, drop_rows(e, rows, y));
}
