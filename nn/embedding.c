/* embedding.c - a table of rows, and the rows of some ids.
 *
 * The padding row is kept out by its id: a small lasting table of ints maps every id to itself, but padding
 * to -1, and row -1 of a gather is 0 and has no gradient. So neither a mask of the result's size nor a second
 * look at the gradient is needed. */
#include "autograd/autograd.h"
#include "nn/nn.h"

struct weft_embedding {
    weft_module *m;
    /* ids: [rows] ints, id -> id or -1; without data if there is no padding */
    weft_tensor *weight, ids;
};

/* ---- ids without padding ---- */
static bool skip_shape(weft_call *c)
{
    weft_op_like(c->y[0], c->x[0]);
    return !is_real(c, 0) || weft_op_refuse(c, "ids, ints, are wanted");
}
static void skip_run(weft_call *c)
{
    RUN(c, gather_ints, count(c->y[0]), 1, count(c->x[1]), I(c, 1), I(c, 0), -1, (int32_t *)(void *)Y(c, 0));
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

static bool is_sound(weft_module *m, const weft_embedding_opts *o)
{
    weft *w = weft__ready(m);
    if (w && !o)
        weft__fail(w, WEFT_EARG, "embedding: opts is NULL");
    else if (w && (o->rows < 1 || o->rows > INT32_MAX))
        weft__fail(w, WEFT_EARG, "embedding: %lld rows; 1 .. %d are wanted", (long long)o->rows, INT32_MAX);
    else if (w && has_padding(o) && (o->padding < 0 || o->padding >= o->rows))
        weft__fail(w, WEFT_EARG, "embedding: padding %lld; 0 .. %lld is wanted", (long long)o->padding,
                   (long long)o->rows - 1);
    return w && !w->status;
}

weft_embedding *weft_embedding_with(weft_module *parent, const char *name, const weft_embedding_opts *opts)
{
    static weft_embedding none;
    if (!is_sound(parent, opts))
        return &none;
    weft_module *m = weft_submodule_new(parent, name);
    weft *w = weft__ready(m);
    weft_embedding *e = w ? weft__own(w, sizeof *e, embedding_end, NULL) : NULL;
    if (!e)
        return weft__finished(m, e, &none);
    e->m = m;
    e->weight = weft_parameter(m, "weight", WEFT_SHAPE(opts->rows, opts->columns),
                               (weft_init){ WEFT_INIT_NORMAL, 0, 1 });
    if (!w->status && has_padding(opts) && map_ids(e, opts->rows, opts->padding))
        w->dev.k->fill(&w->dev, opts->columns, 0, e->weight->data + opts->padding * opts->columns);
    return weft__finished(m, e, &none);
}

weft_embedding *weft_embedding_new(weft_module *m, const char *name, int64_t rows, int64_t columns)
{
    return weft_embedding_with(m, name, &(weft_embedding_opts){ .rows = rows, .columns = columns });
}

weft_tensor *weft_embedding_run(weft_embedding *e, weft_tensor *ids)
{
    weft_tensor *bad = weft__refused(e ? e->m : NULL, ids, "embedding_run");
    if (bad)
        return bad;
    const weft_module *before = weft__enter(e->m);
    if (ids->f.type != WEFT_I32)
        weft__failed(ids, WEFT_ESHAPE, "embedding_run", "ids, ints below %lld, are wanted",
                     (long long)e->weight->f.size[0]);
    weft_tensor *rows = e->ids.data ? APPLY(&op_skip, ids, &e->ids) : ids,
                *y = weft_index_select(e->weight, rows);
    weft__looked_up(y, e->weight, rows);
    weft__leave(e->m, before);
    return y;
}
