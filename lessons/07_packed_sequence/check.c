/* Lesson 7: compares the student's arrays with weft's, packs and unpacks, for 200 lists
 * of lengths. */
#include "common/lesson.h"
#include "given.h"

static const char *list(int n, const int32_t *x)
{
    static char text[4][160];
    static int turn;
    char *to = text[turn++ % 4];
    to[0] = 0;
    for (int i = 0; i < n && i <= 16; i++)
        snprintf(to + strlen(to), 160 - strlen(to), "%s%d", i ? " " : "", x[i]);
    if (n > 17)
        snprintf(to + strlen(to), 160 - strlen(to), " .. (%d)", n);
    return to;
}

/* Gives a hint with the lengths. */
#define HINT(format, ...) hint("lengths %s: " format, list(n, len), ##__VA_ARGS__)

/* ---- the conjugate ---- */
static void check_conjugate(int n, const int32_t *len, const packing *want)
{
    int32_t got[MOST + 1], back[MOST + 1];
    memset(got, -1, sizeof got), memset(back, -1, sizeof back);
    int steps = conjugate(n, len, got), positive = 0;
    if (want->steps && !steps)
        hint("conjugate leaves out empty: out[0] is the number of parts above 0, "
             "out[1] of those above 1, and so on. Return the count of these numbers");
    if (steps != want->steps && steps == n)
        hint("conjugate of %s returns the number of parts, %d: return the largest part",
             list(n, len), n);
    for (int i = 0; i < n; i++)
        positive += len[i] > 0;
    if (steps != want->steps && steps == positive)
        hint("conjugate of %s returns the number of parts above 0, %d: return the "
             "largest part",
             list(n, len), positive);
    if (steps == want->steps + 1)
        hint("conjugate of %s ends with a 0: no part is above %d, so out[%d] is unused",
             list(n, len), want->steps, want->steps);
    if (steps == want->steps && steps && !same_ints(got, want->batch_sizes, steps)) {
        bool once = true;
        for (int k = 0; k < steps; k++) {
            int others = 0;
            for (int i = 0; i < n; i++)
                others += len[i] == k + 1;
            once &= got[k] == others;
        }
        if (once)
            hint("conjugate counts the parts equal to k + 1: count those above k");
    }
    if (steps != want->steps || !same_ints(got, want->batch_sizes, steps))
        hint("conjugate of %s should be %s, not %s", list(n, len),
             list(want->steps, want->batch_sizes),
             steps < 0 ? "of a negative count" : list(steps, got));
    if (conjugate(steps, got, back) != positive)
        hint("conjugate twice of %s should give one number for each length above 0",
             list(n, len));
    for (int place = 0; place < positive; place++)
        if (back[place] != len[want->sorted[place]])
            hint("conjugate twice of %s should give the lengths, the longest first",
                 list(n, len));
}

/* Checks parts that do not fit into a byte. */
static void check_long_parts(void)
{
    enum { LONGEST = 300 };
    static const int32_t part[] = { LONGEST, 2, 130 };
    int32_t got[LONGEST];
    int count = conjugate(3, part, got);
    if (count != LONGEST)
        hint("conjugate of 300 2 130 has %d numbers, not 300", count);
    for (int k = 0; k < LONGEST; k++) {
        int want = 1 + (k < 2) + (k < 130);
        if (got[k] != want)
            hint("conjugate of 300 2 130 has %d at index %d, not %d", got[k], k, want);
    }
}

/* ---- pack_index ---- */
static void check_sizes(int n, const int32_t *len, const room *got, const packing *want)
{
    const packing *p = &got->p;
    if (p->n != n)
        HINT("n is %d, but sequences of length 0 also count", p->n);
    if (p->steps == want->steps + 1)
        HINT("pack_index gives %d steps, but steps are 0 .. %d", p->steps,
             want->steps - 1);
    if (p->steps != want->steps)
        HINT("pack_index gives %d steps, but the longest length is %d", p->steps,
             want->steps);
    if (!same_ints(p->batch_sizes, want->batch_sizes, p->steps))
        HINT("batch_sizes should be %s, not %s: count lengths above t",
             list(p->steps, want->batch_sizes), list(p->steps, p->batch_sizes));
    if (p->rows == 0 && want->rows)
        HINT("pack_index gives 0 rows: each token has one, %d in all", want->rows);
    if (p->rows != want->rows)
        HINT("pack_index gives %d rows, but the sum of lengths is %d", p->rows,
             want->rows);
}

