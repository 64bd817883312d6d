/* test_callbacks.c - tests callbacks of the program inside library functions. They cannot end the step that
 * they run in or start a second backward pass. The context can be used again after the error. */
#include "tests/check.h"

typedef enum { CLEAR, RECOVER, CLOSE, REWIND, BACKWARD, ACTIONS } action;
static const char *const refused[ACTIONS] = { "clear: called inside", "recover: called inside",
                                              "close: called inside", "rewind: ", "" };
static struct { weft *w; action does; weft_mark old; weft_tensor *x; int calls; bool rests; } now;

static void act(void)
{
    if (now.rests || now.calls++)
        return;
    switch (now.does) {
    case CLEAR:   weft_clear(now.w); break;
    case RECOVER: weft_recover(now.w); break;
    case CLOSE:   weft_close(now.w); break;
    case REWIND:  weft_rewind(now.w, now.old); break;
    default:      weft_backward(weft_sum_all(now.x)); break;
    }
}

/* ---- a program's operator y = x: the chosen one of its functions makes the attempt ---- */
typedef enum { SHAPE, FORWARD, BACK, FUSED, COMPOSED, DESCRIBE } function_part;
static function_part acts;
static void act_in(function_part p)
{
    if (acts == p)
        act();
}

static bool copy_shape(weft_call *c) { act_in(SHAPE), weft_op_like(c->y[0], c->x[0]); return true; }
static void copy_forward(weft_call *c)
{
    act_in(FORWARD);
    memcpy(weft_op_data(c->y[0]), weft_op_data(c->x[0]), (size_t)weft_numel(c->x[0]) * sizeof(weft_real));
}
static weft_tensor *copy_backward(const weft_call *c, weft_tensor *dy, int i)
{
    act_in(BACK);
    return (void)c, (void)i, weft_scale(dy, 1);
}
static void copy_fused(const weft_call *c)
{
    bool add;
    weft_real *dx = weft_op_dx(c, 0, &add);
    const weft_real *dy = weft_op_dy(c, 0);
    act_in(FUSED);
    for (int64_t i = 0; dx && i < weft_numel(c->x[0]); i++)
        dx[i] = add ? dx[i] + dy[i] : dy[i];
}
static void copy_composed(const weft_call *c, weft_tensor **y)
{
    y[0] = weft_scale(c->x[0], 1);
    act_in(COMPOSED);
}
static void copy_describe(const weft_call *c, char *text, size_t size)
{
    act_in(DESCRIBE);
    (void)c, snprintf(text, size, "a copy");
}

static void run_operator(function_part p)
{
    const weft_op op = { .name = "copy",
                         .shape = copy_shape,
                         .forward = copy_forward,
                         .backward = p == BACK ? copy_backward : NULL,
                         .fused = p == FUSED ? copy_fused : NULL,
                         .composed = p == COMPOSED ? copy_composed : NULL,
                         .describe = copy_describe };
    acts = p;
    weft_tensor *y = weft_op_apply(&op, WEFT_LIST(now.x), NULL, 0);
    if (p >= BACK && p <= COMPOSED)
        weft_backward(weft_sum_all(y));
    FILE *nowhere = p == DESCRIBE ? fopen("/dev/null", "w") : NULL;
    if (nowhere)
        weft_print_tape(nowhere, now.w), fclose(nowhere);
}

/* ---- the other callbacks ---- */
static void looks(const weft_tensor *y, const char *name, void *user)
{
    (void)y, (void)name, (void)user, act();
}
static void in_result(void)
{
    weft_on_result(now.w, looks, NULL);
    weft_matmul(weft_tanh(now.x), now.x);
    weft_on_result(now.w, NULL, NULL);
}
static void in_result_of_backward(void)
{
    weft_tensor *y = weft_sum_all(weft_mul(weft_tanh(now.x), now.x));
    weft_on_result(now.w, looks, NULL);
    weft_backward(y);
    weft_on_result(now.w, NULL, NULL);
}

static weft_state cell_step(const weft_cell_input *in, void *user)
{
    weft_tensor *h = weft_tanh(weft_add(in->x, in->h));
    return (void)user, act(), (weft_state){ h, NULL };
}
static void in_cell(void)
{
    static int made;
    const weft_cell cell = { .name = "own", .gates = 1, .gates_h = -1, .step = cell_step };
    weft_rnn *r = weft_rnn_of_cell(weft_module_new(now.w, name_with("c", made++)), "r", &cell,
                                   &(weft_rnn_opts){ .input = 3, .hidden = 3 });
    weft_rnn_run(r, weft_zeros(now.w, WEFT_SHAPE(2, 4, 3)), WEFT_ZERO_STATE);
}

static weft_tensor *scores(weft_decode_rows *rows, void *user)
{
    weft_tensor *y = weft_zeros(now.w, WEFT_SHAPE(rows->n, 5));
    return (void)user, act(), y;
}
static void in_decoding(void)
{
    weft_decoded d = weft_decode(now.w, 2, WEFT_ZERO_STATE, scores, NULL,
                                 &(weft_decode_opts){ .begin = 1, .end = -1, .limit = 3 });
    cr_assert(!d.tokens && !d.n);
}

