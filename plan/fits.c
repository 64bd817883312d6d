/* fits.c - planners that place each sequence in a row with enough room (Johnson 1973): the last, the first,
 * the fullest or the emptiest row. */
#include "plan/planners.h"

/* ---- the lowest row with a gap: a tree of maxima, 16 children a node ---- */
enum { WAYS = 16, DEPTH = 9 };
typedef struct {
    int64_t *gap[DEPTH];
    int levels;
} tree;

static bool tree_new(tree *t, int64_t rows)
{
    *t = (tree){ .levels = 0 };
    for (int64_t n = rows; !t->levels || n > 1;) {
        int64_t nodes = (n + WAYS - 1) / WAYS * WAYS;
        int64_t *gap = t->gap[t->levels++] = weft__plan_memory(nodes, sizeof *gap);
        for (int64_t i = 0; gap && i < nodes; i++)
            gap[i] = -1;
        if (!gap)
            return false;
        n = nodes / WAYS;
    }
    return true;
}

static void tree_set(tree *t, int64_t row, int64_t gap)
{
    t->gap[0][row] = gap;
    for (int level = 1; level < t->levels; level++) {
        int64_t parent = row / WAYS, most = -1;
        for (int64_t i = parent * WAYS; i < (parent + 1) * WAYS; i++)
            most = t->gap[level - 1][i] > most ? t->gap[level - 1][i] : most;
        if (t->gap[level][parent] == most)
            return;
        t->gap[level][parent] = most;
        row = parent;
    }
}

static int64_t tree_first(const tree *t, int64_t least)
{
    int64_t node = 0;
    for (int level = t->levels - 1; level >= 0; level--) {
        int64_t i = node * WAYS, end = i + WAYS;
        while (i < end && t->gap[level][i] < least)
            i++;
        if (i == end)
            return -1;
        node = i;
    }
    return node;
}

/* ---- open rows ---- */
/* gap: the longest sequence that a row takes. pieces: of each row. cells, squares: how much of both a row has
 * left, only with a limit on squares. open: number of rows that can take a piece. list: those rows, only for
 * first fit with a limit on open rows. */
typedef struct {
    weft__fit rule;
    int64_t limit, most_open, most_cells, most_squares, most, rows, open;
    int64_t *gap, *cells, *squares;
    int32_t *pieces, *list;
    weft__gaps *gaps;
    tree first;
} bins;

static int64_t gap_of(int64_t cells, int64_t squares)
{
    int64_t root = weft__plan_root(squares);
    return root < cells ? root : cells;
}

static bool bins_new(bins *b, weft__fit rule, int64_t n, int64_t capacity, const weft_plan_opts *o)
{
    *b = (bins){ .rule = rule, .limit = o->limit, .most_open = o->open, .most_cells = capacity };
    b->most_squares = o->squares;
    b->most = o->squares ? gap_of(capacity, o->squares) : capacity;
    b->gap = weft__plan_memory(o->squares ? 3 * n : n, sizeof *b->gap);
    b->cells = o->squares && b->gap ? b->gap + n : NULL;
    b->squares = b->cells ? b->cells + n : NULL;
    b->pieces = b->limit ? weft__plan_memory(n, sizeof *b->pieces) : NULL;
    bool lists = rule == WEFT__FIRST_FIT && b->most_open;
    b->list = lists ? weft__plan_memory(b->most_open < n ? b->most_open : n, sizeof *b->list) : NULL;
    if (!b->gap || (b->limit && !b->pieces) || (lists && !b->list))
        return false;
    if (rule == WEFT__BEST_FIT || rule == WEFT__WORST_FIT)
        return (b->gaps = weft__gaps_new(n, capacity)) != NULL;
    return rule != WEFT__FIRST_FIT || tree_new(&b->first, n);
}

/* Returns a row with room for this length, and removes it from the index; -1: no such row. */
static int64_t take_row(bins *b, int64_t length)
{
    int64_t last = b->rows - 1, gap;
    switch (b->rule) {
    case WEFT__NEXT_FIT:
        return last >= 0 && b->gap[last] >= length ? last : -1;
    case WEFT__FIRST_FIT:
        return tree_first(&b->first, length);
    default:
        gap = b->rule == WEFT__BEST_FIT ? weft__gaps_at_least(b->gaps, length) : weft__gaps_max(b->gaps);
        return gap >= length ? weft__gaps_take(b->gaps, gap) : -1;
    }
}

static void remove_row(bins *b, int64_t row) /* removes a row from the list, which has no order */
{
    for (int64_t i = 0; b->list && i < b->open; i++)
        if (b->list[i] == row) {
            b->list[i] = b->list[b->open - 1];
            break;
        }
}

/* Closes the fullest open row; ties: the lowest. */
static void close_fullest(bins *b)
{
    if (b->gaps) {
        weft__gaps_take(b->gaps, weft__gaps_at_least(b->gaps, 0));
    } else if (b->list) {
        int64_t row = b->list[0];
        for (int64_t i = 1; i < b->open; i++) {
            int64_t bin = b->list[i];
            row = b->gap[bin] < b->gap[row] || (b->gap[bin] == b->gap[row] && bin < row) ? bin : row;
        }
        tree_set(&b->first, row, -1);
        remove_row(b, row);
    }
    b->open--;
}

static int64_t open_row(bins *b)
{
    if (b->most_open && b->open == b->most_open)
        close_fullest(b);
    if (b->list)
        b->list[b->open] = (int32_t)b->rows;
    b->open++;
    b->gap[b->rows] = b->most;
    if (b->cells) {
        b->cells[b->rows] = b->most_cells;
        b->squares[b->rows] = b->most_squares;
    }
    if (b->pieces)
        b->pieces[b->rows] = 0;
    return b->rows++;
}

