/* parameter.c - makes, assigns, ties and freezes parameters and buffers, and changes their gradients as a
 * whole.
 *
 * All parameters below a root are parts of one flat vector, and their gradients of another, so an optimiser
 * step is one pass. The vectors grow by doubling, which moves the numbers and updates every tensor's pointer.
 * Views that operators of the current step made (a reshaped weight, for example) still point to the old
 * memory. So if the step has made tensors, the old memory stays until the context ends. A model built before
 * its first step leaves none. Each parameter starts at a multiple of WEFT__GRAIN numbers, so wide loads of a
 * weight are aligned. */
#include <stddef.h>
#include <string.h>
#include "autograd/fused.h"
#include "core/report/check.h"
#include "nn/nn.h"

/* ---- the flat vectors ---- */
typedef struct { weft *w; real *values, *gradients; } old;        /* a step may still read these */

static void old_end(void *p)
{
    old *o = p;
    if (!o->w)
        return;
    weft__device_release(o->w, o->values);
    weft__device_release(o->w, o->gradients);
}

static bool retired(weft *w, real *values, real *gradients)
{
    bool seen = weft_mark_here(w).at[WEFT__MARK_HEADERS] > 0;
    old now = { w, values, gradients }, *o = seen ? weft__own(w, sizeof *o, old_end, NULL) : &now;
    if (!o)
        return false;
    *o = now;
    if (!seen)
        old_end(o);
    return true;
}

static real *copy_larger(weft *w, const real *x, int64_t n, int64_t room)   /* a copy, extended by zeros */
{
    real *y = weft__device_allocate(w, (size_t)room * sizeof *y);
    if (!y)
        return NULL;
    w->dev.k->fill(&w->dev, room - n, 0, y + n);
    if (n)
        w->dev.k->copy(&w->dev, y, x, (size_t)n * sizeof *y);
    return y;
}

static bool make_room(weft_module *root, int64_t more)
{
    weft *w = root->w;
    if (more <= root->room - root->n)
        return true;
    int64_t room = root->n + more > 2 * root->room ? root->n + more : 2 * root->room;
    real *v = copy_larger(w, root->values, root->n, room),
         *g = v ? copy_larger(w, root->gradients, root->n, room) : NULL;
    if (!g || (root->room && !retired(w, root->values, root->gradients))) {
        weft__device_release(w, v);
        weft__device_release(w, g);
        return false;
    }
    root->values = v;
    root->gradients = g;
    root->room = room;
    for (weft__parameter *p = root->first; p; p = p->later)
        if (!p->buffer && !p->tied) {
            p->value.data = v + p->at;
            p->grad.data = g + p->at;
        }
    return true;
}

/* ---- making ---- */
static bool shape_is_possible(weft *w, const char *function, const char *path, int rank, const int64_t *shape,
                              weft__form *f)
{
    int64_t room = (int64_t)1 << 44;
    if (rank < 0 || rank > WEFT_RANK || (rank && !shape)) {
        weft__fail(w, WEFT_EARG, "%s: %s: rank %d%s; 0 .. %d and a shape are expected", function, path, rank,
                   shape ? "" : " without a shape", WEFT_RANK);
        return false;
    }
    for (int i = 0; i < rank; i++) {
        if (shape[i] < 0 || shape[i] > room)
            weft__fail(w, WEFT_ESHAPE,
                       "%s: %s: extent %lld on axis %d; 0 or more, and not too many in all, are expected",
                       function, path, (long long)shape[i], i);
        room /= shape[i] > 0 ? shape[i] : 1;
    }
    *f = weft__plain(WEFT_REAL, rank, shape);
    return !w->status;
}

static weft__parameter *new_parameter(weft_module *m, const char *name, const char *function,
                                      void (*end)(void *))
{
    char path[WEFT__PATH] = "";
    m->w->running = function;
    if (!weft__path_for(m->w, m, name, function, path))
        return NULL;
    weft__parameter *p = weft__own(m->w, sizeof *p, end, NULL);
    if (!p)
        return NULL;
    memcpy(p->path, path, sizeof path);
    p->name = p->path + strlen(m->path) + 1;
    p->module = m;
    p->at = -1;
    return p;
}

weft_tensor *weft_parameter(weft_module *m, const char *name, int rank, const int64_t *shape, weft_init init)
{
    weft *w = weft__ready(m);
    weft__form f;
    weft__parameter *p = w ? new_parameter(m, name, "parameter", NULL) : NULL;
    if (!p || !shape_is_possible(w, "parameter", p->path, rank, shape, &f) ||
        !weft__init_is_sound(w, "parameter", p->path, &f, init))
        return weft__inert(m);
    weft_module *root = m->root;
    p->value.f = f;
    if (!make_room(root, weft__piece(p)))
        return &w->nil;
    p->at = root->n;
    root->n += weft__piece(p);
    p->grad = (weft_tensor){ .w = w, .f = f, .data = root->gradients + p->at };
    p->value = (weft_tensor){ .w = w, .f = f, .data = root->values + p->at };
    *weft__node_of(&p->grad) = (weft__node){ .gradient = true };
    *weft__node_of(&p->value) = (weft__node){ .grad = &p->grad, .parameter = true, .path = p->path };
    weft__first_values(p, init);
    if (w->status) {
        weft__cut_back(root, p->at);
        return &w->nil;
    }
    weft__append(p);
    return &p->value;
}

