/* find.c - the parameters and buffers below a module: by number, by path, and how many they are. */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include "autograd/autograd.h"
#include "nn/nn.h"

typedef struct { bool buffers; int left; weft__parameter *found; } search;

static bool one_less(weft__parameter *p, void *user)
{
    search *s = user;
    if (p->buffer != s->buffers || s->left-- > 0)
        return true;
    s->found = p;
    return false;
}

static int count_below(const weft_module *m, bool buffers)
{
    search s = { buffers, INT32_MAX, NULL };
    weft__each_parameter(m, one_less, &s);
    return INT32_MAX - s.left;
}

static weft_tensor *at(const weft_module *m, bool buffers, int i, const char **path)
{
    search s = { buffers, i, NULL };
    if (path)
        *path = "";
    if (i >= 0)
        weft__each_parameter(m, one_less, &s);
    if (!s.found) {
        weft__fail(m ? m->w : NULL, WEFT_EARG, "%s_at: %d; 0 .. %d is expected",
                   buffers ? "buffer" : "parameter", i, count_below(m, buffers) - 1);
        return weft__inert(m);
    }
    if (path)
        *path = s.found->path + strlen(m->path) + 1;
    return &s.found->value;
}

int weft_parameter_count(const weft_module *m) { return count_below(m, false); }
int weft_buffer_count(const weft_module *m)    { return count_below(m, true); }
weft_tensor *weft_parameter_at(const weft_module *m, int i, const char **path)
{
    return at(m, false, i, path);
}
weft_tensor *weft_buffer_at(const weft_module *m, int i, const char **path) { return at(m, true, i, path); }

weft_tensor *weft_find_parameter(const weft_module *m, const char *path)
{
    if (!m || !m->w || !path)
        return NULL;
    for (weft__parameter *p = m->root->first; p; p = p->later)
        if (weft__below(p->module, m) && !strcmp(p->path + strlen(m->path) + 1, path))
            return p->tied ? &p->tied->value : &p->value;
    if (!weft__is_no_context(m->w))              /* for the operator that gets this NULL */
        snprintf(m->w->missing, sizeof m->w->missing,
                 "is NULL (weft_find_parameter found no \"%.80s\" below %.80s; weft_print_module lists all)",
                 path, m->path);
    return NULL;
}

bool weft__path_fits(const weft__parameter *p, const weft_module *m, const char *pattern)
{
    return fnmatch(pattern, p->path + strlen(m->path) + 1, 0) == 0;
}

static bool count_one(weft__parameter *p, void *n)
{
    *(int64_t *)n += p->buffer ? 0 : weft__elements(&p->value.f);
    return true;
}

int64_t weft_parameter_numel(const weft_module *m)
{
    int64_t n = 0;
    weft__each_parameter(m, count_one, &n);
    return n;
}