/* Adds a piece to a row, which stays open while it has a gap and may take another. Returns false if memory is
 * short. */
static bool put_back(bins *b, int64_t row, int64_t length)
{
    if (b->cells) {
        b->cells[row] -= length;
        b->squares[row] -= length * length;
    }
    b->gap[row] = b->cells ? gap_of(b->cells[row], b->squares[row]) : b->gap[row] - length;
    bool stays = b->gap[row] > 0 && (!b->limit || ++b->pieces[row] < b->limit);
    if (!stays) {
        b->gap[row] = -1;
        remove_row(b, row);
        b->open--;
    }
    if (b->first.levels)
        tree_set(&b->first, row, b->gap[row]);
    return !b->gaps || !stays || weft__gaps_add(b->gaps, b->gap[row], row);
}

/* Fills row [n] with the row of each sequence, in this order; -1 for one without tokens. opened: rows that
 * are open at the start; only `worst_fit` can find them. Returns the number of rows with a sequence; -1, with
 * a message, if memory is short. */
static int64_t deal(weft__fit rule, const int32_t *len, int64_t n, const int32_t *order, int64_t opened,
                    int64_t capacity, const weft_plan_opts *o, int32_t *row)
{
    bins b;
    bool ok = bins_new(&b, rule, n, capacity, o);
    int64_t rows = 0;
    while (ok && b.rows < opened)
        ok = weft__gaps_add(b.gaps, b.most, open_row(&b));
    for (int64_t k = 0; k < n && ok; k++) {
        int64_t i = order[k], r;
        row[i] = -1;
        if (!len[i])
            continue;
        r = take_row(&b, len[i]);
        r = r < 0 ? open_row(&b) : r;
        rows = r < rows ? rows : r + 1;
        row[i] = (int32_t)r;
        ok = put_back(&b, r, len[i]);
    }
    return ok ? rows : -1;
}

/* Assigns sequences to rows, shuffled if the options shuffle. decreasing: longest first. opened: rows that
 * are open at the start. */
static weft_status fit(weft__fit rule, bool decreasing, int64_t opened, const int32_t *len, int64_t n,
                       int64_t capacity, const weft_plan_opts *o, weft_plan *p)
{
    int32_t *order = decreasing ? weft__plan_sorted(o, len, n, true) : weft__plan_random_order(o, n),
            *row = weft__plan_memory(n, sizeof *row);
    int64_t rows = order && row ? deal(rule, len, n, order, opened, capacity, o, row) : -1;
    return rows < 0 ? WEFT_ENOMEM : weft__plan_rows(p, len, n, order, row, rows, capacity, o);
}

/* ---- the planners ---- */
#define FIT(name, rule, decreasing)                                                                    \
    weft_status weft__planner_##name(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p) \
    {                                                                                                  \
        return fit(WEFT__##rule, decreasing, 0, len, n, o->capacity, o, p);                            \
    }
FIT(next_fit, NEXT_FIT, false)
FIT(first_fit, FIRST_FIT, false)
FIT(best_fit, BEST_FIT, false)
FIT(worst_fit, WORST_FIT, false)
FIT(next_fit_decreasing, NEXT_FIT, true)
FIT(first_fit_decreasing, FIRST_FIT, true)
FIT(best_fit_decreasing, BEST_FIT, true)
FIT(worst_fit_decreasing, WORST_FIT, true)

/* Opens the fewest rows that can hold all tokens, and the extra ones, before it places a sequence. */
weft_status weft__planner_greedy_knapsack(const int32_t *len, int64_t n, const weft_plan_opts *o,
                                          weft_plan *p)
{
    int64_t tokens = 0;
    for (int64_t i = 0; i < n; i++)
        tokens += len[i];
    int64_t rows = (tokens + o->capacity - 1) / o->capacity,
            opened = o->extra < n - rows ? rows + o->extra : n;
    return fit(WEFT__WORST_FIT, true, opened, len, n, o->capacity, o, p);
}

weft_status weft__planner_fold(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    return fit(WEFT__FIRST_FIT, true, 0, len, n, weft__plan_longest(len, n), o, p);
}

/* ---- rows for a batch in the user's order ---- */
/* Sequences of length 0 take no cell and are placed at the start of the first row. */
static int64_t place(const weft_plan *p, int64_t n, int32_t *row, int32_t *column)
{
    for (int64_t i = 0; i < n; i++)
        row[i] = column[i] = 0;
    for (int64_t i = 0; i < p->segments; i++) {
        const weft_segment *s = p->segment + i;
        row[s->sequence] = s->row;
        column[s->sequence] = (int32_t)s->column;
    }
    return p->batches ? p->batch[0].rows : n > 0;
}

weft_status weft_first_fit(const weft_lengths *l, int64_t width, int32_t *row, int32_t *column, int64_t *rows)
{
    if (!l || !rows || l->n < 0 || width < 0 || width > INT32_MAX || (l->n && (!l->len || !row || !column)))
        return weft_plan_refuse(WEFT_EARG, "first_fit: expected lengths, a width in 0 .. 2^31 - 1, and "
                                           "arrays for rows and columns");
    weft_plan p;
    weft_status s = weft_plan_make(weft_planner_named("first_fit"), l->len, l->n,
                                   &(weft_plan_opts){ .capacity = width ? width : 1 }, &p);
    if (s == WEFT_OK && p.tokens && !width)
        s = weft_plan_refuse(WEFT_EARG, "first_fit: width is 0 for %lld tokens; expected 1 or more",
                             (long long)p.tokens);
    if (s == WEFT_OK)
        *rows = place(&p, l->n, row, column);
    weft_plan_free(&p);
    return s;
}
