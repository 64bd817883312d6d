/* explain.c - predicted milliseconds of plans in words: where they go, what the device follows, which plan to
 * take. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tools/plan/explain.h"

/* ---- which layer ---- */
static const char *const cells[] = { "lstm", "gru" };

static int differences(const char *a, const char *b)
{
    int n = 0;
    for (; *a && *b; a++, b++)
        n += *a != *b;
    return n + (int)strlen(a) + (int)strlen(b);
}

bool read_layer(const char *text, cost_layer *l)
{
    size_t n = strcspn(text, ":");
    char name[32], *end;
    *l = (cost_layer){ .hidden = 128 };
    snprintf(name, sizeof name, "%.*s", (int)(n < 31 ? n : 31), text);
    int which = -1, near = 0;
    for (int i = 0; i < 2; i++) {
        which = !strcmp(name, cells[i]) ? i : which;
        near = differences(name, cells[i]) < differences(name, cells[near]) ? i : near;
    }
    if (*name && which < 0)
        return say_error(USAGE, "plan: --explain is for one layer of lstm or gru, not \"%s\"; \"%s\" is near",
                         name, cells[near]),
               false;
    snprintf(l->cell, sizeof l->cell, "%s", cells[which > 0]);
    errno = 0;
    long long hidden = text[n] ? strtoll(text + n + 1, &end, 10) : 128;
    if (text[n] && (end == text + n + 1 || *end || errno || hidden < 1 || hidden > 4096))
        return say_error(USAGE,
                         "plan: --explain has \"%.40s\" for the width of its one layer; a whole number in 1 "
                         ".. 4096 "
                         "is expected",
                         text + n + 1),
               false;
    l->hidden = l->input = hidden;
    return true;
}

/* ---- its constants ---- */
static void name_device(const weft *w, costs *c)
{
    char line[200] = "", *at = NULL;
    FILE *f = fopen("/proc/cpuinfo", "r");
    c->gpu = !strcmp(weft_device_name(w), "cuda");
    while (f && !c->gpu && !at && fgets(line, sizeof line, f))
        at = !strncmp(line, "model name", 10) ? strchr(line, ':') : NULL;
    if (f)
        fclose(f);
    if (at)
        at[strcspn(at, "\n")] = 0;
    snprintf(c->device, sizeof c->device, "%s%s%s", weft_device_name(w), at ? ", " : "", at ? at + 2 : "");
}

bool find_costs(const cost_layer *l, const char *path, costs *c)
{
    static const char *const precisions[] = { "fp32", "strict_fp32", "tf32", "bf16" };
    cost_model m;
    *c = (costs){ .layer = *l, .precision = sizeof(weft_real) == 8 ? "fp64" : precisions[l->precision] };
    if (path)
        return c->foreign = true, read_costs(path, c);
    bool good = cost_model_open(&m, l);
    if (good) {
        name_device(m.w, c);
        c->threads = weft_threads(m.w);
    }
    if (good && !read_cached_costs(c)) {
        good =
            calibrate(&(cost_runner){ cost_model_pass, &m }, c->gpu ? 1024 : 64, cost_seconds(l), &c->table);
        c->table.error = MODEL_ERROR;
        snprintf(c->from, sizeof c->from, "measured now");
        if (good)
            keep_costs(c);
    }
    if (!good)
        say_error(FAILED, "plan: --explain: %s", weft_ok(m.w) ? "no memory" : weft_error_message(m.w));
    cost_model_close(&m);
    return good;
}

bool predict_all(planned *all, int n, const costs *c)
{
    for (int i = 0; i < n; i++) {
        planned *t = all + i;
        if (weft_plan_predict(&t->plan, &c->table, false, &t->time) != WEFT_OK ||
            weft_plan_predict(&t->plan, &c->table, true, &t->padded) != WEFT_OK ||
            weft_plan_disturbance(&t->plan, &t->disturbance) != WEFT_OK)
            return say_error(FAILED, "plan: %s", weft_plan_message()), false;
    }
    return true;
}

/* ---- words ---- */
static void say_device(FILE *to, const costs *c)
{
    if (*c->what)
        fputs(c->what, to);
    else
        fprintf(to, "Forward and backward of one %s layer of %lld units above an embedding", c->layer.cell,
                (long long)c->layer.hidden);
    if (c->foreign)
        fprintf(to, " on %s: %s.\n", c->device, c->from);
    else
        fprintf(to, " on %s, %d thread%s, %s: %s.\n", c->device, c->threads, c->threads == 1 ? "" : "s",
                c->precision, c->from);
    if (!c->foreign && !c->gpu)
        fprintf(to, "No GPU was measured.\n");
}

