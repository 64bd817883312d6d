/* forecast.h - what the six forecasting models share: the series as a model reads them, and the few steps in
 * which ragged and padded computation differ. A model itself does not know which of both it is in. */
#ifndef WEFT_FORECAST_H
#define WEFT_FORECAST_H
#include "nn/nn.h"
#include "rnn/forecast/api_forecast.h"

/* One side of a model. Ragged (EXACT): x is, and everything is data. Padded: x is plain [n, T, F]; len are
 * its data, which are first or last. */
/* known: lengths were given */
typedef struct weft__side { weft_tensor *x; weft_lengths data; weft_align align; bool known; } weft__side;
typedef struct weft__reading {
    const struct weft__model *model;
    weft__side past, future;
    weft_tensor *fixed;                          /* [n, static features] or NULL */
    weft_forecast_maps *maps;                    /* NULL: no one wants them */
} weft__reading;

typedef weft_forecast weft__model_run(void *model, const weft__reading *);
typedef struct weft__model {                     /* first in every model */
    weft_module *m;                              /* NULL: a model that could not be made */
    weft__model_run *run; const char *name;
    int64_t past, future, fixed;                 /* features */
    weft_compat compat;
    /* right_aligned: of the TFT family, which reads the past padded, its data last, and never packs */
    bool causal, right_aligned;
} weft__model;
struct weft_forecaster { weft__model is; };

/* A model's object of `bytes`, whose first part is a weft__model; NULL if that cannot be (then the context
 * has failed). */
void *weft__model_new(weft_module *parent, const char *name, size_t bytes, const weft__model *is);
/* the model, or an empty one if anything has failed */
weft_forecaster *weft__model_finished(void *model);
/* For constructors: fails with `why` unless it holds. */
bool weft__model_wants(weft_module *parent, const char *function, bool holds, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* An LSTM over one side: over its data only, with zeros in its pads, unless AS_CODED says otherwise. */
weft_rnn_out weft__recur(const weft__reading *, const weft__side *, weft_rnn *, weft_tensor *x,
                         weft_state first);
/* gate.c: what a GLU gates with, [.., 2 out]; the norm of a GLU of x and a skip. Layers that were made. */
weft_tensor *weft__glu_gate(weft_glu *, weft_tensor *x);
weft_tensor *weft__gate_and_norm(weft_glu *, weft_add_norm *, weft_tensor *x, weft_tensor *skip);
/* gate.c: [.., F] -> [.., out] by linear interpolation between features, the first and the last one staying,
 * times 2 sigmoid(mask) of [out], or of [groups, out] where x is [.., groups, F]; NULL: as it is */
weft_tensor *weft__resampled(weft_tensor *x, int64_t out, weft_tensor *mask);
/* grouped_grn.c: room for networks "0", "1", .. of a module, each from in to out for its own group, with a
 * hidden layer of the smaller width; NULL if that cannot be (then the context has failed). All must
 * be added before they run: [.., groups, in] -> [.., groups, out]. One may run by itself, too. */
typedef struct weft__grouped_grn weft__grouped_grn;
weft__grouped_grn *weft__grouped_grn_new(weft_module *parent, const char *name, int64_t groups, int64_t in,
                                         int64_t out, double dropout);
weft_grn    *weft__grouped_grn_add(weft__grouped_grn *, int64_t i);
weft_tensor *weft__grouped_grn_run(const weft__grouped_grn *, weft_tensor *x);
/* interpretable.c: weft_interpretable_attention_run by a mask of TransformerTF's polarity, which is not 0
 * where a key is forbidden; NULL: nowhere, but with all scores in memory all the same */
weft_tensor *weft__interpretable_forbidden(weft_interpretable_attention *, weft_tensor *q,
                                           weft_tensor *memory, weft_tensor *forbidden, weft_tensor **map);
/* Of every query row of the future: what it sees of [past; future]. */
weft_tensor *weft__attend_to_both(const weft__reading *, weft_interpretable_attention *, weft_tensor *past,
                                  weft_tensor *future);
/* Of every row of the past: what it sees of the past. */
weft_tensor *weft__attend_to_past(const weft__reading *, weft_interpretable_attention *, weft_tensor *past);
/* The static covariates beside the features of every step. */
weft_tensor *weft__with_fixed(const weft__reading *, weft_tensor *x);

/* Linear layers "state_projection.h_proj", ".c_proj", from an encoder's state to a decoder's; both NULL
 * where none are needed. */
typedef struct weft__projection { weft_linear *h, *c; } weft__projection;
weft__projection weft__projection_new(weft_module *m, int64_t from, int64_t to);
weft_state weft__projected(const weft__projection *, weft_state);
#endif
