/* hunt_operators.c - defines the table of operators. Each maps ragged [tokens, width] to ragged [tokens, any
 * width] of the same batch. */
#include "weft_forecast.h"
#include "weft_op.h"
#include "weft_sequence.h"
#include "hunt.h"

static weft_tensor *function(hunt_scene *s)
{
    static weft_tensor *(*const of[])(weft_tensor *) = { weft_neg,     weft_sin,  weft_cos,   weft_tanh,
                                                         weft_sigmoid, weft_relu, weft_silu,  weft_softplus,
                                                         weft_gelu,    weft_abs,  weft_square };
    int64_t k = hunt_below(s, 15);
    hunt_note(s, "(%d)", (int)k);
    switch (k) {
    case 11: return weft_leaky_relu(s->x, (weft_real).1);
    case 12: return weft_elu(s->x, 1);
    case 13: return weft_clamp(s->x, -1, (weft_real).5);
    case 14: return weft_scale(s->x, (weft_real).7);
    default: return of[k](s->x);
    }
}

static weft_tensor *positive(hunt_scene *s)      /* all values are >= 1 */
{
    weft_tensor *x = weft_add(weft_square(s->x), weft_scalar(s->w, 1));
    switch (hunt_below(s, 6)) {
    case 0:  return weft_log(x);
    case 1:  return weft_sqrt(x);
    case 2:  return weft_rsqrt(x);
    case 3:  return weft_reciprocal(x);
    case 4:  return weft_pow(x, (weft_real)-.75);
    default: return weft_exp(weft_tanh(x));
    }
}

static weft_tensor *two(hunt_scene *s)
{
    weft_tensor *b = hunt_as_wide(s, s->other, hunt_width(s->x), "b");
    int64_t k = hunt_below(s, 6);
    hunt_note(s, "(%d)", (int)k);
    switch (k) {
    case 0:  return weft_add(s->x, b);
    case 1:  return weft_sub(s->x, b);
    case 2:  return weft_mul(s->x, b);
    case 3:  return weft_div(s->x, weft_add(weft_square(b), weft_scalar(s->w, 1)));
    case 4:  return weft_minimum(s->x, b);
    default: return weft_maximum(s->x, b);
    }
}

static weft_tensor *itself(hunt_scene *s)
{
    return hunt_one_in(s, 2) ? weft_mul(s->x, s->x) : weft_add(weft_mul(s->x, weft_sigmoid(s->x)), s->x);
}

static weft_tensor *chosen(hunt_scene *s)
{
    weft_tensor *b = hunt_as_wide(s, s->other, hunt_width(s->x), "b");
    weft_tensor *(*const compare[])(weft_tensor *, weft_tensor *) = { weft_less,    weft_less_equal,
                                                                      weft_greater, weft_greater_equal,
                                                                      weft_equal,   weft_not_equal };
    return weft_where(compare[hunt_below(s, 6)](s->x, b), weft_tanh(s->x), b);
}

/* [tokens, 1] broadcasts */
static weft_tensor *column(hunt_scene *s) { return weft_mul(s->x, weft_slice(s->other, 1, 0, 1)); }

static weft_tensor *product(hunt_scene *s)
{
    int64_t in = hunt_width(s->x), out = 1 + hunt_below(s, s->p->large ? 70 : 8);
    bool turned = hunt_one_in(s, 2);
    weft_tensor *b =
        weft_parameter(s->m, hunt_name(s, ""), 2, turned ? (int64_t[]){ out, in } : (int64_t[]){ in, out },
                       (weft_init){ WEFT_INIT_NORMAL, 0, (weft_real).4 });
    hunt_note(s, "(%d)", (int)out);
    return turned ? weft_matmul_with(s->x, false, b, true) : weft_matmul(s->x, b);
}

