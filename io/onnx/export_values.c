/* export_values.c - finds the axes of values: groups of ONNX axes, batches and their masks, broadcasts,
 * reshapes. */
#include <string.h>
#include "io/onnx/export.h"

weft__value weft__export_like(const weft__value *v, const char *name)
{
    weft__value y = *v;
    y.name = name;
    y.last = y.count = NULL;
    return y;
}

void weft__export_remove(weft__value *v, int rank, int at)
{
    const int from = v->first[at], to = v->first[at + 1];
    memmove(v->dim + from, v->dim + to, (size_t)(v->axes - to) * sizeof *v->dim);
    for (int i = at; i < rank; i++)
        v->first[i] = v->first[i + 1] - (to - from);
    v->axes -= to - from;
}

void weft__export_insert(weft__value *v, int rank, int at, int n, const weft__dim *dim)
{
    const int to = v->first[at];
    if (rank == WEFT_RANK || v->axes + n > WEFT__EXPORT_RANK)
        return;
    memmove(v->dim + to + n, v->dim + to, (size_t)(v->axes - to) * sizeof *v->dim);
    memcpy(v->dim + to, dim, (size_t)n * sizeof *dim);
    for (int i = rank + 1; i > at; i--)
        v->first[i] = v->first[i - 1] + n;
    v->axes += n;
}

bool weft__export_refuse(weft__export *x, const weft_call *c, const char *reason)
{
    char line[300];
    const size_t n = strlen(x->refused), length = strlen(c->op->name);
    for (const char *p = x->refused; (p = strstr(p, "\n")) != NULL; p++) /* once for each name */
        if (!strncmp(p + 1, c->op->name, length) && p[1 + length] == ' ')
            return false;
    snprintf(line, sizeof line, "\n%.64s (entry %%%lld): %.200s", c->op->name, (long long)x->entry, reason);
    snprintf(x->refused + n, sizeof x->refused - n, "%s", line);
    return false;
}

int weft__export_axis(weft__export *x, const weft_call *c, const weft__value *v, int axis)
{
    if (v->first[axis + 1] - v->first[axis] == 1)
        return v->first[axis];
    weft__export_refuse(x, c, "it works along the rows of a whole batch");
    return -1;
}

/* ---- broadcasting ---- */
static bool is_one(const weft__value *v, int axis)
{
    return v->first[axis + 1] == v->first[axis] ||
           (v->first[axis + 1] == v->first[axis] + 1 && v->dim[v->first[axis]].n == 1 &&
            !v->dim[v->first[axis]].symbol);
}
static bool same_group(const weft__value *a, int i, const weft__value *b, int j)
{
    const int n = a->first[i + 1] - a->first[i];
    bool same = n == b->first[j + 1] - b->first[j];
    for (int k = 0; same && k < n; k++) {
        const weft__dim *p = &a->dim[a->first[i] + k], *q = &b->dim[b->first[j] + k];
        same = p->symbol == q->symbol && (p->symbol || p->n == q->n);
    }
    return same;
}

bool weft__export_broadcast(weft__export *x, const weft_call *c, const weft__value *const *v, const int *rank,
                            int n, weft__value *out)
{
    int most = 0, group[WEFT_RANK + 1] = { 0 }; /* operand that gives the axis, from the right */
    for (int k = 0; k < n; k++)
        most = rank[k] > most ? rank[k] : most;
    for (int a = 1; a <= most; a++) {
        group[a] = -1;
        for (int k = 0; k < n; k++) {
            if (a > rank[k] || (group[a] >= 0 && is_one(v[k], rank[k] - a)))
                continue;
            const int g = group[a];
            if (g < 0 || is_one(v[g], rank[g] - a))
                group[a] = k;
            else if (!same_group(v[g], rank[g] - a, v[k], rank[k] - a))
                return weft__export_refuse(x, c,
                                           "an axis is dynamic in one input only; trace with numbers of "
                                           "sequences and steps that no other axis has");
        }
        for (int k = 0; k < n; k++) /* axes left of it would shift */
            if (a < rank[k] &&
                v[k]->first[rank[k] - a + 1] - v[k]->first[rank[k] - a] !=
                    v[group[a]]->first[rank[group[a]] - a + 1] - v[group[a]]->first[rank[group[a]] - a])
                return weft__export_refuse(x, c, "its inputs broadcast along the rows of a batch");
    }
    *out = (weft__value){ .axes = 0 };
    for (int a = most; a >= 1; a--) {
        const weft__value *g = v[group[a]];
        const int i = rank[group[a]] - a;
        weft__export_insert(out, most - a, most - a, g->first[i + 1] - g->first[i], g->dim + g->first[i]);
    }
    return true;
}

