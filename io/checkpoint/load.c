/* load.c - weft_load and weft_load_matching: everything is read and compared first, then put in place, so
 * that an error leaves module, optimiser, streams and items as they were. */
#include <stdlib.h>
#include <string.h>
#include "io/checkpoint/checkpoint.h"

typedef struct {
    weft__stage stage;
    weft_module *m;
    weft_load_report *report;
    weft__paths table;                           /* while the module's names are compared */
    const char *group;
} loading;

/* ---- parameters and buffers ---- */
static bool agrees(loading *l, const weft__parameter *p, const char *path, const weft__kind *want)
{
    char is_text[128], want_text[128], is_notes[WEFT__NOTES], want_notes[WEFT__NOTES];
    weft__kind is;
    weft__h5 *h = l->stage.h;
    if (!weft__h5_find(h, path, &is)) {
        weft__found(h, l->report, WEFT__MISSING, "%s%s", path,
                    l->report ? "" : " is not in the file, but the module has it");
        return false;
    }
    weft__h5_notes(h, path, is_notes, sizeof is_notes);
    weft__notes_of(p, want_notes);
    if (strcmp(is_notes, want_notes))            /* before the shape: an LSTM is no GRU of another shape */
        weft__found(h, l->report, WEFT__OTHER_LAYER, "%s is of a layer with \"%s\", the module's has \"%s\"",
                    path, is_notes, want_notes);
    else if (is.type != want->type && l->report)  /* no other library's numbers, which it would leave out */
        weft__h5_fail(h, WEFT_EFORMAT, "%s is %s, the module has %s", path, weft__kind_text(&is, is_text),
                      weft__kind_text(want, want_text));
    else if (!weft__kind_same(&is, want))
        weft__found(h, l->report, WEFT__OTHER_SHAPE, "%s is %s, the module has %s", path,
                    weft__kind_text(&is, is_text), weft__kind_text(want, want_text));
    else
        return !weft__h5_status(h);
    return false;
}

static bool is_known(const char *name, bool is_group, void *user)
{
    loading *l = user;
    char path[WEFT__NAMED];
    const weft__parameter *p = is_group ? NULL : weft__paths_find(&l->table, l->m, name);
    bool known = p && p->buffer == (l->group[0] == 'b') && weft__is_stored(l->m, p);
    snprintf(path, sizeof path, "%s/%s", l->group, name);
    if (!known)
        weft__found(l->stage.h, l->report, WEFT__EXTRA, "%s%s", path,
                    l->report ? "" : " is in the file, but the module does not have it");
    return true;
}

static void hold_module(loading *l)
{
    char path[WEFT__NAMED];
    for (const weft__parameter *p = NULL; (p = weft__stored_after(l->m, p)); ) {
        const weft_tensor *x = &weft__numbers_of(p)->value;
        weft__kind want = weft__kind_of(x);
        if (!agrees(l, p, weft__set_of(l->m, p, path), &want))
            continue;
        weft__hold_set(&l->stage, path, &want, want.type, x->data, true);
        weft__found(l->stage.h, l->report, WEFT__LOADED, "%s", path);
    }
    if (!weft__paths_make(&l->table, l->m, l->stage.h))
        return;
    weft__h5_each(l->stage.h, l->group = "parameters", is_known, l);
    weft__h5_each(l->stage.h, l->group = "buffers", is_known, l);
    weft__paths_end(&l->table);
}

/* ---- the optimiser ---- */
typedef struct { weft__h5 *h; const weft__saved *all; int n; } known_state;

static bool is_state(const char *name, bool is_group, void *user)
{
    const known_state *k = user;
    bool known = !strcmp(name, "order");
    for (int i = 0; i < k->n && !is_group; i++)
        known = known || !strcmp(name, k->all[i].name);
    if (!known)
        weft__h5_fail(k->h, WEFT_EFORMAT, "optimizer/%s is in the file, but the optimiser does not have it",
                      name);
    return known;
}

/* to be freed; NULL: not there, or an error */
static char *text_of(weft__h5 *h, const char *path)
{
    weft__kind k;
    if (!weft__h5_find(h, path, &k) || k.type != WEFT__CHARS)
        return NULL;
    char *text = calloc(1, (size_t)k.size[0] + 1);
    if (text)
        weft__h5_read(h, path, &k, WEFT__CHARS, text);
    else
        weft__h5_fail(h, WEFT_ENOMEM, "no memory for %s, %lld bytes", path, (long long)k.size[0]);
    return text;
}

