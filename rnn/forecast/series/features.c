/* features.c - the columns of a frame by role, with their chains of transforms; checks of frames. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/os.h"
#include "rnn/forecast/series/features.h"

/* ---- copies that live as long as the context ---- */
static void *copy_bytes(weft *w, const void *from, size_t bytes)
{
    void *to = weft__own(w, bytes ? bytes : 1, NULL, NULL);
    if (to && bytes)
        memcpy(to, from, bytes);
    return to;
}

static const char *copy_text(weft *w, const char *text)
{
    return text ? copy_bytes(w, text, strlen(text) + 1) : NULL;
}

/* ---- columns ---- */
static void report_error(const weft_features *x, const char *kind, const char *name, const char *reason)
{
    weft__fail(x->w, WEFT_EARG, "features \"%s\": %s \"%.100s\": %s", x->name, kind, name, reason);
}

const weft__column *weft__features_find(const weft_features *x, const char *name)
{
    for (int64_t i = 0; i < x->columns; i++)
        if (!strcmp(x->column[i].name, name))
            return &x->column[i];
    return NULL;
}

static int64_t add_columns(weft_features *x, const char *const *names)
{
    int64_t n = weft__names(names);
    for (int64_t i = 0; i < n && !x->w->status; i++) {
        if (!*names[i] || weft__features_find(x, names[i]) || (x->time && !strcmp(x->time, names[i])))
            report_error(x, "column", names[i],
                         "a name that is empty or occurs twice; expected different names");
        x->column[x->columns].name = copy_text(x->w, names[i]);
        x->columns += x->column[x->columns].name != NULL;
    }
    return n;
}

static bool take_columns(weft_features *x, const weft_features_opts *o)
{
    int64_t n = weft__names(o->known) + weft__names(o->past) + weft__names(o->target) + weft__names(o->fixed);
    x->time = copy_text(x->w, o->time);
    x->column = weft__own(x->w, (size_t)(n ? n : 1) * sizeof *x->column, NULL, NULL);
    if (x->w->status)
        return false;
    x->known = add_columns(x, o->known);
    x->past = add_columns(x, o->past);
    x->target = add_columns(x, o->target);
    x->fixed = add_columns(x, o->fixed);
    if (!x->w->status && (!x->target || (!x->known && !x->time)))
        weft__fail(x->w, WEFT_EARG,
                   "features \"%s\": no target, or neither a known covariate nor the time; expected a target "
                   "and one of the other two",
                   x->name);
    return !x->w->status;
}

static void take_masked(weft_features *x, const char *const *masked)
{
    for (int64_t i = 0; masked && masked[i]; i++) {
        const weft__column *c = weft__features_find(x, masked[i]);
        if (c && !weft__features_is_fixed(x, c))
            x->column[c - x->column].masked = true;
        else if (x->time && !strcmp(x->time, masked[i]))
            x->time_masked = true;
        else
            report_error(x, "masked", masked[i],
                         "no such column of the past; expected known, past, target or time");
    }
}

/* ---- chains ---- */
bool weft__features_is_fixed(const weft_features *x, const weft__column *c)
{
    return c - x->column >= x->columns - x->fixed;
}

static void add_step(weft_features *x, weft__column *c, const weft_transform *t)
{
    const char *reason = weft__step_fault(t);
    if (!reason && weft__features_is_fixed(x, c) && (t->kind == WEFT_DELTA || t->depends_on))
        reason = "a fixed column has no rows; expected a transform of one value alone";
    if (!reason && c->n == WEFT__STEPS)
        reason = "too many transforms; expected at most 16, including the standard scaler";
    if (reason) {
        report_error(x, "transform on", c->name, reason);
        return;
    }
    weft__step *s = &c->step[c->n++];
    *s = (weft__step){ *t, x->n };
    s->t.column = c->name;
    s->t.depends_on = copy_text(x->w, t->depends_on);
    size_t numbers = t->kind == WEFT_FIXED_POLYNOMIAL  ? (size_t)t->degree + 1 :
                     t->kind == WEFT_DISCRETE_FUNCTION ? (size_t)t->points :
                                                         0;
    s->t.a = copy_bytes(x->w, t->a, numbers * sizeof *t->a);
    s->t.b = copy_bytes(x->w, t->b, t->kind == WEFT_DISCRETE_FUNCTION ? numbers * sizeof *t->b : 0);
    x->n += weft__step_numbers(t);
}

static void take_transforms(weft_features *x, const weft_features_opts *o)
{
    static const weft_transform standard = { .kind = WEFT_STANDARD_SCALER };
    if (o->n < 0 || (o->n && !o->transforms))
        report_error(x, "transforms", "", "NULL, or n is negative; expected n transforms");
    for (int i = 0; i < o->n && !x->w->status; i++)
        if (!o->transforms[i].column || !weft__features_find(x, o->transforms[i].column))
            report_error(x, "transform on", o->transforms[i].column ? o->transforms[i].column : "",
                         "no such column, or the time; expected a column of the features");
    for (int64_t k = 0; k < x->columns && !x->w->status; k++) {
        weft__column *c = &x->column[k];
        c->step = weft__own(x->w, WEFT__STEPS * sizeof *c->step, NULL, NULL);
        for (int i = 0; i < o->n && !x->w->status; i++)
            if (!strcmp(o->transforms[i].column, c->name))
                add_step(x, c, &o->transforms[i]);
        if (!x->w->status && !o->unscaled)
            add_step(x, c, &standard);
    }
}

