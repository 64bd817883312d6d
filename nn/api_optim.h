/* api_optim.h - what changes the parameters, and how fast.
 *
 * Contents: optimisers, clipping, averages of parameters, schedules, plateaus, early stopping. */
#ifndef WEFT_API_OPTIM_H
#define WEFT_API_OPTIM_H
#include "api_nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- optimisers; each rule and name as in torch.optim ---- *
 * 0 means torch's default: lr 1e-3 (RMSprop 1e-2), alpha .99, beta1 .9, beta2 .999, eps 1e-8; all
 * others are 0. Only AdamW's weight_decay differs: 0 here, .01 in torch. */
typedef struct weft_optim weft_optim;
typedef struct { double lr, momentum, dampening, weight_decay; bool nesterov; } weft_sgd_opts;
typedef struct { double lr, alpha, eps, weight_decay, momentum; bool centered; } weft_rmsprop_opts;
typedef struct { double lr, beta1, beta2, eps, weight_decay; } weft_adam_opts;
/* For the parameters below m, those that are made later, too: from the next step on. A parameter
 * has one optimiser; a second one is an error. opts NULL: all 0. Rates and decays are 0 or more,
 * eps is more than 0, betas below 1, RMSprop's alpha is 0 .. 1, and all are finite. Each parameter
 * counts its own steps: frozen, or where no loss has reached it, it has none. */
WEFT_API weft_optim *weft_sgd_new(weft_module *m, const weft_sgd_opts *opts);
WEFT_API weft_optim *weft_rmsprop_new(weft_module *m, const weft_rmsprop_opts *opts);
/* decay added to the gradient */
WEFT_API weft_optim *weft_adam_new(weft_module *m, const weft_adam_opts *opts);
/* decay apart, Loshchilov & Hutter 2019; without one it is Adam */
WEFT_API weft_optim *weft_adamw_new(weft_module *m, const weft_adam_opts *opts);
/* Ends an optimiser before its context ends: its parameters may have another one. NULL is
 * allowed. */
WEFT_API void weft_optim_free(weft_optim *o);
/* Of the parameters whose path below the optimiser's module fits a shell pattern, later ones
 * included, the rate is multiplied and the decay replaced: "encoder.*", "*.bias", "*" (* any
 * letters, dots too, ? one letter, [..] one of them). Of the rules that fit the one said last
 * counts. A pattern that fits nothing at the next step is an error of weft_optim_step. No decay of
 * biases and norms:
 *     weft_optim_set_group(o, "*bias*", 1, 0);
 *     weft_optim_set_group(o, "*norm*", 1, 0); */
WEFT_API void weft_optim_set_group(weft_optim *o, const char *pattern, double lr_scale,
                                   double weight_decay);
/* Changes the parameters and zeroes their gradients. A parameter that no weft_backward has reached
 * since the last step or weft_zero_grad stays as it is, without decay or momentum, as in PyTorch
 * where grad is None; a gradient of zeros is one (of an empty batch, say), and so is one that
 * weft_assign has written. A failed step changes nothing; a gradient that is not finite, or a value
 * that would not be after it, skips the step (counted, the first bad parameter named by
 * weft_optim_skipped); ten in a row are a sticky error, and weft_recover begins a new row. An
 * error: no parameter is below m. */
WEFT_API void weft_optim_step(weft_optim *o);
WEFT_API void weft_optim_set_lr(weft_optim *o, double lr);
WEFT_API double weft_optim_lr(const weft_optim *o);
/* How many steps were taken, skipped ones included. */
WEFT_API int64_t weft_optim_steps(const weft_optim *o);
/* How many were skipped; *bad_parameter, unless NULL, is the path below m of the parameter that was
 * the reason last, "" if none. Waits for the device. */
WEFT_API int64_t weft_optim_skipped(weft_optim *o, const char **bad_parameter);