/* ---- reshapes ---- */
/* State of a reshape: next ONNX axis of the source and the part of it that is left. moved: the ONNX axes
 * change, so a node is needed. */
typedef struct reshape {
    const weft__value *v;
    int next;
    int64_t part;
    bool moved;
} reshape;

static bool take_axis(reshape *r, int64_t extent, weft__dim *group, int *n)
{
    int64_t have = 1;
    for (*n = 0; r->next < r->v->axes;) {
        const weft__dim d = r->v->dim[r->next];
        const bool whole = d.symbol || d.joined || d.rows;
        const int64_t rest = d.joined ? 1 :
                             d.rows   ? d.rows :
                             r->part  ? r->part :
                                        d.n,
                      needed = have ? extent / have : 0;
        if (have == extent && !(d.joined || (rest == 1 && *n == 0)))
            break;
        if (!whole && rest == 1 && extent > 1) {
            r->moved = true, r->next++, r->part = 0; /* an axis of extent 1 vanishes */
            continue;
        }
        if (have == 0 || extent % have ||
            (rest > needed ? whole || needed == 0 || rest % needed : rest == 0 || needed % rest))
            return false;
        const int64_t taken = rest < needed ? rest : needed;
        if (*n && !whole && !group[*n - 1].symbol && !group[*n - 1].rows)
            group[*n - 1].n *= taken, r->moved = true;
        else
            group[(*n)++] = whole ? d : (weft__dim){ .n = taken };
        have *= taken;
        r->part = taken < rest ? rest / taken : 0;
        r->moved |= r->part != 0;
        r->next += r->part == 0;
    }
    if (*n == 0)
        group[(*n)++] = (weft__dim){ .n = 1 }, r->moved = true;
    return have == extent;
}

static const char *reshape_node(weft__export *x, const weft__value *v, const weft__value *out)
{
    int64_t shape[WEFT__EXPORT_RANK];
    const char *part[WEFT__EXPORT_RANK];
    int free = 0;
    for (int i = 0; i < out->axes; i++) {
        const bool copied = out->dim[i].symbol && i < v->axes && v->dim[i].symbol == out->dim[i].symbol;
        shape[i] = !out->dim[i].symbol ? out->dim[i].n : copied ? 0 : -1;
        free += shape[i] == -1;
    }
    if (free <= 1)
        return NODE(x, "Reshape", v->name, weft__export_ints(x, out->axes, shape));
    for (int i = 0; i < out->axes; i++)
        part[i] = weft__export_size(x, out->dim[i]);
    return NODE(x, "Reshape", v->name,
                weft__export_node(x, "Concat", part, out->axes, ATTRIBUTES(INT("axis", 0)), NULL, 1));
}

bool weft__export_reshape(weft__export *x, const weft_call *c, const weft__value *v, int rank, int from,
                          int to_rank, const int64_t *size, weft__value *out)
{
    reshape r = { .v = v, .next = v->first[from] };
    weft__value y = { .axes = 0 };
    (void)rank;
    for (int i = 0; i < from; i++)
        weft__export_insert(&y, i, i, v->first[i + 1] - v->first[i], v->dim + v->first[i]);
    for (int i = from; i < to_rank; i++) {
        weft__dim group[WEFT__EXPORT_RANK];
        int n;
        if (!take_axis(&r, size[i], group, &n) || y.axes + n > WEFT__EXPORT_RANK)
            return weft__export_refuse(x, c, "a reshape that divides or merges a dynamic axis");
        weft__export_insert(&y, i, i, n, group);
    }
    for (; r.next < v->axes; r.next++, r.moved = true)
        if (v->dim[r.next].symbol || v->dim[r.next].n != 1)
            return weft__export_refuse(x, c, "a reshape that divides or merges a dynamic axis");
    y.name = r.moved ? reshape_node(x, v, &y) : v->name;
    *out = y;
    return true;
}

/* ---- batches ---- */
weft__export_batch *weft__export_batch_of(weft__export *x, const weft_batch *b)
{
    for (int i = 0; i < x->batches; i++)
        if (x->batch[i].b == b)
            return &x->batch[i];
    return NULL;
}