/* a token's outer product with itself, by a batch of products */
static weft_tensor *pairs_of_rows(hunt_scene *s)
{
    int64_t f = hunt_width(s->x);
    if (f > 6)
        return weft_tanh(s->x);
    weft_tensor *a = weft_reshape(s->x, 3, (int64_t[]){ -1, f, 1 }),
                *b = weft_reshape(s->other, 3, (int64_t[]){ -1, 1, hunt_width(s->other) });
    return weft_sum(weft_matmul(a, b), 2);
}

static weft_tensor *sums(hunt_scene *s)
{
    weft_tensor *x = s->x;
    int64_t f = hunt_width(x);
    weft_tensor *one = hunt_one_in(s, 3) ? weft_sum(x, -1) :
                       hunt_one_in(s, 2) ? weft_mean(x, -1) :
                       hunt_one_in(s, 2) ? weft_max(x, -1) :
                                           weft_logsumexp(x, -1, NULL);
    return weft_sub(x, weft_scale(weft_reshape(one, 2, (int64_t[]){ -1, 1 }), 1 / (weft_real)f));
}

static weft_tensor *sum_so_far(hunt_scene *s) { return weft_cumsum(s->x, (int)hunt_below(s, 2)); }

/* a for each element, token or column, or one for all; first from the program */
static weft_tensor *scanned(hunt_scene *s)
{
    int64_t f = hunt_width(s->x), k = hunt_below(s, 4);
    weft_tensor *wide = weft_tanh(hunt_as_wide(s, s->other, f, "a")), *first = NULL;
    const weft_init values = { WEFT_INIT_UNIFORM, -.9, .9 };
    weft_tensor *a = k == 0 ? wide :
                     k == 1 ? weft_slice(wide, 1, 0, 1) :
                     k == 2 ? weft_parameter(s->m, hunt_name(s, ""), 1, &f, values) :
                              weft_scalar(s->w, (weft_real).7);
    bool reverse = hunt_one_in(s, 2);
    int axis = k == 0 && hunt_one_in(s, 4);
    if (!axis && hunt_one_in(s, 2))
        first = weft_pool(s->x, hunt_one_in(s, 2) ? WEFT_POOL_MEAN : WEFT_POOL_LAST);
    hunt_note(s, "(%d%s%s%s)", (int)k, axis ? ", columns" : "", first ? ", first" : "",
              reverse ? ", reverse" : "");
    return weft_scan(a, s->x, axis, first, reverse);
}

static weft_tensor *shifted(hunt_scene *s)
{
    int64_t by = hunt_below(s, 5) - 2;
    weft_tensor *fill = hunt_one_in(s, 2) ? weft_pool(s->x, WEFT_POOL_MAX) : NULL;
    hunt_note(s, "(%d%s)", (int)by, fill ? ", fill" : "");
    return weft_shift(s->x, by, fill);
}

static weft_tensor *softmaxes(hunt_scene *s)
{
    int axis = (int)hunt_below(s, 2);
    weft_tensor *mask = hunt_one_in(s, 3) ? weft_greater(s->x, weft_scalar(s->w, (weft_real)-1.5)) : NULL;
    bool logs = hunt_one_in(s, 2);
    hunt_note(s, "(%d%s%s)", axis, mask ? ", masked" : "", logs ? ", log" : "");
    return logs ? weft_log_softmax(s->x, axis, mask) : weft_softmax(s->x, axis, mask);
}

/* nothing reads the -inf of an empty sequence */
static weft_tensor *logsumexp_of_tokens(hunt_scene *s)
{
    return weft_sub(s->x, weft_broadcast_to_tokens(weft_logsumexp(s->x, 0, NULL), s->x));
}

static weft_tensor *turned(hunt_scene *s)
{
    int64_t f = hunt_width(s->x);
    int64_t times = 1 + hunt_below(s, f < 30 ? 3 : 1);
    weft_tensor *x = weft_reshape(s->x, 3, (int64_t[]){ -1, 1, f });
    return weft_reshape(weft_tile(weft_transpose(x, 1, 2), 2, times), 2, (int64_t[]){ -1, f * times });
}

