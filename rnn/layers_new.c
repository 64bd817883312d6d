/* layers_new.c - makes recurrent layers with cells of core/cells.def or of the program: parameters with
 * PyTorch's names, and the module's description. */
#include <string.h>
#include <math.h>
#include "autograd/fused.h"
#include "rnn/layers.h"

/* ---- gates ---- */
const char *weft__gate_names(weft__cell cell)
{
#define CELL(name, gpu, gates, slots, states, x, h, names, ...) names,
    static const char *const list[] = {
#include "core/cells.def"
    };
    return list[cell];
}

int weft__gate_of(weft__cell cell, char letter)
{
    const char *names = weft__gate_names(cell), *found = letter ? strchr(names, letter) : NULL;
    return found ? (int)(found - names) / 2 : -1;
}

/* ---- forget bias: all of it in bias_ih, 0 in bias_hh ---- */
static const char *forget_bias_fault(const weft_rnn_opts *o, bool forgets)
{
    return !forgets                        ? "forget_bias: expected only with an LSTM or a CIFG" :
           o->no_bias                      ? "forget_bias: expected only without no_bias" :
           !isfinite((real)o->forget_bias) ? "forget_bias: expected a finite number" :
                                             NULL;
}

static void set_forget_bias(weft_tensor *const *weight, weft__cell cell, int64_t hidden, double value)
{
    weft_tensor *bias_ih = weight[WEFT__B_IH - WEFT__W_IH], *bias_hh = weight[WEFT__B_HH - WEFT__W_IH];
    weft *w = bias_ih->w;
    const int64_t forget = weft__gate_of(cell, 'f') * hidden;
    if (w->status)
        return;
    w->dev.k->fill(&w->dev, hidden, (real)weft__or(value, 0), bias_ih->data + forget);
    w->dev.k->fill(&w->dev, hidden, 0, bias_hh->data + forget);
    weft__mark_changed(bias_ih);
    weft__mark_changed(bias_hh);
}

static const char *layer_fault(const weft_rnn *r, const weft_rnn_opts *o)
{
    return o->input < 1 || o->hidden < 1 ? "input and hidden: expected 1 or more" :
           o->input > INT32_MAX / 4 || o->hidden > INT32_MAX / 4 ?
                                           "input and hidden: expected less than 2^29" :
           o->layers < 0 || o->layers > LAYERS        ? "layers: expected 1 .. 32 (0 means 1)" :
           o->proj && (is_own(r) || !r->has_c)        ? "proj: expected only with an LSTM or a CIFG" :
           o->proj < 0 || o->proj >= o->hidden        ? "proj: expected less than hidden (0: none)" :
           !(o->dropout >= 0 && (real)o->dropout < 1) ? "dropout: expected 0 <= dropout < 1" :
           !(o->weight_drop >= 0 && (real)o->weight_drop < 1) ? "weight_drop: expected 0 <= weight_drop < 1" :
           o->relu && (is_own(r) || r->cell != WEFT__rnn_relu) ? "relu: expected only with weft_elman_new" :
           o->forget_bias != 0 ? forget_bias_fault(o, !is_own(r) && r->has_c) :
                                 NULL;
}

static void weights_new(weft_rnn *r, int layer, int direction)
{
    static const char *const names[WEFT__RNN_WEIGHTS] = { "weight_ih", "weight_hh", "bias_ih", "bias_hh",
                                                          "weight_hr" };
    int64_t W = h_width(r), H = r->opts.hidden, of_x = r->gates_x * H, of_h = r->gates_h * H,
            in = (layer ? W * directions(r) : r->opts.input) * (r->linear.window ? r->linear.window : 1);
    const int64_t shape[WEFT__RNN_WEIGHTS][2] = {
        { of_x, in }, { of_h, W }, { of_x }, { of_h }, { r->opts.proj, H }
    };
    for (int k = 0; k < WEFT__RNN_WEIGHTS; k++) {
        bool bias = k == WEFT__B_IH - WEFT__W_IH || k == WEFT__B_HH - WEFT__W_IH;
        char name[WEFT__NAME];
        if ((bias && r->opts.no_bias) || shape[k][0] == 0)
            continue;
        snprintf(name, sizeof name, "%s_l%d%s", names[k], layer, direction ? "_reverse" : "");
        r->weight[layer * directions(r) + direction][k] =
            weft_parameter(r->m, name, bias ? 1 : 2, shape[k], weft__init_by_width(H));
    }
    if (r->opts.forget_bias != 0)
        set_forget_bias(r->weight[layer * directions(r) + direction], r->cell, H, r->opts.forget_bias);
    if (is_own(r))
        weft__own_parameters(r->m, &r->own_cells[layer * directions(r) + direction], H, in, layer, direction);
}

static void describe_layer(const weft_rnn *r)
{
#define CELL(name, gpu, gates, slots, states, x, h, names, flops, description) description,
    static const char *const cells[] = {
#include "core/cells.def"
    };
    const char *gates = is_own(r) ? r->own.gate_names : weft__gate_names(r->cell);
    weft__describe(r->m, "cell", is_own(r) ? r->own.name : cells[r->cell]);
    if (gates && *gates)
        weft__describe(r->m, "gates", gates);
    weft__describe(r->m, "bias", r->opts.no_bias ? "none" : r->gates_h ? "b_ih and b_hh" : "b_ih");
}