/* ---- the text: equal for equal columns and transforms ---- */
static void write_text(FILE *to, const weft_features *x)
{
    static const char *const parts[] = { "known", "past", "target", "fixed" };
    const int64_t ends[] = { x->known, x->known + x->past, x->known + x->past + x->target, x->columns };
    if (x->time)
        fprintf(to, "time \"%s\": %s", x->time, x->time_as == WEFT_TIME_RELATIVE ? "relative\n" : "absolute");
    if (x->time && x->time_as == WEFT_TIME_ABSOLUTE)
        fprintf(to, " in windows of %lld rows\n", (long long)x->context + x->horizon);
    for (int64_t k = 0, part = 0; k < x->columns; k++) {
        while (k >= ends[part])
            part++;
        fprintf(to, "%s \"%s\":", parts[part], x->column[k].name);
        for (int i = 0; i < x->column[k].n; i++) {
            fputs(i ? "; " : " ", to);
            weft__step_text(to, &x->column[k].step[i].t);
        }
        fputc('\n', to);
    }
    if (x->without_target)
        fputs("the past has no target\n", to);
}

static void describe_features(weft_features *x)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    void *before = weft__plain_locale();
    if (to)
        write_text(to, x);
    weft__plain_locale_end(before);
    bool written = to && fclose(to) == 0 && text;
    x->room = (int64_t)size + 1024;              /* room to read another text for a message */
    x->text = written ? (char *)(uintptr_t)copy_text(x->w, text) : NULL;
    x->stored_text = weft__own(x->w, (size_t)x->room, NULL, NULL);
    if (!written)
        weft__fail(x->w, WEFT_ENOMEM, "features \"%s\": out of memory", x->name);
    else if (x->stored_text && x->text)
        memcpy(x->stored_text, x->text, size + 1);
    free(text);
}

/* ---- making ---- */
static bool options_are_sensible(weft *w, const char *name, const weft_features_opts *o)
{
    if (!name || !*name || strlen(name) > 30 || strchr(name, '/'))
        weft__fail(w, WEFT_EARG, "features: name: expected 1 .. 30 bytes without a slash");
    else if (!o || o->context < 1 || o->horizon < 1 || o->context >= INT32_MAX / 2 ||
             o->horizon >= INT32_MAX / 2)
        weft__fail(w, WEFT_EARG,
                   "features \"%s\": context and horizon: expected 1 row or more, not %lld and %lld", name,
                   o ? (long long)o->context : 0, o ? (long long)o->horizon : 0);
    else if (o->time_as != WEFT_TIME_ABSOLUTE && o->time_as != WEFT_TIME_RELATIVE)
        weft__fail(w, WEFT_EARG, "features \"%s\": time_as %d; expected a value of weft_time", name,
                   (int)o->time_as);
    return !w->status;
}

weft_features *weft_features_new(weft *w, const char *name, const weft_features_opts *o)
{
    static weft_features inert;                   /* could not be made; the context has failed */
    if (!w || !weft_ok(w) || !options_are_sensible(w, name, o))
        return &inert;
    w->running = "features";
    weft_features *x = weft__own(w, sizeof *x, NULL, NULL);
    if (!x)
        return &inert;
    *x = (weft_features){ .w = w,
                          .context = o->context,
                          .horizon = o->horizon,
                          .time_as = o->time_as,
                          .without_target = o->past_without_target };
    snprintf(x->name, sizeof x->name, "%s", name);
    snprintf(x->numbers, sizeof x->numbers, "%s.numbers", name);
    if (!take_columns(x, o))
        return &inert;
    take_masked(x, o->masked);
    take_transforms(x, o);
    x->n += 3;
    x->state = weft__own(w, (size_t)x->n * sizeof *x->state, NULL, NULL);
    if (!w->status)
        describe_features(x);
    return w->status ? &inert : x;
}

weft_feature_counts weft_features_counts(const weft_features *x)
{
    if (!weft__features_made(x))
        return (weft_feature_counts){ 0 };
    int64_t time = x->time != NULL;
    return (weft_feature_counts){ time + x->known + x->past + (x->without_target ? 0 : x->target),
                                  time + x->known, x->fixed, x->target,
                                  x->state[x->n - 1] == 1 && !strcmp(x->stored_text, x->text) };
}

void weft_features_state(weft_features *x, weft_checkpoint_item items[2])
{
    if (!items)
        return;
    items[0] = items[1] = (weft_checkpoint_item){ 0 };
    if (!weft__features_made(x))
        return;
    items[0] = (weft_checkpoint_item){ x->name, WEFT_TEXT, x->stored_text, x->room };
    items[1] = (weft_checkpoint_item){ x->numbers, WEFT_F64, x->state, x->n };
}