static weft_tensor *beside(hunt_scene *s)
{
    weft_tensor *y = weft_concat((weft_tensor *[]){ s->x, s->other, s->x }, hunt_one_in(s, 2) ? 3 : 2, 1);
    return hunt_width(y) > 90 ? weft_slice(y, 1, 0, 90) : y;
}

static weft_tensor *some_columns(hunt_scene *s)
{
    int64_t f = hunt_width(s->x), from = hunt_below(s, f), to = from + 1 + hunt_below(s, f - from);
    return weft_slice(s->x, 1, from, to);
}

static weft_tensor *reversed(hunt_scene *s) { return weft_flip(s->x, (int)hunt_below(s, 2)); }

static weft_tensor *picked(hunt_scene *s)
{
    weft_tensor *best = weft_argmax(s->x, -1),
                *one = weft_reshape(weft_gather(s->x, best), 2, (int64_t[]){ -1, 1 });
    return weft_mul(weft_add(s->x, weft_one_hot(best, hunt_width(s->x))), one);
}

static weft_tensor *dropped(hunt_scene *s)
{
    return weft_dropout(s->x, (weft_real).4, s->name, hunt_one_in(s, 2));
}

static weft_tensor *arranged(hunt_scene *s)      /* used twice, and x once */
{
    weft_tensor *y = weft_to_layout(s->x, hunt_one_in(s, 2) ? WEFT_PACKED : WEFT_CONCAT);
    return weft_add(weft_mul(y, weft_tanh(y)), s->x);
}

static weft_tensor *there_and_back(hunt_scene *s)
{
    weft_lengths l = weft_lengths_of(s->x);
    weft_align align = hunt_one_in(s, 2) ? WEFT_ALIGN_LEFT : WEFT_ALIGN_RIGHT;
    weft_tensor *pads = weft_pad_packed_sequence(s->x, 0, 0, align);
    if (hunt_one_in(s, 2))
        pads = weft_move_pads(pads, &l, align, WEFT_ALIGN_LEFT), align = WEFT_ALIGN_LEFT;
    return weft_add(weft_pack_padded_sequence(weft_scale(pads, (weft_real)1.5), &l, align),
                    s->other == s->x ? weft_scalar(s->w, 1) :
                                       hunt_as_wide(s, s->other, hunt_width(s->x), "b"));
}

static weft_tensor *as_plain(hunt_scene *s)
{
    weft_tensor *p = weft_plain(s->x);
    return weft_ragged_like(weft_add(weft_mul(p, weft_sigmoid(p)), p), s->x);
}

static weft_tensor *constant(hunt_scene *s)
{
    return weft_mul(s->x, weft_detach(hunt_as_wide(s, s->other, hunt_width(s->x), "b")));
}

static weft_tensor *joined(hunt_scene *s)
{
    weft_tensor *a, *b, *other = hunt_as_wide(s, s->other, hunt_width(s->x), "b");
    weft_lengths l = weft_lengths_of(s->x);
    weft_split_sequences(weft_cumsum(weft_concat_sequences(s->x, other), 0), &l, &a, &b);
    return hunt_one_in(s, 3) ? weft_add(a, b) : hunt_one_in(s, 2) ? a : b;
}

static weft_tensor *pooled(hunt_scene *s)
{
    weft_tensor *one = weft_pool(s->x, (weft_pooling)hunt_below(s, 5));
    return hunt_one_in(s, 2) ? weft_broadcast_to_tokens(one, s->x) :
                               weft_mul(s->x, weft_sub(s->x, weft_broadcast_to_tokens(one, s->x)));
}

static weft_tensor *with_state(hunt_scene *s)
{
    return weft_add(s->x, weft_broadcast_to_tokens(hunt_as_wide(s, s->state, hunt_width(s->x), "s"), s->x));
}