/* the vectors of the optimiser know no names, so the order of those must agree */
static void check_order(loading *l)
{
    char *own = weft__order_of(l->m), *theirs = text_of(l->stage.h, "optimizer/order");
    size_t at = 0, line = 0;
    for (; own && theirs && own[at] && own[at] == theirs[at]; at++)
        line = own[at] == '\n' ? at + 1 : line;
    if (!own)
        weft__h5_fail(l->stage.h, WEFT_ENOMEM, "no memory for the names of the parameters");
    else if (!theirs || own[at] != theirs[at])
        weft__h5_fail(l->stage.h, WEFT_EFORMAT,
                      "the optimiser's numbers belong to parameters in another order: \"%.*s\", where the "
                      "module has \"%.*s\"",
                      theirs ? (int)strcspn(theirs + line, "\n") : 0, theirs ? theirs + line : "",
                      (int)strcspn(own + line, "\n"), own + line);
    free(own);
    free(theirs);
}

static void check_rule(weft__h5 *h, const weft__saved *rule)      /* a rule is compared, not loaded */
{
    static const char *const names[] = { "SGD", "RMSprop", "Adam", "AdamW" };
    int64_t is = 0, want = *(const int64_t *)rule->data;
    weft__h5_read(h, "optimizer/rule", &(weft__kind){ WEFT__I64, 1, { 1 } }, WEFT__I64, &is);
    if (is != want)
        weft__h5_fail(h, WEFT_EFORMAT, "its optimiser is %s, the one given %s",
                      (uint64_t)is < 4 ? names[is] : "of an unknown rule", names[want]);
}

/* The numbers are refused before anything is changed. */
static void hold_numbers_of_optimiser(loading *l, weft_optim *o, const weft__saved *entry, const char *path,
                                      const weft__kind *k)
{
    char why[160];
    const weft__held *before = l->stage.last;
    weft__hold_set(&l->stage, path, k, k->type, entry->data, entry->device);
    if (l->stage.last != before && !weft__h5_status(l->stage.h) &&
        !weft__optim_accepts(o, entry, l->stage.last->values, why, sizeof why))
        weft__h5_fail(l->stage.h, WEFT_EFORMAT,
                      "%s: %s. Its checksums are right, so a program has written this; load an earlier "
                      "checkpoint", path, why);
}

static void hold_optimiser(loading *l, weft_optim *o)
{
    char path[WEFT__NAMED];
    weft__saved all[32];
    known_state known = { l->stage.h, all, weft__optim_saved(o, all, 32) };
    if (known.n == 0)
        weft__h5_fail(l->stage.h, WEFT_EARG, "the optimiser to be loaded could not be made");
    else if (!weft__h5_is(l->stage.h, "optimizer"))
        weft__h5_fail(l->stage.h, WEFT_EFORMAT, "it has no optimiser");
    for (int i = 0; i < known.n; i++) {
        weft__kind k = { weft__number_of(all[i].type), 1, { all[i].n } };
        snprintf(path, sizeof path, "optimizer/%s", all[i].name);
        if (!strcmp(all[i].name, "rule"))
            check_rule(l->stage.h, &all[i]);
        else
            hold_numbers_of_optimiser(l, o, &all[i], path, &k);
    }
    check_order(l);
    weft__h5_each(l->stage.h, "optimizer", is_state, &known);
}

/* ---- random streams ---- */
/* A counter that no run can have reached would soon overflow. */
static void check_counter(weft__h5 *h, const char *path, uint64_t count)
{
    if (!weft__h5_status(h) && count > INT64_MAX / 2)
        weft__h5_fail(h, WEFT_EFORMAT, "%s is damaged: it counts %lld draws; 0 .. 2^62 are expected", path,
                      (long long)count);
}

static void hold_numbers(weft__stage *s, weft_stream *to, uint64_t key, uint64_t count)
{
    uint64_t *a = weft__hold(s, &to->key, sizeof key, false),
             *b = weft__hold(s, &to->count, sizeof count, false);
    if (a && b)
        *a = key, *b = count;
}