/* ---- use ---- */
static void report_difference(const weft_features *x, const char *function)
{
    const char *a = x->stored_text, *b = x->text;
    for (const char *p = a, *q = b; *p && *p == *q; p++, q++)
        if (*p == '\n') {
            a = p + 1;
            b = q + 1;
        }
    weft__fail(x->w, WEFT_EFORMAT,
               "%s: features \"%s\": the loaded state belongs to other features: it has %.*s; expected %.*s",
               function, x->name, *a ? (int)strcspn(a, "\n") : 7, *a ? a : "nothing",
               *b ? (int)strcspn(b, "\n") : 7, *b ? b : "nothing");
}

bool weft__features_ready(const weft_features *x, const char *function)
{
    if (!weft__features_made(x) || x->w->status)
        return false;
    x->w->running = function;
    if (strcmp(x->stored_text, x->text))
        report_difference(x, function);
    else if (x->state[x->n - 1] != 1)
        weft__fail(x->w, WEFT_EARG, "%s: features \"%s\" are not fitted; expected weft_features_fit",
                   function, x->name);
    return !x->w->status;
}

bool weft__features_frame(const weft_features *x, const weft_frame *f)
{
    if (weft__check_frame(x->name, f) != WEFT_OK)
        weft__fail(x->w, WEFT_EARG, "features \"%s\": %s", x->name, weft_file_message());
    return !x->w->status;
}

const double *weft__features_column(const weft_features *x, const weft_frame *f, const char *name)
{
    int64_t c = weft__frame_find(f, name);
    if (c < 0)
        report_error(x, "column", name, "the frame has no such column");
    else if (f->origin[c])
        report_error(
            x, "column", name,
            "it has integers that a double does not hold; expected smaller ones, except in the time. "
            "Write it from a later origin, or in a larger unit");
    return x->w->status ? NULL : f->column[c];
}

bool weft__features_inputs(const weft_features *x, const weft__column *c, const weft_frame *f, int64_t first,
                           weft__step_inputs inputs)
{
    memset(inputs, 0, sizeof(weft__step_inputs));
    for (int i = 0; i < c->n; i++)
        if (c->step[i].t.depends_on) {
            inputs[i] = weft__features_column(x, f, c->step[i].t.depends_on);
            if (!inputs[i])
                return false;
            inputs[i] += first;
        }
    return true;
}

void weft__features_fail(const weft_features *x, const weft_frame *f, int64_t s, int64_t row,
                         const char *column, const char *format, ...)
{
    char reason[200];
    WEFT__PLAIN_TEXT(reason, sizeof reason, format);
    weft__fail(x->w, WEFT_ENUMERIC,
               "features \"%s\": series %lld (\"%.60s\"), row %lld, column \"%.100s\": %s", x->name,
               (long long)s, f->id[s], (long long)row, column, reason);
}

bool weft__features_raw(const weft_features *x, const weft_frame *f, int64_t s, const char *name, bool gaps,
                        double *to)
{
    bool time = x->time && !strcmp(x->time, name);         /* only differences of times are used */
    const double *from = time ? weft_frame_column(f, name) : NULL;
    if (!from)
        from = weft__features_column(x, f, name);
    if (!from)
        return false;
    int64_t n = f->start[s + 1] - f->start[s];
    for (int64_t i = 0; i < n; i++) {
        to[i] = from[f->start[s] + i];
        if (!isfinite(to[i]) && !(gaps && isnan(to[i]))) {
            weft__features_fail(x, f, s, i, name, "the value is %g; expected a finite one", to[i]);
            return false;
        }
    }
    return true;
}

bool weft__features_increases(const weft_features *x, const weft_frame *f, int64_t s, const double *t)
{
    for (int64_t i = 1, n = f->start[s + 1] - f->start[s]; i < n; i++)
        if (t[i] <= t[i - 1]) {
            char now[64], before[64];
            int64_t c = weft__frame_find(f, x->time), row = f->start[s] + i;
            weft__frame_number(f, c, row, now);
            weft__features_fail(x, f, s, i, x->time, "the time is %s after %s; expected increasing times",
                                now, weft__frame_number(f, c, row - 1, before));
            return false;
        }
    return true;
}

bool weft__features_fixed(const weft_features *x, const weft_frame *f, int64_t s, const char *name,
                          double *value)
{
    const double *from = weft__features_column(x, f, name);
    *value = 0;
    for (int64_t i = from ? f->start[s] : 0; from && i < f->start[s + 1]; i++) {
        if (!isfinite(from[i]))
            weft__features_fail(x, f, s, i - f->start[s], name, "the value is %g; expected a finite one",
                                from[i]);
        else if (from[i] != from[f->start[s]])
            weft__features_fail(x, f, s, i - f->start[s], name,
                                "a fixed column; expected a constant, but the value is %.17g after %.17g",
                                from[i], from[f->start[s]]);
        if (x->w->status)
            return false;
        *value = from[i];
    }
    return from != NULL;
}

double weft__features_time(const weft_features *x, double t)
{
    double low = x->state[x->n - 3], high = x->state[x->n - 2];
    return high > low ? 2 * (t - low) / (high - low) - 1 : 0;
}
