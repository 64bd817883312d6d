/* models.c - the cases of recurrent layers, of a small model with one, and of attention, in every layout.
 *
 * packed, concat and rows: the step converts concatenated tokens to that layout. padded: tokens are
 * [B, T, ..], packed for the layer and padded after it. plain: the layer runs over the pads, and a mask
 * removes them. All of this is timed. Weights, inputs and token ids come from a formula (formula.c).
 *
 * growth: one size of an LSTM grows (bench/growth.py). Inputs are real numbers, and the loss is the sum of
 * the outputs. For vocabularies an embedding precedes it, and a linear layer with cross entropy follows.
 * Above 4,096 steps the layer is lean. */
#include <math.h>
#include <string.h>
#include "weft_op.h"
#include "weft_sequence.h"
#include "weft_plan.h"
#include "bench.h"

static const char LAYOUTS[] = "packed concat rows padded";

typedef struct bench {
    weft *w;
    weft_module *all;
    weft_embedding *embed;
    weft_rnn *rnn;
    weft_linear *out;
    weft_attention_layer *attention;
    weft_tensor *a, *b;                          /* case scan: factors and terms, parameters */
    int64_t classes;                             /* of the model with a layer; 0: only the layer */
    bool classifier;                             /* of sequences, not of tokens */
    bool padded, plain;
    weft_lengths lengths;
    int32_t *ids, *padded_ids, *class_of;
    weft_placement rows;
    weft_tensor *x;                              /* [tokens, I] or [B, T, I], on the device from the start */
    row row;
} bench;

/* ---- a step ---- */
static weft_tensor *arranged(const bench *b, weft_tensor *x)
{
    if (!strcmp(b->row.layout, "packed"))
        return weft_to_layout(x, WEFT_PACKED);
    return !strcmp(b->row.layout, "rows") ? weft_to_rows(x, &b->rows) : x;
}

static weft_tensor *packed(const bench *b, weft_tensor *x)
{
    return weft_pack_padded_sequence(x, &b->lengths, WEFT_ALIGN_LEFT);
}

static weft_tensor *unpacked(const bench *b, weft_tensor *y)
{
    return weft_pad_packed_sequence(y, b->row.T, 0, WEFT_ALIGN_LEFT);
}

static weft_tensor *masked(const bench *b, weft_tensor *x)
{
    weft_tensor *mask = weft_length_mask(b->w, &b->lengths, b->row.T, WEFT_ALIGN_LEFT);
    return weft_mul(x, weft_reshape(mask, WEFT_SHAPE(b->row.B, b->row.T, 1)));
}

/* Takes and returns a padded tensor if the case is padded. */
static weft_tensor *run_layer(const bench *b, weft_tensor *x)
{
    weft_tensor *y = weft_rnn_run(b->rnn, b->padded ? packed(b, x) : x, WEFT_ZERO_STATE).y;
    return b->padded ? unpacked(b, y) : y;
}

static weft_tensor *classifier_loss(const bench *b)
{
    bool square = b->padded || b->plain;
    weft_tensor *ids = square ? weft_ints(b->w, b->padded_ids, WEFT_SHAPE(b->row.B, b->row.T)) :
                                arranged(b, weft_ragged_ints(b->w, b->ids, &b->lengths));
    weft_tensor *scores = weft_linear_run(b->out, run_layer(b, weft_embedding_run(b->embed, ids)));
    scores = square ? weft_sum(masked(b, scores), 1) : weft_pool(scores, WEFT_POOL_SUM);
    return weft_mean_loss(
        weft_cross_entropy(scores, weft_ints(b->w, b->class_of, WEFT_SHAPE(b->lengths.n)), NULL));
}

static weft_tensor *growth_loss(const bench *b)
{
    weft_tensor *ids = weft_to_layout(weft_ragged_ints(b->w, b->ids, &b->lengths), WEFT_PACKED);
    weft_tensor *x = b->embed ? weft_embedding_run(b->embed, ids) : weft_ragged_rows(b->x, ids);
    weft_tensor *y = weft_rnn_run(b->rnn, x, WEFT_ZERO_STATE).y;
    return b->out ? weft_mean_loss(weft_cross_entropy(weft_linear_run(b->out, y), ids, NULL)) :
                    weft_sum_all(y);
}

static weft_tensor *attention_loss(const bench *b)
{
    weft_tensor *x =
        b->padded ? packed(b, b->x) : weft_ragged_like(b->x, weft_ragged(b->w, NULL, 0, &b->lengths));
    weft_tensor *y = weft_attention_run(b->attention, x, x, WEFT_ALL_KEYS, NULL);
    return weft_sum_all(b->padded ? unpacked(b, y) : y);
}

