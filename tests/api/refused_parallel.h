/* refused_parallel.h - of test_refused.c: many machines, of which there are none. */
#ifndef REFUSED_PARALLEL_H
#define REFUSED_PARALLEL_H
static void parallels(bad *b)
{
    const weft_parallel_opts all[] = { { .shards = b->i }, { .n = b->n }, { .n = 1, .timeout = (double)b->r },
                                       { .n = 2, .len = b->l->len } };
    weft_part part;
    weft_parallel *p = NULL;
    TRY(weft_parallel_new, NULL, NULL);
    for (int i = 0; i <= COUNT(all); i++) {
        TRY(weft_parallel_place_of, p);
        TRY(weft_parallel_begin, p, NULL, b->n); TRY(weft_parallel_next, p, NULL);
        TRY(weft_parallel_begin, p, NULL, 3);    TRY(weft_parallel_next, p, &part);
        TRY(weft_parallel_begin_plan, p, NULL, b->n); TRY(weft_parallel_next, p, &part);
        TRY(weft_parallel_add, p, ((weft_loss){ X, X }));
        TRY(weft_parallel_add_values, p, NULL, b->i);
        TRY(weft_parallel_mean, p);              TRY(weft_parallel_values, p);
        TRY(weft_parallel_stopping, p);          TRY(weft_parallel_gathered, p, NULL);
        TRY(weft_parallel_put, p, b->n, NULL, b->n);
        TRY(weft_parallel_put, p, 0, NULL, 1);
        FILE_FAILS(weft_parallel_save, p, b->name, b->m, NULL, NULL, b->n);
        FILE_FAILS(weft_parallel_load, p, b->name, b->m, NULL, NULL, b->n);
        note("weft_parallel_new");
        p = i < COUNT(all) ? weft_parallel_new(b->m, &all[i]) : NULL;
        after(b, "weft_parallel_new", NOT_AT_ALL);
    }
}
#endif
