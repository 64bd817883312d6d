/* module.c - the tree of modules: names, iteration over parameters below a module, and the layer that
 * messages name.
 *
 * A root keeps one list of all parameters and buffers in creation order, which is the
 * order of its flat vectors. Iteration below a module filters this list. Parameters made together occupy
 * adjacent memory. */
#include <string.h>
#include "autograd/fused.h"
#include "core/os.h"
#include "nn/nn.h"

static weft_module none; /* a module that could not be made; never written */

weft *weft__ready(const weft_module *m)          { return m && m->w && !m->w->status ? m->w : NULL; }
weft *weft_module_context(const weft_module *m)       { return m ? m->w : NULL; }
weft_tensor *weft__inert(const weft_module *m)   { return m && m->w ? &m->w->nil : &weft__no_context()->nil; }

weft_tensor *weft__bad_input(const weft_module *m, const weft_tensor *x, const char *function)
{
    if (!m || !m->w) {
        weft *of_x = x ? x->w : weft__no_context();
        weft__fail(of_x, WEFT_EARG, "%s: the layer is NULL or could not be made", function);
        return &of_x->nil;
    }
    const weft_module *before = weft__enter(m);
    bool usable = WEFT__IS_USABLE(m->w, x, "%s: the input", function);
    weft__leave(m, before);
    return usable ? NULL : &m->w->nil;
}

/* ---- names ---- */
static const char *module_name_fault(const char *name)
{
    return !name                      ? "is NULL" :
           !*name                     ? "is empty" :
           strlen(name) >= WEFT__NAME ? "has more than 63 bytes" :
           strpbrk(name, "./")        ? "contains a dot or a slash, which separate the parts of a path" :
                                        NULL;
}

bool weft__path_for(weft *w, const weft_module *m, const char *name, const char *function,
                    char path[WEFT__PATH])
{
    const char *bad = module_name_fault(name);
    if (bad)
        weft__fail(w, WEFT_EARG, "%s: the name \"%.80s\"%s%s %s", function, name ? name : "", m ? " in " : "",
                   m ? m->path : "", bad);
    else if (m && weft__name_below(m, name))
        weft__fail(w, WEFT_EARG, "%s: %s has a \"%s\" already", function, m->path, name);
    else if (snprintf(path, WEFT__PATH, "%s%s%s", m ? m->path : "", m ? "." : "", name) >= WEFT__PATH)
        weft__fail(w, WEFT_EARG, "%s: \"%s\" in %s: the path is too long; expected at most %d bytes",
                   function, name, m->path, WEFT__PATH - 1);
    return !w->status && (!m || weft__names_reserve(m->root));
}

