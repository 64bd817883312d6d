/* golden.c - compares the library with files of expected results: golden FILE... It prints one line for each
 * case and a final count.
 *
 * It computes each case on every kernel table of this machine and in all variants of its kind: layouts, fused
 * and composed layers, recorded and unrecorded gradients, gradients of parameters by weft_backward. The files
 * in tests/golden define the formats. This program does not depend on names of cases. */
#include <stdlib.h>
#include <string.h>
#include "weft_op.h"
#include "golden.h"
#include "tests/tables.h"

static const kind *find(const char *name)
{
    const kind *lists[] = { golden_recurrent, golden_layers, golden_optimisers, golden_models,
                            golden_windows };
    for (int i = 0; i < COUNT(lists); i++)
        for (const kind *k = lists[i]; k->name; k++)
            if (!strcmp(k->name, name))
                return k;
    return NULL;
}

/* Splits a padded gradient by sequence. It must be 0 in the padding. */
static void probe_sequences(trial *t, const source *s, const weft_real *g, int64_t count)
{
    int64_t rows = s->padded ? s->len.n * s->padded : tokens(&s->len), width = rows ? count / rows : 0;
    for (int64_t b = 0; b < s->len.n; b++) {
        char name[160];
        snprintf(name, sizeof name, "%s.%lld", s->name, (long long)b);
        int64_t n = s->len.len[b] * width, step = s->padded ? s->padded * width : n;
        hold_probe(t, name, g, n);
        for (int64_t i = n; i < step; i++)
            if (!(g[i] == 0))
                wrong(t, "gradient of %s: %g in a pad", name, (double)g[i]);
        g += step;
    }
}

static void probe(trial *t, const source *s, weft_tensor *gradient)
{
    if (!gradient) {
        wrong(t, "%s has no gradient", s->name);
        return;
    }
    weft_real *g = elements(t, gradient);
    if (s->ragged)
        probe_sequences(t, s, g, weft_numel(gradient));
    else
        hold_probe(t, s->name, g, weft_numel(gradient));
}

static void probe_all(trial *t, weft_tensor *loss)
{
    weft_tensor *by[SOURCES], *g[SOURCES];
    for (int i = 0; i < t->sources; i++)
        by[i] = t->source[i].x;
    (t->way & RECORDED ? weft_gradients_recorded : weft_gradients)(loss, by, t->sources, g);
    for (int i = 0; i < t->sources && weft_ok(t->w); i++)
        probe(t, &t->source[i], g[i]);
    int there = (int)json_object_size(json_object_get(t->c, "gradient_probes"));
    if (t->probes != there)
        wrong(t, "%d gradients were probed, the case has %d", t->probes, there);
}

static void probe_parameters(trial *t, weft_tensor *loss)
{
    bool any = false;
    for (int i = 0; i < t->sources; i++)
        any |= t->source[i].parameter;
    if (any)                                     /* otherwise not a loss */
        weft_backward(loss);
    for (int i = 0; i < t->sources && weft_ok(t->w); i++)
        if (t->source[i].parameter)
            probe(t, &t->source[i], weft_grad(t->source[i].x));
}

static weft *open_table(const struct table *table)
{
    if (table->tier)
        setenv("WEFT_ISA", table->name, 1);
    weft *w = weft_open(&(weft_opts){ .device = table->device, .seed = 1, .threads = 2 });
    unsetenv("WEFT_ISA");
    return w;
}

/* Runs one case on one table in one variant. parameters: compares their gradients by weft_backward, instead
 * of all gradients by weft_gradients. */
static bool attempt(const kind *k, const json_t *c, const struct table *table, int way, bool parameters,
                    char *why, size_t size)
{
    trial *t = calloc(1, sizeof *t);
    if (!t)
        return false;
    *t = (trial){ .c = c, .way = way, .w = open_table(table), .single = sizeof(weft_real) == sizeof(float) };
    t->m = weft_module_new(t->w, "m");
    weft_tensor *loss = k->run(t);
    if (loss && weft_ok(t->w) && !t->why[0])
        (parameters ? probe_parameters : probe_all)(t, loss);
    if (!weft_ok(t->w))
        wrong(t, "%s: %s", weft_status_name(weft_error_code(t->w)), weft_error_message(t->w));
    bool good = !t->why[0];
    if (!good)
        snprintf(why, size, "%s%s%s%s%s%s: %s", table->name, way & PACKED ? ", packed" : "",
                 way & PADDED ? ", padded" : "", way & COMPOSED ? ", composed" : "",
                 way & RECORDED ? ", recorded" : "", parameters ? ", backward" : "", t->why);
    weft_close(t->w);
    while (t->pieces)
        free(t->piece[--t->pieces]);
    free(t);
    return good;
}

static bool all_ways(const kind *k, const json_t *c, int *ways, char *why, size_t size)
{
    for (int i = 0; i < COUNT(tables); i++)
        for (int way = 0; way < WAYS && table_is_here(tables[i].name); way++) {
            if ((way & ~k->ways) || ((way & PACKED) && (way & PADDED)))
                continue;
            *ways += 1;
            if (!attempt(k, c, &tables[i], way, false, why, size) ||
                (!(way & RECORDED) && !attempt(k, c, &tables[i], way, true, why, size)))
                return false;
        }
    return true;
}

/* Returns the text of a key, or of its alternative name in some files. */
static const char *text_of(const json_t *c, const char *key, const char *other)
{
    const char *s = json_string_value(json_object_get(c, key));
    return s ? s : json_string_value(json_object_get(c, other));
}

/* WEFT_GOLDEN: only the cases with this in their names. */
static bool is_needed(const json_t *c)
{
    const char *part = getenv("WEFT_GOLDEN"), *name = text_of(c, "name", "case");
    return !part || !*part || !name || strstr(name, part);
}

static bool check(const json_t *c)
{
    const char *name = text_of(c, "name", "case"), *what = text_of(c, "kind", "model");
    const kind *k = what ? find(what) : NULL;
    char        why[512] = "";
    int         ways = 0;
    if (!name)
        name = "(no name)";
    if (!k)
        snprintf(why, sizeof why, "unknown kind \"%s\"", what ? what : "");
    bool good = k && all_ways(k, c, &ways, why, sizeof why);
    if (good)
        printf("ok    %s (%s, %d ways)\n", name, what, ways);
    else
        printf("FAIL  %s: %s\n", name, why);
    return good;
}

int main(int argc, char **argv)
{
    int good = 0, all = 0;
    for (int i = 1; i < argc; i++) {
        json_error_t e;
        json_t *file = json_load_file(argv[i], 0, &e), *cases = json_object_get(file, "cases"), *c;
        size_t  n;
        if (!json_array_size(cases)) {
            printf("FAIL  %s: %s\n", argv[i], file ? "no cases" : e.text);
            all++;
        }
        json_array_foreach(cases, n, c)
            if (is_needed(c)) {
                good += check(c);
                all++;
            }
        json_decref(file);
    }
    if (argc < 2)
        fprintf(stderr, "usage: golden FILE...\n");
    printf("%d of %d cases hold\n", good, all);
    return !(good == all && all > 0);
}
