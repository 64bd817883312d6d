/* probe.c - runs a plan through an LSTM with random weights, and collects the output of each token. */
#include "tools/corpora/corpora.h"
#include "tools/lab/run.h"

bool lab_probe_data(const weft_dataset *source, weft_dataset *out)
{
    corpus_builder b = { 0 };
    weft_stream *s = weft_stream_new(1, "lab.probe");
    bool ok = true;
    for (int64_t i = 0; i < source->n && ok; i++) {
        for (int32_t t = 0; t < source->len[i]; t++) {
            weft_real row[PROBE_COLUMNS];
            for (int c = 0; c < PROBE_COLUMNS; c++)
                row[c] = (weft_real)weft_stream_normal(s);
            corpus_row(&b, row, PROBE_COLUMNS);
        }
        ok = corpus_end_sequence(&b);
    }
    weft_stream_free(s);
    *out = b.data;
    return ok;
}

/* Copies a batch's outputs to the places of their tokens. */
static void scatter(weft_tensor *y, const weft_plan_step *s, const weft_dataset *data, weft_real *out)
{
    int64_t n = 0;
    for (int64_t i = 0; i < s->lengths.n; i++)
        n += s->lengths.len[i];
    size_t bytes = (size_t)n * PROBE_WIDTH * sizeof *out;
    weft_real *all SCOPED = get_memory(n * PROBE_WIDTH, sizeof *all), *next = all;
    weft_read_sequences(y, all, bytes);
    for (int64_t i = 0; i < s->lengths.n; i++) {
        weft_real *to = out + (data->offset[s->lengths.id[i]] + s->lengths.offset[i]) * PROBE_WIDTH;
        for (int64_t k = 0; k < (int64_t)s->lengths.len[i] * PROBE_WIDTH; k++)
            *to++ = *next++;
    }
}

bool lab_probe(const char *planner, const weft_plan *p, const weft_dataset *data, probe_layout layout,
               weft_real *out)
{
    weft *w = weft_open(&(weft_opts){ .seed = 1, .threads = 1 });
    weft_module *m = weft_module_new(w, "probe");
    weft_rnn *lstm =
        weft_lstm_new(m, "lstm", &(weft_rnn_opts){ .input = PROBE_COLUMNS, .hidden = PROBE_WIDTH });
    const bool padded = layout == PROBE_PADDED;
    weft_carried *kept = padded ? NULL : weft_carried_new(m, "kept", lstm, p);
    WEFT_NO_GRAD(w)
    for (int64_t b = 0; b < p->batches && weft_ok(w); b++) {
        weft_plan_step s = weft_plan_step_of(w, p, b);
        weft_tensor *x = weft_plan_tokens(&s, data, 0, 0);
        weft_tensor *y = padded ? lab_run_padded(lstm, &s, x) : weft_rnn_run_plan(lstm, x, &s, kept).y;
        if (weft_ok(w))
            scatter(y, &s, data, out);
        weft_clear(w);
    }
    bool ok = weft_ok(w) || lab_refuse(planner, w);
    weft_close(w);
    return ok;
}
