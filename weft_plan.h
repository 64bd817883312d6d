/* weft_plan.h - for programs that train by a plan, and for authors of packing planners.
 *
 * Contents: plans and planners, packing a stream, loaders by a planner, running a plan. */
#ifndef WEFT_PLAN_LEVEL_H
#define WEFT_PLAN_LEVEL_H
#include "weft.h"
#include "plan/api_plan.h"
#include "plan/api_packer.h"
#include "plan/run/api_plan_run.h"
#endif