static weft_tensor *losses(hunt_scene *s)        /* of the tokens, into the loss */
{
    weft_tensor *target = weft_detach(weft_tanh(hunt_as_wide(s, s->other, hunt_width(s->x), "b"))), *x = s->x;
    weft_loss l;
    switch (hunt_below(s, 5)) {
    case 0:
        l = weft_mse_loss(x, target, NULL);
        break;
    case 1:
        l = weft_huber_loss(x, target, 1, NULL);
        break;
    case 2:  l = weft_bce_with_logits(x, weft_sigmoid(target), NULL); break;
    case 3:
        l = weft_gaussian_nll_loss(x, target, weft_add(weft_square(x), weft_scalar(s->w, 1)), 0, NULL);
        break;
    default:
        l = weft_cross_entropy(x, weft_argmax(target, -1),
                               &(weft_cross_entropy_opts){ .label_smoothing = (weft_real).1 });
    }
    s->extra = s->extra ? weft_add(s->extra, l.sum) : l.sum;
    return weft_scale(x, (weft_real).5);
}

/* CTC with the classes of other tokens as labels; sequences whose labels do not fit are skipped. */
static weft_tensor *ctc_loss(hunt_scene *s)
{
    weft_tensor *labels = weft_argmax(weft_tanh(hunt_as_wide(s, s->other, 3, "b")), -1);
    weft_loss l = weft_ctc(hunt_as_wide(s, s->x, 4, "c"), labels,
                           &(weft_ctc_opts){ .blank = 3, .skip_infeasible = true });
    s->extra = s->extra ? weft_add(s->extra, l.sum) : l.sum;
    return s->x;
}

static weft_tensor *random_field(hunt_scene *s)  /* with the classes of other tokens as tags */
{
    const int64_t tags = 1 + hunt_below(s, 4);
    weft_crf *c = weft_crf_new(s->m, s->name, &(weft_crf_opts){ .tags = tags });
    weft_tensor *x = hunt_as_wide(s, s->x, tags, "c"), *other = hunt_as_wide(s, s->other, tags, "b");
    weft_loss l = weft_crf_loss(c, x, weft_argmax(weft_tanh(other), -1));
    s->extra = s->extra ? weft_add(s->extra, l.sum) : l.sum;
    if (hunt_one_in(s, 2))
        return weft_crf_marginals(c, x);
    return weft_mul(x, weft_reshape(weft_gather(x, weft_crf_best(c, x)), 2, (int64_t[]){ -1, 1 }));
}

static weft_tensor *attended(hunt_scene *s)
{
    int heads = 1 + (int)hunt_below(s, 3);
    int64_t dk = 1 + hunt_below(s, s->p->large ? 20 : 4), dv = hunt_one_in(s, 2) ? dk : 1 + hunt_below(s, 5);
    bool shared = hunt_one_in(s, 4), same = dv == dk && !shared && hunt_one_in(s, 2);
    weft_tensor *q = hunt_as_wide(s, s->x, heads * dk, "q"),
                *k = same ? q : hunt_as_wide(s, s->other, heads * dk, "k"), *map = NULL;
    weft_tensor *v = same ? q : hunt_as_wide(s, s->other, shared ? dv : heads * dv, "v");
    weft_attention_opts o = { .heads = heads,
                              .causal = (weft_causal)hunt_below(s, 4),
                              .shared_values = shared,
                              .mean_heads = shared && hunt_one_in(s, 2),
                              .dropout = hunt_one_in(s, 3) ? (weft_real).2 : 0,
                              .name = s->name };
    bool counts = hunt_one_in(s, 3);
    hunt_note(s, "(%d x %d, %d%s%s%s)", heads, (int)dk, (int)o.causal, same ? ", of itself" : "",
              shared ? ", shared" : "", counts ? ", map" : "");
    weft_tensor *y = weft_attention(q, k, v, &o, counts ? &map : NULL);
    if (counts)
        hunt_count(s, map);
    return y;
}

