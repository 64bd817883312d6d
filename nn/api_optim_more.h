/* api_optim_more.h - more optimisers and schedules: RAdam, Lion, Muon.
 *
 * Contents: optimisers, schedules. All functions of api_optim.h take these optimisers: groups,
 * rates, skipped steps and checkpoints are the same. */
#ifndef WEFT_API_OPTIM_MORE_H
#define WEFT_API_OPTIM_MORE_H
#include "api_optim.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- optimisers ---- *
 * 0 means torch's default: lr 1e-3, beta1 .9, beta2 .999, eps 1e-8, all others 0; for Lion lr 1e-4,
 * beta2 .99; for Muon momentum .95, eps 1e-7, ns_steps 5. WEFT_ZERO is 0. One default differs:
 * Muon's weight_decay is 0 here, .1 in torch. */
typedef struct {
    double lr, beta1, beta2, eps, weight_decay;
    bool decoupled_weight_decay;     /* as in AdamW; false: as in Adam */
} weft_radam_opts;
typedef struct { double lr, beta1, beta2, weight_decay; } weft_lion_opts;
typedef struct {
    double lr, momentum, eps, weight_decay;
    int ns_steps;                    /* Newton-Schulz steps, 1 .. 99 */
    bool no_nesterov;                /* true: the direction comes from the momentum alone */
    bool match_rms_adamw;            /* true: step sizes of AdamW; false: torch's "original" */
    weft_adam_opts adamw;            /* for all other parameters, with a rate of its own */
} weft_muon_opts;
/* Makes an optimiser by Adam with smaller first steps, so that it needs no warm-up, Liu et al.
 * 2020. The first few steps are momentum alone. All else is as for weft_adam_new. Like
 * torch.optim.RAdam. */
WEFT_API weft_optim *weft_radam_new(weft_module *m, const weft_radam_opts *opts);
/* Makes an optimiser by the sign of the momentum, Chen et al. 2023: each number moves by lr. It
 * needs half the memory of Adam, and a rate 3 to 10 times smaller. With beta1 of the momentum goes
 * into the sign; beta2 updates the momentum. All else is as for weft_adamw_new. */
WEFT_API weft_optim *weft_lion_new(weft_module *m, const weft_lion_opts *opts);
/* Makes an optimiser that moves each matrix (rank 2) by its momentum, made nearly orthogonal,
 * Jordan et al. 2024. AdamW updates all other parameters, and those given to weft_muon_exclude:
 * exclude embeddings and the last layer. W_ih and W_hh of a recurrent layer are one matrix each,
 * all gates together, as in torch. weft_optim_set_lr changes the rate of AdamW by the same factor.
 * The products have the context's precision. Errors: as for weft_adamw_new; lr not above 0;
 * ns_steps outside 1 .. 99. Like torch.optim.Muon, which refuses other parameters. */
WEFT_API weft_optim *weft_muon_new(weft_module *m, const weft_muon_opts *opts);
/* Moves the matrices whose path matches, such as "embed.*", from Muon to AdamW; patterns are those
 * of weft_optim_set_group. Errors: NULL or ""; an optimiser that is not Muon or has made a step. A
 * pattern that matches no parameter is an error of the next weft_optim_step. */
WEFT_API void weft_muon_exclude(weft_optim *o, const char *pattern);

/* ---- schedules; the rules of those in api_optim.h hold ---- */
/* Returns the rate of a linear schedule at `step`: as weft_cosine_schedule, with a linear fall.
 * Like torch.optim.lr_scheduler.LinearLR after a warm-up. */
WEFT_API double weft_linear_schedule(int64_t step, int64_t total, double lr, int64_t warmup,
                                     double last);
/* Returns the rate of a schedule that rises, stays and falls. It rises as weft_cosine_schedule, is
 * lr until step total - decay, falls linearly to `last` at step `total`, and stays there. Also
 * returns NaN for a decay below 0 or above total - warmup. Hu et al. 2024 (MiniCPM). */
WEFT_API double weft_warmup_stable_decay_schedule(int64_t step, int64_t total, double lr,
                                                  int64_t warmup, int64_t decay, double last);
/* Returns the rate of an inverse square root schedule at `step`. It rises linearly from lr / warmup
 * at step 0 to lr at step warmup - 1, then is lr * sqrt(warmup / (step + 1)). Also returns NaN for
 * a warmup of 0. Vaswani et al. 2017, whose rate has lr = 1 / sqrt(width * warmup). */
WEFT_API double weft_inverse_sqrt_schedule(int64_t step, double lr, int64_t warmup);

#ifdef __cplusplus
}
#endif
#endif