static weft_tensor *square(weft_tensor *const *x, void *user)
{
    act();
    return (void)user, weft_sum_all(weft_mul(x[0], x[0]));
}
static void in_gradcheck(void) { cr_assert(isnan(weft_gradcheck(square, WEFT_LIST(now.x), 1, NULL))); }

static weft_status plans(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    act();
    return weft_planner_named("order")->plan(len, n, o, p);
}
static void in_planner(void)
{
    static int made;
    static const weft_planner planner = { .name = "mine", .plan = plans };
    const char *name = name_with("l", made++);
    weft_plan_loader_new(now.w, name, 3, (int32_t[]){ 1, 2, 3 }, &planner, &(weft_plan_opts){ .count = 2 });
}

/* run: NULL for a function of the operator; by_walk: it runs in a backward pass. */
typedef struct { const char *named; void (*run)(void); bool by_walk; function_part part; } site;
static const site sites[] = { { "shape function of", NULL, false, SHAPE },
                              { "forward function of", NULL, false, FORWARD },
                              { "backward function of", NULL, true, BACK },
                              { "fused function of", NULL, true, FUSED },
                              { "composed function of", NULL, true, COMPOSED },
                              { "describe function of", NULL, false, DESCRIBE },
                              { "weft_on_result", in_result, false, SHAPE },
                              { "weft_on_result", in_result_of_backward, true, SHAPE },
                              { "the cell \"own\"", in_cell, false, SHAPE },
                              { "step function of \"decode\"", in_decoding, false, SHAPE },
                              { "function of \"gradcheck\"", in_gradcheck, false, SHAPE },
                              { "planner \"mine\"", in_planner, false, SHAPE } };

static weft_tensor *a_parameter(weft *w)
{
    return weft_parameter(weft_module_new(w, "m"), "p", 2, (int64_t[]){ 3, 3 },
                          (weft_init){ WEFT_INIT_NORMAL, 0, 1 });
}

static void goes_on(weft *w)
{
    weft_tensor *p = weft_parameter(weft_module_new(w, "end"), "p", 1, (int64_t[]){ 2 },
                                    (weft_init){ WEFT_INIT_CONSTANT, 3, 0 });
    weft_backward(weft_sum_all(weft_mul(p, p)));
    const weft_real *g = numbers(weft_grad(p));
    cr_assert(weft_ok(w) && g[0] == 6 && g[1] == 6, "%s", weft_error_message(w));
}

static void tried(weft *w, weft_tensor *p, const site *s, action a)
{
    weft_mark old = weft_mark_here(w);
    now.w = w, now.does = a, now.old = old, now.x = weft_scale(p, 1), now.calls = 0;
    if (s->run)
        s->run();
    else
        run_operator(s->part);
    cr_assert(now.calls, "%s does not call", s->named);
    const char *message = weft_error_message(w);
    cr_assert(strstr(message, a == BACKWARD ? "another weft_backward" : refused[a]), "%s", message);
    cr_assert(a == BACKWARD || strstr(message, s->named), "%s: %s", s->named, message);
    weft_recover(w);
}

TABLE_TEST(callbacks, cannot_end_the_step_that_they_run_in)
{
    weft_tensor *p = a_parameter(w);
    for (int i = 0; i < COUNT(sites); i++)
        for (action a = CLEAR; a < ACTIONS; a++)
            if (a != BACKWARD || sites[i].by_walk)
                tried(w, p, &sites[i], a);
    goes_on(w);
}

/* ---- allowed calls ---- */
static weft_state rewinding_cell(const weft_cell_input *in, void *user)
{
    weft_mark here = weft_mark_here(now.w);
    weft_tanh(weft_tanh(in->x));
    weft_rewind(now.w, here);
    return (void)user, (weft_state){ weft_tanh(weft_add(in->x, in->h)), NULL };
}

TABLE_TEST(callbacks, may_rewind_to_their_own_marks)
{
    const weft_cell cell = { .name = "own", .gates = 1, .gates_h = -1, .step = rewinding_cell };
    now.w = w;
    weft_rnn *r = weft_rnn_of_cell(weft_module_new(w, "m"), "r", &cell,
                                   &(weft_rnn_opts){ .input = 3, .hidden = 3 });
    weft_mark before = weft_mark_here(w);
    weft_rnn_out o = weft_rnn_run(r, weft_full(w, 1, WEFT_SHAPE(2, 4, 3)), WEFT_ZERO_STATE);
    weft_backward(weft_sum_all(o.y));
    OK(w);
    weft_rewind(w, before);                  /* the limit on marks ends with the call */
}

