/* Lesson 7: the student's arrays beside weft's, of 200 lists of lengths; there and
 * back. */
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

static bool equal(int n, const int32_t *a, const int32_t *b)
{
    return !memcmp(a, b, (size_t)n * sizeof *a);
}

/* ---- the conjugate ---- */
static void check_conjugate(int n, const int32_t *len, const packing *want)
{
    int32_t got[ROOM + 1], back[ROOM + 1];
    for (int i = 0; i <= ROOM; i++)
        got[i] = back[i] = -1;
    int steps = conjugate(n, len, got), positive = 0;
    if (want->steps && !steps)
        hint("conjugate leaves out empty: out[0] is how many parts are more than 0, "
             "out[1] more than 1, ..; it returns how many such numbers there are");
    if (steps == want->steps + 1)
        hint("conjugate of %s ends with a 0: no part is above %d, there is no step %d",
             list(n, len), want->steps, want->steps);
    if (steps == want->steps && steps && !equal(steps, got, want->batch_sizes)) {
        bool once = true;
        for (int k = 0; k < steps; k++) {
            int others = 0;
            for (int i = 0; i < n; i++)
                others += len[i] == k + 1;
            once &= got[k] == others;
        }
        if (once)
            hint("conjugate counts the parts that end at each step, not those still "
                 "there");
    }
    if (steps != want->steps || !equal(steps, got, want->batch_sizes))
        hint("conjugate of %s is %s, not %s", list(n, len),
             list(want->steps, want->batch_sizes),
             steps < 0 ? "of a negative count" : list(steps, got));
    for (int i = 0; i < n; i++)
        positive += len[i] > 0;
    if (conjugate(steps, got, back) != positive)
        hint("conjugate twice of %s does not give as many lengths as there are above 0",
             list(n, len));
    for (int place = 0; place < positive; place++)
        if (back[place] != len[want->sorted[place]])
            hint("conjugate twice of %s should be the lengths again, the longest first",
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
            hint("conjugate of 300 2 130 has %d at %d, not %d", got[k], k, want);
    }
}

/* ---- pack_index ---- */
static void check_sizes(int n, const int32_t *len, const room *got, const packing *want)
{
    const packing *p = &got->p;
    if (p->n != n)
        hint("of %s pack_index has n = %d: a sequence of length 0 is one, too",
             list(n, len), p->n);
    if (p->steps == want->steps + 1)
        hint("of %s pack_index has %d steps: they are 0 .. %d, without a 0 at the end",
             list(n, len), p->steps, want->steps - 1);
    if (p->steps != want->steps)
        hint("of %s pack_index has %d steps, but the longest length is %d",
             list(n, len), p->steps, want->steps);
    if (!equal(p->steps, p->batch_sizes, want->batch_sizes))
        hint("of %s batch_sizes is %s, not %s: how many sequences are longer than t",
             list(n, len), list(p->steps, want->batch_sizes),
             list(p->steps, p->batch_sizes));
    if (p->rows == 0 && want->rows)
        hint("of %s pack_index has no rows: a row a token, %d", list(n, len),
             want->rows);
    if (p->rows != want->rows)
        hint("of %s pack_index has %d rows, but the lengths' sum is %d", list(n, len),
             p->rows, want->rows);
}

static void check_sorted(int n, const int32_t *len, const packing *p,
                         const packing *want)
{
    bool descending = true, ascending = true, seen[MOST] = { false };
    for (int place = 0; place < n; place++) {
        int s = p->sorted[place];
        if (s < 0 || s >= n || seen[s])
            hint("of %s sorted is %s: each of 0 .. %d is there once, also if empty",
                 list(n, len), list(n, p->sorted), n - 1);
        seen[s] = true;
        descending &= !place || len[p->sorted[place - 1]] >= len[s];
        ascending &= !place || len[p->sorted[place - 1]] <= len[s];
    }
    if (equal(n, p->sorted, want->unsorted) && !equal(n, p->sorted, want->sorted) &&
        !descending)
        hint("of %s sorted is what unsorted should be: sorted[place] is a sequence",
             list(n, len));
    if (!descending && ascending)
        hint(
            "of %s sorted has the shortest sequence first; then batch_sizes would grow",
            list(n, len));
    if (!descending)
        hint("of %s sorted is %s: not the longest first", list(n, len),
             list(n, p->sorted));
    for (int place = 1; place < n; place++)
        if (len[p->sorted[place - 1]] == len[p->sorted[place]] &&
            p->sorted[place - 1] > p->sorted[place])
            hint("of %s sorted has sequence %d before %d, which is as long: equals "
                 "stay in their order (a stable sort)",
                 list(n, len), p->sorted[place - 1], p->sorted[place]);
    for (int place = 0; place < n; place++)
        if (p->unsorted[p->sorted[place]] != place)
            hint("of %s %s: unsorted[sequence] is its place, so unsorted[%d] is %d",
                 list(n, len),
                 equal(n, p->unsorted, p->sorted) ? "unsorted is sorted once more" :
                                                    "unsorted is wrong",
                 p->sorted[place], place);
}

