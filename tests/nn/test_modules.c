/* test_modules.c - tests the tree of modules: names, initial values, flat vectors, refused shapes and
 * names. */
#include <float.h>
#include "autograd/tape.h"
#include "tests/nn/trees.h"

static const weft_init unit = { WEFT_INIT_UNIFORM, 0, 1 };

/* ---- names ---- */
CPU_TEST(modules, paths_start_below_the_given_module)
{
    weft_module *net = weft_module_new(w, "net"), *enc = weft_submodule_new(net, "enc"),
                *cell = weft_submodule_new(enc, "cell");
    weft_tensor *a = vector(cell, "a", 3, unit), *b = weft_parameter(net, "b", WEFT_SHAPE(2, 5), unit),
                *c = weft_buffer(enc, "c", WEFT_SHAPE(4));
    weft_tensor *d = weft_parameter(enc, "d", 0, NULL, unit);
    cr_assert(weft_module_context(cell) == w);
    struct { weft_module *m; const char *path; weft_tensor *want;
    } find[] = {
        { net, "enc.cell.a", a },   { enc, "cell.a", a }, { cell, "a", a },    { net, "b", b },
        { enc, "b", NULL },         { net, "enc.c", c },  { enc, "d", d },     { net, "enc", NULL },
        { net, "enc.cell.", NULL }, { net, "", NULL },    { net, NULL, NULL }, { net, "net.b", NULL },
        { net, ".b", NULL },        { net, "b.b", NULL }, { NULL, "b", NULL }
    };
    for (int i = 0; i < COUNT(find); i++)
        cr_assert(weft_find_parameter(find[i].m, find[i].path) == find[i].want, "%s", find[i].path);
    const char *path, *const order[] = { "enc.cell.a", "b", "enc.d" };
    cr_assert(weft_parameter_count(net) == 3 && weft_parameter_count(enc) == 2 &&
              weft_parameter_count(cell) == 1);
    cr_assert(weft_buffer_count(net) == 1 && weft_buffer_count(cell) == 0);
    for (int i = 0; i < 3; i++) {
        weft_tensor *p = weft_parameter_at(net, i, &path);
        cr_assert_str_eq(path, order[i]);
        cr_assert(p == weft_find_parameter(net, path));
    }
    cr_assert(weft_parameter_at(enc, 1, &path) == d && !strcmp(path, "d"));
    cr_assert(weft_buffer_at(net, 0, &path) == c && !strcmp(path, "enc.c"));
    cr_assert(weft_buffer_at(net, 0, NULL) == c);
    cr_assert(weft_parameter_numel(net) == 3 + 10 + 1 && weft_parameter_numel(enc) == 4);
    cr_assert(weft_rank(b) == 2 && weft_size(b, 1) == 5 && weft_numel(d) == 1 && all_are(c, 0) &&
              all_are(weft_grad(b), 0));
}

CPU_TEST(modules, names_are_unique_and_limited)
{
    char longest[66];
    weft_module *net = weft_module_new(w, "net"), *deep = net;
    weft_submodule_new(net, "child");
    vector(net, "weight", 2, zero);
    weft_buffer(net, "state", WEFT_SHAPE(2));
    weft_tie(net, "again", weft_find_parameter(net, "weight"));
    const char *const taken[] = { "child", "weight", "state", "again" };
    for (int i = 0; i < COUNT(taken); i++) {
        cr_assert_null(weft_module_context(weft_submodule_new(net, taken[i])));
        FAILS(w, WEFT_EARG, "already");
        vector(net, taken[i], 1, zero);
        FAILS(w, WEFT_EARG, taken[i]);
        weft_buffer(net, taken[i], WEFT_SHAPE(1));
        FAILS(w, WEFT_EARG, "net has a");
        weft_tie(net, taken[i], weft_find_parameter(net, "weight"));
        FAILS(w, WEFT_EARG, "already");
    }
    memset(longest, 'x', sizeof longest);
    longest[64] = 0;
    const char *const bad[] = { "", "a.b", "a/b", NULL, longest };
    for (int i = 0; i < COUNT(bad); i++) {
        cr_assert_null(weft_module_context(weft_module_new(w, bad[i])));
        FAILS(w, WEFT_EARG, "the name");
        weft_submodule_new(net, bad[i]);
        FAILS(w, WEFT_EARG, "in net");
        vector(net, bad[i], 1, zero);
        FAILS(w, WEFT_EARG, "parameter: the name");
        weft_buffer(net, bad[i], WEFT_SHAPE(1));
        FAILS(w, WEFT_EARG, "buffer: the name");
    }
    longest[63] = 0;
    cr_assert(weft_parameter_count(net) == 1 && weft_buffer_count(net) == 1);
    for (int i = 0; i < 3; i++)
        deep = weft_submodule_new(deep, longest);
    OK(w);
    weft_submodule_new(deep, longest);
    FAILS(w, WEFT_EARG, "path");
    cr_assert(weft_module_context(weft_module_new(w, "net")) == w, "roots may share a name");
}

