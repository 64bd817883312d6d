/* train.c - what is measured of everything that trains: a forward pass without the tape, a training step with it, and the proof of equal work. */
#include <math.h>
#include "bench.h"

/* Loss and gradient norm of one training step. */
static void prove(training *t)
{
    weft_zero_grad(t->all);
    weft_tensor *loss = t->loss(t->user);
    weft_backward(loss);
    weft_tensor *norm = weft_clip_grad_norm(t->all, (weft_real)INFINITY);
    t->row.loss = (double)weft_item(loss);
    t->row.norm = (double)weft_item(norm);
    weft_clear(t->w);
}

static void step(const training *t, bool train)
{
    weft_recording(t->w, train);
    if (train)
        weft_zero_grad(t->all);
    weft_tensor *loss = t->loss(t->user);
    if (train)
        weft_backward(loss);
    weft_wait(t->w);
    weft_clear(t->w);
}

bool measure_training(training *t, const settings *s)
{
    prove(t);
    for (int train = 0; train < 2; train++) {
        times  of = { 0 };
        double start;
        step(t, train);
        step(t, train);
        do {
            start = now_ms();
            step(t, train);
        } while (more(&of, now_ms() - start, s));
        if (failed(t->w, t->row.name))
            return false;
        t->row.pass = train ? "train" : "forward";
        emit(s, t->w, &t->row, &of);
    }
    return true;
}