static weft_tensor *scan_loss(const bench *b)
{
    weft_tensor *like = weft_ragged_ints(b->w, b->ids, &b->lengths);
    return weft_sum_all(
        weft_scan(weft_ragged_like(b->a, like), weft_ragged_like(b->b, like), 0, NULL, false));
}

static weft_tensor *loss_of(void *user)
{
    const bench *b = user;
    if (b->attention)
        return attention_loss(b);
    if (b->a)
        return scan_loss(b);
    if (b->row.axis)
        return growth_loss(b);
    if (b->classifier)
        return classifier_loss(b);
    return weft_sum_all(run_layer(
        b, b->padded ? b->x :
                       arranged(b, weft_ragged_like(b->x, weft_ragged_ints(b->w, b->ids, &b->lengths)))));
}

/* ---- building a case ---- */
static void build(bench *b)
{
    const row *r = &b->row;
    weft_rnn_opts o = { .input = r->I, .hidden = r->H, .layers = r->layers };
    o.bidirectional = r->bidirectional;
    o.lean = r->lean;
    weft_embedding_opts table = { .rows = b->classifier ? 10 : b->classes, .columns = r->I };
    table.has_padding = b->classifier;
    b->all = weft_module_new(b->w, "bench");
    if (r->heads) {
        weft_attention_layer_opts heads = { .kind = WEFT_MULTIHEAD, .width = r->H, .heads = r->heads };
        b->attention = weft_attention_new(b->all, "attention", &heads);
        return;
    }
    if (b->classes)
        b->embed = weft_embedding_new(b->all, "embedding", &table);
    const weft_linear_rnn_opts linear = { .input = r->I, .hidden = r->H, .layers = 1 };
    b->rnn = !strcmp(r->name, "gru")    ? weft_gru_new(b->all, "gru", &o) :
             !strcmp(r->name, "mingru") ? weft_linear_rnn_new(b->all, "mingru", &linear) :
             !strcmp(r->name, "scan")   ? NULL :
                                          weft_lstm_new(b->all, "lstm", &o);
    if (b->classes)
        b->out = weft_linear_new(b->all, "linear", &(weft_linear_opts){ .in = r->H, .out = b->classes });
}

static void count_attention(bench *b)
{
    row *r = &b->row;
    double pairs = 0;
    for (int64_t i = 0; i < r->B; i++)
        pairs += (double)b->lengths.len[i] * b->lengths.len[i];
    add_linear(&r->work, (double)r->tokens, r->H, 3 * r->H, false);
    add_attention(&r->work, pairs, r->H, r->H);
    add_linear(&r->work, (double)r->tokens, r->H, r->H, true);
}

static void count_work(bench *b)
{
    row *r = &b->row;
    int directions = r->bidirectional ? 2 : 1, gates = !strcmp(r->name, "gru") ? 3 : 4;
    if (!strcmp(r->name, "mingru"))
        add_linear(&r->work, (double)r->tokens, r->I, 2 * r->H, false);
    if (!b->rnn || !strcmp(r->name, "mingru"))
        return;
    for (int k = 0; k < r->layers; k++)
        for (int d = 0; d < directions; d++)
            add_recurrent(&r->work, (double)r->tokens, gates, k ? directions * r->H : r->I, r->H,
                          k || b->classes);
    if (b->classes)
        add_linear(&r->work, (double)r->tokens, r->H, b->classes, true);
}

/* A classifier's tokens are 1 .. 9 (0 is padding). Its classes alternate between 0 and 1. */
static void make_ids(bench *b)
{
    const row *r = &b->row;
    b->ids = keep(r->tokens, sizeof *b->ids);
    b->class_of = keep(r->B, sizeof *b->class_of);
    b->padded_ids = b->padded || b->plain ? keep(r->B * r->T, sizeof *b->padded_ids) : NULL;
    for (int64_t i = 0, next = 0; i < r->B; i++) {
        b->class_of[i] = (int32_t)(i % 2);
        for (int32_t t = 0; t < b->lengths.len[i]; t++, next++) {
            double share = formula("ids", next) + .5;
            b->ids[next] =
                r->vocabulary ? (int32_t)(share * (double)r->vocabulary) : 1 + (int32_t)(share * 9);
            if (b->padded_ids)
                b->padded_ids[i * r->T + t] = b->ids[next];
        }
    }
}