/* ---- first values ---- */
static void read_all(uint64_t seed, const char *root, bool backwards, weft_real *out)
{
    static const char *const names[] = { "a", "b", "c" };
    weft *w = open_with((weft_opts){ .device = WEFT_CPU, .seed = seed, .threads = 1 });
    weft_module *m = weft_module_new(w, root);
    for (int i = 0; i < 3; i++)
        weft_parameter(weft_submodule_new(m, names[backwards ? 2 - i : i]), "w", WEFT_SHAPE(4, 5),
                       (weft_init){ WEFT_INIT_NORMAL, 0, 1 });
    for (int i = 0; i < 3; i++)
        memcpy(out + 20 * i, numbers(weft_find_parameter(m, (const char *[]){ "a.w", "b.w", "c.w" }[i])),
               20 * sizeof *out);
    CLEAN(w);
}

Test(modules, initial_values_depend_on_seed_and_path_only)
{
    weft_real a[60], b[60];
    read_all(7, "net", false, a);
    read_all(7, "net", true, b);
    same_bits("the other order", b, a, 60);
    for (int i = 0; i < 20; i++)
        cr_assert(a[i] != a[20 + i] && a[20 + i] != a[40 + i], "two paths, one value");
    read_all(8, "net", false, b);
    cr_assert(a[0] != b[0] && a[59] != b[59]);
    read_all(7, "another", false, b);
    cr_assert(a[0] != b[0] && a[59] != b[59]);
}

static void moments(weft_tensor *x, double *mean, double *deviation, double *largest)
{
    weft_real *v = numbers(x);
    int64_t n = weft_numel(x);
    double sum = 0, squares = 0;
    *largest = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += (double)v[i];
        squares += (double)v[i] * (double)v[i];
        *largest = fmax(*largest, fabs((double)v[i]));
    }
    *mean = sum / (double)n;
    *deviation = sqrt(squares / (double)n - *mean * *mean);
}

TABLE_TEST(modules, initial_values_match_their_kind)
{
    weft_module *m = weft_module_new(w, "m");
    cr_assert(all_are(vector(m, "zero", 9, zero), 0) &&
              all_are(vector(m, "constant", 9, constant(-2)), -2));
    struct { const char *name; weft_init init; double mean, deviation, bound; } k[] = {
        { "uniform",  { WEFT_INIT_UNIFORM, 1, 3 }, 2, 1 / sqrt(3), 3 },
        { "normal",   { WEFT_INIT_NORMAL, -1, 2 }, -1, 2, INFINITY },
        { "xavier",   { WEFT_INIT_XAVIER, 0, 0 }, 0, sqrt(2. / 100), sqrt(6. / 100) },
        { "xavier2",  { WEFT_INIT_XAVIER, 2, 0 }, 0, 2 * sqrt(2. / 100), 2 * sqrt(6. / 100) },
        { "kaiming",  { WEFT_INIT_KAIMING, 0, 0 }, 0, sqrt(2. / 20), sqrt(6. / 20) } };
    for (int i = 0; i < COUNT(k); i++) {
        double mean, deviation, largest;
        moments(weft_parameter(m, k[i].name, WEFT_SHAPE(80, 20), k[i].init), &mean, &deviation, &largest);
        cr_assert(fabs(mean - k[i].mean) < .15 * k[i].deviation, "%s: mean %g", k[i].name, mean);
        cr_assert(fabs(deviation / k[i].deviation - 1) < .08, "%s: deviation %g, not %g", k[i].name,
                  deviation, k[i].deviation);
        cr_assert(largest <= k[i].bound * 1.000001 && largest > (isinf(k[i].bound) ? 4 : .98 * k[i].bound),
                  "%s: largest %g", k[i].name, largest);
    }
    weft_tensor *filter =
        weft_parameter(m, "filter", WEFT_SHAPE(10, 20, 4, 2), (weft_init){ WEFT_INIT_XAVIER, 1, 0 });
    double mean, deviation, largest, bound = sqrt(6. / (8 * 30));
    moments(filter, &mean, &deviation, &largest);
    cr_assert(largest <= bound * 1.000001 && largest > .98 * bound);
    weft_parameter(m, "empty", WEFT_SHAPE(0, 3), (weft_init){ WEFT_INIT_ORTHOGONAL, 1, 0 });
    weft_parameter(m, "empty_too", WEFT_SHAPE(3, 0), (weft_init){ WEFT_INIT_KAIMING, 1, 0 });
}

