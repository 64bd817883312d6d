/* optim.h - what an optimiser is, and its parameters as few runs of the root's flat vectors. */
#ifndef WEFT_OPTIM_H
#define WEFT_OPTIM_H
#include "nn/nn.h"

typedef struct weft__slot {                      /* one parameter and the gap to the next */
    weft__parameter *p;
    /* numbers; the place of the first in the optimiser's vectors */
    int64_t n, from;
    real scale, decay;                           /* of the rate; instead of the rule's */
    int past, parted;                            /* see optim_members.c */
    /* not stepped: frozen, or reached by no loss since the last step */
    bool still;
} weft__slot;

/* Parameters that lie side by side and share scale, decay and past, so being still, too. */
typedef struct weft__run { int64_t at, from, n; real scale, decay; int past; bool still; } weft__run;

/* The run that starts with slot *i, which becomes the first one after it; false at the end. */
bool weft__next_run(const weft__slot *s, int n, int *i, weft__run *run);

typedef struct weft__group weft__group;
struct weft_optim {
    /* w NULL: an optimiser that could not be made, or has ended */
    weft *w; weft_module *module;
    const char *name;                            /* "adamw" */
    weft__update how;                            /* lr: the base rate; decay: of no group */
    bool first, second, average;                 /* which vectors the rule has */
    int64_t steps, elements;
    /* [elements] device, NULL if the rule has none; see weft__update */
    real *m, *v, *a;
    weft__guard *guard, *pasts;                  /* device: of all steps; [n] of the pasts */
    /* as saved: how.rule; the guard's applied, skipped, in_a_row, bad; [n] steps applied to each */
    int64_t rule, counts[4], *ages;
    /* in the last bad step it was not the gradient: see weft__guard */
    bool over;
    char bad[WEFT__PATH];
    /* w->tape->changes after the last step: what has changed since is not the optimiser's doing */
    uint64_t then;
    weft__group *groups;
    /* the last of the root that was asked whether it belongs here */
    const weft__parameter *seen;
    int n; weft__slot *slot;
};

/* A new optimiser with empty memory for these vectors; how was checked. */
weft_optim *weft__optim_new(weft_module *m, const char *name, const weft__update *how, bool first,
                            bool second, bool average);

/* ---- optim_members.c ---- */
/* Takes in what was made below the module since; false: no memory, or a parameter that has an optimiser,
 * and the context has failed. */
bool weft__members_join(weft_optim *o, const char *function);
/* The parameters have no optimiser any more; and the memory of it, when the context ends, and with it
 * parameters that are younger. */
void weft__members_leave(weft_optim *o), weft__members_end(weft_optim *o);
void weft__group_set(weft_optim *o, const char *pattern, real scale, real decay);
/* Whether every group has a parameter; else the context fails, naming the pattern. */
bool weft__groups_fit(weft_optim *o);

/* ---- steps of each parameter, optim_members.c ---- */
/* Before a step: parameters whose past was one, of which some are still now, part. */
void weft__pasts_part(weft_optim *o);
/* After the update: the pasts of what is not still, and the optimiser's own guard, count the step. */
void weft__step_end(weft_optim *o);
/* To and from o->ages; both wait. */
void weft__pasts_read(weft_optim *o), weft__pasts_write(weft_optim *o);
#endif