static void check_sorted(int n, const int32_t *len, const packing *p,
                         const packing *want)
{
    bool descending = true, ascending = true, seen[MOST] = { false };
    for (int place = 0; place < n; place++) {
        int s = p->sorted[place];
        if (s < 0 || s >= n || seen[s])
            HINT("sorted is %s, but it must contain each of 0 .. %d once",
                 list(n, p->sorted), n - 1);
        seen[s] = true;
        descending &= !place || len[p->sorted[place - 1]] >= len[s];
        ascending &= !place || len[p->sorted[place - 1]] <= len[s];
    }
    if (same_ints(p->sorted, want->unsorted, n) &&
        !same_ints(p->sorted, want->sorted, n) && !descending)
        HINT("sorted has the values of unsorted");
    if (!descending && ascending)
        HINT("sorted has the shortest sequence first, not the longest");
    if (!descending)
        HINT("sorted is %s, which is not the longest first", list(n, p->sorted));
    for (int place = 1; place < n; place++)
        if (len[p->sorted[place - 1]] == len[p->sorted[place]] &&
            p->sorted[place - 1] > p->sorted[place])
            HINT("sorted has sequence %d before %d, which is as long: equal lengths "
                 "must keep their order (a stable sort)",
                 p->sorted[place - 1], p->sorted[place]);
    for (int place = 0; place < n; place++)
        if (p->unsorted[p->sorted[place]] != place)
            HINT("%s: unsorted[sequence] is a place: unsorted[%d] is %d",
                 same_ints(p->unsorted, p->sorted, n) ? "unsorted is a copy of sorted" :
                                                        "unsorted is wrong",
                 p->sorted[place], place);
}

/* Returns whether the rows are in order of place or sequence, each with all tokens. */
static bool batch_major(int n, const int32_t *len, const packing *p, bool by_place)
{
    int row = 0;
    for (int k = 0; k < n; k++)
        for (int t = 0, s = by_place ? p->sorted[k] : k; t < len[s]; t++, row++)
            if (p->sequence[row] != s || p->position[row] != t)
                return false;
    return true;
}

static void check_rows(int n, const int32_t *len, const packing *p, const packing *want)
{
    for (int r = 0; r < want->rows; r++) {
        if (p->sequence[r] == want->sequence[r] && p->position[r] == want->position[r])
            continue;
        if (batch_major(n, len, p, true) || batch_major(n, len, p, false))
            HINT("row %d has token %d of sequence %d, not token %d of sequence %d: "
                 "time first, so all first tokens precede all second ones",
                 r, p->position[r], p->sequence[r], want->position[r],
                 want->sequence[r]);
        if (p->position[r] == want->position[r] && p->sequence[r] >= 0 &&
            p->sequence[r] < n && p->sorted[p->sequence[r]] == want->sequence[r])
            HINT("row %d has place %d, not the sequence in it, %d", r, p->sequence[r],
                 want->sequence[r]);
        if (p->sequence[r] == want->sequence[r] &&
            p->position[r] == want->position[r] + 1)
            HINT("row %d has position %d of sequence %d, not %d: positions begin at 0",
                 r, p->position[r], p->sequence[r], want->position[r]);
        HINT("row %d should have token %d of sequence %d, not %d of %d", r,
             want->position[r], want->sequence[r], p->position[r], p->sequence[r]);
    }
}

/* ---- unpack ---- */
/* Returns whether all tokens are right. */
static bool only_pads_are_wrong(const double *got, const double *want, int n)
{
    for (int i = 0; i < n; i++)
        if (want[i] != 0 && got[i] != want[i])
            return false;
    return true;
}

/* Gives a hint if the tokens of the right sequences are in a wrong order. */
static void hint_of_order(int n, const int32_t *len, const packing *p,
                          const double *data, const double *padded)
{
    static double right[ROOM], by_sequence[ROOM];
    memset(right, 0, sizeof right), memset(by_sequence, 0, sizeof by_sequence);
    for (int r = 0; r < p->rows; r++)
        right[p->sequence[r] * p->steps + p->steps - 1 - p->position[r]] = data[r];
    for (int place = 0, r = 0; place < n; place++)
        for (int t = 0, s = p->sorted[place]; t < len[s]; t++)
            by_sequence[s * p->steps + t] = data[r++];
    if (near(padded, right, n * p->steps, 0))
        HINT("unpack turns the sequences around: token t has index s * steps + t");
    if (near(padded, by_sequence, n * p->steps, 0))
        HINT("unpack reads data sequence after sequence: it is time first, "
             "batch_sizes[t] rows for step t");
}