static weft_tensor *all_pairs(hunt_scene *s)
{
    weft_tensor *q, *k;
    if (s->p->large)
        return weft_tanh(s->x);
    weft_pairs(s->x, s->other, &q, &k);
    hunt_count(s, weft_mul(weft_sum(q, 1), weft_sum(k, 1)));
    return weft_neg(s->x);
}

/* windows of tokens, flattened to columns */
static weft_tensor *windows(hunt_scene *s)
{
    const int64_t f = hunt_width(s->x), width = 1 + hunt_below(s, f < 30 ? 3 : 1),
                  dilation = 1 + hunt_below(s, 3);
    weft_tensor *y = weft_tokens_window(s->x, width, dilation, hunt_below(s, 4) - 2);
    return weft_reshape(y, 2, (int64_t[]){ -1, f * width });
}

/* Other lengths, and back to those of x. */
static weft_tensor *resampled(hunt_scene *s)
{
    const int64_t n = 1 + hunt_below(s, 3);
    weft_tensor *more = weft_cumsum(weft_tokens_repeat(s->x, n), 0);
    hunt_count(s, weft_tokens_pool(s->x, 1 + hunt_below(s, 3), n, (weft_pooling)hunt_below(s, 3)));
    return weft_tokens_every(weft_tanh(more), n);
}

static weft_tensor *convolved(hunt_scene *s)
{
    const weft_conv_opts o = { .in = hunt_width(s->x),
                               .out = 1 + hunt_below(s, 6),
                               .width = 1 + hunt_below(s, 4),
                               .dilation = 1 + hunt_below(s, 2),
                               .causal = hunt_one_in(s, 2) };
    return weft_conv_run(weft_conv_new(s->m, hunt_name(s, ""), &o), s->x);
}

const hunt_operator hunt_operators[] = { { "function", function },
                                         { "positive", positive },
                                         { "two", two },
                                         { "itself", itself },
                                         { "where", chosen },
                                         { "column", column },
                                         { "matmul", product },
                                         { "outer", pairs_of_rows },
                                         { "sum", sums },
                                         { "cumsum", sum_so_far },
                                         { "scan", scanned },
                                         { "shift", shifted },
                                         { "softmax", softmaxes },
                                         { "logsumexp", logsumexp_of_tokens },
                                         { "transpose", turned },
                                         { "concat", beside },
                                         { "slice", some_columns },
                                         { "flip", reversed },
                                         { "pick", picked },
                                         { "dropout", dropped },
                                         { "arrange", arranged },
                                         { "pad", there_and_back },
                                         { "plain", as_plain },
                                         { "detach", constant },
                                         { "join", joined },
                                         { "pool", pooled },
                                         { "state", with_state },
                                         { "loss", losses },
                                         { "ctc", ctc_loss },
                                         { "crf", random_field },
                                         { "attention", attended },
                                         { "pairs", all_pairs },
                                         { "window", windows },
                                         { "resample", resampled },
                                         { "conv", convolved },
                                         { 0 } };

/* ---- planted: each row reads the row above it in memory, also of another sequence ---- */
static bool shape(weft_call *c) { return weft_op_like(c->y[0], c->x[0]), true; }
static void forward(weft_call *c)
{
    const weft_real *x = weft_op_data(c->x[0]);
    weft_real *y = weft_op_data(c->y[0]);
    int64_t wide = weft_size(c->x[0], -1);
    for (int64_t i = 0; i < weft_numel(c->x[0]); i++)
        y[i] = x[i] + (i < wide ? 0 : x[i - wide] * (weft_real)1e-6);
}
static weft_tensor *back(const weft_call *c, weft_tensor *dy, int i) { return (void)c, (void)i, dy; }
static const weft_op neighbour = {
    .name = "neighbour", .shape = shape, .forward = forward, .backward = back
};
static weft_tensor *neighbourly(hunt_scene *s) { return weft_op_apply(&neighbour, &s->x, 1, NULL, 0); }
const hunt_operator hunt_planted[] = { { "neighbour", neighbourly }, { 0 } };
