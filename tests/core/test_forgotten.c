/* test_forgotten.c - tests the warning about a missing weft_clear. It is printed once, in one line. A program
 * that clears, rewinds or turns the warning off does not see it. */
#include "tests/listen.h"

static int lines(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

typedef enum { FORGETS, CLEARS, CLEARS_LATE, REWINDS } habit;
static const char *after(habit how, bool updates, int steps)
{
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *p = weft_parameter(m, "p", WEFT_SHAPE(2), (weft_init){ WEFT_INIT_CONSTANT, 1, 0 });
    weft_optim *o = weft_sgd_new(m, NULL);
    listen_to_stderr();
    for (int t = 0; t < steps; t++) {
        weft_mark here = weft_mark_here(w);
        weft_tensor *loss = weft_sum_all(weft_square(p));
        if (!updates || t == 0)
            weft_backward(loss);
        if (updates)
            weft_optim_step(o);
        if (how == CLEARS || (how == CLEARS_LATE && t % 999 == 998))
            weft_clear(w);
        if (how == REWINDS)
            weft_rewind(w, here);
    }
    const char *said = stop_listening();
    CLEAN(w);
    return said;
}

Test(forgotten, is_reported_once, .init = unchecked)             /* WEFT_CHECK reports it earlier */
{
    unsetenv("WEFT_LOG");
    for (int updates = 0; updates < 2; updates++) {
        cr_assert_str_empty(after(FORGETS, updates, 999));
        const char *said = after(FORGETS, updates, 2500);
        const char *calls =
            updates ? "weft: 1000 calls of weft_optim_step since" : "weft: 1000 calls of weft_backward since";
        cr_assert(lines(said) == 1 && strstr(said, calls) && strstr(said, "Call weft_clear once"), "%s",
                  said);
        setenv("WEFT_LOG", "0", 1);
        cr_assert_str_empty(after(FORGETS, updates, 1500));
        unsetenv("WEFT_LOG");
        for (habit how = CLEARS; how <= REWINDS; how++)
            cr_assert_str_empty(after(how, updates, 2500));
    }
}
