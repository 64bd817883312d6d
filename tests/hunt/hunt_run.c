/* hunt_run.c - runs a program in one configuration: lays out its inputs, runs the steps and gradients, and
 * returns results in the program's order. The id of a sequence determines its numbers, in every batch. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "weft_op.h"
#include "weft_plan.h"
#include "hunt.h"

/* ---- for operators ---- */
void hunt_note(hunt_scene *s, const char *format, ...)
{
    va_list a;
    va_start(a, format);
    int n = vsnprintf(s->text + s->at, sizeof s->text - s->at, format, a);
    va_end(a);
    s->at = s->at + (size_t)n < sizeof s->text ? s->at + (size_t)n : sizeof s->text - 1;
}
int64_t hunt_width(const weft_tensor *t) { return weft_size(t, -1); }

const char *hunt_name(hunt_scene *s, const char *part)            /* valid until the next call */
{
    static _Thread_local char name[48];
    snprintf(name, sizeof name, "%s%s", s->name, part);
    return name;
}

weft_tensor *hunt_as_wide(hunt_scene *s, weft_tensor *t, int64_t width, const char *part)
{
    return hunt_width(t) == width ?
               t :
               weft_linear_run(weft_linear_new(s->m, hunt_name(s, part),
                                               &(weft_linear_opts){ .in = hunt_width(t), .out = width }),
                               t);
}

void hunt_count(hunt_scene *s, weft_tensor *t)
{
    weft_tensor *sum = weft_sum_all(weft_mul(t, weft_tanh(t)));
    s->extra = s->extra ? weft_add(s->extra, sum) : sum;
}

/* ---- inputs ---- */
typedef struct part {
    int n;
    int which[HUNT_SEQUENCES];
    int32_t len[HUNT_SEQUENCES];
    int64_t id[HUNT_SEQUENCES], tokens, longest;
} part;

static void add_sequence(part *b, const hunt_program *p, int s)
{
    b->which[b->n] = s, b->len[b->n] = p->len[s], b->id[b->n] = p->id[s], b->tokens += p->len[s];
    b->longest = p->len[s] > b->longest ? p->len[s] : b->longest;
    b->n++;
}

static part part_of(const hunt_program *p, const hunt_way *way, int k)         /* every parts-th sequence */
{
    part b = { 0 };
    int parts = way->parts > 1 ? way->parts : 1, order[HUNT_SEQUENCES];
    for (int s = 0; s < p->n; s++)
        order[s] = s;
    for (int s = p->n - 1; s > 0 && way->shuffled; s--) {
        int other = (int)(hunt_hash(p->seed, (uint64_t)s) % (uint64_t)(s + 1)), was = order[s];
        order[s] = order[other], order[other] = was;
    }
    for (int s = k; s < p->n; s += parts)
        add_sequence(&b, p, order[s]);
    return b;
}

static weft_real value(int64_t id, int64_t row, int64_t column)   /* -2 .. 2 by steps of 1 / 256 */
{
    uint64_t h = hunt_hash(hunt_hash((uint64_t)id, (uint64_t)row), (uint64_t)column);
    return (weft_real)((int)(h % 1025) - 512) / 256;
}

static weft_tensor *padded(weft *w, const part *b, int64_t width, const weft_real *rows, bool right)
{
    int64_t T = b->longest + 2, at = 0;
    weft_real *x = malloc((size_t)(b->n * T * width + 1) * sizeof *x);
    for (int64_t i = 0; i < b->n * T * width; i++)
        x[i] = (weft_real)1e30;                  /* padding is never read */
    for (int s = 0; s < b->n; at += b->len[s], s++)
        memcpy(x + (s * T + (right ? T - b->len[s] : 0)) * width, rows + at * width,
               (size_t)(b->len[s] * width) * sizeof *x);
    weft_tensor *t = weft_reals(w, x, 3, (int64_t[]){ b->n, T, width });
    free(x);
    return t;
}

/* Returns the leaf of the gradient, and in *x the ragged tensor that the program starts from. */
static weft_tensor *input(weft *w, const hunt_program *p, const hunt_way *way, const part *b, weft_tensor **x)
{
    weft_lengths l = { .n = b->n, .len = b->len, .id = b->id };
    weft_real *rows = malloc((size_t)(b->tokens * p->width + 1) * sizeof *rows), *to = rows;
    for (int s = 0; s < b->n; s++)
        for (int64_t i = 0; i < b->len[s] * p->width; i++)
            *to++ = value(b->id[s], i / p->width, i % p->width);
    weft_tensor *leaf = weft_ragged(w, rows, p->width, &l);
    if (way->layout == HUNT_LEFT || way->layout == HUNT_RIGHT) {
        leaf = padded(w, b, p->width, rows, way->layout == HUNT_RIGHT);
        *x = weft_pack_padded_sequence(leaf, &l,
                                       way->layout == HUNT_RIGHT ? WEFT_ALIGN_RIGHT : WEFT_ALIGN_LEFT);
    } else if (way->layout == HUNT_ROWS) {
        int32_t row[HUNT_SEQUENCES], column[HUNT_SEQUENCES];
        int64_t n = 0, width = b->longest + 1 + (int64_t)(p->seed % 4);
        weft_status fits = weft_first_fit(&l, width, row, column, &n);
        *x = leaf = fits == WEFT_OK ? weft_to_rows(leaf, &(weft_placement){ n, width, row, column }) : leaf;
    } else
        *x = leaf = weft_to_layout(leaf, way->layout == HUNT_PACKED ? WEFT_PACKED : WEFT_CONCAT);
    free(rows);
    return leaf;
}

