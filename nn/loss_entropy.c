/* loss_entropy.c - cross entropy of each row, as one operator.
 *
 * The fused form saves memory: only the logits and their gradient have the shape [rows, classes]. The
 * composed form computes the same sum with public operators, for second derivatives. Mask and class weights
 * are constants, as in PyTorch: the fused backward fails if their gradient is requested. */
#include "autograd/fused.h"
#include "nn/loss.h"

typedef struct {
    int64_t classes; real smoothing; int32_t ignore; bool has_ignore;
    int weight, mask;                            /* index of the input class_weight, mask; 0: not given */
} entropy_opts;

static const weft_tensor *input_or_null(const weft_call *c, int i) { return i ? c->x[i] : NULL; }

static weft__entropy arguments(const weft_call *c, const weft_tensor *classes)
{
    const entropy_opts *m = c->attributes;
    const weft_tensor *weight = input_or_null(c, m->weight), *mask = input_or_null(c, m->mask);
    return (weft__entropy){ weft__elements(&classes->f), m->classes, m->smoothing, m->has_ignore, m->ignore,
                            weight ? weight->data : NULL, mask ? mask->data : NULL };
}

/* Writes the location of a row for a message. A user knows the token of a sequence, not the layout's row. */
static void describe_place(const weft_tensor *classes, int64_t row, char *text, size_t size)
{
    const struct weft__rows *rows = classes->f.batch ? weft__rows_of(classes->f.batch, &classes->f) : NULL;
    if (!rows) {
        snprintf(text, size, "row %lld", (long long)row);
        return;
    }
    int64_t token = row / (weft__elements(&classes->f) / classes->f.size[0]);
    snprintf(text, size, "token %d of sequence %d", rows->position.host[token], rows->sequence.host[token]);
}

static void check_classes(const weft_call *c, const weft_tensor *classes)
{
    weft *w = classes->w;
    weft__fault fault = w->dev.fault;
    char place[96];
    if (!fault.is)
        return;
    w->dev.fault = (weft__fault){ 0 };
    describe_place(classes, fault.row, place, sizeof place);
    weft__fail(w, WEFT_EARG, "%s: class %lld in %s; expected 0 .. %lld, or the class to ignore", c->op->name,
               (long long)fault.value, place, (long long)fault.below - 1);
}

/* Checks classes, class_weight and mask, and sets the shape of the result. */
static bool shapes(weft_call *c, const weft_tensor *classes)
{
    const entropy_opts *m = c->attributes;
    const weft_tensor *weight = input_or_null(c, m->weight), *mask = input_or_null(c, m->mask);
    weft__form expected = classes->f;
    expected.type = WEFT_REAL;
    if (classes->f.type != WEFT_I32)
        return weft_op_refuse(c, "classes are reals; expected ints (weft_to_ints)");
    if (m->classes == 0 && weft__elements(&classes->f))
        return weft_op_refuse(c, "rows without classes; expected a last extent of 1 or more");
    if (weight && (weight->f.type != WEFT_REAL || weight->f.batch || weight->f.rank != 1 ||
                   weight->f.size[0] != m->classes))
        return weft__refuse(c, "class_weight is %s; expected plain [%lld] of reals, one for each class",
                            WEFT__TEXT(&weight->f), (long long)m->classes);
    if (mask && !weft__forms_equal(&mask->f, &expected))
        return weft__refuse(c, "the mask is %s; expected reals with the shape and layout of the classes",
                            WEFT__TEXT(&mask->f));
    c->y[0]->f = expected;
    return expected.batch || expected.rank < 1 || weft__rows_agree(c, expected.size[0], 1);
}

/* ---- the weight of each row: x = classes, class_weight, mask ---- */
static bool weight_shape(weft_call *c) { return shapes(c, c->x[0]); }

static void weight_run(weft_call *c)
{
    weft *w = c->y[0]->w;
    weft__entropy e = arguments(c, c->x[0]);
    w->dev.k->entropy_weight(&w->dev, &e, weft_op_int_data(c->x[0]), c->y[0]->data);
    check_classes(c, c->x[0]);
}

static void describe_weight(const weft_call *c, char *text, size_t size)
{
    const entropy_opts *m = c->attributes;
    snprintf(text, size, "the weight of each row");
    if (m->has_ignore)
        snprintf(text, size, "the weight of each row, ignore=%d", m->ignore);
}

static const weft_op op_weight = { .name = "cross_entropy",
                                   .no_gradient = true,
                                   .shape = weight_shape,
                                   .forward = weight_run,
                                   .describe = describe_weight };

/* Appends class_weight and mask to the n inputs in x. Returns the new number of inputs. */
static int with_options(weft_tensor **x, int n, entropy_opts *m, weft_tensor *class_weight, weft_tensor *mask)
{
    m->weight = class_weight ? n : 0;
    if (class_weight)
        x[n++] = class_weight;
    m->mask = mask ? n : 0;
    if (mask)
        x[n++] = mask;
    return n;
}

static bool ignores(const weft_cross_entropy_opts *o) { return o->has_ignore_index || o->ignore_index != 0; }

weft_tensor *weft__entropy_weight(weft_tensor *classes, int64_t n, const weft_cross_entropy_opts *opts,
                                  bool weighted)
{
    weft_cross_entropy_opts o = opts ? *opts : (weft_cross_entropy_opts){ 0 };
    entropy_opts m = { .classes = n, .ignore = o.ignore_index, .has_ignore = ignores(&o) };
    weft_tensor *x[3] = { classes };
    int inputs = with_options(x, 1, &m, weighted ? o.class_weight : NULL, o.mask);
    return weft__apply(&op_weight, x, inputs, &m, sizeof m)->y[0];
}

