/* packer.c - packs a stream of sequences into rows: the fits of fits.c with a bounded number of open rows. */
#include <stdlib.h>
#include <string.h>
#include "plan/api_packer.h"
#include "plan/planners.h"

/* piece [room], n of them. next: the next final row. */
typedef struct row {
    int64_t number, tokens, n, room;
    weft_packed *piece;
    struct row *next;
} row;

/* gap, row [open]: the open rows in the order of their numbers. final .. end: a list of final rows. given:
 * the row that the program has. */
struct weft_packer {
    weft__fit rule;
    int64_t capacity, limit, most, sequences, rows, open, room;
    int64_t *gap;
    row **row, *final, *end, *given;
};

static void free_row(row *r)
{
    if (r)
        free(r->piece);
    free(r);
}

/* Frees the rows, but not the packer. */
static void free_rows(weft_packer *p)
{
    weft_packer_end(p);
    for (row *r = p->final, *next; r; r = next) {
        next = r->next;
        free_row(r);
    }
    free_row(p->given);
    free(p->gap);
    free(p->row);
}

void weft_packer_free(weft_packer *p)
{
    if (p)
        free_rows(p);
    free(p);
}

static const char *const names[] = { "next_fit", "first_fit", "best_fit", "worst_fit" };

weft_status weft_packer_new(const weft_planner *planner, const weft_plan_opts *opts, weft_packer **out)
{
    int rule = 0;
    weft_plan nothing;
    if (!out)
        return weft_plan_refuse(WEFT_EARG, "packer_new: out is NULL");
    *out = NULL;
    while (planner && rule < 4 && planner != weft_planner_named(names[rule]))
        rule++;
    if (!planner || rule == 4)
        return weft_plan_refuse(WEFT_EARG,
                                "packer_new: found planner %s; expected next_fit, first_fit, best_fit or "
                                "worst_fit, which need no later sequences",
                                planner ? planner->name : "NULL");
    const weft_planner checked = { .name = names[rule],
                                   .options = rule ? "capacity limit open" : "capacity limit",
                                   .plan = planner->plan };
    weft_status s = weft_plan_make(&checked, NULL, 0, opts, &nothing);
    if (s != WEFT_OK)
        return s;
    if (rule && !opts->open)
        return weft_plan_refuse(WEFT_EARG,
                                "%s: open is missing; expected 1 or more: the buffer of a stream "
                                "has an end",
                                names[rule]);
    if (!(*out = calloc(1, sizeof **out)))
        return weft_plan_refuse(WEFT_ENOMEM, "packer_new: no memory");
    **out = (weft_packer){ .rule = (weft__fit)rule,
                           .capacity = opts->capacity,
                           .limit = opts->limit,
                           .most = rule ? opts->open : 1 };
    return WEFT_OK;
}

/* ---- rows ---- */
/* Returns the open row for this length; -1: none has room. */
static int64_t find_row(const weft_packer *p, int64_t length)
{
    int64_t best = -1;
    for (int64_t i = 0; i < p->open; i++) {
        if (p->gap[i] < length)
            continue;
        if (p->rule == WEFT__NEXT_FIT || p->rule == WEFT__FIRST_FIT)
            return i;
        if (best < 0 || (p->rule == WEFT__BEST_FIT ? p->gap[i] < p->gap[best] : p->gap[i] > p->gap[best]))
            best = i;
    }
    return best;
}

/* Makes an open row final. */
static void close_row(weft_packer *p, int64_t i)
{
    row *r = p->row[i];
    size_t after = (size_t)(--p->open - i);
    memmove(p->row + i, p->row + i + 1, after * sizeof *p->row);
    memmove(p->gap + i, p->gap + i + 1, after * sizeof *p->gap);
    *(p->final ? &p->end->next : &p->final) = r;
    p->end = r;
}

static void close_fullest(weft_packer *p)
{
    int64_t fullest = 0;
    for (int64_t i = 1; i < p->open; i++)
        fullest = p->gap[i] < p->gap[fullest] ? i : fullest;
    close_row(p, fullest);
}