static const char *last_word(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

const char *weft__path_below(const weft__parameter *p, const weft_module *m)
{
    return p->path + strlen(m->path) + 1;
}

static const char *path_of(const weft_module *m) { return m->path; }

/* ---- making ---- */
static void module_end(void *p)
{
    weft_module *m = p;
    if (!m->w)
        return;                                  /* its name was refused */
    weft__release(m->w, m->lists[0].item);
    weft__release(m->w, m->lists[1].item);
    weft__release(m->w, m->names.bucket);
    weft__device_release(m->w, m->values);
    weft__device_release(m->w, m->gradients);
}

static void root_recover(void *p)
{
    weft_module *m = p;
    if (m->w && m->n)
        m->w->dev.k->fill(&m->w->dev, m->n, 0, m->gradients);
    for (weft__parameter *q = m->first; q; q = q->next_in_root)
        weft__node_of(&q->value)->has_gradient = false;
}

static weft_module *new_module(weft *w, weft_module *parent, const char *name)
{
    char path[WEFT__PATH] = "";
    w->running = "module";
    if (!weft__path_for(w, parent, name, "module", path))
        return &none;
    weft_module *m = weft__own(w, sizeof *m, module_end, parent ? NULL : root_recover);
    if (!m)
        return &none;
    m->w = w;
    m->parent = parent;
    m->root = parent ? parent->root : m;
    memcpy(m->path, path, sizeof path);
    m->name = last_word(m->path);
    return m;
}

weft_module *weft_module_new(weft *w, const char *name)
{
    if (!weft_ok(w) || !weft__tape_of(w))
        return &none;
    w->tape->scope_name = path_of;
    return new_module(w, NULL, name);
}

weft_module *weft_submodule_new(weft_module *parent, const char *name)
{
    weft *w = weft__ready(parent);
    weft_module *m = w ? new_module(w, parent, name) : &none;
    if (!m->w)
        return m;
    weft__names_add(m->root, &m->entry, m->path, NULL);
    if (parent->last_child)
        parent->last_child->sibling = m;
    else
        parent->child = m;
    return parent->last_child = m;
}

void *weft__layer(weft_module *m, size_t bytes)
{
    weft *w = weft__ready(m);
    if (!w)
        return NULL;
    w->running = "layer";
    return weft__own(w, bytes, NULL, NULL);
}

bool weft__sizes_given(const weft_module *m, const char *layer, const char *name, bool given,
                       const weft__size_option *sizes, int n)
{
    weft *w = weft__ready(m);
    if (w && !given)
        weft__fail(w, WEFT_EARG, "%s \"%.80s\" in %s: opts is NULL", layer, name ? name : "", m->path);
    for (int i = 0; w && given && i < n; i++)
        if (sizes[i].value < 1)
            weft__fail(w, WEFT_EARG, "%s \"%.80s\" in %s: %s is %lld%s; expected 1 or more", layer,
                       name ? name : "", m->path, sizes[i].field, (long long)sizes[i].value,
                       sizes[i].value ? "" : ", or missing");
    return w && !w->status;
}

/* ---- a root's flat vectors ---- */
int64_t weft__padded_size(const weft__parameter *p)
{
    return (weft__elements(&p->value.f) + WEFT__GRAIN - 1) / WEFT__GRAIN * WEFT__GRAIN;
}

void weft__truncate(weft_module *root, int64_t n)
{
    weft__device *d = &root->w->dev;
    if (n == root->n)
        return;
    d->k->fill(d, root->n - n, 0, root->values + n);
    d->k->fill(d, root->n - n, 0, root->gradients + n);
    root->n = n;
}

static void remove_names(weft_module *m) /* of m and all modules below it */
{
    weft__names_remove(m->root, &m->entry);
    for (weft__parameter *p = m->parameters; p; p = p->next)
        weft__names_remove(m->root, &p->entry);
    for (weft_module *child = m->child; child; child = child->sibling)
        remove_names(child);
}

static void count_in(weft_module *m, weft__parameter *p)
{
    m->below_first = m->below_first ? m->below_first : p;
    m->below_last = p;
    if (p->tied)
        return;
    m->count[p->buffer]++;
    m->elements += p->buffer ? 0 : weft__elements(&p->value.f);
}

static void recount(weft_module *m)
{
    m->below_first = m->below_last = NULL;
    m->elements = 0;
    for (int i = 0; i < 2; i++) {
        m->count[i] = m->lists[i].n = 0;
        m->lists[i].last = NULL;
    }
    for (weft__parameter *p = m->root->first; p; p = p->next_in_root)
        if (weft__is_below(p->module, m))
            count_in(m, p);
}

static void unlink_child(weft_module *m)
{
    weft_module *before = NULL, **child = &m->parent->child;
    for (; *child != m; child = &before->sibling)
        before = *child;
    *child = m->sibling;
    if (m->parent->last_child == m)
        m->parent->last_child = before;
}

/* Removes m and its parts: made last, they are the end of the root's list and flat vectors. */
static void remove_module(weft_module *m)
{
    weft_module *root = m->root;
    unlink_child(m);
    remove_names(m);
    weft__parameter **link = &root->first, *last = NULL;
    for (; *link && !weft__is_below((*link)->module, m); link = &(*link)->next_in_root)
        last = *link;
    int64_t n = root->n;
    for (const weft__parameter *p = *link; p; p = p->next_in_root)
        n -= p->buffer || p->tied ? 0 : weft__padded_size(p);
    *link = NULL;
    root->last = last;
    weft__truncate(root, n);
    for (weft_module *above = m->parent; above; above = above->parent)
        recount(above);
}

void *weft__finish_layer(weft_module *m, void *layer, void *otherwise)
{
    if (!m->w || (layer && !m->w->status))
        return m->w ? layer : otherwise;
    remove_module(m);
    return otherwise;
}

void *weft__layer_new(weft_module *parent, const char *name, size_t bytes)
{
    weft_module *m = weft_submodule_new(parent, name);
    weft_module **layer = weft__layer(m, bytes);
    if (layer)
        *layer = m;
    return layer ? layer : weft__finish_layer(m, NULL, NULL);
}

/* ---- texts of a module ---- *
 * A GRU and an LSTM of suitable widths have parameters of the same names and shapes. Only these texts
 * distinguish them. Checkpoints save the texts and refuse a file whose texts differ. The list is sorted by
 * key. */
void weft__describe(weft_module *m, const char *key, const char *value)
{
    if (!m || !m->w)
        return;
    weft__note **link = &m->notes, *note;
    if (strlen(key) >= sizeof note->key || strlen(value) >= sizeof note->value) {
        weft__fail(m->w, WEFT_EARG, "describe: \"%s\" = \"%s\" is too long", key, value);
        return;
    }
    while (*link && strcmp((*link)->key, key) < 0)
        link = &(*link)->next;
    if (*link && !strcmp((*link)->key, key)) {
        note = *link;
    } else {
        note = weft__own(m->w, sizeof *note, NULL, NULL);
        if (!note)
            return;
        note->next = *link;
        *link = note;
        memcpy(note->key, key, strlen(key) + 1);
    }
    memcpy(note->value, value, strlen(value) + 1);
}

/* ---- scopes ---- */
const weft_module *weft__enter(const weft_module *m)
{
    const weft_module *before = m->w->tape->scope;
    m->w->tape->scope = m;
    return before;
}

void weft__leave(const weft_module *m, const weft_module *before) { m->w->tape->scope = before; }
weft_tensor *weft__leave_with(const weft_module *m, const weft_module *before, weft_tensor *y)
{
    weft__leave(m, before);
    return y;
}

/* ---- iteration ---- */
bool weft__is_below(const weft_module *part, const weft_module *m)
{
    while (part && part != m)
        part = part->parent;
    return part == m;
}

void weft__append(weft__parameter *p)
{
    weft_module *m = p->module, *root = m->root;
    if (m->last_parameter)
        m->last_parameter->next = p;
    else
        m->parameters = p;
    m->last_parameter = p;
    if (root->last)
        root->last->next_in_root = p;
    else
        root->first = p;
    root->last = p;
    weft__names_add(root, &p->entry, p->path, p);
    for (; m; m = m->parent)
        count_in(m, p);
    weft__list_parameters(root);
}

weft__parameter *weft__next_name(const weft_module *m, const weft__parameter *p)
{
    if (!m || p == m->below_last)
        return NULL;
    weft__parameter *next = p ? p->next_in_root : m->below_first;
    while (next && !weft__is_below(next->module, m))
        next = next->next_in_root;
    return next;
}

weft__parameter *weft__next_parameter(const weft_module *m, const weft__parameter *p)
{
    weft__parameter *next = weft__next_name(m, p);
    while (next && next->tied)
        next = weft__next_name(m, next);
    return next;
}

bool weft__next_range(const weft_module *m, bool frozen, weft__range *s)
{
    s->n = 0;
    for (weft__parameter *p; (p = weft__next_parameter(m, s->last)); s->last = p) {
        if (p->buffer || (weft__node_of(&p->value)->frozen && !frozen))
            continue;
        if (s->n && p->offset != s->from + s->n)
            return true;
        s->from = s->n ? s->from : p->offset;
        s->n += weft__padded_size(p);
    }
    return s->n > 0;
}
