/* test_refused.c - calls every public function with bad tensors, handles and numbers.
 *
 * The callers and their table are generated from the public headers (refusals.py). A bad tensor or handle
 * among good ones must fail the context with a message that names the function; no bad argument may crash. */
#include <limits.h>
#include <signal.h>
#include <unistd.h>
#include "tests/check.h"
#include "core/inside.h"

enum { SLOTS = 8, GOOD_NUMBERS = -1, NUMBER_SETS = 3 };
typedef struct slots {
    weft *w;
    weft *other;
    weft_module *m;
    weft_tensor *t[SLOTS];
    bool null[SLOTS];                            /* this handle is NULL */
    bool inert;                                  /* handles are inert, from failed constructors */
    int bad;                                     /* a set of bad numbers, or GOOD_NUMBERS */
    bool filled;                                 /* with bad numbers: structs of options are not NULL */
    weft_status status;                          /* returned by functions that return one */
} slots;

typedef struct function {
    const char *name;
    void (*call)(slots *);
    int tensors;
    int handles;
    const char *names[SLOTS];                    /* parameters or fields: tensors, then handles */
} function;

/* ---- arguments ---- */
static FILE *nowhere;
static int attention_kind;                       /* of the attention layer that make_handles makes */
static int64_t zeros[512], room[512];
static const weft_real reals[] = { (weft_real).25, (weft_real).5, (weft_real).75, 1 };
static const char *names[] = { "u", NULL };

static int64_t number_of(const slots *s, int64_t good)
{
    static const int64_t bad[NUMBER_SETS] = { -1, INT64_MIN, INT64_MAX };
    return s->bad < 0 ? good : bad[s->bad];
}
static int int_of(const slots *s, int good)
{
    static const int bad[NUMBER_SETS] = { -1, INT_MIN, INT_MAX };
    return s->bad < 0 ? good : bad[s->bad];
}
static double real_of(const slots *s, double good)
{
    static const double bad[NUMBER_SETS] = { -1, NAN, INFINITY };
    return s->bad < 0 ? good : bad[s->bad];
}
static const char *name_of(const slots *s, const char *good)
{
    static const char *const bad[NUMBER_SETS] = { NULL, "", "a.b/c and more bytes than the longest name of "
                                                            "a module or parameter is allowed to have" };
    return s->bad < 0 ? good : bad[s->bad];
}
static const weft_lengths *lengths_of(const slots *s)
{
    static const int32_t len[] = { -1, INT32_MAX }, good_len[] = { 1, 1 };
    static const weft_lengths good = { .n = 2, .len = good_len };
    static const weft_lengths bad[NUMBER_SETS] = { { .n = -1 }, { .n = 2, .len = len },
                                                   { .n = 1, .len = len + 1 } };
    return s->bad < 0 ? &good : s->filled ? &bad[s->bad] : NULL;
}
static const int64_t *shape_of(const slots *s)
{
    static int64_t shape[WEFT_RANK];
    for (int i = 0; i < WEFT_RANK; i++)
        shape[i] = number_of(s, 2);
    return s->bad < 0 || s->filled ? shape : NULL;
}
static void *pointer(const slots *s, void *good) { return s->bad < 0 ? good : NULL; }
/* The length of a list that has two elements. */
static int64_t few_of(const slots *s) { return number_of(s, 2) > 2 ? 2 : number_of(s, 2); }

static weft_tensor *first_input(weft_tensor *const *x, void *user)
{
    (void)user;
    return x[0];
}
static weft_tensor *no_scores(weft_decode_rows *rows, void *user)
{
    (void)rows;
    (void)user;
    return NULL;
}
static weft_tensor *no_model(weft_series_batch series, void *user)
{
    (void)user;
    return series.future;
}
static void no_numbers(weft_call *c) { (void)c; }
static const weft_op fine = { .name = "op_apply", .shape = like_first, .forward = no_numbers };

static weft_module *own_module(weft *w)
{
    static int made;
    char name[16];
    snprintf(name, sizeof name, "m%d", made++);
    weft_module *m = weft_module_new(w, name);
    weft_parameter(m, "p", WEFT_SHAPE(2), (weft_init){ WEFT_INIT_ZERO, 0, 0 });
    return m;
}

#include "tests/api/refusals.h"

