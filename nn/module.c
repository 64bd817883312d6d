/* module.c - the tree of modules: names, walks over what is below a module, and the layer that messages name.
 *
 * A root keeps one list of all parameters and buffers in the order in which they were made, because that is
 * the order of its flat vectors: a walk below a module is a filter of that list, and what was made together
 * comes as one run of memory. */
#include <string.h>
#include "nn/nn.h"

static weft_module none;                         /* what could not be made; no one writes to it */

weft *weft__ready(const weft_module *m)          { return m && m->w && !m->w->status ? m->w : NULL; }
weft *weft_module_context(const weft_module *m)       { return m ? m->w : NULL; }
weft_tensor *weft__inert(const weft_module *m)   { return m && m->w ? &m->w->nil : &weft__no_context()->nil; }

weft_tensor *weft__refused(const weft_module *m, const weft_tensor *x, const char *function)
{
    if (!m || !m->w) {
        weft *of_x = x ? x->w : weft__no_context();
        weft__fail(of_x, WEFT_EARG, "%s: the layer is NULL or could not be made", function);
        return &of_x->nil;
    }
    weft *w = m->w;
    const char *wrong = weft__wrong(w, x);
    if (!wrong)
        return NULL;
    const weft_module *before = weft__enter(m);
    weft__fail(w, WEFT_EARG, "%s: the input %s", function, wrong);
    weft__leave(m, before);
    return &w->nil;
}

/* ---- names ---- */
static const char *module_name_fault(const char *name)
{
    return !name ? "is NULL" : !*name ? "is empty" : strlen(name) >= WEFT__NAME ? "has more than 63 bytes"
         : strpbrk(name, "./") ? "holds a dot or a slash, which join names to paths" : NULL;
}

static bool name_is_taken(const weft_module *m, const char *name)
{
    for (const weft_module *c = m->child; c; c = c->sibling)
        if (!strcmp(c->name, name))
            return true;
    for (const weft__parameter *p = m->parameters; p; p = p->next)
        if (!strcmp(p->name, name))
            return true;
    return false;
}

bool weft__path_for(weft *w, const weft_module *m, const char *name, const char *function,
                    char path[WEFT__PATH])
{
    const char *bad = module_name_fault(name);
    if (bad)
        weft__fail(w, WEFT_EARG, "%s: the name \"%.80s\"%s%s %s", function, name ? name : "", m ? " in " : "",
                   m ? m->path : "", bad);
    else if (m && name_is_taken(m, name))
        weft__fail(w, WEFT_EARG, "%s: %s has a \"%s\" already", function, m->path, name);
    else if (snprintf(path, WEFT__PATH, "%s%s%s", m ? m->path : "", m ? "." : "", name) >= WEFT__PATH)
        weft__fail(w, WEFT_EARG, "%s: \"%s\" in %s: the path has more than %d bytes", function, name, m->path,
                   WEFT__PATH - 1);
    return !w->status;
}

