/* attention.c - the case attention: multi-head attention of sequences to themselves, its four linear layers
 * included.
 *
 * concat: tokens end to end, as attention wants them. padded: they come as [B, T, ..], are packed for it and
 * padded again behind it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "bench.h"

typedef struct bench {
    weft *w;
    weft_module *all;
    weft_attention_layer *attention;
    weft_lengths lengths; int32_t *len;
    weft_tensor *x; bool padded;                 /* [tokens, H], or [B, T, H] */
    row row;
} bench;

static weft_tensor *loss_of(void *user)
{
    bench *b = user;
    weft_tensor *x = b->padded ? weft_pack_padded_sequence(b->x, &b->lengths, WEFT_ALIGN_LEFT) :
                                 weft_ragged_like(b->x, weft_ragged(b->w, NULL, 0, &b->lengths));
    weft_tensor *y = weft_attention_run(b->attention, x, x, WEFT_ALL_KEYS, NULL);
    return weft_sum_all(b->padded ? weft_pad_packed_sequence(y, b->row.T, 0, WEFT_ALIGN_LEFT) : y);
}

static void count_work(bench *b)
{
    row   *r = &b->row;
    double pairs = 0;
    for (int64_t i = 0; i < r->B; i++)
        pairs += (double)b->len[i] * b->len[i];
    add_linear(&r->work, (double)r->tokens, r->H, 3 * r->H, false);
    add_attention(&r->work, pairs, r->H, r->H);
    add_linear(&r->work, (double)r->tokens, r->H, r->H, true);
}

static bool make_data(bench *b)
{
    row *r = &b->row;
    b->len = calloc((size_t)r->B, sizeof *b->len);
    if (!b->len)
        return false;
    r->tokens = make_lengths(r->lengths, 1, b->len, r->B, (int32_t)r->T);
    b->lengths = (weft_lengths){ .n = r->B, .len = b->len };
    b->x = b->padded ? weft_buffer(b->all, "x", WEFT_SHAPE(r->B, r->T, r->H)) :
                       weft_buffer(b->all, "x", WEFT_SHAPE(r->tokens, r->H));
    count_work(b);
    return b->padded ? fill_padded(b->x, "x", 2, &b->lengths) : fill_formula(b->x, "x", 2);
}

static bool run(row r, const settings *s)
{
    bench b = { .row = r, .padded = !strcmp(r.layout, "padded"), .w = weft_open(&s->open) };
    b.all = weft_module_new(b.w, "bench");
    b.attention = weft_attention_new(
        b.all, "attention",
        &(weft_attention_layer_opts){ .kind = WEFT_MULTIHEAD, .width = r.H, .heads = r.heads });
    bool good = make_data(&b) && set_weights(b.all, 2 / sqrt((double)r.H)) &&
                measure_training(&(training){ b.w, b.all, loss_of, 1, NULL, &b, b.row }, s);
    weft_close(b.w);
    free(b.len);
    return good;
}

bool bench_attention(const settings *s)
{
    /* H, heads, B, T */
    static const int64_t all[][4] = { { 128, 4, 64, 300 }, { 512, 8, 64, 128 }, { 256, 8, 8, 1024 } };
    bool good = true;
    for (int i = 0; i < (s->quick ? 2 : 3); i++)
        good &= measure(run,
                        (row){ .name = "attention",
                               .lengths = "uniform",
                               .B = all[i][2],
                               .T = all[i][3],
                               .I = all[i][0],
                               .H = all[i][0],
                               .heads = (int)all[i][1],
                               .layers = 1 },
                        "concat padded", s);
    return good;
}
