/* own_cell.c - runs cells whose step the program defines, with their parameters and noise. */
#include <string.h>
#include "autograd/fused.h"
#include "rnn/rnn.h"

enum { MOST_GATES = 64 };

/* ---- making ---- */
static bool is_named(const char *name, size_t most)
{
    return name && *name && strlen(name) < most && !strpbrk(name, "./");
}

static const char *parameter_is_wrong(const weft_cell_parameter *p)
{
    return !is_named(p->name, WEFT__NAME / 2) ? "own: name: expected 1 .. 31 bytes without dots and slashes" :
           (unsigned)p->shape > WEFT_CELL_OF_INPUT ? "own: shape: expected a value of weft_cell_shape" :
           p->blocks < 1 || p->blocks > MOST_GATES ? "own: blocks: expected 1 .. 64" :
                                                     NULL;
}

const char *weft__cell_fault(const weft_cell *cell)
{
    const char *reason =
        !cell || !cell->step      ? "cell: no step function; expected a cell with a step" :
        !is_named(cell->name, 96) ? "name: expected 1 to 95 bytes without dots and slashes" :
        cell->gate_names && strlen(cell->gate_names) > 95 ?
                                    "gate_names: expected at most 95 bytes" :
        cell->gates < 0 || cell->gates > MOST_GATES || cell->gates_h < -1 || cell->gates_h > MOST_GATES ?
                                    "gates: expected 0 .. 64 gates and -1 .. 64 gates_h" :
        cell->states < 0 || cell->states > 2   ? "states: expected 1 or 2 (0 means 1)" :
        !(cell->noise >= 0 && cell->noise < 1) ? "noise: expected 0 <= noise < 1" :
        cell->own_count < 0 || cell->own_count > WEFT__OWN || (cell->own_count && !cell->own) ?
                                                 "own: expected 0 .. 16 parameters" :
                                                 NULL;
    for (int i = 0; !reason && i < cell->own_count; i++)
        reason = parameter_is_wrong(&cell->own[i]);
    return reason;
}

void weft__own_parameters(weft_module *m, weft__own_cell *cell, int64_t hidden, int64_t input, int layer,
                          bool reverse)
{
    const char *suffix = reverse ? "_reverse" : "";
    for (int i = 0; i < cell->cell->own_count; i++) {
        const weft_cell_parameter *p = &cell->cell->own[i];
        char name[WEFT__NAME];
        snprintf(name, sizeof name, "%s_l%d%s", p->name, layer, suffix);
        cell->own[i] =
            weft_parameter(m, name, p->shape == WEFT_CELL_VECTOR ? 1 : 2,
                           (int64_t[]){ p->blocks * hidden, p->shape == WEFT_CELL_OF_INPUT ? input : hidden },
                           p->init ? *p->init : weft__init_by_width(hidden));
    }
    snprintf(cell->noise, sizeof cell->noise, "%s.noise_l%d%s", m->path, layer, suffix);
}

/* ---- running ---- */
weft_tensor *weft__own_noise(const weft__direction *d, weft_tensor *x)
{
    if (!d->own || d->own->cell->noise == 0)
        return NULL;
    weft_tensor *ones = weft_full(x->w, 1, WEFT_SHAPE(weft_size(x, 0), d->hidden));
    if (!weft_ok(x->w))
        return ones;
    return weft_plain(weft_dropout(weft__ragged_as(ones, &x->f), d->own->cell->noise, d->own->noise, false));
}

static bool own_state_fits(const weft__direction *d, const char *name, weft_tensor *given, int64_t rows)
{
    weft *w = d->in[WEFT__X]->w;
    if (WEFT__IS_USABLE(w, given, "the step of the cell \"%s\": %s", d->own->cell->name, name) &&
        (given->f.batch || given->f.rank != 2 || given->f.type != WEFT_REAL || given->f.size[0] != rows ||
         given->f.size[1] != d->hidden))
        weft__fail(w, WEFT_ESHAPE,
                   "the step of the cell \"%s\": %s is %s; expected plain [%lld, %lld] (rows, hidden)",
                   d->own->cell->name, name, WEFT__TEXT(&given->f), (long long)rows, (long long)d->hidden);
    return !w->status;
}

weft_state weft__own_step(const weft__direction *d, weft_tensor *x, weft_tensor *noise, weft_state before)
{
    weft *w = d->in[WEFT__X]->w;
    const weft_cell *cell = d->own->cell;
    const weft_state inert = { &w->nil, d->has_c ? &w->nil : NULL };
    if (w->status)
        return inert;
    weft__callback outer = weft__callback_begin(w, "the step of the cell", cell->name);
    weft_state s = cell->step(&(weft_cell_input){ d->hidden, x, before.h, before.c, d->in[WEFT__W_HH],
                                                  d->in[WEFT__B_HH], d->own->own, noise },
                              cell->user);
    weft__callback_end(w, outer);
    int64_t rows = weft_size(before.h, 0);
    if (!w->status && s.c && !d->has_c)
        weft__fail(w, WEFT_EARG,
                   "the step of the cell \"%s\": it returned c; expected NULL, for one state, h", cell->name);
    bool fits = own_state_fits(d, "h", s.h, rows) && (!d->has_c || own_state_fits(d, "c", s.c, rows));
    return fits ? s : inert;
}
