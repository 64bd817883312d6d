/* test_dataset.c - tests batches of sequences of a dataset, chosen by index, against a plain gather: rows,
 * lengths, ids, several datasets of the same sequences, and refused calls. */
#include "core/inside.h"
#include "tests/check.h"

enum { N = 40, MOST = 9 };
static int32_t lengths[N];
static int64_t offsets[N + 1];

/* Random numbers for the present lengths; columns 0: ints. */
static weft_dataset data_of(int64_t columns)
{
    weft_dataset d = { .n = N, .columns = columns, .len = lengths, .offset = offsets };
    int64_t rows = offsets[N];
    if (columns)
        d.rows = calloc((size_t)(rows * columns) + 1, sizeof *d.rows);
    else
        d.ints = calloc((size_t)rows + 1, sizeof *d.ints);
    for (int64_t i = 0; i < rows * columns; i++)
        d.rows[i] = (weft_real)dice(1000);
    for (int64_t i = 0; !columns && i < rows; i++)
        d.ints[i] = (int32_t)dice(1000);
    return d;
}

static void new_lengths(void)
{
    dice_lengths(lengths, N, MOST);
    for (int i = 0; i < N; i++)
        offsets[i + 1] = offsets[i] + lengths[i];
}

static void free_data(weft_dataset *d)
{
    free(d->rows);
    free(d->ints);
}

/* Checks every number of the batch against a loop, and its lengths and ids. */
static void is_gathered(weft_tensor *x, const weft_dataset *d, const int32_t *index, int64_t n)
{
    static weft_real reals[N * MOST * 4 * 4];
    static int32_t ints[N * MOST * 4];
    weft_lengths l = weft_lengths_of(x);
    int64_t row = 0, c = d->columns;
    cr_assert(l.n == n && weft_layout_of(x) == WEFT_CONCAT && weft_rank(x) == (c ? 2 : 1), "%s",
              weft_error_message(weft_context_of(x)));
    cr_assert_eq(read_status(x, c ? (void *)reals : (void *)ints,
                             (size_t)weft_numel(x) * (c ? sizeof *reals : sizeof *ints)),
                 WEFT_OK);
    for (int64_t i = 0; i < n; i++) {
        cr_assert(l.len[i] == d->len[index[i]] && l.id[i] == index[i], "sequence %lld", (long long)i);
        for (int64_t t = 0; t < l.len[i]; t++, row++) {
            int64_t at = d->offset[index[i]] + t;
            for (int64_t k = 0; k < c; k++)
                cr_assert(reals[row * c + k] == d->rows[at * c + k]);
            cr_assert(c || ints[row] == d->ints[at]);
        }
    }
    cr_assert_eq(weft_size(x, 0), row);
}

TABLE_TEST(dataset, batch_matches_a_plain_gather)
{
    for (int k = 0; k < rounds(40, 1000); k++) {
        int32_t index[4 * N];
        int64_t n = (int64_t)dice(3 * N);
        new_lengths();
        weft_dataset d = data_of((int64_t)dice(4));
        for (int64_t i = 0; i < n; i++)
            index[i] = (int32_t)dice(N);
        is_gathered(weft_dataset_batch(w, &d, index, n), &d, index, n);
        OK(w);
        weft_clear(w);
        free_data(&d);
    }
}

CPU_TEST(dataset, datasets_of_equal_lengths_share_a_batch)
{
    new_lengths();
    weft_dataset x = data_of(3), y = data_of(3), tokens = data_of(0);
    weft_loader *l = weft_loader_new(w, "l", N, lengths, &(weft_loader_opts){ .count = 7 });
    int64_t n;
    for (const int32_t *index; (index = weft_loader_next(l, &n)); weft_clear(w)) {
        weft_tensor *a = weft_dataset_batch(w, &x, index, n), *b = weft_dataset_batch(w, &y, index, n),
                    *t = weft_dataset_batch(w, &tokens, index, n),
                    *s = weft_add(a, weft_to_layout(b, WEFT_PACKED));
        cr_assert(a->f.batch == b->f.batch && a->f.batch == t->f.batch);
        weft_real *sum = numbers(weft_to_layout(s, WEFT_CONCAT)), *p = numbers(a), *q = numbers(b);
        for (int64_t i = 0; i < weft_numel(s); i++)
            cr_assert_eq(sum[i], p[i] + q[i]);
    }
    cr_assert_eq(weft_loader_epoch(l), 1);
    free_data(&x), free_data(&y), free_data(&tokens);
}