static bool make_data(bench *b)
{
    row *r = &b->row;
    b->lengths.n = r->B;
    b->lengths.len = make_lengths(r->lengths, 1, r->B, (int32_t)r->T, &r->tokens);
    if (!b->attention)
        make_ids(b);
    if (!strcmp(r->layout, "rows")) {
        int32_t *row_of = keep(r->B, sizeof *row_of), *column_of = keep(r->B, sizeof *column_of);
        b->rows = (weft_placement){ .width = r->T, .row = row_of, .column = column_of };
        if (weft_first_fit(&b->lengths, r->T, row_of, column_of, &b->rows.rows) != WEFT_OK)
            return false;
    }
    (b->attention ? count_attention : count_work)(b);
    if (b->classes)
        return true;
    if (!strcmp(r->name, "scan")) {              /* |a| < 1 */
        const weft_init zero = { .kind = WEFT_INIT_ZERO };
        b->a = weft_parameter(b->all, "a", WEFT_SHAPE(r->tokens, r->H), zero);
        b->b = weft_parameter(b->all, "b", WEFT_SHAPE(r->tokens, r->H), zero);
        return weft_ok(b->w);
    }
    b->x = b->padded ? weft_buffer(b->all, "x", WEFT_SHAPE(r->B, r->T, r->I)) :
                       weft_buffer(b->all, "x", WEFT_SHAPE(r->tokens, r->I));
    return b->padded ? fill_padded(b->x, "x", 2, &b->lengths) : fill_formula(b->x, "x", 2);
}

static bool run(row r, const settings *s)
{
    bench b = { .row = r,
                .classifier = !strcmp(r.name, "net") || !strcmp(r.name, "slow_pack"),
                .padded = !strcmp(r.layout, "padded"),
                .plain = !strcmp(r.layout, "plain"),
                .w = weft_open(&s->open) };
    b.classes = b.classifier ? 2 : r.vocabulary;
    build(&b);
    bool ok = make_data(&b) && set_weights(b.all, b.a ? 1.9 : 2 / sqrt((double)b.row.H)) &&
              measure_training(&(training){ b.w, b.all, loss_of, 1, NULL, &b, b.row }, s);
    weft_close(b.w);
    return ok;
}

static bool classifier(const char *name, const char *lengths, int64_t T, const char *layouts,
                       const settings *s)
{
    row r = { .name = name, .lengths = lengths, .B = 512, .T = T, .I = 16, .H = 32, .layers = 1 };
    return measure(run, r, layouts, s);
}

bool bench_net(const settings *s)
{
    static const int64_t all[] = { 32, 64, 128, 256, 512 }, quick[] = { 64, 256 };
    bool ok = true;
    for (int i = 0; i < (s->quick ? 2 : 5); i++)
        ok &= classifier("net", "triangle", (s->quick ? quick : all)[i], LAYOUTS, s);
    return ok;
}

/* Compares packed and padded batches. Equal lengths have no padding; in a triangle half of the cells are. */
bool bench_slow_pack(const settings *s)
{
    bool ok = true;
    for (int i = 0; i < 2; i++)
        for (int64_t T = 32; T <= (s->quick ? 128 : 512); T *= 2) {
            ok &= classifier("slow_pack", i ? "triangle" : "equal", T, "padded plain", s);
            ok &= s->layout || classifier("slow_pack", i ? "triangle" : "equal", T, "plain", s);
        }
    return ok;
}

static bool layer(const char *name, const char *lengths, int64_t H, int64_t B, int64_t T, bool two,
                  const settings *s)
{
    row r = { .name = name, .lengths = lengths, .B = B, .T = T, .I = H, .H = H, .layers = two ? 2 : 1 };
    r.bidirectional = two;
    return measure(run, r, LAYOUTS, s);
}

static bool layers_alone(const char *name, const settings *s)
{
    static const int64_t cpu[][3] = {
        { 128, 64, 128 }, { 256, 64, 128 }, { 512, 64, 128 }, { 128, 8, 256 }, { 1024, 64, 64 }
    };
    static const int64_t gpu[][3] = { { 128, 64, 512 }, { 256, 64, 512 }, { 32, 64, 512 },
                                      { 64, 64, 512 },  { 512, 64, 512 }, { 1024, 64, 512 } };
    bool on_gpu = s->open.device == WEFT_CUDA, ok = true;
    int most = s->quick ? 3 - on_gpu : 5 + on_gpu;
    for (int i = 0; i < most; i++) {
        const int64_t *shape = on_gpu ? gpu[i] : cpu[i];
        ok &= layer(name, "uniform", shape[0], shape[1], shape[2], false, s);
    }
    return ok;
}

bool bench_lstm(const settings *s) { return layers_alone("lstm", s); }
bool bench_gru(const settings *s) { return layers_alone("gru", s); }
bool bench_bilstm(const settings *s) { return layer("bilstm", "uniform", 256, 64, 128, true, s); }

