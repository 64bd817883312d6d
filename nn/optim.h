/* optim.h - the data of an optimiser. Its parameters form few runs of the root's flat vectors. */
#ifndef WEFT_OPTIM_H
#define WEFT_OPTIM_H
#include "nn/nn.h"

typedef struct weft__slot {                      /* a parameter and the gap after it */
    weft__parameter *p;
    /* n: its numbers. offset: its offset in the optimiser's vectors. */
    int64_t n, offset;
    real scale, decay;                           /* factor of the rate; replaces the rule's decay */
    int counter, split;                          /* see optim_members.c */
    bool muon;                                   /* updated by Muon, otherwise by `others` */
    /* Not updated: frozen, or not reached by a loss since the last step. */
    bool idle;
} weft__slot;

/* Adjacent parameters with equal scale, decay, counter and muon, and therefore equal `idle`. begin: in the
 * root. */
typedef struct weft__run {
    int64_t begin, offset, n; real scale, decay; int counter; bool muon, idle;
} weft__run;

/* Returns the run that starts with slot *i and advances *i past it. Returns false at the end. */
bool weft__next_run(const weft__slot *s, int n, int *i, weft__run *run);

typedef struct weft__group weft__group;
struct weft_optim {
    /* w is NULL if the optimiser could not be made or has ended. */
    weft *w; weft_module *module;
    const char *name;                            /* "adamw" */
    weft__update update;                         /* lr: base rate; decay: outside groups */
    /* The rule of parameters that Muon does not update; lr: a factor of update.lr. Otherwise as update. */
    weft__update others;
    int muon_steps; bool match_rms_adamw;        /* Muon: Newton-Schulz steps; scale of directions */
    real *muon_work;                             /* on the device, for the largest matrix; or NULL */
    bool first, second, average;                 /* vectors that the rule needs */
    int64_t steps, elements;
    /* Device vectors [elements], NULL if the rule does not need them; see weft__update. */
    real *m, *v, *a;
    weft__guard *guard, *counters;               /* on the device: counts of all steps; [n] counters */
    /* As saved: update.rule; the guard's applied, skipped, in_a_row, bad; [n] steps applied to each. */
    int64_t rule, counts[4], *ages;
    /* In the last skipped step a result was not finite, not a gradient; see weft__guard. */
    bool overflow;
    char bad_path[WEFT__PATH];
    /* tape->version after the last step. Later changes are not the optimiser's. */
    uint64_t version;
    weft__group *groups;
    /* The last parameter of the root that was checked for membership. */
    const weft__parameter *last_seen;
    int n; weft__slot *slot;
};

/* Makes an optimiser from its name, update, others, options of Muon and vectors, all checked before. */
weft_optim *weft__optim_new(weft_module *m, const weft_optim *how);

/* ---- optim_muon.c ---- */
/* Writes the direction of each matrix of this step to o->v. */
void weft__muon_directions(weft_optim *o);
/* After a step: zeroes the directions. */
void weft__muon_clear(weft_optim *o);
/* Returns the number of reals of o->muon_work. */
int64_t weft__muon_work_size(const weft_optim *o);

/* ---- optim_members.c ---- */
/* Adds the parameters made below the module since the last call. Returns false and fails the context if
 * memory runs out or a parameter has another optimiser. */
bool weft__add_members(weft_optim *o, const char *function);
/* Releases the parameters. */
void weft__release_members(weft_optim *o);
/* Frees the memory, also when the context ends. Nobody reads the stale pointers if o->w is NULL. */
void weft__free_members(weft_optim *o);
/* excludes: takes matrices from Muon, and ignores scale and decay. */
void weft__add_group(weft_optim *o, const char *pattern, real scale, real decay, bool excludes);
/* Checks that every group matches a parameter. Otherwise fails the context and names the pattern. */
bool weft__groups_fit(weft_optim *o);

/* ---- steps of each parameter, optim_members.c ---- */
/* Before a step: gives parameters that share a counter separate ones if only some are updated. */
void weft__split_counters(weft_optim *o);
/* After the update: counts the step in the counters of updated parameters and in the optimiser's guard. */
void weft__count_step(weft_optim *o);
/* Copy the counters to and from o->ages. Both wait for the device. */
void weft__read_counters(weft_optim *o), weft__write_counters(weft_optim *o);
#endif
