/* optim.h - what an optimiser is, and its parameters as few runs of the root's flat vectors. */
#ifndef WEFT_OPTIM_H
#define WEFT_OPTIM_H
#include "nn/nn.h"

typedef struct weft__slot {                      /* one parameter and the gap to the next */
    weft__parameter *p;
    int64_t n, from;                             /* numbers; the place of the first in the optimiser's vectors */
    real scale, decay;                           /* of the rate; instead of the rule's */
    int past, parted;                            /* see optim_ages.c */
    bool frozen;
} weft__slot;

/* Parameters that lie side by side and share scale, decay and past, so frozen, too. */
typedef struct weft__run { int64_t at, from, n; real scale, decay; int past; bool frozen; } weft__run;

/* How many parameters are below m; fills that many slots, in the order in which they lie in the flat vectors. */
int  weft__slots(const weft_module *m);
void weft__slots_fill(const weft_module *m, weft__slot *s);
/* The run that starts with slot *i, which becomes the first one after it; false at the end. */
bool weft__next_run(const weft__slot *s, int n, int *i, weft__run *run);

struct weft_optim {
    weft *w; weft_module *module;                /* w NULL: an optimiser that could not be made */
    weft__update how;                            /* lr: the base rate; decay: of no group */
    int64_t steps, elements;
    real *m, *v, *a;                             /* [elements] device, NULL if the rule has none; see weft__update */
    weft__guard *guard, *pasts;                  /* device: of all steps; [n] of the pasts */
    int64_t rule, counts[4], *ages;              /* as saved: how.rule; the guard's applied, skipped, in_a_row, bad; [n] steps applied to each */
    char bad[WEFT__PATH];
    int n; weft__slot slot[];
};

/* A new optimiser with empty memory for these vectors; how was checked. */
weft_optim *weft__optim_new(weft_module *m, const char *name, const weft__update *how, bool first, bool second, bool average);

/* Before a step: parameters whose past was one, of which some are frozen now, part. */
void weft__pasts_part(weft_optim *o);
/* After the gradients were checked: the pasts of what is not frozen learn of it; and after the update they count the step. */
void weft__pasts_begin(weft_optim *o), weft__pasts_end(weft_optim *o);
/* To and from o->ages; both wait. */
void weft__pasts_read(weft_optim *o), weft__pasts_write(weft_optim *o);
#endif