TABLE_TEST(modules, orthogonal_initial_values_are_orthogonal)
{
    static const int64_t sizes[][2] = { { 1, 1 }, { 5, 5 }, { 3, 17 }, { 40, 9 }, { 64, 64 } };
    weft_module *m = weft_module_new(w, "m");
    for (int i = 0; i < COUNT(sizes); i++) {
        char name[] = { (char)('a' + i), 0 };
        int64_t rows = sizes[i][0], columns = sizes[i][1];
        weft_real *q = numbers(
            weft_parameter(m, name, 2, sizes[i], (weft_init){ WEFT_INIT_ORTHOGONAL, (weft_real)1.5, 0 }));
        bool wide = rows <= columns;             /* its rows are orthonormal if wide, otherwise its columns */
        int64_t k = wide ? rows : columns, n = wide ? columns : rows, along = wide ? 1 : columns,
                apart = wide ? columns : 1;
        for (int64_t a = 0; a < k; a++)
            for (int64_t b = 0; b < k; b++) {
                double dot = 0;
                for (int64_t j = 0; j < n; j++)
                    dot += (double)q[a * apart + j * along] * (double)q[b * apart + j * along];
                cr_assert(fabs(dot - (a == b ? 2.25 : 0)) < TOL(1e-13, 1e-6), "%lld x %lld: %lld . %lld = %g",
                          (long long)rows, (long long)columns, (long long)a, (long long)b, dot);
            }
    }
}

CPU_TEST(modules, initialise_replaces_values)
{
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *p = vector(m, "p", 40, unit), *buffer = weft_buffer(m, "b", WEFT_SHAPE(3));
    weft_real first[40];
    weft_read(p, first, sizeof first);
    uint64_t version = m->w->tape->version;
    weft_initialise(p, constant(4));
    cr_assert(all_are(p, 4) && m->w->tape->version > version);
    weft_initialise(p, unit);
    same_bits("again", numbers(p), first, 40);
    /* the largest number of a weft_real, and one beyond it */
    double most = sizeof(weft_real) == sizeof(float) ? (double)FLT_MAX : DBL_MAX, large = 2 * most;
    struct { weft_tensor *x; weft_init init; weft_status status; const char *part;
    } bad[] = { { buffer, unit, WEFT_EARG, "not a parameter" },
                { weft_grad(p), unit, WEFT_EARG, "not a parameter" },
                { NULL, unit, WEFT_OK, "" },
                { p, { WEFT_INIT_UNIFORM, NAN, 1 }, WEFT_EARG, "finite" },
                { p, { WEFT_INIT_NORMAL, 0, INFINITY }, WEFT_EARG, "finite" },
                { p, { WEFT_INIT_NORMAL, .02, 0 }, WEFT_EARG, "deviation 0; expected a deviation above 0" },
                { p, { WEFT_INIT_NORMAL, 0, -1 }, WEFT_EARG, "deviation -1" },
                { p, { WEFT_INIT_UNIFORM, 0, 0 }, WEFT_EARG, "not both 0" },
                { p, { WEFT_INIT_CONSTANT, large, 0 }, WEFT_EARG, "finite" },
                { p, { WEFT_INIT_UNIFORM, -.75 * most, .75 * most }, WEFT_EARG, "a finite difference" },
                { p, { (weft_init_kind)99, 0, 0 }, WEFT_EARG, "weft_init_kind" },
                { p, { WEFT_INIT_XAVIER, 0, 0 }, WEFT_ESHAPE, "rank" },
                { p, { WEFT_INIT_ORTHOGONAL, 0, 0 }, WEFT_ESHAPE, "m.p" } };
    for (int i = 0; i < COUNT(bad); i++) {
        weft_initialise(bad[i].x, bad[i].init);
        if (bad[i].status)
            FAILS(w, bad[i].status, bad[i].part);
    }
    same_bits("after refusals", numbers(p), first, 40);
}

