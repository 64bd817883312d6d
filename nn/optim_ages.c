/* optim_ages.c - how many steps each parameter has had. Adam's corrections and SGD's first step go by a
 * parameter's own steps, and one that is still, frozen or reached by no loss, has none; otherwise what moves
 * late would start with steps three times too long.
 *
 * Only the device knows how many steps were applied, so a past is a weft__guard of its own there. All
 * parameters begin with one past; when some that share a past are still and others are not, those that differ
 * from the first of them leave with a copy. So a past has the number of the first parameter that has it, and
 * there are as few as there were histories. */
#include "nn/optim.h"

static void leave_slot(weft_optim *o, int i, weft__slot *first)
{
    weft__device *d = &o->w->dev;
    weft__slot *s = o->slot + i;
    if (first->parted < 0) {                     /* the first to leave: the others follow it */
        d->k->copy(d, o->pasts + i, o->pasts + s->past, sizeof *o->pasts);
        first->parted = i, s->parted = -1;
    }
    s->past = first->parted;
}

void weft__pasts_part(weft_optim *o)
{
    for (int i = 0; i < o->n; i++) {
        weft__slot *s = o->slot + i, *first = o->slot + s->past;
        s->still = weft__node_of(&s->p->value)->frozen || !weft__node_of(&s->p->value)->given;
        if (s == first)
            s->parted = -1;
        else if (s->still != first->still)
            leave_slot(o, i, first);
    }
}

static bool moves(const weft_optim *o, int i) { return o->slot[i].past == i && !o->slot[i].still; }

void weft__step_end(weft_optim *o)
{
    weft__device *d = &o->w->dev;
    weft__guard *past = NULL;
    for (int i = 0; i < o->n; i++)
        if (moves(o, i)) {
            if (past)
                d->k->guard_end(d, past, o->guard, false);
            past = o->pasts + i;
        }
    d->k->guard_end(d, past, o->guard, true);
}

void weft__pasts_read(weft_optim *o)
{
    weft__device *d = &o->w->dev;
    for (int i = 0; i < o->n; i++) {
        int past = o->slot[i].past;
        weft__guard g = { .applied = o->ages[past] };
        if (past == i)
            d->k->download(d, &g, o->pasts + i, sizeof g);
        o->ages[i] = g.applied;
    }
}

void weft__pasts_write(weft_optim *o)
{
    weft__device *d = &o->w->dev;
    for (int i = 0; i < o->n; i++) {
        weft__guard g = { .applied = o->ages[i] };
        int past = 0;
        while (o->ages[past] != o->ages[i])
            past++;
        o->slot[i].past = past;
        if (past == i)
            d->k->upload(d, o->pasts + i, &g, sizeof g);
    }
}
