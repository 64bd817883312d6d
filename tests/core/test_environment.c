/* test_environment.c - a variable WEFT_.. that does not exist is told in one line, once in a process; those
 * that exist are not. */
#include "tests/listen.h"

static const char *opened(void)
{
    listen_to_stderr();
    weft *w = weft_open(&(weft_opts){ .device = WEFT_CPU, .threads = 1 });
    const char *said = stop_listening();
    cr_assert(weft_ok(w));
    weft_close(w);
    return said;
}

Test(environment, a_misspelt_name_is_told_once)
{
    unsetenv("WEFT_LOG");
    setenv("WEFT_THREAD", "1", 1);
    setenv("WEFT_CHEK", "1", 1);
    const char *said = opened(),
               *first = strstr(said, "weft: there is no variable WEFT_THREAD; WEFT_THREADS is near (docs/"),
               *second = strstr(said, "weft: there is no variable WEFT_CHEK; WEFT_CHECK is near (docs/");
    cr_assert(first && second && strlen(said) < 260, "%s", said);
    cr_assert_str_empty(opened());
    setenv("WEFT_NUM_THREADS", "1", 1);
    cr_assert(strstr(opened(), "WEFT_NUM_THREADS; WEFT_THREADS is near"));
    setenv("WEFT_QQQQ", "1", 1);
    cr_assert(!strncmp(opened(), "weft: there is no variable WEFT_QQQQ (docs/", 42));
}

Test(environment, zero_silences)
{
    setenv("WEFT_LOG", "0", 1);
    setenv("WEFT_THREAD", "1", 1);
    cr_assert_str_empty(opened());
}

Test(environment, names_that_exist_are_not_told)
{
    static const char *const names[] = {
        "WEFT_ISA",   "WEFT_NCCL",   "WEFT_BACKEND_PATH", "WEFT_PARALLEL_TIMEOUT", "WEFT_SYNC", "WEFT_RECUR",
        "WEFT_CACHE", "WEFT_TABLES", "WEFT_SMALL",        "WEFT_EMU_ORDER",        "WEFTWEFT_X"
    };
    for (int i = 0; i < COUNT(names); i++)
        setenv(names[i], "", 1);
    unsetenv("WEFT_LOG");
    cr_assert_str_empty(opened());
}