/* A sequence has the same dropout mask in every batch. */
Test(dataset, dropout_follows_the_sequence)
{
    static const int32_t first[] = { 3, 8, 5 }, second[] = { 8, 0, 1, 3 };
    weft_real *kept[2];
    for (int i = 0; i < N; i++)
        lengths[i] = 6, offsets[i + 1] = offsets[i] + 6;
    weft_dataset d = data_of(4);
    for (int i = 0; i < N * 6 * 4; i++)
        d.rows[i] = 1;
    weft *w[2] = { open_on(WEFT_CPU), open_on(WEFT_CPU) };
    for (int i = 0; i < 2; i++)
        kept[i] = numbers(weft_dropout(
            weft_dataset_batch(w[i], &d, i ? second : first, i ? COUNT(second) : COUNT(first)), 0.5, "d",
            false));
    cr_assert(!memcmp(kept[0], kept[1] + 3 * 24, 24 * sizeof **kept) &&
              !memcmp(kept[0] + 24, kept[1], 24 * sizeof **kept));
    cr_assert(memcmp(kept[0], kept[0] + 24, 24 * sizeof **kept), "two sequences have the same mask");
    free_data(&d);
    CLEAN(w[0]);
    CLEAN(w[1]);
}

TABLE_TEST(dataset, empty_datasets_work)
{
    int64_t none[] = { 0 };
    weft_dataset d = { .offset = none };
    for (int i = 0; i < 2; i++, d.columns = 5) {
        weft_tensor *x = weft_dataset_batch(w, &d, NULL, 0);
        cr_assert(weft_size(x, 0) == 0 && weft_lengths_of(x).n == 0 && weft_layout_of(x) == WEFT_CONCAT);
        cr_assert(weft_dtype_of(x) == (i ? WEFT_REAL : WEFT_I32) && weft_rank(x) == 1 + i);
        OK(w);
    }
}

CPU_TEST(dataset, invalid_datasets_are_refused)
{
    static const int32_t good[] = { 0, 1 }, beyond[] = { 0, N }, negative[] = { 3, 4, -1 };
    for (int i = 0; i < N; i++)
        lengths[i] = 2, offsets[i + 1] = offsets[i] + 2;
    int32_t wrong[N] = { 3 };
    weft_dataset d = data_of(2), no_offset = d, no_rows = d, no_ints = d, wide = d, other_length = d;
    no_offset.offset = NULL;
    no_rows.rows = NULL;
    no_ints.columns = 0;
    wide.columns = INT64_MAX;
    other_length.len = wrong;
    const struct { const weft_dataset *d; const int32_t *index; int64_t n; const char *says; } bad[] = {
        { NULL, good, 2, "dataset_batch: dataset is NULL" },
        { &d, NULL, 2, "dataset_batch: 2 indices, index is NULL" },
        { &d, good, -1, "dataset_batch: -1 indices" },
        { &d, beyond, 2, "dataset_batch: index 1 is 40; expected 0 .. 39" },
        { &d, negative, 3, "dataset_batch: index 2 is -1" },
        { &no_offset, good, 2, "no offsets" },
        { &no_rows, good, 2, "dataset_batch: rows is NULL, columns is 2" },
        { &no_ints, good, 2, "dataset_batch: ints is NULL, columns is 0" },
        { &wide, good, 2, "dataset_batch: 4 rows" },
        { &other_length, good, 1, "sequence 0 has length 3, but offsets 0 and 2" },
    };
    for (int i = 0; i < COUNT(bad); i++) {
        cr_assert_eq(weft_dataset_batch(w, bad[i].d, bad[i].index, bad[i].n), &w->nil);
        FAILS(w, bad[i].d == &wide ? WEFT_ENOMEM : WEFT_EARG, bad[i].says);
    }
    for (int k = 1; k < 4; k++) {
        weft *v = open_on(WEFT_CPU);
        fail_in(v, k);
        weft_tensor *x = weft_dataset_batch(v, &d, good, 2);
        cr_assert(!weft_ok(v) ? weft_numel(x) == 0 : weft_numel(x) == 8);
        weft_recover(v);
        fail_in(v, 0);
        CLEAN(v);
    }
    free_data(&d);
}
