/* callback.c - protects the step while a function of the program runs inside a function of the library. Such
 * a callback must neither end the step nor free memory that the calling function still uses. */
#include "core/inside.h"

static weft__callback enter(weft *w, const char *kind, const char *name, weft_mark floor, bool allocator)
{
    weft__callback outer = inside(w)->callback;
    inside(w)->callback = (weft__callback){ outer.depth + 1, allocator, kind, name, floor };
    return outer;
}

weft__callback weft__callback_begin(weft *w, const char *kind, const char *name)
{
    return enter(w, kind, name, weft_mark_here(w), false);
}

weft__callback weft__callback_current(const weft *w) { return inside(w)->callback; }

void weft__callback_end(weft *w, weft__callback outer) { inside(w)->callback = outer; }

/* ---- calls that a callback must not make ---- */
const char *weft__callback_text(const weft *w, char text[WEFT__CALLBACK_TEXT])
{
    const weft__callback *c = &inside(w)->callback;
    snprintf(text, WEFT__CALLBACK_TEXT, "%s%s%.100s%s", c->kind, c->name ? " \"" : "", c->name ? c->name : "",
             c->name ? "\"" : "");
    return text;
}

bool weft__callback_refuses(weft *w, const char *function)
{
    char text[WEFT__CALLBACK_TEXT];
    if (inside(w)->callback.depth)
        weft__fail(w, WEFT_EARG,
                   "%s: called inside %s; a callback cannot end the step that it runs in. Call weft_%s after "
                   "the function that runs the callback has returned",
                   function, weft__callback_text(w, text), function);
    return inside(w)->callback.depth;
}

/* ---- the program's allocator ---- */
void *weft__allocate_by_program(size_t bytes, void *context)
{
    weft *w = context;
    weft__callback outer = enter(w, "weft_opts.allocate", NULL, inside(w)->callback.floor, true);
    void *p = inside(w)->memory.allocate(bytes, inside(w)->memory.user);
    weft__callback_end(w, outer);
    return p;
}

void weft__release_by_program(void *memory, void *context)
{
    weft *w = context;
    weft__callback outer = enter(w, "weft_opts.release", NULL, inside(w)->callback.floor, true);
    inside(w)->memory.release(memory, inside(w)->memory.user);
    weft__callback_end(w, outer);
}