static bool open_row(weft_packer *p)
{
    int64_t room = p->room;
    row *r = calloc(1, sizeof *r);
    if (!r || !weft__plan_grow(&p->gap, &room, p->open + 1, sizeof *p->gap) ||
        !weft__plan_grow(&p->row, &p->room, p->open + 1, sizeof *p->row) ||
        !weft__plan_grow(&r->piece, &r->room, 8, sizeof *r->piece))
        return free_row(r), false;
    if (p->open == p->most)
        close_fullest(p);
    r->number = p->rows++;
    p->gap[p->open] = p->capacity;
    p->row[p->open++] = r;
    return true;
}

/* Adds a piece to open row i, which has room. Returns false if memory is short. */
static bool add_piece(weft_packer *p, int64_t i, weft_packed piece)
{
    row *r = p->row[i];
    if (!weft__plan_grow(&r->piece, &r->room, r->n + 1, sizeof *r->piece))
        return false;
    r->piece[r->n++] = piece;
    r->tokens += piece.length;
    p->gap[i] -= piece.length;
    return true;
}

weft_status weft_packer_add(weft_packer *p, int64_t id, int64_t length)
{
    if (!p)
        return weft_plan_refuse(WEFT_EARG, "packer_add: the packer is NULL");
    if (length < 0 || length > p->capacity)
        return weft_plan_refuse(WEFT_EARG,
                                "packer_add: sequence %lld has %lld tokens; expected 0 .. %lld, "
                                "the capacity",
                                (long long)id, (long long)length, (long long)p->capacity);
    int64_t i = length ? find_row(p, length) : 0;
    if (length &&
        ((i < 0 && !open_row(p)) || !add_piece(p, i = i < 0 ? p->open - 1 : i, (weft_packed){ id, length })))
        return weft_plan_refuse(WEFT_ENOMEM, "packer_add: no memory for sequence %lld", (long long)id);
    p->sequences++;
    if (length && (!p->gap[i] || (p->limit && p->row[i]->n == p->limit)))
        close_row(p, i);
    return WEFT_OK;
}

void weft_packer_end(weft_packer *p)
{
    while (p && p->open)
        close_row(p, 0);
}

bool weft_packer_next(weft_packer *p, weft_packed_row *out)
{
    row *r = p ? p->final : NULL;
    if (!r)
        return false;
    free_row(p->given);
    p->given = r;
    p->final = r->next;
    *out = (weft_packed_row){ r->number, r->tokens, r->n, r->piece };
    return true;
}

int64_t weft_packer_count(const weft_packer *p) { return p ? p->sequences : 0; }

/* ---- the state: HEAD numbers, then the final rows, then the open ones: number, n, and n pieces ---- */
enum { MAGIC, SUM, SIZE, RULE, CAPACITY, LIMIT, OPEN, SEQUENCES, ROWS, OPEN_ROWS, HEAD };
static const int64_t magic = 0x776566747061636b;

/* Returns FNV-1a (Fowler, Noll and Vo) of the numbers after SUM. */
static int64_t checksum(const int64_t *state, int64_t n)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (int64_t i = SIZE; i < n; i++)
        for (int shift = 0; shift < 64; shift += 8)
            hash = (hash ^ ((uint64_t)state[i] >> shift & 255)) * 0x100000001b3;
    return (int64_t)hash;
}

/* Writes a row, if state is not NULL, and returns its size. */
static int64_t put_row(const row *r, int64_t *state)
{
    if (state) {
        state[0] = r->number;
        state[1] = r->n;
        memcpy(state + 2, r->piece, (size_t)r->n * sizeof *r->piece);
    }
    return 2 + 2 * r->n;
}

static int64_t put_rows(const weft_packer *p, int64_t *state)
{
    int64_t at = HEAD;
    for (const row *r = p->final; r; r = r->next)
        at += put_row(r, state ? state + at : NULL);
    for (int64_t i = 0; i < p->open; i++)
        at += put_row(p->row[i], state ? state + at : NULL);
    return at;
}