/* ---- tensors ---- */
/* Valid tensors. Which of them a parameter accepts is found by trying. */
enum { VECTOR, MATRIX, INTS, RAGGED, RAGGED_INTS, LOSS, PARAMETER, SCALAR, STATE, ABSENT, FORMS };
static weft_tensor *of_form(int form, weft *w, weft_module *m)
{
    static const int32_t len[] = { 1, 1 };
    static const weft_lengths l = { .n = 2, .len = len };
    switch (form) {
    case MATRIX:      return weft_zeros(w, WEFT_SHAPE(2, 2));
    case INTS:        return weft_ints(w, NULL, WEFT_SHAPE(2));
    case RAGGED:      return weft_ragged(w, (weft_real *)zeros, 2, &l);
    case RAGGED_INTS: return weft_ragged_ints(w, (int32_t *)zeros, &l);
    case LOSS:        return m ? weft_sum_all(weft_find_parameter(m, "p")) : weft_scalar(w, 0);
    case PARAMETER:   return m ? weft_find_parameter(m, "p") : weft_zeros(w, WEFT_SHAPE(2));
    case SCALAR:      return weft_scalar(w, 1);
    case STATE:       return weft_zeros(w, WEFT_SHAPE(1, 2, 2));
    case ABSENT:      return NULL;
    default:          return weft_zeros(w, WEFT_SHAPE(2));
    }
}

/* Bad tensors. OF_NULL is the result of a function that got NULL. */
enum { NOTHING, OF_NULL, STALE, FOREIGN, INERT, BAD };
static const char *const bad_names[BAD] = { "NULL", "the result of a call with NULL", "stale", "foreign",
                                            "inert" };
static weft_tensor *bad_tensor(int kind, int form, slots *s, weft_tensor *stale)
{
    switch (kind) {
    case OF_NULL: return weft_tanh(NULL);
    case STALE:   return stale;
    case FOREIGN: return of_form(form == ABSENT ? VECTOR : form, s->other, NULL);
    case INERT:   return &s->w->nil;
    default:      return NULL;
    }
}

/* ---- one call ---- */
static const char *running = "";                 /* the function, for the report of a crash */
static void report_crash(int signal)
{
    ssize_t written = write(STDERR_FILENO, running, strlen(running));
    (void)written;
    raise(signal);
}
static void report_crashes(void)
{
    if (!CHECK_SANITIZED)                        /* a sanitizer prints the stack itself */
        sigaction(SIGSEGV, &(struct sigaction){ .sa_handler = report_crash, .sa_flags = SA_RESETHAND }, NULL);
}

static char message[1024];
/* Calls the function. Whether it has failed; its message is in `message`. Both contexts are recovered. */
static bool fails(const function *f, slots *s)
{
    running = f->name;
    s->status = WEFT_OK;
    f->call(s);
    weft *failed = weft_ok(s->w) ? s->other : s->w;
    if (weft_ok(failed))                         /* both messages stay until the next failure of their kind */
        snprintf(message, sizeof message, "%s\n%s", weft_file_message(), weft_plan_message());
    else
        snprintf(message, sizeof message, "%s", weft_error_message(failed));
    bool any = !weft_ok(failed) || s->status != WEFT_OK;
    weft_set_grad_enabled(s->w, true);
    weft_recover(s->w);
    weft_recover(s->other);
    return any;
}

/* A function cannot create the same name twice in a module, so each gets its own module. */
static void make_module(const function *f, slots *s)
{
    bool needed = !s->m;
    for (int i = f->tensors; i < f->tensors + f->handles; i++)
        needed |= !strcmp(f->names[i], "m") || !strcmp(f->names[i], "parent");
    if (needed)
        s->m = own_module(s->w);
}

static void make_good(const function *f, slots *s, const int *form)
{
    make_module(f, s);
    for (int i = 0; i < f->tensors; i++)
        s->t[i] = of_form(form[i], s->w, s->m);
}

/* Finds the forms of tensors that a function accepts. Returns false if none is accepted. */
static bool accepted_forms(const function *f, slots *s, int *form)
{
    memset(form, 0, SLOTS * sizeof *form);
    for (;;) {
        make_good(f, s, form);
        if (!fails(f, s))
            return f->tensors == 0 || f->handles || form[0] != ABSENT;
        int i = f->tensors - 1;
        while (i >= 0 && ++form[i] == FORMS)
            form[i--] = 0;
        if (i < 0)
            return false;
    }
}

static void open_both(slots *s)
{
    report_crashes();
    *s = (slots){ .w = open_on(WEFT_CPU), .other = open_on(WEFT_CPU), .bad = GOOD_NUMBERS };
    make_handles(s->w, false);
    weft_fail(s->w, WEFT_EARG, "on purpose");
    make_handles(s->w, true);
    weft_recover(s->w);
    nowhere = fopen("/dev/null", "w");
}

static void close_both(slots *s)
{
    fclose(nowhere);
    CLEAN(s->w);
    CLEAN(s->other);
}

