/* test_optim_members.c - tests which parameters an optimiser steps: also those created after it, only those
 * that a loss has reached, and none that has another optimiser. The references are a run whose optimiser was
 * created last, and the rule by hand. */
#include "optim_model.h"
#include "tests/io/files.h"

static weft_tensor *vector(weft_module *m, const char *name, int64_t n)
{
    return weft_parameter(m, name, WEFT_SHAPE(n), (weft_init){ WEFT_INIT_UNIFORM, -1, 1 });
}
static weft_real first(weft_tensor *x)                     { return numbers(x)[0]; }
static void pulled(weft_tensor *p)                         { weft_backward(weft_sum_all(weft_square(p))); }

/* ---- parameters made after the optimiser ---- */
/* It steps as one of an optimiser of its own does that begins now, and the others as if there were no
 * other. */
TABLE_TEST(members, new_parameter_joins_at_the_next_step)
{
    for (int r = SGD_NESTEROV; r < RULES; r++) {
        weft_module *m = weft_module_new(w, "net"), *a = weft_submodule_new(m, "a"),
                    *two = weft_module_new(w, "net"), *c = weft_submodule_new(two, "a");
        weft_optim *o = rule_new(m, r, .01);     /* of no parameter yet */
        weft_tensor *p = vector(a, "p", 7), *like_p = vector(c, "p", 7), *q = NULL, *like_q = NULL;
        weft_optim *of_c = rule_new(c, r, .01), *of_q = NULL;
        for (int t = 0; t < 6; t++) {
            if (t == 3) {
                q = vector(a, "q", 700);     /* moves the vectors */
                weft_module *d = weft_module_new(w, "net"), *e = weft_submodule_new(d, "a");
                like_q = vector(e, "q", 700);
                of_q = rule_new(d, r, .01);
            }
            pulled(p), pulled(like_p);
            if (q)
                pulled(q), pulled(like_q), weft_optim_step(of_q);
            weft_optim_step(o), weft_optim_step(of_c);
            weft_clear(w);
        }
        OK(w);
        same_bits("there from the beginning", numbers(p), numbers(like_p), 7);
        same_bits("late", numbers(q), numbers(like_q), 700);
    }
}

/* With weight decay 1, rate 1 and gradients of 0, a parameter that decays becomes 0. The number of a group is
 * the rest. */
static void one_decaying_step(weft_module *m, weft_optim *o)
{
    for (int i = 0; i < weft_parameter_count(m); i++) {
        weft_tensor *p = weft_parameter_at(m, i, NULL);
        weft_assign_values(p, (weft_real[]){ 1 }, 1);
        weft_assign_values(weft_grad(p), (weft_real[]){ 0 }, 1);
    }
    weft_optim_step(o);
    weft_clear(weft_module_context(m));
}

TABLE_TEST(members, groups_match_patterns)
{
    static const char *const names[] = { "weight_ih_l0", "bias_ih_l0", "bias", "weight" };
    static const struct { const char *pattern; int fits; /* bit i: root's i, bit 4 + i: that of part */
    } cases[] = { { "*", 255 },         { "*bias*", 102 },     { "*.bias", 64 },      { "bias", 4 },
                  { "part.*", 240 },    { "*bias", 68 },       { "part.weight", 128 }, { "????", 4 },
                  { "[pq]art.w*", 144 }, { "*t?b*[0-9]", 32 }, { "part.bias_ih_l[!1]", 32 } };
    for (int c = 0; c < COUNT(cases); c++) {
        weft_module *root = weft_module_new(w, "root"), *m = weft_submodule_new(root, "net"),
                    *part = weft_submodule_new(m, "part");
        weft_optim *o = weft_sgd_new(m, &(weft_sgd_opts){ .lr = 1, .weight_decay = 1 });
        char pattern[64];                    /* is copied */
        weft_tensor *p[8];
        p[0] = vector(m, names[0], 1);
        snprintf(pattern, sizeof pattern, "%s", cases[c].pattern);
        weft_optim_set_group(o, pattern, 1, .5);
        memset(pattern, '?', sizeof pattern - 1);
        for (int i = 1; i < 8; i++)          /* later than the rule */
            p[i] = vector(i < 4 ? m : part, names[i % 4], 1);
        one_decaying_step(m, o);
        OK(w);
        for (int i = 0; i < 8; i++)
            cr_assert_eq(first(p[i]), cases[c].fits >> i & 1 ? (weft_real).5 : 0, "%s, parameter %d",
                         cases[c].pattern, i);
        weft_optim_free(o);
    }
}

