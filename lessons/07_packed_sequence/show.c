/* Lesson 7: prints the arrays of packed batches, by hand and by weft. */
#include "weft_op.h"
#include "weft_plot.h"
#include "common/lesson.h"
#include "given.h"

/* ---- packings ---- */
void room_clear(room *r, int rows)
{
    for (int k = 0; k < 5; k++)
        memset(r->memory[k], -1, (size_t)(rows + MOST + 1) * sizeof(int32_t));
    r->p = (packing){ -1,           -1,           -1,           r->memory[0],
                      r->memory[1], r->memory[2], r->memory[3], r->memory[4] };
}

void by_weft(int n, const int32_t *len, room *r)
{
    static const double data[ROOM];
    static weft *w;
    w = w ? w : lesson_open(1);
    const weft_lengths lengths = { .n = n, .len = len };
    weft_tensor *x = weft_to_layout(weft_ragged(w, data, 0, &lengths), WEFT_PACKED);
    weft_packed_sequence s = weft_packed_sequence_of(x);
    weft_rows rows = weft_rows_of(x);
    room_clear(r, (int)weft_size(s.data, 0));
    r->p.n = (int)s.sequences, r->p.steps = (int)s.steps,
    r->p.rows = (int)weft_size(s.data, 0);
    memcpy(r->p.batch_sizes, s.batch_sizes, (size_t)s.steps * sizeof(int32_t));
    memcpy(r->p.sorted, s.sorted_indices, (size_t)n * sizeof(int32_t));
    memcpy(r->p.unsorted, s.unsorted_indices, (size_t)n * sizeof(int32_t));
    memcpy(r->p.sequence, rows.sequence, (size_t)r->p.rows * sizeof(int32_t));
    memcpy(r->p.position, rows.position, (size_t)r->p.rows * sizeof(int32_t));
    lesson_ok(w), weft_clear(w);
}

/* ---- the program ---- */
/* Returns the student's packing. Reports impossible sizes, and returns n empty ones. */
static const packing *pack(int n, const int32_t *len)
{
    static room yours;
    packing *p = &yours.p;
    room_clear(&yours, ROOM - MOST);
    pack_index(n, len, p);
    if (p->n == n && p->steps >= 0 && p->steps <= MOST && p->rows >= 0 &&
        p->rows <= ROOM)
        return p;
    printf("n %d, steps %d and rows %d are wrong\n", p->n, p->steps, p->rows);
    p->n = n, p->steps = p->rows = 0;
    return p;
}

static void print(const char *name, int n, const int32_t *x)
{
    printf("%-12s", name);
    for (int i = 0; i < n; i++)
        printf(" %2d", x[i]);
    printf("\n");
}

static void print_rows(const packing *p)
{
    printf("%-12s", "rows");
    for (int r = 0; r < p->rows; r++)
        printf(" %c%d", 'a' + p->sequence[r], p->position[r]);
    printf("\n");
}

static bool same(const packing *a, const packing *b)
{
    return a->n == b->n && a->steps == b->steps && a->rows == b->rows &&
           same_ints(a->batch_sizes, b->batch_sizes, a->steps) &&
           same_ints(a->sorted, b->sorted, a->n) &&
           same_ints(a->unsorted, b->unsorted, a->n) &&
           same_ints(a->sequence, b->sequence, a->rows) &&
           same_ints(a->position, b->position, a->rows);
}

static void show_batch(int n, const int32_t *len)
{
    static room wefts;
    const packing *p = pack(n, len);
    int32_t offset[MOST + 1] = { 0 }, back[MOST];
    for (int s = 0; s < n; s++)
        offset[s + 1] = offset[s] + len[s];
    by_weft(n, len, &wefts);
    print("lengths", n, len), print("offsets", n + 1, offset);
    print("batch_sizes", p->steps, p->batch_sizes);
    print("sorted", n, p->sorted), print("unsorted", n, p->unsorted);
    print("and back", conjugate(p->steps, p->batch_sizes, back), back);
    print_rows(p);
    printf("by hand and by weft: %s\n",
           same(p, &wefts.p) ? "the same" : "not the same");
}

static void show_unpacked(void)
{
    const packing *p = pack(3, (const int32_t[]){ 1, 3, 2 });
    double letters[] = { 'x', 'a', 'c', 'y', 'b', 'z' }, padded[MOST * MOST];
    if (p->rows == 6)
        unpack(p, letters, padded);
    printf("xacybz of lengths 1 3 2 is");
    for (int s = 0; s < 3 && p->rows == 6; s++) {
        printf(" ");
        for (int t = 0; t < p->steps; t++)
            putchar(padded[s * p->steps + t] > 0 ? (int)padded[s * p->steps + t] : '.');
    }
    printf("\n");
}

static const int32_t four[] = { 3, 5, 2, 4 }, eight[] = { 4, 6, 8, 5, 4, 3, 7, 8 };

void show(void)
{
    show_batch(4, four);
    printf("\n");
    show_batch(8, eight);
    printf("\n");
    show_unpacked();
}

/* Draws the batch. The label of a token is its row in the packed form. */
weft_status draw(const char *path)
{
    const packing *p = pack(8, eight);
    char text[ROOM][16];
    const char *label[ROOM];
    int offset[MOST] = { 0 };
    const weft_lengths lengths = { .n = 8, .len = eight };
    for (int s = 1; s < 8; s++)
        offset[s] = offset[s - 1] + eight[s - 1];
    for (int r = 0; r < p->rows; r++) {
        int i = offset[p->sequence[r]] + p->position[r];
        snprintf(text[i], sizeof text[i], "%d", r);
        label[i] = text[i];
    }
    return weft_plot_batch(path, "The row of each token in the packed batch", &lengths,
                           label, NULL, NULL, NULL);
}
