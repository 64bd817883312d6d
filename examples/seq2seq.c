/* seq2seq.c - trains an encoder-decoder LSTM to reverse strings of digits, of any length, without padding or
 * masks. */
#include <stdio.h>
#include "weft.h"

enum { BOS, EOS, DIGIT0, VOCAB = DIGIT0 + 10, EMB = 32, HID = 64, BATCH = 64, LEN = 10, STEPS = 1000 };

typedef struct {                                 /* concatenated sequences */
    int32_t src[BATCH * LEN], in[BATCH * (LEN + 1)], out[BATCH * (LEN + 1)];
    int32_t src_len[BATCH], dst_len[BATCH];
} batch;

typedef struct {
    weft_module    *all;                         /* owns the layers below */
    weft_embedding *embed;
    weft_rnn       *enc, *dec;
    weft_linear    *project;
} model;

/* the program's own data; its state is saved with the weights */
static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

static void batch_fill(batch *b, uint64_t *state)
{
    int32_t *src = b->src, *in = b->in, *out = b->out;
    for (int i = 0; i < BATCH; i++) {
        int n = b->src_len[i] = 1 + (int)draw(state, LEN);
        b->dst_len[i] = n + 1;
        for (int t = 0; t < n; t++)
            src[t] = DIGIT0 + (int)draw(state, 10);
        in[0] = BOS;
        for (int t = 0; t < n; t++)
            in[t + 1] = out[t] = src[n - 1 - t];
        out[n] = EOS;
        src += n;
        in += n + 1;
        out += n + 1;
    }
}

static model model_new(weft *w)
{
    weft_module *m = weft_module_new(w, "seq2seq");
    weft_rnn_opts opts = { .input = EMB, .hidden = HID, .layers = 1 };
    return (model){
        .all     = m,
        .embed   = weft_embedding_new(m, "embed", &(weft_embedding_opts){ .rows = VOCAB, .columns = EMB }),
        .enc     = weft_lstm_new(m, "enc", &opts),
        .dec     = weft_lstm_new(m, "dec", &opts),
        .project = weft_linear_new(m, "project", &(weft_linear_opts){ .in = HID, .out = VOCAB }),
    };
}

static weft_tensor *model_loss(weft *w, const model *m, const batch *b)
{
    weft_lengths src = { .n = BATCH, .len = b->src_len }, dst = { .n = BATCH, .len = b->dst_len };
    weft_rnn_out e = weft_rnn_run(m->enc, weft_embedding_run(m->embed, weft_ragged_ints(w, b->src, &src)),
                                  WEFT_ZERO_STATE);
    weft_rnn_out d =
        weft_rnn_run(m->dec, weft_embedding_run(m->embed, weft_ragged_ints(w, b->in, &dst)), e.last);
    return weft_mean_loss(
        weft_cross_entropy(weft_linear_run(m->project, d.y), weft_ragged_ints(w, b->out, &dst), NULL));
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "seq2seq.h5";
    /* a GPU if the machine has one, otherwise the CPU */
    weft *w = weft_open(&(weft_opts){ .device = WEFT_BEST, .seed = 1 });
    model m = model_new(w);
    weft_optim *opt = weft_adamw_new(m.all, &(weft_adam_opts){ .lr = 5e-3 });
    uint64_t data = 1;
    weft_checkpoint_item items[] = { { "data", WEFT_I64, &data, 1 } };

    weft_status s = weft_load(path, m.all, opt, items, 1);                    /* resume if the file exists */
    if (s == WEFT_ENOENT)
        s = WEFT_OK;                                                          /* a first run */
    while (s == WEFT_OK && weft_ok(w) && weft_optim_steps(opt) < STEPS) {
        batch b;
        batch_fill(&b, &data);
        weft_tensor *loss = model_loss(w, &m, &b);
        weft_backward(loss);
        weft_clip_grad_norm(m.all, 1, 0);
        weft_optim_step(opt);
        if (weft_optim_steps(opt) % 100 == 0)
            printf("%6lld  %.4f\n", (long long)weft_optim_steps(opt), weft_item(loss));
        if (weft_optim_steps(opt) % 500 == 0)
            s = weft_save(path, m.all, opt, items, 1);
        /* this step's tensors end here */
        weft_clear(w);
    }
    if (!weft_ok(w))
        fprintf(stderr, "seq2seq: %s\n", weft_error_message(w));
    if (s != WEFT_OK)
        fprintf(stderr, "seq2seq: %s: %s\n", path, weft_file_message());
    int failed = s != WEFT_OK || !weft_ok(w);
    weft_close(w);                                                            /* and everything else here */
    return failed;
}