static void buffer_end(void *p)
{
    weft__parameter *b = p;
    if (b->value.w)
        weft__device_release(b->value.w, b->value.data);
}

weft_tensor *weft_buffer(weft_module *m, const char *name, int rank, const int64_t *shape)
{
    weft *w = weft__ready(m);
    weft__form f;
    weft__parameter *p = w ? new_parameter(m, name, "buffer", buffer_end) : NULL;
    if (!p || !shape_is_possible(w, "buffer", p->path, rank, shape, &f))
        return weft__inert(m);
    int64_t n = weft__elements(&f);
    real *data = weft__device_allocate(w, (size_t)(n + 1) * sizeof *data);
    if (!data)
        return &w->nil;
    w->dev.k->fill(&w->dev, n, 0, data);
    p->buffer = true;
    p->value = (weft_tensor){ .w = w, .f = f, .data = data };
    weft__node_of(&p->value)->path = p->path;
    weft__append(p);
    return &p->value;
}

void weft__set_shard(weft_tensor *buffer, int shard)
{
    if (buffer != &buffer->w->nil)
        ((weft__parameter *)(void *)((char *)buffer - offsetof(weft__parameter, value)))->shard = shard;
}

/* ---- assigning ---- */
weft__parameter *weft__parameter_of(const weft_tensor *value)
{
    return value && weft__node_of(value)->parameter ?
               (weft__parameter *)(void *)((char *)(uintptr_t)value - offsetof(weft__parameter, value)) :
               NULL;
}

/* Returns the tensor's context, or NULL after failing w if the tensor is not usable. */
static weft *of_handle(weft *w, const weft_tensor *x, const char *function, const char *what)
{
    const char *wrong = weft__wrong(w, x);
    if (wrong)
        weft__fail(w, WEFT_EARG, "%s: the %s %s", function, what, wrong);
    return w->status ? NULL : w;
}

static weft *of_lasting(weft *w, const weft_tensor *x, const char *function)
{
    w = of_handle(w, x, function, "tensor to assign to");
    if (w && x->step)
        weft__fail(w, WEFT_EARG,
                   "%s: the tensor to assign to ends with the step; a buffer or a parameter is expected",
                   function);
    return w && !w->status ? w : NULL;
}

void weft__all_changed(weft_module *root)
{
    for (weft__parameter *p = root->first; p; p = p->later)
        if (!p->tied)
            weft__changed(&p->value);
}

static void assigned(weft_tensor *x)             /* an assigned gradient counts as a gradient */
{
    weft__changed(x);
    if (!weft__node_of(x)->gradient || !weft__outside_shards(x->w, "assign: of a gradient"))
        return;
    weft__parameter *p = (weft__parameter *)(void *)((char *)x - offsetof(weft__parameter, grad));
    weft__node_of(&p->value)->given = true;
}

void weft_assign(weft_tensor *kept, weft_tensor *value)
{
    weft *w = of_lasting(weft__context(LIST(kept, value)), kept, "assign");
    if (!w)
        return;
    char to[128], from[128];
    const char *wrong = weft__wrong(w, value);
    if (wrong)
        weft__fail(w, WEFT_EARG, "assign: the value %s", wrong);
    else if (!weft__same(&kept->f, &value->f))
        weft__fail(w, WEFT_ESHAPE, "assign: %s to %s: equal shapes are expected, both plain",
                   weft__text(&value->f, from), weft__text(&kept->f, to));
    if (w->status || kept == value || !weft__bytes(&kept->f))
        return;
    w->dev.k->copy(&w->dev, kept->data, value->data, (size_t)weft__bytes(&kept->f));
    weft__check_faults(w, "assign");
    assigned(kept);
}

void weft_assign_values(weft_tensor *kept, const real *values, int64_t n)
{
    weft *w = of_lasting(weft__context(&kept, 1), kept, "assign_values");
    if (!w)
        return;
    char to[128];
    if (n != weft__elements(&kept->f) || (n && !values))
        weft__fail(w, WEFT_ESHAPE, "assign_values: %s%lld numbers to %s", values ? "" : "NULL, ",
                   (long long)n, weft__text(&kept->f, to));
    if (w->status || !n)
        return;
    w->dev.k->upload(&w->dev, kept->data, values, (size_t)n * sizeof *values);
    weft__check_faults(w, "assign_values");
    assigned(kept);
}

