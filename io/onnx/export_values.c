/* export_values.c - finds the axes of values: groups of ONNX axes, dynamic ones, reshapes, batches, masks. */
#include <string.h>
#include "io/onnx/export.h"

void weft__ex_remove(value *v, int at)
{
    const int from = v->first[at], to = v->first[at + 1];
    memmove(v->dim + from, v->dim + to, (size_t)(v->axes - to) * sizeof *v->dim);
    for (int i = at; i < v->rank; i++)
        v->first[i] = v->first[i + 1] - (to - from);
    v->axes -= to - from, v->rank--;
}

void weft__ex_insert(value *v, int at, int n, const extent *dim)
{
    const int to = v->first[at];
    if (v->rank == WEFT_RANK || v->axes + n > AXES)
        return;
    memmove(v->dim + to + n, v->dim + to, (size_t)(v->axes - to) * sizeof *v->dim);
    memcpy(v->dim + to, dim, (size_t)n * sizeof *dim);
    for (int i = ++v->rank; i > at; i--)
        v->first[i] = v->first[i - 1] + n;
    v->axes += n;
}

void weft__ex_replace(value *v, int n, const extent *dim)
{
    weft__ex_remove(v, 0);
    weft__ex_insert(v, 0, n, dim);
}

void weft__ex_per_sequence(value *v, const batch *b)
{
    weft__ex_replace(v, b->axes - 1, b->rows + 1);
    v->dim[0].joined = false;
    v->dim[0].rows = b->pairs ? b->a->tokens : 0;
}

void weft__ex_refuse(graph *x, const char *reason)
{
    const char *op = x->call->op->name;
    const size_t n = strlen(x->refused), length = strlen(op);
    for (const char *p = x->refused; (p = strstr(p, "\n")) != NULL; p++) /* once for each name */
        if (!strncmp(p + 1, op, length) && p[1 + length] == ' ')
            longjmp(x->next, 1);
    snprintf(x->refused + n, sizeof x->refused - n, "\n%.64s (entry %%%lld): %.200s", op,
             (long long)x->entry, reason);
    longjmp(x->next, 1);
}

const char weft__ex_dropout[] = "dropout is on; run the forward pass inside WEFT_EVAL";
const char weft__ex_one_dynamic[] =
    "an axis is dynamic in one input only; trace with numbers of sequences and steps that no other axis has";

int weft__ex_axis(graph *x, const value *v, int axis)
{
    if (axes_of(v, axis) != 1)
        weft__ex_refuse(x, "it works along the rows of a whole batch");
    return v->first[axis];
}

/* ---- dynamic axes ---- */
extent weft__ex_symbol(graph *x, const char *name, int64_t n, const char *source, int axis)
{
    int same = 0;
    for (int i = 0; i < x->symbols; i++) {       /* "time", "time2", .. */
        const bool named = !strncmp(x->symbol[i].name, name, strlen(name));
        if (named && x->symbol[i].n == n && !strcmp(name, "batch"))
            return (extent){ .n = n, .symbol = i + 1 };
        same += named;
    }
    if (x->symbols == SYMBOLS)
        weft__ex_fail(x, WEFT_EARG, "more than %d dynamic axes", SYMBOLS);
    symbol *s = &x->symbol[x->symbols];
    *s = (symbol){ .n = n, .source = source, .axis = axis };
    snprintf(s->name, sizeof s->name, same ? "%.8s%d" : "%.8s", name, same + 1);
    return (extent){ .n = n, .symbol = ++x->symbols };
}

const char *weft__ex_size(graph *x, extent d)
{
    symbol *s = d.symbol ? &x->symbol[d.symbol - 1] : NULL;
    if (!s)
        return NODES(x, "[%lld]", (long long)d.n);
    if (!s->size && !s->source)                  /* no tensor of the batch yet: the longest length */
        s->size = NODES(x, "ReduceMax(%s)", s->lengths);
    if (!s->size)
        s->size = NODES(x, "Shape(%s, start=%d, end=%d)", s->source, s->axis, s->axis + 1);
    return s->size;
}

