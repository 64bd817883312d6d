/* test_ops_layouts.c - tests every ragged operator of op_cases.def on the same sequences in concat, packed
 * and rows. Values and gradients, recorded or not, must be the same. */
#include "op_inputs.h"

/* ---- one case in one layout ---- */
enum { MOST = 4096 };
/* y and its unrecorded gradients, then y and its recorded gradients, for at most 4 inputs */
typedef struct { int64_t n[6]; weft_real value[6][MOST]; } found;

static weft_tensor *concat_of(weft_tensor *x)
{
    return weft_layout_of(x) == WEFT_PLAIN ? x : weft_to_layout(x, WEFT_CONCAT);
}

static void keep(found *f, int at, weft_tensor *x)
{
    x = concat_of(x);
    f->n[at] = weft_numel(x);
    cr_assert_leq(f->n[at], MOST);
    memcpy(f->value[at], numbers(x), (size_t)f->n[at] * sizeof(weft_real));
}

/* The sum of y sin(y) sin(1 + k) and of the squares of the first input. At least two gradients meet in y and
 * in x. */
static weft_tensor *twice_of(weft_tensor *y, weft_tensor *x)
{
    weft *w = weft_context_of(x);
    static weft_real p[MOST];
    for (int64_t k = 0; k < MOST; k++)
        p[k] = (weft_real)sin(1 + (double)k);
    weft_tensor *like = concat_of(y), *probe = weft__tensor(w, &like->f, p);
    return weft_add(weft_sum_all(weft_mul(y, weft_mul(weft_sin(y), probe))), weft_sum_all(weft_square(x)));
}

static void find(weft *w, const op_case *c, int round, weft_layout layout, bool recorded, found *f)
{
    weft_tensor *x[4], *dx[4];
    weft_clear(w);
    w->random.draw = 7;
    dice_seed((uint64_t)round);
    draw_round();
    int n = inputs(w, c, x, layout);
    weft_tensor *y = c->f(x, NULL), *loss = twice_of(y, x[0]);
    cr_assert(weft_ok(w), "%s: %s", c->name, weft_error_message(w));
    keep(f, 0, y);
    (recorded ? weft_gradients_recorded : weft_gradients)(loss, x, n, dx);
    for (int i = 0; i < n; i++)
        keep(f, 1 + i, dx[i]);
    f->n[1 + n] = -1;
}

static bool is_ragged(const op_case *c)
{
    bool any = false;
    for (int i = 0; i < 4; i++)
        any |= *c->shapes[i] == '~' || *c->shapes[i] == '=';
    return any && strcmp(c->name, "plain");       /* shows the order of the rows */
}

static void same(const op_case *c, const found *got, const found *want, const char *how)
{
    for (int i = 0; want->n[i] >= 0; i++) {
        const char *what = i ? "gradient" : "value";
        cr_assert_eq(got->n[i], want->n[i], "%s in %s: %lld numbers", c->name, how, (long long)got->n[i]);
        cr_expect(is_close(c->name, got->value[i], want->value[i], want->n[i],
                           i ? TOL(1e-11, 5e-5) : TOL(1e-12, 1e-5)),
                  "in %s: %s %d", how, what, i);
    }
}

static void one_case(weft *w, const op_case *c, int round)
{
    static const struct { weft_layout layout; bool recorded; const char *name;
    } ways[] = { { WEFT_PACKED, false, "packed" },
                 { WEFT_ROWS, false, "rows" },
                 { WEFT_CONCAT, true, "concat, recorded" },
                 { WEFT_PACKED, true, "packed, recorded" },
                 { WEFT_ROWS, true, "rows, recorded" } };
    static found want, got;
    find(w, c, round, WEFT_CONCAT, false, &want);
    for (int i = 0; i < COUNT(ways); i++) {
        find(w, c, round, ways[i].layout, ways[i].recorded, &got);
        same(c, &got, &want, ways[i].name);
    }
}

TABLE_TEST(ops_layouts, match_in_concat_packed_and_rows)
{
    for (int r = 0; r < rounds(4, 200); r++)
        FOR_CASES(c)
            if (is_ragged(&c))
                one_case(w, &c, 1 + case_i + 200 * c.variant + 1000 * r);
}