/* ---- clipping ---- */
/* Scales the gradients below m so that their norm is at most max, which is more than 0 (INFINITY:
 * no limit); returns the norm before, a scalar: no wait unless it is read. power: 2 (or 0, the
 * default), 1 or INFINITY, torch's norm_type. */
WEFT_API weft_tensor *weft_clip_grad_norm(weft_module *m, double max, double power);

/* ---- averages of parameters ---- */
/* An exponential moving average of the parameters below m, Polyak & Juditsky 1992: average += (1 -
 * decay) (parameter - average), decay 0 .. 1 (of 1 the average follows the parameters for good); of
 * those that are there when it is made; if there are others later, update and swap are errors.
 * Saved with m as buffers "ema.<path>". update comes after update number `updates` of the
 * parameters (from 1): over the first 1 / (1 - decay) of them the average is the parameters
 * themselves, later it takes them in. swap exchanges both, for evaluation and back; until it is
 * back an update is an error, and what is saved has the averages for its parameters: for a model to
 * be used, say. Swap back before loading. */
typedef struct weft_ema weft_ema;
WEFT_API weft_ema *weft_ema_new(weft_module *m, double decay);
WEFT_API void weft_ema_update(weft_ema *a, int64_t updates);
WEFT_API void weft_ema_swap(weft_ema *a);

/* ---- schedules: pure functions of the step (counted from 0), giving a learning rate ---- *
 * Arguments are (step, total, lr, ..) everywhere. Invalid arguments give NaN, and weft_optim_set_lr
 * of NaN is an error of the context: a negative step, a total or `every` below 1, a warmup below 0
 * or above total, rates and factors that are negative or not finite, a result that overflows. */
/* Rises linearly from lr / warmup to lr over the first `warmup` steps, then falls by half a cosine
 * to `last` at step `total`, and stays there. Loshchilov & Hutter 2017. */
WEFT_API double weft_cosine_warmup(int64_t step, int64_t total, double lr, int64_t warmup,
                                   double last);
/* lr * factor^(step / every), the division rounded down; it has no end, and so no total. */
WEFT_API double weft_step_decay(int64_t step, int64_t every, double lr, double factor);
/* Rises from lr / start to lr over `rise` (0 .. 1) of the steps, then falls to lr / start / end at
 * step total - 1, by cosines, and stays there. With rise 1 step total - 1 still has lr. start and
 * end are above 0. Smith 2018; torch's OneCycleLR, with the defaults rise .3, start 25, end 1e4. */
WEFT_API double weft_one_cycle(int64_t step, int64_t total, double lr, double rise, double start,
                               double end);

/* ---- plateaus and early stopping ---- */
/* Multiplies lr by factor, but not below `least`, when more than `patience` values in a row were
 * not better than the best (patience 2: at the third; 0: at the first). Returns lr. A value is
 * better by more than 1e-4 of the size of the best, also where values are below 0; NaN is never
 * better. So it is torch's ReduceLROnPlateau, except that torch fails below 0. Plain data, to be
 * saved; best, bad and seen start as 0. lr has no default; factor 0 means .1.
 * Errors: NaN for NULL, a factor outside 0 .. 1 or of 1, a `least` below 0 or not finite. */
typedef struct {
    double lr, factor, least;
    int64_t patience;
    bool larger_is_better;
    double best;
    int64_t bad, seen;
} weft_plateau;
WEFT_API double weft_plateau_step(weft_plateau *p, double value);
/* Returns true when more than `patience` values in a row were not better than the best by more than
 * min_delta, an absolute difference; patience as in weft_plateau, so one less than Keras's.
 * NaN is never better. Plain data, to be saved; best, bad and seen start as 0. is_best may be
 * NULL. */
typedef struct {
    int64_t patience;
    double min_delta;
    bool larger_is_better;
    double best;
    int64_t bad, seen;
} weft_early_stopping;
WEFT_API bool weft_early_stopping_step(weft_early_stopping *s, double value, bool *is_best);

#ifdef __cplusplus
}
#endif
#endif