/* ---- expectations that the headers do not state ---- */
/* Whether a list has this name, between blanks. */
static bool listed(const char *list, const char *name)
{
    char spaced[128];
    snprintf(spaced, sizeof spaced, " %s ", name);
    return strstr(list, spaced) != NULL;
}
/* Functions that end a handle: they are called with NULL only. */
static bool ends(const char *name) { return strstr(name, "_free") || strstr(name, "weft_close"); }
/* Functions that answer or print, and do not fail a context. */
static const char answers[] =
    " weft_error_code weft_print_device weft_context_of weft_dtype_of weft_rank weft_size weft_numel"
    " weft_print weft_layout_of weft_lengths_of weft_offsets weft_rows_of weft_print_layout weft_print_tape"
    " weft_op_like weft_op_set_shape weft_print_module weft_grad ";
/* Parameters and fields that may be NULL. A call on a NULL module does nothing. */
static const char optional[] = " m h c mask weights class_weight gain shift first fill ";
/* Fields that a function does not read. */
static const char ignored[] =
    " weft_accuracy.class_weight weft_sequence_accuracy.class_weight weft_confusion_matrix.class_weight ";
/* Handles that do not belong to a context. */
static const char of_no_context[] = " file stream weft_planner weft_call ";
/* Functions whose data the generator does not make: plans, frames, fitted features, models of a file, a run
 * before. */
static const char unreachable[] =
    " weft_rewind weft_buffer_at weft_optim_step weft_plan_loader_new weft_dataset_batch weft_final_state"
    " weft_rnn_trace weft_plan_step_of weft_plan_tokens weft_plan_loss weft_plan_weights"
    " weft_rnn_run_plan weft_carried_new weft_decode weft_decode_ragged weft_rnn_of_cell weft_parallel_add"
    " weft_shorten_series weft_features_fit weft_features_transform weft_features_inverse_transform"
    " weft_windows_new weft_windows_inverse_transform weft_rolling_forecast weft_rolling_forecasts"
    " weft_ragged_of weft_to_rows weft_loader_set_state weft_onnx_run weft_muon_exclude ";
/* Functions built on others, whose names appear in their messages. */
static const char by_another_name[] =
    " weft_print weft_mean_loss weft_ratio_value weft_accuracy weft_sequence_accuracy weft_confusion_matrix"
    " weft_plan_loader_new weft_forecast_meters_add ";

/* Returns whether f must fail if the argument `at` is bad in this way. A NULL or foreign handle is only
 * noticed if another handle has a context. */
static bool must_fail(const function *f, int at, int kind, const int *form)
{
    int present = 0;
    char field[128];
    snprintf(field, sizeof field, "%s.%s", f->name, f->names[at]);
    for (int i = 0; i < f->tensors + f->handles; i++)
        present += i != at && (i < f->tensors ? form[i] != ABSENT : !listed(of_no_context, f->names[i]));
    if (listed(answers, f->name) || listed(unreachable, f->name) || listed(ignored, field))
        return false;
    if (kind == NOTHING && (listed(optional, f->names[at]) || (at < f->tensors && form[at] == ABSENT)))
        return false;
    return kind == STALE || kind == INERT || present > 0;
}

/* A message has the function's name, with or without its last word (linear_run, linear), or the layer's. */
static bool names_the_function(const char *name)
{
    char stem[80];
    snprintf(stem, sizeof stem, "%s", name + strlen("weft_"));
    if (strstr(message, stem) || strstr(message, ".made"))
        return true;
    if (strrchr(stem, '_'))
        *strrchr(stem, '_') = 0;
    return strstr(message, stem) != NULL;
}

static int wrong;
static void complain(const function *f, int at, const char *kind, const char *what)
{
    wrong++;
    fprintf(stderr, "%s: %s is %s: %s\n", f->name, f->names[at], kind, what);
}

static void judge(const function *f, slots *s, int at, int kind, const int *form)
{
    bool failed = fails(f, s);
    if (listed(answers, f->name))
        return;
    if (failed && !*message)
        complain(f, at, bad_names[kind], "fails without a message");
    else if (!failed && must_fail(f, at, kind, form))
        complain(f, at, bad_names[kind], "does not fail");
    else if (failed && !names_the_function(f->name) && !listed(by_another_name, f->name))
        complain(f, at, bad_names[kind], message);
}

static void with_bad_tensors(const function *f, slots *s, const int *form)
{
    for (int at = 0; at < f->tensors; at++)
        for (int kind = 0; kind < BAD; kind++) {
            weft_tensor *stale = of_form(form[at] == ABSENT ? VECTOR : form[at], s->w, NULL);
            weft_clear(s->w);
            make_good(f, s, form);
            s->t[at] = bad_tensor(kind, form[at], s, stale);
            judge(f, s, at, kind, form);
        }
}