static void check_unpack(int n, const int32_t *len, const packing *p)
{
    static int32_t zeros[ROOM + 1];
    static double data[ROOM], padded[ROOM], again[ROOM], want[ROOM], by_place[ROOM],
        transposed[ROOM], by_unsorted[ROOM];
    memset(want, 0, (size_t)(n * p->steps) * sizeof *want);
    memset(by_place, 0, (size_t)(n * p->steps) * sizeof *want);
    for (int r = 0; r < p->rows; r++) {
        data[r] = 1 + r;
        want[p->sequence[r] * p->steps + p->position[r]] = data[r];
        by_place[p->unsorted[p->sequence[r]] * p->steps + p->position[r]] = data[r];
    }
    for (int i = 0; i < n * p->steps; i++)
        padded[i] = again[i] = i % 2 ? 77 : NAN; /* old values */
    packing bare = *p;
    bare.unsorted = bare.sequence = bare.position = zeros;
    unpack(&bare, data, padded);
    if (near(padded, want, n * p->steps, 0))
        return;
    if (only_pads_are_wrong(padded, want, n * p->steps))
        HINT("unpack does not set the pads to 0");
    unpack(p, data, again);
    if (near(again, want, n * p->steps, 0))
        hint("unpack is right, but it may read only batch_sizes and sorted");
    for (int i = 0; i < n * p->steps; i++) {
        int row = i / p->steps, t = i % p->steps;
        transposed[t * n + row] = want[i];
        by_unsorted[i] = want[p->sorted[p->sorted[row]] * p->steps + t];
    }
    if (near(padded, transposed, n * p->steps, 0) ||
        near(again, transposed, n * p->steps, 0))
        HINT("unpack is transposed: padded is [n, steps], so token t of sequence s has "
             "index s * steps + t");
    if (near(padded, by_unsorted, n * p->steps, 0) ||
        near(again, by_unsorted, n * p->steps, 0))
        HINT("unpack uses unsorted instead of sorted: sorted[place] is a sequence, "
             "unsorted[sequence] is its place");
    if (near(padded, by_place, n * p->steps, 0))
        HINT("unpack keeps the sorted order: row s of padded is sequence s");
    hint_of_order(n, len, p, data, padded);
    for (int i = 0; i < n * p->steps; i++)
        if (!is_near(padded[i], want[i], 0))
            HINT("unpack has %s for token %d of sequence %d; its row is %s",
                 digits(padded[i]), i % p->steps, i / p->steps,
                 want[i] > 0 ? digits(want[i] - 1) : "missing: it is a pad");
}

/* Checks many sequences: all have one token, but the last has two. */
static void check_many(void)
{
    enum { MANY = 5000 };
    static int32_t len[MANY], memory[5][MANY + 1];
    packing p = { 0, 0, 0, memory[0], memory[1], memory[2], memory[3], memory[4] };
    for (int s = 0; s < MANY; s++)
        len[s] = 1 + (s == MANY - 1);
    pack_index(MANY, len, &p);
    for (int place = 0; place < MANY; place++)
        if (p.sorted[place] != (place + MANY - 1) % MANY)
            hint("of %d sequences of length 1, the last of 2, sorted has %d in place "
                 "%d: compare lengths first, and numbers only in a tie",
                 MANY, p.sorted[place], place);
}

/* Checks list k. Small lists come first. In list 0 sorted and unsorted differ. */
static void check_list(int k)
{
    static room got, want;
    int32_t len[MOST] = { 1, 3, 2 };
    int most = k < 100 ? 5 : k < 190 ? 16 : MOST;
    int n = k == 0   ? 3 :
            k == 197 ? MOST :
            k == 199 ? 0 :
                       1 + dice_below(most - (k >= 100));
    for (int s = 0; s < n && k; s++)
        len[s] = k == 198 ? 0 : dice_below(most);
    by_weft(n, len, &want), room_clear(&got, want.p.rows);
    check_conjugate(n, len, &want.p);
    pack_index(n, len, &got.p);
    check_sizes(n, len, &got, &want.p), check_sorted(n, len, &got.p, &want.p);
    check_rows(n, len, &got.p, &want.p);
    check_unpack(n, len, &want.p);
}

void check(void)
{
    dice_seed(7);
    for (int k = 0; k < 200; k++)
        check_list(k);
    check_long_parts(), check_many();
}
