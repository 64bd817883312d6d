/* load.c - weft_load and weft_load_matching.
 *
 * They first read and compare everything, then put it in place. So an error leaves module, optimiser, streams
 * and items unchanged. */
#include <stdlib.h>
#include <string.h>
#include "io/checkpoint/checkpoint.h"

/* ---- values that wait until everything has been read and checked ---- */
weft_status weft__stage_status(const weft__stage *s) { return s->file ? s->file->status : s->status; }

void weft__stage_fail(weft__stage *s, weft_status status, const char *format, ...)
{
    char text[640];
    WEFT__PLAIN_TEXT(text, sizeof text, format);
    if (s->file)
        weft__sealed_fail(s->file, status, "%s", text);
    else if (!s->status)
        s->status = weft__file_fail(status, "%s: %s", s->path, text);
}

void *weft__hold(weft__stage *s, void *to, size_t bytes, bool device)
{
    if (weft__stage_status(s))
        return NULL;
    weft__held *k = bytes < SIZE_MAX - sizeof *k ? calloc(1, sizeof *k + bytes) : NULL;
    if (!k) {
        weft__stage_fail(s, WEFT_ENOMEM, "no memory to read %zu bytes", bytes);
        return NULL;
    }
    k->target = to;
    k->bytes = bytes;
    k->device = device;
    if (s->last)
        s->last->next = k;
    else
        s->first = k;
    s->last = k;
    return k->values;
}

/* Returns the values, which wait for `to`; NULL after a failure. */
static const void *hold_array(weft__stage *s, const char *path, const weft__kind *kind, void *to, bool device)
{
    void *values = weft__hold(s, to, weft__kind_bytes(kind), device);
    if (values)
        weft__sealed_read(s->file, path, kind, values);
    return s->file->status ? NULL : values;
}

weft_status weft__stage_end(weft__stage *s, const weft_module *m)
{
    weft *w = m ? m->w : NULL;
    weft_status status = s->file ? weft__sealed_end(s->file) : s->status;
    for (weft__held *k = s->first, *next; k; k = next) {  /* in the order of reading, so the last one wins */
        next = k->next;
        if (!status && k->device && k->bytes)
            w->dev.k->upload(&w->dev, k->target, k->values, k->bytes);
        else if (!status && k->bytes)
            memcpy(k->target, k->values, k->bytes);
        free(k);
    }
    if (!status && m)
        weft__mark_all_changed(m->root);
    if (!status && w && w->dev.failure[0])
        status = weft__file_fail(WEFT_EDEVICE, "the copy to the device failed: %s", w->dev.failure);
    return status;
}

/* ---- findings of a partial load, one a line; without a report the first one is the error ---- */
void weft__report_line(weft_load_report *r, const char *word, const char *text)
{
    static const char more[] = "...\n";
    size_t length = strlen(r->text), n = strlen(word) + strlen(text) + 2;
    if (length + n + sizeof more <= sizeof r->text)
        snprintf(r->text + length, n + 1, "%s %s\n", word, text);
    else if (length < 4 || strcmp(r->text + length - 4, more))
        memcpy(r->text + length, more, sizeof more);
}

void weft__report_finding(weft__stage *s, weft_load_report *r, weft__finding finding, const char *format, ...)
{
    static const char *const word[] = { "", "missing", "extra", "shape", "layer" },
                      *const more[] = { "", " is not in the file, but the module has it",
                                        " is in the file, but the module does not have it", "", "" };
    char text[512];
    if (weft__stage_status(s))
        return;
    WEFT__PLAIN_TEXT(text, sizeof text, format);
    if (!r && finding != WEFT__LOADED)
        weft__stage_fail(s, finding == WEFT__OTHER_SHAPE ? WEFT_ESHAPE : WEFT_EFORMAT, "%s%s", text,
                         more[finding]);
    if (!r)
        return;
    int *count[] = { &r->loaded, &r->missing, &r->extra, &r->other_shape, &r->other_shape };
    ++*count[finding];
    if (finding != WEFT__LOADED)
        weft__report_line(r, word[finding], text);
}