/* Allocates the data of a program's cell for each layer and direction. Copies the cell's record. */
static bool own_cells(weft_rnn *r)
{
    snprintf(r->own_name, sizeof r->own_name, "%s", r->own.name);
    r->own.name = r->own_name;
    r->own_cells = weft__layer(r->m, (size_t)stacked(r) * sizeof *r->own_cells);
    for (int k = 0; r->own_cells && k < stacked(r); k++)
        r->own_cells[k].cell = &r->own;
    return r->own_cells;
}

weft_rnn weft__rnn_none;

weft_rnn *weft__rnn_new(weft_module *parent, const char *name, const char *function, const weft_rnn *kind,
                        const weft_rnn_opts *o)
{
    weft *w = weft_module_context(parent);
    const char *reason = o ? layer_fault(kind, o) : "opts is NULL";
    if (reason && o)
        weft__fail(w, WEFT_EARG,
                   "%s \"%s\": %s; given: input %lld, hidden %lld, layers %d, proj %lld, dropout %g",
                   function, name ? name : "", reason, (long long)o->input, (long long)o->hidden, o->layers,
                   (long long)o->proj, o->dropout);
    else if (reason)
        weft__fail(w, WEFT_EARG, "%s \"%s\": %s", function, name ? name : "", reason);
    if (reason)
        return &weft__rnn_none;
    weft_module *m = weft_submodule_new(parent, name);
    weft_rnn *r = weft__layer(m, sizeof *r);
    if (!r)
        return weft__finish_layer(m, r, &weft__rnn_none);
    *r = *kind;
    r->m = m;
    r->opts = *o;
    r->opts.layers = o->layers ? o->layers : 1;
    if (is_own(r) && !own_cells(r))
        return weft__finish_layer(m, r, &weft__rnn_none);
    describe_layer(r);
    r->traces =
        (weft__traces){ .w = m->w, .layers = r->opts.layers, .directions = directions(r), .own = is_own(r) };
    for (int l = 0; l < r->opts.layers; l++)
        for (int d = 0; d < directions(r); d++)
            weights_new(r, l, d);
    r->own.own = NULL;                           /* the list belongs to the caller */
    return weft__finish_layer(m, r, &weft__rnn_none);
}

static weft_rnn *known_new(weft_module *m, const char *name, const char *function, weft__cell cell,
                           const weft_rnn_opts *o)
{
    const weft_rnn kind = { .cell = cell,
                            .gates_x = weft__gates(cell),
                            .gates_h = weft__gates(cell),
                            .has_c = weft__states(cell) == 2 };
    return weft__rnn_new(m, name, function, &kind, o);
}

weft_rnn *weft_rnn_of_cell(weft_module *m, const char *name, const weft_cell *cell, const weft_rnn_opts *o)
{
    const char *reason = weft__cell_fault(cell);
    if (reason) {
        weft__fail(weft_module_context(m), WEFT_EARG, "rnn_of_cell \"%s\": %s", name ? name : "", reason);
        return &weft__rnn_none;
    }
    const int of_h = cell->gates_h < 0 ? 0 : cell->gates_h ? cell->gates_h : cell->gates;
    return weft__rnn_new(m, name, "rnn_of_cell",
                     &(weft_rnn){ .own = *cell,
                                  .gates_x = cell->gates,
                                  .gates_h = of_h,
                                  .has_c = cell->states == 2,
                                  .composed = true },
                     o);
}

weft_rnn *weft_elman_new(weft_module *m, const char *name, const weft_rnn_opts *o)
{
    return known_new(m, name, "elman_new", o && o->relu ? WEFT__rnn_relu : WEFT__rnn_tanh, o);
}
weft_rnn *weft_gru_new(weft_module *m, const char *name, const weft_rnn_opts *o)
{
    return known_new(m, name, "gru_new", WEFT__gru, o);
}
weft_rnn *weft_lstm_new(weft_module *m, const char *name, const weft_rnn_opts *o)
{
    return known_new(m, name, "lstm_new", WEFT__lstm, o);
}
weft_rnn *weft_cifg_new(weft_module *m, const char *name, const weft_rnn_opts *o)
{
    return known_new(m, name, "cifg_new", WEFT__cifg, o);
}
weft_rnn *weft_mgu_new(weft_module *m, const char *name, const weft_rnn_opts *o)
{
    return known_new(m, name, "mgu_new", WEFT__mgu, o);
}

weft__state_form weft__state_form_of(const weft_rnn *r)
{
    return r && r->m ? (weft__state_form){ .stacked = stacked(r),
                                           .h = h_width(r),
                                           .c = r->has_c ? c_width(r) : 0,
                                           .two_ways = directions(r) == 2 } :
                       (weft__state_form){ 0 };
}

weft_module *weft_rnn_module(weft_rnn *r) { return r ? r->m : NULL; }

bool weft_rnn_set_composed(weft_rnn *r, bool composed)
{
    bool old = r && r->composed;
    if (r && r->m)
        r->composed = composed || is_own(r);           /* which has no fused form */
    return old;
}

weft__traces *weft__traces_of(weft_rnn *r) { return r && r->m ? &r->traces : NULL; }