/* ---- the loss of each row: x = logits, classes, class_weight, mask ---- */
/* Fails with a hint for logits [n, classes, T ..] with classes [n, T ..], the order of PyTorch. */
static bool refuse_shapes(const weft_call *c)
{
    const weft__form *x = &c->x[0]->f, *t = &c->x[1]->f;
    bool second = x->rank > 2 && x->rank == t->rank + 1 && x->size[0] == t->size[0] && !x->batch && !t->batch;
    for (int i = 1; second && i < t->rank; i++)
        second = x->size[i + 1] == t->size[i];
    if (second)
        return weft__refuse(c,
                            "classes are the last axis, of extent %lld here; they seem to be axis 1, of "
                            "extent %lld, as in PyTorch%s",
                            (long long)x->size[x->rank - 1], (long long)x->size[1],
                            x->rank == 3 ? ": weft_transpose(logits, 1, 2)" : "");
    return weft_op_refuse(c, "expected logits [.., classes] and classes [..], both ragged or both plain");
}

static bool entropy_shape(weft_call *c)
{
    const weft__form *x = &c->x[0]->f, *t = &c->x[1]->f;
    bool agree = x->type == WEFT_REAL && x->rank == t->rank + 1 && x->batch == t->batch;
    for (int i = 0; agree && i < t->rank; i++)
        agree = x->size[i] == t->size[i];
    return agree ? shapes(c, c->x[1]) : refuse_shapes(c);
}

static void entropy_run(weft_call *c)
{
    weft *w = c->y[0]->w;
    weft__entropy e = arguments(c, c->x[1]);
    w->dev.k->entropy(&w->dev, &e, c->x[0]->data, weft_op_int_data(c->x[1]), c->y[0]->data);
    check_classes(c, c->x[1]);
}

static void entropy_fused(const weft_call *c)
{
    weft *w = c->y[0]->w;
    weft__entropy e = arguments(c, c->x[1]);
    bool add;
    for (int i = 2; i < c->n; i++)
        if (weft_op_dx(c, i, &add))
            weft__fail(w, WEFT_EARG, "cross_entropy: gradient of mask or class_weight; expected constants");
    real *dx = weft_op_dx(c, 0, &add);
    if (dx && !w->status)
        w->dev.k->entropy_back(&w->dev, &e, c->x[0]->data, weft_op_int_data(c->x[1]), weft_op_dy(c, 0), dx,
                               add);
}

weft_tensor *weft__class_rows(weft_tensor *classes, int64_t n)
{
    return weft_equal(weft__as_column(classes), weft_arange(classes->w, 0, n, 1));
}

static void entropy_composed(const weft_call *c, weft_tensor **y)
{
    const entropy_opts *m = c->attributes;
    weft *w = c->y[0]->w;
    weft_cross_entropy_opts o = { .mask = m->mask ? c->x[m->mask] : NULL,
                                  .ignore_index = m->ignore,
                                  .has_ignore_index = m->has_ignore };
    weft_tensor *row = weft__as_column(weft__entropy_weight(c->x[1], m->classes, &o, false));
    weft_tensor *weight = m->weight ? c->x[m->weight] : weft_full(w, 1, WEFT_SHAPE(m->classes));
    weft_tensor *chosen =
        weft_scale(weft_mul(weft__class_rows(c->x[1], m->classes), weight), (double)(1 - m->smoothing));
    weft_tensor *even = weft_scale(weight, (double)(m->smoothing / (real)(m->classes ? m->classes : 1)));
    weft_tensor *log_p = weft_log_softmax(weft_where(row, c->x[0], weft_scalar(w, 0)), -1, NULL);
    /* A weight of 0 gives 0, even with a logit of -inf. */
    weft_tensor *share = weft_mul(row, weft_add(chosen, even));
    y[0] = weft_neg(weft_sum(weft__given_times(share, log_p), -1));
}

static void describe_manner(const weft_call *c, char *text, size_t size)
{
    const entropy_opts *m = c->attributes;
    char ignore[40] = "";
    if (m->has_ignore)
        snprintf(ignore, sizeof ignore, ", ignore=%d", m->ignore);
    snprintf(text, size, "smoothing=%g%s", (double)m->smoothing, ignore);
}

static const weft_op op_entropy = { .name = "cross_entropy",
                                    .shape = entropy_shape,
                                    .forward = entropy_run,
                                    .fused = entropy_fused,
                                    .composed = entropy_composed,
                                    .describe = describe_manner };

weft_loss weft_cross_entropy(weft_tensor *logits, weft_tensor *classes, const weft_cross_entropy_opts *opts)
{
    weft_cross_entropy_opts o = opts ? *opts : (weft_cross_entropy_opts){ 0 };
    if (!(o.label_smoothing >= 0 && o.label_smoothing <= 1))
        weft__fail(weft_context_of(logits), WEFT_EARG, "cross_entropy: label_smoothing %g; expected 0 .. 1",
                   o.label_smoothing);
    entropy_opts m = { weft_size(logits, -1), (real)o.label_smoothing, o.ignore_index, ignores(&o), 0, 0 };
    weft_tensor *x[4] = { logits, classes };
    int inputs = with_options(x, 2, &m, o.class_weight, o.mask);
    weft_tensor *rows = weft__apply(&op_entropy, x, inputs, &m, sizeof m)->y[0];
    return (weft_loss){ weft_sum_all(rows),
                        weft_sum_all(weft__entropy_weight(classes, m.classes, opts, true)) };
}
