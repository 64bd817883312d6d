/* test_environment.c - tests the WEFT_.. variables. An invalid value is an error of weft_open. An unknown
 * name is reported in one line, once per process. */
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

Test(environment, reports_a_misspelt_name_once)
{
    unsetenv("WEFT_LOG");
    setenv("WEFT_THREAD", "1", 1);
    setenv("WEFT_CHEK", "1", 1);
    const char *said = opened(),
               *first = strstr(said, "weft: unknown variable WEFT_THREAD; WEFT_THREADS is near (docs/"),
               *second = strstr(said, "weft: unknown variable WEFT_CHEK; WEFT_CHECK is near (docs/");
    cr_assert(first && second && strlen(said) < 260, "%s", said);
    cr_assert_str_empty(opened());
    setenv("WEFT_NUM_THREADS", "1", 1);
    cr_assert(strstr(opened(), "WEFT_NUM_THREADS; WEFT_THREADS is near"));
    setenv("WEFT_QQQQ", "1", 1);
    cr_assert(!strncmp(opened(), "weft: unknown variable WEFT_QQQQ (docs/", 38));
}

Test(environment, is_silent_when_set_to_zero)
{
    setenv("WEFT_LOG", "0", 1);
    setenv("WEFT_THREAD", "1", 1);
    cr_assert_str_empty(opened());
}

Test(environment, accepts_known_names)
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

Test(environment, refuses_invalid_values)
{
    static const struct {
        const char *name;
        weft_status status;
        const char *values[9];
    } variables[] = {
        { "WEFT_LOG", WEFT_EARG, { "3", "-1", "yes", "11" } },
        { "WEFT_CHECK", WEFT_EARG, { "2", "yes" } },
        { "WEFT_THREADS",
          WEFT_EARG,
          { "two", "-1", "+2", " 2", "2 ", "1025", "99999999999999999999", "0x2" } },
        { "WEFT_DEVICE", WEFT_EDEVICE, { "abacus", "cpu:", "cpu:-1", "cpu:1x", "cpu:4294967296" } },
        { "WEFT_ISA", WEFT_EDEVICE, { "mmx" } },
        { "WEFT_GEMM", WEFT_EDEVICE, { "/no/such/lib.so" } },
    };
    for (int i = 0; i < COUNT(variables); i++)
        for (const char *const *value = variables[i].values; *value; value++) {
            setenv(variables[i].name, *value, 1);
            weft *w = open_with((weft_opts){ .device = WEFT_CPU, .threads = 2 });
            unsetenv(variables[i].name);
            cr_assert(weft_error_code(w) == variables[i].status && strstr(weft_error_message(w), *value),
                      "%s=%s: %s", variables[i].name, *value, weft_error_message(w));
            CLEAN_FAILED(w);
        }
}
