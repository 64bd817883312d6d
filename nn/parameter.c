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

static bool retire_vectors(weft *w, real *values, real *gradients)
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
    if (more <= root->capacity - root->n)
        return true;
    int64_t room = root->n + more > 2 * root->capacity ? root->n + more : 2 * root->capacity;
    real *v = copy_larger(w, root->values, root->n, room),
         *g = v ? copy_larger(w, root->gradients, root->n, room) : NULL;
    if (!g || (root->capacity && !retire_vectors(w, root->values, root->gradients))) {
        weft__device_release(w, v);
        weft__device_release(w, g);
        return false;
    }
    root->values = v;
    root->gradients = g;
    root->capacity = room;
    for (weft__parameter *p = root->first; p; p = p->next_in_root)
        if (!p->buffer && !p->tied) {
            p->value.data = v + p->offset;
            p->grad.data = g + p->offset;
        }
    return true;
}

/* ---- making ---- */
static bool shape_is_possible(weft *w, const char *function, const char *path, int rank, const int64_t *shape,
                              weft__form *f)
{
    int64_t room = (int64_t)1 << 44;
    if (rank < 0 || rank > WEFT_RANK || (rank && !shape)) {
        weft__fail(w, WEFT_EARG, "%s: %s: rank %d%s; expected rank 0 .. %d and a shape", function, path, rank,
                   shape ? "" : " without a shape", WEFT_RANK);
        return false;
    }
    for (int i = 0; i < rank; i++) {
        if (shape[i] < 0 || shape[i] > room)
            weft__fail(w, WEFT_ESHAPE,
                       "%s: %s: extent %lld on axis %d; expected 0 or more, and at most 2^44 elements",
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
    p->offset = -1;
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
    if (!make_room(root, weft__padded_size(p)))
        return &w->nil;
    p->offset = root->n;
    root->n += weft__padded_size(p);
    p->grad = (weft_tensor){ .w = w, .f = f, .data = root->gradients + p->offset };
    p->value = (weft_tensor){ .w = w, .f = f, .data = root->values + p->offset };
    *weft__node_of(&p->grad) = (weft__node){ .gradient = true };
    *weft__node_of(&p->value) = (weft__node){ .grad = &p->grad, .parameter = true, .path = p->path };
    weft__init_values(p, init);
    if (w->status) {
        weft__truncate(root, p->offset);
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
static weft__parameter *parameter_of(const weft_tensor *value)
{
    return value && weft__node_of(value)->parameter ?
               (weft__parameter *)(void *)((char *)(uintptr_t)value - offsetof(weft__parameter, value)) :
               NULL;
}

/* Returns the tensor's context, or NULL after failing w if nothing can be assigned to the tensor. */
static weft *assignable_context(weft *w, const weft_tensor *x, const char *function)
{
    if (WEFT__IS_USABLE(w, x, "%s: the tensor to assign to", function) && x->step)
        weft__fail(w, WEFT_EARG,
                   "%s: the tensor to assign to ends with the step; expected a buffer or a parameter",
                   function);
    return w->status ? NULL : w;
}

void weft__mark_all_changed(weft_module *root)
{
    for (weft__parameter *p = root->first; p; p = p->next_in_root)
        if (!p->tied)
            weft__mark_changed(&p->value);
}

static void mark_assigned(weft_tensor *x) /* an assigned gradient counts as a gradient */
{
    weft__mark_changed(x);
    if (!weft__node_of(x)->gradient || !weft__refuse_in_shard(x->w, "assign: of a gradient"))
        return;
    weft__parameter *p = (weft__parameter *)(void *)((char *)x - offsetof(weft__parameter, grad));
    weft__node_of(&p->value)->has_gradient = true;
}

void weft_assign(weft_tensor *kept, weft_tensor *value)
{
    weft *w = assignable_context(weft__context(LIST(kept, value)), kept, "assign");
    if (!w)
        return;
    if (WEFT__IS_USABLE(w, value, "assign: the value") && !weft__forms_equal(&kept->f, &value->f))
        weft__fail(w, WEFT_ESHAPE, "assign: %s to %s; expected equal shapes, both plain",
                   WEFT__TEXT(&value->f), WEFT__TEXT(&kept->f));
    if (w->status || kept == value || !weft__bytes(&kept->f))
        return;
    w->dev.k->copy(&w->dev, kept->data, value->data, (size_t)weft__bytes(&kept->f));
    weft__check_faults(w, "assign");
    mark_assigned(kept);
}

void weft_assign_values(weft_tensor *kept, const real *values, int64_t n)
{
    weft *w = assignable_context(weft__context(&kept, 1), kept, "assign_values");
    if (!w)
        return;
    if (n != weft__elements(&kept->f) || (n && !values))
        weft__fail(w, WEFT_ESHAPE, "assign_values: %s%lld numbers to %s; expected one for each element",
                   values ? "" : "NULL, ", (long long)n, WEFT__TEXT(&kept->f));
    if (w->status || !n)
        return;
    w->dev.k->upload(&w->dev, kept->data, values, (size_t)n * sizeof *values);
    weft__check_faults(w, "assign_values");
    mark_assigned(kept);
}

static weft__parameter *require_parameter(const weft_tensor *x, const char *function)
{
    weft *w = x ? x->w : weft__no_context();
    if (WEFT__IS_USABLE(w, x, "%s: the parameter", function) && !weft__node_of(x)->parameter)
        weft__fail(w, WEFT_EARG, "%s: the tensor is not a parameter; expected one", function);
    return w->status ? NULL : parameter_of(x);
}

void weft_initialise(weft_tensor *parameter, weft_init init)
{
    weft__parameter *p = require_parameter(parameter, "initialise");
    if (p && weft__init_is_sound(parameter->w, "initialise", p->path, &parameter->f, init))
        weft__init_values(p, init);
}

void weft_tie(weft_module *m, const char *name, weft_tensor *parameter)
{
    weft *w = weft__ready(m);
    weft__parameter *first = w ? require_parameter(parameter, "tie") : NULL;
    if (first && first->module->root != m->root)
        weft__fail(w, WEFT_EARG, "tie: \"%.80s\": %s; expected a parameter below the root %s",
                   name ? name : "", first->path, m->root->path);
    else if (w && !first)
        weft__fail(w, WEFT_EARG, "tie: \"%.80s\": expected a parameter of this context", name ? name : "");
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
    weft__node_of(&p->value)->has_gradient &= !frozen;
    if (frozen && weft__elements(&p->grad.f))
        /* Otherwise the old gradient would be clipped and applied. */
        w->dev.k->fill(&w->dev, weft__elements(&p->grad.f), 0, p->grad.data);
}

void weft_freeze(weft_module *m, const char *pattern, bool frozen)
{
    weft *w = weft__ready(m);
    bool fits = false;
    for (weft__parameter *p = NULL; w && pattern && (p = weft__next_parameter(m, p));)
        if (!p->buffer && weft__matches(pattern, weft__path_below(p, m)))
            freeze(p, frozen), fits = true;
    if (w && !fits)
        weft__fail(w, WEFT_EARG,
                   "freeze: %s%.80s%s matches no parameter below %s; expected a pattern of paths (\"*\": "
                   "all, \"encoder.*\", \"embed.weight\")",
                   pattern ? "\"" : "", pattern ? pattern : "NULL", pattern ? "\"" : "", m->path);
}

/* ---- gradients ---- */
void weft_zero_grad(weft_module *m)
{
    weft *w = weft__ready(m);
    if (!w || !weft__refuse_in_shard(w, "zero_grad"))
        return;
    for (weft__range s = { 0 }; weft__next_range(m, true, &s);)
        w->dev.k->fill(&w->dev, s.n, 0, m->root->gradients + s.from);
    for (weft__parameter *p = NULL; (p = weft__next_parameter(m, p));)
        weft__node_of(&p->value)->has_gradient = false;
    weft__check_faults(w, "zero_grad");
}

void weft__check_gradients_exist(const weft_module *m, const char *function)
{
    weft__parameter *p = NULL;
    if (!m->w->check)
        return;
    while ((p = weft__next_parameter(m, p)) && !weft__node_of(&p->value)->has_gradient)
        ;
    weft__check_gradients_found(m->w, p != NULL, false, function);
}

void weft_divide_grad(weft_module *m, weft_tensor *divisor)
{
    weft *w = weft__ready(m);
    if (!w || !weft__refuse_in_shard(w, "divide_grad"))
        return;
    if (!WEFT__IS_USABLE(w, divisor, "divide_grad: the divisor"))
        return;
    if (divisor->f.type != WEFT_REAL || weft__elements(&divisor->f) != 1) {
        weft__fail(w, WEFT_ESHAPE, "divide_grad: the divisor is %s; expected one real",
                   WEFT__TEXT(&divisor->f));
        return;
    }
    weft__check_gradients_exist(m, "divide_grad");
    for (weft__range s = { 0 }; weft__next_range(m, true, &s);) {
        real *g = m->root->gradients + s.from;
        w->dev.k->divide(&w->dev, s.n, divisor->data, g);
    }
    weft__check_faults(w, "divide_grad");
}
