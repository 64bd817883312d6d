/* room.c - prepares lengths for the library's planners: rounds them up to multiples of `align`, and cuts or
 * drops sequences that are longer than a row. The planner plans the pieces as if each were a sequence. */
#include <math.h>
#include <string.h>
#include "plan/planners.h"

int64_t weft__plan_root(int64_t x)
{
    int64_t root = (int64_t)sqrt((double)x);
    if (root >= INT32_MAX)
        return INT32_MAX;
    while (root * root > x)
        root--;
    while ((root + 1) * (root + 1) <= x)
        root++;
    return root;
}

/* room: the longest piece; limit: its name in messages. planned: the pieces' lengths, rounded up. Without
 * `sequence`, piece i is the whole sequence i. */
typedef struct {
    int64_t align, room, n;
    const char *limit;
    int32_t *sequence, *offset, *length, *planned;
} prepared;

static weft_status set_room(const weft_plan_opts *o, bool limited, prepared *t)
{
    *t = (prepared){ .align = o->align > 1 ? o->align : 1, .room = INT32_MAX,
                      .limit = "the largest multiple of align" };
    if (o->capacity % t->align)
        return weft_plan_refuse(WEFT_EARG, "capacity is %lld; expected a multiple of align, %lld",
                                (long long)o->capacity, (long long)t->align);
    if (limited) {
        int64_t root = o->squares ? weft__plan_root(o->squares) : INT32_MAX;
        t->room = root < o->capacity ? root : o->capacity;
        t->limit = root < o->capacity ? "the root of squares" : "the capacity";
    }
    t->room -= t->room % t->align;
    return t->room ? WEFT_OK :
                     weft_plan_refuse(WEFT_EARG,
                                      "squares is %lld; expected at least the square of align, %lld",
                                      (long long)o->squares, (long long)t->align * t->align);
}

/* Counts the pieces of all sequences. *simple: they are the sequences. */
static weft_status count_pieces(prepared *t, const int32_t *len, int64_t n, const weft_plan_opts *o,
                                bool *simple)
{
    *simple = true;
    for (int64_t i = 0; i < n; i++) {
        bool longer = len[i] > t->room;
        *simple &= !longer;
        if (longer && o->longer == WEFT_LONGER_REFUSE)
            return weft_plan_refuse(WEFT_EARG, "sequence %lld has %d tokens; expected at most %s, %lld",
                                    (long long)i, (int)len[i], t->limit, (long long)t->room);
        t->n += !longer || o->longer == WEFT_LONGER_TRUNCATE ? 1 :
                o->longer == WEFT_LONGER_SPLIT               ? (len[i] + t->room - 1) / t->room :
                                                               0;
    }
    return t->n <= INT32_MAX ? WEFT_OK :
                               weft_plan_refuse(WEFT_EARG, "%lld pieces; expected at most %d",
                                                (long long)t->n, INT32_MAX);
}

/* Lists the pieces, and counts the tokens in none of them. */
static void list_pieces(prepared *t, const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    int64_t k = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t end = len[i] <= t->room || o->longer == WEFT_LONGER_SPLIT ? len[i] :
                      o->longer == WEFT_LONGER_TRUNCATE                   ? t->room :
                                                                            -1;
        p->dropped += end < 0 ? len[i] : len[i] - end;
        for (int64_t begin = 0; begin < end || (!begin && !end); begin += t->room, k++) {
            t->sequence[k] = (int32_t)i;
            t->offset[k] = (int32_t)begin;
            t->length[k] = (int32_t)(end - begin < t->room ? end - begin : t->room);
        }
    }
}

/* Gives the segments the sequences and lengths of the user. */
static void restore(const prepared *t, const int32_t *len, weft_plan *p)
{
    for (int64_t i = 0; i < p->segments; i++) {
        weft_segment *s = p->segment + i;
        int64_t k = s->sequence;
        int32_t rest = (t->sequence ? t->length[k] : len[k]) - s->offset;
        s->length = rest < s->length ? rest : s->length;
        s->offset += t->sequence ? t->offset[k] : 0;
        s->sequence = t->sequence ? t->sequence[k] : k;
    }
    p->align = (int32_t)t->align;
}

weft_status weft__plan_in_room(weft__planning *plan, const char *options, const int32_t *len, int64_t n,
                               const weft_plan_opts *o, weft_plan *p)
{
    prepared t;
    bool simple;
    weft_status s = set_room(o, strstr(options, "longer"), &t);
    s = s == WEFT_OK ? count_pieces(&t, len, n, o, &simple) : s;
    if (s != WEFT_OK || (simple && t.align == 1))
        return s == WEFT_OK ? plan(len, n, o, p) : s;
    t.planned = weft__plan_memory(t.n, sizeof *t.planned);
    t.sequence = simple ? NULL : weft__plan_memory(3 * t.n, sizeof *t.sequence);
    if (!t.planned || (!simple && !t.sequence))
        return WEFT_ENOMEM;
    if (!simple) {
        t.offset = t.sequence + t.n;
        t.length = t.offset + t.n;
        list_pieces(&t, len, n, o, p);
    }
    for (int64_t k = 0; k < t.n; k++)
        t.planned[k] = (int32_t)(((simple ? len[k] : t.length[k]) + t.align - 1) / t.align * t.align);
    s = plan(t.planned, t.n, o, p);
    if (s == WEFT_OK)
        restore(&t, len, p);
    return s;
}
