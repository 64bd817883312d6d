/* test_check_lines.c - tests the lines that WEFT_CHECK=1 prints: a step without gradients, ids that a float
 * rounds, a second thread in a context. Correct programs print nothing. */
#include <pthread.h>
#include "tests/listen.h"

static void checked(void) { setenv("WEFT_CHECK", "1", 1); }
TestSuite(check_lines, .init = checked);

static bool is_one_line(const char *said, const char *begin)
{
    const char *end = strchr(said, '\n');
    return !strncmp(said, begin, strlen(begin)) && end && !end[1];
}

/* ---- a step without gradients ---- */
typedef enum { STEP_FIRST, ZEROED, FROZEN, CLIP_LATE, CLIP_FIRST, DIVIDE_LATE, RIGHT, ACCUMULATED } order;

static void before_the_step(order how, weft *w, weft_module *m)
{
    if (how == ZEROED)
        weft_zero_grad(m);
    if (how == FROZEN)
        weft_freeze(m, "*", true);
    if (how == RIGHT)
        weft_clip_grad_norm(m, 1, 0), weft_divide_grad(m, weft_scalar(w, 2));
}

static void after_the_step(order how, weft *w, weft_module *m)
{
    if (how == CLIP_LATE)
        weft_clip_grad_norm(m, 1, 0);
    if (how == DIVIDE_LATE)
        weft_divide_grad(m, weft_scalar(w, 2));
    if (how == FROZEN)
        weft_freeze(m, "*", false);
}

static const char *said_in(order how, int steps)
{
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *p = weft_parameter(m, "p", WEFT_SHAPE(3), (weft_init){ WEFT_INIT_CONSTANT, 1, 0 });
    weft_optim *o = weft_sgd_new(m, &(weft_sgd_opts){ .lr = .1 });
    listen_to_stderr();
    for (int i = 0; i < steps; i++) {
        if (how == STEP_FIRST)
            weft_optim_step(o);
        if (how == CLIP_FIRST)
            weft_clip_grad_norm(m, 1, 0);
        weft_backward(weft_sum_all(weft_square(p)));
        before_the_step(how, w, m);
        if (how != STEP_FIRST && (how != ACCUMULATED || i % 3 == 2))
            weft_optim_step(o);
        after_the_step(how, w, m);
        weft_clear(w);
    }
    const char *said = stop_listening();
    CLEAN(w);
    return said;
}

Test(check_lines, report_a_step_without_gradients)
{
    const char *step = "weft: WEFT_CHECK: optim_step: it changes nothing: ",
               *clip = "weft: WEFT_CHECK: clip_grad_norm: all gradients are zero: ",
               *divide = "weft: WEFT_CHECK: divide_grad: all gradients are zero: ";
    cr_assert(is_one_line(said_in(STEP_FIRST, 3), step));
    cr_assert(is_one_line(said_in(ZEROED, 3), step));
    cr_assert(is_one_line(said_in(FROZEN, 3), step));
    cr_assert(is_one_line(said_in(CLIP_LATE, 3), clip));
    cr_assert(is_one_line(said_in(CLIP_FIRST, 3), clip));
    cr_assert(is_one_line(said_in(DIVIDE_LATE, 3), divide));
    cr_assert_str_empty(said_in(RIGHT, 3));
    cr_assert_str_empty(said_in(ACCUMULATED, 6));
}

TABLE_TEST(check_lines, report_ids_that_a_float_rounds)
{
    const int32_t ids[] = { 1 << 24, -(1 << 24), (1 << 24) + 2, (1 << 24) + 1, (1 << 24) + 3 };
    listen_to_stderr();
    weft_to_reals(weft_ints(w, ids, WEFT_SHAPE(3)));
    cr_assert_str_empty(stop_listening());
    listen_to_stderr();
    weft_to_reals(weft_ints(w, ids, WEFT_SHAPE(5)));
    weft_to_reals(weft_ints(w, ids, WEFT_SHAPE(5)));
    const char *said = stop_listening(),
               *line =
                   "weft: WEFT_CHECK: to_reals: [5] of ints: 16777217 at [3] becomes 16777216: a "
                   "float holds integers up to 16777216";
    cr_assert(sizeof(weft_real) == 8 ? !*said : is_one_line(said, line), "%s", said);
}

/* ---- two threads ---- */
typedef struct { weft *w; atomic_int ready; } shared;

static void *computes(void *user)
{
    shared *s = user;
    atomic_fetch_add(&s->ready, 1);
    while (atomic_load(&s->ready) < 2)
        ;
    weft_tensor *x = weft_full(s->w, 1, WEFT_SHAPE(300));
    for (int i = 0; i < 20000 && weft_ok(s->w); i++)
        x = weft_tanh(x);
    return NULL;
}

/* The second thread touches nothing. Without WEFT_CHECK both would write to the context. ThreadSanitizer
 * correctly reports that both read the failure flag. */
CPU_TEST(check_lines, report_two_threads_in_a_context)
{
#ifdef __SANITIZE_THREAD__
    return;
#endif
    shared s = { .w = w };
    pthread_t both[2];
    listen_to_stderr();
    for (int i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&both[i], NULL, computes, &s), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(both[i], NULL);
    const char *said = stop_listening();
    cr_assert(strstr(said, ": another thread is at work in this context; one thread at a time"), "%s", said);
    FAILS(w, WEFT_EARG, "another thread is at work in this context (WEFT_CHECK)");
}

static void *trains(void *user)
{
    weft *w = user;
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *p = weft_parameter(m, "p", WEFT_SHAPE(3), (weft_init){ WEFT_INIT_CONSTANT, 1, 0 });
    weft_optim *o = weft_sgd_new(m, NULL);
    for (int i = 0; i < 3; i++) {
        weft_backward(weft_sum_all(weft_square(p)));
        weft_optim_step(o);
        weft_clear(w);
    }
    return NULL;
}

CPU_TEST(check_lines, accept_a_context_handed_to_another_thread)
{
    pthread_t other;
    listen_to_stderr();
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(pthread_create(&other, NULL, trains, w), 0);
        pthread_join(other, NULL);
        trains(w);
    }
    cr_assert_str_empty(stop_listening());
}
