/* index.c - selects rows and elements by int tensors: gather and scatter of rows, elements of the last axis,
 * one-hot. The kernels check the indices. An index out of range is an error that names its position. */
#include "autograd/op.h"

/* ---- gather and scatter of rows ---- */
static int64_t row_width(const weft__form *table) { return weft__extents(table, 1, table->rank); }

static bool index_select_shape(weft_call *c)
{
    const weft__form *table = &c->x[0]->f, *index = &c->x[1]->f;
    weft__form *y = &c->y[0]->f;
    if (table->rank < 1 || table->batch || index->type != WEFT_I32 ||
        index->rank + table->rank - 1 > WEFT_RANK)
        return weft_op_refuse(c, "expected a plain table of rows (weft_plain) and ints");
    *y = *index;
    weft__keep_row_order(c, 1);
    y->type = table->type;
    for (int i = 1; i < table->rank; i++)
        y->size[y->rank++] = table->size[i];
    return true;
}
static void index_select_run(weft_call *c)
{
    const weft__form *table = &c->x[0]->f;
    if (is_real(c, 0))
        RUN(c, gather, count(c->x[1]), row_width(table), table->size[0], X(c, 0), I(c, 1), 0, Y(c, 0),
            c->add);
    else
        RUN(c, gather_ints, count(c->x[1]), row_width(table), table->size[0], I(c, 0), I(c, 1), 0, YI(c, 0));
}
static void index_add_run(weft_call *c)
{
    const weft__form *table = &c->y[0]->f;
    RUN(c, scatter, count(c->x[1]), row_width(table), table->size[0], X(c, 0), I(c, 1), Y(c, 0), c->add);
}
static bool index_add_shape(weft_call *c)
{
    const weft__form *table = c->attributes, *x = &c->x[0]->f;
    c->y[0]->f = *table;
    weft__drop_row_order(c);
    return (is_real(c, 0) && !is_real(c, 1) && count(c->x[0]) == count(c->x[1]) * row_width(table) &&
            x->batch == c->x[1]->f.batch) ||
           weft__refuse(c, "expected reals, and an int for each of their rows of %lld",
                        (long long)row_width(table));
}
static weft_tensor *index_add_back(const weft_call *c, weft_tensor *dy, int i)
{
    return i ? NULL : weft__view(weft_index_select(dy, c->x[1]), &c->x[0]->f);
}
static const weft_op op_index_add = LINEAR_RECORD("index_add", WEFT_PLAIN, index_add_shape, index_add_run,
                                                  index_add_back, NULL);
static weft_tensor *index_select_back(const weft_call *c, weft_tensor *dy, int i)
{
    return i ? NULL : APPLY_WITH(&op_index_add, c->x[0]->f, dy, c->x[1]);
}
static const weft_op op_index_select = LINEAR_RECORD("index_select", WEFT_PLAIN, index_select_shape,
                                                     index_select_run, index_select_back, NULL);

weft_tensor *weft_index_select(weft_tensor *table, weft_tensor *index)
{
    return APPLY(&op_index_select, table, index);
}

weft_tensor *weft_index_add(weft_tensor *x, weft_tensor *index, int64_t rows)
{
    if (!x || weft__handle_error(x->w, x) || x->f.rank < 1 || weft__handle_error(x->w, index) ||
        index->f.rank < 1 || rows < 0 || rows > INT32_MAX)
        return weft__failed_of(LIST(x, index), WEFT_EARG, "index_add",
                               "expected rows of reals, an int for each of them, and 0 .. %d rows, not %lld",
                               INT32_MAX, (long long)rows);
    weft__form table = weft__plain(WEFT_REAL, 1, &rows);
    for (int i = index->f.rank; i < x->f.rank && table.rank < WEFT_RANK; i++)
        table.size[table.rank++] = x->f.size[i];
    return APPLY_WITH(&op_index_add, table, x, index);
}

/* ---- one element of each row ---- */
static bool take_along_shape(weft_call *c)
{
    weft__form expected = c->x[0]->f;
    expected.rank--, expected.type = WEFT_I32;
    if (!is_real(c, 0) || c->x[0]->f.rank < (c->x[0]->f.batch ? 2 : 1) ||
        !weft__forms_equal(&expected, &c->x[1]->f))
        return weft__refuse(c, "expected reals, and a column number for each of their rows: %s",
                            WEFT__TEXT(&expected));
    expected.type = WEFT_REAL;
    c->y[0]->f = expected;
    return true;
}
static void take_along_run(weft_call *c)
{
    const weft__segments rows = { count(c->y[0]), width(c->x[0]), 1, NULL };
    RUN(c, segment_pick, &rows, X(c, 0), I(c, 1), Y(c, 0), c->add);
}
static weft_tensor *take_along_back(const weft_call *c, weft_tensor *dy, int i)
{
    const weft__along a = weft__along_axis(c->x[0], c->x[0]->f.rank - 1, false);
    return i ? NULL : weft__place_along(&a, dy, c->x[1]);
}
static const weft_op op_gather = LINEAR_RECORD("gather", WEFT_PLAIN, take_along_shape, take_along_run,
                                               take_along_back, NULL);
weft_tensor *weft_gather(weft_tensor *x, weft_tensor *column) { return APPLY(&op_gather, x, column); }

/* ---- one-hot ---- */
static bool one_hot_shape(weft_call *c)
{
    weft__form *y = &c->y[0]->f;
    *y = c->x[0]->f;
    if (is_real(c, 0) || y->rank == WEFT_RANK || *(const int64_t *)c->attributes < 1)
        return weft__refuse(c, "%lld classes; expected ints of rank 0 .. %d and 1 class or more",
                            (long long)*(const int64_t *)c->attributes, WEFT_RANK - 1);
    y->type = WEFT_REAL;
    y->size[y->rank++] = *(const int64_t *)c->attributes;
    return true;
}
static void one_hot_run(weft_call *c) { RUN(c, one_hot, count(c->x[0]), width(c->y[0]), I(c, 0), Y(c, 0)); }
static const weft_op op_one_hot = {
    .name = "one_hot", .no_gradient = true, .shape = one_hot_shape, .forward = one_hot_run
};
weft_tensor *weft_one_hot(weft_tensor *class_, int64_t classes)
{
    return APPLY_WITH(&op_one_hot, classes, class_);
}