/* NULL: no memory, which is the file function's error only */
static weft_stream *stream_of(weft *w, const char *name)
{
    weft__listener *listener = weft__hush(w);
    weft_stream *s = weft_stream_of(w, name);    /* as good as none while its count is 0 */
    weft__unhush(w, listener, !s);
    return s;
}

static void hold_stream(weft__stage *s, weft *w, const char *path)
{
    char name[sizeof w->random.streams->name];
    uint64_t at[2] = { 0, 0 };
    weft__h5_read(s->h, path, &(weft__kind){ WEFT__I64, 1, { 2 } }, WEFT__I64, at);
    check_counter(s->h, path, at[1]);
    if (!weft__h5_text(s->h, path, "name", name, sizeof name)) {
        weft__h5_fail(s->h, WEFT_EFORMAT, "%s has no name", path);
        return;
    }
    weft_stream *to = stream_of(w, name);
    if (!to && *name)
        weft__h5_fail(s->h, WEFT_ENOMEM, "%s: no memory for the random stream \"%s\"", path, name);
    else if (!to)
        weft__h5_fail(s->h, WEFT_EFORMAT, "%s: a random stream has an empty name", path);
    else
        hold_numbers(s, to, at[0], at[1]);
}

static void hold_streams(weft__stage *s, weft *w)
{
    const weft__kind one = { WEFT__I64, 0, { 0 } };
    uint64_t seed = 0, draw = 0;
    char path[WEFT__NAMED];
    weft__h5_read(s->h, "streams/seed", &one, WEFT__I64, &seed);
    weft__h5_read(s->h, "streams/draw", &one, WEFT__I64, &draw);
    check_counter(s->h, "streams/draw", draw);
    weft__hold_set(s, "streams/seed", &one, WEFT__I64, &w->random.seed, false);
    weft__hold_set(s, "streams/draw", &one, WEFT__I64, &w->random.draw, false);
    /* those that the file does not have start anew */
    for (weft_stream *k = w->random.streams; k; k = k->next)
        hold_numbers(s, k, weft__hash(seed, k->name), 0);
    for (int i = 0; !weft__h5_status(s->h); i++) {
        snprintf(path, sizeof path, "streams/%d", i);
        if (!weft__h5_is(s->h, path))
            break;
        hold_stream(s, w, path);
    }
}

/* ---- all of it ---- */
static weft_status finish_load(loading *l, weft__sealed *file)
{
    weft *w = l->m->w;
    weft_status s = weft__sealed_end(file);
    if (s) {
        weft__discard(&l->stage);
        return s;
    }
    weft__deliver(w, &l->stage);
    weft__all_changed(l->m->root);
    return w->dev.failure[0] ? weft__file_fail(WEFT_EDEVICE, "the numbers read did not reach the device: %s",
                                               w->dev.failure) :
                               WEFT_OK;
}

weft_status weft__load_image(const char *path, const weft__image *image, weft_module *m, weft_optim *o,
                             const weft_checkpoint_item *items, int64_t n)
{
    weft__sealed file;
    if (!m && n && !o)
        return weft__items_load(path, image, items, n);
    weft_status s = weft__usable_with(m, o, "weft_load", path);
    if (!s)
        s = weft__items_good("weft_load", items, n);
    if (!s)
        s = weft__sealed_open(path, image, &file);
    if (s)
        return s;
    loading l = { .stage = { file.h, NULL, NULL }, .m = m };
    hold_module(&l);
    if (o)
        hold_optimiser(&l, o);
    hold_streams(&l.stage, m->w);
    weft__items_hold(&l.stage, items, n);
    s = finish_load(&l, &file);
    if (!s && o)
        weft__optim_restored(o);
    return s;
}

weft_status weft_load(const char *path, weft_module *m, weft_optim *o, const weft_checkpoint_item *items,
                      int64_t n)
{
    return weft__load_image(path, NULL, m, o, items, n);
}

weft_status weft_load_matching(const char *path, weft_module *m, weft_load_report *report)
{
    weft__sealed file;
    weft_load_report own;
    report = report ? report : &own;
    *report = (weft_load_report){ 0 };
    weft_status s = weft__usable(m, "weft_load_matching", path);
    if (!s)
        s = weft__sealed_open(path, NULL, &file);
    if (s)
        return s;
    loading l = { .stage = { file.h, NULL, NULL }, .m = m, .report = report };
    hold_module(&l);
    return finish_load(&l, &file);
}