static const char *last_word(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

static const char *below_of(const char *path, const weft_module *from)
{
    return from ? path + strlen(from->path) + 1 : path;
}

const char *weft__parameter_path(const weft__parameter *p, const weft_module *from, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s", below_of(p->path, from));
    return buffer;
}

const char *weft__module_path(const weft_module *m, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s", m->path);
    return buffer;
}

/* ---- making ---- */
static void root_end(void *p)
{
    weft_module *m = p;
    if (!m->w)
        return;                                  /* its name was refused */
    weft__device_release(m->w, m->values);
    weft__device_release(m->w, m->gradients);
}

static void root_recover(void *p)
{
    weft_module *m = p;
    if (m->w && m->n)
        m->w->dev.k->fill(&m->w->dev, m->n, 0, m->gradients);
    for (weft__parameter *q = m->first; q; q = q->later)
        q->value.node.given = false;
}

static weft_module *new_module(weft *w, weft_module *parent, const char *name)
{
    char path[WEFT__PATH] = "";
    if (!weft__path_for(w, parent, name, "module", path))
        return &none;
    w->running = "module";
    weft_module *m = weft__own(w, sizeof *m, parent ? NULL : root_end, parent ? NULL : root_recover);
    if (!m)
        return &none;
    m->w = w, m->parent = parent, m->root = parent ? parent->root : m;
    memcpy(m->path, path, sizeof path);
    m->name = last_word(m->path);
    return m;
}

weft_module *weft_module_new(weft *w, const char *name)
{
    if (!weft_ok(w) || !weft__tape_of(w))
        return &none;
    w->tape->scope_name = weft__module_path;
    return new_module(w, NULL, name);
}

weft_module *weft_submodule_new(weft_module *parent, const char *name)
{
    weft *w = weft__ready(parent);
    weft_module *m = w ? new_module(w, parent, name) : &none;
    if (!m->w)
        return m;
    weft_module **at = &parent->child;
    while (*at)
        at = &(*at)->sibling;
    return *at = m;
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
        if (sizes[i].is < 1)
            weft__fail(w, WEFT_EARG, "%s \"%.80s\" in %s: %s is %lld%s; 1 or more is expected", layer,
                       name ? name : "", m->path, sizes[i].field, (long long)sizes[i].is,
                       sizes[i].is ? "" : ", or missing");
    return w && !w->status;
}

/* ---- a root's flat vectors ---- */
int64_t weft__piece(const weft__parameter *p)
{
    return (weft__elements(&p->value.f) + WEFT__GRAIN - 1) / WEFT__GRAIN * WEFT__GRAIN;
}

void weft__cut_back(weft_module *root, int64_t n)
{
    weft__device *d = &root->w->dev;
    if (n == root->n)
        return;
    d->k->fill(d, root->n - n, 0, root->values + n);
    d->k->fill(d, root->n - n, 0, root->gradients + n);
    root->n = n;
}

/* What was made below m came last: the end of the root's list, and of its flat vectors. */
static void unmade(weft_module *m)
{
    weft_module **child = &m->parent->child, *root = m->root;
    while (*child != m)
        child = &(*child)->sibling;
    *child = m->sibling;
    weft__parameter **at = &root->first, *last = NULL;
    for (; *at && !weft__below((*at)->module, m); at = &(*at)->later)
        last = *at;
    int64_t n = root->n;
    for (const weft__parameter *p = *at; p; p = p->later)
        n -= p->buffer || p->tied ? 0 : weft__piece(p);
    *at = NULL, root->last = last;
    weft__cut_back(root, n);
}

void *weft__finished(weft_module *m, void *layer, void *otherwise)
{
    if (!m->w || (layer && !m->w->status))
        return m->w ? layer : otherwise;
    unmade(m);
    return otherwise;
}

/* ---- scopes ---- */
const weft_module *weft__enter(const weft_module *m)
{
    const weft_module *before = m->w->tape->scope;
    m->w->tape->scope = m;
    return before;
}

void weft__leave(const weft_module *m, const weft_module *before) { m->w->tape->scope = before; }

/* ---- walks ---- */
bool weft__below(const weft_module *part, const weft_module *m)
{
    while (part && part != m)
        part = part->parent;
    return part == m;
}

void weft__each_parameter(const weft_module *m, bool (*visit)(weft__parameter *, void *), void *user)
{
    if (!m || !m->w)
        return;
    for (weft__parameter *p = m->root->first; p; p = p->later)
        if (!p->tied && weft__below(p->module, m) && !visit(p, user))
            return;
}

void weft__each_run(const weft_module *m, bool frozen, void (*visit)(weft_module *, int64_t, int64_t, void *),
                    void *user)
{
    int64_t from = 0, end = 0;
    if (!m || !m->w)
        return;
    for (const weft__parameter *p = m->root->first; p; p = p->later) {
        if (p->tied || p->buffer || (p->value.node.frozen && !frozen) || !weft__below(p->module, m))
            continue;
        if (p->at != end) {
            if (end > from)
                visit(m->root, from, end - from, user);
            from = p->at;
        }
        end = p->at + weft__piece(p);
    }
    if (end > from)
        visit(m->root, from, end - from, user);
}