int64_t weft_packer_state_size(const weft_packer *p) { return p ? put_rows(p, NULL) : 0; }

void weft_packer_get_state(const weft_packer *p, int64_t *state)
{
    if (!p)
        return;
    const int64_t head[HEAD] = { magic,    0,       put_rows(p, state), p->rule, p->capacity,
                                 p->limit, p->most, p->sequences,       p->rows, p->open };
    memcpy(state, head, sizeof head);
    state[SUM] = checksum(state, state[SIZE]);
}

/* Adds the row at `state`, which has n numbers up to the end, as an open one. Returns its size; 0: it is not
 * a row; -1: no memory. */
static int64_t take_row(weft_packer *p, const int64_t *state, int64_t n)
{
    if (n < 4 || state[0] < 0 || state[0] >= p->sequences || state[1] < 1 || state[1] > (n - 2) / 2)
        return 0;
    if (!open_row(p))
        return -1;
    p->row[p->open - 1]->number = state[0];
    for (int64_t i = 0; i < state[1]; i++) {
        weft_packed piece = { state[2 + 2 * i], state[3 + 2 * i] };
        if (piece.length < 1 || piece.length > p->gap[p->open - 1])
            return 0;
        if (!add_piece(p, p->open - 1, piece))
            return -1;
    }
    return 2 + 2 * state[1];
}

static weft_status take_rows(weft_packer *p, const int64_t *state)
{
    for (int64_t at = HEAD, size; at < state[SIZE]; at += size) {
        size = take_row(p, state + at, state[SIZE] - at);
        if (size <= 0)
            return size ? WEFT_ENOMEM : WEFT_EFORMAT;
    }
    while (p->open > state[OPEN_ROWS])
        close_row(p, 0);
    for (int64_t i = 0; i < p->open; i++)
        if (!p->gap[i] || (p->limit && p->row[i]->n >= p->limit))
            return WEFT_EFORMAT;
    return p->open == state[OPEN_ROWS] && p->open <= state[OPEN] ? WEFT_OK : WEFT_EFORMAT;
}

weft_status weft_packer_set_state(weft_packer *p, const int64_t *state, int64_t n)
{
    if (!p)
        return weft_plan_refuse(WEFT_EARG, "packer_set_state: the packer is NULL");
    if (!state || n < HEAD || state[MAGIC] != magic || state[SIZE] < HEAD || state[SIZE] > n ||
        state[ROWS] < 0 || state[ROWS] > state[SEQUENCES] || state[SUM] != checksum(state, state[SIZE]))
        return weft_plan_refuse(WEFT_EFORMAT,
                                "packer_set_state: %lld numbers that are damaged, or not the "
                                "state of a packer; use an earlier state",
                                (long long)n);
    if (state[RULE] != (int64_t)p->rule || state[CAPACITY] != p->capacity || state[LIMIT] != p->limit ||
        state[OPEN] != p->most)
        return weft_plan_refuse(WEFT_EFORMAT,
                                "packer_set_state: the state is of %s:capacity=%lld,limit=%lld,open=%lld; "
                                "expected %s:capacity=%lld,limit=%lld,open=%lld",
                                names[state[RULE] & 3], (long long)state[CAPACITY], (long long)state[LIMIT],
                                (long long)state[OPEN], names[p->rule], (long long)p->capacity,
                                (long long)p->limit, (long long)p->most);
    weft_packer next = { .rule = p->rule,
                         .capacity = p->capacity,
                         .limit = p->limit,
                         .most = INT64_MAX,
                         .sequences = state[SEQUENCES] };
    weft_status s = take_rows(&next, state);
    if (s == WEFT_OK) {
        weft_packer old = *p;
        next.most = p->most;
        next.rows = state[ROWS];
        *p = next;
        next = old;
    }
    free_rows(&next);
    return s == WEFT_OK ?
               s :
               weft_plan_refuse(s, "packer_set_state: %s",
                                s == WEFT_ENOMEM ? "no memory for its rows" :
                                                   "a row of the state is damaged; use an earlier state");
}
