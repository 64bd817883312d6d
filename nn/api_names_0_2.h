/* api_names_0_2.h - names of version 0.2 that have changed; weft.h includes them until version 0.4.
 *
 * Contents: operators, losses, schedules, files, layers, attention. The compiler does not warn;
 * each definition has the new name. */
#ifndef WEFT_API_OLD_NAMES_H
#define WEFT_API_OLD_NAMES_H
#include "api_layers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- operators, losses, schedules, files ---- */
#define weft_take_along weft_gather
#define weft_ce_opts weft_cross_entropy_opts
#define weft_mse weft_mse_loss
#define weft_mae weft_l1_loss
#define weft_huber weft_huber_loss
#define weft_gaussian_nll weft_gaussian_nll_loss
#define weft_cosine_warmup weft_cosine_schedule
#define weft_step_decay weft_step_schedule
#define weft_one_cycle weft_one_cycle_schedule
#define weft_load_state_dict(path, m, report) weft_load_weights(path, m, NULL, report)
#define weft_save_state_dict weft_save_weights

/* ---- layers ---- */
typedef weft_norm_layer weft_layer_norm_layer;
#define weft_layer_norm_layer_new weft_layer_norm_new
#define weft_layer_norm_layer_run weft_layer_norm_run
#define weft_dropout_layer_new weft_dropout_new
#define weft_dropout_layer_run weft_dropout_run

/* ---- attention: one layer with a kind ---- */
typedef weft_attention_layer weft_additive_attention;
typedef weft_attention_layer weft_general_attention;
typedef weft_attention_layer weft_multihead_attention;
typedef struct { int64_t dq, dm, width; } weft_additive_attention_opts; /* width: score units */
typedef struct { int64_t dq, dm; } weft_general_attention_opts;
typedef struct { int64_t width; int heads; } weft_multihead_attention_opts;
static inline weft_attention_layer *
weft_additive_attention_new(weft_module *m, const char *name,
                            const weft_additive_attention_opts *o)
{
    weft_attention_layer_opts opts = { WEFT_ADDITIVE, o ? o->dq : 0, o ? o->dm : 0,
                                       o ? o->width : 0, 0 };
    return weft_attention_new(m, name, &opts);
}
static inline weft_attention_layer *weft_general_attention_new(weft_module *m, const char *name,
                                                               const weft_general_attention_opts *o)
{
    weft_attention_layer_opts opts = { WEFT_GENERAL, o ? o->dq : 0, o ? o->dm : 0, 0, 0 };
    return weft_attention_new(m, name, &opts);
}
static inline weft_attention_layer *
weft_multihead_attention_new(weft_module *m, const char *name,
                             const weft_multihead_attention_opts *o)
{
    weft_attention_layer_opts opts = { WEFT_MULTIHEAD, 0, 0, o ? o->width : 0, o ? o->heads : 0 };
    return weft_attention_new(m, name, &opts);
}
#define weft_multihead_attention_run weft_attention_run
#define weft_multihead_attention_query weft_attention_query
#define weft_multihead_attention_project weft_attention_project
#define weft_additive_attention_project weft_attention_project
#define weft_general_attention_project weft_attention_project
#define weft_additive_attention_run(a, q, memory, map) \
    weft_attention_run(a, q, memory, WEFT_ALL_KEYS, map)
#define weft_general_attention_run(a, q, memory, map) \
    weft_attention_run(a, q, memory, WEFT_ALL_KEYS, map)
#define weft_additive_attention_query(a, q, memory, map) \
    weft_attention_query(a, q, memory, WEFT_ALL_KEYS, map)
#define weft_general_attention_query(a, q, memory, map) \
    weft_attention_query(a, q, memory, WEFT_ALL_KEYS, map)

#ifdef __cplusplus
}
#endif
#endif