/* Whether rows come place by place (or sequence by sequence), each with all its tokens.
 */
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
            hint("of %s row %d has token %d of sequence %d, but it is token %d of "
                 "sequence %d: time first, all first tokens before all second ones",
                 list(n, len), r, p->position[r], p->sequence[r], want->position[r],
                 want->sequence[r]);
        if (p->position[r] == want->position[r] && p->sequence[r] >= 0 &&
            p->sequence[r] < n && p->sorted[p->sequence[r]] == want->sequence[r])
            hint("of %s row %d names place %d; sequence is the one in that place, %d",
                 list(n, len), r, p->sequence[r], want->sequence[r]);
        hint("of %s row %d is token %d of sequence %d, not token %d of sequence %d",
             list(n, len), r, want->position[r], want->sequence[r], p->position[r],
             p->sequence[r]);
    }
}

/* ---- unpack ---- */
/* All tokens are right, but the pads hold what was there before. */
static bool only_pads_are_wrong(const double *got, const double *want, int n)
{
    for (int i = 0; i < n; i++)
        if (want[i] != 0 && got[i] != want[i])
            return false;
    return true;
}

static void check_unpack(int n, const int32_t *len, const packing *p)
{
    static int32_t zeros[ROOM + 1];
    static double data[ROOM], padded[ROOM], again[ROOM], want[ROOM], by_place[ROOM],
        transposed[ROOM], by_unsorted[ROOM];
    memset(want, 0, sizeof want), memset(by_place, 0, sizeof by_place);
    for (int r = 0; r < p->rows; r++) {
        data[r] = 1 + r;
        want[p->sequence[r] * p->steps + p->position[r]] = data[r];
        by_place[p->unsorted[p->sequence[r]] * p->steps + p->position[r]] = data[r];
    }
    for (int i = 0; i < n * p->steps; i++)
        padded[i] = again[i] = 77; /* what memory may hold */
    packing bare = *p;
    bare.unsorted = bare.sequence = bare.position = zeros;
    unpack(&bare, data, padded);
    if (near(padded, want, n * p->steps, 0))
        return;
    if (only_pads_are_wrong(padded, want, n * p->steps))
        hint("of %s unpack leaves pads as they were: they are to be 0", list(n, len));
    unpack(p, data, again);
    if (near(again, want, n * p->steps, 0))
        hint("unpack is right, but needs only batch_sizes and sorted");
    for (int i = 0; i < n * p->steps; i++) {
        int row = i / p->steps, t = i % p->steps;
        transposed[t * n + row] = want[i];
        by_unsorted[i] = want[p->sorted[p->sorted[row]] * p->steps + t];
    }
    if (near(padded, transposed, n * p->steps, 0) ||
        near(again, transposed, n * p->steps, 0))
        hint("of %s unpack is transposed: padded is [n, steps], so token t of sequence "
             "s stands at s * steps + t",
             list(n, len));
    if (near(padded, by_unsorted, n * p->steps, 0) ||
        near(again, by_unsorted, n * p->steps, 0))
        hint("of %s unpack takes unsorted for sorted: sorted[place] is a sequence, "
             "unsorted[sequence] is its place",
             list(n, len));
    if (near(padded, by_place, n * p->steps, 0))
        hint("of %s unpack leaves sequences sorted: row s of padded is sequence s",
             list(n, len));
    for (int i = 0; i < n * p->steps; i++)
        if (!near(padded + i, want + i, 1, 0))
            hint("of %s unpack has %s for token %d of sequence %d, whose row is %s",
                 list(n, len), digits(padded[i]), i % p->steps, i / p->steps,
                 want[i] > 0 ? digits(want[i] - 1) : "none: it is a pad");
}

/* Small lists, larger ones, some long ones; the first has other sorted than unsorted.
 */
static void check_list(int k)
{
    static room got, want;
    int32_t len[MOST] = { 1, 3, 2 };
    int most = k < 100 ? 5 : k < 190 ? 16 : MOST;
    int n = k == 0 ? 3 : k == 199 ? 0 : 1 + dice_below(most - (k >= 100));
    for (int s = 0; s < n && k; s++)
        len[s] = k == 198 ? 0 : dice_below(most);
    by_weft(n, len, &want), room_clear(&got);
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
    check_long_parts();
}
