/* test_cuda_recur.c - tests the choice of kernels for a recurrent layer on several kinds of emulated GPUs.
 *
 * It covers the estimate, refused queries, kernels that fail their first test, and the stored findings. */
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "cuda_emulated.h"
#include "tests/listen.h"

/* ---- a single layer ---- */
enum { STEPS = 12 };
static long long launches_of(weft *w, int32_t H, int64_t n)      /* of a forward pass over n sequences */
{
    int32_t *len = calloc((size_t)n, sizeof *len);
    long long launches = 0, queries = 0;
    for (int64_t s = 0; s < n; s++)
        len[s] = STEPS;
    weft_rnn *rnn = weft_lstm_new(weft_module_new(w, "net"), "rnn",
                                  &(weft_rnn_opts){ .input = 1, .hidden = H, .layers = 1 });
    for (int again = 0; again < 2; again++) {    /* the first may test kernels and allocate */
        weft_tensor *x = weft_ragged(w, calloc((size_t)n * STEPS, sizeof(weft_real)), 1,
                                     &(weft_lengths){ .n = n, .len = len });
        begin_counting();
        weft_rnn_run(rnn, x, WEFT_ZERO_STATE);
        launches = counted(LAUNCHES);
        queries = counted(QUERIES);
        weft_synchronize(w);
        OK(w);
        weft_clear(w);
    }
    cr_assert_eq(queries, 0, "each pass queries the kernel's attributes");
    return launches;
}
static bool in_one_kernel(const char *capability, bool deterministic, int32_t H, int64_t n)
{
    setenv("WEFT_EMU_CC", capability, 1);
    weft *w = open_with((weft_opts){ .device = WEFT_CUDA, .deterministic = deterministic });
    bool one = launches_of(w, H, n) < STEPS;
    CLEAN(w);
    return one;
}

/* Returns the result of fn in a new process. Only that process has the planted fault. */
static int in_a_process(int (*fn)(void), const char *variable, const char *value)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        if (variable)
            setenv(variable, value, 1);
        _exit(fn());
    }
    cr_assert(waitpid(child, &status, 0) == child && WIFEXITED(status), "status %x", (unsigned)status);
    return WEXITSTATUS(status);
}

/* ---- the estimate ---- */
static const struct {
    const char *capability;
    int32_t H;
    int64_t n;
    bool one, one_if_deterministic;
} cases[] = {
    { "80", 32, 9, true, true },
    { "80", 64, 3, true, true },
    { "80", 65, 3, true, true },
    { "80", 300, 3, true, true },
    { "80", 513, 3, false, false },
    { "90", 60, 3, true, true },
    { "90", 65, 3, true, true },
    { "90", 250, 2, true, true },
    { "90", 290, 1, true, true },
    { "90", 513, 1, false, false },
    { "100", 100, 1, true, true },
    { "120", 33, 3, true, true },
    { "120", 100, 2, true, true },
    { "120", 250, 1, true, true },
    { "120", 290, 1, true, true },
    /* Sixteen multiprocessors run blocks of eight sequences one after the other, 21 times. */
    { "90", 20, 2600, false, true },
};
static int which;
static int matches_case(void)
{
    const char *capability = cases[which].capability;
    const bool one = in_one_kernel(capability, false, cases[which].H, cases[which].n);
    const bool deterministic = in_one_kernel(capability, true, cases[which].H, cases[which].n);
    return one == cases[which].one && deterministic == cases[which].one_if_deterministic ? 7 : 8;
}
Test(recur_choice, depends_on_device_units_and_sequences)
{
    for (which = 0; which < COUNT(cases); which++)
        cr_assert_eq(in_a_process(matches_case, NULL, NULL), 7, "sm_%s, %d units, %lld sequences",
                     cases[which].capability, cases[which].H, (long long)cases[which].n);
}

