/* api_plan_loader.h - a batch loader that runs any planner, epoch after epoch.
 *
 * Contents: loaders by a planner. */
#ifndef WEFT_API_PLAN_LOADER_H
#define WEFT_API_PLAN_LOADER_H
#include "../plan/api_plan.h"
#include "api_io.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- loaders by a planner ---- */
/* Makes a loader as weft_loader_new does, with any planner, which must live as long; lists of opts
 * are copied. Each epoch is a plan of these lengths and options, drawn from the stream. It makes
 * the first plan at once; if the planner refuses it the context fails. Like
 * DataLoader(batch_sampler=..) of torch. */
WEFT_API weft_loader *weft_plan_loader_new(weft *w, const char *name, int64_t n, const int32_t *len,
                                           const weft_planner *planner,
                                           const weft_plan_opts *opts);
/* Returns the number of the next batch in *plan; -1 at the end of an epoch. The loader owns the
 * plan; it is valid until the next epoch. After an error: -1, and *plan is NULL. For planners that
 * cut sequences, for which weft_loader_next is an error. */
WEFT_API int64_t weft_loader_next_batch(weft_loader *l, const weft_plan **plan);

#ifdef __cplusplus
}
#endif
#endif
