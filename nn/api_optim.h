/* api_optim.h - optimisers, clipping, averages of parameters, learning rates.
 *
 * Contents: optimisers, clipping, averages of parameters, schedules, plateaus, early stopping. The
 * context owns optimisers and averages; options are copied. A _new that fails returns an inert
 * object. With an optimiser or average that is NULL or inert, functions do nothing and return 0. */
#ifndef WEFT_API_OPTIM_H
#define WEFT_API_OPTIM_H
#include "api_nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- optimisers: rules and names of torch.optim ---- *
 * 0 means torch's default: lr 1e-3 (RMSprop 1e-2), alpha .99, beta1 .9, beta2 .999, eps 1e-8, all
 * others 0; WEFT_ZERO is 0. One default differs: AdamW's weight_decay is 0 here, .01 in torch.
 * RAdam, Lion, Muon and more schedules are in weft_lab.h. */
typedef struct weft_optim weft_optim;
typedef struct { double lr, momentum, dampening, weight_decay; bool nesterov; } weft_sgd_opts;
typedef struct { double lr, alpha, eps, weight_decay, momentum; bool centered; } weft_rmsprop_opts;
typedef struct { double lr, beta1, beta2, eps, weight_decay; } weft_adam_opts;
/* Makes an optimiser of all parameters below m; those made later take part from the next step on.
 * opts NULL: all 0. Each parameter counts a step only if it is trainable and has a
 * gradient. AdamW subtracts lr * weight_decay * parameter apart from the gradient (Loshchilov &
 * Hutter 2019); the others add weight_decay * parameter to the gradient. The optimiser lives until
 * weft_optim_free or weft_close. Errors: a parameter that already has an optimiser; a number that
 * is not finite; a rate, momentum or decay below 0; eps not above 0 (so not WEFT_ZERO); a beta
 * below 0 or not below 1; an alpha outside 0 .. 1; nesterov without momentum or with dampening.
 * Like torch.optim.SGD, torch.optim.RMSprop, torch.optim.Adam and torch.optim.AdamW. */
WEFT_API weft_optim *weft_sgd_new(weft_module *m, const weft_sgd_opts *opts);
WEFT_API weft_optim *weft_rmsprop_new(weft_module *m, const weft_rmsprop_opts *opts);
WEFT_API weft_optim *weft_adam_new(weft_module *m, const weft_adam_opts *opts);
WEFT_API weft_optim *weft_adamw_new(weft_module *m, const weft_adam_opts *opts);
/* Ends an optimiser before its context. Its parameters keep their values and may get another
 * optimiser. NULL is allowed; o is inert afterwards. */
WEFT_API void weft_optim_free(weft_optim *o);
/* Multiplies the rate by lr_scale and replaces the decay for some parameters: those whose path
 * below the optimiser's module matches a shell pattern, "encoder.*", "*.bias", "*" (* any letters
 * and dots, ? one letter, [..] one of them). Parameters made later are included. If several
 * patterns match, the one set last wins; setting a pattern again makes it the last. This turns
 * decay off for some:
 *     weft_optim_set_group(o, "*bias*", 1, 0);
 *     weft_optim_set_group(o, "*norm*", 1, 0);
 * Errors: NULL, "", a number below 0 or not finite. A pattern that matches no parameter is an error
 * of the next weft_optim_step. Like parameter groups. */
WEFT_API void weft_optim_set_group(weft_optim *o, const char *pattern, double lr_scale,
                                   double weight_decay);
/* Updates the parameters, then zeroes their gradients. In a failed context it does nothing.
 *
 * A parameter that no weft_backward has reached since the last step or weft_zero_grad stays
 * unchanged, without decay or momentum, as in PyTorch where grad is None. Zeros, such as those of
 * an empty batch, are a gradient, and so are numbers written by weft_assign.
 *
 * If a gradient or a new parameter is not finite, the step is skipped: gradients are zeroed, and no
 * parameter changes. Ten skipped steps in a row are a sticky error; weft_recover starts the count
 * again. Errors: no parameter below m. Like o.step() and o.zero_grad(). */
WEFT_API void weft_optim_step(weft_optim *o);
/* Sets the learning rate. Errors: a rate that is negative or not finite. Like group["lr"] = lr. */
WEFT_API void weft_optim_set_lr(weft_optim *o, double lr);
/* Returns the learning rate, before the factors of weft_optim_set_group. Like group["lr"]. */
WEFT_API double weft_optim_lr(const weft_optim *o);
/* Returns the number of steps, skipped ones included, failed ones not. A checkpoint keeps it. */
WEFT_API int64_t weft_optim_steps(const weft_optim *o);
/* Returns the number of steps that were skipped because a number was not finite; 0 for NULL. Sets
 * *bad_parameter to the path, below the optimiser's module, of the parameter that caused the last
 * skip, or to ""; bad_parameter may be NULL. The optimiser owns the path, and a later skip
 * overwrites it. Waits for the device. Like the skipped steps of torch.amp.GradScaler. */
WEFT_API int64_t weft_optim_skipped(weft_optim *o, const char **bad_parameter);

/* ---- clipping ---- */
/* Scales the gradients below m, except of frozen parameters, so that their common norm is at most
 * max. max is above 0; INFINITY: no limit. power: 2 (or 0), 1 or INFINITY, torch's norm_type.
 * Returns the norm before scaling, a real of rank 0; reading it waits for the device. A norm of NaN
 * scales nothing. An infinite norm turns infinite gradients to NaN, so the next step is skipped.
 * Errors: any other max or power; returns an inert tensor. Like torch.nn.utils.clip_grad_norm_. */