typedef struct {
    weft__stage stage;
    weft_module *m;
    weft_load_report *report;
    const char *group;
} loading;

/* ---- parameters and buffers ---- */
/* Writes the notes of the module, "cell lstm, gates i f g o"; "" without notes. */
static void list_notes(const weft__parameter *p, char text[WEFT__NOTES])
{
    size_t length = 0;
    *text = 0;
    for (const weft__note *n = weft__numbers_of(p)->module->notes; n && length < WEFT__NOTES; n = n->next)
        length += (size_t)snprintf(text + length, WEFT__NOTES - length, "%s%s %s", length ? ", " : "", n->key,
                                   n->value);
}

static bool agrees(loading *l, const weft__parameter *p, const char *path, const weft__kind *expected)
{
    char is_text[128], want_text[128], is_notes[WEFT__NOTES], want_notes[WEFT__NOTES];
    weft__kind found;
    weft__sealed *f = l->stage.file;
    if (!weft__sealed_find(f, path, &found)) {
        weft__report_finding(&l->stage, l->report, WEFT__MISSING, "%s", path);
        return false;
    }
    weft__sealed_notes(f, path, is_notes, sizeof is_notes);
    list_notes(p, want_notes);
    if (strcmp(is_notes, want_notes))            /* before the shape: a GRU is not an LSTM of another shape */
        weft__report_finding(&l->stage, l->report, WEFT__OTHER_LAYER,
                             "%s is of a layer with \"%s\"; expected \"%s\", as in "
                             "the module",
                             path, is_notes, want_notes);
    else if (found.type != expected->type && l->report)  /* a partial load would leave out every weight */
        weft__sealed_fail(f, WEFT_EFORMAT, "%s is %s; expected %s, as in the module", path,
                      weft__kind_text(&found, is_text), weft__kind_text(expected, want_text));
    else if (!weft__kind_same(&found, expected))
        weft__report_finding(&l->stage, l->report, WEFT__OTHER_SHAPE,
                             "%s is %s; expected %s, as in the module", path,
                             weft__kind_text(&found, is_text), weft__kind_text(expected, want_text));
    else
        return !f->status;
    return false;
}

static bool is_known(const char *name, bool is_group, void *user)
{
    loading *l = user;
    const weft__parameter *p = is_group ? NULL : weft__parameter_named(l->m, name);
    if (!p || p->buffer != (l->group[0] == 'b') || !weft__is_stored(l->m, p))
        weft__report_finding(&l->stage, l->report, WEFT__EXTRA, "%s/%s", l->group, name);
    return true;
}

static void hold_module(loading *l)
{
    char path[WEFT__NAMED];
    for (const weft__parameter *p = NULL; (p = weft__next_stored(l->m, p)); ) {
        const weft_tensor *x = &weft__numbers_of(p)->value;
        weft__kind expected = weft__kind_of(x);
        if (!agrees(l, p, weft__set_of(l->m, p, path), &expected))
            continue;
        hold_array(&l->stage, path, &expected, x->data, true);
        weft__report_finding(&l->stage, l->report, WEFT__LOADED, "%s", path);
    }
    weft__sealed_each(l->stage.file, l->group = "parameters", is_known, l);
    weft__sealed_each(l->stage.file, l->group = "buffers", is_known, l);
}

/* ---- the optimiser ---- */
typedef struct { weft__sealed *file; const weft__saved *all; int n; } known_state;

static bool is_state(const char *name, bool is_group, void *user)
{
    const known_state *k = user;
    bool known = !strcmp(name, "order");
    for (int i = 0; i < k->n && !is_group; i++)
        known = known || !strcmp(name, k->all[i].name);
    if (!known)
        weft__sealed_fail(k->file, WEFT_EFORMAT,
                          "optimizer/%s is in the file, but the optimiser does not have it", name);
    return known;
}

/* To be freed; NULL: it does not exist, or an error. */
static char *text_of(weft__sealed *f, const char *path)
{
    weft__kind k;
    bool found = weft__sealed_find(f, path, &k) && k.type == WEFT__CHARS;
    char *text = found ? calloc(1, weft__kind_bytes(&k) + 1) : NULL;
    if (text)
        weft__sealed_read(f, path, &k, text);
    else if (found)
        weft__sealed_fail(f, WEFT_ENOMEM, "no memory for %s", path);
    return text;
}