static weft__parameter *of_parameter(const weft_tensor *x, const char *function)
{
    weft *w = of_handle(x ? x->w : weft__no_context(), x, function, "parameter");
    if (w && !weft__node_of(x)->parameter)
        weft__fail(w, WEFT_EARG, "%s: the tensor is no parameter", function);
    return w && !w->status ? weft__parameter_of(x) : NULL;
}

void weft_initialise(weft_tensor *parameter, weft_init init)
{
    weft__parameter *p = of_parameter(parameter, "initialise");
    if (p && weft__init_is_sound(parameter->w, "initialise", p->path, &parameter->f, init))
        weft__first_values(p, init);
}

void weft_tie(weft_module *m, const char *name, weft_tensor *parameter)
{
    weft *w = weft__ready(m);
    weft__parameter *first = w ? of_parameter(parameter, "tie") : NULL;
    if (first && first->module->root != m->root)
        weft__fail(w, WEFT_EARG, "tie: \"%.80s\": %s is not below the root %s", name ? name : "", first->path,
                   m->root->path);
    else if (w && !first)
        weft__fail(w, WEFT_EARG, "tie: \"%.80s\": a parameter of this context is expected", name ? name : "");
    weft__parameter *p = first && !w->status ? new_parameter(m, name, "tie", NULL) : NULL;
    if (!p)
        return;
    p->tied = first;
    weft__append(p);
}

void weft__tie_module(weft_module *m, const char *name, const weft_module *original)
{
    weft_module *own = original ? weft_submodule_new(m, name) : NULL;
    for (weft__parameter *p = original ? original->parameters : NULL; p; p = p->next)
        weft_tie(own, p->name, p->tied ? &p->tied->value : &p->value);
    for (const weft_module *child = original ? original->child : NULL; child; child = child->sibling)
        weft__tie_module(own, child->name, child);
}

/* ---- freezing ---- */
static void freeze(weft__parameter *p, bool frozen)
{
    weft *w = p->value.w;
    weft__node_of(&p->value)->frozen = frozen;
    weft__node_of(&p->value)->given &= !frozen;
    if (frozen && weft__elements(&p->grad.f))
        /* Otherwise the old gradient would be clipped and applied. */
        w->dev.k->fill(&w->dev, weft__elements(&p->grad.f), 0, p->grad.data);
}

void weft_freeze(weft_module *m, const char *pattern, bool frozen)
{
    weft *w = weft__ready(m);
    bool fits = false;
    for (weft__parameter *p = NULL; w && pattern && (p = weft__next_parameter(m, p));)
        if (!p->buffer && weft__path_fits(p, m, pattern))
            freeze(p, frozen), fits = true;
    if (w && !fits)
        weft__fail(w, WEFT_EARG,
                   "freeze: %s%.80s%s fits no parameter below %s; a pattern of their paths is expected "
                   "(\"*\": all, \"encoder.*\", \"embed.weight\")",
                   pattern ? "\"" : "", pattern ? pattern : "NULL", pattern ? "\"" : "", m->path);
}

/* ---- gradients ---- */
void weft_zero_grad(weft_module *m)
{
    weft *w = weft__ready(m);
    if (!w || !weft__outside_shards(w, "zero_grad"))
        return;
    for (weft__neighbours s = { 0 }; weft__next_neighbours(m, true, &s);)
        w->dev.k->fill(&w->dev, s.n, 0, m->root->gradients + s.from);
    for (weft__parameter *p = NULL; (p = weft__next_parameter(m, p));)
        weft__node_of(&p->value)->given = false;
    weft__check_faults(w, "zero_grad");
}

void weft__gradients_are_there(const weft_module *m, const char *function)
{
    weft__parameter *p = NULL;
    if (!m->w->check)
        return;
    while ((p = weft__next_parameter(m, p)) && !weft__node_of(&p->value)->given)
        ;
    weft__check_gradients_found(m->w, p != NULL, false, function);
}

void weft_divide_grad(weft_module *m, weft_tensor *divisor)
{
    weft *w = weft__ready(m);
    if (!w || !weft__outside_shards(w, "divide_grad"))
        return;
    char text[128];
    const char *wrong = weft__wrong(w, divisor);
    if (wrong)
        weft__fail(w, WEFT_EARG, "divide_grad: the divisor %s", wrong);
    else if (divisor->f.type != WEFT_REAL || weft__elements(&divisor->f) != 1)
        weft__fail(w, WEFT_ESHAPE, "divide_grad: the divisor is %s; one real is expected",
                   weft__text(&divisor->f, text));
    else {
        weft__gradients_are_there(m, "divide_grad");
        for (weft__neighbours s = { 0 }; weft__next_neighbours(m, true, &s);) {
            real *g = m->root->gradients + s.from;
            w->dev.k->scale_by(&w->dev, s.n, divisor->data, true, g, g, false);
        }
    }
    weft__check_faults(w, "divide_grad");
}