/* ---- faults ---- */
static int32_t units;                            /* of the program's layer */
static const char *expected = "-";               /* text expected in its log */
static const char *kernel = "block_kernel";      /* the tested kernel, USED or not */
static weft_real *gradient(weft *w)              /* of a bias, for a loss over all states */
{
    const int32_t len[] = { 4, 1, 3 };
    weft_real x[8];
    dice_seed(5);
    weft_module *m = weft_module_new(w, "net");
    weft_rnn *rnn = weft_lstm_new(m, "rnn", &(weft_rnn_opts){ .input = 1, .hidden = units, .layers = 1 });
    weft_tensor *in = weft_ragged(w, dice_fill(x, 8, -1, 1), 1, &(weft_lengths){ .n = 3, .len = len });
    weft_backward(weft_sum_all(weft_square(weft_rnn_run(rnn, in, WEFT_ZERO_STATE).y)));
    weft_real *g = calloc((size_t)units * 4, sizeof *g);
    weft_read(weft_grad(weft_find_parameter(m, "rnn.bias_ih_l0")), g, (size_t)units * 4 * sizeof *g);
    return g;
}
static bool right(weft *w)                       /* the general kernel gives the same */
{
    setenv("WEFT_RECUR", "general", 1);
    weft *plain = open_on(WEFT_CUDA);
    weft_real *reference = gradient(plain);
    CLEAN(plain);
    unsetenv("WEFT_RECUR");
    return is_close("gradient", gradient(w), reference, units * 4, 1e-5) && weft_ok(w);
}
enum { USED = 1, LOGGED = 2, RIGHT = 4 };
static int program(void)
{
    setenv("WEFT_LOG", "1", 1);
    listen_to_stderr();
    weft *w = open_on(WEFT_CUDA);
    int flags = right(w) ? RIGHT : 0;
    weft_recover(w);
    setenv("WEFT_EMU_SAY", "1", 1);
    if (weft_ok(w))
        launches_of(w, units, 2);
    weft_close(w);
    const char *log = stop_listening();
    return flags | (strstr(log, kernel) ? USED : 0) | (strstr(log, expected) ? LOGGED : 0);
}
static const char *cache_file(const char *name)  /* NULL: no such file */
{
    static char path[4096];
    glob_t found;
    snprintf(path, sizeof path, "%s/weft/%s-*", getenv("XDG_CACHE_HOME"), name);
    bool exists = glob(path, 0, NULL, &found) == 0;
    snprintf(path, sizeof path, "%s", exists ? found.gl_pathv[0] : "");
    globfree(&found);
    return exists ? path : NULL;
}
static const char *verdict_file(void) { return cache_file("recur"); } /* the verdicts */
static void new_cache(void)
{
    static char folder[4096];
    if (!getenv("WEFT_BACKEND_PATH"))
        cr_skip_test("WEFT_BACKEND_PATH names no emulated GPU");
    snprintf(folder, sizeof folder, "%s/weft-verdicts-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    cr_assert_not_null(mkdtemp(folder));
    setenv("XDG_CACHE_HOME", folder, 1);
    unsetenv("WEFT_RECUR");
}
static void remove_cache(void)
{
    char path[4200];
    for (int i = 0; i < 2; i++)
        if (cache_file(i ? "timing" : "recur"))
            unlink(cache_file(i ? "timing" : "recur"));
    snprintf(path, sizeof path, "%s/weft", getenv("XDG_CACHE_HOME"));
    rmdir(path);
    rmdir(getenv("XDG_CACHE_HOME"));
}
TestSuite(recur_choice, .init = new_cache, .fini = remove_cache);

static const struct {
    const char *capability;
    int32_t units;
    const char *variable, *kernel, *what;
} faults[] = {
    { "80", 40, "WEFT_EMU_WRONG", "block_kernel", "forward: results differ by more than rounding" },
    { "120", 100, "WEFT_EMU_WRONG", "cluster_kernel",
      "the cluster kernel for lstm layers of up to 128 units: forward: results differ" },
    { "120", 100, "WEFT_EMU_LOSE", "cluster_kernel", ": timed out waiting for another block" },
    { "80", 100, "WEFT_EMU_WRONG", "group_kernel",
      "the group kernel for lstm layers of up to 128 units: forward: results differ" },
    { "80", 300, "WEFT_EMU_REFUSE", "group_kernel", ": too many resources requested for launch" },
    { "80", 100, "WEFT_EMU_LOSE", "group_kernel", ": timed out waiting for another block" },
};
Test(recur_choice, wrong_kernel_is_never_selected)
{
    for (int i = 0; i < COUNT(faults); i++) {
        setenv("WEFT_EMU_CC", faults[i].capability, 1);
        units = faults[i].units;
        kernel = faults[i].kernel;
        expected = faults[i].what;
        cr_assert_eq(in_a_process(program, faults[i].variable, kernel), RIGHT | LOGGED, "%s", expected);
        cr_assert_eq(in_a_process(program, NULL, NULL), RIGHT, "%s: tested again", expected);
        cr_assert_eq(in_a_process(program, "WEFT_CACHE", "off"), RIGHT | USED,
                     "%s: not tested without the file", expected);
        cr_assert_eq(in_a_process(program, "WEFT_EMU_DRIVER", "13010"), RIGHT | USED,
                     "%s: not tested with another driver", expected);
        remove_cache();
        new_cache();
    }
}
/* A crashed kernel loses the context. The next program avoids the kernel. */
Test(recur_choice, crash_happens_once)
{
    setenv("WEFT_EMU_CC", "80", 1);
    units = 40;
    expected = ": the device failed";
    cr_assert_eq(in_a_process(program, "WEFT_EMU_FAIL", "block_kernel"), LOGGED);
    cr_assert_eq(in_a_process(program, "WEFT_EMU_FAIL", "block_kernel"), RIGHT);
}
/* Code for older GPUs lacks kernels that this GPU could run. */
Test(recur_choice, code_of_other_gpus_lacks_kernels)
{
    setenv("WEFT_EMU_CC", "90", 1);
    units = 300;
    kernel = "cluster_kernel";
    cr_assert_eq(in_a_process(program, "WEFT_EMU_CODE", "90"), RIGHT | USED);
    cr_assert_eq(in_a_process(program, "WEFT_EMU_CODE", "80"), RIGHT);
    kernel = "group_kernel";
    cr_assert_eq(in_a_process(program, "WEFT_EMU_CODE", "80"), RIGHT | USED);
    setenv("WEFT_EMU_CC", "120", 1);
    cr_assert_eq(in_a_process(program, "WEFT_EMU_CODE", "120"), RIGHT | USED);
    cr_assert_eq(in_a_process(program, "WEFT_EMU_CODE", "90"), RIGHT);
}
Test(recur_choice, refused_queries_select_the_general_kernel)
{
    units = 100;
    kernel = "cluster_kernel";
    cr_assert_eq(in_a_process(program, "WEFT_EMU_QUERIES", "0"), RIGHT);
    /* right() has removed WEFT_RECUR from the environment */
    cr_assert_eq(in_a_process(program, "WEFT_RECUR", "general"), RIGHT | USED);
}

/* The kernel passes its test, and a later step loses the stores between blocks. That training step must
 * change nothing, although memory holds valid numbers of the step before. */
static int fails_later(void)
{
    weft *w = open_on(WEFT_CUDA);
    if (!right(w) || launches_of(w, units, 2) >= STEPS)
        return 1;
    weft_module *m = weft_module_new(w, "net");
    weft_rnn *rnn = weft_lstm_new(m, "rnn", &(weft_rnn_opts){ .input = 1, .hidden = units, .layers = 1 });
    weft_optim *sgd = weft_sgd_new(m, &(weft_sgd_opts){ .lr = 0.1f });
    weft_real *before = NULL;
    for (int round = 0; round < 2; round++) {
        weft_clear(w);
        before = numbers(weft_find_parameter(m, "rnn.bias_ih_l0"));
        if (round)
            setenv("WEFT_EMU_LOSE", kernel, 1);
        weft_tensor *x =
            weft_ragged(w, (weft_real[]){ 1, 2, 3 }, 1, &(weft_lengths){ .n = 1, .len = (int32_t[]){ 3 } });
        weft_backward(weft_sum_all(weft_square(weft_rnn_run(rnn, x, WEFT_ZERO_STATE).y)));
        weft_optim_step(sgd);
        weft_synchronize(w);
    }
    if (weft_ok(w) || !strstr(weft_error_message(w), "timed out waiting for each other"))
        return 2;
    weft_recover(w);
    if (!is_same("bias", numbers(weft_find_parameter(m, "rnn.bias_ih_l0")), before, units * 4))
        return 3;
    weft_clear(w);
    return right(w) && launches_of(w, units, 2) >= STEPS ? 7 : 4;
}
/* Numbers that were not computed must be NaN, also if memory holds numbers of an earlier step: all rows after
 * the first in a forward pass, the gradient of the initial state in a backward pass of one step. */
static bool backward;
static int leaves_nan(void)
{
    const int32_t n = backward ? 1 : 3;
    weft *w = open_on(WEFT_CUDA);
    if (!right(w) || launches_of(w, units, 2) >= STEPS)
        return 1;
    weft_module *m = weft_module_new(w, "net");
    weft_rnn *rnn = weft_lstm_new(m, "rnn", &(weft_rnn_opts){ .input = 1, .hidden = units, .layers = 1 });
    weft_tensor *h0 =
        weft_parameter(m, "h0", WEFT_SHAPE(1, 1, units), (weft_init){ WEFT_INIT_CONSTANT, 0.5f, 0 });
    weft_tensor *result = weft_buffer(m, "kept", WEFT_SHAPE(n, units));
    for (int round = 0; round < 2; round++) {
        weft_clear(w);
        weft_zero_grad(m);
        if (round)
            setenv("WEFT_EMU_LOSE", kernel, 1);
        weft_tensor *x = weft_ragged(w, (weft_real[]){ 1, 2, 3 }, 1, &(weft_lengths){ .n = 1, .len = &n });
        weft_tensor *y =
            weft_rnn_run(rnn, x, (weft_state){ h0, weft_full(w, 0.5f, WEFT_SHAPE(1, 1, units)) }).y;
        if (backward)
            weft_backward(weft_sum_all(weft_square(y)));
        weft_assign(result, backward ? weft_reshape(weft_grad(h0), WEFT_SHAPE(1, units)) : weft_plain(y));
        weft_synchronize(w);
        if (weft_ok(w) == round)
            return 2;
    }
    weft_recover(w);
    const weft_real *values = numbers(result);
    for (int i = backward ? 0 : units; i < n * units; i++)
        if (!isnan(values[i]))
            return 3;
    return 7;
}
static void check_wait_ends(const char *capability, const char *name)
{
    setenv("WEFT_EMU_CC", capability, 1);
    units = 100;
    kernel = name;
    for (int kind = 0; kind < 2; kind++) {
        backward = kind;
        cr_assert_eq(in_a_process(leaves_nan, "WEFT_CACHE", "off"), 7, "%s: %s", name,
                     backward ? "backward" : "forward");
    }
    cr_assert_eq(in_a_process(fails_later, NULL, NULL), 7, "%s", name);
    cr_assert_eq(in_a_process(program, NULL, NULL), RIGHT, "%s: the next program tests it", name);
}
Test(recur_choice, wait_for_a_cluster_ends)
{
    setenv("WEFT_EMU_REFUSE", "group_kernel", 1);          /* the choice after clusters */
    check_wait_ends("120", "cluster_kernel");
}
Test(recur_choice, wait_for_a_group_ends) { check_wait_ends("80", "group_kernel"); }

/* ---- by measured times ---- */
enum { BY_STEPS = 1, IN_BLOCKS = 2, IN_CLUSTERS = 4, IN_GROUPS = 8 };
/* Runs forward passes and returns the kernel of the last one. More than 99: passes after the thirtieth
 * differ. 99: an error. 98: weft_usage does not count the first `trials` passes as trials, or each pass
 * once. */
static const struct { const char *times; int kind; } simulated[] = {
    { "block_kernel=5 cluster_kernel=1 group_kernel=2 forward_units=3", IN_CLUSTERS },
    { "block_kernel=2 cluster_kernel=9 group_kernel=3 forward_units=3", IN_BLOCKS },
    { "block_kernel=7 cluster_kernel=6 group_kernel=5 forward_units=.1", BY_STEPS },
    { "block_kernel=7 cluster_kernel=6 group_kernel=5 forward_units=3", IN_GROUPS },
};
static int passes, trials;
static bool deterministic;
static int last_kernel(void)
{
    weft *w = open_with((weft_opts){ .device = WEFT_CUDA, .deterministic = deterministic });
    const int32_t len[] = { STEPS, STEPS - 1 };
    weft_rnn *rnn = weft_lstm_new(weft_module_new(w, "net"), "rnn",
                                  &(weft_rnn_opts){ .input = 1, .hidden = 60, .layers = 1 });
    int previous = 0;
    for (int i = 0; i < passes; i++) {
        weft_tensor *x = weft_ragged(w, calloc(2 * STEPS, sizeof(weft_real)), 1,
                                     &(weft_lengths){ .n = 2, .len = len });
        listen_to_stderr();
        setenv("WEFT_EMU_SAY", "1", 1);
        weft_rnn_run(rnn, x, WEFT_ZERO_STATE);
        weft_synchronize(w);
        unsetenv("WEFT_EMU_SAY");
        const char *log = stop_listening();
        const int kind = strstr(log, "forward_units") ? BY_STEPS :
                        strstr(log, "cluster_kernel") ? IN_CLUSTERS :
                        strstr(log, "group_kernel")   ? IN_GROUPS :
                                                         IN_BLOCKS;
        if (i > 30 && kind != previous)
            return 100 + i;
        previous = kind;
        const weft_usage u = weft_usage_of(w);
        if (u.trials != (i < trials ? i + 1 : trials) ||
            u.recurrent[0] + u.recurrent[1] + u.recurrent[2] + u.recurrent[3] != i + 1)
            return 98;
        weft_clear(w);
    }
    return weft_ok(w) ? previous : 99;
}
Test(recur_choice, fastest_kernel_is_found_and_stored)
{
    setenv("WEFT_EMU_CC", "120", 1);             /* has all four kernels */
    for (int i = 0; i < COUNT(simulated); i++) {
        const char *other = simulated[(i + 1) % COUNT(simulated)].times;
        passes = 40;                             /* three trials of each kernel */
        trials = 12;
        deterministic = false;
        cr_assert_eq(in_a_process(last_kernel, "WEFT_EMU_TIMES", simulated[i].times), simulated[i].kind, "%s",
                     simulated[i].times);
        passes = 1;
        trials = 0;
        cr_assert_eq(in_a_process(last_kernel, NULL, NULL), simulated[i].kind,
                     "%s: not stored for the next program", simulated[i].times);
        passes = 40;
        cr_assert_eq(in_a_process(last_kernel, "WEFT_EMU_TIMES", other), simulated[i].kind,
                     "%s: selected again", simulated[i].times);
        deterministic = true;
        cr_assert_eq(in_a_process(last_kernel, "WEFT_EMU_TIMES", simulated[i].times), IN_BLOCKS,
                     "deterministic: selected by time");
        deterministic = false;
        cr_assert_eq(in_a_process(last_kernel, "WEFT_CACHE", "off"), IN_BLOCKS, "off: selected by time");
        remove_cache();
        new_cache();
    }
}

/* ---- two GPUs ---- */
/* Each device must grant a kernel its shared memory before the first launch there. */
static int runs_on_both(void)
{
    static const struct { const char *kind; int32_t units; } wide[] = {
        { "block", 128 }, { "cluster", 500 }
    };
    for (int i = 0; i < COUNT(wide); i++) {
        units = wide[i].units;
        setenv("WEFT_RECUR", "general", 1);
        const weft_real *reference = gradient(open_gpu(1));
        setenv("WEFT_RECUR", wide[i].kind, 1);
        for (int gpu = 0; gpu < 2; gpu++) {
            weft *w = open_gpu(gpu);
            if (!is_close("gradient", gradient(w), reference, units * 4, 1e-5) || !weft_ok(w))
                return 10 * i + gpu;
            if (launches_of(w, units, 2) >= STEPS)
                return 10 * i + gpu + 2;         /* one kernel per step */
        }
    }
    return 7;
}
Test(recur_choice, attributes_are_queried_for_each_gpu)
{
    cr_assert_eq(in_a_process(runs_on_both, "WEFT_EMU_CC", "90"), 7);
}

/* ---- the file ---- */
static void store_verdict(void)                  /* stores that the block kernel is wrong */
{
    setenv("WEFT_EMU_CC", "80", 1);
    units = 40;
    expected = "-";
    in_a_process(program, "WEFT_EMU_WRONG", "block_kernel");
    cr_assert_eq(in_a_process(program, NULL, NULL), RIGHT);
    cr_assert_not_null(verdict_file());
}
Test(recur_choice, damaged_or_foreign_files_are_ignored)
{
    enum { DAMAGED, CUT, WRITABLE, LINK, FIFO, DAMAGES };
    static const char *const names[DAMAGES] = { "damaged", "cut", "writable for all", "a link", "a fifo" };
    for (int damage = 0; damage < DAMAGES; damage++) {
        store_verdict();
        const char *path = verdict_file();
        char elsewhere[4200];
        struct stat s;
        snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", getenv("XDG_CACHE_HOME"));
        stat(path, &s);
        FILE *f = damage == DAMAGED ? fopen(path, "r+") : NULL;
        if (f) {
            fseek(f, s.st_size - 24, SEEK_SET);
            fputc('+', f);
            fclose(f);
        }
        const int done = damage == DAMAGED  ? 0 :
                         damage == CUT      ? truncate(path, s.st_size - 1) :
                         damage == WRITABLE ? chmod(path, 0666) :
                                                       rename(path, elsewhere);
        cr_assert_eq(done, 0);
        if (damage >= LINK)
            cr_assert_eq(damage == LINK ? symlink(elsewhere, path) : mkfifo(path, 0600), 0);
        cr_assert_eq(in_a_process(program, NULL, NULL), RIGHT | USED, "%s", names[damage]);
        cr_assert_not_null(verdict_file(), "%s: not replaced", names[damage]);
        cr_assert(!lstat(verdict_file(), &s) && S_ISREG(s.st_mode) && (s.st_mode & 0777) == 0600);
        unlink(elsewhere);
        remove_cache();
        new_cache();
    }
}
Test(recur_choice, no_folder_is_needed)
{
    setenv("WEFT_EMU_CC", "80", 1);
    units = 40;
    char path[4200];
    snprintf(path, sizeof path, "%s/weft", getenv("XDG_CACHE_HOME"));
    FILE *f = fopen(path, "w");                  /* in place of the folder */
    fclose(f);
    cr_assert_eq(in_a_process(program, NULL, NULL), RIGHT | USED);
    unlink(path);
    setenv("WEFT_CACHE", "off", 1);
    cr_assert_eq(in_a_process(program, NULL, NULL), RIGHT | USED);
    cr_assert_neq(access(path, F_OK), 0, "off, but the folder was created");
}