CPU_TEST(members, last_matching_group_wins)
{
    weft_module *m = weft_module_new(w, "net");
    weft_optim *o = weft_sgd_new(m, &(weft_sgd_opts){ .lr = 1, .weight_decay = 1 });
    weft_tensor *a = vector(m, "ab", 1), *b = vector(m, "ac", 1);
    weft_optim_set_group(o, "a*", 1, .5);
    weft_optim_set_group(o, "ab", .5, .5);
    one_decaying_step(m, o);
    cr_assert(first(a) == (weft_real).75 && first(b) == (weft_real).5);
    weft_optim_set_group(o, "a*", 1, 0);         /* set again, it is the last match */
    one_decaying_step(m, o);
    cr_assert(first(a) == 1 && first(b) == 1);
    weft_optim_set_group(o, "ac", 0, 1);
    one_decaying_step(m, o);
    cr_assert(first(a) == 1 && first(b) == 1, "a rate of 0 times the base is 0");
    weft_tensor *late = vector(m, "ad", 1);
    one_decaying_step(m, o);
    cr_assert_eq(first(late), 1);
}

CPU_TEST(members, group_without_a_match_is_refused)
{
    weft_module *m = weft_module_new(w, "net"), *part = weft_submodule_new(m, "part");
    weft_tensor *p = vector(part, "weight", 1);
    weft_optim *o = weft_sgd_new(m, &(weft_sgd_opts){ .lr = 1, .weight_decay = 1 });
    weft_optim_set_group(o, "net.part.*", 1, .5);
    OK(w);
    for (int i = 0; i < 2; i++) {
        one_decaying_step(m, o);
        cr_assert(strstr(weft_error_message(w), "such as \"part.weight\""), "%s", weft_error_message(w));
        FAILS(w, WEFT_EARG, "the group \"net.part.*\" of the sgd of net matches no parameter");
        cr_assert(first(p) == 1 && weft_optim_steps(o) == 0, "a failed step changes nothing");
    }
    weft_module *net = weft_submodule_new(m, "net");            /* it comes to fit */
    weft_tensor *q = vector(weft_submodule_new(net, "part"), "weight", 1);
    one_decaying_step(m, o);
    cr_assert(first(p) == 0 && first(q) == (weft_real).5);
}

/* ---- saved and resumed ---- */
static void some_steps(weft_module *m, weft_optim *o, int from, int to)
{
    weft *w = weft_module_context(m);
    for (int t = from; t < to; t++) {
        for (int i = 0; i < weft_parameter_count(m); i++)
            if ((t + i) % 3)
                pulled(weft_parameter_at(m, i, NULL));
        weft_optim_step(o);
        weft_clear(w);
    }
    OK(w);
}

TABLE_TEST(members, late_parameters_are_saved_and_resumed)
{
    const char *path[] = { in_folder("0"), in_folder("1") };
    for (int r = 0; r < RULES; r++)
        for (int stepped = 0; stepped < 2; stepped++) {
            weft_module *m = weft_module_new(w, "net"), *again = weft_module_new(w, "net");
            vector(m, "p", 7);
            weft_optim *o = rule_new(m, r, .01);
            some_steps(m, o, 0, 3);
            vector(m, "q", 33), vector(m, "r", 5);
            some_steps(m, o, 3, stepped ? 5 : 3);            /* also saved before their first step */
            DOES(weft_save(path[0], m, o, NULL, 0));
            /* and loaded into an optimiser that has not seen one */
            weft_optim *p = rule_new(again, r, .01);
            vector(again, "p", 7), vector(again, "q", 33), vector(again, "r", 5);
            DOES(weft_load(path[0], again, p, NULL, 0));
            some_steps(m, o, 5, 9);
            DOES(weft_save(path[0], m, o, NULL, 0));
            some_steps(again, p, 5, 9);
            w->random.draw -= 4;                    /* both files at one number of steps */
            DOES(weft_save(path[1], again, p, NULL, 0));
            cr_assert(equal_files(path[0], path[1]), "resumed with late parameters, rule %d", r);
        }
    end_folder();
}

