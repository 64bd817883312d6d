/* labels.c - the cases of label sequences. crf: `forward` is the best path, `train` the loss and its
 * gradients. ctc: a label for every four steps; both passes are the loss. The emissions are a parameter.
 * Weights, emissions and labels come from a formula (formula.c). */
#include "weft_op.h"
#include "weft_sequence.h"
#include "bench.h"

enum { STEPS_A_LABEL = 4 };
typedef struct {
    weft *w;
    weft_module *all;
    weft_crf *layer;                             /* NULL: CTC */
    weft_lengths lengths, said;                  /* of emissions and labels */
    weft_tensor *emissions;                      /* [tokens, H], H tags or classes */
    int32_t *labels;
} field;

static weft_tensor *loss_of(void *user)
{
    const field *f = user;
    weft_tensor *labels = weft_ragged_ints(f->w, f->labels, &f->said),
                *x = weft_ragged_like(f->emissions, weft_ragged(f->w, NULL, 0, &f->lengths));
    if (!f->layer)
        return weft_ctc(x, labels, NULL).sum;
    return weft_is_grad_enabled(f->w) ? weft_crf_loss(f->layer, x, labels).sum : weft_crf_best(f->layer, x);
}

static bool run(row r, const settings *s)
{
    field f = { .w = weft_open(&s->open) };
    bool ctc = r.name[1] == 't';
    int32_t *said = keep(r.B, sizeof *said);
    f.all = weft_module_new(f.w, "bench");
    f.lengths.n = r.B;
    f.lengths.len = make_lengths(r.lengths, 1, r.B, (int32_t)r.T, &r.tokens);
    for (int64_t i = 0; i < r.B; i++)
        said[i] = ctc ? f.lengths.len[i] / STEPS_A_LABEL : f.lengths.len[i];
    f.said = (weft_lengths){ .n = r.B, .len = said };
    f.labels = keep(r.tokens, sizeof *f.labels);
    for (int64_t i = 0; i < r.tokens; i++)       /* class 0 is the blank of CTC */
        f.labels[i] = ctc + (int32_t)((formula("tags", i) + .5) * (double)(r.H - ctc));
    if (!ctc)
        f.layer = weft_crf_new(f.all, "crf", &(weft_crf_opts){ .tags = r.H });
    f.emissions = weft_parameter(f.all, "emissions", WEFT_SHAPE(r.tokens, r.H), (weft_init){ 0 });
    bool ok = set_weights(f.all, 2) &&
              measure_training(&(training){ f.w, f.all, loss_of, 1, NULL, &f, r }, s);
    weft_close(f.w);
    return ok;
}

static bool measure_labels(const char *name, int64_t classes, int64_t B, int64_t T, const settings *s)
{
    row r = { .name = name, .lengths = "uniform", .B = B, .T = T, .I = classes, .H = classes, .layers = 1 };
    return measure(run, r, "concat", s);
}

bool bench_crf(const settings *s)
{
    bool ok = measure_labels("crf", 9, 64, 128, s);
    return measure_labels("crf", 45, 64, 128, s) && ok;
}

bool bench_ctc(const settings *s)
{
    bool ok = measure_labels("ctc", 40, 64, 128, s);
    return measure_labels("ctc", 64, 16, 800, s) && ok;
}
