/* weft_lab.h - for experiments: what to measure, and how to record it.
 *
 * Contents: the device, profiles and layouts, metrics and meters, journals and parts of HDF5 files,
 * traces of recurrent layers, measures of plans, more optimisers and schedules. */
#ifndef WEFT_LAB_LEVEL_H
#define WEFT_LAB_LEVEL_H
#include "weft.h"
#include "core/report/api_report.h"
#include "nn/api_metrics.h"
#include "nn/api_optim_more.h"
#include "io/api_records.h"
#include "rnn/api_trace.h"
#include "plan/api_measures.h"
#endif