/* ---- one optimiser a parameter ---- */
CPU_TEST(members, second_optimiser_of_a_parameter_is_refused)
{
    weft_module *m = weft_module_new(w, "net"), *enc = weft_submodule_new(m, "enc"),
                *dec = weft_submodule_new(m, "dec");
    weft_tensor *p = vector(enc, "p", 2);
    weft_optim *whole = weft_adam_new(m, NULL);
    weft_sgd_new(enc, NULL);
    FAILS(w, WEFT_EARG,
          "sgd: net.enc.p has two optimisers, the adam of net and the sgd of net.enc; expected one "
          "(weft_optim_free ends one)");
    weft_optim *of_dec = weft_sgd_new(dec, NULL);
    OK(w);
    pulled(p), weft_optim_step(whole);           /* continues */
    vector(dec, "late", 2);
    weft_optim_step(of_dec);
    OK(w);
    weft_optim_step(whole);
    FAILS(w, WEFT_EARG,
          "optim_step: net.dec.late has two optimisers, the sgd of net.dec and the adam of net");
    weft_optim_free(of_dec);
    weft_real before = first(p);
    pulled(p), weft_optim_step(whole);
    cr_assert(weft_ok(w) && first(p) != before);
    weft_optim_free(whole), weft_optim_free(whole), weft_optim_free(NULL);
    before = first(p);
    weft_optim_step(whole);
    cr_assert(first(p) == before && weft_optim_steps(whole) == 2);
    weft_optim *next = weft_sgd_new(m, NULL);
    pulled(p), weft_optim_step(next);
    cr_assert(weft_ok(w) && first(p) != before);
}

CPU_TEST(members, tied_parameters_belong_to_their_first_name)
{
    weft_module *m = weft_module_new(w, "net"), *a = weft_submodule_new(m, "a"),
                *b = weft_submodule_new(m, "b");
    weft_tensor *p = vector(a, "p", 2);
    weft_tie(b, "q", p);
    weft_optim *of_a = weft_sgd_new(a, NULL), *of_b = weft_sgd_new(b, NULL);
    pulled(p), weft_optim_step(of_a);
    OK(w);
    weft_optim_step(of_b);
    FAILS(w, WEFT_EARG,
          "optim_step: the sgd of net.b has no parameters; expected a parameter made below it (a tied one");
}

Test(members, late_parameters_survive_enomem)
{
    for (int i = 1, failed = 1; failed; i++) {
        weft *w = open_on(WEFT_REF);
        weft_module *m = weft_module_new(w, "net");
        weft_tensor *p = vector(m, "p", 3), *q = NULL;
        weft_optim *o = rule_new(m, ADAMW_DECAY, .01);
        pulled(p), weft_optim_step(o);
        q = vector(m, "q", 3);
        pulled(p), pulled(q);
        weft_real was = first(p);
        fail_in(w, i);
        weft_optim_step(o);
        fail_in(w, 0);
        failed = !weft_ok(w);
        cr_assert(failed ? weft_error_code(w) == WEFT_ENOMEM && p->data[0] == was : p->data[0] != was, "%s",
                  weft_error_message(w));
        weft_recover(w);
        pulled(p), pulled(q), was = first(q), weft_optim_step(o);
        cr_assert(weft_ok(w) && first(q) != was, "%d: %s", i, weft_error_message(w));
        cr_assert_lt(i, 50);
        CLEAN(w);
    }
}
