/* exact.c - tests whether the position of a sequence in its batch, or its neighbours, change its results.
 * Bits of each planner are compared with those of whole sequences, and with those next to a changed
 * neighbour. */
#include <math.h>
#include <string.h>
#include "tools/corpora/corpora.h"
#include "tools/lab/run.h"

static weft_real *allocate_rows(const weft_dataset *d)
{
    return get_memory((d->n ? d->offset[d->n] : 0) * PROBE_WIDTH, sizeof(weft_real));
}

/* Counts the numbers that differ in a bit, and the NaNs, in all sequences except `without` (-1: none). */
static int64_t count_differences(const weft_dataset *d, const weft_real *a, const weft_real *b,
                                 int64_t without, int64_t *compared, int64_t *spread)
{
    int64_t differ = 0;
    for (int64_t i = 0; i < d->n; i++)
        for (int64_t k = d->offset[i] * PROBE_WIDTH; i != without && k < d->offset[i + 1] * PROBE_WIDTH;
             k++) {
            differ += memcmp(a + k, b + k, sizeof *a) != 0;
            *spread += isnan(b[k]) != 0;
            ++*compared;
        }
    return differ;
}

/* ---- layouts ---- */
static void add_exact(lab_run *r, const char *name, const weft_dataset *d, const weft_real *a,
                      const weft_real *b)
{
    int64_t compared = 0, spread = 0;
    int64_t differ = count_differences(d, a, b, -1, &compared, &spread);
    r->page.exact[r->page.exacts++] = (lab_exact){ name, compared, differ };
    NOTE(r, "exactness", name, { "compared", (double)compared }, { "differ", (double)differ });
}

static bool make_order(const weft_dataset *d, int64_t count, weft_plan *out)
{
    return weft_plan_make(weft_planner_named("order"), d->len, d->n, &(weft_plan_opts){ .count = count },
                          out) == WEFT_OK ||
           say_failure("lab: %s", weft_plan_message());
}

/* Compares with each sequence alone in its batch. A planner that cuts without carrying the state differs. */
bool lab_compare_layouts(lab_run *r)
{
    weft_dataset d = { 0 };
    PLAN alone = { 0 }, by_16 = { 0 };
    bool ok = lab_probe_data(&r->few, &d);
    SCOPED weft_real *whole = allocate_rows(&d), *other = allocate_rows(&d);
    ok = ok && make_order(&d, 1, &alone) && make_order(&d, 16, &by_16) &&
         lab_probe("whole sequences", &alone, &d, PROBE_PLAN, whole);
    if (ok && (ok = lab_probe("padded", &by_16, &d, PROBE_PADDED, other)))
        add_exact(r, "padded, 16 a batch", &d, whole, other);
    for (int i = 0; i < r->asked.planners && ok && !lab_stops(r); i++) {
        const planned *t = r->of_few + i;
        lab_progress(r, "exactness of %s", t->text);
        if ((ok = lab_probe(t->text, &t->plan, &d, PROBE_PLAN, other)))
            add_exact(r, t->text, &d, whole, other);
    }
    corpus_free(&d);
    return ok;
}

/* ---- contamination ---- */
static void change(weft_dataset *d, int64_t i, bool nan, weft_real *keep, bool back)
{
    weft_real *x = d->rows + d->offset[i] * d->columns;
    for (int64_t k = 0; k < (int64_t)d->len[i] * d->columns; k++) {
        keep[k] = back ? keep[k] : x[k];
        x[k] = back ? keep[k] : nan ? (weft_real)NAN : x[k] + 1;
    }
}

/* Changes sequence i of d, then fills it with NaN, and counts the differences in the others. The plan runs
 * on `run`, which shares the rows of d. */
static bool touch(const weft_plan *plan, const weft_dataset *run, weft_dataset *d, int64_t i,
                  const weft_real *before, weft_real *after, lab_contamination *c)
{
    SCOPED weft_real *keep = get_memory((int64_t)d->len[i] * PROBE_COLUMNS, sizeof *keep);
    bool ok = true;
    for (int nan = 0; nan < 2 && ok; nan++) {
        int64_t spread = 0;
        change(d, i, nan, keep, false);
        ok = lab_probe(c->name, plan, run, PROBE_PLAN, after);
        change(d, i, nan, keep, true);
        c->differ += count_differences(d, before, after, i, &c->compared, &spread);
        c->spread += nan ? spread : 0;
    }
    c->changed += ok;
    return ok;
}

/* Tries the first, a middle and the longest sequence. */
static bool contaminate_plan(const lab_run *r, const planned *t, weft_dataset *d, weft_real *before,
                             weft_real *after, lab_contamination *c)
{
    int64_t chosen[3] = { 0, d->n / 2, 0 };
    for (int64_t i = 0; i < d->n; i++)
        chosen[2] = d->len[i] > d->len[chosen[2]] ? i : chosen[2];
    bool ok = lab_probe(t->text, &t->plan, d, PROBE_PLAN, before);
    for (int k = 0; k < 3 && ok && !lab_stops(r); k++) {
        bool again = (k && chosen[k] == chosen[0]) || (k == 2 && chosen[2] == chosen[1]);
        ok = again || touch(&t->plan, d, d, chosen[k], before, after, c);
    }
    return ok;
}

static void write_contamination(const lab_run *r, const lab_contamination *c)
{
    NOTE(r, "contamination", c->name, { "changed", (double)c->changed }, { "compared", (double)c->compared },
         { "differ", (double)c->differ }, { "spread", (double)c->spread });
}

/* The control: joins all sequences without a reset of the state and changes a middle one. Those after it must
 * differ, so a real contamination would be seen. */
static bool contaminate_control(lab_run *r, weft_dataset *d, weft_real *before, weft_real *after)
{
    lab_contamination *c = r->page.contamination + r->page.contaminations++;
    int32_t len = (int32_t)d->offset[d->n];
    int64_t offset[2] = { 0, len };
    weft_dataset one = { .n = 1, .columns = d->columns, .len = &len, .offset = offset, .rows = d->rows };
    PLAN p = { 0 };
    *c = (lab_contamination){ .name = "none: all sequences as one, which must differ" };
    bool ok = make_order(&one, 1, &p) && lab_probe(c->name, &p, &one, PROBE_PLAN, before) &&
              touch(&p, &one, d, d->n / 2, before, after, c);
    write_contamination(r, c);
    return ok;
}

bool lab_contaminate(lab_run *r)
{
    weft_dataset d = { 0 };
    bool ok = lab_probe_data(&r->few, &d);
    SCOPED weft_real *before = allocate_rows(&d), *after = allocate_rows(&d);
    for (int i = 0; i < r->asked.planners && ok && !lab_stops(r); i++) {
        lab_contamination *c = r->page.contamination + r->page.contaminations;
        *c = (lab_contamination){ .name = r->of_few[i].text };
        lab_progress(r, "contamination by %s", c->name);
        ok = contaminate_plan(r, r->of_few + i, &d, before, after, c);
        r->page.contaminations += c->changed > 0;
        if (!lab_stops(r)) /* all sequences were changed */
            write_contamination(r, c);
    }
    ok = ok && (lab_stops(r) || contaminate_control(r, &d, before, after));
    corpus_free(&d);
    return ok;
}