weft__export_batch *weft__export_new_batch(weft__export *x, const weft_batch *b, int axes,
                                           const weft__dim *rows)
{
    if (x->batches == WEFT__EXPORT_BATCHES) {
        weft__export_fail(x, WEFT_EARG, "more than %d batches", WEFT__EXPORT_BATCHES);
        return NULL;
    }
    weft__export_batch *k = &x->batch[x->batches++];
    *k = (weft__export_batch){ .b = b, .axes = axes };
    for (int i = 0; i < axes; i++) {
        k->rows[i] = rows[i];
        k->rows[i].rows = i ? 0 : b->tokens, k->rows[i].joined = i > 0;
    }
    return k;
}

weft__export_batch *weft__export_root(weft__export *x, const weft_batch *b)
{
    weft__export_batch *k = weft__export_batch_of(x, b);
    if (k)
        return k;
    const char *name = x->lengths++ ? weft__export_name_of(x, "lengths%d", x->lengths) : "lengths";
    const weft__dim batch = weft__export_batch_axis(x, b->n, name, 0);
    weft__value v = { .axes = 1, .dim = { batch } };
    if (weft__export_reserve(x, name))
        weft__export_add_value(x, &x->inputs, 11, name, WEFT__EXPORT_INT64, &v);
    /* The source of the time is set by the first tensor of the batch. */
    const weft__dim rows[] = { weft__export_symbol(x, "time", b->longest, NULL, 0), batch };
    if (rows[0].symbol)
        x->symbol[rows[0].symbol - 1].lengths = name;
    if ((k = weft__export_new_batch(x, b, 2, rows)))
        k->lengths = name;
    return k;
}

weft__export_batch *weft__export_equal(weft__export *x, const weft_batch *b, weft__dim time, weft__dim batch)
{
    weft__export_batch *k = weft__export_batch_of(x, b);
    if (k)
        return !k->lengths && k->rows[0].symbol == time.symbol && k->rows[1].symbol == batch.symbol ? k :
                                                                                                      NULL;
    return weft__export_new_batch(x, b, 2, (weft__dim[]){ time, batch });
}

const char *weft__export_position(weft__export *x, weft__export_batch *b)
{
    if (!b->position) {
        const char *size = weft__export_squeeze(x, weft__export_size(x, b->rows[0]), 0);
        int64_t shape[] = { -1, 1, 1, 1 };
        b->position =
            NODE(x, "Reshape", NODE(x, "Range", weft__export_int(x, 0), size, weft__export_int(x, 1)),
                 weft__export_ints(x, b->axes, shape));
    }
    return b->position;
}
const char *weft__export_lengths(weft__export *x, weft__export_batch *b)
{
    return b->lengths ? b->lengths : weft__export_size(x, b->rows[0]);
}
const char *weft__export_mask(weft__export *x, weft__export_batch *b)
{
    if (!b->mask && b->lengths)
        b->mask = NODE(x, "Less", weft__export_position(x, b), b->lengths);
    return b->mask;
}

/* Appends axes of extent 1 to a tensor with as many axes as the rows of the batch. */
static const char *widened(weft__export *x, const char *name, const weft__export_batch *b,
                           const weft__value *v)
{
    int64_t axis[WEFT__EXPORT_RANK];
    for (int i = b->axes; i < v->axes; i++)
        axis[i - b->axes] = i;
    return v->axes > b->axes ? NODE(x, "Unsqueeze", name, weft__export_ints(x, v->axes - b->axes, axis)) :
                               name;
}
const char *weft__export_filled(weft__export *x, weft__export_batch *b, const weft__value *v,
                                const char *fill)
{
    const char *mask = weft__export_mask(x, b);
    return mask ? NODE(x, "Where", widened(x, mask, b, v), v->name, fill) : v->name;
}

const char *weft__export_gather_time(weft__export *x, const char *name, const char *index,
                                     const weft__value *v)
{
    const weft__export_batch two = { .axes = 2 };
    weft__dim dim[WEFT__EXPORT_RANK];
    memcpy(dim, v->dim, sizeof dim);
    dim[0] = (weft__dim){ .n = 1 }; /* the index has its own time */
    return NODE_WITH(x, "GatherElements", ATTRIBUTES(INT("axis", 0)), name,
                     weft__export_expand(x, widened(x, index, &two, v), v->axes, dim));
}