WEFT_API weft_tensor *weft_clip_grad_norm(weft_module *m, double max, double power);

/* ---- averages of parameters ---- */
/* An exponential moving average, Polyak & Juditsky 1992: average += (1 - decay) (parameter -
 * average). */
typedef struct weft_ema weft_ema;
/* Makes averages of all parameters below m, which start as copies of the parameters. decay: 0 .. 1.
 * Checkpoints hold them as buffers "ema.<path>" of m. Make it after the last layer: with a
 * parameter added later, update and swap are errors. Errors: another decay; m has an "ema" already.
 * Like torch.optim.swa_utils.AveragedModel. */
WEFT_API weft_ema *weft_ema_new(weft_module *m, double decay);
/* Updates the averages after a step of the parameters. updates: the number of steps so far, this
 * one included, such as weft_optim_steps(o) after weft_optim_step(o). While updates <= 1 / (1 -
 * decay), and always with decay 1, it sets the averages to the parameters. */
WEFT_API void weft_ema_update(weft_ema *a, int64_t updates);
/* Exchanges averages and parameters: call it before an evaluation and again after it. Between the
 * two calls weft_ema_update is an error, and a checkpoint saves the averages as parameters. Call it
 * again before loading. */
WEFT_API void weft_ema_swap(weft_ema *a);

/* ---- schedules: learning rates as functions of the step, which counts from 0 ---- *
 * They have no state and return the rate. They return NaN for a negative step, a total or `every`
 * below 1, a warmup below 0 or above total, a rate or factor that is negative or not finite, and a
 * result that overflows. weft_optim_set_lr of NaN fails the context. */
/* Returns the rate of a cosine schedule at `step`. It rises linearly from lr / warmup at step 0 to
 * lr at step warmup - 1, falls by half a cosine to `last` at step `total`, and stays there. warmup
 * 0: no rise. Loshchilov & Hutter 2017. Like torch.optim.lr_scheduler.CosineAnnealingLR after
 * LinearLR. */
WEFT_API double weft_cosine_schedule(int64_t step, int64_t total, double lr, int64_t warmup,
                                     double last);
/* Returns lr * factor^k, where k = step / every, rounded down. Like
 * torch.optim.lr_scheduler.StepLR. */
WEFT_API double weft_step_schedule(int64_t step, int64_t every, double lr, double factor);
/* Returns the rate of a one-cycle schedule at `step`. It rises by a cosine from lr / start at step
 * 0 to lr at step rise * total - 1. It then falls by a cosine to lr / start / end at step total -
 * 1, and stays there. rise: the rising share of total, 0 .. 1. start and end are divisors, above 0
 * and finite. Any other rise, start or end gives NaN. Smith 2018. PyTorch's defaults of rise, start
 * and end: .3, 25, 1e4. Like torch.optim.lr_scheduler.OneCycleLR. */
WEFT_API double weft_one_cycle_schedule(int64_t step, int64_t total, double lr, double rise,
                                        double start, double end);

/* ---- plateaus and early stopping ---- */
/* State of a plateau scheduler, plain data that the program may save. Set lr; 0 is valid for all
 * others. weft_plateau_step changes lr, best, bad and seen. */
typedef struct {
    double lr;                       /* the current rate; required */
    double factor;                   /* of lr at a plateau, below 1; 0: .1; WEFT_ZERO: 0 */
    double least;                    /* lower limit of lr, 0 or more */
    int64_t patience;                /* values in a row that may fail to improve; 0: none */
    bool larger_is_better;           /* false: a smaller value is better, such as a loss */
    double best;                     /* best value so far */
    int64_t bad;                     /* values in a row that were not better */
    int64_t seen;                    /* values so far */
} weft_plateau;
/* Adds a value, such as the loss of an epoch, and returns p->lr. A value is better if it improves
 * on p->best by more than 1e-4 |p->best|. The first finite value is better, NaN never is. If more
 * than `patience` values in a row were not better, the function first multiplies p->lr by factor,
 * down to `least`, and sets p->bad to 0. So patience 2 reduces at the third such value, patience 0
 * at the first. A change of p->lr by 1e-8 or less is not made. Returns NaN, and changes nothing, if
 * p is NULL, factor is 1 or more or negative (except WEFT_ZERO), or `least` is negative or not
 * finite. Like torch.optim.lr_scheduler.ReduceLROnPlateau, which needs values of 0 or more. */
WEFT_API double weft_plateau_step(weft_plateau *p, double value);
/* State of early stopping, plain data that the program may save; 0 is valid for all fields. */
typedef struct {
    int64_t patience;                /* values in a row that may fail to improve; 0: none */
    double min_delta;                /* a better value improves on best by more than this */
    bool larger_is_better;           /* false: a smaller value is better */
    double best;                     /* the last value that was better */
    int64_t bad;                     /* values in a row that were not better */
    int64_t seen;                    /* values so far */
} weft_early_stopping;
/* Adds a value and returns true when more than `patience` values in a row were not better; false if
 * s is NULL. A value is better if it improves on s->best by more than min_delta. The first finite
 * value is better, NaN never is. Sets *is_best to whether this value is better and so the new
 * s->best; is_best may be NULL. Like EarlyStopping of Keras, whose patience n is n - 1 here. */
WEFT_API bool weft_early_stopping_step(weft_early_stopping *s, double value, bool *is_best);

#ifdef __cplusplus
}
#endif
#endif