/* weft_scan alone, and a layer on it. */
bool bench_scan(const settings *s)
{
    row r = { .name = "scan", .lengths = "uniform", .B = 64, .T = 128, .I = 256, .H = 256, .layers = 1 };
    return measure(run, r, "concat", s);
}
bool bench_mingru(const settings *s) { return layer("mingru", "uniform", 256, 64, 128, false, s); }

/* The same number of tokens in longer and longer sequences, and one very long sequence. */
bool bench_long(const settings *s)
{
    static const int64_t tokens = 1 << 18, all[] = { 32, 4096, 128, 512, 2048 };
    bool ok = true;
    for (int64_t H = 32; H <= (s->quick ? 32 : 128); H *= 4)
        for (int i = 0; i < (s->quick ? 2 : 5); i++)
            ok &= layer("long", "equal", H, tokens / all[i], all[i], false, s);
    return ok & (s->quick || layer("long", "equal", 128, 1, 70000, false, s));
}

/* Rows for each WEFT_RECUR (docs/conventions.md), to choose the kernel for each size. */
bool bench_sweep(const settings *s)
{
    static const int64_t units[] = { 32, 64, 128, 256, 512 },
                         sequences[] = { 1, 8, 32, 64, 128, 256, 512, 1024 };
    bool ok = true;
    for (int h = 0; h < (s->quick ? 1 : 5); h++)
        for (int b = 0; b < (s->quick ? 2 : 8); b++)
            ok &= layer("sweep", "equal", units[h], sequences[b], 128, false, s);
    return ok;
}

/* T in 4 .. 128, with at most about 4 GF for a training step where possible. */
bool bench_never_slower(const settings *s)
{
    static const int64_t units[] = { 32, 128, 1024, 16, 100, 256, 512 }, sequences[] = { 1, 64, 8, 512 };
    bool ok = true;
    for (int h = 0; h < (s->quick ? 3 : 7); h++)
        for (int b = 0; b < (s->quick ? 2 : 4); b++) {
            int64_t T = ((int64_t)1 << 32) / (48 * units[h] * units[h] * sequences[b]);
            T = T < 4 ? 4 : T > 128 ? 128 : T;
            ok &= layer("never_slower", "uniform", units[h], sequences[b], T, false, s);
        }
    return ok;
}

bool bench_attention(const settings *s)
{
    /* H, heads, B, T */
    static const int64_t all[][4] = { { 128, 4, 64, 300 }, { 512, 8, 64, 128 }, { 256, 8, 8, 1024 } };
    bool ok = true;
    for (int i = 0; i < (s->quick ? 2 : 3); i++) {
        row r = { .name = "attention", .lengths = "uniform", .B = all[i][2], .T = all[i][3], .layers = 1 };
        r.I = r.H = all[i][0];
        r.heads = (int)all[i][1];
        ok &= measure(run, r, "concat padded", s);
    }
    return ok;
}

/* ---- growth ---- */
enum { MOST = 8 };
typedef struct growing {
    row usual;
    int64_t value[MOST];
} growing;
static const growing all_axes[] = {
    { { .axis = "length", .B = 64, .I = 32, .H = 32 }, { 16, 64, 256, 1024, 4096, 16384, 65536 } },
    { { .axis = "sequences", .T = 64, .I = 32, .H = 32 }, { 1, 4, 16, 64, 256, 1024, 4096 } },
    { { .axis = "units", .B = 64, .T = 16 }, { 8, 32, 128, 512, 2048 } },
    { { .axis = "vocabulary", .B = 64, .T = 16, .I = 32, .H = 32 }, { 10, 100, 1000, 10000, 100000 } },
    { { .axis = "features", .B = 64, .T = 64, .H = 32 }, { 1, 4, 16, 64, 256, 500 } },
    { { .axis = "threads", .B = 512, .T = 32, .I = 256, .H = 256 }, { 1, 2 } },
};

static bool point(const growing *g, int64_t value, const settings *s)
{
    settings options = *s;
    row r = g->usual;
    r.name = "growth";
    r.lengths = "equal";
    r.layers = 1;
    switch (r.axis[0]) {
    case 'l': r.T = value; break;
    case 's': r.B = value; break;
    case 'u': r.I = r.H = value; break;
    case 'v': r.vocabulary = value; break;
    case 'f': r.I = value; break;
    default:
        options.open.threads = (int)value;
        options.peak[1] = s->peak[0] * (double)value;
    }
    r.lean = r.T > 4096;
    return measure(run, r, "packed", &options);
}

bool bench_growth(const settings *s)
{
    bool ok = true;
    for (size_t i = 0; i < sizeof all_axes / sizeof *all_axes; i++)
        for (int k = 0; k < MOST && all_axes[i].value[k] && !(k == 2 && (s->quick || s->tiny)); k++)
            ok &= point(&all_axes[i], all_axes[i].value[k], s);
    return ok;
}