/* ---- returned tensors ---- */
static weft_tensor *foreign;
static weft_tensor *foreign_backward(const weft_call *c, weft_tensor *dy, int i)
{
    return (void)c, (void)dy, (void)i, foreign;
}
static weft_tensor *ended_backward(const weft_call *c, weft_tensor *dy, int i)
{
    weft *w = weft_context_of(dy);
    weft_mark here = weft_mark_here(w);
    weft_tensor *g = weft_scale(dy, 2);
    weft_rewind(w, here);
    return (void)c, (void)i, g;
}
static void foreign_composed(const weft_call *c, weft_tensor **y) { (void)c, y[0] = foreign; }
static weft_tensor *foreign_value(weft_tensor *const *x, void *user) { return (void)x, (void)user, foreign; }

static void backward_of(const weft_op *op, weft_tensor *p)
{
    acts = DESCRIBE;
    weft_backward(weft_sum_all(weft_op_apply(op, WEFT_LIST(p), NULL, 0)));
}

TABLE_TEST(callbacks, must_return_tensors_of_this_step)
{
    const weft_op back = { .name = "b", .shape = copy_shape, .forward = copy_forward,
                           .backward = foreign_backward },
                  ended = { .name = "e", .shape = copy_shape, .forward = copy_forward,
                            .backward = ended_backward },
                  composed = { .name = "c", .shape = copy_shape, .forward = copy_forward,
                               .composed = foreign_composed };
    weft *other = weft_open(&(weft_opts){ .device = WEFT_REF, .threads = 1 });
    weft_tensor *p = a_parameter(w);
    foreign = weft_zeros(other, WEFT_SHAPE(3, 3));
    backward_of(&back, p);
    FAILS(w, WEFT_EARG, "backward of b: the tensor that it returned is of another context");
    backward_of(&composed, p);
    FAILS(w, WEFT_EARG, "composed of c: the tensor that it returned is of another context");
    backward_of(&ended, p);
    FAILS(w, WEFT_EARG, "backward of e: the tensor that it returned is of a step that has ended");
    cr_assert(isnan(weft_gradcheck(foreign_value, WEFT_LIST(p), 1, NULL)));
    FAILS(w, WEFT_EARG, "gradcheck: the tensor that the function returned is of another context");
    weft_close(other);
}

/* ---- memory functions ---- */
static void *allocates(size_t bytes, void *user)
{
    (void)user, act();
    return malloc(bytes ? bytes : 1);
}
static void releases(void *p, void *user) { (void)user, act(), free(p); }

Test(callbacks, memory_functions_cannot_use_the_context)
{
    for (action a = CLEAR; a < ACTIONS; a++) {
        now.rests = true;
        weft *w = weft_open(&(weft_opts){ .device = WEFT_CPU, .threads = 1, .allocate = allocates,
                                          .release = releases });
        weft_tensor *x = weft_zeros(w, WEFT_SHAPE(3, 3));
        now.w = w, now.does = a, now.old = weft_mark_here(w), now.x = x, now.calls = 0, now.rests = false;
        weft_zeros(w, WEFT_SHAPE(1 << 20));      /* more than the arena holds */
        cr_assert(now.calls && !weft_ok(w), "action %d: no error", a);
        cr_assert(a == BACKWARD || strstr(weft_error_message(w), "weft_opts.allocate"), "%s",
                  weft_error_message(w));
        now.rests = true;
        weft_recover(w);
        goes_on(w);
        weft_close(w);
    }
}

/* ---- shards ---- */
typedef struct { weft_parallel *p; int which; } ends_shard;
static void ends_the_shard(const weft_tensor *y, const char *name, void *user)
{
    const ends_shard *e = user;
    weft_part part;
    (void)y, (void)name;
    if (e->which == 0)
        weft_parallel_next(e->p, &part);
    else if (e->which == 1)
        weft_parallel_add(e->p, (weft_loss){ 0 });
    else if (e->which == 2)
        weft_parallel_begin(e->p, NULL, 2);
    else
        weft_parallel_begin_plan(e->p, NULL, 0);
}

TABLE_TEST(callbacks, cannot_end_the_shard_that_they_run_in)
{
    static const char *const named[] = { "parallel_next: called inside", "parallel_add: called inside",
                                         "parallel_begin: called inside",
                                         "parallel_begin_plan: called inside" };
    weft_module *m = weft_module_new(w, "m");
    weft_linear *l = weft_linear_new(m, "l", &(weft_linear_opts){ .in = 3, .out = 1 });
    for (int i = 0; i < COUNT(named); i++) {
        ends_shard e = { weft_parallel_new(m, &(weft_parallel_opts){ .shards = 2 }), i };
        weft_part part;
        weft_parallel_begin(e.p, NULL, 2);
        cr_assert(weft_parallel_next(e.p, &part));
        weft_on_result(w, ends_the_shard, &e);
        weft_linear_run(l, weft_zeros(w, WEFT_SHAPE(1, 3)));
        weft_on_result(w, NULL, NULL);
        FAILS(w, WEFT_EARG, named[i]);
    }
}