static void with_null_handles(const function *f, slots *s, const int *form)
{
    for (int at = 0; at < f->handles; at++) {
        make_good(f, s, form);
        s->null[at] = true;
        judge(f, s, f->tensors + at, NOTHING, form);
        s->null[at] = false;
    }
}

/* Running a layer whose constructor failed is an error. Other calls on it must not crash. */
static void with_inert_handles(const function *f, slots *s, const int *form)
{
    make_good(f, s, form);
    s->m = weft_submodule_new(s->m, "a.b");
    weft_recover(s->w);
    s->inert = true;
    const bool failed = fails(f, s), runs = !strcmp(f->name + strlen(f->name) - 4, "_run");
    if (failed ? !*message : runs && !listed(unreachable, f->name))
        complain(f, f->tensors, bad_names[INERT], failed ? "fails without a message" : "does not fail");
    s->inert = false;
    s->m = NULL;
}

static void one_bad_handle_at_a_time(void)
{
    slots s;
    open_both(&s);
    for (int i = 0; i < COUNT(functions); i++) {
        int form[SLOTS];
        const function *f = &functions[i];
        if (ends(f->name) || f->tensors + f->handles == 0)
            continue;
        memset(form, 0, sizeof form);
        if (!listed(unreachable, f->name) && !accepted_forms(f, &s, form) && !s.status) {
            wrong++;
            fprintf(stderr, "%s: no arguments that it accepts were found: %s\n", f->name, message);
        }
        with_bad_tensors(f, &s, form);
        with_null_handles(f, &s, form);
        if (f->handles)
            with_inert_handles(f, &s, form);
    }
    cr_assert_eq(wrong, 0);
    close_both(&s);
}
Test(refused, bad_handle_among_good_ones_is_refused)
{
    for (attention_kind = WEFT_MULTIHEAD; attention_kind <= WEFT_ADDITIVE; attention_kind++)
        one_bad_handle_at_a_time();
}

/* All arguments have the same fault: numbers too small or too large, pointers NULL or to such structs. */
static void all_bad(const function *f, slots *s)
{
    for (int kind = 0; kind <= BAD; kind++) {
        weft_tensor *stale = weft_zeros(s->w, WEFT_SHAPE(2));
        weft_clear(s->w);
        make_module(f, s);
        for (int i = 0; i < SLOTS; i++) {
            s->t[i] = kind < BAD ? bad_tensor(kind, VECTOR, s, stale) : of_form(RAGGED, s->w, s->m);
            s->null[i] = kind % 2 || ends(f->name);
        }
        if (fails(f, s) && !*message && !listed(answers, f->name))
            complain(f, 0, "bad", "fails without a message");
    }
}

Test(refused, bad_numbers_are_refused)
{
    slots s;
    open_both(&s);
    for (int i = 0; i < COUNT(functions); i++)
        for (int set = 0; set < 2 * NUMBER_SETS; set++) {
            s.bad = set / 2;
            s.filled = set % 2;
            all_bad(&functions[i], &s);
        }
    cr_assert_eq(wrong, 0);
    close_both(&s);
}

/* A call with only NULL has no context to fail; the next call with a good tensor reports it. */
CPU_TEST(refused, result_of_a_call_with_null_is_refused)
{
    weft_tensor *x = weft_zeros(w, WEFT_SHAPE(2)), *of_null = weft_tanh(NULL);
    cr_assert(of_null && weft_ok(w));
    weft_add(x, of_null);
    FAILS(w, WEFT_EARG, "add: input 1 was returned by a function that got NULL");
    weft_mean_loss((weft_loss){ weft_zeros(w, WEFT_SHAPE(2)), NULL });
    FAILS(w, WEFT_EARG, "mul: input 1 was returned by a function that got NULL");
    weft_add(NULL, weft_zeros(w, WEFT_SHAPE(2)));
    FAILS(w, WEFT_EARG, "add: input 0 is NULL");
}

Test(refused, every_public_function_is_called)
{
    char name[80];
    int declared = 0;
    FILE *list = popen("cd \"${WEFT_TESTS:-tests}/..\" && bash tests/exports.sh declared", "r");
    cr_assert_not_null(list);
    while (fgets(name, sizeof name, list)) {
        int i = 0;
        name[strcspn(name, "\n")] = 0;
        while (i < COUNT(functions) && strcmp(functions[i].name, name))
            i++;
        cr_assert(i < COUNT(functions), "%s is not called in this test", name);
        declared++;
    }
    pclose(list);
    cr_assert(declared > 200, "%d functions are declared", declared);
}
