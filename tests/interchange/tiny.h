/* tiny.h - a model whose ONNX file is tests/golden/interchange/export.onnx. export.c writes it for export.py,
 * test_export.c compares its bytes. */
#ifndef TESTS_TINY_H
#define TESTS_TINY_H
#include "weft_onnx.h"

enum { TINY_SEQUENCES = 3, TINY_IN = 2, TINY_OUT = 3 };

static float tiny_number(int64_t i) { return (float)(i * 7 % 16 - 8) / 16; }

/* Makes the layers on the first call. Returns the scores [N, 3] of x [N, 2]. */
static weft_tensor *tiny_run(weft_module *m, weft_tensor *x, weft_rnn **r, weft_linear **l)
{
    if (!*r) {
        *r = weft_lstm_new(m, "rnn", &(weft_rnn_opts){ .input = TINY_IN, .hidden = 2 });
        *l = weft_linear_new(m, "out", &(weft_linear_opts){ .in = 2, .out = TINY_OUT });
    }
    for (int i = 0; i < weft_parameter_count(m); i++) {
        const char *name;
        weft_tensor *p = weft_parameter_at(m, i, &name);
        weft_real values[64];
        for (int64_t k = 0; k < weft_numel(p); k++)
            values[k] = tiny_number(k + i);
        weft_assign_values(p, values, weft_numel(p));
    }
    return weft_softmax(weft_linear_run(*l, weft_rnn_run(*r, x, WEFT_ZERO_STATE).y), -1, NULL);
}
#endif