/* ---- the flat vectors ---- */
TABLE_TEST(modules, values_and_gradients_survive_growth)
{
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *p[60];
    weft_real *was[60];
    for (int i = 0; i < 60; i++) {
        p[i] = vector(weft_submodule_new(m, name_with("p", i)), "w", 1 + 7 * i, unit);
        was[i] = numbers(p[i]);
        /* a gradient, while others are still made */
        weft_backward(weft_scale(weft_sum_all(p[i]), (weft_real)(i + 1)));
    }
    for (int i = 0; i < 60; i++) {
        same_bits("value", numbers(p[i]), was[i], 1 + 7 * i);
        cr_assert(all_are(weft_grad(p[i]), i + 1));
    }
    weft_clear(w);
}

CPU_TEST(modules, view_of_this_step_survives_growth)
{
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *p = weft_parameter(m, "p", WEFT_SHAPE(2, 3), constant(3)),
                *view = weft_reshape(p, WEFT_SHAPE(6));
    for (int i = 0; i < 12; i++)
        vector(m, name_with("q", i), 1000, zero);
    weft_backward(weft_sum_all(weft_mul(view, view)));
    cr_assert(all_are(view, 3) && all_are(weft_grad(p), 6));
}

CPU_TEST(modules, growth_without_a_step_leaks_nothing)
{
    weft_module *m = weft_module_new(w, "m");
    for (int i = 0; i < 40; i++)
        vector(m, name_with("p", i), 10000, zero);
    int64_t numbers_held = weft_usage_of(w).host_bytes / (int64_t)sizeof(weft_real);
    cr_assert(numbers_held < 2 * 2 * 400000 + 100000, "%lld numbers are held", (long long)numbers_held);
}

CPU_TEST(modules, adjacent_parameters_form_one_run)
{
    weft_module *m = weft_module_new(w, "m"), *a = weft_submodule_new(m, "a"),
                *b = weft_submodule_new(m, "b");
    vector(a, "1", 16, unit), vector(b, "1", 3, unit), vector(a, "2", 20, unit), vector(a, "3", 0, unit),
        vector(a, "4", 1, unit), weft_buffer(a, "5", WEFT_SHAPE(7));
    struct { weft_module *of; bool frozen; int n; int64_t want[3][2];
    } t[] = { { m, true, 1, { { 0, 96 } } },
              { a, true, 2, { { 0, 16 }, { 32, 48 + 16 } } },
              { b, true, 1, { { 16, 16 } } },
              { m, false, 2, { { 0, 16 }, { 32, 64 } } },
              { b, false, 0, { { 0 } } } };
    weft_freeze(b, "*", true);
    t[0].want[0][1] = m->n;
    t[1].want[1][1] = m->n - 32;
    t[3].want[1][1] = m->n - 32;
    cr_assert(m->n == 16 + 16 + 32 + 16);
    for (int i = 0; i < COUNT(t); i++) {
        weft__range s = { 0 };
        int n = 0;
        for (; weft__next_range(t[i].of, t[i].frozen, &s); n++)
            cr_assert(n < t[i].n && s.from == t[i].want[n][0] && s.n == t[i].want[n][1], "case %d", i);
        cr_assert(n == t[i].n, "case %d: %d runs", i, n);
    }
}