const char *weft__ex_sizes(graph *x, int n, const extent *d)
{
    const char *part[AXES];
    for (int i = 0; i < n; i++)
        part[i] = weft__ex_size(x, d[i]);
    return NODES(x, "Concat(%*p, axis=0)", ITEMS(n, part));
}

const char *weft__ex_expand(graph *x, const char *name, int n, const extent *size)
{
    return n ? NODES(x, "Expand(%s, %s)", name, weft__ex_sizes(x, n, size)) : name;
}

/* ---- reshapes ---- */
/* State of a reshape: next ONNX axis of the source and the part of it that is left. moved: the ONNX axes
 * change, so a node is needed. */
typedef struct reshape { const value *v; int next; int64_t part; bool moved; } reshape;

static bool take_axis(reshape *r, int64_t size, extent *group, int *n)
{
    int64_t have = 1;
    for (*n = 0; r->next < r->v->axes;) {
        const extent d = r->v->dim[r->next];
        const bool whole = d.symbol || d.joined || d.rows;
        const int64_t rest = d.joined ? 1 : d.rows ? d.rows : r->part ? r->part : d.n,
                      needed = have ? size / have : 0, taken = rest < needed ? rest : needed;
        if (have == size && !(d.joined || (rest == 1 && *n == 0)))
            break;
        if (!whole && rest == 1 && size > 1) {
            r->moved = true, r->next++, r->part = 0; /* an axis of extent 1 vanishes */
            continue;
        }
        if (have == 0 || size % have ||
            (rest > needed ? whole || needed == 0 || rest % needed : rest == 0 || needed % rest))
            return false;
        if (*n && !whole && !group[*n - 1].symbol && !group[*n - 1].rows)
            group[*n - 1].n *= taken, r->moved = true;
        else
            group[(*n)++] = whole ? d : (extent){ .n = taken };
        have *= taken;
        r->part = taken < rest ? rest / taken : 0;
        r->moved |= r->part != 0;
        r->next += r->part == 0;
    }
    if (*n == 0)
        group[(*n)++] = (extent){ .n = 1 }, r->moved = true;
    return have == size;
}

static const char *reshape_node(graph *x, const value *v, const value *y)
{
    int64_t shape[AXES];
    int computed = 0;
    for (int i = 0; i < y->axes; i++) {
        const bool copied = i < v->axes && v->dim[i].symbol == y->dim[i].symbol;
        shape[i] = !y->dim[i].symbol ? y->dim[i].n : copied ? 0 : -1;
        computed += shape[i] == -1;
    }
    return computed > 1 ? NODES(x, "Reshape(%s, %s)", v->name, weft__ex_sizes(x, y->axes, y->dim)) :
                          NODES(x, "Reshape(%s, [%*p])", v->name, ITEMS(y->axes, shape));
}

const char *weft__ex_reshape(graph *x, const value *v, int from, int to_rank, const int64_t *size, value *y)
{
    static const char dynamic[] = "a reshape that divides or merges a dynamic axis";
    reshape r = { .v = v, .next = v->first[from] };
    value out = { 0 };
    for (int i = 0; i < from; i++)
        weft__ex_insert(&out, i, axes_of(v, i), v->dim + v->first[i]);
    for (int i = from; i < to_rank; i++) {
        extent group[AXES];
        int n;
        if (!take_axis(&r, size[i], group, &n) || out.axes + n > AXES)
            weft__ex_refuse(x, dynamic);
        weft__ex_insert(&out, i, n, group);
    }
    for (; r.next < v->axes; r.next++, r.moved = true)
        if (v->dim[r.next].symbol || v->dim[r.next].n != 1)
            weft__ex_refuse(x, dynamic);
    out.name = r.moved ? reshape_node(x, v, &out) : v->name;
    *y = out;
    return y->name;
}

/* ---- batches ---- */
batch *weft__ex_batch(graph *x, const weft_batch *b)
{
    for (int i = 0; i < x->batches; i++)
        if (x->batch[i].b == b)
            return &x->batch[i];
    return NULL;
}