/* A part of a plan's time, if it is anything. */
static void say_part(FILE *to, const weft_plan_time *t, double ms, const char *what, long long n)
{
    if (ms >= .005 * t->ms)
        fprintf(to, "  %10.3f ms  %4.1f %%  %lld %s\n", ms, 100 * ms / t->ms, n, what);
}

static void say_plan(FILE *to, const planned *p)
{
    const weft_plan_time *t = &p->time;
    fprintf(to, "%s: %.3f ms a pass, disturbance %.2f\n", p->text, t->ms, p->disturbance);
    say_part(to, t, t->row_ms, "tokens, each at the price of a full step", (long long)t->cells);
    say_part(to, t, t->step_ms, "steps, for what they cost whatever their rows", (long long)t->steps);
    say_part(to, t, t->long_ms, "batches, because long ones do not stay in near memory",
             (long long)t->batches);
    say_part(to, t, t->gather_ms, "tokens, gathered and brought back", (long long)t->cells);
    say_part(to, t, t->segment_ms, "segments, begun within a row", (long long)t->segments);
    say_part(to, t, t->batch_ms, "batches, begun and ended", (long long)t->batches);
    if (!p->plan.in_rows && p->padded.cells > t->cells)
        fprintf(to, "  padded it would be %.3f ms, %.2f times as much\n", p->padded.ms, p->padded.ms / t->ms);
}

/* The plan with the fewest tokens computed, of equals the fewest steps; or the other way round. */
static int least_of(const planned *all, int n, bool steps)
{
    int best = 0;
    for (int i = 1; i < n; i++) {
        const weft_plan_time *a = &all[i].time, *b = &all[best].time;
        int64_t first = steps ? a->steps - b->steps : a->cells - b->cells,
                then = steps ? a->cells - b->cells : a->steps - b->steps;
        best = first < 0 || (!first && then < 0) ? i : best;
    }
    return best;
}

static double share_of_steps(const planned *all, int n)
{
    weft_plan_time sum = { 0 };
    for (int i = 0; i < n; i++)
        sum.step_ms += all[i].time.step_ms, sum.row_ms += all[i].time.row_ms;
    return weft_plan_steps_share(&sum);
}

static void say_what_it_follows(FILE *to, const planned *all, int n)
{
    double share = share_of_steps(all, n);
    int by_steps = least_of(all, n, true);
    fprintf(to,
            "This device follows %s: of the time in steps of these plans %.0f %% is there whatever their "
            "rows, and "
            "%.0f %% grows with tokens.\n",
            share > .5 ? "steps" : "tokens", 100 * share, 100 * (1 - share));
    fprintf(
        to,
        "If tokens alone cost, as CPUs nearly have it, all plans of as many tokens would be equal (the "
        "fewest "
        "here: %s, %lld); if steps alone did, as GPUs nearly have it, %s would be the fastest, with %lld.\n",
        all[least_of(all, n, false)].text, (long long)all[least_of(all, n, false)].time.cells,
        all[by_steps].text, (long long)all[by_steps].time.steps);
}

static void say_choice(FILE *to, const planned *all, int n, const costs *c)
{
    double ms[n], disturbance[n];
    int chosen, fastest = 0;
    for (int i = 0; i < n; i++) {
        ms[i] = all[i].time.ms, disturbance[i] = all[i].disturbance;
        fastest = ms[i] < ms[fastest] ? i : fastest;
    }
    if (weft_plan_choose(ms, disturbance, n, c->table.error, &chosen) != WEFT_OK)
        return;
    fprintf(to, "Chosen: %s, ", all[chosen].text);
    if (chosen == fastest)
        fprintf(to, "the fastest%s.\n",
                n > 1 ? "; none that changes gradients less is within the model's error of it" :
                        " of one plan");
    else
        fprintf(to,
                "%.3f ms. %s is predicted to take %.1f %% less, which is within the model's error of %.0f "
                "%%, and "
                "changes gradients more: %.2f against %.2f.\n",
                ms[chosen], all[fastest].text, 100 * (1 - ms[fastest] / ms[chosen]), 100 * c->table.error,
                disturbance[fastest], disturbance[chosen]);
}

void print_explanation(const planned *all, int n, const costs *c)
{
    say_device(stdout, c);
    for (int i = 0; i < n; i++) {
        putchar('\n');
        say_plan(stdout, all + i);
    }
    if (n) {
        putchar('\n');
        say_what_it_follows(stdout, all, n);
        say_choice(stdout, all, n, c);
    }
}

char *cost_words(const planned *all, int n, const costs *c)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    say_device(to, c);
    if (n) {
        say_what_it_follows(to, all, n);
        say_choice(to, all, n, c);
    }
    return fclose(to) ? NULL : text;
}