/* the optimiser's vectors have no names, so the order of the parameters must agree */
static void check_order(loading *l)
{
    char *expected = weft__order_of(l->m), *stored = text_of(l->stage.file, "optimizer/order");
    size_t offset = 0, line = 0;
    for (; expected && stored && expected[offset] && expected[offset] == stored[offset]; offset++)
        line = expected[offset] == '\n' ? offset + 1 : line;
    if (!expected)
        weft__sealed_fail(l->stage.file, WEFT_ENOMEM, "no memory for the names of the parameters");
    else if (!stored || expected[offset] != stored[offset])
        weft__sealed_fail(l->stage.file, WEFT_EFORMAT,
                      "optimizer/order has \"%.*s\"; expected \"%.*s\", as in the module; create the "
                      "parameters in the order of the saved model",
                      stored ? (int)strcspn(stored + line, "\n") : 0, stored ? stored + line : "",
                      (int)strcspn(expected + line, "\n"), expected + line);
    free(expected);
    free(stored);
}

static void check_rule(weft__sealed *f, const weft__saved *rule)      /* a rule is compared, not loaded */
{
    static const char *const names[] = { "SGD", "RMSprop", "Adam", "AdamW" };
    int64_t found = 0, expected = *(const int64_t *)rule->data;
    weft__sealed_read(f, "optimizer/rule", &(weft__kind){ WEFT__I64, 1, { 1 } }, &found);
    if (found != expected)
        weft__sealed_fail(f, WEFT_EFORMAT, "the optimiser in the file is %s; expected %s",
                      (uint64_t)found < 4 ? names[found] : "unknown", names[expected]);
}

/* Refuses wrong values before anything is changed. */
static void hold_numbers_of_optimiser(loading *l, weft_optim *o, const weft__saved *entry, const char *path,
                                      const weft__kind *k)
{
    char reason[160];
    const void *values = hold_array(&l->stage, path, k, entry->data, entry->device);
    if (values && !weft__optim_accepts(o, entry, values, reason, sizeof reason))
        weft__sealed_fail(l->stage.file, WEFT_EFORMAT,
                      "%s: %s. Its checksums are right, so a program wrote these values; load an earlier "
                      "checkpoint", path, reason);
}

static void hold_optimiser(loading *l, weft_optim *o)
{
    char path[WEFT__NAMED];
    weft__saved all[32];
    weft__kind found;
    known_state known = { l->stage.file, all, weft__optim_entries(o, all, 32) };
    if (known.n == 0)
        weft__sealed_fail(l->stage.file, WEFT_EARG, "optimiser: its creation failed; expected a valid "
                                                            "one, or NULL to load none");
    else if (!weft__sealed_find(l->stage.file, "optimizer/rule", &found))
        weft__sealed_fail(l->stage.file, WEFT_EFORMAT, "no optimiser in the file; expected one; pass NULL to "
                                                       "load none");
    for (int i = 0; i < known.n; i++) {
        weft__kind k = { weft__number_of(all[i].type), 1, { all[i].n } };
        snprintf(path, sizeof path, "optimizer/%s", all[i].name);
        if (!strcmp(all[i].name, "rule"))
            check_rule(l->stage.file, &all[i]);
        else
            hold_numbers_of_optimiser(l, o, &all[i], path, &k);
    }
    check_order(l);
    weft__sealed_each(l->stage.file, "optimizer", is_state, &known);
}

/* ---- random streams ---- */
/* Refuses a counter that no run can have reached, because it would soon overflow. */
static void check_counter(weft__sealed *f, const char *path, uint64_t count)
{
    if (!f->status && count > INT64_MAX / 2)
        weft__sealed_fail(f, WEFT_EFORMAT, "%s is damaged: it counts %lld draws; expected 0 .. 2^62", path,
                      (long long)count);
}