batch *weft__ex_new_batch(graph *x, const weft_batch *b, int axes, const extent *rows)
{
    if (x->batches == BATCHES)
        weft__ex_fail(x, WEFT_EARG, "more than %d batches", BATCHES);
    batch *k = &x->batch[x->batches++];
    *k = (batch){ .b = b, .axes = axes };
    for (int i = 0; i < axes; i++)
        k->rows[i] = (extent){ rows[i].n, i ? 0 : b->tokens, rows[i].symbol, i > 0 };
    return k;
}

batch *weft__ex_root(graph *x, const weft_batch *b)
{
    batch *k = weft__ex_batch(x, b);
    if (k)
        return k;
    const char *name = x->lengths++ ? weft__ex_text(x, "lengths%d", x->lengths) : "lengths";
    const extent sequences = weft__ex_symbol(x, "batch", b->n, name, 0);
    weft__ex_end(x, false, name, WEFT_I32, &(value){ .axes = 1, .dim = { sequences } });
    /* The source of the time is set by the first tensor of the batch. "time2" has "lengths2". */
    const extent rows[] = { weft__ex_symbol(x, "time", b->longest, NULL, 0), sequences };
    x->symbol[rows[0].symbol - 1].lengths = name;
    k = weft__ex_new_batch(x, b, 2, rows);
    k->lengths = name;
    return k;
}

bool weft__ex_time_source(graph *x, const batch *b, const char *source, int axis)
{
    symbol *time = b->rows[0].symbol ? &x->symbol[b->rows[0].symbol - 1] : NULL;
    if (!time || time->source)
        return false;
    time->source = source;
    time->axis = axis;
    return true;
}

const char *weft__ex_range(graph *x, extent d, int axes)
{
    static const int64_t shape[] = { -1, 1, 1, 1 };
    return NODES(x, "Reshape(Range(0, Squeeze(%s, [0]), 1), [%*p])", weft__ex_size(x, d), ITEMS(axes, shape));
}
const char *weft__ex_position(graph *x, batch *b)
{
    return b->position = b->position ? b->position : weft__ex_range(x, b->rows[0], b->axes);
}
const char *weft__ex_lengths(graph *x, const batch *b)
{
    return b->lengths ? b->lengths : weft__ex_size(x, b->rows[0]);
}

/* Appends axes of extent 1 to a tensor with that many axes. */
static const char *widened(graph *x, const char *name, int axes, const value *v)
{
    static const int64_t axis[AXES] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
    return v->axes > axes ? NODES(x, "Unsqueeze(%s, [%*p])", name, ITEMS(v->axes - axes, axis + axes)) : name;
}
const char *weft__ex_where(graph *x, const char *inside, int axes, const value *v, weft_dtype type,
                           double fill)
{
    inside = widened(x, inside, axes, v);
    return type == WEFT_REAL ? NODES(x, "Where(%s, %s, %g)", inside, v->name, fill) :
                               NODES(x, "Where(%s, %s, %d)", inside, v->name, (int)fill);
}
const char *weft__ex_filled(graph *x, batch *b, const value *v, weft_dtype type, double fill)
{
    if (!b->mask && b->lengths)
        b->mask = NODES(x, "Less(%s, %s)", weft__ex_position(x, b), b->lengths);
    return b->mask ? weft__ex_where(x, b->mask, b->axes, v, type, fill) : v->name;
}
const char *weft__ex_not_empty(graph *x, const batch *b, const value *v, weft_dtype type)
{
    const char *some = b->lengths ? NODES(x, "Greater(%s, 0)", b->lengths) : NULL;
    return some ? weft__ex_where(x, some, b->axes - 1, v, type, 0) : v->name;
}

const char *weft__ex_gather_time(graph *x, const value *v, const char *index)
{
    extent dim[AXES];
    memcpy(dim, v->dim, sizeof dim);
    dim[0] = (extent){ .n = 1 }; /* the index has its own time */
    return NODES(x, "GatherElements(%s, %s, axis=0)", v->name,
                 weft__ex_expand(x, widened(x, index, 2, v), v->axes, dim));
}