/* ---- bad numbers and shapes ---- */
CPU_TEST(modules, invalid_indices_are_refused)
{
    weft_module *m = weft_module_new(w, "net");
    const char *path = NULL;
    weft_tensor *p = vector(m, "p", 1, unit);
    for (int i = -1; i < 3; i += 2) {
        cr_assert(weft_parameter_at(m, i, &path) != p && !strcmp(path, ""));
        FAILS(w, WEFT_EARG, "expected 0 .. 0");
        weft_buffer_at(m, i, &path);
        FAILS(w, WEFT_EARG, "buffer_at");
    }
}

CPU_TEST(modules, invalid_shapes_are_refused)
{
    weft_module *m = weft_module_new(w, "m");
    struct { int rank; int64_t shape[7]; bool without; weft_status status; const char *part;
    } bad[] = { { 1, { -1 }, false, WEFT_ESHAPE, "extent -1 on axis 0" },
                { 2, { 3, INT64_MAX }, false, WEFT_ESHAPE, "axis 1" },
                { 3, { 1 << 20, 1 << 20, 1 << 20 }, false, WEFT_ESHAPE, "at most 2^44" },
                { -1, { 1 }, false, WEFT_EARG, "rank -1" },
                { 7, { 1, 1, 1, 1, 1, 1, 1 }, false, WEFT_EARG, "rank 7" },
                { 2, { 0 }, true, WEFT_EARG, "without a shape" } };
    for (int i = 0; i < COUNT(bad); i++)
        for (int buffer = 0; buffer < 2; buffer++) {
            const int64_t *shape = bad[i].without ? NULL : bad[i].shape;
            weft_tensor *x = buffer ? weft_buffer(m, "x", bad[i].rank, shape) :
                                      weft_parameter(m, "x", bad[i].rank, shape, unit);
            cr_assert_eq(weft_numel(x), 0);
            FAILS(w, bad[i].status, bad[i].part);
        }
    weft_parameter(m, "x", WEFT_SHAPE(3), (weft_init){ WEFT_INIT_KAIMING, 0, 0 });
    FAILS(w, WEFT_ESHAPE, "m.x");
    cr_assert(weft_parameter_count(m) + weft_buffer_count(m) == 0);
    weft_parameter(m, "x", WEFT_SHAPE(3), unit);                  /* the name is still free */
}

CPU_TEST(modules, tree_is_printed_as_a_table)
{
    static const char want[] =
        "net             shape     parameters\n"
        "encoder.weight  [3, 4]            12  frozen\n"
        "encoder.state   [7]                7  buffer\n"
        "decoder.weight  [3, 4]             -  tied to encoder.weight\n"
        "decoder.bias    [11]              11\n"
        "total                             23\n"
        "to train                          11\n"
        "frozen                            12\n"
        "in buffers                         7\n";
    static const char of_part[] = "net.decoder  shape     parameters\n"
                                  "weight       [3, 4]             -  tied to net.encoder.weight\n"
                                  "bias         [11]              11\n"
                                  "total                          11\n";
    static const char of_nothing[] = "net.empty   shape    parameters\n"
                                     "total                         0\n";
    char text[1000] = "";
    weft_module *net = weft_module_new(w, "net"), *encoder = weft_submodule_new(net, "encoder"),
                *decoder = weft_submodule_new(net, "decoder");
    weft_tensor *p = weft_parameter(encoder, "weight", WEFT_SHAPE(3, 4), unit);
    weft_buffer(encoder, "state", WEFT_SHAPE(7));
    weft_tie(decoder, "weight", p);
    vector(decoder, "bias", 11, unit);
    weft_freeze(encoder, "*", true);
    const struct { const weft_module *m; const char *want; } printed[] = {
        { net, want }, { decoder, of_part }, { weft_submodule_new(net, "empty"), of_nothing },
        { NULL, "(no module)\n" } };
    for (int i = 0; i < COUNT(printed); i++) {
        FILE *file = fmemopen(text, sizeof text, "w");
        weft_print_module(file, printed[i].m);
        fclose(file);
        cr_assert_str_eq(text, printed[i].want, "%s", text);
    }
}