static void hold_numbers(weft__stage *s, weft_stream *to, uint64_t key, uint64_t count)
{
    uint64_t *a = weft__hold(s, &to->key, sizeof key, false),
             *b = weft__hold(s, &to->count, sizeof count, false);
    if (a && b) {
        *a = key;
        *b = count;
    }
}

/* NULL: memory is short, which is an error of the file function only */
static weft_stream *stream_of(weft *w, const char *name)
{
    weft__listener *listener = weft__mute_errors(w);
    weft_stream *s = weft_stream_of(w, name);    /* unused while its count is 0 */
    weft__unmute_errors(w, listener, !s);
    return s;
}

static void hold_stream(weft__stage *s, weft *w, const char *path)
{
    char name[sizeof w->random.streams->name];
    uint64_t counter[2] = { 0, 0 };
    weft__sealed_read(s->file, path, &(weft__kind){ WEFT__I64, 1, { 2 } }, counter);
    check_counter(s->file, path, counter[1]);
    bool named = weft__sealed_text(s->file, path, "name", name, sizeof name);
    weft_stream *to = named ? stream_of(w, name) : NULL;
    if (!named)
        weft__sealed_fail(s->file, WEFT_EFORMAT, "%s: no name; expected the name of a random stream", path);
    else if (!to && *name)
        weft__sealed_fail(s->file, WEFT_ENOMEM, "%s: no memory for the random stream \"%s\"", path, name);
    else if (!to)
        weft__sealed_fail(s->file, WEFT_EFORMAT, "%s: an empty name; expected the name of a random stream",
                          path);
    else
        hold_numbers(s, to, counter[0], counter[1]);
}

static void hold_streams(weft__stage *s, weft *w)
{
    const weft__kind one = { WEFT__I64, 0, { 0 } };
    weft__kind found;
    uint64_t seed = 0, draw = 0;
    char path[WEFT__NAMED];
    weft__sealed_read(s->file, "streams/seed", &one, &seed);
    weft__sealed_read(s->file, "streams/draw", &one, &draw);
    check_counter(s->file, "streams/draw", draw);
    hold_array(s, "streams/seed", &one, &w->random.seed, false);
    hold_array(s, "streams/draw", &one, &w->random.draw, false);
    /* streams that the file does not have start anew */
    for (weft_stream *k = w->random.streams; k; k = k->next)
        hold_numbers(s, k, weft__hash(seed, k->name), 0);
    for (int i = 0; !s->file->status; i++) {
        snprintf(path, sizeof path, "streams/%d", i);
        if (!weft__sealed_find(s->file, path, &found))
            break;
        hold_stream(s, w, path);
    }
}

/* ---- the whole ---- */
weft_status weft__load_image(const char *path, const weft__image *image, weft_module *m, weft_optim *o,
                             const weft_checkpoint_item *items, int64_t n)
{
    loading l = { .m = m };
    bool items_only = !m && n && !o;             /* then the file need not fit a module */
    weft_status s = items_only ? WEFT_OK : weft__check_storable_with(m, o, "weft_load", path);
    if (!s)
        s = weft__items_good("weft_load", items, n);
    if (!s)
        s = weft__sealed_open(path, image, &l.stage.file);
    if (s)
        return s;
    if (m)
        hold_module(&l);
    if (o)
        hold_optimiser(&l, o);
    if (m)
        hold_streams(&l.stage, m->w);
    weft__items_hold(&l.stage, items, n);
    s = weft__stage_end(&l.stage, m);
    if (!s && o)
        weft__optim_after_load(o);
    return s;
}

weft_status weft_load(const char *path, weft_module *m, weft_optim *o, const weft_checkpoint_item *items,
                      int64_t n)
{
    return weft__load_image(path, NULL, m, o, items, n);
}

weft_status weft_load_matching(const char *path, weft_module *m, weft_load_report *report)
{
    weft_load_report own;
    loading l = { .m = m, .report = report ? report : &own };
    *l.report = (weft_load_report){ 0 };
    weft_status s = weft__check_storable(m, "weft_load_matching", path);
    if (!s)
        s = weft__sealed_open(path, NULL, &l.stage.file);
    if (s)
        return s;
    hold_module(&l);
    return weft__stage_end(&l.stage, m);
}
