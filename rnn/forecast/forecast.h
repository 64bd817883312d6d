/* forecast.h - the inputs of a forecasting model, and the functions that differ between ragged and padded
 * computation. The models themselves are the same for both. */
#ifndef WEFT_FORECAST_H
#define WEFT_FORECAST_H
#include "rnn/api_cell.h"
#include "rnn/forecast/api_forecast.h"
#include "rnn/forecast/blocks/blocks.h"

/* One side of a series. Ragged (EXACT): x is ragged and everything is data. Padded: x is plain [n, T, F];
 * data holds the lengths, and align the position of the data. */
typedef struct weft__side {
    weft_tensor *x;
    weft_lengths data;
    weft_align align;
    bool known;                                  /* lengths were given */
} weft__side;
typedef struct weft__input {
    const struct weft__model *model;
    weft__side past, future;
    weft_tensor *fixed;                          /* [n, static features] or NULL */
    weft_forecast_maps *maps;                    /* NULL: not requested */
} weft__input;

typedef weft_forecast weft__model_run(void *model, const weft__input *);
typedef struct weft__model {                     /* first member of every model */
    weft_module *m;                              /* NULL: a model that could not be made */
    weft__model_run *run;
    const char *name;
    int64_t past, future, fixed;                 /* features */
    double dropout;
    weft_compat compat;
    bool causal;
    bool right_aligned;          /* the TFT family: the past is padded before its data, and never packed */
} weft__model;
struct weft_forecaster { weft__model base; };

/* Lengths of a plain x [n, T, ..]: T each. */
weft_lengths weft__all_steps(const weft_tensor *x);
/* Fails the context with the message unless `holds` is true. Returns whether the context has not failed. */
bool weft__model_needs(weft_module *parent, const char *function, bool holds, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Checks features, dropout and compat, and allocates a model of `bytes` that begins with *base. Returns NULL
 * on failure; then the context has failed. */
void *weft__model_new(weft_module *parent, const char *name, size_t bytes, const weft__model *base);
/* Returns the model, or an empty one if anything failed. */
weft_forecaster *weft__model_finish(void *model);
weft_linear *weft__model_linear(const weft__model *, const char *name, int64_t in, int64_t out);
/* An LSTM with the model's dropout between its layers. */
weft_rnn *weft__model_lstm(const weft__model *, const char *name, int64_t input, int64_t hidden, int layers);
/* Runs an LSTM over the data of one side, with zeros in its pads, unless AS_CODED requires otherwise. */
weft_rnn_out weft__run_lstm(const weft__input *, const weft__side *, weft_rnn *, weft_tensor *x,
                            weft_state first);
/* Run attention: every row of the future attends to [past; future], or every row of the past to the past. */
weft_tensor *weft__attend_to_both(const weft__input *, weft__interpretable *, weft_tensor *past,
                                  weft_tensor *future);
weft_tensor *weft__attend_to_past(const weft__input *, weft__interpretable *, weft_tensor *past);
/* Appends the static covariates to the features of every step. */
weft_tensor *weft__add_fixed(const weft__input *, weft_tensor *x);

/* Linear layers "state_projection.h_proj" and ".c_proj", from an encoder's state to a decoder's; NULL if the
 * widths are equal. */
typedef struct weft__projection { weft_linear *h, *c; } weft__projection;
weft__projection weft__projection_new(weft_module *m, int64_t from, int64_t to);
weft_state weft__project_state(const weft__projection *, weft_state);
#endif
