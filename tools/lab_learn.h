/* lab_learn.h - a learning run: the model of lab_model.h, trained by the plans of a planner, looked at on
 * held out data. */
#ifndef WEFT_TOOLS_LAB_LEARN_H
#define WEFT_TOOLS_LAB_LEARN_H
#include <signal.h>
#include "tools/lab_model.h"

/* planner and plan: epoch e is planned with opts, their seed and epoch e; or `fixed`, always the same plan,
 * of a planner of others. tokens: after so many of training the run ends, and the rate has fallen to 1/50 (a
 * cosine, after a warmup of 1/20). an_update: gradients are summed over batches until they are of so many
 * tokens, and divided by them, so that plans with batches of any size make the same updates; 0: each batch is
 * an update, divided by what the plan has a batch. points: how often it is looked at. stop: ends the run
 * where it is; may be NULL. */
typedef struct {
    const weft_planner *planner;
    weft_plan_opts opts;
    const weft_plan *fixed;
    lab_model_opts model;
    int64_t tokens, an_update, points;
    const volatile sig_atomic_t *stop;
} lab_learn_opts;

/* Of training alone: tokens, updates and seconds so far; bits a token on the data held out. */
typedef struct { double tokens, updates, seconds, bits; } lab_learned;
typedef void lab_learn_fn(const lab_learned *, void *user);

/* Calls `each` at each point. False: it has failed, and why was said; true of a run that was stopped. */
bool lab_learn(const lab_learn_opts *, const weft_dataset *train, const weft_dataset *held_out,
               lab_learn_fn *each, void *user);
#endif