static weft_tensor *state(weft *w, const part *b)
{
    weft_real v[HUNT_SEQUENCES * HUNT_STATE];
    for (int i = 0; i < b->n * HUNT_STATE; i++)
        v[i] = value(b->id[i / HUNT_STATE], -1, i % HUNT_STATE);
    return weft_reals(w, v, 2, (int64_t[]){ b->n, HUNT_STATE });
}

/* ---- results, in the program's order ---- */
static int64_t tokens_before(const hunt_program *p, int s)
{
    int64_t n = 0;
    for (int i = 0; i < s; i++)
        n += p->len[i];
    return n;
}

/* Copies from a tensor of the part's concatenated rows, or padded [n, T, width]. */
static void fetch(const hunt_program *p, const hunt_way *way, const part *b, weft_tensor *t, weft_real *to)
{
    bool pads = weft_rank(t) == 3, right = way->layout == HUNT_RIGHT;
    t = weft_layout_of(t) == WEFT_PLAIN ? t : weft_plain(weft_to_layout(t, WEFT_CONCAT));
    int64_t width = weft_size(t, -1), T = pads ? weft_size(t, 1) : 0, at = 0;
    weft_real *from = malloc((size_t)(weft_numel(t) + 1) * sizeof *from);
    weft_read(t, from, (size_t)weft_numel(t) * sizeof *from);
    if (weft_ok(weft_context_of(t)))
        for (int k = 0; k < b->n; at += b->len[k], k++) {
            int64_t row = pads ? k * T + (right ? T - b->len[k] : 0) : at;
            memcpy(to + tokens_before(p, b->which[k]) * width, from + row * width,
                   (size_t)(b->len[k] * width) * sizeof *from);
        }
    free(from);
}

static void fetch_states(const part *b, weft_tensor *t, weft_real *to)
{
    weft_real from[HUNT_SEQUENCES * HUNT_STATE];
    weft_read(t, from, (size_t)(b->n * HUNT_STATE) * sizeof *from);
    if (weft_ok(weft_context_of(t)))
        for (int k = 0; k < b->n; k++)
            memcpy(to + b->which[k] * HUNT_STATE, from + k * HUNT_STATE, HUNT_STATE * sizeof *from);
}

/* ---- one part of the batch ---- */
static weft_tensor *steps(hunt_scene *s, weft_tensor *x)
{
    weft_tensor *v[HUNT_STEPS + 1] = { x };
    const char *before = "";
    for (int i = 0; i < s->p->steps && weft_ok(s->w); i++, before = ", ") {
        const hunt_step *step = &s->p->step[i];
        const hunt_operator *o = hunt_operator_of(step);
        s->x = v[i], s->other = v[step->other], s->random = step->seed;
        snprintf(s->name, sizeof s->name, "l%06x", (unsigned)(step->seed & 0xFFFFFF));
        hunt_note(s, step->other == i ? "%s%s" : "%s%s<%d>", before, o->name, step->other);
        v[i + 1] = o->run(s);
    }
    return v[s->p->steps];
}

static weft_tensor *loss_of(hunt_scene *s, weft_tensor *y)
{
    weft_tensor *sum = weft_sum_all(weft_mul(weft_tanh(y), y));
    return s->extra ? weft_add(sum, s->extra) : sum;
}

static void gradients(hunt_scene *s, weft_tensor *loss, weft_tensor *const leaf[2], weft_tensor *d[2])
{
    if (s->p->walk == HUNT_TWICE) {
        weft_gradients_recorded(loss, leaf, 2, d);
        loss = weft_add(loss, weft_add(weft_sum_all(weft_square(d[0])), weft_sum_all(weft_square(d[1]))));
    }
    (s->p->walk == HUNT_RECORDED ? weft_gradients_recorded : weft_gradients)(loss, leaf, 2, d);
}

static void run_part(const hunt_program *p, const hunt_way *way, int k, hunt_result *r)
{
    part b = part_of(p, way, k);
    weft *w = weft_open(
        &(weft_opts){ .device = WEFT_CPU, .threads = way->threads, .seed = p->seed, .lean = way->lean });
    hunt_scene s = { .w = w, .m = weft_module_new(w, "m"), .p = p };
    weft_tensor *x, *leaf[2] = { input(w, p, way, &b, &x), state(w, &b) }, *d[2];
    s.state = leaf[1];
    weft_tensor *y = steps(&s, x);
    gradients(&s, loss_of(&s, y), leaf, d);
    if (!r->y && weft_ok(w)) {
        r->width = hunt_width(y);
        r->y = calloc((size_t)(r->tokens * r->width + 1), sizeof *r->y);
    }
    if (weft_ok(w)) {
        fetch(p, way, &b, y, r->y);
        fetch(p, way, &b, d[0], r->dx);
        fetch_states(&b, d[1], r->ds);
    }
    memcpy(r->text, s.text, sizeof r->text);
    if (!weft_ok(w))
        snprintf(r->failure, sizeof r->failure, "%s", weft_error_message(w));
    weft_close(w);
}

hunt_result hunt_run(const hunt_program *p, const hunt_way *way)
{
    hunt_result r = { .tokens = tokens_before(p, p->n) };
    r.dx = calloc((size_t)(r.tokens * p->width + 1), sizeof *r.dx);
    r.ds = calloc((size_t)(p->n * HUNT_STATE + 1), sizeof *r.ds);
    for (int k = 0; k < (way->parts > 1 ? way->parts : 1); k++)
        run_part(p, way, k, &r);
    return r;
}

void hunt_end(hunt_result *r) { free(r->y), free(r->dx), free(r->ds); }
