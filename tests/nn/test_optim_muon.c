/* test_optim_muon.c - tests Muon: its directions, the share of AdamW, non-finite gradients, resumed runs and
 * bits of thread counts. tests/golden/layers.json compares its steps with torch.optim.Muon. */
#include "nn/optim.h"
#include "optim_model.h"
#include "tests/io/files.h"

enum { ROWS = 40, COLUMNS = 70 };
typedef struct { weft *w; weft_module *m; weft_tensor *matrix, *table, *bias; weft_optim *o; } net;

static weft_muon_opts options(void)
{
    return (weft_muon_opts){ .lr = .02, .weight_decay = .1, .adamw = { .lr = .01, .weight_decay = .2 } };
}
static net net_in(weft *w, const char *excluded)
{
    weft_init u = { WEFT_INIT_UNIFORM, -1, 1 };
    net a = { .w = w, .m = weft_module_new(w, "net") };
    a.matrix = weft_parameter(a.m, "matrix", WEFT_SHAPE(ROWS, COLUMNS), u);
    a.table = weft_parameter(a.m, "table", WEFT_SHAPE(9, 5), u);
    a.bias = weft_parameter(a.m, "bias", WEFT_SHAPE(7), u);
    weft_muon_opts o = options();
    a.o = excluded ? weft_muon_new(a.m, &o) : weft_adamw_new(a.m, &o.adamw);
    if (excluded)
        weft_muon_exclude(a.o, excluded);
    return a;
}
static void steps(net *a, int from, int to)
{
    for (int t = from; t < to; t++) {
        set_gradient(a->matrix, 0, t), set_gradient(a->table, 1, t), set_gradient(a->bias, 2, t);
        weft_optim_step(a->o);
        weft_clear(a->w);
    }
    OK(a->w);
}

/* Vectors and excluded matrices move as with AdamW, to the bit, also after a change of the rate and with a
 * group. Not excluded, the matrix moves otherwise. */
TABLE_TEST(muon, other_parameters_move_as_with_adamw)
{
    net a = net_in(w, "table"), b = net_in(w, NULL);
    weft_optim_set_group(a.o, "b*", 2, .5), weft_optim_set_group(b.o, "b*", 2, .5);
    steps(&a, 0, 3), steps(&b, 0, 3);
    weft_optim_set_lr(a.o, .04), weft_optim_set_lr(b.o, .02);
    steps(&a, 3, 5), steps(&b, 3, 5);
    for (int i = 0; i < 45; i++)
        cr_assert_float_eq(numbers(a.table)[i], numbers(b.table)[i], TOL(1e-13, 1e-6));
    for (int i = 0; i < 7; i++)
        cr_assert_float_eq(numbers(a.bias)[i], numbers(b.bias)[i], TOL(1e-13, 1e-6));
    cr_assert_float_neq(numbers(a.matrix)[5], numbers(b.matrix)[5], 1e-3);
}

/* The rows of the first step, divided by the rate, are orthogonal, with lengths near 1. */
TABLE_TEST(muon, directions_are_nearly_orthogonal)
{
    net a = net_in(w, "table");
    weft_real *before = numbers(a.matrix);
    steps(&a, 0, 1);
    weft_real *after = numbers(a.matrix);
    double worst = 0;
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k <= i; k++) {
            double sum = 0;
            for (int c = 0; c < COLUMNS; c++) {
                int p = i * COLUMNS + c, q = k * COLUMNS + c;
                sum += ((double)before[p] * (1 - .002) - (double)after[p]) / .02 *
                       (((double)before[q] * (1 - .002) - (double)after[q]) / .02);
            }
            worst = fmax(worst, k < i ? fabs(sum) : 0);
        }
    cr_assert_lt(worst, .6, "rows are not orthogonal: %g", worst);
}

/* Directions of a skipped step leave no trace: the vectors in a checkpoint stay valid. */
TABLE_TEST(muon, skipped_step_leaves_no_direction)
{
    net a = net_in(w, "table"), b = net_in(w, "table");
    steps(&a, 0, 2), steps(&b, 0, 2);
    const double bad[] = { NAN, INFINITY };
    for (int i = 0; i < 2; i++) {
        weft_real *g = numbers(weft_grad(a.matrix));
        g[7] = (weft_real)bad[i];
        weft_assign_values(weft_grad(a.matrix), g, ROWS * COLUMNS);
        weft_optim_step(a.o);
        cr_assert_str_eq(bad_parameter(a.o), "matrix");
        weft_real v[ROWS * COLUMNS] = { 0 }, zeros[ROWS * COLUMNS] = { 0 };
        w->dev.k->download(&w->dev, v, a.o->v, sizeof v);
        same_bits("directions", v, zeros, ROWS * COLUMNS);
    }
    weft_clear(w);
    steps(&a, 2, 4), steps(&b, 2, 4);
    same_bits("matrix", numbers(a.matrix), numbers(b.matrix), ROWS * COLUMNS);
    cr_assert_eq(weft_optim_skipped(a.o, NULL), 2);
}

TABLE_TEST(muon, resumed_run_has_the_same_bits)
{
    net a = net_in(w, "table"), b = net_in(w, "table");
    steps(&a, 0, 3);
    DOES(weft_save(in_folder("muon"), a.m, a.o, NULL, 0));
    DOES(weft_load(in_folder("muon"), b.m, b.o, NULL, 0));
    steps(&a, 3, 6), steps(&b, 3, 6);
    same_bits("matrix", numbers(a.matrix), numbers(b.matrix), ROWS * COLUMNS);
    same_bits("table", numbers(a.table), numbers(b.table), 45);
    end_folder();
}

Test(muon, thread_count_changes_no_bit)
{
    static weft_real one[ROWS * COLUMNS];
    for (int threads = 1; threads < 5; threads++) {
        weft *w = open_with((weft_opts){ .device = WEFT_CPU, .threads = threads, .seed = 1 });
        net a = net_in(w, "table");
        steps(&a, 0, 3);
        if (threads == 1)
            memcpy(one, numbers(a.matrix), sizeof one);
        same_bits("matrix", numbers(a.matrix), one, ROWS * COLUMNS);
        CLEAN(w);
    }
}

REF_TEST(muon, exclusions_are_refused)
{
    net a = net_in(w, "nothing");
    static const char *const bad[] = { NULL, "" };
    for (int i = 0; i < 2; i++) {
        weft_muon_exclude(a.o, bad[i]);
        FAILS(w, WEFT_EARG, "muon_exclude: pattern ");
    }
    set_gradient(a.bias, 2, 0);
    weft_optim_step(a.o);
    FAILS(w, WEFT_EARG, "the group \"nothing\" of the muon of net matches no parameter");
    net b = net_in(w, "table");
    steps(&b, 0, 1);
    weft_muon_exclude(b.o, "matrix");
    FAILS(w, WEFT_EARG, "muon_exclude: pattern \"matrix\", muon after 1 steps; expected a pattern of paths");
    weft_muon_exclude(net_in(w, NULL).o, "matrix");
    FAILS(w, WEFT_EARG, "adamw after 0 steps");
}
