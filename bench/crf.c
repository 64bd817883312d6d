/* crf.c - the case of a conditional random field. `forward` is the best path, `train` the loss and its
 * gradients. The emissions are a parameter. Weights and emissions come from a formula (formula.c). */
#include "weft_op.h"
#include "weft_sequence.h"
#include "bench.h"

typedef struct {
    weft *w;
    weft_module *all;
    weft_crf *layer;
    weft_lengths lengths;
    weft_tensor *emissions;                      /* [tokens, H], H tags */
    int32_t *tags;
} field;

static weft_tensor *loss_of(void *user)
{
    const field *f = user;
    weft_tensor *tags = weft_ragged_ints(f->w, f->tags, &f->lengths),
                *x = weft_ragged_like(f->emissions, tags);
    return weft_is_grad_enabled(f->w) ? weft_crf_loss(f->layer, x, tags).sum : weft_crf_best(f->layer, x);
}

static bool run(row r, const settings *s)
{
    field f = { .w = weft_open(&s->open) };
    int32_t *len = keep(r.B, sizeof *len);
    f.all = weft_module_new(f.w, "bench");
    r.tokens = make_lengths(r.lengths, 1, len, r.B, (int32_t)r.T);
    f.lengths = (weft_lengths){ .n = r.B, .len = len };
    f.tags = keep(r.tokens, sizeof *f.tags);
    for (int64_t i = 0; i < r.tokens; i++)
        f.tags[i] = (int32_t)((formula("tags", i) + .5) * (double)r.H);
    f.layer = weft_crf_new(f.all, "crf", &(weft_crf_opts){ .tags = r.H });
    f.emissions = weft_parameter(f.all, "emissions", WEFT_SHAPE(r.tokens, r.H), (weft_init){ 0 });
    bool ok = set_weights(f.all, 2) &&
              measure_training(&(training){ f.w, f.all, loss_of, 1, NULL, &f, r }, s);
    weft_close(f.w);
    return ok;
}

bool bench_crf(const settings *s)
{
    row r = { .name = "crf", .lengths = "uniform", .B = 64, .T = 128, .layers = 1 };
    bool ok = true;
    for (int i = 0; i < 2; i++) {
        r.I = r.H = i ? 45 : 9;
        ok &= measure(run, r, "concat", s);
    }
    return ok;
}
